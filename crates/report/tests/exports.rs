//! Comma-separated values and Markdown of a document. The values are read back by the parser of Python, where there is
//! one, and compared with the JSON.

use std::io::Write;
use std::process::{Command, Stdio};

use crate::common;
use raidlab_report::{Csv, CsvRounds, Exporter, Json, Markdown};
use raidlab_results::{Cell, Results};

/// Reads JSON, a mark and comma-separated values; compares every row with its cell, and the columns with its keys.
const READ_BACK: &str = r#"
import csv, io, json, sys
document, cells, rounds = sys.stdin.buffer.read().decode().split("\x00")
document = json.loads(document)
cells = list(csv.DictReader(io.StringIO(cells, newline=""), strict=True))
rounds = list(csv.DictReader(io.StringIO(rounds, newline=""), strict=True))
WORDS = {"ci95": ["ci95_low", "ci95_high"],
         "percent_interval": ["percent_interval_low", "percent_interval_high"]}
def flat(key, value):
    if key in WORDS:
        return list(zip(WORDS[key], value or [None, None]))
    if key == "samples":
        return [("rounds", len(value))]
    if key == "outlier_rounds":
        return [(key, " ".join(map(str, value)))]
    if key == "settings":
        return [("setting " + name, one) for name, one in value.items()]
    if key == "published":
        value = value or {}
        return [("published", value.get("value")), ("published_error_percent", value.get("error_percent")),
                ("published_calibrated", value.get("calibrated"))]
    if isinstance(value, dict):
        prefix, unit = ("latency", "_ms") if key == "latency_ms" else (key, "")
        return [("write_amplification" if name == "write_amplification" else prefix + "_" + name + unit, one)
                for name, one in value.items()]
    if key in ("bottleneck",):
        return [("bottleneck_resource", None), ("bottleneck_busy", None)]
    return [(key, value)]
def text(value):
    return "" if value is None else str(value).lower() if isinstance(value, bool) else value
assert len(cells) == len(document["cells"]), (len(cells), len(document["cells"]))
at = 0
for row, cell in zip(cells, document["cells"]):
    assert row["study"] == document["study"] and row["clock"] == document["clock"]
    for key, value in cell.items():
        for name, value in flat(key, value):
            assert name in row, name + " has no column"
            found = row[name]
            if isinstance(value, (int, float)) and not isinstance(value, bool):
                assert float(found) == value, (name, found, value)
            else:
                assert found == text(value), (name, found, value)
    for number, sample in enumerate(cell["samples"], 1):
        row = rounds[at]
        at += 1
        assert (row["layout"], row["workload"]) == (cell["layout"], cell["workload"]), row
        assert int(row["round"]) == number and float(row["value"]) == sample, row
        assert row["outlier"] == text(number in cell.get("outlier_rounds", [])), row
assert at == len(rounds)
print("same")
"#;

/// A document with whatever is hard: names that need quoting, all optional figures, numbers with many digits.
fn hard() -> Results {
    let mut results = common::full();
    let name = "raid5(4), \"odd\"\nname".to_owned();
    let old = std::mem::replace(&mut results.layouts[1].name, name.clone());
    for cell in &mut results.cells {
        if cell.layout == old {
            cell.layout.clone_from(&name);
        }
    }
    let of = |cell: &mut Cell| {
        cell.samples[0] = 0.1 + 0.2;
        cell.median = 1.0e21 / 3.0;
        cell.outlier_rounds = vec![1, 3];
        cell.settings.insert("block, size".into(), "4KiB".into());
        cell.note = Some("ended, early".into());
        cell.more_rounds = Some(7);
        cell.dependence = Some(-0.25);
        cell.latency_ms =
            Some(raidlab_results::LatencyRow { p50: 0.5, p99: 1.0 / 3.0, p999: 2.0, max: 3.0 });
        cell.members = Some(raidlab_results::MembersRow {
            reads: 1.0,
            writes: 2.0,
            bytes_read: 4096.0,
            bytes_written: 1e15 + 1.0,
            write_amplification: Some(4.0 / 3.0),
        });
        cell.moved = raidlab_results::Moved::new(3.0, 4.0);
    };
    of(&mut results.cells[0]);
    results
}

