//! Which sets of members an array does not survive, and what of a member nothing else holds meanwhile.

use super::{Geometry, Place};
use crate::units::{MemberIndex, Sector};

/// A set of members, as a question.
type Missing<'a> = &'a dyn Fn(MemberIndex) -> bool;

impl Geometry {
    /// Whether some data can be had from no member when those that are `missing` are out of service. Members of nested
    /// levels are the drives: a lower array that is lost is missing to the upper one.
    ///
    /// ```
    /// use raidlab_core::{Layout, Sectors, geometry::Geometry};
    ///
    /// let layout: Layout = "raid5+1(2x3)".parse().unwrap();
    /// let drives = Geometry::new(&layout, &[Sectors(1 << 20); 6]).unwrap();
    /// let without = |lost: &[u16]| drives.is_lost_without(&|drive| lost.contains(&drive.0));
    /// assert!(!without(&[0, 1, 2, 3]), "the second array has lost a drive only");
    /// assert!(without(&[0, 1, 3, 4]), "both have lost two");
    /// ```
    pub fn is_lost_without(&self, missing: Missing<'_>) -> bool {
        let count = |members| (0..members).map(MemberIndex).filter(|one| missing(*one)).count();
        match self {
            Self::Linear(linear) => count(linear.members()) > 0,
            Self::Raid0(raid0) => count(raid0.members()) > 0,
            Self::Mirror(mirror) => count(mirror.copies()) == usize::from(mirror.copies()),
            Self::Raid3(raid3) => count(raid3.data_members() + 1) > 1,
            Self::Parity(parity) => {
                count(parity.data_chunks() + parity.parities()) > usize::from(parity.parities())
            }
            Self::Raid10(raid10) => raid10.pattern().any(|at| self.is_gone(at, missing)),
            Self::Nested(nested) => nested.outer().is_lost_without(&|array| {
                let first = array.0 * nested.drives_of_each();
                let below = nested.inner(array.0);
                below.is_lost_without(&|member| missing(MemberIndex(first + member.0)))
            }),
        }
    }

    /// What of a member nothing else gives while others are `missing`: of how many equal parts of it (the second
    /// number) how many (the first). It is what an unreadable sector of the member would hit. Nested, the parts are
    /// those of its array where that array is all that is left of the upper one's, and none otherwise.
    pub fn exposed(&self, missing: Missing<'_>, member: MemberIndex) -> (u64, u64) {
        let with = |one: MemberIndex| one == member || missing(one);
        match self {
            Self::Raid10(raid10) => {
                let holds = |at: &Sector| {
                    (0..self.copies()).any(|copy| self.place(*at, copy).member == member)
                };
                let held: Vec<Sector> = raid10.pattern().filter(holds).collect();
                let gone = held.iter().filter(|at| self.is_gone(**at, &with)).count();
                (gone as u64, held.len().max(1) as u64)
            }
            Self::Nested(nested) => {
                let Some((index, of_array, first)) = nested.array_of(member) else { return (0, 1) };
                let below = nested.inner(index);
                let parts = below.exposed(&|one| missing(MemberIndex(first.0 + one.0)), of_array);
                let is_lost = |array: MemberIndex| {
                    let first = array.0 * nested.drives_of_each();
                    array.0 == index
                        || nested
                            .inner(array.0)
                            .is_lost_without(&|one| missing(MemberIndex(first + one.0)))
                };
                if nested.outer().is_lost_without(&is_lost) { parts } else { (0, parts.1) }
            }
            _ => (u64::from(self.is_lost_without(&with)), 1),
        }
    }

    /// Whether no copy of a sector is left.
    fn is_gone(&self, at: Sector, missing: Missing<'_>) -> bool {
        (0..self.copies()).all(|copy| {
            let Place { member, .. } = self.place(at, copy);
            missing(member)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::Layout;
    use crate::units::Sectors;

    fn geometry(layout: &str) -> Geometry {
        let layout: Layout = layout.parse().expect("a layout");
        let sizes = vec![Sectors(1 << 20); usize::from(layout.drives())];
        Geometry::new(&layout, &sizes).expect("possible")
    }

    fn lost(layout: &str, missing: &[u16]) -> bool {
        geometry(layout).is_lost_without(&|one| missing.contains(&one.0))
    }

    fn exposed(layout: &str, missing: &[u16], member: u16) -> (u64, u64) {
        geometry(layout).exposed(&|one| missing.contains(&one.0), MemberIndex(member))
    }

    #[test]
    fn nested_levels_are_lost_when_too_many_arrays_are() {
        assert!(!lost("raid5+0(2x3)", &[0, 3]) && lost("raid5+0(2x3)", &[3, 4]));
        assert!(!lost("raid0+1(2x3)", &[3, 4, 5]) && lost("raid0+1(2x3)", &[0, 5]));
        assert!(
            !lost("raid6+5(3x4)", &[0, 1, 2, 4, 5]) && lost("raid6+5(3x4)", &[0, 1, 2, 4, 5, 6])
        );
        assert!(lost("linear(3)", &[2]) && !lost("linear(3)", &[]));
        assert!(lost("raid3(3)", &[1, 2]) && !lost("raid3(3)", &[2]));
    }

    #[test]
    fn a_layout_survives_as_many_drives_as_it_says() {
        for name in ["raid0(3)", "raid1(3)", "raid5(4)", "raid6(5)", "raid10(5)", "raid5+1(2x3)"] {
            let layout: Layout = name.parse().expect("a layout");
            let drives = layout.drives();
            let sets = (0..1u32 << drives).map(|set| {
                let missing: Vec<u16> = (0..drives).filter(|one| set >> one & 1 == 1).collect();
                (missing.len() as u16, lost(name, &missing))
            });
            let least = sets.filter(|(_, is_lost)| *is_lost).map(|(count, _)| count).min();
            assert_eq!(least, Some(layout.survives() + 1), "{name}");
        }
    }

    #[test]
    fn what_is_exposed_is_what_nothing_else_holds() {
        assert_eq!(exposed("raid5(4)", &[], 2), (0, 1));
        assert_eq!(exposed("raid5(4)", &[0], 2), (1, 1));
        assert_eq!(exposed("raid6(4)", &[0], 2), (0, 1));
        // Far copies lie on the next member: half of what a neighbour of the lost one holds is alone.
        let share = |(gone, of): (u64, u64)| gone as f64 / of as f64;
        assert_eq!(share(exposed("raid10(4) far2", &[0], 1)), 0.5);
        assert_eq!(share(exposed("raid10(4) far2", &[0], 2)), 0.0);
        assert_eq!(share(exposed("raid10(4)", &[0], 1)), 1.0);
        assert_eq!(exposed("raid5+0(2x3)", &[0], 1), (1, 1));
        assert_eq!(exposed("raid5+0(2x3)", &[0], 4), (0, 1));
        assert_eq!(exposed("raid5+1(2x3)", &[0, 1], 4), (0, 1), "its array has all its drives");
        assert_eq!(exposed("raid5+1(2x3)", &[0, 1, 3], 4), (1, 1));
        assert_eq!(exposed("raid0(2)", &[], 1), (1, 1));
    }
}
