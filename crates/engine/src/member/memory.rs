//! A member in memory, for tests and for measuring the engine with copying.

use std::ops::Range;

use raidlab_core::contract::{IoOp, IoOutcome};
use raidlab_core::{SECTOR_BYTES, Sector, Sectors};

use super::{Submission, outside};
use crate::buffers::{Area, Piece};
use crate::error::EngineError;

/// A member that keeps its data in memory and answers at once. Starts as zeroes.
///
/// A range of it can be made unreadable and the whole of it can vanish, so that tests see the errors of
/// drives.
#[derive(Debug)]
pub struct MemoryMember {
    area: Area,
    sectors: Sectors,
    block: u32,
    unreadable: Range<u64>,
    unwritable: Range<u64>,
    /// Flushes until one fails.
    flushes_well: Option<u32>,
    gone: bool,
    stalled: bool,
}

impl MemoryMember {
    /// A member of this size, all zeroes.
    ///
    /// # Errors
    /// When there is not enough memory.
    pub fn new(sectors: Sectors) -> Result<Self, EngineError> {
        let area = Area::new(sectors.bytes() as usize)?;
        let (unreadable, unwritable, flushes_well) = (0..0, 0..0, None);
        let (gone, stalled) = (false, false);
        Ok(Self { area, sectors, block: 1, unreadable, unwritable, flushes_well, gone, stalled })
    }

    /// The same with blocks of so many sectors: what is not whole blocks is refused.
    #[must_use]
    pub fn with_block(mut self, block: u32) -> Self {
        self.block = block.max(1);
        self
    }

    /// Sectors that it reads and writes together.
    pub const fn block(&self) -> u32 {
        self.block
    }

    /// Its size.
    pub const fn sectors(&self) -> Sectors {
        self.sectors
    }

    /// What it holds.
    pub fn bytes(&self) -> &[u8] {
        &self.area.bytes()[..self.sectors.bytes() as usize]
    }

