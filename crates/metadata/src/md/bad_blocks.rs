//! The list of bad blocks of a device: 64-bit entries, the first sector above ten bits of length. Sectors count from
//! the start of the device, as Linux 6.1 was seen to take them, not from that of the data.
//!
//! Fault model: a power cut between or within the writes of a list; the device writes a block of its own whole or not.
//! Why it is safe: entries are sorted and never change, so that a change of the list is entries that come in and
//! entries that go. Those that come in first, from the last block to the first, then those that go, from the first to
//! the last: what moves from one block to the next stands in both meanwhile, and in none never. A block whose write
//! failed may hold either, and is written again; a change that was not ended is gone on from as if all that was to come
//! in had come. Tests: here.

use raidlab_core::{SECTOR_BYTES, Sector, Sectors};

use crate::Put;

/// Entries that every list has room for that is written: mdadm's lists are 8 sectors.
pub const ROOM: u16 = 512;
/// What ends a list that is not full.
const END: u64 = u64::MAX;

/// The ranges that a list names, in sectors from the start of the device.
pub fn parse(bytes: &[u8], shift: u8) -> Vec<(Sector, Sectors)> {
    let (words, _) = bytes.as_chunks::<8>();
    let entries = words.iter().map(|word| u64::from_le_bytes(*word));
    let ranges = entries.take_while(|entry| *entry != END).filter_map(|entry| {
        let (at, len) = (entry >> 10, entry & 0x3ff);
        let scaled =
            |value: u64| value.checked_shl(u32::from(shift)).filter(|out| out >> shift == value);
        (len > 0).then_some((Sector(scaled(at)?), Sectors(scaled(len)?)))
    });
    ranges.collect()
}

/// Sectors of an entry at most, as Linux makes them.
const MOST_LEN: u64 = 512;
/// First sectors that an entry can say.
const MOST_AT: u64 = 1 << 54;
/// What no list that is written has anywhere: stands for what a block holds of which that is not known.
const UNKNOWN: u8 = 0;

/// A list as it stands on a device that goes on being written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct List {
    at: Sector,
    /// What stands there.
    bytes: Vec<u8>,
    /// Its entries, which count if the superblock says so.
    entries: Vec<u64>,
    /// Those that it is to have, and those of both until they are written.
    target: Vec<u64>,
    both: Vec<u64>,
    /// All that comes in is written.
    has_both: bool,
    /// The block that was put last.
    last: Option<std::ops::Range<usize>>,
}

impl List {
    /// Of a device where this stands; `counts`: its superblock says that something is in it.
    pub(super) fn new(at: Sector, bytes: Vec<u8>, counts: bool) -> Self {
        let (words, _) = bytes.as_chunks::<8>();
        let all = words.iter().map(|word| u64::from_le_bytes(*word));
        let entries: Vec<u64> = all.take_while(|entry| counts && *entry != END).collect();
        let target = entries.clone();
        Self { at, bytes, entries, target, both: Vec::new(), has_both: true, last: None }
    }

    /// Of a fresh device.
    pub(super) fn empty(at: Sector, sectors: u16) -> Self {
        Self::new(at, vec![0xff; usize::from(sectors) * SECTOR_BYTES as usize], false)
    }

    /// Whether it starts and ends on blocks of so many sectors.
    pub(super) fn is_aligned(&self, block: u64) -> bool {
        let sectors = self.bytes.len() as u64 / SECTOR_BYTES;
        self.at.0.is_multiple_of(block) && sectors.is_multiple_of(block)
    }

    /// Whether nothing is to be in it.
    pub(super) const fn is_empty(&self) -> bool {
        self.target.is_empty()
    }

