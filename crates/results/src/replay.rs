//! What the document of a replay has besides: how near it comes to published figures, what the numbers
//! show, and how they move without a mechanism.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

use crate::document::{Cell, Results, SCHEMA_VERSION};
use crate::error::ResultsError;
use crate::json;
use crate::statistics::median;

/// An error of a given cell beyond this many percent is not explained by the model.
pub const MISS_PERCENT: f64 = 10.0;

/// How near a replay comes to the published figures that it knows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Fidelity {
    /// Cells of the document.
    pub cells: usize,
    /// Of these, cells whose published figure is given.
    pub given_cells: usize,
    /// Of these, cells that parameters were fitted to.
    pub calibrated_cells: usize,
    /// Parameters that were fitted.
    pub free_parameters: usize,
    /// Median of the absolute errors of the given cells, in percent; null when none is given.
    pub median_error_percent: Option<f64>,
    /// Given cells that are off by more than [`MISS_PERCENT`]: not explained.
    pub not_explained: Vec<Miss>,
}

/// A given cell that the model does not explain.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Miss {
    /// Which cell, and what it came to.
    #[serde(flatten)]
    pub cell: NamedCell,
    /// What was published.
    pub published: f64,
    /// (median / published - 1) x 100.
    pub error_percent: f64,
    /// Parameters were fitted to it.
    pub calibrated: bool,
}

/// A cell by its axes, with its median.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NamedCell {
    /// The layout's name.
    pub layout: String,
    /// The workload's name.
    pub workload: String,
    /// How many processes at once.
    pub processes: u32,
    /// What was measured.
    pub metric: String,
    /// What tells it from others of its name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub settings: BTreeMap<String, String>,
    /// The median over the seeds, in the unit of the metric.
    pub median: f64,
}

impl NamedCell {
    /// A cell of a document.
    pub fn of(cell: &Cell) -> Self {
        Self {
            layout: cell.layout.clone(),
            workload: cell.workload.clone(),
            processes: cell.processes,
            metric: cell.metric.clone(),
            settings: cell.settings.clone(),
            median: cell.median,
        }
    }

    /// Whether a cell is this one.
    pub fn is(&self, cell: &Cell) -> bool {
        (&self.layout, &self.workload, &self.metric, self.processes, &self.settings)
            == (&cell.layout, &cell.workload, &cell.metric, cell.processes, &cell.settings)
    }
}

/// A sentence that the numbers show, computed from them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Finding {
    /// The sentence.
    pub text: String,
    /// How large the effect is, as a factor from 1 up: findings are ordered by it.
    pub effect: f64,
    /// The cells it was computed from.
    pub cells: Vec<NamedCell>,
}

/// How a cell moves when a mechanism is missing.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Moved {
    /// The median with all mechanisms.
    pub full: f64,
    /// (median / full - 1) x 100.
    pub percent: f64,
}

impl Moved {
    /// From a median with all mechanisms to one without some; `None` from nothing.
    pub fn new(full: f64, without: f64) -> Option<Self> {
        (full != 0.0).then(|| Self { full, percent: (without / full - 1.0) * 100.0 })
    }
}

/// How a study moves without one mechanism.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AblationRow {
    /// The mechanism, as the command line has it.
    pub mechanism: String,
    /// What is missing or changed, in words.
    pub meaning: String,
    /// For each workload and metric how its cells move.
    pub workloads: Vec<AblatedWorkload>,
    /// Every cell that was run.
    pub cells: Vec<AblatedCell>,
}

/// How the cells of a workload move, in one metric.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AblatedWorkload {
    /// The workload's name.
    pub workload: String,
    /// What was measured.
    pub metric: String,
    /// Median over the cells of the change in percent.
    pub median_percent: f64,
    /// The change that is largest in size.
    pub largest_percent: f64,
    /// The layout of the cell with that.
    pub largest_layout: String,
}

/// A cell without a mechanism.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AblatedCell {
    /// Which, and what it came to.
    #[serde(flatten)]
    pub cell: NamedCell,
    /// From where it moved.
    pub moved: Moved,
}

/// Several replays as one document.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Replays {
    /// [`SCHEMA_VERSION`].
    pub schema_version: u32,
    /// The documents, in the order in which they ran.
    pub replays: Vec<Results>,
}

