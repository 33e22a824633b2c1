//! Members of an array of Linux md.

use raidlab_core::{Array, Sector, Sectors};
use raidlab_metadata::md::{
    ALL, Allowed, Aside, BadBlockLog, Features, Frame, Inspected, Reshape, Role, Superblock,
    assemble, inspect,
};
use raidlab_metadata::{Source, Unreadable};

use crate::script::Script;

const SECTORS: usize = 96;
const SECTOR: usize = 512;
/// Where the superblock of version 1.2 stands, and where its checksum is in it.
const AT: usize = 4096;
const CHECKSUM: usize = 216;
const MEMBERS: u16 = 4;
/// The most bytes of a device that are changed.
const MOST_CHANGES: usize = 64;

struct Disk(Vec<u8>);

impl Source for Disk {
    fn sectors(&self) -> Sectors {
        Sectors((self.0.len() / SECTOR) as u64)
    }

    fn logical_block(&self) -> u32 {
        1
    }

    fn read(&mut self, at: Sector, into: &mut [u8]) -> Result<(), Unreadable> {
        let from = usize::try_from(at.bytes()).map_err(|_| Unreadable)?;
        let there = from.checked_add(into.len()).and_then(|end| self.0.get(from..end));
        into.copy_from_slice(there.ok_or(Unreadable)?);
        Ok(())
    }
}

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

/// Up to six devices that are, or look like, members of an array of any level. A superblock is written as it was read;
/// what is put in service is a whole superblock of one array, in its place, within one event of the newest, and there
/// are as many as the level needs.
pub fn md(data: &[u8]) {
    const LEVELS: [(i32, u32); 8] =
        [(5, 2), (6, 8), (1, 0), (0, 0), (-1, 0), (4, 0), (10, 0x102), (10, 0x201)];
    let mut script = Script::new(data);
    let level = LEVELS[script.below(LEVELS.len())];
    let allowed = Allowed {
        dirty_degraded: script.below(2) == 1,
        ignore_journal: script.below(2) == 1,
        ..Allowed::default()
    };
    let count = 1 + script.below(6);
    let mut all = Vec::new();
    for _ in 0..count {
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
