//! `raidlab sweep` and `raidlab merge`: the same bytes whoever is killed, and clear words for what cannot be.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use raidlab_results::Results;
use serde_json::Value;

use crate::support::{Ran, Running, Scratch, command, names, raidlab};

/// 16 points of two cells, each over in moments.
const SWEEP: &str = r#"
title = "Small reads"
rounds = 2
drives = [{ name = "nas", model = "nas-8tb-7200", count = 4 }]
layouts = [{ level = "raid1", members = 2 }, { level = "raid5", members = 4, chunk = "64KiB" }]
workloads = [{ kind = "random-read", size = "256KiB" }]

[[sweep.axes]]
key = "layouts.chunk"
values = ["64KiB", "512KiB"]

[[sweep.axes]]
key = "seed"
from = 1
to = 8
"#;

fn text(path: &Path) -> &str {
    path.to_str().expect("a plain path")
}

fn sweep(study: &Path, out: &Path, more: &[&str]) -> Vec<String> {
    let arguments = ["sweep", text(study), "--out", text(out), "--quiet"];
    arguments.iter().chain(more).map(|word| (*word).to_owned()).collect()
}

/// The rows of a directory that is whole, and its manifests.
fn rows(out: &Path) -> String {
    let merged = raidlab(["merge", text(out), "--rows", "-"]).good().stdout;
    let mut manifests = String::new();
    for name in names(out) {
        assert!(!name.ends_with(".part") && !name.ends_with(".at"), "{name} is left");
        manifests += &fs::read_to_string(out.join(name)).expect("there");
    }
    merged + &manifests
}

/// The processes that another one has begun.
fn children(parent: u32) -> Vec<u32> {
    let stat = |entry: std::io::Result<fs::DirEntry>| {
        let path = entry.ok()?.path();
        let id = path.file_name()?.to_str()?.parse::<u32>().ok()?;
        let stat = fs::read_to_string(path.join("stat")).ok()?;
        let behind = stat.rsplit_once(") ")?.1.to_owned();
        let mut words = behind.split(' ');
        let (state, its_parent) = (words.next()?.to_owned(), words.next()?.parse::<u32>().ok()?);
        (its_parent == parent && state != "Z").then_some(id)
    };
    fs::read_dir("/proc").expect("there").filter_map(stat).collect()
}

fn kill(process: u32) {
    let sent = Command::new("sh").args(["-c", &format!("kill -9 {process}")]).status();
    // It may have ended meanwhile.
    let _ = sent.expect("a shell");
}

/// Bytes of rows so far.
fn bytes(out: &Path) -> u64 {
    let files = fs::read_dir(out).into_iter().flatten().flatten();
    let is_rows = |name: &str| name.ends_with(".part") || name.ends_with(".jsonl");
    files
        .filter(|file| is_rows(&file.file_name().to_string_lossy()))
        .filter_map(|file| Some(file.metadata().ok()?.len()))
        .sum()
}

#[test]
fn rows_are_the_same_whoever_runs_them() {
    let scratch = Scratch::new("sweep-same");
    let study = scratch.file("mine.toml", SWEEP);
    let (one, other) = (scratch.path().join("one"), scratch.path().join("other"));
    raidlab(sweep(&study, &one, &["--shards", "4", "--threads", "2"])).good();
    let whole = rows(&one);
    for shard in ["4/4", "1/4", "3/4"] {
        raidlab(sweep(&study, &other, &["--shard", shard])).good();
    }
    let missing = raidlab(["merge", text(&other)]);
    assert_eq!(missing.code, Some(1));
    assert!(missing.stderr.contains("1 of 4 shards are missing: 2\n"), "{}", missing.stderr);
    let partial = raidlab(["merge", text(&other), "--partial", "--json"]);
    assert!(partial.stdout.contains("\"rows\": 24,"), "{partial:?}");
    // What is there is left alone, and the number of shards is known.
    raidlab(sweep(&study, &other, &["--threads", "1"])).good();
    assert_eq!(rows(&other), whole);
    raidlab(sweep(&study, &other, &[])).good();
    let report = raidlab(["merge", text(&one)]).good().stdout;
    assert!(
        report.starts_with("# Small reads\n\n32 cells, 0 of them with an error.\n"),
        "{report}"
    );
    let csv = raidlab(["merge", text(&one), "--csv", "-"]).good().stdout;
    assert_eq!(csv.lines().count(), 33);
}

