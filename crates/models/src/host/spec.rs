//! What a host is like: memory, write-back, read-ahead, CPU, filesystem.

use raidlab_core::units::Nanos;

use super::kernel::{Kernel, ReadAheadRule};

/// Bytes of a page of memory and of a block of the filesystem.
pub const BLOCK: u64 = 4_096;

/// How much may be dirty: a share of the memory for the cache, or so many bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DirtyLimit {
    /// Hundredths of [`HostSpec::memory`]: `vm.dirty_ratio`, `vm.dirty_background_ratio`.
    Percent(u32),
    /// Bytes: `vm.dirty_bytes`, `vm.dirty_background_bytes`.
    Bytes(u64),
}

impl DirtyLimit {
    /// Pages, of so many bytes of memory.
    pub(super) const fn pages(self, memory: u64) -> u64 {
        match self {
            Self::Percent(percent) => (memory as u128 * percent as u128 / 100) as u64 / BLOCK,
            Self::Bytes(bytes) => bytes / BLOCK,
        }
    }
}

/// Where the journal lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JournalPlace {
    /// In the first group: mke2fs before 1.41.
    Start,
    /// In the group in the middle: mke2fs since.
    Middle,
}

/// A journal of metadata in ordered mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JournalSpec {
    /// Its length in bytes. Default 1 GiB: mke2fs 1.43 and later for 128 GiB and more.
    pub bytes: u64,
    /// A transaction is committed so long after its first change. Default 5 s: `commit=` of ext3 and
    /// ext4.
    pub commit: Nanos,
    /// Where it lies. Default in the middle.
    pub place: JournalPlace,
}

impl Default for JournalSpec {
    fn default() -> Self {
        let commit = Nanos::from_millis(5_000);
        Self { bytes: 1 << 30, commit, place: JournalPlace::Middle }
    }
}

/// How files are placed and made durable: ext4 by default, ext3 and ext2 by other values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FilesystemSpec {
    /// Bytes of a block group: what directories are spread over. Default 2 GiB: 16 groups of 128 MiB
    /// with their metadata together (`flex_bg`); ext3 has 128 MiB.
    pub group_bytes: u64,
    /// Bytes for which there is one inode. Default 16 KiB: `inode_ratio` of `mke2fs.conf`.
    pub inode_ratio: u64,
    /// Bytes of an inode in its table. Default 256; 128 before mke2fs 1.41.
    pub inode_bytes: u64,
    /// Blocks of the inode table that are read at once. Default 32: `inode_readahead_blks` of ext4; 1
    /// for ext3.
    pub inode_read_ahead: u64,
    /// Whether places are chosen when data are written back, not when they come. Default yes (ext4).
    pub delayed_allocation: bool,
    /// Most blocks that are looked for in one piece. Default 2,048 (8 MiB): ext4's largest
    /// preallocation of a growing file.
    pub allocation: u64,
    /// The journal; `None` for ext2, or ext4 without one.
    pub journal: Option<JournalSpec>,
    /// Whether commits and `fsync` flush what drives hold in their caches. Default yes: ext4; ext3
    /// before 3.0 did not.
    pub barriers: bool,
    /// Bytes that are read at once at least, and that pointers point to: a multiple of 4 KiB. Default
    /// 4 KiB; 16 KiB for FFS.
    pub block: u64,
    /// Pointers in an indirect block, of blocks in a file; none when files are mapped by extents.
    /// Default none (ext4); 1,024 for ext2 and ext3. The first 12 blocks of a file need none.
    pub indirect: Option<u64>,
    /// Most blocks that a growing file keeps for itself behind its end, where places are chosen when
    /// data come. Default 0, since ext4 chooses later; ext3 has 1,024.
    pub reservation: u64,
    /// Whether directories of the root are spread over groups. Default yes; without, files lie one
    /// behind the other from the start.
    pub spread: bool,
    /// Bytes of a file in a group before it goes on in the next. Default none; 32 MiB for FFS
    /// (`maxbpg`).
    pub most_in_group: Option<u64>,
}

