//! The replay of md's journal when something goes wrong in the midst of it: power, a member, with a chunk missing.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use raidlab_core::contract::{IoOp, IoOutcome};
use raidlab_core::geometry::Geometry;
use raidlab_core::{Layout, MemberIndex, Sector, Sectors};
use raidlab_engine::{Engine, EngineError, MdFound, MdOptions, Member, MemberRequest, MemberStore};
use raidlab_metadata::md::journal::begin_anew;
use raidlab_metadata::md::{Features, Journal, JournalFound, Superblock, Version, Why, inspect};

use crate::extent::Extent;
use crate::held::{Bench, Drive, Left, SECTOR, with_journal};

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
    assert!(cut_off > 0, "{cut_off}");
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
            let told = format!("seed {seed}, without {lost}");
            replays_alone(&mut bench, &left, &[lost], &holds, &told);
            let cut_off = cut_everywhere(&mut bench, &left, &[lost], &format!("seed {seed}"));
            assert!(cut_off > 0, "{cut_off}");
        }
    }
}

/// Changes what a member's superblock says, and what the member holds.
fn change(image: &mut [u8], change: impl FnOnce(&mut Superblock, &mut [u8])) {
    let found = inspect(&mut Member::from(Drive::new(image)));
    let mut one = found.superblock().unwrap().clone();
    change(&mut one, image);
    let at = one.super_offset as usize * SECTOR;
    one.emit(&mut image[at..at + PAGE]).unwrap();
}

/// Lists the first page of a member's data as bad, and puts something else there.
fn list_as_bad(one: &mut Superblock, image: &mut [u8]) {
    let data = one.data_offset as usize * SECTOR;
    image[data..data + PAGE].fill(0xee);
    let list = one.beside(one.bad_blocks.offset).unwrap().bytes() as usize;
    image[list..list + 8].copy_from_slice(&(one.data_offset << 10 | 8).to_le_bytes());
    one.features = one.features.with(Features::BAD_BLOCKS);
}

/// Says of a member that it is rebuilt up to its second page, and puts something else behind.
fn rebuild_from_the_second_page(one: &mut Superblock, image: &mut [u8]) {
    image[one.data_offset as usize * SECTOR + PAGE..].fill(0xee);
    (one.features, one.recovery) = (one.features.with(Features::RECOVERY), (PAGE / SECTOR) as u64);
}

/// Starts an array whose journal has data alone, without the drives that are `lost`: it holds all of it.
fn replays_alone(bench: &mut Bench, images: &[Vec<u8>], lost: &[usize], holds: &[u8], told: &str) {
    bench.drives = drives(images);
    let mut engine = bench.start(lost).unwrap();
    assert!(engine.beginning().replayed.alone == 4, "{:?}", engine.beginning());
    assert!(bench.read(&mut engine) == holds, "{told}");
}

/// What stands in a page that a list calls bad is nothing of the row's, be it data or parity: parity of data that stand
/// alone is made of what the others have.
#[test]
fn a_replay_believes_no_page_that_is_listed_as_bad() {
    for seed in 0..2 {
        let (mut bench, left, holds) = alone(seed);
        let engine = bench.start(&[]).unwrap();
        let Geometry::Parity(geometry) = engine.array().flat().unwrap().geometry() else {
            unreachable!("raid5 or raid6")
        };
        let (other, p) = (geometry.data_member(0, 1).at(), geometry.p_member(0).at());
        drop(engine);
        let both: [(usize, &[usize]); 2] = [(other, &[]), (p, &[other])];
        // raid5 has one parity alone.
        for (listed, lost) in both.into_iter().take(1 + seed as usize) {
            let mut images = left.clone();
            change(&mut images[listed], list_as_bad);
            let told = format!("seed {seed}, {listed} lists it, without {lost:?}");
            replays_alone(&mut bench, &images, lost, &holds, &told);
        }
    }
}

/// Nor what stands behind the sector up to which a member is rebuilt.
#[test]
fn a_replay_believes_no_page_that_is_not_rebuilt_yet() {
    for seed in 0..2 {
        let (mut bench, left, holds) = alone(seed);
        for member in 0..left.len() - 1 {
            let mut images = left.clone();
            change(&mut images[member], rebuild_from_the_second_page);
            let told = format!("seed {seed}, {member} is being rebuilt");
            replays_alone(&mut bench, &images, &[], &holds, &told);
        }
    }
}

