//! Running studies with a runner whose samples follow from the cell, the round and the seed.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::sync::{Condvar, Mutex};

use crate::support::{on, sample};
use raidlab_core::{Nanos, Sectors};
use raidlab_results::comparison::fewest_rounds;
use raidlab_results::conduct::outliers;
use raidlab_results::statistics::{mean, median, median_interval, spread_percent};
use raidlab_results::{Clock, Results, Verdict};
use raidlab_study::{
    CellKey, Event, Progress, Runner, Sample, Samples, State, Study, cell_seed, cells,
    default_study, order, parse, run_rounds, run_rounds_parallel, summarise,
};

/// The default study with six of its layouts, and rounds enough to tell five from their baseline.
fn study() -> Study {
    let mut study = parse(default_study(), "default").unwrap();
    (study.rounds, study.max_rounds) = (8, 8);
    study.layouts.retain(|l| !["raid4(4)", "raid6(4)", "raid10(4) far2"].contains(&&*l.name));
    study
}

/// A value that depends on everything a runner is given, but little on the seed.
struct Fake {
    runs: Vec<(CellKey, u32, u64)>,
    /// How many percent the seed may change the value.
    spread: f64,
    fails: fn(&CellKey, u32) -> bool,
}

impl Fake {
    fn new(spread: f64) -> Self {
        Self { runs: Vec::new(), spread, fails: |_, _| false }
    }
}

impl Runner for Fake {
    type Error = String;

    fn run(&mut self, key: &CellKey, round: u32, seed: u64) -> Result<Sample, String> {
        self.runs.push((*key, round, seed));
        if (self.fails)(key, round) {
            return Err(format!("{key:?} {round}"));
        }
        let noise = 1.0 + (seed % 1000) as f64 / 1000.0 * self.spread / 100.0;
        let nanos = 1_000_000 * (key.layout as u64 + 1) + seed % 1000;
        Ok(Sample {
            first_done: Nanos(nanos / 2),
            last_done: Nanos(nanos),
            process_cpu_s: (key.layout == 1).then_some(0.5),
            bottleneck: (round > 0).then(|| (format!("member {}", round % 2), 0.25)),
            ..sample(100.0 * (key.layout + 1) as f64 * noise)
        })
    }
}

fn results(study: &Study, samples: &Samples) -> Results {
    let host = BTreeMap::from([("drives".to_string(), "4".to_string())]);
    let capacities = vec![Sectors(1 << 20); study.layouts.len()];
    let warnings = vec!["first of all".to_string()];
    summarise(study, samples, Clock::Virtual, host, BTreeMap::new(), warnings, &capacities)
}

#[test]
fn a_round_runs_every_cell_once_in_an_order_of_its_own() {
    let study = study();
    let all: BTreeSet<CellKey> = cells(&study).into_iter().collect();
    assert_eq!(all.len(), 72);
    let mut seen = BTreeSet::new();
    for round in 0..20 {
        let order_now = order(&study, round);
        assert_eq!(order_now.len(), 72);
        assert_eq!(order_now.iter().copied().collect::<BTreeSet<_>>(), all);
        assert_eq!(order_now, order(&study, round));
        assert!(seen.insert(order_now), "round {round} has the order of another");
    }
    let other = Study { seed: 2, ..study.clone() };
    assert_ne!(order(&study, 0), order(&other, 0));
    assert_ne!(order(&study, 0), order(&study, 72), "the next design has an order of its own");

    let mut runner = Fake::new(0.0);
    run_rounds(&study, &mut runner, &mut on).unwrap();
    let ran: Vec<CellKey> = runner.runs.iter().map(|(key, ..)| *key).collect();
    let planned: Vec<CellKey> = (0..8).flat_map(|round| order(&study, round)).collect();
    assert_eq!(ran, planned);
}

/// Over a whole design every cell comes right after every other equally often.
#[test]
fn what_comes_right_before_a_cell_is_balanced() {
    for (layouts, rounds, times) in [(2, 24, 1), (1, 12, 1)] {
        let mut study = study();
        study.layouts.truncate(layouts);
        assert_eq!(cells(&study).len(), rounds as usize);
        check_balance(&study, rounds, times);
    }
    // An odd number of cells: three of one workload.
    let mut odd = study();
    odd.layouts.truncate(1);
    odd.workloads.truncate(1);
    assert_eq!(cells(&odd).len(), 3);
    check_balance(&odd, 6, 2);
}

