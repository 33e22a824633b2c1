//! Filesystems: how each is made, mounted and checked.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use raidlab_core::{Layout, Sectors};
use raidlab_engine::{EngineError, EngineErrorKind};

use super::{mounts, tools};

/// A filesystem that can be made on an array.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Filesystem {
    /// ext4.
    Ext4,
    /// ext3, which Linux carries out with the code of ext4.
    Ext3,
    /// ext2: no journal.
    Ext2,
    /// XFS; mkfs wants 300 MiB at least, with the stripe given more.
    Xfs,
    /// Btrfs; mkfs wants about 110 MiB at least.
    Btrfs,
}

/// Whether the filesystem is told how the array lies on its members.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StripeHint {
    /// What mkfs finds out from the block device: with a loop device nothing.
    #[default]
    Found,
    /// Chunk and number of data members of the layout, for ext and XFS; Btrfs has no such options.
    Layout,
}

impl Filesystem {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Ext4, Self::Ext3, Self::Ext2, Self::Xfs, Self::Btrfs];

    /// The kernel's name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ext4 => "ext4",
            Self::Ext3 => "ext3",
            Self::Ext2 => "ext2",
            Self::Xfs => "xfs",
            Self::Btrfs => "btrfs",
        }
    }

    /// The filesystem of this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|one| one.name() == name)
    }

    /// Bytes below which mkfs refuses to make one, whatever the stripe is, with some to spare.
    pub const fn least_bytes(self) -> u64 {
        match self {
            Self::Ext4 | Self::Ext3 | Self::Ext2 => 8 << 20,
            Self::Xfs => 512 << 20,
            Self::Btrfs => 256 << 20,
        }
    }

    const fn package(self) -> &'static str {
        match self {
            Self::Ext4 | Self::Ext3 | Self::Ext2 => "e2fsprogs",
            Self::Xfs => "xfsprogs",
            Self::Btrfs => "btrfs-progs",
        }
    }

    /// What mkfs is always told: no question, no discard (members are fresh), and nothing left to be
    /// initialised later, which would go on in the background while a workload is timed.
    fn make_arguments(self, hint: Option<(u64, u64)>) -> Vec<String> {
        let mut arguments: Vec<String> = Vec::new();
        match self {
            Self::Ext4 | Self::Ext3 | Self::Ext2 => {
                let mut extended = "lazy_itable_init=0,nodiscard".to_string();
                if self != Self::Ext2 {
                    extended.push_str(",lazy_journal_init=0");
                }
                if let Some((chunk, data)) = hint {
                    // In blocks.
                    let stride = (chunk / 4096).max(1);
                    extended.push_str(&format!(",stride={stride},stripe_width={}", stride * data));
                }
                // Small arrays would get blocks of 1 KiB, and not be comparable with large ones.
                arguments.extend(["-F", "-q", "-b", "4096", "-E"].map(String::from));
                arguments.push(extended);
            }
            Self::Xfs => {
                arguments.extend(["-f", "-q", "-K"].map(String::from));
                if let Some((chunk, data)) = hint {
                    arguments.extend(["-d".into(), format!("su={chunk},sw={data}")]);
                }
            }
            Self::Btrfs => arguments.extend(["-f", "-q", "-K"].map(String::from)),
        }
        arguments
    }

    /// What the checker is told: look, change nothing.
    const fn check(self) -> (&'static str, &'static [&'static str]) {
        match self {
            Self::Ext4 | Self::Ext3 | Self::Ext2 => ("e2fsck", &["-f", "-n"]),
            Self::Xfs => ("xfs_repair", &["-n"]),
            Self::Btrfs => ("btrfs", &["check", "--readonly"]),
        }
    }
}

/// The programs for a filesystem.
#[derive(Debug)]
pub(crate) struct Programs {
    filesystem: Filesystem,
    make: PathBuf,
    checker: PathBuf,
}

impl Programs {
    /// Finds them, and that the kernel has the filesystem.
    pub(crate) fn find(filesystem: Filesystem) -> Result<Self, EngineError> {
        let package = filesystem.package();
        let make = tools::find(&format!("mkfs.{}", filesystem.name()), package)?;
        let checker = tools::find(filesystem.check().0, package)?;
        need_kernel_has(filesystem)?;
        Ok(Self { filesystem, make, checker })
    }

    /// Makes the filesystem on a device; `hint` is chunk in bytes and number of data members.
    pub(crate) fn make(&self, device: &Path, hint: Option<(u64, u64)>) -> Result<(), EngineError> {
        let arguments = self.filesystem.make_arguments(hint);
        let mut arguments: Vec<&OsStr> = arguments.iter().map(OsStr::new).collect();
        arguments.push(device.as_os_str());
        tools::run_well("make the filesystem", &self.make, &arguments)
    }

