//! A superblock's level and layout as a layout of the core, and back.

use std::fmt;

use raidlab_core::layout::ZoneOrder;
use raidlab_core::{Layout, Level, Rotation, Sectors};

use super::{Features, Superblock};

/// Why the contents of an array are not had, although its superblocks are whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Obstacle {
    /// Features that a newer kernel added: what they change is not known.
    Features(Features),
    /// Its shape was being changed: members lie partly in the old shape and partly in the new one.
    Reshape,
    /// A level that holds no data of its own, or that is not known.
    Level(i32),
    /// A layout that the level does not have.
    Layout {
        /// The level.
        level: &'static str,
        /// The layout word.
        word: u32,
    },
    /// Far sets as Linux 3.9 to 4.2 made them by mistake: copies share members.
    FarSets,
    /// raid0 of unequal members without an order of zones: two kernels would read it differently.
    ZoneOrder,
    /// Members, chunk or sizes that cannot be.
    Shape(String),
}

impl fmt::Display for Obstacle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Features(features) => write!(f, "a newer kernel gave it features ({features}) not known here"),
            Self::Reshape => f.write_str("a reshape of it was interrupted; only md can finish that (mdadm --assemble)"),
            Self::Level(level) => write!(f, "it is {}, which holds no data of an array", level_name(*level)),
            Self::Layout { level, word } => write!(f, "{level} has no layout {word:#x}"),
            Self::FarSets => f.write_str("its far sets are of the kind that Linux 3.9 to 4.2 made by mistake"),
            Self::ZoneOrder => f.write_str(
                "it is raid0 of unequal members that does not say how its zones are ordered; try --zones original \
                 (made before Linux 3.14) and --zones alternate (3.14 to 5.3)",
            ),
            Self::Shape(what) => f.write_str(what),
        }
    }
}

/// A level's name as mdadm prints it.
pub const fn level_name(level: i32) -> &'static str {
    match level {
        -1 => "linear",
        0 => "raid0",
        1 => "raid1",
        4 => "raid4",
        5 => "raid5",
        6 => "raid6",
        10 => "raid10",
        -4 => "multipath",
        -5 => "faulty",
        -100 => "container",
        _ => "-unknown-",
    }
}

/// The core's layout of an array. `sizes` are the sectors that its members have for data, where they are known;
/// `zones` what the administrator says of a raid0 that does not say it.
///
/// # Errors
/// What stands in the way.
pub fn layout(
    one: &Superblock,
    sizes: &[Option<Sectors>],
    zones: Option<ZoneOrder>,
) -> Result<Layout, Obstacle> {
    let unknown = one.features.unknown();
    if unknown != Features(0) {
        return Err(Obstacle::Features(unknown));
    }
    if one.features.has(Features::RESHAPE) {
        return Err(Obstacle::Reshape);
    }
    let members = u16::try_from(one.members).map_err(|_| too_many(one.members))?;
    let chunk = Sectors(u64::from(one.chunk));
    let of = |level| Layout::new(level, members).with_chunk(chunk);
    let layout = match one.level {
        -1 => of(Level::Linear),
        0 => zoned(of(Level::Raid0), one, sizes, zones)?,
        // One copy, and P of one block, are that block.
        1 if members == 1 => Layout::new(Level::Linear, 1),
        5 if members == 2 => Layout::new(Level::Raid1, 2),
        1 => Layout::new(Level::Raid1, members),
        4 => of(Level::Raid4),
        5 => of(Level::Raid5).with_rotation(rotation(Level::Raid5, one.layout)?),
        6 => of(Level::Raid6).with_rotation(rotation(Level::Raid6, one.layout)?),
        10 => copies(of(Level::Raid10), one.layout)?,
        other => return Err(Obstacle::Level(other)),
    };
    layout.check().map_err(|error| Obstacle::Shape(error.to_string()))?;
    Ok(layout)
}

fn too_many(members: u32) -> Obstacle {
    Obstacle::Shape(format!("it has {members} members, at most 128 are carried out"))
}

fn rotation(level: Level, word: u32) -> Result<Rotation, Obstacle> {
    let found = level.rotations().iter().find(|rotation| rotation.md_number() == word);
    found.copied().ok_or(Obstacle::Layout { level: level.name(), word })
}

/// raid0, whose zones have an order only where members end at different places.
fn zoned(
    layout: Layout,
    one: &Superblock,
    sizes: &[Option<Sectors>],
    zones: Option<ZoneOrder>,
) -> Result<Layout, Obstacle> {
    let chunk = u64::from(one.chunk.max(1));
    let mut ends = sizes.iter().flatten().map(|size| size.0 / chunk);
    let first = ends.next();
    let equal = ends.all(|end| Some(end) == first);
    let said = one.features.has(Features::RAID0_LAYOUT);
    let order = match (said, one.layout) {
        (true, 1) => ZoneOrder::Original,
        (true, 2) => ZoneOrder::Alternate,
        (true, word) if word != 0 => return Err(Obstacle::Layout { level: "raid0", word }),
        _ if equal => ZoneOrder::Original,
        _ => zones.ok_or(Obstacle::ZoneOrder)?,
    };
    Ok(layout.with_zones(order))
}

/// raid10, by the word that md has for its copies.
fn copies(layout: Layout, word: u32) -> Result<Layout, Obstacle> {
    let (near, far) = ((word & 0xff) as u16, (word >> 8 & 0xff) as u16);
    let far_sets = match word >> 17 {
        0 => 0,
        1 => return Err(Obstacle::FarSets),
        2 => 2,
        _ => return Err(Obstacle::Layout { level: "raid10", word }),
    };
    let is_offset = word >> 16 & 1 == 1;
    Ok(layout.with_far(far).with_near(near).with_offset(is_offset).with_far_sets(far_sets))
}

/// Level and layout word of a layout as a superblock has them; `None` for a level that md does not have.
pub fn word(layout: &Layout) -> Option<(i32, u32)> {
    Some(match layout.level {
        Level::Linear => (-1, 0),
        Level::Raid0 => (0, 0),
        Level::Raid1 => (1, 0),
        Level::Raid3 => return None,
        Level::Raid4 => (4, 0),
        Level::Raid5 => (5, layout.rotation.md_number()),
        Level::Raid6 => (6, layout.rotation.md_number()),
        Level::Raid10 => {
            let Layout { near, far, offset, far_sets, .. } = *layout;
            (
                10,
                u32::from(near)
                    | u32::from(far) << 8
                    | u32::from(offset) << 16
                    | u32::from(far_sets) << 17,
            )
        }
    })
}
