//! Range locks: overlapping writes on redundant levels go one after another.
//!
//! Fault model: none of its own; a crash forgets all locks together with all I/O in flight.
//! Why it is safe: a range is granted only when it overlaps no held range and no earlier waiter,
//! so two writes to one sector never run at once and nobody starves. An owner holds one range at
//! most, so there is no deadlock.
//! Tests: `array::locks::tests::overlaps_wait_in_order` and, end to end,
//! `tests/model.rs::overlapping_writes_leave_equal_copies`.

use std::collections::VecDeque;
use std::hash::{Hash, Hasher};

/// Places are cut into cells of 2^[`LEAST`] sectors, and of four times that, and so on. A range is linked
/// at its first cell of the first size that is no smaller than the range; then it ends in that cell or
/// in the next. As ranges that are held lie apart, few start in a cell, however many there are.
const LEAST: u32 = 3;
const SIZES: usize = u64::BITS as usize;
/// Cells of all sizes share this many chains.
const CHAINS_LOG: u32 = 11;
const CHAINS: usize = 1 << CHAINS_LOG;
/// The end of a chain.
const NIL: u32 = u32::MAX;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Range {
    start: u64,
    end: u64,
}

impl Range {
    const NOTHING: Self = Self { start: 0, end: 0 };

    #[inline]
    const fn overlaps(self, other: Self) -> bool {
        self.start < other.end && other.start < self.end
    }

    /// The logarithm of the size of the cells that it is linked at: an odd number, as [`LEAST`] is.
    #[inline]
    const fn size(self) -> u32 {
        (((self.end - self.start - 1) | ((1 << LEAST) - 1)).ilog2() + 1) | 1
    }

    /// The cells of a size that ranges which overlap it start in.
    #[inline]
    const fn cells(self, size: u32) -> (u64, u64) {
        ((self.start >> size).saturating_sub(1), (self.end - 1) >> size)
    }
}

/// The chain of a cell; spread, since streams of requests like to be powers of two apart.
#[inline]
const fn chain(cell: u64) -> usize {
    (cell.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (u64::BITS - CHAINS_LOG)) as usize
}

/// What an owner holds, and the owner behind it in its chain.
#[derive(Clone, Copy, Debug)]
struct Held {
    range: Range,
    next: u32,
}

/// The ranges held and waited for, by owners numbered from 0.
#[derive(Clone, Debug)]
pub(super) struct RangeLocks {
    /// By owner.
    held: Vec<Held>,
    /// The first owner of each chain.
    chains: Box<[u32; CHAINS]>,
    /// How many ranges are linked at cells of each size, and a bit for each size that has any.
    counts: [u32; SIZES],
    sizes: u64,
    waiting: VecDeque<(u32, Range)>,
    granted: VecDeque<u32>,
}

/// Who holds what, and who waits in which order; not how it is found.
impl Hash for RangeLocks {
    fn hash<H: Hasher>(&self, key: &mut H) {
        self.held.iter().for_each(|held| held.range.hash(key));
        (&self.waiting, &self.granted).hash(key);
    }
}

impl RangeLocks {
    pub(super) fn new(owners: u32) -> Self {
        Self {
            held: vec![Held { range: Range::NOTHING, next: NIL }; owners as usize],
            chains: Box::new([NIL; CHAINS]),
            counts: [0; SIZES],
            sizes: 0,
            waiting: VecDeque::with_capacity(owners as usize),
            granted: VecDeque::with_capacity(owners as usize),
        }
    }

    /// Locks `start..end` for `owner`; false when it must wait for [`Self::next_granted`].
    #[inline]
    pub(super) fn acquire(&mut self, owner: u32, start: u64, end: u64) -> bool {
        let range = Range { start, end };
        debug_assert!(start < end && self.held[owner as usize].range == Range::NOTHING);
        if !self.is_clear(range) {
            self.waiting.push_back((owner, range));
            return false;
        }
        self.hold(owner, range);
        true
    }

