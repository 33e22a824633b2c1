//! The studies that are compiled in can all be run: each layout and workload once, with the fewest processes.

use std::collections::BTreeSet;

use raidlab_predict::Modelled;
use raidlab_sim::HostCosts;
use raidlab_study::{Runner, builtin, cells, parse, preamble};

/// One cell of each workload on one layout each, and one of each layout.
#[test]
fn each_runs_in_virtual_time() {
    for (name, text) in builtin() {
        let study = parse(text, name).unwrap_or_else(|error| panic!("{error}"));
        let mut modelled = Modelled::new(&study, HostCosts::default()).expect("modelled drives");
        let least = study.processes.iter().min().copied();
        let (mut layouts, mut workloads) = (BTreeSet::new(), BTreeSet::new());
        for key in cells(&study).iter().filter(|key| Some(key.processes) == least) {
            // The second condition is looked at only where the first does not hold: a cell counts for both.
            let (new_layout, new_workload) =
                (!layouts.contains(&key.layout), !workloads.contains(&key.workload));
            if !(new_layout || new_workload) {
                continue;
            }
            layouts.insert(key.layout);
            workloads.insert(key.workload);
            let ran = modelled.run(key, 0, 1).unwrap_or_else(|error| panic!("{name}: {error}"));
            assert!(!ran.values.is_empty(), "{name}");
        }
        assert_eq!(layouts.len(), study.layouts.len(), "{name}");
        assert!(!preamble(text).is_empty(), "{name} says when to use it");
    }
}
