//! From what the contents of a range are had, and where they are written.

use super::window::{ResyncWindow, Task};
use crate::array::member::Members;
use crate::array::member_set::MemberSet;
use crate::array::setup::Setup;
use crate::geometry::Place;
use crate::units::{MemberIndex, Sector};

/// P in a set of parities.
const P: u8 = 1;
/// Q in a set of parities.
const Q: u8 = 2;

/// A set of roles: data chunks, P, Q; or copies.
pub(in crate::array) type Roles = u128;

/// What is read, computed and written of a range.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(in crate::array) struct Sources {
    /// Roles read.
    pub(in crate::array) read: Roles,
    /// Data computed from the rest, in the front of the array.
    pub(in crate::array) lost: [u16; 2],
    pub(in crate::array) lost_count: u8,
    /// Parities with which they are computed, as a set of [`P`] and [`Q`].
    pub(in crate::array) with: u8,
    /// Parities computed from the data, as a set.
    pub(in crate::array) compute: u8,
    /// Mirrors: the copy that is written over the others.
    pub(in crate::array) copy: u16,
    /// Roles written.
    pub(in crate::array) write: Roles,
}

impl Sources {
    pub(in crate::array) fn lost(&self) -> &[u16] {
        &self.lost[..usize::from(self.lost_count)]
    }

    /// P alone takes part in computing what is lost: that is an XOR.
    pub(in crate::array) const fn is_xor(&self) -> bool {
        self.with == P
    }

    /// One block is written anew, as P has it.
    pub(in crate::array) fn anew_by_p(role: u16) -> Self {
        Self { lost: [role, 0], lost_count: 1, with: P, write: 1 << role, ..Self::default() }
    }
}

pub(in crate::array) const fn has(roles: Roles, role: u16) -> bool {
    roles >> role & 1 == 1
}

/// What can be believed of redundancy, as background work and its bitmap know it.
pub(in crate::array) trait Trust {
    /// Whether what these members lack in rows `from..to` may be computed from parity.
    fn is_parity_trusted(&self, from: u64, to: u64, lacking: MemberSet) -> bool;
}

impl ResyncWindow {
    /// Where a role of a window lies.
    pub(in crate::array) fn place(&self, setup: &Setup, role: u16) -> Place {
        if setup.parities > 0 {
            return Place { member: setup.role_member(self.stripe, role), at: Sector(self.at) };
        }
        setup.geometry.place(Sector(self.at), role)
    }

    /// What a member holds of a self.
    pub(in crate::array) fn role_of(&self, setup: &Setup, member: MemberIndex) -> Option<u16> {
        (0..setup.width()).find(|role| self.place(setup, *role).member == member)
    }

    /// The roles that cannot be read in the part, because their members are out of service, lack something there,
    /// or have shown it.
    fn unreadable_roles(&self, setup: &Setup, members: &Members) -> Roles {
        let (from, to) = self.part;
        let target = match self.task {
            Task::Rebuild(member) | Task::Heal(member) => Some(member),
            _ => None,
        };
        let unreadable = |role: &u16| {
            let Place { member, at } = self.place(setup, *role);
            members.failed.contains(member)
                || self.avoid.contains(member)
                || target == Some(member)
                || members.lacks(
                    setup,
                    member,
                    Sector(at.0 + u64::from(from)),
                    u64::from(to - from),
                )
        };
        (0..setup.width()).filter(unreadable).fold(0, |set, role| set | 1 << role)
    }

    /// How the window's part is had; `None` when too little can be read.
    pub(in crate::array) fn sources(
        &self,
        setup: &Setup,
        members: &Members,
        trust: &impl Trust,
    ) -> Option<Sources> {
        let unreadable = self.unreadable_roles(setup, members);
        let width = setup.width();
        let all: Roles = (0..width).fold(0, |set, role| set | 1 << role);
        match self.task {
            Task::Scrub(_) => {
                (unreadable == 0).then_some(Sources { read: all, ..Sources::default() })
            }
            Task::Replace(member) => {
                let role = self.role_of(setup, member)?;
                if has(unreadable, role) {
                    return self.computed_from((setup, members), trust, unreadable, 1 << role);
                }
                Some(Sources {
                    read: 1 << role,
                    copy: role,
                    write: 1 << role,
                    ..Sources::default()
                })
            }
            Task::Rebuild(member) | Task::Heal(member) => {
                let role = self.role_of(setup, member)?;
                self.computed_from((setup, members), trust, unreadable, 1 << role)
            }
            Task::Resync => {
                let live = (0..width)
                    .filter(|role| !members.failed.contains(self.place(setup, *role).member))
                    .fold(0, |set, role| set | 1 << role);
                if setup.parities == 0 {
                    let copy = (0..width).find(|role| !has(unreadable, *role))?;
                    let write = live & !(1 << copy);
                    let read = if write == 0 { 0 } else { 1 << copy };
                    return Some(Sources { read, copy, write, ..Sources::default() });
                }
                let parity = all & !(all >> setup.parities);
                self.computed_from((setup, members), trust, unreadable, live & parity)
            }
        }
    }

    /// How the roles `wanted` are computed from what can be read.
    fn computed_from(
        &self,
        (setup, members): (&Setup, &Members),
        trust: &impl Trust,
        unreadable: Roles,
        wanted: Roles,
    ) -> Option<Sources> {
        let width = setup.width();
        if setup.parities == 0 {
            let readable = |copy: &u16| !has(unreadable | wanted, *copy);
            // The copy whose member has least to do.
            let load = |copy: &u16| members[self.place(setup, *copy).member].pending;
            let copy = (0..width).filter(readable).min_by_key(load)?;
            return Some(Sources { read: 1 << copy, copy, write: wanted, ..Sources::default() });
        }
        let data = setup.data_chunks;
        let mut sources = Sources::default();
        for role in (0..data).filter(|role| has(unreadable, *role)) {
            *sources.lost.get_mut(usize::from(sources.lost_count))? = role;
            sources.lost_count += 1;
        }
        let resync = self.task == Task::Resync;
        let usable = |parity: u16| {
            let role = data + parity;
            parity < setup.parities && !has(unreadable, role) && (resync || !has(wanted, role))
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
        let rows = (self.at + u64::from(self.part.0), self.at + u64::from(self.part.1));
        let mut lacking = MemberSet::NONE;
        for role in sources.lost() {
            lacking.insert(self.place(setup, *role).member);
        }
        if sources.with != 0 && !trust.is_parity_trusted(rows.0, rows.1, lacking) {
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
