//! The first round of a study in real time: a table to look at while the others go on.

use std::collections::BTreeMap;

use raidlab_study::{CellKey, CellRun, Event, Progress, Samples, Study};

/// The runs of the first round as they are finished.
pub(super) struct FirstRound<'a> {
    study: &'a Study,
    cells: BTreeMap<CellKey, usize>,
    runs: Vec<CellRun>,
}

impl<'a> FirstRound<'a> {
    /// Of a study of which some runs are `finished` already.
    pub(super) fn new(study: &'a Study, finished: &[CellRun]) -> Self {
        let keys = raidlab_study::cells(study).into_iter();
        let cells = keys.enumerate().map(|(index, key)| (key, index)).collect();
        let runs = finished.iter().filter(|run| run.round == 0).cloned().collect();
        Self { study, cells, runs }
    }

    /// What the round measured, when it has just become complete and others follow.
    pub(super) fn keep(&mut self, progress: &Progress<'_>) -> Option<Samples> {
        let Event::Finished(sample) = progress.event else { return None };
        let cell = *self.cells.get(progress.key).filter(|_| progress.round == 0)?;
        self.runs.push(CellRun { round: 0, cell, sample: sample.clone() });
        let is_complete = self.runs.len() == self.cells.len();
        let is_all = self.study.rounds.max(self.study.max_rounds) == 1;
        (is_complete && !is_all)
            .then(|| Samples::of_complete_rounds(self.study, std::mem::take(&mut self.runs)))
    }
}
