//! What goes into a model of a drive and what comes out of it.

use raidlab_core::contract::IoOutcome;
use raidlab_core::units::{Sector, Time};

/// The caller's name for an I/O to a drive; given back in [`DriveOutput::Complete`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DriveIoId(pub u32);

/// What an I/O asks of a drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DriveOp {
    /// Read a range.
    Read,
    /// Write a range.
    Write,
    /// Complete when every write completed before is on the medium.
    Flush,
}

/// An I/O to a drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct DriveIo {
    /// The caller's name for it.
    pub id: DriveIoId,
    /// What it asks for.
    pub op: DriveOp,
    /// The first sector, from the start of the drive.
    pub at: Sector,
    /// Length in sectors of 512 bytes; 0 for [`DriveOp::Flush`].
    pub len: u32,
    /// Writes: complete when on the medium, whatever the write cache. Without meaning for the others.
    pub fua: bool,
}

/// An input to a model of a drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DriveInput {
    /// A command. Always accepted; commands that arrive while one is at work are queued in order.
    Submit(DriveIo),
    /// The time asked for by [`DriveOutput::WakeAt`] has come. Early or needless ones do no harm.
    Wake,
}

/// An output of a model of a drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DriveOutput {
    /// An I/O ended, at the time that was handed in.
    Complete {
        /// The caller's name for it.
        id: DriveIoId,
        /// How it went.
        outcome: IoOutcome,
    },
    /// Hand in [`DriveInput::Wake`] at this time. Replaces the time asked for before.
    WakeAt(Time),
}
