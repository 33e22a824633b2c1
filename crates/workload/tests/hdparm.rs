//! hdparm's timings: what they ask for, when they end, and what is printed.

use std::sync::Arc;

use raidlab_core::{Nanos, Time};
use raidlab_workload::null::NullTarget;
use raidlab_workload::{
    Class, FileDescriptor, FilePath, Mark, Memory, Op, OpResult, OpenFlags, Parameters,
    PhaseRecord, Process, ProcessRecord, RunRecord, Seek, Setting, Workload, WorkloadErrorKind,
    make,
};

const SLOT: FileDescriptor = FileDescriptor(0);
const MIB: u64 = 1 << 20;
const READ: Op = Op::Read { fd: SLOT, len: 2 * MIB, times: 1 };
const TO_START: Op = Op::Seek { fd: SLOT, to: Seek::Start(0) };

fn hdparm(kind: &str, parameters: &[(&str, &str)]) -> Arc<dyn Workload> {
    make(kind, Parameters::new(parameters.iter().copied()).expect("no key twice")).expect(kind)
}

fn process(workload: &dyn Workload, setting: &Setting) -> Box<dyn Process> {
    workload.plan(setting).expect("it can be").run.remove(0).process
}

/// All that a process asks for by a clock that moves by `step` with each operation of a kind, with sleeps
/// taking no time.
fn drive(mut process: Box<dyn Process>, step: impl Fn(&Op) -> Nanos) -> Vec<Op> {
    let (mut now, mut ops, mut last) = (Time(5_000_000_000), Vec::new(), OpResult::Start);
    loop {
        let op = process.next(now, last);
        let is_done = op == Op::Done;
        now = Time(now.0 + step(&op).0);
        last = match op {
            Op::Read { len, times, .. } => OpResult::Moved(len * times),
            _ => OpResult::Done,
        };
        ops.push(op);
        if is_done {
            return ops;
        }
    }
}

fn flush() -> [Op; 6] {
    let fd = SLOT;
    let (fsync, fdatasync) = (Op::Fsync { fd }, Op::Fdatasync { fd });
    [Op::SyncAll, fsync, fdatasync, Op::SyncAll, Op::DropCached { fd }, Op::SyncAll]
}

fn raw(space: u64) -> Setting {
    Setting { space: Some(space), ..Setting::new(1, 1) }
}

fn millis(millis: u64) -> impl Fn(&Op) -> Nanos {
    move |op| if *op == READ { Nanos::from_millis(millis) } else { Nanos::ZERO }
}

fn reads(ops: &[Op]) -> usize {
    ops.iter().filter(|op| **op == READ).count()
}

#[test]
fn device_reads_in_order() {
    let workload = hdparm("hdparm-t", &[]);
    let ops = drive(process(&*workload, &raw(64 << 30)), millis(1100));
    let mut expected = vec![
        Op::Open { fd: SLOT, path: FilePath::target("hdparm"), flags: OpenFlags::READ },
        Op::SyncAll,
        Op::Sleep(Nanos::from_millis(3000)),
        Op::Mark(Mark::Begin(0)),
        READ, // 1.1 s
        READ, // 2.2 s
        READ, // 3.3 s, at least 3
        Op::Mark(Mark::End(0)),
    ];
    expected.extend(flush());
    expected.extend([Op::Close { fd: SLOT }, Op::Done]);
    assert_eq!(ops, expected);
}

#[test]
fn device_reads_end_at_three_seconds_or_with_the_device() {
    let workload = hdparm("hdparm-t", &[]);
    let count = |space, step| reads(&drive(process(&*workload, &raw(space)), millis(step)));
    assert_eq!(count(64 << 30, 1000), 3, "three seconds exactly are enough");
    assert_eq!(count(64 << 30, 999), 4);
    assert_eq!(count(64 << 30, 4000), 1);
    assert_eq!(count(64 << 30, 30), 100);
    assert_eq!(count(9 * MIB, 30), 4, "whole reads only");
    assert_eq!(count(2 * MIB, 0), 1);
    let short = hdparm("hdparm-t", &[("time", "500ms"), ("offset", "8MiB")]);
    let ops = drive(process(&*short, &raw(64 << 30)), millis(100));
    assert_eq!(reads(&ops), 5);
    assert_eq!(ops[3], Op::Seek { fd: SLOT, to: Seek::Start(8 * MIB) });
    assert_eq!(reads(&drive(process(&*short, &raw(13 * MIB)), millis(100))), 2);
}

