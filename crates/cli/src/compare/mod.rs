//! `raidlab compare`: a study, run and reported.

mod modelled;
mod real;

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};

use raidlab_core::Sectors;
use raidlab_results::{Clock, Results};
use raidlab_study::{
    CellKey, Event, Progress, Sample, Samples, Study, StudyError, cell_title, summarise,
};

use crate::args::Compare;
use crate::failure::Failure;
use crate::progress::Bar;
use crate::{interrupt, output};
pub(crate) use real::{host_memory, member_for};

pub(crate) fn run(options: &Compare) -> Result<(), Failure> {
    let mut study = load(options)?;
    output::check(&[("--json", options.json.as_deref()), ("--html", options.html.as_deref())])?;
    let cancel = interrupt::flag()?;
    let results = if options.on == "virtual" {
        real::devices::refuse_flags(options)?;
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
