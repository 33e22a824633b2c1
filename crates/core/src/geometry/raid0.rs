//! raid0: chunks dealt in turn to all members.
//!
//! md raid0.c: each member is rounded down to whole chunks. Zone 0 spans all members up to the
//! smallest; each further zone starts where the one before ended on the members and uses, in role
//! order, those that are larger, up to the next smallest. The array is the sum of all members; the
//! chunk need not be a power of two.
//!
//! For array sector x in the zone of m members that starts at Z of the array and D of its members:
//! member address = D + ((x - Z) div (C x m)) x C + x mod C (zones start at whole chunks); among the
//! zone's members it is number
//!
//! - (x div C) mod m, by the chunk number of the *array*: "original", Linux before 3.14 and the
//!   default of mdadm;
//! - ((x - Z) div C) mod m, by that of the *zone*: "alternate", Linux 3.14 to 5.3.
//!
//! They differ where Z div C is no multiple of m, never in zone 0. An array read in the wrong order
//! shows the right data at the start and wrong data behind: Linux 5.4 and later refuses several
//! zones when the superblock does not say which.

use super::{Divisor, Holds, Place};
use crate::layout::ZoneOrder;
use crate::units::{MemberIndex, Sector, Sectors};

/// A stretch of the array that is dealt to the same members throughout.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Zone {
    /// First and one past the last array sector.
    start: u64,
    end: u64,
    /// Where the zone starts on its members.
    member_start: u64,
    members: Vec<u16>,
    count: Divisor,
    /// Which of the members has the zone's first chunk.
    first: u64,
}

/// Chunks dealt in turn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Raid0 {
    chunk: Divisor,
    zones: Vec<Zone>,
    sizes: Vec<u64>,
}

impl Raid0 {
    pub(super) fn new(sizes: &[Sectors], chunk: Sectors, order: ZoneOrder) -> Self {
        let sizes: Vec<u64> = sizes.iter().map(|size| size.0 / chunk.0 * chunk.0).collect();
        let mut zones: Vec<Zone> = Vec::new();
        let (mut start, mut member_start) = (0, 0);
        while let Some(next) = sizes.iter().copied().filter(|size| *size > member_start).min() {
            let members: Vec<u16> =
                (0..sizes.len() as u16).filter(|i| sizes[usize::from(*i)] > member_start).collect();
            let end = start + (next - member_start) * members.len() as u64;
            let count = Divisor::new(members.len() as u64);
            let first = match order {
                ZoneOrder::Original => count.remainder(start / chunk.0),
                ZoneOrder::Alternate => 0,
            };
            zones.push(Zone { start, end, member_start, members, count, first });
            (start, member_start) = (end, next);
        }
        Self { chunk: Divisor::new(chunk.0), zones, sizes }
    }

    pub(super) fn capacity(&self) -> Sectors {
        Sectors(self.zones.last().map_or(0, |zone| zone.end))
    }

    #[inline]
    pub(super) fn run(&self, at: Sector) -> Sectors {
        // Zones end on chunk boundaries of the array, so a chunk never crosses one.
        Sectors(self.chunk.value() - self.chunk.remainder(at.0))
    }

    #[inline]
    fn zone(&self, at: u64) -> &Zone {
        let mut index = 0;
        while at >= self.zones[index].end {
            index += 1;
        }
        &self.zones[index]
    }

    #[inline]
    pub(super) fn place(&self, at: Sector) -> Place {
        let zone = self.zone(at.0);
        let (chunk, offset) = self.chunk.split(at.0 - zone.start);
        let (row, in_row) = zone.count.split(chunk);
        let mut index = in_row + zone.first;
        if index >= zone.count.value() {
            index -= zone.count.value();
        }
        Place {
            member: MemberIndex(zone.members[index as usize]),
            at: Sector(zone.member_start + row * self.chunk.value() + offset),
        }
    }

    pub(super) fn members(&self) -> u16 {
        self.sizes.len() as u16
    }

    pub(super) fn used(&self, member: MemberIndex) -> Sectors {
        Sectors(self.sizes[member.at()])
    }

    pub(super) fn holds(&self, place: Place) -> Holds {
        if place.member.at() >= self.sizes.len() || place.at.0 >= self.sizes[place.member.at()] {
            return Holds::Nothing;
        }
        let found = self.zones.iter().rev().find(|zone| place.at.0 >= zone.member_start);
        let Some(zone) = found else { return Holds::Nothing };
        let Some(index) = zone.members.iter().position(|m| *m == place.member.0) else {
            return Holds::Nothing;
        };
        let (row, offset) = self.chunk.split(place.at.0 - zone.member_start);
        let count = zone.count.value();
        let in_row = (index as u64 + count - zone.first) % count;
        let at = zone.start + (row * count + in_row) * self.chunk.value() + offset;
        Holds::Data { at: Sector(at), copy: 0 }
    }
}
