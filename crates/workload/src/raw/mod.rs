//! One process of a workload: a generator of operations.

use raidlab_core::Time;

use crate::random::Random;
use crate::spec::WorkloadSpec;

/// What a process asks for. Places and lengths are in bytes, from the start of the raw target.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Op {
    /// Read.
    Read {
        /// The first byte.
        at: u64,
        /// How many bytes.
        len: u64,
    },
    /// Write.
    Write {
        /// The first byte.
        at: u64,
        /// How many bytes.
        len: u64,
    },
    /// Make every write of this process durable.
    Sync,
    /// Nothing more: the process is done.
    Done,
}

/// How the last operation of a process went.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum OpResult {
    /// There was none yet.
    Start,
    /// It was carried out.
    Done,
    /// It was not.
    Failed,
}

/// One process of a workload. Same seed and results, same operations.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Process {
    program: Program,
    block: u64,
    writes: bool,
    /// A flush is still to come.
    sync: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Program {
    /// Block by block from `at` to `end`.
    Sequential { at: u64, end: u64 },
    /// `left` operations at any of `places` blocks.
    Random { random: Random, places: u64, left: u64 },
    /// Nothing more.
    Over,
}

impl Process {
    pub(crate) fn new(spec: &WorkloadSpec, (start, end): (u64, u64), seed: u64) -> Self {
        let program = if spec.kind.is_random() {
            let places = (end - start) / spec.block;
            Program::Random { random: Random::new(seed), places, left: spec.operations() }
        } else {
            Program::Sequential { at: start, end }
        };
        Self { program, block: spec.block, writes: spec.writes(), sync: spec.writes() }
    }

    /// What to do next. `now` is the time by the target's clock, `last` how the operation before
    /// went.
    ///
    /// A process ends at its first failed operation, as `dd` does. After [`Op::Done`] it gives
    /// [`Op::Done`] for ever.
    pub fn next(&mut self, _now: Time, last: OpResult) -> Op {
        if last == OpResult::Failed {
            self.program = Program::Over;
            self.sync = false;
        }
        let (at, len) = match &mut self.program {
            Program::Sequential { at, end } if *at < *end => {
                let from = *at;
                let len = self.block.min(*end - from);
                *at += len;
                (from, len)
            }
            Program::Random { random, places, left } if *left > 0 => {
                *left -= 1;
                (random.below(*places) * self.block, self.block)
            }
            _ => return if std::mem::take(&mut self.sync) { Op::Sync } else { Op::Done },
        };
        if self.writes { Op::Write { at, len } } else { Op::Read { at, len } }
    }
}
