//! md's superblocks as bytes: what is written is read, what has no name stays, what cannot be is named; and which
//! devices make an array.

#[path = "md/ddf.rs"]
mod ddf;
#[path = "md/decisions.rs"]
mod decisions;
#[path = "md/device.rs"]
mod device;
#[path = "md/hostile.rs"]
mod hostile;
#[path = "../../../tests/support/md_v0.rs"]
mod images;
#[path = "md/journal.rs"]
mod journal;
#[path = "md/journal_made.rs"]
mod journal_made;
#[path = "md/journal_replay.rs"]
mod journal_replay;
#[path = "md/logs.rs"]
mod logs;
#[path = "md/memory.rs"]
mod memory;
#[path = "md/v0.rs"]
mod v0;
#[path = "md/written.rs"]
mod written;

use raidlab_core::{Layout, Level, Rotation, Sector, Sectors};
use raidlab_metadata::md::{
    ALL, Aside, BadBlockLog, Creation, Damage, Device, Features, Frame, Obstacle, Plan, Reshape,
    Role, Superblock, Version, WantedBitmap, layout, usual_data_offset, word,
};

use device::Numbers;

/// A superblock with something in each field.
fn any(numbers: &mut Numbers) -> Superblock {
    let mut role = |_| Role::from(numbers.next() as u16);
    let roles = (0..129).map(&mut role).collect();
    let aside = Aside::Bitmap(numbers.next() as i32);
    Superblock {
        features: Features(numbers.next() as u32 & 0x1fff & !3072 | 1),
        array: numbers.bytes(),
        name: *b"host:some-name\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0",
        created: numbers.next(),
        level: numbers.next() as i32,
        layout: numbers.next() as u32,
        size: numbers.next(),
        chunk: numbers.next() as u32,
        members: numbers.next() as u32,
        aside,
        reshape: Reshape {
            level: numbers.next() as i32,
            position: numbers.next(),
            delta: numbers.next() as i32,
            layout: numbers.next() as u32,
            chunk: numbers.next() as u32,
            offset: numbers.next() as i32,
        },
        data_offset: numbers.next(),
        data_size: numbers.next(),
        super_offset: numbers.next(),
        recovery: numbers.next(),
        number: numbers.next() as u32,
        corrected: numbers.next() as u32,
        device: numbers.bytes(),
        flags: numbers.next() as u8,
        bad_blocks: BadBlockLog {
            shift: numbers.next() as u8,
            size: numbers.next() as u16,
            offset: numbers.next() as i32,
        },
        updated: numbers.next(),
        events: numbers.next(),
        resync: numbers.next(),
        logical_block: numbers.next() as u32,
        roles,
        v0: None,
    }
}

#[test]
fn every_field_is_read_as_it_was_written_and_bytes_without_a_name_stay() {
    let mut numbers = Numbers(7);
    for _ in 0..200 {
        let one = any(&mut numbers);
        for fill in [0, 0xa5] {
            let mut bytes = vec![fill; 4096];
            one.emit(&mut bytes).unwrap();
            let frame = Frame::new(&bytes[..]).unwrap();
            assert_eq!(Superblock::parse(&frame), one);
            assert_eq!(frame.stored_checksum(), frame.checksum());
            // `pad0`, what is left of `pad3`, and all behind the roles.
            let unnamed = [12..16, 228..256, 256 + 2 * 129..4096];
            assert!(unnamed.into_iter().flatten().all(|at| bytes[at] == fill));
        }
    }
}

/// Bytes 96 to 99 are left alone where neither bitmap nor partial parity is said to be.
#[test]
fn what_lies_aside_is_one_of_two_things_or_left_alone() {
    let mut one = any(&mut Numbers(1));
    let mut bytes = vec![0; 4096];
    one.emit(&mut bytes).unwrap();
    let aside = bytes[96..100].to_vec();
    (one.features, one.aside) = (Features(0), Aside::Nothing);
    one.emit(&mut bytes).unwrap();
    assert_eq!(bytes[96..100], aside[..]);
    assert_eq!(Superblock::parse(&Frame::new(&bytes[..]).unwrap()), one);
    for features in [Features::PPL, Features::PPLS] {
        let aside = Aside::PartialParity { offset: -2056, size: 2048 };
        (one.features, one.aside) = (features, aside);
        one.emit(&mut bytes).unwrap();
        let read = Superblock::parse(&Frame::new(&bytes[..]).unwrap());
        assert_eq!(read.aside, aside);
    }
}

