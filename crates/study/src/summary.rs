//! From samples to the results document.

use std::collections::BTreeMap;

use raidlab_core::Sectors;
use raidlab_results::statistics::{
    NOISE_REAL, NOISE_VIRTUAL, baseline_per_round, mean, median, median_interval, paired_verdict,
    percent_vs_baseline,
};
use raidlab_results::{
    Better, Bottleneck, Cell, Clock, LayoutRow, Results, SCHEMA_VERSION, WorkloadRow,
};
use raidlab_workload::Better as WorkloadBetter;

use crate::matrix::CellKey;
use crate::run::{Sample, Samples};
use crate::study::Study;

/// The results document of a study.
///
/// `host` says what it ran on, `settings` what its cells have in common besides what is added
/// here (rounds, precision, noise floor), `warnings` what is to stand before the warnings of the
/// run; `capacities` are those of the layouts, in their order. Without a complete round there are
/// no cells.
pub fn summarise(
    study: &Study,
    samples: &Samples,
    clock: Clock,
    host: BTreeMap<String, String>,
    settings: BTreeMap<String, String>,
    mut warnings: Vec<String>,
    capacities: &[Sectors],
) -> Results {
    let noise = match clock {
        Clock::Virtual => NOISE_VIRTUAL,
        Clock::Real => NOISE_REAL,
    };
    let mut all_settings = BTreeMap::from([
        ("rounds".to_string(), samples.rounds.to_string()),
        ("precision".to_string(), format!("{} %", study.precision_percent)),
        ("noise floor".to_string(), format!("{} %", noise * 100.0)),
    ]);
    all_settings.extend(settings);
    warnings.extend(samples.warnings.iter().cloned());
    let baseline = study.baseline_layouts();
    let cells = samples.cells.iter().zip(&samples.samples);
    let cells = cells.filter_map(|(key, own)| {
        let mut cell = measured(study, key, own)?;
        if let Some(against) = Against::of(samples, key, &baseline) {
            cell.percent_vs_baseline = percent_vs_baseline(cell.median, &against.medians);
            let verdict = || paired_verdict(&cell.samples, &against.per_round, noise, cell.better);
            cell.verdict = (!baseline.contains(&key.layout)).then(verdict);
        }
        Some(cell)
    });
    Results {
        schema_version: SCHEMA_VERSION,
        raidlab: env!("CARGO_PKG_VERSION").to_string(),
        study: study.title.clone(),
        seed: study.seed,
        clock,
        host,
        settings: all_settings,
        warnings,
        baseline: study.baseline.clone(),
        layouts: layout_rows(study, capacities),
        workloads: workload_rows(study),
        cells: cells.collect(),
    }
}

/// The baseline's cells that belong to a cell.
struct Against {
    medians: Vec<f64>,
    per_round: Vec<f64>,
}

impl Against {
    /// `None` unless every layout of the baseline has this workload, process count and state.
    fn of(samples: &Samples, key: &CellKey, baseline: &[usize]) -> Option<Self> {
        let of_layout = |layout: &usize| {
            let wanted = CellKey { layout: *layout, ..*key };
            let at = samples.cells.iter().position(|cell| *cell == wanted)?;
            Some(values(&samples.samples[at]))
        };
        let all: Vec<Vec<f64>> = baseline.iter().map(of_layout).collect::<Option<_>>()?;
        let medians = all.iter().map(|values| median(values)).collect::<Option<_>>()?;
        let slices: Vec<&[f64]> = all.iter().map(Vec::as_slice).collect();
        Some(Self { medians, per_round: baseline_per_round(&slices) })
    }
}

/// A cell with what was measured, not yet compared; `None` without samples.
fn measured(study: &Study, key: &CellKey, own: &[Sample]) -> Option<Cell> {
    let workload = &study.workloads[key.workload];
    let metric = workload.metric();
    let samples = values(own);
    let interval = median_interval(&samples);
    Some(Cell {
        layout: study.layouts[key.layout].name.clone(),
        workload: workload.name.clone(),
        processes: key.processes,
        state: key.state.name().to_string(),
        metric: metric.name().to_string(),
        better: match metric.better() {
            WorkloadBetter::Higher => Better::Higher,
            WorkloadBetter::Lower => Better::Lower,
        },
        unit: metric.unit().to_string(),
        median: median(&samples)?,
        ci95: interval.map(|interval| [interval.low, interval.high]),
        coverage: interval.map(|interval| interval.coverage),
        mean: mean(&samples)?,
        samples,
        percent_vs_baseline: None,
        verdict: None,
        settings: BTreeMap::new(),
        first_done_s: median_of(own, |sample| Some(sample.first_done.as_secs()))?,
        last_done_s: median_of(own, |sample| Some(sample.last_done.as_secs()))?,
        process_cpu_s: median_of(own, |sample| sample.process_cpu_s),
        system_cpu_s: median_of(own, |sample| sample.system_cpu_s),
        bottleneck: bottleneck(own),
        published: None,
    })
}

fn values(samples: &[Sample]) -> Vec<f64> {
    samples.iter().map(|sample| sample.value).collect()
}

/// The median of what every sample has; `None` when one has it not.
fn median_of(samples: &[Sample], get: impl Fn(&Sample) -> Option<f64>) -> Option<f64> {
    let values: Option<Vec<f64>> = samples.iter().map(get).collect();
    median(&values?)
}

/// The resource that was busiest in most rounds, with the median of its busy shares in these
/// rounds; of equals the first by name.
fn bottleneck(samples: &[Sample]) -> Option<Bottleneck> {
    let mut shares: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    for (resource, busy) in samples.iter().filter_map(|sample| sample.bottleneck.as_ref()) {
        shares.entry(resource).or_default().push(*busy);
    }
    // `max_by_key` takes the last of equals, hence from the end.
    let (resource, shares) = shares.into_iter().rev().max_by_key(|(_, shares)| shares.len())?;
    Some(Bottleneck { resource: resource.to_string(), busy: median(&shares)? })
}

fn layout_rows(study: &Study, capacities: &[Sectors]) -> Vec<LayoutRow> {
    let rows = study.layouts.iter().zip(capacities);
    rows.map(|(layout, capacity)| LayoutRow {
        name: layout.name.clone(),
        capacity: capacity.bytes(),
        survives: layout.layout.survives(),
    })
    .collect()
}

fn workload_rows(study: &Study) -> Vec<WorkloadRow> {
    let rows = study.workloads.iter();
    rows.map(|workload| WorkloadRow {
        name: workload.name.clone(),
        description: workload.description(),
    })
    .collect()
}
