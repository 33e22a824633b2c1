//! Crashes again and again, members that leave and come back, and what must be there afterwards.

use std::cell::Cell;
use std::rc::Rc;

use crate::support::{Driver, Word};
use raidlab_core::consistency::Examined;
use raidlab_core::contract::{Admin, Event, Input, IoOp, IoOutcome, Outcome, Refusal, RequestId};
use raidlab_core::{
    Config, Consistency, Layout, Level, Limits, MemberIndex, Nanos, Sector, Sectors,
};
use raidlab_random::SplitMix64;

const SECTORS: u64 = 64;

/// A value that a sector may hold.
#[derive(Clone, Copy, Debug)]
struct Value {
    byte: u8,
    write: Option<RequestId>,
    answered: bool,
}

/// A flush in flight, and which writes were answered before it.
struct Flush {
    id: RequestId,
    covers: Vec<RequestId>,
}

/// An array over members with caches, and every value that each sector may hold.
struct Bench {
    driver: Driver,
    config: Config,
    random: SplitMix64,
    /// Of each sector, in the order of writing; those up to the last durable one are forgotten.
    values: Vec<Vec<Value>>,
    /// Writes in flight.
    writes: Vec<(RequestId, std::ops::Range<u64>, bool)>,
    flushes: Vec<Flush>,
    replied: usize,
    flushes_seldom: bool,
    /// Members whose drives are not plugged in.
    away: Vec<u16>,
}

impl Bench {
    fn new(config: &Config, seed: u64) -> Self {
        let mut config = config.clone();
        // Now the array is marked clean before bits are cleared, now bits are cleared while it is busy.
        (config.settings.clean_after, config.settings.bitmap_delay) = match seed % 3 {
            0 => (Nanos(2000), Nanos(15)),
            _ => (Nanos(30), Nanos(70)),
        };
        config.settings.cached_stripes = (seed % 2 * 4) as u32;
        let mut driver = Driver::new(&config);
        #[cfg(debug_assertions)]
        if let Some(bug) = PLANTED.get() {
            driver.array.plant(bug);
        }
        driver.caches.begin();
        let zero = Value { byte: 0, write: None, answered: true };
        Self {
            values: vec![vec![zero]; driver.array.capacity().0 as usize],
            driver,
            config,
            random: SplitMix64::new(seed),
            writes: Vec::new(),
            flushes: Vec::new(),
            replied: 0,
            flushes_seldom: seed.is_multiple_of(3),
            away: Vec::new(),
        }
    }

    fn step(&mut self) {
        let unit = u64::from(self.driver.array.logical_block());
        let capacity = self.driver.array.capacity().0;
        let accepts = self.driver.array.can_accept();
        match self.random.below(10) {
            0..=2 if accepts => {
                let at = self.random.below(capacity / unit) * unit;
                let len = ((1 + self.random.below(5)) * unit).min(capacity - at);
                let range = at..at + len;
                let busy = |known: &(_, std::ops::Range<u64>, _)| {
                    known.1.start < range.end && range.start < known.1.end
                };
                if !self.writes.iter().any(busy) {
                    self.write(range);
                }
            }
            3 if accepts && (!self.flushes_seldom || self.random.below(12) == 0) => {
                let id = self.driver.submit(IoOp::Flush, 0, &[]);
                let all = self.values.iter().flatten();
                let answered = all.filter(|value| value.answered).filter_map(|value| value.write);
                self.flushes.push(Flush { id, covers: answered.collect() });
            }
            4 | 5 if self.driver.work.len() < 2 => self.wake(),
            _ if !self.driver.work.is_empty() => {
                let index = self.random.below(self.driver.work.len() as u64) as usize;
                self.driver.step(index);
            }
            _ => {}
        }
        self.take_replies();
    }

    fn wake(&mut self) {
        if let Some(at) = self.driver.wake.take() {
            self.driver.now = self.driver.now.max(at);
            self.driver.input(Input::Wake);
        }
    }

