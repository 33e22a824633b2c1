//! The page cache: which pages of which file are in memory, and which of them are dirty.
//!
//! Pages are kept in segments of 64 with a bit for each, so a long run costs a few words. The order of
//! use is that of segments: the least recently used gives up all pages that are clean and at rest.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

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

#[derive(Clone, Debug, Default)]
struct Segment {
    file: u64,
    index: u64,
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
}

impl Segment {
    fn evictable(&self) -> u64 {
        self.present & !(self.dirty | self.writing | self.held)
    }

    fn pages(&self) -> u64 {
        u64::from((self.present | self.reading).count_ones())
    }

    /// Any page with a mark of its own, or being read.
    fn is_empty(&self) -> bool {
        self.present | self.reading == 0
    }
}

/// The bits of the pages `range` within segment `index`.
fn mask(index: u64, range: &Range<u64>) -> u64 {
    let start = range.start.max(index * SEGMENT) - index * SEGMENT;
    let end = range.end.min((index + 1) * SEGMENT) - index * SEGMENT;
    (u64::MAX >> (SEGMENT - (end - start))) << start
}

/// Segments whose places are remembered.
const RECENT: u64 = 256;

/// Where the place of a segment is remembered.
fn recent(file: u64, index: u64) -> usize {
    (index.wrapping_add(file.wrapping_mul(37)) % RECENT) as usize
}

/// The page cache. Ranges are of pages, and not empty.
#[derive(Clone, Debug)]
pub(super) struct Cache {
    capacity: u64,
    places: BTreeMap<(u64, u64), u32>,
    /// Places of segments that were looked for last, by [`recent`]: most need not be looked up.
    recent: Vec<u32>,
    segments: Vec<Segment>,
    free: Vec<u32>,
    /// Segments with something to give up, by their last use.
    evictable: BTreeMap<u64, u32>,
    /// Segments with dirty pages.
    dirty_at: BTreeSet<(u64, u64)>,
    clock: u64,
    pages: u64,
    dirty: u64,
    writing: u64,
}

/// What is done to the pages of a segment that a mask names.
type Change<'a> = &'a mut dyn FnMut(&mut Segment, u64);

