//! What a reader should know about weak measurements, each with what to do about it.

use raidlab_results::document::{Cell, Clock, Verdict};

use crate::conclusion::MOST_MORE_ROUNDS;
use crate::number;
use crate::view::{View, half_range};

/// A cell whose half range is above this many percent of its median is worth a remark.
const WIDE_PERCENT: f64 = 10.0;
/// A round shorter than this, in seconds of the real clock, measures start-up more than drives.
const SHORT_SECONDS: f64 = 0.1;
/// A difference from the baseline that is worth more rounds when they do not show it, in percent.
const MATTERS_PERCENT: f64 = 2.0;

/// Remarks on the whole document, the most important first.
pub(crate) fn remarks(view: &View<'_>) -> Vec<String> {
    let all = [no_baseline, wide, outliers, short, undecided];
    all.iter().filter_map(|remark| remark(view)).collect()
}

fn no_baseline(view: &View<'_>) -> Option<String> {
    let without = view
        .sections
        .iter()
        .flat_map(|section| section.rows.iter().map(move |row| (section, row)))
        // What a baseline without redundancy cannot be is no fault of the study, and of rounds that are too short a
        // warning tells.
        .filter(|(_, row)| row.baseline.is_none() && row.state == "healthy")
        .filter(|(_, row)| !row.too_short.keys().any(|at| view.is_baseline(*at)));
    let (section, row) = without.clone().next()?;
    if view.results.baseline.is_empty() {
        return Some("The study names no baseline, so there are no percentages.".to_owned());
    }
    Some(format!(
        "{} no complete baseline and no percentages, first {} with {}: let the study measure {} \
         there too.",
        rows_have(without.count()),
        section.title,
        row.label(),
        number::listed(&view.results.baseline)
    ))
}

fn wide(view: &View<'_>) -> Option<String> {
    let spreads = told(view).filter_map(|cell| half_range(cell).map(|half| (cell, half)));
    let wide: Vec<(&Cell, f64)> = spreads.filter(|(_, half)| *half > WIDE_PERCENT).collect();
    let (cell, half) = wide.iter().max_by(|one, other| one.1.total_cmp(&other.1))?;
    // The range of more rounds is never narrower.
    let what_to_do = match view.results.clock {
        Clock::Real => {
            "Stop what else uses these drives, or use a larger --size; more rounds make intervals narrower, \
                        not this."
        }
        Clock::Virtual => {
            "A larger --size varies less; more rounds make intervals narrower, not this."
        }
    };
    Some(format!(
        "{} by more than ±{WIDE_PERCENT} % between rounds, most of all {} ({}). {what_to_do}",
        cells_do(wide.len(), "varies", "vary"),
        name(view, cell),
        number::spread(*half)
    ))
}

fn short(view: &View<'_>) -> Option<String> {
    if view.results.clock == Clock::Virtual {
        return None;
    }
    let short: Vec<&Cell> = view.cells().filter(|cell| cell.last_done_s < SHORT_SECONDS).collect();
    let shortest =
        short.iter().min_by(|one, other| one.last_done_s.total_cmp(&other.last_done_s))?;
    Some(format!(
        "{} less than {} a round, the shortest {} ({}): use a larger --size.",
        cells_do(short.len(), "took", "took"),
        number::duration(SHORT_SECONDS),
        name(view, shortest),
        number::duration(shortest.last_done_s)
    ))
}

fn undecided(view: &View<'_>) -> Option<String> {
    let enough = view.sections.iter().flat_map(|section| &section.rows);
    let enough = enough.filter(|row| !row.is_preliminary());
    let undecided = enough.flat_map(|row| row.cells.iter().copied().flatten()).filter(|cell| {
        // No number of rounds tells what is seen too shortly.
        cell.verdict == Some(Verdict::NotResolved)
            && !cell.tells_too_little()
            && cell.percent_vs_baseline.is_some_and(|one| distance(one, 0.0) >= MATTERS_PERCENT)
    });
    let cells: Vec<&Cell> = undecided.collect();
    let first = *cells.first()?;
    let them = if cells.len() == 1 { "it" } else { "them" };
    let needed =
        cells.iter().filter_map(|cell| Some(cell.samples.len() + cell.more_rounds? as usize));
    let needed: Vec<usize> = needed.filter(|rounds| *rounds <= MOST_MORE_ROUNDS as usize).collect();
    let advice = match needed.iter().max() {
        None => format!("no reasonable number of rounds would resolve {them}"),
        Some(rounds) if needed.len() == cells.len() => {
            format!("--rounds {rounds} would likely resolve {them}")
        }
        // Of the others no number of rounds is known that would.
        Some(rounds) => {
            format!("--rounds {rounds} would likely resolve {} of {them}", needed.len())
        }
    };
    Some(format!(
        "{} from {} by {MATTERS_PERCENT} % or more, but that is not resolved, first {}: {advice}.",
        cells_do(cells.len(), "differs", "differ"),
        view.baseline(),
        name(view, first)
    ))
}

fn outliers(view: &View<'_>) -> Option<String> {
    let odd: Vec<&Cell> = told(view).filter(|cell| !cell.outlier_rounds.is_empty()).collect();
    let cell = odd.first()?;
    let rounds: Vec<String> = cell.outlier_rounds.iter().map(u32::to_string).collect();
    let look = match view.results.clock {
        Clock::Real => "; see what else the machine did then",
        Clock::Virtual => "",
    };
    Some(format!(
        "{} rounds far apart from their others, first {} (round {}): they count, and the median does not mind \
         few of them{look}.",
        cells_do(odd.len(), "has", "have"),
        name(view, cell),
        number::listed(&rounds)
    ))
}

/// The cells whose figures are told: how far what is unknown varies says nothing.
fn told<'a>(view: &View<'a>) -> impl Iterator<Item = &'a Cell> {
    view.cells().filter(|cell| !cell.tells_too_little())
}

fn distance(one: f64, other: f64) -> f64 {
    if one > other { one - other } else { other - one }
}

fn name(view: &View<'_>, cell: &Cell) -> String {
    format!("{} {}", cell.layout, view.place(cell))
}

fn cells_do(count: usize, one: &str, several: &str) -> String {
    let verb = if count == 1 { one } else { several };
    format!("{} {verb}", number::counted(count, "cell"))
}

fn rows_have(count: usize) -> String {
    let verb = if count == 1 { "has" } else { "have" };
    format!("{} {verb}", number::counted(count, "row"))
}
