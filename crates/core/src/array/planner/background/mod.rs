//! Background work: carries out what it says.

mod heal;
mod window;

use super::Array;
use crate::array::background::{Kept, MayBegin, ResyncWindow, Todo};
use crate::array::member_set::MemberSet;
use crate::array::metadata_updates::Purpose;
use crate::array::timers::Timer;
use crate::bugs::Bug;
use crate::contract::{Event, IoOp, Output, Pacing, Work};
use crate::units::{MemberIndex, Sector};

impl Array {
    /// Whether copies below `end` of the array may differ, since they were not made consistent yet.
    #[inline(always)]
    pub(in crate::array::planner) fn is_unsynced(&self, end: u64) -> bool {
        end > self.background.synced_to()
    }

    /// Whether parity of rows `from..to` of the members is consistent.
    #[inline]
    pub(in crate::array::planner) fn is_parity_consistent(&self, from: u64, to: u64) -> bool {
        self.background.is_parity_consistent(&self.gate.bitmap, from, to)
    }

    /// Whether what these members lack in rows `from..to` may be computed from parity.
    #[inline]
    pub(in crate::array::planner) fn is_parity_trusted(
        &self,
        from: u64,
        to: u64,
        lacking: MemberSet,
    ) -> bool {
        self.background.is_parity_trusted(&self.gate.bitmap, from, to, lacking)
    }

    /// What an array that was just assembled does first. Work begins at the first input or, where
    /// the driver wakes the array when it asks for it, by itself.
    pub(in crate::array::planner) fn begin_at_start(&mut self, todo: Todo) {
        if self.background.begin_at_start(todo, &mut self.members) {
            self.timers.set(Timer::Pace, self.now);
            self.tell_wake();
        }
    }

    /// The logs were replayed; whether that made redundancy consistent wherever it may not have
    /// been. Other work may begin.
    pub(in crate::array::planner) fn replay_over(&mut self, complete: bool) {
        self.background.replay_over(complete);
        self.pump();
    }

    /// Begins a piece of work; none is under way.
    pub(in crate::array::planner) fn begin_work(&mut self, work: Work) {
        self.background.begin(&self.setup, &self.members, self.now, work);
        self.outputs.push_back(Output::Event(Event::Started(work)));
    }

    /// How fast it goes from now on.
    pub(in crate::array::planner) fn set_pace(&mut self, pacing: Pacing) {
        self.background.set_pacing(self.now, pacing);
        self.pump();
    }

    /// Hands out ranges, as fast as the pace allows; begins and ends work.
    pub(in crate::array::planner) fn pump(&mut self) {
        if !self.background.begin_pumping() {
            return;
        }
        loop {
            if !self.members.stopped && self.background.flush_filled() {
                self.flush_background();
            }
            if self.background.work().is_none() {
                let next = self.background.next_work(&self.setup, &self.members);
                let Some(work) = next else { break };
                self.begin_work(work);
                continue;
            }
            if let Some(is_done) = self.background.is_swept() {
                if !is_done {
                    break;
                }
                self.work_swept();
                if self.background.work().is_some() {
                    break;
                }
                continue;
            }
            if !self.may_begin_window() {
                break;
            }
            let Self { background, setup, members, gate, locks, now, .. } = self;
            match background.next_range(setup, members, &gate.bitmap, locks, *now) {
                None => self.moved_on(),
                Some(window) => self.enter_window_range(window),
            }
        }
        self.background.end_pumping();
    }

    /// Whether another range may be begun now; if it is only a matter of time, the array is woken.
    fn may_begin_window(&mut self) -> bool {
        let taken = self.stripes_taken();
        let has_requests = || self.requests.slots.used().next().is_some();
        match self.background.may_begin(&self.setup, self.now, taken, has_requests) {
            MayBegin::Yes => return self.passes_barrier(),
            MayBegin::No => {}
            MayBegin::At(at) => self.timers.set(Timer::Pace, at),
        }
        false
    }

    /// Sectors of a member in stripes of md that requests under way have, where these are counted.
    fn stripes_taken(&self) -> u64 {
        let barrier = &self.background.barrier;
        if !barrier.has_cache() {
            return 0;
        }
        let data = u64::from(self.setup.data_chunks).max(1);
        let under_way =
            |slot| !barrier.waiting.contains(&slot) && !self.requests.held.contains(&slot);
        let requests = self.requests.slots.used().filter(|(slot, _)| under_way(*slot));
        requests
            .map(|(_, request)| barrier.stripes_of((request.end - request.at).div_ceil(data)))
            .sum()
    }

