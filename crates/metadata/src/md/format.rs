//! md's metadata as a format that an array's records are kept in.
//!
//! Fault model: as [`super`]; a superblock has one place and may be torn, a bit of the bitmap may be lost by a torn or
//! rotten write without a trace. Why it is safe all the same: a torn superblock counts as a member that is missing;
//! records of a device are written one after another, so that a write of the bitmap never takes back bits of another
//! one; the head of a bitmap goes before the superblock, and one that is behind makes all bits count. What stands
//! besides the fields with a name goes out as it was read. Tests: `tests/md/written.rs`, the fuzz target `written`,
//! against the kernel `crates/cli/tests/array/kernel_and_raidlab.rs`.

use raidlab_core::consistency::{Carried, Examined, Finding, LogFound, MetaArea, Parameters};
use raidlab_core::contract::{Epoch, History, Record, Superblock as Said};
use raidlab_core::{Consistency, Sector, Sectors};

use super::assemble::data_end;
use super::kept::{Fresh, Kept};
use super::{
    Damage, DeviceNumbers, Features, Inspected, Role, Superblock, Version, inspect, layout, ppl,
};
use crate::{Entry, Looked, MetadataFormat, Places, Put, Source};

/// Bytes of a head: of a superblock at most, and of what a device writes together.
const HEAD: usize = 4096;

/// What arrays with a log of partial parity are kept consistent by: a header has so many entries.
pub const PARTIAL_PARITY: Consistency =
    Consistency::PartialParity { slots: ppl::MOST_ENTRIES as u32 };

/// The metadata of Linux md.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Md {
    /// Sectors that the array reads and writes together on each member.
    pub block: u32,
}

/// What is written to a device that is made ready.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ready {
    /// Where its records lie from then on.
    pub places: Places,
    /// Sectors it has for data.
    pub data: Sectors,
    /// What is written, in this order: old superblocks are gone first.
    pub pieces: Vec<(Sector, Vec<u8>)>,
}

/// The history of every md array, which keeps none.
pub(crate) const HISTORY: History = {
    let mut history = [Epoch { id: 0, from: 0 }; 6];
    // mdadm makes arrays with no events.
    history[0] = Epoch { id: Epoch::FIRST.id, from: 0 };
    history
};

impl MetadataFormat for Md {
    fn head(&self) -> usize {
        HEAD
    }

    fn examine(&self, device: &mut dyn Source) -> Looked {
        let found = inspect(device);
        let (sectors, logical_block) = (found.sectors, device.logical_block());
        let kept = Kept::of(device, &found, self.block);
        let superblock = match kept.as_ref().map(|kept| self.carried(kept, logical_block)) {
            Some(Some(carried)) => Finding::Whole(carried),
            // A spare holds nothing of the array.
            Some(None) => Finding::Blank,
            None => nothing(&found),
        };
        // As many sectors as one has that fits, unless the device ends before its data do.
        let fits = superblock.whole().map(|carried| room(&carried.parameters));
        let left = found.superblock().and_then(|one| left_of(one, sectors));
        let bitmap = kept.as_ref().map(bits).unwrap_or_default();
        let log = log(&found, self.block.max(logical_block));
        let bad = found.bad.clone().unwrap_or_default();
        let sectors_shown = left.or(fits).unwrap_or(sectors);
        let examined =
            Examined { sectors: sectors_shown, logical_block, superblock, bitmap, log, bad };
        let places = match kept {
            Some(kept) => Places::of_md(sectors, Sectors(kept.superblock().size), kept),
            None => Places::default(),
        };
        Looked { examined, places, sequence: 0 }
    }

    fn put(
        &self,
        head: &mut [u8],
        device: &mut Places,
        entry: &Entry<'_>,
        _payload: &mut dyn Iterator<Item = &[u8]>,
    ) -> Option<Put> {
        let kept = device.md_mut()?;
        let number = usize::from(entry.meta.member.0);
        match &entry.meta.record {
            Record::Superblock(said) => {
                let place = (number, usize::from(entry.label.device), entry.part);
                kept.put_superblock(head, said, place, entry.device_numbers)
            }
            Record::BitmapPage { page, bits } => kept.put_page(head, *page, *bits),
            // Entries of partial parity go into headers, in `RecordWriter::put_header`.
            Record::PartialParity { .. } | Record::JournalEntry { .. } => None,
        }
    }

    fn in_turn(&self) -> bool {
        true
    }
}

