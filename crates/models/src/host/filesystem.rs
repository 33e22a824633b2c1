//! The filesystems of the studies: how they differ in placing files and making them durable.

use std::fmt;
use std::str::FromStr;

use super::spec::{BLOCK, FilesystemSpec, JournalPlace, JournalSpec};

/// A filesystem that is modelled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FilesystemKind {
    /// Linux ext2: block groups, indirect blocks, no journal.
    Ext2,
    /// Linux ext3: the same with an ordered journal.
    Ext3,
    /// Linux ext4: extents, delayed allocation, groups with metadata together.
    Ext4,
    /// The fast filesystem of BSD, UFS2: cylinder groups, blocks of 16 KiB. Soft updates are left out:
    /// metadata are written back like data.
    Ffs,
}

impl FilesystemKind {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Ext2, Self::Ext3, Self::Ext4, Self::Ffs];

    /// The name in study files.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ext2 => "ext2",
            Self::Ext3 => "ext3",
            Self::Ext4 => "ext4",
            Self::Ffs => "ffs",
        }
    }
}

impl FilesystemSpec {
    /// A filesystem as made and mounted by default: ext2 and ext3 of 2005 to 2008, ext4 of today, UFS2
    /// of FreeBSD 6.
    pub fn of(kind: FilesystemKind) -> Self {
        match kind {
            FilesystemKind::Ext2 => Self::ext2(),
            FilesystemKind::Ext3 => Self::ext3(),
            FilesystemKind::Ext4 => Self::default(),
            FilesystemKind::Ffs => Self::ffs(),
        }
    }

    fn ext2() -> Self {
        Self {
            // A bitmap of one block: 32,768 blocks of 4 KiB.
            group_bytes: 128 << 20,
            // mke2fs before 1.41.
            inode_ratio: 8 << 10,
            inode_bytes: 128,
            inode_read_ahead: 1,
            delayed_allocation: false,
            allocation: 2_048,
            journal: None,
            barriers: false,
            block: BLOCK,
            // 4 KiB of pointers of 4 bytes.
            indirect: Some(1_024),
            // EXT2_DEFAULT_PREALLOC_BLOCKS; reservations came to ext2 with 2.6.24 only.
            reservation: 8,
            spread: true,
            most_in_group: None,
        }
    }

    fn ext3() -> Self {
        // mke2fs 1.39 to 1.42: 32,768 blocks from 4 GiB on, in the first group.
        let journal =
            JournalSpec { bytes: 128 << 20, place: JournalPlace::Start, ..JournalSpec::default() };
        // EXT3_MAX_RESERVE_BLOCKS is 1,027 since 2.6.10.
        Self { journal: Some(journal), reservation: 1_024, ..Self::ext2() }
    }

    fn ffs() -> Self {
        Self {
            // What newfs prints for blocks of 16 KiB: "183.77MB, 11761 blks, 23552 inodes".
            group_bytes: 11_761 * (16 << 10),
            inode_ratio: 11_761 * (16 << 10) / 23_552,
            // UFS2.
            inode_bytes: 256,
            // Inodes are read by blocks.
            inode_read_ahead: 4,
            block: 16 << 10,
            // 16 KiB of pointers of 8 bytes.
            indirect: Some(2_048),
            // Clusters of 128 KiB are moved together (`vfs.ffs.doreallocblks`).
            reservation: (128 << 10) / BLOCK,
            // maxbpg: as many blocks as an indirect block has pointers.
            most_in_group: Some(2_048 * (16 << 10)),
            ..Self::ext2()
        }
    }
}

impl fmt::Display for FilesystemKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for FilesystemKind {
    type Err = String;

    /// Reads a name; the error says which there are.
    fn from_str(text: &str) -> Result<Self, String> {
        Self::ALL.into_iter().find(|one| one.name() == text).ok_or_else(|| {
            let known = Self::ALL.map(Self::name).join(", ");
            format!("`{text}` is not a filesystem; known: {known}")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::HostSpec;

    #[test]
    fn all_can_be_and_are_found_by_name() {
        for kind in FilesystemKind::ALL {
            assert_eq!(kind.name().parse(), Ok(kind));
            let filesystem = FilesystemSpec::of(kind);
            HostSpec { filesystem, ..HostSpec::default() }.check().expect("can be");
        }
        let error = "reiserfs".parse::<FilesystemKind>().expect_err("unknown");
        assert!(error.ends_with("ext2, ext3, ext4, ffs"), "{error}");
    }
}
