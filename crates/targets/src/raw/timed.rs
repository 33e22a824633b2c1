//! The timed span: submits what was prepared, takes the answers.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use raidlab_core::contract::{IoOp, Outcome, Segment, Work as Background};
use raidlab_core::{Nanos, SECTOR_BYTES, Sector, Time};
use raidlab_engine::{EngineError, EngineErrorKind, Reply, check_outcome};
use raidlab_workload::processes::{self, Asked, Begun, Fault, Processes, Target, Work};
use raidlab_workload::raw::Request;
use raidlab_workload::{OpResult, ProcessIndex};

use super::batch::{InFlight, Prepared};
use super::pattern::BLOCK;
use super::{RUN, RawTarget, Run, Source, nanos};
use crate::work;

/// How long a sleeper sleeps at once, so that it hears of Ctrl-C.
pub(super) const NAP: Duration = Duration::from_millis(50);

/// A batch, from its start on.
struct Batch<'b, 'a, S> {
    target: &'b mut RawTarget,
    run: &'b mut Run<'a, S>,
    start: Instant,
}

impl RawTarget {
    /// One batch; whether any process came further.
    pub(super) fn timed<S: Source>(
        &mut self,
        run: &mut Run<'_, S>,
        start: Instant,
    ) -> Result<bool, EngineError> {
        let before = (run.processes.steps(), run.processes.left());
        run.processes.resume();
        let mut batch = Batch { target: self, run, start };
        processes::run(&mut batch)?;
        Ok((run.processes.steps(), run.processes.left()) != before)
    }
}

impl<S: Source> Target for Batch<'_, '_, S> {
    type Operation = Prepared;
    type Error = EngineError;

    fn processes(&mut self) -> &mut Processes {
        &mut self.run.processes
    }

    fn now(&self) -> Time {
        Time((self.run.elapsed + nanos(self.start)).0)
    }

    /// What was prepared. When there is no more the batch must end, so that more is prepared, which waits for nobody:
    /// who is at a barrier, or without a ticket, is not asked. Nobody goes on who is cancelled.
    fn ask(
        &mut self,
        process: ProcessIndex,
        _now: Time,
        last: OpResult,
    ) -> Result<Asked<Prepared>, EngineError> {
        let client = &mut self.run.clients[process];
        let is_cancelled = self.run.cancel.load(Ordering::Relaxed);
        if let Some(asked) = client.prepared.get(client.cursor).filter(|_| !is_cancelled) {
            client.cursor += 1;
            return Ok(*asked);
        }
        if client.ended && !is_cancelled {
            return Ok(Asked::Done);
        }
        client.passed(last.into());
        self.run.processes.stop();
        Ok(Asked::Nothing)
    }

    fn begin(
        &mut self,
        process: ProcessIndex,
        tag: Option<u32>,
        prepared: Prepared,
    ) -> Result<Begun, EngineError> {
        let request = prepared.request;
        let conflicts = self.target.in_flight.iter().any(|other| request.conflicts(other.request));
        if conflicts || !self.target.engine.can_accept() {
            self.run.clients[process].cursor -= 1;
            return Ok(Begun::Refused);
        }
        self.submit(process, tag, prepared)?;
        Ok(Begun::UnderWay)
    }

    fn sleep(&mut self, process: ProcessIndex, time: Nanos) {
        let until = self.now() + time;
        self.run.sleepers.set(until, process);
    }

    /// On the one thread there is.
    fn compute(&mut self, process: ProcessIndex, work: Work) -> Result<(), EngineError> {
        let cancel = self.run.cancel;
        let go_on = || if cancel.load(Ordering::Relaxed) { Err(()) } else { Ok(()) };
        // Who is cancelled hears of it when nothing is under way any more.
        work::carry_out(work, go_on).ok();
        self.run.processes.ended(process, OpResult::Done);
        Ok(())
    }

