//! How fast background work goes: between a least and a most, or a share of the time.
//!
//! As Linux md has it (`md_do_sync`, kernel 6.1 and 6.12): never faster than the most; slower than
//! the least as much at once as there is room for, whatever else goes on; in between, while there is
//! other work, one range after another, each when the one before is done.
//!
//! Rates are kept as moments: what was begun at rate r moves the moment on by its bytes / r, and
//! work is ahead of the rate while that moment lies ahead. How far behind it may fall is bounded, so
//! that a pause is not made up for in one go.

use super::super::timers::Timer;
use super::Array;
use crate::contract::Pacing;
use crate::units::{SECTOR_BYTES, Time};

/// A driver's timers may come this late without costing speed.
const MOST_CREDIT: u64 = 20_000_000;
/// As far back as md's marks, of which the least speed is reckoned: 3 s.
const LEAST_CREDIT: u64 = 3_000_000_000;

/// How fast, and how far ahead of that work is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pace {
    pub(super) pacing: Pacing,
    /// What was begun is as much as the most allows up to this moment.
    most_at: u64,
    /// The same for the least.
    least_at: u64,
    /// By share of time: nothing is begun before this.
    rests_until: u64,
    /// By share of time: when the ranges in flight were begun, and that no more may join them.
    busy_since: u64,
    closed: bool,
}

impl Pace {
    pub(super) const fn new(pacing: Pacing) -> Self {
        Self { pacing, most_at: 0, least_at: 0, rests_until: 0, busy_since: 0, closed: false }
    }

    /// Work begins at `now`, with nothing in flight.
    pub(super) const fn begin(&mut self, now: Time) {
        *self = Self { most_at: now.0, least_at: now.0, ..Self::new(self.pacing) };
    }

    /// A range of `bytes` a member is begun.
    fn started(&mut self, now: Time, bytes: u64, first: bool) {
        let Pacing { least, most, .. } = self.pacing;
        self.most_at = self.most_at.max(now.0.saturating_sub(MOST_CREDIT));
        self.most_at = self.most_at.saturating_add(nanos(bytes, most));
        self.least_at = self.least_at.max(now.0.saturating_sub(LEAST_CREDIT));
        self.least_at = self.least_at.saturating_add(nanos(bytes, least));
        if first {
            self.busy_since = now.0;
        }
    }

    /// A range is done; `left` are in flight.
    pub(super) fn ended(&mut self, now: Time, left: u32) {
        let Some(share) = self.pacing.share else { return };
        self.closed = left > 0;
        if left == 0 {
            let busy = u128::from(now.0 - self.busy_since.min(now.0));
            let rest = busy * u128::from(100 - share.min(100)) / u128::from(share.max(1));
            self.rests_until = now.0.saturating_add(u64::try_from(rest).unwrap_or(u64::MAX));
        }
    }
}

/// How long `bytes` take at a rate.
fn nanos(bytes: u64, rate: u64) -> u64 {
    if rate == 0 {
        return u64::MAX;
    }
    u64::try_from(u128::from(bytes) * 1_000_000_000 / u128::from(rate)).unwrap_or(u64::MAX)
}

impl Array {
    /// Whether another range may be begun now; if it is only a matter of time, the array is woken.
    pub(super) fn may_begin_unit(&mut self) -> bool {
        let capacity = self.background.units.capacity();
        // One range is left for healing, where there is more than one.
        let most = capacity.saturating_sub(1).max(1);
        let in_flight = self.background.work.map_or(0, |running| running.units);
        if in_flight >= most || self.background.units.available() == 0 {
            return false;
        }
        let pace = self.background.pace;
        let at = pace.most_at.max(pace.rests_until);
        if at > self.now.0 {
            self.timers.set(Timer::Pace, Time(at));
            return false;
        }
        if pace.pacing.share.is_some() {
            return !pace.closed;
        }
        let is_behind = pace.least_at <= self.now.0;
        let other_work = self.requests.slots.available() < self.requests.slots.capacity() as usize;
        is_behind || !other_work || in_flight == 0
    }

    /// A range of `rows` sectors of each member is begun.
    pub(super) fn unit_begun(&mut self, rows: u64) {
        let first = self.background.work.is_none_or(|running| running.units == 0);
        self.background.pace.started(self.now, rows * SECTOR_BYTES, first);
    }

    /// How fast background work goes from now on.
    pub(in crate::array) fn set_pacing(&mut self, pacing: Pacing) {
        let pace = &mut self.background.pace;
        pace.pacing = pacing;
        pace.begin(self.now);
    }

    /// The pause between ranges is over.
    pub(in crate::array) fn pace_due(&mut self) {
        self.pump();
    }
}
