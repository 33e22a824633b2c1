//! Records as bytes: a block of 4 KiB of which the first 512 bytes count, with the payload of a log entry behind it.
//!
//! | at | bytes | what |
//! |---|---|---|
//! | 0 | 8 | `raidlab` and the version of the format, 2 |
//! | 8 | 4 | CRC-32C of the first 512 bytes, these four taken as 0 |
//! | 12 | 2 | kind: 0 nothing yet, 1 superblock, 2 page of the bitmap, 3 partial parity, 4 journal entry |
//! | 14 | 2 | number of the device |
//! | 16 | 16 | identity of the array, random |
//! | 32 | 8 | sequence: of two places the one with the larger number is the newer |
//! | 40 | 4 | sectors of payload |
//! | 44 | 4 | CRC-32C of the payload |
//! | 48 | 8 | the sector of the device that this is |
//! | 56 | .. | words of 8 bytes by kind, in the order of [`Record`]'s fields |
//!
//! All numbers are little-endian; what is not named is 0.

use raidlab_core::Sector;
use raidlab_core::consistency::Parameters;
use raidlab_core::contract::Record;

use crate::checksum::Checksum;
use crate::{ArrayId, Label, superblock};

/// Bytes of a record's block.
pub(super) const BLOCK: usize = 4096;
/// Bytes of a block in which all lies that it says: a sector.
pub(super) const SEALED: usize = 512;
/// No array gets this far: a number beyond is none of its own.
pub(super) const MOST_NUMBER: u64 = 1 << 62;

const NAME: &[u8; 7] = b"raidlab";
const VERSION: u8 = 2;
const CHECKSUM: std::ops::Range<usize> = 8..12;
const PAYLOAD_CHECKSUM: std::ops::Range<usize> = 44..48;
/// Where the words of a kind begin.
pub(super) const WORDS: usize = 56;

/// What a block is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::large_enum_variant, reason = "there is one at a time, while a block is looked at")]
pub(super) enum Stands {
    /// Zeroes.
    Blank,
    /// Made ready, and nothing was recorded yet.
    Vacant(Label),
    /// A record as it was sealed, but for its payload.
    Record(Block),
    /// The first bytes are this format's, the rest is not as any record was sealed.
    Damaged,
    /// Of another version of this format.
    Version(u8),
    /// Anything else.
    Strange,
}

/// A record whose payload is not looked at yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Block {
    pub(super) label: Label,
    pub(super) record: Record,
    payload_checksum: u32,
}

/// Puts a record, or that there is none yet, into a block, its checksums still missing.
pub(super) fn put(
    into: &mut [u8],
    label: &Label,
    record: Option<&Record>,
    parameters: Option<&Parameters>,
) {
    into.fill(0);
    into[..7].copy_from_slice(NAME);
    into[7] = VERSION;
    into[14..16].copy_from_slice(&label.device.to_le_bytes());
    into[16..32].copy_from_slice(&label.array);
    into[32..40].copy_from_slice(&label.sequence.to_le_bytes());
    into[40..44].copy_from_slice(&label.payload.to_le_bytes());
    into[48..56].copy_from_slice(&label.at.0.to_le_bytes());
    let kind: u16 = match record {
        None => 0,
        Some(Record::Superblock(said)) => {
            superblock::put(into, said, parameters);
            1
        }
        Some(Record::BitmapPage { page, bits }) => {
            put_words(into, &[u64::from(*page), *bits]);
            2
        }
        Some(Record::PartialParity { slot, generation, stripe, from, to, written, settled }) => {
            let range = u64::from(*from) | u64::from(*to) << 32;
            let ([first, second], [known, end]) = (*written, *settled);
            let slot = u64::from(*slot);
            put_words(into, &[slot, *generation, *stripe, range, first, second, known, end]);
            3
        }
        Some(Record::JournalEntry { at, sequence, stripe, from, to, roles, settled }) => {
            let range = u64::from(*from) | u64::from(*to) << 32;
            put_words(into, &[at.0, *sequence, *stripe, range, roles[0], roles[1], *settled]);
            4
        }
    };
    into[12..14].copy_from_slice(&kind.to_le_bytes());
}

