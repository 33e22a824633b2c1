//! How fast background work goes: between a least and a most, or a share of the time.
//!
//! As Linux md has it (`md_do_sync` and `is_mddev_idle` in drivers/md/md.c, kernel 6.1 and 6.12): what was done is
//! never faster than the most, but for what is in flight: raid10 begins 32 MiB at once whenever it is below, so that a
//! kernel passes a small most by half and more; slower than the least as much at once as there is room for, whatever
//! else goes on; in between, each range looks at what the members did for others first. When that was more than
//! 32 KiB on one of them since it was last found to be, what is in flight ends before the range is begun. So a few
//! small requests a second hardly slow it down.
//!
//! Since 6.16 (`sync_io_within_limit` and `is_mddev_idle` of that kernel) a bounded amount is in flight without a look.
//! With more, the array is looked at: when it had requests since the last look, or has some, what is in flight ends
//! first. This rule was written from its description and has not been compared with a kernel.
//!
//! Rates are kept as moments: what was begun at rate r moves the moment on by its bytes / r, and
//! work is ahead of the rate while that moment lies ahead. How far behind it may fall is bounded, so
//! that a pause is not made up for in one go.

use crate::contract::{Pacing, PacingRule};
use crate::units::{Nanos, Time};

/// A driver's timers may come this late without costing speed.
const MOST_CREDIT: u64 = 20_000_000;
/// As far back as md's marks, of which the least speed is reckoned: 3 s.
const LEAST_CREDIT: u64 = 3_000_000_000;

/// Sectors that a member may move for others before it is held to be in use.
const IDLE: i64 = 64;

/// What members moved for others than background work while there is some.
#[derive(Clone, Debug)]
pub(super) struct Activity {
    /// Sectors, of each member.
    moved: Vec<u64>,
    /// The same when it was last found to be in use, less what work had in flight there.
    noted: Vec<i64>,
    /// What all of them had moved at the last look at the array.
    looked: u64,
    /// Sectors that the next range may have.
    room: u64,
}

impl Activity {
    pub(super) fn new(devices: usize) -> Self {
        Self { moved: vec![0; devices], noted: vec![0; devices], looked: 0, room: u64::MAX }
    }

    /// Work begins.
    pub(super) fn begin(&mut self) {
        self.moved.fill(0);
        self.noted.fill(0);
        self.looked = 0;
    }

    /// A member has moved so many sectors for somebody else.
    pub(super) fn count(&mut self, device: usize, sectors: u32) {
        self.moved[device] += u64::from(sectors);
    }

    /// What all of them have moved.
    pub(super) fn total(&self) -> u64 {
        self.moved.iter().sum()
    }

    /// Whether no member was in use since it was last found to be; `in_flight`: sectors of each that work has begun and
    /// not ended, which md takes off.
    pub(super) fn is_idle(&mut self, in_flight: u64) -> bool {
        let mut is_idle = true;
        for (moved, noted) in self.moved.iter().zip(&mut self.noted) {
            let now = *moved as i64 - in_flight as i64;
            if now - *noted > IDLE {
                *noted = now;
                is_idle = false;
            }
        }
        is_idle
    }

    /// Before a look: the next range is not bounded.
    pub(super) fn unbound(&mut self) {
        self.room = u64::MAX;
    }

    /// How long the next range may be.
    pub(super) fn room(&self) -> u64 {
        self.room
    }

    /// Whether the array has no requests, and has moved nothing for any since the last look.
    pub(super) fn is_unused(&mut self, has_requests: bool) -> bool {
        let moved = self.total();
        let before = std::mem::replace(&mut self.looked, moved);
        !has_requests && before == moved
    }

    /// Whether more may be begun by the rule of 6.16: `in_flight` sectors are, of `most` beside requests.
    pub(super) fn is_within(&mut self, in_flight: u64, most: u64, has_requests: bool) -> bool {
        let moved = self.total();
        let is_used = has_requests || moved != self.looked;
        if in_flight < most {
            if is_used {
                self.room = most - in_flight;
            }
            return true;
        }
        self.looked = moved;
        !is_used
    }
}

