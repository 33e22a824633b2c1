//! What the directory target costs per operation: writes of 4 KiB to /dev/null, beside a bare loop of the
//! same system call and beside fio on the same device, in the same run.
//!
//! `cargo bench -p raidlab-targets --bench directory [-- REPETITIONS]`. One process. The cases are
//! interleaved: every repetition runs each once. Printed: median and range over the repetitions, and
//! ratios of medians. fio's `null` engine makes no system call: it stands beside what is ours alone, which
//! is the time of an operation without that of the bare system call. Without fio its lines are left out.

use std::process::Command;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use raidlab_core::Time;
use raidlab_targets::{DirectoryOptions, DirectoryTarget};
use raidlab_workload::null::NullTarget;
use raidlab_workload::{
    Content, FileDescriptor, FilePath, Io, Mark, Memory, Op, OpResult, OpenFlags, Plan, Planned,
    Process,
};

const OPERATIONS: u64 = 1 << 20;
const LEN: u64 = 4096;
const DEPTH: u64 = 32;
const S: FileDescriptor = FileDescriptor(0);

#[derive(Clone, Copy, Debug)]
enum Shape {
    /// One operation with a repeat count.
    Repeated,
    /// The generator is asked for each.
    Single,
    /// So many under way.
    Deep,
}

#[derive(Debug)]
struct Writer {
    shape: Shape,
    step: u64,
}

impl Writer {
    fn start(&self, number: u64, tag: u32) -> Op {
        let content = Content::Zeroes;
        Op::Start { tag, io: Io::Write { fd: S, at: number * LEN, len: LEN, content } }
    }
}

impl Process for Writer {
    fn next(&mut self, _now: Time, last: OpResult) -> Op {
        let step = self.step;
        self.step += 1;
        let flags = OpenFlags { write: true, ..OpenFlags::default() };
        let content = Content::Zeroes;
        match (step, self.shape) {
            (0, _) => Op::Open { fd: S, path: FilePath::null(), flags },
            (1, _) => Op::Mark(Mark::Begin(0)),
            (2, Shape::Repeated) => Op::Write { fd: S, len: LEN, content, times: OPERATIONS },
            (2.., Shape::Single) if step < 2 + OPERATIONS => {
                Op::Write { fd: S, len: LEN, content, times: 1 }
            }
            // All are started, then each that ends makes room for the next, as fio does it.
            (2.., Shape::Deep) if step < 2 + DEPTH => self.start(step - 2, step as u32 - 2),
            (2.., Shape::Deep) if step < 2 + OPERATIONS => match last {
                OpResult::Finished { tag, .. } => self.start(step - 2, tag),
                _ => {
                    self.step -= 1;
                    Op::Finish
                }
            },
            _ => Op::Done,
        }
    }
}

fn plan(shape: Shape) -> Plan {
    let process = Box::new(Writer { shape, step: 0 });
    let run = vec![Planned { copy: 0, process }];
    Plan { run, phases: vec!["write"], memory: Memory::AsIs, ..Plan::default() }
}

/// Nanoseconds an operation.
fn ours(shape: Shape) -> f64 {
    let directory = std::env::temp_dir();
    let mut target =
        DirectoryTarget::new(&directory, DirectoryOptions::default()).expect("a directory");
    let record = target.run(plan(shape), &AtomicBool::new(false)).expect("it runs");
    let phase = record.phase(0).expect("the phase ran");
    phase.took().0 as f64 / phase.writes.count as f64
}

fn bare() -> f64 {
    let file = std::fs::OpenOptions::new().write(true).open("/dev/null").expect("it is there");
    let descriptor = std::os::fd::AsRawFd::as_raw_fd(&file);
    let bytes = vec![0u8; LEN as usize];
    let start = Instant::now();
    for _ in 0..OPERATIONS {
        // SAFETY: the bytes are valid for the length.
        let moved = unsafe { libc::write(descriptor, bytes.as_ptr().cast(), bytes.len()) };
        assert_eq!(moved, LEN as isize);
    }
    start.elapsed().as_nanos() as f64 / OPERATIONS as f64
}

