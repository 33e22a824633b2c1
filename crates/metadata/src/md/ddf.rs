//! The Common RAID Disk Data Format (SNIA DDF), as hardware controllers and mdadm write it: only read.
//!
//! A header in the last sector of a disk says where a primary and a secondary one are, and these where the parts
//! are: physical disks, virtual disks (arrays), the configuration of those that this disk has a part of, and which of
//! the physical disks it is. All numbers are big-endian. What a disk says of an array is told as a superblock of md, so
//! that the same rules decide who is believed. Tested against what mdadm makes: `crates/cli/tests/array/ddf.rs`.

use raidlab_core::{SECTOR_BYTES, Sector, Sectors};

use super::{ALL, Features, Inspected, Reshape, Role, Seen, Superblock, Version};
use crate::Source;

const HEADER: u32 = 0xde11_de11;
const PHYSICAL: u32 = 0x2222_2222;
const VIRTUAL: u32 = 0xdddd_dddd;
const CONFIGURATION: u32 = 0xeeee_eeee;
const OWN_DISK: u32 = 0x3333_3333;
/// The reference of a place that has no disk.
const NO_DISK: u32 = u32::MAX;
const SECTOR: usize = SECTOR_BYTES as usize;
/// The longest part that is read: a header may say anything.
const MOST: u32 = 8192;
/// Sectors that a disk has at most: 16 PiB.
const MOST_SECTORS: u64 = 1 << 45;
/// A name of the format: eight letters of the maker, then what is unique.
pub type Guid = [u8; 24];

/// A disk of the container.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PhysicalDisk {
    /// How configurations name it.
    pub reference: u32,
    /// 1 in service, 2 failed, 4 being rebuilt, 64 missing.
    pub state: u16,
}

impl PhysicalDisk {
    /// Whether all that it holds may be believed.
    pub const fn is_in_service(&self) -> bool {
        self.state & (1 | 2 | 4 | 64) == 1
    }
}

/// An array.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VirtualDisk {
    /// Its identity.
    pub guid: Guid,
    /// Its name, as far as it is text, and safe to print.
    pub name: String,
    /// 0 optimal, 1 degraded, ... and 16: not consistent.
    pub state: u8,
    /// 2: all of it was made consistent once.
    pub initialised: u8,
}

/// How an array, or one of the mirrors that it stripes over, lies on its disks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Configuration {
    /// The array.
    pub guid: Guid,
    /// Grows with each change.
    pub sequence: u32,
    /// Level and its qualifier; 0xff of the second level: none.
    pub level: (u8, u8, u8),
    /// How many mirrors there are, and which of them this is.
    pub mirrors: (u8, u8),
    /// Sectors of a chunk.
    pub chunk: u32,
    /// Sectors of each disk.
    pub size: u64,
    /// Its disks in order, and the first sector of each.
    pub parts: Vec<(u32, u64)>,
}

/// What a disk carries of the format.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ddf {
    /// The container's identity.
    pub guid: Guid,
    /// Grows with each change.
    pub sequence: u32,
    /// Where the header stands that was read.
    pub at: Sector,
    /// Which of the disks this is.
    pub own: u32,
    /// The disks of the container.
    pub disks: Vec<PhysicalDisk>,
    /// Its arrays.
    pub arrays: Vec<VirtualDisk>,
    /// Of those that this disk has a part of.
    pub configurations: Vec<Configuration>,
}

fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes(super::fields::bytes(bytes, at))
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes(super::fields::bytes(bytes, at))
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_be_bytes(super::fields::bytes(bytes, at))
}

/// CRC-32 of the usual polynomial, begun with zero and not inverted; the field itself counts as set.
fn checksum(bytes: &[u8]) -> u32 {
    let step = |crc: u32, byte: u8| {
        (0..8).fold(crc ^ u32::from(byte), |crc, _| {
            crc >> 1 ^ if crc & 1 == 1 { 0xedb8_8320 } else { 0 }
        })
    };
    let field = |at: usize, byte: u8| if (4..8).contains(&at) { 0xff } else { byte };
    bytes.iter().enumerate().fold(0, |crc, (at, byte)| step(crc, field(at, *byte)))
}

