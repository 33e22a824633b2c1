//! A study as checked values, and where in its file they stand.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use raidlab_core::geometry::Geometry;
use raidlab_core::layout::is_same_name;
use raidlab_core::policy::ReadPolicy;
use raidlab_core::{
    Consistency, Layout, MemberIndex, SECTOR_BYTES, Sector, Sectors, Settings, Size,
};
use raidlab_models::host::{FilesystemKind, HostSpec, Kernel, Processor};
use raidlab_models::{ControllerSpec, LinkSpec, Scheduler};
use raidlab_workload::{Setting, WorkloadError, WorkloadErrorKind, WorkloadSpec};

use crate::error::{StudyError, StudyErrorKind};
use crate::matrix::CellKey;
use crate::parameters::Parameter;

/// A study: which layouts of which drives are compared, by which workloads, and how often.
#[derive(Clone, Debug, PartialEq)]
pub struct Study {
    /// What it is about.
    pub title: String,
    /// Every random choice is drawn from this.
    pub seed: u64,
    /// How often every cell is run at least.
    pub rounds: u32,
    /// How often every cell is run at most; at least `rounds`.
    pub max_rounds: u32,
    /// Half the width of the interval of a cell's median that is aimed at, in percent of the
    /// median.
    pub precision_percent: f64,
    /// The names of the layouts that percentages are against.
    pub baseline: Vec<String>,
    /// How many processes at once, in turn.
    pub processes: Vec<u32>,
    /// The states of the array, in turn.
    pub states: Vec<State>,
    /// How much of each drive arrays use, from its start; all of it when `None`.
    pub member_size: Option<Sectors>,
    /// The filesystem that workloads run on, one of [`FILESYSTEMS`] or [`MODELLED_FILESYSTEMS`]; on the
    /// array itself when `None`.
    pub filesystem: Option<String>,
    /// The groups of drives.
    pub drives: Vec<Drives>,
    /// The layouts that are compared.
    pub layouts: Vec<NamedLayout>,
    /// The workloads they are compared by.
    pub workloads: Vec<WorkloadSpec>,
    /// The modelled host; today's defaults when `None`.
    pub host: Option<Host>,
    /// What may lie between host and drives, in virtual time.
    pub paths: Vec<LinkSpec>,
    /// Numbers of drives, paths, controllers and the host that the study knows better. Those of paths,
    /// controllers and the host are in them already; drives get theirs when they are loaded.
    pub parameters: Vec<Parameter>,
    /// What fitting the free ones among them came to.
    pub calibration: Option<Calibration>,
    /// Published figures of some cells.
    pub given: Vec<GivenCell>,
    /// Its rounds take real time: they may depend on each other, and the first layout of the baseline is measured
    /// twice a round, to see what differs without a reason. No study file says so.
    pub measured: bool,
    /// Its values are predicted, not a kernel's: results say of each how far it can be trusted, and differences that
    /// the model cannot tell are not resolved. No study file says so.
    pub modelled: bool,
    /// Which cells are run, where not all are. No study file says so: it is for looking closer.
    pub only: Only,
    /// Where all this stands.
    pub origin: Origin,
}

/// Which cells of a study are run: an empty list is no limit. Seeds do not depend on it, so a cell comes
/// out as in a run of all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Only {
    /// Names of layouts.
    pub layouts: Vec<String>,
    /// Names of workloads.
    pub workloads: Vec<String>,
    /// Process counts.
    pub processes: Vec<u32>,
}

impl Only {
    /// Whether a cell is run.
    fn has(&self, layout: &str, workload: &str, processes: u32) -> bool {
        let named = |list: &[String], name: &str| {
            list.is_empty() || list.iter().any(|one| is_same_name(one, name))
        };
        named(&self.layouts, layout)
            && named(&self.workloads, workload)
            && (self.processes.is_empty() || self.processes.contains(&processes))
    }
}

/// A published figure of a cell, by the names of the study.
#[derive(Clone, Debug, PartialEq)]
pub struct GivenCell {
    /// The layout.
    pub layout: String,
    /// The workload.
    pub workload: String,
    /// How many processes.
    pub processes: u32,
    /// The metric.
    pub metric: String,
    /// The figure, in the metric's unit.
    pub value: f64,
    /// Parameters of the model were fitted to it.
    pub calibrated: bool,
    /// Parameters may be fitted to it; otherwise it is only looked at afterwards.
    pub fit: bool,
}

