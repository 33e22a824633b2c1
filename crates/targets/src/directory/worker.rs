//! A process: asks its generator for the next operation, carries it out, and measures it.
//!
//! One reading of the clock an operation: where one ends, the next begins. So a latency holds the time the
//! generator thinks, some ten nanoseconds, and the sum of all latencies is the time of the run.

use std::os::fd::RawFd;
use std::time::{Duration, Instant};

use raidlab_core::{Nanos, Time};
use raidlab_engine::{EngineError, EngineErrorKind};
use raidlab_workload::{
    Class, Cpu, Mark, Op, OpResult, Path, Planned, Process, ProcessRecord, Recorder, Slot,
};

use super::blocks::Blocks;
use super::crew::{Crew, Halt};
use super::files::{Roots, Slots};
use super::queue::Queue;
use super::system;
use crate::characters;

/// What a worker knows of the run it is part of.
#[derive(Clone, Copy, Debug)]
pub(super) struct Run<'a> {
    pub(super) crew: &'a Crew<'a>,
    pub(super) roots: &'a Roots,
    /// How many phases the plan has.
    pub(super) phases: usize,
    /// Whether operations that overlap may go through io_uring.
    pub(super) io_uring: bool,
}

/// What a process leaves.
#[derive(Debug)]
pub(super) struct Left {
    pub(super) record: ProcessRecord,
    pub(super) cpu: Option<Cpu>,
}

#[derive(Debug)]
pub(super) struct Worker<'a> {
    pub(super) index: usize,
    pub(super) run: Run<'a>,
    pub(super) recorder: Recorder,
    pub(super) slots: Slots,
    pub(super) blocks: Blocks,
    /// Names for system calls; two, for operations on two.
    pub(super) names: [Vec<u8>; 2],
    /// What lists of directories are read into.
    pub(super) list: Vec<u8>,
    pub(super) queue: Option<Queue>,
    start: Instant,
    /// When the last operation ended.
    pub(super) now: Time,
}

/// Carries a process out on this thread, from the moment on when all begin.
pub(super) fn work(index: usize, planned: Planned, run: Run<'_>) -> Result<Left, Halt> {
    let start = run.crew.wait_to_begin();
    let before = system::thread_cpu();
    let mut worker = Worker {
        index,
        run,
        recorder: Recorder::new(planned.copy, run.phases),
        slots: Slots::default(),
        blocks: Blocks::default(),
        names: [Vec::new(), Vec::new()],
        list: Vec::new(),
        queue: None,
        start,
        now: Time::ZERO,
    };
    worker.tick();
    worker.all_of(planned.process)?;
    let (now, queue) = (worker.now, worker.queue.take());
    let record = worker.recorder.finish(now, system::thread_cpu);
    // Threads that did its overlapping operations have CPU time of their own.
    let helpers = queue.map(Queue::end).unwrap_or_default();
    let cpu = before.zip(system::thread_cpu()).map(|(before, after)| {
        let own = after.since(before);
        Cpu { user: own.user + helpers.user, system: own.system + helpers.system }
    });
    Ok(Left { record, cpu })
}

