//! A host in virtual time: page cache, read-ahead, write-back and a filesystem over one array.
//!
//! The [`Host`] has the shape of the core and of the drives: a value without clock or I/O. Hand in what
//! happens with [`Host::handle`], then drain [`Host::poll`] until it gives `None`. It moves no bytes; it
//! says which requests an array gets ([`HostOutput::Block`]), how long the CPU works
//! ([`HostOutput::Compute`]) and when calls are done. Times are integers, lists ordered: the same
//! inputs give the same outputs on every machine.
//!
//! What is modelled, by file: the page cache (`cache`), read-ahead (`read`), writes, dirty limits
//! (`write`, `writeback`), `fsync` (`sync`), past the cache (`direct`), the journal and full transactions
//! (`journal`), names (`names`), where files lie (`space`, `files`, `blocks`). Presets are those of kernels
//! ([`Kernel`]), filesystems ([`FilesystemKind`]) and processors ([`Processor`]); every mechanism has a
//! switch ([`Mechanism`]).
//!
//! **Left out**: the two lists of Linux's page replacement (here: least recently used, by segments of
//! 256 KiB; [`HostSpec::cache`] says what is left for data used once), the gradual slowing of writers
//! between the limits (here: they wait at the upper one), blocks of extent trees, waiting for room in the
//! journal (but not in a transaction), soft updates of FFS.

mod ages;
mod blocks;
mod blockset;
mod cache;
mod copy;
mod direct;
mod files;
mod filesystem;
mod in_flight;
mod journal;
mod kernel;
mod mechanism;
mod names;
mod processor;
mod read;
mod space;
mod spec;
mod sync;
mod task;
mod write;
mod writeback;

use std::collections::VecDeque;
use std::fmt;
use std::ops::Range;

use raidlab_core::contract::IoOp;
use raidlab_core::units::{Nanos, Sector, Sectors, Time};

use blocks::Pointers;
use blockset::BlockSet;
use cache::{Cache, Page};
use files::{File, Files, Waiter};
pub use filesystem::FilesystemKind;
use in_flight::{InFlight, Reading};
use journal::Journal;
pub use kernel::{Kernel, READ_AHEAD, ReadAheadRule, read_ahead_for};
pub use mechanism::Mechanism;
pub use processor::Processor;
use space::Space;
use spec::Limits;
pub use spec::{BLOCK, CallCosts, DirtyLimit, FilesystemSpec, HostSpec, JournalPlace, JournalSpec};
use task::{Kind, Names, Next, Sync, Task};
use writeback::Writeback;

/// Sectors of a block.
const BLOCK_SECTORS: u64 = BLOCK / 512;

/// The metadata of the filesystem, as a file whose pages are blocks.
const METADATA: u64 = u64::MAX;

/// Paths kept for [`Host::path`]: no more are handed in before their calls are.
const SPARE_PATHS: usize = 16;

/// On whose behalf write-back and journal send requests: no process's.
pub const KERNEL: u32 = u32::MAX - 1;

/// A file or directory, by the caller's number, that is never used again; numbers from 0 upwards
/// are found fastest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Inode(pub u64);

/// An open file, by the host's number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HostDescriptor(pub u32);

/// A call under way, by the caller's number; small numbers, used again when it is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TaskId(pub u32);

/// A part of a path: a name in a directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathComponent {
    /// The directory.
    pub directory: Inode,
    /// A hash of the name, which says which block of the directory it is in.
    pub name: u64,
    /// The file it stands for, where there is one.
    pub file: Option<Inode>,
}

/// What an operation on names does when it has looked up its path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// Nothing: `stat`, or opening what is there.
    Nothing,
    /// The path's last name now stands for a new file.
    Create {
        /// Its number.
        file: Inode,
        /// Whether it is a directory.
        is_directory: bool,
    },
    /// The path's last name goes.
    Remove {
        /// What it stood for.
        file: Inode,
        /// Whether the file goes with it: once nobody has it open.
        is_last: bool,
    },
    /// A file gets one name more.
    Link {
        /// The file.
        file: Inode,
        /// The directory with the new name.
        directory: Inode,
        /// A hash of the new name.
        name: u64,
    },
    /// The path's last name becomes another one.
    Rename {
        /// The file.
        file: Inode,
        /// The directory with the new name.
        directory: Inode,
        /// A hash of the new name.
        name: u64,
        /// The file that had that name, when it was its last.
        gone: Option<Inode>,
        /// Whether anything had that name.
        replaces: bool,
    },
    /// A file's attributes are set.
    Attribute(Inode),
    /// A directory is listed.
    List(Inode),
    /// A file gets another length.
    Truncate(Inode, u64),
}