/// What `raidlab calibrate` came to, as it wrote it into the study. Errors are medians, in percent, of
/// the published figures that were fitted.
#[derive(Clone, Debug, PartialEq)]
pub struct Calibration {
    /// The version that did it.
    pub raidlab: String,
    /// How many published figures were fitted.
    pub cells: u32,
    /// By how many free parameters.
    pub parameters: u32,
    /// Seeds of every cell.
    pub seeds: u32,
    /// How often the cells were run.
    pub evaluations: u32,
    /// The error before.
    pub median_error_before: f64,
    /// The error with the fitted parameters.
    pub median_error: f64,
    /// The error of each figure by parameters that were fitted without it.
    pub median_error_left_out: Option<f64>,
}

/// The state of an array while a workload runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum State {
    /// Every member works.
    Healthy,
    /// One member is missing: the one that holds the first sector of the array.
    Degraded,
    /// A fresh drive has taken the place of that member when the workload starts, and is rebuilt.
    Rebuilding,
}

impl State {
    /// Every state there is a word for.
    pub const ALL: [Self; 3] = [Self::Healthy, Self::Degraded, Self::Rebuilding];

    /// The name in study files and results.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Healthy => "healthy",
            Self::Degraded => "degraded",
            Self::Rebuilding => "rebuilding",
        }
    }
}

impl FromStr for State {
    type Err = String;

    /// Reads a name; the error says which there are.
    fn from_str(text: &str) -> Result<Self, String> {
        Self::ALL.into_iter().find(|state| state.name() == text).ok_or_else(|| {
            let known = Self::ALL.map(Self::name).join(", ");
            format!("`{text}` is not a state; known: {known}")
        })
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A group of equal drives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Drives {
    /// Its name.
    pub name: String,
    /// What the drives are.
    pub source: DriveSource,
    /// How many there are.
    pub count: u16,
    /// Modelled drives: the request queue in front of each. Without one, requests go to the drive as
    /// they come.
    pub scheduler: Option<Scheduler>,
}

/// What the drives of a group are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DriveSource {
    /// A modelled drive: the name of a built-in one, or the path of a drive file (ends in `.toml`).
    Model(String),
    /// A file of this size for each.
    File(Size),
}

/// A layout under its name in the study.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedLayout {
    /// Its name: unique in the study.
    pub name: String,
    /// Level and parameters; checked.
    pub layout: Layout,
    /// Which copy a read takes.
    pub read_policy: ReadPolicy,
    /// How it keeps redundancy consistent, how background work goes.
    pub settings: Settings,
    /// Threads of md's that handle its stripes besides the array's own (`group_thread_cnt`); only kernels have them.
    pub group_threads: u16,
    /// The index of the group its members are from, or its first member; the group has enough.
    pub drives: usize,
    /// The index of the group of each member, where they are not all of one.
    pub each: Vec<usize>,
    /// Hot spares, drives of the group `drives` besides its members; none where the level survives no loss.
    pub spares: u16,
    /// What lies between the host and its members, in virtual time.
    pub hardware: Hardware,
    /// The modelled host that it runs on, where it is not the study's.
    pub host: Option<Host>,
    /// The filesystem on it, where that is not the study's ([`Study::filesystem_of`]).
    pub filesystem: Option<String>,
    /// How much of each drive it uses, where that is not the study's. No study file says so: members are as large as
    /// those of a run on real drives, for a model beside it.
    pub member_size: Option<Sectors>,
}

/// The key of [`NamedLayout::group_threads`], by md's name.
pub(crate) const GROUP_THREADS: &str = "group_thread_cnt";

/// What lies between the host and the members of an array, in virtual time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hardware {
    /// For each member, positions in the study's paths, from the host to the drive; none: nothing that
    /// limits it.
    pub routes: Vec<Vec<usize>>,
    /// What shows the array to the host as one disk.
    pub controller: Option<ControllerSpec>,
}

