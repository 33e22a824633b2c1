//! The document as comma-separated values for spreadsheets and statistics programs: a row is one cell, or one round of
//! one. Numbers stand as they are in the document, to the last digit, with a point; what is not known is empty.

use std::collections::{BTreeMap, BTreeSet};

use raidlab_results::document::{Better, Cell, Clock, Results, TooShort, Verdict};

use raidlab_results::trust::CellTrust;

use crate::sheet::Sheet;
use crate::view::View;
use crate::{Exporter, ReportError};

/// One row for each cell with every figure of it: what `--csv` writes. `median`, `mean`, `ci95` and `published` are in
/// the `unit` of the row. Settings have a column each, `setting KEY`. Behind the cells stands a row without figures for
/// each that has none as its rounds were too short to tell: `too_short` is how many were, of as many as `rounds`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Csv;

/// One row for each round of each cell: what `--csv-rounds` writes. `value` is in the `unit` of the row. Cells without
/// a figure as rounds were too short to tell have no rounds here either; [`Csv`] names them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CsvRounds;

impl Exporter for Csv {
    fn write(&self, documents: &[Results]) -> Result<Vec<u8>, ReportError> {
        let columns: Vec<&str> = FIGURES.iter().map(|(name, _)| *name).chain([TOO_SHORT]).collect();
        let of_cell = |cell: &Cell| {
            let figures = FIGURES.iter().map(|(_, figure)| figure(cell));
            vec![figures.chain([String::new()]).collect()]
        };
        let of_short = |short: &TooShort| {
            let figure = |name: &&str| match *name {
                ROUNDS => short.of.to_string(),
                TOO_SHORT => short.rounds.to_string(),
                _ => String::new(),
            };
            vec![columns.iter().map(figure).collect()]
        };
        table(documents, &columns, of_cell, of_short)
    }
}

impl Exporter for CsvRounds {
    fn write(&self, documents: &[Results]) -> Result<Vec<u8>, ReportError> {
        let of_cell = |cell: &Cell| {
            let row = |(round, sample): (u32, &f64)| {
                let outlier = cell.outlier_rounds.contains(&round);
                let (round, value) = (round.to_string(), sample.to_string());
                vec![round, value, outlier.to_string(), cell.detail.to_string()]
            };
            (1..).zip(&cell.samples).map(row).collect()
        };
        table(documents, &["round", "value", "outlier", "detail"], of_cell, |_| Vec::new())
    }
}

