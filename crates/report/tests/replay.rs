//! The report of a replay on a terminal, and the findings behind it.

use crate::common;
use raidlab_report::{Terminal, findings};
use raidlab_results::document::Cell;
use raidlab_results::{Replays, Results};

const TERMINAL: Terminal = Terminal { width: Some(100), colour: false, unicode: true };

fn printed(documents: &[Results]) -> String {
    TERMINAL.replays(documents).expect("a report")
}

/// Words of the report, whatever lines they stand on.
fn words(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn cells_stand_beside_what_was_published() {
    let text = printed(&[common::replay()]);
    for line in [
        "                    1 process    4 processes",
        // Means of the seeds; the error is that of the median, 100.
        " single            100 ±4.0 %     903 ±4.0 %",
        "   published       80.0 +25 %",
        "   busiest      member 0 98 %  member 0 98 %",
        " md-raid0(2)      60.2 ±4.0 %     261 ±4.0 %",
        "   published     61.0 -1.6 %*",
    ] {
        assert!(text.lines().any(|found| found == line), "{line}\n{text}");
    }
    for part in ["first..last 100..300 s", "4KiB 1MiB", "* parameters were fitted to this cell"] {
        assert!(words(&text).contains(part), "{part}\n{text}");
    }
}

#[test]
fn fidelity_is_counted_and_misses_are_named() {
    let text = words(&printed(&[common::replay()]));
    for part in [
        "15 cells, 2 of them given, 1 of these calibrated on; 1 free parameter. Median error of the given \
         cells 13 %; 1 is off by more than 10 %.",
        "not explained: single, cp, 1 process, seconds: 100, published 80.0 (+25 %)",
    ] {
        assert!(text.contains(part), "{part}\n{text}");
    }
}

#[test]
fn mechanisms_are_listed_by_what_they_move() {
    let text = printed(&[common::replay()]);
    let all = words(&text);
    for part in [
        "journal +50 % +50 % +50 %",
        "no cell moves by 1 % without luck",
        "journal: it is not there. Most: md-raid0(2), cp +50 % (60.0 to 90.0)",
        "x0 x0.5 x1 x2 x10 no parity",
        "md-raid0(2), cp 45.0 48.0 60.0 75.0 240",
        "At x0 these cells move by -25 % to -25 %.",
        "At x10 these cells move by +300 % to +300 %.",
    ] {
        assert!(all.contains(part), "{part}\n{text}");
    }
}

#[test]
fn no_line_of_a_replay_is_wider_than_the_terminal() {
    let all = [common::replay(), common::full()];
    for width in [60, 72, 80, 100, 140] {
        let terminal = Terminal { width: Some(width), ..TERMINAL };
        for line in terminal.replays(&all).expect("a report").lines() {
            assert!(line.chars().count() <= usize::from(width), "{width}: {line}");
            assert_eq!(line, line.trim_end());
        }
    }
    let plain = Terminal { unicode: false, ..TERMINAL };
    assert!(plain.replays(&all).expect("a report").is_ascii());
}

#[test]
fn several_replays_end_with_how_near_each_comes() {
    let mut other = common::replay();
    other.study = "dd-2001: another".to_owned();
    let text = printed(&[common::replay(), other]);
    let end = &text[text.find("All replays").expect("a summary")..];
    assert!(end.contains("dd-1999 ") && end.contains("dd-2001 "), "{end}");
    assert!(!printed(&[common::replay()]).contains("All replays"));
}

/// Sentences by every rule, with the numbers of the document and nothing else.
#[test]
fn findings_are_computed_largest_first() {
    let results = common::replay();
    let found = findings(&results);
    let texts: Vec<String> = found.iter().map(|one| words(&one.text)).collect();
    for sentence in [
        "On md-raid0(2) sweep goes from 21.0 MiB/s (block 4KiB) to 110 MiB/s (block 1MiB) with its \
         settings.",
        "md-raid0(2) is the fastest at cp with 4 processes: 260 s, -71 % against single (900 s).",
        "From 1 to 4 processes single does 44 % of the work per second at cp (100 s to 900 s), \
         md-raid0(2) 92 % (60.0 s to 260 s).",
        "bios instead of md (bios-raid0(2) instead of md-raid0(2)) makes readers with 2 processes 0.444 \
         times as fast (90.0 MiB/s to 40.0 MiB/s).",
        "First and last of the processes of readers with 2 processes end 3 min 20 s apart (last after 5 \
         min 00 s) on single, on md-raid0(2) 10.0 s apart (last after 110 s).",
    ] {
        assert!(texts.iter().any(|text| text == sentence), "{sentence}\n{texts:#?}");
    }
    assert!((4..=8).contains(&found.len()));
    assert!(found.windows(2).all(|two| two[0].effect >= two[1].effect));
    for one in &found {
        assert!(!one.cells.is_empty(), "{}", one.text);
        for cell in &one.cells {
            assert!(results.cells.iter().any(|own| cell.is(own)), "{}", one.text);
        }
    }
}

/// What more processes get is told of one state each, whatever other states there are.
#[test]
fn processes_are_compared_within_a_state() {
    let mut results = common::replay();
    let told = |results: &Results| -> Vec<String> {
        let texts = findings(results).into_iter().map(|one| words(&one.text));
        texts.filter(|text| text.starts_with("From 1 to 4 processes single")).collect()
    };
    let before = told(&results);
    let degraded = results.cells.clone().into_iter().map(|cell| Cell {
        state: "degraded".to_owned(),
        // So that what is told of it has less effect.
        median: 10.0 + cell.median / 100.0,
        ..cell
    });
    results.cells.extend(degraded.collect::<Vec<_>>());
    let after = told(&results);
    assert!(before.len() == 1 && after.contains(&before[0]), "{before:?}\n{after:?}");
}

/// Other numbers give other sentences; no numbers give none.
#[test]
fn findings_follow_the_numbers() {
    let mut results = common::replay();
    for cell in &mut results.cells {
        cell.median = 70.0;
        (cell.first_done_s, cell.last_done_s) = (70.0, 70.0);
        cell.bottleneck = None;
        if cell.processes == 4 {
            cell.median = 280.0;
        }
    }
    assert!(findings(&results).is_empty(), "{:?}", findings(&results));
    let slow = results.cells.iter_mut().find(|cell| cell.layout == "md-raid0(2)");
    slow.expect("a cell").median = 140.0;
    let texts: Vec<String> = findings(&results).into_iter().map(|one| words(&one.text)).collect();
    let sentence = "Slower than single (70.0 s) at cp: md-raid0(2) (140 s, +100 %).";
    assert!(texts.iter().any(|text| text == sentence), "{texts:#?}");
    results.cells.clear();
    assert!(findings(&results).is_empty());
    assert!(Replays::new(vec![results]).to_json().is_ok());
}
