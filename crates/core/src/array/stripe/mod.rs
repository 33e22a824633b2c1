//! Work on a stripe of a level with parity: writes, and reads of lost chunks.
//!
//! Fault model: as [`super`]; a crash between the writes of a stripe leaves parity inconsistent with
//! the data (the write hole), which a log closes (`array::log`).
//! Why it is safe otherwise: the rows of a plan are locked from before its first read to after its
//! last write, so nothing changes between reading and the parity computed from it; data and parity are
//! written only when every read and job before went well; an error while reading leads to a new plan
//! without the member that erred, never to a guess.
//! Tests: `tests/model.rs::parity_levels_survive_every_set_of_members_they_promise`.
//!
//! A plan goes through up to six phases: read, recover what is lost, prepare what the log needs,
//! compute parity, log, write. How each band is done is chosen when the reads go out. All I/O of a
//! phase is sent out at once, one range a member where rows touch.
//!
//! raid3 is one stripe as tall as its members, in which every request covers all data members: its
//! payload goes to them in turn, an atom each.

mod bands;
mod cache;
mod issue;

use super::issue::{IoState, Owner};
use super::lists::NIL;
use super::member::MemberSet;
use super::{Array, Consistency, Output};
use crate::bugs::Bug;
use crate::contract::{Event, IoOp, IoOutcome, JobId, JobResult, Kernel, Outcome};
use crate::geometry::{Geometry, Parity};
use crate::policy::ParityRead;
use crate::units::{MemberIndex, Sector};
pub(super) use bands::{Band, MOST_BANDS};
use bands::{Health, Method, Piece};
pub(super) use cache::Cache;
pub(super) use issue::Memory;

/// Jobs a plan has in flight at most: one a band.
pub(super) const JOBS_PER_PLAN: u32 = MOST_BANDS as u32;

/// What a plan does with its piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Task {
    Read,
    Write,
    /// Write zeroes, without payload.
    Zero,
}

/// A piece of a stripe being read or written.
#[derive(Clone, Copy, Debug)]
pub(super) struct Plan {
    request: u32,
    pub(super) task: Task,
    pub(super) stripe: u64,
    piece: Piece,
    /// The rows this plan works on.
    rows: (u64, u64),
    /// Where in the request's payload the piece starts.
    payload: u64,
    phase: Phase,
    bands: [Band; MOST_BANDS],
    band_count: u8,
    /// Member I/Os or jobs of this phase not yet ended.
    pub(super) pending: u32,
    /// Members whose reads failed.
    avoid: MemberSet,
    /// raid3: how the policy wants it read.
    parity_read: ParityRead,
    first_bad: Option<Sector>,
    /// Its place in the stripe cache, or NIL.
    cache: u32,
    /// A read failed: plan again when the phase has ended.
    again: bool,
    outcome: Outcome,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Phase {
    Read,
    Recover,
    /// What the log needs is computed.
    Prepare,
    Compute,
    /// What is about to be written is recorded, where the consistency mode asks for it.
    Log,
    Write,
}

impl Plan {
    pub(super) fn idle() -> Self {
        Self {
            request: 0,
            task: Task::Read,
            stripe: 0,
            piece: Piece { start: 0, end: 0 },
            rows: (0, 0),
            payload: 0,
            phase: Phase::Read,
            bands: [Band::default(); MOST_BANDS],
            band_count: 0,
            pending: 0,
            avoid: MemberSet::NONE,
            parity_read: ParityRead::Plain,
            first_bad: None,
            cache: NIL,
            again: false,
            outcome: Outcome::Done,
        }
    }

    pub(super) fn bands(&self) -> &[Band] {
        &self.bands[..usize::from(self.band_count)]
    }

    pub(super) fn add_to_key(&self, add: &mut dyn FnMut(u64)) {
        add(u64::from(self.request) | (self.task as u64) << 32);
        add(self.stripe);
        add(self.piece.start);
        add(self.piece.end);
        add(self.rows.0);
        add(self.phase as u64 | u64::from(self.again) << 8 | u64::from(self.pending) << 16);
        add(self.avoid.bits() as u64);
        add((self.avoid.bits() >> 64) as u64);
        for band in self.bands() {
            add(band.method as u64 | u64::from(band.live) << 8);
            add(band.recovery.lost().iter().fold(0, |sum, k| (sum << 16) | (u64::from(*k) + 1)));
        }
    }
}

/// A piece of parity computing in flight.
#[derive(Clone, Copy, Debug)]
pub(super) struct JobState {
    pub(super) owner: JobOwner,
    pub(super) kernel: Kernel,
    pub(super) len: u32,
    pub(super) sources: u16,
    pub(super) targets: u16,
}

impl JobState {
    pub(super) const fn idle() -> Self {
        let owner = JobOwner::Plan(0);
        Self { owner, kernel: Kernel::Xor, len: 0, sources: 0, targets: 0 }
    }
}

/// Whom a job belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum JobOwner {
    Plan(u32),
    /// A unit of background work.
    Unit(u32),
    /// The replay of a log.
    Log,
}

