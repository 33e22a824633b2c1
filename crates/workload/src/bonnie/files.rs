//! The large file: writing, rewriting and reading it, and handing out the tickets of the seeks.

use std::collections::VecDeque;
use std::sync::Arc;

use raidlab_core::Nanos;

use super::draws::Draws;
use super::{Version, phases};
use crate::op::{Class, Content, FileDescriptor, FilePath, Mark, Op, OpenFlags, Seek};

/// The greatest length of a file of 1.03, in bytes.
const LARGEST_FILE: u64 = 1 << 30;
/// Bytes that the C library moves at once for 1.03's byte by byte passes: the block of the filesystem.
const BUFFERED: u64 = 4096;
/// A ticket divisible by this changes its block (2.00), and so does every such seek of a process (1.03).
pub(super) const UPDATE_EVERY: u32 = 10;
/// The ticket of 1.03 that asks for a seek.
const ONE_SEEK: i64 = 1;

const CREATE: OpenFlags = OpenFlags { create: true, exclusive: true, ..OpenFlags::BOTH };

/// What main process and seekers of a copy know of its large file.
#[derive(Clone, Debug)]
pub(super) struct Job {
    pub(super) version: Version,
    pub(super) copy: u32,
    /// Bytes of the file.
    pub(super) size: u64,
    /// Bytes of a block.
    pub(super) chunk: u64,
    /// Bytes that are written and read one by one; nothing without these passes.
    pub(super) characters: u64,
    /// `-b`.
    pub(super) sync: bool,
    pub(super) seeks: u64,
    pub(super) seekers: u32,
    /// How long seekers are given to open their files.
    pub(super) settle: Nanos,
    /// Where the seekers wait for the start and the main process for their end.
    pub(super) barriers: [u16; 2],
    /// Of tickets.
    pub(super) queue: u16,
}

/// The files of a copy, where they are opened, and how long each is: pieces of at most 1 GiB in 1.03.
pub(super) fn names(
    version: Version,
    copy: u32,
    size: u64,
) -> impl Iterator<Item = (FileDescriptor, FilePath, u64)> {
    let count = match version {
        Version::V103 => size.div_ceil(LARGEST_FILE),
        Version::V200 => 1,
    };
    (0..count as u16).map(move |file| {
        let (name, bytes) = match version {
            Version::V103 => {
                let before = u64::from(file) * LARGEST_FILE;
                (format!("Bonnie.{copy}.{file:03}"), LARGEST_FILE.min(size - before))
            }
            Version::V200 => (format!("Bonnie.{copy}"), size),
        };
        (FileDescriptor(file), FilePath::target(name), bytes)
    })
}

impl Job {
    fn files(&self) -> impl Iterator<Item = (FileDescriptor, FilePath, u64)> + use<> {
        names(self.version, self.copy, self.size)
    }

    /// Blocks of all files.
    pub(super) fn chunks(&self) -> u64 {
        self.size / self.chunk
    }

    /// The file and the byte in it where a block starts.
    pub(super) fn place(&self, chunk: u64) -> (FileDescriptor, u64) {
        let at = chunk * self.chunk;
        match self.version {
            Version::V103 => (FileDescriptor((at / LARGEST_FILE) as u16), at % LARGEST_FILE),
            Version::V200 => (FileDescriptor(0), at),
        }
    }

    /// Opens what is there.
    pub(super) fn open(&self, ops: &mut VecDeque<Op>) {
        ops.extend(self.files().map(|(fd, path, _)| Op::Open { fd, path, flags: OpenFlags::BOTH }));
    }

    /// Removes what is there and makes it anew.
    fn make_anew(&self, ops: &mut VecDeque<Op>) {
        for (fd, path, _) in self.files() {
            ops.push_back(Op::Unlink { path: path.clone() });
            ops.push_back(Op::Open { fd, path, flags: CREATE });
        }
    }

