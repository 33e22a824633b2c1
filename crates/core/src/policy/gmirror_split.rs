//! `gmirror-split`: FreeBSD's gmirror since 2004, balance `split`.
//!
//! A read no longer than the slice (4,096 bytes unless given) goes round-robin. A longer one is cut
//! in equal parts, length / readable members rounded up to a block, and every member reads one
//! part, in their order, all at once. Rounding up may leave the last members without a part.
//! Cutting does not touch the round-robin turn.
//!
//! *At queue depth 1* this is the only balance that has all members read for one request: large
//! reads take the time of the slowest member's part, small ones alternate.
//!
//! Source: FreeBSD `sys/geom/mirror`.

use super::gmirror_round_robin::RoundRobin;
use super::{CopyCandidate, Split};
use crate::units::Sectors;

#[derive(Clone, Debug)]
pub(super) struct GmirrorSplit {
    slice: Sectors,
    turn: RoundRobin,
}

impl GmirrorSplit {
    pub(super) const fn new(slice: Sectors, members: usize) -> Self {
        Self { slice, turn: RoundRobin::new(members) }
    }

    pub(super) fn choose(
        &mut self,
        candidates: impl Iterator<Item = CopyCandidate>,
    ) -> Option<u16> {
        self.turn.choose(candidates)
    }

    pub(super) fn split(&self, len: Sectors, block: Sectors, copies: usize) -> Option<Split> {
        if len <= self.slice || copies < 2 {
            return None;
        }
        let part = len.0.div_ceil(copies as u64).next_multiple_of(block.0.max(1));
        let parts = len.0.div_ceil(part);
        (parts > 1).then_some(Split { part: Sectors(part), parts: parts as u16 })
    }

    pub(super) fn add_to_key(&self, add: &mut dyn FnMut(u64)) {
        self.turn.add_to_key(add);
    }
}
