//! Plans of stripes, phase by phase.

mod copy;
mod issue;

use super::Array;
use crate::array::ios::{IoState, Owner};
use crate::array::jobs::JobOwner;
use crate::array::lists::NIL;
use crate::array::member_set::MemberSet;
use crate::array::roles::Roles;
use crate::array::settings::Consistency;
use crate::array::stripe::{
    Band, Health, MOST_BANDS, Method, Phase, Piece, StripePlan, Task, piece_at, split,
};
use crate::bugs::Bug;
use crate::contract::{Event, IoOp, IoOutcome, JobId, JobResult, Outcome, Output};
use crate::geometry::Geometry;
use crate::policy::ParityRead;
use crate::units::Sector;

impl Array {
    /// Whether a chunk that `at..end` covers in the stripe of `at` cannot be read directly.
    #[inline]
    pub(in crate::array::planner) fn stripe_lacks_chunk(
        &self,
        at: Sector,
        end: u64,
        unreadable: MemberSet,
    ) -> bool {
        let Geometry::Parity(parity) = &self.setup.geometry else { return false };
        if unreadable.is_empty() && self.members.partial.is_empty() {
            return false;
        }
        let (stripe, piece) = piece_at(parity, at, end);
        let (start, chunk) = (parity.member_start(stripe).0, parity.chunk().0);
        let unreadable = self.members.unreadable_at(&self.setup, unreadable, start, chunk);
        let (first, last) = piece.chunks(parity.chunk().0);
        (first..=last).any(|k| unreadable.contains(parity.data_member(stripe, k)))
    }

    /// Makes the plans for what comes at the request's cursor; false when it must wait for a slot.
    pub(in crate::array::planner) fn plan_stripe_piece(&mut self, slot: u32) -> bool {
        if matches!(self.setup.geometry, Geometry::Raid3(_)) {
            return self.plan_raid3_piece(slot);
        }
        let request = self.requests[slot];
        let (stripe, piece) = piece_at(self.setup.parity(), Sector(request.cursor), request.end);
        let chunk = self.setup.parity().chunk().0;
        let slices = chunk.div_ceil(self.setup.plan_rows);
        for slice in u64::from(request.slice)..slices {
            let from = slice * self.setup.plan_rows;
            let rows = (from, (from + self.setup.plan_rows).min(chunk));
            let (bands, count) = split(piece, rows, chunk);
            if count == 0 {
                continue;
            }
            let rows = (bands[0].from, bands[count - 1].to);
            let plan = StripePlan {
                stripe,
                piece,
                rows,
                bands,
                band_count: count as u8,
                ..StripePlan::idle()
            };
            if !self.start_plan(slot, plan) {
                self.requests[slot].slice = slice as u32;
                return false;
            }
        }
        let request = &mut self.requests[slot];
        request.slice = 0;
        request.cursor += piece.end - piece.start;
        true
    }

    /// raid3: as many rows as a plan holds, all data members covered.
    fn plan_raid3_piece(&mut self, slot: u32) -> bool {
        let request = self.requests[slot];
        let data = u64::from(self.setup.data_chunks);
        let from = request.cursor / data;
        let to = (from + self.setup.plan_rows).min(request.end / data);
        let mut bands = [Band::default(); MOST_BANDS];
        bands[0] = Band { from, to, last: self.setup.data_chunks - 1, ..Band::default() };
        let piece = Piece { start: request.cursor, end: to * data };
        let plan =
            StripePlan { piece, rows: (from, to), bands, band_count: 1, ..StripePlan::idle() };
        if !self.start_plan(slot, plan) {
            return false;
        }
        self.requests[slot].cursor = to * data;
        true
    }

    /// Gives a plan its slot and locks its rows; false when there is no slot.
    fn start_plan(&mut self, slot: u32, mut plan: StripePlan) -> bool {
        let request = &self.requests[slot];
        plan.request = slot;
        plan.task = match request.op {
            IoOp::Read => Task::Read,
            IoOp::Write => Task::Write,
            _ => Task::Zero,
        };
        plan.payload = request.cursor - request.at;
        plan.avoid = self.requests.avoided(slot);
        if self.plans.available() == 0 {
            return false;
        }
        if self.setup.atom > 0 && plan.task == Task::Read {
            let complete = self.members.missing().is_empty() && plan.avoid.is_empty();
            plan.parity_read = self.policy.parity_read(complete, self.setup.data_chunks);
        }
        let Some(index) = self.plans.insert(plan) else { return false };
        self.requests[slot].pending += 1;
        let start = self.setup.member_start(plan.stripe);
        if self.setup.has_bug(Bug::SkipStripeLock)
            || self.locks.acquire(index, start + plan.rows.0, start + plan.rows.1)
        {
            self.begin_plan(index);
        }
        true
    }

