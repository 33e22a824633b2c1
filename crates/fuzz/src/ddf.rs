//! Disks of a DDF container with one array on them.

use raidlab_core::{Array as Running, Sectors};
use raidlab_metadata::md::ddf::{Array, Ddf, arrays, look};
use raidlab_metadata::md::{Allowed, Inspected, Role, assemble, inspect};

use crate::disk::{Disk, SECTOR};
use crate::script::Script;

/// Sectors of a disk; the anchor is the last one.
const SECTORS: usize = 64;
/// Where the primary header stands, and the secondary one, with their parts behind them.
const HEADERS: [usize; 2] = [32, 44];
/// Parts behind a header: first sector, sectors, and what they begin with.
const PARTS: [(usize, usize, u32); 4] =
    [(1, 1, 0x2222_2222), (2, 1, 0xdddd_dddd), (3, 2, 0xeeee_eeee), (5, 1, 0x3333_3333)];
/// Disks of the container.
const COUNT: usize = 4;
/// Parts that a configuration has room for.
const MOST: usize = 8;
/// Where the array begins on a disk, and how many sectors it has there.
const START: usize = 4;
const SIZE: usize = 16;
/// The most bytes that are changed in a piece.
const MOST_CHANGES: usize = 4;
/// Level, qualifier, mirrors, which of them, second level; of the last two disks of a raid10 the second mirror.
const KINDS: [[u8; 4]; 6] = [
    [5, 3, 1, 0xff],
    [0, 0, 1, 0xff],
    [1, 0, 1, 0xff],
    [6, 3, 1, 0xff],
    [1, 0, 2, 0],
    [0x1f, 0, 1, 0xff],
];

fn put(bytes: &mut [u8], at: usize, value: &[u8]) {
    bytes[at..at + value.len()].copy_from_slice(value);
}

/// The CRC-32 that the format has, with its own field set while it is computed.
fn seal(bytes: &mut [u8]) {
    put(bytes, 4, &[0xff; 4]);
    let crc = bytes.iter().fold(0_u32, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| {
            crc >> 1 ^ if crc & 1 == 1 { 0xedb8_8320 } else { 0 }
        })
    });
    put(bytes, 4, &crc.to_be_bytes());
}

fn header(kind: u8, sequence: u32) -> Vec<u8> {
    let mut header = vec![0xff; SECTOR];
    put(&mut header, 0, &0xde11_de11_u32.to_be_bytes());
    put(&mut header, 8, &[9; 24]);
    put(&mut header, 40, &sequence.to_be_bytes());
    header[48] = 0;
    put(&mut header, 96, &(HEADERS[0] as u64).to_be_bytes());
    put(&mut header, 104, &(HEADERS[1] as u64).to_be_bytes());
    header[112] = kind;
    put(&mut header, 134, &2_u16.to_be_bytes());
    put(&mut header, 136, &(MOST as u16).to_be_bytes());
    for (n, (at, sectors, _)) in PARTS.iter().enumerate() {
        put(&mut header, 200 + 8 * n, &(*at as u32).to_be_bytes());
        put(&mut header, 204 + 8 * n, &(*sectors as u32).to_be_bytes());
    }
    header
}

fn configuration(
    own: usize,
    sequence: u32,
    [level, qualifier, mirrors, second]: [u8; 4],
) -> Vec<u8> {
    let mut record = vec![0xff; 2 * SECTOR];
    let count = COUNT / usize::from(mirrors);
    let first = own / count * count;
    put(&mut record, 8, &[1; 24]);
    put(&mut record, 36, &sequence.to_be_bytes());
    put(&mut record, 64, &(count as u16).to_be_bytes());
    put(&mut record, 66, &[3, level, qualifier, mirrors, (own / count) as u8, second]);
    put(&mut record, 72, &(SIZE as u64).to_be_bytes());
    for part in 0..count {
        put(&mut record, 512 + 4 * part, &((0x100 + first + part) as u32).to_be_bytes());
        put(&mut record, 512 + 4 * MOST + 8 * part, &(START as u64).to_be_bytes());
    }
    record
}