/// Puts words down where those of a kind begin.
pub(super) fn put_words(into: &mut [u8], words: &[u64]) {
    for (place, word) in into[WORDS..SEALED].chunks_exact_mut(8).zip(words) {
        place.copy_from_slice(&word.to_le_bytes());
    }
}

/// Completes a block that [`put`] made.
pub(super) fn seal<'a>(block: &mut [u8], payload: impl Iterator<Item = &'a [u8]>) {
    let mut sum = Checksum::default();
    payload.for_each(|part| sum.add(part));
    block[PAYLOAD_CHECKSUM].copy_from_slice(&sum.value().to_le_bytes());
    let value = checksum(block);
    block[CHECKSUM].copy_from_slice(&value.to_le_bytes());
}

fn checksum(block: &[u8]) -> u32 {
    let mut sum = Checksum::default();
    sum.add(&block[..CHECKSUM.start]);
    sum.add(&[0; 4]);
    sum.add(&block[CHECKSUM.end..SEALED]);
    sum.value()
}

/// Looks at a block, of which the first 512 bytes suffice.
pub(super) fn look(block: &[u8]) -> Stands {
    if block.len() < SEALED {
        return Stands::Strange;
    }
    if block[..7] != *NAME {
        let is_blank = block[..SEALED].iter().all(|byte| *byte == 0);
        return if is_blank { Stands::Blank } else { Stands::Strange };
    }
    if block[7] != VERSION {
        return Stands::Version(block[7]);
    }
    if checksum(block) != u32_at(block, CHECKSUM.start) {
        return Stands::Damaged;
    }
    let label = label(block);
    if label.sequence > MOST_NUMBER {
        return Stands::Damaged;
    }
    if kind(block) == 0 {
        return Stands::Vacant(label);
    }
    let payload_checksum = u32_at(block, PAYLOAD_CHECKSUM.start);
    match record(block) {
        Some(record) => Stands::Record(Block { label, record, payload_checksum }),
        None => Stands::Damaged,
    }
}

/// What the block of a record says of itself.
fn label(block: &[u8]) -> Label {
    let mut array = ArrayId::default();
    array.copy_from_slice(&block[16..32]);
    Label {
        array,
        device: u16::from_le_bytes([block[14], block[15]]),
        sequence: word_at(block, 32),
        payload: u32_at(block, 40),
        at: Sector(word_at(block, 48)),
    }
}

fn record(block: &[u8]) -> Option<Record> {
    let word = |n: usize| word_at(block, WORDS + 8 * n);
    let (low, high) = (word(3) as u32, (word(3) >> 32) as u32);
    Some(match kind(block) {
        1 => Record::Superblock(superblock::said(block)?),
        2 => Record::BitmapPage { page: u32::try_from(word(0)).ok()?, bits: word(1) },
        3 => Record::PartialParity {
            slot: u32::try_from(word(0)).ok()?,
            generation: word(1),
            stripe: word(2),
            from: low,
            to: high,
            written: [word(4), word(5)],
            settled: [word(6), word(7)],
        },
        4 => Record::JournalEntry {
            at: Sector(word(0)),
            sequence: word(1),
            stripe: word(2),
            from: low,
            to: high,
            roles: [word(4), word(5)],
            settled: word(6),
        },
        _ => return None,
    })
}

impl Block {
    /// Whether a payload is as it was sealed.
    pub(super) fn holds(&self, payload: &[u8]) -> bool {
        let mut sum = Checksum::default();
        sum.add(payload);
        self.is_sum(sum)
    }

    /// Whether the checksum of a payload is this.
    pub(super) fn is_sum(&self, sum: Checksum) -> bool {
        sum.value() == self.payload_checksum
    }
}

fn kind(block: &[u8]) -> u16 {
    u16::from_le_bytes([block[12], block[13]])
}

fn u32_at(block: &[u8], at: usize) -> u32 {
    block[at..].first_chunk().map_or(0, |word| u32::from_le_bytes(*word))
}

/// The word of 8 bytes at a byte of a block.
pub(super) fn word_at(block: &[u8], at: usize) -> u64 {
    block[at..].first_chunk().map_or(0, |word| u64::from_le_bytes(*word))
}
