//! What reports show means what the document says, in each of their forms: which way a layout differs, what a figure's
//! values are of, before and after, and what must be known.

use crate::common::{self, Shared};
use raidlab_report::figure::model::{Bars, Body, Panel, Plot, Tone};
use raidlab_report::figure::{diff_figure, figure};
use raidlab_report::{
    About, Exporter, Html, Terminal, conclusions, diff_html, findings, glances, number,
};
use raidlab_results::document::{Better, Bottleneck, Cell, Clock, Published, Results, Verdict};
use raidlab_results::trust::CellTrust;
use raidlab_results::{Diff, LATENCY_SHARES, LatencyRow};

const TERMINAL: Terminal = Terminal { width: None, colour: false, unicode: true };

fn plain(text: &str) -> String {
    text.replace(['\u{a0}', '\u{202f}'], " ")
}

fn words(text: &str) -> String {
    plain(text).split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Layouts with what the rounds show of each beside the first.
const SHOWN: [(&str, f64, Option<Verdict>); 5] = [
    ("single", 200.0, None),
    ("linear(4)", 200.6, Some(Verdict::Equal)),
    ("raid0(4)", 400.0, Some(Verdict::Faster)),
    ("raid1(2)", 120.0, Some(Verdict::Slower)),
    ("raid5(4)", 210.0, Some(Verdict::NotResolved)),
];

/// Two rows of these, of 1 and of 4 processes.
fn shown() -> Results {
    let mut results = common::small();
    results.cells.clear();
    results.warnings = vec!["the first warning".to_owned(), "the second warning".to_owned()];
    for processes in [1, 4] {
        let (state, unit, better) = ("healthy", "MiB/s", Better::Higher);
        let shared = Shared { workload: "dd-write", processes, state, unit, better };
        let cell =
            |(name, median, _): &(&str, f64, _)| common::cell(&shared, name, *median, 10.0, 9);
        let mut cells: Vec<Cell> = SHOWN.iter().map(cell).collect();
        common::compare(&mut cells, "single");
        for (cell, (.., verdict)) in cells.iter_mut().zip(SHOWN) {
            cell.verdict = verdict;
        }
        results.cells.extend(cells);
    }
    results
}

fn inside<'p>(page: &'p str, start: &str, end: &str) -> &'p str {
    let inside = &page[page.find(start).expect(start) + start.len()..];
    &inside[..inside.find(end).expect(end)]
}

/// Colours, signs and words of a verdict are the same in the table, in the drawn bars and in those that the script
/// draws, and in a program's glances.
#[test]
fn a_verdict_is_the_same_in_every_form() {
    let results = shown();
    let page = plain(&Html.export(&results).expect("a page"));
    let table = inside(&page, "<table class=\"overview", "</table>");
    let row = table.rsplit("<tr>").find(|row| row.contains(">1 process<")).expect("a row");
    let drawn = inside(&page, "At a glance", "More figures");
    let rows = inside(&page, "id=\"raidlab-rows\">", "</script>");
    let rows: serde_json::Value = serde_json::from_str(rows).expect("rows");
    let bars = rows["0"]["c"].as_array().expect("bars");
    let glances = glances(&results).expect("a good document");
    for (at, (name, median, verdict)) in SHOWN.into_iter().enumerate() {
        let (class, sign, said, word) = match verdict {
            Some(Verdict::Faster) => ("faster", "", "faster", Some("better")),
            Some(Verdict::Slower) => ("slower", "", "slower", Some("worse")),
            Some(Verdict::Equal) => {
                ("same", " =", "equal within the noise floor", Some("equal within the floor"))
            }
            Some(Verdict::NotResolved) => ("same", " ~", "not resolved", Some("not resolved")),
            None => ("same", "", "", None),
        };
        let cell = row.split("<td").find(|cell| cell.contains(&format!("data-head=\"{name}\"")));
        let cell = cell.expect(name);
        // The baseline has no percentage of its own.
        let percent = number::percent((median / 200.0 - 1.0) * 100.0);
        let percent = plain(&percent);
        let span = format!("<span class=\"percent {class}\">{percent}{sign}</span>");
        assert_eq!(cell.contains(&span), verdict.is_some(), "{span}: {cell}");
        assert!(cell.contains("<span class=\"range\">±10 %</span>"), "{cell}");
        let tip = format!("; {percent} against the baseline, {said};");
        assert_eq!(cell.contains(&tip), verdict.is_some(), "{tip}: {cell}");
        let mark = drawn.split("<g role=\"img\" aria-label=\"").find(|mark| {
            mark.starts_with(&format!("{name}: median")) && mark.contains("class=\"bar ")
        });
        assert!(mark.expect(name).contains(&format!("class=\"bar {class}\"")), "{name}");
        assert_eq!(bars[at][2], class, "{name}");
        assert_eq!((glances[at].cell.layout.as_str(), glances[at].verdict), (name, word));
    }
}

