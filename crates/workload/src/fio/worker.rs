//! One process of a job: which operation comes next.

use std::collections::VecDeque;
use std::sync::Arc;

use raidlab_core::{Nanos, Time};

use super::options::{Engine, Job};
use super::order::Order;
use super::task::{Extent, Task};
use crate::op::{Content, FileDescriptor, FilePath, Io, Mark, Op, OpResult, OpenFlags, Seek};
use crate::plan::Process;
use raidlab_random::{Random, mix};

/// The phase of a job's operations.
pub(super) const RUN: u16 = 0;
/// The phase in which what was written is read back.
pub(super) const VERIFY: u16 = 1;

/// What the streams of random numbers of a process are for.
const PLACES: u64 = 0;
const DIRECTIONS: u64 = 1;
const ORDERS: u64 = 2;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// It waits for its delay.
    Delayed,
    /// Its delay is over.
    Starting,
    /// Operations go out.
    Issuing,
    /// The last ones are waited for.
    Draining,
    /// Nothing is left but what is queued.
    Over,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Read,
    Write,
}

/// Where a file stands within a pass.
#[derive(Clone, Debug)]
struct Cursor {
    /// Where the last read and the last write ended, from the file's first byte of the job.
    ended: [u64; 2],
    /// How many places of the order were drawn.
    drawn: u64,
    order: Order,
    /// Whether a place was asked for when none was left.
    is_done: bool,
}

/// A process of a job.
#[derive(Debug)]
pub(super) struct Worker {
    task: Arc<Task>,
    /// The job, not shared with other processes: it is looked at for every operation.
    job: Arc<Job>,
    /// The barrier that ends the wave before, and the one that ends this one.
    walls: [Option<u16>; 2],
    stage: Stage,
    /// Goes out before anything else.
    queue: VecDeque<Op>,
    /// When the job began.
    epoch: Time,
    is_measured: bool,
    /// Whether this is the reading back.
    is_check: bool,
    cursors: Vec<Cursor>,
    /// The file whose turn it is.
    turn: usize,
    places: Random,
    directions: Random,
    /// How often all places were gone through.
    pass: u64,
    pass_bytes: u64,
    bytes: u64,
    count: u64,
    writes: u64,
    /// The file that was written last, when nothing was read after.
    written: Option<FileDescriptor>,
    /// Whether a flush came after the last operation in this pass.
    is_flushed: bool,
    /// Operations since the last pause.
    unpaused: u64,
    free: Vec<u32>,
    /// Where the system's position in each file is.
    positions: Vec<u64>,
}

impl Worker {
    pub(super) fn new(task: Arc<Task>, walls: [Option<u16>; 2]) -> Self {
        let depth = task.job.depth();
        let mut worker = Self {
            job: Arc::new(Job::clone(&task.job)),
            walls,
            stage: Stage::Delayed,
            queue: walls[0].map(Op::Barrier).into_iter().collect(),
            epoch: Time::ZERO,
            is_measured: false,
            is_check: false,
            cursors: Vec::new(),
            turn: 0,
            places: Random::new(0),
            directions: Random::new(0),
            pass: 0,
            pass_bytes: 0,
            bytes: 0,
            count: 0,
            writes: 0,
            written: None,
            is_flushed: false,
            unpaused: 0,
            free: (0..depth).rev().collect(),
            positions: vec![0; task.files.len()],
            task,
        };
        worker.rewind(true);
        worker
    }

    /// Back to the start of a pass; `again` with the random numbers of the first one.
    fn rewind(&mut self, again: bool) {
        let seed = self.task.seed;
        if again {
            self.places = Random::new(mix(&[seed, PLACES]));
            self.directions = Random::new(mix(&[seed, DIRECTIONS]));
        }
        let pass = if again { 0 } else { self.pass };
        let block = self.job.smallest_block();
        let files = self.task.files.iter().enumerate();
        let cursor = |(index, file): (usize, &Extent)| Cursor {
            ended: [0; 2],
            drawn: 0,
            order: Order::new(mix(&[seed, ORDERS, index as u64, pass]), file.len / block),
            is_done: false,
        };
        self.cursors = files.map(cursor).collect();
        self.pass_bytes = 0;
    }

    fn fds(&self) -> impl Iterator<Item = FileDescriptor> + use<> {
        (0..self.task.files.len() as u16).map(FileDescriptor)
    }

    fn in_flight(&self) -> usize {
        self.job.depth() as usize - self.free.len()
    }