/// How many marks md keeps, and how far apart: `SYNC_MARKS` and `SYNC_MARK_STEP`.
const MARKS: usize = 10;
const STEP: u64 = 3_000_000_000;
/// Bytes of a member after which md looks again: 32 pages (`window` in `md_do_sync`).
const LOOKS: u64 = 128 << 10;
/// How long md sleeps when work was too fast.
const SLEEP: u64 = 500_000_000;

/// How fast md takes work to be: since a mark up to 30 s old, in whole seconds begun.
#[derive(Clone, Copy, Debug)]
struct Marks {
    /// When, and how many bytes of a member were done.
    marks: [(u64, u64); MARKS],
    last: usize,
    since: (u64, u64),
}

impl Marks {
    const fn new(now: u64) -> Self {
        Self { marks: [(now, 0); MARKS], last: 0, since: (now, 0) }
    }

    /// Bytes a second.
    fn speed(&mut self, now: u64, done: u64) -> u64 {
        if now >= self.marks[self.last].0 + STEP {
            self.last = (self.last + 1) % MARKS;
            self.since = std::mem::replace(&mut self.marks[self.last], (now, done));
        }
        done.saturating_sub(self.since.1) / ((now - self.since.0) / 1_000_000_000 + 1)
    }
}

/// How fast, and how far ahead of that work is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pace {
    pub(super) pacing: Pacing,
    /// Goes by speeds as md does, not by moments.
    marks: Option<Marks>,
    /// Bytes that were begun, when speed and members were looked at last too, and of the last range.
    begun: u64,
    looked_at: u64,
    range: u64,
    /// What was begun is as much as the most allows up to this moment.
    most_at: u64,
    /// The same for the least.
    least_at: u64,
    /// By share of time: nothing is begun before this.
    rests_until: u64,
    /// By share of time: when the ranges in flight were begun, and that no more may join them.
    busy_since: u64,
    closed: bool,
    /// Members were found to be in use: nothing is begun before all in flight has ended.
    gives_way: bool,
    /// It has gone on in this way since work began, and has rested for what was begun first.
    is_first: bool,
    rested: bool,
}

impl Pace {
    pub(super) const fn new(pacing: Pacing) -> Self {
        Self {
            pacing,
            marks: None,
            begun: 0,
            looked_at: 0,
            range: 0,
            most_at: 0,
            least_at: 0,
            rests_until: 0,
            busy_since: 0,
            closed: false,
            gives_way: false,
            is_first: false,
            rested: false,
        }
    }

    /// The same as md does it: by the speed it has had.
    pub(super) const fn of_md(pacing: Pacing) -> Self {
        Self { marks: Some(Marks::new(0)), ..Self::new(pacing) }
    }

    /// Goes on in another way. What rests already goes on resting, or one that changes often would hardly rest.
    pub(super) fn change(&mut self, now: Time, pacing: Pacing) {
        let goes_on = is_by_ranges(self.pacing.rule) && is_by_ranges(pacing.rule);
        self.pacing = pacing;
        if !goes_on {
            self.begin(now);
            self.is_first = false;
        }
    }

    /// Work begins at `now`, with nothing in flight.
    pub(super) fn begin(&mut self, now: Time) {
        let marks = self.marks.map(|_| Marks::new(now.0));
        let (most_at, least_at) = (now.0, now.0);
        *self = Self { marks, most_at, least_at, is_first: true, ..Self::new(self.pacing) };
    }

    /// Whether work has rested for what it began first, so that this counts in its pace as all else does.
    pub(super) const fn has_rested(&self) -> bool {
        self.rested
    }

