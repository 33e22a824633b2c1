//! Workloads as generators of operations: what each process asks for next, given how the last
//! operation went.
//!
//! A workload knows neither kernel nor model: it has no clock, does no I/O and draws its random
//! places from a seed, so the same workload runs on a real filesystem, on real members and in virtual
//! time. A [`Workload`] gives a [`Plan`] of [`Process`]es; a target carries out their [`Op`]s and
//! measures a [`RunRecord`] by a [`Recorder`] and a [`Conductor`], so that all targets measure alike.
#![forbid(unsafe_code)]

pub mod bonnie;
pub mod content;
mod cp;
mod dd;
mod error;
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
pub use record::{Cpu, IoRecord, PhaseRecord, ProcessRecord, Recorder, RunRecord};
pub use simple::{Kind, LARGEST_BLOCK, MOST_PROCESSES, Simple, Span};
pub use spec::WorkloadSpec;
pub use synchroniser::{ProcessIndex, Synchroniser};
pub use tar::{Archive, ArchiveError, ArchiveMember, ArchiveMemberKind, ReadArchive, TarXf};
