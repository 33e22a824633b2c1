//! Runs cells of a study, each in a guest of its own.

use std::io::Write;
use std::os::fd::BorrowedFd;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use raidlab_core::{Config, Limits, MemberConfig, SECTOR_BYTES, Size, Volume};
use raidlab_kernel_lab::{
    Class, End, Failure, Guest, Record, Root, Scheduler, Service, cache, guest, paths,
};
use raidlab_models::host::DirtyLimit;
use raidlab_models::{Drive, HostSpec, PathSpec};
use raidlab_predict::{Modelled, Trace};
use raidlab_random::{Random, mix};
use raidlab_sim::HostCosts;
use raidlab_study::{CellKey, NamedLayout, Runner, Sample, State, Study, cell_title, lost_member};
use raidlab_workload::{RunRecord, Setting};

use crate::array::{self, Setup};
use crate::error::KernelError;
use crate::job::{Job, Place, Report, Start};
use crate::usage::{self, Usage};

/// What the contents of all drives of a guest may take in memory, in bytes.
const ROOM: u64 = 8 << 30;
/// For how long in real time a guest may run without a word.
const SILENCE: Duration = Duration::from_secs(300);
/// Bytes of each member after which an idle rebuild of whole drives is broken off and its time estimated.
const REBUILT: u64 = 1 << 30;
/// Filesystems whose tables are written when they are made, and how large an array they may be made on, in bytes.
const WITH_TABLES: [&str; 2] = ["ext2", "ext3"];
const MOST_WITH_TABLES: u64 = 1 << 40;
/// The exit status of a shell that does not find a program.
const NO_SUCH_PROGRAM: i32 = 127;
/// For which purpose seeds are drawn.
const FOR_WAIT: u64 = 4;
/// The period of the kernel's timers that a run may be in step with: write-back looks every 5 s.
const PERIOD: u64 = 5_000_000_000;
/// How much later than the run a process begins at most.
pub(crate) const SPREAD: u64 = 10_000_000;

/// What system calls and copies cost, by the costs of the study's host.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cost(f64);

impl Cost {
    /// The costs of the study's host as they are.
    pub const PLAIN: Self = Self(1.0);
    /// The other settings that a cell is compared under to see whether it depends on the processor: free, and four
    /// times as much.
    pub const OTHERS: [Self; 2] = [Self(0.0), Self(4.0)];

    /// The argument of the kernel.
    fn argument(self, host: &HostSpec) -> String {
        let call = host.costs.call.0 as f64 * self.0;
        let byte = 1e12 / host.costs.copy_rate.max(1) as f64 * self.0;
        format!("um_cost={:.0},{:.0}", call, byte)
    }
}

/// The kernel and the programs of guests: where they are at one moment, whatever is built anew afterwards.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Binaries {
    kernel: PathBuf,
    programs: PathBuf,
}

impl Binaries {
    /// Those of a version that `cargo xtask kernel` has built, or a kernel at a path.
    ///
    /// # Errors
    /// [`KernelError::Input`] when kernel or programs were not built, with the command that does.
    pub fn find(version_or_path: &str) -> Result<Self, KernelError> {
        let real = |path: PathBuf| {
            let found = path.canonicalize();
            found.map_err(|error| KernelError::input(format!("{}: {error}", path.display())))
        };
        let programs = cache::programs().ok_or_else(|| {
            KernelError::input("no programs for guests are there: `cargo xtask kernel programs`")
        })?;
        let kernel = cache::kernel(version_or_path).map_err(KernelError::input)?;
        Ok(Self { kernel: real(kernel)?, programs: real(programs)? })
    }

    /// The name of the kernel and that of the archive of programs, with version and hashes.
    pub fn names(&self) -> [String; 2] {
        [&self.kernel, &self.programs].map(|path| {
            path.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned())
        })
    }
}

/// How cells are run.
#[derive(Clone, Debug)]
pub struct Options {
    /// The kernel and its programs.
    pub binaries: Binaries,
    /// What the processor costs.
    pub cost: Cost,
    /// Whether processes begin at different times, and not always in step with the kernel's timers.
    pub varied_starts: bool,
}

/// Runs the cells of a study on a kernel.
pub struct KernelLab<'a> {
    modelled: Modelled<'a>,
    options: Options,
    processors: Vec<usize>,
    next: AtomicUsize,
    stop: BorrowedFd<'a>,
    trace: Option<&'a Trace>,
}

/// The versions of kernels that can be had.
pub fn versions() -> [&'static str; 2] {
    ["6.1", "6.12"]
}

