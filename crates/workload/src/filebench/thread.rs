//! A thread: does its flowops one after the other, again and again.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use raidlab_core::{Nanos, Time};
use raidlab_random::Random;

use super::draws::multiple;
use super::files::{Change, Picked};
use super::personality::Flowop;
use super::shared::{Queue, Shared};
use crate::op::{Class, Content, FileDescriptor, Io, Mark, Op, OpResult, OpenFlags, Seek};
use crate::plan::Process;

/// File descriptors that `opennext` goes through, from the last to the first.
const TURNS: u8 = 128;
/// An event of `bwlimit`: a MiB.
const EVENT_BYTES: i64 = 1 << 20;
/// Writes of a file that are asked for at once: after each the thread looks whether it is over.
const WRITES: u64 = 16;
/// How often a thread that delays looks whether it is over.
const LOOK: Nanos = Nanos(100_000_000);

/// What is still to be done of a flowop.
#[derive(Clone, Debug)]
enum Step {
    Op(Op),
    /// Takes a file that is there, by a rotor, or that is not, and opens it.
    Open {
        set: u8,
        fd: u8,
        by: By,
        sync: bool,
    },
    Delete {
        set: u8,
    },
    Stat {
        set: u8,
    },
    Close {
        fd: u8,
    },
    Release {
        set: u8,
        file: u32,
        change: Change,
    },
    /// Reads until a read gives nothing.
    ReadOn {
        fd: u8,
        len: u64,
    },
    /// What a read gave: at the end, back to the start.
    Rewind {
        fd: u8,
    },
    /// So many more writes.
    WriteOn {
        fd: u8,
        len: u64,
        left: u64,
    },
    /// The flowops that need an open file, once it is open.
    Begin(Flowop),
    /// So many more writes that nobody waits for, and one of them.
    Ahead {
        set: u8,
        len: u64,
        turns: bool,
        left: u32,
    },
    Write {
        fd: u8,
        len: u64,
    },
    /// Waits for so many more of them.
    Reap(u32),
    TakePosts {
        of: usize,
        value: u32,
    },
    Post {
        to: u32,
        last: u32,
    },
    Delay {
        until: Time,
    },
}

/// Which file is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum By {
    /// One that is not there.
    Absent,
    /// The next, of which all threads go through them together.
    Shared,
    /// The next, of which this thread goes through them alone.
    Own,
}

/// A thread.
#[derive(Debug)]
pub(super) struct Thread {
    shared: Arc<Mutex<Shared>>,
    flowops: Arc<[Flowop]>,
    random: Random,
    pub(super) queue: Queue,
    /// Its own rotor in each set.
    rotor: usize,
    is_counted: bool,
    /// Its semaphores.
    semaphores: usize,
    /// The set and file of each open file descriptor.
    open: Vec<Option<(u8, u32)>>,
    /// The file descriptor that `opennext` used last.
    turn: u8,
    /// Bytes that it has read and that no event was taken for; negative when there was one for more.
    unlimited: Option<i64>,
    /// Bytes that the last read gave.
    read: i64,
    started: u32,
    tag: u32,
    loops: u64,
    at: usize,
    steps: VecDeque<Step>,
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Begins,
    Works,
    Ended,
}

/// Where a thread stands in its copy.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    pub(super) queue: Queue,
    pub(super) rotor: usize,
    pub(super) semaphores: usize,
    pub(super) is_counted: bool,
}

impl Thread {
    pub(super) fn new(
        shared: Arc<Mutex<Shared>>,
        flowops: Arc<[Flowop]>,
        seed: u64,
        place: Place,
    ) -> Self {
        Self {
            shared,
            flowops,
            random: Random::new(seed),
            queue: place.queue,
            rotor: place.rotor,
            is_counted: place.is_counted,
            semaphores: place.semaphores,
            open: vec![None; usize::from(TURNS)],
            turn: 0,
            unlimited: None,
            read: 0,
            started: 0,
            tag: 0,
            loops: 0,
            at: 0,
            steps: VecDeque::new(),
            state: State::Begins,
        }
    }

    fn op(&mut self, op: Op) {
        self.steps.push_back(Step::Op(op));
    }

    fn mark(&mut self, mark: Mark) {
        self.op(Op::Mark(mark));
    }

