//! The modelled raw target: a study's cells on modelled drives, in virtual time.
//!
//! A workload's processes drive a simulated array without a filesystem; each has one request in
//! flight. Drives start cold and idle, at an angle drawn from the seed of the run.

use raidlab_core::contract::{Outcome, RequestId, RequestOp};
use raidlab_core::{
    Array, Config, Limits, MemberConfig, MemberIndex, Nanos, Sector, Sectors, Time,
};
use raidlab_models::{Drive, DriveSpec, load};
use raidlab_sim::{Answer, HostCosts, World};
use raidlab_workload::random::mix;
use raidlab_workload::{Op, OpResult, Process};

use crate::error::{StudyError, StudyErrorKind};
use crate::matrix::{CellKey, cell_title};
use crate::run::{Runner, Sample};
use crate::study::{DriveSource, Study};

/// A study's drives, loaded, and everything else that is the same for all its cells.
#[derive(Clone, Debug)]
pub struct Modelled<'a> {
    study: &'a Study,
    /// The drive of each group.
    drives: Vec<DriveSpec>,
    costs: HostCosts,
}

impl<'a> Modelled<'a> {
    /// Loads the drives of a study and checks that its workloads fit.
    ///
    /// # Errors
    /// When a group's drives are not modelled ones, a drive file cannot be used, or a workload does
    /// not fit on a layout; with file, line and key.
    pub fn new(study: &'a Study, costs: HostCosts) -> Result<Self, StudyError> {
        let mut drives = Vec::new();
        for (index, group) in study.drives.iter().enumerate() {
            let wrong = |key: &str, reason: String| {
                study.origin.error(StudyErrorKind::WrongValue, ("drives", index, key), reason)
            };
            let DriveSource::Model(model) = &group.source else {
                let reason = "virtual time needs modelled drives: name a `model`, or run the study \
                              with --on DIR";
                return Err(wrong("file", reason.into()));
            };
            drives.push(load(model).map_err(|error| {
                let reason = error.to_string();
                wrong("model", reason).with_source(error)
            })?);
        }
        let modelled = Self { study, drives, costs };
        let (mut capacities, mut blocks) = (Vec::new(), Vec::new());
        for index in 0..study.layouts.len() {
            let array = Array::new(&modelled.config(index)).map_err(|error| {
                let kind = StudyErrorKind::ImpossibleLayout;
                study.origin.error(kind, ("layouts", index, error.key), error.reason)
            })?;
            capacities.push(array.capacity());
            blocks.push(array.logical_block());
        }
        study.check_capacity(&capacities, &blocks)?;
        Ok(modelled)
    }

    /// The drive of each group, in the order of the study.
    pub fn drives(&self) -> &[DriveSpec] {
        &self.drives
    }

    /// What the host's CPU costs.
    pub fn costs(&self) -> HostCosts {
        self.costs
    }

    /// The capacity of each layout.
    pub fn capacities(&self) -> Vec<Sectors> {
        let capacity = |index| Array::new(&self.config(index)).map(|array| array.capacity());
        (0..self.study.layouts.len()).filter_map(|index| capacity(index).ok()).collect()
    }

    fn config(&self, layout: usize) -> Config {
        let named = &self.study.layouts[layout];
        let sectors = self.drives[named.drives].capacity;
        let member = MemberConfig { sectors, logical_block: 1 };
        Config {
            members: vec![member; usize::from(named.layout.members)],
            layout: named.layout.clone(),
            read_policy: named.read_policy,
            traits: Vec::new(),
            limits: Limits::default(),
        }
    }

    /// The array of a layout with its drives, at time zero.
    ///
    /// # Errors
    /// When the world cannot be set up.
    pub fn world(&self, layout: usize, seed: u64) -> Result<World, StudyError> {
        let config = self.config(layout);
        let group = self.study.layouts[layout].drives;
        let kind = &self.drives[group].kind;
        let drives: Vec<_> = (0..config.members.len() as u64)
            .map(|member| Drive::new(kind, mix(&[seed, member])))
            .collect();
        let world = World::new(&config, drives, self.costs).map_err(|error| {
            let place = ("layouts", layout, "level");
            let reason = error.to_string();
            self.study.origin.error(StudyErrorKind::ImpossibleLayout, place, reason)
        })?;
        Ok(match self.study.drives[group].scheduler {
            Some(scheduler) => world.with_queues(&scheduler.spec(kind.queue_depth())),
            None => world,
        })
    }
}

/// A process on the target, with what it waits for.
struct Running {
    process: Process,
    waits_for: Option<RequestId>,
    done_at: Option<Time>,
}

