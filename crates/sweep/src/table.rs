//! Rows as tables: a line for each figure of a cell, as CSV here, in columns with types in `parquet`.

use std::borrow::Cow;
use std::io::{self, Write};

use serde_json::Value;

use crate::error::SweepError;
use crate::row::{ReadFigure, ReadRow};

/// What a column holds, besides nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Text,
    /// Whole numbers, 0 to 2^64 - 1.
    Whole,
    Real,
}

use Kind::{Real, Text, Whole};

const BEFORE: [(&str, Kind); 10] = [
    ("cell", Text),
    ("point", Whole),
    ("layout", Text),
    ("workload", Text),
    ("processes", Whole),
    ("state", Text),
    ("seed", Whole),
    ("rounds", Whole),
    ("capacity", Whole),
    ("survives", Whole),
];
const BEHIND: [(&str, Kind); 18] = [
    ("metric", Text),
    ("unit", Text),
    ("better", Text),
    ("median", Real),
    ("ci95_low", Real),
    ("ci95_high", Real),
    ("interval90_low", Real),
    ("interval90_high", Real),
    ("p50_ms", Real),
    ("p99_ms", Real),
    ("p999_ms", Real),
    ("max_ms", Real),
    ("write_amplification", Real),
    ("bottleneck", Text),
    ("bottleneck_busy", Real),
    ("note", Text),
    ("error", Text),
    // The last, so that those who count columns find the others where they were.
    ("settings", Text),
];

/// A field of a line.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Field<'a> {
    Nothing,
    Text(Cow<'a, str>),
    Whole(u64),
    Real(f64),
}

impl Field<'_> {
    pub(crate) fn text(&self) -> String {
        match self {
            Self::Nothing => String::new(),
            Self::Text(text) => text.to_string(),
            Self::Whole(number) => number.to_string(),
            Self::Real(number) => number.to_string(),
        }
    }
}

fn words(text: Option<&str>) -> Field<'_> {
    text.map_or(Field::Nothing, |text| Field::Text(text.into()))
}

fn whole(number: Option<impl Into<u64>>) -> Field<'static> {
    number.map_or(Field::Nothing, |number| Field::Whole(number.into()))
}

fn real(number: Option<f64>) -> Field<'static> {
    number.map_or(Field::Nothing, Field::Real)
}

/// The value of a swept key.
fn key(value: &Value) -> Field<'_> {
    match value {
        Value::String(text) => Field::Text(text.into()),
        Value::Number(number) => match number.as_u64() {
            Some(number) => Field::Whole(number),
            None => real(number.as_f64()),
        },
        other => Field::Text(other.to_string().into()),
    }
}

/// The columns of the table of rows like this one; those of keys have the kind of this row's values.
pub(crate) fn columns(row: &ReadRow) -> Vec<(String, Kind)> {
    let kind = |value| match key(value) {
        Field::Nothing | Field::Text(_) => Text,
        Field::Whole(_) => Whole,
        Field::Real(_) => Real,
    };
    let keys = row.keys.iter().map(|(name, value)| (format!("key {name}"), kind(value)));
    let own = |(name, kind): (&str, Kind)| (name.to_owned(), kind);
    BEFORE.into_iter().map(own).chain(keys).chain(BEHIND.into_iter().map(own)).collect()
}

/// The lines of a row: one for each figure, or one without.
pub(crate) fn lines(row: &ReadRow) -> impl Iterator<Item = Vec<Field<'_>>> {
    let none = row.metrics.is_empty().then(|| fields(row, None));
    none.into_iter().chain(row.metrics.iter().map(|figure| fields(row, Some(figure))))
}

fn fields<'a>(row: &'a ReadRow, figure: Option<&'a ReadFigure>) -> Vec<Field<'a>> {
    let ends =
        |ends: Option<[f64; 2]>| [real(ends.map(|ends| ends[0])), real(ends.map(|ends| ends[1]))];
    let better = |figure: &ReadFigure| match figure.better {
        raidlab_results::Better::Higher => "higher",
        raidlab_results::Better::Lower => "lower",
    };
    let latency = row.latency_ms;
    let mut fields = vec![
        words(Some(&row.cell)),
        whole(Some(row.point)),
        words(row.layout.as_deref()),
        words(row.workload.as_deref()),
        whole(row.processes),
        words(row.state.as_deref()),
        whole(row.seed),
        whole(row.rounds),
        whole(row.capacity),
        whole(row.survives),
    ];
    fields.extend(row.keys.values().map(key));
    fields.extend([
        words(figure.map(|figure| figure.metric.as_str())),
        words(figure.map(|figure| figure.unit.as_str())),
        words(figure.map(better)),
        real(figure.map(|figure| figure.median)),
    ]);
    fields.extend(ends(figure.and_then(|figure| figure.ci95)));
    fields.extend(ends(figure.and_then(|figure| figure.interval90)));
    fields.extend([
        real(latency.map(|one| one.p50)),
        real(latency.map(|one| one.p99)),
        real(latency.map(|one| one.p999)),
        real(latency.map(|one| one.max)),
        real(row.members.and_then(|members| members.write_amplification)),
        words(row.bottleneck.as_ref().map(|one| one.resource.as_str())),
        real(row.bottleneck.as_ref().map(|one| one.busy)),
        words(row.note.as_deref()),
        words(row.error.as_deref()),
        match row.settings() {
            none if none.is_empty() => Field::Nothing,
            settings => Field::Text(settings.into()),
        },
    ]);
    fields
}

/// Gives a function that writes the lines of one row after the other, the heading before the first: RFC
/// 4180, with numbers as exact as in rows, and empty where there is nothing.
pub fn csv(mut to: impl Write) -> impl FnMut(&[u8]) -> Result<(), SweepError> {
    let mut is_begun = false;
    move |line| {
        let row = ReadRow::parse(line)?;
        let written = (|| {
            if !is_begun {
                is_begun = true;
                put(&mut to, columns(&row).into_iter().map(|(name, _)| name))?;
            }
            lines(&row).try_for_each(|line| put(&mut to, line.iter().map(Field::text)))
        })();
        written
            .map_err(|error: io::Error| SweepError::Other(format!("cannot write the CSV: {error}")))
    }
}

fn put(to: &mut impl Write, fields: impl Iterator<Item = String>) -> io::Result<()> {
    let quoted = |field: String| {
        let is_plain = !field.contains([',', '"', '\n', '\r']);
        if is_plain { field } else { format!("\"{}\"", field.replace('"', "\"\"")) }
    };
    let line: Vec<String> = fields.map(quoted).collect();
    write!(to, "{}\r\n", line.join(","))
}