    fn write(&mut self, range: std::ops::Range<u64>) {
        let fua = self.random.below(5) == 0;
        let bytes: Vec<u8> = range.clone().map(|_| self.random.next_u64() as u8).collect();
        let id = self.driver.begin_write(range.start, &bytes, fua);
        for (sector, byte) in range.clone().zip(&bytes) {
            let value = Value { byte: *byte, write: Some(id), answered: false };
            self.values[sector as usize].push(value);
        }
        self.writes.push((id, range, fua));
    }

    fn take_replies(&mut self) {
        let new = self.driver.replies[self.replied..].to_vec();
        self.replied = self.driver.replies.len();
        for (id, outcome) in new {
            if let Some(index) = self.writes.iter().position(|(known, ..)| *known == id) {
                let (_, range, fua) = self.writes.remove(index);
                if outcome == Outcome::Done {
                    range.for_each(|sector| self.answered(sector as usize, id, fua));
                }
            }
            if let Some(index) = self.flushes.iter().position(|flush| flush.id == id) {
                let flush = self.flushes.remove(index);
                if outcome == Outcome::Done {
                    self.flushed(&flush);
                }
            }
        }
    }

    fn answered(&mut self, sector: usize, id: RequestId, durable: bool) {
        let values = &mut self.values[sector];
        let index = values.iter().position(|value| value.write == Some(id)).expect("known");
        values[index].answered = true;
        if durable {
            values.drain(..index);
        }
    }

    fn flushed(&mut self, flush: &Flush) {
        for values in &mut self.values {
            let covered = |value: &Value| value.write.is_some_and(|id| flush.covers.contains(&id));
            if let Some(index) = values.iter().rposition(covered) {
                values.drain(..index);
            }
        }
    }

    /// Loses power, and starts without the drives that are away.
    fn crash(&mut self) {
        let allow = Word { missing: true, dirty_degraded: false };
        self.driver.lose_power(&mut self.random);
        self.writes.clear();
        self.flushes.clear();
        // Any of them may have survived; which, nobody knows.
        self.values.iter_mut().flatten().for_each(|value| value.write = None);
        self.driver.reassemble(&self.config, &self.away, allow).expect("starts");
        #[cfg(debug_assertions)]
        if let Some(bug) = PLANTED.get() {
            self.driver.array.plant(bug);
        }
        self.replied = self.driver.replies.len();
    }

    /// Every sector holds a value it may; the newest answered one, unless there was a crash since.
    fn check(&mut self, context: &str) {
        self.driver.run_until_idle(60);
        self.take_replies();
        let capacity = self.driver.array.capacity().0;
        let found = self.driver.read(0, capacity as u32).expect(context);
        self.replied = self.driver.replies.len();
        for (sector, byte) in found.iter().enumerate() {
            let values = &self.values[sector];
            let legal = values.iter().any(|value| value.byte == *byte);
            assert!(legal, "{context}: sector {sector} holds {byte}, of {values:?}");
        }
    }

    /// With all members in service and everything done, redundancy agrees everywhere: the array holds
    /// the same without any one member.
    fn check_redundancy(&mut self, context: &str) {
        let capacity = self.driver.array.capacity().0 as u32;
        let whole = self.driver.read(0, capacity).expect(context);
        let survives = self.config.layout.survives();
        for first in 0..self.config.layout.members {
            for second in 0..self.config.layout.members {
                if survives < 2 && second != first {
                    continue;
                }
                let mut config = self.config.clone();
                config.settings.consistency = Consistency::None;
                let mut found = self.driver.records.found(&config, &self.driver.members, &[first]);
                found.members[usize::from(second)] = Examined::absent();
                let array = Word::default().start(&config, &found);
                let mut degraded = self.driver.with_members(array.expect(context), &config);
                let seen = degraded.read(0, capacity);
                assert_eq!(seen.as_ref(), Ok(&whole), "{context}: without {first}, {second}");
            }
        }
        self.replied = self.driver.replies.len();
    }
}

#[cfg(debug_assertions)]
thread_local! {
    /// What is planted in every array.
    static PLANTED: Cell<Option<raidlab_core::bugs::Bug>> =
        const { Cell::new(None) };
}

fn config(layout: Layout, mode: Consistency) -> Config {
    let mut config = Config::uniform(layout, Sectors(SECTORS));
    config.limits = Limits { requests: 6, segments: 5, ios: 1, plans: 4, windows: 2 };
    config.settings.consistency = mode;
    config
}

