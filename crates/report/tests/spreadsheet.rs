//! The spreadsheet: LibreOffice, where it is installed, computes what the document says, and computes anew when a round
//! is another.

use std::io::{Cursor, Read};
use std::process::{Command, Stdio};

use crate::common;
use raidlab_report::{Exporter, Ods};
use raidlab_results::Results;

/// Converts the spreadsheet, compares every formula with the document, changes the first round of the second layout,
/// and looks whether mean and percentages move as they should.
const CHECK: &str = r#"
import csv, json, math, os, re, shutil, subprocess, sys, zipfile
place = sys.argv[1]
document = json.load(open(place + "/document.json"))
def computed(name):
    sheets = f"{place}/{name}-csv"
    options = "csv:Text - txt - csv (StarCalc):44,34,76,1,,0,false,true,false,false,false,-1"
    profile = f"-env:UserInstallation=file://{place}/profile"
    subprocess.run(["soffice", profile, "--headless", "--convert-to", options,
                    "--outdir", sheets, f"{place}/{name}.ods"], check=True, capture_output=True, timeout=120)
    read = lambda sheet: list(csv.DictReader(open(f"{sheets}/{name}-{sheet}.csv", newline="")))
    return read("Results"), read("Means"), read("Raw")
near = lambda found, value: abs(float(found) - value) <= 1e-9 * max(1, abs(value))
rows, means, raw = computed("whole")
cells = [cell for cell in document["cells"] if not cell.get("detail")]
key = lambda layout, workload, processes, metric: (layout, workload, int(processes), metric)
known = {key(c["layout"], c["workload"], c["processes"], c["metric"]): c for c in cells}
assert len(rows) == len(cells) == len(known), (len(rows), len(cells))
compared = 0
for row in rows:
    cell = known[key(row["layout"], row["workload"], row["processes"], row["unit"].split(",")[0])]
    ci = cell["ci95"] or [None, None]
    for name, value in [("median", cell["median"]), ("mean", cell["mean"]),
                        ("% against baseline", cell["percent_vs_baseline"]),
                        ("median from", ci[0]), ("median to", ci[1]), ("rounds", len(cell["samples"]))]:
        if value is None:
            assert row[name] == "", (name, row)
        else:
            assert near(row[name], value), (name, row[name], value)
            compared += 1
    expected = sum(cell["samples"]) / len(cell["samples"])
    assert near(row["mean"], expected)
with zipfile.ZipFile(place + "/whole.ods") as old, zipfile.ZipFile(place + "/changed.ods", "w") as new:
    for entry in old.infolist():
        data = old.read(entry)
        if entry.filename == "content.xml":
            text = data.decode()
            stored = re.search(r"table:formula=\"[^\"]*\"[^>]*office:value", text)
            assert "table:formula" in text and not stored, "stored values"
            start = text.index('table:name="Raw"')
            head, sheet = text[:start], text[start:]
            rows_of_sheet = sheet.split("<table:table-row>")
            number = re.compile(r'office:value="([^"]*)"')
            fields = list(number.finditer(rows_of_sheet[3]))
            first = fields[1]
            row, twice = rows_of_sheet[3], str(float(first.group(1)) * 2)
            rows_of_sheet[3] = row[:first.start(1)] + twice + row[first.end(1):]
            data = (head + "<table:table-row>".join(rows_of_sheet)).encode()
        new.writestr(entry, data)
again, means_again, raw_again = computed("changed")
changed = [at for at, (one, other) in enumerate(zip(raw, raw_again)) if one != other]
assert changed == [1], changed
was, now = rows[1], again[1]
samples = [float(raw_again[1][f"round {n}"]) for n in range(1, int(now["rounds"]) + 1)]
assert near(now["mean"], sum(samples) / len(samples)) and now["mean"] != was["mean"]
assert now["% against baseline"] != was["% against baseline"], "percent does not move"
assert [one for one, other in zip(means, means_again) if one != other], "the mean of percentages does not move"
assert sum(one != other for one, other in zip(rows, again)) == 1
print("same", compared)
"#;

