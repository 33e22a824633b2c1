//! Processes whose operations are known from the start, and what the copying workloads share.

use std::fmt;
use std::sync::Arc;

use raidlab_core::{SECTOR_BYTES, Size, Time};

use crate::error::{WorkloadError, WorkloadErrorKind};
use crate::kinds::Workload;
use crate::metric::{Metric, mib_per_second, per_second};
use crate::op::{Content, FileDescriptor, FilePath, Mark, Op, OpResult, OpenFlags};
use crate::parameters::Parameters;
use crate::plan::{Memory, Planned, Process, Setting};
use crate::record::RunRecord;

/// Bytes of each write and read where files are made or read outside the run.
pub(crate) const PIECE: u64 = 1 << 20;

/// A process that asks for the operations of an iterator, whatever comes of them, and is done.
pub(crate) struct Steps {
    ops: Box<dyn Iterator<Item = Op> + Send>,
}

impl fmt::Debug for Steps {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Steps")
    }
}

impl Process for Steps {
    fn next(&mut self, _now: Time, _last: OpResult) -> Op {
        self.ops.next().unwrap_or(Op::Done)
    }
}

/// A process of a copy from its operations.
pub(crate) fn planned(copy: u32, ops: impl Iterator<Item = Op> + Send + 'static) -> Planned {
    Planned { copy, process: Box::new(Steps { ops: Box::new(ops) }) }
}

/// The operations between the begin and the end of phase `index`.
pub(crate) fn phase(index: u16, ops: impl Iterator<Item = Op>) -> impl Iterator<Item = Op> {
    let (begin, end) = (Op::Mark(Mark::Begin(index)), Op::Mark(Mark::End(index)));
    std::iter::once(begin).chain(ops).chain([end])
}

/// Reads or writes of `len` bytes in whole blocks, as one operation, and a shorter one for the rest.
fn pieces(len: u64, block: u64, op: impl Fn(u64, u64) -> Op) -> impl Iterator<Item = Op> {
    let (whole, rest) = (len / block, len % block);
    let whole = (whole > 0).then(|| op(block, whole));
    whole.into_iter().chain((rest > 0).then(|| op(rest, 1)))
}

/// Writes of `len` bytes at the position in blocks of `block`.
pub(crate) fn writes(
    fd: FileDescriptor,
    len: u64,
    block: u64,
    content: Content,
) -> impl Iterator<Item = Op> {
    pieces(len, block, move |len, times| Op::Write { fd, len, content, times })
}

/// Makes a file of seeded bytes.
pub(crate) fn make_file(path: FilePath, len: u64, seed: u64) -> impl Iterator<Item = Op> {
    make_file_of(path, len, Content::Seeded { seed })
}

/// Makes a file.
pub(crate) fn make_file_of(path: FilePath, len: u64, content: Content) -> impl Iterator<Item = Op> {
    let fd = FileDescriptor(0);
    std::iter::once(Op::Open { fd, path, flags: OpenFlags::WRITE })
        .chain(writes(fd, len, PIECE, content))
        .chain([Op::Close { fd }])
}

/// Reads a file once.
pub(crate) fn read_file(path: FilePath, len: u64) -> impl Iterator<Item = Op> {
    let fd = FileDescriptor(0);
    std::iter::once(Op::Open { fd, path, flags: OpenFlags::READ })
        .chain(pieces(len, PIECE, move |len, times| Op::Read { fd, len, times }))
        .chain([Op::Close { fd }])
}

/// Copies a file of `len` bytes, outside the run.
pub(crate) fn copy_file(from: FilePath, to: FilePath, len: u64) -> impl Iterator<Item = Op> {
    let (source, target) = (FileDescriptor(0), FileDescriptor(1));
    let content = Content::Buffer { from: 0 };
    let piece = move |at: u64| {
        let len = PIECE.min(len - at);
        let read = Op::Read { fd: source, len, times: 1 };
        [read, Op::Write { fd: target, len, content, times: 1 }]
    };
    let opens = [
        Op::Open { fd: source, path: from, flags: OpenFlags::READ },
        Op::Open { fd: target, path: to, flags: OpenFlags::WRITE },
    ];
    let copied = (0..len.div_ceil(PIECE)).flat_map(move |index| piece(index * PIECE));
    let closes = [Op::Close { fd: target }, Op::Close { fd: source }];
    opens.into_iter().chain(copied).chain(closes)
}

