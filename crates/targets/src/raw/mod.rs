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
//! What a workload learns only while it runs it learns within the span. Nothing of a process is prepared behind
//! a barrier, or a ticket that is not there, until it has passed: what it does then depends on others, also on how long
//! they have made files. Tickets that are there are dealt out in turn as a batch is prepared. A workload that looks at
//! the time has little prepared ahead, and hears of its own sleeps, so that it may go on a few operations longer than
//! by the clock.
//!
//! **Order.** Where two operations overlap and one is a write, the later waits for the earlier, as files do under
//! POSIX, so that each read has exactly one right answer ([`raidlab_workload::raw::Request::conflicts`]).

mod batch;
pub(crate) mod cpu;
mod known;
mod pattern;
mod timed;
mod unchecked;
mod verify;
mod versions;

use std::ops::Range;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use raidlab_core::{Nanos, Time};
use raidlab_engine::{Engine, EngineError, EngineErrorKind, Reply};
use raidlab_workload::processes::{Asked, Processes, Timers};
use raidlab_workload::raw::{OpResult, Process, RawPlan, Request};
use raidlab_workload::{Cpu, ProcessIndex, RunRecord, Synchroniser};

use batch::{Client, InFlight, ahead_after, ahead_at_first};
use cpu::CpuTimes;
use pattern::BLOCK;
pub use unchecked::UncheckedTarget;
use versions::Versions;

/// Memory for prepared operations of all processes, in bytes, where the user sets none.
const ARENA: u64 = 256 << 20;

/// What a run of a workload took.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct RawResult {
    /// What was measured. Times are sums over batches; the CPU times are those of this operating-system
    /// process, all threads, and of the whole machine, within the timed span.
    pub record: RunRecord,
    /// Batches the run was cut into.
    pub batches: u64,
    /// When each was timed, from and to, on the engine's clock; what is prepared and verified between is not.
    pub timed: Vec<(Time, Time)>,
}

impl RawResult {
    /// What of the time up to `at`, on the engine's clock, was timed.
    pub fn timed_up_to(&self, at: Time) -> Time {
        let of = |(from, to): &(Time, Time)| at.min(*to).since((*from).min(at)).0;
        Time(self.timed.iter().map(of).sum())
    }

    /// Bytes read and written.
    pub fn bytes(&self) -> u64 {
        let totals = self.record.totals();
        totals.reads.bytes + totals.writes.bytes
    }

    /// Reads and writes; flushes are not counted.
    pub fn operations(&self) -> u64 {
        let totals = self.record.totals();
        totals.reads.count + totals.writes.count
    }
}

/// An engine with the knowledge of what its array holds.
#[derive(Debug)]
pub struct RawTarget {
    engine: Engine,
    versions: Versions,
    next_version: u32,
    zeroed: bool,
    memory: u64,
    replies: Vec<Reply>,
    in_flight: Vec<InFlight>,
    /// Versions that reads of this batch must find, in the order of submission.
    expected: Vec<u32>,
}

/// What is done to the engine at the start of a run.
pub type Begin<'a> = dyn FnMut(&mut Engine) -> Result<(), EngineError> + 'a;

/// Where operations come from.
trait Source {
    fn next(&mut self, now: Time, last: OpResult) -> Asked<Request>;

    /// Which copy of a workload it belongs to.
    fn copy(&self) -> u32;

    /// Why it ended early.
    fn failure(&self) -> Option<String>;
}

impl Source for Process {
    fn next(&mut self, now: Time, last: OpResult) -> Asked<Request> {
        Self::next(self, now, last)
    }

    fn copy(&self) -> u32 {
        Self::copy(self)
    }

    fn failure(&self) -> Option<String> {
        Self::failure(self).map(ToString::to_string)
    }
}

/// Writes ranges from start to end, then flushes.
struct Fill<'a> {
    ranges: std::slice::Iter<'a, Range<u64>>,
    /// What is left of the range it is at.
    rest: Range<u64>,
    /// Writes under way.
    started: u32,
    flushed: bool,
}

impl<'a> Fill<'a> {
    fn new(ranges: &'a [Range<u64>]) -> Self {
        Self { ranges: ranges.iter(), rest: 0..0, started: 0, flushed: false }
    }
}

