//! What the document says of cells in states other than healthy.

use std::collections::BTreeMap;

use crate::support::{on, sample};
use raidlab_core::{Nanos, Sectors};
use raidlab_results::{Clock, Results};
use raidlab_study::{
    CellKey, Latency, Rebuild, Runner, Sample, State, Study, run_rounds, summarise,
};

/// A runner whose cells take 100 s; what a rebuilding one sees of the rebuild is given by round.
struct Rebuilds(fn(u32) -> Rebuild);

impl Runner for Rebuilds {
    type Error = String;

    fn run(&mut self, key: &CellKey, round: u32, _: u64) -> Result<Sample, String> {
        let rebuild = (self.0)(round);
        if key.processes == 0 {
            return Ok(Sample::of_rebuild(rebuild.seconds().expect("some was done").0, rebuild));
        }
        let time = |millis: u64| Nanos(millis * 1_000_000);
        let latency = Latency { p50: time(1), p99: time(7), p999: time(8), max: time(9) };
        let rebuild = (key.state == State::Rebuilding).then_some(rebuild);
        let last_done = Nanos(100_000_000_000);
        Ok(Sample { latency: Some(latency), rebuild, last_done, ..sample(10.0 + f64::from(round)) })
    }
}

fn study(states: &str, layouts: &str, head: &str) -> Study {
    let text = format!(
        "title = \"t\"\nrounds = 3\nmax_rounds = 3\nprocesses = [2]\nstates = [{states}]\n{head}\n\
         drives = [{{ name = \"d\", model = \"nas-8tb-7200\", count = 6 }}]\nlayouts = [{layouts}]\n\
         workloads = [{{ kind = \"random-read\", name = \"read\", size = \"64KiB\" }}]\n"
    );
    let mut study = raidlab_study::parse(&text, "t.toml").expect("a study");
    study.modelled = true;
    study
}

fn results(study: &Study, rebuild: fn(u32) -> Rebuild) -> Results {
    let samples = run_rounds(study, &mut Rebuilds(rebuild), &mut on).expect("runs");
    let none = BTreeMap::new;
    let capacities = vec![Sectors(1 << 20); study.layouts.len()];
    summarise(study, &samples, Clock::Virtual, none(), none(), Vec::new(), &capacities)
}

const FIVE: &str = "{ level = \"raid5\", members = 4 }";

fn seconds(elapsed: u64, done: f64) -> Rebuild {
    Rebuild { elapsed: Nanos(elapsed * 1_000_000_000), done }
}

/// State, workload, metric, median and note of each cell.
fn told(results: &Results) -> Vec<(&str, &str, &str, f64, Option<&str>)> {
    results
        .cells
        .iter()
        .map(|cell| {
            let note = cell.note.as_deref();
            (&*cell.state, &*cell.workload, &*cell.metric, cell.median, note)
        })
        .collect()
}

#[test]
fn latencies_stand_in_every_state_and_measured_rebuilds_beside_them() {
    let study = study("\"healthy\", \"degraded\", \"rebuilding\"", FIVE, "");
    let results = results(&study, |_| seconds(25, 1.0));
    let note = Some("the rebuild ended after 25 % of the run");
    let expected = [
        ("healthy", "read", "iops", 11.0, None),
        ("healthy", "read", "p99_ms", 7.0, None),
        ("degraded", "read", "iops", 11.0, None),
        ("degraded", "read", "p99_ms", 7.0, None),
        ("rebuilding", "read", "iops", 11.0, note),
        ("rebuilding", "read", "p99_ms", 7.0, note),
        ("rebuilding", "read", "rebuild_s", 25.0, None),
        ("rebuilding", "rebuild", "rebuild_s", 25.0, None),
    ];
    assert_eq!(told(&results), expected);
    let went_on: Vec<&String> =
        results.warnings.iter().filter(|one| one.contains("went on without one")).collect();
    let [warning] = went_on[..] else { panic!("{:?}", results.warnings) };
    assert_eq!(
        warning.matches("25 % of the run").count(),
        1,
        "once, not for latencies too: {warning}"
    );
}

/// In one round of three the rebuild had not ended: all three are times over the share that was done.
#[test]
fn one_round_that_did_not_end_makes_an_estimate() {
    let study = study("\"rebuilding\"", FIVE, "");
    let results =
        results(&study, |round| if round == 1 { seconds(10, 0.25) } else { seconds(30, 1.0) });
    let rebuilds: Vec<_> =
        told(&results).into_iter().filter(|one| one.2.starts_with("rebuild")).collect();
    let note = Some("estimated from 100.00 % of the rebuild");
    let expected = [
        ("rebuilding", "read", "rebuild_estimate_s", 30.0, note),
        ("rebuilding", "rebuild", "rebuild_estimate_s", 30.0, note),
    ];
    assert_eq!(rebuilds, expected);
    assert_eq!(results.cells[2].samples, [30.0, 40.0, 30.0]);
    assert!(results.warnings.iter().any(|one| one.starts_with("2 rebuild times are estimates")));
}

