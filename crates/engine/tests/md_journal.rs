//! md's journal on drives that lose what was not flushed: whatever a power cut leaves, the array starts again by its
//! journal, also without a member, and holds every sector as it was last answered, or as it was being written.
//!
//! Each seed makes an array, writes it with requests under way at once, cuts the power, loses a member or not, and
//! starts it again, without consent and without a resync. `RAIDLAB_FULL=1` tries forty times as many seeds.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::extent::Extent;
use crate::held::{Bench, Drive, Left, with_journal};
use crate::md_journal_replay::{Limited, left};
use raidlab_core::contract::IoOutcome;
use raidlab_core::{Consistency, Layout, Sector, Sectors};
use raidlab_engine::{Engine, MdFound, MdOptions, Member, MemberRequest, MemberStore};
use raidlab_metadata::md::{Allowed, Features, Role, Version, inspect, journal};

const SECTORS: u64 = 6144;
/// Sectors of the array that are written.
const WRITTEN: usize = 400;
const SEEDS: u64 = 60;

fn try_seed(seed: u64) -> u64 {
    let layouts = [
        "raid5(3) chunk=4K",
        "raid6(4) chunk=8K",
        "raid4(4) chunk=16K",
        "raid5(5) chunk=16K right-asymmetric",
        "raid6(5) chunk=4K left-asymmetric",
    ];
    let layout: Layout = layouts[(seed % 5) as usize].parse().unwrap();
    let version = [Version::V1_2, Version::V1_1][(seed / 5 % 2) as usize];
    // A short one comes around often.
    let in_journal = [1024, 2048, 8192][(seed / 10 % 3) as usize];
    cut_off(&layout, version, in_journal, seed)
}

/// Writes an array with so many sectors of journal, cut off and started again; gives how many rows were replayed.
fn cut_off(layout: &Layout, version: Version, in_journal: u64, seed: u64) -> u64 {
    let told = format!("seed {seed}, {layout}, {version}, journal of {in_journal} sectors");
    let images = with_journal(layout, version, (SECTORS, in_journal, 0));
    let mut bench = Bench::new(images, WRITTEN, seed);
    bench.unit = 8;
    let mut replayed = 0;
    bench.cut_off_and_lose(layout.members, false, &told, |engine| {
        let beginning = engine.beginning();
        assert_eq!(beginning.resync, Sectors(0), "{told}");
        replayed += beginning.replayed.whole + beginning.replayed.alone;
    });
    replayed
}

#[test]
fn what_was_answered_survives_a_power_cut_with_a_member() {
    let seeds = Extent::from_environment().seeds(SEEDS, 40);
    let replayed: u64 = seeds.map(try_seed).sum();
    assert!(replayed > 0, "no journal had anything");
}

/// The smallest that is made has room for what an array of so many members asks for at once.
#[test]
fn the_smallest_journal_is_enough() {
    for layout in ["raid5(3) chunk=16K", "raid6(13) chunk=16K", "raid6(18) chunk=8K"] {
        let layout: Layout = layout.parse().unwrap();
        let least = journal::least(u64::from(layout.members));
        let replayed: u64 = (0..3).map(|seed| cut_off(&layout, Version::V1_2, least, seed)).sum();
        assert!(replayed > 0, "{layout}");
    }
}

/// A drive that fails from some moment on.
struct Failing(Drive, Arc<AtomicBool>);

impl MemberStore for Failing {
    fn sectors(&self) -> Sectors {
        self.0.sectors()
    }

    fn submit(&mut self, request: MemberRequest) {
        match self.1.load(Ordering::Relaxed) {
            true => request.complete(IoOutcome::Gone),
            false => self.0.submit(request),
        }
    }
}

