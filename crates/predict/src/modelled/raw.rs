//! The raw target in virtual time: processes on an array without filesystem or page cache.

use std::collections::{BTreeSet, VecDeque};

use raidlab_core::contract::{IoOp, Outcome, RequestId};
use raidlab_core::{Nanos, SECTOR_BYTES, Sector, Sectors, Time};
use raidlab_models::host::CallCosts;
use raidlab_sim::{Answer, World};
use raidlab_workload::raw::{Op, OpResult, Process, RawPlan};
use raidlab_workload::{Class, Conductor, Recorder, RunRecord};

/// A process on the target.
struct Running {
    process: Process,
    recorder: Option<Recorder>,
    /// Waits for any of those it started.
    finishing: bool,
    /// Started, done, and not waited for yet.
    done: u32,
    under_way: u32,
    /// It is done when what it started is.
    ending: bool,
}

/// A request under way.
struct Flying {
    id: RequestId,
    process: usize,
    since: Time,
    /// Reads and writes: what they count as, and bytes.
    counts: Option<(Class, u64)>,
    /// The process does not wait for it.
    is_started: bool,
}

/// Lets processes run on a world to their end.
struct Target<'w> {
    world: &'w mut World,
    costs: CallCosts,
    began: Time,
    conductor: Conductor,
    running: Vec<Running>,
    flying: Vec<Flying>,
    /// When sleepers wake.
    sleepers: BTreeSet<(Time, usize)>,
    record: RunRecord,
    left: usize,
}

/// Runs processes on a world from now to the end of the last; of `costs` count those of a process's own work.
///
/// # Errors
/// What the first request that failed was answered, or what a process asked for in vain.
pub(super) fn run(world: &mut World, costs: CallCosts, plan: RawPlan) -> Result<RunRecord, String> {
    let conductor = Conductor::new(&plan.barriers, plan.queues);
    let phases = plan.phases.len();
    let running: Vec<Running> = plan
        .processes
        .into_iter()
        .map(|process| Running {
            recorder: Some(Recorder::new(process.copy(), phases)),
            process,
            finishing: false,
            done: 0,
            under_way: 0,
            ending: false,
        })
        .collect();
    let mut record = RunRecord { phases: plan.phases, ..RunRecord::default() };
    record.processes.resize_with(running.len(), Default::default);
    let began = world.now();
    let (left, flying, sleepers) = (running.len(), Vec::new(), BTreeSet::new());
    let mut target =
        Target { world, costs, began, conductor, running, flying, sleepers, record, left };
    target.run()?;
    Ok(target.record)
}

