//! What parity costs: bytes of data a second, by one core, over blocks of 64 KiB that stay in the cache.
//!
//! Run with `cargo bench -p raidlab-parity`. Rounds are interleaved over the cases; the median round is
//! printed with the range. Counted are all blocks that a case reads, but not the P and Q a delta changes.

use std::hint::black_box;
use std::time::Instant;

use raidlab_parity::{delta, path, pq, recover_two, xor};

const BLOCK: usize = 64 << 10;
const PASSES: usize = 400;
const ROUNDS: usize = 15;
const MOST: usize = 8;

/// Blocks to work on.
struct Memory {
    data: Vec<Vec<u8>>,
    p: Vec<u8>,
    q: Vec<u8>,
}

struct Case {
    name: &'static str,
    /// Blocks of data read.
    blocks: usize,
    run: fn(&mut Memory, &[&[u8]], usize),
}

fn run_xor(memory: &mut Memory, data: &[&[u8]], blocks: usize) {
    xor(&mut memory.p, &data[..blocks]).expect("equal lengths");
}

fn run_pq(memory: &mut Memory, data: &[&[u8]], blocks: usize) {
    let exponents: [u8; MOST] = std::array::from_fn(|n| n as u8);
    let (p, q) = (&mut memory.p[..], &mut memory.q[..]);
    pq(Some(p), Some(q), &data[..blocks], &exponents[..blocks]).expect("equal lengths");
}

fn run_delta(memory: &mut Memory, data: &[&[u8]], blocks: usize) {
    let (p, q) = (&mut memory.p[..], &mut memory.q[..]);
    let (old, new) = data[..blocks].split_at(blocks / 2);
    let exponents: [u8; MOST] = std::array::from_fn(|n| n as u8);
    delta(Some(p), Some(q), old, new, &exponents[..blocks / 2]).expect("equal lengths");
}

/// Blocks 0 and 1 of the data stand for P and Q.
fn run_recover(memory: &mut Memory, data: &[&[u8]], blocks: usize) {
    let targets = [&mut memory.p[..], &mut memory.q[..]];
    let exponents: [u8; MOST] = std::array::from_fn(|n| n as u8);
    let (rest, known) = (&data[2..blocks], &exponents[2..blocks]);
    recover_two(targets, [0, 1], data[0], data[1], rest, known).expect("equal lengths");
}

fn main() {
    let case = |name, blocks, run| Case { name, blocks, run };
    let cases = [
        case("xor of 4", 4, run_xor as fn(&mut Memory, &[&[u8]], usize)),
        case("xor of 8", 8, run_xor),
        case("P and Q of 4", 4, run_pq),
        case("P and Q of 8", 8, run_pq),
        case("delta of P and Q, 1 old and 1 new", 2, run_delta),
        case("delta of P and Q, 4 old and 4 new", 8, run_delta),
        case("recover 2 of 4 (2 data, P, Q)", 4, run_recover),
        case("recover 2 of 8 (6 data, P, Q)", 8, run_recover),
    ];
    let fill = |n: usize| (0..BLOCK).map(|at| (at * 31 + n * 7 + at / 251) as u8).collect();
    let data: Vec<Vec<u8>> = (0..MOST).map(fill).collect();
    let mut memory = Memory { data, p: vec![0; BLOCK], q: vec![0; BLOCK] };
    let mut rates = vec![Vec::new(); cases.len()];
    for _ in 0..ROUNDS {
        for (case, rates) in cases.iter().zip(&mut rates) {
            let data = std::mem::take(&mut memory.data);
            let slices: Vec<&[u8]> = data.iter().map(Vec::as_slice).collect();
            let start = Instant::now();
            for _ in 0..PASSES {
                (case.run)(black_box(&mut memory), black_box(&slices), case.blocks);
            }
            let seconds = start.elapsed().as_secs_f64();
            rates.push((case.blocks * BLOCK * PASSES) as f64 / seconds / 1e9);
            memory.data = data;
        }
    }
    println!("{} path, blocks of 64 KiB, GB of blocks read a second and core", path());
    for (case, rates) in cases.iter().zip(&mut rates) {
        rates.sort_by(f64::total_cmp);
        let (low, middle, high) = (rates[0], rates[ROUNDS / 2], rates[ROUNDS - 1]);
        println!("{:36} {middle:7.1}  ({low:.1} to {high:.1})", case.name);
    }
}
