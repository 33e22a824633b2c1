//! What logs are for: after a crash, what they protect is made consistent before anything else.
//!
//! Fault model: as [`super::partial`] and [`super::journal`]; besides, a crash at any point of the
//! replay, members that fail in it, and sectors that cannot be read.
//! Why it is safe: what is replayed is worked out from the entries before the first I/O, for each row
//! from the newest entry that has it, and does not depend on what earlier steps wrote: replaying any
//! part of it, and then all of it, is replaying all of it. Requests and background work wait until it
//! is over and durable, and the journal's tail is recorded.
//! Rows of which a written chunk cannot be read are left alone (partial parity); where the log itself
//! cannot be read, P is made from all chunks, or nothing is computed from it any more. What the
//! journal has is written to every member in service. When the journal cannot be read half-way,
//! redundancy is not known to be consistent anywhere, and background work is told so.
//! Tests: `tests/logs.rs::a_replay_may_be_interrupted_anywhere` and
//! `tests/logs.rs::parity_is_right_although_the_log_cannot_be_read`.

use std::collections::VecDeque;

use super::entries::{Entry, ReplayStep, add_journal_steps, add_partial_steps};
use crate::array::ios::{IoState, Target};
use crate::array::member::Members;
use crate::array::roles::Roles;
use crate::array::setup::Setup;
use crate::bugs::Bug;
use crate::contract::{IoOp, IoOutcome, JobResult};
use crate::units::{MemberIndex, Sector};

/// What a replay asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(in crate::array) enum Todo {
    /// A read or write between a device and the scratch of a role; that behind P has the partial parity.
    Io { op: IoOp, target: Target, role: u16 },
    /// P from these chunks and, if it was read, the partial parity.
    Compute { len: u32, written: Roles, partial: bool },
    /// A flush of all members.
    Flush,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Stage {
    /// Nothing to replay, or it is over.
    Over,
    /// To be begun.
    Due,
    Read,
    Compute,
    Write,
    /// The members are being flushed.
    Flush,
    /// The superblocks are to tell of the tail.
    Record,
}

/// A replay under way, step by step.
#[derive(Clone, Debug, Hash)]
pub(super) struct LogReplay {
    stage: Stage,
    /// The entries of each log, until it begins.
    found: Vec<Vec<Entry>>,
    /// The first is under way.
    steps: VecDeque<ReplayStep>,
    pending: u32,
    /// The first row of the step that could not be read; whether it was so in the log only.
    bad_row: Option<(u64, bool)>,
    /// A member failed: the step is begun again.
    again: bool,
    /// Everything could be replayed.
    complete: bool,
    /// What is to be done next, in order.
    todo: VecDeque<Todo>,
}

impl LogReplay {
    pub(super) const fn new() -> Self {
        Self {
            stage: Stage::Over,
            found: Vec::new(),
            steps: VecDeque::new(),
            pending: 0,
            bad_row: None,
            again: false,
            complete: true,
            todo: VecDeque::new(),
        }
    }

    /// A replay of what was found, which begins at the first input, when the time is known.
    pub(super) fn due(found: Vec<Vec<Entry>>) -> Self {
        Self { stage: Stage::Due, found, ..Self::new() }
    }

    /// Whether one is under way, or due.
    pub(super) fn is_under_way(&self) -> bool {
        self.stage != Stage::Over
    }

    pub(super) fn is_due(&self) -> bool {
        self.stage == Stage::Due
    }

    /// Whether it waits for the superblocks to tell of the tail.
    pub(super) fn is_recording(&self) -> bool {
        self.stage == Stage::Record
    }

    /// What is to be done next.
    pub(super) fn next(&mut self) -> Option<Todo> {
        self.todo.pop_front()
    }

    /// Begins one that is due; `partial`: of partial parity, else of the journal.
    pub(super) fn begin(&mut self, setup: &Setup, members: &mut Members, partial: bool) {
        let mut steps = VecDeque::new();
        for entries in std::mem::take(&mut self.found) {
            if partial {
                add_partial_steps(setup, &entries, &mut steps);
            } else {
                add_journal_steps(setup, &entries, &mut steps);
            }
        }
        if !setup.has_bug(Bug::ReplayMissing) {
            self.steps = steps;
        }
        self.next_step(setup, members);
    }

