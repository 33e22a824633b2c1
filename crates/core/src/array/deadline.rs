//! Deadlines of member I/O: one that takes too long is given up by the driver, which then answers
//! it with a timeout like any other outcome.

use super::Array;
use super::timers::Timer;
use crate::contract::{IoId, Output};
use crate::units::Time;

impl Array {
    /// An I/O went out: sees that deadlines are looked at in time.
    pub(super) fn watch_deadline(&mut self) {
        if let Some(deadline) = self.settings.deadline
            && !self.timers.is_set(Timer::Deadline)
        {
            self.timers.set(Timer::Deadline, Time(self.now.0 + deadline.0));
        }
    }

    /// Gives up what has taken too long, and looks again when the next may have.
    pub(super) fn deadlines_due(&mut self) {
        let Some(deadline) = self.settings.deadline else { return };
        let mut next: Option<Time> = None;
        for slot in 0..self.ios.capacity() {
            let Some(generation) = self.ios.used_generation(slot) else { continue };
            let id = IoId { slot, generation };
            let ends = Time(self.ios[slot].sent_at.0 + deadline.0);
            if self.ios[slot].abandoned || self.is_waiting(id) {
                continue;
            }
            if ends <= self.now {
                self.ios[slot].abandoned = true;
                self.outputs.push_back(Output::Abandon { io: id });
            } else {
                next = Some(next.map_or(ends, |known| known.min(ends)));
            }
        }
        if let Some(at) = next {
            self.timers.set(Timer::Deadline, at);
        }
    }
}
