//! What a plan sends out: reads, jobs and writes, one range a member where rows touch.

use super::super::issue::{Owner, Target};
use super::super::lists::{EMPTY, ListBuilder, NIL};
use super::bands::{P, Q};
use super::{Array, Band, Geometry, JobOwner, JobState, MOST_BANDS, Method, Plan, Task};
use crate::bugs::Bug;
use crate::contract::{IoOp, JobId, Kernel, Output, Role, Segment, SegmentList};
use crate::layout::Rotation;
use crate::units::{MemberIndex, Sector};

/// Where a role's rows of a band lie in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::array) enum Memory {
    /// In the request's payload.
    Payload,
    /// In the plan's scratch buffer.
    Scratch,
    /// Nowhere: zeroes.
    Zeroes,
}

/// A job being put together.
struct JobParts {
    plan: u32,
    slot: u32,
    first: usize,
    sources: u16,
    targets: u16,
}

impl Array {
    /// Whether the largest phase of the plan fits into what is free.
    pub(super) fn has_room_for(&self, plan: u32) -> bool {
        let twice = u32::from(!self.replacing.is_empty());
        let devices = usize::from(self.layout.members) << twice;
        let ranges = devices * MOST_BANDS;
        let state = &self.plans[plan];
        // What goes to a member goes to its replacement too.
        let segments = self.requests[state.request].segment_count() << twice;
        // Interleaved payload takes a node an atom.
        let atoms = match self.atom {
            0 => 0,
            atom => ((state.rows.1 - state.rows.0) / atom) as usize * usize::from(self.data_chunks),
        };
        // What is copied to or from the cache.
        let copied = match state.cache {
            NIL => 0,
            _ => segments + 2 * MOST_BANDS * usize::from(self.data_chunks + self.parities),
        };
        self.ios.available() >= ranges
            && self.lists.available() >= segments + ranges + atoms + copied
    }

    pub(super) fn issue_reads(&mut self, plan: u32) {
        let state = self.plans[plan];
        let (data, task) = (self.data_chunks, state.task);
        let mut cached = [0u128; MOST_BANDS];
        if state.cache != NIL {
            self.load_cached(plan, |band, role| read_memory(band, role, data, task));
            for (cached, band) in cached.iter_mut().zip(state.bands()) {
                *cached = self.cached_roles(&state, band);
            }
        }
        for role in 0..data + self.parities {
            let is_cached = |band: &Band| {
                let index = state.bands().iter().position(|known| known.from == band.from);
                index.is_some_and(|index| cached[index] >> role & 1 == 1)
            };
            let needed = |band: &Band| match state.cache != NIL && is_cached(band) {
                true => None,
                false => read_memory(band, role, data, task),
            };
            let member = self.role_member(self.plans[plan].stripe, role);
            self.issue_role(plan, (role, member), IoOp::Read, needed);
        }
    }

    pub(super) fn issue_writes(&mut self, plan: u32) {
        if self.cache.capacity() > 0 && self.atom == 0 {
            self.store_planned(plan);
        }
        let Plan { stripe, task, .. } = self.plans[plan];
        let data = self.data_chunks;
        let lost = self.lost_without_parity(stripe);
        for role in 0..data + self.parities {
            if !self.is_written(self.role_member(stripe, role)) {
                continue;
            }
            // A member that came back meanwhile gets data, but no parity: none was computed.
            let live = |band: &Band| {
                let skipped = (band.first..=band.last).any(|k| lost >> k & 1 == 1);
                role < data || band.live >> (role - data) & 1 == 1 && !skipped
            };
            let zero = |band: &Band| {
                task == Task::Zero && (role < data || band.method == Method::FullStripe)
            };
            let covered = |band: &Band| live(band) && (role >= data || band.covers(role));
            let memory = if role < data { Memory::Payload } else { Memory::Scratch };
            let member = self.role_member(stripe, role);
            let replacement = self.is_replacing(member).then(|| self.replacement(member));
            for device in [Some(member), replacement].into_iter().flatten() {
                let needed = |band: &Band| (covered(band) && !zero(band)).then_some(memory);
                self.issue_role(plan, (role, device), IoOp::Write, needed);
                let needed = |band: &Band| (covered(band) && zero(band)).then_some(Memory::Zeroes);
                self.issue_role(plan, (role, device), IoOp::WriteZeroes, needed);
            }
        }
    }

