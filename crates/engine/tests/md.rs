//! Arrays of Linux md on members in memory: assembled as md left them, written, degraded, rebuilt and stopped, and
//! what then stands on them.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};

use crate::common::TestDirectory;
use crate::made::{Spoilt, creation, name, pattern};
use raidlab_core::contract::{Event, IoOp, IoOutcome, Pacing, Segment, Work};
use raidlab_core::{MemberIndex, Nanos, Sector, Sectors, Settings};
use raidlab_engine::{
    Engine, EngineErrorKind, FileMember, FileOptions, MdOptions, Member, MemberRequest,
    MemberStore, MemoryMember,
};
use raidlab_metadata::md::{
    ALL, Aside, Bitmap, BitmapSeen, ByteOrder, Creation, Features, Inspected, Role, Version,
    WantedBitmap, inspect,
};

const SECTORS: u64 = 8192;

/// A new array on devices in memory, as mdadm would make it.
fn created(layout: &str, version: Version, bitmap: WantedBitmap, clean: bool) -> Vec<Member> {
    let creation = creation(layout.parse().unwrap(), SECTORS);
    let name = name(version);
    let creation = Creation { version, bitmap, assume_clean: clean, name, ..creation };
    let plan = creation.plan().unwrap();
    let made = plan.members.iter().flatten();
    made.map(|made| {
        let mut bytes = vec![0; (SECTORS * 512) as usize];
        for (at, piece) in &made.pieces {
            bytes[at.bytes() as usize..][..piece.len()].copy_from_slice(piece);
        }
        with(&bytes)
    })
    .collect()
}

/// A device that holds this.
fn with(bytes: &[u8]) -> Member {
    let mut member = MemoryMember::new(Sectors(SECTORS)).unwrap();
    member.bytes_mut().copy_from_slice(bytes);
    Member::Memory(member)
}

fn bytes(member: &Member) -> Vec<u8> {
    let Member::Memory(memory) = member else { unreachable!("in memory") };
    memory.bytes().to_vec()
}

fn contents(engine: &Engine) -> Vec<Vec<u8>> {
    let there = engine.members().iter().filter(|one| matches!(one, Member::Memory(_)));
    there.map(bytes).collect()
}

fn seen(bytes: &[u8]) -> Inspected {
    inspect(&mut with(bytes))
}

fn assemble(devices: Vec<Member>) -> Engine {
    Engine::assemble_md(devices, &MdOptions::default()).unwrap().0
}

fn finish(engine: &mut Engine) {
    engine.finish_background(&AtomicBool::new(false)).unwrap();
}

/// What is written is there after a stop and a start, and superblocks say what md would say.
#[test]
fn what_is_written_is_there_again_and_superblocks_say_so() {
    for (layout, version, bitmap) in [
        ("raid1(2)", Version::V1_0, WantedBitmap::Internal),
        ("raid5(3) chunk=64K", Version::V1_2, WantedBitmap::None),
        ("raid6(4) chunk=64K", Version::V1_1, WantedBitmap::Internal),
        ("raid10(4) chunk=64K far2", Version::V1_0, WantedBitmap::Internal),
        ("raid4(3) chunk=64K", Version::V1_0, WantedBitmap::None),
        ("raid0(3) chunk=64K", Version::V1_2, WantedBitmap::None),
        ("linear(2)", Version::V1_1, WantedBitmap::None),
        ("raid5(3) chunk=64K", Version::V0_90, WantedBitmap::Internal),
        ("raid0(3) chunk=64K", Version::V0_90, WantedBitmap::None),
    ] {
        let devices = created(layout, version, bitmap, true);
        let before: Vec<_> = devices.iter().map(bytes).collect();
        let mut engine = assemble(devices);
        let data = pattern(1 << 20, 7);
        engine.write_at(Sector(64), &data).unwrap();
        engine.stop().unwrap();
        let after = contents(&engine);
        for (place, (before, after)) in before.iter().zip(&after).enumerate() {
            let (old, new) = (seen(before), seen(after));
            let (old, new) = (old.superblock().unwrap(), new.superblock().unwrap());
            assert_eq!((new.resync, new.role()), (ALL, Role::Member(place as u16)), "{layout}");
            assert_eq!((new.number, new.device, &new.name), (old.number, old.device, &old.name));
            if layout.starts_with("raid0") || layout.starts_with("linear") {
                assert_eq!(new, old, "{layout}: md's superblocks of it never change");
            } else {
                assert!(new.events > old.events && new.updated > old.updated, "{layout}");
            }
            if let BitmapSeen::Found(head, bits) = seen(after).bitmap {
                assert!(head.events >= new.events && bits.is_some(), "{layout}: {head:?}");
            }
        }
        // Given in any order, they are found again.
        let mut engine = assemble(after.iter().rev().map(|one| with(one)).collect());
        let mut back = vec![0; data.len()];
        engine.read_at(Sector(64), &mut back).unwrap();
        assert!(back == data, "{layout}");
        assert!(engine.background().is_empty(), "{layout}: nothing is to be made consistent");
    }
}

