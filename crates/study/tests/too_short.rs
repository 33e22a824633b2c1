//! Rounds that took too short a time to tell the first figure of their workload.

use std::collections::BTreeMap;

use crate::support::{on, sample};
use raidlab_core::Sectors;
use raidlab_results::{Clock, Results, TooShort};
use raidlab_study::{CellKey, Runner, Sample, Samples, Study, parse, run_rounds, summarise};

const NAME: &str = "bonnie-2.00 238MiB";

/// Three layouts that write at 900, 200 and 400 KiB/s; of the first this is not told in some rounds, its seeks are.
struct Fast(fn(u32) -> bool);

impl Runner for Fast {
    type Error = String;

    fn run(&mut self, key: &CellKey, round: u32, seed: u64) -> Result<Sample, String> {
        let noise = 1.0 + (seed % 1_000) as f64 * 1e-6;
        let write = [900.0, 200.0, 400.0][key.layout] * noise;
        let is_told = key.layout != 0 || !(self.0)(round);
        let mut values = vec![is_told.then_some(write), None, Some(write), None];
        // Of the first they get more from round to round.
        let more = if key.layout == 0 { f64::from(round) } else { 0.0 };
        values.extend([Some(write), None, Some(5.0 + more), None]);
        Ok(Sample { values, ..sample(0.0) })
    }
}

fn study() -> Study {
    let text = "title = \"t\"\nrounds = 6\nmax_rounds = 30\nprocesses = [1]\nbaseline = [\"raid1(2)\"]\n\
                filesystem = \"ext4\"\nhost = { kernel = \"linux-6.12\", memory = \"64MiB\" }\n\
                drives = [{ name = \"d\", model = \"nas-8tb-7200\", count = 4 }]\n\
                layouts = [{ level = \"raid0\", members = 4 }, { level = \"raid1\", members = 2 }, \
                { level = \"raid5\", members = 3 }]\n\
                workloads = [{ kind = \"bonnie-2.00\", size = \"238MiB\", ram = \"64MiB\", fast = true, n = \"0\" }]\n";
    parse(text, "t.toml").expect("a study")
}

fn run(study: &Study, is_short: fn(u32) -> bool) -> (Samples, Results) {
    let samples = run_rounds(study, &mut Fast(is_short), &mut on).expect("runs");
    let capacities = vec![Sectors(1 << 20); study.layouts.len()];
    let none = BTreeMap::new;
    let results =
        summarise(study, &samples, Clock::Virtual, none(), none(), Vec::new(), &capacities);
    (samples, results)
}

#[test]
fn a_figure_that_one_round_does_not_tell_is_named_and_its_row_has_no_best() {
    let (samples, results) = run(&study(), |round| round == 2);
    assert_eq!(samples.rounds, 6, "no number of rounds tells it");
    assert_eq!(samples.warnings, [""; 0]);
    let short = TooShort {
        layout: "raid0(4)".into(),
        workload: NAME.into(),
        processes: 1,
        state: "healthy".into(),
        metric: "block_write_kps".into(),
        settings: BTreeMap::new(),
        rounds: 1,
        of: 6,
    };
    assert_eq!(results.too_short, [short]);
    let said: Vec<&String> =
        results.warnings.iter().filter(|one| one.contains("too short")).collect();
    let expected = "rounds were too short to tell some figures, which are left out, so that nobody is best of their \
                    rows; use a larger size: raid0(4), bonnie-2.00 238MiB, 1 process (block_write_kps in 1 of \
                    6 rounds)";
    assert_eq!(said, [expected]);
    let row: Vec<_> = results.row(NAME, 1, "healthy").collect();
    let told: Vec<_> = row.iter().map(|cell| (&*cell.layout, &*cell.metric)).collect();
    assert_eq!(told, [("raid1(2)", "block_write_kps"), ("raid5(3)", "block_write_kps")]);
    assert!(row.iter().all(|cell| !cell.as_good_as_best), "it may be better than all");
    // What all rounds tell is compared as ever.
    let rewrite = |cell: &&raidlab_results::Cell| cell.metric == "rewrite_kps";
    let best: Vec<_> =
        results.cells.iter().filter(rewrite).map(|one| one.as_good_as_best).collect();
    assert_eq!(best, [true, false, false]);
    let text = results.to_json().expect("a text");
    assert_eq!(Results::from_json(&text).expect("the same"), results);
}

/// Seeks are not compared with writes, nor with themselves in its place.
#[test]
fn no_other_figure_stands_in_for_the_first() {
    let (samples, results) = run(&Study { measured: true, ..study() }, |_| true);
    assert_eq!(samples.rounds, 6);
    assert_eq!(
        results.too_short.iter().map(|one| (one.rounds, one.of)).collect::<Vec<_>>(),
        [(6, 6)]
    );
    let about = |what: &str| results.warnings.iter().any(|one| one.contains(what));
    assert!(!about("values moved") && !about("rounds depend"), "{:?}", results.warnings);
    let steady = run(&study(), |_| false).1;
    assert!(
        steady.too_short.is_empty() && !steady.to_json().expect("a text").contains("too_short")
    );
    assert!(
        steady.cells.iter().any(|cell| cell.metric == "block_write_kps" && cell.as_good_as_best)
    );
}
