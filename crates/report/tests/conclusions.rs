//! Sentences say nothing that the cells they cite do not.

use std::collections::BTreeSet;

use crate::common;
use raidlab_report::{About, Conclusion, Exporter, Terminal, conclusions, number};
use raidlab_results::TooShort;
use raidlab_results::document::{Better, Bottleneck, Cell, Clock, Results, Verdict};
use raidlab_results::trust::CellTrust;

/// Rules' own numbers: shares of the time that count as busy, what medians and models are near by.
const OF_RULES: [&str; 5] = ["80", "50", "1.0", "2.5", "1"];

/// Numbers drawn one after the other, the same in each run.
struct Draws(u64);

impl Draws {
    fn below(&mut self, most: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % most
    }

    fn from(&mut self, all: &[f64]) -> f64 {
        all[self.below(all.len() as u64) as usize]
    }
}

/// A document with all that sentences are made of: rows of all states, ties, few rounds, missing cells, busy drives,
/// paths and CPUs.
fn drawn(seed: u64) -> Results {
    let draws = &mut Draws(seed);
    let mut results = common::small();
    results.cells.clear();
    results.clock = if draws.below(3) == 0 { Clock::Real } else { Clock::Virtual };
    let rounds = draws.from(&[1.0, 3.0, 9.0, 12.0]) as usize;
    let better = if draws.below(2) == 0 { Better::Higher } else { Better::Lower };
    let names: Vec<String> = results.layouts.iter().map(|layout| layout.name.clone()).collect();
    for workload in ["dd-write", "random-read"] {
        for state in ["healthy", "degraded", "rebuilding"] {
            for processes in [1, 2, 4] {
                let unit = if better == Better::Higher { "1/s" } else { "s" };
                let shared = common::Shared { workload, processes, state, unit, better };
                let base = draws.from(&[0.4, 80.0, 2_000.0]);
                let mut row: Vec<Cell> = Vec::new();
                for name in &names {
                    let factor = draws.from(&[1.0, 1.0, 1.000_3, 1.003, 1.02, 1.3, 3.0, 0.5, 40.0]);
                    let spread = draws.from(&[0.0, 0.3, 1.0, 15.0]);
                    let mut cell = common::cell(&shared, name, base * factor, spread, rounds);
                    let resource = ["member 3", "cpu", "bus"][draws.below(3) as usize].to_owned();
                    let busy = draws.from(&[0.2, 0.5, 0.813, 0.99]);
                    cell.bottleneck = Some(Bottleneck { resource, busy });
                    if draws.below(12) > 0 {
                        row.push(cell);
                    }
                }
                common::compare(&mut row, "single");
                results.cells.extend(row);
            }
        }
    }
    results
}

fn documents() -> impl Iterator<Item = Results> {
    let made = [common::small(), common::full(), common::real()];
    made.into_iter().chain((0..60).map(drawn))
}

/// The numbers of a text, without the names that have some.
fn numbers(results: &Results, one: &Conclusion<'_>) -> Vec<String> {
    let mut text = one.text.clone();
    let mut names: Vec<&str> = results.layouts.iter().map(|layout| layout.name.as_str()).collect();
    names.extend(results.workloads.iter().map(|workload| workload.name.as_str()));
    names.extend(["member 3", "member 0", "block=64KiB"]);
    names.sort_by_key(|name| std::cmp::Reverse(name.len()));
    for name in names {
        text = text.replace(name, "");
    }
    text = text.replace("..", " ");
    let is_part = |char: char| char.is_ascii_digit() || char == '.' || char == '\u{202f}';
    let parts = text.split(|char: char| !is_part(char));
    let parts = parts.map(|part| part.trim_matches(['.', '\u{202f}']).replace('\u{202f}', ""));
    parts.filter(|part| part.contains(|char: char| char.is_ascii_digit())).collect()
}

fn digits(text: String) -> String {
    let is_part = |char: &char| char.is_ascii_digit() || *char == '.';
    text.chars().filter(is_part).collect()
}

