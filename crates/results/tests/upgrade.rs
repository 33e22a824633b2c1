//! Documents of earlier schema versions.

use raidlab_results::{Cell, Clock, Replays, Results, ResultsErrorKind, Verdict, upgrade};
use serde_json::{Value, json};

use crate::support;

/// What version 1 wrote: no floor and no interval of percentages, and a verdict that is no more.
fn of_version_1(clock: Clock) -> Value {
    let mut random = support::Random::new(1);
    let mut wave = |level: f64| -> Vec<f64> {
        (0..12).map(|_| level * (1.0 + 0.0005 * random.normal())).collect()
    };
    let cells = vec![
        support::cell("single", &wave(100.0)),
        support::cell("raid0(4)", &wave(390.0)),
        support::cell("raid5(4)", &wave(80.0)),
        support::cell("raid1(2)", &wave(100.2)),
    ];
    let mut results = support::document(clock, cells);
    results.baseline = vec!["single".into()];
    let mut value: Value = serde_json::from_str(&results.to_json().expect("finite")).expect("JSON");
    value["schema_version"] = json!(1);
    for cell in value["cells"].as_array_mut().expect("cells") {
        let cell = cell.as_object_mut().expect("an object");
        for key in ["percent_interval", "floor_percent", "may_be_best", "as_good_as_best"] {
            cell.remove(key);
        }
        cell.insert("verdict".into(), json!("no difference shown"));
        cell.insert("percent_vs_baseline".into(), json!(77.0));
    }
    value
}

#[test]
fn version_1_is_judged_anew() {
    for clock in [Clock::Virtual, Clock::Real] {
        let old = of_version_1(clock);
        let refused = Results::from_json(&old.to_string()).expect_err("of another version");
        assert_eq!(refused.kind, ResultsErrorKind::SchemaVersion);
        assert!(refused.to_string().contains("raidlab convert"), "{refused}");
        let new = upgrade(&old.to_string()).expect("understood");
        let results = Results::from_json(&new).expect("of today");
        let verdicts: Vec<Option<Verdict>> =
            results.cells.iter().map(|cell| cell.verdict).collect();
        let (faster, slower) = (Some(Verdict::Faster), Some(Verdict::Slower));
        assert_eq!(verdicts, [None, faster, slower, Some(Verdict::Equal)]);
        let percent = results.cells[1].percent_vs_baseline.expect("compared");
        assert!((percent - 290.0).abs() < 0.5, "{percent}");
        assert_eq!(results.cells[0].percent_vs_baseline, Some(0.0));
        let floor = if clock == Clock::Virtual { 1.0 } else { 0.5 };
        assert!(results.cells.iter().all(|cell| cell.floor_percent == Some(floor)));
        let best: Vec<bool> = results.cells.iter().map(|cell| cell.may_be_best).collect();
        assert_eq!(best, [false, true, false, false]);
        assert_eq!(json!(results.cells[2].samples), old["cells"][2]["samples"]);
        assert!(results.warnings.last().is_some_and(|told| told.contains("schema_version 1")));
        // Once is enough.
        assert_eq!(upgrade(&new).expect("understood"), new);
    }
}

/// Workloads of one name that differ in their settings are rows of their own: each has its own baseline and best.
#[test]
fn rows_of_other_settings_are_judged_apart() {
    let mut old = of_version_1(Clock::Virtual);
    let cells = old["cells"].as_array().expect("cells").clone();
    let with = |block: &str, factor: f64| {
        let mut cells = cells.clone();
        for cell in &mut cells {
            cell["settings"] = json!({ "block": block });
            let samples = cell["samples"].as_array_mut().expect("samples");
            for sample in samples {
                *sample = json!(sample.as_f64().expect("a number") * factor);
            }
        }
        cells
    };
    // In blocks of 64 KiB all of it is ten times as fast.
    old["cells"] = json!([with("4KiB", 1.0), with("64KiB", 10.0)].concat());
    let new = upgrade(&old.to_string()).expect("understood");
    let results = Results::from_json(&new).expect("of today");
    let (small, large) = results.cells.split_at(4);
    for (small, large) in small.iter().zip(large) {
        assert_eq!(small.verdict, large.verdict, "{}", small.layout);
        assert_eq!(small.may_be_best, large.may_be_best, "{}", small.layout);
        let percent = |cell: &Cell| cell.percent_vs_baseline.expect("compared");
        assert!((percent(small) - percent(large)).abs() < 1e-9, "{}", small.layout);
    }
    assert_eq!(large[0].percent_vs_baseline, Some(0.0), "the baseline of its own row");
    let best: Vec<bool> = results.cells.iter().map(|cell| cell.may_be_best).collect();
    assert_eq!(best, [false, true, false, false, false, true, false, false]);
}

/// Each state is a row of its own, and of times the shorter ones are better.
#[test]
fn states_are_judged_apart_and_times_by_being_short() {
    let mut old = of_version_1(Clock::Virtual);
    let cells = old["cells"].as_array().expect("cells").clone();
    let with = |state: &str, factor: f64, better: &str| {
        let mut cells = cells.clone();
        for cell in &mut cells {
            (cell["state"], cell["better"]) = (json!(state), json!(better));
            let samples = cell["samples"].as_array_mut().expect("samples");
            for sample in samples {
                *sample = json!(sample.as_f64().expect("a number") * factor);
            }
        }
        cells
    };
    old["cells"] = json!([with("healthy", 1.0, "lower"), with("degraded", 0.1, "lower")].concat());
    let results =
        Results::from_json(&upgrade(&old.to_string()).expect("understood")).expect("good");
    let verdicts: Vec<Option<Verdict>> = results.cells.iter().map(|cell| cell.verdict).collect();
    let row = [None, Some(Verdict::Slower), Some(Verdict::Faster), Some(Verdict::Equal)];
    assert_eq!(verdicts, [row, row].concat());
    let best: Vec<bool> = results.cells.iter().map(|cell| cell.may_be_best).collect();
    let row = [false, false, true, false];
    assert_eq!(best, [row, row].concat());
    let percent = results.cells[1].percent_vs_baseline.expect("compared");
    assert!((percent - 290.0).abs() < 0.5, "more is more, whichever is better: {percent}");
}

#[test]
fn several_replays_are_converted_together() {
    let old = json!({ "schema_version": 1, "replays": [of_version_1(Clock::Virtual), of_version_1(Clock::Virtual)] });
    let new = upgrade(&old.to_string()).expect("understood");
    let several: Replays = serde_json::from_str(&new).expect("of today");
    assert_eq!(several.replays.len(), 2);
    assert_eq!(Results::all_from_json(&new).expect("of today").len(), 2);
}

#[test]
fn what_is_no_document_is_refused() {
    let mut newer = of_version_1(Clock::Real);
    newer["schema_version"] = json!(3);
    let error = upgrade(&newer.to_string()).expect_err("newer");
    assert_eq!(error.kind, ResultsErrorKind::SchemaVersion);
    let read = Results::from_json(&newer.to_string()).expect_err("newer");
    assert!(read.to_string().contains("a newer raidlab"), "{read}");
    for text in ["", "{", "[]", "7", "null", "{}", "{\"schema_version\": 0}", "{\"replays\": [7]}"]
    {
        assert!(upgrade(text).is_err(), "{text}");
    }
    let malformed = upgrade("{\"schema_version\": 1}").expect_err("nothing else there");
    assert_eq!(malformed.kind, ResultsErrorKind::Malformed);
}