/// While it is written an array is dirty on all members, and what a crash leaves is made consistent: all of it, or
/// what the bitmap names.
#[test]
fn a_crash_leaves_an_array_that_is_made_consistent() {
    for (layout, bitmap) in [
        ("raid5(3) chunk=64K", WantedBitmap::None),
        ("raid5(3) chunk=64K", WantedBitmap::Internal),
        ("raid1(2)", WantedBitmap::Internal),
    ] {
        let mut engine = assemble(created(layout, Version::V1_2, bitmap, true));
        engine.write_at(Sector(0), &pattern(256 << 10, 3)).unwrap();
        let mut crashed = contents(&engine);
        for one in &crashed {
            assert_eq!(seen(one).superblock().unwrap().resync, 0, "{layout}: dirty");
            if let BitmapSeen::Found(_, bits) = seen(one).bitmap {
                assert!(bits > Some(0), "{layout}: the bitmap names what was written");
            }
        }
        // Redundancy is wrong where the crash came between two members.
        let start = seen(&crashed[1]).superblock().unwrap().data_offset as usize * 512;
        crashed[1][start + 4096] ^= 1;
        let (mut engine, _) = Engine::assemble_md(
            crashed.iter().map(|one| with(one)).collect(),
            &MdOptions::default(),
        )
        .unwrap();
        finish(&mut engine);
        assert_eq!(engine.scrub(&AtomicBool::new(false)).unwrap(), Sectors(0), "{layout}");
        engine.stop().unwrap();
        for one in contents(&engine) {
            assert_eq!(seen(&one).superblock().unwrap().resync, ALL, "{layout}");
        }
    }
}

/// A member fails, another device is rebuilt in its place: a number of its own, the role of the member. Of version 0.90
/// it is a spare with such a number until it has everything, and then has that of its place.
#[test]
fn a_fresh_device_gets_a_number_and_the_place() {
    for bitmap in [WantedBitmap::None, WantedBitmap::Internal] {
        for version in Version::ALL {
            let mut engine = assemble(created("raid5(3) chunk=64K", version, bitmap, true));
            let data = pattern(1 << 20, 9);
            engine.write_at(Sector(0), &data).unwrap();
            engine.fail(MemberIndex(1)).unwrap();
            engine.write_at(Sector(512), &data).unwrap();
            let one = seen(&bytes(&engine.members()[0]));
            assert_eq!(one.superblock().unwrap().roles[1], Role::Faulty);
            // Something else stands on it.
            let fresh = with(&bytes(&created("raid1(2)", Version::V1_0, bitmap, true)[0]));
            // So slowly that it is still under way, however long this takes.
            engine.pace(Pacing::between(1, 1 << 10)).unwrap();
            engine.add(MemberIndex(1), fresh).unwrap();
            assert!(matches!(engine.background(), [Work::Rebuild(MemberIndex(1))]));
            let is_old = version == Version::V0_90;
            if is_old {
                let one = seen(&bytes(&engine.members()[1]));
                let one = one.superblock().unwrap();
                assert_eq!((one.number, one.role()), (3, Role::Spare));
                assert_eq!(&one.roles[..4], [0, 0xfffe, 2, 0xffff].map(Role::from));
                assert_eq!(one.v0.as_ref().unwrap().counts, [2, 3, 1, 1]);
            }
            engine.pace(Pacing::between(u64::MAX, u64::MAX)).unwrap();
            finish(&mut engine);
            engine.stop().unwrap();
            let after = contents(&engine);
            let roles = if is_old { [0, 1, 2, 0xffff] } else { [0, 0xffff, 2, 1] };
            for (place, one) in after.iter().enumerate() {
                let found = seen(one);
                let one = found.superblock().unwrap();
                assert_eq!(one.role(), Role::Member(place as u16), "{version}");
                assert_eq!(&one.roles[..4], roles.map(Role::from), "{version}");
                assert!(!one.features.has(Features::RECOVERY));
                assert_eq!(found.seen.len(), 1, "{version}: an old superblock is still there");
                assert_eq!(found.bitmap == BitmapSeen::None, bitmap == WantedBitmap::None);
            }
            let number = if is_old { 1 } else { 3 };
            assert_eq!(seen(&after[1]).superblock().unwrap().number, number, "{version}");
            let mut engine = assemble(after.iter().map(|one| with(one)).collect());
            let mut back = vec![0; data.len()];
            engine.read_at(Sector(512), &mut back).unwrap();
            assert!(back == data);
            assert_eq!(engine.scrub(&AtomicBool::new(false)).unwrap(), Sectors(0));
        }
    }
}

