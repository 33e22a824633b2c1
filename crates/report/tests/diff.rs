//! Two documents against each other, as they are printed.

use crate::common;
use raidlab_report::{Terminal, diff_html, html_with_residuals};
use raidlab_results::{Clock, Diff, GUEST_PROGRAMS, Results};

const TERMINAL: Terminal = Terminal { width: Some(120), colour: false, unicode: true };

fn of(before: &Results, after: &Results) -> Diff {
    let (before, after) = (std::slice::from_ref(before), std::slice::from_ref(after));
    Diff::of(("old.json", before), ("new.json", after), None)
}

/// One cell 20 % slower, one gone, all others as they were.
fn changed(before: &Results) -> Results {
    let mut after = before.clone();
    after.cells.retain(|cell| cell.layout != "raid1(2)" || cell.processes != 1);
    let cell = after.cells.iter_mut().find(|cell| cell.layout == "raid5(4)").expect("a cell");
    cell.median *= 0.8;
    cell.samples.iter_mut().for_each(|sample| *sample *= 0.8);
    after
}

#[test]
fn a_regression_is_told_with_its_interval_and_the_rest_is_counted() {
    let before = common::small();
    let text = TERMINAL.diff(&of(&before, &changed(&before)));
    let line = text.lines().find(|line| line.contains("raid5(4)")).expect("the cell");
    assert!(line.contains("-20 %") && line.contains("-20..-20 %"), "{line}");
    assert!(line.contains("0.4 %") && line.ends_with("regressed"), "{line}");
    assert!(text.contains("only in old.json"), "{text}");
    assert!(text.contains("raid1(2)"), "{text}");
    assert!(text.contains("1 regressed, 0 improved"), "{text}");
    assert!(text.contains("every round to the last bit"), "{text}");
    assert!(!text.contains("only in new.json"), "{text}");
}

#[test]
fn residuals_are_told_for_each_cell() {
    let modelled = common::small();
    let mut measured = changed(&modelled);
    measured.clock = Clock::Real;
    let text = TERMINAL.diff(&of(&modelled, &measured));
    let line = text.lines().find(|line| line.contains("raid5(4)")).expect("the cell");
    assert!(line.contains("+25 %"), "{line}");
    assert!(text.contains("Modelled beside measured") && !text.contains("regressed"), "{text}");
    assert!(text.contains("absolute residual"), "{text}");
}

/// A run on a kernel is neither measured nor modelled, and the model beside it is no change.
#[test]
fn a_kernel_is_named_in_its_report_and_beside_the_model() {
    let modelled = common::small();
    let mut kernel = changed(&modelled);
    kernel.host.insert(GUEST_PROGRAMS.into(), "programs".into());
    let page = html_with_residuals(&kernel, &of(&kernel, &modelled)).expect("a page");
    let text = TERMINAL.diff(&of(&modelled, &kernel));
    for word in ["Modelled beside the kernel", "+25\u{a0}%", "kernel"] {
        assert!(page.contains(word), "`{word}` is not in the page");
    }
    assert!(page.contains("a Linux kernel on modelled drives, virtual time"), "{page}");
    assert!(text.contains("Modelled beside the kernel"), "{text}");
    let heads = text.lines().find(|line| line.contains("  cell ")).expect("heads");
    let words: Vec<&str> = heads.split_whitespace().collect();
    assert_eq!(words, ["cell", "kernel", "modelled", "off", "interval"]);
    for text in [page, text] {
        for word in ["What changed", "% of change", ">before<", "  before ", "regressed"] {
            assert!(!text.contains(word), "{word}: {text}");
        }
    }
}

#[test]
fn no_line_of_figures_is_wider_than_the_terminal() {
    let before = common::full();
    for width in [70, 100, 140] {
        let terminal = Terminal { width: Some(width), unicode: false, ..TERMINAL };
        let text = terminal.diff(&of(&before, &changed(&before)));
        for line in text.lines().filter(|line| line.ends_with("regressed") || line.ends_with('~')) {
            assert!(line.len() <= usize::from(width), "{width}: {line}");
        }
        assert!(text.is_ascii());
    }
}

/// Every cell of both has its row in a page, with the figures of the terminal; nothing is cut there.
#[test]
fn pages_have_every_cell_of_both() {
    let before = common::full();
    let mut measured = changed(&before);
    measured.clock = Clock::Real;
    for (after, words) in [
        (changed(&before), ["What changed", "regressed", "-20\u{a0}%"]),
        (measured.clone(), ["Modelled beside measured", "absolute residual", "+25\u{a0}%"]),
    ] {
        let diff = of(&before, &after);
        let page = diff_html(&diff).expect("a page");
        assert_eq!(page.matches("<tr><th scope=\"row\">").count(), diff.cells.len());
        for word in words {
            assert!(page.contains(word), "`{word}` is not in the page");
        }
        let missing = diff.only_before.len() + diff.only_after.len();
        assert_eq!(page.matches("<li>").count(), missing);
        assert!(page.contains("id=\"raidlab-diff\"") && !page.contains("src="));
    }
    let residuals = of(&before, &measured);
    let page = html_with_residuals(&measured, &residuals).expect("a page");
    assert!(page.contains("<table class=\"overview") && page.contains("<table class=\"diff\""));
    assert!(page.contains("id=\"raidlab-results\"") && page.contains("Modelled beside measured"));
}
