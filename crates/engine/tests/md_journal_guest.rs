//! Against the real kernel: journals that raidlab wrote are replayed by md, and those that md wrote by raidlab, with
//! all members there and with one missing.
//!
//! raidlab's arrays are cut off with requests under way, and md must find every sector as it was answered, and no
//! mismatch. md's are copied while they are in use, in its write-through and write-back modes, and its kernel crashes
//! while it writes; raidlab must find the same. A commit tests some of the cases; all:
//! `RAIDLAB_FULL=1 cargo test -p raidlab-engine --test guests md_journal`.

use std::fs;
use std::sync::atomic::AtomicBool;

use raidlab_core::{Layout, Sector, Sectors};
use raidlab_metadata::md::Version;

use crate::extent::Extent;
use crate::guest::guest_or_skip;
use crate::held::{Bench, SECTOR, with_journal};
use crate::md_logs_guest::{BLOCK, Files, MEMBER, MIB, all, device, devices, head, write_and_copy};

/// Sectors of raidlab's arrays that are written.
const WRITTEN: usize = 800;
/// Bytes that the kernel writes.
const FILLED: usize = 2 * MIB;
/// Cases of a sample: the guest's time is short.
const SAMPLE: usize = 3;
/// The log device is behind the members of the larger layout.
const LOG: usize = 4;

/// What becomes of an array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    /// raidlab is cut off, and md replays.
    Cut,
    /// md's is copied while in use.
    Copied,
    /// md's kernel crashes.
    Crashed,
}

#[derive(Clone, Copy, Debug)]
struct Case {
    fate: Fate,
    by_kernel: bool,
    layout: &'static str,
    /// md's mode.
    mode: &'static str,
    lost: Option<usize>,
}

const THROUGH: &str = "write-through";
const BACK: &str = "write-back";
const RAID5: &str = "raid5(3) chunk=64K";
const RAID6: &str = "raid6(4) chunk=64K";

const fn case(
    fate: Fate,
    by_kernel: bool,
    layout: &'static str,
    mode: &'static str,
    lost: Option<usize>,
) -> Case {
    Case { fate, by_kernel, layout, mode, lost }
}

/// Each has a section of the guest's files; neighbours differ.
const CASES: [Case; 14] = [
    case(Fate::Cut, true, RAID5, THROUGH, Some(0)),
    case(Fate::Copied, true, RAID5, BACK, None),
    case(Fate::Crashed, true, RAID6, THROUGH, None),
    case(Fate::Cut, false, RAID6, THROUGH, Some(2)),
    case(Fate::Copied, true, RAID6, BACK, Some(1)),
    case(Fate::Cut, false, RAID5, THROUGH, None),
    case(Fate::Copied, true, RAID5, THROUGH, Some(2)),
    case(Fate::Crashed, true, RAID5, BACK, Some(1)),
    case(Fate::Cut, true, RAID6, THROUGH, None),
    case(Fate::Copied, true, RAID5, BACK, Some(0)),
    case(Fate::Crashed, true, RAID5, THROUGH, Some(2)),
    case(Fate::Copied, true, RAID6, THROUGH, None),
    case(Fate::Crashed, false, RAID5, THROUGH, Some(1)),
    case(Fate::Copied, false, RAID6, BACK, Some(3)),
];

impl Case {
    fn layout(&self) -> Layout {
        self.layout.parse().unwrap()
    }

    fn members(&self) -> usize {
        usize::from(self.layout().members)
    }

    /// The guest's devices: members, then the log device.
    fn numbers(&self) -> impl Iterator<Item = usize> {
        (0..self.members()).chain([LOG])
    }
}

/// Makes arrays with the kernel.
fn make(section: usize, case: &Case) -> String {
    let layout = case.layout();
    let level = if layout.members == 4 { 6 } else { 5 };
    format!(
        "{}quietly mdadm --create $md --run --homehost=host --name={section} --level={level} -n{} --chunk=64 \
         --assume-clean --write-journal {} {}\npolicy journal\nquietly mdadm --stop $md\n",
        head(section),
        layout.members,
        device(section, LOG),
        devices(section, case.numbers(), Some(LOG))
    )
}

/// Replays what raidlab left, and gives what it holds.
fn replay(section: usize, case: &Case) -> String {
    let mut script = format!(
        "{}quietly mdadm --assemble $md --run {}\npolicy journal\nidle\n\
         quietly dd if=$md of=$SHARE/{section}-data bs=64k count={} iflag=direct\n",
        head(section),
        devices(section, case.numbers(), case.lost),
        (WRITTEN * SECTOR).div_ceil(65536),
    );
    if let Some(lost) = case.lost {
        let fresh = device(section, lost);
        script.push_str(&format!(
            "quietly mdadm --zero-superblock {fresh}\nquietly mdadm $md --add {fresh}\nidle\n"
        ));
    }
    script.push_str("consistent\nquietly mdadm --stop $md\n");
    script
}

