//! The rules of findings but for pairs of layouts.

use std::collections::BTreeMap;

use raidlab_results::Finding;
use raidlab_results::document::{Better, Cell, Results};

use super::{Group, baseline_name, finding, gain, is_speed, may_differ, value, what};
use crate::number::{self, listed};

/// A resource that is busy for less of the time holds nothing up.
const BUSY: f64 = 0.8;
/// Layouts that a sentence names at the most.
const MOST_NAMED: usize = 4;

/// The layout that is ahead in each workload, and by how much.
pub(super) fn best(results: &Results) -> Vec<Finding> {
    let of = |group: Group<'_>| {
        let base = group.baseline(results)?;
        let others = group.cells.iter().copied();
        let others = others.filter(|cell| !is_baseline(results, cell) && may_differ(cell));
        let best = others.max_by(|one, other| {
            let worth = |cell: &Cell| gain(cell.better, cell.median, base);
            worth(one).total_cmp(&worth(other))
        })?;
        let effect = gain(best.better, best.median, base);
        let text = format!(
            "{} is the fastest at {}: {}, {} against {} ({}).",
            best.layout,
            group.title(),
            value(best),
            change(best.median, base),
            baseline_name(results),
            number::with_unit(base, &best.unit)
        );
        let mut cells = vec![best];
        cells.extend(group.cells.iter().copied().filter(|cell| is_baseline(results, cell)));
        (effect > 1.0).then(|| finding(text, effect, &cells))
    };
    best_of_each_workload(Group::all(results).into_iter().filter_map(of).collect())
}

/// The change of a value in percent.
fn change(value: f64, from: f64) -> String {
    number::percent((value / from - 1.0) * 100.0)
}

fn is_baseline(results: &Results, cell: &Cell) -> bool {
    results.baseline.contains(&cell.layout)
}

/// Of several findings about a workload the largest.
fn best_of_each_workload(found: Vec<Finding>) -> Vec<Finding> {
    let mut best: Vec<Finding> = Vec::new();
    for one in found {
        let workload = one.cells.first().map(|cell| cell.workload.clone());
        let same = |other: &&mut Finding| {
            other.cells.first().map(|cell| &cell.workload) == workload.as_ref()
        };
        match best.iter_mut().find(same) {
            Some(other) if one.effect > other.effect => *other = one,
            Some(_) => {}
            None => best.push(one),
        }
    }
    best
}

/// Layouts that are slower than the baseline.
pub(super) fn slower_than_baseline(results: &Results) -> Vec<Finding> {
    let of = |group: Group<'_>| {
        let base = group.baseline(results)?;
        let mut slower: Vec<(f64, &Cell)> = group
            .cells
            .iter()
            .filter(|cell| !is_baseline(results, cell) && may_differ(cell))
            .map(|cell| (1.0 / gain(cell.better, cell.median, base), *cell))
            .filter(|(loss, _)| *loss > super::LEAST_EFFECT)
            .collect();
        slower.sort_by(|one, other| other.0.total_cmp(&one.0));
        let (effect, _) = *slower.first()?;
        let mut named: Vec<String> = slower
            .iter()
            .take(MOST_NAMED)
            .map(|(_, cell)| {
                format!("{} ({}, {})", cell.layout, value(cell), change(cell.median, base))
            })
            .collect();
        let further = slower.len().saturating_sub(MOST_NAMED);
        if further > 0 {
            named.push(format!("{further} more"));
        }
        let text = format!(
            "Slower than {} ({}) at {}: {}.",
            baseline_name(results),
            number::with_unit(base, &group.cells[0].unit),
            group.title(),
            listed(&named)
        );
        let mut cells: Vec<&Cell> = slower.into_iter().map(|(_, cell)| cell).collect();
        cells.extend(group.cells.iter().copied().filter(|cell| is_baseline(results, cell)));
        Some(finding(text, effect, &cells))
    };
    best_of_each_workload(Group::all(results).into_iter().filter_map(of).collect())
}

/// How much is done per second with most processes, compared with one: the layouts that gain and lose most.
pub(super) fn processes(results: &Results) -> Vec<Finding> {
    let ends = |fewest: bool| -> Vec<Group<'_>> {
        let mut ends: Vec<Group<'_>> = Vec::new();
        for group in Group::all(results) {
            let (one, found) = (group.cells[0], |other: &Group<'_>| {
                let other = other.cells[0];
                let one = group.cells[0];
                (&one.workload, &one.metric, &one.settings, &one.state)
                    == (&other.workload, &other.metric, &other.settings, &other.state)
            });
            match ends.iter_mut().find(|other| found(other)) {
                Some(other) if (one.processes < other.cells[0].processes) == fewest => {
                    *other = group
                }
                Some(_) => {}
                None => ends.push(group),
            }
        }
        ends
    };
    let pairs = ends(true).into_iter().zip(ends(false));
    pairs.filter_map(|(few, many)| scaling(&few, &many)).collect()
}

