//! The modelled raw target: a study's cells on modelled drives, in virtual time.
//!
//! A workload's processes drive a simulated array without a filesystem. Drives start cold and idle, at
//! an angle drawn from the seed of the run.

mod busy;
mod cached;
pub mod host;
mod pacer;
mod raw;
mod rebuild;
mod room;
mod timeline;

pub use pacer::Pacer;
pub use raw::run_raw_plan;

use std::sync::atomic::{AtomicBool, Ordering};

use raidlab_core::policy::MemberTraits;
use raidlab_core::{
    Config, Consistency, Layout, Level, Limits, MemberConfig, Nanos, SECTOR_BYTES, Sectors, Volume,
};
use raidlab_metadata::md::usual_data_offset;
use raidlab_models::host::{CallCosts, HostSpec, READ_AHEAD};
use raidlab_models::{
    Drive, DriveKind, DriveSpec, LinkKind, PathSpec, QueueSpec, Scheduler, load_beside,
};
use raidlab_random::mix;
use raidlab_sim::{HostCosts, World};
use raidlab_study::{
    CellKey, Detail, DriveSource, Host, NamedLayout, Rebuild, Runner, Sample, State, Study,
    StudyError, StudyErrorKind, cell_title, lost_member,
};
use raidlab_workload::raw::RawPlan;
use raidlab_workload::{Plan, RunRecord, Setting, Workload};

use crate::pass::pass;
use crate::trace::Trace;
use busy::{busiest, busy_of};
use raw::Longest;

/// Stripes that md's cache has, each a page of 4 KiB of every member (`NR_STRIPES`, drivers/md/raid5.h
/// of 6.1 and
/// 6.12), and the sectors of such a page.
const MD_STRIPES: u64 = 256;
const MD_STRIPE_SECTORS: u64 = 8;

/// The stripes that md's cache begins with.
fn md_stripes(layout: &NamedLayout) -> u64 {
    match layout.settings.cached_stripes {
        0 => MD_STRIPES,
        given => u64::from(given),
    }
}

/// Places of the core's cache, of so many rows of a chunk each, that hold as much as so many stripes of md.
fn places_of(stripes: u64, layout: &Layout, plan_rows: Sectors) -> u32 {
    let rows = layout.chunk.0.min(plan_rows.0).max(1);
    (stripes * MD_STRIPE_SECTORS / rows).max(1) as u32
}

/// How the processes of a plan begin, by the seed of a run.
pub type Starts = fn(Plan, u64) -> Plan;

/// Ranges that a rebuild of parity has under way at most, of up to 128 KiB of each member: what md's cache grew to in
/// the lab in three minutes was half of that.
const MOST_RANGES: u32 = 256;

/// Bytes of a page of memory.
const PAGE: u64 = 4 << 10;
/// Bytes that a command with an address of 28 bits moves at most.
const SHORT_COMMAND: u64 = 256 * SECTOR_BYTES;

/// A study's drives, loaded, and everything else that is the same for all its cells.
#[derive(Clone, Debug)]
pub struct Modelled<'a> {
    study: &'a Study,
    /// The drive of each group.
    drives: Vec<DriveSpec>,
    costs: HostCosts,
    /// What the CPU of each layout's host costs.
    of_layouts: Vec<HostCosts>,
    /// Of each layout, once it was checked.
    capacities: Option<Vec<Sectors>>,
    /// Cells end as soon as this is set.
    stop: Option<&'static AtomicBool>,
    /// Requests to drives are written there.
    trace: Option<&'a Trace>,
    /// See [`starting`](Self::starting).
    starts: Option<Starts>,
}

impl<'a> Modelled<'a> {
    /// Loads the drives of a study and checks that its workloads fit.
    ///
    /// # Errors
    /// When a group's drives are not modelled ones, a drive file cannot be used, the filesystem or a
    /// layout's threads are not modelled, or a workload does not fit on a layout; with file, line and
    /// key.
    pub fn new(study: &'a Study, costs: HostCosts) -> Result<Self, StudyError> {
        study.check_virtual_filesystem()?;
        study.check_group_threads()?;
        Self::of_drives(study, costs)
    }

