//! What a plan sends out: reads, jobs and writes, one range a member where rows touch.

use super::super::Array;
use crate::array::ios::{Owner, Target};
use crate::array::jobs::JobOwner;
use crate::array::lists::{EMPTY, ListBuilder, NIL};
use crate::array::roles::Roles;
use crate::array::stripe::{Band, MOST_BANDS, Memory, Method, P, Q, StripePlan, Task, read_memory};
use crate::bugs::Bug;
use crate::contract::{IoOp, JobId, Output, ParityOp, Role, Segment, SegmentList};
use crate::geometry::Geometry;
use crate::layout::Rotation;
use crate::units::{MemberIndex, Sector};

/// A job of a plan being put together.
#[derive(Clone, Copy, Debug)]
struct PlanJob {
    plan: u32,
    job: JobId,
}

impl Array {
    /// Whether the largest phase of the plan fits into what is free.
    pub(in crate::array::planner) fn has_room_for(&self, plan: u32) -> bool {
        let twice = u32::from(!self.members.replacing.is_empty());
        let devices = usize::from(self.setup.layout.members) << twice;
        let ranges = devices * MOST_BANDS;
        let state = &self.plans[plan];
        // What goes to a member goes to its replacement too.
        let segments = self.requests[state.request].segment_count() << twice;
        // Interleaved payload takes a node an atom, for each drive that it goes to.
        let atoms = match self.setup.atom {
            0 => 0,
            atom => {
                let drives = self.setup.data_chunks + self.members.replacing.count();
                ((state.rows.1 - state.rows.0) / atom) as usize * usize::from(drives)
            }
        };
        // What is copied to or from the cache.
        let copied = match state.cache {
            NIL => 0,
            _ => segments + 2 * MOST_BANDS * usize::from(self.setup.roles()),
        };
        self.ios.slots.available() >= ranges
            && self.lists.available() >= segments + ranges + atoms + copied
    }

    pub(in crate::array::planner) fn issue_reads(&mut self, plan: u32) {
        let state = self.plans[plan];
        let (data, task) = (self.setup.data_chunks, state.task);
        let mut cached = [Roles::NONE; MOST_BANDS];
        if state.cache != NIL {
            self.load_cached(plan, |band, role| read_memory(band, role, data, task));
            for (cached, band) in cached.iter_mut().zip(state.bands()) {
                *cached = self.cache.cached_roles(&self.setup, &state, band);
            }
        }
        for role in 0..self.setup.roles() {
            let is_cached = |band: &Band| {
                let index = state.bands().iter().position(|known| known.from == band.from);
                index.is_some_and(|index| cached[index].contains(role))
            };
            let needed = |band: &Band| match state.cache != NIL && is_cached(band) {
                true => None,
                false => read_memory(band, role, data, task),
            };
            // Where a role lies takes a division.
            if state.bands().iter().any(|band| needed(band).is_some()) {
                let member = self.setup.role_member(state.stripe, role);
                self.issue_role(plan, &state, (role, member), IoOp::Read, needed);
            }
        }
    }

    pub(in crate::array::planner) fn issue_writes(&mut self, plan: u32) {
        if self.cache.is_used() {
            self.store_planned(plan);
        }
        let state = self.plans[plan];
        let StripePlan { stripe, task, .. } = state;
        let data = self.setup.data_chunks;
        let lost = self.lost_without_parity(stripe);
        for role in 0..self.setup.roles() {
            // A member that came back meanwhile gets data, but no parity: none was computed.
            let live = |band: &Band| {
                let skipped = !lost.is_apart(Roles::range(band.first, band.last + 1));
                role < data || band.live >> (role - data) & 1 == 1 && !skipped
            };
            let zero = |band: &Band| {
                task == Task::Zero && (role < data || band.method == Method::FullStripe)
            };
            let covered = |band: &Band| live(band) && (role >= data || band.covers(role));
            let memory = if role < data { Memory::Payload } else { Memory::Scratch };
            if !state.bands().iter().any(covered) {
                continue;
            }
            let member = self.setup.role_member(stripe, role);
            if !self.members.is_written(&self.setup, member) {
                continue;
            }
            let replacement = self
                .members
                .is_replacing(&self.setup, member)
                .then(|| self.setup.replacement(member));
            for device in [Some(member), replacement].into_iter().flatten() {
                let needed = |band: &Band| (covered(band) && !zero(band)).then_some(memory);
                self.issue_role(plan, &state, (role, device), IoOp::Write, needed);
                if task == Task::Zero {
                    let needed =
                        |band: &Band| (covered(band) && zero(band)).then_some(Memory::Zeroes);
                    self.issue_role(plan, &state, (role, device), IoOp::WriteZeroes, needed);
                }
            }
        }
    }

