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

use std::collections::{BTreeMap, VecDeque};

use super::super::lists::EMPTY;
use super::super::member_set::MemberSet;
use super::from_words;
use super::partial::most_being_logged;
use crate::array::Array;
use crate::array::ios::{IoState, Owner, Target};
use crate::array::jobs::JobOwner;
use crate::array::rounds::Purpose;
use crate::bugs::Bug;
use crate::consistency::LogEntry;
use crate::contract::LOG_HEADER;
use crate::contract::{
    Event, IoOp, IoOutcome, JobResult, Kernel, MemberBits, Output, Record, Role, Segment,
    SegmentList, Work,
};
use crate::geometry::Geometry;
use crate::units::{MemberIndex, Sector, Sectors, Time};

/// A range of rows to be made consistent.
#[derive(Clone, Copy, Debug)]
enum Step {
    /// P of these rows = partial parity, read from there on its member, XOR the written chunks.
    /// `lost`: the partial parity cannot be read, and all chunks are taken.
    Partial { stripe: u64, rows: (u64, u64), written: u128, payload: Option<u64>, lost: bool },
    /// These rows of a role are copied from there on the journal.
    Copy { stripe: u64, rows: (u64, u64), role: u16, from: u64 },
}

impl Step {
    /// Itself for these of its rows.
    fn cut(self, to: (u64, u64)) -> Self {
        match self {
            Self::Partial { stripe, rows, written, payload, lost } => {
                let payload = payload.map(|at| at + to.0 - rows.0);
                Self::Partial { stripe, rows: to, written, payload, lost }
            }
            Self::Copy { stripe, rows, role, from } => {
                Self::Copy { stripe, rows: to, role, from: from + to.0 - rows.0 }
            }
        }
    }

    const fn rows(&self) -> (u64, u64) {
        match self {
            Self::Partial { rows, .. } | Self::Copy { rows, .. } => *rows,
        }
    }

