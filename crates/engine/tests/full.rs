//! Sparse member files on a filesystem that runs full: requests are refused by name, and no member fails.
//! On a small filesystem in memory, which needs root to be mounted; but that room is kept is seen on any.

use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::AtomicBool;

use crate::common::{Random, TestDirectory, file_members};
use crate::root::can_mount;
use raidlab_core::consistency::Allow;
use raidlab_core::contract::{Event, IoOp, Pacing};
use raidlab_core::{Consistency, Layout, Level, MemberIndex, Sector, Sectors};
use raidlab_engine::{
    Engine, EngineConfig, EngineErrorKind, FileIo, FileMember, FileOptions, Member,
};

/// A filesystem of 12 MiB; taken away at the end.
struct Small(PathBuf);

impl Small {
    fn new(directory: &TestDirectory) -> Self {
        let path = directory.path().join("small");
        std::fs::create_dir(&path).unwrap();
        let options = ["-t", "tmpfs", "-o", "size=12m", "none"];
        let mounted = Command::new("mount").args(options).arg(&path).status();
        assert!(mounted.unwrap().success());
        Self(path)
    }
}

impl Drop for Small {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("--lazy").arg(&self.0).status();
    }
}

fn open(path: &Path) -> Member {
    Member::File(Box::new(FileMember::open(path, FileOptions::default()).unwrap()))
}

/// Gives back the room that a file takes: also where a process that is being started has a copy of its descriptor.
fn empty(path: &Path) {
    File::create(path).unwrap();
}

const PIECE: usize = 256 << 10;

fn piece(seed: u64) -> Vec<u8> {
    let mut bytes = vec![0; PIECE];
    Random(seed + 1).fill(&mut bytes);
    bytes
}

fn read(engine: &mut Engine, number: u64) -> Vec<u8> {
    let mut bytes = vec![0; PIECE];
    engine.read_at(place(number), &mut bytes).unwrap();
    bytes
}

fn place(number: u64) -> Sector {
    Sector(number * PIECE as u64 / 512)
}

/// Files without room on a filesystem that has less than all may need, and the array of them.
fn sparse(
    small: &Small,
    level: Level,
    count: u16,
    consistency: Consistency,
) -> (Vec<PathBuf>, EngineConfig) {
    let paths: Vec<PathBuf> = (0..count).map(|n| small.0.join(format!("member-{n}"))).collect();
    for path in &paths {
        File::create(path).and_then(|file| file.set_len(16 << 20)).unwrap();
    }
    let mut layout = Layout::new(level, count);
    if level.has_chunks() {
        layout = layout.with_chunk(Sectors(128));
    }
    let mut config = EngineConfig::new(layout);
    config.settings.consistency = consistency;
    (paths, config)
}