/// Where a copy comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// An open file.
    File(HostDescriptor),
    /// What is in memory anyway and on no filesystem of this host.
    Memory {
        /// Bytes of it.
        size: u64,
    },
}

/// What a process asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Call {
    /// Reads at a place, `times` times one behind the other; ends where the file ends.
    Read {
        /// The file.
        handle: HostDescriptor,
        /// The first byte.
        at: u64,
        /// Bytes of each, more than nothing.
        len: u64,
        /// How often.
        times: u64,
        /// Whether data go to the process; not when they are copied within the kernel.
        copies: bool,
    },
    /// Writes at a place, `times` times one behind the other.
    Write {
        /// The file.
        handle: HostDescriptor,
        /// The first byte.
        at: u64,
        /// Bytes of each, more than nothing.
        len: u64,
        /// How often.
        times: u64,
    },
    /// Reads or writes at a place, `times` times one behind the other, and works on each byte after or
    /// before that; ends where a file that is read ends.
    StdioBytes {
        /// The file.
        handle: HostDescriptor,
        /// The first byte.
        at: u64,
        /// Bytes of each, more than nothing.
        len: u64,
        /// How often.
        times: u64,
        /// Whether they are reads.
        is_read: bool,
    },
    /// Reads at one place and writes what came at another, `times` times one behind the other; ends where
    /// the source ends, with what there is of it.
    Copy {
        /// Where it is read.
        from: Source,
        /// The first byte there.
        from_at: u64,
        /// Where it is written; may be the same file.
        to: HostDescriptor,
        /// The first byte there.
        at: u64,
        /// Bytes of each read, more than nothing.
        len: u64,
        /// How often at most.
        times: u64,
    },
    /// Makes a file or directory durable.
    Sync {
        /// Which.
        file: Inode,
        /// Without metadata that nobody needs to find the data: `fdatasync`.
        data_only: bool,
    },
    /// Makes everything durable.
    SyncAll,
    /// An operation on names.
    Names {
        /// The path that is looked up.
        path: Vec<PathComponent>,
        /// What is done then.
        change: Change,
    },
}

/// An input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HostInput {
    /// A process calls.
    Call {
        /// The caller's number for the call.
        task: TaskId,
        /// On whose behalf: for schedulers that tell processes apart.
        process: u32,
        /// What.
        call: Call,
    },
    /// The CPU has done what [`HostOutput::Compute`] asked for.
    Computed(TaskId),
    /// A request of [`HostOutput::Block`] was carried out.
    Ended(BlockId),
    /// The time asked for by [`HostOutput::WakeAt`] has come. Early or needless ones do no harm.
    Wake,
}

/// A request to the array, by the host's number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BlockId(pub u32);

/// A request to the array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockIo {
    /// The host's name for it.
    pub id: BlockId,
    /// On whose behalf.
    pub process: u32,
    /// What.
    pub op: IoOp,
    /// The first sector.
    pub at: Sector,
    /// How many sectors; none for a flush.
    pub len: Sectors,
    /// Whether it is to be durable when it is answered.
    pub fua: bool,
    /// Whether it is write-back, which nobody waits for by itself: an array may hold it until more has come.
    pub write_back: bool,
}

