//! An array as one file: every range of bytes, from many at once, with errors.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;

use crate::common::{Random, TestDirectory, memory_members};
use crate::power::{Drive, cut};
use crate::root::{can_mount, traces};
use raidlab_core::{Layout, Level, MemberIndex, Sector, Sectors};
use raidlab_engine::{
    Engine, EngineConfig, EngineErrorKind, FileMember, FileOptions, Member, MemoryMember,
};
use raidlab_targets::{ExportCache, FuseExport};

fn engine(level: Level, members: u16, sectors: u64) -> Engine {
    let mut layout = Layout::new(level, members);
    if layout.chunk > Sectors::ZERO {
        layout = layout.with_chunk(Sectors(16));
    }
    let members = memory_members(members, Sectors(sectors));
    Engine::new(&EngineConfig::new(layout), members).unwrap()
}

fn open(export: &FuseExport) -> File {
    OpenOptions::new().read(true).write(true).open(export.file()).unwrap()
}

/// All of the array, as the engine has it.
fn content(engine: &mut Engine) -> Vec<u8> {
    let mut bytes = vec![0; engine.array().capacity().bytes() as usize];
    engine.read_at(Sector(0), &mut bytes).unwrap();
    bytes
}

fn allocate(file: &File, mode: i32, offset: u64, len: u64) -> io::Result<()> {
    // SAFETY: an open descriptor and plain numbers.
    let done = unsafe { libc::fallocate(file.as_raw_fd(), mode, offset as i64, len as i64) };
    if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

#[test]
fn any_range_of_bytes_is_read_and_written() {
    if !can_mount("any_range_of_bytes_is_read_and_written", &[]) {
        return;
    }
    for (level, members) in [(Level::Raid0, 2), (Level::Raid5, 4)] {
        for cache in [ExportCache::Kept, ExportCache::None] {
            let directory = TestDirectory::new();
            let export = FuseExport::new(engine(level, members, 512), directory.path(), cache);
            let export = export.unwrap();
            let file = open(&export);
            let size = file.metadata().unwrap().len() as usize;
            let mut model = vec![0; size];
            let mut random = Random(7);
            for _ in 0..300 {
                let len = 1 + random.below(20_000) as usize;
                let at = random.below((size - len) as u64) as usize;
                let mut bytes = vec![0; len];
                random.fill(&mut bytes);
                file.write_all_at(&bytes, at as u64).unwrap();
                model[at..at + len].copy_from_slice(&bytes);
                let len = 1 + random.below(20_000) as usize;
                let at = random.below((size - len) as u64) as usize;
                let mut found = vec![0xee; len];
                file.read_exact_at(&mut found, at as u64).unwrap();
                assert!(found == model[at..at + len], "{level:?} {cache:?} {len} bytes at {at}");
            }
            file.sync_all().unwrap();
            drop(file);
            let mut engine = export.finish().unwrap();
            assert!(content(&mut engine) == model, "{level:?} {cache:?}");
            assert_eq!(traces(directory.path()), [""; 0]);
        }
    }
}

#[test]
fn parts_of_one_block_written_at_once_do_not_undo_each_other() {
    const WRITERS: usize = 8;
    if !can_mount("parts_of_one_block_written_at_once_do_not_undo_each_other", &[]) {
        return;
    }
    let directory = TestDirectory::new();
    let engine = engine(Level::Raid5, 3, 64);
    let export = FuseExport::new(engine, directory.path(), ExportCache::None).unwrap();
    std::thread::scope(|scope| {
        for writer in 0..WRITERS {
            let file = open(&export);
            scope.spawn(move || {
                for round in 0..200u8 {
                    for part in (writer..128).step_by(WRITERS) {
                        file.write_all_at(&[round; 32], part as u64 * 32).unwrap();
                    }
                    for part in (writer..128).step_by(WRITERS) {
                        let mut found = [0; 32];
                        file.read_exact_at(&mut found, part as u64 * 32).unwrap();
                        assert_eq!(found, [round; 32], "part {part} in round {round}");
                    }
                }
            });
        }
    });
    let mut engine = export.finish().unwrap();
    let bytes = content(&mut engine);
    assert!(bytes[..4096].iter().all(|byte| *byte == 199));
    assert!(bytes[4096..].iter().all(|byte| *byte == 0));
}

#[test]
fn the_directory_has_one_file_that_cannot_change_its_size() {
    if !can_mount("the_directory_has_one_file_that_cannot_change_its_size", &[]) {
        return;
    }
    let directory = TestDirectory::new();
    let array = engine(Level::Raid1, 2, 64);
    let size = array.array().capacity().bytes();
    let export = FuseExport::new(array, directory.path(), ExportCache::Kept).unwrap();
    let names: Vec<_> = std::fs::read_dir(directory.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    assert_eq!(names, ["array"]);
    let file = open(&export);
    assert_eq!(file.metadata().unwrap().len(), size);
    assert!(file.set_len(size / 2).is_err());
    let error = file.write_at(&[1; 512], size).unwrap_err();
    assert_eq!(error.raw_os_error(), Some(libc::ENOSPC));
    assert_eq!(file.write_at(&[1; 512], size - 512).unwrap(), 512);
    assert_eq!(file.read_at(&mut [0; 512], size).unwrap(), 0);
    assert!(File::create_new(directory.path().join("other")).is_err());
    assert!(std::fs::remove_file(export.file()).is_err());
    drop(file);
    export.finish().unwrap();
}

#[test]
fn ranges_are_made_zero() {
    if !can_mount("ranges_are_made_zero", &[]) {
        return;
    }
    const PUNCH: i32 = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
    let directory = TestDirectory::new();
    let array = engine(Level::Raid5, 3, 256);
    let export = FuseExport::new(array, directory.path(), ExportCache::None).unwrap();
    let file = open(&export);
    let size = file.metadata().unwrap().len() as usize;
    let mut model = vec![7; size];
    file.write_all_at(&model, 0).unwrap();
    allocate(&file, PUNCH, 1024, 30 * 512).unwrap();
    model[1024..1024 + 30 * 512].fill(0);
    allocate(&file, libc::FALLOC_FL_ZERO_RANGE, 65536, 512).unwrap();
    model[65536..66048].fill(0);
    let unsupported = |outcome: io::Result<()>| {
        assert_eq!(outcome.unwrap_err().raw_os_error(), Some(libc::EOPNOTSUPP));
    };
    unsupported(allocate(&file, PUNCH, 100, 512));
    unsupported(allocate(&file, 0, 0, 512));
    let mut found = vec![0; size];
    file.read_exact_at(&mut found, 0).unwrap();
    assert!(found == model);
    drop(file);
    assert!(content(&mut export.finish().unwrap()) == model);
}

#[test]
fn an_error_of_the_array_is_eio_and_totals_count_members() {
    if !can_mount("an_error_of_the_array_is_eio_and_totals_count_members", &[]) {
        return;
    }
    let directory = TestDirectory::new();
    let array = engine(Level::Raid0, 2, 64);
    let export = FuseExport::new(array, directory.path(), ExportCache::None).unwrap();
    let file = open(&export);
    // Two chunks of 8 KiB: one I/O to each member.
    file.write_all_at(&[1; 16384], 0).unwrap();
    file.read_exact_at(&mut [0; 512], 8192).unwrap();
    let totals = export.totals();
    assert_eq!((totals.writes, totals.bytes_written), (2, 16384));
    assert_eq!((totals.reads, totals.bytes_read), (1, 512));
    export.vanish(MemberIndex(1)).unwrap();
    let eio = |outcome: io::Result<usize>| {
        assert_eq!(outcome.unwrap_err().raw_os_error(), Some(libc::EIO));
    };
    eio(file.write_at(&[1; 512], 8192));
    eio(file.read_at(&mut [0; 512], 8192));
    eio(file.write_at(&[1; 100], 8200));
    assert_eq!(export.vanish(MemberIndex(9)).unwrap_err().kind(), EngineErrorKind::InvalidRequest);
    drop(file);
    let engine = export.finish().unwrap();
    assert!(engine.totals().writes >= 2);
}

/// The power is cut right after a write by a file that was opened for durable ones, whether the kernel keeps pages of
/// it or not.
#[test]
fn what_is_written_durably_survives_a_power_cut() {
    if !can_mount("what_is_written_durably_survives_a_power_cut", &[]) {
        return;
    }
    for cache in [ExportCache::Kept, ExportCache::None] {
        for (level, members) in [(Level::Raid1, 2), (Level::Raid5, 3)] {
            for (flags, is_kept) in [(0, false), (libc::O_DSYNC, true), (libc::O_SYNC, true)] {
                let layout = engine(level, members, 64).array().layout().clone();
                let drives: Vec<Drive> = (0..members).map(|_| Drive::new(64)).collect();
                let of = |drives: &[Drive]| {
                    let members = drives.iter().cloned().map(Member::from).collect();
                    Engine::new(&EngineConfig::new(layout.clone()), members).unwrap()
                };
                let directory = TestDirectory::new();
                let export = FuseExport::new(of(&drives), directory.path(), cache).unwrap();
                let file = OpenOptions::new().write(true).custom_flags(flags).open(export.file());
                // A part of a block, and whole ones.
                let (file, bytes) = (file.unwrap(), [7; 5000]);
                file.write_all_at(&bytes, 3000).unwrap();
                // Nothing is left of what was not durable.
                let mut left = of(&cut(&drives, |_| 0));
                let found = content(&mut left)[3000..8000] == bytes;
                assert_eq!(found, is_kept, "{level:?}, {cache:?}, flags {flags:o}");
            }
        }
    }
}

/// What stands around a part of a block is needed to write it: where that cannot be read, nothing is written.
#[test]
fn parts_of_blocks_that_cannot_be_read_are_refused_and_nothing_changes() {
    if !can_mount("parts_of_blocks_that_cannot_be_read_are_refused_and_nothing_changes", &[]) {
        return;
    }
    const BLOCK: u64 = 4096;
    // The array is one member as it is; blocks 4 and 5 of its 16 cannot be read.
    let bad = 4 * BLOCK..6 * BLOCK;
    let directory = TestDirectory::new();
    let mut member = MemoryMember::new(Sectors(128)).unwrap().with_block(8);
    Random(11).fill(member.bytes_mut());
    let mut model = member.bytes().to_vec();
    member.make_unreadable(Sector(bad.start / 512)..Sector(bad.end / 512));
    let config = EngineConfig::new(Layout::new(Level::Linear, 1).with_chunk(Sectors(16)));
    let engine = Engine::new(&config, vec![Member::Memory(member)]).unwrap();
    assert_eq!(engine.block().bytes(), BLOCK);
    let export = FuseExport::new(engine, directory.path(), ExportCache::None).unwrap();
    let file = open(&export);
    let mut random = Random(12);
    let (mut written, mut refused) = (0, 0);
    for _ in 0..400 {
        let len = 1 + random.below(3 * BLOCK);
        let at = random.below(model.len() as u64 - len);
        // The blocks of which a part stays as it was.
        let edges = [at, at + len]
            .map(|edge| (!edge.is_multiple_of(BLOCK)).then_some(edge / BLOCK * BLOCK));
        let needs_bad = edges.into_iter().flatten().any(|edge| bad.contains(&edge));
        let mut bytes = vec![0; len as usize];
        random.fill(&mut bytes);
        match file.write_at(&bytes, at) {
            Ok(done) => {
                assert!(!needs_bad && done == bytes.len(), "{len} bytes at {at}");
                model[at as usize..][..bytes.len()].copy_from_slice(&bytes);
                written += 1;
            }
            Err(error) => {
                assert!(
                    needs_bad && error.raw_os_error() == Some(libc::EIO),
                    "{len} at {at}: {error}"
                );
                refused += 1;
            }
        }
    }
    assert!(written > 50 && refused > 50, "{written} written, {refused} refused");
    drop(file);
    let engine = export.finish().unwrap();
    let Member::Memory(member) = &engine.members()[0] else { panic!("it is in memory") };
    assert!(member.bytes() == model);
}

#[test]
fn members_in_files_answer_from_their_threads() {
    if !can_mount("members_in_files_answer_from_their_threads", &[]) {
        return;
    }
    let directory = TestDirectory::new();
    let at = directory.path().join("mount");
    std::fs::create_dir(&at).unwrap();
    let member = |index: u16| {
        let path = directory.path().join(format!("member-{index}"));
        File::create_new(&path).unwrap().set_len(1 << 20).unwrap();
        Member::File(Box::new(FileMember::open(&path, FileOptions::default()).unwrap()))
    };
    let layout = Layout::new(Level::Raid5, 3).with_chunk(Sectors(16));
    let members = (0..3).map(member).collect();
    let engine = Engine::new(&EngineConfig::new(layout), members).unwrap();
    let size = engine.array().capacity().bytes() as usize;
    let export = FuseExport::new(engine, &at, ExportCache::None).unwrap();
    let mut bytes = vec![0; size];
    Random(3).fill(&mut bytes);
    std::thread::scope(|scope| {
        for (part, bytes) in (0u64..).zip(bytes.chunks(size.div_ceil(4))) {
            let file = open(&export);
            let start = part * size.div_ceil(4) as u64;
            scope.spawn(move || {
                for (index, piece) in (0u64..).zip(bytes.chunks(5000)) {
                    file.write_all_at(piece, start + index * 5000).unwrap();
                }
                file.sync_all().unwrap();
                let mut found = vec![0; bytes.len()];
                file.read_exact_at(&mut found, start).unwrap();
                assert!(found == bytes);
            });
        }
    });
    let mut engine = export.finish().unwrap();
    assert!(content(&mut engine) == bytes);
}

/// Sparse members on a filesystem that is full: who writes is told so, and the array goes on.
#[test]
fn no_room_at_a_member_is_no_room_to_who_writes() {
    if !can_mount("no_room_at_a_member_is_no_room_to_who_writes", &["mount", "umount"]) {
        return;
    }
    let run = |program: &str, arguments: &[&str], at: &Path| {
        let ran = std::process::Command::new(program).args(arguments).arg(at).status();
        assert!(ran.unwrap().success());
    };
    let directory = TestDirectory::new();
    let [at, small] = ["mount", "small"].map(|name| directory.path().join(name));
    [&at, &small].into_iter().for_each(|path| std::fs::create_dir(path).unwrap());
    run("mount", &["-t", "tmpfs", "-o", "size=6m", "none"], &small);
    let member = |index: u16| {
        let path = small.join(format!("member-{index}"));
        File::create_new(&path).unwrap().set_len(16 << 20).unwrap();
        Member::File(Box::new(FileMember::open(&path, FileOptions::default()).unwrap()))
    };
    let config = EngineConfig::new(Layout::new(Level::Raid1, 2));
    let engine = Engine::new(&config, (0..2).map(member).collect()).unwrap();
    let export = FuseExport::new(engine, &at, ExportCache::None).unwrap();
    let file = open(&export);
    let full = |outcome: io::Result<usize>| {
        assert_eq!(outcome.unwrap_err().raw_os_error(), Some(libc::ENOSPC));
    };
    file.write_all_at(&[1; 8192], 0).unwrap();
    std::fs::write(small.join("filler"), vec![0; 3 << 20]).unwrap();
    // A whole block, a part of one, and zeroes.
    full(file.write_at(&[2; 4096], 12 << 20));
    full(file.write_at(&[2; 100], (12 << 20) + 10));
    let zeroes = allocate(&file, libc::FALLOC_FL_ZERO_RANGE, 12 << 20, 4096);
    full(zeroes.map(|()| 0));
    let mut found = [0; 8192];
    file.read_exact_at(&mut found, 0).unwrap();
    assert_eq!(found, [1; 8192]);
    // Not only removed: a process that is being started may have a copy of its descriptor.
    File::create(small.join("filler")).unwrap();
    file.write_all_at(&[3; 5000], 12 << 20).unwrap();
    // The turn of the zeroes that were refused is over.
    allocate(&file, libc::FALLOC_FL_ZERO_RANGE, 12 << 20, 4096).unwrap();
    drop(file);
    let engine = export.finish().unwrap();
    assert!([0, 1].map(MemberIndex).iter().all(|member| !engine.array().is_failed(*member)));
    drop(engine);
    // The system lets files of a ring go after the ring itself.
    run("umount", &["--lazy"], &small);
}

#[test]
fn dropped_while_in_use_it_is_gone() {
    if !can_mount("dropped_while_in_use_it_is_gone", &[]) {
        return;
    }
    let directory = TestDirectory::new();
    let array = engine(Level::Raid1, 2, 64);
    let export = FuseExport::new(array, directory.path(), ExportCache::None).unwrap();
    let direct = OpenOptions::new().read(true).custom_flags(libc::O_DIRECT).open(export.file());
    let file = direct.unwrap();
    drop(export);
    assert!(file.read_at(&mut [0; 512], 0).is_err());
    assert_eq!(traces(directory.path()), [""; 0]);
}

#[test]
fn a_place_that_is_not_there_is_refused() {
    if !can_mount("a_place_that_is_not_there_is_refused", &[]) {
        return;
    }
    let nowhere = Path::new("/nowhere/at/all");
    let refused = FuseExport::new(engine(Level::Raid1, 2, 64), nowhere, ExportCache::Kept);
    let error = refused.err().unwrap();
    assert_eq!((error.kind(), error.path()), (EngineErrorKind::Io, Some(nowhere)));
    let file = TestDirectory::new().path().join("file");
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    std::fs::write(&file, b"no directory").unwrap();
    let refused = FuseExport::new(engine(Level::Raid1, 2, 64), &file, ExportCache::Kept);
    assert!(refused.is_err());
    std::fs::remove_dir_all(file.parent().unwrap()).unwrap();
}
