//! The kernels of the studies: their defaults, and how far they read ahead on an array.
//!
//! Where a figure comes from is said with it. "Sources" are those of the kernel of that version; what
//! was not looked up there but is common knowledge of its time is marked so.

use std::fmt;
use std::str::FromStr;

use raidlab_core::layout::least_common;
use raidlab_core::units::Nanos;
use raidlab_core::{Layout, Redundancy};

use super::filesystem::FilesystemKind;
use super::spec::{BLOCK, DirtyLimit, FilesystemSpec, HostSpec, JournalSpec};
use crate::queue::Scheduler;

/// Bytes that kernels read ahead on a device when nothing else is said: `VM_MAX_READAHEAD` of Linux is
/// 128 KiB in all versions here; `vfs.read_max` of FreeBSD 6.2 is 8 blocks of 16 KiB.
pub const READ_AHEAD: u64 = 128 << 10;

/// How windows of read-ahead open and grow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ReadAheadRule {
    /// Linux before 2.6.23: a current window and one ahead, each up to the most; when the reader comes
    /// to the second, it becomes the first and the next one is read. The first window is a quarter of
    /// the most, or the square of what is read; each next one twice as long, four times below a
    /// sixteenth.
    TwoWindows,
    /// Linux since 2.6.23: one window with a mark in it that starts the next.
    OnDemand,
    /// FreeBSD (`cluster_read`): as many bytes ahead as were read in sequence, up to the most, in
    /// clusters as long as a request; the first block of every cluster tops that up.
    Clusters,
}

/// A kernel of the studies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kernel {
    /// Debian Sarge's newest: `pata-2005`.
    Linux2_6_12,
    /// Debian Etch in testing: `ite8212-2006`.
    Linux2_6_16,
    /// Ubuntu 7.04: `freebsd-2007`.
    Linux2_6_20,
    /// Fedora 8: `sas-2008`.
    Linux2_6_23,
    /// openSUSE 11.1: `sata-2018`.
    Linux2_6_27,
    /// Of today: Debian 12.
    Linux6_1,
    /// Of today: Debian 13, and 12 by backports.
    Linux6_12,
    /// `freebsd-2007`.
    FreeBsd6_2,
}

impl Kernel {
    /// All of them.
    pub const ALL: [Self; 8] = [
        Self::Linux2_6_12,
        Self::Linux2_6_16,
        Self::Linux2_6_20,
        Self::Linux2_6_23,
        Self::Linux2_6_27,
        Self::Linux6_1,
        Self::Linux6_12,
        Self::FreeBsd6_2,
    ];