/// An output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostOutput {
    /// Hand this to the array.
    Block(BlockIo),
    /// Let the CPU work for a call, then hand in [`HostInput::Computed`].
    Compute {
        /// Which call.
        task: TaskId,
        /// For how long in the kernel.
        cost: Nanos,
        /// For how long besides on what the process itself does with its bytes.
        user: Nanos,
        /// How much of that it copies data: what goes through memory, and may wait there.
        copies: Nanos,
        /// Whether it is for a read.
        is_read: bool,
    },
    /// Let the CPU work for a call, which is done then: nothing is handed in, and its number may be used
    /// again.
    Last {
        /// Which call.
        task: TaskId,
        /// For how long.
        cost: Nanos,
    },
    /// So many reads or writes of a call ended now, the first of them having begun where those before
    /// ended.
    Moved {
        /// Which call.
        task: TaskId,
        /// Whether they are reads.
        is_read: bool,
        /// How many.
        calls: u64,
        /// Bytes of them together.
        bytes: u64,
    },
    /// A call is done; its number may be used again.
    Done {
        /// Which.
        task: TaskId,
        /// Bytes it moved.
        moved: u64,
    },
    /// A call cannot be carried out; its number may be used again.
    Failed {
        /// Which.
        task: TaskId,
        /// Why.
        failure: Failure,
    },
    /// Hand in [`HostInput::Wake`] at this time. Replaces the time asked for before.
    WakeAt(Time),
}

/// Why a call cannot be carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// No block is free.
    NoSpace {
        /// Bytes of the filesystem.
        of: u64,
    },
    /// No inode is free.
    NoInodes,
    /// Past the page cache, places and lengths are multiples of 512 bytes.
    Unaligned,
    /// There is no such file, or it is not open.
    NoFile,
    /// Copying, or going byte by byte, past the page cache: not supported.
    Direct,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoSpace { of } => {
                write!(f, "no space left on the modelled filesystem of {} MiB", of >> 20)
            }
            Self::NoInodes => f.write_str("no inode left; use more groups, or a lower inode_ratio"),
            Self::Unaligned => {
                f.write_str("a direct read or write must begin and end at multiples of 512 bytes")
            }
            Self::NoFile => f.write_str("no such file is open"),
            Self::Direct => f.write_str(
                "rewriting, copying and single bytes past the page cache are not supported on \
                 modelled hosts",
            ),
        }
    }
}

/// What a request to the array is for.
#[derive(Clone, Debug)]
enum Purpose {
    /// Pages are read.
    Read { file: u64, pages: Range<u64> },
    /// Pages are written.
    Write { file: u64, pages: Range<u64>, number: u64, is_fresh: bool },
    /// Of a task: direct, or a flush.
    Task(u32),
    /// Of a commit.
    Commit,
}

/// An open file: how it was opened, and its read-ahead.
#[derive(Clone, Copy, Debug)]
struct Open {
    file: u64,
    direct: bool,
    sync: bool,
    ahead: read::Ahead,
    /// What is to be read next: put off while an indirect block is read.
    pending: [Option<read::Window>; 2],
}

/// A host. See the module for what is modelled.
#[derive(Clone, Debug)]
pub struct Host {
    spec: HostSpec,
    limits: Limits,
    now: Time,
    files: Files,
    open: Vec<Option<Open>>,
    cache: Cache,
    space: Space,
    journal: Journal,
    back: Writeback,
    tasks: Vec<Option<Box<Task>>>,
    /// Memory of calls that are done, for those to come.
    #[expect(clippy::vec_box, reason = "a call under way moves in and out as a pointer")]
    spare_tasks: Vec<Box<Task>>,
    ready: VecDeque<u32>,
    /// Of operations on names that are done, for those to come.
    spare_names: Vec<Names>,
    spare_paths: Vec<Vec<PathComponent>>,
    walked: names::Walked,
    in_flight: Vec<Option<InFlight>>,
    free_flights: Vec<u32>,
    reading: Reading,
    /// Blocks of metadata that were ever written: all others need not be read.
    known: BlockSet,
    root: u64,
    /// How files are mapped by pointers.
    pointers: Option<Pointers>,
    wake: Option<Time>,
    /// See [`lay_out`](Self::lay_out).
    prefills: bool,
    outputs: VecDeque<HostOutput>,
}

