//! raid3: every logical sector cut over all data members, P on the last member.
//!
//! FreeBSD graid3: 2^k + 1 members. With b sectors a block (the largest member's sector, usually 1)
//! a logical sector of the array is b x (n-1) sectors; its atom i, of b sectors, lies on member i.
//! For array sector x: row L = x div (b x (n-1)), member i = (x div b) mod (n-1), member address
//! L x b + x mod b; P on member n-1 at the same address. The array holds
//! (n-1) x floor(smallest / b) x b sectors; a logical sector is at most 128 KiB (MAXPHYS).
//!
//! Every logical sector moves all members: a write of whole ones never needs to read.

use super::{Divisor, Holds, Place};
use crate::layout::LayoutError;
use crate::units::{MemberIndex, Sector, Sectors};

/// The largest logical sector of graid3.
const MOST_LOGICAL_SECTOR: u64 = 256;

/// Logical sectors cut over all data members.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Raid3 {
    block: Divisor,
    /// Members with data.
    data: Divisor,
    rows: u64,
}

impl Raid3 {
    pub(super) fn new(members: u16, smallest: Sectors, block: u32) -> Result<Self, LayoutError> {
        let data = u64::from(members) - 1;
        let logical = u64::from(block) * data;
        if logical > MOST_LOGICAL_SECTOR {
            return Err(LayoutError::new(
                "members",
                format!(
                    "{members} members with blocks of {} make a logical sector of {}; raid3 takes \
                     up to {}, so use fewer members",
                    Sectors(u64::from(block)),
                    Sectors(logical),
                    Sectors(MOST_LOGICAL_SECTOR)
                ),
            ));
        }
        let block = Divisor::new(u64::from(block));
        let rows = smallest.0 / block.value();
        Ok(Self { block, data: Divisor::new(data), rows })
    }

    pub(super) fn capacity(&self) -> Sectors {
        Sectors(self.rows * self.logical_sector())
    }

    /// Members with data.
    #[inline]
    pub fn data_members(&self) -> u16 {
        self.data.value() as u16
    }

    /// Sectors of an atom: what one member holds of a logical sector.
    #[inline]
    pub fn block(&self) -> u64 {
        self.block.value()
    }

    /// Sectors of a logical sector of the array: the smallest piece that is written.
    #[inline]
    pub fn logical_sector(&self) -> u64 {
        self.block.value() * self.data.value()
    }

    /// The member with P.
    #[inline]
    pub fn p_member(&self) -> MemberIndex {
        MemberIndex(self.data.value() as u16)
    }

    /// Where the row of a logical sector starts on every member; `row` from 0.
    #[inline]
    pub fn member_start(&self, row: u64) -> Sector {
        Sector(row * self.block.value())
    }

    #[inline]
    pub(super) fn run(&self, at: Sector) -> Sectors {
        Sectors(self.block.value() - self.block.remainder(at.0))
    }

    #[inline]
    pub(super) fn place(&self, at: Sector) -> Place {
        let (atom, offset) = self.block.split(at.0);
        let (row, member) = self.data.split(atom);
        Place { member: MemberIndex(member as u16), at: Sector(self.member_start(row).0 + offset) }
    }

    pub(super) fn used(&self) -> Sectors {
        Sectors(self.rows * self.block.value())
    }

    /// The "stripe" of P is the number of the logical sector.
    pub(super) fn holds(&self, place: Place) -> Holds {
        let (row, offset) = self.block.split(place.at.0);
        if place.member > self.p_member() || row >= self.rows {
            return Holds::Nothing;
        }
        if place.member == self.p_member() {
            return Holds::P { stripe: row };
        }
        let atom = row * self.data.value() + u64::from(place.member.0);
        Holds::Data { at: Sector(atom * self.block.value() + offset), copy: 0 }
    }
}
