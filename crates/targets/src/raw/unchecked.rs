//! Workloads on an engine whose bytes nobody looks at: what a run costs is its I/O, and memory for what is under way
//! at once. For guests of the kernel lab, where each page that is touched costs more than a request; the requests are
//! those of the [raw target](super::RawTarget), in one go instead of batches.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use raidlab_core::contract::{IoOp, Outcome, Segment, Token};
use raidlab_core::{Nanos, SECTOR_BYTES, Sector, Time};
use raidlab_engine::{Engine, EngineError, EngineErrorKind, Reply, check_outcome};
use raidlab_workload::processes::{
    self, Asked, Begun, Fault, Processes, Ran, Target, Timers, Work,
};
use raidlab_workload::raw::{Process, RawPlan, Request};
use raidlab_workload::{OpResult, ProcessIndex, RunRecord, Synchroniser};

use super::batch::InFlight;
use super::timed::NAP;
use super::{RUN, nanos};
use crate::work;

/// An engine on which workloads run without their bytes being looked at.
#[derive(Debug)]
pub struct UncheckedTarget {
    engine: Engine,
    places: Places,
}

impl UncheckedTarget {
    /// Over an engine at rest.
    ///
    /// # Errors
    /// [`EngineErrorKind::Busy`] when requests are outstanding.
    pub fn new(engine: Engine) -> Result<Self, EngineError> {
        if engine.outstanding() > 0 {
            let reason = "requests are outstanding";
            return Err(EngineError::new(EngineErrorKind::Busy, "set up a target", reason));
        }
        Ok(Self { engine, places: Places::default() })
    }

    /// Runs the processes of a plan to their end.
    ///
    /// # Errors
    /// [`EngineErrorKind::NotSupported`] for operations that do not lie on blocks of 4 KiB, or that need a filesystem;
    /// [`EngineErrorKind::Cancelled`] when `cancel` was set, nothing being under way any more; what the array answers
    /// otherwise.
    pub fn run(&mut self, plan: RawPlan, cancel: &AtomicBool) -> Result<RunRecord, EngineError> {
        let RawPlan { phases, mut processes, barriers, queues, .. } = plan;
        let synchroniser = Synchroniser::new(&barriers, queues);
        let copies = processes.iter().map(Process::copy);
        let before = self.engine.totals();
        let mut stage = Stage {
            processes: Processes::new(copies, phases.len(), synchroniser),
            refused: vec![None; processes.len()],
            sources: &mut processes,
            target: self,
            sleepers: Timers::default(),
            in_flight: Vec::new(),
            replies: Vec::new(),
            start: Instant::now(),
            cancel,
        };
        let ran = processes::run(&mut stage);
        let records = stage.processes.into_records();
        // After an error answers may still be due.
        let drained = self.engine.run_until_idle(&mut Vec::new());
        self.places.all_free();
        let ran = ran?;
        drained?;
        if cancel.load(Ordering::Relaxed) {
            return Err(EngineError::cancelled(RUN));
        }
        if ran == Ran::Waiting {
            let reason = "processes of the workload wait for each other for ever";
            return Err(EngineError::new(EngineErrorKind::Internal, RUN, reason));
        }
        let members = Some(self.engine.totals().since(before));
        Ok(RunRecord { phases, processes: records, members, ..RunRecord::default() })
    }
}

/// Memory that requests under way have, each a place of its own: what is read may not meet anything else.
#[derive(Debug, Default)]
struct Places(Vec<Place>);

#[derive(Debug)]
struct Place {
    token: Token,
    bytes: u64,
    is_free: bool,
}

impl Places {
    /// The first that is free and large enough, so that as little memory as can be is touched.
    fn take(&mut self, engine: &mut Engine, bytes: u64) -> Result<Token, EngineError> {
        let free = self.0.iter_mut().find(|place| place.is_free && place.bytes >= bytes);
        if let Some(place) = free {
            place.is_free = false;
            return Ok(place.token);
        }
        let bytes = bytes.next_power_of_two();
        let token = engine.allocate(bytes)?;
        self.0.push(Place { token, bytes, is_free: false });
        Ok(token)
    }

    fn give_back(&mut self, token: Token) {
        let place = self.0.iter_mut().find(|place| place.token == token);
        place.into_iter().for_each(|place| place.is_free = true);
    }

    fn all_free(&mut self) {
        self.0.iter_mut().for_each(|place| place.is_free = true);
    }
}

/// A run.
struct Stage<'a> {
    target: &'a mut UncheckedTarget,
    sources: &'a mut [Process],
    processes: Processes,
    /// What each has asked for and could not have yet.
    refused: Vec<Option<Asked<Request>>>,
    sleepers: Timers<ProcessIndex>,
    /// With the memory of each that moves bytes.
    in_flight: Vec<(InFlight, Option<Token>)>,
    replies: Vec<Reply>,
    start: Instant,
    cancel: &'a AtomicBool,
}

