//! The modelled host as a target: any [`Plan`] on a filesystem and page cache over a simulated array, in
//! virtual time.
//!
//! The processes of a plan call a [`Host`]; its requests go to a [`World`], whose cores do what processes and
//! requests cost; copies wait on the memory path, where there is one. Nothing has contents. Preparing, syncing and
//! warming take virtual time too, but the run begins at zero.

mod calls;
mod io;
mod names;

use std::collections::VecDeque;

use raidlab_core::contract::{Outcome, RequestId};
use raidlab_core::{MemberTotals, Nanos, Time};
use raidlab_models::HostSpec;
use raidlab_models::host::{
    BlockId, Call, Host, HostDescriptor, HostInput, HostOutput, Inode, TaskId, read_ahead_for,
};
use raidlab_sim::{Answer, World};
use raidlab_study::{StudyError, StudyErrorKind};
use raidlab_workload::names::{Descriptors, FileId, Names};
use raidlab_workload::processes::{self, Asked, Begun, Fault, Processes, Ran, Work};
use raidlab_workload::{
    Class, Cpu, FilePath, Memory, Op, OpResult, Plan, Planned, Process, ProcessRecord, RunRecord,
    Synchroniser, TimeSeries,
};

use super::timeline::Timeline;

/// Runs a plan on an array, all its stages.
///
/// # Errors
/// What no filesystem could carry out, a filesystem that is too small, processes that wait for each
/// other for ever, and requests that fail: on modelled drives without faults those are defects.
pub fn run_plan(world: &mut World, host: &HostSpec, plan: Plan) -> Result<RunRecord, StudyError> {
    run(world, host, plan).map(|run| run.record)
}

/// A run, and what of the host is not in its record.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct HostRun {
    /// What was measured.
    pub record: RunRecord,
    /// Bytes that were dirty in memory, or on their way to the array, at the end: written in no time
    /// that was measured. A warning of the record tells of a MiB and more.
    pub unwritten: u64,
    /// The host, with the read-ahead that it had on this array.
    pub host: HostSpec,
}

/// Runs a plan like [`run_plan`]; gives what was left in memory too.
///
/// # Errors
/// As [`run_plan`].
pub fn run(world: &mut World, host: &HostSpec, plan: Plan) -> Result<HostRun, StudyError> {
    let mut target = Target::new(world, host)?;
    let record = target.run(plan)?;
    Ok(HostRun { record, unwritten: target.host.unwritten(), host: target.spec })
}

fn wrong(kind: StudyErrorKind, key: &str, reason: impl Into<String>) -> StudyError {
    StudyError::new(kind, "modelled host", None, key, reason)
}

/// What is still to be done of an operation, and what it is answered with.
#[derive(Debug, Default)]
struct Script {
    calls: VecDeque<Call>,
    /// Counted as one operation of this class at the end; reads and writes count themselves.
    class: Option<Class>,
    began: Time,
    /// Bytes: gathered from the calls, or known before for operations of a class.
    moved: u64,
    /// Operations in memory alone, without calls: their class, how many, their bytes.
    in_memory: Option<(Class, u64, u64)>,
    /// `None` when there is no operation.
    answer: Option<Answered>,
}

#[derive(Debug)]
enum Answered {
    With(OpResult),
    /// With what was moved, by which the position of a file descriptor moves.
    Moved(Option<raidlab_workload::FileDescriptor>),
}

/// A process of a stage.
#[derive(Debug)]
struct Running {
    process: Box<dyn Process>,
    fds: Descriptors,
    /// The host's handle of each file descriptor.
    handles: Vec<Option<HostDescriptor>>,
    script: Script,
    cpu: Cpu,
}

/// How reads and writes of a call count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Measured {
    /// Not at all, or with the operation that they are part of.
    Not,
    /// Each by itself.
    Each,
    /// A read and the write after it as one write, as groups do; the bytes of the read count as read.
    Pairs,
}