    /// The same for a study whose drives alone are modelled, as those of a guest: with any filesystem.
    ///
    /// # Errors
    /// As of [`new`](Self::new), but for filesystems and threads.
    pub fn of_drives(study: &'a Study, costs: HostCosts) -> Result<Self, StudyError> {
        let mut modelled = Self::unchecked(study, costs)?;
        modelled.capacities = Some(modelled.check()?);
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
            let drive = load_beside(&study.origin.directory, model).map_err(|error| {
                let reason = error.to_string();
                wrong("model", reason).with_source(error)
            })?;
            drives.push(study.drive_with_parameters(index, drive)?);
        }
        let costs = host_costs(study.host.as_ref()).unwrap_or(costs);
        let of_layout = |layout: &NamedLayout| host_costs(layout.host.as_ref()).unwrap_or(costs);
        let of_layouts = study.layouts.iter().map(of_layout).collect();
        let (capacities, stop, trace, starts) = (None, None, None, None);
        Ok(Self { study, drives, costs, of_layouts, capacities, stop, trace, starts })
    }

    /// Every layout is possible and every workload fits; gives the capacity of each layout.
    fn check(&self) -> Result<Vec<Sectors>, StudyError> {
        let study = self.study;
        let (mut capacities, mut blocks) = (Vec::new(), Vec::new());
        for index in 0..study.layouts.len() {
            let config = self.config(index)?;
            let (capacity, block) = Volume::extent(&config).map_err(|error| {
                let kind = StudyErrorKind::ImpossibleLayout;
                study.origin.error(kind, ("layouts", index, error.key), error.reason)
            })?;
            self.check_drives(index, &config)?;
            self.check_spares(index, &config)?;
            capacities.push(capacity);
            blocks.push(block);
        }
        let memory = |layout| Some(self.host_spec(layout).memory);
        study.check_capacity(&capacities, &blocks, memory)?;
        let ahead = study.workloads.iter().position(|workload| workload.read_ahead.is_some());
        if let (None, Some(index)) = (&study.filesystem, ahead) {
            let place = ("workloads", index, "read_ahead");
            let reason = "without a filesystem nothing reads ahead; add filesystem = \"native\"";
            return Err(study.origin.error(StudyErrorKind::WrongValue, place, reason));
        }
        Ok(capacities)
    }

    /// The host of a layout. Behind a controller the kernel sees one disk, and reads ahead as on one.
    fn host_spec(&self, layout: usize) -> HostSpec {
        let mut spec = self.study.host_of(layout).map_or_else(HostSpec::default, |host| host.spec);
        let named = &self.study.layouts[layout];
        let is_md = named.layout.drives() > 1 && named.hardware.controller.is_none();
        spec.flushes_beside_writes = is_md && spec.kernel.flushes_beside_writes();
        if self.study.layouts[layout].hardware.controller.is_some() {
            spec.read_ahead.get_or_insert(READ_AHEAD);
        } else if self.has_short_commands(layout) {
            spec.longest_request = spec.longest_request.min(SHORT_COMMAND);
            spec.longest_command = spec.longest_command.min(SHORT_COMMAND);
        }
        spec
    }

    /// The same with other drives and costs of the CPU.
    #[must_use]
    pub fn with(
        mut self,
        drive: impl Fn(DriveSpec) -> DriveSpec,
        costs: impl Fn(HostCosts) -> HostCosts,
    ) -> Self {
        self.drives = self.drives.into_iter().map(drive).collect();
        self.capacities = None;
        self.costs = costs(self.costs);
        self.of_layouts.iter_mut().for_each(|of_layout| *of_layout = costs(*of_layout));
        self
    }

    /// Ends the cell under way as soon as `stop` is set, with [`StudyErrorKind::Stopped`].
    #[must_use]
    pub fn stopping_on(self, stop: &'static AtomicBool) -> Self {
        Self { stop: Some(stop), ..self }
    }

    /// Writes the requests that reach drives in each run of a cell to `trace`, in the form of the kernel
    /// lab's. A run that fails or is stopped writes none.
    #[must_use]
    pub fn traced_to(self, trace: &'a Trace) -> Self {
        Self { trace: Some(trace), ..self }
    }

    /// Lets processes begin as `starts` says, by the seed of the run; else all begin at the same moment.
    #[must_use]
    pub fn starting(self, starts: Starts) -> Self {
        Self { starts: Some(starts), ..self }
    }

    /// The study.
    pub fn study(&self) -> &'a Study {
        self.study
    }

    /// The drive of each group, in the order of the study.
    pub fn drives(&self) -> &[DriveSpec] {
        &self.drives
    }

    /// What the CPU of the study's host costs.
    pub fn costs(&self) -> HostCosts {
        self.costs
    }

    /// The capacity of each layout.
    pub fn capacities(&self) -> Vec<Sectors> {
        if let Some(capacities) = &self.capacities {
            return capacities.clone();
        }
        let capacity = |index| Some(Volume::extent(&self.config(index).ok()?).ok()?.0);
        (0..self.study.layouts.len()).filter_map(capacity).collect()
    }

    /// A layout over as much of its drives as the study says.
    fn config(&self, layout: usize) -> Result<Config, StudyError> {
        let named = &self.study.layouts[layout];
        let capacity = |member: usize| self.drives[named.group(member)].capacity;
        let member = |member: usize| {
            let sectors = capacity(member);
            let sectors =
                self.study.member_size_of(layout).map_or(sectors, |most| most.min(sectors));
            MemberConfig { sectors, logical_block: 1 }
        };
        let mut config = Config {
            members: (0..usize::from(named.layout.drives())).map(member).collect(),
            layout: named.layout.clone(),
            read_policy: named.read_policy,
            traits: self.traits(layout),
            limits: Limits::default(),
            settings: named.settings,
        };
        config.settings.packed_bitmap = self.front(layout) > Sectors::ZERO;
        let host = self.host_spec(layout);
        // Of arrays on arrays that of those which have the redundancy.
        let mut floors = named.layout.floors().map(|floor| floor.level);
        let level = floors.find(|level| level.is_redundant()).unwrap_or(config.layout.level);
        let is_of_md = self.study.is_of_md(layout);
        if host.kernel.is_of_today() && level.is_redundant() {
            config.settings.resync_tick = Some(Nanos(1_000_000_000 / u64::from(host.hz.max(1))));
            // RESYNC_DEPTH of 32 ranges of 64 KiB (raid1.c) and 512 (raid10.c), or stripes of 4 KiB (raid5.c), 256 at
            // first; here a range is 128 KiB (of raid10 64), or a chunk. And one for healing.
            config.limits.windows = match level {
                Level::Raid10 => 513,
                Level::Raid1 => 17,
                _ if is_of_md => MOST_RANGES + 1,
                _ => 9,
            };
            let at_once = MOST_RANGES * u32::from(config.layout.drives());
            config.limits.ios = config.limits.ios.max(at_once);
        }
        let behind = World::metadata_sectors(&config);
        let behind = behind.map_err(|error| self.not_set_up(layout, &error))?;
        if let Some(striped) = config.layout.floors().find(|floor| floor.level.has_stripes())
            && is_of_md
        {
            let places = places_of(md_stripes(named), striped, config.settings.plan_rows);
            config.settings.cached_stripes = places;
        }
        // Log and metadata lie behind the data; md's in front.
        let taken = behind + self.front(layout);
        for (index, member) in config.members.iter_mut().enumerate() {
            let room = Sectors(capacity(index).0.saturating_sub(taken.0));
            member.sectors = member.sectors.min(room);
        }
        Ok(config)
    }

    /// What md of today knows of the members: flash does not turn (`bdev_nonrot`, drivers/md/raid1.c and
    /// raid10.c). Older kernels of the presets do not ask.
    fn traits(&self, layout: usize) -> Vec<MemberTraits> {
        if !self.host_spec(layout).kernel.is_of_today() {
            return Vec::new();
        }
        let named = &self.study.layouts[layout];
        let of = |member: usize| MemberTraits {
            rotational: !matches!(self.drives[named.group(member)].kind, DriveKind::Ssd(_)),
            ..MemberTraits::default()
        };
        (0..usize::from(named.layout.drives())).map(of).collect()
    }

    /// The array of a layout with its drives, at time zero, healthy.
    ///
    /// # Errors
    /// When the world cannot be set up.
    pub fn world(&self, layout: usize, seed: u64) -> Result<World, StudyError> {
        self.world_in(layout, State::Healthy, seed)
    }

    /// The array of a layout as the cells of a state begin with it: its drives cold and idle, members failed as the
    /// state says, hot spares standing by; a rebuild begins at its [`start`](World::start). With a hot spare an array
    /// that loses a member is rebuilt, even where the state asks for a degraded one: there are no such cells.
    ///
    /// # Errors
    /// When the world cannot be set up.
    pub fn world_in(&self, layout: usize, state: State, seed: u64) -> Result<World, StudyError> {
        self.world_with(layout, state, seed, self.study.layouts[layout].spares)
    }

    /// The same with no hot spare standing by: an array that loses a member stays degraded.
    ///
    /// # Errors
    /// As of [`world_in`](Self::world_in).
    pub fn world_without_spares(
        &self,
        layout: usize,
        state: State,
        seed: u64,
    ) -> Result<World, StudyError> {
        self.world_with(layout, state, seed, 0)
    }

    fn world_with(
        &self,
        layout: usize,
        state: State,
        seed: u64,
        spares: u16,
    ) -> Result<World, StudyError> {
        let config = self.config(layout)?;
        let members = config.members.len();
        let group = self.study.layouts[layout].drives;
        let has_journal = matches!(config.settings.consistency, Consistency::Journal { .. });
        let count = members + usize::from(has_journal);
        let drives = (0..count).map(|place| self.drive(layout, place, seed)).collect();
        let spare = |number: usize| self.drive(layout, members + 1 + number, seed);
        let set_up = || {
            let mut world = World::new(&config, drives, self.of_layouts[layout])?;
            let front = self.front(layout);
            if front > Sectors::ZERO {
                world = world.with_data_from(front)?;
            }
            let hardware = &self.study.layouts[layout].hardware;
            let scheduler = self.scheduler(layout);
            if !hardware.routes.is_empty() {
                world = world.with_paths(&self.paths_of(layout, count))?;
            }
            if let Some(controller) = &hardware.controller {
                let controller = match scheduler {
                    Some(scheduler) => controller.clone().with_scheduler(scheduler),
                    None => controller.clone(),
                };
                world = world.with_controller(&controller)?;
            } else if let Some(scheduler) = scheduler {
                let depth = self.drives[group].kind.queue_depth();
                let queue = self.queue(layout, scheduler, depth);
                world = world.with_queues(&queue);
            }
            if self.study.is_of_md(layout) {
                world.gather_stripes(md_stripes(&self.study.layouts[layout]));
            }
            if let Some(stop) = self.stop {
                world.stop_on(stop);
            }
            for number in 0..usize::from(spares) {
                world.add_spare(spare(number))?;
            }
            rebuild::enter(&mut world, state, || spare(0));
            Ok(world)
        };
        set_up().map_err(|error: raidlab_sim::SimError| self.not_set_up(layout, &error))
    }

    /// How a host cuts what is longer than its requests. raid1 chooses a member for each part of a long read by what
    /// has ended meanwhile, so that readers change members as md's do; arrays with stripes choose by chunk anyway.
    fn longest(&self, layout: usize) -> Longest {
        if !self.study.is_md(layout) {
            return Longest::ANY;
        }
        let longest = self.host_spec(layout).longest_request;
        let is_mirror = self.study.layouts[layout].layout.level == Level::Raid1;
        if !is_mirror {
            return Longest { write: longest, ..Longest::ANY };
        }
        // A process's memory lies in pages as they come (docs/kernel-lab.md), each a piece.
        let drive = &self.drives[self.study.layouts[layout].drives];
        let read_at_once = u64::from(drive.most_pieces()) * PAGE;
        Longest { read: longest, read_at_once, write: longest }
    }

    /// Sectors before the data of members, where mdadm puts them; none without md. Records of raidlab's own arrays are
    /// md's, too, wherever md has a form for the array, and lie where those do.
    fn front(&self, layout: usize) -> Sectors {
        let named = &self.study.layouts[layout];
        let has_records = named.settings.consistency.has_superblocks()
            && named.hardware.controller.is_none()
            && named.layout.inner.is_none()
            && named.layout.level != Level::Raid3;
        if !(self.study.is_md(layout) || has_records) || named.layout.drives() == 1 {
            return Sectors::ZERO;
        }
        usual_data_offset(self.drives[named.drives].capacity, named.layout.chunk)
    }

    /// The scheduler of the request queues of a layout's drives: that of their group, or of the host's
    /// kernel.
    fn scheduler(&self, layout: usize) -> Option<Scheduler> {
        let group = self.study.layouts[layout].drives;
        let of_kernel = || self.study.host_of(layout).map(|host| host.spec.kernel.scheduler());
        self.study.drives[group].scheduler.or_else(of_kernel)
    }

    /// A request queue as the kernel of a layout's host has it.
    fn queue(&self, layout: usize, scheduler: Scheduler, depth: u32) -> QueueSpec {
        let spec = scheduler.spec(depth);
        if self.study.host_of(layout).is_none() {
            return spec;
        }
        let longest = Sectors(self.host_spec(layout).longest_command / SECTOR_BYTES);
        let is_of_today = self.host_spec(layout).kernel.is_of_today();
        let drive = &self.drives[self.study.layouts[layout].drives];
        let longest = spec.longest.min(longest);
        // md's memory for ranges lies in pages as they come, each a piece; that of raid10 came in order in traces.
        let pieces = match self.study.layouts[layout].layout.level {
            Level::Raid10 => longest,
            _ => Sectors(u64::from(drive.most_pieces()) * PAGE / SECTOR_BYTES),
        };
        QueueSpec {
            longest,
            plugged: is_of_today.then_some(pieces),
            merges_flushes: is_of_today,
            has_fua: drive.has_fua(),
            ..spec
        }
    }

    /// Whether the members of a layout are driven by commands of 28-bit addresses, which move 256
    /// sectors at most (ATA-5): PATA drives below 137 GB.
    fn has_short_commands(&self, layout: usize) -> bool {
        let named = &self.study.layouts[layout];
        let is_channel = |link: &usize| {
            self.study.paths.get(*link).is_some_and(|one| one.kind == LinkKind::PataChannel)
        };
        let members = named.hardware.routes.iter().enumerate();
        members
            .filter(|(_, route)| route.iter().any(is_channel))
            .any(|(member, _)| self.drives[named.group(member)].capacity.0 <= 1 << 28)
    }

    /// The paths of so many drives of a layout. What stands behind the members has none; behind a controller,
    /// what all members have in common lies between the host and it.
    pub fn paths_of(&self, layout: usize, drives: usize) -> PathSpec {
        let hardware = &self.study.layouts[layout].hardware;
        let mut routes = hardware.routes.clone();
        routes.resize(drives, Vec::new());
        let mut host = Vec::new();
        if hardware.controller.is_some() {
            // A channel or link leads to drives, behind the controller, though all of them share it.
            let common = |link: &usize| {
                let kind = self.study.paths[*link].kind;
                matches!(kind, LinkKind::Bus | LinkKind::Memory)
                    && hardware.routes.iter().all(|one| one.contains(link))
            };
            host = hardware.routes.iter().flatten().filter(|one| common(one)).copied().collect();
            host.sort_unstable();
            host.dedup();
            routes.iter_mut().for_each(|route| route.retain(|link| !host.contains(link)));
        }
        let mut links = self.study.paths.clone();
        if let Some(switch) = hardware.controller.as_ref().and_then(|one| one.switch) {
            let channels = links.iter_mut().filter(|one| one.kind == LinkKind::PataChannel);
            channels.for_each(|channel| channel.switch = switch);
        }
        PathSpec { links, routes, host }
    }

    /// The drives of a layout's members.
    fn members(&self, layout: usize) -> impl Iterator<Item = &DriveSpec> + Clone {
        let named = &self.study.layouts[layout];
        let members = 0..usize::from(named.layout.drives());
        members.map(|place| &self.drives[named.group(place)])
    }

    /// A drive of a layout's group: that of a member, the journal after them, or a spare.
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
        self.run_paced(world, key, seed, None)
    }

    /// The same with a rebuild that is paced by what requests take.
    ///
    /// # Errors
    /// As [`run_on`](Self::run_on); [`StudyErrorKind::NotSupported`] with a pacer and a filesystem.
    pub fn run_paced(
        &self,
        world: &mut World,
        key: &CellKey,
        seed: u64,
        pacer: Option<Pacer>,
    ) -> Result<Sample, StudyError> {
        if self.trace.is_some() {
            world.start_trace();
        }
        let sample = self.sample(world, key, seed, pacer)?;
        // What a stop broke off is nobody's run.
        if let Some(trace) = self.trace.filter(|_| !self.is_stopped()) {
            let title = cell_title(self.study, key);
            trace.add_kept(&title, seed, world).map_err(|error| {
                let place = ("layouts", key.layout, "level");
                let reason = format!("{title}: the trace: {error}");
                self.study.origin.error(StudyErrorKind::Unreadable, place, reason)
            })?;
        }
        Ok(sample)
    }

    fn is_stopped(&self) -> bool {
        self.stop.is_some_and(|stop| stop.load(Ordering::Relaxed))
    }

    fn sample(
        &self,
        world: &mut World,
        key: &CellKey,
        seed: u64,
        pacer: Option<Pacer>,
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
        let ahead = workload.read_ahead;
        let workload = &*workload.workload;
        let record = match (&self.study.filesystem, &pacer) {
            (Some(_), Some(_)) => {
                let reason =
                    "pacing by feedback sees requests of the array: leave the filesystem out";
                let kind = StudyErrorKind::NotSupported;
                return Err(self.study.origin.error_of_key(kind, "filesystem", reason));
            }
            (Some(_), None) => self.record_on_host_of(key.layout, ahead, world, workload, setting),
            (None, _) => {
                let host = (self.host_spec(key.layout).costs, self.longest(key.layout));
                record_raw(world, host, (workload, self.starts), setting, pacer)
            }
        };
        let mut record = record.map_err(failed)?;
        if let Some((resource, _)) = &mut record.bottleneck {
            self.name_the_drive(key.layout, resource);
        }
        let rebuild = rebuild::progress(world);
        let lost = lost_member(world.array().geometry());
        let whole = world.array().geometry().used(lost).bytes() as f64;
        let rebuilt = rebuild.as_ref().map_or(0, |rebuild| (rebuild.done * whole) as u64);
        record.warnings.extend(self.cache_warnings(key.layout, (key.state, rebuilt), &record));
        let sample = Sample::of(workload, &record);
        let sample = sample.ok_or_else(|| failed("no time passed".into()))?;
        let rebuild = rebuild.map(|rebuild| self.over_all_zones(key.layout, rebuild));
        Ok(Sample { rebuild, ..sample })
    }

    /// A PATA channel is held for as long as a drive works on a command: with one member on it, it is
    /// that drive that is busy. Only where members share a channel, the channel is a resource of its own.
    fn name_the_drive(&self, layout: usize, resource: &mut String) {
        let paths = &self.study.paths;
        let channel =
            paths.iter().position(|one| one.kind == LinkKind::PataChannel && one.name == *resource);
        let Some(channel) = channel else { return };
        let routes = self.study.layouts[layout].hardware.routes.iter();
        let mut on = routes.enumerate().filter(|(_, route)| route.contains(&channel));
        if let (Some((member, _)), None) = (on.next(), on.next()) {
            *resource = format!("member {member}");
        }
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
        let host = self.study.host.as_ref().map_or_else(HostSpec::default, |host| host.spec);
        record_raw(world, (host.costs, Longest::ANY), (workload, self.starts), setting, None)
    }

    /// Runs a workload on a filesystem of the study's modelled host on the array.
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
        record_on(world, &host, (workload, self.starts), setting)
    }

    /// The same on the host of a layout, whose world it is; `read_ahead` in bytes takes the place of the
    /// host's.
    ///
    /// # Errors
    /// As [`record_on_host`](Self::record_on_host).
    pub fn record_on_host_of(
        &self,
        layout: usize,
        read_ahead: Option<u64>,
        world: &mut World,
        workload: &dyn Workload,
        setting: Setting,
    ) -> Result<RunRecord, String> {
        let mut host = self.host_spec(layout);
        host.read_ahead = read_ahead.or(host.read_ahead);
        record_on(world, &host, (workload, self.starts), setting)
    }

    /// A rebuild that was broken off at the outer edge of whole drives: the zones further in are slower.
    #[must_use]
    pub fn over_all_zones(&self, layout: usize, rebuild: Rebuild) -> Rebuild {
        let drives = self.members(layout);
        // As much as the smallest member has is rebuilt, and the slowest sets the pace.
        let bytes = drives.clone().map(|drive| drive.capacity.bytes()).min().unwrap_or_default();
        match rebuild.seconds() {
            Some((seconds, true)) if self.study.member_size_of(layout).is_none() => {
                let rate = bytes as f64 / seconds;
                let longest = drives.map(|drive| pass(drive, bytes, rate)).fold(seconds, f64::max);
                rebuild.slower(longest / seconds)
            }
            _ => rebuild,
        }
    }

    /// A rebuild while nothing else goes on.
    fn rebuild_alone(&self, world: &mut World, key: &CellKey) -> Result<Sample, StudyError> {
        let most = match self.study.member_size_of(key.layout) {
            Some(_) => Sectors(u64::MAX),
            None => Sectors(rebuild::SAMPLE / SECTOR_BYTES),
        };
        let wrong = |what: &str| {
            let reason = format!("{}: {what}", cell_title(self.study, key));
            let place = ("layouts", key.layout, "level");
            self.study.origin.error(StudyErrorKind::WrongValue, place, reason)
        };
        world.start().map_err(|error| wrong(&error.to_string()))?;
        let rebuild = rebuild::run_alone(world, most);
        let rebuild = rebuild.map(|rebuild| self.over_all_zones(key.layout, rebuild));
        let seconds = rebuild.and_then(|rebuild| Some((rebuild, rebuild.seconds()?.0)));
        let (rebuild, value) = seconds.ok_or_else(|| wrong("nothing was rebuilt"))?;
        let busy = busy_of(world, rebuild.elapsed);
        let sample = Sample::of_rebuild(value, rebuild);
        Ok(Sample {
            system_cpu_s: Some(world.cpu_busy().as_secs()),
            bottleneck: Some(busiest(&busy)),
            detail: Detail { busy, ..sample.detail },
            ..sample
        })
    }
}

