//! The rounds of a study on real drives.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::atomic::AtomicBool;

use raidlab_engine::CacheState;
use raidlab_study::{CellKey, Event, Progress, Sample, Samples, Study, run_rounds};

use crate::cells::Cells;
use crate::drives::Drives;
use crate::error::MeasureError;
use crate::sizes::Sizes;

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

/// What the rounds gave.
#[derive(Clone, Debug)]
pub struct Measured {
    /// The samples of the complete rounds.
    pub samples: Samples,
    /// Whether the page cache took part; `None` before any member was opened.
    pub cache: Option<CacheState>,
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
    let rate = Cells::new(study, drives, sizes, cancel).probe()?;
    set_sizes(study, true, random_bytes(rate))?;
    Ok(rate)
}

/// Sizes the workloads of the default study, which has simple ones only.
fn set_sizes(study: &mut Study, random: bool, bytes: u64) -> Result<(), MeasureError> {
    for spec in &mut study.workloads {
        if spec.workload.kind().starts_with("random-") == random {
            spec.workload = spec.workload.resized(bytes).map_err(MeasureError::input)?;
        }
    }
    Ok(())
}

/// Runs the rounds; when `cancel` was set in the middle of a cell the complete ones count.
///
/// # Errors
/// What keeps a layout from being set up before anything is timed; the first cell that fails.
pub fn run(
    study: &Study,
    drives: &Drives,
    sizes: &Sizes,
    cancel: &AtomicBool,
    progress: &mut dyn FnMut(Progress<'_>) -> ControlFlow<()>,
) -> Result<Measured, MeasureError> {
    let mut cells = Cells::new(study, drives, sizes, cancel);
    cells.check()?;
    let mut kept = Kept::default();
    let samples = run_rounds(study, &mut cells, &mut |told| {
        kept.keep(&told);
        progress(told)
    });
    let samples = match samples {
        Err(MeasureError::Interrupted) => kept.into_samples(study),
        other => other?,
    };
    Ok(Measured { samples, cache: cells.cache() })
}

/// The samples as they come in, for when a run is interrupted in the middle of a cell.
#[derive(Default)]
struct Kept {
    rounds: Vec<BTreeMap<CellKey, Sample>>,
}

impl Kept {
    fn keep(&mut self, progress: &Progress<'_>) {
        if let Event::Finished(sample) = progress.event {
            let round = progress.round as usize;
            self.rounds.resize_with(self.rounds.len().max(round + 1), BTreeMap::new);
            self.rounds[round].insert(*progress.key, sample.clone());
        }
    }

    /// The samples of the complete rounds.
    fn into_samples(self, study: &Study) -> Samples {
        let cells = raidlab_study::cells(study);
        let complete: Vec<_> =
            self.rounds.into_iter().take_while(|round| round.len() == cells.len()).collect();
        let of_cell = |cell| complete.iter().filter_map(|round| round.get(cell).cloned()).collect();
        let warning = format!(
            "interrupted: {} of at least {} rounds are complete and count",
            complete.len(),
            study.rounds
        );
        Samples {
            samples: cells.iter().map(of_cell).collect(),
            rounds: complete.len() as u32,
            aborted: true,
            warnings: vec![warning],
            cells,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use raidlab_core::Nanos;

    /// Complete rounds count; the one that was interrupted does not.
    #[test]
    fn an_interrupted_study_keeps_its_complete_rounds() {
        let text = raidlab_study::default_study();
        let study = raidlab_study::parse(text, "default.toml").expect("the default study");
        let cells = raidlab_study::cells(&study);
        let mut kept = Kept::default();
        let mut done = 0;
        for round in 0..3 {
            for key in raidlab_study::order(&study, round).iter().skip(usize::from(round == 2)) {
                let sample = Sample {
                    values: vec![Some(f64::from(round) + key.layout as f64 / 10.0)],
                    first_done: Nanos(1),
                    last_done: Nanos(2),
                    bytes: 0,
                    ops: 0,
                    process_cpu_s: None,
                    system_cpu_s: None,
                    bottleneck: None,
                    latency: None,
                    fairness: None,
                    members: None,
                    bytes_written: 0,
                    rebuild: None,
                };
                done += 1;
                let event = Event::Finished(&sample);
                kept.keep(&Progress { event, key, round, rounds: 3, done, total: 3 * cells.len() });
            }
        }
        let samples = kept.into_samples(&study);
        assert_eq!((samples.rounds, samples.samples.len()), (2, cells.len()));
        for (key, values) in cells.iter().zip(&samples.samples) {
            let layout = key.layout as f64 / 10.0;
            let values: Vec<_> = values.iter().filter_map(Sample::headline).collect();
            assert_eq!(values, [layout, 1.0 + layout]);
        }
        assert!(samples.warnings[0].contains("2 of at least 6 rounds"), "{:?}", samples.warnings);
    }
}