/// Who was away comes back by the bitmap, as a spare of version 0.90 whose number nobody else has; a spare beside it
/// has another one. What that version cannot say is refused.
#[test]
fn who_comes_back_is_a_spare_of_version_0_90_until_it_has_everything() {
    let version = Version::V0_90;
    let devices = created("raid5(3) chunk=64K", version, WantedBitmap::Internal, true);
    let mut engine = assemble(devices);
    let data = pattern(1 << 20, 9);
    engine.write_at(Sector(0), &data).unwrap();
    engine.fail(MemberIndex(0)).unwrap();
    engine.write_at(Sector(512), &data).unwrap();
    engine.add_spare(with(&vec![0; (SECTORS * 512) as usize])).unwrap();
    let spare = seen(&bytes(&engine.spares()[0]));
    assert_eq!(spare.superblock().unwrap().roles[..3], [0xfffe, 1, 2].map(Role::from));
    let away = bytes(&engine.members()[0]);
    engine.pace(Pacing::between(1, 1 << 10)).unwrap();
    engine.re_add(MemberIndex(0), Some(with(&away))).unwrap();
    let numbers = |engine: &Engine, own: &[u8]| {
        let all = [own.to_vec(), bytes(&engine.members()[1]), bytes(&engine.spares()[0])];
        all.map(|one| seen(&one).superblock().unwrap().number)
    };
    let back = bytes(&engine.members()[0]);
    assert_eq!(numbers(&engine, &back), [4, 1, 3]);
    assert_eq!(seen(&back).superblock().unwrap().role(), Role::Spare);
    let lines = |one: &[u8]| {
        let one = seen(one);
        let table = &one.superblock().unwrap().v0.as_ref().unwrap().table;
        table.iter().take(6).map(|line| (line.number, line.state)).collect::<Vec<_>>()
    };
    let table = [(0, 8), (1, 6), (2, 6), (3, 0), (4, 0), (0, 0)];
    assert_eq!(lines(&bytes(&engine.members()[1])), table);
    engine.pace(Pacing::between(u64::MAX, u64::MAX)).unwrap();
    finish(&mut engine);
    let error = engine.replace(MemberIndex(1), with(&away), false).unwrap_err();
    assert_eq!(error.kind(), EngineErrorKind::NotSupported, "{error}");
    engine.stop().unwrap();
    let after = contents(&engine);
    assert_eq!(numbers(&engine, &after[0]), [0, 1, 3]);
    let mut engine = assemble(after.iter().map(|one| with(one)).collect());
    assert_eq!(engine.scrub(&AtomicBool::new(false)).unwrap(), Sectors(0));
    let mut back = vec![0; data.len()];
    engine.read_at(Sector(512), &mut back).unwrap();
    assert!(back == data);
}

/// A device with nothing on it.
fn blank() -> Member {
    Member::Memory(MemoryMember::new(Sectors(SECTORS)).unwrap())
}

fn number(bytes: &[u8]) -> u32 {
    seen(bytes).superblock().unwrap().number
}

/// All of these are in service, and hold this from the start on.
fn all_hold(devices: &[Vec<u8>], data: &[u8], told: &str) {
    let devices: Vec<_> = devices.iter().map(|one| with(one)).collect();
    let (mut engine, _) = Engine::assemble_md(devices, &MdOptions::default())
        .unwrap_or_else(|why| panic!("{told}: {why}"));
    let failed = |place: usize| engine.array().is_failed(MemberIndex(place as u16));
    assert!(!(0..engine.members().len()).any(failed), "{told}");
    let mut back = vec![0; data.len()];
    engine.read_at(Sector(0), &mut back).unwrap();
    assert!(back == data, "{told}");
}

