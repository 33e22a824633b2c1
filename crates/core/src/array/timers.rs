//! The moments at which the array wants to be woken, of which the driver is told the first.

use super::Array;
use crate::contract::Output;
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

    /// Waits no longer.
    pub(super) fn clear(&mut self, timer: Timer) {
        self.at[timer as usize] = None;
    }

    pub(super) fn is_set(&self, timer: Timer) -> bool {
        self.at[timer as usize].is_some()
    }

    fn take_due(&mut self, now: Time) -> Option<Timer> {
        let all = [Timer::Clean, Timer::Bitmap, Timer::Pace, Timer::Deadline, Timer::Room];
        let due = all.into_iter().find(|t| self.at[*t as usize].is_some_and(|at| at <= now))?;
        self.clear(due);
        Some(due)
    }
}

impl Array {
    /// Tells the driver of the first moment, if that has changed.
    pub(super) fn tell_wake(&mut self) {
        // A replay begins at the next input.
        self.timers.changed = self.is_replay_due();
        let first = self.timers.at.iter().flatten().min().copied();
        if let Some(at) = first
            && self.timers.told.is_none_or(|told| told > at || told <= self.now)
        {
            self.timers.told = Some(at);
            self.outputs.push_back(Output::WakeAt(at));
        }
    }

    /// The end of an input in which something has changed that is seldom looked at.
    #[cold]
    pub(super) fn end_input(&mut self) {
        self.begin_replay();
        if self.stopped {
            self.retry_logging();
            // What was refused leaves room, and nothing else may end any more.
            if self.is_starved() {
                self.resume();
            }
        }
        self.tell_wake();
    }

    /// Does what is due.
    pub(super) fn woken(&mut self) {
        while let Some(timer) = self.timers.take_due(self.now) {
            match timer {
                Timer::Clean => self.clean_due(),
                Timer::Bitmap => self.bitmap_due(),
                Timer::Pace => self.pace_due(),
                Timer::Deadline => self.deadlines_due(),
                Timer::Room => self.room_due(),
            }
        }
        self.timers.changed = true;
    }
}
