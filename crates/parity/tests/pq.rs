//! P and Q by every path equal the scalar oracle byte for byte, and touch nothing beside their targets.

mod common;

use common::{Guarded, Random, all_kernels, oracle, slices};
use raidlab_parity::{Block, Change, Kernels, Lost, scalar};

/// Computes, changes and recovers over one random row by all kernels.
fn check(random: &mut Random, len: usize, count: usize, align: usize) {
    for kernels in all_kernels() {
        check_by(&kernels, random, len, count, align);
    }
}

/// Exponents in one of the usual orders.
fn exponents(random: &mut Random, count: usize) -> Vec<u8> {
    let mut patterns = random.patterns(count);
    let which = random.below(patterns.len());
    patterns.swap_remove(which)
}

/// Computes, changes and recovers over one random row, all results compared with the oracle.
fn check_by(kernels: &Kernels, random: &mut Random, len: usize, count: usize, align: usize) {
    let exponents = exponents(random, count);
    let what = format!("{kernels:?}: {len} bytes, {count} blocks at {align}, {exponents:?}");
    let aligned: Vec<Guarded> = (0..count)
        .map(|_| {
            let shift = if random.next() & 1 == 0 { align } else { random.below(64) };
            let contents = random.bytes(len);
            Guarded::new(shift, &contents)
        })
        .collect();
    let data: Vec<&[u8]> = aligned.iter().map(Guarded::look).collect();
    let (expected_p, expected_q) = oracle(len, &data, &exponents);
    let (mut p, mut q) =
        (Guarded::new(align, &vec![1; len]), Guarded::new(63 - align, &vec![2; len]));
    kernels.pq(Some(p.bytes()), Some(q.bytes()), &data, &exponents).unwrap();
    assert!(p.is(&expected_p) && q.is(&expected_q), "both: {what}");
    let (mut only_p, mut only_q) =
        (Guarded::new(align, &vec![1; len]), Guarded::new(align, &vec![2; len]));
    kernels.pq(Some(only_p.bytes()), None, &data, &exponents).unwrap();
    kernels.pq(None, Some(only_q.bytes()), &data, &exponents).unwrap();
    assert!(only_p.is(&expected_p) && only_q.is(&expected_q), "one: {what}");

    // Some of the data change.
    let changed = 1 + random.below(count);
    let new: Vec<Vec<u8>> = (0..changed).map(|_| random.bytes(len)).collect();
    let mut after: Vec<Vec<u8>> = data.iter().map(|d| d.to_vec()).collect();
    after[..changed].clone_from_slice(&new);
    let (after_p, after_q) = oracle(len, &slices(&after), &exponents);
    let (old, new, which) = (&data[..changed], slices(&new), &exponents[..changed]);
    kernels.delta(Some(p.bytes()), Some(q.bytes()), old, &new, which).unwrap();
    kernels.delta(Some(only_p.bytes()), None, old, &new, which).unwrap();
    kernels.delta(None, Some(only_q.bytes()), old, &new, which).unwrap();
    assert!(p.is(&after_p) && q.is(&after_q), "delta: {what}");
    assert!(only_p.is(&after_p) && only_q.is(&after_q), "delta of one: {what}");
    recover_last(kernels, (&after, &exponents), (&after_p, &after_q), align, &what);
    let other = random.below(count - 1);
    recover_two(kernels, (&after, &exponents), (&after_p, &after_q), (other, align), &what);
}

