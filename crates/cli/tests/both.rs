//! `raidlab compare --on virtual,DIR`: one study by both clocks, and what the model is off.

use std::fs;
use std::path::PathBuf;

use crate::support::{Ran, Running, SMALL, Scratch, command, names};
use raidlab_results::{Clock, Results};
use raidlab_store::{State, Store};

/// A directory for member files, a study and a store.
struct Place {
    scratch: Scratch,
    on: PathBuf,
}

impl Place {
    fn new(name: &str, study: &str) -> Self {
        let scratch = Scratch::new(&format!("both-{name}"));
        let on = scratch.directory("on");
        scratch.file("study.toml", study);
        Self { scratch, on }
    }

    fn store(&self) -> Store {
        Store::new(self.scratch.path().join("runs"))
    }

    /// The command where the study is; `ON` stands for the directory.
    fn command(&self, arguments: &[&str]) -> std::process::Command {
        let mut command = command();
        command.env("RAIDLAB_STORE", self.store().directory());
        let on = self.on.to_str().expect("text");
        command.args(arguments.iter().map(|argument| argument.replace("ON", on)));
        command.current_dir(self.scratch.path());
        command
    }

    fn raidlab(&self, arguments: &[&str]) -> Ran {
        self.command(arguments).output().expect("the binary runs").into()
    }

    fn document(&self, name: &str) -> Results {
        let text = fs::read_to_string(self.scratch.path().join(name)).expect(name);
        Results::from_json(&text).expect("a document")
    }

    /// Clock, place and end of each run, the oldest first.
    fn runs(&self) -> Vec<(Clock, String, State)> {
        let ids = self.store().ids().unwrap_or_default();
        let run = |id: &String| {
            let list = self.store().list().expect("a list");
            let head = list.into_iter().find(|one| one.id == *id)?.head.ok()?;
            let record = self.store().read(id).ok()?.record;
            Some((record.clock, record.on, head.state))
        };
        ids.iter().filter_map(run).collect()
    }

    fn ids(&self) -> Vec<String> {
        self.store().ids().expect("runs")
    }
}

#[test]
fn a_study_runs_by_both_clocks_and_shows_what_the_model_is_off() {
    let place = Place::new("runs", SMALL);
    let json = ["--json", "out.json", "--html", "page.html", "--csv", "cells", "--rounds", "2"];
    let ran =
        place.raidlab(&[&["compare", "study.toml", "--on", "virtual,ON"][..], &json].concat());
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let on = place.on.to_str().expect("text").to_owned();
    let expected =
        [(Clock::Real, on, State::Done), (Clock::Virtual, "virtual".to_owned(), State::Done)];
    assert_eq!(place.runs(), expected);

    // The measured report, then what `raidlab diff` tells of both runs.
    let ids = place.ids();
    let measured = place.raidlab(&["show", &ids[0]]).good().stdout;
    let residuals = place.raidlab(&["diff", &ids[0], &ids[1]]).good().stdout;
    assert_eq!(ran.stdout, format!("{measured}\n{residuals}"));
    assert!(residuals.contains("of 16 cells (absolute residual)"), "{residuals}");
    assert!(!residuals.contains("only in"), "{residuals}");

    let (measured, modelled) = (place.document("out.json"), place.document("out.virtual.json"));
    assert_eq!((measured.clock, modelled.clock), (Clock::Real, Clock::Virtual));
    assert_eq!(measured.seed, modelled.seed);
    let residuals = fs::read_to_string(place.scratch.path().join("out.residuals.json"));
    let residuals: serde_json::Value =
        serde_json::from_str(&residuals.expect("a file")).expect("JSON");
    assert_eq!(residuals["kind"], "residual");
    let of_single = |cell: &&raidlab_results::Cell| cell.layout == "single";
    let before = measured.cells.iter().find(of_single).expect("a cell").median;
    assert!(
        residuals["cells"].as_array().expect("cells").iter().any(|one| one["before"] == before)
    );
    let expected =
        ["cells", "cells.virtual", "on", "out.json", "out.residuals.json", "out.virtual.json"];
    assert_eq!(names(place.scratch.path())[..6], expected);
    assert!(names(&place.on).is_empty());

    let page = fs::read_to_string(place.scratch.path().join("page.html")).expect("a page");
    assert!(
        page.contains("of 16\u{a0}cells (absolute residual)"),
        "the measured page has the residuals"
    );
    assert!(page.contains("<table class=\"overview"));
    // Modelled members are as large as the files.
    assert_eq!(measured.layouts, modelled.layouts);
}

#[test]
fn the_order_of_both_places_means_nothing_and_quiet_shows_nothing() {
    let place = Place::new("order", SMALL);
    let flags = ["--no-store", "--quiet", "--json", "out.json", "--threads", "1"];
    let ran =
        place.raidlab(&[&["compare", "study.toml", "--on", "ON,virtual"][..], &flags].concat());
    assert_eq!(ran.good().stdout, "");
    assert_eq!(place.document("out.virtual.json").clock, Clock::Virtual);
    assert!(place.runs().is_empty());
}

