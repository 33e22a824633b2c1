//! A seeking process: reads blocks at random places for as long as there are tickets.

use std::collections::VecDeque;
use std::sync::Arc;

use raidlab_core::Time;

use super::draws::Draws;
use super::files::{Job, UPDATE_EVERY};
use super::{Version, phases};
use crate::op::{Class, Content, Mark, Op, OpResult, Seek};
use crate::plan::Process;

/// A process in 1.03, a thread in 2.00; both open the files on their own.
#[derive(Debug)]
pub(super) struct Seeker {
    job: Arc<Job>,
    draws: Draws,
    ops: VecDeque<Op>,
    /// Tickets it has taken; the first one starts its clock.
    taken: u64,
}

impl Seeker {
    pub(super) fn new(job: Arc<Job>, draws: Draws) -> Self {
        let mut ops = VecDeque::from([Op::Barrier(job.barriers[0])]);
        job.open(&mut ops);
        ops.push_back(Op::Take { queue: job.queue });
        Self { job, draws, ops, taken: 0 }
    }

    fn ticket(&mut self, ticket: i64) {
        if self.taken == 0 {
            self.ops.push_back(Op::Mark(Mark::Begin(phases::SEEKS)));
        }
        self.taken += 1;
        if ticket == self.job.last_ticket() {
            // Closing is inside the time, and with it the last fsync.
            self.job.close(&mut self.ops);
            self.ops.push_back(Op::Mark(Mark::End(phases::SEEKS)));
            self.ops.push_back(Op::Barrier(self.job.barriers[1]));
            return;
        }
        let len = self.job.chunk;
        let (chunk, is_update, changed) = match self.job.version {
            Version::V103 => {
                let chunk = self.draws.below(self.job.chunks());
                let is_update = (self.taken - 1).is_multiple_of(UPDATE_EVERY.into());
                (chunk, is_update, if is_update { self.draws.below(len) } else { 0 })
            }
            Version::V200 => {
                let chunk = ticket.unsigned_abs() % self.job.chunks();
                (chunk, ticket < 0, chunk % len)
            }
        };
        let (fd, at) = self.job.place(chunk);
        self.ops.extend([
            Op::Mark(Mark::GroupBegin),
            Op::Seek { fd, to: Seek::Start(at) },
            Op::Read { fd, len, times: 1 },
        ]);
        if is_update {
            // The original decreases the byte, which costs the same.
            let content = Content::Stamp { number: changed };
            self.ops.push_back(Op::Seek { fd, to: Seek::Start(at) });
            self.ops.push_back(Op::Write { fd, len, content, times: 1 });
            if self.job.sync {
                self.ops.push_back(Op::Fsync { fd });
            }
        }
        let class = if is_update { Class::Write } else { Class::Read };
        self.ops.push_back(Op::Mark(Mark::GroupEnd(class)));
        self.ops.push_back(Op::Take { queue: self.job.queue });
    }
}

impl Process for Seeker {
    fn next(&mut self, _now: Time, last: OpResult) -> Op {
        if let OpResult::Ticket(ticket) = last {
            self.ticket(ticket);
        }
        self.ops.pop_front().unwrap_or(Op::Done)
    }
}
