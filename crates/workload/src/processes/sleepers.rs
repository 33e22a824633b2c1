//! Who sleeps until when, for targets without timers of their own.

use std::collections::BTreeSet;

use raidlab_core::Time;

use crate::synchroniser::ProcessIndex;

/// Processes that sleep, by the time at which they wake, then by their index.
#[derive(Clone, Debug, Default)]
pub struct Sleepers(BTreeSet<(Time, ProcessIndex)>);

impl Sleepers {
    /// A process sleeps until then.
    pub fn add(&mut self, until: Time, process: ProcessIndex) {
        self.0.insert((until, process));
    }

    /// When the next wakes.
    pub fn next_at(&self) -> Option<Time> {
        self.0.first().map(|(at, _)| *at)
    }

    /// The next that wakes at `now` or has before.
    pub fn pop(&mut self, now: Time) -> Option<ProcessIndex> {
        self.next_at().filter(|at| *at <= now)?;
        self.0.pop_first().map(|(_, process)| process)
    }
}
