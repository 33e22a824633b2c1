//! The superblock of dm-raid, in the first sector of a volume's metadata; it has neither checksum nor identity.

use super::volume::RESHAPE;
use crate::md::ALL;
use crate::md::fields::{u32_at, u64_at};

/// How it begins.
const MAGIC: &[u8] = b"DmRd";
/// Bytes of it that mean something.
pub(super) const LEN: usize = 148;
/// It has the fields from 60 on.
const HAS_MORE: u32 = 1;
/// The most members of a volume that it has a bit for.
pub(super) const MOST: u32 = 253;

/// What it says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DmSuperblock {
    /// Features that others need not know.
    pub compatible: u32,
    /// Members.
    pub members: u32,
    /// Which of them this is.
    pub place: u32,
    /// Grows with each change.
    pub events: u64,
    /// A bit for each member that failed, or is missing.
    pub failed: [u64; 4],
    /// Up to where this member is rebuilt; all ones: it has everything.
    pub rebuilt_to: u64,
    /// Up to where redundancy is consistent; all ones: everywhere.
    pub synced_to: u64,
    /// As md counts levels.
    pub level: u32,
    /// As md has it for the level.
    pub layout: u32,
    /// Sectors of a chunk.
    pub chunk: u32,
    /// 1: its shape is being changed, 2: from the end to the start.
    pub flags: u32,
    /// Sectors before the data of each member.
    pub data_offset: u64,
    /// Sectors used of each member; 0: not said.
    pub sectors: u64,
    /// Features that everybody must know.
    pub incompatible: u32,
}

impl DmSuperblock {
    /// What bytes say; `None` where none begins.
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        if bytes.len() < LEN || !bytes.starts_with(MAGIC) {
            return None;
        }
        let compatible = u32_at(bytes, 4);
        let has_more = compatible & HAS_MORE != 0;
        let more = |at: usize| if has_more { u64_at(bytes, at) } else { 0 };
        let more_32 = |at: usize| if has_more { u32_at(bytes, at) } else { 0 };
        Some(Self {
            compatible,
            members: u32_at(bytes, 8),
            place: u32_at(bytes, 12),
            events: u64_at(bytes, 16),
            failed: [u64_at(bytes, 24), more(120), more(128), more(136)],
            rebuilt_to: u64_at(bytes, 32),
            synced_to: u64_at(bytes, 40),
            level: u32_at(bytes, 48),
            layout: u32_at(bytes, 52),
            chunk: u32_at(bytes, 56),
            flags: more_32(60),
            data_offset: more(96),
            sectors: more(112),
            incompatible: more_32(144),
        })
    }

    /// Whether it says that a member failed, or is missing.
    pub fn has_failed(&self, place: usize) -> bool {
        self.failed.get(place / 64).is_some_and(|word| word >> (place % 64) & 1 == 1)
    }

    /// Whether it says so of any.
    pub fn is_degraded(&self) -> bool {
        self.failed != [0; 4]
    }

    /// Whether this member has everything.
    pub const fn is_rebuilt(&self) -> bool {
        self.rebuilt_to == ALL
    }

    /// Why what it says cannot be told, of a volume that has the shape which the group says.
    pub(super) fn obstacle(&self) -> Option<String> {
        if self.compatible & !HAS_MORE != 0 || self.incompatible != 0 {
            let (one, other) = (self.compatible, self.incompatible);
            return Some(format!(
                "a newer kernel gave it features ({one:#x}, {other:#x}) not known here"
            ));
        }
        (self.flags & 1 != 0).then(|| RESHAPE.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of the second member of a raid5_ls volume on three physical volumes, as Linux 6.1 wrote it for LVM 2.03.16 with
    /// the first one missing; behind it all is zero.
    const BYTES: &str = "\
        446d526401000000030000000100000015000000000000000100000000000000\
        ffffffffffffffffffffffffffffffff05000000020000008000000000000000\
        ffffffffffffffff050000000200000080000000000000000060000000000000\
        0000000000000000000000000000000000300000000000000000000000000000\
        0000000000000000000000000000000000000000";

    fn bytes() -> Vec<u8> {
        let digits = BYTES.split_whitespace().collect::<String>();
        let byte = |n: usize| u8::from_str_radix(&digits[n..n + 2], 16).expect("digits");
        (0..digits.len()).step_by(2).map(byte).collect()
    }

    #[test]
    fn each_field_is_read_from_its_place() {
        let one = DmSuperblock::parse(&bytes()).expect("is one");
        let expected = DmSuperblock {
            compatible: 1,
            members: 3,
            place: 1,
            events: 21,
            failed: [1, 0, 0, 0],
            rebuilt_to: ALL,
            synced_to: ALL,
            level: 5,
            layout: 2,
            chunk: 128,
            flags: 0,
            data_offset: 0,
            sectors: 12288,
            incompatible: 0,
        };
        assert_eq!(one, expected);
        assert!(one.has_failed(0) && !one.has_failed(1) && one.obstacle().is_none());
        let mut changed = bytes();
        (changed[120], changed[144], changed[60]) = (2, 4, 1);
        let more = DmSuperblock::parse(&changed).expect("is one");
        assert!(more.has_failed(65) && !more.has_failed(999));
        assert!(more.obstacle().is_some_and(|why| why.contains("0x4")));
        // Kernels before Linux 4.8 did not write these.
        changed[4] = 0;
        let old = DmSuperblock::parse(&changed).expect("is one");
        assert_eq!((old.failed, old.sectors, old.obstacle()), ([1, 0, 0, 0], 0, None));
        assert_eq!(DmSuperblock::parse(&changed[..LEN - 1]), None);
        changed[0] = 0;
        assert_eq!(DmSuperblock::parse(&changed), None);
    }
}
