//! Against the real kernel: logs of partial parity that raidlab wrote are recovered by md, and those that md wrote by
//! raidlab, with all members there and with one missing.
//!
//! raidlab's arrays are cut off with requests under way, and md must find no mismatch, and with a member missing what
//! was not being written. md's are copied while they are in use, what their logs protect is spoiled, and raidlab must
//! put it right; and its kernel crashes while it writes. A commit tests some of the cases; all:
//! `RAIDLAB_FULL=1 cargo test -p raidlab-engine --test guests md_ppl`.

use std::fs;
use std::sync::atomic::AtomicBool;

use raidlab_core::geometry::Geometry;
use raidlab_core::{Layout, Sector, Sectors};
use raidlab_metadata::md::{PplEntry, Version};

use crate::extent::Extent;
use crate::guest::guest_or_skip;
use crate::held::{Bench, Log, SECTOR, images, lay_log};
use crate::md_logs_guest::{
    Files, MEMBER, MIB, all, device, devices, head, looked, write_and_copy,
};

/// Sectors of raidlab's arrays that are written.
const WRITTEN: usize = 800;
/// Bytes that the kernel writes.
const FILLED: usize = 3 * MIB;
/// Cases of a sample: the guest's time is short.
const SAMPLE: usize = 3;
/// The device beside those of three members.
const FRESH: usize = 3;

/// What becomes of an array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    /// raidlab is cut off, and md recovers.
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
    log: Log,
    lost: Option<usize>,
}

const fn case(fate: Fate, by_kernel: bool, log: Log, lost: Option<usize>) -> Case {
    Case { fate, by_kernel, log, lost }
}

/// Each has a section of the guest's files; neighbours differ.
const CASES: [Case; 12] = [
    case(Fate::Cut, true, Log::Usual, Some(0)),
    case(Fate::Copied, true, Log::Usual, None),
    case(Fate::Cut, false, Log::Short, None),
    case(Fate::Cut, false, Log::Single, Some(2)),
    case(Fate::Copied, false, Log::Single, Some(0)),
    case(Fate::Crashed, true, Log::Usual, None),
    case(Fate::Cut, true, Log::Single, None),
    case(Fate::Copied, true, Log::Usual, Some(1)),
    case(Fate::Cut, true, Log::Usual, None),
    case(Fate::Crashed, true, Log::Single, Some(2)),
    case(Fate::Cut, false, Log::Short, Some(1)),
    case(Fate::Copied, false, Log::Single, None),
];

fn layout() -> Layout {
    "raid5(3) chunk=64K".parse().unwrap()
}

/// Makes arrays with the kernel.
fn make(section: usize) -> String {
    format!(
        "{}quietly mdadm --create $md --run --homehost=host --name={section} --level=5 -n3 --chunk=64 --assume-clean \
         --consistency-policy=ppl {}\npolicy ppl\nquietly mdadm --stop $md\n",
        head(section),
        devices(section, 0..FRESH, None)
    )
}

/// Recovers what raidlab left, says whether it made everything consistent, and gives what it holds.
fn recover(section: usize, case: &Case) -> String {
    let mut script = format!(
        "{}quietly mdadm --assemble $md --run {}\npolicy ppl\nidle\n\
         quietly dd if=$md of=$SHARE/{section}-data bs=64k count={} iflag=direct\n",
        head(section),
        devices(section, 0..FRESH, case.lost),
        (WRITTEN * SECTOR).div_ceil(65536),
    );
    match case.lost {
        None => script
            .push_str("echo $section $(dmesg | grep -c \"md: resync of RAID array md$section\")\n"),
        Some(lost) => {
            let fresh = device(section, lost);
            script.push_str(&format!(
                "quietly mdadm --zero-superblock {fresh}\nquietly mdadm $md --add {fresh}\nidle\n"
            ));
        }
    }
    script.push_str("consistent\nquietly mdadm --stop $md\n");
    script
}

/// Fills an array, writes blocks of it anew, and copies its members while it is in use.
fn write(section: usize) -> String {
    let filled = format!(
        "{}quietly mdadm --assemble $md {}\npolicy ppl\n\
         quietly dd if=$SHARE/first of=$md bs=1M oflag=direct\n\
         echo 1000 >/sys/block/md$section/md/safe_mode_delay\n",
        head(section),
        devices(section, 0..FRESH, None)
    );
    filled + &write_and_copy(section, 0..FRESH, FILLED)
}

