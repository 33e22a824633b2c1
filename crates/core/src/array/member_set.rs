//! Sets of members.

use crate::contract::MemberBits;
use crate::units::MemberIndex;

/// A set of members.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
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

    pub(super) fn iter(self) -> impl Iterator<Item = MemberIndex> {
        let mut left = self.0;
        std::iter::from_fn(move || {
            let member = MemberIndex(left.trailing_zeros() as u16);
            left &= left.checked_sub(1)?;
            Some(member)
        })
    }
}