impl<'a> KernelLab<'a> {
    /// For a study that was [prepared](crate::prepare). Guests end when `stop` becomes readable. `trace` gets a line
    /// for each request, under a line for each run.
    ///
    /// # Errors
    /// [`KernelError::Input`] when the study's drives or workloads cannot be.
    pub fn new(
        study: &'a Study,
        options: Options,
        stop: BorrowedFd<'a>,
        trace: Option<&'a Trace>,
    ) -> Result<Self, KernelError> {
        let modelled =
            Modelled::of_drives(study, HostCosts::default()).map_err(KernelError::input)?;
        for scheduler in study.drives.iter().filter_map(|drives| drives.scheduler) {
            let wrong = || KernelError::input(format!("drives.scheduler: {}", no_such(scheduler)));
            scheduler_of(scheduler).ok_or_else(wrong)?;
        }
        for (layout, capacity) in modelled.capacities().into_iter().enumerate() {
            let name = study.filesystem_of(layout).unwrap_or_default();
            if WITH_TABLES.contains(&name) && capacity.bytes() > MOST_WITH_TABLES {
                return Err(KernelError::input(format!(
                    "{name} on arrays of more than {}: mkfs writes all of its inode tables, which a guest would move \
                     byte by byte; use a smaller member_size or drive, or ext4",
                    Size(MOST_WITH_TABLES)
                )));
            }
        }
        let (processors, next) = (processors(), AtomicUsize::new(0));
        let lab = Self { modelled, options, processors, next, stop, trace };
        for (at, layout) in study.layouts.iter().enumerate() {
            let wrong =
                |what: String| KernelError::input(format!("layout {}: {what}", layout.name));
            for state in study.states.iter().copied().filter(|state| layout.can_be(*state)) {
                let paths = lab.paths(at, state).map_err(wrong)?;
                let drives = array::drives(layout, state);
                paths::check(&paths, drives).map_err(|error| wrong(error.to_string()))?;
            }
        }
        Ok(lab)
    }

    /// One that runs cells on a processor of its own, for a thread.
    pub fn runner(&self) -> KernelRunner<'_> {
        self.runner_on(self.next.fetch_add(1, Ordering::Relaxed))
    }

    /// One on the processor of this number among those that this process may use, counted round.
    pub fn runner_on(&self, number: usize) -> KernelRunner<'_> {
        let processor = self.processors.get(number % self.processors.len().max(1)).copied();
        KernelRunner { lab: self, processor, cost: self.options.cost, trace: self.trace }
    }

    /// The study with its drives loaded.
    pub fn modelled(&self) -> &Modelled<'a> {
        &self.modelled
    }

    /// The name of the kernel and that of the archive of programs, with version and hashes.
    pub fn names(&self) -> [String; 2] {
        self.options.binaries.names()
    }

    fn study(&self) -> &'a Study {
        self.modelled.study()
    }

    /// What lies between the kernel and the drives of a layout. What takes the place of a lost member is where that
    /// was, which is gone unless it fails with a hot spare beside it.
    fn paths(&self, layout: usize, state: State) -> Result<PathSpec, String> {
        let named = &self.study().layouts[layout];
        if named.hardware.routes.is_empty() {
            return Ok(PathSpec::default());
        }
        let drives = array::drives(named, state);
        let mut paths = self.modelled.paths_of(layout, drives);
        let lost = lost(named, state)?;
        if state == State::Healthy || lost >= paths.routes.len() {
            return Ok(paths);
        }
        let route = match named.spares {
            0 => std::mem::take(&mut paths.routes[lost]),
            _ => paths.routes[lost].clone(),
        };
        paths.routes[array::first_fresh(named)..].fill(route);
        Ok(paths)
    }
}

/// The member that states besides healthy do without.
fn lost(layout: &NamedLayout, state: State) -> Result<usize, String> {
    if state == State::Healthy {
        return Ok(0);
    }
    let sectors = raidlab_core::Sectors((64 << 20) / SECTOR_BYTES);
    let member = MemberConfig { sectors, logical_block: 1 };
    let config = Config {
        members: vec![member; usize::from(layout.layout.drives())],
        layout: layout.layout.clone(),
        read_policy: layout.read_policy,
        traits: Vec::new(),
        limits: Limits::default(),
        settings: raidlab_core::Settings::default(),
    };
    let volume = Volume::new(&config).map_err(|error| error.to_string())?;
    Ok(usize::from(lost_member(volume.geometry()).0))
}

fn no_such(scheduler: raidlab_models::Scheduler) -> String {
    let known = Scheduler::ALL.map(|(_, name)| name).join(", ");
    format!("kernels of today have no {}; known: {known}", scheduler.name())
}

