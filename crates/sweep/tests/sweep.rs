//! Sweeps on one thread: rows, their addresses, errors, stops.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use raidlab_store::shards::{Merge, Shards};
use raidlab_sweep::{Ended, Job, Report, SweepError, Version, csv, estimate, run_shard};
use serde_json::Value;

const STUDY: &str = r#"
title = "Small reads"
rounds = 2
drives = [{ name = "nas", model = "nas-8tb-7200", count = 4 }]
layouts = [{ level = "raid1", members = 2 }, { level = "raid5", members = 4, chunk = "64KiB" }]
workloads = [{ kind = "random-read", size = "32KiB" }]

[[sweep.axes]]
key = "layouts.chunk"
values = ["64KiB", "512KiB"]

[[sweep.axes]]
key = "processes"
values = [[1], [1, 4]]
"#;

static NEVER: AtomicBool = AtomicBool::new(false);

struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Self {
        let path =
            std::env::temp_dir().join(format!("raidlab-sweep-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        Self(path)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn job(text: &str) -> Job {
    let version = Version { raidlab: "1.0".into(), commit: None };
    Job::parse(text, "mine.toml", Path::new(""), &version).unwrap_or_else(|error| panic!("{error}"))
}

fn rows(name: &str, text: &str, shards: u64) -> Vec<Value> {
    let scratch = Scratch::new(name);
    let job = job(text);
    let of = Shards::create(&scratch.0, &job.head(shards)).expect("made");
    for shard in 1..=shards {
        let ran = run_shard(&job, &of, shard, &NEVER, false, &mut |_| {}).expect("run");
        assert!(matches!(ran.ended, Ended::Finished(_)), "{ran:?}");
        let again = run_shard(&job, &of, shard, &NEVER, false, &mut |_| {}).expect("run");
        assert!(matches!(again.ended, Ended::Before(_)) && again.rows == 0);
    }
    read(&scratch.0)
}

fn read(directory: &Path) -> Vec<Value> {
    let mut rows = Vec::new();
    let merge = Merge::of(&[directory.to_owned()]).expect("readable");
    merge
        .rows(|line| {
            rows.push(serde_json::from_slice(line).expect("JSON"));
            Ok::<(), SweepError>(())
        })
        .expect("whole");
    rows
}

/// The same in all states of an array, of a host that a kernel was compared with.
const STATES: &str = r#"
title = "States"
rounds = 2
seed = 7
member_size = "4MiB"
states = ["healthy", "degraded", "rebuilding"]
host = { kernel = "linux-6.12" }
drives = [{ name = "nas", model = "nas-8tb-7200", count = 4 }]
layouts = [{ level = "single" }, { level = "raid6", members = 4, chunk = "64KiB" }]
workloads = [{ kind = "random-read", size = "2MiB" }, { kind = "random-write", size = "32KiB" }]

[[sweep.axes]]
key = "processes"
values = [[1], [2]]
"#;

#[test]
fn a_row_is_what_its_study_alone_gives() {
    use raidlab_study::{CellKey, cell_figures, cell_seed, cells, parse};
    fn json(value: &impl serde::Serialize) -> Value {
        serde_json::to_value(value).expect("JSON")
    }
    for (name, text, count) in [("alone", STUDY, 2 * (2 + 4)), ("states", STATES, 2 * (2 * 4 + 1))]
    {
        let all = rows(name, text, 2);
        assert_eq!(all.len(), count, "{name}: of each point the layouts that can be in a state");
        let job = job(text);
        let mut seen = std::collections::BTreeSet::new();
        for row in &all {
            let point = job.sweep().point(row["point"].as_u64().expect("a number"));
            let text = job.sweep().study_file(&point).expect("a study");
            let study = parse(&text, "point.toml").expect("a study");
            // As sweeps are.
            let study = raidlab_study::Study { modelled: true, ..study };
            let all = cells(&study);
            let key: CellKey = all[row["part"].as_u64().expect("a number") as usize];
            assert_eq!(row["parts"], all.len());
            let modelled =
                raidlab_predict::Modelled::new(&study, Default::default()).expect("modelled");
            let run = |round| {
                let seed = cell_seed(&study, &key, round);
                raidlab_study::Runner::run(&mut modelled.clone(), &key, round, seed)
            };
            let samples: Vec<_> = (0..2).map(|round| run(round).expect("run")).collect();
            let figures = cell_figures(&study, &key, &samples);
            let own = &figures[0];
            let named = [&row["layout"], &row["workload"], &row["state"]];
            assert_eq!(named, [&*own.layout, &*own.workload, &*own.state]);
            assert_eq!(
                (&row["processes"], &row["seed"]),
                (&json(&own.processes), &json(&study.seed))
            );
            let layout = &study.layouts[key.layout].layout;
            assert_eq!(row["capacity"], modelled.capacities()[key.layout].bytes());
            assert_eq!(row["survives"], layout.survives());
            for (told, of) in [
                ("bottleneck", json(&own.bottleneck)),
                ("latency_ms", json(&own.latency_ms)),
                ("members", json(&own.members)),
                ("note", json(&own.note)),
            ] {
                assert_eq!(row[told], of, "{told}");
                seen.extend((!of.is_null()).then_some(told));
            }
            let metrics = row["metrics"].as_array().expect("a list");
            assert_eq!(metrics.len(), figures.len());
            for (told, figure) in metrics.iter().zip(&figures) {
                let interval90 = figure.trust.as_ref().and_then(|trust| trust.interval90);
                let expected = serde_json::json!({
                    "metric": figure.metric, "unit": figure.unit, "better": figure.better,
                    "samples": figure.samples, "median": figure.median, "ci95": figure.ci95,
                    "interval90": interval90,
                });
                assert_eq!(*told, expected);
                seen.extend(interval90.map(|_| "interval90"));
            }
        }
        let wanted: &[&str] = match name {
            "alone" => &["bottleneck", "latency_ms", "members"],
            _ => &["bottleneck", "interval90", "latency_ms", "members", "note"],
        };
        assert!(seen.iter().eq(wanted), "{name}: {seen:?}");
        let addresses: std::collections::BTreeSet<&str> =
            all.iter().map(|row| row["cell"].as_str().expect("text")).collect();
        assert_eq!(addresses.len(), all.len(), "{name}: each has an address of its own");
    }
}

#[test]
fn another_value_changes_no_other_row() {
    let plain = |mut row: Value| {
        row.as_object_mut().expect("an object").remove("point");
        row
    };
    let few: Vec<Value> = rows("few", STUDY, 2).into_iter().map(plain).collect();
    let more = STUDY.replace("\"512KiB\"]", "\"128KiB\", \"512KiB\"]");
    let more: Vec<Value> = rows("more", &more, 2).into_iter().map(plain).collect();
    assert_eq!((few.len(), more.len()), (12, 18));
    assert!(few.iter().all(|row| more.contains(row)));
    let mut cells: Vec<&str> = more.iter().map(|row| row["cell"].as_str().expect("text")).collect();
    cells.sort_unstable();
    cells.dedup();
    assert_eq!(cells.len(), 18, "each has an address of its own");
}

/// Workloads of one name that differ in their settings only, and one without.
fn with_settings() -> String {
    let kind = "kind = \"random-read\", size = \"32KiB\"";
    let one = |more: &str| format!("{{ {kind}, name = \"reads\"{more} }}");
    let of = |block: &str, depth: &str| {
        one(&format!(", settings = {{ block = \"{block}\", depth = \"{depth}\" }}"))
    };
    let workloads = [of("4KiB", "1"), of("64KiB", "1"), one("")].join(", ");
    let text = STUDY.replace(&format!("{{ {kind} }}"), &workloads);
    assert_ne!(text, STUDY);
    text
}

#[test]
fn settings_tell_cells_apart() {
    let text = with_settings();
    let scratch = Scratch::new("settings");
    let job = job(&text);
    let shards = Shards::create(&scratch.0, &job.head(1)).expect("made");
    run_shard(&job, &shards, 1, &NEVER, false, &mut |_| {}).expect("run");
    let rows = read(&scratch.0);
    assert_eq!(rows.len(), 3 * 12);
    let mut cells: Vec<&str> = rows.iter().map(|row| row["cell"].as_str().expect("text")).collect();
    cells.sort_unstable();
    cells.dedup();
    assert_eq!(cells.len(), rows.len(), "each has an address of its own");
    let of = |block: &str| serde_json::json!({ "block": block, "depth": "1" });
    for settings in [Some(of("4KiB")), Some(of("64KiB")), None] {
        assert_eq!(rows.iter().filter(|row| row.get("settings") == settings.as_ref()).count(), 12);
    }
    let (mut table, mut report) = (Vec::new(), Report::default());
    let mut put = csv(&mut table);
    for row in &rows {
        let line = row.to_string();
        report.add(line.as_bytes()).expect("a row");
        put(line.as_bytes()).expect("a row");
    }
    drop(put);
    let table = String::from_utf8(table).expect("text");
    assert!(table.lines().next().expect("a head").ends_with(",note,error,settings"), "{table}");
    for (end, count) in [(",\"block=4KiB, depth=1\"", 12), (",\"block=64KiB, depth=1\"", 12)] {
        assert_eq!(table.lines().filter(|line| line.ends_with(end)).count(), count, "{table}");
    }
    let text = report.text("t");
    for of in ["", ", block=4KiB, depth=1", ", block=64KiB, depth=1"] {
        let head = format!("\n## reads, 1 process, healthy{of}: iops (1/s)\n");
        let (_, section) = text.split_once(&head).unwrap_or_else(|| panic!("{head}: {text}"));
        let (section, _) = section.split_once("\n## ").unwrap_or((section, ""));
        assert!(section.contains("| all |  | 8 |"), "{head}: {section}");
    }
}

/// The address of the first cell of the study, as it was before settings were part of any.
const OLD_ADDRESS: &str = "f948f6ba66db7658f1db24d86e669f44";

/// Cells without settings, and rows of before, are what they were.
#[test]
fn a_cell_without_settings_keeps_its_row() {
    let rows = rows("without-settings", STUDY, 1);
    assert!(rows.iter().all(|row| row.get("settings").is_none()));
    assert_eq!(rows[0]["cell"], OLD_ADDRESS);
    let text = report(&[line(0, "64K", "higher", 100.0, 10.0)]);
    assert!(text.contains("\n## read, 2 processes, healthy: m (1/s)\n"), "{text}");
}

#[test]
fn an_address_tells_draws_apart() {
    let cell = |name: &str, text: &str| rows(name, text, 1)[0]["cell"].clone();
    let shared =
        |text: &str| text.replacen("\n[[sweep", "\n[sweep]\ndraws = \"shared\"\n\n[[sweep", 1);
    let fixed = STUDY.replace("\"64KiB\", \"512KiB\"", "\"64KiB\"");
    assert_ne!(cell("own", &fixed), cell("shared", &shared(&fixed)));
    // What is swept in one file and stands in the other is the same study.
    let standing = fixed
        .replace("key = \"layouts.chunk\"\nvalues = [\"64KiB\"]", "key = \"seed\"\nvalues = [1]");
    let standing = standing.replace("rounds = 2", "rounds = 2\nseed = 1");
    let fixed = fixed.replace("rounds = 2", "rounds = 2\nseed = 1");
    assert_eq!(cell("swept", &shared(&fixed)), cell("standing", &shared(&standing)));
}

/// The file of the drive that the study names.
fn drive_file() -> &'static str {
    let mut all = raidlab_models::builtin().iter();
    all.find(|(name, _)| *name == "nas-8tb-7200").expect("there").1
}

#[test]
fn the_address_depends_on_the_drive_file_and_the_version() {
    let scratch = Scratch::new("drive");
    fs::create_dir_all(&scratch.0).expect("made");
    let drive = drive_file();
    let text = STUDY.replace("nas-8tb-7200", "own.toml");
    let id_of = |text: &str, drive: &str, version: Version| {
        fs::write(scratch.0.join("own.toml"), drive).expect("written");
        Job::parse(text, "mine.toml", &scratch.0, &version).expect("good").head(1).id
    };
    let of = |raidlab: &str, commit: Option<&str>| Version {
        raidlab: raidlab.into(),
        commit: commit.map(str::to_owned),
    };
    let id = |drive: &str, version: &str| id_of(&text, drive, of(version, None));
    let first = id(drive, "1.0");
    assert_eq!(id(drive, "1.0"), first);
    assert_ne!(id(&format!("{drive}\n"), "1.0"), first);
    assert_ne!(id(drive, "1.1"), first);
    assert_ne!(id_of(&text, drive, of("1.0", Some("c0ffee"))), first, "of another commit");
    assert_ne!(id_of(&format!("{text}\n"), drive, of("1.0", None)), first, "of another file");
}

/// As that of one that an axis names: rows of another drive are of another sweep, and their cells have other addresses.
#[test]
fn a_drive_file_that_samples_name_has_a_say() {
    let scratch = Scratch::new("sampled");
    fs::create_dir_all(&scratch.0).expect("made");
    let drive = drive_file();
    let slower = drive.replace("7200", "5400");
    assert_ne!(drive, slower);
    let (study, _) = STUDY.split_once("\n[[sweep.axes]]").expect("axes");
    let samples = "\n[sweep.samples]\ncount = 3\n\
                   of = [{ key = \"drives[0].model\", values = [\"nas-8tb-7200\", \"own.toml\"] }]\n";
    let text = format!("{study}{samples}");
    let version = Version { raidlab: "1.0".into(), commit: None };
    let job = |drive: &str| {
        fs::write(scratch.0.join("own.toml"), drive).expect("written");
        Job::parse(&text, "mine.toml", &scratch.0, &version).expect("good")
    };
    let rows = |job: &Job, name: &str| {
        let shards = Shards::create(&scratch.0.join(name), &job.head(1)).expect("made");
        run_shard(job, &shards, 1, &NEVER, false, &mut |_| {}).expect("run");
        read(&scratch.0.join(name))
    };
    let one = rows(&job(drive), "one");
    let again = job(&slower);
    let error = Shards::create(&scratch.0.join("one"), &again.head(1)).expect_err("of the other");
    assert_eq!(error.kind, raidlab_store::StoreErrorKind::Mixed);
    assert!(error.to_string().contains("a drive file was changed"), "{error}");
    let other = rows(&again, "other");
    let mut seen = [0, 0];
    for (row, other) in one.iter().zip(&other) {
        let is_own = row["keys"]["drives[0].model"] == "own.toml";
        assert_eq!(row["cell"] != other["cell"], is_own, "{row}");
        assert_eq!(row["metrics"] != other["metrics"], is_own, "{row}");
        seen[usize::from(is_own)] += 1;
    }
    assert!(seen.iter().all(|count| *count > 0), "both are drawn: {seen:?}");
}

#[test]
fn what_cannot_be_and_what_crashes_have_rows() {
    let text = STUDY.replace("values = [[1], [1, 4]]", "values = [[1]]").replace(
        "key = \"layouts.chunk\"\nvalues = [\"64KiB\", \"512KiB\"]",
        "key = \"layouts[1].members\"\nvalues = [3, 9]",
    );
    let scratch = Scratch::new("crash");
    let job = job(&text);
    let shards = Shards::create(&scratch.0, &job.head(1)).expect("made");
    for _ in 0..2 {
        // As a process that is killed in the first cell.
        let mut writer = shards.take(1, false).expect("ours").expect("not finished");
        writer.begin().expect("begun");
    }
    let ran = run_shard(&job, &shards, 1, &NEVER, false, &mut |_| {}).expect("run");
    assert_eq!((ran.rows, ran.errors), (3, 2));
    let rows = read(&scratch.0);
    assert!(rows[0]["error"].as_str().expect("an error").contains("ended 2 times"));
    assert_eq!(rows[0]["layout"], "raid1(2)");
    assert_eq!(rows[1]["error"], Value::Null);
    assert!(
        rows[2]["error"].as_str().expect("an error").contains("mine.toml:8: layouts.members"),
        "{}",
        rows[2]
    );
    assert_eq!(rows[2]["keys"]["layouts[1].members"], 9);
}

/// Of the first layout writing takes too short a time for bonnie++ to tell, rewriting does not.
#[test]
fn no_further_figure_stands_in_for_one_that_was_too_short_to_tell() {
    let text = r#"
title = "Too short"
rounds = 2
filesystem = "ext4"
host = { kernel = "linux-6.12", memory = "64MiB" }
member_size = "4GiB"
drives = [{ name = "nas", model = "nas-8tb-7200", count = 4 }]
layouts = [{ level = "raid0", members = 4 }, { level = "raid1", members = 2 }]
workloads = [{ kind = "bonnie-2.00", size = "238MiB", ram = "64MiB", fast = true, n = "0" }]

[[sweep.axes]]
key = "processes"
values = [[1]]
"#;
    let rows = rows("short", text, 1);
    let told: Vec<_> =
        rows.iter().map(|row| (&row["error"], &row["metrics"][0]["metric"])).collect();
    let short =
        Value::from("2 of 2 rounds were too short to tell the first figure: use a larger size");
    let expected = [(&short, &Value::Null), (&Value::Null, &Value::from("block_write_kps"))];
    assert_eq!(told, expected);
    // A study that does not show it can do without.
    let text = text.replace("n = \"0\"", "n = \"0\", show = [\"rewrite_kps\"]");
    let rows = self::rows("short-shown", &text, 1);
    let told: Vec<_> =
        rows.iter().map(|row| (&row["error"], &row["metrics"][0]["metric"])).collect();
    assert_eq!(told, [(&Value::Null, &Value::from("rewrite_kps")); 2]);
}

/// What runs warn of stands in the row, and in the report with the numbers of the first row.
#[test]
fn a_row_says_what_its_runs_warned_of() {
    let text = r#"
title = "Buffered"
rounds = 2
filesystem = "ext4"
drives = [{ name = "nas", model = "nas-8tb-7200", count = 1 }]
layouts = [{ level = "single" }]
workloads = [
    { kind = "dd", name = "buffered", bs = "1MiB", size = "300MiB" },
    { kind = "dd", name = "synced", bs = "1MiB", size = "300MiB", conv = "fdatasync" },
]

[[sweep.axes]]
key = "processes"
values = [[1]]
"#;
    let rows = rows("warned", text, 1);
    let notes: Vec<&Value> = rows.iter().map(|row| &row["note"]).collect();
    let warned = Value::from("300 MiB were still in memory only at the end of the run");
    assert_eq!(notes, [&warned, &Value::Null]);
}

#[test]
fn a_stop_loses_nothing() {
    static STOP: AtomicBool = AtomicBool::new(false);
    let scratch = Scratch::new("stop");
    let job = job(STUDY);
    let shards = Shards::create(&scratch.0, &job.head(1)).expect("made");
    let mut stops = 0;
    loop {
        STOP.store(false, Ordering::Relaxed);
        let mut told = |_| STOP.store(true, Ordering::Relaxed);
        let ran = run_shard(&job, &shards, 1, &STOP, false, &mut told).expect("run");
        match ran.ended {
            Ended::Stopped => stops += 1,
            Ended::Finished(_) => break,
            Ended::Before(_) => panic!("was not finished"),
        }
    }
    assert_eq!(stops, 11, "after each row but the last");
    assert_eq!(read(&scratch.0), rows("stopless", STUDY, 1));
}

#[test]
fn rows_become_a_table_and_a_report() {
    let scratch = Scratch::new("table");
    let job = job(STUDY);
    let shards = Shards::create(&scratch.0, &job.head(1)).expect("made");
    run_shard(&job, &shards, 1, &NEVER, false, &mut |_| {}).expect("run");
    let (mut table, mut report) = (Vec::new(), Report::default());
    let mut put = csv(&mut table);
    Merge::of(std::slice::from_ref(&scratch.0))
        .expect("readable")
        .rows(|line| {
            report.add(line)?;
            put(line)
        })
        .expect("whole");
    drop(put);
    let table = String::from_utf8(table).expect("text");
    let lines: Vec<&str> = table.lines().collect();
    assert_eq!(lines.len(), 13);
    assert!(lines[0].contains(",survives,key layouts.chunk,key processes,metric,"), "{}", lines[0]);
    assert!(lines[12].contains(",512KiB,\"[1,4]\",iops,1/s,higher,"), "{}", lines[12]);
    let text = report.text("Small reads");
    assert!(text.contains("12 cells, 0 of them with an error."), "{text}");
    assert!(text.contains("Cells have no intervals"), "{text}");
    assert!(text.contains("| layouts.chunk | 64KiB | 2 |"), "a mirror has none: {text}");
    assert!(text.contains("## random-read 4KiB, 4 processes, healthy: iops (1/s)"), "{text}");
}

/// A row of a sweep over one key, as JSON.
fn line(point: u64, chunk: &str, better: &str, median: f64, half: f64) -> String {
    let (low, high) = (median - half, median + half);
    format!(
        r#"{{"cell":"c","point":{point},"part":0,"parts":1,"keys":{{"layouts.chunk":"{chunk}"}},"layout":"raid5(4)",
        "workload":"read","processes":2,"state":"healthy","seed":1,"rounds":6,"capacity":1,"survives":1,
        "metrics":[{{"metric":"m","unit":"1/s","better":"{better}","samples":[],"median":{median},
        "ci95":[{low},{high}],"interval90":null}}],"latency_ms":null,"members":null,"bottleneck":null,"note":null,
        "error":null}}"#
    )
}

