//! Studies on the Linux kernel in virtual time: the same study files, drives and workloads as on modelled hosts, but
//! with the kernel's own md, page cache and filesystems ([`raidlab_kernel_lab`]).
//!
//! Each run of a cell is a guest of its own. A script sets the array up with `mdadm` and makes the filesystem; then
//! [`guest-cell`](inside), a program of this crate, runs the workload by system calls, as on a real directory or
//! device, and reports what it measured. Only the drives and the cost of system calls are modelled.
//!
//! [`KernelLab`] runs cells; [`prepare`] adapts a study to what guests support, and refuses by name what they do not.
//!
//! ```
//! use raidlab_kernel_study::{MEMORY, prepare};
//!
//! let mut study = raidlab_study::parse(raidlab_study::default_study(), "default")?;
//! prepare(&mut study).expect("a study that guests can run");
//! assert_eq!(study.host.expect("a host").spec.memory, MEMORY);
//! # Ok::<(), raidlab_study::StudyError>(())
//! ```
#![forbid(unsafe_code)]

mod array;
pub mod drawn;
mod error;
pub mod fidelity;
pub mod inside;
mod job;
mod lab;
pub mod measured;
mod prepare;
mod resync;
mod usage;

pub use error::KernelError;
pub use job::{Job, Place, RebuildJob, Report, Start};
pub use lab::{Binaries, Cost, KernelLab, KernelRunner, Options, versions};
pub use prepare::{MEMORY, as_kernel, prepare, ticks_of};
