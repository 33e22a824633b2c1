//! A device of an md array as one who goes on writing it knows it: the bytes of its superblock and of its bitmap.

use raidlab_core::contract::Superblock as Said;
use raidlab_core::{SECTOR_BYTES, Sector, Sectors};

use super::bad_blocks::{self, List};
use super::bitmap::HEAD;
use super::device_numbers::DeviceNumbers;
use super::format::{LEAST_SYNCED, unnamed};
use super::superblock::MOST_DEVICES;
use super::v0::{self, Own};
use super::{Aside, Bitmap, BitmapKind, Features, Inspected, Journal, Ppl, Role, Superblock, V0};
use crate::{Places, Put, Source};

/// Sectors of a superblock's place.
const PLACE: u64 = 8;
/// Bytes of a page of the core's bitmap.
const PAGE: usize = 8;
/// A bitmap is at most so long: of 2^24 bits. Its head, which says how long it is, has no checksum.
pub const LARGEST_BITMAP: Sectors = Sectors(4104);

/// A bitmap as it stands on a device.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Shadow {
    at: Sector,
    head: Bitmap,
    bytes: Vec<u8>,
    /// Of a bitmap that says that bits are missing: which pages were not written since.
    unwritten: Vec<bool>,
    /// The pages of those that were put last.
    last: Vec<usize>,
    /// From where to where pages go with the one that is put next, in bytes.
    beside: Option<(usize, usize)>,
}

/// What stands on a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kept {
    superblock: Superblock,
    /// The place of the superblock, with all that is not understood.
    frame: Vec<u8>,
    bitmap: Option<Shadow>,
    ppl: Option<Ppl>,
    /// The list of bad blocks, where it is one that can be written.
    list: Option<List>,
    journal: Option<Journal>,
    /// Sectors that the device writes together.
    block: u32,
}

impl Kept {
    /// Of a device that was inspected and has a superblock.
    pub(super) fn of(device: &mut dyn Source, found: &Inspected, block: u32) -> Option<Self> {
        let superblock = found.superblock()?.clone();
        let at = Sector(superblock.super_offset);
        let room = found.sectors.0.checked_sub(at.0)?.min(PLACE);
        let mut frame = vec![0; Sectors(room).bytes() as usize];
        device.read(at, &mut frame).ok()?;
        let bitmap = Shadow::of(device, &superblock);
        let ppl = Ppl::of(&superblock, found.partial_parity.as_ref(), block);
        let list = list(device, &superblock, block);
        let journal = Journal::of(device, &superblock);
        Some(Self { superblock, frame, bitmap, ppl, list, journal, block })
    }

    /// Of a fresh device that is made ready as one like this: with its own number and identity, on so many sectors. The
    /// bitmap is the same.
    pub(super) fn like(&self, fresh: Fresh) -> Option<Self> {
        let mut superblock = self.superblock.clone();
        let at = superblock.version().superblock(fresh.sectors)?;
        superblock.super_offset = at.0;
        superblock.number = u32::from(fresh.number);
        superblock.device = if superblock.v0.is_some() { [0; 16] } else { fresh.id };
        let plain = [Features::RECOVERY, Features::RECOVERY_BITMAP, Features::REPLACEMENT];
        let without = plain.iter().fold(Features::BAD_BLOCKS.0, |all, one| all | one.0);
        superblock.features = Features(superblock.features.0 & !without);
        (superblock.recovery, superblock.corrected, superblock.flags) = (0, 0, 0);
        superblock.bad_blocks.shift = 0;
        let aside = match superblock.aside {
            Aside::Bitmap(offset) => i64::from(offset).min(i64::from(superblock.bad_blocks.offset)),
            Aside::PartialParity { offset, .. } => {
                i64::from(offset).min(i64::from(superblock.bad_blocks.offset))
            }
            Aside::Nothing => i64::from(superblock.bad_blocks.offset),
        };
        let end = if at.0 > superblock.data_offset {
            at.0.checked_add_signed(aside.min(0))?
        } else {
            fresh.sectors.0
        };
        superblock.data_size = end.checked_sub(superblock.data_offset)?;
        if superblock.data_size < superblock.size || superblock.len() > self.frame.len() {
            return None;
        }
        let bitmap = self.bitmap.clone().and_then(|mut shadow| {
            let Aside::Bitmap(offset) = superblock.aside else { return None };
            shadow.at = superblock.beside(offset)?;
            Some(shadow)
        });
        let frame = self.frame.clone();
        let block = fresh.block.max(self.block);
        let ppl = Ppl::of(&superblock, None, block);
        if self.ppl.is_some() && ppl.is_none() {
            return None;
        }
        let list = self.list.as_ref().and_then(|_| {
            let at = superblock.beside(superblock.bad_blocks.offset)?;
            Some(List::empty(at, superblock.bad_blocks.size))
        });
        Some(Self { superblock, frame, bitmap, ppl, list, journal: None, block })
    }

