//! The write-back buffer: written data that are not on the medium yet, as sorted ranges.
//!
//! Ranges that touch are merged. A bounded number of them is kept in vectors with room for all
//! of them from the start.

/// Dirty ranges, and the one that is on its way to the medium.
#[derive(Clone, Debug)]
pub(crate) struct WriteBuffer {
    starts: Vec<u64>,
    ends: Vec<u64>,
    dirty: u64,
    in_flight: (u64, u64),
    capacity: u64,
    most_extents: usize,
    cursor: u64,
}

impl WriteBuffer {
    pub(crate) fn new(capacity: u64, most_extents: u32) -> Self {
        // Buffered writes wait at the limit. What can go beyond it are writes past the buffer that
        // cut ranges in two: room for one in each range.
        let most_extents = most_extents as usize;
        Self {
            starts: Vec::with_capacity(2 * most_extents + 4),
            ends: Vec::with_capacity(2 * most_extents + 4),
            dirty: 0,
            in_flight: (0, 0),
            capacity,
            most_extents,
            cursor: 0,
        }
    }

    /// Nothing waits to be written; something may be in flight.
    pub(crate) fn is_empty(&self) -> bool {
        self.starts.is_empty()
    }

    /// Nothing waits and nothing is in flight.
    pub(crate) fn is_clean(&self) -> bool {
        self.is_empty() && self.in_flight.0 == self.in_flight.1
    }

    /// Sectors that can still be taken.
    pub(crate) fn room(&self) -> u64 {
        self.capacity.saturating_sub(self.dirty + self.in_flight.1 - self.in_flight.0)
    }

    /// Sectors of the whole buffer.
    pub(crate) fn capacity(&self) -> u64 {
        self.capacity
    }

    /// Whether `start .. end` can be taken without having more ranges than allowed, when `others`
    /// more have been promised.
    pub(crate) fn can_insert(&self, start: u64, end: u64, others: usize) -> bool {
        self.starts.len() + others < self.most_extents || {
            let (first, past) = self.touching(start, end);
            first < past
        }
    }

    /// Whether data from `start` on go on where dirty data end.
    pub(crate) fn appends(&self, start: u64) -> bool {
        let index = self.ends.partition_point(|one| *one < start);
        self.ends.get(index) == Some(&start)
            || (self.in_flight.0 < start && self.in_flight.1 == start)
    }

    /// Indices of the ranges that overlap or touch `start .. end`.
    fn touching(&self, start: u64, end: u64) -> (usize, usize) {
        let first = self.ends.partition_point(|one| *one < start);
        let past = self.starts.partition_point(|one| *one <= end);
        (first, past)
    }

    /// Takes written data.
    pub(crate) fn insert(&mut self, start: u64, end: u64) {
        let (first, past) = self.touching(start, end);
        if first == past {
            self.starts.insert(first, start);
            self.ends.insert(first, end);
            self.dirty += end - start;
            return;
        }
        let before: u64 = (first..past).map(|index| self.ends[index] - self.starts[index]).sum();
        self.starts[first] = self.starts[first].min(start);
        self.ends[first] = self.ends[past - 1].max(end);
        self.starts.drain(first + 1..past);
        self.ends.drain(first + 1..past);
        self.dirty += self.ends[first] - self.starts[first] - before;
    }

    /// Forgets dirty data of `start .. end`: something newer goes to the medium directly.
    pub(crate) fn forget(&mut self, start: u64, end: u64) {
        let mut index = self.ends.partition_point(|one| *one <= start);
        while index < self.starts.len() && self.starts[index] < end {
            let (from, to) = (self.starts[index], self.ends[index]);
            self.dirty -= to.min(end) - from.max(start);
            match (from < start, end < to) {
                (true, true) => {
                    self.ends[index] = start;
                    self.starts.insert(index + 1, end);
                    self.ends.insert(index + 1, to);
                    return;
                }
                (true, false) => {
                    self.ends[index] = start;
                    index += 1;
                }
                (false, true) => self.starts[index] = end,
                (false, false) => {
                    self.starts.remove(index);
                    self.ends.remove(index);
                }
            }
        }
    }

