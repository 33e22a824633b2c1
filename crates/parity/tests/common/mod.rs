//! What the tests of this crate share: all kernels of this machine, guarded buffers, an oracle, and random
//! draws that repeat.
#![allow(dead_code, reason = "each test uses a part")]

use std::io::Write as _;
use std::sync::Once;

use raidlab_parity::{InstructionSet, Kernels, Store, scalar};

/// Room for any tested alignment and length, and guard bytes on both sides.
pub(crate) const ROOM: usize = 64 + 64 + 4096 + 64;
/// The byte around targets, which must survive.
pub(crate) const GUARD: u8 = 0xa5;

/// Every path this machine has, with every way to store; says once which it lacks.
pub(crate) fn all_kernels() -> Vec<Kernels> {
    static TOLD: Once = Once::new();
    TOLD.call_once(|| {
        for path in InstructionSet::ALL.into_iter().filter(|path| !path.is_available()) {
            let needed = match path {
                InstructionSet::Avx512Gfni => "avx512f, gfni and avx2",
                InstructionSet::Avx2 => "avx2",
                InstructionSet::Words => "nothing",
            };
            // Written past the test harness, which would keep the output of a test that passes.
            let line = format!("skipped: parity by {path}: needs a processor with {needed}\n");
            std::io::stderr().write_all(line.as_bytes()).expect("standard error is open");
        }
    });
    let of = |path| [Store::Cached, Store::NonTemporal].map(|store| Kernels::on(path, store));
    InstructionSet::ALL.into_iter().flat_map(of).flatten().collect()
}

/// A small generator (xorshift64*), so that runs repeat exactly.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    pub(crate) fn below(&mut self, end: usize) -> usize {
        ((self.next() >> 16) % end as u64) as usize
    }

    pub(crate) fn bytes(&mut self, len: usize) -> Vec<u8> {
        (0..len).map(|_| (self.next() >> 32) as u8).collect()
    }

    /// The first `count` of all exponents in a random order.
    pub(crate) fn exponents(&mut self, count: usize) -> Vec<u8> {
        let mut all: Vec<u8> = (0..255).collect();
        for at in 0..count {
            all.swap(at, at + self.below(255 - at));
        }
        all.truncate(count);
        all
    }

    /// Exponent patterns for `count` data: consecutive, shuffled, with holes where P and Q would stand, any.
    pub(crate) fn patterns(&mut self, count: usize) -> Vec<Vec<u8>> {
        let consecutive: Vec<u8> = (0..count as u8).collect();
        let mut shuffled = consecutive.clone();
        for at in 0..count {
            shuffled.swap(at, at + self.below(count - at));
        }
        let hole = self.below(count + 1) as u8;
        let holes = (0..count as u8 + 2).filter(|e| *e != hole && *e != hole + 1).collect();
        vec![consecutive, shuffled, holes, self.exponents(count)]
    }
}

/// A guarded buffer with `len` bytes of `contents` at an alignment of 64 bytes plus `align`.
pub(crate) struct Guarded {
    memory: Vec<u8>,
    start: usize,
    len: usize,
}

impl Guarded {
    pub(crate) fn new(align: usize, contents: &[u8]) -> Self {
        let mut memory = vec![GUARD; contents.len() + ROOM - 4096];
        let start = memory.as_ptr().align_offset(64) + align;
        memory[start..start + contents.len()].copy_from_slice(contents);
        Self { memory, start, len: contents.len() }
    }

    pub(crate) fn bytes(&mut self) -> &mut [u8] {
        &mut self.memory[self.start..self.start + self.len]
    }

    pub(crate) fn look(&self) -> &[u8] {
        &self.memory[self.start..self.start + self.len]
    }

    pub(crate) fn is(&self, expected: &[u8]) -> bool {
        let (before, rest) = self.memory.split_at(self.start);
        let (bytes, after) = rest.split_at(self.len);
        bytes == expected && before.iter().chain(after).all(|byte| *byte == GUARD)
    }
}

/// P and Q of blocks, by tables of the scalar oracle's products.
pub(crate) fn oracle(len: usize, blocks: &[&[u8]], exponents: &[u8]) -> (Vec<u8>, Vec<u8>) {
    let (mut p, mut q) = (vec![0; len], vec![0; len]);
    for (block, exponent) in blocks.iter().zip(exponents) {
        let element = scalar::power(usize::from(*exponent));
        let products: [u8; 256] = std::array::from_fn(|byte| scalar::multiply(element, byte as u8));
        for ((p, q), byte) in p.iter_mut().zip(&mut q).zip(*block) {
            *p ^= byte;
            *q ^= products[usize::from(*byte)];
        }
    }
    (p, q)
}

pub(crate) fn slices(blocks: &[Vec<u8>]) -> Vec<&[u8]> {
    blocks.iter().map(Vec::as_slice).collect()
}
