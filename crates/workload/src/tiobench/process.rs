//! What a thread of tiobench does.

use std::collections::VecDeque;

use raidlab_core::Time;

use super::{Generation, Phase};
use crate::op::{Content, FileDescriptor, FilePath, Io, Mark, Op, OpResult, OpenFlags, Seek};
use crate::plan::Process;
use raidlab_random::{Random, mix};

const SLOT: FileDescriptor = FileDescriptor(0);

/// What a thread is to do, and with what.
#[derive(Clone, Debug)]
pub(super) struct Job {
    pub(super) generation: Generation,
    pub(super) path: FilePath,
    pub(super) block: u64,
    /// In its file.
    pub(super) blocks: u64,
    /// In each random phase.
    pub(super) operations: u64,
    pub(super) sync: bool,
    pub(super) direct: bool,
    pub(super) is_raw: bool,
    /// Where the threads of its copy meet before each phase.
    pub(super) barrier: u16,
    /// When threads write from start to end one after the other: its turn.
    pub(super) turn: Option<Turn>,
    pub(super) phases: VecDeque<Phase>,
    /// Seed of the run, copy, thread.
    pub(super) seed: [u64; 3],
}

/// The queues that pass the turn on from thread to thread.
#[derive(Clone, Copy, Debug)]
pub(super) struct Turn {
    /// Where it takes its turn; the first thread just starts.
    pub(super) mine: Option<u16>,
    /// Where it gives the turn to the next one.
    pub(super) next: Option<u16>,
}

/// A thread.
#[derive(Debug)]
pub(super) struct Thread {
    job: Job,
    ops: VecDeque<Op>,
    body: Option<Body>,
}

/// The part of a phase that is made as it goes.
#[derive(Debug)]
struct Body {
    phase: Phase,
    done: u64,
    wanted: u64,
    random: Random,
}

impl Job {
    pub(super) fn process(self) -> Thread {
        Thread { job: self, ops: VecDeque::new(), body: None }
    }

    fn flags(&self, phase: Phase) -> OpenFlags {
        match (self.generation, phase) {
            (Generation::V03, Phase::SequentialWrite) => {
                OpenFlags { read: true, sync: self.sync, ..OpenFlags::WRITE }
            }
            (Generation::V03, Phase::RandomWrite) => {
                OpenFlags { read: false, sync: self.sync, ..OpenFlags::BOTH }
            }
            (Generation::V03, _) => OpenFlags::READ,
            (Generation::V04, _) => {
                OpenFlags { create: true, sync: self.sync, direct: self.direct, ..OpenFlags::BOTH }
            }
        }
    }

    /// The turn this thread waits for in this phase, when threads go one after the other in it.
    fn turn_in(&self, phase: Phase) -> Option<Turn> {
        self.turn.filter(|_| phase == Phase::SequentialWrite)
    }

    fn begin(&self, phase: Phase, ops: &mut VecDeque<Op>) {
        match self.turn_in(phase) {
            None => ops.push_back(Op::Barrier(self.barrier)),
            Some(turn) => ops.extend(turn.mine.map(|queue| Op::Take { queue })),
        }
        let flags = self.flags(phase);
        ops.push_back(Op::Mark(Mark::Begin(phase as u16)));
        ops.push_back(Op::Open { fd: SLOT, path: self.path.clone(), flags });
        match self.generation {
            Generation::V03 => ops.push_back(Op::Seek { fd: SLOT, to: Seek::Start(0) }),
            // A raw device has the length it has.
            Generation::V04 if self.is_raw => {}
            Generation::V04 => {
                ops.push_back(Op::Truncate { fd: SLOT, len: self.blocks * self.block });
            }
        }
    }

    fn end(&self, phase: Phase, ops: &mut VecDeque<Op>) {
        if self.generation == Generation::V04 || phase.writes() {
            ops.push_back(Op::Fsync { fd: SLOT });
        }
        ops.push_back(Op::Close { fd: SLOT });
        ops.push_back(Op::Mark(Mark::End(phase as u16)));
        if let Some(queue) = self.turn_in(phase).and_then(|turn| turn.next) {
            ops.push_back(Op::Put { queue, ticket: 1, times: 1 });
        }
    }

    fn body(&self, phase: Phase) -> Body {
        let [seed, copy, thread] = self.seed;
        let wanted = match (phase.is_random(), self.generation) {
            (true, _) => self.operations,
            // All in one operation that is repeated.
            (false, Generation::V03) => 1,
            (false, Generation::V04) => self.blocks,
        };
        let random = Random::new(mix(&[seed, copy, thread, phase as u64]));
        Body { phase, done: 0, wanted, random }
    }
}

impl Body {
    /// The next read or write.
    fn step(&mut self, job: &Job, ops: &mut VecDeque<Op>) {
        let (len, fd) = (job.block, SLOT);
        let times = if self.phase.is_random() { 1 } else { job.blocks };
        let writes = self.phase.writes();
        let index = match (self.phase.is_random(), job.generation) {
            (false, _) => self.done,
            // Its own remainder by one block less, so it never hits the last one.
            (true, Generation::V03) => self.random.below(job.blocks - 1),
            (true, Generation::V04) => self.random.below(job.blocks),
        };
        self.done += 1;
        let (at, content) = (index * job.block, Content::Zeroes);
        match job.generation {
            Generation::V04 if writes => ops.push_back(Op::At(Io::Write { fd, at, len, content })),
            Generation::V04 => ops.push_back(Op::At(Io::Read { fd, at, len })),
            Generation::V03 => {
                if self.phase.is_random() {
                    ops.push_back(Op::Seek { fd, to: Seek::Start(at) });
                }
                ops.push_back(match writes {
                    true => Op::Write { fd, len, content, times },
                    false => Op::Read { fd, len, times },
                });
            }
        }
    }
}

impl Process for Thread {
    fn next(&mut self, _now: Time, _last: OpResult) -> Op {
        loop {
            if let Some(op) = self.ops.pop_front() {
                return op;
            }
            match self.body.take() {
                Some(mut body) if body.done < body.wanted => {
                    body.step(&self.job, &mut self.ops);
                    self.body = Some(body);
                }
                Some(body) => self.job.end(body.phase, &mut self.ops),
                None => {
                    let Some(phase) = self.job.phases.pop_front() else { return Op::Done };
                    self.job.begin(phase, &mut self.ops);
                    self.body = Some(self.job.body(phase));
                }
            }
        }
    }
}
