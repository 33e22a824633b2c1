//! A filesystem on a loop device over an array's file by FUSE, written to while a member fails and a fresh one is added
//! and rebuilt; a file that somebody else unmounts, or that cannot be mounted. Needs root.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use crate::array_running::{Harness, MIB, WHOLE};
use crate::extent::Extent;
use crate::numbered;
use crate::root::{can_mount, tool};
use crate::support::{Running, Scratch, raidlab};

/// Every level with redundancy, its members, and what is to be used of each.
const LAYOUTS: [(&str, usize, u64); 8] = [
    ("raid1", 2, 320),
    ("raid1", 3, 320),
    ("raid4 chunk=64K", 4, 128),
    ("raid5 chunk=64K", 4, 128),
    ("raid6 chunk=64K", 5, 128),
    ("raid10 chunk=64K", 4, 192),
    ("raid10 far2 chunk=64K", 4, 192),
    ("raid10 offset2 chunk=64K", 5, 160),
];
const FILESYSTEMS: [(&str, &str, &[&str], &[&str]); 2] = [
    ("ext4", "mkfs.ext4", &["-q", "-F"], &["e2fsck", "-f", "-n"]),
    ("xfs", "mkfs.xfs", &["-q", "-f"], &["xfs_repair", "-n"]),
];

/// A mounted filesystem on a loop device; both go with the test.
pub(super) struct Mounted {
    pub(super) node: String,
    pub(super) at: PathBuf,
}

impl Mounted {
    pub(super) fn new(node: String, at: PathBuf) -> Self {
        Self { node, at }
    }

    pub(super) fn unmount(&self) {
        tool("umount", &[&self.at.display().to_string()]).expect("nothing uses it any more");
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        if thread::panicking() {
            let _ = tool("umount", &[&self.at.display().to_string()]);
        }
        let gone = tool("losetup", &["--detach", &self.node]);
        if !thread::panicking() {
            gone.expect("nothing uses the loop device any more");
        }
    }
}

/// All by `RAIDLAB_FULL=1`; otherwise two, others with each commit.
#[test]
fn filesystems_live_through_a_lost_member_and_its_rebuild() {
    const TEST: &str = "filesystems_live_through_a_lost_member_and_its_rebuild";
    if !can_mount(TEST, &["mkfs.ext4", "e2fsck", "mkfs.xfs", "xfs_repair", "losetup"]) {
        return;
    }
    let cases = FILESYSTEMS.into_iter().flat_map(|one| LAYOUTS.map(|layout| (layout, one)));
    for (layout, filesystem) in
        Extent::from_environment().of_slow_tests().choose(cases.collect(), 2)
    {
        live_through(layout, filesystem);
    }
}

