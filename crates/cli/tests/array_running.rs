//! `raidlab array assemble` and the commands to what it runs: administration, reading without a change, an overlay, a
//! served file, NBD, both.

mod beside;
mod control;
mod journal;
mod lost;
mod mounted;
mod refused;
mod scrubs;
mod served;
mod spares;
mod stacked;

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::root;
use crate::support::{Ran, Scratch, command, raidlab};

const MIB: u64 = 1 << 20;
/// Nothing depends on it while all is well.
const PATIENCE: Duration = Duration::from_secs(120);

/// Devices of a test, and where the array's socket is.
struct Harness {
    scratch: Scratch,
}

/// An array that runs; killed with the test.
struct Run(Child);

impl Drop for Run {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Harness {
    /// Makes an array of files `0`, `1`, ... and blank files `x` and `y`.
    fn new(name: &str, layout: &str, members: usize, flags: &[&str]) -> Self {
        let harness = Self { scratch: Scratch::new(name) };
        let mut files: Vec<String> =
            (0..members).map(|number| harness.path(&number.to_string())).collect();
        for file in files.iter().chain(&[harness.path("x"), harness.path("y")]) {
            fs::write(file, vec![0; 8 * MIB as usize]).unwrap();
        }
        let mut arguments = vec!["array".to_owned(), "create".into(), layout.into()];
        arguments.append(&mut files);
        arguments.extend(flags.iter().map(|flag| (*flag).to_owned()));
        raidlab(arguments).good();
        harness
    }

    fn path(&self, name: &str) -> String {
        self.scratch.path().join(name).to_str().expect("text").to_owned()
    }

    /// Runs the array of these devices, up to its first line.
    fn assemble(&self, devices: &[&str], flags: &[&str]) -> Run {
        let mut child = self.assembling(devices, flags).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let run = Run(child);
        assert!(line.contains("raid"), "it does not run: {line:?}");
        run
    }

    fn assembling(&self, devices: &[&str], flags: &[&str]) -> Command {
        let mut run = command();
        run.args(["array", "assemble", "--socket", &self.path("s")]);
        run.args(devices.iter().map(|device| self.path(device))).args(flags);
        run.stdout(Stdio::piped()).stderr(Stdio::null());
        run
    }

    /// Gives the running array a command.
    fn ask(&self, verb: &str, arguments: &[&str]) -> Ran {
        command().args(["array", verb, &self.path("s")]).args(arguments).output().unwrap().into()
    }

    fn status(&self) -> String {
        self.ask("status", &["--json"]).good().stdout
    }

    fn until(&self, what: &str) {
        let begun = Instant::now();
        while !self.status().contains(what) {
            assert!(begun.elapsed() < PATIENCE, "never: {what}\n{}", self.status());
        }
    }

    fn stop(&self, mut run: Run) {
        self.ask("stop", &[]).good();
        assert!(run.0.wait().unwrap().success());
        assert!(!Path::new(&self.path("s")).exists(), "the socket is gone");
    }

