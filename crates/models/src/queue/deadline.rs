//! `deadline` and `mq-deadline`: a one-way elevator for reads and one for writes, in batches.
//!
//! Defaults: reads expire after 500 ms (`read_expire`), writes after 5 s (`write_expire`), 16 requests a
//! batch (`fifo_batch`), reads go before writes twice (`writes_starved`), merging before a request on
//! (`front_merges`).
//!
//! A batch goes on with the next request by sector. A new batch is of reads, unless writes have
//! been passed over
//! twice; it begins with the oldest request when that has expired or when no request lies ahead,
//! else where the last batch of that direction stopped. `deadline` remembers the next request when
//! one is sent,
//! so that what comes in between is left for later; `mq-deadline` (rules of 6.3 and later) looks for
//! the first at or behind the end of the last one.

use raidlab_core::units::{Nanos, Time};

use super::lists::{Requests, Waiting, direction};
use super::{Next, ms};

const EXPIRE: [Nanos; 2] = [ms(500), ms(5_000)];
const BATCH: u32 = 16;
const WRITES_STARVED: u32 = 2;

#[derive(Clone, Debug)]
pub(super) struct Deadline {
    by_position: bool,
    waiting: [Waiting; 2],
    /// `deadline`: the request that goes on, by direction.
    next: [Option<u32>; 2],
    /// `mq-deadline`: where the last request ended, by direction.
    position: [u64; 2],
    direction: usize,
    batching: u32,
    starved: u32,
}

impl Deadline {
    pub(super) fn new(by_position: bool) -> Self {
        Self {
            by_position,
            waiting: Default::default(),
            next: [None; 2],
            position: [0; 2],
            direction: 0,
            batching: 0,
            starved: 0,
        }
    }

    pub(super) fn waiting(&self, direction: usize) -> &Waiting {
        &self.waiting[direction]
    }

    pub(super) fn add(&mut self, requests: &Requests, slot: u32) {
        let request = requests.get(slot);
        self.waiting[direction(request.op)].add(request.at, slot);
    }

    pub(super) fn moved(&mut self, requests: &Requests, slot: u32, old: u64) {
        let request = requests.get(slot);
        self.waiting[direction(request.op)].moved(old, request.at, slot);
    }

    fn ahead(&self, direction: usize) -> Option<u32> {
        if self.by_position {
            self.waiting[direction].at_or_after(self.position[direction])
        } else {
            self.next[direction]
        }
    }

    pub(super) fn next(&mut self, now: Time, requests: &Requests) -> Next {
        // `deadline` has a next request in one direction at most: that of the batch.
        let going = self.ahead(self.direction).filter(|_| self.batching < BATCH);
        let (direction, slot) = if let Some(slot) = going {
            (self.direction, slot)
        } else {
            let [reads, writes] = [0, 1].map(|one| !self.waiting[one].is_empty());
            let direction = match (reads, writes) {
                (false, false) => return Next::Nothing,
                (true, true) if self.starved >= WRITES_STARVED => 1,
                (true, true) => {
                    self.starved += 1;
                    0
                }
                (true, false) => 0,
                (false, true) => 1,
            };
            if direction == 1 {
                self.starved = 0;
            }
            self.batching = 0;
            let Some(oldest) = self.waiting[direction].oldest() else { return Next::Nothing };
            let expired = now >= requests.get(oldest).arrived + EXPIRE[direction];
            let ahead = self.ahead(direction).filter(|_| !expired);
            (direction, ahead.unwrap_or(oldest))
        };
        let request = requests.get(slot);
        self.next = [None; 2];
        self.next[direction] = self.waiting[direction].after(request.at, slot);
        self.position[direction] = request.end();
        self.waiting[direction].remove(request.at, slot);
        self.direction = direction;
        self.batching += 1;
        Next::Dispatch(slot)
    }
}
