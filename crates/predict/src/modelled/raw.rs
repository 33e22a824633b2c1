//! The raw target in virtual time: processes on an array without filesystem or page cache.

use raidlab_core::contract::{IoOp, Outcome, RequestId};
use raidlab_core::{Nanos, SECTOR_BYTES, Sector, Sectors, Time};
use raidlab_models::host::CallCosts;
use raidlab_sim::{Answer, World};
use raidlab_workload::processes::{Asked, Begun, Fault, Processes, Ran, Work, run};
use raidlab_workload::raw::{Process, RawPlan, Request};
use raidlab_workload::{Class, OpResult, ProcessIndex, RunRecord, Synchroniser};

use super::pacer::Pacer;
use super::timeline::Timeline;

/// A process on the target.
struct Running {
    process: Process,
    /// What it asked for and cannot begin yet.
    refused: Option<Asked<Request>>,
}

/// What a process asked for and is under way.
struct InFlight {
    /// Of the last part of it.
    id: RequestId,
    /// Its parts, which have numbers in a row, and how many of them have no answer.
    parts: u64,
    left: u64,
    process: ProcessIndex,
    /// The process does not wait for it: its own number for it.
    tag: Option<u32>,
    request: Request,
    since: Time,
}

/// Bytes of the longest requests that the array gets from a host; longer ones are several.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Longest {
    pub(super) read: u64,
    /// What of such a read a drive takes at once, as its memory lies in pages that are apart.
    pub(super) read_at_once: u64,
    /// Of writes over parity.
    pub(super) write: u64,
}

impl Longest {
    /// The array gets all as it is.
    pub(super) const ANY: Self = Self { read: u64::MAX, read_at_once: u64::MAX, write: u64::MAX };

    /// How long the next part of a read is that has come so far.
    fn read_part(self, so_far: u64) -> u64 {
        (self.read - so_far % self.read).min(self.read_at_once)
    }
}

/// Lets processes run on a world to their end.
struct Target<'w> {
    /// With processes that sleep or compute.
    timeline: Timeline<'w, ProcessIndex>,
    costs: CallCosts,
    began: Time,
    /// Bytes of a block of the array, and of all of it.
    block: u64,
    space: u64,
    processes: Processes,
    running: Vec<Running>,
    in_flight: Vec<InFlight>,
    longest: Longest,
    /// Paces the rebuild by what requests take.
    pacer: Option<Pacer>,
}

/// Runs processes on a world from now to the end of the last; of `costs` count those of a process's own work.
///
/// # Errors
/// What the first request that failed was answered, or what a process asked for in vain.
pub fn run_raw_plan(
    world: &mut World,
    costs: CallCosts,
    plan: RawPlan,
) -> Result<RunRecord, String> {
    run_paced(world, costs, plan, Longest::ANY, None)
}

/// The same with requests of so many bytes at most, and a rebuild that is paced by what requests take.
pub(super) fn run_paced(
    world: &mut World,
    costs: CallCosts,
    plan: RawPlan,
    longest: Longest,
    mut pacer: Option<Pacer>,
) -> Result<RunRecord, String> {
    if let Some(pacer) = &mut pacer {
        pacer.begin(world);
    }
    world.start().map_err(|error| error.to_string())?;
    let copies = plan.processes.iter().map(Process::copy);
    let synchroniser = Synchroniser::new(&plan.barriers, plan.queues);
    let processes = Processes::new(copies, plan.phases.len(), synchroniser);
    let running = |process| Running { process, refused: None };
    let array = world.array();
    let mut target = Target {
        costs,
        began: world.now(),
        block: u64::from(array.logical_block()) * SECTOR_BYTES,
        space: array.capacity().bytes(),
        timeline: Timeline::new(world),
        processes,
        running: plan.processes.into_iter().map(running).collect(),
        in_flight: Vec::new(),
        longest,
        pacer,
    };
    match run(&mut target)? {
        Ran::Done => {}
        Ran::Waiting => return Err("processes wait for each other for ever".into()),
    }
    let series = Some(target.processes.take_series());
    let processes = target.processes.into_records();
    Ok(RunRecord { phases: plan.phases, processes, series, ..RunRecord::default() })
}

