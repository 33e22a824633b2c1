//! What the array knows of its members, and a member's failure.

use super::Array;
use super::bad_blocks::BadBlocks;
use crate::bugs::Bug;
use crate::contract::{Event, MemberBits, Output};
use crate::geometry::Geometry;
use crate::units::{MemberIndex, Sector};

/// A set of members.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct MemberSet(u128);

impl MemberSet {
    /// No member.
    pub(super) const NONE: Self = Self(0);
    /// All that there can be.
    pub(super) const ALL: Self = Self(u128::MAX);

    #[inline]
    pub(super) const fn contains(self, member: MemberIndex) -> bool {
        // Nearly always nothing is wrong, and shifting 128 bits takes a while.
        if self.0 == 0 {
            return false;
        }
        self.holds(member)
    }

    /// Out of line: where nothing is wrong nobody comes here.
    #[cold]
    #[inline(never)]
    const fn holds(self, member: MemberIndex) -> bool {
        // Replacements and the log device of many members have larger numbers than a set holds.
        member.0 < 128 && self.0 >> member.0 & 1 == 1
    }

    pub(super) const fn insert(&mut self, member: MemberIndex) {
        self.0 |= 1 << member.0;
    }

    #[inline]
    pub(super) const fn is_empty(self) -> bool {
        self.0 == 0
    }

    pub(super) const fn count(self) -> u16 {
        self.0.count_ones() as u16
    }

    #[inline]
    pub(super) const fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    pub(super) const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    pub(super) const fn is_within(self, other: Self) -> bool {
        self.0 & !other.0 == 0
    }

    pub(super) const fn remove(&mut self, member: MemberIndex) {
        self.0 &= !(1 << member.0);
    }

    /// The same for a device that may be none of the members.
    pub(super) const fn remove_if(&mut self, device: MemberIndex) {
        if device.0 < 128 {
            self.remove(device);
        }
    }

    /// As records have it.
    pub(super) const fn words(self) -> MemberBits {
        [self.0 as u64, (self.0 >> 64) as u64]
    }

    pub(super) const fn from_words(words: MemberBits) -> Self {
        Self(words[0] as u128 | (words[1] as u128) << 64)
    }

    pub(super) const fn bits(self) -> u128 {
        self.0
    }

    pub(super) fn iter(self) -> impl Iterator<Item = MemberIndex> {
        (0..128).map(MemberIndex).filter(move |member| self.contains(*member))
    }
}

/// A member's state.
#[derive(Clone, Debug)]
pub(super) struct Member {
    /// I/Os in flight.
    pub(super) pending: u32,
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
}

impl Member {
    pub(super) fn new(most_bad_blocks: u16) -> Self {
        Self {
            pending: 0,
            head: Sector(0),
            good_to: u64::MAX,
            kept_to: u64::MAX,
            named_to: 0,
            hole_from: u64::MAX,
            corrected: 0,
            bad: BadBlocks::new(most_bad_blocks),
        }
    }

    /// Whether something of a range cannot be read; `ahead` as if all were rebuilt.
    fn lacks(&self, at: u64, len: u64, ahead: bool) -> bool {
        at + len > self.good_to && !ahead || self.bad.first_in(at, at + len).is_some()
    }
}

impl Array {
    /// Takes a member out of service; what is in flight on it goes on to its end.
    pub(super) fn fail_member(&mut self, member: MemberIndex) {
        if self.failed.contains(member) {
            return;
        }
        self.failed.insert(member);
        self.rebuilding.remove(member);
        self.partial.remove(member);
        self.members[member.at()].hole_from = u64::MAX;
        self.outputs.push_back(Output::Event(Event::MemberFailed(member)));
        let event = if self.is_lost(self.missing()) {
            self.stopped = !self.has_bug(Bug::WriteAfterFailure);
            // Plans that wait for the log end at the end of this input.
            self.timers.changed = true;
            Event::ArrayFailed
        } else {
            Event::Degraded { missing: self.missing().count() }
        };
        self.outputs.push_back(Output::Event(event));
        self.cache.clear();
        self.background_lost(member);
        self.end_waiting();
        self.state_changed();
    }

