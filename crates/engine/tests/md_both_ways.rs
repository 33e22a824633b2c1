//! Against the real kernel: md and raidlab each write arrays that the other made, degraded, left dirty or half
//! rebuilt, and take them back.
//!
//! An array has 1 MiB each of what was written first, of what was written after a member was lost, and of what the
//! other side writes at the end. Whoever takes over makes redundancy consistent, and compares all of it.

mod cases;
mod raidlab;
mod script;

use crate::extent::Extent;
use crate::guest::{Guest, TempDir, guest_or_skip};
use cases::{Case, MEMBER, Maker, all};
use raidlab::Files;

/// Cases of a sample: the guest's time is short.
const SAMPLE: usize = 3;
/// Sections of one guest.
const MOST: usize = 15;

/// All of them: `RAIDLAB_FULL=1 cargo test -p raidlab-engine --test guests md_both_ways`.
#[test]
fn md_and_raidlab_write_each_others_arrays() {
    let name = "md_and_raidlab_write_each_others_arrays";
    let chosen = Extent::from_environment().choose(all(), SAMPLE);
    for cases in chosen.chunks(MOST) {
        let Some(guest) = guest_or_skip(name) else { return };
        let guest = guest.cut(&vec![MEMBER; cases.len()]).limit(300);
        let directory = TempDir::new("md-both");
        let files = Files::new(&directory, cases.len());
        std::fs::write(files.share().join("pattern"), files.pattern()).unwrap();
        let mut made = String::new();
        for (section, case) in cases.iter().enumerate() {
            println!("{case}");
            match case.maker {
                Maker::Raidlab => files.make(section, case),
                Maker::Kernel => {}
            }
            made.push_str(&script::first(section, case));
        }
        run(&guest, &files, &made, cases, "md takes over what raidlab made, and makes its own");
        let mut taken = String::new();
        for (section, case) in cases.iter().enumerate() {
            files.copied_back(section, case);
            println!("{case}: raidlab takes over");
            files.take(section, case);
            taken.push_str(&script::last(section, case));
        }
        run(&guest, &files, &taken, cases, "md takes all of them back");
    }
}

fn run(guest: &Guest, files: &Files, script: &str, cases: &[Case], what: &str) {
    let script = format!("{}\n{script}", script::FUNCTIONS);
    let said = guest.run(&script, files.devices(), files.share()).expect_success(what);
    let good: String = cases.iter().map(|case| format!("{} good\n", case.name())).collect();
    assert_eq!(said, good, "{what}");
}
