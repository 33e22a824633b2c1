//! What a job file finds and leaves: its files before the run, and what they hold after it.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use raidlab_core::Time;

use super::options::Engine;
use super::task::{Extent, Task};
use crate::content::file_seed;
use crate::op::{Content, FileDescriptor, FilePath, Op, OpResult, OpenFlags};
use crate::plan::{Bytes, Expected, FileNeed, Planned, Process, SeededBytes, Zeroes};

/// Bytes of one write of a file that is laid out, and how many of them at least are one operation.
const BLOCK: u64 = 1 << 20;
const BLOCKS: u64 = 64;
/// Of the largest files such a part of what is left is one operation: whoever only wants to know how long they are goes
/// through all of these.
const PART: u64 = 512;

/// A file of the job file.
#[derive(Clone, Debug)]
pub(super) struct File {
    path: FilePath,
    copy: u32,
    /// Its length when all is done.
    len: u64,
    /// How much of it the run is to find; 0 when nothing is laid out.
    laid: u64,
    /// Where it lies on a target without a filesystem is a multiple of this.
    unit: u64,
    /// The wave and the extent of whoever uses it first, when that one only writes.
    written_first: Option<(u32, u64)>,
    /// What it holds in the end, where that can be told.
    end: Option<End>,
    number: u64,
    /// Its room is reserved before anything is written to it.
    allocates: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Laid,
    Written,
    Zeroes,
}

/// All files, in the order in which the jobs come to them.
pub(super) fn files(tasks: &[Task]) -> Vec<File> {
    let mut places: BTreeMap<FilePath, usize> = BTreeMap::new();
    let mut files: Vec<File> = Vec::new();
    for task in tasks.iter().filter(|task| task.job.engine != Engine::Null) {
        for extent in &task.files {
            let number = files.len();
            let index = *places.entry(extent.path.clone()).or_insert(number);
            if index == number {
                // One that may end early leaves a file that is too short for who reads it later.
                let is_whole = task.job.runtime.0 == 0 && task.job.number_ios == 0;
                let only_writes = !task.job.reads && !task.job.overwrite && is_whole;
                files.push(File {
                    path: extent.path.clone(),
                    copy: task.copy,
                    len: 0,
                    laid: 0,
                    unit: 4096,
                    written_first: only_writes.then(|| (task.wave, extent.end())),
                    end: None,
                    number: number as u64,
                    allocates: false,
                });
            }
            let file = &mut files[index];
            file.len = file.len.max(extent.end());
            file.allocates |= task.job.allocates;
            file.unit = file.unit.max(task.job.largest_block().next_multiple_of(4096));
            let is_there = file
                .written_first
                .is_some_and(|(wave, end)| wave < task.wave && end >= extent.end());
            if (task.job.reads || task.job.overwrite) && !is_there {
                file.laid = file.laid.max(extent.end());
            }
        }
    }
    // There may be a thousand files of each of thousands of processes.
    let mut writers = vec![Vec::new(); files.len()];
    for task in tasks.iter().filter(|task| task.job.writes) {
        let all = task.files.iter().fold(0u64, |all, extent| all.saturating_add(extent.len));
        for extent in &task.files {
            if let Some(file) = places.get(&extent.path) {
                writers[*file].push(Writer { task, extent, all });
            }
        }
    }
    for (file, writers) in files.iter_mut().zip(&writers) {
        file.end = end_of(file, writers);
    }
    files
}

/// Who writes a part of a file.
#[derive(Clone, Copy)]
struct Writer<'a> {
    task: &'a Task,
    extent: &'a Extent,
    /// Bytes of all files of the task.
    all: u64,
}

/// What a file holds in the end; `None` where that depends on the time, or on what was drawn.
fn end_of(file: &File, writers: &[Writer<'_>]) -> Option<End> {
    let Some(first) = writers.first() else { return (file.laid == file.len).then_some(End::Laid) };
    let first = &first.task.job;
    if writers.iter().any(|one| one.task.job.zero_buffers != first.zero_buffers) {
        return None;
    }
    let covers = |Writer { task, extent, all }: &Writer<'_>| {
        let job = &task.job;
        let is_whole = extent.offset == 0
            && extent.len == file.len
            && extent.len.is_multiple_of(job.blocks[1]);
        let every_block = if job.random { job.random_map } else { job.skip == 0 };
        let ends_by_bytes =
            !job.time_based && job.runtime.0 == 0 && job.number_ios == 0 && !job.reads;
        is_whole && every_block && ends_by_bytes && *all == task.pass && task.total >= task.pass
    };
    let end = if first.zero_buffers { End::Zeroes } else { End::Written };
    writers.iter().any(covers).then_some(end)
}

impl File {
    pub(super) fn path(&self) -> &FilePath {
        &self.path
    }

    pub(super) fn len(&self) -> u64 {
        self.len
    }

