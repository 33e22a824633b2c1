//! Degraded and rebuilding cells: what a modelled run measures, and how the document shows it.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use raidlab_core::contract::Event;
use raidlab_core::{MemberIndex, Nanos, Sectors};
use raidlab_predict::Modelled;
use raidlab_results::{Better, Cell, Clock, Results};
use raidlab_sim::{HostCosts, World};
use raidlab_study::{
    CellKey, Latency, Progress, Rebuild, Runner, Sample, State, Study, StudyErrorKind, parse,
    run_rounds, summarise,
};

const TEXT: &str = r#"
title = "States"
rounds = 2
states = ["healthy", "degraded", "rebuilding"]
member_size = "1GiB"
pacing = { least = "1GB/s", most = "1GB/s" }
drives = [{ name = "nas", model = "nas-8tb-7200", count = 4 }]
layouts = [
    { level = "single" },
    { level = "raid1", members = 2 },
    { level = "raid5", members = 4, chunk = "64KiB" },
    { level = "raid5", members = 4, chunk = "64KiB", consistency = "bitmap" },
    { level = "raid6", members = 4, chunk = "64KiB" },
    { level = "raid10", members = 4, chunk = "64KiB" },
]
workloads = [
    { kind = "random-read", size = "4MiB" },
    { kind = "random-write", size = "256KiB" },
]
"#;

fn on(_: Progress<'_>) -> ControlFlow<()> {
    ControlFlow::Continue(())
}

fn summary(study: &Study, samples: &raidlab_study::Samples) -> Results {
    let capacities = vec![Sectors(1 << 21); study.layouts.len()];
    let host = BTreeMap::new();
    summarise(study, samples, Clock::Virtual, host, BTreeMap::new(), Vec::new(), &capacities)
}

fn find<'a>(
    found: &'a Results,
    layout: &str,
    workload: &str,
    state: &str,
    metric: &str,
) -> &'a Cell {
    let is_it = |cell: &&Cell| {
        (&*cell.layout, &*cell.workload, &*cell.state, &*cell.metric)
            == (layout, workload, state, metric)
    };
    let cell = found.cells.iter().find(is_it);
    cell.unwrap_or_else(|| panic!("{layout}, {workload}, {state}, {metric}"))
}

#[test]
fn modelled_states_cost_what_they_must() {
    let study = parse(TEXT, "s.toml").unwrap_or_else(|error| panic!("{error}"));
    let mut modelled = Modelled::new(&study, HostCosts::default()).expect("modelled");
    let samples = run_rounds(&study, &mut modelled, &mut on).expect("runs");
    let found = summary(&study, &samples);
    let raid5 = "raid5(4) chunk=64K";
    let value =
        |layout, workload, state, metric| find(&found, layout, workload, state, metric).median;
    let read = |layout, state| value(layout, "random-read 4KiB", state, "iops");
    for layout in ["raid1(2)", raid5, "raid6(4) chunk=64K", "raid10(4) chunk=64K"] {
        let (sound, rebuilding) = (read(layout, "healthy"), read(layout, "rebuilding"));
        assert!(rebuilding < sound, "{layout}: {rebuilding} of {sound} while rebuilding");
        let p99 = |state| value(layout, "random-read 4KiB", state, "p99_ms");
        assert!(p99("rebuilding") > p99("healthy"), "{layout}");
        let alone = find(&found, layout, "rebuild", "rebuilding", "rebuild_s");
        assert_eq!((alone.processes, alone.samples.len()), (0, 2));
        // 1 GiB at the 260 MB/s of the outer tracks.
        assert!((3.5..9.0).contains(&alone.median), "{layout}: {} s", alone.median);
        let loaded = found.cells.iter().find(|cell| {
            (&*cell.layout, &*cell.workload) == (layout, "random-read 4KiB")
                && cell.metric.starts_with("rebuild_")
        });
        assert!(loaded.expect("under load").median > alone.median, "{layout}: load slows it down");
    }
    // Reading what is lost takes all the others.
    assert!(read(raid5, "degraded") < read(raid5, "healthy"));
    // The short workload ends first: the rest is an estimate, and called that.
    let short = find(&found, raid5, "random-write 4KiB", "rebuilding", "rebuild_estimate_s");
    assert!(short.note.as_ref().is_some_and(|note| note.starts_with("estimated from")));
    assert!(found.cells.iter().all(|cell| cell.layout != "single" || cell.state == "healthy"));
    let warned = |text: &str| found.warnings.iter().any(|warning| warning.contains(text));
    assert!(warned("neither degraded nor rebuilding: single"), "{:?}", found.warnings);
    assert!(warned("are estimates"), "{:?}", found.warnings);
    assert_eq!(found.workloads.last().map(|row| &*row.name), Some("rebuild"));
    assert!(found.to_json().is_ok());

    let again = run_rounds(&study, &mut modelled, &mut on).expect("runs");
    assert_eq!(summary(&study, &again), found, "the same seed, the same results");
}

