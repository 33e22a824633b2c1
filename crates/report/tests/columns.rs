//! Tables for other programs, read back by what RFC 4180 and docs/results.md say: each column has what the JSON has
//! under the same name, whichever way is better, by whichever clock, whatever signs are in a name.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{Cursor, Read};

use crate::common::{self, Shared};
use raidlab_report::{Csv, CsvRounds, Exporter, Json, Markdown, Ods, Sheet};
use raidlab_results::document::{Better, Cell, Clock, Published, Results, Verdict};
use raidlab_results::trust::CellTrust;
use raidlab_results::{LatencyRow, MembersRow, Moved};
use serde_json::Value;

/// A name with every sign that means something to one of the forms.
const ODD: &str = "a,\"b\"\rc|d_e`f[g]h#i~j\\k<l>m&n";

/// A field may stand between quotation marks, where a doubled one is one; lines end in CR and LF.
fn fields(text: &str) -> Vec<Vec<String>> {
    let (mut rows, mut row, mut field, mut quoted) = (Vec::new(), Vec::new(), String::new(), false);
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            '"' if quoted && letters.peek() == Some(&'"') => field.extend(letters.next()),
            '"' => quoted = !quoted,
            ',' if !quoted => row.push(std::mem::take(&mut field)),
            '\r' if !quoted => {
                assert_eq!(letters.next(), Some('\n'), "the end of a line");
                row.push(std::mem::take(&mut field));
                rows.push(std::mem::take(&mut row));
            }
            other => field.push(other),
        }
    }
    assert!(row.is_empty() && field.is_empty(), "whole lines");
    rows
}

/// Each sign that RFC 4180 wants between quotation marks, alone and in every place of a field.
#[test]
fn each_field_is_read_back_as_it_was() {
    let mut sheet = Sheet::new(["first", "second"]);
    for sign in [",", "\"", "\r", "\n", "\r\n", "\"\"", ";", "'", "\t", " "] {
        for text in [sign.to_owned(), format!("{sign}a"), format!("a{sign}b"), format!("b{sign}")] {
            sheet.rows.push(vec![text.clone(), "plain".to_owned()]);
            sheet.rows.push(vec![String::new(), text]);
        }
    }
    assert_eq!(fields(&sheet.csv())[1..], sheet.rows);
}

/// Rows by the names of their columns.
fn named(text: &str) -> Vec<BTreeMap<String, String>> {
    let rows = fields(text);
    let unique: BTreeSet<&String> = rows[0].iter().collect();
    assert_eq!(unique.len(), rows[0].len(), "no column twice");
    let row = |row: &Vec<String>| {
        assert_eq!(row.len(), rows[0].len());
        rows[0].iter().cloned().zip(row.iter().cloned()).collect()
    };
    rows[1..].iter().map(row).collect()
}

/// The columns that a key of a cell has, with what stands in them; none of lists that tables leave out.
fn columns(key: &str, value: &Value) -> Vec<(String, Value)> {
    let ends = |name: &str| {
        ["low", "high"]
            .iter()
            .enumerate()
            .map(|(at, end)| (format!("{name}_{end}"), value[at].clone()))
            .collect()
    };
    let each = |name: &dyn Fn(&str) -> String| -> Vec<(String, Value)> {
        let all = value.as_object().into_iter().flatten();
        all.map(|(key, value)| (name(key), value.clone())).collect()
    };
    match key {
        "samples" => vec![("rounds".to_owned(), value.as_array().map_or(0, Vec::len).into())],
        "ci95" | "percent_interval" => ends(key),
        "outlier_rounds" => {
            let rounds: Vec<String> =
                value.as_array().into_iter().flatten().map(Value::to_string).collect();
            vec![(key.to_owned(), rounds.join(" ").into())]
        }
        "settings" => each(&|key| format!("setting {key}")),
        "bottleneck" => each(&|key| format!("bottleneck_{key}")),
        "latency_ms" => each(&|key| format!("latency_{key}_ms")),
        "moved" => each(&|key| format!("moved_{key}")),
        "published" => each(&|key| match key {
            "value" => "published".to_owned(),
            other => format!("published_{other}"),
        }),
        "members" => each(&|key| match key {
            "write_amplification" => key.to_owned(),
            other => format!("members_{other}"),
        }),
        "trust" => {
            let mut all = each(&|key| match key {
                "not_checked" => key.to_owned(),
                other => format!("trust_{other}"),
            });
            all.retain(|(name, _)| name != "trust_interval90");
            let interval = &value["interval90"];
            let ends = ["low", "high"].iter().enumerate();
            all.extend(
                ends.map(|(at, end)| (format!("trust_interval90_{end}"), interval[at].clone())),
            );
            all
        }
        "done_s" | "latency_curve_ms" | "busy" | "timeline" => Vec::new(),
        other => vec![(other.to_owned(), value.clone())],
    }
}