    /// Whether nobody holds, or waits for, anything of a range.
    pub(super) fn is_free(&self, start: u64, end: u64) -> bool {
        self.is_clear(Range { start, end })
    }

    #[inline]
    fn is_clear(&self, range: Range) -> bool {
        !self.is_held(range)
            && (self.waiting.is_empty()
                || !self.waiting.iter().any(|(_, other)| other.overlaps(range)))
    }

    /// Whether anybody holds anything of a range.
    #[inline]
    fn is_held(&self, range: Range) -> bool {
        let mut sizes = self.sizes;
        while sizes != 0 {
            let (first, last) = range.cells(sizes.trailing_zeros());
            // Looking at all is cheaper than at many cells.
            if 4 * (last - first) >= self.held.len() as u64 {
                return self.held.iter().any(|held| held.range.overlaps(range));
            }
            if (first..last + 1).any(|cell| self.is_linked(cell, range)) {
                return true;
            }
            sizes &= sizes - 1;
        }
        false
    }

    /// Whether anything that overlaps a range is in the chain of a cell.
    #[inline]
    fn is_linked(&self, cell: u64, range: Range) -> bool {
        let mut owner = self.chains[chain(cell)];
        while owner != NIL {
            let held = &self.held[owner as usize];
            if held.range.overlaps(range) {
                return true;
            }
            owner = held.next;
        }
        false
    }

    #[inline]
    fn hold(&mut self, owner: u32, range: Range) {
        let size = range.size();
        self.counts[size as usize] += 1;
        self.sizes |= 1 << size;
        let head = &mut self.chains[chain(range.start >> size)];
        self.held[owner as usize] = Held { range, next: std::mem::replace(head, owner) };
    }

    /// Unlocks; true when waiters may go now, which come out of [`Self::next_granted`].
    #[inline(always)]
    pub(super) fn release(&mut self, owner: u32) -> bool {
        let Held { range, next } = self.held[owner as usize];
        if range == Range::NOTHING {
            return false;
        }
        let size = range.size();
        let mut before = &mut self.chains[chain(range.start >> size)];
        while *before != owner {
            let other = *before as usize;
            before = &mut self.held[other].next;
        }
        *before = next;
        self.held[owner as usize].range = Range::NOTHING;
        self.counts[size as usize] -= 1;
        if self.counts[size as usize] == 0 {
            self.sizes &= !(1 << size);
        }
        if !self.waiting.is_empty() {
            self.grant_waiters();
        }
        !self.granted.is_empty()
    }

    #[cold]
    #[inline(never)]
    fn grant_waiters(&mut self) {
        let mut index = 0;
        while index < self.waiting.len() {
            let (owner, range) = self.waiting[index];
            let blocked = self.is_held(range)
                || self.waiting.iter().take(index).any(|(_, other)| other.overlaps(range));
            if blocked {
                index += 1;
            } else {
                self.waiting.remove(index);
                self.hold(owner, range);
                self.granted.push_back(owner);
            }
        }
    }

