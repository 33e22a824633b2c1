//! How long rebuilds take: as told, by the drive's own rates, or simulated under a load.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};

use raidlab_core::Layout;
use raidlab_models::DriveSpec;
use raidlab_predict::Modelled;
use raidlab_random::mix;
use raidlab_results::find::{LEAST_REBUILT_PERCENT, LEAST_REBUILT_SECONDS};
use raidlab_risk::Span;
use raidlab_sim::HostCosts;
use raidlab_study::{CellKey, DriveSource, NamedLayout, State, Study, did_you_mean};
use raidlab_workload::{Recipe, WorkloadErrorKind, WorkloadSpec};

use super::args::RiskOptions;
use super::values::span;
use crate::failure::Failure;
use crate::interrupt;
use crate::parallel;
use crate::progress::Bar;

/// Rebuilds without anything known of the load: from one full pass to so many.
const SLOWEST: f64 = 3.0;
/// No load.
const IDLE: &str = "idle";

/// A full pass over a drive in hours, as fast as a hard disk goes. What has no rates of its own is held by md's most,
/// as SSDs are.
pub(crate) fn full_pass(drive: &DriveSpec) -> f64 {
    match drive.amount("outer_rate").and(drive.amount("inner_rate")) {
        Some(_) => raidlab_predict::pass(drive, drive.capacity.bytes(), f64::INFINITY) / 3600.0,
        None => raidlab_advise::idle_rebuild(drive, drive.capacity),
    }
}

/// Where no flag says anything: from one pass of so many hours to three.
pub(crate) fn assumed(hours: f64) -> Span {
    Span::Uniform(hours, SLOWEST * hours)
}

/// The same in words.
pub(crate) fn assumed_in_words(assumed: &Span) -> String {
    format!("in {}: one full pass to three", span(assumed))
}

/// What simulated rebuilds of a layout took.
#[derive(Clone, Debug)]
pub(crate) struct Simulated {
    pub(crate) span: Span,
    /// Hours of each run, before what extrapolation leaves open.
    pub(crate) runs: Vec<f64>,
    /// How many were broken off and are extrapolated.
    pub(crate) extrapolated: usize,
    /// How many more runs told too little: for each stand both ends of what is assumed where no load is known.
    untold: usize,
}

impl Simulated {
    /// Hours of each run, and whether they are extrapolated: with the slower zones further in, as the model has them.
    pub(crate) fn of(told: &[(f64, bool)]) -> Self {
        Self {
            span: Span::Samples(told.iter().map(|one| one.0).collect()),
            runs: told.iter().map(|one| one.0).collect(),
            extrapolated: told.iter().filter(|one| one.1).count(),
            untold: 0,
        }
    }

    /// The same with runs that told too little.
    fn with_untold(told: &[Measured], drive: &DriveSpec) -> Self {
        let known: Vec<(f64, bool)> = told.iter().flatten().copied().collect();
        let untold = told.len() - known.len();
        let mut simulated = Self { untold, ..Self::of(&known) };
        if let Span::Samples(samples) = &mut simulated.span {
            let pass = full_pass(drive);
            samples.extend([pass, SLOWEST * pass].repeat(untold));
        }
        simulated
    }

    /// Whether there is anything to tell.
    pub(crate) fn is_of_runs(&self) -> bool {
        !self.runs.is_empty() || self.untold > 0
    }

    /// In words.
    pub(crate) fn told(&self) -> String {
        let unknown = format!(
            "not known under load: too little of it was simulated (less than {LEAST_REBUILT_PERCENT} % in less than \
             {LEAST_REBUILT_SECONDS} s; give the load more to do, such as size=)"
        );
        if self.runs.is_empty() {
            return format!("{unknown}; assumed in {}: one full pass to three", span(&self.span));
        }
        let runs = Span::Samples(self.runs.clone());
        let mut told = format!("in {}, {} runs", span(&runs), self.runs.len());
        if self.extrapolated > 0 {
            told += &format!(
                ", {} of them extrapolated from the drive's outer edge, with the slower zones further in",
                self.extrapolated
            );
        }
        if self.untold > 0 {
            told += &format!("; in {} more {unknown}, one full pass to three assumed", self.untold);
        }
        told
    }
}

/// Rebuilds of each layout under the loads.
pub(super) fn simulate(
    options: &RiskOptions,
    drive: &DriveSpec,
    bar: &Bar,
) -> Result<Vec<Simulated>, Failure> {
    let study = study(options, options.drive_name())?;
    let stop = interrupt::flag()?;
    let modelled = Modelled::new(&study, HostCosts::default())
        .map_err(|error| Failure::input(format!("--load: {}", error.reason)))?
        .stopping_on(stop);
    let jobs = jobs(options);
    let results = run(&jobs, options, &modelled, stop, bar)?;
    let of_layout = |layout: usize| {
        let of = jobs.iter().zip(&results).filter(|(job, _)| job.layout == layout);
        let told: Vec<Measured> = of.map(|(_, told)| *told).collect();
        Simulated::with_untold(&told, drive)
    };
    Ok((0..options.layouts.len()).map(of_layout).collect())
}

/// A run: which layout, under which load, which seed.
struct Job {
    layout: usize,
    load: usize,
    seed: u64,
}

