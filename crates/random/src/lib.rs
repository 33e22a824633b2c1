//! Seeded random numbers that are the same on every machine.
//!
//! The generator is xoshiro256++ 1.0 and its state is filled by SplitMix64, as its authors advise:
//! D. Blackman and S. Vigna, "Scrambled linear pseudorandom number generators", ACM Transactions
//! on Mathematical Software 47 (2021), 36; SplitMix64: G. L. Steele, D. Lea and C. H. Flood, "Fast
//! splittable pseudorandom number generators", OOPSLA 2014. Written from those definitions.
//! Draws below a bound are unbiased: D. Lemire, "Fast random integer generation in an interval",
//! ACM Transactions on Modeling and Computer Simulation 29 (2019), 3.
//!
//! No seed comes from the environment: the caller names it. [`Random`] is for many draws, [`SplitMix64`] for a few, and
//! [`mix`] makes the seed of each part from the numbers that identify it. Not for secrets.
//!
//! ```
//! use raidlab_random::{Random, mix};
//!
//! // The seed of the second run of cell 5 in a study with seed 1.
//! let seed = mix(&[1, 5, 2]);
//! let (mut random, mut again) = (Random::new(seed), Random::new(seed));
//! let mut places = [10, 20, 30, 40];
//! random.shuffle(&mut places);
//! assert!(random.below(6) < 6);
//!
//! let mut same = [10, 20, 30, 40];
//! again.shuffle(&mut same);
//! assert_eq!(places, same, "one seed, one order");
//! assert_ne!(seed, mix(&[1, 2, 5]), "the order of what is mixed matters");
//! ```
#![forbid(unsafe_code)]

/// The finaliser of SplitMix64: a bijection in which every bit depends on every bit.
#[inline]
pub const fn finish(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// SplitMix64: a generator with 64 bits of state; fills states, mixes seeds, and draws where little is drawn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SplitMix64 {
    state: u64,
}

impl SplitMix64 {
    /// From any seed.
    #[inline]
    pub const fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    /// The next 64 random bits.
    #[inline]
    pub const fn next_u64(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        finish(self.state)
    }

    /// A whole number from 0 to `bound - 1`, each equally likely; 0 when `bound` is 0.
    #[inline]
    pub fn below(&mut self, bound: u64) -> u64 {
        below(bound, || self.next_u64())
    }

    /// Brings the items into a random order, each order equally likely.
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        shuffle(items, |bound| self.below(bound));
    }

    /// True `percent` times of a hundred.
    #[inline]
    pub fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }
}

/// A whole number from 0 to `bound - 1` out of as many draws as it takes, mostly one.
#[inline]
fn below(bound: u64, mut next: impl FnMut() -> u64) -> u64 {
    if bound == 0 {
        return 0;
    }
    let mut product = u128::from(next()) * u128::from(bound);
    if (product as u64) < bound {
        // 2^64 mod bound: how many of the low halves would favour small results.
        let surplus = bound.wrapping_neg() % bound;
        while (product as u64) < surplus {
            product = u128::from(next()) * u128::from(bound);
        }
    }
    (product >> 64) as u64
}

/// Fisher and Yates: from the last item on, each changes places with one of those up to it.
fn shuffle<T>(items: &mut [T], mut below: impl FnMut(u64) -> u64) {
    for last in (1..items.len()).rev() {
        items.swap(last, below(last as u64 + 1) as usize);
    }
}

/// One seed out of several numbers; the order of the numbers matters, and so does their count.
///
/// Each step is a bijection of the number mixed in, so lists that differ in exactly one place
/// never give the same seed.
pub fn mix(parts: &[u64]) -> u64 {
    mix_all(parts.iter().copied(), parts.len())
}

/// [`mix`] of `count` numbers that come one by one.
pub fn mix_all(parts: impl Iterator<Item = u64>, count: usize) -> u64 {
    let start = SplitMix64::new(count as u64).next_u64();
    parts.fold(start, |seed, part| SplitMix64::new(seed ^ part).next_u64())
}

/// xoshiro256++ 1.0.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Random {
    state: [u64; 4],
}

