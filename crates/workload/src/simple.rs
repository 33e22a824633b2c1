//! Reads and writes without anything around them: files from start to end, blocks at random places.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use raidlab_core::{Sectors, Size, Time};

use crate::error::{WorkloadError, WorkloadErrorKind};
use crate::kinds::Workload;
use crate::metric::{Metric, mib_per_second, per_second};
use crate::op::{Content, FileDescriptor, FilePath, Io, Mark, Op, OpResult, OpenFlags};
use crate::parameters::Parameters;
use crate::plan::{FileNeed, Plan, Planned, Process, Setting};
use crate::record::RunRecord;
use crate::steps::{make_file_of, planned};
use raidlab_random::{Random, mix};

mod check;

pub use check::{LARGEST_BLOCK, MOST_PROCESSES};

/// What the processes do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Each writes a file of its own from start to end and flushes (`dd conv=fdatasync`).
    DdWrite,
    /// Each reads a file of its own from start to end.
    DdRead,
    /// Each reads blocks at random places of the span.
    RandomRead,
    /// Each writes blocks at random places of the span and flushes at the end.
    RandomWrite,
}

impl Kind {
    /// Each of them.
    pub const ALL: [Self; 4] = [Self::DdWrite, Self::DdRead, Self::RandomRead, Self::RandomWrite];

    /// The name in study files.
    pub const fn name(self) -> &'static str {
        match self {
            Self::DdWrite => "dd-write",
            Self::DdRead => "dd-read",
            Self::RandomRead => "random-read",
            Self::RandomWrite => "random-write",
        }
    }

    /// The block where a study names none, in bytes: 6 MiB for the sequential kinds (a whole
    /// number of stripes of 1, 2, 3, 4, 6 or 12 data chunks of 512 KiB), 4 KiB for the random ones.
    pub const fn default_block(self) -> u64 {
        if self.is_random() { 4 << 10 } else { 6 << 20 }
    }

    /// Whether it changes what is on the array.
    pub const fn writes(self) -> bool {
        matches!(self, Self::DdWrite | Self::RandomWrite)
    }

    /// Whether places are drawn at random.
    pub const fn is_random(self) -> bool {
        matches!(self, Self::RandomRead | Self::RandomWrite)
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The part of the array, from its start, that the files lie in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Span {
    /// This many hundredths of the array, 1 to 100.
    Percent(u32),
    /// This many bytes.
    Bytes(u64),
    /// As much as the files take: they lie next to one another, as a filesystem puts what is written into
    /// one directory.
    Together,
}

/// [`Span::Together`] in study files.
const TOGETHER: &str = "together";

impl Default for Span {
    /// The whole array.
    fn default() -> Self {
        Self::Percent(100)
    }
}

impl FromStr for Span {
    type Err = WorkloadError;

    /// Reads `50%` or a size such as `64GiB`.
    fn from_str(text: &str) -> Result<Self, WorkloadError> {
        let wrong = |reason: String| WorkloadError::new(WorkloadErrorKind::Span, "span", reason);
        if text.trim() == TOGETHER {
            return Ok(Self::Together);
        }
        if let Some(number) = text.trim().strip_suffix('%') {
            let percent = number.trim().parse::<u32>().ok().filter(|p| (1..=100).contains(p));
            return percent.map(Self::Percent).ok_or_else(|| {
                wrong(format!("`{text}` is not a whole percentage from 1% to 100%"))
            });
        }
        let size: Size = text.parse().map_err(|_| {
            let right = "write a percentage of the array or a size, such as 50% or 64GiB";
            wrong(format!("`{text}` is not a span; {right}"))
        })?;
        if size.0 == 0 {
            return Err(wrong("the span must be more than nothing".into()));
        }
        Ok(Self::Bytes(size.0))
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Percent(percent) => write!(f, "{percent} %"),
            Self::Bytes(bytes) => write!(f, "{}", Size(*bytes)),
            Self::Together => f.write_str(TOGETHER),
        }
    }
}

/// A workload of one of these kinds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Simple {
    /// What the processes do.
    pub kind: Kind,
    /// Bytes of one operation.
    pub block: u64,
    /// Bytes moved by each process.
    pub size: u64,
    /// The part of the array the files lie in.
    pub span: Span,
}

impl Simple {
    /// With the kind's default block over the whole array, each process moving `size` bytes.
    pub fn new(kind: Kind, size: u64) -> Self {
        Self { kind, block: kind.default_block(), size, span: Span::default() }
    }

