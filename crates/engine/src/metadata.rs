//! The metadata of a running array: which record goes where next, and the memory of those on their way.

use raidlab_core::consistency::{ArrayId, Examined, MetaArea};
use raidlab_core::contract::MetaIo;
use raidlab_core::{Config, MemberIndex, SECTOR_BYTES, Sector, Sectors};
use raidlab_metadata::{Looked, MetadataFormat, Own, Places, RecordWriter, Source, Unreadable};

use rustix::rand::{GetRandomFlags, getrandom};

use crate::buffers::{Area, Piece};
use crate::error::{EngineError, EngineErrorKind};
use crate::member::Member;

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

/// What a device carries; that none is there is a finding, too.
pub(crate) fn look(member: &mut Member) -> Looked {
    match member {
        Member::Absent => {
            let examined = Examined::absent();
            Looked { examined, places: Places::default(), sequence: 0 }
        }
        there => FORMAT.examine(there),
    }
}

/// Random bytes of the system's.
///
/// # Errors
/// When it has none.
pub(crate) fn random<const N: usize>() -> Result<[u8; N], EngineError> {
    let mut bytes = [0; N];
    // Up to 256 bytes are given whole once the system has started.
    match getrandom(&mut bytes, GetRandomFlags::empty()) {
        Ok(given) if given == N => Ok(bytes),
        other => {
            let reason = format!("getrandom: {other:?}");
            Err(EngineError::new(EngineErrorKind::Io, "get random numbers", reason))
        }
    }
}

/// The metadata of a running array.
#[derive(Debug)]
pub(crate) struct Metadata {
    pub(crate) records: RecordWriter,
    /// A block for each metadata I/O under way.
    blocks: Area,
    free: Vec<u32>,
}

/// A block of [`Metadata`] in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BlockId(u32);

impl Metadata {
    /// For an array with this identity, of devices that are not there yet, and so many I/Os at once.
    pub(crate) fn new(
        array: ArrayId,
        config: &Config,
        area: &MetaArea,
        blocks: u32,
    ) -> Result<Self, EngineError> {
        Ok(Self {
            records: RecordWriter::new(array, config, area),
            blocks: Area::new(blocks as usize * FORMAT.head())?,
            free: (0..blocks).rev().collect(),
        })
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
        let (piece, block) = block(&mut self.blocks, number);
        let at = self.records.encode(FORMAT, block, meta, (sectors, &mut payload));
        Some((BlockId(number), piece, at))
    }

    /// Puts into a block that a place of a device is ready for a superblock.
    pub(crate) fn begin_vacant(
        &mut self,
        device: MemberIndex,
        at: Sector,
    ) -> Option<(BlockId, Piece)> {
        let number = self.free.pop()?;
        let (piece, block) = block(&mut self.blocks, number);
        self.records.encode_vacant(FORMAT, block, device, at);
        Some((BlockId(number), piece))
    }

    /// A block is in use no longer.
    pub(crate) fn end(&mut self, block: BlockId) {
        self.free.push(block.0);
    }
}

fn block(blocks: &mut Area, number: u32) -> (Piece, &mut [u8]) {
    let len = FORMAT.head();
    let from = number as usize * len;
    let piece = Piece { start: blocks.start().wrapping_add(from), len };
    (piece, &mut blocks.bytes_mut()[from..from + len])
}

/// Bytes of the block of a record and its payload.
pub(crate) fn bytes(payload_sectors: u64) -> u64 {
    FORMAT.head() as u64 + payload_sectors * SECTOR_BYTES
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_takes_its_head_and_its_payload() {
        assert_eq!(bytes(0), FORMAT.head() as u64);
        assert_eq!(bytes(8), bytes(0) + 8 * 512);
    }
}
