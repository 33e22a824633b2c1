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
    // As long as the thread may still write, no drive takes the place, not even the same.
    let error = engine.add(MemberIndex(1), file(&directory, "2", file_io)).unwrap_err();
    assert_eq!(error.kind(), EngineErrorKind::Busy, "{error}");
    for device in [None, Some(file(&directory, "3", file_io))] {
        let error = engine.re_add(MemberIndex(1), device).unwrap_err();
        assert_eq!(error.kind(), EngineErrorKind::Busy, "{error}");
    }

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

/// An engine over one file, without metadata, whose system calls may take half a second.
fn single(directory: &std::path::Path, file_io: FileIo) -> Engine {
    std::fs::create_dir_all(directory).unwrap();
    let mut config = EngineConfig::new(Layout::new(Level::Linear, 1));
    config.settings.deadline = Some(Nanos::from_millis(500));
    Engine::new(&config, vec![file(directory, "0", file_io)]).unwrap()
}

fn gate_of(engine: &Engine) -> std::sync::Arc<std::sync::RwLock<()>> {
    let Member::File(file) = &engine.members()[0] else { unreachable!("a file") };
    file.gate()
}

fn wait_for_late_answers(engine: &mut Engine) {
    let end = Instant::now() + Duration::from_secs(20);
    while engine.any_hangs() && Instant::now() < end {
        engine.settle(Duration::from_millis(1)).unwrap();
    }
    assert!(!engine.any_hangs(), "the thread came back");
}

/// A write that was given up may still land, and would undo one that is carried out meanwhile: the last copy,
/// which stays in service, gets none before it has come back.
#[test]
fn no_write_passes_one_that_was_given_up() {
    for file_io in [FileIo::Uring, FileIo::Threads] {
        let name = format!("raidlab-late-{}-{file_io:?}", std::process::id());
        let directory = std::env::temp_dir().join(name);
        let mut engine = single(&directory, file_io);
        let gate = gate_of(&engine);
        let held = gate.write().unwrap_or_else(PoisonError::into_inner);
        let data = [[1; 4096], [2; 4096], [3; 4096]];
        engine.write_at(Sector(0), &data[0]).unwrap_err();
        assert_eq!(engine.at_threads, 1, "the write may still land");
        engine.write_at(Sector(0), &data[1]).unwrap_err();
        engine.flush().unwrap_err();
        assert_eq!(engine.at_threads, 1, "nothing was begun behind it");
        drop(held);
        wait_for_late_answers(&mut engine);
        let mut back = [0; 4096];
        engine.read_at(Sector(0), &mut back).unwrap();
        assert_eq!(back, data[0], "it landed late");
        engine.write_at(Sector(0), &data[2]).unwrap();
        engine.read_at(Sector(0), &mut back).unwrap();
        assert_eq!(back, data[2]);
        drop(engine);
        std::fs::remove_dir_all(&directory).unwrap();
    }
}

/// A flush that was given up failed late. The kernel tells that once: the next flush would go well although
/// what was written before is lost.
#[test]
fn a_flush_that_failed_late_is_not_made_good_by_the_next() {
    let directory = std::env::temp_dir().join(format!("raidlab-flush-{}", std::process::id()));
    let mut engine = single(&directory, FileIo::Threads);
    engine.write_at(Sector(0), &[1; 4096]).unwrap();
    let gate = gate_of(&engine);
    let held = gate.write().unwrap_or_else(PoisonError::into_inner);
    engine.flush().unwrap_err();
    let descriptor = engine.descriptors()[0];
    let mut pipe = [0; 2];
    // SAFETY: the array is as long as the call needs; the member's descriptor is open, and for the time of
    // the flush is that of a pipe, which cannot be flushed.
    let saved = unsafe {
        assert_eq!(libc::pipe(pipe.as_mut_ptr()), 0);
        let saved = libc::dup(descriptor);
        assert_eq!(libc::dup2(pipe[1], descriptor), descriptor);
        saved
    };
    drop(held);
    wait_for_late_answers(&mut engine);
    // SAFETY: as above; all of these are open and this test's own.
    unsafe {
        assert_eq!(libc::dup2(saved, descriptor), descriptor);
        for one in [saved, pipe[0], pipe[1]] {
            libc::close(one);
        }
    }
    for _ in 0..2 {
        engine.flush().unwrap_err();
    }
    drop(engine);
    std::fs::remove_dir_all(&directory).unwrap();
}
