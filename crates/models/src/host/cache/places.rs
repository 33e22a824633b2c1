//! Where the segments of files are kept: tables by file and number, since nearly every operation looks
//! one up. Numbers of files are small and rise; what lies far out is in maps, so that one file at the
//! end of a long hole does not fill memory.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::{Range, RangeInclusive};

/// No place.
const NONE: u32 = u32::MAX;

/// Files in the table.
const FILES: u64 = 1 << 24;

/// Segments of a file in its table.
const SEGMENTS: u64 = 1 << 22;

/// The segments of a file.
#[derive(Clone, Debug)]
struct OfFile {
    /// The place of the first one: small files have no other.
    first: u32,
    /// Segments that are there.
    count: u32,
    /// Those with dirty pages.
    dirty: u32,
    rest: Option<Box<Rest>>,
}

/// All segments of a file but the first, by their numbers less one.
#[derive(Clone, Debug, Default)]
struct Rest {
    places: Vec<u32>,
    /// A bit for each that has dirty pages.
    dirty: Vec<u64>,
    /// Those behind [`SEGMENTS`], and which of them have dirty pages.
    far: BTreeMap<u64, u32>,
    far_dirty: BTreeSet<u64>,
}

impl Rest {
    fn get(&self, row: u64) -> Option<u32> {
        if row < SEGMENTS {
            self.places.get(row as usize).copied()
        } else {
            self.far.get(&row).copied()
        }
    }

    fn insert(&mut self, row: u64, place: u32) {
        if row >= SEGMENTS {
            self.far.insert(row, place);
            return;
        }
        if self.places.len() as u64 <= row {
            self.places.resize(row as usize + 1, NONE);
        }
        self.places[row as usize] = place;
    }

    fn remove(&mut self, row: u64) {
        if row < SEGMENTS {
            self.places[row as usize] = NONE;
        } else {
            self.far.remove(&row);
        }
    }

    /// The first that is there of those in `rows`.
    fn next(&self, rows: Range<u64>) -> Option<u64> {
        let len = self.places.len() as u64;
        let near = rows.start.min(len)..rows.end.min(len);
        let places = self.places.get(near.start as usize..near.end as usize).unwrap_or_default();
        if let Some(by) = places.iter().position(|place| *place != NONE) {
            return Some(near.start + by as u64);
        }
        let far = (rows.start < rows.end).then(|| self.far.range(rows).next()).flatten();
        far.map(|(row, _)| *row)
    }

    fn note_dirty(&mut self, row: u64, is_dirty: bool) {
        if row < SEGMENTS {
            let (word, bit) = ((row / 64) as usize, 1 << (row % 64));
            if self.dirty.len() <= word {
                self.dirty.resize(word + 1, 0);
            }
            self.dirty[word] =
                if is_dirty { self.dirty[word] | bit } else { self.dirty[word] & !bit };
        } else if is_dirty {
            self.far_dirty.insert(row);
        } else {
            self.far_dirty.remove(&row);
        }
    }

    /// The first with dirty pages at a row or behind it.
    fn next_dirty(&self, from: u64) -> Option<u64> {
        // What lies far out may not fit a number of 32 bits.
        let mut word = (from / 64).min(self.dirty.len() as u64) as usize;
        let mut bits = self.dirty.get(word).copied().unwrap_or(0) & u64::MAX << (from % 64);
        while word < self.dirty.len() {
            if bits != 0 {
                return Some(word as u64 * 64 + u64::from(bits.trailing_zeros()));
            }
            word += 1;
            bits = self.dirty.get(word).copied().unwrap_or(0);
        }
        self.far_dirty.range(from..).next().copied()
    }
}

impl Default for OfFile {
    fn default() -> Self {
        Self { first: NONE, count: 0, dirty: 0, rest: None }
    }
}

/// The places of segments, by file and number.
#[derive(Clone, Debug, Default)]
pub(super) struct Places {
    /// By the file's number and one, so that metadata come first.
    files: Vec<OfFile>,
    /// Those behind [`FILES`].
    far: BTreeMap<u64, OfFile>,
}

impl Places {
    #[inline]
    fn of(&self, file: u64) -> Option<&OfFile> {
        let row = file.wrapping_add(1);
        if row < FILES { self.files.get(row as usize) } else { self.far.get(&row) }
    }

    #[inline]
    fn of_mut(&mut self, file: u64) -> &mut OfFile {
        let row = file.wrapping_add(1);
        if row >= FILES {
            return self.far.entry(row).or_default();
        }
        if self.files.len() as u64 <= row {
            self.files.resize_with(row as usize + 1, OfFile::default);
        }
        &mut self.files[row as usize]
    }

