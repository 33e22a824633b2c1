//! What is logged before a stripe is written, and replayed after a crash: carries out what the log says.

use super::Array;
use crate::array::ios::{IoState, NO_META, Owner};
use crate::array::jobs::JobOwner;
use crate::array::lists::{EMPTY, ListBuilder};
use crate::array::log::{Place, Todo, Wait, is_journal_torn, is_partial_torn};
use crate::array::metadata_updates::Purpose;
use crate::array::roles::Roles;
use crate::array::settings::Consistency;
use crate::array::stripe::{Band, Memory, StripePlan, Task};
use crate::bugs::Bug;
use crate::consistency::LogEntry;
use crate::contract::{
    Event, IoOutcome, JobResult, MetaIo, Output, ParityOp, Role, Segment, SegmentList, Work,
};
use crate::units::{MemberIndex, Sectors, Time};

/// Plans, from before their writes to after them.
impl Array {
    /// Writes what a plan must have in the log before its writes go out; false when it waits for
    /// room, and goes on by itself.
    pub(super) fn issue_log(&mut self, plan: u32) -> bool {
        let mode = self.setup.settings.consistency;
        if !matches!(mode, Consistency::PartialParity { .. } | Consistency::Journal { .. }) {
            return true;
        }
        if self.is_unrecorded() && self.lacks_parity(plan) {
            self.log.wait_for_record(plan);
            return false;
        }
        // A plan that logs once more, since a member failed meanwhile, needs its first entries no longer.
        if !self.log.is_partial() && self.log.places_ended(&self.setup, plan, false) {
            self.flush_for_log();
        }
        let state = self.plans[plan];
        match self.log.enter(&self.setup, self.members.failed, plan, &state) {
            Ok(places) => {
                // Its header is closed when the input is over.
                self.timers.changed |= self.log.is_header_open();
                for place in places.iter().flatten() {
                    self.write_entry(plan, &state, place);
                }
                true
            }
            Err(Wait::ForChange) => false,
            Err(Wait::ForFlush) => {
                self.flush_for_log();
                false
            }
        }
    }

    /// Writes an entry of a plan; one of a member that is being replaced to both drives.
    fn write_entry(&mut self, plan: u32, state: &StripePlan, place: &Place) {
        let Place { device, at, record, roles, .. } = *place;
        let band = &state.bands()[place.band];
        let is_journal = device == self.setup.journal();
        let fua = !is_journal || !self.setup.has_bug(Bug::JournalNotDurable);
        let replaced = !is_journal && self.members.replacing.contains(device);
        let replacement = replaced.then(|| self.setup.replacement(device));
        for member in [Some(device), replacement].into_iter().flatten() {
            let mut list = ListBuilder::new();
            if is_journal {
                for role in roles.iter() {
                    self.add_journal_rows(plan, state, role, band, &mut list);
                }
            } else if band.covered() < self.setup.data_chunks {
                // Partial parity has the scratch behind P.
                let role = self.setup.data_chunks + 1;
                self.add_rows(plan, state, role, band, Memory::Scratch, &mut list);
            }
            let meta = MetaIo { member, record, at, payload: list.finish(), fua, ..NO_META };
            self.emit_meta(Owner::Plan(plan), meta);
        }
    }

    /// Adds a role's new rows of a band. What is to be zeroes lies in the scratch of the band's first
    /// chunk, which a plan that writes zeroes does not use otherwise.
    fn add_journal_rows(
        &mut self,
        plan: u32,
        state: &StripePlan,
        role: u16,
        band: &Band,
        list: &mut ListBuilder,
    ) {
        let is_data = role < self.setup.data_chunks;
        if state.task == Task::Zero && (is_data || band.covered() == self.setup.data_chunks) {
            self.add_rows(plan, state, band.first, band, Memory::Scratch, list);
        } else {
            let memory = if is_data { Memory::Payload } else { Memory::Scratch };
            self.add_rows(plan, state, role, band, memory, list);
        }
    }

    /// Whether what plans write goes to the journal.
    pub(super) fn is_journalled(&self) -> bool {
        matches!(self.setup.settings.consistency, Consistency::Journal { .. })
            && self.log.is_journal_used()
    }

    /// The entries of a plan are on the medium.
    pub(super) fn plan_logged(&mut self, plan: u32) {
        if self.log.plan_logged(plan) {
            self.retry_logging();
        }
    }

    /// The writes of a plan have ended, well or not.
    pub(super) fn log_ended(&mut self, plan: u32) {
        if !self.log.has_places(plan) {
            return;
        }
        // A member that failed may come back as it was: its failure is recorded first.
        let durable = self.is_plan_durable(plan) && !self.is_unrecorded();
        if self.log.places_ended(&self.setup, plan, durable) {
            self.flush_for_log();
        }
        if self.log.has_waiting() {
            self.flush_for_log();
            self.retry_logging();
        }
    }

    /// Makes everything that has ended durable, so that its places can be used again.
    fn flush_for_log(&mut self) {
        if self.log.is_flushing() {
            return;
        }
        self.retire_log();
        if self.log.begin_flush() {
            self.start_update(Purpose::LogSpace, true, false);
        }
    }

    /// Has the superblocks tell how much of the journal is no longer needed.
    fn retire_log(&mut self) {
        if self.log.retire() {
            self.state_changed();
        }
    }

