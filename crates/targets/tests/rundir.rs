//! Run directories: made, removed, and left alone when they are not ours or still in use.

use std::fs;
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use crate::common::TestDirectory;
use crate::killed;
use raidlab_engine::EngineErrorKind;
use raidlab_targets::{Extra, RunDirectory, clean_leftovers};

/// What a killed run with member files left.
fn leftover(directory: &TestDirectory, name: &str) -> PathBuf {
    killed::leftover(directory.path(), name, false)
}

/// What is in the directory of a run that was killed.
const MADE: [&str; 5] = ["journal.img", "member-0.img", "member-1.img", "owner", "spare.img"];

fn names(path: &Path) -> Vec<String> {
    let entries = fs::read_dir(path).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn every_byte_of_members_is_written_throughout_and_of_nothing_else() {
    let directory = TestDirectory::new();
    let bytes = (2 << 20) + 8192;
    let extra = Extra { spare: Some(1 << 20), journal: None };
    let run = RunDirectory::create_with(directory.path(), 2, bytes, extra).unwrap();
    let cancelled = run.write_throughout(&AtomicBool::new(true)).unwrap_err();
    assert_eq!(cancelled.kind(), EngineErrorKind::Cancelled);
    run.write_throughout(&AtomicBool::new(false)).unwrap();
    assert_eq!(run.members(), 2);
    for n in 0..2 {
        let written = fs::read(run.member_path(n).unwrap()).unwrap();
        assert_eq!(written.len() as u64, bytes);
        assert!(written.chunks(4096).all(|block| block.iter().any(|byte| *byte != 0)));
    }
    let spare = fs::read(run.path().join("spare.img")).unwrap();
    assert!(spare.iter().all(|byte| *byte == 0));
}

#[test]
fn a_run_makes_its_files_and_removes_them() {
    let directory = TestDirectory::new();
    fs::write(directory.path().join("yours"), "kept").unwrap();
    let run = RunDirectory::create(directory.path(), 3, 1 << 20).unwrap();
    let second = RunDirectory::create(directory.path(), 1, 4096).unwrap();
    assert_ne!(run.path(), second.path());
    assert_eq!(names(run.path()), ["member-0.img", "member-1.img", "member-2.img", "owner"]);
    for n in 0..3 {
        let bytes = fs::read(run.member_path(n).unwrap()).unwrap();
        assert_eq!(bytes, vec![0; 1 << 20]);
        assert_eq!(run.open_member(n).unwrap().metadata().unwrap().len(), 1 << 20);
    }
    assert!(run.member_path(3).is_none() && run.open_member(3).is_err());
    drop((run, second));
    assert_eq!(names(directory.path()), ["yours"]);
}

/// As much of the drive is theirs as the filesystem gives to who asks for it.
#[test]
fn the_room_of_files_is_reserved() {
    const BYTES: u64 = 1 << 20;
    let directory = TestDirectory::new();
    let asked = fs::File::create_new(directory.path().join("asked")).unwrap();
    // Where the filesystem cannot, nothing is reserved for anybody.
    // SAFETY: the descriptor is open.
    let _ = unsafe { libc::fallocate(asked.as_raw_fd(), 0, 0, BYTES as i64) };
    let extra = Extra { spare: Some(BYTES), journal: Some(BYTES) };
    let run = RunDirectory::create_with(directory.path(), 2, BYTES, extra).unwrap();
    let blocks = asked.metadata().unwrap().blocks();
    for name in MADE.into_iter().filter(|name| *name != "owner") {
        let made = fs::metadata(run.path().join(name)).unwrap();
        assert_eq!(made.blocks(), blocks, "{name}");
    }
}

#[test]
fn a_foreign_file_keeps_the_directory() {
    let directory = TestDirectory::new();
    let run = RunDirectory::create(directory.path(), 1, 4096).unwrap();
    let path = run.path().to_path_buf();
    fs::write(path.join("yours"), "kept").unwrap();
    drop(run);
    assert_eq!(names(&path), ["yours"]);
}

#[test]
fn no_room_is_said_before_anything_is_made() {
    let directory = TestDirectory::new();
    let error = RunDirectory::create(directory.path(), 4, 1 << 60).unwrap_err();
    assert_eq!(error.kind(), EngineErrorKind::NoRoom);
    let text = error.to_string();
    assert!(text.contains("4 members of 1048576TiB need 4194304TiB"), "{text}");
    assert!(text.contains("bytes free"), "{text}");
    assert_eq!(names(directory.path()), [""; 0]);
    // Also for what goes with the members.
    let (much, little) = (Some(1 << 60), Some(4096));
    for (spare, journal) in [(much, None), (None, much), (much, little), (little, much)] {
        let extra = Extra { spare, journal };
        let error = RunDirectory::create_with(directory.path(), 1, 4096, extra).unwrap_err();
        assert_eq!(error.kind(), EngineErrorKind::NoRoom, "{error}");
        assert!(error.to_string().contains("1 members of 4KiB and what goes with them"), "{error}");
    }
    assert_eq!(names(directory.path()), [""; 0]);
    let error = RunDirectory::create(&directory.path().join("absent"), 1, 4096).unwrap_err();
    assert_eq!(error.kind(), EngineErrorKind::Io);
}

#[test]
fn leftovers_of_killed_runs_are_removed() {
    let directory = TestDirectory::new();
    let left = leftover(&directory, "raidlab-run-1-0");
    let half = leftover(&directory, "raidlab-run-1-1");
    fs::remove_file(half.join("member-1.img")).unwrap();
    fs::write(directory.path().join("raidlab-runs.txt"), "yours").unwrap();
    let cleaned = clean_leftovers(directory.path()).unwrap();
    assert_eq!(cleaned.removed, [left, half]);
    assert_eq!(cleaned.kept, []);
    assert_eq!(names(directory.path()), ["raidlab-runs.txt"]);
}

#[test]
fn a_live_run_is_left_alone() {
    let directory = TestDirectory::new();
    let run = RunDirectory::create(directory.path(), 2, 4096).unwrap();
    let cleaned = clean_leftovers(directory.path()).unwrap();
    assert_eq!(cleaned.removed, [""; 0].map(PathBuf::from));
    assert!(cleaned.kept[0].1.contains("still going on"), "{cleaned:?}");
    assert_eq!(names(run.path()).len(), 3);

    // The lock decides, not the number of the process in the name.
    let left = leftover(&directory, "raidlab-run-1-0");
    let marker = fs::File::open(left.join("owner")).unwrap();
    // SAFETY: the descriptor is open.
    assert_eq!(unsafe { libc::flock(marker.as_raw_fd(), libc::LOCK_EX) }, 0);
    assert_eq!(clean_leftovers(directory.path()).unwrap().removed, [""; 0].map(PathBuf::from));
    // Not only dropped: a process that is being started may have a copy of the descriptor.
    // SAFETY: the descriptor is open.
    assert_eq!(unsafe { libc::flock(marker.as_raw_fd(), libc::LOCK_UN) }, 0);
    assert_eq!(clean_leftovers(directory.path()).unwrap().removed, [left]);
}

#[test]
fn a_spare_and_a_journal_are_made_and_removed_too() {
    let directory = TestDirectory::new();
    let extra = Extra { spare: Some(8192), journal: Some(12288) };
    let run = RunDirectory::create_with(directory.path(), 2, 4096, extra).unwrap();
    assert_eq!(names(run.path()), MADE);
    assert_eq!(run.open_spare().unwrap().0.metadata().unwrap().len(), 8192);
    assert_eq!(run.open_journal().unwrap().0.metadata().unwrap().len(), 12288);
    assert!(run.open_member(2).is_err(), "the spare is no member");
    assert_eq!(run.member_path(2), None);
    // Killed, it is cleaned up like any other.
    let left = leftover(&directory, "raidlab-run-3-0");
    assert_eq!(names(&left), MADE);
    assert_eq!(clean_leftovers(directory.path()).unwrap().removed, [left]);
    drop(run);
    assert_eq!(names(directory.path()), [""; 0]);
    let run = RunDirectory::create(directory.path(), 1, 4096).unwrap();
    assert!(run.open_spare().is_err() && run.open_journal().is_err());
}

#[test]
fn whatever_is_not_ours_stays() {
    let directory = TestDirectory::new();
    let outside = directory.path().join("outside");
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("member-0.img"), "precious").unwrap();
    fs::write(outside.join("owner"), "precious").unwrap();

    // A link where the directory should be.
    std::os::unix::fs::symlink(&outside, directory.path().join("raidlab-run-2-0")).unwrap();
    // No marker.
    let bare = directory.path().join("raidlab-run-2-1");
    fs::create_dir(&bare).unwrap();
    fs::write(bare.join("member-0.img"), "precious").unwrap();
    // A marker of somebody else.
    let other = leftover(&directory, "raidlab-run-2-2");
    fs::write(other.join("owner"), "mine\nmember-0.img\n").unwrap();
    // A marker that names what raidlab never makes.
    let bent = leftover(&directory, "raidlab-run-2-3");
    let text = fs::read_to_string(bent.join("owner")).unwrap();
    fs::write(bent.join("owner"), format!("{text}../outside/owner\n")).unwrap();
    // A link where a member should be.
    let linked = leftover(&directory, "raidlab-run-2-4");
    fs::remove_file(linked.join("member-0.img")).unwrap();
    std::os::unix::fs::symlink(outside.join("member-0.img"), linked.join("member-0.img")).unwrap();
    // A file beside the members.
    let joined = leftover(&directory, "raidlab-run-2-5");
    fs::write(joined.join("notes"), "precious").unwrap();
    // A link where the marker should be, and a plain file where the directory should be.
    let marked = leftover(&directory, "raidlab-run-2-6");
    fs::rename(marked.join("owner"), outside.join("real-owner")).unwrap();
    std::os::unix::fs::symlink(outside.join("real-owner"), marked.join("owner")).unwrap();
    fs::write(directory.path().join("raidlab-run-2-7"), "precious").unwrap();

    let cleaned = clean_leftovers(directory.path()).unwrap();
    assert_eq!(cleaned.removed, [""; 0].map(PathBuf::from));
    assert_eq!(cleaned.kept.len(), 8);
    assert_eq!(names(&outside), ["member-0.img", "owner", "real-owner"]);
    for path in [&other, &bent, &marked] {
        assert_eq!(names(path), MADE, "{}", path.display());
    }
    assert_eq!(names(&bare), ["member-0.img"]);
    assert!(fs::symlink_metadata(linked.join("member-0.img")).unwrap().is_symlink());
    // Only the foreign file is left, and the marker, so that the next start knows the directory.
    assert_eq!(names(&joined), ["notes", "owner"]);
    fs::remove_file(joined.join("notes")).unwrap();
    assert_eq!(clean_leftovers(directory.path()).unwrap().removed, [joined]);
}

