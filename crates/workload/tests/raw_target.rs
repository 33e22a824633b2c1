//! File operations as operations of a target without files.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use raidlab_core::{Nanos, Time};
use raidlab_workload as op;
use raidlab_workload::processes::{Asked, Work};
use raidlab_workload::raw::{OpResult, Process, RawPlan, Request, check};
use raidlab_workload::{
    Content, FileDescriptor, FileNeed, FilePath, Io, Mark, OpenFlags, Plan, Planned, Seek,
    SourceFile, Status, WorkloadErrorKind, Zeroes,
};

const SPACE: u64 = 1 << 20;
const A: FileDescriptor = FileDescriptor(0);
const B: FileDescriptor = FileDescriptor(1);

const SYNC: Asked<Request> = Asked::Operation(Request::Sync);

fn reads(at: u64, len: u64) -> Asked<Request> {
    Asked::Operation(Request::Read(at, len))
}

fn writes(at: u64, len: u64) -> Asked<Request> {
    Asked::Operation(Request::Write(at, len))
}

type Heard = Arc<Mutex<Vec<op::OpResult>>>;

/// Asks for what it was given, and keeps what it hears.
#[derive(Debug)]
struct Script {
    ops: VecDeque<op::Op>,
    heard: Heard,
}

impl raidlab_workload::Process for Script {
    fn next(&mut self, _now: Time, last: op::OpResult) -> op::Op {
        self.heard.lock().unwrap().push(last);
        self.ops.pop_front().expect("a process that is done is not asked again")
    }
}

fn script(ops: Vec<op::Op>) -> (Planned, Heard) {
    let heard = Heard::default();
    let ops = ops.into_iter().chain([op::Op::Done]).collect();
    (Planned { copy: 0, process: Box::new(Script { ops, heard: heard.clone() }) }, heard)
}

/// Two files: `a` of 64 KiB at 0 and `b` of 32 KiB in the second half.
fn plan() -> Plan {
    let file = |name: &str, bytes| FileNeed { path: FilePath::target(name), bytes, unit: 4096 };
    Plan { files: vec![file("a", 64 << 10), file("b", 32 << 10)], ..Plan::default() }
}

/// Where `b` lies: behind `a` and its share of the room left over, in whole units.
const AT_B: u64 = ((64 << 10) * 2 + (SPACE - (96 << 10))) / 2 / 4096 * 4096;

/// Everything the processes ask the target for, and what the last of them heard.
fn translate_all(
    plan: Plan,
    last: Heard,
) -> (Vec<Asked<Request>>, Vec<op::OpResult>, Option<String>) {
    let mut raw = RawPlan::new(plan, SPACE).expect("a plan");
    let (mut asked, mut failure) = (Vec::new(), None);
    for process in &mut raw.processes {
        asked.extend(carry_out(process));
        failure = failure.or(process.failure().map(ToString::to_string));
    }
    let heard = last.lock().unwrap().clone();
    (asked, heard, failure)
}

fn carry_out(process: &mut Process) -> Vec<Asked<Request>> {
    let (mut asked, mut last) = (Vec::new(), OpResult::Start);
    loop {
        let op = process.next(Time::ZERO, last);
        last = match op {
            Asked::Done => break,
            Asked::Take(queue) => OpResult::Ticket(i64::from(queue) + 100),
            _ => OpResult::Done,
        };
        asked.push(op);
    }
    for _ in 0..2 {
        assert_eq!(process.next(Time::ZERO, OpResult::Done), Asked::Done, "for ever");
    }
    asked
}

/// What one process asks for and hears.
fn translate(ops: Vec<op::Op>) -> (Vec<Asked<Request>>, Vec<op::OpResult>) {
    let (planned, heard) = script(ops);
    let (asked, heard, failure) = translate_all(Plan { run: vec![planned], ..plan() }, heard);
    assert_eq!(failure, None);
    (asked, heard)
}

fn fails(ops: Vec<op::Op>) -> String {
    let (planned, heard) = script(ops);
    let (_, _, failure) = translate_all(Plan { run: vec![planned], ..plan() }, heard);
    failure.expect("a failure")
}

fn open(fd: FileDescriptor, name: &str, flags: OpenFlags) -> op::Op {
    op::Op::Open { fd, path: FilePath::target(name), flags }
}

fn read(len: u64, times: u64) -> op::Op {
    op::Op::Read { fd: A, len, times }
}