/// What all processes moved.
#[derive(Default)]
struct Moved {
    bytes: u64,
    operations: u64,
}

/// Lets processes run on a world to their end; `Err` names the first request that failed.
struct Target<'w> {
    world: &'w mut World,
    running: Vec<Running>,
    moved: Moved,
}

impl Target<'_> {
    fn run(&mut self) -> Result<(), Outcome> {
        for index in 0..self.running.len() {
            self.go_on(index, OpResult::Start);
        }
        while self.running.iter().any(|process| process.done_at.is_none()) {
            if !self.world.step() {
                return Err(Outcome::Busy);
            }
            while let Some(Answer { id, outcome, .. }) = self.world.next_answer() {
                if outcome != Outcome::Done {
                    return Err(outcome);
                }
                let waiting = self.running.iter().position(|p| p.waits_for == Some(id));
                if let Some(index) = waiting {
                    self.go_on(index, OpResult::Done);
                }
            }
        }
        Ok(())
    }

    fn go_on(&mut self, index: usize, last: OpResult) {
        let now = self.world.now();
        let running = &mut self.running[index];
        let (op, at, len) = match running.process.next(now, last) {
            Op::Read { at, len } => (RequestOp::Read, at, len),
            Op::Write { at, len } => (RequestOp::Write, at, len),
            Op::Sync => (RequestOp::Flush, 0, 0),
            Op::Done => {
                running.waits_for = None;
                running.done_at = Some(now);
                return;
            }
        };
        self.moved.bytes += len;
        self.moved.operations += u64::from(op != RequestOp::Flush);
        let (at, len) = (Sector(at / 512), Sectors(len / 512));
        let process = index as u32;
        running.waits_for = Some(self.world.submit_for(process, op, at, len, false));
    }
}

/// Runs processes on a world, from time zero to the end of the last; gives the first and last end.
fn run_processes(
    world: &mut World,
    processes: Vec<Process>,
) -> Result<(Moved, Nanos, Nanos), Outcome> {
    let running = processes
        .into_iter()
        .map(|process| Running { process, waits_for: None, done_at: None })
        .collect();
    let mut target = Target { world, running, moved: Moved::default() };
    target.run()?;
    let ends = || target.running.iter().filter_map(|process| process.done_at);
    let first = ends().min().unwrap_or(Time::ZERO).since(Time::ZERO);
    let last = ends().max().unwrap_or(Time::ZERO).since(Time::ZERO);
    Ok((target.moved, first, last))
}

impl Modelled<'_> {
    /// Runs a cell on a world made for it.
    ///
    /// # Errors
    /// When a request fails: on modelled drives without faults that is a defect of raidlab.
    pub fn run_on(
        &self,
        world: &mut World,
        key: &CellKey,
        seed: u64,
    ) -> Result<Sample, StudyError> {
        let workload = &self.study.workloads[key.workload];
        let processes = workload.processes(world.array().capacity(), key.processes, seed);
        let run = run_processes(world, processes);
        let failed = |what: String| {
            let place = ("workloads", key.workload, "kind");
            let reason = format!("{}: {what}", cell_title(self.study, key));
            self.study.origin.error(StudyErrorKind::WrongValue, place, reason)
        };
        let (moved, first_done, last_done) =
            run.map_err(|outcome| failed(format!("a request was answered {outcome:?}")))?;
        let value = workload.metric().value(moved.bytes, moved.operations, last_done);
        Ok(Sample {
            value: value.ok_or_else(|| failed("no time passed".into()))?,
            first_done,
            last_done,
            bytes: moved.bytes,
            ops: moved.operations,
            process_cpu_s: None,
            system_cpu_s: Some(world.cpu_busy().as_secs()),
            bottleneck: Some(busiest(world, last_done)),
        })
    }
}

/// The busiest resource and the share of the time it was busy.
fn busiest(world: &World, elapsed: Nanos) -> (String, f64) {
    let share = |busy: Nanos| (busy.as_secs() / elapsed.as_secs().max(1e-9)).min(1.0);
    let members = world.array().layout().members;
    let mut busiest = ("cpu".to_string(), share(world.cpu_busy()));
    for member in (0..members).map(MemberIndex) {
        let busy = share(world.drive_busy(member));
        if busy > busiest.1 {
            busiest = (format!("member {member}"), busy);
        }
    }
    busiest
}

impl Runner for Modelled<'_> {
    type Error = StudyError;

    fn run(&mut self, key: &CellKey, _round: u32, seed: u64) -> Result<Sample, StudyError> {
        let mut world = self.world(key.layout, seed)?;
        self.run_on(&mut world, key, seed)
    }
}
