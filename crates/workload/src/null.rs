//! A target that does nothing and takes no time but a microsecond an operation, and what processes sleep and
//! compute: it shows what a workload asks for, and what asking costs.

use std::collections::VecDeque;

use raidlab_core::{Nanos, Time};

use crate::names::{Descriptors, FileId, NameError, Names, OpenFile};
use crate::op::{Class, FileDescriptor, Io, Op, OpResult, Root};
use crate::plan::{Plan, Planned, Process};
use crate::processes::{Asked, Begun, Fault, Processes, Ran, Target, Timers, Work, run};
use crate::record::{ProcessRecord, RunRecord};
use crate::synchroniser::{ProcessIndex, Synchroniser};

/// Time that every operation takes here: phases then last longer than nothing.
const STEP: Nanos = Nanos(1_000);

/// What a process asked for: one line a step, in the order in which steps were made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NullStep {
    /// Which process of the plan's stage.
    pub process: usize,
    /// When, since the start of the run.
    pub at: Time,
    /// What.
    pub op: Op,
}

/// Names and lengths, without contents.
#[derive(Debug, Default)]
pub struct NullTarget {
    names: Names,
    /// The steps of the measured stage; filled when [`NullTarget::keep_steps`] was called.
    steps: Option<Vec<NullStep>>,
    now: Time,
}

/// What keeps a run from ending.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum NullError {
    /// An operation on a name cannot be.
    Name(NameError),
    /// An operation on a file descriptor that holds no file.
    Descriptor(FileDescriptor, Op),
    /// Every process that is not done waits.
    Deadlock,
    /// What a process asks for cannot be.
    Fault(ProcessIndex, Fault),
}

impl From<NameError> for NullError {
    fn from(error: NameError) -> Self {
        Self::Name(error)
    }
}

/// A process of a stage.
#[derive(Debug)]
struct Running {
    process: Box<dyn Process>,
    fds: Descriptors,
}

/// What ends when an operation has taken its time: whose, of which number of its own, and how.
type Ending = (ProcessIndex, Option<u32>, OpResult);

/// A stage on the target.
struct Stage<'t> {
    target: &'t mut NullTarget,
    running: Vec<Running>,
    processes: Processes,
    sleepers: Timers<ProcessIndex>,
    /// What is under way, by its end: each operation takes equally long, so this is the order of beginnings too.
    under_way: VecDeque<(Time, Ending)>,
}

impl NullTarget {
    /// Keeps what the measured stage asks for from now on.
    pub fn keep_steps(&mut self) {
        self.steps = Some(Vec::new());
    }

    /// The steps that were kept.
    pub fn steps(&self) -> &[NullStep] {
        self.steps.as_deref().unwrap_or_default()
    }

    /// The names there are.
    pub fn names(&self) -> &Names {
        &self.names
    }

    /// Runs a plan, all its stages.
    ///
    /// # Errors
    /// What no filesystem could carry out, and processes that wait for each other for ever.
    pub fn run(&mut self, plan: Plan) -> Result<RunRecord, NullError> {
        let plan = plan.in_single_operations();
        for source in &plan.sources {
            self.names.add_source(&source.name, source.bytes.len())?;
        }
        let mut record = RunRecord { phases: plan.phases.clone(), ..RunRecord::default() };
        let kept = self.steps.take();
        self.stage(plan.prepare, &plan.phases, Synchroniser::new(&[], 0))?;
        self.stage(plan.warm, &plan.phases, Synchroniser::new(&[], 0))?;
        self.steps = kept;
        let synchroniser = Synchroniser::new(&plan.barriers, plan.queues);
        record.processes = self.stage(plan.run, &plan.phases, synchroniser)?;
        record.memory = "nothing is kept: a target that does nothing".into();
        Ok(record)
    }

    fn stage(
        &mut self,
        planned: Vec<Planned>,
        phases: &[&'static str],
        synchroniser: Synchroniser,
    ) -> Result<Vec<ProcessRecord>, NullError> {
        self.now = Time::ZERO;
        let copies = planned.iter().map(|planned| planned.copy);
        let processes = Processes::new(copies, phases.len(), synchroniser);
        let running =
            |planned: Planned| Running { process: planned.process, fds: Descriptors::default() };
        let mut stage = Stage {
            target: self,
            running: planned.into_iter().map(running).collect(),
            processes,
            sleepers: Timers::default(),
            under_way: VecDeque::new(),
        };
        match run(&mut stage)? {
            Ran::Done => Ok(stage.processes.into_records()),
            Ran::Waiting => Err(NullError::Deadlock),
        }
    }
}

impl Target for Stage<'_> {
    type Operation = Op;
    type Error = NullError;