/// What may be said of one cell, and of one beside another.
fn said_of(cells: &[&Cell]) -> BTreeSet<String> {
    let mut all = BTreeSet::new();
    for cell in cells {
        let samples = cell.samples.iter().chain(cell.ci95.iter().flatten());
        all.extend(samples.chain([&cell.median]).map(|value| number::number(*value)));
        all.extend(cell.percent_vs_baseline.map(number::percent));
        all.extend(cell.coverage.map(number::share));
        all.extend(cell.floor_percent.map(|floor| format!("{floor:.1}")));
        all.extend(cell.bottleneck.as_ref().map(|one| number::share(one.busy)));
        all.extend(cell.more_rounds.map(|more| more.to_string()));
        all.extend([cell.processes.to_string(), cell.samples.len().to_string()]);
        let same = |other: &&&Cell| {
            other.workload == cell.workload
                && (other.processes == cell.processes && other.state == cell.state
                    || other.layout == cell.layout)
        };
        for other in cells.iter().filter(same) {
            let ratio = cell.median / other.median;
            all.extend([number::percent((ratio - 1.0) * 100.0), number::share(ratio)]);
        }
    }
    all.into_iter().map(digits).collect()
}

/// How many of something there are: cells, rows, those of each layout.
fn counts(results: &Results, one: &Conclusion<'_>) -> BTreeSet<String> {
    let mut all = BTreeSet::from([one.cells.len(), results.cells.len()]);
    let of = |layout: &str| one.cells.iter().filter(|cell| cell.layout == layout).count();
    all.extend(results.layouts.iter().map(|layout| of(&layout.name)));
    all.insert(results.layouts.iter().filter(|layout| of(&layout.name) > 0).count());
    if one.about == About::Limit {
        // What was busy, by layout.
        for layout in &results.layouts {
            for what in ["member", "cpu", "bus"] {
                let held = |cell: &&&Cell| {
                    let bottleneck = cell.bottleneck.as_ref();
                    cell.layout == layout.name
                        && bottleneck
                            .is_some_and(|one| one.busy >= 0.8 && one.resource.starts_with(what))
                };
                all.insert(one.cells.iter().filter(held).count());
            }
        }
    }
    if one.about == About::Redundancy {
        // Two cells of each row, behind those that it names.
        all.extend(0..one.cells.len() / 2);
    }
    all.into_iter().map(|count| count.to_string()).collect()
}

#[test]
fn every_number_of_a_sentence_is_one_of_its_cells() {
    let mut seen = BTreeSet::new();
    for (at, results) in documents().enumerate() {
        for one in conclusions(&results).expect("a good document") {
            assert!(!one.cells.is_empty(), "{at}: {}", one.text);
            let in_document =
                |cell: &&Cell| results.cells.iter().any(|own| std::ptr::eq(own, *cell));
            assert!(one.cells.iter().all(in_document), "{at}: {}", one.text);
            let mut known = said_of(&one.cells);
            known.extend(counts(&results, &one));
            known.extend(OF_RULES.map(str::to_owned));
            for number in numbers(&results, &one) {
                assert!(known.contains(&number), "{at}: {number} in: {}\n{known:?}", one.text);
            }
            seen.insert(one.about);
        }
    }
    assert_eq!(seen.len(), 6, "sentences of every kind: {seen:?}");
}

/// Giving up redundancy is to take another layout for the same room: one drive is none for that of three.
#[test]
fn what_redundancy_costs_is_told_beside_as_much_room() {
    let told = |results: &Results| {
        let all = conclusions(results).expect("a good document");
        let texts = all.into_iter().filter(|one| one.about == About::Redundancy);
        texts.map(|one| one.text).collect::<Vec<_>>()
    };
    let all = common::small();
    let only = |names: &[&str]| {
        let mut results = all.clone();
        results.layouts.retain(|layout| names.contains(&layout.name.as_str()));
        results.cells.retain(|cell| names.contains(&cell.layout.as_str()));
        results
    };
    assert_eq!(told(&only(&["single", "raid5(4)"])), [""; 0]);
    // What it is rounded by is no room.
    let mut mirror = only(&["single", "raid1(2)"]);
    mirror.layouts[0].capacity -= 1 << 30;
    assert_eq!(told(&mirror).len(), 1);
    mirror.cells.iter_mut().filter(|cell| cell.layout == "raid1(2)").for_each(|cell| {
        cell.median *= 2.0;
        cell.samples.iter_mut().for_each(|sample| *sample *= 2.0);
    });
    let [text] = &told(&mirror)[..] else { panic!("a sentence") };
    assert!(
        text.starts_with("No gain by giving up redundancy is shown in any of 4\u{a0}rows: "),
        "{text}"
    );
}

