//! Parallel readers: what is made, what is read, and how fast that was.

use std::sync::Arc;

use raidlab_workload::null::NullTarget;
use raidlab_workload::{
    Content, FileDescriptor, FilePath, Mark, Op, OpenFlags, Parameters, Setting, Workload,
    WorkloadErrorKind, make,
};

fn cp(parameters: &[(&str, &str)]) -> Arc<dyn Workload> {
    let given = Parameters::new(parameters.iter().copied()).expect("no key twice");
    make("cp-parallel", given).expect("it can be")
}

#[test]
fn each_copy_reads_its_own_file_into_nothing() {
    let workload = cp(&[("files", "3"), ("size", "10000B"), ("block", "4KiB")]);
    let plan = workload.plan(&Setting::new(2, 1)).expect("it can be");
    assert_eq!((plan.files.len(), plan.run.len(), plan.prepare.len()), (3, 2, 1));
    assert_eq!((plan.room, plan.needs_filesystem), (30_000, None));
    let mut target = NullTarget::default();
    target.keep_steps();
    let record = target.run(plan).expect("it runs");
    let (from, to) = (FileDescriptor(0), FileDescriptor(1));
    for process in 0..2 {
        let steps = target.steps().iter().filter(|step| step.process == process);
        let ops: Vec<Op> = steps.map(|step| step.op.clone()).collect();
        let read = Op::Read { fd: from, len: 4096, times: 1 };
        let content = Content::Buffer { from: 0 };
        let write = |len| Op::Write { fd: to, len, content, times: 1 };
        let path = FilePath::target(format!("cp.{process}"));
        let null = OpenFlags { create: false, ..OpenFlags::WRITE };
        let expected = [
            Op::Mark(Mark::Begin(0)),
            Op::Open { fd: from, path, flags: OpenFlags::READ },
            Op::Open { fd: to, path: FilePath::null(), flags: null },
            read.clone(),
            write(4096),
            read.clone(),
            write(4096),
            read.clone(),
            write(10_000 - 8192),
            read,
            Op::Close { fd: from },
            Op::Close { fd: to },
            Op::Mark(Mark::End(0)),
            Op::Done,
        ];
        assert_eq!(ops, expected);
    }
    // 20,000 bytes in the time of the last one.
    let expected = 20_000.0 / 1e6 / record.last_done().as_secs();
    assert_eq!(workload.values(&record), [Some(expected)]);
    assert_eq!(workload.metrics()[0].name, "mb_per_s");
}

#[test]
fn files_are_written_one_after_the_other_whatever_the_copies() {
    let workload = cp(&[]);
    let mut plan = workload.plan(&Setting::new(1, 1)).expect("it can be");
    assert_eq!((plan.files.len(), plan.files[4].bytes), (5, 3_200_000_000));
    let mut target = NullTarget::default();
    target.keep_steps();
    plan.run = plan.prepare.drain(..).collect();
    target.run(plan).expect("it runs");
    let open = |step: &raidlab_workload::null::NullStep| match &step.op {
        Op::Open { path, flags, .. } => Some((path.to_string(), *flags)),
        _ => None,
    };
    let opened: Vec<_> = target.steps().iter().filter_map(open).collect();
    let files = (0..5).map(|index| (format!("cp.{index}"), OpenFlags::WRITE)).collect::<Vec<_>>();
    assert_eq!(opened, files);
    let flushed = target.steps().iter().filter(|step| matches!(step.op, Op::Fsync { .. })).count();
    assert_eq!(flushed, 5);
    let size = |name: &str| {
        let names = target.names();
        names.status(names.find(&FilePath::target(name)).expect("it was made")).size
    };
    assert_eq!((size("cp.0"), size("cp.4")), (3_200_000_000, 3_200_000_000));
}

#[test]
fn contents_differ_and_are_known() {
    let plan = cp(&[("size", "64B")]).plan(&Setting::new(5, 1)).expect("it can be");
    let mut seen: Vec<[u8; 64]> = Vec::new();
    for expected in &plan.expected {
        let mut bytes = [0; 64];
        expected.bytes.fill(0, &mut bytes);
        assert!(!seen.contains(&bytes));
        seen.push(bytes);
    }
    assert_eq!(seen.len(), 5);
}

#[test]
fn nonsense_is_refused() {
    for (parameters, key) in [
        ([("files", "0")], "files"),
        ([("size", "0")], "size"),
        ([("block", "2GiB")], "block"),
        ([("blocks", "1")], "blocks"),
    ] {
        let given = Parameters::new(parameters).expect("no key twice");
        assert_eq!(make("cp-parallel", given).expect_err(key).key, key);
    }
    let error = cp(&[]).plan(&Setting::new(6, 1)).expect_err("five files");
    let words = "files: 5 are too few for 6 copies that read a file each; use files=6";
    assert_eq!(error.to_string(), words);
    assert_eq!(cp(&[]).resized(0).expect_err("nothing").kind, WorkloadErrorKind::Size);
    let small = cp(&[]).resized(1000).expect("it can be");
    assert_eq!(small.plan(&Setting::new(1, 1)).expect("it can be").room, 5000);
    assert!(small.description().starts_with("cp of a file of 1000B, one of 5"));
    assert_eq!((small.kind(), small.default_name()), ("cp-parallel", "cp_parallel".to_string()));
}
