//! Members are claimed: whatever names the same bytes is refused, by the name of both, until the member is gone.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use crate::common::TestDirectory;
use crate::root::{can_mount, skip, tool};
use raidlab_core::{Layout, Level, MemberIndex, Sector, Sectors};
use raidlab_engine::{
    Engine, EngineConfig, EngineError, EngineErrorKind, FileMember, FileOptions, Member, ReadHold,
};

const BYTES: u64 = 8 << 20;

fn file(directory: &TestDirectory, name: &str) -> PathBuf {
    let path = directory.path().join(name);
    File::create(&path).and_then(|made| made.set_len(BYTES)).unwrap();
    path
}

fn open(path: &Path) -> Result<FileMember, EngineError> {
    FileMember::open(path, FileOptions::default())
}

fn part(path: &Path, offset: u64, sectors: u64) -> Result<FileMember, EngineError> {
    let (data_offset, sectors) = (Sectors(offset), Some(Sectors(sectors)));
    FileMember::open(path, FileOptions { data_offset, sectors, ..FileOptions::default() })
}

/// Opening is refused, and the error names what was opened and what uses it.
#[track_caller]
fn refused(opened: Result<FileMember, EngineError>, names: &[&str]) {
    let error = opened.expect_err("its bytes are in use");
    assert_eq!(error.kind(), EngineErrorKind::Busy, "{error}");
    for name in names {
        assert!(error.to_string().contains(name), "`{name}` is not in {error}");
    }
}

/// A loop device; taken away at the end.
struct Loop(PathBuf);

impl Loop {
    fn over(file: &Path, more: &[&str]) -> Self {
        let file = file.display().to_string();
        let arguments = [&["--find", "--show"], more, &[&file]].concat();
        Self(tool("losetup", &arguments).unwrap().into())
    }

    /// A loop device over a part of a file, in bytes.
    fn part(file: &Path, offset: u64, len: u64) -> Self {
        let (offset, len) = (offset.to_string(), len.to_string());
        Self::over(file, &["--offset", &offset, "--sizelimit", &len])
    }

    fn name(&self) -> &str {
        self.0.to_str().unwrap()
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        let gone = tool("losetup", &["--detach", self.name()]);
        if !std::thread::panicking() {
            gone.expect("nothing holds the device any more");
        }
    }
}

/// A mount; taken away at the end.
struct Mounted(PathBuf);

impl Mounted {
    fn new(options: &[&str], what: &Path, on: &Path) -> Self {
        let (what, at) = (what.display().to_string(), on.display().to_string());
        tool("mount", &[options, &[&what, &at]].concat()).unwrap();
        Self(on.to_path_buf())
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = tool("umount", &[&self.0.display().to_string()]);
    }
}

#[test]
fn one_file_is_one_member_by_whatever_name() {
    let directory = TestDirectory::new();
    let path = file(&directory, "one");
    let (link, hard) = (directory.path().join("link"), directory.path().join("hard"));
    std::os::unix::fs::symlink(&path, &link).unwrap();
    fs::hard_link(&path, &hard).unwrap();
    let member = open(&path).unwrap();
    let own = path.to_str().unwrap();
    refused(open(&path), &[own, "a member already"]);
    refused(open(&link), &[own, link.to_str().unwrap()]);
    refused(open(&hard), &[own, hard.to_str().unwrap()]);
    // An open file that was handed on, which no lock tells from the first.
    let handed = File::options().read(true).write(true).open(&path).unwrap();
    let again = handed.try_clone().unwrap();
    refused(FileMember::new(handed, &path, FileOptions::default()), &[own]);
    drop(member);
    let member = FileMember::new(again.try_clone().unwrap(), &path, FileOptions::default());
    refused(FileMember::new(again, &path, FileOptions::default()), &[own]);
    drop(member);
    // Parts that share nothing are members of their own.
    let first = part(&hard, 0, 4096).unwrap();
    refused(part(&path, 4095, 8), &[own, hard.to_str().unwrap()]);
    let second = part(&path, 4096, 4096).unwrap();
    refused(open(&path), &[own]);
    drop((first, second));
    open(&path).unwrap();
}

