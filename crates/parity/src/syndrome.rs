//! P and Q in one pass over any number of blocks, and what follows from them: new parity, or lost data.
//!
//! A pass goes through all blocks position by position. It reads everything of a position before it
//! writes there, so a target may be one of the blocks. One generic [`step`] serves all lanes: four
//! vectors, one vector, words, bytes.

use crate::dispatch::{Path, path};
use crate::field::{self, Products};

/// Bytes side by side.
pub(crate) trait Lanes: Copy {
    const BYTES: usize;
    const ZERO: Self;

    /// # Safety
    /// `from` is valid for reads of `BYTES` bytes, and the machine has the lanes' instructions.
    unsafe fn load(from: *const u8) -> Self;

    /// # Safety
    /// `to` is valid for writes of `BYTES` bytes, and the machine has the lanes' instructions.
    unsafe fn store(self, to: *mut u8);

    /// # Safety
    /// The machine has the lanes' instructions.
    unsafe fn add(self, other: Self) -> Self;

    /// Each byte times the element that the products are of.
    ///
    /// # Safety
    /// The machine has the lanes' instructions.
    unsafe fn multiply(self, products: &Products) -> Self;
}

/// What a pass adds up.
pub(crate) trait Source {
    fn exponent(&self) -> u8;

    /// # Safety
    /// As [`Lanes::load`], for `at` bytes behind the start of what is read.
    unsafe fn load<V: Lanes>(&self, at: usize) -> V;
}

/// A block of data.
#[derive(Clone, Copy, Debug)]
pub struct Block {
    /// Where it starts.
    pub start: *const u8,
    /// Its coefficient in Q is 2 to this power; 0 to 254.
    pub exponent: u8,
}

/// A block of data that is overwritten.
#[derive(Clone, Copy, Debug)]
pub struct Change {
    /// Where the old contents start.
    pub old: *const u8,
    /// Where the new contents start.
    pub new: *const u8,
    /// Its coefficient in Q is 2 to this power; 0 to 254.
    pub exponent: u8,
}

impl Source for Block {
    #[inline(always)]
    fn exponent(&self) -> u8 {
        self.exponent
    }

    #[inline(always)]
    // SAFETY: the caller promises what the trait asks for.
    unsafe fn load<V: Lanes>(&self, at: usize) -> V {
        // SAFETY: promised by the caller.
        unsafe { V::load(self.start.wrapping_add(at)) }
    }
}

impl Source for Change {
    #[inline(always)]
    fn exponent(&self) -> u8 {
        self.exponent
    }

    #[inline(always)]
    // SAFETY: the caller promises what the trait asks for.
    unsafe fn load<V: Lanes>(&self, at: usize) -> V {
        // SAFETY: promised by the caller.
        unsafe { V::load(self.old.wrapping_add(at)).add(V::load(self.new.wrapping_add(at))) }
    }
}

/// What becomes of the two sums of a pass.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Finish {
    /// Store the one over which the pass went, or both.
    Store { p: Option<*mut u8>, q: Option<*mut u8> },
    /// Store the sum of Q times 2 to the power `by`.
    ScaleQ { target: *mut u8, by: u8 },
    /// Store `a` P + `b` Q (exponents) as the first block, and P without it as the second.
    Two { first: *mut u8, second: *mut u8, a: u8, b: u8 },
}

/// A pass: where the two sums start (at zero without), what is added, what becomes of them.
pub(crate) struct Pass<'a, S> {
    pub(crate) p: Option<*const u8>,
    pub(crate) q: Option<*const u8>,
    pub(crate) sources: &'a [S],
    pub(crate) finish: Finish,
}

/// Makes a pass over `len` bytes.
///
/// # Safety
/// * Every address is valid for `len` bytes, of reads or (in `finish`) of writes, and nobody else
///   writes there meanwhile.
/// * What is written either starts exactly where something read starts, or does not overlap it; the
///   blocks written do not overlap each other.
pub(crate) unsafe fn run<S: Source>(pass: &Pass<'_, S>, len: usize) {
    // SAFETY: the path is this machine's; the rest is promised by the caller.
    unsafe { run_on(path(), pass, len) };
}