    /// Whether neither requests that wait nor those under way keep a range from being begun.
    fn passes_barrier(&mut self) -> bool {
        let Self { background, requests, now, .. } = self;
        if !background.barrier.is_used() {
            return true;
        }
        if background.barrier.gives_way() {
            // After that they are waited for: when the last range has ended, they go.
            if let Some(at) = background.barrier.gives_turn(*now) {
                self.timers.set(Timer::Pace, at);
            }
            return false;
        }
        let is_waiting =
            |slot| background.barrier.waiting.contains(&slot) || requests.held.contains(&slot);
        let mut others = requests.slots.used().filter(|(slot, _)| !is_waiting(*slot));
        if others.any(|(_, request)| background.waits_for((request.at, request.end))) {
            background.barrier.raising = true;
            return false;
        }
        background.barrier.begun(*now);
        true
    }

    /// Whether a request waits for background work, as md has it.
    #[inline]
    pub(in crate::array::planner) fn waits_for_work(&mut self, slot: u32) -> bool {
        if !self.background.barrier.is_used() || self.background.work().is_none() {
            return false;
        }
        let request = &self.requests[slot];
        let waits = request.op != IoOp::Flush
            && self.background.holds_back(request.op == IoOp::Read, (request.at, request.end));
        if waits {
            self.background.barrier.waiting.push_back(slot);
        }
        waits
    }

    /// Requests that waited for background work begin, if nothing of it is under way.
    fn release_waiting(&mut self) {
        if self.background.is_lowered() {
            for _ in 0..self.background.barrier.waiting.len() {
                if let Some(slot) = self.background.barrier.waiting.pop_front() {
                    self.start(slot);
                }
            }
        }
    }

    /// A request has ended: work may have waited for that.
    #[inline]
    pub(in crate::array::planner) fn request_left(&mut self) {
        if !self.background.barrier.raising {
            return;
        }
        match self.background.barrier.yields(self.now) {
            Some(at) => self.timers.set(Timer::Pace, at),
            None => self.pump(),
        }
    }

    /// A window has come to its end: frees its range.
    fn end_window(&mut self, slot: u32) {
        self.tell_all(slot);
        let window: ResyncWindow = self.background.windows[slot];
        self.background.windows.remove(slot);
        if self.locks.release(self.setup.window_owner(slot)) {
            self.start_granted();
        }
        let taken = self.stripes_taken();
        if self.background.window_ended(&window, self.now, taken) {
            self.moved_on();
        }
        if let Some((member, at, len)) = window.sick {
            self.begin_heal(member, at, len);
        }
        self.background_may_be_quiet();
        self.release_waiting();
        self.pump();
    }

    /// An orderly stop may go on, where background work was halted for it.
    fn background_may_be_quiet(&mut self) {
        if self.background.is_halted() {
            self.stop_when_quiet(None);
        }
    }

    /// Work is further: what is done counts, is told, and is recorded from time to time.
    fn moved_on(&mut self) {
        let (event, keeps) = self.background.moved_on(&self.setup, &mut self.members, self.now);
        if let Some(event) = event {
            self.outputs.push_back(Output::Event(event));
        }
        let Some(to) = keeps else { return };
        if self.setup.has_bug(Bug::RebuildCheckpointEarly) {
            self.background.keep(&self.setup, &mut self.members, to);
            self.state_changed();
            return;
        }
        self.background.flush_to_keep(to);
        self.flush_background();
    }

    fn flush_background(&mut self) {
        self.start_update(Purpose::Background, true, false);
    }

    /// All ranges are done.
    fn work_swept(&mut self) {
        match self.background.work() {
            Some(Work::Replace(member)) if self.setup.has_bug(Bug::ReplaceUnflushed) => {
                self.take_over(member);
            }
            Some(Work::Rebuild(_) | Work::Resync | Work::Replace(_)) => {
                self.background.flush_to_finish();
                self.flush_background();
            }
            _ => self.finish_work(),
        }
    }

    /// Everything written before the flush is durable.
    pub(in crate::array::planner) fn background_flushed(&mut self) {
        let kept = self.background.flushed(&self.setup, &mut self.members);
        self.background_may_be_quiet();
        match kept {
            Kept::Nothing => {}
            Kept::Progress => self.state_changed(),
            Kept::Filled(members) => {
                self.members.fill(members);
                self.state_changed();
            }
            Kept::Work(Work::Replace(member)) => self.ask_to_take_over(member),
            Kept::Work(Work::Rebuild(member)) => self.restore(member),
            Kept::Work(_) => {
                self.background.resynced();
                self.finish_work();
                self.state_changed();
            }
        }
        self.pump();
    }

    /// A member holds everything, durably, and is in service. That is told when the superblocks say
    /// so: after a crash it would be one to rebuild still.
    fn restore(&mut self, member: MemberIndex) {
        self.members.restore(member);
        if self.setup.settings.consistency.has_superblocks() {
            self.background.begin_restoring(member);
        } else {
            self.restored(member);
        }
        self.state_changed();
    }

