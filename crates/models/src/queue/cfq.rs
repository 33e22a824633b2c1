//! `cfq`: the drive's time is dealt out to processes in slices, one after another.
//!
//! Defaults of 2.6.18 to 2.6.27, best-effort class, middle priority: slices of 100 ms for the reads
//! of a process
//! (`slice_sync`), of 40 ms for all writes together (`slice_async`), in which at most 16 writes go
//! (`slice_async_rq` 2 by priority); reads expire after 125 ms, writes after 250 ms; the drive is
//! kept idle up
//! to 8 ms (`slice_idle`), 2 ms for a process that seeks far, for the next read of the process whose
//! slice it is; 4 requests of a process are at the drive at once while others wait (`quantum`), 16 when
//! none does; the way back counts double (`back_seek_penalty`) and is at most 16 MiB (`back_seek_max`).
//!
//! Writes give way to a read that comes. Within a slice requests go by sector, the expired one first.
//!
//! **Left out**: priorities and the idle and real-time classes; a rest of a slice is not made good.

use std::collections::{BTreeMap, VecDeque};

use raidlab_core::units::{Nanos, Time};

use super::lists::{Fading, Request, Requests, Waiting, direction};
use super::{Next, ms};
use crate::drive::DriveOp;

const SLICE: [Nanos; 2] = [ms(100), ms(40)];
const EXPIRE: [Nanos; 2] = [ms(125), ms(250)];
const IDLE: Nanos = ms(8);
const IDLE_SEEKY: Nanos = ms(2);
/// Sectors from which on a process seeks far, on average.
const SEEKY: u64 = 8 * 1_024;
const WRITES_A_SLICE: u32 = 16;
const QUANTUM: u32 = 4;
const BACK: u64 = 16 * 2_048;

/// Whose requests: reads are by process, writes are all together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Owner {
    Reads(u32),
    Writes,
}

impl Owner {
    fn of(request: &Request) -> Self {
        if direction(request.op) == 0 { Self::Reads(request.process) } else { Self::Writes }
    }

    fn direction(self) -> usize {
        usize::from(self == Self::Writes)
    }
}

#[derive(Clone, Debug, Default)]
struct Owned {
    waiting: Waiting,
    in_line: bool,
    in_flight: u32,
    thinks: Fading,
    jumps: Fading,
    end: u64,
    ended: Option<Time>,
}

#[derive(Clone, Copy, Debug)]
struct Slice {
    owner: Owner,
    ends: Time,
    sent: u32,
    /// The oldest request was looked at.
    checked: bool,
    idle_until: Option<Time>,
}

#[derive(Clone, Debug)]
pub(super) struct Cfq {
    owned: BTreeMap<Owner, Owned>,
    /// Who has requests and waits for a slice.
    line: VecDeque<Owner>,
    slice: Option<Slice>,
    head: u64,
    reads_in_flight: u32,
}

impl Cfq {
    pub(super) fn new() -> Self {
        Self {
            owned: BTreeMap::new(),
            line: VecDeque::new(),
            slice: None,
            head: 0,
            reads_in_flight: 0,
        }
    }

    /// The requests that wait with those of a process.
    pub(super) fn waiting(&self, op: DriveOp, process: u32) -> Option<&Waiting> {
        let owner = if direction(op) == 0 { Owner::Reads(process) } else { Owner::Writes };
        self.owned.get(&owner).map(|owned| &owned.waiting)
    }

    pub(super) fn add(&mut self, now: Time, requests: &Requests, slot: u32) {
        let request = requests.get(slot);
        let owner = Owner::of(request);
        let owned = self.owned.entry(owner).or_default();
        if let Some(ended) = owned.ended.take() {
            // A pause longer than two idle times says nothing of the next one.
            owned.thinks.add(now.since(ended).0.min(2 * IDLE.0));
        }
        if owned.end > 0 {
            owned.jumps.add(owned.end.abs_diff(request.at));
        }
        owned.end = request.end();
        owned.waiting.add(request.at, slot);
        let served = self.slice.is_some_and(|slice| slice.owner == owner);
        if !served && !owned.in_line {
            owned.in_line = true;
            self.line.push_back(owner);
        }
        let writing = self.slice.is_some_and(|slice| slice.owner == Owner::Writes);
        if writing && owner != Owner::Writes {
            self.end_slice();
            // Whoever reads comes before what was interrupted.
            self.line.retain(|other| *other != owner);
            self.line.push_front(owner);
        }
    }