    /// What is to be in it from now on, in sectors of the device; false when that does not fit, which leaves it as it
    /// was: whoever lists blocks takes a member with more out of service, and what is left out would be read as good.
    #[must_use]
    pub(super) fn set(&mut self, ranges: impl Iterator<Item = (u64, u64)>) -> bool {
        let most = self.bytes.len() / 8;
        let mut sorted: Vec<(u64, u64)> = ranges.collect();
        sorted.sort_unstable();
        let mut target = Vec::new();
        let mut listed = 0;
        for (from, to) in sorted {
            let mut at = from.max(listed);
            while at < to {
                if target.len() >= most || to >= MOST_AT {
                    return false;
                }
                let len = (to - at).min(MOST_LEN);
                target.push(at << 10 | len);
                at += len;
            }
            listed = listed.max(to);
        }
        if self.entries != self.target && self.entries.is_sorted() {
            // Of the last change some blocks are written. Those of both lists are where they would be if all had been,
            // or before that.
            std::mem::swap(&mut self.entries, &mut self.both);
        }
        self.target = target;
        self.both.clear();
        self.both.extend_from_slice(&self.entries);
        let known = &self.entries;
        self.both.extend(self.target.iter().filter(|entry| !known.contains(entry)));
        self.both.sort_unstable();
        // Where both do not fit, or another program left them in any order, the new ones stand alone.
        self.has_both = self.both.len() > most || !self.entries.is_sorted();
        true
    }

    /// Fills `into` with the next block of it that changes, of so many sectors.
    pub(super) fn put(&mut self, into: &mut [u8], block: u32) -> Option<Put> {
        let len = block.max(1) as usize * SECTOR_BYTES as usize;
        let units = self.bytes.len() / len;
        if self.entries.is_empty() && self.target.is_empty() {
            return None;
        }
        if !self.has_both {
            let all = &self.both;
            match (0..units).rev().find(|unit| !self.holds(all, *unit, len)) {
                Some(unit) => return self.write(into, unit, len),
                None => self.has_both = true,
            }
        }
        if let Some(unit) = (0..units).find(|unit| !self.holds(&self.target, *unit, len)) {
            return self.write(into, unit, len);
        }
        self.entries.clone_from(&self.target);
        None
    }

    /// The block that was put last was not written, or only perhaps.
    pub(super) fn failed(&mut self) {
        if let Some(last) = self.last.take() {
            self.bytes[last].fill(UNKNOWN);
        }
    }

    /// Something else than a block of it was put.
    pub(super) fn is_past(&mut self) {
        self.last = None;
    }

    /// The word that stands at a place of a list of these entries.
    fn word(entries: &[u64], place: usize) -> [u8; 8] {
        entries.get(place).copied().unwrap_or(END).to_le_bytes()
    }

    /// Whether a block holds its part of these entries.
    fn holds(&self, entries: &[u64], unit: usize, len: usize) -> bool {
        let (words, _) = self.bytes[unit * len..(unit + 1) * len].as_chunks::<8>();
        let first = unit * len / 8;
        (first..).zip(words).all(|(place, word)| *word == Self::word(entries, place))
    }