    /// Starts a plan; its rows are locked.
    pub(in crate::array::planner) fn begin_plan(&mut self, plan: u32) {
        if self.plans[plan].cache == NIL {
            let place = self.cache.pin(&self.setup, &self.plans[plan]);
            self.plans[plan].cache = place;
        }
        self.plans[plan].phase = Phase::Read;
        self.enter_phase(plan);
    }

    /// Ends a plan for which too much is lost, or which may not write any more.
    fn give_up_plan(&mut self, plan: u32) {
        let lost = self.members.is_lost(&self.setup);
        let state = self.plans[plan];
        let start = self.requests[state.request].at + state.payload;
        let first_bad = state.first_bad.unwrap_or(Sector(start));
        if state.task == Task::Read && self.setup.has_bug(Bug::SalvageGuesses) {
            return self.end_plan(plan);
        }
        let refused = self.members.stopped && state.task != Task::Read;
        let from = self.setup.member_start(state.stripe) + state.rows.0;
        let end = from + state.rows.1 - state.rows.0;
        self.plans[plan].outcome = match lost || refused {
            true => self.refused_outcome(),
            false if !self.is_parity_consistent(from, end) => Outcome::Inconsistent,
            false => Outcome::MediaError { first_bad },
        };
        self.end_plan(plan);
    }

    /// Ends a plan of which nothing was written.
    pub(in crate::array::planner) fn refuse_plan(&mut self, plan: u32, outcome: Outcome) {
        self.plans[plan].outcome = outcome;
        self.end_plan(plan);
    }

    /// The rows of every member that a plan works on.
    pub(in crate::array::planner) fn plan_range(&self, plan: u32) -> (u64, u64) {
        let state = &self.plans[plan];
        let start = self.setup.member_start(state.stripe);
        (start + state.rows.0, start + state.rows.1)
    }

    /// Chooses how each band is done; false when it cannot be.
    fn choose_methods(&mut self, plan: u32) -> bool {
        let state = self.plans[plan];
        let (start, rows) = (self.setup.member_start(state.stripe), state.rows);
        let failed = self.members.failed;
        let unreadable = self.members.unreadable_at(
            &self.setup,
            failed.union(state.avoid),
            start + rows.0,
            rows.1 - rows.0,
        );
        // Data on members out of service, and no parity for them, would be written nowhere.
        let writes_on = self.setup.has_bug(Bug::WriteAfterFailure);
        if state.task != Task::Read
            && (self.members.stopped || self.members.is_lost(&self.setup))
            && !writes_on
        {
            return false;
        }
        let trusted = self.is_parity_trusted(start + rows.0, start + rows.1, unreadable);
        // What the policy skips is as good as lost, unless something really is.
        let skipped = match state.parity_read {
            ParityRead::Skip(k) if unreadable.is_empty() => Some(k),
            _ => None,
        };
        let stale = self.setup.has_bug(Bug::RecoverFromStaleParity);
        let mut health = Health {
            data: self.setup.data_chunks,
            live: self.setup.parities_without(state.stripe, failed),
            readable: match trusted {
                true if stale => self.setup.parities_without(state.stripe, state.avoid),
                true => self.setup.parities_without(state.stripe, unreadable),
                false => 0,
            },
            tie: self.setup.settings.tie,
            cached: Roles::NONE,
            unreadable: |k| {
                !unreadable.is_empty()
                    && unreadable.contains(self.setup.role_member(state.stripe, k))
                    || skipped == Some(k)
            },
        };
        let verify = state.parity_read == ParityRead::Verify && unreadable.is_empty();
        let mut bands = state.bands;
        for band in &mut bands[..usize::from(state.band_count)] {
            if state.cache != NIL {
                health.cached = self.cache.cached_roles(&self.setup, &state, band);
            }
            let chosen = match state.task {
                Task::Read if verify => {
                    band.method = Method::Verify;
                    true
                }
                Task::Read => health.choose_read(band),
                Task::Write => health.choose_write(band, false),
                Task::Zero => health.choose_write(band, true),
            };
            if !chosen {
                return false;
            }
        }
        self.plans[plan].bands = bands;
        true
    }

