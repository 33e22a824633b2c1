//! Neighbouring writes of a batch, joined so that stripes are written whole.
//!
//! What a plug held back is looked at when it is pulled: writes of a level with parity of which one
//! ends where the next starts, inside a stripe, become one request to plan, with the payload of all
//! in order. Each is answered on its own, all alike: none before all are written, and durable if any
//! was to be. Writes that overlap anything else in the batch are left as they are, so that what came
//! later stays later; all others may go in any order.

use super::Array;
use super::lists::NIL;
use super::request::{MOST_SECTORS, Trouble};
use crate::bugs::Bug;
use crate::contract::{IoOp, Outcome, Output};
use crate::geometry::Geometry;

/// What is joined with what.
#[derive(Clone, Debug)]
pub(super) struct Gather {
    /// Requests held back, while they are sorted by address.
    sorted: Vec<u32>,
    /// The request whose payload follows that of this one, by slot.
    next: Vec<u32>,
    /// Requests that are planned as part of another, by slot.
    joined: Vec<bool>,
}

impl Gather {
    pub(super) fn new(requests: u32) -> Self {
        Self {
            sorted: Vec::with_capacity(requests as usize),
            next: vec![NIL; requests as usize],
            joined: vec![false; requests as usize],
        }
    }
}

impl Array {
    /// Joins what may be of the requests held back.
    pub(super) fn gather_held(&mut self) {
        if self.parities == 0 || self.held.len() < 2 || self.stopped {
            return;
        }
        let Self { gather, held, requests, .. } = self;
        gather.sorted.clear();
        gather.sorted.extend(held.iter().filter(|slot| requests[**slot].op != IoOp::Flush));
        gather.sorted.sort_unstable_by_key(|slot| (requests[*slot].at, *slot));
        let mut leader = None;
        // How far those before reach.
        let mut reach = 0;
        for index in 0..self.gather.sorted.len() {
            let slot = self.gather.sorted[index];
            let request = self.requests[slot];
            let next = self.gather.sorted.get(index + 1);
            let overlaps = reach > request.at
                || next.is_some_and(|next| self.requests[*next].at < request.end);
            reach = reach.max(request.end);
            if request.op != IoOp::Write || overlaps {
                leader = None;
                continue;
            }
            match leader {
                Some((first, last)) if self.may_join(first, slot) => {
                    self.join(first, last, slot);
                    leader = Some((first, slot));
                }
                _ => leader = Some((slot, slot)),
            }
        }
        self.drop_last();
        // A part may be answered as soon as the request it belongs to starts: it is held no longer.
        let Self { gather, held, .. } = self;
        held.retain(|slot| !gather.joined[*slot as usize]);
    }

    /// Whether `slot` goes on where the request `first` ends, in the same stripe, and fits.
    fn may_join(&self, first: u32, slot: u32) -> bool {
        let (one, other) = (&self.requests[first], &self.requests[slot]);
        let inside = match &self.geometry {
            Geometry::Parity(parity) => !other.at.is_multiple_of(parity.stripe_sectors()),
            _ => true,
        };
        one.end == other.at
            && inside
            && one.segment_count() + other.segment_count() <= self.most_segments as usize
            && other.end - one.at <= MOST_SECTORS
    }

    /// Makes `slot` part of `first`, of which `last` was the last part.
    fn join(&mut self, first: u32, last: u32, slot: u32) {
        let other = self.requests[slot];
        let from = (slot * self.most_segments) as usize;
        let to = (first * self.most_segments) as usize + self.requests[first].segment_count();
        self.user_segments.copy_within(from..from + other.segment_count(), to);
        let one = &mut self.requests[first];
        one.take_over(&other);
        if !std::mem::replace(&mut one.trouble, true) {
            // Answered by the way that looks for more than one.
            self.troubles[first as usize] = Trouble::NONE;
        }
        self.gather.next[last as usize] = slot;
        self.gather.joined[slot as usize] = true;
    }

    /// The seeded bug: what is joined last has no data.
    fn drop_last(&mut self) {
        if !self.has_bug(Bug::GatherDropsLast) {
            return;
        }
        for slot in 0..self.requests.capacity() {
            let mut last = slot;
            while self.gather.next[last as usize] != NIL {
                last = self.gather.next[last as usize];
            }
            if last != slot && !self.gather.joined[slot as usize] {
                self.requests[slot].end = self.requests[last].at;
            }
        }
    }

    /// Answers what was joined to a request that is answered.
    pub(super) fn answer_joined(&mut self, slot: u32, outcome: Outcome) {
        let mut next = std::mem::replace(&mut self.gather.next[slot as usize], NIL);
        if next == NIL {
            return;
        }
        while next != NIL {
            let id = self.requests[next].id;
            self.outputs.push_back(Output::Reply { id, outcome });
            self.requests.remove(next);
            self.gather.joined[next as usize] = false;
            next = std::mem::replace(&mut self.gather.next[next as usize], NIL);
        }
        self.stop_when_quiet(None);
    }

    pub(super) fn gather_to_key(&self, add: &mut dyn FnMut(u64)) {
        let joined = self.gather.next.iter().enumerate().filter(|(_, next)| **next != NIL);
        joined.for_each(|(slot, next)| add(slot as u64 | u64::from(*next) << 32));
    }
}