/// A spare that was away while another device got its number gets another one: what is rebuilt onto it is found again,
/// also where it replaces a member.
#[test]
fn a_spare_whose_number_was_given_meanwhile_gets_another() {
    let replaced = [(Version::V1_2, true)];
    for (version, replaces) in
        Version::ALL.map(|version| (version, false)).into_iter().chain(replaced)
    {
        let told = format!("{version}, replaces: {replaces}");
        let mut engine = assemble(created("raid1(2)", version, WantedBitmap::None, true));
        let data = pattern(1 << 20, 5);
        engine.write_at(Sector(0), &data).unwrap();
        engine.add_spare(blank()).unwrap();
        engine.stop().unwrap();
        let spare = bytes(&engine.spares()[0]);
        assert_eq!(number(&spare), 2, "{told}");
        let mut engine = assemble(contents(&engine).iter().map(|one| with(one)).collect());
        engine.fail(MemberIndex(1)).unwrap();
        engine.add(MemberIndex(1), blank()).unwrap();
        finish(&mut engine);
        engine.stop().unwrap();
        let mut devices: Vec<_> = contents(&engine).iter().map(|one| with(one)).collect();
        let mut engine = if replaces {
            let mut engine = assemble(devices);
            engine.replace(MemberIndex(0), with(&spare), true).unwrap();
            engine
        } else {
            devices.push(with(&spare));
            let mut engine = assemble(devices);
            engine.fail(MemberIndex(0)).unwrap();
            assert_eq!(engine.use_spare().unwrap(), Some(MemberIndex(0)), "{told}");
            engine
        };
        finish(&mut engine);
        engine.stop().unwrap();
        let after = contents(&engine);
        assert_ne!(number(&after[0]), number(&after[1]), "{told}");
        all_hold(&after, &data, &told);
    }
}

/// Two spares that were made while the other was away have one number, and another one each when they are used.
#[test]
fn spares_with_one_number_get_one_each() {
    let layout = "raid6(4) chunk=64K";
    let mut engine = assemble(created(layout, Version::V1_2, WantedBitmap::None, true));
    let data = pattern(1 << 20, 5);
    engine.write_at(Sector(0), &data).unwrap();
    let mut spares = Vec::new();
    for _ in 0..2 {
        engine.add_spare(blank()).unwrap();
        engine.stop().unwrap();
        spares.push(bytes(&engine.spares()[0]));
        engine = assemble(contents(&engine).iter().map(|one| with(one)).collect());
    }
    engine.stop().unwrap();
    assert_eq!([number(&spares[0]), number(&spares[1])], [4, 4]);
    let mut engine =
        assemble(contents(&engine).iter().chain(&spares).map(|one| with(one)).collect());
    for member in [0, 1].map(MemberIndex) {
        engine.fail(member).unwrap();
        assert_eq!(engine.use_spare().unwrap(), Some(member));
        finish(&mut engine);
    }
    engine.stop().unwrap();
    let after = contents(&engine);
    assert_ne!(number(&after[0]), number(&after[1]));
    all_hold(&after, &data, layout);
}

/// A spare that was taken away is in no superblock any more, and its number is free.
#[test]
fn a_spare_that_was_taken_away_is_named_no_more() {
    let mut engine = assemble(created("raid1(2)", Version::V0_90, WantedBitmap::None, true));
    let spares = |engine: &Engine| {
        let one = seen(&contents(engine)[0]);
        one.superblock().unwrap().v0.as_ref().unwrap().counts[3]
    };
    engine.add_spare(blank()).unwrap();
    engine.write_at(Sector(0), &pattern(4096, 3)).unwrap();
    assert_eq!(spares(&engine), 1);
    assert_eq!(number(&bytes(&engine.take_spare(0).unwrap())), 2);
    assert!(engine.take_spare(0).is_none());
    engine.add_spare(blank()).unwrap();
    assert_eq!(number(&bytes(&engine.take_spare(0).unwrap())), 2);
    engine.stop().unwrap();
    assert_eq!(spares(&engine), 0);
}

/// A device that works in blocks of 4 KiB.
#[derive(Clone)]
struct Blocks(Arc<Mutex<Vec<u8>>>);

impl MemberStore for Blocks {
    fn sectors(&self) -> Sectors {
        Sectors(SECTORS)
    }

    fn logical_block(&self) -> u32 {
        8
    }

    fn submit(&mut self, request: MemberRequest) {
        Slow::carry_out(&mut self.0.lock().unwrap(), request);
    }
}

/// A spare that works in larger blocks than the array cannot take anybody's place: it is none.
#[test]
fn a_spare_of_larger_blocks_is_none() {
    let mut engine = assemble(created("raid1(2)", Version::V1_2, WantedBitmap::None, true));
    let blocks = |bytes: Vec<u8>| Member::from(Blocks(Arc::new(Mutex::new(bytes))));
    let error = engine.add_spare(blocks(vec![0; SECTORS as usize * 512])).unwrap_err();
    assert_eq!(error.kind(), EngineErrorKind::Config, "{error}");
    assert!(error.to_string().contains("in blocks of 8 sectors"), "{error}");
    engine.add_spare(blank()).unwrap();
    engine.stop().unwrap();
    let spare = bytes(&engine.spares()[0]);
    let mut devices: Vec<_> = contents(&engine).iter().map(|one| with(one)).collect();
    devices.push(blocks(spare));
    let (engine, found) = Engine::assemble_md(devices, &MdOptions::default()).unwrap();
    assert!(engine.spares().is_empty() && found.joined.spares.is_empty());
    let told: Vec<_> = found.joined.out.iter().map(|out| out.why.to_string()).collect();
    assert!(matches!(&told[..], [one] if one.contains("in blocks of 8 sectors")), "{told:?}");
}