fn scheduler_of(scheduler: raidlab_models::Scheduler) -> Option<Scheduler> {
    let name = match scheduler {
        raidlab_models::Scheduler::Noop => "none",
        raidlab_models::Scheduler::Deadline => "mq-deadline",
        other => other.name(),
    };
    Scheduler::ALL.into_iter().find(|(_, known)| *known == name).map(|(one, _)| one)
}

/// The processors that this process may use.
fn processors() -> Vec<usize> {
    let Ok(set) = rustix::thread::sched_getaffinity(None) else { return Vec::new() };
    (0..rustix::thread::CpuSet::MAX_CPU).filter(|processor| set.is_set(*processor)).collect()
}

/// Runs cells one after the other.
#[derive(Clone, Copy)]
pub struct KernelRunner<'a> {
    lab: &'a KernelLab<'a>,
    processor: Option<usize>,
    cost: Cost,
    trace: Option<&'a Trace>,
}

/// What a run of a cell gave.
struct Run {
    report: Report,
    usage: Usage,
}

impl<'a> KernelRunner<'a> {
    /// The same with other costs of the processor, whose requests are in no trace.
    #[must_use]
    pub fn with_cost(self, cost: Cost) -> Self {
        Self { cost, trace: None, ..self }
    }

    /// Runs a cell of a workload once.
    ///
    /// # Errors
    /// When the guest cannot be started, hangs or stops early, or the workload fails in it.
    pub fn record(&self, key: &CellKey, seed: u64) -> Result<RunRecord, KernelError> {
        Ok(self.record_and_run(key, seed)?.0)
    }

    fn record_and_run(&self, key: &CellKey, seed: u64) -> Result<(RunRecord, Run), KernelError> {
        let study = self.lab.study();
        let failed =
            |what: String| KernelError::failed(format!("{}: {what}", cell_title(study, key)));
        let spec = key.workload(study).ok_or_else(|| failed("no workload".to_owned()))?;
        let run = self.run_guest(key, seed)?;
        let host_memory = Some(self.host(key).memory);
        let space = run.report.space;
        let setting =
            Setting { host_memory, space, checked: false, ..Setting::new(key.processes, seed) };
        let plan = spec.workload.plan(&setting).map_err(|error| failed(error.to_string()))?;
        let text = run.report.record.as_deref().ok_or_else(|| failed("no record".to_owned()))?;
        let mut record = RunRecord::from_text(text, &plan.phases)
            .map_err(|error| failed(format!("the guest's record: {error}")))?;
        let members = usize::from(study.layouts[key.layout].layout.drives());
        let shares = run.usage.shares(run.report.span, members);
        let named = |(member, share)| (format!("member {member}"), share);
        record.bottleneck = usage::busiest(&shares).map(named);
        record.busy = shares.into_iter().enumerate().map(named).collect();
        Ok((record, run))
    }

    fn host(&self, key: &CellKey) -> HostSpec {
        self.lab.study().host_of(key.layout).map_or_else(HostSpec::default, |host| host.spec)
    }

    fn sample(&self, key: &CellKey, seed: u64) -> Result<Sample, KernelError> {
        let study = self.lab.study();
        let no_time = || KernelError::failed(format!("{}: took no time", cell_title(study, key)));
        let Some(spec) = key.workload(study) else {
            let rebuild = self.run_guest(key, seed)?.report.rebuild.ok_or_else(no_time)?;
            let rebuild = self.lab.modelled.over_all_zones(key.layout, rebuild);
            let (seconds, _) = rebuild.seconds().ok_or_else(no_time)?;
            return Ok(Sample::of_rebuild(seconds, rebuild));
        };
        let (record, run) = self.record_and_run(key, seed)?;
        let sample = Sample::of(&*spec.workload, &record).ok_or_else(no_time)?;
        let rebuild = run.report.rebuild;
        let rebuild = rebuild.map(|one| self.lab.modelled.over_all_zones(key.layout, one));
        Ok(Sample { rebuild, ..sample })
    }

