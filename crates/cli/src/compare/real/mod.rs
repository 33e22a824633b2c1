//! A study on member files of a directory or on block devices, in real time: what its user is asked and told.

pub(super) mod devices;

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use raidlab_engine::EngineErrorKind;
use raidlab_results::{Clock, Results};
use raidlab_study::{Study, StudyError};
use raidlab_targets::{RunDirectory, clean_leftovers};

use super::{Setting, follow, results};
use crate::args::Compare;
use crate::failure::Failure;
use crate::output::{note, removed};
use crate::progress::Bar;
use raidlab_measure::{Drives, Measured, Sizes, facts};

/// The default study's title speaks of drives that take no part here.
const DEFAULT_TITLE: &str = "Files in one directory, which layout?";
/// Runs the study in a directory, or on devices; `None` when it was only shown what would be done.
pub(super) fn run(
    study: &mut Study,
    options: &Compare,
    cancel: &'static AtomicBool,
) -> Result<Option<Results>, Failure> {
    if options.threads.is_some() {
        let reason = "is for virtual time only; on real drives every cell runs alone";
        return Err(Failure::input(format!("--threads: {reason}")));
    }
    match devices::named(&options.on) {
        Some(paths) => devices::run(study, options, &paths, cancel),
        None => {
            devices::refuse_flags(options)?;
            run_in(study, options, Path::new(&options.on), cancel).map(Some)
        }
    }
}

/// Fits the study to real drives; gives whether random workloads are still to be sized by a probe.
fn prepare(
    study: &mut Study,
    options: &Compare,
    size: fn(&Study) -> Result<Sizes, StudyError>,
) -> Result<(bool, Sizes), Failure> {
    let ours_to_size = options.study.is_none() && options.size.is_none();
    if ours_to_size {
        raidlab_measure::size_sequential(study)?;
    }
    study.check_real().map_err(|error| super::bad_study(options, error))?;
    study.measured = true;
    let sizes = size(study).map_err(|error| super::bad_study(options, error))?;
    Ok((ours_to_size, sizes))
}

fn run_in(
    study: &mut Study,
    options: &Compare,
    parent: &Path,
    cancel: &'static AtomicBool,
) -> Result<Results, Failure> {
    check_parent(parent)?;
    if options.study.is_none() {
        study.title = DEFAULT_TITLE.to_string();
    }
    let (ours_to_size, sizes) = prepare(study, options, Sizes::of)?;
    let mut warnings = remove_leftovers(parent)?;
    let drives = Drives::Files(make_directory(parent, study, &sizes)?);
    let outcome = probe_and_measure(study, options, &drives, &sizes, (ours_to_size, cancel));
    if let Drives::Files(directory) = drives {
        remove(directory, cancel);
    }
    let (probed, Measured { samples, cache }) = outcome?;
    warnings.extend(facts::warnings(parent, cache));
    let target = facts::target(study, &format!("member files in {}", parent.display()));
    let setting = Setting {
        clock: Clock::Real,
        host: facts::host(Some(parent)),
        settings: facts::settings(study, target, &sizes, cache, probed),
        warnings,
        capacities: sizes.capacities.clone(),
    };
    results(study, &samples, setting)
}

/// Probes the drives where workloads are to be sized by that, and runs the rounds.
fn probe_and_measure(
    study: &mut Study,
    options: &Compare,
    drives: &Drives,
    sizes: &Sizes,
    (ours_to_size, cancel): (bool, &AtomicBool),
) -> Result<(Option<f64>, Measured), Failure> {
    let probed = if ours_to_size {
        Some(raidlab_measure::probe(study, drives, sizes, cancel)?)
    } else {
        None
    };
    let bar = Bar::new(options.quiet);
    let measured =
        raidlab_measure::run(study, drives, sizes, cancel, &mut follow(study, &bar, cancel));
    bar.clear();
    Ok((probed, measured?))
}

fn check_parent(parent: &Path) -> Result<(), Failure> {
    let right = "--on takes `virtual`, a directory for member files, or block devices as in \
                 /dev/sdb,/dev/sdc";
    let wrong =
        |what: String| Failure::input(format!("--on {}: {what}; {right}", parent.display()));
    match std::fs::metadata(parent) {
        Ok(there) if there.is_dir() => Ok(()),
        Ok(_) => Err(wrong("not a directory".into())),
        Err(error) => Err(wrong(error.to_string())),
    }
}

fn make_directory(parent: &Path, study: &Study, sizes: &Sizes) -> Result<RunDirectory, Failure> {
    let count = study.layouts.iter().map(|layout| layout.layout.members).max().unwrap_or(0);
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
