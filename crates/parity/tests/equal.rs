//! Every fast path equals the scalar oracle byte for byte, and touches nothing beside its target.

mod common;

use common::{GUARD, ROOM, Random, all_kernels};
use raidlab_parity::{Kernels, scalar};

fn pool(random: &mut Random) -> Vec<Vec<u8>> {
    (0..32).map(|_| (0..ROOM).map(|_| (random.next() >> 32) as u8).collect()).collect()
}

/// A 64-byte aligned start in `buffer`, so that an alignment asked for is the real one.
fn base(buffer: &[u8]) -> usize {
    buffer.as_ptr().align_offset(64)
}

fn check(random: &mut Random, pool: &[Vec<u8>], len: usize, count: usize, align: usize) {
    for kernels in all_kernels() {
        check_by(&kernels, random, pool, len, count, align);
    }
}

fn check_by(
    kernels: &Kernels,
    random: &mut Random,
    pool: &[Vec<u8>],
    len: usize,
    count: usize,
    align: usize,
) {
    let mut starts = Vec::new();
    let sources: Vec<&[u8]> = pool[..count]
        .iter()
        .map(|buffer| {
            // Half the cases share the target's alignment, half are mixed.
            let shift = if random.next() & 1 == 0 { align } else { random.below(64) };
            let start = base(buffer) + shift;
            starts.push(start);
            &buffer[start..start + len]
        })
        .collect();
    let mut memory = vec![GUARD; ROOM];
    let start = base(&memory) + align;
    let mut expected = vec![0; len];

    scalar::xor(&mut expected, &sources);
    kernels.xor(&mut memory[start..start + len], &sources).unwrap();
    assert_eq!(
        memory[start..start + len],
        expected,
        "{kernels:?}: {len} bytes, {count} sources at {align}"
    );

    // The old contents take part: x ^ x = 0.
    kernels.xor_into(&mut memory[start..start + len], &sources).unwrap();
    assert!(
        memory[start..start + len].iter().all(|b| *b == 0),
        "{kernels:?}: into, {len}, {count}, {align}"
    );
    assert!(memory[..start].iter().chain(&memory[start + len..]).all(|b| *b == GUARD));

    // In place: the target is one of the sources, at any position.
    let which = random.below(count);
    let mut memory = pool[which].clone();
    let own = base(&memory) + align;
    memory.copy_within(starts[which]..starts[which] + len, own);
    let target = memory[own..].as_mut_ptr();
    let pointers: Vec<*const u8> = sources
        .iter()
        .enumerate()
        .map(|(i, source)| if i == which { target.cast_const() } else { source.as_ptr() })
        .collect();
    // SAFETY: `len` bytes are there behind every pointer, and only the exact source overlaps.
    unsafe { kernels.xor_raw(target, &pointers, len) };
    assert_eq!(
        memory[own..own + len],
        expected,
        "{kernels:?} in place: {len} bytes, {count} sources at {align}"
    );
}

#[test]
fn short_lengths_with_every_source_count() {
    let mut random = Random(1);
    let pool = pool(&mut random);
    for len in 0..=260 {
        for count in 1..=32 {
            let align = random.below(64);
            check(&mut random, &pool, len, count, align);
        }
    }
}

#[test]
fn every_length_up_to_4096() {
    let mut random = Random(2);
    let pool = pool(&mut random);
    for len in 0..=4096 {
        let (count, align) = (1 + random.below(32), random.below(64));
        check(&mut random, &pool, len, count, align);
    }
}

#[test]
fn every_alignment() {
    let mut random = Random(3);
    let pool = pool(&mut random);
    for align in 0..64 {
        for count in [1, 2, 3, 5, 8, 17, 32] {
            let len = random.below(4097);
            check(&mut random, &pool, len, count, align);
        }
    }
}

#[test]
fn more_sources_than_are_kept_without_allocating() {
    let sources: Vec<Vec<u8>> = (0..71u8).map(|n| vec![n.wrapping_mul(37); 300]).collect();
    let sources: Vec<&[u8]> = sources.iter().map(Vec::as_slice).collect();
    for kernels in all_kernels() {
        let (mut fast, mut slow) = (vec![9u8; 300], vec![9u8; 300]);
        kernels.xor(&mut fast, &sources).unwrap();
        scalar::xor(&mut slow, &sources);
        assert_eq!(fast, slow, "{kernels:?}");
    }
}

/// Blocks on the same place of their pages are added group by group; so are those in other numbers.
#[test]
fn blocks_a_page_apart() {
    let mut random = Random(4);
    let memory = random.bytes(24 * 16384 + 4096);
    let start = memory.as_ptr().align_offset(4096);
    for len in [8191, 8192, 8193, 8192 + 1536, 12000, 16384] {
        for count in [6, 7, 8, 10, 11, 12, 13, 16, 21, 22] {
            let sources: Vec<&[u8]> =
                (0..count).map(|n| &memory[start + n * 16384..][..len]).collect();
            let mut expected = vec![0; len];
            scalar::xor(&mut expected, &sources);
            for kernels in all_kernels() {
                let mut found = vec![1; len];
                kernels.xor(&mut found, &sources).unwrap();
                assert!(found == expected, "{kernels:?}: {len} bytes, {count} sources");
            }
        }
    }
}