impl Md {
    /// What the superblock of a member says, as far as it can be said of one device; `None` of what is no member.
    fn carried(&self, kept: &Kept, block: u32) -> Option<Carried> {
        let one = kept.superblock();
        let Role::Member(device) = one.role() else { return None };
        let layout = layout(one, &[], None).ok()?;
        let consistency = match (kept.bitmap(), kept.ppl()) {
            (Some(bitmap), _) => {
                Consistency::Bitmap { chunk: Sectors(u64::from(bitmap.chunk) / 512) }
            }
            (None, Some(_)) => PARTIAL_PARITY,
            (None, None) => Consistency::Resync,
        };
        let used = Sectors(one.used());
        let parameters = Parameters {
            layout: layout.to_string(),
            consistency,
            data: used,
            least: used,
            log: Sectors::ZERO,
            pages: kept.pages().len() as u32,
            block: self.block.max(block),
        };
        let superblock = said(one, kept);
        // One that is to replace a member is not that member.
        let is_replacement = one.features.has(Features::REPLACEMENT);
        let device =
            if is_replacement { device.checked_add(one.members.try_into().ok()?)? } else { device };
        Some(Carried { array: one.array, device, parameters, superblock })
    }

    /// What a running array is to take for the history of a device that comes back: md's superblocks have none, so
    /// it is the array's own up to its events, unless the device calls a member gone that the array has in service,
    /// as one does that went on alone.
    ///
    /// Of version 0.90 it is a spare with a number of its own until it has everything. Of newer ones it gets another
    /// number when its own was given to a fresh device since.
    pub fn returning(&self, looked: &mut Looked, newest: &Said, device_numbers: &DeviceNumbers) {
        let place = looked.examined.superblock.whole().map_or(usize::MAX, |one| one.device.into());
        if let Some(kept) = looked.places.md_mut()
            && (kept.superblock().v0.is_some() || device_numbers.is_others(kept.number(), place))
            && let Some(number) = device_numbers.free(kept.most_numbers())
        {
            kept.set_number(number);
        }
        let Finding::Whole(carried) = &mut looked.examined.superblock else { return };
        let theirs = &mut carried.superblock;
        let alone = [0, 1].map(|word| theirs.failed[word] & !newest.failed[word]);
        if alone != [0; 2] {
            theirs.history = [Epoch { id: u64::MAX, from: theirs.events }; 6];
            return;
        }
        let known =
            newest.history.iter().filter(|epoch| epoch.id != 0 && epoch.from <= theirs.events);
        theirs.history = History::default();
        for (place, epoch) in theirs.history.iter_mut().zip(known) {
            *place = *epoch;
        }
    }

    /// Has a member of an array with a journal say how the array is kept consistent: it does not say how large the
    /// journal is, which the array knows.
    pub fn say_journal(&self, looked: &mut Looked, consistency: Consistency) {
        let kept = looked.places.md();
        let has_journal =
            kept.is_some_and(|kept| kept.superblock().features.has(Features::JOURNAL));
        if let (true, Finding::Whole(carried)) = (has_journal, &mut looked.examined.superblock) {
            carried.parameters.consistency = consistency;
        }
    }

    /// What makes a device ready for a place of an array, whose member `model` is in service.
    ///
    /// # Errors
    /// When it is too small, in words.
    pub fn ready(
        &self,
        device: &mut dyn Source,
        model: &Places,
        device_numbers: &DeviceNumbers,
        id: [u8; 16],
    ) -> Result<Ready, String> {
        let Some(model) = model.md() else { return Err("no member is known to be like it".into()) };
        let sectors = device.sectors();
        let own = inspect(device);
        let is_spare =
            |one: &&Superblock| one.array == model.superblock().array && one.role() == Role::Spare;
        let most = model.most_numbers();
        // A spare keeps its number and identity, unless another device got the number while the spare was not there.
        let kept = own.superblock().filter(is_spare).and_then(|one| {
            let number = u16::try_from(one.number).ok().filter(|one| usize::from(*one) < most)?;
            (!device_numbers.is_used(number)).then_some((number, one.device))
        });
        let Some((number, id)) = kept.or_else(|| Some((device_numbers.free(most)?, id))) else {
            return Err("the array has no number left for it".into());
        };
        let fresh = Fresh { sectors, block: device.logical_block(), number, id };
        let Some(kept) = model.like(fresh) else {
            let one = model.superblock();
            let behind = if one.super_offset > one.data_offset { 24 } else { 0 };
            let needed = Sectors(one.data_offset.saturating_add(one.size).saturating_add(behind));
            return Err(format!("it has {sectors}, and needs some {needed}"));
        };
        let mut pieces = Vec::new();
        for version in Version::ALL {
            if let Some(at) = version.superblock(sectors)
                && own.seen.iter().any(|seen| seen.version == version)
            {
                pieces.push((at, vec![0; 4096]));
            }
        }
        pieces.extend(kept.pieces());
        let data = Sectors(kept.superblock().size.max(1));
        Ok(Ready { places: Places::of_md(sectors, data, kept), data, pieces })
    }

    /// What makes a device a spare, besides [`Self::ready`].
    pub fn spare(
        &self,
        places: &mut Places,
        device_numbers: &mut DeviceNumbers,
    ) -> Option<(Sector, Vec<u8>)> {
        let kept = places.md_mut()?;
        device_numbers.add_spare(kept.number());
        kept.spare(device_numbers)
    }
}