    /// What it holds, to be changed behind the array's back.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.area.bytes_mut()[..self.sectors.bytes() as usize]
    }

    /// Reads that touch these sectors fail with a media error from now on; writes still succeed.
    pub fn make_unreadable(&mut self, sectors: Range<Sector>) {
        self.unreadable = sectors.start.0..sectors.end.0;
    }

    /// The sectors that [`make_unreadable`](Self::make_unreadable) named.
    pub fn unreadable(&self) -> Range<Sector> {
        Sector(self.unreadable.start)..Sector(self.unreadable.end)
    }

    /// Writes that touch these sectors fail with a media error from now on; reads still succeed.
    pub fn make_unwritable(&mut self, sectors: Range<Sector>) {
        self.unwritable = sectors.start.0..sectors.end.0;
    }

    /// After so many more flushes one fails, once, as a kernel tells of what it could not write; durable writes
    /// count as flushes.
    pub fn fail_flush(&mut self, after: u32) {
        self.flushes_well = Some(after);
    }

    /// Whether a flush goes well.
    fn flush(&mut self) -> bool {
        let left = self.flushes_well.map(|left| left.checked_sub(1));
        self.flushes_well = left.flatten();
        left != Some(None)
    }

    /// Every I/O is answered with [`IoOutcome::Gone`] from now on.
    pub fn vanish(&mut self) {
        self.gone = true;
    }

    /// No I/O is answered from now on, or again; one that was not answered never is.
    pub fn stall(&mut self, on: bool) {
        self.stalled = on;
    }

    /// Whether it answers nothing.
    pub(crate) const fn is_stalled(&self) -> bool {
        self.stalled
    }

    /// Does one I/O.
    ///
    /// # Safety
    /// The pieces are valid for the I/O, in nobody else's use, not part of this member, and together
    /// as long as the submission (checked in debug builds; more is never touched).
    #[inline]
    pub(crate) unsafe fn carry_out(
        &mut self,
        submission: &Submission,
        pieces: impl Iterator<Item = Piece>,
    ) -> IoOutcome {
        if self.gone {
            return IoOutcome::Gone;
        }
        let flushes = [submission.op == IoOp::Flush, submission.flush_first, submission.fua];
        if flushes.iter().any(|flush| *flush && !self.flush()) {
            return IoOutcome::Gone;
        }
        if submission.op == IoOp::Flush {
            return IoOutcome::Ok;
        }
        let block = u64::from(self.block);
        if !submission.at.0.is_multiple_of(block) || !submission.len.0.is_multiple_of(block) {
            return IoOutcome::Gone;
        }
        if let Some(outcome) = outside(submission, self.sectors) {
            return outcome;
        }
        let (from, to) = (submission.at.0, submission.at.0 + submission.len.0);
        let mut at = (from * SECTOR_BYTES) as usize;
        let end = (to * SECTOR_BYTES) as usize;
        match submission.op {
            IoOp::Read if from < self.unreadable.end && self.unreadable.start < to => {
                let first_bad = Sector(from.max(self.unreadable.start));
                return IoOutcome::MediaError { first_bad };
            }
            IoOp::Write | IoOp::WriteZeroes | IoOp::Discard
                if from < self.unwritable.end && self.unwritable.start < to =>
            {
                let first_bad = Sector(from.max(self.unwritable.start));
                return IoOutcome::MediaError { first_bad };
            }
            IoOp::Discard | IoOp::WriteZeroes => self.area.bytes_mut()[at..end].fill(0),
            IoOp::Flush => {}
            IoOp::Read | IoOp::Write => {
                for piece in pieces {
                    let len = piece.len.min(end - at);
                    let own = self.area.start().wrapping_add(at);
                    // SAFETY: `at + len <= end`, which lies in the area; the piece is valid for its
                    // length and apart from the area, as the caller promises.
                    unsafe {
                        if submission.op == IoOp::Read {
                            piece.start.copy_from_nonoverlapping(own, len);
                        } else {
                            own.copy_from_nonoverlapping(piece.start, len);
                        }
                    }
                    at += len;
                }
                debug_assert_eq!(at, end, "payload as long as the I/O");
            }
        }
        IoOutcome::Ok
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(
        member: &mut MemoryMember,
        op: IoOp,
        at: u64,
        buffer: &mut [u8],
        cut: usize,
    ) -> IoOutcome {
        let len = Sectors(buffer.len() as u64 / SECTOR_BYTES);
        let (one, two) = buffer.split_at_mut(cut);
        let pieces = [one, two].map(|part| Piece { start: part.as_mut_ptr(), len: part.len() });
        let submission = Submission { op, at: Sector(at), len, fua: false, flush_first: false };
        // SAFETY: the pieces are two halves of a buffer of this test.
        unsafe { member.carry_out(&submission, pieces.into_iter()) }
    }

    #[test]
    fn what_is_written_in_pieces_is_read_in_others() {
        let mut member = MemoryMember::new(Sectors(16)).unwrap();
        let mut data: Vec<u8> = (0..2048u32).map(|i| (i / 7) as u8).collect();
        assert_eq!(run(&mut member, IoOp::Write, 3, &mut data, 512), IoOutcome::Ok);
        assert_eq!(&member.bytes()[1536..3584], &data[..]);
        let mut back = vec![0; 2048];
        assert_eq!(run(&mut member, IoOp::Read, 3, &mut back, 1536), IoOutcome::Ok);
        assert_eq!(back, data);
        assert_eq!(run(&mut member, IoOp::WriteZeroes, 4, &mut [0; 512], 0), IoOutcome::Ok);
        assert!(member.bytes()[2048..2560].iter().all(|byte| *byte == 0));
        assert_eq!(&member.bytes()[2560..3584], &data[1024..]);
    }

    #[test]
    fn errors_are_outcomes() {
        let mut member = MemoryMember::new(Sectors(16)).unwrap();
        let bad = |first| IoOutcome::MediaError { first_bad: Sector(first) };
        let mut buffer = [0; 2048];
        assert_eq!(run(&mut member, IoOp::Read, 14, &mut buffer, 0), bad(16));
        assert_eq!(run(&mut member, IoOp::Write, u64::MAX, &mut buffer, 0), bad(u64::MAX));
        member.make_unreadable(Sector(5)..Sector(7));
        assert_eq!(run(&mut member, IoOp::Read, 3, &mut buffer, 0), bad(5));
        assert_eq!(run(&mut member, IoOp::Read, 6, &mut buffer, 0), bad(6));
        assert_eq!(run(&mut member, IoOp::Read, 7, &mut buffer, 0), IoOutcome::Ok);
        assert_eq!(run(&mut member, IoOp::Write, 3, &mut buffer, 0), IoOutcome::Ok);
        member.make_unwritable(Sector(9)..Sector(10));
        for op in [IoOp::Write, IoOp::WriteZeroes] {
            assert_eq!(run(&mut member, op, 7, &mut buffer, 0), bad(9));
            assert_eq!(run(&mut member, op, 5, &mut buffer, 0), IoOutcome::Ok);
        }
        assert_eq!(run(&mut member, IoOp::Read, 8, &mut buffer, 0), IoOutcome::Ok);
        member.vanish();
        assert_eq!(run(&mut member, IoOp::Flush, 0, &mut [], 0), IoOutcome::Gone);
    }
}
