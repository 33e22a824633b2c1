//! Small bars in a line of text: how a layout goes with more processes, and how rounds vary.

use raidlab_results::document::Cell;

use crate::view::{Row, Section, half_range};

/// From nothing to all.
const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
/// Fewer values than this are read faster as numbers.
const FEWEST: usize = 3;
/// A line whose largest value is less than this many times its smallest is flat.
const FLAT: f64 = 1.25;
/// Rounds that vary by more than this many percent of the median are drawn.
const WIDE_PERCENT: f64 = 10.0;
/// More rounds than this are cut off.
const MOST_ROUNDS: usize = 40;

/// A bar for each value, the height by its share of the largest there may be.
pub(super) fn bars(values: impl Iterator<Item = Option<f64>>, largest: f64) -> String {
    let bar = |value: Option<f64>| match value {
        Some(value) if value >= 0.0 && largest > 0.0 => {
            let place = (value / largest * BARS.len() as f64) as usize;
            BARS[place.min(BARS.len() - 1)]
        }
        _ => ' ',
    };
    values.map(bar).collect()
}

/// Runs of a section's rows that differ in the number of processes alone and are worth a line: where each begins and
/// ends.
pub(super) fn runs(section: &Section<'_>) -> Vec<(usize, usize)> {
    let mut runs: Vec<(usize, usize)> = Vec::new();
    for (at, row) in section.rows.iter().enumerate() {
        let same = |start: usize| {
            let first = &section.rows[start];
            (first.state, first.settings) == (row.state, row.settings)
        };
        match runs.last_mut() {
            Some((start, end)) if same(*start) => *end = at + 1,
            _ => runs.push((at, at + 1)),
        }
    }
    runs.retain(|(start, end)| {
        let rows = &section.rows[*start..*end];
        rows.len() >= FEWEST && (0..rows[0].cells.len()).any(|layout| says_something(rows, layout))
    });
    runs
}

fn says_something(rows: &[Row<'_>], layout: usize) -> bool {
    let (low, high) = extent(rows.iter().filter_map(|row| row.cells[layout]));
    high > low * FLAT
}

fn extent<'a>(cells: impl Iterator<Item = &'a Cell>) -> (f64, f64) {
    cells.fold((f64::INFINITY, 0.0), |(low, high), cell| {
        let value = cell.median;
        (if value < low { value } else { low }, if value > high { value } else { high })
    })
}

/// The line of a layout over a run of rows; heights are shares of the run's largest median.
pub(super) fn line(rows: &[Row<'_>], layout: usize) -> String {
    let all = rows.iter().flat_map(|row| row.cells.iter().copied().flatten());
    let (_, largest) = extent(all);
    bars(rows.iter().map(|row| row.cells[layout].map(|cell| cell.median)), largest)
}

/// What a line is over: `1 to 8`.
pub(super) fn label(rows: &[Row<'_>]) -> String {
    let ends = (rows.first().map(|row| row.processes), rows.last().map(|row| row.processes));
    match ends {
        (Some(first), Some(last)) => format!("{first} to {last}"),
        _ => String::new(),
    }
}

/// The rounds of a cell that varies, in their order, as shares of the largest.
pub(super) fn rounds(cell: &Cell) -> Option<String> {
    let half = half_range(cell).filter(|half| *half > WIDE_PERCENT)?;
    let largest = cell.samples.iter().fold(0.0, |most, one| if *one > most { *one } else { most });
    let shown = cell.samples.iter().take(MOST_ROUNDS).map(|one| Some(*one));
    (half.is_finite() && cell.samples.len() >= FEWEST).then(|| bars(shown, largest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heights_are_shares_of_the_largest() {
        let values = [Some(0.0), Some(50.0), None, Some(100.0)];
        assert_eq!(bars(values.into_iter(), 100.0), "▁▅ █");
        assert_eq!(bars([Some(0.0)].into_iter(), 0.0), " ", "nothing to compare with");
    }
}