fn is_told(found: &str, value: &Value) -> bool {
    match value {
        Value::Null => found.is_empty(),
        Value::String(text) => found == text,
        Value::Number(number) => found.parse::<f64>().ok() == number.as_f64(),
        Value::Bool(is) => found.parse().ok() == Some(*is),
        Value::Array(_) | Value::Object(_) => false,
    }
}

/// A document of cells no two of whose figures are alike; every verdict, both directions.
fn distinct(clock: Clock) -> Results {
    let mut results = common::small();
    results.clock = clock;
    results.seed = u64::MAX - 1;
    results.warnings = vec!["the first, of two".to_owned(), "the second".to_owned()];
    let old = std::mem::replace(&mut results.layouts[2].name, ODD.to_owned());
    results
        .cells
        .iter_mut()
        .filter(|cell| cell.layout == old)
        .for_each(|cell| cell.layout = ODD.to_owned());
    let verdicts = [
        None,
        Some(Verdict::Faster),
        Some(Verdict::Slower),
        Some(Verdict::Equal),
        Some(Verdict::NotResolved),
    ];
    for (at, cell) in results.cells.iter_mut().enumerate() {
        let mut next = at as f64 + 0.125;
        let mut number = || {
            next += 1_000.0;
            next
        };
        cell.better = if at % 2 == 0 { Better::Higher } else { Better::Lower };
        cell.verdict = verdicts[at % verdicts.len()];
        cell.percent_interval = Some([-number(), number()]);
        cell.floor_percent = Some(number());
        (cell.spread_percent, cell.dependence) = (Some(number()), Some(-number()));
        (cell.may_be_best, cell.as_good_as_best, cell.detail) =
            (at % 3 == 0, at % 4 == 0, at % 7 == 6);
        cell.unsettled = at % 5 == 4;
        cell.more_rounds = Some(at as u32 + 1);
        cell.outlier_rounds = vec![2, at as u32 % 9 + 1];
        (cell.process_cpu_s, cell.system_cpu_s) = (Some(number()), Some(number()));
        (cell.first_done_s, cell.last_done_s) = (number(), number());
        cell.fairness = Some(number());
        cell.latency_ms =
            Some(LatencyRow { p50: number(), p99: number(), p999: number(), max: number() });
        cell.members = Some(MembersRow {
            reads: number(),
            writes: number(),
            bytes_read: number(),
            bytes_written: number(),
            write_amplification: Some(number()),
        });
        cell.moved = Some(Moved { full: number(), percent: number() });
        cell.published =
            Some(Published { value: number(), error_percent: number(), calibrated: at % 2 == 1 });
        cell.trust = Some(match at % 3 {
            0 => CellTrust { not_checked: Some("so, it is".into()), ..CellTrust::default() },
            _ => CellTrust {
                not_checked: None,
                group: Some("raw arrays, writing".into()),
                cells: Some(at + 10),
                interval90: Some([number(), number()]),
                sign_of_100: Some(at as u32 + 50),
                floor_percent: Some(at as u32 + 20),
            },
        });
        cell.note = Some(format!("note {at}, \"odd\""));
        cell.settings.insert("block, size".into(), format!("{at}KiB"));
    }
    results
}

