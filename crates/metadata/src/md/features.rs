//! Which fields of a superblock mean something.

use std::fmt;

/// `feature_map`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Features(pub u32);

impl Features {
    /// There is a write-intent bitmap.
    pub const BITMAP: Self = Self(1);
    /// This member is being rebuilt.
    pub const RECOVERY: Self = Self(2);
    /// The shape of the array is being changed.
    pub const RESHAPE: Self = Self(4);
    /// The list of bad blocks is not empty.
    pub const BAD_BLOCKS: Self = Self(8);
    /// This device replaces a member that is still there.
    pub const REPLACEMENT: Self = Self(16);
    /// The reshape goes from the end to the start.
    pub const BACKWARDS: Self = Self(32);
    /// Data move on this device.
    pub const NEW_OFFSET: Self = Self(64);
    /// The rebuild of this member goes by the bitmap.
    pub const RECOVERY_BITMAP: Self = Self(128);
    /// The array is shared by the machines of a cluster.
    pub const CLUSTERED: Self = Self(256);
    /// Writes go to a log device first.
    pub const JOURNAL: Self = Self(512);
    /// Partial parity is logged.
    pub const PPL: Self = Self(1024);
    /// Partial parity is logged, in turns.
    pub const PPLS: Self = Self(2048);
    /// The order within zones of raid0 is known.
    pub const RAID0_LAYOUT: Self = Self(4096);

    /// All that is known.
    pub const KNOWN: Self = Self((1 << 13) - 1);

    /// Whether all of these are set.
    pub const fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Whether partial parity is logged, either way.
    pub const fn has_ppl(self) -> bool {
        self.0 & (Self::PPL.0 | Self::PPLS.0) != 0
    }

    /// What is set and not known.
    pub const fn unknown(self) -> Self {
        Self(self.0 & !Self::KNOWN.0)
    }

    /// Both.
    #[must_use]
    pub const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl fmt::Display for Features {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "0x{:x}", self.0)
    }
}
