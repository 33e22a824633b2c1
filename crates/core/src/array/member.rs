//! What the array knows of its members.

use std::ops::{Index, IndexMut};

use super::bad_blocks::BadBlocks;
use super::member_set::MemberSet;
use super::setup::Setup;
use crate::bugs::Bug;
use crate::units::{MemberIndex, Sector};

/// A member's state.
#[derive(Clone, Debug, Hash)]
pub(super) struct Member {
    /// I/Os in flight.
    pub(super) pending: u32,
    /// Those of them that background work has sent.
    pub(super) background: u32,
    /// Where the last planned I/O ends.
    pub(super) head: Sector,
    /// Below this sector what it holds is good; beyond it is being rebuilt.
    pub(super) good_to: u64,
    /// The same, as far as it is durable.
    pub(super) kept_to: u64,
    /// In a rebuild: below this only what the bitmap names is done.
    pub(super) named_to: u64,
    /// From here on it has listed blocks that hold what they should not: no drive will say so.
    pub(super) hole_from: u64,
    /// Errors that were corrected by writing anew.
    pub(super) corrected: u32,
    /// What cannot be read.
    pub(super) bad: BadBlocks,
    /// Of that, what was written since and may not be durable: its list goes on naming it.
    pub(super) mended: BadBlocks,
    /// Its metadata list what is bad, as it has blocks that hold what they should not: no drive will say so.
    pub(super) is_listed: bool,
}

/// Sectors that an entry of a list of bad blocks names at most.
const MOST_LISTED: u64 = 512;

impl Member {
    pub(super) fn new(most_bad_blocks: u16) -> Self {
        Self {
            pending: 0,
            background: 0,
            head: Sector(0),
            good_to: u64::MAX,
            kept_to: u64::MAX,
            named_to: 0,
            hole_from: u64::MAX,
            corrected: 0,
            bad: BadBlocks::new(most_bad_blocks),
            mended: BadBlocks::new(most_bad_blocks),
            is_listed: false,
        }
    }

    /// What its list of bad blocks names. What is mended goes on being named, and neighbours are one range: so a mend
    /// never takes room in the list.
    pub(super) fn listed(&self) -> impl Iterator<Item = (u64, u64)> {
        self.bad.with(&self.mended)
    }

    /// Entries that its list of bad blocks has.
    pub(super) fn entries(&self) -> u64 {
        self.listed().map(|(from, to)| (to - from).div_ceil(MOST_LISTED)).sum()
    }

    /// Forgets what was bad, as of a drive that is fresh.
    fn forget_bad(&mut self) {
        self.bad.clear();
        self.mended.clear();
        self.is_listed = false;
    }

    /// Whether something of a range cannot be read; `ahead` as if all were rebuilt, `step` as [`Setup::rebuild_step`]
    /// has it.
    fn lacks(&self, at: u64, len: u64, ahead: bool, step: u64) -> bool {
        // What is good to `u64::MAX` stays good beyond all sectors there are.
        at + len > self.good_to / step * step && !ahead || self.bad.first_in(at, at + len).is_some()
    }
}

/// The members, then a replacement for each, then the log device, and who of them is in which state.
#[derive(Clone, Debug, Hash)]
pub(super) struct Members {
    all: Vec<Member>,
    /// Out of service: no I/O goes there.
    pub(super) failed: MemberSet,
    /// Written, and readable below how far they are rebuilt; not counted as redundancy.
    pub(super) rebuilding: MemberSet,
    /// Members with places that cannot be read: all that are being rebuilt or have bad blocks.
    pub(super) partial: MemberSet,
    /// Members with a replacement, which is written too.
    pub(super) replacing: MemberSet,
    /// Nothing is written any more: too much is lost, or the administrator said so.
    pub(super) stopped: bool,
}

impl Index<MemberIndex> for Members {
    type Output = Member;
    #[inline]
    fn index(&self, device: MemberIndex) -> &Member {
        &self.all[device.at()]
    }
}

impl IndexMut<MemberIndex> for Members {
    #[inline]
    fn index_mut(&mut self, device: MemberIndex) -> &mut Member {
        &mut self.all[device.at()]
    }
}

