//! Pacing by feedback: a rebuild gets as much of the time as leaves the foreground its response time.

use raidlab_core::Nanos;
use raidlab_core::contract::{Admin, Pacing};
use raidlab_sim::World;

/// Requests from one look to the next.
const WINDOW: usize = 100;

/// Holds the p99 of the foreground at a target while there is a rebuild: after every hundred requests, their 99th
/// gives the rebuild a larger share of the time when it is below the target (twice as much until it is above it for the
/// first time), and a third less when it is above. Never less than the floor.
#[derive(Clone, Debug)]
pub struct Pacer {
    target: Nanos,
    /// Percent of the time.
    floor: u8,
    share: f64,
    /// It was never above the target.
    starts: bool,
    window: Vec<Nanos>,
}

impl Pacer {
    /// Begins at the floor, in percent of the time: 1 to 100.
    pub fn new(target: Nanos, floor: u8) -> Self {
        let floor = floor.clamp(1, 100);
        let window = Vec::with_capacity(WINDOW);
        Self { target, floor, share: f64::from(floor), starts: true, window }
    }

    /// How the rebuild begins.
    pub(super) fn begin(&self, world: &mut World) {
        world.command(Admin::Pace(self.pacing()));
    }

    fn pacing(&self) -> Pacing {
        Pacing { share: Some(self.share as u8), ..Pacing::default() }
    }

    /// A request of the foreground took this long.
    pub(super) fn answered(&mut self, world: &mut World, took: Nanos) {
        self.window.push(took);
        if self.window.len() < WINDOW {
            return;
        }
        self.window.sort_unstable();
        let tail = self.window[WINDOW * 99 / 100 - 1];
        self.window.clear();
        let before = self.share as u8;
        let is_within = tail <= self.target;
        self.starts &= is_within;
        self.share = match self.starts {
            true => (2.0 * self.share).min(100.0),
            false => next(self.share, f64::from(self.floor), is_within),
        };
        if self.share as u8 != before {
            world.command(Admin::Pace(self.pacing()));
        }
    }
}

/// The share after a look.
fn next(share: f64, floor: f64, is_within: bool) -> f64 {
    let next = if is_within { (share * 1.1).max(share + 1.0) } else { share * 2.0 / 3.0 };
    next.clamp(floor, 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_rises_slowly_and_falls_by_a_third() {
        assert_eq!(next(30.0, 5.0, false), 20.0);
        assert!((next(30.0, 5.0, true) - 33.0).abs() < 1e-9);
        assert_eq!(
            (next(5.0, 5.0, false), next(2.0, 1.0, true), next(99.0, 5.0, true)),
            (5.0, 3.0, 100.0)
        );
    }
}
