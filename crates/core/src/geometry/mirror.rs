//! raid1: every member holds the whole array at the same address.

use super::{Holds, Place};
use crate::units::{MemberIndex, Sector, Sectors};

/// Every member holds everything; the smallest member sets the size.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mirror {
    members: u16,
    size: u64,
}

impl Mirror {
    pub(super) fn new(members: u16, smallest: Sectors) -> Self {
        Self { members, size: smallest.0 }
    }

    pub(super) fn capacity(&self) -> Sectors {
        Sectors(self.size)
    }

    pub(super) fn copies(&self) -> u16 {
        self.members
    }

    #[inline]
    pub(super) fn run(&self, at: Sector) -> Sectors {
        Sectors(self.size - at.0)
    }

    #[inline]
    pub(super) fn place(&self, at: Sector, copy: u16) -> Place {
        Place { member: MemberIndex(copy), at }
    }

    pub(super) fn holds(&self, place: Place) -> Holds {
        if place.member.0 >= self.members || place.at.0 >= self.size {
            return Holds::Nothing;
        }
        Holds::Data { at: place.at, copy: place.member.0 }
    }
}
