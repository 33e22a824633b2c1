//! Redundancy compared everywhere, and members cleared.

use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::common::{Random, TestDirectory, memory_members};
use crate::held::{Bench, Drive, made_image};
use crate::made::creation;
use raidlab_core::consistency::Allow;
use raidlab_core::contract::{Admin, Event, IoOp, Pacing, Refusal, Scrub, Segment, Work};
use raidlab_core::{Consistency, Layout, Level, MemberIndex, Sector, Sectors};
use raidlab_engine::{
    Engine, EngineConfig, EngineErrorKind, FileMember, FileOptions, Member, MemoryMember,
};

static GO: AtomicBool = AtomicBool::new(false);
const MEMBER: Sectors = Sectors(1024);
/// What `clear_members` does in one call, in sectors.
const STEP: u64 = 1 << 17;

/// An array full of random bytes.
fn filled(level: Level, members: u16) -> Engine {
    let mut layout = Layout::new(level, members);
    if level.has_chunks() {
        layout = layout.with_chunk(Sectors(16));
    }
    let config = EngineConfig::new(layout);
    let mut engine = Engine::new(&config, memory_members(members, MEMBER)).unwrap();
    let mut bytes = vec![0; engine.array().capacity().bytes() as usize];
    Random(3).fill(&mut bytes);
    engine.write_at(Sector(0), &bytes).unwrap();
    engine
}

