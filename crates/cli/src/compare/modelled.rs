//! A study on modelled drives, in virtual time, on several threads.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};

use raidlab_kernel_study::fidelity;
use raidlab_predict::{Conditions, Modelled};
use raidlab_results::{Clock, Results};
use raidlab_sim::HostCosts;
use raidlab_study::{Study, resume_rounds_parallel};

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
    let modelled = Modelled::new(study, costs(options));
    let modelled = modelled.map_err(|error| super::bad_study(options, error))?.stopping_on(cancel);
    let trace = kernel::trace(options.trace.as_deref())?;
    let modelled = match &trace {
        Some((trace, _)) => modelled.traced_to(trace),
        None => modelled,
    };
    let threads = parallel::threads(options.threads);
    if let Some(warning) = effort::warning(study, threads).filter(|_| !options.outputs.quiet) {
        note(&warning);
    }
    let setting = setting(&modelled);
    recorder.conditions(study, None, None, |_| record::host::modelled(study, modelled.drives()))?;
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

/// What requests and parity cost a host: nothing beside a kernel, whose own work is not charged.
fn costs(options: &Compare) -> HostCosts {
    match options.beside.as_deref().and_then(kernel::named) {
        Some(_) => fidelity::COSTS,
        None => HostCosts::default(),
    }
}

/// What the results of a run in virtual time say besides its cells.
fn setting(modelled: &Modelled<'_>) -> Setting {
    let Conditions { host, settings, warnings, capacities } = Conditions::of(modelled);
    Setting { clock: Clock::Virtual, host, settings, warnings, capacities }
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
    let setting = setting(&modelled);
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