/// Bytes 152 to 159 are how far a member is rebuilt only with the feature that says so; a number is no role.
#[test]
fn a_number_is_no_role_and_a_tail_no_frontier() {
    let mut one = device::raid5(3, 0);
    one.recovery = 4096;
    assert_eq!((one.rebuilt_to(), one.role()), (None, Role::Member(0)));
    one.features = Features::RECOVERY;
    assert_eq!(one.rebuilt_to(), Some(4096));
    one.number = 7;
    one.roles[7] = Role::Member(2);
    assert_eq!(one.role(), Role::Member(2));
    one.number = 4_000_000;
    assert_eq!(one.role(), Role::Spare);
}

#[test]
fn superblocks_stand_where_md_has_them() {
    // 64 MiB: as mdadm put it there.
    let all = |sectors| Version::ALL.map(|version| version.superblock(Sectors(sectors)));
    assert_eq!(
        all(131_072),
        [Some(Sector(130_944)), Some(Sector(131_056)), Some(Sector(0)), Some(Sector(8))]
    );
    assert_eq!(all(131_079)[1], Some(Sector(131_056)));
    assert_eq!(all(131_199)[0], Some(Sector(130_944)));
    assert_eq!(all(23), [None; 4]);
    assert_eq!(all(24)[..2], [None, Some(Sector(8))]);
    assert_eq!([127, 128, 256].map(|one| all(one)[0]), [None, Some(Sector(0)), Some(Sector(128))]);
}

#[test]
fn what_the_kernel_refuses_is_named() {
    let good = device::raid5(3, 0);
    let check = |change: &dyn Fn(&mut Vec<u8>), sealed: bool| {
        let mut bytes = vec![0; 4096];
        good.emit(&mut bytes).unwrap();
        change(&mut bytes);
        if sealed && let Ok(frame) = Frame::new(bytes.clone()) {
            let sum = frame.checksum();
            bytes[216..220].copy_from_slice(&sum.to_le_bytes());
        }
        Frame::new(&bytes[..]).and_then(|frame| frame.check(Sector(8)))
    };
    assert_eq!(check(&|_| {}, false), Ok(()));
    assert_eq!(check(&|bytes| bytes[0] = 0, true), Err(Damage::NotMd));
    assert_eq!(check(&|bytes| bytes[4] = 0, true), Err(Damage::Major(0)));
    assert_eq!(check(&|bytes| bytes.truncate(255), true), Err(Damage::Short));
    assert_eq!(check(&|bytes| bytes.truncate(300), true), Err(Damage::Short));
    assert_eq!(check(&|bytes| bytes[221] = 8, true), Err(Damage::Devices(0x880)));
    assert!(matches!(check(&|bytes| bytes[40] ^= 1, false), Err(Damage::Checksum { .. })));
    assert_eq!(check(&|bytes| bytes[144] = 16, true), Err(Damage::Misplaced(Sector(16))));
    for at in [12, 15, 228, 255] {
        assert_eq!(check(&|bytes| bytes[at] = 1, true), Err(Damage::Padding), "{at}");
    }
    assert_eq!(check(&|bytes| bytes[136..144].fill(0), true), Err(Damage::NoData));
    assert_eq!(check(&|bytes| bytes[128..136].fill(0), true), Err(Damage::Overlap));
    // Of version 1.0 the superblock lies behind.
    let behind = |size: u64| {
        let (super_offset, data_offset, data_size) = (1200, 0, 1024);
        let one = Superblock { super_offset, data_offset, data_size, size, ..good.clone() };
        let mut bytes = vec![0; 4096];
        one.emit(&mut bytes).unwrap();
        Frame::new(&bytes[..]).and_then(|frame| frame.check(Sector(super_offset)))
    };
    assert_eq!((behind(1200), behind(1201)), (Ok(()), Err(Damage::Overlap)));
    assert_eq!(check(&|bytes| bytes[186] = 9, true), Err(Damage::BadBlockLog(9)));
    for at in [80, 128, 136, 208] {
        let beyond = check(&|bytes| bytes[at + 7] = 0x7f, true);
        assert!(matches!(beyond, Err(Damage::Beyond(..))), "{at}: {beyond:?}");
    }
    // Of events 2^63 can be counted on from, more not.
    assert_eq!(check(&|bytes| bytes[207] = 0x80, true).map_err(|why| why.to_string()), {
        let events = u64::from_le_bytes([100, 0, 0, 0, 0, 0, 0, 0x80]);
        Err(format!("the superblock counts {events} events, more than there can be"))
    });
    let recovery = |features: u8| check(&|bytes| (bytes[8], bytes[159]) = (features, 0x7f), true);
    assert_eq!(recovery(0), Ok(()), "nothing is said");
    assert!(matches!(recovery(2), Err(Damage::Beyond(..))));
    for at in [152, 208] {
        assert_eq!(check(&|bytes| bytes[at..at + 8].fill(0xff), true), Ok(()), "all of it");
    }
}