    /// How long work rests from now on for what it has begun.
    pub(super) fn rests(&self, now: Time) -> Nanos {
        let until = match (&self.marks, self.pacing.rule) {
            _ if self.rests_until <= now.0 => now.0,
            // md sleeps again and again, until it is no faster than the most.
            (Some(marks), PacingRule::Activity | PacingRule::Depth(_)) => {
                let (since, before) = marks.since;
                let paid = nanos(self.begun.saturating_sub(before), self.pacing.most);
                since.saturating_add(paid).max(self.rests_until)
            }
            _ => self.rests_until,
        };
        Nanos(until.saturating_sub(now.0))
    }

    /// A range of `bytes` a member is begun.
    pub(super) fn started(&mut self, now: Time, bytes: u64, first: bool) {
        let Pacing { least, most, .. } = self.pacing;
        (self.begun, self.range) = (self.begun + bytes, bytes);
        self.most_at = self.most_at.max(now.0.saturating_sub(MOST_CREDIT));
        self.most_at = self.most_at.saturating_add(nanos(bytes, most));
        self.least_at = self.least_at.max(now.0.saturating_sub(LEAST_CREDIT));
        self.least_at = self.least_at.saturating_add(nanos(bytes, least));
        if first {
            self.busy_since = now.0;
        }
    }

    /// Whether another range may be begun beside those in flight; `is_idle`: whether the rule finds room for it.
    pub(super) fn may_begin(
        &mut self,
        now: Time,
        in_flight: u32,
        is_idle: impl FnOnce() -> bool,
    ) -> MayBegin {
        let by_moments = if self.marks.is_some() { 0 } else { self.most_at };
        let at = by_moments.max(self.rests_until);
        if at > now.0 {
            return MayBegin::At(Time(at));
        }
        if self.looks_later() {
            return MayBegin::Yes;
        }
        let mut is_slow = self.least_at <= now.0;
        if let Some(marks) = &mut self.marks
            && !matches!(self.pacing.rule, PacingRule::Share(_))
            && !is_by_ranges(self.pacing.rule)
        {
            let done = self.begun.saturating_sub(u64::from(in_flight) * self.range);
            let speed = marks.speed(now.0, done);
            if speed > self.pacing.most {
                self.rests_until = now.0 + SLEEP;
                // Of the mark of the beginning: what was begun first is part of that speed.
                self.rested |= self.is_first && marks.since.1 == 0;
                return MayBegin::At(Time(self.rests_until));
            }
            is_slow = speed <= self.pacing.least;
        }
        let may = match self.pacing.rule {
            PacingRule::Share(_) => !self.closed,
            PacingRule::Single(_) => in_flight == 0,
            PacingRule::Ranges { used, unused } => {
                in_flight < u32::from(used) || in_flight < u32::from(unused) && is_idle()
            }
            _ if in_flight == 0 => {
                // Looked at all the same: what was moved up to now counts no more. md looks when it has begun a range.
                let looks = self.marks.is_none() && !self.gives_way && !is_slow;
                let _ = looks && is_idle();
                self.gives_way = false;
                true
            }
            _ => {
                self.looked_at = self.begun;
                self.gives_way = self.gives_way || !is_slow && !is_idle();
                !self.gives_way
            }
        };
        if may { MayBegin::Yes } else { MayBegin::No }
    }

    /// Whether md does not look yet whether it is too fast or members are in use: it did so less than 128 KiB ago.
    fn looks_later(&self) -> bool {
        let looks = self.looked_at == 0 || self.begun - self.looked_at >= LOOKS;
        self.marks.is_some()
            && self.pacing.rule == PacingRule::Activity
            && !self.gives_way
            && !looks
    }

