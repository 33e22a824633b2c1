//! From samples to the results document.

mod short;
mod unsettled;
mod warned;

pub use warned::run_warnings;

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

use raidlab_core::geometry::{Chunk, ChunkMap};
use raidlab_core::{Layout, Nanos, Sectors};
use raidlab_results::conduct::outliers;
use raidlab_results::find::{REBUILD, REBUILD_ESTIMATE, row_metric};
use raidlab_results::statistics::{
    baseline_per_round, mean, median, median_interval, percent_vs_baseline, spread_percent,
};
use raidlab_results::{
    Better, Bottleneck, Cell, Clock, LATENCY_SHARES, LatencyRow, LayoutRow, MembersRow, Published,
    Results, SCHEMA_VERSION, WorkloadRow,
};
use raidlab_workload::{Metric, WorkloadSpec};

use crate::conduct;
use crate::course::Course;
use crate::matrix::CellKey;
use crate::rebuild::Rebuild;
use crate::run::{Latency, Sample, Samples};
use crate::study::{IDLE_REBUILD, State, Study};
use crate::trust;
use crate::verdicts::{Cells, Shown, Values, better_of, floors_of};

/// Rows of chunks that a document shows of a layout at the most.
const MOST_BLOCK_ROWS: usize = 12;

/// So long md's stripe cache grows beside a rebuild, about (docs/fidelity.md, "Rebuilds beside requests").
const GROWN_AFTER_S: f64 = 120.0;

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
    let mut all_settings = BTreeMap::from([
        ("rounds".to_string(), samples.rounds.to_string()),
        ("precision".to_string(), format!("{} %", study.precision_percent)),
    ]);
    all_settings.extend(settings);
    all_settings.extend(study.parameters.iter().map(|one| {
        let free = if one.free { "free, " } else { "" };
        let value = format!("{} ({free}{})", one.shown(), one.source);
        (format!("parameter {}", one.title()), value)
    }));
    warnings.extend(samples.warnings.iter().cloned());
    warnings.extend(warned::warnings(study, samples));
    let mut judged = Judged::of(study, samples);
    judged.compare(study, samples);
    judged.tell_trust(study, samples);
    let (cells, floor) = judged.into_cells(samples);
    let too_short = short::all(study, samples);
    warnings.extend(short::warning(&too_short));
    all_settings.insert("noise floor".to_string(), floor);
    warnings.extend(conduct::warnings(study, samples));
    warnings.extend(loud(study, &cells));
    warnings.extend(state_warnings(study, &cells));
    warnings.extend(unsettled::warning(study, samples));
    let has_curves = cells.iter().any(|cell| !cell.latency_curve_ms.is_empty());
    let latency_shares = if has_curves { LATENCY_SHARES.to_vec() } else { Vec::new() };
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
        latency_shares,
        cells,
        too_short,
        risk: None,
        fidelity: None,
        findings: Vec::new(),
        without: Vec::new(),
        ablation: Vec::new(),
    }
}

/// What one cell shows, its own figure first, not compared with any other; each with how far it can be
/// trusted where the study is modelled. Nothing where the rounds gave no value.
pub fn cell_figures(study: &Study, key: &CellKey, samples: &[Sample]) -> Vec<Cell> {
    let figures = measures(study, samples, key).into_iter().filter_map(|measure| {
        let mut cell = measured(study, key, samples, measure)?;
        let first = matches!(measure, Measure::Value(_, 0));
        let of = || trust::of(study, key, (wrote(samples), first), &cell, None);
        cell.trust = study.modelled.then(of);
        Some(cell)
    });
    figures.collect()
}

