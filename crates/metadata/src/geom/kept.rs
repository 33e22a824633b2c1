//! A disk of a gmirror or graid3 as one who goes on writing it knows it, and how old the state of its array is.
//!
//! Labels do not name the other disks: who left is told by a syncid that the others raise, before anything is answered
//! that they missed. `docs/md-format.md` has the table.

use raidlab_core::contract::{MemberBits, Superblock as Said};
use raidlab_core::{SECTOR_BYTES, Sector, Sectors};

use super::{Beside, Kind, Label, Seen};
use crate::{Put, Source};

/// Flags of a disk.
const DIRTY: u64 = 1;
const SYNCHRONIZING: u64 = 2;
const FORCE_SYNC: u64 = 4;
/// A flag of the array: its disks are not synchronised by themselves.
pub(super) const NO_AUTOSYNC: u64 = 1;

/// How old the state of an array is that its labels tell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Generation {
    /// The events of the state.
    events: u64,
    genid: u32,
    syncid: u32,
    /// Members that were out of service by the state before, if it was this start's.
    failed: MemberBits,
    /// What stands behind labels.
    beside: Beside,
    /// The epoch of what this start raises.
    epoch: u64,
}

impl Generation {
    /// Of a start with a number by chance, which knows nobody yet.
    pub fn new(epoch: u64) -> Self {
        Self { epoch, ..Self::default() }
    }

    /// A device is a member, at these events.
    pub(crate) fn learn(&mut self, events: u64, kept: &Kept) {
        let (genid, syncid) = (kept.label.genid, kept.label.syncid);
        self.events = self.events.max(events);
        if (genid, syncid) > (self.genid, self.syncid) {
            (self.genid, self.syncid) = (genid, syncid);
            self.beside = kept.beside.unwrap_or_default();
        } else if (genid, syncid) == (self.genid, self.syncid) && self.beside.epoch == 0 {
            self.beside = kept.beside.unwrap_or(self.beside);
        }
    }

    /// The array is about to tell its members this. The syncid is raised for each member that leaves, and by the first
    /// state of a start without all of them: who is not there may come back.
    pub(crate) fn tell(&mut self, said: &Said) {
        if said.events <= self.events {
            // The newest once more, for who is behind.
            return;
        }
        self.events = said.events;
        let leaves = |place: &u16| bit(said.failed, *place) && !bit(self.failed, *place);
        if let Some(first) = (0..128).find(leaves) {
            (self.genid, self.syncid) = match self.syncid.checked_add(1) {
                Some(next) => (self.genid, next),
                None => (self.genid.saturating_add(1), 1),
            };
            (self.beside.left, self.beside.epoch) = (first + 1, self.epoch);
        }
        self.failed = said.failed;
        self.beside.out = said.failed.iter().map(|word| word.count_ones() as u16).sum();
    }
}

const fn bit(bits: MemberBits, place: u16) -> bool {
    bits[place as usize / 64] >> (place % 64) & 1 == 1
}

/// What stands in the last sector of a disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kept {
    label: Label,
    beside: Option<Beside>,
    /// What the device writes together, with all that is not understood.
    frame: Vec<u8>,
    at: Sector,
    /// What the last sector has.
    sector: Sectors,
}

impl Kept {
    /// Of a device with a label that can be used, which writes so many sectors together; `None` where it cannot be
    /// read.
    pub(super) fn of(device: &mut dyn Source, seen: &Seen, block: u32) -> Option<Self> {
        let label = seen.whole()?.clone();
        let mut frame = vec![0; Sectors(u64::from(block.max(1))).bytes() as usize];
        let is_aligned = seen.at.0.is_multiple_of(u64::from(block.max(1)));
        device.read(seen.at, &mut frame).ok().filter(|()| is_aligned)?;
        Some(Self { label, beside: seen.beside, frame, at: seen.at, sector: seen.sector })
    }

    /// Of a fresh device for a place of the array whose member this is.
    pub(super) fn like(&self, place: u16, fresh: Fresh) -> Self {
        let mut label = self.label.clone();
        label.provider_bytes = fresh.device.bytes();
        label.provider.clear();
        (label.device_flags, label.sync_offset) = (SYNCHRONIZING, 0);
        match label.kind {
            // Nobody is made like it as long as there is another one.
            Kind::Mirror => (label.disk, label.priority) = (fresh.disk, 0),
            _ => label.number = place,
        }
        let at = Sector(fresh.device.0 - fresh.sector.0);
        let frame = vec![0; Sectors(u64::from(fresh.block.max(1))).bytes() as usize];
        Self { label, beside: None, frame, at, sector: fresh.sector }
    }

    /// Its label.
    pub fn label(&self) -> &Label {
        &self.label
    }

    /// Sectors of 512 bytes that the last sector has.
    pub(super) const fn sector(&self) -> Sectors {
        self.sector
    }

    /// Where it stands, and how long what is written with it is.
    pub(crate) fn place(&self) -> (Sector, Sectors) {
        (self.at, Sectors(self.frame.len() as u64 / SECTOR_BYTES))
    }

    /// The label that says this of the device in a place.
    pub(super) fn put(
        &mut self,
        into: &mut [u8],
        said: &Said,
        (place, generation): (u16, &Generation),
    ) -> Option<Put> {
        let is_rebuilding = bit(said.rebuilding, place);
        let is_consistent = said.clean && said.synced_to == Sector::MAX;
        let one = &mut self.label;
        (one.genid, one.syncid) = (generation.genid, generation.syncid);
        let others = one.device_flags & !(DIRTY | SYNCHRONIZING | FORCE_SYNC);
        // Where nothing is synchronised by itself somebody asked for it, and need not ask again.
        let asked = if one.array_flags & NO_AUTOSYNC == 0 { 0 } else { FORCE_SYNC };
        one.device_flags = others
            | match (is_rebuilding, is_consistent) {
                (true, _) => SYNCHRONIZING | asked,
                (false, false) => DIRTY,
                (false, true) => 0,
            };
        let filled = said.rebuilt_to.0.min(one.used() / SECTOR_BYTES) * SECTOR_BYTES;
        one.sync_offset = if is_rebuilding { filled } else { 0 };
        let label = one.bytes();
        self.frame.get_mut(..label.len())?.copy_from_slice(&label);
        let beside = match one.kind {
            Kind::Raid3 => generation.beside,
            _ => Beside { left: 0, ..generation.beside },
        };
        beside.put(&mut self.frame);
        self.beside = Some(beside);
        let bytes = self.frame.len();
        into.get_mut(..bytes)?.copy_from_slice(&self.frame);
        Some(Put { at: self.at, bytes, more: false })
    }
}

/// A device that is to be made ready.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fresh {
    pub(super) device: Sectors,
    /// What its last sector has.
    pub(super) sector: Sectors,
    pub(super) block: u32,
    pub(super) disk: u32,
}
