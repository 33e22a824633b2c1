//! `raidlab diff` on what `compare --json` writes.

use std::path::{Path, PathBuf};

use crate::support::{self, Scratch, raidlab};

const STUDY: &str = "title = \"small\"\nrounds = 6\n\
    [[drives]]\nname = \"disk\"\nmodel = \"nas-8tb-7200\"\ncount = 2\n\
    [[layouts]]\nlevel = \"single\"\n[[layouts]]\nlevel = \"raid1\"\nmembers = 2\n\
    [[workloads]]\nkind = \"random-read\"\nsize = \"256KiB\"\n";

/// The document of a run with these flags.
fn document(scratch: &Scratch, name: &str, flags: &[&str]) -> PathBuf {
    let study = scratch.file("small.toml", STUDY);
    let path = scratch.path().join(name);
    let (study, json) = (study.to_str().expect("text"), path.to_str().expect("text"));
    let arguments = ["compare", study, "--quiet", "--json", json];
    raidlab(arguments.into_iter().chain(flags.iter().copied())).good();
    path
}

fn diff(before: &Path, after: &Path, flags: &[&str]) -> support::Ran {
    let files = [before, after].map(|path| path.to_str().expect("text"));
    raidlab(["diff"].into_iter().chain(files).chain(flags.iter().copied()))
}

/// The same document with a layout's samples times a factor.
fn scaled(path: &Path, layout: &str, factor: f64) -> PathBuf {
    let text = std::fs::read_to_string(path).expect("a document");
    let mut results = raidlab_results::Results::from_json(&text).expect("a document");
    for cell in results.cells.iter_mut().filter(|cell| cell.layout == layout) {
        cell.median *= factor;
        cell.samples.iter_mut().for_each(|sample| *sample *= factor);
    }
    let scaled = path.with_extension("scaled.json");
    std::fs::write(&scaled, results.to_json().expect("finite")).expect("written");
    scaled
}

#[test]
fn nothing_changed() {
    let scratch = Scratch::new("diff-same");
    let one = document(&scratch, "one.json", &[]);
    let other = document(&scratch, "other.json", &["--threads", "1"]);
    let ran = diff(&one, &other, &[]).good();
    assert!(ran.stdout.contains("0 regressed, 0 improved, 0 equal, 2 unchanged"), "{}", ran.stdout);
}

#[test]
fn a_regression_is_an_exit_status() {
    let scratch = Scratch::new("diff-regressed");
    let one = document(&scratch, "one.json", &[]);
    let slower = scaled(&one, "raid1(2)", 0.8);
    let ran = diff(&one, &slower, &[]);
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(4), "regressed: 1 cell\n"), "{ran:?}");
    assert!(ran.stdout.contains("-20 %"), "{}", ran.stdout);
    // The other way round it is better, and below a higher floor it means nothing.
    assert!(diff(&slower, &one, &[]).good().stdout.contains("+25 %"));
    diff(&one, &slower, &["--floor", "30%"]).good();
    let ran = diff(&one, &slower, &["--json", "-"]);
    assert_eq!(ran.code, Some(4));
    let json: serde_json::Value = serde_json::from_str(&ran.stdout).expect("JSON");
    assert_eq!(json["counts"]["regressed"], 1);
    assert_eq!(json["cells"][0]["verdict"], "regressed");
}

#[test]
fn another_seed_is_a_run_apart() {
    let scratch = Scratch::new("diff-seed");
    let one = document(&scratch, "one.json", &[]);
    let other = document(&scratch, "other.json", &["--seed", "2"]);
    let ran = diff(&one, &other, &["--floor", "50"]).good();
    assert!(ran.stdout.contains("as two runs apart"), "{}", ran.stdout);
    assert!(ran.stdout.contains("seed: 1 -> 2"), "{}", ran.stdout);
}

#[test]
fn what_cannot_be_compared_is_refused() {
    let scratch = Scratch::new("diff-refused");
    let one = document(&scratch, "one.json", &[]);
    let missing = scratch.path().join("missing.json");
    diff(&one, &missing, &[]).refused(&["missing.json", "--json"]);
    diff(&one, &scratch.file("bad.json", "{}"), &[]).refused(&["bad.json", "results document"]);
    let old = "{\"schema_version\": 1}";
    diff(&scratch.file("old.json", old), &one, &[]).refused(&["old.json", "schema_version 1"]);
    let wrong = diff(&one, &one, &["--floor", "-1"]);
    assert_eq!(wrong.code, Some(2), "{wrong:?}");
}
