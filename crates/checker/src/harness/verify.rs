//! Whether redundancy agrees on the drives, looked at from outside the array.

use raidlab_core::Sector;
use raidlab_core::contract::{Event, Role, Work};

use super::Harness;
use crate::content;
use crate::shape::Set;

/// A place where redundancy disagrees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Disagreement {
    /// Copies of this sector of the array differ.
    Copies(u64),
    /// A parity of this row of the members is not that of its data.
    Parity(usize, Role),
}

impl Harness {
    /// The first place where redundancy disagrees, among members whose bits in `members` are set.
    /// Sectors that may hold anything are left out, and those that cannot be read: what would be
    /// seen there is not what the array says.
    #[must_use]
    pub fn disagreement(&self, members: Set) -> Option<Disagreement> {
        if self.shape.parities() == 0 {
            return self.unequal_copies(members).map(Disagreement::Copies);
        }
        (0..self.shape.rows()).find_map(|row| self.wrong_parity(row, members))
    }

    fn unequal_copies(&self, members: Set) -> Option<u64> {
        (0..self.shape.capacity).filter(|at| !self.oracle.is_open(*at)).find(|at| {
            let there = self.shape.copies(*at).iter().filter(|(m, place)| {
                members >> m & 1 == 1 && self.is_readable(*m, u64::from(*place))
            });
            let mut values =
                there.map(|(m, place)| self.drives.live(device(*m), u64::from(*place)));
            let first = values.next();
            values.any(|value| Some(value) != first)
        })
    }

    fn is_readable(&self, member: u16, at: u64) -> bool {
        self.drives.first_bad(device(member), at, 1, false).is_none()
    }

    fn wrong_parity(&self, row: usize, members: Set) -> Option<Disagreement> {
        let roles = self.shape.row(row);
        let unreadable = (0..self.shape.members).filter(|m| !self.is_readable(*m, row as u64));
        let members = unreadable.fold(members, |set, m| set & !(1 << m));
        let live = |m: usize| self.drives.live(device(m as u16), row as u64);
        let is_data = |role: &Option<Role>| matches!(role, Some(Role::Data(_)));
        let all_data = (0..roles.len()).all(|m| !is_data(&roles[m]) || members >> m & 1 == 1);
        if !all_data {
            return None;
        }
        let data = || {
            let all = (0..roles.len()).filter(|m| is_data(&roles[*m]));
            all.filter_map(|m| Some((roles[m]?, live(m))))
        };
        (0..roles.len()).filter(|m| members >> m & 1 == 1).find_map(|m| match roles[m] {
            Some(which @ (Role::P | Role::Q)) => {
                let wrong = content::parity(which, data()) != live(m);
                wrong.then_some(Disagreement::Parity(row, which))
            }
            _ => None,
        })
    }

    /// What is wrong with a start after an orderly stop: everything was made consistent before that, and nothing is to
    /// be made so again.
    #[must_use]
    pub fn unclean(&self) -> Option<String> {
        let synced_to = self.array.status().synced_to;
        let resyncs = self.events.contains(&Event::Started(Work::Resync));
        let is_clean = synced_to == Sector::MAX && !resyncs;
        (!is_clean)
            .then(|| format!("not clean: consistent up to {synced_to}, a resync began: {resyncs}"))
    }

    /// The members in service (a bit each), as the array says.
    #[must_use]
    pub fn in_service(&self) -> Set {
        let members = (0..self.shape.members).map(device);
        members.filter(|m| !self.array.is_failed(*m)).fold(0, |set: Set, m| set | 1 << m.0)
    }
}

const fn device(member: u16) -> raidlab_core::MemberIndex {
    raidlab_core::MemberIndex(member)
}