    /// Whether it is told what the file holds in the end.
    pub(super) fn is_known(&self) -> bool {
        self.end.is_some()
    }

    pub(super) fn need(&self) -> FileNeed {
        FileNeed { path: self.path.clone(), bytes: self.len, unit: self.unit }
    }

    /// The seed of what is laid out, and of what the run writes: the two differ, so that a write that
    /// was lost is seen.
    fn seeds(&self, seed: u64) -> [u64; 2] {
        [file_seed(seed, 2 * self.number), file_seed(seed, 2 * self.number + 1)]
    }

    pub(super) fn written_seed(&self, seed: u64) -> u64 {
        self.seeds(seed)[1]
    }

    pub(super) fn expected(&self, seed: u64) -> Option<Expected> {
        let [laid, written] = self.seeds(seed);
        let len = self.len;
        let bytes: Arc<dyn Bytes> = match self.end? {
            End::Laid => Arc::new(SeededBytes { seed: laid, len }),
            End::Written => Arc::new(SeededBytes { seed: written, len }),
            End::Zeroes => Arc::new(Zeroes { len }),
        };
        Some(Expected { path: self.path.clone(), bytes })
    }
}

/// What makes the files and directories of each copy before the run.
pub(super) fn prepare(files: &[File], seed: u64, with_directories: bool) -> Vec<Planned> {
    let mut copies: BTreeMap<u32, VecDeque<Op>> = BTreeMap::new();
    let mut made: BTreeSet<String> = BTreeSet::new();
    for file in files {
        let ops = copies.entry(file.copy).or_default();
        let text: &str = &file.path.text;
        for (end, _) in text.match_indices('/').filter(|_| with_directories) {
            if made.insert(text[..end].to_string()) {
                ops.push_back(Op::Mkdir { path: FilePath::target(&text[..end]) });
            }
        }
        if file.laid > 0 {
            prefill(file, seed, ops);
        } else if file.allocates {
            let fd = FileDescriptor(0);
            ops.push_back(Op::Open { fd, path: file.path.clone(), flags: OpenFlags::WRITE });
            ops.extend([Op::Allocate { fd, len: file.len }, Op::Close { fd }]);
        }
    }
    let planned = |(copy, ops)| Planned { copy, process: Box::new(List(ops)) as Box<dyn Process> };
    copies.into_iter().filter(|(_, ops)| !ops.is_empty()).map(planned).collect()
}

/// Whether any file lies in a directory.
pub(super) fn has_directories(files: &[File]) -> bool {
    files.iter().any(|file| file.path.text.contains('/'))
}

fn prefill(file: &File, seed: u64, ops: &mut VecDeque<Op>) {
    let fd = FileDescriptor(0);
    let content = Content::Seeded { seed: file.seeds(seed)[0] };
    ops.push_back(Op::Open { fd, path: file.path.clone(), flags: OpenFlags::WRITE });
    if file.allocates {
        ops.push_back(Op::Allocate { fd, len: file.len });
    }
    for (len, times) in [(BLOCK, file.laid / BLOCK), (file.laid % BLOCK, 1)] {
        if len > 0 && times > 0 {
            ops.push_back(Op::Write { fd, len, content, times });
        }
    }
    ops.push_back(Op::Fsync { fd });
    ops.push_back(Op::Close { fd });
}

/// One operation after the other; a write of many blocks, which may be as long as the largest file, in parts.
#[derive(Debug)]
struct List(VecDeque<Op>);

impl Process for List {
    fn next(&mut self, _now: Time, _last: OpResult) -> Op {
        if let Some(Op::Write { fd, len, content, times }) = self.0.front_mut()
            && *times > BLOCKS
        {
            let part = BLOCKS.max(*times / PART);
            *times -= part;
            return Op::Write { fd: *fd, len: *len, content: *content, times: part };
        }
        self.0.pop_front().unwrap_or(Op::Done)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(blocks: u64) -> Vec<u64> {
        let content = Content::Seeded { seed: 1 };
        let write = Op::Write { fd: FileDescriptor(0), len: BLOCK, content, times: blocks };
        let mut list = List(VecDeque::from([write]));
        let times = |op| match op {
            Op::Write { times, .. } => Some(times),
            _ => None,
        };
        std::iter::from_fn(|| times(list.next(Time::ZERO, OpResult::Done))).collect()
    }

    /// Advice lays out a file as large as an array in each of a thousand runs: 8 TB in steps of 64 MiB took most of its
    /// time.
    #[test]
    fn the_largest_files_are_laid_out_in_a_few_thousand_operations() {
        assert_eq!(parts(200), [64, 64, 64, 8]);
        let all = parts(8 << 20);
        assert_eq!(all.iter().sum::<u64>(), 8 << 20);
        assert!(all.len() < 4_000, "{} operations", all.len());
    }
}
