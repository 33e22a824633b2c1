//! Who holds what in a stripe, as tables over the stripes after which it repeats.
//!
//! The rule of a level is carried out once per stripe of its period, at set-up; what remains for
//! each request is one remainder and one look-up, the same for all twenty rules.

use std::sync::Arc;

/// Who holds what in one stripe.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct StripeMap {
    pub p: u16,
    pub q: Option<u16>,
    /// The members of the data chunks, in the order of the array.
    pub data: Vec<u16>,
}

/// What a member holds in a stripe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    Data(u16),
    P,
    Q,
}

/// Codes of P and Q among the numbers of data chunks.
const P: u16 = u16::MAX;
const Q: u16 = u16::MAX - 1;

/// The maps of all stripes of a period. Shared by clones of the geometry, as they never change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct StripeTable {
    /// Members a stripe.
    width: usize,
    /// Per stripe: the members of data chunks, then that of P, then that of Q.
    members: Arc<[u16]>,
    /// Per stripe: what member 0, 1, ... holds: the number of a data chunk, [`P`] or [`Q`].
    roles: Arc<[u16]>,
    /// Per stripe and data chunk: the power of g; empty without Q.
    exponents: Arc<[u8]>,
}

impl StripeTable {
    /// The maps of a period in their order and, with Q, the powers of g of each.
    pub(super) fn new(maps: &[StripeMap], exponents: &[Vec<u8>]) -> Self {
        let width = maps[0].data.len() + 1 + usize::from(maps[0].q.is_some());
        let mut members = Vec::with_capacity(maps.len() * width);
        let mut roles = vec![0; maps.len() * width];
        for (map, roles) in maps.iter().zip(roles.chunks_exact_mut(width)) {
            members.extend(map.data.iter().copied().chain([map.p]).chain(map.q));
            for (chunk, member) in map.data.iter().enumerate() {
                roles[usize::from(*member)] = chunk as u16;
            }
            roles[usize::from(map.p)] = P;
            if let Some(q) = map.q {
                roles[usize::from(q)] = Q;
            }
        }
        Self {
            width,
            members: members.into(),
            roles: roles.into(),
            exponents: exponents.concat().into(),
        }
    }

    /// The member of data chunk `chunk`, or with `chunk` = data chunks that of P, and one more that
    /// of Q. `stripe` is within the period.
    #[inline]
    pub(super) fn member(&self, stripe: u64, chunk: usize) -> u16 {
        self.members[stripe as usize * self.width + chunk]
    }

    #[inline]
    pub(super) fn role(&self, stripe: u64, member: usize) -> Role {
        match self.roles[stripe as usize * self.width + member] {
            P => Role::P,
            Q => Role::Q,
            chunk => Role::Data(chunk),
        }
    }

    /// The power of g of a data chunk; 0 without Q.
    #[inline]
    pub(super) fn exponent(&self, stripe: u64, chunk: usize) -> u8 {
        // Only levels with Q have exponents: two members of a stripe are not data.
        let at = stripe as usize * (self.width - 2) + chunk;
        self.exponents.get(at).copied().unwrap_or(0)
    }
}
