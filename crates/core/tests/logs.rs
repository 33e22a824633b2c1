//! Logs over crashes: what was promised is there afterwards, with or without a member.

use std::cell::Cell;
use std::rc::Rc;

use crate::support::{Driver, Word, Work, field, records::superblocks};
use raidlab_core::contract::{
    self, Admin, Event, Input, IoOp, IoOutcome, LOG_HEADER, Outcome, Record, Refusal, Request,
    RequestId, Scrub, Segment,
};
use raidlab_core::geometry::{Geometry, Holds, Place};
use raidlab_core::{Config, Consistency, Layout, Level, Limits, MemberIndex, Sector, Sectors, Tie};
use raidlab_random::SplitMix64;

const CHUNK: u64 = 8;
const MEMBER: u64 = 32;

/// What a sector of the array may hold: the first value is durable, the others came later.
type Values = Vec<(u8, RequestId)>;

/// A request in flight.
struct Pending {
    id: RequestId,
    op: IoOp,
    range: std::ops::Range<u64>,
    fua: bool,
    /// Flush: for each sector the newest write answered before.
    before: Vec<Option<RequestId>>,
}

/// An array over members with volatile caches, and what it must hold.
struct Bench {
    driver: Driver,
    config: Config,
    random: SplitMix64,
    /// What is on each device should it lose its cache.
    durable: Vec<Vec<u8>>,
    values: Vec<Values>,
    pending: Vec<Pending>,
    answered: Vec<RequestId>,
    /// Members out of service.
    lost: Vec<u16>,
    /// Members missing after a crash since the last check.
    excepted: Vec<u16>,
    /// Members that are no longer there.
    gone: Vec<u16>,
    next: u64,
    seed: u64,
    /// A member whose replacement took over.
    swapping: Option<usize>,
    seen_events: usize,
    rebuilt: usize,
    replaced: usize,
    slow: bool,
    /// Entries that the journal takes.
    journal_fails: Option<u64>,
    #[cfg(debug_assertions)]
    bug: Option<raidlab_core::bugs::Bug>,
}

impl Bench {
    fn new(layout: &Layout, consistency: Consistency, seed: u64) -> Self {
        let mut config = Config::uniform(layout.clone(), Sectors(MEMBER));
        config.limits = Limits { requests: 8, segments: 4, ios: 1, plans: 4, windows: 1 };
        config.settings.consistency = consistency;
        let mut random = SplitMix64::new(seed);
        let ties = [Tie::ReconstructWrite, Tie::ReadModifyWrite, Tie::NeverModify];
        config.settings.tie = ties[random.below(3) as usize];
        config.settings.cached_stripes = [0, 4][random.below(2) as usize];
        let driver = Driver::new(&config);
        let capacity = driver.array.capacity().0;
        Self {
            durable: driver.members.clone(),
            driver,
            config,
            random,
            values: vec![vec![(0, RequestId(0))]; capacity as usize],
            pending: Vec::new(),
            answered: Vec::new(),
            lost: Vec::new(),
            gone: Vec::new(),
            excepted: Vec::new(),
            next: 1 << 32,
            seed,
            swapping: None,
            seen_events: 0,
            rebuilt: 0,
            replaced: 0,
            slow: seed.is_multiple_of(2),
            journal_fails: None,
            #[cfg(debug_assertions)]
            bug: None,
        }
    }

    fn data(&self, device: usize) -> u64 {
        if device < 2 * usize::from(self.config.layout.members) { MEMBER } else { 0 }
    }

    /// Writes, of which the last are under way.
    fn write_for_a_while(&mut self) {
        for _ in 0..self.random.below(400) {
            match self.random.below(8) {
                0 => self.submit(),
                _ => {
                    self.step();
                }
            }
        }
        self.lost.clear();
    }

