//! Full stripes to members in memory, beside parity and a copy of the same bytes without an engine.
//!
//! Both write one stripe after another over the whole of their members, interleaved, from a buffer of one
//! stripe that is hot; members of 64 KiB chunks take 4 MiB each (they stay in the caches as far as these
//! go), those of 512 KiB chunks 64 MiB.

use std::time::Instant;

use raidlab_core::contract::{IoOp, Outcome, Segment, Token};
use raidlab_core::{Layout, Level, Sector, Sectors};
use raidlab_engine::{Engine, EngineConfig, Member, MemoryMember};
use raidlab_parity::{Kernels, Store};

/// Bytes of payload of a sample, at least: short ones are hit less often by what else the machine does.
const BYTES: usize = 4 << 20;
/// Samples of a repetition.
const SAMPLES: usize = 4;

struct Case {
    members: u16,
    parities: usize,
    /// Bytes.
    chunk: usize,
    /// Bytes.
    member: usize,
}

impl Case {
    fn data(&self) -> usize {
        usize::from(self.members) - self.parities
    }

    fn stripes(&self) -> usize {
        self.member / self.chunk
    }
}

fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for (chunk, member) in [(64 << 10, 4 << 20), (512 << 10, 64 << 20)] {
        for (members, parities) in [(4, 1), (5, 1), (9, 1), (4, 2), (6, 2), (10, 2), (18, 2)] {
            cases.push(Case { members, parities, chunk, member });
        }
    }
    cases
}

/// The engine's side.
struct Through {
    engine: Engine,
    token: Token,
    next: usize,
    replies: Vec<raidlab_engine::Reply>,
}

impl Through {
    fn new(case: &Case) -> Self {
        let level = if case.parities == 2 { Level::Raid6 } else { Level::Raid5 };
        let layout = Layout::new(level, case.members).with_chunk(Sectors(case.chunk as u64 / 512));
        let member = || {
            let sectors = Sectors(case.member as u64 / 512);
            Member::Memory(MemoryMember::new(sectors).expect("there is memory"))
        };
        let members = (0..case.members).map(|_| member()).collect();
        let config = EngineConfig::new(layout);
        let mut engine = Engine::new(&config, members).expect("the layout is possible");
        let token = engine.allocate((case.data() * case.chunk) as u64).expect("there is memory");
        engine.bytes_mut(token).expect("no request is under way").fill(0x5a);
        Self { engine, token, next: 0, replies: Vec::new() }
    }

    fn write(&mut self, case: &Case) {
        let sectors = (case.data() * case.chunk / 512) as u32;
        let at = Sector(self.next as u64 * u64::from(sectors));
        self.next = (self.next + 1) % case.stripes();
        let segment = Segment { token: self.token, offset: 0, len: sectors };
        self.engine.submit(IoOp::Write, at, &[segment], false).expect("there is room");
        self.replies.clear();
        self.engine.poll_replies(&mut self.replies).expect("members in memory do not fail");
        assert!(self.replies.len() == 1 && self.replies[0].outcome == Outcome::Done);
    }
}

/// The other side: the kernel and one copy of everything.
struct Beside {
    payload: Vec<u8>,
    parity: Vec<u8>,
    members: Vec<Vec<u8>>,
    exponents: Vec<u8>,
    next: usize,
}

/// A start on a page in a vector with one page more than needed.
fn page(memory: &[u8]) -> usize {
    memory.as_ptr().align_offset(4096)
}

impl Beside {
    fn new(case: &Case) -> Self {
        let with_page = |bytes: usize| vec![0x5a; bytes + 4096];
        Self {
            payload: with_page(case.data() * case.chunk),
            parity: with_page(case.parities * case.chunk),
            members: (0..case.members).map(|_| with_page(case.member)).collect(),
            exponents: (0..case.data() as u8).collect(),
            next: 0,
        }
    }

    fn write(&mut self, case: &Case) {
        let from = page(&self.payload);
        let data: Vec<&[u8]> = self.payload[from..].chunks_exact(case.chunk).collect();
        let data = &data[..case.data()];
        let from = page(&self.parity);
        let (p, q) = self.parity[from..].split_at_mut(case.chunk);
        let kernels = Kernels::new(Store::Cached);
        if case.parities == 2 {
            let q = &mut q[..case.chunk];
            kernels.pq(Some(p), Some(q), data, &self.exponents).expect("blocks fit");
        } else {
            kernels.xor(p, data).expect("blocks fit");
        }
        let parity = self.parity[from..].chunks_exact(case.chunk).take(case.parities);
        let at = self.next * case.chunk;
        self.next = (self.next + 1) % case.stripes();
        for (member, chunk) in self.members.iter_mut().zip(data.iter().copied().chain(parity)) {
            let from = page(member) + at;
            member[from..][..case.chunk].copy_from_slice(chunk);
        }
    }
}

/// GB of payload a second.
fn rate(case: &Case, mut write: impl FnMut(&Case)) -> f64 {
    let payload = case.data() * case.chunk;
    let repeats = BYTES.div_ceil(payload);
    let start = Instant::now();
    for _ in 0..repeats {
        write(case);
    }
    (repeats * payload) as f64 / start.elapsed().as_secs_f64() / 1e9
}

/// The 90th percentile.
fn percentile(rates: &mut [f64]) -> f64 {
    rates.sort_by(f64::total_cmp);
    rates[rates.len() * 9 / 10]
}

/// Measures all cases and prints them.
pub(crate) fn run(repetitions: usize) {
    let samples = repetitions * SAMPLES;
    println!("\nfull stripes to members in memory, one request at a time, GB of payload a second:");
    println!(
        "the engine, parity and one copy without it, their ratio; 90th percentile of {samples}\n"
    );
    for case in cases() {
        let (mut through, mut beside) = (Through::new(&case), Beside::new(&case));
        for _ in 0..case.stripes() {
            through.write(&case);
            beside.write(&case);
        }
        let mut rates = [Vec::new(), Vec::new()];
        for _ in 0..samples {
            rates[0].push(rate(&case, |case| through.write(case)));
            rates[1].push(rate(&case, |case| beside.write(case)));
        }
        let [engine, limit] = rates.map(|mut rates| percentile(&mut rates));
        let level = if case.parities == 2 { "raid6" } else { "raid5" };
        let name = format!("{level}({}) chunk {} KiB", case.members, case.chunk >> 10);
        println!("{name:<26} {engine:>6.1} {limit:>6.1}   {:.2}", engine / limit);
    }
}
