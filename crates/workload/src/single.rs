//! Operations that stand for many, one after the other: for targets that carry out single ones.

use raidlab_core::Time;

use crate::op::{Class, Content, FileDescriptor, Mark, Op, OpResult, Seek};
use crate::plan::{Plan, Planned, Process};

impl Plan {
    /// The same plan whose processes ask for single reads and writes instead of [`Op::Rewrite`],
    /// [`Op::Copy`], [`Op::ReadStdioBytes`] and [`Op::WriteStdioBytes`]: what real programs do, and what a
    /// target does that does not carry these out.
    #[must_use]
    pub fn in_single_operations(mut self) -> Self {
        for stage in [&mut self.prepare, &mut self.warm, &mut self.run] {
            for planned in std::mem::take(stage) {
                let process = Box::new(Single { process: planned.process, many: None });
                stage.push(Planned { process, ..planned });
            }
        }
        self
    }
}

/// Bytes whose work one by one is done at once: before they are written; after they were read, no more than
/// the shortest read-ahead has there.
const CHARACTERS: [u64; 2] = [256 << 10, 128 << 10];

/// A process whose operations that stand for many are asked for one by one.
#[derive(Debug)]
struct Single {
    process: Box<dyn Process>,
    many: Option<Many>,
}

/// An operation that stands for many, what of it comes next, and the bytes that it has moved.
#[derive(Clone, Copy, Debug)]
struct Many {
    of: ManyOp,
    next: Next,
    moved: u64,
}

#[derive(Clone, Copy, Debug)]
enum ManyOp {
    Rewrite { fd: FileDescriptor, len: u64, number: u64, left: u64 },
    Copy { from: FileDescriptor, to: FileDescriptor, len: u64 },
    StdioBytes { fd: FileDescriptor, len: u64, left: u64, is_read: bool },
}

#[derive(Clone, Copy, Debug)]
enum Next {
    Begin,
    Read,
    Seek,
    Write,
    End,
}

impl Many {
    /// The first of what an operation stands for.
    fn of(op: &Op) -> Option<Self> {
        let (of, next) = match *op {
            Op::Rewrite { fd, len, number, times } => {
                (ManyOp::Rewrite { fd, len, number, left: times }, Next::Begin)
            }
            Op::Copy { from, to, len } => (ManyOp::Copy { from, to, len }, Next::Read),
            Op::ReadStdioBytes { fd, len, times: left } => {
                (ManyOp::StdioBytes { fd, len, left, is_read: true }, Next::Begin)
            }
            Op::WriteStdioBytes { fd, len, times: left } => {
                (ManyOp::StdioBytes { fd, len, left, is_read: false }, Next::Begin)
            }
            _ => return None,
        };
        Some(Self { of, next, moved: 0 })
    }

    /// What is done next, given how what was done before went; `None` when it is all done.
    fn next(&mut self, last: &OpResult) -> Option<Op> {
        let (op, next) = match &mut self.of {
            ManyOp::Copy { from, to, len } => match self.next {
                Next::Write if last.moved() == 0 => return None,
                Next::Write => {
                    let (fd, len, content) = (*to, last.moved(), Content::Buffer { from: 0 });
                    self.moved += len;
                    (Op::Write { fd, len, content, times: 1 }, Next::Read)
                }
                _ => (Op::Read { fd: *from, len: *len, times: 1 }, Next::Write),
            },
            ManyOp::Rewrite { fd, len, number, left } => {
                let (fd, len) = (*fd, *len);
                match self.next {
                    Next::Begin if *left == 0 => return None,
                    Next::Begin => (Op::Mark(Mark::GroupBegin), Next::Read),
                    Next::Read => (Op::Read { fd, len, times: 1 }, Next::Seek),
                    Next::Seek => {
                        let back = Seek::Current(-(last.moved() as i64));
                        (Op::Seek { fd, to: back }, Next::Write)
                    }
                    Next::Write => {
                        let content = Content::Stamp { number: *number };
                        (Op::Write { fd, len, content, times: 1 }, Next::End)
                    }
                    Next::End => {
                        self.moved += last.moved();
                        (*number, *left) = (*number + 1, *left - 1);
                        (Op::Mark(Mark::GroupEnd(Class::Write)), Next::Begin)
                    }
                }
            }
            ManyOp::StdioBytes { fd, len, left, is_read } => {
                if *left == 0 {
                    return None;
                }
                let (fd, len) = (*fd, *len);
                let times = (CHARACTERS[usize::from(*is_read)] / len.max(1)).clamp(1, *left);
                let is_first = matches!(self.next, Next::Begin);
                let op = match (is_first, *is_read) {
                    (true, false) | (false, true) => Op::StdioBytes(times * len),
                    (true, true) => Op::Read { fd, len, times },
                    (false, false) => Op::Write { fd, len, content: Content::Zeroes, times },
                };
                if !is_first {
                    (*left, self.moved) = (*left - times, self.moved + times * len);
                }
                (op, if is_first { Next::End } else { Next::Begin })
            }
        };
        self.next = next;
        Some(op)
    }
}

