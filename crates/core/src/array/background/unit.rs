//! One range of background work, from its lock to its end.
//!
//! A unit goes through phases as a plan does; all I/O of a phase is sent out at once. What holds for
//! some of its blocks only (a mismatch, a block that cannot be had) is dealt with block by block:
//! the unit's window then steps through them.

use super::super::lists::NIL;
use super::super::member_set::MemberSet;
use super::sources::{Roles, Sources, has};
use super::{Array, Bug};
use crate::array::ios::{IoState, Owner, Target};
use crate::array::jobs::JobOwner;
use crate::contract::{
    Believe, IoOp, IoOutcome, JobResult, Kernel, Output, Role, Scrub, Segment, SegmentList,
};
use crate::units::{MemberIndex, Sector};

/// What a unit is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Task {
    Rebuild(MemberIndex),
    Replace(MemberIndex),
    Resync,
    Scrub(Scrub),
    /// What this member could not read is written anew.
    Heal(MemberIndex),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// Choose sources for the window.
    Plan,
    /// Healing: what can the member read by now?
    Probe,
    Read,
    Recover,
    Compute,
    Compare,
    Locate,
    Write,
    /// On to the next window.
    Next,
    Done,
}

/// How a unit goes through its blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Steps {
    /// All at once.
    Whole,
    /// One by one, up to here; each is read on its own.
    Read(u32),
    /// One by one, up to here; all are read.
    Compare(u32),
}

/// A range that background work holds.
#[derive(Clone, Copy, Debug)]
pub(in crate::array) struct Unit {
    /// Member I/Os or jobs of this phase not yet ended.
    pub(in crate::array) pending: u32,
    pub(super) task: Task,
    /// The piece of work it belongs to.
    pub(super) serial: u32,
    /// Where in the work it lies; nothing for healing.
    pub(super) position: u64,
    /// The range that is locked: rows of the members, or sectors of the array.
    pub(super) at: u64,
    pub(super) len: u32,
    pub(super) stripe: u64,
    /// The part worked on, counted from the start.
    pub(super) window: (u32, u32),
    pub(super) steps: Steps,
    pub(super) phase: Phase,
    pub(super) sources: Sources,
    /// Members whose reads failed in this window.
    pub(super) avoid: MemberSet,
    /// A read of this phase failed.
    pub(super) again: bool,
    /// A job of this phase failed.
    pub(super) failed: bool,
    /// Where redundancy disagrees, counted from the window's start.
    pub(super) differs: Option<(u32, u32)>,
    pub(super) located: Option<u16>,
    /// What the probe of a heal found.
    pub(super) probed: Option<IoOutcome>,
    /// Healing: the block that was written last, and how often.
    pub(super) block: Option<u32>,
    pub(super) tries: u8,
    /// What a member could not read, to be healed afterwards.
    pub(super) sick: Option<(MemberIndex, u64, u32)>,
    /// News of this unit, joined where blocks touch.
    pub(super) news: News,
    pub(super) mismatched: u32,
    pub(super) lost: u32,
}

/// What is told of runs of blocks when they end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Told {
    Mismatch(Option<MemberIndex>),
    Mended(Roles),
    Bad(Roles),
    Healed,
}

/// Runs of blocks of which something is to be told; a mismatch and its mending run side by side.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct News {
    pub(super) runs: [Option<(Told, u32, u32)>; 2],
}

impl Unit {
    pub(in crate::array) fn idle() -> Self {
        Self {
            pending: 0,
            task: Task::Resync,
            serial: 0,
            position: 0,
            at: 0,
            len: 0,
            stripe: 0,
            window: (0, 0),
            steps: Steps::Whole,
            phase: Phase::Plan,
            sources: Sources::default(),
            avoid: MemberSet::NONE,
            again: false,
            failed: false,
            differs: None,
            located: None,
            probed: None,
            block: None,
            tries: 0,
            sick: None,
            news: News::default(),
            mismatched: 0,
            lost: 0,
        }
    }