fn memory(engine: &mut Engine, member: u16) -> &mut MemoryMember {
    match engine.member_mut(MemberIndex(member)) {
        Some(Member::Memory(member)) => member,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_scrub_finds_what_was_planted_and_nothing_else() {
    for (level, members) in
        [(Level::Raid1, 2), (Level::Raid5, 3), (Level::Raid6, 4), (Level::Raid10, 4)]
    {
        let mut engine = filled(level, members);
        assert_eq!(engine.scrub(&GO).unwrap(), Sectors::ZERO, "{level:?}");
        for member in 0..members {
            // Every member holds data, copies or parity in its first and its last stripe.
            for at in [7, MEMBER.bytes() as usize - 9] {
                memory(&mut engine, member).bytes_mut()[at] ^= 4;
                // The events of earlier scrubs are still there.
                let found = engine.scrub(&GO).unwrap();
                assert!((1..=16).contains(&found.0), "{level:?}, {member}, {at}: {found:?}");
                memory(&mut engine, member).bytes_mut()[at] ^= 4;
                assert_eq!(engine.scrub(&GO).unwrap(), Sectors::ZERO, "{level:?}, {member}, {at}");
            }
        }
        let ended = |event: &Event| matches!(event, Event::Finished { work: Work::Scrub(_), .. });
        let events = engine.take_events();
        assert_eq!(
            events.iter().filter(|event| ended(event)).count(),
            1 + 4 * usize::from(members)
        );
    }
}

#[test]
fn what_cannot_be_compared_is_refused() {
    for (level, members) in [(Level::Raid0, 2), (Level::Linear, 2), (Level::Linear, 1)] {
        let error = filled(level, members).scrub(&GO).unwrap_err();
        assert_eq!(error.kind(), EngineErrorKind::Refused, "{error}");
        assert_eq!(error.refusal(), Some(Refusal::NoRedundancy));
    }
    let mut degraded = filled(Level::Raid1, 2);
    degraded.fail(MemberIndex(1)).unwrap();
    assert_eq!(degraded.scrub(&GO).unwrap_err().refusal(), Some(Refusal::Degraded));
}

#[test]
fn a_scrub_that_is_cancelled_goes_on_later() {
    // Files answer later: it cannot end with the command that begins it.
    let directory = TestDirectory::new();
    let members = [0, 1].map(|n| {
        let path = directory.path().join(format!("disk{n}"));
        std::fs::write(&path, vec![0; 32 << 20]).unwrap();
        Member::File(Box::new(FileMember::open(&path, FileOptions::default()).unwrap()))
    });
    let config = EngineConfig::new(Layout::new(Level::Raid1, 2));
    let mut engine = Engine::new(&config, members.into()).unwrap();
    let error = engine.scrub(&AtomicBool::new(true)).unwrap_err();
    assert_eq!(error.kind(), EngineErrorKind::Cancelled, "{error}");
    let clear = engine.clear_members().unwrap_err();
    assert_eq!(clear.kind(), EngineErrorKind::Busy, "{clear}");
    engine.finish_background(&GO).unwrap();
    engine.clear_members().unwrap();
    assert_eq!(engine.scrub(&GO).unwrap(), Sectors::ZERO);
}

fn clear(members: Vec<Member>) -> Engine {
    let layout = Layout::new(Level::Raid1, members.len() as u16);
    let mut engine = Engine::new(&EngineConfig::new(layout), members).unwrap();
    engine.clear_members().unwrap();
    engine
}

#[test]
fn members_in_memory_hold_zeroes_when_they_are_cleared() {
    for sectors in [1, 999, STEP, STEP + 24] {
        let mut members = memory_members(2, Sectors(sectors));
        for member in &mut members {
            let Member::Memory(member) = member else { panic!("memory") };
            member.bytes_mut().fill(0xaa);
        }
        let mut engine = clear(members);
        for member in 0..2 {
            let bytes = memory(&mut engine, member).bytes();
            assert!(bytes.iter().all(|byte| *byte == 0), "{sectors} sectors, member {member}");
        }
    }
}

/// A file with something in every place that matters: around its start, a step and its end.
fn file(path: &Path, offset: u64, sectors: u64) -> Vec<u64> {
    let file = std::fs::File::create(path).unwrap();
    let (start, end) = (offset * 512, (offset + sectors) * 512);
    file.set_len(end + 4096).unwrap();
    let step = start + STEP * 512;
    let places = [0, start, step.min(end) - 512, step.min(end), end - 512, end];
    for place in places {
        file.write_all_at(&[0xaa; 512], place).unwrap();
    }
    file.sync_all().unwrap();
    places.to_vec()
}

#[test]
fn files_hold_zeroes_where_the_member_is_and_stay_elsewhere() {
    let directory = TestDirectory::new();
    for sectors in [8, 1000, STEP + 24] {
        let offset = 8;
        let paths = [0, 1].map(|n| directory.path().join(format!("{sectors}-{n}")));
        let places = paths.clone().map(|path| file(&path, offset, sectors));
        let sizes = (Sectors(offset), Some(Sectors(sectors)));
        let options =
            FileOptions { data_offset: sizes.0, sectors: sizes.1, ..FileOptions::default() };
        let member = |path| Member::File(Box::new(FileMember::open(path, options).unwrap()));
        drop(clear(paths.iter().map(|path| member(path)).collect()));
        for (path, places) in paths.iter().zip(places) {
            let file = std::fs::File::open(path).unwrap();
            let end = (offset + sectors) * 512;
            for place in places {
                let mut bytes = [1; 512];
                file.read_exact_at(&mut bytes, place).unwrap();
                let inside = (offset * 512..end).contains(&place);
                let expected = if inside { 0 } else { 0xaa };
                assert!(bytes.iter().all(|byte| *byte == expected), "{sectors}: byte {place}");
            }
            assert_eq!(file.metadata().unwrap().len(), end + 4096);
        }
    }
}

#[test]
fn what_refuses_zeroes_is_named_with_its_place() {
    let mut members = memory_members(2, Sectors(STEP + 1000));
    if let Member::Memory(member) = &mut members[1] {
        member.make_unwritable(Sector(STEP + 77)..Sector(STEP + 78));
    }
    let config = EngineConfig::new(Layout::new(Level::Raid1, 2));
    let mut engine = Engine::new(&config, members).unwrap();
    let error = engine.clear_members().unwrap_err();
    assert_eq!(error.kind(), EngineErrorKind::MediaError, "{error}");
    assert_eq!((error.path(), error.offset()), (None, Some((STEP + 77) * 512)));
    assert!(error.to_string().starts_with("cannot clear a member at byte"), "{error}");

    let directory = TestDirectory::new();
    let path = directory.path().join("read-only");
    file(&path, 8, 1000);
    let options = FileOptions { data_offset: Sectors(8), ..FileOptions::default() };
    let open = std::fs::File::open(&path).unwrap();
    let member = Member::File(Box::new(FileMember::new(open, &path, options).unwrap()));
    let config = EngineConfig::new(Layout::new(Level::Linear, 1));
    let mut engine = Engine::new(&config, vec![member]).unwrap();
    let error = engine.clear_members().unwrap_err();
    assert_eq!((error.path(), error.offset()), (Some(&*path), Some(8 * 512)), "{error}");
    assert!(error.to_string().contains(path.to_str().unwrap()), "{error}");
}

#[test]
fn nothing_is_cleared_while_requests_are_outstanding() {
    let mut engine = filled(Level::Raid1, 2);
    let token = engine.allocate(4096).unwrap();
    let segment = Segment { token, offset: 0, len: 8 };
    engine.submit(IoOp::Write, Sector(0), &[segment], false).unwrap();
    assert_eq!(engine.clear_members().unwrap_err().kind(), EngineErrorKind::Busy);
    engine.run_until_idle(&mut Vec::new()).unwrap();
    engine.clear_members().unwrap();
}

/// Superblocks and logs are not data: the array can still be put together.
#[test]
fn an_array_with_metadata_is_still_one_after_it_was_cleared() {
    for consistency in [
        Consistency::Resync,
        Consistency::Bitmap { chunk: Sectors(64) },
        Consistency::PartialParity { slots: 32 },
    ] {
        let directory = TestDirectory::new();
        let mut config = EngineConfig::new(Layout::new(Level::Raid5, 3).with_chunk(Sectors(16)));
        config.settings.consistency = consistency;
        let paths = [0, 1, 2].map(|n| directory.path().join(format!("disk{n}")));
        let member = |path: &_| {
            let member = FileMember::open(path, FileOptions::default()).unwrap();
            Member::File(Box::new(member))
        };
        let members = paths.iter().map(|path| {
            std::fs::write(path, vec![0; 16 << 20]).unwrap();
            member(path)
        });
        let mut engine = Engine::new(&config, members.collect()).unwrap();
        engine.write_at(Sector(0), &[7; 64 << 10]).unwrap();
        engine.stop().unwrap();
        drop(engine);
        let again = || {
            let members = paths.iter().map(|path| Some(member(path))).collect();
            Engine::assemble(&config, members, None, Allow::default())
        };
        let mut engine = again().unwrap();
        engine.finish_background(&GO).unwrap();
        engine.clear_members().unwrap();
        // As a crash would leave it: nothing is written again.
        drop(engine);
        let mut engine = again().unwrap_or_else(|error| panic!("{consistency:?}: {error}"));
        let mut bytes = vec![1; 64 << 10];
        engine.read_at(Sector(0), &mut bytes).unwrap();
        assert!(bytes.iter().all(|byte| *byte == 0), "{consistency:?}");
    }
}

/// Right after a rebuild, whose end is still being made durable, a scrub is not refused but begins when that is so.
#[test]
fn a_scrub_begins_when_the_end_of_a_rebuild_is_durable() {
    let plan = creation("raid5(3) chunk=16K".parse().unwrap(), 3072).plan().unwrap();
    let images = plan.members.iter().flatten().map(|made| made_image(made, 3072)).collect();
    let mut bench = Bench::new(images, 64, 1);
    let mut engine = bench.start(&[]).unwrap();
    engine.fail(MemberIndex(1)).unwrap();
    bench.begin_exchange(&mut engine, 1);
    bench.drives.iter().for_each(|drive| drive.hold(true));
    engine.pace(Pacing::between(u64::MAX, u64::MAX)).unwrap();
    let mut steps = 0..100_000;
    let is_settling = |engine: &Engine| {
        let status = engine.array().status();
        status.settling && (status.failed, status.rebuilding) == ([0; 2], [0; 2])
    };
    while !is_settling(&engine) {
        steps.next().expect("the member is in service before that is durable");
        for drive in &bench.drives {
            drive.go_on(&mut bench.random);
        }
        engine.poll_replies(&mut Vec::new()).unwrap();
    }
    let refused = engine.admin(Admin::StartScrub(Scrub::Check)).unwrap_err();
    assert_eq!(refused.refusal(), Some(Refusal::Busy));
    let (begun, drives, mut random) = (AtomicBool::new(false), bench.drives.clone(), bench.random);
    let answer = |drives: &[Drive], random: &mut _| {
        drives.iter().filter(|drive| drive.go_on(random)).count() > 0
    };
    let started = std::thread::scope(|scope| {
        scope.spawn(|| {
            while !begun.load(Ordering::Relaxed) {
                answer(&drives, &mut random);
                std::thread::yield_now();
            }
        });
        let started = engine.start_scrub(Scrub::Check);
        begun.store(true, Ordering::Relaxed);
        started
    });
    started.unwrap();
    drives.iter().for_each(|drive| drive.hold(false));
    while answer(&drives, &mut random) {}
    engine.finish_background(&GO).unwrap();
    let events = engine.take_events();
    let differing = events.iter().find_map(|event| match event {
        Event::Finished { work: Work::Scrub(_), mismatched, .. } => Some(*mismatched),
        _ => None,
    });
    assert_eq!(differing, Some(Sectors(0)));
}