    /// What was about to go out is on all members.
    pub(in crate::array::planner) fn restoring_recorded(&mut self) {
        if let Some(member) = self.background.restoring_recorded() {
            self.restored(member);
            self.background_may_be_quiet();
            self.pump();
        }
    }

    fn restored(&mut self, member: MemberIndex) {
        self.outputs.push_back(Output::Event(Event::Restored(member)));
        self.finish_work();
    }

    /// The replacement holds everything, durably. That must stand in superblocks before it is the member: after a
    /// crash it would be a drive that is being filled.
    fn ask_to_take_over(&mut self, member: MemberIndex) {
        let other = self.setup.replacement(member);
        let has_superblocks = self.setup.settings.consistency.has_superblocks();
        let is_last = self.members.is_last_copy(&self.setup, member);
        let known = &mut self.members[other];
        if known.hole_from < u64::MAX && has_superblocks && is_last {
            if !known.bad.is_empty() {
                // Superblocks would say of the only copy that it is being rebuilt: the array would never start again.
                self.fail_device(other);
                return;
            }
            // What it lost was written since: it lacks nothing once that is durable.
            known.hole_from = u64::MAX;
            self.background.flush_to_finish();
            self.flush_background();
            return;
        }
        (known.kept_to, known.named_to) = (known.hole_from, 0);
        if has_superblocks {
            self.background.begin_taking_over(member);
            self.state_changed();
        } else {
            self.take_over(member);
        }
    }

    /// The replacement of `member` has its superblock; false when it was given up meanwhile.
    pub(in crate::array::planner) fn may_take_over(&mut self, member: MemberIndex) -> bool {
        let takes_over = self.background.may_take_over(member);
        if takes_over {
            self.take_over(member);
            self.pump();
        }
        takes_over
    }

    /// The replacement is the member from now on. What is still in flight to either drive goes on under the number
    /// its drive has from now on.
    fn take_over(&mut self, member: MemberIndex) {
        let other = self.setup.replacement(member);
        self.members.take_over(member, other);
        self.look_if_filled(member);
        self.swap_members(member, other);
        self.outputs.push_back(Output::Event(Event::Replaced(member)));
        self.finish_work();
        // The drive that went is left behind.
        self.member_swapped();
    }

    fn finish_work(&mut self) {
        if let Some(event) = self.background.finish() {
            self.outputs.push_back(Output::Event(event));
        }
    }

    /// Stops the work under way before its end; its ranges in flight end by themselves.
    fn interrupt(&mut self) {
        if let Some(work) = self.background.interrupt() {
            self.outputs.push_back(Output::Event(Event::Interrupted(work)));
        }
        self.release_waiting();
    }

    /// Begins nothing more until a command asks for it. A replacement is given up.
    pub(in crate::array::planner) fn stop_background(&mut self) {
        self.halt_background();
        let replacing = std::mem::replace(&mut self.members.replacing, MemberSet::NONE);
        if !replacing.is_empty() {
            self.state_changed();
        }
    }

    /// Begins nothing more.
    pub(in crate::array::planner) fn halt_background(&mut self) {
        if self.background.halt() {
            self.interrupt();
        }
    }

    /// A command asks for work: it begins if nothing else is under way.
    fn wake_background(&mut self) {
        self.background.wake();
        self.pump();
    }

    /// A member, replacement or all of the array failed: work on it ends.
    pub(in crate::array::planner) fn background_lost(&mut self, device: MemberIndex) {
        self.members.replacing.remove_if(device);
        if self.background.ends_without(&self.setup, &self.members, device) {
            self.interrupt();
            self.pump();
        }
    }

    /// A member is to be rebuilt from the start: all, or what the bitmap names and all from a sector on.
    pub(in crate::array::planner) fn begin_rebuild(
        &mut self,
        member: MemberIndex,
        named_to: Option<Sector>,
    ) {
        self.members.begin_rebuild(member, named_to);
        self.log.moves(member);
        self.state_changed();
        self.wake_background();
    }

    /// A fresh drive is to take a member's place.
    pub(in crate::array::planner) fn begin_replace(&mut self, member: MemberIndex) {
        self.fill_replacement(member, (0, 0));
    }

    /// A drive goes on being filled that holds what its member does below a sector, but for what the bitmap names.
    pub(in crate::array::planner) fn resume_replace(
        &mut self,
        member: MemberIndex,
        good_to: Sector,
    ) {
        // What the bitmap names is not there, which superblocks must not say.
        let by_bitmap = self.has_bitmap() && !self.was_stopped_cleanly();
        let known = if by_bitmap { (0, good_to.0) } else { (good_to.0, 0) };
        self.fill_replacement(member, known);
    }

    fn fill_replacement(&mut self, member: MemberIndex, known: (u64, u64)) {
        self.members.begin_replace(member, self.setup.replacement(member), known);
        self.log.moves(member);
        self.state_changed();
        self.wake_background();
    }
}
