//! Layouts: a level with its parameters, checked, and named as users write them.

use std::fmt;
use std::str::FromStr;

use crate::units::{Sectors, Size};

/// How an array spreads and protects data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Level {
    /// Members one after another.
    Linear,
    /// Chunks dealt in turn to all members.
    Raid0,
    /// Every member holds everything.
    Raid1,
    /// Stripes with one parity chunk, its place rotating.
    Raid5,
    /// Chunks dealt in turn, each kept in several copies.
    Raid10,
}

impl Level {
    /// Every level this version carries out.
    pub const ALL: [Self; 5] = [Self::Linear, Self::Raid0, Self::Raid1, Self::Raid5, Self::Raid10];

    /// The name in study files and on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Linear => "linear",
            Self::Raid0 => "raid0",
            Self::Raid1 => "raid1",
            Self::Raid5 => "raid5",
            Self::Raid10 => "raid10",
        }
    }

    /// The fewest members the level makes sense with.
    pub const fn fewest_members(self) -> u16 {
        match self {
            Self::Linear | Self::Raid0 => 1,
            Self::Raid1 | Self::Raid10 => 2,
            Self::Raid5 => 3,
        }
    }

    /// Whether the level divides members into chunks.
    pub const fn has_chunks(self) -> bool {
        !matches!(self, Self::Linear | Self::Raid1)
    }
}

impl FromStr for Level {
    type Err = LayoutError;

    fn from_str(text: &str) -> Result<Self, LayoutError> {
        let found = Self::ALL.into_iter().find(|level| level.name() == text);
        found.ok_or_else(|| {
            let known: Vec<_> = Self::ALL.iter().map(|level| level.name()).collect();
            LayoutError::new(
                "level",
                format!("`{text}` is not a level; known: {}", known.join(", ")),
            )
        })
    }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Where parity lies from stripe to stripe. Names and numbers as `mdadm --layout` has them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Rotation {
    /// Parity moves from the last member down; data start behind it. The default of Linux md.
    #[default]
    LeftSymmetric,
}

impl Rotation {
    /// Every rotation this version carries out.
    pub const ALL: [Self; 1] = [Self::LeftSymmetric];

    /// The name in study files and on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::LeftSymmetric => "left-symmetric",
        }
    }
}

impl FromStr for Rotation {
    type Err = LayoutError;

    fn from_str(text: &str) -> Result<Self, LayoutError> {
        let found = Self::ALL.into_iter().find(|rotation| rotation.name() == text);
        found.ok_or_else(|| {
            let known: Vec<_> = Self::ALL.iter().map(|rotation| rotation.name()).collect();
            LayoutError::new(
                "rotation",
                format!("`{text}` is not a rotation; known: {}", known.join(", ")),
            )
        })
    }
}

/// A level with its parameters.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Layout {
    /// The level.
    pub level: Level,
    /// How many members.
    pub members: u16,
    /// Contiguous sectors on one member. linear rounds members down to it, 0 for no rounding; raid1
    /// has none (0).
    pub chunk: Sectors,
    /// Parity levels: where parity lies.
    pub rotation: Rotation,
    /// raid10: copies on neighbouring members.
    pub near: u16,
}

/// The chunk of Linux md since mdadm 3.1: 512 KiB.
pub const DEFAULT_CHUNK: Sectors = Sectors(1024);

/// The most members an array may have.
pub const MOST_MEMBERS: u16 = 128;

impl Layout {
    /// A layout with the defaults of Linux md: 512 KiB chunk where the level has chunks (linear
    /// and raid1: none), left-symmetric, near 2.
    pub const fn new(level: Level, members: u16) -> Self {
        let chunk = if level.has_chunks() { DEFAULT_CHUNK } else { Sectors::ZERO };
        Self { level, members, chunk, rotation: Rotation::LeftSymmetric, near: 2 }
    }

