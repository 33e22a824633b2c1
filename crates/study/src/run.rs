//! How a study is run: rounds of all cells until the intervals are narrow enough.

use std::ops::{ControlFlow, Range};

use raidlab_core::{MemberTotals, Nanos};
use raidlab_results::Better;
use raidlab_results::LATENCY_SHARES;
use raidlab_results::statistics::{CONFIDENCE, FEWEST_SAMPLES, median, median_interval};
use raidlab_workload::{RunRecord, TimeSeries, Workload, WorkloadSpec};
use serde::{Deserialize, Serialize};

use crate::exact;
use crate::matrix::{CellKey, cell_seed, cell_title, cells, order_of};
use crate::rebuild::Rebuild;
use crate::study::Study;
use crate::trust;
use crate::verdicts::{Cells, Values, better_of, family, floors_of};

/// How many cells a warning names.
const MOST_NAMED: usize = 8;

/// What one run of a cell measured. As text every number is kept to its last bit; times are whole
/// nanoseconds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    /// The values of the workload's metrics, in their order; `None` where it took too short a time to
    /// tell. Of a rebuild alone: its time in seconds.
    #[serde(serialize_with = "exact::list")]
    pub values: Vec<Option<f64>>,
    /// The time until the first process was done.
    #[serde(with = "exact::nanos")]
    pub first_done: Nanos,
    /// The time until the last process was done.
    #[serde(with = "exact::nanos")]
    pub last_done: Nanos,
    /// Bytes moved by all processes.
    pub bytes: u64,
    /// Reads and writes of all processes.
    pub ops: u64,
    /// CPU seconds of the benchmark's own process, where something measures it.
    #[serde(serialize_with = "exact::number")]
    pub process_cpu_s: Option<f64>,
    /// CPU seconds of the whole system, where something measures it.
    #[serde(serialize_with = "exact::number")]
    pub system_cpu_s: Option<f64>,
    /// The busiest resource and the share of the time it was busy, 0 to 1.
    #[serde(serialize_with = "exact::named")]
    pub bottleneck: Option<(String, f64)>,
    /// How long reads and writes took; `None` where there were none.
    pub latency: Option<Latency>,
    /// Jain's index of the copies of the workload; `None` for a single one.
    #[serde(serialize_with = "exact::number")]
    pub fairness: Option<f64>,
    /// What the members did meanwhile; `None` where nothing counts that.
    #[serde(with = "exact::totals")]
    pub members: Option<MemberTotals>,
    /// Bytes that the processes wrote.
    pub bytes_written: u64,
    /// What a rebuild did meanwhile.
    pub rebuild: Option<Rebuild>,
    /// What a reader must know of the run, each once.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    /// What figures show besides.
    #[serde(default, skip_serializing_if = "Detail::is_empty")]
    pub detail: Detail,
}

/// What figures show of a run besides its values; what nothing tells is empty.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Detail {
    /// When each copy of the workload was done, rising.
    pub ends: Vec<u64>,
    /// The latencies that the shares of [`LATENCY_SHARES`] of reads and writes stayed within, in nanoseconds.
    pub latencies: Vec<u64>,
    /// How busy each resource was, 0 to 1.
    #[serde(serialize_with = "exact::all_named")]
    pub busy: Vec<(String, f64)>,
    /// Reads and writes over time.
    pub series: Option<TimeSeries>,
    /// What 99 of 100 reads and writes took, in nanoseconds, where a write that is flushed at once takes until that has
    /// ended: of modelled arrays without a filesystem, where there are such.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub flushed_p99: Option<u64>,
}

impl Detail {
    fn of(record: &RunRecord) -> Self {
        let mut all = record.totals();
        let flushed_p99 = all.quantile_with_flushes(0.99).map(|p99| p99.0);
        all.reads.merge(&all.writes);
        let quantile = |share| Some(all.reads.quantile(share)?.0);
        let latencies: Option<Vec<u64>> = LATENCY_SHARES.into_iter().map(quantile).collect();
        let mut ends: Vec<u64> = record.ends().into_iter().map(|end| end.0).collect();
        ends.sort_unstable();
        Self {
            ends,
            latencies: latencies.unwrap_or_default(),
            busy: record.busy.clone(),
            series: record.series.clone().filter(|series| !series.bins().is_empty()),
            flushed_p99,
        }
    }

    fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// How long reads and writes took.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Latency {
    /// What half of them took at most.
    #[serde(with = "exact::nanos")]
    pub p50: Nanos,
    /// What 99 of 100 took at most.
    #[serde(with = "exact::nanos")]
    pub p99: Nanos,
    /// What 999 of 1,000 took at most.
    #[serde(with = "exact::nanos")]
    pub p999: Nanos,
    /// What the slowest took.
    #[serde(with = "exact::nanos")]
    pub max: Nanos,
}

impl Latency {
    /// Of all reads and writes of a run; `None` when there was none.
    pub fn of(record: &RunRecord) -> Option<Self> {
        let mut all = record.totals();
        all.reads.merge(&all.writes);
        let quantile = |share| all.reads.quantile(share);
        Some(Self {
            p50: quantile(0.5)?,
            p99: quantile(0.99)?,
            p999: quantile(0.999)?,
            max: all.reads.max,
        })
    }
}

impl Sample {
    /// What a run of a workload measured; `None` when it took too short a time to tell anything.
    pub fn of(workload: &dyn Workload, record: &RunRecord) -> Option<Self> {
        let values = workload.values(record);
        values.iter().any(Option::is_some).then_some(())?;
        let totals = record.totals();
        let mut warnings: Vec<String> = Vec::new();
        for warning in &record.warnings {
            if !warnings.contains(warning) {
                warnings.push(warning.clone());
            }
        }
        Some(Self {
            values,
            first_done: record.first_done(),
            last_done: record.last_done(),
            bytes: totals.reads.bytes + totals.writes.bytes,
            ops: totals.reads.count + totals.writes.count,
            process_cpu_s: record.process_cpu.map(|cpu| cpu.sum().as_secs()),
            system_cpu_s: record.system_cpu.map(|cpu| cpu.as_secs()),
            bottleneck: record.bottleneck.clone(),
            latency: Latency::of(record),
            fairness: record.fairness(),
            members: record.members,
            bytes_written: totals.writes.bytes,
            rebuild: None,
            warnings,
            detail: Detail::of(record),
        })
    }

    /// A rebuild while nothing else went on, that took so many seconds.
    pub fn of_rebuild(seconds: f64, rebuild: Rebuild) -> Self {
        Self {
            values: vec![Some(seconds)],
            first_done: rebuild.elapsed,
            last_done: rebuild.elapsed,
            bytes: 0,
            ops: 0,
            process_cpu_s: None,
            system_cpu_s: None,
            bottleneck: None,
            latency: None,
            fairness: None,
            members: None,
            bytes_written: 0,
            rebuild: Some(rebuild),
            warnings: Vec::new(),
            detail: Detail::default(),
        }
    }

    /// The first of a cell's values that the study shows; `None` where it took too short a time to tell, as no other
    /// value can stand in for it.
    pub fn headline(&self, study: &Study, key: &CellKey) -> Option<f64> {
        self.value(key.workload(study).map_or(0, WorkloadSpec::headline))
    }

    /// One of the workload's values, by its place.
    fn value(&self, at: usize) -> Option<f64> {
        self.values.get(at).copied().flatten()
    }
}

/// The values that rounds of a cell are added for and warned of: those of the first figure that the study shows of it.
/// `None` where a round was too short to tell, which no further round mends.
pub(crate) fn headlines<'a>(
    study: &Study,
    key: &CellKey,
    samples: impl Iterator<Item = &'a Sample>,
) -> Option<Vec<f64>> {
    samples.map(|sample| sample.headline(study, key)).collect()
}

/// Runs cells: all that differs between real and virtual time.
pub trait Runner {
    /// Why a cell could not be run.
    type Error;

    /// Runs a cell once, in a round (from 0), with a seed that is the same for all layouts.
    ///
    /// # Errors
    /// Whatever keeps it from giving a sample; the study ends there.
    fn run(&mut self, key: &CellKey, round: u32, seed: u64) -> Result<Sample, Self::Error>;

