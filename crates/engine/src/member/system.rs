//! System calls on one file: reading and writing lists of pieces in full, and what errors mean.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

use raidlab_core::contract::{IoOp, IoOutcome};
use raidlab_core::{SECTOR_BYTES, Sector, Sectors};
use rustix::fs::{self, FallocateFlags};
use rustix::io::{Errno, retry_on_intr};

use super::reach::Reach;
use super::{Submission, outside};
use crate::buffers::{Area, Piece};
use crate::device::Hold;

/// The most pieces the kernel takes in one call (`IOV_MAX`).
pub(super) const MOST_PIECES: usize = 1024;

/// Zeroes are written in runs of this many bytes where the filesystem cannot make them.
const ZEROES: usize = 1 << 20;

/// A file or block device that holds a member's data from `data_offset` on.
#[derive(Debug)]
pub(crate) struct Disk {
    pub(crate) file: File,
    pub(crate) data_offset: Sectors,
    pub(crate) sectors: Sectors,
    /// What memory and lengths must be multiples of, in bytes; 1 without direct I/O.
    pub(crate) alignment: usize,
    pub(crate) reach: Reach,
    /// Nobody else gets the file as long as any thread may write to it.
    pub(crate) _hold: Hold,
    /// Lets tests hold system calls up.
    #[cfg(test)]
    pub(crate) gate: std::sync::Arc<std::sync::RwLock<()>>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Direction {
    Read,
    Write,
}

impl Disk {
    /// Does one I/O, however long it takes. Pieces are used up from the front.
    ///
    /// # Safety
    /// The pieces are valid for the I/O and in nobody else's use.
    pub(crate) unsafe fn carry_out(
        &self,
        submission: &Submission,
        pieces: &mut [Piece],
    ) -> IoOutcome {
        #[cfg(test)]
        let _open = self.gate.read().unwrap_or_else(std::sync::PoisonError::into_inner);
        let is_short = match submission.op {
            IoOp::Read => self.reach.was_short(),
            _ => self.is_short(),
        };
        if is_short {
            return IoOutcome::Gone;
        }
        if submission.op == IoOp::Flush {
            return self.flush();
        }
        if submission.flush_first {
            match self.flush() {
                IoOutcome::Ok => {}
                other => return other,
            }
        }
        if let Some(outcome) = outside(submission, self.sectors) {
            return outcome;
        }
        let outcome = match submission.op {
            // SAFETY: promised by the caller.
            IoOp::Read => return unsafe { self.transfer(Direction::Read, submission, pieces) },
            // SAFETY: promised by the caller.
            IoOp::Write => unsafe { self.transfer(Direction::Write, submission, pieces) },
            IoOp::Discard => return self.discard(submission),
            IoOp::WriteZeroes => self.write_zeroes(submission),
            IoOp::Flush => IoOutcome::Ok,
        };
        if submission.fua && outcome == IoOutcome::Ok { self.flush() } else { outcome }
    }

    /// `fdatasync`. When it fails, writes answered long ago may be lost and the kernel reports that
    /// only once: the member cannot be trusted any more, whatever the error.
    fn flush(&self) -> IoOutcome {
        match retry_on_intr(|| fs::fdatasync(&self.file)) {
            Ok(()) => IoOutcome::Ok,
            Err(_) => IoOutcome::Gone,
        }
    }

    /// Whether the file ends before the member does, or did once: no I/O is to be begun on it.
    pub(super) fn is_short(&self) -> bool {
        self.reach.is_short(&self.file)
    }

    pub(super) fn file_offset(&self, at: Sector) -> u64 {
        (self.data_offset.0 + at.0) * SECTOR_BYTES
    }

