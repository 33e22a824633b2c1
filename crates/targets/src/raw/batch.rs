//! What a process will do next, prepared outside the timed span.

use std::sync::atomic::Ordering;
use std::time::Instant;

use raidlab_core::contract::{IoOp, RequestId, Token};
use raidlab_core::{Nanos, Time};
use raidlab_engine::{EngineError, EngineErrorKind};
use raidlab_workload::raw::{Op, OpResult};
use raidlab_workload::{Mark, Recorder};

use super::pattern::{self, BLOCK, POISON};
use super::{RawTarget, Run, Source};

/// The most operations of one process in a batch, whatever their size.
const MOST_PREPARED: usize = 1 << 16;

/// How many operations of a process are prepared ahead at first where it looks at the time: alone, and among
/// several, which must not wait for each other's batches all the time.
const AHEAD: [usize; 2] = [1, 16];
/// A batch of such processes is to take from the first to the second of these: they hear of the time this
/// late, and no more often.
const BATCH: [Nanos; 2] = [Nanos(10_000_000), Nanos(40_000_000)];

/// How many operations are prepared ahead at first.
pub(super) fn ahead_at_first(asks_time: bool, processes: usize) -> usize {
    match (asks_time, processes) {
        (false, _) => MOST_PREPARED,
        (true, 1) => AHEAD[0],
        (true, _) => AHEAD[1],
    }
}

/// How many operations are prepared ahead after a batch of so many that took so long.
pub(super) fn ahead_after(ahead: usize, took: Nanos) -> usize {
    match took {
        took if took < BATCH[0] => (ahead * 2).min(MOST_PREPARED),
        took if took > BATCH[1] => (ahead / 2).max(1),
        _ => ahead,
    }
}

/// What an operation does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Action {
    Read,
    Write {
        /// Its number, which goes into the pattern.
        version: u32,
    },
    Sync,
    Finish,
    Sleep(Nanos),
    Compute(Nanos),
    Characters(u64),
    Mark(Mark),
    Barrier(u16),
}

/// An operation with its place in the process's buffer; all in bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Prepared {
    pub(super) action: Action,
    /// The process does not wait for it.
    pub(super) is_started: bool,
    pub(super) at: u64,
    pub(super) len: u64,
    pub(super) offset: u64,
    /// Reads, once submitted: where the versions it must find begin.
    pub(super) expected: usize,
}

/// An operation under way.
#[derive(Debug)]
pub(super) struct Flying {
    pub(super) id: RequestId,
    pub(super) client: usize,
    pub(super) op: IoOp,
    pub(super) next: Prepared,
    pub(super) since: Instant,
}

impl Flying {
    /// Whether `other` must wait for this one: they overlap and one is a write.
    pub(super) fn conflicts(&self, other: &Prepared) -> bool {
        let both_read = self.next.action == Action::Read && other.action == Action::Read;
        !both_read && self.next.at < other.at + other.len && other.at < self.next.at + self.next.len
    }
}

/// What a process is at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// Can go on.
    Ready,
    /// For an answer, or others at a barrier.
    Waiting,
    /// For any of what it started.
    Finishing,
    /// Until this time since the start of the run.
    Sleeping(Nanos),
}

/// A process and its share of the memory.
#[derive(Debug)]
pub(super) struct Client<'a, S> {
    source: &'a mut S,
    share: u64,
    capacity: u64,
    last: OpResult,
    /// An operation that was generated and did not fit any more.
    held: Option<Op>,
    /// It waits for a ticket.
    pub(super) wants_ticket: bool,
    /// It asked for nothing more.
    pub(super) ended: bool,
    pub(super) token: Option<Token>,
    pub(super) prepared: Vec<Prepared>,
    /// Bytes of the buffer that are taken.
    used: u64,
    /// Operations below were submitted.
    pub(super) cursor: usize,
    pub(super) state: State,
    /// Operations it started that are under way, and that are done and not waited for yet.
    pub(super) under_way: u32,
    pub(super) finished: u32,
    /// Gone when its end was noted.
    pub(super) recorder: Option<Recorder>,
}

