//! Pacing by feedback: a rebuild gets as much room as leaves the foreground its response time.

use std::f64::consts::LN_2;

use raidlab_core::Nanos;
use raidlab_core::contract::{Admin, Pacing, PacingRule};
use raidlab_sim::World;

/// The share of requests that may take longer than the target: a little less than the one in a hundred of a p99, as the
/// last late request always overdraws.
const BUDGET: f64 = 0.009;
/// By how much a late request beyond the budget lowers the room at once, in logarithms.
const GAIN: f64 = 0.4;
/// By how much it lowers, with each request that comes while it is not made up for, the room that is gone back to:
/// critical damping where one in a hundred is late and that share is in proportion to the room (GAIN^2 / 4 of it).
const LASTING: f64 = GAIN * GAIN / 400.0;
/// How many late requests may be saved up, and how many are made up for at most: a load that was too much for long, as
/// no room was small enough, is forgotten after some thousands of requests.
const CREDIT: f64 = 2.0;
const DEBT: f64 = 30.0;
/// At the beginning: requests without a late one after which room is doubled.
const DOUBLING: u32 = 20;
/// One range at a time without rests.
const WHOLE: f64 = 100.0;
/// The square root of two hundreds: from here on two ranges.
const TWO: f64 = 141.4;
/// From here on as many ranges as there is room for: 128 by the rule below.
const MOST: f64 = 1_131.4;
/// With parity never more than six: eight fill md's stripe cache as it begins, and work sleeps a tick each time that it
/// finds no stripe, which on fast drives is most of the time.
const MOST_WITH_PARITY: f64 = 245.0;
const RANGES_WITH_PARITY: u16 = 6;
/// A tenth more than all of the time: from here on those six with parity while the array is not in use, and one while
/// it is.
const UNUSED: f64 = 110.0;

/// Holds the p99 of the foreground at a target while there is a rebuild. It keeps an account of late requests: each
/// request brings [`BUDGET`], each that took longer than the target costs one. The account is the integral of what the
/// p99 of the whole run is off, so that what was late is made up for: room follows it at once (proportional), and the
/// room that it is gone back to follows slowly (integral).
///
/// It begins at the floor and doubles the room while nothing is late. So a run does not begin in debt, which in a short
/// one is never made up for: 600 requests may have six.
///
/// Room of up to 100 is one range at a time, in so many percent of the time, so that a request never meets more than
/// that; beyond it more ranges at once, as the square of so many hundreds, up to all that there is room for.
#[derive(Clone, Debug)]
pub struct Pacer {
    target: Nanos,
    /// The least room and the most, and the room without debt, as logarithms.
    floor: f64,
    most: f64,
    base: f64,
    has_parity: bool,
    /// Late requests beyond the budget.
    debt: f64,
    /// At the beginning: requests in a row within the target.
    search: Option<u32>,
}

impl Pacer {
    /// `floor`: one range under way in so many percent of the time, 1 to 100.
    pub fn new(target: Nanos, floor: u8) -> Self {
        let floor = libm::log(f64::from(floor.clamp(1, 100)));
        Self {
            target,
            floor,
            most: libm::log(MOST),
            base: floor,
            has_parity: false,
            debt: 0.0,
            search: Some(0),
        }
    }

    /// How the rebuild begins.
    pub(super) fn begin(&mut self, world: &mut World) {
        self.has_parity = world.array().layout().parities() > 0;
        if self.has_parity {
            self.most = libm::log(MOST_WITH_PARITY);
        }
        world.command(Admin::Pace(self.pacing()));
    }

    fn room(&self) -> f64 {
        libm::exp((self.base - GAIN * self.debt).clamp(self.floor, self.most))
    }

    fn pacing(&self) -> Pacing {
        // What was a whole number before it became a logarithm is to be one again.
        let room = self.room() + 0.01;
        let many = (room * room / (WHOLE * WHOLE)) as u16;
        let rule = match room {
            room if room >= MOST => PacingRule::Ranges { used: u16::MAX, unused: u16::MAX },
            room if self.has_parity && room >= UNUSED => {
                PacingRule::Ranges { used: many, unused: RANGES_WITH_PARITY.max(many) }
            }
            room if room >= TWO => PacingRule::Ranges { used: many, unused: many },
            room => PacingRule::Single(room.min(WHOLE) as u8),
        };
        Pacing { rule, ..Pacing::default() }
    }

    /// A request of the foreground took this long.
    pub(super) fn answered(&mut self, world: &mut World, took: Nanos) {
        let before = self.pacing();
        self.learn(took);
        let pacing = self.pacing();
        if pacing != before {
            world.command(Admin::Pace(pacing));
        }
    }

