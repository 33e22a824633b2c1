//! What of the rounds the document keeps for figures.

use crate::support;
use std::collections::BTreeMap;

use raidlab_core::{Nanos, Sectors};
use raidlab_results::{Cell, Clock, LATENCY_SHARES};
use raidlab_study::{Detail, Runner, Sample, Study, run_rounds, summarise};
use raidlab_workload::TimeSeries;

/// A runner whose rounds differ by the round's number.
struct Rounds;

impl Runner for Rounds {
    type Error = String;

    fn run(&mut self, _: &raidlab_study::CellKey, round: u32, _: u64) -> Result<Sample, String> {
        let n = u64::from(round) + 1;
        let detail = Detail {
            ends: vec![n * 1_000_000_000, n * 2_000_000_000],
            latencies: LATENCY_SHARES.map(|share| (share * 1e6) as u64 * n).to_vec(),
            busy: vec![("cpu".to_string(), 0.1 * n as f64), ("member 0".to_string(), 0.5)],
            series: Some(series()),
            flushed_p99: None,
        };
        // Of rounds 1 to 5 the fourth has the value in the middle.
        let value = [50.0, 10.0, 20.0, 30.0, 40.0][round as usize];
        Ok(Sample { last_done: Nanos(3 << 20), detail, ..support::sample(value) })
    }
}

/// Two bins of 2^20 ns, with 1 and 3 MiB, and half of a third.
fn series() -> TimeSeries {
    let bin = |mebibytes: u64, millionths: u32| {
        format!("[1,{},4000000,4000000,{millionths}]", mebibytes << 20)
    };
    let text = format!("{{\"shift\":20,\"bins\":[{},{}]}}", bin(1, 0), bin(3, 250_000));
    serde_json::from_str(&text).expect("a series")
}

fn study() -> Study {
    let text = "title = \"t\"\nbaseline = [\"single\"]\nrounds = 5\nmax_rounds = 5\nprocesses = [2]\n\
                [[drives]]\nname = \"d\"\nmodel = \"nas-8tb-7200\"\ncount = 4\n\
                [[layouts]]\nlevel = \"single\"\n[[layouts]]\nlevel = \"raid5\"\nmembers = 4\n\
                [[workloads]]\nkind = \"dd-read\"\nsize = \"64MiB\"\n";
    raidlab_study::parse(text, "t.toml").expect("a study")
}

#[test]
fn a_cell_keeps_medians_over_rounds_and_the_round_in_the_middle() {
    let study = study();
    let samples = run_rounds(&study, &mut Rounds, &mut support::on).expect("runs");
    let none = BTreeMap::new;
    let capacities = [Sectors(1), Sectors(2)];
    let results =
        summarise(&study, &samples, Clock::Virtual, none(), none(), Vec::new(), &capacities);
    assert_eq!(results.latency_shares, LATENCY_SHARES);
    assert_eq!(results.layouts[1].blocks[0], "0 1 2 P");
    assert_eq!((results.layouts[0].chunk, results.layouts[1].chunk), (None, Some(512 << 10)));
    let cell: &Cell = &results.cells[1];
    assert_eq!(cell.done_s, [3.0, 6.0]);
    assert_eq!(cell.latency_curve_ms[1..3], [0.03, 0.15]);
    let busy: Vec<(&str, f64)> =
        cell.busy.iter().map(|one| (one.resource.as_str(), one.busy)).collect();
    assert_eq!(busy, [("cpu", 0.3), ("member 0", 0.5)]);
    let line = cell.timeline.as_ref().expect("a timeline");
    assert_eq!((line.round, line.unit.as_str()), (4, "MiB/s"));
    // The second bin ends with the bin, as the run is longer than both.
    assert_eq!(line.rate, [953.7, 2_861.0]);
    assert_eq!(line.mean_ms, [Some(4.0), Some(4.0)]);
    assert_eq!(line.rebuilt_percent, [Some(0.0), Some(25.0)]);
    let text = results.to_json().expect("a document");
    assert_eq!(raidlab_results::Results::from_json(&text).expect("is read"), results);
}

