//! What never changes once an array is made: its layout and settings, how much of everything there is, and
//! which member, role, lock owner or buffer has which number.

use super::member_set::MemberSet;
use super::settings::{Consistency, Settings};
use crate::bugs::Bug;
use crate::contract::{LOG_HEADER, Role, Scratch, Token};
use crate::geometry::{Geometry, Holds, Parity, Place};
use crate::layout::Layout;
use crate::policy::CopyKind;
use crate::units::{MemberIndex, Sector, Sectors};

/// What an array is, as all its parts share it.
#[derive(Clone, Debug)]
pub(super) struct Setup {
    pub(super) layout: Layout,
    pub(super) geometry: Geometry,
    pub(super) settings: Settings,
    /// Sectors each member has for data.
    pub(super) sizes: Vec<Sectors>,
    /// The policy may cut a read into a part for each copy.
    pub(super) cuts_reads: bool,
    /// The policy wants to be told of I/Os.
    pub(super) policy_watches: bool,
    /// What is rebuilt of a member can be read in steps of so many sectors: 1, and in a kernel's md a sixteenth of the
    /// member, after which it notes how far it is (`md_do_sync`, drivers/md/md.c: `max_sectors >> 4`). Every ten
    /// minutes it does, too; that is left out.
    pub(super) rebuild_step: u64,
    pub(super) copy_kind: CopyKind,
    pub(super) capacity: u64,
    /// Copies of each sector, as the geometry has them.
    pub(super) copies: u16,
    pub(super) logical_block: u32,
    /// Segments a request may have.
    pub(super) most_segments: u32,
    /// Parity levels: data chunks and parities of a stripe; else 0.
    pub(super) data_chunks: u16,
    pub(super) parities: u16,
    /// raid3: sectors that lie together on a data member; else 0.
    pub(super) atom: u64,
    /// Rows of a chunk that one plan works on at most.
    pub(super) plan_rows: u64,
    /// Sectors of a member that a range of background work has at most.
    pub(super) window_rows: u64,
    /// Requests, plans and ranges of background work that there may be at once.
    pub(super) requests: u32,
    pub(super) plans: u32,
    pub(super) windows: u32,
    /// Somebody moves the bytes that lists of segments name.
    pub(super) has_payload: bool,
    /// One of a stack's arrays.
    pub(super) nested: bool,
    /// The first of its scratch buffers.
    pub(super) scratch_base: u32,
    #[cfg(debug_assertions)]
    pub(super) bug: Option<Bug>,
}

impl Setup {
    /// Whether a bug is planted; never without debug assertions.
    #[inline(always)]
    pub(super) fn has_bug(&self, bug: Bug) -> bool {
        #[cfg(debug_assertions)]
        return self.bug == Some(bug);
        #[cfg(not(debug_assertions))]
        {
            let _ = bug;
            false
        }
    }

    /// Whether something is left when a member is lost.
    pub(super) const fn is_redundant(&self) -> bool {
        self.copies > 1 || self.parities > 0
    }

    /// Data chunks and parities of a stripe.
    #[inline]
    pub(super) const fn roles(&self) -> u16 {
        self.data_chunks + self.parities
    }

    /// Data chunks and parities of a stripe, or copies.
    pub(super) const fn width(&self) -> u16 {
        if self.parities > 0 { self.roles() } else { self.copies }
    }

    /// Sectors that members read and write at least.
    pub(super) fn member_block(&self) -> u64 {
        if self.atom > 0 { self.atom } else { u64::from(self.logical_block) }
    }

    /// What bits, and sweeps over everything, are of: rows of the members for parity, else array sectors.
    pub(super) fn covered(&self) -> u64 {
        match self.parities {
            0 => self.geometry.capacity().0,
            _ => self.geometry.used(MemberIndex(0)).0,
        }
    }
}

/// Members and roles.
impl Setup {
    /// The number of a member's replacement.
    pub(super) const fn replacement(&self, member: MemberIndex) -> MemberIndex {
        MemberIndex(self.layout.members + member.0)
    }

    /// The number of the log device.
    pub(super) const fn journal(&self) -> MemberIndex {
        MemberIndex(2 * self.layout.members)
    }

