//! One `io_uring` for all members of an engine: a whole batch goes to the kernel in one call.
//!
//! Common reads, writes and flushes go through the ring; what is rare (ranges outside the member, memory
//! that direct I/O refuses, discard and zeroes) stays with the member's threads, which know how. The
//! ring works cooperatively: completions are posted when the loop enters the kernel, without interrupting
//! it, from whatever thread calls. Deferring them to one thread (`DEFER_TASKRUN`) or registering
//! buffers is not done; see `docs/devices.md` for what was measured.
//!
//! Fault model: the kernel may do part of an I/O, interrupt it, or never answer. Why it is safe: short
//! transfers go on where they stopped, as in `system`; memory is freed only after the kernel has answered,
//! because dropping the ring waits for that; and where an I/O may hang (a deadline is set) its memory is
//! its own and is leaked with the I/O rather than reused. Tests: `tests/members.rs`, and those below.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, RawFd};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use io_uring::types::{Fd, FsyncFlags, SubmitArgs, Timespec};
use io_uring::{IoUring, Probe, cqueue, opcode, squeue};
use raidlab_core::contract::{IoOp, IoOutcome};
use raidlab_core::{SECTOR_BYTES, Sector};

use super::outside;
use super::system::{Disk, MOST_PIECES, advance, outcome_of};
use super::worker::{Finished, Hub, Work};

/// I/Os that go to the kernel in one call; more go in several.
const ENTRIES: u32 = 256;
/// Answers that wait to be looked at; the kernel keeps what is more.
const ANSWERS: u32 = 4 * ENTRIES;
/// Places for registered files; members beyond these are used without.
const FILES: usize = 64;
/// The name of the poll that tells of answers from threads; tickets are 32 bits.
const DOORBELL: u64 = u64::MAX;
/// The longest single run of memory of one kernel call, in bytes; the rest follows.
const LONGEST: usize = 1 << 30;
/// So many listed I/Os are handed over at once; fewer when the loop waits. A drive begins with the first of many
/// while the others are still planned: when all are handed over together, a virtual disk, which then answers all
/// together too, and the loop take turns.
const HANDFUL: usize = 4;
/// Between attempts to reach the kernel at the end, when it refuses.
const PAUSE: Duration = Duration::from_millis(1);

/// Why this kernel's `io_uring` cannot be used, in words; `None` when it can. Looked at once.
pub fn unusable() -> Option<&'static str> {
    static PROBED: OnceLock<Option<String>> = OnceLock::new();
    PROBED.get_or_init(|| probe().err()).as_deref()
}

fn probe() -> Result<(), String> {
    let ring = build(4).map_err(|error| format!("the kernel refuses io_uring: {error}"))?;
    let has = ring.params();
    if !(has.is_feature_nodrop() && has.is_feature_submit_stable() && has.is_feature_ext_arg()) {
        return Err("the kernel's io_uring is too old (5.11 is needed)".into());
    }
    let mut known = Probe::new();
    let probed = ring.submitter().register_probe(&mut known);
    probed.map_err(|error| format!("the kernel does not say what its io_uring does: {error}"))?;
    let needed = [
        opcode::Read::CODE,
        opcode::Write::CODE,
        opcode::Readv::CODE,
        opcode::Writev::CODE,
        opcode::Fsync::CODE,
        opcode::PollAdd::CODE,
    ];
    match needed.iter().find(|code| !known.is_supported(**code)) {
        None => Ok(()),
        Some(code) => Err(format!("the kernel's io_uring lacks operation {code}")),
    }
}