    fn learn(&mut self, took: Nanos) {
        let is_late = took > self.target;
        self.debt += f64::from(u8::from(is_late)) - BUDGET;
        let Some(well) = &mut self.search else {
            self.debt = self.debt.clamp(-CREDIT, DEBT);
            self.base = (self.base - LASTING * self.debt).clamp(self.floor, self.most);
            return;
        };
        // What was within before there was room to speak of is no credit.
        self.debt = self.debt.clamp(0.0, DEBT);
        if !is_late {
            *well += 1;
            if *well % DOUBLING == 0 {
                self.base = (self.base + LN_2).min(self.most);
            }
        } else if self.base > self.floor {
            self.search = None;
        } else {
            *well = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A foreground of which a share is late that grows with the room: one in a hundred at `rest`.
    struct Foreground {
        rest: f64,
        sum: f64,
    }

    impl Foreground {
        /// Requests, spread as evenly as can be; how many were late.
        fn feed(&mut self, pacer: &mut Pacer, times: u32) -> u32 {
            let request = |_| {
                self.sum += 0.01 * pacer.room() / self.rest;
                let is_late = self.sum >= 1.0;
                self.sum -= f64::from(u8::from(is_late));
                pacer.learn(Nanos(pacer.target.0 + u64::from(is_late)));
                u32::from(is_late)
            };
            (0..times).map(request).sum()
        }
    }

    /// Wherever the room lies that the target leaves, a short run is near its budget, though the doubling went beyond
    /// that room, and has not left half of it; a long one is on it, and its room is that.
    #[test]
    fn the_late_requests_of_a_run_are_its_budget() {
        for rest in [8.0, 15.0, 30.0, 60.0, 100.0, 300.0] {
            let mut pacer = Pacer::new(Nanos(10), 5);
            let mut foreground = Foreground { rest, sum: 0.0 };
            let late = foreground.feed(&mut pacer, 600);
            assert!((3..=8).contains(&late), "{late} late in 600 where room of {rest} is right");
            let late = late + foreground.feed(&mut pacer, 5_400);
            assert!((45..=60).contains(&late), "{late} late in 6,000 where {rest} is right");
            let off = libm::log(pacer.room() / (0.9 * rest)).abs();
            assert!(off < 1.5 * GAIN, "{} where {rest} is right", pacer.room());
        }
    }

    /// A burst of late requests is made up for by fewer later: the run as a whole does not exceed its budget.
    #[test]
    fn what_was_late_is_made_up_for() {
        let mut pacer = Pacer::new(Nanos(10), 5);
        let mut foreground = Foreground { rest: 50.0, sum: 0.0 };
        let before = foreground.feed(&mut pacer, 1_000);
        (0..10).for_each(|_| pacer.learn(Nanos(11)));
        assert_eq!(pacer.pacing().rule, PacingRule::Single(5), "at once");
        let late = before + 10 + foreground.feed(&mut pacer, 3_000);
        assert!((22..=40).contains(&late), "{late} late in 4,010");
    }

    /// Twenty in a row within the target double the room, from the floor up to all there is; a late one at the floor
    /// tells nothing of more room, the first above it ends the doubling.
    #[test]
    fn room_is_doubled_from_the_floor_while_nothing_is_late() {
        let mut pacer = Pacer::new(Nanos(10), 5);
        let mut feed = |took: u64, times: u32| {
            (0..times).for_each(|_| pacer.learn(Nanos(took)));
            (pacer.room(), pacer.search.is_some())
        };
        let is = |(room, searches): (f64, bool), expected: f64, still: bool| {
            assert!((room / expected - 1.0).abs() < 1e-9 && searches == still, "{room} {searches}");
        };
        is(feed(11, 1), 5.0, true);
        is(feed(10, 19), 5.0, true);
        is(feed(10, 1), 5.0 * 2.0 * libm::exp(-GAIN * (1.0 - 21.0 * BUDGET)), true);
        is(feed(10, 1_000), MOST, true);
        let (room, searches) = feed(11, 1);
        assert!(room < MOST * libm::exp(-0.9 * GAIN) && !searches, "{room}");
        is(feed(10, 2_000), MOST, false);
        is(feed(11, 1_000), 5.0, false);
    }

    /// Up to all of the time it is one range; then 2 to 128 at once, and then as many as there is room for. Where there
    /// is parity six are the most, and are had earlier where the array is not in use.
    #[test]
    fn room_is_one_range_with_rests_and_then_more_at_once() {
        let rule = |room: f64, has_parity: bool| {
            let mut pacer = Pacer::new(Nanos(10), 5);
            (pacer.base, pacer.has_parity) = (libm::log(room), has_parity);
            pacer.pacing().rule
        };
        let single = PacingRule::Single;
        let ranges = |used, unused| PacingRule::Ranges { used, unused };
        for (room, mirror, parity) in [
            (5.0, single(5), single(5)),
            (99.0, single(99), single(99)),
            (100.0, single(100), single(100)),
            (111.0, single(100), ranges(1, 6)),
            (141.5, ranges(2, 2), ranges(2, 6)),
            (200.0, ranges(4, 4), ranges(4, 6)),
            (MOST_WITH_PARITY, ranges(6, 6), ranges(6, 6)),
            (1_000.0, ranges(100, 100), ranges(100, 100)),
            (MOST, ranges(u16::MAX, u16::MAX), ranges(u16::MAX, u16::MAX)),
        ] {
            assert_eq!((rule(room, false), rule(room, true)), (mirror, parity), "{room}");
        }
    }
}