    /// Submits a write, zeroes or a flush, away from what is in flight.
    fn submit(&mut self) {
        if !self.driver.array.can_accept() {
            return;
        }
        let capacity = self.values.len() as u64;
        let id = RequestId(self.next);
        self.next += 1;
        let choice = self.random.below(12);
        if choice == 0 {
            let newest = |values: &Values| {
                let answered = |(_, id): &&(u8, RequestId)| self.answered.contains(id);
                values.iter().rev().find(answered).map(|(_, id)| *id)
            };
            let before = self.values.iter().map(newest).collect();
            let (op, range) = (IoOp::Flush, 0..0);
            self.pending.push(Pending { id, op, range, fua: false, before });
            self.request(id, IoOp::Flush, 0, 0, &[], false);
            return;
        }
        let at = self.random.below(capacity);
        let most = [3, 9, 30][self.random.below(3) as usize];
        let len = (1 + self.random.below(most)).min(capacity - at);
        let range = at..at + len;
        if self.pending.iter().any(|p| p.range.start < range.end && range.start < p.range.end) {
            return;
        }
        let zeroes = choice == 1;
        let fua = choice == 2;
        let value = |random: &mut SplitMix64| if zeroes { 0 } else { random.next_u64() as u8 };
        let bytes: Vec<u8> = range.clone().map(|_| value(&mut self.random)).collect();
        for (at, byte) in range.clone().zip(&bytes) {
            self.values[at as usize].push((*byte, id));
        }
        let op = if zeroes { IoOp::WriteZeroes } else { IoOp::Write };
        self.pending.push(Pending { id, op, range, fua, before: Vec::new() });
        let token = self.driver.buffer(bytes);
        let segment = [Segment { token, offset: 0, len: len as u32 }];
        let segments: &[Segment] = if zeroes { &[] } else { &segment };
        self.request(id, op, at, len, segments, fua);
    }

    fn request(&mut self, id: RequestId, op: IoOp, at: u64, len: u64, of: &[Segment], fua: bool) {
        let (at, len) = (Sector(at), Sectors(len));
        let request = Request { id, op, at, len, segments: of, fua };
        self.driver.input(Input::Request(request));
        self.settle();
    }

    /// Takes note of what has happened to members; which has been replaced.
    fn note_events(&mut self) -> Option<usize> {
        let mut swapped = None;
        while let Some(event) = self.driver.events.get(self.seen_events).copied() {
            self.seen_events += 1;
            if let Event::Replaced(member) = event {
                let other = member.at() + usize::from(self.config.layout.members);
                self.durable.swap(member.at(), other);
                self.replaced += 1;
                swapped = Some(member.at());
                self.swapping = swapped;
            }
            match event {
                Event::MemberFailed(member) => self.lost.push(member.0),
                Event::Restored(member) => {
                    self.lost.retain(|lost| *lost != member.0);
                    self.rebuilt += 1;
                }
                _ => {}
            }
        }
        self.lost.sort_unstable();
        self.lost.dedup();
        swapped
    }

    /// Takes note of what was answered.
    fn settle(&mut self) {
        for (id, outcome) in std::mem::take(&mut self.driver.replies) {
            let Some(index) = self.pending.iter().position(|p| p.id == id) else { continue };
            let done = self.pending.remove(index);
            assert_eq!(outcome, Outcome::Done);
            self.answered.push(id);
            if done.op == IoOp::Flush {
                for (values, before) in self.values.iter_mut().zip(done.before) {
                    let newest = before.and_then(|id| values.iter().position(|v| v.1 == id));
                    values.drain(..newest.unwrap_or(0));
                }
            } else if done.fua {
                for at in done.range {
                    let values = &mut self.values[at as usize];
                    let newest = values.iter().position(|v| v.1 == id).expect("written");
                    values.drain(..newest);
                }
            }
        }
    }

    /// The record that a piece of work writes.
    fn record(&self, index: usize) -> Option<(MemberIndex, Record, bool)> {
        let Some(Work::Meta(io)) = self.driver.work.get(index) else { return None };
        self.driver.array.meta(*io).map(|meta| (meta.member, meta.record, meta.fua))
    }