/// A member that fails in the midst of a replay is left out where the level survives that, and not believed again.
#[test]
fn a_member_that_fails_while_the_journal_is_replayed_is_left_out() {
    let (mut left_out, mut ended) = (0, 0);
    for seed in Extent::from_environment().seeds(4, 10) {
        let (mut bench, _) = left(seed);
        let lost: &[usize] = if seed % 4 < 2 { &[] } else { &[0] };
        let survives = seed % 2 == 1 || lost.is_empty();
        let (left, model) = (images(&mut bench), bench.model.clone());
        for most in 0..20 {
            let told = format!("seed {seed}, without {lost:?}, after {most} writes");
            (bench.drives, bench.model) = (drives(&left), model.clone());
            let own = limit(most);
            let of_one = |number| (number == 1).then(|| Arc::clone(&own));
            let is_out = match start(&bench, lost, of_one) {
                // It failed when the array had begun.
                Ok((engine, _)) if !survives && engine.array().is_failed(MemberIndex(1)) => false,
                Ok((mut engine, MdFound { joined, .. })) => {
                    let found = bench.read(&mut engine);
                    bench.compare(&found, None, &told);
                    let is_failed = |why: &Why| matches!(why, Why::FailedReplay(_));
                    joined.out.iter().any(|out| out.place == Some(1) && is_failed(&out.why))
                }
                Err(error) => {
                    assert!(!survives, "{told}: {error}");
                    ended += 1;
                    false
                }
            };
            left_out += u64::from(is_out);
            // It is there again.
            let cut = Left { images: images(&mut bench) };
            bench.restart(cut);
            let mut engine = bench.start(lost).unwrap_or_else(|why| panic!("{told}: {why}"));
            let found = bench.read(&mut engine);
            bench.compare(&found, None, &format!("{told}, started again"));
            assert!(!is_out || engine.array().is_failed(MemberIndex(1)), "{told}");
            make_whole(&mut bench, &mut engine, &told);
        }
    }
    both_were_seen(left_out, ended);
}

/// Whether both endings were seen depends on the seeds, of which each commit has a few others: all of them have both.
fn both_were_seen(one: u64, other: u64) {
    assert!(one + other > 0, "{one} {other}");
    if let Extent::All = Extent::from_environment() {
        assert!(one > 0 && other > 0, "{one} {other}");
    }
}

/// Rebuilds all members that are out of service, after which redundancy is right.
fn make_whole(bench: &mut Bench, engine: &mut Engine, told: &str) {
    for member in 0..engine.members().len() as u16 {
        if engine.array().is_failed(MemberIndex(member)) {
            bench.exchange(engine, usize::from(member));
        }
    }
    assert_eq!(engine.scrub(&AtomicBool::new(false)).unwrap(), Sectors(0), "{told}");
}

/// The power is cut in the midst of a start without a member that superblocks have in service, which is there again at
/// the next: it lacks what was replayed without it, and is believed as long only as that stands in the journal.
#[test]
fn a_start_without_a_member_may_be_cut_off_anywhere() {
    let (mut kept, mut left_out) = (0, 0);
    for seed in 0..2 {
        let (mut bench, left, holds) = alone(seed);
        for (lost, most) in (0..left.len() - 1).flat_map(|lost| (0..48).map(move |to| (lost, to))) {
            bench.drives = drives(&left);
            let all = limit(most);
            drop(start(&bench, &[lost], |_| Some(Arc::clone(&all))));
            let cut = images(&mut bench);
            bench.drives = drives(&cut);
            let mut engine = bench.start(&[]).unwrap();
            let told = format!("seed {seed}, without {lost}, after {most} writes");
            assert!(bench.read(&mut engine) == holds, "{told}");
            match engine.array().is_failed(MemberIndex(lost as u16)) {
                true => left_out += 1,
                false => kept += 1,
            }
        }
    }
    assert!(kept > 0 && left_out > 0, "{kept} {left_out}");
}

/// The power is cut in the midst of a start in which one fails: either the member is still believed, and all that it
/// lacks stands in the journal, or it is not.
#[test]
fn a_start_that_leaves_a_member_out_may_be_cut_off_anywhere() {
    let (mut kept, mut left_out) = (0, 0);
    for seed in Extent::from_environment().seeds(2, 10) {
        let (mut bench, _) = left(seed);
        let (left, model) = (images(&mut bench), bench.model.clone());
        for most in 0..40 {
            (bench.drives, bench.model) = (drives(&left), model.clone());
            let (own, others) = (limit(2), limit(most));
            let begun = start(&bench, &[], |number| {
                Some(Arc::clone(if number == 1 { &own } else { &others }))
            });
            drop(begun);
            let cut = Left { images: images(&mut bench) };
            bench.restart(cut);
            let mut engine = bench.start(&[]).unwrap();
            let found = bench.read(&mut engine);
            bench.compare(&found, None, &format!("seed {seed}, after {most} writes"));
            match engine.array().is_failed(MemberIndex(1)) {
                true => left_out += 1,
                false => kept += 1,
            }
            make_whole(&mut bench, &mut engine, &format!("seed {seed}, after {most} writes"));
        }
    }
    both_were_seen(kept, left_out);
}
