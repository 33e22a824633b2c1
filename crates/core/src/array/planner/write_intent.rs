//! What must be recorded before a write goes out, and before it is answered: carries out what the gate says.

use super::Array;
use crate::array::ios::Owner;
use crate::array::metadata_updates::Purpose;
use crate::array::requests::changes_data;
use crate::array::settings::Consistency;
use crate::array::timers::Timer;
use crate::array::write_intent::{Reply, Stand, State, Written, after};
use crate::bugs::Bug;
use crate::contract::{Event, MetaIo, Outcome, Output, Record, Superblock};
use crate::units::{MemberIndex, Sector};

/// Writes and replies.
impl Array {
    /// Whether a write of a mirrored level, or of a plan, may go out now; if not, it waits and goes on by itself.
    #[inline(always)]
    pub(super) fn admit_write(&mut self, owner: u32) -> bool {
        !self.gate.asks() || self.ask(owner)
    }

    /// Whether a request that is done may be answered now; if not, it is held back.
    #[inline(always)]
    pub(super) fn may_reply(&mut self, slot: u32) -> bool {
        !self.gate.holds() || self.ask_reply(slot)
    }

    /// The writes of a mirrored request or of a plan have ended.
    #[inline(always)]
    pub(super) fn written(&mut self, owner: Owner) {
        if self.gate.asks() {
            let (Owner::Request(owner) | Owner::Plan(owner)) = owner else { return };
            self.write_ended(owner);
        }
    }

    /// What a write that asks is going to change.
    fn written_range(&self, owner: u32) -> (u64, u64) {
        if self.setup.parities > 0 {
            return self.plan_range(owner);
        }
        let request = &self.requests[owner];
        (request.at, request.end)
    }

    fn ask(&mut self, owner: u32) -> bool {
        match self.gate.stand(owner) {
            Stand::Admitted => return true,
            Stand::Waiting => return false,
            Stand::None => {}
        }
        if self.members.stopped {
            self.refuse_write(owner);
            return false;
        }
        let range = self.written_range(owner);
        self.gate.enter(&self.setup, owner, range);
        self.write_pages();
        if self.gate.want_dirty() {
            self.next_update();
        }
        self.gate.admit_or_wait(&self.setup, owner)
    }

    /// Goes on with the writes for which all is recorded now.
    pub(super) fn release_writes(&mut self) {
        for _ in 0..self.gate.waiting() {
            let Some(owner) = self.gate.pop_waiting() else { return };
            if self.members.stopped {
                self.write_ended(owner);
                self.refuse_write(owner);
            } else if self.gate.admit_or_wait(&self.setup, owner) {
                if self.setup.parities > 0 {
                    self.plan_admitted(owner);
                } else {
                    self.request_admitted(owner);
                }
            }
        }
    }

    /// Ends a write that has not gone out to an array that takes none any more.
    fn refuse_write(&mut self, owner: u32) {
        let outcome = self.refused_outcome();
        if self.setup.parities > 0 {
            self.refuse_plan(owner, outcome);
        } else {
            self.refuse_request(owner, outcome);
        }
    }

    /// How a change to an array that takes none any more ends.
    pub(super) fn refused_outcome(&self) -> Outcome {
        match self.members.is_lost(&self.setup) {
            true => Outcome::ArrayFailed,
            false => Outcome::Stopped,
        }
    }

    fn write_ended(&mut self, owner: u32) {
        if self.gate.ended(owner, self.now) {
            self.watch_quiet();
        }
    }

    /// Sees that the array is marked clean, and bits cleared, when it has been quiet for long enough.
    fn watch_quiet(&mut self) {
        if !self.gate.is_quiet() || self.members.stopped {
            return;
        }
        if let Some(at) = self.gate.clean_at(&self.setup, self.now) {
            self.timers.set_if_idle(Timer::Clean, at);
        }
        self.watch_bits();
    }

    /// The array may have been quiet for long enough to be marked clean.
    pub(super) fn clean_due(&mut self) {
        // The first input after assembly.
        self.next_update();
        self.write_pages();
        self.watch_bits();
        if self.log.is_replaying() {
            return;
        }
        match self.gate.clean_due(&self.setup, self.now) {
            Ok(()) => self.next_update(),
            Err(Some(at)) => self.timers.set(Timer::Clean, at),
            Err(None) => {}
        }
    }

    /// Whether a request that is done may be answered, while something keeps it.
    #[cold]
    fn ask_reply(&mut self, slot: u32) -> bool {
        match self.gate.ask_reply(&self.setup, &self.members, slot) {
            Reply::Held => return false,
            Reply::Goes => {}
            Reply::Failed => {
                let errors = self.requests.error_state(slot);
                if errors.outcome == Outcome::Done {
                    errors.outcome = Outcome::ArrayFailed;
                }
            }
        }
        self.stop_when_quiet(Some(slot));
        true
    }

