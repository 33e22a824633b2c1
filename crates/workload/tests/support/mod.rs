//! What the tests of fio's job files share.
#![allow(dead_code, reason = "no test uses every helper")]

use std::collections::BTreeMap;
use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use raidlab_workload::null::{NullStep, NullTarget};
use raidlab_workload::{RunRecord, Setting, Workload, fio};

/// A job file without variables.
pub(crate) fn workload(text: &str) -> Arc<dyn Workload> {
    let file = fio::parse(text, "test.fio", &|_| None);
    file.unwrap_or_else(|error| panic!("{error}\n{text}")).workload()
}

/// A run on a target that does nothing.
pub(crate) fn run(workload: &Arc<dyn Workload>, copies: u32) -> (RunRecord, Vec<NullStep>) {
    let plan = workload.plan(&Setting::new(copies, 1)).unwrap_or_else(|error| panic!("{error}"));
    let mut target = NullTarget::default();
    target.keep_steps();
    let record = target.run(plan).unwrap_or_else(|error| panic!("{error:?}"));
    (record, target.steps().to_vec())
}

/// Whether all programs are there; else a line about the skipped test goes past the test harness.
pub(crate) fn has_programs(test: &str, programs: &[&str]) -> bool {
    let is_there = |program: &str| Command::new(program).arg("--version").output().is_ok();
    let missing: Vec<&str> = programs.iter().copied().filter(|one| !is_there(one)).collect();
    if !missing.is_empty() {
        skip(test, &format!("not installed: {}", missing.join(", ")));
    }
    missing.is_empty()
}

/// Says past the test harness that a test was skipped.
pub(crate) fn skip(test: &str, reason: &str) {
    let line = format!("skipped: {test}: {reason}\n");
    std::io::stderr().write_all(line.as_bytes()).expect("standard error is open");
}

/// A directory of one test, removed at its end.
pub(crate) struct Scratch(pub(crate) PathBuf);

impl Scratch {
    pub(crate) fn new(name: &str) -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path =
            std::env::temp_dir().join(format!("raidlab-{name}-{}-{number}", std::process::id()));
        std::fs::create_dir(&path).expect("a new directory");
        Self(path)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A call on a file: which, on which of the files in the order they were first opened, where (where it
/// says), how much.
pub(crate) type Call = (&'static str, usize, Option<u64>, u64);

/// A job with these options as job `number` of a file, whose files all have names that begin so.
pub(crate) fn section(number: usize, options: &str) -> String {
    format!(
        "[{}]\nstonewall\n{}\n",
        name(number),
        options.replace("j.", &format!("{}.", name(number)))
    )
}

fn name(number: usize) -> String {
    format!("j{number}")
}

/// Runs jobs by fio under strace, one after the other; gives the calls of each on its files.
pub(crate) fn traced(jobs: &[&str]) -> Vec<Vec<Call>> {
    let scratch = Scratch::new("fio");
    let sections = jobs.iter().enumerate().map(|(number, options)| section(number, options));
    std::fs::write(scratch.0.join("job"), sections.collect::<String>()).expect("written");
    for (number, _) in jobs.iter().enumerate().filter(|(_, job)| job.contains("offset=30%")) {
        // Of a file that is not there yet, fio takes 30 % to be nothing.
        let file = format!("{}.0.0", name(number));
        std::fs::write(scratch.0.join(file), [0; 65_536]).expect("written");
    }
    let calls = "trace=openat,close,read,write,pread64,pwrite64,lseek,fsync,fdatasync,\
                 nanosleep,clock_nanosleep";
    let status = Command::new("strace")
        .args(["-ff", "-s", "0", "-e", calls, "-o", "trace", "fio", "job"])
        .current_dir(&scratch.0)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .expect("strace");
    assert!(status.success(), "fio failed on {jobs:?}");
    let files = std::fs::read_dir(&scratch.0).expect("the directory");
    let traces: Vec<String> = files
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.to_string_lossy().contains("trace."))
        .map(|path| std::fs::read_to_string(path).expect("a trace"))
        .collect();
    let of_job = |number| {
        let file = format!("\"{}.", name(number));
        // fio lays files out in a process of its own, which opens them for writing only.
        let is_own = |line: &str| line.contains(&file) && !line.contains("O_WRONLY");
        let trace = traces.iter().find(|trace| trace.lines().any(is_own));
        calls_of(trace.expect("a process of the job"))
    };
    (0..jobs.len()).map(of_job).collect()
}

/// Whether a file is one of a job's, such as `j3.0.0`.
fn is_name(file: &str) -> bool {
    let (front, _) = file.split_once('.').unwrap_or_default();
    front.strip_prefix('j').is_some_and(|number| number.parse::<usize>().is_ok())
}

pub(crate) fn calls_of(trace: &str) -> Vec<Call> {
    let mut names: Vec<String> = Vec::new();
    let mut open: BTreeMap<String, usize> = BTreeMap::new();
    let mut calls = Vec::new();
    for line in trace.lines() {
        let Some((name, rest)) = line.split_once('(') else { continue };
        let Some((arguments, result)) = rest.rsplit_once(" = ") else { continue };
        let arguments = arguments.trim_end().trim_end_matches(')');
        let parts: Vec<&str> = arguments.split(", ").collect();
        if name == "openat" {
            if let Some(file) = arguments.split('"').nth(1).filter(|file| is_name(file)) {
                let known = names.iter().position(|known| known == file);
                let index = known.unwrap_or_else(|| {
                    names.push(file.into());
                    names.len() - 1
                });
                open.insert(result.trim().into(), index);
            }
            continue;
        }
        if name.ends_with("nanosleep") && !open.is_empty() {
            calls.push(("pause", 0, None, 0));
        }
        let Some(&file) = open.get(parts[0]) else { continue };
        let number = |part: &str| part.parse::<u64>().expect("a number");
        calls.push(match name {
            "pread64" => ("read", file, Some(number(parts[3])), number(result)),
            "pwrite64" => ("write", file, Some(number(parts[3])), number(result)),
            "read" => ("read", file, None, number(result)),
            "write" => ("write", file, None, number(result)),
            "lseek" => ("seek", file, Some(number(parts[1])), 0),
            "fsync" => ("fsync", file, None, 0),
            "fdatasync" => ("fdatasync", file, None, 0),
            "close" => {
                open.remove(parts[0]);
                continue;
            }
            other => panic!("{other}"),
        });
    }
    calls
}
