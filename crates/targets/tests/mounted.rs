//! A filesystem on an array: written, checked, broken, killed; and nothing of it left.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};

use crate::common::{Random, TestDirectory, memory_members};
use crate::root::{can_mount, skip, traces};
use raidlab_core::{Layout, Level, MemberIndex, Sector, Sectors};
use raidlab_engine::{Engine, EngineConfig, EngineErrorKind, Member};
use raidlab_targets::{
    Filesystem, MountOptions, MountedArray, StripeHint, clean_leftovers, clean_mounts,
};

const EXT4: [&str; 2] = ["mkfs.ext4", "e2fsck"];

fn run(program: &str, arguments: &[&OsStr]) {
    assert!(Command::new(program).args(arguments).status().unwrap().success());
}

fn engine(level: Level, members: u16, mebibytes: u64) -> Engine {
    let mut layout = Layout::new(level, members);
    if layout.chunk > Sectors::ZERO {
        layout = layout.with_chunk(Sectors(128));
    }
    let members = memory_members(members, Sectors(mebibytes * 2048));
    Engine::new(&EngineConfig::new(layout), members).unwrap()
}

fn mount(engine: Engine, directory: &TestDirectory) -> MountedArray {
    let options = MountOptions::default();
    MountedArray::new(engine, directory.path(), Filesystem::Ext4, options).unwrap()
}

/// Nothing is mounted or attached, and the directory is empty.
fn assert_clean(directory: &TestDirectory) {
    assert_eq!(traces(directory.path()), [""; 0]);
    let left: Vec<_> = std::fs::read_dir(directory.path()).unwrap().flatten().collect();
    assert!(left.is_empty(), "{left:?}");
}

fn random_bytes(seed: u64, len: usize) -> Vec<u8> {
    let mut bytes = vec![0; len];
    Random(seed).fill(&mut bytes);
    bytes
}

/// Writes some files, reads them back, and gives what they hold.
fn write_files(at: &Path) -> Vec<Vec<u8>> {
    let files: Vec<Vec<u8>> =
        [10, 4096, 300_000, 3 << 20].map(|len| random_bytes(len, len as usize)).into();
    for (index, bytes) in files.iter().enumerate() {
        let directory = at.join(format!("directory-{index}"));
        std::fs::create_dir(&directory).unwrap();
        let mut file = File::create_new(directory.join("file")).unwrap();
        file.write_all(bytes).unwrap();
        file.sync_all().unwrap();
    }
    for (index, bytes) in files.iter().enumerate() {
        let found = std::fs::read(at.join(format!("directory-{index}/file"))).unwrap();
        assert!(found == *bytes, "file {index}");
    }
    files
}

fn bytes_of(member: &Member) -> &[u8] {
    match member {
        Member::Memory(memory) => memory.bytes(),
        _ => panic!("a member in memory"),
    }
}

/// Copies are equal, parity is right, and all blocks of the files are in the array.
fn verify(mut engine: Engine, files: &[Vec<u8>]) {
    let mut array = vec![0; engine.array().capacity().bytes() as usize];
    engine.read_at(Sector(0), &mut array).unwrap();
    let blocks: std::collections::HashSet<&[u8]> = array.chunks(4096).collect();
    for bytes in files {
        assert!(bytes.chunks_exact(4096).all(|block| blocks.contains(block)));
    }
    let members: Vec<&[u8]> = engine.members().iter().map(bytes_of).collect();
    match engine.array().layout().level {
        Level::Raid1 => assert!(members.iter().all(|member| *member == members[0])),
        Level::Raid5 => {
            let xor = |index: usize| members.iter().fold(0, |xor, member| xor ^ member[index]);
            assert!((0..members[0].len()).all(|index| xor(index) == 0));
        }
        _ => {}
    }
}

