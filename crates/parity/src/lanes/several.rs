//! Several vectors side by side, in as many registers.
//!
//! Loops, not closures: a closure lacks the instructions of the function it is in, so that the compiler could make
//! calls of the operations in it.

use super::Lanes;

impl<V: Lanes, const N: usize> Lanes for [V; N] {
    const BYTES: usize = V::BYTES * N;
    const MOST_DOUBLINGS: u8 = V::MOST_DOUBLINGS;

    #[inline(always)]
    // SAFETY: the caller promises what the trait asks for.
    unsafe fn zero() -> Self {
        // SAFETY: promised by the caller.
        [unsafe { V::zero() }; N]
    }

    #[inline(always)]
    // SAFETY: the caller promises what the trait asks for.
    unsafe fn offset() -> Self {
        // SAFETY: promised by the caller.
        [unsafe { V::offset() }; N]
    }

    #[inline(always)]
    // SAFETY: the caller promises what the trait asks for.
    unsafe fn load(from: *const u8) -> Self {
        // SAFETY: promised by the caller.
        let mut vectors = unsafe { Self::zero() };
        for (n, vector) in vectors.iter_mut().enumerate() {
            // SAFETY: promised by the caller.
            *vector = unsafe { V::load(from.wrapping_add(n * V::BYTES)) };
        }
        vectors
    }

    #[inline(always)]
    // SAFETY: the caller promises what the trait asks for.
    unsafe fn store(self, to: *mut u8) {
        for (n, vector) in self.into_iter().enumerate() {
            // SAFETY: promised by the caller.
            unsafe { vector.store(to.wrapping_add(n * V::BYTES)) };
        }
    }

    #[inline(always)]
    // SAFETY: the caller promises what the trait asks for.
    unsafe fn stream(self, to: *mut u8) {
        for (n, vector) in self.into_iter().enumerate() {
            // SAFETY: promised by the caller, alignment too.
            unsafe { vector.stream(to.wrapping_add(n * V::BYTES)) };
        }
    }

    #[inline(always)]
    // SAFETY: the caller promises what the trait asks for.
    unsafe fn add(mut self, other: Self) -> Self {
        for (vector, other) in self.iter_mut().zip(other) {
            // SAFETY: promised by the caller.
            *vector = unsafe { vector.add(other) };
        }
        self
    }

    #[inline(always)]
    // SAFETY: the caller promises what the trait asks for.
    unsafe fn double(mut self) -> Self {
        for vector in &mut self {
            // SAFETY: promised by the caller.
            *vector = unsafe { vector.double() };
        }
        self
    }

    #[inline(always)]
    // SAFETY: the caller promises what the trait asks for.
    unsafe fn multiply(mut self, exponent: u8) -> Self {
        for vector in &mut self {
            // SAFETY: promised by the caller.
            *vector = unsafe { vector.multiply(exponent) };
        }
        self
    }

    #[inline(always)]
    // SAFETY: the caller promises what the trait asks for.
    unsafe fn or(mut self, other: Self) -> Self {
        for (vector, other) in self.iter_mut().zip(other) {
            // SAFETY: promised by the caller.
            *vector = unsafe { vector.or(other) };
        }
        self
    }

    #[inline(always)]
    // SAFETY: the caller promises what the trait asks for.
    unsafe fn is_zero(self) -> bool {
        // SAFETY: promised by the caller.
        unsafe {
            let mut all = V::zero();
            for vector in self {
                all = all.or(vector);
            }
            all.is_zero()
        }
    }
}
