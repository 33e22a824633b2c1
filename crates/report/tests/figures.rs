//! Figures: what each shows, what a document must have for it, and that it is drawn within its picture.

use crate::common;
use raidlab_report::ReportErrorKind;
use raidlab_report::figure::model::{Body, Guide, Panel, Plot};
use raidlab_report::figure::{FIGURES, available, diff_figure, figure};
use raidlab_results::{Bottleneck, Diff, LATENCY_SHARES, LatencyRow, Results, TimelineRow};

/// A document with all that figures show, but published figures.
fn rich() -> Results {
    let mut results = common::full();
    results.latency_shares = LATENCY_SHARES.to_vec();
    for layout in &mut results.layouts {
        layout.chunk = Some(64 << 10);
        layout.blocks = vec!["0 1 P".to_owned(), "2 P 1'".to_owned()];
    }
    let mut more = Vec::new();
    for cell in &mut results.cells {
        cell.latency_ms = Some(LatencyRow { p50: 1.0, p99: 5.0, p999: 20.0, max: 80.0 });
        cell.latency_curve_ms = LATENCY_SHARES.iter().map(|share| 0.5 + 10.0 * share).collect();
        cell.busy = ["cpu", "member 0", "bus"]
            .map(|name| Bottleneck { resource: name.to_owned(), busy: 0.5 })
            .to_vec();
        if cell.processes > 1 {
            cell.done_s = (1..=cell.processes).map(f64::from).collect();
        }
        cell.timeline = Some(TimelineRow {
            round: 2,
            bin_s: 0.5,
            unit: "MiB/s".to_owned(),
            rate: vec![10.0, 30.0],
            mean_ms: vec![Some(1.0), None],
            max_ms: vec![Some(2.0), None],
            rebuilt_percent: vec![Some(0.0), Some(40.0)],
        });
        let mut other = cell.clone();
        other.state = "rebuilding".to_owned();
        other.settings.insert("block".to_owned(), "4KiB".to_owned());
        more.push(other);
        let mut other = cell.clone();
        other.settings.insert("block".to_owned(), "64KiB".to_owned());
        more.push(other);
        cell.settings.insert("block".to_owned(), "4KiB".to_owned());
    }
    more.retain(|cell| cell.state == "healthy" || cell.layout == "raid5(4)");
    results.cells.extend(more);
    results
}

fn panel(results: &Results, name: &str) -> Panel {
    figure(results, name, 1).unwrap_or_else(|error| panic!("{name}: {error}")).panels.remove(0)
}

fn plot(panel: &Panel) -> &Plot {
    match &panel.body {
        Body::Plot(plot) => plot,
        other => panic!("no plot: {other:?}"),
    }
}

#[test]
fn every_figure_is_made_of_a_document_that_has_its_data() {
    let results = rich();
    let names = available(&results).expect("a document");
    let all: Vec<&str> = FIGURES.iter().map(|one| one.name).collect();
    let missing: Vec<&&str> = all.iter().filter(|name| !names.contains(name)).collect();
    assert_eq!(missing, [&"published", &"residuals"]);
    assert!(available(&common::replay()).expect("a document").contains(&"published"));
    for name in names {
        let svg = figure(&results, name, 4).expect(name).svg();
        assert_eq!(svg, figure(&results, name, 4).expect(name).svg(), "{name}");
        assert!(svg.contains("xmlns=") && !svg.contains("NaN") && !svg.contains("inf"), "{name}");
        for outside in ["href", "url(", "@import", "<script", "style="] {
            assert!(!svg.contains(outside), "{name}: {outside}");
        }
    }
}