    /// If sector `at` is in the buffer, how far the data from there go.
    pub(crate) fn covers(&self, at: u64) -> Option<u64> {
        let (from, to) = self.in_flight;
        if from <= at && at < to {
            return Some(to);
        }
        let index = self.ends.partition_point(|one| *one <= at);
        (index < self.starts.len() && self.starts[index] <= at).then(|| self.ends[index])
    }

    /// The next range by position: the elevator goes up, and from the last range back to the first.
    pub(crate) fn next(&self) -> Option<(u64, u64)> {
        let index = self.starts.partition_point(|one| *one < self.cursor);
        let index = if index == self.starts.len() { 0 } else { index };
        Some((*self.starts.get(index)?, self.ends[index]))
    }

    /// Puts the first `len` sectors of the range that starts at `start` in flight.
    pub(crate) fn send(&mut self, start: u64, len: u64) {
        if let Ok(index) = self.starts.binary_search(&start) {
            if self.starts[index] + len < self.ends[index] {
                self.starts[index] += len;
            } else {
                self.starts.remove(index);
                self.ends.remove(index);
            }
            self.dirty -= len;
            self.in_flight = (start, start + len);
            self.cursor = start + len;
        }
    }

    /// What was in flight is on the medium.
    pub(crate) fn arrived(&mut self) {
        self.in_flight = (0, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use raidlab_random::SplitMix64;

    /// The buffer against one that marks every sector.
    #[test]
    fn agrees_with_a_bitmap() {
        let mut random = SplitMix64::new(7);
        let mut buffer = WriteBuffer::new(400, 64);
        let mut dirty = vec![false; 400];
        for _ in 0..20_000 {
            let start = random.below(390);
            let end = start + 1 + random.below(10);
            match random.below(4) {
                0 | 1 => {
                    buffer.insert(start, end);
                    dirty[start as usize..end as usize].fill(true);
                }
                2 => {
                    buffer.forget(start, end);
                    dirty[start as usize..end as usize].fill(false);
                }
                _ => {
                    if let Some((from, to)) = buffer.next() {
                        let len = 1 + random.below(to - from);
                        buffer.send(from, len);
                        dirty[from as usize..(from + len) as usize].fill(false);
                        buffer.arrived();
                    }
                }
            }
            let marked = dirty.iter().filter(|one| **one).count() as u64;
            assert_eq!(buffer.room(), 400 - marked);
            assert!(buffer.starts.windows(2).all(|two| two[0] < two[1]));
            assert!(
                buffer
                    .ends
                    .iter()
                    .zip(&buffer.starts[1.min(buffer.starts.len())..])
                    .all(|(end, next)| end < next),
                "touching ranges are merged or never were one"
            );
            let probe = random.below(400);
            let run = dirty[probe as usize..].iter().take_while(|one| **one).count() as u64;
            assert_eq!(buffer.covers(probe), (run > 0).then_some(probe + run));
        }
    }

    #[test]
    fn the_elevator_goes_up_and_starts_over() {
        let mut buffer = WriteBuffer::new(1_000, 8);
        for at in [500, 100, 300] {
            buffer.insert(at, at + 8);
        }
        let mut order = Vec::new();
        while let Some((start, end)) = buffer.next() {
            buffer.send(start, end - start);
            assert_eq!(buffer.covers(start), Some(end), "in flight data are still readable");
            buffer.arrived();
            order.push(start);
            if order.len() == 2 {
                buffer.insert(200, 208);
            }
        }
        assert_eq!(order, [100, 300, 500, 200]);
    }

    #[test]
    fn full_of_ranges_takes_only_what_merges() {
        let mut buffer = WriteBuffer::new(1_000, 2);
        buffer.insert(0, 8);
        buffer.insert(100, 108);
        assert!(!buffer.can_insert(50, 58, 0));
        assert!(
            buffer.can_insert(8, 16, 0)
                && buffer.can_insert(92, 100, 0)
                && buffer.can_insert(4, 6, 0)
        );
    }
}