/// Whole sectors that begin with a number, and whose checksum is right.
fn part(device: &mut dyn Source, at: u64, sectors: u32, magic: u32) -> Option<Vec<u8>> {
    let end = at.checked_add(sectors.into())?;
    if sectors == 0 || sectors > MOST || end > device.sectors().0 {
        return None;
    }
    let mut bytes = vec![0; sectors as usize * SECTOR];
    device.read(Sector(at), &mut bytes).ok()?;
    (u32_at(&bytes, 0) == magic && checksum(&bytes) == u32_at(&bytes, 4)).then_some(bytes)
}

/// What a disk carries; `None` when it carries nothing of it, or nothing that is whole.
pub fn look(device: &mut dyn Source) -> Option<Ddf> {
    let last = device.sectors().0.checked_sub(1)?;
    let anchor = part(device, last, 1, HEADER)?;
    let guid: Guid = super::fields::bytes(&anchor, 8);
    let mut headers: Vec<(u64, Vec<u8>)> = [96, 104]
        .into_iter()
        .filter_map(|field| {
            let at = u64_at(&anchor, field);
            part(device, at, 1, HEADER).map(|header| (at, header))
        })
        .filter(|(_, header)| super::fields::bytes::<24>(header, 8) == guid)
        .collect();
    // One that is being written is open; of those that are not the newest counts, and the first of equal ones.
    headers.sort_by_key(|(_, header)| (header[48] != 0, std::cmp::Reverse(u32_at(header, 40))));
    headers.into_iter().find_map(|(at, header)| read(device, guid, at, &header))
}

/// What stands behind a header; `None` unless all of it is whole.
fn read(device: &mut dyn Source, guid: Guid, at: u64, header: &[u8]) -> Option<Ddf> {
    let mut section = |field: usize, magic: u32| {
        part(
            device,
            at.checked_add(u32_at(header, field).into())?,
            u32_at(header, field + 4),
            magic,
        )
    };
    let (physical, virtuals) = (section(200, PHYSICAL)?, section(208, VIRTUAL)?);
    let own = u32_at(&section(224, OWN_DISK)?, 32);
    let entries = |bytes: &[u8]| {
        let entries = bytes.get(64..).unwrap_or_default().chunks_exact(64);
        entries.filter(|entry| entry[..24] != [0xff; 24]).map(<[u8]>::to_vec).collect::<Vec<_>>()
    };
    let disk =
        |entry: Vec<u8>| PhysicalDisk { reference: u32_at(&entry, 24), state: u16_at(&entry, 30) };
    let array = |entry: Vec<u8>| VirtualDisk {
        guid: super::fields::bytes(&entry, 0),
        name: {
            let text = entry[48..64].split(|byte| *byte == 0 || *byte == 0xff).next();
            crate::printable(text.unwrap_or_default().trim_ascii_end())
        },
        state: entry[32],
        initialised: entry[33] & 3,
    };
    Some(Ddf {
        guid,
        sequence: u32_at(header, 40),
        at: Sector(at),
        own,
        disks: entries(&physical).into_iter().map(disk).collect(),
        arrays: entries(&virtuals).into_iter().map(array).collect(),
        configurations: configurations(device, at, header),
    })
}

/// Records are of one length; those that are torn or of another kind, such as of spares, say nothing of an array.
fn configurations(device: &mut dyn Source, at: u64, header: &[u8]) -> Vec<Configuration> {
    let (offset, sectors) = (u32_at(header, 216), u32_at(header, 220));
    let (length, most) = (u32::from(u16_at(header, 134)), usize::from(u16_at(header, 136)));
    if length == 0 || sectors > MOST {
        return Vec::new();
    }
    let record = |n: u32| {
        let at = at.checked_add(offset.into())?.checked_add((n * length).into())?;
        let bytes = part(device, at, length, CONFIGURATION)?;
        let count = usize::from(u16_at(&bytes, 64));
        // References of all there may be, then the first sectors of all.
        if count > most || 512 + 12 * most > bytes.len() {
            return None;
        }
        let place = |n| (u32_at(&bytes, 512 + 4 * n), u64_at(&bytes, 512 + 4 * most + 8 * n));
        let is_beyond = |sectors: u64| sectors > MOST_SECTORS;
        // What stands beside an empty place is nobody's.
        let is_part_beyond = |(disk, at): (u32, u64)| disk != NO_DISK && is_beyond(at);
        if is_beyond(u64_at(&bytes, 72)) || (0..count).map(place).any(is_part_beyond) {
            return None;
        }
        Some(Configuration {
            guid: super::fields::bytes(&bytes, 8),
            sequence: u32_at(&bytes, 36),
            level: (bytes[67], bytes[68], bytes[71]),
            mirrors: (bytes[69], bytes[70]),
            chunk: 1_u32.checked_shl(bytes[66].into()).unwrap_or(0),
            size: u64_at(&bytes, 72),
            parts: (0..count).map(place).collect(),
        })
    };
    (0..sectors / length).filter_map(record).collect()
}