impl Host {
    /// An empty filesystem on an array of this capacity, whose root directory is `root`.
    ///
    /// # Errors
    /// When the host cannot be like this, or the array is smaller than 16 MiB.
    pub fn new(spec: &HostSpec, capacity: Sectors, root: Inode) -> Result<Self, String> {
        spec.check()?;
        if capacity.bytes() < 16 << 20 {
            return Err(format!("a filesystem needs at least 16 MiB, the array has {capacity}"));
        }
        let mut space = Space::new(&spec.filesystem, capacity.bytes() / BLOCK);
        let inode = space.take_inode(0, true).ok_or("the filesystem has no room for its root")?;
        let mut host = Self {
            spec: *spec,
            limits: Limits::of(spec),
            now: Time::ZERO,
            files: Files::default(),
            open: Vec::new(),
            cache: Cache::new(spec.pages()),
            journal: Journal::new(space.journal),
            back: Writeback::default(),
            tasks: Vec::new(),
            spare_tasks: Vec::new(),
            ready: VecDeque::new(),
            spare_names: Vec::new(),
            spare_paths: Vec::new(),
            walked: names::Walked::default(),
            in_flight: Vec::new(),
            free_flights: Vec::new(),
            reading: Reading::default(),
            known: BlockSet::default(),
            root: root.0,
            pointers: spec.filesystem.pointers(),
            wake: None,
            prefills: false,
            outputs: VecDeque::new(),
            space,
        };
        host.files.insert(METADATA, File::new(None, 0, false));
        let mut directory = File::new(Some(inode), host.space.data_start(0), true);
        host.add_directory_block(&mut directory);
        host.files.insert(root.0, directory);
        Ok(host)
    }

    /// Opens a file that is there; `direct` is past the page cache, `sync` makes every write durable.
    pub fn open(&mut self, file: Inode, direct: bool, sync: bool) -> Option<HostDescriptor> {
        self.files.get_mut(&file.0)?.opened += 1;
        let ahead = read::Ahead::default();
        let open = Open { file: file.0, direct, sync, ahead, pending: [None; 2] };
        let free = self.open.iter().position(Option::is_none);
        let index = free.unwrap_or_else(|| {
            self.open.push(None);
            self.open.len() - 1
        });
        self.open[index] = Some(open);
        Some(HostDescriptor(index as u32))
    }

    /// Closes it. No call on it is under way.
    pub fn close(&mut self, handle: HostDescriptor) {
        let Some(open) = self.open.get_mut(handle.0 as usize).and_then(Option::take) else {
            return;
        };
        if let Some(file) = self.files.get_mut(&open.file) {
            file.opened -= 1;
            if file.opened == 0 {
                if file.is_gone {
                    self.discard(open.file);
                } else {
                    self.give_back_kept(open.file);
                }
            }
        }
    }

    /// A file's length in bytes; nothing of what is gone.
    #[inline]
    pub fn size(&self, file: Inode) -> u64 {
        self.files.get(&file.0).map_or(0, |file| file.size)
    }

    /// Where a file lies: its first byte, the sector and the number of sectors of each piece.
    pub fn extents(&self, file: Inode) -> Vec<(u64, Sector, Sectors)> {
        let pieces = self.files.get(&file.0).into_iter().flat_map(File::extents);
        let sectors = |(page, block, len)| {
            (page * BLOCK, Sector(block * BLOCK_SECTORS), Sectors(len * BLOCK_SECTORS))
        };
        pieces.map(sectors).collect()
    }

    /// Bytes in the page cache.
    pub fn cached(&self) -> u64 {
        self.cache.pages() * BLOCK
    }

    /// Bytes in the page cache that are dirty.
    pub fn dirty(&self) -> u64 {
        self.cache.dirty() * BLOCK
    }

    /// Bytes in the page cache that are dirty or being written.
    pub fn unwritten(&self) -> u64 {
        self.cache.unwritten() * BLOCK
    }

    /// Bytes free for data, with those that files keep for themselves.
    pub fn available(&self) -> u64 {
        let kept: u64 = self.files.iter().map(|(_, file)| file.keeps_blocks()).sum();
        (self.space.available() + self.space.kept_for_small() + kept) * BLOCK
    }