    pub(super) fn add_to_key(&self, add: &mut dyn FnMut(u64)) {
        add(match self.task {
            Task::Rebuild(member) => u64::from(member.0),
            Task::Replace(member) => u64::from(member.0) | 1 << 16,
            Task::Resync => 2 << 16,
            Task::Scrub(_) => 3 << 16,
            Task::Heal(member) => u64::from(member.0) | 4 << 16,
        });
        add(self.at);
        add(u64::from(self.len) | (self.phase as u64) << 32 | u64::from(self.again) << 40);
        add(u64::from(self.window.0) | u64::from(self.window.1) << 32);
        add(u64::from(self.pending) | u64::from(self.tries) << 32);
        add(match self.steps {
            Steps::Whole => 0,
            Steps::Read(to) => 1 | u64::from(to) << 2,
            Steps::Compare(to) => 2 | u64::from(to) << 2,
        });
        add(self.avoid.bits() as u64);
        add((self.avoid.bits() >> 64) as u64);
        add(self.sources.read as u64);
        add(self.sources.write as u64);
    }

    fn window_len(&self) -> u32 {
        self.window.1 - self.window.0
    }
}

impl Array {
    /// Locks a unit's range and begins it; the slot is there.
    pub(super) fn enter_unit_range(&mut self, unit: Unit) {
        let Some(slot) = self.background.units.insert(unit) else { return };
        let unlocked = match unit.task {
            Task::Heal(_) => self.setup.has_bug(Bug::HealBeforeLock),
            Task::Rebuild(_) => self.setup.has_bug(Bug::RebuildUnlocked),
            _ => false,
        };
        let (from, to) = (unit.at, unit.at + u64::from(unit.len));
        if unlocked || self.locks.acquire(self.setup.unit_owner(slot), from, to) {
            self.begin_unit(slot);
        }
    }

    /// A unit has its range to itself now.
    pub(in crate::array) fn begin_unit(&mut self, slot: u32) {
        let unit = self.background.units[slot];
        self.cache.forget_rows(&self.setup, unit.at, unit.at + u64::from(unit.len));
        self.enter_unit(slot);
    }

    fn enter_unit(&mut self, slot: u32) {
        if !self.starved.units.is_empty() || !self.issue_unit(slot) {
            self.starved.units.push_back(slot);
        }
    }

    /// Sends out a phase of a unit, going through phases that have no I/O; false when it must wait
    /// for room.
    pub(in crate::array) fn issue_unit(&mut self, slot: u32) -> bool {
        loop {
            if self.background.units[slot].phase == Phase::Done || self.is_void(slot) {
                self.end_unit(slot);
                return true;
            }
            if self.ios.slots.available() < 2 * usize::from(self.setup.layout.members) {
                return false;
            }
            let unit = &mut self.background.units[slot];
            unit.failed = false;
            match unit.phase {
                Phase::Plan => {
                    self.plan_unit(slot);
                    continue;
                }
                Phase::Next => {
                    self.next_window(slot);
                    continue;
                }
                Phase::Probe => self.issue_probe(slot),
                Phase::Read => self.issue_unit_reads(slot),
                Phase::Recover => self.issue_unit_recovery(slot),
                Phase::Compute => self.issue_unit_parity(slot),
                Phase::Compare => self.issue_compare(slot),
                Phase::Locate => self.issue_locate(slot),
                Phase::Write => self.issue_unit_writes(slot),
                Phase::Done => {}
            }
            if self.background.units[slot].pending > 0 {
                return true;
            }
            self.unit_phase_ended(slot);
        }
    }

    /// Whether what a unit was to do is no longer wanted.
    fn is_void(&self, slot: u32) -> bool {
        let unit = &self.background.units[slot];
        let over = unit.serial != self.background.serial || self.background.work.is_none();
        self.members.stopped
            || match unit.task {
                Task::Rebuild(member) => over || !self.members.rebuilding.contains(member),
                Task::Replace(member) => {
                    over || !self.members.replacing.contains(member)
                        || self.members.failed.contains(member)
                }
                Task::Resync | Task::Scrub(_) => over,
                Task::Heal(member) => self.members.failed.contains(member),
            }
    }

