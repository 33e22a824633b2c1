//! `raidlab calibrate`: parameters of the model are found from figures that the model itself gave.

use std::fs;
use std::path::Path;

use crate::support::{Ran, Running, Scratch, names, raidlab};

/// A drive whose rate the study gives; what is given stands behind it.
const STUDY: &str = r#"# What a drive reads and writes.
title = "A drive"
rounds = 1

[[drives]]
name = "disk"
model = "sas-146gb-10k"   # its rate is an estimate

[[layouts]]
level = "single"

[[workloads]]
kind = "dd-write"
size = "24MiB"

[[workloads]]
kind = "dd-read"
size = "24MiB"

[[workloads]]
kind = "random-read"
size = "256KiB"

[[parameters]]
of = "drive disk"
property = "media_rate"   # of the outer tracks
value = { mb_per_s = 80 } # a guess
source = "given cells"
free = true
range = [{ mb_per_s = 20 }, { mb_per_s = 200 }]
"#;

/// The rate that the given figures are made with.
const TRUTH: f64 = 47.1;

fn given(workload: &str, value: f64) -> String {
    format!(
        "\n[[given]]\nlayout = \"single\"\nworkload = \"{workload}\"\nmetric = \"mib_per_s\"\n\
         value = {value}\n"
    )
}

/// The figures of the model with the true rate: writing, reading.
fn figures(scratch: &Scratch) -> [f64; 2] {
    let of = "[[parameters]]";
    let free = STUDY.replace("mb_per_s = 80 ", &format!("mb_per_s = {TRUTH} "));
    // Nothing is given yet, so that nothing may be free.
    let text = free.replace("free = true", "free = false");
    assert!(text.contains(of));
    let path = scratch.file("truth.toml", text);
    let arguments = [Path::new("compare"), &path, Path::new("--json"), Path::new("-")];
    let document: serde_json::Value =
        serde_json::from_str(&raidlab(arguments).good().stdout).expect("JSON");
    let cells = document["cells"].as_array().expect("cells");
    ["dd-write 6MiB", "dd-read 6MiB"].map(|name| {
        let cell = cells.iter().find(|cell| cell["workload"] == name).expect("the cell");
        assert_eq!(cell["metric"], "mib_per_s");
        cell["median"].as_f64().expect("a number")
    })
}

fn study(scratch: &Scratch) -> String {
    let [write, read] = figures(scratch);
    format!("{STUDY}{}{}", given("dd-write 6MiB", write), given("dd-read 6MiB", read))
}

fn calibrate(path: &Path, more: &[&str]) -> Ran {
    let path = path.to_str().expect("a path in UTF-8");
    raidlab([&["calibrate", path], more].concat())
}

fn rate(text: &str) -> f64 {
    let (_, behind) = text.split_once("{ mb_per_s = ").expect("a value");
    behind.split_once(' ').expect("a number").0.parse().expect("a number")
}

#[test]
fn a_rate_is_found_and_written_and_nothing_else_changes() {
    let scratch = Scratch::new("calibrate-found");
    let before = study(&scratch);
    let path = scratch.file("study.toml", &before);
    let ran = calibrate(&path, &[]).good();
    for words in ["1 free parameter, 2 given cells", "drive disk media_rate", "written to"] {
        assert!(ran.stdout.contains(words), "{}", ran.stdout);
    }
    let after = fs::read_to_string(&path).expect("the study");
    let found = rate(&after);
    assert!((found / TRUTH - 1.0).abs() < 0.01, "{found}");

    let (kept, table) = after.split_once("\n# What `raidlab calibrate` came to.\n").expect("one");
    let kept = kept.replace(&format!("mb_per_s = {found} "), "mb_per_s = 80 ");
    assert_eq!(kept.replace("calibrated = true\n", ""), before);
    assert_eq!(kept.matches("calibrated = true\n").count(), 2);
    assert!(table.starts_with("[calibration]\n"), "{table}");
    assert!(table.contains("cells = 2\nparameters = 1\nseeds = 1\n"), "{table}");

    // What was written is what is run: errors are small and marked as calibrated.
    let arguments = [Path::new("compare"), &path, Path::new("--json"), Path::new("-")];
    let document: serde_json::Value =
        serde_json::from_str(&raidlab(arguments).good().stdout).expect("JSON");
    for cell in &document["cells"].as_array().expect("cells")[..2] {
        let published = &cell["published"];
        assert!(published["error_percent"].as_f64().expect("one").abs() < 1.0, "{cell}");
        assert_eq!(published["calibrated"], true);
    }
    let shown = document["settings"]["parameter drive disk media_rate"].as_str().expect("listed");
    assert_eq!(shown, format!("{found} mb_per_s (free, given cells)"));

    // There is nothing better to be found, so that nothing is written again.
    let again = calibrate(&path, &[]).good();
    assert!(again.stdout.contains("not written: no values"), "{}", again.stdout);
    assert_eq!(fs::read_to_string(&path).expect("the study"), after);
}

