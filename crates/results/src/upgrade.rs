//! Documents of earlier schema versions, as documents of today.
//!
//! Version 1 (before November 2026) judged a layout by whether intervals of medians overlapped, and had no floor.
//! Its samples are kept, each round's in the same place, so what they show is said anew by the rule of today
//! ([`crate::comparison`]).

use serde_json::{Map, Value};

use crate::comparison::Row;
use crate::document::{Clock, Results, SCHEMA_VERSION};
use crate::error::{ResultsError, ResultsErrorKind};
use crate::find::row_metric;
use crate::replay::Replays;

/// The oldest version that is understood.
const OLDEST: u32 = 1;

/// Ratios nearer to 1 mean nothing, by the clock: what a study says of itself is not in documents of version 1.
const fn floor(clock: Clock) -> f64 {
    match clock {
        Clock::Virtual => 0.01,
        Clock::Real => 0.005,
    }
}

/// Makes the text of a document, or of one of several replays, one of today's schema version; a text of today's
/// version comes out as it would be written today.
///
/// # Errors
/// [`ResultsErrorKind::SchemaVersion`] of a version that is newer, or none at all;
/// [`ResultsErrorKind::Malformed`] when the text is no such document.
pub fn upgrade(text: &str) -> Result<String, ResultsError> {
    let mut value: Value = serde_json::from_str(text).map_err(ResultsError::malformed)?;
    let Some(several) = value.get_mut("replays") else { return one(value)?.to_json() };
    let several = several.as_array_mut().map(std::mem::take).unwrap_or_default();
    let documents: Result<Vec<Results>, ResultsError> = several.into_iter().map(one).collect();
    Replays::new(documents?).to_json()
}

fn one(mut value: Value) -> Result<Results, ResultsError> {
    let version = value["schema_version"].as_u64().unwrap_or(0);
    let is_known = (u64::from(OLDEST)..=u64::from(SCHEMA_VERSION)).contains(&version);
    if !is_known {
        let context = format!(
            "the document has schema_version {version}; this version of raidlab converts {OLDEST} to \
             {SCHEMA_VERSION}"
        );
        return Err(ResultsError::new(ResultsErrorKind::SchemaVersion, context));
    }
    let is_first = version == 1;
    if is_first {
        value["schema_version"] = SCHEMA_VERSION.into();
        let cells = value["cells"].as_array_mut();
        cells.into_iter().flatten().filter_map(Value::as_object_mut).for_each(forget_verdict);
    }
    let mut results: Results = serde_json::from_value(value).map_err(ResultsError::malformed)?;
    if is_first {
        judge(&mut results);
    }
    results.forget_untold();
    Ok(results)
}

/// Takes out what version 1 judged, some of it in words that are no more.
fn forget_verdict(cell: &mut Map<String, Value>) {
    cell.insert("verdict".to_owned(), Value::Null);
    cell.insert("percent_vs_baseline".to_owned(), Value::Null);
}

/// Judges the layouts of each row by the rule of today.
fn judge(results: &mut Results) {
    let mut rows: Vec<Vec<usize>> = Vec::new();
    for (at, cell) in results.cells.iter().enumerate() {
        let is_of = |row: &&mut Vec<usize>| {
            let first = &results.cells[row[0]];
            let metrics = (row_metric(&first.metric), row_metric(&cell.metric));
            metrics.0 == metrics.1
                && (&first.workload, first.processes, &first.state, &first.settings)
                    == (&cell.workload, cell.processes, &cell.state, &cell.settings)
        };
        match rows.iter_mut().find(is_of) {
            Some(row) => row.push(at),
            None => rows.push(vec![at]),
        }
    }
    for row in rows {
        judge_row(results, &row);
    }
    let said = "this document had schema_version 1: differences and verdicts were computed anew from its samples, \
                without what is known of the model's error";
    results.warnings.push(said.to_owned());
}

fn judge_row(results: &mut Results, row: &[usize]) {
    let floor = floor(results.clock);
    let samples: Vec<Vec<f64>> = row.iter().map(|at| results.cells[*at].samples.clone()).collect();
    let layouts: Vec<&[f64]> = samples.iter().map(Vec::as_slice).collect();
    let place = |name: &String| row.iter().position(|at| results.cells[*at].layout == *name);
    let baseline: Vec<usize> =
        results.baseline.iter().map(place).collect::<Option<_>>().unwrap_or_default();
    let judged = Row {
        layouts: &layouts,
        baseline: &baseline,
        again: None,
        better: results.cells[row[0]].better,
        floor,
        doubt: 0.0,
        drawn: results.clock == Clock::Virtual,
    };
    let (compared, standings) = (judged.compare(), judged.against_best());
    for ((at, comparison), standing) in row.iter().zip(compared).zip(standings) {
        let cell = &mut results.cells[*at];
        cell.floor_percent = Some(floor * 100.0);
        cell.may_be_best = standing.may_be_best;
        cell.as_good_as_best = standing.as_good_as_best;
        if let Some(comparison) = comparison {
            cell.percent_vs_baseline = Some(comparison.percent);
            cell.percent_interval = comparison.interval;
            cell.verdict = Some(comparison.verdict);
            cell.more_rounds = comparison.more_rounds;
            cell.dependence = comparison.dependence;
        } else if results.baseline == [cell.layout.clone()] {
            cell.percent_vs_baseline = Some(0.0);
        }
    }
}
