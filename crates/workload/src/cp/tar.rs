//! `cp` of an archive from elsewhere, which was read before and so lies in memory, to the target.

use std::sync::Arc;

use raidlab_core::{Size, Time};

use super::{FileCopy, Profile, Way, Year};
use crate::error::WorkloadError;
use crate::kinds::Workload;
use crate::metric::Metric;
use crate::op::{FilePath, Mark, Op, OpResult};
use crate::parameters::Parameters;
use crate::plan::{
    Expected, FileNeed, Memory, Plan, Planned, Process, SeededBytes, Setting, SourceFile,
};
use crate::record::RunRecord;
use crate::steps::{
    Measured, blocks, check_raw_whole, check_whole, copy_path, one_phase, planned, read_file,
    sector, wrong,
};
use raidlab_random::mix;

pub(crate) const SUMMARY: &str = "a file from elsewhere, in memory, copied to the target: size=220MiB \
    cached=true profile=today|2005 block=128KiB (2005: 4KiB) metric=seconds|mib_per_s|mb_per_s";

/// The name of the archive below the source.
const NAME: &str = "linux.tar";

#[derive(Clone, Debug)]
struct CpTar {
    size: u64,
    cached: bool,
    profile: Profile,
    measured: Measured,
}

pub(crate) fn make(parameters: &mut Parameters) -> Result<Arc<dyn Workload>, WorkloadError> {
    let size = parameters.size("size", 220 << 20)?;
    let cached = parameters.flag("cached", true)?;
    let profile = Profile::from(parameters)?;
    let measured = Measured::from(parameters, Metric::SECONDS)?;
    Ok(Arc::new(CpTar { size, cached, profile, measured }))
}

#[derive(Debug)]
enum Stage {
    Begin,
    Copy,
    Over,
}

/// Copies one file within phase 0.
#[derive(Debug)]
struct OneFile {
    copy: FileCopy,
    stage: Stage,
}

impl Process for OneFile {
    fn next(&mut self, _now: Time, last: OpResult) -> Op {
        match self.stage {
            Stage::Begin => {
                self.stage = Stage::Copy;
                Op::Mark(Mark::Begin(0))
            }
            Stage::Copy => self.copy.next(&last).unwrap_or_else(|| {
                self.stage = Stage::Over;
                Op::Mark(Mark::End(0))
            }),
            Stage::Over => Op::Done,
        }
    }
}

impl Workload for CpTar {
    fn kind(&self) -> &'static str {
        "cp-tar"
    }

    fn default_name(&self) -> String {
        let year = if self.profile.year == Year::Today { "" } else { " 2005" };
        format!("cp-tar{year}")
    }

    fn description(&self) -> String {
        let memory = if self.cached { " that lies in memory" } else { "" };
        let (size, profile) = (Size(self.size), self.profile.words());
        format!("copies a file of {size} from elsewhere{memory} to the target ({profile})")
    }

    fn metrics(&self) -> Vec<Metric> {
        self.measured.metrics()
    }

    fn values(&self, record: &RunRecord) -> Vec<Option<f64>> {
        self.measured.values(record.totals().writes.bytes, record)
    }

    fn plan(&self, setting: &Setting) -> Result<Plan, WorkloadError> {
        check_whole(sector(setting), self.size, ("block", self.profile.block))?;
        let bytes = Arc::new(SeededBytes { seed: mix(&[setting.seed]), len: self.size });
        let mut plan = Plan {
            phases: one_phase("copy"),
            sources: vec![SourceFile { name: NAME.into(), bytes: bytes.clone() }],
            room: blocks(self.size).saturating_mul(setting.copies.into()),
            ..Plan::default()
        };
        if self.cached {
            plan.warm.push(planned(0, read_file(FilePath::source(NAME), self.size)));
            plan.memory = Memory::Warm;
        }
        for copy in 0..setting.copies {
            let path = copy_path("linux", copy, ".tar");
            let way = Way::Blocks(self.profile.block);
            let file = FileCopy::new(FilePath::source(NAME), path.clone(), way, self.profile.year);
            let process = Box::new(OneFile { copy: file, stage: Stage::Begin });
            plan.run.push(Planned { copy, process });
            let need = FileNeed { path: path.clone(), bytes: self.size, unit: self.profile.block };
            plan.files.push(need);
            plan.expected.push(Expected { path, bytes: bytes.clone() });
        }
        Ok(plan)
    }

    fn check_raw(&self, space: u64, copies: u32, logical_block: u64) -> Result<(), WorkloadError> {
        let block = ("block", self.profile.block);
        check_raw_whole(self, self.size, block, (space, copies, logical_block))
    }

    fn resized(&self, bytes: u64) -> Result<Arc<dyn Workload>, WorkloadError> {
        if bytes == 0 {
            return Err(wrong("size", "must be more than nothing"));
        }
        Ok(Arc::new(Self { size: bytes, ..self.clone() }))
    }
}
