//! The page cache: which pages of which file are in memory, and which of them are dirty.
//!
//! Pages are kept in segments of 64 with a bit for each, so a long run costs a few words. The order of
//! use is that of segments: the least recently used gives up all pages that are clean and at rest.

mod places;
mod turns;

use std::ops::Range;

use places::Places;
use turns::Turns;

/// Pages of a segment.
pub(super) const SEGMENT: u64 = 64;

/// A page's state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Page {
    /// Not in memory.
    Absent,
    /// Being read.
    Reading,
    /// In memory.
    Present,
}

/// Which of the pages that are being read from now on get marks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Marks {
    None,
    /// One page.
    At(u64),
    /// The first page of every request, from a page on.
    Every {
        from: u64,
    },
}

impl Marks {
    fn of(self, pages: &Range<u64>) -> Option<u64> {
        match self {
            Self::None => None,
            Self::At(page) => Some(page),
            Self::Every { from } => (pages.end > from).then_some(pages.start.max(from)),
        }
    }
}

/// A segment, as one line of the processor's caches: hosts have ten thousands of them.
#[derive(Clone, Debug, Default)]
#[repr(align(64))]
struct Segment {
    present: u64,
    reading: u64,
    /// To be written.
    dirty: u64,
    /// Being written.
    writing: u64,
    /// Held for the journal.
    held: u64,
    /// Where read-ahead goes on when a reader comes by.
    marked: u64,
    /// When it was used last.
    stamp: u64,
    /// Whether its place is among those that may have something to give up.
    queued: bool,
}

impl Segment {
    fn evictable(&self) -> u64 {
        self.present & !(self.dirty | self.writing | self.held)
    }

    /// Pages in memory or being read.
    fn there(&self) -> u64 {
        self.present | self.reading
    }
}

/// The bits of the pages `range` within segment `index`.
fn mask(index: u64, range: &Range<u64>) -> u64 {
    let start = range.start.max(index * SEGMENT) - index * SEGMENT;
    let end = range.end.min((index + 1) * SEGMENT) - index * SEGMENT;
    (u64::MAX >> (SEGMENT - (end - start))) << start
}

/// The page cache. Ranges are of pages, and not empty.
#[derive(Clone, Debug)]
pub(super) struct Cache {
    capacity: u64,
    places: Places,
    segments: Vec<Segment>,
    /// The file and number of each segment.
    owners: Vec<(u64, u64)>,
    free: Vec<u32>,
    /// Places of segments that may have something to give up, by a use of them that may not be the last:
    /// that is looked at only when it is their turn, so that using a segment costs nothing here.
    evictable: Turns,
    clock: u64,
    pages: u64,
    dirty: u64,
    writing: u64,
}

/// Which segments are changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Which {
    /// Those that are there.
    There,
    /// Those, and they count as used.
    Used,
    /// All, and they count as used.
    UsedOrMade,
    /// All; those that are there do not count as used.
    Made,
}

fn ones(word: u64) -> u64 {
    u64::from(word.count_ones())
}

impl Cache {
    pub(super) fn new(capacity: u64) -> Self {
        Self {
            capacity,
            places: Places::default(),
            segments: Vec::new(),
            owners: Vec::new(),
            free: Vec::new(),
            evictable: Turns::default(),
            clock: 0,
            pages: 0,
            dirty: 0,
            writing: 0,
        }
    }

    /// Pages in memory or being read.
    pub(super) fn pages(&self) -> u64 {
        self.pages
    }

    /// Dirty pages.
    pub(super) fn dirty(&self) -> u64 {
        self.dirty
    }

    /// Dirty pages and those being written.
    pub(super) fn unwritten(&self) -> u64 {
        self.dirty + self.writing
    }

    #[inline]
    fn segment(&self, file: u64, index: u64) -> Option<&Segment> {
        Some(&self.segments[self.places.get(file, index)? as usize])
    }

    /// The state of a page.
    pub(super) fn page(&self, file: u64, page: u64) -> Page {
        let bit = 1 << (page % SEGMENT);
        match self.segment(file, page / SEGMENT) {
            Some(segment) if segment.present & bit != 0 => Page::Present,
            Some(segment) if segment.reading & bit != 0 => Page::Reading,
            _ => Page::Absent,
        }
    }

