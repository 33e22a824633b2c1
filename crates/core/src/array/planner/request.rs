//! Requests: taking them in, going on with those that wait, answering them.

use super::Array;
use crate::array::ios::Owner;
use crate::array::member_set::MemberSet;
use crate::array::requests::{ErrorState, RequestState, Requests, changes_data};
use crate::bugs::Bug;
use crate::contract::{Event, IoOp, Outcome, Output, Request};
use crate::geometry::Place;
use crate::units::Sector;

impl Array {
    #[inline]
    pub(super) fn accept(&mut self, request: &Request<'_>) {
        if let Some(outcome) = Requests::refusal(&self.setup, request) {
            self.outputs.push_back(Output::Reply { id: request.id, outcome });
            return;
        }
        let Some(slot) = self.requests.insert(&self.setup, request) else {
            self.outputs.push_back(Output::Reply { id: request.id, outcome: Outcome::Busy });
            return;
        };
        if self.requests.holding {
            self.requests.held.push_back(slot);
        } else {
            self.start(slot);
        }
    }

    pub(super) fn unplug(&mut self) {
        self.requests.plugged = false;
        self.release_held();
    }

    /// Starts what was held back, unless something still holds it.
    pub(super) fn release_held(&mut self) {
        self.requests.holding = self.requests.plugged || self.log.is_replaying();
        if self.requests.holding {
            return;
        }
        if !self.members.stopped {
            self.requests.gather_held(&self.setup);
        }
        while let Some(slot) = self.requests.held.pop_front() {
            self.start(slot);
        }
    }

    #[inline]
    pub(super) fn start(&mut self, slot: u32) {
        if self.waits_for_work(slot) {
            return;
        }
        let request = &self.requests[slot];
        if changes_data(request.op) {
            if self.members.stopped {
                self.refuse_change(slot);
                return;
            }
            // Parity levels lock rows of stripes, plan by plan.
            if self.setup.copies > 1 {
                let (at, end) = (request.at, request.end);
                let locks = !self.setup.has_bug(Bug::SkipMirrorLock);
                if locks && !self.locks.acquire(slot, at, end) {
                    return;
                }
                if !self.admit_write(slot) {
                    return;
                }
            }
        }
        self.advance(slot);
    }

    /// Answers a change to an array that takes none any more.
    #[cold]
    fn refuse_change(&mut self, slot: u32) {
        let id = self.requests[slot].id;
        let outcome = self.refused_outcome();
        self.outputs.push_back(Output::Reply { id, outcome });
        self.requests.slots.remove(slot);
        while let Some(id) = self.requests.take_joined(slot) {
            self.outputs.push_back(Output::Reply { id, outcome });
        }
        self.stop_when_quiet(None);
    }

    /// Ends a request of a mirrored level of which nothing has gone out.
    pub(super) fn refuse_request(&mut self, slot: u32, outcome: Outcome) {
        self.requests.error_state(slot).outcome = outcome;
        let request = &mut self.requests[slot];
        request.cursor = request.end;
        request.planned = true;
        self.settle(slot);
    }

    /// Goes on with a request whose change may go out now.
    pub(super) fn request_admitted(&mut self, slot: u32) {
        self.advance(slot);
    }

    /// Goes on with owners whose wait for a range is over.
    #[inline]
    pub(super) fn start_granted(&mut self) {
        while let Some(owner) = self.locks.next_granted() {
            if owner >= self.setup.window_owner(0) {
                self.begin_window(owner - self.setup.window_owner(0));
            } else if self.setup.parities > 0 {
                self.begin_plan(owner);
            } else if self.admit_write(owner) {
                self.advance(owner);
            }
        }
    }

    /// Plans as much of a request as there is room for.
    #[inline(always)]
    pub(super) fn advance(&mut self, slot: u32) {
        if !self.starved.requests.is_empty() || !self.plan_request(slot) {
            self.starved.requests.push_back(slot);
            return;
        }
        self.settle(slot);
    }

    #[inline(always)]
    fn plan_request(&mut self, slot: u32) -> bool {
        let planned = match self.requests[slot].op {
            IoOp::Read => self.plan_read(slot),
            IoOp::Flush => self.plan_flush(slot),
            _ => self.plan_write(slot),
        };
        if planned {
            self.requests[slot].planned = true;
        }
        planned
    }