#[test]
fn no_report_leaves_a_warning_out() {
    let results = shown();
    for exporter in [&TERMINAL as &dyn Exporter, &Html] {
        let text = exporter.export(&results).expect("a report");
        // The document is part of the page.
        let text = text.split("<script").next().expect("what is seen");
        for warning in &results.warnings {
            assert!(text.contains(warning), "{warning}: {text}");
        }
    }
    let mut results = results;
    assert!(!TERMINAL.export(&results).expect("a report").contains("further figures"));
    let details = ["a", "b", "a"].map(|metric| {
        let metric = metric.to_owned();
        Cell { metric, detail: true, ..results.cells[0].clone() }
    });
    results.cells.extend(details);
    // The same metric of another layout is no further one.
    results.cells.last_mut().expect("one").layout = "linear(4)".to_owned();
    for exporter in [&TERMINAL as &dyn Exporter, &Html] {
        let text = words(&exporter.export(&results).expect("a report"));
        assert!(
            text.contains("2 further figures of the workloads are in the results as JSON"),
            "{text}"
        );
    }
}

#[test]
fn times_and_sizes_are_rounded_to_what_is_nearest() {
    for (seconds, text) in [
        (7_259.0, "2 h 01 min"),
        (7_229.0, "2 h 00 min"),
        (7_230.0, "2 h 01 min"),
        (-125.0, "-2 min 05 s"),
        (-9_000.0, "-2 h 30 min"),
        (-0.085, "-85.0 ms"),
        (172_799.0, "48 h 00 min"),
        (172_800.0, "2.00 days"),
    ] {
        assert_eq!(plain(&number::duration(seconds)), text, "{seconds}");
    }
    for (bytes, text) in [
        (1_000, "1 000 B"),
        (1_023, "1 023 B"),
        (1_024, "1 KiB"),
        (1_000 << 10, "1 000 KiB"),
        (1_023 << 30, "1 023 GiB"),
        (3 << 39, "1.50 TiB"),
    ] {
        assert_eq!(plain(&number::bytes(bytes)), text, "{bytes}");
    }
}

/// Six layouts are five comparisons, for which 8 rounds are needed: with 7 nothing is said for sure.
#[test]
fn rounds_are_enough_by_how_many_layouts_there_are() {
    for (rounds, is_sure) in [(6, false), (7, false), (8, true)] {
        let mut results = common::full();
        results.cells.retain(|cell| (cell.processes, &*cell.workload) == (1, "dd-write"));
        for cell in &mut results.cells {
            let samples = cell.samples.iter().cycle().take(rounds).copied().collect();
            cell.samples = samples;
        }
        let text = words(&TERMINAL.export(&results).expect("a report"));
        assert_eq!(text.contains("too few rounds to be sure"), !is_sure, "{rounds}: {text}");
        assert_eq!(text.contains("raid0(4) wins with 1 process"), is_sure, "{rounds}: {text}");
        assert_eq!(text.contains("raid0(4) leads with 1 process"), !is_sure, "{rounds}: {text}");
    }
}

fn first(results: &Results, name: &str) -> Panel {
    figure(results, name, 1).unwrap_or_else(|error| panic!("{name}: {error}")).panels.remove(0)
}

fn bars(panel: &Panel) -> &Bars {
    match &panel.body {
        Body::Bars(bars) => bars,
        other => panic!("no bars: {other:?}"),
    }
}

fn plot(panel: &Panel) -> &Plot {
    match &panel.body {
        Body::Plot(plot) => plot,
        other => panic!("no plot: {other:?}"),
    }
}