/// A part as a disk has it where nothing is wrong.
fn part(n: usize, own: usize, sequence: u32, kind: [u8; 4]) -> Vec<u8> {
    let mut bytes = vec![0xff; SECTOR * PARTS[n].1];
    match n {
        0 => (0..COUNT).for_each(|disk| {
            let at = 64 + 64 * disk;
            put(&mut bytes, at, &[disk as u8; 24]);
            put(&mut bytes, at + 24, &((0x100 + disk) as u32).to_be_bytes());
            put(&mut bytes, at + 30, &1_u16.to_be_bytes());
        }),
        1 => {
            put(&mut bytes, 64, &[1; 24]);
            put(&mut bytes, 64 + 32, &[0, 2]);
            put(&mut bytes, 64 + 48, b"array\0");
        }
        2 => bytes = configuration(own, sequence, kind),
        _ => put(&mut bytes, 32, &((0x100 + own) as u32).to_be_bytes()),
    }
    put(&mut bytes, 0, &PARTS[n].2.to_be_bytes());
    bytes
}

fn disk(script: &mut Script<'_>, own: usize, kind: [u8; 4]) -> Vec<u8> {
    let mut disk = vec![0; SECTORS * SECTOR];
    let sequences = [script.byte(), script.byte()].map(|byte| 5 + u32::from(byte / 64));
    let mut store = |at: usize, mut bytes: Vec<u8>| {
        let changes = script.below(4 * MOST_CHANGES).saturating_sub(3 * MOST_CHANGES);
        for _ in 0..changes {
            let place = script.below(bytes.len());
            bytes[place] = [0, 1, 2, 0xff, script.byte()][script.below(5)];
        }
        if script.below(16) < 15 {
            seal(&mut bytes);
        }
        put(&mut disk, at * SECTOR, &bytes);
    };
    store(SECTORS - 1, header(0, sequences[0]));
    for (which, at) in HEADERS.into_iter().enumerate() {
        store(at, header(which as u8 + 1, sequences[which]));
        for (n, (behind, ..)) in PARTS.iter().enumerate() {
            store(at + behind, part(n, own, sequences[which], kind));
        }
    }
    disk
}

/// Four disks of a container, changed under right checksums or not. What is put in service is said by whole parts to be
/// in its place, lies on its disk, and there are as many as the level needs.
pub fn ddf(data: &[u8]) {
    let mut script = Script::new(data);
    let kind = KINDS[script.below(KINDS.len())];
    let allowed = Allowed { dirty_degraded: script.flag(), ..Allowed::default() };
    let mut disks: Vec<Disk> = (0..COUNT).map(|of| Disk(disk(&mut script, of, kind))).collect();
    let mut seen: Vec<Ddf> = Vec::new();
    for disk in &mut disks {
        let found = look(disk);
        assert_eq!(inspect(disk).ddf.as_deref(), found.as_ref(), "the same each time");
        seen.extend(found);
    }
    for (_, array) in arrays(&seen.iter().collect::<Vec<_>>()) {
        if let Ok(array) = array {
            judge(&array, &seen, &allowed);
        }
    }
}

fn judge(array: &Array, seen: &[Ddf], allowed: &Allowed) {
    let told: Vec<Inspected> =
        seen.iter().map(|one| array.on(one, Sectors(SECTORS as u64))).collect();
    let Ok(assembly) = assemble(&told, allowed) else { return };
    let running = Running::read_only(&assembly.config(), assembly.failed(), &[]);
    assert!(running.is_ok(), "{assembly:?}");
    let mut used = vec![false; told.len()];
    for (place, member) in (0..).zip(&assembly.places) {
        let Some(given) = member.given else { continue };
        assert!(!std::mem::replace(&mut used[given], true), "once");
        let said = array.members[usize::from(place)].expect("a disk says that it is a member");
        assert_eq!(said, (seen[given].own, member.data_offset.0), "in its place");
        let one = told[given].superblock().expect("in service");
        assert_eq!(one.role(), Role::Member(place));
        let end = member.data_offset.0.saturating_add(member.sectors.0);
        assert!(end <= SECTORS as u64 && member.sectors.0 <= array.size, "on the disk");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the inputs begin with is whole: all members are in service.
    #[test]
    fn what_nothing_was_changed_of_is_put_together() {
        for kind in KINDS {
            let seen: Vec<Ddf> = (0..COUNT)
                .map(|of| look(&mut Disk(disk(&mut Script::new(&[]), of, kind))).expect("whole"))
                .collect();
            let (_, array) = arrays(&seen.iter().collect::<Vec<_>>()).pop().expect("an array");
            let array = array.expect("can be read");
            let told: Vec<Inspected> =
                seen.iter().map(|one| array.on(one, Sectors(SECTORS as u64))).collect();
            let assembly = assemble(&told, &Allowed::default()).expect("all are there");
            assert!(assembly.missing().is_empty() && assembly.clean, "{kind:?}");
        }
    }
}
