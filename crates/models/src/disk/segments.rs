//! The read cache: a fixed number of segments, each a contiguous range of sectors.
//!
//! Replacement: the segment longest unused. A write drops what it overlaps: of a segment cut in two
//! only the part behind the write stays.

/// The segments. The one that is being filled has its end kept by the mechanism instead.
#[derive(Clone, Debug)]
pub(crate) struct Segments {
    ranges: Vec<Range>,
    clock: u64,
    size: u64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Range {
    start: u64,
    end: u64,
    used: u64,
    /// Where the last read served from here ended: one that starts there goes on.
    next: u64,
    /// Sectors it can hold.
    room: u64,
    /// Up to where reading counts as work: what lies behind was read ahead and not asked for.
    counted: u64,
}

impl Segments {
    pub(crate) fn new(count: u32, size: u64) -> Self {
        Self { ranges: vec![Range::default(); count as usize], clock: 0, size }
    }

    /// Sectors a segment holds.
    pub(crate) fn size(&self) -> u64 {
        self.size
    }

    /// Sectors this segment holds: more than others if it runs ahead of a reader in order.
    pub(crate) fn room(&self, segment: usize) -> u64 {
        self.ranges[segment].room
    }

    /// Lets a segment hold this many sectors, if it holds fewer.
    pub(crate) fn enlarge(&mut self, segment: usize, room: u64) {
        let range = &mut self.ranges[segment];
        range.room = range.room.max(room);
    }

    /// Marks a segment as just used.
    pub(crate) fn touch(&mut self, segment: usize) {
        self.clock += 1;
        self.ranges[segment].used = self.clock;
    }

    /// A read served from the segment ended at `end`.
    pub(crate) fn served(&mut self, segment: usize, end: u64) {
        self.ranges[segment].next = end;
        self.touch(segment);
    }

    /// Whether a read from `at` goes on where one ended that is still in a segment.
    pub(crate) fn continues(&self, at: u64) -> bool {
        self.ranges.iter().any(|range| range.next == at && range.used > 0)
    }

    /// First sector kept by a segment of which sectors up to `end` were read: old ones make room.
    pub(crate) fn start(&self, segment: usize, end: u64) -> u64 {
        let range = &self.ranges[segment];
        range.start.max(end.saturating_sub(range.room))
    }

    /// One past the last sector of a segment that is not being filled.
    pub(crate) fn end(&self, segment: usize) -> u64 {
        self.ranges[segment].end
    }

    /// The segment that holds sector `at`, apart from the one being filled, and where it ends.
    pub(crate) fn find(&self, at: u64, filling: Option<usize>) -> Option<(usize, u64)> {
        let holds = |range: &Range| range.start <= at && at < range.end;
        let mut all = self.ranges.iter().enumerate();
        let (index, range) = all.find(|(index, range)| holds(range) && filling != Some(*index))?;
        Some((index, range.end))
    }

    /// Takes a segment to be filled from sector `at`: the one that ends there, which grows, else
    /// the one longest unused, which is emptied.
    pub(crate) fn open(&mut self, at: u64) -> usize {
        let mut oldest = 0;
        let mut chosen = None;
        for (index, range) in self.ranges.iter().enumerate() {
            if range.end == at && range.start < at {
                chosen = Some(index);
                break;
            }
            if range.used < self.ranges[oldest].used {
                oldest = index;
            }
        }
        let index = chosen.unwrap_or_else(|| {
            self.ranges[oldest] =
                Range { start: at, end: at, used: 0, next: at, room: self.size, counted: at };
            oldest
        });
        self.touch(index);
        index
    }

    /// The filling of a segment ended at sector `end`, all of it counted as work.
    pub(crate) fn close(&mut self, segment: usize, end: u64) {
        self.ranges[segment].start = self.start(segment, end);
        self.ranges[segment].end = end;
        self.ranges[segment].counted = end;
    }

    /// The same, counted up to `counted` only. `begun`: where the filling began; what was not counted in front of that
    /// is still to be, unless a command had the filling begun.
    pub(crate) fn close_ahead(&mut self, segment: usize, begun: u64, (counted, end): (u64, u64)) {
        let before = self.ranges[segment].counted;
        self.close(segment, end);
        self.ranges[segment].counted = if counted <= begun { before.min(begun) } else { counted };
    }

    /// Data up to `end` of a segment that is not being filled are asked for: those of them that begin to count as work.
    pub(crate) fn count(&mut self, segment: usize, end: u64) -> (u64, u64) {
        let range = &mut self.ranges[segment];
        let from = range.counted.max(range.start);
        let to = end.min(range.end).max(from);
        range.counted = range.counted.max(to);
        (from, to)
    }

    /// A segment holds sectors from `start` on, too, in front of those it has.
    pub(crate) fn reach_back(&mut self, segment: usize, start: u64) {
        let range = &mut self.ranges[segment];
        range.start = range.start.min(start);
    }

    /// Notes data that came in whole, as written ones do: they join a segment that ends at `start`,
    /// or replace the one longest unused.
    pub(crate) fn note(&mut self, start: u64, end: u64) {
        let index = self.open(start);
        self.close(index, end);
        self.served(index, end);
    }

    /// Drops everything of a segment in front of `start`.
    pub(crate) fn drop_before(&mut self, segment: usize, start: u64) {
        let range = &mut self.ranges[segment];
        range.start = range.start.max(start);
    }

    /// Drops what a write of `start .. end` overlaps, apart from the segment being filled.
    pub(crate) fn drop_range(&mut self, start: u64, end: u64, filling: Option<usize>) {
        for (index, range) in self.ranges.iter_mut().enumerate() {
            if start < range.end && range.start < end && filling != Some(index) {
                if end < range.end {
                    range.start = end;
                } else {
                    range.end = start.max(range.start);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replaces_the_longest_unused_and_grows_the_matching_one() {
        let mut segments = Segments::new(2, 100);
        let first = segments.open(0);
        segments.close(first, 50);
        let second = segments.open(1_000);
        segments.close(second, 1_050);
        assert_ne!(first, second);
        assert_eq!(segments.open(50), first, "grows");
        segments.close(first, 130);
        assert_eq!(segments.find(29, None), None, "older sectors made room");
        assert_eq!(segments.find(30, None), Some((first, 130)));
        assert_eq!(segments.find(30, Some(first)), None);
        assert_eq!(segments.open(5_000), second, "longest unused");
        assert_eq!(segments.find(1_000, None), None);
    }

    #[test]
    fn writes_drop_what_they_overlap() {
        for (write, kept, gone) in [
            ((10, 20), vec![20, 99], vec![0, 9, 10, 19]),
            ((90, 120), vec![0, 89], vec![90, 99]),
            ((0, 100), vec![], vec![0, 50, 99]),
            ((100, 110), vec![0, 99], vec![]),
        ] {
            let mut segments = Segments::new(1, 100);
            let only = segments.open(0);
            segments.close(only, 100);
            segments.drop_range(write.0, write.1, None);
            let holds = |at: &u64| segments.find(*at, None).is_some();
            assert!(kept.iter().all(holds), "{write:?}");
            assert!(!gone.iter().any(holds), "{write:?}");
        }
    }
}
