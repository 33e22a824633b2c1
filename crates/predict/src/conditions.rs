//! What the results of a run in virtual time say besides its cells.

use std::collections::BTreeMap;

use raidlab_core::{Nanos, Sectors, Size};
use raidlab_results::trust::{Traits, Trust};
use raidlab_sim::HostCosts;
use raidlab_study::{NO_HOST, Study};

use crate::Modelled;

/// What a study's cells in virtual time have in common, as [`summarise`](raidlab_study::summarise) takes it: the same
/// for everyone who runs the study.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conditions {
    /// The drives and the processor.
    pub host: BTreeMap<String, String>,
    /// The target, what is cached, and where the drives' figures are from.
    pub settings: BTreeMap<String, String>,
    /// What must be known before believing the numbers.
    pub warnings: Vec<String>,
    /// What the layouts hold.
    pub capacities: Vec<Sectors>,
}

impl Conditions {
    /// Of a study on modelled drives and a modelled host.
    pub fn of(modelled: &Modelled<'_>) -> Self {
        Self {
            host: host(modelled),
            settings: settings(modelled),
            warnings: vec![
                "modelled drives: with figures taken from a drive itself the model is 1.4 to 2.5 % off in \
                 five measured drives (docs/fidelity.md); most figures of these drive files come from \
                 data sheets or are estimates, and the error is not known"
                    .into(),
                host_warning(modelled.study()),
            ],
            capacities: modelled.capacities(),
        }
    }

    /// The drives of each group.
    pub fn drives(modelled: &Modelled<'_>) -> BTreeMap<String, String> {
        let study = modelled.study();
        let groups = study.drives.iter().zip(modelled.drives()).enumerate();
        let drives = groups.map(|(at, (group, drive))| {
            let title = format!("{} ({})", drive.title, drive.name);
            (format!("drives {}", group.name), study.drives_in_words(at, &title))
        });
        drives.collect()
    }

    /// Where the figures of each drive are from.
    pub fn figures(modelled: &Modelled<'_>) -> BTreeMap<String, String> {
        let of_drive = |drive: &raidlab_models::DriveSpec| {
            let counts = ["data sheet", "measured", "estimate"].map(|status| {
                let count = drive.figures.iter().filter(|f| f.status.name() == status).count();
                format!("{count} {status}")
            });
            (format!("figures of {}", drive.name), counts.join(", "))
        };
        modelled.drives().iter().map(of_drive).collect()
    }
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

fn host(modelled: &Modelled<'_>) -> BTreeMap<String, String> {
    let costs = modelled.costs();
    let cpu = match costs {
        HostCosts { request: Nanos::ZERO, parity_rate: u64::MAX } => {
            "requests and parity take no time".to_string()
        }
        HostCosts { request, parity_rate } => format!(
            "{} us a request, parity of {} GB/s",
            request.0 as f64 / 1e3,
            parity_rate as f64 / 1e9
        ),
    };
    let mut host = Conditions::drives(modelled);
    host.insert("modelled cpu".to_string(), cpu);
    host
}

fn settings(modelled: &Modelled<'_>) -> BTreeMap<String, String> {
    let study = modelled.study();
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
    settings.extend(Conditions::figures(modelled));
    settings
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
                let memory = Size(host.spec.cache.unwrap_or(host.spec.memory));
                format!("a modelled host with {} and a page cache of {memory}", host.spec.kernel)
            }
        };
        if !hosts.contains(&host) {
            hosts.push(host);
        }
    }
    hosts.join("; ")
}