    /// Sends out one role's I/O: the bands that need it, joined where their rows touch.
    fn issue_role(
        &mut self,
        plan: u32,
        (role, device): (u16, MemberIndex),
        op: IoOp,
        needed: impl Fn(&Band) -> Option<Memory>,
    ) {
        let state = self.plans[plan];
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
            self.add_rows(plan, &state, role, band, memory, &mut list);
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
        let at = Sector(self.member_start(state.stripe) + rows.0);
        let fua = op != IoOp::Read && self.requests[state.request].fua;
        let fua = fua && !self.has_bug(Bug::DropFua);
        let target = Target { member, at, len: (rows.1 - rows.0) as u32 };
        self.emit(Owner::Plan(plan), op, fua, target, list.finish());
    }

    /// Adds a role's rows of a band to a list.
    pub(in crate::array) fn add_rows(
        &mut self,
        plan: u32,
        state: &Plan,
        role: u16,
        band: &Band,
        memory: Memory,
        list: &mut ListBuilder,
    ) {
        let len = band.to - band.from;
        match (memory, &self.geometry) {
            (Memory::Payload, Geometry::Parity(parity)) => {
                let in_piece = u64::from(role) * parity.chunk().0 + band.from - state.piece.start;
                self.carve(state.request, state.payload + in_piece, len, list);
            }
            // As many sectors, in as much room.
            (Memory::Payload, _) if !self.has_payload => {
                let token = self.user_segments[(state.request * self.most_segments) as usize].token;
                let segment = Segment { token, offset: state.payload as u32, len: len as u32 };
                let pieces = if self.data_chunks > 1 { (len / self.atom) as u32 } else { 1 };
                list.push_pieces(&mut self.lists, segment, pieces);
            }
            (Memory::Payload, _) => {
                let (atom, data) = (self.atom, u64::from(self.data_chunks));
                for row in (0..len / atom).map(|row| row * data + u64::from(role)) {
                    self.carve(state.request, state.payload + row * atom, atom, list);
                }
            }
            (Memory::Scratch, _) => {
                let offset = u64::from(role) * self.plan_rows + band.from - state.rows.0;
                let segment = Segment {
                    token: self.scratch_token(plan),
                    offset: offset as u32,
                    len: len as u32,
                };
                list.push(&mut self.lists, segment);
            }
            (Memory::Zeroes, _) => {}
        }
    }

    pub(in crate::array) fn operand_range(&self, job: u32) -> std::ops::Range<usize> {
        let stride = self.operands.len() / self.jobs.capacity().max(1) as usize;
        job as usize * stride..(job as usize + 1) * stride
    }

