//! P, Q and recovery equal those of ISA-L, which was written independently. Where its Debian package is not
//! installed the tests say that they are skipped.

mod common;
#[path = "common/isal.rs"]
mod isal;

use std::io::Write as _;

use common::{Random, all_kernels};
use isal::{ALIGNMENT, Isal};
use raidlab_parity::scalar;

/// The library by the instructions it chooses, and by AVX2 where it shows these; none where it is missing.
fn isal_or_skip(test: &str) -> Vec<Isal> {
    let Some(dispatched) = Isal::dispatched() else {
        // Written past the test harness, which would keep the output of a test that passes.
        let line = format!("skipped: {test}: needs {}\n", isal::PACKAGE);
        std::io::stderr().write_all(line.as_bytes()).expect("standard error is open");
        return Vec::new();
    };
    // Its kernels by name are for machines with AVX2; where it has none, nothing is lost.
    let avx2 =
        if raidlab_parity::InstructionSet::Avx2.is_available() { Isal::avx2() } else { None };
    [Some(dispatched), avx2].into_iter().flatten().collect()
}

/// Blocks as the library wants them.
struct Blocks {
    memory: Vec<u8>,
    start: usize,
    count: usize,
    len: usize,
}

impl Blocks {
    fn new(random: &mut Random, count: usize, len: usize) -> Self {
        assert!(len.is_multiple_of(ALIGNMENT));
        let memory = random.bytes(count * len + ALIGNMENT);
        let start = memory.as_ptr().align_offset(ALIGNMENT);
        Self { memory, start, count, len }
    }

    fn at(&mut self) -> Vec<*mut u8> {
        let all = &mut self.memory[self.start..][..self.count * self.len];
        all.chunks_exact_mut(self.len).map(|block| block.as_mut_ptr()).collect()
    }

    fn look(&self) -> Vec<&[u8]> {
        self.memory[self.start..][..self.count * self.len].chunks_exact(self.len).collect()
    }
}

#[test]
fn p_and_q_equal_those_of_isa_l() {
    let mut random = Random(1);
    for isal in isal_or_skip("p_and_q_equal_those_of_isa_l") {
        for count in 2..=32 {
            for len in [32, 64, 96, 512, 4096, 9216] {
                let mut blocks = Blocks::new(&mut random, count + 2, len);
                let mut at = blocks.at();
                // SAFETY: the blocks are as many, as long and as aligned as said.
                unsafe { isal.pq(&mut at, len) };
                for kernels in all_kernels() {
                    let all = blocks.look();
                    let exponents: Vec<u8> = (0..count as u8).collect();
                    let (mut p, mut q) = (vec![1; len], vec![2; len]);
                    let (data, parity) = all.split_at(count);
                    kernels.pq(Some(&mut p), Some(&mut q), data, &exponents).unwrap();
                    assert!(p == parity[0] && q == parity[1], "{kernels:?}: {count} x {len}");
                }
                let mut at = blocks.at();
                // SAFETY: as above; the last block is the target.
                unsafe { isal.xor(&mut at[..count + 1], len) };
                let all = blocks.look();
                for kernels in all_kernels() {
                    let mut p = vec![1; len];
                    kernels.xor(&mut p, &all[..count]).unwrap();
                    assert!(p == all[count], "XOR, {kernels:?}: {count} x {len}");
                }
            }
        }
    }
}

/// The library recovers two data, and changes P and Q, as sums with coefficients.
#[test]
fn recovery_and_change_equal_those_of_isa_l() {
    let mut random = Random(2);
    for isal in isal_or_skip("recovery_and_change_equal_those_of_isa_l") {
        for count in 3..=20 {
            let len = 32 * (1 + random.below(40));
            let x = random.below(count - 1);
            let y = x + 1 + random.below(count - 1 - x);
            let others: Vec<usize> = (0..count).filter(|n| *n != x && *n != y).collect();
            // Blocks: the others, P, Q, then what is found.
            let mut blocks = Blocks::new(&mut random, count + 2, len);
            let [first, second] = [x, y].map(scalar::power);
            let b = scalar::inverse(first ^ second).unwrap();
            let a = scalar::multiply(second, b);
            let of = |n: &usize| a ^ scalar::multiply(b, scalar::power(*n));
            let one: Vec<u8> = others.iter().map(of).chain([a, b]).collect();
            let plain = (0..count).map(|n| u8::from(n < count - 1));
            let two: Vec<u8> = one.iter().zip(plain).map(|(c, plain)| c ^ plain).collect();
            let tables = isal.tables([&one, &two]);
            let at = blocks.at();
            // SAFETY: the blocks are as many and as long as said.
            unsafe { isal.encode(&tables, &at[..count], [at[count], at[count + 1]], len) };
            let all = blocks.look();
            let exponents: Vec<u8> = others.iter().map(|n| *n as u8).collect();
            for kernels in all_kernels() {
                let (mut found, mut other) = (vec![0; len], vec![0; len]);
                let parity = (all[count - 2], all[count - 1]);
                let lost = [x as u8, y as u8];
                let (targets, data) = ([&mut found[..], &mut other[..]], &all[..count - 2]);
                kernels.recover_two(targets, lost, parity, data, &exponents).unwrap();
                assert!(found == all[count] && other == all[count + 1], "{kernels:?}: {count}");
            }
            change(&isal, &mut random, count, len);
        }
    }
}

fn change(isal: &Isal, random: &mut Random, count: usize, len: usize) {
    let which = random.below(count);
    // Old, new, their difference, P, Q.
    let mut blocks = Blocks::new(random, 5, len);
    let before: Vec<Vec<u8>> = blocks.look()[3..5].iter().map(|block| block.to_vec()).collect();
    let powers: Vec<u8> = (0..count).map(scalar::power).collect();
    let tables = isal.tables([&vec![1; count], &powers]);
    let at = blocks.at();
    // SAFETY: the blocks are as many, as long and as aligned as said.
    unsafe {
        isal.xor(&mut [at[0], at[1], at[2]], len);
        isal.update(&tables, which, at[2], [at[3], at[4]], len);
    }
    let all = blocks.look();
    for kernels in all_kernels() {
        let (mut p, mut q) = (before[0].clone(), before[1].clone());
        let (old, new) = (&all[..1], &all[1..2]);
        kernels.delta(Some(&mut p), Some(&mut q), old, new, &[which as u8]).unwrap();
        assert!(p == all[3] && q == all[4], "{kernels:?}: {which} of {count}");
    }
}