    /// From now on, or no more, what is written gets its place and goes nowhere, neither into the page cache
    /// nor to the array: for files that must lie somewhere before a run begins, and are not to be in
    /// memory then. Where places are chosen when data are written back, they are written as always.
    pub fn prefill(&mut self, on: bool) {
        self.prefills = on;
    }

    /// Drops what is clean: `posix_fadvise(DONTNEED)` on a file, `/proc/sys/vm/drop_caches` for all.
    pub fn drop_cached(&mut self, file: Option<Inode>) {
        self.cache.drop_clean(file.map(|file| file.0));
    }

    /// Hands in what happened.
    #[inline(always)]
    pub fn handle(&mut self, now: Time, input: HostInput) {
        self.now = now;
        match input {
            HostInput::Call { task, process, call } => self.call(task.0, process, call),
            HostInput::Computed(task) => {
                if let Some(Some(one)) = self.tasks.get_mut(task.0 as usize) {
                    one.computes = false;
                    self.ready.push_back(task.0);
                }
            }
            HostInput::Ended(id) => self.ended(id.0),
            HostInput::Wake => self.wake = None,
        }
        self.run();
    }

    /// Whether there is an output.
    #[inline]
    pub fn has_output(&self) -> bool {
        !self.outputs.is_empty()
    }

    /// The next output; `None` when there is none.
    #[inline]
    pub fn poll(&mut self) -> Option<HostOutput> {
        self.outputs.pop_front()
    }

    #[inline(never)]
    fn call(&mut self, id: u32, process: u32, call: Call) {
        let kind = match call {
            Call::Read { .. }
            | Call::Write { .. }
            | Call::StdioBytes { .. }
            | Call::Copy { .. } => task::transfer(&call),
            Call::Sync { file, data_only } => Some(Kind::Sync(Sync::of(Some(file.0), data_only))),
            Call::SyncAll => Some(Kind::Sync(Sync::of(None, false))),
            Call::Names { path, change } => self.begin_names(id, path, change).map(Kind::Names),
        };
        let Some(kind) = kind else { return };
        if self.tasks.len() <= id as usize {
            self.tasks.resize_with(id as usize + 1, || None);
        }
        let task = Task::new(process, kind);
        self.tasks[id as usize] = Some(match self.spare_tasks.pop() {
            Some(mut spare) => {
                *spare = task;
                spare
            }
            None => Box::new(task),
        });
        self.ready.push_back(id);
    }

    fn fail(&mut self, id: u32, failure: Failure) {
        self.outputs.push_back(HostOutput::Failed { task: TaskId(id), failure });
    }

    /// An empty path for [`Call::Names`], with the memory of one that was handed in before.
    pub fn path(&mut self) -> Vec<PathComponent> {
        self.spare_paths.pop().unwrap_or_default()
    }

    /// Goes on with everything that can.
    fn run(&mut self) {
        self.age();
        loop {
            while let Some(id) = self.ready.pop_front() {
                self.advance(id);
            }
            self.commit_if_due();
            self.pump();
            if self.ready.is_empty() {
                break;
            }
        }
        self.set_timer();
    }

    /// Goes on with a call as far as it gets.
    fn advance(&mut self, id: u32) {
        let Some(place) = self.tasks.get_mut(id as usize) else { return };
        if place.as_ref().is_none_or(|task| task.computes) {
            return;
        }
        let Some(mut task) = place.take() else { return };
        let next = self.step(id, &mut task);
        let name = TaskId(id);
        match next {
            Next::Wait => {
                self.tasks[id as usize] = Some(task);
                return;
            }
            Next::Compute { cost, user, copies, is_read } => {
                task.computes = true;
                self.tasks[id as usize] = Some(task);
                let compute = HostOutput::Compute { task: name, cost, user, copies, is_read };
                self.outputs.push_back(compute);
                return;
            }
            Next::Done => {
                self.outputs.push_back(HostOutput::Done { task: name, moved: task.moved });
            }
            Next::Failed(failure) => self.fail(id, failure),
        }
        if let Kind::Names(names) = &mut task.kind {
            self.spare_names.push(std::mem::take(names));
        }
        self.spare_tasks.push(task);
    }

