//! What a process will do next, prepared outside the timed span.

use std::sync::atomic::Ordering;
use std::time::Instant;

use raidlab_core::contract::{IoOp, RequestId, Token};
use raidlab_core::{Nanos, Time};
use raidlab_engine::{EngineError, EngineErrorKind};
use raidlab_workload::processes::Asked;
use raidlab_workload::raw::{OpResult, Request};
use raidlab_workload::{ProcessIndex, WorkloadErrorKind};

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

/// A request with its place in the process's buffer; all in bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Prepared {
    pub(super) request: Request,
    /// Of a write: its number, which goes into the pattern.
    pub(super) version: u32,
    pub(super) offset: u64,
    /// Of a read, once submitted: where the versions it must find begin.
    pub(super) expected: usize,
}

/// A request under way.
#[derive(Debug)]
pub(super) struct InFlight {
    pub(super) id: RequestId,
    pub(super) process: ProcessIndex,
    /// The process does not wait for it: its own number for it.
    pub(super) tag: Option<u32>,
    pub(super) op: IoOp,
    pub(super) request: Request,
    pub(super) since: Instant,
}

/// A process and its share of the memory.
#[derive(Debug)]
pub(super) struct Client<'a, S> {
    source: &'a mut S,
    share: u64,
    capacity: u64,
    last: OpResult,
    /// An operation that was generated and did not fit any more.
    held: Option<Asked<Request>>,
    /// When it will come to what is asked of it next, at the earliest.
    clock: Time,
    /// The last that was prepared is a barrier, or a ticket that is not there yet: what comes then depends on what
    /// others do until it has passed.
    waits: bool,
    /// It asked for nothing more.
    pub(super) ended: bool,
    pub(super) token: Option<Token>,
    pub(super) prepared: Vec<Asked<Prepared>>,
    /// Bytes of the buffer that are taken.
    used: u64,
    /// What is below was begun.
    pub(super) cursor: usize,
}

impl<'a, S: Source> Client<'a, S> {
    pub(super) fn new(source: &'a mut S, share: u64, capacity: u64) -> Self {
        Self {
            source,
            share,
            capacity,
            last: OpResult::Start,
            held: None,
            clock: Time::ZERO,
            waits: false,
            ended: false,
            token: None,
            prepared: Vec::new(),
            used: 0,
            cursor: 0,
        }
    }
}

impl<S> Client<'_, S> {
    /// It has passed what it waited for.
    pub(super) fn passed(&mut self, last: OpResult) {
        self.waits = false;
        if matches!(last, OpResult::Ticket(_)) {
            self.last = last;
        }
    }

    /// What comes behind a sleep comes later.
    fn sleeps<P>(&mut self, asked: &Asked<P>) {
        if let Asked::Sleep(time) = asked {
            self.clock = Time(self.clock.0.saturating_add(time.0));
        }
    }

    /// The read begun last must find the versions from here on.
    pub(super) fn expects(&mut self, from: usize) {
        let last = self.prepared.get_mut(self.cursor - 1);
        if let Some(Asked::Operation(read) | Asked::Start(_, read)) = last {
            read.expected = from;
        }
    }
}

/// Checks where a request lies: in whole blocks, each of which can be verified, of so many bytes.
pub(super) fn check(request: Request, capacity: u64) -> Result<(), EngineError> {
    let (at, _) = request.span();
    request.check(BLOCK, capacity).map_err(|error| {
        let kind = match error.kind {
            WorkloadErrorKind::Block => EngineErrorKind::NotSupported,
            _ => EngineErrorKind::InvalidRequest,
        };
        EngineError::new(kind, super::RUN, error.reason).at_offset(at)
    })
}

