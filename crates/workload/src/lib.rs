//! Workloads as generators of operations: what each process asks for next, given how the last
//! operation went.
//!
//! A workload knows neither kernel nor model: it has no clock, does no I/O and draws its random
//! places from a seed, so the same workload runs in real time on real members and in virtual time
//! on modelled drives. Each process has one operation in flight (synchronous and direct, depth 1).
//!
//! ```
//! use raidlab_core::{Sectors, Time};
//! use raidlab_workload::{Kind, Op, OpResult, WorkloadSpec};
//!
//! let spec = WorkloadSpec::new(Kind::DdWrite, 1 << 20);
//! let mut process = spec.processes(Sectors(1 << 20), 1, 7).remove(0);
//! let first = process.next(Time::ZERO, OpResult::Start);
//! assert_eq!(first, Op::Write { at: 0, len: 1 << 20 }); // less than a block of 6 MiB
//! assert_eq!(process.next(Time(1_000), OpResult::Done), Op::Sync);
//! assert_eq!(process.next(Time(2_000), OpResult::Done), Op::Done);
//! ```
#![forbid(unsafe_code)]

mod check;
mod error;
mod metric;
mod process;
pub mod random;
mod spec;

pub use error::{WorkloadError, WorkloadErrorKind};
pub use metric::{Better, Metric};
pub use process::{Op, OpResult, Process};
pub use spec::{Kind, LARGEST_BLOCK, MOST_PROCESSES, Span, WorkloadSpec};