    fn plan_unit(&mut self, slot: u32) {
        let unit = self.background.units[slot];
        if let Some(sources) = self.sources(&unit) {
            let state = &mut self.background.units[slot];
            state.sources = sources;
            state.phase = Phase::Read;
            return;
        }
        self.unit_lacks_sources(slot);
    }

    /// The window cannot be had: smaller ones may be, and what cannot is lost.
    fn unit_lacks_sources(&mut self, slot: u32) {
        let block = self.setup.member_block() as u32;
        let unit = &mut self.background.units[slot];
        if unit.window_len() > block && !matches!(unit.task, Task::Heal(_)) {
            unit.steps = Steps::Read(unit.len);
            unit.window = (0, block.min(unit.len));
            unit.avoid = MemberSet::NONE;
            unit.phase = Phase::Plan;
            return;
        }
        self.lose_window(slot);
    }

    /// What follows a phase of which nothing is outstanding.
    fn unit_phase_ended(&mut self, slot: u32) {
        let unit = &mut self.background.units[slot];
        let scrub = matches!(unit.task, Task::Scrub(_));
        if unit.phase == Phase::Probe {
            self.probe_ended(slot);
            return;
        }
        if std::mem::take(&mut unit.again) {
            // Without the members that could not read. A scrub needs them all.
            unit.phase = Phase::Plan;
            if scrub {
                self.unit_lacks_sources(slot);
            }
            return;
        }
        unit.phase = match unit.phase {
            // Something could not be computed: as good as unreadable.
            Phase::Recover | Phase::Compute | Phase::Compare if unit.failed => {
                self.lose_window(slot);
                return;
            }
            Phase::Read if scrub => Phase::Compute,
            Phase::Read => Phase::Recover,
            Phase::Recover if scrub => Phase::Write,
            Phase::Recover => Phase::Compute,
            Phase::Compute if scrub => Phase::Compare,
            Phase::Compute => Phase::Write,
            Phase::Compare => {
                self.compared(slot);
                return;
            }
            Phase::Locate => {
                self.block_differs(slot);
                return;
            }
            Phase::Write => {
                self.unit_written(slot);
                return;
            }
            // Set by what the phase did.
            phase @ (Phase::Plan | Phase::Probe | Phase::Next | Phase::Done) => phase,
        };
    }

    /// Moves the window on; after the last one the unit is done.
    fn next_window(&mut self, slot: u32) {
        let block = self.setup.member_block() as u32;
        let unit = &mut self.background.units[slot];
        let (to, phase) = match unit.steps {
            Steps::Whole => (0, Phase::Done),
            Steps::Read(to) => (to, Phase::Plan),
            Steps::Compare(to) => (to, Phase::Compare),
        };
        let from = unit.window.1;
        if from >= to {
            unit.phase = Phase::Done;
            return;
        }
        unit.window = (from, (from + block).min(to));
        unit.phase = phase;
        unit.avoid = MemberSet::NONE;
    }

    /// All jobs that compare have ended.
    fn compared(&mut self, slot: u32) {
        let block = self.setup.member_block() as u32;
        let q = self.setup.parities > 1;
        let unit = &mut self.background.units[slot];
        let Some((from, to)) = unit.differs.take() else {
            unit.phase = Phase::Next;
            return;
        };
        if unit.window_len() > block {
            // Block by block: each is told, and mended, on its own.
            let start = unit.window.0;
            let end = (start + to.max(from + 1)).next_multiple_of(block).min(unit.len);
            let first = (start + from) / block * block;
            unit.window = (first, (first + block).min(end));
            unit.steps = Steps::Compare(end);
            unit.phase = Phase::Compare;
        } else if q {
            unit.located = None;
            unit.phase = Phase::Locate;
        } else {
            unit.located = None;
            self.block_differs(slot);
        }
    }

    /// Redundancy disagrees in the window, which is one block; P and Q may have said who is wrong.
    fn block_differs(&mut self, slot: u32) {
        let unit = self.background.units[slot];
        let Task::Scrub(scrub) = unit.task else { return };
        let guilty = unit.located.map(|role| self.unit_place(&unit, role).member);
        self.tell_run(slot, 0, Told::Mismatch(guilty));
        let sources = self.mending(&unit, scrub);
        let state = &mut self.background.units[slot];
        state.mismatched += unit.window_len();
        match sources {
            Some(sources) => {
                state.sources = sources;
                state.phase = Phase::Recover;
            }
            None => state.phase = Phase::Next,
        }
    }