    fn open_all(&mut self) {
        let job = &self.job;
        let base = if job.writes {
            OpenFlags { create: true, ..OpenFlags::BOTH }
        } else {
            OpenFlags::READ
        };
        let flags = OpenFlags { direct: job.direct, sync: job.sync, ..base };
        for (index, file) in self.task.files.iter().enumerate() {
            let fd = FileDescriptor(index as u16);
            let nowhere = job.engine == Engine::Null;
            let path = if nowhere { FilePath::null() } else { file.path.clone() };
            let flags =
                if nowhere { OpenFlags { write: true, ..OpenFlags::default() } } else { flags };
            self.queue.push_back(Op::Open { fd, path, flags });
            if job.invalidate && !nowhere {
                self.queue.push_back(Op::DropCached { fd });
            }
        }
        self.positions.fill(0);
    }

    /// The job begins.
    fn begin(&mut self, now: Time) {
        self.epoch = now;
        self.stage = Stage::Issuing;
        if self.job.ramp == Nanos::ZERO {
            self.is_measured = true;
            self.queue.push_back(Op::Mark(Mark::Begin(RUN)));
        }
        self.open_all();
    }

    /// Whether the time or the number of operations is over; bytes are a matter of the pass.
    fn is_over(&self, now: Time) -> bool {
        let job = &self.job;
        if self.is_check {
            return false;
        }
        let runtime = job.runtime.0.saturating_add(job.ramp.0);
        // As fio has it: so many for each loop, all loops together, and no matter while time is left.
        let most = job.number_ios.saturating_mul(job.loops);
        (job.runtime != Nanos::ZERO && now.since(self.epoch).0 >= runtime)
            || (most > 0 && !job.time_based && self.count >= most)
    }

    /// Whether bytes enough were moved, in all and in this pass.
    fn are_bytes_enough(&self) -> [bool; 2] {
        let (task, job) = (&self.task, &self.job);
        if job.time_based {
            return [false; 2];
        }
        if self.is_check {
            return [self.bytes >= task.pass; 2];
        }
        let total = task.total.saturating_mul(job.loops);
        // As fio has it: a random job that goes on past its size without looking at a map makes one long pass of all
        // its loops, and one that writes in line one of each.
        let most = match (job.random, job.random_map) {
            (true, false) => task.pass.max(total),
            (false, _) if job.writes => task.pass.max(task.total),
            _ => task.pass,
        };
        [self.bytes >= total, self.pass_bytes >= most]
    }

    /// Queues a pause where one is due, or a wait for what is under way before it. It belongs to the operation
    /// before it, and so follows the last one, too.
    fn pause(&mut self) -> bool {
        let job = &self.job;
        if job.thinktime == Nanos::ZERO || self.unpaused < job.thinktime_blocks || self.is_check {
            return false;
        }
        if self.in_flight() > 0 {
            self.queue.push_back(Op::Finish);
        } else {
            self.unpaused = 0;
            self.queue.push_back(Op::Sleep(self.job.thinktime));
        }
        true
    }

    /// Queues what comes next; `false` when the job is over.
    fn issue(&mut self, now: Time) -> bool {
        if self.pause() {
            return true;
        }
        if self.is_over(now) {
            return false;
        }
        let job = self.job.clone();
        if !self.is_measured && now.since(self.epoch) >= job.ramp {
            self.is_measured = true;
            self.queue.push_back(Op::Mark(Mark::Begin(RUN)));
        }
        let [is_all, is_pass] = self.are_bytes_enough();
        if is_all {
            return false;
        }
        let due = |every: u64| every > 0 && self.writes.is_multiple_of(every);
        let is_due = !self.is_flushed && (due(job.fsync) || due(job.fdatasync));
        let flushed = self.written.filter(|_| is_due);
        // Flushes and the end of a pass wait for all that is under way.
        let waits = flushed.is_some() || is_pass;
        if self.in_flight() > 0 && (waits || self.free.is_empty()) {
            self.queue.push_back(Op::Finish);
        } else if let Some(written) = flushed {
            self.is_flushed = true;
            let is_full = due(job.fsync);
            let fd = self.take_turn().unwrap_or(written);
            self.queue.push_back(if is_full { Op::Fsync { fd } } else { Op::Fdatasync { fd } });
        } else if let Some((way, file, at)) = if is_pass { None } else { self.draw() } {
            self.operation(way, file, at);
        } else if self.in_flight() > 0 {
            self.queue.push_back(Op::Finish);
        } else {
            return self.wrap();
        }
        true
    }