impl Worker<'_> {
    fn all_of(&mut self, mut process: Box<dyn Process>) -> Result<(), Halt> {
        let mut last = OpResult::Start;
        loop {
            self.run.crew.check()?;
            let op = process.next(self.now, last);
            if op == Op::Done {
                return Ok(());
            }
            if let Some(queue) = &mut self.queue
                && !matches!(op, Op::Start { .. } | Op::Finish | Op::Mark(_))
            {
                // What was started must be under way while the process does something else.
                queue.submit()?;
            }
            last = self.carry_out(op)?;
        }
    }

    fn carry_out(&mut self, op: Op) -> Result<OpResult, Halt> {
        match op {
            Op::Read { slot, len, times } => self.read(slot, len, times),
            Op::Write { slot, len, content, times } => self.write(slot, len, content, times),
            Op::At(io) => self.at(io),
            Op::Start { tag, io } => self.start(tag, io),
            Op::Finish => self.finish(),
            Op::CopyRange { from, to, len } => self.copy_range(from, to, len),
            Op::Mark(mark) => self.mark(mark),
            Op::Sleep(_)
            | Op::Compute(_)
            | Op::Characters(_)
            | Op::Barrier(_)
            | Op::Put { .. }
            | Op::Take { .. }
            | Op::Done => self.coordinate(&op),
            Op::Open { .. }
            | Op::Close { .. }
            | Op::Seek { .. }
            | Op::Fsync { .. }
            | Op::Fdatasync { .. }
            | Op::SyncAll
            | Op::Truncate { .. }
            | Op::Allocate { .. }
            | Op::DropCached { .. } => self.file_op(op),
            other => self.name_op(other),
        }
    }

    /// Reads the clock; gives the time since it was last read.
    #[inline]
    pub(super) fn tick(&mut self) -> Nanos {
        let elapsed = self.start.elapsed();
        let now = elapsed.as_secs() * 1_000_000_000 + u64::from(elapsed.subsec_nanos());
        let took = Nanos(now.saturating_sub(self.now.0));
        self.now = Time(now);
        took
    }

    /// An operation of this class ended now.
    #[inline]
    pub(super) fn measured(&mut self, class: Class, bytes: u64) {
        let took = self.tick();
        self.recorder.operation(class, bytes, took);
    }

    /// An operation ended now that is not measured as one of its own.
    pub(super) fn unmeasured(&mut self) -> OpResult {
        self.tick();
        OpResult::Done
    }

    fn mark(&mut self, mark: Mark) -> Result<OpResult, Halt> {
        self.recorder.mark(mark, self.now, system::thread_cpu);
        if matches!(mark, Mark::Begin(_) | Mark::End(_)) {
            // Asking for the CPU time takes time, which is no operation's.
            self.tick();
        }
        Ok(OpResult::Done)
    }

    fn coordinate(&mut self, op: &Op) -> Result<OpResult, Halt> {
        let crew = self.run.crew;
        let mut result = OpResult::Done;
        match *op {
            Op::Sleep(time) => {
                let then = self.start + Duration::from_nanos(self.now.0.saturating_add(time.0));
                crew.sleep_until(self.index, then)?;
            }
            Op::Compute(time) => self.compute(time)?,
            Op::Characters(bytes) => characters::put(bytes, || crew.check())?,
            Op::Barrier(barrier) => crew.arrive(self.index, barrier)?,
            Op::Put { queue, ticket, times } => crew.put(queue, ticket, times),
            Op::Take { queue } => result = OpResult::Ticket(crew.take(self.index, queue)?),
            _ => {}
        }
        self.tick();
        Ok(result)
    }

    /// Uses so much CPU time, not elapsed time: processes that share a processor take longer.
    fn compute(&self, time: Nanos) -> Result<(), Halt> {
        let end = system::thread_time() + time;
        while system::thread_time() < end {
            self.run.crew.check()?;
            (0..100).for_each(|_| std::hint::spin_loop());
        }
        Ok(())
    }

    /// The file in a slot, for a system call.
    pub(super) fn descriptor(&mut self, slot: Slot) -> Result<RawFd, EngineError> {
        self.slots.get(slot).map(|file| file.descriptor())
    }

    /// An operation on an open file that failed.
    #[cold]
    pub(super) fn failed(
        &mut self,
        operation: &'static str,
        slot: Slot,
        error: std::io::Error,
    ) -> EngineError {
        match self.slots.get(slot) {
            Ok(file) => EngineError::io(operation, &self.run.roots.full(&file.path), error),
            Err(wrong) => wrong,
        }
    }

    /// An operation on a name that failed.
    #[cold]
    pub(super) fn failed_name(
        &self,
        operation: &'static str,
        path: &Path,
        error: std::io::Error,
    ) -> EngineError {
        EngineError::io(operation, &self.run.roots.full(path), error)
    }
}

/// A length in memory.
#[inline]
pub(super) fn length(bytes: u64) -> Result<usize, EngineError> {
    // What one system call moves at most: `read(2)`.
    const MOST: u64 = 0x7fff_f000;
    if bytes > MOST {
        return Err(invalid(format!("{bytes} bytes in one operation; {MOST} are the most")));
    }
    Ok(bytes as usize)
}

/// What a workload asked for makes no sense.
#[cold]
pub(super) fn invalid(reason: impl Into<String>) -> EngineError {
    EngineError::new(EngineErrorKind::InvalidRequest, "carry out an operation", reason)
}