fn live_through(
    (layout, members, mebibytes): (&str, usize, u64),
    (name, make, flags, check): (&str, &str, &[&str], &[&str]),
) {
    println!("{layout} of {members}, {name}");
    let harness = Harness { scratch: Scratch::new("running-mounted") };
    let names: Vec<String> = (0..members).map(|number| number.to_string()).collect();
    for file in names.iter().map(String::as_str).chain(["x"]) {
        // Holes: all zeroes are consistent on every level.
        let file = File::create(harness.path(file)).unwrap();
        file.set_len((mebibytes + 8) * MIB).unwrap();
    }
    let files = names.iter().map(|name| harness.path(name));
    let create = ["array", "create", layout].map(str::to_owned).into_iter().chain(files);
    let flags_of_array = ["--bitmap", "internal", "--assume-clean", "--overwrite"];
    raidlab(create.chain(flags_of_array.map(str::to_owned))).good();
    let devices: Vec<&str> = names.iter().map(String::as_str).collect();
    let served = harness.path("served");
    let run = harness.assemble(&devices, &["--write", "--fuse", &served]);

    let node = tool("losetup", &["--find", "--show", &served]).expect("a loop device");
    let at = harness.scratch.directory("mounted");
    let place = at.display().to_string();
    let mounted = Mounted::new(node, at.clone());
    tool(make, &[flags, &[mounted.node.as_str()]].concat()).expect("a filesystem");
    tool("mount", &[&mounted.node, &place]).expect("it can be mounted");
    for own in [&served, &mounted.node] {
        let ran = harness.ask("add", &[own, "--overwrite"]);
        assert_eq!(ran.code, Some(3), "an array is no member of itself: {ran:?}");
        assert!(ran.stderr.contains("holds what an array of this process serves"), "{ran:?}");
    }
    let written = under_load(&at, || {
        harness.ask("fail", &["1"]).good();
        harness.ask("remove", &[&harness.path("1")]).good();
        harness.ask("add", &[&harness.path("x"), "--overwrite"]).good();
        harness.until("\"missing\": 0");
        harness.until(WHOLE);
    });
    mounted.unmount();
    tool(check[0], &[&check[1..], &[mounted.node.as_str()]].concat())
        .unwrap_or_else(|why| panic!("{layout}, {name}: {why}"));
    tool("mount", &["-o", "ro", &mounted.node, &place]).expect("it can be mounted");
    assert!(written > 0, "{layout}, {name}: nothing was written meanwhile");
    for number in 0..written {
        let found = fs::read(numbered::path(&at, number)).unwrap();
        assert!(found == numbered::bytes(number), "{layout}, {name}: file {number} of {written}");
    }
    mounted.unmount();
    drop(mounted);
    harness.until("\"work\": null");
    assert!(
        harness.ask("check", &["--quiet"]).good().stdout.contains("0 sectors differ"),
        "{layout}"
    );
    harness.stop(run);
}

/// Writes files until `work` is done, one in eight durably, some in the place of others; gives how many.
fn under_load(at: &Path, work: impl FnOnce()) -> u64 {
    let is_done = AtomicBool::new(false);
    thread::scope(|scope| {
        let writer = scope.spawn(|| {
            let mut number = 0;
            // So that the filesystem has room whatever the rebuild takes.
            while number == 0 || number < MOST_FILES && !is_done.load(Ordering::Relaxed) {
                let path = numbered::path(at, number);
                fs::create_dir_all(path.parent().expect("a directory")).unwrap();
                // Longer first, and cut and overwritten then.
                fs::write(&path, vec![0xee; 200_000]).unwrap();
                let mut file = File::create(&path).unwrap();
                file.write_all(&numbered::bytes(number)).unwrap();
                if number.is_multiple_of(8) {
                    file.sync_all().unwrap();
                }
                number += 1;
            }
            number
        });
        work();
        is_done.store(true, Ordering::Relaxed);
        writer.join().expect("the writer")
    })
}

const MOST_FILES: u64 = 1500;

/// A server that has been stopped, as other machines may be: nothing of its mount may be asked, though there is a loop
/// device over its file.
#[test]
fn a_filesystem_that_does_not_answer_holds_nobody_up() {
    const TEST: &str = "a_filesystem_that_does_not_answer_holds_nobody_up";
    if !can_mount(TEST, &["losetup"]) {
        return;
    }
    let harness = Harness::new("running-silent", "raid1", 2, &["--assume-clean"]);
    let served = harness.path("served");
    let run = harness.assemble(&["0", "1"], &["--write", "--fuse", &served]);
    let attached =
        |file: &str| tool("losetup", &["--find", "--show", file]).expect("a loop device");
    let device = Mounted::new(attached(&harness.path("x")), PathBuf::new());
    let over_served = Mounted::new(attached(&served), PathBuf::new());
    let silent = Silent(run.0.id());
    signal(silent.0, "STOP");
    for member in [&device.node, &harness.path("y")] {
        let create = ["array", "create", "raid1", member, "missing", "--dry-run"];
        let mut ran = Running::start(create);
        ran.wait_until_end(|| ());
        ran.finish().good();
    }
    drop((silent, over_served));
    harness.stop(run);
}

/// A stopped process, which goes on when the test ends.
struct Silent(u32);

impl Drop for Silent {
    fn drop(&mut self) {
        signal(self.0, "CONT");
    }
}

