//! `raidlab array create` on block devices.

use std::fs;
use std::path::Path;
use std::process::Command;

use super::{Bench, Loop};
use crate::root::tool;
use crate::support::{self, Ran};

pub(super) fn create(bench: &Bench, layout: &str, more: &[&str]) -> Ran {
    let nodes: Vec<&str> = bench.loops.iter().map(|one| one.node.as_str()).collect();
    let first = ["array", "create", layout];
    support::raidlab([&first[..], &nodes, more].concat())
}

/// With all that is needed to overwrite.
pub(super) fn confirmed(bench: &Bench, layout: &str, more: &[&str]) -> Ran {
    let (ids, saved) = (bench.ids(), bench.save_directory());
    let all = ["--destructive", "--yes", "--confirm-id", &ids, "--save-dir", &saved];
    create(bench, layout, &[&all[..], more].concat())
}

/// What was said on the way stands on standard error.
pub(super) fn done(ran: Ran) -> Ran {
    assert_eq!(ran.code, Some(0), "{ran:?}");
    ran
}

fn examined(node: &str) -> String {
    let output = Command::new("mdadm").args(["--examine", node]).output();
    match output {
        Ok(output) => String::from_utf8_lossy(&output.stdout).into_owned(),
        // Nobody else's word, then.
        Err(_) => support::raidlab(["array", "examine", node]).good().stdout,
    }
}

#[test]
fn an_array_on_devices_is_shown_and_made_once_they_are_confirmed() {
    const TEST: &str = "an_array_on_devices_is_shown_and_made_once_they_are_confirmed";
    let Some(bench) = Bench::new(TEST) else { return };
    let before = bench.contents();
    let shown = create(&bench, "raid1", &["--name", "data"]).good().stdout;
    for word in ["raid1(2)", "would be made", "size     16MiB", "Nothing was written.", "ids "] {
        assert!(shown.contains(word), "`{word}` is not in {shown}");
    }
    for (more, word) in [
        (&["--destructive"][..], "--yes with --confirm-id"),
        (&["--destructive", "--yes", "--confirm-id", "a,b"], "is not `a`"),
    ] {
        let ran = create(&bench, "raid1", more);
        assert_eq!(ran.code, Some(3), "{ran:?}");
        assert!(ran.stderr.contains("nothing was written") && ran.stderr.contains(word), "{ran:?}");
    }
    create(&bench, "raid1", &["--dry-run", "--destructive"]).refused(&["cannot be used with"]);
    assert!(bench.contents() == before, "something was written");
    assert!(!Path::new(&bench.save_directory()).exists());

    let ran = done(confirmed(&bench, "raid1", &["--name", "data", "--homehost", ""]));
    assert!(ran.stdout.contains("data: raid1(2) of version 1.2"), "{}", ran.stdout);
    for one in &bench.loops {
        let text = examined(&one.node);
        assert!(text.contains("raid1") && text.contains("data"), "{text}");
    }
    let nodes: Vec<&str> = bench.loops.iter().map(|one| one.node.as_str()).collect();
    let all = [&["array", "status"][..], &nodes].concat();
    assert!(support::raidlab(all).good().stdout.contains("raid1(2)"));
    metadata_comes_back(&bench, &nodes);
    // What the devices held is saved, and said how to bring back.
    let after = bench.contents();
    let commands: Vec<&str> = ran.stderr.lines().filter(|line| line.contains(" dd if=")).collect();
    assert_eq!(commands.len(), 4, "{}", ran.stderr);
    for command in commands {
        tool("sh", &["-c", command]).expect("dd");
    }
    let ends = |all: &[u8]| [&all[..1 << 20], &all[15 << 20..]].concat();
    for ((before, after), now) in before.iter().zip(&after).zip(&bench.contents()) {
        assert!(ends(before) != ends(after) && ends(before) == ends(now));
    }
    let log = fs::read_to_string(Path::new(&bench.save_directory()).join("devices.log"));
    assert!(log.expect("the log").contains("becomes part of the array data"));
}

/// Superblocks that were saved are brought back to devices of which each is confirmed.
fn metadata_comes_back(bench: &Bench, nodes: &[&str]) {
    let to = bench.scratch.path().join("metadata").display().to_string();
    let saved = [&["array", "dump-metadata", "--to", &to][..], nodes].concat();
    support::raidlab(saved).good();
    let whole = bench.contents();
    for node in nodes {
        tool("dd", &["if=/dev/zero", &format!("of={node}"), "bs=4096", "count=2", "conv=fsync"])
            .expect("dd");
    }
    let damaged = bench.contents();
    let restore = [&["array", "restore-metadata", "--from", &to][..], nodes].concat();
    let shown = support::raidlab(&restore).good().stdout;
    assert!(shown.contains("would be written") && shown.contains("Nothing was written"), "{shown}");
    let ran = support::raidlab([&restore[..], &["--destructive"]].concat());
    assert_eq!(ran.code, Some(3), "{ran:?}");
    assert!(bench.contents() == damaged, "something was written");
    let (ids, ends) = (bench.ids(), bench.scratch.path().join("ends").display().to_string());
    let consent = ["--destructive", "--yes", "--confirm-id", &ids, "--save-dir", &ends];
    done(support::raidlab([&restore[..], &consent].concat()));
    assert!(bench.contents() == whole && damaged != whole);
    assert_eq!(support::names(Path::new(&ends)).len(), 3);
}