/// What the rounds show stands at the first figure that the study shows, and goes by it: here not the workload's first.
#[test]
fn the_course_is_that_of_the_figure_that_is_shown() {
    struct Two;
    impl Runner for Two {
        type Error = String;
        fn run(
            &mut self,
            key: &raidlab_study::CellKey,
            round: u32,
            seed: u64,
        ) -> Result<Sample, String> {
            let sample = Rounds.run(key, round, seed)?;
            // Of rounds 1 to 5 the second has the second value in the middle.
            let second = [10.0, 30.0, 20.0, 40.0, 50.0][round as usize];
            let first = sample.values[0];
            Ok(Sample { values: vec![first, first, Some(second)], ..sample })
        }
    }
    let text = "title = \"t\"\nrounds = 5\nmax_rounds = 5\nprocesses = [1]\n\
                filesystem = \"ext4\"\n\
                drives = [{ name = \"d\", model = \"nas-8tb-7200\", count = 1 }]\n\
                layouts = [{ level = \"single\" }]\n\
                [[workloads]]\nkind = \"bonnie-2.00\"\nsize = \"238MiB\"\nram = \"64MiB\"\n\
                fast = true\nn = \"0\"\nshow = [\"rewrite_kps\"]\n";
    let study = raidlab_study::parse(text, "t.toml").unwrap_or_else(|error| panic!("{error}"));
    let samples = run_rounds(&study, &mut Two, &mut support::on).expect("runs");
    let none = BTreeMap::new;
    let results =
        summarise(&study, &samples, Clock::Virtual, none(), none(), Vec::new(), &[Sectors(1)]);
    let cell = &results.cells[0];
    assert_eq!((cell.metric.as_str(), cell.samples.len()), ("rewrite_kps", 5));
    let line = cell.timeline.as_ref().expect("a timeline");
    assert_eq!((line.round, &cell.done_s[..]), (2, &[3.0, 6.0][..]));
}

/// What ends within the last bin is told of the time that was there, and a bin without requests has no time of any.
#[test]
fn rates_are_of_the_time_that_a_bin_has() {
    /// 3 MiB in the third of three bins that began a quarter of a bin before the end, nothing in the second.
    struct Ends(bool);
    impl Runner for Ends {
        type Error = String;
        fn run(
            &mut self,
            _: &raidlab_study::CellKey,
            round: u32,
            _: u64,
        ) -> Result<Sample, String> {
            let bins =
                "[2,2097152,4000000,3000000,null],[0,0,0,0,null],[1,3145728,2000000,2000000,null]";
            let text = format!("{{\"shift\":20,\"bins\":[{bins}]}}");
            let series = Some(serde_json::from_str(&text).expect("a series"));
            // One round more than the others has a process more.
            let ends = if self.0 && round == 2 {
                vec![1, 2, 3]
            } else {
                vec![1_000_000_000, 2_000_000_000]
            };
            let detail = Detail { ends, series, ..Detail::default() };
            Ok(Sample { last_done: Nanos((2 << 20) + (1 << 18)), detail, ..support::sample(1.0) })
        }
    }
    let study = study();
    let of = |uneven| {
        let samples = run_rounds(&study, &mut Ends(uneven), &mut support::on).expect("runs");
        let none = BTreeMap::new;
        let capacities = [Sectors(1), Sectors(2)];
        summarise(&study, &samples, Clock::Virtual, none(), none(), Vec::new(), &capacities)
    };
    let results = of(false);
    let line = results.cells[0].timeline.as_ref().expect("a timeline");
    // 2 MiB in 2^20 ns; 3 MiB in 2^18 ns.
    assert_eq!((line.unit.as_str(), &line.rate[..]), ("MiB/s", &[1_907.0, 0.0, 11_440.0][..]));
    assert_eq!(line.mean_ms, [Some(2.0), None, Some(2.0)]);
    assert_eq!(line.max_ms, [Some(3.0), None, Some(2.0)]);
    assert_eq!(results.cells[0].done_s, [1.0, 2.0]);
    assert_eq!(
        of(true).cells[0].done_s,
        [] as [f64; 0],
        "no process is in all rounds by its place"
    );
}