/// A superblock has roles of 1,920 devices at most.
#[test]
fn a_superblock_is_written_with_as_many_roles_as_fit() {
    let with = |devices| Superblock { roles: vec![Role::Spare; devices], ..device::raid5(3, 0) };
    assert_eq!(with(1920).emit(&mut [0; 4096]), Ok(()));
    assert_eq!(with(1921).emit(&mut [0; 8192]), Err(Damage::Devices(1921)));
}

#[test]
fn layouts_go_both_ways() {
    let raid10 = Layout::new(Level::Raid10, 5).with_chunk(Sectors(128));
    let mut layouts = vec![
        Layout::new(Level::Linear, 3).with_chunk(Sectors(128)),
        Layout::new(Level::Raid0, 3),
        Layout::new(Level::Raid1, 3),
        Layout::new(Level::Raid4, 3),
        raid10.clone(),
        raid10.clone().with_far(2),
        raid10.clone().with_far(2).with_offset(true),
        raid10.clone().with_far(2).with_near(2),
        raid10.with_far(2).with_far_sets(2),
    ];
    layouts.extend(Rotation::RAID5.map(|one| Layout::new(Level::Raid5, 4).with_rotation(one)));
    // Those of a takeover, 16 to 20, among them.
    layouts.extend(Rotation::ALL.map(|one| Layout::new(Level::Raid6, 5).with_rotation(one)));
    for one in layouts {
        let (level, number) = word(&one).unwrap();
        let superblock = Superblock {
            level,
            layout: number,
            chunk: one.chunk.0 as u32,
            members: u32::from(one.members),
            ..device::raid5(3, 0)
        };
        assert_eq!(layout(&superblock, &[], None), Ok(one));
    }
    assert_eq!(word(&Layout::new(Level::Raid3, 3)), None);
}

#[test]
fn what_is_not_read_is_refused_by_name() {
    let refused = |change: &dyn Fn(&mut Superblock)| {
        let mut one = device::raid5(3, 0);
        change(&mut one);
        layout(&one, &[], None).unwrap_err()
    };
    assert_eq!(
        refused(&|one| one.features = Features(1 << 13)),
        Obstacle::Features(Features(1 << 13))
    );
    assert_eq!(refused(&|one| one.features = Features::RESHAPE), Obstacle::Reshape);
    for level in [-4, -5, -100, 7] {
        assert_eq!(refused(&|one| one.level = level), Obstacle::Level(level));
    }
    assert_eq!(refused(&|one| one.layout = 16), Obstacle::Layout { level: "raid5", word: 16 });
    let raid10 = |word: u32| refused(&|one| (one.level, one.layout) = (10, word));
    assert_eq!(raid10(0x2_0201), Obstacle::FarSets);
    assert_eq!(raid10(0x8_0102), Obstacle::Layout { level: "raid10", word: 0x8_0102 });
    assert!(matches!(raid10(0x101), Obstacle::Shape(_)));
    assert!(matches!(refused(&|one| one.chunk = 3), Obstacle::Shape(_)));
    assert!(matches!(refused(&|one| one.members = 200), Obstacle::Shape(_)));
    assert!(matches!(refused(&|one| one.members = 70_000), Obstacle::Shape(_)));
    // raid0 of members that end at different places must say how its zones are ordered, or be told.
    let raid0 = Superblock { level: 0, layout: 0, ..device::raid5(3, 0) };
    let sizes = [4096, 8192, 8192].map(|size| Some(Sectors(size)));
    assert_eq!(layout(&raid0, &sizes, None), Err(Obstacle::ZoneOrder));
    let told = layout(&raid0, &sizes, Some(raidlab_core::layout::ZoneOrder::Alternate)).unwrap();
    assert_eq!(told.zones.name(), "alternate");
    assert!(layout(&raid0, &[Some(Sectors(4097)), Some(Sectors(4096)), None], None).is_ok());
    let said = Superblock { features: Features::RAID0_LAYOUT, layout: 2, ..raid0 };
    assert_eq!(layout(&said, &sizes, None).unwrap().zones.name(), "alternate");
}

