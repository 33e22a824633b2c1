//! Carries out the core's jobs on the loop's own thread.
//!
//! Operands are lists of segments that may be split at different places; they are walked in step, so
//! each call of a kernel covers the longest run that is contiguous in all of them.

mod inspect;
mod plan;
#[cfg(test)]
mod tests;

use raidlab_core::contract::{JobId, JobResult, Role, SegmentList};
use raidlab_core::{SECTOR_BYTES, Volume};
use raidlab_parity::{Block, Change, Kernels, Lost, Store};

use self::inspect::{Seen, locate};
use self::plan::{ComputePlan, Datum};
use crate::buffers::{Buffers, Piece};
use raidlab_metadata::Checksum;

/// The rest of one operand: pieces `next..end` of the common list, the first without `used` bytes.
#[derive(Clone, Copy, Debug)]
struct Cursor {
    next: usize,
    end: usize,
    used: usize,
}

/// Runs jobs; keeps its lists from job to job, so that a job allocates nothing once they have grown.
#[derive(Debug, Default)]
pub(crate) struct Computer {
    pieces: Vec<Piece>,
    /// Operands: targets first, then sources.
    cursors: Vec<Cursor>,
    /// The sources that are data, for kernels that tell them from P and Q.
    data: Vec<Datum>,
    /// Where the operands of the current run start.
    starts: Vec<*mut u8>,
    sources: Vec<*const u8>,
    blocks: Vec<Block>,
    changes: Vec<Change>,
}

// SAFETY: the pointers in the lists are left over from the last call and never followed again.
unsafe impl Send for Computer {}

impl Computer {
    /// Runs a job to its end.
    ///
    /// [`JobResult::Failed`] for jobs the core does not know, and for operands whose number or roles do not
    /// suit the kernel, that do not lie in buffers, differ in length or overlap in part.
    pub(crate) fn run(&mut self, array: &Volume, buffers: &Buffers, job: JobId) -> JobResult {
        let Some(job) = array.job(job) else { return JobResult::Failed };
        let len = u64::from(job.len) * SECTOR_BYTES;
        let (sources, targets) = (job.sources.len(), job.targets.len());
        let plan = plan::plan(job.op, sources, targets, job.roles, &mut self.data);
        let Some(plan) = plan else { return JobResult::Failed };
        self.pieces.clear();
        self.cursors.clear();
        for list in job.targets.iter().chain(job.sources) {
            if !self.gather(array, buffers, list, len) {
                return JobResult::Failed;
            }
        }
        let written = job.roles.get(sources..).unwrap_or_default();
        let store = store(plan, written, len * (sources + targets) as u64, buffers.copying());
        self.walk(plan, targets, len as usize, store)
    }

    /// Adds an operand; false when it does not lie in buffers or is not `len` bytes long.
    fn gather(&mut self, array: &Volume, buffers: &Buffers, list: &SegmentList, len: u64) -> bool {
        let next = self.pieces.len();
        let mut total = 0;
        for segment in array.segments(list) {
            let Some(piece) = buffers.piece(segment) else { return false };
            total += piece.len as u64;
            if piece.len > 0 {
                self.pieces.push(piece);
            }
        }
        self.cursors.push(Cursor { next, end: self.pieces.len(), used: 0 });
        total == len
    }

    /// Carries the plan out over operands that are all `len` bytes long, the first `targets` of them
    /// written. [`JobResult::Failed`] when targets overlap each other, or a source in part.
    fn walk(&mut self, plan: ComputePlan, targets: usize, len: usize, store: Store) -> JobResult {
        if plan == ComputePlan::Checksum {
            return JobResult::Checksum(self.checksum());
        }
        let kernels = Kernels::new(store);
        let mut left = len;
        let mut seen = Seen::default();
        while left > 0 {
            let run = self.next_run(left);
            if !apart(&self.starts, targets, run) {
                return JobResult::Failed;
            }
            // SAFETY: every piece lies in a buffer the core has lent for this job, `run` does not pass the
            // end of any, and the operands are apart as far as needed (just checked).
            unsafe {
                match plan {
                    ComputePlan::Compare => seen.compare(&kernels, &self.starts, run, len - left),
                    ComputePlan::Locate { p, q } => {
                        self.gather_blocks();
                        let parity = (self.starts[p], self.starts[q]);
                        let found = locate(&kernels, &self.data, &self.blocks, (p, q), parity, run);
                        seen.add(found, len - left);
                    }
                    _ => self.compute(&kernels, plan, targets, run),
                }
            }
            left -= run;
        }
        debug_assert!(self.cursors.iter().all(|cursor| cursor.next == cursor.end));
        match plan {
            ComputePlan::Compare | ComputePlan::Locate { .. } => seen.result(),
            _ => JobResult::Done,
        }
    }

    /// Puts the starts of the longest run, of at most `left` bytes, that is contiguous in all operands into
    /// the list, and moves the cursors behind it; gives its length.
    fn next_run(&mut self, left: usize) -> usize {
        let rest = |cursor: &Cursor| self.pieces[cursor.next].len - cursor.used;
        let run = self.cursors.iter().map(rest).min().unwrap_or(left).min(left);
        self.starts.clear();
        for cursor in &mut self.cursors {
            let piece = self.pieces[cursor.next];
            self.starts.push(piece.start.wrapping_add(cursor.used));
            cursor.used += run;
            if cursor.used == piece.len {
                cursor.next += 1;
                cursor.used = 0;
            }
        }
        run
    }

