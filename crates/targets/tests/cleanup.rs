//! What is not raidlab's, where raidlab cleans up: mounts, other files under its names, forged markers.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::common::TestDirectory;
use crate::killed::leftover;
use crate::root::can_mount;
use raidlab_targets::{Cleaned, RunDirectory, clean_leftovers, clean_mounts};

fn tool(program: &str, arguments: &[&OsStr]) -> String {
    let output = Command::new(program).args(arguments).output().unwrap();
    assert!(output.status.success(), "{program} {arguments:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap().trim().to_string()
}

/// A bind mount; taken away at the end.
struct Bind(PathBuf);

impl Bind {
    fn new(what: &Path, on: &Path) -> Self {
        tool("mount", &["--bind".as_ref(), what.as_os_str(), on.as_os_str()]);
        Self(on.to_path_buf())
    }
}

impl Drop for Bind {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("--lazy").arg(&self.0).status();
    }
}

/// A loop device over a file; taken away at the end.
struct Loop {
    node: String,
    file: PathBuf,
}

impl Loop {
    fn over(file: &Path) -> Self {
        let node = tool("losetup", &["--find".as_ref(), "--show".as_ref(), file.as_os_str()]);
        Self { node, file: fs::canonicalize(file).unwrap() }
    }

    /// Once it is free, another test may have it for another file.
    fn is_attached(&self) -> bool {
        let name = self.node.strip_prefix("/dev/").unwrap();
        let backing = Path::new("/sys/block").join(name).join("loop/backing_file");
        fs::read(backing).is_ok_and(|path| path.starts_with(self.file.as_os_str().as_bytes()))
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        if self.is_attached() {
            let _ = Command::new("losetup").arg("--detach").arg(&self.node).status();
        }
    }
}

/// A directory of somebody's with files in it, beside what is cleaned.
fn yours(directory: &TestDirectory) -> PathBuf {
    let yours = directory.path().join("yours");
    fs::create_dir_all(yours.join("deep")).unwrap();
    for name in ["member-0.img", "owner", "kept", "deep/kept"] {
        fs::write(yours.join(name), "precious").unwrap();
    }
    yours
}

fn assert_untouched(yours: &Path) {
    for name in ["member-0.img", "owner", "kept", "deep/kept"] {
        assert_eq!(fs::read(yours.join(name)).unwrap(), b"precious", "{name}");
    }
}

fn why(cleaned: &Cleaned, path: &Path) -> String {
    let found = cleaned.kept.iter().find(|(kept, _)| kept == path);
    found.unwrap_or_else(|| panic!("{} in {cleaned:?}", path.display())).1.clone()
}

/// Cleans up while `what` is mounted `below` a left-over tree or on it, and once more without the mount.
fn clean_around_a_mount(below: &str, what: &str) {
    let directory = TestDirectory::new();
    let yours = yours(&directory);
    let left = leftover(directory.path(), "raidlab-run-1-0", true);
    fs::create_dir_all(left.join("files/deep")).unwrap();
    fs::write(left.join("files/a"), "ours").unwrap();
    fs::write(left.join("files/deep/file"), "ours").unwrap();
    let bind = Bind::new(&yours.join(what), &left.join(below));
    let cleaned = clean_leftovers(directory.path()).unwrap();
    assert_untouched(&yours);
    let reason = why(&cleaned, &left);
    assert!(reason.contains("mounted"), "{below:?}: {reason}");
    drop(bind);
    if below.starts_with("files/") {
        assert!(!left.join("files/a").exists(), "what is raidlab's went all the same");
    }
    assert_eq!(clean_leftovers(directory.path()).unwrap().removed, [left]);
    assert_untouched(&yours);
}

#[test]
fn what_is_mounted_below_a_leftover_stays() {
    if !can_mount("what_is_mounted_below_a_leftover_stays", &["mount", "umount"]) {
        return;
    }
    clean_around_a_mount("files/deep", "");
    clean_around_a_mount("files/deep", "deep");
    clean_around_a_mount("files", "");
    clean_around_a_mount("files/deep/file", "kept");
}

#[test]
fn a_leftover_that_is_a_mount_itself_stays() {
    if !can_mount("a_leftover_that_is_a_mount_itself_stays", &["mount", "umount"]) {
        return;
    }
    let directory = TestDirectory::new();
    let elsewhere = TestDirectory::new();
    let theirs = leftover(elsewhere.path(), "raidlab-run-1-0", false);
    let on = directory.path().join("raidlab-run-1-0");
    fs::create_dir(&on).unwrap();
    let bind = Bind::new(&theirs, &on);
    let cleaned = clean_leftovers(directory.path()).unwrap();
    assert!(why(&cleaned, &on).contains("mounted"), "{cleaned:?}");
    assert!(theirs.join("member-0.img").exists() && theirs.join("owner").exists());
    drop(bind);
}

