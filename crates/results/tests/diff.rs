//! Two documents against each other: by hand, and on made-up rounds whose truth is known.

use crate::support::{Random, cell, document};
use raidlab_results::diff::{Change, Counts, Diff, DiffKind, FALSE_SHARE};
use raidlab_results::{Better, Cell, Clock, GUEST_PROGRAMS, Origin, Replays, Results};

fn of(before: &Results, after: &Results) -> Diff {
    let (before, after) = (std::slice::from_ref(before), std::slice::from_ref(after));
    Diff::of(("a", before), ("b", after), None)
}

/// Up to 7 rounds near to a value, none twice, up and down.
fn near(value: f64, rounds: usize) -> Vec<f64> {
    (0..rounds).map(|round| value * (1.0 + 1e-4 * (round * 5 % 7) as f64)).collect()
}

#[test]
fn a_modelled_run_is_compared_round_by_round() {
    // The rounds lie far apart, but each is 10 % slower than before.
    let rounds = [50.0, 90.0, 130.0, 200.0, 260.0, 300.0];
    let slower: Vec<f64> = rounds.iter().map(|one| one * 0.9).collect();
    let before = document(Clock::Virtual, vec![cell("one", &rounds), cell("two", &rounds)]);
    let after = document(Clock::Virtual, vec![cell("one", &slower), cell("two", &rounds)]);
    let diff = of(&before, &after);
    let one = &diff.cells[0];
    assert_eq!((one.name.layout.as_str(), one.verdict), ("one", Some(Change::Regressed)));
    assert!(one.paired);
    assert!((one.percent.expect("known") + 10.0).abs() < 1e-9);
    // 2 of 64 orders, the only test: the other cell is the same to the last bit.
    assert_eq!((one.chance, one.chance_corrected), (Some(2.0 / 64.0), Some(2.0 / 64.0)));
    let [low, high] = one.percent_interval.expect("six rounds");
    assert!((low + 10.0).abs() < 1e-9 && (high + 10.0).abs() < 1e-9);
    assert_eq!((diff.cells[1].verdict, diff.cells[1].chance), (Some(Change::Unchanged), None));
    assert_eq!(diff.cells[1].percent, Some(0.0));
    let counts = Counts { regressed: 1, unchanged: 1, ..Counts::default() };
    assert_eq!((diff.counts, diff.kind), (counts, DiffKind::Change));
    assert!(diff.warnings.is_empty() && diff.setup.is_empty());
}

/// Of a rebuild of which one side saw next to nothing a difference of 16 times was told that was none.
#[test]
fn rebuilds_of_which_one_side_tells_too_little_are_left_out() {
    let rebuild = |seconds: f64, percent: f64| {
        let mut cell = cell("one", &[1000.0, 1001.0, 1002.0]);
        (cell.metric, cell.processes) = ("rebuild_estimate_s".into(), 4);
        cell.note = Some(format!("estimated from {percent} % of the rebuild"));
        cell.last_done_s = seconds;
        document(Clock::Virtual, vec![cell])
    };
    let whole = rebuild(60.0, 5.0);
    for (seconds, percent, known) in [(9.9, 0.9, false), (10.1, 0.9, true), (9.9, 1.1, true)] {
        let part = rebuild(seconds, percent);
        assert_eq!(!of(&whole, &part).cells.is_empty(), known, "{seconds} s, {percent} %");
        assert_eq!(!of(&part, &whole).cells.is_empty(), known, "{seconds} s, {percent} %");
    }
}

#[test]
fn another_seed_or_place_of_the_workload_is_no_pair() {
    let before = document(Clock::Virtual, vec![cell("one", &near(100.0, 6))]);
    let mut after = before.clone();
    after.seed += 1;
    let diff = of(&before, &after);
    assert!(!diff.cells[0].paired);
    assert_eq!(diff.setup.len(), 1, "{:?}", diff.setup);
    let mut after = before.clone();
    after.workloads.insert(0, after.workloads[0].clone());
    after.workloads[0].name = "another".into();
    assert!(!of(&before, &after).cells[0].paired);
}

#[test]
fn runs_on_a_machine_are_apart() {
    let before = document(Clock::Real, vec![cell("one", &near(100.0, 6))]);
    let after = document(Clock::Real, vec![cell("one", &near(120.0, 6))]);
    let diff = of(&before, &after);
    let one = &diff.cells[0];
    assert!(!one.paired);
    assert_eq!(one.verdict, Some(Change::Improved));
    assert!((one.chance.expect("tested") - 2.0 / 924.0).abs() < 1e-12);
    assert!((one.percent.expect("known") - 20.0).abs() < 1e-9);
    // 19 of 924 on each side: the 6th smallest difference and the 6th largest.
    let [low, high] = one.percent_interval.expect("six rounds");
    assert!(low < 20.0 && high > 20.0 && low > 19.95 && high < 20.05, "{low} {high}");
}

