//! Member I/Os: gathering them while a request is planned, and sending them out.

use super::Array;
use crate::array::ios::{IoState, Owner, Target, has_payload, seen_by_policy};
use crate::bugs::Bug;
use crate::contract::{IoId, IoOp, MemberIo, Output, SegmentList};
use crate::units::{MemberIndex, Sector};

impl Array {
    /// Sends out one I/O. There is room: the caller looked.
    // Inlined by force, like the rest of the straight path: measured 95 to 85 ns a mirrored write.
    #[inline(always)]
    pub(super) fn emit(
        &mut self,
        owner: Owner,
        op: IoOp,
        fua: bool,
        target: Target,
        segments: SegmentList,
    ) {
        let Target { member, at, len } = target;
        let sent_at = self.now;
        let (meta, abandoned) = (false, false);
        let state = IoState { owner, op, member, at, len, segments, sent_at, meta, abandoned };
        let (slot, generation) =
            self.ios.slots.insert_named(state).expect("room is checked before an I/O is planned");
        let io = IoId { slot, generation };
        let known = &mut self.members[member];
        known.pending += 1;
        if op != IoOp::Flush {
            known.head = Sector(at.0 + u64::from(len));
        }
        if self.setup.policy_watches && self.setup.is_member(member) {
            self.policy.sent(self.now, seen_by_policy(op, target));
        }
        self.count_in(owner, member);
        if self.setup.settings.deadline.is_some() {
            self.watch_deadline();
        }
        let io = MemberIo { io, member, op, fua, at, len, segments };
        self.outputs.push_back(Output::MemberIo(io));
    }

    /// The drives of a member and of its replacement change places, and what is in flight to them with them. What the
    /// policy was told of the one that goes it will not be told the end of, and the other way round.
    pub(super) fn swap_members(&mut self, member: MemberIndex, other: MemberIndex) {
        self.ios.swap_members(member, other);
        if self.setup.policy_watches {
            let is_its_own = |io: &IoState| io.member == member && !io.meta;
            let in_flight = self.ios.slots.used().filter(|(_, io)| is_its_own(io)).count();
            self.policy.replaced(member, in_flight as u32);
        }
    }

    /// Counts one more I/O of an owner, to a member.
    #[inline(always)]
    pub(super) fn count_in(&mut self, owner: Owner, member: MemberIndex) {
        match owner {
            Owner::Request(slot) => self.requests[slot].pending += 1,
            Owner::Plan(slot) => self.plans[slot].pending += 1,
            Owner::Window(slot) => {
                self.background.windows[slot].pending += 1;
                self.members[member].background += 1;
            }
            Owner::MetadataUpdate(slot) => self.updates.count_in(slot),
            // A replay counts what it asks for.
            Owner::Log => {}
        }
    }

    /// Whether one more piece of a request, on `copies` members, fits beside what is gathered.
    #[inline]
    pub(super) fn has_room(&self, slot: u32, copies: usize) -> bool {
        self.ios.slots.available() >= self.runs.active() + copies
            && self.lists.available() >= (self.requests[slot].segment_count() + 2) * copies
    }

    /// Adds a piece to what is gathered for a member; what does not continue it is sent out.
    pub(super) fn gather(&mut self, slot: u32, target: Target, offset: u64) {
        let Target { member, at, len } = target;
        if self.runs.is_in_the_way(member, at, self.setup.most_segments) {
            self.send_run(slot, member);
        }
        let run = self.runs.extend(member, at, len);
        if has_payload(self.requests[slot].op) {
            self.requests.carve(&mut self.lists, slot, (offset, u64::from(len)), &mut run.list);
        }
    }

    fn send_run(&mut self, slot: u32, member: MemberIndex) {
        let Some(run) = self.runs.take(member) else { return };
        let request = &self.requests[slot];
        let op = request.op;
        let fua = request.fua && op != IoOp::Read && !self.setup.has_bug(Bug::DropFua);
        let target = Target { member, at: Sector(run.at), len: run.len };
        self.emit(Owner::Request(slot), op, fua, target, run.list.finish());
    }

    /// Sends out everything gathered, in the order of the members.
    pub(super) fn send_runs(&mut self, slot: u32) {
        for member in 0..self.runs.devices() {
            if self.runs.active() == 0 {
                return;
            }
            self.send_run(slot, MemberIndex(member));
        }
    }
}