impl Members {
    /// As many devices, all in service.
    pub(super) fn new(devices: usize, most_bad_blocks: u16) -> Self {
        Self {
            all: vec![Member::new(most_bad_blocks); devices],
            failed: MemberSet::NONE,
            rebuilding: MemberSet::NONE,
            partial: MemberSet::NONE,
            replacing: MemberSet::NONE,
            stopped: false,
        }
    }

    pub(super) fn get(&self, device: MemberIndex) -> Option<&Member> {
        self.all.get(device.at())
    }

    /// Takes a member out of service.
    pub(super) fn fail(&mut self, member: MemberIndex) {
        self.failed.insert(member);
        self.rebuilding.remove(member);
        self.partial.remove(member);
        self[member].hole_from = u64::MAX;
    }

    /// A member out of service is to be rebuilt: all of it, or what the bitmap names and all from a sector on.
    pub(super) fn begin_rebuild(&mut self, member: MemberIndex, named_to: Option<Sector>) {
        self.failed.remove(member);
        self.rebuilding.insert(member);
        let known = &mut self[member];
        (known.good_to, known.kept_to, known.hole_from) = (0, 0, u64::MAX);
        known.named_to = named_to.map_or(0, |sector| sector.0);
        if named_to.is_none() {
            known.forget_bad();
            known.corrected = 0;
        }
        self.note_partial(member);
    }

    /// A member is rebuilt, durably.
    pub(super) fn restore(&mut self, member: MemberIndex) {
        self.rebuilding.remove(member);
        let known = &mut self[member];
        (known.good_to, known.named_to) = (u64::MAX, 0);
        known.kept_to = known.hole_from;
        self.note_partial(member);
    }

    /// A drive, `other`, is to take a member's place. It holds what the member does below `kept_to`, but, below
    /// `named_to`, for what the bitmap names.
    pub(super) fn begin_replace(
        &mut self,
        member: MemberIndex,
        other: MemberIndex,
        (kept_to, named_to): (u64, u64),
    ) {
        self.replacing.insert(member);
        let known = &mut self[other];
        known.forget_bad();
        (known.kept_to, known.named_to, known.hole_from) = (kept_to, named_to, u64::MAX);
    }

    /// Whether a write may mend something: a replacement, too, lists what its member lost.
    #[inline(always)]
    pub(super) fn may_be_mended(&self) -> bool {
        !self.partial.is_empty() || !self.replacing.is_empty()
    }

    /// This member, if it has a replacement.
    pub(super) fn taking_over(&self, member: Option<MemberIndex>) -> MemberSet {
        let mut set = MemberSet::NONE;
        member
            .into_iter()
            .filter(|one| self.replacing.contains(*one))
            .for_each(|one| set.insert(one));
        set
    }

    /// Whether a replacement goes by the bitmap, which must go on naming what it lacks.
    pub(super) fn is_replacing_by_bitmap(&self, setup: &Setup) -> bool {
        self.replacing.iter().any(|member| self[setup.replacement(member)].named_to > 0)
    }

    /// Below this the replacements of all members that have one are good, durably.
    pub(super) fn replaced_to(&self, setup: &Setup) -> u64 {
        let kept = self.replacing.iter().map(|member| self[setup.replacement(member)].kept_to);
        kept.min().unwrap_or(0)
    }

    /// The replacement, `other`, takes over.
    pub(super) fn take_over(&mut self, member: MemberIndex, other: MemberIndex) {
        self.replacing.remove(member);
        self.all.swap(member.at(), other.at());
        self[other].forget_bad();
        self[other].hole_from = u64::MAX;
        let known = &mut self[member];
        (known.corrected, known.good_to, known.kept_to) = (0, u64::MAX, known.hole_from);
        known.named_to = 0;
        self.note_partial(member);
    }

    /// What these members lost in a rebuild was written since, durably.
    pub(super) fn fill(&mut self, members: MemberSet) {
        for member in members.iter() {
            let rebuilt = self.rebuilding.contains(member);
            let known = &mut self[member];
            if !known.bad.is_empty() {
                continue;
            }
            known.mended.clear();
            known.is_listed = false;
            known.hole_from = u64::MAX;
            // How far a rebuild is, itself records.
            if !rebuilt {
                known.kept_to = u64::MAX;
            }
        }
    }