/// As [`run`], by a path of the caller's choice, which this machine has.
///
/// # Safety
/// As [`run`].
unsafe fn run_on<S: Source>(path: Path, pass: &Pass<'_, S>, len: usize) {
    let only_p = matches!(pass.finish, Finish::Store { q: None, .. });
    let only_q = matches!(pass.finish, Finish::Store { p: None, .. } | Finish::ScaleQ { .. });
    // SAFETY: promised by the caller.
    unsafe {
        match path {
            #[cfg(target_arch = "x86_64")]
            Path::Avx2 if only_p => avx2::run::<S, true, false>(pass, len),
            #[cfg(target_arch = "x86_64")]
            Path::Avx2 if only_q => avx2::run::<S, false, true>(pass, len),
            #[cfg(target_arch = "x86_64")]
            Path::Avx2 => avx2::run::<S, true, true>(pass, len),
            _ if only_p => narrow::<S, true, false>(pass, len),
            _ if only_q => narrow::<S, false, true>(pass, len),
            _ => narrow::<S, true, true>(pass, len),
        }
    }
}

/// # Safety
/// As [`run`].
unsafe fn narrow<S: Source, const P: bool, const Q: bool>(pass: &Pass<'_, S>, len: usize) {
    // SAFETY: words and bytes are everywhere; the rest is promised by the caller.
    unsafe {
        let at = steps::<Words, S, P, Q>(pass, 0, len);
        steps::<u8, S, P, Q>(pass, at, len);
    }
}

/// As many steps as fit into bytes `at..len`; gives the first byte that is left.
///
/// # Safety
/// As [`run`], on a machine with the instructions of `V`; `at <= len`.
#[inline(always)]
unsafe fn steps<V: Lanes, S: Source, const P: bool, const Q: bool>(
    pass: &Pass<'_, S>,
    mut at: usize,
    len: usize,
) -> usize {
    while len - at >= V::BYTES {
        // SAFETY: the step lies within `len`; the rest is promised by the caller.
        unsafe { step::<V, S, P, Q>(pass, at) };
        at += V::BYTES;
    }
    at
}

/// One position: `P` and `Q` say which sums are needed.
///
/// # Safety
/// As [`steps`], and `at + V::BYTES` is within the blocks.
#[inline(always)]
unsafe fn step<V: Lanes, S: Source, const P: bool, const Q: bool>(pass: &Pass<'_, S>, at: usize) {
    // SAFETY: within the blocks by the caller's promise; all loads precede all stores.
    unsafe {
        let start = |from: Option<*const u8>| match from {
            Some(from) => V::load(from.wrapping_add(at)),
            None => V::ZERO,
        };
        let (mut p, mut q) = (start(pass.p), start(pass.q));
        for source in pass.sources {
            let block = source.load::<V>(at);
            if P {
                p = p.add(block);
            }
            if Q {
                q = q.add(block.multiply(field::products(source.exponent())));
            }
        }
        match pass.finish {
            Finish::Store { p: to_p, q: to_q } => {
                if P && let Some(to) = to_p {
                    p.store(to.wrapping_add(at));
                }
                if Q && let Some(to) = to_q {
                    q.store(to.wrapping_add(at));
                }
            }
            Finish::ScaleQ { target, by } => {
                q.multiply(field::products(by)).store(target.wrapping_add(at));
            }
            Finish::Two { first, second, a, b } => {
                let (a, b) = (field::products(a), field::products(b));
                let found = p.multiply(a).add(q.multiply(b));
                found.store(first.wrapping_add(at));
                p.add(found).store(second.wrapping_add(at));
            }
        }
    }
}

impl Lanes for u8 {
    const BYTES: usize = 1;
    const ZERO: Self = 0;

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
    // SAFETY: the caller promises what the trait asks for.
    unsafe fn add(self, other: Self) -> Self {
        self ^ other
    }

    #[inline(always)]
    // SAFETY: the caller promises what the trait asks for.
    unsafe fn multiply(self, products: &Products) -> Self {
        field::product(products, self)
    }
}

/// 64 bytes in words, which the compiler may turn into the vectors every machine has.
#[derive(Clone, Copy)]
struct Words([u64; 8]);

impl Lanes for Words {
    const BYTES: usize = 64;
    const ZERO: Self = Self([0; 8]);

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
    // SAFETY: the caller promises what the trait asks for.
    unsafe fn add(mut self, other: Self) -> Self {
        for (word, other) in self.0.iter_mut().zip(other.0) {
            *word ^= other;
        }
        self
    }

