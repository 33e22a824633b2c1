//! `raidlab doctor`, completions, man pages and the version: what a newcomer and a package ask for.

use std::fs;

use crate::support::{Scratch, raidlab};

const CHECKS: [&str; 12] = [
    "virtual-time",
    "root",
    "io_uring",
    "fuse",
    "loop",
    "md",
    "block-tools",
    "mkfs",
    "mdadm",
    "originals",
    "lab-kernels",
    "lab-programs",
];

#[test]
fn what_is_missing_is_named_with_how_to_get_it() {
    let text = raidlab(["doctor"]).good().stdout;
    let json = raidlab(["doctor", "--json"]).good().stdout;
    let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    let checks = json["checks"].as_array().expect("a list");
    let names: Vec<&str> = checks.iter().filter_map(|check| check["name"].as_str()).collect();
    assert_eq!(names, CHECKS);
    for check in checks {
        let (name, state) = (check["name"].as_str(), check["state"].as_str().expect("a state"));
        let get = check["get"].as_array().expect("a list").len();
        assert_eq!(get == 0, state == "yes", "{check}");
        assert!(["yes", "in part", "no"].contains(&state), "{check}");
        assert!(text.contains(name.expect("a name")), "{text}");
    }
    assert_eq!(checks[0]["state"], "yes", "virtual time needs nothing");
}

/// Programs are looked for by the path, so one that is not there is missing.
#[test]
fn what_a_script_needs_decides_the_exit_status() {
    raidlab(["doctor", "--need", "virtual-time"]).good();
    raidlab(["doctor", "--need", "virtual-tine"]).refused(&["did you mean `virtual-time`?"]);
    let empty = Scratch::new("no-programs");
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_raidlab"));
    command.args(["doctor", "--need", "lab-kernels"]).env("XDG_CACHE_HOME", empty.path());
    let ran = command.output().expect("runs");
    assert_eq!(ran.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&ran.stderr).contains("missing: lab-kernels"), "{ran:?}");
}

#[test]
fn shells_and_man_get_every_command() {
    let list = raidlab(["--help"]).good().stdout;
    let commands = list.lines().skip_while(|line| !line.starts_with("Commands:")).skip(1);
    let commands: Vec<&str> =
        commands.map_while(|line| line.strip_prefix("  ")?.split(' ').next()).collect();
    assert!(commands.contains(&"compare") && commands.contains(&"doctor"), "{list}");
    let shells = ["bash", "zsh", "fish"].map(|shell| raidlab(["completions", shell]).good().stdout);
    let scratch = Scratch::new("man");
    let man = scratch.path().join("man");
    raidlab(["man", man.to_str().expect("a plain path")]).good();
    for command in commands.iter().filter(|one| !one.is_empty() && **one != "help") {
        for text in &shells {
            assert!(text.contains(command), "{command}");
        }
        let page = fs::read_to_string(man.join(format!("raidlab-{command}.1")));
        let page = page.unwrap_or_else(|error| panic!("{command}: {error}"));
        assert!(page.contains(".SH NAME") && page.contains(".SH SYNOPSIS"), "{page}");
    }
    let compare = fs::read_to_string(man.join("raidlab-compare.1")).expect("a page");
    assert!(
        compare.contains("\\-\\-destructive") && compare.contains("raidlab compare"),
        "{compare}"
    );
    let main = fs::read_to_string(man.join("raidlab.1")).expect("a page");
    assert!(main.contains("raidlab\\-compare(1)"), "{main}");
}

#[test]
fn the_version_says_which_commit_or_that_it_is_not_known() {
    let long = raidlab(["--version"]).good().stdout;
    let short = raidlab(["-V"]).good().stdout;
    assert_eq!(short, format!("raidlab {}\n", env!("CARGO_PKG_VERSION")));
    let rest = long.strip_prefix(short.trim_end()).expect("the same version").trim();
    let commit = rest.strip_prefix("(commit ").and_then(|rest| rest.strip_suffix(')'));
    let is_hash =
        |text: &str| text.len() == 40 && text.chars().all(|char| char.is_ascii_hexdigit());
    assert!(commit.is_some_and(is_hash) || rest.starts_with("(built without git"), "{long}");
}
