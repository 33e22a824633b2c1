//! Where the segments of files are kept: tables by file and number, since nearly every operation looks
//! one up. Numbers of files are small and rise; what lies far out is in maps, so that one file at the
//! end of a long hole does not fill memory.

use std::collections::BTreeMap;
use std::ops::Range;

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
    /// The places of the others.
    rest: Vec<u32>,
    /// Those behind [`SEGMENTS`].
    far: BTreeMap<u64, u32>,
}

impl Default for OfFile {
    fn default() -> Self {
        Self { first: NONE, count: 0, dirty: 0, rest: Vec::new(), far: BTreeMap::new() }
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
            Some(row) if row < SEGMENTS => of.rest.get(row as usize).copied()?,
            Some(row) => of.far.get(&row).copied()?,
        };
        (place != NONE).then_some(place)
    }

    /// A segment has a place from now on.
    pub(super) fn insert(&mut self, file: u64, index: u64, place: u32) {
        let of = self.of_mut(file);
        of.count += 1;
        match index.checked_sub(1) {
            None => of.first = place,
            Some(row) if row < SEGMENTS => {
                if of.rest.len() as u64 <= row {
                    of.rest.resize(row as usize + 1, NONE);
                }
                of.rest[row as usize] = place;
            }
            Some(row) => {
                of.far.insert(row, place);
            }
        }
    }

    /// It has none any more.
    pub(super) fn remove(&mut self, file: u64, index: u64) {
        let of = self.of_mut(file);
        of.count -= 1;
        match index.checked_sub(1) {
            None => of.first = NONE,
            Some(row) if row < SEGMENTS => of.rest[row as usize] = NONE,
            Some(row) => {
                of.far.remove(&row);
            }
        }
        if of.count == 0 {
            of.rest = Vec::new();
        }
    }

    /// The first segment that is there of those in `range`.
    pub(super) fn next(&self, file: u64, range: Range<u64>) -> Option<u64> {
        let of = self.of(file).filter(|of| of.count > 0)?;
        if range.start == 0 && range.end > 0 && of.first != NONE {
            return Some(0);
        }
        let (from, to) = (range.start.max(1) - 1, range.end.max(1) - 1);
        let near = from.min(of.rest.len() as u64)..to.min(of.rest.len() as u64);
        let rest = of.rest.get(near.start as usize..near.end as usize).unwrap_or_default();
        if let Some(by) = rest.iter().position(|place| *place != NONE) {
            return Some(near.start + by as u64 + 1);
        }
        let far = (from < to).then(|| of.far.range(from..to).next()).flatten();
        far.map(|(row, _)| row + 1)
    }

    /// A segment of a file has dirty pages from now on, or has none any more.
    pub(super) fn note_dirty(&mut self, file: u64, is_dirty: bool) {
        let of = self.of_mut(file);
        if is_dirty {
            of.dirty += 1;
        } else {
            of.dirty -= 1;
        }
    }

    /// Whether a file has dirty pages.
    #[inline]
    pub(super) fn has_dirty(&self, file: u64) -> bool {
        self.of(file).is_some_and(|of| of.dirty > 0)
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
            places.remove(file, index);
            assert_eq!(places.get(file, index), None);
        }
        assert_eq!(next(&places, 0), None);
    }
}
