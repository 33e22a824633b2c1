//! A device of which some sectors are other than they were, and records that are sealed again after that.

use std::collections::{BTreeMap, BTreeSet};

use raidlab_core::{SECTOR_BYTES, Sector, Sectors};
use raidlab_metadata::{Checksum, Source, Unreadable};

pub(crate) const SECTOR: usize = SECTOR_BYTES as usize;
/// How records begin.
const NAME: &[u8] = b"raidlab\x02";
/// Where the checksum of a record lies, and where its words begin.
const CHECKSUM: std::ops::Range<usize> = 8..12;
const WORDS: usize = 56;

/// What a device holds, with changes. Beyond `sectors` it was cut off.
#[derive(Clone, Debug)]
pub(crate) struct Device<'a> {
    pub(crate) image: &'a [u8],
    pub(crate) sectors: u64,
    pub(crate) block: u32,
    pub(crate) changed: BTreeMap<u64, Vec<u8>>,
    pub(crate) unreadable: BTreeSet<u64>,
}

impl<'a> Device<'a> {
    pub(crate) fn new(image: &'a [u8]) -> Self {
        let sectors = (image.len() / SECTOR) as u64;
        let (changed, unreadable) = (BTreeMap::new(), BTreeSet::new());
        Self { image, sectors, block: 1, changed, unreadable }
    }

    /// A sector that there is.
    pub(crate) fn sector(&self, at: u64) -> &[u8] {
        let unchanged = || &self.image[at as usize * SECTOR..][..SECTOR];
        self.changed.get(&at).map(Vec::as_slice).unwrap_or_else(unchanged)
    }

    /// The same to be changed.
    pub(crate) fn sector_mut(&mut self, at: u64) -> &mut [u8] {
        let image = self.image;
        self.changed.entry(at).or_insert_with(|| image[at as usize * SECTOR..][..SECTOR].to_vec())
    }

    /// Puts bytes down, as far as there is room.
    pub(crate) fn write(&mut self, at: u64, bytes: &[u8]) {
        for (at, bytes) in (at..self.sectors).zip(bytes.chunks(SECTOR)) {
            self.sector_mut(at)[..bytes.len()].copy_from_slice(bytes);
        }
    }

    /// All that it holds.
    pub(crate) fn whole(&self) -> Vec<u8> {
        let mut bytes = self.image[..self.sectors as usize * SECTOR].to_vec();
        for (at, changed) in self.changed.range(..self.sectors) {
            bytes[*at as usize * SECTOR..][..SECTOR].copy_from_slice(changed);
        }
        bytes
    }
}

impl Source for Device<'_> {
    fn sectors(&self) -> Sectors {
        Sectors(self.sectors)
    }

    fn logical_block(&self) -> u32 {
        self.block
    }

    fn read(&mut self, at: Sector, into: &mut [u8]) -> Result<(), Unreadable> {
        let (block, len) = (u64::from(self.block), (into.len() / SECTOR) as u64);
        assert!(at.0.is_multiple_of(block) && len.is_multiple_of(block), "{at:?}, {len} sectors");
        let end = at.0 + len;
        if end > self.sectors || self.unreadable.range(at.0..end).next().is_some() {
            return Err(Unreadable);
        }
        into.copy_from_slice(&self.image[at.0 as usize * SECTOR..][..into.len()]);
        for (changed, bytes) in self.changed.range(at.0..end) {
            into[(changed - at.0) as usize * SECTOR..][..SECTOR].copy_from_slice(bytes);
        }
        Ok(())
    }
}

/// Whether a sector begins as records do.
pub(crate) fn is_record(sector: &[u8]) -> bool {
    sector.starts_with(NAME)
}

/// Puts the checksum right.
pub(crate) fn seal(record: &mut [u8]) {
    record[CHECKSUM].fill(0);
    let mut sum = Checksum::default();
    sum.add(&record[..SECTOR]);
    record[CHECKSUM].copy_from_slice(&sum.value().to_le_bytes());
}

/// Puts bytes into a record where its words begin, and seals it.
pub(crate) fn forge(record: &mut [u8], at: usize, bytes: &[u8]) {
    let from = (WORDS + at).min(SECTOR);
    let len = bytes.len().min(SECTOR - from);
    record[from..from + len].copy_from_slice(&bytes[..len]);
    seal(record);
}

/// A word of a record.
pub(crate) fn word(record: &[u8], word: usize) -> u64 {
    record[WORDS + 8 * word..].first_chunk().map_or(0, |word| u64::from_le_bytes(*word))
}
