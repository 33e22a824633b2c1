//! Rows as CSV: a line for each figure of a cell.

use std::fmt::Display;
use std::io::{self, Write};

use serde_json::Value;

use crate::error::SweepError;
use crate::row::{ReadFigure, ReadRow};

const BEFORE: [&str; 10] = [
    "cell",
    "point",
    "layout",
    "workload",
    "processes",
    "state",
    "seed",
    "rounds",
    "capacity",
    "survives",
];
const FIGURE: [&str; 8] = [
    "metric",
    "unit",
    "better",
    "median",
    "ci95_low",
    "ci95_high",
    "interval90_low",
    "interval90_high",
];
const BEHIND: [&str; 9] = [
    "p50_ms",
    "p99_ms",
    "p999_ms",
    "max_ms",
    "write_amplification",
    "bottleneck",
    "bottleneck_busy",
    "note",
    "error",
];

/// Gives a function that writes the lines of one row after the other, the heading before the first: RFC
/// 4180, with numbers as exact as in rows, and empty where there is nothing.
pub fn csv(mut to: impl Write) -> impl FnMut(&[u8]) -> Result<(), SweepError> {
    let mut is_begun = false;
    move |line| {
        let row = ReadRow::parse(line)?;
        let written = (|| {
            if !is_begun {
                is_begun = true;
                let keys: Vec<String> = row.keys.keys().map(|key| format!("key {key}")).collect();
                let before = BEFORE.into_iter().map(String::from);
                let behind = FIGURE.into_iter().chain(BEHIND).map(String::from);
                put(&mut to, before.chain(keys).chain(behind))?;
            }
            if row.metrics.is_empty() {
                return put(&mut to, fields(&row, None).into_iter());
            }
            row.metrics
                .iter()
                .try_for_each(|figure| put(&mut to, fields(&row, Some(figure)).into_iter()))
        })();
        written
            .map_err(|error: io::Error| SweepError::Other(format!("cannot write the CSV: {error}")))
    }
}

fn text(value: Option<impl Display>) -> String {
    value.map_or_else(String::new, |value| value.to_string())
}

fn fields(row: &ReadRow, figure: Option<&ReadFigure>) -> Vec<String> {
    let key = |value: &Value| match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let ends =
        |ends: Option<[f64; 2]>| [text(ends.map(|ends| ends[0])), text(ends.map(|ends| ends[1]))];
    let better = |figure: &ReadFigure| match figure.better {
        raidlab_results::Better::Higher => "higher",
        raidlab_results::Better::Lower => "lower",
    };
    let latency = row.latency_ms;
    let mut fields = vec![
        row.cell.clone(),
        row.point.to_string(),
        text(row.layout.as_ref()),
        text(row.workload.as_ref()),
        text(row.processes),
        text(row.state.as_ref()),
        text(row.seed),
        text(row.rounds),
        text(row.capacity),
        text(row.survives),
    ];
    fields.extend(row.keys.values().map(key));
    fields.extend([
        text(figure.map(|figure| &figure.metric)),
        text(figure.map(|figure| &figure.unit)),
        text(figure.map(better)),
        text(figure.map(|figure| figure.median)),
    ]);
    fields.extend(ends(figure.and_then(|figure| figure.ci95)));
    fields.extend(ends(figure.and_then(|figure| figure.interval90)));
    fields.extend([
        text(latency.map(|one| one.p50)),
        text(latency.map(|one| one.p99)),
        text(latency.map(|one| one.p999)),
        text(latency.map(|one| one.max)),
        text(row.members.and_then(|members| members.write_amplification)),
        text(row.bottleneck.as_ref().map(|one| &one.resource)),
        text(row.bottleneck.as_ref().map(|one| one.busy)),
        text(row.note.as_ref()),
        text(row.error.as_ref()),
    ]);
    fields
}

fn put(to: &mut impl Write, fields: impl Iterator<Item = String>) -> io::Result<()> {
    let quoted = |field: String| {
        let is_plain = !field.contains([',', '"', '\n', '\r']);
        if is_plain { field } else { format!("\"{}\"", field.replace('"', "\"\"")) }
    };
    let line: Vec<String> = fields.map(quoted).collect();
    write!(to, "{}\r\n", line.join(","))
}
