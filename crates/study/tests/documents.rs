//! From what runs measured to what the document says of them.

use std::collections::{BTreeMap, BTreeSet};

use crate::support::{on, sample};
use raidlab_core::{MemberTotals, Nanos, Sectors, Time};
use raidlab_results::{Clock, Results, Verdict};
use raidlab_study::{
    CellKey, Detail, Latency, Rebuild, Runner, Sample, State, Study, cell_seed, cell_title, cells,
    default_study, order, parse, run_rounds, summarise,
};
use raidlab_workload::{Cpu, PhaseRecord, ProcessRecord, RunRecord};

/// The default study with two of its layouts and one workload.
fn study(rounds: u32) -> Study {
    let mut study = parse(default_study(), "default").expect("a study");
    study.layouts.retain(|one| ["single", "raid1(2)"].contains(&&*one.name));
    study.workloads.truncate(1);
    Study { rounds, max_rounds: rounds, processes: vec![2], ..study }
}

fn results<R: Runner>(study: &Study, runner: &mut R) -> Results
where
    R::Error: std::fmt::Debug,
{
    let samples = run_rounds(study, runner, &mut on).expect("runs");
    let capacities = vec![Sectors(1 << 20); study.layouts.len()];
    let none = BTreeMap::new;
    let clock = if study.measured { Clock::Real } else { Clock::Virtual };
    summarise(study, &samples, clock, none(), none(), Vec::new(), &capacities)
}

/// Rounds whose figures all differ, and none of which is in the middle in more than its own.
struct Distinct;

const ORDER: [[u64; 3]; 5] = [[1, 5, 3], [4, 1, 2], [2, 3, 5], [5, 2, 1], [3, 4, 4]];

impl Runner for Distinct {
    type Error = String;

    fn run(&mut self, _: &CellKey, round: u32, _: u64) -> Result<Sample, String> {
        let [a, b, c] = ORDER[round as usize];
        let millis = |count: u64| Nanos(count * 1_000_000);
        let latency = Latency {
            p50: millis(a),
            p99: millis(10 * b),
            p999: millis(100 * c),
            max: millis(1_000 * a),
        };
        let members = MemberTotals {
            reads: 10 * a,
            writes: 20 * b,
            bytes_read: 4_096 * c,
            bytes_written: 8_192 * b,
        };
        Ok(Sample {
            first_done: millis(1_000 * b),
            last_done: millis(9_000 * c),
            process_cpu_s: Some(a as f64 / 8.0),
            system_cpu_s: Some(b as f64 / 2.0),
            latency: Some(latency),
            fairness: Some(c as f64 / 16.0),
            members: Some(members),
            bytes_written: 1_024 * a,
            bottleneck: Some(("cpu".to_owned(), b as f64 / 10.0)),
            ..sample(100.0 * c as f64)
        })
    }
}

/// Of five rounds each figure is the third largest of its own: 3 of all three lists.
#[test]
fn a_cell_shows_the_median_of_everything_that_its_rounds_tell() {
    let found = results(&study(5), &mut Distinct);
    for cell in &found.cells {
        assert_eq!((cell.median, cell.mean), (300.0, 300.0));
        assert_eq!(cell.samples, [300.0, 200.0, 500.0, 100.0, 400.0], "in the order of the rounds");
        assert_eq!((cell.first_done_s, cell.last_done_s), (3.0, 27.0));
        assert_eq!((cell.process_cpu_s, cell.system_cpu_s), (Some(0.375), Some(1.5)));
        assert_eq!(cell.fairness, Some(0.1875));
        let latency = cell.latency_ms.expect("told");
        assert_eq!(
            [latency.p50, latency.p99, latency.p999, latency.max],
            [3.0, 30.0, 300.0, 3_000.0]
        );
        let members = cell.members.expect("told");
        assert_eq!([members.reads, members.writes], [30.0, 60.0]);
        assert_eq!([members.bytes_read, members.bytes_written], [12_288.0, 24_576.0]);
        // 24 KiB at the members for 3 KiB of the processes.
        assert_eq!(members.write_amplification, Some(8.0));
        let busiest = cell.bottleneck.as_ref().expect("told");
        assert_eq!((busiest.resource.as_str(), busiest.busy), ("cpu", 0.3));
    }
}

