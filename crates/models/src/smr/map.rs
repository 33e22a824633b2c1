//! The media cache: a log of written ranges, and which of them are the newest of their sectors.

use std::collections::{BTreeMap, VecDeque};

/// A piece of a range: where it lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Piece {
    /// First sector, as the user counts.
    pub at: u64,
    pub len: u64,
    /// Its place in the media cache from the start of the medium; `None` at home in its zone.
    pub cached: Option<u64>,
}

#[derive(Clone, Copy, Debug)]
struct Extent {
    len: u64,
    /// Position in the log; its place on the medium is this modulo the size of the cache.
    position: u64,
}

/// The media cache.
#[derive(Clone, Debug)]
pub(super) struct MediaCache {
    size: u64,
    most: usize,
    /// The newest ranges in the cache, by their first sector; they do not overlap.
    extents: BTreeMap<u64, Extent>,
    /// What was appended: position, first sector, length.
    log: VecDeque<(u64, u64, u64)>,
    head: u64,
}

impl MediaCache {
    pub(super) fn new(size: u64, most: u32) -> Self {
        let log = VecDeque::new();
        Self { size, most: most as usize, extents: BTreeMap::new(), log, head: 0 }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.extents.is_empty()
    }

    /// Position after the newest range of the log.
    pub(super) fn head(&self) -> u64 {
        self.head
    }

    /// Whether a range fits now: room in the log, and for what it may split off.
    pub(super) fn has_room(&self, len: u64) -> bool {
        let tail = self.log.front().map_or(self.head, |(position, ..)| *position);
        self.head + len - tail <= self.size && self.extents.len() + 3 <= self.most.max(3)
    }

    /// The first sector that is still needed of the oldest range of the log.
    pub(super) fn oldest(&self) -> Option<u64> {
        self.log.front().and_then(|entry| self.needed(*entry))
    }

    /// The first sector of an entry of the log that was not written again or cleaned.
    fn needed(&self, (position, at, len): (u64, u64, u64)) -> Option<u64> {
        let mut from = at;
        while let Some((start, extent)) = self.first_in(from, at + len) {
            if (position..position + len).contains(&extent.position) {
                return Some(start);
            }
            from = start + extent.len;
        }
        None
    }

    /// Appends a range; gives its one or two places on the medium, as start and length.
    pub(super) fn append(&mut self, at: u64, len: u64) -> [(u64, u64); 2] {
        self.forget(at, at + len, u64::MAX);
        let position = self.head;
        self.log.push_back((position, at, len));
        let place = position % self.size;
        let first = len.min(self.size - place);
        self.extents.insert(at, Extent { len: first, position });
        if first < len {
            let rest = Extent { len: len - first, position: position + first };
            self.extents.insert(at + first, rest);
        }
        self.head += len;
        [(place, first), (0, len - first)]
    }

    /// Forgets the parts of a range that were appended before a position of the log.
    pub(super) fn forget(&mut self, start: u64, end: u64, before: u64) {
        let mut from = start;
        while let Some((at, extent)) = self.first_in(from, end) {
            from = at + extent.len;
            if extent.position >= before {
                continue;
            }
            self.extents.remove(&at);
            if at < start {
                self.extents.insert(at, Extent { len: start - at, ..extent });
            }
            if from > end {
                let position = extent.position + (end - at);
                self.extents.insert(end, Extent { len: from - end, position });
            }
        }
        self.trim();
    }

    /// The first extent that reaches into a range.
    fn first_in(&self, start: u64, end: u64) -> Option<(u64, Extent)> {
        if start >= end {
            return None;
        }
        let before = self.extents.range(..=start).next_back();
        let before = before.filter(|(at, extent)| *at + extent.len > start);
        let found = before.or_else(|| self.extents.range(start..end).next());
        found.map(|(at, extent)| (*at, *extent))
    }

    /// Drops the oldest ranges of the log of which nothing is needed.
    fn trim(&mut self) {
        while let Some(entry) = self.log.front().copied()
            && self.needed(entry).is_none()
        {
            self.log.pop_front();
        }
    }

    /// The first piece of a range.
    pub(super) fn piece(&self, start: u64, end: u64) -> Piece {
        match self.first_in(start, end) {
            None => Piece { at: start, len: end - start, cached: None },
            Some((at, _)) if at > start => Piece { at: start, len: at - start, cached: None },
            Some((at, extent)) => {
                let len = (at + extent.len).min(end) - start;
                let place = (extent.position + (start - at)) % self.size;
                Piece { at: start, len, cached: Some(place) }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use raidlab_random::SplitMix64;

    /// What is written again is needed no more, though what was written later lies there.
    #[test]
    fn the_log_begins_with_what_is_still_needed() {
        let mut cache = MediaCache::new(32, 20);
        for (at, len) in [(0, 8), (16, 8), (0, 4), (4, 4)] {
            assert!(cache.has_room(len), "{at}");
            cache.append(at, len);
        }
        assert_eq!(cache.oldest(), Some(16));
        assert!(cache.has_room(16) && !cache.has_room(17), "8 of 32 go, 16 are needed");
    }

    /// Against a list of sectors.
    #[test]
    fn pieces_are_where_they_were_put_last() {
        for seed in 0..40 {
            let mut random = SplitMix64::new(seed);
            let mut cache = MediaCache::new(256, 20);
            let mut model: Vec<Option<u64>> = vec![None; 400];
            let mut owner: Vec<Option<u64>> = vec![None; 256];
            for _ in 0..600 {
                let (at, len) = (random.below(360), 1 + random.below(40));
                let range = at as usize..(at + len) as usize;
                if random.below(3) == 0 || !cache.has_room(len) {
                    cache.forget(at, at + len, u64::MAX);
                    model[range].fill(None);
                } else {
                    let mut sector = at;
                    for (place, count) in cache.append(at, len) {
                        for place in place..place + count {
                            let stale = owner[place as usize]
                                .is_none_or(|old| model[old as usize] != Some(place));
                            assert!(stale, "a place in use is written");
                            owner[place as usize] = Some(sector);
                            model[sector as usize] = Some(place);
                            sector += 1;
                        }
                    }
                }
                let mut from = 0;
                while from < 400 {
                    let piece = cache.piece(from, 400);
                    assert!(piece.len > 0 && piece.at == from);
                    for sector in 0..piece.len {
                        let expected = piece.cached.map(|place| place + sector);
                        assert_eq!(model[(from + sector) as usize], expected, "seed {seed}");
                    }
                    from += piece.len;
                }
                assert!(cache.extents.len() <= 20);
            }
        }
    }

    #[test]
    fn what_came_later_is_kept() {
        let mut cache = MediaCache::new(256, 20);
        cache.append(0, 8);
        let head = cache.head();
        cache.append(4, 8);
        cache.forget(0, 100, head);
        assert_eq!(cache.piece(0, 20), Piece { at: 0, len: 4, cached: None });
        assert_eq!(cache.piece(4, 20), Piece { at: 4, len: 8, cached: Some(8) });
        assert_eq!(cache.oldest(), Some(4));
    }
}