const SPARES: &str = r#"
title = "Hot spares"
rounds = 2
states = ["healthy", "degraded", "rebuilding"]
member_size = "64MiB"
pacing = { least = "1GB/s", most = "1GB/s" }
drives = [{ name = "nas", model = "nas-8tb-7200", count = 8 }]
layouts = [
    { name = "none", level = "raid5", members = 4, chunk = "64KiB" },
    { name = "two", level = "raid5", members = 4, chunk = "64KiB", spares = 2 },
    { name = "nested", level = "raid50", members = 6, chunk = "64KiB", spares = 2 },
]
workloads = [{ kind = "random-write", size = "256KiB" }]
"#;

/// A spare costs nothing while all is well, and is rebuilt to as a drive that somebody puts in is.
#[test]
fn a_hot_spare_takes_the_place_of_the_lost_member() {
    let study = parse(SPARES, "s.toml").unwrap_or_else(|error| panic!("{error}"));
    let mut modelled = Modelled::new(&study, HostCosts::default()).expect("modelled");
    let samples = run_rounds(&study, &mut modelled, &mut on).expect("runs");
    let found = summary(&study, &samples);
    let of = |layout: &str, state: &str| -> Vec<_> {
        let cells =
            found.cells.iter().filter(|cell| (&*cell.layout, &*cell.state) == (layout, state));
        cells
            .map(|cell| (cell.workload.clone(), cell.metric.clone(), cell.samples.clone()))
            .collect()
    };
    for state in ["healthy", "rebuilding"] {
        assert_eq!(of("none", state), of("two", state), "{state}");
        assert!(!of("nested", state).is_empty(), "{state}");
    }
    assert!(!of("none", "degraded").is_empty());
    assert!(of("two", "degraded").is_empty(), "it is rebuilt from the moment it loses a member");
    let never = "with hot spares, so rebuilding and never left degraded: two, nested";
    assert!(found.warnings.iter().any(|warning| warning == never), "{:?}", found.warnings);
    let left = |layout, state| {
        let mut world = modelled.world_in(layout, state, 1).expect("a world");
        world.start().expect("spares suit");
        world.spares()
    };
    assert_eq!([left(0, State::Healthy), left(0, State::Rebuilding)], [0, 0]);
    assert_eq!([left(1, State::Healthy), left(1, State::Rebuilding)], [2, 1]);
}

#[test]
fn arrays_of_nested_levels_share_the_spares_of_a_study() {
    let study = parse(SPARES, "s.toml").unwrap_or_else(|error| panic!("{error}"));
    let modelled = Modelled::new(&study, HostCosts::default()).expect("modelled");
    let mut world = modelled.world_in(2, State::Rebuilding, 1).expect("a world");
    world.start().expect("spares suit");
    // The first member of the first array is lost; now one of the second array, too.
    world.fail(MemberIndex(4));
    assert_eq!(world.spares(), 0);
    let restored =
        |world: &World, member| world.events().contains(&Event::Restored(MemberIndex(member)));
    while !(restored(&world, 0) && restored(&world, 4)) {
        assert!(world.step(), "both are rebuilt: {:?}", world.events());
    }
    assert_eq!(world.array().status().failed, [0; 2]);
}

#[test]
fn hot_spares_that_cannot_be_are_refused() {
    let no_other = SPARES.replace(
        "    { name = \"none\", level = \"raid5\", members = 4, chunk = \"64KiB\" },\n",
        "",
    );
    assert_ne!(no_other, SPARES);
    let error = parse(&no_other, "s.toml").expect_err("none is ever degraded").to_string();
    assert!(error.contains("none can be `degraded`, only `rebuilding`"), "{error}");
    let study = parse(SPARES, "s.toml").expect("a study");
    let error = study.check_real().expect_err("not on real drives");
    assert_eq!(error.kind, StudyErrorKind::NotSupported);
    assert!(error.to_string().contains("layouts.spares"), "{error}");
    // The spare is of the group of the first member, whose drives are smaller than the second.
    let unequal = r#"
title = "Unequal"
states = ["rebuilding"]
drives = [{ name = "old", model = "desktop-2tb-7200", count = 3 }, { name = "nas", model = "nas-8tb-7200" }]
layouts = [{ level = "raid1", members = 2, drives = ["old", "nas"], spares = 1 }]
workloads = [{ kind = "random-write", size = "256KiB" }]
"#;
    let study = parse(unequal, "s.toml").unwrap_or_else(|error| panic!("{error}"));
    let error = Modelled::new(&study, HostCosts::default()).expect_err("too small").to_string();
    assert!(error.contains("are of `old`, the group of the first member"), "{error}");
}