    /// Whether it changes what is on the array.
    pub const fn writes(&self) -> bool {
        self.kind.writes()
    }

    /// Reads or writes of one process; its flush is not counted.
    pub const fn operations(&self) -> u64 {
        self.size.div_ceil(self.block)
    }

    /// The bytes from the start of an array of this capacity that the work of so many copies lies in.
    const fn span_bytes(&self, capacity: Sectors, copies: u32) -> u64 {
        match self.span {
            Span::Percent(percent) => (capacity.bytes() as u128 * percent as u128 / 100) as u64,
            Span::Bytes(bytes) => bytes,
            // Files begin on whole blocks.
            Span::Together => self
                .size
                .div_ceil(self.block)
                .saturating_mul(self.block)
                .saturating_mul(copies as u64),
        }
    }

    fn file(&self, index: u32, span: u64) -> FileNeed {
        if self.kind.is_random() {
            let bytes = span / self.block * self.block;
            return FileNeed { path: FilePath::target("span"), bytes, unit: self.block };
        }
        let path = FilePath::target(format!("file.{index}"));
        FileNeed { path, bytes: self.size, unit: self.block }
    }

    /// Makes the files that are read before, or that random writes go to.
    fn prepare(&self, files: &[FileNeed]) -> Vec<Planned> {
        if self.kind == Kind::DdWrite {
            return Vec::new();
        }
        let fill = |(copy, file): (u32, &FileNeed)| {
            planned(copy, make_file_of(file.path.clone(), file.bytes, Content::Zeroes))
        };
        (0..).zip(files).map(fill).collect()
    }
}

pub(crate) fn make(
    kind: Kind,
    parameters: &mut Parameters,
) -> Result<Arc<dyn Workload>, WorkloadError> {
    let Some(size) = parameters.optional_size("size")? else {
        let reason = "is missing: write for example size = \"4GiB\"";
        return Err(WorkloadError::new(WorkloadErrorKind::Size, "size", reason));
    };
    let block = parameters.size("block", kind.default_block())?;
    let span = parameters.text("span").map_or(Ok(Span::default()), |text| text.parse())?;
    let simple = Simple { kind, block, size, span };
    simple.check_parameters()?;
    Ok(Arc::new(simple))
}

impl Simple {
    /// In words; random places lie over `part`, and what is read or written in order is `files`.
    fn described(&self, part: &str, files: &str) -> String {
        let (size, block) = (Size(self.size), Size(self.block));
        let verb = if self.writes() { "writes" } else { "reads" };
        let places = if self.kind.is_random() {
            let operations = self.operations();
            format!("{operations} blocks of {block} ({size}) at random places over {part}")
        } else {
            let blocks = if self.size < self.block {
                format!("one block of less than {block}")
            } else {
                format!("blocks of {block}")
            };
            format!("{size} in {blocks} from start to end; {files}")
        };
        let end = if self.writes() { "; ends with a flush" } else { "" };
        format!("each process {verb} {places}; one request at a time{end}")
    }
}