#[test]
fn a_figure_without_data_is_refused_with_what_there_is() {
    let plain = common::full();
    for name in ["finish", "ecdf", "rate", "rebuild", "busy", "blocks", "published", "states"] {
        let error = figure(&plain, name, 4).expect_err(name);
        assert_eq!(error.kind(), ReportErrorKind::NoSuchFigure, "{name}");
        let text = error.to_string();
        assert!(text.contains(&format!("`{name}` needs")), "{text}");
        assert!(text.contains("has the data for bars, percent, scaling"), "{text}");
    }
    let unknown = figure(&plain, "pie", 4).expect_err("no such figure").to_string();
    assert!(unknown.contains("no figure `pie`; there are bars, percent"), "{unknown}");
    let mut wrong = plain;
    wrong.schema_version += 1;
    assert_eq!(
        figure(&wrong, "bars", 4).expect_err("another version").kind(),
        ReportErrorKind::SchemaVersion
    );
}

/// Two humps are seen as two clumps of dots, wherever the median lies.
#[test]
fn every_round_is_a_dot() {
    let mut results = common::full();
    results.cells[2].samples = vec![100.0, 101.0, 300.0, 301.0, 302.0, 99.0];
    let panel = panel(&results, "bars");
    let Body::Bars(bars) = &panel.body else { panic!("bars") };
    assert_eq!(bars.bars[2].dots, results.cells[2].samples);
    let svg = figure(&results, "bars", 1).expect("a figure").svg();
    let dots = svg.split("class=\"dots\" d=\"").nth(3).expect("the third bar's");
    let dots = &dots[..dots.find('"').expect("its end")];
    assert_eq!(dots.matches('M').count(), 6);
    let mut places: Vec<f64> = dots
        .split('M')
        .skip(1)
        .map(|dot| dot.split(' ').next().expect("x").parse().expect("a number"))
        .collect();
    places.sort_by(f64::total_cmp);
    assert!(places[3] - places[2] > 20.0 * (places[2] - places[0]), "{places:?}");
}

#[test]
fn percentages_come_with_their_mean_over_rows() {
    let results = common::full();
    let first = panel(&results, "percent");
    assert!(first.title.contains("mean of the percentages of 3 rows"), "{}", first.title);
    let Body::Bars(bars) = &first.body else { panic!("bars") };
    for bar in &bars.bars {
        let own = results
            .cells
            .iter()
            .filter(|cell| cell.layout == bar.label && cell.workload == results.workloads[0].name);
        let percents: Vec<f64> = own.filter_map(|cell| cell.percent_vs_baseline).collect();
        let mean = percents.iter().sum::<f64>() / percents.len() as f64;
        assert!((bar.value.expect("a mean") - mean).abs() < 1e-9, "{}", bar.label);
        assert_eq!(bar.dots, percents);
    }
    assert!(
        bars.bars.iter().all(|bar| bar.label != "single"),
        "the baseline is what it is against"
    );
}

#[test]
fn axes_carry_units_and_series_their_layouts() {
    let results = rich();
    let scaling = panel(&results, "scaling");
    assert_eq!(plot(&scaling).x.label, "processes");
    assert!(plot(&scaling).y.label.starts_with("MiB/s"), "{}", plot(&scaling).y.label);
    assert_eq!(plot(&scaling).series.len(), results.layouts.len());
    assert_eq!(plot(&scaling).series[0].points.len(), 3);
    let sweep = panel(&results, "sweep");
    assert_eq!(plot(&sweep).lines, [Guide::Upright(65_536.0, "chunk 64\u{a0}KiB".to_owned())]);
    let ecdf = panel(&results, "ecdf");
    assert_eq!((plot(&ecdf).x.label.as_str(), plot(&ecdf).series[0].points[0].y), ("ms", 0.0));
    let rate = panel(&results, "rate");
    let places: Vec<(f64, f64)> =
        plot(&rate).series[0].points.iter().map(|one| (one.x, one.y)).collect();
    assert_eq!(places, [(0.0, 10.0), (0.5, 10.0), (0.5, 30.0), (1.0, 30.0)]);
    let rebuild = figure(&results, "rebuild", 3).expect("a figure");
    let titles: Vec<&str> =
        rebuild.panels.iter().map(|one| one.title.rsplit(": ").next().expect("what")).collect();
    assert_eq!(titles, ["rebuilt", "longest latency", "rate"]);
    let states = panel(&results, "states");
    assert_eq!(plot(&states).series.iter().filter(|one| one.points.len() == 2).count(), 1);
}