/// What every cell measured, and then what that shows.
struct Judged {
    rows: Vec<Cells>,
    /// With the index of the cell in the study.
    cells: Vec<(usize, Measure, Cell)>,
    /// The least and the largest floor.
    floors: Option<(f64, f64)>,
    /// Of each cell that is compared, with its metric, what its row does not resolve.
    doubts: BTreeMap<(usize, &'static str), f64>,
}

impl Judged {
    /// Not yet compared.
    fn of(study: &Study, samples: &Samples) -> Self {
        let keys = samples.cells.iter().zip(&samples.samples).enumerate();
        let cells = keys.flat_map(|(at, (key, own))| {
            let measured = move |measure| Some((at, measure, measured(study, key, own, measure)?));
            measures(study, own, key).into_iter().filter_map(measured)
        });
        let cells = cells.collect();
        Self {
            rows: Cells::rows(study, &samples.cells),
            cells,
            floors: None,
            doubts: BTreeMap::new(),
        }
    }

    /// Compares the cells of each row, one metric after the other.
    fn compare(&mut self, study: &Study, samples: &Samples) {
        let mut kinds: Vec<(Measure, Better)> = Vec::new();
        for (_, measure, cell) in &self.cells {
            if !kinds.iter().any(|(known, _)| known.is_alike(*measure)) {
                kinds.push((*measure, cell.better));
            }
        }
        let unsettled = unsettled::cells(study, samples, &self.rows);
        for &(kind, better) in &kinds {
            let mut by_cell: BTreeMap<usize, &[f64]> = BTreeMap::new();
            for (at, measure, cell) in &self.cells {
                // With a time that is unknown nothing is compared.
                if measure.is_alike(kind) && !cell.tells_too_little() {
                    by_cell.insert(*at, &cell.samples);
                }
            }
            let values = |at| by_cell.get(&at).copied();
            let rows: Vec<Values<'_>> =
                self.rows.iter().map(|row| Values::of(row, better, values)).collect();
            let floors = floors_of(&rows, study.measured);
            let doubt = |row: &Values<'_>| {
                let written = |at: &usize| (&samples.cells[*at], wrote(&samples.samples[*at]));
                trust::doubt(study, row.cells().iter().map(written))
            };
            let mut shown: BTreeMap<usize, Shown> = rows
                .iter()
                .zip(&floors)
                .flat_map(|(row, floor)| row.shown(*floor, doubt(row), study.measured))
                .collect();
            // A layout that has no value may be better than all.
            let incomplete = rows.iter().zip(&self.rows);
            let incomplete = incomplete.filter(|(row, all)| row.cells().len() < all.layouts.len());
            for at in incomplete.flat_map(|(row, _)| row.cells()) {
                if let Some(one) = shown.get_mut(at) {
                    one.standing.as_good_as_best = false;
                }
            }
            if !kind.is_rebuild() {
                shown.retain(|at, _| !unsettled.contains(at));
            }
            let mut doubts = Vec::new();
            for row in rows.iter().filter(|row| row.cells().len() > 1) {
                let compared = row.cells().iter().filter(|at| shown.contains_key(at));
                doubts.extend(compared.map(|at| ((*at, row_metric(kind.name())), doubt(row))));
            }
            self.doubts.extend(doubts);
            self.tell(study, kind, &shown);
        }
        self.join_twins();
        for (kind, _) in kinds {
            let none = BTreeSet::new();
            self.against_mean(study, kind, if kind.is_rebuild() { &none } else { &unsettled });
        }
    }

    /// What was measured twice a round shows the mean of both, which is what the others are compared with.
    fn join_twins(&mut self) {
        for (first, again) in self.rows.iter().filter_map(Cells::twins) {
            let of = |wanted: usize| self.cells.iter().filter(move |(at, _, _)| *at == wanted);
            let mut joined: Vec<(Measure, Vec<f64>)> = Vec::new();
            for (_, measure, cell) in of(first) {
                let twin = of(again).find(|(_, other, _)| other.is_alike(*measure));
                let samples = twin.map(|(_, _, twin)| [&*cell.samples, &*twin.samples]);
                joined.extend(samples.map(|samples| (*measure, baseline_per_round(&samples))));
            }
            for (measure, samples) in joined {
                let cells = self.cells.iter_mut();
                for (_, _, cell) in cells.filter(|(at, own, _)| (*at, *own) == (first, measure)) {
                    put_samples(cell, samples.clone());
                }
            }
        }
    }

