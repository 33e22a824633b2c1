//! The map of a layout: a row of chunks of all members at a time.

use std::fmt::Write;

use raidlab_core::geometry::{Geometry, Holds, Place};
use raidlab_core::{Layout, LayoutError, Level, MemberIndex, Sector, Sectors, Size};

use super::drawn_chunk;

/// What a chunk of a member holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Chunk {
    /// This chunk of the array, and which copy.
    Data { number: u64, copy: u16 },
    /// Parity.
    P,
    /// Nothing.
    Nothing,
}

impl Chunk {
    pub(super) fn text(self) -> String {
        match self {
            Self::Data { number, .. } => number.to_string(),
            Self::P => "P".into(),
            Self::Nothing => "-".into(),
        }
    }
}

/// Rows of chunks.
#[derive(Debug)]
pub(super) struct Map {
    pub(super) layout: Layout,
    /// `rows[row][member]`.
    pub(super) rows: Vec<Vec<Chunk>>,
}

impl Map {
    pub(super) fn new(layout: &Layout, rows: Option<u64>) -> Result<Self, LayoutError> {
        let rows = rows.unwrap_or_else(|| rows_until_repeated(layout));
        let chunk = drawn_chunk(layout).0;
        // One row more than drawn, so that the last row is one among others.
        let size = Sectors(if layout.level == Level::Linear { rows } else { rows + 1 } * chunk);
        let geometry = Geometry::new(layout, &vec![size; usize::from(layout.members)])?;
        let holds = |row: u64, member| {
            let place = Place { member: MemberIndex(member), at: Sector(row * chunk) };
            match geometry.holds(place) {
                Holds::Data { at, copy } => Chunk::Data { number: at.0 / chunk, copy },
                Holds::P { .. } => Chunk::P,
                Holds::Nothing => Chunk::Nothing,
            }
        };
        let row = |row| (0..layout.members).map(|member| holds(row, member)).collect();
        Ok(Self { layout: layout.clone(), rows: (0..rows).map(row).collect() })
    }

    /// What the picture shows, in a line.
    pub(super) fn title(&self) -> String {
        let layout = &self.layout;
        let chunk = Size(drawn_chunk(layout).bytes());
        let unit = match layout.level {
            Level::Linear | Level::Raid1 => format!("drawn in pieces of {chunk}"),
            _ => format!("chunk {chunk}"),
        };
        let rotation = match layout.level {
            Level::Raid5 => format!(", {}", layout.rotation.name()),
            _ => String::new(),
        };
        let survives = match layout.survives() {
            0 => "survives no lost member".to_string(),
            1 => "survives any 1 lost member".to_string(),
            n => format!("survives any {n} lost members"),
        };
        format!("{layout}: {unit}{rotation}; {survives}")
    }

    pub(super) fn to_text(&self) -> String {
        let members = usize::from(self.layout.members);
        let cells = self.rows.iter().flatten().map(|chunk| chunk.text().len());
        let head = (0..members).map(|member| format!("m{member}").len());
        let width = cells.chain(head).max().unwrap_or(1);
        let label = format!("row {}", self.rows.len().saturating_sub(1)).len();
        let mut text = format!("{}\n\n{:label$}", self.title(), "");
        // Writing to a string does not fail.
        for member in 0..members {
            let _ = write!(text, "  {:>width$}", format!("m{member}"));
        }
        text.push('\n');
        for (index, row) in self.rows.iter().enumerate() {
            let _ = write!(text, "{:label$}", format!("row {index}"));
            for chunk in row {
                let _ = write!(text, "  {:>width$}", chunk.text());
            }
            text.push('\n');
        }
        text.push_str("\nm0, m1, ...: members; numbers: chunks of the array");
        text.push_str(if self.layout.level == Level::Raid5 {
            "; P: parity of the row\n"
        } else {
            "\n"
        });
        text
    }
}

/// Rows after which the pattern repeats, at least 4.
fn rows_until_repeated(layout: &Layout) -> u64 {
    let members = u64::from(layout.members);
    match layout.level {
        Level::Raid5 => members.max(4),
        Level::Raid10 => {
            let near = u64::from(layout.near);
            let slots = members / greatest_common_divisor(members, near) * near;
            (slots / members).max(4)
        }
        Level::Linear | Level::Raid0 | Level::Raid1 => 4,
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

    #[test]
    fn raid5_as_text() {
        let text = Map::new(&Layout::new(Level::Raid5, 4), None).expect("possible").to_text();
        let expected = "\
raid5(4): chunk 512KiB, left-symmetric; survives any 1 lost member

       m0  m1  m2  m3
row 0   0   1   2   P
row 1   4   5   P   3
row 2   8   P   6   7
row 3   P   9  10  11

m0, m1, ...: members; numbers: chunks of the array; P: parity of the row
";
        assert_eq!(text, expected);
    }

    #[test]
    fn odd_raid10_repeats_after_two_rows_and_linear_goes_on() {
        let raid10 = Map::new(&Layout::new(Level::Raid10, 3), Some(2)).expect("possible");
        let numbers: Vec<_> = raid10.rows.concat().into_iter().map(Chunk::text).collect();
        assert_eq!(numbers, ["0", "0", "1", "1", "2", "2"]);
        let linear = Map::new(&Layout::new(Level::Linear, 2), Some(2)).expect("possible");
        let numbers: Vec<_> = linear.rows.concat().into_iter().map(Chunk::text).collect();
        assert_eq!(numbers, ["0", "2", "1", "3"]);
    }
}