impl Target for Stage<'_> {
    type Operation = Request;
    type Error = EngineError;

    fn processes(&mut self) -> &mut Processes {
        &mut self.processes
    }

    fn now(&self) -> Time {
        Time(nanos(self.start).0)
    }

    fn ask(
        &mut self,
        process: ProcessIndex,
        now: Time,
        last: OpResult,
    ) -> Result<Asked<Request>, EngineError> {
        if self.cancel.load(Ordering::Relaxed) {
            self.processes.stop();
            return Ok(Asked::Nothing);
        }
        if let Some(asked) = self.refused[process].take() {
            return Ok(asked);
        }
        let source = &mut self.sources[process];
        let asked = source.next(now, last.into());
        if let (Asked::Done, Some(reason)) = (&asked, source.failure()) {
            let reason = reason.to_string();
            return Err(EngineError::new(EngineErrorKind::NotSupported, RUN, reason));
        }
        Ok(asked)
    }

    fn begin(
        &mut self,
        process: ProcessIndex,
        tag: Option<u32>,
        request: Request,
    ) -> Result<Begun, EngineError> {
        let capacity = self.target.engine.array().capacity().bytes();
        super::batch::check(request, capacity)?;
        let conflicts = self.in_flight.iter().any(|(other, _)| request.conflicts(other.request));
        if conflicts || !self.target.engine.can_accept() {
            let again = tag.map_or(Asked::Operation(request), |tag| Asked::Start(tag, request));
            self.refused[process] = Some(again);
            return Ok(Begun::Refused);
        }
        let UncheckedTarget { engine, places } = &mut *self.target;
        let (at, len) = request.span();
        let op = match request {
            Request::Read(..) => IoOp::Read,
            Request::Write(..) => IoOp::Write,
            Request::Sync => IoOp::Flush,
        };
        let token = if len > 0 { Some(places.take(engine, len)?) } else { None };
        let segment =
            token.map(|token| Segment { token, offset: 0, len: (len / SECTOR_BYTES) as u32 });
        let id = engine.submit(op, Sector(at / SECTOR_BYTES), segment.as_slice(), false)?;
        let since = Instant::now();
        self.in_flight.push((InFlight { id, process, tag, op, request, since }, token));
        Ok(Begun::UnderWay)
    }

    fn sleep(&mut self, process: ProcessIndex, time: Nanos) {
        let until = self.now() + time;
        self.sleepers.set(until, process);
    }

    fn compute(&mut self, process: ProcessIndex, work: Work) -> Result<(), EngineError> {
        let cancel = self.cancel;
        let go_on = || if cancel.load(Ordering::Relaxed) { Err(()) } else { Ok(()) };
        // Who is cancelled hears of it when nothing is under way any more.
        work::carry_out(work, go_on).ok();
        self.processes.ended(process, OpResult::Done);
        Ok(())
    }

    fn wait(&mut self) -> Result<bool, EngineError> {
        if self.in_flight.is_empty() {
            return Ok(self.sleep_on());
        }
        self.replies.clear();
        // Whose pause ends meanwhile goes on, whether anybody has been answered or not.
        let pause = self.sleepers.next_in(self.now());
        self.target.engine.wait_replies_for(&mut self.replies, pause)?;
        let now = Instant::now();
        for position in 0..self.replies.len() {
            self.answered(self.replies[position], now)?;
        }
        self.wake_sleepers();
        Ok(true)
    }

    fn fault(&self, _process: ProcessIndex, fault: Fault) -> EngineError {
        EngineError::new(EngineErrorKind::NotSupported, RUN, fault.to_string())
    }
}

impl Stage<'_> {
    fn answered(&mut self, reply: Reply, now: Instant) -> Result<(), EngineError> {
        let Some(position) = self.in_flight.iter().position(|(one, _)| one.id == reply.id) else {
            let reason = "an answer came to a request that was not made";
            return Err(EngineError::new(EngineErrorKind::Internal, RUN, reason));
        };
        let (InFlight { process, tag, op, request, since, .. }, token) =
            self.in_flight.swap_remove(position);
        token.into_iter().for_each(|token| self.target.places.give_back(token));
        let (at, len) = request.span();
        if reply.outcome != Outcome::Done {
            let checked = check_outcome(reply.outcome, op, Sector(at / SECTOR_BYTES));
            checked.map_err(|error| self.target.engine.explain(error))?;
        }
        let took = Nanos(now.saturating_duration_since(since).as_nanos() as u64);
        self.processes.measured(process, request.class(), (1, len), took);
        match tag {
            Some(tag) => self.processes.started_ended(process, tag, len),
            None => self.processes.ended(process, OpResult::Moved(len)),
        }
        Ok(())
    }

    /// Nothing is under way: sleeps until the next sleeper wakes. False when there is none, or nobody goes on any more.
    fn sleep_on(&mut self) -> bool {
        loop {
            let next = self.sleepers.next_in(self.now());
            let Some(left) = next.filter(|_| !self.processes.is_stopped()) else {
                return false;
            };
            if self.cancel.load(Ordering::Relaxed) {
                return false;
            }
            if !left.is_zero() {
                std::thread::sleep(left.min(NAP));
            }
            if self.wake_sleepers() {
                return true;
            }
        }
    }

    /// Sleepers whose time has come go on; whether any does.
    fn wake_sleepers(&mut self) -> bool {
        let now = self.now();
        let mut any = false;
        while let Some(process) = self.sleepers.due(now) {
            self.processes.ended(process, OpResult::Done);
            any = true;
        }
        any
    }
}
