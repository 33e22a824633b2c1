//! The map of a layout: a row of chunks of all members at a time.

use std::fmt;

use super::{Geometry, Holds, Place};
use crate::layout::{DEFAULT_CHUNK, Layout, LayoutError, Level, Redundancy};
use crate::units::{MemberIndex, Sector, Sectors};

/// What a chunk of a member holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Chunk {
    /// This chunk of the array, and which copy.
    Data {
        /// Which chunk.
        number: u64,
        /// Which copy, from 0.
        copy: u16,
    },
    /// Parity.
    P,
    /// The second parity.
    Q,
    /// Nothing.
    Nothing,
}

impl fmt::Display for Chunk {
    /// Its number, with `'` for each copy after the first; `P`, `Q`, `-`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Data { number, copy } => {
                write!(f, "{number}{}", "'".repeat(usize::from(*copy)))
            }
            Self::P => f.write_str("P"),
            Self::Q => f.write_str("Q"),
            Self::Nothing => f.write_str("-"),
        }
    }
}

/// Rows of chunks.
#[derive(Debug)]
pub struct ChunkMap {
    /// `rows[row][member]`.
    pub rows: Vec<Vec<Chunk>>,
}

impl ChunkMap {
    /// Of a layout: so many rows, or until the pattern has repeated.
    ///
    /// # Errors
    /// When the layout cannot be.
    pub fn new(layout: &Layout, rows: Option<u64>) -> Result<Self, LayoutError> {
        let rows = rows.unwrap_or_else(|| rows_until_repeated(layout));
        let chunk = drawn_chunk(layout).0;
        // Where copies or members lie one behind another, the whole array is drawn; else one row more
        // than drawn exists, so that the last row is one among others.
        let is_whole =
            |floor: &Layout| floor.level == Level::Linear || (floor.far > 1 && !floor.offset);
        let drawn = if layout.floors().any(is_whole) { rows } else { rows + 1 };
        // A lower array has room for a chunk of the upper one at least.
        let least =
            layout.floors().map(|floor| floor.chunk.0.div_ceil(chunk) * u64::from(floor.far));
        let size = Sectors(drawn.max(least.max().unwrap_or(0)) * chunk);
        let geometry = Geometry::new(layout, &vec![size; usize::from(layout.drives())])?;
        let holds = |row: u64, member| {
            let place = Place { member: MemberIndex(member), at: Sector(row * chunk) };
            match geometry.holds(place) {
                Holds::Data { at, copy } => Chunk::Data { number: at.0 / chunk, copy },
                Holds::P { .. } => Chunk::P,
                Holds::Q { .. } => Chunk::Q,
                Holds::Nothing => Chunk::Nothing,
            }
        };
        let row = |row| (0..layout.drives()).map(|member| holds(row, member)).collect();
        Ok(Self { rows: (0..rows).map(row).collect() })
    }
}

/// The chunk to draw with: the layout's, the smallest of nested levels, a sector for raid3, or 512 KiB where there is
/// none.
pub fn drawn_chunk(layout: &Layout) -> Sectors {
    if layout.floors().any(|floor| floor.level.is_cut_by_sectors()) {
        return Sectors(1);
    }
    let chunks = layout.floors().map(|floor| floor.chunk).filter(|chunk| *chunk > Sectors::ZERO);
    chunks.min().unwrap_or(DEFAULT_CHUNK)
}

/// Rows after which the pattern repeats, at least 4.
fn rows_until_repeated(layout: &Layout) -> u64 {
    let of_floors = layout.floors().map(rows_of_level);
    of_floors.max().unwrap_or(4)
}

fn rows_of_level(layout: &Layout) -> u64 {
    let members = u64::from(layout.members);
    match layout.level.redundancy() {
        Redundancy::Parity(_) if !layout.level.rotations().is_empty() => members.max(4),
        Redundancy::Copies => {
            let near = u64::from(layout.near);
            let slots = members / greatest_common_divisor(members, near) * near;
            (slots / members).max(2) * u64::from(layout.far).max(2)
        }
        Redundancy::None | Redundancy::Mirror | Redundancy::Parity(_) => 4,
    }
}

fn greatest_common_divisor(mut a: u64, mut b: u64) -> u64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(layout: &Layout) -> Vec<String> {
        let map = ChunkMap::new(layout, None).expect("possible");
        let row = |row: &Vec<Chunk>| row.iter().map(Chunk::to_string).collect::<Vec<_>>().join(" ");
        map.rows.iter().map(row).collect()
    }

    #[test]
    fn chunks_parity_and_copies_are_told_apart() {
        let raid5 = Layout::new(Level::Raid5, 4);
        assert_eq!(rows(&raid5), ["0 1 2 P", "4 5 P 3", "8 P 6 7", "P 9 10 11"]);
        let far = Layout::new(Level::Raid10, 4).with_far(2);
        assert_eq!(rows(&far), ["0 1 2 3", "4 5 6 7", "3' 0' 1' 2'", "7' 4' 5' 6'"]);
    }
}