    /// What a scrub writes where redundancy disagrees, if anything.
    fn mending(&self, unit: &Unit, scrub: Scrub) -> Option<Sources> {
        let data = self.setup.data_chunks;
        let parities: Roles = ((1 << self.setup.parities) - 1) << data;
        let anew = Sources { write: parities, ..Sources::default() };
        let one = |role: u16| match role < data {
            true => Sources::anew_by_p(role),
            false => Sources { write: 1 << role, ..Sources::default() },
        };
        let copies = (1..self.setup.copies).fold(0, |set, copy| set | 1 << copy);
        match (scrub, unit.located) {
            (Scrub::Check, _)
                if self.setup.has_bug(Bug::CheckWrites) && self.setup.parities > 0 =>
            {
                Some(anew)
            }
            (Scrub::Check, _) => None,
            (Scrub::Repair(Believe::Nobody), Some(role)) => Some(one(role)),
            (Scrub::Repair(Believe::Nobody), None) => {
                (self.setup.has_bug(Bug::RepairGuesses) && self.setup.parities > 0).then_some(anew)
            }
            (Scrub::Repair(Believe::Data), _) if self.setup.parities > 0 => Some(anew),
            (Scrub::Repair(Believe::Data), _) => {
                Some(Sources { write: copies, ..Sources::default() })
            }
            (Scrub::Repair(Believe::NotMember(member)), _) => {
                let role = self.role_of(unit, member)?;
                if self.setup.parities > 0 {
                    return Some(one(role));
                }
                let copy = u16::from(role == 0);
                Some(Sources { copy, write: 1 << role, ..Sources::default() })
            }
        }
    }

    fn unit_written(&mut self, slot: u32) {
        let unit = self.background.units[slot];
        match unit.task {
            Task::Heal(_) => self.background.units[slot].phase = Phase::Probe,
            Task::Scrub(_) => {
                self.tell_run(slot, 1, Told::Mended(unit.sources.write));
                self.background.units[slot].phase = Phase::Next;
            }
            _ => self.background.units[slot].phase = Phase::Next,
        }
    }

    /// One I/O of a unit has ended.
    pub(in crate::array) fn unit_io_ended(&mut self, slot: u32, io: &IoState, outcome: IoOutcome) {
        self.background.units[slot].pending -= 1;
        let guesses = self.setup.has_bug(Bug::RebuildGuesses) && io.op == IoOp::Read;
        let probe = self.background.units[slot].phase == Phase::Probe;
        if probe {
            self.background.units[slot].probed = Some(outcome);
        }
        if outcome == IoOutcome::Ok || guesses && !probe {
            if io.op == IoOp::Write && !self.members.partial.is_empty() {
                self.mended_by_write(io);
            }
        } else if io.op == IoOp::Read {
            self.unit_read_failed(slot, io, outcome);
        } else {
            self.unit_write_failed(slot, io, outcome);
        }
        if self.background.units[slot].pending == 0 {
            self.unit_phase_ended(slot);
            self.enter_unit(slot);
        }
    }

    fn unit_read_failed(&mut self, slot: u32, io: &IoState, outcome: IoOutcome) {
        match outcome {
            IoOutcome::Gone => self.fail_device(io.member),
            IoOutcome::Timeout => self.count_error(io.member),
            _ => {}
        }
        let unit = &mut self.background.units[slot];
        if unit.phase == Phase::Probe {
            return;
        }
        unit.again = true;
        // The drive may have been replaced since: then it is simply read again.
        if self.setup.is_member(io.member) {
            unit.avoid.insert(io.member);
            if let IoOutcome::MediaError { first_bad } = outcome {
                let end = io.at.0 + u64::from(io.len);
                let from = first_bad.0.clamp(io.at.0, end - 1);
                unit.sick.get_or_insert((io.member, from, (end - from) as u32));
            }
        }
    }

