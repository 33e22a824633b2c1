//! `raidlab drive`: what is listed, shown and judged, and what is refused.

use std::io::Write;
use std::path::{Path, PathBuf};

use crate::support::{Ran, Scratch, command, raidlab};
use serde_json::{Value, json};

fn drive(arguments: &[&str]) -> String {
    raidlab([&["drive"], arguments].concat()).good().stdout
}

/// The directory of measured traces; none where they are not installed, which the test says.
fn traces_or_skip(test: &str) -> Option<PathBuf> {
    let named = std::env::var_os("RAIDLAB_TRACES").map(PathBuf::from);
    let default = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/traces");
    let directory = named.unwrap_or_else(default);
    if directory.join("cheetah9LP.trace").exists() {
        return Some(directory);
    }
    // Written past the test harness, which would keep the output of a test that passes.
    let line = format!("skipped: {test}: no traces at {} (RAIDLAB_TRACES)\n", directory.display());
    std::io::stderr().write_all(line.as_bytes()).expect("standard error is open");
    None
}

fn with_traces(directory: &Path, arguments: &[&str]) -> Ran {
    let mut command = command();
    command.env("RAIDLAB_TRACES", directory).arg("drive").args(arguments);
    command.output().expect("the binary runs").into()
}

#[test]
fn list_names_every_drive_with_how_well_it_is_known() {
    let text = drive(&["list"]);
    for (name, kind, _) in raidlab_drives() {
        let line = text.lines().find(|line| line.split(' ').next() == Some(&*name));
        assert!(line.is_some_and(|line| line.contains(kind)), "{name}: {text}");
    }
    let all: Value = serde_json::from_str(&drive(&["list", "--json"])).expect("JSON");
    let listed = all["drives"].as_array().expect("a list");
    for (name, kind, figures) in raidlab_drives() {
        let one = listed.iter().find(|one| one["name"] == *name).expect("listed");
        assert_eq!(one["kind"], kind, "{name}");
        let counts = one["figures"].as_object().expect("counts").values();
        let sum: u64 = counts.filter_map(Value::as_u64).sum();
        assert_eq!(sum, figures as u64, "{name}");
    }
}

/// Name, kind and number of figures of every drive compiled in.
fn raidlab_drives() -> Vec<(String, &'static str, usize)> {
    let drives = raidlab_models::builtin().iter().map(|(name, _)| {
        let drive = raidlab_models::load(name).expect("built in");
        let kind = match drive.kind {
            raidlab_models::DriveKind::HardDisk(_) => "hard-disk",
            raidlab_models::DriveKind::Ssd(_) => "ssd",
            raidlab_models::DriveKind::Smr(_) => "shingled-disk",
        };
        (drive.name, kind, drive.figures.len())
    });
    drives.collect()
}

#[test]
fn show_draws_the_curves_of_a_disk() {
    let text = drive(&["show", "nas-8tb-7200"]);
    for words in [
        "average_seek                             8.0 ms  data sheet  Ultrastar 7K8",
        "Read seek, ms, over distance in cylinders\n16.0 │",
        "Sequential read, MB/s, over place in GB\n255 │",
        "Random 4 KiB a second over requests in flight, write buffer full\n    1 read ",
        "\n   32 read ",
    ] {
        assert!(text.contains(words), "`{words}` is not in: {text}");
    }
    let braille = text.chars().filter(|letter| ('\u{2801}'..='\u{28ff}').contains(letter)).count();
    assert!(braille > 60, "{text}");
    // Without UTF-8 nothing else than ASCII.
    let mut plain = command();
    plain.env("LC_ALL", "C").args(["drive", "show", "nas-8tb-7200"]);
    let plain = Ran::from(plain.output().expect("runs")).good().stdout;
    assert!(plain.is_ascii() && plain.contains("16.0 |"), "{plain}");
    // The same command prints the same.
    assert_eq!(text, drive(&["show", "nas-8tb-7200"]));
}

#[test]
fn show_gives_numbers_as_json() {
    let show = |name: &str| -> Value {
        serde_json::from_str(&drive(&["show", name, "--json"])).expect("JSON")
    };
    let ssd = show("ssd-sata-960gb-dc");
    assert_eq!(ssd["name"], "ssd-sata-960gb-dc");
    assert!(ssd["title"].as_str().is_some_and(|it| it.starts_with("960 GB data centre SATA SSD")));
    assert_eq!(ssd["seek_curve"], json!([]));
    let reads = |depth: u64| {
        let all = ssd["random_4kib"].as_array().expect("a list");
        let one = all.iter().find(|one| one["depth"] == depth).expect("listed");
        one["reads_per_s"].as_f64().expect("a number")
    };
    assert!((8_000.0..9_000.0).contains(&reads(1)), "{}", reads(1));
    assert!((90_000.0..100_000.0).contains(&reads(32)), "{}", reads(32));
    let figures = ssd["figures"].as_array().expect("a list");
    let dies = figures.iter().find(|one| one["key"] == "dies").expect("listed");
    assert_eq!((&dies["value"], &dies["status"]), (&json!("16 count"), &json!("estimate")));
    assert_eq!(show("smr-8tb-5400")["seek_curve"][0]["cylinders"], 1.0);
}

