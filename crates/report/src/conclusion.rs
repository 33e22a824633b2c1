//! What a document shows, in sentences, each with the cells that its numbers are taken from.
//!
//! Of each row who is best, by how much, how sure, and what was busiest ([`lead`]). Then what no single row shows:
//! what does not differ, what limits which layout, where the order of layouts turns with the number of processes,
//! what redundancy costs, and what a lost drive does. No sentence is made without a cell behind it.

mod equal;
mod failure;
mod lead;
mod limits;
mod order;
mod redundancy;

use raidlab_results::document::{Better, Cell, Clock, Results, Verdict};
use raidlab_results::trust::CellTrust;

use crate::shown;
use crate::view::{Row, Section, View};
use crate::{ReportError, number};

/// What modelled drives are off where they were taken from the drive itself, at worst (docs/fidelity.md), in percent:
/// who is ahead by less in virtual time is not called a winner.
pub(crate) const MODEL_PERCENT: f64 = 2.5;
/// More rounds than this nobody runs to learn which of two layouts is ahead.
pub(crate) const MOST_MORE_ROUNDS: u32 = 100;
/// Sentences of one kind at the most, so that one does not hide the others.
const MOST_OF_A_KIND: usize = 3;

/// What a conclusion is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum About {
    /// Which layout is best in some rows, or that this is not resolved.
    Best,
    /// What does not differ from the baseline.
    Equal,
    /// Where the order of layouts, or the way more processes go, turns.
    Order,
    /// What redundancy costs.
    Redundancy,
    /// What a lost drive does.
    Failure,
    /// What was busiest.
    Limit,
}

/// What a document shows, with what that is taken from.
#[derive(Clone, Debug, PartialEq)]
pub struct Conclusion<'a> {
    /// What it is about.
    pub about: About,
    /// The workload, and the metric where it has several, as reports head its table; none where it is about several.
    pub section: Option<String>,
    /// The sentence.
    pub text: String,
    /// The cells that its numbers are taken from: each number is one of theirs, a ratio of two of them or a count.
    pub cells: Vec<&'a Cell>,
    /// How large the effect is, as a factor from 1 up.
    pub effect: f64,
}

/// What a document shows: first, workload by workload, which layout is best, then what no single row shows.
///
/// # Errors
/// A document that contradicts itself, see [`crate::ReportErrorKind`].
pub fn conclusions(results: &Results) -> Result<Vec<Conclusion<'_>>, ReportError> {
    let view = View::new(results)?;
    let mut all: Vec<_> =
        view.sections.iter().flat_map(|section| lead::of_section(&view, section)).collect();
    all.extend(across(&view));
    Ok(all)
}

/// Which layout is best in the rows of a section.
pub(crate) fn sentences(view: &View<'_>, section: &Section<'_>) -> Vec<String> {
    lead::of_section(view, section).into_iter().map(|one| one.text).collect()
}

/// What no single row shows.
pub(crate) fn across<'a>(view: &View<'a>) -> Vec<Conclusion<'a>> {
    if view.results.cells.iter().any(|cell| cell.published.is_some()) {
        // A replay has findings of its own.
        return Vec::new();
    }
    let found = [
        equal::of(view),
        order::of(view),
        redundancy::of(view),
        failure::of(view),
        limits::of(view),
    ];
    found.into_iter().flat_map(largest).collect()
}

/// The largest of a kind, in their order.
fn largest(found: Vec<Conclusion<'_>>) -> Vec<Conclusion<'_>> {
    let mut effects: Vec<f64> = found.iter().map(|one| one.effect).collect();
    effects.sort_by(|one, other| other.total_cmp(one));
    let least = effects.get(MOST_OF_A_KIND - 1).copied().unwrap_or(f64::NEG_INFINITY);
    found.into_iter().filter(|one| one.effect >= least).take(MOST_OF_A_KIND).collect()
}

/// Whether a section says how fast work is done: not how long single requests or rebuilds take.
pub(crate) fn is_work(section: &Section<'_>) -> bool {
    let mut cells = section.rows.iter().flat_map(|row| row.cells.iter().flatten());
    cells.all(|cell| cell.metric != "p99_ms" && !shown::is_rebuild(&cell.metric))
}

/// How many times as good a cell is as another: above 1 when it is better.
fn gain(cell: &Cell, than: &Cell) -> f64 {
    let ratio = match cell.better {
        Better::Higher => cell.median / than.median,
        Better::Lower => than.median / cell.median,
    };
    if ratio.is_finite() { ratio } else { 1.0 }
}

/// From which factor on one of two cells may be called better than the other by its median: the largest of what the
/// rounds and the model of each can tell. Infinite where the model tells no difference.
fn least_gain(view: &View<'_>, cells: [&Cell; 2]) -> f64 {
    let usual = match view.results.clock {
        Clock::Virtual => MODEL_PERCENT,
        Clock::Real => 0.0,
    };
    let of_cell = |cell: &Cell| {
        // Without a floor nothing was compared in its row.
        let rounds = cell.floor_percent.unwrap_or(1.0);
        let of_model = |trust: &CellTrust| match (trust.floor_percent, &trust.not_checked) {
            (Some(floor), _) => f64::from(floor),
            (None, None) => f64::INFINITY,
            // Nobody knows what the model can tell.
            (None, Some(_)) => 0.0,
        };
        rounds.max(cell.trust.as_ref().map_or(0.0, of_model))
    };
    1.0 + cells.map(of_cell).into_iter().fold(usual, f64::max) / 100.0
}

/// Whether a cell is better than another beyond doubt: intervals apart, and by more than means something, and by this
/// factor; and its verdict says nothing else, where it was compared with that one.
fn is_clearly_better(view: &View<'_>, cell: &Cell, than: &Cell, factor: f64) -> bool {
    let (Some([low, high]), Some([other_low, other_high])) = (cell.ci95, than.ci95) else {
        return false;
    };
    let apart = match cell.better {
        Better::Higher => low > other_high,
        Better::Lower => high < other_low,
    };
    apart
        && gain(cell, than) >= least_gain(view, [cell, than]).max(factor)
        && !is_undecided(view, cell, than)
        && !is_undecided(view, than, cell)
}

/// Whether a cell was compared with another, the baseline of its row, and nothing was shown.
fn is_undecided(view: &View<'_>, cell: &Cell, base: &Cell) -> bool {
    let same_row = (&cell.workload, cell.processes, &cell.state, &cell.settings)
        == (&base.workload, base.processes, &base.state, &base.settings);
    same_row
        && view.results.baseline == [base.layout.clone()]
        && matches!(cell.verdict, Some(Verdict::NotResolved | Verdict::Equal))
}

/// `729 against 486 MiB/s`.
fn against(cell: &Cell, other: &Cell, unit: &str) -> String {
    format!("{} against {}", shown::value(cell), shown::value_with_unit(other, unit))
}

/// The change from one cell to another in percent, from ten times on as a factor.
fn change(cell: &Cell, from: &Cell) -> String {
    number::percent((cell.median / from.median - 1.0) * 100.0)
}

/// `with 1, 2 and 4 processes, degraded`.
fn when(rows: &[&Row<'_>]) -> String {
    let last = rows[rows.len() - 1];
    let mut text = "with ".to_owned();
    for (at, row) in rows[..rows.len() - 1].iter().enumerate() {
        text.push_str(&row.processes.to_string());
        text.push_str(if at + 2 == rows.len() { " and " } else { ", " });
    }
    text.push_str(&last.label());
    text
}