impl Target<'_> {
    fn run(&mut self) -> Result<(), String> {
        for index in 0..self.running.len() {
            self.go_on(index, OpResult::Start)?;
        }
        while self.left > 0 {
            if self.wake_sleeper()? {
                continue;
            }
            if !self.world.step() {
                return Err("processes wait for each other for ever".into());
            }
            while let Some(answer) = self.world.next_answer() {
                self.answered(&answer)?;
            }
        }
        Ok(())
    }

    /// Lets the next sleeper go on, when nothing else happens before; false when there is none.
    fn wake_sleeper(&mut self) -> Result<bool, String> {
        let Some(&(at, index)) = self.sleepers.first() else { return Ok(false) };
        if !self.world.idle_until(at) {
            return Ok(false);
        }
        self.sleepers.pop_first();
        self.go_on(index, OpResult::Done)?;
        Ok(true)
    }

    fn answered(&mut self, answer: &Answer) -> Result<(), String> {
        if answer.outcome != Outcome::Done {
            return Err(format!("a request was answered {:?}", answer.outcome));
        }
        let Some(at) = self.flying.iter().position(|one| one.id == answer.id) else {
            return Ok(());
        };
        let flying = self.flying.swap_remove(at);
        let took = self.world.now().since(flying.since);
        let running = &mut self.running[flying.process];
        if let (Some((class, bytes)), Some(recorder)) = (flying.counts, &mut running.recorder) {
            recorder.operation(class, bytes, took);
        }
        if !flying.is_started {
            return self.go_on(flying.process, OpResult::Done);
        }
        running.under_way -= 1;
        running.done += 1;
        if running.ending && running.under_way == 0 {
            self.end(flying.process);
            return Ok(());
        }
        if std::mem::take(&mut running.finishing) {
            running.done -= 1;
            return self.go_on(flying.process, OpResult::Done);
        }
        Ok(())
    }

    fn now(&self) -> Time {
        Time(self.world.now().since(self.began).0)
    }

    /// Asks a process until it waits for something; those that it frees go on after it, in the order in
    /// which they came to wait.
    fn go_on(&mut self, index: usize, last: OpResult) -> Result<(), String> {
        let mut ready = VecDeque::from([(index, last)]);
        while let Some((index, last)) = ready.pop_front() {
            if let Some(next) = self.ask(index, last, &mut ready)? {
                ready.push_front((index, next));
            }
        }
        Ok(())
    }

    /// A process is done now.
    fn end(&mut self, index: usize) {
        let now = self.now();
        if let Some(recorder) = self.running[index].recorder.take() {
            self.record.processes[index] = recorder.finish(now, || None);
            self.left -= 1;
        }
    }

    /// One operation of a process; its result when the process need not wait for it.
    fn ask(
        &mut self,
        index: usize,
        last: OpResult,
        ready: &mut VecDeque<(usize, OpResult)>,
    ) -> Result<Option<OpResult>, String> {
        let now = self.now();
        let op = self.running[index].process.next(now, last);
        Ok(match op {
            Op::Read { .. } | Op::Write { .. } | Op::Sync => {
                self.submit(index, op, false)?;
                None
            }
            Op::StartRead { .. } | Op::StartWrite { .. } => {
                self.submit(index, op, true)?;
                self.running[index].under_way += 1;
                Some(OpResult::Done)
            }
            Op::Finish => {
                let running = &mut self.running[index];
                if running.done == 0 && running.under_way > 0 {
                    running.finishing = true;
                    None
                } else {
                    running.done = running.done.saturating_sub(1);
                    Some(OpResult::Done)
                }
            }
            Op::Sleep(time) => {
                self.sleepers.insert((Time(self.world.now().0 + time.0), index));
                None
            }
            Op::Compute(time) => {
                self.compute(index, time);
                None
            }
            Op::Characters(bytes) => {
                self.compute(index, self.costs.characters(bytes));
                None
            }
            Op::Mark(mark) => {
                if let Some(recorder) = &mut self.running[index].recorder {
                    recorder.mark(mark, now, || None);
                }
                Some(OpResult::Done)
            }
            Op::Barrier(barrier) => self.conductor.arrive(index, barrier).map(|freed| {
                ready.extend(freed.into_iter().map(|other| (other, OpResult::Done)));
                OpResult::Done
            }),
            Op::Put { queue, ticket, times } => {
                let given = self.conductor.put(queue, ticket, times).into_iter();
                ready.extend(given.map(|(other, ticket)| (other, OpResult::Ticket(ticket))));
                Some(OpResult::Done)
            }
            Op::Take { queue } => self.conductor.take(index, queue).map(OpResult::Ticket),
            Op::Done => {
                if let Some(error) = self.running[index].process.failure() {
                    return Err(error.to_string());
                }
                if self.running[index].under_way > 0 {
                    self.running[index].ending = true;
                } else {
                    self.end(index);
                }
                None
            }
        })
    }

    /// A process uses the CPU, which has requests and other processes to serve, too.
    fn compute(&mut self, index: usize, time: Nanos) {
        let until = self.world.work(time);
        self.sleepers.insert((until, index));
    }

    fn submit(&mut self, index: usize, op: Op, is_started: bool) -> Result<(), String> {
        let (request, at, len) = match op {
            Op::Read { at, len } | Op::StartRead { at, len } => (IoOp::Read, at, len),
            Op::Write { at, len } | Op::StartWrite { at, len } => (IoOp::Write, at, len),
            _ => (IoOp::Flush, 0, 0),
        };
        if !at.is_multiple_of(SECTOR_BYTES) || !len.is_multiple_of(SECTOR_BYTES) {
            let what = "an array without a filesystem works in whole sectors of 512 bytes";
            return Err(format!("{len} bytes at byte {at}: {what}"));
        }
        let counts = match request {
            IoOp::Read => Some((Class::Read, len)),
            IoOp::Write => Some((Class::Write, len)),
            _ => Some((Class::Other, 0)),
        };
        let (at, len) = (Sector(at / SECTOR_BYTES), Sectors(len / SECTOR_BYTES));
        let id = self.world.submit_for(index as u32, request, at, len, false);
        let since = self.world.now();
        self.flying.push(Flying { id, process: index, since, counts, is_started });
        Ok(())
    }
}
