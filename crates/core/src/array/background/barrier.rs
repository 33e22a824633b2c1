//! How Linux md makes requests and background work wait for each other, where an array stands for one of md
//! ([`Settings::resync_tick`](crate::Settings::resync_tick)). raidlab's own arrays lock ranges and need none of this.
//!
//! Sources: `raise_barrier`, `wait_barrier`, `raid10_sync_request` (drivers/md/raid10.c), `raise_barrier`,
//! `wait_read_barrier` (raid1.c), `raid5_sync_request` (raid5.c), all of 6.1.
//!
//! * raid10 has one barrier. While work is under way on the members no request begins; before more of it is begun,
//!   requests under way end, and those that wait have gone.
//! * raid1 has a barrier for each 64 MiB, and reads pass it. They keep work out nonetheless, while they are under way.
//! * With parity, work takes what stripes there are, and then sleeps for a tick, if anybody else used the array since.
//!   (md sleeps always, but its cache grows meanwhile, so that stripes run out less and less; here it does not.)
//! * When work finds requests that wait, it sleeps for a tick first.

use std::collections::VecDeque;

use crate::policy::CopyKind;
use crate::units::{Nanos, Time};

/// Sectors of raid1 that share a barrier: `BARRIER_UNIT_SECTOR_SIZE`.
const UNIT: u64 = 64 << 11;
/// Who was let go on by work's end asks again before work does: a process in the kernel takes a few µs.
const TURN: Nanos = Nanos(20_000);

/// Whom a barrier holds back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Scope {
    /// Nobody.
    None,
    /// All requests.
    All,
    /// Changes of the same unit.
    Units,
}

/// What waits for background work, and the other way round.
#[derive(Clone, Debug)]
pub(in crate::array) struct Barrier {
    scope: Scope,
    tick: Nanos,
    /// Work waits for requests to end, and none begins meanwhile.
    pub(in crate::array) raising: bool,
    /// Requests that wait for work.
    pub(in crate::array) waiting: VecDeque<u32>,
    /// Work sleeps.
    sleeps_until: Time,
    /// Stripes have run out.
    exhausted: bool,
    /// What was moved for others when they did so last.
    moved: u64,
}

impl Barrier {
    /// For copies kept in this way, or parity; without a tick there is none.
    pub(in crate::array) fn new(
        tick: Option<Nanos>,
        copies: u16,
        kind: CopyKind,
        requests: u32,
    ) -> Self {
        let scope = match (tick, kind) {
            (None, _) => Scope::None,
            _ if copies < 2 => Scope::None,
            (_, CopyKind::Raid10 { .. }) => Scope::All,
            _ => Scope::Units,
        };
        let waiting = if scope == Scope::None { 0 } else { requests as usize };
        Self {
            scope,
            tick: tick.unwrap_or(Nanos::ZERO),
            raising: false,
            waiting: VecDeque::with_capacity(waiting),
            sleeps_until: Time::ZERO,
            exhausted: false,
            moved: 0,
        }
    }

    /// Whether the array stands for one of md.
    pub(in crate::array) fn is_of_md(&self) -> bool {
        self.tick > Nanos::ZERO
    }

    /// Whether requests and work wait for each other.
    #[inline]
    pub(in crate::array) fn is_used(&self) -> bool {
        self.scope != Scope::None
    }

    /// Whether a request waits for work at `range`.
    pub(in crate::array) fn holds_back(
        &self,
        is_read: bool,
        request: (u64, u64),
        range: (u64, u64),
    ) -> bool {
        let passes = is_read && self.scope == Scope::Units;
        !passes && self.waits_for(request, range)
    }

    /// Whether work at `range` must let a request end first.
    pub(in crate::array) fn waits_for(
        &self,
        (at, end): (u64, u64),
        (from, to): (u64, u64),
    ) -> bool {
        match self.scope {
            Scope::None => false,
            Scope::All => true,
            Scope::Units => at / UNIT <= to / UNIT && from / UNIT <= end.saturating_sub(1) / UNIT,
        }
    }

    /// Work begins anew: superblocks are written first, and a thread is woken, so requests that come now are before it.
    pub(in crate::array) fn begin(&mut self, now: Time) {
        (self.raising, self.sleeps_until, self.exhausted) = (false, Time::ZERO, false);
        self.moved = 0;
        if self.is_of_md() {
            self.sleep(now);
        }
    }

    /// Until when work sleeps, if it does.
    pub(in crate::array) fn sleeps(&self, now: Time) -> Option<Time> {
        (self.sleeps_until > now).then_some(self.sleeps_until)
    }

    /// Work finds requests that wait, or no stripe: it sleeps to the end of the tick after this one.
    pub(in crate::array) fn sleep(&mut self, now: Time) -> Time {
        let tick = self.tick.0.max(1);
        self.sleeps_until = Time((now.0 / tick + 2) * tick);
        self.sleeps_until
    }

    /// A range is begun.
    pub(in crate::array) fn begun(&mut self, now: Time) {
        if std::mem::take(&mut self.raising) {
            self.sleeps_until = now + TURN;
        }
    }

    /// No range can be begun, as all stripes are taken; so many sectors were moved for others up to now.
    pub(in crate::array) fn exhaust(&mut self, moved: u64) {
        self.exhausted |= self.is_of_md() && moved != self.moved;
        self.moved = moved;
    }

    /// A range has ended, and stripes are free again.
    pub(in crate::array) fn ended(&mut self, now: Time) {
        if std::mem::take(&mut self.exhausted) && self.scope == Scope::None {
            self.sleep(now);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TICK: Option<Nanos> = Some(Nanos(4_000_000));

    #[test]
    fn raid1_has_a_barrier_for_each_64_mib_and_raid10_one() {
        let one = Barrier::new(TICK, 2, CopyKind::Raid1, 8);
        let work = (UNIT, UNIT + 256);
        assert!(one.holds_back(false, (2 * UNIT - 8, 2 * UNIT), work));
        assert!(!one.holds_back(true, (2 * UNIT - 8, 2 * UNIT), work), "reads pass");
        assert!(one.waits_for((2 * UNIT - 8, 2 * UNIT), work), "and keep work out");
        assert!(!one.holds_back(false, (2 * UNIT, 2 * UNIT + 8), work));
        assert!(!one.waits_for((UNIT - 8, UNIT), work));
        let none = Barrier::new(None, 2, CopyKind::Raid1, 8);
        assert!(!none.is_used() && !none.waits_for((UNIT, UNIT + 8), work));
    }

    #[test]
    fn work_sleeps_to_the_end_of_the_next_tick() {
        let mut parity = Barrier::new(TICK, 0, CopyKind::Raid1, 8);
        assert!(!parity.is_used());
        parity.ended(Time(1));
        assert_eq!(parity.sleeps(Time(1)), None, "there were stripes");
        parity.exhaust(0);
        parity.ended(Time(5_000_000));
        assert_eq!(parity.sleeps(Time(5_000_000)), None, "it is alone");
        parity.exhaust(8);
        parity.exhaust(8);
        parity.ended(Time(5_000_000));
        assert_eq!(parity.sleeps(Time(5_000_000)), Some(Time(12_000_000)));
        assert_eq!(parity.sleeps(Time(12_000_000)), None);
        let mut own = Barrier::new(None, 0, CopyKind::Raid1, 8);
        own.exhaust(8);
        own.ended(Time(5));
        assert_eq!(own.sleeps(Time(5)), None);
    }
}