/// `filled` bytes are somebody else's: with whole MiB there is room for all of a run or for none of it.
fn runs_full(level: Level, count: u16, consistency: Consistency, filled: usize) {
    let directory = TestDirectory::new();
    let small = Small::new(&directory);
    let (paths, config) = sparse(&small, level, count, consistency);
    let members = || paths.iter().map(|path| open(path));
    let mut engine = Engine::new(&config, members().collect()).unwrap();
    let filler = small.0.join("filler");
    std::fs::write(&filler, vec![1; filled]).unwrap();

    let in_service =
        |engine: &Engine| (0..count).all(|n| !engine.array().is_failed(MemberIndex(n)));
    let mut written = 0;
    let error = loop {
        match engine.write_at(place(written), &piece(written)) {
            Ok(()) => written += 1,
            Err(error) => break error,
        }
    };
    assert_eq!(error.kind(), EngineErrorKind::NoRoom, "{level:?}: {error}");
    assert!(error.to_string().contains("small/member-"), "{error}");
    assert!(written > 4 && in_service(&engine), "{level:?}: after {written} pieces");
    let again = engine.write_at(place(written), &piece(written)).unwrap_err();
    assert_eq!(again.kind(), EngineErrorKind::NoRoom, "{level:?}: {again}");
    let zeroes = engine.submit_range(IoOp::WriteZeroes, place(written), Sectors(512));
    assert_eq!(zeroes.unwrap_err().kind(), EngineErrorKind::NoRoom);
    // What has room already is written and read, and made durable, as before.
    engine.write_at(place(0), &piece(99)).unwrap();
    engine.flush().unwrap();
    assert!(read(&mut engine, 0) == piece(99), "{level:?}");
    (1..written).for_each(|n| assert!(read(&mut engine, n) == piece(n), "{level:?}: piece {n}"));
    // With room the array goes on.
    empty(&filler);
    engine.write_at(place(written), &piece(written)).unwrap();
    assert!(in_service(&engine));
    engine.stop().unwrap();
    drop(engine);
    if consistency == Consistency::None {
        return;
    }
    let members = members().map(Some).collect();
    let mut engine = Engine::assemble(&config, members, None, Allow::default()).unwrap();
    assert!(in_service(&engine));
    (1..=written).for_each(|n| assert!(read(&mut engine, n) == piece(n), "{level:?}: piece {n}"));
}

#[test]
fn a_full_filesystem_refuses_requests_and_no_member() {
    let name = "a_full_filesystem_refuses_requests_and_no_member";
    if !can_mount(name, &["mount", "umount"]) {
        return;
    }
    for filled in [2 << 20, (2 << 20) + (768 << 10)] {
        runs_full(Level::Raid1, 2, Consistency::None, filled);
        runs_full(Level::Raid1, 2, Consistency::Bitmap { chunk: Sectors(128) }, filled);
        runs_full(Level::Raid0, 2, Consistency::None, filled);
        runs_full(Level::Raid10, 4, Consistency::Resync, filled);
        runs_full(Level::Raid5, 3, Consistency::PartialParity { slots: 8 }, filled);
        runs_full(Level::Raid6, 4, Consistency::Resync, filled);
    }
}

/// What is made consistent after a crash is written where there was never anything, too.
#[test]
fn a_resync_that_finds_no_room_fails_no_member() {
    let name = "a_resync_that_finds_no_room_fails_no_member";
    if !can_mount(name, &["mount", "umount"]) {
        return;
    }
    for (level, count) in [(Level::Raid1, 2), (Level::Raid5, 3)] {
        let directory = TestDirectory::new();
        let small = Small::new(&directory);
        let (paths, config) = sparse(&small, level, count, Consistency::Resync);
        let mut engine =
            Engine::new(&config, paths.iter().map(|path| open(path)).collect()).unwrap();
        engine.write_at(place(0), &piece(0)).unwrap();
        // Not stopped: the array is dirty.
        drop(engine);
        std::fs::write(small.0.join("filler"), vec![1; 4 << 20]).unwrap();
        let members = paths.iter().map(|path| Some(open(path))).collect();
        let mut engine = Engine::assemble(&config, members, None, Allow::default()).unwrap();
        engine.finish_background(&AtomicBool::new(false)).unwrap();
        for (n, path) in (0..).zip(&paths) {
            assert!(!engine.array().is_failed(MemberIndex(n)), "{level:?}: member {n}");
            let used = std::fs::metadata(path).unwrap().blocks() * 512;
            assert!(used <= 3 << 20, "{level:?}: member {n} has {used} bytes: holes stay holes");
        }
        assert!(read(&mut engine, 0) == piece(0));
        engine.stop().unwrap();
    }
}

const REPLACED: [(Level, u16); 3] = [(Level::Raid1, 2), (Level::Raid10, 4), (Level::Raid5, 3)];

