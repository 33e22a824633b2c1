//! What a range of an array lacks of the redundancy that its level has.

use super::Array;
use crate::geometry::Geometry;
use crate::units::{MemberIndex, Sector, Sectors};

/// What is lacking; nothing by default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lacking {
    /// A member that has a part of it is out of service.
    pub member: bool,
    /// A member that has a part of it is being rebuilt, and that part is not there yet.
    pub rebuilt: bool,
    /// Copies or parity may disagree, as they were not made consistent yet.
    pub consistency: bool,
}

impl Array {
    /// What is lacking where a sector lies, and how many sectors from there on, at most `most`, are in
    /// the same state. Both lie within the array.
    pub fn lacking(&self, at: Sector, most: Sectors) -> (Lacking, Sectors) {
        let status = self.status();
        let is_whole = status.failed == [0; 2] && status.rebuilding == [0; 2];
        let is_consistent = status.synced_to == Sector::MAX;
        if !self.layout().level.is_redundant() || is_whole && is_consistent {
            return (Lacking::default(), most);
        }
        let geometry = self.geometry();
        let mut lacking = Lacking::default();
        let mut look = |member: MemberIndex, at: Sector| {
            lacking.member |= self.is_failed(member);
            lacking.rebuilt |= !self.is_failed(member) && at >= self.good_to(member);
        };
        let all = (0..self.layout().members).map(MemberIndex);
        // With parity all members have a part of each row; progress is counted in rows then, else in
        // sectors of the array, but that of members always in theirs.
        let mut border = u64::MAX;
        let mut until = |from: Sector, to: Sector| {
            if to > from {
                border = border.min(to.0 - from.0);
            }
        };
        let row = match geometry {
            Geometry::Parity(_) | Geometry::Raid3(_) => {
                let row = geometry.place(at, 0).at;
                all.for_each(|member| {
                    look(member, row);
                    until(row, self.good_to(member));
                });
                row
            }
            _ => {
                for place in (0..geometry.copies()).map(|copy| geometry.place(at, copy)) {
                    look(place.member, place.at);
                    until(place.at, self.good_to(place.member));
                }
                at
            }
        };
        until(row, status.synced_to);
        lacking.consistency = row >= status.synced_to;
        (lacking, geometry.run(at).min(most).min(Sectors(border)))
    }
}
