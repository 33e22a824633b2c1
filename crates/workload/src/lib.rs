//! Workloads as generators of operations: each says what its processes ask for next, given the result of the last
//! operation.
//!
//! A workload knows neither kernel nor model: it has no clock, does no I/O and draws its random positions from a
//! seed, so the same workload runs on a real filesystem, on real members and in virtual time. A [`Workload`] gives
//! a [`Plan`] of [`Process`]es. A *target* carries out their [`Op`]s by the loop in [`processes`], and fills a
//! [`RunRecord`] through a [`Recorder`] and a [`Synchroniser`], so that all targets measure alike. Lengths and
//! positions are in bytes, times in nanoseconds since the start of the run.
//!
//! The example makes a workload by its name in study files, plans it for two processes, and runs it on the target that
//! does nothing:
//!
//! ```
//! use raidlab_workload::null::NullTarget;
//! use raidlab_workload::{Parameters, Setting, make};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let parameters = Parameters::new([("size", "1MiB"), ("block", "64KiB")])?;
//! let workload = make("dd-write", parameters)?;
//! let plan = workload.plan(&Setting::new(2, 1))?;
//! assert_eq!(plan.run.len(), 2);
//!
//! let record = NullTarget::default().run(plan).expect("a plan that can be carried out");
//! let writes = record.totals().writes;
//! assert_eq!((writes.count, writes.bytes), (2 * 16, 2 << 20));
//! assert_eq!(workload.metrics()[0].unit, "MiB/s");
//! assert!(workload.values(&record)[0].is_some(), "a microsecond an operation is a time");
//! # Ok(())
//! # }
//! ```
#![forbid(unsafe_code)]

pub mod bonnie;
pub mod content;
mod cp;
mod dd;
mod error;
mod filebench;
mod fill_files;
pub mod fio;
mod hdparm;
mod kinds;
mod metric;
pub mod names;
pub mod null;
mod op;
mod parameters;
mod plan;
pub mod processes;
pub mod raw;
mod readers;
mod real_life;
mod recipe;
mod record;
mod simple;
mod single;
mod small_files;
mod spec;
mod steps;
mod sweep;
mod synchroniser;
mod tar;
mod tiobench;
mod tree;

pub use error::{WorkloadError, WorkloadErrorKind};
pub use kinds::{KINDS, KindEntry, Workload, make};
pub use metric::{Better, Metric, mib_per_second, per_second};
pub use op::{
    Attribute, AttributeTarget, Class, Content, Entry, FileDescriptor, FilePath, Io, MOST_SLOTS,
    MOST_STARTED, Mark, Op, OpResult, OpenFlags, Root, Seek, Status,
};
pub use parameters::Parameters;
pub use plan::{
    Bytes, Expected, FileNeed, Memory, Plan, Planned, Process, SeededBytes, Setting, SourceFile,
    Zeroes,
};
pub use recipe::Recipe;
pub use record::{
    Cpu, IoRecord, PhaseRecord, ProcessRecord, Recorder, RunRecord, TimeBin, TimeSeries,
};
pub use simple::{Kind, LARGEST_BLOCK, MOST_PROCESSES, Simple, Span};
pub use spec::WorkloadSpec;
pub use synchroniser::{ProcessIndex, Synchroniser};
pub use tar::{Archive, ArchiveError, ArchiveMember, ArchiveMemberKind, ReadArchive, TarXf};