    /// Whether it has a list of bad blocks that can be added to.
    pub(super) const fn has_list(&self) -> bool {
        self.list.is_some()
    }

    /// What its list of bad blocks is to say with the next superblock, from the start of the data; false when that
    /// does not fit.
    #[must_use]
    pub(crate) fn list_bad_blocks(
        &mut self,
        ranges: impl Iterator<Item = (Sector, Sectors)>,
    ) -> bool {
        let start = self.superblock.data_offset;
        let of_device = |at: u64| start.saturating_add(at);
        let ranges = ranges.map(|(at, len)| (of_device(at.0), of_device(at.0 + len.0)));
        self.list.as_mut().is_none_or(|list| list.set(ranges))
    }

    /// What its superblock says.
    pub fn superblock(&self) -> &Superblock {
        &self.superblock
    }

    /// Whether its version can say that a device replaces a member that is still there.
    pub fn can_replace(&self) -> bool {
        self.superblock.v0.is_none()
    }

    /// Numbers that devices may have.
    pub(super) fn most_numbers(&self) -> usize {
        if self.superblock.v0.is_some() { v0::MOST_DEVICES } else { MOST_DEVICES }
    }

    /// Gives it another number.
    pub(super) fn set_number(&mut self, number: u16) {
        self.superblock.number = u32::from(number);
    }

    /// Where its data start.
    pub fn data_start(&self) -> Sectors {
        Sectors(self.superblock.data_offset)
    }

    /// Which of the roles is its.
    pub fn number(&self) -> u16 {
        self.superblock.number.min(u32::from(u16::MAX)) as u16
    }

    /// The log of partial parity.
    pub fn ppl(&self) -> Option<&Ppl> {
        self.ppl.as_ref()
    }

    pub(crate) fn ppl_mut(&mut self) -> Option<&mut Ppl> {
        self.ppl.as_mut()
    }

    /// The journal, on the log device; `None` where something in it would be replayed.
    pub fn journal(&self) -> Option<&Journal> {
        self.journal.as_ref()
    }

    /// The same, to be written.
    pub fn journal_mut(&mut self) -> Option<&mut Journal> {
        self.journal.as_mut()
    }

    /// What was last put into its log was not written.
    pub(crate) fn log_failed(&mut self) {
        self.ppl.iter_mut().for_each(Ppl::failed);
        self.journal.iter_mut().for_each(Journal::failed);
    }

    /// What was last put of its superblock or bitmap was not written, or only perhaps.
    pub(crate) fn record_failed(&mut self) {
        self.list.iter_mut().for_each(List::failed);
        let Some(shadow) = &mut self.bitmap else { return };
        for page in shadow.last.drain(..) {
            shadow.unwritten[page] = true;
        }
    }

    /// Something is put behind what was put last, which is written.
    fn goes_on(&mut self) {
        self.list.iter_mut().for_each(List::is_past);
        self.bitmap.iter_mut().for_each(|shadow| shadow.last.clear());
    }

    /// The head of its bitmap.
    pub(super) fn bitmap(&self) -> Option<&Bitmap> {
        self.bitmap.as_ref().map(|shadow| &shadow.head)
    }

    /// The bits of its bitmap, 64 at a time.
    pub(super) fn pages(&self) -> Vec<u64> {
        let Some(shadow) = &self.bitmap else { return Vec::new() };
        let pages = shadow.head.bits().unwrap_or(0).div_ceil(64) as usize;
        let (words, _) = shadow.bytes[HEAD..].as_chunks::<PAGE>();
        words.iter().take(pages).map(|word| u64::from_le_bytes(*word)).collect()
    }

    /// Whether its superblock names a bitmap which could not be read.
    pub(super) fn lacks_bitmap(&self) -> bool {
        self.superblock.features.has(Features::BITMAP) && self.bitmap.is_none()
    }

    /// Whether records start and end on what the device writes together.
    pub(super) fn is_aligned(&self) -> bool {
        let places = [Some(self.superblock.super_offset), self.bitmap.as_ref().map(|one| one.at.0)];
        let block = u64::from(self.block.max(1));
        places.iter().flatten().all(|at| at.is_multiple_of(block))
            && self.superblock.data_offset.is_multiple_of(block)
            && self.ppl.as_ref().is_none_or(|ppl| ppl.is_aligned(block))
            && self.journal.as_ref().is_none_or(|journal| journal.is_aligned(block))
    }

