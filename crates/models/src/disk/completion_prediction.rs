//! Working ahead of time: a drive that carries out one command at a time says at once when that ends.
//!
//! Nothing that comes later changes a command at work: others wait for its end. So all that happens in the
//! drive until then may be worked out when it comes, and whoever drives it has one wake-up a command
//! instead of one for every step. What goes on without a command - destaging, reading ahead - shows in no
//! answer before the next one comes, and is made up for then. Each step still has its own time, so that
//! every answer is the same as without.

use raidlab_core::units::{Nanos, Time};

use super::{CommandStep, HardDisk};
use crate::drive::DriveIo;

/// What is known ahead of time.
#[derive(Clone, Debug, Default)]
pub(super) struct CompletionPrediction {
    pub(super) is_on: bool,
    /// The end of the command at work.
    ends: Option<Time>,
    /// Work of the mechanism that may lie ahead, by when it was begun.
    pub(super) work: Vec<(Time, Nanos)>,
}

impl HardDisk {
    /// Asks for a wake-up at the ends of commands only, from before the first command on. Not while there is
    /// no command, so that destaging is seen late: ask [`busy_by`](Self::busy_by) instead of
    /// [`busy`](Self::busy). Gives whether that can be: not on a drive with a command queue, where what
    /// comes later changes what comes next.
    pub fn predict_completions(&mut self) -> bool {
        self.prediction.is_on = self.depth == 1;
        self.prediction.work.reserve(64);
        self.prediction.is_on
    }

    /// A command that comes at `at`, which may lie ahead: nothing else is handed in before. Only when
    /// [ends are predicted](Self::predict_completions).
    pub fn submit_at(&mut self, at: Time, io: DriveIo) {
        let at = at.max(self.now);
        self.prediction.work.clear();
        self.advance(at);
        self.now = at;
        self.queue.push_back(io);
        self.admit();
        self.predict();
    }

    /// As [`busy`](Self::busy), at a time when nothing older is left to be handed in.
    pub fn busy_by(&self, now: Time) -> Nanos {
        if !self.prediction.is_on {
            return self.busy();
        }
        let mut then = self.clone();
        if now > self.now {
            then.advance(now);
        }
        let ahead = then.prediction.work.iter().filter(|(at, _)| *at > now);
        Nanos(then.busy().0 - ahead.map(|(_, work)| work.0).sum::<u64>())
    }

    /// Whether the drive is ahead of `now`, with a command that ends later.
    #[inline]
    pub(super) fn is_ahead_of(&self, now: Time) -> bool {
        self.prediction.ends.is_some_and(|ends| now < ends)
    }

    /// Goes on to where the command at work is only to be answered.
    pub(super) fn predict(&mut self) {
        self.prediction.ends = None;
        while !self.commands.is_empty() {
            let mechanism = self.mechanism_due();
            let command = self.command_due();
            if command.0 < mechanism
                && let CommandStep::Finish { at, .. } = self.commands[command.1].step
            {
                self.prediction.ends = Some(at);
                break;
            }
            if command.0.min(mechanism) == super::NEVER {
                break;
            }
            self.go_on(mechanism, command);
        }
        self.wake = self.prediction.ends;
    }
}
