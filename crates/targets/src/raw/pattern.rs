//! What a block holds: a function of its place on the array and of the write that put it there.
//!
//! Word i of 8 bytes (little-endian) of block b (of 4 KiB) after write v is
//! `mix(b + v * ODD) + i * STEP` modulo 2^64, with the finaliser of SplitMix64 (Steele, Lea, Flood 2014)
//! as `mix`, a bijection. So a block in a wrong place, an old block and a shifted block all differ from
//! what is expected, in every word. Write 0 is "never written": zeroes.

use raidlab_random::finish;

/// Bytes in a block, and what operations must be multiples of.
pub(super) const BLOCK: u64 = 4096;

const ODD: u64 = 0xd1b5_4a32_d192_ed03;
const STEP: u64 = 0x9e37_79b9_7f4a_7c15;
/// What buffers are filled with before a read: no word of a pattern in practice.
pub(super) const POISON: u8 = 0xb7;

/// The first word of the pattern at byte `at` of the array, a multiple of 8.
fn word_at(at: u64, version: u32) -> u64 {
    let seed = finish((at / BLOCK).wrapping_add(u64::from(version).wrapping_mul(ODD)));
    seed.wrapping_add((at % BLOCK / 8).wrapping_mul(STEP))
}

/// Fills `bytes`, which lie within one block from byte `at` of the array on; `at` and the length are
/// multiples of 8.
pub(super) fn fill(at: u64, version: u32, bytes: &mut [u8]) {
    if version == 0 {
        bytes.fill(0);
        return;
    }
    let mut word = word_at(at, version);
    for chunk in bytes.as_chunks_mut::<8>().0 {
        *chunk = word.to_le_bytes();
        word = word.wrapping_add(STEP);
    }
}

/// The position of the first byte that is not as expected; conditions as for [`fill`].
pub(super) fn first_difference(at: u64, version: u32, bytes: &[u8]) -> Option<usize> {
    let first = if version == 0 { 0 } else { word_at(at, version) };
    let step = if version == 0 { 0 } else { STEP };
    let mut word = first;
    let mut different = 0;
    for chunk in bytes.as_chunks::<8>().0 {
        different |= u64::from_le_bytes(*chunk) ^ word;
        word = word.wrapping_add(step);
    }
    if different == 0 {
        return None;
    }
    let expected =
        |i: usize| first.wrapping_add((i as u64 / 8).wrapping_mul(step)).to_le_bytes()[i % 8];
    (0..bytes.len()).find(|i| bytes[*i] != expected(*i))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_a_block_are_parts_of_its_pattern() {
        let mut whole = [0; 4096];
        fill(7 * BLOCK, 3, &mut whole);
        for part in 0..8 {
            let mut sector = [0; 512];
            fill(7 * BLOCK + part * 512, 3, &mut sector);
            assert_eq!(sector, whole[part as usize * 512..][..512]);
            assert_eq!(first_difference(7 * BLOCK + part * 512, 3, &sector), None);
        }
    }

    #[test]
    fn every_flipped_bit_and_misplaced_block_is_found() {
        let mut block = [0; 4096];
        fill(9 * BLOCK, 2, &mut block);
        for at in 0..4096 {
            block[at] ^= 1 << (at % 8);
            assert_eq!(first_difference(9 * BLOCK, 2, &block), Some(at));
            block[at] ^= 1 << (at % 8);
        }
        assert_eq!(first_difference(9 * BLOCK, 2, &block), None);
        // Among them neighbours of one write more or less.
        for (at, version) in (0..20).flat_map(|block| (0..6).map(move |v| (block * BLOCK, v))) {
            if (at, version) == (9 * BLOCK, 2) {
                continue;
            }
            assert!(first_difference(at, version, &block).is_some(), "{at} {version}");
        }
        assert!(first_difference(9 * BLOCK + 512, 2, &block[..512]).is_some());
        assert!(first_difference(9 * BLOCK, 2, &[POISON; 4096]).is_some());
        assert_eq!(first_difference(9 * BLOCK, 0, &[0; 4096]), None);
    }
}
