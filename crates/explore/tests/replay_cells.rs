//! The cells of the published studies, by the names that the studies' own files list.

use std::collections::{BTreeMap, BTreeSet};

use raidlab_explore::Ablation;
use raidlab_predict::Modelled;
use raidlab_results::{Clock, Results};
use raidlab_sim::HostCosts;
use raidlab_study::{Only, Study, cells, replay, run_rounds, summarise};

fn load(name: &str) -> Study {
    replay::load(name).unwrap_or_else(|error| panic!("{error}"))
}

/// Layout, workload, processes, metric, block size.
type Name = (String, String, u32, String, String);

/// Every name a study will have, without running it.
fn names(study: &Study) -> BTreeSet<Name> {
    let mut names = BTreeSet::new();
    let mut count = 0;
    for key in cells(study) {
        let workload = key.workload(study).expect("no rebuilds");
        let layout = &study.layouts[key.layout].name;
        let mut metrics: Vec<String> =
            workload.shown.iter().map(|(_, called)| called.clone()).collect();
        if metrics.is_empty() {
            let all = workload.workload.metrics().into_iter();
            metrics = all.map(|metric| metric.name.to_string()).collect();
        }
        for metric in metrics {
            // The block, or the window.
            let block = workload.settings.values().cloned().collect::<Vec<_>>().join(" ");
            names.insert((layout.clone(), workload.name.clone(), key.processes, metric, block));
            count += 1;
        }
    }
    assert_eq!(names.len(), count, "no name twice");
    names
}

/// Every combination.
fn matrix(layouts: &[&str], workloads: &[&str], processes: &[u32], metrics: &[&str]) -> Vec<Name> {
    let mut names = Vec::new();
    for layout in layouts {
        for workload in workloads {
            for count in processes {
                for metric in metrics {
                    let (layout, workload) = (layout.to_string(), workload.to_string());
                    names.push((layout, workload, *count, metric.to_string(), String::new()));
                }
            }
        }
    }
    names
}

fn check(study: &str, count: usize, expected: Vec<Name>) {
    let found = names(&load(study));
    // Windows of read-ahead are searched for besides.
    let found: BTreeSet<Name> =
        found.into_iter().filter(|name| name.1 != "readahead_sweep").collect();
    let expected: BTreeSet<Name> = expected.into_iter().collect();
    let missing: Vec<_> = expected.difference(&found).collect();
    let further: Vec<_> = found.difference(&expected).collect();
    assert!(missing.is_empty() && further.is_empty(), "{study}: {missing:?}, not {further:?}");
    assert_eq!(found.len(), count, "{study}");
}

const PATA: [&str; 5] = ["disk1", "disk2", "raid0_linear", "raid0_striped", "raid1"];
const EVERYDAY: [&str; 6] =
    ["bonnie", "dd_zero_7000M", "cp_7000M_null", "cp_linux_tar", "tar_xf", "cp_rf"];
const ITE: [&str; 11] = [
    "md-raid0(1u)",
    "md-raid0(2u-2ch)",
    "md-raid0(2u-1ch)",
    "md-raid0(3u)",
    "md-raid0(4u)",
    "md-linear(4u)",
    "bios-raid0(2u-2ch)",
    "bios-raid0(2u-1ch)",
    "bios-raid0(3u)",
    "bios-raid0(4u)",
    "bios-linear(4u)",
];
const BONNIE: [&str; 8] = [
    "block_write_kps",
    "rewrite_kps",
    "block_read_kps",
    "seeks_per_s",
    "block_write_cp",
    "rewrite_cp",
    "block_read_cp",
    "seeks_cp",
];
const MIRRORS: [&str; 16] = [
    "single250",
    "single500",
    "gmirror2-rr",
    "gmirror3-rr",
    "gmirror5-rr",
    "gmirror2-split",
    "gmirror2-load",
    "nvidia-raid1",
    "promise-raid1",
    "linux-raid1(2)",
    "linux-raid1(3)",
    "linux-raid1(5)",
    "graid3(3)-R",
    "graid3(3)-r",
    "graid3(5)-R",
    "graid3(5)-r",
];
const SATA: [&str; 6] = ["single", "raid0(4)", "raid1(2)", "raid5(3)", "raid5(4)", "raid10(4)"];