/// A column of a cell.
type Column = (&'static str, fn(&Cell) -> String);

/// What every row begins with, besides the study's own.
const AXES: &[Column] = &[
    ("workload", |cell| cell.workload.clone()),
    ("layout", |cell| cell.layout.clone()),
    ("processes", |cell| cell.processes.to_string()),
    ("state", |cell| cell.state.clone()),
    ("metric", |cell| cell.metric.clone()),
    ("unit", |cell| cell.unit.clone()),
    ("better", |cell| {
        match cell.better {
            Better::Higher => "higher",
            Better::Lower => "lower",
        }
        .into()
    }),
];

/// How many rounds a figure is of.
const ROUNDS: &str = "rounds";
/// How many of them were too short to tell it.
const TOO_SHORT: &str = "too_short";

/// The figures of a cell.
const FIGURES: &[Column] = &[
    (ROUNDS, |cell| cell.samples.len().to_string()),
    ("median", |cell| cell.median.to_string()),
    ("mean", |cell| cell.mean.to_string()),
    ("ci95_low", |cell| end(cell.ci95, 0)),
    ("ci95_high", |cell| end(cell.ci95, 1)),
    ("coverage", |cell| known(cell.coverage)),
    ("spread_percent", |cell| known(cell.spread_percent)),
    ("percent_vs_baseline", |cell| known(cell.percent_vs_baseline)),
    ("percent_interval_low", |cell| end(cell.percent_interval, 0)),
    ("percent_interval_high", |cell| end(cell.percent_interval, 1)),
    ("floor_percent", |cell| known(cell.floor_percent)),
    ("verdict", |cell| cell.verdict.map_or("", word).into()),
    ("more_rounds", |cell| known(cell.more_rounds)),
    ("dependence", |cell| known(cell.dependence)),
    ("may_be_best", |cell| cell.may_be_best.to_string()),
    ("as_good_as_best", |cell| cell.as_good_as_best.to_string()),
    ("unsettled", |cell| cell.unsettled.to_string()),
    ("outlier_rounds", |cell| {
        let rounds: Vec<String> = cell.outlier_rounds.iter().map(u32::to_string).collect();
        rounds.join(" ")
    }),
    ("first_done_s", |cell| cell.first_done_s.to_string()),
    ("last_done_s", |cell| cell.last_done_s.to_string()),
    ("process_cpu_s", |cell| known(cell.process_cpu_s)),
    ("system_cpu_s", |cell| known(cell.system_cpu_s)),
    ("bottleneck_resource", |cell| known(cell.bottleneck.as_ref().map(|one| &one.resource))),
    ("bottleneck_busy", |cell| known(cell.bottleneck.as_ref().map(|one| one.busy))),
    ("fairness", |cell| known(cell.fairness)),
    ("latency_p50_ms", |cell| known(cell.latency_ms.map(|one| one.p50))),
    ("latency_p99_ms", |cell| known(cell.latency_ms.map(|one| one.p99))),
    ("latency_p999_ms", |cell| known(cell.latency_ms.map(|one| one.p999))),
    ("latency_max_ms", |cell| known(cell.latency_ms.map(|one| one.max))),
    ("members_reads", |cell| known(cell.members.map(|one| one.reads))),
    ("members_writes", |cell| known(cell.members.map(|one| one.writes))),
    ("members_bytes_read", |cell| known(cell.members.map(|one| one.bytes_read))),
    ("members_bytes_written", |cell| known(cell.members.map(|one| one.bytes_written))),
    ("write_amplification", |cell| known(cell.members.and_then(|one| one.write_amplification))),
    ("published", |cell| known(cell.published.as_ref().map(|one| one.value))),
    ("published_error_percent", |cell| known(cell.published.as_ref().map(|one| one.error_percent))),
    ("published_calibrated", |cell| known(cell.published.as_ref().map(|one| one.calibrated))),
    ("moved_full", |cell| known(cell.moved.map(|one| one.full))),
    ("moved_percent", |cell| known(cell.moved.map(|one| one.percent))),
    ("trust_interval90_low", |cell| end(trust(cell).and_then(|one| one.interval90), 0)),
    ("trust_interval90_high", |cell| end(trust(cell).and_then(|one| one.interval90), 1)),
    ("trust_sign_of_100", |cell| known(trust(cell).and_then(|one| one.sign_of_100))),
    ("trust_floor_percent", |cell| known(trust(cell).and_then(|one| one.floor_percent))),
    ("trust_cells", |cell| known(trust(cell).and_then(|one| one.cells))),
    ("trust_group", |cell| known(trust(cell).and_then(|one| one.group.as_ref()))),
    ("not_checked", |cell| known(trust(cell).and_then(|one| one.not_checked.as_ref()))),
    ("detail", |cell| cell.detail.to_string()),
    ("note", |cell| cell.note.clone().unwrap_or_default()),
];

/// The same of a cell without a figure: what its metric is in and which way it is good nobody says of one.
fn axes_of(short: &TooShort) -> Vec<String> {
    let processes = short.processes.to_string();
    let axes = [&short.workload, &short.layout, &processes, &short.state, &short.metric, "", ""];
    axes.map(str::to_owned).to_vec()
}

/// Rows of columns that a table has beside what every row has.
type Rows = Vec<Vec<String>>;

/// The table of some columns beside what every row has; `of_cell` gives these columns of the rows of a cell, `of_short`
/// those of one that has no figure.
fn table(
    documents: &[Results],
    columns: &[&str],
    of_cell: impl Fn(&Cell) -> Rows,
    of_short: impl Fn(&TooShort) -> Rows,
) -> Result<Vec<u8>, ReportError> {
    for results in documents {
        View::new(results)?;
    }
    let of_cells = documents.iter().flat_map(|one| &one.cells).map(|cell| &cell.settings);
    let of_shorts = documents.iter().flat_map(|one| &one.too_short).map(|short| &short.settings);
    let settings: BTreeSet<&String> = of_cells.chain(of_shorts).flat_map(BTreeMap::keys).collect();
    let study = ["study", "raidlab", "seed", "clock"].into_iter();
    let all = study.chain(AXES.iter().map(|(name, _)| *name)).chain(columns.iter().copied());
    let settings_named = settings.iter().map(|key| format!("setting {key}"));
    let mut sheet = Sheet::new(all.map(str::to_owned).chain(settings_named));
    for results in documents {
        let clock = match results.clock {
            Clock::Virtual => "virtual",
            Clock::Real => "real",
        };
        let seed = results.seed.to_string();
        let study = [results.study.as_str(), &results.raidlab, &seed, clock].map(str::to_owned);
        let mut add = |axes: Vec<String>, own: &BTreeMap<String, String>, rows: Rows| {
            let tail = settings.iter().map(|key| own.get(*key).cloned().unwrap_or_default());
            let tail: Vec<String> = tail.collect();
            let whole = |row: Vec<String>| [&study[..], &axes, &row, &tail].concat();
            sheet.rows.extend(rows.into_iter().map(whole));
        };
        for cell in &results.cells {
            let axes = AXES.iter().map(|(_, axis)| axis(cell)).collect();
            add(axes, &cell.settings, of_cell(cell));
        }
        for short in &results.too_short {
            add(axes_of(short), &short.settings, of_short(short));
        }
    }
    Ok(sheet.csv().into_bytes())
}

/// What stands for a verdict, as in the JSON.
pub(crate) fn word(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Faster => "faster",
        Verdict::Slower => "slower",
        Verdict::Equal => "equal within the floor",
        Verdict::NotResolved => "not resolved",
    }
}

const fn trust(cell: &Cell) -> Option<&CellTrust> {
    cell.trust.as_ref()
}

fn known(value: Option<impl ToString>) -> String {
    value.map_or_else(String::new, |value| value.to_string())
}

fn end(interval: Option<[f64; 2]>, at: usize) -> String {
    known(interval.map(|ends| ends[at]))
}
