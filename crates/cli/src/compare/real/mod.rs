//! A study on member files of a directory or on block devices, in real time: what its user is asked and told.

pub(super) mod devices;
mod first;

use std::ffi::OsStr;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use raidlab_core::Sectors;
use raidlab_engine::{CacheState, EngineErrorKind};
use raidlab_results::{Clock, Results};
use raidlab_study::{Samples, Study, StudyError};
use raidlab_targets::{RunDirectory, clean_leftovers};

use super::record::Recorder;
use super::{Setting, follow, results, risk};
use crate::args::{Color, Compare};
use crate::failure::Failure;
use crate::output::{self, note, removed};
use crate::progress::Bar;
use first::FirstRound;
use raidlab_measure::{Drives, Rounds, Sizes, facts};

/// The default study's title speaks of drives that take no part here.
const DEFAULT_TITLE: &str = "Files in one directory, which layout?";
/// Runs the study in a directory, or on devices; `None` when it was only shown what would be done. `kept` is what came
/// of the layout that was to be kept.
pub(super) fn run(
    study: &mut Study,
    options: &Compare,
    recorder: &mut Recorder,
    kept: &mut Result<(), Failure>,
    cancel: &'static AtomicBool,
) -> Result<Option<Results>, Failure> {
    if options.threads.is_some() {
        let reason = "is for virtual time only; on real drives every cell runs alone";
        return Err(Failure::input(format!("--threads: {reason}")));
    }
    match devices::named(&options.on) {
        Some(paths) => devices::run(study, options, &paths, (recorder, kept), cancel),
        None => {
            devices::refuse_flags(options)?;
            run_in(study, options, Path::new(&options.on), recorder, cancel).map(Some)
        }
    }
}

/// Whether sizes are the program's to choose.
fn is_ours_to_size(options: &Compare) -> bool {
    options.study.is_none() && options.size.is_none()
}

/// What stands in for drives.
#[derive(Clone, Copy)]
pub(super) enum Place<'a> {
    /// A directory of member files.
    Directory,
    /// Devices of so many bytes each.
    Devices(&'a [u64]),
}

/// Fits the study to real drives.
fn prepare(study: &mut Study, options: &Compare, place: Place<'_>) -> Result<Sizes, Failure> {
    if is_ours_to_size(options) {
        raidlab_measure::size_sequential(study)?;
    }
    study.check_real().map_err(|error| super::bad_study(options, error))?;
    study.measured = true;
    sizes_at(study, place).map_err(|error| super::bad_study(options, error))
}

/// How large members are at a place; on devices the study takes as much of each as it may.
fn sizes_at(study: &mut Study, place: Place<'_>) -> Result<Sizes, StudyError> {
    let Place::Devices(bytes) = place else { return Sizes::of(study) };
    study.member_size = raidlab_measure::whole_members(study, bytes).or(study.member_size);
    Sizes::on_devices(study)
}

/// How large modelled members of each layout are to be, so that arrays are as large as where the study runs really.
pub(super) fn member_sizes(
    study: &Study,
    options: &Compare,
    on: &OsStr,
) -> Result<Vec<Sectors>, Failure> {
    let bytes = devices::named(on).map(|paths| devices::sizes(&paths));
    let place = bytes.as_deref().map_or(Place::Directory, Place::Devices);
    let mut study = study.clone();
    let sizes = sizes_at(&mut study, place).map_err(|error| super::bad_study(options, error))?;
    sizes.modelled(&study).map_err(Failure::input)
}

/// The study of a run that was recorded with these options, title and probe, on devices of so many bytes.
pub(super) fn as_recorded(
    study: &mut Study,
    options: &Compare,
    (title, bytes): (&str, &[u64]),
    probed: Option<f64>,
) -> Result<(), Failure> {
    study.title = title.to_string();
    let is_devices = devices::named(&options.on).is_some();
    prepare(study, options, if is_devices { Place::Devices(bytes) } else { Place::Directory })?;
    Ok(probed.map_or(Ok(()), |rate| raidlab_measure::size_random(study, rate))?)
}

fn run_in(
    study: &mut Study,
    options: &Compare,
    parent: &Path,
    recorder: &mut Recorder,
    cancel: &'static AtomicBool,
) -> Result<Results, Failure> {
    check_parent(parent)?;
    recorder.conditions(study, Some(parent), None, |_| Vec::new())?;
    if options.study.is_none() {
        study.title = DEFAULT_TITLE.to_string();
    }
    let sizes = prepare(study, options, Place::Directory)?;
    let warnings = remove_leftovers(parent)?;
    let drives = Drives::Files(make_directory(parent, study, &sizes)?);
    let setting = |study: &Study, cache, probed| {
        let target = facts::target(study, &format!("member files in {}", parent.display()));
        Setting {
            clock: Clock::Real,
            host: facts::host(Some(parent)),
            settings: facts::settings(study, target, &sizes, cache, probed),
            warnings: warnings.into_iter().chain(facts::warnings(parent, cache)).collect(),
            capacities: sizes.capacities.clone(),
        }
    };
    let outcome = measure(study, options, (&drives, &sizes), recorder, setting, cancel);
    if let Drives::Files(directory) = drives {
        remove(directory, cancel);
    }
    let (samples, setting) = outcome?;
    ended(study, &samples, setting)
}