/// Sizes, places of data and lists of bad blocks as mdadm 4.2 chose them (raid5 of four members, chunk 512 KiB).
#[test]
fn a_new_array_lies_as_mdadm_has_it() {
    const KIB: u64 = 2;
    const GIB: u64 = 1 << 21;
    let plan = |level, sectors, bitmap, change: &dyn Fn(&mut Creation)| {
        let mut creation = device::creation(Layout::new(level, 4), sectors);
        creation.bitmap = bitmap;
        change(&mut creation);
        let plan = creation.plan().unwrap();
        let one = plan.members[0].as_ref().unwrap().superblock.clone();
        (one.data_offset, one.bad_blocks.offset)
    };
    let plain = |level, sectors| plan(level, sectors, WantedBitmap::None, &|_| {});
    for (sectors, expected) in [
        (4096 * KIB, (4096, 16)),
        (GIB, (4096, 16)),
        (4 * GIB, (10_240, 16)),
        (8 * GIB, (18_432, 16)),
        (10 * GIB, (18_432, 136)),
        (64 * GIB, (133_120, 136)),
        (100 * GIB, (133_120, 136)),
        (128 * GIB, (264_192, 136)),
        (200 * GIB, (264_192, 136)),
        (256 * GIB, (264_192, 264)),
        (12 << 31, (264_192, 264)),
    ] {
        assert_eq!(plain(Level::Raid5, sectors), expected, "{sectors}");
        assert_eq!(usual_data_offset(Sectors(sectors), Sectors(1024)).0, expected.0);
    }
    assert_eq!(plain(Level::Raid1, GIB / 16), (2048, 16));
    let rounded = Layout::new(Level::Linear, 4);
    assert_eq!(
        plan(Level::Linear, GIB / 16, WantedBitmap::None, &|one| one.layout = rounded.clone()),
        (2048, 8)
    );
    let small = Layout::new(Level::Raid5, 4).with_chunk(Sectors(128));
    assert_eq!(
        plan(Level::Raid5, GIB / 16, WantedBitmap::None, &|one| one.layout = small.clone()),
        (2048, 16)
    );
    assert_eq!(
        plan(Level::Raid5, GIB / 16, WantedBitmap::None, &|one| one.ppl = true),
        (6144, 2056)
    );
    for (sectors, expected) in [(256 * GIB, (264_192, 16)), (4 << 31, (264_192, 32))] {
        assert_eq!(plan(Level::Raid5, sectors, WantedBitmap::Internal, &|_| {}), expected);
    }
    // By itself there is a bitmap where more than 100 GiB are used.
    assert_eq!(plan(Level::Raid5, 256 * GIB, WantedBitmap::Auto, &|_| {}), (264_192, 16));
    assert_eq!(plan(Level::Raid5, 64 * GIB, WantedBitmap::Auto, &|_| {}), (133_120, 136));
    for (size, has_bitmap) in [(100 * GIB, false), (100 * GIB + 1024, true)] {
        let bitmap = WantedBitmap::Auto;
        let size = Some(Sectors(size));
        let creation =
            Creation { bitmap, size, ..device::creation(Layout::new(Level::Raid5, 4), 256 * GIB) };
        assert_eq!(creation.plan().unwrap().bitmap.is_some(), has_bitmap, "{size:?}");
    }
}