    const fn stripe(&self) -> u64 {
        match self {
            Self::Partial { stripe, .. } | Self::Copy { stripe, .. } => *stripe,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
#[derive(Clone, Debug)]
pub(super) struct Replay {
    stage: Stage,
    /// The entries of each log, until it begins.
    found: Vec<Vec<Entry>>,
    /// The first is under way.
    steps: VecDeque<Step>,
    pending: u32,
    /// The first row of the step that could not be read; whether it was so in the log only.
    bad_row: Option<(u64, bool)>,
    /// A member failed: the step is begun again.
    again: bool,
    /// Everything could be replayed.
    complete: bool,
}

impl Replay {
    pub(super) const fn new() -> Self {
        Self {
            stage: Stage::Over,
            found: Vec::new(),
            steps: VecDeque::new(),
            pending: 0,
            bad_row: None,
            again: false,
            complete: true,
        }
    }

    pub(super) fn add_to_key(&self, add: &mut dyn FnMut(u64)) {
        add(self.stage as u64 | (self.steps.len() as u64) << 8 | u64::from(self.pending) << 32);
    }
}

/// A whole entry, checked against the array.
#[derive(Clone, Copy, Debug)]
struct Entry {
    /// Generation or sequence number.
    number: u64,
    stripe: u64,
    rows: (u64, u64),
    /// Chunks written, or roles.
    set: u128,
    /// Where its payload starts on its device.
    payload: u64,
    /// Entries with numbers between these were durable when it was made.
    settled: [u64; 2],
}

/// Of `rows`, those that none of `newer` has.
fn rows_left(rows: (u64, u64), newer: impl Iterator<Item = (u64, u64)>) -> Vec<(u64, u64)> {
    let mut left = vec![rows];
    for (from, to) in newer {
        let cut = left.iter().flat_map(|rows| {
            [(rows.0, rows.1.min(from)), (rows.0.max(to), rows.1)].into_iter().filter(|r| r.0 < r.1)
        });
        left = cut.collect();
    }
    left
}

/// No array gets this far: a number beyond is none of its own.
pub(super) const MOST_NUMBER: u64 = 1 << 62;

/// So much further on are the numbers of a log that could not be read in full: a log has fewer entries in its
/// ring, and a run of the array makes fewer.
const NUMBER_GAP: u64 = 1 << 32;

fn by_stripe(entries: &[Entry]) -> BTreeMap<u64, Vec<Entry>> {
    let mut stripes: BTreeMap<u64, Vec<Entry>> = BTreeMap::new();
    for entry in entries {
        stripes.entry(entry.stripe).or_default().push(*entry);
    }
    stripes
}

impl Array {
    /// Sees to it that the logs are replayed before anything else. At assembly only, with the state
    /// of the members known; entries on members out of service are left alone.
    pub(crate) fn replay_logs(&mut self, entries: &[LogEntry]) {
        let mut found = Vec::new();
        if self.logs_partial_parity() {
            for member in (0..self.setup.layout.members).map(MemberIndex) {
                let entries = self.partial_entries(member, entries);
                if let Some(newest) = entries.last() {
                    self.continue_ring(member, newest.number);
                }
                found.push(entries);
            }
        } else if self.is_journalled() {
            let entries = self.journal_entries(entries, self.journal_tail());
            if let Some(newest) = entries.last() {
                self.journal_goes_on(newest.number + 1);
            }
            found.push(entries);
        }
        if found.iter().all(Vec::is_empty) {
            return;
        }
        self.log.replay = Replay { stage: Stage::Due, found, ..Replay::new() };
        self.requests.holding = true;
        // It begins at the first input, when the time is known.
        self.outputs.push_back(Output::WakeAt(Time::ZERO));
        self.timers.changed = true;
    }

    /// The numbers of logs that are not whole, `known` and any other of these members, go on beyond all that may
    /// be in them: what cannot be read now may be read later, and must not be taken for newer than what is
    /// written from now on. `events`: of the newest superblock.
    pub(crate) fn skip_log_numbers(
        &mut self,
        members: MemberBits,
        known: &[LogEntry],
        events: u64,
    ) {
        for member in MemberSet::from_words(members).iter() {
            let newest = self.partial_entries(member, known).last().map_or(0, |entry| entry.number);
            let gap = (newest + NUMBER_GAP).max(events.saturating_mul(NUMBER_GAP));
            self.continue_ring(member, gap.min(MOST_NUMBER - NUMBER_GAP));
        }
    }

    /// Whether entries are missing from a member's log of partial parity although a newer one says that they were
    /// durable.
    pub(crate) fn is_log_torn(&self, member: MemberIndex, entries: &[LogEntry]) -> bool {
        let known = self.partial_entries(member, entries);
        let Some(newest) = known.last().map(|entry| entry.number) else { return false };
        let turn = self.setup.log_sectors(member).0 / self.setup.log_place();
        // Older ones may have been overwritten.
        let oldest = (newest + most_being_logged(turn) + 1).saturating_sub(turn);
        let is_gone =
            |number: &u64| known.binary_search_by_key(number, |entry| entry.number).is_err();
        let was_durable = |number| {
            known.iter().any(|entry| {
                (entry.settled[0]..entry.settled[1].min(entry.number)).contains(&number)
            })
        };
        (oldest..newest).filter(is_gone).any(was_durable)
    }

    /// The same of the journal, from `tail` on.
    pub(crate) fn is_journal_torn(&self, entries: &[LogEntry], tail: u64) -> bool {
        let known = self.journal_entries(entries, tail);
        let durable =
            known.iter().map(|entry| entry.settled[1].min(entry.number)).max().unwrap_or(0);
        let whole = known.iter().filter(|entry| entry.number < durable).count() as u64;
        whole < durable.saturating_sub(tail)
    }

    /// A member's entries of partial parity in order of generation.
    fn partial_entries(&self, member: MemberIndex, entries: &[LogEntry]) -> Vec<Entry> {
        let place = self.setup.log_place();
        let area = self.setup.log_sectors(member).0;
        let all = entries.iter().filter(|entry| entry.member == member);
        let mut known: Vec<_> = all
            .filter_map(|entry| {
                let Record::PartialParity { slot, generation, stripe, from, to, written, settled } =
                    entry.record
                else {
                    return None;
                };
                let rows = (u64::from(from), u64::from(to));
                let set = from_words(written);
                let fits = self.is_entry_possible(stripe, rows, set, self.setup.data_chunks)
                    && generation < MOST_NUMBER
                    && u64::from(slot) * place == entry.at.0
                    && entry.at.0 + place <= area
                    && self.setup.role_member(stripe, self.setup.data_chunks) == member;
                let payload = self.setup.sizes[member.at()].0 + entry.at.0 + u64::from(LOG_HEADER);
                fits.then_some(Entry { number: generation, stripe, rows, set, payload, settled })
            })
            .collect();
        known.sort_unstable_by_key(|entry| entry.number);
        // What is so far behind the newest that its place may have been about to be taken is durable,
        // and what came after it may be gone.
        let turn = area / place;
        let newest = known.last().map_or(0, |entry| entry.number);
        known.retain(|entry| entry.number + turn > newest + most_being_logged(turn));
        known
    }

    /// The journal's entries that are not retired, in order.
    fn journal_entries(&self, entries: &[LogEntry], tail: u64) -> Vec<Entry> {
        let device = self.setup.journal();
        let area = self.setup.log_sectors(device).0;
        let all = entries.iter().filter(|entry| entry.member == device);
        let mut known: Vec<_> = all
            .filter_map(|entry| {
                let Record::JournalEntry { at, sequence, stripe, from, to, roles, settled } =
                    entry.record
                else {
                    return None;
                };
                let rows = (u64::from(from), u64::from(to));
                let set = from_words(roles);
                let roles = self.setup.roles();
                let payload = at.0.saturating_add(u64::from(LOG_HEADER));
                let fits = self.is_entry_possible(stripe, rows, set, roles)
                    && sequence < MOST_NUMBER
                    && at == entry.at
                    && payload + u64::from(set.count_ones()) * (rows.1 - rows.0) <= area;
                let settled = [tail, settled];
                let entry = Entry { number: sequence, stripe, rows, set, payload, settled };
                (fits && sequence >= tail).then_some(entry)
            })
            .collect();
        // Entries that are not retired lie apart: what lies inside of one is payload that looks like an entry.
        known.sort_unstable_by_key(|entry| entry.payload);
        let mut end = 0;
        known.retain(|entry| {
            let apart = entry.payload >= end + u64::from(LOG_HEADER);
            let len = u64::from(entry.set.count_ones()) * (entry.rows.1 - entry.rows.0);
            end = if apart { entry.payload + len } else { end };
            apart
        });
        known.sort_unstable_by_key(|entry| entry.number);
        known
    }

    /// Whether an entry can be one of this array's.
    fn is_entry_possible(&self, stripe: u64, rows: (u64, u64), set: u128, roles: u16) -> bool {
        let Geometry::Parity(parity) = &self.setup.geometry else { return false };
        let chunk = parity.chunk().0;
        let stripes = self.setup.geometry.capacity().0 / parity.stripe_sectors();
        stripe < stripes
            && rows.0 < rows.1
            && rows.1 <= chunk
            && rows.1 - rows.0 <= self.setup.plan_rows
            && set != 0
            && (roles == 128 || set >> roles == 0)
    }

    /// For each row the newest entry counts, whatever it says.
    fn add_partial_steps(&self, entries: &[Entry], steps: &mut VecDeque<Step>) {
        let oldest_wins = self.setup.has_bug(Bug::PplOldestWins);
        let stripes = by_stripe(entries);
        for entry in entries {
            let newer = stripes[&entry.stripe].iter().filter(|other| {
                let wins = other.number > entry.number;
                if oldest_wins { other.number < entry.number } else { wins }
            });
            let is_all = entry.set.count_ones() == u32::from(self.setup.data_chunks);
            let payload = (!is_all).then_some(entry.payload);
            let Entry { stripe, rows, set: written, .. } = *entry;
            let step = Step::Partial { stripe, rows, written, payload, lost: false };
            let left = rows_left(rows, newer.map(|other| other.rows));
            steps.extend(left.into_iter().map(|rows| step.cut(rows)));
        }
    }

    /// For each row of a chunk the newest entry that has the chunk counts; of parity the newest of all.
    fn add_journal_steps(&self, entries: &[Entry], steps: &mut VecDeque<Step>) {
        let oldest_wins = self.setup.has_bug(Bug::JournalOldestWins);
        let skips_parity = self.setup.has_bug(Bug::JournalSkipsParity);
        let stripes = by_stripe(entries);
        for entry in entries {
            let roles = (0..128u16).filter(|role| entry.set >> role & 1 == 1);
            for (index, role) in roles.enumerate() {
                let is_parity = role >= self.setup.data_chunks;
                if is_parity && skips_parity {
                    continue;
                }
                let newer = stripes[&entry.stripe].iter().filter(|other| {
                    let wins = other.number > entry.number;
                    (is_parity || other.set >> role & 1 == 1)
                        && if oldest_wins { other.number < entry.number } else { wins }
                });
                let Entry { stripe, rows, .. } = *entry;
                let from = entry.payload + index as u64 * (rows.1 - rows.0);
                let step = Step::Copy { stripe, rows, role, from };
                let left = rows_left(rows, newer.map(|other| other.rows));
                steps.extend(left.into_iter().map(|rows| step.cut(rows)));
            }
        }
    }

    /// Whether a replay is under way; requests and background work wait for its end.
    pub(in crate::array) fn is_replaying(&self) -> bool {
        self.log.replay.stage != Stage::Over
    }

    /// Whether a replay is to begin at the next input.
    pub(in crate::array) fn is_replay_due(&self) -> bool {
        self.log.replay.stage == Stage::Due
    }

    /// Begins a replay that is due.
    pub(in crate::array) fn begin_replay(&mut self) {
        if self.log.replay.stage == Stage::Due {
            self.outputs.push_back(Output::Event(Event::Started(Work::Replay)));
            let mut steps = VecDeque::new();
            for entries in std::mem::take(&mut self.log.replay.found) {
                if self.logs_partial_parity() {
                    self.add_partial_steps(&entries, &mut steps);
                } else {
                    self.add_journal_steps(&entries, &mut steps);
                }
            }
            if !self.setup.has_bug(Bug::ReplayMissing) {
                self.log.replay.steps = steps;
            }
            self.next_replay_step();
        }
    }

    /// Begins the first step that can be done.
    fn next_replay_step(&mut self) {
        while let Some(step) = self.log.replay.steps.front().copied() {
            if self.members.stopped {
                self.log.replay.complete = false;
                self.log.replay.steps.clear();
                break;
            }
            self.log.replay.stage = Stage::Read;
            self.log.replay.again = false;
            self.log.replay.bad_row = None;
            let begun = match step {
                Step::Partial { .. } => self.read_partial(step),
                Step::Copy { stripe, role, .. } => {
                    let member = self.setup.role_member(stripe, role);
                    !self.members.failed.contains(member) && self.read_copy(step)
                }
            };
            if begun {
                return;
            }
            self.log.replay.steps.pop_front();
        }
        self.log.replay.stage = Stage::Flush;
        self.start_round(Purpose::LogSpace, true, false);
    }

    /// Reads what P of some rows is made of; false when they are left alone. A step that is readable
    /// in part only is cut.
    fn read_partial(&mut self, step: Step) -> bool {
        let Step::Partial { stripe, rows, written, payload, .. } = step else { return false };
        let (start, p_role) = (self.setup.member_start(stripe), self.setup.data_chunks);
        let p = self.setup.role_member(stripe, p_role);
        if self.members.failed.contains(p) {
            return false;
        }
        let chunks = || (0..p_role).filter(|k| written >> k & 1 == 1);
        for k in chunks() {
            let member = self.setup.role_member(stripe, k);
            if self.members.failed.contains(member) {
                self.lose_parity(step);
                return false;
            }
            if let Some(bad) = self.first_lacking(member, start + rows.0, start + rows.1) {
                self.lose_parity(step);
                self.skip_row(step, bad - start);
                return false;
            }
        }
        let len = (rows.1 - rows.0) as u32;
        for k in chunks() {
            let target = Target {
                member: self.setup.role_member(stripe, k),
                at: Sector(start + rows.0),
                len,
            };
            self.emit_replay(IoOp::Read, target, k);
        }
        if let Some(at) = payload {
            self.emit_replay(IoOp::Read, Target { member: p, at: Sector(at), len }, p_role + 1);
        }
        true
    }

    /// Neither the log nor all chunks of a row can be read: nothing may be computed from its P.
    fn lose_parity(&mut self, step: Step) {
        let Step::Partial { stripe, rows, lost: true, .. } = step else { return };
        let (start, p) = (
            self.setup.member_start(stripe),
            self.setup.role_member(stripe, self.setup.data_chunks),
        );
        if self.members[p].bad.insert(start + rows.0, start + rows.1) {
            self.members.note_partial(p);
        } else {
            self.log.replay.complete = false;
        }
    }

    /// The first sector of a range that a member in service lacks.
    fn first_lacking(&self, member: MemberIndex, from: u64, to: u64) -> Option<u64> {
        if !self.members.partial.contains(member) {
            return None;
        }
        (from..to).find(|at| self.members.lacks(&self.setup, member, Sector(*at), 1))
    }

    /// The rows of a step that members read and write with this one.
    fn block_of(&self, step: Step, row: u64) -> (u64, u64) {
        let (rows, block) = (step.rows(), self.setup.member_block());
        let row = row.clamp(rows.0, rows.1 - 1) / block * block;
        (row.max(rows.0), (row + block).min(rows.1))
    }

    /// Goes on with the rows around one that cannot be read; the step itself is dropped by the caller.
    fn skip_row(&mut self, step: Step, row: u64) {
        let (rows, bad) = (step.rows(), self.block_of(step, row));
        let steps = &mut self.log.replay.steps;
        for rows in [(bad.1, rows.1), (rows.0, bad.0)].into_iter().filter(|rows| rows.0 < rows.1) {
            // Behind the step itself, which goes first.
            steps.insert(1, step.cut(rows));
        }
    }

    fn read_copy(&mut self, step: Step) -> bool {
        let Step::Copy { rows, from, role, .. } = step else { return false };
        let len = (rows.1 - rows.0) as u32;
        let target = Target { member: self.setup.journal(), at: Sector(from), len };
        self.emit_replay(IoOp::Read, target, role);
        true
    }

    /// The rows of a step in the scratch that a role has there.
    fn replay_rows(&self, role: u16, len: u32) -> SegmentList {
        let offset = (u64::from(role) * self.setup.plan_rows) as u32;
        // No plan is under way: its scratch is free.
        SegmentList { first: Segment { token: self.setup.scratch_token(0), offset, len }, ..EMPTY }
    }

    fn emit_replay(&mut self, op: IoOp, target: Target, role: u16) {
        let list = self.replay_rows(role, target.len);
        self.emit(Owner::Log, op, false, target, list);
    }

    pub(in crate::array) fn count_replay_io(&mut self) {
        self.log.replay.pending += 1;
    }

    pub(in crate::array) fn replay_io_ended(&mut self, io: &IoState, outcome: IoOutcome) {
        self.log.replay.pending -= 1;
        if outcome != IoOutcome::Ok {
            self.replay_io_failed(io, outcome);
        }
        if self.log.replay.pending > 0 {
            return;
        }
        if self.log.replay.again {
            self.next_replay_step();
            return;
        }
        let step = *self.log.replay.steps.front().expect("a step is under way");
        if let Some((row, in_log)) = self.log.replay.bad_row.take() {
            self.skip_row(step, row);
            match (in_log, step) {
                (true, Step::Partial { stripe, .. }) => {
                    let (rows, written) =
                        (self.block_of(step, row), (1 << self.setup.data_chunks) - 1);
                    let step = Step::Partial { stripe, rows, written, payload: None, lost: true };
                    self.log.replay.steps.insert(1, step);
                }
                _ => self.lose_parity(step),
            }
            self.end_replay_step();
            return;
        }
        match (self.log.replay.stage, step) {
            (Stage::Read, Step::Partial { .. }) => self.compute_partial(step),
            (Stage::Read, Step::Copy { role, .. }) => self.write_replayed(step, role),
            _ => self.end_replay_step(),
        }
    }

    fn replay_io_failed(&mut self, io: &IoState, outcome: IoOutcome) {
        let step = self.log.replay.steps.front().copied();
        match (io.op, outcome, step) {
            (IoOp::Read, _, _) if io.member == self.setup.journal() => {
                self.log.replay.complete = false;
                self.log.replay.steps.clear();
                self.log.replay.again = true;
                self.fail_device(io.member);
            }
            (IoOp::Read, IoOutcome::MediaError { first_bad }, Some(step)) => {
                // Row by row as the range that was read has it.
                let row = step.rows().0 + first_bad.0.saturating_sub(io.at.0);
                let row = self.block_of(step, row).0;
                let in_log =
                    io.member == self.setup.role_member(step.stripe(), self.setup.data_chunks);
                let known = self.log.replay.bad_row.unwrap_or((row, in_log));
                self.log.replay.bad_row = Some(known.min((row, in_log)));
            }
            _ => {
                self.log.replay.again = true;
                self.fail_device(io.member);
            }
        }
    }

    /// P = partial parity XOR the written chunks.
    fn compute_partial(&mut self, step: Step) {
        let Step::Partial { rows, written, payload, .. } = step else { return };
        let len = (rows.1 - rows.0) as u32;
        let p_role = self.setup.data_chunks;
        let chunks = (0..p_role).filter(|k| written >> k & 1 == 1);
        let sources = chunks.chain(payload.map(|_| p_role + 1));
        let job = self.jobs.start(JobOwner::Log, Kernel::Xor, len);
        for role in sources {
            let name = if role < p_role { Role::Data(0) } else { Role::P };
            self.jobs.add_source(job, self.replay_rows(role, len), name);
        }
        self.jobs.add_target(job, self.replay_rows(p_role, len), Role::P);
        self.log.replay.stage = Stage::Compute;
        self.outputs.push_back(Output::Compute { job });
    }

    pub(in crate::array) fn replay_computed(&mut self, result: JobResult) {
        let step = *self.log.replay.steps.front().expect("a step is under way");
        if result == JobResult::Done {
            self.write_replayed(step, self.setup.data_chunks);
        } else {
            self.log.replay.complete = false;
            self.end_replay_step();
        }
    }

    /// Writes a role's rows of a step, unless its member failed meanwhile.
    fn write_replayed(&mut self, step: Step, role: u16) {
        let (stripe, rows) = (step.stripe(), step.rows());
        let member = self.setup.role_member(stripe, role);
        if self.members.failed.contains(member) {
            self.end_replay_step();
            return;
        }
        self.log.replay.stage = Stage::Write;
        let at = Sector(self.setup.member_start(stripe) + rows.0);
        let target = Target { member, at, len: (rows.1 - rows.0) as u32 };
        self.emit_replay(IoOp::Write, target, role);
    }

    fn end_replay_step(&mut self) {
        self.log.replay.steps.pop_front();
        self.next_replay_step();
    }

    /// Everything replayed is durable.
    pub(super) fn replay_flushed(&mut self) {
        self.log.replay.stage = Stage::Record;
        self.log.journal.retire();
        // An array that lost too much records nothing any more.
        if self.log.journal.is_recorded() || self.members.has_lost(&self.setup) {
            self.end_replay();
        } else {
            self.state_changed();
        }
    }

    /// The superblocks were written, or never will be.
    pub(in crate::array) fn replay_recorded(&mut self) {
        let told = self.log.journal.is_recorded() || self.members.has_lost(&self.setup);
        if self.log.replay.stage == Stage::Record && told {
            self.end_replay();
        }
    }

    fn end_replay(&mut self) {
        self.log.replay.stage = Stage::Over;
        let event =
            Event::Finished { work: Work::Replay, mismatched: Sectors::ZERO, lost: Sectors::ZERO };
        self.outputs.push_back(Output::Event(event));
        self.replay_over(self.log.replay.complete);
        self.release_held();
    }
}
