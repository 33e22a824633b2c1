//! Rounds over all members: how far each is, and what comes next.
//!
//! Fault model: a member may fail to write or flush, and a crash may come between any two members'
//! records; a record is found whole or not at all.
//! Why it is safe: a round flushes every member before it writes a record to the first of them, and
//! ends when every member in service has answered; one that failed is taken out of service, which
//! asks for a superblock round of its own before anything that depends on it is answered. The log device gets a
//! superblock when all members have it: it is at theirs or one behind, never ahead.
//! Tests: `tests/model.rs` drives arrays with superblocks; crash points inside rounds are
//! enumerated by the checker.

use super::slab::Slab;

/// Rounds under way at once.
pub(super) const MOST_ROUNDS: u32 = 8;

/// What a round is for; each has its own records and its own end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    /// The state of the array is recorded.
    Superblock,
    /// Bits of this page of the bitmap are recorded.
    Bitmap(u32),
    /// Everything written is made durable so that bits of the bitmap can be cleared.
    BitmapFlush,
    /// Everything written is made durable so that places of the log can be used again.
    LogSpace,
    /// What background work wrote is made durable, so that how far it is can be recorded.
    Background,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    Flush,
    Write,
    /// The log device is told, when all members have been: what it says, they say.
    TellLog,
}

/// A flush of all members, then a record to each of them; either may be left out.
#[derive(Clone, Copy, Debug)]
struct Round {
    purpose: Purpose,
    step: Step,
    write: bool,
    pending: u32,
}

/// The rounds under way.
#[derive(Clone, Debug)]
pub(super) struct Rounds {
    slots: Slab<Round>,
}

impl Rounds {
    pub(super) fn new() -> Self {
        let purpose = Purpose::Superblock;
        let idle = Round { purpose, step: Step::Flush, write: false, pending: 0 };
        Self { slots: Slab::new(MOST_ROUNDS, idle) }
    }

    /// Begins a round: a flush of all members (`flush`), a record to each (`write`).
    ///
    /// # Panics
    /// When more rounds are under way than there are purposes: callers start one of a purpose at
    /// a time.
    pub(super) fn start(&mut self, purpose: Purpose, flush: bool, write: bool) -> u32 {
        let step = if flush { Step::Flush } else { Step::Write };
        let round = Round { purpose, step, write, pending: 0 };
        self.slots.insert(round).expect("one round of a purpose at a time")
    }

    /// What a round is for, and how far it is.
    pub(super) fn at(&self, slot: u32) -> (Purpose, Step) {
        let Round { purpose, step, .. } = self.slots[slot];
        (purpose, step)
    }

    /// One more I/O of a round has gone out.
    pub(super) fn count_in(&mut self, slot: u32) {
        self.slots[slot].pending += 1;
    }

    /// One has ended.
    pub(super) fn count_off(&mut self, slot: u32) {
        self.slots[slot].pending -= 1;
    }

    /// Whether no I/O of a round's step is in flight.
    pub(super) fn is_step_over(&self, slot: u32) -> bool {
        self.slots[slot].pending == 0
    }

    /// Moves a round on; false when it was the last step. `tells_log`: superblocks go to a log device too.
    pub(super) fn next_step(&mut self, slot: u32, tells_log: bool) -> bool {
        let round = &mut self.slots[slot];
        round.step = match round.step {
            Step::Flush if round.write => Step::Write,
            Step::Write if round.purpose == Purpose::Superblock && tells_log => Step::TellLog,
            _ => return false,
        };
        true
    }

    /// Ends a round.
    pub(super) fn end(&mut self, slot: u32) -> Purpose {
        let purpose = self.slots[slot].purpose;
        self.slots.remove(slot);
        purpose
    }

    pub(super) fn add_to_key(&self, add: &mut dyn FnMut(u64)) {
        for (slot, round) in self.slots.used() {
            add(u64::from(slot));
            let purpose = match round.purpose {
                Purpose::Superblock => 0,
                Purpose::BitmapFlush => 1,
                Purpose::LogSpace => 2,
                Purpose::Background => 3,
                Purpose::Bitmap(page) => 4 + u64::from(page),
            };
            add(purpose | (round.step as u64) << 40 | u64::from(round.pending) << 48);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_round_flushes_then_writes_then_tells_the_log() {
        let mut rounds = Rounds::new();
        let all = rounds.start(Purpose::Superblock, true, true);
        let flush = rounds.start(Purpose::LogSpace, true, false);
        assert_eq!(rounds.at(all), (Purpose::Superblock, Step::Flush));
        rounds.count_in(all);
        assert!(!rounds.is_step_over(all) && rounds.is_step_over(flush));
        rounds.count_off(all);
        assert!(rounds.next_step(all, true));
        assert_eq!(rounds.at(all).1, Step::Write);
        assert!(rounds.next_step(all, true));
        assert_eq!(rounds.at(all).1, Step::TellLog);
        assert!(!rounds.next_step(all, true));
        assert_eq!(rounds.end(all), Purpose::Superblock);
        assert!(!rounds.next_step(flush, true), "it writes nothing");
        assert_eq!(rounds.end(flush), Purpose::LogSpace);
        let page = rounds.start(Purpose::Bitmap(3), false, true);
        assert_eq!(rounds.at(page).1, Step::Write);
        assert!(!rounds.next_step(page, true), "only superblocks go to the log device");
        let superblock = rounds.start(Purpose::Superblock, false, true);
        assert!(!rounds.next_step(superblock, false));
    }
}