#[test]
fn lower_may_be_better() {
    let mut before = document(Clock::Real, vec![cell("one", &near(100.0, 6))]);
    let mut after = document(Clock::Real, vec![cell("one", &near(120.0, 6))]);
    for cell in before.cells.iter_mut().chain(&mut after.cells) {
        cell.better = Better::Lower;
    }
    let diff = of(&before, &after);
    assert_eq!(diff.cells[0].verdict, Some(Change::Regressed));
    assert!((diff.cells[0].percent.expect("known") - 20.0).abs() < 1e-9);
    let [low, high] = diff.cells[0].percent_interval.expect("six rounds");
    assert!(low < 20.0 && 20.0 < high, "{low} {high}");
}

#[test]
fn the_floor_is_the_cells_or_the_callers() {
    let before = document(Clock::Real, vec![cell("one", &near(100.0, 6))]);
    let mut after = document(Clock::Real, vec![cell("one", &near(104.0, 6))]);
    // Where nothing is known it is 3 % in real time.
    assert_eq!(of(&before, &after).cells[0].floor_percent, 3.0);
    assert_eq!(of(&before, &after).counts.improved, 1);
    after.cells[0].floor_percent = Some(5.0);
    let diff = of(&before, &after);
    assert_eq!((diff.cells[0].floor_percent, diff.counts.equal), (5.0, 1));
    let documents = [&before, &after].map(std::slice::from_ref);
    let diff = Diff::of(("a", documents[0]), ("b", documents[1]), Some(2.0));
    assert_eq!((diff.cells[0].floor_percent, diff.counts.improved), (2.0, 1));
    // The baseline has none of its own: that of the row counts.
    after.cells[0].floor_percent = None;
    after.cells.push(cell("two", &near(50.0, 6)));
    after.cells[1].floor_percent = Some(4.5);
    assert_eq!(of(&before, &after).cells[0].floor_percent, 4.5);
}

/// The row of a baseline's cell is that of its own settings and figure, whatever stands before it.
#[test]
fn the_floor_of_a_baseline_is_that_of_its_own_row() {
    let of_row = |layout: &str, block: &str, metric: &str, floor: Option<f64>| Cell {
        settings: [("block".to_owned(), block.to_owned())].into(),
        metric: metric.into(),
        floor_percent: floor,
        ..cell(layout, &near(100.0, 6))
    };
    let rows = [("4KiB", "iops", 2.0), ("64KiB", "iops", 4.0), ("64KiB", "mib_per_s", 4.5)];
    let cells = rows.iter().flat_map(|(block, metric, floor)| {
        [of_row("one", block, metric, None), of_row("two", block, metric, Some(*floor))]
    });
    let document = document(Clock::Real, cells.collect());
    let diff = of(&document, &document);
    assert_eq!(diff.cells.len(), 6);
    for (block, metric, floor) in rows {
        let mut own = diff
            .cells
            .iter()
            .filter(|cell| (&*cell.name.settings["block"], &*cell.name.metric) == (block, metric));
        assert!(own.all(|cell| cell.floor_percent == floor), "{block}, {metric}");
    }
}

#[test]
fn what_only_one_has_is_listed() {
    let rounds = near(100.0, 6);
    let before = document(Clock::Real, vec![cell("one", &rounds), cell("two", &rounds)]);
    let mut after = document(Clock::Real, vec![cell("two", &rounds), cell("three", &rounds)]);
    after.cells.push(cell("one", &rounds));
    after.cells[2].unit = "MB/s".into();
    after.cells.push(cell("four", &rounds));
    after.cells[3].detail = true;
    let diff = of(&before, &after);
    let names = |cells: &[raidlab_results::CellName]| -> Vec<String> {
        cells.iter().map(|one| format!("{} {}", one.layout, one.unit)).collect()
    };
    assert_eq!(names(&diff.only_before), ["one MiB/s"]);
    assert_eq!(names(&diff.only_after), ["one MB/s", "three MiB/s"]);
    assert_eq!(diff.cells.len(), 1);
    let nothing = document(Clock::Real, Vec::new());
    assert_eq!(of(&nothing, &after).warnings, ["no cell is in both"]);
}