/// What an array would be made of is read again, up to the largest device.
#[test]
fn devices_are_as_large_as_superblocks_may_say() {
    let plan = |sectors: u64, layout| device::creation(Layout::new(layout, 2), sectors).plan();
    for layout in [Level::Raid1, Level::Linear] {
        let made = plan(1 << 45, layout).expect("16 PiB");
        let one = made.members[0].as_ref().expect("there");
        let mut places = one.pieces.iter().filter(|(at, _)| *at == Sector(8));
        let bytes = &places.next().expect("a superblock").1;
        assert_eq!(Frame::new(&bytes[..]).and_then(|frame| frame.check(Sector(8))), Ok(()));
        let told = plan((1 << 45) + 8, layout).expect_err("more").to_string();
        assert!(told.starts_with("a device of an array has at most 16384TiB, not "), "{told}");
    }
}

/// A bit of the bitmap stands for what is asked for, as long as there is room for all bits.
#[test]
fn a_bitmap_has_the_chunk_that_is_asked_for() {
    let plan = |chunk: u64| {
        let bitmap = WantedBitmap::Chunk(Sectors(chunk));
        // 30,720 bits have room, and data start at 2 MiB.
        Creation { bitmap, ..device::creation(Layout::new(Level::Raid5, 4), 4096 + 16 * 30_720) }
            .plan()
    };
    let one = plan(16).unwrap();
    let bitmap = one.bitmap.unwrap();
    assert_eq!((bitmap.chunk, bitmap.bits()), (8192, Some(30_720)));
    assert_eq!(one.members[0].as_ref().unwrap().superblock.bad_blocks.offset, 16);
    assert_eq!(plan(1 << 17).unwrap().bitmap.unwrap().chunk, 64 << 20);
    for chunk in [8, 24, 0, 1 << 23, 1 << 40] {
        let told = plan(chunk).unwrap_err().to_string();
        assert!(told.ends_with("for a power of two from 8KiB to 2GiB"), "{chunk}: {told}");
    }
    let raid0 = device::creation(Layout::new(Level::Raid0, 4), 131_072);
    assert!(Creation { bitmap: WantedBitmap::Chunk(Sectors(16)), ..raid0 }.plan().is_err());
}

/// On 1.0 data end where the bitmap, the list of bad blocks and the superblock begin, counted from the last multiple of
/// 8 sectors.
#[test]
fn data_of_1_0_lie_before_what_is_written_beside_them() {
    for (sectors, ppl, expected) in
        [(131_072, false, 131_040), (131_079, false, 131_040), (131_072, true, 129_000)]
    {
        let creation = device::creation(Layout::new(Level::Raid5, 4), sectors);
        let plan = Creation { version: Version::V1_0, ppl, ..creation }.plan().unwrap();
        let one = &plan.members[0].as_ref().unwrap().superblock;
        assert_eq!((one.data_offset, one.data_size), (0, expected), "{sectors} {ppl}");
        assert_eq!((one.super_offset, one.bad_blocks.offset), (131_056, -8));
    }
    // Before them is kept what the used size needs, not the device: nothing where each is used to its end (seen of
    // mdadm 4.2; sizes of 16 and 300 GiB, and of 8 GiB and 8 KiB).
    let gib = Some(Sectors(1 << 21));
    for (level, sectors, bitmap, size, expected) in [
        (Level::Linear, 16 << 21, WantedBitmap::None, None, (16 << 21) - 24),
        (Level::Raid0, 300 << 21, WantedBitmap::None, None, (300 << 21) - 24),
        (Level::Raid1, (8 << 21) + 16, WantedBitmap::None, None, (8 << 21) - 16),
        (Level::Raid1, 16 << 21, WantedBitmap::None, gib, (16 << 21) - 32),
        (Level::Raid1, 300 << 21, WantedBitmap::Internal, gib, (300 << 21) - 32),
    ] {
        let creation = device::creation(Layout::new(level, 4), sectors);
        let creation = Creation { version: Version::V1_0, bitmap, size, ..creation };
        let plan = creation.plan().unwrap();
        let one = &plan.members[0].as_ref().unwrap().superblock;
        assert_eq!(one.data_size, expected, "{level} {sectors} {size:?}");
    }
}

/// The list of bad blocks ends where data start at the latest.
#[test]
fn a_list_of_bad_blocks_gives_way_to_data() {
    for (version, data_offset, expected) in [
        (Version::V1_1, 24, 16),
        (Version::V1_1, 16, 8),
        (Version::V1_2, 32, 16),
        (Version::V1_2, 31, 15),
        (Version::V1_2, 24, 8),
    ] {
        let creation = device::creation(Layout::new(Level::Raid5, 4), 131_072);
        let data_offset = Some(Sectors(data_offset));
        let plan = Creation { version, data_offset, ..creation }.plan().unwrap();
        let one = &plan.members[0].as_ref().unwrap().superblock;
        assert_eq!(one.bad_blocks.offset, expected, "{version} {data_offset:?}");
    }
}