impl raidlab_workload::processes::Target for Target<'_> {
    type Operation = Request;
    type Error = String;

    fn processes(&mut self) -> &mut Processes {
        &mut self.processes
    }

    fn now(&self) -> Time {
        Time(self.timeline.now().since(self.began).0)
    }

    fn ask(
        &mut self,
        process: ProcessIndex,
        now: Time,
        last: OpResult,
    ) -> Result<Asked<Request>, String> {
        let running = &mut self.running[process];
        if let Some(refused) = running.refused.take() {
            return Ok(refused);
        }
        let asked = running.process.next(now, last.into());
        match running.process.failure().filter(|_| asked == Asked::Done) {
            Some(error) => Err(error.to_string()),
            None => Ok(asked),
        }
    }

    fn begin(
        &mut self,
        process: ProcessIndex,
        tag: Option<u32>,
        request: Request,
    ) -> Result<Begun, String> {
        request.check(self.block, self.space).map_err(|error| error.reason)?;
        if self.in_flight.iter().any(|other| request.conflicts(other.request)) {
            let asked = match tag {
                Some(tag) => Asked::Start(tag, request),
                None => Asked::Operation(request),
            };
            self.running[process].refused = Some(asked);
            return Ok(Begun::Refused);
        }
        let op = match request {
            Request::Read(..) => IoOp::Read,
            Request::Write(..) => IoOp::Write,
            Request::Sync => IoOp::Flush,
        };
        let (start, bytes) = request.span();
        let since = self.timeline.now();
        let (mut parts, mut at, mut left) = (0, start, bytes);
        let id = loop {
            let len = match op {
                IoOp::Read => left.min(self.longest.read_part(at - start)),
                _ => left,
            };
            let (sector, sectors) = (Sector(at / SECTOR_BYTES), Sectors(len / SECTOR_BYTES));
            let world = &mut *self.timeline.world;
            let id = match op {
                IoOp::Write => {
                    let longest = Sectors(self.longest.write / SECTOR_BYTES);
                    world.write_plugged(process as u32, sector, sectors, longest)
                }
                _ => world.submit_for(process as u32, op, sector, sectors, false),
            };
            (parts, at, left) = (parts + 1, at + len, left - len);
            if left == 0 {
                break id;
            }
        };
        self.in_flight.push(InFlight { id, parts, left: parts, process, tag, request, since });
        Ok(Begun::UnderWay)
    }

    fn sleep(&mut self, process: ProcessIndex, time: Nanos) {
        self.timeline.set(self.timeline.now() + time, process);
    }

    /// A process uses the CPU, which has requests and other processes to serve, too.
    fn compute(&mut self, process: ProcessIndex, work: Work) -> Result<(), String> {
        let time = match work {
            Work::Time(time) => time,
            Work::StdioBytes(bytes) => self.costs.characters(bytes),
        };
        let until = self.timeline.world.work(time);
        self.timeline.set(until, process);
        Ok(())
    }

    /// To the next answer, or to where the next sleeper wakes.
    fn wait(&mut self) -> Result<bool, String> {
        loop {
            if let Some(answer) = self.timeline.world.next_answer() {
                if self.answered(&answer)? {
                    return Ok(true);
                }
                continue;
            }
            if let Some(process) = self.timeline.due() {
                self.processes.ended(process, OpResult::Done);
                return Ok(true);
            }
            if !self.timeline.step() {
                return Ok(false);
            }
        }
    }

    fn rebuilt(&self) -> Option<f64> {
        super::rebuild::share_done(self.timeline.world)
    }

    fn fault(&self, _process: ProcessIndex, fault: Fault) -> String {
        fault.to_string()
    }
}

impl Target<'_> {
    /// Takes an answer; whether it was to a request of a process.
    fn answered(&mut self, answer: &Answer) -> Result<bool, String> {
        if answer.outcome != Outcome::Done {
            return Err(format!("a request was answered {:?}", answer.outcome));
        }
        let is_part = |one: &InFlight| one.id.0.wrapping_sub(answer.id.0) < one.parts;
        let Some(at) = self.in_flight.iter().position(is_part) else { return Ok(false) };
        self.in_flight[at].left -= 1;
        if self.in_flight[at].left > 0 {
            return Ok(false);
        }
        let InFlight { process, tag, request, since, .. } = self.in_flight.swap_remove(at);
        let took = self.timeline.now().since(since);
        // Targets are p99s of reads and writes, as reports have them.
        if let Some(pacer) = &mut self.pacer
            && request.class() != Class::Other
        {
            pacer.answered(self.timeline.world, took);
        }
        let bytes = request.span().1;
        match request {
            Request::Sync => self.processes.flushed(process, took),
            _ => self.processes.measured(process, request.class(), (1, bytes), took),
        }
        match tag {
            Some(tag) => self.processes.started_ended(process, tag, bytes),
            None => self.processes.ended(process, OpResult::Moved(bytes)),
        }
        Ok(true)
    }
}