/// Each round's dot is its ratio to the baseline's round, and that of several is their mean; so is the line.
#[test]
fn dots_and_lines_stand_against_the_mean_of_the_baseline() {
    let mut results = shown();
    for (at, cell) in results.cells.iter_mut().enumerate() {
        cell.samples = (0..9).map(|round| (100 + 7 * at + 3 * round * (at + 1)) as f64).collect();
    }
    for baseline in [&["single"][..], &["single", "raid1(2)"]] {
        results.baseline = baseline.iter().map(|name| (*name).to_owned()).collect();
        let row: Vec<&Cell> = results.cells.iter().filter(|cell| cell.processes == 1).collect();
        let of = |name: &str| *row.iter().find(|cell| cell.layout == name).expect("a cell");
        let mean = |value: &dyn Fn(&Cell) -> f64| {
            baseline.iter().map(|name| value(of(name))).sum::<f64>() / baseline.len() as f64
        };
        let panel = first(&results, "bars");
        assert_eq!(bars(&panel).line, Some(mean(&|cell| cell.median)), "{baseline:?}");
        let all = figure(&results, "percent", 9).expect("percentages").panels;
        let panel = all.iter().find(|one| one.title == "dd-write, 1\u{a0}process").expect("a row");
        let bar = bars(panel).bars.iter().find(|bar| bar.label == "raid5(4)").expect("a bar");
        assert_eq!(bar.dots.len(), 9);
        for (round, dot) in bar.dots.iter().enumerate() {
            let ratio = of("raid5(4)").samples[round] / mean(&|cell| cell.samples[round]);
            assert!((dot - (ratio - 1.0) * 100.0).abs() < 1e-9, "{round}: {dot}");
        }
        assert_eq!((bars(panel).line, bar.tone), (Some(0.0), Tone::Same));
    }
}

#[test]
fn latencies_are_drawn_at_the_shares_that_they_are_of() {
    let mut results = shown();
    results.latency_shares = LATENCY_SHARES.to_vec();
    for cell in &mut results.cells {
        cell.latency_ms = Some(LatencyRow { p50: 2.0, p99: 30.0, p999: 400.0, max: 5_000.0 });
        cell.latency_curve_ms = LATENCY_SHARES.iter().map(|share| 1.0 + share).collect();
    }
    let panel = first(&results, "latency");
    let ticks: Vec<&str> = plot(&panel).x.ticks.iter().map(|(_, name)| name.as_str()).collect();
    assert_eq!(ticks, ["50 %", "99 %", "99.9 %", "slowest"]);
    let points = &plot(&panel).series[0].points;
    let places: Vec<(f64, f64)> = points.iter().map(|one| (one.x, one.y)).collect();
    assert_eq!(places, [(0.0, 2.0), (1.0, 30.0), (2.0, 400.0), (3.0, 5_000.0)]);
    assert_eq!(points[2].words, "single: 99.9 % 400 ms");
    let panel = first(&results, "ecdf");
    for (point, share) in plot(&panel).series[0].points.iter().zip(LATENCY_SHARES) {
        assert_eq!((point.x, point.y), (1.0 + share, share * 100.0));
    }
    let said = "single: 50 % within 1.50 ms, 90 % within 1.90 ms, 99 % within 1.99 ms";
    assert_eq!(plain(&plot(&panel).series[0].points[0].words), said);
}

/// Of rates the share of the largest, of times the inverse: the best is 100, and speeds are their geometric mean over
/// the healthy rows.
#[test]
fn the_best_of_a_column_is_a_hundred_whichever_way_is_better() {
    let mut results = shown();
    let medians = |factor: f64| SHOWN.map(|(_, median, _)| median * factor);
    let states: [(&str, Better, [f64; 5]); 2] = [
        ("healthy", Better::Lower, medians(0.01)),
        ("degraded", Better::Higher, [1.0, 9.0, 1.0, 1.0, 1.0]),
    ];
    for (state, better, medians) in states {
        let (workload, unit) =
            if better == Better::Lower { ("random-read", "s") } else { ("dd-write", "MiB/s") };
        let shared = Shared { workload, processes: 1, state, unit, better };
        let cells = SHOWN.iter().zip(medians);
        results
            .cells
            .extend(cells.map(|((name, ..), median)| common::cell(&shared, name, median, 0.1, 9)));
    }
    let heat = figure(&results, "heat", 9).expect("a figure");
    let panel = heat.panels.iter().find(|one| plain(&one.title) == "1 process").expect("healthy");
    let Body::Grid(grid) = &panel.body else { panic!("a grid") };
    assert_eq!(grid.columns, ["dd-write", "random-read"]);
    for ((name, fields), (_, median, _)) in grid.rows.iter().zip(SHOWN) {
        let shares: Vec<f64> = fields.iter().map(|one| one.as_ref().expect(name).share).collect();
        for (share, expected) in shares.iter().zip([median / 400.0, 120.0 / median]) {
            assert!((share - expected).abs() < 1e-12, "{name}: {shares:?}");
        }
    }
    let panel = first(&results, "choice");
    for (name, median, _) in SHOWN {
        let mut points = plot(&panel).series.iter().flat_map(|one| &one.points);
        let point = points.find(|one| one.label == name).expect(name);
        // Two rows of rates, for 1 and 4 processes, and one of times.
        let rate = median / 400.0;
        let expected = (rate * rate * 120.0 / median).cbrt() * 100.0;
        assert!((point.y - expected).abs() < 1e-9, "{name}: {}, not {expected}", point.y);
    }
}

