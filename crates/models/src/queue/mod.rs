//! A block device's request queue and its scheduler, in front of one drive.
//!
//! Requests of the host come in, are merged with waiting neighbours, wait, and go to the drive in the
//! scheduler's order, so many at once as the drive takes. The queue is a value like the drives:
//! hand in what
//! happens with [`Queue::handle`], then drain [`Queue::poll`]. It does no I/O and knows no drive.
//!
//! The rules are those of the Linux kernels that had each scheduler, written from their documentation
//! and behaviour; defaults stand with each in [`Scheduler::spec`] and its module:
//!
//! | scheduler | kernels | source of rules and defaults |
//! |---|---|---|
//! | `noop` | 2.6.0 to 4.20 | first come, first served; merging behind a request only |
//! | `deadline` | 2.6.0 to 4.20 | `Documentation/block/deadline-iosched.txt` |
//! | `anticipatory` | 2.6.0 to 2.6.32, default to 2.6.17 | `Documentation/block/as-iosched.txt` |
//! | `cfq` | 2.6.6 to 4.20, default from 2.6.18 | `Documentation/block/cfq-iosched.txt`, as of 2.6.27 |
//! | `mq-deadline` | since 4.11, default for SATA since 5.0 | `Documentation/block/deadline-iosched.rst` |
//! | `none` | since 3.13, default for NVMe | no order; merging with the last 8 that wait |
//!
//! **Limits.** A kernel has so many requests per direction (`requests`); who comes beyond waits in order
//! until one ends. A merged request is at most `longest`: 512 KiB to 3.x, 1,280 KiB since 4.3; less
//! where the host's kernel or its driver makes no longer ones.
//!
//! **Left out**: priorities, cgroups, plugging, the requeue at a full drive, barriers of 2.6.

mod anticipatory;
mod cfq;
mod deadline;
mod lists;

use std::collections::VecDeque;
use std::fmt;
use std::str::FromStr;

use raidlab_core::contract::IoOutcome;
use raidlab_core::units::{Nanos, Sector, Sectors, Time};

use crate::drive::{DriveIo, DriveIoId, DriveOp};
use anticipatory::Anticipatory;
use cfq::Cfq;
use deadline::Deadline;
use lists::{Request, Requests, Waiting};

/// Which scheduler orders the requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Scheduler {
    /// First come, first served, with merging.
    Noop,
    /// One-way elevator in batches, with expiry.
    Deadline,
    /// The same with waiting for the next read of the process that was served last.
    Anticipatory,
    /// Time slices of the drive for each process.
    Cfq,
    /// Deadline for drives that take many requests at once.
    MqDeadline,
    /// Straight to the drive.
    None,
}

impl Scheduler {
    /// All of them.
    pub const ALL: [Self; 6] =
        [Self::Noop, Self::Deadline, Self::Anticipatory, Self::Cfq, Self::MqDeadline, Self::None];

    /// The name, as in `/sys/block/*/queue/scheduler`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Noop => "noop",
            Self::Deadline => "deadline",
            Self::Anticipatory => "anticipatory",
            Self::Cfq => "cfq",
            Self::MqDeadline => "mq-deadline",
            Self::None => "none",
        }
    }

    /// The queue as the kernels had it by default, for a drive that takes `depth` requests at once.
    pub fn spec(self, depth: u32) -> QueueSpec {
        let depth = depth.max(1);
        let old = !matches!(self, Self::MqDeadline | Self::None);
        // BLKDEV_MAX_RQ is 128 per direction; blk-mq has twice the drive's depth with a scheduler and
        // one for each of its tags without.
        let requests = match self {
            Self::MqDeadline => 2 * depth.min(128),
            Self::None => depth.saturating_mul(2),
            _ => 128,
        };
        let longest = if old { Sectors(1_024) } else { Sectors(2_560) };
        QueueSpec { scheduler: self, depth, requests, longest }
    }
}

impl fmt::Display for Scheduler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Scheduler {
    type Err = String;

    /// Reads a name; the error says which there are.
    fn from_str(text: &str) -> Result<Self, String> {
        Self::ALL.into_iter().find(|one| one.name() == text).ok_or_else(|| {
            let known = Self::ALL.map(Self::name).join(", ");
            format!("`{text}` is not a scheduler; known: {known}")
        })
    }
}