#[test]
fn every_column_has_what_the_document_has_under_its_name() {
    for clock in [Clock::Virtual, Clock::Real] {
        let results = distinct(clock);
        let json = Json.export(&results).expect("a document");
        let document: Value = serde_json::from_str(&json).expect("JSON");
        let cells = document["cells"].as_array().expect("cells");
        let rows = named(&Csv.export(&results).expect("a table"));
        assert_eq!(rows.len(), cells.len());
        let mut rounds = named(&CsvRounds.export(&results).expect("a table")).into_iter();
        for (row, cell) in rows.iter().zip(cells) {
            let mut seen = BTreeSet::from(["too_short".to_owned()]);
            if cell.get("detail").is_none() {
                assert_eq!(row["detail"], "false", "absent where it is not one");
                seen.insert("detail".to_owned());
            }
            if !cell.as_object().expect("an object").contains_key("unsettled") {
                assert_eq!(row["unsettled"], "false");
                seen.insert("unsettled".to_owned());
            }
            let of_study = ["study", "raidlab", "seed", "clock"];
            let head = of_study.iter().map(|key| ((*key).to_owned(), document[*key].clone()));
            let all = cell.as_object().expect("an object").iter();
            for (name, value) in
                head.clone().chain(all.flat_map(|(key, value)| columns(key, value)))
            {
                let found = row.get(&name).unwrap_or_else(|| panic!("no column `{name}`"));
                assert!(is_told(found, &value), "{name}: {found}, not {value}");
                seen.insert(name);
            }
            let others = row.iter().filter(|(name, _)| !seen.contains(*name));
            let others: Vec<(&String, &String)> =
                others.filter(|(_, value)| !value.is_empty()).collect();
            assert_eq!(others, [], "nothing that the document has not");
            for (number, sample) in cell["samples"].as_array().expect("a list").iter().enumerate() {
                let row = rounds.next().expect("a row for each round");
                let same = ["layout", "workload", "processes", "state", "metric", "unit", "better"];
                for (name, value) in
                    head.clone().chain(same.map(|key| (key.to_owned(), cell[key].clone())))
                {
                    assert!(is_told(&row[&name], &value), "{name}: {}, not {value}", row[&name]);
                }
                let outliers = cell["outlier_rounds"].as_array().expect("some");
                let is_outlier = outliers.contains(&(number + 1).into());
                assert!(
                    is_told(&row["round"], &(number + 1).into()) && is_told(&row["value"], sample)
                );
                assert!(is_told(&row["outlier"], &is_outlier.into()), "{number} of {outliers:?}");
            }
        }
        assert_eq!(rounds.next(), None);
    }
}

/// One row: the baseline, a layout that is faster, slower, equal, not resolved, and one without a cell.
fn verdicts() -> Results {
    let mut results = common::small();
    let shared = Shared {
        workload: "dd-write",
        processes: 4,
        state: "healthy",
        unit: "MiB/s",
        better: Better::Higher,
    };
    let names = ["single", "linear(4)", "raid0(4)", "raid1(2)", "raid5(4)"];
    let medians = [200.0, 200.5, 400.0, 100.0, 210.0];
    let mut cells: Vec<Cell> = names
        .iter()
        .zip(medians)
        .map(|(name, median)| common::cell(&shared, name, median, 0.1, 9))
        .collect();
    common::compare(&mut cells, "single");
    cells[4].verdict = Some(Verdict::NotResolved);
    results.cells = cells;
    results
}

fn plain(text: &str) -> String {
    text.replace(['\u{a0}', '\u{202f}'], " ")
}