/// Before anything runs or is recorded.
#[test]
fn what_one_clock_cannot_do_is_refused_before_the_other_begins() {
    let place = Place::new("refused", SMALL);
    let files = SMALL.replace("model = \"nas-8tb-7200\"", "file = \"4MiB\"");
    place.scratch.file("files.toml", files);
    let modelled = "title = \"ffs\"\nfilesystem = \"ffs\"\n";
    place.scratch.file("ffs.toml", SMALL.replace("title = \"A small study\"\n", modelled));
    let cases: [(&[&str], &[&str]); 8] = [
        (&["files.toml", "--on", "virtual,ON"], &["files.toml", "file"]),
        (&["ffs.toml", "--on", "virtual,ON"], &["ffs"]),
        (&["study.toml", "--on", "virtual,"], &["--on virtual,", "one real place"]),
        (&["study.toml", "--on", "virtual,virtual"], &["one real place"]),
        (&["study.toml", "--on", "virtual,ON/none"], &["none", "--on takes `virtual`"]),
        (&["study.toml", "--on", "virtual,ON", "--json", "-"], &["--json -", "two", "name a file"]),
        (&["study.toml", "--on", "virtual,ON", "--markdown", "-"], &["--markdown -"]),
        (
            &["study.toml", "--on", "virtual,ON", "--csv", "a.virtual", "--html", "a"],
            &["--html", "one file"],
        ),
    ];
    for (arguments, words) in cases {
        let ran = place.raidlab(&[&["compare"][..], arguments].concat());
        ran.refused(words);
        assert!(place.runs().is_empty() && names(&place.on).is_empty(), "{arguments:?}");
    }
    let destructive = ["compare", "study.toml", "--on", "virtual,ON", "--destructive"];
    place.raidlab(&destructive).refused(&["--destructive", "block devices only"]);
}

/// Ctrl-C in the measured half: it goes on, and then the modelled one follows.
#[test]
fn a_measured_half_that_was_stopped_goes_on_with_both() {
    let (text, _) = SMALL.split_once("[[workloads]]\nkind = \"dd-read\"").expect("workloads");
    let place = Place::new("measured", &text.replace("rounds = 1", "rounds = 20"));
    let mut run = Running::of(&mut place.command(&["compare", "study.toml", "--on", "virtual,ON"]));
    let has_cells = || {
        let id = place.store().ids().ok()?.pop()?;
        let stored = place.store().read(&id).ok()?;
        (stored.complete_rounds() > 1).then_some(())
    };
    run.wait_until("a round", has_cells);
    run.interrupt();
    let ran = run.finish();
    assert_eq!(ran.code, Some(130), "{}", ran.stderr);
    assert!(ran.stdout.contains("real: times as they passed"), "{}", ran.stdout);
    assert!(!ran.stdout.contains("Modelled beside measured"), "{}", ran.stdout);
    let ids = place.ids();
    assert_eq!(ids.len(), 1);
    assert!(
        ran.stderr.contains(&format!("raidlab compare --resume {}\n", ids[0])),
        "{}",
        ran.stderr
    );
    assert!(names(&place.on).is_empty());

    let ran = place.raidlab(&["compare", "--resume"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(ran.stdout.contains("Modelled beside measured"), "{}", ran.stdout);
    let runs = place.runs();
    assert_eq!(runs.iter().map(|run| run.0).collect::<Vec<_>>(), [Clock::Real, Clock::Virtual]);
    assert!(runs.iter().all(|run| run.2 == State::Done), "{runs:?}");
}

/// Ctrl-C in the modelled half: what was measured is told and kept, and the modelled run goes on by itself.
#[test]
fn a_modelled_half_that_was_stopped_goes_on_by_itself() {
    // A rebuild of real files is over soon, a modelled one of terabytes is not.
    let text = SMALL.replace("rounds = 1", "rounds = 1\nstates = [\"healthy\", \"rebuilding\"]");
    let place = Place::new("modelled", &text);
    let arguments = ["compare", "study.toml", "--on", "virtual,ON", "--threads", "1"];
    let mut run = Running::of(&mut place.command(&arguments));
    let both = || place.store().ids().is_ok_and(|ids| ids.len() == 2).then_some(());
    run.wait_until("the modelled half", both);
    run.interrupt();
    let ran = run.finish();
    assert_eq!(ran.code, Some(130), "{}", ran.stderr);
    let ids = place.ids();
    assert!(ran.stderr.contains(&format!("raidlab diff {} last", ids[0])), "{}", ran.stderr);
    let measured = place.raidlab(&["show", &ids[0]]).good().stdout;
    assert!(ran.stdout.starts_with(&measured), "{}", ran.stdout);
    let ran = place.raidlab(&["compare", "--resume"]).good();
    assert!(ran.stdout.contains("virtual: times as the drive models"), "{}", ran.stdout);
    assert!(place.runs().iter().all(|run| run.2 == State::Done));
    let residuals = place.raidlab(&["diff", &ids[0], "last"]).good().stdout;
    assert!(residuals.contains("Modelled beside measured"), "{residuals}");
}