/// The kernel crashes while three processes write.
fn crash(sections: &[usize]) -> String {
    let mut script = String::new();
    for &section in sections {
        script.push_str(&format!(
            "{}quietly mdadm --assemble $md {}\npolicy ppl\n\
             quietly dd if=$SHARE/first of=$md bs=1M oflag=direct\nsync\n",
            head(section),
            devices(section, 0..FRESH, None)
        ));
    }
    for &section in sections {
        for at in [0, 300] {
            script.push_str(&format!(
                "dd if=$SHARE/second of=/dev/md{} bs=4k skip={at} seek={at} count=300 oflag=direct 2>/dev/null &\n",
                section + 1
            ));
        }
    }
    for &section in sections {
        script.push_str(&format!(
            "dd if=$SHARE/second of=/dev/md{} bs=4k skip=600 seek=600 count=30 oflag=direct 2>/dev/null\n",
            section + 1
        ));
    }
    script.push_str("echo c >/proc/sysrq-trigger\n");
    script
}

/// raidlab writes an array and is cut off, twice.
fn cut(files: &Files, section: usize, seed: u64) -> Bench {
    let mut bench = Bench::new(files.read(section, 0..FRESH), WRITTEN, seed);
    for round in 0..2 {
        let mut engine = bench.start(&[]).unwrap();
        let found = bench.read(&mut engine);
        bench.compare(&found, None, &format!("section {section}, round {round}"));
        let left = bench.live(engine, 400);
        files.write(section, 0..FRESH, &left.images);
        bench.restart(left);
    }
    bench
}

/// Whether md makes nothing but what is logged consistent when it finds this.
fn is_known(images: &[Vec<u8>]) -> bool {
    let logs: Vec<_> = images.iter().map(|image| looked(image).partial_parity.unwrap()).collect();
    logs.iter().all(|log| log.is_whole()) && logs.iter().any(|log| log.is_used())
}

/// Makes parity wrong wherever a log protects it, but for what it cannot know without a member; how many entries that
/// were.
fn spoil(images: &mut [Vec<u8>], lost: Option<usize>) -> usize {
    let sizes = vec![Sectors(1 << 12); 3];
    let geometry = Geometry::with_block(&layout(), &sizes, 1).unwrap();
    let mut spoiled = 0;
    for image in images {
        let found = looked(image);
        let start = found.superblock().unwrap().data_offset;
        let log = found.partial_parity.unwrap();
        assert!(log.is_whole(), "{log:?}");
        for entry in log.header.iter().flat_map(|header| &header.entries) {
            let PplEntry { first, partial, data, .. } = *entry;
            let place = geometry.place(Sector(first), 0);
            let written = data.checked_div(partial).unwrap_or(2);
            if written > 1 && lost.is_some() || lost == Some(usize::from(place.member.0)) {
                continue;
            }
            let from = (start + place.at.0) as usize * SECTOR;
            image[from..][..(data / written) as usize].fill(0x5a);
            spoiled += 1;
        }
    }
    spoiled
}

/// raidlab takes over what the kernel left, and finds it as it was written; gives what it holds.
fn take(images: Vec<Vec<u8>>, case: &Case, told: &str) -> (Bench, Vec<u8>) {
    let mut bench = Bench::new(images, FILLED / SECTOR, 1);
    let mut engine =
        bench.start(case.lost.as_slice()).unwrap_or_else(|why| panic!("{told}: {why}"));
    let found = all(&mut engine, FILLED);
    if let Some(lost) = case.lost {
        bench.exchange(&mut engine, lost);
    }
    let differing = engine.scrub(&AtomicBool::new(false)).unwrap();
    assert_eq!(differing, Sectors(0), "{told}");
    (bench, found)
}

