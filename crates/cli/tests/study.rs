//! `raidlab study`: what is compiled in, and files of one's own.

mod sweep;

use std::fs;
use std::path::Path;

use crate::support::{SMALL, Scratch, raidlab, small_on_files};
use raidlab_results::Results;

/// The studies for common questions, each with two sentences on when to use it.
const READY: [&str; 10] = [
    "nas-4-bays",
    "vm-host",
    "backup",
    "chunks",
    "processes",
    "failures",
    "ssd-mirror",
    "unequal-drives",
    "shared-controller",
    "filesystems",
];

#[test]
fn what_is_compiled_in_is_listed_and_shown() {
    let list = raidlab(["study", "list"]).good().stdout;
    let heads =
        list.lines().take_while(|line| !line.is_empty()).filter(|line| !line.starts_with(' '));
    let names: Vec<&str> = heads.filter_map(|line| line.split(' ').next()).collect();
    let replays = ["pata-2005", "ite8212-2006", "freebsd-2007", "sas-2008", "sata-2018"];
    assert_eq!(names, [&["default", "files"][..], &READY, &replays].concat(), "{list}");
    assert!(list.lines().all(|line| line.chars().count() <= 110), "{list}");
    let json = raidlab(["study", "list", "--json"]).good().stdout;
    let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    for study in json["studies"].as_array().expect("a list") {
        let (name, when) =
            (study["name"].as_str().expect("text"), study["when"].as_str().expect("text"));
        if READY.contains(&name) {
            assert!(
                when.starts_with("Use it ") && when.matches(". It shows ").count() == 1,
                "{name}: {when}"
            );
            assert!(when.ends_with('.') && when.len() < 260, "{name}: {when}");
        }
    }
    assert!(list.contains("Four NAS drives, which layout?"), "{list}");
    let shown = raidlab(["study", "show", "default"]).good().stdout;
    assert_eq!(shown, include_str!("../../../studies/default.toml"));
    raidlab(["study", "show", "sata-2019"]).refused(&["did you mean `sata-2018`?"]);
}

#[test]
fn a_new_study_is_a_good_one_and_nothing_is_overwritten() {
    let scratch = Scratch::new("new-study");
    let file = scratch.path().join("mine.toml");
    let path = file.to_str().expect("a plain path");
    raidlab(["study", "new", path]).good();
    let checked = raidlab(["study", "check", path]).good().stdout;
    assert!(checked.contains("mine.toml: good: ") && checked.contains(" cells, "), "{checked}");
    fs::write(&file, "mine").expect("written");
    raidlab(["study", "new", path]).refused(&["is there already"]);
    assert_eq!(fs::read_to_string(&file).expect("there"), "mine");
}

#[test]
fn a_study_that_cannot_be_run_is_told_before_it_is() {
    let scratch = Scratch::new("check-study");
    let check = |text: &str| {
        let study = scratch.file("study.toml", text);
        raidlab([Path::new("study"), Path::new("check"), &study])
    };
    assert!(check(SMALL).good().stdout.contains("2 layouts, 4 workloads, 16 cells, 1 round"));
    assert!(check(&small_on_files("4MiB")).good().stdout.contains("with --on DIR only"));
    let wrong = SMALL.replace("rounds = 1", "rounds = 0").replace("\"raid5\"", "\"raid57\"");
    let ran = check(&wrong);
    ran.refused(&[
        "study.toml:3: rounds:",
        "study.toml:12: layouts.level: `raid57` is not a level",
    ]);
    check(&SMALL.replace("\"1MiB\"", "\"9TB\"")).refused(&["workloads.size: dd-write 96KiB on"]);
    let with_log = "chunk = \"64KiB\"\nconsistency = \"journal\"\njournal_size = \"9TB\"";
    let log = SMALL.replace("chunk = \"64KiB\"", with_log);
    check(&log).refused(&["study.toml:12: layouts.level: drive 3 has ", "the log on it needs "]);
}

/// Raw arrays answer few newcomers: this one is about files, and can be asked for by its name.
#[test]
fn the_study_of_files_runs_by_its_name() {
    let ran = raidlab(["compare", "files", "--rounds", "1", "--json", "-"]).good();
    let results = Results::from_json(&ran.stdout).expect("a results document");
    assert_eq!(results.cells.iter().filter(|cell| !cell.detail).count(), 6 * 3 * 2);
    let median = |layout: &str| {
        let cells = results.cells.iter().filter(|cell| !cell.detail && cell.processes == 4);
        let found = cells.filter(|cell| cell.layout == layout && cell.workload == "small files");
        found.map(|cell| cell.median).next().expect("a cell")
    };
    // What nobody waits for would be as fast on all of them.
    assert!(median("raid1(2)") < 0.8 * median("raid0(4)"));
}

/// Who knows bonnie++ and fio expects them to measure this machine.
#[test]
fn a_run_that_measures_nothing_says_so() {
    let run = ["run", "dd", "bs=1MiB", "count=4"];
    let modelled = raidlab(run).good();
    let told = "a model: nothing of this machine is measured; --target DIR";
    assert!(modelled.stdout.contains(told), "{modelled:?}");
    let asked_for = raidlab([&run[..], &["--target", "modelled"]].concat()).good();
    assert!(!asked_for.stdout.contains(told), "{asked_for:?}");
}

/// Without a size a job goes over a whole drive, which is said before it does.
#[test]
fn a_job_over_a_whole_drive_says_how_long_it_takes() {
    let scratch = Scratch::new("whole-drive");
    let run = |more: &str| {
        let job = format!("[j]\nrw=read\nbs=4k\nnumber_ios=10\n{more}\n");
        let job = scratch.file("jobs.fio", job).display().to_string();
        raidlab(["run", &job, "--target", "modelled-raw"])
    };
    let whole = run("");
    assert_eq!(whole.code, Some(0), "{}", whole.stderr);
    let said = "note: jobs goes over 7.28 TiB of the array, about ";
    assert!(
        whole.stderr.starts_with(said) && whole.stderr.contains(" to model at most"),
        "{whole:?}"
    );
    run("size=1g").good();
    run("runtime=1").good();
}
