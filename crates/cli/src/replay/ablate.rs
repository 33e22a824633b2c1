//! `--ablate`: a study without each of its mechanisms in turn.

use std::sync::atomic::{AtomicBool, Ordering};

use raidlab_explore::Ablation;
use raidlab_results::{AblationRow, Results};
use raidlab_study::Study;

use super::args::Replay;
use super::study::{Prepared, run_study};
use crate::failure::Failure;

/// The most processes that are run where nothing else is asked for: enough to show what interleaving
/// does.
const MOST_PROCESSES: u32 = 2;

/// The process counts that are run where none are asked for.
pub(super) fn processes(study: &Study) -> Vec<u32> {
    let few = study.processes.iter().copied().filter(|count| *count <= MOST_PROCESSES);
    let few: Vec<u32> = few.collect();
    if few.is_empty() { study.processes.clone() } else { few }
}

/// Runs the study without each mechanism that it has, and fills in how its cells move.
pub(super) fn run(
    full: &Prepared,
    options: &Replay,
    cancel: &'static AtomicBool,
    results: &mut Results,
) -> Result<(), Failure> {
    let modelled = full.modelled()?;
    let factors = Ablation::PARITY_FACTORS.iter().filter(|tenths| **tenths != 0);
    let sweep = factors.map(|tenths| Ablation::ParityCost { tenths: *tenths });
    let all = Ablation::all().into_iter().chain(sweep);
    let here: Vec<Ablation> = all.filter(|one| one.is_in(&modelled)).collect();
    for one in &here {
        if cancel.load(Ordering::Relaxed) {
            results.warnings.push("interrupted: mechanisms are missing".into());
            return Ok(());
        }
        let prepared = Prepared::new(full.study.clone(), std::slice::from_ref(one))?;
        let without =
            match run_study(&prepared, Vec::new(), options, cancel, &format!("without {one}")) {
                Err(Failure::Interrupted) => continue,
                other => other?,
            };
        let row =
            AblationRow::new(&one.to_string(), &one.meaning(), &results.cells, &without.cells);
        results.ablation.push(row);
    }
    Ok(())
}
