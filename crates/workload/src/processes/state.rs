//! One process: decides what is done next for it, and what it is told.

use std::collections::VecDeque;
use std::fmt;

use raidlab_core::{Nanos, Time};

use super::{Asked, Next};
use crate::op::{Class, MOST_STARTED, Mark, OpResult};
use crate::record::{Cpu, ProcessRecord, Recorder};

/// What a process waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Waits {
    /// Nothing: it can be asked.
    Nothing,
    /// The answer to an operation, sleep, work, barrier or ticket.
    Answer,
    /// The end of any operation that it started.
    Any,
    /// The end of all operations that it started; then it is done.
    All,
}

/// Something that a workload asks for and that is not allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fault {
    /// To wait for a started operation when none was started.
    NothingStarted,
    /// To have more than [`MOST_STARTED`] in flight at once.
    TooManyStarted,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NothingStarted => {
                f.write_str("a process waits for what it started, and has started nothing")
            }
            Self::TooManyStarted => {
                write!(f, "a process has more than {MOST_STARTED} operations under way")
            }
        }
    }
}

/// What the loop knows of a process.
#[derive(Clone, Debug)]
pub struct ProcessState {
    /// The result of the last operation, until the process is told.
    last: OpResult,
    waits: Waits,
    /// The operations started that have not ended.
    under_way: u32,
    /// Those that have ended and are not reported yet: number and bytes.
    ended: VecDeque<(u32, u64)>,
    recorder: Recorder,
}

impl ProcessState {
    /// The state of a process that begins.
    pub fn new(recorder: Recorder) -> Self {
        let (last, waits, ended) = (OpResult::Start, Waits::Nothing, VecDeque::new());
        Self { last, waits, under_way: 0, ended, recorder }
    }

    /// What the process is told when it is asked: the result of its last operation.
    #[inline]
    pub fn take_last(&mut self) -> OpResult {
        std::mem::replace(&mut self.last, OpResult::Done)
    }

    /// Whether it waits for nothing.
    pub(super) fn can_be_asked(&self) -> bool {
        self.waits == Waits::Nothing
    }

    /// Whether it has asked for nothing more, and all that it started has ended.
    #[inline]
    pub fn is_at_end(&self) -> bool {
        self.waits == Waits::All && self.under_way == 0
    }

    /// Says what is to be done, given what the process asks for.
    ///
    /// # Errors
    /// When that cannot be.
    #[inline]
    pub fn next<O>(&mut self, asked: Asked<O>) -> Result<Next<O>, Fault> {
        let next = match asked {
            Asked::Operation(operation) => Next::Operation(operation),
            Asked::Start(tag, operation) => {
                if self.under_way as usize + self.ended.len() >= MOST_STARTED as usize {
                    return Err(Fault::TooManyStarted);
                }
                self.under_way += 1;
                return Ok(Next::Start(tag, operation));
            }
            Asked::Finish => return self.finish(),
            Asked::Sleep(Nanos::ZERO) => return Ok(Next::Ask),
            Asked::Sleep(time) => Next::Sleep(time),
            Asked::Compute(work) if work.is_nothing() => return Ok(Next::Ask),
            Asked::Compute(work) => Next::Compute(work),
            Asked::Mark(mark) => return Ok(Next::Mark(mark)),
            Asked::Barrier(barrier) => Next::Barrier(barrier),
            Asked::Put(queue, ticket, times) => return Ok(Next::Put(queue, ticket, times)),
            Asked::Take(queue) => Next::Take(queue),
            Asked::Nothing => return Ok(Next::Nothing),
            Asked::Done => {
                self.waits = Waits::All;
                return Ok(if self.under_way == 0 { Next::Done } else { Next::Wait });
            }
        };
        self.waits = Waits::Answer;
        Ok(next)
    }

    fn finish<O>(&mut self) -> Result<Next<O>, Fault> {
        if let Some((tag, moved)) = self.ended.pop_front() {
            self.last = OpResult::Finished { tag, moved };
            return Ok(Next::Ask);
        }
        if self.under_way == 0 {
            return Err(Fault::NothingStarted);
        }
        self.waits = Waits::Any;
        Ok(Next::Wait)
    }

    /// Reports that what it waited for was carried out.
    #[inline]
    pub fn answered(&mut self, result: OpResult) {
        self.last = result;
        self.waits = Waits::Nothing;
    }

    /// Reports the end of an operation that it started; says whether the process can go on now.
    pub fn started_ended(&mut self, tag: u32, moved: u64) -> bool {
        self.under_way -= 1;
        match self.waits {
            Waits::Any => self.answered(OpResult::Finished { tag, moved }),
            Waits::All => return self.under_way == 0,
            Waits::Nothing | Waits::Answer => {
                self.ended.push_back((tag, moved));
                return false;
            }
        }
        true
    }

    /// Reports that what it asked for cannot begin yet, and will be asked for again.
    pub(super) fn refused(&mut self, is_started: bool) {
        self.waits = Waits::Nothing;
        self.under_way -= u32::from(is_started);
    }

    /// Records operations of a class that have ended: together they took this long and moved this many bytes, in
    /// equal shares.
    #[inline]
    pub fn measured(&mut self, class: Class, count: u64, bytes: u64, took: Nanos) {
        self.recorder.operations(class, count, bytes, took);
    }

    /// Records a flush that took so long, of what was written up to then ([`Recorder::flush`]).
    pub fn flushed(&mut self, took: Nanos) {
        self.recorder.flush(took);
    }

    /// Sets a mark at time `now`; `cpu` is what the process has used up to now, of which only marks where a phase
    /// begins or ends take note.
    #[inline]
    pub fn mark(&mut self, mark: Mark, now: Time, cpu: Option<Cpu>) {
        self.recorder.mark(mark, now, || cpu);
    }

    /// What the process measured, which is done at `now`.
    pub fn end(&mut self, now: Time, cpu: Option<Cpu>) -> ProcessRecord {
        let recorder = std::mem::replace(&mut self.recorder, Recorder::new(0, 0));
        recorder.finish(now, || cpu)
    }
}
