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
    Content, Expected, How, Io, Mark, Op, OpResult, Path, Plan, Planned, Process, SeededBytes, Slot,
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
    let (slot, other) = (Slot(0), Slot(1));
    let content = Content::Seeded { seed: 7 };
    let prepare = vec![
        Op::Open { slot, path: Path::target("file"), how: How::WRITE },
        Op::Write { slot, len: 64 << 10, content, times: 16 },
        Op::Close { slot },
    ];
    let first = vec![
        Op::Open { slot, path: Path::target("file"), how: How::BOTH },
        Op::Mark(Mark::Begin(0)),
        Op::Read { slot, len: 64 << 10, times: 16 },
        Op::Start { tag: 0, io: Io::Read { slot, at: 0, len: 4096 } },
        Op::Start { tag: 1, io: Io::Write { slot, at: 8192, len: 4096, content } },
        Op::Finish,
        Op::Finish,
        Op::Fsync { slot },
        Op::Mark(Mark::End(0)),
        Op::Barrier(0),
        Op::Close { slot },
    ];
    let second = vec![
        Op::Mkdir { path: Path::target("sub") },
        Op::Open { slot: other, path: Path::target("sub/copy"), how: How::WRITE },
        Op::Write { slot: other, len: 4096, content: Content::Stamp { number: 0 }, times: 4 },
        Op::Close { slot: other },
        Op::Rename { from: Path::target("sub/copy"), to: Path::target("moved") },
        Op::List { path: Path::target("") },
        Op::Stat { path: Path::target("moved") },
        Op::Sleep(Nanos::from_millis(5)),
        Op::Barrier(0),
        Op::Unlink { path: Path::target("moved") },
    ];
    let expected = Expected {
        path: Path::target("file"),
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