/// Signs say which way each differs, bold which is the best; the legend tells what they mean, and no sign that is not
/// there.
#[test]
fn markdown_marks_each_layout_by_its_verdict() {
    let text = plain(&Markdown.export(&verdicts()).expect("a table"));
    for row in [
        "| single | 200 |",
        "| linear(4) | 200 (+0.2 % =) |",
        "| raid0(4) | **400** (+100 % ▲) |",
        "| raid1(2) | 100.0 (-50 % ▼) |",
        "| raid5(4) | 210 (+5.0 % ≈) |",
    ] {
        let row = row.replace("100.0 (", "100 (");
        assert!(text.contains(&row), "{row}: {text}");
    }
    assert!(!text.contains("raid10(4)"), "it has no cell");
    for meaning in ["▲ faster", "▼ slower", "= equal within the noise floor", "≈ not resolved"]
    {
        assert!(text.contains(meaning), "{meaning}");
    }
    let mut lower = verdicts();
    for cell in &mut lower.cells {
        cell.better = Better::Lower;
    }
    lower.cells.retain(|cell| ["single", "raid0(4)"].contains(&&*cell.layout));
    common::compare(&mut lower.cells, "single");
    let text = plain(&Markdown.export(&lower).expect("a table"));
    assert!(text.contains("| raid0(4) | 400 (+100 % ▼) |") && text.contains("**200**"), "{text}");
    assert!(text.contains("▼ slower") && !text.contains("▲"), "{text}");
}

/// Everything that must be known, and what is fitted; no name means anything to Markdown.
#[test]
fn markdown_tells_all_warnings_and_no_name_is_markup() {
    let text = plain(&Markdown.export(&distinct(Clock::Real)).expect("tables"));
    assert!(
        text.contains("> Warning: the first, of two\n") && text.contains("> Warning: the second\n")
    );
    let odd = "a,\"b\" c\\|d\\_e\\`f\\[g\\]h\\#i\\~j\\\\k&lt;l>m&amp;n";
    assert!(text.contains(&format!("| {odd} |")), "{text}");
    let mut results = verdicts();
    for (at, calibrated) in [(1, true), (2, false)] {
        let (value, error_percent) = (250.0, -19.8);
        results.cells[at].published = Some(Published { value, error_percent, calibrated });
    }
    let text = plain(&Markdown.export(&results).expect("tables"));
    let line =
        |name: &str| text.lines().find(|line| line.starts_with(&format!("| {name} "))).expect(name);
    assert!(line("linear(4)").ends_with("; published 250, off -20 %, fitted |"), "{text}");
    assert!(line("raid0(4)").ends_with("; published 250, off -20 % |"), "{text}");
}

/// The sheet about the study: by which clock, on what, with what settings, and every warning.
#[test]
fn a_spreadsheet_tells_all_about_the_study() {
    for (clock, words) in [
        (Clock::Real, "real: times as they passed on the machine"),
        (Clock::Virtual, "virtual: times as the drive models count them"),
    ] {
        let results = distinct(clock);
        let bytes = Ods.write(std::slice::from_ref(&results)).expect("a spreadsheet");
        let mut archive = zip::ZipArchive::new(Cursor::new(bytes)).expect("an archive");
        let mut content = String::new();
        archive.by_name("content.xml").expect("sheets").read_to_string(&mut content).expect("text");
        let about = content.split("table:name=\"About\"").nth(1).expect("a sheet");
        let about = about.split("</table:table>").next().expect("its end");
        let rows: Vec<Vec<&str>> = about
            .split("<table:table-row>")
            .map(|row| {
                row.split("<text:p>")
                    .skip(1)
                    .filter_map(|one| one.split("</text:p>").next())
                    .collect()
            })
            .collect();
        let seed = results.seed.to_string();
        let mut expected = vec![
            vec!["raidlab", "0.1.0"],
            vec!["clock", words],
            vec!["seed", &seed],
            vec!["baseline", "single"],
            vec!["warning", "the first, of two"],
            vec!["warning", "the second"],
        ];
        let maps = results.host.iter().chain(&results.settings);
        expected.extend(maps.map(|(key, value)| vec![key.as_str(), value.as_str()]));
        let workloads = results.workloads.iter();
        expected.extend(workloads.map(|one| vec![one.name.as_str(), one.description.as_str()]));
        for row in expected {
            assert!(rows.contains(&row), "{row:?} of {rows:?}");
        }
    }
}
