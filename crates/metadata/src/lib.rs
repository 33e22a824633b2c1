//! Metadata of arrays on their members: what stands there, as bytes.
//!
//! Pure: bytes in, values out. A [`MetadataFormat`] says where each record goes and what its bytes are, and reads what
//! a device carries through a [`Source`] that somebody else has opened. [`Own`] is the format of raidlab's own arrays.
//!
//! Fault model: a crash may tear a write at any sector; a device may come from another array, from another place of
//! this one, or hold anything at all; any sector may be unreadable. No input makes a
//! format panic. Tests: `tests/formats.rs`.

mod checksum;
mod own;
mod read;
mod record;

use std::fmt::Debug;

use raidlab_core::consistency::{LogEntry, MetaArea};
use raidlab_core::contract::{MetaIo, Record, Superblock};
use raidlab_core::{MemberIndex, Sector, Sectors};

pub use checksum::Checksum;
pub use own::Own;

/// What identifies an array.
pub type ArrayId = [u8; 16];

/// A way to keep the records of an array on its members.
pub trait MetadataFormat: Debug + Send + Sync {
    /// Bytes of a record without its payload: what [`encode`](Self::encode) fills.
    fn head(&self) -> usize;

    /// Looks at a device: its superblock and bitmap. `None` when it carries no superblock that is whole and fits
    /// the device.
    fn examine(&self, device: &mut dyn Source) -> Option<Examined>;

    /// Every whole entry of the log of array `of` on a device, and the largest sequence among them. The log area
    /// is `area`: from where on, and how many sectors.
    fn examine_log(
        &self,
        device: &mut dyn Source,
        of: (MemberIndex, ArrayId),
        area: (Sector, Sectors),
    ) -> (Vec<LogEntry>, u64);

    /// Where a record goes on a device; of two places the one with the older record, which is thereby the newer.
    /// `journal`: the device is the array's log device.
    fn place(&self, device: &mut Places, meta: &MetaIo, journal: bool) -> Sector;

    /// Fills `head` with a record, sealed together with its payload. `facts` go with superblocks.
    fn encode(
        &self,
        head: &mut [u8],
        label: &Label,
        record: &Record,
        facts: Option<&Facts<'_>>,
        payload: &mut dyn Iterator<Item = &[u8]>,
    );

    /// What a record says; `None` when head and payload are not as they were sealed.
    fn decode(&self, head: &[u8], payload: &[u8]) -> Option<(Label, Record)>;
}

/// A device that can be looked at.
pub trait Source {
    /// Sectors in all.
    fn sectors(&self) -> Sectors;

    /// Sectors that are written together or not at all.
    fn logical_block(&self) -> u32;

    /// Reads whole sectors.
    ///
    /// # Errors
    /// [`Unreadable`] when not all of them can be read; what `into` holds then means nothing.
    fn read(&mut self, at: Sector, into: &mut [u8]) -> Result<(), Unreadable>;
}

/// Some sectors cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unreadable;

/// What stands in every record besides what it records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Label {
    /// The array it belongs to.
    pub array: ArrayId,
    /// The device it is for.
    pub device: u16,
    /// Grows with every record of an array.
    pub sequence: u64,
    /// Sectors of payload.
    pub payload: u32,
}

/// What a superblock says besides the state of the array.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Facts<'a> {
    /// Sectors this device has for data.
    pub data: u64,
    /// Sectors for its log, which lies behind the data.
    pub log: u64,
    /// Pages of the bitmap.
    pub pages: u64,
    /// The layout in words.
    pub layout: &'a str,
}

/// What a device carries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Examined {
    /// The array it belongs to.
    pub array: ArrayId,
    /// The number its array gave it.
    pub device: u16,
    /// The newest superblock.
    pub superblock: Superblock,
    /// Sectors for data.
    pub data: Sectors,
    /// Sectors for its log, behind the data.
    pub log: Sectors,
    /// Pages of the bitmap.
    pub pages: u32,
    /// The layout in words.
    pub layout: String,
    /// The largest sequence seen.
    pub sequence: u64,
    /// The bitmap, a word a page.
    pub bitmap: Vec<u64>,
    /// The older place of the superblock, then of each page.
    pub next: Vec<bool>,
}

/// Where the records of a device lie, and which of two places is the older.
#[derive(Clone, Debug, Default)]
pub struct Places {
    /// Sectors in all.
    pub total: Sectors,
    /// Sectors for data, behind which the log lies.
    pub data: Sectors,
    /// The place that is written next, of the superblock and then of each page.
    next: Vec<bool>,
}

impl Places {
    /// Of a device with no record of this array yet.
    pub fn blank(total: Sectors, data: Sectors, area: &MetaArea) -> Self {
        Self { total, data, next: vec![false; area.pages as usize + 1] }
    }

    /// Of a device that carries what was found.
    pub fn found(total: Sectors, data: Sectors, area: &MetaArea, found: &Examined) -> Self {
        let mut next = found.next.clone();
        next.resize(area.pages as usize + 1, false);
        Self { total, data, next }
    }

    /// Of an array's log device, which has neither data nor superblock.
    pub fn log_device(total: Sectors) -> Self {
        Self { total, ..Self::default() }
    }

    /// Everything behind the data: from where, and how many sectors.
    pub fn behind_data(&self) -> (Sector, Sectors) {
        (Sector(self.data.0), Sectors(self.total.0 - self.data.0))
    }

    /// The older of two places, 0 or 1, of a record; the other one is then.
    pub(crate) fn turn(&mut self, record: usize) -> u32 {
        let Some(next) = self.next.get_mut(record) else { return 0 };
        let place = u32::from(*next);
        *next = !*next;
        place
    }
}