    /// Begins the first step that can be done.
    fn next_step(&mut self, setup: &Setup, members: &mut Members) {
        while let Some(step) = self.steps.front().copied() {
            if members.stopped {
                self.complete = false;
                self.steps.clear();
                break;
            }
            self.stage = Stage::Read;
            self.again = false;
            self.bad_row = None;
            let begun = match step {
                ReplayStep::Partial { .. } => self.read_partial(setup, members, step),
                ReplayStep::Copy { stripe, role, .. } => {
                    let member = setup.role_member(stripe, role);
                    !members.failed.contains(member) && self.read_copy(setup, step)
                }
            };
            if begun {
                return;
            }
            self.steps.pop_front();
        }
        self.stage = Stage::Flush;
        self.todo.push_back(Todo::Flush);
    }

    /// Reads what P of some rows is made of; false when they are left alone. A step that is readable
    /// in part only is cut.
    fn read_partial(&mut self, setup: &Setup, members: &mut Members, step: ReplayStep) -> bool {
        let ReplayStep::Partial { stripe, rows, written, payload, .. } = step else { return false };
        let (start, p_role) = (setup.member_start(stripe), setup.data_chunks);
        let p = setup.role_member(stripe, p_role);
        if members.failed.contains(p) {
            return false;
        }
        for k in written.iter() {
            let member = setup.role_member(stripe, k);
            if members.failed.contains(member) {
                self.lose_parity(setup, members, step);
                return false;
            }
            if let Some(bad) =
                Self::first_lacking(setup, members, member, start + rows.0, start + rows.1)
            {
                self.lose_parity(setup, members, step);
                self.skip_row(setup, step, bad - start);
                return false;
            }
        }
        let len = (rows.1 - rows.0) as u32;
        for k in written.iter() {
            let target =
                Target { member: setup.role_member(stripe, k), at: Sector(start + rows.0), len };
            self.send(IoOp::Read, target, k);
        }
        if let Some(at) = payload {
            self.send(IoOp::Read, Target { member: p, at: Sector(at), len }, p_role + 1);
        }
        true
    }

    /// Neither the log nor all chunks of a row can be read: nothing may be computed from its P.
    fn lose_parity(&mut self, setup: &Setup, members: &mut Members, step: ReplayStep) {
        let ReplayStep::Partial { stripe, rows, lost: true, .. } = step else { return };
        let (start, p) = (setup.member_start(stripe), setup.role_member(stripe, setup.data_chunks));
        if members[p].bad.insert(start + rows.0, start + rows.1) {
            // Its drive will read it without an error: the next start must know, too.
            members[p].is_listed |= setup.settings.keeps_bad_blocks;
            members.note_partial(p);
        } else {
            self.complete = false;
        }
    }

    /// The first sector of a range that a member in service lacks.
    fn first_lacking(
        setup: &Setup,
        members: &Members,
        member: MemberIndex,
        from: u64,
        to: u64,
    ) -> Option<u64> {
        if !members.partial.contains(member) {
            return None;
        }
        (from..to).find(|at| members.lacks(setup, member, Sector(*at), 1))
    }

    /// The rows of a step that members read and write with this one.
    fn block_of(setup: &Setup, step: ReplayStep, row: u64) -> (u64, u64) {
        let (rows, block) = (step.rows(), setup.member_block());
        let row = row.clamp(rows.0, rows.1 - 1) / block * block;
        (row.max(rows.0), (row + block).min(rows.1))
    }

    /// Goes on with the rows around one that cannot be read; the step itself is dropped by the caller.
    fn skip_row(&mut self, setup: &Setup, step: ReplayStep, row: u64) {
        let (rows, bad) = (step.rows(), Self::block_of(setup, step, row));
        let steps = &mut self.steps;
        for rows in [(bad.1, rows.1), (rows.0, bad.0)].into_iter().filter(|rows| rows.0 < rows.1) {
            // Behind the step itself, which goes first.
            steps.insert(1, step.cut(rows));
        }
    }

