//! `raidlab array assemble --overlay` given a device instead of a file.

use super::Bench;
use crate::support;

/// It is opened for nothing, so that nothing of it changes.
#[test]
fn a_device_is_no_overlay() {
    let Some(bench) = Bench::new("a_device_is_no_overlay") else { return };
    let files = ["a.img", "b.img"].map(|name| bench.scratch.file(name, vec![0; 8 << 20]));
    let files = files.map(|file| file.display().to_string());
    let all = ["array", "create", "raid1", "--assume-clean", &files[0], &files[1]];
    support::raidlab(all).good();
    let before = bench.contents();
    let node = bench.loops[0].node.as_str();
    let socket = bench.scratch.path().join("s").display().to_string();
    let all = ["array", "assemble", "--socket", &socket, "--overlay", node, &files[0], &files[1]];
    let words = format!("{node} is no regular file, and is left as it is");
    support::raidlab(all).refused(&[&words]);
    assert!(bench.contents() == before, "the device was written");
}
