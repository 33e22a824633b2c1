//! Runs the RAID core on real members. Bytes, clock, threads and system calls are here; RAID logic is in
//! [`raidlab_core`].
//!
//! * [`Engine`] owns an [`Array`](raidlab_core::Array), its [members](Member) and buffers, and
//!   carries out what the array asks for. One thread runs the loop; files and devices are reached
//!   through one `io_uring`, or by threads of their own with blocking system calls.
//! * [`Device`] describes a block device and who uses it, [`Claim`] opens it exclusively.
//! * [`MemberStore`] is the trait for members of your own, besides those in memory and in files.
//! * [`LowerArray`] is an array that is a member of another one, as md stacks them.
//!
//! It knows neither workloads nor the format of metadata. Addresses and lengths are in sectors of 512 bytes, payload is
//! slices of bytes, and time is in nanoseconds of the machine's steady clock since the engine was created.
//!
//! In the example an array is created and written, loses a member, is read without it, and is rebuilt:
//!
//! ```
//! use std::sync::atomic::AtomicBool;
//! use raidlab_core::{Layout, Level, MemberIndex, Sector, Sectors};
//! use raidlab_engine::{Engine, EngineConfig, EngineError, Member, MemoryMember};
//!
//! # fn main() -> Result<(), EngineError> {
//! let disk = || MemoryMember::new(Sectors(2048)).map(Member::from);
//! let config = EngineConfig::new(Layout::new(Level::Raid5, 3).with_chunk(Sectors(16)));
//! let mut array = Engine::new(&config, vec![disk()?, disk()?, disk()?])?;
//! array.write_at(Sector(100), &[7; 4096])?;
//!
//! array.fail(MemberIndex(1))?;
//! let mut bytes = [0; 4096];
//! array.read_at(Sector(100), &mut bytes)?;
//! assert_eq!(bytes, [7; 4096]);
//!
//! array.add(MemberIndex(1), disk()?)?;
//! array.finish_background(&AtomicBool::new(false))?;
//! assert_eq!(array.scrub(&AtomicBool::new(false))?, Sectors(0));
//! array.stop()
//! # }
//! ```
//!
//! Fault model: members may fail any I/O, answer short, late or with wrong bytes, and vanish. An error
//! of a member is an [`IoOutcome`](raidlab_core::contract::IoOutcome) for the core to act on; wrong
//! bytes are found by the caller that knows what was written: [`Mismatch`] says where they lie. Durability is
//! what `fdatasync` gives. Metadata of arrays lie after the data of each member, in raidlab's own format.

mod buffers;
mod compute;
mod device;
mod engine;
mod error;
mod lower;
mod member;
mod metadata;
mod mismatch;
mod paths;

pub use buffers::{Area, Piece};
pub use device::mounts;
pub use device::{
    Claim, Device, DeviceRefusal, LoopStatus, ReadHold, SAVED_BYTES, SaveDirectory, SaveLog,
    Serving, Signature, is_served,
};
pub use engine::{
    Beginning, Engine, EngineConfig, MdFound, MdOptions, Recorded, Replayed, Reply, add_md_journal,
    check_outcome, log_device_sectors,
};
pub use error::{EngineError, EngineErrorKind};
pub use lower::LowerArray;
pub use member::{
    CacheState, FileIo, FileMember, FileOptions, Member, MemberRequest, MemberStore, MemoryMember,
    NullMember, OwnMember, io_uring_unusable,
};
pub use mismatch::{Holding, Mismatch};
pub use paths::{Reach, open_without_links};