    /// Does one piece of work; what it leaves in a cache may be lost.
    fn step(&mut self) -> bool {
        if self.driver.work.is_empty() {
            return false;
        }
        let mut index = self.random.below(self.driver.work.len() as u64) as usize;
        let is_superblock =
            |found: Option<(_, Record, _)>| matches!(found, Some((_, Record::Superblock(_), _)));
        // On some runs superblocks take long.
        for _ in 0..8 {
            if self.slow && is_superblock(self.record(index)) {
                index = self.random.below(self.driver.work.len() as u64) as usize;
            }
        }
        let work = self.driver.work[index];
        let record = self.record(index);
        let survives = usize::from(self.config.layout.survives());
        let is_log = matches!(record, Some((_, Record::PartialParity { .. }, _)));
        let is_entry = matches!(record, Some((_, Record::JournalEntry { .. }, _)));
        let left = self.journal_fails.as_mut().filter(|_| is_entry);
        let full = left.is_some_and(|left| {
            *left = left.saturating_sub(1);
            *left == 0
        });
        let fails = full || is_log && self.lost.len() < survives && self.random.below(100) == 0;
        if fails {
            self.driver.meta_fault = Box::new(|_| IoOutcome::Timeout);
        }
        self.driver.step(index);
        self.driver.meta_fault = Box::new(|_| IoOutcome::Ok);
        let members = usize::from(self.config.layout.members);
        let swapped = self.note_events();
        // Where the drive that was written is by now.
        let now_at = |device: usize| match swapped {
            Some(member) if device == member => member + members,
            Some(member) if device == member + members => member,
            _ => device,
        };
        if let Work::Io(io) = work {
            let device = now_at(io.member.at());
            let range = io.at.0 as usize..io.at.0 as usize + io.len as usize;
            if io.op == IoOp::Flush {
                let data = self.data(device) as usize;
                self.durable[device][..data].copy_from_slice(&self.driver.members[device][..data]);
            } else if io.op == IoOp::Write && io.fua {
                self.durable[device][range.clone()]
                    .copy_from_slice(&self.driver.members[device][range]);
            }
        }
        if let Some((device, _, true)) = record
            && !fails
        {
            let device = now_at(device.at());
            let data = self.data(device) as usize;
            self.durable[device][data..].copy_from_slice(&self.driver.members[device][data..]);
        }
        self.settle();
        true
    }

    /// Power fails: caches are lost sector by sector, and `lost` with all it has.
    fn crash(&mut self, lost: Option<u16>) {
        // Until the drive that took over has a superblock, the one before it would be found.
        while self.swapping.is_some_and(|m| !self.has_superblock(m)) && self.step() {}
        self.swapping = None;
        self.gone.extend(lost);
        let mut members = std::mem::take(&mut self.driver.members);
        for (device, member) in members.iter_mut().enumerate() {
            for (now, durable) in member.iter_mut().zip(&mut self.durable[device]) {
                if self.random.below(2) == 0 {
                    *now = *durable;
                }
                *durable = *now;
            }
        }
        for gone in &self.gone {
            members[usize::from(*gone)].fill(0xbb);
        }
        self.driver.members = members;
        self.pending.clear();
        let mut word = Word { missing: true, dirty_degraded: false };
        let mut outcome = self.driver.reassemble(&self.config, &self.gone, word);
        // Only an array that is to have a log device and has none needs that to be allowed.
        let array = &self.driver.array;
        let unused = self.gone.contains(&array.journal().0) || !array.superblock().journal;
        let has_device = matches!(self.config.settings.consistency, Consistency::Journal { .. });
        if outcome.is_err() && has_device && unused {
            word.dirty_degraded = true;
            outcome = self.driver.reassemble(&self.config, &self.gone, word);
        }
        outcome.unwrap_or_else(|error| {
            panic!("{:?} seed {}: {error:?}", self.config.layout, self.seed);
        });
        self.note_start();
        self.excepted.extend(&self.lost);
        #[cfg(debug_assertions)]
        self.plant();
    }

    fn has_superblock(&self, member: usize) -> bool {
        let found = self.driver.records.found(&self.config, &self.driver.members, &self.gone);
        found.members[member].superblock.whole().is_some()
    }

    /// Members that would be missing if the array were assembled now.
    fn missing_if_found(&self) -> Vec<u16> {
        let found = self.driver.records.found(&self.config, &self.driver.members, &self.gone);
        let newest =
            superblocks(&found).max_by_key(|superblock| superblock.events).expect("some are there");
        let missing = newest.failed[0] | newest.rebuilding[0];
        let members = 0..self.config.layout.members;
        let is_there = |m: &u16| found.members[usize::from(*m)].superblock.whole().is_some();
        members.filter(|m| missing >> m & 1 == 1 || !is_there(m)).collect()
    }

    /// Members that are missing at the start of an array.
    fn note_start(&mut self) {
        self.seen_events = 0;
        let superblock = self.driver.array.superblock();
        let rebuilding = superblock.rebuilding[0] | superblock.failed[0];
        let is_missing =
            |m: &u16| self.driver.array.is_failed(MemberIndex(*m)) || rebuilding >> m & 1 == 1;
        self.lost = (0..self.config.layout.members).filter(is_missing).collect();
    }

