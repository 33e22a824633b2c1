//! A target that does nothing and takes no time but what processes sleep and compute: it shows what a
//! workload asks for, and what asking costs.

use raidlab_core::{Nanos, Time};

use crate::conductor::Conductor;
use crate::names::{FileId, NameError, Names, Slots};
use crate::op::{Class, Io, Op, OpResult, Root, Slot};
use crate::plan::{Plan, Planned, Process};
use crate::record::{Recorder, RunRecord};

/// Time that every operation takes here: phases then last longer than nothing.
const STEP: Nanos = Nanos(1_000);

/// What a process asked for: one line a step, in the order in which steps were made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
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
    steps: Option<Vec<Step>>,
    now: Time,
}

/// What keeps a run from ending.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NullError {
    /// An operation on a name cannot be.
    Name(NameError),
    /// An operation on a slot that holds no file.
    Slot(Slot, Op),
    /// Every process that is not done waits.
    Deadlock,
    /// [`Op::Finish`] with nothing under way.
    NothingStarted,
}

impl From<NameError> for NullError {
    fn from(error: NameError) -> Self {
        Self::Name(error)
    }
}

#[derive(Debug)]
enum State {
    /// To be asked, from this time on.
    Ready(Time, OpResult),
    /// For another process.
    Waiting,
    Done,
}

#[derive(Debug)]
struct Running {
    process: Box<dyn Process>,
    state: State,
    slots: Slots,
    started: Vec<(u32, u64)>,
    recorder: Option<Recorder>,
}

impl Running {
    fn measure(&mut self, class: Class, bytes: u64) {
        if let Some(recorder) = &mut self.recorder {
            recorder.operation(class, bytes, STEP);
        }
    }
}

impl NullTarget {
    /// Keeps what the measured stage asks for from now on.
    pub fn keep_steps(&mut self) {
        self.steps = Some(Vec::new());
    }

    /// The steps that were kept.
    pub fn steps(&self) -> &[Step] {
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
        self.stage(plan.prepare, &plan.phases, Conductor::new(&[], 0))?;
        self.stage(plan.warm, &plan.phases, Conductor::new(&[], 0))?;
        self.steps = kept;
        let conductor = Conductor::new(&plan.barriers, plan.queues);
        record.processes = self.stage(plan.run, &plan.phases, conductor)?;
        record.memory = "nothing is kept: a target that does nothing".into();
        Ok(record)
    }