impl Default for FilesystemSpec {
    fn default() -> Self {
        Self {
            group_bytes: 2 << 30,
            inode_ratio: 16 << 10,
            inode_bytes: 256,
            inode_read_ahead: 32,
            delayed_allocation: true,
            allocation: 2_048,
            journal: Some(JournalSpec::default()),
            barriers: true,
            block: BLOCK,
            indirect: None,
            reservation: 0,
            spread: true,
            most_in_group: None,
        }
    }
}

/// CPU time that calls take. What a request to the array costs is counted by whoever carries it out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallCosts {
    /// A read or write through the page cache, without copying. Default 400 ns (estimate: `dd bs=1`
    /// makes some 2 to 3 million calls a second on machines of today).
    pub call: Nanos,
    /// An operation on names: look up, make, remove. Default 4 µs (estimate: a hot `open` with
    /// `O_CREAT` on ext4 takes 5 to 10 µs with its `close`).
    pub name: Nanos,
    /// An entry of a directory that is listed. Default 60 ns (estimate).
    pub entry: Nanos,
    /// A byte through `putc` or `getc` of the C library, in picoseconds. Default 2,000 (estimate: a
    /// locked call of some ten clocks).
    pub character: u64,
    /// Bytes copied between the page cache and a process per second. Default 8 GB/s (estimate: out
    /// of the processor's caches on one core).
    pub copy_rate: u64,
}

impl CallCosts {
    /// CPU time of so many calls of `putc` or `getc`, rounded down.
    pub fn characters(&self, bytes: u64) -> Nanos {
        Nanos((u128::from(bytes) * u128::from(self.character) / 1_000) as u64)
    }

    /// CPU time of copying `bytes`, rounded down.
    pub fn copy(&self, bytes: u64) -> Nanos {
        let rate = self.copy_rate.max(1);
        // Wide division is slow, and only more than 18 GB need it.
        match bytes.checked_mul(1_000_000_000) {
            Some(product) => Nanos(product / rate),
            None => Nanos((u128::from(bytes) * 1_000_000_000 / u128::from(rate)) as u64),
        }
    }
}

impl Default for CallCosts {
    fn default() -> Self {
        Self {
            call: Nanos(400),
            name: Nanos::from_micros(4),
            character: 2_000,
            entry: Nanos(60),
            copy_rate: 8_000_000_000,
        }
    }
}

