//! Levels with parity in chunks: d data chunks, P and, for raid6, Q a stripe, at the same address on
//! all members.
//!
//! md raid5.c: for array chunk c, stripe s = c div d, k = c mod d, member address = s x C + o; the
//! array holds d x floor(size / C) chunks. Which member has which chunk of the stripe is the rule of
//! the level: raid4.rs, raid5.rs, raid6.rs.

use super::stripe::{Role, StripeTable};
use super::{Divisor, Holds, Place, raid4, raid5, raid6};
use crate::layout::{Layout, Level};
use crate::units::{MemberIndex, Sector, Sectors};

/// Stripes with parity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parity {
    members: u16,
    data: Divisor,
    chunk: Divisor,
    stripes: u64,
    /// Stripes after which the places repeat.
    period: Divisor,
    table: StripeTable,
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
    /// `layout` is checked and of raid4, raid5 or raid6.
    pub(super) fn new(layout: &Layout, smallest: Sectors) -> Self {
        let (n, rotation) = (layout.members, layout.rotation);
        let (maps, exponents): (Vec<_>, Vec<_>) = match layout.level {
            Level::Raid4 => (vec![raid4::map(n)], Vec::new()),
            Level::Raid5 => {
                let stripes = 0..raid5::period(n, rotation);
                (stripes.map(|s| raid5::map(n, rotation, s)).collect(), Vec::new())
            }
            _ => {
                let stripes = 0..raid6::period(n, rotation);
                let maps = stripes.map(|s| raid6::map(n, rotation, s));
                maps.map(|map| (map.clone(), raid6::exponents(n, rotation, &map))).unzip()
            }
        };
        Self {
            members: n,
            data: Divisor::new(maps[0].data.len() as u64),
            chunk: Divisor::new(layout.chunk.0),
            stripes: smallest.0 / layout.chunk.0,
            period: Divisor::new(maps.len() as u64),
            table: StripeTable::new(&maps, &exponents),
        }
    }

    pub(super) fn capacity(&self) -> Sectors {
        Sectors(self.stripes * self.stripe_sectors())
    }

    /// Data chunks a stripe.
    #[inline]
    pub fn data_chunks(&self) -> u16 {
        self.data.value() as u16
    }

    /// Parity chunks a stripe: 1, P, or 2, P and Q.
    #[inline]
    pub fn parities(&self) -> u16 {
        self.members - self.data_chunks()
    }

    /// Sectors a chunk.
    #[inline]
    pub fn chunk(&self) -> Sectors {
        Sectors(self.chunk.value())
    }

    /// Data sectors a stripe.
    #[inline]
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
        let stripe = self.period.remainder(stripe);
        MemberIndex(self.table.member(stripe, self.data.value() as usize))
    }

    /// The member with the stripe's Q; none but in raid6.
    #[inline]
    pub fn q_member(&self, stripe: u64) -> Option<MemberIndex> {
        if self.parities() < 2 {
            return None;
        }
        let stripe = self.period.remainder(stripe);
        Some(MemberIndex(self.table.member(stripe, self.data.value() as usize + 1)))
    }

    /// The member with data chunk `chunk` of the stripe. `chunk` is below [`Self::data_chunks`].
    #[inline]
    pub fn data_member(&self, stripe: u64, chunk: u16) -> MemberIndex {
        let stripe = self.period.remainder(stripe);
        MemberIndex(self.table.member(stripe, usize::from(chunk)))
    }

    /// The power of g with which data chunk `chunk` of the stripe counts in Q; 0 without Q. `chunk`
    /// is below [`Self::data_chunks`].
    #[inline]
    pub fn q_exponent(&self, stripe: u64, chunk: u16) -> u8 {
        if self.parities() < 2 {
            return 0;
        }
        self.table.exponent(self.period.remainder(stripe), usize::from(chunk))
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
        if place.member.0 >= self.members || stripe >= self.stripes {
            return Holds::Nothing;
        }
        match self.table.role(self.period.remainder(stripe), place.member.at()) {
            Role::P => Holds::P { stripe },
            Role::Q => Holds::Q { stripe },
            Role::Data(k) => {
                let chunk = stripe * self.data.value() + u64::from(k);
                Holds::Data { at: Sector(chunk * self.chunk.value() + offset), copy: 0 }
            }
        }
    }
}