/// A run that lives does not remove what was mounted in its directory when it ends.
#[test]
fn what_is_mounted_below_a_run_that_ends_stays() {
    if !can_mount("what_is_mounted_below_a_run_that_ends_stays", &["mount", "umount"]) {
        return;
    }
    let directory = TestDirectory::new();
    let yours = yours(&directory);
    let run = RunDirectory::create_tree(directory.path()).unwrap();
    let path = run.path().to_path_buf();
    fs::create_dir(path.join("files/deep")).unwrap();
    let bind = Bind::new(&yours, &path.join("files/deep"));
    drop(run);
    assert_untouched(&yours);
    drop(bind);
    assert_eq!(clean_leftovers(directory.path()).unwrap().removed, [path]);
}

#[test]
fn only_the_files_that_the_run_made_go() {
    let directory = TestDirectory::new();
    let yours = yours(&directory);
    let swapped = leftover(directory.path(), "raidlab-run-1-0", false);
    fs::rename(yours.join("kept"), swapped.join("member-0.img")).unwrap();
    let linked = leftover(directory.path(), "raidlab-run-1-1", false);
    fs::remove_file(linked.join("member-1.img")).unwrap();
    fs::hard_link(yours.join("owner"), linked.join("member-1.img")).unwrap();
    let copied = directory.path().join("raidlab-run-1-2");
    tool("cp", &["-a".as_ref(), linked.as_os_str(), copied.as_os_str()]);
    let cleaned = clean_leftovers(directory.path()).unwrap();
    for (left, name) in [(&swapped, "member-0.img"), (&linked, "member-1.img")] {
        assert_eq!(fs::read(left.join(name)).unwrap(), b"precious");
        let reason = why(&cleaned, left);
        assert!(reason.contains(name) && reason.contains("not the file"), "{reason}");
    }
    assert!(!swapped.join("member-1.img").exists() && !linked.join("member-0.img").exists());
    assert!(why(&cleaned, &copied).contains("copy"), "{cleaned:?}");
    assert_eq!(fs::read_dir(&copied).unwrap().count(), 5);
}

/// Changes the line of a marker that ends with this name.
fn change_line(left: &Path, name: &str, change: impl Fn(&str) -> String) {
    let marker = left.join("owner");
    let text = fs::read_to_string(&marker).unwrap();
    let end = format!(" {name}");
    assert_eq!(text.lines().filter(|line| line.ends_with(&end)).count(), 2, "planned, and made");
    let is_meant = |line: &str| line.ends_with(&end) && !line.starts_with("new ");
    let lines = text.lines().map(|l| if is_meant(l) { change(l) } else { l.to_string() });
    let changed: String = lines.map(|line| line + "\n").collect();
    assert_ne!(changed, text);
    // In place: the marker knows itself.
    fs::write(&marker, changed).unwrap();
}

/// A file is known by its inode and by the filesystem that this is of, a tree as well.
#[test]
fn what_was_put_in_the_place_of_a_file_or_tree_stays() {
    let directory = TestDirectory::new();
    let elsewhere = leftover(directory.path(), "raidlab-run-1-0", false);
    change_line(&elsewhere, "member-1.img", |line| {
        let (device, rest) = line.split_once(' ').unwrap();
        let (major, minor) = device.split_once(':').unwrap();
        format!("{major}:{} {rest}", minor.parse::<u32>().unwrap() + 1)
    });
    let tree = leftover(directory.path(), "raidlab-run-1-1", true);
    fs::rename(tree.join("files"), directory.path().join("away")).unwrap();
    let yours = yours(&directory);
    fs::rename(&yours, tree.join("files")).unwrap();
    let cleaned = clean_leftovers(directory.path()).unwrap();
    assert!(why(&cleaned, &elsewhere).contains("not the file"), "{cleaned:?}");
    assert!(elsewhere.join("member-1.img").exists() && !elsewhere.join("member-0.img").exists());
    assert!(why(&cleaned, &tree).contains("not the directory"), "{cleaned:?}");
    assert_untouched(&tree.join("files"));
}

