//! The raw target, real: workloads on an engine, every byte read verified outside the timed span.
//!
//! What lies where is known: each write puts a pattern down that is a function of the place and of the
//! write (see [`pattern`]), and the target remembers for every block of 4 KiB which write was the last.
//!
//! **The timed span** is only I/O. Operations run in batches: each process's next operations are prepared
//! up to its share of 256 MiB (data to write are made, buffers to read into are poisoned); the clock
//! runs from the first submission until the last answer; a batch ends when the first process has used up
//! its share, whereupon the others only finish the operation they are at. Then reads are verified and
//! the next batch is prepared, while the clock stands. Times are sums over batches. What a device does
//! on its own while the clock stands (writing back its cache) is not seen; flushes are inside the span.
//!
//! **Order.** A process has one operation under way. Where operations of two processes overlap and one
//! is a write, the later waits for the earlier, as files do under POSIX, so that each read has exactly one
//! right answer.

mod batch;
pub(crate) mod cpu;
mod latency;
mod pattern;
mod verify;

pub use verify::{Holding, Mismatch};

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use raidlab_core::contract::{Outcome, RequestOp, Segment};
use raidlab_core::{Nanos, SECTOR_BYTES, Sector, Time};
use raidlab_workload::raw::{Op, OpResult, Process};

use crate::engine::{Engine, Reply, check_outcome};
use crate::error::{EngineError, EngineErrorKind};
use batch::{Action, Client, Flying, Prepared};
use cpu::CpuTimes;
use latency::Latencies;
use pattern::BLOCK;

/// Memory for prepared operations of all processes, in bytes, where the user sets none.
const ARENA: u64 = 256 << 20;

/// What a run of a workload took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RawResult {
    /// Bytes read and written.
    pub bytes: u64,
    /// Reads and writes; flushes are not counted.
    pub operations: u64,
    /// Timed span until the first process was done.
    pub first_done: Nanos,
    /// Timed span until the last process was done.
    pub last_done: Nanos,
    /// CPU time of this operating-system process, all threads, within the timed span.
    pub process_cpu: Nanos,
    /// CPU time of the whole machine within the timed span, to a hundredth of a second or so; `None`
    /// where the system does not tell.
    pub system_cpu: Option<Nanos>,
    /// Batches the run was cut into.
    pub batches: u64,
    /// The time that 99 of 100 reads and writes took at most, to 3 %; zero when there were none.
    pub p99: Nanos,
}

/// An engine with the knowledge of what its array holds.
#[derive(Debug)]
pub struct RawTarget {
    engine: Engine,
    /// The last write of each block; 0 = none.
    versions: Vec<u32>,
    next_version: u32,
    zeroed: bool,
    memory: u64,
    replies: Vec<Reply>,
    flying: Vec<Flying>,
    /// Versions that reads of this batch must find, in the order of submission.
    expected: Vec<u32>,
}

/// What is done to the engine at the start of a run.
pub type Begin<'a> = dyn FnMut(&mut Engine) -> Result<(), EngineError> + 'a;

/// Where operations come from.
trait Source {
    fn next(&mut self, now: Time, last: OpResult) -> Op;
}

impl Source for Process {
    fn next(&mut self, now: Time, last: OpResult) -> Op {
        Self::next(self, now, last)
    }
}

/// Writes a range from start to end, then flushes.
struct Fill {
    at: u64,
    end: u64,
    flushed: bool,
}

impl Source for Fill {
    fn next(&mut self, _now: Time, _last: OpResult) -> Op {
        /// A whole number of stripes of 1, 2, 3, 4, 6 or 12 data chunks of 512 KiB.
        const STEP: u64 = 6 << 20;
        if self.at < self.end {
            let (at, len) = (self.at, STEP.min(self.end - self.at));
            self.at += len;
            return Op::Write { at, len };
        }
        if std::mem::replace(&mut self.flushed, true) { Op::Done } else { Op::Sync }
    }
}

/// The state of one run.
struct Run<'a, S> {
    clients: Vec<Client<'a, S>>,
    elapsed: Nanos,
    cancel: &'a AtomicBool,
    result: RawResult,
    latencies: Latencies,
    /// When each process that is done was done.
    done: Vec<Nanos>,
}

impl RawTarget {
    /// A target over an engine. With `zeroed` the members hold only zeroes, and reads of what was never
    /// written must find zeroes; otherwise such reads are not verified, and redundancy is taken to be
    /// consistent.
    ///
    /// # Errors
    /// [`EngineErrorKind::Busy`] when requests are outstanding.
    pub fn new(engine: Engine, zeroed: bool) -> Result<Self, EngineError> {
        if engine.outstanding() > 0 {
            let reason = "requests are outstanding";
            return Err(EngineError::new(EngineErrorKind::Busy, "set up a raw target", reason));
        }
        let blocks = engine.array().capacity().bytes().div_ceil(BLOCK);
        Ok(Self {
            engine,
            versions: vec![0; blocks as usize],
            next_version: 0,
            zeroed,
            memory: ARENA,
            replies: Vec::new(),
            flying: Vec::new(),
            expected: Vec::new(),
        })
    }

