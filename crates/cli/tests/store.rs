//! Runs that are recorded: listed, shown again, removed; stopped in every way, and gone on with.

use std::collections::BTreeSet;
use std::fs;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::path::{Path, PathBuf};

use crate::support::{Ran, Running, SMALL, Scratch, command, names, small_on_files};
use raidlab_results::{Cell, Results};
use raidlab_store::{State, Store};
use raidlab_study::{cells, order, parse};

/// A store with a directory for member files, and a study beside it.
struct Place {
    scratch: Scratch,
    on: PathBuf,
    study: PathBuf,
}

impl Place {
    fn new(name: &str, study: &str) -> Self {
        let scratch = Scratch::new(&format!("store-{name}"));
        let (on, study) = (scratch.directory("on"), scratch.file("study.toml", study));
        Self { scratch, on, study }
    }

    fn runs(&self) -> PathBuf {
        self.scratch.path().join("runs")
    }

    fn store(&self) -> Store {
        Store::new(self.runs())
    }

    /// The command with these arguments; `STUDY` and `ON` stand for the paths.
    fn command(&self, arguments: &[&str]) -> std::process::Command {
        let mut command = command();
        command.env("RAIDLAB_STORE", self.runs());
        for argument in arguments {
            match *argument {
                "STUDY" => command.arg(&self.study),
                "ON" => command.arg(&self.on),
                other => command.arg(other),
            };
        }
        command
    }

    fn raidlab(&self, arguments: &[&str]) -> Ran {
        self.command(arguments).output().expect("the binary runs").into()
    }

    fn start(&self, arguments: &[&str]) -> Running {
        Running::of(&mut self.command(arguments))
    }

    /// The only run.
    fn id(&self) -> String {
        let ids = self.store().ids().expect("runs");
        assert_eq!(ids.len(), 1, "{ids:?}");
        ids[0].clone()
    }

    fn file(&self) -> PathBuf {
        self.runs().join(format!("{}.jsonl", self.id()))
    }

    /// The complete lines of the only run; none before there is one.
    fn lines(&self) -> Vec<String> {
        let Ok(ids) = self.store().ids() else { return Vec::new() };
        let path = |id: &String| self.runs().join(format!("{id}.jsonl"));
        let bytes = ids.first().and_then(|id| fs::read(path(id)).ok()).unwrap_or_default();
        let end = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        String::from_utf8_lossy(&bytes[..end]).lines().map(str::to_string).collect()
    }

    /// Waits until so many runs of cells are recorded.
    fn wait_for(&self, run: &mut Running, count: usize) {
        let is_cell = |line: &&String| line.starts_with("{\"cell\"");
        run.wait_until("recorded cells", || {
            (self.lines().iter().filter(is_cell).count() >= count).then_some(())
        });
    }

    fn state(&self) -> State {
        let list = self.store().list().expect("a list");
        list[0].head.as_ref().expect("a run").state.clone()
    }
}

/// A number below `most`, another in every run of the tests.
fn random(most: usize) -> usize {
    (RandomState::new().build_hasher().finish() % most as u64) as usize
}

#[test]
fn every_run_is_recorded_and_shown_again() {
    let place = Place::new("shown", SMALL);
    let table = place.raidlab(&["compare", "STUDY", "--rounds", "6"]).good().stdout;
    let json = place.raidlab(&["compare", "STUDY", "--rounds", "6", "--no-store", "--json", "-"]);
    let json = json.good().stdout;
    let html = place.scratch.path().join("shown.html");
    let html = html.to_str().expect("text");
    assert_eq!(place.raidlab(&["show", "last"]).good().stdout, table);
    assert_eq!(place.raidlab(&["show", "last", "--json", "-"]).good().stdout, json);
    let id = place.id();
    let shown = place.raidlab(&["show", &id[..13], "--html", html, "-q"]).good();
    assert_eq!(shown.stdout, "");
    assert!(fs::read_to_string(html).expect("a page").starts_with("<!DOCTYPE html>"));

    let list = place.raidlab(&["history"]).good().stdout;
    let last = list.lines().last().expect("a row");
    for word in [&*id, "virtual", "6/6", "done", "A small study"] {
        assert!(last.contains(word), "{word}: {list}");
    }
    let list = place.raidlab(&["history", "--json"]).good().stdout;
    let list: serde_json::Value = serde_json::from_str(&list).expect("JSON");
    assert_eq!(list["runs"][0]["id"], *id);
    assert_eq!((&list["runs"][0]["rounds"], &list["schema_version"]), (&6.into(), &1.into()));
}

