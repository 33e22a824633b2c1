//! md's superblocks of a study's arrays on devices: there while it runs, gone afterwards, and refused as foreign when
//! it was killed.

use std::fs::{self, OpenOptions};
use std::os::unix::fs::FileExt;

use super::{Bench, STUDY};
use crate::support::Running;

/// Where a superblock of version 1.2 stands, and the array's name in it.
const SUPERBLOCK: usize = 4096;
const NAME: std::ops::Range<usize> = SUPERBLOCK + 32..SUPERBLOCK + 45;

const MAGIC: [u8; 4] = 0xa92b_4efc_u32.to_le_bytes();

/// Whether the superblock of an array of a study's stands on the first device.
fn is_there(bench: &Bench) -> bool {
    let file = OpenOptions::new().read(true).open(&bench.loops[0].file).expect("the file");
    let mut bytes = [0; NAME.end];
    file.read_exact_at(&mut bytes, 0).expect("the file");
    bytes[SUPERBLOCK..].starts_with(&MAGIC) && bytes[NAME] == *b"raidlab-study"
}

/// Whether no superblock stands on any device; what other arrays of the study had there may.
fn is_cleared(bench: &Bench) -> bool {
    bench.contents().iter().all(|one| !one[SUPERBLOCK..].starts_with(&MAGIC))
}

/// Starts a study that ends only when it is stopped, and waits for a superblock.
fn started(bench: &Bench) -> Running {
    let text = STUDY.replace("rounds = 1", "rounds = 1000");
    fs::write(&bench.study, text).expect("the study");
    let (ids, saved) = (bench.ids(), bench.save_directory());
    let all = ["--destructive", "--yes", "--confirm-id", &ids, "--save-dir", &saved];
    let mut run = Running::start(bench.arguments(&all));
    run.wait_until("a superblock", || is_there(bench).then_some(()));
    run
}

#[test]
fn superblocks_are_there_while_a_study_runs_and_gone_afterwards() {
    let name = "superblocks_are_there_while_a_study_runs_and_gone_afterwards";
    let Some(bench) = Bench::new(name) else { return };
    let mut run = started(&bench);
    run.interrupt();
    let ran = run.finish();
    assert_eq!(ran.code, Some(130), "{}", ran.stderr);
    assert!(is_cleared(&bench), "a study that was stopped left a superblock");
    fs::write(&bench.study, STUDY).expect("the study");
    let ran = bench.destroy(&["--overwrite-signatures", "--json", "-"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(is_cleared(&bench), "a study that was done left a superblock");
    let told = "\"metadata\": \"raid1(2): none (md always records whether redundancy is consistent); \
                raid0(2) chunk=64K: Linux md 1.2\"";
    assert!(ran.stdout.contains(told), "{}", ran.stdout);
}

#[test]
fn what_a_killed_study_left_is_refused_by_the_next() {
    let Some(bench) = Bench::new("what_a_killed_study_left_is_refused_by_the_next") else { return };
    // Between two cells the superblock may be gone.
    while !is_there(&bench) {
        started(&bench).kill();
    }
    fs::remove_dir_all(bench.save_directory()).expect("ours");
    fs::write(&bench.study, STUDY).expect("the study");
    bench.refuses(&[], &["linux_raid_member", "raidlab-study", "--overwrite-signatures"]);
    let ran = bench.destroy(&["--overwrite-signatures"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(is_cleared(&bench));
}