    /// How many bytes the prepared operations of all processes may take, 256 MiB at first. A process
    /// whose single operation is larger than its share gets more.
    pub fn set_memory(&mut self, bytes: u64) {
        self.memory = bytes;
    }

    /// Starts the pattern elsewhere: what an earlier target left on the same members is then not taken
    /// for what this one wrote, should a write get lost.
    #[must_use]
    pub fn salted(mut self, salt: u64) -> Self {
        // Half of the versions are left to count through.
        self.next_version = (salt ^ (salt >> 32)) as u32 >> 1;
        self
    }

    /// The engine, to look at.
    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    /// The engine. What is written to the array through it is unknown to the target, and will be reported
    /// as a mismatch.
    pub fn engine_mut(&mut self) -> &mut Engine {
        &mut self.engine
    }

    /// The engine back.
    pub fn into_engine(self) -> Engine {
        self.engine
    }

    /// Writes `len` bytes from byte `at` on, untimed, and flushes: what reading workloads read.
    ///
    /// # Errors
    /// As [`run`](Self::run).
    pub fn fill(&mut self, at: u64, len: u64, cancel: &AtomicBool) -> Result<(), EngineError> {
        let mut fill = [Fill { at, end: at + len, flushed: false }];
        self.run_sources(&mut fill, cancel, &mut |_| Ok(())).map(|_| ())
    }

    /// Runs the processes to their end, verifying what they read.
    ///
    /// # Errors
    /// [`EngineErrorKind::Mismatch`] for the first wrong byte that was read, with the member it lies on;
    /// [`EngineErrorKind::NotSupported`] for operations that do not lie on blocks of 4 KiB;
    /// [`EngineErrorKind::Cancelled`] when `cancel` was set, nothing being under way any more; what
    /// the array answers otherwise.
    pub fn run(
        &mut self,
        processes: &mut [Process],
        cancel: &AtomicBool,
    ) -> Result<RawResult, EngineError> {
        self.run_sources(processes, cancel, &mut |_| Ok(()))
    }

    /// The same with something done to the engine first, at the start of the timed span: the first
    /// batch is prepared then.
    ///
    /// # Errors
    /// As [`run`](Self::run), and those of `begin`.
    pub fn run_beginning(
        &mut self,
        processes: &mut [Process],
        cancel: &AtomicBool,
        begin: &mut Begin<'_>,
    ) -> Result<RawResult, EngineError> {
        self.run_sources(processes, cancel, begin)
    }

    fn run_sources<S: Source>(
        &mut self,
        sources: &mut [S],
        cancel: &AtomicBool,
        begin: &mut Begin<'_>,
    ) -> Result<RawResult, EngineError> {
        let share = (self.memory / sources.len().max(1) as u64 / BLOCK * BLOCK).max(BLOCK);
        let capacity = self.engine.array().capacity().bytes();
        let clients =
            sources.iter_mut().map(|source| Client::new(source, share, capacity)).collect();
        let mut run = Run {
            clients,
            elapsed: Nanos::ZERO,
            cancel,
            result: RawResult { system_cpu: Some(Nanos::ZERO), ..RawResult::default() },
            latencies: Latencies::default(),
            done: Vec::new(),
        };
        let outcome = self.batches(&mut run, begin);
        // After an error answers may still be due: their buffers can be released only then.
        self.replies.clear();
        let drained = self.engine.run_until_idle(&mut self.replies);
        self.flying.clear();
        for client in &run.clients {
            if let Some(token) = client.token {
                self.engine.release(token)?;
            }
        }
        outcome.and(drained)?;
        run.result.first_done = run.done.iter().copied().min().unwrap_or(Nanos::ZERO);
        run.result.last_done = run.done.iter().copied().max().unwrap_or(Nanos::ZERO);
        run.result.p99 = run.latencies.percentile(99).unwrap_or(Nanos::ZERO);
        Ok(run.result)
    }

    fn batches<S: Source>(
        &mut self,
        run: &mut Run<'_, S>,
        begin: &mut Begin<'_>,
    ) -> Result<(), EngineError> {
        while run.done.len() < run.clients.len() {
            for client in &mut run.clients {
                self.prepare(client, Time(run.elapsed.0), run.cancel)?;
            }
            self.expected.clear();
            let before = CpuTimes::now();
            let start = Instant::now();
            if run.result.batches == 0 {
                begin(&mut self.engine)?;
            }
            self.timed(run, start)?;
            run.elapsed += nanos(start);
            let after = CpuTimes::now();
            run.result.process_cpu += after.process_since(&before);
            run.result.system_cpu =
                run.result.system_cpu.zip(after.system_since(&before)).map(|(a, b)| a + b);
            run.result.batches += 1;
            for index in 0..run.clients.len() {
                self.verify_batch(&mut run.clients[index], run.cancel)?;
            }
        }
        Ok(())
    }