    /// Whether a device is a member, and neither a replacement nor the log device.
    #[inline]
    pub(super) const fn is_member(&self, device: MemberIndex) -> bool {
        device.0 < self.layout.members
    }

    /// Whether the array stands for one of a kernel's md.
    pub(super) fn is_of_md(&self) -> bool {
        self.settings.resync_tick.is_some()
    }

    /// The members in order.
    pub(super) fn members(&self) -> impl Iterator<Item = MemberIndex> + use<> {
        (0..self.layout.members).map(MemberIndex)
    }

    /// The parity geometry; only called for levels that rotate parity over stripes, and raid4.
    pub(super) fn parity(&self) -> &Parity {
        match &self.geometry {
            Geometry::Parity(parity) => parity,
            _ => unreachable!("stripes belong to parity levels"),
        }
    }

    /// Where a stripe starts on every member.
    #[inline]
    pub(super) fn member_start(&self, stripe: u64) -> u64 {
        match &self.geometry {
            Geometry::Parity(parity) => parity.member_start(stripe).0,
            _ => 0,
        }
    }

    /// The member of role `role` in a stripe: data chunk k for k below the number of data chunks,
    /// then P, then Q.
    pub(super) fn role_member(&self, stripe: u64, role: u16) -> MemberIndex {
        match &self.geometry {
            Geometry::Parity(parity) if role < self.data_chunks => parity.data_member(stripe, role),
            Geometry::Parity(parity) if role == self.data_chunks => parity.p_member(stripe),
            Geometry::Parity(parity) => parity.q_member(stripe).unwrap_or_default(),
            // raid3: data members in order, P on the last.
            _ => MemberIndex(role),
        }
    }

    /// What a role is called in a job.
    pub(super) fn role_name(&self, stripe: u64, role: u16) -> Role {
        match (&self.geometry, role.checked_sub(self.data_chunks)) {
            (_, Some(1)) if self.parities > 1 => Role::Q,
            // Partial parity counts as P does.
            (_, Some(_)) => Role::P,
            (Geometry::Parity(parity), None) => Role::Data(parity.q_exponent(stripe, role)),
            (_, None) => Role::Data(0),
        }
    }

    /// The parities of a stripe that lie on none of the `missing` members, as a set.
    #[inline]
    pub(super) fn parities_without(&self, stripe: u64, missing: MemberSet) -> u8 {
        // Nearly always nothing is missing, and where a role lies takes a division.
        if missing.is_empty() {
            return ((1u32 << self.parities) - 1) as u8;
        }
        let there = (0..self.parities).filter(|parity| {
            !missing.contains(self.role_member(stripe, self.data_chunks + parity))
        });
        there.fold(0, |set, parity| set | 1 << parity)
    }

    /// Whether a member of a level with parity has data in some stripe.
    pub(super) fn holds_data(&self, member: MemberIndex) -> bool {
        let chunk = self.layout.chunk.0.max(1);
        // Rotations repeat after as many stripes as there are members at the latest.
        let mut places = (0..u64::from(self.layout.members)).map(|stripe| Sector(stripe * chunk));
        places.any(|at| matches!(self.geometry.holds(Place { member, at }), Holds::Data { .. }))
    }

    /// Whether some data can be had from no member when `missing` are out of service.
    pub(super) fn is_lost_without(&self, missing: MemberSet) -> bool {
        !missing.is_empty() && self.geometry.is_lost_without(&|member| missing.contains(member))
    }
}

/// Locks and buffers.
impl Setup {
    /// The lock owner that a resync window is; below are requests or plans.
    #[inline]
    pub(super) const fn window_owner(&self, window: u32) -> u32 {
        let below = if self.requests > self.plans { self.requests } else { self.plans };
        below + window
    }

    /// The scratch token of a plan.
    #[inline]
    pub(super) const fn scratch_token(&self, plan: u32) -> Token {
        Token(Scratch::FIRST + self.scratch_base + plan)
    }

    /// That of a resync window.
    pub(super) const fn window_token(&self, window: u32) -> Token {
        self.scratch_token(self.plans + window)
    }

