//! Levels: what each is, one row of a table.

use std::fmt;
use std::str::FromStr;

use super::{LayoutError, Rotation, nested_levels};

/// How an array spreads and protects data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Level {
    /// Members one after another.
    Linear,
    /// Chunks dealt in turn to all members.
    Raid0,
    /// Every member holds everything.
    Raid1,
    /// Every logical sector cut over all data members, parity on the last.
    Raid3,
    /// Stripes with one parity chunk, always on the last member.
    Raid4,
    /// Stripes with one parity chunk, its place rotating.
    Raid5,
    /// Stripes with two parity chunks, P and Q.
    Raid6,
    /// Chunks dealt in turn, each kept in several copies.
    Raid10,
}

/// What a level does against the loss of members.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Redundancy {
    /// Nothing.
    None,
    /// Every member has everything.
    Mirror,
    /// Each chunk has copies, as many as the layout says.
    Copies,
    /// So many members of a stripe hold parity.
    Parity(u16),
}

/// A parameter that levels may have, besides members.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Parameter {
    /// [`Layout::chunk`](super::Layout::chunk): of linear what members are rounded down to.
    Chunk,
    /// [`Layout::rotation`](super::Layout::rotation).
    Rotation,
    /// [`Layout::near`](super::Layout::near).
    Near,
    /// [`Layout::far`](super::Layout::far).
    Far,
    /// [`Layout::offset`](super::Layout::offset).
    Offset,
    /// [`Layout::far_sets`](super::Layout::far_sets).
    FarSets,
    /// [`Layout::zones`](super::Layout::zones).
    Zones,
}

impl Parameter {
    /// The key in study files; flags have hyphens where it has underscores.
    pub const fn key(self) -> &'static str {
        match self {
            Self::Chunk => "chunk",
            Self::Rotation => "rotation",
            Self::Near => "near",
            Self::Far => "far",
            Self::Offset => "offset",
            Self::FarSets => "far_sets",
            Self::Zones => "zones",
        }
    }
}

/// What a level is.
struct Row {
    level: Level,
    /// Its name in study files and on the command line.
    name: &'static str,
    /// md's name for it; `None` where md has none.
    md: Option<&'static str>,
    fewest_members: u16,
    redundancy: Redundancy,
    /// It divides members into chunks.
    chunks: bool,
    /// Its chunks must be a power of two, as in Linux md.
    power_of_two: bool,
    /// What a layout of it may say.
    parameters: &'static [Parameter],
    /// Where parity may rotate.
    rotations: &'static [Rotation],
    /// It can keep a log of partial parity.
    partial_parity: bool,
    /// Numbers of members of arrays that are small, for those who go through all: tests and the checker.
    small: &'static [u16],
}

const PLAIN: Row = Row {
    level: Level::Linear,
    name: "linear",
    md: Some("linear"),
    fewest_members: 1,
    redundancy: Redundancy::None,
    chunks: false,
    power_of_two: false,
    parameters: &[Parameter::Chunk],
    rotations: &[],
    partial_parity: false,
    small: &[2],
};

const STRIPES: Row = Row { chunks: true, power_of_two: true, ..PLAIN };

/// A new level is a row here, a file of addresses in `geometry`, and tests; CONTRIBUTING.md has the list. md takes
/// raid4 and raid5 of two members, where P is a second copy; raid4 is as md has it, raid5 starts where it is not a
/// mirror.
const ROWS: [Row; 8] = [
    PLAIN,
    Row {
        level: Level::Raid0,
        name: "raid0",
        md: Some("0"),
        chunks: true,
        parameters: &[Parameter::Chunk, Parameter::Zones],
        small: &[3],
        ..PLAIN
    },
    Row {
        level: Level::Raid1,
        name: "raid1",
        md: Some("1"),
        fewest_members: 2,
        redundancy: Redundancy::Mirror,
        parameters: &[],
        small: &[2, 3],
        ..PLAIN
    },
    Row {
        level: Level::Raid3,
        name: "raid3",
        md: None,
        fewest_members: 3,
        redundancy: Redundancy::Parity(1),
        parameters: &[],
        small: &[3],
        ..PLAIN
    },
    Row {
        level: Level::Raid4,
        name: "raid4",
        md: Some("4"),
        fewest_members: 2,
        redundancy: Redundancy::Parity(1),
        small: &[4],
        ..STRIPES
    },
    Row {
        level: Level::Raid5,
        name: "raid5",
        md: Some("5"),
        fewest_members: 3,
        redundancy: Redundancy::Parity(1),
        parameters: &[Parameter::Chunk, Parameter::Rotation],
        rotations: &Rotation::RAID5,
        partial_parity: true,
        small: &[3, 4],
        ..STRIPES
    },
    Row {
        level: Level::Raid6,
        name: "raid6",
        md: Some("6"),
        fewest_members: 4,
        redundancy: Redundancy::Parity(2),
        parameters: &[Parameter::Chunk, Parameter::Rotation],
        rotations: &Rotation::ALL,
        small: &[4, 5],
        ..STRIPES
    },
    Row {
        level: Level::Raid10,
        name: "raid10",
        md: Some("10"),
        fewest_members: 2,
        redundancy: Redundancy::Copies,
        parameters: &[
            Parameter::Chunk,
            Parameter::Near,
            Parameter::Far,
            Parameter::Offset,
            Parameter::FarSets,
        ],
        small: &[4],
        ..STRIPES
    },
];