#[test]
fn libreoffice_computes_what_the_document_says() {
    let name = "libreoffice_computes_what_the_document_says";
    let there = |program: &str| {
        let mut command = Command::new(program);
        let status = command.arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
        status.is_ok_and(|status| status.success())
    };
    if !there("soffice") || !there("python3") {
        println!("SKIPPED {name}: no soffice or no python3");
        return;
    }
    let place = std::env::temp_dir().join(format!("raidlab-ods-{}", std::process::id()));
    std::fs::create_dir_all(&place).expect("a directory");
    let mut results = common::full();
    // Percentages by the rule, of rounds that vary.
    common::by_the_rule(&mut results);
    std::fs::write(place.join("document.json"), results.to_json().expect("JSON")).expect("written");
    std::fs::write(place.join("whole.ods"), Ods.write(&[results]).expect("a spreadsheet"))
        .expect("written");
    let mut python = Command::new("python3");
    let output = python.args(["-c", CHECK]).arg(&place).output().expect("python runs");
    std::fs::remove_dir_all(&place).expect("removed");
    let (told, wrong) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(told.starts_with("same ") && output.status.success(), "{told}{wrong}");
}

/// What the sheets of a document hold.
fn content(results: &Results) -> String {
    let bytes = Ods.write(std::slice::from_ref(results)).expect("a spreadsheet");
    let mut archive = zip::ZipArchive::new(Cursor::new(bytes)).expect("an archive");
    let mut content = String::new();
    archive.by_name("content.xml").expect("sheets").read_to_string(&mut content).expect("text");
    content
}

/// A layout that was run and told nothing stands behind all others, where no formula counts it.
#[test]
fn what_was_too_short_to_tell_is_the_last_line_of_the_results() {
    let mut results = common::small();
    let before = content(&results);
    results.too_short = common::too_short();
    let after = content(&results);
    let sheet = |content: &str, name: &str| {
        let start = content.find(&format!("table:name=\"{name}\"")).expect("a sheet");
        let end = content[start..].find("</table:table>").expect("its end");
        content[start..start + end].to_owned()
    };
    for name in ["Means", "Raw"] {
        assert_eq!(sheet(&before, name), sheet(&after, name), "{name}");
    }
    let rows = |content: &str| {
        let sheet = sheet(content, "Results");
        sheet.split("<table:table-row>").skip(1).map(str::to_owned).collect::<Vec<_>>()
    };
    let (before, after) = (rows(&before), rows(&after));
    assert_eq!((after.len(), &after[..before.len()]), (before.len() + 1, &before[..]));
    let last = after.last().expect("a line");
    for text in ["bonnie", "raid0(4)", "degraded", "size=64MiB", "too short to tell (7 of 9)"] {
        assert!(last.contains(&format!(">{text}<")), "{text} is not in {last}");
    }
    // As many fields as the head has, and the last one is the verdict.
    let fields = |row: &str| row.matches("<table:table-cell").count();
    assert_eq!(fields(last), fields(&after[0]));
}

#[test]
fn a_spreadsheet_is_an_archive_with_its_kind_first() {
    let bytes = Ods.write(&[common::small(), common::replay()]).expect("a spreadsheet");
    assert_eq!(bytes, Ods.write(&[common::small(), common::replay()]).expect("a spreadsheet"));
    assert_eq!(&bytes[30..38], b"mimetype");
    let mut archive = zip::ZipArchive::new(Cursor::new(bytes)).expect("an archive");
    let names: Vec<String> =
        archive.file_names().map(|name| name.expect("a name").into_owned()).collect();
    let mut manifest = String::new();
    let mut part = archive.by_name("META-INF/manifest.xml").expect("a manifest");
    part.read_to_string(&mut manifest).expect("text");
    drop(part);
    for name in names.iter().filter(|name| name.starts_with("Pictures/") || *name == "content.xml")
    {
        assert!(manifest.contains(&format!("full-path=\"{name}\"")), "{name}");
    }
    let mut content = String::new();
    archive.by_name("content.xml").expect("sheets").read_to_string(&mut content).expect("text");
    let sheets: Vec<&str> =
        content.split("table:name=\"").skip(1).filter_map(|part| part.split('"').next()).collect();
    assert_eq!(sheets, ["Results", "Means", "Raw", "About", "Figures"]);
    assert!(Ods.export(&common::small()).is_err(), "it is no text");
    let mut wrong = common::small();
    wrong.cells[0].samples.clear();
    assert!(Ods.write(&[wrong]).is_err());
}
