//! New arrays of Linux md that the engine makes: what stands on their members is what md would find, whatever stood
//! there before.

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};

use crate::made::{creation, pattern};
use raidlab_core::contract::{IoOp, IoOutcome, Segment};
use raidlab_core::{Consistency, Layout, MemberIndex, Sector, Sectors};
use raidlab_engine::{
    Engine, EngineErrorKind, MdOptions, Member, MemberRequest, MemberStore, MemoryMember,
};
use raidlab_metadata::md::{
    Aside, Creation, Inspected, Role, Superblock, Version, WantedBitmap, inspect,
};

const SECTORS: u64 = 12_288;

fn blank(sectors: u64) -> Member {
    Member::Memory(MemoryMember::new(Sectors(sectors)).unwrap())
}

fn bytes(member: &Member) -> &[u8] {
    let Member::Memory(memory) = member else { unreachable!("in memory") };
    memory.bytes()
}

fn copy(member: &Member) -> Member {
    let mut copy = MemoryMember::new(member.config().sectors).unwrap();
    copy.bytes_mut().copy_from_slice(bytes(member));
    Member::Memory(copy)
}

fn seen(member: &Member) -> Inspected {
    inspect(&mut copy(member))
}

fn superblock(member: &Member) -> Superblock {
    seen(member).superblock().expect("a superblock").clone()
}

/// Writes the array from its start on.
fn write(engine: &mut Engine, data: &[u8]) {
    let token = engine.allocate(data.len() as u64).unwrap();
    engine.bytes_mut(token).unwrap().copy_from_slice(data);
    let segment = Segment { token, offset: 0, len: (data.len() / 512) as u32 };
    engine.submit(IoOp::Write, Sector(0), &[segment], false).unwrap();
    engine.wait_replies(&mut Vec::new()).unwrap();
    engine.release(token).unwrap();
}

fn read(engine: &mut Engine, len: usize) -> Vec<u8> {
    let token = engine.allocate(len as u64).unwrap();
    let segment = Segment { token, offset: 0, len: (len / 512) as u32 };
    engine.submit(IoOp::Read, Sector(0), &[segment], false).unwrap();
    engine.wait_replies(&mut Vec::new()).unwrap();
    engine.bytes(token).unwrap().to_vec()
}

/// Every level with everything that md can keep it consistent by: what is written is there at the next start, which
/// finds a clean array of that kind.
#[test]
fn every_level_is_made_and_found_again() {
    let (none, own) = (WantedBitmap::None, WantedBitmap::Chunk(Sectors(64)));
    for (layout, bitmap, ppl, journal) in [
        ("raid0(3) chunk=64K", none, false, 0),
        ("linear(2)", none, false, 0),
        ("raid1(2)", none, false, 0),
        ("raid1(3)", own, false, 0),
        ("raid10(4) chunk=64K far2", own, false, 0),
        ("raid4(3) chunk=64K", own, false, 0),
        ("raid5(3) chunk=64K", none, false, 0),
        ("raid5(3) chunk=64K", own, false, 0),
        ("raid5(4) chunk=64K right-asymmetric", none, true, 0),
        ("raid6(4) chunk=64K", own, false, 0),
        ("raid6(5) chunk=16K", none, false, 8192),
    ] {
        let told = format!("{layout} {bitmap:?} {ppl} {journal}");
        let wanted: Layout = layout.parse().unwrap();
        let creation = Creation { bitmap, ppl, ..creation(wanted.clone(), SECTORS) };
        let members = (0..wanted.members).map(|_| blank(SECTORS)).collect();
        let log = (journal > 0).then(|| blank(journal));
        let mut engine = Engine::new_md(&creation, members, log, &MdOptions::default()).unwrap();
        assert_eq!(engine.array().layout(), &wanted, "{told}");
        assert_eq!(engine.beginning().resync, Sectors(0), "{told}: it is taken to be consistent");
        let data = pattern(1 << 20, 7);
        write(&mut engine, &data);
        engine.stop().unwrap();
        let mut devices: Vec<Member> = engine.members().iter().map(copy).collect();
        devices.extend(engine.member_mut(MemberIndex(2 * wanted.members)).map(|log| copy(log)));
        let (mut again, found) = Engine::assemble_md(devices, &MdOptions::default()).unwrap();
        let consistency = found.joined.consistency;
        let is_right = match consistency {
            Consistency::None => wanted.survives() == 0,
            Consistency::Resync => wanted.survives() > 0 && bitmap == none && !ppl && journal == 0,
            Consistency::Bitmap { chunk } => bitmap == own && chunk == Sectors(64),
            Consistency::PartialParity { .. } => ppl,
            Consistency::Journal { .. } => journal > 0,
        };
        assert!(is_right, "{told}: {consistency:?}");
        assert!(found.joined.out.is_empty(), "{told}: {:?}", found.joined.out);
        assert_eq!(again.beginning().resync, Sectors(0), "{told}");
        assert!(read(&mut again, data.len()) == data, "{told}");
    }
}