/// A request queue's parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueSpec {
    /// Who orders the requests.
    pub scheduler: Scheduler,
    /// Requests that the drive has at once, at least 1.
    pub depth: u32,
    /// Requests that exist at once, for reads and for writes each; more wait in order.
    pub requests: u32,
    /// The longest request that merging makes.
    pub longest: Sectors,
}

/// An input to a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueueInput {
    /// A request of the host.
    Submit {
        /// The request; its id is the caller's and comes back in [`QueueOutput::Complete`].
        io: DriveIo,
        /// On whose behalf: whatever number stands for a process.
        process: u32,
    },
    /// The drive has ended what [`QueueOutput::Dispatch`] gave it, by the id it had there.
    Ended {
        /// Which.
        id: DriveIoId,
        /// How it went.
        outcome: IoOutcome,
    },
    /// The time asked for by [`QueueOutput::WakeAt`] has come. Early or needless ones do no harm.
    Wake,
}

/// An output of a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueueOutput {
    /// Hand this to the drive. The id is the queue's own.
    Dispatch(DriveIo),
    /// A request of the host ended.
    Complete {
        /// The caller's name for it.
        id: DriveIoId,
        /// How it went.
        outcome: IoOutcome,
    },
    /// Hand in [`QueueInput::Wake`] at this time. Replaces the time asked for before.
    WakeAt(Time),
}

/// What a scheduler wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    /// This request goes to the drive.
    Dispatch(u32),
    /// Nothing before this time, unless something comes.
    Wait(Time),
    /// Nothing until something comes or ends.
    Nothing,
}

#[derive(Clone, Debug)]
enum Order {
    Fifo(VecDeque<u32>),
    Deadline(Deadline),
    Anticipatory(Anticipatory),
    Cfq(Cfq),
}

/// A request of the host within a request of the queue.
#[derive(Clone, Copy, Debug)]
struct Part {
    io: DriveIo,
    next: Option<u32>,
}

/// A request queue with its scheduler. See the module for what is modelled.
#[derive(Clone, Debug)]
pub struct Queue {
    spec: QueueSpec,
    order: Order,
    requests: Requests,
    parts: Vec<Part>,
    free_parts: Vec<u32>,
    /// Requests that exist, by direction: reads, writes.
    exist: [u32; 2],
    /// Requests of the host for which there is none, by direction.
    held: [VecDeque<(DriveIo, u32)>; 2],
    /// Flushes go first, past the scheduler.
    flushes: VecDeque<u32>,
    in_flight: u32,
    outputs: VecDeque<QueueOutput>,
    wake: Option<Time>,
    wake_told: Option<Time>,
}

impl Queue {
    /// An empty queue.
    pub fn new(spec: &QueueSpec) -> Self {
        let order = match spec.scheduler {
            Scheduler::Noop | Scheduler::None => Order::Fifo(VecDeque::with_capacity(256)),
            Scheduler::Deadline => Order::Deadline(Deadline::new(false)),
            Scheduler::MqDeadline => Order::Deadline(Deadline::new(true)),
            Scheduler::Anticipatory => Order::Anticipatory(Anticipatory::new()),
            Scheduler::Cfq => Order::Cfq(Cfq::new()),
        };
        Self {
            spec: QueueSpec { depth: spec.depth.max(1), requests: spec.requests.max(1), ..*spec },
            order,
            requests: Requests::new(),
            parts: Vec::with_capacity(256),
            free_parts: Vec::with_capacity(256),
            exist: [0; 2],
            held: [VecDeque::new(), VecDeque::new()],
            flushes: VecDeque::new(),
            in_flight: 0,
            outputs: VecDeque::with_capacity(64),
            wake: None,
            wake_told: None,
        }
    }

    /// The parameters.
    pub fn spec(&self) -> &QueueSpec {
        &self.spec
    }