#[test]
fn a_point_is_a_study_that_compare_runs() {
    let scratch = Scratch::new("sweep-show");
    let study = scratch.file("mine.toml", SWEEP);
    let out = scratch.path().join("rows");
    raidlab(sweep(&study, &out, &["--shards", "1"])).good();
    let point = raidlab(["sweep", text(&study), "--show", "11"]).good().stdout;
    let point = scratch.file("point.toml", point);
    let json =
        raidlab(["compare", text(&point), "--rounds", "2", "--json", "-", "--quiet"]).good().stdout;
    let document = Results::from_json(&json).expect("a document");
    let merged = raidlab(["merge", text(&out), "--rows", "-"]).good().stdout;
    let own: Vec<Value> = merged
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .filter(|row: &Value| row["point"] == 11)
        .collect();
    assert_eq!(own.len(), 2);
    for (row, cell) in own.iter().zip(&document.cells) {
        assert_eq!(row["layout"], *cell.layout);
        let samples: Vec<f64> = row["metrics"][0]["samples"]
            .as_array()
            .expect("a list")
            .iter()
            .filter_map(Value::as_f64)
            .collect();
        assert_eq!(samples, cell.samples);
        assert_eq!(row["metrics"][0]["median"].as_f64(), Some(cell.median));
        assert_eq!(row["latency_ms"]["p99"].as_f64(), cell.latency_ms.map(|latency| latency.p99));
        let trust =
            cell.trust.as_ref().and_then(|trust| trust.interval90).map(|ends| ends.to_vec());
        let interval: Option<Vec<f64>> = row["metrics"][0]["interval90"]
            .as_array()
            .map(|ends| ends.iter().filter_map(Value::as_f64).collect());
        assert_eq!(interval, trust);
    }
}

#[test]
fn killed_workers_and_drivers_change_nothing() {
    let scratch = Scratch::new("sweep-kill");
    let study = scratch.file("mine.toml", SWEEP.replace("256KiB", "4MiB"));
    let (calm, out) = (scratch.path().join("calm"), scratch.path().join("killed"));
    raidlab(sweep(&study, &calm, &["--shards", "2"])).good();
    let whole = bytes(&calm);
    let start =
        |out: &Path| Running::start(sweep(&study, out, &["--shards", "2", "--threads", "2"]));
    let mut driver = start(&out);
    // A worker goes when a quarter is there, the driver when there is a half.
    let process = driver.id();
    driver.wait_until("a quarter", || (bytes(&out) > whole / 4).then_some(()));
    children(process).first().copied().into_iter().for_each(kill);
    driver.wait_until("a half", || (bytes(&out) > whole / 2).then_some(()));
    let left = children(process);
    driver.kill();
    let mut again = start(&out);
    again.wait_until_end(|| ());
    let ran = again.finish();
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(
        left.iter().all(|id| !Path::new(&format!("/proc/{id}/exe")).exists()),
        "workers end with their driver"
    );
    assert_eq!(rows(&out), rows(&calm));
}

/// How often the row that a shard is at was begun.
fn begun(out: &Path) -> Option<u32> {
    let mark = fs::read_to_string(out.join("shard-0000001.at")).ok()?;
    mark.split_ascii_whitespace().nth(2)?.parse().ok()
}

#[test]
fn a_cell_whose_process_ends_twice_is_given_up() {
    let scratch = Scratch::new("sweep-twice");
    let long = SWEEP.replace("256KiB", "256MiB").replace("to = 8", "to = 1");
    let study = scratch.file("mine.toml", long);
    let out = scratch.path().join("rows");
    let mut driver = Running::start(sweep(&study, &out, &["--shards", "1", "--threads", "1"]));
    let id = driver.id();
    for time in 1..=2 {
        let process = driver.wait_until("a cell that was begun", || {
            children(id).first().copied().filter(|_| begun(&out) == Some(time))
        });
        kill(process);
    }
    driver.wait_until("a row", || (bytes(&out) > 0).then_some(()));
    driver.interrupt();
    let ran = driver.finish();
    assert_eq!(ran.code, Some(130), "{ran:?}");
    let part = fs::read_to_string(out.join("shard-0000001.part")).expect("there");
    let row: Value = serde_json::from_str(part.lines().next().expect("a row")).expect("JSON");
    assert_eq!(row["error"], "the process ended 2 times while this cell ran");
    assert_eq!((&row["layout"], &row["metrics"]), (&"raid1(2)".into(), &Value::Array(Vec::new())));
    // What Ctrl-C leaves is not held against the cell.
    assert!(begun(&out) < Some(2), "{:?}", begun(&out));
}