/// A call of the host under way.
#[derive(Clone, Copy, Debug)]
struct Use {
    process: usize,
    /// Of an operation that was started and is not waited for.
    tag: Option<u32>,
    measured: Measured,
    /// When the last operation of it ended.
    since: Time,
}

/// Whose turn of the CPU, or sleep, ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Timer {
    /// A call of the host has used the CPU; so much is still to come.
    Call(u32, Nanos),
    /// The same for a call that is done then.
    Last(u32, Nanos),
    /// A process has.
    Process(usize, Nanos),
    /// The host wants to be woken. The last it asked for counts.
    Host,
}

/// What was counted when the run began.
struct Base {
    at: Time,
    members: MemberTotals,
    cores: Vec<Nanos>,
    busy: Vec<(String, Nanos)>,
}

struct Target<'w> {
    timeline: Timeline<'w, Timer>,
    host: Host,
    spec: HostSpec,
    /// Names, and the lengths of material from elsewhere: those of files on the filesystem are the host's.
    names: Names,
    processes: Processes,
    running: Vec<Running>,
    uses: Vec<Option<Use>>,
    free_uses: Vec<u32>,
    /// Requests under way: the world numbers them upwards, from this one on.
    first_request: u64,
    requests: VecDeque<Option<BlockId>>,
    /// Where processes count time from.
    began: Time,
}

/// Makes everything durable and ends.
#[derive(Debug)]
struct Settle(bool);

impl Process for Settle {
    fn next(&mut self, _now: Time, _last: OpResult) -> Op {
        if std::mem::take(&mut self.0) { Op::SyncAll } else { Op::Done }
    }
}

fn failed(process: usize, what: &str, reason: impl std::fmt::Display) -> StudyError {
    let key = format!("process {process}");
    wrong(StudyErrorKind::WrongValue, &key, format!("{what}: {reason}"))
}

fn no_processes() -> Processes {
    Processes::new([], 0, Synchroniser::new(&[], 0))
}

impl processes::Target for Target<'_> {
    type Operation = Op;
    type Error = StudyError;

    #[inline]
    fn processes(&mut self) -> &mut Processes {
        &mut self.processes
    }

    #[inline]
    fn now(&self) -> Time {
        Time(self.timeline.now().since(self.began).0)
    }

    #[inline]
    fn ask(&mut self, index: usize, now: Time, last: OpResult) -> Result<Asked<Op>, StudyError> {
        Ok(self.running[index].process.next(now, last).into())
    }

    #[inline]
    fn begin(&mut self, index: usize, tag: Option<u32>, op: Op) -> Result<Begun, StudyError> {
        if let (Some(tag), Op::At(io)) = (tag, &op) {
            self.start(index, tag, *io)?;
            return Ok(Begun::UnderWay);
        }
        Ok(self.begin_file(index, op)?.map_or(Begun::UnderWay, Begun::Ended))
    }

    fn sleep(&mut self, index: usize, time: Nanos) {
        self.begin_operation(index, Answered::With(OpResult::Done));
        self.timeline.set(self.timeline.now() + time, Timer::Process(index, Nanos::ZERO));
    }

    /// On the host's cores, in slices when there are others.
    fn compute(&mut self, index: usize, work: Work) -> Result<(), StudyError> {
        let cost = match work {
            Work::Time(time) => time,
            Work::StdioBytes(bytes) => self.spec.costs.characters(bytes),
        };
        self.begin_operation(index, Answered::With(OpResult::Done));
        self.use_cpu(index, cost, true);
        Ok(())
    }

    #[inline]
    fn cpu(&self, index: usize) -> Option<Cpu> {
        Some(self.running[index].cpu)
    }

    #[inline]
    fn hand_on(&mut self) -> Result<(), StudyError> {
        self.drain()
    }

    fn done(&mut self, index: usize) {
        for handle in std::mem::take(&mut self.running[index].handles).into_iter().flatten() {
            self.host.close(handle);
        }
    }

    #[inline]
    fn wait(&mut self) -> Result<bool, StudyError> {
        if !self.timeline.step() {
            return Ok(false);
        }
        self.happened()?;
        Ok(true)
    }

    fn rebuilt(&self) -> Option<f64> {
        super::rebuild::share_done(self.timeline.world)
    }

    fn fault(&self, index: usize, fault: Fault) -> StudyError {
        failed(index, "the workload", fault)
    }
}