    /// Operations that count as one.
    fn counted(&mut self, class: Class, ops: impl IntoIterator<Item = Op>) {
        self.mark(Mark::GroupBegin);
        self.steps.extend(ops.into_iter().map(Step::Op));
        self.mark(Mark::GroupEnd(class));
    }

    /// Wakes threads before anything else is done.
    fn wake(&mut self, queues: Vec<Queue>) {
        for queue in queues.into_iter().rev() {
            self.steps.push_front(Step::Op(Op::Put { queue, ticket: 0, times: 1 }));
        }
    }

    /// Waits for a ticket and then does the step.
    fn wait(&mut self, step: Step) -> Op {
        self.steps.push_front(step);
        Op::Take { queue: self.queue }
    }

    /// The next operation, if that is what comes next.
    fn pop_op(&mut self) -> Option<Op> {
        match self.steps.pop_front()? {
            Step::Op(op) => Some(op),
            step => {
                self.steps.push_front(step);
                None
            }
        }
    }

    /// Whether it is over for this thread; then what is still to be done is the end.
    fn ends(&mut self, now: Time) -> bool {
        let shared = Arc::clone(&self.shared);
        let mut shared = lock(&shared);
        let has_done = self.is_counted && self.at == 0 && shared.has_done(self.loops);
        let woken = match (shared.is_over(now), has_done && self.steps.is_empty()) {
            (true, _) => shared.stop(),
            (false, true) => shared.one_done(),
            (false, false) => return false,
        };
        self.steps.clear();
        self.wake(woken);
        self.mark(Mark::End(0));
        self.state = State::Ended;
        true
    }

    /// The steps of the next flowop.
    fn begin(&mut self, flowop: Flowop, now: Time) {
        match flowop {
            Flowop::Create { set, fd } => {
                self.steps.push_back(Step::Open { set, fd, by: By::Absent, sync: false });
            }
            Flowop::Open { set, fd } => self.open_shared(set, fd),
            Flowop::Close { fd } => self.steps.push_back(Step::Close { fd }),
            Flowop::Append { set, fd, .. } if self.file(fd).is_none() => {
                self.open_shared(set, fd);
                self.steps.push_back(Step::Begin(flowop));
            }
            Flowop::ReadNext { set, fd, .. } if self.file(fd).is_none() => {
                self.open_shared(set, fd);
                self.steps.push_back(Step::Begin(flowop));
            }
            Flowop::ReadRandom { set, .. } => {
                let fd = self.next_turn();
                self.steps.extend(self.opening(set, fd, false));
                self.steps.push_back(Step::Begin(flowop));
            }
            Flowop::WriteAhead { set, len, times, turns } => {
                self.steps.push_back(Step::Ahead { set, len, turns, left: times });
            }
            Flowop::Delete { set } => self.steps.push_back(Step::Delete { set }),
            Flowop::Stat { set } => self.steps.push_back(Step::Stat { set }),
            Flowop::Wait => self.steps.push_back(Step::Reap((self.started / 2).max(1))),
            Flowop::Hog(rounds) => self.op(Op::Compute(Nanos(rounds))),
            Flowop::Block(value) => {
                let of = self.semaphores;
                let woken = self.lock(|shared| shared.semaphores[of].raise(value.into()));
                self.wake(woken);
                self.steps.push_back(Step::TakePosts { of, value });
            }
            Flowop::Post { first, count } => {
                self.steps.push_back(Step::Post { to: first, last: first + count });
            }
            Flowop::EventLimit => self.take_events(now, 1),
            Flowop::BandwidthLimit => self.limit(now),
            Flowop::Delay(time) => {
                self.steps.push_back(Step::Delay { until: Time(now.0.saturating_add(time)) });
            }
            _ => self.moves(flowop),
        }
    }

    fn lock<T>(&self, what: impl FnOnce(&mut Shared) -> T) -> T {
        what(&mut lock(&self.shared))
    }

    fn file(&self, fd: u8) -> Option<(u8, u32)> {
        self.open[usize::from(fd)]
    }

    fn open_shared(&mut self, set: u8, fd: u8) {
        self.steps.push_back(Step::Open { set, fd, by: By::Shared, sync: false });
    }

    /// The next file descriptor of `opennext`.
    fn next_turn(&mut self) -> u8 {
        self.turn = if self.turn == 0 { TURNS - 1 } else { self.turn - 1 };
        self.turn
    }

