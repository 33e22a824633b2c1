//! The map of a layout as a picture.

use std::fmt::Write;

use raidlab_core::geometry::Chunk;

use super::map::Map;

const CELL: (usize, usize) = (72, 30);
const GAP: usize = 6;
const TOP: usize = 64;
const LEFT: usize = 64;

/// Fills of data by row, from a palette that colour-blind readers can tell apart (Okabe and Ito).
const DATA: [&str; 2] = ["#cfe5f5", "#9fcbe8"];
const PARITY: &str = "#f5c77e";
const SECOND_PARITY: &str = "#e69f00";

/// A standalone SVG document; everything in it comes from numbers and fixed words.
pub(super) fn draw(map: &Map) -> String {
    let members = usize::from(map.layout.drives());
    let width = LEFT + members * (CELL.0 + GAP) + GAP;
    let height = TOP + map.rows.len() * (CELL.1 + GAP) + GAP;
    let title = map.title();
    // The title needs about 7 pixels a character.
    let width = width.max(title.len() * 7 + 2 * GAP);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" \
         width=\"{width}\" height=\"{height}\" role=\"img\" font-family=\"sans-serif\" \
         font-size=\"13\">\n<title>{title}</title>\n\
         <rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n\
         <text x=\"{GAP}\" y=\"22\" fill=\"#111111\">{title}</text>\n"
    );
    for member in 0..members {
        let x = LEFT + member * (CELL.0 + GAP) + CELL.0 / 2;
        label(&mut svg, x, TOP - 12, "middle", &format!("member {member}"));
    }
    for (index, row) in map.rows.iter().enumerate() {
        let y = TOP + index * (CELL.1 + GAP);
        label(&mut svg, LEFT - 10, y + 20, "end", &format!("row {index}"));
        for (member, chunk) in row.iter().enumerate() {
            cell(&mut svg, LEFT + member * (CELL.0 + GAP), y, *chunk, members);
        }
    }
    svg.push_str("</svg>\n");
    svg
}

fn cell(svg: &mut String, x: usize, y: usize, chunk: Chunk, members: usize) {
    let (width, height) = CELL;
    let fill = match chunk {
        Chunk::Data { number, .. } => DATA[(number as usize / members.max(1)) % DATA.len()],
        Chunk::P => PARITY,
        Chunk::Q => SECOND_PARITY,
        Chunk::Nothing => "none",
    };
    // Writing to a string does not fail.
    let _ = writeln!(
        svg,
        "<rect x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\" rx=\"4\" \
         fill=\"{fill}\" stroke=\"#555555\"/>"
    );
    label(svg, x + width / 2, y + 20, "middle", &chunk.to_string());
}

fn label(svg: &mut String, x: usize, y: usize, anchor: &str, text: &str) {
    let _ = writeln!(
        svg,
        "<text x=\"{x}\" y=\"{y}\" text-anchor=\"{anchor}\" fill=\"#111111\">{text}</text>"
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use raidlab_core::{Layout, Level};

    #[test]
    fn a_picture_has_a_box_and_a_word_for_each_chunk() {
        let map = Map::new(&Layout::new(Level::Raid5, 4), Some(5)).expect("possible");
        let svg = draw(&map);
        assert_eq!(svg.matches("<rect").count(), 1 + 4 * 5);
        assert_eq!(svg.matches(">P</text>").count(), 5);
        assert_eq!(svg.matches(PARITY).count(), 5);
        assert!(svg.ends_with("</svg>\n"));
        let mirror = Map::new(&Layout::new(Level::Raid1, 2), Some(1)).expect("possible");
        assert!(draw(&mirror).contains(">0'</text>"), "a second copy is marked");
    }
}