    /// Whether an error says that the user stopped the cell: what was finished before counts.
    fn is_stop(error: &Self::Error) -> bool {
        let _ = error;
        false
    }
}

/// How far a study is.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Progress<'a> {
    /// What just happened.
    pub event: Event<'a>,
    /// To which cell.
    pub key: &'a CellKey,
    /// In which round, from 0.
    pub round: u32,
    /// How many rounds are planned by now; may grow up to the study's most.
    pub rounds: u32,
    /// How many runs of cells are finished.
    pub done: usize,
    /// How many runs of cells are planned by now.
    pub total: usize,
}

/// What just happened to a cell.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Event<'a> {
    /// Its run started.
    Started,
    /// Its run gave this.
    Finished(&'a Sample),
}

/// A run of a cell that is finished.
#[derive(Clone, Debug, PartialEq)]
pub struct CellRun {
    /// Its round, from 0.
    pub round: u32,
    /// Its cell: the index among [`cells`].
    pub cell: usize,
    /// What it measured.
    pub sample: Sample,
}

/// What the rounds of a study gave.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Samples {
    /// The cells, as [`cells`] lists them.
    pub cells: Vec<CellKey>,
    /// For every cell its samples, one a complete round, in the order of the rounds.
    pub samples: Vec<Vec<Sample>>,
    /// How many rounds are complete.
    pub rounds: u32,
    /// Whether the run was stopped before it was done.
    pub aborted: bool,
    /// What a reader must know: which cells missed the precision, whether rounds are missing.
    pub warnings: Vec<String>,
}

impl Samples {
    /// The complete rounds of a study that has not come to its end, of the runs that are finished;
    /// with a warning that says so. Runs that the study does not have are left out.
    pub fn of_complete_rounds(study: &Study, finished: Vec<CellRun>) -> Self {
        let mut collected = Collected::new(study, finished);
        let rounds = collected.earlier.iter().map(|run| run.round + 1).max().unwrap_or(0);
        collected.plan(rounds);
        collected.into_samples(study, true)
    }
}