    /// After a pass: queues the start of the next one; `false` when there is none.
    fn wrap(&mut self) -> bool {
        let job = self.job.clone();
        let nothing_done = self.pass_bytes == 0;
        let left = self.task.total.saturating_mul(job.loops).saturating_sub(self.bytes);
        let is_more = job.time_based
            || job.loops > 1 && self.pass + 1 < job.loops
            || job.io_size.is_some() && left >= job.largest_block();
        if self.is_check || nothing_done || !is_more {
            return false;
        }
        self.pass += 1;
        self.rewind(!job.time_based);
        // fio forgets with the pass that it has flushed, and does so once more.
        self.is_flushed = false;
        // Files are opened again for each loop, as fio does.
        if !job.time_based {
            for fd in self.fds() {
                self.queue.push_back(Op::Close { fd });
            }
            self.open_all();
        } else if job.invalidate && !job.direct && job.engine != Engine::Null {
            for fd in self.fds() {
                self.queue.push_back(Op::DropCached { fd });
            }
        }
        true
    }

    /// Which way, in which file and where the next operation goes; `None` at the end of a pass.
    fn draw(&mut self) -> Option<(Way, usize, u64)> {
        let job = self.job.clone();
        let way = match (job.reads || self.is_check, job.writes && !self.is_check) {
            (true, true) if self.directions.below(100) < job.read_percent => Way::Read,
            (true, false) => Way::Read,
            _ => Way::Write,
        };
        let files = self.cursors.len();
        for step in 0..files {
            let file = (self.turn + step) % files;
            if files == 1 && job.time_based && !job.random {
                self.begin_again(way);
            }
            if let Some(at) = self.place(file, way) {
                self.turn = (file + 1) % files;
                return Some((way, file, at));
            }
            // A time-based random job begins a file again on its own, as fio does.
            if job.time_based && job.random && job.random_map {
                self.pass += 1;
                let seed = mix(&[self.task.seed, ORDERS, file as u64, self.pass]);
                let cursor = &mut self.cursors[file];
                (cursor.order, cursor.drawn) = (Order::new(seed, cursor.order.count()), 0);
                if job.invalidate && !job.direct && job.engine != Engine::Null {
                    self.queue.push_back(Op::DropCached { fd: FileDescriptor(file as u16) });
                }
                if let Some(at) = self.place(file, way) {
                    self.turn = (file + 1) % files;
                    return Some((way, file, at));
                }
            }
            self.cursors[file].is_done = true;
        }
        None
    }

    /// The file that a flush is of: to fio a flush has a turn as reads and writes do, whichever file was written.
    fn take_turn(&mut self) -> Option<FileDescriptor> {
        let files = self.cursors.len();
        let mut turns = (0..files).map(|step| (self.turn + step) % files);
        let file = turns.find(|&file| !self.cursors[file].is_done)?;
        self.turn = (file + 1) % files;
        Some(FileDescriptor(file as u16))
    }

    /// A time-based sequential job of one file that got to the end of it one way begins there again with what is
    /// under way; fio ends the pass where there are several files, or less than a block is left.
    fn begin_again(&mut self, way: Way) {
        let ended = &mut self.cursors[0].ended[usize::from(way == Way::Write)];
        if *ended < self.task.files[0].len {
            return;
        }
        *ended = 0;
        let job = &self.job;
        if job.invalidate && !job.direct && job.engine != Engine::Null {
            self.queue.push_back(Op::DropCached { fd: FileDescriptor(0) });
        }
    }

    /// Bytes of an operation: what is read back is read as it was written.
    fn block(&self, way: Way) -> u64 {
        self.job.blocks[usize::from(way == Way::Write || self.is_check)]
    }

    /// The next place in a file, from its first byte; `None` when there is none left.
    fn place(&mut self, file: usize, way: Way) -> Option<u64> {
        let (job, block) = (&self.job, self.block(way));
        let extent = &self.task.files[file];
        let cursor = &mut self.cursors[file];
        let at = if job.random {
            let blocks = extent.len / block;
            let number = if !job.random_map {
                self.places.below(blocks)
            } else if cursor.drawn < cursor.order.count() {
                cursor.drawn += 1;
                cursor.order.at(cursor.drawn - 1)
            } else {
                return None;
            };
            number * block
        } else {
            next_in_line(cursor.ended[usize::from(way == Way::Write)], job.skip, extent)?
        };
        (at + block <= extent.len).then_some(extent.offset + at)
    }