    /// Closes all; 2.00 makes them durable before, 1.03 only with `-b`.
    pub(super) fn close(&self, ops: &mut VecDeque<Op>) {
        let durable = self.sync || self.version == Version::V200;
        for (fd, _, _) in self.files() {
            if durable {
                ops.push_back(Op::Fsync { fd });
            }
            ops.push_back(Op::Close { fd });
        }
    }

    /// Closes what was opened for bytes: through the C library in 1.03, which never makes it durable.
    fn close_characters(&self, ops: &mut VecDeque<Op>) {
        match self.version {
            Version::V103 => ops.extend(self.files().map(|(fd, _, _)| Op::Close { fd })),
            Version::V200 => self.close(ops),
        }
    }

    /// The ticket that ends a seeker.
    pub(super) const fn last_ticket(&self) -> i64 {
        match self.version {
            Version::V103 => 0,
            Version::V200 => i64::MIN,
        }
    }
}

/// What comes next; numbers are blocks, or tickets, that are done.
#[derive(Clone, Copy, Debug)]
enum Stage {
    Create,
    CharacterWrite(u64),
    BlockWrite,
    Rewrite,
    CharacterRead(u64),
    BlockRead,
    Seekers,
    Tickets(u64),
    Over,
}

/// The main process's part.
#[derive(Debug)]
pub(super) struct Files {
    job: Arc<Job>,
    stage: Stage,
}

const fn begin(phase: u16) -> Op {
    Op::Mark(Mark::Begin(phase))
}

const fn end(phase: u16) -> Op {
    Op::Mark(Mark::End(phase))
}

impl Files {
    pub(super) const fn new(job: Arc<Job>) -> Self {
        Self { job, stage: Stage::Create }
    }

    /// Adds what comes next; `false` when all is done.
    pub(super) fn refill(&mut self, draws: &mut Draws, ops: &mut VecDeque<Op>) -> bool {
        let job = &*self.job;
        self.stage = match self.stage {
            Stage::Create => {
                ops.extend(job.files().map(|(fd, path, _)| Op::Open { fd, path, flags: CREATE }));
                if job.characters > 0 {
                    ops.push_back(begin(phases::CHARACTER_WRITE));
                    Stage::CharacterWrite(0)
                } else {
                    job.close_characters(ops);
                    Stage::BlockWrite
                }
            }
            Stage::CharacterWrite(done) => match characters(job, done, false, ops) {
                Some(done) => Stage::CharacterWrite(done),
                None => Stage::BlockWrite,
            },
            Stage::BlockWrite => {
                block_write(job, ops);
                job.open(ops);
                ops.push_back(Op::Seek { fd: FileDescriptor(0), to: Seek::Start(0) });
                ops.push_back(begin(phases::REWRITE));
                Stage::Rewrite
            }
            Stage::Rewrite => rewrite(job, ops),
            Stage::CharacterRead(done) => match characters(job, done, true, ops) {
                Some(done) => Stage::CharacterRead(done),
                None => Stage::BlockRead,
            },
            Stage::BlockRead => {
                block_read(job, ops);
                Stage::Seekers
            }
            Stage::Seekers => {
                // 2.00 opens the file once more here, for nothing; 1.03 leaves that to the seekers.
                if job.version == Version::V200 {
                    job.open(ops);
                }
                ops.extend([Op::Barrier(job.barriers[0]), Op::Sleep(job.settle)]);
                Stage::Tickets(0)
            }
            Stage::Tickets(done) => tickets(job, done, draws, ops),
            Stage::Over => return false,
        };
        true
    }
}

