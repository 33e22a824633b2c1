//! `raidlab check --bugs`: whether planted bugs are found.

use std::fmt::Write;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use raidlab_checker::device::Format;
use raidlab_checker::mutation::{Budget, Found, MutationTest, Tried, sample};
use raidlab_checker::part::Report;
use raidlab_core::bugs::Bug;
use serde_json::{Value, json};

use super::args::Check;
use super::{spread, summary, threads};
use crate::failure::Failure;
use crate::json::{millis, pretty};
use crate::{interrupt, output, parallel};

/// A bug by its name.
pub(super) fn named(name: &str) -> Result<Bug, Failure> {
    Bug::ALL.iter().copied().find(|bug| bug.name() == name).ok_or_else(|| {
        let known: Vec<&str> = Bug::ALL.iter().map(|bug| bug.name()).collect();
        Failure::input(format!("--bug {name}: no such bug; known: {}", known.join(", ")))
    })
}

/// A search without any bug.
#[derive(Clone)]
struct Control(Arc<MutationTest>, usize);

impl threads::Part for Control {
    type Report = Report;

    fn cost(&self) -> u64 {
        1
    }

    fn name(&self) -> String {
        "without any bug".into()
    }

    fn run(&self, _: &mut dyn FnMut(u64)) -> Report {
        self.0.control(self.1)
    }
}

/// The search for one bug.
#[derive(Clone)]
struct Search(Arc<MutationTest>, Bug);

impl threads::Part for Search {
    type Report = Result<Found, Tried>;

    fn cost(&self) -> u64 {
        1
    }

    fn name(&self) -> String {
        self.1.name().into()
    }

    fn run(&self, _: &mut dyn FnMut(u64)) -> Self::Report {
        self.0.bug(self.1)
    }
}

/// What became of a bug.
type Row = (Bug, Result<Found, Tried>);

pub(super) fn run(options: &Check) -> Result<(), Failure> {
    let bugs = match (&options.bug, options.sample) {
        (Some(name), _) => vec![named(name)?],
        (None, Some(count)) => sample(count as usize, options.by),
        (None, None) => Bug::ALL.to_vec(),
    };
    let cancel = interrupt::flag()?;
    let threads = parallel::threads(options.threads);
    let start = Instant::now();
    let mut budget = Budget::default();
    budget.seeds = options.seeds.unwrap_or(budget.seeds);
    budget.states = options.crash_states.unwrap_or(budget.states);
    let mut test = MutationTest::new(budget, options.metadata);
    let (bugs, unplanted): (Vec<Bug>, Vec<Bug>) =
        bugs.into_iter().partition(|bug| test.can_have(*bug));
    if let (Some(name), true, Some(format)) = (&options.bug, bugs.is_empty(), options.metadata) {
        let format = format.name();
        return Err(Failure::input(format!(
            "--bug {name}: it cannot show with --metadata {format}, which has no such mode or record, or \
             rules of its own"
        )));
    }
    let shared = Arc::new(test.clone());
    let controls: Vec<Control> =
        (0..test.grounds()).map(|ground| Control(Arc::clone(&shared), ground)).collect();
    let (mut unsound, count) = (Vec::new(), controls.len() as u64);
    let looked = spread(options.quiet, controls, threads, cancel, |ground, report: Report| {
        test.leave_out(ground as usize, &report);
        unsound.extend(
            report.broken.iter().map(|broken| format!("{}: {}", broken.array, broken.what)),
        );
    })?;
    if looked < count {
        return Err(Failure::Interrupted);
    }
    let shared = Arc::new(test);
    let searches: Vec<Search> = bugs.iter().map(|bug| Search(Arc::clone(&shared), *bug)).collect();
    let mut rows: Vec<Row> = Vec::new();
    spread(options.quiet, searches, threads, cancel, |index, found| {
        rows.push((bugs[index as usize], found));
    })?;
    let seconds = start.elapsed().as_secs_f64();
    let (unplanted, unsound) = (&unplanted[..], &unsound[..]);
    let is_complete = rows.len() == bugs.len();
    report(options, &Outcome { rows: &rows, unplanted, unsound, is_complete, seconds })?;
    if cancel.load(Ordering::Relaxed) {
        return Err(Failure::Interrupted);
    }
    let missed: Vec<&str> =
        rows.iter().filter(|row| row.1.is_err()).map(|row| row.0.name()).collect();
    if !missed.is_empty() {
        return Err(Failure::failed(format!("not found: {}", missed.join(", "))));
    }
    match unsound.first() {
        None => Ok(()),
        Some(first) => Err(Failure::failed(format!(
            "{} promises are broken without any bug, so that a find may be one of those: {first}",
            unsound.len()
        ))),
    }
}

