//! Power cuts under clients that write: drives lose what was not flushed, and everything that a client
//! was told is durable is there, whichever member is lost with the power.
//!
//! Two clients write, flush and zero, several requests at once. Then the power is cut, of each drive any
//! set of the sectors that were not durable is there, the array starts again, and each sector holds its
//! last durable value or one that was sent later. `RAIDLAB_FULL=1` cuts 150 times as often in each
//! consistency mode.

use std::sync::atomic::AtomicBool;

use raidlab_core::consistency::Allow;
use raidlab_core::contract::Pacing;
use raidlab_core::{Consistency, Layout, Level, MemberIndex, Sector, Sectors};
use raidlab_engine::{Engine, EngineConfig, Member, log_device_sectors};
use raidlab_targets::NbdLimits;

use super::{Served, array};
use crate::common::Random;
use crate::nbd_writer::{Asked, BLOCK, BLOCKS, Counts, Model};
use crate::power::{Drive, cut};

const SECTOR: usize = 512;
/// A drive, in sectors.
const DRIVE: u64 = 2048;
/// Requests of a client that are under way at once.
const DEPTH: usize = 6;
/// Times the power is cut in the life of one array.
const CUTS: u32 = 3;

fn config(level: Level, members: u16, consistency: Consistency) -> EngineConfig {
    let layout = Layout::new(level, members);
    let layout = if level.has_chunks() { layout.with_chunk(Sectors(16)) } else { layout };
    let mut config = EngineConfig::new(layout);
    config.settings.consistency = consistency;
    config.settings.pacing = Pacing::between(u64::MAX, u64::MAX);
    config.limits.plans = 4;
    config.limits.requests = 8;
    config
}

pub(super) fn cases() -> Vec<EngineConfig> {
    use Level::{Raid1, Raid5, Raid6, Raid10};
    let bitmap = Consistency::Bitmap { chunk: Sectors(64) };
    let journal = Consistency::Journal { sectors: Sectors(4096) };
    let ppl = Consistency::PartialParity { slots: 8 };
    vec![
        config(Raid1, 2, Consistency::Resync),
        config(Raid1, 3, bitmap),
        config(Raid10, 4, bitmap),
        config(Raid5, 3, Consistency::Resync),
        config(Raid5, 4, bitmap),
        config(Raid6, 4, Consistency::Resync),
        config(Raid5, 4, ppl),
        config(Raid5, 3, journal),
        config(Raid6, 5, journal),
    ]
}

/// Drives of members, and the log device.
#[derive(Clone)]
pub(super) struct Rack {
    config: EngineConfig,
    drives: Vec<Drive>,
    journal: Option<Drive>,
}

impl Rack {
    pub(super) fn new(config: &EngineConfig) -> Self {
        let drives = (0..config.layout.members).map(|_| Drive::new(DRIVE)).collect();
        let journal = log_device_sectors(config.settings.consistency);
        let journal = journal.map(|sectors| Drive::new(sectors.0));
        let rack = Self { config: config.clone(), drives, journal };
        let members = rack.drives.iter().cloned().map(Member::from).collect();
        let made = Engine::with_journal(config, members, rack.journal.clone().map(Member::from));
        made.unwrap().stop().unwrap();
        rack
    }

    pub(super) fn cut(&mut self, random: &mut Random) {
        let mut left = cut(self.drives.iter().chain(&self.journal), |end| random.below(end));
        self.journal = self.journal.take().and_then(|_| left.pop());
        self.drives = left;
    }

    /// Its drives answer that they are gone from now on.
    pub(super) fn turn_off(&self) {
        self.drives.iter().chain(&self.journal).for_each(Drive::turn_off);
    }

    pub(super) fn assemble(&self, without: Option<usize>) -> Engine {
        let member = |(number, drive): (usize, &Drive)| {
            (Some(number) != without).then(|| Member::from(drive.clone()))
        };
        let members = self.drives.iter().enumerate().map(member).collect();
        let journal = self.journal.clone().map(Member::from);
        let without = [without.map_or(0, |member| 1 << member), 0];
        let allow = Allow { dirty_degraded: true, without, ..Allow::default() };
        Engine::assemble(&self.config, members, journal, allow).unwrap()
    }

