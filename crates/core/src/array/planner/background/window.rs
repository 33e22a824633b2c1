//! Carries out ranges of background work, phase by phase.

use super::super::Array;
use crate::array::background::{Finding, Phase, ResyncWindow, Task, WindowJob, places};
use crate::array::ios::{IoState, Owner, Target};
use crate::array::jobs::JobOwner;
use crate::bugs::Bug;
use crate::contract::{IoOp, IoOutcome, JobResult, Output};
use crate::units::{MemberIndex, Sector};

impl Array {
    /// Locks a window's range and begins it; the slot is there.
    pub(in crate::array::planner) fn enter_window_range(&mut self, window: ResyncWindow) {
        let Some(slot) = self.background.windows.insert(window) else { return };
        let unlocked = match window.task {
            Task::Heal(_) => self.setup.has_bug(Bug::HealBeforeLock),
            Task::Rebuild(_) => self.setup.has_bug(Bug::RebuildUnlocked),
            _ => false,
        };
        if unlocked || self.locks.acquire(self.setup.window_owner(slot), window.at, window.end()) {
            self.begin_window(slot);
        }
    }

    /// A window has its range to itself now.
    pub(in crate::array::planner) fn begin_window(&mut self, slot: u32) {
        let window = self.background.windows[slot];
        self.cache.forget_rows(&self.setup, window.at, window.end());
        self.enter_window(slot);
    }

    fn enter_window(&mut self, slot: u32) {
        if !self.starved.windows.is_empty() || !self.issue_window(slot) {
            self.starved.windows.push_back(slot);
        }
    }

    /// Sends out a phase of a window, going through phases that have no I/O; false when it must wait
    /// for room.
    pub(in crate::array::planner) fn issue_window(&mut self, slot: u32) -> bool {
        loop {
            if self.background.windows[slot].phase == Phase::Done
                || self.background.is_void(slot, &self.members)
            {
                self.end_window(slot);
                return true;
            }
            if self.ios.slots.available() < 2 * usize::from(self.setup.layout.members) {
                return false;
            }
            let window = &mut self.background.windows[slot];
            window.failed = false;
            match window.phase {
                Phase::Plan => {
                    self.plan_window(slot);
                    continue;
                }
                Phase::Next => {
                    self.background.windows[slot].next_window(&self.setup);
                    continue;
                }
                Phase::Probe => self.issue_probe(slot),
                Phase::Read => self.issue_window_reads(slot),
                Phase::Recover => {
                    let job = window.recovery(&self.setup);
                    job.into_iter().for_each(|job| self.window_job(slot, job));
                }
                Phase::Compute => {
                    let job = window.parity(&self.setup);
                    job.into_iter().for_each(|job| self.window_job(slot, job));
                }
                Phase::Compare => {
                    window.differs = None;
                    ResyncWindow::comparisons(&self.setup)
                        .for_each(|job| self.window_job(slot, job));
                }
                Phase::Locate => self.window_job(slot, ResyncWindow::location(&self.setup)),
                Phase::Write => self.issue_window_writes(slot),
                Phase::Done => {}
            }
            if self.background.windows[slot].pending > 0 {
                return true;
            }
            self.window_phase_ended(slot);
        }
    }

    fn plan_window(&mut self, slot: u32) {
        let window = &self.background.windows[slot];
        let sources =
            window.sources(&self.setup, &self.members, &self.background.trust(&self.gate.bitmap));
        match sources {
            Some(sources) => self.background.windows[slot].plan(sources),
            None => self.window_lacks_sources(slot),
        }
    }

    /// The part cannot be had: smaller ones may be, and what cannot is lost.
    fn window_lacks_sources(&mut self, slot: u32) {
        if !self.background.windows[slot].lacks_sources(&self.setup) {
            self.lose_window(slot);
        }
    }

    /// What follows a phase of which nothing is outstanding.
    fn window_phase_ended(&mut self, slot: u32) {
        let window = &mut self.background.windows[slot];
        let scrub = matches!(window.task, Task::Scrub(_));
        if window.phase == Phase::Probe {
            self.probe_ended(slot);
            return;
        }
        if std::mem::take(&mut window.again) {
            // Without the members that could not read. A scrub needs them all. Of copies that may differ each block
            // is had from the first that can be read, as reads have it; so they are cut into these.
            window.phase = Phase::Plan;
            let differ = window.task == Task::Resync && self.setup.parities == 0;
            if scrub || differ && window.window_len() > self.setup.member_block() as u32 {
                self.window_lacks_sources(slot);
            }
            return;
        }
        window.phase = match window.phase {
            // Something could not be computed: as good as unreadable.
            Phase::Recover | Phase::Compute | Phase::Compare if window.failed => {
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
                if self.background.windows[slot].compared(&self.setup) {
                    self.block_differs(slot);
                }
                return;
            }
            Phase::Locate => {
                self.block_differs(slot);
                return;
            }
            Phase::Write => {
                self.window_written(slot);
                return;
            }
            // Set by what the phase did.
            phase @ (Phase::Plan | Phase::Probe | Phase::Next | Phase::Done) => phase,
        };
    }

    /// Redundancy disagrees in the part, which is one block; P and Q may have said who is wrong.
    fn block_differs(&mut self, slot: u32) {
        let Task::Scrub(scrub) = self.background.windows[slot].task else { return };
        let guilty = self.background.windows[slot].block_differs(&self.setup, scrub);
        self.notify_run(slot, 0, Finding::Mismatch(guilty));
    }