/// A record of two processes, of which the second ends first: 10 reads of 1 to 10 ms, 90 writes of 11 to 100 ms.
fn record() -> RunRecord {
    let mut phases = [PhaseRecord::default(), PhaseRecord::default()];
    for millis in 1..=100_u64 {
        let phase = &mut phases[usize::from(millis % 2 == 0)];
        let (io, bytes) =
            if millis <= 10 { (&mut phase.reads, 512) } else { (&mut phase.writes, 4_096) };
        io.add(bytes, Nanos(millis * 1_000_000));
    }
    let process = |(copy, (phase, ended)): (u32, (PhaseRecord, u64))| ProcessRecord {
        copy,
        ended: Time(ended * 1_000_000_000),
        phases: vec![phase],
    };
    RunRecord {
        phases: vec!["all"],
        processes: (0..).zip(phases.into_iter().zip([8, 2])).map(process).collect(),
        process_cpu: Some(Cpu { user: Nanos(3_000_000_000), system: Nanos(1_000_000_000) }),
        system_cpu: Some(Nanos(5_000_000_000)),
        bottleneck: Some(("member 1".to_owned(), 0.75)),
        busy: vec![("cpu".to_owned(), 0.25), ("member 1".to_owned(), 0.75)],
        warnings: vec!["so it was".to_owned(), "so it was".to_owned()],
        ..RunRecord::default()
    }
}

/// What is added up, which ends are first and last, and what shares of requests stayed within.
#[test]
fn a_sample_is_what_its_run_recorded() {
    let study = study(1);
    let found = Sample::of(&*study.workloads[0].workload, &record()).expect("long enough");
    assert_eq!((found.first_done, found.last_done), (Nanos(2_000_000_000), Nanos(8_000_000_000)));
    assert_eq!((found.bytes, found.ops), (10 * 512 + 90 * 4_096, 100));
    assert_eq!(found.bytes_written, 90 * 4_096);
    assert_eq!((found.process_cpu_s, found.system_cpu_s), (Some(4.0), Some(5.0)));
    assert_eq!(found.bottleneck, Some(("member 1".to_owned(), 0.75)));
    assert_eq!(found.warnings, ["so it was"], "once");
    // Rates 1/8 and 1/2: (5/8)^2 / (2 x 17/64).
    assert!((found.fairness.expect("two") - 25.0 / 34.0).abs() < 1e-12);
    let latency = found.latency.expect("requests");
    let near = |time: Nanos, millis: f64| (time.as_secs() * 1e3 / millis - 1.0).abs() < 0.011;
    assert!(near(latency.p50, 50.0) && near(latency.p99, 99.0), "{latency:?}");
    assert!(near(latency.p999, 100.0) && latency.max == Nanos(100_000_000), "{latency:?}");
    let detail = &found.detail;
    assert_eq!(detail.ends, [2_000_000_000, 8_000_000_000], "rising");
    assert_eq!(detail.busy, record().busy);
    for (share, nanos) in raidlab_results::LATENCY_SHARES.iter().zip(&detail.latencies) {
        let millis = (share * 100.0).ceil().max(1.0);
        assert!(near(Nanos(*nanos), millis), "{share}: {nanos}");
    }
}

