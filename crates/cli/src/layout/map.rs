//! The map of a layout: a row of chunks of all members at a time.

use std::fmt::Write;

use raidlab_core::geometry::{Chunk, ChunkMap, drawn_chunk};
use raidlab_core::{Layout, LayoutError, Size};

/// What is drawn of a layout.
#[derive(Debug)]
pub(super) struct Map {
    pub(super) layout: Layout,
    /// `rows[row][member]`.
    pub(super) rows: Vec<Vec<Chunk>>,
}

impl Map {
    pub(super) fn new(layout: &Layout, rows: Option<u64>) -> Result<Self, LayoutError> {
        Ok(Self { layout: layout.clone(), rows: ChunkMap::new(layout, rows)?.rows })
    }

    /// What the picture shows, in a line.
    pub(super) fn title(&self) -> String {
        let layout = &self.layout;
        let chunk = Size(drawn_chunk(layout).bytes());
        let unit = match layout.level {
            _ if layout.inner.is_some() => format!("drawn in chunks of {chunk}"),
            level if level.has_chunks() => format!("chunk {chunk}"),
            level if level.is_cut_by_sectors() => format!("drawn in sectors of {chunk}"),
            _ => format!("drawn in pieces of {chunk}"),
        };
        let rotation = |floor: &Layout| match floor.level.rotations() {
            [] => String::new(),
            _ => format!(", {}", floor.rotation.name()),
        };
        let rotations: String = layout.floors().map(rotation).collect();
        let what = if layout.inner.is_some() { "drive" } else { "member" };
        let survives = match layout.survives() {
            0 => format!("survives no lost {what}"),
            1 => format!("survives any 1 lost {what}"),
            n => format!("survives any {n} lost {what}s"),
        };
        format!("{layout}: {unit}{rotations}; {survives}")
    }

    pub(super) fn to_text(&self) -> String {
        let members = usize::from(self.layout.drives());
        let of_array = self.layout.inner.as_ref().map_or(members, |inner| inner.members.into());
        let between =
            |member: usize| if member > 0 && member.is_multiple_of(of_array) { "  |" } else { "" };
        let cells = self.rows.iter().flatten().map(|chunk| word(chunk).len());
        let head = (0..members).map(|member| format!("m{member}").len());
        let width = cells.chain(head).max().unwrap_or(1);
        let label = format!("row {}", self.rows.len().saturating_sub(1)).len();
        let mut text = format!("{}\n\n{:label$}", self.title(), "");
        // Writing to a string does not fail.
        for member in 0..members {
            let _ = write!(text, "{}  {:>width$}", between(member), format!("m{member}"));
        }
        text.push('\n');
        for (index, row) in self.rows.iter().enumerate() {
            let _ = write!(text, "{:label$}", format!("row {index}"));
            for (member, chunk) in row.iter().enumerate() {
                let _ = write!(text, "{}  {:>width$}", between(member), word(chunk));
            }
            text.push('\n');
        }
        let what = if of_array < members { "drives, an array between |" } else { "members" };
        let _ = write!(text, "\nm0, m1, ...: {what}; numbers: chunks of the array");
        let parities = self.layout.floors().map(Layout::parities).max();
        text.push_str(match parities {
            Some(1) => "; P: parity of the row\n",
            Some(2) => "; P and Q: parities of the row\n",
            _ => "\n",
        });
        text
    }
}

/// What of a chunk stands in text, where copies are not told apart.
fn word(chunk: &Chunk) -> String {
    chunk.to_string().trim_end_matches('\'').to_owned()
}

#[cfg(test)]
mod tests {
    use raidlab_core::Level;

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
    fn nested_levels_are_drawn_drive_by_drive() {
        let raid50: Layout = "raid5+0(2x3) chunk=64K".parse().expect("is a layout");
        let text = Map::new(&raid50, None).expect("possible").to_text();
        let expected = "\
raid5+0(2x3) chunk=64K: drawn in chunks of 64KiB, left-symmetric; survives any 1 lost drive

       m0  m1  m2  |  m3  m4  m5
row 0   0   2   P  |   1   3   P
row 1   6   P   4  |   7   P   5
row 2   P   8  10  |   P   9  11
row 3  12  14   P  |  13  15   P

m0, m1, ...: drives, an array between |; numbers: chunks of the array; P: parity of the row
";
        assert_eq!(text, expected);
        // An upper chunk larger than what is drawn.
        let large: Layout = "raid1+0(2x2) chunk=1M".parse().expect("is a layout");
        assert!(Map::new(&large, Some(1)).is_ok());
        let far: Layout = "raid5+0(2x3) chunk=64K outer-chunk=8M".parse().expect("is a layout");
        assert!(Map::new(&far, None).is_ok());
    }

    #[test]
    fn odd_raid10_repeats_after_two_rows_and_linear_goes_on() {
        let raid10 = Map::new(&Layout::new(Level::Raid10, 3), Some(2)).expect("possible");
        let numbers: Vec<_> = raid10.rows.concat().into_iter().map(|chunk| word(&chunk)).collect();
        assert_eq!(numbers, ["0", "0", "1", "1", "2", "2"]);
        let linear = Map::new(&Layout::new(Level::Linear, 2), Some(2)).expect("possible");
        let numbers: Vec<_> = linear.rows.concat().into_iter().map(|chunk| word(&chunk)).collect();
        assert_eq!(numbers, ["0", "2", "1", "3"]);
    }
    #[test]
    fn parities_and_far_copies_are_drawn() {
        let numbers = |layout: &Layout| -> Vec<String> {
            let map = Map::new(layout, None).expect("possible");
            let row = |row: &Vec<Chunk>| row.iter().map(word).collect::<Vec<_>>().join(" ");
            map.rows.iter().map(row).collect()
        };
        let raid6 = Layout::new(Level::Raid6, 4);
        assert_eq!(numbers(&raid6), ["Q 0 1 P", "2 3 P Q", "5 P Q 4", "P Q 6 7"]);
        let far = Layout::new(Level::Raid10, 4).with_far(2);
        assert_eq!(numbers(&far), ["0 1 2 3", "4 5 6 7", "3 0 1 2", "7 4 5 6"]);
        let offset = far.clone().with_offset(true);
        assert_eq!(numbers(&offset), ["0 1 2 3", "3 0 1 2", "4 5 6 7", "7 4 5 6"]);
        let raid3 = Layout::new(Level::Raid3, 5);
        assert_eq!(numbers(&raid3)[..2], ["0 1 2 3 P", "4 5 6 7 P"]);
    }
}
