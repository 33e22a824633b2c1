//! What the tests of fio's job files share.
#![allow(dead_code, reason = "no test uses every helper")]

use std::io::Write;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use raidlab_workload::null::{NullTarget, Step};
use raidlab_workload::{RunRecord, Setting, Workload, fio};

/// A job file without variables.
pub(crate) fn workload(text: &str) -> Arc<dyn Workload> {
    let file = fio::parse(text, "test.fio", &|_| None);
    file.unwrap_or_else(|error| panic!("{error}\n{text}")).workload()
}

/// A run on a target that does nothing.
pub(crate) fn run(workload: &Arc<dyn Workload>, copies: u32) -> (RunRecord, Vec<Step>) {
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