/// The array goes on without its journal, for good: its superblocks say that there is none from then on.
#[test]
fn a_log_device_that_fails_is_given_up() {
    let layout: Layout = "raid5(3) chunk=16K".parse().unwrap();
    let images = with_journal(&layout, Version::V1_2, (SECTORS, 2048, 0));
    let drives: Vec<Drive> = images.iter().map(|image| Drive::new(image)).collect();
    let fails = Arc::new(AtomicBool::new(false));
    let start = |with_log: bool| {
        let members = drives[..3].iter().cloned().map(Member::from);
        let log = Member::from(Failing(drives[3].clone(), Arc::clone(&fails)));
        let devices = members.chain(Some(log).filter(|_| with_log)).collect();
        let options = MdOptions { run: true, ..MdOptions::default() };
        Engine::assemble_md(devices, &options).unwrap()
    };
    let check = |engine: &mut Engine| {
        let mut found = vec![0; 96 << 10];
        engine.read_at(Sector(0), &mut found).unwrap();
        assert!(found[..32 << 10].iter().all(|byte| *byte == 1));
        assert!(found[32 << 10..].iter().all(|byte| *byte == 2));
    };
    let (mut engine, _) = start(true);
    engine.write_at(Sector(0), &[1; 64 << 10]).unwrap();
    fails.store(true, Ordering::Relaxed);
    engine.write_at(Sector(64), &[2; 64 << 10]).unwrap();
    engine.flush().unwrap();
    check(&mut engine);
    engine.stop().unwrap();
    fails.store(false, Ordering::Relaxed);
    for with_log in [true, false] {
        let (mut engine, MdFound { joined, .. }) = start(with_log);
        assert_eq!((joined.journal, joined.consistency), (None, Consistency::Resync));
        assert_eq!(engine.beginning().resync, Sectors(0));
        check(&mut engine);
        assert_eq!(engine.scrub(&AtomicBool::new(false)).unwrap(), Sectors(0));
        engine.stop().unwrap();
    }
}

/// What is written after its log device failed is not written over by what that holds when it is there again.
#[test]
fn a_log_device_that_failed_is_not_believed_again() {
    for seed in Extent::from_environment().seeds(8, 10) {
        let (mut bench, log) = left(seed);
        let told = format!("seed {seed}");
        let mut engine = bench.start(&[]).unwrap();
        let found = bench.read(&mut engine);
        bench.compare(&found, None, &told);
        bench.drives[log].fail();
        let left = bench.live(engine, 300);
        bench.restart(left);
        let mut engine = bench.start(&[]).unwrap();
        let found = bench.read(&mut engine);
        bench.compare(&found, None, &format!("{told}, without"));
        assert_eq!(engine.scrub(&AtomicBool::new(false)).unwrap(), Sectors(0), "{told}");
    }
}

/// Only when told an array goes on without a journal whose device is lost, or out of date; then all of its redundancy
/// is made, and nothing that is written from then on is written over when the device comes back.
#[test]
fn a_lost_journal_is_given_up_when_told() {
    for seed in Extent::from_environment().seeds(12, 10) {
        let (mut bench, log) = left(seed);
        let lost = "its journal is not among the devices, or out of date";
        let why = bench.start(&[log]).unwrap_err();
        assert!(why.contains(lost), "seed {seed}: {why}");
        bench.allowed.ignore_journal = true;
        let why = bench.start(&[]).unwrap_err();
        assert!(why.contains("its journal is among the devices"), "seed {seed}: {why}");
        if seed % 3 == 0 {
            // Used without the copy of it, which is out of date then.
            bench.allowed.ignore_journal = false;
            let drive = bench.drives[log].clone();
            let copy = drive.cut(&mut bench.random);
            for _ in 0..2 {
                let mut engine = bench.start(&[]).unwrap();
                engine.write_at(Sector(0), &[5; 4096]).unwrap();
                engine.stop().unwrap();
            }
            bench.drives[log] = Drive::new(&copy);
            let why = bench.start(&[]).unwrap_err();
            assert!(why.contains(lost), "seed {seed}: {why}");
            bench.allowed.ignore_journal = true;
        }
        let given: &[usize] = if seed % 3 == 0 { &[] } else { &[log] };
        let why = bench.start(&[given, &[0]].concat()).unwrap_err();
        assert!(why.contains("not stopped cleanly"), "seed {seed}: {why}");
        let mut engine = bench.start(given).unwrap();
        assert_eq!(engine.beginning().resync, Sectors(4096), "seed {seed}");
        assert_eq!(engine.scrub(&AtomicBool::new(false)).unwrap(), Sectors(0), "seed {seed}");
        bench.believe(&mut engine);
        let left = bench.live(engine, 200);
        bench.restart(left);
        let inspected = inspect(&mut Member::from(bench.drives[0].clone()));
        let one = inspected.superblock().unwrap();
        assert_eq!((one.features, one.roles[log]), (Features(0), Role::Faulty), "seed {seed}");
        bench.allowed.ignore_journal = false;
        let mut engine = bench.start(&[]).unwrap();
        let found = bench.read(&mut engine);
        bench.compare(&found, None, &format!("seed {seed}, after it was given up"));
        assert_eq!(engine.scrub(&AtomicBool::new(false)).unwrap(), Sectors(0), "seed {seed}");
    }
}