    /// Where records may lie on a device of so many sectors: before the data, or behind them.
    pub(crate) fn beside_data(&self, total: Sectors) -> (Sector, Sectors) {
        let one = &self.superblock;
        if one.super_offset < one.data_offset {
            return (Sector(0), Sectors(one.data_offset));
        }
        let end = one.data_offset.saturating_add(one.used().max(1).min(one.data_size));
        (Sector(end), Sectors(total.0.saturating_sub(end)))
    }

    /// The superblock that says this, in parts: the head of the bitmap goes before it, as events that are behind the
    /// superblock's make all of the bitmap dirty; and what is new in the list of bad blocks, as a superblock that says
    /// that a member is rebuilt would make what stands there good.
    pub(super) fn put_superblock(
        &mut self,
        into: &mut [u8],
        said: &Said,
        (device, place, part): (usize, usize, u32),
        device_numbers: &DeviceNumbers,
    ) -> Option<Put> {
        self.goes_on();
        if part == 0
            && let Some(shadow) = &mut self.bitmap
        {
            if !shadow.unwritten.contains(&true) {
                shadow.head.set_fresh();
            }
            shadow.head.events = said.events;
            shadow.head.events_cleared = said.bitmap_since.min(said.events);
            shadow.head.emit(&mut shadow.bytes);
            let put = shadow.put(into, (0, HEAD), self.block)?;
            return Some(Put { more: true, ..put });
        }
        if let Some(put) = self.list.as_mut().and_then(|list| list.put(into, self.block)) {
            return Some(put);
        }
        let one = &mut self.superblock;
        if one.v0.is_some() {
            V0::say(one, said, Own::Place(place), device_numbers);
            return self.put_frame(into);
        }
        let sets = [said.failed, said.replacing];
        one.roles = device_numbers.roles(sets, device, one.roles.len());
        if !said.journal {
            // One that failed, or was given up, is never to be replayed again.
            device_numbers.leave_journal(&mut one.roles);
            one.features = Features(one.features.0 & !Features::JOURNAL.0);
        } else {
            // The power may have gone while the array got its journal.
            one.features = one.features.with(Features::JOURNAL);
        }
        one.events = said.events;
        one.updated = device_numbers.now;
        one.resync = resync(one, said);
        if let Some(journal) = &mut self.journal {
            one.recovery = journal.retire(said.journal_tail);
            return self.put_frame(into);
        }
        let is_replacement = device != place;
        let is_rebuilding = said.rebuilding[place / 64] >> (place % 64) & 1 == 1;
        let good_to = match is_replacement {
            true => Some(said.replaced_to).filter(|to| *to < Sector::MAX),
            false => is_rebuilding.then_some(said.rebuilt_to),
        };
        let by_bitmap = said.by_bitmap && is_rebuilding && !is_replacement;
        let has_bitmap = self.bitmap.is_some();
        let lists = one.features.has(Features::BAD_BLOCKS);
        if self.list.is_some() {
            // Nothing stood in it, or it counted in sectors before.
            one.bad_blocks.shift = 0;
        }
        for (feature, on) in [
            (Features::RECOVERY, good_to.is_some()),
            (Features::RECOVERY_BITMAP, by_bitmap && has_bitmap),
            (Features::REPLACEMENT, is_replacement),
            (Features::BAD_BLOCKS, self.list.as_ref().map_or(lists, |list| !list.is_empty())),
        ] {
            let others = one.features.0 & !feature.0;
            one.features = Features(if on { others | feature.0 } else { others });
        }
        one.recovery = good_to.map_or(0, |to| to.0);
        self.put_frame(into)
    }

    /// The superblock as it is now.
    fn put_frame(&mut self, into: &mut [u8]) -> Option<Put> {
        let one = &self.superblock;
        one.emit(&mut self.frame).ok()?;
        let block = u64::from(self.block.max(1)) * SECTOR_BYTES;
        let bytes = (one.len() as u64).next_multiple_of(block) as usize;
        let from = self.frame.get(..bytes)?;
        into.get_mut(..bytes)?.copy_from_slice(from);
        Some(Put { at: Sector(one.super_offset), bytes, more: false })
    }

    /// The superblock with another tail of the journal, as bytes.
    pub(crate) fn with_tail(&mut self, tail: u64) -> Option<(Sector, Vec<u8>)> {
        if self.superblock.role() != Role::Journal {
            return None;
        }
        self.superblock.recovery = tail;
        self.as_bytes()
    }