#[test]
fn too_few_rounds_are_said() {
    let cells = |value: f64, rounds| {
        (0..20).map(|at| cell(&format!("layout {at}"), &near(value, rounds))).collect()
    };
    let before = document(Clock::Virtual, cells(100.0, 6));
    let diff = of(&before, &document(Clock::Virtual, cells(100.001, 6)));
    // 2^(1-n) of 0.05 / 20 needs 10 rounds.
    assert!(diff.warnings[0].contains("10 rounds of each"), "{:?}", diff.warnings);
    let before = document(Clock::Real, cells(100.0, 5));
    let diff = of(&before, &document(Clock::Real, cells(100.001, 5)));
    // 2 of 252 orders is more than 0.05 / 20, 2 of 924 is not.
    assert!(diff.warnings[0].contains("6 rounds of each"), "{:?}", diff.warnings);
    let before = document(Clock::Real, cells(100.0, 6));
    let diff = of(&before, &document(Clock::Real, cells(100.001, 6)));
    assert_eq!((diff.warnings.len(), diff.counts.equal), (0, 20), "{:?}", diff.warnings);
}

#[test]
fn rounds_that_depend_on_each_other_are_said() {
    let climbing: Vec<f64> = (0..20).map(|round| 100.0 + f64::from(round)).collect();
    let real = document(Clock::Real, vec![cell("one", &climbing)]);
    assert!(of(&real, &real).warnings[0].contains("depend on each other (correlation 0.9"));
    let mut other = document(Clock::Virtual, vec![cell("one", &climbing)]);
    let modelled = other.clone();
    other.seed += 1;
    assert_eq!(of(&modelled, &other).warnings, [""; 0]);
}

#[test]
fn of_a_round_of_nothing_there_is_no_ratio() {
    let mut rounds = near(100.0, 6);
    rounds[2] = 0.0;
    let nothing = document(Clock::Real, vec![cell("one", &rounds)]);
    let some = document(Clock::Real, vec![cell("one", &near(100.0, 6))]);
    for (before, after) in [(&nothing, &some), (&some, &nothing)] {
        let one = &of(before, after).cells[0];
        assert_eq!((one.percent, one.percent_interval, one.chance), (None, None, None));
        assert_eq!(one.verdict, Some(Change::NotResolved));
    }
}

#[test]
fn measured_beside_modelled_are_residuals() {
    let layouts = [("one", 110.0), ("two", 95.0), ("three", 100.5)];
    let modelled = layouts.map(|(layout, value)| cell(layout, &near(value, 6)));
    let mut modelled = document(Clock::Virtual, modelled.to_vec());
    modelled.host.insert("drives".into(), "two".into());
    modelled.settings.insert("target".into(), "raw".into());
    let measured = layouts.map(|(layout, _)| cell(layout, &near(100.0, 6)));
    let mut measured = document(Clock::Real, measured.to_vec());
    measured.host.insert("kernel".into(), "6.1".into());
    measured.settings.insert("target".into(), "files".into());
    for diff in [of(&modelled, &measured), of(&measured, &modelled)] {
        assert_eq!(diff.kind, DiffKind::Residual);
        // What only one of them can have is no difference.
        let setup: Vec<&str> = diff.setup.iter().map(|one| one.what.as_str()).collect();
        assert_eq!(setup, ["settings, target"]);
        assert_eq!((diff.before.clock, diff.after.clock), (Clock::Real, Clock::Virtual));
        let found: Vec<i64> = diff
            .cells
            .iter()
            .map(|one| (one.percent.expect("known") * 10.0).round() as i64)
            .collect();
        assert_eq!(found, [100, -50, 5]);
        assert!((diff.median_residual_percent.expect("known") - 5.0).abs() < 1e-9);
        assert_eq!((diff.counts, diff.cells[0].verdict), (Counts::default(), None));
        assert!(diff.cells[0].percent_interval.is_some());
    }
}

/// All in virtual time or not, from one seed: a kernel is what the model is held against, and a machine what a kernel
/// is.
#[test]
fn a_kernel_stands_between_model_and_machine() {
    let at = |clock, value| document(clock, vec![cell("one", &near(value, 6))]);
    let (modelled, measured) = (at(Clock::Virtual, 110.0), at(Clock::Real, 90.0));
    let mut kernel = at(Clock::Virtual, 100.0);
    kernel.host.insert(GUEST_PROGRAMS.into(), "programs".into());
    for (one, other, origins, off) in [
        (&modelled, &kernel, (Origin::Kernel, Origin::Modelled), 10.0),
        (&kernel, &modelled, (Origin::Kernel, Origin::Modelled), 10.0),
        (&kernel, &measured, (Origin::Measured, Origin::Kernel), 100.0 / 9.0),
    ] {
        let diff = of(one, other);
        assert_eq!((diff.before.origin, diff.after.origin), origins);
        assert_eq!((diff.kind, diff.cells[0].paired), (DiffKind::Residual, false));
        assert!((diff.cells[0].percent.expect("known") - off).abs() < 1e-9, "{diff:?}");
    }
    assert_eq!(of(&kernel, &kernel).kind, DiffKind::Change);
}