impl Source for Fill<'_> {
    fn next(&mut self, _now: Time, _last: OpResult) -> Asked<Request> {
        /// A whole number of stripes of 1, 2, 3, 4, 6 or 12 data chunks of 512 KiB.
        const STEP: u64 = 6 << 20;
        /// Writes under way at once: a drive takes places of a queue on its way from one end to the other.
        const DEPTH: u32 = 16;
        if self.rest.is_empty() {
            self.rest = self.ranges.next().cloned().unwrap_or_default();
        }
        if self.started == DEPTH || (self.rest.is_empty() && self.started > 0) {
            self.started -= 1;
            return Asked::Finish;
        }
        if self.rest.is_empty() {
            let is_done = std::mem::replace(&mut self.flushed, true);
            return if is_done { Asked::Done } else { Asked::Operation(Request::Sync) };
        }
        let (at, len) = (self.rest.start, STEP.min(self.rest.end - self.rest.start));
        self.rest.start += len;
        self.started += 1;
        Asked::Start(0, Request::Write(at, len))
    }

    fn copy(&self) -> u32 {
        0
    }

    fn failure(&self) -> Option<String> {
        None
    }
}

/// What the processes of a run have in common.
struct Shared<'a> {
    phases: Vec<&'static str>,
    barriers: &'a [u32],
    queues: u16,
    asks_time: bool,
}

/// The state of one run.
struct Run<'a, S> {
    clients: Vec<Client<'a, S>>,
    processes: Processes,
    sleepers: Timers<ProcessIndex>,
    /// Processes look at the time: little is prepared ahead.
    asks_time: bool,
    /// How many operations of each process are prepared at once.
    ahead: usize,
    elapsed: Nanos,
    cancel: &'a AtomicBool,
    result: RawResult,
    process_cpu: Nanos,
}

