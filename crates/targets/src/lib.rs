//! What workloads run on for real: bytes, clock, threads and system calls above the engine.
//!
//! * [`RawTarget`] runs workloads on an engine and verifies every byte they read.
//! * [`DirectoryTarget`] runs workloads on a mounted filesystem, by system calls.
//! * [`FuseExport`] shows an array as a file, [`MountedArray`] has a filesystem on it.
//! * [`KernelMdArray`] is an array of the kernel's md driver over loop devices.
//! * [`RunDirectory`] makes, and removes, member files in a directory of the user's.
//!
//! Fault model: members fail as the engine has it; the process may be killed at any point. Wrong bytes are found
//! by [`RawTarget`] and [`DirectoryTarget`]; what a killed run left is removed by [`clean_leftovers`].

mod directory;
mod export;
mod kernel_md;
mod mounted;
mod raw;
mod rundir;
mod work;

pub use directory::{DirectoryOptions, DirectoryTarget, RunStep};
#[doc(hidden)]
pub use export::messages;
pub use export::{ExportCache, FuseExport};
pub use kernel_md::{InitialSync, KernelMdArray, KernelMdOptions};
pub use mounted::{Filesystem, MountOptions, MountedArray, StripeHint, clean_mounts};
pub use raw::{Begin, RawResult, RawTarget};
pub use rundir::{Cleaned, Extra, RunDirectory, clean_leftovers};