#[test]
fn files_on_ext4_are_kept_by_every_level() {
    if !can_mount("files_on_ext4_are_kept_by_every_level", &EXT4) {
        return;
    }
    for (level, members) in [(Level::Raid0, 2), (Level::Raid1, 2), (Level::Raid5, 4)] {
        let directory = TestDirectory::new();
        let mounted = mount(engine(level, members, 32), &directory);
        let before = mounted.totals();
        let files = write_files(&mounted.path());
        let written = mounted.totals().since(before).bytes_written;
        let payload = files.iter().map(Vec::len).sum::<usize>() as u64;
        let copies = if level == Level::Raid0 { 1 } else { 2 };
        // Parity of whole stripes is a third more.
        let least = if level == Level::Raid5 { payload + payload / 3 } else { payload * copies };
        assert!(written >= least, "{level:?}: {written} bytes at members for {payload}");
        verify(mounted.finish().unwrap(), &files);
        assert_clean(&directory);
    }
}

#[test]
fn every_filesystem_is_made_and_found_sound() {
    for (filesystem, programs, mebibytes) in [
        (Filesystem::Ext3, ["mkfs.ext3", "e2fsck"], 16),
        (Filesystem::Ext2, ["mkfs.ext2", "e2fsck"], 16),
        (Filesystem::Xfs, ["mkfs.xfs", "xfs_repair"], 512),
        (Filesystem::Btrfs, ["mkfs.btrfs", "btrfs"], 80),
    ] {
        let test = "every_filesystem_is_made_and_found_sound";
        if !can_mount(&format!("{test} ({})", filesystem.name()), &programs) {
            continue;
        }
        let directory = TestDirectory::new();
        let engine = engine(Level::Raid0, 2, mebibytes);
        let options = MountOptions { stripe: StripeHint::Layout, ..MountOptions::default() };
        let mounted = MountedArray::new(engine, directory.path(), filesystem, options);
        let mounted = match mounted {
            Err(error) if error.kind() == EngineErrorKind::NotSupported => {
                skip(&format!("{test} ({})", filesystem.name()), &error.to_string());
                continue;
            }
            other => other.unwrap(),
        };
        let files = write_files(&mounted.path());
        verify(mounted.finish().unwrap(), &files);
        assert_clean(&directory);
    }
}

#[test]
fn damage_is_the_verdict_of_the_checker() {
    if !can_mount("damage_is_the_verdict_of_the_checker", &EXT4) {
        return;
    }
    let directory = TestDirectory::new();
    let mounted = mount(engine(Level::Raid0, 2, 16), &directory);
    write_files(&mounted.path());
    // Behind the filesystem's back, when it has nothing left to write: directories become garbage.
    for what in ["--freeze", "--unfreeze"] {
        run("fsfreeze", &[what.as_ref(), mounted.path().as_os_str()]);
    }
    let export = mounted.path().parent().unwrap().join("export/array");
    let garbage = random_bytes(1, 12 << 20);
    let file = std::fs::OpenOptions::new().write(true).open(export).unwrap();
    std::os::unix::fs::FileExt::write_all_at(&file, &garbage, 64 << 10).unwrap();
    drop(file);
    let error = mounted.finish().err().unwrap();
    assert_eq!(error.kind(), EngineErrorKind::Mismatch, "{error}");
    assert!(error.to_string().contains("ext4 is not sound"), "{error}");
    assert_clean(&directory);
}

/// Writes and flushes until told to stop or something fails; gives the failure.
fn write_until(at: &Path, stop: &AtomicBool) -> Option<std::io::Error> {
    let bytes = random_bytes(5, 256 << 10);
    for number in 0.. {
        if stop.load(Ordering::Relaxed) {
            break;
        }
        let written = File::create(at.join(format!("file-{}", number % 16)))
            .and_then(|mut file| file.write_all(&bytes).and_then(|()| file.sync_all()));
        if let Err(error) = written {
            return Some(error);
        }
    }
    None
}

