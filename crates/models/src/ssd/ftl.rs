//! Where an SSD's data lie in its blocks, by a sample: what garbage collection has to copy.
//!
//! Of all 4 KiB pages of the drive one in some thousands is followed, the same one in every equal
//! part of the address space. Each goes through a flash translation layer in small: appended to the
//! open block, invalidated when overwritten, copied when its block is the one with the fewest valid
//! pages and room is needed (greedy collection, as most firmware does it). A pattern of writes meets the
//! sample as it meets all pages, so the share of valid pages in collected blocks is that of the whole
//! drive, without a map of every page.
//!
//! Under random writes the amplification comes out as the known formula says (Menon and Robinson 1992;
//! Desnoyers, *Analytic modeling of SSD write performance*, SYSTOR 2012): 1/(1-x), where x, the share
//! of valid pages in a collected block, solves (x - 1)/ln x = capacity/flash. Test:
//! `random_writes_amplify_as_the_formula_says`.

use raidlab_core::units::Sectors;

use raidlab_random::SplitMix64;

/// Pages in the sample.
const SAMPLE: u64 = 1 << 17;
/// Sampled pages of a block.
const BLOCK: usize = 128;
/// Sectors of a page of the sample: 4 KiB.
const PAGE: u64 = 8;
/// Blocks over which the share of valid pages is averaged, exponentially.
const MEMORY: u64 = 64;

const NOWHERE: u32 = u32::MAX;

/// A block that is being filled, and how far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Open {
    block: usize,
    filled: usize,
}

/// The sample. `Clone` is some hundred KiB of copying.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Ftl {
    /// Sectors that a sampled page stands for.
    part: u64,
    /// Where each sampled page lies: a slot, or [`NOWHERE`].
    place: Vec<u32>,
    /// The page that was written to each slot.
    holds: Vec<u32>,
    /// Valid pages of each block.
    valid: Vec<u16>,
    /// The block that the host's writes fill, and the one that copies do.
    host: Open,
    copies: Open,
    free: Vec<u32>,
    /// Valid pages of collected blocks, averaged; 16 fractional bits.
    collected: u64,
    /// Pages written by the host and copied, for tests.
    written: u64,
    copied: u64,
}

impl Ftl {
    /// Flash that holds no data.
    fn empty(capacity: Sectors, flash: Sectors) -> Self {
        let part = capacity.0.div_ceil(SAMPLE);
        let pages = capacity.0.div_ceil(part) as usize;
        let slots = (u128::from(flash.0) * pages as u128 / u128::from(capacity.0)) as usize;
        let blocks = (slots / BLOCK).max(pages.div_ceil(BLOCK) + 5);
        Self {
            part,
            place: vec![NOWHERE; pages],
            holds: vec![NOWHERE; blocks * BLOCK],
            valid: vec![0; blocks],
            host: Open { block: 0, filled: 0 },
            copies: Open { block: 1, filled: 0 },
            free: (2..blocks as u32).rev().collect(),
            collected: 0,
            written: 0,
            copied: 0,
        }
    }

    /// Filled to `live` percent and rewritten at random three times over: the steady state.
    pub(super) fn aged(capacity: Sectors, flash: Sectors, live: u32) -> Self {
        let mut ftl = Self::empty(capacity, flash);
        let mut random = SplitMix64::new(0x5eed);
        let pages = ftl.place.len() as u64;
        let mut order: Vec<u32> = (0..pages as u32).collect();
        random.shuffle(&mut order);
        order.truncate((pages * u64::from(live) / 100) as usize);
        for page in &order {
            ftl.write_page(*page);
        }
        for _ in 0..3 * order.len() {
            let page = order[random.below(order.len() as u64) as usize];
            ftl.write_page(page);
        }
        (ftl.written, ftl.copied) = (0, 0);
        ftl
    }

    /// The host writes sectors.
    pub(super) fn write(&mut self, start: u64, len: u64) {
        let end = start + len;
        let mut page = start / self.part;
        while page * self.part < end && (page as usize) < self.place.len() {
            // The followed page lies at another place in every part, so that no stride misses them all.
            let room = (self.part / PAGE).max(1);
            let at = page * self.part + page.wrapping_mul(0x9e37_79b9_7f4a_7c15) % room * PAGE;
            if (start..end).contains(&at) {
                self.write_page(page as u32);
            }
            page += 1;
        }
    }

    /// Pages that are copied for each page written, with 16 fractional bits.
    pub(super) fn copies(&self) -> u64 {
        (self.collected << 16) / (((BLOCK as u64) << 16) - self.collected).max(1)
    }

    fn write_page(&mut self, page: u32) {
        self.written += 1;
        let old = self.place[page as usize];
        if old != NOWHERE {
            self.valid[old as usize / BLOCK] -= 1;
            self.place[page as usize] = NOWHERE;
        }
        if self.host.filled == BLOCK {
            while self.free.len() < 2 {
                self.collect();
            }
            self.host = self.open();
        }
        self.put(page, self.host);
        self.host.filled += 1;
    }

