//! `raidlab risk`: what it prints, that it is the same each time, and what it refuses.

use crate::support::{self, Scratch, ends_on_signals, raidlab};

const SCOPE: &str = "drives and rebuilds only, not fire, theft, deletion, ransomware, software";

fn risk(arguments: &[&str]) -> support::Ran {
    raidlab([&["risk"], arguments].concat())
}

#[test]
fn ctrl_c_ends_an_answer_and_leaves_no_file() {
    ends_on_signals("risk-interrupted", &["risk", "raid6(128)"]);
}

#[test]
fn words_first_and_ratios_before_them() {
    let scratch = Scratch::new("risk");
    let file = scratch.path().join("risk.json");
    let file = file.to_str().expect("text");
    let ran = risk(&["raid5(4)", "raid6(4)", "--years", "5", "--json", file, "--quiet"]).good();
    assert_eq!((ran.stdout.as_str(), ran.stderr.as_str()), ("", ""));
    let text = std::fs::read_to_string(file).expect("a document");
    let told: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(told["scope"], SCOPE);
    assert_eq!(told["ratios"][0]["layout"], "raid5(4)");
    let ratio = &told["ratios"][0]["array"];
    assert!(ratio["p5"].as_f64() < ratio["central"].as_f64(), "{ratio}");
    assert!(ratio["central"].as_f64() < ratio["p95"].as_f64(), "{ratio}");
    let mission = &told["layouts"][0]["missions"][0];
    let words = mission["array_words"].as_str().expect("words");
    assert!(words.starts_with("about 1 in ") && words.contains("; between 1 in "), "{words}");
    assert!(mission["array_relative_error"].as_f64() <= Some(0.007), "{mission}");
    assert_eq!(mission["scope"], SCOPE);
    let what_ifs = told["layouts"][0]["what_if"].as_array().expect("rows");
    let what: Vec<&str> = what_ifs.iter().filter_map(|row| row["what"].as_str()).collect();
    assert_eq!(
        what,
        [
            "drive replaced at once",
            "one hot spare",
            "latent errors x 10",
            "latent errors / 10",
            "no scrub",
            "common cause 5 %",
            "drives of mixed batches",
            "wrong drive pulled 1 %",
            "rebuild always its mean",
        ]
    );
    let waiting = told["layouts"][0]["waiting_share_of_array_risk"].as_f64().expect("a share");
    assert!((0.3..0.8).contains(&waiting), "{waiting}");
}

#[test]
fn one_seed_one_answer_within_80_columns() {
    let times = ["--replace", "1d..9d", "--rebuild", "20h..90h", "--years", "5", "--quiet"];
    let text = risk(&[&["raid6+0(2x4)", "raid1(2)"], &times[..]].concat()).good().stdout;
    let pair = |seed| risk(&[&["raid1(2)", "--seed", seed], &times[..]].concat()).good().stdout;
    assert_eq!(pair("1"), pair("1"), "no clock and no thread is asked");
    let wide: Vec<&str> = text.lines().filter(|line| line.chars().count() > 80).collect();
    assert!(wide.is_empty(), "{wide:?}");
    let flat = text.split_whitespace().collect::<Vec<_>>().join(" ");
    for words in [
        "Against raid6+0(2x4), the safest here, in 5 years",
        "depending on what nobody knows (failure rate of this model, latent errors, common causes)",
        "less than 1 in 100,000: other causes dominate",
        "of the risk to the array is waiting for another drive (24 h to 9 d)",
        "RAID is not a backup",
        SCOPE,
    ] {
        assert!(flat.contains(words), "`{words}` is not in\n{text}");
    }
    let first = text.find("Against").expect("ratios");
    assert!(first < text.find("losing the array").expect("chances"), "{text}");
}

/// A load is simulated, each seed on its own, and the runs are told.
#[test]
fn rebuilds_are_simulated_under_a_load() {
    let load = ["--load", "random-read size=64MiB", "--drive", "ssd-sata-1tb"];
    let ran = risk(&[&["raid1(2)", "--years", "1", "--json", "-", "--quiet"], &load[..]].concat());
    let told: serde_json::Value = serde_json::from_str(&ran.good().stdout).expect("JSON");
    let runs = told["layouts"][0]["simulated_rebuild_hours"].as_array().expect("runs");
    let hours: Vec<f64> = runs.iter().filter_map(serde_json::Value::as_f64).collect();
    assert_eq!(hours.len(), 20);
    // At md's most, beside nothing: 1.357 h. A load makes it no faster.
    assert!(hours.iter().all(|hours| (1.356..100.0).contains(hours)), "{hours:?}");
}

/// Of a load that is over in a moment no rebuild is extrapolated.
#[test]
fn a_rebuild_of_which_too_little_was_simulated_is_assumed() {
    let load = ["--load", "random-read size=1MiB", "--drive", "ssd-sata-1tb", "--quiet"];
    let text = risk(&[&["raid1(2)", "--years", "1"], &load[..]].concat()).good().stdout;
    let said = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        said.contains("raid1(2): rebuilt not known under load: too little of it was"),
        "{text}"
    );
    assert!(
        said.contains("assumed in 1.4 h to 4.1 h, mean 2.7 h: one full pass to three"),
        "{text}"
    );
}

