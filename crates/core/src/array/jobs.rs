//! Parity computing in flight: kernels and their operands.

use std::hash::{Hash, Hasher};

use super::lists::{EMPTY, ListPool};
use super::slab::Slab;
use crate::contract::{Job, JobId, ParityOp, Role, SegmentList};

/// Whom a job belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum JobOwner {
    Plan(u32),
    /// A resync window.
    Window(u32),
    /// The replay of a log.
    Log,
}

#[derive(Clone, Copy, Debug, Hash)]
struct JobState {
    owner: JobOwner,
    kernel: ParityOp,
    len: u32,
    sources: u16,
    targets: u16,
}

/// All jobs in flight.
#[derive(Clone, Debug)]
pub(super) struct Jobs {
    slots: Slab<JobState>,
    /// Operands of a job at most.
    stride: usize,
    /// The operands of each job, `stride` to a slot: sources, then targets.
    operands: Vec<SegmentList>,
    /// What each operand is.
    roles: Vec<Role>,
}

/// Their operands follow from whose they are.
impl Hash for Jobs {
    fn hash<H: Hasher>(&self, key: &mut H) {
        self.slots.hash(key);
    }
}

impl Jobs {
    /// Room for so many jobs of so many operands.
    pub(super) fn new(jobs: u32, stride: usize) -> Self {
        let state = JobState {
            owner: JobOwner::Log,
            kernel: ParityOp::Xor,
            len: 0,
            sources: 0,
            targets: 0,
        };
        Self {
            slots: Slab::new(jobs, state),
            stride,
            operands: vec![EMPTY; jobs as usize * stride],
            roles: vec![Role::default(); jobs as usize * stride],
        }
    }

    /// Begins a job over `len` sectors, which gets its operands next.
    ///
    /// # Panics
    /// When there are more than plans and windows may have.
    #[inline]
    pub(super) fn start(&mut self, owner: JobOwner, kernel: ParityOp, len: u32) -> JobId {
        let state = JobState { owner, kernel, len, sources: 0, targets: 0 };
        let (slot, generation) =
            self.slots.insert_named(state).expect("each plan and window has its jobs");
        JobId { slot, generation }
    }

    /// Adds a source; sources come before targets.
    #[inline]
    pub(super) fn add_source(&mut self, job: JobId, list: SegmentList, role: Role) {
        debug_assert_eq!(self.slots[job.slot].targets, 0, "sources come before targets");
        self.add(job, list, role);
        self.slots[job.slot].sources += 1;
    }

    /// Adds a target.
    #[inline]
    pub(super) fn add_target(&mut self, job: JobId, list: SegmentList, role: Role) {
        self.add(job, list, role);
        self.slots[job.slot].targets += 1;
    }

    #[inline]
    fn add(&mut self, job: JobId, list: SegmentList, role: Role) {
        let state = &self.slots[job.slot];
        let index = job.slot as usize * self.stride + usize::from(state.sources + state.targets);
        self.operands[index] = list;
        self.roles[index] = role;
    }

    /// What a job computes.
    pub(super) fn kernel(&self, job: JobId) -> ParityOp {
        self.slots[job.slot].kernel
    }

    /// Ends a job and gives its lists back; whose it was, or `None` when it is not in flight.
    pub(super) fn end(&mut self, job: JobId, lists: &mut ListPool) -> Option<JobOwner> {
        let JobState { owner, sources, targets, .. } = self.slots.take(job.slot, job.generation)?;
        let first = job.slot as usize * self.stride;
        for list in &self.operands[first..first + usize::from(sources + targets)] {
            lists.release(list);
        }
        Some(owner)
    }

    /// The operands of a job; `None` when it is not in flight.
    pub(super) fn get(&self, job: JobId) -> Option<Job<'_>> {
        if !self.slots.is_current(job.slot, job.generation) {
            return None;
        }
        let state = &self.slots[job.slot];
        let first = job.slot as usize * self.stride;
        let middle = first + usize::from(state.sources);
        let end = middle + usize::from(state.targets);
        Some(Job {
            op: state.kernel,
            len: state.len,
            sources: &self.operands[first..middle],
            targets: &self.operands[middle..end],
            roles: &self.roles[first..end],
        })
    }

    /// Whether no job is under way.
    pub(super) fn is_idle(&self) -> bool {
        self.slots.used().next().is_none()
    }
}

#[cfg(test)]
mod tests {
    use super::super::lists::ListBuilder;
    use super::*;
    use crate::contract::{Segment, Token};

    #[test]
    fn a_job_has_its_operands_until_it_ends() {
        let mut lists = ListPool::new(2);
        let mut jobs = Jobs::new(2, 3);
        let mut list = |offsets: [u32; 2]| {
            let mut list = ListBuilder::new();
            for offset in offsets {
                list.push(&mut lists, Segment { token: Token(1), offset, len: 1 });
            }
            list.finish()
        };
        let (one, two, parity) = (list([0, 1]), list([8, 12]), list([4, 6]));
        let other = jobs.start(JobOwner::Log, ParityOp::Zero, 1);
        let job = jobs.start(JobOwner::Plan(7), ParityOp::Xor, 2);
        jobs.add_source(job, one, Role::Data(0));
        jobs.add_source(job, two, Role::Data(1));
        jobs.add_target(job, parity, Role::P);
        let told = jobs.get(job).expect("it is in flight");
        assert_eq!((told.op, told.len), (ParityOp::Xor, 2));
        assert_eq!((told.sources, told.targets), (&[one, two][..], &[parity][..]));
        assert_eq!(told.roles, [Role::Data(0), Role::Data(1), Role::P]);
        assert_eq!(jobs.get(other).expect("so is the other").sources, []);
        assert_eq!(lists.available(), 0);
        assert_eq!(jobs.end(job, &mut lists), Some(JobOwner::Plan(7)));
        assert_eq!(lists.available(), 2, "its lists are given back");
        assert!(jobs.get(job).is_none());
        assert_eq!(jobs.end(job, &mut lists), None, "a second answer changes nothing");
        assert_eq!(lists.available(), 2);
    }
}
