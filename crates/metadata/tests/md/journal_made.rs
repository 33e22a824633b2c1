//! New arrays with a journal: as mdadm 4.2 makes them, or refused with what would be right.

use raidlab_core::{Layout, Level, Sectors};
use raidlab_metadata::md::{
    Creation, Device, Features, LogDevice, Made, Plan, Role, Version, WantedBitmap, journal,
};

use super::device;

const MEMBER: u64 = 131_072;
/// What mdadm 4.2 wrote as the first block of a journal, and of which array.
const ARRAY: [u8; 16] = [
    0xcf, 0xd6, 0x35, 0x53, 0x97, 0x58, 0x95, 0x1a, 0xf3, 0x82, 0x8c, 0xac, 0xd9, 0xf1, 0xa5, 0x27,
];
const FIRST: u32 = 0x7b71_8363;
const BLOCK: u128 = 0x09c5_3364_bacc_faca_0100_0000_2000_0000;

fn log(sectors: u64) -> Option<LogDevice> {
    Some(LogDevice { device: Device { sectors: Sectors(sectors), id: [9; 16] }, first: FIRST })
}

fn creation(level: Level, members: u16) -> Creation {
    let mut layout = Layout::new(level, members);
    if level.has_chunks() {
        layout.chunk = Sectors(128);
    }
    let plain = device::creation(layout, MEMBER);
    Creation { journal: log(MEMBER), array: ARRAY, ..plain }
}

/// The log device is the last to be numbered but for the member that is rebuilt; its superblock is a member's.
#[test]
fn a_log_device_is_what_mdadm_makes_it() {
    let spare = Device { sectors: Sectors(MEMBER), id: [8; 16] };
    let numbers = |plan: &Plan| {
        let all = plan.members.iter().flatten().chain(&plan.spares).chain(&plan.journal);
        all.map(|one| one.superblock.number).collect::<Vec<_>>()
    };
    let spared = Creation { spares: vec![spare], ..creation(Level::Raid5, 3) };
    assert_eq!(numbers(&spared.plan().unwrap()), [0, 1, 5, 3, 4]);
    let clean = Creation { assume_clean: true, ..spared };
    assert_eq!(numbers(&clean.plan().unwrap()), [0, 1, 2, 3, 4]);
    assert_eq!(numbers(&creation(Level::Raid6, 4).plan().unwrap()), [0, 1, 2, 3, 4]);
    let plan = creation(Level::Raid5, 3).plan().unwrap();
    assert_eq!(numbers(&plan), [0, 1, 4, 3]);
    let all: Vec<&Made> = plan.members.iter().flatten().chain(&plan.journal).collect();
    let roles = [Role::Member(0), Role::Member(1), Role::Spare, Role::Journal, Role::Spare];
    for made in &all {
        assert_eq!(made.superblock.roles[..5], roles);
        assert_eq!(made.superblock.features, Features::JOURNAL);
    }
    let one = &all[3].superblock;
    assert_eq!((one.data_offset, one.data_size, one.recovery), (2048, MEMBER - 2048, 0));
    let block = &all[3].pieces.iter().find(|piece| piece.0.0 == 2048).unwrap().1;
    assert_eq!(block[..16], BLOCK.to_be_bytes());
    assert_eq!(block[16..20], FIRST.to_le_bytes());
    assert!(block.len() == 4096 && block[20..].iter().all(|byte| *byte == 0));
    assert_eq!(all[3].pieces.last().unwrap().0.0, 8, "the superblock is the last");
}

/// Its size is of no account to the array, and nothing but a journal is kept by itself.
#[test]
fn a_log_device_may_have_another_size_than_members() {
    const GIB: u64 = 1 << 21;
    let like = creation(Level::Raid5, 3).plan().unwrap();
    for sectors in [2048 + journal::least(3), 4096, 64 * GIB] {
        let plan = Creation { journal: log(sectors), ..creation(Level::Raid5, 3) }.plan().unwrap();
        assert_eq!((plan.size, plan.data_offset), (like.size, like.data_offset));
        assert_eq!(plan.journal.unwrap().superblock.data_size, sectors - 2048);
    }
    let large = device::creation(Layout::new(Level::Raid6, 4), 256 * GIB);
    let large = Creation { bitmap: WantedBitmap::Auto, ..large };
    assert!(large.plan().unwrap().bitmap.is_some());
    assert!(Creation { journal: log(GIB), ..large }.plan().unwrap().bitmap.is_none());
}

#[test]
fn a_journal_that_cannot_be_says_why() {
    let error = |level, change: &dyn Fn(&mut Creation)| {
        let mut creation = creation(level, 4);
        change(&mut creation);
        creation.plan().expect_err("no array").to_string()
    };
    for (level, change, words) in [
        (
            Level::Raid10,
            &(|_: &mut Creation| {}) as &dyn Fn(&mut Creation),
            "raid4, raid5 and raid6",
        ),
        (Level::Raid1, &|_| {}, "raid4, raid5 and raid6"),
        (Level::Raid0, &|_| {}, "raid4, raid5 and raid6"),
        (Level::Raid5, &|one| one.version = Version::V1_0, "version 1.0 has no journal"),
        (
            Level::Raid5,
            &|one| (one.version, one.name) = (Version::V0_90, "md5".into()),
            "version 0.90 has no journal",
        ),
        (Level::Raid5, &|one| one.bitmap = WantedBitmap::Internal, "a journal or a bitmap"),
        (Level::Raid5, &|one| one.ppl = true, "a journal or a log of partial parity"),
        (
            Level::Raid5,
            &|one| one.data_offset = Some(Sectors(2052)),
            "a multiple of 4KiB, not at 1026KiB",
        ),
        (Level::Raid5, &|one| one.journal = log(2048 + 511), "needs 1280KiB"),
    ] {
        let error = error(level, change);
        assert!(error.contains(words), "{words}: {error}");
    }
    // More members need more at once.
    assert_eq!([3, 13, 14, 64].map(journal::least), [512, 512, 544, 2144]);
}