    fn wait(&mut self) -> Result<bool, EngineError> {
        if self.target.in_flight.is_empty() {
            return self.sleep_on();
        }
        self.target.replies.clear();
        // Whose pause ends meanwhile goes on, whether anybody has been answered or not.
        let pause = self.run.sleepers.next_in(self.now());
        self.target.engine.wait_replies_for(&mut self.target.replies, pause)?;
        let now = Instant::now();
        for position in 0..self.target.replies.len() {
            let reply = self.target.replies[position];
            self.answered(reply, now)?;
        }
        self.wake_sleepers();
        Ok(true)
    }

    fn rebuilt(&self) -> Option<f64> {
        let under_way = self.target.engine.array().status().work?;
        let done = under_way.done.0 as f64 / (under_way.of.0 as f64).max(1.0);
        matches!(under_way.work, Background::Rebuild(_)).then_some(done)
    }

    fn fault(&self, _process: ProcessIndex, fault: Fault) -> EngineError {
        EngineError::new(EngineErrorKind::NotSupported, RUN, fault.to_string())
    }
}

impl<S: Source> Batch<'_, '_, S> {
    fn submit(
        &mut self,
        process: ProcessIndex,
        tag: Option<u32>,
        prepared: Prepared,
    ) -> Result<(), EngineError> {
        let client = &mut self.run.clients[process];
        let target = &mut *self.target;
        let (at, len) = prepared.request.span();
        let segment = client.token.map(|token| Segment {
            token,
            offset: (prepared.offset / SECTOR_BYTES) as u32,
            len: (len / SECTOR_BYTES) as u32,
        });
        let blocks = at / BLOCK..(at + len) / BLOCK;
        let op = match prepared.request {
            Request::Read(..) => {
                client.expects(target.expected.len());
                target.versions.extend(&mut target.expected, blocks);
                IoOp::Read
            }
            Request::Write(..) => {
                target.versions.set(blocks, prepared.version);
                IoOp::Write
            }
            Request::Sync => IoOp::Flush,
        };
        let segments = match (&segment, op) {
            (Some(segment), IoOp::Read | IoOp::Write) => std::slice::from_ref(segment),
            _ => &[],
        };
        let id = target.engine.submit(op, Sector(at / SECTOR_BYTES), segments, false)?;
        let (request, since) = (prepared.request, Instant::now());
        target.in_flight.push(InFlight { id, process, tag, op, request, since });
        Ok(())
    }

    /// Takes an answer.
    fn answered(&mut self, reply: Reply, now: Instant) -> Result<(), EngineError> {
        let target = &mut *self.target;
        let Some(position) = target.in_flight.iter().position(|one| one.id == reply.id) else {
            let reason = "an answer came to a request that was not made";
            return Err(EngineError::new(EngineErrorKind::Internal, RUN, reason));
        };
        let InFlight { process, tag, op, request, since, .. } =
            target.in_flight.swap_remove(position);
        let (at, len) = request.span();
        if reply.outcome != Outcome::Done {
            let checked = check_outcome(reply.outcome, op, Sector(at / SECTOR_BYTES));
            checked.map_err(|error| target.engine.explain(error))?;
        }
        let processes = &mut self.run.processes;
        let took = Nanos(now.saturating_duration_since(since).as_nanos() as u64);
        processes.measured(process, request.class(), (1, len), took);
        match tag {
            Some(tag) => processes.started_ended(process, tag, len),
            None => processes.ended(process, OpResult::Moved(len)),
        }
        Ok(())
    }

    /// Nothing is under way: sleeps until the next sleeper wakes. False when the batch is over.
    fn sleep_on(&mut self) -> Result<bool, EngineError> {
        loop {
            if self.run.cancel.load(Ordering::Relaxed) {
                return Err(EngineError::cancelled(RUN));
            }
            let next = self.run.sleepers.next_in(self.now());
            let Some(left) = next.filter(|_| !self.run.processes.is_stopped()) else {
                return Ok(false);
            };
            if !left.is_zero() {
                std::thread::sleep(left.min(NAP));
            }
            if self.wake_sleepers() {
                return Ok(true);
            }
        }
    }

    /// Sleepers whose time has come go on; whether any does.
    fn wake_sleepers(&mut self) -> bool {
        let now = self.now();
        let mut any = false;
        while let Some(process) = self.run.sleepers.due(now) {
            self.run.processes.ended(process, OpResult::Done);
            any = true;
        }
        any
    }
}
