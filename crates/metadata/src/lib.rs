//! Encodes and decodes the metadata of arrays on their members.
//!
//! This crate is pure: bytes in, values out. It opens nothing, and does not know how an array is run. A
//! [`MetadataFormat`] says where each record goes and what its bytes are, and reads what a device carries through a
//! [`Source`] that the caller has opened. [`Own`] is the format of raidlab's own arrays, [`md::Md`] that of Linux md,
//! [`geom::Geom`] that of FreeBSD's mirrors, [`RecordWriter`] writes any of them. Positions are in sectors of
//! 512 bytes from the start of the device.
//!
//! Fault model: any sector may be unreadable or hold anything at all; a device may be blank, come from another array
//! or another place of this one, be a copy made earlier, or have been cut off or have grown. What was never written
//! is distinguished from what was damaged, since a damaged place may have held the newest record. No input makes a
//! format panic, or use more memory than a device of its size can fill. Tests: `tests/formats.rs`, `tests/damage.rs`.
//!
//! In the example a superblock is written to a device in memory and found on it:
//!
//! ```
//! use raidlab_core::consistency::{MetaArea, Parameters};
//! use raidlab_core::contract::{MetaIo, Record, SegmentList, Superblock};
//! use raidlab_core::{Array, Config, Consistency, Layout, Level, MemberIndex, Sector, Sectors};
//! use raidlab_metadata::{MetadataFormat, Own, RecordWriter, Source, Unreadable};
//!
//! struct Disk(Vec<u8>);
//!
//! impl Disk {
//!     fn at(&mut self, at: Sector, len: usize) -> &mut [u8] {
//!         &mut self.0[at.bytes() as usize..][..len]
//!     }
//! }
//!
//! impl Source for Disk {
//!     fn sectors(&self) -> Sectors {
//!         Sectors(self.0.len() as u64 / 512)
//!     }
//!
//!     fn logical_block(&self) -> u32 {
//!         1
//!     }
//!
//!     fn read(&mut self, at: Sector, into: &mut [u8]) -> Result<(), Unreadable> {
//!         into.copy_from_slice(self.at(at, into.len()));
//!         Ok(())
//!     }
//! }
//!
//! // Member 1 of a mirror, of which 1 MiB is for data.
//! let mut disk = Disk(vec![0; 2 << 20]);
//! let mut config = Config::uniform(Layout::new(Level::Raid1, 2), Sectors(2048));
//! config.settings.consistency = Consistency::Resync;
//! let area = MetaArea::of(&Array::new(&config)?, config.settings.consistency, Sectors(2048));
//! let mut writer = RecordWriter::new([7; 16], &config, &area);
//! let member = MemberIndex(1);
//! writer.set_places(member, writer.blank(member, disk.sectors()));
//! let mut head = vec![0; Own.head()];
//! for at in Own.superblocks(disk.sectors()) {
//!     writer.encode_vacant(&mut head, member, at);
//!     disk.at(at, head.len()).copy_from_slice(&head);
//! }
//!
//! let record = Record::Superblock(Superblock { events: 3, clean: true, ..Superblock::default() });
//! let (at, payload) = (Sector(0), SegmentList::EMPTY);
//! let meta = MetaIo { member, record, at, payload, flush: false, fua: true };
//! let put = writer.encode(&Own, &mut head, &meta, (0, 0, &mut std::iter::empty()));
//! let at = put.expect("own records are never left out").at;
//! disk.at(at, head.len()).copy_from_slice(&head);
//!
//! let found = Own.examine(&mut disk).examined.superblock;
//! let carried = found.whole().expect("a superblock");
//! assert_eq!((carried.array, carried.device, carried.superblock.events), ([7; 16], 1, 3));
//! # Ok::<(), raidlab_core::ConfigError>(())
//! ```
#![forbid(unsafe_code)]

mod checksum;
pub mod geom;
mod log;
pub mod lvm;
pub mod md;
mod own;
mod places;
mod printable;
mod read;
mod record;
mod superblock;
mod writer;

use std::fmt::Debug;