#[test]
fn a_member_that_fails_under_raid0_is_an_error_to_the_writer_and_all_is_taken_down() {
    let name = "a_member_that_fails_under_raid0_is_an_error_to_the_writer_and_all_is_taken_down";
    if !can_mount(name, &EXT4) {
        return;
    }
    let directory = TestDirectory::new();
    let mounted = mount(engine(Level::Raid0, 2, 32), &directory);
    let (at, stop) = (mounted.path(), AtomicBool::new(false));
    let failure = std::thread::scope(|scope| {
        let writer = scope.spawn(|| write_until(&at, &stop));
        mounted.vanish(MemberIndex(1)).unwrap();
        writer.join().unwrap()
    });
    let error = failure.unwrap();
    // The first is EIO; after it ext4 may have shut itself down, or find no group with room.
    let expected = [libc::EIO, libc::EROFS, libc::ENOSPC];
    assert!(expected.contains(&error.raw_os_error().unwrap()), "{error}");
    assert!(mounted.finish().is_err());
    assert_clean(&directory);
}

#[test]
fn a_member_that_fails_under_raid1_is_not_noticed() {
    if !can_mount("a_member_that_fails_under_raid1_is_not_noticed", &EXT4) {
        return;
    }
    let directory = TestDirectory::new();
    let mounted = mount(engine(Level::Raid1, 2, 32), &directory);
    mounted.vanish(MemberIndex(0)).unwrap();
    write_files(&mounted.path());
    let mut engine = mounted.finish().unwrap();
    let mut bytes = vec![0; 4096];
    engine.read_at(Sector(0), &mut bytes).unwrap();
    assert!(engine.member_mut(MemberIndex(1)).is_some());
    assert_clean(&directory);
}

#[test]
fn dropped_in_the_middle_of_writing_everything_is_taken_down() {
    if !can_mount("dropped_in_the_middle_of_writing_everything_is_taken_down", &EXT4) {
        return;
    }
    let directory = TestDirectory::new();
    let mounted = mount(engine(Level::Raid5, 3, 32), &directory);
    let (at, stop) = (mounted.path(), AtomicBool::new(false));
    let begun = at.join("file-0");
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| write_until(&at, &stop));
        while !begun.exists() {
            std::thread::yield_now();
        }
        drop(mounted);
        // Its file is gone from the tree, or the device from under it.
        stop.store(true, Ordering::Relaxed);
        writer.join().unwrap();
    });
    // The writer may have made a file where the filesystem was mounted before.
    let _ = clean_mounts(directory.path());
    assert_eq!(traces(directory.path()), [""; 0]);
}

/// Not a test: the process that is killed, when it is run as such.
#[test]
fn a_process_to_be_killed() {
    let Some(directory) = std::env::var_os("RAIDLAB_TEST_MOUNT_IN") else { return };
    let engine = engine(Level::Raid1, 2, 64);
    let options = MountOptions::default();
    let mounted = MountedArray::new(engine, directory.as_ref(), Filesystem::Ext4, options).unwrap();
    let at = mounted.path();
    std::thread::scope(|scope| {
        for writer in 0..4 {
            let at = at.join(format!("writer-{writer}"));
            std::fs::create_dir(&at).unwrap();
            scope.spawn(move || {
                println!("mounted");
                write_until(&at, &AtomicBool::new(false))
            });
        }
    });
}

/// A process that has a filesystem mounted in `directory` and writes to it; killed.
fn kill_one(directory: &Path) {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "mounted::a_process_to_be_killed", "--nocapture"])
        .env("RAIDLAB_TEST_MOUNT_IN", directory)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let ready = lines.by_ref().map_while(Result::ok).filter(|line| line.contains("mounted"));
    assert_eq!(ready.take(4).count(), 4);
    child.kill().unwrap();
    // Threads that wait for the filesystem must not keep the process alive.
    child.wait().unwrap();
}