    /// Takes an input; `now` never goes back.
    #[inline(always)]
    pub fn handle(&mut self, now: Time, input: QueueInput) {
        match input {
            QueueInput::Submit { io, process } => self.submit(now, io, process),
            QueueInput::Ended { id, outcome } => self.ended(now, id, outcome),
            QueueInput::Wake => {}
        }
        self.dispatch(now);
    }

    /// The next output; drain until `None` after every [`handle`](Self::handle).
    pub fn poll(&mut self) -> Option<QueueOutput> {
        if let Some(output) = self.outputs.pop_front() {
            return Some(output);
        }
        if self.wake == self.wake_told {
            return None;
        }
        self.wake_told = self.wake;
        self.wake.map(QueueOutput::WakeAt)
    }

    fn submit(&mut self, now: Time, io: DriveIo, process: u32) {
        if io.op == DriveOp::Flush {
            let part = self.part(io);
            let slot = self.requests.insert(Request::new(io, process, now, part));
            self.flushes.push_back(slot);
            return;
        }
        let direction = lists::direction(io.op);
        if !self.held[direction].is_empty() {
            self.held[direction].push_back((io, process));
            return;
        }
        if self.merge(io, process) {
            return;
        }
        if self.exist[direction] >= self.spec.requests {
            self.held[direction].push_back((io, process));
            return;
        }
        self.add(now, io, process);
    }

    fn add(&mut self, now: Time, io: DriveIo, process: u32) {
        self.exist[lists::direction(io.op)] += 1;
        let part = self.part(io);
        let slot = self.requests.insert(Request::new(io, process, now, part));
        match &mut self.order {
            Order::Fifo(waiting) => waiting.push_back(slot),
            Order::Deadline(order) => order.add(&self.requests, slot),
            Order::Anticipatory(order) => order.add(now, &self.requests, slot),
            Order::Cfq(order) => order.add(now, &self.requests, slot),
        }
    }

    fn part(&mut self, io: DriveIo) -> u32 {
        let part = Part { io, next: None };
        if let Some(slot) = self.free_parts.pop() {
            self.parts[slot as usize] = part;
            slot
        } else {
            self.parts.push(part);
            self.parts.len() as u32 - 1
        }
    }

    /// The waiting request that ends where what has come begins; if there is none, one that begins where
    /// it ends.
    fn mergeable(&self, io: DriveIo, process: u32) -> (Option<u32>, Option<u32>) {
        let (start, end) = (io.at.0, io.at.0.saturating_add(io.len.into()));
        let longest = self.spec.longest.0;
        if u64::from(io.len) >= longest {
            return (None, None);
        }
        let fits = |request: &Request| {
            request.op == io.op
                && request.fua == io.fua
                && request.len > 0
                && request.len + u64::from(io.len) <= longest
                && (!matches!(self.order, Order::Cfq(_))
                    || io.op == DriveOp::Write
                    || request.process == process)
        };
        let requests = &self.requests;
        let behind = |slot: &u32| requests.get(*slot).end() == start && fits(requests.get(*slot));
        let before = |slot: &u32| requests.get(*slot).at == end && fits(requests.get(*slot));
        // Only those of the same kind fit, which wait in one list.
        let direction = lists::direction(io.op);
        let list = match &self.order {
            Order::Fifo(waiting) if self.spec.scheduler == Scheduler::None => {
                let last = || waiting.iter().rev().take(8).copied();
                return (last().find(behind), last().find(before));
            }
            Order::Fifo(waiting) => return (waiting.iter().copied().find(behind), None),
            Order::Deadline(order) => Some(order.waiting(direction)),
            Order::Anticipatory(order) => Some(order.waiting(direction)),
            Order::Cfq(order) => order.waiting(io.op, process),
        };
        let Some(list) = list.filter(|list| !list.is_empty()) else { return (None, None) };
        let near = list.close_before(start, longest);
        let back = first_of(near.filter(behind), list, behind);
        if back.is_some() {
            return (back, None);
        }
        (None, first_of(list.beginning_at(end).filter(before), list, before))
    }