/// A host. Defaults are Linux of today; the sources are `Documentation/admin-guide/sysctl/vm.rst`
/// for write-back, `Documentation/ABI/testing/sysfs-class-bdi` and `sysfs-block` for requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostSpec {
    /// Whose defaults apply where a value is left to the kernel: how far it reads ahead on an array.
    /// Default Linux 6.1.
    pub kernel: Kernel,
    /// Memory in bytes, of which dirty limits are shares, at least 8 MiB. Default 8 GiB.
    pub memory: u64,
    /// What of it caches data that are used once, at least 8 MiB: the rest holds programs, the kernel and
    /// pages that were used twice, which Linux keeps on a list of their own. Default all.
    pub cache: Option<u64>,
    /// Above this, write-back begins. Default 10 %.
    pub dirty_background: DirtyLimit,
    /// Above this, writers wait. Default 20 %.
    pub dirty: DirtyLimit,
    /// Dirty data are written back at this age. Default 30 s.
    pub dirty_expire: Nanos,
    /// How often their age is looked at. Default 5 s.
    pub writeback_interval: Nanos,
    /// Bytes of a file that are written back before it is the next one's turn. Default 4 MiB:
    /// `MAX_WRITEBACK_PAGES` of 2.6. Today the unit of a turn (`MIN_WRITEBACK_PAGES`), which is longer where much
    /// may be dirty.
    pub writeback_chunk: u64,
    /// The read-ahead window grows to this many bytes; 0 switches read-ahead off. Default: what the
    /// kernel sets for the array, see [`read_ahead_for`](super::kernel::read_ahead_for); a host that
    /// is not told of an array takes 128 KiB (`read_ahead_kb`).
    pub read_ahead: Option<u64>,
    /// How windows open and grow. Default as Linux does it since 2.6.23.
    pub read_ahead_rule: ReadAheadRule,
    /// Whether a read longer than the window is asked for in requests as long as the device takes.
    /// Default yes: since 4.10.
    pub long_reads: bool,
    /// And begins with at least this many. Default 16 KiB: four times a read of a page.
    pub read_ahead_start: u64,
    /// The longest request to the array in bytes. Default 1 MiB: 256 pages (`BIO_MAX_VECS`, include/linux/bio.h).
    pub longest_request: u64,
    /// The longest request to a drive in bytes. Default 1,280 KiB (`BLK_DEF_MAX_SECTORS_CAP`, include/linux/blkdev.h;
    /// `max_sectors_kb`).
    pub longest_command: u64,
    /// Writes on their way to the array at once. Default 128: `nr_requests`.
    pub requests: u32,
    /// Ticks of the kernel's timers a second, by which md's background work sleeps (`CONFIG_HZ`). Default 250, as
    /// Debian's kernels have it.
    pub hz: u32,
    /// Processor cores. Default 4.
    pub cores: u32,
    /// CPU time after which a process makes room for another. Default 3 ms: `base_slice` of the
    /// scheduler for four cores and more.
    pub slice: Nanos,
    /// CPU time of calls.
    pub costs: CallCosts,
    /// Whether the array begins a write that a flush is to precede together with the flush
    /// ([`Kernel::flushes_beside_writes`]). Default no: a drive does one after the other.
    pub flushes_beside_writes: bool,
    /// Whether reading a file changes its inode, once a second: `atime`. Default no: `relatime` (since
    /// 2.6.30) does so once a day.
    pub access_times: bool,
    /// Whether reads under way on PATA channels stand still while the CPU copies for the only process
    /// there is: its copying and its reading take turns. Counts where there is a memory path. Default no.
    pub lone_reader_waits: bool,
    /// The filesystem.
    pub filesystem: FilesystemSpec,
}

impl Default for HostSpec {
    fn default() -> Self {
        Self {
            kernel: Kernel::Linux6_1,
            memory: 8 << 30,
            cache: None,
            dirty_background: DirtyLimit::Percent(10),
            dirty: DirtyLimit::Percent(20),
            dirty_expire: Nanos::from_millis(30_000),
            writeback_interval: Nanos::from_millis(5_000),
            writeback_chunk: 4 << 20,
            read_ahead: None,
            read_ahead_rule: ReadAheadRule::OnDemand,
            long_reads: true,
            read_ahead_start: 16 << 10,
            longest_request: 1 << 20,
            longest_command: 1280 << 10,
            requests: 128,
            hz: 250,
            cores: 4,
            slice: Nanos::from_millis(3),
            costs: CallCosts::default(),
            flushes_beside_writes: false,
            access_times: false,
            lone_reader_waits: false,
            filesystem: FilesystemSpec::default(),
        }
    }
}

/// Fewest bytes of memory for the page cache.
const LEAST_MEMORY: u64 = 8 << 20;

