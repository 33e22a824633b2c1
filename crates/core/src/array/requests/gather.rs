//! Neighbouring writes of a batch, joined so that stripes are written whole.
//!
//! What a plug held back is looked at when it is pulled: writes of a level with parity of which one
//! ends where the next starts, inside a stripe, become one request to plan, with the payload of all
//! in order. Each is answered on its own, all alike: none before all are written, and durable if any
//! was to be. Writes that overlap anything else in the batch are left as they are, so that what came
//! later stays later; all others may go in any order.

use std::hash::{Hash, Hasher};

use super::super::lists::NIL;
use super::super::setup::Setup;
use super::{ErrorState, MOST_SECTORS, Requests};
use crate::bugs::Bug;
use crate::contract::{IoOp, RequestId};
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

impl Hash for Gather {
    fn hash<H: Hasher>(&self, key: &mut H) {
        self.next.hash(key);
    }
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

impl Requests {
    /// Joins what may be of the requests held back.
    pub(in crate::array) fn gather_held(&mut self, setup: &Setup) {
        if setup.parities == 0 || self.held.len() < 2 {
            return;
        }
        let Self { gather, held, slots: requests, .. } = self;
        gather.sorted.clear();
        gather.sorted.extend(held.iter().filter(|slot| requests[**slot].op != IoOp::Flush));
        gather.sorted.sort_unstable_by_key(|slot| (requests[*slot].at, *slot));
        let mut leader = None;
        // How far those before reach.
        let mut reach = 0;
        for index in 0..self.gather.sorted.len() {
            let slot = self.gather.sorted[index];
            let request = self.slots[slot];
            let next = self.gather.sorted.get(index + 1);
            let overlaps =
                reach > request.at || next.is_some_and(|next| self.slots[*next].at < request.end);
            reach = reach.max(request.end);
            if request.op != IoOp::Write || overlaps {
                leader = None;
                continue;
            }
            match leader {
                Some((first, last)) if self.may_join(setup, first, slot) => {
                    self.join(first, last, slot);
                    leader = Some((first, slot));
                }
                _ => leader = Some((slot, slot)),
            }
        }
        self.drop_last(setup);
        // A part may be answered as soon as the request it belongs to starts: it is held no longer.
        let Self { gather, held, .. } = self;
        held.retain(|slot| !gather.joined[*slot as usize]);
    }

    /// Whether `slot` goes on where the request `first` ends, in the same stripe, and fits.
    fn may_join(&self, setup: &Setup, first: u32, slot: u32) -> bool {
        let (one, other) = (&self.slots[first], &self.slots[slot]);
        let inside = match &setup.geometry {
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
        let other = self.slots[slot];
        let from = (slot * self.most_segments) as usize;
        let to = (first * self.most_segments) as usize + self.slots[first].segment_count();
        self.payload.copy_within(from..from + other.segment_count(), to);
        let one = &mut self.slots[first];
        one.take_over(&other);
        if !std::mem::replace(&mut one.has_errors, true) {
            // Answered by the way that looks for more than one.
            self.errors[first as usize] = ErrorState::NONE;
        }
        self.gather.next[last as usize] = slot;
        self.gather.joined[slot as usize] = true;
    }

    /// The seeded bug: what is joined last has no data.
    fn drop_last(&mut self, setup: &Setup) {
        if !setup.has_bug(Bug::GatherDropsLast) {
            return;
        }
        for slot in 0..self.slots.capacity() {
            let mut last = slot;
            while self.gather.next[last as usize] != NIL {
                last = self.gather.next[last as usize];
            }
            if last != slot && !self.gather.joined[slot as usize] {
                self.slots[slot].end = self.slots[last].at;
            }
        }
    }

    /// Takes out one of those that were joined to a request; `None` when there is none any more.
    pub(in crate::array) fn take_joined(&mut self, slot: u32) -> Option<RequestId> {
        let next = self.gather.next[slot as usize];
        if next == NIL {
            return None;
        }
        self.gather.next[slot as usize] =
            std::mem::replace(&mut self.gather.next[next as usize], NIL);
        self.gather.joined[next as usize] = false;
        let id = self.slots[next].id;
        self.slots.remove(next);
        Some(id)
    }
}