    /// The name in study files.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Linux2_6_12 => "linux-2.6.12",
            Self::Linux2_6_16 => "linux-2.6.16",
            Self::Linux2_6_20 => "linux-2.6.20",
            Self::Linux2_6_23 => "linux-2.6.23",
            Self::Linux2_6_27 => "linux-2.6.27",
            Self::Linux6_1 => "linux-6.1",
            Self::Linux6_12 => "linux-6.12",
            Self::FreeBsd6_2 => "freebsd-6.2",
        }
    }

    /// The scheduler of its request queues: anticipatory up to 2.6.17, CFQ from 2.6.18
    /// (`block/Kconfig.iosched`), `mq-deadline` for drives with one queue today. FreeBSD sorts by place
    /// in one direction (`bioq_disksort`); the deadline elevator is nearest to that.
    pub const fn scheduler(self) -> Scheduler {
        match self {
            Self::Linux2_6_12 | Self::Linux2_6_16 => Scheduler::Anticipatory,
            Self::Linux2_6_20 | Self::Linux2_6_23 | Self::Linux2_6_27 => Scheduler::Cfq,
            Self::Linux6_1 | Self::Linux6_12 => Scheduler::MqDeadline,
            Self::FreeBsd6_2 => Scheduler::Deadline,
        }
    }

    /// Whether it is one of today: those that the kernel lab runs.
    pub const fn is_of_today(self) -> bool {
        matches!(self, Self::Linux6_1 | Self::Linux6_12)
    }

    /// Whether md sends a write that is to be preceded by a flush together with the flushes of its members, not after
    /// them: `md_flush_request` (drivers/md/md.c) since 6.12; in 6.1 it waits for them.
    pub const fn flushes_beside_writes(self) -> bool {
        matches!(self, Self::Linux6_12)
    }

    /// The filesystem its distribution made by default.
    pub const fn filesystem(self) -> FilesystemKind {
        match self {
            Self::Linux6_1 | Self::Linux6_12 => FilesystemKind::Ext4,
            Self::FreeBsd6_2 => FilesystemKind::Ffs,
            _ => FilesystemKind::Ext3,
        }
    }

    /// A filesystem as it is made and mounted by default under this kernel: its own has the figures of its time.
    ///
    /// Today a sync of ext2 and ext3 ends with a flush of the drives, too: ext3 has barriers on by default since 3.1,
    /// and `generic_file_fsync`, by which ext2 is synced, has flushed since 3.16 (common knowledge). mke2fs makes both
    /// with inodes of 256 bytes, one for 16 KiB, since 1.41.
    pub fn mounted(self, kind: FilesystemKind) -> FilesystemSpec {
        match (self, kind) {
            _ if kind == self.filesystem() => self.spec().filesystem,
            (Self::Linux6_1 | Self::Linux6_12, FilesystemKind::Ext2 | FilesystemKind::Ext3) => {
                FilesystemSpec {
                    barriers: true,
                    inode_bytes: 256,
                    inode_ratio: 16 << 10,
                    ..FilesystemSpec::of(kind)
                }
            }
            _ => FilesystemSpec::of(kind),
        }
    }

    /// A host with this kernel and its defaults. Memory, cores and CPU times are those of
    /// [`HostSpec::default`].
    pub fn spec(self) -> HostSpec {
        let spec = HostSpec {
            kernel: self,
            filesystem: FilesystemSpec::of(self.filesystem()),
            ..HostSpec::default()
        };
        match self {
            Self::Linux6_1 | Self::Linux6_12 => spec,
            Self::FreeBsd6_2 => spec.free_bsd(),
            _ => spec.linux_2_6(self),
        }
    }
}

impl HostSpec {
    /// A host with the defaults of a kernel; see [`Kernel::spec`]. `None` when there is no kernel of
    /// this name among [`Kernel::ALL`].
    pub fn kernel(name: &str) -> Option<Self> {
        name.parse().ok().map(Kernel::spec)
    }

    /// Linux 2.6. The same in all: data expire at 30 s and are looked at each 5 s
    /// (`dirty_expire_centisecs`, `dirty_writeback_centisecs`), 128 requests (`BLKDEV_MAX_RQ`), 1,024
    /// pages of a file in turn (`MAX_WRITEBACK_PAGES`).
    fn linux_2_6(self, kernel: Kernel) -> Self {
        // vm_dirty_ratio and dirty_background_ratio of mm/page-writeback.c: 40 and 10 up to 2.6.21, 10
        // and 5 from 2.6.22.
        let (dirty, background) = if kernel < Kernel::Linux2_6_23 { (40, 10) } else { (10, 5) };
        // The on-demand read-ahead came with 2.6.23 (mm/readahead.c).
        let read_ahead_rule = if kernel < Kernel::Linux2_6_23 {
            ReadAheadRule::TwoWindows
        } else {
            ReadAheadRule::OnDemand
        };
        // MAX_SECTORS was 255 and IDE drives without 48-bit addresses take 256; BLK_DEF_MAX_SECTORS
        // of 1,024 came in 2.6.16.
        let longest = if kernel < Kernel::Linux2_6_16 { 128 << 10 } else { 512 << 10 };
        // The O(1) scheduler gave 100 ms (DEF_TIMESLICE); CFS came with 2.6.23: 20 ms by
        // sched_latency, shared by those who run.
        let slice = if kernel < Kernel::Linux2_6_23 { 100 } else { 10 };
        let mut filesystem = self.filesystem;
        if let Some(journal) = &mut filesystem.journal
            && kernel < Kernel::Linux2_6_16
        {
            // mke2fs before 1.39: 8,192 blocks for everything above 1 GiB.
            *journal = JournalSpec { bytes: 32 << 20, ..*journal };
        }
        if kernel >= Kernel::Linux2_6_27 {
            // mke2fs 1.41 (July 2008).
            (filesystem.inode_bytes, filesystem.inode_ratio) = (256, 16 << 10);
        }
        Self {
            dirty: DirtyLimit::Percent(dirty),
            dirty_background: DirtyLimit::Percent(background),
            read_ahead_rule,
            // get_init_ra_size and get_init_ra_size's successor say what windows begin with.
            read_ahead_start: 0,
            long_reads: false,
            access_times: true,
            longest_request: longest,
            longest_command: longest,
            slice: Nanos::from_millis(slice),
            filesystem,
            ..self
        }
    }

