//! The journal of raid4, raid5 and raid6: a ring of blocks on the log device, each followed by the pages that it lists.
//!
//! Everything is counted in pages of 4 KiB: a block, a page of a chunk, one of P or of Q. A row is what lies in one
//! page of each member. A block is found by its place and number, starting at the tail that the log device's superblock
//! names; it counts when each of its pages is as it was sealed. Data of a row whose parity follows are replayed as they
//! stand; data without it are what md keeps in its write-back mode, and parity is made of them.
//!
//! Fault model: any bytes at all; the newest blocks, or their pages, may be torn. What counts after a crash is what md
//! counts: the blocks that follow one another from the tail on. Writing: [`write`].
//! Tests: below, `tests/md/journal.rs`, power cuts in `crates/engine/tests/md_journal.rs`, against the kernel
//! `crates/engine/tests/md_journal_guest.rs`.

mod added;
mod replay;
mod write;

use std::collections::BTreeMap;

use raidlab_core::consistency::ArrayId;
use raidlab_core::{Sector, Sectors};

use super::fields::{put, u16_at, u32_at, u64_at};
use super::logs::{BLOCK, JOURNAL_MAGIC, raw};
use super::{Impossible, JournalBlock, Role, Superblock};
use crate::Source;

pub use added::{AddedJournal, add};
pub use replay::{Replay, ReplayDevices, ReplayError, Replayed};
pub use write::{Journal, LoggedRows};

/// Sectors of a page.
pub const PAGE: u64 = BLOCK as u64 / 512;
/// Bytes of a block before what it lists.
const HEAD: usize = 32;
/// Bytes of an item before its checksums.
const ITEM: usize = 16;
/// So much larger are the numbers of blocks after a start: what is left of the ring is none of what follows then.
const GAP: u64 = 10_000;
/// How many times what the array takes of a journal fits into it: heads of blocks, the end of a turn and what stays
/// behind the tail need room, too.
pub const TURNS: u64 = 4;
/// Pages of the smallest ring that is written.
const LEAST_PAGES: u64 = 64;
/// Pages of the heads that an entry of the array has at most: of its blocks, and where the ring comes around.
pub const MOST_HEADS: u64 = 3;

const DATA: u16 = 0;
const PARITY: u16 = 1;
const FLUSHED: u16 = 2;

/// Sectors of the smallest ring of an array of so many members: the array takes a row at once.
pub const fn least(members: u64) -> u64 {
    let pages = TURNS * (members + MOST_HEADS);
    PAGE * if pages > LEAST_PAGES { pages } else { LEAST_PAGES }
}

/// That a log device has room behind where data start, in sectors, on as many members.
pub(super) fn check_room(device: Sectors, from: u64, members: u64) -> Result<(), Impossible> {
    let least = Sectors(from + least(members));
    if device >= least {
        return Ok(());
    }
    Err(Impossible(format!(
        "the log device has {device}, and needs {least}: data would start at {} of it, as on members",
        Sectors(from)
    )))
}

/// What a journal cannot be replayed for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JournalDamage {
    /// It lies outside of its device, or is too small.
    Place,
    /// The superblock's tail is none of its places.
    Tail(u64),
    /// This place of it cannot be read.
    Unreadable(u64),
    /// The block in this place is sealed, and lists what cannot be.
    Impossible(u64, &'static str),
}

impl JournalDamage {
    /// The sector of the log device that it is about.
    pub fn at(&self, one: &Superblock) -> Option<Sector> {
        match self {
            Self::Unreadable(at) | Self::Impossible(at, _) => Some(Sector(one.data_offset + at)),
            Self::Place | Self::Tail(_) => None,
        }
    }
}

impl std::fmt::Display for JournalDamage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Place => f.write_str("the journal lies outside of its device, or has no room"),
            Self::Tail(tail) => write!(f, "the journal's tail, sector {tail}, is no place of it"),
            Self::Unreadable(at) => write!(f, "sector {at} of the journal cannot be read"),
            Self::Impossible(at, what) => {
                write!(f, "the block in sector {at} of the journal is sealed and lists {what}")
            }
        }
    }
}

/// Where the ring of a log device lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ring {
    /// Its first sector on the device.
    at: u64,
    /// Whole pages.
    sectors: u64,
}

impl Ring {
    /// `None` of a device without, or of one that is smaller than its superblock says.
    fn of(one: &Superblock, device: u64) -> Option<Self> {
        let sectors = one.data_size / PAGE * PAGE;
        let end = one.data_offset.checked_add(sectors)?;
        let has_room = sectors >= LEAST_PAGES * PAGE && end <= device;
        (one.role() == Role::Journal && has_room).then_some(Self { at: one.data_offset, sectors })
    }