fn check_balance(study: &Study, rounds: u32, times: u32) {
    let mut pairs: BTreeMap<(CellKey, CellKey), u32> = BTreeMap::new();
    for round in 0..rounds {
        for pair in order(study, round).windows(2) {
            *pairs.entry((pair[0], pair[1])).or_default() += 1;
        }
    }
    let cells = cells(study).len();
    assert_eq!(pairs.len(), cells * (cells - 1));
    assert!(pairs.values().all(|count| *count == times), "{pairs:?}");
}

/// In real time the baseline is measured twice a round, and nobody is shown the second one.
#[test]
fn what_a_layout_differs_from_itself_is_the_floor() {
    let measured = Study { measured: true, ..study() };
    let all = cells(&measured);
    assert_eq!(all.len(), 72 + 12);
    assert!(all[72..].iter().all(|key| key.again && key.layout == 0));
    struct Twice(Fake);
    impl Runner for Twice {
        type Error = String;
        fn run(&mut self, key: &CellKey, round: u32, seed: u64) -> Result<Sample, String> {
            let mut sample = self.0.run(key, round, seed)?;
            // The second time it is 4 % faster.
            if key.again {
                sample.values = vec![Some(sample.headline(&study(), key).unwrap_or(0.0) * 1.04)];
            }
            Ok(sample)
        }
    }
    let samples = run_rounds(&measured, &mut Twice(Fake::new(0.0)), &mut on).unwrap();
    let found = results(&measured, &samples);
    assert_eq!(found.cells.len(), 72);
    assert_eq!(found.settings["noise floor"], "4.0 %");
    let cell = found.cell("raid0(4)", "random-read 4KiB", 2, "healthy").unwrap();
    // The baseline is the mean of both: 100 and 104.
    assert!((cell.percent_vs_baseline.unwrap() - (300.0 / 1.02 - 100.0)).abs() < 1e-9);
    assert!((cell.floor_percent.unwrap() - 4.0).abs() < 1e-9);
    // And that is what its cell shows, so that percentages fit the values beside them.
    let base = found.cell("single", "random-read 4KiB", 2, "healthy").unwrap();
    let shown = (cell.median / base.median - 1.0) * 100.0;
    assert!((cell.percent_vs_baseline.unwrap() - shown).abs() < 1e-9, "{shown}");
    assert_eq!(base.samples.len(), cell.samples.len());
    // All that is said of a cell is said of the values beside it.
    for cell in &found.cells {
        let interval = median_interval(&cell.samples);
        assert_eq!(cell.ci95, interval.map(|interval| [interval.low, interval.high]));
        assert_eq!(cell.coverage, interval.map(|interval| interval.coverage));
        assert_eq!(Some(cell.median), median(&cell.samples));
        assert_eq!(Some(cell.mean), mean(&cell.samples));
        assert_eq!(cell.spread_percent, spread_percent(&cell.samples));
        assert_eq!(cell.outlier_rounds, outliers(&cell.samples));
    }
}

/// Where a layout differs from itself by half, that all are "equal" says nothing, and the reader is told.
#[test]
fn a_loud_machine_is_warned_of() {
    struct Loud(Fake, f64);
    impl Runner for Loud {
        type Error = String;
        fn run(&mut self, key: &CellKey, round: u32, seed: u64) -> Result<Sample, String> {
            let mut sample = self.0.run(key, round, seed)?;
            if key.again {
                sample.values = vec![sample.values[0].map(|value| value * self.1)];
            }
            Ok(sample)
        }
    }
    let measured = Study { measured: true, ..study() };
    let run = |factor: f64, spread: f64| {
        let mut runner = Loud(Fake::new(spread), factor);
        let samples = run_rounds(&measured, &mut runner, &mut on).unwrap();
        results(&measured, &samples)
    };
    let warned = |factor: f64| {
        let warnings = run(factor, 0.0).warnings;
        warnings.into_iter().find(|warning| warning.contains("differs from itself"))
    };
    assert_eq!(warned(1.09), None);
    let told = warned(1.5).expect("is told");
    assert!(told.contains("by up to 50 % (") && told.contains("in 72 of 72 cells"), "{told}");
    // Nor would more rounds tell anything but that.
    let found = run(1.5, 150.0);
    assert!(found.cells.iter().all(|cell| cell.more_rounds.is_none()));
}