fn report(lines: &[String]) -> String {
    let mut report = Report::default();
    for line in lines {
        report.add(line.as_bytes()).unwrap_or_else(|error| panic!("{error}"));
    }
    report.text("t")
}

/// The best by the metric's direction wherever it stands, geometric means by value against that of all, and the mean
/// of the intervals' halves.
#[test]
fn a_report_has_the_best_and_geometric_means() {
    for (better, best) in [
        ("higher", "Best: 400.0 (95 of 100: 360.0 to 440.0) with raid5(4), point 1"),
        ("lower", "Best: 25.00 (95 of 100: 20.00 to 30.00) with raid5(4), point 2"),
    ] {
        let chunks = ["64K", "1M", "64K", "1M"];
        let medians = [100.0, 400.0, 25.0, 100.0];
        let row = |at: usize| {
            line(at as u64, chunks[at], better, medians[at], medians[at] / 10.0 * at as f64)
        };
        let lines: Vec<String> = (0..4).map(row).collect();
        let text = report(&lines);
        assert!(text.contains(best), "{better}: {text}");
        // Halves of 0, 10, 20 and 30 %.
        assert!(text.contains("interval is ±15.0 % of its median on average"), "{text}");
        assert!(text.contains("| all |  | 4 | 100.0 | +0.0 % |"), "{text}");
        assert!(text.contains("| layouts.chunk | 64K | 2 | 50.00 | -50.0 % |"), "{text}");
        assert!(text.contains("| layouts.chunk | 1M | 2 | 200.0 | +100.0 % |"), "{text}");
        assert!(!text.contains("| layout |"), "one value tells nothing: {text}");
    }
}