    /// Takes a member out of service that may be back after a crash, if one more may be lost.
    fn fail_one(&mut self) {
        let survives = usize::from(self.config.layout.survives());
        let member = self.random.below(u64::from(self.config.layout.members)) as u16;
        if self.lost.len() < survives {
            self.driver.input(Input::Admin(Admin::Fail(MemberIndex(member))));
            self.note_events();
        }
    }

    #[cfg(debug_assertions)]
    fn plant(&mut self) {
        self.bug.into_iter().for_each(|bug| self.driver.array.plant(bug));
    }

    /// Hands in the wake-up that the array asked for.
    fn wake(&mut self) -> bool {
        let Some(at) = self.driver.wake.take() else { return false };
        self.driver.now = self.driver.now.max(at);
        self.driver.input(Input::Wake);
        true
    }

    /// Goes on until nothing is to be done.
    fn recover(&mut self) {
        for _ in 0..400 {
            while self.step() {}
            if !self.wake() {
                break;
            }
        }
        while self.step() {}
        self.note_events();
    }

    /// Puts a fresh drive in the place of a member, or beside it: its log is empty.
    fn fresh_drive(&mut self, replace: bool) {
        let members = self.config.layout.members;
        let member = self.random.below(u64::from(members)) as u16;
        let device = if replace { members + member } else { member };
        let (sectors, index) = (Sectors(MEMBER), MemberIndex(member));
        if self.driver.array.is_failed(index) == replace {
            return;
        }
        let command = match replace {
            true => Admin::Replace { member: index, sectors, consent: true },
            false => Admin::Add { member: index, sectors },
        };
        let before = self.driver.events.len();
        self.driver.input(Input::Admin(command));
        let refused = |event: &Event| matches!(event, Event::Refused(..));
        if self.driver.events[before..].iter().any(refused) {
            return;
        }
        // Nothing has been done to it yet.
        self.driver.records.wipe(device);
        self.driver.members[usize::from(device)].fill(0x55);
        self.durable[usize::from(device)].fill(0x55);
        self.gone.retain(|gone| *gone != device);
        self.note_events();
    }

    /// Reads everything and compares it with what is promised; what is there is durable from now on.
    fn check(&mut self, context: &str) {
        let capacity = self.values.len() as u32;
        let found = self.driver.read(0, capacity).expect("readable");
        for (at, byte) in found.iter().enumerate() {
            let place = self.driver.array.geometry().place(Sector(at as u64), 0);
            let values = &mut self.values[at];
            let partial =
                matches!(self.config.settings.consistency, Consistency::PartialParity { .. });
            let excepted = partial && values.len() > 1 && self.excepted.contains(&place.member.0);
            assert!(
                excepted || values.iter().any(|(value, _)| value == byte),
                "{context}: sector {at} on member {} is {byte}, not one of {values:?}",
                place.member.0
            );
            *values = vec![(*byte, RequestId(0))];
        }
        self.excepted.clear();
        if self.lost.is_empty() {
            parity_is_right(&self.driver, self.config.layout.members, context);
        }
    }
}

/// Every P and Q is what its row makes it.
fn parity_is_right(driver: &Driver, members: u16, context: &str) {
    let Geometry::Parity(parity) = driver.array.geometry() else { panic!("no parity") };
    for row in 0..MEMBER {
        let (mut p, mut q, mut sums) = (0, None, (0, 0));
        for member in 0..members {
            let byte = driver.members[usize::from(member)][row as usize];
            match driver
                .array
                .geometry()
                .holds(Place { member: MemberIndex(member), at: Sector(row) })
            {
                Holds::P { .. } => p = byte,
                Holds::Q { .. } => q = Some(byte),
                Holds::Data { at, .. } => {
                    let place = parity.stripe_place(at);
                    let power = field::power(parity.q_exponent(place.stripe, place.chunk));
                    sums = (sums.0 ^ byte, sums.1 ^ field::multiply(power, byte));
                }
                Holds::Nothing => {}
            }
        }
        assert_eq!(p, sums.0, "{context}: P of row {row}");
        assert!(q.is_none_or(|q| q == sums.1), "{context}: Q of row {row}");
    }
}