/// Of a baseline of several layouts the first is measured twice, and the mean that all are beside is that of what is
/// shown.
#[test]
fn layouts_of_a_baseline_stand_beside_the_mean_of_the_medians_shown() {
    struct Twice(Fake);
    impl Runner for Twice {
        type Error = String;
        fn run(&mut self, key: &CellKey, round: u32, seed: u64) -> Result<Sample, String> {
            let sample = self.0.run(key, round, seed)?;
            let faster = if key.again { 1.04 } else { 1.0 };
            let values = sample.values.iter().map(|one| one.map(|one| one * faster)).collect();
            Ok(Sample { values, ..sample })
        }
    }
    let mut measured = Study { measured: true, ..study() };
    measured.baseline = [0, 1].map(|at: usize| measured.layouts[at].name.clone()).into();
    let samples = run_rounds(&measured, &mut Twice(Fake::new(0.0)), &mut on).unwrap();
    let found = results(&measured, &samples);
    let row: Vec<_> = found.row("random-read 4KiB", 2, "healthy").collect();
    let medians: Vec<f64> = row.iter().map(|cell| cell.median).collect();
    assert_eq!(medians, [102.0, 200.0, 300.0, 400.0, 500.0, 600.0]);
    for (cell, median) in row.iter().zip(medians) {
        let shown = (median / 151.0 - 1.0) * 100.0;
        let percent = cell.percent_vs_baseline.expect("a percentage");
        assert!(
            (percent - shown).abs() < 1e-9,
            "{}: {percent}, beside values {shown}",
            cell.layout
        );
    }
}

#[test]
fn layouts_share_seeds_and_nothing_else_does() {
    let study = study();
    let mut owners: BTreeMap<u64, (usize, u32, u32)> = BTreeMap::new();
    for round in 0..6 {
        for key in cells(&study) {
            let owner = (key.workload, key.processes, round);
            let seed = cell_seed(&study, &key, round);
            assert_eq!(*owners.entry(seed).or_insert(owner), owner);
        }
    }
    assert_eq!(owners.len(), 4 * 3 * 6);
    let other = Study { seed: 2, ..study.clone() };
    let key = cells(&study)[0];
    assert_ne!(cell_seed(&study, &key, 0), cell_seed(&other, &key, 0));
}

#[test]
fn any_number_of_threads_gives_the_same_document() {
    let study = Study { max_rounds: 9, precision_percent: 0.01, ..study() };
    let one = run_rounds(&study, &mut Fake::new(1.0), &mut on).unwrap();
    let expected = results(&study, &one).to_json().unwrap();
    for threads in [0, 1, 2, 7, 1000] {
        let samples = run_rounds_parallel(&study, threads, || Fake::new(1.0), &mut on).unwrap();
        assert_eq!(samples, one);
        assert_eq!(results(&study, &samples).to_json().unwrap(), expected);
    }
    let other = Study { seed: 2, ..study };
    let samples = run_rounds(&other, &mut Fake::new(1.0), &mut on).unwrap();
    assert_ne!(results(&other, &samples).cells, results(&other, &one).cells);
}

#[test]
fn progress_counts_up_to_the_end() {
    for threads in [None, Some(1), Some(2)] {
        let study = Study { max_rounds: 9, precision_percent: 0.01, ..study() };
        let (mut started, mut finished, mut last) = (0, 0, (0, 0, 0));
        let mut watch = |progress: Progress<'_>| {
            match progress.event {
                Event::Started => started += 1,
                Event::Finished(sample) => {
                    finished += 1;
                    assert!(sample.headline(&study, progress.key) > Some(0.0));
                }
            }
            assert_eq!(progress.done, finished);
            assert!(progress.round < progress.rounds);
            last = (progress.done, progress.total, progress.rounds);
            ControlFlow::Continue(())
        };
        match threads {
            None => run_rounds(&study, &mut Fake::new(1.0), &mut watch).unwrap(),
            Some(threads) => {
                run_rounds_parallel(&study, threads, || Fake::new(1.0), &mut watch).unwrap()
            }
        };
        assert_eq!((started, finished, last), (9 * 72, 9 * 72, (9 * 72, 9 * 72, 9)));
    }
}