    /// Jobs that compute what is lost.
    pub(super) fn issue_recoveries(&mut self, plan: u32) {
        let state = self.plans[plan];
        let data = self.data_chunks;
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
            let kernel = if recovery.parities == P { Kernel::Xor } else { Kernel::Recover };
            let mut job = self.start_job(plan, kernel, band);
            for role in 0..data + self.parities {
                if let Some(memory) = read_memory(band, role, data, state.task) {
                    self.add_source(&mut job, &state, role, band, memory);
                }
            }
            for &role in recovery.lost() {
                let wanted = state.task == Task::Read && band.covers(role);
                let memory = if wanted { Memory::Payload } else { Memory::Scratch };
                self.add_target(&mut job, &state, role, band, memory);
            }
            self.send_job(&job);
        }
    }

    /// For a read that is to agree with its parity: the XOR of the data, in the scratch of role 0,
    /// which such a read does not use otherwise.
    fn issue_sum(&mut self, plan: u32, state: &Plan, band: &Band) {
        let mut job = self.start_job(plan, Kernel::Xor, band);
        for role in 0..self.data_chunks {
            self.add_source(&mut job, state, role, band, Memory::Payload);
        }
        self.add_target(&mut job, state, 0, band, Memory::Scratch);
        self.send_job(&job);
    }

    /// Jobs that compute the new parity, or compare the old one.
    pub(super) fn issue_parity(&mut self, plan: u32) {
        let state = self.plans[plan];
        if state.cache != NIL && state.task == Task::Read {
            self.store_planned(plan);
        }
        let data = self.data_chunks;
        let partial = self.logs_partial_parity();
        for band in state.bands() {
            if band.method == Method::Verify {
                let mut job = self.start_job(plan, Kernel::Compare, band);
                self.add_source(&mut job, &state, 0, band, Memory::Scratch);
                self.add_source(&mut job, &state, data, band, Memory::Scratch);
                self.send_job(&job);
            }
            if state.task == Task::Read {
                continue;
            }
            // Zeroes everywhere have a parity of zeroes.
            let zeroes = band.method == Method::FullStripe && state.task == Task::Zero;
            let live = self.parities_without(state.stripe, self.failed);
            let live = live & band.live;
            if zeroes || live == 0 {
                continue;
            }
            let modify = band.method == Method::ReadModifyWrite;
            let kernel = match (live & Q != 0, modify) {
                (false, _) => Kernel::Xor,
                (true, false) => Kernel::Pq,
                (true, true) => Kernel::Delta,
            };
            let mut job = self.start_job(plan, kernel, band);
            if partial {
                self.add_parity_by_log(&mut job, &state, band);
                continue;
            }
            if kernel == Kernel::Xor && modify {
                self.add_source(&mut job, &state, data, band, Memory::Scratch);
            }
            for role in 0..data {
                let covered = band.covers(role);
                if modify && covered && !self.forgets_old(kernel, band, role) {
                    self.add_source(&mut job, &state, role, band, Memory::Scratch);
                }
                if covered && state.task == Task::Write {
                    self.add_source(&mut job, &state, role, band, Memory::Payload);
                } else if !covered && !modify {
                    self.add_source(&mut job, &state, role, band, Memory::Scratch);
                }
            }
            for parity in 0..self.parities {
                if live >> parity & 1 == 1 {
                    self.add_target(&mut job, &state, data + parity, band, Memory::Scratch);
                }
            }
            self.send_job(&job);
        }
    }

    /// Jobs that compute what the log needs: the XOR of what a plan does not write, or zeroes.
    pub(super) fn issue_preparation(&mut self, plan: u32) {
        let state = self.plans[plan];
        let data = self.data_chunks;
        if !self.logs_partial_parity() {
            if state.task == Task::Zero && self.is_journalled() {
                for band in state.bands() {
                    let mut job = self.start_job(plan, Kernel::Zero, band);
                    self.add_target(&mut job, &state, band.first, band, Memory::Scratch);
                    self.send_job(&job);
                }
            }
            return;
        }
        let is_live = self.parities_without(state.stripe, self.failed) != 0;
        for band in state.bands() {
            if !is_live || band.live == 0 || band.method == Method::FullStripe {
                continue;
            }
            let mut job = self.start_job(plan, Kernel::Xor, band);
            let modify = band.method == Method::ReadModifyWrite;
            if modify {
                self.add_source(&mut job, &state, data, band, Memory::Scratch);
            }
            let left_out = self.left_out(band);
            for role in 0..data {
                let forgotten = modify && self.forgets_old(Kernel::Xor, band, role);
                if band.covers(role) == modify && left_out != Some(role) && !forgotten {
                    self.add_source(&mut job, &state, role, band, Memory::Scratch);
                }
            }
            self.add_target(&mut job, &state, data + 1, band, Memory::Scratch);
            self.send_job(&job);
        }
    }

    /// The seeded bug: chunks whose writes leave parity as it was, since they are lost.
    fn lost_without_parity(&self, stripe: u64) -> u128 {
        if !self.has_bug(Bug::DegradedSkipsParity) {
            return 0;
        }
        let lost = |k: &u16| self.failed.contains(self.role_member(stripe, *k));
        (0..self.data_chunks).filter(lost).fold(0, |set, k| set | 1 << k)
    }

    /// The seeded bug: the old data of the last chunk are not taken out of P.
    fn forgets_old(&self, kernel: Kernel, band: &Band, role: u16) -> bool {
        kernel == Kernel::Xor && role == band.last && self.has_bug(Bug::ReadModifyOldParity)
    }

    /// The chunk that the seeded bug of partial parity leaves out.
    fn left_out(&self, band: &Band) -> Option<u16> {
        let last = (0..self.data_chunks).rev().find(|k| !band.covers(*k))?;
        let some = self.data_chunks - band.covered() > 1;
        let reads = band.method != Method::ReadModifyWrite;
        (some && reads && self.has_bug(Bug::PplWrongXor)).then_some(last)
    }

    /// Sources and target of P = partial parity XOR the new data; zeroes add nothing.
    fn add_parity_by_log(&mut self, job: &mut JobParts, state: &Plan, band: &Band) {
        let data = self.data_chunks;
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
        self.send_job(job);
    }

    /// Adds the rows of a band's partial parity to a list.
    pub(in crate::array) fn add_partial_rows(
        &mut self,
        plan: u32,
        state: &Plan,
        band: &Band,
        list: &mut ListBuilder,
    ) {
        self.add_rows(plan, state, self.data_chunks + 1, band, Memory::Scratch, list);
    }

    /// A job from one list to another.
    pub(super) fn start_list_job(
        &mut self,
        plan: u32,
        kernel: Kernel,
        len: u32,
        lists: (SegmentList, SegmentList),
    ) {
        let owner = JobOwner::Plan(plan);
        let job = JobState { owner, kernel, len, sources: 0, targets: 0 };
        let slot = self.jobs.insert(job).expect("a plan has a job for each band");
        let first = self.operand_range(slot).start;
        (self.operands[first], self.operands[first + 1]) = lists;
        self.roles[first..first + 2].fill(Role::Data(0));
        self.send_job(&JobParts { plan, slot, first, sources: 1, targets: 1 });
    }

    fn start_job(&mut self, plan: u32, kernel: Kernel, band: &Band) -> JobParts {
        let len = (band.to - band.from) as u32;
        let owner = JobOwner::Plan(plan);
        let job = JobState { owner, kernel, len, sources: 0, targets: 0 };
        let slot = self.jobs.insert(job).expect("a plan has a job for each band");
        JobParts { plan, slot, first: self.operand_range(slot).start, sources: 0, targets: 0 }
    }

    fn add_source(
        &mut self,
        job: &mut JobParts,
        state: &Plan,
        role: u16,
        band: &Band,
        memory: Memory,
    ) {
        debug_assert_eq!(job.targets, 0, "sources come before targets");
        self.add_operand(job, state, role, band, memory);
        job.sources += 1;
    }

    fn add_target(
        &mut self,
        job: &mut JobParts,
        state: &Plan,
        role: u16,
        band: &Band,
        memory: Memory,
    ) {
        self.add_operand(job, state, role, band, memory);
        job.targets += 1;
    }

    fn add_operand(
        &mut self,
        job: &JobParts,
        state: &Plan,
        role: u16,
        band: &Band,
        memory: Memory,
    ) {
        let mut list = ListBuilder::new();
        self.add_rows(job.plan, state, role, band, memory, &mut list);
        let index = job.first + usize::from(job.sources + job.targets);
        self.operands[index] = list.finish();
        self.roles[index] = self.role_name(state.stripe, role);
        if self.has_bug(Bug::WrongQOrder)
            && self.layout.rotation == Rotation::LeftAsymmetric
            && matches!(self.jobs[job.slot].kernel, Kernel::Pq | Kernel::Delta)
            && let Role::Data(exponent) = &mut self.roles[index]
        {
            *exponent = role as u8;
        }
        debug_assert_ne!(self.operands[index], EMPTY);
    }

    /// What a role is called in a job.
    pub(in crate::array) fn role_name(&self, stripe: u64, role: u16) -> Role {
        match (&self.geometry, role.checked_sub(self.data_chunks)) {
            (_, Some(1)) if self.parities > 1 => Role::Q,
            // Partial parity counts as P does.
            (_, Some(_)) => Role::P,
            (Geometry::Parity(parity), None) => Role::Data(parity.q_exponent(stripe, role)),
            (_, None) => Role::Data(0),
        }
    }

    fn send_job(&mut self, job: &JobParts) {
        let state = &mut self.jobs[job.slot];
        state.sources = job.sources;
        state.targets = job.targets;
        self.plans[job.plan].pending += 1;
        let id = JobId { slot: job.slot, generation: self.jobs.generation(job.slot) };
        self.outputs.push_back(Output::Compute { job: id });
    }
}

/// Where a role's rows of a band are read to, if they are read at all. Roles from `data` on are
/// parities.
fn read_memory(band: &Band, role: u16, data: u16, task: Task) -> Option<Memory> {
    let covered = role < data && band.covers(role);
    let parity = role.checked_sub(data).map(|parity| 1u8 << parity);
    let lost = band.recovery.lost().contains(&role);
    match band.method {
        Method::Direct => covered.then_some(Memory::Payload),
        Method::Verify if role >= data => Some(Memory::Scratch),
        Method::Verify => Some(Memory::Payload),
        Method::Recover | Method::RecoverWrite => match parity {
            Some(parity) => (band.recovery.parities & parity != 0).then_some(Memory::Scratch),
            None if lost => None,
            None if covered && task == Task::Read => Some(Memory::Payload),
            None => Some(Memory::Scratch),
        },
        Method::FullStripe | Method::DataOnly => None,
        Method::ReconstructWrite => (parity.is_none() && !covered).then_some(Memory::Scratch),
        Method::ReadModifyWrite => {
            let wanted = parity.map_or(covered, |parity| band.live & parity != 0);
            wanted.then_some(Memory::Scratch)
        }
    }
}