    /// # Safety
    /// As [`carry_out`](Self::carry_out).
    unsafe fn transfer(
        &self,
        direction: Direction,
        submission: &Submission,
        pieces: &mut [Piece],
    ) -> IoOutcome {
        let fits = |value: usize| value.is_multiple_of(self.alignment);
        if pieces.iter().all(|piece| fits(piece.start.addr()) && fits(piece.len)) {
            // SAFETY: promised by the caller.
            return unsafe { self.in_full(direction, submission, pieces) };
        }
        // Direct I/O does not take these pieces: go through an aligned buffer.
        let len = submission.len.bytes() as usize;
        let Ok(area) = Area::new(len) else { return IoOutcome::Gone };
        let whole = Piece { start: area.start(), len };
        if direction == Direction::Write {
            // SAFETY: the area is `len` bytes and apart from the pieces.
            unsafe { copy(pieces, whole, direction) };
        }
        // SAFETY: the area lives until the call has returned and is ours alone.
        let outcome = unsafe { self.in_full(direction, submission, &mut [whole]) };
        if direction == Direction::Read && outcome == IoOutcome::Ok {
            // SAFETY: as above.
            unsafe { copy(pieces, whole, direction) };
        }
        outcome
    }

    /// Repeats the call until all of it is done: the kernel may do less than it was asked for.
    ///
    /// # Safety
    /// As [`carry_out`](Self::carry_out).
    unsafe fn in_full(
        &self,
        direction: Direction,
        submission: &Submission,
        pieces: &mut [Piece],
    ) -> IoOutcome {
        let total = submission.len.bytes();
        let (mut done, mut next) = (0u64, 0);
        while done < total {
            let offset = (self.file_offset(submission.at) + done) as libc::off_t;
            let rest = &pieces[next..];
            let count = rest.len().min(MOST_PIECES) as libc::c_int;
            let (descriptor, vectors) = (self.file.as_raw_fd(), rest.as_ptr().cast());
            // SAFETY: the pieces are memory the caller promises to be valid and unused.
            let moved = unsafe {
                match direction {
                    Direction::Read => libc::preadv(descriptor, vectors, count, offset),
                    Direction::Write => libc::pwritev(descriptor, vectors, count, offset),
                }
            };
            let first_bad = Sector(submission.at.0 + done / SECTOR_BYTES);
            match moved {
                0 => return self.reach.met_end(submission.at, done),
                moved if moved > 0 => {
                    done += moved as u64;
                    next += advance(&mut pieces[next..], moved as usize);
                }
                _ => match io::Error::last_os_error().raw_os_error() {
                    Some(libc::EINTR) => {}
                    error => return outcome_of(error, first_bad),
                },
            }
        }
        IoOutcome::Ok
    }

    /// A hint: a filesystem that cannot free the blocks leaves them, which is allowed.
    fn discard(&self, submission: &Submission) -> IoOutcome {
        let mode = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        match self.allocate(mode, submission) {
            Ok(()) | Err(Errno::OPNOTSUPP | Errno::NOSYS | Errno::INVAL) => IoOutcome::Ok,
            Err(error) => outcome_of(Some(error.raw_os_error()), submission.at),
        }
    }

    fn write_zeroes(&self, submission: &Submission) -> IoOutcome {
        let mode = FallocateFlags::ZERO_RANGE | FallocateFlags::KEEP_SIZE;
        match self.allocate(mode, submission) {
            Ok(()) => return IoOutcome::Ok,
            Err(Errno::OPNOTSUPP | Errno::NOSYS | Errno::INVAL) => {}
            Err(error) => return outcome_of(Some(error.raw_os_error()), submission.at),
        }
        let Ok(area) = Area::new(ZEROES) else { return IoOutcome::Gone };
        let (mut at, end) = (submission.at, submission.at + submission.len);
        while at < end {
            let len = (end - at).min(Sectors(ZEROES as u64 / SECTOR_BYTES));
            let piece = Piece { start: area.start(), len: len.bytes() as usize };
            let part = Submission { op: IoOp::Write, at, len, fua: false, flush_first: false };
            // SAFETY: the area is that long and ours alone.
            let outcome = unsafe { self.in_full(Direction::Write, &part, &mut [piece]) };
            if outcome != IoOutcome::Ok {
                return outcome;
            }
            at += len;
        }
        IoOutcome::Ok
    }