/// The modelled host of a study.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Host {
    /// Memory, kernel, filesystem.
    pub spec: HostSpec,
    /// Which filesystem that is, where the study has one.
    pub filesystem: FilesystemKind,
    /// Its processor, where the study names one: what requests and parity cost.
    pub processor: Option<Processor>,
}

impl Host {
    /// A host with the filesystem of its kernel, and no processor named.
    pub fn new(spec: HostSpec) -> Self {
        let filesystem = spec.kernel.filesystem();
        Self { spec, filesystem, processor: None }
    }

    /// Puts a filesystem in place: [`NATIVE`] is the kernel's own. So are those that are not modelled, until the study
    /// is run in virtual time and [refused](Study::check_virtual_filesystem).
    ///
    /// # Errors
    /// When the kernel does not have it.
    pub fn set_filesystem(&mut self, name: &str) -> Result<(), String> {
        let kernel = self.spec.kernel;
        let own = kernel.filesystem();
        let kind = match name {
            NATIVE => own,
            _ => name.parse().unwrap_or(own),
        };
        if name != NATIVE && (own == FilesystemKind::Ffs) != (name == FilesystemKind::Ffs.name()) {
            let reason =
                format!("{kernel} has no {name}; write {own}, or {NATIVE}, which is the same");
            return Err(reason);
        }
        self.spec.filesystem = kernel.mounted(kind);
        self.filesystem = kind;
        Ok(())
    }
}

impl NamedLayout {
    /// A layout under the name it is printed by, of drives of the first group, all else as where a study file says
    /// nothing.
    pub fn plain(layout: Layout) -> Self {
        Self {
            name: layout.to_string(),
            read_policy: crate::parse::default_policy(&layout),
            layout,
            settings: Settings::default(),
            group_threads: 0,
            drives: 0,
            each: Vec::new(),
            spares: 0,
            hardware: Hardware::default(),
            host: None,
            filesystem: None,
            member_size: None,
        }
    }

    /// The index of the group that the drive in a place is from: that of a member, or what stands behind
    /// the members (a log device, a spare), which is of the first one's group.
    pub fn group(&self, place: usize) -> usize {
        self.each.get(place).copied().unwrap_or(self.drives)
    }

    /// The indices of all groups that its drives are from; one may come several times.
    pub fn groups(&self) -> impl Iterator<Item = usize> + '_ {
        std::iter::once(self.drives).chain(self.each.iter().copied())
    }

    /// Whether it survives the loss of a member: only then there are cells besides healthy ones.
    pub fn is_redundant(&self) -> bool {
        self.layout.survives() > 0
    }

    /// Whether there are cells of a state. With a hot spare an array is not left degraded: it is rebuilt at once.
    pub fn can_be(&self, state: State) -> bool {
        match state {
            State::Healthy => true,
            State::Degraded => self.is_redundant() && self.spares == 0,
            State::Rebuilding => self.is_redundant(),
        }
    }
}

/// The member that states without it do without: the first that holds data, which is where the first
/// copy of the first sector lies.
pub fn lost_member(geometry: &Geometry) -> MemberIndex {
    geometry.place(Sector(0), 0).member
}

/// Filesystems that a study can name.
pub const FILESYSTEMS: [&str; 5] = ["ext4", "ext3", "ext2", "xfs", "btrfs"];

/// The filesystem that the kernel's distribution made by default.
pub const NATIVE: &str = "native";

/// Why virtual time does not have a filesystem; none when it does.
pub(crate) fn not_modelled(filesystem: &str) -> Option<String> {
    if filesystem == NATIVE || filesystem.parse::<FilesystemKind>().is_ok() {
        return None;
    }
    let known = FilesystemKind::ALL.map(FilesystemKind::name).join(", ");
    Some(format!("{filesystem} is not modelled; in virtual time there are {known} and {NATIVE}"))
}

/// Filesystems that only modelled hosts have.
pub const MODELLED_FILESYSTEMS: [&str; 2] = [NATIVE, "ffs"];

/// Bytes an array must have for a filesystem with `files` bytes of files: an eighth for what the filesystem
/// needs of its own, and 128 MiB for the journal and the smallest filesystem there can be.
pub fn filesystem_room(files: u64) -> u64 {
    files.saturating_add(files / 8).saturating_add(128 << 20)
}