    /// Writes down what is shown of the cells of a metric.
    fn tell(&mut self, study: &Study, kind: Measure, shown: &BTreeMap<usize, Shown>) {
        for (at, measure, cell) in &mut self.cells {
            let Some(shown) = shown.get(at).filter(|_| measure.is_alike(kind)) else { continue };
            cell.may_be_best = shown.standing.may_be_best;
            cell.as_good_as_best = shown.standing.as_good_as_best;
            cell.floor_percent = Some(shown.floor * 100.0);
            let (low, high) = self.floors.unwrap_or((shown.floor, shown.floor));
            self.floors = Some((low.min(shown.floor), high.max(shown.floor)));
            if let Some(comparison) = shown.comparison {
                cell.percent_vs_baseline = Some(comparison.percent);
                cell.percent_interval = comparison.interval;
                cell.verdict = Some(comparison.verdict);
                // Where noise is that large they would but show that it is.
                let is_loud = study.measured && shown.floor * 100.0 > LOUD;
                cell.more_rounds = comparison.more_rounds.filter(|_| !is_loud);
                cell.dependence = comparison.dependence;
            } else if study.baseline == [cell.layout.clone()] {
                cell.percent_vs_baseline = Some(0.0);
            }
        }
    }

    /// The layouts of a baseline of several stand beside the mean of their medians, as these are shown; not in rows of
    /// cells that are compared with none.
    fn against_mean(&mut self, study: &Study, kind: Measure, unsettled: &BTreeSet<usize>) {
        if study.baseline.len() < 2 {
            return;
        }
        let is_compared = |row: &&Cells| row.layouts.iter().all(|at| !unsettled.contains(at));
        for row in self.rows.iter().filter(is_compared) {
            let own = |cell: &&mut (usize, Measure, Cell)| {
                row.layouts.contains(&cell.0)
                    && cell.1.is_alike(kind)
                    && !cell.2.tells_too_little()
                    && study.baseline.contains(&cell.2.layout)
            };
            let medians: Vec<f64> =
                self.cells.iter_mut().filter(own).map(|one| one.2.median).collect();
            if medians.len() == study.baseline.len() {
                for (_, _, cell) in self.cells.iter_mut().filter(own) {
                    cell.percent_vs_baseline = percent_vs_baseline(cell.median, &medians);
                }
            }
        }
    }

    /// Says of each how far it can be trusted.
    fn tell_trust(&mut self, study: &Study, samples: &Samples) {
        for (at, measure, cell) in self.cells.iter_mut().filter(|_| study.modelled) {
            let first = matches!(measure, Measure::Value(_, 0));
            let (key, wrote) = (&samples.cells[*at], wrote(&samples.samples[*at]));
            let doubt = self.doubts.get(&(*at, row_metric(measure.name()))).copied();
            cell.trust = Some(trust::of(study, key, (wrote, first), cell, doubt));
        }
    }

    /// The cells that reports show, and the floor in words.
    fn into_cells(self, samples: &Samples) -> (Vec<Cell>, String) {
        let percent = |floor: f64| format!("{:.1} %", floor * 100.0);
        let floor = match self.floors {
            None => "none".to_string(),
            Some((low, high)) if percent(low) == percent(high) => percent(low),
            Some((low, high)) => format!("{} to {}", percent(low), percent(high)),
        };
        let shown = self.cells.into_iter().filter(|(at, _, _)| !samples.cells[*at].again);
        (shown.map(|(_, _, cell)| cell).collect(), floor)
    }
}

/// One of the things that a run of a cell measures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Measure {
    /// One of the workload's metrics, and which.
    Value(Metric, usize),
    /// Latency of requests.
    P99,
    /// The time of a rebuild, measured to its end.
    Rebuild,
    /// The time of a rebuild, estimated from how far it came.
    RebuildEstimate,
}