    /// Sends out one role's I/O: the bands that need it, joined where their rows touch.
    fn issue_role(
        &mut self,
        plan: u32,
        state: &StripePlan,
        (role, device): (u16, MemberIndex),
        op: IoOp,
        needed: impl Fn(&Band) -> Option<Memory>,
    ) {
        let mut list = ListBuilder::new();
        let (mut from, mut to) = (0, 0);
        for band in state.bands() {
            let Some(memory) = needed(band) else { continue };
            if to > from && to != band.from {
                self.send_rows(plan, device, op, (from, to), list);
                list = ListBuilder::new();
                to = from;
            }
            if to <= from {
                from = band.from;
            }
            to = band.to;
            self.add_rows(plan, state, role, band, memory, &mut list);
        }
        if to > from {
            self.send_rows(plan, device, op, (from, to), list);
        }
    }

    fn send_rows(
        &mut self,
        plan: u32,
        member: MemberIndex,
        op: IoOp,
        rows: (u64, u64),
        list: ListBuilder,
    ) {
        let state = &self.plans[plan];
        let at = Sector(self.setup.member_start(state.stripe) + rows.0);
        let fua = op != IoOp::Read && self.requests[state.request].fua;
        let fua = fua && !self.setup.has_bug(Bug::DropFua);
        let target = Target { member, at, len: (rows.1 - rows.0) as u32 };
        self.emit(Owner::Plan(plan), op, fua, target, list.finish());
    }

    /// Adds a role's rows of a band to a list.
    pub(in crate::array::planner) fn add_rows(
        &mut self,
        plan: u32,
        state: &StripePlan,
        role: u16,
        band: &Band,
        memory: Memory,
        list: &mut ListBuilder,
    ) {
        let len = band.to - band.from;
        match (memory, &self.setup.geometry) {
            (Memory::Payload, Geometry::Parity(parity)) => {
                let in_piece = u64::from(role) * parity.chunk().0 + band.from - state.piece.start;
                self.requests.carve(
                    &mut self.lists,
                    state.request,
                    (state.payload + in_piece, len),
                    list,
                );
            }
            // As many sectors, in as much room.
            (Memory::Payload, _) if !self.setup.has_payload => {
                let token = self.requests.first_segment(state.request).token;
                let segment = Segment { token, offset: state.payload as u32, len: len as u32 };
                let pieces =
                    if self.setup.data_chunks > 1 { (len / self.setup.atom) as u32 } else { 1 };
                list.push_pieces(&mut self.lists, segment, pieces);
            }
            (Memory::Payload, _) => {
                let (atom, data) = (self.setup.atom, u64::from(self.setup.data_chunks));
                for row in (0..len / atom).map(|row| row * data + u64::from(role)) {
                    self.requests.carve(
                        &mut self.lists,
                        state.request,
                        (state.payload + row * atom, atom),
                        list,
                    );
                }
            }
            (Memory::Scratch, _) => {
                let offset = u64::from(role) * self.setup.plan_rows + band.from - state.rows.0;
                let segment = Segment {
                    token: self.setup.scratch_token(plan),
                    offset: offset as u32,
                    len: len as u32,
                };
                list.push(&mut self.lists, segment);
            }
            (Memory::Zeroes, _) => {}
        }
    }

    /// Jobs that compute what is lost.
    pub(in crate::array::planner) fn issue_recoveries(&mut self, plan: u32) {
        let computes = |band: &Band| {
            matches!(band.method, Method::Recover | Method::RecoverWrite | Method::Verify)
        };
        if !self.plans[plan].bands().iter().any(computes) {
            return;
        }
        let state = self.plans[plan];
        let data = self.setup.data_chunks;
        for band in state.bands() {
            let recovery = band.recovery;
            if band.method == Method::Verify {
                self.issue_sum(plan, &state, band);
                continue;
            }
            if !matches!(band.method, Method::Recover | Method::RecoverWrite) {
                continue;
            }
            // With P alone the lost block is the XOR of all others.
            let kernel = if recovery.parities == P { ParityOp::Xor } else { ParityOp::Recover };
            let job = self.start_job(plan, kernel, band);
            for role in 0..data + self.setup.parities {
                if let Some(memory) = read_memory(band, role, data, state.task) {
                    self.add_source(job, &state, role, band, memory);
                }
            }
            for &role in recovery.lost() {
                let wanted = state.task == Task::Read && band.covers(role);
                let memory = if wanted { Memory::Payload } else { Memory::Scratch };
                self.add_target(job, &state, role, band, memory);
            }
            self.send_job(job.plan, job.job);
        }
    }

