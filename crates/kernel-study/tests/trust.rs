//! What reports tell of the model's error is that of the measured cells and of the model.

use std::fs;
use std::path::Path;

use raidlab_kernel_study::drawn::drive_hashes;
use raidlab_kernel_study::fidelity::{Stored, predicted, trust_of, trust_table};
use raidlab_kernel_study::measured::{JOBS, comparable, read};
use raidlab_results::statistics::median;
use raidlab_results::trust::Trust;

/// How many cells are predicted again: all take minutes (`cargo xtask fidelity --trust`).
const SAMPLED: usize = 6;

fn stored() -> Vec<Stored> {
    let cells = Path::new(env!("CARGO_MANIFEST_DIR")).join("cells");
    let entries = fs::read_dir(cells).expect("is there");
    let mut paths: Vec<_> = entries.map(|entry| entry.expect("is there").path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "jsonl"));
    paths.sort();
    let drives = drive_hashes().expect("are there");
    let file = |path: &std::path::PathBuf| {
        let (head, cells) = read(&fs::read_to_string(path).expect("is text")).expect("is right");
        let (cells, _) = comparable(&head, cells, (&drives, JOBS));
        Stored::new(head, cells)
    };
    paths.iter().map(file).collect()
}

#[test]
fn what_is_recorded_follows_from_the_measured_cells() {
    let recorded = Trust::recorded();
    let made = trust_of(&stored(), &recorded.model);
    assert_eq!(made, *recorded, "stale: {}", recorded.made_by);
    let document = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/fidelity.md");
    let document = fs::read_to_string(document).expect("is there");
    let table = trust_table(recorded);
    assert!(document.contains(&table), "docs/fidelity.md shall have:\n{table}");
    // Coverage was measured on kinds of workload that have no part in the interval.
    let widest = recorded.groups.last().expect("has groups");
    let [within, of] = widest.covered;
    assert!(within * 10 >= of * 8 && of == widest.cells, "{within} of {of}");
}

/// Of a few cells: a model that says something else is told, and one that no longer keeps to what is printed fails.
#[test]
fn the_model_is_the_one_that_was_recorded() {
    let recorded = Trust::recorded();
    let (mut changed, mut outside) = (Vec::new(), Vec::new());
    for file in stored() {
        let said = &recorded.model[&file.drawing_name()];
        let cheap =
            |name: &str| !["bonnie", "tiobench", "cp", "dd-write", "dd-read"].contains(&name);
        let asked = file.asked().into_iter().filter(|(drawn, _)| {
            cheap(drawn.value("workload")) && drawn.value("filesystem") == "none"
        });
        for (drawn, metric) in asked.take(SAMPLED) {
            let values = predicted(drawn, metric, (file.seed(), file.kernel()))
                .expect("was predicted before");
            let now = median(&values).expect("has values");
            let ratio = now / said[&drawn.number];
            if !(0.99..1.01).contains(&ratio) {
                changed.push(drawn.name());
            }
            let widest = recorded.groups.last().expect("has groups").times;
            if !(1.0 / widest..widest).contains(&ratio) {
                outside.push(drawn.name());
            }
        }
    }
    if !changed.is_empty() {
        println!("stale: {}: the model says something else of {changed:?}", recorded.made_by);
    }
    assert!(outside.is_empty(), "{}: {outside:?}", recorded.made_by);
}