impl Measure {
    fn name(self) -> &'static str {
        match self {
            Self::Value(metric, _) => metric.name,
            Self::P99 => "p99_ms",
            Self::Rebuild => REBUILD,
            Self::RebuildEstimate => REBUILD_ESTIMATE,
        }
    }

    /// Whether both are compared with each other: a rebuild that ended and one that is estimated are.
    fn is_alike(self, other: Self) -> bool {
        row_metric(self.name()) == row_metric(other.name())
    }

    fn is_value(self) -> bool {
        matches!(self, Self::Value(..))
    }

    fn is_rebuild(self) -> bool {
        row_metric(self.name()) == REBUILD
    }

    fn unit(self) -> &'static str {
        match self {
            Self::Value(metric, _) => metric.unit,
            Self::P99 => "ms",
            Self::Rebuild | Self::RebuildEstimate => "s",
        }
    }

    fn better(self) -> Better {
        match self {
            Self::Value(metric, _) => better_of(&metric),
            _ => Better::Lower,
        }
    }

    /// What a round tells of it.
    fn value(self, sample: &Sample) -> Option<f64> {
        match self {
            Self::Value(_, index) => sample.values.get(index).copied().flatten(),
            Self::P99 => Some(sample.latency?.p99.as_secs() * 1e3),
            Self::Rebuild | Self::RebuildEstimate => Some(sample.rebuild?.seconds()?.0),
        }
    }

    /// A value a round; `None` unless every round has one.
    fn values(self, samples: &[Sample]) -> Option<Vec<f64>> {
        samples.iter().map(|sample| self.value(sample)).collect()
    }

    /// The name under which a study shows it, if it asks for it under one.
    fn shown_name<'a>(self, study: &'a Study, key: &CellKey) -> Option<&'a str> {
        let shown = &key.workload(study).filter(|_| self.is_value())?.shown;
        Some(&shown.iter().find(|(metric, _)| metric == self.name())?.1)
    }

    /// Whether it is one of the further figures, which reports leave out.
    fn is_detail(self, study: &Study, key: &CellKey) -> bool {
        self.shown_name(study, key).is_none() && matches!(self, Self::Value(_, 1..))
    }
}

/// What a cell shows: latencies only where states are compared, whose point they are.
fn measures(study: &Study, own: &[Sample], key: &CellKey) -> Vec<Measure> {
    let mut measures = Vec::new();
    if let Some(workload) = key.workload(study) {
        let metrics = workload.workload.metrics().into_iter().enumerate();
        let shown = &workload.shown;
        let is_shown = |name: &str| shown.is_empty() || shown.iter().any(|(one, _)| one == name);
        let metrics = metrics.filter(|(_, metric)| is_shown(metric.name));
        measures.extend(metrics.map(|(index, metric)| Measure::Value(metric, index)));
        if study.states.iter().any(|state| *state != State::Healthy) {
            measures.push(Measure::P99);
        }
    }
    let rebuilds: Vec<Rebuild> = own.iter().filter_map(|sample| sample.rebuild).collect();
    if !rebuilds.is_empty() {
        let all_ended = rebuilds.iter().all(|rebuild| rebuild.done >= 1.0);
        measures.push(if all_ended { Measure::Rebuild } else { Measure::RebuildEstimate });
    }
    measures
}

/// A rebuild that took more than this share of a run was there all the time.
const NEARLY_ALL: f64 = 0.995;

/// What must be known of a cell with a rebuild; `None` when there is nothing.
fn note(key: &CellKey, own: &[Sample], measure: Measure) -> Option<String> {
    let share = |of: &dyn Fn(&Sample) -> Option<f64>| {
        let all: Option<Vec<f64>> = own.iter().map(of).collect();
        median(&all?)
    };
    let done = share(&|sample| Some(sample.rebuild?.done))?;
    if measure == Measure::RebuildEstimate {
        let percent = done * 100.0;
        let digits = if percent < 0.1 { 4 } else { 2 };
        return Some(format!("estimated from {percent:.digits$} % of the rebuild"));
    }
    let shorter = share(&|sample| {
        let rebuild = sample.rebuild?;
        Some(rebuild.elapsed.as_secs() / sample.last_done.as_secs().max(1e-9))
    })?;
    let is_workload = key.processes > 0 && measure != Measure::Rebuild;
    // What rounds to all of the run went on beside a rebuild for as much as anybody could tell.
    (is_workload && done >= 1.0 && shorter < NEARLY_ALL)
        .then(|| format!("the rebuild ended after {:.0} % of the run", shorter * 100.0))
}

