//! The command line of `kernel-cells`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use raidlab_store::shards::{SHARDS_SCHEMA_VERSION, Shards};
use serde_json::json;

/// Runs it in an empty directory of the test's own; gives the names of the files that it leaves there, too.
fn kernel_cells(test: &str, words: &[&str]) -> (Output, Vec<PathBuf>) {
    let directory = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(test);
    let _ = fs::remove_dir_all(&directory);
    fs::create_dir_all(&directory).expect("can be made");
    let mut command = Command::new(env!("CARGO_BIN_EXE_kernel-cells"));
    // Without kernels: nothing is measured, whatever it takes the words for.
    command.env("XDG_CACHE_HOME", &directory).current_dir(&directory).args(words);
    let output = command.output().expect("can be started");
    let left = fs::read_dir(&directory).expect("is there");
    (output, left.map(|entry| entry.expect("is there").path()).collect())
}

#[test]
fn every_command_answers_help_and_takes_no_option_for_a_file() {
    let commands: [&[&str]; 7] =
        [&["list"], &["show"], &["run"], &["join"], &["model"], &["try"], &["report"]];
    for command in commands.into_iter().chain([&["run", "cells", "--kernel", "6.12"][..]]) {
        for help in ["--help", "-h"] {
            let words: Vec<&str> = command.iter().copied().chain([help]).collect();
            let (output, left) = kernel_cells("help", &words);
            assert!(output.status.success() && output.stderr.is_empty(), "{words:?}: {output:?}");
            assert!(output.stdout.starts_with(b"usage: kernel-cells list"), "{words:?}");
            assert!(left.is_empty(), "{left:?}");
        }
    }
    let (output, left) = kernel_cells("no-cell", &["run", "cells", "--cells", "2,9999"]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("--cells 9999: there are") && left.is_empty(), "{said} {left:?}");
    let wrong: [&[&str]; 6] = [
        &["run", "--kernel", "6.12"],
        &["join", "cells.jsonl", "-x"],
        &["model", "--worst"],
        &["try", "--rounds"],
        &["report", "-x"],
        &["report", "cells.jsonl", "-x"],
    ];
    for words in wrong {
        let (output, left) = kernel_cells("no-file", words);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{words:?}: {said}");
        assert!(said.contains("the name of a file goes here"), "{words:?}: {said}");
        assert!(left.is_empty(), "{words:?}: {left:?}");
    }
}

/// What `kernel-cells` of this version writes for two cells, the second in a shard that is not finished.
fn write_shards(directory: &Path, kernel: &str, count: usize, error: Option<&str>) {
    let cell = |number: u64, value: f64| {
        let mut measured = json!({
            "cell": 7 + number, "metric": "iops", "values": [value, value], "other_costs": [value, value],
            "members": [1, 2, 3, 4],
        });
        if let Some(error) = error {
            measured["error"] = error.into();
            measured["values"] = json!([]);
        }
        json!({ "point": number, "part": 0, "parts": 1, "error": error, "measured": measured })
    };
    let head = json!({ "seed": 1, "count": count, "kernel": kernel, "programs": "p", "drives": { "d": "h" } });
    let head = raidlab_store::shards::Head {
        schema_version: SHARDS_SCHEMA_VERSION,
        id: json!({ "head": head, "cells": [7, 8] }).to_string(),
        title: "cells".to_owned(),
        raidlab: "0.1.0".to_owned(),
        commit: None,
        items: 2,
        shards: 2,
    };
    let shards = Shards::create(directory, &head).expect("made");
    let mut writer = shards.take(1, false).expect("free").expect("not finished");
    writer.push(format!("{}\n", cell(0, 100.0)).as_bytes()).expect("the next row");
    writer.finish().expect("whole");
}

#[test]
fn shards_are_joined_into_a_file_once() {
    let directory = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("join-shards");
    let _ = fs::remove_dir_all(&directory);
    let [failed, rows, more, other] =
        ["failed", "rows", "more", "other"].map(|name| directory.join(name));
    fs::create_dir_all(&directory).expect("can be made");
    write_shards(&failed, "6.12", 600, Some("the guest did not connect"));
    write_shards(&rows, "6.12", 600, None);
    write_shards(&more, "6.12", 700, None);
    write_shards(&other, "6.1", 600, None);
    let file = directory.join("cells.jsonl");
    let join = |shards: &Path| {
        let words = ["join", file.to_str().expect("text"), shards.to_str().expect("text")];
        let (output, _) = kernel_cells("join", &words);
        (output.status.success(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    // What could not be run gives way to what could.
    for shards in [&failed, &rows] {
        let (joined, said) = join(shards);
        assert!(joined && said.contains("1 cells added"), "{said}");
        assert!(said.contains("1 of 2 shards are missing: 2"), "{said}");
    }
    for shards in [&rows, &failed] {
        let (joined, said) = join(shards);
        assert!(joined && said.contains("0 cells added"), "{said}");
    }
    let text = fs::read_to_string(&file).expect("written");
    let (head, cells) = raidlab_kernel_study::measured::read(&text).expect("a file of cells");
    assert_eq!((head.kernel.as_str(), cells.len(), cells[0].cell), ("6.12", 1, 7));
    assert_eq!(cells[0].values, [100.0, 100.0]);
    let (joined, said) = join(&other);
    assert!(!joined && said.contains("not of"), "{said}");
    assert_eq!(fs::read_to_string(&file).expect("still there"), text);
    // A drawing of more cells begins as a smaller one does.
    for shards in [&more, &rows] {
        let (joined, said) = join(shards);
        assert!(joined && said.contains("0 cells added"), "{said}");
        let text = fs::read_to_string(&file).expect("still there");
        let (head, cells) = raidlab_kernel_study::measured::read(&text).expect("a file of cells");
        assert_eq!((head.count, cells.len()), (700, 1));
    }
    let left = fs::read_dir(&directory).expect("is there").count();
    assert_eq!(left, 5, "four directories and the file");
    fs::remove_dir_all(&directory).expect("ours");
}