    fn enter_phase(&mut self, plan: u32) {
        if !self.starved.plans.is_empty() || !self.issue_phase(plan) {
            self.starved.plans.push_back(plan);
        }
    }

    /// Sends out a phase's I/O or jobs, going through phases that have none; false when it must
    /// wait for room.
    pub(in crate::array::planner) fn issue_phase(&mut self, plan: u32) -> bool {
        loop {
            if !self.has_room_for(plan) {
                return false;
            }
            let phase = self.plans[plan].phase;
            if !self.members.failed.is_empty() {
                self.drop_parities(plan);
            }
            match phase {
                // Chosen when the reads go out: members may have failed while it waited.
                Phase::Read if !self.choose_methods(plan) => {
                    self.give_up_plan(plan);
                    return true;
                }
                Phase::Read => self.issue_reads(plan),
                Phase::Recover => self.issue_recoveries(plan),
                Phase::Prepare => self.issue_preparation(plan),
                Phase::Compute => self.issue_parity(plan),
                Phase::Log if self.members.stopped && self.members.is_lost(&self.setup) => {
                    self.plans[plan].outcome = Outcome::ArrayFailed;
                    self.end_plan(plan);
                    return true;
                }
                Phase::Log => {
                    if !self.admit_write(plan) || !self.issue_log(plan) {
                        return true;
                    }
                }
                Phase::Write => self.issue_writes(plan),
            }
            if self.plans[plan].pending > 0 {
                return true;
            }
            if !self.next_phase(plan) {
                self.end_plan(plan);
                return true;
            }
        }
    }

    /// Parities that went out of service while the plan was under way are not made any more, should
    /// their members come back meanwhile.
    fn drop_parities(&mut self, plan: u32) {
        let live = self.setup.parities_without(self.plans[plan].stripe, self.members.failed);
        self.plans[plan].bands.iter_mut().for_each(|band| band.live &= live);
    }

    /// Moves on to the next phase; false after the last.
    fn next_phase(&mut self, plan: u32) -> bool {
        let prepares = matches!(
            self.setup.settings.consistency,
            Consistency::PartialParity { .. } | Consistency::Journal { .. }
        );
        let late = self.setup.has_bug(Bug::PplAfterData) && self.log.is_partial()
            || self.setup.has_bug(Bug::JournalAfterData) && self.is_journalled();
        let state = &mut self.plans[plan];
        state.phase = match state.phase {
            Phase::Read => Phase::Recover,
            // A read computes nothing more, unless it is to agree with its parity.
            Phase::Recover if prepares && state.task != Task::Read => Phase::Prepare,
            Phase::Recover | Phase::Prepare => Phase::Compute,
            Phase::Compute if state.task != Task::Read && late => Phase::Write,
            Phase::Compute if state.task != Task::Read => Phase::Log,
            Phase::Log if !late => Phase::Write,
            Phase::Write if late => Phase::Log,
            _ => return false,
        };
        true
    }

    /// One I/O of a plan has ended.
    pub(in crate::array::planner) fn plan_io_ended(
        &mut self,
        plan: u32,
        io: &IoState,
        outcome: IoOutcome,
    ) {
        self.plans[plan].pending -= 1;
        if outcome == IoOutcome::Ok {
            if self.members.may_be_mended() && !self.mended_by_write(io) {
                self.plan_stays_bad(plan, io);
            }
        } else if !self.setup.is_member(io.member) {
            // A drive that was replaced while it was read: its place is read again.
            if self.plans[plan].phase == Phase::Read {
                self.plans[plan].again = true;
            }
            self.fail_device(io.member);
        } else {
            let reading = self.plans[plan].phase == Phase::Read;
            if !reading || outcome == IoOutcome::Gone {
                self.fail_member(io.member);
            }
            if reading {
                self.read_failed(io, outcome);
                let bad = self.array_sector(io, outcome);
                let state = &mut self.plans[plan];
                state.avoid.insert(io.member);
                state.first_bad = state.first_bad.or(bad);
                state.again = true;
            } else if self.members.is_lost(&self.setup) {
                self.plans[plan].outcome = Outcome::ArrayFailed;
            }
        }
        if self.plans[plan].pending == 0 {
            self.phase_ended(plan);
        }
    }