/// Starts an array that is filled, in the mode of the case.
fn fill(section: usize, case: &Case) -> String {
    format!(
        "{}quietly mdadm --assemble $md {}\npolicy journal\nquietly dd if=$SHARE/first of=$md bs=1M oflag=direct\n\
         echo {} >/sys/block/md$section/md/journal_mode\n",
        head(section),
        devices(section, case.numbers(), None),
        case.mode
    )
}

/// Fills an array, writes blocks of it anew, and copies its members while it is in use.
fn write(section: usize, case: &Case) -> String {
    fill(section, case) + &write_and_copy(section, case.numbers(), FILLED)
}

/// The kernel crashes while three processes write.
fn crash(cases: &[(usize, Case)]) -> String {
    let mut script: String = cases.iter().map(|(section, case)| fill(*section, case)).collect();
    script.push_str("sync\n");
    let write = |section: usize, at: usize, count: usize| {
        format!(
            "dd if=$SHARE/second of=/dev/md{} bs=4k skip={at} seek={at} count={count} oflag=direct 2>/dev/null",
            section + 1
        )
    };
    for (section, _) in cases {
        for at in [0, 200] {
            script.push_str(&format!("{} &\n", write(*section, at, 200)));
        }
    }
    for (section, _) in cases {
        script.push_str(&format!("{}\n", write(*section, 400, 30)));
    }
    script.push_str("echo c >/proc/sysrq-trigger\n");
    script
}

fn bench(images: Vec<Vec<u8>>, sectors: usize, seed: u64) -> Bench {
    let mut bench = Bench::new(images, sectors, seed);
    bench.unit = BLOCK / SECTOR;
    bench
}

/// raidlab writes an array and is cut off, twice.
fn cut(files: &Files, section: usize, case: &Case, seed: u64) -> Bench {
    let mut bench = bench(files.read(section, case.numbers()), WRITTEN, seed);
    for round in 0..2 {
        let mut engine = bench.start(&[]).unwrap();
        let found = bench.read(&mut engine);
        bench.compare(&found, None, &format!("section {section}, round {round}"));
        let left = bench.live(engine, 400);
        files.write(section, case.numbers(), &left.images);
        bench.restart(left);
    }
    bench
}

/// raidlab takes over what the kernel left, and finds redundancy right; gives what it holds, and what it replayed.
fn take(images: Vec<Vec<u8>>, case: &Case, told: &str) -> (Vec<u8>, raidlab_engine::Replayed) {
    let mut bench = bench(images, FILLED / SECTOR, 1);
    let mut engine =
        bench.start(case.lost.as_slice()).unwrap_or_else(|why| panic!("{told}: {why}"));
    let found = all(&mut engine, FILLED);
    let replayed = engine.beginning().replayed;
    assert_eq!(engine.beginning().resync, Sectors(0), "{told}");
    if let Some(lost) = case.lost {
        bench.exchange(&mut engine, lost);
    }
    let differing = engine.scrub(&AtomicBool::new(false)).unwrap();
    assert_eq!(differing, Sectors(0), "{told}");
    (found, replayed)
}

/// What was copied while it was in use.
fn take_copied(files: &Files, section: usize, case: &Case) {
    let told = format!("section {section}: {case:?}");
    let copy = |number| fs::read(files.share(&format!("{section}-{number}"))).unwrap();
    let (found, replayed) = take(case.numbers().map(copy).collect(), case, &told);
    let rows = if case.mode == BACK { replayed.alone } else { replayed.whole };
    assert!(rows > 0, "{told}: {replayed:?}");
    assert!(found == files.expected(section), "{told}: what raidlab reads differs");
}

/// What a kernel that crashed left: each sector is the old or the new one.
fn take_crashed(files: &Files, section: usize, case: &Case) {
    let told = format!("section {section}: {case:?}");
    let (found, _) = take(files.read(section, case.numbers()), case, &told);
    files.compare_crashed(&found, |_| false, &told);
    // What was answered before the crash.
    let last = 400 * BLOCK..430 * BLOCK;
    assert!(found[last.clone()] == files.patterns[1][last], "{told}: what was answered");
}