use raidlab_core::consistency::{Examined, Parameters};
use raidlab_core::contract::MetaIo;
use raidlab_core::{Sector, Sectors};

pub use checksum::Checksum;
pub use own::Own;
pub use places::Places;
pub use printable::printable;
pub use raidlab_core::consistency::ArrayId;
pub use writer::RecordWriter;

/// A way to keep the records of an array on its members.
pub trait MetadataFormat: Debug + Send + Sync {
    /// Bytes of a record without its payload: what [`put`](Self::put) fills at most. At least all that lies in
    /// the first 512 of them is written together or not at all, whatever the device.
    fn head(&self) -> usize;

    /// Looks at a device: its superblock, its bitmap and its log.
    fn examine(&self, device: &mut dyn Source) -> Looked;

    /// Fills `head` with a record, sealed with its payload where the format has that, and says where it goes; `None`
    /// for a record that the format does not have. What `device` is known to hold is as if it had been written.
    fn put(
        &self,
        head: &mut [u8],
        device: &mut Places,
        entry: &Entry<'_>,
        payload: &mut dyn Iterator<Item = &[u8]>,
    ) -> Option<Put>;

    /// Whether records of a device are written one after another: where two of them change the same bytes.
    fn in_turn(&self) -> bool {
        false
    }
}

/// A record that is to be written.
#[derive(Clone, Copy, Debug)]
pub struct Entry<'a> {
    /// What goes to which device.
    pub meta: &'a MetaIo,
    /// What stands in every record, but for where it stands.
    pub label: Label,
    /// What the device's superblocks say besides the state of the array.
    pub parameters: &'a Parameters,
    /// Of a record that is several writes, which of them; from 0.
    pub part: u32,
    /// Whose numbers md's superblocks list.
    pub device_numbers: &'a md::DeviceNumbers,
    /// How old labels of GEOM say that the state of the array is.
    pub generation: &'a geom::Generation,
}

/// Where a record goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Put {
    /// The sector of the device.
    pub at: Sector,
    /// Bytes of the head that are written.
    pub bytes: usize,
    /// The next part is written when this one has been.
    pub more: bool,
}

/// A device that can be looked at.
pub trait Source {
    /// Sectors in all.
    fn sectors(&self) -> Sectors;

    /// Sectors that are written together or not at all; reads start and end on multiples of them.
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
    /// The device it is for: the place of a member, also for what a replacement is given, since that serves when it
    /// has taken over. A superblock goes to a replacement only when it holds everything: were it known by a number of
    /// its own, a power cut right after it took over would leave a drive that nobody knows.
    pub device: u16,
    /// Grows with every record of an array.
    pub sequence: u64,
    /// Sectors of payload.
    pub payload: u32,
    /// Where on its device it stands: found elsewhere it was never written there.
    pub at: Sector,
}

/// What a device carries, and what one who goes on writing to it must know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Looked {
    /// What the array is told.
    pub examined: Examined,
    /// Where its records lie; blank where no superblock can be read.
    pub places: Places,
    /// The largest sequence seen: what is written from now on has a larger one.
    pub sequence: u64,
}

impl Looked {
    /// The largest sequence seen of this array; 0 when the device carries another one, or none.
    pub(crate) fn sequence_of(&self, array: &ArrayId) -> u64 {
        let is_theirs = self.examined.superblock.readable().is_some_and(|one| one.array == *array);
        if is_theirs { self.sequence } else { 0 }
    }

    /// Where the records of the device lie if it carries this array; else those of a device with none.
    pub(crate) fn places_of(&self, array: &ArrayId, parameters: &Parameters) -> Places {
        match self.examined.superblock.readable() {
            Some(one) if one.array == *array => self.places.clone(),
            // The log device of md's says nothing of the array's state.
            _ if self.places.is_journal_of(array) => self.places.clone(),
            _ => Places::blank(self.examined.sectors, parameters),
        }
    }
}

/// The place of a member, of so many, also for its replacement; of the log device its own number.
const fn place_of(device: u16, members: u16) -> u16 {
    if members <= device && device < 2 * members { device - members } else { device }
}