#[test]
fn shares_chunks_and_fitted_cells_are_drawn_as_such() {
    let mut results = shown();
    results.layouts[0].blocks = vec!["0 1' P -".to_owned()];
    results.cells[0].busy = vec![Bottleneck { resource: "bus".into(), busy: 0.426 }];
    let panel = first(&results, "busy");
    let Body::Grid(grid) = &panel.body else { panic!("a grid") };
    let field = grid.rows[0].1[0].as_ref().expect("a share");
    assert_eq!((field.text.as_str(), field.share), ("43", 0.426));
    assert_eq!(plain(&field.words), "single: bus busy 43 % of the time");
    let panel = first(&results, "blocks");
    let Body::Grid(grid) = &panel.body else { panic!("a grid") };
    let words: Vec<Option<(&str, bool)>> = grid.rows[0]
        .1
        .iter()
        .map(|one| one.as_ref().map(|one| (one.words.as_str(), one.parity)))
        .collect();
    let expected = [
        Some(("chunk 0", false)),
        Some(("copy of chunk 1", false)),
        Some(("parity P", true)),
        None,
    ];
    assert_eq!(words, expected);
    for (at, calibrated) in [(0, true), (1, false)] {
        let median = results.cells[at].median;
        let published = Published { value: median / 1.1, error_percent: 10.0, calibrated };
        results.cells[at].published = Some(published);
    }
    let panel = first(&results, "published");
    let series: Vec<(&str, f64)> =
        plot(&panel).series.iter().map(|one| (one.label.as_str(), one.points[0].y)).collect();
    assert_eq!(series, [("not fitted", 200.6), ("parameters were fitted to it", 200.0)]);
}

/// Long rebuilds are drawn in the days, hours or minutes that their values are in.
#[test]
fn axes_of_rebuilds_have_a_unit_that_suits_them() {
    for (seconds, of_unit, unit) in [
        (5.0 * 86_400.0, 86_400.0, "d"),
        (36_000.0, 3_600.0, "h"),
        (600.0, 60.0, "min"),
        (90.0, 1.0, "s"),
    ] {
        let mut results = shown();
        for cell in &mut results.cells {
            (cell.metric, cell.unit) = ("rebuild_s".into(), "s".into());
            (cell.better, cell.state) = (Better::Lower, "rebuilding".into());
            cell.median = seconds;
            cell.samples = vec![seconds; 9];
        }
        let panel = first(&results, "bars");
        let ticks = &bars(&panel).axis.ticks;
        assert_eq!(ticks[0], (0.0, "0".to_owned()));
        for (value, name) in &ticks[1..] {
            let name = plain(name);
            let (count, own) = name.split_once(' ').expect("a unit");
            let count: f64 = count.parse().expect("a number");
            assert_eq!(own, unit);
            assert!((count * of_unit / value - 1.0).abs() < 1e-9, "{name} at {value} s");
        }
        assert!(ticks.last().is_some_and(|(value, _)| *value >= seconds), "{ticks:?}");
    }
}

fn of(before: &Results, after: &Results) -> Diff {
    let (before, after) = (std::slice::from_ref(before), std::slice::from_ref(after));
    Diff::of(("old.json", before), ("new.json", after), None)
}

