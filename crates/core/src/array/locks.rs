//! Range locks: overlapping writes on redundant levels go one after another.
//!
//! Fault model: none of its own; a crash forgets all locks together with all I/O in flight.
//! Why it is safe: a range is granted only when it overlaps no held range and no earlier waiter,
//! so two writes to one sector never run at once and nobody starves. An owner holds one range at
//! most, so there is no deadlock.
//! Tests: `array::locks::tests::overlaps_wait_in_order` and, end to end,
//! `tests/model.rs::overlapping_writes_leave_equal_copies`.

use std::collections::VecDeque;

/// Ranges hash to buckets by these bits; a bucket nobody holds needs no further look.
const SHIFT: u32 = 7;
const BUCKETS: usize = 2048;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Range {
    start: u64,
    end: u64,
}

impl Range {
    fn overlaps(self, other: Self) -> bool {
        self.start < other.end && other.start < self.end
    }

    /// The bucket of a range that lies in one.
    #[inline]
    fn only_bucket(self) -> Option<usize> {
        let (first, last) = (self.start >> SHIFT, (self.end - 1) >> SHIFT);
        (first == last).then_some(first as usize % BUCKETS)
    }

    #[inline]
    fn buckets(self) -> impl Iterator<Item = usize> {
        let first = (self.start >> SHIFT) as usize;
        let count = (((self.end - 1) >> SHIFT) as usize - first + 1).min(BUCKETS);
        (first..first + count).map(|bucket| bucket % BUCKETS)
    }
}

/// An owner that holds nothing.
const NOWHERE: u64 = u64::MAX;

/// The ranges held and waited for, by owners numbered from 0.
#[derive(Clone, Debug)]
pub(super) struct RangeLocks {
    /// What is held and by whom, by place: ranges lie apart from each other, and most come at one end and go
    /// at the other.
    held: VecDeque<(Range, u32)>,
    /// Where an owner's range starts, or [`NOWHERE`].
    starts: Vec<u64>,
    buckets: Box<[u16; BUCKETS]>,
    waiting: VecDeque<(u32, Range)>,
    granted: VecDeque<u32>,
}

impl RangeLocks {
    pub(super) fn new(owners: u32) -> Self {
        Self {
            held: VecDeque::with_capacity(owners as usize),
            starts: vec![NOWHERE; owners as usize],
            buckets: Box::new([0; BUCKETS]),
            waiting: VecDeque::with_capacity(owners as usize),
            granted: VecDeque::with_capacity(owners as usize),
        }
    }

    /// Locks `start..end` for `owner`; false when it must wait for [`Self::next_granted`].
    #[inline]
    pub(super) fn acquire(&mut self, owner: u32, start: u64, end: u64) -> bool {
        let range = Range { start, end };
        debug_assert!(start < end && self.starts[owner as usize] == NOWHERE);
        // The usual case: a small range that nobody else is near.
        if let Some(bucket) = range.only_bucket()
            && self.buckets[bucket] == 0
            && self.waiting.is_empty()
        {
            self.note(owner, range);
            self.buckets[bucket] = 1;
            return true;
        }
        if !self.is_clear(range) {
            self.waiting.push_back((owner, range));
            return false;
        }
        self.hold(owner, range);
        true
    }

    #[inline]
    fn is_clear(&self, range: Range) -> bool {
        if self.waiting.is_empty() && range.buckets().all(|bucket| self.buckets[bucket] == 0) {
            return true;
        }
        !self.is_held(range) && !self.waiting.iter().any(|(_, other)| other.overlaps(range))
    }

    /// Whether nobody holds, or waits for, anything of a range.
    pub(super) fn is_free(&self, start: u64, end: u64) -> bool {
        self.is_clear(Range { start, end })
    }

    /// Where in `held` those come that start at a place or behind it.
    #[inline]
    fn behind(&self, start: u64) -> usize {
        if self.held.back().is_none_or(|(last, _)| last.start < start) {
            return self.held.len();
        }
        self.held.partition_point(|(held, _)| held.start < start)
    }

    /// Whether anybody holds anything of a range.
    #[inline]
    fn is_held(&self, range: Range) -> bool {
        let behind = self.behind(range.end);
        behind > 0 && self.held[behind - 1].0.overlaps(range)
    }

    #[inline]
    fn note(&mut self, owner: u32, range: Range) {
        self.starts[owner as usize] = range.start;
        self.held.insert(self.behind(range.start), (range, owner));
    }

    /// What an owner held, and holds no more.
    #[inline]
    fn take(&mut self, owner: u32) -> Option<Range> {
        let start = std::mem::replace(&mut self.starts[owner as usize], NOWHERE);
        if start == NOWHERE {
            return None;
        }
        let index = if self.held.front()?.0.start == start { 0 } else { self.behind(start) };
        self.held.remove(index).map(|(range, _)| range)
    }

    #[inline]
    fn hold(&mut self, owner: u32, range: Range) {
        self.note(owner, range);
        for bucket in range.buckets() {
            self.buckets[bucket] += 1;
        }
    }

    /// Unlocks; true when waiters may go now, which come out of [`Self::next_granted`].
    #[inline]
    pub(super) fn release(&mut self, owner: u32) -> bool {
        let Some(range) = self.take(owner) else { return false };
        match range.only_bucket() {
            Some(bucket) => self.buckets[bucket] -= 1,
            None => range.buckets().for_each(|bucket| self.buckets[bucket] -= 1),
        }
        if !self.waiting.is_empty() {
            self.grant_waiters();
        }
        !self.granted.is_empty()
    }

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
    fn overlaps_wait_in_order() {
        let mut locks = RangeLocks::new(6);
        assert!(locks.acquire(0, 0, 100));
        assert!(locks.acquire(1, 100, 200), "neighbours do not overlap");
        assert!(!locks.acquire(2, 50, 150), "overlaps both");
        assert!(!locks.acquire(3, 140, 160), "overlaps 1 and waits behind 2");
        assert!(locks.acquire(4, 300, 400));
        assert!(locks.acquire(5, 50 + (BUCKETS as u64) * 128, 60 + (BUCKETS as u64) * 128));
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
        assert!(locks.buckets.iter().all(|count| *count == 0));
        assert!(locks.acquire(0, 0, 1 << 40), "a range wider than all buckets");
        locks.release(0);
        assert!(locks.buckets.iter().all(|count| *count == 0));
    }

    #[test]
    fn ranges_are_held_apart_in_any_order() {
        let mut locks = RangeLocks::new(64);
        let mut held: Vec<(u32, Range)> = Vec::new();
        let mut state = 3u64;
        for step in 0..20_000u64 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let draw = state >> 33;
            if let Some(index) = held.iter().position(|(owner, _)| u64::from(*owner) == draw % 64) {
                let (owner, _) = held.swap_remove(index);
                assert!(!locks.release(owner), "nobody waits");
                continue;
            }
            let start = draw / 64 % 5_000;
            let range = Range { start, end: start + 1 + step % 300 };
            let is_free = held.iter().all(|(_, other)| !other.overlaps(range));
            assert_eq!(locks.is_free(range.start, range.end), is_free, "step {step}");
            if is_free {
                let owner = (draw % 64) as u32;
                assert!(locks.acquire(owner, range.start, range.end));
                held.push((owner, range));
            }
        }
        held.into_iter().for_each(|(owner, _)| _ = locks.release(owner));
        assert!(locks.held.is_empty() && locks.buckets.iter().all(|count| *count == 0));
    }
}