/// Runs the rounds of a study one cell after the other.
///
/// Every cell runs at least `study.rounds` times; then more rounds follow, up to
/// `study.max_rounds`, until half the width of every cell's 95 % interval is at most
/// `study.precision_percent` of its median, and each comparison with the baseline is resolved or excludes
/// differences of that much. How often intervals cover the truth under this rule: `crates/results/tests/rule.rs`.
/// `progress` is told of every start and end of a run and may stop the study; then only complete rounds count.
///
/// # Errors
/// The first error of the runner that is no stop.
pub fn run_rounds<R: Runner>(
    study: &Study,
    runner: &mut R,
    progress: &mut dyn FnMut(Progress<'_>) -> ControlFlow<()>,
) -> Result<Samples, R::Error> {
    resume_rounds(study, Vec::new(), runner, progress)
}

/// As [`run_rounds`], where some runs are `finished` already, in whatever order: they count as if they had
/// just been made, and the others follow in the order and with the seeds that they would have had.
///
/// # Errors
/// As [`run_rounds`].
pub fn resume_rounds<R: Runner>(
    study: &Study,
    finished: Vec<CellRun>,
    runner: &mut R,
    progress: &mut dyn FnMut(Progress<'_>) -> ControlFlow<()>,
) -> Result<Samples, R::Error> {
    rounds_in_batches(study, finished, |collected, rounds| {
        for task in collected.tasks(study, rounds) {
            if collected.report(&task, Event::Started, progress).is_break() {
                return Ok(ControlFlow::Break(()));
            }
            let key = &collected.cells[task.cell];
            let flow = match runner.run(key, task.round, cell_seed(study, key, task.round)) {
                Ok(sample) => collected.finish(&task, sample, progress),
                Err(error) if R::is_stop(&error) => ControlFlow::Break(()),
                Err(error) => return Err(error),
            };
            if flow.is_break() {
                return Ok(flow);
            }
        }
        Ok(ControlFlow::Continue(()))
    })
}

/// A run of a cell that is to be done.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Task {
    pub(crate) round: u32,
    pub(crate) cell: usize,
}

/// What was collected so far.
pub(crate) struct Collected {
    pub(crate) cells: Vec<CellKey>,
    /// By round and cell.
    rounds: Vec<Vec<Option<Sample>>>,
    done: usize,
    /// Runs made before, of rounds that are not planned yet.
    earlier: Vec<CellRun>,
}

impl Collected {
    fn new(study: &Study, mut earlier: Vec<CellRun>) -> Self {
        let (cells, most) = (cells(study), most_rounds(study));
        earlier.retain(|run| run.cell < cells.len() && run.round < most);
        Self { cells, rounds: Vec::new(), done: 0, earlier }
    }

    /// Plans so many rounds in all; what was run of them before has its place.
    fn plan(&mut self, rounds: u32) {
        self.rounds.resize(rounds as usize, vec![None; self.cells.len()]);
        for run in self.earlier.extract_if(.., |run| run.round < rounds) {
            let place = &mut self.rounds[run.round as usize][run.cell];
            self.done += usize::from(place.is_none());
            *place = Some(run.sample);
        }
    }

    /// The runs of some rounds that are still to be made, in the order in which they are to be started.
    pub(crate) fn tasks(&self, study: &Study, rounds: Range<u32>) -> Vec<Task> {
        let cells = self.cells.len();
        let of_round =
            |round| order_of(study, round, cells).into_iter().map(move |cell| Task { round, cell });
        let is_open = |task: &Task| self.rounds[task.round as usize][task.cell].is_none();
        rounds.flat_map(of_round).filter(is_open).collect()
    }

    /// Puts a sample into its place and tells of it.
    pub(crate) fn finish(
        &mut self,
        task: &Task,
        sample: Sample,
        progress: &mut dyn FnMut(Progress<'_>) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        self.done += 1;
        let flow = self.report(task, Event::Finished(&sample), progress);
        self.rounds[task.round as usize][task.cell] = Some(sample);
        flow
    }

    /// Tells of an event.
    pub(crate) fn report(
        &self,
        task: &Task,
        event: Event<'_>,
        progress: &mut dyn FnMut(Progress<'_>) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        progress(Progress {
            event,
            key: &self.cells[task.cell],
            round: task.round,
            rounds: self.rounds.len() as u32,
            done: self.done,
            total: self.rounds.len() * self.cells.len(),
        })
    }

    /// The values of a cell, up to the first round that was not run, as [`headlines`] has them.
    fn values(&self, study: &Study, cell: usize) -> Option<Vec<f64>> {
        let samples = self.rounds.iter().map_while(|round| round[cell].as_ref());
        headlines(study, &self.cells[cell], samples)
    }

    /// Whether more rounds would tell nothing that is asked for: every interval is as narrow as the study wants it, and
    /// every comparison is resolved or shows that there is no difference worth it.
    fn is_settled(&self, study: &Study) -> bool {
        if !self.imprecise(study).is_empty() {
            return false;
        }
        let all: Vec<_> = (0..self.cells.len()).map(|cell| self.values(study, cell)).collect();
        let values = |at: usize| all[at].as_deref();
        let better = |row: &Cells| {
            let spec = self.cells[row.layouts[0]].workload(study);
            let metric =
                spec.and_then(|spec| spec.workload.metrics().get(spec.headline()).copied());
            // A rebuild alone has none: it is a time.
            metric.map_or(Better::Lower, |metric| better_of(&metric))
        };
        let cells = Cells::rows(study, &self.cells);
        let rows: Vec<Values<'_>> =
            cells.iter().map(|row| Values::of(row, better(row), values)).collect();
        let floors = floors_of(&rows, study.measured);
        let doubt = |row: &Values<'_>| {
            let cells = row.cells().iter().map(|at| {
                let samples = self.rounds.iter().filter_map(|round| round[*at].as_ref());
                (&self.cells[*at], samples.map(|sample| sample.bytes_written).sum::<u64>() > 0)
            });
            trust::doubt(study, cells)
        };
        rows.iter().zip(floors).all(|(row, floor)| row.is_settled(floor, doubt(row), study))
    }

    /// The cells whose interval is wider than the precision, the widest first.
    fn imprecise(&self, study: &Study) -> Vec<(usize, f64)> {
        let widths = (0..self.cells.len())
            .filter_map(|cell| Some((cell, half_width_percent(&self.values(study, cell)?))));
        let most = study.precision_percent;
        let mut wide: Vec<_> = widths.filter(|(_, width)| *width > most).collect();
        wide.sort_by(|one, other| other.1.total_cmp(&one.1).then(one.0.cmp(&other.0)));
        wide
    }

    /// The samples of the complete rounds.
    fn into_samples(mut self, study: &Study, aborted: bool) -> Samples {
        let complete = self.rounds.iter().take_while(|round| round.iter().all(Option::is_some));
        let complete = complete.count();
        self.rounds.truncate(complete);
        let mut warnings = Vec::new();
        if aborted {
            let least = study.rounds;
            warnings.push(format!(
                "stopped early: {complete} complete rounds count, at least {least} were planned"
            ));
        }
        if complete > 0 {
            warnings.extend(self.precision_warning(study, complete));
        }
        let mut samples = vec![Vec::with_capacity(complete); self.cells.len()];
        for round in self.rounds {
            for (cell, sample) in round.into_iter().enumerate() {
                samples[cell].extend(sample);
            }
        }
        Samples { cells: self.cells, samples, rounds: complete as u32, aborted, warnings }
    }

    /// Names the cells that missed the precision.
    fn precision_warning(&self, study: &Study, complete: usize) -> Option<String> {
        if complete < FEWEST_SAMPLES && family(study, &self.cells).0 > 0 {
            // The warning about comparisons says so.
            return None;
        }
        if complete < FEWEST_SAMPLES {
            let rounds = if complete == 1 { "round is" } else { "rounds are" };
            return Some(format!(
                "{complete} {rounds} too few for a 95 % interval of a median; run at least {FEWEST_SAMPLES}"
            ));
        }
        let wide = self.imprecise(study);
        if wide.is_empty() {
            return None;
        }
        let name = |(cell, width): &(usize, f64)| {
            format!("{} (+-{width:.1} %)", cell_title(study, &self.cells[*cell]))
        };
        let mut named: Vec<String> = wide.iter().take(MOST_NAMED).map(name).collect();
        if wide.len() > MOST_NAMED {
            named.push(format!("{} more", wide.len() - MOST_NAMED));
        }
        Some(format!(
            "after {complete} rounds the medians of {} of {} cells are not known to +-{} % with {} % confidence; \
             more rounds would tell: {}",
            wide.len(),
            self.cells.len(),
            study.precision_percent,
            CONFIDENCE * 100.0,
            named.join("; ")
        ))
    }
}