#[test]
fn show_refuses_bad_drives_with_file_line_and_key() {
    raidlab(["drive", "show", "nas-9tb"]).refused(&["no such drive; known: ", "nas-8tb-7200"]);
    raidlab(["drive", "show", "no/such.toml"]).refused(&["no/such.toml: cannot read"]);
    let scratch = Scratch::new("drive-bad");
    let good = std::fs::read_to_string(
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../drives/ssd-sata-1tb.toml"),
    )
    .expect("a drive file");
    let bad = |key: &str, value: &str, words: &[&str]| {
        let line =
            1 + good.lines().position(|line| line.starts_with(&format!("{key} = "))).unwrap();
        let old = good.lines().nth(line - 1).unwrap();
        let path = scratch.file("bad.toml", good.replace(old, value)).display().to_string();
        let place = if value.is_empty() {
            format!("bad.toml: {key}: ")
        } else {
            format!("bad.toml:{line}: {key}")
        };
        raidlab(["drive", "show", &path]).refused(&[&[&*place], words].concat());
    };
    let figure = |key: &str, value: &str| {
        format!("{key} = {{ {value}, status = \"estimate\", source = \"a test\" }}")
    };
    bad("dies", "", &["the figure is missing"]);
    bad("dies", &figure("dies", "count = 0"), &["must be from 1 to 4096 dies, not 0"]);
    bad("dies", &figure("dies", "count = 4"), &["fewer than the 8 channels"]);
    bad("flash", &figure("flash", "gb = 1000"), &["needs at least 2 % more (1020.2 GB)"]);
    bad(
        "page_read",
        &figure("page_read", "mb = 5"),
        &["page_read.mb: unknown key", "`ms` or `us`"],
    );
    bad("slc_cache", &figure("slc_cache", "gb = 0"), &["go together: give both or neither"]);
    bad("live_data", &figure("live_data", "percent = 101"), &["from 0 to 100 percent"]);
    bad("write_buffer", &figure("write_buffer", "kib = 64"), &["less than one programming"]);
}

#[test]
fn validate_judges_a_model_by_a_trace() {
    let Some(directory) = traces_or_skip("drive::validate_judges_a_model_by_a_trace") else {
        return;
    };
    let text = with_traces(&directory, &["validate", "cheetah9LP"]).good().stdout;
    for words in [
        "Seagate Cheetah 9LP (",
        "10000 requests of ",
        "mean measured, ms           4.273",
        "mean error, %",
        "demerit, % of the mean",
        "p50 modelled / measured",
        "p95 modelled / measured",
        "p99 modelled / measured",
        "read hits measured, %",
        "DiskSim 4.0 on this trace: demerit 2.5 % of the mean",
    ] {
        assert!(text.contains(words), "`{words}` is not in: {text}");
    }
    // The trace may be named, and the same seed gives the same numbers.
    let trace = directory.join("cheetah9LP.trace").display().to_string();
    let json = |trace: &str| {
        let arguments = ["validate", "cheetah9LP", "--trace", trace, "--seed", "3", "--json"];
        with_traces(&directory, &arguments).good().stdout
    };
    assert!(json(&trace).contains("\"measured_mean_ms\": 4.27"), "{}", json(&trace));
    assert_eq!(json(&trace), json(&trace));
}

#[test]
fn validate_refuses_what_cannot_be_judged() {
    let scratch = Scratch::new("drive-validate");
    let nowhere = scratch.path();
    let refused = |arguments: &[&str], words: &[&str]| {
        with_traces(nowhere, &[&["validate"], arguments].concat()).refused(words);
    };
    refused(
        &["cheetah9LP"],
        &["there is no ", "cheetah9LP.trace", "--trace FILE", "RAIDLAB_TRACES"],
    );
    let file = |name: &str, text: &str| scratch.file(name, text).display().to_string();
    let good = file("good.trace", "R Hit 100 8 5000 1000\nR Hit 900 8 5000 1000\n");
    refused(&["no-such-drive", "--trace", &good], &["no such drive"]);
    refused(&["ssd-sata-1tb", "--trace", &good], &["no hard disk"]);
    refused(
        &["nas-8tb-7200", "--trace", "no/such.trace"],
        &["no/such.trace: cannot read the trace"],
    );
    let late = file("negative.trace", "R Hit 100 8 5000 1000\nR Hit 900 8 -5 1000\n");
    refused(&["nas-8tb-7200", "--trace", &late], &["negative.trace:2"]);
    let far = file("far.trace", "R Hit 99999999999999 8 5000 1000\n");
    refused(&["nas-8tb-7200", "--trace", &far], &["far.trace:1"]);
    let report = with_traces(nowhere, &["validate", "nas-8tb-7200", "--trace", &good]);
    assert!(report.good().stdout.contains("2 requests of "));
}
