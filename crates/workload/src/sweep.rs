//! Block-size sweep: each copy writes a file from start to end in blocks of one size, or once for each of
//! several sizes.
//!
//! The flush at the end is within the time: without it, a file that fits into memory would measure that.
//! Opening is not, since it frees what the pass before has written. With several sizes the same file is
//! written again, so that all of them write to the same part of the drives as far as the filesystem lets
//! them, and copies begin each pass together. What is written is zeroes.

use std::collections::VecDeque;
use std::sync::Arc;

use raidlab_core::{Size, Time};

use crate::LARGEST_BLOCK;
use crate::error::{WorkloadError, WorkloadErrorKind};
use crate::kinds::Workload;
use crate::metric::{Metric, mib_per_second};
use crate::op::{Content, FileDescriptor, FilePath, Mark, Op, OpResult, OpenFlags};
use crate::parameters::Parameters;
use crate::plan::{Expected, FileNeed, Plan, Planned, Process, Setting, Zeroes};
use crate::record::RunRecord;
use crate::steps::writes;

const SLOT: FileDescriptor = FileDescriptor(0);

#[derive(Clone, Debug)]
struct Sweep {
    size: u64,
    /// At least one; several only of those in [`NAMED`].
    blocks: Vec<u64>,
}

pub(crate) fn make(given: &mut Parameters) -> Result<Arc<dyn Workload>, WorkloadError> {
    let size = given.size("size", 1 << 30)?;
    let block = given.optional_size("block")?;
    let blocks = match (block, given.text("blocks")) {
        (Some(_), Some(_)) => {
            return Err(wrong("blocks", "cannot be given together with block; give one".into()));
        }
        (block, None) => vec![block.unwrap_or(4096)],
        (None, Some(text)) => text.split(',').map(one_of_many).collect::<Result<_, _>>()?,
    };
    for (index, block) in blocks.iter().enumerate() {
        if blocks[..index].contains(block) {
            return Err(wrong("blocks", format!("{} is given twice", Size(*block))));
        }
    }
    let made = Sweep { size, blocks };
    made.check()?;
    Ok(Arc::new(made))
}

fn wrong(key: &str, reason: String) -> WorkloadError {
    WorkloadError::new(WorkloadErrorKind::Parameter, key, reason)
}

fn one_of_many(text: &str) -> Result<u64, WorkloadError> {
    let size = text.parse::<Size>().map_err(|reason| wrong("blocks", reason))?.0;
    if named(size).is_some() {
        return Ok(size);
    }
    let reason = format!(
        "`{}` is not a power of two from 512B to 1GiB; give others one by one as block",
        text.trim()
    );
    Err(wrong("blocks", reason))
}

/// The metric of a block size among several, and the name of its phase.
fn named(block: u64) -> Option<(&'static str, &'static str)> {
    let index = block.is_power_of_two().then(|| block.trailing_zeros().checked_sub(9)).flatten()?;
    NAMED.get(index as usize).copied()
}

impl Sweep {
    fn check(&self) -> Result<(), WorkloadError> {
        let largest = self.blocks.iter().copied().max().unwrap_or(0);
        let most = self.size.min(LARGEST_BLOCK);
        if largest > most {
            let reason = format!("{} is too large; at most {}", Size(largest), Size(most));
            return Err(WorkloadError::new(WorkloadErrorKind::Block, "block", reason));
        }
        Ok(())
    }
}