fn signal(process: u32, name: &str) {
    let sent = Command::new("kill").args([&format!("-{name}"), &process.to_string()]).status();
    assert!(sent.expect("a program").success(), "cannot send {name}");
}

/// What the array holds is seen by whoever reads it then, and it was stopped in order.
fn holds_in_order(harness: &Harness, wanted: &[u8]) {
    let devices = ["0", "1"].map(|one| harness.path(one));
    let found = raidlab(["array", "status"].map(str::to_owned).iter().chain(&devices));
    assert!(found.good().stdout.contains("all members there; stopped cleanly"));
    let out = harness.path("out");
    let export = ["array", "export-file"].map(str::to_owned);
    raidlab(export.iter().chain(&devices).chain([&out, &"--quiet".to_owned()])).good();
    assert!(fs::read(&out).unwrap().starts_with(wanted), "what was written is not there");
    fs::remove_file(out).unwrap();
}

/// Somebody else unmounts the file: the array goes on without it, takes commands, and is stopped in order.
#[test]
fn an_array_goes_on_without_a_file_that_somebody_else_unmounts() {
    const TEST: &str = "an_array_goes_on_without_a_file_that_somebody_else_unmounts";
    if !can_mount(TEST, &["umount"]) {
        return;
    }
    let flags = &["--bitmap", "internal", "--assume-clean"];
    let harness = Harness::new("running-unmounted", "raid1", 2, flags);
    let served = harness.path("served");
    let run = harness.assemble(&["0", "1"], &["--write", "--fuse", &served]);
    let link = fs::read_link(&served).unwrap();
    let bytes: Vec<u8> = (0..MIB).map(|byte| (byte / 511) as u8).collect();
    let mut file = File::options().write(true).open(&served).unwrap();
    file.write_all(&bytes).unwrap();
    drop(file);
    let place = link.parent().expect("a directory");
    tool("umount", &[place.to_str().unwrap()]).expect("nothing uses it");
    harness.until("\"file\": null");
    assert!(fs::symlink_metadata(&served).is_err(), "what is written there would go nowhere");
    harness.ask("fail", &["1"]).good();
    harness.ask("remove", &["1"]).good();
    harness.ask("add", &[&harness.path("1")]).good();
    harness.until(WHOLE);
    harness.stop(run);
    assert!(!place.exists(), "the directory is gone");
    holds_in_order(&harness, &bytes);
    // Nobody has learnt of it yet when it is stopped.
    let run = harness.assemble(&["0", "1"], &["--write", "--fuse", &served]);
    let place = fs::read_link(&served).unwrap();
    tool("umount", &[place.parent().unwrap().to_str().unwrap()]).expect("nothing uses it");
    harness.stop(run);
    assert!(fs::symlink_metadata(&served).is_err(), "the link is gone");
    holds_in_order(&harness, &bytes);
}

/// Where nothing can be mounted, that is said, and the array ends in order.
#[test]
fn an_array_whose_file_cannot_be_mounted_ends_in_order() {
    const TEST: &str = "an_array_whose_file_cannot_be_mounted_ends_in_order";
    if !can_mount(TEST, &["setpriv", "timeout"]) {
        return;
    }
    let flags = &["--bitmap", "internal", "--assume-clean"];
    let harness = Harness::new("running-unmountable", "raid1", 2, flags);
    let served = harness.path("served");
    let assembling = harness.assembling(&["0", "1"], &["--write", "--fuse", &served]);
    // Nothing depends on the time while all is well.
    let mut without = Command::new("timeout");
    without.args(["--signal=KILL", "60", "setpriv"]);
    without.args(["--bounding-set", "-sys_admin", "--inh-caps", "-sys_admin"]);
    without.arg(assembling.get_program()).args(assembling.get_args());
    let ran = without.output().unwrap();
    let told = String::from_utf8_lossy(&ran.stderr);
    assert_eq!(ran.status.code(), Some(1), "{told}");
    assert!(told.contains("export the array as a file"), "{told}");
    assert!(fs::symlink_metadata(&served).is_err(), "the link is gone");
    holds_in_order(&harness, &[]);
}
