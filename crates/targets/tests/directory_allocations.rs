//! Reads and writes of the directory target take no memory once their lengths have been seen: a counting
//! allocator on the thread of a process, while that process repeats what it did before.

#[path = "../../engine/tests/common/mod.rs"]
mod common;
#[path = "../../../tests/support/counting.rs"]
mod counting;
mod directory_support;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use common::TestDirectory;
use directory_support::*;
use raidlab_core::Time;
use raidlab_workload::{
    Content, FileDescriptor, Io, Mark, Op, OpResult, OpenFlags, Planned, Process, Seek,
};

const S: FileDescriptor = FileDescriptor(0);

/// Every way to move bytes; leaves the position where it was.
fn round() -> Vec<Op> {
    let mut ops = Vec::new();
    let contents = [
        Content::Zeroes,
        Content::Buffer { from: 3 },
        Content::Stamp { number: 4 },
        Content::Seeded { seed: 1 },
    ];
    for content in contents {
        ops.push(Op::Write { fd: S, len: 4096, content, times: 10 });
        ops.push(Op::Seek { fd: S, to: Seek::Start(0) });
        ops.push(Op::Read { fd: S, len: 4096, times: 10 });
        ops.push(Op::Seek { fd: S, to: Seek::Start(0) });
    }
    ops.push(Op::At(Io::Read { fd: S, at: 512, len: 1000 }));
    ops.push(Op::At(Io::Write { fd: S, at: 512, len: 1000, content: Content::Zeroes }));
    for tag in 0..8 {
        let at = u64::from(tag) * 4096;
        let io = match tag % 2 {
            0 => Io::Read { fd: S, at, len: 4096 },
            _ => Io::Write { fd: S, at, len: 4096, content: Content::Zeroes },
        };
        ops.push(Op::Start { tag, io });
    }
    ops.extend((0..8).map(|_| Op::Finish));
    ops
}

#[derive(Debug)]
struct Repeating {
    ops: Vec<Op>,
    at: usize,
    warm: usize,
    rounds: usize,
    /// What was counted when the rounds to count began.
    before: u64,
    counted: Arc<AtomicU64>,
}

impl Process for Repeating {
    fn next(&mut self, _now: Time, _last: OpResult) -> Op {
        let at = self.at;
        self.at += 1;
        match at {
            0 => {
                let path = raidlab_workload::FilePath::target("a");
                return Op::Open {
                    fd: S,
                    path,
                    flags: OpenFlags { read: true, ..OpenFlags::WRITE },
                };
            }
            1 => return Op::Mark(Mark::Begin(0)),
            _ => {}
        }
        let (round, step) = ((at - 2) / self.ops.len(), (at - 2) % self.ops.len());
        if round == self.warm && step == 0 {
            self.before = counting::of_this_thread();
        }
        if round == self.warm + self.rounds {
            let taken = counting::of_this_thread() - self.before;
            self.counted.store(taken, Ordering::SeqCst);
            return Op::Done;
        }
        self.ops[step].clone()
    }
}

#[test]
fn reads_and_writes_take_no_memory() {
    let directory = TestDirectory::new();
    let counted = Arc::new(AtomicU64::new(u64::MAX));
    let process = Repeating {
        ops: round(),
        at: 0,
        warm: 2,
        rounds: 50,
        before: 0,
        counted: Arc::clone(&counted),
    };
    let planned = Planned { copy: 0, process: Box::new(process) };
    let record = run(directory.path(), plan(vec![planned])).unwrap();
    assert!(record.phase(0).unwrap().reads.count > 2000);
    assert_eq!(counted.load(Ordering::SeqCst), 0);
}