fn scaling(few: &Group<'_>, many: &Group<'_>) -> Option<Finding> {
    let (first, last) = (few.cells[0].processes, many.cells[0].processes);
    if first == last {
        return None;
    }
    let mut ratios: Vec<(f64, &Cell, &Cell)> = Vec::new();
    for cell in &many.cells {
        if let Some(alone) = few.of_layout(&cell.layout) {
            ratios.push((work(cell) / work(alone), alone, cell));
        }
    }
    ratios.sort_by(|one, other| one.0.total_cmp(&other.0));
    let (worst, from, to) = ratios.first()?;
    let (most, best_from, best_to) = ratios.last()?;
    let name = |cell: &Cell| cell.layout.clone();
    let text = format!(
        "From {first} to {} {} does {} of the work per second at {} ({} to {}), {} {} ({} to {}).",
        number::processes(last),
        name(to),
        number::share(*worst),
        what(from),
        value(from),
        value(to),
        name(best_to),
        number::share(*most),
        value(best_from),
        value(best_to)
    );
    let effect = (1.0 / worst).max(*most).max(most / worst);
    let single = ratios.len() == 1;
    let cells: &[&Cell] = if single { &[from, to] } else { &[from, to, best_from, best_to] };
    (!single).then(|| finding(text, effect, cells))
}

/// What is done per second: times are those of work that grows with the processes.
fn work(cell: &Cell) -> f64 {
    match cell.better {
        Better::Higher => cell.median,
        Better::Lower => f64::from(cell.processes.max(1)) / cell.median,
    }
}

/// What settings, such as a block size, change on one layout.
pub(super) fn settings(results: &Results) -> Vec<Finding> {
    let mut rows: BTreeMap<(&str, &str, &str, u32), Vec<&Cell>> = BTreeMap::new();
    for cell in results.cells.iter().filter(|cell| is_speed(cell) && !cell.settings.is_empty()) {
        let key = (&*cell.workload, &*cell.metric, &*cell.layout, cell.processes);
        rows.entry(key).or_default().push(cell);
    }
    let of = |cells: Vec<&Cell>| {
        let order = |one: &&&Cell, other: &&&Cell| one.median.total_cmp(&other.median);
        let (low, high) = (*cells.iter().min_by(order)?, *cells.iter().max_by(order)?);
        let setting = |cell: &Cell| {
            let each = cell.settings.iter().map(|(key, value)| format!("{key} {value}"));
            each.collect::<Vec<_>>().join(", ")
        };
        let text = format!(
            "On {} {} goes from {} ({}) to {} ({}) with its settings.",
            low.layout,
            low.workload,
            value(low),
            setting(low),
            value(high),
            setting(high)
        );
        Some(finding(text, high.median / low.median, &[low, high]))
    };
    rows.into_values().filter_map(of).collect()
}

/// How far apart processes that do the same end: the layout with the widest and that with the narrowest gap.
pub(super) fn fairness(results: &Results) -> Vec<Finding> {
    let of = |group: Group<'_>| {
        let gap = |cell: &Cell| cell.last_done_s / cell.first_done_s.max(1e-9);
        let mut cells: Vec<&Cell> =
            group.cells.iter().copied().filter(|cell| cell.fairness.is_some()).collect();
        cells.sort_by(|one, other| gap(one).total_cmp(&gap(other)));
        let (even, uneven) = (*cells.first()?, *cells.last()?);
        let ends = |cell: &Cell| {
            let apart = number::duration(cell.last_done_s - cell.first_done_s);
            format!("{apart} apart (last after {})", number::duration(cell.last_done_s))
        };
        let text = format!(
            "First and last of the processes of {} end {} on {}, on {} {}.",
            group.title(),
            ends(uneven),
            uneven.layout,
            even.layout,
            ends(even)
        );
        (cells.len() > 1).then(|| finding(text, gap(uneven), &[uneven, even]))
    };
    best_of_each_workload(Group::all(results).into_iter().filter_map(of).collect())
}

/// What was busiest where that is no drive.
pub(super) fn bottlenecks(results: &Results) -> Vec<Finding> {
    let shown: Vec<&Cell> = results.cells.iter().filter(|cell| is_speed(cell)).collect();
    let mut by_resource: BTreeMap<&str, Vec<&Cell>> = BTreeMap::new();
    for cell in &shown {
        if let Some(one) = &cell.bottleneck
            && one.busy >= BUSY
            && !one.resource.starts_with("member ")
        {
            by_resource.entry(&one.resource).or_default().push(cell);
        }
    }
    let of = |(resource, cells): (&str, Vec<&Cell>)| {
        let busy = |cell: &&Cell| cell.bottleneck.as_ref().map_or(0.0, |one| one.busy);
        let most = cells.iter().copied().max_by(|one, other| busy(one).total_cmp(&busy(other)))?;
        let mut layouts: Vec<&str> = Vec::new();
        for cell in &cells {
            if !layouts.contains(&cell.layout.as_str()) {
                layouts.push(&cell.layout);
            }
        }
        let names = match layouts.len() {
            count if count > MOST_NAMED => format!("{count} layouts"),
            _ => listed(&layouts),
        };
        let text = format!(
            "Not the drives but {resource} is busiest, for {} of the time or more, in {} of {} cells, \
             on {names}; most at {} on {} ({}).",
            number::share(BUSY),
            cells.len(),
            shown.len(),
            what(most),
            most.layout,
            number::share(busy(&most))
        );
        // The share of the cells that no faster drive would help.
        let effect = 1.0 + cells.len() as f64 / shown.len() as f64;
        Some(finding(text, effect, &cells))
    };
    by_resource.into_iter().filter_map(of).collect()
}