#[test]
fn md_and_raidlab_replay_each_others_journals() {
    let name = "md_and_raidlab_replay_each_others_journals";
    let Some(guest) = guest_or_skip(name) else { return };
    let cases = Extent::from_environment().choose(CASES.to_vec(), SAMPLE);
    let guest = guest.cut(&vec![MEMBER as u64; cases.len()]).limit(300);
    let files = Files::new("md-journal", LOG + 1, cases.len(), FILLED);
    let numbered = || cases.iter().enumerate();
    let of = |fate: Fate| numbered().filter(move |(_, case)| case.fate == fate);
    let made = numbered().filter(|(_, case)| case.by_kernel);
    let made: String = made.map(|(section, case)| make(section, case)).collect();
    files.run(&guest, &made).expect_success("md makes arrays");
    let mut benches = Vec::new();
    let mut script = String::new();
    for (section, case) in numbered() {
        if !case.by_kernel {
            let sectors = (MEMBER / SECTOR) as u64;
            let (layout, number) = (case.layout(), section as u8);
            let images = with_journal(&layout, Version::V1_2, (sectors, 8192, number));
            files.write(section, case.numbers(), &images);
        }
        match case.fate {
            Fate::Cut => {
                benches.push((section, cut(&files, section, case, section as u64 + 1)));
                script.push_str(&replay(section, case));
            }
            Fate::Copied => script.push_str(&write(section, case)),
            Fate::Crashed => {}
        }
    }
    files.run(&guest, &script).expect_success("md replays, and writes its own");
    for (section, mut before) in benches {
        let found = fs::read(files.share(&format!("{section}-data"))).unwrap();
        before.compare(&found[..WRITTEN * SECTOR], None, &format!("section {section}: md"));
        // And back.
        let mut after = bench(files.read(section, cases[section].numbers()), WRITTEN, 1);
        let mut engine = after.start(&[]).unwrap();
        let differing = engine.scrub(&AtomicBool::new(false)).unwrap();
        assert_eq!(differing, Sectors(0), "section {section}");
        let read = after.read(&mut engine);
        assert!(read == found[..WRITTEN * SECTOR], "section {section}: raidlab, after md");
    }
    of(Fate::Copied).for_each(|(section, case)| take_copied(&files, section, case));
    let crashed: Vec<(usize, Case)> =
        of(Fate::Crashed).map(|(section, case)| (section, *case)).collect();
    if !crashed.is_empty() {
        let output = files.run(&guest, &crash(&crashed));
        assert_eq!(output.status, 125, "the kernel crashes: {output:?}");
    }
    crashed.iter().for_each(|(section, case)| take_crashed(&files, *section, case));
}

/// How the journal of an array was given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum GivenUp {
    /// At a start without its device, after which the array was stopped.
    AtStart,
    /// The same, and cut off with requests under way.
    CutOff,
    /// Its device failed while the array ran.
    Running,
}

/// An array of raidlab's with a journal that was given up, its devices and what it holds.
fn give_up(how: GivenUp, number: u8) -> (Bench, Vec<u8>) {
    let layout: Layout = RAID5.parse().unwrap();
    let sectors = (MEMBER / SECTOR) as u64;
    let images = with_journal(&layout, Version::V1_2, (sectors, 8192, number));
    let mut bench = bench(images, WRITTEN, u64::from(number) + 1);
    let engine = bench.start(&[]).unwrap();
    let left = bench.live(engine, 400);
    bench.restart(left);
    let log = usize::from(layout.members);
    let lost: &[usize] = if how == GivenUp::Running { &[] } else { &[log] };
    bench.allowed.ignore_journal = how != GivenUp::Running;
    let mut engine = bench.start(lost).unwrap();
    if how == GivenUp::Running {
        bench.drives[log].fail();
        engine.write_at(Sector(0), &[7; 4 * BLOCK]).unwrap();
        engine.flush().unwrap();
    }
    bench.believe(&mut engine);
    let found = bench.read(&mut engine);
    match how {
        GivenUp::CutOff => {
            let left = bench.live(engine, 400);
            bench.restart(left);
        }
        _ => engine.stop().unwrap(),
    }
    (bench, found)
}

/// md starts such an array without being forced to, whether it is given the old log device or not.
#[test]
fn md_goes_on_where_a_journal_was_given_up() {
    let Some(guest) = guest_or_skip("md_goes_on_where_a_journal_was_given_up") else { return };
    let all = [GivenUp::AtStart, GivenUp::CutOff, GivenUp::Running];
    let guest = guest.cut(&[MEMBER as u64; 3]);
    let files = Files::new("md-journal-given-up", LOG + 1, all.len(), 0);
    let numbers = || (0..3).chain([LOG]);
    let mut script = String::new();
    let mut benches = Vec::new();
    for (section, how) in all.into_iter().enumerate() {
        let (mut bench, found) = give_up(how, section as u8);
        let images: Vec<Vec<u8>> =
            bench.drives.iter().map(|drive| drive.cut(&mut bench.random)).collect();
        files.write(section, numbers(), &images);
        let (first, again) =
            (devices(section, numbers(), Some(LOG)), devices(section, numbers(), None));
        script.push_str(&format!(
            "{}quietly mdadm --assemble $md {first}\npolicy resync\nidle\nconsistent\n\
             quietly dd if=$md of=$SHARE/{section}-data bs=64k count={} iflag=direct\n\
             quietly mdadm --stop $md\nquietly mdadm --assemble $md {again}\npolicy resync\nconsistent\n\
             quietly mdadm --stop $md\n",
            head(section),
            (WRITTEN * SECTOR).div_ceil(65536),
        ));
        benches.push((bench, found, how));
    }
    files.run(&guest, &script).expect_success("md goes on without");
    for (section, (mut bench, before, how)) in benches.into_iter().enumerate() {
        let found = fs::read(files.share(&format!("{section}-data"))).unwrap();
        let found = &found[..WRITTEN * SECTOR];
        assert!(how == GivenUp::CutOff || found == before, "{how:?}");
        bench.compare(found, None, &format!("{how:?}"));
    }
}
