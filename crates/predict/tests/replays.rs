//! The published studies as study files: whole, possible, with their published figures.

use std::path::PathBuf;

use raidlab_predict::Modelled;
use raidlab_sim::HostCosts;
use raidlab_study::{Study, cells, load};

fn replay(name: &str) -> Study {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../studies/replay");
    load(&path.join(format!("{name}.toml"))).unwrap_or_else(|error| panic!("{error}"))
}

/// Runs of a study, and how many published figures it has.
#[test]
fn every_published_study_can_be_run_with_all_its_cells() {
    for (name, runs, given) in [
        ("pata-2005", 5 * 6 * 4, 11),
        ("ite8212-2006", 11, 13),
        ("sas-2008", 4 * 2 * 4, 8),
        ("sata-2018", 6 * 9, 1),
        // Windows of FreeBSD on three layouts, of Linux on one.
        ("freebsd-2007", 16 * 5 + 5 * 3 + 6, 0),
    ] {
        let study = replay(name);
        assert!(study.title.starts_with(name), "{}", study.title);
        assert_eq!((cells(&study).len(), study.given.len()), (runs, given), "{name}");
        assert!(study.host.is_some() && !study.paths.is_empty(), "{name}");
        let modelled = Modelled::new(&study, HostCosts::default());
        let modelled = modelled.unwrap_or_else(|error| panic!("{error}"));
        for layout in 0..study.layouts.len() {
            modelled.world(layout, 1).unwrap_or_else(|error| panic!("{error}"));
        }
    }
}

/// What lies between host and drives shows: members on one channel are slower than on two.
#[test]
fn drives_on_one_channel_wait_for_each_other() {
    let mut study = replay("ite8212-2006");
    let workload = raidlab_workload::make(
        "dd-read",
        raidlab_workload::Parameters::new([("size", "64MiB"), ("block", "1MiB")]).expect("pairs"),
    );
    study.workloads = vec![raidlab_workload::WorkloadSpec::new(workload.expect("a workload"))];
    study.given.clear();
    study.filesystem = None;
    let modelled = Modelled::new(&study, HostCosts::default()).expect("it fits");
    let rate = |name: &str| {
        let key = *cells(&study)
            .iter()
            .find(|key| study.layouts[key.layout].name == name)
            .expect("a layout");
        let mut world = modelled.world(key.layout, 1).expect("a world");
        let run = modelled.run_on(&mut world, &key, 1).expect("a run");
        run.headline(&study, &key).expect("a rate")
    };
    let (one, two) = (rate("md-raid0(2u-1ch)"), rate("md-raid0(2u-2ch)"));
    assert!(one < 0.8 * two, "{one} and {two} MiB/s");
    let firmware = rate("bios-raid0(2u-2ch)");
    assert!(firmware < two, "{firmware} and {two} MiB/s");
}
