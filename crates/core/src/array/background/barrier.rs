//! How Linux md makes requests and background work wait for each other, where an array stands for one of md
//! ([`Settings::resync_tick`](crate::Settings::resync_tick)). raidlab's own arrays lock ranges and need none of this.
//!
//! Sources: `raise_barrier`, `wait_barrier`, `raid10_sync_request` (drivers/md/raid10.c), `raise_barrier`,
//! `wait_read_barrier` (raid1.c), `raid5_sync_request` (raid5.c), all of 6.1.
//!
//! * raid10 has one barrier. While work is under way on the members no request begins; before more of it is begun,
//!   requests under way end, and those that wait have gone.
//! * raid1 has a barrier for each 64 MiB, and reads pass it. They keep work out nonetheless, while they are under way;
//!   and who reads one by one reads on before work is awake.
//! * Work that starts finds nobody waiting, since the array was suspended for it (`md_start_sync`, drivers/md/md.c of
//!   6.12): raid10 begins all it may, 32 MiB, before requests have a turn.
//! * With parity, work takes what stripes there are. Then nobody has one before a quarter is free, nor does work before
//!   it has slept for a tick more; and each time the cache grows by a stripe (`raid5_get_active_stripe`,
//!   `is_inactive_blocked`, `grow_one_stripe`). So in some minutes a rebuild takes many times what it took at first.
//! * When work finds requests that wait, it sleeps for a tick first, and then until they have gone.

use std::collections::VecDeque;

use crate::policy::CopyKind;
use crate::units::{Nanos, Time};

/// Sectors of raid1 that share a barrier: `BARRIER_UNIT_SECTOR_SIZE`.
const UNIT: u64 = 64 << 11;
/// Who was let go on by work's end, or answered, asks again before work does: a process in the kernel takes a few µs.
const TURN: Nanos = Nanos(20_000);

/// Before work starts superblocks are flushed, written and flushed on all members: 6 to 8 ms on hard disks and SSDs in
/// traces of 6.12.
const START: Nanos = Nanos(8_000_000);

/// Sectors of a member in a stripe of md, and in all that there are at first: `NR_STRIPES`.
const STRIPE: u64 = 8;
const STRIPES: u64 = 256 * STRIPE;

/// Whom a barrier holds back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Scope {
    /// Nobody.
    None,
    /// All requests.
    All,
    /// Changes of the same unit.
    Units,
    /// All requests, when no stripe is free.
    Stripes,
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
    /// Work has slept, and waits for those to go that it found waiting.
    has_slept: bool,
    /// Nothing of the work is done yet: it begins as much as there is room for before anybody has a turn.
    starts: bool,
    /// Sectors of a member in all stripes, whether they have run out, and what was moved for others up to then.
    stripes: u64,
    exhausted: bool,
    moved: u64,
    /// It is md's cache, which grows, and of which requests have their part.
    is_cache: bool,
}

