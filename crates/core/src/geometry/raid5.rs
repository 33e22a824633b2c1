//! raid5: d = n-1 data chunks and one P a stripe.
//!
//! md raid5.c, algorithms 0 to 5. With r = s mod n:
//!
//! | number, name | P | data chunk k |
//! |---|---|---|
//! | 0 left-asymmetric | n-1-r | k, one further from P on |
//! | 1 right-asymmetric | r | k, one further from P on |
//! | 2 left-symmetric | n-1-r | (P + 1 + k) mod n |
//! | 3 right-symmetric | r | (P + 1 + k) mod n |
//! | 4 parity-first | 0 | k + 1 |
//! | 5 parity-last | n-1 | k |
//!
//! The symmetric ones read runs of n chunks from n members; left-symmetric, which always goes on
//! with the next member, is the default.

use super::stripe::StripeMap;
use crate::layout::Rotation;

/// How many stripes there are before the places repeat.
pub(super) fn period(members: u16, rotation: Rotation) -> u16 {
    match rotation {
        Rotation::ParityFirst | Rotation::ParityLast => 1,
        _ => members,
    }
}

/// Stripe `stripe` of a period. `rotation` is one of raid5's.
pub(super) fn map(members: u16, rotation: Rotation, stripe: u16) -> StripeMap {
    let (n, r) = (members, stripe % members);
    let p = match rotation {
        Rotation::LeftAsymmetric | Rotation::LeftSymmetric => n - 1 - r,
        Rotation::RightAsymmetric | Rotation::RightSymmetric => r,
        Rotation::ParityFirst => 0,
        Rotation::ParityLast => n - 1,
        _ => unreachable!("Layout::check lets no other rotation through"),
    };
    let symmetric = matches!(rotation, Rotation::LeftSymmetric | Rotation::RightSymmetric);
    let data = |k| if symmetric { (p + 1 + k) % n } else { k + u16::from(k >= p) };
    StripeMap { p, q: None, data: (0..n - 1).map(data).collect() }
}