fn write(len: u64, times: u64) -> op::Op {
    op::Op::Write { fd: A, len, content: Content::Zeroes, times }
}

fn write_at(at: u64, len: u64) -> Io {
    Io::Write { fd: A, at, len, content: Content::Zeroes }
}

fn read_at(at: u64, len: u64) -> Io {
    Io::Read { fd: A, at, len }
}

fn seek(to: Seek) -> op::Op {
    op::Op::Seek { fd: A, to }
}

fn stat(name: &str) -> op::Op {
    op::Op::Stat { path: FilePath::target(name) }
}

/// What was heard after the given operation, counted from 0.
fn moved(heard: &[op::OpResult], after: usize) -> u64 {
    assert!(matches!(heard[after + 1], op::OpResult::Moved(_)), "{:?}", heard[after + 1]);
    heard[after + 1].moved()
}

fn size(size: u64) -> op::OpResult {
    op::OpResult::Status(Status { size, is_directory: false })
}

#[test]
fn positions_move_and_files_end() {
    let (asked, heard) = translate(vec![
        open(A, "b", OpenFlags::WRITE),
        write(4096, 3),
        seek(Seek::Start(4096)),
        read(4096, 9),
        read(4096, 1),
        seek(Seek::Current(-512)),
        read(4096, 1),
        op::Op::At(read_at(0, 512)),
        seek(Seek::End),
        write(512, 1),
        op::Op::Close { fd: A },
    ]);
    let at = |op: fn(u64, u64) -> Asked<Request>, from: u64, len| op(AT_B + from, len);
    let (r, w) = (reads, writes);
    assert_eq!(
        asked,
        [
            at(w, 0, 4096),
            at(w, 4096, 4096),
            at(w, 8192, 4096),
            at(r, 4096, 4096),
            at(r, 8192, 4096),
            at(r, 12288 - 512, 512),
            at(r, 0, 512),
            at(w, 12288, 512),
        ]
    );
    let heard: Vec<u64> = [1, 3, 4, 6, 7, 9].map(|after| moved(&heard, after)).into();
    assert_eq!(heard, [12288, 8192, 0, 512, 512, 512]);
}

#[test]
fn truncating_cuts_and_lengthens() {
    let (asked, heard) = translate(vec![
        open(A, "a", OpenFlags { read: true, ..OpenFlags::WRITE }),
        write(8192, 1),
        op::Op::Truncate { fd: A, len: 4096 },
        op::Op::At(read_at(0, 8192)),
        op::Op::Truncate { fd: A, len: 64 << 10 },
        op::Op::At(read_at(60 << 10, 8192)),
        stat("a"),
        open(B, "a", OpenFlags::WRITE),
        stat("a"),
    ]);
    let expected = [writes(0, 8192), reads(0, 4096), reads(60 << 10, 4096)];
    assert_eq!(asked, expected);
    assert_eq!([moved(&heard, 3), moved(&heard, 5)], [4096, 4096]);
    assert_eq!([&heard[7], &heard[9]], [&size(64 << 10), &size(0)]);
    let longer = fails(vec![
        open(A, "a", OpenFlags::WRITE),
        op::Op::Truncate { fd: A, len: (64 << 10) + 1 },
    ]);
    assert!(longer.contains("a is to have") && longer.contains("64KiB"), "{longer}");
    let behind = fails(vec![open(A, "a", OpenFlags::WRITE), op::Op::At(write_at(64 << 10, 512))]);
    assert!(behind.contains("its place has 64KiB"), "{behind}");
}

#[test]
fn writes_with_o_sync_are_flushed_one_by_one() {
    let flags = OpenFlags { sync: true, read: true, ..OpenFlags::WRITE };
    let (asked, heard) = translate(vec![
        open(A, "a", flags),
        write(512, 2),
        op::Op::At(write_at(4096, 4096)),
        op::Op::At(read_at(0, 512)),
        op::Op::Start { tag: 1, io: write_at(8192, 512) },
        op::Op::Start { tag: 2, io: read_at(0, 512) },
        op::Op::Finish,
        op::Op::Finish,
    ]);
    assert_eq!(
        asked,
        [
            writes(0, 512),
            SYNC,
            writes(512, 512),
            SYNC,
            writes(4096, 4096),
            SYNC,
            reads(0, 512),
            Asked::Start(0, Request::Write(8192, 512)),
            Asked::Start(0, Request::Read(0, 512)),
            Asked::Finish,
            SYNC,
            Asked::Finish,
        ]
    );
    assert_eq!([moved(&heard, 1), moved(&heard, 2)], [1024, 4096]);
}

