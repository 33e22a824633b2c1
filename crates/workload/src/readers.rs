//! Parallel readers: each copy copies a large file of its own to `/dev/null`.
//!
//! The study of 2007 that this is from wrote five files of 3200 MB one after the other to a fresh
//! filesystem and then ran 1 to 5 `cp` at once. All files are made whatever the number of copies, so that
//! each lies where it lay there. Blocks are those of FreeBSD's `cp` of that time for large files, 64 KiB;
//! that of Linux then went by the destination, 4 KiB for `/dev/null`. Which it is matters little where
//! there is read-ahead.

use std::sync::Arc;

use raidlab_core::{Size, Time};

use crate::content::file_seed;
use crate::error::{WorkloadError, WorkloadErrorKind};
use crate::fill_files::{Fill, fill_files};
use crate::kinds::Workload;
use crate::metric::{Metric, per_second};
use crate::op::{Content, FileDescriptor, FilePath, Mark, Op, OpResult, OpenFlags};
use crate::parameters::Parameters;
use crate::plan::{Expected, FileNeed, Plan, Planned, Process, SeededBytes, Setting};
use crate::record::RunRecord;
use crate::{LARGEST_BLOCK, MOST_PROCESSES};

const FROM: FileDescriptor = FileDescriptor(0);
const TO: FileDescriptor = FileDescriptor(1);

#[derive(Clone, Debug)]
struct Readers {
    files: u32,
    /// Bytes of each file.
    size: u64,
    block: u64,
}

pub(crate) fn make(given: &mut Parameters) -> Result<Arc<dyn Workload>, WorkloadError> {
    let made = Readers {
        // At most MOST_PROCESSES, so it fits.
        files: given.number("files", 5, 1..=u64::from(MOST_PROCESSES))? as u32,
        size: given.size("size", 3_200_000_000)?,
        block: given.size("block", 64 << 10)?,
    };
    if made.block > LARGEST_BLOCK {
        let (block, most) = (Size(made.block), Size(LARGEST_BLOCK));
        let reason = format!("{block} is too large; at most {most}");
        return Err(WorkloadError::new(WorkloadErrorKind::Block, "block", reason));
    }
    Ok(Arc::new(made))
}

impl Workload for Readers {
    fn kind(&self) -> &'static str {
        "cp-parallel"
    }

    fn default_name(&self) -> String {
        "cp_parallel".to_string()
    }

    fn description(&self) -> String {
        let (size, block) = (Size(self.size), Size(self.block));
        let of = self.files;
        format!(
            "cp of a file of {size}, one of {of} written one after the other, to /dev/null in blocks \
             of {block}"
        )
    }

    fn metrics(&self) -> Vec<Metric> {
        vec![Metric::MB_PER_SECOND]
    }

    fn values(&self, record: &RunRecord) -> Vec<Option<f64>> {
        let bytes = record.totals().reads.bytes;
        vec![per_second(bytes as f64 / 1e6, record.last_done())]
    }

    fn plan(&self, setting: &Setting) -> Result<Plan, WorkloadError> {
        let copies = setting.copies;
        if copies > self.files {
            let reason = format!(
                "{} are too few for {copies} copies that read a file each; use files={copies}",
                self.files
            );
            return Err(WorkloadError::new(WorkloadErrorKind::Parameter, "files", reason));
        }
        let mut plan = Plan { phases: vec!["read"], ..Plan::default() };
        let mut fills = Vec::new();
        for index in 0..self.files {
            let path = FilePath::target(format!("cp.{index}"));
            let seed = file_seed(setting.seed, u64::from(index));
            let bytes = self.size;
            plan.files.push(FileNeed { path: path.clone(), bytes, unit: self.block });
            let content = Arc::new(SeededBytes { seed, len: bytes });
            plan.expected.push(Expected { path: path.clone(), bytes: content });
            plan.room = plan.room.saturating_add(bytes);
            if index < copies {
                let process = Reader::new(path.clone(), self.block);
                plan.run.push(Planned { copy: index, process: Box::new(process) });
            }
            fills.push(Fill { path, bytes, content: Content::Seeded { seed } });
        }
        plan.prepare = fill_files(fills);
        Ok(plan)
    }

    fn resized(&self, bytes: u64) -> Result<Arc<dyn Workload>, WorkloadError> {
        if bytes == 0 {
            let reason = "a file of nothing cannot be read; give more than 0B".to_string();
            return Err(WorkloadError::new(WorkloadErrorKind::Size, "size", reason));
        }
        Ok(Arc::new(Self { size: bytes, ..self.clone() }))
    }
}

/// A `cp`.
#[derive(Debug)]
struct Reader {
    path: FilePath,
    block: u64,
    next: Next,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    Begin,
    Open,
    OpenNull,
    Read,
    /// What was read is written, or it was the end.
    Write,
    CloseNull,
    End,
    Done,
}

impl Reader {
    fn new(path: FilePath, block: u64) -> Self {
        Self { path, block, next: Next::Begin }
    }
}

impl Process for Reader {
    fn next(&mut self, _now: Time, last: OpResult) -> Op {
        let (op, next) = match self.next {
            Next::Begin => (Op::Mark(Mark::Begin(0)), Next::Open),
            Next::Open => {
                let path = self.path.clone();
                (Op::Open { fd: FROM, path, flags: OpenFlags::READ }, Next::OpenNull)
            }
            Next::OpenNull => {
                let flags = OpenFlags { create: false, ..OpenFlags::WRITE };
                (Op::Open { fd: TO, path: FilePath::null(), flags }, Next::Read)
            }
            Next::Read => (Op::Read { fd: FROM, len: self.block, times: 1 }, Next::Write),
            Next::Write => match last.moved() {
                0 => (Op::Close { fd: FROM }, Next::CloseNull),
                len => {
                    let content = Content::Buffer { from: 0 };
                    (Op::Write { fd: TO, len, content, times: 1 }, Next::Read)
                }
            },
            Next::CloseNull => (Op::Close { fd: TO }, Next::End),
            Next::End => (Op::Mark(Mark::End(0)), Next::Done),
            Next::Done => (Op::Done, Next::Done),
        };
        self.next = next;
        op
    }
}