/// Where only a scrub mends what crashes tear, no scrub is as bad in the row of what if as when it is asked for.
#[test]
fn no_scrub_leaves_torn_stripes_as_they_are() {
    let asked = ["raid5(4)", "--crashes", "12", "--consistency", "none", "--rebuild", "2h"];
    let sector = |more: &[&str], what_if: bool| {
        let rest = ["--years", "5", "--json", "-", "--quiet"];
        let ran = risk(&[&asked[..], more, &rest[..]].concat());
        let told: serde_json::Value = serde_json::from_str(&ran.good().stdout).expect("JSON");
        let layout = &told["layouts"][0];
        let rows = layout["what_if"].as_array().expect("rows").iter();
        let row = rows.clone().find(|row| row["what"] == "no scrub");
        let of = if what_if { row.expect("a row") } else { &layout["missions"][0] };
        of["sector"].as_f64().expect("a chance")
    };
    let (row, asked) = (sector(&[], true), sector(&["--scrub", "never"], false));
    assert!((row / asked - 1.0).abs() < 0.05, "{row} and {asked}");
}

/// An SSD has no rate that a rebuild would come to: md's most holds it.
#[test]
fn ssds_are_rebuilt_as_fast_as_md_lets_them() {
    let pair = ["raid1(2)", "--drive", "ssd-sata-1tb", "--years", "1", "--quiet"];
    let text = risk(&pair).good().stdout;
    assert!(text.contains("rebuilt    in 1.4 h to 4.1 h: one full pass to three"), "{text}");
}

/// Words stand apart, whatever is asked; one drive is one.
#[test]
fn lines_are_words_with_blanks_between() {
    let text =
        risk(&["raid1(2)", "--years", "0.25,1.5", "--wrong-pull", "5", "--quiet"]).good().stdout;
    for (words, next) in
        [("in 0.25 years", " "), ("in 1.5 years", " "), ("wrong drive pulled", " ")]
    {
        for line in text.lines().filter_map(|line| line.split_once(words)) {
            assert!(line.1.starts_with(next), "{words}: {text}");
        }
        assert!(text.contains(words), "{words}: {text}");
    }
    let text = risk(&["single", "--afr-by-age", "1,1.5,2", "--quiet"]).good().stdout;
    assert!(text.contains("single: 1 drive, ") && text.contains("1, 1.5, 2 %"), "{text}");
}

#[test]
fn what_cannot_be_is_named() {
    for (arguments, words) in [
        (&["raid7(4)"][..], "`raid7` is not a level"),
        (&["raid5(2)"], "raid5 needs at least 3 members"),
        (&["raid5(4)", "--replace", "3"], "write a number and a unit: 30m, 36h, 3d, 2w"),
        (&["raid5(4)", "--replace", "never"], "a drive that is never replaced"),
        (&["raid5(4)", "--rebuild", "5d..1d"], "the shorter time comes first"),
        (&["raid5(4)", "--afr", "4,1,2"], "low, central, high, ascending"),
        (&["raid5(4)", "--afr", "1", "--failures", "1/2"], "cannot be used with"),
        (&["raid5(4)", "--failures", "50"], "write N/DAYS, such as 50/3555491"),
        (&["raid5(4)", "--failures", "5/0"], "drive-days: write more than 0"),
        (&["raid5(4)", "--age", "3"], "add --weibull SHAPE"),
        (&["raid5(4)", "--weibull", "0"], "a shape from 0.1 to 10"),
        (&["raid0(4)", "--spares", "1"], "none of these layouts has that"),
        (&["raid5(4)", "--batch", "9"], "the spread of batches is from 0 to 2"),
        (&["raid5(4)", "--wrong-pull", "101"], "at most 100 percent"),
        (&["raid5(4)", "--consistency", "ppl"], "--crashes"),
        (&["raid6(4)", "--crashes", "1", "--consistency", "ppl"], "is for raid5, not raid6"),
        (&["raid5(4)", "--drive", "nas-9tb"], "no such drive"),
        (&["raid5(4)", "--size", "8TB"], "--class"),
        (&["raid5(4)", "--size", "8TB", "--class", "hdd"], "--size gives no figures"),
        (&["raid5(4)", "--size", "8TB", "--drive", "nas-8tb-7200"], "cannot be used with"),
        (&["raid5(4)", "--class", "ssd"], "is of the other class"),
        (&["raid5(4)", "--load", "random-reed"], "did you mean `random-read`?"),
        (&["raid5(4)", "--load", "random-read size=1MiB blok=4KiB"], "did you mean `block`?"),
        (&["raid1(2)", "--load", "random-read size=4KiB"], "give it more to do, such as size="),
        (&["raid5(4)", "--load", "random-read", "--rebuild", "3h"], "cannot be used with"),
        (&["raid5(4)", "--load", "random-read", "--seeds", "3"], "20..=1000"),
        (&["raid5(4)", "--seeds", "30"], "--load"),
        (&["raid5(4)", "--years", "5,1"], "ascending"),
        (&["raid5(4)", "--scrub", "often"], "is no time"),
        (&["raid5(4)", "--scrub", "1d..9d"], "--scrub: write one time"),
    ] {
        let ran = risk(arguments);
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""), "{arguments:?}");
        assert!(ran.stderr.contains(words), "{arguments:?}: {}", ran.stderr);
    }
}
