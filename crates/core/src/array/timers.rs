//! The moments at which the array wants to be woken, of which the driver is told the first.

use crate::units::Time;

/// What the array waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Timer {
    /// The array may be marked clean.
    Clean,
    /// Quiet bits of the bitmap may be cleared.
    Bitmap,
    /// Background work may go on.
    Pace,
    /// Deadlines of member I/Os are looked at.
    Deadline,
    /// What found no room on a member is tried again.
    Room,
}

const TIMERS: usize = 5;

/// All moments, and which of them the driver was told.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Timers {
    at: [Option<Time>; TIMERS],
    told: Option<Time>,
    /// The first moment may no longer be the one told.
    pub(super) changed: bool,
}

impl Timers {
    /// Waits for `at`; replaces what this timer waited for.
    pub(super) fn set(&mut self, timer: Timer, at: Time) {
        self.at[timer as usize] = Some(at);
        self.changed = true;
    }

    /// Waits for `at`, unless this timer waits already.
    pub(super) fn set_if_idle(&mut self, timer: Timer, at: Time) {
        if self.at[timer as usize].is_none() {
            self.set(timer, at);
        }
    }

    /// What is due, which is waited for no longer.
    pub(super) fn take_due(&mut self, now: Time) -> Option<Timer> {
        let all = [Timer::Clean, Timer::Bitmap, Timer::Pace, Timer::Deadline, Timer::Room];
        let due = all.into_iter().find(|t| self.at[*t as usize].is_some_and(|at| at <= now))?;
        self.at[due as usize] = None;
        Some(due)
    }

    /// The first moment, if the driver must be told of it: it knows none, a later one, or one that has passed.
    pub(super) fn tell(&mut self, now: Time) -> Option<Time> {
        let first = self.at.iter().flatten().min().copied()?;
        if self.told.is_some_and(|told| told <= first && told > now) {
            return None;
        }
        self.told = Some(first);
        Some(first)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_driver_is_told_of_what_comes_first() {
        let mut timers = Timers::default();
        assert_eq!(timers.tell(Time(0)), None, "nothing is waited for");
        timers.set(Timer::Pace, Time(50));
        assert_eq!(timers.tell(Time(0)), Some(Time(50)));
        timers.set(Timer::Clean, Time(70));
        assert_eq!(timers.tell(Time(10)), None, "it is woken before that");
        timers.set(Timer::Room, Time(30));
        assert_eq!(timers.tell(Time(10)), Some(Time(30)));
        timers.set_if_idle(Timer::Room, Time(90));
        assert_eq!(timers.take_due(Time(29)), None);
        assert_eq!(timers.take_due(Time(50)), Some(Timer::Pace), "in the order of the list");
        assert_eq!(timers.take_due(Time(50)), Some(Timer::Room));
        assert_eq!(timers.take_due(Time(50)), None);
        assert_eq!(timers.tell(Time(50)), Some(Time(70)), "what was told has passed");
    }
}
