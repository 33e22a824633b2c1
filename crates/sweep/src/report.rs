//! What a sweep shows, in Markdown.

use std::collections::BTreeMap;
use std::fmt::Write;

use raidlab_core::Size;
use raidlab_results::Better;

use crate::error::SweepError;
use crate::row::ReadRow;

/// Of a key with more values than this, such as a seed, no value has a line of its own.
const MOST_VALUES: usize = 24;

/// The most errors, and the most notes, that are told.
const MOST_TOLD: usize = 8;

/// Gathers what rows show. Memory grows with how many values keys have, up to a bound, not with how many
/// rows there are.
#[derive(Debug, Default)]
pub struct Report {
    rows: u64,
    errors: Messages,
    notes: Messages,
    groups: BTreeMap<Group, Shown>,
}

/// Texts of rows.
#[derive(Debug, Default)]
struct Messages {
    count: u64,
    /// By what tells them from others.
    texts: BTreeMap<String, Text>,
}

#[derive(Debug)]
struct Text {
    first: String,
    /// The point of the first row, and how many rows have it.
    point: u64,
    count: u64,
}

impl Messages {
    fn add(&mut self, text: &str, key: String, point: u64) {
        self.count += 1;
        if self.texts.len() < MOST_TOLD || self.texts.contains_key(&key) {
            let first = text.replace('\n', " ");
            self.texts.entry(key).or_insert(Text { first, point, count: 0 }).count += 1;
        }
    }

    fn write(&self, to: &mut String, others: &str) {
        // A text that takes what is written takes all of it.
        for Text { first, point, count } in self.texts.values() {
            let _ = writeln!(to, "- {count} times, first at point {point}: {first}");
        }
        let told: u64 = self.texts.values().map(|text| text.count).sum();
        if told < self.count {
            let _ = writeln!(to, "- {} with other {others}", self.count - told);
        }
    }
}

/// Cells that are compared.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Group {
    workload: String,
    processes: u32,
    state: String,
    settings: String,
    metric: String,
    unit: String,
}

#[derive(Debug)]
struct Shown {
    better: Better,
    all: Mean,
    /// Halves of intervals, as shares of medians: how many, and their sum.
    widths: (u64, f64),
    /// The best median, its interval, and whose it is.
    best: Option<(f64, Option<[f64; 2]>, String)>,
    /// By key, then value.
    keys: BTreeMap<String, BTreeMap<String, Mean>>,
}

/// A geometric mean, and how many it is of.
#[derive(Clone, Copy, Debug, Default)]
struct Mean {
    count: u64,
    logs: f64,
}

impl Mean {
    fn add(&mut self, value: f64) {
        self.count += 1;
        self.logs += libm::log(value);
    }

    fn with(self, other: Self) -> Self {
        Self { count: self.count + other.count, logs: self.logs + other.logs }
    }

    fn value(self) -> f64 {
        libm::exp(self.logs / self.count as f64)
    }
}

/// Values in their order: numbers and sizes by how much they are, then texts.
fn by_size(values: &BTreeMap<String, Mean>) -> Vec<(&str, Mean)> {
    let mut all: Vec<(&str, Mean)> =
        values.iter().map(|(value, mean)| (value.as_str(), *mean)).collect();
    let amount = |text: &str| {
        let size = || text.parse::<Size>().ok().map(|size| size.0 as f64);
        text.parse::<f64>().ok().or_else(size).unwrap_or(f64::INFINITY)
    };
    // Of equals the texts' order stays.
    all.sort_by(|one, other| amount(one.0).total_cmp(&amount(other.0)));
    all
}

