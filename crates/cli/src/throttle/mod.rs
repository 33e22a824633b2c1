//! `raidlab throttle`: what pacing a rebuild costs the work beside it.

pub(crate) mod args;
mod choice;
mod print;

use std::path::Path;
use std::sync::atomic::AtomicBool;

use raidlab_core::Nanos;
use raidlab_core::layout::is_same_name;
use raidlab_core::suggest::did_you_mean;
use raidlab_explore::throttle::{self, Outcome, Policy, Setting};
use raidlab_predict::Modelled;
use raidlab_random::mix;
use raidlab_risk::{Array, Effort, Model, Span, simulate, years};
use raidlab_sim::HostCosts;
use raidlab_study::{CellKey, State, Study};

use crate::failure::Failure;
use crate::interrupt;
use crate::output;
use crate::parallel;
use crate::progress::Bar;
use args::ThrottleOptions;

/// What a setting came to.
struct Point {
    policy: Policy,
    setting: Setting,
    /// By seed.
    runs: Vec<Outcome>,
    /// Losing the array in five years, were each rebuild as long as that.
    risk: f64,
}

/// All that was found of a cell.
struct Curves<'a> {
    study: &'a Study,
    key: CellKey,
    /// Without a rebuild, by seed.
    alone: Vec<Outcome>,
    points: Vec<Point>,
    /// At the least room of feedback, by seed; empty where that is not asked for.
    floor: Vec<Outcome>,
    /// What 99 of 100 requests may take.
    most: Option<Nanos>,
}

pub(crate) fn run(options: &ThrottleOptions) -> Result<(), Failure> {
    output::check(&[("--json", options.json.as_deref())], &[options.study.as_deref()])?;
    let most = options
        .p99
        .as_deref()
        .map(|text| crate::advise::inputs::time("--p99", text))
        .transpose()?;
    let policies = policies(options)?;
    let mut study = match &options.study {
        Some(path) => raidlab_study::load(path).map_err(Failure::input)?,
        None => raidlab_study::parse(raidlab_study::default_study(), "the default study")
            .map_err(Failure::failed)?,
    };
    if let Some(seed) = options.seed {
        study.seed = seed;
    }
    if study.filesystem.take().is_some() {
        output::note(
            "without the study's filesystem: the array itself is asked, past a page cache",
        );
    }
    let key = cell(options, &study)?;
    let stop = interrupt::flag()?;
    let modelled = Modelled::new(&study, HostCosts::default()).map_err(Failure::input)?;
    let modelled = modelled.stopping_on(stop);
    let bar = Bar::share(options.quiet);
    let runner = Runner { options, stop, bar: &bar };
    let seed = |at: usize| mix(&[study.seed, at as u64 % u64::from(options.seeds)]);
    let count = options.seeds as usize;
    let alone = runner.all(count, |at| throttle::without(&modelled, &key, seed(at)))?;
    let tail = median(alone.iter().map(|one| one.tail));
    let all: Vec<(Policy, Setting)> = policies
        .into_iter()
        .flat_map(|policy| {
            let settings = policy.settings(Nanos((tail * 1e9) as u64));
            settings.into_iter().map(move |setting| (policy, setting))
        })
        .collect();
    let runs = runner
        .all(all.len() * count, |at| throttle::run(&modelled, &key, all[at / count].1, seed(at)))?;
    let floors = if all.iter().any(|(policy, _)| *policy == Policy::Feedback) { count } else { 0 };
    let floor =
        runner.all(floors, |at| throttle::run(&modelled, &key, Setting::Floor, seed(at)))?;
    bar.clear();
    let mut points = Vec::new();
    for ((policy, setting), runs) in all.into_iter().zip(runs.chunks(count)) {
        let risk = risk(&modelled, &key, median(runs.iter().map(|one| one.hours)))?;
        points.push(Point { policy, setting, runs: runs.to_vec(), risk });
    }
    let curves = Curves { study: &study, key, alone, points, floor, most };
    let Some(path) = &options.json else { return output::print(&print::text(&curves)) };
    let written = output::write(path, &print::json(&curves));
    let is_shown = !(options.quiet || path == Path::new("-"));
    output::told(written, is_shown, || print::text(&curves))
}

