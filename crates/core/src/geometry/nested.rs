//! Nested levels: every sector of the upper array's members is a sector of a lower array.

use super::{Geometry, Holds, Place};
use crate::units::{MemberIndex, Sector, Sectors};

/// An array over arrays. Its members are the drives, counted through the lower arrays in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Nested {
    outer: Box<Geometry>,
    inner: Vec<Geometry>,
    /// Drives of each lower array.
    drives: u16,
}

impl Nested {
    /// An upper array over lower ones of `drives` drives each.
    pub(crate) fn new(outer: Geometry, inner: Vec<Geometry>, drives: u16) -> Self {
        Self { outer: Box::new(outer), inner, drives }
    }

    /// The upper array, whose members are the lower ones.
    pub fn outer(&self) -> &Geometry {
        &self.outer
    }

    /// The lower array of a drive, which of its members the drive is, and the array's first drive; `None` for a drive
    /// that does not exist.
    pub fn array_of(&self, drive: MemberIndex) -> Option<(u16, MemberIndex, MemberIndex)> {
        let (index, member) = (drive.0 / self.drives, drive.0 % self.drives);
        let exists = usize::from(index) < self.inner.len();
        exists.then_some((index, MemberIndex(member), MemberIndex(drive.0 - member)))
    }

    /// A lower array.
    pub fn inner(&self, index: u16) -> &Geometry {
        &self.inner[usize::from(index)]
    }

    /// How many lower arrays.
    pub fn arrays(&self) -> u16 {
        self.inner.len() as u16
    }

    /// Drives of each lower array.
    pub const fn drives_of_each(&self) -> u16 {
        self.drives
    }

    #[cold]
    #[inline(never)]
    pub(super) fn capacity(&self) -> Sectors {
        self.outer.capacity()
    }

    pub(super) fn copies(&self) -> u16 {
        let below = self.inner.iter().map(Geometry::copies).min().unwrap_or(1);
        self.outer.copies() * below
    }

    #[cold]
    #[inline(never)]
    pub(super) fn run(&self, at: Sector) -> Sectors {
        let above = self.outer.run(at);
        let least = |copy| {
            let place = self.outer.place(at, copy);
            self.inner[place.member.at()].run(place.at).min(above)
        };
        (0..self.outer.copies()).map(least).min().unwrap_or(above)
    }

    #[cold]
    #[inline(never)]
    pub(super) fn place(&self, at: Sector, copy: u16) -> Place {
        let above = self.outer.copies();
        let place = self.outer.place(at, copy % above);
        let below = self.inner[place.member.at()].place(place.at, copy / above);
        Place { member: MemberIndex(place.member.0 * self.drives + below.member.0), at: below.at }
    }

    #[cold]
    #[inline(never)]
    pub(super) fn holds(&self, place: Place) -> Holds {
        let Some((index, member, _)) = self.array_of(place.member) else { return Holds::Nothing };
        match self.inner(index).holds(Place { member, ..place }) {
            Holds::Data { at, copy } => {
                match self.outer.holds(Place { member: MemberIndex(index), at }) {
                    Holds::Data { at, copy: above } => {
                        Holds::Data { at, copy: copy * self.outer.copies() + above }
                    }
                    other => other,
                }
            }
            other => other,
        }
    }

    pub(super) fn used(&self, drive: MemberIndex) -> Sectors {
        self.array_of(drive)
            .map_or(Sectors::ZERO, |(index, member, _)| self.inner(index).used(member))
    }
}