impl<'w> Target<'w> {
    fn new(world: &'w mut World, spec: &HostSpec) -> Result<Self, StudyError> {
        let names = Names::default();
        let root = names.find(&FilePath::target(""));
        let root = root.ok_or_else(|| wrong(StudyErrorKind::WrongValue, "names", "no root"))?;
        let mut spec = *spec;
        spec.read_ahead.get_or_insert(read_ahead_for(spec.kernel, world.array().layout()));
        world.set_cores(spec.cores);
        let host = Host::new(&spec, world.array().capacity(), Inode(root.0));
        let host = host.map_err(|reason| wrong(StudyErrorKind::WrongValue, "host", reason))?;
        Ok(Self {
            began: world.now(),
            timeline: Timeline::new(world),
            host,
            spec,
            names,
            processes: no_processes(),
            running: Vec::new(),
            uses: Vec::new(),
            free_uses: Vec::new(),
            first_request: 0,
            requests: VecDeque::new(),
        })
    }

    fn run(&mut self, plan: Plan) -> Result<RunRecord, StudyError> {
        let room = self.host.available();
        if plan.room > room {
            let reason = format!(
                "the workload needs {} MiB, the modelled filesystem has {} MiB",
                plan.room >> 20,
                room >> 20
            );
            return Err(wrong(StudyErrorKind::DoesNotFit, "room", reason));
        }
        for source in &plan.sources {
            self.add_source(&source.name, source.bytes.len())?;
        }
        let phases = plan.phases.len();
        // What a cold run finds lies where the host has put it; how long that took nobody asks.
        let is_cold = matches!(plan.memory, Memory::Cold | Memory::Warm);
        let prefills = self.timeline.world.prefill(is_cold);
        self.host.prefill(prefills);
        self.stage(plan.prepare, phases, Synchroniser::new(&[], 0))?;
        if plan.memory != Memory::JustWritten {
            let settle = Planned { copy: 0, process: Box::new(Settle(true)) };
            self.stage(vec![settle], 0, Synchroniser::new(&[], 0))?;
        }
        self.timeline.world.prefill(false);
        self.host.prefill(false);
        if is_cold {
            self.host.drop_cached(None);
        }
        self.stage(plan.warm, phases, Synchroniser::new(&[], 0))?;
        let memory = format!(
            "modelled page cache of {} MiB, {} MiB of it in use at the start",
            self.spec.cache.unwrap_or(self.spec.memory) >> 20,
            self.host.cached() >> 20
        );
        let started = self.timeline.world.start();
        started.map_err(|error| wrong(StudyErrorKind::WrongValue, "array", error.to_string()))?;
        let base = self.base();
        let synchroniser = Synchroniser::new(&plan.barriers, plan.queues);
        let (processes, series) = self.stage(plan.run, phases, synchroniser)?;
        let (phases, series) = (plan.phases, Some(series));
        let mut record = RunRecord { phases, memory, processes, series, ..RunRecord::default() };
        self.fill(&mut record, &base);
        Ok(record)
    }

    /// Missing directories of a source are made with it.
    fn add_source(&mut self, name: &str, bytes: u64) -> Result<(), StudyError> {
        let wrong = |reason: String| wrong(StudyErrorKind::WrongValue, "sources", reason);
        self.names.add_source(name, bytes).map_err(|error| wrong(error.to_string()))
    }

    fn base(&self) -> Base {
        Base {
            at: self.timeline.now(),
            members: self.timeline.world.member_totals(),
            cores: self.timeline.world.cores_busy().collect(),
            busy: super::busy::resources(self.timeline.world),
        }
    }