    /// Goes on with what waited for room, in order.
    #[inline]
    pub(super) fn resume(&mut self) {
        while let Some(round) = self.starved.updates.pop_front() {
            if !self.issue_update(round) {
                self.starved.updates.push_front(round);
                return;
            }
        }
        while let Some(window) = self.starved.windows.pop_front() {
            if !self.issue_window(window) {
                self.starved.windows.push_front(window);
                return;
            }
        }
        while let Some(plan) = self.starved.plans.pop_front() {
            if !self.issue_phase(plan) {
                self.starved.plans.push_front(plan);
                return;
            }
        }
        while let Some(slot) = self.starved.requests.pop_front() {
            if !self.plan_request(slot) {
                self.starved.requests.push_front(slot);
                return;
            }
            self.settle(slot);
        }
    }

    /// Answers a request when nothing of it is outstanding.
    #[inline(always)]
    pub(super) fn settle(&mut self, slot: u32) {
        let request = &self.requests[slot];
        if request.planned && request.pending == 0 {
            self.ended(slot);
        }
    }

    /// Answers a request of which nothing is outstanding, as soon as it may be answered.
    #[inline(always)]
    pub(super) fn ended(&mut self, slot: u32) {
        if self.requests[slot].op == IoOp::Read || self.may_reply(slot) {
            self.answer(slot);
        }
    }

    /// Answers a request of which nothing is outstanding.
    #[inline(always)]
    pub(super) fn answer(&mut self, slot: u32) {
        if !self.requests[slot].has_errors {
            self.reply(slot, Outcome::Done);
            return;
        }
        self.settle_errors(slot);
    }

    /// The same for a request with which something went wrong.
    #[cold]
    fn settle_errors(&mut self, slot: u32) {
        let ErrorState { mut outcome, again, avoid, check_copies, .. } =
            self.requests.errors[slot as usize];
        if again && outcome == Outcome::Done {
            if self.is_read_of_copies_that_differ(slot) {
                let RequestState { at, end, .. } = self.requests[slot];
                self.begin_block(slot, (at, end));
                return;
            }
            let errors = &mut self.requests.errors[slot as usize];
            errors.again = false;
            let request = &mut self.requests.slots[slot];
            request.planned = false;
            request.cursor = errors.blocks.map_or(request.at, |(from, _)| from);
            request.slice = 0;
            self.advance(slot);
            return;
        }
        if let Some(blocks) = self.next_block(slot) {
            self.begin_block(slot, blocks);
            return;
        }
        let recovered = self.requests.errors[slot as usize].recovered;
        let request = &self.requests[slot];
        if check_copies && outcome == Outcome::Done {
            outcome = match self.lost_sector(request) {
                _ if self.lacks_copy(request) => Outcome::ArrayFailed,
                Some(first_bad) if request.op != IoOp::Discard => Outcome::MediaError { first_bad },
                _ => Outcome::Done,
            };
        }
        if outcome == Outcome::Done && request.op == IoOp::Read {
            for member in avoid.union(recovered).iter() {
                self.outputs.push_back(Output::Event(Event::ReadRecovered(member)));
            }
        }
        self.reply(slot, outcome);
        let mut is_any = false;
        while let Some(id) = self.requests.take_joined(slot) {
            self.outputs.push_back(Output::Reply { id, outcome });
            is_any = true;
        }
        if is_any {
            self.stop_when_quiet(None);
        }
    }

    /// A read that cannot be had as a whole may be had block by block, as not all of it need be bad
    /// on the same members; and if not, the first block that is lost is known. A write to a level with
    /// parity may be made so, too, where what its parity needs is. Where the next block begins, and
    /// where all ends; `None` when there is nothing more to do.
    fn next_block(&self, slot: u32) -> Option<(u64, u64)> {
        let (request, errors) = (&self.requests[slot], &self.requests.errors[slot as usize]);
        let goes_by_blocks = match request.op {
            IoOp::Read => true,
            IoOp::Write | IoOp::WriteZeroes => self.setup.parities > 0 && !self.members.stopped,
            _ => false,
        };
        match (errors.outcome, errors.blocks) {
            _ if !goes_by_blocks => None,
            (Outcome::Done, Some((_, last))) if request.end < last => Some((request.end, last)),
            (Outcome::MediaError { .. } | Outcome::Inconsistent, None)
                if request.end - request.at > u64::from(self.setup.logical_block) =>
            {
                Some((request.at, request.end))
            }
            _ => None,
        }
    }

