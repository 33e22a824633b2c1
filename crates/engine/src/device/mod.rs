//! Block devices of the user's: what they are, what is on them, who uses them, and a claim on them.
//!
//! Fault model: the user names the wrong device, or one that something else uses or begins to use. Why it
//! is safe: a device is opened exclusively (`O_EXCL`) before it is looked at and stays so until the end; the
//! kernel then refuses mounts, swap and arrays on it, and refuses us where one is there. What must
//! never be written (mounted, swap, held by something, below the root filesystem, read-only) is told by
//! [`Device::refusals`] and has no override. Nothing is written here but by
//! [`Claim::file`]'s user. Tests: those below, and `crates/cli/tests/block_devices.rs`.

mod claim;
mod hold;
mod inspect;
mod loops;
pub mod mounts;
mod own;
mod place;
mod save;
mod served;
mod tools;
mod who;

pub use claim::{Claim, SAVED_BYTES};
pub(crate) use hold::Hold;
pub use hold::ReadHold;
pub use loops::LoopStatus;
pub use save::{SaveDirectory, SaveLog};
pub use served::{Serving, is_served};

use std::fmt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::error::EngineError;

/// A name that something has put on a device: a filesystem, a partition table, a member of an array.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Signature {
    /// The device or its partition, by the kernel's name, such as `sdb1`.
    pub device: String,
    /// What, as util-linux calls it, such as `ext4`, `gpt` or `linux_raid_member`; what is raidlab's own is
    /// `raidlab_member` or `raidlab_journal`.
    pub kind: String,
    /// The byte it was found at, where that is known.
    pub at: Option<u64>,
    /// Its label, or else its UUID.
    pub name: Option<String>,
}

impl fmt::Display for Signature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} on {}", self.kind, self.device)?;
        if let Some(name) = &self.name {
            write!(f, " ({name})")?;
        }
        match self.at {
            Some(at) => write!(f, " at byte {at}"),
            None => Ok(()),
        }
    }
}

/// Why a device must not be written, whatever the user says.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum DeviceRefusal {
    /// Something is mounted from the device or a part of it.
    Mounted {
        /// The device or partition, by the kernel's name.
        device: String,
        /// Where.
        at: PathBuf,
    },
    /// The device or a part of it is swap space in use.
    Swap {
        /// The device or partition, by the kernel's name.
        device: String,
    },
    /// An array, a volume or a loop device is made of it or a part of it.
    Held {
        /// The device or partition, by the kernel's name.
        device: String,
        /// Who, by the kernel's name, such as `md0` or `dm-1`.
        by: String,
    },
    /// The root filesystem lies on it.
    Root,
    /// It takes no writes.
    ReadOnly,
    /// It has no room at all: no medium is in it, or no file behind it.
    Empty,
    /// Something has opened it exclusively that shows nowhere else.
    Busy,
}

impl fmt::Display for DeviceRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Mounted { device, at } => write!(f, "{device} is mounted at {}", at.display()),
            Self::Swap { device } => write!(f, "{device} is swap space in use"),
            Self::Held { device, by } => write!(f, "{device} is in use by {by}"),
            Self::Root => write!(f, "the root filesystem lies on it"),
            Self::ReadOnly => write!(f, "it is read-only"),
            Self::Empty => write!(f, "it has no room: no medium is in it"),
            Self::Busy => write!(f, "something has opened it exclusively"),
        }
    }
}

/// A block device as it was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Device {
    /// As the user named it.
    pub path: PathBuf,
    /// The kernel's name, such as `sdb`.
    pub name: String,
    /// The whole disk's name, which is `name` itself unless that is a partition.
    pub disk: String,
    /// Bytes.
    pub size: u64,
    /// Bytes of one of its own sectors: what it reads and writes at least.
    pub sector: u32,
    /// The maker's name for it.
    pub model: Option<String>,
    /// Its serial number; none for partitions.
    pub serial: Option<String>,
    /// Its links in `/dev/disk/by-id`, sorted.
    pub by_id: Vec<PathBuf>,
    /// The UUID in the partition table, for partitions.
    pub part_uuid: Option<String>,
    /// The file behind a loop device.
    pub backing_file: Option<PathBuf>,
    /// It has platters, as far as the kernel knows.
    pub rotational: bool,
    /// What is on it and on its partitions.
    pub signatures: Vec<Signature>,
    /// Why it must not be written; empty when it may.
    pub refusals: Vec<DeviceRefusal>,
}

impl Device {
    /// Looks at a device, without claiming or writing anything.
    ///
    /// # Errors
    /// [`Member`](crate::EngineErrorKind::Member) when it is no block device,
    /// [`NotSupported`](crate::EngineErrorKind::NotSupported) when `lsblk`, `blkid` or `wipefs` (util-linux)
    /// cannot be asked what is on it, [`Io`](crate::EngineErrorKind::Io) when the system refuses.
    pub fn inspect(path: &Path) -> Result<Self, EngineError> {
        inspect::Roots::system().inspect(path)
    }

    /// What a user may name it by to confirm that it is this device that is meant: serial number, by-id
    /// names, UUID of the partition, or the file behind a loop device. Never a name that the kernel gives in
    /// the order it finds devices.
    pub fn identities(&self) -> Vec<String> {
        let names = self.by_id.iter().filter_map(|link| link.file_name());
        let names = names.map(|name| name.to_string_lossy().into_owned());
        let serial = self.serial.iter().cloned();
        let file = self.backing_file.iter().map(|file| file.display().to_string());
        serial.chain(names).chain(self.part_uuid.iter().cloned()).chain(file).collect()
    }

    /// Whether this and another device share sectors: they are the same, one is a partition of the other, or
    /// both show the same bytes of a file or device, as loop devices may.
    pub fn overlaps(&self, other: &Self) -> bool {
        let is_whole = |one: &Self| one.name == one.disk;
        let same_disk = self.disk == other.disk && (is_whole(self) || is_whole(other));
        let extents = || self.extent().zip(other.extent());
        self.name == other.name
            || same_disk
            || extents().is_some_and(|(own, its)| own.overlaps(&its))
    }

    /// Where its bytes really lie, as long as it is there.
    fn extent(&self) -> Option<place::Extent> {
        let number = std::fs::metadata(&self.path).ok()?.rdev();
        Some(place::of_device(number, None, 0..self.size).extent)
    }
}
