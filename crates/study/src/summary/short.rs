//! Figures that are left out, as rounds took too short a time to tell them.

use raidlab_results::TooShort;

use super::{Measure, measures};
use crate::matrix::CellKey;
use crate::run::{Sample, Samples};
use crate::study::{IDLE_REBUILD, Study};

/// How many cells a warning names.
const MOST_NAMED: usize = 4;

/// The figures that some rounds of their cells do not tell, but for those that reports leave out.
pub(super) fn all(study: &Study, samples: &Samples) -> Vec<TooShort> {
    let cells = samples.cells.iter().zip(&samples.samples).filter(|(key, _)| !key.again);
    let of_cell = |(key, own): (&CellKey, &Vec<Sample>)| {
        let shown = measures(study, own, key).into_iter();
        let shown = shown.filter(|measure| !measure.is_detail(study, key));
        let short: Vec<TooShort> =
            shown.filter_map(|measure| one(study, samples, key, own, measure)).collect();
        short
    };
    cells.flat_map(of_cell).collect()
}

fn one(
    study: &Study,
    samples: &Samples,
    key: &CellKey,
    own: &[Sample],
    measure: Measure,
) -> Option<TooShort> {
    let rounds = own.iter().filter(|sample| measure.value(sample).is_none()).count();
    if rounds == 0 || !is_measured(samples, key, measure) {
        return None;
    }
    let spec = key.workload(study);
    Some(TooShort {
        layout: study.layouts[key.layout].name.clone(),
        workload: spec.map_or(IDLE_REBUILD, |spec| &spec.name).to_owned(),
        processes: key.processes,
        state: key.state.name().to_owned(),
        metric: measure.shown_name(study, key).unwrap_or(measure.name()).to_owned(),
        settings: spec.map(|spec| spec.settings.clone()).unwrap_or_default(),
        rounds: rounds as u32,
        of: own.len() as u32,
    })
}

/// Whether the workload has the figure at all. What it is about it has; of others a run must tell.
fn is_measured(samples: &Samples, key: &CellKey, measure: Measure) -> bool {
    if !matches!(measure, Measure::P99 | Measure::Value(_, 1..)) {
        return true;
    }
    let alike = samples.cells.iter().zip(&samples.samples);
    let mut alike = alike.filter(|(other, _)| other.workload == key.workload);
    alike.any(|(_, own)| own.iter().any(|sample| measure.value(sample).is_some()))
}

/// Names them, and says what to do.
pub(super) fn warning(all: &[TooShort]) -> Option<String> {
    let name = |one: &TooShort| {
        let processes = match one.processes {
            0 => String::new(),
            1 => ", 1 process".to_owned(),
            several => format!(", {several} processes"),
        };
        let state = if one.state == "healthy" { "" } else { &format!(", {}", one.state) };
        let TooShort { layout, workload, metric, rounds, of, .. } = one;
        format!("{layout}, {workload}{processes}{state} ({metric} in {rounds} of {of} rounds)")
    };
    let mut named: Vec<String> = all.iter().take(MOST_NAMED).map(name).collect();
    if all.len() > MOST_NAMED {
        named.push(format!("{} more", all.len() - MOST_NAMED));
    }
    (!named.is_empty()).then(|| {
        format!(
            "rounds were too short to tell some figures, which are left out, so that nobody is best of their rows; \
             use a larger size: {}",
            named.join("; ")
        )
    })
}