impl<'a, S: Source> Client<'a, S> {
    pub(super) fn new(source: &'a mut S, share: u64, capacity: u64, phases: usize) -> Self {
        let recorder = Recorder::new(source.copy(), phases);
        Self {
            source,
            share,
            capacity,
            last: OpResult::Start,
            held: None,
            wants_ticket: false,
            ended: false,
            token: None,
            prepared: Vec::new(),
            used: 0,
            cursor: 0,
            state: State::Ready,
            under_way: 0,
            finished: 0,
            recorder: Some(recorder),
        }
    }
}

impl<S> Client<'_, S> {
    /// Whether all it ever wanted was submitted.
    pub(super) fn is_done(&self) -> bool {
        self.ended && self.cursor == self.prepared.len()
    }

    /// Checks where a read or write lies.
    fn check(&self, at: u64, len: u64) -> Result<(), EngineError> {
        let wrong =
            |kind, reason| Err(EngineError::new(kind, "run a workload", reason).at_offset(at));
        if !at.is_multiple_of(BLOCK) || !len.is_multiple_of(BLOCK) {
            let reason = format!("{len} bytes: the raw target works in whole blocks of 4 KiB");
            return wrong(EngineErrorKind::NotSupported, reason);
        }
        if at.checked_add(len).is_none_or(|end| end > self.capacity) {
            let reason = format!("{len} bytes pass the end of the array, {} bytes", self.capacity);
            return wrong(EngineErrorKind::InvalidRequest, reason);
        }
        Ok(())
    }
}

impl RawTarget {
    /// Prepares what all processes do next, one operation of each in turn, up to their shares of the
    /// memory; whether anything was added to what the last batch left over.
    ///
    /// What the last batch left over comes first; its data are made anew at another place.
    pub(super) fn prepare_all<S: Source>(
        &mut self,
        run: &mut Run<'_, S>,
    ) -> Result<bool, EngineError> {
        let mut any = false;
        for client in &mut run.clients {
            let mut left = client.prepared.split_off(client.cursor);
            client.prepared.clear();
            (client.cursor, client.used) = (0, 0);
            for mut prepared in left.drain(..) {
                prepared.offset = client.used;
                client.used += prepared.len;
                self.put(client, prepared)?;
            }
        }
        let most = run.ahead;
        let now = Time(run.elapsed.0);
        loop {
            let mut more = false;
            for index in 0..run.clients.len() {
                if run.cancel.load(Ordering::Relaxed) {
                    return Err(EngineError::cancelled("prepare a workload"));
                }
                more |= self.prepare_next(run, index, now, most)?;
            }
            any |= more;
            if !more {
                return Ok(any);
            }
        }
    }

    /// Prepares one operation of a process; false when there is none, or no room for it.
    fn prepare_next<S: Source>(
        &mut self,
        run: &mut Run<'_, S>,
        index: usize,
        now: Time,
        most: usize,
    ) -> Result<bool, EngineError> {
        let client = &mut run.clients[index];
        if client.ended || client.wants_ticket || client.prepared.len() >= most {
            return Ok(false);
        }
        let op = client.held.take().unwrap_or_else(|| client.source.next(now, client.last));
        client.last = OpResult::Done;
        let (action, is_started, at, len) = match op {
            Op::Read { at, len } => (Action::Read, false, at, len),
            Op::StartRead { at, len } => (Action::Read, true, at, len),
            Op::Write { at, len } => (Action::Write { version: 0 }, false, at, len),
            Op::StartWrite { at, len } => (Action::Write { version: 0 }, true, at, len),
            Op::Sync => (Action::Sync, false, 0, 0),
            Op::Finish => (Action::Finish, false, 0, 0),
            Op::Sleep(time) => (Action::Sleep(time), false, 0, 0),
            Op::Compute(time) => (Action::Compute(time), false, 0, 0),
            Op::Characters(bytes) => (Action::Characters(bytes), false, 0, 0),
            Op::Mark(mark) => (Action::Mark(mark), false, 0, 0),
            Op::Barrier(barrier) => (Action::Barrier(barrier), false, 0, 0),
            Op::Put { queue, ticket, times } => {
                for (other, ticket) in run.conductor.put(queue, ticket, times) {
                    let other = &mut run.clients[other];
                    (other.wants_ticket, other.last) = (false, OpResult::Ticket(ticket));
                }
                return Ok(true);
            }
            Op::Take { queue } => {
                match run.conductor.take(index, queue) {
                    Some(ticket) => client.last = OpResult::Ticket(ticket),
                    None => client.wants_ticket = true,
                }
                return Ok(true);
            }
            Op::Done => {
                client.ended = true;
                return match client.source.failure() {
                    None => Ok(true),
                    Some(reason) => {
                        Err(EngineError::new(EngineErrorKind::NotSupported, super::RUN, reason))
                    }
                };
            }
        };
        if op.is_io() {
            client.check(at, len)?;
        }
        if client.used > 0 && client.used + len > client.share {
            client.held = Some(op);
            return Ok(false);
        }
        self.make_room(client, len)?;
        let action = match action {
            Action::Write { .. } => Action::Write { version: self.new_version()? },
            other => other,
        };
        let offset = client.used;
        client.used += len;
        self.put(client, Prepared { action, is_started, at, len, offset, expected: 0 })?;
        Ok(true)
    }

