//! Work on a stripe of a level with parity: writes, and reads of lost chunks.
//!
//! Fault model: as [`super`]; a crash between the writes of a stripe leaves P inconsistent with the
//! data (the write hole), which this version does not close.
//! Why it is safe otherwise: the rows of a plan are locked from before its first read to after its
//! last write, so nothing changes between reading and the parity computed from it; data and P are
//! written only when every read and job before went well; an error while reading leads to a new plan
//! without the member that erred, never to a guess.
//! Tests: `tests/model.rs::raid5_survives_any_one_member_lost`.
//!
//! A plan goes through up to three phases: read, compute, write. All I/O of a phase is sent out at
//! once, one range a member where rows touch.

mod bands;
mod issue;

use super::issue::IoState;
use super::member::MemberSet;
use super::{Array, Output, scratch_token};
use crate::contract::{Event, IoOutcome, JobId, JobResult, Kernel, Outcome, RequestOp};
use crate::geometry::{Geometry, Parity};
use crate::units::{MemberIndex, Sector};
use bands::{Band, Health, MOST_BANDS, Method, Piece};

/// Jobs a plan has in flight at most: one a band.
pub(super) const JOBS_PER_PLAN: u32 = MOST_BANDS as u32;

/// A piece of a stripe being read or written.
#[derive(Clone, Copy, Debug)]
pub(super) struct Plan {
    request: u32,
    write: bool,
    stripe: u64,
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
    first_bad: Option<Sector>,
    /// A read failed: plan again when the phase has ended.
    again: bool,
    outcome: Outcome,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Read,
    Compute,
    Write,
}

impl Plan {
    pub(super) const fn idle() -> Self {
        const NO_BAND: Band = Band { from: 0, to: 0, first: 0, last: 0, method: Method::Direct };
        Self {
            request: 0,
            write: false,
            stripe: 0,
            piece: Piece { start: 0, end: 0 },
            rows: (0, 0),
            payload: 0,
            phase: Phase::Read,
            bands: [NO_BAND; MOST_BANDS],
            band_count: 0,
            pending: 0,
            avoid: MemberSet::NONE,
            first_bad: None,
            again: false,
            outcome: Outcome::Done,
        }
    }

    fn bands(&self) -> &[Band] {
        &self.bands[..usize::from(self.band_count)]
    }

    pub(super) fn add_to_key(&self, add: &mut dyn FnMut(u64)) {
        add(u64::from(self.request) | u64::from(self.write) << 32);
        add(self.stripe);
        add(self.piece.start);
        add(self.piece.end);
        add(self.rows.0);
        add(self.phase as u64 | u64::from(self.again) << 8 | u64::from(self.pending) << 16);
        add(self.avoid.bits() as u64);
        for band in self.bands() {
            add(match band.method {
                Method::Direct => 0,
                Method::Recover(k) => 8 | u64::from(k) << 8,
                Method::FullStripe => 1,
                Method::ReconstructWrite => 2,
                Method::ReadModifyWrite => 3,
                Method::DataOnly => 4,
            });
        }
    }
}

/// A piece of parity computing in flight.
#[derive(Clone, Copy, Debug)]
pub(super) struct JobState {
    pub(super) plan: u32,
    pub(super) kernel: Kernel,
    pub(super) len: u32,
    pub(super) sources: u16,
}

impl JobState {
    pub(super) const fn idle() -> Self {
        Self { plan: 0, kernel: Kernel::Xor, len: 0, sources: 0 }
    }
}

