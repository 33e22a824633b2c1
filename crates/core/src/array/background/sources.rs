//! From what the contents of a range are had, and where they are written.

use super::window::{ResyncWindow, Task};
use crate::array::member::Members;
use crate::array::member_set::MemberSet;
use crate::array::roles::Roles;
use crate::array::setup::Setup;
use crate::geometry::Place;
use crate::units::{MemberIndex, Sector};

/// What is read, computed and written of a range.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(in crate::array) struct Sources {
    /// Roles read.
    pub(in crate::array) read: Roles,
    /// Data computed from the rest, in the front of the array.
    pub(in crate::array) lost: [u16; 2],
    pub(in crate::array) lost_count: u8,
    /// Parities with which they are computed.
    pub(in crate::array) with: Roles,
    /// Parities computed from the data.
    pub(in crate::array) compute: Roles,
    /// Mirrors: the copy that is written over the others.
    pub(in crate::array) copy: u16,
    /// Roles written.
    pub(in crate::array) write: Roles,
}

impl Sources {
    pub(in crate::array) fn lost(&self) -> &[u16] {
        &self.lost[..usize::from(self.lost_count)]
    }

    /// One block is written anew, as P has it, whose role is given.
    pub(in crate::array) fn anew_by_p(role: u16, p: u16) -> Self {
        let (with, write) = (Roles::one(p), Roles::one(role));
        Self { lost: [role, 0], lost_count: 1, with, write, ..Self::default() }
    }
}

/// What can be believed of redundancy, as background work and its bitmap know it.
pub(in crate::array) trait Trust {
    /// Whether what these members lack in rows `from..to` may be computed from parity.
    fn is_parity_trusted(&self, from: u64, to: u64, lacking: MemberSet) -> bool;
    /// Whether copies below `end` of the array agree: all of it was made consistent.
    fn are_copies_synced(&self, end: u64) -> bool;
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
        (0..setup.width()).filter(unreadable).collect()
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
        match self.task {
            Task::Scrub(_) => {
                let read = Roles::range(0, width);
                unreadable.is_empty().then_some(Sources { read, ..Sources::default() })
            }
            Task::Replace(member) => {
                let role = self.role_of(setup, member)?;
                let one = Roles::one(role);
                if unreadable.contains(role) {
                    return self.computed_from((setup, members), trust, unreadable, one);
                }
                Some(Sources { read: one, copy: role, write: one, ..Sources::default() })
            }
            Task::Rebuild(member) | Task::Heal(member) => {
                let role = self.role_of(setup, member)?;
                self.computed_from((setup, members), trust, unreadable, Roles::one(role))
            }
            Task::Resync => {
                let live = |role: &u16| !members.failed.contains(self.place(setup, *role).member);
                if setup.parities == 0 {
                    let copy = (0..width).find(|role| !unreadable.contains(*role))?;
                    let read = Roles::one(copy);
                    let write = (0..width).filter(live).collect::<Roles>().without(read);
                    let read = if write.is_empty() { write } else { read };
                    return Some(Sources { read, copy, write, ..Sources::default() });
                }
                let parity = (setup.data_chunks..width).filter(live).collect();
                self.computed_from((setup, members), trust, unreadable, parity)
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
            let not = unreadable.union(wanted);
            let readable = |copy: &u16| !not.contains(*copy);
            // The copy whose member has least to do. md takes the first (`raid1_sync_request`, drivers/md/raid1.c;
            // `raid10_sync_request`, drivers/md/raid10.c: "This is where we read from"); and so does everybody where
            // copies may differ, as reads do: what was read once is what all copies get.
            let end = self.at + u64::from(self.part.1);
            let load = |copy: &u16| match setup.is_of_md() || !trust.are_copies_synced(end) {
                true => 0,
                false => members[self.place(setup, *copy).member].pending,
            };
            let copy = (0..width).filter(readable).min_by_key(load)?;
            let read = Roles::one(copy);
            return Some(Sources { read, copy, write: wanted, ..Sources::default() });
        }
        let data = setup.data_chunks;
        let mut sources = Sources::default();
        for role in (0..data).filter(|role| unreadable.contains(*role)) {
            *sources.lost.get_mut(usize::from(sources.lost_count))? = role;
            sources.lost_count += 1;
        }
        let resync = self.task == Task::Resync;
        let usable =
            |role: &u16| !unreadable.contains(*role) && (resync || !wanted.contains(*role));
        // P before Q: that is an XOR.
        let with = (data..width).filter(usable).take(usize::from(sources.lost_count));
        sources.with = with.collect();
        if sources.with.count() < u16::from(sources.lost_count) {
            return None;
        }
        // What is computed from parity is as good as the parity.
        let rows = (self.at + u64::from(self.part.0), self.at + u64::from(self.part.1));
        let mut lacking = MemberSet::NONE;
        for role in sources.lost() {
            lacking.insert(self.place(setup, *role).member);
        }
        if !sources.with.is_empty() && !trust.is_parity_trusted(rows.0, rows.1, lacking) {
            return None;
        }
        // Parity that served to compute data agrees with them already.
        sources.write = wanted.without(sources.with);
        if sources.write.is_empty() {
            return Some(Sources::default());
        }
        let every = Roles::range(0, data);
        sources.compute = sources.write.without(every);
        sources.read = every.without(unreadable).union(sources.with);
        Some(sources)
    }
}