#[test]
fn a_file_that_is_mounted_elsewhere_is_one_member() {
    if !can_mount("a_file_that_is_mounted_elsewhere_is_one_member", &["mount", "umount"]) {
        return;
    }
    let directory = TestDirectory::new();
    let path = file(&directory, "one");
    let (on, over) = (directory.path().join("on"), file(&directory, "over"));
    fs::create_dir(&on).unwrap();
    let whole = Mounted::new(&["--bind"], directory.path(), &on);
    let single = Mounted::new(&["--bind"], &path, &over);
    let member = open(&path).unwrap();
    refused(open(&on.join("one")), &[path.to_str().unwrap(), on.to_str().unwrap()]);
    refused(open(&over), &[path.to_str().unwrap(), over.to_str().unwrap()]);
    drop((member, whole, single));
}

#[test]
fn an_engine_gives_its_files_to_no_other_and_takes_none_in_use() {
    let directory = TestDirectory::new();
    let paths = [file(&directory, "one"), file(&directory, "two"), file(&directory, "other")];
    let member = |path: &Path| Ok::<_, EngineError>(Member::File(Box::new(open(path)?)));
    let config = EngineConfig::new(Layout::new(Level::Raid1, 2));
    let members = vec![member(&paths[0]).unwrap(), member(&paths[1]).unwrap()];
    let mut engine = Engine::new(&config, members).unwrap();
    for path in &paths[..2] {
        refused(open(path), &[path.to_str().unwrap()]);
    }
    let other = EngineConfig::new(Layout::new(Level::Linear, 1));
    let second = Engine::new(&other, vec![member(&paths[2]).unwrap()]).unwrap();
    engine.fail(MemberIndex(1)).unwrap();
    // It is added by what was opened, and that cannot be.
    assert_eq!(member(&paths[2]).unwrap_err().kind(), EngineErrorKind::Busy);
    assert_eq!(member(&paths[0]).unwrap_err().kind(), EngineErrorKind::Busy);
    drop(second);
    engine.add(MemberIndex(1), member(&paths[2]).unwrap()).unwrap();
    engine.write_at(Sector(0), &[3; 4096]).unwrap();
    refused(open(&paths[2]), &[paths[2].to_str().unwrap()]);
    // A device out of service is the engine's until it is taken out.
    let error = engine.take_out(MemberIndex(0)).unwrap_err();
    assert_eq!(error.kind(), EngineErrorKind::Refused, "{error}");
    engine.fail(MemberIndex(1)).unwrap();
    refused(open(&paths[2]), &[paths[2].to_str().unwrap()]);
    drop(engine.take_out(MemberIndex(1)).unwrap());
    engine.add(MemberIndex(1), member(&paths[2]).unwrap()).unwrap();
    engine.finish_background(&std::sync::atomic::AtomicBool::new(false)).unwrap();
    drop(engine);
    paths.iter().for_each(|path| drop(open(path).unwrap()));
}

#[test]
fn loop_devices_over_one_file_are_one_member() {
    if !can_mount("loop_devices_over_one_file_are_one_member", &["losetup"]) {
        return;
    }
    let directory = TestDirectory::new();
    let path = file(&directory, "one");
    let (one, two) = (Loop::over(&path, &[]), Loop::over(&path, &[]));
    let member = open(&one.0).unwrap();
    refused(open(&two.0), &[one.name(), two.name()]);
    refused(open(&path), &[one.name(), path.to_str().unwrap()]);
    refused(open(&one.0), &[one.name()]);
    drop(member);
    let member = open(&path).unwrap();
    refused(open(&one.0), &[one.name(), path.to_str().unwrap()]);
    drop(member);
    // A loop device over a loop device.
    let above = Loop::part(&one.0, 1 << 20, 2 << 20);
    let member = open(&above.0).unwrap();
    refused(open(&two.0), &[above.name(), two.name()]);
    refused(open(&path), &[above.name(), path.to_str().unwrap()]);
    drop(member);
}

