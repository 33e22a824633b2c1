//! The modelled raw target: a study's cells on modelled drives, in virtual time.
//!
//! A workload's processes drive a simulated array without a filesystem. Drives start cold and idle, at
//! an angle drawn from the seed of the run.

pub mod host;
mod raw;
mod rebuild;

use raidlab_core::{
    Array, Config, Consistency, Limits, MemberConfig, MemberIndex, Nanos, SECTOR_BYTES, Sectors,
};
use raidlab_models::host::HostSpec;
use raidlab_models::{Drive, DriveSpec, PathSpec, Scheduler, ServerKind, load};
use raidlab_sim::{HostCosts, World};
use raidlab_workload::random::mix;
use raidlab_workload::raw::RawPlan;
use raidlab_workload::{MemberTotals, RunRecord, Setting, Workload};

use crate::error::{StudyError, StudyErrorKind};
use crate::matrix::{CellKey, cell_title};
use crate::run::{Runner, Sample};
use crate::study::{DriveSource, State, Study};

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
        let modelled = Self::unchecked(study, costs)?;
        modelled.check()?;
        Ok(modelled)
    }

    /// As [`new`](Self::new), without looking whether workloads fit, which plans them all: for a study that
    /// was checked and differs in parameters only. What does not fit after all fails when it is run.
    ///
    /// # Errors
    /// When a group's drives are not modelled ones or a drive file cannot be used.
    pub fn unchecked(study: &'a Study, costs: HostCosts) -> Result<Self, StudyError> {
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
            let drive = load(model).map_err(|error| {
                let reason = error.to_string();
                wrong("model", reason).with_source(error)
            })?;
            drives.push(study.drive_with_parameters(index, drive)?);
        }
        let processor = study.host.as_ref().and_then(|host| host.processor);
        let costs = processor
            .map_or(costs, |one| HostCosts { request: one.request, parity_rate: one.parity_rate });
        Ok(Self { study, drives, costs })
    }

    /// Every layout is possible and every workload fits.
    fn check(&self) -> Result<(), StudyError> {
        let study = self.study;
        let (mut capacities, mut blocks) = (Vec::new(), Vec::new());
        for index in 0..study.layouts.len() {
            let array = Array::new(&self.config(index)?).map_err(|error| {
                let kind = StudyErrorKind::ImpossibleLayout;
                study.origin.error(kind, ("layouts", index, error.key), error.reason)
            })?;
            capacities.push(array.capacity());
            blocks.push(array.logical_block());
        }
        study.check_capacity(
            &capacities,
            &blocks,
            Some(study.host.as_ref().map_or(HostSpec::default().memory, |host| host.spec.memory)),
        )
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
        let capacity = |index| Some(Array::new(&self.config(index).ok()?).ok()?.capacity());
        (0..self.study.layouts.len()).filter_map(capacity).collect()
    }

    /// A layout over as much of its drives as the study says.
    fn config(&self, layout: usize) -> Result<Config, StudyError> {
        let named = &self.study.layouts[layout];
        let capacity = |member: usize| self.drives[named.group(member)].capacity;
        let member = |member: usize| {
            let sectors = capacity(member);
            let sectors = self.study.member_size.map_or(sectors, |most| most.min(sectors));
            MemberConfig { sectors, logical_block: 1 }
        };
        let mut config = Config {
            members: (0..usize::from(named.layout.members)).map(member).collect(),
            layout: named.layout.clone(),
            read_policy: named.read_policy,
            traits: Vec::new(),
            limits: Limits::default(),
            settings: named.settings,
        };
        let behind = World::metadata_sectors(&config).map_err(|error| {
            let place = ("layouts", layout, "level");
            let reason = error.to_string();
            self.study.origin.error(StudyErrorKind::ImpossibleLayout, place, reason)
        })?;
        // Log and metadata lie behind the data.
        for (index, member) in config.members.iter_mut().enumerate() {
            let room = Sectors(capacity(index).0.saturating_sub(behind.0));
            member.sectors = member.sectors.min(room);
        }
        Ok(config)
    }

    /// The array of a layout with its drives, at time zero, healthy.
    ///
    /// # Errors
    /// When the world cannot be set up.
    pub fn world(&self, layout: usize, seed: u64) -> Result<World, StudyError> {
        self.world_in(layout, State::Healthy, seed)
    }

    /// The array of a layout as the cells of a state begin with it: its drives cold and idle, members
    /// lost and replaced as the state says.
    ///
    /// # Errors
    /// When the world cannot be set up.
    pub fn world_in(&self, layout: usize, state: State, seed: u64) -> Result<World, StudyError> {
        let config = self.config(layout)?;
        let members = config.members.len();
        let group = self.study.layouts[layout].drives;
        let has_journal = matches!(config.settings.consistency, Consistency::Journal { .. });
        let count = members + usize::from(has_journal);
        let drives = (0..count).map(|place| self.drive(layout, place, seed)).collect();
        let spare = || self.drive(layout, members + 1, seed);
        let set_up = || {
            let mut world = World::new(&config, drives, self.costs)?;
            let hardware = &self.study.layouts[layout].hardware;
            let scheduler = self.scheduler(group);
            if !hardware.routes.is_empty() {
                world = world.with_paths(&self.path_spec(layout, count))?;
            }
            if let Some(controller) = &hardware.controller {
                let controller = match scheduler {
                    Some(scheduler) => controller.clone().with_scheduler(scheduler),
                    None => controller.clone(),
                };
                world = world.with_controller(&controller)?;
            } else if let Some(scheduler) = scheduler {
                let depth = self.drives[group].kind.queue_depth();
                world = world.with_queues(&scheduler.spec(depth));
            }
            rebuild::enter(&mut world, state, spare, |world, member, drive| {
                world.add(member, drive)
            })?;
            Ok(world)
        };
        set_up().map_err(|error: raidlab_sim::SimError| {
            let place = ("layouts", layout, "level");
            let reason = error.to_string();
            self.study.origin.error(StudyErrorKind::ImpossibleLayout, place, reason)
        })
    }

    /// The scheduler of a group's request queues: the study's, or the host's kernel's.
    fn scheduler(&self, group: usize) -> Option<Scheduler> {
        let of_kernel = || self.study.host.as_ref().map(|host| host.spec.kernel.scheduler());
        self.study.drives[group].scheduler.or_else(of_kernel)
    }

    /// The paths of a layout's drives. What stands behind the members has none; behind a controller,
    /// what all members have in common lies between the host and it.
    fn path_spec(&self, layout: usize, drives: usize) -> PathSpec {
        let hardware = &self.study.layouts[layout].hardware;
        let mut routes = hardware.routes.clone();
        routes.resize(drives, Vec::new());
        let mut host = Vec::new();
        if hardware.controller.is_some() {
            // A channel or link leads to drives, behind the controller, though all of them share it.
            let common = |server: &usize| {
                let kind = self.study.paths[*server].kind;
                matches!(kind, ServerKind::Bus | ServerKind::Memory)
                    && hardware.routes.iter().all(|one| one.contains(server))
            };
            host = hardware.routes.iter().flatten().filter(|one| common(one)).copied().collect();
            host.sort_unstable();
            host.dedup();
            routes.iter_mut().for_each(|route| route.retain(|server| !host.contains(server)));
        }
        PathSpec { servers: self.study.paths.clone(), routes, host }
    }

    /// A drive of a layout's group: that of a member, the journal behind them, or the spare.
    fn drive(&self, layout: usize, place: usize, seed: u64) -> Drive {
        let group = self.study.layouts[layout].group(place);
        Drive::new(&self.drives[group].kind, mix(&[seed, place as u64]))
    }
}