#[test]
fn stopping_keeps_complete_rounds_only() {
    let study = study();
    for (stop_after, complete) in [(0, 0), (71, 0), (72, 1), (3 * 72 - 1, 2), (3 * 72 + 5, 3)] {
        let mut stop = |progress: Progress<'_>| {
            let stop = progress.done >= stop_after;
            if stop { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        let samples = run_rounds(&study, &mut Fake::new(1.0), &mut stop).unwrap();
        assert_eq!((samples.rounds, samples.aborted), (complete, true), "{stop_after}");
        assert!(samples.samples.iter().all(|cell| cell.len() == complete as usize));
        let said =
            format!("stopped early: {complete} complete rounds count, at least 8 were planned");
        assert_eq!(samples.warnings[0], said);
        let results = results(&study, &samples);
        assert_eq!(results.cells.len(), if complete == 0 { 0 } else { 72 });
        results.to_json().unwrap();

        let full = run_rounds(&study, &mut Fake::new(1.0), &mut on).unwrap();
        for threads in [1, 3] {
            let make = || Fake::new(1.0);
            let some = run_rounds_parallel(&study, threads, make, &mut stop).unwrap();
            assert!(some.aborted || some.rounds == 8);
            for (cell, all) in some.samples.iter().zip(&full.samples) {
                assert_eq!(cell[..], all[..some.rounds as usize]);
            }
        }
    }
}

#[test]
fn rounds_are_added_until_the_intervals_are_narrow() {
    let steady = Study { max_rounds: 30, ..study() };
    let samples = run_rounds(&steady, &mut Fake::new(1.0), &mut on).unwrap();
    assert_eq!((samples.rounds, samples.aborted), (8, false));
    assert_eq!(samples.warnings, [] as [String; 0]);

    // A spread of 40 % does not fit into +-5 % with 8 rounds, but the ranks move inwards.
    let samples = run_rounds(&steady, &mut Fake::new(40.0), &mut on).unwrap();
    assert!((9..=30).contains(&samples.rounds), "{}", samples.rounds);

    let short = Study { max_rounds: 8, precision_percent: 0.1, ..study() };
    let samples = run_rounds(&short, &mut Fake::new(40.0), &mut on).unwrap();
    assert_eq!(samples.rounds, 8);
    let warning = &samples.warnings[0];
    assert!(warning.starts_with("after 8 rounds the medians of 72 of 72 cells"), "{warning}");
    assert!(
        warning.contains("not known to +-0.1 % with 95 % confidence")
            && warning.ends_with("; 64 more")
    );
    let exactly = Study { rounds: 8, max_rounds: 6, ..short };
    assert_eq!(run_rounds(&exactly, &mut Fake::new(40.0), &mut on).unwrap().rounds, 8);

    let few = Study { rounds: 3, max_rounds: 3, ..study() };
    let samples = run_rounds(&few, &mut Fake::new(0.0), &mut on).unwrap();
    assert_eq!(samples.warnings, [""; 0], "one warning says all");
    let results = results(&few, &samples);
    let few: Vec<&String> = results.warnings.iter().filter(|one| one.contains("too few")).collect();
    let [told] = few[..] else { panic!("{:?}", results.warnings) };
    assert!(told.starts_with("3 rounds are too few for"), "{told}");
    assert!(told.contains("so differences are preliminary: use --rounds "), "{told}");
    assert!(results.cells.iter().all(|cell| cell.ci95.is_none() && cell.coverage.is_none()));
    let shown = Some(Verdict::NotResolved);
    assert!(results.cells.iter().all(|cell| cell.verdict.is_none() || cell.verdict == shown));
}

/// 100 and 116 in turn: the interval is 16 wide around 108, so half of it is 7.4 % of the median.
#[test]
fn precision_is_half_the_width_of_the_interval() {
    struct Turns(Fake);
    impl Runner for Turns {
        type Error = String;
        fn run(&mut self, key: &CellKey, round: u32, seed: u64) -> Result<Sample, String> {
            let value = if round.is_multiple_of(2) { 100.0 } else { 116.0 };
            Ok(Sample { values: vec![Some(value)], ..self.0.run(key, round, seed)? })
        }
    }
    let rounds = |precision_percent| {
        let study = Study { max_rounds: 9, precision_percent, ..study() };
        run_rounds(&study, &mut Turns(Fake::new(0.0)), &mut on).unwrap().rounds
    };
    assert_eq!((rounds(7.4), rounds(7.5)), (9, 8));
}

#[test]
fn only_imprecise_cells_are_named() {
    struct One(Fake);
    impl Runner for One {
        type Error = String;
        fn run(&mut self, key: &CellKey, round: u32, seed: u64) -> Result<Sample, String> {
            self.0.spread = if key.layout == 4 && key.workload == 3 { 60.0 } else { 0.0 };
            self.0.run(key, round, seed)
        }
    }
    let study = Study { processes: vec![2], ..study() };
    let samples = run_rounds(&study, &mut One(Fake::new(0.0)), &mut on).unwrap();
    assert_eq!(samples.warnings.len(), 1);
    let warning = &samples.warnings[0];
    assert!(warning.contains("1 of 24 cells") && warning.contains("+-5 %"), "{warning}");
    let named = "would tell: raid5(4), random-write 4KiB, 2 processes (+-";
    assert!(warning.contains(named) && !warning.contains("more;"), "{warning}");
}

/// Ctrl-C in the middle of a cell is no failure: what is complete counts.
#[test]
fn a_cell_that_is_stopped_ends_the_study_with_its_complete_rounds() {
    struct Stopped(Fake);
    impl Runner for Stopped {
        type Error = String;
        fn run(&mut self, key: &CellKey, round: u32, seed: u64) -> Result<Sample, String> {
            let is_last = (round, key.layout, key.workload) == (2, 1, 1);
            if is_last { Err("stopped".to_owned()) } else { self.0.run(key, round, seed) }
        }
        fn is_stop(error: &String) -> bool {
            error == "stopped"
        }
    }
    let study = study();
    let whole = run_rounds(&study, &mut Fake::new(1.0), &mut on).unwrap();
    let stopped = run_rounds(&study, &mut Stopped(Fake::new(1.0)), &mut on).unwrap();
    assert!(stopped.aborted && stopped.rounds == 2, "{}", stopped.rounds);
    assert!(stopped.warnings[0].starts_with("stopped early: 2 complete rounds"));
    for (stopped, whole) in stopped.samples.iter().zip(&whole.samples) {
        assert_eq!(stopped[..], whole[..2]);
    }
    for threads in [1, 3] {
        let make = || Stopped(Fake::new(1.0));
        let samples = run_rounds_parallel(&study, threads, make, &mut on).unwrap();
        assert!(samples.aborted && samples.rounds <= 2, "{threads}");
    }
}

#[test]
fn the_first_failure_is_reported_on_any_number_of_threads() {
    let study = study();
    let fails: fn(&CellKey, u32) -> bool = |key, round| round >= 2 && key.layout >= 3;
    let make = || Fake { fails, ..Fake::new(1.0) };
    let expected = run_rounds(&study, &mut make(), &mut on).unwrap_err();
    let first = order(&study, 2).into_iter().find(|key| key.layout >= 3).unwrap();
    assert_eq!(expected, format!("{first:?} 2"));
    for threads in [1, 2, 8] {
        let error = run_rounds_parallel(&study, threads, make, &mut on).unwrap_err();
        assert_eq!(error, expected);
    }
}

/// The first failing run waits until the thread of a later failing one is gone.
#[test]
fn a_later_failure_that_comes_first_is_not_reported() {
    #[derive(Default)]
    struct Shared {
        failed: Mutex<bool>,
        told: Condvar,
    }
    struct Slow<'a> {
        first: CellKey,
        shared: &'a Shared,
        fails: bool,
    }
    impl Runner for Slow<'_> {
        type Error = CellKey;
        fn run(&mut self, key: &CellKey, round: u32, seed: u64) -> Result<Sample, CellKey> {
            if round == 0 && *key == self.first {
                let failed = self.shared.failed.lock().unwrap();
                drop(self.shared.told.wait_while(failed, |failed| !*failed).unwrap());
                return Err(*key);
            }
            self.fails = round == 3;
            if self.fails { Err(*key) } else { Ok(Fake::new(0.0).run(key, round, seed).unwrap()) }
        }
    }
    impl Drop for Slow<'_> {
        fn drop(&mut self) {
            if self.fails {
                *self.shared.failed.lock().unwrap() = true;
                self.shared.told.notify_all();
            }
        }
    }
    let study = study();
    let (first, shared) = (order(&study, 0)[5], Shared::default());
    let make = || Slow { first, shared: &shared, fails: false };
    assert_eq!(run_rounds_parallel(&study, 2, make, &mut on).unwrap_err(), first);
}