#[test]
fn notes_say_what_share_an_estimate_is_from() {
    let study = study("\"rebuilding\"", FIVE, "");
    let note = |rebuild| {
        let results = results(&study, rebuild);
        let found = results.cells.iter().find(|cell| cell.metric == "rebuild_estimate_s");
        found.and_then(|cell| cell.note.clone()).expect("an estimate")
    };
    assert_eq!(note(|_| seconds(10, 0.25)), "estimated from 25.00 % of the rebuild");
    assert_eq!(note(|_| seconds(10, 0.001)), "estimated from 0.10 % of the rebuild");
    assert_eq!(note(|_| seconds(10, 0.0005)), "estimated from 0.0500 % of the rebuild");
    // A rebuild that ends with the run or after it ran beside all of it.
    let whole = results(&study, |_| seconds(100, 1.0));
    assert!(whole.cells.iter().all(|cell| cell.note.is_none()));
    let nearly = results(&study, |_| Rebuild { elapsed: Nanos(99_600_000_000), done: 1.0 });
    assert!(nearly.cells.iter().all(|cell| cell.note.is_none()), "never \"100 % of the run\"");
    assert!(!nearly.warnings.iter().any(|one| one.contains("went on without one")));
    let most = results(&study, |_| Rebuild { elapsed: Nanos(99_400_000_000), done: 1.0 });
    assert!(most.warnings.iter().any(|one| one.contains("after 99 % of the run")));
}

/// A time that reports call unknown is no baseline, and has no verdict in JSON and CSV either.
#[test]
fn nothing_is_compared_with_a_rebuild_that_is_unknown() {
    let layouts = format!("{FIVE}, {{ level = \"raid6\", members = 4 }}");
    let study = study("\"rebuilding\"", &layouts, "");
    struct Differ(u64);
    impl Runner for Differ {
        type Error = String;

        fn run(&mut self, key: &CellKey, round: u32, seed: u64) -> Result<Sample, String> {
            let mut sample = Rebuilds(|_| seconds(5, 0.5)).run(key, round, seed)?;
            sample.last_done = Nanos(5_000_000_000);
            if key.layout == self.0 as usize && key.processes > 0 {
                sample.rebuild = Some(seconds(5, 0.000_4));
            }
            Ok(sample)
        }
    }
    for unknown in [0, 1] {
        let samples = run_rounds(&study, &mut Differ(unknown), &mut on).expect("runs");
        let capacities = [Sectors(1 << 20); 2];
        let none = BTreeMap::new;
        let told =
            summarise(&study, &samples, Clock::Virtual, none(), none(), Vec::new(), &capacities);
        let beside = told.cells.iter().filter(|cell| cell.metric == "rebuild_estimate_s");
        let beside: Vec<_> = beside.filter(|cell| cell.processes > 0).collect();
        assert_eq!(beside.len(), 2);
        for cell in beside {
            assert!(!cell.as_good_as_best && cell.verdict.is_none(), "{unknown}: {cell:?}");
            let is_known = |one: &f64| one.abs() < 1e-9;
            assert!(cell.percent_vs_baseline.is_none_or(|one| is_known(&one)), "{cell:?}");
            assert_eq!(
                cell.percent_vs_baseline.is_some(),
                unknown == 1 && cell.layout == "raid5(4)"
            );
        }
        let read = Results::from_json(&told.to_json().expect("JSON")).expect("a document");
        assert_eq!(read, told, "what is written is what is read");
    }
}

#[test]
fn layouts_that_lack_a_state_are_named() {
    let layouts = format!(
        "{FIVE}, {{ level = \"raid5\", members = 4, spares = 1 }}, {{ level = \"single\" }}"
    );
    let study = study("\"degraded\", \"rebuilding\"", &layouts, "");
    let results = results(&study, |_| seconds(25, 1.0));
    let said = |text: &str| results.warnings.iter().any(|one| one == text);
    assert!(
        said("without redundancy, so neither degraded nor rebuilding: single"),
        "{:?}",
        results.warnings
    );
    assert!(said("with hot spares, so rebuilding and never left degraded: raid5(4) spares=1"));
}

