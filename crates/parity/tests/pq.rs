//! P and Q by every path equal the scalar oracle byte for byte, touch nothing beside their targets,
//! and every loss of one or two data blocks comes back.

mod common;

use common::{GUARD, ROOM, Random};
use raidlab_parity::{
    Block, Change, Lost, delta, delta_raw, pq, pq_raw, recover_by_p, recover_by_q, recover_raw,
    recover_two, scalar,
};

/// A guarded buffer with `len` bytes of `contents` at an alignment of 64 bytes plus `align`.
struct Guarded {
    memory: Vec<u8>,
    start: usize,
    len: usize,
}

impl Guarded {
    fn new(align: usize, contents: &[u8]) -> Self {
        let mut memory = vec![GUARD; ROOM];
        let start = memory.as_ptr().align_offset(64) + align;
        memory[start..start + contents.len()].copy_from_slice(contents);
        Self { memory, start, len: contents.len() }
    }

    fn bytes(&mut self) -> &mut [u8] {
        &mut self.memory[self.start..self.start + self.len]
    }

    fn is(&self, expected: &[u8]) -> bool {
        let (before, rest) = self.memory.split_at(self.start);
        let (bytes, after) = rest.split_at(self.len);
        bytes == expected && before.iter().chain(after).all(|byte| *byte == GUARD)
    }
}

fn oracle(len: usize, blocks: &[Vec<u8>], exponents: &[u8]) -> (Vec<u8>, Vec<u8>) {
    let (mut p, mut q) = (vec![0; len], vec![0; len]);
    let pairs: Vec<(&[u8], u8)> =
        blocks.iter().map(Vec::as_slice).zip(exponents.iter().copied()).collect();
    scalar::pq(&mut p, &mut q, &pairs);
    (p, q)
}

fn slices(blocks: &[Vec<u8>]) -> Vec<&[u8]> {
    blocks.iter().map(Vec::as_slice).collect()
}

