//! What a device carries of md.

use raidlab_core::{SECTOR_BYTES, Sector, Sectors};

use super::ddf::{self, Ddf};
use super::logs::BLOCK;
use super::{
    Aside, Bitmap, BitmapKind, Damage, Features, Frame, JournalBlock, PplSeen, Role, Superblock,
    Version, bad_blocks, partitions, ppl, v0,
};
use crate::{ArrayId, Source, Unreadable, geom, lvm};

/// Bytes that are read for a superblock: as many as the largest has.
const READ: usize = 4096;
/// Bits that are counted at most: those of a bitmap of 2 MiB, four times what mdadm makes.
pub(crate) const MOST_BITMAP: Sectors = Sectors(4096);

/// A superblock that was seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    /// By the place where it stands.
    pub version: Version,
    /// What it says.
    pub superblock: Superblock,
    /// Its bytes.
    pub bytes: Vec<u8>,
    /// The checksum that stands there, and that of the bytes.
    pub checksums: (u32, u32),
    /// Why it cannot be used.
    pub damage: Option<Damage>,
}

/// What was seen of a bitmap.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum BitmapSeen {
    /// The superblock names none.
    #[default]
    None,
    /// It cannot be read, or no bitmap stands there.
    Lost,
    /// Its head, and how many bits are set; `None` for kinds whose bits are not read, or too many of them.
    Found(Bitmap, Option<u64>),
}

/// What was seen of a log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LogSeen {
    /// The device has none.
    #[default]
    None,
    /// It can be read, and nothing in it would be replayed.
    Empty,
    /// Something in it would be replayed.
    Used,
    /// It cannot be read, or is none.
    Lost,
}

/// What a device carries of md.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Inspected {
    /// Sectors of the device.
    pub sectors: Sectors,
    /// Superblocks, the one to be used first.
    pub seen: Vec<Seen>,
    /// Places that bytes were found in which begin as a superblock and are none.
    pub broken: Vec<(Version, Damage)>,
    /// Places that cannot be read.
    pub unreadable: Vec<Version>,
    /// The bitmap.
    pub bitmap: BitmapSeen,
    /// Ranges of the data that are listed as bad, from the start of the data; `None` where the list cannot be read.
    pub bad: Option<Vec<(Sector, Sectors)>>,
    /// Partial parity, or the journal.
    pub log: LogSeen,
    /// What it carries of DDF, where it has no superblock of md.
    pub ddf: Option<Box<Ddf>>,
    /// The label of GEOM that it carries, where it has neither a superblock of md nor anything of DDF.
    pub geom: Option<Box<geom::Seen>>,
    /// What it carries of LVM as a physical volume, where it has none of these: a label of GEOM that cannot be used
    /// is not told of beside a physical volume, one that can be is.
    pub lvm: Option<Box<lvm::Seen>>,
    /// Of a member of a RAID volume of LVM what its superblock does not say.
    pub of_volume: Option<Box<lvm::Membership>>,
    /// The log of partial parity.
    pub partial_parity: Option<PplSeen>,
}

impl Inspected {
    /// The superblock to be used: whole, in its place, the youngest array of several.
    pub fn superblock(&self) -> Option<&Superblock> {
        self.seen.first().filter(|seen| seen.damage.is_none()).map(|seen| &seen.superblock)
    }

    /// The array that it says it is a member of, and its name.
    pub fn array(&self) -> Option<(ArrayId, String)> {
        let label = || self.geom.as_ref()?.whole().map(|one| (one.array(), one.shown_name()));
        self.superblock().map(|one| (one.array, one.name())).or_else(label)
    }
}

/// Looks at a device.
pub fn inspect(device: &mut dyn Source) -> Inspected {
    let mut found = Inspected { sectors: device.sectors(), ..Inspected::default() };
    for version in Version::ALL {
        let Some(at) = version.superblock(found.sectors) else { continue };
        match look(device, version, at) {
            Ok(Some(Ok(seen))) => found.seen.push(seen),
            Ok(Some(Err(damage))) => found.broken.push((version, damage)),
            Ok(None) => {}
            Err(Unreadable) => found.unreadable.push(version),
        }
    }
    found.seen.sort_by_key(|seen| {
        (seen.damage.is_some(), std::cmp::Reverse(seen.superblock.created & SECONDS))
    });
    let Some(one) = found.superblock().cloned() else {
        found.ddf = ddf::look(device).map(Box::new);
        if found.ddf.is_none() {
            found.geom = geom::look(device).map(Box::new);
            found.lvm = lvm::look(device).map(Box::new);
        }
        let is_physical = found.lvm.as_ref().is_some_and(|seen| seen.is_whole());
        match found.geom.as_ref().map(|seen| seen.whole().is_some()) {
            // What another use of the device left.
            Some(false) if is_physical => found.geom = None,
            Some(_) if !is_physical => found.lvm = None,
            _ => {}
        }
        return found;
    };
    found.bitmap = bitmap(device, &one);
    found.bad = bad(device, &one);
    found.partial_parity = ppl::look(device, &one);
    found.log = match &found.partial_parity {
        Some(seen) if seen.header.is_none() || seen.unreadable => LogSeen::Lost,
        Some(seen) if seen.is_used() => LogSeen::Used,
        Some(_) => LogSeen::Empty,
        None => journal(device, &one),
    };
    found
}

/// The seconds of a time stamp.
const SECONDS: u64 = (1 << 40) - 1;

