//! Writing a journal as md does in its write-through mode: each block has data and parity of whole rows.
//!
//! Why it is safe: blocks of a device are written one after another, each durable with its pages before the next, so
//! that what the array has been answered is never behind one that is torn. The ring is four times what the array takes
//! of it at once; the tail stays at a block that is written out, as md's does, so that it always names a block.

use std::collections::VecDeque;

use raidlab_core::consistency::ArrayId;
use raidlab_core::contract::{MemberBits, Record};
use raidlab_core::{Sector, Sectors};

use super::{BLOCK, DATA, HEAD, ITEM, JournalBlock, PAGE, PARITY, Ring, Shape, TURNS, raw, seal};
use crate::md::Superblock;
use crate::md::fields::put;
use crate::{Put, Source};

/// Rows of an entry of the array, to be logged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoggedRows {
    /// The entry's number.
    sequence: u64,
    stripe: u64,
    /// Sectors of the stripe on each member.
    from: u64,
    to: u64,
    /// Which pages of a row are logged, by their order in the payload, and of which chunk: parity last.
    order: Vec<(u16, u16)>,
    /// Parity is logged, too.
    has_parity: bool,
}

impl LoggedRows {
    /// How many there are.
    pub const fn count(&self) -> u64 {
        (self.to - self.from) / PAGE
    }

    /// Where the pages of a row lie in the payload, in sectors from its start, in the order in which they are logged.
    pub fn pages(&self, row: u64) -> impl Iterator<Item = u64> {
        let rows = self.to - self.from;
        self.order.iter().map(move |(index, _)| u64::from(*index) * rows + row * PAGE)
    }
}

/// A journal that is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Journal {
    ring: Ring,
    shape: Shape,
    array: ArrayId,
    /// The place and the number of the next block.
    next: (u64, u64),
    /// What the superblock names.
    tail: u64,
    /// Where that of the last one was.
    before: (u64, u64),
    /// The largest number of an entry in each block since, and its place.
    blocks: VecDeque<(u64, u64)>,
    /// The block that is put together: what it lists, sectors of its pages, the largest number of an entry.
    block: Vec<u8>,
    pages: u64,
    newest: u64,
}

impl Journal {
    /// Of a device whose journal was begun anew; `None` where something would be replayed.
    pub fn of(device: &mut dyn Source, one: &Superblock) -> Option<Self> {
        let (ring, shape) = (Ring::of(one, device.sectors().0)?, Shape::of(one)?);
        let tail = one.recovery;
        if tail >= ring.sectors || !tail.is_multiple_of(PAGE) {
            return None;
        }
        let bytes = ring.read(device, tail).ok()?;
        let block = JournalBlock::parse(&bytes, &one.array, tail)?;
        let next = (ring.behind(tail, PAGE), block.sequence.wrapping_add(1));
        let journal = Self {
            ring,
            shape,
            array: one.array,
            next,
            before: next,
            tail,
            blocks: VecDeque::new(),
            block: Vec::with_capacity(BLOCK),
            pages: 0,
            newest: 0,
        };
        (!block.has_payload()).then_some(journal)
    }

    /// Sectors that the array may have in it.
    pub fn most(&self) -> Sectors {
        Sectors(self.ring.sectors / TURNS)
    }

    /// What is logged for an entry of the array; `None` of another record, or of one that is not in whole pages.
    /// Without one of several parities no parity is logged: md logs both or none, and makes what is missing from the
    /// data.
    pub fn rows(&self, record: &Record) -> Option<LoggedRows> {
        let Record::JournalEntry { sequence, stripe, from, to, roles, .. } = *record else {
            return None;
        };
        let is_set = |role: u64| role < 128 && roles[role as usize / 64] >> (role % 64) & 1 == 1;
        let parity = self.shape.data..self.shape.data + self.shape.parities;
        let has_parity = parity.clone().all(is_set);
        let most = if has_parity { parity.end } else { self.shape.data };
        let set = (0..parity.end).filter(|role| is_set(*role));
        let order = (0..).zip(set).filter(|(_, role)| *role < most);
        let order = order.map(|(index, role)| (index, role as u16)).collect();
        let (from, to) = (u64::from(from), u64::from(to));
        let is_whole = from < to && from.is_multiple_of(PAGE) && to.is_multiple_of(PAGE);
        is_whole.then_some(LoggedRows { sequence, stripe, from, to, order, has_parity })
    }

