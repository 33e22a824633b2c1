//! raid10: chunks dealt in turn to the members, each kept in near x far copies.
//!
//! md raid10.c. With nc near and fc far copies and v = c x nc, near copy i of chunk c is slot
//! v + i: member (v + i) mod n, row (v + i) div n. So near copies are neighbours, and where the
//! number of members is not a multiple of nc they wrap to member 0 one row further down.
//!
//! - *near* (fc = 1): row r of slots is chunk r of the members.
//! - *far*: members are cut in fc sections of `rows` chunks. Row r is chunk r of the first section;
//!   far copy f is at the same row of section f, f x nc members further, wrapping.
//! - *offset*: row r is chunk r x fc; its far copy f is f chunks below, f x nc members further.
//!
//! "Further, wrapping" goes over all n members (far sets 0), or stays within a set of nc x fc
//! members (far sets 2), of which the last takes the remainder: losing members of different sets
//! then loses less. Far copies let reads stream from the first section of all members as in raid0.
//!
//! The array holds A = (floor(size / C) div fc) x n div nc chunks, divided in this order. md's
//! stride, (ceil(A x nc x fc / n) div fc) chunks, is the `rows` of here: nc x fc <= n makes both
//! equal to floor(size / C) div fc. Copies are numbered as md fills its slots: near copy 0, its far
//! copies, near copy 1, its far copies, ...

use super::{Divisor, Holds, Place};
use crate::layout::Layout;
use crate::units::{MemberIndex, Sector, Sectors};

/// Chunks dealt in turn, in copies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Raid10 {
    members: Divisor,
    near: u16,
    far: Divisor,
    offset: bool,
    /// Members of every far set but the last.
    set: Divisor,
    /// The last far set.
    last_set: u64,
    chunk: Divisor,
    /// Chunks of the array.
    chunks: u64,
    /// Rows of slots: chunks of a member for one far copy.
    rows: Divisor,
}

impl Raid10 {
    /// `layout` is checked; `smallest` has at least `far` chunks.
    pub(super) fn new(layout: &Layout, smallest: Sectors) -> Self {
        let (n, near, far) = (u64::from(layout.members), layout.near, u64::from(layout.far));
        let rows = smallest.0 / layout.chunk.0 / far;
        let set = if layout.far_sets == 2 { u64::from(near) * far } else { n };
        Self {
            members: Divisor::new(n),
            near,
            far: Divisor::new(far),
            offset: layout.offset,
            set: Divisor::new(set),
            last_set: n / set - 1,
            chunk: Divisor::new(layout.chunk.0),
            chunks: rows * n / u64::from(near),
            rows: Divisor::new(rows),
        }
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
        let (near, far) = self.far.split(u64::from(copy));
        let (mut row, mut member) = self.members.split(chunk * u64::from(self.near) + near);
        if self.offset {
            row = row * self.far.value() + far;
        } else if far > 0 {
            row += far * self.rows.value();
        }
        if far > 0 {
            member = self.further(member, far);
        }
        let at = Sector(row * self.chunk.value() + offset);
        Place { member: MemberIndex(member as u16), at }
    }

    /// The first member and the size of the far set of a member.
    #[inline]
    fn set_of(&self, member: u64) -> (u64, u64) {
        if self.last_set == 0 {
            return (0, self.members.value());
        }
        let set = self.set.split(member).0.min(self.last_set);
        let start = set * self.set.value();
        (start, if set == self.last_set { self.members.value() - start } else { self.set.value() })
    }

    /// The member with far copy `far` of what `member` has in the first place.
    #[inline]
    fn further(&self, member: u64, far: u64) -> u64 {
        let (start, size) = self.set_of(member);
        // At most once around: far copies times near ones are no more than the set has members.
        let moved = member - start + far * u64::from(self.near);
        start + if moved >= size { moved - size } else { moved }
    }

    /// The member whose far copy `far` lies on `member`.
    fn back(&self, member: u64, far: u64) -> u64 {
        let (start, size) = self.set_of(member);
        start + (member - start + size - far * u64::from(self.near)) % size
    }

    /// Copies of each chunk.
    #[inline]
    /// A sector of each chunk until the pattern of copies repeats: after as many chunks as there are members, or
    /// members times far copies.
    pub(super) fn pattern(&self) -> impl Iterator<Item = Sector> + use<> {
        let chunk = self.chunk.value();
        let chunks = self.chunks.min(self.members.value() * u64::from(self.copies()));
        (0..chunks).map(move |index| Sector(index * chunk))
    }

    pub(super) fn copies(&self) -> u16 {
        self.near * self.far.value() as u16
    }

    pub(super) fn used(&self, member: MemberIndex) -> Sectors {
        let mut rows = self.rows.value() * self.far.value();
        let holds = |row: u64| {
            self.holds(Place { member, at: Sector(row * self.chunk.value()) }) != Holds::Nothing
        };
        // The last row of slots may not reach every member: a few steps at most.
        while rows > 0 && !holds(rows - 1) {
            rows -= 1;
        }
        Sectors(rows * self.chunk.value())
    }

    pub(super) fn holds(&self, place: Place) -> Holds {
        let (row, offset) = self.chunk.split(place.at.0);
        let member = u64::from(place.member.0);
        let (row, far) = if self.offset {
            self.far.split(row)
        } else {
            let (section, row) = self.rows.split(row);
            (row, section)
        };
        if member >= self.members.value() || row >= self.rows.value() || far >= self.far.value() {
            return Holds::Nothing;
        }
        let slot = row * self.members.value() + self.back(member, far);
        let (chunk, near) = (slot / u64::from(self.near), slot % u64::from(self.near));
        if chunk >= self.chunks {
            return Holds::Nothing;
        }
        let copy = near * self.far.value() + far;
        Holds::Data { at: Sector(chunk * self.chunk.value() + offset), copy: copy as u16 }
    }
}