    /// An owner whose wait is over.
    #[inline]
    pub(super) fn next_granted(&mut self) -> Option<u32> {
        self.granted.pop_front()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_the_smallest_that_are_no_smaller_than_a_range() {
        let size = |len: u64| Range { start: 5, end: 5 + len }.size();
        let sizes = [1, 8, 9, 32, 33, 128, 129].map(size);
        assert_eq!(sizes, [3, 3, 5, 5, 7, 7, 9]);
    }

    #[test]
    fn overlaps_wait_in_order() {
        let mut locks = RangeLocks::new(6);
        assert!(locks.acquire(0, 0, 100));
        assert!(locks.acquire(1, 100, 200), "neighbours do not overlap");
        assert!(!locks.acquire(2, 50, 150), "overlaps both");
        assert!(!locks.acquire(3, 140, 160), "overlaps 1 and waits behind 2");
        assert!(locks.acquire(4, 300, 400));
        assert!(locks.acquire(5, 200, 201));
        locks.release(0);
        assert_eq!(locks.next_granted(), None, "1 still holds");
        locks.release(1);
        assert_eq!(locks.next_granted(), Some(2));
        assert_eq!(locks.next_granted(), None, "3 waits for 2");
        locks.release(2);
        assert_eq!(locks.next_granted(), Some(3));
        for owner in 3..6 {
            locks.release(owner);
        }
        assert!(is_empty(&locks));
        assert!(locks.acquire(0, 0, 1 << 40), "a range wider than all chains");
        assert!(locks.acquire(1, 1 << 40, (1 << 40) + 1));
        assert!(!locks.acquire(2, 1 << 39, (1 << 39) + 1), "amid the first");
        locks.release(0);
        assert_eq!(locks.next_granted(), Some(2));
        (1..3).for_each(|owner| _ = locks.release(owner));
        assert!(is_empty(&locks));
    }

    fn is_empty(locks: &RangeLocks) -> bool {
        locks.held.iter().all(|held| held.range == Range::NOTHING)
            && locks.chains.iter().all(|owner| *owner == NIL)
            && locks.counts.iter().all(|count| *count == 0)
            && locks.sizes == 0
    }

    /// The same without anything to find ranges by.
    #[derive(Default)]
    struct PlainList {
        held: Vec<(u32, Range)>,
        waiting: Vec<(u32, Range)>,
    }

    impl PlainList {
        fn is_free(&self, range: Range) -> bool {
            self.held.iter().chain(&self.waiting).all(|(_, other)| !other.overlaps(range))
        }

        fn acquire(&mut self, owner: u32, range: Range) -> bool {
            let is_free = self.is_free(range);
            if is_free { &mut self.held } else { &mut self.waiting }.push((owner, range));
            is_free
        }

        /// Gives those that go now.
        fn release(&mut self, owner: u32) -> Vec<u32> {
            self.held.retain(|(other, _)| *other != owner);
            let mut granted = Vec::new();
            for (owner, range) in std::mem::take(&mut self.waiting) {
                if self.acquire(owner, range) {
                    granted.push(owner);
                }
            }
            granted
        }
    }

    /// Ranges of all sizes and of one, many at one place and few, held and waited for.
    #[test]
    fn ranges_are_held_as_in_a_plain_list() {
        const OWNERS: u64 = 64;
        for (sizes, places) in [(8, 40_000), (1, 600), (12, 200_000), (24, 1 << 25)] {
            let mut locks = RangeLocks::new(OWNERS as u32);
            let mut plain = PlainList::default();
            let mut state = 3u64;
            let mut draw = |end: u64| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                (state >> 33) % end
            };
            let mut waited = 0;
            for step in 0..20_000 {
                let owner = draw(OWNERS) as u32;
                if plain.waiting.iter().any(|(other, _)| *other == owner) {
                    continue;
                }
                if plain.held.iter().any(|(other, _)| *other == owner) {
                    let granted = plain.release(owner);
                    assert_eq!(locks.release(owner), !granted.is_empty(), "step {step}");
                    let all: Vec<u32> = std::iter::from_fn(|| locks.next_granted()).collect();
                    assert_eq!(all, granted, "step {step}");
                    continue;
                }
                let start = draw(places);
                let most = 1 << draw(sizes);
                let range = Range { start, end: start + 1 + draw(most) };
                assert_eq!(locks.is_free(range.start, range.end), plain.is_free(range));
                let is_free = plain.acquire(owner, range);
                assert_eq!(locks.acquire(owner, range.start, range.end), is_free, "step {step}");
                waited += u32::from(!is_free);
            }
            assert!((100..15_000).contains(&waited), "{waited} of {sizes} sizes waited");
            while let Some((owner, _)) = plain.held.first().copied() {
                assert_eq!(locks.release(owner), !plain.release(owner).is_empty());
                while locks.next_granted().is_some() {}
            }
            assert!(is_empty(&locks));
        }
    }
}
