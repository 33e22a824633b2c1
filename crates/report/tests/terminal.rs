//! The terminal report against expected texts, and what those do not show.

use crate::common;
use raidlab_report::{Exporter, Html, Markdown, Terminal};
use raidlab_results::{Better, Cell, Results, TooShort, Verdict};

const TERMINAL: Terminal = Terminal { width: Some(120), colour: false, unicode: true };

/// Columns of a line of these documents, none of which has wide characters.
fn columns(line: &str) -> usize {
    line.chars().count()
}

#[test]
fn expected_texts() {
    for (name, terminal, results) in common::golden_cases() {
        let path = format!("{}/tests/golden/{name}", env!("CARGO_MANIFEST_DIR"));
        let expected = std::fs::read_to_string(&path).expect("an expected text");
        let found = terminal.export(&results).expect("a report");
        for (number, (expected, found)) in expected.lines().zip(found.lines()).enumerate() {
            assert_eq!(found, expected, "{name}:{}; see examples/golden.rs", number + 1);
        }
        assert_eq!(found.lines().count(), expected.lines().count(), "{name}");
    }
}

/// Only the table, which says above and below it that it is not the last word.
#[test]
fn a_provisional_table_gives_no_verdict() {
    let mut results = common::small();
    for cell in &mut results.cells {
        cell.samples.truncate(1);
    }
    let text = TERMINAL.provisional(&results).expect("a table");
    assert!(
        text.starts_with(&format!("Provisional, after 1 round: {}\n", results.study)),
        "{text}"
    );
    assert!(text.trim_end().ends_with("More rounds follow."), "{text}");
    let table = |text: &str| {
        text.lines()
            .skip_while(|line| !line.contains("usable"))
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    let (whole, alone) = (TERMINAL.export(&results).expect("a report"), table(&text));
    assert_eq!(table(&whole)[..alone.len() - 3], alone[..alone.len() - 3]);
    for other in ["Conclusions", "warning:", "advice:", "survives  lost", "~"] {
        assert!(!text.contains(other), "{other}: {text}");
    }
}

#[test]
fn no_line_is_wider_than_the_terminal() {
    for results in [common::small(), common::full(), common::real()] {
        for width in [60, 72, 80, 100, 120, 140, 200] {
            let terminal = Terminal { width: Some(width), ..TERMINAL };
            for line in terminal.export(&results).expect("a report").lines() {
                assert!(columns(line) <= usize::from(width), "{width}: {line}");
                assert_eq!(line, line.trim_end());
            }
        }
    }
}

/// Many layouts, as sweeps have them, some with long names.
fn many() -> Results {
    let mut results = common::full();
    for number in 0..30 {
        let name = format!("raid6(8) chunk={}K", 4 << (number % 10));
        let name = if number < 10 { name } else { format!("{name} n{number}") };
        let mut layout = results.layouts[4].clone();
        let of = layout.name.clone();
        layout.name.clone_from(&name);
        results.layouts.push(layout);
        let more: Vec<Cell> =
            results.cells.iter().filter(|cell| cell.layout == of).cloned().collect();
        results.cells.extend(more.into_iter().map(|cell| Cell { layout: name.clone(), ..cell }));
    }
    results
}

/// Where layouts do not fit beside each other the table is turned: a line for each, all rows of a workload beside it.
#[test]
fn a_narrow_terminal_turns_the_table() {
    let results = many();
    let export =
        |width| Terminal { width: Some(width), ..TERMINAL }.export(&results).expect("a report");
    for width in [50, 60, 80, 132] {
        for line in export(width).lines() {
            assert!(columns(line) <= usize::from(width), "{width}: {line}");
        }
    }
    let text = export(80);
    let table: Vec<&str> = text.lines().skip_while(|line| !line.starts_with("dd-write")).collect();
    assert!(table[1].contains("1 process") && table[1].contains("4 processes"), "{}", table[1]);
    assert!(
        table[2].starts_with("  single ") || table[2].trim_start().starts_with("1 to"),
        "{text}"
    );
    let lines = text.lines().take_while(|line| !line.starts_with("Conclusions")).count();
    assert!(lines < 400, "{lines} lines for 4 workloads of 36 layouts");
    // Every layout has its medians in the line of its name.
    let line = table.iter().find(|line| line.starts_with("  raid0(4) ")).expect("a line");
    for processes in [1, 2, 4] {
        let cell = results.cells.iter().find(|cell| {
            cell.layout == "raid0(4)" && cell.workload == "dd-write" && cell.processes == processes
        });
        let number = raidlab_report::number::number(cell.expect("a cell").median);
        assert!(line.contains(&number), "{number}: {line}");
    }
}

/// Small bars say how a layout goes with more processes, where it goes anywhere, and not in ASCII.
#[test]
fn bars_over_processes_where_they_say_something() {
    let results = common::full();
    for width in [None, Some(120), Some(80)] {
        let text = Terminal { width, ..TERMINAL }.export(&results).expect("a report");
        assert!(text.contains("1 to 4") && text.contains("as shares of the largest"), "{text}");
        let plain =
            Terminal { width, unicode: false, ..TERMINAL }.export(&results).expect("a report");
        assert!(!plain.contains("1 to 4"), "{plain}");
    }
    let mut flat = results;
    for cell in &mut flat.cells {
        cell.median = 100.0;
    }
    let text = TERMINAL.export(&flat).expect("a report");
    assert!(!text.contains("1 to 4"), "{text}");
}

/// Two groups of rounds are seen as such.
#[test]
fn rounds_that_vary_are_drawn() {
    let mut results = common::small();
    let cell = &mut results.cells[2];
    cell.samples = vec![760.0, 380.0, 760.0, 380.0, 760.0, 380.0, 760.0, 760.0, 760.0];
    let text = TERMINAL.export(&results).expect("a report");
    assert!(text.contains("  █▅█▅█▅███  raid0(4) dd-write with 1 process: ±25 %"), "{text}");
    assert!(!TERMINAL.export(&common::empty()).expect("a report").contains("Rounds that vary"));
}

#[test]
fn every_form_of_the_table_shows_every_median() {
    let results = common::full();
    let count = |text: &str, number: &str| {
        let parts = text.split(|char: char| !(char.is_ascii_digit() || char == '.'));
        parts.filter(|part| *part == number).count()
    };
    for width in [None, Some(120), Some(80), Some(50)] {
        let text = Terminal { width, ..TERMINAL }.export(&results).expect("a report");
        for cell in &results.cells {
            if cell.median < 999.5 {
                let number = raidlab_report::number::number(cell.median);
                assert!(count(&text, &number) > 0, "{width:?}: no {number}");
            }
        }
    }
}

#[test]
fn ascii_without_unicode_and_no_escape_without_colour() {
    let mut results = common::real();
    results.study = "größer\u{1b}[31m".to_owned();
    let plain = Terminal { unicode: false, ..TERMINAL };
    let text = plain.export(&results).expect("a report");
    assert!(text.bytes().all(|byte| byte == b'\n' || (b' '..=b'~').contains(&byte)), "{text}");
    let coloured = Terminal { colour: true, ..TERMINAL }.export(&results).expect("a report");
    assert!(coloured.contains("\u{1b}[1m"));
    assert!(!coloured.contains("\u{1b}[31m\n"), "the title's own escape sequence came through");
}

#[test]
fn advice_on_weak_measurements() {
    let export = |results: &_| {
        let text = Terminal { width: None, ..TERMINAL }.export(results).expect("a report");
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let advice = |text: &str| text.matches("advice: ").count();

    let mut results = common::small();
    results.cells.retain(|cell| cell.workload == "dd-write");
    assert_eq!(advice(&export(&results)), 0, "{}", export(&results));

    results.cells[0].samples[0] *= 0.5;
    results.cells[0].outlier_rounds = vec![1];
    let text = export(&results);
    assert!(text.contains("(round 1)"), "{text}");
    assert!(text.contains("vari"), "half of the median away is a wide range, too: {text}");

    let mut results = common::small();
    results.cells.retain(|cell| cell.layout != "single" || cell.processes == 1);
    assert!(export(&results).contains("2 rows have no complete baseline"), "{}", export(&results));

    let mut results = common::small();
    results.cells[3].percent_vs_baseline = Some(-4.0);
    results.cells[3].verdict = Some(Verdict::NotResolved);
    results.cells[3].more_rounds = Some(5);
    let text = export(&results);
    assert!(
        text.contains("1 cell differs from single by 2 % or more, but that is not resolved"),
        "{text}"
    );
    let rounds = results.cells[3].samples.len() + 5;
    assert!(text.contains(&format!("--rounds {rounds} would likely resolve it")), "{text}");
    results.cells[2].percent_vs_baseline = Some(-3.0);
    (results.cells[2].verdict, results.cells[2].more_rounds) =
        (Some(Verdict::NotResolved), Some(7));
    let text = export(&results);
    assert!(text.contains("2 cells differ from single by 2 % or more"), "{text}");
    assert!(text.contains(&format!("--rounds {} would likely resolve them", rounds + 2)), "{text}");
    // Of one of them no number is known, or none that anybody runs.
    for more in [None, Some(1_000_000)] {
        results.cells[2].more_rounds = more;
        let text = export(&results);
        assert!(
            text.contains(&format!("--rounds {rounds} would likely resolve 1 of them")),
            "{text}"
        );
    }
    results.cells[3].more_rounds = None;
    assert!(export(&results).contains("no reasonable number of rounds would resolve them"));
}

/// How far rebuild times vary of which nobody knows what they are says nothing: no advice is about them.
#[test]
fn no_advice_is_about_times_that_are_unknown() {
    let told = |seen: f64| {
        let mut results = common::small();
        let mut cell = results.cells[0].clone();
        (cell.state, cell.metric) = ("rebuilding".to_owned(), "rebuild_estimate_s".to_owned());
        cell.note = Some("estimated from 50.00 % of the rebuild".to_owned());
        (cell.last_done_s, cell.samples[0], cell.outlier_rounds) = (seen, 900.0, vec![1]);
        results.cells.push(cell);
        let text = Terminal { width: None, ..TERMINAL }.export(&results).expect("a report");
        let advice = text.split("Conclusions").next().expect("a part").split("advice: ").skip(1);
        (text.contains("unknown"), advice.filter(|one| one.contains("rebuilding")).count())
    };
    // Of a cell that vary by more than a tenth, and of one with a round far apart.
    assert_eq!(told(3.1), (false, 2));
    assert_eq!(told(2.9), (true, 0));
}

#[test]
fn a_document_without_cells_says_so() {
    let text = TERMINAL.export(&common::empty()).expect("a report");
    assert!(text.contains("No cell was measured."), "{text}");
}

#[test]
fn the_baseline_may_win_and_one_layout_may_be_alone() {
    let mut results = common::small();
    results.cells.retain(|cell| cell.workload == "dd-write" && cell.processes == 4);
    results.cells.retain(|cell| cell.median < 89.0);
    common::compare(&mut results.cells, "single");
    let wide = Terminal { width: Some(200), ..TERMINAL };
    let text = wide.export(&results).expect("a report");
    let expected = "single and linear(4) are as good as the best with 4 processes, within 1.0 %";
    assert!(text.contains(expected), "{text}");

    results.cells.retain(|cell| cell.layout != "linear(4)");
    common::compare(&mut results.cells, "single");
    let text = wide.export(&results).expect("a report");
    let expected = "single, the baseline, wins with 4 processes: next is raid1(2), -7.1 % \
                    (88.2 MiB/s, between 88.0 and 88.5 with 96 % confidence, 9 rounds); busiest: member 0, 98 %.";
    assert!(text.contains(expected), "{text}");

    results.cells.truncate(1);
    let text = wide.export(&results).expect("a report");
    assert!(text.contains("Only single was measured with 4 processes: 88.2 MiB/s"), "{text}");
}

/// The best of those that the baseline beats, wherever it stands and whichever way is better.
#[test]
fn next_to_a_baseline_that_wins_is_the_best_of_the_others() {
    let others = ["linear(4)", "raid0(4)", "raid1(2)"];
    for (better, unit, nearest) in [(Better::Higher, "MiB/s", 90.0), (Better::Lower, "s", 110.0)] {
        let orders = [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]];
        for (order, baseline) in orders.iter().flat_map(|order| (0..4).map(move |at| (order, at))) {
            let mut results = common::small();
            let shared = common::Shared {
                workload: "dd-write",
                processes: 1,
                state: "healthy",
                unit,
                better,
            };
            let median = |place: usize| nearest + (nearest - 100.0) * 3.0 * place as f64;
            let of_others = others.iter().zip(order).map(|(name, place)| (*name, median(*place)));
            let cells = [("single", 100.0)].into_iter().chain(of_others);
            results.cells = cells.map(|(name, m)| common::cell(&shared, name, m, 0.2, 9)).collect();
            let single = results.layouts.remove(0);
            results.layouts.insert(baseline, single);
            common::compare(&mut results.cells, "single");
            let text = Terminal { width: None, ..TERMINAL }.export(&results).expect("a report");
            let next = others[order.iter().position(|place| *place == 0).expect("is there")];
            let said = format!("single, the baseline, wins with 1 process: next is {next}, ");
            assert!(text.contains(&said), "{said}: {text}");
        }
    }
}

#[test]
fn a_long_workload_name_stands_above_its_text() {
    let mut results = common::real();
    let name = "parallel-readers-of-one-large-file-each";
    results.workloads[0].name = name.to_owned();
    for cell in &mut results.cells {
        cell.workload = name.to_owned();
    }
    let text = Terminal { width: Some(60), ..TERMINAL }.export(&results).expect("a report");
    assert!(text.contains(&format!("\n  {name}:\n    raid0(4) chunk=64K")), "{text}");
    assert!(text.lines().all(|line| columns(line) <= 60), "{text}");
}

/// How slow does it get: beside the same layout healthy, not beside another one.
#[test]
fn states_are_shown_against_the_same_layout_healthy() {
    let mut results = common::real();
    for cell in results.cells.iter_mut().filter(|cell| cell.state == "degraded") {
        cell.median *= 1.5;
    }
    let text = Terminal { width: Some(200), ..TERMINAL }.export(&results).expect("a report");
    let row = text.lines().find(|line| line.contains("2 processes, degraded")).expect("a row");
    assert_eq!(row.matches("+50 %").count(), 3, "{text}");
    let said = "; of other states from the same layout healthy";
    assert!(text.contains(&format!("the ratios of each round{said}")), "{text}");
    // The page shows the same percentages, its tips and the table of Markdown those against the baseline, and say so.
    let legend = |results: &Results| {
        let page = Html.export(results).expect("a page").replace(['\u{a0}', '\u{202f}'], " ");
        let from = page.find("<p class=\"legend\">").expect("a legend");
        let end = from + page[from..].find("</p>").expect("its end");
        (page[from..end].to_owned(), page.matches("+50 %").count())
    };
    let (page, percents) = legend(&results);
    assert!(
        percents >= 3 && page.contains(&format!("the mean of single and linear(4){said}.")),
        "{page}"
    );
    let markdown = Markdown.export(&results).expect("a table").replace(['\u{a0}', '\u{202f}'], " ");
    let against = "(x %): against the mean of single and linear(4)";
    assert!(markdown.contains(against) && !markdown.contains("+50 %"), "{markdown}");
    results.cells.retain(|cell| cell.state == "healthy");
    assert!(!legend(&results).0.contains(said));
}

#[test]
fn rebuilds_are_told_in_hours_and_days_and_unknown_where_too_little_was_done() {
    let mut results = common::real();
    for (at, cell) in results.cells.iter_mut().enumerate() {
        cell.metric = "rebuild_estimate_s".to_owned();
        cell.settings.clear();
        cell.state = "rebuilding".to_owned();
        cell.processes = u32::from(at >= 3);
        let percent = if at == 4 { "0.04" } else { "12.50" };
        cell.note = Some(format!("estimated from {percent} % of the rebuild"));
        cell.median = 48_000.0;
        cell.samples = vec![48_000.0; 3];
        cell.last_done_s = 5.0;
    }
    results.cells[4].median = 6_134.4;
    results.cells[4].samples = vec![6_134.4; 3];
    // After ten seconds of it the array's turns are what they stay, however little that is of a large drive.
    let mut longer = results.clone();
    longer.cells[4].last_done_s = 10.0;
    let wide = Terminal { width: Some(200), ..TERMINAL };
    assert!(!wide.export(&longer).expect("a report").contains("unknown"));
    // Before md's pace is what it stays nothing is, however much that is of a small one.
    longer.cells[3].last_done_s = 2.9;
    assert!(wide.export(&longer).expect("a report").contains("unknown"));
    let text = wide.export(&results).expect("a report");
    let row = |label: &str| text.lines().find(|line| line.contains(label)).expect("a row");
    let said = "Not known of linear(4) with 1 process, rebuilding: less than 1 % of the rebuild was done beside the \
                load, in less than 10 s, or the load went on for less than 3 s; single takes about \
                13 h 20 min and raid0(4) chunk=64K policy=md-2.6 takes about 13 h 20 min.";
    let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words(&text).contains(said), "{text}");
    let documents =
        [&Markdown as &dyn Exporter, &Html].map(|one| one.export(&results).expect("a report"));
    for text in documents.iter().chain([&text]) {
        let text = text.replace(['\u{a0}', '\u{202f}'], " ");
        assert!(text.contains("13 h 20 min") && text.contains("unknown"), "{text}");
        for seconds in ["48 000", "6 134"] {
            assert!(!text.contains(seconds), "{seconds}: {text}");
        }
    }
    assert!(!text.contains("unknown*"), "what is not known is not the best: {text}");
    assert_eq!(row("no load, rebuilding").matches("13 h 20 min").count(), 3, "{text}");
    assert_eq!(row("1 process, rebuilding").matches("unknown").count(), 1, "{text}");
    assert!(
        !row("1 process, rebuilding").contains(" min*")
            && text.contains("too little to tell its time"),
        "{text}"
    );
}

