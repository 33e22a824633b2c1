//! What a reader should know about weak measurements, each with what to do about it.

use raidlab_results::document::{Cell, Clock, Verdict};

use crate::number;
use crate::view::{ROUNDS_FOR_INTERVAL, View, half_range};

/// A cell whose half range is above this many percent of its median is worth a remark.
const WIDE_PERCENT: f64 = 10.0;
/// A round shorter than this, in seconds of the real clock, measures start-up more than drives.
const SHORT_SECONDS: f64 = 0.1;
/// Distance from the median, in units of the median absolute deviation, beyond which a sample is
/// an outlier: ten robust standard deviations (1.4826 x MAD each; Iglewicz and Hoaglin, 1993).
const OUTLIER_DEVIATIONS: f64 = 14.826;
/// Samples this near to the median, as a share of it, are never called outliers.
const OUTLIER_SHARE: f64 = 0.05;

/// A difference from the baseline that is worth more rounds when they do not show it, in percent.
const MATTERS_PERCENT: f64 = 2.0;

/// Remarks on the whole document, the most important first.
pub(crate) fn remarks(view: &View<'_>) -> Vec<String> {
    let all = [few_rounds, no_baseline, wide, first_round, short, undecided];
    all.iter().filter_map(|remark| remark(view)).collect()
}

fn few_rounds(view: &View<'_>) -> Option<String> {
    let fewest = view.cells().map(|cell| cell.samples.len()).min()?;
    (fewest < ROUNDS_FOR_INTERVAL).then(|| {
        format!(
            "No interval with 95 % coverage can be given for {}, so differences are preliminary: \
             use --rounds {ROUNDS_FOR_INTERVAL} or more.",
            number::counted(fewest, "round")
        )
    })
}

fn no_baseline(view: &View<'_>) -> Option<String> {
    let without = view
        .sections
        .iter()
        .flat_map(|section| section.rows.iter().map(move |row| (section, row)))
        // What a baseline without redundancy cannot be is no fault of the study.
        .filter(|(_, row)| row.baseline.is_none() && row.state == "healthy");
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
    let spreads = view.cells().filter_map(|cell| half_range(cell).map(|half| (cell, half)));
    let wide: Vec<(&Cell, f64)> = spreads.filter(|(_, half)| *half > WIDE_PERCENT).collect();
    let (cell, half) = wide.iter().max_by(|one, other| one.1.total_cmp(&other.1))?;
    let more = (cell.samples.len() * 2).max(ROUNDS_FOR_INTERVAL * 2);
    let what_to_do = match view.results.clock {
        Clock::Real => format!("Stop what else uses these drives, or use --rounds {more}."),
        Clock::Virtual => format!("Use --rounds {more} or a larger --size."),
    };
    Some(format!(
        "{} by more than ±{WIDE_PERCENT} % between rounds, most of all {} ({}). {what_to_do}",
        cells_do(wide.len(), "varies", "vary"),
        name(cell),
        number::spread(*half)
    ))
}

fn first_round(view: &View<'_>) -> Option<String> {
    let odd: Vec<&Cell> = view.cells().filter(|cell| first_stands_out(cell)).collect();
    let cell = odd.first()?;
    Some(format!(
        "In {} the first round stands apart from the others, first {}: caches were not in the same \
         state in every round. See the cache setting above; more rounds make the median safer.",
        number::counted(odd.len(), "cell"),
        name(cell)
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
        name(shortest),
        number::duration(shortest.last_done_s)
    ))
}

fn undecided(view: &View<'_>) -> Option<String> {
    let undecided = view.cells().filter(|cell| {
        cell.verdict == Some(Verdict::NoDifferenceShown)
            && cell.percent_vs_baseline.is_some_and(|one| distance(one, 0.0) >= MATTERS_PERCENT)
    });
    let cells: Vec<&Cell> = undecided.collect();
    let rounds = cells.iter().map(|cell| cell.samples.len()).max()?;
    Some(format!(
        "{} from {} by {MATTERS_PERCENT} % or more, but the rounds do not show a difference, first \
         {}: more of them may, such as --rounds {}.",
        cells_do(cells.len(), "differs", "differ"),
        view.baseline(),
        name(cells[0]),
        (rounds * 2).max(ROUNDS_FOR_INTERVAL * 2)
    ))
}

/// The first sample is an outlier by the median absolute deviation.
fn first_stands_out(cell: &Cell) -> bool {
    if cell.samples.len() < ROUNDS_FOR_INTERVAL {
        return false;
    }
    let mut distances: Vec<f64> =
        cell.samples.iter().map(|sample| distance(*sample, cell.median)).collect();
    let first = distances[0];
    distances.sort_by(f64::total_cmp);
    let middle = distances.len() / 2;
    let deviation = match distances.len() % 2 {
        0 => (distances[middle - 1] + distances[middle]) / 2.0,
        _ => distances[middle],
    };
    first > OUTLIER_DEVIATIONS * deviation && first > OUTLIER_SHARE * distance(cell.median, 0.0)
}

fn distance(one: f64, other: f64) -> f64 {
    if one > other { one - other } else { other - one }
}

fn name(cell: &Cell) -> String {
    let processes = number::processes(cell.processes);
    format!("{} {} with {processes}", cell.layout, cell.workload)
}

fn cells_do(count: usize, one: &str, several: &str) -> String {
    let verb = if count == 1 { one } else { several };
    format!("{} {verb}", number::counted(count, "cell"))
}

fn rows_have(count: usize) -> String {
    let verb = if count == 1 { "has" } else { "have" };
    format!("{} {verb}", number::counted(count, "row"))
}