#[test]
fn every_study_has_exactly_the_cells_its_file_lists() {
    check("pata-2005", 120, matrix(&PATA, &EVERYDAY, &[1, 2, 3, 4], &["seconds"]));
    check("ite8212-2006", 88, matrix(&ITE, &["bonnie-1.03"], &[1], &BONNIE));
    check("freebsd-2007", 80, matrix(&MIRRORS, &["cp_parallel"], &[1, 2, 3, 4, 5], &["mb_per_s"]));
    let sas = matrix(
        &["R0-4", "R0-2", "R5-4", "single"],
        &["seq_write", "rand_write"],
        &[1, 2, 4, 8],
        &["mib_per_s"],
    );
    check("sas-2008", 32, sas);
    let rates = ["hdparm_t", "dd_write_10G", "dd_read_10G"];
    let mut sata = matrix(&SATA, &rates, &[1], &["mib_per_s"]);
    sata.extend(matrix(&SATA, &["real_life"], &[1], &["seconds"]));
    let sweep = matrix(&SATA, &["blocksize_sweep"], &[1], &["mib_per_s"]);
    for block in ["4KiB", "16KiB", "64KiB", "256KiB", "1MiB"] {
        let with = |name: &Name| (block.to_string(), name.clone());
        sata.extend(sweep.iter().map(with).map(|(block, (a, b, c, d, _))| (a, b, c, d, block)));
    }
    check("sata-2018", 6 * (4 + 5), sata);
}

/// Runs some cells once.
fn run(study: &Study, without: &[Ablation]) -> Results {
    let mut changed = study.clone();
    for one in without {
        changed = one.out_of_study(&changed).expect("in the study");
    }
    let modelled = Modelled::new(&changed, HostCosts::default()).expect("it fits");
    let mut modelled = without.iter().fold(modelled, |modelled, one| one.out_of_drives(modelled));
    let mut go_on = |_: raidlab_study::Progress<'_>| std::ops::ControlFlow::Continue(());
    let samples = run_rounds(&changed, &mut modelled, &mut go_on).expect("a run");
    let capacities = modelled.capacities();
    let (host, settings) = (BTreeMap::new(), BTreeMap::new());
    summarise(&changed, &samples, Clock::Virtual, host, settings, Vec::new(), &capacities)
}

fn only(study: &str, layout: &str, workload: &str) -> Study {
    let mut study = load(study);
    let one = |name: &str| vec![name.to_string()];
    study.only = Only { layouts: one(layout), workloads: one(workload), processes: Vec::new() };
    (study.rounds, study.max_rounds) = (2, 2);
    study
}

#[test]
fn a_run_gives_the_cells_it_announces() {
    for (name, layout, workload, given) in [
        ("ite8212-2006", "md-raid0(1u)", "bonnie-1.03", 7),
        ("sata-2018", "raid5(3)", "hdparm_t", 0),
    ] {
        let study = only(name, layout, workload);
        let results = run(&study, &[]);
        let found = results.cells.iter().map(|cell| {
            let block = cell.settings.get("block").cloned().unwrap_or_default();
            let (layout, workload) = (cell.layout.clone(), cell.workload.clone());
            (layout, workload, cell.processes, cell.metric.clone(), block)
        });
        assert_eq!(found.collect::<BTreeSet<_>>(), names(&study), "{name}");
        assert_eq!(results.cells.iter().filter(|cell| cell.published.is_some()).count(), given);
        assert!(results.cells.iter().all(|cell| !cell.detail && cell.samples.len() == 2));
        let spread =
            results.cells.iter().all(|cell| cell.median == 0.0 || cell.spread_percent.is_some());
        assert!(spread, "{name}");
    }
}

/// What a cell comes to does not depend on which others are run.
#[test]
fn a_chosen_cell_is_the_cell_of_the_whole_study() {
    let study = load("sata-2018");
    let chosen = only("sata-2018", "raid10(4)", "real_life");
    let [one] = &cells(&chosen)[..] else { panic!("one cell") };
    let same = cells(&study).into_iter().find(|key| key == one).expect("in the whole study");
    let seed = |study: &Study| raidlab_study::cell_seed(study, &same, 0);
    assert_eq!(seed(&study), seed(&chosen));
}

/// The drive on a channel of its own is named, not the channel that is held for as long as it works.
#[test]
fn a_channel_is_a_bottleneck_only_where_drives_share_it() {
    let busiest = |layout: &str| {
        let results = run(&only("ite8212-2006", layout, "bonnie-1.03"), &[]);
        results.cells[0].bottleneck.clone().expect("something was busy").resource
    };
    assert_eq!(busiest("md-raid0(1u)"), "member 0");
    assert_eq!(busiest("md-raid0(2u-1ch)"), "ch0");
}