    /// The place of a segment.
    #[inline]
    pub(super) fn get(&self, file: u64, index: u64) -> Option<u32> {
        let of = self.of(file)?;
        let place = match index.checked_sub(1) {
            None => of.first,
            Some(row) => of.rest.as_ref()?.get(row)?,
        };
        (place != NONE).then_some(place)
    }

    /// A segment has a place from now on.
    pub(super) fn insert(&mut self, file: u64, index: u64, place: u32) {
        let of = self.of_mut(file);
        of.count += 1;
        match index.checked_sub(1) {
            None => of.first = place,
            Some(row) => of.rest.get_or_insert_default().insert(row, place),
        }
    }

    /// It has none any more. It has no dirty pages.
    pub(super) fn remove(&mut self, file: u64, index: u64) {
        let of = self.of_mut(file);
        of.count -= 1;
        if of.count == 0 {
            (of.first, of.rest) = (NONE, None);
            return;
        }
        match (index.checked_sub(1), &mut of.rest) {
            (None, _) => of.first = NONE,
            (Some(row), Some(rest)) => rest.remove(row),
            (Some(_), None) => {}
        }
    }

    /// The first segment that is there of those in `range`.
    pub(super) fn next(&self, file: u64, range: Range<u64>) -> Option<u64> {
        let of = self.of(file).filter(|of| of.count > 0)?;
        if range.start == 0 && range.end > 0 && of.first != NONE {
            return Some(0);
        }
        let rows = range.start.max(1) - 1..range.end.max(1) - 1;
        of.rest.as_ref()?.next(rows).map(|row| row + 1)
    }

    /// A segment of a file has dirty pages from now on, or has none any more.
    pub(super) fn note_dirty(&mut self, file: u64, index: u64, is_dirty: bool) {
        let of = self.of_mut(file);
        if is_dirty {
            of.dirty += 1;
        } else {
            of.dirty -= 1;
        }
        if let (Some(row), Some(rest)) = (index.checked_sub(1), &mut of.rest) {
            rest.note_dirty(row, is_dirty);
        }
    }

    /// Whether a file has dirty pages.
    #[inline]
    pub(super) fn has_dirty(&self, file: u64) -> bool {
        self.of(file).is_some_and(|of| of.dirty > 0)
    }

    /// The segments of a file with dirty pages, but for its first, of those in `range`.
    pub(super) fn dirty(&self, file: u64, range: RangeInclusive<u64>) -> impl Iterator<Item = u64> {
        let rest = self.of(file).and_then(|of| of.rest.as_ref());
        let mut from = (*range.start()).max(1) - 1;
        std::iter::from_fn(move || {
            let row = rest?.next_dirty(from)?;
            from = row + 1;
            (row < *range.end()).then_some(row + 1)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments_are_found_near_and_far() {
        let mut places = Places::default();
        let all = [(0, 0), (0, 1), (0, 700), (0, 1 << 40), (u64::MAX, 5), (1 << 50, 0), (7, 2)];
        for (place, (file, index)) in all.into_iter().enumerate() {
            assert_eq!(places.get(file, index), None);
            places.insert(file, index, place as u32);
        }
        for (place, (file, index)) in all.into_iter().enumerate() {
            assert_eq!(places.get(file, index), Some(place as u32), "{file} {index}");
        }
        let next = |places: &Places, from| places.next(0, from..u64::MAX);
        assert_eq!((next(&places, 0), next(&places, 2)), (Some(0), Some(700)));
        assert_eq!((next(&places, 701), next(&places, (1 << 40) + 1)), (Some(1 << 40), None));
        assert_eq!((places.next(0, 2..700), places.next(7, 0..2)), (None, None));
        for (file, index) in all {
            places.note_dirty(file, index, true);
        }
        let dirty = |places: &Places, range| places.dirty(0, range).collect::<Vec<_>>();
        assert_eq!(dirty(&places, 0..=u64::MAX - 1), [1, 700, 1 << 40], "but for the first");
        assert_eq!((dirty(&places, 2..=700), dirty(&places, 2..=699)), (vec![700], vec![]));
        assert_eq!(dirty(&places, 701..=1 << 40), [1 << 40]);
        places.note_dirty(0, 700, false);
        assert_eq!(dirty(&places, 1..=1 << 40), [1, 1 << 40]);
        places.note_dirty(0, 700, true);
        for (file, index) in all {
            places.note_dirty(file, index, false);
        }
        assert!(!places.has_dirty(0) && dirty(&places, 1..=1 << 41).is_empty());
        for (file, index) in all {
            places.remove(file, index);
            assert_eq!(places.get(file, index), None);
        }
        assert_eq!(next(&places, 0), None);
    }
}
