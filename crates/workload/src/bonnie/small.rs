//! Small files: made, looked at and removed, first with names in order, then with random ones.
//!
//! What the original times one by one is a group, counted as a write where names come and go and as a
//! read where they are looked up, so that the longest latency of a phase is that of its reads or
//! writes; listing, removing directories and syncing are the others.

use std::collections::VecDeque;
use std::fmt::Write as _;

use super::draws::Draws;
use super::{Version, phases};
use crate::op::{Class, Content, Entry, FileDescriptor, FilePath, Mark, Op, OpResult, OpenFlags};

/// Files are counted in so many.
pub(super) const UNIT: u64 = 1024;
/// The most random characters of a name.
const MOST_EXTRA: u64 = 12;
/// What they are taken from.
const CHARACTERS: &[u8; 62] = b"abcdefghijklmnopqrstuvwxyz0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";

/// What is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Made {
    /// Files with lengths between these.
    Files {
        /// The least, in bytes.
        least: u64,
        /// The greatest, in bytes.
        most: u64,
    },
    /// Names of one empty file.
    Links,
    /// Symbolic links to one empty file.
    Symlinks,
}

/// The small files of a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Job {
    pub(super) version: Version,
    pub(super) copy: u32,
    /// In units of 1024.
    pub(super) count: u64,
    pub(super) made: Made,
    pub(super) directories: u32,
    /// Bytes that are read or written at once.
    pub(super) chunk: u64,
    /// `-b`.
    pub(super) sync: bool,
}

impl Job {
    fn work_directory(&self) -> String {
        format!("Bonnie.{}", self.copy)
    }

    /// Where the files lie.
    fn directories(&self) -> Vec<FilePath> {
        let work = self.work_directory();
        match self.directories {
            0 | 1 => vec![FilePath::target(work)],
            many => (0..many).map(|index| FilePath::target(format!("{work}/{index:05}"))).collect(),
        }
    }

    /// Names as the original makes them; a directory takes one more than its share, so that the last
    /// ones may stay empty.
    fn names(&self, is_random: bool, directories: &[FilePath], draws: &mut Draws) -> Vec<Name> {
        let number = self.count * UNIT;
        let share = number / u64::from(self.directories);
        let mut text = String::new();
        let name = |index: u64| {
            let directory = (index / (share + 1)) as u32;
            text.clear();
            text.extend([&directories[directory as usize].text, "/"]);
            if !is_random {
                self.add_count(index, &mut text);
            }
            let len = draws.below(MOST_EXTRA + 1);
            text.extend((0..len).map(|_| {
                let drawn = draws.below(CHARACTERS.len() as u64);
                char::from(CHARACTERS[drawn as usize])
            }));
            if is_random {
                self.add_count(index, &mut text);
            }
            Name { path: FilePath::target(&*text), directory }
        };
        (0..number).map(name).collect()
    }

    fn add_count(&self, index: u64, text: &mut String) {
        // Writing to a string cannot fail.
        let _ = match self.version {
            Version::V103 => write!(text, "{index:07}"),
            Version::V200 => write!(text, "{index:010x}"),
        };
    }
}

#[derive(Clone, Debug)]
struct Name {
    path: FilePath,
    directory: u32,
}

/// What comes next; the number is that of the file or directory.
#[derive(Clone, Debug)]
enum Stage {
    /// Names, directories.
    Prepare {
        is_random: bool,
    },
    Create(usize),
    /// In the order of the directories.
    ListToStat(u32),
    StatListed(u32, std::vec::IntoIter<Entry>),
    ListToDelete(u32),
    DeleteListed(u32, std::vec::IntoIter<Entry>),
    /// In the order of the shuffled names.
    Stat(usize),
    Delete(usize),
    Over,
}

/// The main process's part.
#[derive(Debug)]
pub(super) struct SmallFiles {
    job: Job,
    stage: Stage,
    is_random: bool,
    directories: Vec<FilePath>,
    names: Vec<Name>,
    /// Where paths are put together.
    text: String,
    /// The file that was looked up last and must be read if there is something in it.
    looked_up: Option<FilePath>,
}

impl SmallFiles {
    pub(super) fn new(job: Job) -> Self {
        let stage = Stage::Prepare { is_random: false };
        let (directories, names, text) = (job.directories(), Vec::new(), String::new());
        Self { job, stage, is_random: false, directories, names, text, looked_up: None }
    }

    fn directory(&self, index: u32) -> FilePath {
        self.directories[index as usize].clone()
    }