    /// By doubling eight bytes at a time, once for each bit of the element.
    #[inline(always)]
    // SAFETY: the caller promises what the trait asks for.
    unsafe fn multiply(mut self, products: &Products) -> Self {
        const TOP: u64 = 0x8080_8080_8080_8080;
        const POLYNOMIAL: u64 = 0x1d1d_1d1d_1d1d_1d1d;
        let mut element = products[1];
        let mut sum = Self::ZERO;
        loop {
            let wanted = 0u64.wrapping_sub(u64::from(element & 1));
            for (sum, word) in sum.0.iter_mut().zip(self.0) {
                *sum ^= word & wanted;
            }
            element >>= 1;
            if element == 0 {
                return sum;
            }
            for word in &mut self.0 {
                let top = *word & TOP;
                // 0xff in each byte that overflows.
                let overflow = (top << 1).wrapping_sub(top >> 7);
                *word = ((*word & !TOP) << 1) ^ (overflow & POLYNOMIAL);
            }
        }
    }
}

#[cfg(target_arch = "x86_64")]
mod avx2 {
    use std::arch::x86_64::{
        __m128i, __m256i, _mm_loadu_si128, _mm256_and_si256, _mm256_broadcastsi128_si256,
        _mm256_loadu_si256, _mm256_set1_epi8, _mm256_shuffle_epi8, _mm256_srli_epi64,
        _mm256_storeu_si256, _mm256_xor_si256,
    };

    use super::{Lanes, Pass, Source, steps};
    use crate::field::Products;

    /// # Safety
    /// As [`super::run`], on a machine with AVX2.
    #[target_feature(enable = "avx2")]
    pub(super) unsafe fn run<S: Source, const P: bool, const Q: bool>(
        pass: &Pass<'_, S>,
        len: usize,
    ) {
        // SAFETY: promised by the caller.
        unsafe {
            let at = steps::<Vectors<4>, S, P, Q>(pass, 0, len);
            let at = steps::<Vectors<1>, S, P, Q>(pass, at, len);
            steps::<u8, S, P, Q>(pass, at, len);
        }
    }

    /// `N` vectors of 32 bytes.
    #[derive(Clone, Copy)]
    struct Vectors<const N: usize>([__m256i; N]);

    impl<const N: usize> Lanes for Vectors<N> {
        const BYTES: usize = 32 * N;
        // SAFETY: a vector is plain bits.
        const ZERO: Self = unsafe { std::mem::zeroed() };

        #[inline(always)]
        // SAFETY: the caller promises what the trait asks for.
        unsafe fn load(from: *const u8) -> Self {
            let mut vectors = Self::ZERO;
            for (n, vector) in vectors.0.iter_mut().enumerate() {
                // SAFETY: promised by the caller; the unaligned kind.
                *vector = unsafe { _mm256_loadu_si256(from.cast::<__m256i>().wrapping_add(n)) };
            }
            vectors
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
        unsafe fn add(mut self, other: Self) -> Self {
            for (vector, other) in self.0.iter_mut().zip(other.0) {
                // SAFETY: the machine has AVX2, by the caller's promise.
                *vector = unsafe { _mm256_xor_si256(*vector, other) };
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
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The words path is not the one `run` takes on a machine with AVX2, so it is tested here: against
    /// this machine's own path, which `tests/pq.rs` compares with the oracle.
    #[test]
    fn words_equal_this_machines_path() {
        let blocks: Vec<Vec<u8>> = (0..11usize)
            .map(|n| (0..700).map(|at| (n * 61 + at * at * 13 + at / 7) as u8).collect())
            .collect();
        let address = |n: usize| blocks[n][n..].as_ptr();
        for len in (0..=300).chain([640]) {
            for exponent in (0..=254u8).step_by(if len == 300 { 1 } else { 67 }) {
                let sources: Vec<Change> = (0..3)
                    .map(|n: u8| Change {
                        old: address(usize::from(n)),
                        new: address(4 + usize::from(n)),
                        exponent: exponent.wrapping_add(n * 31),
                    })
                    .collect();
                let mut found = Vec::new();
                for path in [Path::Words, path()] {
                    let mut targets = vec![vec![0x5a; len + 1]; 5];
                    let to: Vec<*mut u8> = targets.iter_mut().map(|t| t.as_mut_ptr()).collect();
                    let finishes = [
                        Finish::Store { p: Some(to[0]), q: Some(to[1]) },
                        Finish::ScaleQ { target: to[2], by: exponent },
                        Finish::Two { first: to[3], second: to[4], a: exponent, b: 77 },
                    ];
                    for finish in finishes {
                        let (p, q) = (Some(address(9)), Some(address(10)));
                        let pass = Pass { p, q, sources: &sources, finish };
                        // SAFETY: every block has `len` bytes, targets are buffers of their own.
                        unsafe { run_on(path, &pass, len) };
                    }
                    assert!(targets.iter().all(|target| target[len] == 0x5a));
                    found.push(targets);
                }
                assert!(found[0] == found[1], "{len} bytes, exponent {exponent}");
            }
        }
    }
}
