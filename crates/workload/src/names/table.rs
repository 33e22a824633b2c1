//! A table that finds names by their paths: open addressing with linear probing, by a hash that is the
//! same on every machine. Nothing ever goes through it in its own order.

use crate::op::FilePath;

/// An empty place.
const EMPTY: u64 = u64::MAX;

/// Hashes in places: the lower half is the entry, the upper half the hash.
#[derive(Clone, Debug)]
pub(super) struct Table {
    /// A power of two of them, at most three quarters in use.
    places: Vec<u64>,
    used: usize,
}

/// The hash of a path's root and text.
pub(super) fn hash(path: &FilePath, text: &str) -> u32 {
    let step = |state: u64, word: u64| {
        let mixed = (state ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        mixed ^ (mixed >> 29)
    };
    let (words, rest) = text.as_bytes().as_chunks::<8>();
    let start = step(path.root as u64 + 1, text.len() as u64);
    let state = words.iter().fold(start, |state, word| step(state, u64::from_le_bytes(*word)));
    let rest = rest.iter().fold(0, |word, byte| word << 8 | u64::from(*byte));
    (step(step(state, rest), 0) >> 32) as u32
}

impl Default for Table {
    fn default() -> Self {
        Self { places: vec![EMPTY; 16], used: 0 }
    }
}

impl Table {
    fn mask(&self) -> usize {
        self.places.len() - 1
    }

    /// The entry with a hash for which `is_it` holds.
    #[inline]
    pub(super) fn find(&self, hash: u32, is_it: impl Fn(u32) -> bool) -> Option<u32> {
        let mut at = hash as usize & self.mask();
        loop {
            let place = self.places[at];
            if place == EMPTY {
                return None;
            }
            if (place >> 32) as u32 == hash && is_it(place as u32) {
                return Some(place as u32);
            }
            at = (at + 1) & self.mask();
        }
    }

    /// Adds an entry, which is not there.
    pub(super) fn insert(&mut self, hash: u32, entry: u32) {
        if self.used >= self.places.len() / 4 * 3 {
            let larger = vec![EMPTY; 2 * self.places.len()];
            for place in std::mem::replace(&mut self.places, larger) {
                if place != EMPTY {
                    self.put(place);
                }
            }
        }
        self.used += 1;
        self.put(u64::from(hash) << 32 | u64::from(entry));
    }

    fn put(&mut self, place: u64) {
        let mut at = (place >> 32) as usize & self.mask();
        while self.places[at] != EMPTY {
            at = (at + 1) & self.mask();
        }
        self.places[at] = place;
    }

    /// Takes an entry out, which is there.
    pub(super) fn remove(&mut self, hash: u32, entry: u32) {
        let (mask, gone) = (self.mask(), u64::from(hash) << 32 | u64::from(entry));
        let mut hole = hash as usize & mask;
        while self.places[hole] != gone {
            if self.places[hole] == EMPTY {
                return;
            }
            hole = (hole + 1) & mask;
        }
        // Those behind it that could not be found across the hole move up.
        let mut at = hole;
        loop {
            at = (at + 1) & mask;
            let place = self.places[at];
            if place == EMPTY {
                break;
            }
            let home = (place >> 32) as usize & mask;
            if (at.wrapping_sub(home) & mask) >= (at.wrapping_sub(hole) & mask) {
                self.places[hole] = place;
                hole = at;
            }
        }
        self.places[hole] = EMPTY;
        self.used -= 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_that_share_places_are_found_until_they_go() {
        let mut table = Table::default();
        let mut there: Vec<(u32, u32)> = Vec::new();
        let mut state = 1u64;
        for step in 0..20_000u32 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let draw = (state >> 33) as u32;
            if draw % 5 < 3 || there.is_empty() {
                // Few hashes, at the end of the table too.
                let hash = u32::MAX - draw % 50;
                table.insert(hash, step);
                there.push((hash, step));
            } else {
                let (hash, entry) = there.swap_remove(draw as usize % there.len());
                table.remove(hash, entry);
                assert_eq!(table.find(hash, |one| one == entry), None);
            }
            if step % 97 == 0 {
                for (hash, entry) in &there {
                    assert_eq!(table.find(*hash, |one| one == *entry), Some(*entry));
                }
            }
        }
        assert_eq!(table.used, there.len());
    }

    #[test]
    fn paths_that_differ_have_other_hashes() {
        let texts = ["", "a", "b", "aa", "abcdefgh", "abcdefgi", "abcdefgh/a", "abcdefg"];
        let paths =
            texts.iter().flat_map(|text| [FilePath::target(*text), FilePath::source(*text)]);
        let mut hashes: Vec<u32> = paths.map(|path| hash(&path, &path.text)).collect();
        hashes.sort_unstable();
        hashes.dedup();
        assert_eq!(hashes.len(), 2 * texts.len());
    }
}