/// The most rounds that a study may have.
fn most_rounds(study: &Study) -> u32 {
    study.max_rounds.max(study.rounds)
}

/// Runs batches of rounds, the fewest first and then one more at a time, until the study is done; without the
/// runs that are `finished` before.
pub(crate) fn rounds_in_batches<E>(
    study: &Study,
    finished: Vec<CellRun>,
    mut batch: impl FnMut(&mut Collected, Range<u32>) -> Result<ControlFlow<()>, E>,
) -> Result<Samples, E> {
    let mut collected = Collected::new(study, finished);
    let most = most_rounds(study);
    let mut rounds = 0..study.rounds;
    loop {
        collected.plan(rounds.end);
        let is_stopped = batch(&mut collected, rounds.clone())?.is_break();
        let is_complete = collected.tasks(study, rounds.clone()).is_empty();
        if is_complete && (rounds.end >= most || collected.is_settled(study)) {
            // Who stops it after its last cell stops nothing.
            return Ok(collected.into_samples(study, false));
        }
        if is_stopped {
            return Ok(collected.into_samples(study, true));
        }
        rounds = rounds.end..rounds.end + 1;
    }
}

/// Half the width of the interval in percent of the median; infinite where there is none.
fn half_width_percent(values: &[f64]) -> f64 {
    match (median_interval(values), median(values)) {
        (Some(interval), Some(median)) if median != 0.0 => {
            (interval.high - interval.low) / 2.0 / median * 100.0
        }
        _ => f64::INFINITY,
    }
}