/// Superblocks in the other order of bytes are read and not written.
#[test]
fn big_endian_arrays_are_not_written() {
    let mut all = Vec::new();
    for device in created("raid1(2)", Version::V0_90, WantedBitmap::None, true) {
        let mut bytes = bytes(&device);
        let mut one = seen(&bytes).superblock().unwrap().clone();
        one.v0.as_mut().unwrap().order = ByteOrder::Big;
        let at = one.super_offset as usize * 512;
        one.emit(&mut bytes[at..]).unwrap();
        all.push(with(&bytes));
    }
    let error = Engine::assemble_md(all, &MdOptions::default()).unwrap_err();
    assert_eq!(error.kind(), EngineErrorKind::NotSupported, "{error}");
    assert!(error.to_string().contains("--update=byteorder"), "{error}");
}

/// What mdadm begins as a rebuild onto the last device goes on as one: its spare takes the place.
#[test]
fn an_array_that_is_born_as_a_rebuild_is_rebuilt() {
    let devices = created("raid5(3) chunk=64K", Version::V1_2, WantedBitmap::None, false);
    let mut engine = assemble(devices);
    assert_eq!(engine.spares().len(), 1);
    assert_eq!(engine.use_spare().unwrap(), Some(MemberIndex(2)));
    finish(&mut engine);
    assert!(engine.take_events().contains(&Event::Restored(MemberIndex(2))));
    engine.stop().unwrap();
    let numbers: Vec<_> =
        contents(&engine).iter().map(|one| seen(one).superblock().unwrap().number).collect();
    assert_eq!(numbers, [0, 1, 3]);
}

/// A raid6 that is made with one member missing begins so, too: md starts none without parity.
#[test]
fn a_raid6_that_is_made_without_a_member_is_rebuilt() {
    for (missing, born) in [(0, 3), (1, 3), (3, 2)] {
        let mut creation = creation("raid6(4) chunk=64K".parse().unwrap(), SECTORS);
        creation.assume_clean = false;
        creation.devices[missing] = None;
        let plan = creation.plan().unwrap();
        let mut devices = Vec::new();
        for made in plan.members.iter().flatten() {
            // Parity is wrong.
            let mut bytes = pattern((SECTORS * 512) as usize, devices.len() as u64 + 7);
            bytes[..2048 * 512].fill(0);
            for (at, piece) in &made.pieces {
                bytes[at.bytes() as usize..][..piece.len()].copy_from_slice(piece);
            }
            devices.push(with(&bytes));
        }
        let mut engine = assemble(devices);
        assert_eq!(engine.spares().len(), 1, "{missing} is missing");
        // md takes the first place that is free.
        let place = missing.min(born) as u16;
        assert_eq!(engine.use_spare().unwrap(), Some(MemberIndex(place)));
        finish(&mut engine);
        let data = pattern(1 << 20, 3);
        engine.write_at(Sector(64), &data).unwrap();
        engine.fail(MemberIndex(2 - 2 * u16::from(place == 2))).unwrap();
        let mut back = vec![0; data.len()];
        engine.read_at(Sector(64), &mut back).unwrap();
        assert!(back == data, "{missing} is missing");
    }
}

#[test]
fn a_member_missing_without_being_named_needs_consent() {
    let mut devices = created("raid5(3) chunk=64K", Version::V1_2, WantedBitmap::None, true);
    devices.pop();
    let left: Vec<_> = devices.iter().map(bytes).collect();
    let again = || left.iter().map(|one| with(one)).collect::<Vec<_>>();
    let error = Engine::assemble_md(again(), &MdOptions::default()).unwrap_err();
    assert_eq!(error.kind(), EngineErrorKind::Assemble, "{error}");
    let run = MdOptions { run: true, ..MdOptions::default() };
    let (mut engine, _) = Engine::assemble_md(again(), &run).unwrap();
    engine.write_at(Sector(0), &pattern(4096, 5)).unwrap();
    engine.stop().unwrap();
    // From then on it is known.
    assemble(contents(&engine).iter().map(|one| with(one)).collect());
}