/// With a member missing, too, that takes a word more.
#[test]
fn a_lost_journal_and_a_lost_member_need_consent_each() {
    for seed in Extent::from_environment().seeds(4, 10) {
        let (mut bench, log) = left(seed);
        bench.allowed =
            Allowed { ignore_journal: true, dirty_degraded: true, ..Allowed::default() };
        let mut engine = bench.start(&[log, 1]).unwrap();
        bench.believe(&mut engine);
        bench.exchange(&mut engine, 1);
        assert_eq!(engine.scrub(&AtomicBool::new(false)).unwrap(), Sectors(0), "seed {seed}");
        bench.allowed = Allowed::default();
        let left = bench.live(engine, 200);
        bench.restart(left);
        let mut engine = bench.start(&[]).unwrap();
        let found = bench.read(&mut engine);
        bench.compare(&found, None, &format!("seed {seed}"));
    }
}

/// The power is cut after each number of writes of such a start: what is answered is never written over by the journal.
#[test]
fn a_journal_may_be_given_up_in_the_midst_of_it() {
    let mut answered = 0;
    for seed in Extent::from_environment().seeds(2, 20) {
        let (mut bench, log) = left(seed);
        let images: Vec<Vec<u8>> =
            bench.drives.iter().map(|drive| drive.cut(&mut bench.random)).collect();
        for most in 0..60 {
            let writes = Arc::new(AtomicU64::new(most));
            bench.drives = images.iter().map(|image| Drive::new(image)).collect();
            let members = bench.drives[..log].iter();
            let limited =
                members.map(|drive| Member::from(Limited(drive.clone(), Arc::clone(&writes))));
            let allowed = Allowed { ignore_journal: true, ..Allowed::default() };
            let options = MdOptions { allowed, run: true, ..MdOptions::default() };
            let begun = Engine::assemble_md(limited.collect(), &options);
            let is_written = begun.is_ok_and(|(mut engine, _)| {
                engine.write_at(Sector(0), &[9; 64 << 10]).is_ok() && engine.flush().is_ok()
            });
            answered += u64::from(is_written);
            let left = bench.drives.iter().map(|drive| drive.cut(&mut bench.random)).collect();
            bench.restart(Left { images: left });
            let mut engine = bench.start(&[]).unwrap_or_else(|why| panic!("{seed} {most}: {why}"));
            assert_eq!(engine.scrub(&AtomicBool::new(false)).unwrap(), Sectors(0));
            let found = bench.read(&mut engine);
            let is_there = found[..64 << 10].iter().all(|byte| *byte == 9);
            assert!(is_there || !is_written, "seed {seed}, after {most} writes");
        }
    }
    // How many of the writes are the array's own, such as those of its superblocks, depends on how long it takes.
    assert!(answered > 0, "{answered}");
}
