//! Running a published study on its modelled host.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;

use raidlab_core::Size;
use raidlab_results::{Clock, Results};
use raidlab_sim::HostCosts;
use raidlab_study::modelled::Modelled;
use raidlab_study::{Ablation, Study, run_rounds_parallel};

use super::args::Replay;
use crate::compare::{Setting, follow, results};
use crate::failure::Failure;
use crate::progress::Bar;

/// A study without some mechanisms.
pub(super) struct Prepared {
    pub(super) study: Study,
    without: Vec<Ablation>,
}

impl Prepared {
    pub(super) fn new(mut study: Study, without: &[Ablation]) -> Result<Self, Failure> {
        for one in without {
            study = study
                .without(one)
                .map_err(|what| Failure::input(format!("--without {one}: {what}")))?;
        }
        Ok(Self { study, without: without.to_vec() })
    }

    /// The study's machine.
    pub(super) fn modelled(&self) -> Result<Modelled<'_>, Failure> {
        let modelled = Modelled::new(&self.study, HostCosts::default()).map_err(Failure::input)?;
        Ok(self.without.iter().fold(modelled, |modelled, one| modelled.without(one)))
    }
}

/// How many threads run cells.
fn threads(options: &Replay) -> usize {
    options.threads.map_or_else(
        || std::thread::available_parallelism().map_or(1, usize::from),
        |threads| threads as usize,
    )
}

/// Runs all cells of a study; `what` says in the progress what is special.
pub(super) fn run_study(
    prepared: &Prepared,
    options: &Replay,
    cancel: &AtomicBool,
    what: &str,
) -> Result<Results, Failure> {
    let study = &prepared.study;
    let modelled = prepared.modelled()?;
    let bar = Bar::new(options.quiet);
    let name = study.title.split(':').next().unwrap_or_default();
    bar.prefix(format!("{name} {what}").trim());
    let mut progress = follow(study, &bar, cancel);
    let samples = run_rounds_parallel(study, threads(options), || modelled.clone(), &mut progress);
    bar.clear();
    let mut samples = samples.map_err(Failure::failed)?;
    if !samples.aborted {
        // Seeds are not rounds on a real machine: that there are few of them is meant to be.
        samples.warnings.clear();
    }
    let setting = Setting {
        clock: Clock::Virtual,
        host: host(study, &modelled),
        settings: settings(study, &samples.rounds),
        warnings: Vec::new(),
        capacities: modelled.capacities(),
    };
    let mut results = results(study, &samples, setting)?;
    keep_what_ran(&mut results);
    Ok(results)
}

/// Takes layouts and workloads out of which no cell was to be run.
fn keep_what_ran(results: &mut Results) {
    let cells = &results.cells;
    results.layouts.retain(|row| cells.iter().any(|cell| cell.layout == row.name));
    results.workloads.retain(|row| cells.iter().any(|cell| cell.workload == row.name));
    let layouts = &results.layouts;
    results.baseline.retain(|name| layouts.iter().any(|row| row.name == *name));
}

fn host(study: &Study, modelled: &Modelled<'_>) -> BTreeMap<String, String> {
    let groups = study.drives.iter().zip(modelled.drives());
    let mut host: BTreeMap<String, String> = groups
        .map(|(group, drive)| {
            let value = format!("{} x {} ({})", group.count, drive.title, drive.name);
            (format!("drives {}", group.name), value)
        })
        .collect();
    if let Some(one) = &study.host {
        let processor = one.processor.map_or("processor of today", |one| one.name);
        let cores = one.spec.cores;
        let cores = if cores == 1 { "1 core".into() } else { format!("{cores} cores") };
        let (kernel, memory) = (one.spec.kernel.name(), Size(one.spec.memory));
        let value = format!("{kernel}, {processor} with {cores}, {memory} of memory");
        host.insert("machine".into(), value);
    }
    let paths: Vec<&str> = study.paths.iter().map(|path| path.name.as_str()).collect();
    if !paths.is_empty() {
        host.insert("paths".into(), paths.join(", "));
    }
    host
}

fn settings(study: &Study, seeds: &u32) -> BTreeMap<String, String> {
    let filesystem = study.filesystem.as_deref().unwrap_or("none");
    BTreeMap::from([
        ("filesystem".to_string(), filesystem.to_string()),
        ("seeds".to_string(), format!("{seeds}, drawn from the study's seed")),
    ])
}
