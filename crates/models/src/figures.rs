//! The figures of a drive file: value with unit, status, source.

use std::fmt;

use raidlab_core::suggest::did_you_mean;
use raidlab_toml_file::{DeArray, DeTable, DeValue, Source};

use crate::error::{ModelError, ModelErrorKind, error_at};

/// How a figure of a drive is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Status {
    /// From the maker's data sheet or manual.
    DataSheet,
    /// Measured on a real drive.
    Measured,
    /// Neither; the source says what it rests on.
    Estimate,
}

impl Status {
    pub(crate) const ALL: [Self; 3] = [Self::DataSheet, Self::Measured, Self::Estimate];

    /// The name in drive files.
    pub const fn name(self) -> &'static str {
        match self {
            Self::DataSheet => "data sheet",
            Self::Measured => "measured",
            Self::Estimate => "estimate",
        }
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A figure as its drive file gives it, for reports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Figure {
    /// Its key, such as `average_seek`.
    pub key: &'static str,
    /// Value and unit, such as `8.0 ms`.
    pub value: String,
    /// How it is known.
    pub status: Status,
    /// Where it comes from.
    pub source: String,
    /// What it counts and how many in the base unit; none for a curve.
    pub(crate) amount: Option<(Quantity, u64)>,
}

/// What a figure counts, and so the units it may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quantity {
    /// Becomes sectors.
    Size,
    /// Becomes nanoseconds.
    Time,
    /// Becomes bytes per second.
    Rate,
    /// A whole number.
    Count,
    /// Turns a minute.
    Speed,
    /// Becomes 0 or 1.
    Switch,
    /// Becomes whole percent.
    Share,
}

impl Quantity {
    /// The units, such as `mb_per_s`, and what one of each is in the base unit; sizes in bytes.
    pub const fn units(self) -> &'static [(&'static str, f64)] {
        match self {
            Self::Size => &[
                ("bytes", 1.0),
                ("kib", 1_024.0),
                ("mib", 1_048_576.0),
                ("gib", 1_073_741_824.0),
                ("gb", 1e9),
                ("tb", 1e12),
            ],
            Self::Time => &[("ms", 1e6), ("us", 1e3)],
            Self::Rate => &[("mb_per_s", 1e6), ("mib_per_s", 1_048_576.0), ("mbit_per_s", 125e3)],
            Self::Count => &[("count", 1.0)],
            Self::Speed => &[("rpm", 1.0)],
            Self::Switch => &[("on", 1.0)],
            Self::Share => &[("percent", 1.0)],
        }
    }

    /// A value in the base unit as a drive file would give it, for figures that it leaves out.
    pub(crate) fn show(self, value: u64) -> String {
        match self {
            Self::Size => format!("{} bytes", value * 512),
            Self::Time => format!("{} us", value as f64 / 1e3),
            Self::Rate => format!("{} mb_per_s", value as f64 / 1e6),
            Self::Count => format!("{value} count"),
            Self::Speed => format!("{value} rpm"),
            Self::Switch => format!("{} on", value != 0),
            Self::Share => format!("{value} percent"),
        }
    }

    fn unit_names(self) -> String {
        let names: Vec<_> = self.units().iter().map(|(name, _)| format!("`{name}`")).collect();
        names.join(" or ")
    }

    /// An entry that is right, for messages.
    fn example(self) -> &'static str {
        match self {
            Self::Size => r#"{ kib = 512, status = "estimate", source = "..." }"#,
            Self::Time => r#"{ ms = 8.0, status = "data sheet", source = "..." }"#,
            Self::Rate => r#"{ mb_per_s = 200, status = "data sheet", source = "..." }"#,
            Self::Count => r#"{ count = 4, status = "data sheet", source = "..." }"#,
            Self::Speed => r#"{ rpm = 7200, status = "data sheet", source = "..." }"#,
            Self::Switch => r#"{ on = true, status = "estimate", source = "..." }"#,
            Self::Share => r#"{ percent = 80, status = "estimate", source = "..." }"#,
        }
    }
}