/// What memory holds when a copying workload starts, by its parameters `cached` and `just_written`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Start {
    /// Nothing.
    Cold,
    /// What is copied.
    Cached,
    /// What preparing left there, part of it not yet on the drives.
    JustWritten,
}

impl Start {
    /// From both parameters.
    pub(crate) fn from(parameters: &mut Parameters, cached: bool) -> Result<Self, WorkloadError> {
        let cached = parameters.flag("cached", cached)?;
        let start = Self::uncached(parameters)?;
        Ok(if start == Self::Cold && cached { Self::Cached } else { start })
    }

    /// From `just_written` alone.
    pub(crate) fn uncached(parameters: &mut Parameters) -> Result<Self, WorkloadError> {
        let just_written = parameters.flag("just_written", false)?;
        Ok(if just_written { Self::JustWritten } else { Self::Cold })
    }

    pub(crate) const fn memory(self) -> Memory {
        match self {
            Self::Cold => Memory::Cold,
            Self::Cached => Memory::Warm,
            Self::JustWritten => Memory::JustWritten,
        }
    }

    /// In words, behind what is copied.
    pub(crate) const fn words(self) -> &'static str {
        match self {
            Self::Cold => "",
            Self::Cached => " that lies in memory",
            Self::JustWritten => " that was just written",
        }
    }
}

/// What a copying workload measures: the same values, with the one that was asked for first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Measured {
    headline: Metric,
}

impl Measured {
    const ALL: [Metric; 3] = [Metric::SECONDS, Metric::MIB_PER_SECOND, Metric::MB_PER_SECOND];

    /// From the parameter `metric`.
    pub(crate) fn from(
        parameters: &mut Parameters,
        default: Metric,
    ) -> Result<Self, WorkloadError> {
        let choices = Self::ALL.map(|metric| (metric.name, metric));
        Ok(Self { headline: parameters.choice("metric", default, &choices)? })
    }

    fn others(self) -> impl Iterator<Item = Metric> {
        Self::ALL.into_iter().filter(move |metric| *metric != self.headline)
    }

    /// The headline, then the others.
    pub(crate) fn metrics(self) -> Vec<Metric> {
        std::iter::once(self.headline).chain(self.others()).collect()
    }

    /// The values of a run that moved `bytes`.
    pub(crate) fn values(self, bytes: u64, record: &RunRecord) -> Vec<Option<f64>> {
        let elapsed = record.last_done();
        let value = |metric: Metric| match metric {
            Metric::SECONDS => Some(elapsed.as_secs()),
            Metric::MB_PER_SECOND => per_second(bytes as f64 / 1e6, elapsed),
            _ => mib_per_second(bytes, elapsed),
        };
        self.metrics().into_iter().map(value).collect()
    }
}

/// A parameter's value that cannot be.
pub(crate) fn wrong(key: &str, reason: impl Into<String>) -> WorkloadError {
    WorkloadError::new(WorkloadErrorKind::Parameter, key, reason)
}

/// On a raw target whole blocks of it are moved: `bytes` of a file, `block` at a time. Without one
/// anything goes.
pub(crate) fn check_whole(
    logical_block: Option<u64>,
    bytes: u64,
    (key, block): (&str, u64),
) -> Result<(), WorkloadError> {
    let Some(unit) = logical_block else { return Ok(()) };
    let wrong =
        [(key, block), ("size", bytes)].into_iter().find(|(_, of)| !of.is_multiple_of(unit));
    let Some((key, of)) = wrong else { return Ok(()) };
    let (of, unit) = (Size(of), Size(unit));
    let kind = if key == "size" { WorkloadErrorKind::Size } else { WorkloadErrorKind::Block };
    let reason = format!("{of} is not a multiple of the target's block ({unit})");
    Err(WorkloadError::new(kind, key, reason))
}