/// The name of the rows that show how long a rebuild takes when nothing else goes on.
pub const IDLE_REBUILD: &str = "rebuild";

/// Whether states can be run with these layouts and workloads.
pub(crate) fn check_states(
    states: &[State],
    layouts: &[NamedLayout],
    workloads: &[WorkloadSpec],
) -> Result<(), (StudyErrorKind, String)> {
    let Some(state) = states.iter().find(|state| **state != State::Healthy) else { return Ok(()) };
    if !layouts.iter().any(NamedLayout::is_redundant) {
        let reason = format!("no layout survives the loss of a member: none can be `{state}`");
        return Err((StudyErrorKind::WrongValue, reason));
    }
    let in_state = |state: State| layouts.iter().any(|layout| layout.can_be(state));
    if states.contains(&State::Degraded) && !in_state(State::Degraded) {
        let reason = "every layout that survives the loss of a member has hot `spares`, which take its place at \
                      once: none can be `degraded`, only `rebuilding`";
        return Err((StudyErrorKind::WrongValue, reason.into()));
    }
    let named = |workload: &WorkloadSpec| workload.name == IDLE_REBUILD;
    if states.contains(&State::Rebuilding) && workloads.iter().any(named) {
        let reason = format!(
            "a workload is called `{IDLE_REBUILD}` as the rows of the rebuild are; \
                              give it another `name`"
        );
        return Err((StudyErrorKind::DuplicateName, reason));
    }
    Ok(())
}

/// Where the parts of a study stand, for errors that only show when it is run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Origin {
    /// The study file, as errors call it.
    pub path: String,
    /// The directory it lies in, where drive files are looked for; empty where there is no file, which is
    /// the current one.
    pub directory: PathBuf,
    /// The lines, by names such as `rounds`, `layouts[2]` and `layouts[2].chunk`.
    pub lines: BTreeMap<String, u32>,
}

impl Origin {
    /// Drive files are looked for beside this study file.
    pub fn set_file(&mut self, path: &Path) {
        self.directory = path.parent().map(Path::to_path_buf).unwrap_or_default();
    }

    /// The line of a key in the table `name[index]`, else that of the table.
    pub fn line(&self, name: &str, index: usize, key: &str) -> Option<u32> {
        let table = format!("{name}[{index}]");
        let exact = self.lines.get(&format!("{table}.{key}"));
        exact.or_else(|| self.lines.get(&table)).copied()
    }

    /// An error about a key of the study itself, such as `filesystem`.
    pub fn error_of_key(
        &self,
        kind: StudyErrorKind,
        key: &str,
        reason: impl Into<String>,
    ) -> StudyError {
        StudyError::new(kind, &self.path, self.lines.get(key).copied(), key, reason)
    }

    /// An error about a key in the table `name[index]`, such as the `model` of `drives[0]`.
    pub fn error(
        &self,
        kind: StudyErrorKind,
        (name, index, key): (&str, usize, &str),
        reason: impl Into<String>,
    ) -> StudyError {
        let line = self.line(name, index, key);
        StudyError::new(kind, &self.path, line, format!("{name}.{key}"), reason)
    }
}

impl Study {
    /// Whether a cell is run.
    pub fn runs(&self, key: &CellKey) -> bool {
        let workload = key.workload(self).map_or(IDLE_REBUILD, |workload| &workload.name);
        self.only.has(&self.layouts[key.layout].name, workload, key.processes)
    }

    /// Replaces the states.
    ///
    /// # Errors
    /// What is wrong with them, as in the file.
    pub fn set_states(&mut self, states: Vec<State>) -> Result<(), String> {
        check_states(&states, &self.layouts, &self.workloads).map_err(|(_, reason)| reason)?;
        self.states = states;
        Ok(())
    }

    /// Rounds that cost virtual time only: at least as many as verdicts need, by the most layouts that are compared
    /// with the baseline in a row.
    pub fn raise_rounds(&mut self) {
        let (_, needed) = crate::verdicts::family(self, &crate::matrix::cells(self));
        self.rounds = self.rounds.max(needed);
        self.max_rounds = self.max_rounds.max(self.rounds);
    }

