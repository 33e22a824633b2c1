//! The metadata of Linux md: versions 0.90, 1.0, 1.1 and 1.2.
//!
//! Names of fields are those of the kernel's `include/uapi/linux/raid/md_p.h`; what each means for the promises of
//! [`raidlab_core::consistency`] stands in `docs/md-format.md`. Fault model: any bytes at all, on any device; the one
//! superblock of a device may be torn, the bitmap has no checksum. No input makes a function here panic, or use more
//! memory than the device could fill. Tests: `tests/md.rs`, the fuzz target `md`, and against mdadm and the kernel
//! `crates/cli/tests/array.rs`.

mod assemble;
pub mod bad_blocks;
mod bitmap;
mod create;
pub mod ddf;
mod device_numbers;
mod features;
pub(crate) mod fields;
mod format;
mod inspect;
mod join;
pub mod journal;
mod kept;
mod logs;
mod partitions;
mod ppl;
mod shape;
mod superblock;
mod v0;
mod why;

pub use assemble::{
    Allowed, Assembly, Cannot, Place, Purpose, assemble, not_used, unlike as unlike_bitmaps,
};
pub use bitmap::{Bitmap, BitmapKind};
pub use create::{
    Creation, Device, Impossible, LogDevice, Made, Plan, WantedBitmap, usual_data_offset,
};
pub use device_numbers::DeviceNumbers;
pub use features::Features;
pub(crate) use format::HISTORY;
pub use format::{Md, PARTIAL_PARITY, Ready};
pub use inspect::{BitmapSeen, Inspected, LogSeen, Seen, inspect};
pub(crate) use inspect::{MOST_BITMAP, read};
pub use join::{Joined, join, keeps_bad_blocks};
pub use journal::{AddedJournal, Journal, JournalDamage, JournalFound, JournalRow, LoggedRows};
pub use kept::{Kept, LARGEST_BITMAP, tell_failed};
pub use logs::JournalBlock;
pub use ppl::{Ppl, PplEntry, PplHeader, PplSeen};
pub use shape::{Obstacle, layout, level_name, word};
pub use superblock::{ALL, Aside, BadBlockLog, Damage, Frame, Reshape, Role, Superblock};
pub use v0::{ByteOrder, V0, V0Device};
pub use why::{Out, Why, uuid};

use raidlab_core::{Sector, Sectors};

/// A version of the superblock, which is also the place where it stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Version {
    /// 64 to 128 KiB before the end of the device.
    V0_90,
    /// 8 to 12 KiB before the end of the device.
    V1_0,
    /// At its start.
    V1_1,
    /// 4 KiB behind its start.
    V1_2,
}

impl Version {
    /// All of them, in the order in which a device is looked at.
    pub const ALL: [Self; 4] = [Self::V0_90, Self::V1_0, Self::V1_1, Self::V1_2];

    /// As mdadm names it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::V0_90 => "0.90",
            Self::V1_0 => "1.0",
            Self::V1_1 => "1.1",
            Self::V1_2 => "1.2",
        }
    }

    /// The sector of the superblock on a device of so many sectors; `None` on one that is too small, which md refuses.
    pub const fn superblock(self, device: Sectors) -> Option<Sector> {
        let least = if matches!(self, Self::V0_90) { v0::RESERVED } else { 24 };
        if device.0 < least {
            return None;
        }
        Some(Sector(match self {
            Self::V0_90 => device.0 / v0::RESERVED * v0::RESERVED - v0::RESERVED,
            Self::V1_0 => (device.0 - 16) / 8 * 8,
            Self::V1_1 => 0,
            Self::V1_2 => 8,
        }))
    }
}

impl std::fmt::Display for Version {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

impl std::str::FromStr for Version {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|one| one.name() == text);
        found.ok_or_else(|| {
            format!("`{text}` is not a version that can be made; known: 0.90, 1.0, 1.1, 1.2")
        })
    }
}
