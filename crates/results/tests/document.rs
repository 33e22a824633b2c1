//! The document as text, and looking things up in it.

use crate::support;
use std::collections::BTreeMap;

use raidlab_results::trust::CellTrust;
use raidlab_results::{
    AblationRow, Better, Bottleneck, Cell, Clock, Fidelity, Finding, LatencyRow, LayoutRow,
    MembersRow, Moved, NamedCell, Published, Replays, Results, ResultsErrorKind, TimelineRow,
    Verdict, WorkloadRow,
};

fn cell(layout: &str, processes: u32, median: f64) -> Cell {
    Cell {
        workload: "dd".into(),
        processes,
        median,
        mean: median,
        ci95: Some([1e-300, median]),
        coverage: Some(0.96875),
        percent_vs_baseline: Some(-12.5),
        percent_interval: Some([-13.0, -12.0]),
        floor_percent: Some(1.0),
        verdict: Some(Verdict::NotResolved),
        more_rounds: Some(3),
        may_be_best: true,
        outlier_rounds: vec![2],
        first_done_s: 0.1,
        bottleneck: Some(Bottleneck { resource: "member 2".into(), busy: 0.98 }),
        ..support::cell(layout, &[median, 0.1 + 0.2, 1.0 / 3.0])
    }
}

fn results() -> Results {
    let cells = vec![
        cell("single", 1, 100.0),
        cell("raid0(4)", 1, 400.0),
        cell("raid5(4)", 1, 400.0),
        cell("single", 2, 7.0),
    ];
    Results {
        study: "A study".into(),
        seed: u64::MAX,
        host: BTreeMap::from([("b".into(), "2".into()), ("a".into(), "1".into())]),
        warnings: vec!["mind the gap".into()],
        baseline: vec!["single".into()],
        layouts: vec![LayoutRow {
            name: "single".into(),
            capacity: 1 << 40,
            survives: 0,
            chunk: None,
            blocks: Vec::new(),
        }],
        workloads: vec![WorkloadRow { name: "dd".into(), description: "copies".into() }],
        ..support::document(Clock::Virtual, cells)
    }
}

/// Documents of before there was anything of risk are read as they were written, and those with it to the last bit.
#[test]
fn documents_are_read_with_and_without_risk() {
    let mut results = results();
    let before = results.to_json().unwrap();
    assert!(!before.contains("\"risk\""), "{before}");
    assert_eq!(Results::from_json(&before).unwrap().risk, None);
    results.risk = Some(support::risks(&["raid0(4)", "raid5(4)"]));
    let text = results.to_json().unwrap();
    let back = Results::from_json(&text).unwrap();
    assert_eq!(back, results);
    assert_eq!(back.to_json().unwrap(), text);
    let risks = back.risk.unwrap();
    let main = risks.main(risks.of("raid5(4)").unwrap()).unwrap();
    assert_eq!(main.years, 5.0);
    assert!(risks.of("single").is_none());

    results.risk.as_mut().unwrap().drives[0].layouts[1].missions[0].sector.p95 = f64::NAN;
    let error = results.to_json().expect_err("JSON has no word for it");
    assert!(error.to_string().contains("risk.chance"), "{error}");
}

#[test]
fn documents_are_read_back_exactly() {
    let mut results = results();
    // Numbers that a careless reader of decimals gets wrong in the last place.
    results.cells[0].samples = vec![
        0.1 + 0.2,
        1.0 / 3.0,
        5e-324,
        f64::MAX,
        2.2250738585072014e-308,
        9007199254740993.0,
        0.030000000000000002,
        122.416_294_033_786_58,
        1.7976931348623155e308,
    ];
    let text = results.to_json().unwrap();
    let back = Results::from_json(&text).unwrap();
    assert_eq!(back, results);
    assert_eq!(back.to_json().unwrap(), text);
    assert!(text.ends_with("}\n"));
    let (a, b) = (text.find("\"a\": \"1\"").unwrap(), text.find("\"b\": \"2\"").unwrap());
    assert!(a < b, "keys stand in order");
    assert!(text.contains("\"verdict\": \"not resolved\""));
    assert!(text.contains("\"clock\": \"virtual\"") && text.contains("\"better\": \"higher\""));
}