/// Values stand by size, and a key of one layout has that layout's cells only, each against all of these.
#[test]
fn a_report_has_values_by_size_and_keys_by_the_layouts_they_are_of() {
    let row = |at: u64, chunk: &str, median: f64| line(at, chunk, "higher", median, 0.0);
    let text = report(&[row(0, "1MiB", 1.0), row(1, "256KiB", 1.0), row(2, "16KiB", 1.0)]);
    let places = ["16KiB", "256KiB", "1MiB"].map(|chunk| text.find(&format!("| {chunk} | 1 |")));
    assert!(places.is_sorted() && places[0].is_some(), "{text}");
    let of_second = |at: u64, members: u64, is_second: bool, median: f64| {
        let keys = format!(
            "\"keys\":{{\"layouts[1].members\":{members}}}{}",
            if is_second { "" } else { ",\"of_others\":[\"layouts[1].members\"]" }
        );
        let layout = if is_second { "\"layout\":\"raid6\"" } else { "\"layout\":\"raid5\"" };
        row(at, "64K", median)
            .replace("\"keys\":{\"layouts.chunk\":\"64K\"}", &keys)
            .replace("\"layout\":\"raid5(4)\"", layout)
    };
    let text = report(&[
        of_second(0, 4, false, 900.0),
        of_second(0, 4, true, 100.0),
        of_second(1, 16, false, 900.0),
        of_second(1, 16, true, 400.0),
    ]);
    let (four, sixteen) = (
        text.find("| layouts[1].members | 4 | 1 | 100.0 | -50.0 % |"),
        text.find("| layouts[1].members | 16 | 1 | 400.0 | +100.0 % |"),
    );
    assert!(four.is_some() && four < sixteen, "{text}");
    assert!(text.contains("with raid5, point 0\n"), "nothing that was swept is its own: {text}");
    assert!(text.contains("| layout | raid5 | 2 | 900.0 |"), "{text}");
}

