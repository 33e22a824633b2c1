//! A study on member files of a directory, in real time, every byte verified.
//!
//! One set of member files serves all layouts in turn, as one set of drives would. For each cell
//! the array is set up afresh, filled where its processes will read (untimed), run (timed), and
//! every member is read and compared (untimed).

mod cells;
mod facts;
mod sizes;

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use raidlab_engine::{CacheState, EngineErrorKind, RunDirectory, clean_leftovers};
use raidlab_results::{Clock, Results};
use raidlab_study::{Samples, Study, run_rounds};

use super::{Kept, Setting, follow, results};
use crate::args::Compare;
use crate::failure::Failure;
use crate::output::note;
use crate::progress::Bar;
use cells::Cells;
use sizes::Sizes;
pub(crate) use sizes::member_for;

/// The default study's title speaks of drives that take no part here.
const DEFAULT_TITLE: &str = "Files in one directory, which layout?";
/// Sequential workloads of the default study move this much a process on real files, where virtual
/// time allows itself gigabytes.
const SEQUENTIAL_BYTES: u64 = 48 << 20;
/// Bytes that random workloads of the default study move a process on real files, where so many
/// random writes a second went through in a probe: 3,072 blocks of 4 KiB take 0.2 s on flash, but
/// half a minute on a hard disk.
fn random_bytes(rate: f64) -> u64 {
    match rate {
        5_000.0.. => 12 << 20,
        1_000.0.. => 4 << 20,
        _ => 1 << 20,
    }
}

pub(super) fn run(
    study: &mut Study,
    options: &Compare,
    parent: &Path,
    cancel: &'static AtomicBool,
) -> Result<Results, Failure> {
    check_parent(parent)?;
    if options.threads.is_some() {
        let reason = "is for virtual time only; on real files every cell runs alone";
        return Err(Failure::input(format!("--threads: {reason}")));
    }
    if options.study.is_none() {
        study.title = DEFAULT_TITLE.to_string();
    }
    let ours_to_size = options.study.is_none() && options.size.is_none();
    if ours_to_size {
        set_sizes(study, false, SEQUENTIAL_BYTES)?;
    }
    let sizes = Sizes::of(study).map_err(|error| super::bad_study(options, error))?;
    let mut warnings = remove_leftovers(parent)?;
    let directory = make_directory(parent, study, &sizes)?;
    let probed = if ours_to_size { probe(study, &directory, &sizes, cancel) } else { Ok(None) };
    let study = &*study;
    let outcome = probed.and_then(|probed| {
        let measured = measure(study, options, &directory, &sizes, cancel)?;
        Ok((probed, measured))
    });
    remove(directory, cancel);
    let (probed, (samples, cache)) = outcome?;
    warnings.extend(facts::warnings(parent, cache));
    let setting = Setting {
        clock: Clock::Real,
        host: facts::host(parent),
        settings: facts::settings(parent, &sizes, cache, probed),
        warnings,
        capacities: sizes.capacities.clone(),
    };
    results(study, &samples, setting)
}

/// Sizes the workloads of the default study, which has simple ones only.
fn set_sizes(study: &mut Study, random: bool, bytes: u64) -> Result<(), Failure> {
    for spec in &mut study.workloads {
        if spec.workload.kind().starts_with("random-") == random {
            spec.workload = spec.workload.resized(bytes).map_err(Failure::input)?;
        }
    }
    Ok(())
}

/// Sizes the random workloads by how fast the directory is; gives its operations a second.
fn probe(
    study: &mut Study,
    directory: &RunDirectory,
    sizes: &Sizes,
    cancel: &AtomicBool,
) -> Result<Option<f64>, Failure> {
    let rate = Cells::new(study, directory, sizes, cancel).probe()?;
    set_sizes(study, true, random_bytes(rate))?;
    Ok(Some(rate))
}

/// Runs the rounds; after Ctrl-C the complete ones.
fn measure(
    study: &Study,
    options: &Compare,
    directory: &RunDirectory,
    sizes: &Sizes,
    cancel: &AtomicBool,
) -> Result<(Samples, Option<CacheState>), Failure> {
    let mut cells = Cells::new(study, directory, sizes, cancel);
    cells.check()?;
    let bar = Bar::new(options.quiet);
    let mut kept = Kept::default();
    let samples = {
        let mut show = follow(study, &bar, cancel);
        run_rounds(study, &mut cells, &mut |progress| {
            kept.keep(&progress);
            show(progress)
        })
    };
    bar.clear();
    match samples {
        Err(Failure::Interrupted) => Ok((kept.into_samples(study), cells.cache())),
        other => Ok((other?, cells.cache())),
    }
}

fn check_parent(parent: &Path) -> Result<(), Failure> {
    let right = "--on takes `virtual` or a directory for member files (block devices are not \
                 supported by this version)";
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
        note(&format!("removed what a killed run left behind: {}", path.display()));
    }
    let kept = cleaned.kept.iter();
    Ok(kept.map(|(path, why)| format!("left alone: {}: {why}", path.display())).collect())
}
