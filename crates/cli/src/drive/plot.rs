//! Curves in the terminal: braille dots where the locale takes them, stars elsewhere.

/// Characters of a plot, without its axes.
const WIDTH: usize = 60;
const HEIGHT: usize = 12;

/// Dots of a braille character by column and row, as bits from U+2800 on.
const DOTS: [[u8; 4]; 2] = [[0x01, 0x02, 0x04, 0x40], [0x08, 0x10, 0x20, 0x80]];

/// A curve through points by ascending x, from the origin up; lines joined by straight ones. `top` and
/// `right` are the labels of the largest values.
pub(super) fn curve(points: &[(f64, f64)], top: &str, right: &str, unicode: bool) -> String {
    let (across, down) = if unicode { (2, 4) } else { (1, 1) };
    let (columns, rows) = (WIDTH * across, HEIGHT * down);
    let largest = |values: &mut dyn Iterator<Item = f64>| values.fold(f64::MIN_POSITIVE, f64::max);
    let widest = largest(&mut points.iter().map(|point| point.0));
    let highest = largest(&mut points.iter().map(|point| point.1));
    let mut cells = vec![0_u8; WIDTH * HEIGHT];
    let mut below: Option<usize> = None;
    for column in 0..columns {
        let x = widest * column as f64 / (columns - 1) as f64;
        let Some(y) = at(points, x) else { continue };
        let level = (y / highest * (rows - 1) as f64 + 0.5) as usize;
        // Steep parts are drawn whole.
        let from = below.map_or(level, |below| if below < level { below + 1 } else { level });
        for level in from.min(level)..=level {
            let row = rows - 1 - level;
            let dot = if unicode { DOTS[column % 2][row % 4] } else { 1 };
            cells[row / down * WIDTH + column / across] |= dot;
        }
        below = Some(level);
    }
    let margin = top.chars().count().max(1);
    let mut out = String::new();
    for (row, line) in cells.chunks(WIDTH).enumerate() {
        let label = match row {
            0 => top,
            _ if row == HEIGHT - 1 => "0",
            _ => "",
        };
        let drawn: String = line.iter().map(|cell| glyph(*cell, unicode)).collect();
        let axis = if unicode { '│' } else { '|' };
        out.push_str(&format!("{label:>margin$} {axis}{}\n", drawn.trim_end()));
    }
    let (corner, line) = if unicode { ("└", "─") } else { ("+", "-") };
    out.push_str(&format!("{:margin$} {corner}{}\n", "", line.repeat(WIDTH)));
    out.push_str(&format!("{:margin$}  0{right:>width$}\n", "", width = WIDTH - 1));
    out
}

fn glyph(cell: u8, unicode: bool) -> char {
    match (cell, unicode) {
        (0, _) => ' ',
        (_, false) => '*',
        (dots, true) => char::from_u32(0x2800 + u32::from(dots)).unwrap_or('*'),
    }
}

/// The curve at x; none left of its first point.
fn at(points: &[(f64, f64)], x: f64) -> Option<f64> {
    let next = points.partition_point(|point| point.0 < x);
    let right = points.get(next).or(points.last())?;
    let Some(left) = next.checked_sub(1).and_then(|left| points.get(left)) else {
        return (right.0 <= x).then_some(right.1);
    };
    let span = right.0 - left.0;
    let share = if span > 0.0 { ((x - left.0) / span).min(1.0) } else { 1.0 };
    Some(left.1 + (right.1 - left.1) * share)
}

/// A bar of up to 30 characters.
pub(super) fn bar(value: f64, largest: f64, unicode: bool) -> String {
    let eighths = (value / largest.max(f64::MIN_POSITIVE) * 240.0 + 0.5) as usize;
    if !unicode {
        return "#".repeat(eighths.div_ceil(8));
    }
    let part = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"][eighths % 8];
    "█".repeat(eighths / 8) + part
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_straight_line_goes_from_corner_to_corner() {
        let drawn = curve(&[(0.0, 0.0), (10.0, 5.0)], "5 ms", "10", false);
        let lines: Vec<_> = drawn.lines().collect();
        assert_eq!(lines.len(), HEIGHT + 2);
        assert!(lines[0].starts_with("5 ms |") && lines[0].ends_with("***"), "{drawn}");
        assert!(lines[HEIGHT - 1].starts_with("   0 |***"), "{drawn}");
        let dots: Vec<_> = drawn.lines().map(|line| line.matches('*').count()).collect();
        assert_eq!(dots.iter().sum::<usize>(), WIDTH, "one in every column");
        let braille = curve(&[(0.0, 0.0), (10.0, 5.0)], "5 ms", "10", true);
        assert!(braille.lines().next().unwrap().contains('\u{2800}') || braille.contains('⠉'));
    }

    #[test]
    fn bars_are_as_long_as_values_are_large() {
        assert_eq!(bar(1.0, 2.0, false).len(), 15);
        assert_eq!(bar(2.0, 2.0, true).chars().count(), 30);
        assert_eq!(bar(0.0, 2.0, true), "");
    }
}
