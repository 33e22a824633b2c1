//! Carries out the core's jobs on the loop's own thread.
//!
//! Operands are lists of segments that may be split at different places; they are walked in step, so
//! each call of a kernel covers the longest run that is contiguous in all of them.

use raidlab_core::contract::{JobId, JobResult, Kernel, SegmentList};
use raidlab_core::{Array, SECTOR_BYTES};
use raidlab_parity::xor_raw;

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
    cursors: Vec<Cursor>,
    sources: Vec<*const u8>,
}

// SAFETY: the pointers in `sources` are left over from the last call and never followed again.
unsafe impl Send for Computer {}

impl Computer {
    /// Runs a job to its end.
    ///
    /// [`JobResult::Failed`] for kernels this version lacks, for jobs the core does not know, and
    /// for operands that do not lie in buffers, differ in length or overlap in part.
    pub(crate) fn run(&mut self, array: &Array, buffers: &Buffers, job: JobId) -> JobResult {
        let Some(job) = array.job(job) else { return JobResult::Failed };
        let len = u64::from(job.len) * SECTOR_BYTES;
        if job.kernel != Kernel::Xor || job.targets.len() != 1 {
            return JobResult::Failed;
        }
        self.pieces.clear();
        self.cursors.clear();
        for list in job.targets.iter().chain(job.sources) {
            if !self.gather(array, buffers, list, len) {
                return JobResult::Failed;
            }
        }
        if self.xor(len as usize) { JobResult::Done } else { JobResult::Failed }
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

    /// XORs operands 1.. into operand 0, all `len` bytes long. False when operands overlap in part.
    fn xor(&mut self, len: usize) -> bool {
        let mut left = len;
        while left > 0 {
            let rest = |cursor: &Cursor| self.pieces[cursor.next].len - cursor.used;
            let run = self.cursors.iter().map(rest).min().unwrap_or(left).min(left);
            let start = |cursor: &Cursor| self.pieces[cursor.next].start.wrapping_add(cursor.used);
            let Some((target, sources)) = self.cursors.split_first() else { return false };
            let target = start(target);
            self.sources.clear();
            for cursor in sources {
                let source = start(cursor);
                let apart = source.addr().abs_diff(target.addr()) >= run;
                if !apart && source != target {
                    return false;
                }
                self.sources.push(source.cast_const());
            }
            // SAFETY: every piece lies in a buffer the core has lent for this job, `run` does not pass
            // the end of any, and a source is the target exactly or apart from it (just checked).
            unsafe { xor_raw(target, &self.sources, run) };
            for cursor in &mut self.cursors {
                cursor.used += run;
                if cursor.used == self.pieces[cursor.next].len {
                    cursor.next += 1;
                    cursor.used = 0;
                }
            }
            left -= run;
        }
        debug_assert!(self.cursors.iter().all(|cursor| cursor.next == cursor.end));
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Cuts `memory[from..]` into pieces of these lengths.
    fn operand(computer: &mut Computer, memory: *mut u8, from: usize, cuts: &[usize]) {
        let next = computer.pieces.len();
        let mut at = from;
        for len in cuts {
            computer.pieces.push(Piece { start: memory.wrapping_add(at), len: *len });
            at += len;
        }
        computer.cursors.push(Cursor { next, end: computer.pieces.len(), used: 0 });
    }

    fn filled(len: usize) -> Vec<u8> {
        (0..len).map(|i| (i * 31 + i / 251) as u8).collect()
    }

    #[test]
    fn operands_split_at_odd_places_are_walked_in_step() {
        let splits: [&[usize]; 4] =
            [&[512, 1024, 512], &[2048], &[1536, 512], &[512, 512, 512, 512]];
        for target in 0..splits.len() {
            let mut memory = filled(8192);
            let mut expected = memory.clone();
            for at in 0..2048 {
                expected[at] = memory[2048 + at] ^ memory[4096 + at] ^ memory[6144 + at];
            }
            let mut computer = Computer::default();
            let start = memory.as_mut_ptr();
            for n in 0..4 {
                operand(&mut computer, start, n * 2048, splits[(target + n) % 4]);
            }
            assert!(computer.xor(2048));
            assert!(memory == expected, "splits turned by {target}");
        }
    }

    #[test]
    fn the_target_may_be_a_source_exactly_but_not_in_part() {
        let mut memory = filled(4096);
        let expected: Vec<u8> = (0..2048).map(|at| memory[at] ^ memory[2048 + at]).collect();
        let start = memory.as_mut_ptr();
        let mut computer = Computer::default();
        operand(&mut computer, start, 0, &[1024, 1024]);
        operand(&mut computer, start, 2048, &[2048]);
        operand(&mut computer, start, 0, &[2048]);
        assert!(computer.xor(2048));
        assert_eq!(&memory[..2048], &expected[..]);

        let start = memory.as_mut_ptr();
        let mut computer = Computer::default();
        operand(&mut computer, start, 0, &[1024]);
        operand(&mut computer, start, 512, &[1024]);
        assert!(!computer.xor(1024));
        assert_eq!(&memory[..2048], &expected[..], "nothing was written");
    }
}
