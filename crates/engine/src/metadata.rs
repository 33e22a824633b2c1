//! The metadata of a running array: which record goes where next, and the memory of those on their way.

use raidlab_core::consistency::MetaArea;
use raidlab_core::contract::{MetaIo, Record};
use raidlab_core::{MemberIndex, SECTOR_BYTES, Sector, Sectors};

use crate::buffers::{Area, Piece};
use crate::error::EngineError;
use crate::member::Member;
use raidlab_metadata::{ArrayId, Facts, Label, MetadataFormat, Own, Places, Source, Unreadable};

/// How arrays keep metadata.
pub(crate) const FORMAT: &dyn MetadataFormat = &Own;

impl Source for Member {
    fn sectors(&self) -> Sectors {
        self.config().sectors
    }

    fn logical_block(&self) -> u32 {
        self.config().logical_block
    }

    fn read(&mut self, at: Sector, into: &mut [u8]) -> Result<(), Unreadable> {
        self.read_direct(at, into).map_err(|_| Unreadable)
    }
}

/// The metadata of a running array.
#[derive(Debug)]
pub(crate) struct Metadata {
    array: ArrayId,
    pub(crate) area: MetaArea,
    layout: String,
    sequence: u64,
    /// Members, their replacements, the journal.
    pub(crate) devices: Vec<Places>,
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
        (devices, blocks): (Vec<Places>, u32),
    ) -> Result<Self, EngineError> {
        let journal = MemberIndex(devices.len() as u16 - 1);
        Ok(Self {
            array,
            area,
            layout,
            sequence,
            devices,
            journal,
            blocks: Area::new(blocks as usize * FORMAT.head())?,
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
        mut payload: impl Iterator<Item = &'a [u8]>,
        sectors: u32,
    ) -> Option<(BlockId, Piece, Sector)> {
        let number = self.free.pop()?;
        let device = &mut self.devices[meta.member.at()];
        let at = FORMAT.place(device, meta, meta.member == self.journal);
        self.sequence += 1;
        let label = Label {
            array: self.array,
            device: meta.member.0,
            sequence: self.sequence,
            payload: sectors,
        };
        let facts = matches!(meta.record, Record::Superblock(_)).then(|| Facts {
            data: device.data.0,
            log: self.area.log.0,
            pages: u64::from(self.area.pages),
            layout: &self.layout,
        });
        let len = FORMAT.head();
        let from = number as usize * len;
        let block = &mut self.blocks.bytes_mut()[from..from + len];
        FORMAT.encode(block, &label, &meta.record, facts.as_ref(), &mut payload);
        let piece = Piece { start: self.blocks.start().wrapping_add(from), len };
        Some((BlockId(number), piece, at))
    }

    /// A block is in use no longer.
    pub(crate) fn end(&mut self, block: BlockId) {
        self.free.push(block.0);
    }
}

/// Bytes of the block of a record and its payload.
pub(crate) fn bytes(payload_sectors: u64) -> u64 {
    FORMAT.head() as u64 + payload_sectors * SECTOR_BYTES
}