/// An array of a container, as its newest disks have it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Array {
    /// What it is.
    pub disk: VirtualDisk,
    /// As md counts levels.
    pub level: i32,
    /// As md has it for the level.
    pub layout: u32,
    /// Sectors of a chunk.
    pub chunk: u32,
    /// Sectors of each member.
    pub size: u64,
    /// Its members in order: which disk, and its first sector; `None` where no disk that was given says it.
    pub members: Vec<Option<(u32, u64)>>,
}

/// The arrays of the disks that were given, each with why it cannot be read where that is so.
pub fn arrays(all: &[&Ddf]) -> Vec<(VirtualDisk, Result<Array, String>)> {
    let Some(newest) = all.iter().max_by_key(|one| one.sequence) else { return Vec::new() };
    newest.arrays.iter().map(|disk| (disk.clone(), array(all, disk))).collect()
}

fn array(all: &[&Ddf], disk: &VirtualDisk) -> Result<Array, String> {
    let of = |one: &&Configuration| one.guid == disk.guid;
    let mut found: Vec<&Configuration> =
        all.iter().flat_map(|one| one.configurations.iter().filter(of)).collect();
    found.sort_by_key(|one| std::cmp::Reverse(one.sequence));
    let first = *found.first().ok_or("no disk that was given has a part of it")?;
    let (level, layout) = level(first).ok_or_else(|| {
        let (level, qualifier, second) = first.level;
        format!("its level ({level:#x}, {qualifier:#x}, {second:#x}) is not read in this version")
    })?;
    let each = first.parts.len();
    let mirrors = usize::from(first.mirrors.0.max(1));
    let mut members = vec![None; each * mirrors];
    for one in &found {
        let from = each * usize::from(if mirrors > 1 { one.mirrors.1 } else { 0 });
        let same = (one.level, one.mirrors.0, one.chunk, one.size, one.parts.len());
        let known = (first.level, first.mirrors.0, first.chunk, first.size, each);
        // Of several the newest counts; what differs in shape is of an earlier one.
        let Some(places) = members.get_mut(from..from + each).filter(|_| same == known) else {
            continue;
        };
        if places.iter().all(Option::is_none) {
            places.iter_mut().zip(&one.parts).for_each(|(place, part)| *place = Some(*part));
        }
    }
    let (disk, chunk, size) = (disk.clone(), first.chunk, first.size);
    Ok(Array { disk, level, layout, chunk, size, members })
}

/// Level and layout as md has them; `None` for those that it does not have, or of which it is not sure what they mean.
fn level(one: &Configuration) -> Option<(i32, u32)> {
    if one.mirrors.0 > 1 {
        // Stripes over mirrors, or mirrors one behind the other as mdadm calls the same.
        let is_raid10 = one.level.0 == 1 && matches!(one.level.2, 0 | 3) && one.parts.len() == 2;
        return is_raid10.then_some((10, 0x102));
    }
    Some(match (one.level.0, one.level.1) {
        (0x00, _) => (0, 0),
        (0x01, _) => (1, 0),
        // The last disk has all parity.
        (0x04, 1) => (4, 0),
        (0x05, 0) => (5, 1),
        (0x05, 2) => (5, 0),
        (0x05, 3) => (5, 2),
        (0x06, 1) => (6, 8),
        (0x06, 2) => (6, 9),
        (0x06, 3) => (6, 10),
        // Copies beside each other. Whether 1 is md's offset or far copies is not sure.
        (0x11, 0) => (10, 0x102),
        (0x1f, _) => (-1, 0),
        _ => return None,
    })
}