fn layouts() -> Vec<Layout> {
    let chunk = Sectors(8);
    vec![
        Layout::new(Level::Raid1, 2),
        Layout::new(Level::Raid1, 3),
        Layout::new(Level::Raid3, 3),
        Layout::new(Level::Raid4, 4).with_chunk(chunk),
        Layout::new(Level::Raid5, 3).with_chunk(chunk),
        Layout::new(Level::Raid6, 4).with_chunk(chunk),
        Layout::new(Level::Raid10, 4).with_chunk(chunk),
    ]
}

fn modes(layout: &Layout) -> Vec<Consistency> {
    let mut modes =
        vec![Consistency::None, Consistency::Resync, Consistency::Bitmap { chunk: Sectors(4) }];
    if layout.level == Level::Raid5 {
        modes.push(Consistency::PartialParity { slots: 6 });
    }
    if matches!(layout.level, Level::Raid4 | Level::Raid5 | Level::Raid6) {
        modes.push(Consistency::Journal { sectors: Sectors(512) });
    }
    modes
}

#[test]
fn crashes_lose_nothing_that_was_promised_and_redundancy_is_whole_again() {
    for layout in layouts() {
        for mode in modes(&layout) {
            let config = config(layout.clone(), mode);
            for seed in 0..25 {
                let context = format!("{layout} {mode:?} seed {seed}");
                let mut bench = Bench::new(&config, seed);
                for _ in 0..4 {
                    for _ in 0..bench.random.below(160) {
                        bench.step();
                    }
                    bench.crash();
                    // And again, while it is being made consistent.
                    for _ in 0..bench.random.below(3) {
                        for _ in 0..bench.random.below(40) {
                            bench.wake();
                            bench.step();
                        }
                        bench.crash();
                    }
                    if bench.random.below(2) == 0 {
                        bench.check(&context);
                    }
                }
                bench.check(&context);
                bench.check_redundancy(&context);
            }
        }
    }
}

#[test]
fn a_crash_that_also_takes_members_loses_nothing_where_that_is_promised() {
    let survivable = |layout: &Layout, away: &[u16]| match layout.level {
        Level::Raid10 => away.len() == 1 || away.iter().all(|m| m % 2 == away[0] % 2),
        _ => away.len() <= usize::from(layout.survives()),
    };
    for layout in layouts() {
        let mirror = matches!(layout.level, Level::Raid1 | Level::Raid10);
        let journal = |mode: &Consistency| matches!(mode, Consistency::Journal { .. });
        for mode in modes(&layout).into_iter().filter(|mode| mirror || journal(mode)) {
            let config = config(layout.clone(), mode);
            let sets = (1u32..1 << layout.members)
                .map(|set| (0..layout.members).filter(|m| set >> m & 1 == 1).collect::<Vec<u16>>());
            for away in sets.filter(|away| survivable(&layout, away)) {
                for seed in 0..20 {
                    let context = format!("{layout} {mode:?} seed {seed} without {away:?}");
                    let mut bench = Bench::new(&config, seed);
                    steps(&mut bench, 200);
                    bench.away.clone_from(&away);
                    bench.crash();
                    steps(&mut bench, 100);
                    bench.crash();
                    bench.check(&context);
                }
            }
        }
    }
}

/// Members leave, with or without a crash, and come back with what the bits name; how many times that
/// could be done, and could not.
fn away_and_back(config: &Config, seed: u64) -> [u32; 2] {
    let context = format!("{} seed {seed}", config.layout);
    let [mut by_bits, mut refused] = [0, 0];
    let mut bench = Bench::new(config, seed);
    let mirror = bench.driver.array.geometry().copies() > 1;
    for _ in 0..3 {
        steps(&mut bench, 120);
        let gone = bench.random.below(u64::from(config.layout.members)) as u16;
        let member = MemberIndex(gone);
        bench.driver.input(Input::Admin(Admin::Fail(member)));
        bench.away = vec![gone];
        steps(&mut bench, 120);
        if mirror && bench.random.below(2) == 0 {
            bench.crash();
            steps(&mut bench, 60);
        }
        bench.driver.run_until_idle(30);
        bench.take_replies();
        let events = bench.driver.records.superblock(gone).expect("it was there").events;
        bench.driver.events.clear();
        let command = Admin::ReAdd { member, events, good_to: Sector::MAX };
        bench.driver.input(Input::Admin(command));
        if bench.driver.events.contains(&Event::Refused(Refusal::NothingKnown)) {
            refused += 1;
            bench.driver.records.wipe(gone);
            bench.driver.input(Input::Admin(Admin::Add { member, sectors: Sectors(SECTORS) }));
        } else {
            by_bits += 1;
        }
        bench.away.clear();
        steps(&mut bench, 60);
        bench.check(&context);
        assert!(bench.driver.events.contains(&Event::Restored(member)), "{context}");
        bench.check_redundancy(&context);
    }
    [by_bits, refused]
}

