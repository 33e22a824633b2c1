//! The replay of md's journal when the power is cut in the midst of it, with a chunk missing or not.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use raidlab_core::contract::{IoOp, IoOutcome};
use raidlab_core::{Layout, Sector, Sectors};
use raidlab_engine::{Engine, EngineError, MdFound, MdOptions, Member, MemberRequest, MemberStore};
use raidlab_metadata::md::journal::begin_anew;
use raidlab_metadata::md::{Journal, JournalFound, Superblock, Version, inspect};

use crate::extent::Extent;
use crate::held::{Bench, Drive, SECTOR, with_journal};

const SECTORS: u64 = 6144;
/// Sectors of the array that are written.
const WRITTEN: usize = 400;
const PAGE: usize = 4096;

/// A drive that carries out so many writes more, together with others.
pub(crate) struct Limited(pub(crate) Drive, pub(crate) Arc<AtomicU64>);

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

fn layout(seed: u64) -> Layout {
    ["raid5(3) chunk=16K", "raid6(4) chunk=16K"][(seed % 2) as usize].parse().unwrap()
}

/// An array that was cut off with requests under way, and the number of its log device.
pub(crate) fn left(seed: u64) -> (Bench, usize) {
    let layout = layout(seed);
    let images = with_journal(&layout, Version::V1_2, (SECTORS, 2048, 0));
    let mut bench = Bench::new(images, WRITTEN, seed);
    bench.unit = 8;
    let engine = bench.start(&[]).unwrap();
    let left = bench.live(engine, 300);
    bench.restart(left);
    (bench, usize::from(layout.members))
}

fn images(bench: &mut Bench) -> Vec<Vec<u8>> {
    bench.drives.iter().map(|drive| drive.cut(&mut bench.random)).collect()
}

fn drives(images: &[Vec<u8>]) -> Vec<Drive> {
    images.iter().map(|image| Drive::new(image)).collect()
}

/// How many writes are still carried out.
fn limit(most: u64) -> Arc<AtomicU64> {
    Arc::new(AtomicU64::new(most))
}

/// Starts an array without the drives that are `lost`, each of the others with a limit, if it has one.
fn start(
    bench: &Bench,
    lost: &[usize],
    limit: impl Fn(usize) -> Option<Arc<AtomicU64>>,
) -> Result<(Engine, MdFound), EngineError> {
    let there = bench.drives.iter().enumerate().filter(|(number, _)| !lost.contains(number));
    let device = |(number, drive): (usize, &Drive)| match limit(number) {
        Some(limit) => Member::from(Limited(drive.clone(), limit)),
        None => Member::from(drive.clone()),
    };
    let options = MdOptions { run: true, ..MdOptions::default() };
    Engine::assemble_md(there.map(device).collect(), &options)
}

/// The power is cut in the midst of a replay, after each number of its writes: it is done again, with the same end.
#[test]
fn a_replay_may_be_cut_off_anywhere() {
    let mut cut_off = 0;
    for seed in Extent::from_environment().seeds(4, 10) {
        let lost: &[usize] = if seed % 4 < 2 { &[] } else { &[1] };
        let (mut bench, _) = left(seed);
        let left = images(&mut bench);
        cut_off += cut_everywhere(&mut bench, &left, lost, &format!("seed {seed}"));
    }
    assert!(cut_off > 20, "{cut_off}");
}

/// How many starts from these images were cut off, each after another number of writes.
fn cut_everywhere(bench: &mut Bench, left: &[Vec<u8>], lost: &[usize], told: &str) -> u64 {
    let mut cut_off = 0;
    let started = |bench: &mut Bench, images: &[Vec<u8>]| {
        bench.drives = drives(images);
        let mut engine = bench.start(lost).unwrap();
        bench.read(&mut engine)
    };
    let expected = started(bench, left);
    for most in 0..40 {
        bench.drives = drives(left);
        let all = limit(most);
        cut_off += u64::from(start(bench, lost, |_| Some(Arc::clone(&all))).is_err());
        let cut = images(bench);
        let found = started(bench, &cut);
        assert!(found == expected, "{told}, without {lost:?}, cut off after {most} writes");
    }
    cut_off
}

/// An array that holds something everywhere and was stopped, with data alone in its journal, of the first chunk of some
/// rows, as md's write-back mode leaves them; and what it holds when they are replayed.
fn alone(seed: u64) -> (Bench, Vec<Vec<u8>>, Vec<u8>) {
    let images = with_journal(&layout(seed), Version::V1_2, (SECTORS, 2048, 0));
    let mut bench = Bench::new(images, WRITTEN, seed);
    let mut holds: Vec<u8> = (0..WRITTEN).flat_map(|at| [at as u8 | 1; SECTOR]).collect();
    let mut engine = bench.start(&[]).unwrap();
    engine.write_at(Sector(0), &holds).unwrap();
    engine.stop().unwrap();
    let mut images = self::images(&mut bench);
    let log = images.len() - 1;
    let found = inspect(&mut Member::from(Drive::new(&images[log])));
    let one = Superblock { recovery: 0, ..found.superblock().unwrap().clone() };
    // Begun anew at its start.
    let (ring, block) =
        (one.data_offset as usize * SECTOR, begin_anew(&one.array, &JournalFound::default(), 7).1);
    images[log][ring..].fill(0);
    images[log][ring..ring + PAGE].copy_from_slice(&block);
    let at = one.super_offset as usize * SECTOR;
    one.emit(&mut images[log][at..at + PAGE]).unwrap();
    let mut journal = Journal::of(&mut Member::from(Drive::new(&images[log])), &one).unwrap();
    for row in [0, 16, 32, 72] {
        let page = vec![0x40 + row as u8; PAGE];
        let rows = journal.rows(&journal.entry(row, [1, 0])).unwrap();
        let sum = journal.sum([&page[..]].into_iter());
        journal.begin();
        journal.add(&rows, 0, &[sum]);
        let mut head = vec![0; PAGE];
        let put = journal.put(&mut head).unwrap().at.bytes() as usize;
        images[log][put..put + PAGE].copy_from_slice(&head);
        images[log][put + PAGE..put + 2 * PAGE].copy_from_slice(&page);
        // Both layouts have two chunks of data, of 32 sectors.
        let at = (row / 32 * 64 + row % 32) as usize * SECTOR;
        holds[at..at + PAGE].copy_from_slice(&page);
    }
    (bench, images, holds)
}

/// The same of data that stand alone, which parity is made of, with any chunk of their rows missing: what a missing
/// member held is not made of half of what replaced it.
#[test]
fn a_replay_of_data_alone_may_be_cut_off_anywhere() {
    for seed in 0..2 {
        let (mut bench, left, holds) = alone(seed);
        for lost in 0..left.len() - 1 {
            bench.drives = drives(&left);
            let mut engine = bench.start(&[lost]).unwrap();
            assert!(engine.beginning().replayed.alone == 4, "{:?}", engine.beginning());
            assert!(bench.read(&mut engine) == holds, "seed {seed}, without {lost}");
            drop(engine);
            let cut_off = cut_everywhere(&mut bench, &left, &[lost], &format!("seed {seed}"));
            assert!(cut_off > 5, "{cut_off}");
        }
    }
}