    fn processes(&mut self) -> &mut Processes {
        &mut self.processes
    }

    fn now(&self) -> Time {
        self.target.now
    }

    fn ask(
        &mut self,
        process: ProcessIndex,
        now: Time,
        last: OpResult,
    ) -> Result<Asked<Op>, NullError> {
        let op = self.running[process].process.next(now, last);
        if let Some(steps) = &mut self.target.steps {
            steps.push(NullStep { process, at: now, op: op.clone() });
        }
        Ok(op.into())
    }

    /// Names and lengths change at once; that it has been carried out is told a step later.
    fn begin(
        &mut self,
        process: ProcessIndex,
        tag: Option<u32>,
        op: Op,
    ) -> Result<Begun, NullError> {
        let result = self.file_op(process, op)?;
        let ends = Time(self.target.now.0 + STEP.0);
        self.under_way.push_back((ends, (process, tag, result)));
        Ok(Begun::UnderWay)
    }

    fn sleep(&mut self, process: ProcessIndex, time: Nanos) {
        self.sleepers.set(Time(self.target.now.0.saturating_add(time.0)), process);
    }

    /// Everybody has a CPU; only work that is given as a time takes any.
    fn compute(&mut self, process: ProcessIndex, work: Work) -> Result<(), NullError> {
        match work {
            Work::Time(time) => self.sleep(process, time),
            Work::StdioBytes(_) => self.processes.ended(process, OpResult::Done),
        }
        Ok(())
    }

    fn wait(&mut self) -> Result<bool, NullError> {
        let ends = self.under_way.front().map(|(at, _)| *at);
        let Some(at) = ends.into_iter().chain(self.sleepers.next_at()).min() else {
            return Ok(false);
        };
        self.target.now = self.target.now.max(at);
        let now = self.target.now;
        while let Some((_, (process, tag, result))) =
            self.under_way.pop_front_if(|(at, _)| *at <= now)
        {
            match tag {
                Some(tag) => self.processes.started_ended(process, tag, result.moved()),
                None => self.processes.ended(process, result),
            }
        }
        while let Some(process) = self.sleepers.due(now) {
            self.processes.ended(process, OpResult::Done);
        }
        Ok(true)
    }

    fn fault(&self, process: ProcessIndex, fault: Fault) -> NullError {
        NullError::Fault(process, fault)
    }
}

