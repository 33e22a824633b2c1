//! `gmirror-round-robin`: FreeBSD's gmirror since 2004, balance `round-robin`.
//!
//! Each read goes to the next readable member after that of the read before, cyclically, starting
//! with the first. Nothing else counts.
//!
//! *At queue depth 1*, as at any: strictly in turn. A sequential stream is dealt out over all
//! members, each of which then skips what the others read.
//!
//! Source: FreeBSD `sys/geom/mirror`.

use super::CopyCandidate;

#[derive(Clone, Debug)]
pub(super) struct RoundRobin {
    members: usize,
    /// The member whose turn it is.
    next: usize,
}

impl RoundRobin {
    pub(super) const fn new(members: usize) -> Self {
        Self { members, next: 0 }
    }

    pub(super) fn choose(
        &mut self,
        candidates: impl Iterator<Item = CopyCandidate>,
    ) -> Option<u16> {
        let mut nearest: Option<(usize, CopyCandidate)> = None;
        for one in candidates {
            let member = one.member.at();
            let ahead = if member >= self.next {
                member - self.next
            } else {
                member + self.members - self.next
            };
            if nearest.is_none_or(|(least, _)| ahead < least) {
                nearest = Some((ahead, one));
                if ahead == 0 {
                    break;
                }
            }
        }
        let (_, chosen) = nearest?;
        let after = chosen.member.at() + 1;
        self.next = if after == self.members { 0 } else { after };
        Some(chosen.copy)
    }

    pub(super) fn add_to_key(&self, add: &mut dyn FnMut(u64)) {
        add(self.next as u64);
    }
}