    /// Layouts without cells besides healthy ones, where the study has other states.
    pub fn without_redundancy(&self) -> Vec<&str> {
        if self.states.iter().all(|state| *state == State::Healthy) {
            return Vec::new();
        }
        let bare = self.layouts.iter().filter(|layout| !layout.is_redundant());
        bare.map(|layout| layout.name.as_str()).collect()
    }

    /// Layouts without degraded cells because of their hot spares, where the study has degraded ones.
    pub fn never_degraded(&self) -> Vec<&str> {
        if !self.states.contains(&State::Degraded) {
            return Vec::new();
        }
        let with_spares = self.layouts.iter().filter(|layout| layout.spares > 0);
        with_spares.map(|layout| layout.name.as_str()).collect()
    }

    /// The layouts whose journal lies on a drive of a group beyond those that it says it has.
    pub fn journals_beyond(&self, group: usize) -> Vec<&str> {
        let of = |layout: &&NamedLayout| {
            let members = 0..usize::from(layout.layout.drives());
            let taken = members.filter(|place| layout.group(*place) == group).count();
            let available = usize::from(self.drives[group].count);
            matches!(layout.settings.consistency, Consistency::Journal { .. })
                && layout.drives == group
                && taken + usize::from(layout.spares) + 1 > available
        };
        self.layouts.iter().filter(of).map(|layout| layout.name.as_str()).collect()
    }

    /// The drives of a group in words: how many, and one more where a journal needs it.
    pub fn drives_in_words(&self, group: usize, title: &str) -> String {
        let count = self.drives[group].count;
        match self.journals_beyond(group).as_slice() {
            [] => format!("{count} x {title}"),
            names => {
                format!("{count} x {title}, and one more for the journal of {}", names.join(", "))
            }
        }
    }

    /// The indices of the baseline's layouts.
    pub fn baseline_layouts(&self) -> Vec<usize> {
        let layouts = self.layouts.iter().enumerate();
        let named = layouts.filter(|(_, layout)| self.baseline.contains(&layout.name));
        named.map(|(index, _)| index).collect()
    }

    /// Replaces the filesystem, that of all layouts.
    ///
    /// # Errors
    /// When there is none of this name.
    pub fn set_filesystem(&mut self, name: &str) -> Result<(), String> {
        if !FILESYSTEMS.contains(&name) && !MODELLED_FILESYSTEMS.contains(&name) {
            let known = [&FILESYSTEMS[..], &MODELLED_FILESYSTEMS].concat().join(", ");
            return Err(format!("`{name}` is not a filesystem; known: {known}"));
        }
        let of_layouts = self.layouts.iter_mut().filter_map(|layout| layout.host.as_mut());
        for host in self.host.iter_mut().chain(of_layouts) {
            host.set_filesystem(name)?;
        }
        self.layouts.iter_mut().for_each(|layout| layout.filesystem = None);
        self.filesystem = Some(name.to_string());
        Ok(())
    }

    /// The filesystem that a layout's cells run on, where the study has one: its own, or the study's.
    pub fn filesystem_of(&self, layout: usize) -> Option<&str> {
        let of_study = self.filesystem.as_deref()?;
        let own = self.layouts.get(layout).and_then(|layout| layout.filesystem.as_deref());
        own.or(Some(of_study))
    }

    /// What layouts have that only virtual time has, in words: the array is measured without it on real drives.
    pub fn only_modelled(&self) -> Vec<String> {
        let of = |layout: &NamedLayout| {
            let keys = [
                ("host", layout.host.as_ref().is_some_and(|own| self.is_another_host(own))),
                ("route", !layout.hardware.routes.is_empty()),
                ("controller", layout.hardware.controller.is_some()),
            ];
            let keys: Vec<&str> =
                keys.iter().filter(|(_, has)| *has).map(|(key, _)| *key).collect();
            (!keys.is_empty()).then(|| format!("{} ({})", layout.name, keys.join(", ")))
        };
        self.layouts.iter().filter_map(of).collect()
    }

    /// Whether a layout's host differs from the study's in more than its filesystem, which real drives have, too.
    fn is_another_host(&self, own: &Host) -> bool {
        let Some(mut host) = self.host.clone() else { return true };
        host.filesystem = own.filesystem;
        host.spec.filesystem = own.spec.filesystem;
        host != *own
    }

