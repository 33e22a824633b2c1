//! Pacing by feedback: a rebuild gets as much of the time as leaves the foreground its response time.

use raidlab_core::Nanos;
use raidlab_core::contract::{Admin, Pacing, PacingRule};
use raidlab_sim::World;

/// How far a request moves the share, in logarithms: up where all is well, down where it took too long. A hundred that
/// are well are as much as one that is not, so the share rests where one in a hundred takes longer than the target.
const UP: f64 = 0.01 * GAIN;
const DOWN: f64 = 0.99 * GAIN;
const GAIN: f64 = 0.05;
/// Requests from one doubling to the next while none took too long.
const DOUBLING: u32 = 100;

/// Holds the p99 of the foreground at a target while there is a rebuild: each request within the target gives the
/// rebuild a little more of the time, each beyond it 99 times as much less (a stochastic approximation of a quantile,
/// Robbins and Monro 1951). Until the first beyond it, the share doubles after every hundred. Never less than the
/// floor.
#[derive(Clone, Debug)]
pub struct Pacer {
    target: Nanos,
    /// Percent of the time.
    floor: f64,
    share: f64,
    /// Requests since it was doubled; `None` once one was above the target.
    starts: Option<u32>,
}

impl Pacer {
    /// Begins at the floor, in percent of the time: 1 to 100.
    pub fn new(target: Nanos, floor: u8) -> Self {
        let floor = f64::from(floor.clamp(1, 100));
        Self { target, floor, share: floor, starts: Some(0) }
    }

    /// How the rebuild begins.
    pub(super) fn begin(&self, world: &mut World) {
        world.command(Admin::Pace(self.pacing()));
    }

    fn pacing(&self) -> Pacing {
        Pacing { rule: PacingRule::Share(self.share as u8), ..Pacing::default() }
    }

    /// A request of the foreground took this long.
    pub(super) fn answered(&mut self, world: &mut World, took: Nanos) {
        let before = self.share as u8;
        self.learn(took);
        if self.share as u8 != before {
            world.command(Admin::Pace(self.pacing()));
        }
    }

    fn learn(&mut self, took: Nanos) {
        let is_within = took <= self.target;
        let step = match (&mut self.starts, is_within) {
            (Some(answered), true) => {
                *answered = (*answered + 1) % DOUBLING;
                if *answered == 0 { std::f64::consts::LN_2 } else { 0.0 }
            }
            (_, true) => UP,
            (starts, false) => {
                *starts = None;
                -DOWN
            }
        };
        self.share = (self.share * libm::exp(step)).clamp(self.floor, 100.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Response times of which one in a hundred is above the target leave the share where it is; with fewer it rises,
    /// with more it falls.
    #[test]
    fn a_share_rests_where_one_in_a_hundred_takes_too_long() {
        let target = Nanos::from_millis(20);
        let after = |every: u32| {
            let mut pacer = Pacer::new(target, 5);
            (pacer.share, pacer.starts) = (30.0, None);
            for request in 1..=2_000 {
                let is_late = request % every == 0;
                pacer.learn(Nanos(target.0 + u64::from(is_late)));
            }
            pacer.share
        };
        assert!((after(100) - 30.0).abs() < 0.01, "{}", after(100));
        assert!(after(200) > 45.0 && after(50) < 20.0, "{} {}", after(200), after(50));
        assert_eq!(after(2), 5.0);
    }

    #[test]
    fn a_share_doubles_until_something_takes_too_long() {
        let mut pacer = Pacer::new(Nanos(10), 5);
        for _ in 0..200 {
            pacer.learn(Nanos(10));
        }
        assert!((pacer.share - 20.0).abs() < 1e-9);
        pacer.learn(Nanos(11));
        assert!((pacer.share - 20.0 * libm::exp(-DOWN)).abs() < 1e-9 && pacer.starts.is_none());
        for _ in 0..10_000 {
            pacer.learn(Nanos(1));
        }
        assert_eq!(pacer.share, 100.0, "and never more than all of it");
    }
}