fn jobs(options: &RiskOptions) -> Vec<Job> {
    let redundant = options.layouts.iter().enumerate();
    let redundant = redundant.filter(|(_, layout)| layout.survives() > 0);
    let job = |layout, load, seed| {
        let seed = mix(&[options.seed, u64::from(seed)]);
        Job { layout, load, seed }
    };
    let loads = 0..options.load.len();
    redundant
        .flat_map(|(layout, _)| loads.clone().map(move |load| (layout, load)))
        .flat_map(|(layout, load)| (0..options.seeds).map(move |seed| job(layout, load, seed)))
        .collect()
}

/// Hours of a rebuild, and whether they are extrapolated; `None` where too little was simulated to tell.
type Measured = Option<(f64, bool)>;

/// What each job told.
fn run(
    jobs: &[Job],
    options: &RiskOptions,
    modelled: &Modelled<'_>,
    stop: &AtomicBool,
    bar: &Bar,
) -> Result<Vec<Measured>, Failure> {
    let told = |done: usize, at: usize| {
        let layout = &options.layouts[jobs[at].layout];
        bar.show(done, jobs.len(), format!("rebuilding {layout}"));
    };
    let one = |at: usize| one(&jobs[at], options, modelled);
    Ok(parallel::all(jobs.len(), parallel::threads(None), stop, told, one)?)
}

/// How often more of a load is run beside a rebuild of which too little was seen.
const MOST_AGAIN: u32 = 20;

fn one(job: &Job, options: &RiskOptions, modelled: &Modelled<'_>) -> Result<Measured, Failure> {
    // A rebuild while nothing else goes on is one past the last workload.
    let busy = busy(options);
    let place = busy.iter().position(|load| *load == job.load);
    let key = CellKey {
        layout: job.layout,
        workload: place.unwrap_or(busy.len()),
        processes: if place.is_some() { options.processes } else { 0 },
        state: State::Rebuilding,
        again: false,
    };
    let failed =
        |what: String| Failure::input(format!("--load {}: {what}", options.load[job.load]));
    let mut world = modelled
        .world_in(job.layout, State::Rebuilding, job.seed)
        .map_err(|error| failed(error.reason))?;
    let mut rebuild = None;
    for again in 0..=MOST_AGAIN {
        let seed = if again == 0 { job.seed } else { mix(&[job.seed, u64::from(again)]) };
        let sample = modelled.run_on(&mut world, &key, seed);
        rebuild = sample.map_err(|error| failed(error.reason))?.rebuild;
        // What so many runs cannot tell is not begun.
        let seen = rebuild.map_or(1.0, |one| raidlab_advise::seen(&one));
        let is_hopeless = seen * f64::from(MOST_AGAIN + 1) < f64::from(again + 1);
        if place.is_none() || seen >= 1.0 || is_hopeless {
            break;
        }
    }
    let told = rebuild.and_then(|rebuild| Some((rebuild, rebuild.seconds()?)));
    let (rebuild, (seconds, is_estimate)) = told.ok_or_else(|| {
        failed("the load was over before the rebuild had done anything; give it more to do, such as size=".into())
    })?;
    let hours = seconds / 3_600.0;
    if place.is_none() {
        return Ok(Some((hours, is_estimate)));
    }
    // No load makes a rebuild faster than it is alone: what was simulated is the fast beginning of the drive.
    let drive = &modelled.drives()[0];
    let idle = raidlab_advise::idle_rebuild(drive, drive.capacity);
    let is_told = raidlab_advise::seen(&rebuild) >= 1.0;
    Ok(is_told.then_some((hours.max(idle), is_estimate)))
}

/// A study with the layouts and loads.
fn study(options: &RiskOptions, drive: &str) -> Result<Study, Failure> {
    let text = raidlab_study::default_study();
    let mut study = raidlab_study::parse(text, "--load").map_err(Failure::failed)?;
    let loads = busy(options).into_iter().map(|at| load(&options.load[at]));
    study.workloads = loads.collect::<Result<_, _>>()?;
    study.processes = vec![options.processes];
    study.layouts = options.layouts.iter().cloned().map(NamedLayout::plain).collect();
    study.drives.truncate(1);
    study.drives[0].source = DriveSource::Model(drive.to_owned());
    study.drives[0].count = options.layouts.iter().map(Layout::drives).max().unwrap_or(1);
    Ok(study)
}

/// Which of the loads are workloads.
fn busy(options: &RiskOptions) -> Vec<usize> {
    (0..options.load.len()).filter(|at| options.load[*at].trim() != IDLE).collect()
}

/// A workload with its parameters.
fn load(text: &str) -> Result<WorkloadSpec, Failure> {
    let mut words = text.split_whitespace();
    let kind = words.next().unwrap_or_default();
    let pairs = words.map(|word| match word.split_once('=') {
        Some((key, value)) => (key.to_owned(), value.to_owned()),
        None => (word.to_owned(), if kind == "fio" { "1" } else { "true" }.to_owned()),
    });
    WorkloadSpec::from_recipe(Recipe::of_kind(kind, pairs.collect())).map_err(|error| {
        let known: Vec<&str> = error.known.iter().map(String::as_str).collect();
        let (what, name) = match error.kind {
            WorkloadErrorKind::UnknownKind => (error.reason.clone(), kind),
            _ => (format!("{kind}: {error}"), error.key.as_str()),
        };
        Failure::input(format!("--load: {what}{}", did_you_mean(name, &known)))
    })
}

/// What the simulation of risk is told to go on, or that it was interrupted.
pub(super) fn goes_on(stop: &AtomicBool) -> ControlFlow<()> {
    if stop.load(Ordering::Relaxed) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
}