    /// What was written is listed as bad all the same: it is not there, unless the others have it.
    #[cold]
    fn plan_stays_bad(&mut self, plan: u32, io: &IoState) {
        let len = u64::from(io.len);
        let lacking = self.members.unreadable_at(&self.setup, self.members.failed, io.at.0, len);
        if !self.setup.is_member(io.member) {
            // Its member may be the last that has it, once that is exchanged.
            self.fail_device(io.member);
        } else if self.setup.is_lost_without(lacking) {
            let state = &self.plans[plan];
            let start = Sector(self.requests[state.request].at + state.payload);
            let first_bad = self.array_sector(io, IoOutcome::MediaError { first_bad: io.at });
            let first_bad = first_bad.unwrap_or(start);
            self.plans[plan].outcome = Outcome::MediaError { first_bad };
        }
    }

    /// Goes on with a plan whose writes may go out now.
    pub(in crate::array::planner) fn plan_admitted(&mut self, plan: u32) {
        self.enter_phase(plan);
    }

    /// One job has ended.
    pub(in crate::array::planner) fn computed(&mut self, job: JobId, result: JobResult) {
        let Some(owner) = self.jobs.end(job, &mut self.lists) else { return };
        match owner {
            JobOwner::Plan(plan) => self.plan_computed(plan, result),
            JobOwner::Window(window) => self.window_computed(window, result),
            JobOwner::Log => self.replay_computed(result),
        }
        if self.starved.is_any() {
            self.resume();
        }
    }

    fn plan_computed(&mut self, plan: u32, result: JobResult) {
        let state = &mut self.plans[plan];
        state.pending -= 1;
        match result {
            JobResult::Done | JobResult::Equal => {}
            JobResult::Differs { .. } => {
                let start = self.requests[state.request].at + state.payload;
                state.outcome = Outcome::MediaError { first_bad: Sector(start) };
            }
            _ => state.outcome = Outcome::ComputeFailed,
        }
        if state.pending == 0 {
            self.phase_ended(plan);
        }
    }

    fn phase_ended(&mut self, plan: u32) {
        let logs = self.plans[plan].phase == Phase::Log;
        let again = logs && self.log.must_log_again(self.lacks_parity(plan));
        if logs {
            self.plan_logged(plan);
        }
        let state = &mut self.plans[plan];
        let well = state.outcome == Outcome::Done;
        if state.again {
            state.again = false;
            self.begin_plan(plan);
        } else if well && (again || self.next_phase(plan)) {
            self.enter_phase(plan);
        } else {
            self.end_plan(plan);
        }
    }

    fn end_plan(&mut self, plan: u32) {
        let state = self.plans[plan];
        // A read tells of its recovery when it is answered; a write's is told here.
        if state.outcome == Outcome::Done && state.task != Task::Read {
            for member in state.avoid.iter() {
                self.outputs.push_back(Output::Event(Event::ReadRecovered(member)));
            }
        }
        if state.task != Task::Read {
            self.log_ended(plan);
            self.written(Owner::Plan(plan));
        }
        self.requests[state.request].pending -= 1;
        if state.outcome != Outcome::Done || !state.avoid.is_empty() {
            let errors = self.requests.error_state(state.request);
            if state.task == Task::Read {
                errors.avoid = errors.avoid.union(state.avoid);
            }
            if errors.outcome == Outcome::Done {
                errors.outcome = state.outcome;
            }
        }
        self.cache.unpin(&self.setup, self.members.failed, &state, state.outcome == Outcome::Done);
        self.plans.remove(plan);
        let granted = self.locks.release(plan);
        self.settle(state.request);
        // Last: what begins now may be of the same request, and may end at once, and the request with it.
        if granted {
            self.start_granted();
        }
    }

    /// Whether a plan makes less parity than there is in full service.
    pub(in crate::array::planner) fn lacks_parity(&self, plan: u32) -> bool {
        let state = &self.plans[plan];
        let live = self.setup.parities_without(state.stripe, self.members.failed);
        let lacks = |band: &Band| (live & band.live).count_ones() < u32::from(self.setup.parities);
        state.bands().iter().any(lacks)
    }

    /// Whether what a plan wrote is durable.
    pub(in crate::array::planner) fn is_plan_durable(&self, plan: u32) -> bool {
        let state = &self.plans[plan];
        // Zeroes are no writes: members need not make them durable.
        state.task == Task::Write && self.requests[state.request].fua
    }
}