/// A gain that the model of either layout cannot tell is none.
#[test]
fn what_redundancy_costs_is_no_less_than_the_model_can_tell() {
    let mut results =
        rows(&["healthy"], &[1, 2], |layout, _, processes| match (layout, processes) {
            ("single", _) => 1.0,
            (_, 1) => 1.2,
            _ => 1.1,
        });
    results.layouts[0].survives = 1;
    let told = |results: &Results| said(results, About::Redundancy);
    let gains = "Giving up redundancy gains most at dd-write with 1 process: +20 % on raid0(4), which survives no lost \
                 drive, beside single (240 against 200 MiB/s); in 0 of 2 rows no gain is shown.";
    assert_eq!(told(&results), [gains]);
    let trust = |floor| CellTrust { floor_percent: Some(floor), ..CellTrust::default() };
    results.cells[0].trust = Some(trust(25));
    let gains = "Giving up redundancy gains most at dd-write with 2 processes: +10 % on raid0(4), which survives no \
                 lost drive, beside single (220 against 200 MiB/s); in 1 of 2 rows no gain is shown.";
    assert_eq!(told(&results), [gains]);
    results.cells[3].trust = Some(trust(15));
    let none = "No gain by giving up redundancy is shown in any of 2 rows, as differences below 25.0 % mean nothing: \
                the most is +20 % on raid0(4) beside single at dd-write with 1 process (240 against 200 MiB/s).";
    assert_eq!(told(&results), [none]);
    for cell in &mut results.cells {
        cell.trust = Some(CellTrust::default());
    }
    assert_eq!(told(&results), [""; 0], "nothing can be told");
}

/// What the rounds do not show is no gain, however far apart medians are.
#[test]
fn what_redundancy_costs_is_told_only_where_the_rounds_show_it() {
    let faster = |layout: &str, _: &str, _| if layout == "single" { 1.0 } else { 1.04 };
    let mut sure = rows(&["healthy"], &[1], faster);
    sure.layouts[0].survives = 1;
    let told = |results: &Results| said(results, About::Redundancy);
    let gains = "Giving up redundancy gains most at dd-write with 1 process: +4.0 % on raid0(4), which survives no \
                 lost drive, beside single (208 against 200 MiB/s); in 0 of 1 row no gain is shown.";
    assert_eq!(told(&sure), [gains]);
    let none = "No gain by giving up redundancy is shown in any of 1 row: the most is +4.0 % on raid0(4) beside single \
                at dd-write with 1 process (208 against 200 MiB/s).";
    let mut overlapping = sure.clone();
    for cell in &mut overlapping.cells {
        cell.ci95 = Some([cell.median * 0.9, cell.median * 1.1]);
    }
    assert_eq!(told(&overlapping), [none]);
    // The table calls it not resolved, and so does the sentence.
    let mut undecided = sure.clone();
    undecided.cells[1].verdict = Some(Verdict::NotResolved);
    assert_eq!(told(&undecided), [none]);
    undecided.baseline = vec!["raid0(4)".into()];
    undecided.cells[0].verdict = Some(Verdict::NotResolved);
    assert_eq!(told(&undecided), [none]);
    // One round shows nothing, in whichever direction.
    for (median, change) in [(300.0, "most is +50 %"), (100.0, "nearest is -50 %")] {
        let mut one = one_row(&[("single", 200.0), ("raid0(4)", median)], 1);
        one.layouts[0].survives = 1;
        let expected = format!(
            "No gain by giving up redundancy is shown in any of 1 row, by too few rounds to be sure: the {change} on \
             raid0(4) beside single at dd-write with 1 process ({median} against 200 MiB/s)."
        );
        assert_eq!(told(&one), [expected]);
    }
}

