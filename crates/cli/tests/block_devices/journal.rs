//! `raidlab array add --journal` on block devices.

use std::fs::{self, OpenOptions};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use super::create::{confirmed, create, done};
use super::{BYTES, Bench, EXCLUSIVE, Loop, STUDY};
use crate::root::tool;
use crate::support::{self, Ran};

/// Members of the array; the log device is behind them.
const MEMBERS: usize = 3;

/// An array of raidlab's on the first devices, with nobody using it.
fn made(bench: &mut Bench) -> Loop {
    let log = bench.loops.pop().expect("the log device");
    done(confirmed(bench, "raid5 chunk=64K", &["--assume-clean", "--name", "data"]));
    // What the array is made of is saved, too.
    fs::remove_dir_all(bench.save_directory()).expect("what was saved");
    log
}

/// Gives the array a journal there.
fn add(bench: &Bench, log: &str, more: &[&str]) -> Ran {
    let nodes: Vec<&str> = bench.loops.iter().map(|one| one.node.as_str()).collect();
    support::raidlab([&["array", "add", "--journal", log][..], &nodes, more].concat())
}

/// With all that is needed to overwrite the log device.
fn added(bench: &Bench, log: &Loop, more: &[&str]) -> Ran {
    let (id, saved) = (log.file.display().to_string(), bench.save_directory());
    let all = ["--destructive", "--yes", "--confirm-id", &id, "--save-dir", &saved];
    add(bench, &log.node, &[&all[..], more].concat())
}

/// All that is there, of the log device last.
fn contents(bench: &Bench, log: &Loop) -> Vec<Vec<u8>> {
    let device = OpenOptions::new().write(true).open(&log.node).expect("the device");
    device.sync_all().expect("the file behind it takes it");
    let mut all = bench.contents();
    all.push(fs::read(&log.file).expect("the file"));
    all
}

fn refused(ran: &Ran, words: &[&str]) {
    assert_eq!(ran.code, Some(3), "{ran:?}");
    for word in words {
        assert!(ran.stderr.contains(word), "`{word}` is not in {ran:?}");
    }
}

/// Of the log device all is lost, so that it is shown and confirmed; of members only superblocks change.
#[test]
fn a_journal_on_a_device_is_shown_and_added_once_it_is_confirmed() {
    const TEST: &str = "a_journal_on_a_device_is_shown_and_added_once_it_is_confirmed";
    for sectors in ["512", "4096"] {
        let Some(mut bench) = Bench::in_sectors(TEST, STUDY, (MEMBERS as u64 + 1, BYTES), sectors)
        else {
            return;
        };
        let log = made(&mut bench);
        let before = contents(&bench, &log);
        let shown = add(&bench, &log.node, &[]).good().stdout;
        let file = log.file.display().to_string();
        for word in ["The journal would be on:", &file, "Nothing was written.", "would get a"] {
            assert!(shown.contains(word), "`{word}` is not in {shown}");
        }
        assert!(!shown.contains(&bench.loops[0].file.display().to_string()), "{shown}");
        let ids = bench.ids();
        for (more, word) in [
            (&["--destructive"][..], "--yes with --confirm-id"),
            (&["--destructive", "--yes", "--confirm-id", "a"], "is not `a`"),
            (&["--destructive", "--yes", "--confirm-id", &ids], "3 ids for 1 devices"),
        ] {
            refused(&add(&bench, &log.node, more), &["nothing was written", word]);
        }
        assert!(contents(&bench, &log) == before, "something was written");
        assert!(!Path::new(&bench.save_directory()).exists());

        let ran = done(added(&bench, &log, &[]));
        assert!(ran.stdout.contains("data: raid5(3)"), "{}", ran.stdout);
        assert!(ran.stdout.contains("has a journal now"), "{}", ran.stdout);
        let after = contents(&bench, &log);
        for (before, after) in before.iter().zip(&after).take(MEMBERS) {
            let changed = |(at, (one, other)): (usize, (&u8, &u8))| (one != other).then_some(at);
            let changed: Vec<_> =
                before.iter().zip(after).enumerate().filter_map(changed).collect();
            assert!(!changed.is_empty() && changed.iter().all(|at| (4096..8192).contains(at)));
        }
        let names = support::names(Path::new(&bench.save_directory()));
        assert_eq!(names.len(), 2, "the log device's ends and a log: {names:?}");
        let told = fs::read_to_string(Path::new(&bench.save_directory()).join("devices.log"));
        assert!(told.expect("the log").contains("becomes the log device of the array"));
        let nodes: Vec<&str> = bench.loops.iter().map(|one| one.node.as_str()).collect();
        let status = [&["array", "status", &log.node][..], &nodes].concat();
        let status = support::raidlab(status).good().stdout;
        assert!(status.contains(&format!("journal   {}", log.node)), "{status}");
        assert!(status.contains("all members there; stopped cleanly"), "{status}");
    }
}

