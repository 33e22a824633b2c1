//! Where a workload runs.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use raidlab_core::{Config, Layout, SECTOR_BYTES, Sectors, Volume};
use raidlab_engine::{
    Engine, EngineConfig, EngineError, EngineErrorKind, FileMember, FileOptions, Member,
    MemoryMember,
};
use raidlab_study::{NamedLayout, did_you_mean, filesystem_room};
use raidlab_targets::{
    DirectoryTarget, Filesystem, KernelMdArray, KernelMdOptions, MountedArray, RawTarget,
    RunDirectory, clean_leftovers,
};
use raidlab_workload::null::NullTarget;
use raidlab_workload::raw::RawPlan;
use raidlab_workload::{Plan, RunRecord, Setting, Workload, WorkloadSpec};

use super::{Run, virtual_time};
use crate::failure::Failure;
use crate::{interrupt, output};
use raidlab_measure::{
    Notification, Tell, differing, host_memory, in_directory, member_for, on_array,
};

/// A target by its name on the command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Target {
    /// Nothing at all.
    Null,
    /// A modelled host with a filesystem.
    Modelled,
    /// A modelled array without one.
    ModelledRaw,
    /// An array in memory, without a filesystem.
    RawMemory,
    /// An array on member files, without a filesystem.
    RawFiles(PathBuf),
    /// A directory of a mounted filesystem.
    Directory(PathBuf),
    /// An array on member files with a filesystem on it.
    Mounted(PathBuf),
    /// The same with the kernel's own md.
    KernelMd(PathBuf),
    /// A kernel in virtual time, with a filesystem or on the block device itself.
    KernelLab(OsString, Device),
}

/// What of a kernel's array a workload runs on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Device {
    /// A filesystem.
    Filesystem,
    /// The block device itself.
    Raw,
}

impl Target {
    /// Reads what the command line says; directories may be of any bytes.
    pub(super) fn parse(text: &OsStr) -> Result<Self, String> {
        if let Some((_, target)) = Self::named().into_iter().find(|(name, _)| *name == text) {
            return Ok(target);
        }
        let right = "write modelled, modelled-raw, null, a directory, raw:memory, raw:DIR, \
                     mounted:DIR, md:DIR, kernel:VERSION or kernel-raw:VERSION (a directory of such a \
                     name: ./null)";
        let shown = text.to_string_lossy();
        let directory = |path: &[u8]| {
            let path = Path::new(OsStr::from_bytes(path));
            let place = path.display();
            match std::fs::metadata(path) {
                Ok(there) if there.is_dir() => Ok(path.to_owned()),
                Ok(_) => Err(format!("--target {shown}: {place} is not a directory; {right}")),
                Err(error) => {
                    let meant = did_you_mean(&shown, &Self::named().map(|(name, _)| name));
                    Err(format!("--target {shown}: {place}: {error}{meant}; {right}"))
                }
            }
        };
        let bytes = text.as_bytes();
        for (prefix, device) in
            [(&b"kernel:"[..], Device::Filesystem), (b"kernel-raw:", Device::Raw)]
        {
            if let Some(kernel) = bytes.strip_prefix(prefix) {
                return Ok(Self::KernelLab(OsStr::from_bytes(kernel).to_owned(), device));
            }
        }
        for (prefix, of) in [
            (&b"raw:"[..], Self::RawFiles as fn(PathBuf) -> Self),
            (b"mounted:", Self::Mounted),
            (b"md:", Self::KernelMd),
        ] {
            if let Some(path) = bytes.strip_prefix(prefix) {
                return directory(path).map(of);
            }
        }
        directory(bytes).map(Self::Directory)
    }
}

/// What a run on a real target has besides its workload.
#[derive(Clone, Copy)]
pub(super) struct Real<'a> {
    options: &'a Run,
    /// Set by Ctrl-C.
    cancel: &'static AtomicBool,
    tell: Tell<'a>,
}

/// Which flags a target has a use for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Uses {
    pub(super) layout: bool,
    pub(super) drive: bool,
    pub(super) filesystem: bool,
    pub(super) trace: bool,
}

impl Target {
    pub(super) fn uses(&self) -> Uses {
        let is_array = !matches!(self, Self::Null | Self::Directory(_));
        Uses {
            layout: is_array,
            drive: matches!(self, Self::Modelled | Self::ModelledRaw | Self::KernelLab(..)),
            filesystem: matches!(
                self,
                Self::Mounted(_) | Self::KernelMd(_) | Self::KernelLab(_, Device::Filesystem)
            ),
            trace: matches!(self, Self::Modelled | Self::ModelledRaw | Self::KernelLab(..)),
        }
    }

    /// Whether workloads run on files of a filesystem.
    pub(super) fn has_files(&self) -> bool {
        match self {
            Self::Modelled | Self::Directory(_) | Self::Mounted(_) | Self::KernelMd(_) => true,
            Self::KernelLab(_, device) => *device == Device::Filesystem,
            Self::Null | Self::ModelledRaw | Self::RawMemory | Self::RawFiles(_) => false,
        }
    }