/// Which layouts have no cells in some states, and what notes say.
/// A floor above this, in percent, leaves little to be told: most studies are made to find differences of that size.
const LOUD: f64 = 10.0;

/// What the same layout under two names differs by, where that is so much that "equal" says nothing.
fn loud(study: &Study, cells: &[Cell]) -> Option<String> {
    let of = |cell: &Cell| cell.floor_percent.filter(|floor| study.measured && *floor > LOUD);
    let loud: Vec<&Cell> = cells.iter().filter(|cell| of(cell).is_some()).collect();
    let first = loud
        .iter()
        .max_by(|one, other| of(one).partial_cmp(&of(other)).unwrap_or(Ordering::Equal))?;
    let (floor, count) = (of(first)?, loud.len());
    let processes = if first.processes == 1 { "process" } else { "processes" };
    Some(format!(
        "one layout, measured under two names, differs from itself by up to {floor:.0} % ({}, {} {processes}): \
         differences below that are not told from noise, and \"equal\" means no more than that in {count} of {} cells; \
         let nothing else use the machine, or take a larger --size",
        first.workload,
        first.processes,
        cells.len()
    ))
}

fn state_warnings(study: &Study, cells: &[Cell]) -> Vec<String> {
    let mut warnings = Vec::new();
    let bare = study.without_redundancy();
    if !bare.is_empty() {
        warnings.push(format!(
            "without redundancy, so neither degraded nor rebuilding: {}",
            bare.join(", ")
        ));
    }
    let with_spares = study.never_degraded();
    if !with_spares.is_empty() {
        let names = with_spares.join(", ");
        warnings.push(format!("with hot spares, so rebuilding and never left degraded: {names}"));
    }
    let estimates = cells.iter().filter(|cell| cell.metric == Measure::RebuildEstimate.name());
    let count = estimates.count();
    if count > 0 {
        warnings.push(format!(
            "{count} rebuild times are estimates (rebuild_estimate_s): time over the share that was \
             rebuilt; places of a drive differ in speed, and a member_size whose rebuild ends within \
             the workload gives measured times"
        ));
    }
    let ended =
        cells.iter().filter(|cell| went_on_without(cell) && cell.metric != Measure::P99.name());
    let ended: Vec<String> = ended
        .map(|cell| format!("{}: {}", cell.title(), cell.note.as_deref().unwrap_or_default()))
        .collect();
    if !ended.is_empty() {
        warnings.push(format!("rebuilding cells that went on without one: {}", ended.join("; ")));
    }
    warnings.extend(first_seconds(study, cells));
    warnings
}

/// Whether a cell's rebuild ended before what ran beside it, as its note tells.
fn went_on_without(cell: &Cell) -> bool {
    cell.note.as_ref().is_some_and(|note| note.starts_with("the rebuild ended"))
}