#[test]
fn any_number_of_threads_finds_the_same_and_a_dry_run_writes_nothing() {
    let scratch = Scratch::new("calibrate-threads");
    let text = study(&scratch)
        + &given("random-read 4KiB", 150.0).replace("mib_per_s", "iops")
        + "fit = false\n";
    let path = scratch.file("study.toml", &text);
    let json = |threads: &str| {
        calibrate(&path, &["--dry-run", "--threads", threads, "--json", "-"]).good().stdout
    };
    let one = json("1");
    assert_eq!(one, json("3"));
    assert_eq!(fs::read_to_string(&path).expect("the study"), text);
    let document: serde_json::Value = serde_json::from_str(&one).expect("JSON");
    assert_eq!(document["is_better"], true);
    let cells = document["cells"].as_array().expect("cells");
    let fitted: Vec<bool> = cells.iter().filter_map(|cell| cell["fitted"].as_bool()).collect();
    assert_eq!(fitted, [true, true, false]);
    assert!(cells[1]["error_left_out"].as_f64().expect("one").abs() < 1.0, "{one}");
    assert!(cells[2]["error_left_out"].is_null() && cells[2]["error"].is_number(), "{one}");

    let ran = calibrate(&path, &["--dry-run"]).good();
    for words in ["not written: --dry-run", "only looked at: single, random-read 4KiB, iops"] {
        assert!(ran.stdout.contains(words), "{}", ran.stdout);
    }
    let new = scratch.path().join("new.toml");
    calibrate(&path, &["--output", new.to_str().expect("UTF-8"), "--seeds", "2"]).good();
    assert_eq!(fs::read_to_string(&path).expect("the study"), text);
    let new = fs::read_to_string(&new).expect("the new study");
    assert_eq!(new.matches("calibrated = true\n").count(), 2, "{new}");
    assert!(new.contains("seeds = 2\n"), "{new}");
}

