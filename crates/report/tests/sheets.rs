//! What stands in the cells of the spreadsheet, without a program that computes it: formulas over the rounds of their
//! own line, ranks counted by hand, and the baseline that a line is compared with.

use std::collections::BTreeMap;
use std::io::{Cursor, Read};

use crate::common::{self, Shared, cell};
use raidlab_report::{Exporter, Ods};
use raidlab_results::Results;
use raidlab_results::document::{Better, Cell};

/// The cells of each sheet: texts and numbers as they are, formulas as they are.
fn sheets(documents: &[Results]) -> BTreeMap<String, Vec<Vec<String>>> {
    let bytes = Ods.write(documents).expect("a spreadsheet");
    let mut archive = zip::ZipArchive::new(Cursor::new(bytes)).expect("an archive");
    let mut content = String::new();
    archive.by_name("content.xml").expect("sheets").read_to_string(&mut content).expect("text");
    let between = |text: &str, from: &str, to: &str| {
        let start = text.find(from)? + from.len();
        Some(text[start..start + text[start..].find(to)?].to_owned())
    };
    let plain = |text: String| {
        let text = text.replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", "\"");
        text.replace("&amp;", "&")
    };
    let value = |cell: &str| {
        let formula = between(cell, "table:formula=\"", "\"").map(plain);
        let number = || between(cell, "office:value=\"", "\"");
        let text = || between(cell, "<text:p>", "</text:p>").map(plain);
        formula.or_else(number).or_else(text).unwrap_or_default()
    };
    let tables = content.split("<table:table table:name=\"").skip(1);
    let rows = |table: &str| {
        let rows = table.split("<table:table-row>").skip(1);
        rows.map(|row| row.split("<table:table-cell").skip(1).map(value).collect()).collect()
    };
    tables
        .map(|table| (table[..table.find('"').expect("a name")].to_owned(), rows(table)))
        .collect()
}

const SHARED: Shared<'static> = Shared {
    workload: "dd-write",
    processes: 1,
    state: "healthy",
    unit: "MiB/s",
    better: Better::Higher,
};

/// A document of three layouts with these rounds, the first of them the baseline.
fn document(rounds: [&[f64]; 3]) -> Results {
    let mut results = common::empty();
    results.workloads = common::small().workloads[..1].to_vec();
    let names = ["single", "raid0(4)", "raid5(4)"];
    let mut cells: Vec<Cell> =
        names.iter().map(|name| cell(&SHARED, name, 100.0, 1.0, 6)).collect();
    for (cell, samples) in cells.iter_mut().zip(rounds) {
        cell.samples = samples.to_vec();
        cell.ci95 = None;
    }
    common::compare(&mut cells, "single");
    results.cells = cells;
    results
}

const SIX: &[f64] = &[3.0, 1.0, 2.0, 2.0, 5.0, 2.0];

/// Seven columns say which line it is; so rounds stand from H on in the sheet of rounds, and medians in I.
#[test]
fn figures_are_computed_from_the_rounds_of_their_own_line() {
    let results = document([SIX, &[10.0, 20.0, 30.0], &[4.0, 4.0, 4.0, 4.0, 4.0, 4.5]]);
    let sheets = sheets(&[results]);
    let (raw, shown) = (&sheets["Raw"], &sheets["Results"]);
    assert_eq!(
        raw[0],
        [
            "study",
            "workload",
            "layout",
            "processes",
            "state",
            "settings",
            "unit",
            "round 1",
            "round 2",
            "round 3",
            "round 4",
            "round 5",
            "round 6"
        ]
    );
    let heads = ["rounds", "median", "mean", "smallest", "largest", "spread %", "median from"];
    assert_eq!(shown[0][7..14], heads);
    assert_eq!(shown[0][14..], ["median to", "% against baseline", "verdict"]);
    let lines = [("single", 'M', 6), ("raid0(4)", 'J', 3), ("raid5(4)", 'M', 6)];
    for (at, (layout, last, rounds)) in lines.into_iter().enumerate() {
        let number = at + 2;
        let (raw, shown) = (&raw[at + 1], &shown[at + 1]);
        assert_eq!((&raw[..7], raw.len()), (&shown[..7], 7 + rounds), "{layout}");
        assert_eq!(shown[1..4], ["dd-write", layout, "1"]);
        assert_eq!((shown[4].as_str(), shown[6].as_str()), ("healthy", "mib_per_s, MiB/s"));
        let own = format!("[$Raw.H{number}:.{last}{number}]");
        let of = |function: &str| format!("of:={function}({own})");
        let spread = format!("of:=(MAX({own})-MIN({own}))/AVERAGE({own})*100");
        let figures = ["COUNT", "MEDIAN", "AVERAGE", "MIN", "MAX"].map(of);
        assert_eq!(shown[7..12], figures, "{layout}");
        assert_eq!(shown[12], spread);
        assert_eq!(shown[13..15], ["", ""], "no interval is known");
    }
    assert_eq!(raw[1][7..], ["3", "1", "2", "2", "5", "2"]);
    assert_eq!(raw[2][7..], ["10", "20", "30"]);
}

/// An end is a round by its rank: 1, 2, 2, 2, 3, 5. Of equal ones the low end is the first and the high end the last.
#[test]
fn ends_of_intervals_are_ranks_of_rounds() {
    for (ends, ranks) in [
        ([1.0, 5.0], [Some(1), Some(6)]),
        ([2.0, 3.0], [Some(2), Some(5)]),
        ([1.0, 2.0], [Some(1), Some(4)]),
        ([3.0, 3.0], [Some(5), Some(5)]),
        // What is no round cannot be told by a rank.
        ([1.5, 4.0], [None, None]),
    ] {
        let mut results = document([SIX, SIX, SIX]);
        results.cells[1].ci95 = Some(ends);
        let told = &sheets(&[results])["Results"][2][13..15];
        let formula = |rank: Option<u32>| {
            rank.map_or(String::new(), |rank| format!("of:=SMALL([$Raw.H3:.M3];{rank})"))
        };
        assert_eq!(told, ranks.map(formula), "{ends:?}");
    }
}

