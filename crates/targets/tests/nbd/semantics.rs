//! Flushes, FUA, zeroes, trims, and what is told of blocks.

use std::sync::{Arc, Mutex};

use raidlab_core::contract::{IoOp, IoOutcome};
use raidlab_core::{Level, MemberIndex, Sector, Sectors};
use raidlab_engine::{
    Engine, FileIo, FileMember, FileOptions, Member, MemberRequest, MemberStore, MemoryMember,
};
use raidlab_nbd::{Command, ErrorCode};

use super::{Served, array, engine, engine_of};
use crate::common::{TestDirectory, file_members};
use crate::nbd_client::{Client, FAST_ZERO, READ, STATUS, ZERO};

/// A drive that keeps what was not flushed apart, and loses it when the power is cut.
#[derive(Clone)]
struct Drive(Arc<Mutex<(Vec<u8>, Vec<u8>)>>);

const SECTORS: u64 = 1024;

impl Drive {
    fn new() -> Self {
        let bytes = vec![0x11; SECTORS as usize * 512];
        Self(Arc::new(Mutex::new((bytes.clone(), bytes))))
    }

    /// What is durable.
    fn cut(&self) -> Vec<u8> {
        self.0.lock().unwrap().0.clone()
    }
}

impl MemberStore for Drive {
    fn sectors(&self) -> Sectors {
        Sectors(SECTORS)
    }

    fn submit(&mut self, request: MemberRequest) {
        let mut both = self.0.lock().unwrap();
        let (durable, now) = &mut *both;
        let at = request.at().bytes() as usize;
        let range = at..at + request.len().bytes() as usize;
        if request.flushes_first() {
            durable.copy_from_slice(now);
        }
        match request.op() {
            IoOp::Read => return request.complete_read(&now[range]),
            IoOp::Write => now[range.clone()].copy_from_slice(request.payload()),
            IoOp::WriteZeroes => now[range.clone()].fill(0),
            IoOp::Flush => durable.copy_from_slice(now),
            IoOp::Discard => {}
        }
        if request.is_durable() {
            durable[range.clone()].copy_from_slice(&now[range]);
        }
        request.complete(IoOutcome::Ok);
    }
}

/// What an array of what is durable on its drives holds.
fn after_a_cut(level: Level, drives: &[Drive], without: Option<u16>) -> Vec<u8> {
    let member = |drive: &Drive| {
        let mut memory = MemoryMember::new(Sectors(SECTORS)).unwrap();
        memory.bytes_mut().copy_from_slice(&drive.cut());
        Member::from(memory)
    };
    let mut engine = engine_of(level, drives.iter().map(member).collect());
    if let Some(member) = without {
        engine.fail(MemberIndex(member)).unwrap();
    }
    let mut bytes = vec![0; engine.array().capacity().bytes() as usize];
    engine.read_at(Sector(0), &mut bytes).unwrap();
    bytes
}

const LEVELS: [(Level, u16); 4] =
    [(Level::Raid0, 2), (Level::Raid1, 2), (Level::Raid5, 3), (Level::Raid6, 4)];

fn on_drives(level: Level, members: u16) -> (Served, Vec<Drive>) {
    let drives: Vec<Drive> = (0..members).map(|_| Drive::new()).collect();
    let served = drives.clone();
    let make = move || engine_of(level, served.into_iter().map(Member::from).collect());
    (Served::new(make), drives)
}

/// Written on one connection, flushed on another, cut: it is there, with every member missing that may be.
#[test]
fn a_flush_on_any_connection_covers_what_was_answered_on_all() {
    for (level, members) in LEVELS {
        let (served, drives) = on_drives(level, members);
        let (mut one, mut other) = (served.client(), served.client());
        one.write(8192, &[5; 20_480]);
        let kept = after_a_cut(level, &drives, None);
        assert!(kept[8192..][..20_480] != [5; 20_480], "{level:?}: nothing is volatile");
        other.flush();
        let missing = if level == Level::Raid0 { 0 } else { members };
        for without in (0..missing).map(Some).chain([None]) {
            let kept = after_a_cut(level, &drives, without);
            assert!(kept[8192..][..20_480] == [5; 20_480], "{level:?} without {without:?}");
        }
    }
}

