//! What a workload asks for, as lines.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use raidlab_core::Time;
use raidlab_workload::null::NullTarget;
use raidlab_workload::{
    Attribute, AttributeTarget, FileDescriptor, FilePath, Op, OpResult, OpenFlags, Plan, Process,
    Root, Seek,
};

use super::Lines;

type Log = Arc<Mutex<Vec<(Op, OpResult)>>>;

/// Writes down what a process asks for and how it went.
#[derive(Debug)]
struct Spy {
    process: Box<dyn Process>,
    before: Option<Op>,
    log: Log,
}

impl Process for Spy {
    fn next(&mut self, now: Time, last: OpResult) -> Op {
        if let Some(op) = self.before.take() {
            self.log.lock().expect("no panic").push((op, last.clone()));
        }
        let op = self.process.next(now, last);
        self.before = Some(op.clone());
        op
    }
}

/// The lines of a plan's run, which has one process.
pub(crate) fn ours(plan: Plan) -> Lines {
    let mut plan = plan.in_single_operations();
    let log = Log::default();
    assert_eq!(plan.run.len(), 1);
    for planned in &mut plan.run {
        let process: Box<dyn Process> = Box::new(Nothing);
        let process = std::mem::replace(&mut planned.process, process);
        planned.process = Box::new(Spy { process, before: None, log: log.clone() });
    }
    let mut target = NullTarget::default();
    target.keep_steps();
    target.run(plan).expect("runs");
    let log = std::mem::take(&mut *log.lock().expect("no panic"));
    let asked: Vec<&Op> = log.iter().map(|(op, _)| op).collect();
    let steps = target.steps().iter().map(|step| &step.op).filter(|op| **op != Op::Done);
    assert_eq!(asked, steps.collect::<Vec<_>>(), "the target saw what the process asked for");
    let mut translator = Translator::default();
    for (op, result) in &log {
        translator.line(op, result);
    }
    translator.lines
}

#[derive(Debug)]
struct Nothing;

impl Process for Nothing {
    fn next(&mut self, _now: Time, _last: OpResult) -> Op {
        Op::Done
    }
}

#[derive(Default)]
struct Translator {
    lines: Lines,
    /// Files and positions.
    fds: BTreeMap<FileDescriptor, (String, u64)>,
}

fn name(path: &FilePath) -> String {
    match path.root {
        Root::Source => format!("source:{}", path.text),
        _ => path.to_string(),
    }
}

fn flag_names(flags: OpenFlags) -> String {
    let words = [
        (flags.read, " read"),
        (flags.write, " write"),
        (flags.create, " create"),
        (flags.exclusive, " exclusive"),
        (flags.truncate, " truncate"),
        (flags.direct, " direct"),
        (flags.sync, " sync"),
    ];
    words.into_iter().filter(|(is, _)| *is).map(|(_, word)| word).collect()
}

impl Translator {
    fn moved(&mut self, call: &str, fd: FileDescriptor, len: u64, moved: u64) {
        let (file, position) = self.fds.get_mut(&fd).expect("an open file");
        self.lines.push(format!("{call} {file} {len} at {position} gives {moved}"));
        *position += moved;
    }

    fn on(&mut self, call: &str, fd: FileDescriptor) {
        let (file, _) = &self.fds[&fd];
        self.lines.push(format!("{call} {file}"));
    }

    fn line(&mut self, op: &Op, result: &OpResult) {
        match op {
            Op::Open { fd, path, flags } => {
                self.lines.push(format!("open {}{}", name(path), flag_names(*flags)));
                self.fds.insert(*fd, (name(path), 0));
            }
            Op::Close { fd } => self.on("close", *fd),
            Op::Read { fd, len, times } => {
                let mut left = result.moved();
                for _ in 0..*times {
                    self.moved("read", *fd, *len, left.min(*len));
                    left -= left.min(*len);
                }
            }
            Op::Write { fd, len, times, .. } => {
                for _ in 0..*times {
                    self.moved("write", *fd, *len, *len);
                }
            }
            Op::CopyRange { from, to, len } => {
                let moved = result.moved();
                self.moved("copy_from", *from, *len, moved);
                self.moved("copy_to", *to, *len, moved);
            }
            Op::Seek { fd, to: Seek::Start(at) } => {
                let (file, position) = self.fds.get_mut(fd).expect("an open file");
                self.lines.push(format!("seek {file} to {at}"));
                *position = *at;
            }
            Op::Fsync { fd } => self.on("fsync", *fd),
            Op::Fdatasync { fd } => self.on("fdatasync", *fd),
            Op::Truncate { fd, len } => {
                let (file, _) = &self.fds[fd];
                self.lines.push(format!("truncate {file} to {len}"));
            }
            Op::Set { of, attribute } => {
                let file = match of {
                    AttributeTarget::Descriptor(fd) => self.fds[fd].0.clone(),
                    AttributeTarget::Path(path) => name(path),
                };
                let attribute = match attribute {
                    Attribute::Times => "times",
                    Attribute::Owner => "owner",
                    Attribute::Mode => "mode",
                };
                self.lines.push(format!("{attribute} {file}"));
            }
            Op::Mkdir { path } => self.lines.push(format!("mkdir {}", name(path))),
            Op::Stat { path } => self.lines.push(format!("stat {}", name(path))),
            Op::List { path } => self.lines.push(format!("list {}", name(path))),
            Op::Unlink { path } => self.lines.push(format!("unlink {}", name(path))),
            Op::Rename { from, to } => {
                self.lines.push(format!("rename {} to {}", name(from), name(to)));
            }
            Op::Link { from, to } => {
                self.lines.push(format!("link {} to {}", name(from), name(to)));
            }
            Op::Symlink { text, path } => {
                self.lines.push(format!("symlink {} says {text}", name(path)));
            }
            Op::Mark(_) | Op::Done => {}
            other => panic!("{other:?} has no line"),
        }
    }
}
