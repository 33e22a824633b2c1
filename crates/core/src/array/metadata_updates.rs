//! Updates over all members: how far each is, and what comes next.
//!
//! Fault model: a member may fail to write or flush, and a crash may come between any two members'
//! records; a record is found whole or not at all.
//! Why it is safe: an update flushes every member before it writes a record to the first of them, and
//! ends when every member in service has answered; one that failed is taken out of service, which
//! asks for a superblock update of its own before anything that depends on it is answered. The log device gets a
//! superblock when all members have it: it is at theirs or one behind, never ahead.
//! Tests: `tests/model.rs` drives arrays with superblocks; crash points inside updates are
//! enumerated by the checker.

use super::slab::Slab;

/// Updates under way at once.
pub(super) const MOST_UPDATES: u32 = 8;

/// What an update is for; each has its own records and its own end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Purpose {
    /// The state of the array is recorded.
    Superblock,
    /// Bits of this block of the bitmap are recorded.
    Bitmap(u32),
    /// Everything written is made durable so that bits of the bitmap can be cleared.
    BitmapFlush,
    /// Everything written is made durable so that places of the log can be used again.
    LogSpace,
    /// What background work wrote is made durable, so that how far it is can be recorded.
    Background,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum UpdateStep {
    Flush,
    Write,
    /// The log device is told, when all members have been: what it says, they say.
    TellLog,
}

/// A flush of all members, then a record to each of them; either may be left out.
#[derive(Clone, Copy, Debug, Hash)]
struct MetadataUpdate {
    purpose: Purpose,
    step: UpdateStep,
    write: bool,
    pending: u32,
}

/// The updates under way.
#[derive(Clone, Debug, Hash)]
pub(super) struct MetadataUpdates {
    slots: Slab<MetadataUpdate>,
}

impl MetadataUpdates {
    pub(super) fn new() -> Self {
        let purpose = Purpose::Superblock;
        let idle = MetadataUpdate { purpose, step: UpdateStep::Flush, write: false, pending: 0 };
        Self { slots: Slab::new(MOST_UPDATES, idle) }
    }

    /// Begins an update: a flush of all members (`flush`), a record to each (`write`).
    ///
    /// # Panics
    /// When more updates are under way than there are purposes: callers start one of a purpose at
    /// a time.
    pub(super) fn start(&mut self, purpose: Purpose, flush: bool, write: bool) -> u32 {
        let step = if flush { UpdateStep::Flush } else { UpdateStep::Write };
        let update = MetadataUpdate { purpose, step, write, pending: 0 };
        self.slots.insert(update).expect("one update of a purpose at a time")
    }

    /// What an update is for, and how far it is.
    pub(super) fn at(&self, slot: u32) -> (Purpose, UpdateStep) {
        let MetadataUpdate { purpose, step, .. } = self.slots[slot];
        (purpose, step)
    }

    /// One more I/O of an update has gone out.
    pub(super) fn count_in(&mut self, slot: u32) {
        self.slots[slot].pending += 1;
    }

    /// One has ended.
    pub(super) fn count_off(&mut self, slot: u32) {
        self.slots[slot].pending -= 1;
    }

    /// Whether no I/O of an update's step is in flight.
    pub(super) fn is_step_over(&self, slot: u32) -> bool {
        self.slots[slot].pending == 0
    }

    /// Moves an update on; false when it was the last step. `tells_log`: superblocks go to a log device too.
    pub(super) fn next_step(&mut self, slot: u32, tells_log: bool) -> bool {
        let update = &mut self.slots[slot];
        update.step = match update.step {
            UpdateStep::Flush if update.write => UpdateStep::Write,
            UpdateStep::Write if update.purpose == Purpose::Superblock && tells_log => {
                UpdateStep::TellLog
            }
            _ => return false,
        };
        true
    }

    /// Ends an update.
    pub(super) fn end(&mut self, slot: u32) -> Purpose {
        let purpose = self.slots[slot].purpose;
        self.slots.remove(slot);
        purpose
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_update_flushes_then_writes_then_tells_the_log() {
        let mut updates = MetadataUpdates::new();
        let all = updates.start(Purpose::Superblock, true, true);
        let flush = updates.start(Purpose::LogSpace, true, false);
        assert_eq!(updates.at(all), (Purpose::Superblock, UpdateStep::Flush));
        updates.count_in(all);
        assert!(!updates.is_step_over(all) && updates.is_step_over(flush));
        updates.count_off(all);
        assert!(updates.next_step(all, true));
        assert_eq!(updates.at(all).1, UpdateStep::Write);
        assert!(updates.next_step(all, true));
        assert_eq!(updates.at(all).1, UpdateStep::TellLog);
        assert!(!updates.next_step(all, true));
        assert_eq!(updates.end(all), Purpose::Superblock);
        assert!(!updates.next_step(flush, true), "it writes nothing");
        assert_eq!(updates.end(flush), Purpose::LogSpace);
        let page = updates.start(Purpose::Bitmap(3), false, true);
        assert_eq!(updates.at(page).1, UpdateStep::Write);
        assert!(!updates.next_step(page, true), "only superblocks go to the log device");
        let superblock = updates.start(Purpose::Superblock, false, true);
        assert!(!updates.next_step(superblock, false));
    }
}