    fn bytes(&self, devices: &[&str]) -> Vec<Vec<u8>> {
        devices.iter().map(|device| fs::read(self.path(device)).unwrap()).collect()
    }
}

const WHOLE: &str = "\"incomplete\": 0";

/// The status tells what keeps redundancy consistent.
#[test]
fn the_status_says_what_keeps_redundancy_consistent() {
    for (flags, policy, words) in [
        (&["--bitmap", "internal"][..], "\"bitmap\"", "by a write-intent bitmap"),
        (&["--ppl"], "\"ppl\"", "by a log of partial parity"),
        (&["--bitmap", "none"], "\"resync\"", "by a resync of everything after a crash"),
    ] {
        let flags = [flags, &["--assume-clean"]].concat();
        let harness = Harness::new("running-policy", "raid5 chunk=64K", 3, &flags);
        let run = harness.assemble(&["0", "1", "2"], &["--write"]);
        let document = harness.status();
        assert!(document.contains(&format!("\"consistency\": {policy}")), "{document}");
        let text = harness.ask("status", &[]).good().stdout;
        assert!(text.contains(&format!("redundancy is kept consistent {words}\n")), "{text}");
        harness.stop(run);
        // An array that is only read keeps nothing.
        let run = harness.assemble(&["0", "1", "2"], &[]);
        assert!(harness.status().contains("\"consistency\": null"));
        assert!(!harness.ask("status", &[]).good().stdout.contains("kept consistent"));
        harness.stop(run);
    }
}

/// The first resync of a new array is not said to be for the sake of an unclean stop.
#[test]
fn a_new_array_is_synchronised_first() {
    let harness = Harness::new("running-new", "raid6 chunk=64K", 4, &[]);
    let devices = ["0", "1", "2", "3"];
    let mut assembling = harness.assembling(&devices, &["--write"]);
    let mut run = Run(assembling.stderr(Stdio::piped()).spawn().unwrap());
    let mut line = String::new();
    BufReader::new(run.0.stdout.take().unwrap()).read_line(&mut line).unwrap();
    harness.until("\"consistent\": true");
    let mut stderr = run.0.stderr.take().unwrap();
    harness.stop(run);
    let mut told = String::new();
    stderr.read_to_string(&mut told).unwrap();
    let words = "it was never synchronised yet: ";
    assert!(told.contains(words) && !told.contains("not stopped cleanly"), "{told}");
    let status = ["array".into(), "status".into()].into_iter();
    let found = raidlab(status.chain(devices.map(|device| harness.path(device))));
    assert!(found.stdout.contains("all members there; stopped cleanly"), "{found:?}");
}

/// What has no redundancy is not compared, and nothing keeps it consistent.
#[test]
fn an_array_without_redundancy_has_nothing_to_check() {
    let harness = Harness::new("running-raid0", "raid0 chunk=64K", 2, &[]);
    let run = harness.assemble(&["0", "1"], &["--write"]);
    for verb in ["check", "repair"] {
        let ran = harness.ask(verb, &[]);
        let words = "raid0(2) chunk=64K has no redundancy: there is nothing";
        assert!(ran.code == Some(1) && ran.stderr.contains(words), "{ran:?}");
    }
    assert!(harness.status().contains("\"consistency\": \"none\""));
    assert!(!harness.ask("status", &[]).good().stdout.contains("kept consistent"));
    harness.stop(run);
}

/// A member fails, comes back, is exchanged and replaced; a spare takes over by itself.
#[test]
fn an_array_is_administered_while_it_runs() {
    let flags = &["--bitmap", "internal", "--assume-clean"];
    let harness = Harness::new("running-admin", "raid5 chunk=64K", 3, flags);
    let run = harness.assemble(&["2", "0", "1"], &["--write"]);
    let second = harness.assembling(&["0"], &["--write"]).output().unwrap();
    assert_eq!(second.status.code(), Some(3), "the socket is in use");
    let (member, other) = (harness.path("0"), harness.path("other"));
    let second = raidlab(["array", "assemble", "--write", &member, "--socket", &other]);
    assert_eq!(second.code, Some(1), "the members are held: {second:?}");
    assert!(harness.ask("check", &[]).good().stdout.contains("0 sectors differ"));
    assert_eq!(harness.ask("status", &["--test"]).code, Some(0));
    for overwrite in [&[][..], &["--overwrite"]] {
        let own = harness.ask("add", &[&[harness.path("1").as_str()], overwrite].concat());
        assert!(own.code == Some(3) && own.stderr.contains("is member 1, in service"), "{own:?}");
    }
    harness.ask("fail", &["1"]).good();
    assert_eq!(harness.ask("status", &["--test"]).code, Some(1));
    harness.ask("remove", &[&harness.path("1")]).good();
    // What was away comes back; of a running member nothing is let go.
    assert!(harness.ask("add", &[&harness.path("1")]).good().stdout.contains("member 1 again"));
    harness.until(WHOLE);
    assert_eq!(harness.ask("remove", &["2"]).code, Some(1));
    // A device on which something stands needs consent.
    fs::write(harness.path("y"), vec![7; 8 * MIB as usize]).unwrap();
    assert_eq!(harness.ask("add", &[&harness.path("y")]).code, Some(3));
    assert!(harness.ask("add", &[&harness.path("x")]).good().stdout.contains("spare"));
    let again = harness.ask("add", &[&harness.path("x")]);
    assert!(again.code == Some(3) && again.stderr.contains("is a spare"), "{again:?}");
    harness.ask("fail", &["0"]).good();
    harness.until("\"spares\": []");
    harness.until("\"missing\": 0");
    harness.until(WHOLE);
    assert_eq!(harness.ask("replace", &["2", &harness.path("y")]).code, Some(3));
    harness.ask("replace", &["2", &harness.path("y"), "--overwrite"]).good();
    harness.until(&format!("\"path\": {:?}", harness.path("y")));
    assert!(harness.ask("repair", &[]).good().stdout.contains("0 sectors differ"));
    harness.stop(run);
    let found = raidlab([
        "array".into(),
        "status".into(),
        harness.path("x"),
        harness.path("1"),
        harness.path("y"),
    ]);
    let found = found.good().stdout;
    assert!(found.contains("all members there; stopped cleanly"), "{found}");
    // Those that left are told.
    let stale = raidlab(["x", "1", "y", "0", "2"].map(|one| harness.path(one)).iter().fold(
        vec!["array".to_owned(), "status".into()],
        |mut all, one| {
            all.push(one.clone());
            all
        },
    ));
    assert!(stale.good().stdout.contains("out of date"));
    assert!(harness.ask("status", &[]).stderr.contains("No such file"));
}

/// Reading changes no byte of an array that is not clean either, and takes no command that would.
#[test]
fn an_array_that_is_only_read_does_not_change() {
    let harness = Harness::new("running-read", "raid6 chunk=64K", 4, &["--bitmap", "internal"]);
    let devices = ["0", "1", "3"];
    let before = harness.bytes(&devices);
    let allow = ["--allow-dirty-degraded"];
    let run = harness.assemble(&devices, &allow);
    for (verb, arguments) in [("fail", &["0"][..]), ("add", &[&harness.path("x")]), ("check", &[])]
    {
        let ran = harness.ask(verb, arguments);
        assert_eq!(ran.code, Some(1), "{verb}: {ran:?}");
        assert!(ran.stderr.contains("reading only"), "{verb}: {ran:?}");
    }
    assert!(harness.status().contains("read-only"));
    harness.stop(run);
    assert!(harness.bytes(&devices) == before);
    // To write, a member that nobody says is missing needs another word.
    let refused =
        harness.assembling(&devices, &["--write"]).stderr(Stdio::piped()).output().unwrap();
    let text = String::from_utf8(refused.stderr).unwrap();
    assert!(text.contains("--run") && refused.status.code() == Some(1), "{text}");
    assert!(harness.bytes(&devices) == before, "what is refused changes nothing");
}

/// With an overlay the array is written and its members are not; it goes on where it was.
#[test]
fn an_overlay_keeps_all_that_is_written() {
    let harness = Harness::new("running-overlay", "raid1", 2, &["--bitmap", "internal"]);
    let devices = ["0", "1"];
    let before = harness.bytes(&devices);
    let overlay = harness.path("o");
    let run = harness.assemble(&devices, &["--overlay", &overlay]);
    harness.until("\"work\": null");
    harness.ask("fail", &["1"]).good();
    assert_eq!(
        harness.ask("add", &[&harness.path("x")]).code,
        Some(1),
        "nothing else is written to"
    );
    let again = harness.assembling(&devices, &["--overlay", &overlay]).output().unwrap();
    assert_eq!(again.status.code(), Some(3), "two arrays in one overlay");
    harness.stop(run);
    assert!(harness.bytes(&devices) == before);
    let run = harness.assemble(&devices, &["--overlay", &overlay]);
    assert!(harness.status().contains("\"missing\": 1"), "what was recorded is found");
    drop(run);
    let run = harness.assemble(&devices, &["--overlay", &overlay]);
    assert!(harness.status().contains("\"missing\": 1"), "also when it is killed");
    harness.stop(run);
    assert!(harness.bytes(&devices) == before);
    cut_short(&harness, &devices, &overlay);
    let other = harness.assembling(&["1", "0"], &["--overlay", &overlay]).output().unwrap();
    assert_eq!(other.status.code(), Some(2), "the overlay of other devices");
    let none = harness.assembling(&devices, &["--overlay", &harness.path("0")]).output().unwrap();
    assert_eq!(none.status.code(), Some(2), "a member is no overlay");
    assert!(harness.bytes(&devices) == before);
    // Beside the overlay the array goes on: what the overlay holds is of another state.
    let run = harness.assemble(&devices, &["--write"]);
    let beside = harness.assembling(&devices, &["--overlay", &harness.path("p")]).output().unwrap();
    assert_eq!(beside.status.code(), Some(3), "what is below is written");
    harness.stop(run);
    let before = harness.bytes(&devices);
    let mut old = harness.assembling(&devices, &["--overlay", &overlay]);
    let old = old.stderr(Stdio::piped()).output().unwrap();
    let told = String::from_utf8(old.stderr).unwrap();
    assert!(old.status.code() == Some(3) && told.contains("was written to since"), "{told}");
    assert!(harness.bytes(&devices) == before);
}

/// An overlay that was cut off anywhere is refused and left as it is: nothing is filled up with zeroes.
fn cut_short(harness: &Harness, devices: &[&str], overlay: &str) {
    let whole = fs::read(overlay).unwrap();
    let head = 4096;
    for len in [whole.len() - 1, whole.len() / 2, head + 1, head] {
        fs::write(overlay, &whole[..len]).unwrap();
        let mut run = harness.assembling(devices, &["--overlay", overlay]);
        let ran = run.stderr(Stdio::piped()).output().unwrap();
        let told = String::from_utf8(ran.stderr).unwrap();
        let words = format!("was cut short: it ends at byte {len} instead of {}", whole.len());
        assert!(ran.status.code() == Some(1) && told.contains(&words), "{told}");
        assert!(fs::read(overlay).unwrap() == whole[..len]);
    }
    fs::write(overlay, whole).unwrap();
}

/// What is only read is not written meanwhile; who writes already is left alone, with a note.
#[test]
fn writers_are_kept_from_what_is_read() {
    let harness = Harness::new("running-held", "raid1", 2, &["--assume-clean"]);
    let devices = ["0", "1"];
    let run = harness.assemble(&devices, &[]);
    let before = harness.bytes(&devices);
    let mut other = command();
    other.args(["array", "assemble", "--write", "--socket", &harness.path("other")]);
    other.args(devices.iter().map(|device| harness.path(device)));
    let mut other = Run(other.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap());
    let (mut line, mut told) = (String::new(), String::new());
    BufReader::new(other.0.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(line, "", "it runs");
    other.0.stderr.take().unwrap().read_to_string(&mut told).unwrap();
    assert!(other.0.wait().unwrap().code() == Some(1) && told.contains("has locked it"), "{told}");
    assert!(harness.bytes(&devices) == before);
    harness.stop(run);
    let run = harness.assemble(&devices, &["--write"]);
    let copy = harness.path("copy");
    let [one, two] = devices.map(|device| harness.path(device));
    let read = raidlab(["array", "export-file", &one, &two, &copy, "--quiet"]);
    assert_eq!((read.code, read.stderr.matches("what is read may change").count()), (Some(0), 2));
    let saved = harness.path("saved");
    let read = raidlab(["array", "dump-metadata", "--to", &saved, &one, &two]);
    assert_eq!((read.code, read.stderr.matches("what is saved may change").count()), (Some(0), 2));
    harness.stop(run);
}

/// The served file holds what is written to it, also after a member was lost and rebuilt under it.
#[test]
fn a_served_file_is_the_array() {
    if !root::can_mount("a_served_file_is_the_array", &[]) {
        return;
    }
    let harness = Harness::new("running-fuse", "raid6 chunk=64K", 4, &["--assume-clean"]);
    let devices = ["0", "1", "2", "3"];
    let file = harness.path("data");
    let run = harness.assemble(&devices, &["--write", "--fuse", &file]);
    let pattern: Vec<u8> = (0..2 * MIB).map(|byte| (byte / 511) as u8).collect();
    let write = |at: usize| {
        use std::os::unix::fs::FileExt;
        let open = fs::File::options().write(true).open(&file).unwrap();
        open.write_all_at(&pattern[at..at + MIB as usize], at as u64).unwrap();
        open.sync_all().unwrap();
    };
    write(0);
    harness.ask("fail", &["2"]).good();
    write(MIB as usize);
    harness.ask("remove", &["2"]).good();
    harness.ask("add", &[&harness.path("x")]).good();
    harness.until("\"missing\": 0");
    harness.until(WHOLE);
    harness.stop(run);
    assert!(Path::new(&file).symlink_metadata().is_err(), "the file is gone");
    // For reading, without two members, nothing changes, and nobody can write.
    let kept = ["x", "0"];
    let before = harness.bytes(&kept);
    let run = harness.assemble(&kept, &["--fuse", &file]);
    assert!(fs::read(&file).unwrap().starts_with(&pattern));
    assert!(fs::File::options().write(true).open(&file).is_err());
    harness.stop(run);
    assert!(harness.bytes(&kept) == before);
}