    /// Answers what was held back, when nothing is left to record.
    fn release_replies(&mut self) {
        while let Some(slot) = self.gate.pop_reply() {
            if !self.may_reply(slot) {
                // It was put back; so would be all others.
                return;
            }
            self.answer(slot);
        }
    }

    /// Whether the failure of a member, or its being exchanged, is not recorded on all others.
    pub(super) fn is_unrecorded(&self) -> bool {
        self.gate.is_unrecorded(&self.setup, &self.members)
    }
}

/// An orderly stop.
impl Array {
    /// Takes no more changes, waits for those under way, makes everything durable and marks the array
    /// clean; [`Event::Stopped`] tells when.
    pub(super) fn stop(&mut self) {
        if self.gate.is_stopped() {
            self.outputs.push_back(Output::Event(Event::Stopped));
        }
        if !self.gate.begin_stop() {
            return;
        }
        self.members.stopped = true;
        self.gate.note_holds(&self.setup, &self.members);
        self.halt_background();
        self.release_writes();
        self.stop_when_quiet(None);
    }

    /// Goes on with a stop when no change but `last`, which is being answered, is left.
    pub(super) fn stop_when_quiet(&mut self, last: Option<u32>) {
        if !self.gate.is_stopping() || !self.background.is_quiet() {
            return;
        }
        let others = self.requests.slots.used().filter(|(slot, _)| Some(*slot) != last);
        let changes = others.filter(|(_, request)| changes_data(request.op)).count();
        if changes > 0 || self.members.has_lost(&self.setup) {
            return;
        }
        self.gate.stop_quiet(&self.setup, &self.members);
        self.next_update();
    }
}

/// Superblocks.
impl Array {
    /// The state of the array, as its parts have it.
    fn recorded_state(&self) -> State {
        let rebuilding = self.members.rebuilt_again(&self.setup);
        let replacing = match self.setup.settings.consistency {
            // A start replays a journal to the members before it knows what replaces them.
            Consistency::Journal { .. } => self.members.taking_over(self.background.taking_over()),
            _ => self.members.replacing,
        };
        State {
            failed: self.members.failed,
            rebuilding,
            by_bitmap: rebuilding.iter().all(|member| self.members.is_rebuilt_by_bitmap(member)),
            rebuilt_to: Sector(self.members.rebuilt_to(&self.setup)),
            replacing,
            replaced_to: Sector(self.members.replaced_to(&self.setup)),
            synced_to: Sector(self.background.synced_kept(&self.setup)),
            journal: self.log.is_journal_used(),
            journal_tail: self.log.journal_tail(),
        }
    }

    /// The state of the array as a member's superblock is to tell it: what the driver writes to
    /// every member of a new array.
    pub fn superblock(&self) -> Superblock {
        self.gate.view(&self.setup, &self.recorded_state())
    }

    /// The newest superblock that the members have, or get.
    pub(crate) fn newest_superblock(&self) -> &Superblock {
        self.gate.newest()
    }

    /// A member failed, came back, or is rebuilt further: the superblocks must tell.
    pub(super) fn state_changed(&mut self) {
        let joined = self.gate.state_changed(&self.setup, &self.members);
        if !self.setup.settings.consistency.has_superblocks() {
            return;
        }
        if joined {
            self.gate.bitmap.repeat();
            self.write_pages();
        }
        self.gate.note_holds(&self.setup, &self.members);
        if self.gate.holds() {
            self.release_when_lost();
        }
        self.next_update();
    }

    /// A member's replacement has taken its place.
    pub(super) fn member_swapped(&mut self) {
        if self.setup.settings.consistency.has_superblocks() {
            self.gate.member_swapped();
            self.state_changed();
        }
    }

    /// Begins the next update, if one is wanted and none is under way.
    pub(super) fn next_update(&mut self) {
        if !self.gate.wants_update() {
            return;
        }
        if self.members.has_lost(&self.setup) {
            self.release_when_lost();
            return;
        }
        let (flush, write) = self.gate.begin_update(&self.setup);
        self.start_update(Purpose::Superblock, flush, write);
    }

    /// The records of an update are about to go out: settles what they say; false when there is
    /// nothing to say any more.
    pub(super) fn seal_update(&mut self) -> bool {
        if self.gate.is_stop_flushed() {
            let filled = self.background.take_filled();
            self.members.fill(filled);
        }
        let (state, taking_over) = (self.recorded_state(), self.background.taking_over());
        match self.gate.seal(&self.setup, &self.members, &state, taking_over) {
            Written::Nothing => return false,
            Written::Again => {}
            Written::New(failed) => {
                self.log.state_written();
                self.background.restoring_said(failed);
            }
        }
        true
    }