/// Two documents of which some cells have moved by more than the rounds do, to both sides.
fn moved() -> (Results, Results) {
    let mut before = shown();
    before.clock = Clock::Real;
    before.settings.insert("cache".into(), "cold".into());
    for (at, cell) in before.cells.iter_mut().enumerate() {
        cell.samples =
            (0..9).map(|round| cell.median * (1.0 + 0.0001 * f64::from(round * 4 % 9))).collect();
        cell.floor_percent = Some(1.0);
        if at >= 5 {
            (cell.state, cell.metric, cell.unit) =
                ("degraded".into(), "p99_ms".into(), "ms".into());
            cell.better = Better::Lower;
        }
    }
    let mut after = before.clone();
    after.settings.insert("cache".into(), "warm".into());
    let moved = [1.2, 0.8, 1.002, 1.0, 1.0, 1.2, 0.8, 1.0, 1.0, 1.0];
    for (cell, by) in after.cells.iter_mut().zip(moved) {
        cell.median *= by;
        cell.samples.iter_mut().for_each(|sample| *sample *= by);
    }
    (before, after)
}

/// Which way each cell moved, what it was before and what after, and how many of each kind.
#[test]
fn a_diff_says_which_way_each_cell_moved() {
    let (before, after) = moved();
    let diff = of(&before, &after);
    let text = plain(&TERMINAL.diff(&diff));
    let page = plain(&diff_html(&diff).expect("a page"));
    for (name, values, change, verdict) in [
        ("single, dd-write, 4 processes (MiB/s)", "", "", ""),
        ("single, dd-write, 1 process (MiB/s)", "200      240", "+20 %", "improved"),
        ("linear(4), dd-write, 1 process (MiB/s)", "201      160", "-20 %", "regressed"),
        (
            "single, dd-write, 4 processes, degraded, p99_ms (ms, lower is better)",
            "200      240",
            "+20 %",
            "regressed",
        ),
        (
            "linear(4), dd-write, 4 processes, degraded, p99_ms (ms, lower is better)",
            "201      160",
            "-20 %",
            "improved",
        ),
    ] {
        let line = text.lines().find(|line| line.contains(name));
        if verdict.is_empty() {
            assert_eq!(line, None, "it is degraded");
            continue;
        }
        let line = words(line.unwrap_or_else(|| panic!("{name}: {text}")));
        let values = words(values);
        assert!(line.contains(&format!("{name} {values} {change} ")), "{line}");
        assert!(line.ends_with(verdict), "{line}");
        let short = name.split(" (").next().expect("a name");
        let row =
            page.split("<th scope=\"row\">").find(|row| row.starts_with(&format!("{short}<")));
        let row = row.unwrap_or_else(|| panic!("{short}: {page}"));
        let told = row.split("</tr>").next().expect("its end");
        assert!(told.contains(&format!("<td>{verdict}</td></tr>").replace("</tr>", "")), "{told}");
        assert!(told.contains(change), "{told}");
    }
    let counts = diff.counts;
    assert_eq!((counts.regressed, counts.improved, counts.equal, counts.unchanged), (2, 2, 6, 0));
    let said = "Of 10 cells 2 regressed, 2 improved, 6 equal, 0 unchanged, 0 not resolved.";
    assert!(words(&text).contains(said), "{text}");
    assert!(words(&text).contains("settings, cache: cold -> warm"), "{text}");
    assert!(page.contains("cold → warm") && page.contains(said), "{page}");
    let figure = diff_figure(&diff, 2).expect("pairs");
    let off: Vec<f64> = plot(&figure.panels[1])
        .series
        .iter()
        .flat_map(|one| one.points.iter().map(|one| one.y))
        .collect();
    assert!(off.iter().any(|one| (one - 20.0).abs() < 1e-6), "{off:?}");
}

/// Of many cells that only one document has, or of which nothing is shown, some are named and the others counted.
#[test]
fn what_is_not_named_is_counted() {
    let before = common::full();
    let mut after = before.clone();
    after.cells.retain(|cell| cell.workload == "dd-write");
    let text = plain(&TERMINAL.diff(&of(&before, &after)));
    let missing = before.cells.len() - after.cells.len();
    assert!(text.contains(&format!("{missing} cells only in old.json")), "{text}");
    assert!(text.contains(&format!("and {} more, all in the JSON", missing - 12)), "{text}");
}

/// Rounds that take no time are worth a word where time is real.
#[test]
fn short_rounds_are_no_matter_in_virtual_time() {
    let mut results = shown();
    results.cells[2].last_done_s = 0.05;
    let advised = |results: &Results| {
        let text = words(&TERMINAL.export(results).expect("a report"));
        text.contains("1 cell took less than 100 ms a round, the shortest raid0(4) dd-write with 1 process (50.0 ms)")
    };
    assert!(!advised(&results));
    results.clock = Clock::Real;
    assert!(advised(&results));
    results.cells[2].last_done_s = 0.11;
    assert!(!advised(&results));
}

