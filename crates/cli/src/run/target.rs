//! Where a workload runs.

use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::atomic::AtomicBool;

use raidlab_core::policy::ReadPolicy;
use raidlab_core::{Layout, SECTOR_BYTES, Sectors, Settings};
use raidlab_engine::{
    Engine, EngineConfig, EngineError, EngineErrorKind, FileMember, FileOptions, Filesystem,
    KernelMdArray, KernelMdOptions, Member, MemoryMember, RawTarget, RunDirectory, clean_leftovers,
};
use raidlab_study::{NamedLayout, filesystem_room};
use raidlab_workload::null::NullTarget;
use raidlab_workload::raw::RawPlan;
use raidlab_workload::{Plan, RunRecord, Setting, Workload};

use super::{Run, virtual_time};
use crate::compare::member_for;
use crate::failure::Failure;
use crate::mounted::{differing, in_directory, on_array};

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
}

impl FromStr for Target {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "null" => return Ok(Self::Null),
            "modelled" => return Ok(Self::Modelled),
            "modelled-raw" => return Ok(Self::ModelledRaw),
            "raw:memory" => return Ok(Self::RawMemory),
            _ => {}
        }
        let right = "write modelled, modelled-raw, null, a directory, raw:memory, raw:DIR, \
                     mounted:DIR or md:DIR (a directory of such a name: ./null)";
        let directory = |path: &str| match std::fs::metadata(path) {
            Ok(there) if there.is_dir() => Ok(PathBuf::from(path)),
            Ok(_) => Err(format!("--target {text}: {path} is not a directory; {right}")),
            Err(error) => Err(format!("--target {text}: {path}: {error}; {right}")),
        };
        match text.split_once(':') {
            Some(("raw", path)) => directory(path).map(Self::RawFiles),
            Some(("mounted", path)) => directory(path).map(Self::Mounted),
            Some(("md", path)) => directory(path).map(Self::KernelMd),
            _ => directory(text).map(Self::Directory),
        }
    }
}

impl Target {
    /// Memory of the host in bytes, where the target has one.
    pub(super) fn memory(&self) -> Option<u64> {
        match self {
            Self::Directory(_) | Self::Mounted(_) | Self::KernelMd(_) => {
                crate::compare::host_memory()
            }
            _ => None,
        }
    }

    /// Runs a workload.
    pub(super) fn run(
        &self,
        options: &Run,
        workload: &dyn Workload,
        setting: Setting,
        cancel: &'static AtomicBool,
    ) -> Result<RunRecord, Failure> {
        let plan = |setting: &Setting| {
            workload.plan(setting).map_err(|error| {
                Failure::input(format!("{} on {}: {error}", workload.kind(), options.target))
            })
        };
        match self {
            Self::Null => NullTarget::default()
                .run(plan(&setting)?)
                .map_err(|error| Failure::failed(format!("{}: {error:?}", workload.kind()))),
            Self::Modelled | Self::ModelledRaw => {
                virtual_time::run(options, workload, setting, *self == Self::Modelled)
            }
            Self::RawMemory | Self::RawFiles(_) => self.raw(options, workload, setting, cancel),
            Self::Directory(path) => {
                in_directory(path, plan(&setting)?, cancel, &|| None).map_err(failure)
            }
            Self::Mounted(parent) => self.mounted(options, parent, plan(&setting)?, cancel),
            Self::KernelMd(parent) => {
                let filesystem = filesystem(options)?;
                let plan = plan(&setting)?;
                let size = member_size(&options.layout, filesystem_room(plan.room))?.bytes();
                let md = KernelMdOptions::default();
                let array = KernelMdArray::new(parent, &options.layout, size, filesystem, md);
                let array = array.map_err(failure)?;
                let record = in_directory(&array.path(), plan, cancel, &|| Some(array.totals()));
                let finished = array.finish();
                let record = record.map_err(failure)?;
                finished.map_err(failure)?;
                Ok(record)
            }
        }
    }

    /// An array on member files with a filesystem on it.
    fn mounted(
        &self,
        options: &Run,
        parent: &Path,
        plan: Plan,
        cancel: &AtomicBool,
    ) -> Result<RunRecord, Failure> {
        let filesystem = filesystem(options)?;
        let size = member_size(&options.layout, filesystem_room(plan.room))?;
        let (members, directory) = self.members(options.layout.members, size)?;
        let engine = Engine::new(&EngineConfig::new(options.layout.clone()), members);
        let engine = engine.map_err(|error| Failure::input(format!("--layout: {error}")))?;
        let outcome = on_array(engine, parent, filesystem, plan, cancel);
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
        options: &Run,
        workload: &dyn Workload,
        setting: Setting,
        cancel: &AtomicBool,
    ) -> Result<RunRecord, Failure> {
        let bad =
            |error| Failure::input(format!("{} on {}: {error}", workload.kind(), options.target));
        let room = workload.raw_room(setting.copies).map_err(bad)?;
        let member = member_size(&options.layout, room)?;
        let (members, directory) = self.members(options.layout.members, member)?;
        let engine = Engine::new(&EngineConfig::new(options.layout.clone()), members);
        let engine = engine.map_err(|error| Failure::input(format!("--layout: {error}")))?;
        let capacity = engine.array().capacity().bytes();
        let block = u64::from(engine.array().logical_block()) * SECTOR_BYTES;
        workload.check_raw(capacity, setting.copies, block).map_err(bad)?;
        let setting = Setting { space: Some(capacity), ..setting };
        let plan = workload.plan(&setting).and_then(|plan| RawPlan::new(plan, capacity));
        let plan = plan.map_err(bad)?;
        let outcome = run_raw(engine, plan, cancel);
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
        for path in clean_leftovers(parent).map_err(Failure::input)?.removed {
            crate::output::note(&format!(
                "removed what a killed run left behind: {}",
                path.display()
            ));
        }
        let made = RunDirectory::create(parent, count, size.bytes()).map_err(Failure::input)?;
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

/// The smallest members with which an array of this layout has so many bytes.
fn member_size(layout: &Layout, room: u64) -> Result<Sectors, Failure> {
    let named = NamedLayout {
        name: layout.to_string(),
        layout: layout.clone(),
        read_policy: ReadPolicy::default(),
        settings: Settings::default(),
        drives: 0,
        each: Vec::new(),
        hardware: raidlab_study::Hardware::default(),
    };
    member_for(&named, room).map_err(Failure::input)
}

fn filesystem(options: &Run) -> Result<Filesystem, Failure> {
    let known = || Filesystem::ALL.map(Filesystem::name).join(", ");
    Filesystem::from_name(&options.filesystem).ok_or_else(|| {
        Failure::input(format!("--filesystem {}: known: {}", options.filesystem, known()))
    })
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
fn run_raw(engine: Engine, plan: RawPlan, cancel: &AtomicBool) -> Result<RunRecord, Failure> {
    let run = || {
        let mut target = RawTarget::new(engine, true)?;
        for (start, end) in &plan.extents {
            let (start, end) = (start / 4096 * 4096, end.next_multiple_of(4096));
            let end = end.min(target.engine().array().capacity().bytes() / 4096 * 4096);
            target.fill(start, end - start, cancel)?;
        }
        let result = target.run(plan, cancel)?;
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