/// The formula of a percentage over the rounds that both have, of a line to what it stands against.
fn against(own: &str, base: &str) -> String {
    let log = format!("LN({own}/{base})");
    format!(
        "of:=(EXP(MEDIAN(IF(COLUMN({own})>=TRANSPOSE(COLUMN({own}));({log}+TRANSPOSE({log}))/2;\"\")))-1)*100"
    )
}

#[test]
fn percentages_are_of_the_rounds_that_both_have() {
    let results = document([SIX, &[10.0, 20.0, 30.0], SIX]);
    let shown = &sheets(&[results])["Results"];
    assert_eq!(shown[2][15], against("[$Raw.H3:.J3]", "[$Raw.H2:.J2]"), "three rounds");
    assert_eq!(shown[3][15], against("[$Raw.H4:.M4]", "[$Raw.H2:.M2]"));
    assert_eq!(shown[1][15], against("[$Raw.H2:.M2]", "[$Raw.H2:.M2]"), "0 %, computed");
    // Of nothing there is no ratio.
    let nothing = document([SIX, &[0.0, 1.0, 1.0], SIX]);
    let shown = &sheets(&[nothing])["Results"];
    assert_eq!((shown[2][15].as_str(), shown[3][15].is_empty()), ("", false));
    let mut unknown = document([SIX, SIX, SIX]);
    unknown.cells[2].percent_vs_baseline = None;
    assert_eq!(sheets(&[unknown])["Results"][3][15], "", "the document tells none");
}

/// Layouts of a baseline of several stand beside the mean of their medians, the others beside the mean of each round.
#[test]
fn a_baseline_of_several_is_their_mean() {
    let mut results = document([SIX, SIX, SIX]);
    results.baseline.push("raid0(4)".to_owned());
    let shown = &sheets(&[results.clone()])["Results"];
    assert_eq!(shown[1][15], "of:=([.I2]/AVERAGE([.I2];[.I3])-1)*100");
    assert_eq!(shown[2][15], "of:=([.I3]/AVERAGE([.I2];[.I3])-1)*100");
    let base = "(([$Raw.H2:.M2]+[$Raw.H3:.M3])/2)";
    assert_eq!(shown[3][15], against("[$Raw.H4:.M4]", base));
    // Where one of them was not measured there is no baseline.
    results.cells.remove(1);
    assert_eq!(sheets(&[results])["Results"][2][15], "");
}

/// A baseline is that of the same document, workload, processes, state and settings.
#[test]
fn a_line_is_compared_with_its_own_row_alone() {
    let mut results = document([SIX, SIX, SIX]);
    results.workloads = common::small().workloads;
    let change: [fn(&mut Cell); 4] = [
        |cell| cell.processes = 4,
        |cell| cell.state = "degraded".to_owned(),
        |cell| cell.workload = "random-read".to_owned(),
        |cell| drop(cell.settings.insert("bs".to_owned(), "4KiB".to_owned())),
    ];
    let first = results.cells.clone();
    for change in change {
        let mut more = first.clone();
        more.iter_mut().for_each(change);
        results.cells.extend(more);
    }
    let sheets = sheets(&[results.clone(), results]);
    let shown = &sheets["Results"];
    assert_eq!(shown.len(), 1 + 30);
    let mut base = BTreeMap::new();
    for (number, line) in (2..).zip(&shown[1..]) {
        let row = (number >= 17, line[1].clone(), line[3..6].to_vec());
        let single = match line[2].as_str() {
            "single" => *base.entry(row).or_insert(number),
            _ => base[&row],
        };
        let ranges = [number, single].map(|at| format!("[$Raw.H{at}:.M{at}]"));
        assert_eq!(line[15], against(&ranges[0], &ranges[1]), "line {number}");
    }
    assert!(shown.iter().any(|line| line[5] == "bs=4KiB"));
}

/// The mean over the lines of a layout, each by its place on the sheet of results.
#[test]
fn means_are_over_the_lines_of_a_layout() {
    let mut results = document([SIX, SIX, SIX]);
    let mut more = results.cells.clone();
    more.iter_mut().for_each(|cell| cell.processes = 4);
    more[2].percent_vs_baseline = None;
    results.cells.extend(more);
    let sheets = sheets(&[results]);
    let shown = &sheets["Results"];
    let lines = |layout: &str| -> Vec<usize> {
        let of = |line: &Vec<String>| line[2] == layout && !line[15].is_empty();
        (1..).zip(shown).filter(|(_, line)| of(line)).map(|(number, _)| number).collect()
    };
    assert_eq!((lines("raid0(4)").len(), lines("raid5(4)").len()), (2, 1));
    let means = &sheets["Means"];
    let told = |layout: &str| means.iter().find(|line| line[2] == layout).expect("told").clone();
    for layout in ["single", "raid0(4)", "raid5(4)"] {
        let places: Vec<String> =
            lines(layout).iter().map(|number| format!("[$Results.P{number}]")).collect();
        let mean = format!("of:=AVERAGE({})", places.join(";"));
        assert_eq!(told(layout)[3..], [places.len().to_string(), mean], "{layout}");
    }
    assert!(means.iter().all(|line| line[2] != "raid1(2)"), "nothing was measured of it");
}
