//! Vectors of 512 bits, with multiplication by matrices.

use std::arch::x86_64::{
    __m512i, _mm512_gf2p8affine_epi64_epi8, _mm512_loadu_si512, _mm512_or_si512, _mm512_set1_epi64,
    _mm512_setzero_si512, _mm512_storeu_si512, _mm512_stream_si512, _mm512_test_epi64_mask,
    _mm512_xor_si512,
};

use super::Lanes;
use crate::field;

impl Lanes for __m512i {
    const BYTES: usize = 64;
    const MOST_DOUBLINGS: u8 = 0;

    #[inline(always)]
    // SAFETY: the caller promises what the trait asks for.
    unsafe fn zero() -> Self {
        // SAFETY: the machine has AVX-512, by the caller's promise.
        unsafe { _mm512_setzero_si512() }
    }

    #[inline(always)]
    // SAFETY: the caller promises what the trait asks for.
    unsafe fn offset() -> Self {
        // SAFETY: the machine has AVX-512, by the caller's promise.
        unsafe { _mm512_setzero_si512() }
    }

    #[inline(always)]
    // SAFETY: the caller promises what the trait asks for.
    unsafe fn load(from: *const u8) -> Self {
        // SAFETY: promised by the caller; the unaligned kind.
        unsafe { _mm512_loadu_si512(from.cast::<Self>()) }
    }

    #[inline(always)]
    // SAFETY: the caller promises what the trait asks for.
    unsafe fn store(self, to: *mut u8) {
        // SAFETY: promised by the caller; the unaligned kind.
        unsafe { _mm512_storeu_si512(to.cast::<Self>(), self) };
    }

    #[inline(always)]
    // SAFETY: the caller promises what the trait asks for.
    unsafe fn stream(self, to: *mut u8) {
        // SAFETY: promised by the caller, alignment to 64 bytes too; who runs the pass fences it.
        unsafe { _mm512_stream_si512(to.cast::<Self>(), self) };
    }

    /// The compiler makes one operation (VPTERNLOG) of two additions.
    #[inline(always)]
    // SAFETY: the caller promises what the trait asks for.
    unsafe fn add(self, other: Self) -> Self {
        // SAFETY: the machine has AVX-512, by the caller's promise.
        unsafe { _mm512_xor_si512(self, other) }
    }

    #[inline(always)]
    // SAFETY: the caller promises what the trait asks for.
    unsafe fn double(self) -> Self {
        // SAFETY: promised by the caller.
        unsafe { self.multiply(1) }
    }

    /// One operation. GF2P8MULB would do without a matrix, but is of the field with polynomial 0x11b.
    #[inline(always)]
    // SAFETY: the caller promises what the trait asks for.
    unsafe fn multiply(self, exponent: u8) -> Self {
        let matrix = field::matrix(exponent).cast_signed();
        // SAFETY: the machine has AVX-512 and GFNI, by the caller's promise.
        unsafe { _mm512_gf2p8affine_epi64_epi8::<0>(self, _mm512_set1_epi64(matrix)) }
    }

    #[inline(always)]
    // SAFETY: the caller promises what the trait asks for.
    unsafe fn or(self, other: Self) -> Self {
        // SAFETY: the machine has AVX-512, by the caller's promise.
        unsafe { _mm512_or_si512(self, other) }
    }

    #[inline(always)]
    // SAFETY: the caller promises what the trait asks for.
    unsafe fn is_zero(self) -> bool {
        // SAFETY: the machine has AVX-512, by the caller's promise.
        unsafe { _mm512_test_epi64_mask(self, self) == 0 }
    }
}
