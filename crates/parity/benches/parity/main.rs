//! What parity costs beside ISA-L, the crate rusty_erasure and copying: GB of data a second by one core.
//!
//! `cargo bench -p raidlab-parity [-- WORD...]`; only cells whose name has all words are measured. A name is
//! made of the operation (xor, pq, delta, two), n=N, 4K, 64K or 512K, hot or memory, aligned or staggered.
//!
//! Samples are short and interleaved over who computes, so that what else the machine does hits all of them;
//! each figure is the 90th percentile of its samples. *hot*: the same stripe again and again. *memory*: a
//! ring of stripes eight times the last-level cache. *aligned*: blocks start on pages, as far apart as they
//! are long. *staggered*: each starts 512 bytes further within its page than the one before. raidlab is
//! measured through its checked interface, storing through the cache when hot and past it from memory,
//! as it is meant to be used; the other way of storing stands beside. What must at least be read and written
//! is set against the traffic of copying blocks of the same size. Without ISA-L (Debian package
//! libisal2) there is no table to print. `-- --lines` prints lines of raidlab alone for `cargo xtask bench --against`:
//! hot and staggered, nanoseconds a stripe.

#[path = "../../../../tests/support/bench.rs"]
mod bench;
#[path = "../../tests/common/isal.rs"]
mod isal;
mod memory;
mod peers;
mod table;

use std::hint::black_box;
use std::process::ExitCode;
use std::time::Instant;

use isal::Isal;
use memory::{Arena, Stripe};
use peers::{Operation, Peer};
use raidlab_parity::{InstructionSet, Kernels, Store};
use table::{Cell, Results};

/// Samples of every figure.
const SAMPLES: usize = 25;
/// Bytes of blocks a sample works through, at least; hot ones take about 0.2 ms.
const HOT: usize = 12 << 20;
const COLD: usize = 16 << 20;
/// Bytes of the ring of stripes that are in no cache.
const RING: usize = 256 << 20;

pub(crate) const COUNTS: [usize; 6] = [3, 4, 6, 8, 10, 16];
pub(crate) const SIZES: [usize; 3] = [4 << 10, 64 << 10, 512 << 10];

/// The stripes of a cell.
struct Ring {
    stripes: Vec<Stripe>,
    next: usize,
}

impl Ring {
    fn new(arena: &Arena, cell: &Cell) -> Self {
        let distance = if cell.staggered { cell.size + 512 } else { cell.size };
        let blocks = cell.operation.blocks(cell.n);
        let bytes = (blocks * distance).next_multiple_of(4096);
        let count = if cell.hot { 1 } else { arena.bytes() / bytes };
        let start = |index: usize| arena.start().wrapping_add(index * bytes);
        // SAFETY: so many stripes have room in the arena, which lives as long as the program measures.
        let stripe = |index| unsafe { Stripe::new(start(index), blocks, distance, cell.size) };
        Self { stripes: (0..count).map(stripe).collect(), next: 0 }
    }

    #[inline]
    fn next(&mut self) -> &Stripe {
        let this = self.next;
        self.next = if this + 1 == self.stripes.len() { 0 } else { this + 1 };
        &self.stripes[this]
    }
}

/// Measures a cell; a rate for each peer, `None` for one that cannot.
fn measure(arena: &Arena, cell: &Cell, peers: &[Peer]) -> Vec<Option<f64>> {
    let mut ring = Ring::new(arena, cell);
    agree(ring.next(), cell, peers);
    let stripe_bytes = cell.operation.blocks(cell.n) * cell.size;
    let repeats = (if cell.hot { HOT } else { COLD }).div_ceil(stripe_bytes).max(2);
    let payload = (repeats * cell.operation.payload(cell.n) * cell.size) as f64;
    let mut rates = vec![Vec::with_capacity(SAMPLES); peers.len()];
    for _ in 0..SAMPLES {
        for (peer, rates) in peers.iter().zip(&mut rates) {
            if !peer.can(cell.operation) {
                continue;
            }
            if cell.hot {
                // SAFETY: nobody else uses the arena.
                unsafe { peer.run(cell.operation, cell.n, ring.next()) };
            }
            let start = Instant::now();
            for _ in 0..repeats {
                // SAFETY: as above.
                unsafe { peer.run(cell.operation, cell.n, black_box(ring.next())) };
            }
            rates.push(payload / start.elapsed().as_secs_f64() / 1e9);
        }
    }
    rates.iter_mut().map(|rates| percentile(rates)).collect()
}

/// The 90th percentile.
fn percentile(rates: &mut [f64]) -> Option<f64> {
    rates.sort_by(f64::total_cmp);
    rates.get(rates.len() * 9 / 10).copied()
}

