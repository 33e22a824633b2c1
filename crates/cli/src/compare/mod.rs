//! `raidlab compare`: a study, run and reported.

mod both;
pub(crate) mod effort;
pub(crate) mod kernel;
mod modelled;
mod real;
mod record;
pub(crate) mod resume;
mod risk;

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use raidlab_core::Sectors;
use raidlab_results::{Clock, Results};
use raidlab_store::Source;
use raidlab_study::{Event, Progress, Samples, Study, StudyError, builtin, cell_title, summarise};

use crate::args::Compare;
use crate::failure::Failure;
use crate::progress::Bar;
use crate::{interrupt, output};
use record::Recorder;
pub(crate) use record::quoted;

/// `--on` for modelled drives.
const VIRTUAL: &str = "virtual";

pub(crate) fn run(options: &Compare) -> Result<(), Failure> {
    if let Some(name) = &options.resume {
        let (options, recorder) = resume::prepare(options, name.as_deref())?;
        return run_recorded(&options, recorder);
    }
    match both::real_half(options)? {
        None => run_recorded(options, Recorder::new(options)),
        Some(real) => run_recorded(&real, Recorder::new(&real)),
    }
}

/// Runs the study of the options, of which `recorder` may have a part already, and reports it.
fn run_recorded(options: &Compare, mut recorder: Recorder) -> Result<(), Failure> {
    let source = recorder.source(options)?;
    if options.on != VIRTUAL && options.beside.is_some() {
        return both::run(options, source, recorder);
    }
    options.outputs.check(options.trace.as_deref(), options.study.as_deref())?;
    let Some(mut ended) = perform(options, &source, recorder)? else { return Ok(()) };
    output::reports(&options.outputs, &ended.results)?;
    ended.told()
}

/// A run that has come to its end, or was stopped with complete rounds.
struct Ended {
    results: Results,
    /// What it is recorded as.
    name: Option<String>,
    /// What a probe found of the drives.
    probed: Option<f64>,
    is_cancelled: bool,
    /// How it goes on.
    hint: Option<String>,
    /// What came of the layout that was to be kept.
    kept: Result<(), Failure>,
}

impl Ended {
    /// Tells how it goes on; Ctrl-C is a failure.
    fn told(&mut self) -> Result<(), Failure> {
        self.hint.iter().for_each(|hint| output::note(hint));
        let kept = std::mem::replace(&mut self.kept, Ok(()));
        if self.is_cancelled { Err(Failure::Interrupted) } else { kept }
    }
}

/// Runs the study of the options and records it; `None` when it was only shown what would be done.
fn perform(
    options: &Compare,
    source: &Source,
    mut recorder: Recorder,
) -> Result<Option<Ended>, Failure> {
    let mut study = load(options, source)?;
    let cancel = interrupt::flag()?;
    if options.trace.is_some() && options.on != VIRTUAL && kernel::named(&options.on).is_none() {
        return Err(Failure::input("--trace: is for --on virtual and --on kernel:VERSION"));
    }
    let mut kept = Ok(());
    let outcome = if let Some(kernel) = kernel::named(&options.on) {
        both::sized(&mut study, options, None)?;
        real::devices::refuse_flags(options).and_then(|()| {
            kernel::run(&mut study, options, kernel, &mut recorder, cancel).map(Some)
        })
    } else if options.on == VIRTUAL {
        both::sized(&mut study, options, recorder.probed())?;
        both::as_placed(&mut study, options)?;
        study.modelled = true;
        real::devices::refuse_flags(options)
            .and_then(|()| modelled::run(&study, options, &mut recorder, cancel).map(Some))
    } else {
        real::run(&mut study, options, &mut recorder, &mut kept, cancel)
    };
    let is_cancelled = cancel.load(Ordering::Relaxed) && !recorder.is_whole();
    let (name, probed) = (recorder.name().map(str::to_owned), recorder.probed());
    let hint = recorder.end(&outcome, is_cancelled, options);
    match outcome {
        Err(failure) => Err(failure.and(hint)),
        Ok(results) => {
            Ok(results.map(|results| Ended { results, name, probed, is_cancelled, hint, kept }))
        }
    }
}

/// Runs a study in virtual time for a program that has raidlab within itself, as [`run`] does; without
/// `rounds` at least as many as verdicts need.
pub(crate) fn in_process(
    mut study: Study,
    rounds: Option<u32>,
    threads: Option<u32>,
    stop: &'static AtomicBool,
    told: &mut dyn FnMut(usize, usize),
) -> Result<Results, Failure> {
    study.modelled = true;
    match rounds {
        Some(rounds) => (study.rounds, study.max_rounds) = (rounds, rounds),
        None => study.raise_rounds(),
    }
    modelled::run_in_process(&study, crate::parallel::threads(threads), stop, told)
}

/// On a filesystem the random places of the default study lie in a file of so many bytes: as large as virtual
/// time lays out at once, or as large as the smallest array of member files, which is written for every
/// cell.
const MODELLED_FILE: u64 = 1 << 30;
const REAL_FILE: u64 = 64 << 20;

/// Puts the random places of the default study into a file, where it runs on a filesystem.
fn fit_to_filesystem(study: &mut Study, file: u64) {
    for spec in &mut study.workloads {
        spec.span(file);
    }
}

/// The text of the study compiled in under this name, unless there is a file of that name; a directory is none.
pub(crate) fn compiled_in(path: &Path) -> Option<(&'static str, &'static str)> {
    let found = builtin().into_iter().find(|(name, _)| path == Path::new(name))?;
    (!path.exists() || path.is_dir()).then_some(found)
}

/// The study of a text with what the command line changes.
pub(crate) fn load(options: &Compare, source: &Source) -> Result<Study, Failure> {
    let mut study = raidlab_study::parse(&source.text, &source.path).map_err(Failure::input)?;
    if let Some(path) = options.study.as_deref().filter(|path| compiled_in(path).is_none()) {
        study.origin.set_file(path);
    }
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
        if options.study.is_none() {
            let is_modelled = options.on == VIRTUAL && options.beside.is_none();
            fit_to_filesystem(&mut study, if is_modelled { MODELLED_FILE } else { REAL_FILE });
        }
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
            workload.resize(size.0).map_err(|error| {
                Failure::input(format!("--size {size}: {}: {}", workload.name, error.reason))
            })?;
        }
    }
    let is_virtual = options.on == VIRTUAL || kernel::named(&options.on).is_some();
    if is_virtual && options.rounds.is_none() {
        study.raise_rounds();
    }
    Ok(study)
}

/// An error of the study, or of `--size` where that took the place of the study's sizes.
fn bad_study(options: &Compare, error: StudyError) -> Failure {
    match options.size {
        Some(size) if error.key == "workloads.size" => {
            Failure::input(format!("--size {size}: {}", error.reason))
        }
        _ if options.filesystem.is_some() && error.key == "filesystem" => {
            Failure::input(format!("--filesystem: {}", error.reason))
        }
        _ if options.filesystem.is_some() && error.key == "workloads.span" => {
            let name = options.filesystem.as_deref().unwrap_or_default();
            Failure::input(format!("--filesystem {name}: {error}"))
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
#[derive(Clone)]
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
