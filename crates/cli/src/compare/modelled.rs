//! A study on modelled drives, in virtual time, on several threads.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};

use raidlab_core::Size;
use raidlab_predict::Modelled;
use raidlab_results::trust::{Traits, Trust};
use raidlab_results::{Clock, Results};
use raidlab_sim::HostCosts;
use raidlab_study::{NO_HOST, Study, resume_rounds_parallel};

use super::record::{self, Recorder};
use super::{Setting, effort, follow, kernel, results, risk};
use crate::args::Compare;
use crate::failure::Failure;
use crate::output::note;
use crate::parallel;
use crate::progress::Bar;

pub(super) fn run(
    study: &Study,
    options: &Compare,
    recorder: &mut Recorder,
    cancel: &'static AtomicBool,
) -> Result<Results, Failure> {
    let modelled = Modelled::new(study, HostCosts::default());
    let modelled = modelled.map_err(|error| super::bad_study(options, error))?.stopping_on(cancel);
    let trace = kernel::trace(options.trace.as_deref())?;
    let modelled = match &trace {
        Some(trace) => modelled.traced_to(trace),
        None => modelled,
    };
    let threads = parallel::threads(options.threads);
    if let Some(warning) = effort::warning(study, threads).filter(|_| !options.outputs.quiet) {
        note(&warning);
    }
    let setting = setting(study, &modelled);
    recorder.conditions(study, None, |_| record::host::modelled(study, modelled.drives()))?;
    let finished = recorder.begin(study, options, &setting, recorder.probed())?;
    let bar = Bar::new(options.outputs.quiet);
    let mut progress = follow(study, &bar, cancel);
    let mut told = |progress_made: raidlab_study::Progress<'_>| {
        recorder.keep(study, &progress_made);
        progress(progress_made)
    };
    let make = || modelled.clone();
    let samples = resume_rounds_parallel(study, finished, threads, make, &mut told);
    bar.clear();
    let samples = samples.map_err(Failure::failed)?;
    recorder.ran(&samples);
    let risk = risk::on_modelled(study, modelled.drives(), &samples, threads);
    drop(modelled);
    kernel::finish(trace, options.trace.as_deref())?;
    Ok(Results { risk, ..results(study, &samples, setting)? })
}

/// What the results of a run in virtual time say besides its cells.
fn setting(study: &Study, modelled: &Modelled<'_>) -> Setting {
    Setting {
        clock: Clock::Virtual,
        host: host(study, modelled),
        settings: settings(study, modelled),
        warnings: vec![
            "modelled drives: with figures taken from a drive itself the model is 1.4 to 2.5 % off in \
             five measured drives (docs/fidelity.md); most figures of these drive files come from \
             data sheets or are estimates, and the error is not known"
                .into(),
            host_warning(study),
        ],
        capacities: modelled.capacities(),
    }
}

/// Runs a study for a program that has raidlab within itself: no terminal, and nothing is recorded.
pub(super) fn run_in_process(
    study: &Study,
    threads: usize,
    stop: &'static AtomicBool,
    told: &mut dyn FnMut(usize, usize),
) -> Result<Results, Failure> {
    let modelled = Modelled::new(study, HostCosts::default()).map_err(Failure::input)?;
    let modelled = modelled.stopping_on(stop);
    let setting = setting(study, &modelled);
    let mut progress = |made: raidlab_study::Progress<'_>| {
        told(made.done, made.total);
        match stop.load(Ordering::Relaxed) {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    };
    let make = || modelled.clone();
    let samples = resume_rounds_parallel(study, Vec::new(), threads, make, &mut progress);
    let samples = samples.map_err(Failure::failed)?;
    if samples.aborted {
        return Err(Failure::Interrupted);
    }
    let mut results = results(study, &samples, setting)?;
    results.risk = risk::on_modelled(study, modelled.drives(), &samples, threads);
    Ok(results)
}

/// How far the modelled host is from a kernel, on equal drives: another error than that of the drives.
fn host_warning(study: &Study) -> String {
    let filesystem = study.filesystem.is_some();
    if !filesystem && (0..study.layouts.len()).all(|layout| study.host_of(layout).is_none()) {
        return format!("not checked against a kernel: {NO_HOST}");
    }
    let groups = &Trust::recorded().groups;
    let of = |filesystem: bool| {
        let traits = Traits { filesystem: Some(filesystem), ..Traits::default() };
        let group = groups.iter().find(|group| group.traits == traits)?;
        Some(format!(
            "{}: median error {:.0} %, 90 of 100 within a factor of {:.2} ({} cells)",
            group.name, group.median_percent, group.times, group.cells
        ))
    };
    let groups: Vec<String> = [of(filesystem), of(!filesystem)].into_iter().flatten().collect();
    format!(
        "modelled host: against a Linux kernel on equal drives, which says nothing of the drives: {}",
        groups.join("; ")
    )
}

/// The drives of each group.
pub(super) fn drives(study: &Study, modelled: &Modelled<'_>) -> BTreeMap<String, String> {
    let groups = study.drives.iter().zip(modelled.drives());
    let drives = groups.map(|(group, drive)| {
        (
            format!("drives {}", group.name),
            format!("{} x {} ({})", group.count, drive.title, drive.name),
        )
    });
    drives.collect()
}

fn host(study: &Study, modelled: &Modelled<'_>) -> BTreeMap<String, String> {
    let costs = modelled.costs();
    let cpu = format!(
        "{} us a request, parity of {} GB/s",
        costs.request.0 as f64 / 1e3,
        costs.parity_rate as f64 / 1e9
    );
    let mut host = drives(study, modelled);
    host.insert("modelled cpu".to_string(), cpu);
    host
}

fn settings(study: &Study, modelled: &Modelled<'_>) -> BTreeMap<String, String> {
    let (target, cache) = match study.filesystem {
        None => (
            "raw: the array without filesystem or page cache".to_string(),
            "drives start cold and idle",
        ),
        Some(_) => (hosts(study), "memory starts cold, or warm where the workload says so"),
    };
    let mut settings = BTreeMap::from([
        ("target".to_string(), target),
        ("cache state".to_string(), cache.to_string()),
    ]);
    settings.extend(figures(modelled));
    settings
}

/// Where the figures of each drive are from.
pub(super) fn figures(modelled: &Modelled<'_>) -> BTreeMap<String, String> {
    let of_drive = |drive: &raidlab_models::DriveSpec| {
        let counts = ["data sheet", "measured", "estimate"].map(|status| {
            let count = drive.figures.iter().filter(|f| f.status.name() == status).count();
            format!("{count} {status}")
        });
        (format!("figures of {}", drive.name), counts.join(", "))
    };
    modelled.drives().iter().map(of_drive).collect()
}

/// The modelled hosts of a study's layouts.
fn hosts(study: &Study) -> String {
    let mut hosts: Vec<String> = Vec::new();
    for layout in 0..study.layouts.len() {
        let host = match study.host_of(layout) {
            None => {
                "a first model of a Linux host: page cache of 8 GiB and a journalling filesystem, \
                     whichever is named"
                    .to_string()
            }
            Some(host) => {
                let memory = Size(host.spec.memory);
                format!("a modelled host with {} and a page cache of {memory}", host.spec.kernel)
            }
        };
        if !hosts.contains(&host) {
            hosts.push(host);
        }
    }
    hosts.join("; ")
}