    /// How many pages from `page` on are alike, by a word of bits of each segment: at most `most`.
    fn run(&self, file: u64, page: u64, most: u64, bits: impl Fn(Option<&Segment>) -> u64) -> u64 {
        let mut at = page;
        while at < page + most {
            let (index, from) = (at / SEGMENT, at % SEGMENT);
            let word = bits(self.segment(file, index)) >> from;
            let ones = u64::from(word.trailing_ones()).min(SEGMENT - from);
            at += ones;
            if ones < SEGMENT - from {
                break;
            }
        }
        (at - page).min(most)
    }

    /// How many pages from `page` on are in memory, up to the next mark after it; at most `most`.
    pub(super) fn present(&self, file: u64, page: u64, most: u64) -> u64 {
        let bits = |segment: Option<&Segment>| segment.map_or(0, |segment| segment.present);
        let present = self.run(file, page, most, bits);
        if present < 2 {
            return present;
        }
        let unmarked = |segment: Option<&Segment>| segment.map_or(0, |segment| !segment.marked);
        1 + self.run(file, page + 1, present - 1, unmarked)
    }

    /// How many pages from `page` on are absent; at most `most`.
    pub(super) fn absent(&self, file: u64, page: u64, most: u64) -> u64 {
        let bits = |segment: Option<&Segment>| {
            segment.map_or(u64::MAX, |segment| !(segment.present | segment.reading))
        };
        self.run(file, page, most, bits)
    }

    /// How many pages from `page` on are in memory or being read; at most `most`.
    pub(super) fn there(&self, file: u64, page: u64, most: u64) -> u64 {
        let bits = |segment: Option<&Segment>| {
            segment.map_or(0, |segment| segment.present | segment.reading)
        };
        self.run(file, page, most, bits)
    }

    /// The first dirty pages within `range`, next to each other; at most `most`.
    pub(super) fn next_dirty(
        &self,
        file: u64,
        range: &Range<u64>,
        most: u64,
    ) -> Option<Range<u64>> {
        if range.is_empty() || !self.has_dirty(file) {
            return None;
        }
        let (from, to) = (range.start / SEGMENT, (range.end - 1) / SEGMENT);
        let dirty = |segment: Option<&Segment>| segment.map_or(0, |segment| segment.dirty);
        let first_of = |index: u64| {
            let bits = dirty(self.segment(file, index)) & mask(index, range);
            (bits != 0).then(|| index * SEGMENT + u64::from(bits.trailing_zeros()))
        };
        // Write-back goes on where it was: most often in this segment.
        let first =
            first_of(from).or_else(|| self.places.dirty(file, from + 1..=to).find_map(first_of))?;
        let most = most.min(range.end - first);
        Some(first..first + self.run(file, first, most, dirty))
    }

    /// How many pages of a range are dirty.
    pub(super) fn dirty_in(&self, file: u64, range: Range<u64>) -> u64 {
        if range.is_empty() || !self.has_dirty(file) {
            return 0;
        }
        let (from, to) = (range.start / SEGMENT, (range.end - 1) / SEGMENT);
        let count = |index: u64| {
            let dirty = self.segment(file, index).map_or(0, |segment| segment.dirty);
            ones(dirty & mask(index, &range))
        };
        if to <= from + 1 {
            return (from..=to).map(count).sum();
        }
        count(from) + self.places.dirty(file, from + 1..=to).map(count).sum::<u64>()
    }

    /// Changes segments of a range, by masks of the pages in it.
    #[inline]
    fn change(
        &mut self,
        file: u64,
        range: Range<u64>,
        which: Which,
        mut change: impl FnMut(&mut Segment, u64),
    ) {
        if range.is_empty() {
            return;
        }
        for index in range.start / SEGMENT..=(range.end - 1) / SEGMENT {
            let place = match self.places.get(file, index) {
                Some(place) => place,
                None if matches!(which, Which::Made | Which::UsedOrMade) => self.make(file, index),
                None => continue,
            };
            if matches!(which, Which::Used | Which::UsedOrMade) {
                self.note_used(place);
            }
            self.change_one(place, mask(index, &range), &mut change);
        }
    }