#[test]
fn the_record_has_what_is_needed_to_repeat_the_run() {
    let place = Place::new("record", &small_on_files("4MiB"));
    place.raidlab(&["compare", "STUDY", "--on", "ON", "--seed", "7"]).good();
    let stored = place.store().read(&place.id()).expect("a run");
    let record = &stored.record;
    assert_eq!(
        record.command[1..5],
        ["compare", place.study.to_str().expect("text"), "--on", place.on.to_str().expect("text")]
    );
    assert_eq!(record.conditions.study_file.text, small_on_files("4MiB"));
    assert_eq!((record.options.seed, &record.study["seed"]), (Some(7), &7.into()));
    assert_eq!(record.study["layouts"][1]["chunk"], 65536);
    assert_eq!(record.study["layouts"][1]["rotation"], "left-symmetric");
    assert_eq!(record.study["max_rounds"], 1);
    let conditions = &record.conditions;
    assert!(conditions.binary.as_ref().is_some_and(|hash| hash.len() == 16));
    assert!(conditions.machine.kernel.is_some() && conditions.machine.memory > Some(0));
    let directory = conditions.place.as_ref().expect("a directory");
    assert!(directory.filesystem.is_some() && directory.mount_options.is_some());
    let study = parse(&small_on_files("4MiB"), "").expect("a study");
    let study = raidlab_study::Study { seed: 7, measured: true, ..study };
    let keys = cells(&study);
    let planned: Vec<usize> = order(&study, 0)
        .iter()
        .map(|key| keys.iter().position(|one| one == key).unwrap())
        .collect();
    assert_eq!(stored.runs.iter().map(|run| run.cell).collect::<Vec<_>>(), planned);
}

#[test]
fn a_store_that_cannot_be_written_is_a_warning() {
    let place = Place::new("unwritable", SMALL);
    fs::write(place.runs(), "not a directory").expect("a file");
    let ran = place.raidlab(&["compare", "STUDY"]);
    assert_eq!(ran.code, Some(0));
    assert!(ran.stderr.starts_with("warning: this run is not recorded: "), "{}", ran.stderr);
    assert!(ran.stdout.contains("raid5(3)"));
    let ran = place.raidlab(&["compare", "STUDY", "--store", "/proc/nowhere"]);
    assert!(ran.code == Some(0) && ran.stderr.contains("/proc/nowhere"), "{}", ran.stderr);
    place.raidlab(&["compare", "STUDY", "--no-store"]).good();
    let mut off = place.command(&["compare", "STUDY"]);
    Ran::from(off.env("RAIDLAB_STORE", "off").output().expect("runs")).good();
    let mut off = place.command(&["history"]);
    Ran::from(off.env("RAIDLAB_STORE", "off").output().expect("runs")).refused(&["--store"]);
}

/// Killed and interrupted, in virtual time: the same document as without. Nobody knows how far a run comes until it is
/// stopped: where that was its end, a longer one is tried.
#[test]
fn a_modelled_run_killed_and_interrupted_goes_on_to_the_same_bytes() {
    let is_tried = [200, 1_000, 5_000, 25_000].into_iter().any(killed_and_interrupted);
    assert!(is_tried, "every run was over before it was stopped");
}