/// A runner whose rebuilds are given.
struct Given(fn(u32) -> Rebuild);

impl Runner for Given {
    type Error = String;

    fn run(&mut self, key: &CellKey, round: u32, _seed: u64) -> Result<Sample, String> {
        Ok(Sample {
            values: vec![Some(10.0)],
            first_done: Nanos::from_millis(4000),
            last_done: Nanos::from_millis(4000),
            bytes: 0,
            ops: 0,
            process_cpu_s: None,
            system_cpu_s: None,
            bottleneck: None,
            latency: (key.processes > 0).then_some(Latency {
                p50: Nanos::from_millis(1),
                p99: Nanos::from_millis(7),
                p999: Nanos::from_millis(8),
                max: Nanos::from_millis(9),
            }),
            fairness: None,
            members: None,
            bytes_written: 0,
            rebuild: (key.state == State::Rebuilding).then(|| (self.0)(round)),
            warnings: Vec::new(),
            detail: raidlab_study::Detail::default(),
        })
    }
}

#[test]
fn rebuild_times_are_measured_or_called_estimates() {
    let study = parse(TEXT, "s.toml").unwrap_or_else(|error| panic!("{error}"));
    let run = |given| summary(&study, &run_rounds(&study, &mut Given(given), &mut on).unwrap());
    let elapsed = Nanos::from_millis(1000);
    let ended = run(|_| Rebuild { elapsed: Nanos::from_millis(1000), done: 1.0 });
    let cell = find(&ended, "raid1(2)", "random-read 4KiB", "rebuilding", "rebuild_s");
    assert_eq!((cell.median, &*cell.unit, cell.better), (1.0, "s", Better::Lower));
    assert_eq!(cell.note, None);
    let rate = find(&ended, "raid1(2)", "random-read 4KiB", "rebuilding", "iops");
    assert_eq!(rate.note.as_deref(), Some("the rebuild ended after 25 % of the run"));
    let told = ended.warnings.iter().any(|one| one.contains("went on without one: raid1(2)"));
    assert!(told, "{:?}", ended.warnings);
    let latency = find(&ended, "raid1(2)", "random-read 4KiB", "degraded", "p99_ms");
    assert_eq!((latency.median, &*latency.unit), (7.0, "ms"));
    // One round without an end makes the cell an estimate.
    let mixed = run(|round| Rebuild {
        elapsed: Nanos::from_millis(1000),
        done: if round == 0 { 1.0 } else { 0.25 },
    });
    let cell = find(&mixed, "raid1(2)", "random-read 4KiB", "rebuilding", "rebuild_estimate_s");
    assert_eq!(cell.samples, [1.0, 4.0]);
    assert_eq!(cell.note.as_deref(), Some("estimated from 62.50 % of the rebuild"));
    assert_eq!(Rebuild { elapsed, done: 0.0 }.seconds(), None);
    assert_eq!(Rebuild { elapsed, done: 0.5 }.seconds(), Some((2.0, true)));
    assert_eq!(Rebuild { elapsed, done: 1.0 }.seconds(), Some((1.0, false)));
}

#[test]
fn the_first_seconds_beside_a_rebuild_of_parity_are_called_that() {
    let told = |text: &str, of_a_second: f64| {
        let mut study = parse(text, "s.toml").unwrap_or_else(|error| panic!("{error}"));
        study.modelled = true;
        let of = if of_a_second < 1.0 {
            |_| Rebuild { elapsed: Nanos::from_millis(4000), done: 0.5 }
        } else {
            |_| Rebuild { elapsed: Nanos::from_millis(1000), done: 1.0 }
        };
        let samples = run_rounds(&study, &mut Given(of), &mut on).expect("all is given");
        let warnings = summary(&study, &samples).warnings;
        warnings.into_iter().find(|one| one.contains("first 4.0 s or less"))
    };
    let with_host = format!("host = {{ kernel = \"linux-6.12\" }}\n{TEXT}");
    let warning = told(&with_host, 0.5).expect("it is told");
    let names = "cells of raid5(4) chunk=64K, raid5(4) chunk=64K bitmap, raid6(4) chunk=64K show";
    assert!(warning.contains(names), "{warning}");
    // raidlab's own engine has all its stripes at once; and without a rebuild beside nothing grows.
    assert_eq!(told(TEXT, 0.5), None);
    assert_eq!(told(&with_host, 1.0), None);
    let old = TEXT.replace("title", "host = { kernel = \"linux-2.6.23\" }\ntitle");
    assert_eq!(told(&old, 0.5), None);
}

