//! When turns of the CPU and sleeps end, and when the host wants to be woken.

use raidlab_core::{Nanos, Time};

/// Whose turn of the CPU, or sleep, ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Timer {
    /// A call of the host has used the CPU; so much is still to come.
    Call(u32, Nanos),
    /// The same for a call that is done then.
    Last(u32, Nanos),
    /// A process has.
    Process(usize, Nanos),
    /// The host wants to be woken.
    Host,
}

/// All that are set, by time, then in the order in which they were set. Few are at once - one for a
/// process, and one for each operation that nobody waits for - so they are a sorted list.
#[derive(Debug, Default)]
pub(super) struct Timers {
    /// Backwards: the next is the last.
    set: Vec<(Time, u64, Timer)>,
    /// When the host wants to be woken: the last it asked for counts.
    host: Option<(Time, u64)>,
    sequence: u64,
}

impl Timers {
    #[inline]
    fn number(&mut self) -> u64 {
        self.sequence += 1;
        self.sequence
    }

    #[inline]
    pub(super) fn set(&mut self, at: Time, timer: Timer) {
        let number = self.number();
        // Of those at one time the later ones come after the earlier ones.
        let mut place = self.set.len();
        while place > 0 && self.set[place - 1].0 <= at {
            place -= 1;
        }
        self.set.insert(place, (at, number, timer));
    }

    /// The host is woken then, and not when it asked for before.
    pub(super) fn set_host(&mut self, at: Time) {
        self.host = Some((at, self.number()));
    }

    /// When the next ends.
    #[inline]
    pub(super) fn next_at(&self) -> Option<Time> {
        let set = self.set.last().map(|(at, ..)| *at);
        match (set, self.host) {
            (Some(set), Some((host, _))) => Some(set.min(host)),
            (Some(at), None) | (None, Some((at, _))) => Some(at),
            (None, None) => None,
        }
    }

    /// The next that has ended at `now`.
    #[inline]
    pub(super) fn due(&mut self, now: Time) -> Option<Timer> {
        let set = self.set.last().map(|(at, number, _)| (*at, *number));
        if let Some(host) = self.host
            && host.0 <= now
            && set.is_none_or(|set| host < set)
        {
            self.host = None;
            return Some(Timer::Host);
        }
        set.filter(|(at, _)| *at <= now)?;
        self.set.pop().map(|(_, _, timer)| timer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn they_end_by_time_and_then_in_order() {
        let mut timers = Timers::default();
        let process = |index| Timer::Process(index, Nanos::ZERO);
        timers.set(Time(20), process(0));
        timers.set_host(Time(5));
        timers.set(Time(10), process(1));
        timers.set_host(Time(10));
        timers.set(Time(10), process(2));
        assert_eq!((timers.next_at(), timers.due(Time(9))), (Some(Time(10)), None));
        let due: Vec<Timer> = std::iter::from_fn(|| timers.due(Time(10))).collect();
        assert_eq!(due, [process(1), Timer::Host, process(2)]);
        assert_eq!((timers.next_at(), timers.due(Time(30))), (Some(Time(20)), Some(process(0))));
        assert_eq!((timers.next_at(), timers.due(Time(30))), (None, None));
    }
}