/// What the CPU of a host costs; `None` where no processor is named.
fn host_costs(host: Option<&Host>) -> Option<HostCosts> {
    let processor = host?.processor?;
    Some(HostCosts { request: processor.request, parity_rate: processor.parity_rate })
}

/// Runs a workload on an array itself, by a host whose CPU costs this and whose requests are so long at most.
fn record_raw(
    world: &mut World,
    (costs, longest): (CallCosts, Longest),
    (workload, starts): (&dyn Workload, Option<Starts>),
    setting: Setting,
    pacer: Option<Pacer>,
) -> Result<RunRecord, String> {
    let space = world.array().capacity().bytes();
    let setting = Setting { space: Some(space), checked: false, ..setting };
    let plan = workload.plan(&setting);
    let plan = match (plan, starts) {
        (Ok(plan), Some(starts)) => Ok(starts(plan, setting.seed)),
        (plan, _) => plan,
    };
    let plan = plan.and_then(|plan| RawPlan::new(plan, space));
    let before = world.member_totals();
    let plan = plan.map_err(|error| error.to_string())?;
    let mut record = raw::run_paced(world, costs, plan, longest, pacer)?;
    record.members = Some(world.member_totals().since(before));
    record.system_cpu = Some(world.cpu_busy());
    record.busy = busy_of(world, record.last_done());
    record.bottleneck = Some(busiest(&record.busy));
    record.memory = "no filesystem and no page cache; drives start cold and idle".into();
    Ok(record)
}

