//! bonnie++ 2.00 asks the system for exactly what the original asks it for: the original runs under
//! strace with the random numbers of our seed (`-Z`), and both lists of calls are compared.

#![cfg(target_os = "linux")]

use std::collections::BTreeMap;
use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::path::{Path as FilePath, PathBuf};
use std::process::Command;

use raidlab_workload::null::{NullTarget, Step};
use raidlab_workload::{Op, Parameters, Seek, Setting, Slot, bonnie, make};

#[allow(dead_code, reason = "the tables of packages are for others")]
#[path = "../../../tests/support/packages.rs"]
mod packages;

const SEED: u64 = 5;
const NEEDED: [packages::Package; 2] = [
    packages::Package { name: "bonnie++", commands: &["bonnie++"], files: &[] },
    packages::Package { name: "strace", commands: &["strace"], files: &[] },
];
const TRACED: &str = "trace=openat,read,write,lseek,fsync,sync,close,unlink,mkdir,rmdir,newfstatat,\
    getdents64,chdir,link,symlink,clock_nanosleep";

/// Why the original cannot be traced here, after saying so on standard error past the harness.
fn is_skipped(test: &str) -> bool {
    let missing = packages::missing(&NEEDED);
    let why = if !missing.is_empty() {
        packages::reason(&missing)
    } else if !Command::new("strace").args(["-qq", "-o", "/dev/null", "true"]).succeeds() {
        "strace is not allowed to trace".to_string()
    } else {
        return false;
    };
    let line = format!("skipped: {test}: {why}\n");
    std::io::stderr().write_all(line.as_bytes()).expect("standard error is open");
    true
}

trait Succeeds {
    fn succeeds(&mut self) -> bool;
}

impl Succeeds for Command {
    fn succeeds(&mut self) -> bool {
        self.output().is_ok_and(|output| output.status.success())
    }
}

/// A directory of its own for one test.
struct TempDir(PathBuf);

