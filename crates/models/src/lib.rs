//! Models of drives in virtual time, and the files that describe drives.
//!
//! A model is used like the core: it is a value without clock, thread or I/O, and knows nothing of arrays. Hand in
//! inputs with [`Drive::handle`], then drain [`Drive::poll`] until it gives `None`. Time is integer nanoseconds
//! given by the caller, addresses and lengths are in sectors of 512 bytes; the same inputs give the same outputs on
//! every machine.
//!
//! * [`Drive`] is a [`HardDisk`], an [`Smr`] disk or an [`Ssd`]; [`Queue`] schedules in front of one, and [`path`] and
//!   [`controller`] model the hardware between host and drives.
//! * [`host`] models page cache, write-back, read-ahead and filesystem.
//!
//! A drive is described by a TOML file in which every figure carries its unit, its status and its
//! source (`docs/drives.md`). [`load`] reads one, [`builtin`] lists those compiled in.
//!
//! A cold read on a disk takes a seek and part of a rotation; the second read hits the drive's buffer:
//!
//! ```
//! use raidlab_core::{Nanos, Sector, Time};
//! use raidlab_models::{Drive, DriveInput, DriveIo, DriveIoId, DriveOp, DriveOutput, load};
//!
//! /// Reads 4 KiB; gives when that was done.
//! fn read(drive: &mut Drive, mut now: Time) -> Time {
//!     let (id, op, at) = (DriveIoId(1), DriveOp::Read, Sector(1 << 30));
//!     drive.handle(now, DriveInput::Submit(DriveIo { id, op, at, len: 8, fua: false }));
//!     loop {
//!         match drive.poll().expect("a drive that works has a time at which it goes on") {
//!             DriveOutput::Complete { .. } => return now,
//!             DriveOutput::WakeAt(at) => {
//!                 now = at;
//!                 drive.handle(now, DriveInput::Wake);
//!             }
//!         }
//!     }
//! }
//!
//! let mut drive = Drive::new(&load("nas-8tb-7200")?.kind, 1);
//! let cold = read(&mut drive, Time::ZERO);
//! let again = read(&mut drive, cold).since(cold);
//! assert!(again < Nanos::from_millis(1) && Nanos::from_millis(1) < cold.since(Time::ZERO));
//! # Ok::<(), raidlab_models::ModelError>(())
//! ```
#![forbid(unsafe_code)]

pub mod controller;
pub mod curves;
mod device;
pub mod disk;
mod drive;
mod error;
mod figures;
mod file;
mod fitted;
pub mod host;
pub mod path;
pub mod queue;
pub mod smr;
mod spec;
pub mod ssd;
pub mod trace;

pub use controller::{Controller, ControllerSpec, WritePolicy};
pub use device::Drive;
pub use disk::HardDisk;
pub use disk::policy::{CachePolicy, CommandOverheads, Delivered, ReadAhead, Trigger, ZoneRow};
pub use drive::{DriveInput, DriveIo, DriveIoId, DriveOp, DriveOutput};
pub use error::{ModelError, ModelErrorKind};
pub use figures::{Figure, Quantity, Status};
pub use file::{
    DriveKind, DriveSpec, builtin, check_drive, is_drive_file, load, load_beside, parse,
};
pub use fitted::{MEDIA_RATE, adjustable};
pub use host::{Host, HostSpec};
pub use path::{LinkKind, LinkSpec, PathSpec, Paths};
pub use queue::{Queue, QueueInput, QueueOutput, QueueSpec, Scheduler};
pub use smr::{Smr, SmrFigures, SmrSpec};
pub use spec::{BadFigure, HardDiskFigures, HardDiskSpec};
pub use ssd::{Ssd, SsdFigures, SsdSpec};
