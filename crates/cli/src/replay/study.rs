//! Running a published study on its modelled host.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;

use raidlab_core::Size;
use raidlab_explore::Ablation;
use raidlab_predict::Modelled;
use raidlab_results::{Clock, Results};
use raidlab_sim::HostCosts;
use raidlab_study::{CellRun, Host, Study, resume_rounds_parallel};

use super::args::Replay;
use crate::compare::{Setting, follow, results};
use crate::failure::Failure;
use crate::parallel;
use crate::progress::Bar;

/// A study without some mechanisms.
pub(super) struct Prepared {
    pub(super) study: Study,
    without: Vec<Ablation>,
}

impl Prepared {
    pub(super) fn new(mut study: Study, without: &[Ablation]) -> Result<Self, Failure> {
        for one in without {
            study = one
                .out_of_study(&study)
                .map_err(|what| Failure::input(format!("--without {one}: {what}")))?;
        }
        Ok(Self { study, without: without.to_vec() })
    }

    /// The study's machine. That its workloads fit was seen before anything ran, with all mechanisms.
    pub(super) fn modelled(&self) -> Result<Modelled<'_>, Failure> {
        let modelled = Modelled::unchecked(&self.study, HostCosts::default());
        let modelled = modelled.map_err(Failure::input)?;
        Ok(self.without.iter().fold(modelled, |modelled, one| one.out_of_drives(modelled)))
    }
}

/// Runs all cells of a study, but for what is finished; `what` says in the progress what is special.
pub(super) fn run_study(
    prepared: &Prepared,
    finished: Vec<CellRun>,
    options: &Replay,
    cancel: &'static AtomicBool,
    what: &str,
) -> Result<Results, Failure> {
    let study = &prepared.study;
    let modelled = prepared.modelled()?.stopping_on(cancel);
    let bar = Bar::new(options.quiet);
    let name = study.title.split(':').next().unwrap_or_default();
    bar.prefix(format!("{name} {what}").trim());
    let mut progress = follow(study, &bar, cancel);
    let threads = parallel::threads(options.threads);
    let samples =
        resume_rounds_parallel(study, finished, threads, || modelled.clone(), &mut progress);
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
    host.extend(machines(study));
    let paths: Vec<&str> = study.paths.iter().map(|path| path.name.as_str()).collect();
    if !paths.is_empty() {
        host.insert("paths".into(), paths.join(", "));
    }
    host
}

/// The hosts: `machine` where all layouts have the same, else each with the names of its layouts.
fn machines(study: &Study) -> Vec<(String, String)> {
    let mut machines: Vec<(String, Vec<&str>)> = Vec::new();
    for (index, layout) in study.layouts.iter().enumerate() {
        let Some(host) = study.host_of(index) else { continue };
        let words = machine(host);
        match machines.iter_mut().find(|(one, _)| *one == words) {
            Some((_, layouts)) => layouts.push(&layout.name),
            None => machines.push((words, vec![&layout.name])),
        }
    }
    let is_only = |layouts: &[&str]| layouts.len() == study.layouts.len();
    let named = |(words, layouts): (String, Vec<&str>)| match is_only(&layouts) {
        true => ("machine".to_string(), words),
        false => (format!("machine of {}", layouts.join(", ")), words),
    };
    machines.into_iter().map(named).collect()
}

/// A host in words.
fn machine(host: &Host) -> String {
    let processor = host.processor.map_or("processor of today", |one| one.name);
    let cores = host.spec.cores;
    let cores = if cores == 1 { "1 core".into() } else { format!("{cores} cores") };
    let (kernel, memory) = (host.spec.kernel.name(), Size(host.spec.memory));
    format!("{kernel}, {processor} with {cores}, {memory} of memory")
}

fn settings(study: &Study, seeds: &u32) -> BTreeMap<String, String> {
    let filesystem = study.filesystem.as_deref().unwrap_or("none");
    BTreeMap::from([
        ("filesystem".to_string(), filesystem.to_string()),
        ("seeds".to_string(), format!("{seeds}, drawn from the study's seed")),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn machines_are_those_of_the_layouts() {
        let told = |host: &str, second: &str| {
            let text = format!(
                "title = \"machines\"\nfilesystem = \"native\"\n{host}\n\
                 [[drives]]\nname = \"disk\"\nmodel = \"sata-250gb-7200\"\n\
                 [[layouts]]\nname = \"one\"\nlevel = \"single\"\n\
                 [[layouts]]\nname = \"two\"\nlevel = \"single\"\n{second}\n\
                 [[layouts]]\nname = \"three\"\nlevel = \"single\"\n\
                 [[workloads]]\nkind = \"cp-null\"\nsize = \"4MiB\"\n"
            );
            machines(&raidlab_study::parse(&text, "my.toml").expect("good"))
        };
        let one = |key: &str, words: &str| (key.to_string(), words.to_string());
        let old = "host = { kernel = \"linux-2.6.12\", processor = \"pentium3-860\", memory = \"756MiB\" }";
        let words = "linux-2.6.12, pentium3-860 with 1 core, 756MiB of memory";
        assert_eq!(told(old, ""), [one("machine", words)]);
        assert_eq!(told(old, "host = { memory = \"756MiB\" }"), [one("machine", words)]);
        let other = "linux-2.6.20, pentium3-860 with 1 core, 756MiB of memory";
        let of_two = one("machine of two", other);
        let second = "host = { kernel = \"linux-2.6.20\" }";
        assert_eq!(told(old, second), [one("machine of one, three", words), of_two]);
        let alone = "linux-2.6.20, processor of today with 4 cores, 8GiB of memory";
        assert_eq!(told("", second), [one("machine of two", alone)]);
        assert_eq!(told("", ""), []);
    }
}