    /// Sectors of a piece in which a lost member may come out wrong if any of it was being written: a
    /// stripe where nothing logs what parity needs, what was being written itself with a log of partial
    /// parity.
    fn hole(&self) -> Option<u64> {
        let data = u64::from(self.config.layout.members - self.config.layout.survives());
        match self.config.settings.consistency {
            _ if !self.config.layout.has_parity() => None,
            Consistency::Resync | Consistency::Bitmap { .. } => Some(data * 16),
            Consistency::PartialParity { .. } => Some(1),
            _ => None,
        }
    }

    /// Serves the array until the power goes off under its clients.
    fn live(&mut self, model: &mut Model, random: &mut Random) {
        let rack = self.clone();
        let make = move || Ok(vec![array(rack.assemble(None), "a", false)]);
        let served = Served::with(NbdLimits::default(), make);
        let mut clients = [served.client(), served.client()];
        let mut asked: [Vec<(u64, Asked)>; 2] = [Vec::new(), Vec::new()];
        for _ in 0..10 + random.below(120) {
            let which = random.below(2) as usize;
            let (client, asked) = (&mut clients[which], &mut asked[which]);
            if asked.len() < DEPTH && random.below(3) > 0 {
                asked.extend(model.ask(client, |end| random.below(end)));
                continue;
            }
            if asked.is_empty() {
                continue;
            }
            let (cookie, answer) = client.answer().unwrap();
            answer.good();
            let position = asked.iter().position(|(one, _)| *one == cookie).unwrap();
            model.told(&asked.swap_remove(position).1);
        }
        for client in &mut clients {
            client.send().unwrap();
        }
        // Of all drives at one instant: drives that go one after the other are members that fail.
        let before = self.clone();
        self.cut(random);
        before.turn_off();
    }
}

fn try_seed(config: &EngineConfig, seed: u64) -> Counts {
    let mut random = Random(seed * 2 + 1);
    let mut rack = Rack::new(config);
    let mut model = Model::new(false);
    for cut in 0..CUTS {
        let told =
            format!("{}, {:?}, seed {seed}, cut {cut}", config.layout, config.settings.consistency);
        rack.live(&mut model, &mut random);
        let lost = (random.below(2) == 0).then(|| random.below(rack.drives.len() as u64) as usize);
        let mut engine = rack.assemble(lost);
        let never = AtomicBool::new(false);
        engine.finish_background(&never).unwrap();
        let told = format!("{told}, without {lost:?}");
        let mut bytes = vec![0; (BLOCKS * BLOCK) as usize];
        engine.read_at(Sector(0), &mut bytes).unwrap();
        for torn in model.check(&bytes, lost.and(rack.hole()), &told) {
            engine.write_at(Sector(torn as u64), &[0; SECTOR]).unwrap();
        }
        engine.flush().unwrap();
        if let Some(lost) = lost {
            let fresh = Drive::new(DRIVE);
            rack.drives[lost] = fresh.clone();
            engine.add(MemberIndex(lost as u16), Member::from(fresh)).unwrap();
            engine.finish_background(&never).unwrap();
        }
        assert_eq!(engine.scrub(&never).unwrap(), Sectors::ZERO, "{told}");
        engine.stop().unwrap();
    }
    model.counts
}

#[test]
fn what_a_client_was_told_is_durable_survives_a_power_cut() {
    let is_full = std::env::var("RAIDLAB_FULL").as_deref() == Ok("1");
    let seeds = if is_full { 150 } else { 4 };
    for config in cases() {
        let mut counts = Counts::default();
        (0..seeds).for_each(|seed| counts += try_seed(&config, seed));
        println!("{}, {:?}, {counts}", config.layout, config.settings.consistency);
    }
}