    /// The place that lies so many sectors behind another one; less than a turn.
    const fn behind(&self, position: u64, sectors: u64) -> u64 {
        (position + sectors) % self.sectors
    }

    fn read(&self, device: &mut dyn Source, position: u64) -> Result<Vec<u8>, JournalDamage> {
        let mut bytes = vec![0; BLOCK];
        let read = device.read(Sector(self.at + position), &mut bytes);
        read.map(|()| bytes).map_err(|_| JournalDamage::Unreadable(position))
    }
}

/// How rows lie in the array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Shape {
    chunk: u64,
    /// Data chunks of a stripe.
    data: u64,
    /// P, or P and Q.
    parities: u64,
    /// Sectors of a member.
    size: u64,
}

impl Shape {
    fn of(one: &Superblock) -> Option<Self> {
        let (chunk, members) = (u64::from(one.chunk), u64::from(one.members));
        let parities = if one.level == 6 { 2 } else { 1 };
        let data = members.checked_sub(parities).filter(|data| *data > 0)?;
        let is_whole = chunk > 0 && chunk.is_multiple_of(PAGE);
        is_whole.then(|| Self { chunk, data, parities, size: one.size / chunk * chunk })
    }

    /// The row of a page of the array, and its chunk in it; `None` of one that is not there.
    fn row_of(&self, at: u64) -> Option<(u64, u16)> {
        let (chunk, from) = (at / self.chunk, at % self.chunk);
        let row = chunk / self.data * self.chunk + from;
        let is_there = at.is_multiple_of(PAGE) && row < self.size;
        is_there.then_some((row, (chunk % self.data) as u16))
    }
}

/// What a block lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Item {
    /// A page of a chunk.
    Data { row: u64, chunk: u16, sum: u32 },
    /// P of a row, and Q.
    Parity { row: u64, sums: [u32; 2] },
    /// A row that is on the members.
    Flushed { row: u64 },
}

/// What stands in a sealed block.
fn items(block: &[u8], used: u32, shape: &Shape) -> Result<Vec<Item>, &'static str> {
    let used = used as usize;
    let mut items = Vec::new();
    let mut at = HEAD;
    while at < used {
        if at + 8 > used {
            return Err("an item that goes beyond it");
        }
        let (kind, size) = (u16_at(block, at), u32_at(block, at + 4));
        let pages = u64::from(size) / PAGE;
        let (len, wanted) = match kind {
            DATA => (ITEM as u64 + 4 * pages, 1),
            PARITY => (ITEM as u64 + 4 * pages, shape.parities),
            // Two bytes of kind, two of flags, and a length in bytes.
            FLUSHED => (8 + u64::from(size), pages),
            _ => return Err("an item of a kind that is not known"),
        };
        let is_whole = kind == FLUSHED && size.is_multiple_of(8)
            || kind != FLUSHED && pages == wanted && u64::from(size).is_multiple_of(PAGE);
        if !is_whole {
            return Err("an item of a size that it cannot have");
        }
        if len > (used - at) as u64 {
            return Err("an item that goes beyond it");
        }
        let place = || u64_at(block, at + 8);
        let is_row = |row: u64| row.is_multiple_of(PAGE) && row < shape.size;
        match kind {
            DATA => {
                let (row, chunk) =
                    shape.row_of(place()).ok_or("data that the array does not have")?;
                items.push(Item::Data { row, chunk, sum: u32_at(block, at + ITEM) });
            }
            PARITY if is_row(place()) => {
                let second = if shape.parities == 2 { u32_at(block, at + ITEM + 4) } else { 0 };
                let sums = [u32_at(block, at + ITEM), second];
                items.push(Item::Parity { row: place(), sums });
            }
            PARITY => return Err("parity that the array does not have"),
            _ => {
                let rows = block[at + 8..at + len as usize].chunks_exact(8);
                items.extend(rows.map(|row| Item::Flushed { row: u64_at(row, 0) }));
            }
        }
        at += len as usize;
    }
    Ok(items)
}

/// A row of which the journal has something.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JournalRow {
    /// Places of pages in the ring, by their chunks: those of data that are to be written with the parity.
    pub data: BTreeMap<u16, u64>,
    /// The places of P and of Q.
    pub parity: Option<[u64; 2]>,
    /// Data that are newer, of which parity is still to be made.
    pub alone: BTreeMap<u16, u64>,
}

impl JournalRow {
    /// Parity of all data has come.
    fn parity_came(&mut self, places: [u64; 2]) {
        self.data.append(&mut self.alone);
        self.parity = Some(places);
    }

    /// The newest data of each chunk.
    fn newest(&self) -> BTreeMap<u16, u64> {
        let mut all = self.data.clone();
        all.extend(&self.alone);
        all
    }

    /// Whether it has anything that is to be written: parity alone is of data that are on the members.
    fn is_used(&self) -> bool {
        !self.data.is_empty() || !self.alone.is_empty()
    }
}