#[test]
fn parts_of_one_file_are_members_when_they_share_nothing() {
    if !can_mount("parts_of_one_file_are_members_when_they_share_nothing", &["losetup"]) {
        return;
    }
    let directory = TestDirectory::new();
    let path = file(&directory, "one");
    let [first, second] = [0, 4].map(|at| Loop::part(&path, at << 20, 4 << 20));
    let across = Loop::part(&path, 3 << 20, 2 << 20);
    let members = [open(&first.0).unwrap(), open(&second.0).unwrap()];
    refused(open(&across.0), &[first.name(), across.name()]);
    drop(members);
    let member = open(&across.0).unwrap();
    refused(open(&first.0), &[first.name(), across.name()]);
    refused(open(&second.0), &[second.name(), across.name()]);
    drop(member);
}

#[test]
fn partitions_are_members_of_their_own_and_the_disk_is_all_of_them() {
    let name = "partitions_are_members_of_their_own_and_the_disk_is_all_of_them";
    if !can_mount(name, &["losetup", "addpart"]) {
        return;
    }
    let directory = TestDirectory::new();
    let path = file(&directory, "disk");
    let disk = Loop::over(&path, &["--partscan"]);
    // Of 2 MiB each, at 1 and 4 MiB: told to the kernel, which may know no kind of table.
    for (number, start) in [("1", "2048"), ("2", "8192")] {
        tool("addpart", &[disk.name(), number, start, "4096"]).unwrap();
    }
    let parts = [1, 2].map(|number| PathBuf::from(format!("{}p{number}", disk.name())));
    if !parts.iter().all(|part| part.exists()) {
        return skip(name, "loop devices show no partitions here");
    }
    let members = [open(&parts[0]).unwrap(), open(&parts[1]).unwrap()];
    refused(open(&disk.0), &[disk.name(), parts[0].to_str().unwrap()]);
    refused(open(&parts[1]), &[parts[1].to_str().unwrap()]);
    drop(members);
    let inside = Loop::part(&path, 5 << 20, 2 << 20);
    let member = open(&inside.0).unwrap();
    refused(open(&parts[1]), &[inside.name(), parts[1].to_str().unwrap()]);
    drop(member);
    let member = open(&disk.0).unwrap();
    refused(open(&parts[0]), &[disk.name(), parts[0].to_str().unwrap()]);
    drop(member);
}

#[test]
fn what_is_mounted_from_a_file_or_below_a_device_is_in_use() {
    let name = "what_is_mounted_from_a_file_or_below_a_device_is_in_use";
    if !can_mount(name, &["losetup", "mount", "umount", "mkfs.ext4"]) {
        return;
    }
    let directory = TestDirectory::new();
    let path = file(&directory, "image");
    tool("mkfs.ext4", &["-q", path.to_str().unwrap()]).unwrap();
    let on = directory.path().join("on");
    fs::create_dir(&on).unwrap();
    let device = Loop::over(&path, &[]);
    let another = Loop::over(&path, &[]);
    let above = Loop::part(&device.0, 1 << 20, 1 << 20);
    let mounted = Mounted::new(&[], &device.0, &on);
    refused(open(&path), &[path.to_str().unwrap(), device.name()]);
    refused(open(&device.0), &[device.name()]);
    refused(open(&another.0), &[another.name(), device.name()]);
    refused(open(&above.0), &[above.name(), device.name()]);
    drop(mounted);
    drop(open(&path).unwrap());
}

/// Not a test: another process with a member, when it is run as such.
#[test]
fn another_process() {
    let Some(path) = std::env::var_os("RAIDLAB_TEST_CLAIM") else { return };
    let part = std::env::var_os("RAIDLAB_TEST_CLAIM_HALF").is_some();
    let path = Path::new(&path);
    let _member = if part { part_of(path) } else { open(path).unwrap() };
    println!("claimed");
    let _ = std::io::stdin().read(&mut [0]);
}

fn part_of(path: &Path) -> FileMember {
    part(path, 0, BYTES / 1024).unwrap()
}

/// Runs until it is dropped.
struct Other(Child);

impl Other {
    fn with(path: &Path, half: bool) -> Self {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command
            .args(["--exact", "claims::another_process", "--nocapture"])
            .env("RAIDLAB_TEST_CLAIM", path);
        if half {
            command.env("RAIDLAB_TEST_CLAIM_HALF", "1");
        }
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
        assert!(lines.any(|line| line.contains("claimed")), "the other process has it");
        Self(child)
    }