    /// Mounts it.
    pub(crate) fn mount(&self, device: &Path, at: &Path) -> Result<(), EngineError> {
        mounts::mount(device, at, self.filesystem.name())
    }

    /// Looks at the filesystem, which must not be mounted; its verdict as an error if it is unclean.
    pub(crate) fn check(&self, device: &Path) -> Result<(), EngineError> {
        let (_, arguments) = self.filesystem.check();
        let mut arguments: Vec<&OsStr> = arguments.iter().map(OsStr::new).collect();
        arguments.push(device.as_os_str());
        let ran = tools::run(&self.checker, &arguments)?;
        if ran.status == Some(0) {
            return Ok(());
        }
        let reason = format!("{} is not sound: {}", self.filesystem.name(), ran.said);
        Err(EngineError::new(EngineErrorKind::Mismatch, "check the filesystem", reason))
    }
}

fn need_kernel_has(filesystem: Filesystem) -> Result<(), EngineError> {
    let name = filesystem.name();
    let known = || {
        let text = std::fs::read_to_string("/proc/filesystems").unwrap_or_default();
        text.lines().any(|line| line.split_ascii_whitespace().last() == Some(name))
    };
    if known() {
        return Ok(());
    }
    // A module may have it; loading is all that is tried.
    if let Ok(modprobe) = tools::find("modprobe", "kmod") {
        tools::run(&modprobe, &["-q", name].map(OsStr::new))?;
    }
    if known() {
        return Ok(());
    }
    let reason = format!("this kernel has no {name} (`/proc/filesystems`)");
    Err(EngineError::new(EngineErrorKind::NotSupported, "mount the filesystem", reason))
}

/// Chunk in bytes and number of members that hold data in a stripe, where the layout has chunks.
pub(crate) fn hint(layout: &Layout, stripe: StripeHint) -> Option<(u64, u64)> {
    if stripe == StripeHint::Found {
        return None;
    }
    // Of nested levels the lower one's chunk, as many as a stripe of both has.
    if let Some(inner) = &layout.inner {
        let (chunk, _) = hint(inner, stripe).or_else(|| hint(&layout.upper(), stripe))?;
        let stripe = layout.full_stripe().map_or(chunk, Sectors::bytes);
        return Some((chunk, (stripe / chunk).max(1)));
    }
    let has_chunks = layout.level.has_chunks();
    has_chunks.then(|| (layout.chunk.bytes(), u64::from(layout.data_members())))
}

#[cfg(test)]
mod tests {
    use raidlab_core::Level;

    use super::*;

    #[test]
    fn names_go_both_ways() {
        for one in Filesystem::ALL {
            assert_eq!(Filesystem::from_name(one.name()), Some(one));
        }
        assert_eq!(Filesystem::from_name("vfat"), None);
    }

    #[test]
    fn a_layout_is_told_as_chunk_and_data_members() {
        let raid5 = Layout::new(Level::Raid5, 4).with_chunk(Sectors(128));
        let told = hint(&raid5, StripeHint::Layout);
        assert_eq!(told, Some((65536, 3)));
        assert_eq!(hint(&raid5, StripeHint::Found), None);
        let arguments = Filesystem::Ext4.make_arguments(told).join(" ");
        assert!(arguments.contains("stride=16,stripe_width=48"), "{arguments}");
        assert!(Filesystem::Xfs.make_arguments(told).contains(&"su=65536,sw=3".to_string()));
        assert_eq!(hint(&Layout::new(Level::Raid1, 2), StripeHint::Layout), None);
        let nested: Layout = "raid5+0(2x4) chunk=64K".parse().expect("is a layout");
        assert_eq!(hint(&nested, StripeHint::Layout), Some((65536, 6)));
        let mirrors: Layout = "raid1+0(3x2) chunk=64K".parse().expect("is a layout");
        assert_eq!(hint(&mirrors, StripeHint::Layout), Some((65536, 3)));
        let ten = Layout::new(Level::Raid10, 4);
        assert_eq!(hint(&ten, StripeHint::Layout), Some((512 << 10, 2)));
    }

    #[test]
    fn nothing_is_left_to_be_done_later() {
        for one in [Filesystem::Ext4, Filesystem::Ext3] {
            let arguments = one.make_arguments(None).join(" ");
            assert!(
                arguments.contains("lazy_itable_init=0")
                    && arguments.contains("lazy_journal_init=0")
            );
        }
    }
}