#[test]
fn what_cannot_be_calibrated_is_refused_with_file_line_and_key() {
    let scratch = Scratch::new("calibrate-refused");
    let second = "\n[[parameters]]\nof = \"drive disk\"\nproperty = \"command_overhead\"\n\
                  value = { us = 200 }\nsource = \"given cells\"\nfree = true\n\
                  range = [{ us = 20 }, { ms = 2 }]\n";
    let two = given("dd-write 6MiB", 40.0) + &given("dd-read 6MiB", 40.0);
    let table: [(String, &str, &[&str]); 5] = [
        (
            format!("{STUDY}{second}{two}"),
            ":37: parameters.free: ",
            &["free parameter 2", "2 given cells to fit at most 1"],
        ),
        (STUDY.into(), ":29: parameters.free: ", &["no given cell to fit"]),
        (
            format!("{}{two}", STUDY.replace("free = true", "free = false")),
            ": parameters: ",
            &["no parameter is free"],
        ),
        (
            format!("{STUDY}{}", given("dd-read 6MiB", 40.0).replace("mib_per_s", "seconds")),
            ":35: given.metric: ",
            &["has no metric `seconds`; it has: mib_per_s"],
        ),
        (
            format!("{STUDY}{two}").replace("{ mb_per_s = 20 }", "{ mb_per_s = 0.5 }"),
            ":30: parameters.range: ",
            &["outer_rate", "1 to 10000 MB/s"],
        ),
    ];
    for (text, place, words) in table {
        let path = scratch.file("study.toml", &text);
        let ran = calibrate(&path, &[]);
        ran.refused(words);
        let begin = format!("error: {}{place}", path.display());
        assert!(ran.stderr.starts_with(&begin), "`{begin}` does not begin: {}", ran.stderr);
        assert_eq!(fs::read_to_string(&path).expect("the study"), text);
    }
    raidlab(["calibrate", "pata-2005"]).refused(&["path of a study file", "studies/replay/NAME"]);
    raidlab(["calibrate", "no/such.toml"]).refused(&["cannot read the study file"]);
    let path = scratch.file("study.toml", format!("{STUDY}{two}"));
    let nowhere = ["--output", "/nowhere/at/all.toml"];
    calibrate(&path, &nowhere).refused(&["/nowhere/at/all.toml", "cannot be written"]);
    calibrate(&path, &["--dry-run", "--output", "new.toml"]).refused(&["cannot be used with"]);
}

#[test]
fn ctrl_c_leaves_the_file_as_it_is() {
    let scratch = Scratch::new("calibrate-interrupted");
    let text = format!("{STUDY}{}", given("dd-read 6MiB", 40.0)).replace("24MiB", "100GiB");
    let path = scratch.file("study.toml", &text);
    let mut run = Running::start([Path::new("calibrate"), &path]);
    let tasks = format!("/proc/{}/task", run.id());
    run.wait_until("threads at work", || {
        let names = fs::read_dir(&tasks).ok()?.flatten();
        let mut names = names.filter_map(|task| fs::read_to_string(task.path().join("comm")).ok());
        names.any(|name| name.starts_with("check-")).then_some(())
    });
    run.interrupt();
    let ran = run.finish();
    let said = (ran.code, ran.stdout.as_str(), ran.stderr.as_str());
    assert_eq!(said, (Some(130), "", "interrupted\n"));
    assert_eq!(fs::read_to_string(&path).expect("the study"), text);
    assert_eq!(names(scratch.path()), ["study.toml"]);
}

#[test]
fn the_study_is_written_though_its_figures_cannot_be() {
    let scratch = Scratch::new("calibrate-full");
    let path = scratch.file("study.toml", study(&scratch));
    let ran = calibrate(&path, &["--quiet", "--json", "/dev/full"]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.stdout.contains("1 free parameter, 2 given cells"), "{ran:?}");
    assert!(ran.stderr.contains("cannot write /dev/full"), "{ran:?}");
    let after = fs::read_to_string(&path).expect("the study");
    assert!((rate(&after) / TRUTH - 1.0).abs() < 0.01, "{after}");
}

#[test]
fn a_study_that_is_printed_has_nothing_beside_it() {
    let scratch = Scratch::new("calibrate-printed");
    let before = study(&scratch);
    let path = scratch.file("study.toml", &before);
    let printed = calibrate(&path, &["--output", "-"]).good().stdout;
    assert!(printed.starts_with("# What a drive reads and writes.\n"), "{printed}");
    assert!((rate(&printed) / TRUTH - 1.0).abs() < 0.01, "{printed}");
    assert!(printed.contains("[calibration]\n") && !printed.contains("free parameter,"));
    assert_eq!(fs::read_to_string(&path).expect("the study"), before);
    // Nothing better is found of what was printed: that is said, but not where the study would be.
    let path = scratch.file("printed.toml", &printed);
    let again = calibrate(&path, &["--output", "-"]);
    assert_eq!((again.code, again.stdout.as_str()), (Some(0), ""));
    assert!(again.stderr.contains("not written: no values"), "{again:?}");
}
