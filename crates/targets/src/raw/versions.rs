//! Which write was the last to each block of an array: memory for the parts of it that are written to, and little more.
//!
//! A table of two levels. The upper one has a number for each 256 KiB of the array, in memory that takes no room until
//! it is touched; the lower one a page of versions for each of these that a write was prepared for. Pages come as
//! writes are prepared, outside the timed span: within it nothing is allocated here.

use std::ops::Range;

/// Blocks in a page.
const PAGE: u64 = 64;

/// The last write of each block; 0 where there was none.
#[derive(Debug)]
pub(super) struct Versions {
    /// For each page of the array which of `pages` it is, from 1; 0 where there is none.
    places: Vec<u32>,
    pages: Vec<[u32; PAGE as usize]>,
    /// Which page of the array each of `pages` is.
    numbers: Vec<u64>,
}

impl Versions {
    /// Of so many blocks, none of them written.
    pub(super) fn new(blocks: u64) -> Self {
        let places = vec![0; blocks.div_ceil(PAGE) as usize];
        Self { places, pages: Vec::new(), numbers: Vec::new() }
    }

    /// The page of a block, and the block's place in it.
    fn page(&self, block: u64) -> Option<&[u32; PAGE as usize]> {
        let place = *self.places.get((block / PAGE) as usize)?;
        self.pages.get((place as usize).checked_sub(1)?)
    }

    /// The last write of a block.
    pub(super) fn get(&self, block: u64) -> u32 {
        self.page(block).map_or(0, |page| page[(block % PAGE) as usize])
    }

    /// Makes room for writes of these blocks.
    pub(super) fn make_room(&mut self, blocks: Range<u64>) {
        for page in blocks.start / PAGE..blocks.end.div_ceil(PAGE) {
            if let Some(place @ 0) = self.places.get_mut(page as usize) {
                self.pages.push([0; PAGE as usize]);
                self.numbers.push(page);
                // 4,294,967,295 pages are an array of a pebibyte.
                *place = self.pages.len() as u32;
            }
        }
    }

    /// A write of blocks for which there is room.
    pub(super) fn set(&mut self, blocks: Range<u64>, version: u32) {
        for (page, within) in pages(blocks) {
            let place = self.places.get(page as usize).copied().unwrap_or(0) as usize;
            let page = place.checked_sub(1).and_then(|place| self.pages.get_mut(place));
            debug_assert!(page.is_some(), "room was made as the write was prepared");
            if let Some(page) = page {
                page[within].fill(version);
            }
        }
    }

    /// Appends the last writes of these blocks.
    pub(super) fn extend(&self, into: &mut Vec<u32>, blocks: Range<u64>) {
        for (page, within) in pages(blocks) {
            match self.page(page * PAGE) {
                Some(page) => into.extend_from_slice(&page[within]),
                None => into.resize(into.len() + within.len(), 0),
            }
        }
    }

    /// The blocks that a write has reached, those of a page together.
    pub(super) fn written(&self) -> impl Iterator<Item = u64> {
        self.numbers.iter().zip(&self.pages).flat_map(|(page, versions)| {
            let versions = (page * PAGE..).zip(versions);
            versions.filter(|(_, version)| **version != 0).map(|(block, _)| block)
        })
    }
}

/// The pages of blocks, and which of each.
fn pages(blocks: Range<u64>) -> impl Iterator<Item = (u64, Range<usize>)> {
    (blocks.start / PAGE..blocks.end.div_ceil(PAGE)).map(move |page| {
        let first = page * PAGE;
        let from = blocks.start.max(first) - first;
        (page, from as usize..(blocks.end.min(first + PAGE) - first) as usize)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_set_is_found_across_pages() {
        let mut versions = Versions::new(1_000);
        for (blocks, version) in [(60..200, 7), (130..131, 8), (998..1_000, 9), (5..5, 3)] {
            versions.make_room(blocks.clone());
            versions.set(blocks, version);
        }
        let expected = |block: u64| match block {
            130 => 8,
            60..200 => 7,
            998.. => 9,
            _ => 0,
        };
        assert!((0..1_000).all(|block| versions.get(block) == expected(block)));
        let mut found = vec![1];
        versions.extend(&mut found, 3..1_000);
        assert!(found[1..].iter().copied().eq((3..1_000).map(expected)));
        let mut written: Vec<u64> = versions.written().collect();
        written.sort_unstable();
        assert!(written.into_iter().eq((0..1_000).filter(|block| expected(*block) != 0)));
        // Behind the end there is nothing.
        assert_eq!(versions.get(1_024), 0);
    }

    /// A random write takes a page, not the array's size.
    #[test]
    fn memory_is_for_what_is_written() {
        // 24 TiB.
        let blocks = 6 << 30;
        let mut versions = Versions::new(blocks);
        for n in 0..1_000 {
            let block = n * (blocks / 1_000);
            versions.make_room(block..block + 1);
            versions.make_room(block..block + 1);
            versions.set(block..block + 1, 1);
        }
        assert_eq!(versions.pages.len(), 1_000);
        assert_eq!(versions.written().count(), 1_000);
    }
}
