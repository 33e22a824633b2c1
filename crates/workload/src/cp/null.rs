//! `cp FILE /dev/null`: reads a file that was made before.

use std::sync::Arc;

use raidlab_core::Size;

use super::{Profile, Year};
use crate::dd::to_null;
use crate::error::WorkloadError;
use crate::kinds::Workload;
use crate::metric::Metric;
use crate::op::{FileDescriptor, FilePath, Op, OpenFlags};
use crate::parameters::Parameters;
use crate::plan::{FileNeed, Plan, Setting};
use crate::record::RunRecord;
use crate::steps::{
    Measured, Start, blocks, check_raw_whole, check_whole, copy_path, make_file, one_phase, phase,
    planned, sector, wrong,
};
use raidlab_random::mix;

pub(crate) const SUMMARY: &str = "a file copied to /dev/null: size=1GiB just_written=false \
    profile=today|2005 block=128KiB (2005: 4KiB) metric=seconds|mib_per_s|mb_per_s";

#[derive(Clone, Debug)]
struct CpNull {
    size: u64,
    start: Start,
    profile: Profile,
    measured: Measured,
}

pub(crate) fn make(parameters: &mut Parameters) -> Result<Arc<dyn Workload>, WorkloadError> {
    let size = parameters.size("size", 1 << 30)?;
    let start = Start::uncached(parameters)?;
    let profile = Profile::from(parameters)?;
    let measured = Measured::from(parameters, Metric::SECONDS)?;
    Ok(Arc::new(CpNull { size, start, profile, measured }))
}

impl CpNull {
    fn ops(&self, path: FilePath) -> impl Iterator<Item = Op> + use<> {
        let (fd, null) = (FileDescriptor(0), FileDescriptor(1));
        let flags = OpenFlags { create: false, ..OpenFlags::WRITE };
        let opens = [
            Op::Open { fd, path, flags: OpenFlags::READ },
            Op::Open { fd: null, path: FilePath::null(), flags },
        ];
        let copied = to_null(fd, null, self.size, self.profile.block, true);
        let closes = [Op::Close { fd: null }, Op::Close { fd }];
        phase(0, opens.into_iter().chain(copied).chain(closes))
    }
}

impl Workload for CpNull {
    fn kind(&self) -> &'static str {
        "cp-null"
    }

    fn default_name(&self) -> String {
        let year = if self.profile.year == Year::Today { "" } else { " 2005" };
        format!("cp-null{year}")
    }

    fn description(&self) -> String {
        let (size, start) = (Size(self.size), self.start.words());
        format!("copies a file of {size}{start} to /dev/null ({})", self.profile.words())
    }

    fn metrics(&self) -> Vec<Metric> {
        self.measured.metrics()
    }

    fn values(&self, record: &RunRecord) -> Vec<Option<f64>> {
        self.measured.values(record.totals().reads.bytes, record)
    }

    fn plan(&self, setting: &Setting) -> Result<Plan, WorkloadError> {
        check_whole(sector(setting), self.size, ("block", self.profile.block))?;
        let mut plan = Plan {
            phases: one_phase("copy"),
            memory: self.start.memory(),
            room: blocks(self.size).saturating_mul(setting.copies.into()),
            ..Plan::default()
        };
        for copy in 0..setting.copies {
            let path = copy_path("cp-null", copy, "");
            let seed = mix(&[setting.seed, copy.into()]);
            plan.prepare.push(planned(copy, make_file(path.clone(), self.size, seed)));
            plan.run.push(planned(copy, self.ops(path.clone())));
            plan.files.push(FileNeed { path, bytes: self.size, unit: self.profile.block });
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
