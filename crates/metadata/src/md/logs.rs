//! The journal of raid4, raid5 and raid6, as far as it must be known whether something stands in it: blocks of 4 KiB in
//! a ring on the log device, sealed with CRC-32C seeded with that of the array's identity.

use raidlab_core::consistency::ArrayId;

use super::fields::{put, u32_at, u64_at};

/// Bytes of a header of partial parity, and of a block of the journal.
pub(super) const BLOCK: usize = 4096;
pub(super) const JOURNAL_MAGIC: u32 = 0x6433_c509;

/// CRC-32C as the kernel has it, seeded with all ones and not inverted at the end.
pub(super) fn raw(seed: u32, bytes: &[u8]) -> u32 {
    !crc32c::crc32c_append(!seed, bytes)
}

/// A block of the journal that begins an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JournalBlock {
    /// Bytes of it that are used, this head of 32 included.
    pub used: u32,
    /// Grows by one with each.
    pub sequence: u64,
    /// Where in the ring it stands, in sectors.
    pub position: u64,
}

impl JournalBlock {
    /// What the bytes say; `None` unless they are whole, of this array and of the place `position` of the ring.
    pub fn parse(block: &[u8], array: &ArrayId, position: u64) -> Option<Self> {
        let block = block.get(..BLOCK)?;
        let version = block[8];
        let mut copy = block.to_vec();
        put(&mut copy, 4, [0; 4]);
        let seed = raw(!0, array);
        let one = Self {
            used: u32_at(block, 12),
            sequence: u64_at(block, 16),
            position: u64_at(block, 24),
        };
        let whole = u32_at(block, 0) == JOURNAL_MAGIC
            && version == 1
            && one.position == position
            && (32..=BLOCK as u32).contains(&one.used)
            && raw(seed, &copy) == u32_at(block, 4);
        whole.then_some(one)
    }

    /// Whether it says anything that would have to be replayed.
    pub const fn has_payload(&self) -> bool {
        self.used > 32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Who numbers the bytes of its identity.
    const ARRAY: ArrayId = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15];

    /// A block of the journal without payload, seventh, at sector 64, changed and sealed for the array.
    fn journal_block(change: &dyn Fn(&mut [u8])) -> Vec<u8> {
        let mut block = vec![0; BLOCK];
        put(&mut block, 0, JOURNAL_MAGIC.to_le_bytes());
        block[8] = 1;
        put(&mut block, 12, 32_u32.to_le_bytes());
        put(&mut block, 16, 7_u64.to_le_bytes());
        put(&mut block, 24, 64_u64.to_le_bytes());
        change(&mut block);
        let checksum = !crc32c::crc32c_append(crc32c::crc32c(&ARRAY), &block);
        put(&mut block, 4, checksum.to_le_bytes());
        block
    }

    /// Worked out bit by bit from the kernel's polynomial.
    #[test]
    fn a_block_of_the_journal_is_sealed_as_the_kernel_seals_it() {
        let block = journal_block(&|_| {});
        assert_eq!(u32_at(&block, 4), 0x1f18_7f51);
        let found = JournalBlock { used: 32, sequence: 7, position: 64 };
        assert_eq!(JournalBlock::parse(&block, &ARRAY, 64), Some(found));
    }

    #[test]
    fn a_block_of_the_journal_is_whole_in_its_place_or_none() {
        let used = |used: u32| {
            let block = journal_block(&|block| put(block, 12, used.to_le_bytes()));
            JournalBlock::parse(&block, &ARRAY, 64).map(|one| one.has_payload())
        };
        assert_eq!(
            [31, 32, 33, 4096, 4097].map(used),
            [None, Some(false), Some(true), Some(true), None]
        );
        let block = journal_block(&|_| {});
        assert_eq!(JournalBlock::parse(&block, &ARRAY, 72), None, "in another place");
        assert_eq!(JournalBlock::parse(&block, &[9; 16], 64), None, "of another array");
        assert_eq!(JournalBlock::parse(&block[..4095], &ARRAY, 64), None, "cut off");
        for (at, what) in [(0, "another magic"), (8, "another version")] {
            let block = journal_block(&|block| block[at] ^= 2);
            assert_eq!(JournalBlock::parse(&block, &ARRAY, 64), None, "{what}");
        }
        for at in [4, 16, 4095] {
            let mut torn = block.clone();
            torn[at] ^= 1;
            assert_eq!(JournalBlock::parse(&torn, &ARRAY, 64), None, "byte {at} is torn");
        }
    }
}