    /// Whether new writes go to a member.
    #[inline(always)]
    pub(super) fn is_written(&self, member: MemberIndex) -> bool {
        let misses = self.has_bug(Bug::RebuildMissesWrites) && self.rebuilding.contains(member);
        !self.failed.contains(member) && !misses
    }

    /// Whether new writes to a member go to its replacement too.
    #[inline(always)]
    pub(super) fn is_replacing(&self, member: MemberIndex) -> bool {
        self.replacing.contains(member) && !self.has_bug(Bug::ReplaceMissesWrites)
    }

    /// Takes a member, a replacement or the journal out of service.
    pub(super) fn fail_device(&mut self, device: MemberIndex) {
        self.end_waiting();
        let members = self.layout.members;
        if device.0 < members {
            self.fail_member(device);
        } else if device.0 < 2 * members {
            let of = MemberIndex(device.0 - members);
            if self.replacing.contains(of) {
                self.replacing.remove(of);
                self.outputs.push_back(Output::Event(Event::ReplacementFailed(of)));
                self.background_lost(device);
            }
        } else {
            self.journal_failed();
        }
    }

    /// The number of a member's replacement.
    pub const fn replacement(&self, member: MemberIndex) -> MemberIndex {
        MemberIndex(self.layout.members + member.0)
    }

    /// The number of the log device.
    pub const fn journal(&self) -> MemberIndex {
        MemberIndex(2 * self.layout.members)
    }

    /// Members whose redundancy is not there in full: out of service, or being rebuilt.
    #[inline]
    pub(super) fn missing(&self) -> MemberSet {
        self.failed.union(self.rebuilding)
    }

    /// Whether a range of a member in service cannot be read, since it is not rebuilt or bad.
    #[inline]
    pub(super) fn lacks(&self, member: MemberIndex, at: Sector, len: u64) -> bool {
        self.partial.contains(member)
            && self.members[member.at()].lacks(at.0, len, self.has_bug(Bug::RebuildReadAhead))
    }

    /// Members that cannot be read in `at..at + len` of theirs, besides `known`.
    pub(super) fn unreadable_at(&self, mut known: MemberSet, at: u64, len: u64) -> MemberSet {
        if !self.partial.is_empty() {
            for member in self.partial.iter() {
                let ahead = self.has_bug(Bug::RebuildReadAhead);
                if self.members[member.at()].lacks(at, len, ahead) {
                    known.insert(member);
                }
            }
        }
        known
    }

    /// Brings the set of members that are readable in part up to date.
    pub(super) fn note_partial(&mut self, member: MemberIndex) {
        let known = &self.members[member.at()];
        if known.good_to < u64::MAX || !known.bad.is_empty() {
            self.partial.insert(member);
        } else {
            self.partial.remove(member);
        }
    }

    /// Whether some data can be had from no member when `missing` are out of service.
    pub(super) fn is_lost(&self, missing: MemberSet) -> bool {
        let members = self.layout.members;
        match &self.geometry {
            // Of nested levels each is an array of its own: none is asked here.
            Geometry::Linear(_) | Geometry::Raid0(_) | Geometry::Nested(_) => !missing.is_empty(),
            Geometry::Mirror(_) => missing.count() == members,
            Geometry::Parity(_) | Geometry::Raid3(_) => missing.count() > self.parities,
            Geometry::Raid10(_) => {
                // The pattern of copies repeats after as many chunks as there are members, or
                // members times far copies.
                let chunk = self.layout.chunk.0;
                let copies = self.copies;
                let period = u64::from(members) * u64::from(copies);
                let chunks = (self.geometry.capacity().0 / chunk).min(period);
                (0..chunks).any(|index| {
                    let at = Sector(index * chunk);
                    (0..copies).all(|c| missing.contains(self.geometry.place(at, c).member))
                })
            }
        }
    }

    /// Whether `member` is the last that has some of the data.
    pub(super) fn is_last_copy(&self, member: MemberIndex) -> bool {
        let mut missing = self.missing();
        missing.insert(member);
        self.is_lost(missing)
    }
}