    /// What the world and the cores did since `base`.
    fn fill(&self, record: &mut RunRecord, base: &Base) {
        let now = self.base();
        let spent = |now: Nanos, then: Nanos| Nanos(now.0 - then.0);
        let cores = now.cores.iter().zip(&base.cores).map(|(now, then)| spent(*now, *then));
        let cores: Vec<Nanos> = cores.collect();
        let others = now.busy.into_iter().zip(&base.busy);
        let others = others.map(|((name, now), (_, then))| (name, spent(now, *then)));
        let cpus = super::busy::named_cores(cores.iter().copied());
        let busy = super::busy::shares(now.at.since(base.at), cpus.into_iter().chain(others));
        record.members = Some(now.members.since(base.members));
        record.system_cpu = Some(Nanos(cores.iter().map(|busy| busy.0).sum()));
        let mut cpu = Cpu::default();
        for one in &self.running {
            cpu.user += one.cpu.user;
            cpu.system += one.cpu.system;
        }
        record.process_cpu = Some(cpu);
        record.bottleneck = Some(super::busy::busiest(&busy));
        record.busy = busy;
        let left = self.host.unwritten();
        if left >= 1 << 20 {
            record.warnings.push(format!(
                "{} MiB were still in memory only at the end of the run",
                left >> 20
            ));
        }
    }

    /// Runs processes to the end of the last.
    fn stage(
        &mut self,
        planned: Vec<Planned>,
        phases: usize,
        synchroniser: Synchroniser,
    ) -> Result<(Vec<ProcessRecord>, TimeSeries), StudyError> {
        self.began = self.timeline.now();
        let copies = planned.iter().map(|planned| planned.copy);
        self.processes = Processes::new(copies, phases, synchroniser);
        let running = |planned: Planned| Running {
            process: planned.process,
            fds: Descriptors::default(),
            handles: Vec::new(),
            script: Script::default(),
            cpu: Cpu::default(),
        };
        self.running = planned.into_iter().map(running).collect();
        match processes::run(self)? {
            Ran::Done => {
                let mut processes = std::mem::replace(&mut self.processes, no_processes());
                let series = processes.take_series();
                Ok((processes.into_records(), series))
            }
            Ran::Waiting => {
                let reason = "all processes wait for each other; see barriers and queues";
                Err(wrong(StudyErrorKind::WrongValue, "processes", reason))
            }
        }
    }

    /// Answers of the world and timers that are due.
    fn happened(&mut self) -> Result<(), StudyError> {
        let now = self.timeline.now();
        while let Some(Answer { id, outcome, .. }) = self.timeline.world.next_answer() {
            let Some(block) = self.take_request(id) else { continue };
            if outcome != Outcome::Done {
                let reason = format!("a request to the array was answered {outcome:?}");
                return Err(wrong(StudyErrorKind::WrongValue, "array", reason));
            }
            self.host.handle(now, HostInput::Ended(block));
            self.drain()?;
        }
        while let Some(timer) = self.timeline.due() {
            self.timer_ended(timer);
            self.drain()?;
        }
        Ok(())
    }

    fn timer_ended(&mut self, timer: Timer) {
        let now = self.timeline.now();
        match timer {
            Timer::Call(id, Nanos::ZERO) => {
                self.host.handle(now, HostInput::Computed(TaskId(id)));
            }
            Timer::Last(id, Nanos::ZERO) => self.call_done(TaskId(id), 0),
            Timer::Process(index, Nanos::ZERO) => self.next_call(index),
            Timer::Call(_, left) | Timer::Last(_, left) | Timer::Process(_, left) => {
                self.compute(timer, left);
            }
            Timer::Host => self.host.handle(now, HostInput::Wake),
        }
    }

    /// Lets time pass up to `end` when nothing happens by then and nothing is to be done now; else gives false.
    #[inline]
    fn idle_until(&mut self, end: Time) -> bool {
        self.processes.all_wait() && !self.host.has_output() && self.timeline.idle_until(end)
    }

    fn note_request(&mut self, id: RequestId, block: BlockId) {
        if self.requests.is_empty() {
            self.first_request = id.0;
        }
        // Numbers between, if any, are not the host's.
        let index = (id.0 - self.first_request) as usize;
        self.requests.resize(index, None);
        self.requests.push_back(Some(block));
    }