    fn window_written(&mut self, slot: u32) {
        let window = self.background.windows[slot];
        match window.task {
            Task::Heal(_) => self.background.windows[slot].phase = Phase::Probe,
            Task::Scrub(_) => {
                self.notify_run(slot, 1, Finding::Mended(window.sources.write));
                self.background.windows[slot].phase = Phase::Next;
            }
            _ => self.background.windows[slot].phase = Phase::Next,
        }
    }

    /// One I/O of a window has ended.
    pub(in crate::array::planner) fn window_io_ended(
        &mut self,
        slot: u32,
        io: &IoState,
        outcome: IoOutcome,
    ) {
        let guesses = self.setup.has_bug(Bug::RebuildGuesses) && io.op == IoOp::Read;
        self.members[io.member].background -= 1;
        let window = &mut self.background.windows[slot];
        window.io_ended(outcome);
        if outcome == IoOutcome::Ok || guesses && window.phase != Phase::Probe {
            if io.op == IoOp::Write && self.members.may_be_mended() {
                // What finds no room goes on being listed, which is all that it needs.
                let _ = self.mended_by_write(io);
            }
        } else if io.op == IoOp::Read {
            self.window_read_failed(slot, io, outcome);
        } else {
            self.window_write_failed(slot, io, outcome);
        }
        self.window_goes_on(slot);
    }

    /// Goes on with a window of which nothing is in flight.
    fn window_goes_on(&mut self, slot: u32) {
        if self.background.windows[slot].pending == 0 {
            self.window_phase_ended(slot);
            self.enter_window(slot);
        }
    }

    fn window_read_failed(&mut self, slot: u32, io: &IoState, outcome: IoOutcome) {
        match outcome {
            IoOutcome::Gone => self.fail_device(io.member),
            IoOutcome::Timeout => self.count_error(io.member),
            _ => {}
        }
        let window = &mut self.background.windows[slot];
        window.read_failed(&self.setup, io.member, (io.at, io.len), outcome);
    }

    fn window_write_failed(&mut self, slot: u32, io: &IoState, outcome: IoOutcome) {
        // Like md, the last copy stays in service: a bad sector on it is better than no array.
        let last =
            self.setup.is_member(io.member) && self.members.is_last_copy(&self.setup, io.member);
        if !last || outcome == IoOutcome::Gone {
            self.fail_device(io.member);
        }
        self.background.windows[slot].write_failed();
    }

    /// One job of a window has ended.
    pub(in crate::array::planner) fn window_computed(&mut self, slot: u32, result: JobResult) {
        self.background.windows[slot].computed(result);
        self.window_goes_on(slot);
    }
}

/// What a window sends out.
impl Array {
    /// Reads or writes a role's part from or to a place of the scratch.
    pub(in crate::array::planner) fn send_window(
        &mut self,
        slot: u32,
        op: IoOp,
        device: MemberIndex,
        role: u16,
        place: u16,
    ) {
        let window = self.background.windows[slot];
        let mut at = window.place(&self.setup, role).at.0 + u64::from(window.part.0);
        let block = self.setup.member_block();
        let heals = matches!(window.task, Task::Heal(_)) && op == IoOp::Write;
        if heals
            && self.setup.has_bug(Bug::HealWrongPlace)
            && at + 2 * block <= self.setup.sizes[0].0
        {
            at += block;
        }
        let target = Target { member: device, at: Sector(at), len: window.window_len() };
        let list = window.list(&self.setup, slot, place);
        self.emit(Owner::Window(slot), op, false, target, list);
    }

    fn issue_window_reads(&mut self, slot: u32) {
        let window = self.background.windows[slot];
        for role in window.sources.read.iter() {
            let member = window.place(&self.setup, role).member;
            self.send_window(slot, IoOp::Read, member, role, role);
        }
    }

    fn issue_window_writes(&mut self, slot: u32) {
        let window = self.background.windows[slot];
        let scrub = matches!(window.task, Task::Scrub(_));
        for role in window.sources.write.iter() {
            let place = window.written_from(&self.setup, role);
            let member = window.place(&self.setup, role).member;
            if let Task::Replace(member) = window.task {
                self.send_window(slot, IoOp::Write, self.setup.replacement(member), role, place);
                continue;
            }
            if scrub && self.setup.has_bug(Bug::RepairWrongBlock) {
                let wrong = (role + 1) % self.setup.width();
                let member = window.place(&self.setup, wrong).member;
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
    fn window_job(&mut self, slot: u32, job: WindowJob) {
        let window = self.background.windows[slot];
        let WindowJob { op: kernel, sources, targets } = job;
        let job = self.jobs.start(JobOwner::Window(slot), kernel, window.window_len());
        for place in places(&self.setup, sources) {
            let list = window.list(&self.setup, slot, place);
            self.jobs.add_source(job, list, window.place_name(&self.setup, place));
        }
        for place in places(&self.setup, targets) {
            let list = window.list(&self.setup, slot, place);
            self.jobs.add_target(job, list, window.place_name(&self.setup, place));
        }
        self.background.windows[slot].pending += 1;
        self.outputs.push_back(Output::Compute { job });
    }
}