/// Rows tell which keys are of another layout, by its number and by its name.
#[test]
fn rows_name_the_keys_of_other_layouts() {
    let text = STUDY.replace(
        "key = \"layouts.chunk\"\nvalues = [\"64KiB\", \"512KiB\"]",
        "key = \"layouts[1].chunk\"\nvalues = [\"64KiB\"]",
    );
    assert_ne!(text, STUDY);
    let rows = rows("of-others", &text, 1);
    for row in &rows {
        let of_others = row.get("of_others");
        let is_second = row["layout"].as_str().expect("a name").starts_with("raid5");
        let expected = serde_json::json!(["layouts[1].chunk"]);
        assert_eq!(of_others, (!is_second).then_some(&expected), "{row}");
    }
    assert!(rows.iter().any(|row| row.get("of_others").is_none()), "{rows:?}");
}

/// So they do of keys of other workloads, of drives that a layout has none of, and of layouts that have no such key.
#[test]
fn rows_name_the_keys_of_other_drives_and_workloads() {
    let text = "title = \"t\"\nrounds = 1\n\
        drives = [{ name = \"disks\", model = \"nas-8tb-7200\", count = 4 }, \
        { name = \"ssds\", model = \"ssd-sata-1tb\", count = 2 }]\n\
        layouts = [{ level = \"raid5\", members = 4, chunk = \"64KiB\", drives = \"disks\" }, \
        { level = \"raid1\", members = 2, drives = [\"ssds\", \"ssds\"] }]\n\
        workloads = [{ kind = \"random-read\", size = \"64KiB\", name = \"a\" }, \
        { kind = \"random-read\", size = \"64KiB\", name = \"b\" }]\n\
        [sweep]\n\
        axes = [{ key = \"drives[disks].model\", values = [\"nas-8tb-7200\"] }, \
        { key = \"workloads[0].block\", values = [\"8KiB\"] }, { key = \"layouts.chunk\", values = [\"16KiB\"] }]\n";
    let rows = rows("of-other-drives", text, 1);
    assert_eq!(rows.len(), 4);
    for row in &rows {
        let is_mirror = row["layout"].as_str().expect("a name").starts_with("raid1");
        let mut expected = Vec::new();
        expected.extend(is_mirror.then_some("drives[disks].model"));
        expected.extend((row["workload"] == "b").then_some("workloads[0].block"));
        expected.extend(is_mirror.then_some("layouts.chunk"));
        let of_others = row.get("of_others").cloned().unwrap_or(serde_json::json!([]));
        assert_eq!(of_others, serde_json::json!(expected), "{row}");
    }
}

