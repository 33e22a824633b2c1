//! The target that does nothing: what it answers, and what it finds wrong.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use raidlab_core::{Nanos, Time};
use raidlab_workload::null::{NullError, NullTarget};
use raidlab_workload::processes::Fault;
use raidlab_workload::{
    Class, Content, Entry, FileDescriptor, FilePath, Io, Mark, Op, OpResult, OpenFlags, Plan,
    Planned, Seek, SourceFile, Zeroes,
};

const A: FileDescriptor = FileDescriptor(0);
const B: FileDescriptor = FileDescriptor(1);

type Heard = Arc<Mutex<Vec<OpResult>>>;

#[derive(Debug)]
struct Script(VecDeque<Op>, Heard);

impl raidlab_workload::Process for Script {
    fn next(&mut self, _now: Time, last: OpResult) -> Op {
        self.1.lock().unwrap().push(last);
        self.0.pop_front().unwrap_or(Op::Done)
    }
}

fn script(ops: Vec<Op>) -> (Planned, Heard) {
    let heard = Heard::default();
    (Planned { copy: 0, process: Box::new(Script(ops.into(), heard.clone())) }, heard)
}

fn plan(scripts: Vec<Vec<Op>>) -> Plan {
    let run = scripts.into_iter().map(|ops| script(ops).0).collect();
    Plan { run, phases: vec!["run"], barriers: vec![2], queues: 1, ..Plan::default() }
}

fn open(fd: FileDescriptor, name: &str, flags: OpenFlags) -> Op {
    Op::Open { fd, path: FilePath::target(name), flags }
}

#[test]
fn who_waits_for_nobody_is_a_deadlock() {
    let deadlock = |scripts| NullTarget::default().run(plan(scripts)).unwrap_err();
    let barrier = || vec![Op::Barrier(0), Op::Sleep(Nanos(1))];
    assert_eq!(deadlock(vec![barrier()]), NullError::Deadlock);
    assert_eq!(deadlock(vec![vec![Op::Take { queue: 0 }], vec![]]), NullError::Deadlock);
    assert_eq!(deadlock(vec![vec![Op::Finish]]), NullError::Fault(0, Fault::NothingStarted));
    let close = Op::Close { fd: B };
    assert_eq!(deadlock(vec![vec![close.clone()]]), NullError::Descriptor(B, close));
    let missing = deadlock(vec![vec![open(A, "a", OpenFlags::READ)]]);
    assert!(matches!(missing, NullError::Name(error) if error.to_string().starts_with("a: No")));
    assert!(NullTarget::default().run(plan(vec![barrier(), barrier()])).is_ok());
}

#[test]
fn tickets_and_sleep_decide_who_goes_on_when() {
    let mut target = NullTarget::default();
    target.keep_steps();
    let ticket = |ticket| Op::Put { queue: 0, ticket, times: 1 };
    let late = Nanos::from_millis(5);
    let plan = plan(vec![
        vec![Op::Take { queue: 0 }, Op::Take { queue: 0 }],
        vec![Op::Sleep(late), ticket(1), Op::Compute(late), ticket(2)],
    ]);
    let record = target.run(plan).expect("both end");
    let ends: Vec<u64> = record.processes.iter().map(|one| one.ended.0 / 1_000_000).collect();
    assert_eq!(ends, [10, 10]);
    let takes = target.steps().iter().filter(|step| step.op == Op::Take { queue: 0 });
    assert_eq!(takes.map(|step| step.at.0 / 1_000_000).collect::<Vec<_>>(), [0, 5]);
}

#[test]
fn characters_are_done_at_once() {
    let (planned, heard) = script(vec![Op::StdioBytes(1 << 40), Op::Sleep(Nanos(3))]);
    let record = NullTarget::default().run(Plan { run: vec![planned], ..plan(vec![]) });
    assert_eq!(record.expect("a run").processes[0].ended, Time(3));
    assert_eq!(heard.lock().unwrap()[1..], [OpResult::Done, OpResult::Done]);
}

#[test]
fn what_is_asked_is_answered_and_counted() {
    let source = SourceFile { name: "d/s".into(), bytes: Arc::new(Zeroes { len: 700 }) };
    let write = |len, times| Op::Write { fd: A, len, content: Content::Zeroes, times };
    let io = Io::Read { fd: A, at: 500, len: 600 };
    let (planned, heard) = script(vec![
        Op::Mark(Mark::Begin(0)),
        open(A, "a", OpenFlags { read: true, ..OpenFlags::WRITE }),
        write(100, 3),
        Op::Open { fd: B, path: FilePath::source("d/s"), flags: OpenFlags::READ },
        Op::CopyRange { from: B, to: A, len: 1000 },
        Op::Start { tag: 4, io },
        Op::Finish,
        Op::Seek { fd: A, to: Seek::Start(900) },
        Op::Read { fd: A, len: 80, times: 5 },
        Op::SyncAll,
        Op::FsyncDirectory { path: FilePath::target("") },
        Op::Fsync { fd: A },
        Op::List { path: FilePath::target("") },
    ]);
    let plan = Plan { run: vec![planned], sources: vec![source], ..plan(vec![]) };
    let record = NullTarget::default().run(plan).expect("a run");
    let heard = heard.lock().unwrap().clone();
    let moved = |after: usize| heard[after + 1].moved();
    assert_eq!([moved(2), moved(4), moved(6), moved(8)], [300, 700, 500, 100]);
    assert_eq!(heard[7], OpResult::Finished { tag: 4, moved: 500 });
    let entry = Entry { name: "a".into(), is_directory: false };
    assert_eq!(heard[13], OpResult::Entries(vec![entry]));
    let mut phase = record.phase(0).expect("it was begun");
    let counts = |class, phase: &mut raidlab_workload::PhaseRecord| {
        let record = phase.of_mut(class);
        (record.count, record.bytes)
    };
    assert_eq!(counts(Class::Write, &mut phase), (4, 1000), "a copy is a write");
    assert_eq!(counts(Class::Read, &mut phase), (3, 600));
    assert_eq!(counts(Class::Other, &mut phase), (4, 0), "three syncs and a list");
}
