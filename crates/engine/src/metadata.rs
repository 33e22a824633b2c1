//! The metadata of a running array: which record goes where next, and the memory of those on their way.

use raidlab_core::consistency::{ArrayId, Examined, MetaArea, Parameters};
use raidlab_core::contract::{MetaIo, Record};
use raidlab_core::{Config, MemberIndex, SECTOR_BYTES, Sector, Sectors};
use raidlab_metadata::{Label, Looked, MetadataFormat, Own, Places, Source, Unreadable, device_of};

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
    // SAFETY: the buffer is that long. Up to 256 bytes are given whole once the system has started.
    let given = unsafe { libc::getrandom(bytes.as_mut_ptr().cast(), N, 0) };
    if usize::try_from(given) == Ok(N) {
        return Ok(bytes);
    }
    let reason = format!("getrandom: {}", std::io::Error::last_os_error());
    Err(EngineError::new(EngineErrorKind::Io, "get random numbers", reason))
}

/// The metadata of a running array.
#[derive(Debug)]
pub(crate) struct Metadata {
    array: ArrayId,
    members: u16,
    area: MetaArea,
    sequence: u64,
    /// Members, their replacements, the journal.
    pub(crate) devices: Vec<Places>,
    /// What the superblocks of each say besides the state of the array.
    parameters: Vec<Parameters>,
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
        let members = config.layout.members;
        let devices = (0..=2 * members).map(MemberIndex);
        let parameters: Vec<_> = devices.map(|one| Parameters::of(config, area, one)).collect();
        let devices = parameters.iter().map(|one| Places::blank(Sectors::ZERO, one)).collect();
        Ok(Self {
            array,
            members,
            area: *area,
            sequence: 0,
            devices,
            parameters,
            blocks: Area::new(blocks as usize * FORMAT.head())?,
            free: (0..blocks).rev().collect(),
        })
    }

    pub(crate) fn array(&self) -> &ArrayId {
        &self.array
    }

    /// Where the records of a device with no record of this array lie, in the place of another one. It has as much
    /// room for data, or as much as is left of a smaller one.
    pub(crate) fn fresh(&self, device: MemberIndex, total: Sectors) -> Places {
        let mut places = self.blank(device, total);
        places.data = places.data.min(self.room(device, total));
        places
    }

    /// Where the records of a device lie that the array is made of, or that is not there.
    pub(crate) fn blank(&self, device: MemberIndex, total: Sectors) -> Places {
        Places::blank(total, &self.parameters[device.at()])
    }

    /// Sectors for data on a device of `total` sectors, when it is made ready.
    pub(crate) fn room(&self, device: MemberIndex, total: Sectors) -> Sectors {
        let block = self.parameters[device.at()].block;
        self.area.data(total, block).unwrap_or(Sectors::ZERO)
    }

    /// Sectors for data that a device must have at least: what superblocks say that the array uses of each.
    pub(crate) fn least(&self, device: MemberIndex) -> Sectors {
        self.parameters[device.at()].least
    }

    /// Where the records of a device lie that was looked at. What is written from now on is newer than all
    /// that this array has there.
    pub(crate) fn known(&mut self, device: MemberIndex, looked: &Looked) -> Places {
        self.sequence = self.sequence.max(looked.sequence_of(&self.array));
        looked.places_of(&self.array, &self.parameters[device.at()])
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
        let at = FORMAT.place(&mut self.devices[meta.member.at()], meta);
        let label = self.label(device_of(meta, self.members), sectors, at);
        let parameters = &mut self.parameters[meta.member.at()];
        // Another drive may be in the place since.
        parameters.data = self.devices[meta.member.at()].data;
        let parameters = matches!(meta.record, Record::Superblock(_)).then_some(&*parameters);
        let (piece, block) = block(&mut self.blocks, number);
        FORMAT.encode(block, &label, &meta.record, parameters, &mut payload);
        Some((BlockId(number), piece, at))
    }

    /// Puts into a block that a place of a device is ready for a superblock.
    pub(crate) fn begin_vacant(
        &mut self,
        device: MemberIndex,
        at: Sector,
    ) -> Option<(BlockId, Piece)> {
        let number = self.free.pop()?;
        let label = self.label(device.0, 0, at);
        let (piece, block) = block(&mut self.blocks, number);
        FORMAT.vacant(block, &label);
        Some((BlockId(number), piece))
    }

    fn label(&mut self, device: u16, payload: u32, at: Sector) -> Label {
        self.sequence += 1;
        Label { array: self.array, device, sequence: self.sequence, payload, at }
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
