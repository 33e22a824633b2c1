//! The rounds of a study on real drives.

use std::ops::ControlFlow;
use std::sync::atomic::AtomicBool;

use raidlab_engine::CacheState;
use raidlab_study::{CellRun, Progress, Samples, Study, resume_rounds};

use crate::cells::Cells;
use crate::drives::Drives;
use crate::error::MeasureError;
use crate::sizes::Sizes;

/// Sequential workloads of the default study move this much a process on real files, where virtual
/// time allows itself gigabytes.
const SEQUENTIAL_BYTES: u64 = 36 << 20;
/// Bytes that random workloads of the default study move a process on real files, where so many
/// random writes a second went through in a probe: 1,024 blocks of 4 KiB take 0.1 s on flash, but
/// ten seconds on a hard disk.
fn random_bytes(rate: f64) -> u64 {
    if rate < 1_000.0 { 1 << 20 } else { 4 << 20 }
}

/// Sizes the sequential workloads of the default study for real files.
///
/// # Errors
/// When a workload cannot have the size.
pub fn size_sequential(study: &mut Study) -> Result<(), MeasureError> {
    set_sizes(study, false, SEQUENTIAL_BYTES)
}

/// Sizes the random workloads of the default study by how fast the drives are; gives how many blocks of 4 KiB a
/// second went through.
///
/// # Errors
/// When the drives cannot be written, or `cancel` was set.
pub fn probe(
    study: &mut Study,
    drives: &Drives,
    sizes: &Sizes,
    cancel: &AtomicBool,
) -> Result<f64, MeasureError> {
    let mut cells = Cells::new(study, drives, sizes, cancel);
    let rate = cells.probe();
    let rate = cleared(&mut cells, rate)?;
    size_random(study, rate)?;
    Ok(rate)
}

/// Sizes the random workloads of the default study for drives that take so many blocks of 4 KiB a second, as a
/// [`probe`] found.
///
/// # Errors
/// When a workload cannot have the size.
pub fn size_random(study: &mut Study, rate: f64) -> Result<(), MeasureError> {
    set_sizes(study, true, random_bytes(rate))
}

/// Sizes the workloads of the default study, which has simple ones only.
fn set_sizes(study: &mut Study, random: bool, bytes: u64) -> Result<(), MeasureError> {
    for spec in &mut study.workloads {
        if spec.workload.kind().starts_with("random-") == random {
            spec.resize(bytes).map_err(MeasureError::input)?;
        }
    }
    Ok(())
}

/// The rounds of a study on drives where every layout can be.
pub struct Rounds<'a> {
    study: &'a Study,
    cells: Cells<'a>,
}

impl std::fmt::Debug for Rounds<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Rounds").field("cache", &self.cache()).finish_non_exhaustive()
    }
}

impl<'a> Rounds<'a> {
    /// Plans every layout once.
    ///
    /// # Errors
    /// What keeps a layout from being set up, before anything is timed.
    pub fn new(
        study: &'a Study,
        drives: &'a Drives,
        sizes: &'a Sizes,
        cancel: &'a AtomicBool,
    ) -> Result<Self, MeasureError> {
        let mut cells = Cells::new(study, drives, sizes, cancel);
        cells.check()?;
        Ok(Self { study, cells })
    }

    /// Whether the page cache takes part; `None` where no layout has members.
    pub fn cache(&self) -> Option<CacheState> {
        self.cells.cache()
    }

    /// Runs the rounds, but for what is `finished` already; when it is stopped, also in the middle of a cell, the
    /// complete ones count.
    ///
    /// # Errors
    /// The first cell that fails.
    pub fn run(
        mut self,
        finished: Vec<CellRun>,
        progress: &mut dyn FnMut(Progress<'_>) -> ControlFlow<()>,
    ) -> Result<Samples, MeasureError> {
        self.cells.write_throughout()?;
        let samples = resume_rounds(self.study, finished, &mut self.cells, progress);
        let samples = cleared(&mut self.cells, samples)?;
        Ok(if samples.aborted { interrupted(self.study, samples) } else { samples })
    }
}

/// Hands on what became of cells; devices carry no superblocks of theirs then.
fn cleared<T>(cells: &mut Cells<'_>, outcome: Result<T, MeasureError>) -> Result<T, MeasureError> {
    let cleared = cells.clear_superblocks().map_err(MeasureError::failed);
    // The error of the cells is the one to tell.
    outcome.and_then(|outcome| cleared.map(|()| outcome))
}

/// The first warning of samples of a study that was stopped, in words for real time.
fn interrupted(study: &Study, mut samples: Samples) -> Samples {
    samples.warnings[0] = format!(
        "interrupted: {} of at least {} rounds are complete and count",
        samples.rounds, study.rounds
    );
    samples
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interrupted_study_says_how_many_rounds_count() {
        let text = raidlab_study::default_study();
        let study = raidlab_study::parse(text, "default.toml").expect("the default study");
        let samples = interrupted(&study, Samples::of_complete_rounds(&study, Vec::new()));
        let said = "interrupted: 0 of at least 9 rounds are complete and count";
        assert_eq!(samples.warnings, [said]);
    }

    /// Sequential workloads move as much as a disk does at once, random ones what it does in some seconds.
    #[test]
    fn workloads_of_the_default_study_are_sized_by_what_drives_do() {
        let text = raidlab_study::default_study();
        let mut study = raidlab_study::parse(text, "default.toml").expect("the default study");
        let told = |study: &Study, random: bool| -> Vec<String> {
            let of = |spec: &&raidlab_workload::WorkloadSpec| {
                spec.workload.kind().starts_with("random-") == random
            };
            study.workloads.iter().filter(of).map(|spec| spec.workload.description()).collect()
        };
        let are_of = |told: Vec<String>, size: &str| {
            assert!(
                told.len() == 2 && told.iter().all(|one| one.contains(size)),
                "{size}: {told:?}"
            );
        };
        let random = told(&study, true);
        size_sequential(&mut study).expect("possible");
        are_of(told(&study, false), "36MiB");
        assert_eq!(told(&study, true), random);
        for (rate, size) in [(0.1, "1MiB"), (999.9, "1MiB"), (1_000.0, "4MiB"), (1e6, "4MiB")] {
            size_random(&mut study, rate).expect("possible");
            are_of(told(&study, true), size);
            are_of(told(&study, false), "36MiB");
        }
    }
}