    pub(super) fn moved(&mut self, requests: &Requests, slot: u32, old: u64) {
        let request = requests.get(slot);
        if let Some(owned) = self.owned.get_mut(&Owner::of(request)) {
            owned.waiting.moved(old, request.at, slot);
        }
    }

    pub(super) fn ended(&mut self, now: Time, request: &Request) {
        let owner = Owner::of(request);
        let Some(owned) = self.owned.get_mut(&owner) else { return };
        owned.in_flight = owned.in_flight.saturating_sub(1);
        owned.ended = Some(now);
        if owner != Owner::Writes {
            self.reads_in_flight = self.reads_in_flight.saturating_sub(1);
        }
        let Some(slice) = self.slice.as_mut().filter(|slice| slice.owner == owner) else { return };
        let thinks = owned.thinks.mean().unwrap_or(0);
        if owner != Owner::Writes
            && owned.waiting.is_empty()
            && owned.in_flight == 0
            && thinks <= IDLE.0
        {
            let seeky = owned.jumps.mean().is_some_and(|mean| mean > SEEKY);
            slice.idle_until = Some(now + if seeky { IDLE_SEEKY } else { IDLE });
        }
    }

    fn end_slice(&mut self) {
        let Some(slice) = self.slice.take() else { return };
        let Some(owned) = self.owned.get_mut(&slice.owner) else { return };
        if !owned.waiting.is_empty() && !owned.in_line {
            owned.in_line = true;
            self.line.push_back(slice.owner);
        }
    }

    pub(super) fn next(&mut self, now: Time, requests: &Requests) -> Next {
        loop {
            let Some(slice) = self.slice else {
                let Some(owner) = self.line.pop_front() else { return Next::Nothing };
                let owned = self.owned.entry(owner).or_default();
                owned.in_line = false;
                if owned.waiting.is_empty() {
                    continue;
                }
                let ends = now + SLICE[owner.direction()];
                self.slice = Some(Slice { owner, ends, sent: 0, checked: false, idle_until: None });
                continue;
            };
            let owned = self.owned.entry(slice.owner).or_default();
            let (empty, in_flight) = (owned.waiting.is_empty(), owned.in_flight);
            let writing = slice.owner == Owner::Writes;
            let used_up = now >= slice.ends || (writing && slice.sent >= WRITES_A_SLICE);
            if used_up && (empty || !self.line.is_empty()) {
                self.end_slice();
                continue;
            }
            if empty {
                match slice.idle_until {
                    _ if !writing && in_flight > 0 => return Next::Nothing,
                    Some(until) if now < until && !self.line.is_empty() => {
                        return Next::Wait(until);
                    }
                    Some(until) if now < until => return Next::Nothing,
                    _ => {}
                }
                self.end_slice();
                continue;
            }
            if writing && self.reads_in_flight > 0 {
                return Next::Nothing;
            }
            let most = if self.line.is_empty() { 4 * QUANTUM } else { QUANTUM };
            if in_flight >= most {
                return Next::Nothing;
            }
            return self.send(now, slice, requests);
        }
    }

    fn send(&mut self, now: Time, mut slice: Slice, requests: &Requests) -> Next {
        let owned = self.owned.entry(slice.owner).or_default();
        let expire = EXPIRE[slice.owner.direction()];
        let expired = |slot: &u32| now >= requests.get(*slot).arrived + expire;
        let oldest = owned.waiting.oldest().filter(|slot| !slice.checked && expired(slot));
        let Some(slot) = oldest.or_else(|| owned.waiting.nearest(self.head, BACK)) else {
            return Next::Nothing;
        };
        let request = requests.get(slot);
        owned.waiting.remove(request.at, slot);
        owned.in_flight += 1;
        self.reads_in_flight += u32::from(slice.owner != Owner::Writes);
        self.head = request.end();
        (slice.checked, slice.idle_until) = (true, None);
        slice.sent += 1;
        if now >= slice.ends {
            // Nobody else wants the drive: a new slice.
            (slice.ends, slice.sent, slice.checked) =
                (now + SLICE[slice.owner.direction()], 1, false);
        }
        self.slice = Some(slice);
        Next::Dispatch(slot)
    }
}
