//! Cells that are over before what goes on beside their rebuild has settled: shown, and compared with none.

use std::collections::BTreeSet;

use raidlab_results::find::PACED_SECONDS;

use super::median_of;
use crate::matrix::CellKey;
use crate::run::{Sample, Samples};
use crate::study::{State, Study};
use crate::verdicts::Cells;

/// Whether a cell saw only how a rebuild begins: md paces one by its last seconds, and lets the first ones go unpaced.
/// Real members are raidlab's own, which are paced from the start.
pub(super) fn is_unsettled(study: &Study, key: &CellKey, own: &[Sample]) -> bool {
    let went_on = |sample: &Sample| sample.rebuild.is_some_and(|rebuild| rebuild.done < 1.0);
    !study.measured
        && key.processes > 0
        && key.state == State::Rebuilding
        && own.iter().any(went_on)
        && median_of(own, |sample| Some(sample.last_done.as_secs()))
            .is_some_and(|seconds| seconds < PACED_SECONDS)
}

/// Cells of rows in which one or more are.
pub(super) fn cells(study: &Study, samples: &Samples, rows: &[Cells]) -> BTreeSet<usize> {
    let is_one = |at: &&usize| is_unsettled(study, &samples.cells[**at], &samples.samples[**at]);
    let rows = rows.iter().filter(|row| row.layouts.iter().any(|at| is_one(&at)));
    rows.flat_map(|row| &row.layouts).copied().collect()
}

/// That they are compared with none, and why.
pub(super) fn warning(study: &Study, samples: &Samples) -> Option<String> {
    let rows = Cells::rows(study, &samples.cells);
    let rows = rows.iter().filter(|row| row.layouts.len() > 1);
    let of = |row: &Cells| {
        let key = &samples.cells[row.layouts[0]];
        let name = key.workload(study).map(|workload| workload.name.as_str())?;
        let is_told = !cells(study, samples, std::slice::from_ref(row)).is_empty();
        is_told.then(|| format!("{name} (processes: {})", key.processes))
    };
    let named: Vec<String> = rows.filter_map(of).collect();
    (!named.is_empty()).then(|| {
        format!(
            "no verdict while rebuilding on {}: some of it was over within {PACED_SECONDS} s, in which md does not \
             pace a rebuild yet and nothing has settled; larger workloads are compared",
            named.join(", ")
        )
    })
}
