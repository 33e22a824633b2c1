//! Bytes that are a function of a seed and a place.

use crate::random::{SplitMix64, mix};

/// Fills `into` with the bytes of `seed` from byte `at` of a file on; any piece of a file is the same
/// whatever pieces it is made in. Practically incompressible.
pub fn fill(seed: u64, at: u64, into: &mut [u8]) {
    let mut done = 0;
    while done < into.len() {
        let place = at + done as u64;
        let word = word(seed, place / 8).to_le_bytes();
        let from = (place % 8) as usize;
        let len = (8 - from).min(into.len() - done);
        into[done..done + len].copy_from_slice(&word[from..from + len]);
        done += len;
    }
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
