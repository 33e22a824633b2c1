//! How an array keeps redundancy consistent over a crash, and what it does about errors.

use std::fmt;

use crate::contract::Pacing;
use crate::layout::{Layout, LayoutError, Level};
use crate::units::{Nanos, Sectors};

/// What keeps redundancy consistent over a crash. What each mode promises stands in the table of
/// [`crate::consistency`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Consistency {
    /// Nothing, and no superblocks either: the driver remembers the state of the array.
    #[default]
    None,
    /// Superblocks with a flag that says whether writes were under way; all redundancy is made
    /// consistent after an unclean stop.
    Resync,
    /// As `Resync`, with a bit for each range of the members (of the array, on mirrors) that may be
    /// inconsistent: only those are made consistent, and a member that was away gets only those.
    Bitmap {
        /// Sectors a bit stands for: a power of two.
        chunk: Sectors,
    },
    /// raid5: the XOR of what is not being written is logged on the member with P before each write.
    PartialParity {
        /// Entries each member's log has room for, at least 6: half of them may be on their way at once.
        slots: u32,
    },
    /// Levels with parity: data and parity go to a log device before they go to the members.
    Journal {
        /// Sectors of the log device.
        sectors: Sectors,
    },
}

impl Consistency {
    /// Whether members carry superblocks.
    pub const fn has_superblocks(self) -> bool {
        !matches!(self, Self::None)
    }
}

impl fmt::Display for Consistency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.write_str("none"),
            Self::Resync => f.write_str("resync"),
            Self::Bitmap { chunk } => write!(f, "bitmap with a bit for {chunk}"),
            Self::PartialParity { slots } => write!(f, "ppl with {slots} slots"),
            Self::Journal { sectors } => write!(f, "journal of {sectors}"),
        }
    }
}

/// Which way of making parity wins when both read equally much.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Tie {
    /// Reconstruct-write, as Linux md with `rmw_level` 1.
    #[default]
    ReconstructWrite,
    /// Read-modify-write, as Linux md with `rmw_level` 2.
    ReadModifyWrite,
    /// Never read-modify-write, as Linux md with `rmw_level` 0.
    NeverModify,
}

/// How an array keeps redundancy consistent, and what it does about errors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// What keeps redundancy consistent over a crash.
    pub consistency: Consistency,
    /// How long a member may take for one I/O before it is given up; `None` for ever.
    pub deadline: Option<Nanos>,
    /// How long a write that finds no room on a thin or sparse member waits, tried again each second, before
    /// the member counts as failed; `None` for not at all.
    pub room_wait: Option<Nanos>,
    /// How often a block that could not be read is written anew and read again before it is listed
    /// as bad.
    pub heal_tries: u8,
    /// Corrected errors after which a member is taken out of service; md's `max_read_errors`.
    pub most_corrected: u32,
    /// Bad blocks a member's list holds; md has room for 512. A member with more is taken out of
    /// service.
    pub most_bad_blocks: u16,
    /// The metadata of each member list its bad blocks, as md's do: what a rebuild could not have is named there
    /// ([`Array::listed_blocks`](crate::Array::listed_blocks)), and the member is rebuilt all the same. `false`:
    /// superblocks say that it is rebuilt up to there only.
    pub keeps_bad_blocks: bool,
    /// How fast background work goes until told otherwise.
    pub pacing: Pacing,
    /// A tick of the kernel whose md the array stands for: requests and background work then wait for each other as
    /// they do there. `None`: for the ranges that they share only.
    pub resync_tick: Option<Nanos>,
    /// Idle time after which the array is marked clean; md's `safe_mode_delay`.
    pub clean_after: Nanos,
    /// Pages of the bitmap lie as in md's, one after another behind a head of 256 bytes, and those in the same 4 KiB
    /// are written together ([`Array::pages_beside`](crate::Array::pages_beside)). `false`: each has a place
    /// of its own.
    pub packed_bitmap: bool,
    /// How often quiet bits of the bitmap are looked for; two quiet looks clear one, as in md.
    pub bitmap_delay: Nanos,
    /// How parity is made when both ways read equally much.
    pub tie: Tie,
    /// Stripes whose parity and data are kept in memory for later writes; 0 for none.
    pub cached_stripes: u32,
    /// Rows of a stripe that one plan works on at most, in sectors: a power of two, and no less than a logical
    /// block. Larger chunks are worked on a slice after the other, so that they do not need huge scratch. A slot
    /// of a partial-parity log has room for so many, too.
    pub plan_rows: Sectors,
    /// A log of partial parity takes a header at a time, with so many sectors of partial parity at most: md's. The next
    /// is written when what it protects is durable; entries that the array sends out in one input share it. `None`:
    /// each entry has a place of its own.
    pub log_header: Option<Sectors>,
}

/// 1 MiB.
const MOST_PLAN_ROWS: Sectors = Sectors(2048);

impl Default for Settings {
    fn default() -> Self {
        Self {
            consistency: Consistency::None,
            deadline: None,
            room_wait: None,
            heal_tries: 2,
            most_corrected: 20,
            most_bad_blocks: 512,
            keeps_bad_blocks: false,
            pacing: Pacing::default(),
            resync_tick: None,
            clean_after: Nanos(200_000_000),
            packed_bitmap: false,
            bitmap_delay: Nanos(5_000_000_000),
            tie: Tie::default(),
            cached_stripes: 0,
            plan_rows: MOST_PLAN_ROWS,
            log_header: None,
        }
    }
}

impl Settings {
    /// Whether they are possible for a layout.
    ///
    /// # Errors
    /// With the key `consistency` and what would be right.
    pub fn check(&self, layout: &Layout) -> Result<(), ConfigError> {
        let error = |reason: String| Err(ConfigError { key: "consistency", reason });
        let level = layout.level;
        let redundant = level.is_redundant();
        let stripes = level.has_stripes();
        match self.consistency {
            Consistency::None => {}
            _ if layout.inner.is_some() => {
                return error("nested levels keep no superblocks in this version; use none".into());
            }
            _ if !redundant => {
                return error(format!("{level} has no redundancy to keep consistent; use none"));
            }
            Consistency::Resync => {}
            Consistency::Bitmap { chunk } if !chunk.0.is_power_of_two() => {
                return error(format!("a bitmap chunk of {chunk} is not a power of two"));
            }
            Consistency::Bitmap { .. } => {}
            Consistency::PartialParity { .. } if !level.has_partial_parity() => {
                let having = Level::names(Level::has_partial_parity);
                return error(format!("a partial-parity log is for {having}, not {level}"));
            }
            Consistency::PartialParity { slots: 0..6 } => {
                return error("a partial-parity log needs at least 6 slots".into());
            }
            Consistency::PartialParity { .. }
                if self.log_header.is_some_and(|most| most < self.plan_rows) =>
            {
                return error("a header of the log takes less than a plan has rows".into());
            }
            Consistency::PartialParity { .. } => {}
            Consistency::Journal { .. } if !stripes => {
                let having = Level::names(Level::has_stripes);
                return error(format!("a journal is for {having}, not {level}"));
            }
            Consistency::Journal { .. } => {}
        }
        Ok(())
    }
}

/// A configuration that cannot be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigError {
    /// The parameter: a key of the layout, `limits` or `logical_block`.
    pub key: &'static str,
    /// What is wrong and what would be right.
    pub reason: String,
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.key, self.reason)
    }
}

impl std::error::Error for ConfigError {}

impl From<LayoutError> for ConfigError {
    fn from(error: LayoutError) -> Self {
        Self { key: error.key, reason: error.reason }
    }
}
