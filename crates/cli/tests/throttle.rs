//! `raidlab throttle`: curves by policy, the setting to use, and what is refused.

use crate::support::{Scratch, raidlab};
use serde_json::Value;

const STUDY: &str = r#"
title = "Rebuild beside reads"
processes = [2]
drives = [{ name = "nas", model = "nas-8tb-7200", count = 4 }]
layouts = [{ level = "raid0", members = 2 }, { level = "raid5", members = 4 }]
[[workloads]]
kind = "fio"
name = "paced"
rw = "randread"
bs = "8k"
size = "4g"
number_ios = 150
thinktime = 100000
"#;

#[test]
fn curves_end_in_a_setting_to_use() {
    let scratch = Scratch::new("throttle");
    let study = scratch.file("mine.toml", STUDY);
    let study = study.to_str().expect("text");
    let arguments = ["throttle", study, "--policy", "md-max,feedback", "--seeds", "3", "--quiet"];
    let text = raidlab(arguments).good().stdout;
    assert!(text.starts_with("raid5(4), paced, 2 processes, rebuilding"), "{text}");
    // A knee is told, or why none is.
    let is_knee = text.contains("<- knee") && text.contains("sysctl dev.raid.speed_limit_max=");
    assert!(is_knee || text.contains("No knee of md-max is told: "), "{text}");
    assert!(text.contains("RAID is not a backup"), "{text}");
    let held = raidlab([&arguments[..], &["--p99", "1s"]].concat()).good().stdout;
    assert!(held.contains("To use on Linux: sysctl dev.raid.speed_limit_max=200000"), "{held}");
    let held = raidlab([&arguments[..], &["--p99", "250us"]].concat()).good().stdout;
    assert!(held.contains("No setting of md's that was run holds"), "{held}");
    let said = held.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(said.contains("a p99 of 0.25 ms."), "{held}");
    let json = raidlab([&arguments[..], &["--json", "-"]].concat()).good().stdout;
    let told: Value = serde_json::from_str(&json).expect("a document");
    let hours: Vec<f64> = told["points"]
        .as_array()
        .expect("a list")
        .iter()
        .take(8)
        .map(|point| point["rebuild_hours"].as_f64().expect("hours"))
        .collect();
    assert!(
        hours.windows(2).all(|pair| pair[0] >= 0.98 * pair[1]),
        "slower settings take longer: {hours:?}"
    );
    assert!(told["feedback_against_md_at_equal_rebuild_time"].is_array());
    let knees = told["knees"].as_array().expect("a list");
    assert!(knees.iter().all(|knee| knee["setting"].is_null() != knee["why_none"].is_null()));
    missed_targets_are_told(&text, &told);
}

/// Feedback's targets are p99s: rows of runs that are above theirs say by how much.
fn missed_targets_are_told(text: &str, told: &Value) {
    let points = told["points"].as_array().expect("a list");
    let mut missed = 0;
    for point in points.iter().filter(|point| point["policy"] == "feedback") {
        let setting = point["setting"].as_str().expect("words");
        let target = setting.strip_prefix("p99 of ").and_then(|text| text.strip_suffix(" ms"));
        let target: f64 = target.expect("in ms").parse().expect("a number");
        let ratio = point["p99_s"].as_f64().expect("seconds") * 1e3 / target;
        let row = text.lines().find(|line| line.contains(setting)).expect("a row");
        let by = point["p99_missed_by_percent"].as_f64();
        assert!(ratio < 1.01 || by.is_some(), "{row}");
        assert_eq!(row.contains("(misses it by "), by.is_some(), "{row}");
        let is_reachable = point["p99_reachable"].as_bool().expect("is told");
        assert_eq!(row.contains("not reachable"), by.is_some() && !is_reachable, "{row}");
        let floor = told["feedback_floor_p99_s"].as_f64().expect("seconds") * 1e3;
        assert!(is_reachable == (floor <= target) || (floor / target - 1.0).abs() < 0.01, "{row}");
        assert!(by.is_none_or(|by| (by / 100.0 + 1.0 - ratio).abs() < 0.01), "{row}");
        missed += usize::from(by.is_some());
    }
    let said = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let sentence = format!("feedback misses its p99 at {missed} of 8 settings, ");
    assert_eq!(said.contains(&sentence), missed > 0, "{text}");
}