/// In one word what stands on a device, or who uses it, is never lost unasked.
#[test]
fn devices_that_hold_something_are_refused() {
    let Some(bench) = Bench::new("devices_that_hold_something_are_refused") else { return };
    let node = bench.loops[0].node.clone();
    tool("mkfs.ext4", &["-q", "-F", &node]).expect("ext4");
    let before = bench.contents();
    for ran in [create(&bench, "raid1", &[]), confirmed(&bench, "raid1", &[])] {
        assert_eq!(ran.code, Some(3), "{ran:?}");
        assert!(ran.stderr.contains("ext4") && ran.stderr.contains("--overwrite"), "{ran:?}");
    }
    // Mounted, no flag helps.
    let at = bench.scratch.directory("at");
    tool("mount", &["-o", "ro", &node, &at.display().to_string()]).expect("a mount");
    let ran = confirmed(&bench, "raid1", &["--overwrite"]);
    tool("umount", &[&at.display().to_string()]).expect("umount");
    assert_eq!(ran.code, Some(3), "{ran:?}");
    assert!(ran.stderr.contains("mounted"), "{ran:?}");
    assert!(bench.contents() == before, "something was written");
    // The same bytes by two names, and flags that are for devices only.
    let again = Loop::over(&bench.loops[0].file).expect("a loop device");
    support::raidlab(["array", "create", "raid1", &node, &again.node]).refused(&["same device"]);
    support::raidlab(["array", "create", "raid1", &node, &node]).refused(&["is given twice"]);
    drop(again);
    let image = bench.scratch.file("a.img", vec![0; 8 << 20]).display().to_string();
    support::raidlab(["array", "create", "raid1", &image, "missing", "--destructive"])
        .refused(&["--destructive", "block devices only"]);

    let ran = done(confirmed(&bench, "raid1", &["--overwrite", "--metadata", "1.0"]));
    assert!(ran.stderr.contains("held ") || ran.stderr.contains("ext4"), "{}", ran.stderr);
    let signatures = tool("wipefs", &["--noheadings", &node]).expect("wipefs");
    assert!(signatures.contains("linux_raid_member"), "{signatures}");
    assert!(!signatures.contains("ext4"), "{signatures}");
    // It is a member now.
    let ran = confirmed(&bench, "raid1", &[]);
    assert_eq!(ran.code, Some(3), "{ran:?}");
    assert!(ran.stderr.contains("linux_raid_member"), "{ran:?}");
}

/// Two floors, the lower ones of a device and a file each.
#[test]
fn nested_levels_and_labels_of_geom_are_made_on_devices_too() {
    let Some(bench) = Bench::new("nested_levels_and_labels_of_geom_are_made_on_devices_too") else {
        return;
    };
    let files = ["a.img", "b.img"].map(|name| bench.scratch.file(name, vec![0; 16 << 20]));
    let files = files.map(|file| file.display().to_string());
    let [one, other] = [&bench.loops[0].node, &bench.loops[1].node].map(String::as_str);
    let (ids, saved) = (bench.ids(), bench.save_directory());
    let consent = ["--destructive", "--yes", "--confirm-id", &ids, "--save-dir", &saved];
    let all = [one, files[0].as_str(), other, files[1].as_str()];
    let ran = [&["array", "create", "raid1+0(2x2)"][..], &all, &consent].concat();
    let made = done(support::raidlab(ran)).stdout;
    assert!(made.contains("raid0(2)") && !made.contains("would be made"), "{made}");
    let status = support::raidlab([&["array", "status"][..], &all].concat()).good().stdout;
    assert!(status.contains("raid0(2)"), "{status}");

    let more = ["--overwrite", "--assume-clean", "--metadata", "geom", "--name", "gm0"];
    let made = done(confirmed(&bench, "raid1", &more)).stdout;
    assert!(made.contains("gm0: raid1(2), gmirror"), "{made}");
    let label = support::raidlab(["array", "examine", one]).good().stdout;
    assert!(label.contains("GEOM::MIRROR"), "{label}");
}