    fn unit_write_failed(&mut self, slot: u32, io: &IoState, outcome: IoOutcome) {
        // Like md, the last copy stays in service: a bad sector on it is better than no array.
        let last =
            self.setup.is_member(io.member) && self.members.is_last_copy(&self.setup, io.member);
        if !last || outcome == IoOutcome::Gone {
            self.fail_device(io.member);
        }
        let heals = matches!(self.background.units[slot].task, Task::Heal(_));
        if heals {
            // What could not be written will not be read either.
            self.background.units[slot].tries = u8::MAX;
        }
    }

    /// One job of a unit has ended.
    pub(in crate::array) fn unit_computed(&mut self, slot: u32, result: JobResult) {
        let unit = &mut self.background.units[slot];
        unit.pending -= 1;
        match result {
            JobResult::Done | JobResult::Equal => {}
            JobResult::Differs { from, to } => {
                let (known_from, known_to) = unit.differs.unwrap_or((from, to));
                unit.differs = Some((from.min(known_from), to.max(known_to)));
            }
            JobResult::Located(role) => unit.located = Some(role),
            _ => unit.failed = true,
        }
        if unit.phase == Phase::Locate {
            // What P and Q cannot name is told by the mismatch itself.
            unit.differs = None;
        }
        if unit.pending == 0 {
            self.unit_phase_ended(slot);
            self.enter_unit(slot);
        }
    }
}

/// What a unit sends out.
impl Array {
    fn unit_segment(&self, slot: u32, place: u16) -> Segment {
        let unit = &self.background.units[slot];
        let offset = u64::from(place) * self.setup.unit_rows + u64::from(unit.window.0);
        let token = self.setup.unit_token(slot);
        Segment { token, offset: offset as u32, len: unit.window_len() }
    }

    /// One segment, which needs no node of its own.
    fn unit_list(&self, slot: u32, place: u16) -> SegmentList {
        SegmentList { first: self.unit_segment(slot, place), rest: NIL }
    }

    /// Reads or writes a role's window from or to a place of the scratch.
    pub(super) fn send_window(
        &mut self,
        slot: u32,
        op: IoOp,
        device: MemberIndex,
        role: u16,
        place: u16,
    ) {
        let unit = self.background.units[slot];
        let mut at = self.unit_place(&unit, role).at.0 + u64::from(unit.window.0);
        let block = self.setup.member_block();
        let heals = matches!(unit.task, Task::Heal(_)) && op == IoOp::Write;
        if heals
            && self.setup.has_bug(Bug::HealWrongPlace)
            && at + 2 * block <= self.setup.sizes[0].0
        {
            at += block;
        }
        let target = Target { member: device, at: Sector(at), len: unit.window_len() };
        let list = self.unit_list(slot, place);
        self.emit(Owner::Unit(slot), op, false, target, list);
    }

    fn issue_unit_reads(&mut self, slot: u32) {
        let unit = self.background.units[slot];
        for role in (0..self.setup.width()).filter(|role| has(unit.sources.read, *role)) {
            let member = self.unit_place(&unit, role).member;
            self.send_window(slot, IoOp::Read, member, role, role);
        }
    }

    fn issue_unit_writes(&mut self, slot: u32) {
        let unit = self.background.units[slot];
        let scrub = matches!(unit.task, Task::Scrub(_));
        if self.setup.parities > 0 {
            let (from, to) = unit.window;
            self.cache.forget_rows(&self.setup, unit.at + u64::from(from), unit.at + u64::from(to));
        }
        for role in (0..self.setup.width()).filter(|role| has(unit.sources.write, *role)) {
            let place = match role.checked_sub(self.setup.data_chunks) {
                _ if self.setup.parities == 0 => unit.sources.copy,
                // A scrub made parity anew beside what it read.
                Some(parity) if scrub => self.setup.width() + parity,
                _ => role,
            };
            let member = self.unit_place(&unit, role).member;
            if let Task::Replace(member) = unit.task {
                self.send_window(slot, IoOp::Write, self.setup.replacement(member), role, place);
                continue;
            }
            if scrub && self.setup.has_bug(Bug::RepairWrongBlock) {
                let wrong = (role + 1) % self.setup.width();
                let member = self.unit_place(&unit, wrong).member;
                self.send_window(slot, IoOp::Write, member, wrong, place);
                continue;
            }
            if self.members.failed.contains(member) {
                continue;
            }
            self.send_window(slot, IoOp::Write, member, role, place);
            if self.members.replacing.contains(member) {
                self.send_window(slot, IoOp::Write, self.setup.replacement(member), role, place);
            }
        }
    }