/// The last block is lost: by P, by Q, with P, with Q.
fn recover_last(
    kernels: &Kernels,
    (row, exponents): (&[Vec<u8>], &[u8]),
    (p, q): (&[u8], &[u8]),
    align: usize,
    what: &str,
) {
    let len = p.len();
    let last = row.len() - 1;
    let (rest, known, lost) = (slices(&row[..last]), &exponents[..last], exponents[last]);
    let place = |n: usize| Guarded::new(if n == 0 { align } else { 63 - align }, &vec![3; len]);
    let mut target = place(0);
    kernels.recover_by_p(target.bytes(), p, &rest).unwrap();
    assert!(target.is(&row[last]), "by P: {what}");
    let mut target = place(0);
    kernels.recover_by_q(target.bytes(), lost, q, &rest, known).unwrap();
    assert!(target.is(&row[last]), "by Q: {what}");
    let (mut target, mut parity) = (place(0), place(1));
    let both = (target.bytes(), parity.bytes());
    kernels.recover_with_p(both, lost, q, &rest, known).unwrap();
    assert!(target.is(&row[last]) && parity.is(p), "with P: {what}");
    let (mut target, mut parity) = (place(1), place(0));
    let both = (target.bytes(), parity.bytes());
    kernels.recover_with_q(both, lost, p, &rest, known).unwrap();
    assert!(target.is(&row[last]) && parity.is(q), "with Q: {what}");
}

/// The last block and another one are lost.
fn recover_two(
    kernels: &Kernels,
    (row, exponents): (&[Vec<u8>], &[u8]),
    (p, q): (&[u8], &[u8]),
    (other, align): (usize, usize),
    what: &str,
) {
    let len = p.len();
    let last = row.len() - 1;
    let mut rest = slices(&row[..last]);
    rest.remove(other);
    let mut known = exponents[..last].to_vec();
    known.remove(other);
    let (mut x, mut y) =
        (Guarded::new(align, &vec![3; len]), Guarded::new(63 - align, &vec![4; len]));
    let lost = [exponents[last], exponents[other]];
    kernels.recover_two([x.bytes(), y.bytes()], lost, (p, q), &rest, &known).unwrap();
    assert!(x.is(&row[last]) && y.is(&row[other]), "two: {what}");
    for at in (0..len).step_by(461) {
        let data: Vec<(u8, u8)> = rest.iter().map(|b| b[at]).zip(known.iter().copied()).collect();
        let found = scalar::recover_two(lost, p[at], q[at], &data);
        assert_eq!(found, Some([row[last][at], row[other][at]]), "the oracle: {what}");
    }
}

#[test]
fn short_lengths_with_every_count() {
    let mut random = Random(1);
    for len in (0..=200).step_by(3).chain([127, 128, 129, 255, 256, 257]) {
        for count in [2, 3, 4, 7, 16, 32] {
            let align = random.below(64);
            check(&mut random, len, count, align);
        }
    }
    for count in 2..=32 {
        check(&mut random, 331, count, 5);
    }
}

#[test]
fn every_length_up_to_4096() {
    let mut random = Random(2);
    let all = all_kernels();
    for len in 0..=4096 {
        let (count, align) = (2 + random.below(31), random.below(64));
        // Every kernel meets every rest of 64 bytes.
        check_by(&all[(len + len / 64) % all.len()], &mut random, len, count, align);
    }
}

#[test]
fn every_alignment() {
    let mut random = Random(3);
    for align in 0..64 {
        let (len, count) = (random.below(700), 2 + random.below(9));
        check(&mut random, len, count, align);
    }
}

#[test]
fn all_255_blocks_at_once() {
    let mut random = Random(5);
    let exponents: Vec<u8> = (0..255).collect();
    let blocks: Vec<Vec<u8>> = exponents.iter().map(|_| random.bytes(1301)).collect();
    let expected = oracle(1301, &slices(&blocks), &exponents);
    for kernels in all_kernels() {
        let (mut p, mut q) = (vec![0; 1301], vec![0; 1301]);
        kernels.pq(Some(&mut p), Some(&mut q), &slices(&blocks), &exponents).unwrap();
        assert!((p, q) == expected, "{kernels:?}");
    }
}

