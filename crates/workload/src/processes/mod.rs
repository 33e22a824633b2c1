//! The loop that drives a workload's processes, one for all targets.
//!
//! Three values, none of which has a clock or does I/O. [`ProcessState`] takes what a process asks for and says what
//! is to be done next; it is told how that went. [`Processes`] holds those of a stage and what they wait for of each
//! other. [`run`] drives them all on one thread over a [`Target`] that knows what time it is and when something ends:
//! arrays, the modelled host, the target that does nothing. Where each process has a thread of its own and its calls
//! block, the thread drives its own [`ProcessState`].
//!
//! What is the same everywhere is decided here:
//!
//! * a process that goes on keeps going on until it waits; those that it frees go on after it, behind all that could
//!   go on before, in the order in which they came to wait;
//! * to sleep or to compute for no time at all is no operation: nobody else's turn comes;
//! * what was started is told in the order in which it ended; to wait for it when nothing was started, or to have more
//!   than `MOST_STARTED` under way, is a fault of the workload and ends the run;
//! * a process is done when it asks for nothing more and all that it started has ended;
//! * marks, barriers and tickets take no time.
//!
//! What differs is a parameter of the target, with its reason there: how long computing takes and whom it keeps from
//! the CPU ([`Target::compute`]), whether a request must wait for another ([`Begun::Refused`]), which CPU time a
//! process has used ([`Target::cpu`]), whether only part of the operations is known as yet ([`Asked::Nothing`]).

mod run;
mod state;
mod timers;

use raidlab_core::Nanos;

use crate::op::{Mark, Op};

pub use run::{Begun, Processes, Ran, Target, run};
pub use state::{Fault, ProcessState};
pub use timers::Timers;

/// What a process asks for, as the loop sees it; `O` is what targets carry out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asked<O> {
    /// An operation that it waits for.
    Operation(O),
    /// One that it does not wait for; the number is its own for it.
    Start(u32, O),
    /// To wait for any of those.
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
    /// What it asks for next is not known yet: where operations are prepared in batches.
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

    /// The same with its operation made another.
    ///
    /// # Errors
    /// Those of making it.
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
    /// So much time on it.
    Time(Nanos),
    /// So many bytes put into a buffer, or taken from it, one after the other.
    StdioBytes(u64),
}

impl Work {
    const fn is_nothing(self) -> bool {
        matches!(self, Self::Time(Nanos::ZERO) | Self::StdioBytes(0))
    }
}

/// What is done next for a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next<O> {
    /// Nothing: it is asked again.
    Ask,
    /// An operation is carried out, and [`answered`](ProcessState::answered).
    Operation(O),
    /// One is started; when it ends, that is [told](ProcessState::started_ended).
    Start(u32, O),
    /// It waits until one that it started has ended; at its end, until all have.
    Wait,
    /// It sleeps, and is answered then.
    Sleep(Nanos),
    /// It uses the CPU, and is answered then.
    Compute(Work),
    /// The mark is [set](ProcessState::mark), with the time and the CPU time.
    Mark(Mark),
    /// It comes to a barrier, and is answered when it may go on.
    Barrier(u16),
    /// It puts tickets into a queue.
    Put(u16, i64, u64),
    /// It takes a ticket, and is answered with it.
    Take(u16),
    /// It stands still until more is known of what it asks for.
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