    fn write(&mut self, into: &mut [u8], unit: usize, len: usize) -> Option<Put> {
        let entries = if self.has_both { &self.target } else { &self.both };
        let (words, _) = self.bytes[unit * len..(unit + 1) * len].as_chunks_mut::<8>();
        for (place, word) in (unit * len / 8..).zip(words) {
            *word = Self::word(entries, place);
        }
        into.get_mut(..len)?.copy_from_slice(&self.bytes[unit * len..(unit + 1) * len]);
        self.last = Some(unit * len..(unit + 1) * len);
        let at = Sector(self.at.0 + (unit * len) as u64 / SECTOR_BYTES);
        Some(Put { at, bytes: len, more: true })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_ends_where_all_bits_are_set() {
        let mut bytes = vec![0xff; 4096];
        assert_eq!(parse(&bytes, 0), []);
        bytes[..8].copy_from_slice(&(1000 << 10 | 8_u64).to_le_bytes());
        bytes[8..16].copy_from_slice(&(5000 << 10 | 0x3ff_u64).to_le_bytes());
        let whole = [(Sector(1000), Sectors(8)), (Sector(5000), Sectors(1023))];
        assert_eq!(parse(&bytes, 0), whole);
        assert_eq!(parse(&bytes, 3), whole.map(|(at, len)| (Sector(at.0 * 8), Sectors(len.0 * 8))));
        // Shifts that no kernel writes.
        for shift in [60, 63, 64, 255] {
            let _ = parse(&bytes, shift);
        }
        // A zeroed list has entries of no length, which are none.
        assert_eq!(parse(&[0; 4096], 0), []);
    }

    /// Whatever write is the last before the power goes, and whichever fail, what was listed before and is listed after
    /// it is in the list; and in the end it says what it was to say.
    #[test]
    fn no_entry_is_missing_between_the_writes_of_a_list() {
        let mut seed = 7_u64;
        let mut next = |limit: u64| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (seed >> 33) % limit
        };
        let mut list = List::empty(Sector(24), 8);
        let mut known: Vec<u64> = Vec::new();
        let mut disk = list.bytes.clone();
        let (mut writes, mut failed) = (0, 0);
        for round in 0..200 {
            let before = known.clone();
            known.retain(|_| next(9) > 0);
            for _ in 0..next(60) {
                known.push(2 * next(4000));
            }
            known.sort_unstable();
            known.dedup();
            known.truncate(250);
            assert!(list.set(known.iter().map(|at| (*at, at + 1))));
            let block = [1, 8][round % 2];
            let mut head = vec![0; 4096];
            while let Some(put) = list.put(&mut head, block) {
                let is_written = next(12) > 0;
                if is_written || next(2) == 0 {
                    let at = ((put.at.0 - 24) * 512) as usize;
                    disk[at..at + put.bytes].copy_from_slice(&head[..put.bytes]);
                    writes += 1;
                }
                let found: Vec<u64> = parse(&disk, 0).iter().map(|(at, _)| at.0).collect();
                let kept = before.iter().filter(|one| known.contains(one));
                assert!(kept.into_iter().all(|one| found.contains(one)), "round {round}");
                if !is_written {
                    failed += 1;
                    list.failed();
                    // Something is listed, or not any more, before it is tried again.
                    known.retain(|one| before.contains(one) && next(9) > 0 || next(3) > 0);
                    for _ in 0..next(3) {
                        known.push(2 * next(4000));
                    }
                    known.sort_unstable();
                    known.dedup();
                    assert!(list.set(known.iter().map(|at| (*at, at + 1))));
                }
            }
            let found: Vec<u64> = parse(&disk, 0).iter().map(|(at, _)| at.0).collect();
            assert_eq!(found, known, "round {round}");
            assert_eq!(list.is_empty(), known.is_empty());
        }
        assert!(writes > 300 && failed > 30, "{writes} {failed}");
    }

    #[test]
    fn long_ranges_are_several_entries_and_overlapping_ones_no_more() {
        let mut list = List::empty(Sector(24), 8);
        assert!(list.set([(100, 1700), (90, 110), (1600, 1701)].into_iter()));
        let mut head = vec![0; 4096];
        assert_eq!(list.put(&mut head, 1), Some(Put { at: Sector(24), bytes: 512, more: true }));
        let found = parse(&head[..512], 0);
        assert!(found.iter().all(|(_, len)| len.0 <= 512));
        let ends: Vec<u64> = found.iter().map(|(at, len)| at.0 + len.0).collect();
        assert!(found.iter().skip(1).zip(&ends).all(|((at, _), end)| at.0 == *end), "{found:?}");
        assert_eq!((found[0].0, ends.last()), (Sector(90), Some(&1701)));
        assert_eq!(list.put(&mut head, 1), None, "nothing else changes");
    }

    /// A list has as many entries as it has room for, and none is ever left out.
    #[test]
    fn a_full_list_has_an_entry_in_every_place_and_takes_no_more() {
        let mut list = List::empty(Sector(24), 8);
        let of = |count: u64| (0..count).map(|number| (2 * number, 2 * number + 1));
        assert!(list.set(of(512)));
        let mut head = vec![0; 4096];
        list.put(&mut head, 8).expect("something is listed");
        let found = parse(&head, 0);
        assert_eq!((found.len(), found.last()), (512, Some(&(Sector(1022), Sectors(1)))));
        let before = list.clone();
        assert!(!list.set(of(513)));
        assert!(!list.set([(0, 512 * 512 + 1)].into_iter()));
        assert!(!list.set([(MOST_AT - 1, MOST_AT)].into_iter()));
        assert_eq!(list, before);
    }
}