/// A ring that does not interrupt the loop, or a plain one before Linux 5.19.
fn build(entries: u32) -> io::Result<IoUring> {
    let cooperative = IoUring::builder()
        .dontfork()
        .setup_cqsize(ANSWERS)
        .setup_coop_taskrun()
        .setup_taskrun_flag()
        .build(entries);
    match cooperative {
        Err(error) if error.raw_os_error() == Some(libc::EINVAL) => {
            IoUring::builder().dontfork().setup_cqsize(ANSWERS).build(entries)
        }
        other => other,
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    FlushFirst,
    Transfer,
    FlushAfter,
}

/// An I/O at the kernel.
#[derive(Debug)]
struct Op {
    work: Work,
    disk: Arc<Disk>,
    slot: Option<u32>,
    stage: Stage,
    /// The first piece with something left, and the bytes done.
    next: usize,
    done: u64,
}

impl Op {
    fn total(&self) -> u64 {
        self.work.submission.len.bytes()
    }

    fn first_stage(&self) -> Stage {
        match self.work.submission.op {
            IoOp::Flush => Stage::FlushAfter,
            _ if self.work.submission.flush_first => Stage::FlushFirst,
            _ => Stage::Transfer,
        }
    }

    /// What the kernel is asked for next.
    fn entry(&self) -> squeue::Entry {
        let (fd, flags) = match self.slot {
            Some(slot) => (Fd(slot as i32), squeue::Flags::FIXED_FILE),
            None => (Fd(self.disk.file.as_raw_fd()), squeue::Flags::empty()),
        };
        let entry = if self.stage == Stage::Transfer {
            self.transfer(fd)
        } else {
            opcode::Fsync::new(fd).flags(FsyncFlags::DATASYNC).build()
        };
        entry.flags(flags).user_data(u64::from(self.work.ticket.0))
    }

    fn transfer(&self, fd: Fd) -> squeue::Entry {
        let submission = &self.work.submission;
        let offset = self.disk.file_offset(submission.at) + self.done;
        let rest = &self.work.pieces[self.next..];
        let is_read = submission.op == IoOp::Read;
        if let [only] = rest {
            let (start, len) = (only.start, only.len.min(LONGEST) as u32);
            return if is_read {
                opcode::Read::new(fd, start, len).offset(offset).build()
            } else {
                opcode::Write::new(fd, start, len).offset(offset).build()
            };
        }
        let (vectors, count) = (rest.as_ptr().cast(), rest.len().min(MOST_PIECES) as u32);
        if is_read {
            opcode::Readv::new(fd, vectors, count).offset(offset).build()
        } else {
            opcode::Writev::new(fd, vectors, count).offset(offset).build()
        }
    }

    /// Takes the kernel's answer; gives the outcome when nothing is left to do.
    fn answered(&mut self, result: i32) -> Option<IoOutcome> {
        if let Some(libc::EINTR | libc::EAGAIN | libc::ECANCELED) = result.checked_neg() {
            // Nothing was done, for reasons that have nothing to do with the device.
            return None;
        }
        match self.stage {
            // As `Disk::flush`: what was written before may be lost, and that is told once only.
            Stage::FlushFirst | Stage::FlushAfter if result < 0 => return Some(IoOutcome::Gone),
            Stage::FlushFirst => self.stage = Stage::Transfer,
            Stage::FlushAfter => return Some(IoOutcome::Ok),
            Stage::Transfer => return self.moved(result),
        }
        None
    }

    fn moved(&mut self, result: i32) -> Option<IoOutcome> {
        let submission = &self.work.submission;
        let first_bad = Sector(submission.at.0 + self.done / SECTOR_BYTES);
        if result < 0 {
            return Some(outcome_of(result.checked_neg(), first_bad));
        }
        if result == 0 {
            return Some(self.disk.reach.met_end(submission.at, self.done));
        }
        self.done += result as u64;
        self.next += advance(&mut self.work.pieces[self.next..], result as usize);
        if self.done < self.total() {
            return None;
        }
        if submission.op == IoOp::Write && submission.fua {
            self.stage = Stage::FlushAfter;
            return None;
        }
        Some(IoOutcome::Ok)
    }
}

/// Whether an I/O goes through the ring at all.
pub(crate) fn suits(work: &Work, disk: &Disk) -> bool {
    let fits = |value: usize| value.is_multiple_of(disk.alignment);
    match work.submission.op {
        IoOp::Flush => true,
        IoOp::Discard | IoOp::WriteZeroes => false,
        IoOp::Read | IoOp::Write => {
            work.submission.len.0 > 0
                && outside(&work.submission, disk.sectors).is_none()
                && work.pieces.iter().all(|piece| fits(piece.start.addr()) && fits(piece.len))
        }
    }
}

/// The ring of an engine.
pub(crate) struct Ring {
    ring: IoUring,
    /// I/Os at the kernel, by ticket.
    ops: Vec<Option<Op>>,
    in_flight: u32,
    files: Vec<bool>,
    answers: Vec<(u64, i32)>,
    bell: Option<File>,
    armed: bool,
    /// I/Os may hang, and are not waited for.
    detached: bool,
    /// I/Os that found no room in the list, to be listed again.
    unlisted: VecDeque<u32>,
}

impl std::fmt::Debug for Ring {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Ring").field("in_flight", &self.in_flight).finish_non_exhaustive()
    }
}