/// Rows with a figure that is not known and those of arrays that lack a member say nothing of what redundancy costs;
/// too few rounds are told.
#[test]
fn what_redundancy_costs_is_told_of_whole_healthy_rows() {
    let faster = |layout: &str, _: &str, _| if layout == "single" { 1.0 } else { 1.2 };
    let told = |results: &Results| {
        let [text] = &said(results, About::Redundancy)[..] else { panic!("a sentence") };
        text.clone()
    };
    let mut results = rows(&["healthy", "degraded"], &[1, 2], faster);
    results.layouts[0].survives = 1;
    assert!(told(&results).ends_with("in 0 of 2 rows no gain is shown."), "{}", told(&results));
    let mut few = results.clone();
    few.cells.iter_mut().for_each(|cell| cell.samples.truncate(4));
    let words = "(240 against 200 MiB/s), by too few rounds to be sure; in 0 of 2 rows";
    assert!(told(&few).contains(words), "{}", told(&few));
    results.too_short = vec![TooShort {
        layout: "raid5(4)".to_owned(),
        workload: "dd-write".to_owned(),
        processes: 2,
        state: "healthy".to_owned(),
        metric: results.cells[0].metric.clone(),
        settings: results.cells[0].settings.clone(),
        rounds: 1,
        of: 9,
    }];
    assert!(told(&results).ends_with("in 0 of 1 row no gain is shown."), "{}", told(&results));
}

/// A sentence about who is ahead has somebody ahead.
#[test]
fn nobody_leads_by_nothing() {
    for (at, results) in documents().enumerate() {
        for one in conclusions(&results).expect("a good document") {
            let plain = one.text.replace(['\u{a0}', '\u{202f}'], " ");
            let leads = [" leads ", " wins ", " is ahead "].iter().any(|verb| plain.contains(verb));
            let nothing = plain.contains(": 0 % over") || plain.contains(": 0 % against");
            assert!(!(leads && nothing), "{at}: {plain}");
        }
    }
}

fn one_row(medians: &[(&str, f64)], rounds: usize) -> Results {
    let mut results = common::small();
    let mut cells: Vec<Cell> = Vec::new();
    let shared = common::Shared {
        workload: "dd-write",
        processes: 1,
        state: "healthy",
        unit: "MiB/s",
        better: Better::Higher,
    };
    for (name, median) in medians {
        cells.push(common::cell(&shared, name, *median, 0.1, rounds));
    }
    common::compare(&mut cells, "single");
    results.cells = cells;
    results
}

fn text_of(results: &Results) -> String {
    let all = conclusions(results).expect("a good document");
    all[0].text.replace(['\u{a0}', '\u{202f}'], " ")
}

#[test]
fn one_round_and_medians_side_by_side_have_no_leader() {
    let results = one_row(&[("single", 243.0), ("raid1(2)", 243.1), ("raid5(4)", 200.0)], 1);
    let text = text_of(&results);
    let expected = "No layout leads with 1 process: single and raid1(2) are within 1.0 % of each other (243 MiB/s and \
                    243 MiB/s against single; 1 round, preliminary).";
    assert_eq!(text.replace(" (0 %)", ""), expected);
    let results = one_row(&[("single", 243.0), ("raid1(2)", 250.0)], 1);
    assert!(text_of(&results).starts_with("raid1(2) leads with 1 process: +2.9 % over single"));
}

/// Medians of few rounds may differ where the rounds, one by one, do not: percentages say so, and so must the sentence.
#[test]
fn who_leads_by_medians_alone_is_no_leader() {
    let mut results = one_row(&[("single", 203.0), ("raid1(2)", 199.0)], 3);
    assert!(text_of(&results).starts_with("single, the baseline, leads"));
    results.cells[1].percent_vs_baseline = Some(-0.4);
    let text = text_of(&results);
    assert!(text.starts_with("No layout leads with 1 process: single and raid1(2) are"), "{text}");
}

/// What is nearer than a model is right is no win, by however many rounds; on real drives it is.
#[test]
fn a_winner_within_the_models_own_error_is_not_sold_as_sure() {
    let mut results = one_row(&[("single", 200.0), ("raid0(4)", 204.0)], 9);
    let text = text_of(&results);
    assert!(text.starts_with("raid0(4) is ahead with 1 process: +2.0 % over single"), "{text}");
    let doubt =
        "the next is single with 200 MiB/s: nearer than the 2.5 % that models are off at best";
    assert!(text.contains(doubt), "{text}");
    results.clock = Clock::Real;
    let text = text_of(&results);
    assert!(text.starts_with("raid0(4) wins") && !text.contains("models"), "{text}");
    let far = one_row(&[("single", 200.0), ("raid0(4)", 206.0)], 9);
    assert!(text_of(&far).starts_with("raid0(4) wins with 1 process: +3.0 % over single"));
}

