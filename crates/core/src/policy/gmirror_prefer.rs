//! `gmirror-prefer`: FreeBSD's gmirror since 2004, balance `prefer`.
//!
//! Always the readable member of the highest priority; of equals the first.
//!
//! *At queue depth 1*, as at any: one member does all the reading, and the mirror reads no faster
//! than it. Meant for members of very different speed, or far away.
//!
//! Source: FreeBSD `sys/geom/mirror`.

use super::{CopyCandidate, MemberTraits};

#[derive(Clone, Debug)]
pub(super) struct GmirrorPrefer {
    /// By member.
    priorities: Box<[u8]>,
}

impl GmirrorPrefer {
    pub(super) fn new(traits: &[MemberTraits]) -> Self {
        Self { priorities: traits.iter().map(|one| one.priority).collect() }
    }

    pub(super) fn choose(&self, candidates: impl Iterator<Item = CopyCandidate>) -> Option<u16> {
        let mut best: Option<(u8, u16)> = None;
        for one in candidates {
            let priority = self.priorities[one.member.at()];
            if best.is_none_or(|(highest, _)| priority > highest) {
                best = Some((priority, one.copy));
            }
        }
        best.map(|(_, copy)| copy)
    }
}
