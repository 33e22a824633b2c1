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
//! where the host's kernel or its driver makes no longer ones. What is longer comes in as several (`bio_split_rw`,
//! block/blk-merge.c).
//!
//! **Flushes** where they are [merged](QueueSpec::merges_flushes), as since 2.6.39 (`blk_kick_flush`, block/blk-flush.c
//! of 6.12): one is at the drive at a time, and all that come meanwhile are one then. For a drive without FUA a write
//! with it is one without and a flush behind it; until the write has ended no flush begins, so that those that come
//! meanwhile are one with it. Where such writes overlap without end, what has waited for 5 s begins with whatever
//! asks or ends next (`FLUSH_PENDING_TIMEOUT`).
//!
//! **Plugs** where the host has them ([`QueueSpec::plugged`]): what a thread of md sends while it works at one event is
//! merged before any of it is dispatched (`blk_start_plug`, `blk_attempt_plug_merge`).
//!
//! **Left out**: priorities, cgroups, the requeue at a full drive, barriers of 2.6.

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
        QueueSpec {
            scheduler: self,
            depth,
            requests,
            longest,
            plugged: None,
            merges_flushes: false,
            has_fua: true,
        }
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
    /// The longest request: merging makes none that is longer, and longer ones are split.
    pub longest: Sectors,
    /// The longest request made of those under one [plug](QueueInput::Hold). Default none: there are no plugs, and each
    /// is offered to the drive as it comes.
    pub plugged: Option<Sectors>,
    /// Whether flushes that wait together are one. Default no: each goes to the drive.
    pub merges_flushes: bool,
    /// Whether the drive is told of FUA. Default yes; where flushes are merged, else a flush follows the write.
    pub has_fua: bool,
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
    /// The same under a plug, as a kernel's thread has it while it works (`blk_start_plug`): it merges, and the drive
    /// gets nothing before the plug is pulled, by any other input.
    Hold {
        /// The request.
        io: DriveIo,
        /// On whose behalf.
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

/// Flushes that are merged.
#[derive(Clone, Debug, Default)]
struct Flushes {
    /// Whom the flush at the drive is for, and whom the next one.
    running: Vec<DriveIoId>,
    pending: Vec<DriveIoId>,
    /// Since when one of the latter waits.
    since: Time,
    /// Writes under way that a flush is to follow.
    writes: u32,
}

impl Flushes {
    fn wait(&mut self, now: Time, id: DriveIoId) {
        if self.pending.is_empty() {
            self.since = now;
        }
        self.pending.push(id);
    }
}

/// A flush that has waited for so long does not wait for writes any longer.
const FLUSH_PENDING_TIMEOUT: Nanos = Nanos::from_millis(5_000);

/// A request of the host that was longer than the drive takes: pieces that have not ended, and how the others went.
#[derive(Clone, Copy, Debug)]
struct Split {
    id: DriveIoId,
    left: u32,
    outcome: IoOutcome,
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
    merged: Flushes,
    split: Vec<Split>,
    /// Sectors of the longest request that what comes may be merged to.
    longest_merged: u64,
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
            merged: Flushes::default(),
            split: Vec::new(),
            longest_merged: spec.longest.0,
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
            QueueInput::Hold { io, process } => {
                let longest = self.spec.plugged.unwrap_or(self.spec.longest);
                self.longest_merged = longest.min(self.spec.longest).0;
                self.submit(now, io, process);
                self.longest_merged = self.spec.longest.0;
                return;
            }
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
            if self.spec.merges_flushes {
                self.merged.wait(now, io.id);
                self.flush_if_due(now);
            } else {
                self.add_flush(now, io);
            }
            return;
        }
        if u64::from(io.len) > self.spec.longest.0 {
            self.submit_in_pieces(now, io, process);
        } else {
            self.submit_one(now, io, process);
        }
    }

    #[cold]
    fn submit_in_pieces(&mut self, now: Time, io: DriveIo, process: u32) {
        let longest = self.spec.longest.0 as u32;
        let left = io.len.div_ceil(longest);
        self.split.push(Split { id: io.id, left, outcome: IoOutcome::Ok });
        for done in (0..io.len).step_by(longest as usize) {
            let at = Sector(io.at.0 + u64::from(done));
            let piece = DriveIo { at, len: longest.min(io.len - done), ..io };
            self.submit_one(now, piece, process);
        }
    }

    fn add_flush(&mut self, now: Time, io: DriveIo) {
        let part = self.part(io);
        let slot = self.requests.insert(Request::new(io, u32::MAX, now, part));
        self.flushes.push_back(slot);
    }

    /// Sends one flush for all that wait for one, unless one is under way, or a write that one is to follow and none
    /// has waited for too long. Nothing wakes for that, as in the kernel, which looks when a flush comes or something
    /// ends.
    fn flush_if_due(&mut self, now: Time) {
        let merged = &mut self.merged;
        if merged.pending.is_empty() || !merged.running.is_empty() {
            return;
        }
        if merged.writes > 0 && now.since(merged.since) < FLUSH_PENDING_TIMEOUT {
            return;
        }
        std::mem::swap(&mut merged.pending, &mut merged.running);
        let (id, op, at) = (merged.running[0], DriveOp::Flush, Sector(0));
        self.add_flush(now, DriveIo { id, op, at, len: 0, fua: false });
    }

    /// Whether a flush is to follow a write.
    fn is_flushed(&self, op: DriveOp, fua: bool) -> bool {
        fua && op == DriveOp::Write && self.spec.merges_flushes && !self.spec.has_fua
    }

    fn submit_one(&mut self, now: Time, io: DriveIo, process: u32) {
        self.merged.writes += u32::from(self.is_flushed(io.op, io.fua));
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
        let longest = self.longest_merged;
        if u64::from(io.len) >= longest || self.is_flushed(io.op, io.fua) {
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
            fua: request.fua && !self.is_flushed(request.op, request.fua),
        };
        self.outputs.push_back(QueueOutput::Dispatch(io));
    }

    fn ended(&mut self, now: Time, id: DriveIoId, outcome: IoOutcome) {
        let request = *self.requests.get(id.0);
        self.in_flight = self.in_flight.saturating_sub(1);
        let is_flushed = self.is_flushed(request.op, request.fua);
        let mut next = Some(request.first);
        while let Some(slot) = next {
            let part = self.parts[slot as usize];
            let outcome = part_outcome(&part.io, outcome);
            if is_flushed && outcome == IoOutcome::Ok {
                self.merged.wait(now, part.io.id);
            } else if request.op != DriveOp::Flush || !self.spec.merges_flushes {
                self.complete(part.io.id, outcome);
            }
            self.free_parts.push(slot);
            next = part.next;
        }
        self.requests.remove(id.0);
        if request.op == DriveOp::Flush {
            self.flush_ended(now, outcome);
            return;
        }
        if is_flushed {
            self.merged.writes -= 1;
            self.flush_if_due(now);
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

impl Queue {
    /// A request of the host has ended, or a piece of one.
    fn complete(&mut self, id: DriveIoId, outcome: IoOutcome) {
        let mut outcome = outcome;
        if let Some(at) = self.split.iter().position(|split| split.id == id) {
            let split = &mut self.split[at];
            split.left -= 1;
            split.outcome = worse(split.outcome, outcome);
            if split.left > 0 {
                return;
            }
            outcome = self.split.swap_remove(at).outcome;
        }
        self.outputs.push_back(QueueOutput::Complete { id, outcome });
    }

    /// The flush at the drive has ended: for all whom it was for.
    fn flush_ended(&mut self, now: Time, outcome: IoOutcome) {
        for id in std::mem::take(&mut self.merged.running) {
            self.complete(id, outcome);
        }
        self.flush_if_due(now);
    }
}

/// How a request went of which two pieces went so: what failed, of bad sectors the first.
fn worse(one: IoOutcome, other: IoOutcome) -> IoOutcome {
    match (one, other) {
        (IoOutcome::Ok, other) => other,
        (IoOutcome::MediaError { first_bad: a }, IoOutcome::MediaError { first_bad: b }) => {
            IoOutcome::MediaError { first_bad: a.min(b) }
        }
        (one, _) => one,
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