impl TempDir {
    fn new(name: &str) -> Self {
        // In memory where there is such a place: thousands of files are synced one by one.
        let memory = PathBuf::from("/dev/shm");
        let parent = if memory.is_dir() { memory } else { std::env::temp_dir() };
        let path = parent.join(format!("raidlab-{name}-{}", std::process::id()));
        std::fs::create_dir(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        Self(path)
    }
}

impl Drop for TempDir {
    fn drop(&mut self) {
        // A test that fails for another reason shall say that reason.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Calls of each thread, the main one first.
type Calls = Vec<Vec<String>>;

/// What the original calls.
fn original(name: &str, options: &[&str]) -> Calls {
    let temporary = TempDir::new(name);
    let [work, traces] = ["work", "traces"].map(|name| temporary.0.join(name));
    for directory in [&work, &traces] {
        std::fs::create_dir(directory).expect("a new directory");
    }
    let numbers = temporary.0.join("numbers");
    std::fs::write(&numbers, bonnie::random_file(SEED, 0, 200_000)).expect("written");
    let mut command = Command::new("strace");
    command.env("PATH", format!("{}:/usr/sbin", std::env::var("PATH").unwrap_or_default()));
    command.args(["-qq", "-s", "200", "-ff", "-e", TRACED, "-o"]).arg(traces.join("t"));
    command.arg("bonnie++").arg("-d").arg(&work).arg("-Z").arg(&numbers).args(options);
    if work.metadata().expect("made").uid() == 0 {
        command.args(["-u", "root"]);
    }
    let output = command.output().expect("strace starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let entries = traces.read_dir().expect("made").map(|entry| entry.expect("readable").path());
    let mut threads: Vec<Vec<String>> = entries.map(|path| trace_of(&path)).collect();
    // Not by their numbers, which start over at some point: the main thread makes the files.
    threads.sort_by_key(|calls| !calls.iter().any(|call| call.ends_with(" new")));
    threads
}

fn trace_of(path: &FilePath) -> Vec<String> {
    let text = std::fs::read_to_string(path).expect("a trace");
    let mut trace = Trace::default();
    text.lines().for_each(|line| trace.line(line));
    trace.calls
}

/// A thread of the original: its open files below the directory under test, and where it is.
#[derive(Default)]
struct Trace {
    files: BTreeMap<u32, (String, u64)>,
    directories: BTreeMap<u32, (String, bool)>,
    directory: Vec<String>,
    calls: Vec<String>,
}

impl Trace {
    /// A name below the directory under test; the number of the process becomes the copy's, 0.
    fn name(&self, quoted: &str) -> Option<String> {
        let text = quoted.split('"').nth(1)?;
        if text.starts_with('/') {
            return None;
        }
        let parts = text.split('/').filter(|part| !matches!(*part, "." | ""));
        let renamed = parts.map(|part| match part.strip_prefix("Bonnie.") {
            Some(_) => "Bonnie.0".to_string(),
            None => part.to_string(),
        });
        let all: Vec<String> = self.directory.iter().cloned().chain(renamed).collect();
        Some(all.join("/"))
    }

    fn line(&mut self, line: &str) {
        let (Some((call, rest)), Some((_, result))) =
            (line.split_once('('), line.rsplit_once("= "))
        else {
            return;
        };
        let Ok(result) = result.split(' ').next().unwrap_or_default().parse::<i64>() else {
            return;
        };
        if result < 0 {
            return;
        }
        let first = rest.split([',', ')']).next().and_then(|text| text.parse::<u32>().ok());
        match (call, first) {
            ("chdir", _) => self.change_directory(rest),
            ("openat", _) => self.open(rest, result as u32),
            ("newfstatat" | "unlink" | "mkdir" | "rmdir", _) => {
                let call = if call == "newfstatat" { "stat" } else { call };
                if rest.contains("AT_EMPTY_PATH") {
                    return;
                }
                if let Some(name) = self.name(rest) {
                    self.calls.push(format!("{call} {name}"));
                }
            }
            ("link" | "symlink", _) => {
                let to = rest.split_once("\", ").and_then(|(_, rest)| self.name(rest));
                let from = match call {
                    "link" => self.name(rest),
                    _ => rest.split('"').nth(1).map(str::to_string),
                };
                if let (Some(from), Some(to)) = (from, to) {
                    self.calls.push(format!("{call} {from} {to}"));
                }
            }
            ("sync", _) => self.calls.push("sync".into()),
            ("clock_nanosleep", _) => {
                let seconds = rest.split_once("tv_sec=").map(|(_, rest)| rest);
                let seconds = seconds.and_then(|text| text.split(',').next());
                self.calls.push(format!("sleep {}", seconds.unwrap_or_default()));
            }
            (_, Some(file)) => self.on_file(call, file, result as u64),
            _ => {}
        }
    }

    fn change_directory(&mut self, rest: &str) {
        if rest.starts_with("\"..\"") {
            self.directory.pop();
        } else if let Some(name) = self.name(rest) {
            self.directory = name.split('/').map(str::to_string).collect();
        }
    }

    fn open(&mut self, rest: &str, file: u32) {
        let Some(name) = self.name(rest) else { return };
        let is_new = rest.contains("O_CREAT");
        let is_file = is_new || rest.contains("O_RDWR") || name.matches('/').count() > 1;
        let last = name.rsplit('/').next().unwrap_or_default();
        // Directories have five digits or are the work directory itself.
        let is_directory = !is_file && (last == "Bonnie.0" || last.len() == 5);
        if is_directory || rest.contains("O_DIRECTORY") {
            self.directories.insert(file, (name, false));
            return;
        }
        let access = match () {
            () if rest.contains("O_RDWR") => "rw",
            () if rest.contains("O_WRONLY") => "w",
            () => "r",
        };
        let new = if is_new && rest.contains("O_EXCL") { " new" } else { "" };
        self.calls.push(format!("open {name} {access}{new}"));
        self.files.insert(file, (name, 0));
    }

    fn on_file(&mut self, call: &str, file: u32, result: u64) {
        if let Some((name, is_listed)) = self.directories.get_mut(&file) {
            match call {
                "fsync" => self.calls.push(format!("fsync-directory {name}")),
                "getdents64" if !*is_listed => {
                    *is_listed = true;
                    self.calls.push(format!("list {name}"));
                }
                "close" => drop(self.directories.remove(&file)),
                _ => {}
            }
            return;
        }
        let Some((name, position)) = self.files.get_mut(&file) else { return };
        match call {
            "read" | "write" => {
                self.calls.push(format!("{call} {name} {position}+{result}"));
                *position += result;
            }
            "lseek" => {
                *position = result;
                self.calls.push(format!("seek {name} {position}"));
            }
            "fsync" => self.calls.push(format!("fsync {name}")),
            "close" => {
                self.calls.push(format!("close {name}"));
                self.files.remove(&file);
            }
            other => panic!("{other} of {name}"),
        }
    }
}

/// What we call, from a target that does nothing.
fn ours(parameters: &[(&str, &str)]) -> Calls {
    let parameters = Parameters::new(parameters.iter().copied()).expect("no key twice");
    let workload = make("bonnie-2.00", parameters).expect("right parameters");
    let plan = workload.plan(&Setting::new(1, SEED)).expect("can be");
    let processes = plan.run.len();
    let mut target = NullTarget::default();
    target.keep_steps();
    target.run(plan).expect("can be carried out");
    (0..processes).map(|process| calls_of(target.steps(), process)).collect()
}

fn calls_of(steps: &[Step], process: usize) -> Vec<String> {
    let mut files: BTreeMap<Slot, (String, u64)> = BTreeMap::new();
    let mut calls = Vec::new();
    for step in steps.iter().filter(|step| step.process == process) {
        match &step.op {
            Op::Open { slot, path, how } => {
                let access = match (how.read, how.write) {
                    (true, true) => "rw",
                    (false, true) => "w",
                    _ => "r",
                };
                let new = if how.create && how.exclusive { " new" } else { "" };
                calls.push(format!("open {path} {access}{new}"));
                files.insert(*slot, (path.to_string(), 0));
            }
            Op::Read { slot, len, times } | Op::Write { slot, len, times, .. } => {
                let call = if matches!(step.op, Op::Read { .. }) { "read" } else { "write" };
                let (name, position) = files.get_mut(slot).expect("open");
                for _ in 0..*times {
                    calls.push(format!("{call} {name} {position}+{len}"));
                    *position += len;
                }
            }
            Op::Seek { slot, to } => {
                let (name, position) = files.get_mut(slot).expect("open");
                *position = match to {
                    Seek::Start(at) => *at,
                    Seek::Current(by) => position.checked_add_signed(*by).expect("in the file"),
                    Seek::End => panic!("bonnie++ does not seek to the end"),
                };
                calls.push(format!("seek {name} {position}"));
            }
            Op::Fsync { slot } => calls.push(format!("fsync {}", files[slot].0)),
            Op::Close { slot } => {
                let (name, _) = files.remove(slot).expect("open");
                calls.push(format!("close {name}"));
            }
            Op::Sleep(time) => calls.push(format!("sleep {}", time.0 / 1_000_000_000)),
            op => calls.extend(name_call(op)),
        }
    }
    calls
}

fn name_call(op: &Op) -> Option<String> {
    Some(match op {
        Op::Unlink { path } => format!("unlink {path}"),
        Op::Mkdir { path } => format!("mkdir {path}"),
        Op::Rmdir { path } => format!("rmdir {path}"),
        Op::Stat { path } => format!("stat {path}"),
        Op::List { path } => format!("list {path}"),
        Op::FsyncDirectory { path } => format!("fsync-directory {path}"),
        Op::Link { from, to } => format!("link {from} {to}"),
        Op::Symlink { text, path } => format!("symlink {text} {path}"),
        Op::SyncAll => "sync".into(),
        Op::Mark(_) | Op::Barrier(_) | Op::Put { .. } | Op::Take { .. } | Op::Done => return None,
        other => panic!("bonnie++ does not ask for {other:?}"),
    })
}

/// Takes the removal of the large file after the seeks out: whoever comes first does it.
fn without_last_unlink(calls: &mut Calls) {
    let is_unlink = |call: &String| call == "unlink Bonnie.0";
    let found: Vec<(usize, usize)> = calls
        .iter()
        .enumerate()
        .flat_map(|(thread, list)| {
            let places = list.iter().enumerate().filter(|(_, call)| is_unlink(call));
            places.map(move |(place, _)| (thread, place))
        })
        .collect();
    assert_eq!(found.len(), 2, "the large file goes twice");
    assert_eq!(found[0].0, 0, "the first time by the main thread");
    calls[found[1].0].remove(found[1].1);
}

/// Brings what follows a listing, in the directory's own order, into the order of names.
fn sort_listed(calls: &[String]) -> Vec<String> {
    let starts = |call: &String| call.starts_with("stat ") || call.starts_with("unlink ");
    let ends = |call: &String| {
        ["list ", "rmdir ", "mkdir ", "sync"].iter().any(|start| call.starts_with(start))
    };
    let mut sorted = Vec::new();
    let mut groups: Option<Vec<Vec<String>>> = None;
    for call in calls {
        if ends(call) {
            let mut done = groups.take().unwrap_or_default();
            done.sort();
            sorted.extend(done.into_iter().flatten());
            sorted.push(call.clone());
            if call.starts_with("list ") {
                groups = Some(Vec::new());
            }
            continue;
        }
        match &mut groups {
            None => sorted.push(call.clone()),
            Some(groups) if starts(call) => groups.push(vec![call.clone()]),
            Some(groups) => groups.last_mut().expect("after a name").push(call.clone()),
        }
    }
    assert!(groups.is_none(), "a directory that was listed is removed");
    sorted
}

/// The seeks of all seekers, sorted; each seeker opens the file first and closes it in the end.
fn seeks(seekers: &[Vec<String>]) -> Vec<String> {
    let mut all = Vec::new();
    for calls in seekers {
        let (first, rest) = calls.split_first().expect("calls");
        let (middle, last) = rest.split_at(rest.len() - 2);
        assert_eq!(first, "open Bonnie.0 rw");
        assert_eq!(last, ["fsync Bonnie.0", "close Bonnie.0"]);
        let mut left = middle;
        while !left.is_empty() {
            let is_update = left.get(3).is_some_and(|call| call.starts_with("write "));
            let has_fsync = is_update && left.get(4).is_some_and(|call| call.starts_with("fsync"));
            let len = if is_update { 4 } else { 2 } + usize::from(has_fsync);
            let (one, rest) = left.split_at(len);
            all.push(one.join(", "));
            left = rest;
        }
    }
    all.sort();
    all
}

fn expect_equal(ours: &[String], original: &[String]) {
    let differs = ours.iter().zip(original).position(|(ours, original)| ours != original);
    let at = differs.unwrap_or(ours.len().min(original.len()));
    let around = |calls: &[String]| {
        let (from, to) = (at.saturating_sub(3).min(calls.len()), calls.len().min(at + 4));
        calls[from..to].join("\n  ")
    };
    let words =
        format!("call {at}, ours:\n  {}\nthe original's:\n  {}", around(ours), around(original));
    assert!(ours == original, "{words}");
}

fn compare(test: &str, parameters: &[(&str, &str)], options: &[&str]) -> Option<Calls> {
    if is_skipped(test) {
        return None;
    }
    let mut ours = ours(parameters);
    let mut original = original(test, options);
    let kept = original.clone();
    assert_eq!(ours.len(), original.len(), "threads");
    without_last_unlink(&mut ours);
    without_last_unlink(&mut original);
    expect_equal(&sort_listed(&ours[0]), &sort_listed(&original[0]));
    expect_equal(&seeks(&ours[1..]), &seeks(&original[1..]));
    Some(kept)
}

#[test]
fn the_large_file_as_the_original() {
    let parameters = [("size", "8MiB"), ("ram", "4MiB"), ("n", "0"), ("fast", "true")];
    let options = ["-s", "8:8k", "-r", "4", "-n", "0", "-f", "-q"];
    let test = "the_large_file_as_the_original";
    let Some(calls) = compare(test, &parameters, &options) else { return };
    let fsyncs = calls.iter().flatten().filter(|call| call.starts_with("fsync ")).count();
    assert_eq!(fsyncs, 10, "the reference counts ten");
}

#[test]
fn small_files_as_the_original() {
    let parameters = [
        ("size", "2MiB"),
        ("ram", "1MiB"),
        ("chunk", "16KiB"),
        ("seeks", "40"),
        ("seekers", "2"),
        ("n", "1:9000:20:3"),
        ("fast", "true"),
        ("sync", "true"),
    ];
    let options = ["-s", "2:16k:40:2", "-r", "1", "-n", "1:9000:20:3", "-f", "-b", "-q"];
    compare("small_files_as_the_original", &parameters, &options);
}

fn compare_links(test: &str, made: &str, number: &str) {
    let (ours, theirs) = (format!("1:{made}"), format!("1:{number}"));
    let parameters = [
        ("size", "1MiB"),
        ("ram", "0"),
        ("seeks", "1"),
        ("seekers", "1"),
        ("n", &ours),
        ("fast", "true"),
        ("sync", "true"),
    ];
    compare(test, &parameters, &["-s", "1:8k:1:1", "-r", "0", "-n", &theirs, "-f", "-b", "-q"]);
}

#[test]
fn links_as_the_original() {
    compare_links("links_as_the_original", "link", "-1");
}

#[test]
fn symbolic_links_as_the_original() {
    compare_links("symbolic_links_as_the_original", "symlink", "-2");
}
