//! What a plan sends out: reads, jobs and writes, one range a member where rows touch.

use super::super::issue::{Owner, Target};
use super::super::lists::{EMPTY, ListBuilder};
use super::{Array, Band, JobState, Method, Phase, Plan, scratch_token};
use crate::contract::{IoOp, JobId, Kernel, Output, Segment, SegmentList};
use crate::units::Sector;

/// Where a role's rows of a band lie in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Memory {
    /// In the request's payload.
    Payload,
    /// In the plan's scratch buffer.
    Scratch,
}

impl Array {
    /// Whether the largest phase of the plan fits into what is free.
    pub(super) fn has_room_for(&self, plan: u32) -> bool {
        let lists = usize::from(self.layout.members) * super::MOST_BANDS;
        let segments = self.requests[self.plans[plan].request].segment_count();
        self.ios.available() >= lists && self.lists.available() >= segments + lists
    }

    pub(super) fn issue_reads(&mut self, plan: u32) {
        let (p, write) = (self.data_chunks(), self.plans[plan].write);
        for role in 0..=p {
            let needed = |band: &Band| read_memory(band, role, write, p);
            self.issue_role(plan, role, IoOp::Read, needed);
        }
    }

    pub(super) fn issue_writes(&mut self, plan: u32) {
        let data = self.data_chunks();
        for role in 0..=data {
            let member = self.role_member(self.plans[plan].stripe, role);
            if self.failed.contains(member) {
                continue;
            }
            let needed = |band: &Band| match role < data {
                true => band.covers(role).then_some(Memory::Payload),
                false => (band.method != Method::DataOnly).then_some(Memory::Scratch),
            };
            self.issue_role(plan, role, IoOp::Write, needed);
        }
    }

    fn data_chunks(&self) -> u16 {
        self.parity().data_chunks()
    }

    /// Sends out one role's I/O: the bands that need it, joined where their rows touch.
    fn issue_role(
        &mut self,
        plan: u32,
        role: u16,
        op: IoOp,
        needed: impl Fn(&Band) -> Option<Memory>,
    ) {
        let state = self.plans[plan];
        let mut list = ListBuilder::new();
        let mut from = 0;
        for band in state.bands() {
            let Some(memory) = needed(band) else { continue };
            if list.len() > 0 && from + u64::from(list.len()) != band.from {
                self.send_rows(plan, role, op, from, list);
                list = ListBuilder::new();
            }
            if list.len() == 0 {
                from = band.from;
            }
            self.add_rows(plan, &state, role, band, memory, &mut list);
        }
        if list.len() > 0 {
            self.send_rows(plan, role, op, from, list);
        }
    }

    fn send_rows(&mut self, plan: u32, role: u16, op: IoOp, from: u64, list: ListBuilder) {
        let state = &self.plans[plan];
        let at = Sector(self.parity().member_start(state.stripe).0 + from);
        let member = self.role_member(state.stripe, role);
        let fua = op == IoOp::Write && self.requests[state.request].fua;
        let target = Target { member, at, len: list.len() };
        self.emit(Owner::Plan(plan), op, fua, target, list.finish());
    }

    /// Adds a role's rows of a band to a list.
    fn add_rows(
        &mut self,
        plan: u32,
        state: &Plan,
        role: u16,
        band: &Band,
        memory: Memory,
        list: &mut ListBuilder,
    ) {
        let len = band.to - band.from;
        match memory {
            Memory::Payload => {
                let chunk = self.parity().chunk().0;
                let in_piece = u64::from(role) * chunk + band.from - state.piece.start;
                self.carve(state.request, state.payload + in_piece, len, list);
            }
            Memory::Scratch => {
                let offset = u64::from(role) * self.plan_rows + band.from - state.rows.0;
                let segment =
                    Segment { token: scratch_token(plan), offset: offset as u32, len: len as u32 };
                list.push(&mut self.lists, segment);
            }
        }
    }

    pub(in crate::array) fn operand_range(&self, job: u32) -> std::ops::Range<usize> {
        let stride = self.operands.len() / self.jobs.capacity().max(1) as usize;
        job as usize * stride..(job as usize + 1) * stride
    }

    pub(super) fn issue_jobs(&mut self, plan: u32) {
        let state = self.plans[plan];
        debug_assert_eq!(state.phase, Phase::Compute);
        for band in state.bands() {
            let target = match band.method {
                Method::Direct | Method::DataOnly => continue,
                Method::Recover(k) => (k, Memory::Payload),
                _ => (self.data_chunks(), Memory::Scratch),
            };
            self.issue_job(plan, &state, band, target);
        }
    }

    fn issue_job(&mut self, plan: u32, state: &Plan, band: &Band, target: (u16, Memory)) {
        let len = (band.to - band.from) as u32;
        let job = JobState { plan, kernel: Kernel::Xor, len, sources: 0 };
        let slot = self.jobs.insert(job).expect("a plan has a job for each band");
        let first = self.operand_range(slot).start;
        let mut count = 0;
        let p = self.data_chunks();
        // The old P comes first: the new one takes its place in memory.
        for role in std::iter::once(p).chain(0..p) {
            for memory in job_sources(band, role, p).into_iter().flatten() {
                self.operands[first + count] = self.operand(plan, state, role, band, memory);
                count += 1;
            }
        }
        self.operands[first + count] = self.operand(plan, state, target.0, band, target.1);
        self.jobs[slot].sources = count as u16;
        self.plans[plan].pending += 1;
        let job = JobId { slot, generation: self.jobs.generation(slot) };
        self.outputs.push_back(Output::Compute { job });
    }

    fn operand(
        &mut self,
        plan: u32,
        state: &Plan,
        role: u16,
        band: &Band,
        memory: Memory,
    ) -> SegmentList {
        let mut list = ListBuilder::new();
        self.add_rows(plan, state, role, band, memory, &mut list);
        debug_assert_ne!(list.finish(), EMPTY);
        list.finish()
    }
}

/// Where a role's rows of a band are read to, if they are read at all. `p` is the role of P.
fn read_memory(band: &Band, role: u16, write: bool, p: u16) -> Option<Memory> {
    let covered = role < p && band.covers(role);
    match band.method {
        Method::Direct => (covered && !write).then_some(Memory::Payload),
        Method::Recover(lost) if role == lost => None,
        Method::Recover(_) if covered => Some(Memory::Payload),
        Method::Recover(_) => Some(Memory::Scratch),
        Method::FullStripe | Method::DataOnly => None,
        Method::ReconstructWrite => (role < p && !covered).then_some(Memory::Scratch),
        Method::ReadModifyWrite => (role == p || covered).then_some(Memory::Scratch),
    }
}

/// What a band's job takes from a role: nothing, its rows, or its old and its new rows.
fn job_sources(band: &Band, role: u16, p: u16) -> [Option<Memory>; 2] {
    let read = read_memory(band, role, true, p);
    let writes = !matches!(band.method, Method::Recover(_));
    let new = (writes && role < p && band.covers(role)).then_some(Memory::Payload);
    [read, new]
}
