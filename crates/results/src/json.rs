//! Documents as JSON: pretty, keys in a stable order, equal documents byte for byte equal.

use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};

use crate::document::{Cell, Results, SCHEMA_VERSION};
use crate::error::{ResultsError, ResultsErrorKind};
use crate::replay::Replays;
use crate::risk::Risks;

/// What every version of the document has.
#[derive(Deserialize)]
struct Version {
    schema_version: u32,
    /// What a document of several has instead of cells.
    #[serde(default)]
    replays: Option<IgnoredAny>,
}

impl Version {
    fn has_replays(&self) -> bool {
        self.replays.is_some()
    }
}

/// Refuses a document of another version.
fn check_version(text: &str) -> Result<Version, ResultsError> {
    let version: Version = serde_json::from_str(text).map_err(ResultsError::malformed)?;
    check_number(version.schema_version)?;
    Ok(version)
}

fn check_number(found: u32) -> Result<(), ResultsError> {
    if found == SCHEMA_VERSION {
        return Ok(());
    }
    let hint = match found < SCHEMA_VERSION {
        true => "; `raidlab convert FILE` makes one of it",
        false => "; a newer raidlab made it",
    };
    let context = format!(
        "the document has schema_version {found}; this version of raidlab reads {SCHEMA_VERSION}{hint}"
    );
    Err(ResultsError::new(ResultsErrorKind::SchemaVersion, context))
}

/// A document as text, indented and with a newline at its end: every document of raidlab that is a file of its own.
///
/// # Errors
/// When it does not become JSON.
pub fn to_text(document: &impl Serialize) -> Result<String, serde_json::Error> {
    let mut text = serde_json::to_string_pretty(document)?;
    text.push('\n');
    Ok(text)
}

impl Results {
    /// The document as text that ends with a newline.
    ///
    /// # Errors
    /// [`ResultsErrorKind::NotFinite`] when a value is infinite or not a number: JSON has no word
    /// for these, and a silent null would hide that something went wrong.
    pub fn to_json(&self) -> Result<String, ResultsError> {
        self.check_finite()?;
        to_text(self).map_err(ResultsError::malformed)
    }

    /// A document from its text. Every number is read back exactly as it was written, but for comparisons with rebuild
    /// times that are unknown, which earlier versions made: these are left out.
    ///
    /// # Errors
    /// [`ResultsErrorKind::Malformed`] when the text is not such a document,
    /// [`ResultsErrorKind::SchemaVersion`] when it is of another version.
    pub fn from_json(text: &str) -> Result<Self, ResultsError> {
        check_version(text)?;
        let mut results: Self = serde_json::from_str(text).map_err(ResultsError::malformed)?;
        results.forget_untold();
        Ok(results)
    }

    /// The documents of a text that is one document, or one of several replays.
    ///
    /// # Errors
    /// As [`Results::from_json`].
    pub fn all_from_json(text: &str) -> Result<Vec<Self>, ResultsError> {
        if !check_version(text)?.has_replays() {
            return Ok(vec![Self::from_json(text)?]);
        }
        let mut several: Replays = serde_json::from_str(text).map_err(ResultsError::malformed)?;
        several.replays.iter().try_for_each(|one| check_number(one.schema_version))?;
        several.replays.iter_mut().for_each(Self::forget_untold);
        Ok(several.replays)
    }

    /// Refuses numbers that are infinite or not a number.
    ///
    /// # Errors
    /// [`ResultsErrorKind::NotFinite`], with the key and, where it is in one, the cell.
    pub fn check_finite(&self) -> Result<(), ResultsError> {
        for (at, cell) in self.cells.iter().enumerate() {
            if let Some((key, value)) = numbers(cell).find(|(_, value)| !value.is_finite()) {
                let title = cell.title();
                let context =
                    format!("cells[{at}] ({title}): {key} is {value}, and must be a finite number");
                return Err(ResultsError::new(ResultsErrorKind::NotFinite, context));
            }
        }
        let shares = self.latency_shares.iter().map(|share| ("latency_shares", *share));
        let mut others = shares.chain(self.risk.iter().flat_map(Risks::numbers));
        if let Some((key, value)) = others.find(|(_, value)| !value.is_finite()) {
            let context = format!("{key} is {value}, and must be a finite number");
            return Err(ResultsError::new(ResultsErrorKind::NotFinite, context));
        }
        Ok(())
    }
}