#[test]
fn of_equal_bottlenecks_the_first_by_name() {
    let five = Study { rounds: 5, max_rounds: 5, ..study() };
    let samples = run_rounds(&five, &mut Fake::new(0.0), &mut on).unwrap();
    let cell = &results(&five, &samples).cells[0];
    assert_eq!(cell.bottleneck.as_ref().unwrap().resource, "member 0");
}

#[test]
fn summaries_compare_with_the_baseline() {
    let study = study();
    let samples = run_rounds(&study, &mut Fake::new(0.5), &mut on).unwrap();
    let found = results(&study, &samples);
    assert_eq!((found.study.as_str(), found.seed), (study.title.as_str(), 1));
    assert_eq!(found.baseline, ["single"]);
    assert_eq!(found.warnings, ["first of all"]);
    assert_eq!(found.settings["rounds"], "8");
    assert_eq!(found.settings["noise floor"], "1.0 %");
    assert_eq!(found.layouts[4].name, "raid5(4)");
    assert_eq!((found.layouts[4].capacity, found.layouts[4].survives), (1 << 29, 1));
    assert!(found.workloads[0].description.contains("4GiB in blocks of 6MiB"));
    assert_eq!(found.cells.len(), 72);

    let base = found.cell("single", "random-read 4KiB", 2, "healthy").unwrap();
    assert_eq!((base.percent_vs_baseline, base.verdict), (Some(0.0), None));
    let cell = found.cell("raid0(4)", "random-read 4KiB", 2, "healthy").unwrap();
    // The seeds are shared, so the noise cancels: three times the value, exactly as made.
    assert!((cell.percent_vs_baseline.unwrap() - 200.0).abs() < 1e-9);
    assert_eq!(cell.verdict, Some(Verdict::Faster));
    assert_eq!((cell.metric.as_str(), cell.unit.as_str()), ("iops", "1/s"));
    assert_eq!((cell.samples.len(), cell.coverage), (8, Some(1.0 - 2.0 / 256.0)));
    let [low, high] = cell.ci95.unwrap();
    assert!(300.0 <= low && low <= cell.median && cell.median <= high && high <= 301.5);
    assert!((cell.last_done_s - 0.003).abs() < 1e-6 && (cell.first_done_s - 0.0015).abs() < 1e-6);
    assert_eq!((cell.process_cpu_s, cell.system_cpu_s), (None, None));
    let linear = found.cell("linear(4)", "random-read 4KiB", 2, "healthy").unwrap();
    assert_eq!(linear.process_cpu_s, Some(0.5));
    // Rounds 1, 3, 5 and 7 name member 1, rounds 2, 4 and 6 member 0, round 0 none.
    let bottleneck = cell.bottleneck.as_ref().unwrap();
    assert_eq!((bottleneck.resource.as_str(), bottleneck.busy), ("member 1", 0.25));
    assert_eq!(found.best("dd-read 6MiB", 4, "healthy").unwrap().layout, "raid10(4)");
}