/// Random writes, a crash at any point, perhaps another in the replay, perhaps a member lost; again
/// and again.
fn crashes(layout: &Layout, consistency: Consistency, seed: u64, depth: u64) -> Bench {
    crashes_of(Bench::new(layout, consistency, seed), seed, depth)
}

fn crashes_of(mut bench: Bench, seed: u64, depth: u64) -> Bench {
    let (layout, consistency) = (&bench.config.layout.clone(), bench.config.settings.consistency);
    let context = format!("{layout} {consistency:?} seed {seed}");
    if bench.random.below(4) == 0 {
        // Degraded from the start.
        bench.fail_one();
        while bench.step() {}
    }
    for round in 0..3 {
        for _ in 0..bench.random.below([60, 200][bench.slow as usize]) {
            match bench.random.below(200) {
                0 => bench.fail_one(),
                188 => bench.recover(),
                189 => {
                    bench.fresh_drive(true);
                    bench.submit();
                    bench.recover();
                }
                190..194 => bench.fresh_drive(false),
                194..196 => bench.fresh_drive(true),
                196.. => {
                    bench.wake();
                }
                1..40 => bench.submit(),
                40..44 => {
                    // A batch.
                    bench.driver.input(Input::Plug);
                    (0..4).for_each(|_| bench.submit());
                    bench.driver.input(Input::Unplug);
                    bench.settle();
                }
                _ => {
                    bench.step();
                }
            }
        }
        let survives = usize::from(layout.survives());
        let lose = |bench: &mut Bench| {
            bench.lost = bench.missing_if_found();
            let member = bench.random.below(2 * u64::from(layout.members)) as u16;
            let can = member < layout.members
                && !bench.lost.contains(&member)
                && bench.lost.len() < survives;
            can.then_some(member)
        };
        let lost = lose(&mut bench);
        bench.crash(lost);
        for _ in 0..bench.random.below(depth + 1) {
            bench.wake();
            for _ in 0..bench.random.below(20) {
                bench.step();
            }
            let lost = lose(&mut bench);
            bench.crash(lost);
        }
        bench.recover();
        bench.check(&format!("{context} round {round}"));
    }
    bench
}

fn raid5(members: u16) -> Layout {
    Layout::new(Level::Raid5, members).with_chunk(Sectors(CHUNK))
}

fn journals() -> Vec<(Layout, Consistency)> {
    let layouts = [
        raid5(3),
        raid5(5),
        Layout::new(Level::Raid4, 4).with_chunk(Sectors(CHUNK)),
        Layout::new(Level::Raid6, 4).with_chunk(Sectors(CHUNK)),
        Layout::new(Level::Raid6, 6).with_chunk(Sectors(CHUNK)),
    ];
    let sizes = |layout: &Layout| {
        let least = 3 * u64::from(LOG_HEADER) + u64::from(layout.members) * CHUNK;
        [least, least + 13, 4 * least]
    };
    let with = |layout: &Layout| {
        let all = sizes(layout).map(|sectors| Consistency::Journal { sectors: Sectors(sectors) });
        all.map(|mode| (layout.clone(), mode))
    };
    layouts.iter().flat_map(with).collect()
}

const SEEDS: u64 = 400;

#[test]
fn partial_parity_survives_a_crash_at_any_point() {
    let (mut rebuilt, mut replaced) = (0, 0);
    for members in [3, 4, 6] {
        for slots in [6, 7, 32] {
            for seed in 0..SEEDS {
                let bench = crashes(&raid5(members), Consistency::PartialParity { slots }, seed, 0);
                (rebuilt, replaced) = (rebuilt + bench.rebuilt, replaced + bench.replaced);
            }
        }
    }
    assert!(rebuilt > 100 && replaced > 20, "{rebuilt} rebuilt, {replaced} replaced");
}

#[test]
fn the_journal_survives_a_crash_at_any_point() {
    for (layout, mode) in journals() {
        for seed in 0..SEEDS / 2 {
            crashes(&layout, mode, seed, 0);
        }
    }
}

#[test]
fn a_replay_may_be_interrupted_anywhere() {
    for seed in 0..SEEDS {
        crashes(&raid5(4), Consistency::PartialParity { slots: 8 }, seed, 3);
    }
    for (layout, mode) in journals() {
        for seed in 0..SEEDS / 4 {
            crashes(&layout, mode, seed, 3);
        }
    }
}