    fn allocate(&self, mode: FallocateFlags, submission: &Submission) -> Result<(), Errno> {
        let (offset, len) = (self.file_offset(submission.at), submission.len.bytes());
        retry_on_intr(|| fs::fallocate(&self.file, mode, offset, len))
    }
}

/// Copies between pieces and one run of memory: into the pieces for a read, out of them for a write.
///
/// # Safety
/// All are valid for their lengths, apart from each other, and in nobody else's use.
unsafe fn copy(pieces: &[Piece], whole: Piece, direction: Direction) {
    let mut at = 0;
    for piece in pieces {
        let len = piece.len.min(whole.len - at);
        let run = whole.start.wrapping_add(at);
        // SAFETY: `at + len` is within the whole; the rest is the caller's promise.
        unsafe {
            match direction {
                Direction::Read => piece.start.copy_from_nonoverlapping(run, len),
                Direction::Write => run.copy_from_nonoverlapping(piece.start, len),
            }
        }
        at += len;
    }
}

/// Takes `moved` bytes off the front; gives the number of pieces that are used up.
pub(super) fn advance(pieces: &mut [Piece], mut moved: usize) -> usize {
    for (index, piece) in pieces.iter_mut().enumerate() {
        if moved < piece.len {
            piece.start = piece.start.wrapping_add(moved);
            piece.len -= moved;
            return index;
        }
        moved -= piece.len;
    }
    pieces.len()
}

/// What an error of the system means for the array.
///
/// Errors of the medium concern a range; no room concerns a write; whatever else goes wrong with an open
/// file (its device vanished, the filesystem was shut down) means the member no longer answers.
pub(super) fn outcome_of(error: Option<i32>, first_bad: Sector) -> IoOutcome {
    match error {
        Some(libc::EIO | libc::EILSEQ | libc::ENODATA | libc::EBADMSG | libc::EREMOTEIO) => {
            IoOutcome::MediaError { first_bad }
        }
        Some(libc::ENOSPC | libc::EDQUOT | libc::EFBIG) => IoOutcome::NoSpace,
        Some(libc::ETIMEDOUT) => IoOutcome::Timeout,
        _ => IoOutcome::Gone,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    /// An unnamed file of `sectors` sectors behind 3 sectors of something else.
    fn disk(sectors: u64, alignment: usize) -> Disk {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("raidlab-engine-system-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        let file = File::options()
            .read(true)
            .write(true)
            .create_new(true)
            .open(&path)
            .and_then(|file| std::fs::remove_file(&path).map(|()| file))
            .unwrap();
        file.set_len((3 + sectors) * SECTOR_BYTES).unwrap();
        let (data_offset, sectors) = (Sectors(3), Sectors(sectors));
        let _hold = Hold::default();
        let reach = Reach::of(true, data_offset + sectors);
        Disk { file, data_offset, sectors, alignment, reach, _hold, gate: Default::default() }
    }

    fn run(disk: &Disk, op: IoOp, at: u64, buffer: &mut [u8], cuts: &[usize]) -> IoOutcome {
        let len = Sectors(buffer.len() as u64 / SECTOR_BYTES);
        let mut pieces = Vec::new();
        let mut from = 0;
        for to in cuts.iter().copied().chain([buffer.len()]) {
            let start = buffer.as_mut_ptr().wrapping_add(from);
            pieces.push(Piece { start, len: to - from });
            from = to;
        }
        let submission = Submission { op, at: Sector(at), len, fua: true, flush_first: true };
        // SAFETY: the pieces are parts of a buffer of this test.
        unsafe { disk.carry_out(&submission, &mut pieces) }
    }

    #[test]
    fn pieces_that_direct_io_would_refuse_go_through_an_aligned_buffer() {
        for alignment in [1, 512, 4096] {
            let disk = disk(64, alignment);
            let mut data: Vec<u8> = (0..8193u32).map(|i| (i * 7 + i / 256) as u8).collect();
            let cuts = [512, 700, 4096, 4097];
            assert_eq!(run(&disk, IoOp::Write, 5, &mut data[1..], &cuts), IoOutcome::Ok);
            let mut back = vec![0; 8193];
            assert_eq!(run(&disk, IoOp::Read, 5, &mut back[1..], &[3, 5000]), IoOutcome::Ok);
            assert_eq!(back[1..], data[1..], "alignment {alignment}");
        }
    }

    #[test]
    fn ranges_are_zeroed_and_nothing_beside_them() {
        let disk = disk(64, 1);
        let mut data = vec![0xff; 64 * 512];
        assert_eq!(run(&disk, IoOp::Write, 0, &mut data, &[]), IoOutcome::Ok);
        for (op, at) in [(IoOp::WriteZeroes, 9), (IoOp::Discard, 24)] {
            let len = Sectors(8);
            let submission = Submission { op, at: Sector(at), len, fua: false, flush_first: false };
            // SAFETY: there is no payload.
            assert_eq!(unsafe { disk.carry_out(&submission, &mut []) }, IoOutcome::Ok);
        }
        let mut back = vec![1; 64 * 512];
        assert_eq!(run(&disk, IoOp::Read, 0, &mut back, &[]), IoOutcome::Ok);
        for (sector, bytes) in back.chunks(512).enumerate() {
            let zeroed = (9..17).contains(&sector);
            let may_be_zero = (24..32).contains(&sector);
            assert!(may_be_zero || bytes.iter().all(|b| *b == if zeroed { 0 } else { 0xff }));
        }
    }

    #[test]
    fn the_end_of_the_member_and_of_a_device_are_media_errors() {
        let device = Disk { reach: Reach::default(), ..disk(64, 1) };
        let bad = |first| IoOutcome::MediaError { first_bad: Sector(first) };
        let mut buffer = vec![0; 8 * 512];
        assert_eq!(run(&device, IoOp::Read, 60, &mut buffer, &[]), bad(64));
        device.file.set_len((3 + 50) * SECTOR_BYTES).unwrap();
        assert_eq!(run(&device, IoOp::Read, 44, &mut buffer, &[600]), bad(50));
        assert_eq!(run(&device, IoOp::Read, 42, &mut buffer, &[]), IoOutcome::Ok);
    }

    #[test]
    fn a_file_cut_short_is_gone_and_gets_no_longer() {
        let cut = (3 + 50) * SECTOR_BYTES;
        for op in [IoOp::Read, IoOp::Write, IoOp::WriteZeroes, IoOp::Discard, IoOp::Flush] {
            for at in [44, 20] {
                let disk = disk(64, 1);
                disk.file.set_len(cut).unwrap();
                let mut buffer = vec![7; 8 * 512];
                let outcome = run(&disk, op, at, &mut buffer, &[600]);
                // A read of what is there shows nothing.
                let is_seen = op != IoOp::Read || at == 44;
                let expected = if is_seen { IoOutcome::Gone } else { IoOutcome::Ok };
                assert_eq!(outcome, expected, "{op:?} at {at}");
                assert_eq!(disk.file.metadata().unwrap().len(), cut, "{op:?} at {at}");
                // Nor is it believed again when somebody has made it as long as it was.
                disk.file.set_len((3 + 64) * SECTOR_BYTES).unwrap();
                if is_seen {
                    assert_eq!(run(&disk, IoOp::Read, 8, &mut buffer, &[]), IoOutcome::Gone);
                }
            }
        }
    }

    #[test]
    fn errors_of_the_system_become_outcomes() {
        let at = Sector(7);
        let bad = IoOutcome::MediaError { first_bad: at };
        for (error, outcome) in [
            (libc::EIO, bad),
            (libc::ENODATA, bad),
            (libc::ENOSPC, IoOutcome::NoSpace),
            (libc::EDQUOT, IoOutcome::NoSpace),
            (libc::ETIMEDOUT, IoOutcome::Timeout),
            (libc::ENODEV, IoOutcome::Gone),
            (libc::EBADF, IoOutcome::Gone),
        ] {
            assert_eq!(outcome_of(Some(error), at), outcome);
        }
        assert_eq!(outcome_of(None, at), IoOutcome::Gone);
    }

    #[test]
    fn short_transfers_go_on_where_they_stopped() {
        let mut memory = [0u8; 100];
        let start = memory.as_mut_ptr();
        let piece = |from: usize, len| Piece { start: start.wrapping_add(from), len };
        for (moved, used, from, left) in
            [(0, 0, 0, 40), (39, 0, 39, 1), (40, 1, 40, 30), (71, 2, 71, 29)]
        {
            let mut pieces = [piece(0, 40), piece(40, 30), piece(70, 30)];
            assert_eq!(advance(&mut pieces, moved), used);
            assert_eq!(pieces[used].start, start.wrapping_add(from));
            assert_eq!(pieces[used].len, left);
        }
        assert_eq!(advance(&mut [piece(0, 40)], 40), 1);
    }
}