/// Identities are by chance: a second array on the same members is another one, and nothing of the first counts.
#[test]
fn what_stood_on_members_before_does_not_count() {
    let layout: Layout = "raid5(3) chunk=64K".parse().unwrap();
    let wanted = Creation { ppl: true, ..creation(layout.clone(), SECTORS) };
    let older = Creation { version: Version::V1_0, ..creation(layout, SECTORS) };
    let make = |creation: &Creation, members: Vec<Member>| {
        Engine::new_md(creation, members, None, &MdOptions::default()).unwrap()
    };
    let mut first = make(&older, (0..3).map(|_| blank(SECTORS)).collect());
    write(&mut first, &pattern(1 << 20, 1));
    first.stop().unwrap();
    let mut second = make(&wanted, first.members().iter().map(copy).collect());
    write(&mut second, &pattern(1 << 20, 2));
    let before = superblock(&second.members()[0]);
    // Cut off while it is written.
    let third = make(&wanted, second.members().iter().map(copy).collect());
    let all: Vec<Superblock> = third.members().iter().map(superblock).collect();
    for (place, one) in all.iter().enumerate() {
        assert_eq!(seen(&third.members()[place]).seen.len(), 1, "the one of 1.0 is gone");
        assert_eq!((one.super_offset, one.role()), (8, Role::Member(place as u16)));
        assert!(one.array == all[0].array && one.array != before.array && one.array != [5; 16]);
        assert!(matches!(one.aside, Aside::PartialParity { .. }) && one.resync == u64::MAX);
        assert_eq!(all.iter().filter(|other| other.device == one.device).count(), 1);
    }
    assert_eq!(third.beginning().resync, Sectors(0));
}

/// Nothing is written for what cannot be.
#[test]
fn what_cannot_be_made_is_refused_before_anything_is_written() {
    let refused = |layout: &str, count: u16, sectors: u64, log: Option<Member>| {
        let layout: Layout = layout.parse().unwrap();
        let members = (0..count).map(|_| blank(sectors)).collect();
        let made = Engine::new_md(&creation(layout, SECTORS), members, log, &MdOptions::default());
        let error = made.expect_err("refused");
        assert_eq!(error.kind(), EngineErrorKind::Config, "{error}");
        error.to_string()
    };
    assert!(refused("raid3(3)", 3, SECTORS, None).contains("Linux md has no raid3"));
    assert!(refused("raid5(3) chunk=64K", 2, SECTORS, None).contains("2 devices are given"));
    assert!(refused("raid5(3) chunk=64K", 3, 2048, None).contains("too small"));
    let log = Some(blank(2100));
    assert!(refused("raid5(3) chunk=64K", 3, SECTORS, log).contains("the log device has"));
}

