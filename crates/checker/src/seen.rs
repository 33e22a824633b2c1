//! A set of hashes, for what was seen before.
//!
//! Two things with equal hashes of 64 bits are taken for one: among ten million of them that happens
//! with a chance of about 3 in a million, and then something goes unchecked; never is something
//! reported that is not there.

/// A set of 64-bit hashes, forgotten as a whole when it grows too large.
#[derive(Clone, Debug)]
pub struct Seen {
    slots: Vec<u64>,
    count: usize,
    most: usize,
}

impl Seen {
    /// Holds up to `most` hashes; one more makes it forget all.
    #[must_use]
    pub fn new(most: usize) -> Self {
        Self { slots: vec![0; 1024], count: 0, most }
    }

    /// Adds a hash; false when it was there.
    pub fn add(&mut self, hash: u64) -> bool {
        let hash = hash | 1;
        if self.count >= self.most {
            self.clear();
        }
        if self.count * 2 >= self.slots.len() {
            self.grow();
        }
        let slot = self.slot(hash);
        if self.slots[slot] == hash {
            return false;
        }
        self.slots[slot] = hash;
        self.count += 1;
        true
    }

    fn slot(&self, hash: u64) -> usize {
        let mask = self.slots.len() - 1;
        let mut slot = (hash >> 20) as usize & mask;
        while self.slots[slot] != 0 && self.slots[slot] != hash {
            slot = (slot + 1) & mask;
        }
        slot
    }

    fn grow(&mut self) {
        let larger = vec![0; self.slots.len() * 2];
        let old = std::mem::replace(&mut self.slots, larger);
        for hash in old.into_iter().filter(|hash| *hash != 0) {
            let slot = self.slot(hash);
            self.slots[slot] = hash;
        }
    }

    /// Forgets all.
    pub fn clear(&mut self) {
        self.slots.fill(0);
        self.count = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use raidlab_random::SplitMix64;

    #[test]
    fn each_hash_is_new_once() {
        let mut seen = Seen::new(1 << 20);
        let mut random = SplitMix64::new(1);
        let hashes: Vec<u64> = (0..5000).map(|_| random.next_u64() | 1).collect();
        assert!(hashes.iter().all(|hash| seen.add(*hash)));
        assert!(hashes.iter().all(|hash| !seen.add(*hash)));
        let mut small = Seen::new(10);
        assert!(hashes[..11].iter().all(|hash| small.add(*hash)));
        assert!(small.add(hashes[0]), "forgotten");
    }
}