    /// The entry of the array that this is: for who logs by himself.
    pub fn entry(&self, row: u64, roles: MemberBits) -> Record {
        let (stripe, from) = (row / self.shape.chunk, row % self.shape.chunk);
        let (from, to) = (from as u32, (from + PAGE) as u32);
        Record::JournalEntry { at: Sector(0), sequence: 0, stripe, from, to, roles, settled: 0 }
    }

    /// The checksum of a page.
    pub fn sum<'a>(&self, page: impl Iterator<Item = &'a [u8]>) -> u32 {
        page.fold(raw(!0, &self.array), raw)
    }

    /// The place and the number of the next block.
    pub fn next(&self) -> (u64, u64) {
        self.next
    }

    /// Begins a block.
    pub fn begin(&mut self) {
        self.block.clear();
        (self.pages, self.newest) = (0, 0);
    }

    /// Whether a row more has room in the block that was begun, and before the end of the ring.
    pub fn takes(&self, rows: &LoggedRows) -> bool {
        let pages = self.pages + rows.order.len() as u64 * PAGE;
        // An item for each, and a checksum more for Q.
        let listed = rows.order.len() * (ITEM + 4);
        HEAD + self.block.len() + listed <= BLOCK && self.next.0 + PAGE + pages <= self.ring.sectors
    }

    /// Adds a row, whose pages have these checksums.
    pub fn add(&mut self, rows: &LoggedRows, row: u64, sums: &[u32]) {
        let Shape { chunk, data, parities, .. } = self.shape;
        let from = rows.from + row * PAGE;
        let first_parity = rows.order.len() - if rows.has_parity { parities as usize } else { 0 };
        for ((_, role), sum) in rows.order.iter().zip(sums).take(first_parity) {
            let at = (rows.stripe * data + u64::from(*role)) * chunk + from;
            item(&mut self.block, DATA, at, &[*sum]);
        }
        if rows.has_parity {
            let at = rows.stripe * chunk + from;
            item(&mut self.block, PARITY, at, &sums[first_parity..]);
        }
        self.pages += rows.order.len() as u64 * PAGE;
        self.newest = self.newest.max(rows.sequence);
    }

    /// Fills `head` with the block, whose pages follow it; `None` when that would go over what is not written out. One
    /// without rows is what fills the ring up to its end, where no row has room.
    pub fn put(&mut self, head: &mut [u8]) -> Option<Put> {
        self.before = self.next;
        let (position, sequence) = self.next;
        let taken = (position + self.ring.sectors - self.tail) % self.ring.sectors;
        if taken + PAGE + self.pages >= self.ring.sectors || self.block.len() > BLOCK - HEAD {
            return None;
        }
        let head = head.get_mut(..BLOCK)?;
        head.fill(0);
        head[HEAD..HEAD + self.block.len()].copy_from_slice(&self.block);
        seal(head, &self.array, (sequence, position), HEAD + self.block.len());
        self.next = (self.ring.behind(position, PAGE + self.pages), sequence.wrapping_add(1));
        let newest = self.newest.max(self.blocks.back().map_or(0, |one| one.0));
        self.blocks.push_back((newest, position));
        Some(Put { at: Sector(self.ring.at + position), bytes: BLOCK, more: false })
    }

    /// The last block was not written, for want of room, say: the next one takes its place and number. Behind a place
    /// where none stands recovery looks for no others.
    pub(in crate::md) fn failed(&mut self) {
        if self.next != self.before {
            self.next = self.before;
            self.blocks.pop_back();
        }
    }

    /// Entries below this number are written out: the tail that the superblock is to name, that of the last block with
    /// such entries only. What is written over after that is none of what is replayed from there on.
    pub(in crate::md) fn retire(&mut self, below: u64) -> u64 {
        while let Some((newest, position)) = self.blocks.front().copied()
            && newest < below
        {
            self.tail = position;
            self.blocks.pop_front();
        }
        self.tail
    }

    /// Whether blocks start on what the device writes together.
    pub(in crate::md) fn is_aligned(&self, block: u64) -> bool {
        self.ring.at.is_multiple_of(block)
    }
}

