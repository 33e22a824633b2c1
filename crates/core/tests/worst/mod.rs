//! What the tests of faults share: layouts with redundancy, a load beside background work, and what
//! every member must hold in the end.

use raidlab_core::contract::{Admin, Event, Input, IoOp, IoOutcome, Outcome, RequestId, Segment};
use raidlab_core::geometry::{Geometry, Holds, Place};
use raidlab_core::layout::Redundancy;
use raidlab_core::{Config, Layout, Level, Limits, MemberIndex, Sector, Sectors};
use raidlab_random::SplitMix64;

use crate::support::{Driver, Word, Work, field, small_arrays};

pub(crate) const CHUNK: u64 = 8;

/// Layouts that survive the loss of a member.
pub(crate) fn layouts() -> Vec<Layout> {
    let chunk = Sectors(CHUNK);
    let of = |level, members| Layout::new(level, members).with_chunk(chunk);
    let mut all = vec![Layout::new(Level::Raid1, 2), Layout::new(Level::Raid1, 3)];
    all.extend([3, 5].map(|n| Layout::new(Level::Raid3, n)));
    all.push(of(Level::Raid4, 4));
    all.extend([3, 4].map(|n| of(Level::Raid5, n)));
    all.extend([4, 6].map(|n| of(Level::Raid6, n)));
    for rotation in Level::Raid6.rotations() {
        all.push(of(Level::Raid6, 5).with_rotation(*rotation));
    }
    all.extend([(4, 2), (5, 2)].map(|(n, near)| of(Level::Raid10, n).with_near(near)));
    all.push(of(Level::Raid10, 4).with_far(2));
    all.push(of(Level::Raid10, 5).with_far(2).with_offset(true));
    // And what the table of levels has besides: a new level is here by its row.
    for small in small_arrays(CHUNK).filter(|layout| layout.level.is_redundant()) {
        if !all.contains(&small) {
            all.push(small);
        }
    }
    all
}

pub(crate) fn has_parity(layout: &Layout) -> bool {
    matches!(layout.level.redundancy(), Redundancy::Parity(_))
}

pub(crate) fn config(layout: &Layout, limits: Limits) -> Config {
    let mut config = Config { limits, ..Config::uniform(layout.clone(), Sectors(64)) };
    // As fast as it goes: many ranges at once.
    config.settings.pacing.most = u64::MAX;
    config
}

/// Plants the bug that the environment names, to see which tests find it.
#[cfg(debug_assertions)]
fn plant(driver: &mut Driver) {
    let name = std::env::var("RAIDLAB_BUG").unwrap_or_default();
    if let Some(bug) = raidlab_core::bugs::Bug::ALL.iter().find(|bug| bug.name() == name) {
        driver.array.plant(*bug);
    }
}

#[cfg(not(debug_assertions))]
fn plant(_: &mut Driver) {}

pub(crate) fn tight() -> Limits {
    Limits { requests: 6, segments: 5, ios: 1, plans: 2, windows: 1 }
}

/// The smallest request of a layout, in sectors.
pub(crate) fn block(layout: &Layout) -> u64 {
    if layout.level.is_cut_by_sectors() { u64::from(layout.members) - 1 } else { 1 }
}

/// An array with a load, and what it should hold.
pub(crate) struct Bench {
    pub(crate) driver: Driver,
    pub(crate) layout: Layout,
    pub(crate) flat: Vec<u8>,
    pub(crate) random: SplitMix64,
    /// Reads in flight: where, and into which segment.
    reads: Vec<(std::ops::Range<usize>, Segment)>,
    /// Requests of the load that are not answered.
    asked: Vec<RequestId>,
}

impl Bench {
    /// A full array.
    pub(crate) fn new(config: &Config, seed: u64) -> Self {
        let mut driver = Driver::new(config);
        plant(&mut driver);
        let capacity = driver.array.capacity().0;
        let mut random = SplitMix64::new(seed);
        let flat: Vec<u8> = (0..capacity).map(|_| random.next_u64() as u8).collect();
        let layout = config.layout.clone();
        let mut bench = Self { driver, layout, flat, random, reads: Vec::new(), asked: Vec::new() };
        let flat = bench.flat.clone();
        assert_eq!(bench.driver.write(0, &flat), Outcome::Done);
        bench.driver.replies.clear();
        bench
    }