    /// Joins what has come to a waiting request that ends where it begins, or the other way round.
    fn merge(&mut self, io: DriveIo, process: u32) -> bool {
        if io.len == 0 {
            return false;
        }
        let start = io.at.0;
        let (back, front) = self.mergeable(io, process);
        if let Some(slot) = back {
            let part = self.part(io);
            let request = self.requests.get_mut(slot);
            request.len += u64::from(io.len);
            self.parts[request.last as usize].next = Some(part);
            request.last = part;
        } else if let Some(slot) = front {
            let part = self.part(io);
            let request = self.requests.get_mut(slot);
            self.parts[part as usize].next = Some(request.first);
            let old = request.at;
            (request.at, request.first) = (start, part);
            request.len += u64::from(io.len);
            match &mut self.order {
                Order::Fifo(_) => {}
                Order::Deadline(order) => order.moved(&self.requests, slot, old),
                Order::Anticipatory(order) => order.moved(&self.requests, slot, old),
                Order::Cfq(order) => order.moved(&self.requests, slot, old),
            }
        }
        back.or(front).is_some()
    }

    /// Gives the drive what it may have.
    fn dispatch(&mut self, now: Time) {
        self.wake = None;
        while self.in_flight < self.spec.depth {
            if let Some(slot) = self.flushes.pop_front() {
                self.send(slot);
                continue;
            }
            let next = match &mut self.order {
                Order::Fifo(waiting) => waiting.pop_front().map_or(Next::Nothing, Next::Dispatch),
                Order::Deadline(order) => order.next(now, &self.requests),
                Order::Anticipatory(order) => order.next(now, &self.requests),
                Order::Cfq(order) => order.next(now, &self.requests),
            };
            match next {
                Next::Dispatch(slot) => self.send(slot),
                Next::Wait(until) => {
                    self.wake = Some(until);
                    return;
                }
                Next::Nothing => return,
            }
        }
    }

    fn send(&mut self, slot: u32) {
        self.in_flight += 1;
        let request = self.requests.get(slot);
        let io = DriveIo {
            id: DriveIoId(slot),
            op: request.op,
            at: Sector(request.at),
            len: request.len as u32,
            fua: request.fua,
        };
        self.outputs.push_back(QueueOutput::Dispatch(io));
    }

    fn ended(&mut self, now: Time, id: DriveIoId, outcome: IoOutcome) {
        let request = *self.requests.get(id.0);
        self.in_flight = self.in_flight.saturating_sub(1);
        let mut next = Some(request.first);
        while let Some(slot) = next {
            let part = self.parts[slot as usize];
            let outcome = part_outcome(&part.io, outcome);
            self.outputs.push_back(QueueOutput::Complete { id: part.io.id, outcome });
            self.free_parts.push(slot);
            next = part.next;
        }
        self.requests.remove(id.0);
        if request.op == DriveOp::Flush {
            return;
        }
        match &mut self.order {
            Order::Fifo(_) | Order::Deadline(_) => {}
            Order::Anticipatory(order) => order.ended(now, &request),
            Order::Cfq(order) => order.ended(now, &request),
        }
        let direction = lists::direction(request.op);
        self.exist[direction] -= 1;
        while self.exist[direction] < self.spec.requests
            && let Some((io, process)) = self.held[direction].pop_front()
        {
            if !self.merge(io, process) {
                self.add(now, io, process);
            }
        }
    }
}

/// The only one found in a list, or of several the first by age.
fn first_of(
    mut found: impl Iterator<Item = u32>,
    list: &Waiting,
    is_it: impl Fn(&u32) -> bool,
) -> Option<u32> {
    let one = found.next()?;
    match found.next() {
        None => Some(one),
        Some(_) => list.slots().find(is_it),
    }
}

/// What the end of a merged request means for a part of it: before the first bad sector all is well.
fn part_outcome(io: &DriveIo, outcome: IoOutcome) -> IoOutcome {
    match outcome {
        IoOutcome::MediaError { first_bad } if io.at.0 + u64::from(io.len) <= first_bad.0 => {
            IoOutcome::Ok
        }
        IoOutcome::MediaError { first_bad } => {
            IoOutcome::MediaError { first_bad: first_bad.max(io.at) }
        }
        other => other,
    }
}

/// Milliseconds as the kernels' defaults are given.
const fn ms(millis: u64) -> Nanos {
    Nanos::from_millis(millis)
}
