//! Members of an array of Linux md.

use raidlab_core::Array;
use raidlab_metadata::md::{
    ALL, Allowed, Aside, BadBlockLog, ByteOrder, Features, Frame, Inspected, Reshape, Role,
    Superblock, V0, V0Device, assemble, inspect,
};

use crate::disk::{Disk, SECTOR};
use crate::script::Script;

const SECTORS: usize = 96;
/// Where the superblock of version 1.2 stands, and where its checksum is in it.
const AT: usize = 4096;
const CHECKSUM: usize = 216;
const MEMBERS: u16 = 4;
/// The most bytes of a device that are changed.
const MOST_CHANGES: usize = 64;

/// A member's superblock as md might have written it.
fn superblock(place: u16, level: (i32, u32)) -> Superblock {
    let mut roles = vec![Role::Spare; 128];
    for member in 0..MEMBERS {
        roles[usize::from(member)] = Role::Member(member);
    }
    let mut name = [0; 32];
    name[..4].copy_from_slice(b"fuzz");
    Superblock {
        features: Features(0),
        array: [7; 16],
        name,
        created: 1,
        level: level.0,
        layout: level.1,
        size: 16,
        chunk: 8,
        members: u32::from(MEMBERS),
        aside: Aside::Nothing,
        reshape: Reshape::default(),
        data_offset: 64,
        data_size: 32,
        super_offset: 8,
        recovery: 0,
        number: u32::from(place),
        corrected: 0,
        device: [place as u8; 16],
        flags: 0,
        bad_blocks: BadBlockLog { shift: 0, size: 8, offset: 16 },
        updated: 1,
        events: 20,
        resync: ALL,
        logical_block: 0,
        roles,
        v0: None,
    }
}

/// A device: the superblock of a member, some bytes of it or elsewhere changed, under a right checksum or not.
fn device(script: &mut Script<'_>, level: (i32, u32)) -> Vec<u8> {
    let mut bytes = vec![0; SECTORS * SECTOR];
    let place = script.below(usize::from(MEMBERS)) as u16;
    let written = superblock(place, level).emit(&mut bytes[AT..]);
    assert_eq!(written, Ok(()), "there is room");
    bytes[AT + 16 * SECTOR..AT + 24 * SECTOR].fill(0xff);
    for _ in 0..script.below(MOST_CHANGES) {
        let at = match script.below(4) {
            0 => script.below(SECTORS * SECTOR),
            1 => AT + 16 * SECTOR + script.below(64),
            _ => AT + script.below(300),
        };
        bytes[at] = script.below(256) as u8;
    }
    if script.below(8) > 0
        && let Ok(frame) = Frame::new(&bytes[AT..])
    {
        let sum = frame.checksum();
        bytes[AT + CHECKSUM..][..4].copy_from_slice(&sum.to_le_bytes());
    }
    bytes.truncate((SECTORS - script.below(SECTORS) * usize::from(script.below(8) == 0)) * SECTOR);
    bytes
}

/// Where a superblock of version 0.90 stands on a device that is just large enough, and where its checksum is in it.
const OLD_AT: usize = 128 * SECTOR;
const OLD_CHECKSUM: usize = 4 * 38;

/// The same of version 0.90, in either order of bytes, with the lines of the last member and of a spare.
fn old_superblock(place: u16, level: (i32, u32), order: ByteOrder) -> Superblock {
    let line = |number: u32| {
        let state = if number < u32::from(MEMBERS) { 6 } else { 0 };
        V0Device { number, major: 8, minor: 16 * number, place: number, state }
    };
    let mut table: Vec<V0Device> = (0..=u32::from(MEMBERS)).map(line).collect();
    let own = table[usize::from(place)];
    table.resize(27, V0Device::default());
    let v0 = V0 {
        order,
        minor_version: 90,
        patch: 0,
        md_minor: 0,
        size: 32,
        devices: 5,
        state: 1,
        counts: [4, 5, 0, 1],
        checkpoint: 20,
        resync: u32::MAX,
        table,
        own,
    };
    Superblock { v0: Some(Box::new(v0)), ..superblock(place, level) }
}