/// md's stripe cache grows for minutes beside a rebuild: only of its arrays with stripes, beside a workload, and only
/// where the rebuild went on to the end, is it told.
#[test]
fn what_shows_only_the_first_seconds_of_a_rebuild_is_named() {
    let layouts = format!(
        "{FIVE}, {{ level = \"raid1\", members = 2 }}, {{ level = \"raid50\", members = 6 }}"
    );
    let host = "host = { kernel = \"linux-6.1\" }";
    let told = |head: &str, modelled: bool, rebuild: fn(u32) -> Rebuild| -> Vec<String> {
        let study = Study { modelled, ..study("\"rebuilding\"", &layouts, head) };
        let all = results(&study, rebuild).warnings;
        all.into_iter().filter(|one| one.contains("show the first")).collect()
    };
    let partly: fn(u32) -> Rebuild = |_| seconds(100, 0.5);
    let warnings = told(host, true, partly);
    assert_eq!(warnings.len(), 1);
    assert!(
        warnings[0].starts_with("rebuilding cells of raid5(4) show the first 100.0 s or less"),
        "{warnings:?}"
    );
    assert_eq!(told(host, false, partly), [""; 0], "measured");
    assert_eq!(told("", true, partly), [""; 0], "raidlab's own engine");
    assert_eq!(told(host, true, |_| seconds(25, 1.0)), [""; 0], "ended meanwhile");
}

#[test]
fn states_are_replaced_where_they_can_be() {
    let named = |name: &str| {
        let workloads = format!(
            "{{ kind = \"random-read\", name = \"{name}\", size = \"64KiB\" }}, \
             {{ kind = \"random-read\", name = \"read\", size = \"64KiB\" }}"
        );
        let text = format!(
            "title = \"t\"\ndrives = [{{ name = \"d\", model = \"nas-8tb-7200\", count = 4 }}]\n\
             layouts = [{FIVE}]\nworkloads = [{workloads}]\n"
        );
        raidlab_study::parse(&text, "t.toml").expect("a study")
    };
    let mut study = named("rebuild");
    study.set_states(vec![State::Degraded]).expect("no rows of rebuilds");
    assert_eq!(study.states, [State::Degraded]);
    let error = study
        .set_states(vec![State::Healthy, State::Rebuilding])
        .expect_err("one of two workloads");
    assert!(error.contains("another `name`") && study.states == [State::Degraded], "{error}");
    named("other").set_states(vec![State::Rebuilding]).expect("nothing is called so");
}

/// Beside the first seconds of a rebuild nothing has settled: figures are shown, and a warning says why there is no
/// verdict on them. What is healthy, longer, real, or goes on behind its rebuild is compared.
#[test]
fn the_first_seconds_of_a_rebuild_are_compared_with_none() {
    struct Short(u64, f64);
    impl Runner for Short {
        type Error = String;

        fn run(&mut self, key: &CellKey, _: u32, _: u64) -> Result<Sample, String> {
            let last_done = Nanos(self.0 * 1_000_000);
            let rebuild = Rebuild { elapsed: last_done, done: self.1 };
            if key.processes == 0 {
                return Ok(Sample::of_rebuild(key.layout as f64 + 1.0, rebuild));
            }
            let rebuild = (key.state == State::Rebuilding).then_some(rebuild);
            Ok(Sample { rebuild, last_done, ..sample((key.layout * 10 + 10) as f64) })
        }
    }
    let layouts = format!("{FIVE}, {{ level = \"raid6\", members = 5 }}");
    let told = |runner: Short, is_real: bool, baseline: &str| {
        let head = format!("baseline = [{baseline}]");
        let mut study = study("\"healthy\", \"rebuilding\"", &layouts, &head);
        study.measured = is_real;
        let samples = run_rounds(&study, &mut { runner }, &mut on).expect("runs");
        let none = BTreeMap::new;
        let capacities = vec![Sectors(1 << 20); 2];
        let results =
            summarise(&study, &samples, Clock::Virtual, none(), none(), Vec::new(), &capacities);
        let compared = |state: &str, is_rebuild: bool| {
            let of = |cell: &&raidlab_results::Cell| {
                cell.state == state && cell.metric.starts_with("rebuild") == is_rebuild
            };
            let cells: Vec<_> = results.cells.iter().filter(of).collect();
            assert!(!cells.is_empty(), "{state}");
            let is_one = |cell: &&raidlab_results::Cell| {
                cell.percent_vs_baseline.is_some() || cell.as_good_as_best
            };
            let is_compared = cells.iter().any(is_one);
            // The document says which of its cells are compared with none.
            assert!(cells.iter().all(|cell| cell.unsettled != is_compared), "{state}");
            is_compared
        };
        let is_warned = results.warnings.iter().any(|one| one.starts_with("no verdict while"));
        (compared("healthy", false), compared("rebuilding", false), is_warned)
    };
    // A baseline of several is compared with its own mean.
    for baseline in ["\"raid5(4)\"", "\"raid5(4)\", \"raid6(5)\""] {
        assert_eq!(told(Short(900, 0.1), false, baseline), (true, false, true));
        for (runner, is_real) in
            [(Short(3_100, 0.1), false), (Short(900, 1.0), false), (Short(900, 0.1), true)]
        {
            assert_eq!(told(runner, is_real, baseline), (true, true, false));
        }
    }
}