/// Each change with FUA, and no flush: it is durable when it is answered, whichever member is lost then.
#[test]
fn fua_is_durable_with_parity_on_writes_zeroes_and_trims() {
    for (level, members) in LEVELS {
        let (served, drives) = on_drives(level, members);
        let mut client = served.client();
        let missing = if level == Level::Raid0 { 0 } else { members };
        client.write(0, &[9; 32_768]);
        client.flush();
        client.once(Command::Write, 4096, 4096, true, &[6; 4096]).good();
        for without in (0..missing).map(Some).chain([None]) {
            let kept = after_a_cut(level, &drives, without);
            assert_eq!(kept[4096..8192], [6; 4096], "{level:?} without {without:?}");
            assert_eq!(kept[..4096], [9; 4096], "{level:?} without {without:?}");
        }
        client.once(ZERO, 1024, 17_408, true, &[]).good();
        client.once(Command::Trim, 0, 65_536, true, &[]).good();
        for without in (0..missing).map(Some).chain([None]) {
            let kept = after_a_cut(level, &drives, without);
            assert_eq!(kept[1024..18_432], [0; 17_408], "{level:?} without {without:?}");
            assert_eq!(kept[18_432..32_768], [9; 14_336], "{level:?}: these drives zero nothing");
        }
    }
}

/// Where it would be as slow as writing it fails, and nothing is changed.
#[test]
fn fast_zeroes_fail_before_they_change_anything() {
    // Members that must write their zeroes.
    let (served, _) = on_drives(Level::Raid5, 3);
    let mut client = served.client();
    client.write(0, &[3; 65_536]);
    let refused = client.once(FAST_ZERO, 0, 65_536, false, &[]);
    assert_eq!(refused.error, Some(ErrorCode::NotSupported));
    assert_eq!(client.read(0, 65_536), [3; 65_536]);
    // Members that need not: whole stripes of 2 times 8 KiB.
    let served = Served::new(|| engine(Level::Raid5, 3, 1024));
    let mut client = served.client();
    client.write(0, &[3; 65_536]);
    for (at, len) in [(512, 16_384), (0, 8192), (16_384, 512)] {
        let refused = client.once(FAST_ZERO, at, len, false, &[]);
        assert_eq!(refused.error, Some(ErrorCode::NotSupported), "{len} at {at}");
    }
    assert_eq!(client.read(0, 65_536), [3; 65_536]);
    client.once(FAST_ZERO, 16_384, 32_768, false, &[]).good();
    let bytes = client.read(0, 65_536);
    assert!(bytes[..16_384].iter().all(|byte| *byte == 3), "what is before");
    assert!(bytes[16_384..49_152].iter().all(|byte| *byte == 0));
    assert!(bytes[49_152..].iter().all(|byte| *byte == 3), "what is behind");
    assert_eq!(served.scrub(), Sectors::ZERO);
}

/// A trim zeroes whole stripes and leaves the rest; redundancy agrees after it.
#[test]
fn trims_keep_redundancy_consistent() {
    for (level, members) in [(Level::Raid1, 3), (Level::Raid5, 4), (Level::Raid6, 5)] {
        let served = Served::new(move || engine(level, members, 1024));
        let mut client = served.client();
        let size = client.chosen.size;
        client.write(0, &vec![8; size as usize]);
        let stripe = if level == Level::Raid1 { 512 } else { 3 * 8192 };
        client.once(Command::Trim, 512, 5 * stripe, false, &[]).good();
        let bytes = client.read(0, size);
        let zero = |at: u64| bytes[at as usize] == 0;
        let first = 512u64.next_multiple_of(stripe);
        let end = (512 + 5 * stripe) / stripe * stripe;
        for at in (0..size).step_by(512) {
            assert_eq!(zero(at), (first..end).contains(&at), "{level:?} at {at}");
        }
        assert_eq!(served.scrub(), Sectors::ZERO, "{level:?}");
    }
    // Drives that would keep what they held, each as it likes: nothing is trimmed at all.
    let (served, _) = on_drives(Level::Raid1, 2);
    let mut client = served.client();
    client.write(0, &[4; 8192]);
    client.once(Command::Trim, 0, 8192, false, &[]).good();
    assert_eq!(client.read(0, 8192), [4; 8192]);
}

