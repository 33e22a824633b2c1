//! Random numbers as the original draws them: 31 bits, taken modulo what is wanted.

use raidlab_random::{Random, mix};

/// A source of numbers from 0 to 2^31 - 1.
#[derive(Clone, Debug)]
pub(super) struct Draws {
    random: Random,
}

impl Draws {
    /// Of the main process of a copy.
    pub(super) fn of_main(seed: u64, copy: u32) -> Self {
        Self { random: Random::new(mix(&[seed, u64::from(copy)])) }
    }

    /// Of a seeking process of a copy; `seeker` from 0.
    pub(super) fn of_seeker(seed: u64, copy: u32, seeker: u32) -> Self {
        Self { random: Random::new(mix(&[seed, u64::from(copy), u64::from(seeker)])) }
    }

    /// The next number.
    pub(super) const fn number(&mut self) -> u32 {
        (self.random.next_u64() >> 33) as u32
    }

    /// The next number modulo `bound`, as uneven as the original has it; 0 when `bound` is 0.
    pub(super) const fn below(&mut self, bound: u64) -> u64 {
        match (self.number() as u64).checked_rem(bound) {
            Some(number) => number,
            None => 0,
        }
    }
}

/// The first numbers that a copy draws from a seed, as a file for the option `-Z` of bonnie++ 2.00 (four
/// bytes each, most significant first): with it the original seeks to the same places and gives small
/// files the same names and lengths. It starts over at the end of the file, so make it long enough.
pub fn random_file(seed: u64, copy: u32, numbers: usize) -> Vec<u8> {
    let mut draws = Draws::of_main(seed, copy);
    (0..numbers).flat_map(|_| draws.number().to_be_bytes()).collect()
}