    /// The superblock of this event, by which devices have these roles, but the one with this number failed, as bytes.
    fn with_failed(
        &mut self,
        roles: &[Role],
        number: u16,
        events: u64,
    ) -> Option<(Sector, Vec<u8>)> {
        let one = &mut self.superblock;
        one.roles = roles.to_vec();
        let own = one.role();
        if one.roles.iter().filter(|role| **role == own).count() == 1 {
            // It may not have been told yet that it has taken over.
            one.features = Features(one.features.0 & !Features::REPLACEMENT.0);
        }
        *one.roles.get_mut(usize::from(number))? = Role::Faulty;
        one.events = events;
        self.as_bytes()
    }

    /// The superblock of this event, by which the device with this number has the array's journal, as bytes.
    pub(super) fn with_journal(
        &mut self,
        number: u16,
        events: u64,
        now: u64,
    ) -> Option<(Sector, Vec<u8>)> {
        let one = &mut self.superblock;
        *one.roles.get_mut(usize::from(number))? = Role::Journal;
        one.features = one.features.with(Features::JOURNAL);
        (one.events, one.updated) = (events, now);
        self.as_bytes()
    }

    fn as_bytes(&mut self) -> Option<(Sector, Vec<u8>)> {
        let mut bytes = vec![0; self.frame.len()];
        let put = self.put_frame(&mut bytes)?;
        bytes.truncate(put.bytes);
        Some((put.at, bytes))
    }

    /// Pages of the bitmap that go with the one that is put next.
    pub(crate) fn put_beside(&mut self, pages: impl Iterator<Item = (u32, u64)>) {
        self.goes_on();
        for (page, bits) in pages {
            let Some(shadow) = &mut self.bitmap else { return };
            shadow.beside = shadow.note(page, bits);
        }
    }

    /// A page of the bitmap, and those beside it.
    pub(super) fn put_page(&mut self, into: &mut [u8], page: u32, bits: u64) -> Option<Put> {
        if self.bitmap.as_ref()?.beside.is_none() {
            self.goes_on();
        }
        let shadow = self.bitmap.as_mut()?;
        let range = shadow.note(page, bits)?;
        shadow.beside = None;
        shadow.put(into, range, self.block)
    }

    /// All that stands on it besides data, to be written to a fresh device: the bitmap, an empty log of partial parity,
    /// an empty list of bad blocks.
    pub(super) fn pieces(&self) -> Vec<(Sector, Vec<u8>)> {
        let mut pieces = Vec::new();
        if let Some(shadow) = &self.bitmap {
            pieces.push((shadow.at, shadow.bytes.clone()));
        }
        pieces.extend(self.ppl.iter().flat_map(Ppl::pieces));
        let list = self.superblock.bad_blocks;
        if list.size > 0
            && let Some(at) = self.superblock.beside(list.offset)
        {
            pieces.push((at, vec![0xff; usize::from(list.size) * SECTOR_BYTES as usize]));
        }
        pieces
    }

    /// The superblock of a spare: the array's, with no role for it.
    pub(super) fn spare(&mut self, device_numbers: &DeviceNumbers) -> Option<(Sector, Vec<u8>)> {
        let number = self.number();
        let one = &mut self.superblock;
        if one.v0.is_some() {
            let said = Said {
                events: one.events,
                failed: unnamed(one),
                clean: one.resync > 0,
                synced_to: Sector(one.resync),
                ..Said::default()
            };
            V0::say(one, &said, Own::Spare(number), device_numbers);
            one.emit(&mut self.frame).ok()?;
            return Some((Sector(one.super_offset), self.frame.clone()));
        }
        one.roles = device_numbers.roles([[0; 2]; 2], usize::MAX, one.roles.len());
        one.updated = device_numbers.now;
        one.emit(&mut self.frame).ok()?;
        Some((Sector(one.super_offset), self.frame.clone()))
    }
}

/// Up to where redundancy is consistent, as a superblock is to say it.
fn resync(one: &Superblock, said: &Said) -> u64 {
    match said.clean || said.journal {
        // With logs of partial parity 0 says that the array was not stopped cleanly, and nothing else.
        true if one.features.has_ppl() => said.synced_to.0.max(LEAST_SYNCED),
        // What is under way stands in the journal, where there is one.
        true => said.synced_to.0,
        false => 0,
    }
}