#[test]
fn a_report_names_errors_and_keys_of_too_many_values() {
    let failed = |point: u64, error: &str| {
        line(point, "64K", "higher", 1.0, 0.0)
            .replace("\"error\":null", &format!("\"error\":\"{error}\""))
            .replace("\"median\":1", "\"median\":0")
    };
    let mut lines: Vec<String> = (0..8).map(|at| failed(at, &format!("reason {at}"))).collect();
    lines.extend([failed(9, "reason 3"), failed(10, "one more"), failed(11, "another")]);
    let text = report(&lines);
    assert!(text.contains("11 cells, 11 of them with an error."), "{text}");
    assert!(text.contains("- 2 times, first at point 3: reason 3\n"), "{text}");
    assert!(text.contains("- 2 with other errors") && !text.contains("another"), "{text}");
    let noted = |point: u64, mib: u64| {
        let note = format!("\"note\":\"{mib} MiB were left\"");
        line(point, "64K", "higher", mib as f64, 0.0).replace("\"note\":null", &note)
    };
    let text = report(&[noted(3, 20), noted(4, 30), line(5, "64K", "higher", 1.0, 0.0)]);
    assert!(
        text.contains("\n2 cells with a note:\n\n- 2 times, first at point 3: 20 MiB were left\n"),
        "{text}"
    );
    assert!(text.contains("point 4: layouts.chunk = 64K (30 MiB were left)\n"), "{text}");
    for (values, shown) in [(24, true), (25, false)] {
        let lines: Vec<String> =
            (0..values).map(|at| line(at, &format!("{at}K"), "higher", 1.0, 0.0)).collect();
        let text = report(&lines);
        assert_eq!(text.contains("| layouts.chunk | 3K | 1 |"), shown, "{text}");
        assert_eq!(text.contains("| layouts.chunk | more than 24 values |"), !shown, "{text}");
    }
}