/// What a device's own list says cannot be read is not read from it, and the list stays.
#[test]
fn listed_blocks_are_not_read_and_stay_listed() {
    let mut all: Vec<_> =
        created("raid1(2)", Version::V1_2, WantedBitmap::None, true).iter().map(bytes).collect();
    let found = seen(&all[0]);
    let one = found.superblock().unwrap();
    let start = one.data_offset as usize;
    let list = one.beside(one.bad_blocks.offset).unwrap().bytes() as usize;
    let good = pattern(4096, 3);
    all[1][(start + 104) * 512..][..4096].copy_from_slice(&good);
    let entry = ((start as u64 + 104) << 10 | 8).to_le_bytes();
    all[0][list..list + 8].copy_from_slice(&entry);
    let mut listed = one.clone();
    listed.features = listed.features.with(Features::BAD_BLOCKS);
    listed.emit(&mut all[0][8 * 512..]).unwrap();
    let mut engine = assemble(all.iter().map(|one| with(one)).collect());
    let mut back = vec![0; 4096];
    engine.read_at(Sector(104), &mut back).unwrap();
    assert!(back == good, "member 0 was read where its list says that it is bad");
    engine.write_at(Sector(2048), &good).unwrap();
    engine.stop().unwrap();
    let found = seen(&contents(&engine)[0]);
    assert!(found.superblock().unwrap().features.has(Features::BAD_BLOCKS));
    assert_eq!(found.bad.as_deref(), Some(&[(Sector(104), Sectors(8))][..]));
}

/// Where a member has a list, its own data count all the same: the others are zero, as parity was never made.
#[test]
fn a_list_of_bad_blocks_makes_nothing_zero() {
    let mut all: Vec<_> = created("raid5(3) chunk=64K", Version::V1_2, WantedBitmap::None, true)
        .iter()
        .map(bytes)
        .collect();
    let one = seen(&all[0]).superblock().unwrap().clone();
    let (start, list) = (one.data_offset, one.beside(one.bad_blocks.offset).unwrap().bytes());
    all[0][start as usize * 512..][..4096].copy_from_slice(&pattern(4096, 3));
    let directory = TestDirectory::new();
    for listed in [false, true] {
        if listed {
            let entry = ((start + 1024) << 10 | 8).to_le_bytes();
            all[0][list as usize..][..8].copy_from_slice(&entry);
            let mut one = one.clone();
            one.features = one.features.with(Features::BAD_BLOCKS);
            one.emit(&mut all[0][8 * 512..]).unwrap();
        }
        let files = all.iter().enumerate().map(|(number, bytes)| {
            let path = directory.path().join(format!("{listed}-{number}"));
            let file = File::create(&path).unwrap();
            file.set_len(bytes.len() as u64).unwrap();
            for (at, block) in bytes.chunks(4096).enumerate() {
                if block.iter().any(|byte| *byte != 0) {
                    file.write_all_at(block, at as u64 * 4096).unwrap();
                }
            }
            file.sync_all().unwrap();
            Member::from(FileMember::open(&path, FileOptions::default()).unwrap())
        });
        let engine = assemble(files.collect());
        assert_eq!(
            engine.array().flat().unwrap().bad_blocks(MemberIndex(0)).count(),
            usize::from(listed)
        );
        assert!(!engine.zero_run(Sector(0), Sectors(8)).0, "listed: {listed}");
    }
}

/// What a rebuild could not have is in the list of the member, which is whole otherwise, also after a start; a write
/// takes it out.
#[test]
fn what_a_rebuild_lost_is_listed_until_it_is_written() {
    let all: Vec<_> =
        created("raid1(2)", Version::V1_2, WantedBitmap::None, true).iter().map(bytes).collect();
    let start = seen(&all[0]).superblock().unwrap().data_offset;
    let bad = [(Sector(104), Sectors(8))];
    let source = Spoilt::new(&all[0], start + 104..start + 112);
    let fresh = Spoilt::new(&vec![0x55; all[1].len()], 0..0);
    let mut engine = assemble(vec![Member::from(source.clone()), with(&all[1])]);
    let data = pattern(1 << 20, 3);
    engine.fail(MemberIndex(1)).unwrap();
    engine.add(MemberIndex(1), Member::from(fresh.clone())).unwrap();
    finish(&mut engine);
    let events = engine.take_events();
    assert!(events.contains(&Event::Restored(MemberIndex(1))), "{events:?}");
    engine.stop().unwrap();
    let rebuilt = fresh.bytes();
    let found = seen(&rebuilt);
    let one = found.superblock().unwrap();
    assert_eq!((one.rebuilt_to(), found.bad.as_deref()), (None, Some(&bad[..])));
    assert_eq!(seen(&source.bytes()).bad, Some(Vec::new()), "its drive says so itself");
    // What stands there is not what it should be.
    let place = ((start + 104) * 512) as usize;
    assert_eq!(rebuilt[place..place + 4096], [0x55; 4096]);
    let read = |engine: &mut Engine| {
        let mut back = vec![0; 4096];
        engine.read_at(Sector(104), &mut back).map(|()| back)
    };
    let other = Spoilt::new(&source.bytes(), start + 104..start + 112);
    let mut engine = assemble(vec![Member::from(other), with(&rebuilt)]);
    assert_eq!(read(&mut engine).unwrap_err().kind(), EngineErrorKind::MediaError);
    engine.write_at(Sector(0), &data).unwrap();
    assert!(read(&mut engine).unwrap() == data[104 * 512..112 * 512]);
    engine.stop().unwrap();
    let written = contents(&engine).remove(0);
    let found = seen(&written);
    assert!(!found.superblock().unwrap().features.has(Features::BAD_BLOCKS));
    assert_eq!(found.bad, Some(Vec::new()));
}