/// What has superblocks of members, and then of the log device, say that the device with this number failed: writes,
/// each to one of these devices, one after another. By two events, as md before Linux 6.8 asks a device's own
/// superblock only; none is ever more than an event behind another. One that was behind is told what the newest said
/// besides. `None` when a superblock has no room.
pub fn tell_failed(devices: &mut [Places], number: u16) -> Option<Vec<(usize, Sector, Vec<u8>)>> {
    let mut events: Vec<u64> =
        devices.iter().map(|one| one.md().map_or(0, |kept| kept.superblock.events)).collect();
    let newest = events.iter().max().copied().unwrap_or(0);
    let is_newest = |kept: &&Kept| kept.superblock.events == newest;
    let told = devices.iter().filter_map(Places::md).find(is_newest)?;
    let roles = told.superblock.roles.clone();
    let mut writes = Vec::new();
    for event in newest..=newest + 2 {
        for (device, (places, own)) in devices.iter_mut().zip(&mut events).enumerate() {
            if *own < event {
                let (at, bytes) = places.md_mut()?.with_failed(&roles, number, event)?;
                writes.push((device, at, bytes));
                *own = event;
            }
        }
    }
    Some(writes)
}

/// The list of bad blocks of a device, if it can be written: what stands in it counts in sectors, and it lies on what
/// the device writes together, can be read, and has room for all that a member may have before it goes out of service.
/// One in units of many sectors in which nothing stands is begun anew in sectors, as by md.
fn list(device: &mut dyn Source, one: &Superblock, block: u32) -> Option<List> {
    let log = one.bad_blocks;
    let counts = one.features.has(Features::BAD_BLOCKS);
    let has_room = u64::from(log.size) * (SECTOR_BYTES / 8) >= u64::from(bad_blocks::ROOM);
    if one.v0.is_some() || !has_room || counts && log.shift != 0 {
        return None;
    }
    let at = one.beside(log.offset)?;
    let sectors = Sectors(u64::from(log.size));
    let end = at.0.checked_add(sectors.0).filter(|end| *end <= device.sectors().0)?;
    one.is_apart(at.0..end).then_some(())?;
    let mut bytes = vec![0; sectors.bytes() as usize];
    device.read(at, &mut bytes).ok()?;
    let list = List::new(at, bytes, counts);
    list.is_aligned(u64::from(block.max(1))).then_some(list)
}

/// A device that is to be made ready.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fresh {
    pub(super) sectors: Sectors,
    pub(super) block: u32,
    pub(super) number: u16,
    pub(super) id: [u8; 16],
}

impl Shadow {
    fn of(device: &mut dyn Source, one: &Superblock) -> Option<Self> {
        let Aside::Bitmap(offset) = one.aside else { return None };
        let at = one.beside(offset)?;
        let mut first = vec![0; 4096];
        device.read(at, &mut first).ok()?;
        let head = Bitmap::parse(&first)?;
        let len = head.sectors().filter(|len| *len <= LARGEST_BITMAP)?;
        if head.kind != BitmapKind::Plain || head.array != one.bitmap_id() {
            return None;
        }
        // Only what has bits is written.
        let used = (HEAD as u64 + head.bits()?.div_ceil(8)).div_ceil(SECTOR_BYTES);
        if !one.is_apart(at.0..at.0.checked_add(used)?) {
            return None;
        }
        let mut bytes = vec![0; len.bytes() as usize];
        device.read(at, &mut bytes).ok()?;
        let pages = head.bits().unwrap_or(0).div_ceil(64) as usize;
        let unwritten = if head.is_stale() { vec![true; pages] } else { Vec::new() };
        Some(Self { at, head, bytes, unwritten, last: Vec::new(), beside: None })
    }

    /// A page is to be written with these bits; from where to where it lies with all that go with it.
    fn note(&mut self, page: u32, bits: u64) -> Option<(usize, usize)> {
        let page = page as usize;
        let at = HEAD + PAGE * page;
        self.bytes.get_mut(at..at + PAGE)?.copy_from_slice(&bits.to_le_bytes());
        if let Some(unwritten) = self.unwritten.get_mut(page)
            && std::mem::take(unwritten)
        {
            self.last.push(page);
        }
        let (from, to) = self.beside.unwrap_or((at, at));
        Some((from.min(at), to.max(at + PAGE)))
    }

    /// What the device writes together around these bytes of the bitmap.
    fn put(&self, into: &mut [u8], (from, to): (usize, usize), block: u32) -> Option<Put> {
        let len = block.max(1) as usize * SECTOR_BYTES as usize;
        let (from, to) = (from / len * len, to.next_multiple_of(len));
        let bytes = self.bytes.get(from..to)?;
        into.get_mut(..bytes.len())?.copy_from_slice(bytes);
        let at = Sector(self.at.0 + from as u64 / SECTOR_BYTES);
        Some(Put { at, bytes: bytes.len(), more: false })
    }
}
