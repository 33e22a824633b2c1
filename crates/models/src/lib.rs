//! Models of drives in virtual time, and the files that describe drives.
//!
//! A model has the shape of the core: a value without clock, thread or I/O. Hand in what happens
//! with [`HardDisk::handle`], then drain [`HardDisk::poll`] until it gives `None`. Time is integer
//! nanoseconds given by the caller; the same inputs give the same outputs on every machine.
//!
//! A drive is described by a TOML file in which every figure carries its unit, its status and its
//! source (`docs/drives.md`). [`load`] reads one, [`builtin`] lists those compiled in.
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
