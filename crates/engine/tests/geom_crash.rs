//! Arrays of gmirror and graid3 on drives that lose what was not flushed: whatever a power cut leaves of data and
//! labels, the array is read and starts again, holds what was durable, and its redundancy agrees.
//!
//! Each seed makes an array, and is cut off with requests under way, also while labels are told that a member left,
//! that another one came, or that writes begin or have ended. All drives there ever were are given, those that left
//! too. `RAIDLAB_FULL=1` tries a hundred times as many seeds.

use std::sync::atomic::AtomicBool;

use crate::extent::Extent;
use crate::held::{Bench, Drive, SECTOR};
use raidlab_core::contract::Pacing;
use raidlab_core::{Layout, MemberIndex, Sector, Sectors};
use raidlab_engine::{Engine, MdOptions, Member, MemoryMember};
use raidlab_metadata::geom::{Creation, Kind};
use raidlab_metadata::md::{Allowed, Cannot, Inspected, assemble, inspect};

const SECTORS: u64 = 200;
/// Sectors of the array that are written.
const WRITTEN: usize = 48;
const SEEDS: u64 = 80;
const FAST: Pacing = Pacing::between(u64::MAX, u64::MAX);

fn images(layout: &Layout) -> Vec<Vec<u8>> {
    let creation = Creation {
        layout: layout.clone(),
        name: "gm0".into(),
        id: 9,
        devices: (0..layout.members).map(|disk| (Sectors(SECTORS), u32::from(disk) + 1)).collect(),
        sector: Sectors(1),
    };
    let image = |label: &raidlab_metadata::geom::Label| {
        let mut bytes = vec![0; (SECTORS as usize - 1) * SECTOR];
        bytes.extend(label.bytes());
        bytes
    };
    creation.labels().unwrap().labels.iter().map(image).collect()
}

/// An array, with which of all drives is which member.
struct Running {
    engine: Engine,
    drives: Vec<Option<usize>>,
}

struct Trial {
    bench: Bench,
    layout: Layout,
    told: String,
}

impl Trial {
    fn is_mirror(&self) -> bool {
        self.layout.survives() > 1 || self.layout.members == 2
    }

    /// Starts it from all drives; with consent where parity may be wrong and is needed. What it holds is what it may.
    fn start(&mut self) -> Running {
        self.bench.drives.iter().for_each(|drive| drive.hold(false));
        let mut options = MdOptions::default();
        let devices =
            || self.bench.drives.iter().map(|drive| Member::from(drive.clone())).collect();
        let mut begun = Engine::assemble_md(devices(), &options);
        let mut is_consented = false;
        if let Err(why) = &begun {
            let why = why.to_string();
            assert!(
                !self.is_mirror() && why.contains("not stopped cleanly"),
                "{}: {why}",
                self.told
            );
            options.allowed.dirty_degraded = true;
            is_consented = true;
            begun = Engine::assemble_md(devices(), &options);
        }
        let (mut engine, found) = begun.unwrap_or_else(|why| panic!("{}: {why}", self.told));
        let joined = found.joined;
        let is_lost =
            |place: &usize| joined.order[*place].is_none() || joined.filled_to(*place) < u64::MAX;
        let lost = (0..joined.order.len()).find(is_lost).filter(|_| is_consented);
        let geometry = engine.array().flat().expect("of one level").geometry();
        let place = |at| geometry.place(Sector(at as u64), 0).member.0;
        self.bench.members = (0..WRITTEN).map(place).collect();
        engine.pace(FAST).unwrap();
        engine.finish_background(&AtomicBool::new(false)).unwrap();
        let read = self.bench.read(&mut engine);
        self.bench.compare(&read, lost.map(|lost| lost as u16), &self.told);
        Running { engine, drives: joined.order }
    }