const ALLOCATION: &str = "base:allocation";
const REDUNDANCY: &str = "raidlab:redundancy";

/// Zero is told where every member that could be read has a hole, and nowhere else.
#[test]
fn zero_is_told_only_where_it_is_proven() {
    // Nothing is known of members in memory, nor of those that came with something on them.
    let served = Served::new(|| engine(Level::Raid5, 3, 1024));
    let mut client = served.client();
    let size = client.chosen.size;
    assert_eq!(client.states(ALLOCATION, 0, size), [(0, 0)]);

    let directory = TestDirectory::new();
    let members = file_members(&directory, 3, Sectors(1024), FileIo::Threads).unwrap();
    let served = Served::new(move || engine_of(Level::Raid5, members));
    let mut client = served.client();
    assert_eq!(client.states(ALLOCATION, 0, size), [(0, 3)], "new files");
    // Stripes are of 2 times 8 KiB; parity of the first lies on the last member.
    client.write(65_536, &[1; 4096]);
    let states = client.states(ALLOCATION, 0, size);
    assert_eq!(states[..2], [(0, 3), (65_536, 0)], "{states:?}");
    assert_eq!(states.last().unwrap().1, 3, "behind it");
    assert!(states[2].0 <= 65_536 + 8192, "no more than the chunk: {states:?}");
    // Without the member of the data, parity tells: it is not zero in the rows of what was written.
    served.server.with_engine(0, |engine| engine.fail(MemberIndex(1))).unwrap().unwrap();
    let bytes = client.read(0, size);
    let states = client.states(ALLOCATION, 0, size);
    assert!(states.iter().any(|(_, flags)| *flags == 3), "{states:?}");
    let ends = states.iter().skip(1).map(|(at, _)| *at).chain([size]);
    for ((at, flags), end) in states.iter().zip(ends) {
        let is_zero = bytes[*at as usize..end as usize].iter().all(|byte| *byte == 0);
        assert!(is_zero || *flags == 0, "{at}..{end} is told to be zero");
    }
}

/// Said to be consistent, and not zero at all.
#[test]
fn an_array_of_used_files_is_not_zero() {
    for level in [Level::Raid1, Level::Raid5] {
        let directory = TestDirectory::new();
        let member = |number: u8| {
            let path = directory.path().join(format!("{number}"));
            // One is blank and the others are not; where it holds the data, it is zero.
            let bytes = if number == 0 { Vec::new() } else { vec![number; 1024 * 512] };
            std::fs::write(&path, bytes).unwrap();
            std::fs::File::options().write(true).open(&path).unwrap().set_len(1024 * 512).unwrap();
            Member::from(FileMember::open(&path, FileOptions::default()).unwrap())
        };
        let members: Vec<Member> = (0..3).map(member).collect();
        let served = Served::new(move || engine_of(level, members));
        let mut client = served.client();
        let size = client.chosen.size;
        let states = client.states(ALLOCATION, 0, size);
        if level == Level::Raid1 {
            assert_eq!(states, [(0, 0)], "the copies differ");
            continue;
        }
        assert_eq!(states[..2], [(0, 3), (8192, 0)], "data of the blank one");
        served.server.with_engine(0, |engine| engine.fail(MemberIndex(0))).unwrap().unwrap();
        let states = client.states(ALLOCATION, 0, size);
        assert_eq!(states, [(0, 0)], "without it parity is read, which is not");
    }
}

