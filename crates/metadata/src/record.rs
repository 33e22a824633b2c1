//! Records as bytes: a block of 4 KiB, with the payload of a log entry behind it.
//!
//! | at | bytes | what |
//! |---|---|---|
//! | 0 | 8 | `raidlab` and the version of the format, 1 |
//! | 8 | 4 | CRC-32C of the block, these four bytes taken as 0, and of the payload |
//! | 12 | 2 | kind: 1 superblock, 2 page of the bitmap, 3 partial parity, 4 journal entry |
//! | 14 | 2 | number of the device |
//! | 16 | 16 | identity of the array, random |
//! | 32 | 8 | sequence: of two places the one with the larger number is the newer |
//! | 40 | 4 | sectors of payload |
//! | 44 | 4 | 0 |
//! | 48 | .. | words of 8 bytes by kind, in the order of [`Record`]'s fields |
//!
//! All numbers are little-endian; what is not named is 0.

use raidlab_core::Sector;
use raidlab_core::contract::{Record, Superblock};

use crate::checksum::Checksum;
use crate::{ArrayId, Facts, Label};

/// Bytes of a record's block.
pub(super) const BLOCK: usize = 4096;

const MAGIC: [u8; 8] = *b"raidlab\x01";
const CHECKSUM: std::ops::Range<usize> = 8..12;
/// Where the words of a kind begin.
const WORDS: usize = 48;
/// Where a superblock's text begins, behind its words.
const TEXT: usize = 512;
/// The longest description of a layout that is kept.
const LONGEST_TEXT: usize = 256;

/// A block that was read and is what it says, but for its payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Block {
    pub(super) label: Label,
    pub(super) record: Record,
    checksum: u32,
}

/// Puts a record into a block, its checksum still missing.
pub(super) fn put(into: &mut [u8], label: &Label, record: &Record, facts: Option<&Facts<'_>>) {
    into.fill(0);
    into[..8].copy_from_slice(&MAGIC);
    into[14..16].copy_from_slice(&label.device.to_le_bytes());
    into[16..32].copy_from_slice(&label.array);
    into[32..40].copy_from_slice(&label.sequence.to_le_bytes());
    into[40..44].copy_from_slice(&label.payload.to_le_bytes());
    let mut at = WORDS;
    let mut word = |value: u64| {
        into[at..at + 8].copy_from_slice(&value.to_le_bytes());
        at += 8;
    };
    let kind: u16 = match *record {
        Record::Superblock(ref superblock) => {
            words_of(superblock).into_iter().for_each(&mut word);
            if let Some(facts) = facts {
                [facts.data, facts.log, facts.pages].into_iter().for_each(&mut word);
                let text = facts.layout.as_bytes();
                let text = &text[..text.len().min(LONGEST_TEXT)];
                word(text.len() as u64);
                into[TEXT..TEXT + text.len()].copy_from_slice(text);
            }
            1
        }
        Record::BitmapPage { page, bits } => {
            [u64::from(page), bits].into_iter().for_each(word);
            2
        }
        Record::PartialParity { slot, generation, stripe, from, to, written } => {
            let range = u64::from(from) | u64::from(to) << 32;
            let words = [u64::from(slot), generation, stripe, range, written[0], written[1]];
            words.into_iter().for_each(word);
            3
        }
        Record::JournalEntry { at: place, sequence, stripe, from, to, roles } => {
            let range = u64::from(from) | u64::from(to) << 32;
            let words = [place.0, sequence, stripe, range, roles[0], roles[1]];
            words.into_iter().for_each(word);
            4
        }
    };
    into[12..14].copy_from_slice(&kind.to_le_bytes());
}

/// Completes a block that [`put`] made.
pub(super) fn seal<'a>(block: &mut [u8], payload: impl Iterator<Item = &'a [u8]>) {
    let value = checksum(block, payload);
    block[CHECKSUM].copy_from_slice(&value.to_le_bytes());
}

fn checksum<'a>(block: &[u8], payload: impl Iterator<Item = &'a [u8]>) -> u32 {
    let mut checksum = Checksum::default();
    checksum.add(&block[..CHECKSUM.start]);
    checksum.add(&[0; 4]);
    checksum.add(&block[CHECKSUM.end..BLOCK]);
    payload.for_each(|part| checksum.add(part));
    checksum.value()
}

/// Looks at a block: `None` when it is no record of this format, whose payload is not looked at yet.
pub(super) fn look(block: &[u8]) -> Option<Block> {
    if block.len() < BLOCK || block[..8] != MAGIC {
        return None;
    }
    let u16_at = |at: usize| u16::from_le_bytes([block[at], block[at + 1]]);
    let u32_at =
        |at: usize| u32::from_le_bytes([block[at], block[at + 1], block[at + 2], block[at + 3]]);
    let word = |n: usize| word_at(block, WORDS + 8 * n);
    let (low, high) = (word(3) as u32, (word(3) >> 32) as u32);
    let record = match u16_at(12) {
        1 => Record::Superblock(superblock_of(block)),
        2 => Record::BitmapPage { page: u32::try_from(word(0)).ok()?, bits: word(1) },
        3 => Record::PartialParity {
            slot: u32::try_from(word(0)).ok()?,
            generation: word(1),
            stripe: word(2),
            from: low,
            to: high,
            written: [word(4), word(5)],
        },
        4 => Record::JournalEntry {
            at: Sector(word(0)),
            sequence: word(1),
            stripe: word(2),
            from: low,
            to: high,
            roles: [word(4), word(5)],
        },
        _ => return None,
    };
    let mut array = ArrayId::default();
    array.copy_from_slice(&block[16..32]);
    let label =
        Label { array, device: u16_at(14), sequence: word_at(block, 32), payload: u32_at(40) };
    Some(Block { label, record, checksum: u32_at(CHECKSUM.start) })
}

