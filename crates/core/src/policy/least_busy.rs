//! `least-busy`: this project's own rule and the default.
//!
//! A copy that goes on where its member's last planned I/O ended is taken at once. Else the member
//! with the fewest I/Os in flight; of equals the one whose last planned I/O ended nearest; of
//! equals the first copy. It needs no memory: the array knows all of this of its members.
//!
//! *At queue depth 1* nothing is in flight, so the nearest head wins: members share the address
//! range out between them, and each of two sequential streams soon has a member of its own.

use super::CopyCandidate;

#[inline]
pub(super) fn least_busy(candidates: impl Iterator<Item = CopyCandidate>) -> Option<u16> {
    let mut best: Option<((u32, u64), u16)> = None;
    for candidate in candidates {
        if candidate.head == candidate.at {
            return Some(candidate.copy);
        }
        let score = (candidate.pending, candidate.at.0.abs_diff(candidate.head.0));
        if best.is_none_or(|(least, _)| score < least) {
            best = Some((score, candidate.copy));
        }
    }
    best.map(|(_, copy)| copy)
}
