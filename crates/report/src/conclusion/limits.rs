//! What held each layout up: a drive, the CPU, a path, or nothing that was busy all the time.

use std::collections::BTreeMap;

use raidlab_results::document::Cell;

use super::{About, Conclusion, is_work};
use crate::number::{self, listed};
use crate::view::View;

/// A resource that is busy for less of the time holds nothing up.
const BUSY: f64 = 0.8;
/// Below this share nothing was busy for half of the time: work waits for one drive after the other.
const IDLE: f64 = 0.5;
/// Groups of layouts that a sentence names at the most.
const MOST_GROUPS: usize = 10;

pub(super) fn of<'a>(view: &View<'a>) -> Vec<Conclusion<'a>> {
    let sections = view.sections.iter().filter(|section| is_work(section));
    let rows = sections.flat_map(|section| &section.rows);
    let cells: Vec<&'a Cell> = rows
        .flat_map(|row| row.cells.iter().copied().flatten())
        .filter(|cell| cell.bottleneck.is_some())
        .collect();
    let mut all = Vec::from_iter(each(&cells));
    all.extend(others(&cells));
    all.extend(idle(&cells));
    all
}

fn busy(cell: &Cell) -> f64 {
    cell.bottleneck.as_ref().map_or(0.0, |one| one.busy)
}

fn resource(cell: &Cell) -> &str {
    cell.bottleneck.as_ref().map_or("", |one| &one.resource)
}

fn is_drive(cell: &Cell) -> bool {
    resource(cell).starts_with("member ")
}

/// The CPU and paths, each with how many cells it holds up and where most.
fn others<'a>(cells: &[&'a Cell]) -> Vec<Conclusion<'a>> {
    let mut held: BTreeMap<&str, Vec<&'a Cell>> = BTreeMap::new();
    for &cell in cells.iter().filter(|cell| busy(cell) >= BUSY && !is_drive(cell)) {
        held.entry(resource(cell)).or_default().push(cell);
    }
    let of = |(resource, held): (&str, Vec<&'a Cell>)| {
        let most = held.iter().copied().max_by(|one, other| busy(one).total_cmp(&busy(other)))?;
        let what = if resource == "cpu" { "the CPU" } else { resource };
        let text = format!(
            "Not a drive but {what} is busiest, for {} of the time or more, in {} of {}, most at {} with {} on {} \
             ({}).",
            number::share(BUSY),
            held.len(),
            number::counted(cells.len(), "cell"),
            most.workload,
            number::processes(most.processes),
            most.layout,
            number::share(busy(most))
        );
        let effect = 2.0 + held.len() as f64 / cells.len() as f64;
        Some(Conclusion {
            about: About::Limit,
            section: None,
            text,
            cells: first(most, held),
            effect,
        })
    };
    held.into_iter().filter_map(of).collect()
}

/// What limits each layout, and in how many of its cells.
fn each<'a>(cells: &[&'a Cell]) -> Option<Conclusion<'a>> {
    let mut layouts: Vec<(&str, Vec<&'a Cell>)> = Vec::new();
    for &cell in cells {
        match layouts.iter_mut().find(|(layout, _)| *layout == cell.layout) {
            Some((_, own)) => own.push(cell),
            None => layouts.push((&cell.layout, vec![cell])),
        }
    }
    let mut groups: Vec<(String, Vec<&str>)> = Vec::new();
    for (layout, own) in layouts {
        let limits = limits(&own);
        match groups.iter_mut().find(|(same, _)| *same == limits) {
            Some((_, names)) => names.push(layout),
            None => groups.push((limits, vec![layout])),
        }
    }
    if groups.len() > MOST_GROUPS {
        groups = vec![(limits(cells), vec!["all layouts"])];
    }
    let told: Vec<String> =
        groups.iter().map(|(limits, names)| format!("on {} {limits}", listed(names))).collect();
    let text = format!(
        "What limits each, busy for {} of the time or more: {}.",
        number::share(BUSY),
        told.join("; ")
    );
    // Before all others: it is about every layout.
    let effect = 4.0;
    (!cells.is_empty()).then(|| Conclusion {
        about: About::Limit,
        section: None,
        text,
        cells: cells.to_vec(),
        effect,
    })
}

/// `a drive in 14 and the CPU in 2 of 18 cells`.
fn limits(own: &[&Cell]) -> String {
    let mut counts: Vec<(&str, usize)> = Vec::new();
    for cell in own.iter().filter(|cell| busy(cell) >= BUSY) {
        let what = match resource(cell) {
            _ if is_drive(cell) => "a drive",
            "cpu" => "the CPU",
            other => other,
        };
        match counts.iter_mut().find(|(one, _)| *one == what) {
            Some((_, count)) => *count += 1,
            None => counts.push((what, 1)),
        }
    }
    counts.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let cells = number::counted(own.len(), "cell");
    match counts.as_slice() {
        [] => format!("nothing in {cells}"),
        some => {
            let some: Vec<String> =
                some.iter().map(|(what, count)| format!("{what} in {count}")).collect();
            format!("{} of {cells}", listed(&some))
        }
    }
}

/// Where nothing is busy for half of the time, more requests at once would do more.
fn idle<'a>(cells: &[&'a Cell]) -> Option<Conclusion<'a>> {
    let waiting: Vec<&Cell> =
        cells.iter().copied().filter(|cell| busy(cell) < IDLE && cell.processes > 0).collect();
    let least = waiting.iter().copied().min_by(|one, other| busy(one).total_cmp(&busy(other)))?;
    let text = format!(
        "Nothing is busy for {} of the time in {} of {}, least at {} with {} on {} ({}, {}): work waits for one answer \
         after the other there, and more at once would do more.",
        number::share(IDLE),
        waiting.len(),
        number::counted(cells.len(), "cell"),
        least.workload,
        number::processes(least.processes),
        least.layout,
        resource(least),
        number::share(busy(least))
    );
    let effect = 1.0 + waiting.len() as f64 / cells.len() as f64;
    let cells = first(least, waiting);
    Some(Conclusion { about: About::Limit, section: None, text, cells, effect })
}

/// The cell that is named before the others.
fn first<'a>(named: &'a Cell, others: Vec<&'a Cell>) -> Vec<&'a Cell> {
    let rest = others.into_iter().filter(|one| !std::ptr::eq(*one, named));
    [named].into_iter().chain(rest).collect()
}