    /// Everything written before was made durable: places of the log can be used again.
    pub(super) fn log_flushed(&mut self) {
        if self.log.is_replaying() {
            self.replay_flushed();
            return;
        }
        if !self.log.flushed(self.is_unrecorded()) {
            return;
        }
        self.retire_log();
        self.retry_logging();
        if self.log.has_waiting() {
            self.flush_for_log();
        }
    }

    /// Goes on with plans that waited, as far as there is room, in order.
    pub(super) fn retry_logging(&mut self) {
        if !self.log.begin_retry() {
            return;
        }
        while let Some((plan, left)) = self.log.pop_waiting() {
            self.plan_admitted(plan);
            if self.log.waits_again(plan, left) {
                break;
            }
        }
        self.log.end_retry();
    }

    /// The superblocks tell what was to be told of the log.
    pub(super) fn log_state_recorded(&mut self) {
        self.log.state_recorded();
        if self.log.is_replaying() {
            self.replay_recorded();
            return;
        }
        if self.log.is_unsettled() {
            self.log_flushed();
        }
        self.retry_logging();
    }

    /// The log device is out of service.
    pub(super) fn journal_failed(&mut self) {
        if self.log.journal_failed() {
            self.outputs.push_back(Output::Event(Event::JournalFailed));
            self.state_changed();
        }
    }
}

/// Replay.
impl Array {
    /// Sees to it that the logs are replayed before anything else. At assembly only, with the state
    /// of the members known.
    pub(super) fn replay_logs(&mut self, entries: &[LogEntry]) {
        if self.log.begin_with(&self.setup, entries) {
            self.requests.holding = true;
            // It begins at the first input, when the time is known.
            self.outputs.push_back(Output::WakeAt(Time::ZERO));
            self.timers.changed = true;
        }
    }

    /// Whether entries are missing from a member's log of partial parity although a newer one says that they were
    /// durable.
    pub(crate) fn is_log_torn(&self, member: MemberIndex, entries: &[LogEntry]) -> bool {
        is_partial_torn(&self.setup, member, entries)
    }

    /// The same of the journal, from `tail` on.
    pub(crate) fn is_journal_torn(&self, entries: &[LogEntry], tail: u64) -> bool {
        is_journal_torn(&self.setup, entries, tail)
    }

    /// Begins a replay that is due.
    pub(super) fn begin_replay(&mut self) {
        if self.log.is_replay_due() {
            self.outputs.push_back(Output::Event(Event::Started(Work::LogReplay)));
            self.log.begin_replay(&self.setup, &mut self.members);
            self.carry_out_replay();
        }
    }

    /// Does what a replay asks for.
    fn carry_out_replay(&mut self) {
        while let Some(todo) = self.log.next_todo() {
            match todo {
                Todo::Io { op, target, role } => {
                    let list = self.replay_rows(role, target.len);
                    self.emit(Owner::Log, op, false, target, list);
                }
                Todo::Compute { len, written, partial } => {
                    self.compute_partial(len, written, partial);
                }
                Todo::Flush => self.start_update(Purpose::LogSpace, true, false),
            }
        }
    }

    /// The rows of a step in the scratch that a role has there.
    fn replay_rows(&self, role: u16, len: u32) -> SegmentList {
        let offset = (u64::from(role) * self.setup.plan_rows) as u32;
        // No plan is under way: its scratch is free.
        SegmentList { first: Segment { token: self.setup.scratch_token(0), offset, len }, ..EMPTY }
    }

    /// P = partial parity XOR the written chunks.
    fn compute_partial(&mut self, len: u32, written: Roles, partial: bool) {
        let p_role = self.setup.data_chunks;
        let job = self.jobs.start(JobOwner::Log, ParityOp::Xor, len);
        for role in written.iter() {
            self.jobs.add_source(job, self.replay_rows(role, len), Role::Data(0));
        }
        if partial {
            self.jobs.add_source(job, self.replay_rows(p_role + 1, len), Role::P);
        }
        self.jobs.add_target(job, self.replay_rows(p_role, len), Role::P);
        self.outputs.push_back(Output::Compute { job });
    }

    pub(super) fn replay_io_ended(&mut self, io: &IoState, outcome: IoOutcome) {
        if self.log.replay_io_ended(&self.setup, io, outcome) {
            self.fail_device(io.member);
        }
        self.log.replay_goes_on(&self.setup, &mut self.members);
        self.carry_out_replay();
    }

    pub(super) fn replay_computed(&mut self, result: JobResult) {
        self.log.replay_computed(&self.setup, &mut self.members, result);
        self.carry_out_replay();
    }

    /// Everything replayed is durable.
    fn replay_flushed(&mut self) {
        self.log.replay_flushed();
        // An array that lost too much records nothing any more.
        if !self.replay_recorded() {
            self.state_changed();
        }
    }

    /// The superblocks were written, or never will be; whether that ended a replay.
    pub(super) fn replay_recorded(&mut self) -> bool {
        let Some(complete) = self.log.end_replay(self.members.has_lost(&self.setup)) else {
            return false;
        };
        let event = Event::Finished {
            work: Work::LogReplay,
            mismatched: Sectors::ZERO,
            lost: Sectors::ZERO,
        };
        self.outputs.push_back(Output::Event(event));
        self.replay_over(complete);
        self.release_held();
        true
    }
}
