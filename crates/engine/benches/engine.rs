//! What the engine costs per request: random 4 KiB over null members, from the call to the reply; and how
//! much of what parity and copying allow it reaches when it writes full stripes to members in memory; and
//! what it reaches on files, beside `fio`.
//!
//! `cargo bench -p raidlab-engine --bench engine [-- REPETITIONS] [stripes|files]`; a word leaves the others
//! out. Files lie in the build directory, or in RAIDLAB_BENCH_DIR. `-- --lines` prints lines of null members for
//! `cargo xtask bench --against`.
//! One thread, depth 32. The cases are interleaved: every repetition runs each case once, so that a change
//! of the machine's speed hits all of them. Printed: median and range over the repetitions. The figures of
//! SPDK are cited, from one AMD EPYC (Zen 3) core at depth 32; they were not measured in this run.

#[path = "../../../tests/support/bench.rs"]
mod bench;
#[path = "engine/files.rs"]
mod files;
#[path = "engine/stripes.rs"]
mod stripes;

use raidlab_core::contract::{IoOp, Outcome, Segment, Token};
use raidlab_core::{Layout, Level, Sector, Sectors};
use raidlab_engine::{Engine, EngineConfig, Member, NullMember};

const DEPTH: usize = 32;
/// Requests of one repetition of a case.
const REQUESTS: usize = 1 << 17;
/// Members of 1 GiB.
const MEMBER: Sectors = Sectors(2 << 20);
/// 64 KiB.
const CHUNK: Sectors = Sectors(128);

/// A case: layout, operation, sectors a request, and SPDK's nanoseconds with what they were measured on.
struct Case {
    name: &'static str,
    layout: Layout,
    op: IoOp,
    sectors: u32,
    spdk: Option<(u32, &'static str)>,
    samples: Vec<f64>,
}

fn case(
    name: &'static str,
    (level, members): (Level, u16),
    op: IoOp,
    sectors: u32,
    spdk: Option<(u32, &'static str)>,
) -> Case {
    let layout = Layout::new(level, members);
    let layout = if level.has_chunks() { layout.with_chunk(CHUNK) } else { layout };
    Case { name, layout, op, sectors, spdk, samples: Vec::new() }
}

fn cases() -> Vec<Case> {
    use IoOp::{Read, Write};
    use Level::{Raid0, Raid1, Raid5, Raid10};
    vec![
        case("raid0(4) read 4 KiB", (Raid0, 4), Read, 8, Some((168, "raid0 x4"))),
        case("raid0(4) write 4 KiB", (Raid0, 4), Write, 8, Some((173, "raid0 x4"))),
        case("raid1(2) read 4 KiB", (Raid1, 2), Read, 8, Some((170, "raid1 x2"))),
        case("raid1(2) write 4 KiB", (Raid1, 2), Write, 8, Some((232, "raid1 x2"))),
        case("raid1(4) read 4 KiB", (Raid1, 4), Read, 8, None),
        case("raid10(4) write 4 KiB", (Raid10, 4), Write, 8, None),
        case("raid5(4) read 4 KiB", (Raid5, 4), Read, 8, None),
        case("raid5(4) write 4 KiB", (Raid5, 4), Write, 8, None),
        case("raid5(5) write stripe 256 KiB", (Raid5, 5), Write, 512, None),
    ]
}

struct Bench {
    engine: Engine,
    token: Token,
    random: u64,
    places: u64,
    replies: Vec<raidlab_engine::Reply>,
}

impl Bench {
    fn new(case: &Case) -> Self {
        let members =
            (0..case.layout.members).map(|_| Member::Null(NullMember::new(MEMBER))).collect();
        let mut engine = Engine::new(&EngineConfig::new(case.layout.clone()), members)
            .expect("the layout is possible");
        let bytes = DEPTH as u64 * u64::from(case.sectors) * 512;
        let token = engine.allocate(bytes).expect("there is memory");
        engine.bytes_mut(token).expect("no request is under way").fill(0x5a);
        let places = engine.array().capacity().0 / u64::from(case.sectors);
        Self { engine, token, random: 0x9e37_79b9, places, replies: Vec::with_capacity(DEPTH) }
    }

    fn next_place(&mut self) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.random % self.places
    }

    /// Nanoseconds a request.
    fn run(&mut self, case: &Case, requests: usize) -> f64 {
        let start = bench::cpu_time();
        for _ in 0..requests / DEPTH {
            for slot in 0..DEPTH as u32 {
                let at = Sector(self.next_place() * u64::from(case.sectors));
                let offset = slot * case.sectors;
                let segment = Segment { token: self.token, offset, len: case.sectors };
                self.engine.submit(case.op, at, &[segment], false).expect("there is room");
            }
            self.replies.clear();
            self.engine.poll_replies(&mut self.replies).expect("null members do not fail");
            assert_eq!(self.replies.len(), DEPTH);
            assert!(self.replies.iter().all(|reply| reply.outcome == Outcome::Done));
        }
        (bench::cpu_time() - start) / (requests / DEPTH * DEPTH) as f64
    }
}

fn main() {
    if bench::lines_asked() {
        let mut cases: Vec<_> = cases().into_iter().map(|case| (Bench::new(&case), case)).collect();
        let sample = |(bench, case): &mut (Bench, Case)| bench.run(case, requests_of(case) / 16);
        return bench::print_lines(&mut cases, |(_, case)| case.name.into(), sample);
    }
    // `cargo bench` passes flags of its own.
    let words: Vec<String> = std::env::args().skip(1).collect();
    let given = words.iter().find_map(|word| word.parse::<usize>().ok());
    let repetitions = given.unwrap_or(21).max(1);
    let asked = |name: &str| words.iter().any(|word| word == name);
    let all = !asked("stripes") && !asked("files");
    if all {
        on_null_members(repetitions);
    }
    if all || asked("stripes") {
        stripes::run(repetitions);
    }
    if all || asked("files") {
        files::run_all(given.unwrap_or(5).max(1));
    }
}

fn on_null_members(repetitions: usize) {
    let mut cases = cases();
    let mut benches: Vec<Bench> = cases.iter().map(Bench::new).collect();
    for (case, bench) in cases.iter().zip(&mut benches) {
        bench.run(case, requests_of(case) / 8);
    }
    for _ in 0..repetitions {
        for (case, bench) in cases.iter_mut().zip(&mut benches) {
            let nanos = bench.run(case, requests_of(case));
            case.samples.push(nanos);
        }
    }
    println!("engine on null members, random, depth {DEPTH}, 64 KiB chunk, one thread");
    println!("ns a request from submit to reply: median [range] of {repetitions} repetitions\n");
    for case in &mut cases {
        case.samples.sort_by(f64::total_cmp);
        let (first, last) = (case.samples[0], case.samples[case.samples.len() - 1]);
        let median = case.samples[case.samples.len() / 2];
        print!("{:<30} {median:>8.1} [{first:.1} .. {last:.1}]", case.name);
        match case.spdk {
            Some((nanos, what)) => println!("   SPDK 26.09-pre {what}: {nanos} (cited)"),
            None => println!(),
        }
    }
}

/// Requests of a repetition: fewer where one moves more.
fn requests_of(case: &Case) -> usize {
    if case.sectors > 8 { REQUESTS / 32 } else { REQUESTS }
}
