//! Models of drives in virtual time, and the files that describe drives.
//!
//! A model has the shape of the core: a value without clock, thread or I/O. Hand in what happens
//! with [`HardDisk::handle`], then drain [`HardDisk::poll`] until it gives `None`. Time is integer
//! nanoseconds given by the caller; the same inputs give the same outputs on every machine.
//!
//! A drive is described by a TOML file in which every figure carries its unit, its status and its
//! source (`docs/drives.md`). [`load`] reads one, [`builtin`] lists those compiled in.
#![forbid(unsafe_code)]

pub mod disk;
mod drive;
mod error;
mod figures;
mod file;
mod spec;

pub use disk::HardDisk;
pub use drive::{DriveInput, DriveIo, DriveIoId, DriveOp, DriveOutput};
pub use error::{ModelError, ModelErrorKind};
pub use figures::{Figure, Status};
pub use file::{DriveKind, DriveSpec, builtin, load, parse};
pub use spec::{BadFigure, HardDiskFigures, HardDiskSpec};
