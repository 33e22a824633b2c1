//! `raidlab compare`: a study, run and reported.

mod modelled;
mod real;

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};

use raidlab_core::Sectors;
use raidlab_results::{Clock, Results};
use raidlab_study::{Event, Progress, Samples, Study, StudyError, cell_title, summarise};

use crate::args::Compare;
use crate::failure::Failure;
use crate::progress::Bar;
use crate::{interrupt, output};

pub(crate) fn run(options: &Compare) -> Result<(), Failure> {
    let mut study = load(options)?;
    let files = [("--json", options.json.as_deref()), ("--html", options.html.as_deref())];
    output::check(&[&files[..], &options.exports.paths()].concat())?;
    let cancel = interrupt::flag()?;
    let results = if options.on == "virtual" {
        real::devices::refuse_flags(options)?;
        if options.rounds.is_none() {
            study.raise_rounds();
        }
        Some(modelled::run(&study, options, cancel)?)
    } else {
        real::run(&mut study, options, cancel)?
    };
    let Some(results) = results else { return Ok(()) };
    output::reports(options, &results)?;
    if cancel.load(Ordering::Relaxed) { Err(Failure::Interrupted) } else { Ok(()) }
}

/// The study with what the command line changes.
fn load(options: &Compare) -> Result<Study, Failure> {
    let loaded = match &options.study {
        Some(path) => raidlab_study::load(path),
        None => raidlab_study::parse(raidlab_study::default_study(), "studies/default.toml"),
    };
    let mut study = loaded.map_err(Failure::input)?;
    if let Some(seed) = options.seed {
        study.seed = seed;
    }
    if let Some(rounds) = options.rounds {
        study.rounds = rounds;
        study.max_rounds = rounds;
    }
    if let Some(name) = &options.filesystem {
        study
            .set_filesystem(name)
            .map_err(|what| Failure::input(format!("--filesystem: {what}")))?;
    }
    if let Some(states) = &options.states {
        let mut states = states.clone();
        states.sort_unstable();
        states.dedup();
        study.set_states(states).map_err(|what| Failure::input(format!("--states: {what}")))?;
    }
    if let Some(size) = options.size {
        if size.0 == 0 {
            return Err(Failure::input("--size: must be more than nothing, such as 64MiB"));
        }
        for workload in &mut study.workloads {
            let resized = workload.workload.resized(size.0);
            workload.workload = resized.map_err(|error| {
                Failure::input(format!("--size {size}: {}: {}", workload.name, error.reason))
            })?;
        }
    }
    Ok(study)
}

/// An error of the study, or of `--size` where that took the place of the study's sizes.
fn bad_study(options: &Compare, error: StudyError) -> Failure {
    match options.size {
        Some(size) if error.key == "workloads.size" => {
            Failure::input(format!("--size {size}: {}", error.reason))
        }
        _ => Failure::input(error),
    }
}

/// Shows progress on `bar`; stops the study when `cancel` is set.
pub(crate) fn follow<'a>(
    study: &'a Study,
    bar: &'a Bar,
    cancel: &'a AtomicBool,
) -> impl FnMut(Progress<'_>) -> ControlFlow<()> + 'a {
    move |progress| {
        if progress.event == Event::Started {
            let title = cell_title(study, progress.key);
            let what = format!("round {}: {title}", progress.round + 1);
            bar.show(progress.done, progress.total, what);
        }
        if cancel.load(Ordering::Relaxed) {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    }
}

/// What a run tells besides its samples.
pub(crate) struct Setting {
    pub(crate) clock: Clock,
    pub(crate) host: BTreeMap<String, String>,
    pub(crate) settings: BTreeMap<String, String>,
    pub(crate) warnings: Vec<String>,
    pub(crate) capacities: Vec<Sectors>,
}

/// The results document of a run.
pub(crate) fn results(
    study: &Study,
    samples: &Samples,
    setting: Setting,
) -> Result<Results, Failure> {
    if samples.rounds == 0 {
        return Err(Failure::Interrupted);
    }
    let Setting { clock, host, settings, warnings, capacities } = setting;
    Ok(summarise(study, samples, clock, host, settings, warnings, &capacities))
}