    /// Virtual time has the study's filesystem.
    ///
    /// # Errors
    /// [`StudyErrorKind::NotSupported`]: a filesystem that only real kernels have.
    pub fn check_virtual_filesystem(&self) -> Result<(), StudyError> {
        let Some(reason) = self.filesystem.as_deref().and_then(not_modelled) else { return Ok(()) };
        let reason =
            format!("{reason}; the real one runs with --on DIR, --on DEVICES and --on kernel:6.12");
        Err(self.origin.error_of_key(StudyErrorKind::NotSupported, "filesystem", reason))
    }

    /// The modelled host of a layout: its own, or the study's; `None` for today's defaults.
    pub fn host_of(&self, layout: usize) -> Option<&Host> {
        let own = self.layouts.get(layout).and_then(|layout| layout.host.as_ref());
        own.or(self.host.as_ref())
    }

    /// The modelled kernel that serves a layout: that of its host, or of today's default host below a
    /// filesystem; `None` where raidlab's own engine serves it.
    pub fn kernel_of(&self, layout: usize) -> Option<Kernel> {
        let usual = || self.filesystem.as_ref().map(|_| HostSpec::default().kernel);
        self.host_of(layout).map(|host| host.spec.kernel).or_else(usual)
    }

    /// Whether a layout is one array of the md of a kernel whose sources were read for this.
    pub fn is_md(&self, layout: usize) -> bool {
        let is_flat = |named: &NamedLayout| named.layout.inner.is_none();
        self.is_of_md(layout) && self.layouts.get(layout).is_some_and(is_flat)
    }

    /// Whether a layout is one such array, or arrays upon such arrays.
    pub fn is_of_md(&self, layout: usize) -> bool {
        let Some(named) = self.layouts.get(layout) else { return false };
        self.kernel_of(layout).is_some_and(Kernel::is_of_today)
            && named.hardware.controller.is_none()
    }

    /// The processes that a workload runs with, in turn.
    pub fn processes_of<'a>(&'a self, workload: &'a WorkloadSpec) -> &'a [u32] {
        let only = &workload.only_processes;
        if only.is_empty() { &self.processes } else { only }
    }

    /// Refuses threads of md's, which neither models nor arrays of raidlab's own code have.
    ///
    /// # Errors
    /// [`StudyErrorKind::NotSupported`].
    pub fn check_group_threads(&self) -> Result<(), StudyError> {
        let Some(index) = self.layouts.iter().position(|layout| layout.group_threads > 0) else {
            return Ok(());
        };
        let reason = "threads that handle stripes are md's: run the study with --on kernel:6.12, or leave it out";
        let place = ("layouts", index, GROUP_THREADS);
        Err(self.origin.error(StudyErrorKind::NotSupported, place, reason))
    }

    /// Refuses what only modelled hosts can do.
    ///
    /// # Errors
    /// [`StudyErrorKind::NotSupported`]: a filesystem, hot spares or read-ahead that only they have, threads of md's.
    pub fn check_real(&self) -> Result<(), StudyError> {
        self.check_group_threads()?;
        let kind = StudyErrorKind::NotSupported;
        let is_modelled = |name: &&str| MODELLED_FILESYSTEMS.contains(name);
        let wrong = |name: &str| {
            let known = FILESYSTEMS.join(", ");
            format!("`{name}` is for modelled hosts; on real drives name one of {known}")
        };
        if let Some(name) = self.filesystem.as_deref().filter(is_modelled) {
            return Err(self.origin.error_of_key(kind, "filesystem", wrong(name)));
        }
        for (index, layout) in self.layouts.iter().enumerate() {
            if let Some(name) = layout.filesystem.as_deref().filter(is_modelled) {
                let place = ("layouts", index, "filesystem");
                return Err(self.origin.error(kind, place, wrong(name)));
            }
        }
        if let Some(index) = self.layouts.iter().position(|layout| layout.spares > 0) {
            let reason = "hot spares are not supported on real drives; leave `spares` out: with the state \
                          `rebuilding` a spare file or device takes the lost member's place there";
            return Err(self.origin.error(kind, ("layouts", index, "spares"), reason));
        }
        match self.workloads.iter().position(|workload| workload.read_ahead.is_some()) {
            None => Ok(()),
            Some(index) => {
                let reason = "is for modelled hosts: on real drives raidlab does not change the \
                              read-ahead of a device; leave it out and set it by blockdev --setra";
                Err(self.origin.error(kind, ("workloads", index, "read_ahead"), reason))
            }
        }
    }