/// What a journal holds, and where it goes on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JournalFound {
    /// By their sectors on each member.
    pub rows: BTreeMap<u64, JournalRow>,
    /// Where the next block goes, and its number. `None` where no block stands at the tail, which is so before a
    /// journal is used for the first time: it begins at its start.
    pub next: Option<(u64, u64)>,
}

/// Reads a journal from its tail on, as md does after a crash.
///
/// # Errors
/// [`JournalDamage`]; what is torn is none.
pub fn recover(device: &mut dyn Source, one: &Superblock) -> Result<JournalFound, JournalDamage> {
    let ring = Ring::of(one, device.sectors().0).ok_or(JournalDamage::Place)?;
    let shape = Shape::of(one).ok_or(JournalDamage::Place)?;
    let tail = one.recovery;
    if tail >= ring.sectors || !tail.is_multiple_of(PAGE) {
        return Err(JournalDamage::Tail(tail));
    }
    let mut found = JournalFound::default();
    let mut next: Option<(u64, u64)> = None;
    // Each block is looked at once in a turn, as numbers grow.
    for _ in 0..ring.sectors / PAGE {
        let (position, sequence) = next.unwrap_or((tail, 0));
        let bytes = ring.read(device, position)?;
        let block = JournalBlock::parse(&bytes, &one.array, position)
            .filter(|block| next.is_none() || block.sequence == sequence);
        let Some(block) = block else { break };
        let listed = items(&bytes, block.used, &shape)
            .map_err(|what| JournalDamage::Impossible(position, what))?;
        let mut pages = PAGE;
        if is_sealed(device, &ring, (position, raw(!0, &one.array)), &listed, shape.parities)? {
            pages += take(&mut found.rows, &ring, position, &listed, shape.parities);
        }
        // As with md what is torn counts as a block without pages, and the next is looked for behind it.
        next = Some((ring.behind(position, pages), block.sequence.wrapping_add(1)));
    }
    found.rows.retain(|_, row| row.is_used());
    found.next = next;
    Ok(found)
}

/// Whether all pages of a block are as they were sealed.
fn is_sealed(
    device: &mut dyn Source,
    ring: &Ring,
    (position, seed): (u64, u32),
    items: &[Item],
    parities: u64,
) -> Result<bool, JournalDamage> {
    let mut at = ring.behind(position, PAGE);
    for item in items {
        let sums: &[u32] = match item {
            Item::Data { sum, .. } => std::slice::from_ref(sum),
            Item::Parity { sums, .. } => &sums[..parities as usize],
            Item::Flushed { .. } => &[],
        };
        for sum in sums {
            if raw(seed, &ring.read(device, at)?) != *sum {
                return Ok(false);
            }
            at = ring.behind(at, PAGE);
        }
    }
    Ok(true)
}

/// Adds what a block lists to the rows; gives the sectors of its pages.
fn take(
    rows: &mut BTreeMap<u64, JournalRow>,
    ring: &Ring,
    position: u64,
    items: &[Item],
    parities: u64,
) -> u64 {
    let mut taken = 0;
    for item in items {
        let at = ring.behind(position, PAGE + taken);
        match *item {
            Item::Data { row, chunk, .. } => {
                rows.entry(row).or_default().alone.insert(chunk, at);
                taken += PAGE;
            }
            Item::Parity { row, .. } => {
                rows.entry(row).or_default().parity_came([at, ring.behind(at, PAGE)]);
                taken += PAGE * parities;
            }
            Item::Flushed { row } => {
                rows.remove(&row);
            }
        }
    }
    taken
}

/// Where a journal begins anew behind what was found in it: the place of a block without pages, its number, and its
/// bytes; `random` is the number where none stands in it yet.
pub fn begin_anew(array: &ArrayId, found: &JournalFound, random: u32) -> (u64, Vec<u8>) {
    let (position, sequence) = match found.next {
        Some((position, sequence)) => (position, sequence.wrapping_add(GAP)),
        None => (0, u64::from(random)),
    };
    let mut block = vec![0; BLOCK];
    seal(&mut block, array, (sequence, position), HEAD);
    (position, block)
}

/// Puts the head of a block before what it lists, and seals it.
fn seal(block: &mut [u8], array: &ArrayId, (sequence, position): (u64, u64), used: usize) {
    put(block, 0, JOURNAL_MAGIC.to_le_bytes());
    put(block, 4, [0; 4]);
    put(block, 8, [1, 0, 0, 0]);
    put(block, 12, (used as u32).to_le_bytes());
    put(block, 16, sequence.to_le_bytes());
    put(block, 24, position.to_le_bytes());
    let sum = raw(raw(!0, array), block);
    put(block, 4, sum.to_le_bytes());
}
