//! What the tests of the directory target share: processes made of steps, and plans of them.
#![allow(dead_code, unreachable_pub)]

use std::collections::VecDeque;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};

use raidlab_core::Time;
use raidlab_engine::EngineError;
use raidlab_targets::{DirectoryOptions, DirectoryTarget};
use raidlab_workload::{
    Bytes, Expected, FileDescriptor, FilePath as Name, Memory, Op, OpResult, OpenFlags, Plan,
    Planned, Process, RunRecord,
};

type Look = Box<dyn FnOnce(&Path) + Send>;

pub enum Step {
    Do(Op),
    /// Looks at, or does something to, the directory in which the run's files are.
    Look(Look),
}

impl From<Op> for Step {
    fn from(op: Op) -> Self {
        Self::Do(op)
    }
}

pub fn look(look: impl FnOnce(&Path) + Send + 'static) -> Step {
    Step::Look(Box::new(look))
}

/// What a process was answered, one for each operation.
#[derive(Clone, Default)]
pub struct Answers(Arc<Mutex<Vec<OpResult>>>);

impl Answers {
    pub fn all(&self) -> Vec<OpResult> {
        self.0.lock().unwrap().clone()
    }

    pub fn moved(&self) -> Vec<u64> {
        self.all()
            .iter()
            .filter(|one| matches!(one, OpResult::Moved(_)))
            .map(OpResult::moved)
            .collect()
    }
}

struct Script {
    steps: VecDeque<Step>,
    answers: Answers,
    parent: PathBuf,
}

impl fmt::Debug for Script {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a script with {} steps left", self.steps.len())
    }
}

impl Process for Script {
    fn next(&mut self, _now: Time, last: OpResult) -> Op {
        if last != OpResult::Start {
            self.answers.0.lock().unwrap().push(last);
        }
        loop {
            match self.steps.pop_front() {
                Some(Step::Do(op)) => return op,
                Some(Step::Look(look)) => look(&files(&self.parent)),
                None => return Op::Done,
            }
        }
    }
}

/// Where the files of the one run below `parent` are.
pub fn files(parent: &Path) -> PathBuf {
    let runs = std::fs::read_dir(parent).unwrap().map(|entry| entry.unwrap().path());
    let mut runs = runs.filter(|path| path.join("owner").exists());
    let run = runs.next().expect("a run");
    assert!(runs.next().is_none(), "one run");
    run.join("files")
}

pub fn names(path: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(path).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

pub fn process(parent: &Path, steps: Vec<Step>) -> (Planned, Answers) {
    let answers = Answers::default();
    let script =
        Script { steps: steps.into(), answers: answers.clone(), parent: parent.to_path_buf() };
    (Planned { copy: 0, process: Box::new(script) }, answers)
}

/// Options that leave the rest of the machine alone.
pub fn quiet() -> DirectoryOptions {
    DirectoryOptions { system_caches: false, ..DirectoryOptions::default() }
}

pub fn plan(run: Vec<Planned>) -> Plan {
    Plan { run, phases: vec!["all"], memory: Memory::AsIs, ..Plan::default() }
}

pub fn run(parent: &Path, plan: Plan) -> Result<RunRecord, EngineError> {
    run_with(parent, plan, quiet())
}

pub fn run_with(
    parent: &Path,
    plan: Plan,
    options: DirectoryOptions,
) -> Result<RunRecord, EngineError> {
    DirectoryTarget::new(parent, options)?.run(plan, &AtomicBool::new(false))
}

/// Runs one process alone; gives what it was answered.
pub fn run_steps(parent: &Path, steps: Vec<Step>) -> Result<Answers, EngineError> {
    let (planned, answers) = process(parent, steps);
    run(parent, plan(vec![planned]))?;
    Ok(answers)
}

pub fn expect(name: &str, bytes: impl Bytes + 'static) -> Expected {
    Expected { path: Name::target(name), bytes: Arc::new(bytes) }
}

pub fn open(fd: u16, name: &str, flags: OpenFlags) -> Step {
    Op::Open { fd: FileDescriptor(fd), path: Name::target(name), flags }.into()
}

pub fn close(fd: u16) -> Step {
    Op::Close { fd: FileDescriptor(fd) }.into()
}
