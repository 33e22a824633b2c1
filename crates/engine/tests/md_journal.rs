//! md's journal on drives that lose what was not flushed: whatever a power cut leaves, the array starts again by its
//! journal, also without a member, and holds every sector as it was last answered, or as it was being written.
//!
//! Each seed makes an array, writes it with requests under way at once, cuts the power, loses a member or not, and
//! starts it again, without consent and without a resync. `RAIDLAB_FULL=1` tries forty times as many seeds.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::extent::Extent;
use crate::held::{Bench, Drive, with_journal};
use raidlab_core::contract::{IoOp, IoOutcome};
use raidlab_core::{Layout, Sector, Sectors};
use raidlab_engine::{Engine, MdOptions, Member, MemberRequest, MemberStore};
use raidlab_metadata::md::{Version, journal};

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

/// The array goes on without its journal, and is not started for writing until md has taken the journal away.
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
        Engine::assemble_md(devices, &options).map(|(engine, _)| engine)
    };
    let mut engine = start(true).unwrap();
    engine.write_at(Sector(0), &[1; 64 << 10]).unwrap();
    fails.store(true, Ordering::Relaxed);
    engine.write_at(Sector(64), &[2; 64 << 10]).unwrap();
    engine.flush().unwrap();
    let mut found = vec![0; 96 << 10];
    engine.read_at(Sector(0), &mut found).unwrap();
    assert!(found[..32 << 10].iter().all(|byte| *byte == 1));
    assert!(found[32 << 10..].iter().all(|byte| *byte == 2));
    engine.stop().unwrap();
    fails.store(false, Ordering::Relaxed);
    for with_log in [true, false] {
        let why = start(with_log).unwrap_err().to_string();
        assert!(why.contains("its journal is not among the devices, or out of date"), "{why}");
    }
}

/// A drive that shares with others how many writes are still carried out.
struct Limited(Drive, Arc<AtomicU64>);

impl MemberStore for Limited {
    fn sectors(&self) -> Sectors {
        self.0.sectors()
    }

    fn submit(&mut self, request: MemberRequest) {
        let left = self.1.load(Ordering::Relaxed);
        match request.op() {
            IoOp::Write if left == 0 => return request.complete(IoOutcome::Gone),
            IoOp::Write => self.1.store(left - 1, Ordering::Relaxed),
            _ => {}
        }
        self.0.submit(request);
    }
}

/// The power is cut in the midst of a replay, after each number of its writes: it is done again, with the same end.
#[test]
fn a_replay_may_be_cut_off_anywhere() {
    let mut cut_off = 0;
    for seed in Extent::from_environment().seeds(4, 10) {
        let layout: Layout =
            ["raid5(3) chunk=16K", "raid6(4) chunk=16K"][(seed % 2) as usize].parse().unwrap();
        let lost: &[usize] = if seed % 4 < 2 { &[] } else { &[1] };
        let images = with_journal(&layout, Version::V1_2, (SECTORS, 2048, 0));
        let mut bench = Bench::new(images, WRITTEN, seed);
        bench.unit = 8;
        let engine = bench.start(lost).unwrap();
        let left = bench.live(engine, 200).images;
        let started = |bench: &mut Bench, images: &[Vec<u8>]| {
            bench.drives = images.iter().map(|image| Drive::new(image)).collect();
            let mut engine = bench.start(lost).unwrap();
            bench.read(&mut engine)
        };
        let expected = started(&mut bench, &left);
        for most in 0..40 {
            let writes = Arc::new(AtomicU64::new(most));
            let drives: Vec<Drive> = left.iter().map(|image| Drive::new(image)).collect();
            let there = drives.iter().enumerate().filter(|(number, _)| !lost.contains(number));
            let limited = |(_, drive): (usize, &Drive)| {
                Member::from(Limited(drive.clone(), Arc::clone(&writes)))
            };
            let options = MdOptions { run: true, ..MdOptions::default() };
            let begun = Engine::assemble_md(there.map(limited).collect(), &options);
            cut_off += u64::from(begun.is_err());
            drop(begun);
            let cut: Vec<Vec<u8>> =
                drives.iter().map(|drive| drive.cut(&mut bench.random)).collect();
            let found = started(&mut bench, &cut);
            assert!(found == expected, "seed {seed}, {layout}, cut off after {most} writes");
        }
    }
    assert!(cut_off > 20, "{cut_off}");
}
