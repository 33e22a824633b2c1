//! Tests of the loop that need its insides: threads that hang in a system call.

use std::sync::PoisonError;
use std::time::{Duration, Instant};

use raidlab_core::contract::Event;
use raidlab_core::{Consistency, Layout, Level, MemberIndex, Nanos, Sector, Sectors};

use super::{Engine, EngineConfig};
use crate::error::EngineErrorKind;
use crate::member::{FileIo, FileMember, FileOptions, Member};

const TOTAL: Sectors = Sectors(4096);

fn file(directory: &std::path::Path, name: &str, engine: FileIo) -> Member {
    let path = directory.join(name);
    std::fs::write(&path, vec![0; TOTAL.bytes() as usize]).unwrap();
    let options = FileOptions { engine, ..FileOptions::default() };
    Member::File(Box::new(FileMember::open(&path, options).unwrap()))
}

/// A member whose system calls do not come back: requests are answered in time, the late answer does no
/// harm, and nobody waits for the thread at the end.
#[test]
fn a_member_that_hangs_is_given_up() {
    for engine in [FileIo::Uring, FileIo::Threads] {
        hanging_with(engine);
    }
}

fn hanging_with(file_io: FileIo) {
    let name = format!("raidlab-hang-{}-{file_io:?}", std::process::id());
    let directory = std::env::temp_dir().join(name);
    std::fs::create_dir_all(&directory).unwrap();
    let mut config = EngineConfig::new(Layout::new(Level::Raid1, 2));
    config.settings.consistency = Consistency::Resync;
    // Long enough for a sound disk on a busy machine.
    config.settings.deadline = Some(Nanos::from_millis(500));
    let members: Vec<Member> = ["0", "1"].map(|name| file(&directory, name, file_io)).into();
    let mut engine = Engine::new(&config, members).unwrap();
    let Member::File(hanging) = &engine.members()[1] else { unreachable!("a file") };
    let gate = hanging.gate();
    let held = gate.write().unwrap_or_else(PoisonError::into_inner);

    let data: Vec<u8> = (0..64 << 10).map(|n| (n / 7) as u8).collect();
    let began = Instant::now();
    engine.write_at(Sector(0), &data).unwrap();
    assert!(began.elapsed() < Duration::from_secs(20), "answered in time");
    assert!(engine.array().is_failed(MemberIndex(1)));
    assert!(engine.take_events().contains(&Event::MemberFailed(MemberIndex(1))));
    let mut back = vec![0; data.len()];
    engine.read_at(Sector(0), &mut back).unwrap();
    assert_eq!(back, data);
    assert!(engine.any_hangs());
    // As long as the thread may still write, no other drive takes the place.
    let error = engine.add(MemberIndex(1), file(&directory, "2", file_io)).unwrap_err();
    assert_eq!(error.kind(), EngineErrorKind::Busy, "{error}");

    drop(held);
    let end = Instant::now() + Duration::from_secs(20);
    while engine.any_hangs() && Instant::now() < end {
        engine.settle(Duration::from_millis(1)).unwrap();
    }
    assert!(!engine.any_hangs(), "the thread came back");
    engine.add(MemberIndex(1), file(&directory, "2", file_io)).unwrap();
    engine.finish_background(&std::sync::atomic::AtomicBool::new(false)).unwrap();
    engine.fail(MemberIndex(0)).unwrap();
    engine.read_at(Sector(0), &mut back).unwrap();
    assert_eq!(back, data, "rebuilt");

    // Hanging again, on the drive that is left, does not keep the engine from ending.
    let Member::File(hanging) = &engine.members()[1] else { unreachable!("a file") };
    let gate = hanging.gate();
    let held = gate.write().unwrap_or_else(PoisonError::into_inner);
    let error = engine.read_at(Sector(0), &mut back).unwrap_err();
    assert!(matches!(error.kind(), EngineErrorKind::MediaError | EngineErrorKind::ArrayFailed));
    drop(engine);
    drop(held);
    std::fs::remove_dir_all(&directory).unwrap();
}