/// A number that is none has no word in JSON, and would come back as nothing.
#[test]
fn a_sample_with_a_number_that_is_none_is_not_written() {
    type Break = fn(&mut Sample, f64);
    let breakers: [Break; 7] = [
        |one, value| one.values = vec![Some(1.0), Some(value)],
        |one, value| one.process_cpu_s = Some(value),
        |one, value| one.system_cpu_s = Some(value),
        |one, value| one.fairness = Some(value),
        |one, value| one.bottleneck = Some(("cpu".to_owned(), value)),
        |one, value| {
            one.detail = Detail { busy: vec![("cpu".to_owned(), value)], ..Detail::default() }
        },
        |one, value| one.rebuild = Some(Rebuild { elapsed: Nanos(1), done: value }),
    ];
    for (at, breaker) in breakers.into_iter().enumerate() {
        let mut good = sample(1.0);
        breaker(&mut good, 0.5);
        let text = serde_json::to_string(&good).expect("a number");
        assert_eq!(serde_json::from_str::<Sample>(&text).expect("is read"), good, "{at}");
        for value in [f64::NAN, f64::INFINITY] {
            let mut bad = sample(1.0);
            breaker(&mut bad, value);
            assert!(serde_json::to_string(&bad).is_err(), "{at}: {value}");
        }
    }
}

#[test]
fn the_time_of_a_rebuild_is_an_estimate_until_it_ends() {
    let seconds = |done| Rebuild { elapsed: Nanos(30_000_000_000), done }.seconds();
    assert_eq!(seconds(1.0), Some((30.0, false)));
    assert_eq!(seconds(0.25), Some((120.0, true)));
    assert_eq!(seconds(0.0), None);
}

/// Layouts share the draws of a round; workloads, processes, rounds and states do not, and nor does a rebuild alone.
#[test]
fn every_state_has_draws_of_its_own() {
    let mut study = study(6);
    study.layouts.retain(|one| one.name == "raid1(2)");
    study.baseline = vec!["raid1(2)".to_owned()];
    study.states = State::ALL.to_vec();
    study.processes = vec![1, 2];
    let all = cells(&study);
    assert_eq!(all.len(), 3 * 2 + 1);
    let seeds: BTreeSet<u64> = (0..6)
        .flat_map(|round| all.iter().map(move |key| (key, round)))
        .map(|(key, round)| cell_seed(&study, key, round))
        .collect();
    assert_eq!(seeds.len(), 7 * 6);
    let titles: Vec<String> = all.iter().map(|key| cell_title(&study, key)).collect();
    let name = &study.workloads[0].name;
    let of = |processes: &str, state: &str| format!("raid1(2), {name}, {processes}{state}");
    assert_eq!(titles[0], of("1 process", ""));
    assert_eq!(titles[4], of("2 processes", ", degraded"));
    assert_eq!(titles[5], of("2 processes", ", rebuilding"));
    let again = CellKey { again: true, ..all[0] };
    assert_eq!(cell_title(&study, &again), of("1 process", "").replacen("2)", "2) again", 1));
}

/// The round in the middle, of two in the middle the one with the smaller value.
#[test]
fn a_timeline_is_of_the_round_in_the_middle_or_next_below() {
    struct Four;
    impl Runner for Four {
        type Error = String;
        fn run(&mut self, _: &CellKey, round: u32, _: u64) -> Result<Sample, String> {
            let text = "{\"shift\":20,\"bins\":[[1,1048576,4000000,3000000,null]]}";
            let series = Some(serde_json::from_str(text).expect("a series"));
            let detail = Detail { series, ends: vec![7], ..Detail::default() };
            let value = [40.0, 20.0, 10.0, 30.0][round as usize];
            Ok(Sample { detail, last_done: Nanos(1 << 20), ..sample(value) })
        }
    }
    let found = results(&study(4), &mut Four);
    let cell = &found.cells[0];
    assert_eq!(cell.timeline.as_ref().expect("a timeline").round, 2, "20 of 10, 20, 30, 40");
    assert_eq!(cell.done_s, [] as [f64; 0], "one process has no others to be compared with");
}