/// Rebuilds that ended and rebuilds that were estimated are compared, so they stand in one row, and it is said which is
/// which.
#[test]
fn rebuilds_that_ended_and_estimated_ones_stand_in_one_row() {
    let mut results = common::small();
    let rebuild = |cell: &mut Cell| {
        (cell.better, cell.processes, cell.unit) = (Better::Lower, 1, "s".into());
        (cell.state, cell.metric) = ("rebuilding".into(), "rebuild_s".into());
        (cell.may_be_best, cell.as_good_as_best) = (false, false);
        // The best in its rounds and by its median is the one that ended.
        let factor = if cell.layout == "raid5(4)" { 0.5 } else { 1.0 };
        cell.samples = vec![14_400.0 * factor; 9];
        cell.median = 14_400.0 * factor;
        cell.percent_vs_baseline = Some((factor - 1.0) * 100.0);
        if cell.layout == "raid5(4)" {
            (cell.may_be_best, cell.as_good_as_best) = (true, true);
        } else {
            cell.metric = "rebuild_estimate_s".into();
            cell.note = Some("estimated from 50.00 % of the rebuild".into());
        }
    };
    results.cells.retain(|cell| (&*cell.workload, cell.processes) == ("dd-write", 1));
    results.cells.iter_mut().for_each(rebuild);
    let words = |text: &str| {
        text.replace(['\u{a0}', '\u{202f}'], " ").split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let text = Terminal { width: Some(200), ..TERMINAL }.export(&results).expect("a report");
    let row = words(text.lines().find(|line| line.contains("rebuilding")).expect("a row"));
    assert_eq!(
        (row.matches("about 4 h").count(), row.matches("2 h 00 min*").count()),
        (5, 1),
        "{row}"
    );
    let text = words(&text);
    let said = "dd-write, time of the whole rebuild, some estimated: raid5(4) wins with 1 process, rebuilding: \
                -50 % against single (2 h 00 min, ";
    assert!(text.contains(said), "{text}");
    assert!(text.contains("about estimated from the share of the rebuild that was done"), "{text}");
    let markdown = words(&Markdown.export(&results).expect("a table"));
    assert!(markdown.contains("about: estimated from the share of the rebuild"), "{markdown}");
    let page = words(&Html.export(&results).expect("a page"));
    assert!(page.contains("“about”: estimated from the share of the rebuild"), "{page}");
    let best = results.best("dd-write", 1, "rebuilding").expect("one");
    assert_eq!(best.layout, "raid5(4)");

    // Where the best is not in the document, no other one leads for it.
    results.cells.retain(|cell| cell.layout != "raid5(4)");
    let text = words(&TERMINAL.export(&results).expect("a report"));
    let said = "Not resolved with 1 process, rebuilding which is best of single, linear(4), raid0(4), raid1(2) and \
                raid10(4): about 4 h";
    assert!(text.contains(said) && !text.contains("too few rounds"), "{text}");
    assert!(text.contains("whole rebuild, estimated:"), "{text}");
}

/// Nothing was left to measure of a layout that survives nothing; of others something is missing.
#[test]
fn a_lost_member_leaves_nothing_without_redundancy() {
    let mut results = common::small();
    let is_bare = |name: &str| ["single", "linear(4)", "raid0(4)"].contains(&name);
    let of_row = |cell: &Cell| cell.workload == "random-read" && cell.processes == 4;
    results.cells.retain(|cell| !(of_row(cell) && is_bare(&cell.layout)));
    for cell in results.cells.iter_mut().filter(|cell| of_row(cell)) {
        cell.state = "degraded".into();
    }
    let told = |results: &Results| {
        let text = Terminal { width: None, ..TERMINAL }.export(results).expect("a report");
        let page = Html.export(results).expect("a page");
        (text, page.matches("no redundancy").count(), page.matches("not measured").count())
    };
    let (text, bare, missing) = told(&results);
    // One of small's cells was not measured before.
    assert_eq!((bare, missing), (3, 1));
    assert!(text.contains("no redundancy, or not measured"), "{text}");
    results.cells.retain(|cell| cell.state == "healthy");
    assert!(!told(&results).0.contains("no redundancy"));
}

/// A layout whose rounds were too short to tell may be the best of all: nobody is, and it is said why.
#[test]
fn a_row_with_a_layout_that_was_too_short_to_tell_has_no_best() {
    let mut results = common::small();
    let is_short = |cell: &Cell| {
        (&*cell.workload, cell.processes, &*cell.layout) == ("dd-write", 1, "raid0(4)")
    };
    let was = results.cells.iter().find(|cell| is_short(cell)).cloned().expect("is there");
    results.cells.retain(|cell| !is_short(cell));
    results.too_short = vec![TooShort {
        layout: was.layout,
        workload: was.workload,
        processes: was.processes,
        state: was.state,
        metric: was.metric,
        settings: was.settings,
        rounds: 2,
        of: 9,
    }];
    let words = |text: String| {
        text.replace(['\u{a0}', '\u{202f}'], " ").split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let text = Terminal { width: Some(200), ..TERMINAL }.export(&results).expect("a report");
    let row = text.lines().find(|line| line.starts_with(" 1 process")).expect("a row");
    assert!(!row.contains('*') && !row.contains('?') && row.contains(" - "), "{text}");
    let said = "dd-write: Not known with 1 process which is best: rounds of raid0(4) (2 of 9) were too short to tell, \
                use a larger size; single has 201 MiB/s, linear(4) has 201 MiB/s, raid1(2) has 200 MiB/s, \
                raid5(4) has 598 MiB/s and raid10(4) has 401 MiB/s.";
    let text = words(text);
    assert!(text.contains(said), "{text}");
    assert!(text.contains("- not measured, or too short to tell"), "{text}");
    let page = Html.export(&results).expect("a page");
    assert_eq!(page.matches(">too short to tell<").count(), 1);
    let markdown = words(Markdown.export(&results).expect("a table"));
    assert!(markdown.contains("-: not measured, or too short to tell"), "{markdown}");

    // No advice to measure the baseline where it was measured.
    results.too_short[0].layout = "single".into();
    results.cells.retain(|cell| (&*cell.layout, cell.processes) != ("single", 1));
    results.cells.iter_mut().for_each(|cell| cell.percent_vs_baseline = None);
    let text = words(TERMINAL.export(&results).expect("a report"));
    assert!(
        text.contains("1 row has no complete baseline and no percentages, first random-read"),
        "{text}"
    );
}

/// Whoever picks the fastest layout must have been told what it costs.
#[test]
fn a_layout_without_redundancy_does_not_win_without_a_word() {
    let warns = "one lost drive loses everything on ";
    let text = Terminal { width: None, ..TERMINAL }.export(&common::full()).expect("a report");
    assert!(text.replace('\n', " ").contains(warns), "{text}");
    let mut results = common::full();
    results.layouts.iter_mut().for_each(|layout| layout.survives = 1);
    let text = Terminal { width: None, ..TERMINAL }.export(&results).expect("a report");
    assert!(!text.contains(warns), "{text}");
}

/// Medians and pairs of rounds may disagree: who leads by its median is not said to lead by less than nothing.
#[test]
fn a_lead_that_rounds_do_not_show_is_told() {
    let mut results = common::small();
    let (workload, processes) = (results.cells[0].workload.clone(), results.cells[0].processes);
    let row = |cell: &&mut Cell| cell.workload == workload && cell.processes == processes;
    let order = |one: &&mut Cell, other: &&mut Cell| one.median.total_cmp(&other.median);
    let best = results.cells.iter_mut().filter(row).max_by(order).expect("a best");
    best.percent_vs_baseline = Some(-6.6);
    let text = Terminal { width: Some(200), colour: false, unicode: true }.export(&results);
    let text = text.expect("a report");
    let conclusion = &text[text.find("Conclusions").expect("there is one")..];
    assert!(conclusion.contains("by its median, but not round by round beside single"), "{text}");
    assert!(!conclusion.contains("-6.6"), "{conclusion}");
}