    /// The same with another chunk.
    #[must_use]
    pub const fn with_chunk(mut self, chunk: Sectors) -> Self {
        self.chunk = chunk;
        self
    }

    /// The same with another number of near copies.
    #[must_use]
    pub const fn with_near(mut self, near: u16) -> Self {
        self.near = near;
        self
    }

    /// How many lost members the level survives whichever they are.
    pub const fn survives(&self) -> u16 {
        match self.level {
            Level::Linear | Level::Raid0 => 0,
            Level::Raid1 => self.members - 1,
            Level::Raid5 => 1,
            Level::Raid10 => self.near - 1,
        }
    }

    /// Checks the parameters against each other.
    ///
    /// # Errors
    /// Names the parameter that is wrong and says what would be right.
    pub fn check(&self) -> Result<(), LayoutError> {
        let fewest = self.level.fewest_members();
        if self.members < fewest {
            return Err(LayoutError::new(
                "members",
                format!("{} needs at least {fewest} members, not {}", self.level, self.members),
            ));
        }
        if self.members > MOST_MEMBERS {
            return Err(LayoutError::new(
                "members",
                format!("at most {MOST_MEMBERS} members, not {}", self.members),
            ));
        }
        if self.level.has_chunks() && self.chunk == Sectors::ZERO {
            return Err(LayoutError::new(
                "chunk",
                "the chunk must be at least one sector of 512 bytes",
            ));
        }
        if self.chunk.0 > u64::from(u32::MAX / 2) {
            return Err(LayoutError::new(
                "chunk",
                format!("{} is too large; at most 1TiB", self.chunk),
            ));
        }
        if matches!(self.level, Level::Raid5 | Level::Raid10) && !self.chunk.0.is_power_of_two() {
            return Err(LayoutError::new(
                "chunk",
                format!("{} needs a chunk that is a power of two, not {}", self.level, self.chunk),
            ));
        }
        if self.level == Level::Raid1 && self.chunk != Sectors::ZERO {
            return Err(LayoutError::new("chunk", "raid1 has no chunks; leave `chunk` out"));
        }
        if self.level == Level::Raid10 && !(2..=self.members).contains(&self.near) {
            return Err(LayoutError::new(
                "near",
                format!("near must be from 2 to the {} members, not {}", self.members, self.near),
            ));
        }
        Ok(())
    }
}

/// A chunk from a size in bytes.
///
/// # Errors
/// When it is not a whole number of sectors.
pub fn chunk_from_size(size: Size) -> Result<Sectors, LayoutError> {
    Sectors::from_bytes(size.0).filter(|chunk| *chunk != Sectors::ZERO).ok_or_else(|| {
        LayoutError::new("chunk", format!("{size} is not a multiple of the sector (512 bytes)"))
    })
}

impl fmt::Display for Layout {
    /// `LEVEL(MEMBERS)` with what differs from the default behind it; one linear member is `single`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.level == Level::Linear && self.members == 1 {
            return f.write_str("single");
        }
        write!(f, "{}({})", self.level, self.members)?;
        if self.chunk != Self::new(self.level, self.members).chunk {
            let size = Size(self.chunk.bytes()).to_string();
            let short = size.strip_suffix("iB").unwrap_or(&size);
            write!(f, " chunk={short}")?;
        }
        if self.level == Level::Raid10 && self.near != 2 {
            write!(f, " near{}", self.near)?;
        }
        Ok(())
    }
}

/// A parameter of a layout that cannot be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LayoutError {
    /// The parameter, as it is called in study files: `level`, `members`, `chunk`, `rotation`, `near`.
    pub key: &'static str,
    /// What is wrong and what would be right.
    pub reason: String,
}

impl LayoutError {
    pub(crate) fn new(key: &'static str, reason: impl Into<String>) -> Self {
        Self { key, reason: reason.into() }
    }
}

impl fmt::Display for LayoutError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.key, self.reason)
    }
}

impl std::error::Error for LayoutError {}