    fn run_guest(&self, key: &CellKey, seed: u64) -> Result<Run, KernelError> {
        let title = cell_title(self.lab.study(), key);
        let failed = |what: String| KernelError::failed(format!("{title}: {what}"));
        let script = self.script(key, seed).map_err(failed)?;
        let paths = self.lab.paths(key.layout, key.state).map_err(failed)?;
        let (mut usage, mut lines) = (Usage::default(), Vec::new());
        let traced = self.trace.is_some();
        let mut keep = |record: &Record| {
            usage.add(record);
            if traced {
                let _ = writeln!(lines, "{record}");
            }
        };
        let outcome =
            guest::run(self.guest(key, seed, paths), &script, self.lab.stop, &mut keep, None);
        let outcome = outcome.map_err(|error| match error.failure {
            Failure::Interrupted => KernelError::Interrupted,
            _ => failed(error.to_string()),
        })?;
        if let Some(trace) = self.trace {
            let written = trace.add(&title, seed, &lines);
            written.map_err(|error| failed(format!("the trace: {error}")))?;
        }
        if outcome.status == NO_SUCH_PROGRAM {
            return Err(failed(
                "the archive of guests' programs is older than this raidlab: `cargo xtask kernel programs`"
                    .to_owned(),
            ));
        }
        if outcome.status != 0 {
            let said = outcome.stderr.trim().lines().rev().take(4).collect::<Vec<_>>();
            let said: Vec<&str> = said.into_iter().rev().collect();
            return Err(failed(format!("in the guest: {}", said.join("\n    "))));
        }
        let report = serde_json::from_str(outcome.stdout.trim())
            .map_err(|error| failed(format!("the guest's report: {error}")))?;
        Ok(Run { report, usage })
    }

    fn guest(&self, key: &CellKey, seed: u64, paths: PathSpec) -> Guest {
        let host = self.host(key);
        let dirty_bytes = match (host.dirty_background, host.dirty) {
            (DirtyLimit::Bytes(background), DirtyLimit::Bytes(limit)) => Some([background, limit]),
            _ => None,
        };
        Guest {
            kernel: self.lab.options.binaries.kernel.clone(),
            root: Root::Archive(self.lab.options.binaries.programs.clone()),
            memory_mib: host.memory >> 20,
            seed,
            page: true,
            processor: self.processor,
            queue_depth: 32,
            dirty_bytes,
            arguments: vec![self.cost.argument(&host)],
            files: Vec::new(),
            silence: SILENCE,
            drives: self.drives(key, seed),
            paths,
            free_setup: true,
            room: ROOM,
            end: End::Script,
        }
    }

    /// Members, then the journal's drive, then the spare.
    fn drives(&self, key: &CellKey, seed: u64) -> Vec<(Class, Service)> {
        let study = self.lab.study();
        let layout = &study.layouts[key.layout];
        let drive = |place: usize| {
            let group = layout.group(place);
            let spec = &self.lab.modelled.drives()[group];
            let plain = Class::of(spec);
            let size = study.member_size_of(key.layout).map_or(plain.bytes, |size| size.bytes());
            let scheduler = study.drives[group].scheduler.and_then(scheduler_of);
            let plain = match scheduler {
                Some(scheduler) => plain.with_scheduler(scheduler),
                None => plain,
            };
            let bytes = size.min(plain.bytes) / 4096 * 4096;
            let journal = array::journal_drive(layout, place, bytes).unwrap_or(bytes);
            let class = Class { bytes: journal.min(plain.bytes) / 4096 * 4096, ..plain };
            let drive = Drive::new(&spec.kind, mix(&[seed, place as u64]));
            (class, Service::Modelled(drive))
        };
        (0..self.drive_count(key)).map(drive).collect()
    }

    fn drive_count(&self, key: &CellKey) -> usize {
        array::drives(&self.lab.study().layouts[key.layout], key.state)
    }

    fn script(&self, key: &CellKey, seed: u64) -> Result<String, String> {
        let study = self.lab.study();
        let layout = &study.layouts[key.layout];
        let host = self.host(key);
        let spec = key.workload(study);
        // A rebuild alone is one of the array itself.
        let filesystem = study.filesystem_of(key.layout).filter(|_| spec.is_some());
        let setup = Setup {
            layout,
            state: key.state,
            lost: lost(layout, key.state)?,
            filesystem,
            read_ahead: spec.and_then(|spec| spec.read_ahead).or(host.read_ahead),
        };
        let drives = usize::from(layout.layout.drives());
        let place = match filesystem {
            Some(_) => Place::Directory(array::MOUNTED.into()),
            None => Place::Device(Path::new("/dev").join(array::target(layout))),
        };
        let is_estimated = spec.is_none() && study.member_size_of(key.layout).is_none();
        let rebuild = array::rebuild(&setup, is_estimated.then_some(REBUILT));
        let job = Job {
            workload: spec.and_then(|spec| spec.recipe.clone()),
            copies: key.processes,
            seed,
            memory: host.memory,
            place,
            members: (0..drives).map(guest::drive_name).collect(),
            rebuild,
            start: self.start(seed),
        };
        let job = serde_json::to_string(&job).map_err(|error| error.to_string())?;
        let script = array::script(&setup)?;
        Ok(format!("{script}cat >/tmp/job <<'JOB'\n{job}\nJOB\nguest-cell /tmp/job >&3\n"))
    }