#[test]
fn cells_are_counted_and_timed() {
    let found = estimate(&job(STUDY), &NEVER);
    assert_eq!((found.points, found.cells, found.is_exact), (4, 12.0, true));
    assert!(found.cell_seconds.is_some_and(|seconds| seconds > 0.0));
    assert!((1..=4).contains(&found.shards()));
    // One round is tried of a cell, and all are told: a thousand times as many, whatever the machine does meanwhile.
    let many = estimate(&job(&STUDY.replace("rounds = 2", "rounds = 2000")), &NEVER);
    let [one, many] = [found, many].map(|found| found.cell_seconds.expect("was tried"));
    assert!(many > 10.0 * one, "{many} s of 2000 rounds, {one} s of 2");
    let error = Job::parse(
        &STUDY.replace("members = 4", "members = 9"),
        "m.toml",
        Path::new(""),
        &Version { raidlab: "1".into(), commit: None },
    );
    assert!(error.expect_err("impossible").to_string().contains("no point of the sweep can be"));
}

/// Of many points some are looked at: all have as many cells, or about so many; and what cannot be is one row.
#[test]
fn cells_are_counted_without_looking_at_each_point() {
    let seeds = "[[sweep.axes]]\nkey = \"seed\"\nfrom = 1\nto = 1000\n";
    let (study, axes) = STUDY.split_once("\n[[sweep.axes]]").expect("axes");
    let counted = |text: &str| raidlab_sweep::count(&job(text));
    let alike = counted(&format!("{study}\n{seeds}"));
    assert_eq!((alike.points, alike.cells, alike.is_exact), (1_000, 2_000.0, true));
    assert!(alike.looked_at < 1_000 && alike.tried == 0, "{alike:?}");
    let one = study.replace("{ level = \"raid1\", members = 2 }, ", "");
    assert_eq!(counted(&format!("{one}\n{seeds}")).cells, 1_000.0, "a cell each");
    let uneven = counted(&format!("{STUDY}\n{seeds}"));
    assert_eq!((uneven.points, uneven.is_exact, uneven.impossible), (4_000, false, 0));
    // Half of them have two cells and half four.
    assert!((uneven.cells / 12_000.0 - 1.0).abs() < 0.1, "{}", uneven.cells);
    let some = axes.replace(
        "key = \"layouts.chunk\"\nvalues = [\"64KiB\", \"512KiB\"]",
        "key = \"layouts[1].members\"\nvalues = [3, 9, 4, 10]",
    );
    let some = counted(&format!("{study}\n[[sweep.axes]]{some}"));
    assert_eq!((some.points, some.looked_at, some.impossible), (8, 8, 4));
    // Of two that can be two and four cells, of two that cannot one row each.
    assert_eq!((some.cells, some.is_exact), (2.0 * (2.0 + 4.0) + 4.0, true));
    let why = some.why.expect("the first says why");
    assert!(why.contains("9 members need more drives"), "{why}");
}