/// The median of one layout may be the best while another one is ahead in nearly all rounds: who wins by the rounds is
/// starred in the table, and is whom the sentence names.
#[test]
fn a_winner_by_the_rounds_is_named_though_another_median_is_better() {
    let mut results = one_row(&[("single", 75.0), ("raid1(2)", 150.0), ("raid0(4)", 150.0)], 21);
    results.clock = Clock::Real;
    // Two humps; in the middle, where medians are taken, raid1(2) is ahead by a little, elsewhere raid0(4) by 2 %.
    let old: Vec<f64> = (0..21)
        .map(|at| match at % 3 {
            0 => 98.0 + f64::from(at) / 4.0,
            1 => 198.0 + f64::from(at) / 4.0,
            _ if at == 2 => 150.0,
            _ => 99.0 + f64::from(at % 2) * 100.0,
        })
        .collect();
    let new: Vec<f64> =
        old.iter().map(|one| one * if *one == 150.0 { 0.999 } else { 1.02 }).collect();
    let half: Vec<f64> = old.iter().map(|one| one / 2.0).collect();
    for (cell, samples) in results.cells.iter_mut().zip([half, old, new]) {
        let mut sorted = samples.clone();
        sorted.sort_by(f64::total_cmp);
        (cell.median, cell.samples) = (sorted[10], samples);
        cell.ci95 = Some([sorted[5], sorted[15]]);
    }
    common::compare(&mut results.cells, "single");
    let medians: Vec<f64> = results.cells.iter().map(|cell| cell.median).collect();
    assert_eq!(medians, [75.0, 150.0, 149.85]);
    let starred: Vec<bool> = results.cells.iter().map(|cell| cell.may_be_best).collect();
    assert_eq!(starred, [false, false, true]);
    results.cells[2].percent_vs_baseline = Some(104.0);
    let text = text_of(&results);
    let start = "raid0(4) wins with 1 process: +104 % over single (150 MiB/s, between ";
    let end = "21 rounds; raid1(2) has the better median, 150 MiB/s, but not round by round)";
    assert!(text.starts_with(start) && text.contains(end), "{text}");
    let effect = conclusions(&results).expect("a good document")[0].effect;
    assert!((effect - 1.0).abs() < 1e-9, "{effect}");

    // Of the baseline it is said who is next.
    results.baseline = vec!["raid0(4)".into()];
    (results.cells[1].percent_vs_baseline, results.cells[2].percent_vs_baseline) =
        (Some(-2.0), Some(0.0));
    let text = text_of(&results);
    let start = "raid0(4), the baseline, wins with 1 process: next is raid1(2), -2.0 %";
    assert!(text.starts_with(start), "{text}");
}

/// The terminal prints what others are given.
#[test]
fn the_terminal_prints_every_sentence() {
    let results = drawn(7);
    let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let unbroken = |text: &str| words(&text.replace(['\u{a0}', '\u{202f}'], " "));
    let text =
        Terminal { unicode: true, ..Terminal::default() }.export(&results).expect("a report");
    for one in conclusions(&results).expect("a good document") {
        assert!(unbroken(&text).contains(&unbroken(&one.text)), "{}", one.text);
    }
}