impl Workload for Simple {
    fn kind(&self) -> &'static str {
        self.kind.name()
    }

    fn default_name(&self) -> String {
        format!("{} {}", self.kind, Size(self.block))
    }

    fn description(&self) -> String {
        let part = match self.span {
            Span::Percent(100) => "100 % of the array".to_string(),
            span => format!("the first {span} of the array"),
        };
        let files = match self.span {
            Span::Together => "files next to one another".to_string(),
            _ => format!("files spread evenly over {part}"),
        };
        self.described(&part, &files)
    }

    fn description_on_files(&self) -> String {
        let part = match self.span {
            Span::Bytes(bytes) => format!("one file of {}", Size(bytes)),
            _ => "one file".to_string(),
        };
        self.described(&part, "a file each")
    }

    fn metrics(&self) -> Vec<Metric> {
        let random = self.kind.is_random();
        vec![if random { Metric::OPERATIONS_PER_SECOND } else { Metric::MIB_PER_SECOND }]
    }

    fn values(&self, record: &RunRecord) -> Vec<Option<f64>> {
        let (totals, elapsed) = (record.totals(), record.last_done());
        vec![if self.kind.is_random() {
            per_second((totals.reads.count + totals.writes.count) as f64, elapsed)
        } else {
            mib_per_second(totals.reads.bytes + totals.writes.bytes, elapsed)
        }]
    }

    fn plan(&self, setting: &Setting) -> Result<Plan, WorkloadError> {
        self.check_parameters()?;
        let span = match (setting.space, self.span) {
            (Some(space), _) => self.span_bytes(Sectors(space / 512), setting.copies),
            (None, Span::Bytes(bytes)) => bytes,
            (None, Span::Percent(_)) if self.kind.is_random() => {
                let reason = "on a filesystem random places need a size, such as span=1GiB: the \
                              file they lie in";
                return Err(WorkloadError::new(WorkloadErrorKind::Span, "span", reason));
            }
            (None, Span::Percent(_) | Span::Together) => 0,
        };
        let count = if self.kind.is_random() { 1 } else { setting.copies };
        let files: Vec<FileNeed> = (0..count).map(|index| self.file(index, span)).collect();
        let run = (0..setting.copies).map(|copy| Planned {
            copy,
            process: Box::new(SimpleProcess::new(
                self,
                &files[copy as usize % files.len()],
                mix(&[setting.seed, u64::from(copy)]),
            )),
        });
        Ok(Plan {
            run: run.collect(),
            prepare: self.prepare(&files),
            phases: vec!["run"],
            room: files.iter().map(|file| file.bytes).sum(),
            span: setting.space.map(|_| span),
            files,
            ..Plan::default()
        })
    }

    fn resized(&self, bytes: u64) -> Result<Arc<dyn Workload>, WorkloadError> {
        let resized = Self { size: bytes, ..*self };
        resized.check_parameters()?;
        Ok(Arc::new(resized))
    }

    fn requests(&self, copies: u32, longest: u64) -> Option<u64> {
        let pieces = self.block.div_ceil(longest.max(1));
        Some(self.operations().saturating_mul(pieces).saturating_mul(copies.into()))
    }

    fn spanning(&self, bytes: u64) -> Option<Arc<dyn Workload>> {
        let spanning = Self { span: Span::Bytes(bytes), ..*self };
        self.kind.is_random().then(|| Arc::new(spanning) as Arc<dyn Workload>)
    }

    fn raw_room(&self, copies: u32) -> Result<u64, WorkloadError> {
        let files = if self.kind.is_random() {
            self.block
        } else {
            // Evenly spread files start on whole blocks.
            let each = self.size.next_multiple_of(self.block) + self.block;
            each.saturating_mul(u64::from(copies))
        };
        Ok(match self.span {
            Span::Percent(percent) => files.saturating_mul(100).div_ceil(u64::from(percent)),
            Span::Bytes(bytes) => bytes.max(self.block),
            Span::Together => files,
        })
    }

    fn check_raw(&self, space: u64, copies: u32, logical_block: u64) -> Result<(), WorkloadError> {
        self.check(Sectors(space / 512), copies, (logical_block / 512) as u32)
    }
}

/// One process: opens its file, moves its blocks, flushes what it wrote, closes.
#[derive(Debug)]
struct SimpleProcess {
    kind: Kind,
    path: FilePath,
    block: u64,
    size: u64,
    places: u64,
    random: Random,
    done: u64,
    stage: Stage,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Open,
    Begin,
    Blocks,
    End,
    Close,
    Done,
}

impl SimpleProcess {
    fn new(simple: &Simple, file: &FileNeed, seed: u64) -> Self {
        Self {
            kind: simple.kind,
            path: file.path.clone(),
            block: simple.block,
            size: simple.size,
            places: file.bytes / simple.block,
            random: Random::new(seed),
            done: 0,
            stage: Stage::Open,
        }
    }

    fn flags(&self) -> OpenFlags {
        match self.kind {
            Kind::DdWrite => OpenFlags::WRITE,
            Kind::RandomWrite => OpenFlags { write: true, ..OpenFlags::default() },
            Kind::DdRead | Kind::RandomRead => OpenFlags::READ,
        }
    }

    fn io(&mut self) -> Op {
        let fd = FileDescriptor(0);
        let len = self.block.min(self.size - self.done);
        let at = if self.kind.is_random() {
            self.random.below(self.places) * self.block
        } else {
            self.done
        };
        self.done += len;
        let content = Content::Zeroes;
        Op::At(if self.kind.writes() {
            Io::Write { fd, at, len, content }
        } else {
            Io::Read { fd, at, len }
        })
    }
}