    /// Whether a member, replacement or log device gets I/O; `log`: the log device is used.
    pub(super) fn is_served(&self, setup: &Setup, device: MemberIndex, log: bool) -> bool {
        match device.0.checked_sub(setup.layout.members) {
            _ if device == setup.journal() => log,
            None => !self.failed.contains(device),
            Some(of) => self.replacing.contains(MemberIndex(of)),
        }
    }

    /// Whether new writes go to a member.
    #[inline(always)]
    pub(super) fn is_written(&self, setup: &Setup, member: MemberIndex) -> bool {
        let misses = setup.has_bug(Bug::RebuildMissesWrites) && self.rebuilding.contains(member);
        !self.failed.contains(member) && !misses
    }

    /// Whether new writes to a member go to its replacement too.
    #[inline(always)]
    pub(super) fn is_replacing(&self, setup: &Setup, member: MemberIndex) -> bool {
        self.replacing.contains(member) && !setup.has_bug(Bug::ReplaceMissesWrites)
    }

    /// Members whose redundancy is not there in full: out of service, or being rebuilt.
    #[inline]
    pub(super) fn missing(&self) -> MemberSet {
        self.failed.union(self.rebuilding)
    }

    /// Whether more is lost than the level survives.
    pub(super) fn is_lost(&self, setup: &Setup) -> bool {
        setup.is_lost_without(self.missing())
    }

    /// The same of an array that does not write any more, as it must not then.
    pub(super) fn has_lost(&self, setup: &Setup) -> bool {
        self.stopped && self.is_lost(setup)
    }

    /// Whether `member` is the last that has some of the data.
    pub(super) fn is_last_copy(&self, setup: &Setup, member: MemberIndex) -> bool {
        let mut missing = self.missing();
        missing.insert(member);
        setup.is_lost_without(missing)
    }

    /// Whether a range of a member in service cannot be read, since it is not rebuilt or bad.
    #[inline]
    pub(super) fn lacks(&self, setup: &Setup, member: MemberIndex, at: Sector, len: u64) -> bool {
        self.partial.contains(member)
            && self[member].lacks(
                at.0,
                len,
                setup.has_bug(Bug::RebuildReadAhead),
                setup.rebuild_step,
            )
    }

    /// Members that cannot be read in `at..at + len` of theirs, besides `known`.
    pub(super) fn unreadable_at(
        &self,
        setup: &Setup,
        mut known: MemberSet,
        at: u64,
        len: u64,
    ) -> MemberSet {
        if !self.partial.is_empty() {
            let ahead = setup.has_bug(Bug::RebuildReadAhead);
            for member in self.partial.iter() {
                if self[member].lacks(at, len, ahead, setup.rebuild_step) {
                    known.insert(member);
                }
            }
        }
        known
    }

    /// Brings the set of members that are readable in part up to date.
    pub(super) fn note_partial(&mut self, member: MemberIndex) {
        let known = &self[member];
        if known.good_to < u64::MAX || !known.bad.is_empty() {
            self.partial.insert(member);
        } else {
            self.partial.remove(member);
        }
    }

    /// Members that are rebuilt when the array is assembled again: those being rebuilt, and those
    /// with blocks that were lost in a rebuild. The list of these is kept in memory only, and what
    /// they hold would be taken for good.
    pub(super) fn rebuilt_again(&self, setup: &Setup) -> MemberSet {
        let mut set = self.rebuilding;
        // Also who has no such block any more: until that is durable, a crash takes it back.
        for member in setup.members() {
            if self[member].hole_from < u64::MAX {
                set.insert(member);
            }
        }
        set
    }

    /// Below this all members being rebuilt are good, durably.
    pub(super) fn rebuilt_to(&self, setup: &Setup) -> u64 {
        let kept = self.rebuilt_again(setup).iter().map(|member| self[member].kept_to);
        kept.min().unwrap_or(0)
    }

    /// Whether a rebuild of this member goes by the bitmap everywhere.
    pub(super) fn is_rebuilt_by_bitmap(&self, member: MemberIndex) -> bool {
        self[member].named_to == u64::MAX
    }

    /// Where the member's next I/O would start if it went on from what is planned, and how many are in flight.
    #[inline]
    pub(super) fn load(&self, member: MemberIndex) -> (Sector, u32) {
        let known = &self[member];
        (known.head, known.pending)
    }
}