/// A drive that has no room for what is written to this place the second time.
struct Full(Spoilt, u32, Sector);

impl MemberStore for Full {
    fn sectors(&self) -> Sectors {
        self.0.sectors()
    }

    fn submit(&mut self, request: MemberRequest) {
        let (refused, place) = (&mut self.1, self.2);
        if request.op() == IoOp::Write && request.at() == place && *refused < 2 {
            *refused += 1;
            if *refused == 2 {
                return request.complete(IoOutcome::NoSpace);
            }
        }
        self.0.submit(request);
    }
}

/// The superblock waits with it, and says nothing of a list that does not stand there.
#[test]
fn a_list_that_found_no_room_is_written_when_there_is_some() {
    let all: Vec<_> =
        created("raid1(2)", Version::V1_2, WantedBitmap::None, true).iter().map(bytes).collect();
    let one = seen(&all[0]).superblock().unwrap().clone();
    let (start, list) = (one.data_offset, one.beside(one.bad_blocks.offset).unwrap());
    let source = Spoilt::new(&all[0], start + 104..start + 112);
    let fresh = Spoilt::new(&vec![0x55; all[1].len()], 0..0);
    let settings = Settings { room_wait: Some(Nanos::from_millis(60_000)), ..Settings::default() };
    let options = MdOptions { settings, ..MdOptions::default() };
    let devices = vec![Member::from(source), with(&all[1])];
    let (mut engine, _) = Engine::assemble_md(devices, &options).unwrap();
    engine.fail(MemberIndex(1)).unwrap();
    engine.add(MemberIndex(1), Member::from(Full(fresh.clone(), 0, list))).unwrap();
    finish(&mut engine);
    engine.stop().unwrap();
    let events = engine.take_events();
    assert!(events.contains(&Event::WaitsForRoom(MemberIndex(1))), "{events:?}");
    assert_eq!(seen(&fresh.bytes()).bad.as_deref(), Some(&[(Sector(104), Sectors(8))][..]));
}

/// A list in units of many sectors is believed, which is told, and neither it nor another one is written; where nothing
/// stands in it yet it is begun anew in sectors.
#[test]
fn lists_in_units_of_many_sectors_are_believed_and_not_written() {
    let all: Vec<_> =
        created("raid1(2)", Version::V1_2, WantedBitmap::None, true).iter().map(bytes).collect();
    let one = seen(&all[0]).superblock().unwrap().clone();
    let (start, list) = (one.data_offset, one.beside(one.bad_blocks.offset).unwrap().bytes());
    let counts_in_units = |image: &[u8], entry: Option<u64>| {
        let mut bytes = image.to_vec();
        let mut one = seen(image).superblock().unwrap().clone();
        one.bad_blocks.shift = 4;
        if let Some(entry) = entry {
            one.features = one.features.with(Features::BAD_BLOCKS);
            bytes[list as usize..][..8].copy_from_slice(&entry.to_le_bytes());
        }
        one.emit(&mut bytes[8 * 512..]).unwrap();
        bytes
    };
    // 16 sectors of the data, from sector 96 on.
    let entry = (start / 16 + 6) << 10 | 1;
    for listed in [Some(entry), None] {
        let image = counts_in_units(&all[0], listed);
        let source = Spoilt::new(&image, start + 1000..start + 1008);
        let fresh = Spoilt::new(&vec![0x55; all[1].len()], 0..0);
        let devices = vec![Member::from(source.clone()), with(&all[1])];
        let (mut engine, found) = Engine::assemble_md(devices, &MdOptions::default()).unwrap();
        let told = found.joined.notes.iter().any(|note| note.contains("in units of 2^4 sectors"));
        assert_eq!(told, listed.is_some(), "{:?}", found.joined.notes);
        engine.fail(MemberIndex(1)).unwrap();
        engine.add(MemberIndex(1), Member::from(fresh.clone())).unwrap();
        finish(&mut engine);
        engine.stop().unwrap();
        let (source, fresh) = (seen(&source.bytes()), seen(&fresh.bytes()));
        let shifts = [&source, &fresh].map(|one| one.superblock().unwrap().bad_blocks.shift);
        let rebuilt_to = fresh.superblock().unwrap().rebuilt_to();
        if listed.is_some() {
            let bad = [(Sector(96), Sectors(16))];
            assert_eq!((source.bad.as_deref(), shifts), (Some(&bad[..]), [4, 0]));
            assert_eq!((rebuilt_to, fresh.bad), (Some(96), Some(Vec::new())));
        } else {
            let bad = [(Sector(1000), Sectors(8))];
            assert_eq!((fresh.bad.as_deref(), shifts), (Some(&bad[..]), [0, 0]));
            assert_eq!((rebuilt_to, source.bad), (None, Some(Vec::new())));
        }
    }
}