/// Random bit patterns survive the way through text.
#[test]
fn any_finite_number_is_read_back_exactly() {
    let mut results = results();
    let mut bits = 1u64;
    let mut next = || {
        bits = bits.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        f64::from_bits(bits)
    };
    results.cells[0].samples = (0..5_000).map(|_| next()).filter(|x| x.is_finite()).collect();
    let back = Results::from_json(&results.to_json().unwrap()).unwrap();
    let pairs = back.cells[0].samples.iter().zip(&results.cells[0].samples);
    let wrong: Vec<_> =
        pairs.filter(|(read, written)| read.to_bits() != written.to_bits()).collect();
    assert!(wrong.is_empty(), "{} numbers changed, first {:?}", wrong.len(), wrong[0]);
}

#[test]
fn numbers_that_are_none_are_refused() {
    for value in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        let breakers: [fn(&mut Cell, f64); 12] = [
            |cell, value| cell.samples[1] = value,
            |cell, value| cell.median = value,
            |cell, value| cell.mean = value,
            |cell, value| cell.ci95 = Some([value, 1.0]),
            |cell, value| cell.ci95 = Some([1.0, value]),
            |cell, value| cell.coverage = Some(value),
            |cell, value| cell.percent_vs_baseline = Some(value),
            |cell, value| cell.first_done_s = value,
            |cell, value| cell.last_done_s = value,
            |cell, value| cell.process_cpu_s = Some(value),
            |cell, value| cell.system_cpu_s = Some(value),
            |cell, value| {
                cell.bottleneck = Some(Bottleneck { resource: "cpu".into(), busy: value });
            },
        ];
        for (index, breaker) in breakers.iter().enumerate() {
            let mut results = results();
            breaker(&mut results.cells[1], value);
            let error = results.to_json().expect_err(&format!("breaker {index}"));
            assert_eq!(error.kind, ResultsErrorKind::NotFinite);
            assert!(error.to_string().contains("cells[1] (raid0(4), dd, 1 process): "), "{error}");
        }
    }
}

/// JSON has no word for a number that is none, wherever it stands: what is written instead is read as nothing, or as no
/// document at all.
#[test]
fn no_number_of_a_document_may_be_none() {
    type Break = fn(&mut Results, f64);
    let breakers: [Break; 30] = [
        |all, value| all.cells[1].percent_interval = Some([value, 1.0]),
        |all, value| all.cells[1].percent_interval = Some([1.0, value]),
        |all, value| all.cells[1].floor_percent = Some(value),
        |all, value| all.cells[1].dependence = Some(value),
        |all, value| all.cells[1].fairness = Some(value),
        |all, value| all.cells[1].spread_percent = Some(value),
        |all, value| all.cells[1].published = Some(published(value, 1.0)),
        |all, value| all.cells[1].published = Some(published(1.0, value)),
        |all, value| all.cells[1].moved = Moved::new(value, 1.0),
        |all, value| all.cells[1].moved = Moved::new(1.0, value),
        |all, value| all.cells[1].trust = Some(trusted([value, 1.0])),
        |all, value| all.cells[1].trust = Some(trusted([1.0, value])),
        |all, value| all.cells[1].latency_ms = Some(latency([value, 1.0, 1.0, 1.0])),
        |all, value| all.cells[1].latency_ms = Some(latency([1.0, value, 1.0, 1.0])),
        |all, value| all.cells[1].latency_ms = Some(latency([1.0, 1.0, value, 1.0])),
        |all, value| all.cells[1].latency_ms = Some(latency([1.0, 1.0, 1.0, value])),
        |all, value| all.cells[1].members = Some(members([value, 1.0, 1.0, 1.0, 1.0])),
        |all, value| all.cells[1].members = Some(members([1.0, value, 1.0, 1.0, 1.0])),
        |all, value| all.cells[1].members = Some(members([1.0, 1.0, value, 1.0, 1.0])),
        |all, value| all.cells[1].members = Some(members([1.0, 1.0, 1.0, value, 1.0])),
        |all, value| all.cells[1].members = Some(members([1.0, 1.0, 1.0, 1.0, value])),
        |all, value| all.cells[1].done_s = vec![1.0, value],
        |all, value| all.cells[1].latency_curve_ms = vec![1.0, value],
        |all, value| {
            all.cells[1].busy = vec![Bottleneck { resource: "cpu".into(), busy: value }];
        },
        |all, value| all.cells[1].timeline = Some(timeline([value, 1.0, 1.0, 1.0, 1.0])),
        |all, value| all.cells[1].timeline = Some(timeline([1.0, value, 1.0, 1.0, 1.0])),
        |all, value| all.cells[1].timeline = Some(timeline([1.0, 1.0, value, 1.0, 1.0])),
        |all, value| all.cells[1].timeline = Some(timeline([1.0, 1.0, 1.0, value, 1.0])),
        |all, value| all.cells[1].timeline = Some(timeline([1.0, 1.0, 1.0, 1.0, value])),
        |all, value| all.latency_shares = vec![0.5, value],
    ];
    let mut of_risk: Vec<Break> = vec![
        |all, value| risk(all).main_mission_years = value,
        |all, value| risk(all).drives[0].computing_error = value,
        |all, value| risk(all).drives[0].layouts[0].rebuild_hours = vec![value],
    ];
    of_risk.extend([
        (|all, value| risk_of(all).times_array.as_mut().expect("one").p5 = value) as Break,
        |all, value| risk_of(all).times_sector.as_mut().expect("one").central = value,
        |all, value| risk_of(all).missions[1].years = value,
        |all, value| risk_of(all).missions[1].array.p95 = value,
        |all, value| risk_of(all).missions[1].sector.central = value,
        |all, value| risk_of(all).missions[1].lost_bytes_per_usable_tb = value,
    ]);
    for (at, breaker) in breakers.iter().chain(&of_risk).enumerate() {
        for value in [f64::NAN, f64::INFINITY] {
            let mut results = results();
            results.risk = Some(support::risks(&["raid0(4)", "raid5(4)"]));
            breaker(&mut results, 2.0);
            results.to_json().unwrap_or_else(|error| panic!("{at}: {error}"));
            breaker(&mut results, value);
            let error = results.to_json().expect_err(&format!("breaker {at}, {value}"));
            assert_eq!(error.kind, ResultsErrorKind::NotFinite, "{at}");
        }
    }
}

