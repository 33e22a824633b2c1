//! raid10, near copies: each chunk on neighbouring members, members dealt in turn.
//!
//! md raid10.c with one far copy: v = c x near, row = v div n, member = v mod n; further copies on
//! the next members, wrapping to member 0 one chunk further down. The array holds
//! floor(floor(size / C) x n / near) chunks; the number of members need not be even.

use super::{Divisor, Holds, Place};
use crate::units::{MemberIndex, Sector, Sectors};

/// Chunks dealt in turn, in neighbouring copies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Raid10 {
    members: Divisor,
    near: u16,
    chunk: Divisor,
    /// Chunks of the array.
    chunks: u64,
    /// Chunks of each member.
    rows: u64,
}

impl Raid10 {
    pub(super) fn new(members: u16, near: u16, chunk: Sectors, smallest: Sectors) -> Self {
        let rows = smallest.0 / chunk.0;
        let chunks = rows * u64::from(members) / u64::from(near);
        let members = Divisor::new(u64::from(members));
        Self { members, near, chunk: Divisor::new(chunk.0), chunks, rows }
    }

    pub(super) fn capacity(&self) -> Sectors {
        Sectors(self.chunks * self.chunk.value())
    }

    #[inline]
    pub(super) fn run(&self, at: Sector) -> Sectors {
        Sectors(self.chunk.value() - self.chunk.remainder(at.0))
    }

    #[inline]
    pub(super) fn place(&self, at: Sector, copy: u16) -> Place {
        let (chunk, offset) = self.chunk.split(at.0);
        let slot = chunk * u64::from(self.near) + u64::from(copy);
        let (row, member) = self.members.split(slot);
        let at = Sector(row * self.chunk.value() + offset);
        Place { member: MemberIndex(member as u16), at }
    }

    /// Copies of each chunk.
    pub(crate) fn copies(&self) -> u16 {
        self.near
    }

    /// The member with copy `copy` of `at`.
    pub(crate) fn member_of(&self, at: Sector, copy: u16) -> MemberIndex {
        self.place(at, copy).member
    }

    pub(super) fn used(&self, member: MemberIndex) -> Sectors {
        let mut rows = self.rows;
        let slots = self.chunks * u64::from(self.near);
        // The last row may not reach every member.
        while rows > 0 && (rows - 1) * self.members.value() + u64::from(member.0) >= slots {
            rows -= 1;
        }
        Sectors(rows * self.chunk.value())
    }

    pub(super) fn holds(&self, place: Place) -> Holds {
        let (row, offset) = self.chunk.split(place.at.0);
        if u64::from(place.member.0) >= self.members.value() || row >= self.rows {
            return Holds::Nothing;
        }
        let slot = row * self.members.value() + u64::from(place.member.0);
        let (chunk, copy) = (slot / u64::from(self.near), slot % u64::from(self.near));
        if chunk >= self.chunks {
            return Holds::Nothing;
        }
        Holds::Data { at: Sector(chunk * self.chunk.value() + offset), copy: copy as u16 }
    }
}