#[test]
fn the_mean_of_several_layouts_as_baseline() {
    let two = Study { baseline: vec!["linear(4)".into(), "raid1(2)".into()], ..study() };
    let samples = run_rounds(&two, &mut Fake::new(0.5), &mut on).unwrap();
    let found = results(&two, &samples);
    let verdicts = |layout: &str| {
        let cell = found.cell(layout, "dd-write 6MiB", 1, "healthy").unwrap();
        (cell.percent_vs_baseline.unwrap().round(), cell.verdict)
    };
    // Values are 100 x (index + 1); the baseline is (200 + 400) / 2.
    assert_eq!(verdicts("single"), (-67.0, Some(Verdict::Slower)));
    assert_eq!(verdicts("linear(4)"), (-33.0, None));
    assert_eq!(verdicts("raid0(4)"), (0.0, Some(Verdict::Equal)));
    assert_eq!(verdicts("raid1(2)"), (33.0, None));
    assert_eq!(verdicts("raid10(4)"), (100.0, Some(Verdict::Faster)));
}

const PUBLISHED: &str = r#"
title = "Published"
rounds = 1
drives = [{ name = "nas", model = "nas-8tb-7200", count = 2 }]
layouts = [{ level = "single", name = "one" }, { level = "raid0", members = 2, name = "two" }]

[[workloads]]
kind = "blocksize-sweep"
name = "sweep"
size = "1MiB"
block = "4KiB"
settings = { block = "4KiB" }

[[workloads]]
kind = "blocksize-sweep"
name = "sweep"
size = "1MiB"
block = "8KiB"
settings = { block = "8KiB" }

[[workloads]]
kind = "tiobench-0.3"
name = "seq_write"
size = "1MiB"
show = "seq_write_mib_per_s"
show_as = "mib_per_s"

[[given]]
layout = "two"
workload = "seq_write"
metric = "mib_per_s"
value = 160
calibrated = true
"#;

/// A published figure stands beside its cell, a metric has the name that the study gives it, and
/// workloads of one name are told apart by their settings.
#[test]
fn published_figures_stand_beside_their_cells() {
    let study = parse(PUBLISHED, "published.toml").unwrap_or_else(|error| panic!("{error}"));
    let samples = run_rounds(&study, &mut Fake::new(0.0), &mut on).unwrap();
    let found = results(&study, &samples);
    assert_eq!(found.workloads.len(), 2);
    let sweep = found.cells.iter().filter(|cell| cell.workload == "sweep" && cell.layout == "one");
    let blocks: Vec<&str> = sweep.map(|cell| &*cell.settings["block"]).collect();
    assert_eq!(blocks, ["4KiB", "8KiB"]);
    let cells: Vec<_> = found.cells.iter().filter(|cell| cell.workload == "seq_write").collect();
    assert_eq!(cells.len(), 2, "one metric of many is shown");
    assert!(cells.iter().all(|cell| cell.metric == "mib_per_s" && !cell.detail));
    assert_eq!(cells[0].published, None);
    let published = cells[1].published.as_ref().expect("given");
    assert_eq!((published.value, published.calibrated), (160.0, true));
    assert!((published.error_percent - 25.0).abs() < 1e-9, "200 against 160");
    // What was published is of healthy arrays: it says nothing of others.
    let mirrored = PUBLISHED.replace("raid0", "raid1");
    let mut study = parse(&mirrored, "published.toml").unwrap_or_else(|error| panic!("{error}"));
    study.states = State::ALL.to_vec();
    let samples = run_rounds(&study, &mut Fake::new(0.0), &mut on).unwrap();
    let found = results(&study, &samples);
    assert!(found.cells.iter().any(|cell| cell.state == State::Degraded.name()));
    let published = found.cells.iter().filter(|cell| cell.published.is_some());
    let states: Vec<&str> = published.map(|cell| &*cell.state).collect();
    assert_eq!(states, [State::Healthy.name()]);
}