    /// FreeBSD 6.2.
    fn free_bsd(self) -> Self {
        Self {
            // vfs.hidirtybuffers is a quarter of the buffers, of 16 KiB; there is about one for 160 KiB
            // of memory (kern_vfs_bio_buffer_alloc: factor 4 x 16 KiB, two fifths): 2.5 %. Common
            // knowledge, estimate.
            dirty: DirtyLimit::Percent(3),
            // Full clusters are written at once (vfs.write_behind), so there is next to no background
            // limit.
            dirty_background: DirtyLimit::Bytes(1 << 20),
            // The syncer: filedelay 30 s, in steps of a second.
            dirty_expire: Nanos::from_millis(30_000),
            writeback_interval: Nanos::from_millis(1_000),
            read_ahead_rule: ReadAheadRule::Clusters,
            read_ahead_start: 0,
            long_reads: false,
            access_times: true,
            // MAXPHYS.
            longest_request: 128 << 10,
            longest_command: 128 << 10,
            // The 4BSD scheduler: a tenth of a second.
            slice: Nanos::from_millis(100),
            ..self
        }
    }

    /// With read-ahead of so many blocks of the filesystem: `vfs.read_max` of FreeBSD, 8 by default;
    /// 128 are 2 MiB.
    #[must_use]
    pub fn with_read_max(self, blocks: u64) -> Self {
        Self { read_ahead: Some(blocks.saturating_mul(self.filesystem.block)), ..self }
    }
}

/// Bytes that a kernel reads ahead on an array, when nobody sets it.
///
/// Linux md raises its device's read-ahead to two stripes: raid0 2 x members x chunk, raid4, raid5 and
/// raid6 2 x (members less parity) x chunk, raid10 2 x members x chunk / near copies (drivers/md,
/// `ra_pages`; since 5.9 `io_opt`, of which the block layer takes twice). linear and raid1 leave it
/// alone. FreeBSD counts in blocks of the filesystem and does not look at the array.
pub fn read_ahead_for(kernel: Kernel, layout: &Layout) -> u64 {
    if kernel == Kernel::FreeBsd6_2 {
        return READ_AHEAD;
    }
    let own = two_stripes(layout);
    // Stacked devices have an optimal I/O that both levels' divide.
    let below = layout.inner.as_ref().map_or(0, |inner| two_stripes(inner));
    least_common(own, below).max(READ_AHEAD) / BLOCK * BLOCK
}

/// Two stripes of one level in bytes; 0 where it has no optimal I/O.
fn two_stripes(layout: &Layout) -> u64 {
    let members = u64::from(layout.members);
    let stripes = 2 * layout.chunk.bytes();
    match layout.level.redundancy() {
        _ if !layout.level.has_chunks() => 0,
        // A raid0 of one is that drive.
        Redundancy::None if members < 2 => 0,
        // Of an odd number of members not rounded, unlike the optimal I/O.
        Redundancy::Copies => stripes * members / u64::from(layout.near.max(1)),
        Redundancy::None | Redundancy::Mirror | Redundancy::Parity(_) => {
            stripes * u64::from(layout.data_members())
        }
    }
}

impl fmt::Display for Kernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Kernel {
    type Err = String;

    /// Reads a name; the error says which there are.
    fn from_str(text: &str) -> Result<Self, String> {
        Self::ALL.into_iter().find(|one| one.name() == text).ok_or_else(|| {
            let known = Self::ALL.map(Self::name).join(", ");
            format!("`{text}` is not a kernel; known: {known}")
        })
    }
}

#[cfg(test)]
mod tests {
    use raidlab_core::{Level, Sectors};

    use super::*;

