//! What bonnie++ 2.00 asks the system for, and a run of ours for the same random numbers: each from the
//! output of `strace` on a thread.
#![allow(dead_code, reason = "no test uses every helper")]

use std::collections::BTreeMap;
use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::path::{Path as FilePath, PathBuf};
use std::process::Command;

use raidlab_workload::bonnie;

#[path = "../../../../tests/support/packages.rs"]
mod packages;

pub(crate) const SEED: u64 = 5;
const NEEDED: [packages::Package; 2] = [
    packages::Package { name: "bonnie++", commands: &["bonnie++"], files: &[] },
    packages::Package { name: "strace", commands: &["strace"], files: &[] },
];
const TRACED: &str = "trace=openat,read,write,lseek,fsync,sync,close,unlink,mkdir,rmdir,newfstatat,\
    getdents64,chdir,link,symlink,clock_nanosleep";
/// Seen, but not carried out: sleeps, and what would write down all that the machine has in memory.
const NOT_DONE: &str = "inject=sync,clock_nanosleep:retval=0";

/// Why the original cannot be traced here, after saying so on standard error past the harness.
pub(crate) fn is_skipped(test: &str) -> bool {
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
pub(crate) type Calls = Vec<Vec<String>>;

/// How often the original is run until it ends, and what it may take each time, in seconds. The process of its
/// random seeks that is done first removes the file; one that has not opened it yet gives up, and the original
/// waits for it for ever. That is rare, and more likely on a busy machine.
const TRIES: usize = 5;
const LONGEST: &str = "60";

/// What the original calls.
pub(crate) fn original(name: &str, options: &[&str]) -> Calls {
    let ended = (0..TRIES).find_map(|_| traced(name, options));
    ended.expect("bonnie++ ends, at least once in a few times")
}

/// What one run of the original calls; `None` when it did not end.
fn traced(name: &str, options: &[&str]) -> Option<Calls> {
    let temporary = TempDir::new(name);
    let [work, traces] = ["work", "traces"].map(|name| temporary.0.join(name));
    for directory in [&work, &traces] {
        std::fs::create_dir(directory).expect("a new directory");
    }
    let numbers = temporary.0.join("numbers");
    std::fs::write(&numbers, bonnie::random_file(SEED, 0, 200_000)).expect("written");
    let mut command = Command::new("timeout");
    command.env("PATH", format!("{}:/usr/sbin", std::env::var("PATH").unwrap_or_default()));
    command
        .args(["--kill-after=5", LONGEST, "strace", "-qq", "-s", "200", "-ff"])
        .args(["-e", TRACED, "-e", NOT_DONE, "-o"])
        .arg(traces.join("t"));
    command.arg("bonnie++").arg("-d").arg(&work).arg("-Z").arg(&numbers).args(options);
    if work.metadata().expect("made").uid() == 0 {
        command.args(["-u", "root"]);
    }
    let output = command.output().expect("timeout starts");
    // What timeout(1) says of a command that it ended.
    if matches!(output.status.code(), Some(124 | 137)) {
        return None;
    }
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let entries = traces.read_dir().expect("made").map(|entry| entry.expect("readable").path());
    let mut threads: Vec<Vec<String>> = entries.map(|path| trace_of(&path)).collect();
    // Not by their numbers, which start over at some point: the main thread makes the files.
    threads.sort_by_key(|calls| !calls.iter().any(|call| call.ends_with(" new")));
    Some(threads)
}

fn trace_of(path: &FilePath) -> Vec<String> {
    calls_of_thread(&std::fs::read_to_string(path).expect("a trace"))
}

/// The calls of a thread, of the original or of raidlab's directory target.
pub(crate) fn calls_of_thread(text: &str) -> Vec<String> {
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
            ("newfstatat" | "unlink" | "unlinkat" | "mkdir" | "mkdirat" | "rmdir", _) => {
                let call = match call {
                    "newfstatat" => "stat",
                    "unlinkat" if rest.contains("AT_REMOVEDIR") => "rmdir",
                    call => call.trim_end_matches("at"),
                };
                if rest.contains("AT_EMPTY_PATH") {
                    return;
                }
                if let Some(name) = self.name(rest) {
                    self.calls.push(format!("{call} {name}"));
                }
            }
            ("link" | "symlink" | "linkat" | "symlinkat", _) => {
                let call = call.trim_end_matches("at");
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

/// Takes the removal of the large file after the seeks out: whoever comes first does it.
pub(crate) fn without_last_unlink(calls: &mut Calls) {
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
pub(crate) fn sort_listed(calls: &[String]) -> Vec<String> {
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
pub(crate) fn seeks(seekers: &[Vec<String>]) -> Vec<String> {
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

pub(crate) fn expect_equal(ours: &[String], original: &[String]) {
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