impl Block {
    /// Whether block and payload are as they were sealed.
    pub(super) fn is_whole(&self, block: &[u8], payload: &[u8]) -> bool {
        checksum(block, std::iter::once(payload)) == self.checksum
    }
}

/// What a superblock's block says of its device.
pub(super) fn facts(block: &[u8]) -> Facts<'_> {
    let word = |n: usize| word_at(block, WORDS + 8 * n);
    let len = (word(14) as usize).min(LONGEST_TEXT);
    let layout = std::str::from_utf8(&block[TEXT..TEXT + len]).unwrap_or_default();
    Facts { data: word(11), log: word(12), pages: word(13), layout }
}

fn word_at(block: &[u8], at: usize) -> u64 {
    block[at..].first_chunk().map_or(0, |word| u64::from_le_bytes(*word))
}

/// The words of a superblock, 11 in all.
fn words_of(superblock: &Superblock) -> [u64; 11] {
    let Superblock { events, failed, rebuilding, clean, journal, by_bitmap, .. } = *superblock;
    let flags = u64::from(clean) | u64::from(journal) << 1 | u64::from(by_bitmap) << 2;
    [
        events,
        failed[0],
        failed[1],
        rebuilding[0],
        rebuilding[1],
        flags,
        superblock.rebuilt_to.0,
        superblock.synced_to.0,
        superblock.journal_tail,
        superblock.bitmap_since,
        0,
    ]
}

fn superblock_of(block: &[u8]) -> Superblock {
    let word = |n: usize| word_at(block, WORDS + 8 * n);
    let flag = |n: u32| word(5) >> n & 1 == 1;
    Superblock {
        events: word(0),
        failed: [word(1), word(2)],
        rebuilding: [word(3), word(4)],
        clean: flag(0),
        journal: flag(1),
        by_bitmap: flag(2),
        rebuilt_to: Sector(word(6)),
        synced_to: Sector(word(7)),
        journal_tail: word(8),
        bitmap_since: word(9),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn records() -> Vec<Record> {
        let superblock = Superblock {
            events: 1 << 60,
            failed: [5, 1 << 63],
            rebuilding: [2, 9],
            clean: true,
            journal: false,
            by_bitmap: true,
            rebuilt_to: Sector(77),
            synced_to: Sector(u64::MAX),
            journal_tail: 3,
            bitmap_since: 4,
        };
        let (stripe, from, to) = (u64::MAX, 7, u32::MAX);
        vec![
            Record::Superblock(superblock),
            Record::Superblock(Superblock { journal: true, ..Superblock::default() }),
            Record::BitmapPage { page: 3, bits: u64::MAX - 1 },
            Record::PartialParity { slot: 9, generation: 8, stripe, from, to, written: [1, 2] },
            Record::JournalEntry { at: Sector(64), sequence: 5, stripe, from, to, roles: [3, 4] },
        ]
    }

    fn label(payload: u32) -> Label {
        Label { array: [7; 16], device: 2, sequence: u64::MAX - 3, payload }
    }

    #[test]
    fn what_is_put_down_is_found() {
        let payload = [0xa5u8; 1024];
        let facts = Facts { data: 1 << 40, log: 9, pages: 4, layout: "raid5(4)" };
        for record in records() {
            let mut block = vec![0xee; BLOCK];
            put(&mut block, &label(2), &record, Some(&facts));
            seal(&mut block, payload.chunks(512));
            let found = look(&block).expect("a record");
            assert_eq!((found.label, found.record), (label(2), record));
            assert!(found.is_whole(&block, &payload));
            if matches!(record, Record::Superblock(_)) {
                assert_eq!(super::facts(&block), facts);
            }
        }
    }

    #[test]
    fn no_flipped_bit_is_taken() {
        for record in records() {
            let mut block = vec![0; BLOCK];
            put(&mut block, &label(1), &record, None);
            let mut payload = [3u8; 512];
            seal(&mut block, std::iter::once(&payload[..]));
            for at in (0..BLOCK).step_by(7) {
                block[at] ^= 0x10;
                let taken = look(&block).is_some_and(|found| found.is_whole(&block, &payload));
                assert!(!taken, "{record:?}: byte {at}");
                block[at] ^= 0x10;
            }
            payload[511] ^= 1;
            assert!(!look(&block).expect("a record").is_whole(&block, &payload));
        }
    }

    #[test]
    fn strange_bytes_are_no_record() {
        for bytes in [vec![], vec![0; 10], vec![0; BLOCK], vec![0xff; BLOCK]] {
            assert_eq!(look(&bytes), None);
        }
        let mut block = vec![0xff; BLOCK];
        block[..8].copy_from_slice(&MAGIC);
        assert_eq!(look(&block), None, "an unknown kind");
        block[12..14].copy_from_slice(&1u16.to_le_bytes());
        let found = look(&block).expect("looks like one");
        assert!(!found.is_whole(&block, &[]));
        assert_eq!(facts(&block).layout, "");
    }
}
