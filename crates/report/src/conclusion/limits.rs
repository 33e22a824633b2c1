//! What held layouts up: a drive, the CPU, a path, or nothing that was busy all the time.

use std::collections::BTreeMap;

use raidlab_results::document::Cell;

use super::{About, Conclusion, is_work};
use crate::number::{self, listed};
use crate::view::View;

/// A resource that is busy for less of the time holds nothing up.
const BUSY: f64 = 0.8;
/// Below this share nothing was busy for half of the time: work waits for one drive after the other.
const IDLE: f64 = 0.5;
/// Layouts that a sentence names at the most.
const MOST_NAMED: usize = 10;

pub(super) fn of<'a>(view: &View<'a>) -> Vec<Conclusion<'a>> {
    let sections = view.sections.iter().filter(|section| is_work(section));
    let rows = sections.flat_map(|section| &section.rows);
    let cells: Vec<&'a Cell> = rows
        .flat_map(|row| row.cells.iter().copied().flatten())
        .filter(|cell| cell.bottleneck.is_some())
        .collect();
    let mut all = others(&cells);
    all.extend(drives(&cells));
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
            "Not a drive but {what} is busiest, for {} of the time or more, in {} of {}: {}; most at {} with {} \
             on {} ({}).",
            number::share(BUSY),
            held.len(),
            number::counted(cells.len(), "cell"),
            by_layout(&held),
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

/// In how many cells of which layout a drive is the limit.
fn drives<'a>(cells: &[&'a Cell]) -> Option<Conclusion<'a>> {
    let held: Vec<&Cell> =
        cells.iter().copied().filter(|cell| busy(cell) >= BUSY && is_drive(cell)).collect();
    let most = held.iter().copied().max_by(|one, other| busy(one).total_cmp(&busy(other)))?;
    let count = number::counted(cells.len(), "cell");
    let where_it_is = match held.len() == cells.len() {
        true => format!("all {count}"),
        false => format!("{} of {count}: {}", held.len(), by_layout(&held)),
    };
    let busy = number::share(BUSY);
    let text =
        format!("A drive is the limit, busy for {busy} of the time or more, in {where_it_is}.");
    let effect = 1.0 + held.len() as f64 / cells.len() as f64;
    Some(Conclusion { about: About::Limit, section: None, text, cells: first(most, held), effect })
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

/// `8 on raid5(4), 4 on raid1(2)`.
fn by_layout(cells: &[&Cell]) -> String {
    let mut counts: Vec<(&str, usize)> = Vec::new();
    for cell in cells {
        match counts.iter_mut().find(|(layout, _)| *layout == cell.layout) {
            Some((_, count)) => *count += 1,
            None => counts.push((&cell.layout, 1)),
        }
    }
    if counts.len() > MOST_NAMED {
        return format!("on {} layouts", counts.len());
    }
    let named: Vec<String> =
        counts.iter().map(|(layout, count)| format!("{count} on {layout}")).collect();
    listed(&named)
}

/// The cell that is named before the others.
fn first<'a>(named: &'a Cell, others: Vec<&'a Cell>) -> Vec<&'a Cell> {
    let rest = others.into_iter().filter(|one| !std::ptr::eq(*one, named));
    [named].into_iter().chain(rest).collect()
}