    /// The job that computes what is lost.
    fn issue_unit_recovery(&mut self, slot: u32) {
        let unit = self.background.units[slot];
        let sources = unit.sources;
        if sources.lost().is_empty() || sources.write == 0 {
            return;
        }
        let data = self.setup.data_chunks;
        let kernel = if sources.is_xor() { Kernel::Xor } else { Kernel::Recover };
        let others = (0..data).filter(|role| !sources.lost().contains(role));
        let parities = (0..self.setup.parities).filter(|parity| sources.with >> parity & 1 == 1);
        let from = others.chain(parities.map(|parity| data + parity));
        self.unit_job(slot, kernel, from, sources.lost().iter().map(|role| (*role, *role)));
    }

    /// The job that makes parity anew: in its own place, or for a scrub beside it.
    fn issue_unit_parity(&mut self, slot: u32) {
        let unit = self.background.units[slot];
        let (data, width) = (self.setup.data_chunks, self.setup.width());
        let scrub = matches!(unit.task, Task::Scrub(_));
        let compute = if scrub { (1 << self.setup.parities) - 1 } else { unit.sources.compute };
        if compute == 0 {
            return;
        }
        let kernel = if compute == 1 { Kernel::Xor } else { Kernel::Pq };
        let targets = (0..self.setup.parities).filter(|parity| compute >> parity & 1 == 1);
        let place = |parity: u16| if scrub { width + parity } else { data + parity };
        let targets = targets.map(|parity| (place(parity), data + parity));
        self.unit_job(slot, kernel, 0..data, targets);
    }

    /// The jobs that compare parity with what it should be, or copies with each other.
    fn issue_compare(&mut self, slot: u32) {
        let (data, width) = (self.setup.data_chunks, self.setup.width());
        self.background.units[slot].differs = None;
        if self.setup.parities == 0 {
            self.unit_job(slot, Kernel::Compare, 0..width, std::iter::empty());
        }
        for parity in 0..self.setup.parities {
            let pair = [data + parity, width + parity].into_iter();
            self.unit_job(slot, Kernel::Compare, pair, std::iter::empty());
        }
    }

    /// The job that names the block which explains all that disagrees.
    fn issue_locate(&mut self, slot: u32) {
        let width = self.setup.width();
        self.unit_job(slot, Kernel::Locate, 0..width, std::iter::empty());
    }

    /// Sends a job over places of the scratch; targets come with their roles.
    fn unit_job(
        &mut self,
        slot: u32,
        kernel: Kernel,
        sources: impl Iterator<Item = u16>,
        targets: impl Iterator<Item = (u16, u16)>,
    ) {
        let unit = self.background.units[slot];
        let job = self.jobs.start(JobOwner::Unit(slot), kernel, unit.window_len());
        let width = self.setup.width();
        for place in sources {
            // Parity made by a scrub stands behind what it was compared with.
            let role = if place < width { place } else { place - self.setup.parities };
            let role = self.operand_name(&unit, role);
            self.jobs.add_source(job, self.unit_list(slot, place), role);
        }
        for (place, role) in targets {
            let role = self.operand_name(&unit, role);
            self.jobs.add_target(job, self.unit_list(slot, place), role);
        }
        self.background.units[slot].pending += 1;
        self.outputs.push_back(Output::Compute { job });
    }

    /// What a role is called in a job.
    fn operand_name(&self, unit: &Unit, role: u16) -> Role {
        match self.setup.parities {
            0 => Role::default(),
            _ => self.setup.role_name(unit.stripe, role),
        }
    }
}
