//! Carries out ranges of background work, phase by phase.

use super::super::Array;
use crate::array::background::{Phase, Task, Told, Unit, UnitJob, has, places};
use crate::array::ios::{IoState, Owner, Target};
use crate::array::jobs::JobOwner;
use crate::bugs::Bug;
use crate::contract::{IoOp, IoOutcome, JobResult, Output};
use crate::units::{MemberIndex, Sector};

impl Array {
    /// Locks a unit's range and begins it; the slot is there.
    pub(in crate::array::planner) fn enter_unit_range(&mut self, unit: Unit) {
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
    pub(in crate::array::planner) fn begin_unit(&mut self, slot: u32) {
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
    pub(in crate::array::planner) fn issue_unit(&mut self, slot: u32) -> bool {
        loop {
            if self.background.units[slot].phase == Phase::Done
                || self.background.is_void(slot, &self.members)
            {
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
                    self.background.units[slot].next_window(&self.setup);
                    continue;
                }
                Phase::Probe => self.issue_probe(slot),
                Phase::Read => self.issue_unit_reads(slot),
                Phase::Recover => {
                    let job = unit.recovery(&self.setup);
                    job.into_iter().for_each(|job| self.unit_job(slot, job));
                }
                Phase::Compute => {
                    let job = unit.parity(&self.setup);
                    job.into_iter().for_each(|job| self.unit_job(slot, job));
                }
                Phase::Compare => {
                    unit.differs = None;
                    Unit::comparisons(&self.setup).for_each(|job| self.unit_job(slot, job));
                }
                Phase::Locate => self.unit_job(slot, Unit::location(&self.setup)),
                Phase::Write => self.issue_unit_writes(slot),
                Phase::Done => {}
            }
            if self.background.units[slot].pending > 0 {
                return true;
            }
            self.unit_phase_ended(slot);
        }
    }

    fn plan_unit(&mut self, slot: u32) {
        let unit = &self.background.units[slot];
        let sources =
            unit.sources(&self.setup, &self.members, &self.background.trust(&self.permits.bitmap));
        match sources {
            Some(sources) => self.background.units[slot].plan(sources),
            None => self.unit_lacks_sources(slot),
        }
    }

    /// The window cannot be had: smaller ones may be, and what cannot is lost.
    fn unit_lacks_sources(&mut self, slot: u32) {
        if !self.background.units[slot].lacks_sources(&self.setup) {
            self.lose_window(slot);
        }
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
                if self.background.units[slot].compared(&self.setup) {
                    self.block_differs(slot);
                }
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

    /// Redundancy disagrees in the window, which is one block; P and Q may have said who is wrong.
    fn block_differs(&mut self, slot: u32) {
        let Task::Scrub(scrub) = self.background.units[slot].task else { return };
        let guilty = self.background.units[slot].block_differs(&self.setup, scrub);
        self.tell_run(slot, 0, Told::Mismatch(guilty));
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
    pub(in crate::array::planner) fn unit_io_ended(
        &mut self,
        slot: u32,
        io: &IoState,
        outcome: IoOutcome,
    ) {
        let guesses = self.setup.has_bug(Bug::RebuildGuesses) && io.op == IoOp::Read;
        let unit = &mut self.background.units[slot];
        unit.io_ended(outcome);
        if outcome == IoOutcome::Ok || guesses && unit.phase != Phase::Probe {
            if io.op == IoOp::Write && !self.members.partial.is_empty() {
                self.mended_by_write(io);
            }
        } else if io.op == IoOp::Read {
            self.unit_read_failed(slot, io, outcome);
        } else {
            self.unit_write_failed(slot, io, outcome);
        }
        self.unit_goes_on(slot);
    }

    /// Goes on with a unit of which nothing is in flight.
    fn unit_goes_on(&mut self, slot: u32) {
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
        unit.read_failed(&self.setup, io.member, (io.at, io.len), outcome);
    }

    fn unit_write_failed(&mut self, slot: u32, io: &IoState, outcome: IoOutcome) {
        // Like md, the last copy stays in service: a bad sector on it is better than no array.
        let last =
            self.setup.is_member(io.member) && self.members.is_last_copy(&self.setup, io.member);
        if !last || outcome == IoOutcome::Gone {
            self.fail_device(io.member);
        }
        self.background.units[slot].write_failed();
    }

    /// One job of a unit has ended.
    pub(in crate::array::planner) fn unit_computed(&mut self, slot: u32, result: JobResult) {
        self.background.units[slot].computed(result);
        self.unit_goes_on(slot);
    }
}

/// What a unit sends out.
impl Array {
    /// Reads or writes a role's window from or to a place of the scratch.
    pub(in crate::array::planner) fn send_window(
        &mut self,
        slot: u32,
        op: IoOp,
        device: MemberIndex,
        role: u16,
        place: u16,
    ) {
        let unit = self.background.units[slot];
        let mut at = unit.place(&self.setup, role).at.0 + u64::from(unit.window.0);
        let block = self.setup.member_block();
        let heals = matches!(unit.task, Task::Heal(_)) && op == IoOp::Write;
        if heals
            && self.setup.has_bug(Bug::HealWrongPlace)
            && at + 2 * block <= self.setup.sizes[0].0
        {
            at += block;
        }
        let target = Target { member: device, at: Sector(at), len: unit.window_len() };
        let list = unit.list(&self.setup, slot, place);
        self.emit(Owner::Unit(slot), op, false, target, list);
    }

    fn issue_unit_reads(&mut self, slot: u32) {
        let unit = self.background.units[slot];
        for role in (0..self.setup.width()).filter(|role| has(unit.sources.read, *role)) {
            let member = unit.place(&self.setup, role).member;
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
            let place = unit.written_from(&self.setup, role);
            let member = unit.place(&self.setup, role).member;
            if let Task::Replace(member) = unit.task {
                self.send_window(slot, IoOp::Write, self.setup.replacement(member), role, place);
                continue;
            }
            if scrub && self.setup.has_bug(Bug::RepairWrongBlock) {
                let wrong = (role + 1) % self.setup.width();
                let member = unit.place(&self.setup, wrong).member;
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

    /// Sends a job over places of the scratch.
    fn unit_job(&mut self, slot: u32, job: UnitJob) {
        let unit = self.background.units[slot];
        let UnitJob { kernel, sources, targets } = job;
        let job = self.jobs.start(JobOwner::Unit(slot), kernel, unit.window_len());
        for place in places(&self.setup, sources) {
            let list = unit.list(&self.setup, slot, place);
            self.jobs.add_source(job, list, unit.place_name(&self.setup, place));
        }
        for place in places(&self.setup, targets) {
            let list = unit.list(&self.setup, slot, place);
            self.jobs.add_target(job, list, unit.place_name(&self.setup, place));
        }
        self.background.units[slot].pending += 1;
        self.outputs.push_back(Output::Compute { job });
    }
}