#[test]
fn a_member_that_was_away_gets_what_the_bits_name() {
    let mut by_bits = 0;
    for layout in layouts() {
        let config = config(layout.clone(), Consistency::Bitmap { chunk: Sectors(4) });
        for seed in 0..40 {
            by_bits += away_and_back(&config, seed)[0];
        }
    }
    assert!(by_bits > 500, "{by_bits} by bits");
}

/// A member fails, then so many that the array is lost; then all drives are plugged in again.
fn lost_and_found(config: &Config, seed: u64) -> bool {
    let context = format!("{} {:?} seed {seed}", config.layout, config.settings.consistency);
    let mut bench = Bench::new(config, seed);
    let members = u64::from(config.layout.members);
    let mut order: Vec<u16> = (0..config.layout.members).collect();
    order.rotate_left(bench.random.below(members) as usize);
    let mut at: Vec<u64> = order.iter().map(|_| bench.random.below(60)).collect();
    at.sort_unstable();
    let error = [IoOutcome::Gone, IoOutcome::Timeout][bench.random.below(2) as usize];
    let count = Rc::new(Cell::new(0));
    let fails = move |member: MemberIndex| {
        count.set(count.get() + 1);
        let gone = order.iter().zip(&at).any(|(m, at)| member.0 == *m && count.get() > *at);
        if gone { error } else { IoOutcome::Ok }
    };
    let also = fails.clone();
    bench.driver.fault = Box::new(move |io| fails(io.member));
    bench.driver.meta_fault = Box::new(move |meta| also(meta.member));
    for _ in 0..300 {
        bench.step();
    }
    let lost = bench.driver.events.contains(&Event::ArrayFailed);
    bench.crash();
    bench.check(&context);
    for member in (0..config.layout.members).map(MemberIndex) {
        if bench.driver.array.is_failed(member) {
            bench.driver.records.wipe(member.0);
            bench.driver.input(Input::Admin(Admin::Add { member, sectors: Sectors(SECTORS) }));
            bench.check(&context);
        }
    }
    bench.check_redundancy(&context);
    lost
}

#[test]
fn what_was_answered_is_there_when_a_lost_array_comes_back() {
    let journal = Consistency::Journal { sectors: Sectors(512) };
    for layout in layouts() {
        // Others must not start dirty with members missing.
        let modes = match layout.level {
            Level::Raid1 | Level::Raid10 => modes(&layout),
            Level::Raid3 => continue,
            _ => vec![journal],
        };
        for mode in modes.into_iter().filter(|mode| mode.has_superblocks()) {
            let config = config(layout.clone(), mode);
            let lost = (0..60).filter(|seed| lost_and_found(&config, *seed)).count();
            assert!(lost > 20, "{layout} {mode:?}: {lost}");
        }
    }
}

