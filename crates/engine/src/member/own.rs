//! Members that somebody else wrote.

use std::fmt::{self, Debug, Formatter};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use raidlab_core::contract::{IoOp, IoOutcome};
use raidlab_core::{Sector, Sectors};

use super::worker::{Finished, Hub, Ticket, Work};
use super::{Submission, outside};
use crate::buffers::{Area, Piece};
use crate::error::EngineError;

/// What an array can lie on: a store of sectors of your own, beside files, devices and memory.
///
/// A request is answered by [`MemberRequest::complete`], within [`submit`](Self::submit) or later, from any
/// thread and in any order; the engine goes on meanwhile. What a store does wrong is an error of that member,
/// which the array survives as it survives a drive's: a request that is dropped is answered with
/// [`IoOutcome::Gone`], as is a read of fewer or more bytes than were asked for. That one request is answered twice
/// cannot be written down, since answering takes it.
///
/// Durability: a write that was answered must survive a power cut only when [`is_durable`](MemberRequest::is_durable)
/// says so, or after a flush that was begun after the answer.
pub trait MemberStore: Send {
    /// How many sectors of 512 bytes it has; does not change.
    fn sectors(&self) -> Sectors;

    /// Sectors that it reads and writes together: a power of two up to 128. All requests begin and end there.
    fn logical_block(&self) -> u32 {
        1
    }

    /// Takes a request, to be answered at once or later. Called from the thread that drives the engine, so what takes
    /// long belongs to a thread of its own. While the engine examines or prepares members this
    /// thread waits for the answer.
    fn submit(&mut self, request: MemberRequest);
}

/// A request to a [`MemberStore`], with memory of its own.
pub struct MemberRequest {
    work: Option<Work>,
    answer: Answer,
}

/// Where an answer goes.
#[derive(Debug)]
enum Answer {
    /// To an engine that goes on.
    Hub(Arc<Hub>),
    /// To somebody who waits.
    Waiting(SyncSender<Finished>),
}

impl Debug for MemberRequest {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemberRequest").field("what", &self.submission()).finish()
    }
}

impl MemberRequest {
    fn new(work: Work, answer: Answer) -> Self {
        Self { work: Some(work), answer }
    }

    fn submission(&self) -> Submission {
        self.work.as_ref().expect("it has not been answered").submission
    }

    /// What is to be done.
    pub fn op(&self) -> IoOp {
        self.submission().op
    }

    /// The first sector. It and the length lie within the store; a flush has neither.
    pub fn at(&self) -> Sector {
        self.submission().at
    }

    /// How many sectors.
    pub fn len(&self) -> Sectors {
        self.submission().len
    }

    /// Whether it is about no sectors, as a flush is.
    pub fn is_empty(&self) -> bool {
        self.len() == Sectors::ZERO
    }

    /// Whether what is written must be durable when it is answered (FUA).
    pub fn is_durable(&self) -> bool {
        self.submission().fua
    }

    /// Whether every write answered before must be durable before this one is written.
    pub fn flushes_first(&self) -> bool {
        self.submission().flush_first
    }

    /// The bytes to be written; empty unless it is a write.
    pub fn payload(&self) -> &[u8] {
        match (self.op(), self.work.as_ref().and_then(|work| work.bounce.as_ref())) {
            (IoOp::Write, Some(area)) => &area.bytes()[..self.bytes()],
            _ => &[],
        }
    }

    fn bytes(&self) -> usize {
        self.len().bytes() as usize
    }

    /// Answers a read with these bytes, which must be as many as were asked for.
    pub fn complete_read(mut self, bytes: &[u8]) {
        let fits = self.op() == IoOp::Read && bytes.len() == self.bytes();
        let area = self.work.as_mut().and_then(|work| work.bounce.as_mut());
        match area.filter(|_| fits) {
            Some(area) => {
                area.bytes_mut()[..bytes.len()].copy_from_slice(bytes);
                self.end(IoOutcome::Ok);
            }
            None => self.end(IoOutcome::Gone),
        }
    }