/// The generator and the measuring alone, in a target that does nothing.
fn nothing() -> f64 {
    let start = Instant::now();
    NullTarget::default().run(plan(Shape::Single)).expect("it runs");
    start.elapsed().as_nanos() as f64 / OPERATIONS as f64
}

fn fio(engine: &str, depth: u64) -> Option<f64> {
    let output = Command::new("fio")
        .args(["--name=null", "--filename=/dev/null", "--rw=write", "--bs=4k", "--minimal"])
        .arg(format!("--ioengine={engine}"))
        .arg(format!("--iodepth={depth}"))
        .arg(format!("--size={}", OPERATIONS * LEN))
        .output()
        .ok()?;
    let text = String::from_utf8_lossy(&output.stdout);
    let line = text.lines().find(|line| line.starts_with("3;"))?;
    // Terse output, version 3: KiB written and milliseconds, fio(1) "TERSE OUTPUT".
    let field = |index: usize| line.split(';').nth(index)?.parse::<f64>().ok();
    let (kib, millis) = (field(46)?, field(49)?);
    (kib > 0.0 && millis > 0.0).then(|| millis * 1e6 / (kib / 4.0))
}

type Case = (&'static str, fn() -> Option<f64>);

const CASES: [Case; 8] = [
    ("bare loop of write(2)", || Some(bare())),
    ("null target of the workload crate, asked for each", || Some(nothing())),
    ("directory target, one operation repeated", || Some(ours(Shape::Repeated))),
    ("directory target, asked for each", || Some(ours(Shape::Single))),
    ("directory target, io_uring, depth 32", || Some(ours(Shape::Deep))),
    ("fio --ioengine=null", || fio("null", 1)),
    ("fio --ioengine=sync", || fio("sync", 1)),
    ("fio --ioengine=io_uring --iodepth=32", || fio("io_uring", DEPTH)),
];

fn main() {
    // `cargo bench` passes flags of its own.
    let given = std::env::args().skip(1).find_map(|word| word.parse::<usize>().ok());
    let repetitions = given.unwrap_or(7).max(1);
    let mut samples: Vec<Vec<f64>> = vec![Vec::new(); CASES.len()];
    for _ in 0..repetitions {
        for ((_, case), samples) in CASES.iter().zip(&mut samples) {
            samples.extend(case());
        }
    }
    println!("writes of 4 KiB to /dev/null, one process, {OPERATIONS} operations");
    println!("ns an operation: median [range] of {repetitions} repetitions\n");
    let mut medians = Vec::new();
    for ((name, _), samples) in CASES.iter().zip(&mut samples) {
        samples.sort_by(f64::total_cmp);
        let median = samples.get(samples.len() / 2).copied();
        medians.push(median);
        match (median, samples.first(), samples.last()) {
            (Some(median), Some(first), Some(last)) => {
                println!("{name:<50} {median:>8.1} [{first:.1} .. {last:.1}]");
            }
            _ => println!("{name:<50} not to be had (fio?)"),
        }
    }
    let Some(bare) = medians[0] else { return };
    println!();
    let less = |median: Option<f64>| median.map(|median| median - bare);
    ratio("ours alone (repeated - bare) : fio null", less(medians[2]), medians[5]);
    ratio("ours alone (asked for each - bare) : fio null", less(medians[3]), medians[5]);
    ratio("directory target, asked for each : fio sync", medians[3], medians[6]);
    ratio("directory target : fio, io_uring depth 32", medians[4], medians[7]);
}

fn ratio(name: &str, ours: Option<f64>, theirs: Option<f64>) {
    if let (Some(ours), Some(theirs)) = (ours, theirs) {
        println!("{name:<50} {ours:>8.1} : {theirs:.1} = {:.2}", ours / theirs);
    }
}
