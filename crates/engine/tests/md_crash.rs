//! md arrays on drives that lose what was not flushed: whatever a power cut leaves of it, the array starts again, holds
//! what was durable, and its redundancy agrees.
//!
//! Each seed makes an array of some level, writes blocks, flushes, loses a member, gets a fresh one, and is cut off. Of
//! each drive any set of the sectors that were written and not flushed is there then. All drives are given, those that
//! left too. `RAIDLAB_FULL=1` tries a hundred times as many seeds.

use std::sync::atomic::AtomicBool;

use crate::extent::Extent;
use crate::made::{creation, name};
use crate::power::{Drive, cut};
use raidlab_core::contract::Pacing;
use raidlab_core::{Layout, MemberIndex, Sector, Sectors};
use raidlab_engine::{Engine, MdOptions, Member};
use raidlab_metadata::md::{Allowed, Bitmap, Creation, Version, WantedBitmap};
use raidlab_random::SplitMix64;

const SECTORS: u64 = 3072;
const SECTOR: usize = 512;
/// Blocks that are written, of 4 KiB.
const BLOCKS: usize = 48;
const BLOCK: usize = 4096;
const SEEDS: u64 = 60;
const FAST: Pacing = Pacing::between(u64::MAX, u64::MAX);

struct Random(SplitMix64);

impl Random {
    fn below(&mut self, most: u64) -> u64 {
        self.0.next_u64() % most
    }
}

fn created(layout: &Layout, version: Version, bitmap: WantedBitmap) -> Vec<Drive> {
    let creation =
        Creation { version, bitmap, name: name(version), ..creation(layout.clone(), SECTORS) };
    let plan = creation.plan().unwrap();
    let drive = |pieces: &[(Sector, Vec<u8>)]| {
        let drive = Drive::new(SECTORS);
        for (at, piece) in pieces {
            let mut bytes = piece.clone();
            // A bit for each 4 KiB, none of them set: what is not recorded is not made consistent.
            if let Some(mut head) = Bitmap::parse(piece) {
                head.chunk = 4096;
                bytes.fill(0);
                head.emit(&mut bytes);
            }
            drive.put(at.0, &bytes);
        }
        drive
    };
    plan.members.iter().flatten().map(|made| drive(&made.pieces)).collect()
}

/// What each sector may hold: the last value that was durable, or any later one; what it holds is the last.
type Model = Vec<Vec<u8>>;

fn start(drives: &[Drive], dirty_degraded: bool) -> Result<Engine, String> {
    let members = drives.iter().map(|drive| Member::from(drive.clone())).collect();
    let allowed = Allowed { dirty_degraded, ..Allowed::default() };
    let options = MdOptions { allowed, ..MdOptions::default() };
    let (mut engine, _) =
        Engine::assemble_md(members, &options).map_err(|error| error.to_string())?;
    engine.pace(FAST).unwrap();
    Ok(engine)
}

/// Goes on with an array until the power is cut; gives what is left of all drives.
fn live(engine: &mut Engine, drives: &mut Vec<Drive>, model: &mut Model, random: &mut Random) {
    let redundancy = engine.array().layout().survives();
    for _ in 0..random.below(30) {
        match random.below(12) {
            0..8 => {
                let block = random.below(BLOCKS as u64) as usize;
                let value = random.below(255) as u8 + 1;
                engine.write_at(Sector(8 * block as u64), &[value; BLOCK]).unwrap();
                model[8 * block..][..8].iter_mut().for_each(|values| values.push(value));
            }
            8 => {
                engine.flush().unwrap();
                model.iter_mut().for_each(|values| drop(values.drain(..values.len() - 1)));
            }
            9 => {
                let member = MemberIndex(random.below(engine.members().len() as u64) as u16);
                let status = engine.array().status();
                let out = (status.failed[0] | status.rebuilding[0]).count_ones();
                if out < u32::from(redundancy) && !engine.array().is_failed(member) {
                    engine.fail(member).unwrap();
                }
            }
            10 => {
                let members = (0..engine.members().len() as u16).map(MemberIndex);
                let failed = members.into_iter().find(|one| engine.array().is_failed(*one));
                if let Some(member) = failed {
                    let fresh = Drive::new(SECTORS);
                    drives.push(fresh.clone());
                    // The power is cut in the midst of it.
                    engine.pace(Pacing::between(1, 1 << 10)).unwrap();
                    engine.add(member, Member::from(fresh)).unwrap();
                }
            }
            _ => {
                engine.pace(FAST).unwrap();
                engine.finish_background(&AtomicBool::new(false)).unwrap();
            }
        }
    }
}

fn try_seed(seed: u64) {
    let mut random = Random(SplitMix64::new(seed));
    let layouts =
        ["raid1(2)", "raid5(3) chunk=4K", "raid6(4) chunk=4K", "raid10(4) chunk=4K", "raid1(3)"];
    let layout: Layout = layouts[random.below(layouts.len() as u64) as usize].parse().unwrap();
    let bitmap = if random.below(2) == 0 { WantedBitmap::None } else { WantedBitmap::Internal };
    let version = Version::ALL[random.below(4) as usize];
    let told = format!("seed {seed}, {layout}, {version}, {bitmap:?}");
    let mut drives = created(&layout, version, bitmap);
    let mut model: Model = vec![vec![0]; 8 * BLOCKS];
    for round in 0..3 {
        let mut engine = match start(&drives, false) {
            Ok(engine) => engine,
            // Parity may be wrong where a member is missing; and a drive that left when others were away, all of
            // which were exchanged since, looks like a half that went on. Both are said, and start with consent.
            Err(why) => {
                let is_exchanged = drives.len() > usize::from(layout.members);
                let can_be = why.contains("not stopped cleanly")
                    || is_exchanged && why.contains("two halves");
                assert!(can_be, "{told}, round {round}: {why}");
                return;
            }
        };
        engine.finish_background(&AtomicBool::new(false)).unwrap();
        let mut bytes = vec![0; BLOCKS * BLOCK];
        engine.read_at(Sector(0), &mut bytes).unwrap();
        for (at, (values, sector)) in model.iter_mut().zip(bytes.chunks(SECTOR)).enumerate() {
            let whole = sector.iter().all(|byte| *byte == sector[0]);
            let can_be = whole && values.contains(&sector[0]);
            assert!(can_be, "{told}, round {round}: sector {at} is {}, of {values:?}", sector[0]);
            values.push(sector[0]);
        }
        let status = engine.array().status();
        if status.failed == [0; 2] {
            let differing = engine.scrub(&AtomicBool::new(false)).unwrap();
            assert_eq!(differing, Sectors(0), "{told}, round {round}");
        }
        live(&mut engine, &mut drives, &mut model, &mut random);
        if random.below(4) == 0 {
            engine.stop().unwrap();
            model.iter_mut().for_each(|values| drop(values.drain(..values.len() - 1)));
        }
        let left = cut(&drives, |end| random.below(end));
        drop(engine);
        drives = left;
    }
}

#[test]
fn what_was_durable_survives_a_power_cut() {
    let seeds = Extent::from_environment().seeds(SEEDS, 100);
    seeds.for_each(try_seed);
}