/// An array on files with room for all, and a sparse replacement of member 0 that is hardly filled.
fn replaced(level: Level, count: u16, on: &TestDirectory, replacement: &Path) -> Engine {
    let mut config = EngineConfig::new(Layout::new(level, count));
    config.settings.pacing = Pacing::between(1, 1);
    config.settings.room_wait = None;
    let members = file_members(on, count, Sectors(32 << 11), FileIo::Auto).unwrap();
    let mut engine = Engine::new(&config, members).unwrap();
    File::create(replacement).and_then(|file| file.set_len(32 << 20)).unwrap();
    engine.replace(MemberIndex(0), open(replacement), true).unwrap();
    engine
}

/// A replacement that is being filled gets what is written, as the member does which it replaces.
#[test]
fn a_replacement_without_room_refuses_requests_and_no_member() {
    let name = "a_replacement_without_room_refuses_requests_and_no_member";
    if !can_mount(name, &["mount", "umount"]) {
        return;
    }
    for (level, count) in REPLACED {
        let directory = TestDirectory::new();
        let small = Small::new(&directory);
        let filler = small.0.join("filler");
        let path = small.0.join("replacement");
        let mut engine = replaced(level, count, &directory, &path);
        std::fs::write(&filler, vec![1; 13 << 20]).unwrap_err();
        let number = 48;
        let error = engine.write_at(place(number), &piece(number)).unwrap_err();
        assert_eq!(error.kind(), EngineErrorKind::NoRoom, "{level:?}: {error}");
        assert!(error.to_string().contains("small/replacement"), "{error}");
        let replacement = engine.array().replacement(MemberIndex(0));
        let failed = |engine: &Engine| {
            (0..count).map(MemberIndex).chain([replacement]).any(|n| engine.array().is_failed(n))
        };
        assert!(!failed(&engine), "{level:?}");
        assert!(read(&mut engine, number).iter().all(|byte| *byte == 0), "{level:?}");
        empty(&filler);
        engine.write_at(place(number), &piece(number)).unwrap();
        assert!(!failed(&engine), "{level:?}");
        engine.pace(Pacing::between(u64::MAX, u64::MAX)).unwrap();
        engine.finish_background(&AtomicBool::new(false)).unwrap();
        assert!(engine.take_events().contains(&Event::Replaced(MemberIndex(0))));
        assert!(read(&mut engine, number) == piece(number), "{level:?}");
    }
}

/// Room is kept in larger runs than what is written, which shows where it was asked for.
#[test]
fn a_replacement_has_as_much_room_as_what_it_replaces() {
    let directory = TestDirectory::new();
    for (level, count) in REPLACED {
        let path = directory.path().join(format!("replacement-{count}"));
        let mut engine = replaced(level, count, &directory, &path);
        let room = |path: &Path| std::fs::metadata(path).unwrap().blocks();
        for number in [48, 60, 55] {
            engine.write_at(place(number), &piece(number)).unwrap();
            let rooms = [&directory.path().join("member-0"), &path].map(|path| room(path));
            // A block of either file may hold where the others are.
            assert!(rooms[0] > 16 && rooms[1] + 16 >= rooms[0], "{level:?}: {rooms:?}");
        }
    }
}

/// What a discard gave back is asked for again before it is written, by the whole run as at first: on files of which a
/// part has room, and on those that have all.
#[test]
fn what_was_discarded_has_room_again_before_it_is_written() {
    const MIB: usize = 1 << 20;
    for filled in [1, 4] {
        let directory = TestDirectory::new();
        let path = directory.path().join("member");
        File::create(&path).and_then(|file| file.set_len(4 * MIB as u64)).unwrap();
        let config = EngineConfig::new(Layout::new(Level::Linear, 1).with_chunk(Sectors(8)));
        let mut engine = Engine::new(&config, vec![open(&path)]).unwrap();
        let room = || std::fs::metadata(&path).unwrap().blocks() as usize * 512;
        let pieces = (filled * MIB / PIECE) as u64;
        (0..pieces).for_each(|number| engine.write_at(place(number), &piece(number)).unwrap());
        for round in 0..6 {
            let id = engine.submit_range(IoOp::Discard, Sector(0), Sectors(2048)).unwrap();
            let mut replies = Vec::new();
            engine.wait_replies(&mut replies).unwrap();
            assert_eq!(replies.iter().map(|reply| reply.id).collect::<Vec<_>>(), [id]);
            assert!(room() <= (filled - 1) * MIB + PIECE, "{filled} MiB: {} are left", room());
            engine.write_at(place(1), &piece(round)).unwrap();
            assert!(room() >= filled * MIB, "{filled} MiB, round {round}: {} are there", room());
        }
        // Elsewhere it is asked for as before.
        engine.write_at(place(12), &piece(12)).unwrap();
        assert!(room() >= (filled + 1).min(4) * MIB, "{filled} MiB: {} are there", room());
    }
}