impl Array {
    /// What a disk says of it, as a superblock of md; nothing where it has no part of it.
    pub fn on(&self, one: &Ddf, sectors: Sectors) -> Inspected {
        let ddf = Some(Box::new(one.clone()));
        let mut inspected = Inspected { sectors, ddf, ..Inspected::default() };
        let own = self.members.iter().enumerate().find_map(|(n, member)| {
            let (reference, at) = (*member)?;
            (reference == one.own).then_some((n, at))
        });
        let Some((place, at)) = own else {
            return inspected;
        };
        let said = one.arrays.iter().find(|array| array.guid == self.disk.guid);
        let is_clean = said.is_some_and(|said| said.state & 16 == 0 && said.initialised == 2);
        let role = |(n, member): (usize, &Option<(u32, u64)>)| {
            let disk = member.and_then(|(reference, _)| {
                one.disks.iter().find(|disk| disk.reference == reference)
            });
            match disk.is_some_and(PhysicalDisk::is_in_service) {
                true => Role::Member(n as u16),
                false => Role::Faulty,
            }
        };
        let mut name = [0; 32];
        let text = self.disk.name.as_bytes();
        name[..text.len().min(32)].copy_from_slice(&text[..text.len().min(32)]);
        let superblock = Superblock {
            features: Features(0),
            array: super::fields::bytes(&self.disk.guid, 8),
            name,
            created: 0,
            level: self.level,
            layout: self.layout,
            size: if self.level == -1 { 0 } else { self.size },
            chunk: self.chunk,
            members: self.members.len() as u32,
            aside: super::Aside::Nothing,
            reshape: Reshape::default(),
            data_offset: at,
            data_size: self.size,
            super_offset: one.at.0,
            recovery: 0,
            number: place as u32,
            corrected: 0,
            device: device(one),
            flags: 0,
            bad_blocks: super::BadBlockLog::default(),
            updated: 0,
            events: one.sequence.into(),
            resync: if is_clean { ALL } else { 0 },
            logical_block: 0,
            roles: self.members.iter().enumerate().map(role).collect(),
            v0: None,
        };
        let bytes = Vec::new();
        let (version, checksums, damage) = (Version::V1_0, (0, 0), None);
        inspected.bad = Some(Vec::new());
        inspected.seen.push(Seen { version, superblock, bytes, checksums, damage });
        inspected
    }
}

/// What tells a disk from the others of its container.
fn device(one: &Ddf) -> [u8; 16] {
    let mut id = [0; 16];
    id[..4].copy_from_slice(&one.own.to_be_bytes());
    id[4..].copy_from_slice(&one.guid[12..]);
    id
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first half of the header in the last sector of a disk of 64 MiB, as mdadm 4.2 wrote it; the rest is set.
    const ANCHOR: &str = "\
        de11de112f1c08e44c696e75782d4d44deadbeef00000000583a57867bda9eee\
        30312e30322e3030ffffffff583a5793ff0000ffffffffffffffffffffffffff\
        ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff\
        0000000000018000000000000001000000ffffff000080000000000000010000\
        03ff00ff004000070100ffffffffffffffffffffffffffffffffffffffffffff\
        ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff\
        000000010000000100000002000000800000008200000020000000a2000001c7\
        0000026900000001ffffffff00000000ffffffff00000000ffffffff00000000\
    ";

    fn anchor() -> Vec<u8> {
        let digits = ANCHOR.split_whitespace().collect::<String>();
        let byte = |n: usize| u8::from_str_radix(&digits[n..n + 2], 16).expect("digits");
        let mut sector: Vec<u8> = (0..digits.len()).step_by(2).map(byte).collect();
        sector.resize(SECTOR, 0xff);
        sector
    }

    #[test]
    fn the_checksum_is_that_of_mdadm() {
        let anchor = anchor();
        assert_eq!(checksum(&anchor), u32_at(&anchor, 4));
        for bit in [0, 64, 8 * SECTOR - 1] {
            let mut torn = anchor.clone();
            torn[bit / 8] ^= 1 << (bit % 8);
            assert_ne!(checksum(&torn), u32_at(&torn, 4), "bit {bit}");
        }
        assert_eq!((u64_at(&anchor, 96), u64_at(&anchor, 104)), (98304, 65536));
    }
}
