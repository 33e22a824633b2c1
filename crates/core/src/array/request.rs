//! Requests: taking them in, going on with those that wait, answering them.

use super::Array;
use super::issue::Owner;
use super::lists::ListBuilder;
use super::member::MemberSet;
use crate::bugs::Bug;
use crate::contract::{Event, IoOp, Outcome, Output, Request, RequestId, Scratch, Segment};
use crate::geometry::Geometry;
use crate::units::Sector;

/// The longest request: 512 GiB.
pub(super) const MOST_SECTORS: u64 = 1 << 30;

/// A request between acceptance and reply.
#[derive(Clone, Copy, Debug)]
pub(super) struct RequestState {
    pub(super) id: RequestId,
    pub(super) op: IoOp,
    pub(super) fua: bool,
    pub(super) at: u64,
    pub(super) end: u64,
    /// The next sector to plan.
    pub(super) cursor: u64,
    /// Parity levels: the next slice of rows of the stripe at the cursor.
    pub(super) slice: u32,
    /// Member I/Os and plans not yet ended.
    pub(super) pending: u32,
    pub(super) planned: bool,
    /// Something went wrong: see the slot's [`Trouble`].
    pub(super) trouble: bool,
    segments: u32,
    /// The segment found last and where in the request it starts.
    hint: (u32, u32),
    #[cfg(feature = "seeded-bugs")]
    answered: bool,
}

impl RequestState {
    pub(super) const fn idle() -> Self {
        Self {
            id: RequestId(0),
            op: IoOp::Flush,
            fua: false,
            at: 0,
            end: 0,
            cursor: 0,
            slice: 0,
            pending: 0,
            planned: false,
            trouble: false,
            segments: 0,
            hint: (0, 0),
            #[cfg(feature = "seeded-bugs")]
            answered: false,
        }
    }

    /// Makes what another request asks for part of this one, behind it.
    pub(super) const fn take_over(&mut self, other: &Self) {
        self.end = other.end;
        self.segments += other.segments;
        self.fua |= other.fua;
    }

    pub(super) const fn segment_count(&self) -> usize {
        self.segments as usize
    }

    pub(super) fn add_to_key(&self, add: &mut dyn FnMut(u64)) {
        add(self.op as u64);
        add(self.at);
        add(self.end);
        add(self.cursor);
        add(u64::from(self.slice));
        add(u64::from(self.pending));
        add(u64::from(self.planned) | u64::from(self.trouble) << 1 | u64::from(self.fua) << 2);
    }
}

/// What went wrong with a request; kept apart, since of most requests there is nothing to keep.
#[derive(Clone, Copy, Debug)]
pub(super) struct Trouble {
    pub(super) outcome: Outcome,
    /// A member I/O failed: plan the read again, without the members in `avoid`.
    pub(super) again: bool,
    pub(super) avoid: MemberSet,
    /// The first array sector that a member could not read.
    pub(super) first_bad: Option<Sector>,
    /// A write lost a copy: see that each sector still has one before answering.
    pub(super) check_copies: bool,
    /// A read goes on block by block; from here, and in the end to there.
    blocks: Option<(u64, u64)>,
    /// Members whose errors were made good in earlier blocks.
    recovered: MemberSet,
}

impl Trouble {
    pub(super) const NONE: Self = Self {
        outcome: Outcome::Done,
        again: false,
        avoid: MemberSet::NONE,
        first_bad: None,
        check_copies: false,
        blocks: None,
        recovered: MemberSet::NONE,
    };

    pub(super) fn add_to_key(&self, add: &mut dyn FnMut(u64)) {
        add(u64::from(self.outcome == Outcome::Done) | u64::from(self.again) << 1);
        let (from, to) = self.blocks.unwrap_or((u64::MAX, u64::MAX));
        add(from);
        add(to);
        add(self.avoid.bits() as u64);
        add((self.avoid.bits() >> 64) as u64);
    }
}

/// Whether overlapping requests of this kind go one after another on mirrored levels.
pub(super) const fn changes_data(op: IoOp) -> bool {
    matches!(op, IoOp::Write | IoOp::Discard | IoOp::WriteZeroes)
}