    /// One operation may be larger than the process's share: the buffer grows to hold it.
    fn make_room<S>(&mut self, client: &mut Client<'_, S>, len: u64) -> Result<(), EngineError> {
        if len <= client.share {
            return Ok(());
        }
        client.share = len;
        client.token.take().map_or(Ok(()), |token| self.engine.release(token))
    }

    fn new_version(&mut self) -> Result<u32, EngineError> {
        self.next_version = self.next_version.checked_add(1).ok_or_else(|| {
            let reason = "more than 4,294,967,295 writes to one target";
            EngineError::new(EngineErrorKind::NotSupported, "prepare a workload", reason)
        })?;
        Ok(self.next_version)
    }

    /// Makes the data of an operation, or poisons where they will be read to.
    fn put<S>(
        &mut self,
        client: &mut Client<'_, S>,
        prepared: Prepared,
    ) -> Result<(), EngineError> {
        if prepared.len > 0 {
            let token = match client.token {
                Some(token) => token,
                None => self.engine.allocate(client.share)?,
            };
            client.token = Some(token);
            let from = prepared.offset as usize;
            let bytes = &mut self.engine.bytes_mut(token)?[from..from + prepared.len as usize];
            match prepared.action {
                Action::Write { version } => {
                    let blocks = bytes.chunks_exact_mut(BLOCK as usize);
                    for (at, block) in (prepared.at..).step_by(BLOCK as usize).zip(blocks) {
                        pattern::fill(at, version, block);
                    }
                }
                _ => bytes.fill(POISON),
            }
        }
        client.prepared.push(prepared);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Who looks at the time hears of it often enough, and not for every operation.
    #[test]
    fn as_much_is_prepared_as_takes_some_milliseconds() {
        let settled = |operation: u64| {
            let mut ahead = ahead_at_first(true, 1);
            for _ in 0..40 {
                ahead = ahead_after(ahead, Nanos(operation * ahead as u64));
            }
            ahead
        };
        // A flash drive, a disk, and one that answers every second.
        assert_eq!([100_000, 8_000_000, 1_000_000_000].map(settled), [128, 2, 1]);
        assert_eq!(settled(1), MOST_PREPARED);
        assert_eq!(ahead_at_first(false, 1), MOST_PREPARED);
    }

    #[test]
    fn only_overlaps_with_a_write_wait() {
        let prepared = |action, at, len| Prepared {
            action,
            is_started: false,
            at,
            len,
            offset: 0,
            expected: 0,
        };
        let write = Action::Write { version: 1 };
        let flying = |action| Flying {
            id: RequestId(1),
            client: 0,
            op: IoOp::Write,
            next: prepared(action, 8192, 8192),
            since: Instant::now(),
        };
        assert!(flying(write).conflicts(&prepared(Action::Read, 12288, 4096)));
        assert!(flying(write).conflicts(&prepared(write, 4096, 8192)));
        assert!(flying(Action::Read).conflicts(&prepared(write, 0, 1 << 20)));
        assert!(!flying(Action::Read).conflicts(&prepared(Action::Read, 8192, 8192)));
        assert!(!flying(write).conflicts(&prepared(write, 16384, 4096)));
        assert!(!flying(write).conflicts(&prepared(write, 4096, 4096)));
        assert!(!flying(write).conflicts(&prepared(Action::Sync, 0, 0)));
    }
}