/// What a search has come to.
struct Outcome<'a> {
    rows: &'a [Row],
    /// Bugs that cannot show with the metadata that were asked for.
    unplanted: &'a [Bug],
    /// What is broken without any bug.
    unsound: &'a [String],
    /// Whether all were searched for: not so when it was interrupted.
    is_complete: bool,
    seconds: f64,
}

fn report(options: &Check, outcome: &Outcome<'_>) -> Result<(), Failure> {
    let written = match &options.json {
        Some(path) => output::write(path, &as_json(options.metadata, outcome)),
        None => Ok(()),
    };
    let printed = options.json.as_deref() == Some(Path::new("-"));
    if written.is_err() || !(printed || options.quiet && options.json.is_some()) {
        let text = if options.markdown { as_markdown(outcome.rows) } else { as_table(outcome) };
        output::print(&text)?;
    }
    written
}

/// How many runs, states or seeds it took.
fn effort(found: &Result<Found, Tried>) -> String {
    match found {
        Ok(found) => format!("{} {}", summary::thousands(found.after), found.method.unit()),
        Err(tried) => {
            let [runs, states, seeds] =
                [tried.runs, tried.states, tried.seeds].map(summary::thousands);
            format!("{runs} runs, {states} states, {seeds} seeds")
        }
    }
}

fn method(found: &Result<Found, Tried>) -> &'static str {
    found.as_ref().map_or("NOT FOUND", |found| found.method.name())
}

/// The array of a find without its settings.
fn place(found: &Result<Found, Tried>) -> &str {
    let place = found.as_ref().map_or("", |found| found.place.as_str());
    place.split_once(" sectors").map_or(place, |(before, _)| {
        before.rsplit_once(" of ").map_or(before, |(before, _)| before)
    })
}

fn as_table(Outcome { rows, unplanted, seconds, .. }: &Outcome<'_>) -> String {
    let mut text = String::new();
    for (bug, found) in *rows {
        // Writing to a string does not fail.
        let _ = writeln!(
            text,
            "{:<24}{:<19}{:>16}  {}",
            bug.name(),
            method(found),
            effort(found),
            place(found)
        );
    }
    let count = rows.iter().filter(|row| row.1.is_ok()).count();
    let _ = writeln!(text, "{count} of {} bugs found in {seconds:.1} s", rows.len());
    if !unplanted.is_empty() {
        let names: Vec<&str> = unplanted.iter().map(|bug| bug.name()).collect();
        let _ = writeln!(
            text,
            "not planted, as this metadata has no such mode or record, or rules of its own: {}",
            names.join(", ")
        );
    }
    text
}

fn as_markdown(rows: &[Row]) -> String {
    let mut text =
        String::from("| bug | what is wrong | found by | after | on |\n|---|---|---|---:|---|\n");
    for (bug, found) in rows {
        let place = place(found).replace('|', "\\|");
        // Writing to a string does not fail.
        let _ = writeln!(
            text,
            "| {} | {} | {} | {} | {place} |",
            bug.name(),
            bug.what(),
            method(found),
            effort(found),
        );
    }
    text
}

fn as_json(metadata: Option<Format>, outcome: &Outcome<'_>) -> String {
    let rows = outcome.rows.iter().map(|(bug, found)| match found {
        Ok(found) => json!({
            "bug": bug.name(),
            "wrong": bug.what(),
            "found_by": found.method.name(),
            "after": found.after,
            "place": found.place,
            "what": found.what,
        }),
        Err(tried) => json!({
            "bug": bug.name(),
            "wrong": bug.what(),
            "found_by": null,
            "runs": tried.runs,
            "states": tried.states,
            "seeds": tried.seeds,
        }),
    });
    pretty(&json!({
        "seconds": millis(outcome.seconds),
        "complete": outcome.is_complete,
        "metadata": metadata.map(Format::name),
        "bugs": rows.collect::<Value>(),
        "not_planted": outcome.unplanted.iter().map(|bug| bug.name()).collect::<Vec<_>>(),
        "broken_without": outcome.unsound,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_search_that_was_interrupted_is_not_complete() {
        let of = |is_complete: bool| {
            let outcome = Outcome {
                rows: &[],
                unplanted: &Bug::ALL[..1],
                unsound: &[],
                is_complete,
                seconds: 1.0,
            };
            serde_json::from_str::<Value>(&as_json(None, &outcome)).expect("JSON")
        };
        assert_eq!(of(true)["complete"], true);
        assert_eq!(of(false)["complete"], false);
    }
}