/// Degraded, then rebuilt up to a place, then whole.
#[test]
fn degraded_and_rebuilding_ranges_are_told() {
    use raidlab_core::contract::Pacing;
    let served = Served::new(|| engine(Level::Raid5, 3, 1 << 16));
    let mut client = served.client();
    let size = client.chosen.size;
    assert_eq!(client.states(REDUNDANCY, 0, size), [(0, 0)]);
    served.server.with_engine(0, |engine| engine.fail(MemberIndex(2))).unwrap().unwrap();
    assert_eq!(client.states(REDUNDANCY, 0, size), [(0, 1)]);
    let begun = served.server.with_engine(0, |engine| {
        // It is stopped on its way: nothing goes on any more.
        engine.pace(Pacing::between(1, 1 << 20)).unwrap();
        let fresh = MemoryMember::new(Sectors(1 << 16)).unwrap();
        engine.add(MemberIndex(2), fresh.into())
    });
    begun.unwrap().unwrap();
    let good = |served: &Served| {
        let good = |engine: &mut Engine| engine.array().good_to(MemberIndex(2));
        served.server.with_engine(0, good).unwrap()
    };
    while good(&served) == Sector(0) {
        client.read(0, 512);
    }
    let states = client.states(REDUNDANCY, 0, size);
    let [(0, 0), (border, 2)] = states[..] else { panic!("{states:?}") };
    assert!(border <= 2 * 512 * good(&served).0, "{border}");
    served
        .server
        .with_engine(0, |engine| engine.pace(Pacing::between(u64::MAX, u64::MAX)))
        .unwrap()
        .unwrap();
    while client.states(REDUNDANCY, 0, size) != [(0, 0)] {
        client.read(0, 512);
    }
}

/// One extent, no longer than what was asked for.
#[test]
fn one_extent_is_told_when_one_is_asked_for() {
    let served = Served::new(|| engine(Level::Raid0, 2, 1024));
    let mut client = served.client();
    let one = client.once(Command::BlockStatus { one: true }, 4096, 8192, false, &[]).good();
    for context in [ALLOCATION, REDUNDANCY] {
        assert_eq!(one.extents[context].len(), 1);
        assert_eq!(one.extents[context][0].len, 8192);
    }
    let all = client.once(STATUS, 4096, 8192, false, &[]).good();
    assert_eq!(all.extents[ALLOCATION][0].len, 8192);
}

#[test]
fn a_lost_array_answers_with_errors_and_is_served_on() {
    let served = Served::new(|| engine(Level::Raid5, 3, 1024));
    let mut client = served.client();
    client.write(0, &[2; 4096]);
    for member in [0, 1] {
        let fail = move |engine: &mut Engine| engine.fail(MemberIndex(member));
        let _ = served.server.with_engine(0, fail).unwrap();
    }
    let lost = client.once(READ, 0, 65_536, false, &[]);
    assert_eq!(lost.error, Some(ErrorCode::Io));
    let refused = client.once(Command::Write, 0, 512, false, &[0; 512]);
    assert_eq!(refused.error, Some(ErrorCode::Io));
    let report = served.server.report(0).unwrap();
    assert_eq!((report.counters.errors, report.clients), (2, 1));
    assert_eq!(Client::unix(&served.path(), "").chosen.size, client.chosen.size);
}

#[test]
fn a_read_only_export_takes_no_change_of_any_kind() {
    let limits = raidlab_targets::NbdLimits::default();
    let make = || Ok(vec![array(engine(Level::Raid1, 2, 1024), "a", true)]);
    let served = Served::with(limits, make);
    let mut client = served.client();
    for command in [Command::Write, Command::Trim, ZERO, FAST_ZERO] {
        let data = if command == Command::Write { vec![1; 512] } else { Vec::new() };
        let refused = client.once(command, 0, 512, false, &data);
        assert_eq!(refused.error, Some(ErrorCode::NotPermitted), "{command:?}");
    }
    assert_eq!(client.read(0, 512), [0; 512]);
}