    fn read_copy(&mut self, setup: &Setup, step: ReplayStep) -> bool {
        let ReplayStep::Copy { rows, from, role, .. } = step else { return false };
        let len = (rows.1 - rows.0) as u32;
        let target = Target { member: setup.journal(), at: Sector(from), len };
        self.send(IoOp::Read, target, role);
        true
    }

    fn send(&mut self, op: IoOp, target: Target, role: u16) {
        self.pending += 1;
        self.todo.push_back(Todo::Io { op, target, role });
    }

    /// An I/O has ended; true when its device is to be taken out of service, before [`Self::go_on`].
    pub(super) fn io_ended(&mut self, setup: &Setup, io: &IoState, outcome: IoOutcome) -> bool {
        self.pending -= 1;
        let step = self.steps.front().copied();
        match (io.op, outcome, step) {
            (_, IoOutcome::Ok, _) => return false,
            (IoOp::Read, _, _) if io.member == setup.journal() => {
                self.complete = false;
                self.steps.clear();
                self.again = true;
            }
            (IoOp::Read, IoOutcome::MediaError { first_bad }, Some(step)) => {
                // Row by row as the range that was read has it.
                let row = step.rows().0 + first_bad.0.saturating_sub(io.at.0);
                let row = Self::block_of(setup, step, row).0;
                let in_log = io.member == setup.role_member(step.stripe(), setup.data_chunks);
                let known = self.bad_row.unwrap_or((row, in_log));
                self.bad_row = Some(known.min((row, in_log)));
                return false;
            }
            _ => self.again = true,
        }
        true
    }

    /// Goes on when nothing is in flight.
    pub(super) fn go_on(&mut self, setup: &Setup, members: &mut Members) {
        if self.pending > 0 {
            return;
        }
        if self.again {
            self.next_step(setup, members);
            return;
        }
        let step = *self.steps.front().expect("a step is under way");
        if let Some((row, in_log)) = self.bad_row.take() {
            self.skip_row(setup, step, row);
            match (in_log, step) {
                (true, ReplayStep::Partial { stripe, .. }) => {
                    let rows = Self::block_of(setup, step, row);
                    let written = Roles::range(0, setup.data_chunks);
                    let step =
                        ReplayStep::Partial { stripe, rows, written, payload: None, lost: true };
                    self.steps.insert(1, step);
                }
                _ => self.lose_parity(setup, members, step),
            }
            self.end_step(setup, members);
            return;
        }
        match (self.stage, step) {
            (Stage::Read, ReplayStep::Partial { written, payload, rows, .. }) => {
                self.stage = Stage::Compute;
                let len = (rows.1 - rows.0) as u32;
                self.todo.push_back(Todo::Compute { len, written, partial: payload.is_some() });
            }
            (Stage::Read, ReplayStep::Copy { role, .. }) => self.write(setup, members, step, role),
            _ => self.end_step(setup, members),
        }
    }

    /// P was computed, or could not be.
    pub(super) fn computed(&mut self, setup: &Setup, members: &mut Members, result: JobResult) {
        let step = *self.steps.front().expect("a step is under way");
        if result == JobResult::Done {
            self.write(setup, members, step, setup.data_chunks);
        } else {
            self.complete = false;
            self.end_step(setup, members);
        }
    }

    /// Writes a role's rows of a step, unless its member failed meanwhile.
    fn write(&mut self, setup: &Setup, members: &mut Members, step: ReplayStep, role: u16) {
        let (stripe, rows) = (step.stripe(), step.rows());
        let member = setup.role_member(stripe, role);
        if members.failed.contains(member) {
            self.end_step(setup, members);
            return;
        }
        self.stage = Stage::Write;
        let at = Sector(setup.member_start(stripe) + rows.0);
        let target = Target { member, at, len: (rows.1 - rows.0) as u32 };
        self.send(IoOp::Write, target, role);
    }

    fn end_step(&mut self, setup: &Setup, members: &mut Members) {
        self.steps.pop_front();
        self.next_step(setup, members);
    }

    /// Everything replayed is durable.
    pub(super) fn flushed(&mut self) {
        self.stage = Stage::Record;
    }

    /// It is over; whether everything could be replayed.
    pub(super) fn end(&mut self) -> bool {
        self.stage = Stage::Over;
        self.complete
    }
}
