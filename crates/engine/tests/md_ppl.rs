//! md's logs of partial parity on drives that lose what was not flushed: whatever a power cut leaves, the array starts
//! again, also without a member, and holds what was not being written.
//!
//! Each seed makes an array, writes it with requests under way at once, cuts the power, loses a member or not, and
//! starts it again: by the log with all members there, and without resync where one is missing or being rebuilt.
//! `RAIDLAB_FULL=1` tries twenty times as many seeds.

use std::sync::atomic::AtomicBool;

use crate::extent::Extent;
use crate::held::{Bench, Log, images};
use raidlab_core::{Layout, MemberIndex, Sectors};
use raidlab_metadata::md::Version;

const SECTORS: u64 = 6144;
/// Sectors of the array that are written.
const WRITTEN: usize = 400;
const SEEDS: u64 = 150;

fn try_seed(seed: u64) {
    let layouts = ["raid5(3) chunk=4K", "raid5(4) chunk=4K", "raid5(3) chunk=16K right-asymmetric"];
    let layout: Layout = layouts[(seed % 3) as usize].parse().unwrap();
    let log = [Log::Usual, Log::Short, Log::Single][(seed / 3 % 3) as usize];
    let version = [Version::V1_2, Version::V1_0, Version::V1_1][(seed / 9 % 3) as usize];
    let told = format!("seed {seed}, {layout}, {version}, {log:?}");
    let mut bench = Bench::new(images(&layout, version, log, (SECTORS, 0)), WRITTEN, seed);
    let mut engine = bench.start(&[]).unwrap_or_else(|why| panic!("{told}: {why}"));
    for round in 0..4 {
        let told = format!("{told}, round {round}");
        let left = bench.live(engine, 300);
        bench.restart(left);
        let members = u64::from(layout.members);
        let lost = Some(bench.random.below(2 * members)).filter(|lost| *lost < members);
        let lost = lost.map(|lost| lost as usize);
        engine =
            bench.start(lost.as_slice()).unwrap_or_else(|why| panic!("{told}, {lost:?}: {why}"));
        let found = bench.read(&mut engine);
        bench.compare(&found, lost.map(|lost| lost as u16), &told);
        if let Some(lost) = lost {
            if bench.random.below(3) == 0 {
                // Written degraded, and cut off again.
                let left = bench.live(engine, 200);
                bench.restart(left);
                engine = bench.start(&[lost]).unwrap_or_else(|why| panic!("{told}: {why}"));
                let found = bench.read(&mut engine);
                bench.compare(&found, Some(lost as u16), &told);
            }
            if bench.random.below(3) == 0 {
                // Cut off in the midst of the rebuild.
                bench.begin_exchange(&mut engine, lost);
                let left = bench.live(engine, 200);
                bench.restart(left);
                engine = bench.start(&[]).unwrap_or_else(|why| panic!("{told}, rebuilt: {why}"));
                let found = bench.read(&mut engine);
                bench.compare(&found, Some(lost as u16), &format!("{told}, rebuilt"));
            }
            // The fresh drive may not have become a member by then.
            if engine.array().is_failed(MemberIndex(lost as u16)) {
                bench.exchange(&mut engine, lost);
            }
        }
        let differing = engine.scrub(&AtomicBool::new(false)).unwrap();
        assert_eq!(differing, Sectors(0), "{told}");
    }
}

#[test]
fn what_was_not_being_written_survives_a_power_cut_with_a_member() {
    let seeds = match Extent::from_environment() {
        Extent::All => 0..20 * SEEDS,
        Extent::Sample(number) => {
            let first = u64::from(number) * SEEDS;
            first..first + SEEDS
        }
    };
    seeds.for_each(try_seed);
}
