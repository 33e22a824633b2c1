//! Member I/Os in flight: whose they are, where they go, what their records say.

use std::hash::{Hash, Hasher};
use std::ops::{Index, IndexMut};

use super::lists::EMPTY;
use super::slab::Slab;
use crate::contract::{IoId, IoOp, MetaIo, Record, SegmentList};
use crate::policy::{self, IoKind};
use crate::units::{MemberIndex, Sector, Sectors, Time};

/// Whom a member I/O belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Owner {
    Request(u32),
    Plan(u32),
    /// A resync window.
    Window(u32),
    /// A round over all members.
    MetadataUpdate(u32),
    /// The replay of a log.
    Log,
}

/// A member I/O in flight.
#[derive(Clone, Copy, Debug)]
pub(super) struct IoState {
    pub(super) owner: Owner,
    pub(super) op: IoOp,
    pub(super) member: MemberIndex,
    pub(super) at: Sector,
    pub(super) len: u32,
    pub(super) segments: SegmentList,
    pub(super) sent_at: Time,
    /// A metadata I/O.
    pub(super) meta: bool,
    /// The driver was told that the deadline has passed.
    pub(super) abandoned: bool,
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
            sent_at: Time::ZERO,
            meta: false,
            abandoned: false,
        }
    }

    /// The array sees it as policies do.
    pub(super) fn seen_by_policy(&self) -> policy::MemberIo {
        seen_by_policy(self.op, Target { member: self.member, at: self.at, len: self.len })
    }
}

impl Hash for IoState {
    fn hash<H: Hasher>(&self, key: &mut H) {
        let Self { owner, op, member, at, len, segments: _, sent_at: _, meta, abandoned } = *self;
        (owner, op, member, at, len, meta, abandoned).hash(key);
    }
}

/// Where an I/O goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Target {
    pub(super) member: MemberIndex,
    pub(super) at: Sector,
    pub(super) len: u32,
}

/// A member I/O as policies see it.
pub(super) fn seen_by_policy(op: IoOp, target: Target) -> policy::MemberIo {
    let Target { member, at, len } = target;
    let kind = match op {
        IoOp::Read => IoKind::Read,
        IoOp::Write => IoKind::Write,
        _ => IoKind::Other,
    };
    policy::MemberIo { member, at, len: Sectors(u64::from(len)), kind }
}

/// Whether a request comes with data or room for them.
pub(super) const fn has_payload(op: IoOp) -> bool {
    matches!(op, IoOp::Read | IoOp::Write)
}

pub(super) const NO_META: MetaIo = MetaIo {
    member: MemberIndex(0),
    record: Record::BitmapPage { page: 0, bits: 0 },
    at: Sector(0),
    payload: EMPTY,
    flush: false,
    fua: false,
};

/// All member I/Os in flight.
#[derive(Clone, Debug)]
pub(super) struct Ios {
    pub(super) slots: Slab<IoState>,
    /// What metadata I/Os write, by the slot of their I/O.
    pub(super) metas: Vec<MetaIo>,
}

impl Hash for Ios {
    fn hash<H: Hasher>(&self, key: &mut H) {
        self.slots.hash(key);
    }
}

impl Index<u32> for Ios {
    type Output = IoState;
    #[inline]
    fn index(&self, slot: u32) -> &IoState {
        &self.slots[slot]
    }
}

impl IndexMut<u32> for Ios {
    #[inline]
    fn index_mut(&mut self, slot: u32) -> &mut IoState {
        &mut self.slots[slot]
    }
}

impl Ios {
    pub(super) fn new(capacity: u32) -> Self {
        Self {
            slots: Slab::new(capacity, IoState::idle()),
            metas: vec![NO_META; capacity as usize],
        }
    }

    /// Whether an I/O is in flight.
    #[inline]
    pub(super) fn is_current(&self, io: IoId) -> bool {
        self.slots.is_current(io.slot, io.generation)
    }

    /// What is in flight to either of two drives that change places goes on under the number its drive has from
    /// now on.
    pub(super) fn swap_members(&mut self, one: MemberIndex, other: MemberIndex) {
        for slot in 0..self.slots.capacity() {
            if self.slots.used_generation(slot).is_none() {
                continue;
            }
            let io = &mut self.slots[slot];
            io.member = match io.member {
                now if now == one => other,
                now if now == other => one,
                now => now,
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn policies_see_reads_and_writes_and_that_there_was_something_else() {
        let target = Target { member: MemberIndex(2), at: Sector(7), len: 9 };
        for (op, kind) in [
            (IoOp::Read, IoKind::Read),
            (IoOp::Write, IoKind::Write),
            (IoOp::Flush, IoKind::Other),
            (IoOp::WriteZeroes, IoKind::Other),
            (IoOp::Discard, IoKind::Other),
        ] {
            let seen =
                policy::MemberIo { member: target.member, at: target.at, len: Sectors(9), kind };
            assert_eq!(seen_by_policy(op, target), seen);
            let state =
                IoState { op, member: target.member, at: target.at, len: 9, ..IoState::idle() };
            assert_eq!(state.seen_by_policy(), seen);
            assert_eq!(has_payload(op), matches!(op, IoOp::Read | IoOp::Write));
        }
    }

    #[test]
    fn what_is_in_flight_goes_on_where_its_drive_is_now() {
        let mut ios = Ios::new(4);
        for member in [0, 1, 2, 1] {
            ios.slots.insert(IoState { member: MemberIndex(member), ..IoState::idle() });
        }
        ios.slots.remove(3);
        ios.swap_members(MemberIndex(1), MemberIndex(2));
        let members: Vec<u16> = ios.slots.used().map(|(_, io)| io.member.0).collect();
        assert_eq!((members, ios[3].member.0), (vec![0, 2, 1], 1));
    }
}
