//! A study on member files of a directory or on block devices, in real time, every byte verified.
//!
//! One set of members serves all layouts in turn, as one set of drives would. For each cell
//! the array is set up afresh, filled where its processes will read (untimed), run (timed), and
//! every member is read and compared (untimed).

mod cells;
pub(super) mod devices;
mod facts;
mod sizes;

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use raidlab_engine::{CacheState, EngineError, EngineErrorKind};
use raidlab_results::{Clock, Results};
use raidlab_study::{Samples, Study, run_rounds};
use raidlab_targets::{RunDirectory, clean_leftovers};

use super::{Kept, Setting, follow, results};
use crate::args::Compare;
use crate::failure::Failure;
use crate::output::note;
use crate::progress::Bar;
use cells::Cells;
pub(crate) use facts::memory as host_memory;
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

/// What serves as drives.
enum Drives {
    Files(RunDirectory),
    Devices(devices::Devices),
}

impl Drives {
    /// Opens a member; gives its path too.
    fn member(&self, index: u16) -> Result<(File, PathBuf), EngineError> {
        match self {
            Self::Files(directory) => {
                let path = directory.member_path(index).unwrap_or_default();
                Ok((directory.open_member(index)?, path))
            }
            Self::Devices(devices) => devices.member(index),
        }
    }

    /// Opens the drive that takes a failed member's place.
    fn spare(&self) -> Result<(File, PathBuf), EngineError> {
        match self {
            Self::Files(directory) => directory.open_spare(),
            Self::Devices(devices) => devices.spare(),
        }
    }

    /// Opens the log device.
    fn journal(&self) -> Result<(File, PathBuf), EngineError> {
        match self {
            Self::Files(directory) => directory.open_journal(),
            Self::Devices(devices) => devices.journal(),
        }
    }

    /// The directory in which filesystems on arrays are mounted.
    fn mount_place(&self) -> PathBuf {
        let beside = match self {
            Self::Files(directory) => directory.path().parent().map(Path::to_path_buf),
            Self::Devices(_) => None,
        };
        beside.unwrap_or_else(std::env::temp_dir)
    }

    /// What members are, for messages.
    fn what(&self) -> &'static str {
        match self {
            Self::Files(_) => "files",
            Self::Devices(_) => "devices",
        }
    }
}

/// Samples with whether the page cache took part.
type Measured = (Samples, Option<CacheState>);

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
fn prepare(study: &mut Study, options: &Compare) -> Result<(bool, Sizes), Failure> {
    let ours_to_size = options.study.is_none() && options.size.is_none();
    if ours_to_size {
        set_sizes(study, false, SEQUENTIAL_BYTES)?;
    }
    study.check_real().map_err(Failure::input)?;
    let sizes = Sizes::of(study).map_err(|error| super::bad_study(options, error))?;
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
    let (ours_to_size, sizes) = prepare(study, options)?;
    let mut warnings = remove_leftovers(parent)?;
    let drives = Drives::Files(make_directory(parent, study, &sizes)?);
    let outcome = probe_and_measure(study, options, &drives, &sizes, (ours_to_size, cancel));
    if let Drives::Files(directory) = drives {
        remove(directory, cancel);
    }
    let (probed, (samples, cache)) = outcome?;
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

/// Sizes the workloads of the default study, which has simple ones only.
fn set_sizes(study: &mut Study, random: bool, bytes: u64) -> Result<(), Failure> {
    for spec in &mut study.workloads {
        if spec.workload.kind().starts_with("random-") == random {
            spec.workload = spec.workload.resized(bytes).map_err(Failure::input)?;
        }
    }
    Ok(())
}

/// Probes the drives where workloads are to be sized by that, and runs the rounds.
fn probe_and_measure(
    study: &mut Study,
    options: &Compare,
    drives: &Drives,
    sizes: &Sizes,
    (ours_to_size, cancel): (bool, &AtomicBool),
) -> Result<(Option<f64>, Measured), Failure> {
    let probed = if ours_to_size { probe(study, drives, sizes, cancel)? } else { None };
    Ok((probed, measure(study, options, drives, sizes, cancel)?))
}

/// Sizes the random workloads by how fast the drives are; gives their operations a second.
fn probe(
    study: &mut Study,
    drives: &Drives,
    sizes: &Sizes,
    cancel: &AtomicBool,
) -> Result<Option<f64>, Failure> {
    let rate = Cells::new(study, drives, sizes, cancel).probe()?;
    set_sizes(study, true, random_bytes(rate))?;
    Ok(Some(rate))
}

/// Runs the rounds; after Ctrl-C the complete ones.
fn measure(
    study: &Study,
    options: &Compare,
    drives: &Drives,
    sizes: &Sizes,
    cancel: &AtomicBool,
) -> Result<Measured, Failure> {
    let mut cells = Cells::new(study, drives, sizes, cancel);
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
        note(&format!("removed what a killed run left behind: {}", path.display()));
    }
    let kept = cleaned.kept.iter();
    Ok(kept.map(|(path, why)| format!("left alone: {}: {why}", path.display())).collect())
}
