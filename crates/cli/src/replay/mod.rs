//! `raidlab replay`: published studies on modelled hosts.

mod ablate;
pub(crate) mod args;
mod shards;
mod study;

use std::sync::atomic::{AtomicBool, Ordering};

use raidlab_core::layout::is_same_name;
use raidlab_explore::Ablation;
use raidlab_predict::Modelled;
use raidlab_report::findings;
use raidlab_results::{Fidelity, Moved, NamedCell, Replays, Results};
use raidlab_sim::HostCosts;
use raidlab_study::{CellRun, Study, replay};

use crate::failure::Failure;
use crate::{interrupt, output};
use args::Replay;
use shards::Work;
use study::{Prepared, run_study};

pub(crate) fn run(options: &Replay) -> Result<(), Failure> {
    let studies = studies(options)?;
    let left_out = left_out(&studies, options)?;
    output::check(&options.exports.paths(), &[])?;
    let cancel = interrupt::flag()?;
    let Some(mut finished) = finished(&studies, options, cancel)? else { return Ok(()) };
    let mut documents = Vec::new();
    for (study, left_out) in studies.iter().zip(&left_out) {
        let finished = finished.next().unwrap_or_default();
        // What was interrupted before its first round tells nothing; what was done before does.
        match one(study, left_out, finished, options, cancel) {
            Err(Failure::Interrupted) if !documents.is_empty() => break,
            other => documents.push(other?),
        }
        if cancel.load(Ordering::Relaxed) {
            break;
        }
    }
    reports(options, documents)?;
    if cancel.load(Ordering::Relaxed) { Err(Failure::Interrupted) } else { Ok(()) }
}

/// What is finished of each study, where it is kept in shards; `None` when only one shard was asked for.
fn finished(
    studies: &[Study],
    options: &Replay,
    cancel: &'static AtomicBool,
) -> Result<Option<std::vec::IntoIter<Vec<CellRun>>>, Failure> {
    let Some(directory) = &options.out else { return Ok(Some(Vec::new().into_iter())) };
    let prepared: Vec<Prepared> =
        studies.iter().map(|study| Prepared::new(study.clone(), &[])).collect::<Result<_, _>>()?;
    let work = Work::new(&prepared, directory, options, cancel)?;
    work.run(options, cancel)?;
    match options.shard {
        Some(_) if options.quiet => Ok(None),
        Some(shard) => work.tell(shard).map(|()| None),
        None => Ok(Some(work.finished()?.into_iter())),
    }
}

/// The studies that are asked for, with what the command line changes, checked before anything runs.
fn studies(options: &Replay) -> Result<Vec<Study>, Failure> {
    let all: Vec<&str> = replay::builtin().iter().map(|(name, _)| *name).collect();
    let names: Vec<&str> = match &options.name {
        Some(name) => vec![name],
        None if options.all => all,
        None => {
            let all = all.join(", ");
            return Err(Failure::input(format!(
                "no study is named; there are: {all}; or use --all"
            )));
        }
    };
    let mut studies = Vec::new();
    for name in names {
        let mut study = replay::load(name).map_err(Failure::input)?;
        let seeds = options.seeds.or(options.ablate.then_some(1)).unwrap_or(study.rounds);
        study.rounds = seeds;
        study.max_rounds = seeds;
        study.only.layouts.clone_from(&options.layout);
        study.only.workloads.clone_from(&options.workload);
        study.only.processes.clone_from(&options.processes);
        if options.ablate && options.processes.is_empty() {
            study.only.processes = ablate::processes(&study);
        }
        studies.push(study);
    }
    check_names(options, &studies)?;
    // Of several, those without a cell that is asked for are left out.
    let lacks = |study: &Study| raidlab_study::cells(study).is_empty();
    if studies.iter().all(lacks) {
        let what = "no cell has this layout, this workload and this process count at once";
        return Err(Failure::input(what));
    }
    studies.retain(|study| !lacks(study));
    Ok(studies)
}

/// Every name that cells are chosen by is one of a study.
fn check_names(options: &Replay, studies: &[Study]) -> Result<(), Failure> {
    let layouts = studies.iter().flat_map(|study| study.layouts.iter().map(|one| &*one.name));
    known("--layout", "layout", &options.layout, layouts.collect())?;
    let workloads = studies.iter().flat_map(|study| study.workloads.iter().map(|one| &*one.name));
    known("--workload", "workload", &options.workload, workloads.collect())?;
    let mut counts: Vec<u32> =
        studies.iter().flat_map(|study| study.processes.iter().copied()).collect();
    counts.sort_unstable();
    counts.dedup();
    if let Some(count) = options.processes.iter().find(|count| !counts.contains(count)) {
        let counts: Vec<String> = counts.iter().map(u32::to_string).collect();
        let counts = counts.join(", ");
        return Err(Failure::input(format!(
            "--processes {count}: no cell has that; there are: {counts}"
        )));
    }
    Ok(())
}