/// Files are laid out, and read into memory, before the rebuild begins that a cell tells of: none of it is over then.
#[test]
fn a_rebuild_begins_with_what_is_measured() {
    let text = r#"
title = "Begin"
states = ["rebuilding"]
member_size = "2GiB"
pacing = { least = "1MB/s", most = "1GB/s" }
filesystem = "ext4"
host = { kernel = "linux-6.12" }
drives = [{ name = "nas", model = "nas-8tb-7200", count = 4 }]
layouts = [{ level = "raid5", members = 3 }, { level = "raid5", members = 3, spares = 1 }]
workloads = [
    { kind = "cp-null", size = "512MiB" },
    { kind = "cp-null", size = "512MiB", just_written = true, name = "warm" },
    { kind = "tar-xf", size = "200MB", files = 1000, cached = true },
]
"#;
    let study = parse(text, "s.toml").unwrap_or_else(|error| panic!("{error}"));
    let modelled = Modelled::new(&study, HostCosts::default()).expect("modelled");
    let state = State::Rebuilding;
    for (layout, workload) in (0..2).flat_map(|layout| (0..3).map(move |work| (layout, work))) {
        let mut world = modelled.world_in(layout, state, 1).expect("a world");
        let key = CellKey { layout, workload, processes: 1, state, again: false };
        let sample = modelled.run_on(&mut world, &key, 1).expect("runs");
        let rebuild = sample.rebuild.expect("it has begun");
        let case = format!("layout {layout}, workload {workload}: {rebuild:?}");
        // What was measured, and what the end of a run takes.
        assert!(rebuild.elapsed >= sample.last_done, "{case}");
        assert!(
            rebuild.elapsed.0 < sample.last_done.0 + 10_000_000,
            "{case}: {:?}",
            sample.last_done
        );
        assert!(world.started() > raidlab_core::Time::ZERO, "{case}");
        let mut begun = world.events().iter().zip(world.event_times());
        let begun = begun.find(|(event, _)| matches!(event, Event::Started(_)));
        assert!(begun.is_some_and(|(_, at)| *at >= world.started()), "{case}: {begun:?}");
    }
}

/// A rebuild of whole drives is measured at their outer edge, where they are fastest, and told of all of it: as long as
/// a pass at the rates of the drive's file, and at md's 204.8 MB/s at most.
#[test]
fn a_rebuild_of_whole_drives_goes_over_all_zones() {
    for drive in ["nas-8tb-7200", "nas-4tb-5400"] {
        let text = format!(
            "title = \"zones\"\nrounds = 1\nstates = [\"rebuilding\"]\n\
             drives = [{{ name = \"d\", model = \"{drive}\", count = 3 }}]\n\
             layouts = [{{ level = \"raid1\", members = 2 }}]\n\
             workloads = [{{ kind = \"dd-read\", size = \"1GiB\" }}]\n"
        );
        let study = parse(&text, "z.toml").expect("right");
        let modelled = Modelled::new(&study, HostCosts::default()).expect("modelled drives");
        let spec = &modelled.drives()[0];
        let [outer, inner] =
            ["outer_rate", "inner_rate"].map(|key| spec.amount(key).unwrap() as f64);
        // In so many pieces that the sum is the integral.
        const PIECES: u32 = 100_000;
        let piece = |at: u32| {
            let rate = outer + (inner - outer) * (f64::from(at) + 0.5) / f64::from(PIECES);
            spec.capacity.bytes() as f64 / f64::from(PIECES) / rate.min(204.8e6)
        };
        let least: f64 = (0..PIECES).map(piece).sum();
        let key = raidlab_study::cells(&study)
            .into_iter()
            .find(|key| key.processes == 0)
            .expect("a rebuild alone");
        let sample = modelled.clone().run(&key, 0, 1).expect("runs");
        let (seconds, is_estimate) = sample.rebuild.expect("a rebuild").seconds().expect("a time");
        assert!(is_estimate);
        let more = seconds / least - 1.0;
        assert!((0.0..0.06).contains(&more), "{drive}: {seconds:.0} s, a pass takes {least:.0} s");
        // Nor is one beside work sooner done.
        let key = raidlab_study::cells(&study).into_iter().find(|key| key.processes == 1);
        let beside = modelled.clone().run(&key.expect("a cell"), 0, 1).expect("runs");
        let (beside, _) = beside.rebuild.expect("a rebuild").seconds().expect("a time");
        assert!(beside > 0.99 * least, "{drive}: {beside:.0} s beside a reader");
    }
}

