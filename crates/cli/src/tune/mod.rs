//! `raidlab tune`: the search for a setting, on modelled drives.

pub(crate) mod args;
mod print;
mod study;

use std::path::Path;
use std::sync::atomic::AtomicBool;

use raidlab_explore::tune::{self, Found, Knob, Rule, Search};
use raidlab_predict::Modelled;
use raidlab_random::mix;
use raidlab_sim::HostCosts;
use raidlab_study::{Study, StudyError};
use raidlab_workload::{Setting, Workload};

use crate::failure::Failure;
use crate::output;
use crate::parallel;
use crate::progress::Bar;
use args::{Readahead, Tune, TuneCommand};

pub(crate) fn run(options: &Tune) -> Result<(), Failure> {
    match &options.command {
        TuneCommand::Readahead(options) => readahead(options),
    }
}

/// The search of a layout.
struct LayoutSearch {
    /// Its position in the study.
    index: usize,
    default: u64,
    knob: Knob,
    search: Search,
}

/// A layout whose search has ended.
struct Tuned<'a> {
    layout: &'a LayoutSearch,
    found: Found,
}

fn readahead(options: &Readahead) -> Result<(), Failure> {
    if options.on != "virtual" {
        return Err(Failure::input(format!(
            "--on {}: `tune readahead` is not supported on real drives; it runs on modelled ones. For real \
             ones see docs/tune.md",
            options.on
        )));
    }
    let inputs = [options.study.as_deref(), options.drives.as_deref().map(Path::new)];
    output::check(&[("--json", options.json.as_deref())], &inputs)?;
    let (study, chosen) = study::load(options)?;
    let modelled =
        Modelled::new(&study, HostCosts::default()).map_err(|error| wrong(options, error))?;
    let mut layouts: Vec<LayoutSearch> =
        chosen.into_iter().map(|index| layout(&study, index, options)).collect::<Result<_, _>>()?;
    let bar = Bar::new(options.quiet);
    search(&study, &modelled, options, &mut layouts, &bar)?;
    bar.clear();
    let tuned = layouts.iter().map(|layout| {
        let found = layout.search.found();
        found
            .map(|found| Tuned { layout, found })
            .ok_or_else(|| Failure::failed("no end was found"))
    });
    let tuned: Vec<Tuned<'_>> = tuned.collect::<Result<_, _>>()?;
    let written = match &options.json {
        Some(path) => output::write(path, &print::json(&study, options, &tuned)),
        None => Ok(()),
    };
    let printed = options.json.as_deref() == Some(Path::new("-"));
    let is_shown = !(printed || (options.quiet && options.json.is_some()));
    output::told(written, is_shown, || print::table(&study, options, &tuned))
}

/// An error of the study; of files that are too large where the flag says so.
fn wrong(options: &Readahead, error: StudyError) -> Failure {
    match (options.study.is_some(), error.key.as_str()) {
        (_, "workloads.size") => {
            Failure::input(format!("--size {}: {}", options.size, error.reason))
        }
        (false, "drives.model") => Failure::input(format!("--drives: {}", error.reason)),
        _ => Failure::input(error),
    }
}

fn layout(study: &Study, index: usize, options: &Readahead) -> Result<LayoutSearch, Failure> {
    let knob = Knob::of(&tune::host(study, index));
    let rule = Rule {
        gain: options.gain / 100.0,
        misses: 2,
        margin: options.margin / 100.0,
        most: options.most.0,
        grain: knob.grain(),
    };
    let default = tune::default_window(study, index);
    let search = Search::new(default, rule).map_err(|reason| {
        Failure::input(format!(
            "{}: {reason} (--gain, --margin, --most)",
            study.layouts[index].name
        ))
    })?;
    Ok(LayoutSearch { index, default, knob, search })
}

/// A window of a layout with one seed.
struct Task {
    /// Position in the layouts searched.
    of: usize,
    layout: usize,
    window: u64,
    seed: u64,
}

/// Searches all layouts, a window of each at a time.
fn search(
    study: &Study,
    modelled: &Modelled<'_>,
    options: &Readahead,
    layouts: &mut [LayoutSearch],
    bar: &Bar,
) -> Result<(), Failure> {
    let (threads, never) = (parallel::threads(options.threads), AtomicBool::new(false));
    let workload = &*study.workloads[0].workload;
    let mut done = 0;
    loop {
        let mut tasks = Vec::new();
        for (of, layout) in layouts.iter().enumerate() {
            let Some(window) = layout.search.next() else { continue };
            // The same seeds for all windows: what differs is the window.
            tasks.extend((0..options.seeds).map(|seed| {
                let seed = mix(&[study.seed, u64::from(seed)]);
                Task { of, layout: layout.index, window, seed }
            }));
        }
        if tasks.is_empty() {
            return Ok(());
        }
        let told = |finished: usize, at: usize| {
            let what = &study.layouts[tasks[at].layout].name;
            let what = format!("{what}: {} KiB", tasks[at].window >> 10);
            bar.show(done + finished, done + tasks.len(), what);
        };
        let measure = |at: usize| {
            let rate = measure(modelled, workload, options.processes, &tasks[at]);
            let name = &study.layouts[tasks[at].layout].name;
            rate.map_err(|reason| Failure::input(format!("{name}: {reason}")))
        };
        let rates = parallel::all(tasks.len(), threads, &never, told, measure)?;
        done += tasks.len();
        let mut of_layouts: Vec<Vec<f64>> = vec![Vec::new(); layouts.len()];
        for (task, rate) in tasks.iter().zip(rates) {
            of_layouts[task.of].push(rate);
        }
        for (layout, rates) in layouts.iter_mut().zip(of_layouts) {
            if layout.search.next().is_some() {
                layout.search.record(rates).map_err(Failure::failed)?;
            }
        }
    }
}

fn measure(
    modelled: &Modelled<'_>,
    workload: &dyn Workload,
    processes: u32,
    task: &Task,
) -> Result<f64, String> {
    let setting = Setting::new(processes, task.seed);
    tune::rate(modelled, task.layout, workload, task.window, setting)
}