/// A member that is being rebuilt onto a device with nothing on it proves nothing where the rebuild has not come to.
#[test]
fn a_hole_behind_what_is_rebuilt_is_no_zeroes() {
    let directory = TestDirectory::new();
    let open = |number: u16| {
        let path = directory.path().join(number.to_string());
        File::create(&path).unwrap().set_len(16 << 20).unwrap();
        let options = FileOptions { direct: false, ..FileOptions::default() };
        Member::File(Box::new(FileMember::open(&path, options).unwrap()))
    };
    let chunk = Sectors(4096);
    let mut config = EngineConfig::new(Layout::new(Level::Raid5, 3).with_chunk(chunk));
    config.settings.pacing = Pacing::between(1, 1);
    let mut engine = Engine::new(&config, (0..3).map(open).collect()).unwrap();
    // The second half of the first chunk.
    let half = Sectors(chunk.0 / 2);
    engine.write_at(Sector(half.0), &[7; 4096]).unwrap();
    let place = engine.array().flat().unwrap().geometry().place(Sector(0), 0);
    engine.fail(place.member).unwrap();
    engine.add(place.member, open(3)).unwrap();
    let good_to = |engine: &Engine| engine.array().flat().unwrap().good_to(place.member);
    while good_to(&engine).0 == 0 {
        engine.wait_replies(&mut Vec::new()).unwrap();
    }
    assert!(good_to(&engine).0 < half.0, "it has gone no farther: {:?}", good_to(&engine));
    let (is_zero, run) = engine.zero_run(Sector(0), chunk);
    assert!(!is_zero || run.0 <= half.0, "{run:?} of {half:?} are said to be zero");
    let (is_zero, run) = engine.zero_run(Sector(good_to(&engine).0), chunk);
    assert!(!is_zero || run.0 <= half.0, "{run:?} of {half:?} are said to be zero");
}

/// What is proven to be zero ends where the first of those ends that could be read, in whatever order they are.
#[test]
fn a_run_of_zeroes_is_as_long_as_the_shortest_hole() {
    let directory = TestDirectory::new();
    let member = |name: &str, written: u64| {
        let path = directory.path().join(name);
        let file = File::create(&path).unwrap();
        file.set_len(1 << 20).unwrap();
        std::os::unix::fs::FileExt::write_all_at(&file, &[7; 4096], written).unwrap();
        file.sync_all().unwrap();
        let options = FileOptions { direct: false, ..FileOptions::default() };
        Member::File(Box::new(FileMember::open(&path, options).unwrap()))
    };
    let config = EngineConfig::new(Layout::new(Level::Raid1, 2));
    for (number, places) in [[64 << 10, 256 << 10], [256 << 10, 64 << 10]].iter().enumerate() {
        let members = places.iter().map(|at| member(&format!("{number}-{at}"), *at)).collect();
        let engine = Engine::new(&config, members).unwrap();
        let most = Sectors(2048);
        assert_eq!(engine.zero_run(Sector(0), most), (true, Sectors(128)), "{places:?}");
        assert!(!engine.zero_run(Sector(128), most - Sectors(128)).0);
    }
}
