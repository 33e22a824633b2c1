//! Looking without writing: are blocks equal, and which one does not fit P and Q?
//!
//! With one block wrong, P is off by its error and Q by the error times its coefficient: the quotient names
//! the block (Anvin, "The mathematics of RAID-6", section 4). P or Q alone are off when they themselves are
//! wrong. Two wrong blocks may look like a third one in a byte, but hardly in byte after byte.

use std::ops::Range;

use crate::dispatch::InstructionSet;
use crate::field;
use crate::kernels::Kernels;
use crate::lanes::{Lanes, Words};
use crate::pass::{add, raise};
use crate::terms::{Block, Room, Terms};

/// A block of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Wrong {
    /// The data at this position among those of the call.
    Data(usize),
    /// P.
    P,
    /// Q.
    Q,
}

/// What P and Q say about a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Located {
    /// They are those of the data.
    Consistent,
    /// They are not, and every byte says that the same block is wrong.
    One {
        /// That block.
        block: Wrong,
        /// From the first wrong byte to behind the last.
        bytes: Range<usize>,
    },
    /// They are not, and the bytes do not agree on a block, or name one that is not there.
    Several {
        /// From the first wrong byte to behind the last.
        bytes: Range<usize>,
    },
}

impl Kernels {
    /// As [`compare`](Self::compare), for blocks that are not slices.
    ///
    /// # Safety
    /// All blocks are valid for reads of `len` bytes, and nobody writes them meanwhile.
    pub unsafe fn compare_raw(&self, blocks: &[*const u8], len: usize) -> Option<Range<usize>> {
        // SAFETY: promised by the caller; the path is this machine's.
        unsafe {
            match self.path() {
                #[cfg(target_arch = "x86_64")]
                InstructionSet::Avx512Gfni => vectors::compare_avx512_gfni(blocks, len),
                #[cfg(target_arch = "x86_64")]
                InstructionSet::Avx2 => vectors::compare_avx2(blocks, len),
                _ => compare::<Words>(blocks, len),
            }
        }
    }

    /// As [`locate`](Self::locate), for blocks that are not slices.
    ///
    /// # Safety
    /// All blocks are valid for reads of `len` bytes, and nobody writes them meanwhile.
    pub unsafe fn locate_raw(
        &self,
        data: &[Block],
        p: *const u8,
        q: *const u8,
        len: usize,
    ) -> Located {
        let mut room = Room::new();
        let terms = room.terms(data.iter().copied(), true);
        let mut search = Search { data, p, q, terms, found: Located::Consistent };
        // SAFETY: promised by the caller; the path is this machine's.
        unsafe {
            match self.path() {
                #[cfg(target_arch = "x86_64")]
                InstructionSet::Avx512Gfni => vectors::locate_avx512_gfni(&mut search, len),
                #[cfg(target_arch = "x86_64")]
                InstructionSet::Avx2 => vectors::locate_avx2(&mut search, len),
                _ => {
                    let at = search.steps::<Words>(0, len);
                    search.steps::<u8>(at, len);
                }
            }
        }
        search.found
    }
}

/// # Safety
/// As [`Kernels::compare_raw`], on a machine with the instructions of `V`.
#[inline(always)]
unsafe fn compare<V: Lanes>(blocks: &[*const u8], len: usize) -> Option<Range<usize>> {
    let (first, others) = blocks.split_first()?;
    // SAFETY: every position is within the blocks; promised by the caller.
    unsafe {
        let whole = len / V::BYTES * V::BYTES;
        let starts = |range: Range<usize>| range.step_by(V::BYTES);
        let step = |at: &usize| differ::<V>(*first, others, *at);
        let byte = |at: &usize| differ::<u8>(*first, others, *at);
        let from = match starts(0..whole).find(step) {
            Some(at) => (at..at + V::BYTES).find(byte)?,
            None => return (whole..len).find(byte).map(|from| from..end(from, len, byte)),
        };
        // From the end back, to where the last one is.
        let last = match (whole..len).rev().find(byte) {
            Some(last) => last,
            None => {
                let at = starts(0..whole).rev().find(step)?;
                (at..at + V::BYTES).rev().find(byte)?
            }
        };
        Some(from..last + 1)
    }
}

/// Behind the last position from `from` to `len` that is so, `from` being so.
fn end(from: usize, len: usize, is_so: impl Fn(&usize) -> bool) -> usize {
    (from..len).rev().find(|at| is_so(at)).map_or(len, |last| last + 1)
}

/// # Safety
/// As [`compare`], for `V::BYTES` bytes from `at` on.
#[inline(always)]
unsafe fn differ<V: Lanes>(first: *const u8, others: &[*const u8], at: usize) -> bool {
    // SAFETY: promised by the caller.
    unsafe {
        let first = V::load(first.wrapping_add(at));
        others.iter().any(|other| !V::load(other.wrapping_add(at)).add(first).is_zero())
    }
}