/// Data that would lie on what tells of them make no array.
#[test]
fn data_lie_behind_superblock_bitmap_log_and_list() {
    let made = |version, data_offset, bitmap, ppl| {
        let creation = device::creation(Layout::new(Level::Raid5, 4), 131_072);
        let data_offset = Some(Sectors(data_offset));
        Creation { version, data_offset, bitmap, ppl, ..creation }.plan().map(|_| ())
    };
    let (none, internal) = (WantedBitmap::None, WantedBitmap::Internal);
    for (version, least, bitmap, ppl) in [
        (Version::V1_1, 9, none, false),
        (Version::V1_2, 17, none, false),
        (Version::V1_2, 32, internal, false),
        (Version::V1_2, 2072, none, true),
    ] {
        let what = format!("{version} {bitmap:?} {ppl}");
        made(version, least, bitmap, ppl).unwrap_or_else(|error| panic!("{what}: {error}"));
        for data_offset in [0, 8, least - 1] {
            let error = made(version, data_offset, bitmap, ppl).expect_err(&what).to_string();
            let named = format!("data from sector {data_offset} on have no room");
            assert!(error.contains(&named), "{what}: {error}");
        }
    }
}

/// raid5 begins as a rebuild of its last member: a spare with a number of its own, on an array that is clean.
#[test]
fn raid5_is_born_as_a_rebuild_onto_a_spare() {
    let creation = device::creation(Layout::new(Level::Raid5, 4), 131_072);
    let plan = creation.plan().unwrap();
    let all: Vec<_> = plan.members.iter().map(|one| &one.as_ref().unwrap().superblock).collect();
    assert_eq!(all.iter().map(|one| one.number).collect::<Vec<_>>(), [0, 1, 2, 4]);
    assert!(all.iter().all(|one| one.resync == ALL));
    assert_eq!(
        all[0].roles[..5],
        [Role::Member(0), Role::Member(1), Role::Member(2), Role::Spare, Role::Spare]
    );
    assert_eq!((all[3].role(), all[0].roles.len()), (Role::Spare, 128));
    let clean = Creation { assume_clean: true, ..creation }.plan().unwrap();
    let last = &clean.members[3].as_ref().unwrap().superblock;
    assert_eq!((last.number, last.role()), (3, Role::Member(3)));
}

/// So does a raid6 that lacks a member: numbers as mdadm 4.2 gave them under Linux 6.1.
#[test]
fn raid6_that_lacks_a_member_is_born_as_a_rebuild_onto_a_spare() {
    let spare = Device { sectors: Sectors(131_072), id: [9; 16] };
    for (missing, spares, expected) in [
        (&[3][..], 0, &[0, 1, 4][..]),
        (&[2], 0, &[0, 1, 4]),
        (&[0], 0, &[1, 2, 4]),
        (&[1], 1, &[0, 2, 5, 4]),
        (&[1, 3], 0, &[0, 2]),
        (&[], 0, &[0, 1, 2, 3]),
    ] {
        for version in [Version::V1_2, Version::V0_90] {
            let mut creation = device::creation(Layout::new(Level::Raid6, 4), 131_072);
            let name = if version == Version::V0_90 { "md7" } else { "seven" };
            (creation.version, creation.name) = (version, name.into());
            creation.spares = vec![spare; spares];
            missing.iter().for_each(|place| creation.devices[*place] = None);
            let plan = creation.plan().unwrap();
            let all = || plan.members.iter().flatten().chain(&plan.spares);
            let numbers: Vec<u32> = all().map(|one| one.superblock.number).collect();
            assert_eq!(numbers, expected, "{version} without {missing:?}");
            let is_clean = all().all(|one| one.superblock.is_clean());
            assert_eq!(is_clean, !missing.is_empty(), "{version} without {missing:?}");
            let out = all().filter(|one| one.superblock.role() == Role::Spare).count();
            assert_eq!(out, usize::from(missing.len() == 1) + spares, "{version} {missing:?}");
        }
    }
    let mut creation = device::creation(Layout::new(Level::Raid6, 4), 131_072);
    (creation.assume_clean, creation.devices[1]) = (true, None);
    let plan = creation.plan().unwrap();
    let last = &plan.members[3].as_ref().unwrap().superblock;
    assert_eq!((last.number, last.role(), last.resync), (3, Role::Member(3), ALL));
}