    /// Opens the next file of a set of which this thread goes through the files alone, unless one is open there.
    fn opening(&self, set: u8, fd: u8, sync: bool) -> Option<Step> {
        self.file(fd).is_none().then_some(Step::Open { set, fd, by: By::Own, sync })
    }

    /// The flowops that read and write an open file.
    fn moves(&mut self, flowop: Flowop) {
        match flowop {
            Flowop::WriteWhole { fd, len } => {
                let size = self.size(fd);
                self.mark(Mark::GroupBegin);
                // filebench writes whole pieces to the end, also the last.
                let (len, left) = (len.min(size), size.div_ceil(len));
                self.steps.push_back(Step::WriteOn { fd, len, left });
                self.mark(Mark::GroupEnd(Class::Write));
            }
            Flowop::ReadWhole { fd, len } => {
                self.mark(Mark::GroupBegin);
                self.op(Op::Seek { fd: of(fd), to: Seek::Start(0) });
                self.op(Op::Read { fd: of(fd), len, times: 1 });
                self.steps.push_back(Step::ReadOn { fd, len });
                self.mark(Mark::GroupEnd(Class::Read));
            }
            Flowop::Append { fd, len, .. } => {
                let len = multiple(&mut self.random, len, 1);
                let content = self.content(fd);
                let write = Op::Write { fd: of(fd), len, content, times: 1 };
                let ops = [Op::Seek { fd: of(fd), to: Seek::End }, write];
                // Nothing is asked for where there is nothing to append, and it counts.
                self.counted(Class::Write, ops.into_iter().filter(|_| len > 0));
            }
            Flowop::Fsync { fd } => self.counted(Class::Other, [Op::Fsync { fd: of(fd) }]),
            Flowop::ReadNext { fd, len, .. } => {
                self.mark(Mark::GroupBegin);
                self.op(Op::Read { fd: of(fd), len, times: 1 });
                self.steps.push_back(Step::Rewind { fd });
            }
            Flowop::ReadRandom { len, .. } => {
                let fd = self.turn;
                let size = self.size(fd);
                let at = multiple(&mut self.random, size, len);
                self.counted(Class::Read, [Op::At(Io::Read { fd: of(fd), at, len })]);
            }
            _ => {}
        }
    }

    /// The next of some writes that nobody waits for.
    fn write_ahead(&mut self, set: u8, len: u64, turns: bool, left: u32) {
        if left == 0 {
            return;
        }
        let fd = if turns { self.next_turn() } else { 0 };
        let opening = match turns {
            true => self.opening(set, fd, true),
            false => self.opening(set, fd, true).map(|_| Step::Open {
                set,
                fd,
                by: By::Shared,
                sync: true,
            }),
        };
        self.first([Step::Ahead { set, len, turns, left: left - 1 }]);
        self.first([Step::Write { fd, len }]);
        self.first(opening);
    }

    /// A write that nobody waits for; the target counts it when it ends.
    fn start_write(&mut self, fd: u8, len: u64) -> Op {
        let size = self.size(fd);
        let at = multiple(&mut self.random, size, len);
        let content = self.content(fd);
        self.tag = self.tag.wrapping_add(1);
        self.started += 1;
        Op::Start { tag: self.tag, io: Io::Write { fd: of(fd), at, len, content } }
    }

    fn size(&self, fd: u8) -> u64 {
        let Some((set, file)) = self.file(fd) else { return 0 };
        self.lock(|shared| shared.sets[usize::from(set)].entry(file).size)
    }

    fn content(&self, fd: u8) -> Content {
        let Some((set, file)) = self.file(fd) else { return Content::Zeroes };
        self.lock(|shared| shared.sets[usize::from(set)].entry(file).content())
    }

    /// `bwlimit`: an event for each MiB, beginning with the second read.
    fn limit(&mut self, now: Time) {
        if !self.lock(|shared| shared.events.are_limited()) {
            return;
        }
        let Some(bytes) = self.unlimited else {
            self.unlimited = Some(0);
            return;
        };
        let bytes = bytes + self.read;
        let events = if bytes > 0 { bytes / EVENT_BYTES + 1 } else { 0 };
        self.unlimited = Some(bytes - events * EVENT_BYTES);
        if events > 0 {
            self.take_events(now, events);
        }
    }

    fn take_events(&mut self, now: Time, events: i64) {
        let time = self.lock(|shared| {
            let time = shared.events.take(now, events);
            shared.until_over(now, time)
        });
        if time > Nanos::ZERO {
            self.op(Op::Sleep(time));
        }
    }