/// Reads the entry of a figure; gives it and its value in the base unit.
pub(crate) fn read(
    source: Source<'_>,
    (key, quantity): (&'static str, Quantity),
    offset: usize,
    value: &DeValue<'_>,
) -> Result<(Figure, u64), ModelError> {
    let DeValue::Table(entry) = value else {
        let reason = format!("must be a table, such as {key} = {}", quantity.example());
        return Err(error_at(source, ModelErrorKind::WrongType, offset, key, reason));
    };
    let mut found = None;
    for (part, value) in entry {
        let name = part.get_ref().as_ref();
        if matches!(name, "status" | "source") {
            continue;
        }
        let unit = quantity.units().iter().find(|(unit, _)| *unit == name);
        let path = format!("{key}.{name}");
        let Some(unit) = unit else {
            let units = quantity.units().iter().map(|(unit, _)| *unit);
            let known: Vec<&str> = units.chain(["status", "source"]).collect();
            let hint = did_you_mean(name, &known);
            let units = quantity.unit_names();
            let reason = format!("unknown key{hint}; here go {units}, `status` and `source`");
            let kind = ModelErrorKind::UnknownKey;
            return Err(error_at(source, kind, part.span().start, &path, reason));
        };
        if found.is_some() {
            let reason = format!("the value is given twice; give one of {}", quantity.unit_names());
            let kind = ModelErrorKind::Contradiction;
            return Err(error_at(source, kind, part.span().start, &path, reason));
        }
        found = Some((*unit, value));
    }
    let Some(((unit, scale), value)) = found else {
        let reason = format!(
            "the value is missing; give {}, as in {key} = {}",
            quantity.unit_names(),
            quantity.example()
        );
        return Err(error_at(source, ModelErrorKind::Missing, offset, key, reason));
    };
    let at = value.span().start;
    let (shown, number) = number(source, at, &format!("{key}.{unit}"), quantity, value.get_ref())?;
    let base = to_base(source, at, &format!("{key}.{unit}"), quantity, number * scale)?;
    let status = status(source, offset, key, entry)?;
    let text = text(source, offset, key, entry)?;
    let (value, amount) = (format!("{shown} {unit}"), Some((quantity, base)));
    Ok((Figure { key, value, status, source: text, amount }, base))
}

/// An entry that is right, for messages.
const POINTS: &str = r#"{ points = [[1, 0.8], [1000, 3.1]], status = "measured", source = "..." }"#;

/// Reads the entry of a curve: rows of two numbers, distance in cylinders and milliseconds.
pub(crate) fn read_points(
    source: Source<'_>,
    key: &'static str,
    offset: usize,
    value: &DeValue<'_>,
) -> Result<(Figure, Vec<[f64; 2]>), ModelError> {
    let wrong = |at: usize, path: &str| {
        let reason = format!("must be a table of points [cylinders, ms], such as {key} = {POINTS}");
        Err(error_at(source, ModelErrorKind::WrongType, at, path, reason))
    };
    let DeValue::Table(entry) = value else { return wrong(offset, key) };
    for part in entry.keys() {
        let name = part.get_ref().as_ref();
        if !matches!(name, "points" | "status" | "source") {
            let hint = did_you_mean(name, &["points", "status", "source"]);
            let reason = format!("unknown key{hint}; here go `points`, `status` and `source`");
            let (kind, path) = (ModelErrorKind::UnknownKey, format!("{key}.{name}"));
            return Err(error_at(source, kind, part.span().start, &path, reason));
        }
    }
    let Some(rows) = entry.get("points") else { return wrong(offset, key) };
    let path = format!("{key}.points");
    let DeValue::Array(list) = rows.get_ref() else { return wrong(rows.span().start, &path) };
    let mut points = Vec::with_capacity(list.len());
    for row in list.iter() {
        let found = match row.get_ref() {
            DeValue::Array(row) => plain_numbers(row),
            _ => None,
        };
        let Some(point) = found else { return wrong(row.span().start, &path) };
        points.push(point);
    }
    let status = status(source, offset, key, entry)?;
    let text = text(source, offset, key, entry)?;
    let value = format!("{} points", points.len());
    Ok((Figure { key, value, status, source: text, amount: None }, points))
}

/// As many plain numbers as asked for, from 0 to four thousand million; none if there are others.
pub(crate) fn plain_numbers<const N: usize>(row: &DeArray<'_>) -> Option<[f64; N]> {
    if row.len() != N {
        return None;
    }
    let mut values = [0.0; N];
    for (slot, value) in values.iter_mut().zip(row.iter()) {
        *slot = plain(value.get_ref()).filter(|value| (0.0..=4e9).contains(value))?;
    }
    Some(values)
}

/// A decimal number.
pub(crate) fn plain(value: &DeValue<'_>) -> Option<f64> {
    match value {
        DeValue::Integer(integer) if integer.radix() == 10 => integer.as_str().parse().ok(),
        DeValue::Float(float) => float.as_str().parse().ok(),
        _ => None,
    }
}

fn number(
    source: Source<'_>,
    offset: usize,
    path: &str,
    quantity: Quantity,
    value: &DeValue<'_>,
) -> Result<(String, f64), ModelError> {
    let wrong = |what: &str| {
        let reason = format!("must be {what}, not {}", value.type_str());
        Err(error_at(source, ModelErrorKind::WrongType, offset, path, reason))
    };
    if quantity == Quantity::Switch {
        return match value {
            DeValue::Boolean(on) => Ok((on.to_string(), f64::from(u8::from(*on)))),
            _ => wrong("true or false"),
        };
    }
    let shown = match value {
        DeValue::Integer(integer) if integer.radix() == 10 => integer.as_str(),
        DeValue::Float(float) => float.as_str(),
        _ => return wrong("a decimal number"),
    };
    match shown.parse::<f64>() {
        Ok(number) if number.is_finite() && number >= 0.0 => Ok((shown.to_owned(), number)),
        _ => {
            let reason = format!("must be a number from 0 up, not {shown}");
            Err(error_at(source, ModelErrorKind::OutOfRange, offset, path, reason))
        }
    }
}

/// In the base unit, rounded where the base unit is fine, refused where it must be whole.
fn to_base(
    source: Source<'_>,
    offset: usize,
    path: &str,
    quantity: Quantity,
    value: f64,
) -> Result<u64, ModelError> {
    let wrong =
        |reason: &str| Err(error_at(source, ModelErrorKind::OutOfRange, offset, path, reason));
    if value >= 9e15 {
        return wrong("is too large for any drive");
    }
    match quantity {
        Quantity::Time | Quantity::Rate => Ok((value + 0.5) as u64),
        _ if value.fract() != 0.0 => wrong("must be a whole number (sizes: of bytes)"),
        Quantity::Size if !(value as u64).is_multiple_of(512) => {
            wrong("must be a multiple of the sector (512 bytes)")
        }
        Quantity::Size => Ok(value as u64 / 512),
        Quantity::Count | Quantity::Speed | Quantity::Switch | Quantity::Share => Ok(value as u64),
    }
}

fn status(
    source: Source<'_>,
    offset: usize,
    key: &str,
    entry: &DeTable<'_>,
) -> Result<Status, ModelError> {
    let known: Vec<_> = Status::ALL.iter().map(|one| format!("\"{one}\"")).collect();
    let known = known.join(", ");
    let Some(value) = entry.get("status") else {
        let reason = format!("`status` is missing; it says how the figure is known: {known}");
        return Err(error_at(source, ModelErrorKind::Missing, offset, key, reason));
    };
    let (at, path) = (value.span().start, format!("{key}.status"));
    let Some(name) = value.get_ref().as_str() else {
        let reason = format!("must be a string: {known}");
        return Err(error_at(source, ModelErrorKind::WrongType, at, &path, reason));
    };
    Status::ALL.into_iter().find(|one| one.name() == name).ok_or_else(|| {
        let reason = format!("\"{name}\" is not a status; known: {known}");
        error_at(source, ModelErrorKind::OutOfRange, at, &path, reason)
    })
}

fn text(
    source: Source<'_>,
    offset: usize,
    key: &str,
    entry: &DeTable<'_>,
) -> Result<String, ModelError> {
    let Some(value) = entry.get("source") else {
        let reason = "`source` is missing; it says where the figure comes from, as a string";
        return Err(error_at(source, ModelErrorKind::Missing, offset, key, reason));
    };
    match value.get_ref().as_str() {
        Some(text) if !text.trim().is_empty() => Ok(text.to_owned()),
        _ => {
            let reason = "must be a string that says where the figure comes from";
            let path = format!("{key}.source");
            Err(error_at(source, ModelErrorKind::WrongType, value.span().start, &path, reason))
        }
    }
}
