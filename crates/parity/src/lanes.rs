//! Bytes side by side: one generic pass serves vectors, words and bytes.

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
#[cfg(target_arch = "x86_64")]
mod several;

use crate::field;

/// Bytes side by side, on each of which the same is done.
pub(crate) trait Lanes: Copy {
    const BYTES: usize;
    /// More doublings than this cost more than a multiplication; 0 where that is a single operation.
    const MOST_DOUBLINGS: u8 = 2;

    /// # Safety
    /// The machine has the lanes' instructions.
    unsafe fn zero() -> Self;

    /// What a sum of Q is kept offset by: the fixed point of [`double`](Self::double).
    ///
    /// # Safety
    /// The machine has the lanes' instructions.
    unsafe fn offset() -> Self;

    /// # Safety
    /// `from` is valid for reads of `BYTES` bytes, and the machine has the lanes' instructions.
    unsafe fn load(from: *const u8) -> Self;

    /// # Safety
    /// `to` is valid for writes of `BYTES` bytes, and the machine has the lanes' instructions.
    unsafe fn store(self, to: *mut u8);

    /// Stores past the cache; as [`store`](Self::store) for lanes that cannot.
    ///
    /// # Safety
    /// As [`store`](Self::store), and `to` is a multiple of the vector's size.
    #[inline(always)]
    // SAFETY: the caller promises what the trait asks for.
    unsafe fn stream(self, to: *mut u8) {
        // SAFETY: promised by the caller.
        unsafe { self.store(to) };
    }

    /// # Safety
    /// The machine has the lanes' instructions.
    unsafe fn add(self, other: Self) -> Self;

    /// Each byte times 2, where bytes are kept with [`offset`](Self::offset) added, before and after.
    ///
    /// # Safety
    /// The machine has the lanes' instructions.
    unsafe fn double(self) -> Self;

    /// Each byte times 2 to the power `exponent`; of bytes without the offset.
    ///
    /// # Safety
    /// The machine has the lanes' instructions.
    unsafe fn multiply(self, exponent: u8) -> Self;

    /// # Safety
    /// The machine has the lanes' instructions.
    unsafe fn or(self, other: Self) -> Self;

    /// # Safety
    /// The machine has the lanes' instructions.
    unsafe fn is_zero(self) -> bool;
}

impl Lanes for u8 {
    const BYTES: usize = 1;

    #[inline(always)]
    // SAFETY: every machine has bytes.
    unsafe fn zero() -> Self {
        0
    }

    #[inline(always)]
    // SAFETY: every machine has bytes.
    unsafe fn offset() -> Self {
        0
    }

    #[inline(always)]
    // SAFETY: the caller promises what the trait asks for.
    unsafe fn load(from: *const u8) -> Self {
        // SAFETY: promised by the caller.
        unsafe { from.read() }
    }

    #[inline(always)]
    // SAFETY: the caller promises what the trait asks for.
    unsafe fn store(self, to: *mut u8) {
        // SAFETY: promised by the caller.
        unsafe { to.write(self) };
    }

    #[inline(always)]
    // SAFETY: every machine has bytes.
    unsafe fn add(self, other: Self) -> Self {
        self ^ other
    }

    #[inline(always)]
    // SAFETY: every machine has bytes.
    unsafe fn double(self) -> Self {
        crate::scalar::double(self)
    }

    #[inline(always)]
    // SAFETY: every machine has bytes.
    unsafe fn multiply(self, exponent: u8) -> Self {
        field::product(field::products(exponent), self)
    }

    #[inline(always)]
    // SAFETY: every machine has bytes.
    unsafe fn or(self, other: Self) -> Self {
        self | other
    }

    #[inline(always)]
    // SAFETY: every machine has bytes.
    unsafe fn is_zero(self) -> bool {
        self == 0
    }
}

/// 64 bytes in words, which the compiler may turn into the vectors every machine has.
#[derive(Clone, Copy)]
pub(crate) struct Words([u64; 8]);

/// Twice the eight bytes of a word.
#[inline(always)]
fn double(word: u64) -> u64 {
    const TOP: u64 = 0x8080_8080_8080_8080;
    const POLYNOMIAL: u64 = 0x1d1d_1d1d_1d1d_1d1d;
    let top = word & TOP;
    // 0xff in each byte that overflows.
    let overflow = (top << 1).wrapping_sub(top >> 7);
    ((word & !TOP) << 1) ^ (overflow & POLYNOMIAL)
}

impl Lanes for Words {
    const BYTES: usize = 64;

    #[inline(always)]
    // SAFETY: every machine has words.
    unsafe fn zero() -> Self {
        Self([0; 8])
    }

    #[inline(always)]
    // SAFETY: every machine has words.
    unsafe fn offset() -> Self {
        Self([0; 8])
    }

    #[inline(always)]
    // SAFETY: the caller promises what the trait asks for.
    unsafe fn load(from: *const u8) -> Self {
        // SAFETY: promised by the caller; alignment is not needed.
        Self(unsafe { from.cast::<[u64; 8]>().read_unaligned() })
    }

    #[inline(always)]
    // SAFETY: the caller promises what the trait asks for.
    unsafe fn store(self, to: *mut u8) {
        // SAFETY: promised by the caller; alignment is not needed.
        unsafe { to.cast::<[u64; 8]>().write_unaligned(self.0) };
    }

    #[inline(always)]
    // SAFETY: every machine has words.
    unsafe fn add(mut self, other: Self) -> Self {
        for (word, other) in self.0.iter_mut().zip(other.0) {
            *word ^= other;
        }
        self
    }

    #[inline(always)]
    // SAFETY: every machine has words.
    unsafe fn double(self) -> Self {
        Self(self.0.map(double))
    }

    /// By doubling eight bytes at a time, once for each bit of the element.
    #[inline(always)]
    // SAFETY: every machine has words.
    unsafe fn multiply(mut self, exponent: u8) -> Self {
        let mut element = field::products(exponent)[1];
        let mut sum = [0; 8];
        loop {
            let wanted = 0u64.wrapping_sub(u64::from(element & 1));
            for (sum, word) in sum.iter_mut().zip(self.0) {
                *sum ^= word & wanted;
            }
            element >>= 1;
            if element == 0 {
                return Self(sum);
            }
            self.0 = self.0.map(double);
        }
    }

    #[inline(always)]
    // SAFETY: every machine has words.
    unsafe fn or(mut self, other: Self) -> Self {
        for (word, other) in self.0.iter_mut().zip(other.0) {
            *word |= other;
        }
        self
    }

    #[inline(always)]
    // SAFETY: every machine has words.
    unsafe fn is_zero(self) -> bool {
        self.0.iter().fold(0, |sum, word| sum | word) == 0
    }
}