impl Process for Single {
    fn next(&mut self, now: Time, mut last: OpResult) -> Op {
        if let Some(many) = &mut self.many {
            if let Some(op) = many.next(&last) {
                return op;
            }
            last = OpResult::Moved(many.moved);
            self.many = None;
        }
        let op = self.process.next(now, last);
        let Some(mut many) = Many::of(&op) else { return op };
        // What it stands for is at least one.
        let first = many.next(&OpResult::Done);
        self.many = Some(many);
        first.unwrap_or(op)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::steps::planned;

    fn asked(op: Op, answers: Vec<u64>) -> Vec<Op> {
        let run = vec![planned(0, [op].into_iter())];
        let mut plan = Plan { run, ..Plan::default() }.in_single_operations();
        let mut process = plan.run.remove(0).process;
        let mut last = OpResult::Start;
        let mut answers = answers.into_iter();
        let mut ops = Vec::new();
        loop {
            let op = process.next(Time::ZERO, last);
            if op == Op::Done {
                return ops;
            }
            last = match op {
                Op::Read { .. } | Op::Write { .. } => OpResult::Moved(answers.next().expect("one")),
                _ => OpResult::Done,
            };
            ops.push(op);
        }
    }

    #[test]
    fn a_copy_is_reads_and_writes_until_nothing_is_read() {
        let (from, to, len) = (FileDescriptor(0), FileDescriptor(1), 4096);
        let read = Op::Read { fd: from, len, times: 1 };
        let content = Content::Buffer { from: 0 };
        let write = |len| Op::Write { fd: to, len, content, times: 1 };
        let copy = || Op::Copy { from, to, len };
        let whole = asked(copy(), vec![4096, 4096, 7, 7, 0]);
        assert_eq!(whole, [read.clone(), write(4096), read.clone(), write(7), read.clone()]);
        assert_eq!(asked(copy(), vec![0]), [read]);
    }

    #[test]
    fn bytes_are_put_before_they_are_written_and_taken_after_they_were_read() {
        let (fd, len) = (FileDescriptor(2), 4096);
        let work = |times| Op::StdioBytes(times * len);
        let write = |times| Op::Write { fd, len, content: Content::Zeroes, times };
        let read = |times| Op::Read { fd, len, times };
        let ops = asked(Op::WriteStdioBytes { fd, len, times: 65 }, vec![64 * len, len]);
        assert_eq!(ops, [work(64), write(64), work(1), write(1)]);
        let ops = asked(Op::ReadStdioBytes { fd, len, times: 66 }, vec![32 * len; 3]);
        assert_eq!(ops, [read(32), work(32), read(32), work(32), read(2), work(2)]);
    }

    #[test]
    fn rewriting_goes_back_over_what_was_read_and_counts_as_one() {
        let (fd, len) = (FileDescriptor(3), 8192);
        let block = |number| {
            [
                Op::Mark(Mark::GroupBegin),
                Op::Read { fd, len, times: 1 },
                Op::Seek { fd, to: Seek::Current(-8192) },
                Op::Write { fd, len, content: Content::Stamp { number }, times: 1 },
                Op::Mark(Mark::GroupEnd(Class::Write)),
            ]
        };
        let ops = asked(Op::Rewrite { fd, len, number: 5, times: 2 }, vec![len; 4]);
        assert_eq!(ops, [block(5), block(6)].concat());
    }
}