    /// Adds what comes next; `false` when all is done. `last` is how the last operation went.
    pub(super) fn refill(
        &mut self,
        last: &mut OpResult,
        draws: &mut Draws,
        ops: &mut VecDeque<Op>,
    ) -> bool {
        if let Some(path) = self.looked_up.take() {
            if let OpResult::Status(status) = last
                && status.size > 0
            {
                read_whole(path, status.size, self.job.chunk, ops);
            }
            ops.push_back(Op::Mark(Mark::GroupEnd(Class::Read)));
            return true;
        }
        let stage = std::mem::replace(&mut self.stage, Stage::Over);
        self.stage = match stage {
            Stage::Prepare { is_random } => self.prepare(is_random, draws, ops),
            Stage::Create(index) => self.create(index, draws, ops),
            Stage::ListToStat(directory) if directory < self.job.directories => {
                self.list(directory, ops);
                Stage::StatListed(directory, Vec::new().into_iter())
            }
            Stage::ListToStat(_) => {
                ops.push_back(Op::Mark(Mark::End(phases::STAT_SEQUENTIAL)));
                ops.push_back(Op::Mark(Mark::Begin(phases::DELETE_SEQUENTIAL)));
                Stage::ListToDelete(0)
            }
            Stage::StatListed(directory, listed) => match self.next_of(listed, last, directory) {
                Some((path, rest)) => {
                    self.look_up(path, ops);
                    Stage::StatListed(directory, rest)
                }
                None => Stage::ListToStat(directory + 1),
            },
            Stage::ListToDelete(directory) if directory < self.job.directories => {
                self.list(directory, ops);
                Stage::DeleteListed(directory, Vec::new().into_iter())
            }
            Stage::ListToDelete(_) => {
                self.end_of_delete(phases::DELETE_SEQUENTIAL, ops);
                Stage::Prepare { is_random: true }
            }
            Stage::DeleteListed(directory, listed) => match self.next_of(listed, last, directory) {
                Some((path, rest)) => {
                    self.delete(path, directory, ops);
                    Stage::DeleteListed(directory, rest)
                }
                None => {
                    self.remove_directory(directory, ops);
                    Stage::ListToDelete(directory + 1)
                }
            },
            Stage::Stat(index) => self.stat_shuffled(index, draws, ops),
            Stage::Delete(index) => self.delete_shuffled(index, ops),
            Stage::Over => return false,
        };
        true
    }

    fn prepare(&mut self, is_random: bool, draws: &mut Draws, ops: &mut VecDeque<Op>) -> Stage {
        self.is_random = is_random;
        self.names = self.job.names(is_random, &self.directories, draws);
        ops.push_back(Op::Mkdir { path: FilePath::target(self.job.work_directory()) });
        if self.job.directories > 1 {
            let directories = 0..self.job.directories;
            ops.extend(directories.map(|index| Op::Mkdir { path: self.directory(index) }));
        }
        ops.push_back(Op::Mark(Mark::Begin(self.creating())));
        Stage::Create(0)
    }

    const fn creating(&self) -> u16 {
        if self.is_random { phases::CREATE_RANDOM } else { phases::CREATE_SEQUENTIAL }
    }

    fn create(&mut self, index: usize, draws: &mut Draws, ops: &mut VecDeque<Op>) -> Stage {
        let Some(name) = self.names.get(index) else {
            if self.job.version == Version::V200 {
                ops.push_back(Op::SyncAll);
            }
            ops.push_back(Op::Mark(Mark::End(self.creating())));
            if self.is_random {
                self.shuffle(draws);
                ops.push_back(Op::Mark(Mark::Begin(phases::STAT_RANDOM)));
                return Stage::Stat(0);
            }
            ops.push_back(Op::Mark(Mark::Begin(phases::STAT_SEQUENTIAL)));
            return Stage::ListToStat(0);
        };
        ops.push_back(Op::Mark(Mark::GroupBegin));
        let (path, to) = (self.names[0].path.clone(), name.path.clone());
        match self.job.made {
            Made::Files { least, most } => {
                let bytes =
                    if least == most { most } else { least + draws.below(most - least + 1) };
                self.make_file(name, bytes, ops);
            }
            Made::Links | Made::Symlinks if index == 0 => self.make_file(name, 0, ops),
            Made::Links => ops.push_back(Op::Link { from: path, to }),
            Made::Symlinks => {
                let text = path.text.rsplit('/').next().unwrap_or_default().into();
                ops.push_back(Op::Symlink { text, path: to });
            }
        }
        if self.job.sync && index > 0 && !matches!(self.job.made, Made::Files { .. }) {
            ops.push_back(Op::FsyncDirectory { path: self.directory(name.directory) });
        }
        ops.push_back(Op::Mark(Mark::GroupEnd(Class::Write)));
        Stage::Create(index + 1)
    }