/// md's stripe cache grows for minutes while a rebuild goes on beside requests: shorter cells show what comes
/// before.
fn first_seconds(study: &Study, cells: &[Cell]) -> Option<String> {
    let grows = |cell: &&Cell| {
        let layout = study.layouts.iter().position(|layout| layout.name == cell.layout);
        layout.is_some_and(|layout| {
            study.is_md(layout) && study.layouts[layout].layout.level.has_stripes()
        })
    };
    let is_short = |cell: &&Cell| {
        cell.state == State::Rebuilding.name()
            && cell.processes > 0
            && ![Measure::Rebuild, Measure::RebuildEstimate]
                .map(Measure::name)
                .contains(&&*cell.metric)
            && cell.last_done_s < GROWN_AFTER_S
            && !went_on_without(cell)
    };
    let short = cells.iter().filter(is_short).filter(grows).filter(|_| study.modelled);
    let mut longest = 0.0_f64;
    let mut names: Vec<&str> = Vec::new();
    for cell in short {
        longest = longest.max(cell.last_done_s);
        if !names.contains(&cell.layout.as_str()) {
            names.push(&cell.layout);
        }
    }
    (!names.is_empty()).then(|| {
        format!(
            "rebuilding cells of {} show the first {longest:.1} s or less beside a rebuild: over minutes \
             md keeps more stripes, requests wait longer and the rebuild is faster; larger workloads \
             show that",
            names.join(", ")
        )
    })
}

/// A cell with what was measured, not yet compared; `None` without samples.
fn measured(study: &Study, key: &CellKey, own: &[Sample], measure: Measure) -> Option<Cell> {
    let spec = key.workload(study);
    let workload = spec.map_or(IDLE_REBUILD, |workload| &workload.name);
    let metric = measure.shown_name(study, key).unwrap_or(measure.name());
    let samples = measure.values(own)?;
    let first = spec.map_or(0, WorkloadSpec::headline);
    let is_first = matches!(measure, Measure::Value(_, at) if at == first) || spec.is_none();
    let course =
        if is_first { Course::of(own, &samples, measure.unit()) } else { Course::default() };
    let middle = median(&samples)?;
    let interval = median_interval(&samples);
    Some(Cell {
        layout: study.layouts[key.layout].name.clone(),
        workload: workload.to_string(),
        processes: key.processes,
        state: key.state.name().to_string(),
        metric: metric.to_string(),
        better: measure.better(),
        unit: measure.unit().to_string(),
        median: middle,
        ci95: interval.map(|interval| [interval.low, interval.high]),
        coverage: interval.map(|interval| interval.coverage),
        mean: mean(&samples)?,
        spread_percent: spread_percent(&samples),
        outlier_rounds: outliers(&samples),
        samples,
        percent_vs_baseline: None,
        percent_interval: None,
        floor_percent: None,
        verdict: None,
        more_rounds: None,
        dependence: None,
        may_be_best: false,
        as_good_as_best: false,
        unsettled: !measure.is_rebuild() && unsettled::is_unsettled(study, key, own),
        settings: spec.map_or_else(BTreeMap::new, |spec| spec.settings.clone()),
        first_done_s: median_of(own, |sample| Some(sample.first_done.as_secs()))?,
        last_done_s: median_of(own, |sample| Some(sample.last_done.as_secs()))?,
        process_cpu_s: median_of(own, |sample| sample.process_cpu_s),
        system_cpu_s: median_of(own, |sample| sample.system_cpu_s),
        bottleneck: bottleneck(own),
        done_s: course.done_s,
        latency_curve_ms: course.latency_curve_ms,
        busy: course.busy,
        timeline: course.timeline,
        fairness: median_of(own, |sample| sample.fairness),
        latency_ms: latency(own),
        members: members(own),
        published: published(study, key, metric, middle),
        moved: None,
        trust: None,
        detail: measure.is_detail(study, key),
        note: note(key, own, measure),
    })
}

/// Gives a cell other samples, as many of them.
fn put_samples(cell: &mut Cell, samples: Vec<f64>) {
    let interval = median_interval(&samples);
    cell.median = median(&samples).unwrap_or(cell.median);
    cell.mean = mean(&samples).unwrap_or(cell.mean);
    cell.ci95 = interval.map(|interval| [interval.low, interval.high]);
    cell.coverage = interval.map(|interval| interval.coverage);
    cell.spread_percent = spread_percent(&samples);
    cell.outlier_rounds = outliers(&samples);
    cell.samples = samples;
}