fn risk(all: &mut Results) -> &mut raidlab_results::Risks {
    all.risk.as_mut().expect("it has risks")
}

fn risk_of(all: &mut Results) -> &mut raidlab_results::risk::LayoutRisk {
    &mut risk(all).drives[0].layouts[0]
}

fn published(value: f64, error_percent: f64) -> Published {
    Published { value, error_percent, calibrated: false }
}

fn trusted(ends: [f64; 2]) -> CellTrust {
    CellTrust { interval90: Some(ends), ..CellTrust::default() }
}

fn latency([p50, p99, p999, max]: [f64; 4]) -> LatencyRow {
    LatencyRow { p50, p99, p999, max }
}

fn members([reads, writes, bytes_read, bytes_written, amplified]: [f64; 5]) -> MembersRow {
    let write_amplification = Some(amplified);
    MembersRow { reads, writes, bytes_read, bytes_written, write_amplification }
}

fn timeline([bin_s, rate, mean, max, rebuilt]: [f64; 5]) -> TimelineRow {
    TimelineRow {
        round: 1,
        bin_s,
        unit: "1/s".into(),
        rate: vec![1.0, rate],
        mean_ms: vec![None, Some(mean)],
        max_ms: vec![None, Some(max)],
        rebuilt_percent: vec![Some(rebuilt), None],
    }
}

#[test]
fn other_texts_are_refused() {
    let text = results().to_json().unwrap();
    let newer = text.replace("\"schema_version\": 2", "\"schema_version\": 3");
    let error = Results::from_json(&newer).unwrap_err();
    assert_eq!(error.kind, ResultsErrorKind::SchemaVersion);
    let said = "the document has schema_version 3; this version of raidlab reads 2; a newer raidlab made it";
    assert_eq!(error.to_string(), said);
    for wrong in ["", "{}", "[2]", &text[..text.len() / 2]] {
        assert_eq!(Results::from_json(wrong).unwrap_err().kind, ResultsErrorKind::Malformed);
    }

    let null = text.replace("\"median\": 100.0", "\"median\": null");
    assert_eq!(Results::from_json(&null).unwrap_err().kind, ResultsErrorKind::Malformed);
}