    fn name(&self) -> String {
        format!("process {}", self.0.id())
    }
}

impl Drop for Other {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_second_process_is_refused_and_named() {
    let directory = TestDirectory::new();
    let path = file(&directory, "one");
    let other = Other::with(&path, false);
    refused(open(&path), &[path.to_str().unwrap(), &other.name()]);
    drop(other);
    let other = Other::with(&path, true);
    refused(open(&path), &[path.to_str().unwrap(), &other.name()]);
    let rest = part(&path, BYTES / 1024, BYTES / 1024).unwrap();
    drop((rest, other));
    drop(open(&path).unwrap());
}

#[test]
fn a_second_process_with_a_loop_device_is_refused_and_named() {
    if !can_mount("a_second_process_with_a_loop_device_is_refused_and_named", &["losetup"]) {
        return;
    }
    let directory = TestDirectory::new();
    let path = file(&directory, "one");
    let (one, two) = (Loop::over(&path, &[]), Loop::over(&path, &[]));
    let other = Other::with(&one.0, false);
    refused(open(&one.0), &[one.name(), &other.name()]);
    refused(open(&two.0), &[two.name(), &other.name()]);
    refused(open(&path), &[path.to_str().unwrap(), &other.name()]);
    drop(other);
    let other = Other::with(&path, false);
    refused(open(&two.0), &[two.name(), &other.name()]);
    drop(other);
    drop(open(&two.0).unwrap());
}

fn reading(path: &Path) -> Result<ReadHold, EngineError> {
    ReadHold::take(&File::open(path).unwrap(), path)
}

/// Who reads keeps writers away, no other reader, and takes nothing from who writes.
#[test]
fn what_is_read_is_not_written_meanwhile() {
    let directory = TestDirectory::new();
    let path = file(&directory, "one");
    let both = (reading(&path).unwrap(), reading(&path).unwrap());
    refused(open(&path), &[path.to_str().unwrap(), "has locked it"]);
    drop(both.0);
    refused(part(&path, 8, 8), &["has locked it"]);
    drop(both.1);
    let writer = open(&path).unwrap();
    let error = reading(&path).expect_err("it is written");
    assert_eq!(error.kind(), EngineErrorKind::Busy, "{error}");
    drop(writer);
    drop(reading(&path).unwrap());
}

#[test]
fn a_device_that_is_read_is_neither_written_nor_mounted() {
    const TEST: &str = "a_device_that_is_read_is_neither_written_nor_mounted";
    if !can_mount(TEST, &["losetup", "mkfs.ext4", "mount"]) {
        return;
    }
    let directory = TestDirectory::new();
    let path = file(&directory, "one");
    let device = Loop::over(&path, &[]);
    tool("mkfs.ext4", &["-q", device.name()]).unwrap();
    let place = directory.path().join("mounted");
    fs::create_dir(&place).unwrap();
    let both = (reading(&device.0).unwrap(), reading(&device.0).unwrap());
    refused(open(&device.0), &[device.name()]);
    assert!(tool("mount", &[device.name(), place.to_str().unwrap()]).is_err());
    drop(both);
    let mounted = Mounted::new(&[], &device.0, &place);
    let error = reading(&device.0).expect_err("it is mounted");
    assert_eq!(error.kind(), EngineErrorKind::Busy, "{error}");
    drop(mounted);
    drop(open(&device.0).unwrap());
}

/// A lock of somebody's; given back when dropped, also where a process that is being started has a copy of
/// the descriptor.
struct Theirs(File);

impl Theirs {
    /// `None` when another lock stands against it.
    fn new(path: &Path, kind: libc::c_int, at: i64, len: i64) -> Option<Self> {
        let file = File::options().read(true).write(true).open(path).unwrap();
        (call(&file, libc::F_OFD_SETLK, kind, at, len).0 == 0).then_some(Self(file))
    }