fn told(results: &Results, about: About) -> Vec<String> {
    let all = conclusions(results).expect("a good document");
    all.iter().filter(|one| one.about == about).map(|one| plain(&one.text)).collect()
}

/// What a model may be off says nothing of what was measured.
#[test]
fn a_gain_of_two_percent_counts_where_it_was_measured() {
    let mut results = shown();
    results
        .cells
        .retain(|cell| ["raid0(4)", "raid5(4)"].contains(&&*cell.layout) && cell.processes == 1);
    results.baseline = vec!["raid5(4)".into()];
    for (cell, median) in results.cells.iter_mut().zip([204.0, 200.0]) {
        (cell.median, cell.ci95) = (median, Some([median - 0.5, median + 0.5]));
        cell.verdict = (median > 200.0).then_some(Verdict::Faster);
    }
    let gains = |results: &Results| {
        told(results, About::Redundancy)[0].starts_with("Giving up redundancy gains")
    };
    assert!(!gains(&results), "{:?}", told(&results, About::Redundancy));
    results.clock = Clock::Real;
    assert!(gains(&results), "{:?}", told(&results, About::Redundancy));
}

/// Nothing is busy for half of the time only where nothing is.
#[test]
fn idle_is_what_is_busy_for_less_than_half_of_the_time() {
    let mut results = shown();
    for (at, cell) in results.cells.iter_mut().enumerate() {
        let busy = [0.5, 0.6, 0.79, 0.8, 0.95][at % 5];
        cell.bottleneck = Some(Bottleneck { resource: "member 0".into(), busy });
    }
    let idle = |results: &Results| {
        let all = told(results, About::Limit);
        all.into_iter().find(|one| one.starts_with("Nothing is busy"))
    };
    assert_eq!(idle(&results), None);
    results.cells[3].bottleneck = Some(Bottleneck { resource: "member 0".into(), busy: 0.49 });
    let text = idle(&results).expect("one");
    let start = "Nothing is busy for 50 % of the time in 1 of 10 cells, least at dd-write with 1 process on raid1(2)";
    assert!(text.starts_with(start), "{text}");
}

/// Findings tell differences that the rounds show, and name no drive as what is not one.
#[test]
fn findings_are_of_what_is_shown_and_of_what_is_no_drive() {
    let mut results = common::replay();
    let all = |results: &Results| -> String {
        findings(results).iter().map(|one| plain(&one.text) + "\n").collect()
    };
    assert!(!all(&results).contains("Not the drives but member"), "{}", all(&results));
    for cell in &mut results.cells {
        cell.bottleneck = Some(Bottleneck { resource: "member 0".into(), busy: 0.99 });
    }
    assert!(!all(&results).contains("Not the drives"), "{}", all(&results));
    results
        .cells
        .iter_mut()
        .for_each(|cell| cell.bottleneck.as_mut().expect("one").resource = "pci".into());
    assert!(all(&results).contains("Not the drives but pci is busiest"), "{}", all(&results));
    // The winner at cp: with rounds enough that do not show it, it is none.
    let says = |results: &Results| all(results).contains("md-raid0(2) is the fastest at cp");
    assert!(says(&results), "{}", all(&results));
    for cell in results.cells.iter_mut().filter(|cell| cell.layout != "single") {
        cell.verdict = Some(Verdict::NotResolved);
    }
    assert!(says(&results), "too few rounds to show anything");
    for cell in results.cells.iter_mut().filter(|cell| cell.layout != "single") {
        cell.percent_interval = Some([-60.0, 10.0]);
    }
    assert!(!all(&results).contains("is the fastest"), "{}", all(&results));
}

/// Of differences of a group the least sure one is told.
#[test]
fn the_least_sure_sign_of_a_group_is_told() {
    let mut results = shown();
    for (cell, sign) in results.cells.iter_mut().zip([50, 51, 97, 83, 60, 50, 52, 99, 91, 61]) {
        cell.trust = Some(CellTrust {
            not_checked: None,
            group: Some("raw arrays".into()),
            cells: Some(14),
            interval90: Some([cell.median * 0.8, cell.median * 1.5]),
            sign_of_100: Some(sign),
            floor_percent: Some(20),
        });
    }
    let text = words(&TERMINAL.export(&results).expect("a report"));
    // Only those that are called faster or slower.
    assert!(text.contains("of 100 as large as those shown at least 83 have their sign"), "{text}");
    assert!(text.contains("within -20 % to +50 % of these 90 of 100 times"), "{text}");
}

