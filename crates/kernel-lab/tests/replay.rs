//! What a kernel and its drives said to each other, said again to clock, queues and drives without a kernel.
//!
//! The tapes are made anew, with the guest's programs of `cargo xtask kernel programs`, by
//! `raidlab-kernel-lab --drive A --drive A --drive B --record tests/tapes/6.12-page.tape tests/tapes/script.sh`,
//! where A and B are the lines of `DRIVES`; `6.12-plain` with `--no-page` too, `6.1` with `--kernel 6.1`.

use raidlab_kernel_lab::tape::replay;
use raidlab_kernel_lab::{Lab, Room, drives};

/// A raid1 of two drives and a third with a cache and FUA, as `script.sh` uses them.
const DRIVES: [&str; 3] = [
    "size=64MiB,positioning=5ms,byte=10ns",
    "size=64MiB,positioning=5ms,byte=10ns",
    "size=64MiB,cache=1,fua=1,fixed=100us",
];
/// What 6.12.117 said with and without the clock's page, and 6.1.192, which was offered the page and knows none; with
/// whether it was offered.
const TAPES: [(&str, bool); 3] = [
    (include_str!("tapes/6.12-page.tape"), true),
    (include_str!("tapes/6.12-plain.tape"), false),
    (include_str!("tapes/6.1.tape"), true),
];

fn lab(lines: [&str; 3], page: bool) -> Lab {
    let drives = lines.map(|line| drives::parse(line, 1).expect("is right"));
    Lab::new(drives.into(), Room::of(1 << 30), page)
}

#[test]
fn a_recorded_guest_is_told_what_it_was_told_then() {
    let requests = TAPES.map(|(tape, page)| replay(tape, &mut lab(DRIVES, page)));
    assert_eq!(requests, [Ok(89), Ok(89), Ok(89)]);
    // The clock's page changes what is said, and no request; another kernel sends them at other times.
    let [page, plain, other] = TAPES.map(|(tape, _)| -> Vec<&str> {
        tape.lines().filter(|line| line.starts_with('x')).collect()
    });
    assert_eq!(page, plain);
    assert_ne!(page, other);
    assert!(TAPES.iter().map(|(tape, _)| tape.len()).sum::<usize>() < 300_000);
}

#[test]
fn another_drive_is_noticed() {
    for (tape, page) in TAPES {
        let mut lines = DRIVES;
        lines[1] = "size=64MiB,positioning=5ms,byte=11ns";
        let error = replay(tape, &mut lab(lines, page)).expect_err("is slower");
        assert!(error.starts_with("line "), "{error}");
    }
}

#[test]
fn a_guest_that_says_something_else_is_noticed() {
    let (tape, page) = TAPES[0];
    let kick = |line: &&str| line.starts_with("D 2 23...");
    let first = tape.lines().position(|line| kick(&line)).expect("the third drive is used");
    let without = |number: usize| -> String {
        let lines = tape.lines().enumerate().filter(|(at, _)| *at != number);
        lines.flat_map(|(_, line)| [line, "\n"]).collect()
    };
    let error = replay(&without(first), &mut lab(DRIVES, page)).expect_err("a kick is missing");
    assert!(error.contains("line "), "{error}");
    for (line, what) in [("C 01", "not what a guest says"), ("M 0 x", "not a line of a tape")] {
        let broken = format!("{}\n{line}\n", tape.lines().next().expect("has a line"));
        let error = replay(&broken, &mut lab(DRIVES, page)).expect_err("is no tape");
        assert!(error.contains("line "), "{error}, {what}");
    }
}