#[test]
fn a_report_tells_states_and_metrics_apart_and_no_text_breaks_it() {
    let of = |state: &str, metric: &str, chunk: &str, median: f64| {
        let text = line(0, chunk, "higher", median, 1.0);
        text.replace("\"healthy\"", &format!("\"{state}\""))
            .replace("\"m\"", &format!("\"{metric}\""))
    };
    let mut lines = vec![
        of("healthy", "iops", "a|b", 100.0),
        of("healthy", "iops", "c", 400.0),
        of("degraded", "iops", "a|b", 50.0),
        of("healthy", "kps", "a|b", 7.0),
    ];
    lines.push(
        of("healthy", "iops", "c", 0.0).replace("\"error\":null", "\"error\":\"first\\nsecond\""),
    );
    let text = report(&lines);
    for (head, count) in [
        ("## read, 2 processes, healthy: iops (1/s)", 2),
        ("## read, 2 processes, degraded: iops (1/s)", 1),
        ("## read, 2 processes, healthy: kps (1/s)", 1),
    ] {
        let (_, section) = text.split_once(head).unwrap_or_else(|| panic!("{head}: {text}"));
        let (section, _) = section.split_once("\n## ").unwrap_or((section, ""));
        assert!(section.contains(&format!("| all |  | {count} |")), "{head}: {section}");
    }
    // Rows of the table have five columns, whatever stands in them; an error is one line.
    assert!(text.contains("| layouts.chunk | a\\|b | 1 | 100.0 | -50.0 % |"), "{text}");
    assert!(text.contains("\n- 1 times, first at point 0: first second\n"), "{text}");
}

