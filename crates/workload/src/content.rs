//! Bytes that are a function of a seed and a place.

use raidlab_random::{SplitMix64, mix};

/// Fills `into` with the bytes of `seed` from byte `at` of a file on; any piece of a file is the same
/// whatever pieces it is made in. Practically incompressible.
pub fn fill(seed: u64, at: u64, into: &mut [u8]) {
    // Whole words go without a look at lengths, which takes most of the time otherwise; what stands out at
    // either end is cut from a word.
    let head = (at.next_multiple_of(8) - at) as usize;
    let (head, rest) = into.split_at_mut(head.min(into.len()));
    let from = (at % 8) as usize;
    head.copy_from_slice(&word(seed, at / 8).to_le_bytes()[from..from + head.len()]);
    let first = at.div_ceil(8);
    let (words, tail) = rest.as_chunks_mut::<8>();
    let after = first + words.len() as u64;
    for (index, bytes) in (first..after).zip(words) {
        *bytes = word(seed, index).to_le_bytes();
    }
    tail.copy_from_slice(&word(seed, after).to_le_bytes()[..tail.len()]);
}

fn word(seed: u64, index: u64) -> u64 {
    SplitMix64::new(seed ^ index.wrapping_mul(0x9e37_79b9_7f4a_7c15)).next_u64()
}

/// The seed of file `index` of those made from `seed`.
pub fn file_seed(seed: u64, index: u64) -> u64 {
    mix(&[seed, index])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_is_that_of_its_word() {
        for (at, len) in (0..24).flat_map(|at| (0..40).map(move |len| (at, len))) {
            let mut bytes = vec![0; len];
            fill(7, at, &mut bytes);
            let wanted = (at..at + len as u64)
                .map(|place| word(7, place / 8).to_le_bytes()[(place % 8) as usize]);
            assert_eq!(bytes, wanted.collect::<Vec<u8>>(), "{len} bytes from {at} on");
        }
    }

    #[test]
    fn pieces_join() {
        let mut whole = vec![0; 100];
        fill(7, 3, &mut whole);
        for cut in 0..=100 {
            let mut parts = vec![0; 100];
            let (first, second) = parts.split_at_mut(cut);
            fill(7, 3, first);
            fill(7, 3 + cut as u64, second);
            assert_eq!(parts, whole, "cut at {cut}");
        }
        let mut other = vec![0; 100];
        fill(8, 3, &mut other);
        assert_ne!(other, whole);
    }
}