/// Runs a workload on a host.
fn record_on(
    world: &mut World,
    host: &HostSpec,
    (workload, starts): (&dyn Workload, Option<Starts>),
    setting: Setting,
) -> Result<RunRecord, String> {
    let setting = Setting { host_memory: Some(host.memory), checked: false, ..setting };
    let plan = workload.plan(&setting).map_err(|error| error.to_string())?;
    let plan = match starts {
        Some(starts) => starts(plan, setting.seed),
        None => plan,
    };
    host::run_plan(world, host, plan).map_err(|error| error.reason)
}

impl Runner for Modelled<'_> {
    type Error = StudyError;

    fn run(&mut self, key: &CellKey, _round: u32, seed: u64) -> Result<Sample, StudyError> {
        let mut world = self.world_in(key.layout, key.state, seed)?;
        let sample = self.run_on(&mut world, key, seed);
        if self.is_stopped() {
            // What it says of how far it came is nobody's measurement.
            let place = ("workloads", key.workload, "kind");
            let reason = format!("{}: stopped", cell_title(self.study, key));
            return Err(self.study.origin.error(StudyErrorKind::Stopped, place, reason));
        }
        sample
    }

    fn is_stop(error: &StudyError) -> bool {
        error.kind == StudyErrorKind::Stopped
    }
}

#[cfg(test)]
mod tests;