impl Array {
    /// The parity geometry; only called for levels that have it.
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
        if unreadable.is_empty() {
            return false;
        }
        let (stripe, piece) = piece_at(parity, at, end);
        let (first, last) = piece.chunks(parity.chunk().0);
        (first..=last).any(|k| unreadable.contains(parity.data_member(stripe, k)))
    }

    /// Makes the plans for the stripe at the request's cursor; false when it must wait for a slot.
    pub(super) fn plan_stripe_piece(&mut self, slot: u32) -> bool {
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
            let plan = Plan {
                request: slot,
                write: request.op == RequestOp::Write,
                stripe,
                piece,
                rows: (bands[0].from, bands[count - 1].to),
                payload: request.cursor - request.at,
                bands,
                band_count: count as u8,
                avoid: request.avoid,
                ..Plan::idle()
            };
            let Some(plan) = self.plans.insert(plan) else {
                self.requests[slot].slice = slice as u32;
                return false;
            };
            self.requests[slot].pending += 1;
            let start = self.parity().member_start(stripe).0;
            let (from, to) = self.plans[plan].rows;
            if self.locks.acquire(plan, start + from, start + to) {
                self.begin_plan(plan);
            }
        }
        let request = &mut self.requests[slot];
        request.slice = 0;
        request.cursor += piece.end - piece.start;
        true
    }

    /// Chooses how each band is done, and starts; the plan's rows are locked.
    pub(super) fn begin_plan(&mut self, plan: u32) {
        if self.choose_methods(plan) {
            self.plans[plan].phase = Phase::Read;
            self.enter_phase(plan);
            return;
        }
        let lost = self.is_lost(self.failed);
        let at = self.parity().stripe_sectors() * self.plans[plan].stripe;
        let state = &mut self.plans[plan];
        let first_bad = state.first_bad.unwrap_or(Sector(at + state.piece.start));
        state.outcome = if lost { Outcome::ArrayFailed } else { Outcome::MediaError { first_bad } };
        self.end_plan(plan);
    }

    fn choose_methods(&mut self, plan: u32) -> bool {
        let state = self.plans[plan];
        let (failed, unreadable) = (self.failed, self.failed.union(state.avoid));
        let parity = self.parity();
        let p = parity.p_member(state.stripe);
        let health = Health {
            data: parity.data_chunks(),
            p_failed: failed.contains(p),
            p_unreadable: unreadable.contains(p),
            unreadable: |k| unreadable.contains(parity.data_member(state.stripe, k)),
        };
        let mut bands = state.bands;
        // Data on a member out of service, with P out of service too, would be written nowhere.
        if state.write && self.is_lost(failed) {
            return false;
        }
        for band in &mut bands[..usize::from(state.band_count)] {
            let method =
                if state.write { health.write_method(band) } else { health.read_method(band) };
            let Some(method) = method else { return false };
            band.method = method;
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
            match self.plans[plan].phase {
                Phase::Read => self.issue_reads(plan),
                Phase::Compute => self.issue_jobs(plan),
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

    /// Moves on to the next phase; false after the last.
    fn next_phase(&mut self, plan: u32) -> bool {
        let state = &mut self.plans[plan];
        state.phase = match state.phase {
            Phase::Read => Phase::Compute,
            Phase::Compute if state.write => Phase::Write,
            _ => return false,
        };
        true
    }

    /// One I/O of a plan has ended.
    pub(super) fn plan_io_ended(&mut self, plan: u32, io: &IoState, outcome: IoOutcome) {
        self.plans[plan].pending -= 1;
        if outcome != IoOutcome::Ok {
            let reading = self.plans[plan].phase == Phase::Read;
            if !reading || outcome == IoOutcome::Gone {
                self.fail_member(io.member);
            }
            if reading {
                let bad = self.array_sector(io, outcome);
                let state = &mut self.plans[plan];
                state.avoid.insert(io.member);
                state.first_bad = state.first_bad.or(bad);
                state.again = true;
            } else if self.is_lost(self.failed) {
                self.plans[plan].outcome = Outcome::ArrayFailed;
            }
        }
        if self.plans[plan].pending == 0 {
            self.phase_ended(plan);
        }
    }

    /// One job has ended.
    pub(super) fn computed(&mut self, job: JobId, result: JobResult) {
        if !self.jobs.is_current(job.slot, job.generation) {
            return;
        }
        let JobState { plan, sources, .. } = self.jobs[job.slot];
        let range = self.operand_range(job.slot);
        for index in range.start..range.start + usize::from(sources) + 1 {
            self.lists.release(&self.operands[index]);
        }
        self.jobs.remove(job.slot);
        let state = &mut self.plans[plan];
        state.pending -= 1;
        if result != JobResult::Done {
            state.outcome = Outcome::ComputeFailed;
        }
        if state.pending == 0 {
            self.phase_ended(plan);
        }
        if !self.starved_plans.is_empty() || !self.starved_requests.is_empty() {
            self.resume();
        }
    }

    fn phase_ended(&mut self, plan: u32) {
        let state = &mut self.plans[plan];
        if state.again {
            state.again = false;
            self.begin_plan(plan);
        } else if state.outcome == Outcome::Done && self.next_phase(plan) {
            self.enter_phase(plan);
        } else {
            self.end_plan(plan);
        }
    }

    fn end_plan(&mut self, plan: u32) {
        let state = self.plans[plan];
        // A read tells of its recovery when it is answered; a write's is told here.
        if state.outcome == Outcome::Done && state.write {
            for member in state.avoid.iter() {
                self.outputs.push_back(Output::Event(Event::ReadRecovered(member)));
            }
        }
        let request = &mut self.requests[state.request];
        request.pending -= 1;
        if !state.write {
            request.avoid = request.avoid.union(state.avoid);
        }
        if state.outcome != Outcome::Done && request.outcome == Outcome::Done {
            request.outcome = state.outcome;
        }
        self.plans.remove(plan);
        self.locks.release(plan);
        self.start_granted();
        self.settle(state.request);
    }

    /// The member of role `role` in a plan's stripe: data chunk k for k < d, P for d.
    fn role_member(&self, stripe: u64, role: u16) -> MemberIndex {
        let parity = self.parity();
        if role < parity.data_chunks() {
            parity.data_member(stripe, role)
        } else {
            parity.p_member(stripe)
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