#[test]
fn what_is_started_is_told_when_it_is_waited_for() {
    let finished = |tag, moved| op::OpResult::Finished { tag, moved };
    let (asked, heard) = translate(vec![
        open(A, "a", OpenFlags { read: true, ..OpenFlags::WRITE }),
        write(6144, 1),
        op::Op::Start { tag: 7, io: read_at(4096, 4096) },
        // Nothing is there: done at once, and before the others.
        op::Op::Start { tag: 8, io: read_at(8192, 4096) },
        op::Op::Start { tag: 9, io: write_at(8192, 512) },
        op::Op::Finish,
        op::Op::Finish,
        op::Op::Start { tag: 7, io: read_at(0, 512) },
        op::Op::Finish,
        op::Op::Finish,
    ]);
    assert_eq!(
        asked,
        [
            writes(0, 6144),
            Asked::Start(0, Request::Read(4096, 2048)),
            Asked::Start(0, Request::Write(8192, 512)),
            Asked::Finish,
            Asked::Start(0, Request::Read(0, 512)),
            Asked::Finish,
            Asked::Finish,
        ]
    );
    for after in [2, 3, 4, 7] {
        assert_eq!(heard[after + 1], op::OpResult::Done, "operation {after}");
    }
    assert_eq!(heard[6..8], [finished(8, 0), finished(7, 2048)]);
    assert_eq!(heard[9..11], [finished(9, 512), finished(7, 512)]);
    let nothing = fails(vec![op::Op::Finish]);
    assert!(nothing.contains("has started nothing"), "{nothing}");
}

#[test]
fn flushes_are_for_files_of_the_target() {
    let source = SourceFile { name: "s".into(), bytes: Arc::new(Zeroes { len: 512 }) };
    let (planned, heard) = script(vec![
        open(A, "a", OpenFlags::WRITE),
        op::Op::Fsync { fd: A },
        op::Op::Fdatasync { fd: A },
        op::Op::SyncAll,
        op::Op::Open { fd: B, path: FilePath::source("s"), flags: OpenFlags::READ },
        op::Op::Fsync { fd: B },
        op::Op::Close { fd: B },
        op::Op::Open { fd: B, path: FilePath::null(), flags: OpenFlags::WRITE },
        op::Op::Fdatasync { fd: B },
    ]);
    let plan = Plan { run: vec![planned], sources: vec![source], ..plan() };
    let (asked, _, failure) = translate_all(plan, heard);
    assert_eq!((asked, failure), (vec![SYNC; 3], None));
    let empty = fails(vec![op::Op::Fsync { fd: B }]);
    assert!(empty.contains("fd 1, which holds no file"), "{empty}");
}

#[test]
fn copies_read_and_write_what_lies_on_the_target() {
    let source = SourceFile { name: "s".into(), bytes: Arc::new(Zeroes { len: 6000 }) };
    let copy = |len| op::Op::CopyRange { from: A, to: B, len };
    let close = |fd| op::Op::Close { fd };
    let (planned, heard) = script(vec![
        op::Op::Open { fd: A, path: FilePath::source("s"), flags: OpenFlags::READ },
        open(B, "b", OpenFlags::WRITE),
        copy(4096),
        copy(4096),
        copy(4096),
        close(A),
        close(B),
        open(A, "b", OpenFlags::READ),
        open(B, "a", OpenFlags { sync: true, ..OpenFlags::WRITE }),
        copy(1 << 20),
        close(B),
        seek(Seek::Start(1000)),
        op::Op::Open { fd: B, path: FilePath::null(), flags: OpenFlags::WRITE },
        copy(500),
    ]);
    let plan = Plan { run: vec![planned], sources: vec![source], ..plan() };
    let (asked, heard, failure) = translate_all(plan, heard);
    assert_eq!(failure, None);
    assert_eq!(
        asked,
        [
            writes(AT_B, 4096),
            writes(AT_B + 4096, 1904),
            reads(AT_B, 6000),
            writes(0, 6000),
            SYNC,
            reads(AT_B + 1000, 500),
        ]
    );
    let heard: Vec<u64> = [2, 3, 4, 9, 13].map(|after| moved(&heard, after)).into();
    assert_eq!(heard, [4096, 1904, 0, 6000, 500]);
    let missing = fails(vec![open(A, "a", OpenFlags::BOTH), copy(1)]);
    assert!(missing.contains("fd 1"), "the one that is empty: {missing}");
}

