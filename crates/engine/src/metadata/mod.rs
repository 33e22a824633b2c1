//! The metadata of an array on its members, in raidlab's own form: where each record goes, and reading
//! all of them back.
//!
//! Fault model: a crash may tear a write at any sector; a device may come from another array, from
//! another place of this one, or hold anything at all. Log entries are overwritten in a ring.
//! Why it is safe: every record carries the identity of its array, the number of its device and a
//! checksum over block and payload, so that a torn or foreign one is never taken; superblocks and pages
//! of the bitmap have two places, written in turn, so that the one before survives a torn write.
//! Tests: `no_flipped_bit_is_taken`, `a_torn_record_leaves_the_one_before`, `tests/metadata.rs`.

mod read;
mod record;

use raidlab_core::consistency::{MetaArea, RECORD};
use raidlab_core::contract::{MetaIo, Record};
use raidlab_core::{MemberIndex, SECTOR_BYTES, Sector, Sectors};

use crate::buffers::{Area, Piece};
use crate::error::EngineError;
pub(crate) use read::{DeviceFound, read_device, read_log};
pub(crate) use record::ArrayId;
use record::{BLOCK, Facts, Label};

/// Where a device's records lie and which of two places is the older.
#[derive(Clone, Debug, Default)]
pub(crate) struct Device {
    /// Sectors in all.
    pub(crate) total: Sectors,
    /// Sectors for data, behind which the log lies.
    pub(crate) data: Sectors,
    /// The place that is written next, of the superblock and then of each page.
    pub(crate) next: Vec<bool>,
}

/// The metadata of a running array.
#[derive(Debug)]
pub(crate) struct Metadata {
    array: ArrayId,
    pub(crate) area: MetaArea,
    layout: String,
    sequence: u64,
    /// Members, their replacements, the journal.
    pub(crate) devices: Vec<Device>,
    journal: MemberIndex,
    /// A block for each metadata I/O under way.
    blocks: Area,
    free: Vec<u32>,
}

/// A block of [`Metadata`] in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BlockId(u32);

impl Metadata {
    /// For a new array, or one that was found with this identity and last sequence.
    pub(crate) fn new(
        array: ArrayId,
        sequence: u64,
        area: MetaArea,
        layout: String,
        (devices, blocks): (Vec<Device>, u32),
    ) -> Result<Self, EngineError> {
        let journal = MemberIndex(devices.len() as u16 - 1);
        Ok(Self {
            array,
            area,
            layout,
            sequence,
            devices,
            journal,
            blocks: Area::new(blocks as usize * BLOCK)?,
            free: (0..blocks).rev().collect(),
        })
    }

    /// A new identity.
    pub(crate) fn identity() -> ArrayId {
        let mut id = ArrayId::default();
        // SAFETY: the buffer is that long. 16 bytes are given whole once the system has started; should
        // they not be, the identity is less random and nothing else.
        unsafe { libc::getrandom(id.as_mut_ptr().cast(), id.len(), 0) };
        id
    }

    pub(crate) fn array(&self) -> ArrayId {
        self.array
    }

    /// Puts a record into a block; gives the block and where it goes on the device. `None` when there are
    /// more under way than the array may have.
    pub(crate) fn begin<'a>(
        &mut self,
        meta: &MetaIo,
        payload: impl Iterator<Item = &'a [u8]>,
        sectors: u32,
    ) -> Option<(BlockId, Piece, Sector)> {
        let number = self.free.pop()?;
        let at = self.place(meta);
        self.sequence += 1;
        let label = Label {
            array: self.array,
            device: meta.member.0,
            sequence: self.sequence,
            payload: sectors,
        };
        let device = &self.devices[meta.member.at()];
        let facts = matches!(meta.record, Record::Superblock(_)).then(|| Facts {
            data: device.data.0,
            log: self.area.log.0,
            pages: u64::from(self.area.pages),
            layout: &self.layout,
        });
        let from = number as usize * BLOCK;
        let block = &mut self.blocks.bytes_mut()[from..from + BLOCK];
        record::put(block, &label, &meta.record, facts.as_ref());
        record::seal(block, payload);
        let piece = Piece { start: self.blocks.start().wrapping_add(from), len: BLOCK };
        Some((BlockId(number), piece, at))
    }

    /// A block is in use no longer.
    pub(crate) fn end(&mut self, block: BlockId) {
        self.free.push(block.0);
    }

    /// Where a record goes; of two places, the one with the older record.
    fn place(&mut self, meta: &MetaIo) -> Sector {
        let device = &mut self.devices[meta.member.at()];
        let (total, data) = (device.total, device.data);
        let mut turn = |record: usize| -> u32 {
            let Some(next) = device.next.get_mut(record) else { return 0 };
            let place = u32::from(*next);
            *next = !*next;
            place
        };
        match meta.record {
            Record::Superblock(_) => MetaArea::superblock(total, turn(0)),
            Record::BitmapPage { page, .. } => MetaArea::page(total, page, turn(1 + page as usize)),
            _ if meta.member == self.journal => meta.at,
            _ => Sector(data.0 + meta.at.0),
        }
    }

    /// Sectors that everything behind the data of a device takes: from where, and how many.
    pub(crate) fn behind_data(&self, device: &Device) -> (Sector, Sectors) {
        (Sector(device.data.0), Sectors(device.total.0 - device.data.0))
    }
}

impl Device {
    /// A device with no record of this array yet.
    pub(crate) fn blank(total: Sectors, data: Sectors, area: &MetaArea) -> Self {
        Self { total, data, next: vec![false; area.pages as usize + 1] }
    }
}

/// Bytes of the block of a record and its payload.
pub(crate) const fn bytes(payload_sectors: u64) -> u64 {
    RECORD as u64 * SECTOR_BYTES + payload_sectors * SECTOR_BYTES
}