    /// What is read of the drives without starting the array is what it may hold, too.
    fn read_only(&self, images: &[Vec<u8>]) {
        let member = |image: &Vec<u8>| {
            let mut member = MemoryMember::new(Sectors(SECTORS)).unwrap();
            member.bytes_mut().copy_from_slice(image);
            Member::Memory(member)
        };
        let mut devices: Vec<Option<Member>> = images.iter().map(|one| Some(member(one))).collect();
        let look = |device: &mut Option<Member>| inspect(device.as_mut().expect("there"));
        let inspected: Vec<Inspected> = devices.iter_mut().map(look).collect();
        let assembly = match assemble(&inspected, &Allowed::default()) {
            Ok(assembly) => assembly,
            // Parity may be wrong, or the disk that FreeBSD would make anew is a second one.
            Err(Cannot::DirtyDegraded(_)) if !self.is_mirror() => return,
            Err(why) => panic!("{}: {why}", self.told),
        };
        let take =
            |place: &raidlab_metadata::md::Place| place.given.and_then(|one| devices[one].take());
        let members: Vec<_> = assembly.places.iter().map(take).collect();
        let mut engine = Engine::read_only(&assembly.config(), members, &[]).unwrap();
        let found = self.bench.read(&mut engine);
        for (at, (sector, values)) in found.chunks(SECTOR).zip(&self.bench.model).enumerate() {
            let whole = sector.iter().all(|byte| *byte == sector[0]);
            let can_be = whole && values.iter().any(|(value, _)| *value == sector[0]);
            assert!(can_be, "{}, read: sector {at} is {}, of {values:?}", self.told, sector[0]);
        }
    }

    /// Goes on until the power is cut, at some moment of something.
    fn cut(&mut self, mut running: Running) {
        let status = running.engine.array().status();
        let members = u64::from(self.layout.members);
        let out = (0..members as u16).find(|place| status.failed[0] >> place & 1 == 1);
        let is_whole = status.failed == [0; 2] && status.rebuilding == [0; 2];
        match self.bench.random.below(4) {
            // A member leaves, and its failure is not known to all yet.
            0 if is_whole || self.layout.members == 3 && self.is_mirror() && out.is_none() => {
                self.bench.drives.iter().for_each(|drive| drive.hold(true));
                let member = MemberIndex(self.bench.random.below(members) as u16);
                running.engine.fail(member).unwrap();
            }
            // Another one comes, or the one that left.
            1 if out.is_some() => {
                let member = MemberIndex(out.unwrap_or_default());
                running.engine.pace(Pacing::between(1, 1 << 16)).unwrap();
                self.add(&mut running, member);
            }
            _ => {}
        }
        let left = self.bench.live(running.engine, 250);
        self.read_only(&left.images);
        self.bench.restart(left);
    }

    fn add(&mut self, running: &mut Running, member: MemberIndex) {
        let bytes = match self.bench.random.below(3) {
            0 => vec![0; SECTORS as usize * SECTOR],
            1 => vec![0x55; SECTORS as usize * SECTOR],
            _ => self.bench.drives[0].bytes(),
        };
        let drive = Drive::new(&bytes);
        running.engine.add(member, Member::from(drive.clone())).unwrap();
        running.drives[member.at()] = Some(self.bench.drives.len());
        self.bench.drives.push(drive);
    }

    /// All that is missing is exchanged, and redundancy agrees everywhere.
    fn repair(&mut self, running: &mut Running) {
        running.engine.pace(FAST).unwrap();
        for member in (0..self.layout.members).map(MemberIndex) {
            if running.engine.array().is_failed(member) {
                self.add(running, member);
            }
        }
        running.engine.finish_background(&AtomicBool::new(false)).unwrap();
        let differing = running.engine.scrub(&AtomicBool::new(false)).unwrap();
        assert_eq!(differing, Sectors(0), "{}", self.told);
    }
}

fn try_seed(seed: u64) {
    let layouts = ["raid1(2)", "raid1(3)", "raid3(3)", "raid3(5)"];
    let layout: Layout = layouts[(seed % 4) as usize].parse().unwrap();
    let mut bench = Bench::new(images(&layout), WRITTEN, seed);
    let kind = if seed % 4 < 2 { Kind::Mirror } else { Kind::Raid3 };
    bench.unit = if kind == Kind::Mirror { 1 } else { usize::from(layout.members) - 1 };
    let mut trial = Trial { bench, told: String::new(), layout };
    for round in 0..6 {
        trial.told = format!("seed {seed}, {}, round {round}", trial.layout);
        let mut running = trial.start();
        match trial.bench.random.below(3) {
            0 => trial.repair(&mut running),
            1 if round > 0 => {
                running.engine.stop().unwrap();
                drop(running);
                trial.told.push_str(", stopped");
                running = trial.start();
            }
            _ => {}
        }
        trial.cut(running);
    }
}

#[test]
fn what_was_durable_survives_a_power_cut() {
    let seeds = Extent::from_environment().seeds(SEEDS, 100);
    seeds.for_each(try_seed);
}