    /// That of a place in the stripe cache.
    pub(super) const fn cache_token(&self, place: u32) -> Token {
        self.scratch_token(self.plans + self.windows + place)
    }

    /// Sectors of scratch that one window needs: a place for each role, and one for each parity made
    /// to compare with.
    pub(super) fn window_scratch(&self) -> u64 {
        if !self.is_redundant() {
            return 0;
        }
        u64::from(self.width() + self.parities) * self.window_rows
    }

    /// Whether a log of partial parity takes a header at a time, as md's.
    pub(super) const fn has_log_headers(&self) -> bool {
        self.settings.log_header.is_some()
    }

    /// Sectors of one place of the log of partial parity.
    pub(super) fn log_place(&self) -> u64 {
        u64::from(LOG_HEADER) + self.plan_rows
    }

    /// Sectors of log that a member or replacement has behind its data, or the log device in all. Where a log lies that
    /// takes a header at a time is for its driver to know.
    pub(super) fn log_sectors(&self, device: MemberIndex) -> Sectors {
        match self.settings.consistency {
            Consistency::PartialParity { .. } if self.has_log_headers() => Sectors::ZERO,
            Consistency::PartialParity { slots } if device.0 < 2 * self.layout.members => {
                Sectors(u64::from(slots) * self.log_place())
            }
            Consistency::Journal { sectors } if device == self.journal() => sectors,
            _ => Sectors::ZERO,
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::layout::Level;

    /// A layout over members of 8 MiB, as parts of an array are given it.
    pub(in crate::array) fn setup(layout: &Layout, consistency: Consistency) -> Setup {
        let sizes = vec![Sectors(1 << 14); usize::from(layout.members)];
        let geometry = Geometry::with_block(layout, &sizes, 1).expect("possible");
        let (data_chunks, parities, rows) = match &geometry {
            Geometry::Parity(parity) => (parity.data_chunks(), parity.parities(), parity.chunk().0),
            _ => (0, 0, 0),
        };
        Setup {
            capacity: geometry.capacity().0,
            copies: geometry.copies(),
            logical_block: 1,
            most_segments: 4,
            policy_watches: false,
            cuts_reads: false,
            rebuild_step: 1,
            copy_kind: CopyKind::Raid1,
            settings: Settings { consistency, ..Settings::default() },
            sizes,
            data_chunks,
            parities,
            atom: 0,
            plan_rows: rows.min(64),
            window_rows: 64,
            requests: 4,
            plans: 4,
            windows: 4,
            has_payload: true,
            nested: false,
            scratch_base: 0,
            #[cfg(debug_assertions)]
            bug: None,
            layout: layout.clone(),
            geometry,
        }
    }

    #[test]
    fn what_is_lost_depends_on_the_level() {
        let set = |members: &[u16]| {
            let mut set = MemberSet::NONE;
            members.iter().for_each(|member| set.insert(MemberIndex(*member)));
            set
        };
        let lost = |level, members, missing: &[u16]| {
            let mut layout = Layout::new(level, members);
            if !matches!(level, Level::Raid1) {
                layout = layout.with_chunk(Sectors(128));
            }
            setup(&layout, Consistency::None).is_lost_without(set(missing))
        };
        assert!(!lost(Level::Raid0, 4, &[]) && lost(Level::Raid0, 4, &[2]));
        assert!(!lost(Level::Raid1, 3, &[0, 2]) && lost(Level::Raid1, 3, &[0, 1, 2]));
        assert!(!lost(Level::Raid5, 4, &[3]) && lost(Level::Raid5, 4, &[3, 0]));
        assert!(!lost(Level::Raid6, 5, &[3, 1]) && lost(Level::Raid6, 5, &[3, 1, 0]));
        assert!(!lost(Level::Raid10, 4, &[0, 2]) && lost(Level::Raid10, 4, &[2, 3]));
    }

    #[test]
    fn each_role_of_a_stripe_is_on_a_member_of_its_own() {
        let layout = Layout::new(Level::Raid6, 6).with_chunk(Sectors(128));
        let setup = setup(&layout, Consistency::None);
        assert_eq!((setup.roles(), setup.width()), (6, 6));
        for stripe in 0..12 {
            let mut seen = MemberSet::NONE;
            (0..setup.roles()).for_each(|role| seen.insert(setup.role_member(stripe, role)));
            assert_eq!(seen.count(), 6, "stripe {stripe}");
            assert_eq!(setup.role_name(stripe, 4), Role::P);
            assert_eq!(setup.role_name(stripe, 5), Role::Q);
            let mut missing = MemberSet::NONE;
            missing.insert(setup.role_member(stripe, 4));
            assert_eq!(setup.parities_without(stripe, missing), 2, "Q is left");
        }
    }

    #[test]
    fn buffers_and_lock_owners_do_not_overlap() {
        let layout = Layout::new(Level::Raid5, 4).with_chunk(Sectors(128));
        let setup = setup(&layout, Consistency::None);
        assert_eq!(setup.scratch_token(setup.plans), setup.window_token(0));
        assert_eq!(setup.window_token(setup.windows), setup.cache_token(0));
        assert_eq!(setup.window_owner(0), setup.plans.max(setup.requests));
    }

    #[test]
    fn sizes_of_what_is_set_aside() {
        let parity = |level, members| {
            setup(&Layout::new(level, members).with_chunk(Sectors(128)), Consistency::None)
        };
        let (raid5, raid6) = (parity(Level::Raid5, 4), parity(Level::Raid6, 6));
        let (raid0, raid1) =
            (parity(Level::Raid0, 4), setup(&Layout::new(Level::Raid1, 3), Consistency::None));
        let scratch = [&raid5, &raid6, &raid0, &raid1].map(|setup| setup.window_scratch() / 64);
        assert_eq!(scratch, [5, 8, 0, 3]);
        assert_eq!(
            [&raid5, &raid6, &raid0, &raid1].map(Setup::is_redundant),
            [true, true, false, true]
        );
        assert_eq!(
            (raid5.covered(), raid1.covered(), raid0.covered()),
            (1 << 14, 1 << 14, 4 << 14)
        );
        assert_eq!(raid5.log_place(), 64 + u64::from(LOG_HEADER));
        assert_eq!(
            (raid5.replacement(MemberIndex(1)), raid5.journal()),
            (MemberIndex(5), MemberIndex(8))
        );
        assert_eq!([3, 4].map(|member| raid5.is_member(MemberIndex(member))), [true, false]);
        let mut logged = raid5;
        logged.settings.consistency = Consistency::PartialParity { slots: 3 };
        let sectors =
            |setup: &Setup| [0, 7, 8].map(|device| setup.log_sectors(MemberIndex(device)).0);
        let place = logged.log_place();
        assert_eq!(sectors(&logged), [3 * place, 3 * place, 0]);
        logged.settings.consistency = Consistency::Journal { sectors: Sectors(100) };
        assert_eq!(sectors(&logged), [0, 0, 100]);
        assert_eq!(logged.member_block(), 1);
        logged.logical_block = 8;
        assert_eq!(logged.member_block(), 8);
        logged.atom = 2;
        assert_eq!(logged.member_block(), 2);
        logged.requests = 9;
        assert_eq!(logged.window_owner(1), 10);
        logged.plans = 12;
        assert_eq!(logged.window_owner(1), 13);
        assert_eq!(logged.role_name(0, 4), Role::P, "partial parity, behind P");
    }

    #[test]
    fn parities_are_counted_and_data_found_on_members() {
        let layout = Layout::new(Level::Raid6, 6).with_chunk(Sectors(128));
        let six = setup(&layout, Consistency::None);
        let mut both = MemberSet::NONE;
        assert_eq!(six.parities_without(1, both), 3);
        both.insert(six.role_member(1, 5));
        assert_eq!(six.parities_without(1, both), 1);
        both.insert(six.role_member(1, 4));
        assert_eq!(six.parities_without(1, both), 0);
        let holds = |level| {
            let setup = setup(&Layout::new(level, 4).with_chunk(Sectors(128)), Consistency::None);
            [0, 1, 2, 3].map(|member| setup.holds_data(MemberIndex(member)))
        };
        assert_eq!(holds(Level::Raid4), [true, true, true, false]);
        assert_eq!(holds(Level::Raid5), [true; 4]);
    }
}
