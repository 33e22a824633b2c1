//! `anticipatory`: batches of reads and of writes by time, and waiting for the next read of a process.
//!
//! Defaults (2.6.0 to 2.6.32): waiting 6.7 ms (`antic_expire`), reads expire after 125 ms, writes
//! after 250 ms, batches of reads last 500 ms (`read_batch_expire`), of writes 125 ms
//! (`write_batch_expire`). The way back counts double and is at most 512 MiB.
//!
//! When the read of a process has ended and no request is waiting that is its own or nearer than its reads
//! usually are, the drive is kept idle for it, provided that it usually comes back within `antic_expire`.
//! A change of direction waits until the drive has ended what it was given.
//!
//! **Left out**: the share of processes that ended while they were waited for, and the number of writes in a
//! batch that adapts to how long the last batch took.

use raidlab_core::units::{Nanos, Time};

use super::lists::{Fading, Request, Requests, Waiting, direction};
use super::{Next, ms};

const WAIT: Nanos = Nanos(6_666_667);
const EXPIRE: [Nanos; 2] = [ms(125), ms(250)];
const BATCH: [Nanos; 2] = [ms(500), ms(125)];
const BACK: u64 = 1 << 20;
/// A read is near when it is no further than this, in sectors, however near others usually are.
const NEAR: u64 = 128;

/// What is known of a process.
#[derive(Clone, Copy, Debug, Default)]
struct Process {
    /// Time from the end of a read to the next one.
    thinks: Fading,
    /// Sectors from the end of a read to the start of the next one.
    jumps: Fading,
    end: u64,
    ended: Option<Time>,
    waiting: u32,
    in_flight: u32,
}

/// What is known of each process, by its number. They are few, and looked up several times a request.
#[derive(Clone, Debug, Default)]
struct Processes(Vec<(u32, Process)>);

impl Processes {
    #[inline]
    fn of(&mut self, number: u32) -> &mut Process {
        let place = self.0.partition_point(|(one, _)| *one < number);
        if self.0.get(place).is_none_or(|(one, _)| *one != number) {
            self.0.insert(place, (number, Process::default()));
        }
        &mut self.0[place].1
    }
}

/// Waiting for a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Expect {
    Nobody,
    /// Until this time.
    Next(Time),
    /// It is over until something was sent.
    Over,
}

#[derive(Clone, Debug)]
pub(super) struct Anticipatory {
    waiting: [Waiting; 2],
    head: [u64; 2],
    direction: usize,
    batch_ends: Time,
    in_flight: u32,
    /// The process of the read that was sent last, and whether that has ended.
    last: Option<u32>,
    last_ended: Option<Time>,
    expect: Expect,
    processes: Processes,
}

impl Anticipatory {
    pub(super) fn new() -> Self {
        Self {
            waiting: Default::default(),
            head: [0; 2],
            direction: 0,
            batch_ends: Time::ZERO + BATCH[0],
            in_flight: 0,
            last: None,
            last_ended: None,
            expect: Expect::Nobody,
            processes: Processes::default(),
        }
    }

    pub(super) fn waiting(&self, direction: usize) -> &Waiting {
        &self.waiting[direction]
    }

    pub(super) fn add(&mut self, now: Time, requests: &Requests, slot: u32) {
        let request = requests.get(slot);
        let direction = direction(request.op);
        self.waiting[direction].add(request.at, slot);
        if direction == 0 {
            let process = self.processes.of(request.process);
            if let Some(ended) = process.ended.take().filter(|_| process.in_flight == 0) {
                process.thinks.add(now.since(ended).0);
                process.jumps.add(process.end.abs_diff(request.at));
            }
            process.end = request.end();
            process.waiting += 1;
        }
    }

    pub(super) fn moved(&mut self, requests: &Requests, slot: u32, old: u64) {
        let request = requests.get(slot);
        self.waiting[direction(request.op)].moved(old, request.at, slot);
    }

    pub(super) fn ended(&mut self, now: Time, request: &Request) {
        self.in_flight = self.in_flight.saturating_sub(1);
        if direction(request.op) == 0 {
            let process = self.processes.of(request.process);
            process.in_flight = process.in_flight.saturating_sub(1);
            process.ended = Some(now);
            if self.last == Some(request.process) && process.in_flight == 0 {
                self.last_ended = Some(now);
            }
        }
    }

    pub(super) fn next(&mut self, now: Time, requests: &Requests) -> Next {
        let [reads, writes] = [0, 1].map(|one| !self.waiting[one].is_empty());
        if !reads && !writes {
            return Next::Nothing;
        }
        let changes = reads && writes && now >= self.batch_ends;
        let mut to = self.direction;
        if changes || self.waiting[to].is_empty() {
            to = 1 - to;
        }
        let candidate = self.waiting[0].nearest(self.head[0], BACK);
        if self.direction == 0 && !changes && self.expired(0, now, requests).is_none() {
            let chosen = candidate.map(|slot| requests.get(slot));
            if let Some(wait) = self.wait(now, chosen) {
                return wait;
            }
        }
        if to != self.direction && self.in_flight > 0 {
            return Next::Nothing;
        }
        if to != self.direction || (reads && !writes) {
            self.batch_ends = now + BATCH[to];
        }
        self.direction = to;
        let slot = self
            .expired(to, now, requests)
            .or_else(|| self.waiting[to].nearest(self.head[to], BACK));
        let Some(slot) = slot else { return Next::Nothing };
        self.send(requests.get(slot), slot);
        Next::Dispatch(slot)
    }

    fn expired(&self, direction: usize, now: Time, requests: &Requests) -> Option<u32> {
        let oldest = self.waiting[direction].oldest();
        oldest.filter(|slot| now >= requests.get(*slot).arrived + EXPIRE[direction])
    }

    /// Whether to wait for the process that was served last rather than to serve `chosen`.
    fn wait(&mut self, now: Time, chosen: Option<&Request>) -> Option<Next> {
        let last = self.last?;
        let process = *self.processes.of(last);
        let own = chosen.is_some_and(|request| request.process == last);
        if self.expect == Expect::Over || own || process.waiting > 0 {
            self.expect = Expect::Over;
            return None;
        }
        let usual = process.jumps.mean().unwrap_or(NEAR).max(NEAR);
        let near = chosen.is_some_and(|request| process.end.abs_diff(request.at) <= usual);
        let slow = process.thinks.mean().is_none_or(|mean| mean > WAIT.0);
        if near || slow {
            self.expect = Expect::Over;
            return None;
        }
        let Some(ended) = self.last_ended else { return Some(Next::Nothing) };
        let until = match self.expect {
            Expect::Next(until) => until,
            _ => ended + WAIT,
        };
        if now >= until {
            self.expect = Expect::Over;
            return None;
        }
        self.expect = Expect::Next(until);
        Some(Next::Wait(until))
    }

    fn send(&mut self, request: &Request, slot: u32) {
        let direction = direction(request.op);
        self.waiting[direction].remove(request.at, slot);
        self.head[direction] = request.end();
        self.in_flight += 1;
        self.expect = Expect::Nobody;
        self.last_ended = None;
        self.last = (direction == 0).then_some(request.process);
        if direction == 0 {
            let process = self.processes.of(request.process);
            process.waiting = process.waiting.saturating_sub(1);
            process.in_flight += 1;
        }
    }
}