/// What stands on a device, or who uses it, is never lost unasked; nor is a device two at once.
#[test]
fn devices_that_hold_something_or_are_used_get_no_journal() {
    const TEST: &str = "devices_that_hold_something_or_are_used_get_no_journal";
    let Some(mut bench) = Bench::with(TEST, STUDY, (MEMBERS as u64 + 1, BYTES)) else { return };
    let log = made(&mut bench);
    tool("mkfs.ext4", &["-q", "-F", &log.node]).expect("ext4");
    let before = contents(&bench, &log);
    for ran in [add(&bench, &log.node, &[]), added(&bench, &log, &[])] {
        refused(&ran, &["ext4", "--overwrite destroys it"]);
    }
    // Mounted, no flag helps.
    let at = bench.scratch.directory("at");
    tool("mount", &["-o", "ro", &log.node, &at.display().to_string()]).expect("a mount");
    let ran = added(&bench, &log, &["--overwrite"]);
    tool("umount", &[&at.display().to_string()]).expect("umount");
    refused(&ran, &["mounted"]);
    // Nor where a member is somebody else's.
    let mut options = OpenOptions::new();
    let member = options.read(true).custom_flags(EXCLUSIVE).open(&bench.loops[1].node);
    let member = member.expect("nobody has it");
    for ran in [add(&bench, &log.node, &["--overwrite"]), added(&bench, &log, &["--overwrite"])] {
        refused(&ran, &[&bench.loops[1].node]);
    }
    drop(member);
    // The same bytes by two names, and flags that are for devices only.
    let again = Loop::over(&bench.loops[0].file).expect("a loop device");
    add(&bench, &again.node, &[]).refused(&["same device"]);
    drop(again);
    add(&bench, &bench.loops[2].node.clone(), &[]).refused(&["is given twice"]);
    let image = bench.scratch.file("log.img", vec![0; 8 << 20]).display().to_string();
    let flags = ["--destructive", "--yes", "--confirm-id", "a"];
    add(&bench, &image, &flags).refused(&["--yes", "block devices only"]);
    // What cannot have one is told so before anybody is asked.
    let alone = ["array", "add", "--journal", &log.node, &bench.loops[0].node];
    let more = [&bench.loops[1].node, "--destructive", "--overwrite"];
    let ran = support::raidlab([&alone[..], &more].concat());
    assert!(ran.code == Some(1) && ran.stderr.contains("member 2 is missing"), "{ran:?}");
    assert!(contents(&bench, &log) == before, "something was written");
    assert!(!Path::new(&bench.save_directory()).exists());

    let ran = done(added(&bench, &log, &["--overwrite"]));
    assert!(ran.stdout.contains("has a journal now"), "{}", ran.stdout);
    let signatures = tool("wipefs", &["--noheadings", &log.node]).expect("wipefs");
    assert!(signatures.contains("linux_raid_member"), "{signatures}");
    assert!(!signatures.contains("ext4"), "{signatures}");
    // It is in use as one now, and so are the members.
    refused(&create(&bench, "raid5", &[]), &["linux_raid_member"]);
    refused(&added(&bench, &log, &[]), &["linux_raid_member"]);
}
