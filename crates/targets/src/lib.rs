//! The real targets on which workloads run, with bytes, clock, threads and system calls, on top of the engine.
//!
//! * [`RawTarget`] runs workloads on an engine and verifies every byte they read.
//! * [`UncheckedTarget`] runs them without, with hardly any memory: in guests of the kernel lab.
//! * [`DirectoryTarget`] runs workloads on a mounted filesystem, by system calls.
//! * [`FuseExport`] exports an array as a file, [`MountedArray`] puts a filesystem on it, [`NbdServer`] serves arrays
//!   to NBD clients.
//! * [`KernelMdArray`] is an array of the kernel's md driver over loop devices.
//! * [`SocketFile`] is the file of a Unix socket that others connect to.
//! * [`RunDirectory`] creates and removes member files in a directory of the user's.
//!
//! Nothing here knows studies. Lengths and positions in files are in bytes, those in arrays in sectors of 512
//! bytes; times are in nanoseconds of the machine's steady clock.
//!
//! Fault model: members fail as described for the engine; the process may be killed at any point. Wrong bytes are found
//! by [`RawTarget`] and [`DirectoryTarget`]; [`clean_leftovers`] removes what a killed run left.
//!
//! In the example two processes each write a file in a directory. What they wrote is compared, and the files are
//! removed afterwards:
//!
//! ```
//! use std::sync::atomic::AtomicBool;
//! use raidlab_targets::{DirectoryOptions, DirectoryTarget};
//! use raidlab_workload::{Parameters, Setting, make};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let workload = make("dd-write", Parameters::new([("size", "256KiB"), ("block", "64KiB")])?)?;
//! let plan = workload.plan(&Setting::new(2, 1))?;
//! let options = DirectoryOptions { system_caches: false, ..DirectoryOptions::default() };
//! let mut target = DirectoryTarget::new(&std::env::temp_dir(), options)?;
//! let record = target.run(plan, &AtomicBool::new(false))?;
//! assert_eq!(record.totals().writes.bytes, 2 * (256 << 10));
//! assert!(record.last_done() >= record.first_done());
//! # Ok(())
//! # }
//! ```

mod directory;
mod export;
mod kernel_md;
mod mounted;
mod nbd;
mod raw;
mod rundir;
mod socket_file;
mod work;

pub use directory::{DirectoryOptions, DirectoryTarget, RunStep};
#[doc(hidden)]
pub use export::messages;
pub use export::system::hold_memory;
pub use export::{ExportCache, FuseExport};
pub use kernel_md::{InitialSync, KernelMdArray, KernelMdOptions, mdadm_arguments};
pub use mounted::{Filesystem, MountOptions, MountedArray, StripeHint, clean_mounts};
pub use nbd::{
    NbdAddress, NbdArray, NbdCertificates, NbdCounters, NbdLimits, NbdPlace, NbdReport, NbdServer,
    NbdSockets, NbdTls,
};
pub use raw::{Begin, RawResult, RawTarget, UncheckedTarget};
pub use rundir::{Cleaned, Extra, RunDirectory, clean_leftovers};
pub use socket_file::{Occupied, SocketFile};
