//! The metadata of a running array: which record goes where next, and the memory of those on their way.

use raidlab_core::consistency::{ArrayId, Examined, MetaArea};
use raidlab_core::contract::MetaIo;
use raidlab_core::{Config, MemberIndex, SECTOR_BYTES, Sector, Sectors};
use raidlab_metadata::geom::Geom;
use raidlab_metadata::md::{Md, PplEntry};
use raidlab_metadata::{
    Looked, MetadataFormat, Own, Places, Put, RecordWriter, Source, Unreadable,
};

use rustix::rand::{GetRandomFlags, getrandom};

use crate::buffers::{Area, Piece};
use crate::error::{EngineError, EngineErrorKind};
use crate::member::Member;

/// Bytes that any format has of a record without its payload, at most.
const HEAD: usize = 4096;

/// How an array keeps metadata.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Form {
    /// raidlab's own format.
    Own,
    /// Linux md's.
    Md(Md),
    /// Labels of FreeBSD's gmirror and graid3.
    Geom,
}

impl Form {
    pub(crate) fn format(&self) -> &dyn MetadataFormat {
        match self {
            Self::Own => &Own,
            Self::Md(md) => md,
            Self::Geom => &Geom,
        }
    }
}

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
pub(crate) fn look(form: &Form, member: &mut Member) -> Looked {
    match member {
        Member::Absent => {
            let examined = Examined::absent();
            Looked { examined, places: Places::default(), sequence: 0 }
        }
        there => form.format().examine(there),
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
    pub(crate) form: Form,
    /// A block for each metadata I/O under way.
    blocks: Area,
    free: Vec<u32>,
    /// What a header that is being put together has.
    pub(crate) entries: Vec<PplEntry>,
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
        (blocks, form): (u32, Form),
    ) -> Result<Self, EngineError> {
        debug_assert!(form.format().head() <= HEAD, "a record has room in its block");
        Ok(Self {
            records: RecordWriter::new(array, config, area),
            form,
            blocks: Area::new(blocks as usize * HEAD)?,
            free: (0..blocks).rev().collect(),
            entries: Vec::new(),
        })
    }

    /// Puts a record, or a part of it, into a block; gives the block and where it goes on the device. `None` when there
    /// are more under way than the array may have, or the format has no such record.
    pub(crate) fn begin<'a>(
        &mut self,
        meta: &MetaIo,
        mut payload: impl Iterator<Item = &'a [u8]>,
        (part, sectors): (u32, u32),
    ) -> Option<(BlockId, Piece, Put)> {
        if let Form::Md(_) = self.form {
            self.records.device_numbers().now = now();
        }
        let number = self.free.pop()?;
        let (mut piece, block) = block(&mut self.blocks, number);
        let form = self.form;
        let put = self.records.encode(form.format(), block, meta, (part, sectors, &mut payload));
        let Some(put) = put else {
            self.free.push(number);
            return None;
        };
        piece.len = put.bytes;
        Some((BlockId(number), piece, put))
    }

    /// Puts a header of [`entries`](Self::entries) into a block, whose payloads follow it; as [`begin`](Self::begin).
    pub(crate) fn begin_header(&mut self, device: MemberIndex) -> Option<(BlockId, Piece, Put)> {
        let number = self.free.pop()?;
        let (piece, block) = block(&mut self.blocks, number);
        let Some(put) = self.records.put_header(block, device, &self.entries) else {
            self.free.push(number);
            return None;
        };
        Some((BlockId(number), piece, put))
    }

    /// Puts the block of md's journal that was put together into a block, whose pages follow it.
    pub(crate) fn begin_block(&mut self, device: MemberIndex) -> Option<(BlockId, Piece, Put)> {
        let number = self.free.pop()?;
        let (piece, block) = block(&mut self.blocks, number);
        let Some(put) = self.records.journal(device).and_then(|journal| journal.put(block)) else {
            self.free.push(number);
            return None;
        };
        Some((BlockId(number), piece, put))
    }

    /// Puts into a block that a place of a device is ready for a superblock.
    pub(crate) fn begin_vacant(
        &mut self,
        device: MemberIndex,
        at: Sector,
    ) -> Option<(BlockId, Piece)> {
        let number = self.free.pop()?;
        let (piece, block) = block(&mut self.blocks, number);
        self.records.encode_vacant(block, device, at);
        Some((BlockId(number), piece))
    }

    /// A block is in use no longer.
    pub(crate) fn end(&mut self, block: BlockId) {
        self.free.push(block.0);
    }
}

fn block(blocks: &mut Area, number: u32) -> (Piece, &mut [u8]) {
    let from = number as usize * HEAD;
    let piece = Piece { start: blocks.start().wrapping_add(from), len: HEAD };
    (piece, &mut blocks.bytes_mut()[from..from + HEAD])
}

/// The time as md's superblocks have it: seconds since 1970 in the low 40 bits, microseconds above.
pub(crate) fn now() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let since = since.unwrap_or_default();
    since.as_secs() & ((1 << 40) - 1) | u64::from(since.subsec_micros()) << 40
}

/// Sectors of a record of so many bytes and its payload.
pub(crate) fn sectors(head: usize, payload: u64) -> Sectors {
    Sectors(head as u64 / SECTOR_BYTES + payload)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_takes_its_head_and_its_payload() {
        assert_eq!(sectors(HEAD, 0), Sectors(8));
        assert_eq!(sectors(512, 8), Sectors(9));
        assert!(
            [Form::Own, Form::Md(Md { block: 8 }), Form::Geom]
                .iter()
                .all(|form| form.format().head() <= HEAD)
        );
    }
}