    fn start(&self, seed: u64) -> Start {
        if !self.lab.options.varied_starts {
            return Start::default();
        }
        Start { wait: Random::new(mix(&[seed, FOR_WAIT])).below(PERIOD), spread: SPREAD }
    }
}

impl Runner for KernelRunner<'_> {
    type Error = KernelError;

    fn run(&mut self, key: &CellKey, _round: u32, seed: u64) -> Result<Sample, KernelError> {
        self.sample(key, seed)
    }

    fn is_stop(error: &KernelError) -> bool {
        *error == KernelError::Interrupted
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use std::io;
    use std::os::fd::AsFd;

    /// A study that guests can run, ready for them.
    fn prepared(text: &str) -> Study {
        let mut study =
            raidlab_study::parse(text, "test.toml").unwrap_or_else(|error| panic!("{error}"));
        crate::prepare(&mut study).unwrap_or_else(|error| panic!("{error}"));
        study
    }

    fn in_lab<T>(study: &Study, look: impl FnOnce(&KernelLab<'_>) -> T) -> T {
        let (stop, _kept) = io::pipe().expect("can be made");
        let options = Options {
            binaries: Binaries { kernel: PathBuf::new(), programs: PathBuf::new() },
            cost: Cost::PLAIN,
            varied_starts: false,
        };
        look(&KernelLab::new(study, options, stop.as_fd(), None).expect("a lab"))
    }

    /// The drive that is rebuilt shares the links of the one that it replaces, which is gone without a hot spare.
    #[test]
    fn a_fresh_drive_is_where_the_lost_one_was() {
        let study = prepared(
            r#"
title = "links"
states = ["healthy", "degraded", "rebuilding"]
member_size = "256MiB"
paths = [{ name = "bus", kind = "bus", rate = "50MB/s" }, { name = "own", kind = "sata-300" }]
drives = [{ name = "nas", model = "nas-8tb-7200", count = 4 }]
layouts = [
    { level = "raid1", members = 2, route = ["bus", "own"] },
    { level = "raid1", members = 2, route = ["bus", "own"], spares = 1, name = "spare" },
]
workloads = [{ kind = "dd-read", size = "16MiB" }]
"#,
        );
        in_lab(&study, |lab| {
            let routes = |layout, state| lab.paths(layout, state).expect("has paths").routes;
            let on = vec![0, 1];
            let (gone, both) = (Vec::new(), vec![on.clone(); 2]);
            assert_eq!(routes(0, State::Healthy), both);
            assert_eq!(routes(0, State::Degraded), [gone.clone(), on.clone()]);
            assert_eq!(routes(0, State::Rebuilding), [gone, on.clone(), on.clone()]);
            assert_eq!(routes(1, State::Rebuilding), vec![on; 3]);
        });
    }

    /// md takes all of the journal's drive for it behind where data begin: on members of 1 GiB after 4,096 sectors, on
    /// whole drives after 264,192 (mdadm 4.2; a guest says that the first journal has 65,536 KiB).
    #[test]
    fn a_journal_is_as_large_as_the_study_says() {
        let study = |size: &str| {
            let text = format!(
                r#"
title = "journals"
{size}
drives = [{{ name = "nas", model = "nas-8tb-7200", count = 4 }}]
layouts = [
    {{ name = "small", level = "raid5", members = 3, consistency = "journal", journal_size = "64MiB" }},
    {{ level = "raid5", members = 3, consistency = "journal" }},
    {{ level = "raid5", members = 3 }},
]
workloads = [{{ kind = "dd-write", size = "16MiB" }}]
"#
            );
            prepared(&text)
        };
        let last = |study: &Study| {
            in_lab(study, |lab| {
                let of = |layout| {
                    let state = State::Healthy;
                    let key = CellKey { layout, workload: 0, processes: 1, state, again: false };
                    let drives = lab.runner_on(0).drives(&key, 1);
                    drives.iter().map(|(class, _)| class.bytes >> 20).collect::<Vec<_>>()
                };
                [of(0), of(1), of(2)]
            })
        };
        let gib = 1024;
        let [small, usual, none] = last(&study("member_size = \"1GiB\""));
        assert_eq!(small, [gib, gib, gib, 2 + 64]);
        assert_eq!(usual, [gib, gib, gib, 2 + 256]);
        assert_eq!(none, [gib; 3]);
        let [small, usual, none] = last(&study(""));
        assert_eq!((small[3], usual[3], none.len()), (129 + 64, 129 + 256, 3));
    }
}
