//! The plan of a workload: its processes, what they share, and which files must exist before the run.

use std::fmt;
use std::sync::Arc;

use raidlab_core::Time;

use crate::op::{FilePath, Op, OpResult};

/// A process: a generator of operations. The same seed and the same results give the same operations.
pub trait Process: Send + fmt::Debug {
    /// The next operation. `now` is the time since the run's start by the target's clock, `last` the result of the
    /// operation before. Not called again after [`Op::Done`].
    fn next(&mut self, now: Time, last: OpResult) -> Op;
}

/// A process in a plan.
#[derive(Debug)]
pub struct Planned {
    /// The copy of the workload that it belongs to, from 0. A copy ends when the last of its processes ends.
    pub copy: u32,
    /// What it does.
    pub process: Box<dyn Process>,
}

/// The contents of a file, as a function of the position.
pub trait Bytes: Send + Sync + fmt::Debug {
    /// How many.
    fn len(&self) -> u64;

    /// Whether there are no bytes.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Fills `into` with the bytes from `at` on; `at + into.len()` is at most [`len`](Self::len).
    fn fill(&self, at: u64, into: &mut [u8]);
}

/// Bytes made by [`content::fill`](crate::content::fill).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SeededBytes {
    /// The seed.
    pub seed: u64,
    /// How many.
    pub len: u64,
}

impl Bytes for SeededBytes {
    fn len(&self) -> u64 {
        self.len
    }

    fn fill(&self, at: u64, into: &mut [u8]) {
        crate::content::fill(self.seed, at, into);
    }
}

/// A file that must exist outside the target before the run.
#[derive(Clone, Debug)]
pub struct SourceFile {
    /// Its name below [`Root::Source`](crate::Root::Source).
    pub name: Arc<str>,
    /// Its contents.
    pub bytes: Arc<dyn Bytes>,
}

/// A file that the processes use, and its greatest length: all that a target without a filesystem must know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileNeed {
    /// Its name.
    pub path: FilePath,
    /// Its greatest length in bytes.
    pub bytes: u64,
    /// Its place is rounded down to a multiple of this many bytes.
    pub unit: u64,
}

/// What memory should hold of the target's files when the run starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Memory {
    /// Nothing: files are synced and dropped before.
    Cold,
    /// What [`Plan::warm`] has read.
    Warm,
    /// Whatever is there; the workload prepares its own cache state, as `hdparm -T` does.
    AsIs,
    /// What preparing left there, part of it not yet on the drives. The run follows at once, as in a script that writes
    /// files and then reads them.
    JustWritten,
}

/// The expected contents of a file after the run, for verification outside the timed span.
#[derive(Clone, Debug)]
pub struct Expected {
    /// The file.
    pub path: FilePath,
    /// All of its contents, and thereby its length.
    pub bytes: Arc<dyn Bytes>,
}

/// Zeroes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Zeroes {
    /// How many.
    pub len: u64,
}

impl Bytes for Zeroes {
    fn len(&self) -> u64 {
        self.len
    }

    fn fill(&self, _at: u64, into: &mut [u8]) {
        into.fill(0);
    }
}

/// A workload with all choices made: three stages that run one after the other (`prepare`, `warm`, `run`), and what
/// they need. Only `run` is measured and may use barriers, queues and marks. Between `prepare` and `warm` the
/// target is synced and, depending on `memory`, what it holds in memory is dropped.
#[derive(Debug, Default)]
pub struct Plan {
    /// Creates the files that the run finds.
    pub prepare: Vec<Planned>,
    /// Reads the data that the run is to find in memory.
    pub warm: Vec<Planned>,
    /// The run.
    pub run: Vec<Planned>,
    /// The names of the phases, in the order of their indices; at least one.
    pub phases: Vec<&'static str>,
    /// How many processes each barrier waits for.
    pub barriers: Vec<u32>,
    /// How many queues of tickets there are.
    pub queues: u16,
    /// Files from outside the target.
    pub sources: Vec<SourceFile>,
    /// What memory holds at the start of the run.
    pub memory: Memory,
    /// Why a filesystem is needed; `None` when files at fixed places are enough.
    pub needs_filesystem: Option<&'static str>,
    /// All files on the target, where fixed places are enough.
    pub files: Vec<FileNeed>,
    /// On a target without a filesystem: the number of bytes from its start over which the files are spread; `None` for
    /// all of it.
    pub span: Option<u64>,
    /// Whether processes use the time that they are given, or tickets that depend on it.
    pub asks_time: bool,
    /// What the files hold at the end; may be left out where [`Setting::checked`] is false.
    pub expected: Vec<Expected>,
    /// The most bytes that the files take on the target, to check that there is enough space.
    pub room: u64,
}

impl Default for Memory {
    /// [`Memory::Cold`].
    fn default() -> Self {
        Self::Cold
    }
}

/// The circumstances that a workload is planned for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Setting {
    /// How many copies run at once, at least 1, each with files of its own.
    pub copies: u32,
    /// Every random choice is drawn from this.
    pub seed: u64,
    /// Bytes of the raw target; `None` where there is a filesystem.
    pub space: Option<u64>,
    /// Memory of the host in bytes, for defaults such as twice memory; `None` where unknown.
    pub host_memory: Option<u64>,
    /// Whether the contents of files are verified afterwards. In virtual time nothing has contents, and to say what
    /// thousands of files should hold takes longer than to plan everything else.
    pub checked: bool,
}

impl Setting {
    /// Copies of a workload from a seed, on a filesystem.
    pub const fn new(copies: u32, seed: u64) -> Self {
        Self { copies, seed, space: None, host_memory: None, checked: true }
    }
}
