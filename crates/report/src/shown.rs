//! What of a cell is shown beside its row's others: its value in words that suit it, its percentage and what
//! that is against.

use std::collections::BTreeSet;

use raidlab_results::Origin;
use raidlab_results::document::{Cell, Verdict};
use raidlab_results::find::{
    LEAST_REBUILT_PERCENT, LEAST_REBUILT_SECONDS, PACED_SECONDS, REBUILD, REBUILD_ESTIMATE,
    row_metric,
};

use crate::number;
use crate::view::{Mark, Row, Section, View};

/// The state that others are shown against.
const HEALTHY: &str = "healthy";
/// What stands before the time of a rebuild that was estimated.
pub(crate) const ESTIMATED: &str = "about";
/// And what that means.
pub(crate) const ESTIMATED_FROM: &str = "estimated from the share of the rebuild that was done";

/// By which clock the times of a document are, and what did its work.
pub(crate) const fn clock(origin: Origin) -> &'static str {
    match origin {
        Origin::Measured => "real: times as they passed on the machine",
        Origin::Kernel => "virtual: times of a Linux kernel, as the drive models count them",
        Origin::Modelled => "virtual: times as the drive models count them",
    }
}

/// The same in short.
pub(crate) const fn short_clock(origin: Origin) -> &'static str {
    match origin {
        Origin::Measured => "measured, real time",
        Origin::Kernel => "a Linux kernel on modelled drives, virtual time",
        Origin::Modelled => "modelled drives, virtual time",
    }
}

/// What is said of a rebuild whose time is not known.
pub(crate) fn too_little() -> String {
    let percent = number::share(LEAST_REBUILT_PERCENT / 100.0);
    let seconds = format!("{LEAST_REBUILT_SECONDS:.0}{}s", number::NO_BREAK);
    let least = paced();
    format!(
        "less than {percent} of the rebuild was done beside the load, in less than {seconds}, or the load went on for \
         less than {least}"
    )
}

/// So long nothing settles beside a rebuild: `3 s`.
pub(crate) fn paced() -> String {
    format!("{PACED_SECONDS:.0}{}s", number::NO_BREAK)
}

/// Whether a metric is the time of a rebuild, whose seconds nobody reads.
pub(crate) fn is_rebuild(metric: &str) -> bool {
    row_metric(metric) == REBUILD
}

/// Whether the time of a rebuild is shown that was estimated.
pub(crate) fn is_estimate(cell: &Cell) -> bool {
    cell.metric == REBUILD_ESTIMATE && !cell.tells_too_little()
}

/// The median: of rebuilds as hours and days, with a word that they were estimated.
pub(crate) fn value(cell: &Cell) -> String {
    match cell {
        cell if cell.tells_too_little() => "unknown".to_owned(),
        cell if is_estimate(cell) => {
            format!("{ESTIMATED}{}{}", number::NO_BREAK, amount(cell, cell.median))
        }
        cell => amount(cell, cell.median),
    }
}

/// What is said of a figure that rounds took too short a time to tell.
pub(crate) const TOO_SHORT: &str = "too short to tell";

/// Why a row has no cell of a layout: rounds told nothing, or without redundancy nothing is left when a member is lost.
pub(crate) fn absent(view: &View<'_>, row: &Row<'_>, layout: usize) -> &'static str {
    if row.too_short.contains_key(&layout) {
        return TOO_SHORT;
    }
    let survives = view.results.layouts[layout].survives;
    if survives == 0 && row.state != HEALTHY { "no redundancy" } else { "not measured" }
}

