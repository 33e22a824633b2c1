//! Comparing finds the first and the last difference; locating names the one wrong block and nothing else.

mod common;

use common::{Guarded, Random, all_kernels, oracle};
use raidlab_parity::{Kernels, Located, Wrong};

#[test]
fn differences_are_found_to_the_byte() {
    let mut random = Random(1);
    for kernels in all_kernels() {
        for round in 0..600 {
            let len = if round < 300 { round } else { random.below(3000) };
            let block = random.bytes(len);
            let count = 2 + random.below(4);
            let mut blocks: Vec<Guarded> =
                (0..count).map(|_| Guarded::new(random.below(64), &block)).collect();
            let look = |blocks: &[Guarded]| {
                let slices: Vec<&[u8]> = blocks.iter().map(Guarded::look).collect();
                kernels.compare(&slices).unwrap()
            };
            assert_eq!(look(&blocks), None, "{kernels:?}: {len}");
            if len == 0 {
                continue;
            }
            let (mut from, mut to) = (len, 0);
            for flip in 0..1 + random.below(3) {
                let at = random.below(len);
                // Every flip is of another bit, so two never undo each other.
                blocks[random.below(count)].bytes()[at] ^= 1 << flip;
                (from, to) = (from.min(at), to.max(at + 1));
            }
            assert_eq!(look(&blocks), Some(from..to), "{kernels:?}: {len}");
        }
    }
}

/// The same bit wrong at two places of a step, whose words and vectors are looked at together.
#[test]
fn equal_differences_do_not_cancel_out() {
    let good = [0x5a; 1100];
    let (p, q) = oracle(good.len(), &[&good[..]; 3], &[0, 1, 2]);
    let distances = [1, 4, 8, 16, 32, 64, 96, 128, 192, 256, 448];
    for kernels in all_kernels() {
        for (at, distance) in distances.iter().flat_map(|far| [0, 7, 130].map(|at| (at, *far))) {
            let mut wrong = good;
            wrong[at] ^= 0x10;
            wrong[at + distance] ^= 0x10;
            let bytes = at..at + distance + 1;
            let found = kernels.compare(&[&good, &wrong]).unwrap();
            assert_eq!(found, Some(bytes.clone()), "{kernels:?}");
            let found = kernels.locate((&p, &q), &[&good, &wrong, &good], &[0, 1, 2]).unwrap();
            assert_eq!(found, Located::One { block: Wrong::Data(1), bytes }, "{kernels:?}");
        }
    }
}

/// A row of data, P and Q.
struct Row {
    blocks: Vec<Vec<u8>>,
    exponents: Vec<u8>,
}

impl Row {
    fn new(random: &mut Random, len: usize) -> Self {
        let count = 1 + random.below(20);
        let mut patterns = random.patterns(count);
        let exponents = patterns.swap_remove(random.below(patterns.len()));
        let mut blocks: Vec<Vec<u8>> = (0..count).map(|_| random.bytes(len)).collect();
        let slices: Vec<&[u8]> = blocks.iter().map(Vec::as_slice).collect();
        let (p, q) = oracle(len, &slices, &exponents);
        blocks.extend([p, q]);
        Self { blocks, exponents }
    }

    fn locate(&self, kernels: &Kernels) -> Located {
        let count = self.exponents.len();
        let data: Vec<&[u8]> = self.blocks[..count].iter().map(Vec::as_slice).collect();
        let parity = (&self.blocks[count][..], &self.blocks[count + 1][..]);
        kernels.locate(parity, &data, &self.exponents).unwrap()
    }

    fn named(&self, member: usize) -> Wrong {
        match member - self.exponents.len().min(member) {
            0 if member < self.exponents.len() => Wrong::Data(member),
            0 => Wrong::P,
            _ => Wrong::Q,
        }
    }
}

#[test]
fn the_one_wrong_block_is_named() {
    let mut random = Random(2);
    for kernels in all_kernels() {
        for round in 0..250 {
            let len = if round < 150 { 1 + round } else { 1 + random.below(1500) };
            let mut row = Row::new(&mut random, len);
            assert_eq!(row.locate(&kernels), Located::Consistent, "{kernels:?}: {len}");
            let member = random.below(row.blocks.len());
            let (mut from, mut to) = (len, 0);
            for _ in 0..1 + random.below(30) {
                let at = random.below(len);
                if !(from..to).contains(&at) {
                    row.blocks[member][at] ^= 1 + random.below(255) as u8;
                    (from, to) = (from.min(at), to.max(at + 1));
                }
            }
            let expected = Located::One { block: row.named(member), bytes: from..to };
            assert_eq!(row.locate(&kernels), expected, "{kernels:?}: {len}");
        }
    }
}

#[test]
fn two_wrong_blocks_are_not_blamed_on_one() {
    let mut random = Random(3);
    for kernels in all_kernels() {
        for _ in 0..250 {
            let len = 64 + random.below(1500);
            let mut row = Row::new(&mut random, len);
            let members = row.blocks.len();
            let one = random.below(members);
            let other = (one + 1 + random.below(members - 1)) % members;
            // At different places: each byte names its own block.
            let (at, then) = (random.below(len / 2), len / 2 + random.below(len / 2));
            row.blocks[one][at] ^= 0x40;
            row.blocks[other][then] ^= 0x02;
            let expected = Located::Several { bytes: at..then + 1 };
            assert_eq!(row.locate(&kernels), expected, "{kernels:?}: {len}");
            // At the same places, in many bytes: no block fits all of them.
            row.blocks[one][at] ^= 0x40;
            row.blocks[other][then] ^= 0x02;
            for at in 0..40 {
                row.blocks[one][at] ^= 1 + random.below(255) as u8;
                row.blocks[other][at] ^= 1 + random.below(255) as u8;
            }
            let found = row.locate(&kernels);
            assert_eq!(found, Located::Several { bytes: 0..40 }, "{kernels:?}: {len}");
        }
    }
}

/// Errors that would fit a block with an exponent that no block has.
#[test]
fn a_block_that_is_not_there_is_not_named() {
    for kernels in all_kernels() {
        let data = [[0u8; 300]; 3];
        let data: Vec<&[u8]> = data.iter().map(|block| &block[..]).collect();
        let (mut p, mut q) = ([0u8; 300], [0u8; 300]);
        (p[77], q[77]) = (1, 8);
        let found = kernels.locate((&p, &q), &data, &[0, 1, 2]).unwrap();
        assert_eq!(found, Located::Several { bytes: 77..78 });
        let found = kernels.locate((&p, &q), &data, &[0, 3, 2]).unwrap();
        assert_eq!(found, Located::One { block: Wrong::Data(1), bytes: 77..78 });
    }
}