impl Ring {
    /// A ring for the members that answer to `hub`, with room for `ios` I/Os at once.
    ///
    /// # Errors
    /// When the kernel gives none, or no more descriptors.
    pub(crate) fn new(hub: &Hub, ios: usize) -> io::Result<Self> {
        let ring = build(ENTRIES)?;
        // SAFETY: makes a descriptor, which is nobody else's.
        let bell = unsafe { libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) };
        if bell < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: open, and owned from here on.
        let bell = unsafe { File::from_raw_fd(bell) };
        hub.install_bell(bell.try_clone()?);
        let fixed = ring.submitter().register_files(&[-1; FILES]).is_ok();
        Ok(Self {
            ring,
            ops: Vec::with_capacity(ios),
            in_flight: 0,
            files: if fixed { vec![false; FILES] } else { Vec::new() },
            answers: Vec::with_capacity(ANSWERS as usize),
            bell: Some(bell),
            armed: false,
            detached: false,
            unlisted: VecDeque::with_capacity(ios),
        })
    }

    /// Registers a member's file, which saves the kernel looking it up each time; `None` when there is
    /// no place left.
    pub(crate) fn register(&mut self, disk: &Disk) -> Option<u32> {
        let slot = self.files.iter().position(|used| !used)?;
        let fds = [disk.file.as_raw_fd()];
        self.ring.submitter().register_files_update(slot as u32, &fds).ok()?;
        self.files[slot] = true;
        Some(slot as u32)
    }

    /// Lets a registered file go; its I/Os must have been answered.
    pub(crate) fn unregister(&mut self, slot: u32) {
        if self.ring.submitter().register_files_update(slot, &[-1]).is_ok() {
            self.files[slot as usize] = false;
        }
    }

    /// Its descriptors: the ring, which can be read when it has answers, and the bell.
    /// That of the ring itself.
    pub(crate) fn descriptor(&self) -> BorrowedFd<'_> {
        // SAFETY: the ring is open as long as `self`.
        unsafe { BorrowedFd::borrow_raw(self.ring.as_raw_fd()) }
    }

    pub(crate) fn descriptors(&self) -> Vec<RawFd> {
        let bell = self.bell.as_ref().map(AsRawFd::as_raw_fd);
        std::iter::once(self.ring.as_raw_fd()).chain(bell).collect()
    }

    /// I/Os that were not answered yet.
    pub(crate) fn in_flight(&self) -> u32 {
        self.in_flight
    }

    /// Whether an I/O on this disk was not answered yet.
    pub(crate) fn is_using(&self, disk: &Arc<Disk>) -> bool {
        self.ops.iter().flatten().any(|op| Arc::ptr_eq(&op.disk, disk))
    }

    /// Nobody waits for the kernel any more; only when all I/Os have memory of their own.
    pub(crate) fn detach(&mut self) {
        self.detached = true;
    }

    /// Lists an I/O that [`suits`] for the next call into the kernel. Its pieces are valid and in nobody
    /// else's use until its answer is [`reap`](Self::reap)ed.
    ///
    /// # Errors
    /// When the list is full and the kernel does not take it.
    pub(crate) fn push(
        &mut self,
        work: Work,
        disk: &Arc<Disk>,
        slot: Option<u32>,
    ) -> io::Result<()> {
        let ticket = work.ticket.0;
        let stage = Stage::Transfer;
        let mut op = Op { work, disk: disk.clone(), slot, stage, next: 0, done: 0 };
        op.stage = op.first_stage();
        let place = ticket as usize;
        if self.ops.len() <= place {
            self.ops.resize_with(place + 1, || None);
        }
        self.ops[place] = Some(op);
        self.in_flight += 1;
        self.list(ticket)
    }

    /// Lists the next step of an I/O.
    fn list(&mut self, ticket: u32) -> io::Result<()> {
        let Some(op) = &self.ops[ticket as usize] else { return Ok(()) };
        #[cfg(test)]
        if op.disk.gate.try_read().is_err() {
            self.unlisted.push_back(ticket);
            return Ok(());
        }
        let entry = op.entry();
        let listed = self.enlist(&entry);
        if listed.is_err() {
            self.unlisted.push_back(ticket);
        }
        listed
    }

    fn enlist(&mut self, entry: &squeue::Entry) -> io::Result<()> {
        loop {
            let mut submission = self.ring.submission();
            // SAFETY: the entry's memory is that of an `Op` in `self.ops`, which stays until the kernel
            // has answered; lists of pieces are read while submitting (`SUBMIT_STABLE`).
            let pushed = unsafe { submission.push(entry) }.is_ok();
            let listed = submission.len();
            drop(submission);
            if pushed {
                if listed >= HANDFUL {
                    // What the kernel does not take now stays listed, and whoever waits is told why.
                    let _ = self.submit();
                }
                return Ok(());
            }
            self.submit()?;
        }
    }

    /// Hands what is listed to the kernel.
    ///
    /// # Errors
    /// When the kernel does not take it.
    pub(crate) fn submit(&mut self) -> io::Result<()> {
        while !self.ring.submission().is_empty() {
            match self.ring.submit() {
                Ok(_) => {}
                Err(error) if is_passing(&error) => self.look(),
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Lets the kernel post what is ready, where nobody waits.
    pub(crate) fn post(&mut self) -> io::Result<()> {
        let submission = self.ring.submission();
        let due = submission.taskrun() || submission.cq_overflow();
        drop(submission);
        match if due { self.ring.submit() } else { Ok(0) } {
            Err(error) if !is_passing(&error) => Err(error),
            _ => Ok(()),
        }
    }

    /// Hands over what is listed and waits for one answer at least, until `limit` has passed, or, with
    /// `bell`, until a thread delivers to the hub. May return early.
    ///
    /// # Errors
    /// When the kernel does not take it.
    pub(crate) fn wait(&mut self, bell: bool, limit: Option<Duration>) -> io::Result<()> {
        if let Some(file) = self.bell.as_ref().filter(|_| bell && !self.armed) {
            let readable = libc::POLLIN as u32;
            let poll = opcode::PollAdd::new(Fd(file.as_raw_fd()), readable).build();
            self.enlist(&poll.user_data(DOORBELL))?;
            self.armed = true;
        }
        if !self.answers.is_empty() || !self.ring.completion().is_empty() {
            return self.submit();
        }
        let waited = match limit {
            None => self.ring.submit_and_wait(1),
            Some(limit) => {
                let limit = Timespec::from(limit);
                self.ring.submitter().submit_with_args(1, &SubmitArgs::new().timespec(&limit))
            }
        };
        match waited {
            Err(error) if !is_passing(&error) => Err(error),
            _ => Ok(()),
        }
    }

    /// Takes the kernel's answers out of its queue.
    fn look(&mut self) {
        let answers = self.ring.completion();
        self.answers.extend(answers.map(|one: cqueue::Entry| (one.user_data(), one.result())));
    }

    /// Adds the answers that are there to `finished`, and lists what they make possible.
    ///
    /// # Errors
    /// When the list is full and the kernel does not take it.
    pub(crate) fn reap(&mut self, finished: &mut Vec<Finished>) -> io::Result<()> {
        let mut listed = Ok(());
        for _ in 0..self.unlisted.len() {
            let Some(ticket) = self.unlisted.pop_front() else { break };
            listed = listed.and(self.list(ticket));
        }
        self.look();
        while let Some((name, result)) = self.answers.pop() {
            if name == DOORBELL {
                self.armed = false;
                if let Some(mut bell) = self.bell.as_ref() {
                    // That nothing is in it means that it was read before.
                    let _ = bell.read(&mut [0; 8]);
                }
                continue;
            }
            let Some(Some(op)) = self.ops.get_mut(name as usize) else { continue };
            match op.answered(result) {
                None => listed = listed.and(self.list(name as u32)),
                Some(outcome) => finished.extend(self.end(name as usize, outcome)),
            }
        }
        listed
    }

    fn end(&mut self, place: usize, outcome: IoOutcome) -> Option<Finished> {
        let Op { work, .. } = self.ops[place].take()?;
        self.in_flight -= 1;
        Some(work.ended(outcome))
    }
}

/// Errors that go away by themselves, or when answers are taken.
fn is_passing(error: &io::Error) -> bool {
    let code = error.raw_os_error();
    matches!(code, Some(libc::EINTR | libc::EAGAIN | libc::EBUSY | libc::ETIME))
}

impl Drop for Ring {
    /// Waits until everything is done, since it uses buffers of the engine; where an I/O hangs nobody
    /// waits, and its memory is never freed.
    fn drop(&mut self) {
        if self.detached {
            for op in self.ops.iter_mut().flatten() {
                std::mem::forget(op.work.bounce.take());
            }
            return;
        }
        let mut finished = Vec::new();
        // Memory that the kernel may still write must not be freed, whatever happens.
        loop {
            let reaped = self.reap(&mut finished);
            finished.clear();
            if self.in_flight == 0 {
                break;
            }
            let limit = (!self.unlisted.is_empty()).then_some(PAUSE);
            if reaped.and_then(|()| self.wait(false, limit)).is_err() {
                std::thread::sleep(PAUSE);
            }
        }
        // The kernel closes a ring some time later: files would stay open, and devices claimed.
        let _ = self.ring.submitter().unregister_files();
    }
}

#[cfg(test)]
mod tests;