impl RawTarget {
    /// Prepares what all processes do next, one operation of each in turn, up to their shares of the
    /// memory; whether anything was added to what the last batch left over.
    ///
    /// What the last batch left over comes first; its data are made anew at another place. Who came to a barrier is
    /// asked again when it has passed: names and lengths of files are those of when it is asked.
    pub(super) fn prepare_all<S: Source>(
        &mut self,
        run: &mut Run<'_, S>,
    ) -> Result<bool, EngineError> {
        let mut any = false;
        for (index, client) in run.clients.iter_mut().enumerate() {
            let mut left = client.prepared.split_off(client.cursor);
            client.prepared.clear();
            (client.cursor, client.used) = (0, 0);
            let slept = client.clock;
            client.clock = Time(run.elapsed.0);
            if client.waits
                && left.is_empty()
                && let Some(last) = run.processes.take_last(index)
            {
                client.passed(last.into());
            }
            for asked in left.drain(..) {
                client.sleeps(&asked);
                let asked = asked.try_map(|prepared: Prepared| {
                    let offset = client.used;
                    client.used += prepared.request.span().1;
                    Ok::<_, EngineError>(Prepared { offset, ..prepared })
                });
                self.put(client, asked?)?;
            }
            // Of a sleep that is not over the time goes on where it was.
            client.clock = client.clock.max(slept);
        }
        loop {
            let mut more = false;
            for index in 0..run.clients.len() {
                if run.cancel.load(Ordering::Relaxed) {
                    return Err(EngineError::cancelled("prepare a workload"));
                }
                more |= self.prepare_next(run, index)?;
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
    ) -> Result<bool, EngineError> {
        let client = &mut run.clients[index];
        if client.ended || client.waits || client.prepared.len() >= run.ahead {
            return Ok(false);
        }
        let (clock, last) = (client.clock, client.last);
        let asked = client.held.take().unwrap_or_else(|| client.source.next(clock, last));
        client.last = OpResult::Done;
        client.sleeps(&asked);
        match asked {
            Asked::Barrier(_) => client.waits = true,
            Asked::Take(queue) => match run.processes.take_ticket(queue) {
                Some(ticket) => {
                    client.last = OpResult::Ticket(ticket);
                    return Ok(true);
                }
                None => client.waits = true,
            },
            Asked::Done => {
                client.ended = true;
                return match client.source.failure() {
                    None => Ok(true),
                    Some(reason) => {
                        Err(EngineError::new(EngineErrorKind::NotSupported, super::RUN, reason))
                    }
                };
            }
            _ => {}
        }
        if let Some(request) = asked.operation() {
            check(*request, client.capacity)?;
            let len = request.span().1;
            if client.used > 0 && client.used + len > client.share {
                client.held = Some(asked);
                return Ok(false);
            }
            self.make_room(client, len)?;
        }
        let asked = asked.try_map(|request| {
            let version = match request {
                Request::Write(..) => self.new_version()?,
                Request::Read(..) | Request::Sync => 0,
            };
            let offset = client.used;
            client.used += request.span().1;
            Ok::<_, EngineError>(Prepared { request, version, offset, expected: 0 })
        });
        self.put(client, asked?)?;
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
        asked: Asked<Prepared>,
    ) -> Result<(), EngineError> {
        let (at, len) = asked.operation().map_or((0, 0), |prepared| prepared.request.span());
        if let (Some(prepared), true) = (asked.operation(), len > 0) {
            let token = match client.token {
                Some(token) => token,
                None => self.engine.allocate(client.share)?,
            };
            client.token = Some(token);
            let from = prepared.offset as usize;
            let bytes = &mut self.engine.bytes_mut(token)?[from..from + len as usize];
            match prepared.request {
                Request::Write(..) => {
                    self.versions.make_room(at / BLOCK..(at + len) / BLOCK);
                    let blocks = bytes.chunks_exact_mut(BLOCK as usize);
                    for (at, block) in (at..).step_by(BLOCK as usize).zip(blocks) {
                        pattern::fill(at, prepared.version, block);
                    }
                }
                Request::Read(..) | Request::Sync => bytes.fill(POISON),
            }
        }
        client.prepared.push(asked);
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
        // Batches are to take from 10 to 40 ms.
        let after = |millis| ahead_after(16, Nanos::from_millis(millis));
        assert_eq!([0, 9, 10, 40, 41, 9_000].map(after), [32, 32, 16, 16, 8, 8]);
        assert_eq!(ahead_at_first(false, 1), MOST_PREPARED);
    }
}
