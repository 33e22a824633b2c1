//! Runs all processes of a stage on one thread.

use std::collections::VecDeque;

use raidlab_core::{Nanos, Time};

use super::{Asked, Fault, Next, ProcessState, Work};
use crate::op::{Class, OpResult};
use crate::record::{Cpu, ProcessRecord, Recorder, TimeSeries};
use crate::synchroniser::{ProcessIndex, Synchroniser};

/// A target that carries operations out, on one thread. It tells [`Processes`] what ended.
pub trait Target {
    /// The operations it carries out.
    type Operation;
    /// Why a run ends early.
    type Error;

    /// The processes it runs.
    fn processes(&mut self) -> &mut Processes;

    /// The time since the stage began.
    fn now(&self) -> Time;

    /// Asks a process for its next operation, given the result of its last one.
    ///
    /// # Errors
    /// When the process failed.
    fn ask(
        &mut self,
        process: ProcessIndex,
        now: Time,
        last: OpResult,
    ) -> Result<Asked<Self::Operation>, Self::Error>;

    /// Begins an operation. The process waits for it, unless it has given a number of its own for it.
    ///
    /// # Errors
    /// When it cannot be carried out at all.
    fn begin(
        &mut self,
        process: ProcessIndex,
        tag: Option<u32>,
        operation: Self::Operation,
    ) -> Result<Begun, Self::Error>;

    /// A process sleeps for this long.
    fn sleep(&mut self, process: ProcessIndex, time: Nanos);

    /// A process uses the CPU.
    ///
    /// # Errors
    /// When the run was cancelled meanwhile.
    fn compute(&mut self, process: ProcessIndex, work: Work) -> Result<(), Self::Error>;

    /// The CPU time that a process has used; `None` where that is unknown.
    fn cpu(&self, process: ProcessIndex) -> Option<Cpu> {
        let _ = process;
        None
    }

    /// A process has gone on as far as it can: the operations it has begun must be in flight now at the latest.
    ///
    /// # Errors
    /// When they cannot be sent.
    fn hand_on(&mut self) -> Result<(), Self::Error> {
        Ok(())
    }

    /// A process is done.
    fn done(&mut self, process: ProcessIndex) {
        let _ = process;
    }

    /// Lets time pass until something has ended, and reports it. False when nothing ever will, or, after
    /// [`Processes::stop`], when nothing is in flight any more.
    ///
    /// # Errors
    /// When an operation failed.
    fn wait(&mut self) -> Result<bool, Self::Error>;

    /// The share of a rebuild under way that is done, 0 to 1; `None` where there is none.
    fn rebuilt(&self) -> Option<f64> {
        None
    }

    /// A process asks for something that is not allowed.
    fn fault(&self, process: ProcessIndex, fault: Fault) -> Self::Error;
}

/// The state of an operation that was begun.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Begun {
    /// It took no time. Only for operations that the process waits for.
    Ended(OpResult),
    /// It is in flight.
    UnderWay,
    /// It cannot begin before something else has ended; then the process asks for it again.
    Refused,
}

/// Why [`run`] returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ran {
    /// All processes are done.
    Done,
    /// All processes that are not done wait, and nothing will end: they wait for each other or for more operations
    /// to be known, or were stopped.
    Waiting,
}

/// The processes of a stage.
#[derive(Debug)]
pub struct Processes {
    states: Vec<ProcessState>,
    records: Vec<ProcessRecord>,
    series: TimeSeries,
    synchroniser: Synchroniser,
    /// The processes that can go on, in this order.
    ready: VecDeque<ProcessIndex>,
    /// The processes whose operation was refused, and those whose next operation is not known yet.
    refused: Vec<ProcessIndex>,
    unknown: Vec<ProcessIndex>,
    left: usize,
    /// How often a process got further.
    steps: u64,
    stops: bool,
}

impl Processes {
    /// The processes of a plan with this many phases; each belongs to a copy of the workload. All can go on.
    pub fn new(
        copies: impl IntoIterator<Item = u32>,
        phases: usize,
        synchroniser: Synchroniser,
    ) -> Self {
        let state = |copy| ProcessState::new(Recorder::new(copy, phases));
        let states: Vec<ProcessState> = copies.into_iter().map(state).collect();
        Self {
            records: vec![ProcessRecord::default(); states.len()],
            ready: (0..states.len()).collect(),
            refused: Vec::new(),
            unknown: Vec::new(),
            left: states.len(),
            states,
            series: TimeSeries::default(),
            synchroniser,
            steps: 0,
            stops: false,
        }
    }

    /// How many processes are not done.
    pub fn left(&self) -> usize {
        self.left
    }

    /// Whether no process can go on before something ends.
    #[inline]
    pub fn all_wait(&self) -> bool {
        self.ready.is_empty()
    }

    /// How often a process got further.
    pub fn steps(&self) -> u64 {
        self.steps
    }

    /// Stops all processes, until they are [resumed](Self::resume).
    pub fn stop(&mut self) {
        self.stops = true;
    }

    /// Whether all processes are stopped.
    pub fn is_stopped(&self) -> bool {
        self.stops
    }

    /// Lets them go on again, also those whose next operation was not known.
    pub fn resume(&mut self) {
        self.stops = false;
        self.ready.extend(self.unknown.drain(..));
        self.refused_go_on();
    }

    /// What a process is told that can go on, once; `None` while it waits. For targets that ask for operations ahead
    /// of time: what comes behind a barrier or a ticket is known then, and not before.
    pub fn take_last(&mut self, process: ProcessIndex) -> Option<OpResult> {
        let state = self.states.get_mut(process)?;
        state.can_be_asked().then(|| state.take_last())
    }

