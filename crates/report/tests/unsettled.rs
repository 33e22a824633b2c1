//! What was over before anything had settled beside a rebuild is shown, and nothing is made of it.

use crate::common;
use raidlab_report::{About, Csv, Exporter, Html, Markdown, Terminal, conclusions};
use raidlab_results::document::{Better, Results};

const LAYOUTS: [&str; 2] = ["single", "raid0(4)"];

/// Two layouts with 1 and 4 processes, healthy and rebuilding: while it rebuilds the first is ahead with 1 process and
/// behind with 4, gets less done with more, and keeps little of its healthy speed.
fn document(rounds: usize) -> Results {
    let mut results = common::small();
    results.cells.clear();
    for (state, processes, rates) in [
        ("healthy", 1, [200.0, 210.0]),
        ("healthy", 4, [300.0, 400.0]),
        ("rebuilding", 1, [150.0, 100.0]),
        ("rebuilding", 4, [50.0, 250.0]),
    ] {
        let (unit, better) = ("MiB/s", Better::Higher);
        let shared = common::Shared { workload: "dd-write", processes, state, unit, better };
        let cell = |(name, rate)| common::cell(&shared, name, rate, 0.1, rounds);
        let mut row: Vec<_> = LAYOUTS.into_iter().zip(rates).map(cell).collect();
        common::compare(&mut row, "single");
        results.cells.extend(row);
    }
    results
}

/// What the study says of the layouts that saw only how a rebuild begins, and of their rows.
fn unsettle(results: &mut Results, layouts: &[&str]) {
    for cell in results.cells.iter_mut().filter(|cell| cell.state == "rebuilding") {
        cell.unsettled = layouts.contains(&cell.layout.as_str());
        (cell.percent_vs_baseline, cell.percent_interval, cell.verdict) = (None, None, None);
        (cell.floor_percent, cell.may_be_best, cell.as_good_as_best) = (None, false, false);
    }
}

fn said(results: &Results, about: About) -> Vec<String> {
    let all = conclusions(results).expect("a good document");
    let own = all.iter().filter(|one| one.about == about);
    own.map(|one| one.text.replace(['\u{a0}', '\u{202f}'], " ")).collect()
}

fn text(exporter: &dyn Exporter, results: &Results) -> String {
    let bytes = exporter.write(std::slice::from_ref(results)).expect("is written");
    String::from_utf8(bytes).expect("is text").replace(['\u{a0}', '\u{202f}'], " ")
}

#[test]
fn nobody_is_best_of_what_has_not_settled() {
    let named = "Not known with 1 and 4 processes, rebuilding which is best: some of it was over within 3 s, in which \
                 nothing beside a rebuild settles, use a larger size; single has 50.0 MiB/s and raid0(4) has \
                 250 MiB/s, with 4 processes, rebuilding.";
    // Too few rounds for a verdict, and enough.
    for rounds in [3, 9] {
        let mut results = document(rounds);
        let best = said(&results, About::Best);
        assert!(best.iter().any(|one| one.contains("rebuilding: ")), "{best:?}");
        unsettle(&mut results, &LAYOUTS);
        let best = said(&results, About::Best);
        let beside: Vec<_> = best.iter().filter(|one| one.contains("rebuilding")).collect();
        assert_eq!(beside, [named], "{rounds}");
        let of_best = conclusions(&results).expect("a good document");
        let of_best = of_best.iter().find(|one| one.text.starts_with("Not known"));
        assert!((of_best.expect("is said").effect - 1.0).abs() < 1e-9);

        let terminal = text(&Terminal { unicode: true, ..Terminal::default() }, &results);
        let rows: Vec<&str> =
            terminal.lines().filter(|line| line.contains("rebuilding  ")).collect();
        assert_eq!(rows.len(), 2, "{terminal}");
        for row in rows {
            assert!(!row.contains(['*', '?', '%']), "{row}");
        }
        assert!(!terminal.contains("layout healthy"), "no percentage is against it: {terminal}");
        let markdown = text(&Markdown, &results);
        for figures in ["| 150 | 50.0 |", "| 100 | 250 |"] {
            assert!(markdown.contains(figures), "no more than the figures: {markdown}");
        }
        // One star for each row of what is healthy.
        assert_eq!(text(&Html, &results).matches("aria-label=\"best\"").count(), 2, "{rounds}");
    }
}

#[test]
fn nothing_across_the_rows_is_taken_from_what_has_not_settled() {
    let mut results = document(9);
    assert_eq!(said(&results, About::Order).len(), 2);
    let [failure] = &said(&results, About::Failure)[..] else { panic!("one state") };
    assert!(failure.contains("single keeps 17 % of its healthy speed"), "{failure}");
    // The one that settled has its loss; who is ahead of whom nobody knows, nor how the other fares.
    unsettle(&mut results, &["single"]);
    assert_eq!(said(&results, About::Order), [""; 0]);
    let expected = "With 1 process, rebuilding, raid0(4) keeps 48 % of its healthy speed (100 MiB/s after 210).";
    assert_eq!(said(&results, About::Failure), [expected]);
    unsettle(&mut results, &LAYOUTS);
    assert_eq!((said(&results, About::Order), said(&results, About::Failure)), (vec![], vec![]));
    results.study = "without a comma".to_owned();
    let csv = text(&Csv, &results);
    let head = csv.lines().next().expect("a head");
    let at = head.split(',').position(|one| one == "unsettled").expect("a column");
    let told = csv.lines().skip(1).filter(|line| line.split(',').nth(at) == Some("true"));
    assert_eq!(told.count(), 4);
}
