//! The blocks of a pass, in the order in which they are added.

use std::mem::MaybeUninit;

use crate::lanes::Lanes;

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

/// Where a pass reads what it adds.
pub(crate) trait Place: Copy {
    /// Blocks that are read for a term.
    const BLOCKS: usize;

    /// # Safety
    /// As [`Lanes::load`], for `at` bytes behind the start of what is read.
    unsafe fn load<V: Lanes>(self, at: usize) -> V;

    /// Where one of the blocks starts, to see how blocks lie to each other.
    fn start(self) -> *const u8;
}

impl Place for *const u8 {
    const BLOCKS: usize = 1;

    #[inline(always)]
    // SAFETY: the caller promises what the trait asks for.
    unsafe fn load<V: Lanes>(self, at: usize) -> V {
        // SAFETY: promised by the caller.
        unsafe { V::load(self.wrapping_add(at)) }
    }

    #[inline(always)]
    fn start(self) -> *const u8 {
        self
    }
}

impl Place for [*const u8; 2] {
    const BLOCKS: usize = 2;

    #[inline(always)]
    // SAFETY: the caller promises what the trait asks for.
    unsafe fn load<V: Lanes>(self, at: usize) -> V {
        // SAFETY: promised by the caller.
        unsafe { V::load(self[0].wrapping_add(at)).add(V::load(self[1].wrapping_add(at))) }
    }

    #[inline(always)]
    fn start(self) -> *const u8 {
        self[0]
    }
}

/// What a pass adds up.
pub(crate) trait Source: Copy {
    type Place: Place;

    fn term(self) -> (Self::Place, u8);
}

impl Source for Block {
    type Place = *const u8;

    #[inline(always)]
    fn term(self) -> (*const u8, u8) {
        (self.start, self.exponent)
    }
}

impl Source for Change {
    type Place = [*const u8; 2];

    #[inline(always)]
    fn term(self) -> ([*const u8; 2], u8) {
        ([self.old, self.new], self.exponent)
    }
}

/// A block, and how often the sum is doubled before it is added.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Term<T> {
    pub(crate) place: T,
    /// First the exponent, then the distance to the exponent before; 0 for the first.
    pub(crate) gap: u8,
}

/// How many terms need no memory from the allocator.
const INLINE: usize = 32;

/// Where terms are kept during a pass. It stays where it is made: it is half a kilobyte, and small blocks
/// would feel it being moved.
pub(crate) struct Room<T> {
    inline: [MaybeUninit<Term<T>>; INLINE],
    /// All of them, when there are more.
    more: Vec<Term<T>>,
}

/// Terms by falling exponent.
#[derive(Clone, Copy)]
pub(crate) struct Terms<'a, T> {
    slice: &'a [Term<T>],
    lowest: u8,
    consecutive: bool,
}

impl<T: Place> Room<T> {
    #[inline(always)]
    pub(crate) fn new() -> Self {
        Self { inline: [const { MaybeUninit::uninit() }; INLINE], more: Vec::new() }
    }

    /// The terms of blocks in any order; `weighed` says whether their exponents matter.
    #[inline(always)]
    pub(crate) fn terms<S: Source<Place = T>>(
        &mut self,
        sources: impl DoubleEndedIterator<Item = S> + ExactSizeIterator,
        weighed: bool,
    ) -> Terms<'_, T> {
        let spilt = sources.len() > INLINE;
        // Mostly exponents rise.
        let each = sources.rev().map(|source| {
            let (place, gap) = source.term();
            Term { place, gap }
        });
        let slice = if spilt {
            self.more.extend(each);
            &mut self.more[..]
        } else {
            let mut count = 0;
            for (to, term) in self.inline.iter_mut().zip(each) {
                to.write(term);
                count += 1;
            }
            let start = self.inline.as_mut_ptr().cast::<Term<T>>();
            // SAFETY: so many were written, from the first on.
            unsafe { std::slice::from_raw_parts_mut(start, count) }
        };
        let (lowest, consecutive) = if weighed { order(slice) } else { (0, true) };
        Terms { slice, lowest, consecutive }
    }
}

impl<'a, T> Terms<'a, T> {
    #[inline(always)]
    pub(crate) fn as_slice(&self) -> &'a [Term<T>] {
        self.slice
    }

    /// The lowest exponent; 0 without any.
    #[inline(always)]
    pub(crate) fn lowest(&self) -> u8 {
        self.lowest
    }

    /// Whether exponents follow each other without holes.
    #[inline(always)]
    pub(crate) fn consecutive(&self) -> bool {
        self.consecutive
    }
}

/// Orders terms by falling exponent and makes gaps of exponents; gives the lowest exponent, and whether
/// all gaps are 1.
#[inline]
fn order<T>(terms: &mut [Term<T>]) -> (u8, bool) {
    if !terms.is_sorted_by(|one, next| one.gap >= next.gap) {
        terms.sort_unstable_by_key(|term| std::cmp::Reverse(term.gap));
    }
    let Some((first, rest)) = terms.split_first_mut() else { return (0, true) };
    let mut before = std::mem::take(&mut first.gap);
    let mut consecutive = true;
    for term in rest {
        let gap = before - term.gap;
        before = std::mem::replace(&mut term.gap, gap);
        consecutive &= gap == 1;
    }
    (before, consecutive)
}

/// Whether more blocks than `most` start at the same place of a page as the first one: these, at every
/// position, compete for the same few places in the first-level cache.
pub(crate) fn crowded<T: Place>(terms: &[Term<T>], most: usize) -> bool {
    let Some(first) = terms.first() else { return false };
    let line = |term: &Term<T>| term.place.start().addr() % 4096 / 64;
    let wanted = line(first);
    terms.len() > most && terms.iter().filter(|term| line(term) == wanted).count() > most
}

/// A block of a sum without coefficients.
impl Source for *const u8 {
    type Place = Self;

    #[inline(always)]
    fn term(self) -> (Self, u8) {
        (self, 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_crowd_where_more_than_some_start_in_one_line_of_a_page() {
        let crowd = |starts: &[usize], most| {
            let terms: Vec<_> = starts
                .iter()
                .map(|start| Term { place: std::ptr::without_provenance::<u8>(*start), gap: 0 })
                .collect();
            crowded(&terms, most)
        };
        assert!(!crowd(&[], 0));
        assert!(crowd(&[0x1000, 0x2000, 0x5000], 2));
        assert!(!crowd(&[0x1000, 0x2000, 0x5000], 3), "no more than that");
        assert!(!crowd(&[0x1000, 0x2040, 0x5fc0], 2), "each in its own line");
        assert!(crowd(&[0x1040, 0x2000, 0x507f, 0x3040], 2), "as the first one, three of four");
    }
}