#[test]
fn nothing_from_elsewhere_and_dev_null_cost_anything() {
    let source = SourceFile { name: "d/s".into(), bytes: Arc::new(Zeroes { len: 10_000 }) };
    let (planned, heard) = script(vec![
        op::Op::Open { fd: A, path: FilePath::source("d/s"), flags: OpenFlags::READ },
        read(4096, 9),
        op::Op::Close { fd: A },
        op::Op::Open { fd: A, path: FilePath::null(), flags: OpenFlags::WRITE },
        write(4096, 5),
        op::Op::At(read_at(0, 512)),
        op::Op::Start { tag: 3, io: write_at(0, 4096) },
        op::Op::Finish,
    ]);
    // The name of the source has a directory, which nobody makes.
    let plan = Plan { run: vec![planned], sources: vec![source], ..plan() };
    let (asked, heard, failure) = translate_all(plan, heard);
    assert_eq!((asked, failure), (Vec::new(), None));
    assert_eq!([moved(&heard, 1), moved(&heard, 4), moved(&heard, 5)], [10_000, 20_480, 0]);
    assert_eq!(heard[8], op::OpResult::Finished { tag: 3, moved: 4096 });
}

#[test]
fn a_file_that_nobody_made_is_there_at_full_length_until_it_is_removed() {
    let unlink = |name: &str| op::Op::Unlink { path: FilePath::target(name) };
    let exclusive = OpenFlags { exclusive: true, ..OpenFlags::WRITE };
    let (asked, heard) = translate(vec![
        stat("a"),
        open(A, "a", OpenFlags::READ),
        read(32 << 10, 9),
        op::Op::Close { fd: A },
        unlink("a"),
        open(A, "a", exclusive),
        stat("a"),
        write(512, 1),
        stat("a"),
        unlink("b"),
        // Made where nobody has touched its place, it is empty.
        open(B, "b", OpenFlags { create: true, ..OpenFlags::BOTH }),
        stat("b"),
    ]);
    let half = 32 << 10;
    let again = writes(0, 512);
    assert_eq!(asked, [reads(0, half), reads(half, half), again]);
    assert_eq!([&heard[1], &heard[7], &heard[9]], [&size(2 * half), &size(0), &size(512)]);
    assert_eq!(heard[12], size(0));
    for ops in [vec![unlink("a"), open(A, "a", OpenFlags::READ)], vec![unlink("a"), stat("a")]] {
        let gone = fails(ops);
        assert!(gone.contains("a"), "{gone}");
    }
    assert!(fails(vec![open(A, "c", OpenFlags::WRITE)]).contains("c has no place on this target"));
    assert!(fails(vec![open(A, "c", OpenFlags::READ)]).contains("No such file"));
}

/// A name goes away at once, what it stood for with the last descriptor that holds it.
#[test]
fn a_file_without_a_name_is_there_while_it_is_open() {
    let unlink = op::Op::Unlink { path: FilePath::target("a") };
    let create = OpenFlags { create: true, ..OpenFlags::BOTH };
    let (asked, heard) = translate(vec![
        open(A, "a", create),
        write(8192, 1),
        open(B, "a", OpenFlags::BOTH),
        unlink.clone(),
        op::Op::Close { fd: A },
        op::Op::At(Io::Read { fd: B, at: 4096, len: 8192 }),
        op::Op::At(Io::Write { fd: B, at: 8192, len: 512, content: Content::Zeroes }),
        op::Op::At(Io::Read { fd: B, at: 8192, len: 4096 }),
        op::Op::Truncate { fd: B, len: 4096 },
        op::Op::At(Io::Read { fd: B, at: 0, len: 8192 }),
        // Another of that name is empty, and another file.
        open(A, "a", create),
        op::Op::At(Io::Read { fd: A, at: 0, len: 4096 }),
        op::Op::At(Io::Read { fd: B, at: 0, len: 4096 }),
        // What takes its place in a descriptor closes it.
        open(B, "b", OpenFlags::READ),
        unlink,
        op::Op::At(Io::Write { fd: A, at: 4096, len: 4096, content: Content::Zeroes }),
    ]);
    let (first, second) = (reads(4096, 4096), writes(8192, 512));
    let (third, fourth) = (reads(8192, 512), reads(0, 4096));
    let expected = [writes(0, 8192), first, second, third, fourth, fourth, writes(4096, 4096)];
    assert_eq!(asked, expected);
    assert_eq!([5, 6, 7, 9].map(|index| moved(&heard, index)), [4096, 512, 512, 4096]);
    assert_eq!([11, 12].map(|index| moved(&heard, index)), [0, 4096]);
}

