//! What a reader must know of how the rounds went: too few, dependent, drifting, disturbed by the cell before.

use raidlab_results::Better;
use raidlab_results::comparison::DEPENDENT;
use raidlab_results::conduct::{drift, predecessors, steady};
use raidlab_results::statistics::{FEWEST_SAMPLES, median};

use crate::matrix::{CellKey, cell_title, order_of};
use crate::run::{Sample, Samples, headlines};
use crate::study::Study;
use crate::verdicts::{Cells, Values, dependence, family};

/// How many cells a warning names.
const MOST_NAMED: usize = 4;
/// Drift below this share is no news.
const LEAST_DRIFT: f64 = 0.02;

/// Warnings about the rounds of a study.
pub(crate) fn warnings(study: &Study, samples: &Samples) -> Vec<String> {
    let mut warnings = Vec::new();
    warnings.extend(too_few(study, samples));
    if study.measured {
        // None of a cell of which a round was too short to tell: what is left would be out of step with the rounds.
        let cells = samples.cells.iter().zip(&samples.samples);
        let of_cell = |(key, own): (&CellKey, &Vec<Sample>)| headlines(study, key, own.iter());
        let headlines: Vec<Vec<f64>> =
            cells.map(|cell| of_cell(cell).unwrap_or_default()).collect();
        warnings.extend(dependent(study, samples, &headlines));
        warnings.extend(drifting(study, samples, &headlines));
        warnings.extend(disturbed(study, samples, &headlines));
        warnings.extend(unsteady(study, samples, &headlines));
    }
    warnings
}

/// A study with several comparisons in a row needs more rounds than one with one.
fn too_few(study: &Study, samples: &Samples) -> Option<String> {
    let (comparisons, needed) = family(study, &samples.cells);
    (comparisons > 0 && samples.rounds < needed).then(|| {
        let rounds = samples.rounds;
        let layouts = if comparisons == 1 { "comparison" } else { "comparisons" };
        let is = if rounds == 1 { "round is" } else { "rounds are" };
        let needed = needed.max(FEWEST_SAMPLES as u32);
        format!(
            "{rounds} {is} too few for {comparisons} {layouts} in a row, so differences are preliminary: use --rounds \
             {needed} or more"
        )
    })
}

fn dependent(study: &Study, samples: &Samples, headlines: &[Vec<f64>]) -> Option<String> {
    let cells = Cells::rows(study, &samples.cells);
    let values = |at: usize| Some(headlines[at].as_slice()).filter(|own| !own.is_empty());
    let rows: Vec<Values<'_>> =
        cells.iter().map(|row| Values::of(row, Better::Higher, values)).collect();
    let found = dependence(&rows).filter(|found| *found > DEPENDENT)?;
    Some(format!(
        "rounds depend on the ones before (correlation {found:.2}): something on this machine changes more slowly \
         than a round; intervals are wider for it, or withheld. Stop what else runs, or use more rounds"
    ))
}

fn drifting(study: &Study, samples: &Samples, headlines: &[Vec<f64>]) -> Option<String> {
    let moved = |at: usize| {
        let share = drift(&headlines[at])?;
        let is_news = !(-LEAST_DRIFT..=LEAST_DRIFT).contains(&share);
        (is_news && !samples.cells[at].again).then_some((at, share))
    };
    let found: Vec<(usize, f64)> = (0..headlines.len()).filter_map(moved).collect();
    let name = |(at, share): &(usize, f64)| {
        format!("{} ({:+.0} %)", cell_title(study, &samples.cells[*at]), share * 100.0)
    };
    named(&found.iter().map(name).collect::<Vec<_>>()).map(|cells| {
        format!("values moved from the first round to the last (heat, caches of flash, fragmentation): {cells}")
    })
}

/// What stands in the order right before a cell does something to it.
fn disturbed(study: &Study, samples: &Samples, headlines: &[Vec<f64>]) -> Option<String> {
    let medians: Vec<Option<f64>> = headlines.iter().map(|own| median(own)).collect();
    let workload = |at: usize| {
        let spec = samples.cells[at].workload(study);
        spec.map_or(crate::study::IDLE_REBUILD, |spec| spec.name.as_str())
    };
    let mut runs = Vec::new();
    for round in 0..samples.rounds {
        for pair in order_of(study, round, samples.cells.len()).windows(2) {
            let own = headlines[pair[1]].get(round as usize).copied();
            let ratio = own.zip(medians[pair[1]]).map(|(own, middle)| own / middle);
            if let Some(ratio) = ratio.filter(|ratio| *ratio > 0.0) {
                runs.push((workload(pair[0]), libm::log(ratio)));
            }
        }
    }
    let found: Vec<String> = predecessors(&runs)
        .into_iter()
        .map(|(kind, log)| format!("{kind} ({:+.1} %)", libm::expm1(log) * 100.0))
        .collect();
    named(&found).map(|kinds| {
        format!(
            "what ran right before a cell changed what it measured, after: {kinds}; the order is balanced, so that all \
             layouts had the same share of it"
        )
    })
}

/// Writes to flash count as steady by the SNIA's rule only.
fn unsteady(study: &Study, samples: &Samples, headlines: &[Vec<f64>]) -> Option<String> {
    let writes = |at: &usize| {
        let key = &samples.cells[*at];
        let kind = key.workload(study).map(|spec| spec.workload.kind());
        !key.again && kind.is_some_and(|kind| kind.contains("write"))
    };
    let found: Vec<String> = (0..headlines.len())
        .filter(writes)
        .filter(|at| steady(&headlines[*at]) == Some(false))
        .map(|at| cell_title(study, &samples.cells[at]))
        .collect();
    named(&found).map(|cells| {
        format!(
            "no steady state, which matters on flash (SNIA PTS: the last 5 rounds within 20 % of their mean, no trend \
             over 10 %): {cells}"
        )
    })
}

/// The first few, and how many more; `None` of nothing.
fn named(all: &[String]) -> Option<String> {
    let more = all.len().saturating_sub(MOST_NAMED);
    let first = all[..all.len() - more].join("; ");
    match (all.len(), more) {
        (0, _) => None,
        (_, 0) => Some(first),
        _ => Some(format!("{first}; {more} more")),
    }
}