/// The next block of a pass byte by byte of 2.00, or all of one of 1.03; the blocks that are done, or `None`
/// when all are.
///
/// 1.03 goes through the C library, whose calls are of 4096 bytes; each byte is work of the CPU besides.
/// 2.00 calls the system for each byte and takes the time of a block together. The bytes are zeroes here so
/// that the buffer, which the next pass needs empty, stays so; the original's repeat 0 to 127.
fn characters(job: &Job, done: u64, is_read: bool, ops: &mut VecDeque<Op>) -> Option<u64> {
    let phase = if is_read { phases::CHARACTER_READ } else { phases::CHARACTER_WRITE };
    if job.version == Version::V200 && done * job.chunk < job.characters {
        let (fd, len, times) = (FileDescriptor(0), 1, job.chunk);
        let (class, moved) = match is_read {
            true => (Class::Read, Op::Read { fd, len, times }),
            false => (Class::Write, Op::Write { fd, len, content: Content::Zeroes, times }),
        };
        ops.extend([Op::Mark(Mark::GroupBegin), moved, Op::Mark(Mark::GroupEnd(class))]);
        return Some(done + 1);
    }
    if job.version == Version::V103 {
        ops.extend(job.files().map(|(fd, _, bytes)| {
            let (len, times) = (BUFFERED, bytes / BUFFERED);
            match is_read {
                true => Op::ReadStdioBytes { fd, len, times },
                false => Op::WriteStdioBytes { fd, len, times },
            }
        }));
    }
    job.close_characters(ops);
    ops.push_back(end(phase));
    None
}

fn block_write(job: &Job, ops: &mut VecDeque<Op>) {
    job.make_anew(ops);
    ops.push_back(begin(phases::BLOCK_WRITE));
    let mut number = 0;
    for (fd, _, bytes) in job.files() {
        let (len, times) = (job.chunk, bytes / job.chunk);
        ops.push_back(Op::Write { fd, len, content: Content::Stamp { number }, times });
        number += times;
    }
    job.close(ops);
    ops.push_back(end(phases::BLOCK_WRITE));
}

/// All blocks, each with one latency, and what comes then.
fn rewrite(job: &Job, ops: &mut VecDeque<Op>) -> Stage {
    let mut number = 0;
    for (fd, _, bytes) in job.files() {
        let times = bytes / job.chunk;
        ops.push_back(Op::Rewrite { fd, len: job.chunk, number, times });
        number += times;
    }
    job.close(ops);
    ops.push_back(end(phases::REWRITE));
    if job.characters == 0 {
        return Stage::BlockRead;
    }
    job.open(ops);
    ops.push_back(begin(phases::CHARACTER_READ));
    Stage::CharacterRead(0)
}

fn block_read(job: &Job, ops: &mut VecDeque<Op>) {
    job.open(ops);
    ops.push_back(Op::Seek { fd: FileDescriptor(0), to: Seek::Start(0) });
    ops.push_back(begin(phases::BLOCK_READ));
    for (fd, _, bytes) in job.files() {
        ops.push_back(Op::Read { fd, len: job.chunk, times: bytes / job.chunk });
    }
    job.close(ops);
    ops.push_back(end(phases::BLOCK_READ));
}

/// All tickets of 1.03, or one of 2.00; then the end of the seeks.
fn tickets(job: &Job, done: u64, draws: &mut Draws, ops: &mut VecDeque<Op>) -> Stage {
    let queue = job.queue;
    if job.version == Version::V200 && done < job.seeks {
        let number = draws.number();
        let ticket = i64::from(number);
        let ticket = if number.is_multiple_of(UPDATE_EVERY) { -ticket } else { ticket };
        ops.push_back(Op::Put { queue, ticket, times: 1 });
        return Stage::Tickets(done + 1);
    }
    if job.version == Version::V103 {
        ops.push_back(Op::Put { queue, ticket: ONE_SEEK, times: job.seeks });
    }
    let times = u64::from(job.seekers);
    ops.push_back(Op::Put { queue, ticket: job.last_ticket(), times });
    if job.version == Version::V200 {
        job.close(ops);
    }
    // The seekers of 2.00 remove the name, whoever comes first; here nobody has it open any more.
    ops.push_back(Op::Barrier(job.barriers[1]));
    ops.extend(job.files().map(|(_, path, _)| Op::Unlink { path }));
    Stage::Over
}
