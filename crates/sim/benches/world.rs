//! How fast virtual time goes: member requests simulated a second on one core, and how many events each
//! takes.
//!
//! Run with `cargo bench -p raidlab-sim`. Closed loop, random 4 KiB over whole arrays; rounds interleaved over
//! the cases, median and range printed. The case of DiskSim (24,500 disk requests/s/core) is raid5 over 9
//! disks. A drive with queue (NCQ) looks through its queue at each choice, so those cases stand apart. `-- --lines`
//! prints lines for `cargo xtask bench --against`: nanoseconds a request of the array.

#[path = "../../../tests/support/bench.rs"]
mod bench;

use raidlab_core::contract::IoOp;
use raidlab_core::{Config, Layout, Level, Sector, Sectors};
use raidlab_models::{Drive, DriveKind, DriveSpec, HardDiskSpec, Scheduler, load};
use raidlab_sim::{HostCosts, World};

const REQUESTS: u64 = 50_000;
/// Requests of a sample where lines are printed.
const SHORT: u64 = 5_000;
const ROUNDS: usize = 7;

struct Case {
    name: &'static str,
    drive: DriveSpec,
    layout: Layout,
    op: IoOp,
    /// Requests in flight.
    flight: u64,
    scheduler: Option<Scheduler>,
}

/// A built-in drive; hard disks with this depth of their own queue.
fn drive(name: &str, depth: u32) -> DriveSpec {
    let mut drive = load(name).expect("built in");
    if let DriveKind::HardDisk(spec) = &drive.kind {
        let mut figures = spec.figures().clone();
        figures.queue_depth = depth;
        drive.kind = DriveKind::HardDisk(HardDiskSpec::new(figures).expect("can be"));
    }
    drive
}

fn cases() -> Vec<Case> {
    let case = |name, drive, (level, members), op, flight| {
        let layout = Layout::new(level, members);
        Case { name, drive, layout, op, flight, scheduler: None }
    };
    let (read, write) = (IoOp::Read, IoOp::Write);
    let disk = || drive("nas-8tb-7200", 1);
    let queueing = || drive("nas-8tb-7200", 32);
    let ssd = || drive("ssd-nvme4-2tb-dc", 1);
    let nine = (Level::Raid5, 9);
    let mut cases = vec![
        case("single, read, 1 in flight", disk(), (Level::Linear, 1), read, 1),
        case("raid0(4), read, 4 in flight", disk(), (Level::Raid0, 4), read, 4),
        case("raid1(2), write, 4 in flight", disk(), (Level::Raid1, 2), write, 4),
        case("raid5(9), read, 9 in flight", disk(), nine, read, 9),
        case("raid5(9), write, 9 in flight", disk(), nine, write, 9),
        case("raid5(9), NCQ 32, read, 288 in flight", queueing(), nine, read, 288),
        case("raid5(9), NCQ 32, write, 288 in flight", queueing(), nine, write, 288),
        case("ssd single, read, 32 in flight", ssd(), (Level::Linear, 1), read, 32),
        case("ssd raid5(5), read, 64 in flight", ssd(), (Level::Raid5, 5), read, 64),
        case("ssd raid5(5), write, 64 in flight", ssd(), (Level::Raid5, 5), write, 64),
    ];
    let mut queued = case("raid5(9), deadline, read, 288 in flight", disk(), nine, read, 288);
    queued.scheduler = Some(Scheduler::Deadline);
    cases.push(queued);
    cases
}

fn main() {
    let mut cases = cases();
    if bench::lines_asked() {
        let nanos = |case: &mut Case| run(case, 0, SHORT).nanos / SHORT as f64;
        return bench::print_lines(&mut cases, |case| case.name.into(), nanos);
    }
    let mut rates = vec![Vec::new(); cases.len()];
    let mut events = vec![0.0; cases.len()];
    for round in 0..ROUNDS {
        for ((case, rates), events) in cases.iter().zip(&mut rates).zip(&mut events) {
            let done = run(case, round as u64, REQUESTS);
            rates.push(done.asked / done.nanos * 1e3);
            *events = done.events / done.asked;
        }
    }
    println!("simulator, {REQUESTS} requests of 4 KiB, {ROUNDS} rounds, one core");
    for ((case, rates), events) in cases.iter().zip(&mut rates).zip(&events) {
        rates.sort_by(f64::total_cmp);
        let (least, median, most) = (rates[0], rates[ROUNDS / 2], rates[ROUNDS - 1]);
        println!(
            "{:40} {median:6.2} M member requests/s  ({least:.2} to {most:.2})  {events:.1} events each",
            case.name
        );
    }
}

/// What a run took: time on the CPU, member requests, events.
struct Done {
    nanos: f64,
    asked: f64,
    events: f64,
}

fn run(case: &Case, seed: u64, requests: u64) -> Done {
    let drives: Vec<_> = (0..u64::from(case.layout.members))
        .map(|member| Drive::new(&case.drive.kind, seed * 100 + member))
        .collect();
    let config = Config::uniform(case.layout.clone(), case.drive.capacity);
    let mut world = World::new(&config, drives, HostCosts::default()).expect("fits");
    if let Some(scheduler) = case.scheduler {
        world = world.with_queues(&scheduler.spec(case.drive.kind.queue_depth()));
    }
    let places = world.array().capacity().0 / 8;
    let mut state = seed;
    let (mut asked, mut answered) = (0, 0);
    let start = bench::cpu_time();
    while answered < requests {
        while asked < requests && asked - answered < case.flight {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            world.submit(case.op, Sector((state >> 11) % places * 8), Sectors(8), false);
            asked += 1;
        }
        world.step();
        while world.next_answer().is_some() {
            answered += 1;
        }
    }
    let nanos = bench::cpu_time() - start;
    Done { nanos, asked: world.member_requests() as f64, events: world.happened() as f64 }
}