/// Going through a row to find its wrong block.
struct Search<'a> {
    data: &'a [Block],
    p: *const u8,
    q: *const u8,
    terms: Terms<'a, *const u8>,
    found: Located,
}

impl Search<'_> {
    /// As many steps as fit into bytes `at..len`; gives the first byte that is left.
    ///
    /// # Safety
    /// As [`Kernels::locate_raw`], on a machine with the instructions of `V`; `at <= len`.
    #[inline(always)]
    unsafe fn steps<V: Lanes>(&mut self, mut at: usize, len: usize) -> usize {
        /// Bytes of the widest step.
        const MOST: usize = 128;
        const { assert!(V::BYTES <= MOST) };
        while len - at >= V::BYTES {
            // SAFETY: the step lies within `len`; promised by the caller; what is stored has room.
            unsafe {
                let sums = (V::load(self.p.wrapping_add(at)), V::offset());
                let terms = self.terms.as_slice();
                let (p, q) = add::<V, *const u8, true, true, false>(terms, at, sums);
                let q = raise(q, self.terms.lowest()).add(V::offset());
                let q = q.add(V::load(self.q.wrapping_add(at)));
                if !p.is_zero() || !q.is_zero() {
                    let (mut errors_p, mut errors_q) = ([0; MOST], [0; MOST]);
                    p.store(errors_p.as_mut_ptr());
                    q.store(errors_q.as_mut_ptr());
                    self.note(&errors_p[..V::BYTES], &errors_q[..V::BYTES], at);
                }
            }
            at += V::BYTES;
        }
        at
    }

    /// Takes note of the errors of P and Q from `at` on.
    #[cold]
    fn note(&mut self, p: &[u8], q: &[u8], at: usize) {
        for (n, (p, q)) in p.iter().zip(q).enumerate() {
            let named = match (p, q) {
                (0, 0) => continue,
                (_, 0) => Some(Wrong::P),
                (0, _) => Some(Wrong::Q),
                (p, q) => {
                    let exponent = field::quotient(*q, *p);
                    self.data.iter().position(|block| block.exponent == exponent).map(Wrong::Data)
                }
            };
            let at = at + n;
            self.found = match (std::mem::replace(&mut self.found, Located::Consistent), named) {
                (Located::Consistent, Some(block)) => Located::One { block, bytes: at..at + 1 },
                (Located::Consistent, None) => Located::Several { bytes: at..at + 1 },
                (Located::One { block, bytes }, named) if named == Some(block) => {
                    Located::One { block, bytes: bytes.start..at + 1 }
                }
                (Located::One { bytes, .. } | Located::Several { bytes }, _) => {
                    Located::Several { bytes: bytes.start..at + 1 }
                }
            };
        }
    }
}

#[cfg(target_arch = "x86_64")]
mod vectors {
    use std::arch::x86_64::{__m256i, __m512i};

    use super::{Range, Search, compare};

    /// # Safety
    /// As [`super::Kernels::compare_raw`], on a machine with AVX-512, GFNI and AVX2.
    #[target_feature(enable = "avx512f,gfni,avx2")]
    pub(super) unsafe fn compare_avx512_gfni(
        blocks: &[*const u8],
        len: usize,
    ) -> Option<Range<usize>> {
        // SAFETY: promised by the caller.
        unsafe { compare::<[__m512i; 2]>(blocks, len) }
    }

    /// # Safety
    /// As [`super::Kernels::compare_raw`], on a machine with AVX2.
    #[target_feature(enable = "avx2")]
    pub(super) unsafe fn compare_avx2(blocks: &[*const u8], len: usize) -> Option<Range<usize>> {
        // SAFETY: promised by the caller.
        unsafe { compare::<[__m256i; 4]>(blocks, len) }
    }

    /// # Safety
    /// As [`super::Kernels::locate_raw`], on a machine with AVX-512, GFNI and AVX2.
    #[target_feature(enable = "avx512f,gfni,avx2")]
    pub(super) unsafe fn locate_avx512_gfni(search: &mut Search<'_>, len: usize) {
        // SAFETY: promised by the caller.
        unsafe {
            let at = search.steps::<[__m512i; 2]>(0, len);
            let at = search.steps::<__m256i>(at, len);
            search.steps::<u8>(at, len);
        }
    }

    /// # Safety
    /// As [`super::Kernels::locate_raw`], on a machine with AVX2.
    #[target_feature(enable = "avx2")]
    pub(super) unsafe fn locate_avx2(search: &mut Search<'_>, len: usize) {
        // SAFETY: promised by the caller.
        unsafe {
            let at = search.steps::<[__m256i; 4]>(0, len);
            let at = search.steps::<__m256i>(at, len);
            search.steps::<u8>(at, len);
        }
    }
}