/// Computes, changes and recovers over one random row, all results compared with the oracle.
fn check(random: &mut Random, len: usize, count: usize, align: usize) {
    let what = format!("{len} bytes, {count} blocks at {align}");
    let exponents = random.exponents(count);
    let aligned: Vec<Guarded> = (0..count)
        .map(|_| {
            let shift = if random.next() & 1 == 0 { align } else { random.below(64) };
            let contents = random.bytes(len);
            Guarded::new(shift, &contents)
        })
        .collect();
    let data: Vec<&[u8]> = aligned.iter().map(|g| &g.memory[g.start..g.start + len]).collect();
    let (expected_p, expected_q) =
        oracle(len, &data.iter().map(|d| d.to_vec()).collect::<Vec<_>>(), &exponents);
    let (mut p, mut q) =
        (Guarded::new(align, &vec![1; len]), Guarded::new(63 - align, &vec![2; len]));
    pq(Some(p.bytes()), Some(q.bytes()), &data, &exponents).unwrap();
    assert!(p.is(&expected_p) && q.is(&expected_q), "both: {what}");
    let (mut only_p, mut only_q) =
        (Guarded::new(align, &vec![1; len]), Guarded::new(align, &vec![2; len]));
    pq(Some(only_p.bytes()), None, &data, &exponents).unwrap();
    pq(None, Some(only_q.bytes()), &data, &exponents).unwrap();
    assert!(only_p.is(&expected_p) && only_q.is(&expected_q), "one: {what}");

    // Some of the data change.
    let changed = 1 + random.below(count);
    let new: Vec<Vec<u8>> = (0..changed).map(|_| random.bytes(len)).collect();
    let mut after: Vec<Vec<u8>> = data.iter().map(|d| d.to_vec()).collect();
    after[..changed].clone_from_slice(&new);
    let (after_p, after_q) = oracle(len, &after, &exponents);
    let (old, new, which) = (&data[..changed], slices(&new), &exponents[..changed]);
    delta(Some(p.bytes()), Some(q.bytes()), old, &new, which).unwrap();
    delta(Some(only_p.bytes()), None, old, &new, which).unwrap();
    delta(None, Some(only_q.bytes()), old, &new, which).unwrap();
    assert!(p.is(&after_p) && q.is(&after_q), "delta: {what}");
    assert!(only_p.is(&after_p) && only_q.is(&after_q), "delta of one: {what}");

    // The last block is lost, by P and by Q; then the last and a random one.
    let last = count - 1;
    let rest = slices(&after[..last]);
    let mut target = Guarded::new(align, &vec![3; len]);
    recover_by_p(target.bytes(), &after_p, &rest).unwrap();
    assert!(target.is(&after[last]), "by P: {what}");
    let mut target = Guarded::new(align, &vec![3; len]);
    recover_by_q(target.bytes(), exponents[last], &after_q, &rest, &exponents[..last]).unwrap();
    assert!(target.is(&after[last]), "by Q: {what}");
    let other = random.below(last);
    let mut rest = rest;
    rest.remove(other);
    let mut known = exponents[..last].to_vec();
    known.remove(other);
    let (mut x, mut y) =
        (Guarded::new(align, &vec![3; len]), Guarded::new(63 - align, &vec![4; len]));
    let lost = [exponents[last], exponents[other]];
    recover_two([x.bytes(), y.bytes()], lost, &after_p, &after_q, &rest, &known).unwrap();
    assert!(x.is(&after[last]) && y.is(&after[other]), "two: {what}");
    for at in (0..len).step_by(61) {
        let data: Vec<(u8, u8)> = rest.iter().map(|b| b[at]).zip(known.iter().copied()).collect();
        let found = scalar::recover_two(lost, after_p[at], after_q[at], &data);
        assert_eq!(found, Some([after[last][at], after[other][at]]), "the oracle: {what}");
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
fn lengths_up_to_4096() {
    let mut random = Random(2);
    for len in (0..=4096).step_by(97).chain([4095, 4096]) {
        let (count, align) = (2 + random.below(7), random.below(64));
        check(&mut random, len, count, align);
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

/// Exponent patterns for `count` data: consecutive, shuffled, with holes where P and Q would stand.
fn patterns(random: &mut Random, count: usize) -> Vec<Vec<u8>> {
    let consecutive: Vec<u8> = (0..count as u8).collect();
    let mut shuffled = consecutive.clone();
    for at in 0..count {
        shuffled.swap(at, at + random.below(count - at));
    }
    let hole = random.below(count + 1) as u8;
    let holes = (0..count as u8 + 2).filter(|e| *e != hole && *e != hole + 1).collect();
    vec![consecutive, shuffled, holes, random.exponents(count)]
}

/// Loses the members `a` and `b` of a row: below `count` data, then P, then Q. Everything that is lost
/// must come back.
fn lose(row: &[Vec<u8>], exponents: &[u8], a: usize, b: usize) {
    let count = exponents.len();
    let len = row[0].len();
    let lost_data: Vec<usize> = (0..count).filter(|i| [a, b].contains(i)).collect();
    let (has_p, has_q) = (![a, b].contains(&count), ![a, b].contains(&(count + 1)));
    let known: Vec<usize> = (0..count).filter(|i| !lost_data.contains(i)).collect();
    let rest: Vec<&[u8]> = known.iter().map(|i| row[*i].as_slice()).collect();
    let rest_exponents: Vec<u8> = known.iter().map(|i| exponents[*i]).collect();
    let mut found = row.to_vec();
    for i in [a, b] {
        found[i] = vec![0xee; len];
    }
    match lost_data[..] {
        [] => {}
        [x] if has_p => recover_by_p(&mut found[x], &row[count], &rest).unwrap(),
        [x] => {
            assert!(has_q);
            let q = &row[count + 1];
            recover_by_q(&mut found[x], exponents[x], q, &rest, &rest_exponents).unwrap();
        }
        [x, y] => {
            let (low, high) = found.split_at_mut(y);
            let lost = [exponents[x], exponents[y]];
            let (p, q) = (&row[count], &row[count + 1]);
            recover_two([&mut low[x], &mut high[0]], lost, p, q, &rest, &rest_exponents).unwrap();
        }
        _ => unreachable!(),
    }
    let (data, parity) = found.split_at_mut(count);
    let (p, q) = parity.split_at_mut(1);
    let (p, q) = ((!has_p).then_some(&mut p[0][..]), (!has_q).then_some(&mut q[0][..]));
    pq(p, q, &slices(data), exponents).unwrap();
    assert!(found == row, "{exponents:?} without {a} and {b}");
}

#[test]
fn every_single_and_double_loss_of_4_to_20_members() {
    let mut random = Random(4);
    for members in 4..=20 {
        let count = members - 2;
        for exponents in patterns(&mut random, count) {
            let mut row: Vec<Vec<u8>> = (0..count).map(|_| random.bytes(200)).collect();
            let (p, q) = oracle(200, &row, &exponents);
            row.extend([p, q]);
            for a in 0..members {
                for b in a..members {
                    lose(&row, &exponents, a, b);
                }
            }
        }
    }
}

#[test]
fn all_255_blocks_at_once() {
    let mut random = Random(5);
    let exponents: Vec<u8> = (0..255).collect();
    let blocks: Vec<Vec<u8>> = exponents.iter().map(|_| random.bytes(77)).collect();
    let (expected_p, expected_q) = oracle(77, &blocks, &exponents);
    let (mut p, mut q) = (vec![0; 77], vec![0; 77]);
    pq(Some(&mut p), Some(&mut q), &slices(&blocks), &exponents).unwrap();
    assert!(p == expected_p && q == expected_q);
}

#[test]
fn targets_may_be_sources_exactly() {
    let mut random = Random(6);
    for len in [0, 1, 31, 32, 127, 128, 200, 513] {
        let blocks: Vec<Vec<u8>> = (0..4).map(|_| random.bytes(len)).collect();
        let exponents = [9, 0, 254, 40];
        let (p, q) = oracle(len, &blocks, &exponents);

        // P and Q take the places of two data.
        let mut memory = blocks.clone();
        let at: Vec<*mut u8> = memory.iter_mut().map(|b| b.as_mut_ptr()).collect();
        let data: Vec<Block> = at
            .iter()
            .zip(exponents)
            .map(|(start, exponent)| Block { start: *start, exponent })
            .collect();
        // SAFETY: `len` bytes each; targets are two of the sources exactly.
        unsafe { pq_raw(Some(at[1]), Some(at[3]), &data, len) };
        assert!(memory[1] == p && memory[3] == q && memory[0] == blocks[0]);

        // The two lost ones come back into the places of P and Q.
        let (targets, lost) = ([at[1], at[3]], [exponents[1], exponents[3]]);
        let lost = Lost::Two { targets, exponents: lost, p: at[1], q: at[3] };
        // SAFETY: as above.
        unsafe { recover_raw(lost, &[data[0], data[2]], len) };
        assert!(memory == blocks, "{len}");

        // A change whose old contents are P itself: P + P + new.
        let (new, mut p) = (random.bytes(len), p);
        let target = p.as_mut_ptr();
        let change = Change { old: target, new: new.as_ptr(), exponent: 254 };
        // SAFETY: as above.
        unsafe { delta_raw(Some(target), None, &[change], len) };
        assert!(p == new, "{len}");
    }
}