    /// Opens, deletes or looks up a file, once one is free.
    fn pick(&mut self, step: Step, set: u8, rotor: Option<usize>) -> Result<u32, Option<Op>> {
        let queue = self.queue;
        let picked = self.lock(|shared| {
            let picked = shared.sets[usize::from(set)].pick(rotor);
            match picked {
                // Who holds it may have ended.
                Picked::Busy if shared.is_stopped() => Picked::Nothing,
                Picked::Busy => {
                    shared.sets[usize::from(set)].wait(queue);
                    Picked::Busy
                }
                picked => picked,
            }
        });
        match picked {
            Picked::File(file) => Ok(file),
            Picked::Busy => Err(Some(self.wait(step))),
            // As in filebench the run is over when there is no file of the sort.
            Picked::Nothing => {
                let woken = self.lock(Shared::stop);
                self.wake(woken);
                Err(None)
            }
        }
    }

    /// Puts steps before those that are left.
    fn first(&mut self, steps: impl IntoIterator<Item = Step, IntoIter: DoubleEndedIterator>) {
        for step in steps.into_iter().rev() {
            self.steps.push_front(step);
        }
    }

    /// An operation on a name or a descriptor that counts as one, and what becomes of the file.
    fn with_file(&mut self, op: Op, (set, file): (u8, u32), change: Change) {
        let (begin, end) = (Mark::GroupBegin, Mark::GroupEnd(Class::Other));
        self.first([
            Step::Op(Op::Mark(begin)),
            Step::Op(op),
            Step::Op(Op::Mark(end)),
            Step::Release { set, file, change },
        ]);
    }

    fn open_file(&mut self, set: u8, fd: u8, by: By, sync: bool) -> Option<Op> {
        let rotor = match by {
            By::Absent => None,
            By::Shared => Some(0),
            By::Own => Some(self.rotor),
        };
        let file = match self.pick(Step::Open { set, fd, by, sync }, set, rotor) {
            Ok(file) => file,
            Err(op) => return op,
        };
        let (path, is_read_only) = self.lock(|shared| {
            let files = &shared.sets[usize::from(set)];
            (files.entry(file).path.clone(), files.spec.is_read_only)
        });
        let flags = OpenFlags {
            read: true,
            write: !is_read_only,
            create: by == By::Absent,
            sync,
            ..OpenFlags::default()
        };
        self.open[usize::from(fd)] = Some((set, file));
        let change = if by == By::Absent { Change::Made } else { Change::Opened };
        self.with_file(Op::Open { fd: of(fd), path, flags }, (set, file), change);
        None
    }

    fn delete_file(&mut self, set: u8) -> Option<Op> {
        let file = match self.pick(Step::Delete { set }, set, Some(0)) {
            Ok(file) => file,
            Err(op) => return op,
        };
        let (path, is_open) = self.lock(|shared| {
            let files = &shared.sets[usize::from(set)];
            (files.entry(file).path.clone(), files.is_open(file))
        });
        if is_open {
            // One that somebody has open stays, and nothing counts.
            self.first([Step::Release { set, file, change: Change::LookedUp }]);
        } else {
            self.with_file(Op::Unlink { path }, (set, file), Change::Deleted);
        }
        None
    }

    fn close_file(&mut self, fd: u8) -> Option<Op> {
        let (set, file) = self.file(fd)?;
        let queue = self.queue;
        let is_taken = self.lock(|shared| {
            let is_stopped = shared.is_stopped();
            let files = &mut shared.sets[usize::from(set)];
            if !is_stopped && !files.take(file) {
                files.wait(queue);
                return false;
            }
            true
        });
        if !is_taken {
            return Some(self.wait(Step::Close { fd }));
        }
        self.open[usize::from(fd)] = None;
        self.with_file(Op::Close { fd: of(fd) }, (set, file), Change::Closed);
        None
    }

    fn write_on(&mut self, fd: u8, len: u64, left: u64) -> Option<Op> {
        let times = left.min(WRITES);
        if times == 0 {
            return None;
        }
        self.first([Step::WriteOn { fd, len, left: left - times }]);
        Some(Op::Write { fd: of(fd), len, content: self.content(fd), times })
    }