    /// How much of each drive a layout uses, from its start; all of it when `None`.
    pub fn member_size_of(&self, layout: usize) -> Option<Sectors> {
        self.layouts[layout].member_size.or(self.member_size)
    }

    /// Checks that every workload fits on every layout that it runs on, with every number of processes.
    ///
    /// `capacities` and `logical_blocks` (in sectors) belong to the layouts, in their order;
    /// `host_memory` is that of a layout's host in bytes, where it is known.
    ///
    /// # Errors
    /// [`StudyErrorKind::DoesNotFit`], or [`StudyErrorKind::WrongValue`] when requests are not
    /// whole blocks of the array; both name layout, workload and what would be right.
    /// [`StudyErrorKind::NotSupported`] when a workload needs a filesystem and there is none.
    pub fn check_capacity(
        &self,
        capacities: &[Sectors],
        logical_blocks: &[u32],
        host_memory: impl Fn(usize) -> Option<u64>,
    ) -> Result<(), StudyError> {
        let mut rooms = Rooms::new();
        let sizes = capacities.iter().zip(logical_blocks).enumerate();
        for (layout, (position, (&capacity, &logical_block))) in self.layouts.iter().zip(sizes) {
            let host_memory = host_memory(position);
            for (index, workload) in self.workloads.iter().enumerate() {
                if !runs_on(workload, layout) {
                    continue;
                }
                for &processes in self.processes_of(workload) {
                    let checked = match self.filesystem {
                        Some(_) => rooms
                            .entry((index, processes, host_memory))
                            .or_insert_with(|| room(workload, processes, host_memory))
                            .clone()
                            .and_then(|room| fits_on_filesystem(room, capacity)),
                        None => {
                            let block = u64::from(logical_block) * SECTOR_BYTES;
                            workload.workload.check_raw(capacity.bytes(), processes, block)
                        }
                    };
                    checked.map_err(|error| {
                        let (kind, hint) = match error.kind {
                            WorkloadErrorKind::DoesNotFit | WorkloadErrorKind::Span => {
                                (StudyErrorKind::DoesNotFit, "")
                            }
                            WorkloadErrorKind::NotSupported if self.filesystem.is_none() => {
                                (StudyErrorKind::NotSupported, ", such as filesystem = \"ext4\"")
                            }
                            _ => (StudyErrorKind::WrongValue, ""),
                        };
                        let reason =
                            format!("{} on {}: {}{hint}", workload.name, layout.name, error.reason);
                        self.origin.error(kind, ("workloads", index, &error.key), reason)
                    })?;
                }
            }
        }
        Ok(())
    }
}

/// Whether a workload runs on a layout.
pub(crate) fn runs_on(workload: &WorkloadSpec, layout: &NamedLayout) -> bool {
    workload.only_layouts.is_empty() || workload.only_layouts.contains(&layout.name)
}

/// Bytes of the files of a workload, by its index, the number of processes and the memory of the host:
/// planned once, not once for every layout.
type Rooms = BTreeMap<(usize, u32, Option<u64>), Result<u64, WorkloadError>>;

fn room(
    workload: &WorkloadSpec,
    processes: u32,
    host_memory: Option<u64>,
) -> Result<u64, WorkloadError> {
    let setting = Setting { host_memory, checked: false, ..Setting::new(processes, 0) };
    Ok(workload.workload.plan(&setting)?.room)
}

fn fits_on_filesystem(files: u64, capacity: Sectors) -> Result<(), WorkloadError> {
    let (room, capacity) = (filesystem_room(files), capacity.bytes());
    if room <= capacity {
        return Ok(());
    }
    let (files, room, capacity) = (Size(files), Size(room), Size(capacity));
    Err(WorkloadError {
        kind: WorkloadErrorKind::DoesNotFit,
        key: "size".into(),
        reason: format!("{files} of files and their filesystem need {room}, there are {capacity}"),
        known: Vec::new(),
    })
}