/// Of drives of two sizes as much as the smaller has is rebuilt, whichever stands first.
#[test]
fn a_rebuild_of_unequal_drives_is_as_long_as_the_smaller_is_large() {
    let seconds = |groups: &str| {
        let text = format!(
            "title = \"zones\"\nrounds = 1\nstates = [\"rebuilding\"]\n\
             drives = [{{ name = \"big\", model = \"nas-8tb-7200\", count = 2 }}, \
                       {{ name = \"small\", model = \"nas-4tb-5400\", count = 2 }}]\n\
             layouts = [{{ level = \"raid1\", members = 2, drives = {groups} }}]\n\
             workloads = [{{ kind = \"dd-read\", size = \"1GiB\" }}]\n"
        );
        let study = parse(&text, "z.toml").unwrap_or_else(|error| panic!("{error}"));
        let modelled = Modelled::new(&study, HostCosts::default()).expect("modelled drives");
        let key = raidlab_study::cells(&study).into_iter().find(|key| key.processes == 0);
        let sample = modelled.clone().run(&key.expect("a rebuild alone"), 0, 1).expect("runs");
        sample.rebuild.expect("a rebuild").seconds().expect("a time").0
    };
    let small = seconds("\"small\"");
    for groups in ["[\"big\", \"small\"]", "[\"small\", \"big\"]"] {
        let found = seconds(groups) / small;
        assert!((0.95..1.05).contains(&found), "{groups}: {found} times as long as small ones");
    }
}

/// A log device may be what holds an array back, and is named then.
#[test]
fn a_log_device_is_a_resource() {
    const TEXT: &str = r#"
title = "Journal"
rounds = 1
drives = [{ name = "slow", model = "nas-8tb-7200", count = 4 }]
layouts = [{ level = "raid5", members = 3, consistency = "journal" }]
workloads = [{ kind = "random-write", size = "256KiB", span = "1GiB" }]
"#;
    let study =
        Study { processes: vec![1], max_rounds: 1, ..parse(TEXT, "j.toml").expect("right") };
    let mut modelled = Modelled::new(&study, HostCosts::default()).expect("modelled drives");
    let samples = run_rounds(&study, &mut modelled, &mut on).expect("runs");
    let found = summary(&study, &samples);
    let busy = &found.cells[0].busy;
    let of = |name: &str| busy.iter().find(|one| one.resource == name).expect("is told").busy;
    assert!(of("log device") > 0.0 && of("member 0") > 0.0, "{busy:?}");
}

/// What a workload leaves in memory was not written while it was timed: the document says so, cell by cell.
#[test]
fn what_is_left_in_memory_is_warned_of() {
    const TEXT: &str = r#"
title = "Buffered"
rounds = 2
filesystem = "ext4"
drives = [{ name = "nas", model = "nas-8tb-7200", count = 2 }]
layouts = [{ level = "single" }, { level = "raid1", members = 2 }]
workloads = [
    { kind = "dd", name = "buffered", bs = "1MiB", size = "300MiB" },
    { kind = "dd", name = "synced", bs = "1MiB", size = "300MiB", conv = "fdatasync" },
]
"#;
    let study =
        Study { processes: vec![1], max_rounds: 2, ..parse(TEXT, "b.toml").expect("right") };
    let mut modelled = Modelled::new(&study, HostCosts::default()).expect("modelled drives");
    let samples = run_rounds(&study, &mut modelled, &mut on).expect("runs");
    let found = summary(&study, &samples);
    let left: Vec<&String> =
        found.warnings.iter().filter(|one| one.contains("still in memory")).collect();
    let expected = "300 MiB were still in memory only at the end of the run: single, buffered, 1 process; raid1(2), \
                    buffered, 1 process";
    assert_eq!(left, [expected], "{:?}", found.warnings);
}