/// A device with such a superblock, changed in the same ways.
fn old_device(script: &mut Script<'_>, level: (i32, u32)) -> Vec<u8> {
    let mut bytes = vec![0; 2 * OLD_AT];
    let place = script.below(usize::from(MEMBERS) + 1) as u16;
    let order = if script.flag() { ByteOrder::Big } else { ByteOrder::Little };
    let written = old_superblock(place, level, order).emit(&mut bytes[OLD_AT..]);
    assert_eq!(written, Ok(()), "there is room");
    for _ in 0..script.below(MOST_CHANGES) {
        let at = match script.below(4) {
            0 => script.below(2 * OLD_AT),
            1 => OLD_AT + 4 * 128 + script.below(700),
            2 => OLD_AT + 4 * 992 + script.below(20),
            _ => OLD_AT + script.below(280),
        };
        bytes[at] = script.below(256) as u8;
    }
    // Read and written it has a right checksum.
    if script.below(8) > 0 {
        rewritten(&mut bytes);
    }
    bytes.truncate(bytes.len() - script.below(96) * SECTOR * usize::from(script.below(8) == 0));
    bytes
}

/// What is read of a superblock of version 0.90 is written as it was.
fn rewritten(bytes: &mut [u8]) {
    let found = inspect(&mut Disk(bytes.to_vec()));
    let Some(seen) = found.seen.iter().find(|seen| seen.superblock.v0.is_some()) else { return };
    let before = bytes[OLD_AT..].to_vec();
    assert_eq!(seen.superblock.emit(&mut bytes[OLD_AT..]), Ok(()));
    let checksum = OLD_CHECKSUM..OLD_CHECKSUM + 4;
    let mut after = bytes[OLD_AT..].to_vec();
    after[checksum.clone()].copy_from_slice(&before[checksum]);
    assert_eq!(after, before, "written as it was read");
}

/// Up to six devices that are, or look like, members of an array of any level. A superblock is written as it was read;
/// what is put in service is a whole superblock of one array, in its place, within one event of the newest, and there
/// are as many as the level needs.
pub fn md(data: &[u8]) {
    const LEVELS: [(i32, u32); 8] =
        [(5, 2), (6, 8), (1, 0), (0, 0), (-1, 0), (4, 0), (10, 0x102), (10, 0x201)];
    let mut script = Script::new(data);
    let choice = script.byte();
    let (level, is_old) = (LEVELS[usize::from(choice) % LEVELS.len()], choice >= 0xc0);
    let allowed = Allowed {
        dirty_degraded: script.below(2) == 1,
        ignore_journal: script.below(2) == 1,
        ..Allowed::default()
    };
    let count = 1 + script.below(6);
    let mut all = Vec::new();
    for _ in 0..count {
        if is_old {
            all.push(inspect(&mut Disk(old_device(&mut script, level))));
            continue;
        }
        let bytes = device(&mut script, level);
        if let Some(Ok(frame)) = bytes.get(AT..).map(Frame::new) {
            let mut again = bytes[AT..].to_vec();
            let one = Superblock::parse(&frame);
            assert_eq!(one.emit(&mut again), Ok(()));
            put_checksum(&mut again, frame.stored_checksum());
            assert_eq!(again, bytes[AT..], "written as it was read");
        }
        all.push(inspect(&mut Disk(bytes)));
    }
    judge(&all, &allowed);
}

fn put_checksum(bytes: &mut [u8], checksum: u32) {
    bytes[CHECKSUM..][..4].copy_from_slice(&checksum.to_le_bytes());
}

fn judge(all: &[Inspected], allowed: &Allowed) {
    let Ok(assembly) = assemble(all, allowed) else { return };
    let array = Array::read_only(&assembly.config(), assembly.failed(), &[]);
    assert!(array.is_ok(), "{assembly:?}");
    let mut seen = vec![false; all.len()];
    for (place, member) in (0..).zip(&assembly.places) {
        let Some(given) = member.given else { continue };
        assert!(!std::mem::replace(&mut seen[given], true), "once");
        let one = all[given].superblock().expect("a whole superblock");
        assert_eq!((one.array, one.role()), (assembly.array, Role::Member(place)));
        assert!(one.events.saturating_add(1) >= assembly.events && one.rebuilt_to().is_none());
        let end = member.data_offset.0.saturating_add(member.sectors.0);
        assert!(end <= all[given].sectors.0, "data lie on the device");
    }
    assert_eq!(seen.iter().filter(|used| !**used).count(), assembly.out.len());
}