    /// A range is done; `left` are in flight.
    pub(super) fn ended(&mut self, now: Time, left: u32) {
        let share = match self.pacing.rule {
            PacingRule::Share(share) | PacingRule::Single(share) => share,
            _ => return,
        };
        self.closed = left > 0;
        if left == 0 {
            let busy = u128::from(now.0 - self.busy_since.min(now.0));
            let rest = busy * u128::from(100 - share.min(100)) / u128::from(share.max(1));
            self.rests_until = now.0.saturating_add(u64::try_from(rest).unwrap_or(u64::MAX));
            self.rested |= self.is_first && rest > 0;
        }
    }
}

/// Whether another range may be begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::array) enum MayBegin {
    Yes,
    /// When something has ended.
    No,
    /// At this moment.
    At(Time),
}

/// Whether a rule counts ranges.
const fn is_by_ranges(rule: PacingRule) -> bool {
    matches!(rule, PacingRule::Single(_) | PacingRule::Ranges { .. })
}

/// How long `bytes` take at a rate.
fn nanos(bytes: u64, rate: u64) -> u64 {
    if rate == 0 {
        return u64::MAX;
    }
    u64::try_from(u128::from(bytes) * 1_000_000_000 / u128::from(rate)).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    #[test]
    fn work_is_never_faster_than_the_most() {
        let mut pace = Pace::new(Pacing::between(1000, 1000));
        pace.begin(Time(SECOND));
        assert_eq!(pace.may_begin(Time(SECOND), 0, || true), MayBegin::Yes);
        pace.started(Time(SECOND), 2000, true);
        let at = Time(3 * SECOND);
        assert_eq!(pace.may_begin(Time(SECOND), 1, || true), MayBegin::At(at));
        assert_eq!(pace.may_begin(at, 1, || true), MayBegin::Yes);
    }

    #[test]
    fn where_members_are_in_use_all_in_flight_ends_first() {
        let mut pace = Pace::new(Pacing::between(1, u64::MAX));
        pace.begin(Time(SECOND));
        pace.started(Time(SECOND), 1000, true);
        let now = Time(2 * SECOND);
        assert_eq!(pace.may_begin(now, 1, || true), MayBegin::Yes);
        assert_eq!(pace.may_begin(now, 2, || false), MayBegin::No);
        assert_eq!(pace.may_begin(now, 1, || unreachable!("it gives way already")), MayBegin::No);
        assert_eq!(pace.may_begin(now, 0, || unreachable!("it was looked at")), MayBegin::Yes);
        assert_eq!(pace.may_begin(now, 1, || true), MayBegin::Yes);
        // Slower than the least, nobody is asked.
        pace.pacing.least = u64::MAX;
        pace.begin(now);
        assert_eq!(pace.may_begin(now, 1, || unreachable!("too slow")), MayBegin::Yes);
    }

    #[test]
    fn md_sleeps_when_it_was_too_fast_in_the_seconds_begun() {
        let mut pace = Pace::of_md(Pacing::between(1_000, 20 * LOOKS));
        pace.begin(Time(SECOND));
        for _ in 0..20 {
            assert_eq!(pace.may_begin(Time(SECOND), 0, || true), MayBegin::Yes);
            pace.started(Time(SECOND), LOOKS, false);
        }
        assert_eq!(pace.may_begin(Time(SECOND), 1, || true), MayBegin::Yes, "19 of them are done");
        pace.started(Time(SECOND), LOOKS, false);
        let at = Time(SECOND + SECOND / 2);
        assert_eq!(pace.may_begin(Time(SECOND), 0, || true), MayBegin::At(at));
        assert_eq!(pace.may_begin(Time(2 * SECOND), 0, || true), MayBegin::Yes, "of 40");
        assert_eq!(pace.may_begin(Time(2 * SECOND), 1, || false), MayBegin::No);
    }

    #[test]
    fn md_looks_at_members_each_128_kib_when_it_has_begun_a_range() {
        const RANGE: u64 = 64 << 10;
        let mut pace = Pace::of_md(Pacing::between(0, u64::MAX));
        pace.begin(Time(0));
        let now = Time(100 * SECOND);
        let begin = |pace: &mut Pace| pace.started(now, RANGE, false);
        begin(&mut pace);
        pace.begun += 1 << 30;
        assert_eq!(pace.may_begin(now, 0, || unreachable!("nothing is under way")), MayBegin::Yes);
        assert_eq!(pace.may_begin(now, 1, || true), MayBegin::Yes);
        assert_eq!(pace.may_begin(now, 1, || unreachable!("it has just looked")), MayBegin::Yes);
        begin(&mut pace);
        assert_eq!(pace.may_begin(now, 1, || unreachable!("64 KiB ago")), MayBegin::Yes);
        begin(&mut pace);
        assert_eq!(pace.may_begin(now, 1, || false), MayBegin::No);
        assert_eq!(pace.may_begin(now, 1, || unreachable!("it gives way")), MayBegin::No);
        assert_eq!(pace.may_begin(now, 0, || unreachable!("it looked")), MayBegin::Yes);
    }

    #[test]
    fn a_member_is_in_use_when_it_moved_more_than_64_sectors() {
        let mut activity = Activity::new(2);
        activity.begin();
        activity.count(1, 64);
        assert!(activity.is_idle(0));
        activity.count(1, 1);
        assert!(!activity.is_idle(0) && activity.is_idle(0), "once");
        activity.count(0, 100);
        assert!(activity.is_idle(50), "less what is in flight");
        assert!(!activity.is_idle(0));
    }

    #[test]
    fn beside_requests_so_much_is_in_flight_at_most() {
        let mut activity = Activity::new(1);
        activity.begin();
        assert!(activity.is_within(0, 256, false) && activity.room() == u64::MAX, "nobody there");
        assert!(activity.is_within(200, 256, true));
        assert_eq!(activity.room(), 56);
        activity.unbound();
        assert!(!activity.is_within(256, 256, true), "a request is under way");
        assert!(activity.is_within(256, 256, false), "none is, nor was");
        activity.count(0, 1);
        assert!(!activity.is_within(300, 256, false), "one was");
        assert!(activity.is_within(300, 256, false) && activity.room() == u64::MAX, "once");
    }

    /// 256 ranges are begun before any is done, for which md sleeps until 33 s of its most have passed.
    #[test]
    fn what_is_begun_first_counts_where_work_rests_for_it() {
        let of = |most: u64| {
            let mut pace = Pace::of_md(Pacing::between(0, most));
            pace.begin(Time(SECOND));
            (0..256).for_each(|_| pace.started(Time(SECOND), LOOKS, false));
            let told = (pace.has_rested(), pace.rests(Time(SECOND)));
            assert_eq!(told, (false, Nanos(0)), "it has not looked yet");
            let _ = pace.may_begin(Time(2 * SECOND), 0, || true);
            pace
        };
        let slow = of(1_000 << 10);
        let paid = 256 * LOOKS * SECOND / (1_000 << 10) - SECOND;
        assert_eq!((slow.has_rested(), slow.rests(Time(2 * SECOND))), (true, Nanos(paid)));
        assert_eq!(slow.rests(Time(2 * SECOND + SECOND / 2)), Nanos(0), "it looks again");
        let fast = of(u64::MAX);
        assert_eq!((fast.has_rested(), fast.rests(Time(2 * SECOND))), (false, Nanos(0)));
        // Later sleeps are no rest for what was begun first, nor is one in another way of pacing.
        let mut later = of(u64::MAX);
        for at in 1..=MARKS as u64 + 1 {
            later.started(Time(at * STEP), LOOKS, false);
            let _ = later.may_begin(Time(SECOND + at * STEP), 0, || true);
        }
        later.pacing.most = 1;
        later.begun += 1 << 30;
        let slept = later.may_begin(Time(60 * SECOND), 0, || true);
        assert_eq!((slept, later.has_rested()), (MayBegin::At(Time(60 * SECOND + SLEEP)), false));
        let mut changed = of(u64::MAX);
        changed.change(Time(3 * SECOND), Pacing::between(0, 1));
        changed.started(Time(3 * SECOND), 1 << 30, false);
        let _ = changed.may_begin(Time(4 * SECOND), 0, || true);
        assert!(!changed.has_rested() && changed.rests(Time(4 * SECOND)) > Nanos(SECOND));
    }

    #[test]
    fn a_share_of_the_time_rests_as_long_as_the_rest() {
        let mut pace = Pace::new(Pacing { least: 1, most: u64::MAX, rule: PacingRule::Share(25) });
        pace.begin(Time(0));
        pace.started(Time(0), 1000, true);
        pace.ended(Time(SECOND), 1);
        assert_eq!(pace.may_begin(Time(SECOND), 1, || true), MayBegin::No, "none joins");
        assert!(!pace.has_rested());
        pace.ended(Time(SECOND), 0);
        assert_eq!(pace.may_begin(Time(SECOND), 0, || true), MayBegin::At(Time(4 * SECOND)));
        assert_eq!((pace.has_rested(), pace.rests(Time(2 * SECOND))), (true, Nanos(2 * SECOND)));
        pace.pacing.rule = PacingRule::Share(100);
        pace.begin(Time(0));
        pace.started(Time(0), 1000, true);
        pace.ended(Time(SECOND), 0);
        assert_eq!((pace.has_rested(), pace.rests(Time(SECOND))), (false, Nanos(0)));
    }

    /// Ranges are begun beyond what is had beside requests only where the look finds none.
    #[test]
    fn so_many_ranges_go_at_a_time_and_more_while_nobody_asks() {
        let rule = PacingRule::Ranges { used: 2, unused: 4 };
        for new in [Pace::new, Pace::of_md] {
            let mut pace = new(Pacing { least: 1, most: u64::MAX, rule });
            pace.begin(Time(0));
            let mut may = |in_flight, is_unused| pace.may_begin(Time(0), in_flight, || is_unused);
            let told = [may(0, false), may(1, false), may(2, false)];
            assert_eq!(told, [MayBegin::Yes, MayBegin::Yes, MayBegin::No]);
            let told = [may(2, true), may(3, true), may(4, true)];
            assert_eq!(told, [MayBegin::Yes, MayBegin::Yes, MayBegin::No]);
        }
        let mut activity = Activity::new(2);
        activity.begin();
        assert!(activity.is_unused(false) && !activity.is_unused(true));
        activity.count(1, 8);
        assert_eq!([activity.is_unused(false), activity.is_unused(false)], [false, true]);
    }

    #[test]
    fn a_single_range_goes_at_a_time_and_goes_on_resting_when_its_share_changes() {
        let by = |share| {
            let rule = PacingRule::Single(share);
            Pacing { least: 1, most: u64::MAX, rule }
        };
        for share in [1, 100] {
            for mut pace in [Pace::new(by(share)), Pace::of_md(by(share))] {
                pace.begin(Time(0));
                assert_eq!(pace.may_begin(Time(0), 0, || false), MayBegin::Yes);
                pace.started(Time(0), 1000, true);
                assert_eq!(pace.may_begin(Time(0), 1, || true), MayBegin::No, "{share}");
            }
        }
        let mut pace = Pace::new(by(25));
        pace.begin(Time(0));
        pace.started(Time(0), 1000, true);
        pace.ended(Time(SECOND), 0);
        let rests = MayBegin::At(Time(4 * SECOND));
        assert_eq!(pace.may_begin(Time(SECOND), 0, || true), rests);
        pace.change(Time(2 * SECOND), by(26));
        assert_eq!(pace.may_begin(Time(2 * SECOND), 0, || true), rests, "it rests on");
        pace.change(Time(2 * SECOND), Pacing::default());
        assert_eq!(pace.may_begin(Time(2 * SECOND), 0, || true), MayBegin::Yes, "in another way");
    }
}