    /// Queues an operation.
    fn operation(&mut self, way: Way, file: usize, at: u64) {
        let (len, fd) = (self.block(way), FileDescriptor(file as u16));
        let offset = self.task.files[file].offset;
        self.cursors[file].ended[usize::from(way == Way::Write)] = at - offset + len;
        self.bytes += len;
        self.pass_bytes += len;
        self.count += 1;
        self.unpaused += 1;
        self.writes += u64::from(way == Way::Write);
        self.written = (way == Way::Write).then_some(fd);
        self.is_flushed = false;
        let content = if self.job.zero_buffers {
            Content::Zeroes
        } else {
            Content::Seeded { seed: self.task.contents.get(file).copied().unwrap_or_default() }
        };
        let io = match way {
            Way::Read => Io::Read { fd, at, len },
            Way::Write => Io::Write { fd, at, len, content },
        };
        let op = match self.job.engine {
            Engine::Sync => {
                if self.positions[file] != at {
                    self.queue.push_back(Op::Seek { fd, to: Seek::Start(at) });
                }
                self.positions[file] = at + len;
                match way {
                    Way::Read => Op::Read { fd, len, times: 1 },
                    Way::Write => Op::Write { fd, len, content, times: 1 },
                }
            }
            Engine::Queued if self.job.depth() > 1 => {
                let tag = self.free.pop().unwrap_or_default();
                Op::Start { tag, io }
            }
            _ => Op::At(io),
        };
        self.queue.push_back(op);
    }

    /// After the last operation: flushes, the reading back, closing.
    fn wind_up(&mut self) {
        let job = self.job.clone();
        let fds: Vec<FileDescriptor> = self.fds().collect();
        if !self.is_check {
            if job.end_fsync && job.writes {
                self.queue.extend(fds.iter().map(|&fd| Op::Fsync { fd }));
            }
            self.queue.push_back(Op::Mark(Mark::End(RUN)));
            if job.verifies() {
                self.queue.extend(fds.iter().map(|&fd| Op::Close { fd }));
                self.open_all();
                self.queue.push_back(Op::Mark(Mark::Begin(VERIFY)));
                self.is_check = true;
                self.bytes = 0;
                self.written = None;
                self.turn = 0;
                self.rewind(true);
                self.stage = Stage::Issuing;
                return;
            }
        } else {
            self.queue.push_back(Op::Mark(Mark::End(VERIFY)));
        }
        self.queue.extend(fds.iter().map(|&fd| Op::Close { fd }));
        if job.unlink && job.engine != Engine::Null {
            let unlink = |file: &Extent| Op::Unlink { path: file.path.clone() };
            self.queue.extend(self.task.files.iter().map(unlink));
        }
        self.queue.extend(self.walls[1].map(Op::Barrier));
        self.stage = Stage::Over;
    }
}

/// Where a sequential operation goes when the one before ended at `ended`, all from the first byte of
/// the job's part of the file; `None` behind the end. Backwards it starts at the end again.
fn next_in_line(ended: u64, skip: i64, extent: &Extent) -> Option<u64> {
    if ended >= extent.len {
        return None;
    }
    if skip == 0 || ended == 0 {
        return Some(ended);
    }
    match ended.checked_add_signed(skip) {
        Some(at) if at < extent.len => Some(at),
        _ if skip > 0 => Some(0),
        _ => extent.len.checked_add_signed(skip),
    }
}

impl Process for Worker {
    fn next(&mut self, now: Time, last: OpResult) -> Op {
        if let OpResult::Finished { tag, .. } = last {
            self.free.push(tag);
        }
        loop {
            if let Some(op) = self.queue.pop_front() {
                return op;
            }
            match self.stage {
                Stage::Delayed => {
                    // Asked for once: who walks through a plan may have a clock that stands.
                    self.stage = Stage::Starting;
                    let until = Time(self.job.start_delay.0);
                    if now < until {
                        return Op::Sleep(until.since(now));
                    }
                }
                Stage::Starting => self.begin(now),
                Stage::Issuing => {
                    if !self.issue(now) {
                        self.stage = Stage::Draining;
                    }
                }
                Stage::Draining if self.in_flight() > 0 => return Op::Finish,
                Stage::Draining => self.wind_up(),
                Stage::Over => return Op::Done,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// With a step between the operations those that would begin behind the end begin again, as fio has it.
    #[test]
    fn a_step_leads_round_the_part_of_the_file() {
        let (kib, path) = (1_u64 << 10, FilePath::null());
        let extent = Extent { path, offset: 1 << 20, len: 64 * kib };
        for (ended, skip, next) in [
            (0, 0, Some(0)),
            (60, 0, Some(60)),
            (64, 0, None),
            (0, 8, Some(0)),
            (4, 8, Some(12)),
            (52, 8, Some(60)),
            (56, 8, Some(0)),
            (60, 8, Some(0)),
            (64, 8, None),
            (60, -8, Some(52)),
            (8, -8, Some(0)),
            (4, -8, Some(56)),
        ] {
            let found = next_in_line(ended * kib, skip * 1024, &extent);
            assert_eq!(found, next.map(|next: u64| next * kib), "{ended} KiB, {skip} KiB");
        }
    }
}