fn known(flag: &str, what: &str, names: &[String], known: Vec<&str>) -> Result<(), Failure> {
    let is_known = |name: &&String| known.iter().any(|one| is_same_name(one, name));
    let Some(name) = names.iter().find(|name| !is_known(name)) else {
        return Ok(());
    };
    let mut unique: Vec<&str> = Vec::new();
    for name in known {
        if !unique.contains(&name) {
            unique.push(name);
        }
    }
    let hint = raidlab_study::did_you_mean(name, &unique);
    let unique = unique.join(", ");
    Err(Failure::input(format!(
        "{flag} `{name}`: there is no such {what}{hint}; there are: {unique}"
    )))
}

/// What is left out of a study, and what of that it does not have.
struct LeftOut {
    here: Vec<Ablation>,
    missing: Vec<String>,
}

impl LeftOut {
    fn of(study: &Study, options: &Replay) -> Result<Self, Failure> {
        let modelled = Modelled::new(study, HostCosts::default()).map_err(Failure::input)?;
        let (mut here, mut missing) = (Vec::new(), Vec::new());
        for one in &options.without {
            let nothing = || format!("{} has nothing of that: no cell can move", study.title);
            match one.out_of_study(study).map(|_| one.is_in(&modelled)) {
                Ok(true) => here.push(one.clone()),
                Ok(false) => missing.push(format!("--without {one}: {}", nothing())),
                Err(what) => missing.push(format!("--without {one}: {what}")),
            }
        }
        Ok(Self { here, missing })
    }
}

/// What is left out of each study. One study must have all of it, of several one must have some.
fn left_out(studies: &[Study], options: &Replay) -> Result<Vec<LeftOut>, Failure> {
    let all: Vec<LeftOut> =
        studies.iter().map(|study| LeftOut::of(study, options)).collect::<Result<_, _>>()?;
    let missing = all.iter().find_map(|one| one.missing.first());
    let nowhere = all.iter().all(|one| one.here.is_empty()) || !options.all;
    match missing {
        Some(what) if nowhere => Err(Failure::input(what)),
        _ => Ok(all),
    }
}

/// A study's document, with whatever is to be left out.
fn one(
    study: &Study,
    left_out: &LeftOut,
    finished: Vec<CellRun>,
    options: &Replay,
    cancel: &'static AtomicBool,
) -> Result<Results, Failure> {
    let prepared = Prepared::new(study.clone(), &[])?;
    let mut results = run_study(&prepared, finished, options, cancel, "")?;
    if options.ablate {
        ablate::run(&prepared, options, cancel, &mut results)?;
    } else if !left_out.here.is_empty() {
        results = without(study, &left_out.here, options, cancel, &results)?;
    }
    results.warnings.extend(left_out.missing.iter().cloned());
    results.fidelity = Some(Fidelity::of(&results.cells, study.free_parameters().count()));
    results.findings = findings(&results);
    Ok(results)
}

/// The study without mechanisms, each cell beside what it is with all of them.
fn without(
    study: &Study,
    left_out: &[Ablation],
    options: &Replay,
    cancel: &'static AtomicBool,
    with_all: &Results,
) -> Result<Results, Failure> {
    let changed = Prepared::new(study.clone(), left_out)?;
    let mut results = run_study(&changed, Vec::new(), options, cancel, "without")?;
    for cell in &mut results.cells {
        let named = NamedCell::of(cell);
        let before = with_all.cells.iter().find(|one| named.is(one));
        cell.moved = before.and_then(|one| Moved::new(one.median, cell.median));
    }
    results.without = left_out.iter().map(ToString::to_string).collect();
    Ok(results)
}

/// Writes and prints what was asked for.
fn reports(options: &Replay, documents: Vec<Results>) -> Result<(), Failure> {
    let mut written = options.exports.write_but("json", &documents);
    let terminal = output::terminal(options.color);
    let report = terminal.replays(&documents).map_err(Failure::failed);
    if let Some(path) = options.exports.path("json") {
        // With --all it is one document that holds all, also where only one study has a chosen cell.
        let text = match options.all {
            true => Replays::new(documents).to_json(),
            false => documents.iter().map(Results::to_json).collect(),
        };
        let text = text.map_err(Failure::failed).and_then(|text| output::write(path, &text));
        written = written.and(text);
    }
    let quiet = options.quiet && !options.exports.is_empty();
    if written.is_err() || !(options.exports.prints() || quiet) {
        output::print(&report?)?;
    }
    written
}