/// A run that was killed between making a file and noting which it is leaves an empty one.
#[test]
fn a_file_that_was_planned_only_goes_when_it_is_empty() {
    let directory = TestDirectory::new();
    let planned = |name: &str, bytes: &[u8]| {
        let left = leftover(directory.path(), name, false);
        change_line(&left, "member-1.img", |_| String::new());
        fs::write(left.join("member-1.img"), bytes).unwrap();
        left
    };
    let (empty, filled) =
        (planned("raidlab-run-1-0", b""), planned("raidlab-run-1-1", b"precious"));
    let cleaned = clean_leftovers(directory.path()).unwrap();
    assert_eq!(cleaned.removed, [empty], "{cleaned:?}");
    assert_eq!(fs::read(filled.join("member-1.img")).unwrap(), b"precious");
    assert!(why(&cleaned, &filled).contains("not the file"), "{cleaned:?}");
}

#[test]
fn a_file_that_is_gone_already_does_not_end_the_cleanup() {
    let directory = TestDirectory::new();
    let run = RunDirectory::create(directory.path(), 3, 4096).unwrap();
    let path = run.path().to_path_buf();
    fs::remove_file(path.join("member-0.img")).unwrap();
    drop(run);
    assert!(!path.exists(), "{:?}", fs::read_dir(&path).unwrap().flatten().collect::<Vec<_>>());
    // One that cannot be removed keeps itself and the marker only.
    let left = leftover(directory.path(), "raidlab-run-1-0", false);
    fs::remove_file(left.join("member-0.img")).unwrap();
    fs::create_dir(left.join("member-0.img")).unwrap();
    let cleaned = clean_leftovers(directory.path()).unwrap();
    assert!(why(&cleaned, &left).contains("member-0.img"), "{cleaned:?}");
    let mut names: Vec<_> = fs::read_dir(&left).unwrap().flatten().map(|e| e.file_name()).collect();
    names.sort();
    assert_eq!(names, ["member-0.img", "owner"]);
}

/// A marker as raidlab writes it, in the directory of a mount, naming a run.
fn forge(directory: &Path, run: &Path) -> PathBuf {
    let forged = directory.join("raidlab-mount-1-0");
    fs::create_dir_all(forged.join("export")).unwrap();
    fs::create_dir_all(forged.join("files")).unwrap();
    let run = run.file_name().unwrap().to_str().unwrap();
    let magic = "raidlab mount directory, format 1; what is mounted in it belongs to raidlab";
    fs::write(forged.join("owner"), format!("{magic}\n{run}\n")).unwrap();
    forged
}

#[test]
fn a_mount_marker_takes_nothing_from_a_run_that_lives() {
    let name = "a_mount_marker_takes_nothing_from_a_run_that_lives";
    if !can_mount(name, &["losetup"]) {
        return;
    }
    let directory = TestDirectory::new();
    let run = RunDirectory::create(directory.path(), 1, 1 << 20).unwrap();
    let device = Loop::over(&run.member_path(0).unwrap());
    let forged = forge(directory.path(), run.path());
    let cleaned = clean_mounts(directory.path()).unwrap();
    assert!(device.is_attached(), "{cleaned:?}");
    assert!(why(&cleaned, &forged).contains("still going on"), "{cleaned:?}");
    // With the run over, it is a leftover like any other.
    drop(device);
    drop(run);
    assert_eq!(clean_mounts(directory.path()).unwrap().removed, [forged]);
}

#[test]
fn a_mount_marker_takes_down_only_devices_of_files_that_a_dead_run_made() {
    let name = "a_mount_marker_takes_down_only_devices_of_files_that_a_dead_run_made";
    if !can_mount(name, &["losetup", "mount", "umount"]) {
        return;
    }
    let directory = TestDirectory::new();
    let yours = yours(&directory);
    fs::File::options().write(true).open(yours.join("kept")).unwrap().set_len(1 << 20).unwrap();
    let left = leftover(directory.path(), "raidlab-run-1-0", false);
    fs::hard_link(yours.join("kept"), left.join("member-9.img")).unwrap();
    let forged = forge(directory.path(), &left);
    let theirs = Loop::over(&left.join("member-9.img"));
    let bind = Bind::new(&yours, &forged.join("export"));
    let exported = Loop::over(&forged.join("export/kept"));
    let ours = Loop::over(&left.join("member-0.img"));
    let cleaned = clean_mounts(directory.path()).unwrap();
    assert!(theirs.is_attached() && exported.is_attached(), "{cleaned:?}");
    assert!(why(&cleaned, &forged).contains("mounted"), "{cleaned:?}");
    drop(exported);
    drop(bind);
    assert_eq!(clean_mounts(directory.path()).unwrap().removed, [forged]);
    assert!(theirs.is_attached() && !ours.is_attached());
    drop(theirs);
    fs::remove_file(left.join("member-9.img")).unwrap();
    let cleaned = clean_leftovers(directory.path()).unwrap();
    assert_eq!(cleaned.removed, [left], "{cleaned:?}");
}