    fn open(&mut self) -> Open {
        // Collecting takes at most one block and gives one back, and begins while there is one.
        Open { block: self.free.pop().unwrap_or_default() as usize, filled: 0 }
    }

    fn put(&mut self, page: u32, open: Open) {
        let slot = open.block * BLOCK + open.filled;
        self.holds[slot] = page;
        self.place[page as usize] = slot as u32;
        self.valid[open.block] += 1;
    }

    /// Copies what is valid in the block that has least of it, which frees the block.
    fn collect(&mut self) {
        let open = [self.host.block, self.copies.block];
        let full = self.valid.iter().enumerate();
        // Free blocks have no valid pages; there is one at most.
        let full = full.filter(|(block, _)| {
            !open.contains(block) && self.free.first() != Some(&(*block as u32))
        });
        let Some((victim, valid)) = full.min_by_key(|(_, valid)| **valid) else { return };
        let valid = u64::from(*valid);
        self.collected = (self.collected * (MEMORY - 1) + (valid << 16)) / MEMORY;
        self.copied += valid;
        for slot in victim * BLOCK..(victim + 1) * BLOCK {
            let page = self.holds[slot];
            if self.place[page as usize] == slot as u32 {
                if self.copies.filled == BLOCK {
                    self.copies = self.open();
                }
                self.put(page, self.copies);
                self.copies.filled += 1;
            }
        }
        self.valid[victim] = 0;
        self.free.push(victim as u32);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Copies a page by the formula of the module, by bisection.
    fn formula(used: f64) -> f64 {
        let (mut low, mut high) = (1e-9, 1.0 - 1e-9);
        for _ in 0..200 {
            let x = f64::midpoint(low, high);
            if (x - 1.0) / x.ln() < used { low = x } else { high = x }
        }
        low / (1.0 - low)
    }

    const GIB: u64 = 2 << 20;

    #[test]
    fn random_writes_amplify_as_the_formula_says() {
        for (flash, live) in [(107, 100), (115, 100), (128, 100), (110, 60), (150, 100)] {
            let capacity = Sectors(100 * GIB);
            let mut ftl = Ftl::aged(capacity, Sectors(flash * GIB), live);
            let used = f64::from(live) / flash as f64;
            let mut random = SplitMix64::new(4);
            let (live_parts, part) = (ftl.place.clone(), ftl.part);
            for _ in 0..100_000 {
                let page = random.below(live_parts.len() as u64);
                if live_parts[page as usize] != NOWHERE {
                    ftl.write(page * part, part);
                }
            }
            let expected = formula(used);
            let got = ftl.copied as f64 / ftl.written as f64;
            println!("{flash} GiB, {live} %: {got:.3}, by formula {expected:.3}");
            assert!((got / expected - 1.0).abs() < 0.04, "{got} against {expected}");
            let now = ftl.copies() as f64 / 65_536.0;
            assert!((now / got - 1.0).abs() < 0.08, "averaged {now}, counted {got}");
        }
    }

    #[test]
    fn the_sample_meets_random_and_sequential_writes_alike() {
        let mut ftl = Ftl::aged(Sectors(GIB * 100), Sectors(GIB * 110), 100);
        for at in (0..GIB * 100).step_by(256) {
            ftl.write(at, 256);
        }
        assert_eq!(ftl.written, ftl.place.len() as u64, "one pass writes every page once");
        ftl.written = 0;
        let mut random = SplitMix64::new(1);
        let (count, len) = (2_000_000, 8);
        for _ in 0..count {
            ftl.write(random.below(GIB * 100 / len) * len, len);
        }
        let expected = (count * len / ftl.part) as f64;
        assert!((ftl.written as f64 / expected - 1.0).abs() < 0.03, "{} {expected}", ftl.written);
    }

    #[test]
    fn passes_in_order_copy_nothing_in_the_end() {
        let mut ftl = Ftl::aged(Sectors(GIB * 100), Sectors(GIB * 110), 100);
        for _ in 0..3 {
            ftl.write(0, GIB * 100);
        }
        let before = ftl.copied;
        ftl.write(0, GIB * 100);
        assert_eq!(ftl.copied, before);
        assert_eq!(ftl.copies() >> 8, 0);
    }

    #[test]
    fn every_page_is_in_one_place() {
        let mut ftl = Ftl::aged(Sectors(GIB), Sectors(GIB + GIB / 50), 100);
        let mut random = SplitMix64::new(3);
        for _ in 0..50_000 {
            ftl.write(random.below(GIB), 1 + random.below(200));
        }
        let valid: usize = ftl.valid.iter().map(|valid| usize::from(*valid)).sum();
        assert_eq!(valid, ftl.place.len());
        for (page, slot) in ftl.place.iter().enumerate() {
            assert_eq!(ftl.holds[*slot as usize] as usize, page);
        }
    }
}