/// P and Q of random blocks with these exponents, by all kernels.
fn check_exponents(blocks: &[Vec<u8>], exponents: &[u8]) {
    let (data, len) = (slices(&blocks[..exponents.len()]), blocks[0].len());
    let expected = oracle(len, &data, exponents);
    for kernels in all_kernels() {
        let (mut p, mut q) = (vec![0; len], vec![0; len]);
        kernels.pq(Some(&mut p), Some(&mut q), &data, exponents).unwrap();
        assert!((p, q) == expected, "{kernels:?}: {exponents:?}");
    }
}

/// Every distance between two exponents: short ones are doublings, long ones multiplications.
#[test]
fn every_gap_and_lowest_exponent() {
    let mut random = Random(7);
    let blocks: Vec<Vec<u8>> = (0..3).map(|_| random.bytes(200)).collect();
    for gap in 1..=200 {
        let lowest = random.below(54) as u8;
        let exponents = [lowest, lowest + gap, lowest + gap + 1 + random.below(2) as u8 % 200];
        let exponents = exponents.map(|exponent| exponent.min(254));
        let count = if exponents[1] == exponents[2] { 2 } else { 3 };
        check_exponents(&blocks, &exponents[..count]);
    }
    // The widest gaps there are, which some kernels bridge two at a time.
    for middle in 1..254 {
        check_exponents(&blocks, &[0, middle, 254]);
        check_exponents(&blocks, &[middle - 1, middle]);
    }
}

/// Two targets that start on multiples of a vector's bytes, of half of these, or neither: stores past the cache
/// need both to.
#[test]
fn every_pair_of_starts_of_two_targets() {
    let mut random = Random(9);
    for [first, second] in [0, 1, 16, 32, 48].map(|one| [0, 8, 32].map(|two| [one, two])).concat() {
        for len in [64, 512, 512 + 64 + 32 + 5, 2000] {
            let row: Vec<Vec<u8>> = (0..5).map(|_| random.bytes(len)).collect();
            let exponents = [0, 1, 2, 3, 4];
            let (p, q) = oracle(len, &slices(&row), &exponents);
            for kernels in all_kernels() {
                let what = format!("{kernels:?}: {len} bytes to {first} and {second}");
                let place = |at| Guarded::new(at, &vec![7; len]);
                let (mut x, mut y) = (place(first), place(second));
                let (to_p, to_q) = (Some(x.bytes()), Some(y.bytes()));
                kernels.pq(to_p, to_q, &slices(&row), &exponents).unwrap();
                assert!(x.is(&p) && y.is(&q), "P and Q, {what}");
                let (mut x, mut y) = (place(first), place(second));
                let (targets, rest) = ([x.bytes(), y.bytes()], slices(&row[2..]));
                kernels.recover_two(targets, [0, 1], (&p, &q), &rest, &exponents[2..]).unwrap();
                assert!(x.is(&row[0]) && y.is(&row[1]), "two, {what}");
            }
        }
    }
}

/// Blocks on the same place of their pages are added group by group, by all operations.
#[test]
fn blocks_a_page_apart() {
    const PLACE: usize = 12288;
    let mut random = Random(8);
    let memory = random.bytes(26 * PLACE + 4096);
    let start = memory.as_ptr().align_offset(4096);
    for (number, kernels) in all_kernels().into_iter().enumerate() {
        for count in [7, 9, 11, 12, 16, 21, 23] {
            let len = [8192, 8192 + 1536, 11111][(count + number) % 3];
            let exponents = exponents(&mut random, count);
            let block = |n: usize| &memory[start + n * PLACE..][..len];
            let mut row: Vec<Vec<u8>> = (0..count).map(|n| block(n).to_vec()).collect();
            let data: Vec<&[u8]> = (0..count).map(block).collect();
            let (expected_p, expected_q) = oracle(len, &data, &exponents);
            let what = format!("{kernels:?}: {len} bytes, {exponents:?}");
            let (mut p, mut q) = (Guarded::new(0, &row[0]), Guarded::new(32, &row[0]));
            kernels.pq(Some(p.bytes()), Some(q.bytes()), &data, &exponents).unwrap();
            assert!(p.is(&expected_p) && q.is(&expected_q), "{what}");
            let mut only = Guarded::new(0, &row[0]);
            kernels.pq(None, Some(only.bytes()), &data, &exponents).unwrap();
            assert!(only.is(&expected_q), "Q only: {what}");
            // Two lost: the others still lie a page apart.
            let (mut x, mut y) = (vec![1; len], vec![2; len]);
            let lost = [exponents[0], exponents[1]];
            let parity = (&expected_p[..], &expected_q[..]);
            let (rest, known) = (&data[2..], &exponents[2..]);
            kernels.recover_two([&mut x, &mut y], lost, parity, rest, known).unwrap();
            assert!(x == row[0] && y == row[1], "two: {what}");
            // Everything changes, into what lies before: also a page apart.
            let new: Vec<&[u8]> = (0..count).map(|n| block(n + 2)).collect();
            kernels.delta(Some(p.bytes()), Some(q.bytes()), &data, &new, &exponents).unwrap();
            row = new.iter().map(|block| block.to_vec()).collect();
            let (after_p, after_q) = oracle(len, &slices(&row), &exponents);
            assert!(p.is(&after_p) && q.is(&after_q), "delta: {what}");
        }
    }
}

