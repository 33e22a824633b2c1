//! Pacing by feedback: a rebuild gets as much room as leaves the foreground its response time.

use std::f64::consts::LN_2;

use raidlab_core::Nanos;
use raidlab_core::contract::{Admin, Pacing, PacingRule};
use raidlab_sim::World;

/// How far a request moves the room, in logarithms: up where all is well, down where it took too long. A hundred that
/// are well are as much as one that is not, so it rests where one in a hundred takes longer than the target.
const UP: f64 = 0.01 * GAIN;
const DOWN: f64 = 0.99 * GAIN;
const GAIN: f64 = 0.05;
/// At the beginning: requests in a row, none of which took too long, after which room is doubled.
const DOUBLING: u32 = 100;
/// One range at a time without rests, and the most of the room that is dealt out.
const WHOLE: f64 = 100.0;
/// All the room there is: a tenth more, so that a single late request does not end it.
const MOST: f64 = 1.1 * WHOLE;
/// Pieces in flight then: md's own.
const DEPTH: u16 = 32;

/// Holds the p99 of the foreground at a target while there is a rebuild: each request within the target gives the
/// rebuild a little more room, each beyond it 99 times as much less (a stochastic approximation of a quantile, Robbins
/// and Monro 1951). It begins with all the room there is, halves that with each request beyond the target, and doubles
/// it after a hundred in a row within, until one beyond follows a doubling. Never less than the floor.
///
/// Room of up to 100 is one range at a time, in so many percent of the time, so that a request never meets more than
/// that; beyond it is md's rule of 6.16.
#[derive(Clone, Debug)]
pub struct Pacer {
    target: Nanos,
    /// The least room.
    floor: f64,
    room: f64,
    /// At the beginning.
    search: Option<Search>,
}

/// How room is looked for at the beginning.
#[derive(Clone, Copy, Debug, Default)]
struct Search {
    /// Requests in a row within the target.
    well: u32,
    /// Room was doubled.
    rose: bool,
}

impl Pacer {
    /// `floor`: one range under way in so many percent of the time, 1 to 100.
    pub fn new(target: Nanos, floor: u8) -> Self {
        let floor = f64::from(floor.clamp(1, 100));
        Self { target, floor, room: MOST, search: Some(Search::default()) }
    }

    /// How the rebuild begins.
    pub(super) fn begin(&self, world: &mut World) {
        world.command(Admin::Pace(self.pacing()));
    }

    fn pacing(&self) -> Pacing {
        let rule = match self.room > WHOLE {
            true => PacingRule::Depth(DEPTH),
            false => PacingRule::Single(self.room as u8),
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
        let is_within = took <= self.target;
        let step = match (&mut self.search, is_within) {
            (Some(search), true) => {
                search.well += 1;
                let doubles = search.well == DOUBLING && self.room < MOST;
                search.well %= DOUBLING;
                search.rose |= doubles;
                if doubles { LN_2 } else { 0.0 }
            }
            (Some(search), false) if !search.rose => {
                search.well = 0;
                -LN_2
            }
            (_, true) => UP,
            (search, false) => {
                *search = None;
                -DOWN
            }
        };
        self.room = (self.room * libm::exp(step)).clamp(self.floor, MOST);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Response times of which one in a hundred is above the target leave the ranges where they are; with fewer they
    /// rise, with more they fall.
    #[test]
    fn ranges_rest_where_one_in_a_hundred_takes_too_long() {
        let target = Nanos::from_millis(20);
        let after = |every: u32| {
            let mut pacer = Pacer::new(target, 5);
            (pacer.room, pacer.search) = (30.0, None);
            for request in 1..=2_000 {
                let is_late = request % every == 0;
                pacer.learn(Nanos(target.0 + u64::from(is_late)));
            }
            pacer.room
        };
        assert!((after(100) - 30.0).abs() < 0.01, "{}", after(100));
        assert!(after(200) > 45.0 && after(50) < 20.0, "{} {}", after(200), after(50));
        assert_eq!(after(2), 5.0);
    }

    /// Two late requests quarter the room; a hundred in a row within the target double it; the next late one begins the
    /// slow way.
    #[test]
    fn room_is_halved_and_doubled_until_it_is_found() {
        let mut pacer = Pacer::new(Nanos(10), 5);
        let mut feed = |took: u64, times: u32| {
            (0..times).for_each(|_| pacer.learn(Nanos(took)));
            (pacer.room, pacer.search.is_some())
        };
        assert_eq!(feed(10, 250), (MOST, true), "there is no more");
        assert_eq!(feed(11, 2), (MOST / 4.0, true));
        assert_eq!(feed(10, 99), (MOST / 4.0, true));
        let (room, searches) = feed(10, 1);
        assert!((room - MOST / 2.0).abs() < 1e-9 && searches);
        let (room, searches) = feed(11, 1);
        assert!((room - MOST / 2.0 * libm::exp(-DOWN)).abs() < 1e-9 && !searches);
        assert_eq!(feed(1, 10_000), (MOST, false), "and no further");
        assert_eq!(feed(11, 1_000), (5.0, false), "nor below the floor");
    }

    /// One late request at the most leaves md's rule, the second ends it.
    #[test]
    fn room_is_single_ranges_with_rests_and_then_mds_rule() {
        let mut pacer = Pacer::new(Nanos(10), 5);
        pacer.search = None;
        let mut rule = || {
            pacer.learn(Nanos(11));
            pacer.pacing().rule
        };
        let rules = [rule(), rule(), rule()];
        let expected = [PacingRule::Depth(DEPTH), PacingRule::Single(99), PacingRule::Single(94)];
        assert_eq!(rules, expected);
    }
}