#[test]
fn another_parser_reads_what_the_json_says() {
    let python = |code: &str| {
        let mut command = Command::new("python3");
        command.args(["-c", code]).stdin(Stdio::piped()).stdout(Stdio::piped());
        command.spawn()
    };
    let Ok(mut child) = python(READ_BACK) else {
        println!("SKIPPED another_parser_reads_what_the_json_says: there is no python3");
        return;
    };
    let results = hard();
    let exports = [&Json as &dyn Exporter, &Csv, &CsvRounds];
    let texts = exports.map(|exporter| exporter.export(&results).expect("a text"));
    let mut stdin = child.stdin.take().expect("a pipe");
    stdin.write_all(texts.join("\0").as_bytes()).expect("python reads");
    drop(stdin);
    let done = child.wait_with_output().expect("python ends");
    assert_eq!(String::from_utf8_lossy(&done.stdout).trim(), "same");
}

/// Whoever reads a table must see that a layout was run and told nothing.
#[test]
fn what_was_too_short_to_tell_is_a_row_without_figures() {
    let mut results = common::small();
    // No field with a comma, so that lines are split by them.
    results.study = "four drives".to_owned();
    results.too_short = common::too_short();
    let text = Csv.export(&results).expect("a text");
    let rows: Vec<Vec<&str>> = text.lines().map(|line| line.split(',').collect()).collect();
    let at = |name: &str| rows[0].iter().position(|column| *column == name).expect(name);
    let told = |row: &[&str], name: &str| row[at(name)].to_owned();
    let (shorts, cells): (Vec<_>, Vec<_>) =
        rows[1..].iter().partition(|row| !row[at("too_short")].is_empty());
    assert_eq!((cells.len(), shorts.len()), (results.cells.len(), 1), "{text}");
    let short = shorts[0];
    for (name, expected) in [
        ("workload", "bonnie"),
        ("layout", "raid0(4)"),
        ("processes", "2"),
        ("state", "degraded"),
        ("metric", "read_kps"),
        ("unit", ""),
        ("rounds", "9"),
        ("too_short", "7"),
        ("setting size", "64MiB"),
        ("median", ""),
        ("may_be_best", ""),
    ] {
        assert_eq!(told(short, name), expected, "{name}: {text}");
    }
    assert_eq!(rows.last(), Some(short), "behind all cells");
    assert_eq!(short.len(), rows[0].len());
    let rounds = CsvRounds.export(&results).expect("a text");
    let samples: usize = results.cells.iter().map(|cell| cell.samples.len()).sum();
    assert_eq!(rounds.lines().count(), 1 + samples, "it has no rounds to tell");
}

#[test]
fn several_documents_are_one_table() {
    let documents = [common::small(), hard()];
    let text = Csv.export_all(&documents).expect("a text");
    assert_eq!(text.matches("study,raidlab,").count(), 1);
    assert!(text.lines().next().expect("a head").ends_with("\"setting block, size\""), "{text}");
    let cells: usize = documents.iter().map(|one| one.cells.len()).sum();
    // One cell's layout has an end of line in its name.
    let broken = documents[1].cells.iter().filter(|cell| cell.layout.contains('\n')).count();
    assert_eq!(text.lines().count(), 1 + cells + broken);
}

#[test]
fn markdown_has_every_median_signs_and_a_legend() {
    let text = Markdown.export(&common::small()).expect("a text");
    assert!(text.starts_with("### "), "{text}");
    assert!(text.contains("| raid5(4) |"), "{text}");
    assert!(text.contains("▼") && text.contains("▼ slower"), "{text}");
    assert!(text.contains("**bold**: best"), "{text}");
    for cell in &common::small().cells {
        let number = raidlab_report::number::number(cell.median).replace('\u{202f}', " ");
        assert!(text.contains(&number), "no {number} in {text}");
    }
    let broken = Markdown.export(&hard()).expect("a text");
    assert!(broken.lines().all(|line| !line.starts_with("name")), "{broken}");
}

#[test]
fn a_document_that_contradicts_itself_is_refused() {
    let mut results = common::small();
    results.cells[0].samples.clear();
    for exporter in [&Csv as &dyn Exporter, &CsvRounds, &Markdown] {
        assert!(exporter.export(&results).is_err());
    }
}