/// What was copied while it was in use.
fn take_copied(files: &Files, section: usize, case: &Case) {
    let told = format!("section {section}: {case:?}");
    let copy = |number| fs::read(files.share(&format!("{section}-{number}"))).unwrap();
    let mut images: Vec<Vec<u8>> = (0..FRESH).map(copy).collect();
    assert!(is_known(&images), "{told}");
    let spoiled = spoil(&mut images, case.lost);
    assert!(spoiled > 0, "{told}: nothing is logged");
    let (_, found) = take(images, case, &told);
    assert!(found == files.expected(section), "{told}: what raidlab reads differs");
}

/// What a kernel that crashed left: each sector is the old or the new one.
fn take_crashed(files: &Files, section: usize, case: &Case) {
    let told = format!("section {section}: {case:?}");
    let images = files.read(section, 0..FRESH);
    assert!(images.iter().all(|image| !looked(image).superblock().unwrap().is_clean()), "{told}");
    let (bench, found) = take(images, case, &told);
    // What was being written to the missing member may be anything; at most a few blocks were.
    let excepted = |at: usize| case.lost == Some(usize::from(bench.members[at]));
    files.compare_crashed(&found, excepted, &told);
}

#[test]
fn md_and_raidlab_recover_by_each_others_logs_of_partial_parity() {
    let name = "md_and_raidlab_recover_by_each_others_logs_of_partial_parity";
    let Some(guest) = guest_or_skip(name) else { return };
    let cases = Extent::from_environment().choose(CASES.to_vec(), SAMPLE);
    let guest = guest.cut(&vec![MEMBER as u64; cases.len()]).limit(300);
    let files = Files::new("md-ppl", FRESH + 1, cases.len(), FILLED);
    let numbered = || cases.iter().enumerate();
    let made = numbered().filter(|(_, case)| case.by_kernel).map(|(section, _)| make(section));
    files.run(&guest, &made.collect::<String>()).expect_success("md makes arrays");
    let mut benches = Vec::new();
    let mut script = String::new();
    let mut known = String::new();
    for (section, case) in numbered() {
        let mut all = match case.by_kernel {
            true => files.read(section, 0..FRESH),
            false => {
                let sectors = (MEMBER / SECTOR) as u64;
                images(&layout(), Version::V1_2, case.log, (sectors, section as u8))
            }
        };
        for image in &mut all {
            let superblock = looked(image).superblock().unwrap().clone();
            lay_log(image, superblock, case.log);
        }
        files.write(section, 0..FRESH, &all);
        match case.fate {
            Fate::Cut => {
                let bench = cut(&files, section, section as u64 + 1);
                if case.lost.is_none() {
                    let resyncs = usize::from(!is_known(&files.read(section, 0..FRESH)));
                    known.push_str(&format!("{} {resyncs}\n", section + 1));
                }
                script.push_str(&recover(section, case));
                benches.push((section, bench));
            }
            Fate::Copied => script.push_str(&write(section)),
            Fate::Crashed => {}
        }
    }
    let said = files.run(&guest, &script).expect_success("md recovers, and writes its own");
    assert_eq!(said, known, "md makes everything consistent where a log is not whole only");
    for (section, mut bench) in benches {
        let found = fs::read(files.share(&format!("{section}-data"))).unwrap();
        let lost = cases[section].lost.map(|lost| lost as u16);
        bench.compare(&found[..WRITTEN * SECTOR], lost, &format!("section {section}: md"));
        // And back.
        let mut after = Bench::new(files.read(section, 0..FRESH), WRITTEN, 1);
        let mut engine = after.start(&[]).unwrap();
        let differing = engine.scrub(&AtomicBool::new(false)).unwrap();
        assert_eq!(differing, Sectors(0), "section {section}");
        let read = after.read(&mut engine);
        assert!(read == found[..WRITTEN * SECTOR], "section {section}: raidlab, after md");
    }
    for (section, case) in numbered().filter(|(_, case)| case.fate == Fate::Copied) {
        take_copied(&files, section, case);
    }
    let crashed = numbered().filter(|(_, case)| case.fate == Fate::Crashed);
    let sections: Vec<usize> = crashed.map(|(section, _)| section).collect();
    if !sections.is_empty() {
        let output = files.run(&guest, &crash(&sections));
        assert_eq!(output.status, 125, "the kernel crashes: {output:?}");
    }
    for section in sections {
        take_crashed(&files, section, &cases[section]);
    }
}
