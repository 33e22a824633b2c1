//! The kernel's md as a target, in a guest that has the driver: this test program runs itself there.

#[path = "../../engine/tests/common/mod.rs"]
mod common;
#[path = "../../../tests/support/guest.rs"]
mod guest;
#[path = "../../../tests/support/root.rs"]
mod root;

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};

use guest::{TempDir, guest_or_skip};
use raidlab_core::{Layout, Level, Sectors};
use raidlab_engine::EngineErrorKind;
use raidlab_targets::{
    Filesystem, InitialSync, KernelMdArray, KernelMdOptions, StripeHint, clean_leftovers,
};
use root::{can_mount, traces};

/// Where members lie, in the guest.
const PLACE: &str = "RAIDLAB_TEST_MD_IN";

const MEMBER: u64 = 24 << 20;

fn make(place: &Path, layout: &Layout, options: KernelMdOptions) -> KernelMdArray {
    let made = KernelMdArray::new(place, layout, MEMBER, Filesystem::Ext4, options);
    made.unwrap_or_else(|error| panic!("{layout}: {error}"))
}

fn layouts() -> Vec<Layout> {
    let chunk = |level, members| Layout::new(level, members).with_chunk(Sectors(128));
    vec![
        chunk(Level::Raid0, 2),
        Layout::new(Level::Raid1, 2),
        chunk(Level::Raid5, 3),
        chunk(Level::Raid6, 4),
        chunk(Level::Raid10, 4),
        chunk(Level::Raid10, 2).with_far(2),
        chunk(Level::Raid10, 3).with_far(2).with_offset(true),
    ]
}

fn write_and_read(at: &Path) {
    let mut bytes = vec![0; 1 << 20];
    common::Random(9).fill(&mut bytes);
    for number in 0..3 {
        let path = at.join(format!("file-{number}"));
        let mut file = std::fs::File::create_new(&path).unwrap();
        file.write_all(&bytes).unwrap();
        file.sync_all().unwrap();
        assert!(std::fs::read(&path).unwrap() == bytes);
    }
}

fn assert_clean(place: &Path) {
    assert_eq!(traces(place), [""; 0]);
    assert!(!std::fs::read_to_string("/proc/mdstat").unwrap().contains("active"));
    let left: Vec<_> = std::fs::read_dir(place).unwrap().flatten().collect();
    assert!(left.is_empty(), "{left:?}");
}

/// What is done in the guest; nothing elsewhere.
#[test]
fn in_the_guest() {
    let Some(place) = std::env::var_os(PLACE) else { return };
    let place = Path::new(&place);
    for layout in layouts() {
        let array = make(place, &layout, KernelMdOptions::default());
        assert!(array.is_direct());
        let before = array.totals();
        write_and_read(&array.path());
        let done = array.totals().since(before);
        assert!(done.bytes_written >= 3 << 20, "{layout}: {done:?}");
        array.finish().unwrap_or_else(|error| panic!("{layout}: {error}"));
        assert_clean(place);
    }
    let raid5 = Layout::new(Level::Raid5, 3).with_chunk(Sectors(128));
    let waited = KernelMdOptions { initial: InitialSync::Wait, stripe: StripeHint::Layout };
    let array = make(place, &raid5, waited);
    let state = std::fs::read_to_string("/proc/mdstat").unwrap();
    assert!(state.contains("[UUU]"), "{state}");
    drop(array);
    assert_clean(place);

    kill_one(place);
    assert!(!traces(place).is_empty(), "it left something");
    let cleaned = clean_leftovers(place).unwrap();
    assert_eq!((cleaned.removed.len(), cleaned.kept.len()), (2, 0), "{cleaned:?}");
    assert_clean(place);
}

/// Not a test: the process that is killed, when it is run as such.
#[test]
fn a_process_to_be_killed() {
    let Some(place) = std::env::var_os("RAIDLAB_TEST_KILL_IN") else { return };
    let array = make(place.as_ref(), &Layout::new(Level::Raid1, 2), KernelMdOptions::default());
    println!("mounted");
    loop {
        let path = array.path().join("file");
        std::fs::write(&path, vec![1; 1 << 20]).unwrap();
    }
}

fn kill_one(place: &Path) {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "a_process_to_be_killed", "--nocapture"])
        .env("RAIDLAB_TEST_KILL_IN", place)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut ready = lines.map_while(Result::ok).filter(|line| line.contains("mounted"));
    assert!(ready.next().is_some());
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn md_arrays_are_made_mounted_and_taken_down() {
    let Some(guest) = guest_or_skip("md_arrays_are_made_mounted_and_taken_down") else { return };
    let directory = TempDir::new("mounted-md");
    let disk = directory.file("disk", 256 << 20);
    let share = directory.path().join("share");
    std::fs::create_dir(&share).unwrap();
    std::fs::copy(std::env::current_exe().unwrap(), share.join("program")).unwrap();
    // Member files need a filesystem with direct I/O: one on the guest's disk.
    let script = format!(
        "set -e
        busybox insmod $(find /usr/lib/uml/modules -name loop.ko | head -n 1)
        mkfs.ext4 -q -F /dev/ubda
        mkdir /tmp/place
        mount -t ext4 /dev/ubda /tmp/place
        mkdir /tmp/place/work
        {PLACE}=/tmp/place/work $SHARE/program --exact in_the_guest --nocapture 2>&1
        umount /tmp/place"
    );
    let output = guest.limit(300).run(&script, &[disk], &share);
    let said = output.expect_success("the program in the guest");
    assert!(said.contains("test in_the_guest ... ok") || said.contains("1 passed"), "{said}");
}

#[test]
fn a_kernel_without_md_is_told_by_name() {
    if !can_mount("a_kernel_without_md_is_told_by_name", &["mdadm"]) {
        return;
    }
    if Path::new("/proc/mdstat").exists() {
        return;
    }
    let directory = TempDir::new("no-md");
    let layout = Layout::new(Level::Raid1, 2);
    let options = KernelMdOptions::default();
    let refused = KernelMdArray::new(directory.path(), &layout, MEMBER, Filesystem::Ext4, options);
    let error = refused.err().unwrap();
    assert_eq!(error.kind(), EngineErrorKind::NotSupported);
    assert!(error.to_string().contains("this kernel has no md driver"), "{error}");
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
}