#[test]
fn a_full_disk_keeps_what_is_there() {
    let scratch = Scratch::new("sweep-full");
    let study = scratch.file("mine.toml", SWEEP);
    let (calm, out) = (scratch.path().join("calm"), scratch.path().join("full"));
    raidlab(sweep(&study, &calm, &["--shard", "1/1"])).good();
    let mut shell = Command::new("sh");
    let program = command().get_program().to_owned();
    let script = "ulimit -f 8; trap '' XFSZ; exec \"$0\" \"$@\"";
    let full =
        shell.args(["-c", script]).arg(program).args(sweep(&study, &out, &["--shard", "1/1"]));
    let ran: Ran = full.output().expect("a shell").into();
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(
        ran.stderr.contains("shard-0000001.part") && ran.stderr.contains("rows before are kept"),
        "{}",
        ran.stderr
    );
    let part = fs::read_to_string(out.join("shard-0000001.part")).expect("there");
    assert!(part.ends_with('\n') && part.lines().count() > 1, "whole rows: {part}");
    raidlab(sweep(&study, &out, &["--shard", "1/1"])).good();
    assert_eq!(rows(&out), rows(&calm));
}

#[test]
fn a_dry_run_says_how_much_it_is() {
    let scratch = Scratch::new("sweep-dry");
    let study = scratch.file("mine.toml", SWEEP);
    let told = raidlab(["sweep", text(&study), "--dry-run", "--threads", "2"]).good().stdout;
    for words in [
        "16 points (2 of layouts.chunk x 8 of seed), 32 cells\n",
        " of CPU a cell (",
        "with 2 processes",
        "--shard 1/16",
    ] {
        assert!(told.contains(words), "`{words}` is not in: {told}");
    }
    let json = raidlab(["sweep", text(&study), "--dry-run", "--json"]).good().stdout;
    let json: Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!((&json["cells"], &json["cells_exact"]), (&32.0.into(), &true.into()));
    let script =
        raidlab(["sweep", text(&study), "--script", "parallel", "--out", "rows", "--shards", "3"])
            .good()
            .stdout;
    assert!(script.contains("\nseq 3 | parallel "), "{script}");
}

#[test]
fn what_cannot_be_swept_is_refused() {
    let scratch = Scratch::new("sweep-bad");
    let study = scratch.file("mine.toml", SWEEP);
    let out = scratch.path().join("rows");
    let plain = scratch.file("plain.toml", SWEEP.split("[[sweep").next().expect("text"));
    raidlab(sweep(&plain, &out, &[])).refused(&["plain.toml", "has no sweep"]);
    raidlab(["compare", text(&study)]).refused(&["mine.toml:8: sweep", "raidlab sweep FILE"]);
    let absurd = SWEEP.replace("to = 8", "to = 8000000000000");
    let absurd = scratch.file("absurd.toml", absurd);
    raidlab(sweep(&absurd, &out, &[])).refused(&["absurd.toml:14", "8000000000000 values"]);
    let many = scratch.file("many.toml", SWEEP.replace("to = 8", "to = 80000000"));
    raidlab(sweep(&many, &out, &["--shards", "1000"]))
        .refused(&["320000000 cells are more than", "--script"]);
    raidlab(sweep(&many, &out, &["--shard", "1/2"]))
        .refused(&["2 shards of 160000000 points", "at least 160"]);
    assert!(!out.exists(), "nothing was begun");
    raidlab(sweep(&study, &out, &["--shard", "1/17"])).refused(&["17 shards of 16 points"]);
    raidlab(["sweep", text(&study), "--show", "16"]).refused(&["the points are 0 to 15"]);

    raidlab(sweep(&study, &out, &["--shard", "1/16"])).good();
    raidlab(sweep(&study, &out, &["--shard", "1/8"]))
        .refused(&["rows: holds shards of something else: shards 16, not 8"]);
    fs::write(&study, SWEEP.replace("rounds = 2", "rounds = 3")).expect("written");
    raidlab(sweep(&study, &out, &["--shard", "2/16"]))
        .refused(&["the study file or a drive file was changed"]);
    let empty: PathBuf = scratch.directory("empty");
    raidlab(["merge", text(&empty)]).refused(&["no shards are here"]);
}