/// A member that is lost is replaced by a fresh device, as of any array of md's.
#[test]
fn a_lost_member_is_rebuilt_onto_a_fresh_device() {
    let layout: Layout = "raid6(4) chunk=64K".parse().unwrap();
    let members = (0..4).map(|_| blank(SECTORS)).collect();
    let made = Engine::new_md(&creation(layout, SECTORS), members, None, &MdOptions::default());
    let mut engine = made.unwrap();
    let data = pattern(1 << 20, 3);
    write(&mut engine, &data);
    engine.fail(MemberIndex(1)).unwrap();
    engine.add(MemberIndex(1), blank(SECTORS)).unwrap();
    engine.finish_background(&AtomicBool::new(false)).unwrap();
    assert_eq!(engine.data_start(MemberIndex(1)), engine.data_start(MemberIndex(0)));
    engine.stop().unwrap();
    let devices = engine.members().iter().map(copy).collect();
    let (mut again, found) = Engine::assemble_md(devices, &MdOptions::default()).unwrap();
    assert!(found.joined.out.is_empty() && read(&mut again, data.len()) == data);
}

/// What stands before the data stays when data are cleared, with records and without.
#[test]
fn data_are_cleared_and_nothing_else() {
    for layout in ["raid0(2) chunk=64K", "linear(2)", "raid1(2)"] {
        let layout: Layout = layout.parse().unwrap();
        let members = (0..2).map(|_| blank(SECTORS)).collect();
        let creation = creation(layout, SECTORS);
        let mut engine = Engine::new_md(&creation, members, None, &MdOptions::default()).unwrap();
        write(&mut engine, &pattern(1 << 20, 5));
        let start = engine.data_start(MemberIndex(0)).bytes() as usize;
        let before: Vec<Vec<u8>> =
            engine.members().iter().map(|one| bytes(one)[..start].to_vec()).collect();
        engine.clear_members().unwrap();
        for (member, before) in engine.members().iter().zip(&before) {
            let (front, data) = bytes(member).split_at(start);
            assert!(front == before && data.iter().all(|byte| *byte == 0), "{}", creation.layout);
        }
    }
}

/// A drive of sectors of 4 KiB, which takes nothing smaller.
#[derive(Clone)]
struct Large(Arc<Mutex<Vec<u8>>>);

impl MemberStore for Large {
    fn sectors(&self) -> Sectors {
        Sectors(SECTORS)
    }

    fn logical_block(&self) -> u32 {
        8
    }

    fn submit(&mut self, request: MemberRequest) {
        let (from, len) = (request.at().0, request.len().0);
        if !from.is_multiple_of(8) || !len.is_multiple_of(8) {
            return request.complete(IoOutcome::MediaError { first_bad: Sector(from) });
        }
        let mut bytes = self.0.lock().unwrap();
        let there = &mut bytes[(from * 512) as usize..((from + len) * 512) as usize];
        match request.op() {
            IoOp::Read => return request.complete_read(there),
            IoOp::Write => there.copy_from_slice(request.payload()),
            IoOp::WriteZeroes => there.fill(0),
            IoOp::Flush | IoOp::Discard => {}
        }
        request.complete(IoOutcome::Ok);
    }
}

/// Drives of sectors of 4 KiB are read and written in such: superblock, bitmap, log and what the array holds.
#[test]
fn drives_of_large_sectors_carry_arrays_of_md() {
    for (layout, bitmap, ppl) in [
        ("raid5(3) chunk=64K", WantedBitmap::Chunk(Sectors(64)), false),
        ("raid5(3) chunk=64K", WantedBitmap::None, true),
        ("raid1(3)", WantedBitmap::None, false),
        ("raid0(3) chunk=64K", WantedBitmap::None, false),
    ] {
        let drives: Vec<Large> = (0..3)
            .map(|_| Large(Arc::new(Mutex::new(vec![0; (SECTORS * 512) as usize]))))
            .collect();
        let members = || drives.iter().map(|drive| Member::from(drive.clone())).collect();
        let creation = Creation { bitmap, ppl, ..creation(layout.parse().unwrap(), SECTORS) };
        let mut engine = Engine::new_md(&creation, members(), None, &MdOptions::default()).unwrap();
        let data = pattern(1 << 20, 9);
        write(&mut engine, &data);
        engine.stop().unwrap();
        let (mut again, _) = Engine::assemble_md(members(), &MdOptions::default()).unwrap();
        assert!(read(&mut again, data.len()) == data, "{layout} {bitmap:?} {ppl}");
    }
}