/// A device that answers when the test says so, the last request first.
#[derive(Clone, Default)]
struct Slow(Arc<Mutex<(Vec<u8>, Vec<MemberRequest>)>>);

impl Slow {
    fn carry_out(bytes: &mut [u8], request: MemberRequest) {
        let (from, len) = (request.at().bytes() as usize, request.len().bytes() as usize);
        match request.op() {
            IoOp::Read => return request.complete_read(&bytes[from..from + len]),
            IoOp::Write => bytes[from..from + len].copy_from_slice(request.payload()),
            _ => {}
        }
        request.complete(IoOutcome::Ok);
    }

    /// Carries out what is there, the last first; records that are under way at once must not overlap.
    fn answer(&self) {
        let mut slow = self.0.lock().unwrap();
        let (bytes, requests) = &mut *slow;
        let mut records: Vec<(u64, u64)> = Vec::new();
        for request in requests.drain(..).rev() {
            let (from, to) = (request.at().0, request.at().0 + request.len().0);
            if request.op() == IoOp::Write && from < 2048 {
                assert!(records.iter().all(|one| to <= one.0 || one.1 <= from), "{from}..{to}");
                records.push((from, to));
            }
            Self::carry_out(bytes, request);
        }
    }
}

impl MemberStore for Slow {
    fn sectors(&self) -> Sectors {
        Sectors(SECTORS)
    }

    fn submit(&mut self, request: MemberRequest) {
        let mut slow = self.0.lock().unwrap();
        // Whoever reads waits for it.
        match request.op() {
            IoOp::Read => Self::carry_out(&mut slow.0, request),
            _ => slow.1.push(request),
        }
    }
}

/// Bits of several pages lie in one sector: whatever the order in which a device carries out what it was given, none is
/// lost that a write was let out for.
#[test]
fn records_that_share_a_sector_go_one_after_another() {
    let layout = "raid1(2)";
    let devices = created(layout, Version::V1_2, WantedBitmap::Internal, true);
    let slow: Vec<Slow> = devices
        .iter()
        .map(|device| {
            let mut bytes = bytes(device);
            // A bit for each 4 KiB: many pages.
            let found = seen(&bytes);
            let Aside::Bitmap(offset) = found.superblock().unwrap().aside else { unreachable!() };
            let at = found.superblock().unwrap().beside(offset).unwrap().bytes() as usize;
            let mut head = Bitmap::parse(&bytes[at..]).unwrap();
            head.chunk = 4096;
            bytes[at..at + 4096].fill(0);
            head.emit(&mut bytes[at..]);
            Slow(Arc::new(Mutex::new((bytes, Vec::new()))))
        })
        .collect();
    let members: Vec<Member> = slow.iter().map(|one| Member::from(one.clone())).collect();
    let (mut engine, _) = Engine::assemble_md(members, &MdOptions::default()).unwrap();
    let token = engine.allocate(4096).unwrap();
    let places = [0_u64, 600, 1200, 1800, 2400, 3000, 3600];
    for at in places {
        let segment = Segment { token, offset: 0, len: 8 };
        engine.submit(IoOp::Write, Sector(at), &[segment], false).unwrap();
    }
    let mut replies = Vec::new();
    while replies.len() < places.len() {
        engine.poll_replies(&mut replies).unwrap();
        slow.iter().for_each(Slow::answer);
    }
    for one in &slow {
        let bytes = one.0.lock().unwrap().0.clone();
        let BitmapSeen::Found(_, bits) = seen(&bytes).bitmap else { panic!("no bitmap") };
        assert!(bits >= Some(places.len() as u64), "{bits:?} bits are set");
    }
}