impl Array {
    #[inline]
    pub(super) fn accept(&mut self, request: &Request<'_>) {
        if let Some(outcome) = self.refusal(request) {
            self.outputs.push_back(Output::Reply { id: request.id, outcome });
            return;
        }
        let (mut at, mut end) = (request.at.0, request.at.0 + request.len.0);
        if request.op == IoOp::Discard {
            (at, end) = self.discarded(at, end);
        }
        let state = RequestState {
            id: request.id,
            op: request.op,
            fua: request.fua,
            at,
            end,
            cursor: at,
            segments: request.segments.len() as u32,
            ..RequestState::idle()
        };
        let Some(slot) = self.requests.insert(state) else {
            self.outputs.push_back(Output::Reply { id: request.id, outcome: Outcome::Busy });
            return;
        };
        let first = (slot * self.most_segments) as usize;
        // Most have one; a copy of any number is a call.
        match request.segments {
            [only] => self.user_segments[first] = *only,
            all => self.user_segments[first..first + all.len()].copy_from_slice(all),
        }
        if self.holding {
            self.held.push_back(slot);
        } else {
            self.start(slot);
        }
    }

    /// Why a request is answered at once: it asks for nothing, or for what cannot be.
    #[inline]
    fn refusal(&self, request: &Request<'_>) -> Option<Outcome> {
        match request.op {
            IoOp::Flush => {
                return (request.len.0 != 0 || !request.segments.is_empty())
                    .then_some(Outcome::BadSegments);
            }
            IoOp::Discard | IoOp::WriteZeroes => return self.refuse_range(request),
            IoOp::Read | IoOp::Write => {}
        }
        let (at, len) = (request.at.0, request.len.0);
        if at.checked_add(len).is_none_or(|end| end > self.capacity) {
            return Some(Outcome::OutOfRange);
        }
        if request.segments.len() > self.most_segments as usize || len > MOST_SECTORS {
            return Some(Outcome::BadSegments);
        }
        let mut total = 0;
        for segment in request.segments {
            if (segment.token.0 >= Scratch::FIRST && !self.nested) || segment.len == 0 {
                return Some(Outcome::BadSegments);
            }
            total += u64::from(segment.len);
        }
        if total != len {
            return Some(Outcome::BadSegments);
        }
        if self.is_misaligned(at, len) {
            return Some(Outcome::Misaligned);
        }
        (len == 0).then_some(Outcome::Done)
    }

    #[inline]
    fn is_misaligned(&self, at: u64, len: u64) -> bool {
        // A power of two but for raid3, where it is one times the number of data members: that too.
        (at | len) & u64::from(self.logical_block - 1) != 0
    }

    /// As [`Self::refusal`], for requests without payload.
    fn refuse_range(&self, request: &Request<'_>) -> Option<Outcome> {
        let (at, len) = (request.at.0, request.len.0);
        if at.checked_add(len).is_none_or(|end| end > self.capacity) {
            return Some(Outcome::OutOfRange);
        }
        if !request.segments.is_empty() || len > MOST_SECTORS {
            return Some(Outcome::BadSegments);
        }
        if self.is_misaligned(at, len) {
            return Some(Outcome::Misaligned);
        }
        let (from, to) = match request.op {
            IoOp::Discard => self.discarded(at, at + len),
            _ => (at, at + len),
        };
        (from >= to).then_some(Outcome::Done)
    }

    /// What of a range is discarded: on parity levels whole stripes only, so that no parity has to
    /// be computed for data that nobody wants; on others all of it.
    fn discarded(&self, at: u64, end: u64) -> (u64, u64) {
        match &self.geometry {
            Geometry::Parity(parity) => {
                let stripe = parity.stripe_sectors();
                (at.next_multiple_of(stripe), end / stripe * stripe)
            }
            _ => (at, end),
        }
    }

    pub(super) fn unplug(&mut self) {
        self.plugged = false;
        self.release_held();
    }

    /// Starts what was held back, unless something still holds it.
    pub(super) fn release_held(&mut self) {
        self.holding = self.plugged || self.is_replaying();
        if self.holding {
            return;
        }
        self.gather_held();
        while let Some(slot) = self.held.pop_front() {
            self.start(slot);
        }
    }