/// Of what was never compared with a kernel nothing is known, so that nothing is doubted either; of a baseline there is
/// no difference whose sign is known.
#[test]
fn nothing_is_doubted_of_what_no_kernel_was_compared_in() {
    struct Near;
    impl Runner for Near {
        type Error = String;
        fn run(&mut self, key: &CellKey, _: u32, _: u64) -> Result<Sample, String> {
            Ok(sample(if key.layout == 0 { 100.0 } else { 103.0 }))
        }
    }
    let modelled = Study { modelled: true, ..study(9) };
    let verdict = |study: &Study| results(study, &mut Near).cells[1].verdict;
    assert_eq!(verdict(&modelled), Some(Verdict::Faster), "no host, so not checked");
    let text = default_study().replace("\nseed", "\nhost = { kernel = \"linux-6.12\" }\nseed");
    let host = parse(&text, "default").expect("a study").host;
    assert!(host.is_some());
    let of_lab = Study { host, ..modelled };
    assert_eq!(verdict(&of_lab), Some(Verdict::NotResolved), "3 % is nothing the model can tell");
    let cells = results(&of_lab, &mut Near).cells;
    let signs = [0, 1].map(|at: usize| cells[at].trust.as_ref().expect("modelled").sign_of_100);
    assert!(signs[0].is_none() && signs[1].is_some(), "{signs:?}");
}

/// The least that counts in real time is half a percent, however alike the two names are; from there on what they
/// differ by is the floor.
#[test]
fn the_floor_of_real_time_begins_at_half_a_percent() {
    struct Twice(f64);
    impl Runner for Twice {
        type Error = String;
        fn run(&mut self, key: &CellKey, _: u32, _: u64) -> Result<Sample, String> {
            Ok(sample(if key.again { 100.0 * self.0 } else { 100.0 }))
        }
    }
    let measured = Study { measured: true, ..study(6) };
    for (factor, floor) in [(1.0, 0.5), (1.003, 0.5), (1.007, 0.7), (1.0 / 1.02, 2.0)] {
        let found = results(&measured, &mut Twice(factor));
        let floors: Vec<f64> = found.cells.iter().filter_map(|cell| cell.floor_percent).collect();
        assert!(!floors.is_empty());
        assert!(floors.iter().all(|one| (one - floor).abs() < 1e-9), "{factor}: {floors:?}");
        assert_eq!(found.settings["noise floor"], format!("{floor:.1} %"));
    }
}

/// A study in real time of four kinds of work on two layouts.
fn measured(rounds: u32) -> Study {
    let mut study = parse(default_study(), "default").expect("a study");
    study.layouts.retain(|one| ["single", "raid1(2)"].contains(&&*one.name));
    Study { measured: true, rounds, max_rounds: rounds, processes: vec![1], ..study }
}

/// Values by cell, round and which cell ran right before.
struct Values<'a>(&'a Study, fn(&CellKey, u32, Option<&CellKey>) -> f64);

impl Runner for Values<'_> {
    type Error = String;

    fn run(&mut self, key: &CellKey, round: u32, _: u64) -> Result<Sample, String> {
        let order = order(self.0, round);
        let at = order.iter().position(|one| one == key).expect("each once");
        let before = at.checked_sub(1).map(|at| &order[at]);
        Ok(sample((self.1)(key, round, before)))
    }
}

fn warned(
    study: &Study,
    values: fn(&CellKey, u32, Option<&CellKey>) -> f64,
    start: &str,
) -> String {
    let all = results(study, &mut Values(study, values)).warnings;
    let own: Vec<&String> = all.iter().filter(|one| one.starts_with(start)).collect();
    match own[..] {
        [] => String::new(),
        [one] => one.clone(),
        _ => panic!("more than once: {all:?}"),
    }
}

/// Up and down by a hundredth of a percent, by nothing that anybody could find out.
fn noise(key: &CellKey, round: u32) -> f64 {
    let place = [key.layout as u64, key.workload as u64, u64::from(round), u64::from(key.again)];
    100.0 + (raidlab_random::mix(&place) % 1_000) as f64 / 1e5
}

