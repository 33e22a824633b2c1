//! bonnie++ 2.00 asks the system for exactly what the original asks it for: the original runs under
//! strace with the random numbers of our seed (`-Z`), and both lists of calls are compared.

#![cfg(target_os = "linux")]

use std::collections::BTreeMap;

use raidlab_workload::null::{NullStep, NullTarget};
use raidlab_workload::{FileDescriptor, Op, Parameters, Seek, Setting, make};

use crate::bonnie_support::{
    Calls, SEED, expect_equal, is_skipped, original, seeks, sort_listed, without_last_unlink,
};

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

fn calls_of(steps: &[NullStep], process: usize) -> Vec<String> {
    let mut files: BTreeMap<FileDescriptor, (String, u64)> = BTreeMap::new();
    let mut calls = Vec::new();
    for step in steps.iter().filter(|step| step.process == process) {
        match &step.op {
            Op::Open { fd, path, flags } => {
                let access = match (flags.read, flags.write) {
                    (true, true) => "rw",
                    (false, true) => "w",
                    _ => "r",
                };
                let new = if flags.create && flags.exclusive { " new" } else { "" };
                calls.push(format!("open {path} {access}{new}"));
                files.insert(*fd, (path.to_string(), 0));
            }
            Op::Read { fd, len, times } | Op::Write { fd, len, times, .. } => {
                let call = if matches!(step.op, Op::Read { .. }) { "read" } else { "write" };
                let (name, position) = files.get_mut(fd).expect("open");
                for _ in 0..*times {
                    calls.push(format!("{call} {name} {position}+{len}"));
                    *position += len;
                }
            }
            Op::Seek { fd, to } => {
                let (name, position) = files.get_mut(fd).expect("open");
                *position = match to {
                    Seek::Start(at) => *at,
                    Seek::Current(by) => position.checked_add_signed(*by).expect("in the file"),
                    Seek::End => panic!("bonnie++ does not seek to the end"),
                };
                calls.push(format!("seek {name} {position}"));
            }
            Op::Fsync { fd } => calls.push(format!("fsync {}", files[fd].0)),
            Op::Close { fd } => {
                let (name, _) = files.remove(fd).expect("open");
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
