//! What the processes of a workload ask for, taken as a whole.

use raidlab_core::{Sectors, Time};
use raidlab_workload::raw::{Op, OpResult, Process, RawPlan};
use raidlab_workload::{Kind, Setting, Simple, Span, Workload};

const CAPACITY: Sectors = Sectors(100_000 * 8 + 3); // a little over 390 MiB, not a round number
const BLOCK: u64 = 64 << 10;

fn spec(kind: Kind, size: u64, span: Span) -> Simple {
    Simple { kind, block: BLOCK, size, span }
}

fn processes(spec: &Simple, count: u32, seed: u64) -> Vec<Process> {
    let space = CAPACITY.bytes();
    let setting = Setting { space: Some(space), ..Setting::new(count, seed) };
    let plan = spec.plan(&setting).expect("a plan");
    RawPlan::new(plan, space).expect("it fits").processes
}

/// Every operation of a process, each one carried out.
fn run(process: &mut Process) -> Vec<Op> {
    let mut last = OpResult::Start;
    let mut all = Vec::new();
    loop {
        let op = process.next(Time(all.len() as u64), last);
        if !matches!(op, Op::Mark(_)) {
            all.push(op);
        }
        last = OpResult::Done;
        if op == Op::Done {
            return all;
        }
    }
}

/// The byte ranges of the reads and writes, in order.
fn ranges(ops: &[Op]) -> Vec<(u64, u64)> {
    let range = |op: &Op| match *op {
        Op::Read { at, len } | Op::Write { at, len } => Some((at, at + len)),
        _ => None,
    };
    ops.iter().filter_map(range).collect()
}

#[test]
fn sequential_files_are_whole_disjoint_and_inside_the_span() {
    for kind in [Kind::DdWrite, Kind::DdRead] {
        for (span, limit) in [
            (Span::Percent(100), CAPACITY.bytes()),
            (Span::Percent(37), CAPACITY.bytes() * 37 / 100),
            (Span::Bytes(100 << 20), 100 << 20),
        ] {
            for processes in [1, 2, 3, 7] {
                let size = 10 * BLOCK + 4096;
                let spec = spec(kind, size, span);
                spec.check(CAPACITY, processes, 8).unwrap();
                let mut before = 0;
                for (index, mut process) in (0u64..).zip(self::processes(&spec, processes, 1)) {
                    let ops = run(&mut process);
                    let ranges = ranges(&ops);
                    let start = limit * index / u64::from(processes) / BLOCK * BLOCK;
                    assert_eq!(ranges[0].0, start);
                    assert!(start >= before, "files overlap");
                    assert!(ranges.windows(2).all(|pair| pair[0].1 == pair[1].0));
                    assert_eq!(ranges.len() as u64, spec.operations());
                    assert_eq!(
                        ranges[10],
                        (start + 10 * BLOCK, start + size),
                        "a short last block"
                    );
                    before = start + size;
                    let ends_with_flush = ops[ops.len() - 2] == Op::Sync;
                    assert_eq!(ends_with_flush, kind == Kind::DdWrite);
                }
                assert!(before <= limit, "the last file ends behind the span");
            }
        }
    }
}

#[test]
fn random_places_are_whole_blocks_all_over_the_shared_span() {
    for kind in [Kind::RandomRead, Kind::RandomWrite] {
        let spec = spec(kind, 4000 * BLOCK, Span::Bytes(20 * BLOCK + 512));
        spec.check(CAPACITY, 3, 8).unwrap();
        for mut process in processes(&spec, 3, 1) {
            let ops = run(&mut process);
            let ranges = ranges(&ops);
            assert_eq!(ranges.len(), 4000);
            let mut counts = [0u32; 20];
            for (from, to) in ranges {
                assert!(from % BLOCK == 0 && to == from + BLOCK);
                counts[(from / BLOCK) as usize] += 1; // panics behind the span
            }
            // Six standard deviations: sqrt(4,000 x 1/20 x 19/20) = 13.8.
            assert!(counts.iter().all(|count| count.abs_diff(200) < 83), "{counts:?}");
            assert_eq!(
                ops.iter().filter(|op| **op == Op::Sync).count(),
                usize::from(spec.writes())
            );
            assert_eq!(matches!(ops[0], Op::Write { .. }), spec.writes());
        }
    }
}

#[test]
fn the_seed_decides_the_places() {
    let spec = spec(Kind::RandomRead, 100 * BLOCK, Span::default());
    let all = |seed| -> Vec<Vec<Op>> { processes(&spec, 3, seed).iter_mut().map(run).collect() };
    let (first, again, other) = (all(1), all(1), all(2));
    assert_eq!(first, again);
    assert!(first[0] != first[1] && first[1] != first[2] && first[0] != first[2]);
    assert!(first.iter().all(|ops| !other.contains(ops)));
}

#[test]
fn more_processes_do_not_change_the_places_of_the_first_ones() {
    let spec = spec(Kind::RandomWrite, 10 * BLOCK, Span::default());
    let all = |count| -> Vec<Vec<Op>> { processes(&spec, count, 9).iter_mut().map(run).collect() };
    assert_eq!(all(4)[..2], all(2)[..]);
}

#[test]
fn a_process_that_is_done_stays_done() {
    for kind in Kind::ALL {
        let spec = spec(kind, 10 * BLOCK, Span::default());
        let mut process = processes(&spec, 1, 1).remove(0);
        run(&mut process);
        assert_eq!(process.next(Time(3), OpResult::Done), Op::Done);
    }
}
