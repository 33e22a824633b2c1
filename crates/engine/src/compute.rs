//! Carries out the core's jobs on the loop's own thread.
//!
//! Operands are lists of segments that may be split at different places; they are walked in step, so
//! each call of a kernel covers the longest run that is contiguous in all of them.

mod plan;
#[cfg(test)]
mod tests;

use raidlab_core::contract::{JobId, JobResult, SegmentList};
use raidlab_core::{Array, SECTOR_BYTES};
use raidlab_parity::{Block, Change, Lost, delta_raw, pq_raw, recover_raw, xor_raw};

use self::plan::{Datum, Plan};
use crate::buffers::{Buffers, Piece};

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
    /// [`JobResult::Failed`] for kernels this version lacks, for jobs the core does not know, and
    /// for operands whose roles do not suit the kernel, that do not lie in buffers, differ in length
    /// or overlap in part.
    pub(crate) fn run(&mut self, array: &Array, buffers: &Buffers, job: JobId) -> JobResult {
        let Some(job) = array.job(job) else { return JobResult::Failed };
        let len = u64::from(job.len) * SECTOR_BYTES;
        let (sources, targets) = (job.sources.len(), job.targets.len());
        let plan = plan::plan(job.kernel, sources, targets, job.roles, &mut self.data);
        let Some(plan) = plan else { return JobResult::Failed };
        self.pieces.clear();
        self.cursors.clear();
        for list in job.targets.iter().chain(job.sources) {
            if !self.gather(array, buffers, list, len) {
                return JobResult::Failed;
            }
        }
        self.walk(plan, targets, len as usize)
    }

    /// Adds an operand; false when it does not lie in buffers or is not `len` bytes long.
    fn gather(&mut self, array: &Array, buffers: &Buffers, list: &SegmentList, len: u64) -> bool {
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
    fn walk(&mut self, plan: Plan, targets: usize, len: usize) -> JobResult {
        let mut left = len;
        let mut differs = None;
        while left > 0 {
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
            if !apart(&self.starts, targets, run) {
                return JobResult::Failed;
            }
            if plan == Plan::Compare {
                // SAFETY: as below.
                if let Some((from, to)) = unsafe { difference(&self.starts, run) } {
                    let base = len - left;
                    let (first, _) = differs.unwrap_or((base + from, 0));
                    differs = Some((first, base + to));
                }
            } else {
                // SAFETY: every piece lies in a buffer the core has lent for this job, `run` does not
                // pass the end of any, and the operands are apart as far as needed (just checked).
                unsafe { self.compute(plan, targets, run) };
            }
            left -= run;
        }
        debug_assert!(self.cursors.iter().all(|cursor| cursor.next == cursor.end));
        let sector = |at: usize| (at / SECTOR_BYTES as usize) as u32;
        match (plan, differs) {
            (_, Some((from, to))) => JobResult::Differs { from: sector(from), to: sector(to) },
            (Plan::Compare, None) => JobResult::Equal,
            _ => JobResult::Done,
        }
    }

    /// One run of every kernel that writes, on the operands at `starts`.
    ///
    /// # Safety
    /// All operands are valid for reads and writes of `run` bytes and nobody else uses them; targets are
    /// apart from each other, and from sources that are not exactly them.
    unsafe fn compute(&mut self, plan: Plan, targets: usize, run: usize) {
        let starts = &self.starts;
        let (written, read) = starts.split_at(targets);
        self.sources.clear();
        self.blocks.clear();
        self.changes.clear();
        let block =
            |datum: &Datum| Block { start: starts[datum.operand], exponent: datum.exponent };
        // SAFETY: promised by the caller.
        unsafe {
            match plan {
                Plan::Xor => {
                    self.sources.extend(read.iter().map(|start| start.cast_const()));
                    xor_raw(written[0], &self.sources, run);
                }
                Plan::Pq { p, q } => {
                    self.blocks.extend(self.data.iter().map(block));
                    pq_raw(p.map(|p| starts[p]), q.map(|q| starts[q]), &self.blocks, run);
                }
                Plan::Delta { p, q } => {
                    let change = |datum: &Datum| {
                        let (old, new) = (starts[datum.operand], starts[datum.operand + 1]);
                        Change { old, new, exponent: datum.exponent }
                    };
                    self.changes.extend(self.data.iter().map(change));
                    delta_raw(p.map(|p| starts[p]), q.map(|q| starts[q]), &self.changes, run);
                }
                Plan::RecoverByP { p } => {
                    self.blocks.extend(self.data.iter().map(block));
                    let lost = Lost::ByP { target: written[0], p: starts[p] };
                    recover_raw(lost, &self.blocks, run);
                }
                Plan::RecoverByQ { exponent, q } => {
                    self.blocks.extend(self.data.iter().map(block));
                    let lost = Lost::ByQ { target: written[0], exponent, q: starts[q] };
                    recover_raw(lost, &self.blocks, run);
                }
                Plan::RecoverTwo { exponents, p, q } => {
                    self.blocks.extend(self.data.iter().map(block));
                    let (p, q) = (starts[p].cast_const(), starts[q].cast_const());
                    let targets = [written[0], written[1]];
                    recover_raw(Lost::Two { targets, exponents, p, q }, &self.blocks, run);
                }
                Plan::Zero => written.iter().for_each(|target| target.write_bytes(0, run)),
                // The target may be the source.
                Plan::Copy => written[0].copy_from(read[0], run),
                Plan::Compare => {}
            }
        }
    }
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

/// The bytes from the first sector in which the operands differ to the end of the last one.
///
/// # Safety
/// All are valid for reads of `run` bytes, a multiple of the sector, which nobody changes.
unsafe fn difference(starts: &[*mut u8], run: usize) -> Option<(usize, usize)> {
    const SECTOR: usize = SECTOR_BYTES as usize;
    // SAFETY: promised by the caller.
    let bytes = |start: *mut u8| unsafe { std::slice::from_raw_parts(start.cast_const(), run) };
    let (first, others) = starts.split_first()?;
    let first = bytes(*first);
    let mut found: Option<(usize, usize)> = None;
    for other in others.iter().map(|other| bytes(*other)).filter(|other| *other != first) {
        let sectors = first.as_chunks::<SECTOR>().0.iter().zip(other.as_chunks::<SECTOR>().0);
        for (sector, _) in sectors.enumerate().filter(|(_, (one, other))| one != other) {
            let at = sector * SECTOR;
            let (from, to) = found.unwrap_or((at, at));
            found = Some((from.min(at), to.max(at + SECTOR)));
        }
    }
    found
}