impl Process for SimpleProcess {
    fn next(&mut self, _now: Time, _last: OpResult) -> Op {
        let fd = FileDescriptor(0);
        match self.stage {
            Stage::Open => {
                self.stage = Stage::Begin;
                Op::Open { fd, path: self.path.clone(), flags: self.flags() }
            }
            Stage::Begin => {
                self.stage = Stage::Blocks;
                Op::Mark(Mark::Begin(0))
            }
            Stage::Blocks if self.done < self.size => self.io(),
            Stage::Blocks if self.kind.writes() => {
                self.stage = Stage::End;
                Op::Fdatasync { fd }
            }
            Stage::Blocks | Stage::End => {
                self.stage = Stage::Close;
                Op::Mark(Mark::End(0))
            }
            Stage::Close => {
                self.stage = Stage::Done;
                Op::Close { fd }
            }
            Stage::Done => Op::Done,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::raw::RawPlan;

    #[test]
    fn names_and_descriptions() {
        let mut simple = Simple::new(Kind::DdWrite, 4 << 30);
        assert_eq!(simple.default_name(), "dd-write 6MiB");
        assert_eq!(
            simple.description(),
            "each process writes 4GiB in blocks of 6MiB from start to end; \
             files spread evenly over 100 % of the array; one request at a time; ends with a flush"
        );
        simple.size = 4 << 20;
        assert!(simple.description().contains("writes 4MiB in one block of less than 6MiB from"));
        simple = Simple::new(Kind::RandomRead, 4 << 20);
        simple.span = Span::Percent(10);
        assert_eq!(simple.default_name(), "random-read 4KiB");
        assert_eq!(
            simple.description(),
            "each process reads 1024 blocks of 4KiB (4MiB) at random places over \
             the first 10 % of the array; one request at a time"
        );
        // A filesystem puts files where it likes.
        simple.span = Span::Bytes(64 << 20);
        assert_eq!(
            simple.description_on_files(),
            "each process reads 1024 blocks of 4KiB (4MiB) at random places over one file of 64MiB; one request at a \
             time"
        );
        let words = Simple::new(Kind::DdRead, 4 << 30).description_on_files();
        assert!(
            words.contains("; a file each; one request") && !words.contains("array"),
            "{words}"
        );
        let units = Kind::ALL.map(|kind| Simple::new(kind, 1 << 20).metrics()[0].unit);
        assert_eq!(units, ["MiB/s", "MiB/s", "1/s", "1/s"]);
    }

    #[test]
    fn spans_are_read_back() {
        assert_eq!("100%".parse(), Ok(Span::Percent(100)));
        assert_eq!("1 %".parse(), Ok(Span::Percent(1)));
        assert_eq!("2GiB".parse(), Ok(Span::Bytes(2 << 30)));
        assert_eq!("together".parse(), Ok(Span::Together));
        for text in ["", "0%", "101%", "-1%", "1.5%", "%", "x", "0", "12 parsecs"] {
            assert_eq!(text.parse::<Span>().unwrap_err().kind, WorkloadErrorKind::Span, "{text}");
        }
    }

    #[test]
    fn spans_of_large_arrays_do_not_overflow() {
        let capacity = Sectors(u64::MAX / 512);
        let bytes = |span, capacity| {
            Simple { span, ..Simple::new(Kind::DdRead, 4096) }.span_bytes(capacity, 1)
        };
        assert_eq!(bytes(Span::Percent(100), capacity), capacity.bytes());
        assert_eq!(bytes(Span::Percent(1), Sectors(3)), 15);
    }

    /// Wherever it begins, a file is where a filesystem would put it: behind the one before.
    #[test]
    fn files_lie_next_to_one_another() {
        let block = 6 << 20;
        let simple = Simple { span: Span::Together, ..Simple::new(Kind::DdWrite, 4 << 30) };
        let space = 100 << 30;
        let setting = Setting { space: Some(space), ..Setting::new(4, 1) };
        let plan = simple.plan(&setting).expect("a plan");
        let extents = RawPlan::new(plan, space).expect("it fits").extents;
        let rounded = (4u64 << 30).next_multiple_of(block);
        let expected: Vec<_> = (0..4).map(|n| (n * rounded, n * rounded + (4 << 30))).collect();
        assert_eq!(extents, expected);
        assert_eq!(simple.check_raw(4 * rounded, 4, 4096), Ok(()));
        let error = simple.check_raw(4 * rounded - 4096, 4, 4096).unwrap_err();
        assert_eq!(error.kind, WorkloadErrorKind::DoesNotFit, "{error}");
        assert!(simple.raw_room(4).is_ok_and(|room| room >= 4 * rounded));
        let random = Simple { span: Span::Together, ..Simple::new(Kind::RandomRead, 4096) };
        assert_eq!(random.check_parameters().unwrap_err().kind, WorkloadErrorKind::Span);
    }
}