    fn whole(path: &Path, mode: libc::c_int) -> Self {
        let file = File::open(path).unwrap();
        // SAFETY: the descriptor is open.
        assert_eq!(unsafe { libc::flock(file.as_raw_fd(), mode) }, 0);
        Self(file)
    }
}

impl Drop for Theirs {
    fn drop(&mut self) {
        call(&self.0, libc::F_OFD_SETLK, libc::F_UNLCK, 0, 0);
        // SAFETY: the descriptor is open.
        unsafe { libc::flock(self.0.as_raw_fd(), libc::LOCK_UN) };
    }
}

fn call(file: &File, command: i32, kind: i32, at: i64, len: i64) -> (i32, libc::flock) {
    // SAFETY: all zeroes is a valid value of this plain structure.
    let mut lock: libc::flock = unsafe { std::mem::zeroed() };
    (lock.l_type, lock.l_start, lock.l_len) = (kind as libc::c_short, at, len);
    // SAFETY: the descriptor is open and the structure ours.
    (unsafe { libc::fcntl(file.as_raw_fd(), command, &raw mut lock) }, lock)
}

/// Whether somebody who asks for an exclusive lock of a byte would be told of another.
fn is_locked(path: &Path, at: i64) -> bool {
    let file = File::options().read(true).write(true).open(path).unwrap();
    let (done, lock) = call(&file, libc::F_OFD_GETLK, libc::F_WRLCK, at, 1);
    assert_eq!(done, 0);
    libc::c_int::from(lock.l_type) != libc::F_UNLCK
}

/// QEMU locks one byte from 100 on for everything it does to an image, and one from 200 on for everything that
/// nobody else may do, all of them shared; then it looks for those of others.
#[test]
fn a_file_that_a_virtual_machine_uses_is_refused_and_the_other_way_round() {
    let directory = TestDirectory::new();
    let path = file(&directory, "image");
    for (at, len) in [(100, 1), (101, 1), (103, 1), (200, 1), (203, 1), (100, 104)] {
        let guest = Theirs::new(&path, libc::F_RDLCK, at, len).unwrap();
        refused(open(&path), &[path.to_str().unwrap(), "locked"]);
        // A part that holds none of these bytes is refused too: the image is the guest's as a whole.
        refused(part(&path, 8, 8), &[path.to_str().unwrap(), "locked"]);
        drop(guest);
    }
    let member = part(&path, 64, 64).unwrap();
    for at in [100, 101, 103, 200, 203] {
        assert!(is_locked(&path, at), "byte {at} tells a guest that the file is in use");
    }
    drop(member);
    drop(open(&path).unwrap());
}

/// Who opens the file itself is told of a member that is a loop device over it, and such a device is refused while
/// a guest has the file.
#[test]
fn a_file_below_a_loop_device_is_locked() {
    if !can_mount("a_file_below_a_loop_device_is_locked", &["losetup"]) {
        return;
    }
    let directory = TestDirectory::new();
    let path = file(&directory, "image");
    let device = Loop::over(&path, &[]);
    let guest = Theirs::new(&path, libc::F_RDLCK, 100, 1).unwrap();
    refused(open(&device.0), &[device.name(), path.to_str().unwrap(), "locked"]);
    drop(guest);
    let member = open(&device.0).unwrap();
    assert!(is_locked(&path, 100), "a guest is told that the file is in use");
    drop(member);
    assert!(!is_locked(&path, 100), "given back");
}

#[test]
fn a_file_that_is_locked_as_a_whole_is_refused() {
    let directory = TestDirectory::new();
    let path = file(&directory, "image");
    for kind in [libc::F_RDLCK, libc::F_WRLCK] {
        let theirs = Theirs::new(&path, kind, 0, 0).unwrap();
        refused(open(&path), &[path.to_str().unwrap(), "locked"]);
        drop(theirs);
    }
    for kind in [libc::LOCK_SH, libc::LOCK_EX] {
        let theirs = Theirs::whole(&path, kind);
        refused(open(&path), &[path.to_str().unwrap(), "locked"]);
        drop(theirs);
    }
    let member = open(&path).unwrap();
    let theirs = File::open(&path).unwrap();
    // SAFETY: the descriptor is open.
    let taken = unsafe { libc::flock(theirs.as_raw_fd(), libc::LOCK_EX | libc::LOCK_NB) };
    assert_eq!(taken, -1, "who asks by flock is told");
    drop(member);
}
