//! What the runs of cells warn of stands in the document, with the cells.

use std::collections::BTreeMap;

use crate::support::{on, sample};
use raidlab_core::Sectors;
use raidlab_results::Clock;
use raidlab_study::{CellKey, Runner, Sample, Study, default_study, parse, run_rounds, summarise};

/// Gives these warnings.
struct Warns(fn(&CellKey, u32) -> Vec<String>);

impl Runner for Warns {
    type Error = String;

    fn run(&mut self, key: &CellKey, round: u32, _: u64) -> Result<Sample, String> {
        Ok(Sample { warnings: (self.0)(key, round), ..sample(100.0) })
    }
}

/// One workload on six layouts.
fn study() -> Study {
    let mut study = parse(default_study(), "default").expect("a study");
    (study.rounds, study.max_rounds, study.processes) = (8, 8, vec![1]);
    study.layouts.truncate(6);
    study.workloads.truncate(1);
    study
}

fn told(study: &Study, warnings: fn(&CellKey, u32) -> Vec<String>) -> Vec<String> {
    let samples = run_rounds(study, &mut Warns(warnings), &mut on).expect("runs");
    let capacities = vec![Sectors(1 << 20); study.layouts.len()];
    let none = BTreeMap::new;
    summarise(study, &samples, Clock::Virtual, none(), none(), Vec::new(), &capacities).warnings
}

/// Warnings of all rounds and cells are one where they differ in numbers only.
#[test]
fn a_warning_stands_there_once_with_its_cells() {
    let left = |key: &CellKey, round: u32| match key.layout {
        0 => Vec::new(),
        layout => vec![format!("{} MiB were left", 300 + 10 * layout as u32 + round)],
    };
    let expected = "310 to 357 MiB were left: linear(4), dd-write 6MiB, 1 process; raid0(4), dd-write 6MiB, \
                    1 process; raid1(2), dd-write 6MiB, 1 process; raid4(4), dd-write 6MiB, 1 process; 1 more";
    assert_eq!(told(&study(), left), [expected]);
    let same = |key: &CellKey, _: u32| match key.layout {
        2 => vec!["300 MiB were left".to_owned(), "went through threads".to_owned()],
        _ => Vec::new(),
    };
    assert_eq!(
        told(&study(), same),
        ["300 MiB were left", "went through threads"]
            .map(|one| format!("{one}: raid0(4), dd-write 6MiB, 1 process"))
    );
}

/// Paths of one run are not those of another; and who is measured twice a round is shown once.
#[test]
fn what_all_cells_warn_of_names_none() {
    let in_memory = |key: &CellKey, round: u32| {
        vec![format!("/mnt/run-{round}{}/target lies in memory", key.layout)]
    };
    let expected = ["/mnt/run-00/target lies in memory: all 6 cells"];
    // The first run of the first cell.
    assert_eq!(told(&study(), in_memory), expected);
    let again = |key: &CellKey, _: u32| match key.again {
        true => vec!["could not be dropped".to_owned()],
        false => Vec::new(),
    };
    let measured = Study { measured: true, ..study() };
    assert_eq!(told(&measured, again), ["could not be dropped: single, dd-write 6MiB, 1 process"]);
    assert_eq!(told(&measured, in_memory), expected);
}