/// What slows whatever comes next is named, not what is slowed.
#[test]
fn what_runs_before_others_and_slows_them_is_named() {
    let study = measured(20);
    let slowed = |key: &CellKey, round: u32, before: Option<&CellKey>| {
        let is_after = before.is_some_and(|one| one.workload == 0);
        noise(key, round) * if is_after { 0.9 } else { 1.0 }
    };
    let start = "what ran right before a cell";
    let told = warned(&study, slowed, start);
    // Those that are not slowed lie a little above the middle of all.
    assert!(told.contains("dd-write 6MiB (-10.0 %)") && told.matches("(-").count() == 1, "{told}");
    assert_eq!(warned(&study, |key, round, _| noise(key, round), start), "");
}

/// Values that fall from round to round move as well as those that rise; a little is no news.
#[test]
fn values_that_fall_or_rise_are_told_and_a_little_is_not() {
    let study = measured(8);
    let start = "values moved from the first round to the last";
    let falls = |key: &CellKey, round: u32, _: Option<&CellKey>| {
        if (key.layout, key.workload) == (0, 1) {
            100.0 - f64::from(round)
        } else {
            noise(key, round)
        }
    };
    let told = warned(&study, falls, start);
    // 7 of a median of 96.5; what is measured twice is told once.
    assert!(told.ends_with(": single, dd-read 6MiB, 1 process (-7 %)"), "{told}");
    let rises = |key: &CellKey, round: u32, _: Option<&CellKey>| {
        if (key.layout, key.workload) == (0, 1) {
            100.0 + f64::from(round)
        } else {
            noise(key, round)
        }
    };
    assert!(warned(&study, rises, start).ends_with("(+7 %)"));
    let hardly = |key: &CellKey, round: u32, _: Option<&CellKey>| {
        if key.workload == 1 { 100.0 + 0.2 * f64::from(round) } else { noise(key, round) }
    };
    assert_eq!(warned(&study, hardly, start), "");
}

/// A steady state is asked for of writes.
#[test]
fn writes_that_are_not_steady_are_named() {
    let study = measured(8);
    let climbs = |_: &CellKey, round: u32, _: Option<&CellKey>| 100.0 + 4.0 * f64::from(round);
    let told = warned(&study, climbs, "no steady state");
    assert!(told.contains("dd-write 6MiB") && told.contains("random-write 4KiB"), "{told}");
    assert!(!told.contains("read") && told.matches("1 process").count() == 4, "{told}");
    assert_eq!(warned(&study, |key, round, _| noise(key, round), "no steady state"), "");
}

/// Rounds of both layouts go their own slow ways: two up, two down.
#[test]
fn rounds_that_hang_on_one_another_are_told() {
    let study = measured(20);
    let swings = |key: &CellKey, round: u32, _: Option<&CellKey>| {
        let is_up = (round / 4).is_multiple_of(2);
        if key.layout > 0 && is_up { 102.0 } else { 100.0 }
    };
    let start = "rounds depend on the ones before";
    let told = warned(&study, swings, start);
    // Of 20 rounds in five groups of four: by hand 0.6, its bias of -1/20 taken off.
    let logs: Vec<f64> = (0..20).map(|at| if at / 4 % 2 == 0 { 1.0 } else { 0.0 }).collect();
    let mean = 0.6;
    let square: f64 = logs.iter().map(|one| (one - mean) * (one - mean)).sum();
    let pairs: f64 = logs.windows(2).map(|two| (two[0] - mean) * (two[1] - mean)).sum();
    let expected = format!("(correlation {:.2})", pairs / square + 0.05);
    assert!(told.contains(&expected), "{expected}: {told}");
    let turns = |key: &CellKey, round: u32, _: Option<&CellKey>| {
        if key.layout > 0 && round.is_multiple_of(2) { 102.0 } else { 100.0 }
    };
    assert_eq!(warned(&study, turns, start), "", "from round to round");
}