    /// For a read that is to agree with its parity: the XOR of the data, in the scratch of role 0,
    /// which such a read does not use otherwise.
    fn issue_sum(&mut self, plan: u32, state: &StripePlan, band: &Band) {
        let job = self.start_job(plan, ParityOp::Xor, band);
        for role in 0..self.setup.data_chunks {
            self.add_source(job, state, role, band, Memory::Payload);
        }
        self.add_target(job, state, 0, band, Memory::Scratch);
        self.send_job(job.plan, job.job);
    }

    /// Jobs that compute the new parity, or compare the old one.
    pub(in crate::array::planner) fn issue_parity(&mut self, plan: u32) {
        let state = self.plans[plan];
        if state.cache != NIL && state.task == Task::Read {
            self.store_planned(plan);
        }
        let data = self.setup.data_chunks;
        let partial = self.log.is_partial();
        let live = self.setup.parities_without(state.stripe, self.members.failed);
        for band in state.bands() {
            if band.method == Method::Verify {
                let job = self.start_job(plan, ParityOp::Compare, band);
                self.add_source(job, &state, 0, band, Memory::Scratch);
                self.add_source(job, &state, data, band, Memory::Scratch);
                self.send_job(job.plan, job.job);
            }
            if state.task == Task::Read {
                continue;
            }
            // Zeroes everywhere have a parity of zeroes.
            let zeroes = band.method == Method::FullStripe && state.task == Task::Zero;
            let live = live & band.live;
            if zeroes || live == 0 {
                continue;
            }
            let modify = band.method == Method::ReadModifyWrite;
            let kernel = match (live & Q != 0, modify) {
                (false, _) => ParityOp::Xor,
                (true, false) => ParityOp::Pq,
                (true, true) => ParityOp::Delta,
            };
            let job = self.start_job(plan, kernel, band);
            if partial {
                self.add_parity_by_log(job, &state, band);
                continue;
            }
            if kernel == ParityOp::Xor && modify {
                self.add_source(job, &state, data, band, Memory::Scratch);
            }
            for role in 0..data {
                let covered = band.covers(role);
                if modify && covered && !self.forgets_old(kernel, band, role) {
                    self.add_source(job, &state, role, band, Memory::Scratch);
                }
                if covered && state.task == Task::Write {
                    self.add_source(job, &state, role, band, Memory::Payload);
                } else if !covered && !modify {
                    self.add_source(job, &state, role, band, Memory::Scratch);
                }
            }
            for parity in 0..self.setup.parities {
                if live >> parity & 1 == 1 {
                    self.add_target(job, &state, data + parity, band, Memory::Scratch);
                }
            }
            self.send_job(job.plan, job.job);
        }
    }

    /// Jobs that compute what the log needs: the XOR of what a plan does not write, or zeroes.
    pub(in crate::array::planner) fn issue_preparation(&mut self, plan: u32) {
        let state = self.plans[plan];
        let data = self.setup.data_chunks;
        if !self.log.is_partial() {
            if state.task == Task::Zero && self.is_journalled() {
                for band in state.bands() {
                    let job = self.start_job(plan, ParityOp::Zero, band);
                    self.add_target(job, &state, band.first, band, Memory::Scratch);
                    self.send_job(job.plan, job.job);
                }
            }
            return;
        }
        let is_live = self.setup.parities_without(state.stripe, self.members.failed) != 0;
        for band in state.bands() {
            if !is_live || band.live == 0 || band.method == Method::FullStripe {
                continue;
            }
            let job = self.start_job(plan, ParityOp::Xor, band);
            let modify = band.method == Method::ReadModifyWrite;
            if modify {
                self.add_source(job, &state, data, band, Memory::Scratch);
            }
            let left_out = self.left_out(band);
            for role in 0..data {
                let forgotten = modify && self.forgets_old(ParityOp::Xor, band, role);
                if band.covers(role) == modify && left_out != Some(role) && !forgotten {
                    self.add_source(job, &state, role, band, Memory::Scratch);
                }
            }
            self.add_target(job, &state, data + 1, band, Memory::Scratch);
            self.send_job(job.plan, job.job);
        }
    }