    pub(crate) fn admin(&mut self, command: Admin) {
        self.driver.input(Input::Admin(command));
    }

    /// A crash at which everything that has ended is durable, and a start without members `lost`.
    pub(crate) fn crash(&mut self, config: &Config, lost: &[u16], allow: Word) {
        self.driver.reassemble(config, lost, allow).expect("it can be assembled");
        plant(&mut self.driver);
        self.reads.clear();
        self.driver.replies.clear();
        self.asked.clear();
    }

    /// Takes what the array holds now for what it should hold.
    pub(crate) fn learn(&mut self) {
        let len = self.flat.len() as u32;
        self.flat = self.driver.read(0, len).expect("readable");
        self.driver.replies.clear();
    }

    /// Some writes that do not overlap, of which `steps` pieces of work are done.
    pub(crate) fn write_some(&mut self, steps: usize) {
        let mut busy = Vec::new();
        for _ in 0..5 {
            self.submit_some(&mut busy);
        }
        for _ in 0..steps {
            if !self.driver.work.is_empty() {
                self.step();
            }
        }
    }

    pub(crate) fn fail(&mut self, member: u16) {
        self.driver.fail(member);
    }

    pub(crate) fn add(&mut self, member: u16) {
        self.admin(Admin::Add { member: MemberIndex(member), sectors: Sectors(64) });
    }

    pub(crate) fn has(&self, event: Event) -> bool {
        self.driver.events.contains(&event)
    }

    /// Submits a request that overlaps none in flight, now and then.
    fn submit_some(&mut self, busy: &mut Vec<std::ops::Range<u64>>) {
        let unit = block(&self.layout);
        let capacity = self.flat.len() as u64;
        let at = self.random.below(capacity / unit) * unit;
        let len = ((1 + self.random.below(24)) * unit).min(capacity - at);
        let overlaps = busy.iter().any(|r| r.start < at + len && at < r.end);
        if overlaps || !self.driver.array.can_accept() {
            return;
        }
        busy.push(at..at + len);
        let range = at as usize..(at + len) as usize;
        if self.random.below(3) == 0 {
            let token = self.driver.buffer(vec![0xdd; len as usize]);
            let segment = Segment { token, offset: 0, len: len as u32 };
            let id = self.driver.submit(IoOp::Read, at, &[segment]);
            self.asked.push(id);
            self.reads.push((range, segment));
        } else {
            let bytes: Vec<u8> = range.clone().map(|_| self.random.next_u64() as u8).collect();
            let token = self.driver.buffer(bytes.clone());
            let segment = Segment { token, offset: 0, len: len as u32 };
            let id = self.driver.submit(IoOp::Write, at, &[segment]);
            self.asked.push(id);
            self.flat[range].copy_from_slice(&bytes);
        }
    }

    /// One piece of work in random order, or a wait when there is none; false when nothing is left.
    pub(crate) fn step(&mut self) -> bool {
        if self.driver.work.is_empty() {
            let Some(at) = self.driver.wake.take() else { return false };
            self.driver.now = self.driver.now.max(at);
            self.driver.input(Input::Wake);
            return true;
        }
        let index = self.random.below(self.driver.work.len() as u64) as usize;
        self.driver.step(index);
        true
    }

    /// Random requests in random order until `until` or nothing is left to do; every request must
    /// go well.
    pub(crate) fn load_until(&mut self, until: impl Fn(&Self) -> bool) {
        let mut busy = Vec::new();
        for _ in 0..20_000 {
            if until(self) {
                break;
            }
            if self.random.below(6) == 0 {
                self.submit_some(&mut busy);
            }
            self.step();
            if self.driver.work.is_empty() && self.is_answered() {
                self.check_replies();
                busy.clear();
            }
        }
        assert!(until(self), "{}: it does not come: {:?}", self.layout, self.driver.events);
        self.settle();
    }

    /// Lets everything in flight end.
    pub(crate) fn settle(&mut self) {
        // What waits for a record waits for the array to be woken, at the start.
        for _ in 0..100_000 {
            if self.driver.work.is_empty() && self.is_answered() {
                break;
            }
            self.step();
        }
        self.check_replies();
    }