/// Cells of two layouts at these process counts, in these states: by how much each is faster than the first.
fn rows(
    states: &[&'static str],
    processes: &[u32],
    faster: impl Fn(&str, &str, u32) -> f64,
) -> Results {
    let mut results = common::small();
    results.cells.clear();
    for &state in states {
        for &processes in processes {
            let unit = "MiB/s";
            let better = Better::Higher;
            let shared = common::Shared { workload: "dd-write", processes, state, unit, better };
            let cell = |name: &str| {
                common::cell(&shared, name, 200.0 * faster(name, state, processes), 0.1, 9)
            };
            let mut row = vec![cell("single"), cell("raid0(4)")];
            common::compare(&mut row, "single");
            results.cells.extend(row);
        }
    }
    results
}

fn said(results: &Results, about: About) -> Vec<String> {
    let all = conclusions(results).expect("a good document");
    let own = all.iter().filter(|one| one.about == about);
    own.map(|one| one.text.replace(['\u{a0}', '\u{202f}'], " ")).collect()
}

/// What is faster with a drive lost keeps no share of its speed.
#[test]
fn what_gets_faster_without_a_drive_is_said_as_such() {
    let faster = |layout: &str, state: &str, _| match (layout, state) {
        ("single", "degraded") => 0.5,
        ("raid0(4)", "degraded") => 1.25,
        _ => 1.0,
    };
    let text = said(&rows(&["healthy", "degraded"], &[1], faster), About::Failure);
    let expected = "With 1 process, degraded, single keeps 50 % of its healthy speed (100 MiB/s after 200); \
                    raid0(4) is faster than healthy, +25 % (250 MiB/s after 200).";
    assert_eq!(text, [expected]);
}

/// Of six percentages nobody reads all.
#[test]
fn many_percentages_are_told_by_their_ends() {
    let faster = |layout: &str, _: &str, processes: u32| match layout {
        "single" => 1.0,
        _ => 1.5 + f64::from(processes) / 100.0,
    };
    let text = said(&rows(&["healthy"], &[1, 2, 4, 10], faster), About::Best);
    let start = "raid0(4) wins with 1, 2, 4 and 10 processes: +51 % to +60 % over single. With 10";
    assert!(text[0].starts_with(start), "{}", text[0]);
    let text = said(&rows(&["healthy"], &[1, 2], faster), About::Best);
    assert!(text[0].contains(": +51 % and +52 % over single."), "{}", text[0]);
}

#[test]
fn what_limits_is_told_layout_by_layout() {
    let mut results = rows(&["healthy"], &[1, 2], |_, _, _| 1.0);
    for (cell, (resource, busy)) in results.cells.iter_mut().zip([
        ("member 0", 0.9),
        ("cpu", 0.95),
        ("member 1", 0.8),
        ("member 1", 0.7),
    ]) {
        cell.bottleneck = Some(Bottleneck { resource: resource.to_owned(), busy });
    }
    let text = said(&results, About::Limit);
    let expected = "What limits each, busy for 80 % of the time or more: on single a drive in 2 of 2 cells; \
                    on raid0(4) the CPU in 1 of 2 cells.";
    assert_eq!(text[0], expected);
    assert!(text[1].starts_with("Not a drive but the CPU is busiest"), "{}", text[1]);
}

/// Who is ahead with few processes and behind with many is told where both are beyond doubt.
#[test]
fn an_order_that_turns_is_told_where_both_are_sure() {
    let turns = |results: &Results| -> Vec<String> {
        said(results, About::Order)
            .into_iter()
            .filter(|one| one.starts_with("The order turns"))
            .collect()
    };
    let turning = |few: f64, many: f64| {
        rows(&["healthy"], &[1, 4], move |layout: &str, _: &str, processes: u32| {
            match (layout, processes) {
                ("single", _) => 1.0,
                (_, 1) => few,
                _ => many,
            }
        })
    };
    let expected = "The order turns: with 1 process raid0(4) is ahead of single (300 against 200 MiB/s), \
                    with 4 processes it is behind (100 against 200 MiB/s).";
    let mut results = turning(1.5, 0.5);
    assert_eq!(turns(&results), [expected]);
    for (few, many) in [(1.5, 1.2), (1.5, 0.999), (1.001, 0.5)] {
        assert_eq!(turns(&turning(few, many)), [""; 0], "{few} and {many}");
    }
    results.cells.iter_mut().for_each(|cell| cell.better = Better::Lower);
    let expected = "The order turns: with 1 process single is ahead of raid0(4) (200 against 300 MiB/s), \
                    with 4 processes it is behind (200 against 100 MiB/s).";
    assert_eq!(turns(&results), [expected]);
    // What neither the rounds nor the model of one of the four can tell is no order, whatever that of others is.
    for (at, gain) in [50, 50, 100, 100].into_iter().enumerate() {
        let mut other = results.clone();
        other.cells[at].floor_percent = Some(f64::from(gain) + 1.0);
        assert_eq!(turns(&other), [""; 0], "the floor of cell {at}");
        let told = |trust: CellTrust| {
            let mut other = results.clone();
            other.cells[at].trust = Some(trust);
            turns(&other).len()
        };
        let group = || Some("a group".to_owned());
        let of = |floor| CellTrust { group: group(), floor_percent: floor, ..CellTrust::default() };
        let not = |floor| CellTrust { not_checked: Some("a reason".into()), ..of(floor) };
        assert_eq!(
            [of(Some(gain + 1)), of(Some(gain - 1)), of(None), not(None)].map(told),
            [0, 1, 0, 1],
            "{at}"
        );
        // What was not checked itself is resolved no better than others of its row.
        assert_eq!([not(Some(gain + 1)), not(Some(gain - 1))].map(told), [0, 1], "{at}");
    }
    results.cells[3].ci95 = Some([90.0, 210.0]);
    assert_eq!(turns(&results), [""; 0], "intervals overlap");
    results.cells[3].ci95 = None;
    assert_eq!(turns(&results), [""; 0], "nothing is sure");
}

#[test]
fn what_a_lost_drive_costs_is_told_of_the_worst_and_the_best() {
    let faster = |layout: &str, state: &str, _: u32| match (layout, state) {
        ("single", "degraded") => 0.5,
        ("raid0(4)", "degraded") => 0.8,
        _ => 1.0,
    };
    let mut results = rows(&["healthy", "degraded"], &[1], faster);
    let start =
        "With 1 process, degraded, single keeps 50 % of its healthy speed (100 MiB/s after 200)";
    let both = format!("{start}, raid0(4) 80 % (160 MiB/s after 200).");
    assert_eq!(said(&results, About::Failure), [both]);
    results.cells.retain(|cell| cell.layout == "single");
    let found = conclusions(&results).expect("a good document");
    let one = found.iter().find(|one| one.about == About::Failure).expect("told");
    assert_eq!(
        (one.text.replace(['\u{a0}', '\u{202f}'], " "), one.cells.len()),
        (format!("{start}."), 2)
    );
}

/// A loss that the rounds do not show is none, as it may be a gain with other seeds.
#[test]
fn what_a_lost_drive_costs_is_told_only_where_the_rounds_show_it() {
    let degraded = |single: f64, raid0: f64| {
        rows(&["healthy", "degraded"], &[1], move |layout: &str, state: &str, _: u32| {
            match (layout, state) {
                (_, "healthy") => 1.0,
                ("single", _) => single,
                _ => raid0,
            }
        })
    };
    let told = |results: &Results| said(results, About::Failure);
    let mut results = degraded(0.87, 0.8);
    let start =
        "With 1 process, degraded, raid0(4) keeps 80 % of its healthy speed (160 MiB/s after 200)";
    assert_eq!(told(&results), [format!("{start}, single 87 % (174 MiB/s after 200).")]);
    results.cells[2].ci95 = Some([150.0, 201.0]);
    let unsure = format!("{start}; on single no loss is shown (174 MiB/s after 200).");
    assert_eq!(told(&results), [unsure]);
    // The larger loss is not the one that is shown.
    results.cells[2].ci95 = Some([173.0, 175.0]);
    results.cells[3].ci95 = Some([150.0, 201.0]);
    let other = "With 1 process, degraded, single keeps 87 % of its healthy speed (174 MiB/s after 200); \
                 on raid0(4) no loss is shown (160 MiB/s after 200).";
    assert_eq!(told(&results), [other]);
    results.cells[2].ci95 = None;
    assert_eq!(told(&results), [""; 0]);
    // Nor is it one that is shown to be faster.
    let mut results = degraded(0.5, 1.25);
    results.cells[3].ci95 = Some([199.0, 300.0]);
    let text = "With 1 process, degraded, single keeps 50 % of its healthy speed (100 MiB/s after 200); \
                on raid0(4) no loss is shown (250 MiB/s after 200).";
    assert_eq!(told(&results), [text]);
}

/// So many more rounds might tell who is best only where they would resolve each that may be.
#[test]
fn more_rounds_are_advised_where_they_tell_of_all() {
    let mut results = one_row(&[("single", 200.0), ("raid1(2)", 201.0), ("raid0(4)", 202.0)], 9);
    for (cell, more) in results.cells.iter_mut().zip([None, Some(5), Some(7)]) {
        (cell.may_be_best, cell.as_good_as_best, cell.more_rounds) = (true, false, more);
    }
    let text = text_of(&results);
    let start = "Not resolved with 1 process which is best of single, raid0(4) and raid1(2): ";
    assert!(text.starts_with(start), "{text}");
    assert!(text.ends_with("; about 7 more rounds might tell."), "{text}");
    results.cells[2].more_rounds = None;
    let text = text_of(&results);
    assert!(text.starts_with(start) && !text.contains("more rounds"), "{text}");
}