/// The state that one device tells of.
fn said(one: &Superblock, kept: &Kept) -> Said {
    let Role::Member(place) = one.role() else { return Said::default() };
    let (mut rebuilding, mut replacing) = ([0; 2], [0; 2]);
    let is_replacement = one.features.has(Features::REPLACEMENT);
    let of = match is_replacement {
        true => Some(&mut replacing),
        false => one.rebuilt_to().map(|_| &mut rebuilding),
    };
    if let Some(word) = of.and_then(|of| of.get_mut(usize::from(place / 64))) {
        *word |= 1 << (place % 64);
    }
    Said {
        events: one.events,
        failed: unnamed(one),
        rebuilding,
        clean: one.resync > 0,
        journal: false,
        by_bitmap: one.features.has(Features::RECOVERY_BITMAP),
        rebuilt_to: Sector(one.rebuilt_to().unwrap_or(0)),
        replacing,
        replaced_to: replaced_to(one),
        synced_to: synced_to(one),
        journal_tail: 0,
        bitmap_since: since(one, kept),
        history: HISTORY,
        left: 1,
    }
}

/// Up to here redundancy counts as consistent, in sectors of each member, in the superblock of an array with logs of
/// partial parity that was stopped cleanly before anything was made consistent: a block of 4 KiB. At 0 it would count
/// as one that was not stopped cleanly, and as consistent everywhere where a log has entries, as with md.
pub(super) const LEAST_SYNCED: u64 = 8;

/// Up to where redundancy is consistent by a superblock.
pub(super) fn synced_to(one: &Superblock) -> Sector {
    let is_least = one.features.has_ppl() && one.resync <= LEAST_SYNCED;
    Sector(if is_least { 0 } else { one.resync })
}

/// Up to where a replacement has what its member does.
pub(super) fn replaced_to(one: &Superblock) -> Sector {
    one.rebuilt_to().map_or(Sector::MAX, Sector)
}

/// Members that two devices have by this superblock: one of them is to replace the other.
pub(super) fn named_twice(one: &Superblock) -> [u64; 2] {
    members_of(one, |devices| devices > 1)
}

/// Members that no device has by this superblock.
pub(super) fn unnamed(one: &Superblock) -> [u64; 2] {
    members_of(one, |devices| devices == 0)
}

/// Members that a superblock gives to so many devices.
fn members_of(one: &Superblock, is_meant: impl Fn(usize) -> bool) -> [u64; 2] {
    let mut members = [0; 2];
    for place in 0..one.members.min(128) as u16 {
        let devices = one.roles.iter().filter(|role| **role == Role::Member(place)).count();
        if is_meant(devices) {
            members[usize::from(place / 64)] |= 1 << (place % 64);
        }
    }
    members
}

/// Since which events bits name everything that a device missed.
pub(super) fn since(one: &Superblock, kept: &Kept) -> u64 {
    match kept.bitmap() {
        Some(bitmap) if bitmap.events >= one.events && !bitmap.is_stale() => {
            bitmap.events_cleared.min(one.events)
        }
        _ => one.events,
    }
}

/// The bits that a device has; of a bitmap that is behind its superblock, or stale, none is known.
fn bits(kept: &Kept) -> Vec<Finding<u64>> {
    let events = kept.superblock().events;
    let is_behind = kept.bitmap().is_none_or(|bitmap| bitmap.events < events || bitmap.is_stale());
    let page = |bits| if is_behind { Finding::Damaged(None) } else { Finding::Whole(bits) };
    kept.pages().into_iter().map(page).collect()
}

/// What a device has in its log of partial parity.
fn log(found: &Inspected, block: u32) -> LogFound {
    match (&found.partial_parity, found.superblock()) {
        (Some(seen), Some(one)) => ppl::found(seen, one, block),
        _ => LogFound::default(),
    }
}

/// What stands where no superblock is.
fn nothing(found: &Inspected) -> Finding<Carried> {
    let damaged = found.broken.iter().any(|(_, damage)| *damage != Damage::NotMd);
    match found.seen.is_empty() && !damaged {
        _ if !found.unreadable.is_empty() => Finding::Unreadable(None),
        true => Finding::Blank,
        false => Finding::Damaged(None),
    }
}

/// Sectors for data of a device that ends before what the array uses of it.
fn left_of(one: &Superblock, sectors: Sectors) -> Option<Sectors> {
    let is_cut_off = data_end(one) > sectors.0;
    is_cut_off.then(|| Sectors(sectors.0.saturating_sub(one.data_offset)))
}

/// Sectors that the core takes a device to have which these parameters fit.
pub(super) fn room(parameters: &Parameters) -> Sectors {
    let area = MetaArea { log: parameters.log, pages: parameters.pages, used: true };
    parameters.data + area.sectors()
}