    /// A segment is the one that was used last; if it was that before, it stays so.
    #[inline]
    fn note_used(&mut self, place: u32) {
        let segment = &mut self.segments[place as usize];
        self.clock += u64::from(segment.stamp != self.clock);
        segment.stamp = self.clock;
    }

    fn make(&mut self, file: u64, index: u64) -> u32 {
        self.clock += 1;
        let segment = Segment { stamp: self.clock, ..Segment::default() };
        let place = match self.free.pop() {
            Some(place) => {
                let queued = self.segments[place as usize].queued;
                self.segments[place as usize] = Segment { queued, ..segment };
                self.owners[place as usize] = (file, index);
                place
            }
            None => {
                self.segments.push(segment);
                self.owners.push((file, index));
                self.segments.len() as u32 - 1
            }
        };
        self.places.insert(file, index, place);
        place
    }

    #[inline]
    fn change_one(&mut self, place: u32, mask: u64, change: &mut impl FnMut(&mut Segment, u64)) {
        let segment = &mut self.segments[place as usize];
        let (there, dirty, writing) = (segment.there(), segment.dirty, segment.writing);
        change(segment, mask);
        if segment.there() != there {
            self.pages = self.pages + ones(segment.there()) - ones(there);
        }
        if segment.writing != writing {
            self.writing = self.writing + ones(segment.writing) - ones(writing);
        }
        if !segment.queued && segment.evictable() != 0 {
            segment.queued = true;
            self.evictable.push(segment.stamp, place);
        }
        if segment.dirty != dirty {
            self.dirty = self.dirty + ones(segment.dirty) - ones(dirty);
            if (segment.dirty == 0) != (dirty == 0) {
                let (file, index) = self.owners[place as usize];
                self.places.note_dirty(file, index, dirty == 0);
            }
        }
        if segment.there() == 0 {
            let (file, index) = self.owners[place as usize];
            self.places.remove(file, index);
            self.free.push(place);
        }
    }

    /// Notes that pages were used.
    pub(super) fn touch(&mut self, file: u64, range: Range<u64>) {
        self.change(file, range, Which::Used, |_, _| {});
    }

    /// Notes that pages were used, one after the other, up to the first that is not in memory; how many
    /// those are.
    pub(super) fn use_present(&mut self, file: u64, pages: &[u64]) -> usize {
        let mut used = 0;
        for page in pages {
            let Some(place) = self.places.get(file, page / SEGMENT) else { break };
            if self.segments[place as usize].present & 1 << (page % SEGMENT) == 0 {
                break;
            }
            self.note_used(place);
            used += 1;
        }
        used
    }

    /// Whether a file has dirty pages.
    pub(super) fn has_dirty(&self, file: u64) -> bool {
        self.places.has_dirty(file)
    }

    /// Makes room until there is no more than fits, or nothing is left but what was used after `now`: there is more
    /// than fits while that, and what cannot be given up, needs it.
    fn evict(&mut self, now: u64) {
        while self.pages > self.capacity {
            let Some((used, place)) = self.evictable.pop() else { return };
            let segment = &mut self.segments[place as usize];
            if segment.stamp == used && used > now {
                self.evictable.push(used, place);
                return;
            }
            if segment.evictable() == 0 {
                segment.queued = false;
            } else if segment.stamp != used {
                self.evictable.push(segment.stamp, place);
            } else {
                self.give_up(place);
                self.segments[place as usize].queued = false;
            }
        }
    }

    /// A segment gives up what is clean and at rest.
    fn give_up(&mut self, place: u32) {
        self.change_one(place, u64::MAX, &mut |segment, _| {
            let gone = segment.evictable();
            segment.present &= !gone;
            segment.marked &= !gone;
        });
    }

    /// Absent pages are being read from now on, some with marks.
    pub(super) fn start_reading(&mut self, file: u64, range: Range<u64>, marks: Marks) {
        let mark = marks.of(&range).filter(|page| range.contains(page));
        self.change(file, range, Which::Made, |segment, mask| {
            segment.reading |= mask & !segment.present;
        });
        if let Some(page) = mark {
            self.change(file, page..page + 1, Which::There, |segment, mask| {
                segment.marked |= mask;
            });
        }
        self.evict(u64::MAX);
    }