impl Modelled<'_> {
    /// Runs a cell on a world made for it by [`world_in`](Self::world_in).
    ///
    /// # Errors
    /// When a request fails: on modelled drives without faults that is a defect of raidlab.
    pub fn run_on(
        &self,
        world: &mut World,
        key: &CellKey,
        seed: u64,
    ) -> Result<Sample, StudyError> {
        let Some(workload) = key.workload(self.study) else {
            return self.rebuild_alone(world, key);
        };
        let failed = |what: String| {
            let place = ("workloads", key.workload, "kind");
            let reason = format!("{}: {what}", cell_title(self.study, key));
            self.study.origin.error(StudyErrorKind::WrongValue, place, reason)
        };
        let setting = Setting::new(key.processes, seed);
        let workload = &*workload.workload;
        let record = match self.study.filesystem {
            Some(_) => self.record_on_host(world, workload, setting),
            None => self.record_on(world, workload, setting),
        };
        let record = record.map_err(failed)?;
        let sample = Sample::of(workload, &record);
        let sample = sample.ok_or_else(|| failed("no time passed".into()))?;
        Ok(Sample { rebuild: rebuild::progress(world), ..sample })
    }

    /// Runs a workload on the array itself, without a filesystem.
    ///
    /// # Errors
    /// In words: what keeps the workload from this array, or the answer to a request that failed.
    pub fn record_on(
        &self,
        world: &mut World,
        workload: &dyn Workload,
        setting: Setting,
    ) -> Result<RunRecord, String> {
        let space = world.array().capacity().bytes();
        let setting = Setting { space: Some(space), ..setting };
        let plan = workload.plan(&setting).and_then(|plan| RawPlan::new(plan, space));
        let before = totals(world);
        let mut record = raw::run(world, plan.map_err(|error| error.to_string())?)?;
        record.members = Some(totals(world).since(before));
        record.system_cpu = Some(world.cpu_busy());
        record.bottleneck = Some(busiest(world, record.last_done()));
        record.memory = "no filesystem and no page cache; drives start cold and idle".into();
        Ok(record)
    }

    /// Runs a workload on a filesystem of a modelled host on the array.
    ///
    /// # Errors
    /// In words: what keeps the workload from this host, or the operation that failed.
    pub fn record_on_host(
        &self,
        world: &mut World,
        workload: &dyn Workload,
        setting: Setting,
    ) -> Result<RunRecord, String> {
        let host = self.study.host.as_ref().map_or_else(HostSpec::default, |host| host.spec);
        let setting = Setting { host_memory: Some(host.memory), ..setting };
        let plan = workload.plan(&setting).map_err(|error| error.to_string())?;
        host::run_plan(world, &host, plan).map_err(|error| error.reason)
    }

    /// A rebuild while nothing else goes on.
    fn rebuild_alone(&self, world: &mut World, key: &CellKey) -> Result<Sample, StudyError> {
        let most = match self.study.member_size {
            Some(_) => Sectors(u64::MAX),
            None => Sectors(rebuild::SAMPLE / SECTOR_BYTES),
        };
        let rebuild = rebuild::run_alone(world, most);
        let seconds = rebuild.and_then(|rebuild| Some((rebuild, rebuild.seconds()?.0)));
        let (rebuild, value) = seconds.ok_or_else(|| {
            let reason = format!("{}: nothing was rebuilt", cell_title(self.study, key));
            let place = ("layouts", key.layout, "level");
            self.study.origin.error(StudyErrorKind::WrongValue, place, reason)
        })?;
        Ok(Sample {
            system_cpu_s: Some(world.cpu_busy().as_secs()),
            bottleneck: Some(busiest(world, rebuild.elapsed)),
            ..Sample::of_rebuild(value, rebuild)
        })
    }
}

/// What the members of a world did, as workloads count it.
fn totals(world: &World) -> MemberTotals {
    let done = world.member_totals();
    MemberTotals {
        reads: done.reads,
        writes: done.writes,
        bytes_read: done.bytes_read,
        bytes_written: done.bytes_written,
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
    for (name, busy) in world.path_busy() {
        if share(busy) > busiest.1 {
            busiest = (name, share(busy));
        }
    }
    busiest
}

impl Runner for Modelled<'_> {
    type Error = StudyError;

    fn run(&mut self, key: &CellKey, _round: u32, seed: u64) -> Result<Sample, StudyError> {
        let mut world = self.world_in(key.layout, key.state, seed)?;
        self.run_on(&mut world, key, seed)
    }
}