    fn stage(
        &mut self,
        planned: Vec<Planned>,
        phases: &[&'static str],
        mut conductor: Conductor,
    ) -> Result<Vec<crate::record::ProcessRecord>, NullError> {
        self.now = Time::ZERO;
        let mut running: Vec<Running> = planned
            .into_iter()
            .map(|planned| Running {
                process: planned.process,
                state: State::Ready(Time::ZERO, OpResult::Start),
                slots: Slots::default(),
                started: Vec::new(),
                recorder: Some(Recorder::new(planned.copy, phases.len())),
            })
            .collect();
        let mut records = Vec::new();
        records.resize_with(running.len(), Default::default);
        loop {
            let ready = |running: &Running| match running.state {
                State::Ready(at, _) => Some(at),
                _ => None,
            };
            let next = running.iter().enumerate().filter_map(|(i, one)| Some((ready(one)?, i)));
            let Some((at, index)) = next.min() else {
                let all_done = running.iter().all(|one| matches!(one.state, State::Done));
                return if all_done { Ok(records) } else { Err(NullError::Deadlock) };
            };
            self.now = self.now.max(at);
            let state = std::mem::replace(&mut running[index].state, State::Waiting);
            let State::Ready(_, last) = state else { continue };
            let op = running[index].process.next(self.now, last);
            if let Some(steps) = &mut self.steps {
                steps.push(Step { process: index, at: self.now, op: op.clone() });
            }
            if op == Op::Done {
                running[index].state = State::Done;
                if let Some(recorder) = running[index].recorder.take() {
                    records[index] = recorder.finish(self.now, || None);
                }
                continue;
            }
            self.step(&mut running, index, op, &mut conductor)?;
        }
    }

    /// Carries an operation out; waiting processes that it frees become ready.
    fn step(
        &mut self,
        running: &mut [Running],
        index: usize,
        op: Op,
        conductor: &mut Conductor,
    ) -> Result<(), NullError> {
        let soon = Time(self.now.0 + STEP.0);
        let (at, result) = match op {
            Op::Characters(_) => (self.now, OpResult::Done),
            Op::Sleep(time) | Op::Compute(time) => (Time(self.now.0 + time.0), OpResult::Done),
            Op::Mark(mark) => {
                if let Some(recorder) = &mut running[index].recorder {
                    recorder.mark(mark, self.now, || None);
                }
                (self.now, OpResult::Done)
            }
            Op::Barrier(barrier) => {
                let Some(freed) = conductor.arrive(index, barrier) else { return Ok(()) };
                for other in freed {
                    running[other].state = State::Ready(self.now, OpResult::Done);
                }
                (self.now, OpResult::Done)
            }
            Op::Put { queue, ticket, times } => {
                for (other, ticket) in conductor.put(queue, ticket, times) {
                    running[other].state = State::Ready(soon, OpResult::Ticket(ticket));
                }
                (soon, OpResult::Done)
            }
            Op::Take { queue } => {
                let Some(ticket) = conductor.take(index, queue) else { return Ok(()) };
                (soon, OpResult::Ticket(ticket))
            }
            other => (soon, self.file_op(&mut running[index], other)?),
        };
        running[index].state = State::Ready(at, result);
        Ok(())
    }

    fn file_op(&mut self, process: &mut Running, op: Op) -> Result<OpResult, NullError> {
        let unknown = |slot: Slot, op: &Op| NullError::Slot(slot, op.clone());
        Ok(match &op {
            Op::Open { slot, path, how } => {
                let id = match path.root {
                    Root::Null => None,
                    _ => Some(self.names.open(path, *how)?.0),
                };
                process.slots.open(*slot, id, *how);
                OpResult::Done
            }
            Op::Close { slot } => {
                process.slots.close(*slot).ok_or_else(|| unknown(*slot, &op))?;
                OpResult::Done
            }
            Op::At(io) | Op::Start { io, .. } => {
                let (class, moved) =
                    self.io(process, *io).ok_or_else(|| unknown(io.slot(), &op))?;
                process.measure(class, moved);
                if let Op::Start { tag, .. } = op {
                    process.started.push((tag, moved));
                    return Ok(OpResult::Done);
                }
                OpResult::Moved(moved)
            }
            Op::Finish => {
                if process.started.is_empty() {
                    return Err(NullError::NothingStarted);
                }
                let (tag, moved) = process.started.remove(0);
                OpResult::Finished { tag, moved }
            }
            Op::Seek { slot, to } => {
                let file = process.slots.get(*slot).ok_or_else(|| unknown(*slot, &op))?;
                let size = file.id.map_or(0, |id| self.names.status(id).size);
                file.seek(*to, size);
                OpResult::Done
            }
            Op::Fsync { slot } | Op::Fdatasync { slot } => {
                process.slots.get(*slot).ok_or_else(|| unknown(*slot, &op))?;
                process.measure(Class::Other, 0);
                OpResult::Done
            }
            Op::Truncate { slot, len } => {
                let file = process.slots.get(*slot).ok_or_else(|| unknown(*slot, &op))?;
                if let Some(id) = file.id {
                    self.names.set_size(id, *len);
                }
                OpResult::Done
            }
            Op::Allocate { slot, .. } => {
                process.slots.get(*slot).ok_or_else(|| unknown(*slot, &op))?;
                OpResult::Done
            }
            Op::Read { slot, .. } | Op::Write { slot, .. } | Op::CopyRange { from: slot, .. } => {
                self.moving_op(process, &op).ok_or_else(|| unknown(*slot, &op))?
            }
            _ => return self.name_op(process, &op),
        })
    }

    /// Operations that move positions; `None` when a slot holds nothing.
    fn moving_op(&mut self, process: &mut Running, op: &Op) -> Option<OpResult> {
        let moved = match *op {
            Op::Read { slot, len, times } => {
                let file = process.slots.get(slot)?;
                let size = file.id.map_or(0, |id| self.names.status(id).size);
                let wanted = len.saturating_mul(times);
                let moved = wanted.min(size.saturating_sub(file.position));
                file.position += moved;
                for at in 0..moved.div_ceil(len.max(1)) {
                    process.measure(Class::Read, len.min(moved - at * len));
                }
                moved
            }
            Op::Write { slot, len, times, .. } => {
                let file = process.slots.get(slot)?;
                file.position += len * times;
                if let Some(id) = file.id {
                    self.names.grow(id, file.position);
                }
                for _ in 0..times {
                    process.measure(Class::Write, len);
                }
                len * times
            }
            Op::CopyRange { from, to, len } => {
                let source = process.slots.get(from)?;
                let size = source.id.map_or(0, |id| self.names.status(id).size);
                let moved = len.min(size.saturating_sub(source.position));
                source.position += moved;
                let target = process.slots.get(to)?;
                target.position += moved;
                if let Some(id) = target.id {
                    self.names.grow(id, target.position);
                }
                process.measure(Class::Write, moved);
                moved
            }
            _ => return None,
        };
        Some(OpResult::Moved(moved))
    }

    fn name_op(&mut self, process: &mut Running, op: &Op) -> Result<OpResult, NullError> {
        let result = match op {
            Op::Unlink { path } => self.names.unlink(path).map(|_| OpResult::Done)?,
            Op::Mkdir { path } => self.names.mkdir(path).map(|_| OpResult::Done)?,
            Op::Rmdir { path } => self.names.rmdir(path).map(|_| OpResult::Done)?,
            Op::Rename { from, to } => self.names.rename(from, to).map(|_| OpResult::Done)?,
            Op::Link { from, to } => self.names.link(from, to).map(|_| OpResult::Done)?,
            Op::Symlink { path, .. } => {
                let how = crate::op::How { exclusive: true, ..crate::op::How::WRITE };
                self.names.open(path, how).map(|_| OpResult::Done)?
            }
            Op::List { path } => OpResult::Entries(self.names.list(path)?),
            Op::Stat { path } => {
                let id = self.names.find(path).ok_or_else(|| NameError {
                    reason: "No such file or directory",
                    path: path.clone(),
                })?;
                OpResult::Status(self.names.status(id))
            }
            Op::SyncAll | Op::FsyncDirectory { .. } => OpResult::Done,
            _ => return Ok(OpResult::Done),
        };
        process.measure(Class::Other, 0);
        Ok(result)
    }

    fn io(&mut self, process: &mut Running, io: Io) -> Option<(Class, u64)> {
        let file = *process.slots.get(io.slot())?;
        Some(match io {
            Io::Read { at, len, .. } => {
                let size = file.id.map_or(0, |id: FileId| self.names.status(id).size);
                (Class::Read, len.min(size.saturating_sub(at)))
            }
            Io::Write { at, len, .. } => {
                if let Some(id) = file.id {
                    self.names.grow(id, at + len);
                }
                (Class::Write, len)
            }
        })
    }
}
