//! The loop that drives a workload's processes, one for all targets.
//!
//! It consists of three parts, none of which has a clock or does I/O:
//!
//! * [`ProcessState`] takes what one process asks for and says what is to be done next; it is told the result.
//! * [`Processes`] holds the processes of a stage and what they wait for of each other.
//! * [`run`] drives them all on one thread over a [`Target`] that knows the time and when something ends: arrays, the
//!   modelled host, the target that does nothing. Where each process has a thread of its own and its calls block, the
//!   thread drives its own [`ProcessState`].
//!
//! The rules that hold on all targets are decided here:
//!
//! * A process runs until it waits. Processes that it frees run after it, after all that were ready before, in the
//!   order in which they began to wait.
//! * Sleeping or computing for no time is no operation: no other process gets a turn.
//! * The ends of started operations are reported in the order in which they ended. Waiting for one when nothing was
//!   started, or having more than `MOST_STARTED` in flight, is a fault of the workload and ends the run.
//! * A process is done when it asks for nothing more and all that it started has ended.
//! * Marks, barriers and tickets take no time.
//!
//! What differs between targets is a parameter of the target, with the reason stated there: how long computing
//! takes and which processes it keeps from the CPU ([`Target::compute`]), whether a request must wait for another
//! ([`Begun::Refused`]), how much CPU time a process has used ([`Target::cpu`]), and whether only part of the
//! operations is known yet ([`Asked::Nothing`]).

mod run;
mod state;
mod timers;

use raidlab_core::Nanos;

use crate::op::{Mark, Op};

pub use run::{Begun, Processes, Ran, Target, run};
pub use state::{Fault, ProcessState};
pub use timers::Timers;

/// What a process asks for, as the loop sees it; `O` is the type of operation that targets carry out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asked<O> {
    /// An operation that it waits for.
    Operation(O),
    /// An operation that it does not wait for, with the process's own number for it.
    Start(u32, O),
    /// To wait until any operation that it started has ended.
    Finish,
    /// To sleep.
    Sleep(Nanos),
    /// To use the CPU.
    Compute(Work),
    /// Where measuring starts and ends.
    Mark(Mark),
    /// To wait for others at a barrier.
    Barrier(u16),
    /// To put tickets into a queue: which, the ticket, how often.
    Put(u16, i64, u64),
    /// To take a ticket from a queue.
    Take(u16),
    /// Nothing yet: where operations are prepared in batches, the next is not known yet.
    Nothing,
    /// Nothing more.
    Done,
}

impl<O> Asked<O> {
    /// The operation that it asks for, if it does.
    pub const fn operation(&self) -> Option<&O> {
        match self {
            Self::Operation(operation) | Self::Start(_, operation) => Some(operation),
            _ => None,
        }
    }

    /// The same with its operation converted.
    ///
    /// # Errors
    /// Those of the conversion.
    pub fn try_map<P, E>(self, make: impl FnOnce(O) -> Result<P, E>) -> Result<Asked<P>, E> {
        Ok(match self {
            Self::Operation(operation) => Asked::Operation(make(operation)?),
            Self::Start(tag, operation) => Asked::Start(tag, make(operation)?),
            Self::Finish => Asked::Finish,
            Self::Sleep(time) => Asked::Sleep(time),
            Self::Compute(work) => Asked::Compute(work),
            Self::Mark(mark) => Asked::Mark(mark),
            Self::Barrier(barrier) => Asked::Barrier(barrier),
            Self::Put(queue, ticket, times) => Asked::Put(queue, ticket, times),
            Self::Take(queue) => Asked::Take(queue),
            Self::Nothing => Asked::Nothing,
            Self::Done => Asked::Done,
        })
    }
}

/// What a process uses the CPU for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// This much CPU time.
    Time(Nanos),
    /// Putting this many bytes into a buffer, or taking them from it, one by one.
    StdioBytes(u64),
}

impl Work {
    const fn is_nothing(self) -> bool {
        matches!(self, Self::Time(Nanos::ZERO) | Self::StdioBytes(0))
    }
}

/// What the loop does next for a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next<O> {
    /// Nothing: it is asked again.
    Ask,
    /// An operation is carried out, and [`answered`](ProcessState::answered).
    Operation(O),
    /// An operation is started; its end is [reported](ProcessState::started_ended).
    Start(u32, O),
    /// It waits until one operation that it started has ended; when the process ends, until all have.
    Wait,
    /// It sleeps, and is answered then.
    Sleep(Nanos),
    /// It uses the CPU, and is answered then.
    Compute(Work),
    /// The mark is [set](ProcessState::mark), with the time and the CPU time.
    Mark(Mark),
    /// It arrives at a barrier, and is answered when it may go on.
    Barrier(u16),
    /// It puts tickets into a queue.
    Put(u16, i64, u64),
    /// It takes a ticket, and is answered with it.
    Take(u16),
    /// It waits until more of its operations are known.
    Nothing,
    /// It is done: its record is [closed](ProcessState::end).
    Done,
}

impl From<Op> for Asked<Op> {
    #[inline]
    fn from(op: Op) -> Self {
        match op {
            Op::Start { tag, io } => Self::Start(tag, Op::At(io)),
            Op::Finish => Self::Finish,
            Op::Sleep(time) => Self::Sleep(time),
            Op::Compute(time) => Self::Compute(Work::Time(time)),
            Op::StdioBytes(bytes) => Self::Compute(Work::StdioBytes(bytes)),
            Op::Mark(mark) => Self::Mark(mark),
            Op::Barrier(barrier) => Self::Barrier(barrier),
            Op::Put { queue, ticket, times } => Self::Put(queue, ticket, times),
            Op::Take { queue } => Self::Take(queue),
            Op::Done => Self::Done,
            other => Self::Operation(other),
        }
    }
}