#[test]
fn direct_is_a_flag_of_open() {
    for kind in ["hdparm-t", "hdparm-T"] {
        let workload = hdparm(kind, &[("direct", "true"), ("settle", "1ms")]);
        let ops = drive(process(&*workload, &raw(8 * MIB)), millis(1000));
        let flags = OpenFlags { direct: true, ..OpenFlags::READ };
        assert_eq!(ops[0], Op::Open { fd: SLOT, path: FilePath::target("hdparm"), flags });
        assert_eq!(ops[2], Op::Sleep(Nanos::from_millis(1)));
    }
}

#[test]
fn cached_reads_in_order() {
    let workload = hdparm("hdparm-T", &[]);
    let ops = drive(process(&*workload, &raw(64 << 30)), millis(700));
    let second = Op::Sleep(Nanos::from_millis(1000));
    let mut expected = vec![
        Op::Open { fd: SLOT, path: FilePath::target("hdparm"), flags: OpenFlags::READ },
        Op::SyncAll,
        Op::Sleep(Nanos::from_millis(3000)),
        TO_START,
        READ,
    ];
    expected.extend(flush());
    expected.extend([second.clone(), Op::Mark(Mark::Begin(0))]);
    // 0.7, 1.4 and 2.1 s.
    expected.extend([TO_START, READ, TO_START, READ, TO_START, READ]);
    expected.extend([Op::Mark(Mark::End(0)), Op::Mark(Mark::Begin(1))]);
    expected.extend([TO_START, TO_START, TO_START, Op::Mark(Mark::End(1))]);
    expected.extend(flush());
    expected.extend([second, Op::Close { fd: SLOT }, Op::Done]);
    assert_eq!(ops, expected);
}

#[test]
fn a_file_stands_for_the_device_on_a_filesystem() {
    for (kind, memory) in [("hdparm-t", Memory::Cold), ("hdparm-T", Memory::AsIs)] {
        let workload = hdparm(kind, &[("size", "9MiB"), ("time", "1ms")]);
        let plan = workload.plan(&Setting::new(2, 1)).expect("it can be");
        assert_eq!((plan.memory, plan.room, plan.files.len()), (memory, 9 * MIB, 1));
        assert_eq!((plan.expected[0].bytes.len(), plan.prepare.len()), (9 * MIB, 1));
        let mut target = NullTarget::default();
        let record = target.run(plan).expect("it runs");
        assert!(record.processes.iter().all(|process| process.phases[0].reads.bytes > 0));
        if kind == "hdparm-t" {
            assert_eq!(record.phase(0).expect("it ran").reads.bytes, 2 * 8 * MIB);
        }
    }
    let whole = hdparm("hdparm-t", &[]).plan(&Setting::new(1, 1)).expect("it can be");
    assert_eq!(whole.files[0].bytes, 2 << 30);
}

#[test]
fn a_raw_target_is_read_whole_and_not_written() {
    let plan = hdparm("hdparm-t", &[]).plan(&raw(100 * MIB)).expect("it can be");
    assert_eq!(plan.files.len(), 1);
    assert_eq!(plan.files[0].bytes, 100 * MIB);
    assert!(plan.prepare.is_empty() && plan.expected.is_empty() && plan.needs_filesystem.is_none());
    let part = hdparm("hdparm-t", &[]).resized(8 * MIB).expect("it can be");
    assert_eq!(reads(&drive(process(&*part, &raw(100 * MIB)), millis(1))), 4);
}