#[test]
fn what_the_stages_before_did_is_known_and_not_asked_again() {
    let (prepare, _) = script(vec![open(A, "a", OpenFlags::WRITE), write(4096, 2)]);
    let (warm, _) = script(vec![open(A, "a", OpenFlags::READ), read(4096, 2), op::Op::SyncAll]);
    let (run, heard) = script(vec![open(A, "a", OpenFlags::READ), read(4096, 9)]);
    let plan = Plan { prepare: vec![prepare], warm: vec![warm], run: vec![run], ..plan() };
    let (asked, heard, failure) = translate_all(plan, heard);
    assert_eq!(failure, None);
    assert_eq!(asked, [reads(0, 4096), reads(4096, 4096)]);
    assert_eq!(moved(&heard, 1), 8192);
    let (prepare, _) = script(vec![op::Op::Mkdir { path: FilePath::target("d") }]);
    let error = RawPlan::new(Plan { prepare: vec![prepare], ..self::plan() }, SPACE).unwrap_err();
    assert_eq!(error.kind, WorkloadErrorKind::NotSupported, "{error}");
}

#[test]
fn what_processes_share_is_passed_on() {
    let passed = [
        Asked::Sleep(Nanos(5)),
        Asked::Compute(Work::Time(Nanos(6))),
        Asked::Compute(Work::StdioBytes(7)),
        Asked::Barrier(1),
        Asked::Put(2, -1, 3),
        Asked::Take(2),
        Asked::Mark(Mark::Begin(0)),
    ];
    let (asked, heard) = translate(vec![
        op::Op::Sleep(Nanos(5)),
        op::Op::Compute(Nanos(6)),
        op::Op::StdioBytes(7),
        op::Op::Barrier(1),
        op::Op::Put { queue: 2, ticket: -1, times: 3 },
        op::Op::Take { queue: 2 },
        op::Op::Mark(Mark::Begin(0)),
    ]);
    assert_eq!(asked, passed);
    assert_eq!(heard[6..], [op::OpResult::Ticket(102), op::OpResult::Done]);
    assert_eq!(heard[..2], [op::OpResult::Start, op::OpResult::Done]);
    let plan = Plan { barriers: vec![2, 5], queues: 3, asks_time: true, ..plan() };
    let raw = RawPlan::new(plan, SPACE).expect("a plan");
    assert_eq!((raw.barriers, raw.queues, raw.asks_time), (vec![2, 5], 3, true));
    assert_eq!(raw.extents, [(0, 64 << 10), (AT_B, AT_B + (32 << 10))]);
}

#[test]
fn what_only_a_filesystem_has_is_named() {
    let path = || FilePath::target("a");
    for (asked, name) in [
        (op::Op::Mkdir { path: path() }, "Mkdir"),
        (op::Op::List { path: path() }, "List"),
        (op::Op::Rename { from: path(), to: path() }, "Rename"),
    ] {
        let failure = fails(vec![asked]);
        assert!(failure.contains(name) && failure.contains("needs a filesystem"), "{failure}");
    }
    // These cost nothing and change nothing.
    let attribute = op::Attribute::Times;
    let (asked, _) = translate(vec![
        open(A, "a", OpenFlags::WRITE),
        op::Op::Set { of: op::AttributeTarget::Descriptor(A), attribute },
        op::Op::DropCached { fd: A },
        op::Op::FsyncDirectory { path: FilePath::target("") },
    ]);
    assert_eq!(asked, []);
    assert_eq!(check(&plan(), SPACE, 512), Ok(()));
    assert_eq!(check(&plan(), SPACE, 8192).unwrap_err().kind, WorkloadErrorKind::Block);
    assert_eq!(check(&plan(), 1 << 16, 512).unwrap_err().kind, WorkloadErrorKind::DoesNotFit);
}