/// The published figure of a cell.
fn published(study: &Study, key: &CellKey, metric: &str, median: f64) -> Option<Published> {
    let (layout, workload) = (&study.layouts[key.layout].name, &key.workload(study)?.name);
    let healthy = key.state == State::Healthy;
    let given = study.given.iter().find(|given| {
        healthy
            && (&given.layout, &given.workload) == (layout, workload)
            && (given.processes, given.metric.as_str()) == (key.processes, metric)
    })?;
    let error_percent = (median / given.value - 1.0) * 100.0;
    Some(Published { value: given.value, error_percent, calibrated: given.calibrated })
}

/// Medians over the rounds of what reads and writes took.
fn latency(own: &[Sample]) -> Option<LatencyRow> {
    let of = |get: fn(&Latency) -> Nanos| {
        median_of(own, |sample| Some(get(&sample.latency?).as_secs() * 1e3))
    };
    Some(LatencyRow {
        p50: of(|one| one.p50)?,
        p99: of(|one| one.p99)?,
        p999: of(|one| one.p999)?,
        max: of(|one| one.max)?,
    })
}

/// Whether anything was written.
fn wrote(own: &[Sample]) -> bool {
    own.iter().any(|sample| sample.bytes_written > 0)
}

/// Medians over the rounds of what the members did.
fn members(own: &[Sample]) -> Option<MembersRow> {
    let of = |get: fn(&Sample) -> Option<u64>| median_of(own, |sample| Some(get(sample)? as f64));
    let written = of(|sample| Some(sample.bytes_written))?;
    let bytes_written = of(|sample| Some(sample.members?.bytes_written))?;
    Some(MembersRow {
        reads: of(|sample| Some(sample.members?.reads))?,
        writes: of(|sample| Some(sample.members?.writes))?,
        bytes_read: of(|sample| Some(sample.members?.bytes_read))?,
        bytes_written,
        write_amplification: (written > 0.0).then(|| bytes_written / written),
    })
}

/// The median of what every sample has; `None` when one has it not.
pub(crate) fn median_of(samples: &[Sample], get: impl Fn(&Sample) -> Option<f64>) -> Option<f64> {
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
        chunk: chunk(&layout.layout),
        blocks: blocks(&layout.layout),
    })
    .collect()
}

/// The chunk that requests are cut by first: of nested levels the upper one's.
fn chunk(layout: &Layout) -> Option<u64> {
    let chunks = layout.floors().filter(|floor| floor.level.has_chunks());
    chunks.map(|floor| floor.chunk.bytes()).next()
}

/// Where the first chunks lie; nothing where a map cannot be drawn.
fn blocks(layout: &Layout) -> Vec<String> {
    let map = ChunkMap::new(layout, None).ok();
    let rows = map.iter().flat_map(|map| &map.rows).take(MOST_BLOCK_ROWS);
    let row = |row: &Vec<Chunk>| row.iter().map(Chunk::to_string).collect::<Vec<_>>().join(" ");
    rows.map(row).collect()
}

fn workload_rows(study: &Study) -> Vec<WorkloadRow> {
    // Those of one name differ in settings only, which their cells carry.
    let first = |index: &usize| {
        let name = &study.workloads[*index].name;
        study.workloads[..*index].iter().all(|earlier| earlier.name != *name)
    };
    let rows = (0..study.workloads.len()).filter(first).map(|index| &study.workloads[index]);
    let mut rows: Vec<WorkloadRow> = rows
        .map(|workload| WorkloadRow {
            name: workload.name.clone(),
            description: match &study.filesystem {
                None => workload.workload.description(),
                Some(_) => workload.workload.description_on_files(),
            },
        })
        .collect();
    if study.states.contains(&State::Rebuilding) {
        let part = study.member_size.map_or("all".into(), |size| format!("the first {size}"));
        let description =
            format!("one member rebuilt onto a fresh drive, nothing else going on; {part} of it");
        rows.push(WorkloadRow { name: IDLE_REBUILD.to_string(), description });
    }
    rows
}
