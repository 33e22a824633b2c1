//! A process: asks its generator for the next operation, carries it out, and measures it.
//!
//! One reading of the clock an operation: where one ends, the next begins. So a latency holds the time the
//! generator thinks, some ten nanoseconds, and the sum of all latencies is the time of the run.

use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use raidlab_core::{Nanos, Time};
use raidlab_engine::{EngineError, EngineErrorKind};
use raidlab_workload::processes::{Asked, Next, ProcessState};
use raidlab_workload::{
    Class, Cpu, FileDescriptor, FilePath, Mark, Op, OpResult, Planned, Process, ProcessRecord,
    Recorder,
};

use super::blocks::Blocks;
use super::files::{Descriptors, Roots};
use super::queue::Queue;
use super::system;
use super::worker_pool::{Halt, WorkerPool};
use crate::work;

/// What a worker knows of the run it is part of.
#[derive(Clone, Copy, Debug)]
pub(super) struct Run<'a> {
    pub(super) pool: &'a WorkerPool<'a>,
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
    pub(super) state: ProcessState,
    pub(super) fds: Descriptors,
    pub(super) blocks: Blocks,
    /// Names for system calls; two, for operations on two.
    pub(super) names: [Vec<u8>; 2],
    /// What lists of directories are read into.
    pub(super) list: Vec<MaybeUninit<u8>>,
    pub(super) queue: Option<Queue>,
    start: Instant,
    /// When the last operation ended.
    pub(super) now: Time,
}

/// Carries a process out on this thread, from the moment on when all begin.
pub(super) fn work(index: usize, planned: Planned, run: Run<'_>) -> Result<Left, Halt> {
    let start = run.pool.wait_to_begin();
    let before = system::thread_cpu();
    let mut worker = Worker {
        index,
        run,
        state: ProcessState::new(Recorder::new(planned.copy, run.phases)),
        fds: Descriptors::default(),
        blocks: Blocks::default(),
        names: [Vec::new(), Vec::new()],
        list: Vec::new(),
        queue: None,
        start,
        now: Time::ZERO,
    };
    worker.tick();
    let record = worker.all_of(planned.process)?;
    // Threads that did its overlapping operations have CPU time of their own.
    let helpers = worker.queue.take().map(Queue::end).unwrap_or_default();
    let cpu = before.zip(system::thread_cpu()).map(|(before, after)| {
        let own = after.since(before);
        Cpu { user: own.user + helpers.user, system: own.system + helpers.system }
    });
    Ok(Left { record, cpu })
}

impl Worker<'_> {
    /// What is done next is decided by the [loop of all targets](raidlab_workload::processes); this thread waits where
    /// it says so.
    fn all_of(&mut self, mut process: Box<dyn Process>) -> Result<ProcessRecord, Halt> {
        loop {
            self.run.pool.check()?;
            let last = self.state.take_last();
            let asked = Asked::from(process.next(self.now, last));
            match self.state.next(asked).map_err(|fault| invalid(fault.to_string()))? {
                Next::Ask | Next::Nothing => {}
                Next::Mark(mark) => self.mark(mark),
                Next::Start(tag, Op::At(io)) => self.start(tag, io)?,
                Next::Wait => {
                    while !self.end_one()? {}
                    if self.state.is_at_end() {
                        return Ok(self.done());
                    }
                }
                Next::Done => return Ok(self.done()),
                next => {
                    if let Some(queue) = &mut self.queue {
                        // What was started must be under way while the process does something else.
                        queue.submit()?;
                    }
                    self.wait_for(next)?;
                }
            }
        }
    }

    fn done(&mut self) -> ProcessRecord {
        self.state.end(self.now, system::thread_cpu())
    }

    /// Does what the process waits for.
    fn wait_for(&mut self, next: Next<Op>) -> Result<(), Halt> {
        let pool = self.run.pool;
        let mut result = OpResult::Done;
        match next {
            Next::Operation(op) => {
                let result = self.carry_out(op)?;
                self.state.answered(result);
                return Ok(());
            }
            Next::Put(queue, ticket, times) => pool.put(queue, ticket, times),
            Next::Sleep(time) => {
                let then = self.start + Duration::from_nanos(self.now.0.saturating_add(time.0));
                pool.sleep_until(self.index, then)?;
            }
            Next::Compute(work) => work::carry_out(work, || pool.check())?,
            Next::Barrier(barrier) => pool.arrive(self.index, barrier)?,
            Next::Take(queue) => result = OpResult::Ticket(pool.take(self.index, queue)?),
            // The process does not wait for the others.
            _ => return Ok(()),
        }
        self.tick();
        self.state.answered(result);
        Ok(())
    }

    fn carry_out(&mut self, op: Op) -> Result<OpResult, Halt> {
        match op {
            Op::Read { fd, len, times } => self.read(fd, len, times),
            Op::Write { fd, len, content, times } => self.write(fd, len, content, times),
            Op::At(io) => self.at(io),
            Op::CopyRange { from, to, len } => self.copy_range(from, to, len),
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
        self.state.measured(class, 1, bytes, took);
    }

    /// An operation ended now that is not measured as one of its own.
    pub(super) fn unmeasured(&mut self) -> OpResult {
        self.tick();
        OpResult::Done
    }

    fn mark(&mut self, mark: Mark) {
        let now = self.now;
        let is_phase = matches!(mark, Mark::Begin(_) | Mark::End(_));
        let cpu = if is_phase { system::thread_cpu() } else { None };
        self.state.mark(mark, now, cpu);
        if is_phase {
            // Asking for the CPU time takes time, which is no operation's.
            self.tick();
        }
    }

    /// The file in a file descriptor, for a system call.
    pub(super) fn descriptor(&mut self, fd: FileDescriptor) -> Result<Arc<OwnedFd>, EngineError> {
        self.fds.get(fd).map(|file| file.descriptor())
    }

    /// An operation on an open file that failed.
    #[cold]
    pub(super) fn failed(
        &mut self,
        operation: &'static str,
        fd: FileDescriptor,
        error: std::io::Error,
    ) -> EngineError {
        match self.fds.get(fd) {
            Ok(file) => EngineError::io(operation, &self.run.roots.full(&file.path), error),
            Err(wrong) => wrong,
        }
    }

    /// An operation on a name that failed.
    #[cold]
    pub(super) fn failed_name(
        &self,
        operation: &'static str,
        path: &FilePath,
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