/// Adds an item to what a block lists.
fn item(block: &mut Vec<u8>, kind: u16, at: u64, sums: &[u32]) {
    let start = block.len();
    block.resize(start + ITEM, 0);
    put(block, start, kind.to_le_bytes());
    put(block, start + 4, (sums.len() as u32 * PAGE as u32).to_le_bytes());
    put(block, start + 8, at.to_le_bytes());
    block.extend(sums.iter().flat_map(|sum| sum.to_le_bytes()));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::md::ppl::tests::{Disk, kernels};
    use crate::md::{Features, JournalFound, Role, journal};

    /// What Linux 6.1 wrote of 4 KiB at 12 KiB of an array of three with chunks of 64 KiB.
    const KERNELS: &str = "09c53364b1cb94a20100000048000000d93ba5940000000030020000000000000000000008000000\
                           1800000000000000d9b0fc1b01000000080000001800000000000000b9a07786";
    const FIRST: u64 = 0x94a5_3bd9;

    fn superblock(level: i32, members: u32, (tail, ring): (u64, u64)) -> Superblock {
        let one = kernels();
        let array = 0xf6de_d789_dabc_467c_2e33_d909_225d_8d04_u128.to_be_bytes();
        let (aside, features) = (crate::md::Aside::Nothing, Features::JOURNAL);
        let roles = vec![Role::Member(0), Role::Member(1), Role::Journal];
        Superblock {
            array,
            aside,
            features,
            roles,
            level,
            members,
            data_offset: 2048,
            data_size: ring,
            recovery: tail,
            ..one
        }
    }

    /// A journal whose next block has this number and stands in this place.
    fn begun(one: &Superblock, sequence: u64) -> (Disk, Journal) {
        // As many sectors behind 2048 as the ring has.
        let mut disk = Disk(vec![0; (2048 + one.data_size as usize) * 512]);
        let found =
            JournalFound { next: Some((one.recovery, sequence - 10_001)), ..Default::default() };
        let (at, block) = journal::begin_anew(&one.array, &found, 0);
        disk.0[(2048 + at as usize) * 512..][..BLOCK].copy_from_slice(&block);
        let journal = Journal::of(&mut disk, one).unwrap();
        (disk, journal)
    }

    fn record(stripe: u64, (from, to): (u32, u32), roles: u64, sequence: u64) -> Record {
        let roles = [roles, 0];
        Record::JournalEntry { at: Sector(0), sequence, stripe, from, to, roles, settled: 0 }
    }

    #[test]
    fn blocks_are_what_the_kernel_writes() {
        let (_, mut journal) = begun(&superblock(5, 3, (552, 8192)), FIRST);
        let rows = journal.rows(&record(0, (0x18, 0x20), 0b101, 1)).unwrap();
        assert_eq!((rows.count(), rows.pages(0).collect::<Vec<_>>()), (1, vec![0, 8]));
        let sums = [b'B', b'A' ^ b'B'].map(|byte| journal.sum([&[byte; BLOCK][..]].into_iter()));
        journal.begin();
        assert!(journal.takes(&rows));
        journal.add(&rows, 0, &sums);
        let mut head = vec![0xaa; BLOCK];
        let put = journal.put(&mut head).unwrap();
        assert_eq!(put, Put { at: Sector(2048 + 560), bytes: BLOCK, more: false });
        let digit = |at: usize| u8::from_str_radix(&KERNELS[at..at + 2], 16).unwrap();
        let wanted: Vec<u8> = (0..KERNELS.len()).step_by(2).map(digit).collect();
        assert!(head.starts_with(&wanted) && head[wanted.len()..].iter().all(|byte| *byte == 0));
        assert_eq!(journal.next, (584, FIRST + 1));
    }

    /// Writes an entry row by row; gives where its blocks went.
    fn write(disk: &mut Disk, journal: &mut Journal, record: &Record) -> Vec<u64> {
        let rows = journal.rows(record).unwrap();
        let (mut row, mut places) = (0, Vec::new());
        while row < rows.count() {
            journal.begin();
            let mut content = Vec::new();
            while row < rows.count() && journal.takes(&rows) {
                let pages: Vec<_> = rows.pages(row).map(|at| vec![at as u8; BLOCK]).collect();
                let sums: Vec<u32> =
                    pages.iter().map(|page| journal.sum([&page[..]].into_iter())).collect();
                journal.add(&rows, row, &sums);
                content.extend(pages.concat());
                row += 1;
            }
            let mut head = vec![0; BLOCK];
            let put = journal.put(&mut head).unwrap();
            head.extend(content);
            disk.0[put.at.bytes() as usize..][..head.len()].copy_from_slice(&head);
            places.push(put.at.0 - 2048);
        }
        places
    }

    #[test]
    fn what_is_written_is_found_from_the_tail_on() {
        for (level, members, roles, width) in
            [(5, 3, 0b111, 3), (6, 4, 0b1111, 4), (5, 3, 0b011, 2), (6, 4, 0b0111, 2)]
        {
            let one = superblock(level, members, (0, 4096));
            let (mut disk, mut journal) = begun(&one, 20_000);
            let mut begins = Vec::new();
            for number in 1..40 {
                let stripe = number % 5;
                let entry = record(stripe, (0, 64), roles, number);
                begins.push(write(&mut disk, &mut journal, &entry)[0]);
                // What was written so far but two is written out.
                let below = number.saturating_sub(1);
                let tail = journal.retire(below);
                let known = Superblock { recovery: tail, ..one.clone() };
                let found = journal::recover(&mut disk, &known).unwrap();
                assert_eq!(found.next, Some(journal.next), "{level} {roles:b} {number}");
                let is_there = |row: u64| found.rows.get(&(stripe * 128 + row));
                for row in (0..64).step_by(8) {
                    let row = is_there(row).unwrap();
                    let pages = row.data.len() + row.alone.len();
                    let parity = if row.parity.is_some() { members as usize - pages } else { 0 };
                    assert_eq!(pages + parity, width, "{level} {roles:b} {number}");
                }
            }
            // The ring has come around.
            assert!(begins.windows(2).any(|two| two[1] < two[0]));
        }
    }

    #[test]
    fn a_block_that_was_not_written_leaves_no_gap() {
        let one = superblock(5, 3, (0, 1024));
        let (mut disk, mut journal) = begun(&one, 20_000);
        write(&mut disk, &mut journal, &record(0, (0, 8), 0b111, 1));
        let after_first = journal.next();
        let mut elsewhere = Disk(disk.0.clone());
        write(&mut elsewhere, &mut journal, &record(1, (0, 8), 0b111, 2));
        journal.failed();
        journal.failed();
        assert_eq!(journal.next(), after_first);
        write(&mut disk, &mut journal, &record(1, (0, 8), 0b111, 2));
        let found = journal::recover(&mut disk, &one).unwrap();
        assert_eq!(found.rows.keys().copied().collect::<Vec<_>>(), [0, 128]);
        // It is retired once.
        assert_eq!(journal.retire(2), 8);
    }

    #[test]
    fn what_is_not_written_out_is_not_written_over() {
        let (mut disk, mut journal) = begun(&superblock(5, 3, (0, 1024)), 20_000);
        assert_eq!(journal.most(), Sectors(256));
        let before = journal.clone();
        write(&mut disk, &mut journal, &record(0, (0, 128), 0b111, 1));
        write(&mut disk, &mut journal, &record(1, (0, 128), 0b111, 2));
        let full = |journal: &mut Journal| {
            let rows = journal.rows(&record(2, (0, 128), 0b111, 3)).unwrap();
            let mut head = vec![0; BLOCK];
            (0..40).any(|_| {
                journal.begin();
                if journal.takes(&rows) {
                    journal.add(&rows, 0, &[0; 3]);
                }
                journal.put(&mut head).is_none()
            })
        };
        let mut going_on = journal.clone();
        assert!(full(&mut going_on), "its start is not free");
        assert_eq!(journal.retire(1), 0, "nothing is written out");
        assert!(journal.retire(3) > 0 && before.tail == 0);
        for record in [
            record(0, (4, 12), 0b111, 1),
            record(0, (8, 8), 0b111, 1),
            Record::BitmapPage { page: 0, bits: 0 },
        ] {
            assert_eq!(journal.rows(&record), None, "{record:?}");
        }
    }
}
