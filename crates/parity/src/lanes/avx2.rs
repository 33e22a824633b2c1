//! Vectors of 256 bits.

use std::arch::x86_64::{
    __m128i, __m256i, _mm_loadu_si128, _mm256_add_epi8, _mm256_and_si256,
    _mm256_broadcastsi128_si256, _mm256_loadu_si256, _mm256_or_si256, _mm256_set1_epi8,
    _mm256_setzero_si256, _mm256_shuffle_epi8, _mm256_srli_epi64, _mm256_storeu_si256,
    _mm256_stream_si256, _mm256_testz_si256, _mm256_xor_si256,
};

use super::Lanes;
use crate::field::Products;

/// Bytes in a vector.
pub(crate) const VECTOR: usize = 32;

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

/// `N` vectors of 32 bytes.
#[derive(Clone, Copy)]
pub(crate) struct Vectors<const N: usize>([__m256i; N]);

impl<const N: usize> Lanes for Vectors<N> {
    const BYTES: usize = VECTOR * N;

    #[inline(always)]
    // SAFETY: the caller promises what the trait asks for.
    unsafe fn zero() -> Self {
        // SAFETY: the machine has AVX2, by the caller's promise.
        Self([unsafe { _mm256_setzero_si256() }; N])
    }

    #[inline(always)]
    // SAFETY: the caller promises what the trait asks for.
    unsafe fn offset() -> Self {
        // SAFETY: the machine has AVX2, by the caller's promise.
        Self([unsafe { _mm256_set1_epi8(OFFSET.cast_signed()) }; N])
    }

    #[inline(always)]
    // SAFETY: the caller promises what the trait asks for.
    unsafe fn load(from: *const u8) -> Self {
        let from = from.cast::<__m256i>();
        // SAFETY: promised by the caller; the unaligned kind.
        Self(std::array::from_fn(|n| unsafe { _mm256_loadu_si256(from.wrapping_add(n)) }))
    }

    #[inline(always)]
    // SAFETY: the caller promises what the trait asks for.
    unsafe fn store(self, to: *mut u8) {
        for (n, vector) in self.0.into_iter().enumerate() {
            // SAFETY: promised by the caller; the unaligned kind.
            unsafe { _mm256_storeu_si256(to.cast::<__m256i>().wrapping_add(n), vector) };
        }
    }

    #[inline(always)]
    // SAFETY: the caller promises what the trait asks for.
    unsafe fn stream(self, to: *mut u8) {
        for (n, vector) in self.0.into_iter().enumerate() {
            // SAFETY: promised by the caller, alignment to 32 bytes too; who runs the pass fences it.
            unsafe { _mm256_stream_si256(to.cast::<__m256i>().wrapping_add(n), vector) };
        }
    }

    #[inline(always)]
    // SAFETY: the caller promises what the trait asks for.
    unsafe fn add(mut self, other: Self) -> Self {
        for (vector, other) in self.0.iter_mut().zip(other.0) {
            // SAFETY: the machine has AVX2, by the caller's promise.
            *vector = unsafe { _mm256_xor_si256(*vector, other) };
        }
        self
    }

    /// Three operations a vector. A shuffle gives 0 where the top bit of the index is set, so from a table
    /// full of 0x1d it gives the reduction of just those bytes that need none: the error is 0x1d in
    /// every byte, and the offset makes it vanish.
    #[inline(always)]
    // SAFETY: the caller promises what the trait asks for.
    unsafe fn double(mut self) -> Self {
        for vector in &mut self.0 {
            // SAFETY: the machine has AVX2, by the caller's promise.
            *vector = unsafe {
                let inverted = _mm256_shuffle_epi8(_mm256_set1_epi8(POLYNOMIAL), *vector);
                _mm256_xor_si256(_mm256_add_epi8(*vector, *vector), inverted)
            };
        }
        self
    }

    /// Looks both nibbles of each byte up, by shuffles of the sixteen products each.
    #[inline(always)]
    // SAFETY: the caller promises what the trait asks for.
    unsafe fn multiply(mut self, products: &Products) -> Self {
        let halves = products.as_ptr().cast::<__m128i>();
        // SAFETY: there are 32 products, and the machine has AVX2, by the caller's promise.
        unsafe {
            let low = _mm256_broadcastsi128_si256(_mm_loadu_si128(halves));
            let high = _mm256_broadcastsi128_si256(_mm_loadu_si128(halves.add(1)));
            let nibble = _mm256_set1_epi8(15);
            for vector in &mut self.0 {
                let upper = _mm256_and_si256(_mm256_srli_epi64::<4>(*vector), nibble);
                let lower = _mm256_and_si256(*vector, nibble);
                *vector = _mm256_xor_si256(
                    _mm256_shuffle_epi8(low, lower),
                    _mm256_shuffle_epi8(high, upper),
                );
            }
        }
        self
    }

    #[inline(always)]
    // SAFETY: the caller promises what the trait asks for.
    unsafe fn is_zero(self) -> bool {
        // SAFETY: the machine has AVX2, by the caller's promise.
        unsafe {
            let or = |sum, vector: &__m256i| _mm256_or_si256(sum, *vector);
            let all = self.0.iter().fold(_mm256_setzero_si256(), or);
            _mm256_testz_si256(all, all) == 1
        }
    }
}