/// `false` when a run of so many rounds has come to its end, or near, before it was stopped.
fn killed_and_interrupted(rounds: u32) -> bool {
    let text = SMALL.replace("rounds = 1", &format!("rounds = {rounds}"));
    let place = Place::new(&format!("virtual-{rounds}"), &text);
    let mut run = place.start(&["compare", "STUDY", "--threads", "2"]);
    place.wait_for(&mut run, 1 + random(500));
    let killed = run.id();
    run.kill();
    let before = place.lines();
    let (all, more) = (16 * rounds as usize, random(300));
    if before.len() + more > all {
        return false;
    }
    assert_eq!(place.state(), State::Killed);
    // As one that goes on has it.
    let taken = place.store().take(&place.id()).expect("nobody has it");
    let other = place.raidlab(&["compare", "--resume", "last"]);
    other.refused(&["another raidlab (process ", &format!("{killed}"), "is writing this run"]);
    place.raidlab(&["rm", "last", "--yes"]).refused(&["is being written; nothing was removed"]);
    drop(taken);

    let stored = || place.store().read(&place.id()).expect("a run");
    let mut run = place.start(&["compare", "--resume"]);
    run.wait_until("more recorded cells", || {
        let stored = stored();
        // Threads end their cells in any order.
        let is_shown = stored.complete_rounds() > 0;
        (is_shown && stored.runs.len() >= before.len() + more).then_some(())
    });
    run.interrupt();
    let ran = run.finish();
    if stored().runs.len() == all {
        return false;
    }
    assert_eq!(ran.code, Some(130), "{}", ran.stderr);
    let hint = format!("to go on: raidlab compare --resume {}\n", place.id());
    assert!(ran.stderr.contains(&hint), "{}", ran.stderr);
    assert_eq!(place.state(), State::Interrupted);
    let partly = place.raidlab(&["show", "last", "--json", "-"]).good().stdout;
    let partly = Results::from_json(&partly).expect("a document");
    assert!(partly.warnings.iter().any(|one| one.starts_with("stopped early: ")));

    let expected = place.raidlab(&["compare", "STUDY", "--no-store", "--json", "-"]).good().stdout;
    let ran = place.raidlab(&["compare", "--resume", "--json", "-", "--threads", "1"]).good();
    assert!(ran.stdout == expected, "another document");
    assert_eq!(place.raidlab(&["show", "last", "--json", "-"]).good().stdout, expected);
    let after = place.lines();
    assert_eq!(after[..before.len()], before);
    place.raidlab(&["compare", "--resume"]).refused(&["no run is unfinished"]);
    place.raidlab(&["compare", "--resume", "last"]).refused(&["is done", "raidlab show"]);
    true
}

