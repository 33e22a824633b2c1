//! What `compare`, `run` and `replay` write for other programs.

use std::fs;

use crate::support::{Scratch, raidlab};
use serde_json::Value;

#[test]
fn compare_writes_all_forms_at_once() {
    let scratch = Scratch::new("exports-compare");
    let study = scratch.file(
        "small.toml",
        "title = \"small\"\nrounds = 6\n[[drives]]\nname = \"disk\"\nmodel = \"nas-8tb-7200\"\n\
         [[layouts]]\nlevel = \"single\"\n[[workloads]]\nkind = \"random-read\"\nsize = \"256KiB\"\n",
    );
    let file = |name: &str| scratch.path().join(name).to_str().expect("text").to_owned();
    let (study, cells, rounds) =
        (study.to_str().expect("text"), file("cells.csv"), file("rounds.csv"));
    let flags = ["--csv", &cells, "--csv-rounds", &rounds, "--markdown", "-"];
    let ran = raidlab(["compare", study].into_iter().chain(flags)).good();
    assert!(ran.stdout.starts_with("### small\n"), "{}", ran.stdout);
    let lines = |path: &str| fs::read_to_string(path).expect("a file").lines().count();
    assert_eq!((lines(&cells), lines(&rounds)), (2, 7));
    let both = raidlab(["compare", study, "--csv", "-", "--markdown", "-"]);
    both.refused(&["--csv and --markdown cannot both print"]);
    let nowhere = file("no/such.csv");
    raidlab(["compare", study, "--csv-rounds", &nowhere]).refused(&["--csv-rounds", "no/such.csv"]);
    // Quiet, with one file: nothing is printed.
    let quiet = raidlab(["compare", study, "--quiet", "--csv", &cells]).good();
    assert_eq!(quiet.stdout, "");
}

#[test]
fn a_replay_is_a_table_too() {
    let cells = ["--layout", "disk1", "--processes", "1", "--seeds", "1", "--csv", "-"];
    let ran = raidlab(["replay", "pata-2005"].into_iter().chain(cells)).good();
    let head = ran.stdout.lines().next().expect("a head");
    assert!(head.starts_with("study,raidlab,seed,clock,workload,layout,"), "{head}");
    assert!(ran.stdout.lines().skip(1).all(|line| line.contains(",disk1,1,healthy,")));
    assert!(ran.stdout.lines().count() > 1);
}

/// The parts of a run's document that it can be repeated by.
#[test]
fn a_run_tells_drive_parameters_and_host() {
    let run = |arguments: &[&str]| -> Value {
        let all = ["run"].iter().chain(arguments).chain(&["--json", "-"]).copied();
        serde_json::from_str(&raidlab(all).good().stdout).expect("JSON")
    };
    let found = run(&["dd-write", "size=1MiB", "--layout", "raid5(3)", "--drive", "ssd-sata-1tb"]);
    assert_eq!(found["parameters"], serde_json::json!({ "size": "1MiB" }));
    assert_eq!(
        (&found["drive"]["name"], &found["drive"]["count"]),
        (&"ssd-sata-1tb".into(), &3.into())
    );
    assert!(found["drive"]["capacity"].as_u64().expect("bytes") > 900_000_000_000);
    let figures = found["drive"]["figures"].as_array().expect("figures");
    assert!(figures.iter().all(|one| one["source"].is_string()) && figures.len() > 3);
    assert_eq!((&found["host"], &found["job_file"]), (&serde_json::json!({}), &Value::Null));
    let scratch = Scratch::new("exports-run");
    let text = "[job]\nrw=read\nsize=64k\n";
    let job = scratch.file("a.fio", text);
    let found = run(&[job.to_str().expect("text"), "--target", "raw:memory"]);
    assert_eq!((&found["job_file"], &found["drive"]), (&text.into(), &Value::Null));
    assert!(found["host"]["kernel"].is_string() && found["host"]["memory"].is_string(), "{found}");
}

#[test]
fn a_run_is_written_as_values_and_as_markdown() {
    let scratch = Scratch::new("exports-run-files");
    let [json, csv, markdown] = ["json", "csv", "md"]
        .map(|end| scratch.path().join(end).to_str().expect("text").to_owned());
    let files = ["--json", &json, "--csv", &csv, "--markdown", &markdown, "--quiet"];
    let words = ["run", "random-read", "size=256KiB", "span=1GiB"];
    assert_eq!(raidlab(words.into_iter().chain(files)).good().stdout, "");
    let [json, csv, markdown] =
        [json, csv, markdown].map(|path| fs::read_to_string(path).expect("a file"));
    let json: Value = serde_json::from_str(&json).expect("JSON");
    let values = json["values"].as_array().expect("values");
    for one in values {
        let (metric, unit, value) = (&one["metric"], &one["unit"], &one["value"]);
        let row = format!(
            ",,,{},{},{value}\r\n",
            metric.as_str().expect("text"),
            unit.as_str().expect("text")
        );
        assert!(csv.contains(&row), "no {row} in {csv}");
        assert!(markdown.contains(&format!("| {value} |")), "{markdown}");
    }
    assert!(csv.starts_with("workload,target,layout,drive,"), "{csv}");
    assert!(csv.contains("random-read,modelled,"), "{csv}");
    let two = raidlab(["run", "dd-write", "size=1MiB", "--csv", "-", "--json", "-"]);
    two.refused(&["--json and --csv cannot both print"]);
}
