//! raid4: d = n-1 data chunks a stripe on members 0 to n-2, P always on member n-1.
//!
//! md raid5.c, level 4: P on n-1, data chunk k on k, in every stripe. Every write of every stripe
//! goes to that one member. raid5 parity-last is the same. md takes two members, where P is a copy.

use super::stripe::StripeMap;

/// The same for every stripe.
pub(super) fn map(members: u16) -> StripeMap {
    StripeMap { p: members - 1, q: None, data: (0..members - 1).collect() }
}