/// A tree with a file below a directory, and links to what is not the run's.
fn plant(tree: &Path, yours: &Path, files: u32) {
    fs::create_dir_all(tree.join("deep/er")).unwrap();
    (0..files).for_each(|n| fs::write(tree.join(format!("deep/{n}")), "x").unwrap());
    fs::write(tree.join("deep/er/file"), "x").unwrap();
    std::os::unix::fs::symlink(yours, tree.join("to-a-directory")).unwrap();
    std::os::unix::fs::symlink(yours.join("kept"), tree.join("deep/to-a-file")).unwrap();
    fs::hard_link(yours.join("kept"), tree.join("same-file")).unwrap();
}

#[test]
fn a_tree_goes_with_all_in_it_and_nothing_else() {
    let directory = TestDirectory::new();
    let yours = directory.path().join("yours");
    fs::create_dir(&yours).unwrap();
    fs::write(yours.join("kept"), "kept").unwrap();
    let run = RunDirectory::create_tree(directory.path()).unwrap();
    let tree = run.tree_path().unwrap();
    assert!(run.open_member(0).is_err() && run.member_path(0).is_none());
    plant(&tree, &yours, 3);

    let killed = |name| killed::leftover(directory.path(), name, true);
    let left = killed("raidlab-run-1-0");
    // More than are looked at in one go.
    plant(&left.join("files"), &yours, 4200);
    let gone = killed("raidlab-run-1-1");
    fs::remove_dir(gone.join("files")).unwrap();
    let linked = killed("raidlab-run-1-2");
    fs::remove_dir(linked.join("files")).unwrap();
    std::os::unix::fs::symlink(&yours, linked.join("files")).unwrap();

    let cleaned = clean_leftovers(directory.path()).unwrap();
    assert_eq!(cleaned.removed, [left, gone]);
    let kept: Vec<&PathBuf> = cleaned.kept.iter().map(|(path, _)| path).collect();
    assert_eq!(kept.len(), 2, "{:?}", cleaned.kept);
    assert!(kept.contains(&&linked) && kept.contains(&&run.path().to_path_buf()));
    assert!(tree.join("deep/er/file").exists(), "the run that lives is left alone");
    fs::remove_dir_all(linked).unwrap();
    drop(run);
    assert_eq!(names(directory.path()), ["yours"]);
    assert_eq!(fs::read(yours.join("kept")).unwrap(), b"kept");
}