fn interval90(cell: &Cell) -> Option<[f64; 2]> {
    cell.trust.as_ref()?.interval90
}

/// Every floating-point number of a cell with its key.
fn numbers(cell: &Cell) -> impl Iterator<Item = (&'static str, f64)> {
    let always = [
        ("median", cell.median),
        ("mean", cell.mean),
        ("first_done_s", cell.first_done_s),
        ("last_done_s", cell.last_done_s),
    ];
    let published = cell.published.as_ref();
    let latency = cell.latency_ms;
    let sometimes = [
        ("ci95", cell.ci95.map(|interval| interval[0])),
        ("ci95", cell.ci95.map(|interval| interval[1])),
        ("coverage", cell.coverage),
        ("percent_vs_baseline", cell.percent_vs_baseline),
        ("percent_interval", cell.percent_interval.map(|interval| interval[0])),
        ("percent_interval", cell.percent_interval.map(|interval| interval[1])),
        ("floor_percent", cell.floor_percent),
        ("dependence", cell.dependence),
        ("process_cpu_s", cell.process_cpu_s),
        ("system_cpu_s", cell.system_cpu_s),
        ("fairness", cell.fairness),
        ("latency_ms.p50", latency.map(|latency| latency.p50)),
        ("latency_ms.p99", latency.map(|latency| latency.p99)),
        ("latency_ms.p999", latency.map(|latency| latency.p999)),
        ("latency_ms.max", latency.map(|latency| latency.max)),
        ("bottleneck.busy", cell.bottleneck.as_ref().map(|bottleneck| bottleneck.busy)),
        ("published.value", published.map(|published| published.value)),
        ("published.error_percent", published.map(|published| published.error_percent)),
        ("spread_percent", cell.spread_percent),
        ("moved.full", cell.moved.map(|moved| moved.full)),
        ("moved.percent", cell.moved.map(|moved| moved.percent)),
        ("trust.interval90", interval90(cell).map(|ends| ends[0])),
        ("trust.interval90", interval90(cell).map(|ends| ends[1])),
    ];
    let given = sometimes.into_iter().filter_map(|(key, value)| Some((key, value?)));
    always.into_iter().chain(given).chain(lists(cell)).chain(of_members(cell))
}

/// Those that stand in lists.
fn lists(cell: &Cell) -> impl Iterator<Item = (&'static str, f64)> {
    fn named(key: &'static str, all: &[f64]) -> impl Iterator<Item = (&'static str, f64)> {
        all.iter().map(move |one| (key, *one))
    }
    let busy = cell.busy.iter().map(|one| ("busy", one.busy));
    let timeline = cell.timeline.iter().flat_map(|row| {
        let some = row.mean_ms.iter().chain(&row.max_ms).chain(&row.rebuilt_percent).flatten();
        let all = row.rate.iter().chain(some).chain([&row.bin_s]);
        all.map(|one| ("timeline", *one))
    });
    named("samples", &cell.samples)
        .chain(named("done_s", &cell.done_s))
        .chain(named("latency_curve_ms", &cell.latency_curve_ms))
        .chain(busy)
        .chain(timeline)
}

/// Those of what the members did.
fn of_members(cell: &Cell) -> impl Iterator<Item = (&'static str, f64)> {
    let all = cell.members.map(|one| {
        let moved = [one.reads, one.writes, one.bytes_read, one.bytes_written];
        moved.into_iter().chain(one.write_amplification)
    });
    all.into_iter().flatten().map(|one| ("members", one))
}
