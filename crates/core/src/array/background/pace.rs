//! How fast background work goes: between a least and a most, or a share of the time.
//!
//! As Linux md has it (`md_do_sync`, kernel 6.1 and 6.12): never faster than the most; slower than
//! the least as much at once as there is room for, whatever else goes on; in between, while there is
//! other work, one range after another, each when the one before is done.
//!
//! Rates are kept as moments: what was begun at rate r moves the moment on by its bytes / r, and
//! work is ahead of the rate while that moment lies ahead. How far behind it may fall is bounded, so
//! that a pause is not made up for in one go.

use crate::contract::Pacing;
use crate::units::Time;

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
    pub(super) fn started(&mut self, now: Time, bytes: u64, first: bool) {
        let Pacing { least, most, .. } = self.pacing;
        self.most_at = self.most_at.max(now.0.saturating_sub(MOST_CREDIT));
        self.most_at = self.most_at.saturating_add(nanos(bytes, most));
        self.least_at = self.least_at.max(now.0.saturating_sub(LEAST_CREDIT));
        self.least_at = self.least_at.saturating_add(nanos(bytes, least));
        if first {
            self.busy_since = now.0;
        }
    }

    /// Whether another range may be begun beside those in flight; `is_alone`: nothing else is under way.
    pub(super) fn may_begin(&self, now: Time, in_flight: u32, is_alone: bool) -> MayBegin {
        let at = self.most_at.max(self.rests_until);
        if at > now.0 {
            return MayBegin::At(Time(at));
        }
        let may = match self.pacing.share {
            Some(_) => !self.closed,
            None => self.least_at <= now.0 || is_alone || in_flight == 0,
        };
        if may { MayBegin::Yes } else { MayBegin::No }
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

/// Whether another range may be begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::array) enum MayBegin {
    Yes,
    /// When something has ended.
    No,
    /// At this moment.
    At(Time),
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
        let mut pace = Pace::new(Pacing { least: 1000, most: 1000, share: None });
        pace.begin(Time(SECOND));
        assert_eq!(pace.may_begin(Time(SECOND), 0, true), MayBegin::Yes);
        pace.started(Time(SECOND), 2000, true);
        let at = Time(3 * SECOND);
        assert_eq!(pace.may_begin(Time(SECOND), 1, true), MayBegin::At(at));
        assert_eq!(pace.may_begin(at, 1, true), MayBegin::Yes);
    }

    #[test]
    fn beside_other_work_ranges_go_one_after_another() {
        let mut pace = Pace::new(Pacing { least: 1, most: u64::MAX, share: None });
        pace.begin(Time(SECOND));
        pace.started(Time(SECOND), 1000, true);
        let now = Time(2 * SECOND);
        assert_eq!(pace.may_begin(now, 1, false), MayBegin::No);
        assert_eq!(pace.may_begin(now, 1, true), MayBegin::Yes);
        assert_eq!(pace.may_begin(now, 0, false), MayBegin::Yes);
    }

    #[test]
    fn a_share_of_the_time_rests_as_long_as_the_rest() {
        let mut pace = Pace::new(Pacing { least: 1, most: u64::MAX, share: Some(25) });
        pace.begin(Time(0));
        pace.started(Time(0), 1000, true);
        pace.ended(Time(SECOND), 1);
        assert_eq!(pace.may_begin(Time(SECOND), 1, true), MayBegin::No, "none joins");
        pace.ended(Time(SECOND), 0);
        assert_eq!(pace.may_begin(Time(SECOND), 0, true), MayBegin::At(Time(4 * SECOND)));
    }
}