#[test]
fn published_figures_of_nothing_are_refused() {
    for (old, new, words) in [
        ("workload = \"seq_write\"", "workload = \"seq_writes\"", "did you mean `seq_write`?"),
        ("layout = \"two\"", "layout = \"three\"", "it has: one, two"),
        ("value = 160", "value = -1", "not a number above 0"),
        ("calibrated = true", "calibrated = 1", "true or false"),
        ("show = \"seq_write_mib_per_s\"", "show = \"mib\"", "is no figure of this"),
        ("show = \"seq_write_mib_per_s\"\n", "", "show"),
        ("settings = { block = \"8KiB\" }", "settings = { block = \"4KiB\" }", "`sweep`"),
    ] {
        assert!(PUBLISHED.contains(old), "{old}");
        let error = parse(&PUBLISHED.replace(old, new), "p.toml").expect_err(new).to_string();
        assert!(error.contains(words), "{new}: {error}");
    }
}

/// More rounds follow until every row is settled, whichever of them is so first.
#[test]
fn rounds_are_added_until_every_row_is_settled() {
    struct Shaky(u32);
    impl Runner for Shaky {
        type Error = String;
        fn run(&mut self, key: &CellKey, round: u32, _: u64) -> Result<Sample, String> {
            // In the row that is not settled the two go up and down by 4 % against each other.
            let way = if round.is_multiple_of(2) { 0.04 } else { -0.04 };
            let value = match (key.layout, key.processes == self.0) {
                (0, false) => 100.0,
                (_, false) => 150.0,
                (0, true) => 100.0 * (1.0 + way),
                (_, true) => 100.0 * (1.0 - way),
            };
            Ok(sample(value))
        }
    }
    let mut study = Study { rounds: 8, max_rounds: 12, processes: vec![1, 2], ..study() };
    study.layouts.truncate(2);
    study.workloads.truncate(1);
    for (shaky, rounds) in [(1, 12), (2, 12), (4, 8)] {
        let samples = run_rounds(&study, &mut Shaky(shaky), &mut on).unwrap();
        assert_eq!(samples.rounds, rounds, "{shaky} processes");
    }
}

#[test]
fn what_is_set_stands_among_the_settings() {
    let text = default_study().to_string()
        + "\n[[parameters]]\nof = \"drive nas\"\nproperty = \"media_rate\"\nvalue = { mb_per_s = 200 }\n\
           source = \"a test\"\n";
    let mut study = parse(&text, "default").unwrap();
    (study.rounds, study.max_rounds) = (8, 8);
    let samples = run_rounds(&study, &mut Fake::new(1.0), &mut on).unwrap();
    let results = results(&study, &samples);
    let found: Vec<_> =
        results.settings.iter().filter(|(key, _)| key.starts_with("parameter ")).collect();
    let [(key, value)] = found[..] else { panic!("{found:?}") };
    assert!(
        key.contains("nas") && value.contains("200") && value.ends_with("(a test)"),
        "{key}: {value}"
    );
    assert!(results.cells.iter().all(|cell| cell.coverage.is_some_and(|share| share >= 0.95)));
    // The last layout is the fastest by far: nobody else may be the best.
    let last = &study.layouts[study.layouts.len() - 1].name;
    assert!(results.cells.iter().all(|cell| cell.may_be_best == (cell.layout == *last)));
    assert_eq!(results.latency_shares, [] as [f64; 0], "no cell has a curve");
}

/// Two values, each by the round.
struct Two(fn(u32) -> f64, fn(u32) -> f64);

impl Runner for Two {
    type Error = String;

    fn run(&mut self, key: &CellKey, round: u32, _: u64) -> Result<Sample, String> {
        let of = |value: fn(u32) -> f64| Some(value(round) * (key.layout + 1) as f64);
        Ok(Sample { values: vec![of(self.0), of(self.1)], ..sample(0.0) })
    }
}

