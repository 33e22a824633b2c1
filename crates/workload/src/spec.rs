//! What a workload is made of, how it is named and described, and the processes it gives.

use std::fmt;
use std::str::FromStr;

use raidlab_core::{Nanos, Sectors, Size};

use crate::error::{WorkloadError, WorkloadErrorKind};
use crate::metric::{Metric, mib_per_second, per_second};
use crate::random::mix;
use crate::raw::Process;

/// The largest block of one operation: 1 GiB. Every process holds one block in memory.
pub const LARGEST_BLOCK: u64 = 1 << 30;

/// The most processes a workload may have.
pub const MOST_PROCESSES: u32 = 4096;

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
    /// Every kind this version carries out.
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

impl FromStr for Kind {
    type Err = WorkloadError;

    fn from_str(text: &str) -> Result<Self, WorkloadError> {
        Self::ALL.into_iter().find(|kind| kind.name() == text).ok_or_else(|| {
            let known = Self::ALL.map(Self::name).join(", ");
            let reason = format!("`{text}` is not a kind of workload; known: {known}");
            WorkloadError::new(WorkloadErrorKind::UnknownKind, "kind", reason)
        })
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
}

impl Span {
    /// Its length on an array of this capacity, in bytes.
    pub const fn bytes(self, capacity: Sectors) -> u64 {
        match self {
            Self::Percent(percent) => (capacity.bytes() as u128 * percent as u128 / 100) as u64,
            Self::Bytes(bytes) => bytes,
        }
    }
}

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
        }
    }
}

/// A workload: what each of its processes does, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkloadSpec {
    /// Its name in studies and results.
    pub name: String,
    /// What the processes do.
    pub kind: Kind,
    /// Bytes of one operation.
    pub block: u64,
    /// Bytes moved by each process.
    pub size: u64,
    /// The part of the array the files lie in.
    pub span: Span,
}

impl WorkloadSpec {
    /// A workload with the kind's default block over the whole array, each process moving `size`
    /// bytes.
    pub fn new(kind: Kind, size: u64) -> Self {
        let block = kind.default_block();
        Self { name: Self::default_name(kind, block), kind, block, size, span: Span::default() }
    }

    /// The name where a study gives none: kind and block, such as `dd-write 6MiB`.
    pub fn default_name(kind: Kind, block: u64) -> String {
        format!("{kind} {}", Size(block))
    }

    /// What is measured.
    pub const fn metric(&self) -> Metric {
        if self.kind.is_random() { Metric::OPERATIONS_PER_SECOND } else { Metric::MIB_PER_SECOND }
    }

    /// Whether it changes what is on the array.
    pub const fn writes(&self) -> bool {
        self.kind.writes()
    }

    /// The value of its metric, from what all processes did until the last of them was done; `None` when
    /// no time passed.
    pub fn value(&self, bytes: u64, operations: u64, elapsed: Nanos) -> Option<f64> {
        if self.kind.is_random() {
            per_second(operations as f64, elapsed)
        } else {
            mib_per_second(bytes, elapsed)
        }
    }

    /// Reads or writes of one process; its flush is not counted.
    pub const fn operations(&self) -> u64 {
        self.size.div_ceil(self.block)
    }

    /// In words, for reports.
    pub fn description(&self) -> String {
        let (size, block) = (Size(self.size), Size(self.block));
        let verb = if self.writes() { "writes" } else { "reads" };
        let part = match self.span {
            Span::Percent(100) => "100 % of the array".to_string(),
            span => format!("the first {span} of the array"),
        };
        let places = if self.kind.is_random() {
            let operations = self.operations();
            format!("{operations} blocks of {block} ({size}) at random places over {part}")
        } else {
            format!(
                "{size} in blocks of {block} from start to end; files spread evenly over {part}"
            )
        };
        let end = if self.writes() { "; ends with a flush" } else { "" };
        format!("each process {verb} {places}; one request at a time{end}")
    }

    /// Where the file of process `index` of `processes` lies, as bytes of the array: its own
    /// extent for the sequential kinds, the whole span for the random ones.
    pub const fn extent(&self, capacity: Sectors, processes: u32, index: u32) -> (u64, u64) {
        let span = self.span.bytes(capacity);
        if self.kind.is_random() {
            return (0, span / self.block * self.block);
        }
        let start = self.start(span, processes, index);
        (start, start.saturating_add(self.size))
    }

    /// Where file `index` of `processes` starts in a span: evenly spread, rounded down to a block.
    pub(crate) const fn start(&self, span: u64, processes: u32, index: u32) -> u64 {
        let even = (span as u128 * index as u128 / processes as u128) as u64;
        even / self.block * self.block
    }

    /// The processes, ready to start. Seeds are derived from `seed` and the index of the process.
    ///
    /// Meant for a workload that [`check`](Self::check) found to fit.
    pub fn processes(&self, capacity: Sectors, processes: u32, seed: u64) -> Vec<Process> {
        let all = 0..processes;
        all.map(|index| {
            let extent = self.extent(capacity, processes, index);
            Process::new(self, extent, mix(&[seed, u64::from(index)]))
        })
        .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_descriptions() {
        let mut spec = WorkloadSpec::new(Kind::DdWrite, 4 << 30);
        assert_eq!(spec.name, "dd-write 6MiB");
        assert_eq!(
            spec.description(),
            "each process writes 4GiB in blocks of 6MiB from start to end; \
             files spread evenly over 100 % of the array; one request at a time; ends with a flush"
        );
        spec = WorkloadSpec::new(Kind::RandomRead, 4 << 20);
        spec.span = Span::Percent(10);
        assert_eq!(spec.name, "random-read 4KiB");
        assert_eq!(
            spec.description(),
            "each process reads 1024 blocks of 4KiB (4MiB) at random places over \
             the first 10 % of the array; one request at a time"
        );
        let units = Kind::ALL.map(|kind| WorkloadSpec::new(kind, 1 << 20).metric().unit);
        assert_eq!(units, ["MiB/s", "MiB/s", "1/s", "1/s"]);
    }

    #[test]
    fn kinds_and_spans_are_read_back() {
        for kind in Kind::ALL {
            assert_eq!(kind.name().parse(), Ok(kind));
        }
        let error = "dd".parse::<Kind>().unwrap_err();
        assert_eq!(
            error.to_string(),
            "kind: `dd` is not a kind of workload; known: dd-write, dd-read, random-read, random-write"
        );
        assert_eq!("100%".parse(), Ok(Span::Percent(100)));
        assert_eq!("1 %".parse(), Ok(Span::Percent(1)));
        assert_eq!("2GiB".parse(), Ok(Span::Bytes(2 << 30)));
        for text in ["", "0%", "101%", "-1%", "1.5%", "%", "x", "0", "12 parsecs"] {
            assert_eq!(text.parse::<Span>().unwrap_err().kind, WorkloadErrorKind::Span, "{text}");
        }
    }

    #[test]
    fn spans_of_large_arrays_do_not_overflow() {
        let capacity = Sectors(u64::MAX / 512);
        assert_eq!(Span::Percent(100).bytes(capacity), capacity.bytes());
        assert_eq!(Span::Percent(1).bytes(Sectors(3)), 15);
    }
}
