//! What reports show of each cell, as texts, for programs that arrange them in their own way.

use raidlab_results::document::{Cell, Results, Verdict};

use crate::view::{self, View};
use crate::{ReportError, figure, number, shown, trusted};

/// What a report shows of a cell.
#[derive(Clone, Debug, PartialEq)]
pub struct Glance<'a> {
    /// The cell.
    pub cell: &'a Cell,
    /// Its median, without the unit unless it is a time that suits it: `225`, `11 h 00 min`, `unknown`.
    pub value: String,
    /// As it stands behind the value: `MiB/s`, `IOPS`; empty where the value has it.
    pub unit: String,
    /// Where the median of as many rounds as anybody likes would lie; none where rounds are too few.
    pub confidence: Option<String>,
    /// How far a kernel's figure may be from it, or why that is not known.
    pub trust: Option<String>,
    /// What it is against the baseline, with sign; none for the baseline itself.
    pub percent: Option<String>,
    /// The interval of that.
    pub percent_interval: Option<String>,
    /// The verdict on it, in words.
    pub verdict: Option<&'static str>,
    /// What must be known of it, such as why it is unknown or from how little it is estimated.
    pub note: Option<String>,
    /// All of it in one line.
    pub words: String,
}

/// The texts of all cells, in the document's order; details, which reports leave out, are among them.
///
/// # Errors
/// A document that contradicts itself, see [`crate::ReportErrorKind`].
pub fn glances(results: &Results) -> Result<Vec<Glance<'_>>, ReportError> {
    View::new(results)?;
    Ok(results.cells.iter().map(glance).collect())
}

fn glance(cell: &Cell) -> Glance<'_> {
    let unit = view::unit(&cell.metric, &cell.unit);
    let is_compared = cell.verdict.is_some() && !cell.tells_too_little();
    let percent = cell.percent_vs_baseline.filter(|_| is_compared);
    let interval = cell.percent_interval.filter(|_| is_compared);
    Glance {
        cell,
        value: shown::value(cell),
        unit: if shown::is_rebuild(&cell.metric) { String::new() } else { unit.to_owned() },
        confidence: shown::confidence(cell),
        trust: trusted::of_cell(cell),
        percent: percent.map(number::percent),
        percent_interval: interval
            .map(|[low, high]| format!("{} to {}", number::percent(low), number::percent(high))),
        verdict: cell.verdict.filter(|_| is_compared).map(word),
        note: if cell.tells_too_little() { Some(shown::too_little()) } else { cell.note.clone() },
        words: figure::words(cell, unit),
    }
}

const fn word(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Faster => "better",
        Verdict::Slower => "worse",
        Verdict::Equal => "equal within the floor",
        Verdict::NotResolved => "not resolved",
    }
}

/// How far the predicted figures of a document can be trusted, in words: what each line is about, and what is known.
///
/// # Errors
/// A document that contradicts itself, see [`crate::ReportErrorKind`].
pub fn trust_lines(results: &Results) -> Result<Vec<(String, String)>, ReportError> {
    let view = View::new(results)?;
    Ok(trusted::lines(&view).into_iter().map(|known| (known.title, known.text)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    const DOCUMENT: &str = r#"{
        "schema_version": 2, "raidlab": "0.1.0", "study": "Two", "seed": 1, "clock": "virtual",
        "host": {}, "settings": {}, "warnings": [], "baseline": ["a"],
        "layouts": [{"name": "a", "capacity": 8000, "survives": 1}, {"name": "b", "capacity": 8000, "survives": 1}],
        "workloads": [{"name": "w", "description": ""}],
        "cells": [
            {"layout": "a", "workload": "w", "processes": 1, "state": "healthy", "metric": "iops",
             "better": "higher", "unit": "1/s", "samples": [100.0], "median": 100.0, "mean": 100.0, "settings": {},
             "first_done_s": 1.0, "last_done_s": 1.0},
            {"layout": "b", "workload": "w", "processes": 1, "state": "healthy", "metric": "iops",
             "better": "higher", "unit": "1/s", "samples": [150.0], "median": 150.0, "mean": 150.0, "settings": {},
             "percent_vs_baseline": 50.0, "percent_interval": [48.0, 52.0], "verdict": "faster",
             "first_done_s": 1.0, "last_done_s": 1.0},
            {"layout": "a", "workload": "w", "processes": 0, "state": "rebuilding", "metric": "rebuild_estimate_s",
             "better": "lower", "unit": "s", "samples": [39600.0], "median": 39600.0, "mean": 39600.0,
             "settings": {}, "first_done_s": 1.0, "last_done_s": 1.0}
        ]
    }"#;

    #[test]
    fn what_is_compared_says_so_and_rebuilds_are_hours() {
        let results = Results::from_json(DOCUMENT).expect("a document");
        let glances = glances(&results).expect("agrees with itself");
        let plain = |text: &str| text.replace([number::NO_BREAK, number::THIN], " ");
        let [baseline, other, rebuild] = glances.as_slice() else { panic!("{glances:?}") };
        assert_eq!((baseline.value.as_str(), baseline.unit.as_str()), ("100", "IOPS"));
        assert_eq!((&baseline.percent, baseline.verdict), (&None, None));
        assert_eq!(other.percent.as_deref().map(plain), Some("+50 %".to_owned()));
        let interval = other.percent_interval.as_deref().map(plain);
        assert_eq!(interval, Some("+48 % to +52 %".to_owned()));
        assert_eq!(other.verdict, Some("better"));
        let value = plain(&rebuild.value);
        assert_eq!((value.as_str(), rebuild.unit.as_str()), ("about 11 h 00 min", ""));
    }
}