/// Checks that all peers come to the same result.
fn agree(stripe: &Stripe, cell: &Cell, peers: &[Peer]) {
    let targets = cell.operation.targets(cell.n);
    let look = || -> Vec<Vec<u8>> {
        targets.clone().map(|index| black_box(stripe).slices[index].to_vec()).collect()
    };
    let before = look();
    let mut expected: Option<Vec<Vec<u8>>> = None;
    for peer in peers.iter().filter(|peer| peer.can(cell.operation)) {
        for (index, contents) in targets.clone().zip(&before) {
            // SAFETY: as above.
            unsafe { stripe.write(index) }.copy_from_slice(contents);
        }
        // SAFETY: as above.
        unsafe { peer.run(cell.operation, cell.n, stripe) };
        let found = look();
        assert!(expected.get_or_insert_with(|| found.clone()) == &found, "{cell}: results differ");
    }
}

/// What copying blocks reaches through the cache and past it: the limit of this machine.
fn copying(arena: &Arena, size: usize, hot: bool) -> [f64; 2] {
    let cell = Cell { operation: Operation::Xor, n: 1, size, hot, staggered: true };
    let mut ring = Ring::new(arena, &cell);
    let kernels = Kernels::new(Store::NonTemporal);
    let repeats = (if hot { HOT } else { COLD }) / (2 * size);
    let mut rates = [const { Vec::new() }; 2];
    for _ in 0..SAMPLES {
        for (past, rates) in [false, true].into_iter().zip(&mut rates) {
            let start = Instant::now();
            for _ in 0..repeats {
                let stripe = black_box(ring.next());
                // SAFETY: nobody else uses the arena; the blocks are two.
                let (from, to) = (stripe.slices[0], unsafe { stripe.write(1) });
                if past {
                    kernels.xor(to, &[from]).expect("equal lengths");
                } else {
                    to.copy_from_slice(from);
                }
            }
            rates.push((repeats * size) as f64 / start.elapsed().as_secs_f64() / 1e9);
        }
    }
    rates.map(|mut rates| percentile(&mut rates).expect("there are samples"))
}

/// Lines of a few cells; a sample of each takes about a millisecond.
fn print_lines() {
    let arena = Arena::new(RING / 8);
    let few = |cell: &Cell| {
        cell.hot && cell.staggered && [4, 8].contains(&cell.n) && cell.size < 512 << 10
    };
    let ours = Peer::Ours(Kernels::new(Store::Cached));
    let cells = table::cells().into_iter().filter(few);
    let mut cells: Vec<_> = cells.map(|cell| (Ring::new(&arena, &cell), cell)).collect();
    let name = |(_, cell): &(Ring, Cell)| cell.to_string();
    bench::print_lines(&mut cells, name, |(ring, cell)| {
        let repeats = (32 << 20) / (cell.operation.blocks(cell.n) * cell.size);
        let start = bench::cpu_time();
        for _ in 0..repeats {
            // SAFETY: nobody else uses the arena.
            unsafe { ours.run(cell.operation, cell.n, black_box(ring.next())) };
        }
        (bench::cpu_time() - start) / repeats as f64
    });
}

fn main() -> ExitCode {
    if bench::lines_asked() {
        print_lines();
        return ExitCode::SUCCESS;
    }
    // `cargo bench` passes a flag of its own.
    let words: Vec<String> =
        std::env::args().skip(1).filter(|word| !word.starts_with('-')).collect();
    let (Some(dispatched), Some(avx2)) = (Isal::dispatched(), Isal::avx2()) else {
        eprintln!("skipped: the bench of parity: needs {}", isal::PACKAGE);
        return ExitCode::SUCCESS;
    };
    let arena = Arena::new(RING);
    let mut results = Results::default();
    for size in SIZES {
        for hot in [true, false] {
            results.copies.push((size, hot, copying(&arena, size, hot)));
        }
    }
    for cell in table::cells() {
        let name = cell.to_string();
        if !words.iter().all(|word| name.split(' ').any(|part| part == word)) {
            continue;
        }
        let store = |past| if past { Store::NonTemporal } else { Store::Cached };
        let fastest = Kernels::new(store(!cell.hot));
        let by_avx2 = Kernels::on(InstructionSet::Avx2, fastest.store());
        let peers = [
            Peer::Ours(fastest),
            Peer::Ours(Kernels::new(store(cell.hot))),
            by_avx2.filter(|kernels| *kernels != fastest).map_or(Peer::Nobody, Peer::Ours),
            Peer::isal(avx2, cell.n),
            Peer::isal(dispatched, cell.n),
            Peer::Crate,
        ];
        let rates = measure(&arena, &cell, &peers);
        results.rows.push((cell, rates));
    }
    results.print();
    ExitCode::SUCCESS
}
