//! The document as text, and looking things up in it.

use std::collections::BTreeMap;

use raidlab_results::{
    Better, Bottleneck, Cell, Clock, LayoutRow, Results, ResultsErrorKind, SCHEMA_VERSION, Verdict,
    WorkloadRow,
};

fn cell(layout: &str, processes: u32, median: f64) -> Cell {
    Cell {
        layout: layout.into(),
        workload: "dd".into(),
        processes,
        state: "healthy".into(),
        metric: "mib_per_s".into(),
        better: Better::Higher,
        unit: "MiB/s".into(),
        samples: vec![median, 0.1 + 0.2, 1.0 / 3.0],
        median,
        ci95: Some([1e-300, median]),
        coverage: Some(0.96875),
        mean: median,
        percent_vs_baseline: Some(-12.5),
        verdict: Some(Verdict::NoDifferenceShown),
        settings: BTreeMap::new(),
        first_done_s: 0.1,
        last_done_s: 1.0,
        process_cpu_s: None,
        system_cpu_s: None,
        bottleneck: Some(Bottleneck { resource: "member 2".into(), busy: 0.98 }),
        fairness: None,
        latency_ms: None,
        members: None,
        published: None,
        moved: None,
        spread_percent: None,
        detail: false,
        note: None,
    }
}

fn results() -> Results {
    Results {
        schema_version: SCHEMA_VERSION,
        raidlab: "0.1.0".into(),
        study: "A study".into(),
        seed: u64::MAX,
        clock: Clock::Virtual,
        host: BTreeMap::from([("b".into(), "2".into()), ("a".into(), "1".into())]),
        settings: BTreeMap::new(),
        warnings: vec!["mind the gap".into()],
        baseline: vec!["single".into()],
        layouts: vec![LayoutRow { name: "single".into(), capacity: 1 << 40, survives: 0 }],
        workloads: vec![WorkloadRow { name: "dd".into(), description: "copies".into() }],
        cells: vec![
            cell("single", 1, 100.0),
            cell("raid0(4)", 1, 400.0),
            cell("raid5(4)", 1, 400.0),
            cell("single", 2, 7.0),
        ],
    }
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
    assert!(text.contains("\"verdict\": \"no difference shown\""));
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
            assert!(error.to_string().contains("raid0(4), dd, 1 process is"), "{error}");
        }
    }
}

#[test]
fn other_texts_are_refused() {
    let text = results().to_json().unwrap();
    let newer = text.replace("\"schema_version\": 1", "\"schema_version\": 2");
    let error = Results::from_json(&newer).unwrap_err();
    assert_eq!(error.kind, ResultsErrorKind::SchemaVersion);
    let said = "the document has schema_version 2; this version of raidlab reads 1";
    assert_eq!(error.to_string(), said);
    for wrong in ["", "{}", "[1]", "{\"schema_version\": 1}", &text[..text.len() / 2]] {
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
}
