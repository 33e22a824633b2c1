//! Vectors of 256 bits.

use std::arch::x86_64::{
    __m128i, __m256i, _mm_loadu_si128, _mm256_add_epi8, _mm256_and_si256,
    _mm256_broadcastsi128_si256, _mm256_loadu_si256, _mm256_or_si256, _mm256_set1_epi8,
    _mm256_setzero_si256, _mm256_shuffle_epi8, _mm256_srli_epi64, _mm256_storeu_si256,
    _mm256_stream_si256, _mm256_testz_si256, _mm256_xor_si256,
};

use super::Lanes;
use crate::field;

/// The low eight bits of the field's polynomial.
const POLYNOMIAL: i8 = 0x1d;
/// The fixed point of [`Lanes::double`]: f with 2 f + 0x1d = f.
const OFFSET: u8 = {
    let mut f = 0;
    while crate::scalar::double(f) ^ 0x1d != f {
        f += 1;
    }
    f
};

impl Lanes for __m256i {
    const BYTES: usize = 32;

    #[inline(always)]
    // SAFETY: the caller promises what the trait asks for.
    unsafe fn zero() -> Self {
        // SAFETY: the machine has AVX2, by the caller's promise.
        unsafe { _mm256_setzero_si256() }
    }

    #[inline(always)]
    // SAFETY: the caller promises what the trait asks for.
    unsafe fn offset() -> Self {
        // SAFETY: the machine has AVX2, by the caller's promise.
        unsafe { _mm256_set1_epi8(OFFSET.cast_signed()) }
    }

    #[inline(always)]
    // SAFETY: the caller promises what the trait asks for.
    unsafe fn load(from: *const u8) -> Self {
        // SAFETY: promised by the caller; the unaligned kind.
        unsafe { _mm256_loadu_si256(from.cast::<Self>()) }
    }

    #[inline(always)]
    // SAFETY: the caller promises what the trait asks for.
    unsafe fn store(self, to: *mut u8) {
        // SAFETY: promised by the caller; the unaligned kind.
        unsafe { _mm256_storeu_si256(to.cast::<Self>(), self) };
    }

    #[inline(always)]
    // SAFETY: the caller promises what the trait asks for.
    unsafe fn stream(self, to: *mut u8) {
        // SAFETY: promised by the caller, alignment to 32 bytes too; who runs the pass fences it.
        unsafe { _mm256_stream_si256(to.cast::<Self>(), self) };
    }

    #[inline(always)]
    // SAFETY: the caller promises what the trait asks for.
    unsafe fn add(self, other: Self) -> Self {
        // SAFETY: the machine has AVX2, by the caller's promise.
        unsafe { _mm256_xor_si256(self, other) }
    }

    /// Three operations. A shuffle gives 0 where the top bit of the index is set, so from a table
    /// full of 0x1d it gives the reduction of just those bytes that need none: the error is 0x1d in
    /// every byte, which a sum that is kept offset by the fixed point does not notice.
    #[inline(always)]
    // SAFETY: the caller promises what the trait asks for.
    unsafe fn double(self) -> Self {
        // SAFETY: the machine has AVX2, by the caller's promise.
        unsafe {
            let inverted = _mm256_shuffle_epi8(_mm256_set1_epi8(POLYNOMIAL), self);
            _mm256_xor_si256(_mm256_add_epi8(self, self), inverted)
        }
    }

    /// Looks both nibbles of each byte up, by shuffles of the sixteen products each.
    #[inline(always)]
    // SAFETY: the caller promises what the trait asks for.
    unsafe fn multiply(self, exponent: u8) -> Self {
        let halves = field::products(exponent).as_ptr().cast::<__m128i>();
        // SAFETY: there are 32 products, and the machine has AVX2, by the caller's promise.
        unsafe {
            let low = _mm256_broadcastsi128_si256(_mm_loadu_si128(halves));
            let high = _mm256_broadcastsi128_si256(_mm_loadu_si128(halves.add(1)));
            let nibble = _mm256_set1_epi8(15);
            let upper = _mm256_and_si256(_mm256_srli_epi64::<4>(self), nibble);
            let lower = _mm256_and_si256(self, nibble);
            _mm256_xor_si256(_mm256_shuffle_epi8(low, lower), _mm256_shuffle_epi8(high, upper))
        }
    }

    #[inline(always)]
    // SAFETY: the caller promises what the trait asks for.
    unsafe fn or(self, other: Self) -> Self {
        // SAFETY: the machine has AVX2, by the caller's promise.
        unsafe { _mm256_or_si256(self, other) }
    }

    #[inline(always)]
    // SAFETY: the caller promises what the trait asks for.
    unsafe fn is_zero(self) -> bool {
        // SAFETY: the machine has AVX2, by the caller's promise.
        unsafe { _mm256_testz_si256(self, self) == 1 }
    }
}