#[test]
fn the_best_cell() {
    let mut results = results();
    let best = |results: &Results, processes| {
        results.best("dd", processes, "healthy").map(|cell| cell.layout.clone())
    };
    assert_eq!(best(&results, 1).as_deref(), Some("raid0(4)"), "of equals the first");
    assert_eq!(best(&results, 2).as_deref(), Some("single"));
    assert_eq!(best(&results, 3), None);
    assert_eq!(results.best("dd", 1, "degraded"), None);
    for cell in &mut results.cells {
        cell.better = Better::Lower;
    }
    assert_eq!(best(&results, 1).as_deref(), Some("single"));
    assert_eq!(results.cell("raid5(4)", "dd", 1, "healthy").unwrap().median, 400.0);
    assert_eq!(results.cell("raid5(4)", "dd", 2, "healthy"), None);
    // Those of a workload of the same name with other settings are of another row.
    let mut other = cell("raid0(4)", 1, 50.0);
    other.settings.insert("block".into(), "4KiB".into());
    results.cells.push(Cell { better: Better::Lower, ..other });
    assert_eq!(best(&results, 1).as_deref(), Some("single"));
    assert_eq!(results.row("dd", 1, "healthy").count(), 3);
}

/// A further figure of a workload stands for its row only where no layout has another; titles say all of a cell.
#[test]
fn a_row_of_further_figures_alone_is_one_and_titles_are_whole() {
    let mut results = results();
    results.cells.iter_mut().for_each(|cell| cell.detail = true);
    assert_eq!(results.row("dd", 1, "healthy").count(), 3);
    results.cells[0].detail = false;
    results.cells[0].metric = "iops".into();
    let metrics: Vec<&str> =
        results.row("dd", 1, "healthy").map(|cell| cell.metric.as_str()).collect();
    assert_eq!(metrics, ["iops"], "no other figure beside the one that is shown");
    let title = |processes, state: &str| {
        Cell { state: state.into(), ..cell("single", processes, 1.0) }.title()
    };
    assert_eq!(title(1, "healthy"), "single, dd, 1 process");
    assert_eq!(title(2, "healthy"), "single, dd, 2 processes");
    assert_eq!(title(2, "rebuilding"), "single, dd, 2 processes, rebuilding");
    assert_eq!(title(0, "rebuilding"), "single, dd");
}

/// A rebuild alone meets no load: however little of it was done, that is what it takes.
#[test]
fn a_rebuild_alone_tells_its_time_from_the_first_second_on() {
    let mut cell = cell("raid5(4)", 0, 1.0);
    cell.metric = "rebuild_estimate_s".into();
    cell.note = Some("estimated from 0.04 % of the rebuild".into());
    cell.last_done_s = 1.0;
    assert!(!cell.tells_too_little());
    cell.processes = 1;
    assert!(cell.tells_too_little());
    cell.metric = "rebuild_s".into();
    assert!(!cell.tells_too_little(), "it ended");
}

/// A given cell with this error in percent.
fn given(layout: &str, error_percent: f64, calibrated: bool) -> Cell {
    let value = 200.0 / (1.0 + error_percent / 100.0);
    Cell {
        published: Some(Published { value, error_percent, calibrated }),
        ..cell(layout, 1, 200.0)
    }
}

#[test]
fn fidelity_counts_given_cells_and_names_the_misses() {
    let mut cells = vec![
        cell("kept back", 1, 5.0),
        given("a", -2.0, true),
        given("b", 10.0, false),
        given("c", -30.0, true),
        given("d", 40.0, false),
        given("e", -50.0, false),
    ];
    cells.push(Cell { detail: true, ..given("not shown", 99.0, false) });
    let fidelity = Fidelity::of(&cells, 2);
    assert_eq!((fidelity.cells, fidelity.given_cells, fidelity.calibrated_cells), (6, 5, 2));
    assert_eq!(fidelity.free_parameters, 2);
    // The median of 2, 10, 30, 40 and 50.
    assert_eq!(fidelity.median_error_percent, Some(30.0));
    let missed =
        fidelity.not_explained.iter().map(|one| (one.cell.layout.as_str(), one.error_percent));
    let expected = [("e", -50.0), ("d", 40.0), ("c", -30.0)];
    assert_eq!(missed.collect::<Vec<_>>(), expected, "by size; 10 % is no miss");
    let none = Fidelity::of(&cells[..1], 0);
    assert_eq!((none.given_cells, none.median_error_percent), (0, None));
}

