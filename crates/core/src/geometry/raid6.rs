//! raid6: d = n-2 data chunks, one P and one Q a stripe.
//!
//! md raid5.c, level 6. With r = s mod n:
//!
//! | number, name | P | Q | data chunk k |
//! |---|---|---|---|
//! | 0 left-asymmetric | n-1-r | (P + 1) mod n | members in order without P and Q |
//! | 1 right-asymmetric | r | (P + 1) mod n | members in order without P and Q |
//! | 2 left-symmetric | n-1-r | (P + 1) mod n | (P + 2 + k) mod n |
//! | 3 right-symmetric | r | (P + 1) mod n | (P + 2 + k) mod n |
//! | 4 parity-first | 0 | 1 | k + 2 |
//! | 5 parity-last | n-2 | n-1 | k |
//! | 8 ddf-zero-restart | r | (P + 1) mod n | members in order without P and Q |
//! | 9 ddf-N-restart | n-1-((s+1) mod n) | (P + 1) mod n | members in order without P and Q |
//! | 10 ddf-N-continue | n-1-r | (P + n-1) mod n | (P + 1 + k) mod n |
//! | 16 to 19, the -6 | as raid5 0 to 3 over the first n-1 members, r = s mod (n-1) | n-1 | as raid5 |
//! | 20 parity-first-6 | 0 | n-1 | k + 1 |
//!
//! Q = the sum of g^j x D in GF(2^8) modulo 0x11d, g = 2. **j is not the number of the data chunk**:
//! it counts data members in the order of the members from the one behind Q on (from member 0 where
//! Q is last). Both agree in the symmetric layouts of md, which is why wrong readers pass with the
//! default. In the DDF layouts (8 to 10) j is the number of the member itself, P and Q leaving holes.

use super::raid5;
use super::stripe::StripeMap;
use crate::layout::Rotation;

/// How many stripes there are before the places repeat.
pub(super) fn period(members: u16, rotation: Rotation) -> u16 {
    match five_of(rotation) {
        Some(five) => raid5::period(members - 1, five),
        None => members,
    }
}

/// The raid5 rotation that a "-6" one follows on all members but the last.
fn five_of(rotation: Rotation) -> Option<Rotation> {
    Some(match rotation {
        Rotation::LeftAsymmetric6 => Rotation::LeftAsymmetric,
        Rotation::RightAsymmetric6 => Rotation::RightAsymmetric,
        Rotation::LeftSymmetric6 => Rotation::LeftSymmetric,
        Rotation::RightSymmetric6 => Rotation::RightSymmetric,
        Rotation::ParityFirst6 => Rotation::ParityFirst,
        _ => return None,
    })
}

/// Stripe `stripe` of a period.
pub(super) fn map(members: u16, rotation: Rotation, stripe: u16) -> StripeMap {
    let n = members;
    if let Some(five) = five_of(rotation) {
        return StripeMap { q: Some(n - 1), ..raid5::map(n - 1, five, stripe) };
    }
    let r = stripe % n;
    let p = match rotation {
        Rotation::RightAsymmetric | Rotation::RightSymmetric | Rotation::RotatingZeroRestart => r,
        Rotation::RotatingNRestart => n - 1 - (r + 1) % n,
        Rotation::ParityFirst => 0,
        Rotation::ParityLast => n - 2,
        _ => n - 1 - r,
    };
    let continues = rotation == Rotation::RotatingNContinue;
    let q = if continues { (p + n - 1) % n } else { (p + 1) % n };
    let data = match rotation {
        Rotation::LeftSymmetric | Rotation::RightSymmetric => {
            (0..n - 2).map(|k| (p + 2 + k) % n).collect()
        }
        Rotation::RotatingNContinue => (0..n - 2).map(|k| (p + 1 + k) % n).collect(),
        // Member order; for parity-first and -last that is k + 2 and k.
        _ => (0..n).filter(|member| *member != p && *member != q).collect(),
    };
    StripeMap { p, q: Some(q), data }
}

/// The powers of g for the data chunks of a stripe, in the order of the chunks.
pub(super) fn exponents(members: u16, rotation: Rotation, map: &StripeMap) -> Vec<u8> {
    let by_member = matches!(
        rotation,
        Rotation::RotatingZeroRestart | Rotation::RotatingNRestart | Rotation::RotatingNContinue
    );
    if by_member {
        return map.data.iter().map(|member| *member as u8).collect();
    }
    let Some(q) = map.q else { return Vec::new() };
    let mut exponent_of = vec![0; usize::from(members)];
    let behind_q = (0..members).map(|step| (q + 1 + step) % members);
    let data = behind_q.filter(|member| *member != map.p && *member != q);
    for (exponent, member) in data.enumerate() {
        exponent_of[usize::from(member)] = exponent as u8;
    }
    map.data.iter().map(|member| exponent_of[usize::from(*member)]).collect()
}
