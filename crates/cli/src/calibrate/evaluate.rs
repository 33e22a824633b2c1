//! The given cells of a study, modelled with other values of its free parameters, on several threads.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use raidlab_explore::calibrate::GivenRun;
use raidlab_predict::Modelled;
use raidlab_results::statistics::median;
use raidlab_sim::HostCosts;
use raidlab_study::{Runner, Study, StudyError, StudyErrorKind, cell_seed, cell_title, parse_with};

use crate::check::threads::{self, Part};
use crate::failure::Failure;
use crate::progress::Bar;

/// A study file, and how its cells are run.
pub(super) struct Cells<'a> {
    pub(super) text: &'a str,
    pub(super) path: &'a str,
    pub(super) seeds: u32,
    pub(super) threads: usize,
    pub(super) cancel: &'a AtomicBool,
    pub(super) bar: &'a Bar,
    /// How often they were run.
    pub(super) done: usize,
}

impl Cells<'_> {
    /// The figures that some runs give, by position among the given ones, for each of some lists of
    /// values of the free parameters; `figures` says which are wanted, in order.
    pub(super) fn evaluate(
        &mut self,
        runs: &[GivenRun],
        figures: &[usize],
        points: &[Vec<f64>],
    ) -> Result<Vec<Vec<f64>>, Failure> {
        let mut parts = Vec::new();
        for values in points {
            let mut study = parse_with(self.text, self.path, values).map_err(Failure::input)?;
            study.origin.set_file(Path::new(self.path));
            let study = Arc::new(study);
            for run in runs {
                for round in 0..self.seeds {
                    parts.push(Run { study: Arc::clone(&study), run: run.clone(), round });
                }
            }
        }
        let (bar, done) = (self.bar, self.done);
        let show = |watch: &threads::Watch| {
            let what = format!("after {done} evaluations: {}", watch.what);
            bar.show(watch.done as usize, watch.total as usize, what);
        };
        let (count, mut reports) = (parts.len(), Vec::with_capacity(parts.len()));
        threads::run(parts, self.threads, self.cancel, show, |_, report| reports.push(report))?;
        self.done += points.len();
        if reports.len() < count {
            return Err(Failure::Interrupted);
        }
        let values: Result<Vec<Vec<f64>>, _> = reports.into_iter().collect();
        let values = values.map_err(Failure::input)?;
        let each = self.seeds as usize;
        let per_point = values.chunks(each * runs.len().max(1));
        Ok(per_point.map(|point| of_point(runs, figures, each, point)).collect())
    }
}

/// Medians over the seeds, in the order of the wanted figures.
fn of_point(runs: &[GivenRun], figures: &[usize], seeds: usize, values: &[Vec<f64>]) -> Vec<f64> {
    let of_figure = |wanted: &usize| {
        let found = runs.iter().zip(values.chunks(seeds)).find_map(|(run, values)| {
            let at = run.figures.iter().position(|(figure, _)| figure == wanted)?;
            median(&values.iter().map(|one| one[at]).collect::<Vec<f64>>())
        });
        found.unwrap_or(f64::NAN)
    };
    figures.iter().map(of_figure).collect()
}

/// One run of a cell.
#[derive(Clone)]
struct Run {
    study: Arc<Study>,
    run: GivenRun,
    round: u32,
}

impl Part for Run {
    type Report = Result<Vec<f64>, StudyError>;

    fn cost(&self) -> u64 {
        1
    }

    fn name(&self) -> String {
        cell_title(&self.study, &self.run.key)
    }

    fn run(&self, _progress: &mut dyn FnMut(u64)) -> Self::Report {
        let (study, key) = (&*self.study, &self.run.key);
        let mut modelled = Modelled::unchecked(study, HostCosts::default())?;
        let sample =
            Runner::run(&mut modelled, key, self.round, cell_seed(study, key, self.round))?;
        let value = |(figure, metric): &(usize, usize)| {
            sample.values.get(*metric).copied().flatten().ok_or_else(|| {
                let place = ("given", *figure, "metric");
                let reason = format!("{} took too short a time to tell", cell_title(study, key));
                study.origin.error(StudyErrorKind::WrongValue, place, reason)
            })
        };
        self.run.figures.iter().map(value).collect()
    }
}
