//! From what the contents of a range are had, and where they are written.

use super::super::member_set::MemberSet;
use super::Array;
use super::unit::{Task, Unit};
use crate::geometry::Place;
use crate::units::{MemberIndex, Sector};

/// P in a set of parities.
const P: u8 = 1;
/// Q in a set of parities.
const Q: u8 = 2;

/// A set of roles: data chunks, P, Q; or copies.
pub(super) type Roles = u128;

/// What is read, computed and written of a range.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Sources {
    /// Roles read.
    pub(super) read: Roles,
    /// Data computed from the rest, in the front of the array.
    pub(super) lost: [u16; 2],
    pub(super) lost_count: u8,
    /// Parities with which they are computed, as a set of [`P`] and [`Q`].
    pub(super) with: u8,
    /// Parities computed from the data, as a set.
    pub(super) compute: u8,
    /// Mirrors: the copy that is written over the others.
    pub(super) copy: u16,
    /// Roles written.
    pub(super) write: Roles,
}

impl Sources {
    pub(super) fn lost(&self) -> &[u16] {
        &self.lost[..usize::from(self.lost_count)]
    }

    /// P alone takes part in computing what is lost: that is an XOR.
    pub(super) const fn is_xor(&self) -> bool {
        self.with == P
    }

    /// One block is written anew, as P has it.
    pub(super) fn anew_by_p(role: u16) -> Self {
        Self { lost: [role, 0], lost_count: 1, with: P, write: 1 << role, ..Self::default() }
    }
}

pub(super) const fn has(roles: Roles, role: u16) -> bool {
    roles >> role & 1 == 1
}

impl Array {
    /// Where a role of a unit lies.
    pub(super) fn unit_place(&self, unit: &Unit, role: u16) -> Place {
        if self.setup.parities > 0 {
            return Place {
                member: self.setup.role_member(unit.stripe, role),
                at: Sector(unit.at),
            };
        }
        self.setup.geometry.place(Sector(unit.at), role)
    }

    /// What a member holds of a unit.
    pub(super) fn role_of(&self, unit: &Unit, member: MemberIndex) -> Option<u16> {
        (0..self.setup.width()).find(|role| self.unit_place(unit, *role).member == member)
    }

    /// The roles that cannot be read in the unit's window, because their members are among
    /// `missing`, lack something there, or have shown it.
    fn unreadable_roles(&self, unit: &Unit, missing: MemberSet) -> Roles {
        let (from, to) = unit.window;
        let target = match unit.task {
            Task::Rebuild(member) | Task::Heal(member) => Some(member),
            _ => None,
        };
        let unreadable = |role: &u16| {
            let Place { member, at } = self.unit_place(unit, *role);
            missing.contains(member)
                || unit.avoid.contains(member)
                || target == Some(member)
                || self.members.lacks(
                    &self.setup,
                    member,
                    Sector(at.0 + u64::from(from)),
                    u64::from(to - from),
                )
        };
        (0..self.setup.width()).filter(unreadable).fold(0, |set, role| set | 1 << role)
    }

    /// How the unit's window is had; `None` when too little can be read.
    pub(super) fn sources(&self, unit: &Unit) -> Option<Sources> {
        let unreadable = self.unreadable_roles(unit, self.members.failed);
        let width = self.setup.width();
        let all: Roles = (0..width).fold(0, |set, role| set | 1 << role);
        match unit.task {
            Task::Scrub(_) => {
                (unreadable == 0).then_some(Sources { read: all, ..Sources::default() })
            }
            Task::Replace(member) => {
                let role = self.role_of(unit, member)?;
                if has(unreadable, role) {
                    return self.computed_from(unit, unreadable, 1 << role);
                }
                Some(Sources {
                    read: 1 << role,
                    copy: role,
                    write: 1 << role,
                    ..Sources::default()
                })
            }
            Task::Rebuild(member) | Task::Heal(member) => {
                let role = self.role_of(unit, member)?;
                self.computed_from(unit, unreadable, 1 << role)
            }
            Task::Resync => {
                let live = (0..width)
                    .filter(|role| {
                        !self.members.failed.contains(self.unit_place(unit, *role).member)
                    })
                    .fold(0, |set, role| set | 1 << role);
                if self.setup.parities == 0 {
                    let copy = (0..width).find(|role| !has(unreadable, *role))?;
                    let write = live & !(1 << copy);
                    let read = if write == 0 { 0 } else { 1 << copy };
                    return Some(Sources { read, copy, write, ..Sources::default() });
                }
                let parity = all & !(all >> self.setup.parities);
                self.computed_from(unit, unreadable, live & parity)
            }
        }
    }

    /// How the roles `wanted` are computed from what can be read.
    fn computed_from(&self, unit: &Unit, unreadable: Roles, wanted: Roles) -> Option<Sources> {
        let width = self.setup.width();
        if self.setup.parities == 0 {
            let readable = |copy: &u16| !has(unreadable | wanted, *copy);
            // The copy whose member has least to do.
            let load = |copy: &u16| self.members[self.unit_place(unit, *copy).member].pending;
            let copy = (0..width).filter(readable).min_by_key(load)?;
            return Some(Sources { read: 1 << copy, copy, write: wanted, ..Sources::default() });
        }
        let data = self.setup.data_chunks;
        let mut sources = Sources::default();
        for role in (0..data).filter(|role| has(unreadable, *role)) {
            *sources.lost.get_mut(usize::from(sources.lost_count))? = role;
            sources.lost_count += 1;
        }
        let resync = unit.task == Task::Resync;
        let usable = |parity: u16| {
            let role = data + parity;
            parity < self.setup.parities && !has(unreadable, role) && (resync || !has(wanted, role))
        };
        let there = (u8::from(usable(0)) * P) | (u8::from(usable(1)) * Q);
        sources.with = match sources.lost_count {
            0 => 0,
            1 if there & P != 0 => P,
            1 if there & Q != 0 => Q,
            2 if there == P | Q => P | Q,
            _ => return None,
        };
        // What is computed from parity is as good as the parity.
        let rows = (unit.at + u64::from(unit.window.0), unit.at + u64::from(unit.window.1));
        let mut lacking = MemberSet::NONE;
        for role in sources.lost() {
            lacking.insert(self.unit_place(unit, *role).member);
        }
        if sources.with != 0 && !self.is_parity_trusted(rows.0, rows.1, lacking) {
            return None;
        }
        // Parity that served to compute data agrees with them already.
        sources.write = wanted & !(Roles::from(sources.with) << data);
        sources.compute = (sources.write >> data) as u8;
        if sources.write == 0 {
            return Some(Sources::default());
        }
        let every = (0..data).fold(0, |set: Roles, role| set | 1 << role);
        sources.read = every & !unreadable | Roles::from(sources.with) << data;
        Some(sources)
    }
}
