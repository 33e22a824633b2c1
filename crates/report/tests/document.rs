//! JSON, and documents that contradict themselves.

use crate::common;
use raidlab_report::{Exporter, Html, Json, ReportErrorKind, Terminal};
use raidlab_results::document::Results;

#[test]
fn json_reads_back_and_ends_with_a_newline() {
    for results in [common::small(), common::real(), common::empty()] {
        let text = Json.export(&results).expect("a document");
        assert!(text.ends_with("}\n"));
        assert!(text.starts_with("{\n  \"schema_version\": 2,\n  \"raidlab\":"));
        assert_eq!(serde_json::from_str::<Results>(&text).expect("the document"), results);
    }
}

#[test]
fn all_reports_are_the_same_twice() {
    let exporters: [&dyn Exporter; 3] = [&Json, &Html, &Terminal::default()];
    for exporter in exporters {
        let once = exporter.export(&common::full()).expect("a report");
        assert_eq!(once, exporter.export(&common::full()).expect("a report"));
    }
}

#[test]
fn contradictions_are_named() {
    type Break = fn(&mut Results);
    let cases: [(Break, ReportErrorKind, &str); 7] = [
        (
            |results| results.schema_version = 7,
            ReportErrorKind::SchemaVersion,
            "schema_version is 7, this raidlab reads 2",
        ),
        (
            |results| results.baseline = vec!["sngle".to_owned()],
            ReportErrorKind::UnknownLayout,
            "baseline names the layout `sngle`; the document lists single, linear(4), raid0(4), \
             raid1(2), raid5(4) and raid10(4)",
        ),
        (
            |results| results.cells[1].layout = "raid6(4)".to_owned(),
            ReportErrorKind::UnknownLayout,
            "cells[1] (raid6(4), dd-write, processes 1, healthy) names the layout `raid6(4)`",
        ),
        (
            |results| results.cells[0].workload = "cat".to_owned(),
            ReportErrorKind::UnknownWorkload,
            "names the workload `cat`; the document lists dd-write and random-read",
        ),
        (
            |results| results.cells.push(results.cells[0].clone()),
            ReportErrorKind::DuplicateCell,
            "cells[23] (single, dd-write, processes 1, healthy) stands there twice",
        ),
        (
            |results| results.cells[2].samples.clear(),
            ReportErrorKind::NoSamples,
            "cells[2] (raid0(4), dd-write, processes 1, healthy) has no samples",
        ),
        (
            |results| results.cells[2].percent_vs_baseline = Some(f64::INFINITY),
            ReportErrorKind::NotFinite,
            "percent_vs_baseline is inf, and must be a finite number",
        ),
    ];
    for (break_it, kind, message) in cases {
        let mut results = common::small();
        break_it(&mut results);
        let exporters: [&dyn Exporter; 2] = [&Html, &Terminal::default()];
        for exporter in exporters {
            let error = exporter.export(&results).expect_err(message);
            assert_eq!(error.kind(), kind);
            assert!(error.to_string().contains(message), "{error}");
        }
    }
}

#[test]
fn json_refuses_what_it_cannot_hold() {
    let mut results = common::small();
    results.cells[3].samples[2] = f64::NAN;
    let error = Json.export(&results).expect_err("a number that is none");
    assert_eq!(error.kind(), ReportErrorKind::NotFinite);
    assert!(error.context().contains("cells[3]"), "{error}");
}

#[test]
fn the_order_of_the_cells_does_not_matter() {
    let mut results = common::full();
    let in_order = Terminal::default().export(&results).expect("a report");
    results.cells.reverse();
    assert_eq!(Terminal::default().export(&results).expect("a report"), in_order);
}

/// What must be known of a cell stands in its glance.
#[test]
fn a_glance_has_the_note_of_its_cell() {
    let mut results = common::small();
    results.cells[1].note = Some("the rebuild ended after 25 % of the run".into());
    let found = raidlab_report::glances(&results).expect("a good document");
    for glance in &found {
        assert_eq!(glance.note, glance.cell.note);
    }
    assert_eq!(found.iter().filter(|glance| glance.note.is_some()).count(), 1);
}