    /// Of all operands, one after another.
    fn checksum(&self) -> u32 {
        let mut sum = Checksum::default();
        for cursor in &self.cursors {
            for piece in &self.pieces[cursor.next..cursor.end] {
                // SAFETY: the piece lies in a buffer the core has lent for this job, to be read.
                sum.add(unsafe { std::slice::from_raw_parts(piece.start.cast_const(), piece.len) });
            }
        }
        sum.value()
    }

    /// The data of the current run, as blocks.
    fn gather_blocks(&mut self) {
        let starts = &self.starts;
        let block =
            |datum: &Datum| Block { start: starts[datum.operand], exponent: datum.exponent };
        self.blocks.clear();
        self.blocks.extend(self.data.iter().map(block));
    }

    /// One run of every kernel that writes, on the operands at `starts`.
    ///
    /// # Safety
    /// All operands are valid for reads and writes of `run` bytes and nobody else uses them; targets are
    /// apart from each other, and from sources that are not exactly them.
    unsafe fn compute(&mut self, kernels: &Kernels, plan: ComputePlan, targets: usize, run: usize) {
        self.gather_blocks();
        let starts = &self.starts;
        let (written, read) = starts.split_at(targets);
        let (at, blocks) = (|operand: usize| starts[operand].cast_const(), &self.blocks[..]);
        // SAFETY: promised by the caller.
        unsafe {
            match plan {
                ComputePlan::Xor => {
                    self.sources.clear();
                    self.sources.extend(read.iter().map(|start| start.cast_const()));
                    kernels.xor_raw(written[0], &self.sources, run);
                }
                ComputePlan::Pq { p, q } => {
                    kernels.pq_raw(p.map(|p| starts[p]), q.map(|q| starts[q]), blocks, run);
                }
                ComputePlan::Delta { p, q } => {
                    let change = |datum: &Datum| {
                        let (old, new) = (at(datum.operand), at(datum.operand + 1));
                        Change { old, new, exponent: datum.exponent }
                    };
                    self.changes.clear();
                    self.changes.extend(self.data.iter().map(change));
                    let (p, q) = (p.map(|p| starts[p]), q.map(|q| starts[q]));
                    kernels.delta_raw(p, q, &self.changes, run);
                }
                ComputePlan::RecoverByP { p } => {
                    let lost = Lost::ByP { target: written[0], p: at(p) };
                    kernels.recover_raw(lost, blocks, run);
                }
                ComputePlan::RecoverByQ { exponent, q } => {
                    let lost = Lost::ByQ { target: written[0], exponent, q: at(q) };
                    kernels.recover_raw(lost, blocks, run);
                }
                ComputePlan::RecoverWithP { exponent, lost, q } => {
                    let (target, p) = (written[lost], written[1 - lost]);
                    kernels.recover_raw(Lost::WithP { target, exponent, p, q: at(q) }, blocks, run);
                }
                ComputePlan::RecoverWithQ { exponent, lost, p } => {
                    let (target, q) = (written[lost], written[1 - lost]);
                    kernels.recover_raw(Lost::WithQ { target, exponent, p: at(p), q }, blocks, run);
                }
                ComputePlan::RecoverTwo { exponents, p, q } => {
                    let (p, q) = (at(p), at(q));
                    let targets = [written[0], written[1]];
                    kernels.recover_raw(Lost::Two { targets, exponents, p, q }, blocks, run);
                }
                ComputePlan::Zero => written.iter().for_each(|target| target.write_bytes(0, run)),
                // The target may be the source.
                ComputePlan::Copy => written[0].copy_from(read[0], run),
                ComputePlan::Compare | ComputePlan::Locate { .. } | ComputePlan::Checksum => {}
            }
        }
    }
}

/// How a job's results are to be stored: past the cache when parity is made of more than the cache of a
/// core holds and only devices read it. What else a job makes is used soon.
fn store(plan: ComputePlan, written: &[Role], bytes: u64, copying: bool) -> Store {
    /// Twice the second-level cache of common processors.
    const FAR: u64 = 2 << 20;
    let makes = matches!(plan, ComputePlan::Xor | ComputePlan::Pq { .. }) && !written.is_empty();
    let parity = makes && written.iter().all(|role| matches!(role, Role::P | Role::Q));
    if parity && !copying && bytes >= FAR { Store::NonTemporal } else { Store::Cached }
}

/// Whether each of the first `targets` operands is apart from all others over `run` bytes; a source may
/// also be a target exactly.
fn apart(starts: &[*mut u8], targets: usize, run: usize) -> bool {
    starts[..targets].iter().enumerate().all(|(index, target)| {
        let others = starts.iter().enumerate().skip(index + 1);
        others.into_iter().all(|(other, start)| {
            start.addr().abs_diff(target.addr()) >= run || (other >= targets && start == target)
        })
    })
}