    /// Answers it. A read that went well is answered by [`complete_read`](Self::complete_read): here `Ok` without
    /// bytes is a short read.
    pub fn complete(mut self, outcome: IoOutcome) {
        let is_short = self.op() == IoOp::Read && outcome == IoOutcome::Ok;
        self.end(if is_short { IoOutcome::Gone } else { outcome });
    }

    fn end(&mut self, outcome: IoOutcome) {
        let Some(work) = self.work.take() else { return };
        let finished = work.ended(outcome);
        match &self.answer {
            Answer::Hub(hub) => hub.deliver(finished),
            // Who waits does so until this comes.
            Answer::Waiting(channel) => drop(channel.send(finished)),
        }
    }
}

impl Drop for MemberRequest {
    fn drop(&mut self) {
        self.end(IoOutcome::Gone);
    }
}

/// A [`MemberStore`] as a member of an array.
pub struct OwnMember {
    store: Box<dyn MemberStore>,
    sectors: Sectors,
}

impl Debug for OwnMember {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.debug_struct("OwnMember").field("sectors", &self.sectors).finish_non_exhaustive()
    }
}

impl OwnMember {
    /// A member that is this store.
    pub fn new(store: impl MemberStore + 'static) -> Self {
        let store: Box<dyn MemberStore> = Box::new(store);
        Self { sectors: store.sectors(), store }
    }

    /// Its size.
    pub fn sectors(&self) -> Sectors {
        self.sectors
    }

    /// Sectors that it reads and writes together.
    pub fn logical_block(&self) -> u32 {
        self.store.logical_block().max(1)
    }

    /// Hands over an I/O, which has memory of its own; the answer goes to `hub`.
    pub(crate) fn submit(&mut self, work: Work, hub: &Arc<Hub>) {
        let outcome = outside(&work.submission, self.sectors);
        let mut request = MemberRequest::new(work, Answer::Hub(Arc::clone(hub)));
        match outcome {
            Some(outcome) => request.end(outcome),
            None => self.store.submit(request),
        }
    }

    /// Carries out an I/O with a piece of memory, if it has payload, and waits for it.
    pub(crate) fn carry_out(
        &mut self,
        submission: &Submission,
        piece: Option<&mut [u8]>,
    ) -> Result<IoOutcome, EngineError> {
        if let Some(outcome) = outside(submission, self.sectors) {
            return Ok(outcome);
        }
        let mut area = Area::new(submission.len.bytes() as usize)?;
        if let (IoOp::Write, Some(bytes)) = (submission.op, &piece) {
            area.bytes_mut()[..bytes.len()].copy_from_slice(bytes);
        }
        let (sender, receiver): (_, Receiver<Finished>) = sync_channel(1);
        let work = Work {
            ticket: Ticket(0),
            submission: *submission,
            pieces: Vec::new(),
            bounce: Some(area),
        };
        self.store.submit(MemberRequest::new(work, Answer::Waiting(sender)));
        // A request always answers, at the latest when it is dropped.
        let Ok(finished) = receiver.recv() else { return Ok(IoOutcome::Gone) };
        if let (IoOp::Read, IoOutcome::Ok, Some(into), Some(area)) =
            (submission.op, finished.outcome, piece, &finished.bounce)
        {
            let len = into.len();
            into.copy_from_slice(&area.bytes()[..len]);
        }
        Ok(finished.outcome)
    }
}

/// The bytes of a piece.
///
/// # Safety
/// They are in nobody else's use.
pub(super) unsafe fn bytes<'a>(piece: Piece) -> &'a mut [u8] {
    // SAFETY: the caller's promise; a piece is valid for its length.
    unsafe { std::slice::from_raw_parts_mut(piece.start, piece.len) }
}
