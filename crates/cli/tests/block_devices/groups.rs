//! Studies of several groups of drives on devices.

use super::{BYTES, Bench};
use crate::support;

/// `single` on one device of each of two groups, whose order is not that of the layouts.
const GROUPS: &str = r#"
title = "Two groups"
rounds = 1
drives = [{ name = "slow", file = "8MiB", count = 1 }, { name = "fast", file = "4MiB", count = 1 }]
layouts = [{ level = "single", drives = "fast" }, { level = "single", drives = "slow", name = "other" }]
workloads = [{ kind = "dd-write", block = "128KiB", size = "1MiB" }]
"#;

#[test]
fn each_group_of_drives_is_devices_of_its_own() {
    let test = "each_group_of_drives_is_devices_of_its_own";
    let Some(bench) = Bench::of(test, GROUPS, BYTES) else { return };
    let first = bench.loops[0].node.clone();
    let study = bench.study.display().to_string();
    let few = support::raidlab(["compare", &study, "--on", &first]);
    assert_eq!(few.code, Some(2), "{few:?}");
    let needed = "1 devices are given, the study uses 2 (in this order: 1 for slow, 1 for fast)";
    assert!(few.stderr.contains(needed), "{few:?}");
    let before = bench.contents();
    let shown = bench.run(&[]).good().stdout;
    let place = |words: &str| shown.find(words).unwrap_or_else(|| panic!("{words}: {shown}"));
    assert!(place("member, for slow") < place("member, for fast"), "{shown}");
    let ran = bench.destroy(&["--quiet"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let is_changed =
        |after: &[u8], before: &[u8], mib: usize| after[mib << 20..] != before[mib << 20..];
    let after = bench.contents();
    for (device, (after, before)) in after.iter().zip(&before).enumerate() {
        assert!(is_changed(after, before, 0), "device {device} was not used");
        assert!(!is_changed(after, before, [8, 4][device]), "device {device}, beyond its size");
    }
}