impl Stage<'_> {
    fn measure(&mut self, process: ProcessIndex, class: Class, bytes: u64) {
        self.processes.measured(process, class, (1, bytes), STEP);
    }

    fn names(&mut self) -> &mut Names {
        &mut self.target.names
    }

    /// The length of an open file.
    fn size(&self, id: Option<FileId>) -> u64 {
        id.map_or(0, |id| self.target.names.status(id).size)
    }

    /// What a file descriptor of a process holds.
    fn fd(&mut self, process: ProcessIndex, fd: FileDescriptor) -> Option<&mut OpenFile> {
        self.running[process].fds.get(fd)
    }

    fn file_op(&mut self, process: ProcessIndex, op: Op) -> Result<OpResult, NullError> {
        let unknown = |fd: FileDescriptor, op: &Op| NullError::Descriptor(fd, op.clone());
        Ok(match &op {
            Op::Open { fd, path, flags } => {
                let id = match path.root {
                    Root::Null => None,
                    _ => Some(self.names().open(path, *flags)?.0),
                };
                self.running[process].fds.open(*fd, id, *flags);
                OpResult::Done
            }
            Op::Close { fd } => {
                let closed = self.running[process].fds.close(*fd);
                closed.ok_or_else(|| unknown(*fd, &op))?;
                OpResult::Done
            }
            Op::At(io) => {
                let (class, moved) = self.io(process, *io).ok_or_else(|| unknown(io.fd(), &op))?;
                self.measure(process, class, moved);
                OpResult::Moved(moved)
            }
            Op::Seek { fd, to } => {
                let id = self.fd(process, *fd).ok_or_else(|| unknown(*fd, &op))?.id;
                let size = self.size(id);
                if let Some(file) = self.fd(process, *fd) {
                    file.seek(*to, size);
                }
                OpResult::Done
            }
            Op::Fsync { fd } | Op::Fdatasync { fd } => {
                self.fd(process, *fd).ok_or_else(|| unknown(*fd, &op))?;
                self.measure(process, Class::Other, 0);
                OpResult::Done
            }
            Op::Truncate { fd, len } => {
                let file = self.fd(process, *fd).ok_or_else(|| unknown(*fd, &op))?;
                if let Some(id) = file.id {
                    self.names().set_size(id, *len);
                }
                OpResult::Done
            }
            Op::Allocate { fd, .. } => {
                self.fd(process, *fd).ok_or_else(|| unknown(*fd, &op))?;
                OpResult::Done
            }
            Op::Read { fd, .. } | Op::Write { fd, .. } | Op::CopyRange { from: fd, .. } => {
                self.moving_op(process, &op).ok_or_else(|| unknown(*fd, &op))?
            }
            _ => return self.name_op(process, &op),
        })
    }

    /// Operations that move positions; `None` when a file descriptor holds nothing.
    fn moving_op(&mut self, process: ProcessIndex, op: &Op) -> Option<OpResult> {
        let moved = match *op {
            Op::Read { fd, len, times } => {
                let file = *self.fd(process, fd)?;
                let left = self.size(file.id).saturating_sub(file.position);
                let moved = len.saturating_mul(times).min(left);
                self.fd(process, fd)?.position += moved;
                for at in 0..moved.div_ceil(len.max(1)) {
                    self.measure(process, Class::Read, len.min(moved - at * len));
                }
                moved
            }
            Op::Write { fd, len, times, .. } => {
                self.write(process, fd, len * times)?;
                for _ in 0..times {
                    self.measure(process, Class::Write, len);
                }
                len * times
            }
            Op::CopyRange { from, to, len } => {
                let source = *self.fd(process, from)?;
                let moved = len.min(self.size(source.id).saturating_sub(source.position));
                self.fd(process, from)?.position += moved;
                self.write(process, to, moved)?;
                self.measure(process, Class::Write, moved);
                moved
            }
            _ => return None,
        };
        Some(OpResult::Moved(moved))
    }

    /// Writes at the position and moves it.
    fn write(&mut self, process: ProcessIndex, fd: FileDescriptor, bytes: u64) -> Option<()> {
        let file = self.fd(process, fd)?;
        file.position += bytes;
        let (id, end) = (file.id, file.position);
        if let Some(id) = id {
            self.names().grow(id, end);
        }
        Some(())
    }

    fn name_op(&mut self, process: ProcessIndex, op: &Op) -> Result<OpResult, NullError> {
        let result = match op {
            Op::Unlink { path } => self.names().unlink(path).map(|_| OpResult::Done)?,
            Op::Mkdir { path } => self.names().mkdir(path).map(|_| OpResult::Done)?,
            Op::Rmdir { path } => self.names().rmdir(path).map(|_| OpResult::Done)?,
            Op::Rename { from, to } => self.names().rename(from, to).map(|_| OpResult::Done)?,
            Op::Link { from, to } => self.names().link(from, to).map(|_| OpResult::Done)?,
            Op::Symlink { path, .. } => {
                let flags = crate::op::OpenFlags { exclusive: true, ..crate::op::OpenFlags::WRITE };
                self.names().open(path, flags).map(|_| OpResult::Done)?
            }
            Op::List { path } => OpResult::Entries(self.names().list(path)?),
            Op::Stat { path } => {
                let id = self.names().find(path).ok_or_else(|| NameError {
                    reason: "No such file or directory",
                    path: path.clone(),
                })?;
                OpResult::Status(self.names().status(id))
            }
            Op::SyncAll | Op::FsyncDirectory { .. } => OpResult::Done,
            _ => return Ok(OpResult::Done),
        };
        self.measure(process, Class::Other, 0);
        Ok(result)
    }

    fn io(&mut self, process: ProcessIndex, io: Io) -> Option<(Class, u64)> {
        let file = *self.fd(process, io.fd())?;
        Some(match io {
            Io::Read { at, len, .. } => {
                (Class::Read, len.min(self.size(file.id).saturating_sub(at)))
            }
            Io::Write { at, len, .. } => {
                if let Some(id) = file.id {
                    self.names().grow(id, at + len);
                }
                (Class::Write, len)
            }
        })
    }
}
