//! The rows of a study: which cells are compared with each other, and what the rounds show of them.

use raidlab_results::Better;
use raidlab_results::comparison::{
    Comparison, Row, Standing, correlation, fewest_rounds, log_ratios,
};
use raidlab_results::conduct::floors;
use raidlab_results::statistics::mean;

use raidlab_workload::Metric;

use crate::matrix::CellKey;
use crate::study::Study;

/// Ratios nearer to 1 than this are never called different in virtual time: of most drive files nobody knows how far
/// the model is off.
const LEAST_VIRTUAL: f64 = 0.01;
/// The same in real time, where the floor is measured: no layout is chosen for less.
const LEAST_REAL: f64 = 0.005;

/// Cells that differ in their layout only.
#[derive(Clone, Debug)]
pub(crate) struct Cells {
    /// Indices of the cells, in the order of the study.
    pub(crate) layouts: Vec<usize>,
    /// Which of `layouts` are the baseline; empty unless all of it is there.
    baseline: Vec<usize>,
    /// The cell of the baseline's first layout under another name.
    again: Option<usize>,
}

impl Cells {
    /// All rows of a study.
    pub(crate) fn rows(study: &Study, cells: &[CellKey]) -> Vec<Self> {
        let wanted = study.baseline_layouts();
        let same = |one: &CellKey, other: &CellKey| {
            (one.workload, one.processes, one.state)
                == (other.workload, other.processes, other.state)
        };
        let mut rows: Vec<Self> = Vec::new();
        for (at, key) in cells.iter().enumerate() {
            let row = rows.iter_mut().find(|row| same(&cells[row.layouts[0]], key));
            match row {
                Some(row) if key.again => row.again = Some(at),
                Some(row) => row.layouts.push(at),
                None => rows.push(Self { layouts: vec![at], baseline: Vec::new(), again: None }),
            }
        }
        for row in &mut rows {
            let place =
                |layout: &usize| row.layouts.iter().position(|at| cells[*at].layout == *layout);
            row.baseline = wanted.iter().map(place).collect::<Option<_>>().unwrap_or_default();
        }
        rows
    }

    /// The cells of the layout that is measured twice.
    pub(crate) fn twins(&self) -> Option<(usize, usize)> {
        Some((self.layouts[*self.baseline.first()?], self.again?))
    }

    /// How many comparisons are made at once: of each layout with the best, which are no fewer than those with the
    /// baseline, and more where that is the mean of several.
    fn comparisons(&self) -> usize {
        self.layouts.len().saturating_sub(1)
    }
}

/// So many comparisons the largest row of a study has, and so many rounds they need.
pub(crate) fn family(study: &Study, cells: &[CellKey]) -> (usize, u32) {
    let rows = Cells::rows(study, cells);
    let most = rows.iter().map(Cells::comparisons).max().unwrap_or(0);
    (most, fewest_rounds(most))
}

/// Which way a workload's metric is better, in the words of results.
pub(crate) const fn better_of(metric: &Metric) -> Better {
    match metric.better {
        raidlab_workload::Better::Higher => Better::Higher,
        raidlab_workload::Better::Lower => Better::Lower,
    }
}

/// A row of values of one metric.
pub(crate) struct Values<'a> {
    /// Indices of the cells.
    cells: Vec<usize>,
    layouts: Vec<&'a [f64]>,
    /// Which of `layouts` are the baseline; empty unless all of it is there.
    baseline: Vec<usize>,
    again: Option<&'a [f64]>,
    better: Better,
}

/// What is shown of a cell.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shown {
    /// Against the baseline; `None` for the baseline.
    pub(crate) comparison: Option<Comparison>,
    pub(crate) standing: Standing,
    /// Below this share ratios mean nothing.
    pub(crate) floor: f64,
}

impl<'a> Values<'a> {
    /// Of the layouts that have values.
    pub(crate) fn of(
        row: &Cells,
        better: Better,
        values: impl Fn(usize) -> Option<&'a [f64]>,
    ) -> Self {
        let known = |at: &usize| Some((*at, values(*at)?));
        let (cells, layouts): (Vec<usize>, Vec<&[f64]>) =
            row.layouts.iter().filter_map(known).unzip();
        let place = |at: &usize| cells.iter().position(|cell| *cell == row.layouts[*at]);
        let baseline = row.baseline.iter().map(place).collect::<Option<_>>().unwrap_or_default();
        Self { cells, layouts, baseline, again: row.again.and_then(values), better }
    }

    /// Indices of the cells.
    pub(crate) fn cells(&self) -> &[usize] {
        &self.cells
    }

    /// What is known to differ without a reason: log ratios of the layout that was measured twice.
    fn twins(&self) -> Vec<f64> {
        let first = self.baseline.first().map(|at| self.layouts[*at]);
        let ratios = first.zip(self.again).and_then(|(one, other)| log_ratios(other, one));
        ratios.unwrap_or_default()
    }

    fn row(&self, floor: f64, doubt: f64, measured: bool) -> Row<'_> {
        Row {
            layouts: &self.layouts,
            baseline: &self.baseline,
            again: self.again,
            better: self.better,
            floor,
            doubt,
            drawn: !measured,
        }
    }

    /// What is shown of each cell of the row, with its index.
    /// `doubt` is what the source of the values cannot tell.
    pub(crate) fn shown(&self, floor: f64, doubt: f64, measured: bool) -> Vec<(usize, Shown)> {
        let row = self.row(floor, doubt, measured);
        let shown = row.compare().into_iter().zip(row.against_best());
        let shown = shown.map(|(comparison, standing)| Shown { comparison, standing, floor });
        self.cells.iter().copied().zip(shown).collect()
    }

    /// Whether more rounds would tell nothing of this row that is asked for.
    pub(crate) fn is_settled(&self, floor: f64, doubt: f64, study: &Study) -> bool {
        self.row(floor, doubt, study.measured).is_settled(study.precision_percent / 100.0)
    }
}

/// The floor of each row of one metric.
pub(crate) fn floors_of(rows: &[Values<'_>], measured: bool) -> Vec<f64> {
    if !measured {
        return vec![LEAST_VIRTUAL; rows.len()];
    }
    let twins: Vec<Vec<f64>> = rows.iter().map(Values::twins).collect();
    floors(&twins, LEAST_REAL)
}

/// First-order correlation of rounds, over all rows, its bias of -1/n taken off (Marriott and Pope 1954); `None`
/// where there are no ratios.
pub(crate) fn dependence(rows: &[Values<'_>]) -> Option<f64> {
    let of_row = |row: &Values<'_>| {
        let base = *row.layouts.get(*row.baseline.first()?)?;
        let others = (0..row.layouts.len()).filter(|at| !row.baseline.contains(at));
        let all = others.filter_map(|at| {
            let logs = log_ratios(row.layouts[at], base)?;
            Some(correlation(&logs)? + 1.0 / logs.len() as f64)
        });
        mean(&all.collect::<Vec<_>>())
    };
    mean(&rows.iter().filter_map(of_row).collect::<Vec<_>>())
}