/// Numbers and roles as mdadm 4.2 gave them (`--create --spare-devices`, under Linux 6.1, before md began to rebuild).
#[test]
fn spares_are_numbered_as_mdadm_numbers_them() {
    let spare = |sectors| Device { sectors: Sectors(sectors), id: [9; 16] };
    let made = |level, members, spares: &[Device], change: &dyn Fn(&mut Creation)| {
        let mut creation = device::creation(Layout::new(level, members), 131_072);
        creation.spares = spares.to_vec();
        change(&mut creation);
        creation.plan().unwrap()
    };
    let numbers = |plan: &Plan| {
        let members = plan.members.iter().flatten().chain(&plan.spares);
        members.map(|one| one.superblock.number).collect::<Vec<_>>()
    };
    let [role0, role1, role2] = [0, 1, 2].map(Role::Member);
    let born = made(Level::Raid5, 3, &[spare(131_072)], &|_| {});
    assert_eq!(numbers(&born), [0, 1, 4, 3]);
    let one = &born.spares[0].superblock;
    assert_eq!(one.roles[..5], [role0, role1, Role::Spare, Role::Spare, Role::Spare]);
    let clean = made(Level::Raid5, 3, &[spare(131_072)], &|one| one.assume_clean = true);
    assert_eq!(numbers(&clean), [0, 1, 2, 3]);
    let one = &clean.spares[0].superblock;
    assert_eq!((one.role(), one.device, one.resync), (Role::Spare, [9; 16], ALL));
    assert_eq!(one.roles[..4], [role0, role1, role2, Role::Spare]);
    let lacking = |one: &mut Creation| one.devices[1] = None;
    let lacking = made(Level::Raid1, 2, &[spare(131_072), spare(131_072)], &lacking);
    assert_eq!(numbers(&lacking), [0, 2, 3]);
    // The smallest decides, spares too.
    let small = made(Level::Raid1, 2, &[spare(100_000)], &|_| {});
    let sizes = [clean.size, small.size].map(|size| size.0);
    assert_eq!(sizes, [126_976, (100_000 - 2048) / 128 * 128]);
    let mut raid0 = device::creation(Layout::new(Level::Raid0, 2), 131_072);
    raid0.spares = vec![spare(131_072)];
    let error = raid0.plan().expect_err("raid0 has no redundancy").to_string();
    assert!(error.contains("no spare helps"), "{error}");
    let mut many = device::creation(Layout::new(Level::Raid1, 2), 131_072);
    many.spares = vec![spare(131_072); 1919];
    assert!(many.plan().is_err());
    many.spares.pop();
    assert_eq!(many.plan().expect("as many as there are numbers").spares.len(), 1918);
}

#[test]
fn what_cannot_be_made_says_why() {
    let error = |change: &dyn Fn(&mut Creation)| {
        let mut creation = device::creation(Layout::new(Level::Raid5, 4), 131_072);
        change(&mut creation);
        creation.plan().unwrap_err().to_string()
    };
    for (change, words) in [
        (
            &(|one: &mut Creation| one.devices.truncate(2)) as &dyn Fn(&mut Creation),
            "2 devices are given for 4",
        ),
        (&|one| one.devices = vec![None; 4], "does not survive 4 missing"),
        (
            &|one| one.devices = vec![Some(Device { sectors: Sectors(30), id: [0; 16] }); 4],
            "too small",
        ),
        (&|one| one.layout = Layout::new(Level::Raid3, 5), "Linux md has no raid3"),
        (&|one| one.layout.chunk = Sectors(4), "no chunk of"),
        (&|one| one.name = "n".repeat(33), "at most 32 bytes"),
        (&|one| (one.ppl, one.bitmap) = (true, WantedBitmap::Internal), "not both"),
        (&|one| one.size = Some(Sectors(1 << 30)), "has 62MiB for data"),
    ] {
        let error = error(change);
        assert!(error.contains(words), "{words}: {error}");
    }
}