#[test]
fn nonsense_is_refused() {
    for (parameters, key) in [
        (&[("size", "1MiB")][..], "size"),
        (&[("size", "64MiB"), ("offset", "63MiB")], "size"),
        (&[("offset", "100")], "offset"),
        (&[("offset", "far")], "offset"),
        (&[("time", "3")], "time"),
        (&[("direct", "1")], "direct"),
        (&[("block", "4KiB")], "block"),
    ] {
        let given = Parameters::new(parameters.iter().copied()).expect("no key twice");
        assert_eq!(make("hdparm-t", given).expect_err(key).key, key);
    }
    let given = Parameters::new([("offset", "1MiB")]).expect("no key twice");
    let error = make("hdparm-T", given).expect_err("-T has no offset");
    assert_eq!(error.kind, WorkloadErrorKind::UnknownParameter);
    let small = hdparm("hdparm-t", &[]);
    assert_eq!(small.plan(&raw(MIB)).expect_err("too small").key, "size");
    assert!(small.resized(MIB).is_err());
    let large = small.resized(8 * MIB).expect("it can be").plan(&raw(4 * MIB));
    assert_eq!(large.expect_err("too large").kind, WorkloadErrorKind::DoesNotFit);
}

/// A process that took so long for so many MiB, and for the seeks.
fn measured(mebibytes: u64, millis: u64, overhead: u64) -> ProcessRecord {
    let phase = |millis: u64| PhaseRecord {
        began: Some(Time(7_000_000)),
        ended: Some(Time((7 + millis) * 1_000_000)),
        ..PhaseRecord::default()
    };
    let mut reads = phase(millis);
    for _ in 0..mebibytes / 2 {
        reads.of_mut(Class::Read).add(2 * MIB, Nanos(1));
    }
    ProcessRecord { copy: 0, ended: Time::ZERO, phases: vec![reads, phase(overhead)] }
}

fn record(processes: Vec<ProcessRecord>) -> RunRecord {
    RunRecord { processes, ..RunRecord::default() }
}

#[test]
fn lines_are_those_of_hdparm() {
    let text = |kind: &str, parameters: &[(&str, &str)], process: ProcessRecord| {
        let text = hdparm(kind, parameters).format("text", &record(vec![process]), "host");
        text.expect("a format")
    };
    // Without the second phase, as -t has none.
    let device = |mebibytes, millis| {
        let mut process = measured(mebibytes, millis, 0);
        process.phases.truncate(1);
        process
    };
    assert_eq!(
        text("hdparm-t", &[], device(302, 3010)),
        " Timing buffered disk reads: 302 MB in  3.01 seconds = 100.33 MB/sec\n"
    );
    assert_eq!(
        text("hdparm-t", &[("direct", "true"), ("offset", "5GiB")], device(8, 12_500)),
        " Timing O_DIRECT disk reads (offset 5 GB):   8 MB in 12.50 seconds = 655.36 kB/sec\n"
    );
    assert!(text("hdparm-t", &[], device(4, 4000)).ends_with("= 1024.00 kB/sec\n"));
    assert_eq!(
        text("hdparm-T", &[], measured(2500, 2001, 1)),
        " Timing cached reads:   2500 MB in  2.00 seconds = 1250.00 MB/sec\n"
    );
    assert!(text("hdparm-T", &[], measured(4, 4000, 0)).ends_with("=   1.00 MB/sec\n"));
    assert_eq!(
        text("hdparm-T", &[("direct", "true")], measured(2, 2500, 0)),
        " Timing O_DIRECT cached reads:     2 MB in  2.50 seconds = 819.20 kB/sec\n"
    );
    let workload = hdparm("hdparm-t", &[]);
    assert_eq!(workload.format("csv", &record(vec![device(2, 1)]), "host"), None);
    assert_eq!(workload.formats(), ["text"]);
}

#[test]
fn rates_by_hand() {
    let processes = || vec![measured(100, 2000, 0), measured(200, 2500, 500)];
    let device = hdparm("hdparm-t", &[]).values(&record(processes()));
    assert_eq!(device, [Some(300.0 / 2.5)]);
    let cache = hdparm("hdparm-T", &[]).values(&record(processes()));
    assert_eq!(cache, [Some(50.0 + 100.0)]);
    assert_eq!(hdparm("hdparm-t", &[]).values(&RunRecord::default()), [None]);
    let words = hdparm("hdparm-t", &[("offset", "1GiB")]).description();
    assert_eq!(words, "hdparm -t: reads 2MiB at a time from 1GiB on for 3 s");
}
