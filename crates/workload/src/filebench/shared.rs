//! What the threads of a copy share: sets of files, semaphores, events, and when it is over.
//!
//! Threads wait at queues of their own: who has to wait leaves its number here and takes a ticket, and who ends its
//! waiting puts one. Then it looks again.

use std::collections::VecDeque;

use raidlab_core::{Nanos, Time};

use super::files::FileSet;

/// The queue at which a thread waits, which nobody else does.
pub(super) type Queue = u16;

/// When a run ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// After so long.
    After(Nanos),
    /// When each thread that is counted has done everything so many times.
    Loops(u64),
}

/// What the threads of a copy share.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) sets: Vec<FileSet>,
    pub(super) semaphores: Vec<Semaphores>,
    pub(super) events: Events,
    end: End,
    /// Threads that are counted and have not done their loops.
    counted: u32,
    is_over: bool,
}

impl Shared {
    pub(super) fn new(
        sets: Vec<FileSet>,
        semaphores: Vec<Semaphores>,
        events: Events,
        (end, counted): (End, u32),
    ) -> Self {
        Self { sets, semaphores, events, end, counted, is_over: false }
    }

    /// Whether it is over.
    pub(super) fn is_over(&self, now: Time) -> bool {
        self.is_over || matches!(self.end, End::After(time) if now.since(Time::ZERO) >= time)
    }

    /// Whether it is over by what somebody has said: nobody is woken any more.
    pub(super) const fn is_stopped(&self) -> bool {
        self.is_over
    }

    /// Whether a thread that has done everything so many times has done enough.
    pub(super) fn has_done(&self, loops: u64) -> bool {
        matches!(self.end, End::Loops(wanted) if loops >= wanted)
    }

    /// So much of a time is left before it is over.
    pub(super) fn until_over(&self, now: Time, time: Nanos) -> Nanos {
        match self.end {
            End::After(end) => time.min(Nanos(end.0.saturating_sub(now.0))),
            End::Loops(_) => time,
        }
    }

    /// A thread that is counted is done; gives those who wait, if it was the last.
    pub(super) fn one_done(&mut self) -> Vec<Queue> {
        self.counted = self.counted.saturating_sub(1);
        if self.counted == 0 { self.stop() } else { Vec::new() }
    }

    /// It is over for all; gives those who wait.
    pub(super) fn stop(&mut self) -> Vec<Queue> {
        self.is_over = true;
        let mut woken: Vec<Queue> = self.sets.iter_mut().flat_map(FileSet::woken).collect();
        woken.extend(self.semaphores.iter_mut().flat_map(Semaphores::woken));
        woken
    }
}

/// The two semaphores of a thread that blocks: `high` is how many posts may still come, `low` how many came that it
/// has not taken.
#[derive(Clone, Debug)]
pub(super) struct Semaphores {
    high: i64,
    low: i64,
    /// Who waits until more may come.
    posters: VecDeque<Queue>,
    /// Who waits until so many came.
    blocked: Option<(Queue, i64)>,
}

impl Semaphores {
    /// So many posts may come at first.
    pub(super) const fn new(high: i64) -> Self {
        Self { high, low: 0, posters: VecDeque::new(), blocked: None }
    }

    /// So many more may come; gives those who waited for that.
    pub(super) fn raise(&mut self, value: i64) -> Vec<Queue> {
        self.high += value;
        let most = usize::try_from(self.high).unwrap_or(0).min(self.posters.len());
        self.posters.drain(..most).collect()
    }

    /// Takes so many; `false`: it waits until they came.
    pub(super) const fn take(&mut self, value: i64, queue: Queue) -> bool {
        if self.low < value {
            self.blocked = Some((queue, value));
            return false;
        }
        self.low -= value;
        true
    }

    /// Posts one, and gives who waited for it; an error: it waits until one may come.
    pub(super) fn post(&mut self, queue: Queue) -> Result<Option<Queue>, ()> {
        if self.high < 1 {
            self.posters.push_back(queue);
            return Err(());
        }
        self.high -= 1;
        self.low += 1;
        let low = self.low;
        Ok(self.blocked.take_if(|(_, value)| low >= *value).map(|(queue, _)| queue))
    }