/// What a drive cannot read is mended from parity, which is consistent when the replay is over only.
#[test]
fn parity_is_right_although_the_log_cannot_be_read() {
    let mut unread = 0;
    for seed in 0..SEEDS {
        let mut bench = Bench::new(&raid5(4), Consistency::PartialParity { slots: 8 }, seed);
        bench.write_for_a_while();
        if bench.missing_if_found().is_empty() {
            bench.crash(None);
            let mut random = SplitMix64::new(seed);
            let bad = Rc::new(Cell::new(0));
            let count = Rc::clone(&bad);
            bench.driver.fault = Box::new(move |io| {
                if io.op == IoOp::Read && io.at.0 >= MEMBER && random.below(2) == 0 {
                    count.set(count.get() + 1);
                    let first_bad = Sector(io.at.0 + random.below(u64::from(io.len)));
                    return IoOutcome::MediaError { first_bad };
                }
                IoOutcome::Ok
            });
            bench.recover();
            bench.check(&format!("seed {seed}"));
            unread += bad.get();
        }
    }
    assert!(unread > 100, "{unread}");
}

/// Where neither the log nor all chunks of a row can be had, its parity is nothing to compute from, though its drive
/// reads it without an error: the list of bad blocks names it, for later starts.
#[test]
fn parity_that_a_replay_could_not_make_is_listed_as_bad() {
    let mut listed = 0;
    for seed in 0..SEEDS {
        let mut bench = Bench::new(&raid5(4), Consistency::PartialParity { slots: 8 }, seed);
        bench.config.settings.keeps_bad_blocks = true;
        bench.driver = Driver::new(&bench.config);
        bench.write_for_a_while();
        if bench.missing_if_found().is_empty() {
            bench.crash(Some((seed % 4) as u16));
            bench.driver.fault = Box::new(|io| match io.op == IoOp::Read && io.at.0 >= MEMBER {
                true => IoOutcome::MediaError { first_bad: io.at },
                false => IoOutcome::Ok,
            });
            bench.recover();
            for member in (0..4).map(MemberIndex) {
                let array = &bench.driver.array;
                assert!(array.listed_blocks(member).eq(array.bad_blocks(member)), "seed {seed}");
                listed += array.listed_blocks(member).count();
            }
        }
    }
    assert!(listed > 20, "{listed}");
}

#[test]
fn no_scrub_begins_before_a_replay_is_over() {
    let mut config = Config::uniform(raid5(3), Sectors(MEMBER));
    config.settings.consistency = Consistency::PartialParity { slots: 6 };
    let mut driver = Driver::new(&config);
    assert_eq!(driver.write(0, &[7]), Outcome::Done);
    driver.reassemble(&config, &[], Word::default()).expect("all are there");
    let scrub = Admin::StartScrub(Scrub::Check);
    driver.input(Input::Admin(scrub));
    let refused = Event::Refused(Refusal::Busy);
    assert_eq!(driver.events, [refused, Event::Started(contract::Work::LogReplay)]);
    driver.run_until_idle(30);
    driver.input(Input::Admin(scrub));
    assert_eq!(driver.events.last(), Some(&Event::Started(contract::Work::Scrub(Scrub::Check))));
}

#[test]
fn a_replay_ends_when_the_array_is_lost_in_it() {
    let mut modes = journals();
    modes.push((raid5(4), Consistency::PartialParity { slots: 8 }));
    let mut lost = 0;
    for (layout, mode) in modes {
        for seed in 0..40 {
            let mut bench = Bench::new(&layout, mode, seed);
            for _ in 0..60 {
                bench.submit();
                bench.step();
            }
            bench.crash(None);
            bench.wake();
            for _ in 0..bench.random.below(12) {
                bench.step();
            }
            let replaying = !bench.driver.work.is_empty();
            for member in 0..=layout.survives() {
                bench.driver.input(Input::Admin(Admin::Fail(MemberIndex(member))));
            }
            let token = bench.driver.buffer(vec![1]);
            let segment = Segment { token, offset: 0, len: 1 };
            let write = bench.driver.submit(IoOp::Write, 0, &[segment]);
            for _ in 0..20 {
                bench.driver.run();
                bench.wake();
            }
            assert_eq!(bench.driver.outcome(write), Some(Outcome::ArrayFailed), "{layout} {seed}");
            lost += usize::from(replaying);
        }
    }
    assert!(lost > 200, "only {lost} were lost in a replay");
}

