//! Where a workload runs.

use std::path::PathBuf;
use std::str::FromStr;
use std::sync::atomic::AtomicBool;

use raidlab_core::policy::ReadPolicy;
use raidlab_core::{SECTOR_BYTES, Sectors, Settings};
use raidlab_engine::{
    Engine, EngineConfig, EngineError, EngineErrorKind, FileMember, FileOptions, Member,
    MemoryMember, RawTarget, RunDirectory, clean_leftovers,
};
use raidlab_study::NamedLayout;
use raidlab_workload::null::NullTarget;
use raidlab_workload::raw::RawPlan;
use raidlab_workload::{RunRecord, Setting, Workload};

use super::{Run, virtual_time};
use crate::compare::member_for;
use crate::failure::Failure;

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
            _ => directory(text).map(Self::Directory),
        }
    }
}

impl Target {
    /// Memory of the host in bytes, where the target has one.
    pub(super) fn memory(&self) -> Option<u64> {
        match self {
            Self::Directory(_) => host_memory(),
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
                let what = format!("{}: directories are not wired up yet", path.display());
                Err(Failure::input(what))
            }
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
        let named = NamedLayout {
            name: options.layout.to_string(),
            layout: options.layout.clone(),
            read_policy: ReadPolicy::default(),
            settings: Settings::default(),
            drives: 0,
        };
        let member = member_for(&named, room).map_err(Failure::input)?;
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
        let Self::RawFiles(parent) = self else {
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
    let (mut record, wrong) = run().map_err(|error: EngineError| match error.kind() {
        EngineErrorKind::Cancelled => Failure::Interrupted,
        _ => Failure::failed(error),
    })?;
    if let Some(wrong) = wrong.first() {
        return Err(Failure::failed(format!(
            "wrong bytes found on members after the run: {wrong}"
        )));
    }
    record.memory.push_str("; every byte read was verified, and all members after the run");
    Ok(record)
}

/// Memory of this machine in bytes; `None` where the system does not tell.
fn host_memory() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib * 1024)
}