    /// Begins the block at the first of these addresses, of a request that ends at the other.
    fn begin_block(&mut self, slot: u32, (next, last): (u64, u64)) {
        let block = u64::from(self.setup.logical_block);
        let errors = &mut self.requests.errors[slot as usize];
        let recovered = match errors.blocks {
            Some(_) => errors.recovered.union(errors.avoid),
            None => MemberSet::NONE,
        };
        *errors = ErrorState { blocks: Some((next, last)), recovered, ..ErrorState::NONE };
        let request = &mut self.requests.slots[slot];
        request.cursor = next;
        request.end = (next + block).min(last);
        request.planned = false;
        request.slice = 0;
        self.advance(slot);
    }

    /// Whether a read is of several blocks of which copies may differ, and not block by block yet. Had from another
    /// copy as a whole, those that the first can read would not be what they were read as before.
    fn is_read_of_copies_that_differ(&self, slot: u32) -> bool {
        let request = &self.requests[slot];
        request.op == IoOp::Read
            && self.setup.copies > 1
            && request.end - request.at > u64::from(self.setup.logical_block)
            && self.requests.errors[slot as usize].blocks.is_none()
            && self.is_unsynced(request.end)
    }

    #[inline(always)]
    fn reply(&mut self, slot: u32, outcome: Outcome) {
        let RequestState { id, op, .. } = self.requests[slot];
        if !self.was_answered(slot) {
            self.outputs.push_back(Output::Reply { id, outcome });
        }
        let locks = self.setup.copies > 1 && changes_data(op);
        if locks {
            self.written(Owner::Request(slot));
        }
        self.requests.slots.remove(slot);
        if locks && self.locks.release(slot) {
            self.start_granted();
        }
        self.request_left();
    }

    /// Whether a planted bug has answered a request before its time.
    #[inline(always)]
    fn was_answered(&self, _slot: u32) -> bool {
        #[cfg(debug_assertions)]
        return self.requests[_slot].answered;
        #[cfg(not(debug_assertions))]
        false
    }

    /// Answers a request when the first of its I/Os has ended well.
    #[cfg(debug_assertions)]
    pub(super) fn answer_early(&mut self, slot: u32) {
        let RequestState { id, op, planned, has_errors, answered, .. } = self.requests[slot];
        let early = match op {
            IoOp::Flush => self.setup.has_bug(Bug::AckFlushEarly),
            IoOp::Read => false,
            _ => self.setup.copies > 1 && self.setup.has_bug(Bug::AckWriteEarly),
        };
        if early && planned && !has_errors && !answered {
            self.requests[slot].answered = true;
            self.outputs.push_back(Output::Reply { id, outcome: Outcome::Done });
        }
    }

    pub(super) fn lacks_copy(&self, request: &RequestState) -> bool {
        let mut at = request.at;
        while at < request.end {
            let sector = Sector(at);
            let lost = (0..self.setup.copies).all(|copy| {
                self.members.failed.contains(self.setup.geometry.place(sector, copy).member)
            });
            if lost {
                return true;
            }
            at += self.setup.geometry.run(sector).0;
        }
        false
    }

    /// The first sector of a request of which no copy can be read.
    fn lost_sector(&self, request: &RequestState) -> Option<Sector> {
        let is_lost = |sector: &Sector| {
            (0..self.setup.copies).all(|copy| {
                let Place { member, at } = self.setup.geometry.place(*sector, copy);
                self.members.failed.contains(member)
                    || self.members.lacks(&self.setup, member, at, 1)
            })
        };
        (request.at..request.end).map(Sector).find(is_lost)
    }

    /// Ends the planning of a request that cannot be carried out from `at` on.
    pub(super) fn give_up(&mut self, slot: u32, at: Sector) {
        let lost = self.members.is_lost(&self.setup);
        let request = &mut self.requests[slot];
        request.cursor = request.end;
        let errors = self.requests.error_state(slot);
        errors.outcome = match lost {
            true => Outcome::ArrayFailed,
            false => Outcome::MediaError { first_bad: errors.first_bad.unwrap_or(at) },
        };
    }
}