#[cfg(debug_assertions)]
#[test]
fn every_bug_planted_in_the_logs_is_found() {
    use raidlab_core::bugs::Bug;
    let partial = |slots| vec![(raid5(4), Consistency::PartialParity { slots })];
    let bugs = [
        (Bug::PplAfterData, partial(8)),
        (Bug::PplReusedEarly, partial(6)),
        (Bug::PplWrongXor, partial(8)),
        (Bug::PplOldestWins, partial(8)),
        (Bug::ReplayMissing, partial(8)),
        (Bug::JournalAfterData, journals()),
        (Bug::JournalNotDurable, journals()),
        (Bug::JournalRetiredEarly, journals()),
        (Bug::JournalSkipsParity, journals()),
        (Bug::JournalOldestWins, journals()),
        (Bug::ReplayMissing, journals()),
    ];
    std::panic::set_hook(Box::new(|info| eprintln!("{info}")));
    let mut missed = Vec::new();
    for (bug, modes) in bugs {
        let found = (0..2000).find(|seed| {
            let (layout, mode) = &modes[*seed as usize % modes.len()];
            let mut bench = Bench::new(layout, *mode, *seed);
            bench.bug = Some(bug);
            bench.plant();
            let run = std::panic::AssertUnwindSafe(|| crashes_of(bench, *seed, 1));
            std::panic::catch_unwind(run).is_err()
        });
        match found {
            Some(seed) => eprintln!("{} found at seed {seed}", bug.name()),
            None => missed.push(bug.name()),
        }
    }
    drop(std::panic::take_hook());
    assert!(missed.is_empty(), "not found: {missed:?}");
}

/// Superblocks that say that the journal is in use.
fn journal_is_recorded(bench: &Bench) -> bool {
    let found = bench.driver.records.found(&bench.config, &bench.driver.members, &[]);
    superblocks(&found).any(|superblock| superblock.journal)
}

fn writes(bench: &Bench) -> usize {
    bench.driver.log.iter().filter(|io| io.op == IoOp::Write || io.op == IoOp::WriteZeroes).count()
}

#[test]
fn a_journal_that_fails_is_given_up() {
    for (layout, mode) in journals() {
        for nth in 0..24 {
            let mut bench = Bench::new(&layout, mode, nth);
            let context = format!("{layout} {mode:?} from entry {nth} on");
            let mut seen = 0;
            bench.journal_fails = Some(nth);
            let mut logged = None;
            for _ in 0..600 {
                if bench.random.below(4) == 0 && bench.next < (1 << 32) + 60 {
                    bench.submit();
                }
                bench.step();
                if logged.is_none() && bench.driver.events.contains(&Event::JournalFailed) {
                    logged = Some(writes(&bench));
                }
                if let Some(count) = logged
                    && journal_is_recorded(&bench)
                {
                    assert_eq!(writes(&bench), count, "{context}: written before that is recorded");
                    seen += 1;
                }
            }
            while bench.step() {}
            assert!(bench.pending.is_empty(), "{context}: {} not answered", bench.pending.len());
            let failed = bench.driver.events.iter().filter(|e| **e == Event::JournalFailed).count();
            assert_eq!(failed, 1, "{context}");
            assert!(seen > 0 && !journal_is_recorded(&bench), "{context}");
            bench.check(&context);
        }
    }
}

#[test]
fn a_journal_that_fails_in_the_replay_is_given_up() {
    let mut met = 0;
    for (layout, mode) in journals() {
        for seed in 0..20 {
            let mut bench = Bench::new(&layout, mode, seed);
            for _ in 0..60 {
                bench.submit();
                bench.step();
            }
            bench.crash(None);
            let journal = bench.driver.array.journal();
            bench.driver.fault = Box::new(move |io| match io.member == journal {
                true => IoOutcome::MediaError { first_bad: io.at },
                false => IoOutcome::Ok,
            });
            bench.recover();
            if bench.driver.events.contains(&Event::JournalFailed) {
                met += 1;
                assert!(!journal_is_recorded(&bench));
            }
            // Requests go on.
            let capacity = bench.driver.array.capacity().0;
            assert_eq!(bench.driver.write(0, &vec![7; capacity as usize]), Outcome::Done);
            parity_is_right(&bench.driver, layout.members, "written anew");
        }
    }
    assert!(met > 100, "only {met} replays met the failure");
}
