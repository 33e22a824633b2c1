//! A drive of any kind.

use raidlab_core::units::{Nanos, Sectors, Time};

use crate::disk::HardDisk;
use crate::drive::{DriveInput, DriveIo, DriveOutput};
use crate::file::DriveKind;
use crate::smr::Smr;
use crate::ssd::Ssd;

/// A modelled drive of any kind, with the shape that all have: hand in what happens, drain outputs.
#[derive(Clone, Debug)]
#[expect(
    clippy::large_enum_variant,
    reason = "drives lie side by side in a list; a box costs a miss"
)]
pub enum Drive {
    /// A hard disk.
    HardDisk(HardDisk),
    /// An SSD.
    Ssd(Ssd),
    /// A shingled disk that hides its zones.
    Smr(Smr),
}

impl Drive {
    /// A drive at rest as its file describes it. The seed gives what differs between equal drives.
    pub fn new(kind: &DriveKind, seed: u64) -> Self {
        match kind {
            DriveKind::HardDisk(spec) => Self::HardDisk(HardDisk::new(spec, seed)),
            DriveKind::Ssd(spec) => Self::Ssd(Ssd::new(spec, seed)),
            DriveKind::Smr(spec) => Self::Smr(Smr::new(spec, seed)),
        }
    }

    /// Takes an input. `now` is the same as before or later; an earlier one counts as the same.
    #[inline]
    pub fn handle(&mut self, now: Time, input: DriveInput) {
        match self {
            Self::HardDisk(drive) => drive.handle(now, input),
            Self::Ssd(drive) => drive.handle(now, input),
            Self::Smr(drive) => drive.handle(now, input),
        }
    }

    /// The next output; drain until `None` after every [`handle`](Self::handle).
    #[inline]
    pub fn poll(&mut self) -> Option<DriveOutput> {
        match self {
            Self::HardDisk(drive) => drive.poll(),
            Self::Ssd(drive) => drive.poll(),
            Self::Smr(drive) => drive.poll(),
        }
    }

    /// Asks for a wake-up at the ends of commands only; gives whether the drive can do that, and so takes
    /// [`submit_at`](Self::submit_at). See [`HardDisk::predict_completions`].
    pub fn predict_completions(&mut self) -> bool {
        match self {
            Self::HardDisk(drive) => drive.predict_completions(),
            Self::Ssd(_) | Self::Smr(_) => false,
        }
    }

    /// A command that comes at `at`, which may lie ahead; only for a drive that predicts ends.
    #[inline]
    pub fn submit_at(&mut self, at: Time, io: DriveIo) {
        match self {
            Self::HardDisk(drive) => drive.submit_at(at, io),
            other => other.handle(at, DriveInput::Submit(io)),
        }
    }

    /// What the drive holds.
    pub fn capacity(&self) -> Sectors {
        match self {
            Self::HardDisk(drive) => drive.capacity(),
            Self::Ssd(drive) => drive.capacity(),
            Self::Smr(drive) => drive.capacity(),
        }
    }

    /// How long the drive's bottleneck worked: the mechanism of a disk; of an SSD the busiest of
    /// controller, interface and dies.
    pub fn busy(&self) -> Nanos {
        match self {
            Self::HardDisk(drive) => drive.busy(),
            Self::Ssd(drive) => drive.busy(),
            Self::Smr(drive) => drive.busy(),
        }
    }

    /// The same by `now`, for a drive that predicts ends.
    pub fn busy_by(&self, now: Time) -> Nanos {
        match self {
            Self::HardDisk(drive) => drive.busy_by(now),
            other => other.busy(),
        }
    }
}

impl From<HardDisk> for Drive {
    fn from(drive: HardDisk) -> Self {
        Self::HardDisk(drive)
    }
}

impl From<Ssd> for Drive {
    fn from(drive: Ssd) -> Self {
        Self::Ssd(drive)
    }
}

impl From<Smr> for Drive {
    fn from(drive: Smr) -> Self {
        Self::Smr(drive)
    }
}

impl DriveKind {
    /// Commands that the drive works on at once, at least 1; a request queue gives it no more.
    pub fn queue_depth(&self) -> u32 {
        let depth = match self {
            Self::HardDisk(spec) => spec.figures().queue_depth,
            Self::Ssd(spec) => spec.figures().queue_depth,
            Self::Smr(spec) => spec.figures().disk.queue_depth,
        };
        depth.max(1)
    }
}