    /// A ticket that is there, for a process that is asked ahead of time. Where there is none it does not wait: it
    /// takes one when its turn comes.
    pub fn take_ticket(&mut self, queue: u16) -> Option<i64> {
        self.synchroniser.take_if_there(queue)
    }

    /// What they did over time, which is given once.
    pub fn take_series(&mut self) -> TimeSeries {
        std::mem::take(&mut self.series)
    }

    /// What they measured.
    pub fn into_records(self) -> Vec<ProcessRecord> {
        self.records
    }

    /// Reports the end of what a process waits for: an operation, sleep, its use of the CPU.
    #[inline]
    pub fn ended(&mut self, process: ProcessIndex, result: OpResult) {
        self.states[process].answered(result);
        self.ready.push_back(process);
    }

    /// Reports the end of an operation that a process started.
    pub fn started_ended(&mut self, process: ProcessIndex, tag: u32, moved: u64) {
        if self.states[process].started_ended(tag, moved) {
            self.ready.push_back(process);
        }
    }

    /// Records operations of a class that have ended: together they took this long and moved this many bytes, in
    /// equal shares.
    #[inline]
    pub fn measured(
        &mut self,
        process: ProcessIndex,
        class: Class,
        (count, bytes): (u64, u64),
        took: Nanos,
    ) {
        if class != Class::Other {
            self.series.ended(count, bytes, took);
        }
        self.states[process].measured(class, count, bytes, took);
    }

    /// Records a flush that took so long.
    pub fn flushed(&mut self, process: ProcessIndex, took: Nanos) {
        self.states[process].flushed(took);
    }

    /// Lets processes whose operations were refused try again, before all others.
    fn refused_go_on(&mut self) {
        while let Some(process) = self.refused.pop() {
            self.ready.push_front(process);
        }
    }

    #[inline]
    fn next_ready(&mut self) -> Option<ProcessIndex> {
        if self.stops { None } else { self.ready.pop_front() }
    }
}

/// Lets processes go on until all are done, or none can.
///
/// # Errors
/// The first that ends the run.
pub fn run<T: Target>(target: &mut T) -> Result<Ran, T::Error> {
    loop {
        while let Some(process) = target.processes().next_ready() {
            while !step(target, process)? {}
            target.hand_on()?;
        }
        if target.processes().left == 0 {
            return Ok(Ran::Done);
        }
        if !target.wait()? {
            return Ok(Ran::Waiting);
        }
        let now = target.now();
        if target.processes().series.now(now)
            && let Some(done) = target.rebuilt()
        {
            target.processes().series.rebuilt(done);
        }
        target.processes().refused_go_on();
    }
}

/// Asks a process once and carries out what it asks for; says whether it waits now.
#[inline]
fn step<T: Target>(target: &mut T, process: ProcessIndex) -> Result<bool, T::Error> {
    let now = target.now();
    let processes = target.processes();
    if processes.states[process].is_at_end() {
        end(target, process);
        return Ok(true);
    }
    processes.steps += 1;
    let last = processes.states[process].take_last();
    let asked = target.ask(process, now, last)?;
    let processes = target.processes();
    let next = match processes.states[process].next(asked) {
        Ok(next) => next,
        Err(fault) => return Err(target.fault(process, fault)),
    };
    match next {
        Next::Operation(operation) => return begin(target, process, None, operation),
        Next::Start(tag, operation) => return begin(target, process, Some(tag), operation),
        Next::Ask => return Ok(false),
        Next::Mark(mark) => {
            let cpu = target.cpu(process);
            target.processes().states[process].mark(mark, now, cpu);
            return Ok(false);
        }
        Next::Sleep(time) => target.sleep(process, time),
        Next::Compute(work) => target.compute(process, work)?,
        Next::Barrier(barrier) => {
            if let Some(freed) = processes.synchroniser.arrive(process, barrier) {
                processes.states[process].answered(OpResult::Done);
                freed.into_iter().for_each(|other| processes.ended(other, OpResult::Done));
                return Ok(false);
            }
        }
        Next::Put(queue, ticket, times) => {
            for (other, ticket) in processes.synchroniser.put(queue, ticket, times) {
                processes.ended(other, OpResult::Ticket(ticket));
            }
            return Ok(false);
        }
        Next::Take(queue) => {
            if let Some(ticket) = processes.synchroniser.take(process, queue) {
                processes.states[process].answered(OpResult::Ticket(ticket));
                return Ok(false);
            }
        }
        Next::Nothing => {
            processes.steps -= 1;
            processes.unknown.push(process);
        }
        Next::Wait => {}
        Next::Done => end(target, process),
    }
    Ok(true)
}

#[inline]
fn begin<T: Target>(
    target: &mut T,
    process: ProcessIndex,
    tag: Option<u32>,
    operation: T::Operation,
) -> Result<bool, T::Error> {
    let begun = target.begin(process, tag, operation)?;
    let processes = target.processes();
    match begun {
        Begun::UnderWay => return Ok(tag.is_none()),
        Begun::Ended(result) => processes.states[process].answered(result),
        Begun::Refused => {
            processes.states[process].refused(tag.is_some());
            processes.refused.push(process);
            processes.steps -= 1;
            return Ok(true);
        }
    }
    Ok(false)
}

fn end<T: Target>(target: &mut T, process: ProcessIndex) {
    let (now, cpu) = (target.now(), target.cpu(process));
    let processes = target.processes();
    processes.records[process] = processes.states[process].end(now, cpu);
    processes.left -= 1;
    target.done(process);
}
