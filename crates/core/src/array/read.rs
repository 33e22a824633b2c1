//! Reads: each piece from one copy that is in service; lost pieces of parity levels from the rest.

use super::Array;
use super::issue::{Owner, Target};
use super::lists::ListBuilder;
use super::member::MemberSet;
use crate::contract::IoOp;
use crate::geometry::{Geometry, Place};
use crate::policy::Candidate;
use crate::units::Sector;

impl Array {
    /// Plans a read from its cursor on; false when it must wait for room.
    pub(super) fn plan_read(&mut self, slot: u32) -> bool {
        let request = &self.requests[slot];
        let unreadable = self.failed.union(request.avoid);
        let (at, end) = (Sector(request.cursor), request.end);
        // The usual case: one piece on one member, sent out without gathering.
        if at.0 == request.at
            && self.geometry.run(at).0 >= end - at.0
            && let Some(place) = self.choose_copy(at, unreadable)
        {
            if !self.has_room(slot, 1) {
                return false;
            }
            let len = (end - at.0) as u32;
            let mut list = ListBuilder::new();
            self.carve(slot, 0, u64::from(len), &mut list);
            let target = Target { member: place.member, at: place.at, len };
            self.requests[slot].cursor = end;
            self.emit(Owner::Request(slot), IoOp::Read, false, target, list.finish());
            return true;
        }
        let done = self.gather_read(slot, unreadable);
        self.send_runs(slot);
        done
    }

    fn gather_read(&mut self, slot: u32, unreadable: MemberSet) -> bool {
        loop {
            let request = &self.requests[slot];
            let (at, start, end) = (Sector(request.cursor), request.at, request.end);
            if at.0 >= end {
                return true;
            }
            let Some(place) = self.choose_copy(at, unreadable) else {
                if matches!(self.geometry, Geometry::Parity(_)) {
                    if !self.plan_stripe_piece(slot) {
                        return false;
                    }
                    continue;
                }
                self.give_up(slot, at);
                return true;
            };
            if self.stripe_lacks_chunk(at, end, unreadable) {
                // Other chunks of the stripe are wanted too and serve to compute the lost one.
                if !self.plan_stripe_piece(slot) {
                    return false;
                }
                continue;
            }
            if !self.has_room(slot, 1) {
                return false;
            }
            let len = self.geometry.run(at).0.min(end - at.0) as u32;
            self.gather(slot, Target { member: place.member, at: place.at, len }, at.0 - start);
            self.requests[slot].cursor += u64::from(len);
        }
    }

    /// The copy to read `at` from, or `None` when no copy is readable.
    #[inline]
    fn choose_copy(&self, at: Sector, unreadable: MemberSet) -> Option<Place> {
        let copies = self.geometry.copies();
        if copies == 1 {
            let place = self.geometry.place(at, 0);
            return (!unreadable.contains(place.member)).then_some(place);
        }
        let candidates = (0..copies).filter_map(|copy| {
            let place = self.geometry.place(at, copy);
            let (head, pending) = self.member_load(place.member);
            let candidate = Candidate { copy, at: place.at, pending, head };
            (!unreadable.contains(place.member)).then_some(candidate)
        });
        let copy = self.policy.choose(candidates)?;
        Some(self.geometry.place(at, copy))
    }
}