#[test]
fn replays_belong_together_by_their_titles() {
    let mut first = document(Clock::Virtual, vec![cell("one", &near(100.0, 6))]);
    first.study = "first".into();
    let mut second = document(Clock::Virtual, vec![cell("one", &near(200.0, 6))]);
    second.study = "second".into();
    let text = Replays::new(vec![first.clone(), second.clone()]).to_json().expect("finite");
    let before = Results::all_from_json(&text).expect("a document");
    assert_eq!(before, [first.clone(), second.clone()]);
    assert_eq!(
        Results::all_from_json(&first.to_json().expect("finite")).expect("one"),
        [first.clone()]
    );
    let diff = Diff::of(("a", &before), ("b", &[second]), None);
    assert_eq!((diff.counts.unchanged, diff.cells.len()), (1, 1));
    assert_eq!(diff.cells[0].name.study.as_deref(), Some("second"));
    assert_eq!(diff.only_before.len(), 1);
    let wrong =
        Results::all_from_json(&text.replace("\"schema_version\": 2", "\"schema_version\": 1"));
    assert!(wrong.expect_err("another version").to_string().contains("schema_version 1"));
}

/// Documents of 100 cells whose first so many are moved by a factor; what is called of them: truly and falsely.
fn called(random: &mut Random, clock: Clock, moved: usize, by: f64) -> (usize, usize) {
    let rounds = 12;
    let mut cells = (Vec::new(), Vec::new());
    for at in 0..100 {
        let name = format!("{at:03}");
        let mut run = |factor: f64| -> Vec<f64> {
            (0..rounds).map(|_| factor * libm::exp(0.03 * random.normal())).collect()
        };
        let one = run(100.0);
        let other = run(if at < moved { 100.0 * by } else { 100.0 });
        cells.0.push(cell(&name, &one));
        cells.1.push(cell(&name, &other));
    }
    let documents = [document(clock, cells.0), document(clock, cells.1)];
    let documents = documents.each_ref().map(std::slice::from_ref);
    let diff = Diff::of(("a", documents[0]), ("b", documents[1]), Some(0.0));
    let mut counts = (0, 0);
    for cell in &diff.cells {
        let called = matches!(cell.verdict, Some(Change::Regressed | Change::Improved));
        let is_moved = cell.name.layout.parse::<usize>().expect("a number") < moved;
        counts.0 += usize::from(called && is_moved);
        counts.1 += usize::from(called && !is_moved);
    }
    counts
}

/// The floor is nothing here, so that every cell that is not moved is as easily called as can be.
#[test]
fn false_ones_among_the_called_are_few() {
    let mut random = Random::new(20_261_122);
    for clock in [Clock::Virtual, Clock::Real] {
        for moved in [0, 10, 50] {
            let repeats = 200;
            let (mut shares, mut found) = (0.0, 0);
            for _ in 0..repeats {
                let (truly, falsely) = called(&mut random, clock, moved, 0.90);
                shares += falsely as f64 / (truly + falsely).max(1) as f64;
                found += truly;
            }
            let share = shares / f64::from(repeats);
            let power = found as f64 / (f64::from(repeats) * (moved as f64).max(1.0));
            println!("{clock:?}, {moved} of 100 moved by 10 %: {share:.3} false, {power:.3} found");
            // Three deviations of the mean of so many documents, each of which has a share of 0 to 1.
            let most =
                FALSE_SHARE + 3.0 * (FALSE_SHARE * (1.0 - FALSE_SHARE) / f64::from(repeats)).sqrt();
            assert!(share <= most, "{share}");
            assert!(moved == 0 || power > 0.9, "{power}");
        }
    }
}

/// A state, a number of processes or a workload of its own is a row of its own, each with its own floor.
#[test]
fn the_floor_of_a_baseline_is_that_of_no_other_state_processes_or_workload() {
    let changes: [fn(&mut Cell); 4] = [
        |_| {},
        |cell| cell.state = "degraded".into(),
        |cell| cell.processes = 4,
        |cell| cell.workload = "read".into(),
    ];
    let mut cells = Vec::new();
    for (change, floor) in changes.into_iter().zip([5.0, 2.0, 3.5, 1.5]) {
        for (layout, floor) in [("one", None), ("two", Some(floor))] {
            let mut cell = cell(layout, &near(100.0, 6));
            cell.floor_percent = floor;
            change(&mut cell);
            cells.push(cell);
        }
    }
    let document = document(Clock::Real, cells);
    let diff = of(&document, &document);
    assert_eq!(diff.cells.len(), 8);
    for cell in &diff.cells {
        let is_row = |one: &&Cell| {
            let name = &cell.name;
            one.floor_percent.is_some()
                && (&one.state, one.processes, &one.workload)
                    == (&name.state, name.processes, &name.workload)
        };
        let row = document.cells.iter().find(is_row).expect("a row");
        let floor = row.floor_percent.expect("one");
        assert!((cell.floor_percent - floor).abs() < 1e-9, "{floor}: {cell:?}");
    }
}