    /// The targets without a directory.
    fn named() -> [(&'static str, Self); 4] {
        [
            ("null", Self::Null),
            ("modelled", Self::Modelled),
            ("modelled-raw", Self::ModelledRaw),
            ("raw:memory", Self::RawMemory),
        ]
    }

    /// Memory of the host in bytes, where the target has one.
    pub(super) fn memory(&self) -> Option<u64> {
        match self {
            Self::Directory(_) | Self::Mounted(_) | Self::KernelMd(_) => host_memory(),
            _ => None,
        }
    }

    /// Runs a workload.
    pub(super) fn run(
        &self,
        options: &Run,
        spec: &WorkloadSpec,
        setting: Setting,
        tell: Tell<'_>,
    ) -> Result<RunRecord, Failure> {
        let workload = &*spec.workload;
        match self {
            Self::KernelLab(kernel, device) => {
                tell(Notification::Step("running in a guest"));
                let filesystem = *device == Device::Filesystem;
                virtual_time::run_on_kernel(options, spec, setting, (kernel, filesystem))
            }
            // Nothing is to be tidied up after these two: Ctrl-C just ends them.
            Self::Null => {
                tell(Notification::Step("running"));
                let plan = planned(options, workload, &setting)?;
                let record = NullTarget::default().run(plan);
                record.map_err(|error| Failure::failed(format!("{}: {error:?}", workload.kind())))
            }
            Self::Modelled | Self::ModelledRaw => {
                tell(Notification::Step("running in virtual time"));
                virtual_time::run(options, workload, setting, *self == Self::Modelled)
            }
            _ => {
                let real = Real { options, cancel: interrupt::flag()?, tell };
                self.run_real(real, workload, setting)
            }
        }
    }

    fn run_real(
        &self,
        real: Real<'_>,
        workload: &dyn Workload,
        setting: Setting,
    ) -> Result<RunRecord, Failure> {
        let plan = || planned(real.options, workload, &setting);
        match self {
            Self::Directory(path) => {
                DirectoryTarget::check_directory(path).map_err(Failure::input)?;
                in_directory(path, plan()?, real.cancel, &|| None, real.tell).map_err(failure)
            }
            Self::Mounted(parent) => self.mounted(real, parent, plan()?),
            Self::KernelMd(parent) => kernel_md(real, parent, plan()?),
            _ => self.raw(real, workload, setting),
        }
    }

    /// An array on member files with a filesystem on it.
    fn mounted(&self, real: Real<'_>, parent: &Path, plan: Plan) -> Result<RunRecord, Failure> {
        let options = real.options;
        let filesystem = options.filesystem();
        MountedArray::check_host(filesystem).map_err(failure)?;
        let size = member_size(&options.layout(), room(&plan, filesystem))?;
        (real.tell)(Notification::Step("making member files"));
        let (members, directory) = self.members(options.layout().drives(), size)?;
        let engine = Engine::new(&EngineConfig::new(options.layout()), members);
        let engine = engine.map_err(|error| Failure::input(format!("--layout: {error}")))?;
        let outcome = on_array(engine, parent, filesystem, plan, real.cancel, real.tell);
        drop(directory);
        let outcome = outcome.map_err(failure)?;
        match outcome.differing {
            Some(sectors) if sectors != Sectors::ZERO => Err(Failure::failed(differing(sectors))),
            _ => Ok(outcome.record),
        }
    }

    /// An array without a filesystem, every byte verified.
    fn raw(
        &self,
        real: Real<'_>,
        workload: &dyn Workload,
        setting: Setting,
    ) -> Result<RunRecord, Failure> {
        let options = real.options;
        let bad = |error| {
            Failure::input(format!("{} on {}: {error}", workload.kind(), options.target_name()))
        };
        let room = workload.raw_room(setting.copies).map_err(bad)?;
        let member = member_size(&options.layout(), room)?;
        // What cannot be shows before files are made.
        let array = Volume::new(&Config::uniform(options.layout(), member));
        let array = array.map_err(|error| Failure::input(format!("--layout: {error}")))?;
        let capacity = array.capacity().bytes();
        // The engine's raw target works in blocks of 4 KiB at least.
        let block = (u64::from(array.logical_block()) * SECTOR_BYTES).max(4096);
        workload.check_raw(capacity, setting.copies, block).map_err(bad)?;
        let setting = Setting { space: Some(capacity), ..setting };
        let plan = workload.plan(&setting).and_then(|plan| RawPlan::new(plan, capacity));
        let plan = plan.map_err(bad)?;
        (real.tell)(Notification::Step("making members"));
        let (members, directory) = self.members(options.layout().drives(), member)?;
        let engine = Engine::new(&EngineConfig::new(options.layout()), members);
        let engine = engine.map_err(|error| Failure::input(format!("--layout: {error}")))?;
        let outcome = run_raw(engine, plan, real);
        drop(directory);
        outcome
    }

    /// Members in memory, or files that go with the directory.
    fn members(
        &self,
        count: u16,
        size: Sectors,
    ) -> Result<(Vec<Member>, Option<RunDirectory>), Failure> {
        let (Self::RawFiles(parent) | Self::Mounted(parent)) = self else {
            let member = || MemoryMember::new(size).map(Member::Memory);
            let members: Result<Vec<Member>, EngineError> = (0..count).map(|_| member()).collect();
            return Ok((members.map_err(Failure::failed)?, None));
        };
        clean(parent)?;
        let made = make_directory(parent, count, size.bytes())?;
        let member = |index| {
            let path = made.member_path(index).unwrap_or_default();
            let file = made.open_member(index)?;
            FileMember::new(file, &path, FileOptions::default())
        };
        let members: Result<Vec<Member>, EngineError> =
            (0..count).map(|index| Ok(Member::File(Box::new(member(index)?)))).collect();
        Ok((members.map_err(Failure::failed)?, Some(made)))
    }
}

/// A plan for a target with a filesystem, or without anything.
fn planned(options: &Run, workload: &dyn Workload, setting: &Setting) -> Result<Plan, Failure> {
    workload.plan(setting).map_err(|error| {
        Failure::input(format!("{} on {}: {error}", workload.kind(), options.target_name()))
    })
}

/// An array of the kernel's md driver with a filesystem on it.
fn kernel_md(real: Real<'_>, parent: &Path, plan: Plan) -> Result<RunRecord, Failure> {
    let layout = &real.options.layout();
    let (filesystem, md) = (real.options.filesystem(), KernelMdOptions::default());
    KernelMdArray::check_host(layout, filesystem, md).map_err(failure)?;
    let size = member_size(layout, room(&plan, filesystem))?.bytes();
    clean(parent)?;
    (real.tell)(Notification::Step("making an array and a filesystem"));
    let array = KernelMdArray::new(parent, layout, size, filesystem, md).map_err(failure)?;
    let members = || Some(array.totals());
    let record = in_directory(&array.path(), plan, real.cancel, &members, real.tell);
    (real.tell)(Notification::Step("checking the filesystem"));
    let finished = array.finish();
    let record = record.map_err(failure)?;
    finished.map_err(failure)?;
    Ok(record)
}

/// Makes member files.
fn make_directory(parent: &Path, count: u16, bytes: u64) -> Result<RunDirectory, Failure> {
    RunDirectory::create(parent, count, bytes).map_err(|error| {
        let advice = match error.kind() {
            EngineErrorKind::NoRoom => "make room, or give the workload a smaller size",
            _ => "choose a directory you may write to",
        };
        Failure::input(format!("{error}; {advice}"))
    })
}

/// Removes what killed runs left in a directory that can be written to.
fn clean(parent: &Path) -> Result<(), Failure> {
    DirectoryTarget::check_directory(parent).map_err(Failure::input)?;
    for path in clean_leftovers(parent).map_err(Failure::input)?.removed {
        output::removed(&path);
    }
    Ok(())
}

/// The smallest members with which an array of this layout has so many bytes.
fn member_size(layout: &Layout, room: u64) -> Result<Sectors, Failure> {
    let named = NamedLayout::plain(layout.clone());
    member_for(&named, room).map_err(Failure::input)
}

/// Bytes an array must have for a plan on a filesystem.
fn room(plan: &Plan, filesystem: Filesystem) -> u64 {
    filesystem_room(plan.room).max(filesystem.least_bytes())
}

/// What went wrong on a real target, and the exit status that suits it.
fn failure(error: EngineError) -> Failure {
    match error.kind() {
        EngineErrorKind::Cancelled => Failure::Interrupted,
        EngineErrorKind::NotSupported | EngineErrorKind::NoRoom => Failure::input(error),
        _ => Failure::failed(error),
    }
}

/// Fills, runs, verifies.
fn run_raw(engine: Engine, plan: RawPlan, real: Real<'_>) -> Result<RunRecord, Failure> {
    let (cancel, tell) = (real.cancel, real.tell);
    let run = || {
        let mut target = RawTarget::new(engine, true)?;
        tell(Notification::Step("filling what is read"));
        for (start, end) in &plan.extents {
            let (start, end) = (start / 4096 * 4096, end.next_multiple_of(4096));
            let end = end.min(target.engine().array().capacity().bytes() / 4096 * 4096);
            target.fill(start, end - start, cancel)?;
        }
        tell(Notification::Step("running"));
        let result = target.run(plan, cancel)?;
        tell(Notification::Step("comparing all members"));
        Ok((result.record, target.verify_members(cancel)?))
    };
    let (mut record, wrong) = run().map_err(failure)?;
    if let Some(wrong) = wrong.first() {
        return Err(Failure::failed(format!(
            "wrong bytes found on members after the run: {wrong}"
        )));
    }
    record.memory.push_str("; every byte read was verified, and all members after the run");
    Ok(record)
}
