//! Member I/Os: gathering them while a request is planned, and sending them out.

use super::Array;
use super::lists::{EMPTY, ListBuilder};
use crate::contract::{IoId, IoOp, MemberIo, Output, RequestOp, SegmentList};
use crate::units::{MemberIndex, Sector};

/// Whom a member I/O belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Owner {
    Request(u32),
    Plan(u32),
}

/// A member I/O in flight.
#[derive(Clone, Copy, Debug)]
pub(super) struct IoState {
    pub(super) owner: Owner,
    pub(super) op: IoOp,
    pub(super) member: MemberIndex,
    at: Sector,
    len: u32,
    pub(super) segments: SegmentList,
}

impl IoState {
    pub(super) const fn idle() -> Self {
        Self {
            owner: Owner::Request(0),
            op: IoOp::Flush,
            member: MemberIndex(0),
            at: Sector(0),
            len: 0,
            segments: EMPTY,
        }
    }

    pub(super) fn add_to_key(&self, add: &mut dyn FnMut(u64)) {
        add(match self.owner {
            Owner::Request(slot) => u64::from(slot),
            Owner::Plan(slot) => u64::from(slot) | 1 << 32,
        });
        add(self.op as u64 | u64::from(self.member.0) << 8 | u64::from(self.len) << 32);
        add(self.at.0);
    }
}

/// A member I/O being gathered: one range of the member, pieces of the request's payload.
#[derive(Clone, Copy, Debug)]
pub(super) struct Run {
    at: u64,
    list: ListBuilder,
}

impl Run {
    pub(super) const fn idle() -> Self {
        Self { at: 0, list: ListBuilder::new() }
    }
}

/// Where an I/O goes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Target {
    pub(super) member: MemberIndex,
    pub(super) at: Sector,
    pub(super) len: u32,
}

impl Array {
    /// Sends out one I/O. There is room: the caller looked.
    #[inline]
    pub(super) fn emit(
        &mut self,
        owner: Owner,
        op: IoOp,
        fua: bool,
        target: Target,
        segments: SegmentList,
    ) {
        let Target { member, at, len } = target;
        let state = IoState { owner, op, member, at, len, segments };
        let slot = self.ios.insert(state).expect("room is checked before an I/O is planned");
        let io = IoId { slot, generation: self.ios.generation(slot) };
        let known = &mut self.members[member.at()];
        known.pending += 1;
        if op != IoOp::Flush {
            known.head = Sector(at.0 + u64::from(len));
        }
        match owner {
            Owner::Request(slot) => self.requests[slot].pending += 1,
            Owner::Plan(slot) => self.plans[slot].pending += 1,
        }
        let io = MemberIo { io, member, op, fua, at, len, segments };
        self.outputs.push_back(Output::MemberIo(io));
    }

    /// Whether one more piece of a request, on `copies` members, fits beside what is gathered.
    #[inline]
    pub(super) fn has_room(&self, slot: u32, copies: usize) -> bool {
        self.ios.available() >= self.active_runs + copies
            && self.lists.available() >= (self.requests[slot].segment_count() + 2) * copies
    }

    /// Adds a piece to what is gathered for a member; what does not continue it is sent out.
    pub(super) fn gather(&mut self, slot: u32, target: Target, offset: u64) {
        let Target { member, at, len } = target;
        let mut run = self.runs[member.at()];
        if run.list.len() > 0 && run.at + u64::from(run.list.len()) != at.0 {
            self.send_run(slot, member);
            run = Run::idle();
        }
        if run.list.len() == 0 {
            run.at = at.0;
            self.active_runs += 1;
        }
        let mut list = run.list;
        self.carve(slot, offset, u64::from(len), &mut list);
        self.runs[member.at()] = Run { at: run.at, list };
    }

    /// Where the member's next I/O would start if it went on from what is planned or gathered, and
    /// how many are in flight or gathered.
    #[inline]
    pub(super) fn member_load(&self, member: MemberIndex) -> (Sector, u32) {
        let known = &self.members[member.at()];
        if self.active_runs > 0 {
            let run = &self.runs[member.at()];
            if run.list.len() > 0 {
                return (Sector(run.at + u64::from(run.list.len())), known.pending + 1);
            }
        }
        (known.head, known.pending)
    }

    fn send_run(&mut self, slot: u32, member: MemberIndex) {
        let run = std::mem::replace(&mut self.runs[member.at()], Run::idle());
        if run.list.len() == 0 {
            return;
        }
        self.active_runs -= 1;
        let request = &self.requests[slot];
        let op = if request.op == RequestOp::Read { IoOp::Read } else { IoOp::Write };
        let fua = request.fua && op == IoOp::Write;
        let target = Target { member, at: Sector(run.at), len: run.list.len() };
        self.emit(Owner::Request(slot), op, fua, target, run.list.finish());
    }

    /// Sends out everything gathered, in the order of the members.
    pub(super) fn send_runs(&mut self, slot: u32) {
        for member in 0..self.runs.len() {
            if self.active_runs == 0 {
                return;
            }
            self.send_run(slot, MemberIndex(member as u16));
        }
    }
}
