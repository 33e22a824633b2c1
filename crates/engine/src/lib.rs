//! Runs the RAID core on real members: bytes, clock, threads and system calls live here, RAID logic
//! does not.
//!
//! * [`Engine`] owns an [`Array`](raidlab_core::Array), its [members](Member) and buffers, and
//!   carries out what the array asks for. One thread runs the loop; files and devices are reached
//!   through one `io_uring`, or by threads of their own with blocking system calls.
//! * [`RawTarget`] runs workloads on an engine and verifies every byte they read.
//! * [`DirectoryTarget`] runs workloads on a mounted filesystem, by system calls.
//! * [`Device`] tells what a block device is and who uses it, [`Claim`] opens it for nobody else.
//! * [`RunDirectory`] makes, and removes, member files in a directory of the user's.
//!
//! Fault model: members may fail any I/O, answer short, late or with wrong bytes, and vanish. An error
//! of a member is an [`IoOutcome`](raidlab_core::contract::IoOutcome) for the core to act on; wrong
//! bytes are found by [`RawTarget`] and reported with member and offset. Durability is what
//! `fdatasync` gives. Metadata of arrays lie behind the data of each member, in raidlab's own form.

mod buffers;
mod characters;
mod checksum;
mod compute;
mod device;
mod directory;
mod engine;
mod error;
mod export;
mod kernel_md;
mod member;
mod metadata;
mod mismatch;
mod mounted;
mod raw;
mod rundir;

pub use buffers::{Area, Piece};
pub use device::{Claim, Device, DeviceRefusal, SAVED_BYTES, Signature};
pub use directory::{DirectoryOptions, DirectoryTarget, Step};
pub use engine::{Engine, EngineConfig, Recorded, Reply, check_outcome};
pub use error::{EngineError, EngineErrorKind};
pub use export::{ExportCache, FuseExport};
pub use kernel_md::{InitialSync, KernelMdArray, KernelMdOptions};
pub use member::{CacheState, FileIo, FileMember, FileOptions, Member, MemoryMember, NullMember};
pub use mismatch::{Holding, Mismatch};
pub use mounted::{Filesystem, MountOptions, MountedArray, StripeHint, clean_mounts};
pub use raw::{Begin, RawResult, RawTarget};
pub use rundir::{Cleaned, Extra, RunDirectory, clean_leftovers};