    fn step(&mut self, id: u32, task: &mut Task) -> Next {
        let direct = match &task.kind {
            Kind::Read(transfer) | Kind::Write(transfer) => {
                match self.open.get(transfer.handle.0 as usize) {
                    Some(Some(open)) if open.direct && transfer.characters => {
                        return Next::Failed(Failure::Direct);
                    }
                    Some(Some(open)) => open.direct,
                    _ => return Next::Failed(Failure::NoFile),
                }
            }
            _ => false,
        };
        match task.kind {
            Kind::Read(_) | Kind::Write(_) if direct => self.direct(id, task),
            Kind::Read(_) => self.read(id, task),
            Kind::Write(_) => self.write(id, task),
            Kind::Copy(_) => self.copy(id, task),
            Kind::Sync(ref mut sync) => {
                let mut sync = sync.clone();
                let next = self.sync(id, task.process, &mut task.requests, &mut sync);
                task.kind = Kind::Sync(sync);
                next
            }
            Kind::Names(_) => self.name(id, task),
        }
    }

    /// Sends a request to the array.
    #[inline(always)]
    fn send(&mut self, io: BlockIo, purpose: Purpose) -> u32 {
        let flight = Some(InFlight::new(purpose));
        let slot = match self.free_flights.pop() {
            Some(slot) => {
                self.in_flight[slot as usize] = flight;
                slot
            }
            None => {
                self.in_flight.push(flight);
                self.in_flight.len() as u32 - 1
            }
        };
        self.outputs.push_back(HostOutput::Block(BlockIo { id: BlockId(slot), ..io }));
        slot
    }

    /// A request for blocks, without its number.
    fn blocks(process: u32, op: IoOp, block: u64, count: u64) -> BlockIo {
        let (at, len) = (Sector(block * BLOCK_SECTORS), Sectors(count * BLOCK_SECTORS));
        BlockIo { id: BlockId(0), process, op, at, len, fua: false, write_back: false }
    }

    #[inline(never)]
    fn ended(&mut self, slot: u32) {
        let Some(flight) = self.in_flight.get_mut(slot as usize).and_then(Option::take) else {
            return;
        };
        self.free_flights.push(slot);
        let (purpose, waiters) = flight.ended();
        match purpose {
            Purpose::Read { file, pages } => {
                for pages in self.reading.ended(file, pages, slot) {
                    self.cache.read(file, pages);
                }
            }
            Purpose::Write { file, pages, number, is_fresh } => {
                self.written(file, pages, number, is_fresh);
            }
            Purpose::Task(id) => {
                if let Some(Some(task)) = self.tasks.get_mut(id as usize) {
                    task.requests -= 1;
                    self.ready.push_back(id);
                }
            }
            Purpose::Commit => self.commit_request_ended(),
        }
        self.ready.extend(waiters);
    }

    /// A call waits for the request that reads a page.
    fn wait_for_page(&mut self, id: u32, file: u64, page: u64) {
        let slot = self.reading.of(file, page);
        match slot.and_then(|slot| self.in_flight.get_mut(slot as usize)?.as_mut()) {
            Some(flight) => flight.wait(id),
            None => {
                let page = self.cache.page(file, page);
                assert_ne!(page, Page::Reading, "a page that is being read comes with a request");
                self.ready.push_back(id);
            }
        }
    }

    /// A call waits until the writes of a file that are under way have ended; false when none is.
    fn wait_for_writes(&mut self, waiter: Waiter, file: u64) -> bool {
        let Some(file) = self.files.get_mut(&file) else { return false };
        let Some(last) = file.in_flight.last().copied() else { return false };
        file.waiters.push((last, waiter));
        true
    }

    /// Asks to be woken when the journal or the age of data will want it.
    fn set_timer(&mut self) {
        let commit = self.commit_at();
        let wake = match (commit, self.back.tick) {
            (Some(commit), Some(tick)) => Some(commit.min(tick)),
            (commit, tick) => commit.or(tick),
        };
        if wake != self.wake
            && let Some(at) = wake
        {
            self.wake = wake;
            self.outputs.push_back(HostOutput::WakeAt(at));
        }
    }
}

#[cfg(test)]
mod tests;