impl Random {
    /// From any seed; the state is filled by SplitMix64 and so never all zeroes.
    pub const fn new(seed: u64) -> Self {
        let mut fill = SplitMix64::new(seed);
        Self { state: [fill.next_u64(), fill.next_u64(), fill.next_u64(), fill.next_u64()] }
    }

    /// The next 64 random bits.
    #[inline]
    pub const fn next_u64(&mut self) -> u64 {
        let [s0, s1, s2, s3] = self.state;
        let result = s0.wrapping_add(s3).rotate_left(23).wrapping_add(s0);
        let (s2, s3) = (s2 ^ s0, s3 ^ s1);
        self.state = [s0 ^ s3, s1 ^ s2, s2 ^ (s1 << 17), s3.rotate_left(45)];
        result
    }

    /// A whole number from 0 to `bound - 1`, each equally likely; 0 when `bound` is 0.
    #[inline]
    pub fn below(&mut self, bound: u64) -> u64 {
        below(bound, || self.next_u64())
    }

    /// Brings the items into a random order, each order equally likely.
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        shuffle(items, |bound| self.below(bound));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first outputs of SplitMix64 from seed 1234567, as widely published for the algorithm.
    #[test]
    fn splitmix_gives_the_published_numbers() {
        let mut mixer = SplitMix64::new(1_234_567);
        let published = [
            6_457_827_717_110_365_317,
            3_203_168_211_198_807_973,
            9_817_491_932_198_370_423,
            4_593_380_528_125_082_431,
            16_408_922_859_458_223_821,
        ];
        assert_eq!(std::array::from_fn(|_| mixer.next_u64()), published);
    }

    /// Worked by hand from the definition for the state 1, 2, 3, 4: the first result is
    /// rotl(1 + 4, 23) + 1, and the second follows from the state after one step.
    #[test]
    fn xoshiro_follows_its_definition() {
        let mut random = Random { state: [1, 2, 3, 4] };
        assert_eq!(random.next_u64(), (5 << 23) + 1);
        // s2 ^= s0 -> 2; s3 ^= s1 -> 6; s1 ^= s2 -> 0; s0 ^= s3 -> 7; s2 ^= 2 << 17; rotl(6, 45).
        assert_eq!(random.state, [7, 0, 2 ^ (2 << 17), 6 << 45]);
        assert_eq!(random.next_u64(), (7 + (6u64 << 45)).rotate_left(23) + 7);
    }

    #[test]
    fn draws_are_below_the_bound_and_even() {
        let mut random = Random::new(3);
        let mut counts = [0u32; 6];
        for _ in 0..60_000 {
            counts[random.below(6) as usize] += 1;
        }
        // Six standard deviations of a binomial count: sqrt(60,000 x 1/6 x 5/6) = 91.
        assert!(counts.iter().all(|count| count.abs_diff(10_000) < 6 * 92), "{counts:?}");
        assert_eq!((random.below(0), random.below(1)), (0, 0));
        // Of 3 x 2^62 results, a draw without rejection would give each third one twice as often.
        let thirds = (0..10_000).filter(|_| random.below(3 << 62).is_multiple_of(3)).count();
        assert!(thirds.abs_diff(3_333) < 6 * 48, "{thirds}");
    }

    #[test]
    fn mixed_seeds_differ() {
        let seeds = [mix(&[1, 0, 0]), mix(&[1, 0, 1]), mix(&[1, 1, 0]), mix(&[0, 1, 0]), mix(&[1])];
        for (index, seed) in seeds.iter().enumerate() {
            assert!(!seeds[..index].contains(seed), "{seeds:?}");
        }
    }

    #[test]
    fn shuffling_reaches_every_order_evenly() {
        let mut counts = std::collections::BTreeMap::new();
        let mut random = Random::new(11);
        for _ in 0..6_000 {
            let mut items = [0, 1, 2];
            random.shuffle(&mut items);
            *counts.entry(items).or_insert(0u32) += 1;
        }
        assert_eq!(counts.len(), 6);
        assert!(counts.values().all(|count| count.abs_diff(1_000) < 6 * 29), "{counts:?}");
    }
}