impl Cache {
    pub(super) fn new(capacity: u64) -> Self {
        Self {
            capacity,
            places: BTreeMap::new(),
            recent: vec![u32::MAX; RECENT as usize],
            segments: Vec::new(),
            free: Vec::new(),
            evictable: BTreeMap::new(),
            dirty_at: BTreeSet::new(),
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

    fn segment(&self, file: u64, index: u64) -> Option<&Segment> {
        Some(&self.segments[self.place(file, index)? as usize])
    }

    fn place(&self, file: u64, index: u64) -> Option<u32> {
        let place = self.recent[recent(file, index)];
        match self.segments.get(place as usize) {
            Some(segment) if segment.file == file && segment.index == index => Some(place),
            _ => self.places.get(&(file, index)).copied(),
        }
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
        if range.is_empty() {
            return None;
        }
        let from = (file, range.start / SEGMENT);
        let to = (file, (range.end - 1) / SEGMENT);
        let dirty = |segment: Option<&Segment>| segment.map_or(0, |segment| segment.dirty);
        let first = self.dirty_at.range(from..=to).find_map(|(_, index)| {
            let bits = dirty(self.segment(file, *index)) & mask(*index, range);
            (bits != 0).then(|| index * SEGMENT + u64::from(bits.trailing_zeros()))
        })?;
        let most = most.min(range.end - first);
        Some(first..first + self.run(file, first, most, dirty))
    }

    /// How many pages of a range are dirty.
    pub(super) fn dirty_in(&self, file: u64, range: Range<u64>) -> u64 {
        if range.is_empty() {
            return 0;
        }
        let (from, to) = ((file, range.start / SEGMENT), (file, (range.end - 1) / SEGMENT));
        let count = |(_, index): &(u64, u64)| {
            let dirty = self.segment(file, *index).map_or(0, |segment| segment.dirty);
            u64::from((dirty & mask(*index, &range)).count_ones())
        };
        self.dirty_at.range(from..=to).map(count).sum()
    }

    /// Changes segments of a range; only those that are there, unless `make`.
    fn change(&mut self, file: u64, range: Range<u64>, make: bool, change: Change<'_>) {
        self.change_all(file, range, make, false, change);
    }

    fn change_all(
        &mut self,
        file: u64,
        range: Range<u64>,
        make: bool,
        used: bool,
        change: Change<'_>,
    ) {
        if range.is_empty() {
            return;
        }
        for index in range.start / SEGMENT..=(range.end - 1) / SEGMENT {
            let place = match self.place(file, index) {
                Some(place) => place,
                None if make => self.make(file, index),
                None => continue,
            };
            self.recent[recent(file, index)] = place;
            let is_newest = self.segments[place as usize].stamp == self.clock;
            self.clock += u64::from(used && !is_newest);
            let stamp = used.then_some(self.clock);
            self.change_one(place, mask(index, &range), stamp, change);
        }
    }

    fn make(&mut self, file: u64, index: u64) -> u32 {
        self.clock += 1;
        let segment = Segment { file, index, stamp: self.clock, ..Segment::default() };
        let place = match self.free.pop() {
            Some(place) => {
                self.segments[place as usize] = segment;
                place
            }
            None => {
                self.segments.push(segment);
                self.segments.len() as u32 - 1
            }
        };
        self.places.insert((file, index), place);
        place
    }

    fn change_one(&mut self, place: u32, mask: u64, used: Option<u64>, change: Change<'_>) {
        let segment = &mut self.segments[place as usize];
        let (stamp, was_evictable) = (segment.stamp, segment.evictable() != 0);
        let was_dirty = segment.dirty != 0;
        self.pages -= segment.pages();
        self.dirty -= u64::from(segment.dirty.count_ones());
        self.writing -= u64::from(segment.writing.count_ones());
        change(segment, mask);
        segment.stamp = used.unwrap_or(stamp);
        self.pages += segment.pages();
        self.dirty += u64::from(segment.dirty.count_ones());
        self.writing += u64::from(segment.writing.count_ones());
        let key = (segment.file, segment.index);
        let (now, is_evictable) = (segment.stamp, segment.evictable() != 0);
        let (is_dirty, is_empty) = (segment.dirty != 0, segment.is_empty());
        if was_evictable && (!is_evictable || now != stamp) {
            self.evictable.remove(&stamp);
        }
        if is_evictable && (!was_evictable || now != stamp) {
            self.evictable.insert(now, place);
        }
        if is_dirty && !was_dirty {
            self.dirty_at.insert(key);
        } else if was_dirty && !is_dirty {
            self.dirty_at.remove(&key);
        }
        if is_empty {
            // No segment's number.
            segment.index = u64::MAX;
            self.places.remove(&key);
            self.free.push(place);
        }
    }

    /// Notes that pages were used.
    pub(super) fn touch(&mut self, file: u64, range: Range<u64>) {
        self.change_used(file, range, false, &mut |_, _| {});
    }

    /// Changes segments of a range like [`change`](Self::change), and notes that they were used; the
    /// one that was used last of all stays so.
    fn change_used(&mut self, file: u64, range: Range<u64>, make: bool, change: Change<'_>) {
        self.change_all(file, range, make, true, change);
    }

    /// Whether a file has dirty pages.
    pub(super) fn has_dirty(&self, file: u64) -> bool {
        self.dirty_at.range((file, 0)..=(file, u64::MAX)).next().is_some()
    }

    /// Makes room until there is no more than fits; what is used now stays as long as it can.
    fn evict(&mut self) {
        while self.pages > self.capacity
            && let Some((_, place)) = self.evictable.pop_first()
        {
            // Out of the order already; `change_one` sees to the rest.
            self.evictable.insert(self.segments[place as usize].stamp, place);
            self.change_one(place, u64::MAX, None, &mut |segment, _| {
                let gone = segment.evictable();
                segment.present &= !gone;
                segment.marked &= !gone;
            });
        }
    }

    /// Absent pages are being read from now on, some with marks.
    pub(super) fn start_reading(&mut self, file: u64, range: Range<u64>, marks: Marks) {
        let mark = marks.of(&range);
        self.change(file, range, true, &mut |segment, mask| {
            segment.reading |= mask & !segment.present;
            if let Some(page) = mark
                && page / SEGMENT == segment.index
            {
                segment.marked |= mask & (1 << (page % SEGMENT));
            }
        });
        self.evict();
    }

    /// Pages were read. Those dropped or written over meanwhile stay as they are.
    pub(super) fn read(&mut self, file: u64, range: Range<u64>) {
        self.change_used(file, range, false, &mut |segment, mask| {
            let read = segment.reading & mask;
            segment.reading &= !read;
            segment.present |= read;
        });
    }

    /// Pages are there without being read: holes, and what was never written.
    pub(super) fn fill(&mut self, file: u64, range: Range<u64>) {
        self.change_used(file, range, true, &mut |segment, mask| {
            segment.present |= mask & !segment.reading;
        });
        self.evict();
    }

    /// Takes a mark off; says whether there was one.
    pub(super) fn take_mark(&mut self, file: u64, page: u64) -> bool {
        let bit = 1 << (page % SEGMENT);
        let marked = |segment: &Segment| segment.marked & bit != 0;
        let is_marked = self.segment(file, page / SEGMENT).is_some_and(marked);
        if is_marked {
            self.change(file, page..page + 1, false, &mut |segment, mask| segment.marked &= !mask);
        }
        is_marked
    }

    /// Pages are changed in memory.
    pub(super) fn make_dirty(&mut self, file: u64, range: Range<u64>) {
        self.change_used(file, range, true, &mut |segment, mask| {
            segment.reading &= !mask;
            segment.present |= mask;
            segment.dirty |= mask;
        });
        self.evict();
    }

    /// Dirty pages are being written from now on.
    pub(super) fn start_writing(&mut self, file: u64, range: Range<u64>) {
        self.change(file, range, false, &mut |segment, mask| {
            segment.dirty &= !mask;
            segment.writing |= mask & segment.present;
        });
    }

    /// Pages were written.
    pub(super) fn written(&mut self, file: u64, range: Range<u64>) {
        self.change(file, range, false, &mut |segment, mask| segment.writing &= !mask);
        self.evict();
    }

    /// Pages are changed and must stay until the journal has them.
    pub(super) fn hold(&mut self, file: u64, page: u64) {
        self.change_used(file, page..page + 1, true, &mut |segment, mask| {
            segment.reading &= !mask;
            segment.present |= mask;
            segment.dirty &= !mask;
            segment.held |= mask;
        });
        self.evict();
    }

    /// The journal has a page: it may be written to its place.
    pub(super) fn release(&mut self, file: u64, page: u64) {
        self.change(file, page..page + 1, false, &mut |segment, mask| {
            segment.dirty |= segment.held & mask;
            segment.held &= !mask;
        });
    }

    /// Forgets pages, dirty or not.
    pub(super) fn forget(&mut self, file: u64, range: Range<u64>) {
        let keep = |place: &(u64, u64)| place.1 * SEGMENT < range.end;
        let from = (file, range.start / SEGMENT);
        let there = self.places.range(from..=(file, u64::MAX)).map(|(place, _)| *place);
        let there: Vec<_> = there.take_while(keep).collect();
        for (_, index) in there {
            let start = range.start.max(index * SEGMENT);
            let end = range.end.min((index + 1) * SEGMENT);
            self.change(file, start..end, false, &mut |segment, mask| {
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
        let of = |place: &u32| {
            let segment = &self.segments[*place as usize];
            file.is_none_or(|file| segment.file == file)
        };
        let places: Vec<u32> = match file {
            Some(file) => {
                self.places.range((file, 0)..=(file, u64::MAX)).map(|(_, place)| *place).collect()
            }
            None => self.places.values().copied().filter(of).collect(),
        };
        for place in places {
            self.change_one(place, u64::MAX, None, &mut |segment, _| {
                let gone = segment.evictable();
                segment.present &= !gone;
                segment.marked &= !gone;
            });
        }
    }
}

#[cfg(test)]
mod tests;