    /// A disk cannot have written hundreds of files a second one after the other: old kernels did not wait for it.
    #[test]
    fn a_sync_waits_for_the_drives_today_and_did_not_always() {
        for kind in [FilesystemKind::Ext2, FilesystemKind::Ext3, FilesystemKind::Ext4] {
            assert!(Kernel::Linux6_1.mounted(kind).barriers, "{kind}");
        }
        for kind in [FilesystemKind::Ext2, FilesystemKind::Ext3] {
            assert!(!Kernel::Linux2_6_27.mounted(kind).barriers, "{kind}");
        }
        assert_eq!(
            Kernel::Linux2_6_27.mounted(FilesystemKind::Ext3),
            Kernel::Linux2_6_27.spec().filesystem
        );
    }

    fn spec(name: &str) -> HostSpec {
        HostSpec::kernel(name).expect("known")
    }

    #[test]
    fn kernels_are_found_by_name_and_can_be() {
        for kernel in Kernel::ALL {
            let spec = spec(kernel.name());
            assert_eq!(spec.kernel, kernel);
            spec.check().expect("can be");
        }
        assert_eq!(spec("linux-6.1"), HostSpec::default());
        let newer = HostSpec { kernel: Kernel::Linux6_12, ..HostSpec::default() };
        assert_eq!(spec("linux-6.12"), newer);
        assert_eq!(HostSpec::kernel("linux-2.4"), None);
        let error = "linux-2.4".parse::<Kernel>().expect_err("unknown");
        assert!(error.contains("linux-2.6.12, linux-2.6.16"), "{error}");
    }

    #[test]
    fn limits_and_rules_changed_with_the_versions() {
        let percent = |name| {
            let spec = spec(name);
            (spec.dirty, spec.dirty_background)
        };
        let (p40, p10, p5) =
            (DirtyLimit::Percent(40), DirtyLimit::Percent(10), DirtyLimit::Percent(5));
        for name in ["linux-2.6.12", "linux-2.6.16", "linux-2.6.20"] {
            assert_eq!(percent(name), (p40, p10), "{name}");
            assert_eq!(spec(name).read_ahead_rule, ReadAheadRule::TwoWindows);
        }
        for name in ["linux-2.6.23", "linux-2.6.27"] {
            assert_eq!(percent(name), (p10, p5), "{name}");
            assert_eq!(spec(name).read_ahead_rule, ReadAheadRule::OnDemand);
        }
        let schedulers = Kernel::ALL.map(Kernel::scheduler);
        assert_eq!(schedulers[1..3], [Scheduler::Anticipatory, Scheduler::Cfq]);
        assert_eq!(spec("freebsd-6.2").with_read_max(128).read_ahead, Some(2 << 20));
    }

    #[test]
    fn arrays_are_read_ahead_by_two_stripes() {
        let ahead = |level, members, chunk: u64| {
            let chunk = Sectors(chunk * 2);
            let layout = Layout { chunk, ..Layout::new(level, members) };
            read_ahead_for(Kernel::Linux2_6_12, &layout) >> 10
        };
        assert_eq!(ahead(Level::Raid0, 4, 64), 512);
        assert_eq!(ahead(Level::Raid0, 4, 512), 4_096);
        assert_eq!(ahead(Level::Raid0, 2, 4), 128, "never less than for one drive");
        assert_eq!(ahead(Level::Raid5, 4, 64), 384);
        assert_eq!(ahead(Level::Raid6, 4, 64), 256);
        assert_eq!(ahead(Level::Raid10, 4, 64), 256);
        assert_eq!(ahead(Level::Raid1, 5, 0), 128);
        assert_eq!(ahead(Level::Linear, 4, 0), 128);
        let striped = Layout::new(Level::Raid0, 4);
        assert_eq!(read_ahead_for(Kernel::FreeBsd6_2, &striped), 128 << 10);
    }

    #[test]
    fn nested_levels_read_ahead_as_stacked_devices_do() {
        let of = |name: &str| read_ahead_for(Kernel::Linux6_1, &name.parse().expect("a layout"));
        // Two stripes of 4 x 512 KiB, which two of 2 x 512 KiB divide.
        assert_eq!(of("raid5+0(4x3)"), 4 << 20);
        // 3 x 64 KiB above and 4 x 64 KiB below: the least that both divide.
        assert_eq!(of("raid5+0(3x5) chunk=64K"), (2 * 12 * 64) << 10);
        // A mirror has no optimal I/O of its own.
        assert_eq!(of("raid0+1(2x4) chunk=256K"), of("raid0(4) chunk=256K"));
    }
}