#[test]
fn ablation_says_how_cells_move() {
    let full = [cell("a", 1, 100.0), cell("b", 1, 50.0), cell("c", 1, 0.0)];
    let without =
        [cell("b", 1, 25.0), cell("a", 1, 110.0), cell("c", 1, 9.0), cell("not in both", 1, 1.0)];
    let row = AblationRow::new("journal", "no journal", &full, &without);
    let moved =
        row.cells.iter().map(|one| (one.cell.layout.as_str(), one.moved.full, one.moved.percent));
    assert_eq!(moved.collect::<Vec<_>>()[0], ("b", 50.0, -50.0));
    assert_eq!(row.cells.len(), 2, "from nothing there is no change in percent");
    let [workload] = &row.workloads[..] else { panic!("one workload") };
    assert!((workload.median_percent + 20.0).abs() < 1e-9, "half way from -50 to +10");
    assert_eq!((workload.largest_percent, workload.largest_layout.as_str()), (-50.0, "b"));
    assert_eq!(row.largest(), 50.0);
}

/// A workload's metrics are apart, settings tell cells from one another, and shares of CPU time do not count.
#[test]
fn ablation_tells_metrics_and_settings_apart() {
    let with = |metric: &str, block: &str, median: f64| Cell {
        metric: metric.into(),
        settings: [("block".to_owned(), block.to_owned())].into(),
        ..cell("a", 1, median)
    };
    let full = [with("kps", "4K", 100.0), with("kps", "8K", 200.0), with("kps_cp", "4K", 10.0)];
    let without = [with("kps", "8K", 210.0), with("kps", "4K", 102.0), with("kps_cp", "4K", 30.0)];
    let row = AblationRow::new("journal", "no journal", &full, &without);
    let moved: Vec<f64> = row.cells.iter().map(|one| one.moved.percent.round()).collect();
    assert_eq!(moved, [5.0, 2.0, 200.0], "each from the cell of its own block");
    let workloads: Vec<(&str, f64)> = row
        .workloads
        .iter()
        .map(|one| (one.metric.as_str(), one.largest_percent.round()))
        .collect();
    assert_eq!(workloads, [("kps", 5.0), ("kps_cp", 200.0)]);
    assert_eq!(row.largest().round(), 5.0);
    let named = NamedCell::of(&full[0]);
    assert!(named.is(&full[0]) && !named.is(&full[1]) && !named.is(&full[2]));
}

#[test]
fn several_replays_are_one_document() {
    let mut one = results();
    one.fidelity = Some(Fidelity::of(&one.cells, 1));
    let named = NamedCell::of(&one.cells[0]);
    assert!(named.is(&one.cells[0]) && !named.is(&one.cells[3]));
    one.findings = vec![Finding { text: "so it is".into(), effect: 2.0, cells: vec![named] }];
    let both = Replays::new(vec![one.clone(), results()]);
    let text = both.to_json().expect("finite numbers");
    assert_eq!(serde_json::from_str::<Replays>(&text).expect("read back"), both);
    let value: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(value["schema_version"], 2);
    assert_eq!(value["replays"][0]["cells"][0]["layout"], "single");
    assert_eq!(value["replays"][0]["findings"][0]["cells"][0]["median"], 100.0);
    assert!(value["replays"][1].get("fidelity").is_none(), "absent outside a replay");
    one.cells[0].median = f64::NAN;
    assert!(Replays::new(vec![one]).to_json().is_err());
}

#[test]
fn every_document_of_several_has_the_version_that_is_read() {
    let text = Replays::new(vec![results(), results()]).to_json().expect("finite");
    assert_eq!(Results::all_from_json(&text).expect("two").len(), 2);
    let last = text.rfind("\"schema_version\": 2").expect("each has one");
    let text = format!("{}{}", &text[..last], text[last..].replacen('2', "3", 1));
    let error = Results::all_from_json(&text).expect_err("another version");
    assert_eq!(error.kind, ResultsErrorKind::SchemaVersion);
}