/// A superblock in a place, if one begins there.
fn look(
    device: &mut dyn Source,
    version: Version,
    at: Sector,
) -> Result<Option<Result<Seen, Damage>>, Unreadable> {
    let room = device.sectors().0.saturating_sub(at.0).saturating_mul(SECTOR_BYTES);
    let mut bytes = vec![0; READ.min(usize::try_from(room).unwrap_or(READ))];
    device.read(at, &mut bytes)?;
    if version == Version::V0_90 {
        return look_v0(device, bytes, at);
    }
    let frame = match Frame::new(&bytes[..]) {
        Ok(frame) => frame,
        // Version 0.90 has the same magic, and stands in the first sector of a small device.
        Err(Damage::NotMd | Damage::Major(0)) => return Ok(None),
        Err(damage) => return Ok(Some(Err(damage))),
    };
    let superblock = Superblock::parse(&frame);
    let checksums = (frame.stored_checksum(), frame.checksum());
    let damage = frame.check(at).err();
    bytes.truncate(superblock.len());
    Ok(Some(Ok(Seen { version, superblock, bytes, checksums, damage })))
}

/// The same of version 0.90, which does not say where it stands.
fn look_v0(
    device: &mut dyn Source,
    bytes: Vec<u8>,
    at: Sector,
) -> Result<Option<Result<Seen, Damage>>, Unreadable> {
    let mut seen = match v0::look(bytes, at) {
        Ok(Some(seen)) => seen,
        Ok(None) => return Ok(None),
        Err(damage) => return Ok(Some(Err(damage))),
    };
    if seen.damage.is_none() && partitions::cover(device, at) {
        seen.damage = Some(Damage::OfPartition);
    }
    Ok(Some(Ok(seen)))
}

/// Reads sectors that lie on the device, in whole blocks of it; `None` otherwise.
pub(crate) fn read(device: &mut dyn Source, at: Sector, len: Sectors) -> Option<Vec<u8>> {
    let end = at.0.checked_add(len.0)?;
    let block = u64::from(device.logical_block().max(1));
    let (from, to) = (at.0 / block * block, end.checked_next_multiple_of(block)?);
    if to > device.sectors().0 {
        return None;
    }
    let mut bytes = vec![0; usize::try_from(Sectors(to - from).bytes()).ok()?];
    device.read(Sector(from), &mut bytes).ok()?;
    bytes.truncate(usize::try_from(Sectors(end - from).bytes()).ok()?);
    Some(bytes.split_off(usize::try_from(Sectors(at.0 - from).bytes()).ok()?))
}

fn bitmap(device: &mut dyn Source, one: &Superblock) -> BitmapSeen {
    let Aside::Bitmap(offset) = one.aside else { return BitmapSeen::None };
    let head = one.beside(offset).and_then(|at| {
        let bytes = read(device, at, Sectors(1))?;
        Some((at, Bitmap::parse(&bytes)?))
    });
    let Some((at, head)) = head.filter(|(_, head)| head.array == one.bitmap_id()) else {
        return BitmapSeen::Lost;
    };
    let plain = matches!(head.kind, BitmapKind::Plain);
    let len = head.sectors().filter(|len| plain && *len <= MOST_BITMAP);
    let bits = len.and_then(|len| head.count(&read(device, at, len)?));
    BitmapSeen::Found(head, bits)
}

fn bad(device: &mut dyn Source, one: &Superblock) -> Option<Vec<(Sector, Sectors)>> {
    let log = one.bad_blocks;
    if log.size == 0 || !one.features.has(Features::BAD_BLOCKS) {
        return Some(Vec::new());
    }
    let bytes = read(device, one.beside(log.offset)?, Sectors(u64::from(log.size)))?;
    // The list counts from the start of the device, and what lies before the data is no data.
    let start = one.data_offset;
    let within = |(at, len): (Sector, Sectors)| {
        let end = at.0.saturating_add(len.0);
        let from = at.0.max(start);
        (end > from).then(|| (Sector(from - start), Sectors(end - from)))
    };
    Some(bad_blocks::parse(&bytes, log.shift).into_iter().filter_map(within).collect())
}

fn journal(device: &mut dyn Source, one: &Superblock) -> LogSeen {
    let block = Sectors(BLOCK as u64 / SECTOR_BYTES);
    if one.role() != Role::Journal {
        return LogSeen::None;
    }
    let at = one.data_offset.checked_add(one.recovery).map(Sector);
    match at.and_then(|at| read(device, at, block)) {
        None => LogSeen::Lost,
        Some(bytes) => match JournalBlock::parse(&bytes, &one.array, one.recovery) {
            Some(found) if found.has_payload() => LogSeen::Used,
            // What follows a block without payload would be replayed; what is no block at all ends the log.
            Some(found) => next(device, one, found),
            None => LogSeen::Empty,
        },
    }
}

/// The block of the journal behind an empty one.
fn next(device: &mut dyn Source, one: &Superblock, before: JournalBlock) -> LogSeen {
    let block = Sectors(BLOCK as u64 / SECTOR_BYTES);
    let ring = one.data_size / block.0 * block.0;
    let mut position = before.position.saturating_add(block.0);
    if position >= ring {
        position = 0;
    }
    let at = one.data_offset.checked_add(position).map(Sector);
    let Some(bytes) = at.and_then(|at| read(device, at, block)) else { return LogSeen::Lost };
    match JournalBlock::parse(&bytes, &one.array, position) {
        Some(found) if found.sequence == before.sequence.wrapping_add(1) => LogSeen::Used,
        _ => LogSeen::Empty,
    }
}
