//! A small plan on a directory, to be watched: every line of a trace is an operation of the plan.
//!
//! `strace -f target/debug/examples/run_plan DIR` after `cargo build -p raidlab-targets --example run_plan`.

use std::collections::VecDeque;
use std::path::Path as SystemPath;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use raidlab_core::{Nanos, Time};
use raidlab_targets::{DirectoryOptions, DirectoryTarget};
use raidlab_workload::{
    Content, Expected, FileDescriptor, FilePath, Io, Mark, Op, OpResult, OpenFlags, Plan, Planned,
    Process, SeededBytes,
};

#[derive(Debug)]
struct Script(VecDeque<Op>);

impl Process for Script {
    fn next(&mut self, _now: Time, _last: OpResult) -> Op {
        self.0.pop_front().unwrap_or(Op::Done)
    }
}

fn planned(ops: Vec<Op>) -> Planned {
    Planned { copy: 0, process: Box::new(Script(ops.into())) }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let directory = std::env::args_os().nth(1).ok_or("usage: run_plan DIR")?;
    let (fd, other) = (FileDescriptor(0), FileDescriptor(1));
    let content = Content::Seeded { seed: 7 };
    let prepare = vec![
        Op::Open { fd, path: FilePath::target("file"), flags: OpenFlags::WRITE },
        Op::Write { fd, len: 64 << 10, content, times: 16 },
        Op::Close { fd },
    ];
    let first = vec![
        Op::Open { fd, path: FilePath::target("file"), flags: OpenFlags::BOTH },
        Op::Mark(Mark::Begin(0)),
        Op::Read { fd, len: 64 << 10, times: 16 },
        Op::Start { tag: 0, io: Io::Read { fd, at: 0, len: 4096 } },
        Op::Start { tag: 1, io: Io::Write { fd, at: 8192, len: 4096, content } },
        Op::Finish,
        Op::Finish,
        Op::Fsync { fd },
        Op::Mark(Mark::End(0)),
        Op::Barrier(0),
        Op::Close { fd },
    ];
    let second = vec![
        Op::Mkdir { path: FilePath::target("sub") },
        Op::Open { fd: other, path: FilePath::target("sub/copy"), flags: OpenFlags::WRITE },
        Op::Write { fd: other, len: 4096, content: Content::Stamp { number: 0 }, times: 4 },
        Op::Close { fd: other },
        Op::Rename { from: FilePath::target("sub/copy"), to: FilePath::target("moved") },
        Op::List { path: FilePath::target("") },
        Op::Stat { path: FilePath::target("moved") },
        Op::Sleep(Nanos::from_millis(5)),
        Op::Barrier(0),
        Op::Unlink { path: FilePath::target("moved") },
    ];
    let expected = Expected {
        path: FilePath::target("file"),
        bytes: Arc::new(SeededBytes { seed: 7, len: 1 << 20 }),
    };
    let plan = Plan {
        prepare: vec![planned(prepare)],
        run: vec![planned(first), planned(second)],
        phases: vec!["all"],
        barriers: vec![2],
        expected: vec![expected],
        room: 2 << 20,
        ..Plan::default()
    };
    let mut target =
        DirectoryTarget::new(SystemPath::new(&directory), DirectoryOptions::default())?;
    let record = target.run(plan, &AtomicBool::new(false))?;
    println!("memory: {}", record.memory);
    println!("took: {} ns, warnings: {:?}", record.last_done().0, record.warnings);
    println!("CPU: {:?}, of the system: {:?}", record.process_cpu, record.system_cpu);
    Ok(())
}