    #[inline]
    fn start(&mut self, slot: u32) {
        let request = &self.requests[slot];
        if changes_data(request.op) {
            if self.stopped {
                self.refuse_change(slot);
                return;
            }
            // Parity levels lock rows of stripes, plan by plan.
            if self.copies > 1 {
                let (at, end) = (request.at, request.end);
                let locks = !self.has_bug(Bug::SkipMirrorLock);
                if locks && !self.locks.acquire(slot, at, end) {
                    return;
                }
                if !self.permit_request(slot) {
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
        self.requests.remove(slot);
        self.stop_when_quiet(None);
    }

    /// Ends a request of a mirrored level of which nothing has gone out.
    pub(super) fn refuse_request(&mut self, slot: u32, outcome: Outcome) {
        self.trouble(slot).outcome = outcome;
        let request = &mut self.requests[slot];
        request.cursor = request.end;
        request.planned = true;
        self.settle(slot);
    }

    /// Goes on with a request whose change may go out now.
    pub(super) fn request_permitted(&mut self, slot: u32) {
        self.advance(slot);
    }

    /// Goes on with owners whose wait for a range is over.
    #[inline]
    pub(super) fn start_granted(&mut self) {
        while let Some(owner) = self.locks.next_granted() {
            if owner >= self.unit_owner(0) {
                self.begin_unit(owner - self.unit_owner(0));
            } else if self.parities > 0 {
                self.begin_plan(owner);
            } else if self.permit_request(owner) {
                self.advance(owner);
            }
        }
    }

    /// Plans as much of a request as there is room for.
    #[inline(always)]
    pub(super) fn advance(&mut self, slot: u32) {
        if !self.starved_requests.is_empty() || !self.plan_request(slot) {
            self.starved_requests.push_back(slot);
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

    /// Whether something waits for room.
    #[inline]
    pub(super) fn is_starved(&self) -> bool {
        !self.starved_plans.is_empty()
            || !self.starved_requests.is_empty()
            || !self.starved_rounds.is_empty()
            || !self.starved_units.is_empty()
    }

    /// Goes on with what waited for room, in order.
    #[inline]
    pub(super) fn resume(&mut self) {
        while let Some(round) = self.starved_rounds.pop_front() {
            if !self.issue_round(round) {
                self.starved_rounds.push_front(round);
                return;
            }
        }
        while let Some(unit) = self.starved_units.pop_front() {
            if !self.issue_unit(unit) {
                self.starved_units.push_front(unit);
                return;
            }
        }
        while let Some(plan) = self.starved_plans.pop_front() {
            if !self.issue_phase(plan) {
                self.starved_plans.push_front(plan);
                return;
            }
        }
        while let Some(slot) = self.starved_requests.pop_front() {
            if !self.plan_request(slot) {
                self.starved_requests.push_front(slot);
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
        if !self.requests[slot].trouble {
            self.reply(slot, Outcome::Done);
            return;
        }
        self.settle_trouble(slot);
    }

    /// The same for a request with which something went wrong.
    #[cold]
    fn settle_trouble(&mut self, slot: u32) {
        let Trouble { mut outcome, again, avoid, check_copies, .. } = self.troubles[slot as usize];
        if again && outcome == Outcome::Done {
            let trouble = &mut self.troubles[slot as usize];
            trouble.again = false;
            let request = &mut self.requests[slot];
            request.planned = false;
            request.cursor = trouble.blocks.map_or(request.at, |(from, _)| from);
            request.slice = 0;
            self.advance(slot);
            return;
        }
        if self.requests[slot].op == IoOp::Read && self.read_next_block(slot) {
            return;
        }
        let recovered = self.troubles[slot as usize].recovered;
        let request = &self.requests[slot];
        if check_copies && outcome == Outcome::Done && self.lacks_copy(request) {
            outcome = Outcome::ArrayFailed;
        }
        if outcome == Outcome::Done && request.op == IoOp::Read {
            for member in avoid.union(recovered).iter() {
                self.outputs.push_back(Output::Event(Event::ReadRecovered(member)));
            }
        }
        self.reply(slot, outcome);
        self.answer_joined(slot, outcome);
    }

    /// A read that cannot be had as a whole may be had block by block, as not all of it need be bad
    /// on the same members; and if not, the first block that is lost is known. False when there is
    /// nothing more to read.
    fn read_next_block(&mut self, slot: u32) -> bool {
        let block = u64::from(self.logical_block);
        let (request, trouble) = (&mut self.requests[slot], &mut self.troubles[slot as usize]);
        let (next, last) = match (trouble.outcome, trouble.blocks) {
            (Outcome::Done, Some((_, last))) if request.end < last => (request.end, last),
            (Outcome::MediaError { .. } | Outcome::Inconsistent, None)
                if request.end - request.at > block =>
            {
                (request.at, request.end)
            }
            _ => return false,
        };
        let known = match trouble.blocks {
            Some(_) => trouble.recovered.union(trouble.avoid),
            None => MemberSet::NONE,
        };
        *trouble = Trouble { blocks: Some((next, last)), recovered: known, ..Trouble::NONE };
        request.cursor = next;
        request.end = (next + block).min(last);
        request.planned = false;
        request.slice = 0;
        self.advance(slot);
        true
    }

    /// What is kept of a request's troubles, to add to; from now on it has some.
    pub(super) fn trouble(&mut self, slot: u32) -> &mut Trouble {
        let trouble = &mut self.troubles[slot as usize];
        if !std::mem::replace(&mut self.requests[slot].trouble, true) {
            *trouble = Trouble::NONE;
        }
        trouble
    }

    /// The members a request does not read.
    #[inline]
    pub(super) fn avoided(&self, slot: u32) -> MemberSet {
        match self.requests[slot].trouble {
            true => self.troubles[slot as usize].avoid,
            false => MemberSet::NONE,
        }
    }

    #[inline(always)]
    fn reply(&mut self, slot: u32, outcome: Outcome) {
        let RequestState { id, op, .. } = self.requests[slot];
        if !self.was_answered(slot) {
            self.outputs.push_back(Output::Reply { id, outcome });
        }
        let locks = self.copies > 1 && changes_data(op);
        if locks {
            self.written(Owner::Request(slot));
        }
        self.requests.remove(slot);
        if locks && self.locks.release(slot) {
            self.start_granted();
        }
    }

    /// Whether a planted bug has answered a request before its time.
    #[inline(always)]
    fn was_answered(&self, _slot: u32) -> bool {
        #[cfg(feature = "seeded-bugs")]
        return self.requests[_slot].answered;
        #[cfg(not(feature = "seeded-bugs"))]
        false
    }

    /// Answers a request when the first of its I/Os has ended well.
    #[cfg(feature = "seeded-bugs")]
    pub(super) fn answer_early(&mut self, slot: u32) {
        let RequestState { id, op, planned, trouble, answered, .. } = self.requests[slot];
        let early = match op {
            IoOp::Flush => self.has_bug(Bug::AckFlushEarly),
            IoOp::Read => false,
            _ => self.copies > 1 && self.has_bug(Bug::AckWriteEarly),
        };
        if early && planned && !trouble && !answered {
            self.requests[slot].answered = true;
            self.outputs.push_back(Output::Reply { id, outcome: Outcome::Done });
        }
    }

    fn lacks_copy(&self, request: &RequestState) -> bool {
        let mut at = request.at;
        while at < request.end {
            let sector = Sector(at);
            let lost = (0..self.copies)
                .all(|copy| self.failed.contains(self.geometry.place(sector, copy).member));
            if lost {
                return true;
            }
            at += self.geometry.run(sector).0;
        }
        false
    }

    /// Ends the planning of a request that cannot be carried out from `at` on.
    pub(super) fn give_up(&mut self, slot: u32, at: Sector) {
        let lost = self.is_lost(self.missing());
        let request = &mut self.requests[slot];
        request.cursor = request.end;
        let trouble = self.trouble(slot);
        trouble.outcome = match lost {
            true => Outcome::ArrayFailed,
            false => Outcome::MediaError { first_bad: trouble.first_bad.unwrap_or(at) },
        };
    }

    /// The whole payload of a request as a list.
    #[inline(always)]
    pub(super) fn whole_payload(&mut self, slot: u32) -> ListBuilder {
        let request = &self.requests[slot];
        let mut list = ListBuilder::new();
        let first = (slot * self.most_segments) as usize;
        let segment = self.user_segments[first];
        // A read that goes on block by block is shorter than its payload.
        if request.segments == 1 && u64::from(segment.len) == request.end - request.at {
            list.push(&mut self.lists, segment);
        } else {
            let len = request.end - request.at;
            self.carve(slot, 0, len, &mut list);
        }
        list
    }

    /// Adds `len` sectors of the request's payload from `offset` on to a list.
    #[inline]
    pub(super) fn carve(&mut self, slot: u32, offset: u64, len: u64, list: &mut ListBuilder) {
        let first = (slot * self.most_segments) as usize;
        let request = &mut self.requests[slot];
        let segments = &self.user_segments[first..first + request.segments as usize];
        let (mut offset, mut left) = (offset as u32, len as u32);
        let (mut index, mut start) = request.hint;
        if start > offset {
            (index, start) = (0, 0);
        }
        while left > 0 {
            let segment = segments[index as usize];
            if start + segment.len <= offset {
                start += segment.len;
                index += 1;
                continue;
            }
            let skip = offset - start;
            let take = (segment.len - skip).min(left);
            let piece = Segment { token: segment.token, offset: segment.offset + skip, len: take };
            list.push(&mut self.lists, piece);
            offset += take;
            left -= take;
        }
        request.hint = (index, start);
    }
}