    /// Pages were read. Those dropped or written over meanwhile stay as they are.
    pub(super) fn read(&mut self, file: u64, range: Range<u64>) {
        self.change(file, range, Which::Used, |segment, mask| {
            let read = segment.reading & mask;
            segment.reading &= !read;
            segment.present |= read;
        });
    }

    /// Pages are there without being read: holes, and what was never written. They stay, as who asked for them would
    /// ask again.
    pub(super) fn fill(&mut self, file: u64, range: Range<u64>) {
        let now = self.clock;
        self.clock += 1;
        self.change(file, range, Which::UsedOrMade, |segment, mask| {
            segment.present |= mask & !segment.reading;
        });
        self.evict(now);
    }

    /// Takes a mark off; says whether there was one.
    pub(super) fn take_mark(&mut self, file: u64, page: u64) -> bool {
        let bit = 1 << (page % SEGMENT);
        let marked = |segment: &Segment| segment.marked & bit != 0;
        let is_marked = self.segment(file, page / SEGMENT).is_some_and(marked);
        if is_marked {
            self.change(file, page..page + 1, Which::There, |segment, mask| {
                segment.marked &= !mask
            });
        }
        is_marked
    }

    /// Pages are changed in memory.
    pub(super) fn make_dirty(&mut self, file: u64, range: Range<u64>) {
        self.change(file, range, Which::UsedOrMade, |segment, mask| {
            segment.reading &= !mask;
            segment.present |= mask;
            segment.dirty |= mask;
        });
        self.evict(u64::MAX);
    }

    /// Dirty pages are being written from now on.
    pub(super) fn start_writing(&mut self, file: u64, range: Range<u64>) {
        self.change(file, range, Which::There, |segment, mask| {
            segment.dirty &= !mask;
            segment.writing |= mask & segment.present;
        });
    }

    /// Pages were written.
    pub(super) fn written(&mut self, file: u64, range: Range<u64>) {
        self.change(file, range, Which::There, |segment, mask| segment.writing &= !mask);
        self.evict(u64::MAX);
    }

    /// Pages are changed and must stay until the journal has them.
    pub(super) fn hold(&mut self, file: u64, page: u64) {
        self.change(file, page..page + 1, Which::UsedOrMade, |segment, mask| {
            segment.reading &= !mask;
            segment.present |= mask;
            segment.dirty &= !mask;
            segment.held |= mask;
        });
        self.evict(u64::MAX);
    }

    /// The journal has a page: it may be written to its place.
    pub(super) fn release(&mut self, file: u64, page: u64) {
        self.change(file, page..page + 1, Which::There, |segment, mask| {
            segment.dirty |= segment.held & mask;
            segment.held &= !mask;
        });
    }

    /// Forgets pages, dirty or not.
    pub(super) fn forget(&mut self, file: u64, range: Range<u64>) {
        let mut from = range.start / SEGMENT;
        let to = range.end.div_ceil(SEGMENT);
        while let Some(index) = self.places.next(file, from..to) {
            from = index + 1;
            let start = range.start.max(index * SEGMENT);
            let end = range.end.min((index + 1) * SEGMENT);
            self.change(file, start..end, Which::There, |segment, mask| {
                for bits in [
                    &mut segment.present,
                    &mut segment.reading,
                    &mut segment.dirty,
                    &mut segment.writing,
                    &mut segment.held,
                    &mut segment.marked,
                ] {
                    *bits &= !mask;
                }
            });
        }
    }

    /// Gives up what is clean and at rest: of a file, or of all.
    pub(super) fn drop_clean(&mut self, file: Option<u64>) {
        let Some(file) = file else {
            for place in 0..self.segments.len() as u32 {
                if self.segments[place as usize].evictable() != 0 {
                    self.give_up(place);
                }
            }
            return;
        };
        let mut from = 0;
        while let Some(index) = self.places.next(file, from..u64::MAX) {
            from = index + 1;
            if let Some(place) = self.places.get(file, index) {
                self.give_up(place);
            }
        }
    }
}

#[cfg(test)]
mod tests;