impl JobOwner {
    pub(super) const fn number(self) -> u64 {
        match self {
            Self::Plan(slot) => slot as u64,
            Self::Unit(slot) => slot as u64 | 1 << 32,
            Self::Log => 2 << 32,
        }
    }
}

impl Array {
    /// The parity geometry; only called for levels that rotate parity over stripes, and raid4.
    fn parity(&self) -> &Parity {
        match &self.geometry {
            Geometry::Parity(parity) => parity,
            _ => unreachable!("stripes belong to parity levels"),
        }
    }

    /// Whether a chunk that `at..end` covers in the stripe of `at` cannot be read directly.
    #[inline]
    pub(super) fn stripe_lacks_chunk(&self, at: Sector, end: u64, unreadable: MemberSet) -> bool {
        let Geometry::Parity(parity) = &self.geometry else { return false };
        if unreadable.is_empty() && self.partial.is_empty() {
            return false;
        }
        let (stripe, piece) = piece_at(parity, at, end);
        let (start, chunk) = (parity.member_start(stripe).0, parity.chunk().0);
        let unreadable = self.unreadable_at(unreadable, start, chunk);
        let (first, last) = piece.chunks(parity.chunk().0);
        (first..=last).any(|k| unreadable.contains(parity.data_member(stripe, k)))
    }