#[test]
fn what_a_killed_run_left_is_removed_and_nothing_else() {
    if !can_mount("what_a_killed_run_left_is_removed_and_nothing_else", &EXT4) {
        return;
    }
    let directory = TestDirectory::new();
    kill_one(directory.path());
    assert!(!traces(directory.path()).is_empty(), "it left something");
    // What is not raidlab's, or lives.
    let living = mount(engine(Level::Raid1, 2, 16), &directory);
    let files = write_files(&living.path());
    let strange = directory.path().join("raidlab-mount-1-0");
    std::fs::create_dir(&strange).unwrap();
    std::fs::write(strange.join("owner"), b"somebody else's\n").unwrap();
    std::fs::write(directory.path().join("file"), b"mine").unwrap();

    let cleaned = clean_leftovers(directory.path()).unwrap();
    assert_eq!(cleaned.removed.len(), 1, "{cleaned:?}");
    let mut kept: Vec<&PathBuf> = cleaned.kept.iter().map(|(path, _)| path).collect();
    kept.sort();
    let mut expected = [strange.clone(), living.path().parent().unwrap().to_path_buf()];
    expected.sort();
    assert_eq!(kept, expected.iter().collect::<Vec<_>>(), "{cleaned:?}");
    assert!(cleaned.kept.iter().any(|(_, why)| why.contains("still going on")));
    assert_eq!(std::fs::read(directory.path().join("file")).unwrap(), b"mine");
    assert!(strange.join("owner").exists());
    let dead = &cleaned.removed[0];
    assert!(!dead.exists() && traces(dead).is_empty());

    verify(living.finish().unwrap(), &files);
    std::fs::remove_dir_all(strange).unwrap();
    std::fs::remove_file(directory.path().join("file")).unwrap();
    assert_clean(&directory);
}

#[test]
fn what_others_mounted_in_a_leftover_stays() {
    if !can_mount("what_others_mounted_in_a_leftover_stays", &EXT4) {
        return;
    }
    let directory = TestDirectory::new();
    kill_one(directory.path());
    let left = std::fs::read_dir(directory.path()).unwrap().next().unwrap().unwrap().path();
    let on = left.join("files");
    run("mount", &["-t".as_ref(), "tmpfs".as_ref(), "somebody".as_ref(), on.as_os_str()]);
    std::fs::write(on.join("theirs"), b"kept").unwrap();
    let cleaned = clean_mounts(directory.path()).unwrap();
    assert!(cleaned.removed.is_empty(), "{cleaned:?}");
    assert!(cleaned.kept[0].1.contains("is not raidlab's"), "{cleaned:?}");
    let mut found = String::new();
    File::open(on.join("theirs")).unwrap().read_to_string(&mut found).unwrap();
    assert_eq!(found, "kept");
    // A process that is being started may still have a copy of what was open there.
    run("umount", &["--lazy".as_ref(), on.as_os_str()]);
    let cleaned = clean_mounts(directory.path()).unwrap();
    assert_eq!(cleaned.removed, [left], "{cleaned:?}");
    assert_clean(&directory);
}

/// What an ordinary user gets to hear, when it is run as such.
#[test]
fn an_ordinary_user() {
    let Some(directory) = std::env::var_os("RAIDLAB_TEST_REFUSED_IN") else { return };
    let options = MountOptions::default();
    let engine = engine(Level::Raid1, 2, 16);
    let refused = MountedArray::new(engine, directory.as_ref(), Filesystem::Ext4, options);
    let error = refused.err().unwrap();
    assert_eq!(error.kind(), EngineErrorKind::NotSupported);
    assert!(error.to_string().contains("needs root"), "{error}");
}

#[test]
fn only_root_may_mount_and_is_told_before_anything_is_changed() {
    use std::os::unix::fs::PermissionsExt;
    use std::os::unix::process::CommandExt;
    if !can_mount("only_root_may_mount_and_is_told_before_anything_is_changed", &[]) {
        return;
    }
    let directory = TestDirectory::new();
    let (program, place) = (directory.path().join("program"), directory.path().join("place"));
    // Where others can reach it. By another program: a file that any process still has open for writing cannot be run.
    run("cp", &[std::env::current_exe().unwrap().as_os_str(), program.as_os_str()]);
    std::fs::create_dir(&place).unwrap();
    std::fs::set_permissions(&place, std::fs::Permissions::from_mode(0o777)).unwrap();
    let ran = Command::new(&program)
        .args(["--exact", "mounted::an_ordinary_user"])
        .env("RAIDLAB_TEST_REFUSED_IN", &place)
        .current_dir("/")
        .gid(65534)
        .uid(65534)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&ran.stdout);
    assert!(ran.status.success() && said.contains("1 passed"), "{said}");
    assert_eq!(std::fs::read_dir(&place).unwrap().count(), 0);
}
