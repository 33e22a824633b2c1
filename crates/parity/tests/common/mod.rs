//! What the tests of this crate share: room around buffers, and random draws that repeat.
#![allow(dead_code, reason = "each test uses a part")]

/// Room for any tested alignment and length, and guard bytes on both sides.
pub(crate) const ROOM: usize = 64 + 64 + 4096 + 64;
/// The byte around targets, which must survive.
pub(crate) const GUARD: u8 = 0xa5;

/// A small generator (xorshift64*), so that runs repeat exactly.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    pub(crate) fn below(&mut self, end: usize) -> usize {
        ((self.next() >> 16) % end as u64) as usize
    }

    pub(crate) fn bytes(&mut self, len: usize) -> Vec<u8> {
        (0..len).map(|_| (self.next() >> 32) as u8).collect()
    }

    /// The first `count` of all exponents in a random order.
    pub(crate) fn exponents(&mut self, count: usize) -> Vec<u8> {
        let mut all: Vec<u8> = (0..255).collect();
        for at in 0..count {
            all.swap(at, at + self.below(255 - at));
        }
        all.truncate(count);
        all
    }
}