/// raid1 has no more in flight than md's default depth, at which it gives way all the same.
#[test]
fn the_default_depth_of_raid1_gives_way() {
    let scratch = Scratch::new("throttle-depth");
    let text =
        STUDY.replace("{ level = \"raid5\", members = 4 }", "{ level = \"raid1\", members = 2 }");
    let study = scratch.file("mine.toml", text);
    let study = study.to_str().expect("text");
    let arguments = ["throttle", study, "--policy", "md-6.16", "--seeds", "3", "--quiet"];
    let text = raidlab(arguments).good().stdout;
    let said = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(said.contains("a larger sync_io_depth is never reached"), "{text}");
    let json = raidlab([&arguments[..], &["--json", "-"]].concat()).good().stdout;
    let told: Value = serde_json::from_str(&json).expect("a document");
    let tail = |setting: &str| {
        let points = told["points"].as_array().expect("a list");
        let point = points.iter().find(|point| point["setting"] == setting).expect("was run");
        point["p99_s"].as_f64().expect("seconds")
    };
    let (default, beyond) = (tail("sync_io_depth 32"), tail("sync_io_depth 64"));
    assert!(default < 0.5 * beyond, "{default} s and {beyond} s");
}

/// What is over in a moment says nothing of a rebuild of hours.
#[test]
fn too_short_a_run_tells_no_rebuild() {
    let scratch = Scratch::new("throttle-short");
    let text = STUDY.replace("number_ios = 150", "number_ios = 20");
    let study = scratch.file("mine.toml", text.replace("thinktime = 100000\n", ""));
    let study = study.to_str().expect("text");
    let arguments = ["throttle", study, "--policy", "md", "--seeds", "3", "--quiet"];
    let text = raidlab(arguments).good().stdout;
    let row = text.lines().find(|line| line.contains("speed_limit_min 1000 ")).expect("a row");
    assert_eq!(row.matches("unknown").count(), 2, "hours and risk: {row}");
    assert!(text.contains("Give the workload more to do") && !text.contains("sysctl"), "{text}");
    let json = raidlab([&arguments[..], &["--json", "-"]].concat()).good().stdout;
    let told: Value = serde_json::from_str(&json).expect("a document");
    assert!(told["points"][0]["rebuild_hours"].is_null() && told["points"][0]["p99_s"].is_f64());
}

/// A hot spare takes the days away until somebody puts in another drive.
#[test]
fn the_risk_of_a_setting_knows_of_spares() {
    let risk = |layout: &str| {
        let scratch = Scratch::new("throttle-spares");
        let text = STUDY.replace("{ level = \"raid5\", members = 4 }", layout);
        let study = scratch.file("mine.toml", text.replace("count = 4", "count = 5"));
        let study = study.to_str().expect("text");
        let arguments = ["throttle", study, "--policy", "md-max", "--seeds", "3", "--quiet"];
        let json = raidlab([&arguments[..], &["--json", "-"]].concat()).good().stdout;
        let told: Value = serde_json::from_str(&json).expect("a document");
        // The fastest: of slow ones the rebuild itself is nearly all of it.
        let fastest = told["points"].as_array().expect("a list").last().expect("a point");
        fastest["array_loss_5_years"].as_f64().expect("a chance")
    };
    let without = risk("{ level = \"raid5\", members = 4 }");
    let with = risk("{ level = \"raid5\", members = 4, spares = 1 }");
    assert!(with < 0.8 * without, "{with} and {without}");
}

#[test]
fn what_cannot_be_is_refused_by_name() {
    let scratch = Scratch::new("throttle-bad");
    let study = scratch.file("mine.toml", STUDY);
    let study = study.to_str().expect("text");
    let refused = |flags: &[&str], words: &[&str]| {
        raidlab([&["throttle", study], flags].concat()).refused(words);
    };
    refused(&["--policy", "feedbak"], &["did you mean `feedback`"]);
    refused(&["--layout", "raid6(4)"], &["raid6(4)", "raid5(4)"]);
    refused(&["--layout", "raid0(2)"], &["does not survive"]);
    refused(&["--workload", "dd"], &["paced"]);
    refused(&["--p99", "fast"], &["--p99 fast"]);
}