fn policies(options: &ThrottleOptions) -> Result<Vec<Policy>, Failure> {
    let Some(names) = &options.policy else { return Ok(Policy::ALL.to_vec()) };
    let named = |name: &String| {
        let found = Policy::ALL.into_iter().find(|policy| policy.name() == name.trim());
        found.ok_or_else(|| {
            let known = Policy::ALL.map(Policy::name);
            let (hint, known) = (did_you_mean(name, &known), known.join(", "));
            Failure::input(format!(
                "--policy {name}: there is no such policy{hint}; known: {known}"
            ))
        })
    };
    names.iter().map(named).collect()
}

/// The cell that is run.
fn cell(options: &ThrottleOptions, study: &Study) -> Result<CellKey, Failure> {
    let named = |flag: &str, name: &str, known: Vec<&str>| {
        known.iter().position(|one| is_same_name(one, name)).ok_or_else(|| {
            let (hint, known) = (did_you_mean(name, &known), known.join(", "));
            Failure::input(format!(
                "{flag} {name}: the study has no such one{hint}; it has {known}"
            ))
        })
    };
    let layout = match &options.layout {
        Some(name) => {
            named("--layout", name, study.layouts.iter().map(|one| one.name.as_str()).collect())?
        }
        None => study.layouts.iter().position(|one| one.is_redundant()).ok_or_else(|| {
            Failure::input(
                "no layout of the study survives the loss of a member: nothing is rebuilt",
            )
        })?,
    };
    if !study.layouts[layout].is_redundant() {
        let name = &study.layouts[layout].name;
        let reason = "it does not survive the loss of a member: nothing is rebuilt";
        return Err(Failure::input(format!("--layout {name}: {reason}")));
    }
    let workload = match &options.workload {
        Some(name) => named(
            "--workload",
            name,
            study.workloads.iter().map(|one| one.name.as_str()).collect(),
        )?,
        None => study.workloads.len() - 1,
    };
    let most = study.processes_of(&study.workloads[workload]).iter().copied().max();
    let processes = options.processes.or(most).unwrap_or(1);
    Ok(CellKey { layout, workload, processes, state: State::Rebuilding, again: false })
}

/// Runs on threads.
struct Runner<'a> {
    options: &'a ThrottleOptions,
    stop: &'static AtomicBool,
    bar: &'a Bar,
}

impl Runner<'_> {
    fn all<E: std::fmt::Display + Send>(
        &self,
        count: usize,
        one: impl Fn(usize) -> Result<Outcome, E> + Sync,
    ) -> Result<Vec<Outcome>, Failure> {
        let threads = parallel::threads(self.options.threads);
        let told = |done: usize, _| self.bar.show(done, count, "rebuilding".into());
        let one = |at| one(at).map_err(Failure::input);
        Ok(parallel::all(count, threads, self.stop, told, one)?)
    }
}

/// Losing the array in five years, were each rebuild so long; no number where that is none.
fn risk(modelled: &Modelled<'_>, key: &CellKey, hours: f64) -> Result<f64, Failure> {
    if hours.is_nan() {
        return Ok(f64::NAN);
    }
    let named = &modelled.study().layouts[key.layout];
    let drive = &modelled.drives()[named.drives];
    let member = modelled.study().member_size_of(key.layout).unwrap_or(drive.capacity);
    let rebuild = Span::Fixed(hours.min(years(5.0)));
    let class = raidlab_advise::class(drive);
    let model = Model { rebuild, spares: named.spares, ..Model::usual(class) };
    let mut array = Array::new(&named.layout, member).map_err(Failure::input)?;
    let effort = Effort { error: 0.02, paths: 50_000, ..Effort::new(modelled.study().seed) };
    Ok(simulate(&mut array, &model, years(5.0), effort).array.value)
}

/// The median; of none, or where it is one, infinite.
fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::INFINITY)
}