    /// Every member in service has answered.
    pub(super) fn superblock_recorded(&mut self) {
        let recorded = self.gate.superblock_recorded(&self.members);
        if recorded.is_new {
            self.log_state_recorded();
            if let Some(member) = recorded.taking_over
                && !self.may_take_over(member)
            {
                // It was named, and is to be left behind as a drive that was exchanged is.
                self.gate.member_swapped();
                self.gate.set_wanted(true);
            }
            self.restoring_recorded();
            let may_clear = self.may_clear();
            if self.gate.is_since_recorded(may_clear) {
                self.clear_bits();
            }
        }
        if self.gate.flag_recorded(&self.setup, &self.members, recorded.written) {
            self.outputs.push_back(Output::Event(Event::Stopped));
        }
        self.gate.note_holds(&self.setup, &self.members);
        self.release_replies();
        self.release_writes();
        self.watch_quiet();
        self.next_update();
    }

    /// Nothing is recorded any more: what was held back for it is answered.
    fn release_when_lost(&mut self) {
        if self.members.has_lost(&self.setup) {
            self.gate.give_up(&self.setup, &self.members);
            self.replay_recorded();
            self.release_replies();
            self.release_writes();
        }
    }
}

/// The bitmap.
impl Array {
    /// Sends out blocks of pages, as many at once as there are places for.
    fn write_pages(&mut self) {
        while !self.members.has_lost(&self.setup)
            && let Some(index) = self.gate.bitmap.next_block()
        {
            self.start_update(Purpose::Bitmap(index), false, true);
        }
    }

    /// A block of pages is about to go out; false when nothing is written any more.
    pub(super) fn seal_pages(&mut self, index: u32) -> bool {
        self.gate.bitmap.seal(index);
        !self.members.has_lost(&self.setup)
    }

    /// The pages of the bitmap that are written together with this record, in the same block: each with its bits.
    pub fn pages_beside(&self, meta: &MetaIo) -> impl Iterator<Item = (u32, u64)> + use<'_> {
        let page = match meta.record {
            Record::BitmapPage { page, .. } => Some(page),
            _ => None,
        };
        page.into_iter().flat_map(|page| self.gate.bitmap.beside(page))
    }

    /// A block of pages is on every member in service.
    pub(super) fn bitmap_recorded(&mut self, index: u32) {
        self.gate.bitmap.recorded(index);
        self.write_pages();
        self.release_writes();
    }

    /// Whether bits may be cleared: all members have all of everything.
    fn may_clear(&self) -> bool {
        let whole =
            self.members.missing().is_empty() || self.setup.has_bug(Bug::BitmapClearDegraded);
        whole
            && !self.members.is_replacing_by_bitmap(&self.setup)
            && self.background.synced_kept(&self.setup) == u64::MAX
            && !self.members.has_lost(&self.setup)
    }

    /// Sees that quiet bits are looked for.
    fn watch_bits(&mut self) {
        if self.gate.bitmap.wants_look() && self.may_clear() {
            let at = after(self.now, self.setup.settings.bitmap_delay);
            self.timers.set_if_idle(Timer::Bitmap, at);
        }
    }

    /// It is time to look for quiet bits.
    pub(super) fn bitmap_due(&mut self) {
        if !self.may_clear() || self.gate.bitmap.is_clearing() || self.members.stopped {
            return;
        }
        if !self.gate.bitmap.begin_clearing(self.setup.has_bug(Bug::BitmapClearBusy)) {
            self.watch_bits();
        } else if self.setup.has_bug(Bug::BitmapClearUnflushed) {
            self.bitmap_flushed();
        } else {
            self.start_update(Purpose::BitmapFlush, true, false);
        }
    }

    /// Everything was flushed: bits whose ranges are quiet can be cleared as soon as it is recorded
    /// that the bitmap does not reach back beyond now.
    pub(super) fn bitmap_flushed(&mut self) {
        if self.may_clear() && self.members.missing().is_empty() {
            self.gate.ask_since();
            self.next_update();
        } else {
            self.clear_bits();
        }
    }

    /// Takes back the bits whose ranges were quiet until now, if no member is missing.
    fn clear_bits(&mut self) {
        let may_clear = self.may_clear();
        self.gate.bitmap.end_clearing(may_clear);
        self.write_pages();
        self.watch_bits();
    }

    /// Whether there is one, so that a member may go by it.
    pub(crate) fn has_bitmap(&self) -> bool {
        self.gate.bitmap.is_used()
    }

    /// Whether the bitmap names everything that a member missed whose newest superblock has these events.
    pub(crate) fn bitmap_reaches(&self, member: MemberIndex, events: u64) -> bool {
        self.gate.bitmap_reaches(&self.setup, member, events)
    }
}
