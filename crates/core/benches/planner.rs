//! What planning costs: nanoseconds a request, from `handle` to the drained reply.
//!
//! Run with `cargo bench -p raidlab-core [-- WORD]`; WORD chooses the cases with it in their names.
//! Nothing is read or written: members complete at once, in order, `DEPTH` requests in flight, at random
//! places unless the name says otherwise. Rounds are interleaved over the cases; median and range are
//! printed, of the time on the CPU. `-- --lines` prints lines for `cargo xtask bench --against`.

#[path = "../../../tests/support/bench.rs"]
mod bench;

use std::hint::black_box;

use raidlab_core::contract::{
    Completion, Input, IoOp, IoOutcome, JobResult, Output, Request, RequestId, Segment, Token,
};
use raidlab_core::{Array, Config, Layout, Level, Sector, Sectors, Time};

const DEPTH: usize = 32;
const REQUESTS: u64 = 200_000;
/// Requests of a sample where lines are printed.
const SHORT: u64 = 20_000;
const ROUNDS: usize = 9;
/// 1 TiB members.
const MEMBER: Sectors = Sectors(1 << 31);

/// In flight where each request starts where the one before ends: as many as an array takes.
const DEPTH_IN_ORDER: usize = 128;

struct Case {
    name: &'static str,
    layout: Layout,
    op: IoOp,
    sectors: u32,
    budget: Option<u64>,
    in_order: bool,
}

fn main() {
    let chunk = Sectors(128);
    let raid5 = Layout::new(Level::Raid5, 5).with_chunk(chunk);
    let raid6 = Layout::new(Level::Raid6, 6).with_chunk(chunk);
    let case = |name, layout, op, sectors, budget| {
        let in_order = false;
        Case { name, layout, op, sectors, budget, in_order }
    };
    // Each write's range is held beside its neighbours': what is near must not cost what is far.
    let in_order = |name, sectors| {
        let layout = Layout::new(Level::Raid1, 2);
        Case { in_order: true, ..case(name, layout, IoOp::Write, sectors, None) }
    };
    let raid0 = Layout::new(Level::Raid0, 4).with_chunk(chunk);
    let raid10 = Layout::new(Level::Raid10, 4).with_chunk(chunk);
    let raid1 = Layout::new(Level::Raid1, 2);
    let (read, write) = (IoOp::Read, IoOp::Write);
    let cases = [
        case("raid0(4) 4 KiB read", raid0.clone(), read, 8, Some(80)),
        case("raid0(4) 4 KiB write", raid0, write, 8, Some(80)),
        case("raid1(2) 4 KiB read", raid1.clone(), read, 8, Some(80)),
        case("raid1(2) 4 KiB mirrored write", raid1, write, 8, Some(80)),
        case("raid10(4) 4 KiB read", raid10.clone(), read, 8, Some(80)),
        case("raid10(4) 4 KiB mirrored write", raid10, write, 8, Some(80)),
        case("raid5(5) 4 KiB read", raid5.clone(), read, 8, None),
        case("raid5(5) 4 KiB write (read-modify-write)", raid5.clone(), write, 8, None),
        case("raid5(5) 256 KiB full stripe write", raid5, write, 512, None),
        case("raid6(6) 4 KiB write (reconstruct-write)", raid6.clone(), write, 8, None),
        case("raid6(6) 256 KiB full stripe write", raid6, write, 512, None),
        in_order("raid1(2) 4 KiB write in order, 128 held", 8),
        in_order("raid1(2) 132 KiB write in order, 128 held", 264),
        in_order("raid1(2) 1056 KiB write in order, 128 held", 2112),
    ];
    let word = std::env::args().skip(1).find(|word| !word.starts_with('-')).unwrap_or_default();
    let mut cases: Vec<_> = cases.into_iter().filter(|case| case.name.contains(&word)).collect();
    if bench::lines_asked() {
        return bench::print_lines(&mut cases, |case| case.name.into(), |case| run(case, SHORT));
    }
    let mut times = vec![Vec::new(); cases.len()];
    for _ in 0..ROUNDS {
        for (case, times) in cases.iter().zip(&mut times) {
            times.push(run(case, REQUESTS));
        }
    }
    println!("core alone, {DEPTH} requests in flight, {REQUESTS} requests, {ROUNDS} rounds");
    println!("({DEPTH_IN_ORDER} where they go in order)");
    for (case, times) in cases.iter().zip(&mut times) {
        times.sort_by(f64::total_cmp);
        let (least, median, most) = (times[0], times[ROUNDS / 2], times[ROUNDS - 1]);
        let budget = case.budget.map_or(String::new(), |b| format!("   budget {b} ns"));
        println!("{:42} {median:7.1} ns  ({least:.1} to {most:.1}){budget}", case.name);
    }
}

/// Nanoseconds a request.
fn run(case: &Case, requests: u64) -> f64 {
    let config = Config::uniform(case.layout.clone(), MEMBER);
    let mut array = Array::new(&config).expect("possible");
    let places = array.capacity().0 / u64::from(case.sectors);
    let mut state = 1u64;
    let mut inputs: Vec<Input<'static>> = Vec::with_capacity(4096);
    let (mut asked, mut answered, mut now) = (0, 0, 0);
    let depth = if case.in_order { DEPTH_IN_ORDER } else { DEPTH } as u64;
    let start = bench::cpu_time();
    while answered < requests {
        now += 1;
        while asked < requests && asked - answered < depth {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let drawn = ((state >> 33) * places) >> 31;
            let place = if case.in_order { asked % places } else { drawn };
            let at = Sector(place * u64::from(case.sectors));
            let segment = Segment { token: Token(0), offset: 0, len: case.sectors };
            let request = Request {
                id: RequestId(asked),
                op: case.op,
                at,
                len: Sectors(u64::from(case.sectors)),
                segments: &[segment],
                fua: false,
            };
            array.handle(Time(now), Input::Request(request));
            asked += 1;
        }
        for input in inputs.drain(..) {
            array.handle(Time(now), input);
        }
        while let Some(output) = array.poll() {
            match black_box(output) {
                Output::MemberIo(io) => {
                    inputs.push(Input::Completion(Completion { io: io.io, outcome: IoOutcome::Ok }))
                }
                Output::Compute { job } => {
                    inputs.push(Input::Computed { job, result: JobResult::Done });
                }
                Output::Reply { .. } => answered += 1,
                _ => {}
            }
        }
    }
    (bench::cpu_time() - start) / requests as f64
}