/// Chunks of several layouts are each named on a line of their own, within the figure.
#[test]
fn chunks_are_named_beside_their_lines() {
    let mut results = rich();
    results.layouts[0].chunk = Some(4 << 10);
    results.layouts[1].chunk = Some(32 << 10);
    let svg = figure(&results, "sweep", 1).expect("a figure").svg();
    let words: Vec<(&str, &str)> = svg
        .split("<text class=\"note val\" ")
        .skip(1)
        .map(|text| text.split_once("</text>").expect("its end").0.split_once('>').expect("a tag"))
        .collect();
    let more = results.layouts.len() - 3;
    let (one, other) = (&results.layouts[0].name, &results.layouts[1].name);
    let last = format!("chunk 64\u{a0}KiB of {} and {more} more", results.layouts[2].name);
    let expected =
        [format!("chunk 4\u{a0}KiB of {one}"), format!("chunk 32\u{a0}KiB of {other}"), last];
    assert_eq!(words.iter().map(|(_, word)| *word).collect::<Vec<_>>(), expected);
    let heights: Vec<&str> =
        words.iter().map(|(tag, _)| tag.split("y=\"").nth(1).expect("y")).collect();
    assert!(heights.windows(2).all(|pair| pair[0] != pair[1]), "{heights:?}");
}

#[test]
fn two_runs_are_pairs_around_the_line_of_equals() {
    let (one, mut other) = (common::real(), common::real());
    other.clock = raidlab_results::Clock::Virtual;
    for cell in &mut other.cells {
        cell.median *= 1.1;
        cell.samples.iter_mut().for_each(|sample| *sample *= 1.1);
    }
    let diff = Diff::of(("m", std::slice::from_ref(&one)), ("v", &[other]), None);
    let figure = diff_figure(&diff, 8).expect("pairs");
    assert_eq!(plot(&figure.panels[0]).lines, [Guide::Equal]);
    let off: Vec<f64> = plot(&figure.panels[1])
        .series
        .iter()
        .flat_map(|series| series.points.iter().map(|point| point.y))
        .collect();
    assert!(!off.is_empty() && off.iter().all(|one| (one - 10.0).abs() < 1e-6), "{off:?}");
}

/// From when the first process was done to when the last was.
#[test]
fn processes_end_between_the_first_and_the_last() {
    let results = rich();
    let panel = panel(&results, "finish");
    let Body::Bars(bars) = &panel.body else { panic!("bars") };
    for bar in &bars.bars {
        let last = bar.dots.iter().copied().fold(0.0, f64::max);
        assert!(last > 1.0);
        assert_eq!(bar.interval, Some([1.0, last]), "{}", bar.label);
        assert!(bar.text.starts_with(&format!("{last}")), "{}", bar.text);
    }
}

/// Each layout is one point among those that survive as many lost drives.
#[test]
fn a_choice_is_by_what_layouts_survive() {
    let results = common::full();
    let panel = panel(&results, "choice");
    let mut seen = 0;
    for series in &plot(&panel).series {
        for point in &series.points {
            let layout =
                results.layouts.iter().find(|one| one.name == point.label).expect("a layout");
            assert_eq!(series.label, format!("survives {}", layout.survives), "{}", layout.name);
            assert!(
                (point.x - layout.capacity as f64 / 1_099_511_627_776.0).abs() < 1e-9,
                "in TiB"
            );
            assert!(point.y > 0.0 && point.y <= 100.0, "{}: percent of the best", layout.name);
            seen += 1;
        }
    }
    let labels: Vec<&str> = plot(&panel).series.iter().map(|one| one.label.as_str()).collect();
    assert!(labels.is_sorted(), "{labels:?}");
    assert!((2..=results.layouts.len()).contains(&seen), "{seen}");
}