#[test]
fn targets_may_be_sources_exactly() {
    let mut random = Random(6);
    for kernels in all_kernels() {
        for len in [0, 1, 31, 32, 63, 64, 127, 128, 200, 513, 1100] {
            in_place(&kernels, &mut random, len);
        }
    }
}

fn in_place(kernels: &Kernels, random: &mut Random, len: usize) {
    let blocks: Vec<Vec<u8>> = (0..4).map(|_| random.bytes(len)).collect();
    let exponents = [9, 0, 254, 40];
    let (p, q) = oracle(len, &slices(&blocks), &exponents);

    // P and Q take the places of two data.
    let mut memory = blocks.clone();
    let at: Vec<*mut u8> = memory.iter_mut().map(|b| b.as_mut_ptr()).collect();
    let data: Vec<Block> = at
        .iter()
        .zip(exponents)
        .map(|(start, exponent)| Block { start: *start, exponent })
        .collect();
    // SAFETY: `len` bytes each; targets are two of the sources exactly.
    unsafe { kernels.pq_raw(Some(at[1]), Some(at[3]), &data, len) };
    assert!(memory[1] == p && memory[3] == q && memory[0] == blocks[0], "{kernels:?}: {len}");

    // The two lost ones come back into the places of P and Q.
    let (targets, lost) = ([at[1], at[3]], [exponents[1], exponents[3]]);
    let lost = Lost::Two { targets, exponents: lost, p: at[1], q: at[3] };
    // SAFETY: as above.
    unsafe { kernels.recover_raw(lost, &[data[0], data[2]], len) };
    assert!(memory == blocks, "{kernels:?}: {len}");

    // So does one, with the parity that is lost too in the place of that which is not.
    let (mut found, mut parity) = (vec![0; len], q.clone());
    let (target, other) = (found.as_mut_ptr(), parity.as_mut_ptr());
    let lost = Lost::WithP { target, exponent: exponents[3], p: other, q: other };
    // SAFETY: as above.
    unsafe { kernels.recover_raw(lost, &data[..3], len) };
    assert!(found == blocks[3] && parity == p, "{kernels:?}: {len}");
    let lost = Lost::WithQ { target, exponent: exponents[3], p: other, q: other };
    // SAFETY: as above.
    unsafe { kernels.recover_raw(lost, &data[..3], len) };
    assert!(found == blocks[3] && parity == q, "{kernels:?}: {len}");

    // A change whose old contents are P itself: P + P + new.
    let (new, mut p) = (random.bytes(len), p);
    let target = p.as_mut_ptr();
    let change = Change { old: target, new: new.as_ptr(), exponent: 254 };
    // SAFETY: as above.
    unsafe { kernels.delta_raw(Some(target), None, &[change], len) };
    assert!(p == new, "{kernels:?}: {len}");
}