    fn make_file(&self, name: &Name, bytes: u64, ops: &mut VecDeque<Op>) {
        let (fd, chunk) = (FileDescriptor(0), self.job.chunk);
        let flags = OpenFlags { read: false, exclusive: true, truncate: false, ..OpenFlags::WRITE };
        ops.push_back(Op::Open { fd, path: name.path.clone(), flags });
        let write = |len, times| Op::Write { fd, len, content: Content::Zeroes, times };
        if bytes >= chunk {
            ops.push_back(write(chunk, bytes / chunk));
        }
        if !bytes.is_multiple_of(chunk) {
            ops.push_back(write(bytes % chunk, 1));
        }
        if self.job.sync {
            ops.push_back(Op::Fsync { fd });
            ops.push_back(Op::FsyncDirectory { path: self.directory(name.directory) });
        }
        ops.push_back(Op::Close { fd });
    }

    fn list(&self, directory: u32, ops: &mut VecDeque<Op>) {
        ops.push_back(Op::List { path: self.directory(directory) });
    }

    fn look_up(&mut self, path: FilePath, ops: &mut VecDeque<Op>) {
        ops.push_back(Op::Mark(Mark::GroupBegin));
        ops.push_back(Op::Stat { path: path.clone() });
        self.looked_up = Some(path);
    }

    /// The next entry of a directory, from what is left of it or has just been listed.
    fn next_of(
        &mut self,
        mut left: std::vec::IntoIter<Entry>,
        last: &mut OpResult,
        directory: u32,
    ) -> Option<(FilePath, std::vec::IntoIter<Entry>)> {
        if let OpResult::Entries(entries) = last {
            left = std::mem::take(entries).into_iter();
        }
        let entry = left.next()?;
        self.text.clear();
        self.text.extend([&self.directories[directory as usize].text, "/", &*entry.name]);
        Some((FilePath::target(&*self.text), left))
    }

    fn delete(&self, path: FilePath, directory: u32, ops: &mut VecDeque<Op>) {
        ops.push_back(Op::Mark(Mark::GroupBegin));
        ops.push_back(Op::Unlink { path });
        if self.job.sync {
            ops.push_back(Op::FsyncDirectory { path: self.directory(directory) });
        }
        ops.push_back(Op::Mark(Mark::GroupEnd(Class::Write)));
    }

    fn remove_directory(&self, directory: u32, ops: &mut VecDeque<Op>) {
        if self.job.directories > 1 {
            ops.push_back(Op::Rmdir { path: self.directory(directory) });
        }
    }

    fn end_of_delete(&self, phase: u16, ops: &mut VecDeque<Op>) {
        ops.push_back(Op::Rmdir { path: FilePath::target(self.job.work_directory()) });
        if self.job.version == Version::V200 {
            ops.push_back(Op::SyncAll);
        }
        ops.push_back(Op::Mark(Mark::End(phase)));
    }

    fn stat_shuffled(&mut self, index: usize, draws: &mut Draws, ops: &mut VecDeque<Op>) -> Stage {
        if let Some(name) = self.names.get(index) {
            self.look_up(name.path.clone(), ops);
            return Stage::Stat(index + 1);
        }
        ops.push_back(Op::Mark(Mark::End(phases::STAT_RANDOM)));
        self.shuffle(draws);
        ops.push_back(Op::Mark(Mark::Begin(phases::DELETE_RANDOM)));
        Stage::Delete(0)
    }

    fn delete_shuffled(&mut self, index: usize, ops: &mut VecDeque<Op>) -> Stage {
        if let Some(name) = self.names.get(index) {
            self.delete(name.path.clone(), name.directory, ops);
            return Stage::Delete(index + 1);
        }
        (0..self.job.directories).for_each(|directory| self.remove_directory(directory, ops));
        self.end_of_delete(phases::DELETE_RANDOM, ops);
        self.names = Vec::new();
        Stage::Over
    }

    /// Each name changes places with any other: not every order is equally likely, as in the original.
    fn shuffle(&mut self, draws: &mut Draws) {
        for index in 0..self.names.len() {
            let other = draws.below(self.names.len() as u64) as usize;
            self.names.swap(index, other);
        }
    }
}

fn read_whole(path: FilePath, bytes: u64, chunk: u64, ops: &mut VecDeque<Op>) {
    let fd = FileDescriptor(0);
    ops.push_back(Op::Open { fd, path, flags: OpenFlags::READ });
    if bytes >= chunk {
        ops.push_back(Op::Read { fd, len: chunk, times: bytes / chunk });
    }
    if !bytes.is_multiple_of(chunk) {
        ops.push_back(Op::Read { fd, len: bytes % chunk, times: 1 });
    }
    ops.push_back(Op::Close { fd });
}
