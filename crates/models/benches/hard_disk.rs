//! Requests per second of one modelled drive on one core: `cargo bench -p raidlab-models`. `-- --lines` prints
//! lines for `cargo xtask bench --against`.
#![allow(clippy::print_stdout, reason = "a benchmark prints")]

#[path = "../../../tests/support/bench.rs"]
mod bench;

use raidlab_core::units::{Nanos, Sector, Time};
use raidlab_models::{
    DriveInput, DriveIo, DriveIoId, DriveKind, DriveOp, DriveOutput, HardDisk, HardDiskSpec, load,
};
use raidlab_random::SplitMix64;

/// A command by its number: operation, first sector, length.
type Pattern = fn(u64, u64) -> (DriveOp, u64, u32);

/// A number drawn by another.
fn random(number: u64, end: u64) -> u64 {
    SplitMix64::new(number).next_u64() % end
}

fn place(number: u64, capacity: u64) -> u64 {
    random(number, capacity / 8) * 8
}

fn patterns() -> [(&'static str, Pattern); 5] {
    [
        ("random 4 KiB reads", |n, capacity| (DriveOp::Read, place(n, capacity), 8)),
        ("random 4 KiB writes", |n, capacity| (DriveOp::Write, place(n, capacity), 8)),
        ("random 4 KiB, 70 % reads", |n, capacity| {
            let op = if random(!n, 10) < 7 { DriveOp::Read } else { DriveOp::Write };
            (op, place(n, capacity), 8)
        }),
        ("sequential 128 KiB reads", |n, capacity| (DriveOp::Read, n * 256 % capacity, 256)),
        ("sequential 128 KiB writes", |n, capacity| (DriveOp::Write, n * 256 % capacity, 256)),
    ]
}

/// Carries out `count` commands at a depth; gives the virtual time they took and how often the drive
/// was called: once for each command and once for each wake.
fn run(disk: &mut HardDisk, pattern: Pattern, depth: u64, count: u64) -> (Nanos, u64) {
    let capacity = disk.capacity().0 / 256 * 256;
    let (mut now, mut wake, mut next, mut done, mut calls) = (Time::ZERO, None, 0, 0, 0);
    while done < count {
        if next < done + depth && next < count {
            let (op, at, len) = pattern(next, capacity);
            let io = DriveIo { id: DriveIoId(next as u32), op, at: Sector(at), len, fua: false };
            disk.handle(now, DriveInput::Submit(io));
            next += 1;
        } else if let Some(at) = wake.take() {
            now = at;
            disk.handle(now, DriveInput::Wake);
        }
        calls += 1;
        while let Some(output) = disk.poll() {
            match output {
                DriveOutput::Complete { .. } => done += 1,
                DriveOutput::WakeAt(at) => wake = Some(at),
            }
        }
    }
    (now.since(Time::ZERO), calls)
}

struct Case {
    drive: &'static str,
    spec: HardDiskSpec,
    label: &'static str,
    pattern: Pattern,
    depth: u64,
}

fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for drive in ["nas-8tb-7200", "desktop-2tb-7200", "pata-80gb-7200"] {
        let DriveKind::HardDisk(spec) = load(drive).expect("built in").kind else { continue };
        for (label, pattern) in patterns() {
            let case = |depth| Case { drive, spec: spec.clone(), label, pattern, depth };
            cases.extend([1, 32].map(case));
        }
    }
    cases
}

/// Nanoseconds a command of a new disk takes on the CPU, and what [`run`] gives.
fn timed(case: &Case, count: u64) -> (f64, Nanos, u64) {
    let mut disk = HardDisk::new(&case.spec, 1);
    let start = bench::cpu_time();
    let (time, calls) = run(&mut disk, case.pattern, case.depth, count);
    ((bench::cpu_time() - start) / count as f64, time, calls)
}

fn main() {
    let mut cases = cases();
    if bench::lines_asked() {
        let name = |case: &Case| format!("{}, {}, depth {}", case.drive, case.label, case.depth);
        return bench::print_lines(&mut cases, name, |case| timed(case, 5_000).0);
    }
    let count = 500_000;
    println!(
        "{:16} {:28} {:>5} {:>12} {:>9} {:>6} {:>16}",
        "drive", "pattern", "depth", "requests/s", "ns each", "calls", "virtual"
    );
    for case in &cases {
        timed(case, 10_000);
        let (each, time, calls) = timed(case, count);
        let virtual_rate = count as f64 / time.as_secs();
        println!(
            "{:16} {:28} {:>5} {:>12.0} {each:>9.0} {:>6.2} {virtual_rate:>12.1} io/s",
            case.drive,
            case.label,
            case.depth,
            1e9 / each,
            calls as f64 / count as f64
        );
    }
}