/// What absent cells of all rows are, each said once.
pub(crate) fn all_absent(view: &View<'_>) -> Option<String> {
    let rows = view.sections.iter().flat_map(|section| &section.rows);
    let why = |row| {
        move |(at, cell): (usize, &Option<&Cell>)| cell.is_none().then(|| absent(view, row, at))
    };
    let why = rows.flat_map(|row: &Row<'_>| row.cells.iter().enumerate().filter_map(why(row)));
    let why: BTreeSet<&str> = why.collect();
    (!why.is_empty()).then(|| Vec::from_iter(why).join(", or "))
}

/// The same with its unit.
pub(crate) fn value_with_unit(cell: &Cell, unit: &str) -> String {
    if is_rebuild(&cell.metric) { value(cell) } else { number::with_unit(cell.median, unit) }
}

/// A value of a cell's metric, of rebuilds as hours and days.
pub(crate) fn amount(cell: &Cell, value: f64) -> String {
    if is_rebuild(&cell.metric) { number::duration(value) } else { number::number(value) }
}

/// A range of them: `755..770`.
pub(crate) fn range(cell: &Cell, (low, high): (f64, f64)) -> String {
    format!("{}..{}", amount(cell, low), amount(cell, high))
}

/// Where the median of as many rounds as anybody likes would lie, and how surely: `between 755 and 770 with 97 %
/// confidence`; `None` where rounds are too few.
pub(crate) fn confidence(cell: &Cell) -> Option<String> {
    let [low, high] = cell.ci95.filter(|_| !cell.tells_too_little())?;
    let share = number::share(cell.coverage.unwrap_or(0.95));
    let (low, high) = (amount(cell, low), amount(cell, high));
    if low == high {
        return Some(format!("known to its last digit with {share} confidence"));
    }
    Some(format!("between {low} and {high} with {share} confidence"))
}

/// What the figures of a chart's axis that reaches so far are divided by, and the unit they then have: rebuilds are
/// shown in days, hours or minutes, all else as it is.
pub(crate) fn axis_unit(metric: &str, largest: f64) -> (f64, &'static str) {
    match largest {
        _ if !is_rebuild(metric) => (1.0, ""),
        _ if largest >= 48.0 * 3_600.0 => (86_400.0, "d"),
        _ if largest >= 7_200.0 => (3_600.0, "h"),
        _ if largest >= 120.0 => (60.0, "min"),
        _ => (1.0, "s"),
    }
}

/// In which way a section's values are good, with their unit where all have the same.
pub(crate) fn direction(section: &Section<'_>) -> String {
    let mut cells = section.rows.iter().flat_map(|row| row.cells.iter().flatten());
    if cells.any(|cell| is_rebuild(&cell.metric)) {
        return "shorter is better".to_owned();
    }
    section.direction()
}

/// A percentage and the verdict on it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Percent {
    pub(crate) value: f64,
    /// Of the rounds; none where it is against the same layout healthy.
    pub(crate) verdict: Option<Verdict>,
}

/// What a cell's percentage is: against the same layout healthy where its state is another one, else against
/// the baseline, which for a baseline of one layout would always be nought.
pub(crate) fn percent(view: &View<'_>, layout: usize, cell: &Cell) -> Option<Percent> {
    if cell.tells_too_little() || cell.unsettled {
        return None;
    }
    if let Some(healthy) = healthy(view, cell) {
        let value = (cell.median / healthy.median - 1.0) * 100.0;
        return Some(Percent { value, verdict: None });
    }
    let alone = view.results.baseline.len() == 1 && view.is_baseline(layout);
    let value = cell.percent_vs_baseline.filter(|_| !alone)?;
    Some(Percent { value, verdict: cell.verdict })
}

/// Whether any percentage is against the same layout healthy.
fn has_healthy_percent(view: &View<'_>) -> bool {
    view.cells().any(|cell| !cell.unsettled && healthy(view, cell).is_some())
}

/// What a legend adds to what percentages are against; nothing where all are against the baseline.
pub(crate) fn healthy_words(view: &View<'_>) -> &'static str {
    if has_healthy_percent(view) { "; of other states from the same layout healthy" } else { "" }
}

/// The healthy cell of a cell in another state.
fn healthy<'a>(view: &View<'a>, cell: &Cell) -> Option<&'a Cell> {
    if cell.state == HEALTHY || cell.state.is_empty() {
        return None;
    }
    let same = |other: &&Cell| {
        other.state == HEALTHY
            && other.layout == cell.layout
            && other.workload == cell.workload
            && other.processes == cell.processes
            && other.metric == cell.metric
            && other.settings == cell.settings
    };
    let found = view.results.cells.iter().find(same)?;
    (found.median > 0.0).then_some(found)
}

/// Which layouts are best somewhere and lose everything with one drive; `None` where there is none.
pub(crate) fn risk(view: &View<'_>) -> Option<String> {
    if view.results.cells.iter().any(|cell| cell.published.is_some()) {
        // A replay shows how near the model comes; nobody chooses a layout by it.
        return None;
    }
    let rows = view.sections.iter().flat_map(|section| &section.rows);
    let best = |row: &'_ Row<'_>| {
        (0..row.cells.len()).filter(|at| row.mark(*at) == Mark::Best).collect::<Vec<_>>()
    };
    let leads: BTreeSet<usize> = rows.flat_map(best).collect();
    let layouts = leads.into_iter().map(|at| &view.results.layouts[at]);
    let bare: Vec<&str> =
        layouts.filter(|layout| layout.survives == 0).map(|layout| layout.name.as_str()).collect();
    (!bare.is_empty()).then(|| {
        format!(
            "best of a row, but without redundancy: one lost drive loses everything on {}",
            number::listed(&bare)
        )
    })
}
