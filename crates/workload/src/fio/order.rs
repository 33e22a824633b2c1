//! A random order of whole numbers that needs no memory: how every block is met exactly once.
//!
//! A keyed permutation of 0 to n - 1: a balanced Feistel network of six rounds over the smallest even
//! number of bits that holds n, walked along until it comes below n. M. Luby and C. Rackoff, "How to
//! construct pseudorandom permutations from pseudorandom functions", SIAM J. Computing 17 (1988), 373;
//! the walk: J. Black and P. Rogaway, "Ciphers with arbitrary finite domains", CT-RSA 2002. fio keeps a
//! map of the blocks that were met and takes the next free one, which makes other orders.

use raidlab_random::mix;

const ROUNDS: u64 = 6;

/// An order of the numbers below `count`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Order {
    key: u64,
    count: u64,
    /// Bits of a half.
    half: u32,
}

impl Order {
    pub(super) fn new(key: u64, count: u64) -> Self {
        let bits = u64::BITS - count.saturating_sub(1).leading_zeros();
        Self { key, count, half: bits.div_ceil(2).clamp(1, 31) }
    }

    pub(super) fn count(&self) -> u64 {
        self.count
    }

    /// The number at a place of the order; `index` is below the count, which is below 2^62.
    pub(super) fn at(&self, index: u64) -> u64 {
        let mut number = self.shuffled(index);
        // The walk ends: it is on a cycle of the permutation that `index`, below the count, is on.
        while number >= self.count {
            number = self.shuffled(number);
        }
        number
    }

    fn shuffled(&self, number: u64) -> u64 {
        let mask = (1u64 << self.half) - 1;
        let (mut left, mut right) = (number >> self.half, number & mask);
        for round in 0..ROUNDS {
            let next = left ^ (mix(&[self.key, round, right]) & mask);
            (left, right) = (right, next);
        }
        left << self.half | right
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_comes_once() {
        for count in [1, 2, 3, 4, 5, 7, 16, 17, 1000, 4096, 5001] {
            for key in 0..3 {
                let order = Order::new(key, count);
                let mut all: Vec<u64> = (0..count).map(|index| order.at(index)).collect();
                let drawn = all.clone();
                all.sort_unstable();
                assert_eq!(all, (0..count).collect::<Vec<u64>>(), "{count} {key}");
                if count >= 16 {
                    assert_ne!(all, drawn);
                    assert_ne!(
                        drawn[..9],
                        (0..9).map(|i| Order::new(9, count).at(i)).collect::<Vec<_>>()
                    );
                }
            }
        }
    }

    /// Over many keys, the first number is any of them, evenly, and so is the last.
    #[test]
    fn no_place_is_preferred() {
        const KEYS: u32 = 6_000;
        for count in [3u64, 10, 64] {
            for index in [0, count - 1] {
                let mut counts = vec![0u32; count as usize];
                for key in 0..KEYS {
                    counts[Order::new(key.into(), count).at(index) as usize] += 1;
                }
                let even = KEYS / count as u32;
                // Six standard deviations of a binomial count, rounded up.
                let far = 6 * (f64::from(even).sqrt() as u32 + 1);
                assert!(counts.iter().all(|one| one.abs_diff(even) < far), "{counts:?}");
            }
        }
    }

    #[test]
    fn large_counts_are_no_problem() {
        let order = Order::new(1, (1 << 61) + 1);
        assert!((0..1000).all(|index| order.at(index) < order.count()));
    }
}