    /// Makes the plans for what comes at the request's cursor; false when it must wait for a slot.
    pub(super) fn plan_stripe_piece(&mut self, slot: u32) -> bool {
        if matches!(self.geometry, Geometry::Raid3(_)) {
            return self.plan_raid3_piece(slot);
        }
        let request = self.requests[slot];
        let (stripe, piece) = piece_at(self.parity(), Sector(request.cursor), request.end);
        let chunk = self.parity().chunk().0;
        let slices = chunk.div_ceil(self.plan_rows);
        for slice in u64::from(request.slice)..slices {
            let from = slice * self.plan_rows;
            let rows = (from, (from + self.plan_rows).min(chunk));
            let (bands, count) = bands::split(piece, rows, chunk);
            if count == 0 {
                continue;
            }
            let rows = (bands[0].from, bands[count - 1].to);
            let plan = Plan { stripe, piece, rows, bands, band_count: count as u8, ..Plan::idle() };
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
        let data = u64::from(self.data_chunks);
        let from = request.cursor / data;
        let to = (from + self.plan_rows).min(request.end / data);
        let mut bands = [Band::default(); MOST_BANDS];
        bands[0] = Band { from, to, last: self.data_chunks - 1, ..Band::default() };
        let piece = Piece { start: request.cursor, end: to * data };
        let plan = Plan { piece, rows: (from, to), bands, band_count: 1, ..Plan::idle() };
        if !self.start_plan(slot, plan) {
            return false;
        }
        self.requests[slot].cursor = to * data;
        true
    }

    /// Gives a plan its slot and locks its rows; false when there is no slot.
    fn start_plan(&mut self, slot: u32, mut plan: Plan) -> bool {
        let request = &self.requests[slot];
        plan.request = slot;
        plan.task = match request.op {
            IoOp::Read => Task::Read,
            IoOp::Write => Task::Write,
            _ => Task::Zero,
        };
        plan.payload = request.cursor - request.at;
        plan.avoid = self.avoided(slot);
        if self.plans.available() == 0 {
            return false;
        }
        if self.atom > 0 && plan.task == Task::Read {
            let complete = self.missing().is_empty() && plan.avoid.is_empty();
            plan.parity_read = self.policy.parity_read(complete, self.data_chunks);
        }
        let Some(index) = self.plans.insert(plan) else { return false };
        self.requests[slot].pending += 1;
        let start = self.member_start(plan.stripe);
        if self.has_bug(Bug::SkipStripeLock)
            || self.locks.acquire(index, start + plan.rows.0, start + plan.rows.1)
        {
            self.begin_plan(index);
        }
        true
    }

    /// Starts a plan; its rows are locked.
    pub(super) fn begin_plan(&mut self, plan: u32) {
        if self.plans[plan].cache == NIL {
            self.pin_cache(plan);
        }
        self.plans[plan].phase = Phase::Read;
        self.enter_phase(plan);
    }

    /// Ends a plan for which too much is lost, or which may not write any more.
    fn give_up_plan(&mut self, plan: u32) {
        let lost = self.is_lost(self.missing());
        let state = self.plans[plan];
        let start = self.requests[state.request].at + state.payload;
        let first_bad = state.first_bad.unwrap_or(Sector(start));
        if state.task == Task::Read && self.has_bug(Bug::SalvageGuesses) {
            return self.end_plan(plan);
        }
        let refused = self.stopped && state.task != Task::Read;
        let from = self.member_start(state.stripe) + state.rows.0;
        let end = from + state.rows.1 - state.rows.0;
        self.plans[plan].outcome = match lost || refused {
            true => self.refused_outcome(),
            false if !self.is_parity_consistent(from, end) => Outcome::Inconsistent,
            false => Outcome::MediaError { first_bad },
        };
        self.end_plan(plan);
    }

    /// Ends a plan of which nothing was written.
    pub(super) fn refuse_plan(&mut self, plan: u32, outcome: Outcome) {
        self.plans[plan].outcome = outcome;
        self.end_plan(plan);
    }

    /// The rows of every member that a plan works on.
    pub(super) fn plan_range(&self, plan: u32) -> (u64, u64) {
        let state = &self.plans[plan];
        let start = self.member_start(state.stripe);
        (start + state.rows.0, start + state.rows.1)
    }

    /// Chooses how each band is done; false when it cannot be.
    fn choose_methods(&mut self, plan: u32) -> bool {
        let state = self.plans[plan];
        let (start, rows) = (self.member_start(state.stripe), state.rows);
        let failed = self.failed;
        let unreadable =
            self.unreadable_at(failed.union(state.avoid), start + rows.0, rows.1 - rows.0);
        // Data on members out of service, and no parity for them, would be written nowhere.
        let writes_on = self.has_bug(Bug::WriteAfterFailure);
        if state.task != Task::Read && (self.stopped || self.is_lost(self.missing())) && !writes_on
        {
            return false;
        }
        let trusted = self.is_parity_trusted(start + rows.0, start + rows.1, unreadable);
        // What the policy skips is as good as lost, unless something really is.
        let skipped = match state.parity_read {
            ParityRead::Skip(k) if unreadable.is_empty() => Some(k),
            _ => None,
        };
        let stale = self.has_bug(Bug::RecoverFromStaleParity);
        let mut health = Health {
            data: self.data_chunks,
            live: self.parities_without(state.stripe, failed),
            readable: match trusted {
                true if stale => self.parities_without(state.stripe, state.avoid),
                true => self.parities_without(state.stripe, unreadable),
                false => 0,
            },
            tie: self.settings.tie,
            cached: 0,
            unreadable: |k| {
                unreadable.contains(self.role_member(state.stripe, k)) || skipped == Some(k)
            },
        };
        let verify = state.parity_read == ParityRead::Verify && unreadable.is_empty();
        let mut bands = state.bands;
        for band in &mut bands[..usize::from(state.band_count)] {
            if state.cache != NIL {
                health.cached = self.cached_roles(&state, band);
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
        if !self.starved_plans.is_empty() || !self.issue_phase(plan) {
            self.starved_plans.push_back(plan);
        }
    }

    /// Sends out a phase's I/O or jobs, going through phases that have none; false when it must
    /// wait for room.
    pub(super) fn issue_phase(&mut self, plan: u32) -> bool {
        loop {
            if !self.has_room_for(plan) {
                return false;
            }
            let phase = self.plans[plan].phase;
            if !self.failed.is_empty() && phase > Phase::Recover {
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
                Phase::Log if self.stopped && self.is_lost(self.missing()) => {
                    self.plans[plan].outcome = Outcome::ArrayFailed;
                    self.end_plan(plan);
                    return true;
                }
                Phase::Log => {
                    if !self.permit_plan(plan) || !self.issue_log(plan) {
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
        let live = self.parities_without(self.plans[plan].stripe, self.failed);
        self.plans[plan].bands.iter_mut().for_each(|band| band.live &= live);
    }

    /// Moves on to the next phase; false after the last.
    fn next_phase(&mut self, plan: u32) -> bool {
        let prepares = matches!(
            self.settings.consistency,
            Consistency::PartialParity { .. } | Consistency::Journal { .. }
        );
        let late = self.has_bug(Bug::PplAfterData) && self.logs_partial_parity()
            || self.has_bug(Bug::JournalAfterData) && self.is_journalled();
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
    pub(super) fn plan_io_ended(&mut self, plan: u32, io: &IoState, outcome: IoOutcome) {
        self.plans[plan].pending -= 1;
        if outcome == IoOutcome::Ok {
            if !self.partial.is_empty() {
                self.mended_by_write(io);
            }
        } else if io.member.0 >= self.layout.members {
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
            } else if self.is_lost(self.missing()) {
                self.plans[plan].outcome = Outcome::ArrayFailed;
            }
        }
        if self.plans[plan].pending == 0 {
            self.phase_ended(plan);
        }
    }

    /// Goes on with a plan whose writes may go out now.
    pub(super) fn plan_permitted(&mut self, plan: u32) {
        self.enter_phase(plan);
    }

    /// One job has ended.
    pub(super) fn computed(&mut self, job: JobId, result: JobResult) {
        let Some(state) = self.jobs.take(job.slot, job.generation) else { return };
        let JobState { owner, sources, targets, .. } = state;
        let first = self.operand_range(job.slot).start;
        for index in first..first + usize::from(sources + targets) {
            self.lists.release(&self.operands[index]);
        }
        match owner {
            JobOwner::Plan(plan) => self.plan_computed(plan, result),
            JobOwner::Unit(unit) => self.unit_computed(unit, result),
            JobOwner::Log => self.replay_computed(result),
        }
        if self.is_starved() {
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
        let again = logs && self.must_log_again(plan);
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
            let trouble = self.trouble(state.request);
            if state.task == Task::Read {
                trouble.avoid = trouble.avoid.union(state.avoid);
            }
            if trouble.outcome == Outcome::Done {
                trouble.outcome = state.outcome;
            }
        }
        self.unpin_cache(&state, state.outcome == Outcome::Done);
        self.plans.remove(plan);
        let granted = self.locks.release(plan);
        self.settle(state.request);
        // Last: what begins now may be of the same request, and may end at once, and the request with it.
        if granted {
            self.start_granted();
        }
    }

    /// Whether a plan makes less parity than there is in full service.
    pub(super) fn lacks_parity(&self, plan: u32) -> bool {
        let state = &self.plans[plan];
        let live = self.parities_without(state.stripe, self.failed);
        let lacks = |band: &Band| (live & band.live).count_ones() < u32::from(self.parities);
        state.bands().iter().any(lacks)
    }

    /// Whether what a plan wrote is durable.
    pub(super) fn is_plan_durable(&self, plan: u32) -> bool {
        let state = &self.plans[plan];
        // Zeroes are no writes: members need not make them durable.
        state.task == Task::Write && self.requests[state.request].fua
    }

    /// The parities of a stripe that lie on none of the `missing` members, as a set.
    fn parities_without(&self, stripe: u64, missing: MemberSet) -> u8 {
        let there = (0..self.parities).filter(|parity| {
            !missing.contains(self.role_member(stripe, self.data_chunks + parity))
        });
        there.fold(0, |set, parity| set | 1 << parity)
    }

    /// Where a stripe starts on every member.
    pub(super) fn member_start(&self, stripe: u64) -> u64 {
        match &self.geometry {
            Geometry::Parity(parity) => parity.member_start(stripe).0,
            _ => 0,
        }
    }

    /// The member of role `role` in a stripe: data chunk k for k below the number of data chunks,
    /// then P, then Q.
    pub(super) fn role_member(&self, stripe: u64, role: u16) -> MemberIndex {
        match &self.geometry {
            Geometry::Parity(parity) if role < self.data_chunks => parity.data_member(stripe, role),
            Geometry::Parity(parity) if role == self.data_chunks => parity.p_member(stripe),
            Geometry::Parity(parity) => parity.q_member(stripe).unwrap_or_default(),
            // raid3: data members in order, P on the last.
            _ => MemberIndex(role),
        }
    }
}

/// The stripe at `at` and the part of it that `at..end` covers.
fn piece_at(parity: &Parity, at: Sector, end: u64) -> (u64, Piece) {
    let place = parity.stripe_place(at);
    let start = u64::from(place.chunk) * parity.chunk().0 + place.offset;
    let piece_end = parity.stripe_sectors().min(start + (end - at.0));
    (place.stripe, Piece { start, end: piece_end })
}