impl Workload for Sweep {
    fn kind(&self) -> &'static str {
        "blocksize-sweep"
    }

    fn default_name(&self) -> String {
        match &self.blocks[..] {
            [block] => format!("blocksize_sweep_{}", Size(*block)),
            _ => "blocksize_sweep".to_string(),
        }
    }

    fn description(&self) -> String {
        let blocks: Vec<String> =
            self.blocks.iter().map(|block| Size(*block).to_string()).collect();
        let size = Size(self.size);
        format!("writes a file of {size} in blocks of {} and flushes it", blocks.join(", then "))
    }

    fn metrics(&self) -> Vec<Metric> {
        match &self.blocks[..] {
            [_] => vec![Metric::MIB_PER_SECOND],
            blocks => {
                let names = blocks.iter().filter_map(|block| named(*block));
                names.map(|(metric, _)| Metric::rate(metric, "MiB/s")).collect()
            }
        }
    }

    fn values(&self, record: &RunRecord) -> Vec<Option<f64>> {
        let of_phase = |index: u16| {
            let phase = record.phase(index)?;
            mib_per_second(phase.writes.bytes, phase.took())
        };
        (0u16..).zip(&self.blocks).map(|(index, _)| of_phase(index)).collect()
    }

    fn plan(&self, setting: &Setting) -> Result<Plan, WorkloadError> {
        let phase = |block: &u64| named(*block).map_or("write", |(_, phase)| phase);
        let mut plan = Plan {
            phases: self.blocks.iter().map(phase).collect(),
            barriers: vec![setting.copies],
            room: self.size.saturating_mul(u64::from(setting.copies)),
            ..Plan::default()
        };
        let unit = self.blocks.iter().copied().max().unwrap_or(1);
        for copy in 0..setting.copies {
            let path = FilePath::target(format!("sweep.{copy}"));
            plan.files.push(FileNeed { path: path.clone(), bytes: self.size, unit });
            let zeroes = Arc::new(Zeroes { len: self.size });
            plan.expected.push(Expected { path: path.clone(), bytes: zeroes });
            let process = Writer::new(path, self.size, &self.blocks);
            plan.run.push(Planned { copy, process: Box::new(process) });
        }
        Ok(plan)
    }

    fn resized(&self, bytes: u64) -> Result<Arc<dyn Workload>, WorkloadError> {
        let made = Self { size: bytes, ..self.clone() };
        made.check()?;
        Ok(Arc::new(made))
    }
}

#[derive(Debug)]
struct Writer {
    ops: VecDeque<Op>,
}

impl Writer {
    fn new(path: FilePath, size: u64, blocks: &[u64]) -> Self {
        let fd = SLOT;
        let mut ops = VecDeque::new();
        for (phase, block) in (0u16..).zip(blocks) {
            ops.push_back(Op::Open { fd, path: path.clone(), flags: OpenFlags::WRITE });
            ops.push_back(Op::Barrier(0));
            ops.push_back(Op::Mark(Mark::Begin(phase)));
            ops.extend(writes(fd, size, *block, Content::Zeroes));
            ops.push_back(Op::Fsync { fd });
            ops.push_back(Op::Mark(Mark::End(phase)));
            ops.push_back(Op::Close { fd });
        }
        Self { ops }
    }
}

impl Process for Writer {
    fn next(&mut self, _now: Time, _last: OpResult) -> Op {
        self.ops.pop_front().unwrap_or(Op::Done)
    }
}

macro_rules! names {
    ($($size:literal)*) => {
        [$((concat!("mib_per_s_", $size), concat!("write_", $size))),*]
    };
}

/// The metric and the phase of each power of two from 512 B on.
const NAMED: [(&str, &str); 22] = names!(
    "512B" "1KiB" "2KiB" "4KiB" "8KiB" "16KiB" "32KiB" "64KiB" "128KiB" "256KiB" "512KiB" "1MiB" "2MiB"
    "4MiB" "8MiB" "16MiB" "32MiB" "64MiB" "128MiB" "256MiB" "512MiB" "1GiB"
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_power_of_two_has_its_own_name() {
        for (power, names) in (9..).zip(NAMED) {
            let size = Size(1 << power);
            assert_eq!(named(size.0), Some(names));
            assert_eq!(names.0, format!("mib_per_s_{size}"));
            assert_eq!(names.1, format!("write_{size}"));
        }
        assert_eq!((named(1 << 31), named(256), named(3 << 10)), (None, None, None));
    }
}