#[cfg(not(feature = "parquet"))]
#[test]
fn parquet_that_was_not_built_in_is_said() {
    let told = raidlab_sweep::ParquetColumns::new().expect_err("not built in").to_string();
    assert!(told.contains("--features parquet"), "{told}");
}

#[cfg(feature = "parquet")]
#[test]
fn rows_become_parquet() {
    use parquet::file::reader::SerializedFileReader;
    use parquet::record::Field;
    use raidlab_sweep::{ParquetColumns, ParquetFile};

    // A key with text and one with whole numbers; the last point cannot be.
    let text = STUDY.replace("\"64KiB\", \"512KiB\"", "\"64KiB\", \"1000KiB\"").replace(
        "key = \"processes\"\nvalues = [[1], [1, 4]]",
        "key = \"rounds\"\nvalues = [1, 2]",
    );
    let scratch = Scratch::new("parquet");
    let job = job(&text);
    let shards = Shards::create(&scratch.0, &job.head(1)).expect("made");
    run_shard(&job, &shards, 1, &NEVER, false, &mut |_| {}).expect("run");
    let rows = read(&scratch.0);
    let merge = Merge::of(std::slice::from_ref(&scratch.0)).expect("readable");
    let mut columns = ParquetColumns::new().expect("built in");
    merge.rows(|line| columns.look(line)).expect("rows");
    let mut bytes = Vec::new();
    let mut file = ParquetFile::new(&mut bytes, &columns).expect("begun");
    merge.rows(|line| file.add(line)).expect("rows");
    file.finish().expect("written");

    let path = scratch.0.join("rows.parquet");
    fs::write(&path, bytes).expect("written");
    let reader = SerializedFileReader::try_from(path.as_path()).expect("Parquet");
    let table: Vec<_> = reader.into_iter().map(|row| row.expect("a row")).collect();
    assert_eq!(table.len(), rows.len());
    let field = |at: usize, name: &str| -> Field {
        let mut fields = table[at].get_column_iter();
        fields.find(|(column, _)| *column == name).expect("such a column").1.clone()
    };
    let mut with_error = 0;
    for (at, row) in rows.iter().enumerate() {
        assert_eq!(field(at, "cell"), Field::Str(row["cell"].as_str().expect("text").to_owned()));
        let chunk = row["keys"]["layouts.chunk"].as_str().expect("text");
        assert_eq!(field(at, "key layouts.chunk"), Field::Str(chunk.to_owned()));
        let rounds = row["keys"]["rounds"].as_u64().expect("a number");
        assert_eq!(field(at, "key rounds"), Field::ULong(rounds));
        match row["error"].as_str() {
            Some(error) => {
                with_error += 1;
                assert_eq!(field(at, "error"), Field::Str(error.to_owned()));
                assert_eq!(field(at, "median"), Field::Null);
            }
            None => {
                let seed = row["seed"].as_u64().expect("a number");
                assert_eq!(field(at, "seed"), Field::ULong(seed));
                let median = row["metrics"][0]["median"].as_f64().expect("a number");
                assert_eq!(field(at, "median"), Field::Double(median));
                assert_eq!(field(at, "error"), Field::Null);
            }
        }
    }
    assert!(with_error > 0 && with_error < rows.len(), "{with_error} of {}", rows.len());
}

#[cfg(feature = "parquet")]
#[test]
fn a_parquet_column_of_numbers_has_only_numbers() {
    use raidlab_sweep::ParquetColumns;

    let row = &rows("kinds", STUDY, 1)[0];
    let kind = |values: &[Value]| {
        let mut columns = ParquetColumns::new().expect("built in");
        for value in values {
            let mut row = row.clone();
            row["keys"] = serde_json::json!({ "a": value });
            columns.look(row.to_string().as_bytes()).expect("a row");
        }
        format!("{columns:?}")
    };
    let (one, half, less) = (Value::from(1), Value::from(0.5), Value::from(-1));
    let text = Value::from("64KiB");
    assert!(kind(&[one.clone(), one.clone()]).contains("(\"key a\", Whole)"));
    assert!(kind(&[one.clone(), half]).contains("(\"key a\", Real)"));
    assert!(kind(&[less, one.clone()]).contains("(\"key a\", Real)"));
    assert!(kind(&[one.clone(), text.clone(), one]).contains("(\"key a\", Text)"));
    assert!(kind(&[text]).contains("(\"key a\", Text)"));
}