impl RawTarget {
    /// It works in whole blocks of this many bytes, each of which is verified.
    pub const BLOCK: u64 = BLOCK;

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
            versions: Versions::new(blocks),
            next_version: 0,
            zeroed,
            memory: ARENA,
            replies: Vec::new(),
            in_flight: Vec::new(),
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
        self.fill_all(std::slice::from_ref(&(at..at + len)), cancel)
    }

    /// The same for ranges, which are flushed once: in ascending order they are written on the way from one end of the
    /// drives to the other.
    ///
    /// # Errors
    /// As [`run`](Self::run).
    pub fn fill_all(
        &mut self,
        ranges: &[Range<u64>],
        cancel: &AtomicBool,
    ) -> Result<(), EngineError> {
        let mut fill = [Fill::new(ranges)];
        let shared = Shared { phases: Vec::new(), barriers: &[], queues: 0, asks_time: false };
        self.run_sources(&mut fill, shared, cancel, &mut |_| Ok(())).map(|_| ())
    }

    /// Runs the processes of a plan to their end, verifying what they read.
    ///
    /// # Errors
    /// [`EngineErrorKind::Mismatch`] for the first wrong byte that was read, with the member it lies on;
    /// [`EngineErrorKind::NotSupported`] for operations that do not lie on blocks of 4 KiB, or that need a
    /// filesystem; [`EngineErrorKind::Cancelled`] when `cancel` was set, nothing being under way any
    /// more; what the array answers otherwise.
    pub fn run(&mut self, plan: RawPlan, cancel: &AtomicBool) -> Result<RawResult, EngineError> {
        self.run_beginning(plan, cancel, &mut |_| Ok(()))
    }

    /// The same with something done to the engine first, at the start of the timed span: the first
    /// batch is prepared then.
    ///
    /// # Errors
    /// As [`run`](Self::run), and those of `begin`.
    pub fn run_beginning(
        &mut self,
        mut plan: RawPlan,
        cancel: &AtomicBool,
        begin: &mut Begin<'_>,
    ) -> Result<RawResult, EngineError> {
        let RawPlan { phases, queues, asks_time, .. } = plan;
        let shared = Shared { phases, barriers: &plan.barriers, queues, asks_time };
        self.run_sources(&mut plan.processes, shared, cancel, begin)
    }

    fn run_sources<S: Source>(
        &mut self,
        sources: &mut [S],
        Shared { phases, barriers, queues, asks_time }: Shared<'_>,
        cancel: &AtomicBool,
        begin: &mut Begin<'_>,
    ) -> Result<RawResult, EngineError> {
        let share = (self.memory / sources.len().max(1) as u64 / BLOCK * BLOCK).max(BLOCK);
        let capacity = self.engine.array().capacity().bytes();
        let synchroniser = Synchroniser::new(barriers, queues);
        let processes = Processes::new(sources.iter().map(S::copy), phases.len(), synchroniser);
        let client = |source| Client::new(source, share, capacity);
        let clients: Vec<Client<'_, S>> = sources.iter_mut().map(client).collect();
        let record = RunRecord {
            phases,
            system_cpu: Some(Nanos::ZERO),
            memory:
                "no filesystem: the page cache takes part only where members have no direct I/O"
                    .into(),
            ..RunRecord::default()
        };
        let count = clients.len();
        let mut run = Run {
            clients,
            processes,
            sleepers: Timers::default(),
            asks_time,
            ahead: ahead_at_first(asks_time, count),
            elapsed: Nanos::ZERO,
            cancel,
            result: RawResult { record, batches: 0, timed: Vec::new() },
            process_cpu: Nanos::ZERO,
        };
        let before = self.engine.totals();
        let outcome = self.batches(&mut run, begin);
        // After an error answers may still be due: their buffers can be released only then.
        self.replies.clear();
        let drained = self.engine.run_until_idle(&mut self.replies);
        self.in_flight.clear();
        for client in &run.clients {
            if let Some(token) = client.token {
                self.engine.release(token)?;
            }
        }
        outcome.and(drained)?;
        run.result.record.series = Some(run.processes.take_series());
        run.result.record.processes = run.processes.into_records();
        let cpu = Cpu { user: run.process_cpu, system: Nanos::ZERO };
        run.result.record.process_cpu = Some(cpu);
        run.result.record.members = Some(self.engine.totals().since(before));
        Ok(run.result)
    }

    fn batches<S: Source>(
        &mut self,
        run: &mut Run<'_, S>,
        begin: &mut Begin<'_>,
    ) -> Result<(), EngineError> {
        while run.processes.left() > 0 {
            let prepared = self.prepare_all(run)?;
            self.expected.clear();
            let times = CpuTimes::now();
            let (start, from) = (Instant::now(), self.engine.clock());
            if run.result.batches == 0 {
                begin(&mut self.engine)?;
            }
            let moved = self.timed(run, start)?;
            let took = nanos(start);
            run.elapsed += took;
            run.result.timed.push((from, Time(from.0 + took.0)));
            if run.asks_time {
                run.ahead = ahead_after(run.ahead, took);
            }
            let after = CpuTimes::now();
            run.process_cpu += after.process_since(&times);
            let record = &mut run.result.record;
            record.system_cpu =
                record.system_cpu.zip(after.system_since(&times)).map(|(a, b)| a + b);
            run.result.batches += 1;
            for index in 0..run.clients.len() {
                self.verify_batch(&mut run.clients[index], run.cancel)?;
            }
            if !prepared && !moved {
                let reason = "processes of the workload wait for each other for ever";
                return Err(EngineError::new(EngineErrorKind::Internal, RUN, reason));
            }
        }
        Ok(())
    }
}

const RUN: &str = "run a workload";

fn nanos(start: Instant) -> Nanos {
    Nanos(start.elapsed().as_nanos() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What lies between batches, and what is still to come, is no timed span.
    #[test]
    fn time_is_timed_within_batches_alone() {
        let timed = vec![(Time(10), Time(20)), (Time(30), Time(50))];
        let result = RawResult { timed, ..RawResult::default() };
        for (at, counted) in
            [(0, 0), (10, 0), (13, 3), (20, 10), (25, 10), (30, 10), (35, 15), (50, 30), (90, 30)]
        {
            assert_eq!(result.timed_up_to(Time(at)), Time(counted), "{at}");
        }
        assert_eq!(RawResult::default().timed_up_to(Time(90)), Time::ZERO);
    }
}