impl Report {
    /// Takes a row into account, a line of JSON.
    ///
    /// # Errors
    /// When it is no row.
    pub fn add(&mut self, line: &[u8]) -> Result<(), SweepError> {
        let row = ReadRow::parse(line)?;
        self.rows += 1;
        if let Some(error) = &row.error {
            self.errors.add(error, error.clone(), row.point);
        }
        if let Some(note) = &row.note {
            // They tell of amounts, which differ from row to row.
            let key = note.chars().filter(|char| !char.is_ascii_digit()).collect();
            self.notes.add(note, key, row.point);
        }
        let Some(figure) = row.metrics.first().filter(|figure| figure.median > 0.0) else {
            return Ok(());
        };
        let group = Group {
            workload: row.workload.clone().unwrap_or_default(),
            processes: row.processes.unwrap_or_default(),
            state: row.state.clone().unwrap_or_default(),
            settings: row.settings(),
            metric: figure.metric.clone(),
            unit: figure.unit.clone(),
        };
        let shown = self.groups.entry(group).or_insert_with(|| Shown {
            better: figure.better,
            all: Mean::default(),
            widths: (0, 0.0),
            best: None,
            keys: BTreeMap::new(),
        });
        shown.all.add(figure.median);
        if let Some([low, high]) = figure.ci95 {
            shown.widths.0 += 1;
            shown.widths.1 += (high - low) / 2.0 / figure.median;
        }
        let layout = row.layout.clone().unwrap_or_default();
        let key = |value: &serde_json::Value| match value {
            serde_json::Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        // What changes nothing of this layout has no part in how its figures are told apart.
        let own = row.keys.iter().filter(|(name, _)| !row.of_others.contains(name));
        let keys: Vec<(String, String)> =
            own.map(|(name, value)| (name.clone(), key(value))).collect();
        let is_better = match (&shown.best, shown.better) {
            (None, _) => true,
            (Some((best, ..)), Better::Higher) => figure.median > *best,
            (Some((best, ..)), Better::Lower) => figure.median < *best,
        };
        if is_better {
            let with: Vec<String> =
                keys.iter().map(|(name, value)| format!("{name} = {value}")).collect();
            let note = row.note.as_ref().map_or_else(String::new, |note| format!(" ({note})"));
            let with =
                if with.is_empty() { String::new() } else { format!(": {}", with.join(", ")) };
            let what = format!("{layout}, point {}{with}{note}", row.point);
            shown.best = Some((figure.median, figure.ci95, what));
        }
        for (name, value) in keys.into_iter().chain([("layout".to_owned(), layout)]) {
            let values = shown.keys.entry(name).or_default();
            // One more than are shown tells that there are too many.
            if values.len() <= MOST_VALUES || values.contains_key(&value) {
                values.entry(value).or_default().add(figure.median);
            }
        }
        Ok(())
    }

    /// How many rows there were.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// How many of them tell of an error.
    pub fn errors(&self) -> u64 {
        self.errors.count
    }

    /// As Markdown.
    pub fn text(&self, title: &str) -> String {
        let errors = self.errors.count;
        let mut text =
            format!("# {title}\n\n{} cells, {errors} of them with an error.\n", self.rows);
        // A text that takes what is written takes all of it.
        let to = &mut text;
        self.errors.write(to, "errors");
        if self.notes.count > 0 {
            let _ = writeln!(to, "\n{} cells with a note:\n", self.notes.count);
            self.notes.write(to, "notes");
        }
        for (group, shown) in &self.groups {
            let processes = if group.processes == 1 { "process" } else { "processes" };
            let between = if group.settings.is_empty() { "" } else { ", " };
            let of_group = format!("{}{between}{}", group.state, group.settings);
            let _ = writeln!(
                to,
                "\n## {}, {} {processes}, {of_group}: {} ({})\n",
                group.workload, group.processes, group.metric, group.unit
            );
            if let Some((value, interval, what)) = &shown.best {
                // What others do within it may be as good: draws alone make several percent.
                let within = interval.map_or_else(String::new, |[low, high]| {
                    format!(" (95 of 100: {} to {})", figure(low), figure(high))
                });
                let _ = writeln!(to, "Best: {}{within} with {what}\n", figure(*value));
            }
            let _ = match shown.widths {
                (0, _) => writeln!(to, "Cells have no intervals: they have fewer than 6 rounds.\n"),
                (count, sum) => {
                    let percent = sum / count as f64 * 100.0;
                    writeln!(
                        to,
                        "A cell's 95 % interval is ±{percent:.1} % of its median on average.\n"
                    )
                }
            };
            let _ = writeln!(
                to,
                "| key | value | cells | geometric mean | against all |\n|---|---|---|---|---|"
            );
            let line = |to: &mut String, (key, value): (&str, &str), mean: Mean, all: Mean| {
                let ratio = (mean.value() / all.value() - 1.0) * 100.0;
                let value = value.replace('|', "\\|");
                let _ = writeln!(
                    to,
                    "| {key} | {value} | {} | {} | {ratio:+.1} % |",
                    mean.count,
                    figure(mean.value())
                );
            };
            line(to, ("all", ""), shown.all, shown.all);
            for (key, values) in &shown.keys {
                match values.len() {
                    1 => {}
                    count if count > MOST_VALUES => {
                        let _ = writeln!(to, "| {key} | more than {MOST_VALUES} values | | | |");
                    }
                    _ => {
                        // Of a key of one layout that layout's cells are all.
                        let all = values.values().copied().reduce(Mean::with).unwrap_or_default();
                        for (value, mean) in by_size(values) {
                            line(to, (key, value), mean, all);
                        }
                    }
                }
            }
        }
        text
    }
}

/// Four digits.
fn figure(value: f64) -> String {
    let digits = 3 - libm::floor(libm::log10(value.abs())) as i32;
    format!("{value:.*}", digits.clamp(0, 9) as usize)
}