    fn take_request(&mut self, id: RequestId) -> Option<BlockId> {
        let index = id.0.checked_sub(self.first_request)?;
        let block = self.requests.get_mut(index as usize)?.take();
        while let Some(None) = self.requests.front() {
            self.requests.pop_front();
            self.first_request += 1;
        }
        block
    }

    /// Gives somebody the CPU for `cost`, in slices when there are others.
    fn compute(&mut self, of: Timer, cost: Nanos) {
        let is_alone = self.running.len() == 1;
        let slice = if is_alone { cost } else { cost.min(self.spec.slice) };
        let end = self.timeline.world.work(slice);
        let left = Nanos(cost.0 - slice.0);
        let timer = match of {
            Timer::Call(id, _) => Timer::Call(id, left),
            Timer::Last(id, _) => Timer::Last(id, left),
            Timer::Process(index, _) => Timer::Process(index, left),
            Timer::Host => of,
        };
        if left == Nanos::ZERO && self.idle_until(end) {
            // As when the timer was set and looked for: this is what most calls in memory do.
            self.timer_ended(timer);
        } else {
            self.timeline.set(end, timer);
        }
    }

    /// For how long a copy that begins now stands still on the memory path, behind transfers.
    fn wait_for_memory(&mut self, copies: Nanos, is_read: bool) -> Nanos {
        if copies == Nanos::ZERO || !self.timeline.world.has_memory_path() {
            return Nanos::ZERO;
        }
        let begin = self.timeline.world.cpu_free().max(self.timeline.now());
        let end = self.timeline.world.memory_copy(copies, begin);
        if is_read && self.spec.lone_reader_waits && self.running.len() == 1 {
            self.timeline.world.pause_transfers(copies);
        }
        Nanos(end.since(begin).0 - copies.0)
    }

    /// Carries out what the host asks for.
    fn drain(&mut self) -> Result<(), StudyError> {
        while let Some(output) = self.host.poll() {
            let now = self.timeline.now();
            match output {
                HostOutput::Block(io) => {
                    let world = &mut *self.timeline.world;
                    let id = match io.write_back {
                        true => world.write_back(io.process, io.at, io.len),
                        false => world.submit_for(io.process, io.op, io.at, io.len, io.fua),
                    };
                    self.note_request(id, io.id);
                }
                HostOutput::Compute { task, cost, user, copies, is_read } => {
                    let system = cost + self.wait_for_memory(copies, is_read);
                    if let Some(Some(used)) = self.uses.get_mut(task.0 as usize) {
                        let cpu = &mut self.running[used.process].cpu;
                        cpu.system += system;
                        cpu.user += user;
                        // Reads and writes take what they do in the kernel.
                        used.since = used.since + user;
                    }
                    let cost = system + user;
                    if cost == Nanos::ZERO {
                        self.host.handle(now, HostInput::Computed(task));
                    } else {
                        self.compute(Timer::Call(task.0, cost), cost);
                    }
                }
                HostOutput::Last { task, cost } => {
                    if let Some(Some(used)) = self.uses.get(task.0 as usize) {
                        self.running[used.process].cpu.system += cost;
                    }
                    if cost == Nanos::ZERO {
                        self.call_done(task, 0);
                    } else {
                        self.compute(Timer::Last(task.0, cost), cost);
                    }
                }
                HostOutput::Moved { task, is_read, calls, bytes } => {
                    self.moved(task, is_read, calls, bytes);
                }
                HostOutput::Done { task, moved } => self.call_done(task, moved),
                HostOutput::Failed { task, failure } => {
                    let used = self.uses.get(task.0 as usize).copied().flatten();
                    let process = used.map_or(0, |used| used.process);
                    return Err(failed(process, "an operation failed", failure));
                }
                HostOutput::WakeAt(at) => self.timeline.move_to(at, Timer::Host),
            }
        }
        Ok(())
    }
}

/// The host's number of a file.
fn host_file(id: FileId) -> Inode {
    Inode(id.0)
}