    /// One batch, within the timed span.
    fn timed<S: Source>(
        &mut self,
        run: &mut Run<'_, S>,
        start: Instant,
    ) -> Result<(), EngineError> {
        let mut idle: Vec<usize> = Vec::with_capacity(run.clients.len());
        for (index, client) in run.clients.iter().enumerate() {
            if client.has_next() {
                idle.push(index);
            } else if client.is_done() && !client.reported {
                // A process without any operation is done at once.
                run.done.push(run.elapsed);
            }
        }
        run.clients.iter_mut().for_each(|client| client.reported |= client.is_done());
        let mut stopping = false;
        loop {
            let cancelled = run.cancel.load(Ordering::Relaxed);
            if !stopping && !cancelled {
                self.submit_idle(run, &mut idle)?;
            }
            if self.flying.is_empty() {
                return if cancelled {
                    Err(EngineError::cancelled("run a workload"))
                } else {
                    Ok(())
                };
            }
            self.replies.clear();
            self.engine.wait_replies(&mut self.replies)?;
            let now = Instant::now();
            for position in 0..self.replies.len() {
                let reply = self.replies[position];
                let index = self.answered(run, reply, now)?;
                let client = &mut run.clients[index];
                if client.has_next() {
                    idle.push(index);
                } else if client.is_done() {
                    client.reported = true;
                    run.done.push(run.elapsed + nanos(start));
                } else {
                    stopping = true;
                }
            }
        }
    }

    /// Submits the next operation of each idle process, unless it must wait for another's.
    fn submit_idle<S: Source>(
        &mut self,
        run: &mut Run<'_, S>,
        idle: &mut Vec<usize>,
    ) -> Result<(), EngineError> {
        let mut waiting = 0;
        for position in 0..idle.len() {
            let index = idle[position];
            let client = &mut run.clients[index];
            let next = client.prepared[client.cursor];
            let conflict = self.flying.iter().any(|other| other.conflicts(&next));
            if conflict || !self.engine.can_accept() {
                idle[waiting] = index;
                waiting += 1;
                continue;
            }
            self.submit(client, index, next)?;
        }
        idle.truncate(waiting);
        Ok(())
    }

    fn submit<S>(
        &mut self,
        client: &mut Client<'_, S>,
        index: usize,
        next: Prepared,
    ) -> Result<(), EngineError> {
        let at = Sector(next.at / SECTOR_BYTES);
        let segment = client.token.map(|token| Segment {
            token,
            offset: (next.offset / SECTOR_BYTES) as u32,
            len: (next.len / SECTOR_BYTES) as u32,
        });
        let blocks = (next.at / BLOCK) as usize..((next.at + next.len) / BLOCK) as usize;
        let op = match next.action {
            Action::Read => {
                client.prepared[client.cursor].expected = self.expected.len();
                self.expected.extend_from_slice(&self.versions[blocks]);
                RequestOp::Read
            }
            Action::Write { version } => {
                self.versions[blocks].fill(version);
                RequestOp::Write
            }
            Action::Sync => RequestOp::Flush,
        };
        let segments = match (&segment, next.action) {
            (Some(segment), Action::Read | Action::Write { .. }) => std::slice::from_ref(segment),
            _ => &[],
        };
        let id = self.engine.submit(op, at, segments, false)?;
        client.cursor += 1;
        self.flying.push(Flying { id, client: index, op, next, since: Instant::now() });
        Ok(())
    }

    /// Takes an answer; gives the process it is for.
    fn answered<S>(
        &mut self,
        run: &mut Run<'_, S>,
        reply: Reply,
        now: Instant,
    ) -> Result<usize, EngineError> {
        let Some(position) = self.flying.iter().position(|one| one.id == reply.id) else {
            let reason = "an answer came to a request that was not made";
            return Err(EngineError::new(EngineErrorKind::Internal, "run a workload", reason));
        };
        let flying = self.flying.swap_remove(position);
        if reply.outcome != Outcome::Done {
            check_outcome(reply.outcome, flying.op, Sector(flying.next.at / SECTOR_BYTES))?;
        }
        if flying.op != RequestOp::Flush {
            run.result.bytes += flying.next.len;
            run.result.operations += 1;
            run.latencies.add(now.saturating_duration_since(flying.since).as_nanos() as u64);
        }
        Ok(flying.client)
    }
}

fn nanos(start: Instant) -> Nanos {
    Nanos(start.elapsed().as_nanos() as u64)
}