#[test]
fn mechanisms_have_names_that_are_read_back() {
    for one in Ablation::all() {
        assert_eq!(one.to_string().parse(), Ok(one.clone()));
        assert!(one.meaning().len() > 10, "{one}");
    }
    for (text, tenths) in [("parity-cost", 0), ("parity-cost=x0.5", 5), ("parity-cost=x10", 100)] {
        assert_eq!(text.parse(), Ok(Ablation::ParityCost { tenths }));
        assert_eq!(Ablation::ParityCost { tenths }.to_string(), text);
    }
    assert_eq!("path:pci".parse(), Ok(Ablation::Link("pci".into())));
    let error = "jurnal".parse::<Ablation>().expect_err("unknown");
    assert!(
        error.contains("did you mean `journal`?") && error.contains("channel-switch"),
        "{error}"
    );
    for wrong in ["parity-cost=x", "parity-cost=x-1", "parity-cost=x1e9", "parity-cost=2"] {
        assert!(wrong.parse::<Ablation>().is_err(), "{wrong}");
    }
}

/// Every study can be set up without any of its mechanisms, and has those it is known for.
#[test]
fn every_study_can_be_without_each_of_its_mechanisms() {
    let known: [(&str, &[&str]); 5] = [
        ("pata-2005", &["read-ahead", "journal", "pata-channel", "scheduler", "drive-write-cache"]),
        ("ite8212-2006", &["channel-switch", "channel-hold", "bus", "one-request-at-a-time"]),
        ("freebsd-2007", &["controller", "drive-read-ahead"]),
        ("sas-2008", &["write-through", "parity-cost", "controller-time", "link"]),
        ("sata-2018", &["bus", "parity-cost", "array-read-ahead", "request-cost"]),
    ];
    for (name, known) in known {
        let mut study = load(name);
        // Workloads are planned to see whether they fit, and that is not what this is about.
        study.workloads.truncate(1);
        study.processes.truncate(1);
        let modelled = Modelled::new(&study, HostCosts::default()).expect("it fits");
        let has: Vec<Ablation> =
            Ablation::all().into_iter().filter(|one| one.is_in(&modelled)).collect();
        let names: Vec<String> = has.iter().map(ToString::to_string).collect();
        for mechanism in known {
            assert!(
                names.iter().any(|one| one == mechanism),
                "{name} without {mechanism}: {names:?}"
            );
        }
        for one in &has {
            let changed = one.out_of_study(&study).expect("in the study");
            let modelled = Modelled::new(&changed, HostCosts::default()).expect("it fits");
            let modelled = one.out_of_drives(modelled);
            // One without and one with what makes the study's arrays, for time's sake.
            for layout in [0, changed.layouts.len() - 1] {
                modelled.world(layout, 1).unwrap_or_else(|error| panic!("{name} {one}: {error}"));
            }
        }
    }
    let pata = load("pata-2005");
    let modelled = Modelled::new(&pata, HostCosts::default()).expect("it fits");
    for absent in ["parity-cost", "controller", "bus"] {
        let absent: Ablation = absent.parse().expect("known");
        assert!(!absent.is_in(&modelled), "{absent}");
    }
    let error = Ablation::Link("pci".into()).out_of_study(&pata).expect_err("not there");
    assert!(error.contains("ide0, ide1"), "{error}");
}

/// What mechanisms are there for: cells move the way they must without them.
#[test]
fn cells_move_without_a_mechanism() {
    let value = |study: &Study, metric: &str, without: &[Ablation]| {
        let results = run(study, without);
        let cell = results.cells.into_iter().find(|cell| cell.metric == metric);
        cell.expect("measured").median
    };
    let shared = only("ite8212-2006", "md-raid0(2u-1ch)", "bonnie-1.03");
    let read = |without: &[Ablation]| value(&shared, "block_read_kps", without);
    let full = read(&[]);
    let (free, shared) = (read(&[Ablation::ChannelSwitch]), read(&[Ablation::ChannelHold]));
    assert!(free > 1.03 * full, "switching costs something: {full} and {free} KiB/s");
    assert!(shared > 1.1 * free, "holding the channel costs more: {free} and {shared} KiB/s");
    let array = only("sata-2018", "raid0(4)", "hdparm_t");
    let read = |without: &[Ablation]| value(&array, "mib_per_s", without);
    let bus = Ablation::Link("pci".into());
    assert!(read(&[bus]) > 1.5 * read(&[]), "four drives are faster than the bus");
}