    /// Plants sectors that cannot be read, whatever is written there.
    pub(crate) fn latent(&mut self, places: &[(u16, u64)]) {
        let places = places.to_vec();
        self.driver.fault = Box::new(move |io| {
            let range = io.at.0..io.at.0 + u64::from(io.len);
            let bad = places.iter().filter(|(m, at)| io.member.0 == *m && range.contains(at));
            match bad.map(|(_, at)| *at).min() {
                Some(at) if io.op == IoOp::Read => IoOutcome::MediaError { first_bad: Sector(at) },
                _ => IoOutcome::Ok,
            }
        });
    }

    /// Steps until `until`, without requests.
    pub(crate) fn load_nothing_until(&mut self, until: impl Fn(&Self) -> bool) {
        while !until(self) {
            assert!(self.step(), "{}: it does not come: {:?}", self.layout, self.driver.events);
        }
    }

    /// Wakes the array until it has nothing more to do, whatever the outcome of requests.
    pub(crate) fn idle_all(&mut self) {
        while self.step() {}
        self.driver.replies.clear();
    }

    /// Whether an I/O to a member has not ended.
    pub(crate) fn in_flight_to(&self, member: MemberIndex) -> bool {
        let to = |work: &Work| matches!(work, Work::Io(io) if io.member == member);
        self.driver.work.iter().any(to)
    }

    /// Does pieces of work until one for member 1 is in flight, or nothing is left.
    pub(crate) fn settle_until_each_has_io(&mut self) {
        while !self.in_flight_to(MemberIndex(1)) && !self.driver.work.is_empty() {
            self.step();
        }
    }

    /// The same, whatever the outcome of requests.
    pub(crate) fn settle_all(&mut self) {
        self.driver.run();
    }

    /// Wakes the array until it has nothing more to do.
    pub(crate) fn idle(&mut self) {
        for _ in 0..100_000 {
            if !self.step() {
                self.check_replies();
                return;
            }
        }
        panic!("{}: it never ends", self.layout);
    }

    fn is_answered(&self) -> bool {
        let answered = |id: &RequestId| self.driver.replies.iter().any(|(known, _)| known == id);
        self.asked.iter().all(answered)
    }

    fn check_replies(&mut self) {
        for (id, outcome) in self.driver.replies.drain(..) {
            assert_eq!(outcome, Outcome::Done, "{} {id:?}", self.layout);
            self.asked.retain(|known| *known != id);
        }
        assert!(self.asked.is_empty(), "{}: every request is answered", self.layout);
        for (range, segment) in self.reads.drain(..) {
            let found = &self.driver.buffers[segment.token.0 as usize];
            // A write may have been submitted since; then the load would overlap, which it does not.
            assert_eq!(found[..], self.flat[range.clone()], "{} read of {range:?}", self.layout);
        }
        self.driver.buffers.clear();
    }

    /// What a member should hold at a place; nothing where the array does not use it.
    pub(crate) fn expected(&self, member: u16, at: u64) -> Option<u8> {
        let geometry = self.driver.array.geometry();
        let place = |member| Place { member: MemberIndex(member), at: Sector(at) };
        let q = match geometry.holds(place(member)) {
            Holds::Data { at, .. } => return self.flat.get(at.0 as usize).copied(),
            Holds::P { .. } => false,
            Holds::Q { .. } => true,
            Holds::Nothing => return None,
        };
        let data = (0..self.layout.members).filter_map(|member| {
            let Holds::Data { at: sector, .. } = geometry.holds(place(member)) else { return None };
            let byte = self.flat[sector.0 as usize];
            let Geometry::Parity(parity) = geometry else { return Some(byte) };
            let stripe = parity.stripe_place(sector);
            let factor = field::power(parity.q_exponent(stripe.stripe, stripe.chunk));
            Some(if q { field::multiply(factor, byte) } else { byte })
        });
        Some(data.fold(0, |sum, byte| sum ^ byte))
    }

    /// Every member holds what it should, byte for byte, but for these places.
    pub(crate) fn assert_whole_but(&self, but: &[(u16, u64)]) {
        for member in 0..self.layout.members {
            for at in 0..64 {
                let Some(expected) = self.expected(member, at) else { continue };
                let found = self.driver.members[usize::from(member)][at as usize];
                if !but.contains(&(member, at)) {
                    assert_eq!(found, expected, "{} member {member} at {at}", self.layout);
                }
            }
        }
    }

    pub(crate) fn assert_whole(&self) {
        self.assert_whole_but(&[]);
    }
}