/// Chances of one mission have their range beside them; years, spares and what they rest on are as they are.
#[test]
fn chances_are_told_with_the_range_of_the_main_mission() {
    let mut results = shown();
    let names: Vec<&str> = SHOWN.iter().map(|(name, ..)| *name).collect();
    let mut risks = common::risks(&names);
    for layout in &mut risks.drives[0].layouts {
        for mission in &mut layout.missions {
            let years = mission.years;
            mission.array.about = format!("1 in {}", 1_000.0 / years);
            mission.array.between = Some(format!("array {years} y"));
            mission.sector.between = Some(format!("sector {years} y"));
        }
    }
    risks.drives[0].layouts[3].spares = 2;
    risks.drives[0].layouts[4].spares = 1;
    results.risk = Some(risks);
    for exporter in [&Terminal { width: Some(220), ..TERMINAL } as &dyn Exporter, &Html] {
        let text = words(&exporter.export(&results).expect("a report"));
        // The document is part of the page.
        let text = text.split("<script").next().expect("what is seen");
        assert!(!text.contains("1 years"), "{text}");
        assert!(text.contains("array 5 y") && text.contains("sector 5 y"), "{text}");
        assert!(!text.contains("array 1 y") && !text.contains("sector 1 y"), "{text}");
        assert!(text.contains("hot spares 2 of raid1(2) and 1 of raid5(4)"), "{text}");
        assert!(text.contains("1 in 200"), "{text}");
    }
    // On a page no head is broken.
    let page = words(&Html.export(&results).expect("a page"));
    for told in ["array lost in 1 year", "array lost in 5 years", "a sector or more lost in 1 year"]
    {
        assert!(page.contains(&format!(">{told}<")), "{told}");
    }
    let mut none = results.clone();
    none.risk.as_mut().expect("risks").drives[0].layouts.iter_mut().for_each(|one| one.spares = 0);
    assert!(words(&TERMINAL.export(&none).expect("a report")).contains("hot spares none"));
}

/// Beside what was published: too little is as wrong as too much, and ends are in the unit that stands behind them.
#[test]
fn a_replay_warns_of_misses_to_both_sides() {
    let mut results = common::replay();
    for cell in &mut results.cells {
        cell.published = None;
        if cell.fairness.is_some() {
            (cell.first_done_s, cell.last_done_s) = (0.25, 0.5);
        }
    }
    for (at, error_percent) in [(0, -30.0), (1, 30.0), (2, 5.0)] {
        let value = results.cells[at].median / (1.0 + error_percent / 100.0);
        results.cells[at].published = Some(Published { value, error_percent, calibrated: false });
    }
    let colour = Terminal { colour: true, ..TERMINAL };
    let text = plain(&colour.replays(std::slice::from_ref(&results)).expect("a report"));
    for (error, is_warned) in [("-30 %", true), ("+30 %", true), ("+5.0 %", false)] {
        let at = text.find(error).expect(error);
        let line = &text[text[..at].rfind('\n').map_or(0, |end| end + 1)..at];
        let warned = line.rfind("\u{1b}[1;33m").is_some_and(|on| !line[on..].contains("\u{1b}[0m"));
        assert_eq!(warned, is_warned, "{error}: {line}");
    }
    assert!(words(&text).contains("250..500 ms"), "{text}");
}

/// Without a mechanism cells may fall further than others rise.
#[test]
fn the_cells_that_move_most_are_those_by_size() {
    let mut results = common::replay();
    let ablated = &mut results.ablation[0];
    let moves = [2.0, -60.0, 3.0, -40.0, 5.0];
    for (one, percent) in ablated.cells.iter_mut().zip(moves) {
        one.moved.percent = percent;
    }
    ablated.cells.truncate(moves.len());
    let text = words(&TERMINAL.replays(std::slice::from_ref(&results)).expect("a report"));
    let (_, most) = text.split_once("it is not there. Most: ").expect("told");
    let most = most.split_once(". ").map_or(most, |(most, _)| most);
    let places = ["-60 %", "-40 %", "+5.0 %"].map(|percent| most.find(percent).expect(percent));
    assert!(places.is_sorted() && !most.contains("+3.0 %"), "{most}");
}