/// Kills a run on member files so often, each time after some more cells, and lets it come to its end.
fn killed_on_files(name: &str, kills: usize, rounds: u32) {
    let text = small_on_files("4MiB").replace("rounds = 1", &format!("rounds = {rounds}"));
    let place = Place::new(name, &text);
    fs::write(place.on.join("letter.txt"), "mine").expect("a file");
    let study = parse(&text, "").expect("a study");
    let study = raidlab_study::Study { measured: true, ..study };
    let keys = cells(&study);
    // Far from the end, which comes soon on fast drives.
    let each = keys.len() * rounds as usize / (kills + 1) / 2;
    let mut before: Vec<String> = Vec::new();
    for kill in 0..kills {
        let arguments: &[&str] = match kill {
            0 => &["compare", "STUDY", "--on", "ON", "--rounds", &rounds.to_string()],
            _ => &["compare", "--resume"],
        };
        let mut run = place.start(arguments);
        let count = before.iter().filter(|line| line.starts_with("{\"cell\"")).count();
        place.wait_for(&mut run, count + random(each));
        // Anywhere within a cell.
        std::thread::park_timeout(std::time::Duration::from_micros(random(30_000) as u64));
        run.kill();
        let now = place.lines();
        assert_eq!(now[..before.len()], before, "kill {kill}");
        before = now;
    }
    let ran = place.raidlab(&["compare", "--resume", "--json", "-"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let now = place.lines();
    assert_eq!(now[..before.len()], before);
    let stored = place.store().read(&place.id()).expect("a run");
    let made: Vec<(u32, usize)> = stored.runs.iter().map(|run| (run.round, run.cell)).collect();
    let at = |key| keys.iter().position(|one| *one == key).expect("a cell");
    let of_round = |round| order(&study, round).into_iter().map(move |key| (round, at(key)));
    assert_eq!(made, (0..rounds).flat_map(of_round).collect::<Vec<_>>(), "each once, in order");
    // One that goes on may be killed before it has said so.
    let resumed = stored.resumed.len();
    assert!(stored.is_done() && (1..=kills).contains(&resumed), "{resumed}");
    let results = Results::from_json(&ran.stdout).expect("a document");
    let of: BTreeSet<usize> = results.cells.iter().map(|cell| cell.samples.len()).collect();
    assert_eq!((results.cells.len(), of), (16, BTreeSet::from([rounds as usize])));
    let times = if resumed == 1 { "once".to_string() } else { format!("{resumed} times") };
    let said = format!("stopped and resumed {times}: ");
    assert!(results.warnings.iter().any(|one| one.starts_with(&said)), "{:?}", results.warnings);
    assert_eq!(names(&place.on), ["letter.txt"], "nothing is left over");
}

#[test]
fn a_run_on_files_killed_twice_goes_on_to_its_end() {
    killed_on_files("files", 2, 36);
}

#[test]
#[ignore = "long; cargo test -p raidlab-cli --test all -- --ignored store::"]
fn a_run_on_files_killed_ten_times_goes_on_to_its_end_long() {
    killed_on_files("files-long", 10, 132);
}

/// The finished rounds are there, and the run goes on when what was wrong is right.
#[test]
fn an_error_of_one_cell_loses_no_finished_round() {
    let text = small_on_files("4MiB").replace("rounds = 1", "rounds = 4");
    let place = Place::new("error", &text);
    let mut run = place.start(&["compare", "STUDY", "--on", "ON", "--rounds", "4"]);
    let directory = run.wait_for_files(&place.on, 3);
    place.wait_for(&mut run, 30);
    let member = directory.join("member-0.img");
    run.wait_until_end(|| {
        let open = fs::OpenOptions::new().write(true).open(&member);
        // It goes when the run ends.
        drop(open.and_then(|file| file.set_len(4096)));
    });
    let ran = run.finish();
    let id = place.id();
    assert_eq!(ran.code, Some(1), "{}", ran.stderr);
    assert!(ran.stderr.contains(&format!("raidlab compare --resume {id}\n")), "{}", ran.stderr);
    assert!(matches!(place.state(), State::Failed(why) if why.starts_with("round ")));
    assert!(place.raidlab(&["history"]).good().stdout.contains(" failed "));
    let before = place.lines();
    let shown = place.raidlab(&["show", &id, "--json", "-"]).good().stdout;
    let shown = Results::from_json(&shown).expect("a document");
    assert!(shown.cells.len() == 16 && !shown.cells[0].samples.is_empty());
    let ran = place.raidlab(&["compare", "--resume", &id, "--json", "-"]).good();
    let results = Results::from_json(&ran.stdout).expect("a document");
    assert!(results.cells.iter().all(|cell| cell.samples.len() == 4));
    for (cell, earlier) in results.cells.iter().zip(&shown.cells) {
        assert_eq!(cell.samples[..earlier.samples.len()], earlier.samples);
    }
    assert_eq!(place.lines()[..before.len()], before);
    assert!(names(&place.on).is_empty());
}

/// A run of the study that was stopped by hand: its end, and all lines but the first few, are cut off.
fn stopped(name: &str) -> Place {
    let place = Place::new(name, SMALL);
    place.raidlab(&["compare", "STUDY"]).good();
    let lines = place.lines();
    fs::write(place.file(), lines[..9].join("\n") + "\n{\"cell\":{\"rou").expect("a file");
    place
}

#[test]
fn what_has_changed_is_refused_with_the_difference() {
    let place = stopped("changed");
    let good = fs::read_to_string(place.file()).expect("there");
    let resume = |place: &Place| place.raidlab(&["compare", "--resume"]);
    place.scratch.file("study.toml", SMALL.replace("[1, 2]", "[1, 4]"));
    resume(&place).refused(&["cannot go on", "study.toml:4: was `processes = [1, 2]`, is `proc"]);
    assert_eq!(fs::read_to_string(place.file()).expect("there"), good, "torn tail and all");
    place.scratch.file("study.toml", SMALL);
    let stored = place.store().read(&place.id()).expect("a run");
    let machine = stored.record.conditions.machine;
    let kernel = machine.kernel.expect("a kernel");
    let binary = stored.record.conditions.binary.expect("a hash");
    let drive = "\"drives\":[{\"name\":\"nas-8tb-7200\"";
    for (old, new, said) in [
        (format!("\"kernel\":\"{kernel}\""), "\"kernel\":\"2.6.12\"", "kernel: was 2.6.12, is "),
        (format!("\"binary\":\"{binary}\""), "\"binary\":\"00\"", "binary: was 00, is "),
        (drive.into(), "\"drives\":[{\"name\":\"other\"", "drives[0].name: was other, is nas"),
        ("\"chunk\":65536".into(), "\"chunk\":4096", "study.layouts[1].chunk: was 4096, is 65536"),
    ] {
        assert!(good.contains(&old), "{old}");
        fs::write(place.file(), good.replacen(&old, new, 1)).expect("a file");
        resume(&place).refused(&[said]);
    }
    fs::write(place.file(), &good).expect("a file");
    let expected = place.raidlab(&["compare", "STUDY", "--no-store"]).good().stdout;
    let ran = resume(&place);
    let note = "the last line of the run was not written to its end and does not count\n";
    assert_eq!((ran.code, &*ran.stderr, ran.stdout), (Some(0), note, expected));
}

/// The study, and a drive of its own beside it, lie in a directory below the one that the command is given in.
#[test]
fn a_drive_file_beside_the_study_is_recorded_and_must_stay_as_it_was() {
    let place = Place::new("drive-file", SMALL);
    let (below, drive) =
        (place.scratch.directory("below"), include_str!("../../../drives/nas-8tb-7200.toml"));
    let (study, file) = (below.join("study.toml"), below.join("mine.toml"));
    fs::write(&study, SMALL.replace("nas-8tb-7200", "mine.toml")).expect("a study");
    fs::write(&file, drive).expect("a drive file");
    let raidlab = |arguments: &[&str]| -> Ran {
        let mut command = place.command(arguments);
        command.current_dir(place.scratch.path()).output().expect("runs").into()
    };
    let expected = raidlab(&["compare", "below/study.toml"]).good().stdout;
    let stored = place.store().read(&place.id()).expect("a run");
    let files = &stored.record.conditions.drive_files;
    let paths: Vec<&str> = files.iter().map(|file| file.path.as_str()).collect();
    assert_eq!((paths, &*files[0].text), (vec!["mine.toml"], drive));

    let lines = place.lines();
    fs::write(place.file(), lines[..9].join("\n") + "\n").expect("a file");
    let line = drive.lines().position(|line| line.starts_with("rotation")).expect("a figure") + 1;
    fs::write(&file, drive.replace("rpm = 7200", "rpm = 5400")).expect("a drive file");
    raidlab(&["compare", "--resume"])
        .refused(&["cannot go on", &format!("mine.toml:{line}: was `")]);
    assert_eq!(place.lines(), lines[..9], "nothing was mixed in");
    fs::write(&file, drive).expect("a drive file");
    assert_eq!(raidlab(&["compare", "--resume"]).good().stdout, expected);
}

/// Measuring needs no drive file; going on with what was measured needs all that the study names.
#[test]
fn a_drive_file_that_cannot_be_read_is_told() {
    let place = Place::new("no-drive-file", SMALL);
    let file = place.scratch.file("mine.toml", include_str!("../../../drives/nas-8tb-7200.toml"));
    place.scratch.file("study.toml", SMALL.replace("nas-8tb-7200", "mine.toml"));
    place.raidlab(&["compare", "STUDY", "--on", "ON"]).good();
    fs::write(place.file(), place.lines()[..9].join("\n") + "\n").expect("a file");
    fs::remove_file(&file).expect("there");
    let said = format!("{}: cannot read the drive file", file.display());
    place.raidlab(&["compare", "--resume"]).refused(&[&said]);
    let ran = place.raidlab(&["compare", "STUDY", "--on", "ON"]);
    let warning = format!("warning: this run is not recorded: {said}");
    assert!(ran.code == Some(0) && ran.stderr.starts_with(&warning), "{}", ran.stderr);
    assert_eq!(place.store().ids().expect("runs").len(), 1);
}

/// How far a model can be trusted has a say in verdicts: those of a run that was stopped are those of one that has all
/// these rounds, also where the modelled host is what guests were beside it.
#[test]
fn an_unfinished_modelled_run_is_judged_as_a_finished_one() {
    let host = "host = { kernel = \"linux-6.12\" }\n";
    let place = Place::new("judged", &SMALL.replace("[[drives]]", &format!("{host}[[drives]]")));
    let shown = || {
        let text = place.raidlab(&["show", "last", "--json", "-"]).good().stdout;
        Results::from_json(&text).expect("a document")
    };
    place.raidlab(&["compare", "STUDY"]).good();
    let done = shown();
    let is_known = |cell: &Cell| cell.trust.as_ref().is_some_and(|trust| trust.group.is_some());
    assert!(done.cells.iter().any(|cell| is_known(cell) && cell.verdict.is_some()));
    let lines = place.lines();
    let (kept, end) = lines.split_at(lines.len() - 2);
    assert!(end[0].starts_with("{\"results\""), "{}", end[0]);
    fs::write(place.file(), kept.join("\n") + "\n").expect("a file");
    assert_eq!(shown().cells, done.cells);

    let named = host.replace('"', "\\\"").replace('\n', "\\n");
    let beside = "\"filesystem\":null,\"beside\":\"kernel:6.12\"";
    let first = kept[0].replacen(&named, "", 1).replacen("\"filesystem\":null", beside, 1);
    assert_eq!(first.len(), kept[0].len() - named.len() + beside.len() - 17, "{first}");
    let kept = [&[first], &kept[1..]].concat();
    fs::write(place.file(), kept.join("\n") + "\n").expect("a file");
    assert_eq!(shown().cells, done.cells);
}

/// Study and options come from the record, wherever it goes on from.
#[test]
fn a_run_goes_on_from_another_directory_and_without_its_study_file() {
    let place = Place::new("elsewhere", SMALL);
    let options = ["compare", "study.toml", "--seed", "5", "--size", "512KiB", "--rounds", "2"];
    let mut run = place.command(&options);
    run.current_dir(place.scratch.path());
    Ran::from(run.output().expect("runs")).good();
    let expected = place.raidlab(&["show", "last"]).good().stdout;
    let lines = place.lines();
    fs::write(place.file(), lines[..20].join("\n") + "\n").expect("a file");
    fs::remove_file(&place.study).expect("there");
    let mut run = place.command(&["compare", "--resume", "--json", "out.json"]);
    run.current_dir(&place.on);
    let ran = Ran::from(run.output().expect("runs"));
    let note = "study.toml is no file any more; the study is the one that was recorded\n";
    assert_eq!((ran.code, &*ran.stderr, ran.stdout), (Some(0), note, expected));
    assert_eq!(names(&place.on), ["out.json"]);
    for other in ["--seed", "--rounds", "--size"] {
        let ran = place.raidlab(&["compare", "--resume", "last", other, "3"]);
        assert!(ran.code == Some(2) && ran.stderr.contains("cannot be used with"), "{ran:?}");
    }
}

#[test]
fn another_schema_is_told_and_left_alone() {
    let place = stopped("schema");
    let text = fs::read_to_string(place.file()).expect("there");
    let other = text.replacen("\"schema_version\":1", "\"schema_version\":9", 1);
    fs::write(place.file(), &other).expect("a file");
    let said = "schema_version 9; this version of raidlab reads 1";
    place.raidlab(&["show", "last"]).refused(&[said]);
    place.raidlab(&["compare", "--resume", "last"]).refused(&[said]);
    place.raidlab(&["compare", "--resume"]).refused(&["no run is unfinished"]);
    let list = place.raidlab(&["history"]).good().stdout;
    assert!(list.contains("unreadable") && list.contains(said), "{list}");
    let ran = place.raidlab(&["rm", "--keep", "0", "--yes"]).good();
    assert_eq!(ran.stdout, "no run is to be removed\n");
    assert_eq!(fs::read_to_string(place.file()).expect("there"), other);
}

#[test]
fn runs_are_removed_when_that_is_confirmed() {
    let place = Place::new("remove", SMALL);
    for _ in 0..3 {
        place.raidlab(&["compare", "STUDY"]).good();
    }
    let ids = place.store().ids().expect("runs");
    let ran = place.raidlab(&["rm", "last"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(3), ""));
    assert!(ran.stderr.contains("nothing was removed: give --yes"), "{}", ran.stderr);
    place.raidlab(&["rm", &ids[0], "2001", "--yes"]).refused(&["no run `2001`"]);
    let ran = place.raidlab(&["rm", "--older-than", "90d", "--yes"]).good();
    assert_eq!(ran.stdout, "no run is to be removed\n");
    assert_eq!(place.raidlab(&["rm", "last", "--yes"]).good().stdout, "removed 1 run\n");
    assert_eq!(place.store().ids().expect("runs"), ids[..2]);
    place.raidlab(&["rm", "--keep", "1", "--yes"]).good();
    assert_eq!(place.store().ids().expect("runs"), ids[1..2]);
    assert_eq!(place.raidlab(&["rm"]).code, Some(2), "of nothing");
    let empty = Store::new(Path::new("/nowhere"));
    assert!(empty.ids().expect("none").is_empty());
}
