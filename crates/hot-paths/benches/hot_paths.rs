//! Twelve hot paths, each alone: for `cargo xtask instructions`, which counts what they execute.
//!
//! `hot_paths` lists the paths with their iterations; `hot_paths NAME` makes one ready, goes it for a while
//! and then through [`measured`], so many times. Nothing is drawn, timed or read from outside, so a count is
//! the same in every run. `hot_paths --lines` measures their times for `cargo xtask bench --against`.
#![allow(clippy::print_stdout, reason = "a benchmark prints")]

#[path = "hot_paths/arrays.rs"]
mod arrays;
#[path = "../../../tests/support/bench.rs"]
mod bench;
#[path = "hot_paths/hosts.rs"]
mod hosts;

use std::hint::black_box;
use std::process::ExitCode;

use raidlab_core::Level;
use raidlab_core::contract::IoOp;
use raidlab_parity::{Kernels, Store};

use arrays::{Closed, OnNull, Simulated};
use hosts::{Asked, Buffered, Disk};

/// A path.
struct HotPath {
    name: &'static str,
    /// How many iterations are counted; as many go before, so that what is made at first is made.
    iterations: u32,
    make: fn() -> Iterate,
}

/// Goes a path once.
type Iterate = Box<dyn FnMut()>;

/// A path through the core: a request, while others are in flight.
fn core(level: (Level, u16), op: IoOp, sectors: u32, in_order: bool) -> Iterate {
    let mut closed = Closed::new(level, op, sectors, in_order);
    Box::new(move || closed.request())
}

const PATHS: [HotPath; 12] = [
    HotPath {
        name: "raid0-read",
        iterations: 16384,
        make: || core((Level::Raid0, 4), IoOp::Read, 8, false),
    },
    HotPath {
        name: "raid1-write",
        iterations: 16384,
        make: || core((Level::Raid1, 2), IoOp::Write, 8, false),
    },
    HotPath {
        name: "raid10-write-neighbours",
        iterations: 16384,
        make: || core((Level::Raid10, 4), IoOp::Write, 8, true),
    },
    HotPath {
        name: "raid5-read-modify-write",
        iterations: 4096,
        make: || core((Level::Raid5, 5), IoOp::Write, 8, false),
    },
    HotPath {
        name: "raid5-full-stripe",
        iterations: 4096,
        make: || core((Level::Raid5, 5), IoOp::Write, 512, false),
    },
    HotPath {
        name: "raid6-reconstruct-write",
        iterations: 4096,
        make: || core((Level::Raid6, 6), IoOp::Write, 8, false),
    },
    HotPath { name: "parity-xor-pq", iterations: 1024, make: parity },
    HotPath {
        name: "engine-raid5-write",
        iterations: 4096,
        make: || {
            let mut engine = OnNull::new();
            Box::new(move || engine.request())
        },
    },
    HotPath {
        name: "world-raid5-write",
        iterations: 4096,
        make: || {
            let mut world = Simulated::new();
            Box::new(move || world.request())
        },
    },
    HotPath {
        name: "disk-random-read",
        iterations: 8192,
        make: || {
            let mut disk = Disk::new();
            Box::new(move || disk.command())
        },
    },
    HotPath {
        name: "host-write-read",
        iterations: 2048,
        make: || {
            let mut host = Buffered::new();
            Box::new(move || host.write_and_read())
        },
    },
    HotPath {
        name: "workload-next",
        iterations: 16384,
        make: || {
            let mut process = Asked::new();
            Box::new(move || process.next())
        },
    },
];

/// XOR, then P and Q, of eight blocks of 4 KiB.
fn parity() -> Iterate {
    const BLOCK: usize = 4096;
    let exponents: Vec<u8> = (0..8).collect();
    let data: Vec<Vec<u8>> = exponents.iter().map(|number| vec![*number; BLOCK]).collect();
    let [mut p, mut q] = [const { Vec::new() }; 2];
    p.resize(BLOCK, 0);
    q.resize(BLOCK, 0);
    let kernels = Kernels::new(Store::Cached);
    Box::new(move || {
        let sources: [&[u8]; 8] = std::array::from_fn(|index| &data[index][..]);
        kernels.xor(&mut p, black_box(&sources)).expect("equal lengths");
        let targets = (Some(&mut p[..]), Some(&mut q[..]));
        kernels.pq(targets.0, targets.1, black_box(&sources), &exponents).expect("blocks fit");
    })
}

/// What callgrind counts, by this name: see `xtask/src/instructions.rs`.
#[inline(never)]
fn measured(iterate: &mut Iterate, iterations: u32) {
    for _ in 0..iterations {
        iterate();
    }
}

fn main() -> ExitCode {
    if bench::lines_asked() {
        print_times();
        return ExitCode::SUCCESS;
    }
    // `cargo bench` passes a flag of its own.
    let Some(name) = std::env::args().skip(1).find(|argument| !argument.starts_with('-')) else {
        for path in &PATHS {
            println!("{}\t{}", path.name, path.iterations);
        }
        return ExitCode::SUCCESS;
    };
    let Some(path) = PATHS.iter().find(|path| path.name == name) else {
        eprintln!("hot_paths: no path is called {name}");
        return ExitCode::from(2);
    };
    let mut iterate = (path.make)();
    for _ in 0..path.iterations {
        iterate();
    }
    measured(&mut iterate, path.iterations);
    ExitCode::SUCCESS
}

/// Nanoseconds an iteration.
fn print_times() {
    let mut paths: Vec<_> = PATHS.iter().map(|path| (path, (path.make)())).collect();
    bench::print_lines(
        &mut paths,
        |(path, _)| path.name.to_owned(),
        |(path, iterate)| {
            let start = bench::cpu_time();
            measured(iterate, path.iterations);
            (bench::cpu_time() - start) / f64::from(path.iterations)
        },
    );
}
