//! Sets of the roles of a stripe: data chunks, P, Q; or of copies, or of parities alone.

use crate::contract::MemberBits;

/// A set of roles; as many as members.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Roles(u128);

impl Roles {
    /// No role.
    pub(super) const NONE: Self = Self(0);

    /// One role; none, if there cannot be as many.
    pub(super) const fn one(role: u16) -> Self {
        match 1u128.checked_shl(role as u32) {
            Some(role) => Self(role),
            None => Self::NONE,
        }
    }

    /// Roles `first..end`.
    pub(super) const fn range(first: u16, end: u16) -> Self {
        Self::below(end).without(Self::below(first))
    }

    /// Roles up to this one.
    const fn below(end: u16) -> Self {
        match u128::MAX.checked_shl(end as u32) {
            Some(rest) => Self(!rest),
            None => Self(u128::MAX),
        }
    }

    pub(super) const fn contains(self, role: u16) -> bool {
        // Of the half that it is in: shifting both takes three times as long.
        let half = if role < 64 { self.0 as u64 } else { (self.0 >> 64) as u64 };
        role < 128 && half >> (role % 64) & 1 == 1
    }

    pub(super) const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Whether no role is in both.
    pub(super) const fn is_apart(self, other: Self) -> bool {
        self.0 & other.0 == 0
    }

    pub(super) const fn is_within(self, other: Self) -> bool {
        self.without(other).is_empty()
    }

    pub(super) const fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    pub(super) const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    pub(super) const fn count(self) -> u16 {
        self.0.count_ones() as u16
    }

    /// The roles in order.
    pub(super) fn iter(self) -> impl Iterator<Item = u16> {
        let mut left = self;
        std::iter::from_fn(move || {
            let role = left.0.trailing_zeros() as u16;
            let one = Self::one(role);
            left = left.without(one);
            (!one.is_empty()).then_some(role)
        })
    }

    /// As records have it.
    pub(super) const fn words(self) -> MemberBits {
        [self.0 as u64, (self.0 >> 64) as u64]
    }

    pub(super) fn from_words(words: MemberBits) -> Self {
        let role = |bit: u16| (usize::from(bit / 64), bit % 64);
        let has = |bit: &u16| words[role(*bit).0] >> role(*bit).1 & 1 == 1;
        (0..128).filter(has).collect()
    }
}

impl FromIterator<u16> for Roles {
    fn from_iter<I: IntoIterator<Item = u16>>(roles: I) -> Self {
        roles.into_iter().fold(Self::NONE, |set, role| set.union(Self::one(role)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_has_what_was_put_in() {
        let set: Roles = [0, 3, 3, 127].into_iter().collect();
        assert_eq!(set.iter().collect::<Vec<_>>(), [0, 3, 127]);
        assert_eq!((set.count(), set.words()), (3, [0b1001, 1 << 63]));
        assert_eq!(Roles::from_words(set.words()), set);
        assert!(set.contains(3) && !set.contains(4) && !set.is_empty());
        assert!(Roles::NONE.is_empty() && Roles::NONE.is_within(set));
        assert_eq!(set.union(Roles::range(2, 4)), [0, 2, 3, 127].into_iter().collect());
        assert_eq!(set.without(Roles::range(2, 4)), [0, 127].into_iter().collect());
        assert!(set.is_apart(Roles::range(1, 3)) && !set.is_apart(Roles::range(1, 4)));
        assert!(Roles::one(3).is_within(set) && !set.is_within(Roles::one(3)));
    }

    #[test]
    fn ranges_are_the_roles_between() {
        assert!(Roles::one(128).is_empty() && !Roles::range(0, 128).contains(128));
        for (first, end) in [(0, 0), (0, 1), (2, 5), (127, 128), (0, 128), (64, 64)] {
            assert_eq!(Roles::range(first, end), (first..end).collect(), "{first}..{end}");
        }
    }
}