#[test]
fn a_drive_that_is_too_old_or_went_on_alone_is_not_taken_back_by_bits() {
    let config = config(Layout::new(Level::Raid1, 2), Consistency::Bitmap { chunk: Sectors(4) });
    let mut bench = Bench::new(&config, 1);
    let member = MemberIndex(1);
    assert_eq!(bench.driver.write(0, &[1]), Outcome::Done);
    let old = bench.driver.records.superblock(1).expect("there").events;
    // Bits are cleared and set again: what the drive of then missed is no longer named.
    for round in 0..4 {
        bench.driver.run_until_idle(30);
        assert_eq!(bench.driver.write(20, &[round]), Outcome::Done);
    }
    bench.driver.run_until_idle(30);
    let last = bench.driver.records.superblock(1).expect("there").events;
    bench.driver.input(Input::Admin(Admin::Fail(member)));
    bench.driver.run();
    let refused = |driver: &mut Driver, events: u64| {
        let command = Admin::ReAdd { member, events, good_to: Sector::MAX };
        driver.events.clear();
        driver.input(Input::Admin(command));
        driver.events.contains(&Event::Refused(Refusal::NothingKnown))
    };
    assert!(refused(&mut bench.driver, old));
    assert!(refused(&mut bench.driver, last + 1), "it never got there with the others");
    // The same after a crash, when only superblocks remember.
    bench.away = vec![1];
    bench.crash();
    bench.driver.run_until_idle(30);
    assert!(refused(&mut bench.driver, old));
    assert!(!refused(&mut bench.driver, last));
}

fn steps(bench: &mut Bench, most: u64) {
    for _ in 0..bench.random.below(most) {
        bench.step();
    }
}

#[cfg(debug_assertions)]
mod planted {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use raidlab_core::bugs::Bug;

    use super::*;

    /// Whether some seed shows what is planted.
    fn is_seen(bug: Bug, run: impl Fn(u64)) -> bool {
        (0..400).any(|seed| {
            PLANTED.set(Some(bug));
            let seen = catch_unwind(AssertUnwindSafe(|| run(seed))).is_err();
            PLANTED.set(None);
            seen
        })
    }

    fn raid5() -> Layout {
        Layout::new(Level::Raid5, 3).with_chunk(Sectors(8))
    }

    #[test]
    fn crashes_show_what_is_recorded_too_late() {
        let bitmap = Consistency::Bitmap { chunk: Sectors(4) };
        for (bug, mode) in [
            (Bug::BitmapClearUnflushed, bitmap),
            (Bug::BitmapBitLate, bitmap),
            (Bug::DirtyFlagLate, Consistency::Resync),
            (Bug::CleanUnflushed, Consistency::Resync),
            (Bug::DropFua, Consistency::Resync),
            (Bug::SkipFlushOneMember, Consistency::Resync),
            (Bug::AckFlushEarly, Consistency::Resync),
        ] {
            let config = config(raid5(), mode);
            let seen = is_seen(bug, |seed| {
                let mut bench = Bench::new(&config, seed);
                for _ in 0..4 {
                    steps(&mut bench, 300);
                    bench.crash();
                    bench.check("planted");
                    bench.check_redundancy("planted");
                }
            });
            assert!(seen, "{bug:?}");
        }
    }

    #[test]
    fn members_that_come_and_go_show_what_is_not_known_of_them() {
        let bits = config(raid5(), Consistency::Bitmap { chunk: Sectors(4) });
        let mirror = config(Layout::new(Level::Raid1, 2), Consistency::Resync);
        for bug in [Bug::BitmapClearDegraded, Bug::AckBeforeRecorded, Bug::FailureNotRecorded] {
            let seen = is_seen(bug, |seed| {
                away_and_back(&bits, seed);
                lost_and_found(&mirror, seed);
            });
            assert!(seen, "{bug:?}");
        }
        let too_old = is_seen(Bug::ReAddTooOld, |_| {
            a_drive_that_is_too_old_or_went_on_alone_is_not_taken_back_by_bits();
        });
        assert!(too_old);
    }

    #[test]
    fn a_mirror_with_members_missing_shows_which_copies_were_written_and_read() {
        let layout = Layout::new(Level::Raid10, 4).with_chunk(Sectors(8));
        let config = config(layout, Consistency::Resync);
        for bug in [Bug::AckWriteEarly, Bug::WriteSkipsCopy, Bug::ReadFailedMember] {
            let seen = is_seen(bug, |seed| {
                let mut bench = Bench::new(&config, seed);
                steps(&mut bench, 200);
                bench.check("planted");
                bench.check_redundancy("planted");
                steps(&mut bench, 60);
                bench.away = vec![(seed % 4) as u16];
                bench.crash();
                bench.check("planted");
                steps(&mut bench, 200);
                bench.check("planted");
            });
            assert!(seen, "{bug:?}");
        }
    }
}
