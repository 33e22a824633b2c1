//! Whether a sector of a whole disk lies within one of its partitions.
//!
//! A superblock of version 0.90 in the last partition may stand where that of the whole disk would, and does not say
//! where it stands. An array may have a partition table of its own, which is seen in the first sector of a member: its
//! partitions end before the superblock, or behind the end of the member.

use raidlab_core::{SECTOR_BYTES, Sector};

use super::fields::{u32_at, u64_at};
use crate::Source;

/// Sectors that are read: both tables as they are usually written.
const READ: u64 = 40;
const SECTOR: usize = SECTOR_BYTES as usize;
/// Where the four entries of the first sector stand, and what ends it.
const ENTRIES: usize = 446;
const SIGNATURE: [u8; 2] = [0x55, 0xaa];
/// A partition that stands for all those of a GUID partition table.
const PROTECTIVE: u8 = 0xee;

/// Whether a partition of this device covers the sector, and all of them lie on the device. Where no table can be read
/// there is none.
pub(super) fn cover(device: &mut dyn Source, at: Sector) -> bool {
    let sectors = device.sectors().0;
    let mut bytes = vec![0; (READ.min(sectors / 8 * 8) * SECTOR_BYTES) as usize];
    if device.read(Sector(0), &mut bytes).is_err() {
        return false;
    }
    let partitions = partitions(&bytes);
    let is_inside = |(start, len): &(u64, u64)| start.saturating_add(*len) <= sectors;
    let covers = |(start, len): &(u64, u64)| (*start..start.saturating_add(*len)).contains(&at.0);
    partitions.iter().all(is_inside) && partitions.iter().any(covers)
}

/// First sectors and lengths of the partitions that a disk with these first sectors has.
fn partitions(bytes: &[u8]) -> Vec<(u64, u64)> {
    if bytes.get(SECTOR - 2..SECTOR) != Some(&SIGNATURE) {
        return Vec::new();
    }
    let entries: Vec<&[u8]> = bytes[ENTRIES..SECTOR - 2].chunks(16).collect();
    // Something else ends its first sector so, too: code of a filesystem.
    if entries.iter().any(|entry| entry[0] & 0x7f != 0) {
        return Vec::new();
    }
    if entries.iter().any(|entry| entry[4] == PROTECTIVE) {
        return guid_partitions(bytes);
    }
    let used = entries.iter().filter(|entry| entry[4] != 0);
    used.map(|entry| (u64::from(u32_at(entry, 8)), u64::from(u32_at(entry, 12)))).collect()
}

fn guid_partitions(bytes: &[u8]) -> Vec<(u64, u64)> {
    let Some(head) = bytes.get(SECTOR..2 * SECTOR).filter(|head| head.starts_with(b"EFI PART"))
    else {
        return Vec::new();
    };
    let from = usize::try_from(u64_at(head, 72).saturating_mul(SECTOR_BYTES)).unwrap_or(usize::MAX);
    let (count, size) = (u32_at(head, 80) as usize, u32_at(head, 84) as usize);
    let entries = bytes.get(from..).unwrap_or_default().chunks(size.max(128)).take(count);
    let used = entries.filter(|entry| entry.len() >= 48 && entry[..16] != [0; 16]);
    let span = |entry: &[u8]| {
        let (first, last) = (u64_at(entry, 32), u64_at(entry, 40));
        (first, last.saturating_add(1).saturating_sub(first))
    };
    used.map(span).collect()
}