// Rows are found by the number of their level.
const _: () = {
    let mut index = 0;
    while index < ROWS.len() {
        assert!(ROWS[index].level as usize == index);
        index += 1;
    }
};

impl Level {
    /// Every level this version carries out.
    pub const ALL: [Self; ROWS.len()] = {
        let mut all = [Self::Linear; ROWS.len()];
        let mut index = 0;
        while index < ROWS.len() {
            all[index] = ROWS[index].level;
            index += 1;
        }
        all
    };

    const fn row(self) -> &'static Row {
        &ROWS[self as usize]
    }

    /// The name in study files and on the command line.
    pub const fn name(self) -> &'static str {
        self.row().name
    }

    /// What `mdadm --level` calls it; `None` where Linux md has no such level.
    pub const fn md_name(self) -> Option<&'static str> {
        self.row().md
    }

    /// The fewest members the level takes.
    pub const fn fewest_members(self) -> u16 {
        self.row().fewest_members
    }

    /// What it does against the loss of members.
    pub const fn redundancy(self) -> Redundancy {
        self.row().redundancy
    }

    /// Whether it survives the loss of a member.
    pub const fn is_redundant(self) -> bool {
        !matches!(self.redundancy(), Redundancy::None)
    }

    /// Whether the level divides members into chunks.
    pub const fn has_chunks(self) -> bool {
        self.row().chunks
    }

    /// Whether the level has stripes of chunks with parity of their own: what a journal, a partial-parity log and
    /// the stripe cache are of.
    pub const fn has_stripes(self) -> bool {
        self.has_chunks() && matches!(self.redundancy(), Redundancy::Parity(_))
    }

    /// Whether each sector is cut over all members with data, as RAID 3 does: parity without chunks.
    pub const fn is_cut_by_sectors(self) -> bool {
        !self.has_chunks() && matches!(self.redundancy(), Redundancy::Parity(_))
    }

    /// Whether a row of chunks lies in one piece in the array: stripes, with parity or without.
    pub const fn has_rows(self) -> bool {
        self.has_chunks() && !matches!(self.redundancy(), Redundancy::Copies)
    }

    /// Whether chunks must be a power of two, as in Linux md: all but those of raid0 and the
    /// rounding of linear.
    pub const fn needs_power_of_two(self) -> bool {
        self.row().power_of_two
    }

    /// Whether a layout of the level may say this.
    pub fn takes(self, parameter: Parameter) -> bool {
        self.row().parameters.contains(&parameter)
    }

    /// Whether the level can keep a log of partial parity.
    pub const fn has_partial_parity(self) -> bool {
        self.row().partial_parity
    }

    /// Numbers of members of its small arrays, rising: few enough that all that can happen to one is gone through.
    pub const fn small_arrays(self) -> &'static [u16] {
        self.row().small
    }

    /// The names of the levels of which something holds, for messages: `raid4, raid5 and raid6`.
    pub fn names(holds: impl Fn(Self) -> bool) -> String {
        let names: Vec<_> = Self::ALL.into_iter().filter(|level| holds(*level)).collect();
        let names: Vec<&str> = names.into_iter().map(Self::name).collect();
        match names.split_last() {
            Some((last, [])) => (*last).to_owned(),
            Some((last, others)) => format!("{} and {last}", others.join(", ")),
            None => String::new(),
        }
    }

    /// The rotations the level has; none where parity does not rotate.
    pub const fn rotations(self) -> &'static [Rotation] {
        self.row().rotations
    }
}

impl FromStr for Level {
    type Err = LayoutError;

    fn from_str(text: &str) -> Result<Self, LayoutError> {
        let found = Self::ALL.into_iter().find(|level| level.name() == text);
        found.ok_or_else(|| {
            let known: Vec<_> = Self::ALL.iter().map(|level| level.name()).collect();
            let why = match nested_levels(text) {
                Some((lower, upper)) => format!(
                    "`{text}` is two levels, {upper} over several {lower}: such as {lower}+{}(2x4)",
                    upper.name().trim_start_matches("raid"),
                ),
                None => format!("`{text}` is not a level"),
            };
            LayoutError::new("level", format!("{why}; known: {}", known.join(", ")))
        })
    }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