    fn woken(&mut self) -> Vec<Queue> {
        let blocked = self.blocked.take().map(|(queue, _)| queue);
        self.posters.drain(..).chain(blocked).collect()
    }
}

/// Events, which come at a rate, ten at once, and are kept for 5 seconds.
#[derive(Clone, Debug)]
pub(super) struct Events {
    rate: u64,
    /// How many times ten came.
    came: u64,
    /// Those that nobody has taken; below 0 for those who wait.
    left: i64,
}

impl Events {
    /// Of a rate; 0 for no limit.
    pub(super) const fn new(rate: u64) -> Self {
        Self { rate, came: 0, left: 0 }
    }

    pub(super) const fn are_limited(&self) -> bool {
        self.rate > 0
    }

    /// Takes events and says for how long to wait for them: who comes first is served first.
    pub(super) fn take(&mut self, now: Time, events: i64) -> Nanos {
        if self.rate == 0 {
            return Nanos::ZERO;
        }
        let period = u128::from(10_000_000_000 / self.rate.max(1)).max(1);
        let come = (u128::from(now.0) / period) as u64;
        let most = 5 * self.rate as i64;
        let needed = ((most - self.left).max(0) as u64).div_ceil(10);
        self.left += 10 * (come - self.came).min(needed) as i64;
        self.came = come;
        self.left -= events;
        if self.left >= 0 {
            return Nanos::ZERO;
        }
        let at = u128::from(come + self.left.unsigned_abs().div_ceil(10)) * period;
        Nanos(u64::try_from(at).unwrap_or(u64::MAX).saturating_sub(now.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    #[test]
    fn semaphores_couple_who_posts_and_who_blocks() {
        let mut pair = Semaphores::new(2);
        assert_eq!((pair.post(1), pair.post(2)), (Ok(None), Ok(None)));
        assert_eq!(pair.post(3), Err(()), "only two may come before it blocks");
        assert_eq!(pair.raise(3), [3]);
        assert!(!pair.take(3, 9), "two came");
        assert_eq!(pair.post(3), Ok(Some(9)));
        assert!(pair.take(3, 9) && !pair.take(1, 9));
        assert_eq!((pair.post(1), pair.post(1)), (Ok(Some(9)), Ok(None)));
        assert_eq!((pair.post(4), pair.take(9, 5)), (Err(()), false));
        assert_eq!(pair.woken(), [4, 5]);
    }

    /// 100 a second: ten each 0.1 s, of which those of the last 5 s are kept.
    #[test]
    fn events_come_at_their_rate() {
        let mut events = Events::new(100);
        assert_eq!(events.take(Time(0), 1), Nanos(SECOND / 10));
        assert_eq!(events.take(Time(SECOND / 20), 10), Nanos(3 * SECOND / 20));
        assert_eq!(events.take(Time(SECOND / 5), 9), Nanos::ZERO);
        assert_eq!(events.take(Time(SECOND / 5), 1), Nanos(SECOND / 10));
        // A hundred seconds later there are not 10,000 but 500.
        assert_eq!(events.take(Time(100 * SECOND), 500), Nanos::ZERO);
        assert!(events.take(Time(100 * SECOND), 20) > Nanos::ZERO);
        assert_eq!(Events::new(0).take(Time(0), 1_000), Nanos::ZERO);
    }

    #[test]
    fn a_run_is_over_by_time_or_by_loops() {
        let shared = |end| Shared::new(Vec::new(), Vec::new(), Events::new(0), (end, 2));
        let timed = shared(End::After(Nanos(10)));
        assert!(!timed.is_over(Time(9)) && timed.is_over(Time(10)) && !timed.has_done(99));
        assert_eq!(timed.until_over(Time(7), Nanos(5)), Nanos(3));
        let mut looped = shared(End::Loops(3));
        assert!(!looped.has_done(2) && looped.has_done(3));
        looped.one_done();
        assert!(!looped.is_over(Time(u64::MAX)));
        looped.one_done();
        assert!(looped.is_over(Time(0)));
    }
}
