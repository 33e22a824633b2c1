//! md's logs of partial parity on drives that lose what was not flushed: whatever a power cut leaves, the array starts
//! again, also without a member, and holds what was not being written.
//!
//! Each seed makes an array, writes it with requests under way at once, cuts the power, loses a member or not, and
//! starts it again: by the log with all members there, and without resync where one is missing or being rebuilt.
//! `RAIDLAB_FULL=1` tries twenty times as many seeds.

use crate::extent::Extent;
use crate::held::{Bench, Log, images};
use raidlab_core::Layout;
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
    bench.cut_off_and_lose(layout.members, true, &told, |_| {});
}

#[test]
fn what_was_not_being_written_survives_a_power_cut_with_a_member() {
    let seeds = Extent::from_environment().seeds(SEEDS, 20);
    seeds.for_each(try_seed);
}
