//! Levels with parity: d data chunks and one P a stripe, at the same address on all members.
//!
//! md raid5.c: stripe s = c div d, k = c mod d, member address = s x C + o; the array holds
//! d x floor(size / C) chunks. With r = s mod n, left-symmetric: P on n-1-r, data chunk k on
//! (P + 1 + k) mod n.

use super::{Divisor, Holds, Place};
use crate::layout::Rotation;
use crate::units::{MemberIndex, Sector, Sectors};

/// Stripes with parity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parity {
    members: Divisor,
    data: Divisor,
    chunk: Divisor,
    stripes: u64,
    rotation: Rotation,
}

/// A sector of the array as a stripe sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StripePlace {
    /// Which stripe, from 0.
    pub stripe: u64,
    /// Which data chunk of the stripe, from 0.
    pub chunk: u16,
    /// Sectors from the start of the chunk.
    pub offset: u64,
}

impl Parity {
    pub(super) fn new(members: u16, rotation: Rotation, chunk: Sectors, smallest: Sectors) -> Self {
        Self {
            members: Divisor::new(u64::from(members)),
            data: Divisor::new(u64::from(members) - 1),
            chunk: Divisor::new(chunk.0),
            stripes: smallest.0 / chunk.0,
            rotation,
        }
    }

    pub(super) fn capacity(&self) -> Sectors {
        Sectors(self.stripes * self.data.value() * self.chunk.value())
    }

    /// Data chunks a stripe.
    pub fn data_chunks(&self) -> u16 {
        self.data.value() as u16
    }

    /// Sectors a chunk.
    pub fn chunk(&self) -> Sectors {
        Sectors(self.chunk.value())
    }

    /// Data sectors a stripe.
    pub fn stripe_sectors(&self) -> u64 {
        self.data.value() * self.chunk.value()
    }

    /// Where the stripe starts on every member.
    #[inline]
    pub fn member_start(&self, stripe: u64) -> Sector {
        Sector(stripe * self.chunk.value())
    }

    /// The place of an array sector.
    #[inline]
    pub fn stripe_place(&self, at: Sector) -> StripePlace {
        let (chunk, offset) = self.chunk.split(at.0);
        let (stripe, k) = self.data.split(chunk);
        StripePlace { stripe, chunk: k as u16, offset }
    }

    /// The member with the stripe's P.
    #[inline]
    pub fn p_member(&self, stripe: u64) -> MemberIndex {
        let n = self.members.value();
        let r = self.members.remainder(stripe);
        match self.rotation {
            Rotation::LeftSymmetric => MemberIndex((n - 1 - r) as u16),
        }
    }

    /// The member with data chunk `chunk` of the stripe.
    #[inline]
    pub fn data_member(&self, stripe: u64, chunk: u16) -> MemberIndex {
        let n = self.members.value();
        let p = u64::from(self.p_member(stripe).0);
        match self.rotation {
            Rotation::LeftSymmetric => {
                let member = p + 1 + u64::from(chunk);
                MemberIndex((if member >= n { member - n } else { member }) as u16)
            }
        }
    }

    #[inline]
    pub(super) fn run(&self, at: Sector) -> Sectors {
        Sectors(self.chunk.value() - self.chunk.remainder(at.0))
    }

    #[inline]
    pub(super) fn place(&self, at: Sector) -> Place {
        let place = self.stripe_place(at);
        let member = self.data_member(place.stripe, place.chunk);
        Place { member, at: Sector(self.member_start(place.stripe).0 + place.offset) }
    }

    pub(super) fn used(&self) -> Sectors {
        Sectors(self.stripes * self.chunk.value())
    }

    pub(super) fn holds(&self, place: Place) -> Holds {
        let (stripe, offset) = self.chunk.split(place.at.0);
        let n = self.members.value();
        if u64::from(place.member.0) >= n || stripe >= self.stripes {
            return Holds::Nothing;
        }
        let p = self.p_member(stripe);
        if place.member == p {
            return Holds::P { stripe };
        }
        let k = match self.rotation {
            Rotation::LeftSymmetric => (u64::from(place.member.0) + n - u64::from(p.0) - 1) % n,
        };
        let chunk = stripe * self.data.value() + k;
        Holds::Data { at: Sector(chunk * self.chunk.value() + offset), copy: 0 }
    }
}
