//! Writes, discards and zeroes of levels without parity, to every copy in service; and flushes.

use super::Array;
use crate::array::ios::{Owner, Target, has_payload};
use crate::array::lists::{EMPTY, ListBuilder};
use crate::bugs::Bug;
use crate::contract::IoOp;
use crate::units::{MemberIndex, Sector};

impl Array {
    /// Plans a write, discard or zeroing from its cursor on; false when it must wait for room.
    pub(super) fn plan_write(&mut self, slot: u32) -> bool {
        if self.setup.parities > 0 {
            return self.plan_stripes(slot);
        }
        if self.members.stopped {
            let outcome = self.refused_outcome();
            self.requests.error_state(slot).outcome = outcome;
            return true;
        }
        let request = &self.requests[slot];
        let (at, end) = (Sector(request.cursor), request.end);
        if at.0 == request.at && self.setup.geometry.run(at).0 >= end - at.0 {
            return self.write_one_run(slot);
        }
        let done = self.gather_write(slot);
        self.send_runs(slot);
        done
    }

    /// The usual case: one piece, sent to each copy without gathering.
    #[inline(always)]
    fn write_one_run(&mut self, slot: u32) -> bool {
        let copies = self.setup.copies;
        if !self.has_room(slot, self.write_width()) {
            return false;
        }
        let request = &self.requests[slot];
        let (at, op) = (Sector(request.at), request.op);
        let fua = request.fua && !self.setup.has_bug(Bug::DropFua);
        let len = (request.end - request.at) as u32;
        self.requests[slot].cursor += u64::from(len);
        let mut list = ListBuilder::new();
        for copy in 0..copies {
            let place = self.setup.geometry.place(at, copy);
            if !self.members.is_written(&self.setup, place.member) {
                continue;
            }
            // Each I/O gives its nodes back; a list without nodes serves all copies.
            if has_payload(op) && (list.len() == 0 || list.has_nodes()) {
                list = self.requests.whole_payload(&mut self.lists, slot);
            }
            let target = Target { member: place.member, at: place.at, len };
            self.emit(Owner::Request(slot), op, fua, target, list.finish());
            if self.members.is_replacing(&self.setup, place.member) {
                let list = if has_payload(op) {
                    self.requests.whole_payload(&mut self.lists, slot)
                } else {
                    list
                };
                let target = Target { member: self.setup.replacement(place.member), ..target };
                self.emit(Owner::Request(slot), op, fua, target, list.finish());
            }
        }
        if self.requests[slot].pending == 0 {
            self.give_up(slot, at);
        }
        true
    }

    /// I/Os that one piece takes at most.
    #[inline(always)]
    fn write_width(&self) -> usize {
        usize::from(self.setup.copies) << u32::from(!self.members.replacing.is_empty())
    }

    fn gather_write(&mut self, slot: u32) -> bool {
        let copies = self.setup.copies;
        loop {
            let request = &self.requests[slot];
            let (at, start, end) = (Sector(request.cursor), request.at, request.end);
            if at.0 >= end {
                return true;
            }
            if !self.has_room(slot, self.write_width()) {
                return false;
            }
            let len = self.setup.geometry.run(at).0.min(end - at.0) as u32;
            let mut written = false;
            let skips = at.0 > start && at.0 + u64::from(len) >= end;
            for copy in 0..copies {
                if skips
                    && copy > 0
                    && copy + 1 == copies
                    && self.setup.has_bug(Bug::WriteSkipsCopy)
                {
                    continue;
                }
                let place = self.setup.geometry.place(at, copy);
                if self.members.is_written(&self.setup, place.member) {
                    let target = Target { member: place.member, at: place.at, len };
                    self.gather(slot, target, at.0 - start);
                    if self.members.is_replacing(&self.setup, place.member) {
                        let member = self.setup.replacement(place.member);
                        self.gather(slot, Target { member, ..target }, at.0 - start);
                    }
                    written = true;
                }
            }
            if !written {
                self.give_up(slot, at);
                return true;
            }
            self.requests[slot].cursor += u64::from(len);
        }
    }

    /// Plans a flush: one to every member in service.
    pub(super) fn plan_flush(&mut self, slot: u32) -> bool {
        if self.ios.slots.available() < 2 * usize::from(self.setup.layout.members) {
            return false;
        }
        if self.members.is_lost(&self.setup) {
            self.give_up(slot, Sector(0));
            return true;
        }
        let served = |member: &MemberIndex| self.is_served(*member);
        let last = (0..self.setup.layout.members).map(MemberIndex).rfind(served);
        for member in (0..2 * self.setup.layout.members).map(MemberIndex) {
            if Some(member) == last && self.setup.has_bug(Bug::SkipFlushOneMember) {
                continue;
            }
            if self.is_served(member) {
                let target = Target { member, at: Sector(0), len: 0 };
                self.emit(Owner::Request(slot), IoOp::Flush, false, target, EMPTY);
            }
        }
        true
    }
}
