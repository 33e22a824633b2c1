//! What is tuned: the layouts of a study, or those that the flags describe.

use raidlab_core::Layout;
use raidlab_core::layout::is_same_name;
use raidlab_models::host::Kernel;
use raidlab_study::{DriveSource, Host, NATIVE, NamedLayout, Study, did_you_mean};
use raidlab_workload::{Parameters, WorkloadSpec, make};

use super::args::Readahead;
use crate::failure::Failure;

/// The study with nothing but reading as its workload, and the positions of its layouts that are tuned.
pub(super) fn load(options: &Readahead) -> Result<(Study, Vec<usize>), Failure> {
    let mut study = match &options.study {
        Some(path) => raidlab_study::load(path).map_err(Failure::input)?,
        None => described(options)?,
    };
    study.workloads = vec![reading(options)?];
    study.given.clear();
    study.processes = vec![options.processes];
    if let Some(seed) = options.seed {
        study.seed = seed;
    }
    if study.filesystem.is_none() {
        study.set_filesystem(NATIVE).map_err(Failure::input)?;
    }
    let all = (0..study.layouts.len()).collect();
    let chosen = if options.study.is_some() { named(&study, &options.layout)? } else { all };
    Ok((study, chosen))
}

/// Copies that read a file each.
fn reading(options: &Readahead) -> Result<WorkloadSpec, Failure> {
    let pairs = [("files", options.processes.to_string()), ("size", options.size.0.to_string())];
    let made = Parameters::new(pairs).and_then(|parameters| make("cp-parallel", parameters));
    let made = made.map_err(|error| Failure::input(format!("--size {}: {error}", options.size)))?;
    Ok(WorkloadSpec::new(made))
}

/// The layouts of these names, each once; all where none is named.
fn named(study: &Study, names: &[String]) -> Result<Vec<usize>, Failure> {
    if names.is_empty() {
        return Ok((0..study.layouts.len()).collect());
    }
    let known: Vec<&str> = study.layouts.iter().map(|layout| layout.name.as_str()).collect();
    let mut chosen = Vec::new();
    for name in names {
        let Some(at) = known.iter().position(|one| is_same_name(one, name)) else {
            let (hint, known) = (did_you_mean(name, &known), known.join(", "));
            let reason = format!("names no layout of the study{hint}; they are: {known}");
            return Err(Failure::input(format!("--layout {name}: {reason}")));
        };
        if !chosen.contains(&at) {
            chosen.push(at);
        }
    }
    Ok(chosen)
}

/// The default study's layouts, or those of the flags, on equal drives.
fn described(options: &Readahead) -> Result<Study, Failure> {
    let text = raidlab_study::default_study();
    let mut study = raidlab_study::parse(text, "the default study").map_err(Failure::failed)?;
    study.title = "the layouts of the default study".to_string();
    if !options.layout.is_empty() {
        study.title = "the layouts named".to_string();
        let mut layouts = Vec::new();
        for text in &options.layout {
            let layout: Layout = text
                .parse()
                .map_err(|reason| Failure::input(format!("--layout {text}: {reason}")))?;
            layouts.push(NamedLayout::plain(layout));
        }
        study.baseline = vec![layouts[0].name.clone()];
        study.layouts = layouts;
    }
    study.drives.truncate(1);
    let most = study.layouts.iter().map(|layout| layout.layout.drives()).max();
    study.drives[0].count = most.unwrap_or(1);
    if let Some(model) = &options.drives {
        study.drives[0].source = DriveSource::Model(model.clone());
    }
    study.host = Some(Host::new(kernel(options)?.spec()));
    Ok(study)
}

fn kernel(options: &Readahead) -> Result<Kernel, Failure> {
    let Some(name) = &options.kernel else { return Ok(Kernel::Linux6_1) };
    name.parse().map_err(|reason| {
        let hint = did_you_mean(name, &Kernel::ALL.map(Kernel::name));
        Failure::input(format!("--kernel: {reason}{hint}"))
    })
}