/// The results of rounds that have come to their end.
fn ended(study: &Study, samples: &Samples, setting: Setting) -> Result<Results, Failure> {
    let mut results = results(study, samples, setting)?;
    results.risk = risk::on_real(study);
    Ok(results)
}

/// Probes the drives where workloads are to be sized by that, and runs the rounds. `setting` says what is told of the
/// run, by what the members' cache and the probe turn out to be.
fn measure(
    study: &mut Study,
    options: &Compare,
    (drives, sizes): (&Drives, &Sizes),
    recorder: &mut Recorder,
    setting: impl FnOnce(&Study, Option<CacheState>, Option<f64>) -> Setting,
    cancel: &AtomicBool,
) -> Result<(Samples, Setting), Failure> {
    let probed = match recorder.probed() {
        _ if !is_ours_to_size(options) => None,
        None => Some(raidlab_measure::probe(study, drives, sizes, cancel)?),
        Some(rate) => {
            raidlab_measure::size_random(study, rate)?;
            Some(rate)
        }
    };
    let study = &*study;
    let rounds = Rounds::new(study, drives, sizes, cancel)?;
    let mut setting = setting(study, rounds.cache(), probed);
    let finished = recorder.begin(study, options, &setting, probed)?;
    setting.warnings.extend(facts::without(study));
    setting.warnings.extend(recorder.warning());
    let bar = Bar::new(options.outputs.quiet);
    let mut follow = follow(study, &bar, cancel);
    let mut first = FirstRound::new(study, &finished);
    let samples = rounds.run(finished, &mut |told| {
        recorder.keep(study, &told);
        let complete = first.keep(&told).filter(|_| !options.outputs.quiet);
        if let Some(samples) = complete {
            show_first(study, &samples, &setting, options.outputs.color, &bar);
        }
        follow(told)
    });
    bar.clear();
    let samples = samples?;
    recorder.ran(&samples);
    Ok((samples, setting))
}

/// Shows what the first round measured. One that cannot be shown is none: the others go on.
fn show_first(study: &Study, samples: &Samples, setting: &Setting, color: Color, bar: &Bar) {
    let Ok(results) = results(study, samples, setting.clone()) else { return };
    if let Ok(text) = output::terminal_for_notes(color).provisional(&results) {
        bar.above(text.trim_end());
    }
}

fn check_parent(parent: &Path) -> Result<(), Failure> {
    let right = "--on takes `virtual`, a directory for member files, block devices as in \
                 /dev/sdb,/dev/sdc, or `virtual` and one of these, as in virtual,/mnt/scratch";
    let wrong =
        |what: String| Failure::input(format!("--on {}: {what}; {right}", parent.display()));
    match std::fs::metadata(parent) {
        Ok(there) if there.is_dir() => Ok(()),
        Ok(_) => Err(wrong("not a directory".into())),
        Err(error) => Err(wrong(error.to_string())),
    }
}

fn make_directory(parent: &Path, study: &Study, sizes: &Sizes) -> Result<RunDirectory, Failure> {
    let count = study.layouts.iter().map(|layout| layout.layout.drives()).max().unwrap_or(0);
    let made = RunDirectory::create_with(parent, count, sizes.file, sizes.extra(study));
    made.map_err(|error| {
        let what = format!("--on {}: {error}", parent.display());
        let hint = match error.kind() {
            EngineErrorKind::NoRoom if sizes.given => "make `file` in the study smaller",
            EngineErrorKind::NoRoom => "make the files smaller with --size",
            _ => return Failure::input(format!("{what}; choose a directory you may write to")),
        };
        Failure::input(format!("{what}; choose a directory with more room, or {hint}"))
    })
}

/// Removes the run's files, and says so after Ctrl-C or should any stay.
fn remove(directory: RunDirectory, cancel: &AtomicBool) {
    let path = directory.path().to_path_buf();
    drop(directory);
    if path.symlink_metadata().is_ok() {
        note(&format!(
            "warning: {} could not be removed completely; the next run in the same directory tries \
             again",
            path.display()
        ));
    } else if cancel.load(Ordering::Relaxed) {
        note("stopped; the member files have been removed");
    }
}

fn remove_leftovers(parent: &Path) -> Result<Vec<String>, Failure> {
    let cleaned = clean_leftovers(parent).map_err(Failure::input)?;
    for path in &cleaned.removed {
        removed(path);
    }
    let kept = cleaned.kept.iter();
    Ok(kept.map(|(path, why)| format!("left alone: {}: {why}", path.display())).collect())
}