/// Rounds are added for the figure that is shown, and warnings are about it.
#[test]
fn the_figure_that_is_shown_is_the_one_that_rounds_are_added_for() {
    let steady: fn(u32) -> f64 = |_| 100.0;
    let shaky: fn(u32) -> f64 = |round| if round.is_multiple_of(2) { 100.0 } else { 160.0 };
    let dd = "title = \"t\"\nrounds = 8\nmax_rounds = 12\nprocesses = [1]\n\
              drives = [{ name = \"d\", model = \"nas-8tb-7200\", count = 2 }]\n\
              layouts = [{ level = \"single\" }, { level = \"raid0\", members = 2 }]\n\
              workloads = [{ kind = \"dd\", bs = \"1MiB\", size = \"1GiB\" }]\n";
    let mut study = parse(dd, "dd.toml").unwrap();
    let second = study.workloads[0].workload.metrics()[1].name;
    for (shown, values, rounds) in [
        (None, (steady, shaky), 8),
        (None, (shaky, steady), 12),
        (Some(second), (steady, shaky), 12),
        (Some(second), (shaky, steady), 8),
    ] {
        let name = |shown: &str| (shown.to_owned(), "another name".to_owned());
        study.workloads[0].shown = shown.map(name).into_iter().collect();
        let samples = run_rounds(&study, &mut Two(values.0, values.1), &mut on).unwrap();
        assert_eq!(samples.rounds, rounds, "{shown:?}");
        let said = samples.warnings.iter().any(|one| one.contains("the medians of 2 of 2 cells"));
        assert_eq!(said, rounds == 12, "{shown:?}: {:?}", samples.warnings);
    }
    // And so it is of what is warned of in real time.
    let rising: fn(u32) -> f64 = |round| 100.0 + 5.0 * f64::from(round);
    let study = Study { measured: true, max_rounds: 8, ..study };
    for (values, moves) in [((steady, rising), true), ((rising, steady), false)] {
        let samples = run_rounds(&study, &mut Two(values.0, values.1), &mut on).unwrap();
        let warnings = results(&study, &samples).warnings;
        let moved = warnings.iter().any(|one| one.starts_with("values moved"));
        assert_eq!(moved, moves, "{warnings:?}");
    }
}

/// With the mean of several layouts fewer are compared than with the best of all, which reports name.
#[test]
fn rounds_are_enough_to_say_who_is_best_beside_several_baselines() {
    let mut study = Study { rounds: 1, max_rounds: 1, ..study() };
    study.layouts.truncate(3);
    study.workloads.truncate(1);
    study.baseline = [0, 1].map(|at: usize| study.layouts[at].name.clone()).into();
    let too_few = |study: &Study| -> Vec<String> {
        let samples = run_rounds(study, &mut Fake::new(0.0), &mut on).unwrap();
        let all = results(study, &samples).warnings;
        all.into_iter().filter(|one| one.contains("too few")).collect()
    };
    study.raise_rounds();
    // As reports ask: two may be better than the third.
    assert_eq!(study.rounds, fewest_rounds(study.layouts.len() - 1));
    assert_eq!((study.rounds, study.max_rounds), (7, 7));
    assert_eq!(too_few(&study), [""; 0]);
    (study.rounds, study.max_rounds) = (6, 6);
    let expected = "6 rounds are too few for 2 comparisons in a row, so differences are preliminary: use --rounds 7 \
                    or more";
    assert_eq!(too_few(&study), [expected]);
}

/// Of many cells the first four are named, and the others counted.
#[test]
fn warnings_name_four_cells_and_count_the_others() {
    struct Rising;
    impl Runner for Rising {
        type Error = String;
        fn run(&mut self, key: &CellKey, round: u32, _: u64) -> Result<Sample, String> {
            Ok(sample((100.0 + 5.0 * f64::from(round)) * (key.layout + 1) as f64))
        }
    }
    let mut study = study();
    (study.measured, study.rounds, study.max_rounds) = (true, 8, 8);
    study.workloads.truncate(1);
    study.processes = vec![1];
    let moved = |study: &Study| -> String {
        let samples = run_rounds(study, &mut Rising, &mut on).unwrap();
        let all = results(study, &samples).warnings;
        let found: Vec<&String> =
            all.iter().filter(|one| one.starts_with("values moved")).collect();
        let [one] = found[..] else { panic!("{all:?}") };
        one.clone()
    };
    let six = moved(&study);
    assert!(six.ends_with("; 2 more") && six.matches(" %)").count() == 4, "{six}");
    study.layouts.truncate(4);
    let four = moved(&study);
    assert!(!four.contains("more") && four.matches(" %)").count() == 4, "{four}");
}