/// [`Workload::check_raw`] of a workload that moves `bytes` of a file in whole blocks.
pub(crate) fn check_raw_whole(
    workload: &impl Workload,
    bytes: u64,
    block: (&str, u64),
    (space, copies, logical_block): (u64, u32, u64),
) -> Result<(), WorkloadError> {
    check_whole(Some(logical_block), bytes, block)?;
    let setting = Setting { space: Some(space), ..Setting::new(copies, 0) };
    crate::raw::check(&workload.plan(&setting)?, space, logical_block)
}

/// The block of a raw target, as far as a setting tells: the sector.
pub(crate) fn sector(setting: &Setting) -> Option<u64> {
    setting.space.map(|_| SECTOR_BYTES)
}

/// What a file of `bytes` takes on a filesystem with blocks of 4 KiB.
pub(crate) fn blocks(bytes: u64) -> u64 {
    bytes.next_multiple_of(4096)
}

/// The names of the phases of a workload with one.
pub(crate) fn one_phase(name: &'static str) -> Vec<&'static str> {
    vec![name]
}

/// A path below the target: `text` with the number of a copy.
pub(crate) fn copy_path(text: &str, copy: u32, rest: &str) -> FilePath {
    FilePath::target(Arc::from(format!("{text}-{copy}{rest}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::null::NullTarget;
    use crate::plan::{Plan, SeededBytes, SourceFile};

    #[test]
    fn files_are_made_copied_and_read_whole() {
        for len in [0, 1, PIECE - 1, PIECE, 3 * PIECE + 7] {
            let mut target = NullTarget::default();
            let bytes = Arc::new(SeededBytes { seed: 1, len });
            let ops = make_file(FilePath::target("a"), len, 1)
                .chain(copy_file(FilePath::source("s"), FilePath::target("b"), len))
                .chain(phase(0, read_file(FilePath::target("b"), len)));
            let plan = Plan {
                run: vec![planned(0, ops)],
                phases: one_phase("read"),
                sources: vec![SourceFile { name: "s".into(), bytes }],
                ..Plan::default()
            };
            let record = target.run(plan).expect("all there");
            assert_eq!(record.totals().reads.bytes, len);
            assert_eq!(record.totals().reads.count, len.div_ceil(PIECE));
            for name in ["a", "b"] {
                let id = target.names().find(&FilePath::target(name)).expect("made");
                assert_eq!(target.names().status(id).size, len);
            }
        }
    }

    #[test]
    fn raw_targets_take_whole_blocks() {
        assert_eq!(check_whole(Some(4096), 8192, ("bs", 4096)), Ok(()));
        let error = check_whole(Some(512), 1000, ("bs", 512)).unwrap_err();
        let words = "size: 1000B is not a multiple of the target's block (512B)";
        assert_eq!((error.kind, error.to_string().as_str()), (WorkloadErrorKind::Size, words));
        let error = check_whole(Some(4096), 8192, ("bs", 512)).unwrap_err();
        assert_eq!((error.kind, error.key.as_str()), (WorkloadErrorKind::Block, "bs"));
        assert_eq!(check_whole(sector(&Setting::new(3, 1)), 7, ("bs", 7)), Ok(()));
    }

    #[test]
    fn whole_blocks_and_the_rest() {
        let lengths = |bytes| -> Vec<(u64, u64)> {
            let ops = writes(FileDescriptor(0), bytes, 10, Content::Zeroes);
            let length = |op| match op {
                Op::Write { len, times, .. } => (len, times),
                other => panic!("{other:?}"),
            };
            ops.map(length).collect()
        };
        assert_eq!(lengths(0), []);
        assert_eq!(lengths(9), [(9, 1)]);
        assert_eq!(lengths(20), [(10, 2)]);
        assert_eq!(lengths(25), [(10, 2), (5, 1)]);
    }
}