impl Replays {
    /// Of these documents.
    pub fn new(replays: Vec<Results>) -> Self {
        Self { schema_version: SCHEMA_VERSION, replays }
    }

    /// The documents as one text that ends with a newline.
    ///
    /// # Errors
    /// [`NotFinite`](crate::error::ResultsErrorKind::NotFinite) as [`Results::to_json`] has it.
    pub fn to_json(&self) -> Result<String, ResultsError> {
        self.replays.iter().try_for_each(Results::check_finite)?;
        json::to_text(self).map_err(ResultsError::malformed)
    }
}

impl Fidelity {
    /// Of the cells of a document that are shown, with so many fitted parameters.
    pub fn of(cells: &[Cell], free_parameters: usize) -> Self {
        let given = || {
            let shown = cells.iter().filter(|cell| !cell.detail);
            shown.filter_map(|cell| Some((cell, cell.published.as_ref()?)))
        };
        let errors: Vec<f64> = given().map(|(_, one)| one.error_percent.abs()).collect();
        let missed = given().filter(|(_, one)| one.error_percent.abs() > MISS_PERCENT);
        let mut not_explained: Vec<Miss> = missed
            .map(|(cell, one)| Miss {
                cell: NamedCell::of(cell),
                published: one.value,
                error_percent: one.error_percent,
                calibrated: one.calibrated,
            })
            .collect();
        not_explained
            .sort_by(|one, other| other.error_percent.abs().total_cmp(&one.error_percent.abs()));
        Self {
            cells: cells.iter().filter(|cell| !cell.detail).count(),
            given_cells: errors.len(),
            calibrated_cells: given().filter(|(_, one)| one.calibrated).count(),
            free_parameters,
            median_error_percent: median(&errors),
            not_explained,
        }
    }
}

impl AblationRow {
    /// From the cells with all mechanisms to those without one; cells that only one side has do not
    /// count.
    pub fn new(mechanism: &str, meaning: &str, full: &[Cell], without: &[Cell]) -> Self {
        let shown = without.iter().filter(|cell| !cell.detail);
        let moved = shown.filter_map(|cell| {
            let named = NamedCell::of(cell);
            let before = full.iter().find(|one| named.is(one))?;
            Some(AblatedCell { moved: Moved::new(before.median, cell.median)?, cell: named })
        });
        let cells: Vec<AblatedCell> = moved.collect();
        Self {
            mechanism: mechanism.to_owned(),
            meaning: meaning.to_owned(),
            workloads: by_workload(&cells),
            cells,
        }
    }

    /// The largest change of any cell in size, in percent; 0 without cells. Shares of CPU time do not
    /// count: they are rounded to whole percent, so that small ones jump.
    pub fn largest(&self) -> f64 {
        let speeds = self.workloads.iter().filter(|one| !is_cpu_share(&one.metric));
        speeds.map(|one| one.largest_percent.abs()).fold(0.0, f64::max)
    }
}

/// Whether a metric is a share of CPU time, as bonnie++ prints it beside each rate.
pub fn is_cpu_share(metric: &str) -> bool {
    metric.ends_with("_cp")
}

/// In the order in which workloads and metrics come first.
fn by_workload(cells: &[AblatedCell]) -> Vec<AblatedWorkload> {
    let mut names: Vec<(&str, &str)> = Vec::new();
    for AblatedCell { cell, .. } in cells {
        let name = (cell.workload.as_str(), cell.metric.as_str());
        if !names.contains(&name) {
            names.push(name);
        }
    }
    let of = |(workload, metric): (&str, &str)| {
        let own = || {
            cells
                .iter()
                .filter(|one| (&*one.cell.workload, &*one.cell.metric) == (workload, metric))
        };
        let changes: Vec<f64> = own().map(|one| one.moved.percent).collect();
        let largest = own()
            .max_by(|one, other| one.moved.percent.abs().total_cmp(&other.moved.percent.abs()))?;
        Some(AblatedWorkload {
            workload: workload.to_owned(),
            metric: metric.to_owned(),
            median_percent: median(&changes)?,
            largest_percent: largest.moved.percent,
            largest_layout: largest.cell.layout.clone(),
        })
    };
    names.into_iter().filter_map(of).collect()
}
