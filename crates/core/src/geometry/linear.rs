//! linear: members one after another, in the order of their roles.
//!
//! md-linear: each member is rounded down to a whole number of chunks where a chunk is given; the
//! array is their sum. No redundancy.

use super::{Holds, Place};
use crate::units::{MemberIndex, Sector, Sectors};

/// Members one after another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Linear {
    /// One past the last array sector of each member.
    ends: Vec<u64>,
}

impl Linear {
    pub(super) fn new(sizes: &[Sectors], chunk: Sectors) -> Self {
        let round = chunk.0.max(1);
        let mut end = 0;
        let ends = sizes
            .iter()
            .map(|size| {
                end += size.0 / round * round;
                end
            })
            .collect();
        Self { ends }
    }

    pub(super) fn capacity(&self) -> Sectors {
        Sectors(self.ends.last().copied().unwrap_or(0))
    }

    #[inline]
    fn member(&self, at: Sector) -> (usize, u64) {
        let index = self.ends.partition_point(|end| *end <= at.0);
        (index, if index == 0 { 0 } else { self.ends[index - 1] })
    }

    #[inline]
    pub(super) fn run(&self, at: Sector) -> Sectors {
        let (index, _) = self.member(at);
        Sectors(self.ends[index] - at.0)
    }

    #[inline]
    pub(super) fn place(&self, at: Sector) -> Place {
        let (index, start) = self.member(at);
        Place { member: MemberIndex(index as u16), at: Sector(at.0 - start) }
    }

    pub(super) fn members(&self) -> u16 {
        self.ends.len() as u16
    }

    pub(super) fn used(&self, member: MemberIndex) -> Sectors {
        let index = member.at();
        let start = if index == 0 { 0 } else { self.ends[index - 1] };
        Sectors(self.ends[index] - start)
    }

    pub(super) fn holds(&self, place: Place) -> Holds {
        let index = place.member.at();
        if index >= self.ends.len() || place.at.0 >= self.used(place.member).0 {
            return Holds::Nothing;
        }
        let start = if index == 0 { 0 } else { self.ends[index - 1] };
        Holds::Data { at: Sector(start + place.at.0), copy: 0 }
    }
}
