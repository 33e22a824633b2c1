//! Runs the RAID core on real members: bytes, clock, threads and system calls live here, RAID logic
//! does not.
//!
//! * [`Engine`] owns an [`Array`](raidlab_core::Array), its [members](Member) and buffers, and
//!   carries out what the array asks for. One thread runs the loop; files and devices are reached
//!   through one `io_uring`, or by threads of their own with blocking system calls.
//! * [`Device`] tells what a block device is and who uses it, [`Claim`] opens it for nobody else.
//!
//! Fault model: members may fail any I/O, answer short, late or with wrong bytes, and vanish. An error
//! of a member is an [`IoOutcome`](raidlab_core::contract::IoOutcome) for the core to act on; wrong
//! bytes are found by whoever knows what was written: [`Mismatch`] says where they lie. Durability is
//! what `fdatasync` gives. Metadata of arrays lie behind the data of each member, in raidlab's own form.

mod buffers;
mod compute;
mod device;
mod engine;
mod error;
mod member;
mod metadata;
mod mismatch;
mod paths;

pub use buffers::{Area, Piece};
pub use device::{
    Claim, Device, DeviceRefusal, LoopStatus, SAVED_BYTES, SaveDirectory, SaveLog, Signature,
};
pub use engine::{
    Beginning, Engine, EngineConfig, Recorded, Reply, check_outcome, log_device_sectors,
};
pub use error::{EngineError, EngineErrorKind};
pub use member::{CacheState, FileIo, FileMember, FileOptions, Member, MemoryMember, NullMember};
pub use mismatch::{Holding, Mismatch};
pub use paths::{Reach, open_without_links};