impl Barrier {
    /// For copies kept in this way, or parity with so many sectors of a member in md's stripes (none: it has no such
    /// cache, and work has a share that stays); without a tick none.
    pub(in crate::array) fn new(
        tick: Option<Nanos>,
        (copies, parities): (u16, u16),
        kind: CopyKind,
        stripes: u64,
        requests: u32,
    ) -> Self {
        let scope = match (tick, kind) {
            (None, _) => Scope::None,
            _ if parities > 0 => Scope::Stripes,
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
            has_slept: false,
            starts: false,
            stripes: if stripes == 0 { STRIPES } else { stripes },
            exhausted: false,
            moved: 0,
            is_cache: stripes > 0,
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
        self.exhausted && self.is_cache || !passes && self.waits_for(request, range)
    }

    /// Whether work at `range` must let a request end first.
    pub(in crate::array) fn waits_for(
        &self,
        (at, end): (u64, u64),
        (from, to): (u64, u64),
    ) -> bool {
        match self.scope {
            Scope::None | Scope::Stripes => false,
            Scope::All => true,
            Scope::Units => at / UNIT <= to / UNIT && from / UNIT <= end.saturating_sub(1) / UNIT,
        }
    }

    /// Work begins anew: superblocks are written first, so requests that come now are before it.
    pub(in crate::array) fn begin(&mut self, now: Time) {
        (self.raising, self.has_slept, self.exhausted) = (false, false, false);
        (self.sleeps_until, self.starts, self.moved) = (Time::ZERO, true, 0);
        if self.is_of_md() {
            self.sleeps_until = now + START;
        }
    }

    /// Until when work sleeps, if it does.
    pub(in crate::array) fn sleeps(&self, now: Time) -> Option<Time> {
        (self.sleeps_until > now).then_some(self.sleeps_until)
    }

    /// Work finds requests that wait: until when it sleeps, if it has not done so for them.
    pub(in crate::array) fn gives_turn(&mut self, now: Time) -> Option<Time> {
        let has_slept = std::mem::replace(&mut self.has_slept, true);
        (!has_slept).then(|| self.sleep(now))
    }

    /// Work finds requests that wait, or no stripe: it sleeps to the end of the tick after this one.
    pub(in crate::array) fn sleep(&mut self, now: Time) -> Time {
        let tick = self.tick.0.max(1);
        self.sleeps_until = Time((now.0 / tick + 2) * tick);
        self.sleeps_until
    }

    /// A request has ended that work waited for: until when whoever was answered may come first, where requests pass.
    pub(in crate::array) fn yields(&mut self, now: Time) -> Option<Time> {
        (self.scope == Scope::Units).then(|| {
            self.sleeps_until = now + TURN;
            self.sleeps_until
        })
    }

    /// A range is begun.
    pub(in crate::array) fn begun(&mut self, now: Time) {
        self.has_slept = false;
        if std::mem::take(&mut self.raising) && !self.starts {
            self.sleeps_until = now + TURN;
        }
    }

    /// Sectors in stripes that a request of so many sectors of each member has.
    pub(in crate::array) fn stripes_of(&self, rows: u64) -> u64 {
        rows.next_multiple_of(STRIPE).min(self.stripes)
    }

    /// Whether requests have stripes, too.
    pub(in crate::array) fn has_cache(&self) -> bool {
        self.scope == Scope::Stripes && self.is_cache
    }

    /// Whether there are stripes for `rows` more sectors beside `in_flight` of work and those `taken` by requests; if
    /// not, the cache grows by one. A first range always has some.
    pub(in crate::array) fn has_stripes(&mut self, in_flight: u64, taken: u64, rows: u64) -> bool {
        if self.scope != Scope::Stripes || self.exhausted {
            return !self.exhausted;
        }
        self.exhausted = in_flight > 0 && in_flight + taken + rows > self.stripes;
        self.stripes += if self.exhausted && self.is_cache { STRIPE } else { 0 };
        !self.exhausted
    }

    /// Whether requests that wait may begin, `is_raised`: while work is under way.
    pub(in crate::array) fn is_lowered(&self, is_raised: bool) -> bool {
        let holds = is_raised && (self.exhausted || self.scope != Scope::Stripes);
        !self.waiting.is_empty() && !holds
    }

    /// Whether requests that wait have a turn before more is begun.
    pub(in crate::array) fn gives_way(&self) -> bool {
        !self.waiting.is_empty() && !self.raising && !self.starts && self.scope != Scope::Stripes
    }

    /// A range has ended; `in_flight` sectors are left, and those `taken` by requests; so many were `moved` for others
    /// up to now. Without a cache that grows work sleeps only where somebody else used the array since.
    pub(in crate::array) fn ended(&mut self, now: Time, in_flight: u64, taken: u64, moved: u64) {
        self.starts = false;
        let is_free = !self.is_cache || in_flight == 0 || in_flight + taken < self.stripes * 3 / 4;
        if self.exhausted && is_free {
            self.exhausted = false;
            if self.is_cache || moved != self.moved {
                self.sleep(now);
            }
            self.moved = moved;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TICK: Option<Nanos> = Some(Nanos(4_000_000));

    #[test]
    fn raid1_has_a_barrier_for_each_64_mib_and_raid10_one() {
        let one = Barrier::new(TICK, (2, 0), CopyKind::Raid1, 0, 8);
        let work = (UNIT, UNIT + 256);
        assert!(one.holds_back(false, (2 * UNIT - 8, 2 * UNIT), work));
        assert!(!one.holds_back(true, (2 * UNIT - 8, 2 * UNIT), work), "reads pass");
        assert!(one.waits_for((2 * UNIT - 8, 2 * UNIT), work), "and keep work out");
        assert!(!one.holds_back(false, (2 * UNIT, 2 * UNIT + 8), work));
        assert!(!one.waits_for((UNIT - 8, UNIT), work));
        let none = Barrier::new(None, (2, 0), CopyKind::Raid1, 0, 8);
        assert!(!none.is_used() && !none.waits_for((UNIT, UNIT + 8), work));
    }

    const NOW: Time = Time(5_000_000);
    /// The end of the tick after the one of that.
    const THEN: Option<Time> = Some(Time(12_000_000));

    #[test]
    fn nobody_has_a_stripe_before_a_quarter_is_free_and_there_is_one_more_each_time() {
        let mut parity = Barrier::new(TICK, (1, 1), CopyKind::Raid1, 1024, 8);
        let request = (0, 8);
        assert!(parity.has_stripes(768, 0, 256) && !parity.holds_back(true, request, (0, 8)));
        assert!(!parity.has_stripes(1024, 0, 256));
        assert!(parity.holds_back(true, request, (0, 8)), "though it is anywhere else");
        parity.waiting.push_back(0);
        parity.ended(NOW, 774, 0, 0);
        assert!(!parity.has_stripes(774, 0, 128), "three quarters of 1,032 are in use");
        assert!(!parity.is_lowered(true) && parity.sleeps(NOW).is_none());
        parity.ended(NOW, 773, 0, 0);
        assert!(parity.is_lowered(true) && parity.sleeps(NOW) == THEN);
        assert!(!parity.gives_way(), "they have what they need");
        assert!(parity.has_stripes(776, 0, 256) && !parity.has_stripes(777, 0, 256));
        assert!(parity.is_lowered(false), "work is over");
        // Requests have stripes, too; but where work has none it begins one range.
        let mut beside = Barrier::new(TICK, (1, 1), CopyKind::Raid1, 1024, 8);
        assert_eq!([1, 8, 9, 4096].map(|rows| beside.stripes_of(rows)), [8, 8, 16, 1024]);
        assert!(beside.has_stripes(256, 512, 256) && beside.has_stripes(0, 1024, 256));
        assert!(!beside.has_stripes(256, 513, 256));
        beside.ended(NOW, 128, 646, 0);
        assert!(beside.holds_back(true, request, (0, 8)));
        beside.ended(NOW, 128, 645, 0);
        assert!(!beside.holds_back(true, request, (0, 8)));
        assert!(!beside.has_stripes(256, 1024, 256));
        beside.ended(NOW, 0, 1024, 0);
        assert!(!beside.holds_back(true, request, (0, 8)), "none of them is left to wait for");
        let mut alone = Barrier::new(TICK, (1, 1), CopyKind::Raid1, 1024, 8);
        assert!(alone.has_stripes(0, 0, 4096), "one range always has room");
        let mut other = Barrier::new(TICK, (1, 1), CopyKind::Raid1, 0, 8);
        for (moved, sleeps) in [(0, None), (8, THEN)] {
            assert!(
                !other.has_stripes(STRIPES, 0, 256) && !other.holds_back(true, request, (0, 8))
            );
            other.ended(NOW, STRIPES - 256, 0, moved);
            assert_eq!(other.sleeps(NOW), sleeps, "where others moved {moved}");
        }
        assert_eq!(other.stripes, STRIPES, "a share that stays");
        let mut own = Barrier::new(None, (1, 1), CopyKind::Raid1, 1024, 8);
        assert!(own.has_stripes(4096, 0, 256));
    }

    #[test]
    fn work_sleeps_once_for_those_that_wait_and_not_when_it_starts() {
        let kind = CopyKind::Raid10 { near: true, far: false };
        let mut barrier = Barrier::new(TICK, (2, 0), kind, 0, 8);
        barrier.begin(NOW);
        assert_eq!(barrier.sleeps(NOW), Some(NOW + START), "superblocks are written");
        barrier.waiting.push_back(3);
        assert!(!barrier.gives_way(), "nothing of it is done");
        barrier.raising = true;
        barrier.begun(NOW + START);
        assert_eq!(barrier.sleeps(NOW + START), None, "it begins all it may");
        barrier.ended(NOW, 0, 0, 0);
        assert!(barrier.gives_way());
        assert_eq!(barrier.gives_turn(NOW), THEN);
        assert_eq!(barrier.gives_turn(Time(12_000_000)), None, "it waits for them now");
        barrier.waiting.clear();
        barrier.raising = true;
        barrier.begun(NOW);
        assert_eq!(barrier.sleeps(NOW), Some(NOW + TURN));
        barrier.waiting.push_back(3);
        assert_eq!(barrier.gives_turn(NOW), THEN, "it has begun a range since");
        assert_eq!(barrier.yields(NOW), None);
        let mut one = Barrier::new(TICK, (2, 0), CopyKind::Raid1, 0, 8);
        assert_eq!(one.yields(NOW), Some(NOW + TURN), "who reads one by one is awake before");
    }
}
