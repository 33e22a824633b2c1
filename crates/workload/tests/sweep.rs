//! The block-size sweep: what is written, what is timed, and what it is called.

use std::sync::Arc;

use raidlab_core::Time;
use raidlab_workload::null::NullTarget;
use raidlab_workload::{
    Class, Content, FileDescriptor, FilePath, Mark, Op, OpenFlags, Parameters, PhaseRecord,
    ProcessRecord, RunRecord, Setting, Workload, make,
};

const SLOT: FileDescriptor = FileDescriptor(0);

fn sweep(parameters: &[(&str, &str)]) -> Arc<dyn Workload> {
    let given = Parameters::new(parameters.iter().copied()).expect("no key twice");
    make("blocksize-sweep", given).expect("it can be")
}

/// The operations of a pass; the flush is within the time, opening is not.
fn pass(copy: usize, phase: u16, writes: &[(u64, u64)]) -> Vec<Op> {
    let (fd, path) = (SLOT, FilePath::target(format!("sweep.{copy}")));
    let mut ops = vec![
        Op::Open { fd, path, flags: OpenFlags::WRITE },
        Op::Barrier(0),
        Op::Mark(Mark::Begin(phase)),
    ];
    let content = Content::Zeroes;
    ops.extend(writes.iter().map(|&(len, times)| Op::Write { fd, len, content, times }));
    ops.extend([Op::Fsync { fd }, Op::Mark(Mark::End(phase)), Op::Close { fd }]);
    ops
}

#[test]
fn one_pass_for_each_block() {
    let workload = sweep(&[("size", "10000B"), ("blocks", "4KiB,1KiB")]);
    let mut target = NullTarget::default();
    target.keep_steps();
    let plan = workload.plan(&Setting::new(2, 1)).expect("it can be");
    assert_eq!(plan.phases, ["write_4KiB", "write_1KiB"]);
    assert_eq!((plan.room, plan.files[1].bytes, plan.expected.len()), (20_000, 10_000, 2));
    target.run(plan).expect("it runs");
    for copy in 0..2 {
        let steps = target.steps().iter().filter(|step| step.process == copy);
        let ops: Vec<Op> = steps.map(|step| step.op.clone()).collect();
        let mut expected = pass(copy, 0, &[(4096, 2), (10_000 - 8192, 1)]);
        expected.extend(pass(copy, 1, &[(1024, 9), (10_000 - 9216, 1)]));
        expected.push(Op::Done);
        assert_eq!(ops, expected);
    }
}

#[test]
fn one_block_is_one_metric_and_many_are_many() {
    let names = |workload: &dyn Workload| -> Vec<&str> {
        workload.metrics().iter().map(|metric| metric.name).collect()
    };
    let one = sweep(&[("block", "96KiB")]);
    assert_eq!(
        (names(&*one), one.default_name()),
        (vec!["mib_per_s"], "blocksize_sweep_96KiB".into())
    );
    let many = sweep(&[("blocks", "4KiB, 1MiB")]);
    assert_eq!(names(&*many), ["mib_per_s_4KiB", "mib_per_s_1MiB"]);
    assert_eq!(many.default_name(), "blocksize_sweep");
    let words = "writes a file of 1GiB in blocks of 4KiB, then 1MiB and flushes it";
    assert_eq!(many.description(), words);
    // 1 s and 4 s for 6 MiB.
    let phase = |began: u64, ended: u64| {
        let at = |second: u64| Some(Time(second * 1_000_000_000));
        let mut phase =
            PhaseRecord { began: at(began), ended: at(ended), ..PhaseRecord::default() };
        phase.of_mut(Class::Write).add(6 << 20, raidlab_core::Nanos(1));
        phase
    };
    let phases = vec![phase(1, 2), phase(3, 7)];
    let processes = vec![ProcessRecord { copy: 0, ended: Time::ZERO, phases }];
    let record = RunRecord { processes, ..RunRecord::default() };
    assert_eq!(many.values(&record), [Some(6.0), Some(1.5)]);
    assert_eq!(one.values(&record), [Some(6.0)]);
}

#[test]
fn nonsense_is_refused() {
    for (parameters, key) in [
        (&[("block", "4KiB"), ("blocks", "4KiB,8KiB")][..], "blocks"),
        (&[("blocks", "4KiB,4KiB")], "blocks"),
        (&[("blocks", "4KiB,6KiB")], "blocks"),
        (&[("blocks", "")], "blocks"),
        (&[("block", "0")], "block"),
        (&[("block", "2GiB"), ("size", "4GiB")], "block"),
        (&[("block", "2MiB"), ("size", "1MiB")], "block"),
        (&[("size", "0")], "size"),
        (&[("count", "1")], "count"),
    ] {
        let given = Parameters::new(parameters.iter().copied()).expect("no key twice");
        assert_eq!(make("blocksize-sweep", given).expect_err(key).key, key, "{parameters:?}");
    }
    let workload = sweep(&[("block", "1MiB")]);
    assert_eq!(workload.resized(1000).expect_err("smaller than a block").key, "block");
    let small = workload.resized(3 << 20).expect("it can be");
    assert_eq!(small.plan(&Setting::new(2, 1)).expect("it can be").room, 6 << 20);
}