    fn post(&mut self, to: u32, last: u32) -> Option<Op> {
        if to == last {
            return None;
        }
        let queue = self.queue;
        let posted = self.lock(|shared| match shared.is_stopped() {
            true => Ok(None),
            false => shared.semaphores[to as usize].post(queue),
        });
        match posted {
            Ok(woken) => {
                self.first([Step::Post { to: to + 1, last }]);
                self.wake(woken.into_iter().collect());
                None
            }
            Err(()) => Some(self.wait(Step::Post { to, last })),
        }
    }

    /// Waits for so many of what is under way, and counts that.
    fn reap(&mut self, left: u32) -> Option<Op> {
        if left == 0 || self.started == 0 {
            // What ends within a group would not be counted by itself.
            let marks = [Mark::GroupBegin, Mark::GroupEnd(Class::Other)];
            self.first(marks.map(|mark| Step::Op(Op::Mark(mark))));
            return None;
        }
        self.started -= 1;
        self.first([Step::Reap(left - 1)]);
        Some(Op::Finish)
    }

    /// What a step asks for; `None` where it only changes what is to be done.
    fn step(&mut self, step: Step, now: Time, last: &OpResult) -> Option<Op> {
        match step {
            Step::Op(op) => return Some(op),
            Step::Open { set, fd, by, sync } => return self.open_file(set, fd, by, sync),
            Step::Delete { set } => return self.delete_file(set),
            Step::Stat { set } => match self.pick(step, set, Some(0)) {
                Ok(file) => {
                    let entry = |shared: &mut Shared| {
                        shared.sets[usize::from(set)].entry(file).path.clone()
                    };
                    let path = self.lock(entry);
                    self.with_file(Op::Stat { path }, (set, file), Change::LookedUp);
                }
                Err(op) => return op,
            },
            Step::Close { fd } => return self.close_file(fd),
            Step::Release { set, file, change } => {
                let release =
                    |shared: &mut Shared| shared.sets[usize::from(set)].release(file, change);
                let woken = self.lock(release);
                self.wake(woken);
            }
            Step::ReadOn { fd, len } if last.moved() > 0 => {
                self.first([step]);
                return Some(Op::Read { fd: of(fd), len, times: 1 });
            }
            Step::ReadOn { .. } => {}
            Step::Rewind { fd } => {
                self.read = last.moved() as i64;
                self.mark(Mark::GroupEnd(Class::Read));
                if self.read == 0 {
                    self.op(Op::Seek { fd: of(fd), to: Seek::Start(0) });
                }
            }
            Step::WriteOn { fd, len, left } => return self.write_on(fd, len, left),
            Step::Ahead { set, len, turns, left } => self.write_ahead(set, len, turns, left),
            Step::Write { fd, len } => return Some(self.start_write(fd, len)),
            Step::Begin(flowop) => self.moves(flowop),
            Step::Reap(left) => return self.reap(left),
            Step::TakePosts { of, value } => {
                let queue = self.queue;
                let take = |shared: &mut Shared| {
                    shared.is_stopped() || shared.semaphores[of].take(value.into(), queue)
                };
                if !self.lock(take) {
                    return Some(self.wait(step));
                }
            }
            Step::Post { to, last } => return self.post(to, last),
            Step::Delay { until } if until > now => {
                self.first([step]);
                let left = LOOK.min(until.since(now));
                return Some(Op::Sleep(self.lock(|shared| shared.until_over(now, left))));
            }
            Step::Delay { .. } => {}
        }
        None
    }
}

impl Process for Thread {
    fn next(&mut self, now: Time, last: OpResult) -> Op {
        if self.state == State::Begins {
            self.state = State::Works;
            return Op::Mark(Mark::Begin(0));
        }
        loop {
            if let Some(op) = self.pop_op() {
                return op;
            }
            if self.state == State::Ended {
                return Op::Done;
            }
            if self.ends(now) {
                continue;
            }
            if let Some(step) = self.steps.pop_front() {
                if let Some(op) = self.step(step, now, &last) {
                    return op;
                }
            } else {
                let flowop = self.flowops[self.at];
                self.at = (self.at + 1) % self.flowops.len();
                self.loops += u64::from(self.at == 0);
                self.begin(flowop, now);
            }
        }
    }
}

fn of(fd: u8) -> FileDescriptor {
    FileDescriptor(fd.into())
}

fn lock(shared: &Mutex<Shared>) -> MutexGuard<'_, Shared> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}
