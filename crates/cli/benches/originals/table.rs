//! What pairs of figures show: ratios, the interval of their median, a verdict, a table.

use std::fmt::Write;

use raidlab_results::statistics::{Interval, median, median_interval};

/// Ratios within these are called equal.
const LOW: f64 = 0.9;
const HIGH: f64 = 1.1;

/// The figures of an original and ours, pair by pair.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Row {
    pub(crate) name: String,
    pub(crate) unit: String,
    /// The original's and ours; of pairs in which one told nothing there is none.
    pub(crate) pairs: Vec<(f64, f64)>,
    /// Pairs that are missing because a phase was too short to tell.
    pub(crate) untold: usize,
}

/// What an interval of the ratio shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// It lies inside 0.9 to 1.1.
    Within,
    /// It lies partly inside: neither is shown.
    NotShown,
    /// It lies wholly below 0.9 or above 1.1.
    Outside,
    /// There are too few pairs for an interval.
    TooFew,
}

impl Verdict {
    /// Of the interval of the median ratio.
    pub(crate) fn of(interval: Option<Interval>) -> Self {
        match interval {
            None => Self::TooFew,
            Some(Interval { low, high, .. }) if low >= LOW && high <= HIGH => Self::Within,
            Some(Interval { low, high, .. }) if high < LOW || low > HIGH => Self::Outside,
            Some(_) => Self::NotShown,
        }
    }

    const fn words(self) -> &'static str {
        match self {
            Self::Within => "within 0.9 to 1.1",
            Self::NotShown => "not shown",
            Self::Outside => "outside",
            Self::TooFew => "too few pairs",
        }
    }
}

impl Row {
    /// Ours over the original's, pair by pair.
    fn ratios(&self) -> Vec<f64> {
        self.pairs.iter().map(|(original, ours)| ours / original).collect()
    }
}

/// The table of all rows, in Markdown that is readable as it is.
pub(crate) fn table(rows: &[Row]) -> String {
    let head = ["name", "unit", "pairs", "original", "ours", "ratio", "95 % interval", "verdict"];
    let mut lines = vec![head.map(str::to_string)];
    lines.extend(rows.iter().map(line));
    let widths: [usize; 8] = std::array::from_fn(|column| {
        lines.iter().map(|line| line[column].chars().count()).max().unwrap_or(0)
    });
    let mut text = String::new();
    for (index, line) in lines.iter().enumerate() {
        let cells = line.iter().zip(widths).enumerate().map(|(column, (cell, width))| {
            // Numbers to the right, words to the left.
            if (2..=5).contains(&column) {
                format!("{cell:>width$}")
            } else {
                format!("{cell:width$}")
            }
        });
        let cells: Vec<String> = cells.collect();
        text.push_str(&format!("| {} |\n", cells.join(" | ")));
        if index == 0 {
            let rules = widths.iter().enumerate().map(|(column, width)| {
                let end = if (2..=5).contains(&column) { ":" } else { "-" };
                "-".repeat(width + 1) + end
            });
            let rules: Vec<String> = rules.collect();
            text.push_str(&format!("|{}|\n", rules.join("|")));
        }
    }
    text
}

fn line(row: &Row) -> [String; 8] {
    let ratios = row.ratios();
    let interval = median_interval(&ratios);
    let of = |values: Vec<f64>| median(&values).map_or_else(|| "-".into(), figure);
    [
        row.name.clone(),
        row.unit.clone(),
        match row.untold {
            0 => row.pairs.len().to_string(),
            untold => format!("{} ({untold} too short)", row.pairs.len()),
        },
        of(row.pairs.iter().map(|(original, _)| *original).collect()),
        of(row.pairs.iter().map(|(_, ours)| *ours).collect()),
        median(&ratios).map_or_else(|| "-".into(), |ratio| format!("{ratio:.3}")),
        interval.map_or_else(|| "-".into(), |it| format!("{:.3} to {:.3}", it.low, it.high)),
        Verdict::of(interval).words().into(),
    ]
}

/// Every pair, in the order they were run: `original/ours`.
pub(crate) fn pairs(rows: &[Row]) -> String {
    let mut text = String::new();
    for row in rows {
        // Writing to a text does not fail.
        let _ = write!(text, "{}:", row.name);
        for (original, ours) in &row.pairs {
            let _ = write!(text, " {}/{}", figure(*original), figure(*ours));
        }
        text.push('\n');
    }
    text
}

/// Four digits that count.
fn figure(value: f64) -> String {
    match value.abs() {
        size if size >= 1000.0 => format!("{value:.0}"),
        size if size >= 100.0 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}