    /// The seeded bug: chunks whose writes leave parity as it was, since they are lost.
    fn lost_without_parity(&self, stripe: u64) -> Roles {
        if !self.setup.has_bug(Bug::DegradedSkipsParity) {
            return Roles::NONE;
        }
        let lost = |k: &u16| self.members.failed.contains(self.setup.role_member(stripe, *k));
        (0..self.setup.data_chunks).filter(lost).collect()
    }

    /// The seeded bug: the old data of the last chunk are not taken out of P.
    fn forgets_old(&self, kernel: ParityOp, band: &Band, role: u16) -> bool {
        kernel == ParityOp::Xor && role == band.last && self.setup.has_bug(Bug::ReadModifyOldParity)
    }

    /// The chunk that the seeded bug of partial parity leaves out.
    fn left_out(&self, band: &Band) -> Option<u16> {
        let last = (0..self.setup.data_chunks).rev().find(|k| !band.covers(*k))?;
        let some = self.setup.data_chunks - band.covered() > 1;
        let reads = band.method != Method::ReadModifyWrite;
        (some && reads && self.setup.has_bug(Bug::PplWrongXor)).then_some(last)
    }

    /// Sources and target of P = partial parity XOR the new data; zeroes add nothing.
    fn add_parity_by_log(&mut self, job: PlanJob, state: &StripePlan, band: &Band) {
        let data = self.setup.data_chunks;
        if band.method != Method::FullStripe {
            self.add_source(job, state, data + 1, band, Memory::Scratch);
        }
        if let Some(role) = self.left_out(band) {
            self.add_source(job, state, role, band, Memory::Scratch);
        }
        if state.task == Task::Write {
            for role in band.first..=band.last {
                self.add_source(job, state, role, band, Memory::Payload);
            }
        }
        self.add_target(job, state, data, band, Memory::Scratch);
        self.send_job(job.plan, job.job);
    }

    /// A job from one list to another.
    pub(in crate::array::planner) fn start_list_job(
        &mut self,
        plan: u32,
        kernel: ParityOp,
        len: u32,
        (from, to): (SegmentList, SegmentList),
    ) {
        let job = self.jobs.start(JobOwner::Plan(plan), kernel, len);
        self.jobs.add_source(job, from, Role::Data(0));
        self.jobs.add_target(job, to, Role::Data(0));
        self.send_job(plan, job);
    }

    fn start_job(&mut self, plan: u32, kernel: ParityOp, band: &Band) -> PlanJob {
        let job = self.jobs.start(JobOwner::Plan(plan), kernel, (band.to - band.from) as u32);
        PlanJob { plan, job }
    }

    fn add_source(
        &mut self,
        job: PlanJob,
        state: &StripePlan,
        role: u16,
        band: &Band,
        memory: Memory,
    ) {
        let (list, role) = self.operand(job, state, role, band, memory);
        self.jobs.add_source(job.job, list, role);
    }

    fn add_target(
        &mut self,
        job: PlanJob,
        state: &StripePlan,
        role: u16,
        band: &Band,
        memory: Memory,
    ) {
        let (list, role) = self.operand(job, state, role, band, memory);
        self.jobs.add_target(job.job, list, role);
    }

    fn operand(
        &mut self,
        PlanJob { plan, job }: PlanJob,
        state: &StripePlan,
        role: u16,
        band: &Band,
        memory: Memory,
    ) -> (SegmentList, Role) {
        let mut list = ListBuilder::new();
        self.add_rows(plan, state, role, band, memory, &mut list);
        let mut name = self.setup.role_name(state.stripe, role);
        if self.setup.has_bug(Bug::WrongQOrder)
            && self.setup.layout.rotation == Rotation::LeftAsymmetric
            && matches!(self.jobs.kernel(job), ParityOp::Pq | ParityOp::Delta)
            && let Role::Data(exponent) = &mut name
        {
            *exponent = role as u8;
        }
        let list = list.finish();
        debug_assert_ne!(list, EMPTY);
        (list, name)
    }

    fn send_job(&mut self, plan: u32, job: JobId) {
        self.plans[plan].pending += 1;
        self.outputs.push_back(Output::Compute { job });
    }
}
