//! Against the real kernel: journals that raidlab wrote are replayed by md, and those that md wrote by raidlab, with
//! all members there and with one missing.
//!
//! raidlab's arrays are cut off with requests under way, and md must find every sector as it was answered, and no
//! mismatch. md's are copied while they are in use, in its write-through and write-back modes, and its kernel crashes
//! while it writes; raidlab must find the same. A commit tests some of the cases; all:
//! `RAIDLAB_FULL=1 cargo test -p raidlab-engine --test guests md_journal`.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

use raidlab_core::{Layout, Sector, Sectors};
use raidlab_engine::Engine;
use raidlab_metadata::md::Version;
use raidlab_random::SplitMix64;

use crate::extent::Extent;
use crate::guest::{Guest, TempDir, guest_or_skip};
use crate::held::{Bench, SECTOR, with_journal};
use crate::made::pattern;

const MIB: usize = 1 << 20;
/// Bytes of each device.
const MEMBER: usize = 6 * MIB;
/// Sectors of raidlab's arrays that are written.
const WRITTEN: usize = 800;
const BLOCK: usize = 4096;
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
const CASES: [Case; 12] = [
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

/// The guest's files, and what is written.
struct Files {
    directory: TempDir,
    devices: Vec<PathBuf>,
    patterns: [Vec<u8>; 2],
}

impl Files {
    fn new(sections: usize) -> Self {
        let directory = TempDir::new("md-journal");
        let device = |name| directory.file(name, (sections * MEMBER) as u64);
        let devices = ["a", "b", "c", "d", "e"].map(device).into();
        fs::create_dir(directory.path().join("share")).unwrap();
        let patterns = [3, 5].map(|seed| pattern(FILLED, seed));
        let files = Self { directory, devices, patterns };
        for (pattern, name) in files.patterns.iter().zip(["first", "second"]) {
            fs::write(files.share(name), pattern).unwrap();
        }
        files
    }

    fn share(&self, name: &str) -> PathBuf {
        self.directory.path().join("share").join(name)
    }

    fn run(&self, guest: &Guest, script: &str) -> crate::guest::Output {
        guest.run(&format!("{FUNCTIONS}\n{script}"), &self.devices, &self.share(""))
    }

    fn read(&self, section: usize, case: &Case) -> Vec<Vec<u8>> {
        let image = |number: usize| {
            let mut bytes = vec![0; MEMBER];
            let file = File::open(&self.devices[number]).unwrap();
            file.read_exact_at(&mut bytes, (section * MEMBER) as u64).unwrap();
            bytes
        };
        case.numbers().map(image).collect()
    }

    fn write(&self, section: usize, case: &Case, images: &[Vec<u8>]) {
        for (number, bytes) in case.numbers().zip(images) {
            let file = File::options().write(true).open(&self.devices[number]).unwrap();
            file.write_all_at(bytes, (section * MEMBER) as u64).unwrap();
        }
    }
}

const FUNCTIONS: &str = r#"
set -e
quietly() { "$@" >/dev/null 2>$SHARE/log || { cat $SHARE/log >&2; echo "failed: $*" >&2; exit 1; }; }
idle() {
    local try sys=/sys/block/md$section/md
    for try in 1 2 3 4 5 6 7 8 9; do
        mdadm --wait $md >/dev/null 2>&1 || true
        [ "$(cat $sys/sync_action)" != idle ] || return 0
    done
}
consistent() {
    local sys=/sys/block/md$section/md
    [ "$(cat $sys/degraded)" = 0 ] || { echo "$md: degraded" >&2; exit 1; }
    echo check >$sys/sync_action
    mdadm --wait $md >/dev/null 2>&1 || true
    [ "$(cat $sys/mismatch_cnt)" = 0 ] || { echo "$md: $(cat $sys/mismatch_cnt) mismatches" >&2; exit 1; }
}
journalled() {
    [ "$(cat /sys/block/md$section/md/consistency_policy)" = journal ] || { echo "$md: no journal" >&2; exit 1; }
}
"#;

fn device(section: usize, number: usize) -> String {
    format!("/dev/ubd{}{}", char::from(b'a' + number as u8), section + 1)
}

fn devices(section: usize, case: &Case, lost: Option<usize>) -> String {
    let there = case.numbers().filter(|number| Some(*number) != lost);
    there.map(|number| device(section, number)).collect::<Vec<_>>().join(" ")
}

fn head(section: usize) -> String {
    format!("section={0} md=/dev/md{0}\n", section + 1)
}

/// Makes arrays with the kernel.
fn make(section: usize, case: &Case) -> String {
    let layout = case.layout();
    let level = if layout.members == 4 { 6 } else { 5 };
    format!(
        "{}quietly mdadm --create $md --run --homehost=host --name={section} --level={level} -n{} --chunk=64 \
         --assume-clean --write-journal {} {}\njournalled\nquietly mdadm --stop $md\n",
        head(section),
        layout.members,
        device(section, LOG),
        devices(section, case, Some(LOG))
    )
}

/// Replays what raidlab left, and gives what it holds.
fn replay(section: usize, case: &Case) -> String {
    let mut script = format!(
        "{}quietly mdadm --assemble $md --run {}\njournalled\nidle\n\
         quietly dd if=$md of=$SHARE/{section}-data bs=64k count={} iflag=direct\n",
        head(section),
        devices(section, case, case.lost),
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

/// Blocks that the kernel writes anew one by one.
fn rewritten(section: usize) -> Vec<usize> {
    let mut random = SplitMix64::new(section as u64);
    (0..14).map(|_| random.below((FILLED / BLOCK) as u64) as usize).collect()
}

/// Starts an array that is filled, in the mode of the case.
fn fill(section: usize, case: &Case) -> String {
    format!(
        "{}quietly mdadm --assemble $md {}\njournalled\nquietly dd if=$SHARE/first of=$md bs=1M oflag=direct\n\
         echo {} >/sys/block/md$section/md/journal_mode\n",
        head(section),
        devices(section, case, None),
        case.mode
    )
}

/// Fills an array, writes blocks of it anew, and copies its members while it is in use.
fn write(section: usize, case: &Case) -> String {
    let mut script = fill(section, case);
    for block in rewritten(section) {
        script.push_str(&format!(
            "quietly dd if=$SHARE/second of=$md bs=4k skip={block} seek={block} count=1 oflag=direct\n"
        ));
    }
    for number in case.numbers() {
        script.push_str(&format!(
            "quietly dd if={} of=$SHARE/{section}-{number} bs=1M count={} iflag=direct\n",
            device(section, number),
            MEMBER / MIB
        ));
    }
    script.push_str("quietly mdadm --stop $md\n");
    script
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
    let mut bench = bench(files.read(section, case), WRITTEN, seed);
    for round in 0..2 {
        let mut engine = bench.start(&[]).unwrap();
        let found = bench.read(&mut engine);
        bench.compare(&found, None, &format!("section {section}, round {round}"));
        let left = bench.live(engine, 400);
        files.write(section, case, &left.images);
        bench.restart(left);
    }
    bench
}

fn all(engine: &mut Engine, bytes: usize) -> Vec<u8> {
    let mut all = vec![0; bytes];
    engine.read_at(Sector(0), &mut all).unwrap();
    all
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
    let mut expected = files.patterns[0].clone();
    for block in rewritten(section) {
        let at = block * BLOCK..(block + 1) * BLOCK;
        expected[at.clone()].copy_from_slice(&files.patterns[1][at]);
    }
    assert!(found == expected, "{told}: what raidlab reads differs");
}

/// What a kernel that crashed left: each sector is the old or the new one.
fn take_crashed(files: &Files, section: usize, case: &Case) {
    let told = format!("section {section}: {case:?}");
    let (found, _) = take(files.read(section, case), case, &told);
    let (old, new) = (files.patterns[0].chunks(SECTOR), files.patterns[1].chunks(SECTOR));
    let mut renewed = 0;
    for (at, ((sector, old), new)) in found.chunks(SECTOR).zip(old).zip(new).enumerate() {
        renewed += usize::from(sector == new);
        assert!(sector == old || sector == new, "{told}: sector {at}");
    }
    assert!(renewed > 0 && renewed < FILLED / SECTOR, "{told}: {renewed} sectors are new");
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
    let files = Files::new(cases.len());
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
            files.write(section, case, &images);
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
        let mut after = bench(files.read(section, &cases[section]), WRITTEN, 1);
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
