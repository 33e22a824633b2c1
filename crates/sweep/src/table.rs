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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// A row in which no two fields are alike, with a rate and a time of which less is better.
    fn row() -> Value {
        json!({
            "cell": "0123abcd", "point": 17, "part": 3, "parts": 5,
            "keys": { "a": "64KiB", "b": 4, "c": -1, "d": 0.25, "e": [1, 4], "f": 0 },
            "layout": "raid5(4), \"odd\"", "workload": "read\r\nwrite", "processes": 2, "state": "degraded",
            "settings": { "block": "4KiB", "depth": "8" },
            "seed": u64::MAX, "rounds": 6, "capacity": 24_004_689_666_048_u64, "survives": 1,
            "metrics": [
                { "metric": "iops", "unit": "1/s", "better": "higher", "samples": [], "median": 101.5,
                  "ci95": [99.25, 103.75], "interval90": [81.5, 126.5] },
                { "metric": "p99_ms", "unit": "ms", "better": "lower", "samples": [], "median": 1.0 / 3.0,
                  "ci95": null, "interval90": null },
            ],
            "latency_ms": { "p50": 0.5, "p99": 7.5, "p999": 8.5, "max": 9.5 },
            "members": { "reads": 1.0, "writes": 2.0, "bytes_read": 3.0, "bytes_written": 4.0,
                         "write_amplification": 2.75 },
            "bottleneck": { "resource": "member 2", "busy": 0.875 },
            "note": "the rebuild ended\nearly", "error": null,
        })
    }

    /// Reads what RFC 4180 says: a field may stand between quotation marks, where a doubled one is one.
    fn fields(text: &str) -> Vec<Vec<String>> {
        let (mut rows, mut row, mut field, mut quoted) =
            (Vec::new(), Vec::new(), String::new(), false);
        let mut letters = text.chars().peekable();
        while let Some(letter) = letters.next() {
            match letter {
                '"' if quoted && letters.peek() == Some(&'"') => field.extend(letters.next()),
                '"' => quoted = !quoted,
                ',' if !quoted => row.push(std::mem::take(&mut field)),
                '\r' if !quoted => {
                    assert_eq!(letters.next(), Some('\n'), "lines end in both");
                    row.push(std::mem::take(&mut field));
                    rows.push(std::mem::take(&mut row));
                }
                '\n' if !quoted => panic!("the end of a line within a field: {text}"),
                other => field.push(other),
            }
        }
        rows
    }

    /// Each column has what its row has under the same name, whatever signs are in it.
    #[test]
    fn every_column_holds_what_its_head_says() {
        let mut bytes = Vec::new();
        let mut put = csv(&mut bytes);
        put(row().to_string().as_bytes()).expect("a row");
        let mut failed = row();
        (failed["metrics"], failed["error"]) = (json!([]), json!("no, \"it\" failed"));
        put(failed.to_string().as_bytes()).expect("a row");
        drop(put);
        let rows = fields(&String::from_utf8(bytes).expect("text"));
        assert_eq!(rows.len(), 1 + 2 + 1, "a line for each figure, and one without");
        let told = |line: usize, head: &str| -> &str {
            let at = rows[0].iter().position(|one| one == head).unwrap_or_else(|| panic!("{head}"));
            &rows[line][at]
        };
        for (head, value) in [
            ("cell", "0123abcd"),
            ("point", "17"),
            ("layout", "raid5(4), \"odd\""),
            ("workload", "read\r\nwrite"),
            ("processes", "2"),
            ("state", "degraded"),
            ("seed", "18446744073709551615"),
            ("rounds", "6"),
            ("capacity", "24004689666048"),
            ("survives", "1"),
            ("key a", "64KiB"),
            ("key b", "4"),
            ("key c", "-1"),
            ("key d", "0.25"),
            ("key e", "[1,4]"),
            ("key f", "0"),
            ("p50_ms", "0.5"),
            ("p99_ms", "7.5"),
            ("p999_ms", "8.5"),
            ("max_ms", "9.5"),
            ("write_amplification", "2.75"),
            ("bottleneck", "member 2"),
            ("bottleneck_busy", "0.875"),
            ("note", "the rebuild ended\nearly"),
            ("settings", "block=4KiB, depth=8"),
        ] {
            assert_eq!([1, 2, 3].map(|line| told(line, head)), [value; 3], "{head}");
        }
        for (head, values) in [
            ("metric", ["iops", "p99_ms", ""]),
            ("unit", ["1/s", "ms", ""]),
            ("better", ["higher", "lower", ""]),
            ("median", ["101.5", "0.3333333333333333", ""]),
            ("ci95_low", ["99.25", "", ""]),
            ("ci95_high", ["103.75", "", ""]),
            ("interval90_low", ["81.5", "", ""]),
            ("interval90_high", ["126.5", "", ""]),
            ("error", ["", "", "no, \"it\" failed"]),
        ] {
            assert_eq!([1, 2, 3].map(|line| told(line, head)), values, "{head}");
        }
        assert!(rows.iter().all(|row| row.len() == rows[0].len()));
        assert_eq!(rows[0].len(), BEFORE.len() + 6 + BEHIND.len(), "nothing else");
    }

    /// Whole numbers from 0 up are such, others reals, all else text.
    #[test]
    fn columns_of_keys_have_the_kind_of_their_values() {
        let columns = columns(&ReadRow::parse(row().to_string().as_bytes()).expect("a row"));
        let kinds: Vec<Kind> = columns
            .into_iter()
            .filter(|(name, _)| name.starts_with("key "))
            .map(|one| one.1)
            .collect();
        assert_eq!(kinds, [Text, Whole, Real, Real, Text, Whole]);
    }
}
