//! What the array knows of its members, and a member's failure.

use super::Array;
use crate::contract::{Event, Output};
use crate::geometry::Geometry;
use crate::units::{MemberIndex, Sector};

/// A set of members.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct MemberSet(u128);

impl MemberSet {
    /// No member.
    pub(super) const NONE: Self = Self(0);

    #[inline]
    pub(super) const fn contains(self, member: MemberIndex) -> bool {
        // Nearly always nothing is wrong, and shifting 128 bits takes a while.
        if self.0 == 0 {
            return false;
        }
        self.0 >> member.0 & 1 == 1
    }

    pub(super) const fn insert(&mut self, member: MemberIndex) {
        self.0 |= 1 << member.0;
    }

    #[inline]
    pub(super) const fn is_empty(self) -> bool {
        self.0 == 0
    }

    pub(super) const fn count(self) -> u16 {
        self.0.count_ones() as u16
    }

    #[inline]
    pub(super) const fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    pub(super) const fn bits(self) -> u128 {
        self.0
    }

    pub(super) fn iter(self) -> impl Iterator<Item = MemberIndex> {
        (0..128).map(MemberIndex).filter(move |member| self.contains(*member))
    }
}

/// A member's state.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Member {
    /// I/Os in flight.
    pub(super) pending: u32,
    /// Where the last planned I/O ends.
    pub(super) head: Sector,
}

impl Array {
    /// Takes a member out of service; what is in flight on it goes on to its end.
    pub(super) fn fail_member(&mut self, member: MemberIndex) {
        if self.failed.contains(member) {
            return;
        }
        self.failed.insert(member);
        self.outputs.push_back(Output::Event(Event::MemberFailed(member)));
        let event = if self.is_lost(self.failed) {
            Event::ArrayFailed
        } else {
            Event::Degraded { missing: self.failed.count() }
        };
        self.outputs.push_back(Output::Event(event));
    }

    /// Whether some data can be had from no member when `missing` are out of service.
    pub(super) fn is_lost(&self, missing: MemberSet) -> bool {
        let members = self.layout.members;
        match &self.geometry {
            Geometry::Linear(_) | Geometry::Raid0(_) => !missing.is_empty(),
            Geometry::Mirror(_) => missing.count() == members,
            Geometry::Parity(_) | Geometry::Raid3(_) => missing.count() > self.parities,
            Geometry::Raid10(_) => {
                // The pattern of copies repeats after as many chunks as there are members, or
                // members times far copies.
                let chunk = self.layout.chunk.0;
                let copies = self.copies;
                let period = u64::from(members) * u64::from(copies);
                let chunks = (self.geometry.capacity().0 / chunk).min(period);
                (0..chunks).any(|index| {
                    let at = Sector(index * chunk);
                    (0..copies).all(|c| missing.contains(self.geometry.place(at, c).member))
                })
            }
        }
    }

    /// Whether `member` is the last that has some of the data.
    pub(super) fn is_last_copy(&self, member: MemberIndex) -> bool {
        let mut missing = self.failed;
        missing.insert(member);
        self.is_lost(missing)
    }
}
