//! What a workload amounts to: its processes, what they share, what must be there before.

use std::fmt;
use std::sync::Arc;

use raidlab_core::Time;

use crate::op::{FilePath, Op, OpResult};

/// A process: a generator of operations. Same seed and results, same operations.
pub trait Process: Send + fmt::Debug {
    /// What to do next. `now` is the time since the run's start by the target's clock, `last` how the
    /// operation before went. Not called again after [`Op::Done`].
    fn next(&mut self, now: Time, last: OpResult) -> Op;
}

/// A process in a plan.
#[derive(Debug)]
pub struct Planned {
    /// Which copy of the workload it belongs to, from 0: its end is the end of the last of them.
    pub copy: u32,
    /// What it does.
    pub process: Box<dyn Process>,
}

/// Bytes of a file from elsewhere.
pub trait Bytes: Send + Sync + fmt::Debug {
    /// How many.
    fn len(&self) -> u64;

    /// Whether there are none.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Fills `into` with those from `at` on; `at + into.len()` is at most [`len`](Self::len).
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

/// A file that must be there, outside the target, before the run.
#[derive(Clone, Debug)]
pub struct SourceFile {
    /// Its name below [`Root::Source`](crate::Root::Source).
    pub name: Arc<str>,
    /// What is in it.
    pub bytes: Arc<dyn Bytes>,
}

/// A file the processes use, at its longest: all that a target without a filesystem must know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileNeed {
    /// Its name.
    pub path: FilePath,
    /// Its greatest length in bytes.
    pub bytes: u64,
    /// Where it lies is rounded down to a multiple of this many bytes.
    pub unit: u64,
}

/// What memory should hold of the target's files when the run starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Memory {
    /// Nothing: synced and dropped before.
    Cold,
    /// What [`Plan::warm`] has read.
    Warm,
    /// Whatever is there; the workload makes its own arrangements, as `hdparm -T` does.
    AsIs,
    /// What preparing left there, part of it not yet on the drives: the run follows at once, as in a
    /// script that writes files and then reads them.
    JustWritten,
}

/// What is expected of a file after the run, for verification outside the timed span.
#[derive(Clone, Debug)]
pub struct Expected {
    /// The file.
    pub path: FilePath,
    /// What is in it, all of it; its length too.
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

/// A workload with all choices made. Stages go one after the other; only `run` is measured and may use
/// barriers, queues and marks. Between `prepare` and `warm` the target is synced and, as `memory` says,
/// what it holds in memory is dropped.
#[derive(Debug, Default)]
pub struct Plan {
    /// Makes the files that the run finds.
    pub prepare: Vec<Planned>,
    /// Reads what the run is to find in memory.
    pub warm: Vec<Planned>,
    /// The run.
    pub run: Vec<Planned>,
    /// The names of the phases, in the order of their indices; at least one.
    pub phases: Vec<&'static str>,
    /// How many processes come to each barrier.
    pub barriers: Vec<u32>,
    /// How many queues of tickets there are.
    pub queues: u16,
    /// Files from elsewhere.
    pub sources: Vec<SourceFile>,
    /// What memory holds at the start of the run.
    pub memory: Memory,
    /// Why a filesystem is needed; `None` when files at fixed places do.
    pub needs_filesystem: Option<&'static str>,
    /// All files on the target, where fixed places do.
    pub files: Vec<FileNeed>,
    /// On a target without a filesystem: the bytes from its start that the files are spread over; all
    /// of it where nothing is said.
    pub span: Option<u64>,
    /// Whether processes look at the time that they are told, or at tickets that depend on it.
    pub asks_time: bool,
    /// What the files hold in the end; may be left out where [`Setting::checked`] says that nobody looks.
    pub expected: Vec<Expected>,
    /// Bytes on the target at most, for a check of the room there.
    pub room: u64,
}

impl Default for Memory {
    /// [`Memory::Cold`].
    fn default() -> Self {
        Self::Cold
    }
}

/// What a workload is planned for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Setting {
    /// How many copies at once, at least 1, each with files of its own.
    pub copies: u32,
    /// Every random choice is drawn from this.
    pub seed: u64,
    /// Bytes of the raw target; `None` where there is a filesystem.
    pub space: Option<u64>,
    /// Memory of the host in bytes, for defaults such as twice memory; `None` where unknown.
    pub host_memory: Option<u64>,
    /// Whether what the files hold is looked at afterwards: in virtual time nothing has contents, and
    /// to name what thousands of files should hold takes longer than to plan everything else.
    pub checked: bool,
}

impl Setting {
    /// Copies of a workload from a seed, on a filesystem.
    pub const fn new(copies: u32, seed: u64) -> Self {
        Self { copies, seed, space: None, host_memory: None, checked: true }
    }
}
