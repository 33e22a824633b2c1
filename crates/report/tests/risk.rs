//! What reports say of how likely layouts lose data.

use crate::common;
use raidlab_report::{Exporter, Html, Terminal};
use raidlab_results::Results;

const SCOPE: &str = "All figures: drives and rebuilds only, not fire. RAID is not a backup.";

/// A document with chances of all its layouts but the last.
fn with_risk() -> Results {
    let mut results = common::small();
    let names: Vec<&str> = results.layouts.iter().map(|layout| layout.name.as_str()).collect();
    results.risk = Some(common::risks(&names[..names.len() - 1]));
    results
}

fn text(width: Option<u16>, results: &Results) -> String {
    Terminal { width, colour: false, unicode: true }.export(results).expect("a report")
}

fn flat(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// At any width: what it is about, ratios, chances with their ranges, and the three kinds of what is not sure, apart.
#[test]
fn terminals_of_any_width_say_it() {
    let results = with_risk();
    for width in [None, Some(160), Some(120), Some(80), Some(40)] {
        let shown = text(width, &results);
        let flat = flat(&shown);
        for words in [
            SCOPE,
            "1 in 300",
            "1 in 60 to 2,000",
            "20 to 80",
            "the safest",
            "3 GB",
            "range below the chances in 5 years, depending on what nobody knows",
            "structure with another spare, scrub or replacement",
            "computing standard error at most 0.5 %",
            "raidlab risk LAYOUTS --years 1,5",
            "Nothing is said of other: not known.",
        ] {
            assert!(flat.contains(words), "{width:?}: `{words}` is not in\n{shown}");
        }
        if let Some(width) = width.filter(|width| *width >= 80) {
            let wide = shown.lines().filter(|line| line.chars().count() > usize::from(width));
            assert_eq!(wide.collect::<Vec<_>>(), [""; 0], "{width}");
        }
    }
}

/// Speed and risk stand below the same name, at the head of the table; a layout without a chance is not passed over.
#[test]
fn the_table_of_speeds_has_the_chance() {
    let results = with_risk();
    let wide = text(Some(160), &results);
    let at = wide.lines().position(|line| line.starts_with("array lost")).expect("a row");
    let rows: Vec<&str> = wide.lines().skip(at).take(2).collect();
    let known = results.layouts.len() - 1;
    assert_eq!(rows[0].matches("1 in 300").count(), known, "{rows:?}");
    let is_said = rows[0].trim_end().ends_with("not") && rows[1].trim_end().ends_with("known");
    assert!(is_said, "{rows:?}");
    let none = text(Some(160), &common::small());
    assert!(!none.contains("array lost") && !none.contains("How likely"), "{none}");
}

#[test]
fn pages_say_it() {
    let page = Html.export(&with_risk()).expect("a page");
    let visible = page.split("<script").next().expect("a body");
    for words in [
        SCOPE,
        "How likely are data lost",
        "array lost in 5 years",
        "<small>1 in 60 to 2,000</small>",
        "depending on what nobody knows",
        "raidlab risk LAYOUTS --years 1,5",
        "Nothing is said of other: not known.",
    ] {
        assert!(visible.contains(words), "`{words}` is not in the page");
    }
    let none = Html.export(&common::small()).expect("a page");
    assert!(!none.contains("How likely are data lost"));
}
