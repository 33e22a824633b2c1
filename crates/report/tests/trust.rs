//! How far predicted figures can be trusted, as reports say it.

use crate::common;
use raidlab_report::{Csv, Exporter, Html, Markdown, Terminal};
use raidlab_results::Results;
use raidlab_results::trust::CellTrust;

/// A document in which most cells are like those of the lab, and those of one layout are not.
fn document() -> Results {
    let mut results = common::full();
    let other = results.layouts[1].name.clone();
    for cell in &mut results.cells {
        cell.trust = Some(if cell.layout == other {
            let reason = "not checked against a kernel: the level was not compared";
            CellTrust { not_checked: Some(reason.into()), ..CellTrust::default() }
        } else {
            CellTrust {
                not_checked: None,
                group: Some("raw arrays, writing".into()),
                cells: Some(14),
                interval90: Some([cell.median / 1.25, cell.median * 1.25]),
                sign_of_100: cell.verdict.map(|_| 93),
                floor_percent: Some(20),
            }
        });
    }
    results
}

fn text(exporter: &dyn Exporter, results: &Results) -> String {
    let bytes = exporter.write(std::slice::from_ref(results)).expect("is written");
    let text = String::from_utf8(bytes).expect("is text");
    text.replace(['\u{a0}', '\u{202f}'], " ")
}

#[test]
fn every_report_says_within_what_a_kernel_lies_and_what_was_not_checked() {
    let results = document();
    let terminal = Terminal { width: None, ..Terminal::default() };
    for exporter in [&terminal as &dyn Exporter, &Html, &Markdown] {
        let text = text(exporter, &results).replace('\n', " ");
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        for said in [
            "How far to trust this",
            "within -20 % to +25 % of these 90 of 100 times (by 14 cells: raw arrays, writing)",
            "differences below 20 % are not resolved",
            "not checked against a kernel: the level was not compared",
        ] {
            assert!(text.contains(said), "{said}: {text}");
        }
    }
    let html = text(&Html, &results);
    assert!(html.contains("of 100 such differences 93 have this sign"));
    let without = text(&terminal, &common::full());
    assert!(!without.contains("How far to trust this"), "measured figures need none");
}

/// Two things that are said of the figures of one row would contradict each other without whose they are.
#[test]
fn whose_figures_are_meant_is_said_where_a_row_has_several_kinds() {
    let terminal = Terminal { width: None, ..Terminal::default() };
    let words = |results: &Results| {
        let text = text(&terminal, results);
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let mixed = document();
    let other = &mixed.layouts[1].name;
    let said = format!(" ({other}): not checked against a kernel: the level was not compared");
    assert!(words(&mixed).contains(&said), "{said}: {}", words(&mixed));
    let first = format!(" ({}", mixed.layouts[0].name);
    let checked = words(&mixed);
    let (before, _) = checked.split_once(": a kernel's figure lies within").expect("is said");
    assert!(before.contains(&first) && before.ends_with(')'), "{before}");
    let mut alike = document();
    alike.cells.retain(|cell| cell.layout != *other);
    let alike = words(&alike);
    let (before, _) = alike.split_once(": a kernel's figure lies within").expect("is said");
    assert!(!before.ends_with(')'), "{before}");
}

/// The fields of a line, commas between quotation marks left where they are.
fn fields(line: &str) -> Vec<String> {
    let mut fields = vec![String::new()];
    let mut quoted = false;
    for letter in line.chars() {
        match letter {
            '"' => quoted = !quoted,
            ',' if !quoted => fields.push(String::new()),
            other => fields.last_mut().expect("has one").push(other),
        }
    }
    fields
}

#[test]
fn each_row_of_a_spreadsheet_has_its_interval() {
    let csv = text(&Csv, &document());
    let head: Vec<&str> = csv.lines().next().expect("a head").split(',').collect();
    let at = |name: &str| head.iter().position(|one| *one == name).expect(name);
    let (low, median, floor) =
        (at("trust_interval90_low"), at("median"), at("trust_floor_percent"));
    let numbers = csv.lines().skip(1).filter_map(|line| {
        let fields = fields(line);
        let number = |at: usize| fields.get(at)?.parse::<f64>().ok();
        Some((number(low)?, number(median)?, number(floor)?))
    });
    let numbers: Vec<(f64, f64, f64)> = numbers.collect();
    assert!(!numbers.is_empty());
    assert!(numbers.iter().all(|(low, median, _)| (low * 1.25 - median).abs() < 1e-9 * median));
    assert!(numbers.iter().all(|(.., floor)| *floor == 20.0));
    assert!(csv.contains("not checked against a kernel"));
}