impl HostSpec {
    /// Checks that a host can be like this.
    ///
    /// # Errors
    /// Names the first value that cannot be, and what would be right.
    pub fn check(&self) -> Result<(), String> {
        let filesystem = &self.filesystem;
        let journal = filesystem.journal.map_or(1 << 20, |journal| journal.bytes);
        let rules = [
            (self.memory >= LEAST_MEMORY, "memory: at least 8 MiB"),
            (self.cache.is_none_or(|cache| cache >= LEAST_MEMORY), "cache: at least 8 MiB"),
            (self.writeback_interval > Nanos::ZERO, "writeback_interval: more than nothing"),
            (self.writeback_chunk >= BLOCK, "writeback_chunk: at least 4 KiB"),
            (self.longest_request >= BLOCK, "longest_request: at least 4 KiB"),
            (self.longest_request <= 1 << 30, "longest_request: at most 1 GiB"),
            (self.longest_command >= BLOCK, "longest_command: at least 4 KiB"),
            (self.requests > 0, "requests: at least 1"),
            ((24..=1_000).contains(&self.hz), "hz: 24 to 1,000"),
            (self.cores > 0, "cores: at least 1"),
            (self.slice > Nanos::ZERO, "slice: more than nothing"),
            (filesystem.group_bytes >= 16 << 20, "group_bytes: at least 16 MiB"),
            (filesystem.inode_ratio >= 1 << 10, "inode_ratio: at least 1 KiB"),
            ((64..=BLOCK).contains(&filesystem.inode_bytes), "inode_bytes: 64 to 4,096"),
            (filesystem.inode_bytes <= filesystem.inode_ratio / 2, "inode_ratio: more, or no room"),
            (filesystem.inode_read_ahead > 0, "inode_read_ahead: at least 1"),
            (filesystem.allocation > 0, "allocation: at least 1"),
            (
                filesystem.block >= BLOCK && filesystem.block.is_multiple_of(BLOCK),
                "block: a multiple of 4 KiB",
            ),
            (filesystem.indirect.is_none_or(|many| many > 1), "indirect: at least 2, or none"),
            (
                filesystem.most_in_group.is_none_or(|most| most >= 1 << 20),
                "most_in_group: at least 1 MiB, or none",
            ),
            (journal >= 1 << 20, "journal: at least 1 MiB"),
        ];
        let broken = rules.iter().find(|(holds, _)| !holds);
        broken.map_or(Ok(()), |(_, rule)| Err(format!("the host's {rule}")))
    }

    /// Pages that the read-ahead window grows to.
    pub(super) fn read_ahead_pages(&self) -> u64 {
        self.read_ahead.unwrap_or(super::kernel::READ_AHEAD) / BLOCK
    }

    /// Pages that may be cached.
    pub(super) fn pages(&self) -> u64 {
        self.cache.map_or(self.memory, |cache| cache.min(self.memory)) / BLOCK
    }

    /// Dirty pages above which write-back begins.
    pub(super) fn background(&self) -> u64 {
        self.dirty_background.pages(self.memory).min(self.pages() / 2)
    }

    /// Dirty pages and pages being written above which writers wait. Never so few that one piece of a
    /// write has no room above the background limit, nor all memory.
    pub(super) fn limit(&self) -> u64 {
        let least = self.background() + 2 * PIECE / BLOCK;
        self.dirty.pages(self.memory).min(self.pages() * 3 / 4).max(least)
    }
}

/// Pages that may be dirty, worked out once.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// Above this, write-back begins.
    pub(super) background: u64,
    /// Above this, counting those being written, writers wait.
    pub(super) dirty: u64,
    /// Pages of a file that are written back in its turn.
    pub(super) turn: u64,
}

/// Half of what Linux takes a device to write a second until it knows better (`INIT_BW`, mm/page-writeback.c).
const HALF_INITIAL_BANDWIDTH: u64 = 50 << 20;
/// A turn is this part of what may be dirty (`DIRTY_SCOPE`, mm/page-writeback.c).
const DIRTY_SCOPE: u64 = 8;

impl Limits {
    pub(super) fn of(spec: &HostSpec) -> Self {
        let unit = spec.writeback_chunk / BLOCK;
        // writeback_chunk_size of fs/fs-writeback.c, 3.4 to 6.12.
        let most = (spec.limit() / DIRTY_SCOPE).min(HALF_INITIAL_BANDWIDTH / BLOCK);
        let turn = match spec.kernel {
            kernel if kernel.is_of_today() => (most + unit) / unit * unit,
            _ => unit,
        };
        Self { background: spec.background(), dirty: spec.limit(), turn }
    }
}

/// Bytes that are copied between looks at the limits: as with Linux's `ratelimit_pages`, some pages
/// go unobserved.
pub(super) const PIECE: u64 = 256 << 10;
