//! How fast virtual time goes: member requests simulated a second on one core.
//!
//! Run with `cargo bench -p raidlab-sim`. Closed loop, random 4 KiB over whole arrays of the NAS drive
//! model; rounds interleaved over the cases, median and range printed.

use std::time::Instant;

use raidlab_core::contract::RequestOp;
use raidlab_core::{Config, Layout, Level, Sector, Sectors};
use raidlab_models::{DriveKind, HardDisk, load};
use raidlab_sim::{HostCosts, World};

const REQUESTS: u64 = 50_000;
const ROUNDS: usize = 7;

struct Case {
    name: &'static str,
    layout: Layout,
    op: RequestOp,
    depth: u64,
}

fn main() {
    let case = |name, level, members, op, depth| Case {
        name,
        layout: Layout::new(level, members),
        op,
        depth,
    };
    let (read, write) = (RequestOp::Read, RequestOp::Write);
    let cases = [
        case("single, read, 1 in flight", Level::Linear, 1, read, 1),
        case("raid0(4), read, 4 in flight", Level::Raid0, 4, read, 4),
        case("raid1(2), write, 4 in flight", Level::Raid1, 2, write, 4),
        case("raid5(9), read, 9 in flight", Level::Raid5, 9, read, 9),
        case("raid5(9), write, 9 in flight", Level::Raid5, 9, write, 9),
    ];
    let mut rates = vec![Vec::new(); cases.len()];
    for round in 0..ROUNDS {
        for (case, rates) in cases.iter().zip(&mut rates) {
            rates.push(run(case, round as u64));
        }
    }
    println!("simulator, {REQUESTS} requests of 4 KiB, {ROUNDS} rounds, one core");
    for (case, rates) in cases.iter().zip(&mut rates) {
        rates.sort_by(f64::total_cmp);
        let (least, median, most) = (rates[0], rates[ROUNDS / 2], rates[ROUNDS - 1]);
        println!("{:32} {median:6.2} M member requests/s  ({least:.2} to {most:.2})", case.name);
    }
}

/// Millions of member requests simulated a second.
fn run(case: &Case, seed: u64) -> f64 {
    let DriveKind::HardDisk(spec) = load("nas-8tb-7200").expect("built in").kind;
    let drives: Vec<_> = (0..u64::from(case.layout.members))
        .map(|member| HardDisk::new(&spec, seed * 100 + member))
        .collect();
    let config = Config::uniform(case.layout.clone(), drives[0].capacity());
    let mut world = World::new(&config, drives, HostCosts::default()).expect("fits");
    let places = world.array().capacity().0 / 8;
    let mut state = seed;
    let (mut asked, mut answered) = (0, 0);
    let start = Instant::now();
    while answered < REQUESTS {
        while asked < REQUESTS && asked - answered < case.depth {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            world.submit(case.op, Sector((state >> 11) % places * 8), Sectors(8), false);
            asked += 1;
        }
        world.step();
        while world.next_answer().is_some() {
            answered += 1;
        }
    }
    world.member_requests() as f64 / start.elapsed().as_secs_f64() / 1e6
}
