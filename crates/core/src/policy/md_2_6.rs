//! `md-2.6`: raid1 of Linux 2.6.12 (2005) to 3.5 (2012).
//!
//! The array remembers where its last read ended and which member did it; each member, where its
//! last *completed* request ended, read or write.
//!
//! 1. Where a resync has not come by: the first readable member.
//! 2. Start at the member of the last read; if it cannot be read, the next one below, cyclically.
//! 3. Stay there if the read starts where the array's last read ended, or that member's last
//!    completed request.
//! 4. Else visit the other members downwards, cyclically, and the member of the last read itself
//!    at the end. The first that has nothing in flight wins at once; if all are busy, the one
//!    with the least distance from its last completed request, the start winning ties.
//! 5. Remember the choice and the end of the read.
//!
//! Distances were taken as a 32-bit `int`, so those of 2^31 sectors (1 TiB) and more wrap round;
//! so they do here. 2.6.12 had no write-mostly members, which came with 2.6.14.
//!
//! *At queue depth 1* random reads go round the members downwards (two members alternate): the
//! nearest head counts only when all are busy. One sequential reader stays on one member. Two
//! interleaved ones break each other's sequence, for the array remembers only one.
//!
//! Source: `raid1.c` of Linux 2.6.12-rc2, and an excerpt later than 2.6.24 of the same shape.

use super::{CopyCandidate, IoKind, MemberIo, ReadContext};
use crate::units::Sector;

#[derive(Clone, Debug)]
pub(super) struct Md26 {
    next: Sector,
    last_used: usize,
    /// By member: the end of its last completed request.
    heads: Box<[Sector]>,
}

impl Md26 {
    pub(super) fn new(members: usize) -> Self {
        Self { next: Sector(0), last_used: 0, heads: vec![Sector(0); members].into() }
    }

    pub(super) fn choose(
        &mut self,
        context: ReadContext,
        candidates: impl Iterator<Item = CopyCandidate> + Clone,
    ) -> Option<u16> {
        let chosen = if context.unsynced {
            candidates.clone().next()?
        } else {
            self.balance(context, candidates)?
        };
        self.next = context.at + context.len;
        self.last_used = chosen.member.at();
        Some(chosen.copy)
    }

    fn balance(
        &self,
        context: ReadContext,
        candidates: impl Iterator<Item = CopyCandidate> + Clone,
    ) -> Option<CopyCandidate> {
        // Steps downwards, cyclically, from the member of the last read.
        let below = |one: &CopyCandidate| {
            let (from, to) = (self.last_used, one.member.at());
            if to <= from { from - to } else { from + self.heads.len() - to }
        };
        let start = candidates.clone().min_by_key(below)?;
        if context.at == self.next || start.at == self.heads[start.member.at()] {
            return Some(start);
        }
        let (mut idle, mut nearest) = (None, None);
        for one in candidates {
            let steps = below(&one);
            if one.pending == 0 && (one.member != start.member || steps == 0) {
                // The member of the last read comes last of all.
                let visit = if steps == 0 { self.heads.len() } else { steps };
                keep_least(&mut idle, visit, one);
            }
            let distance = wrapping_distance(one.at, self.heads[one.member.at()]);
            keep_least(&mut nearest, (distance, steps), one);
        }
        idle.map(|(_, one)| one).or(nearest.map(|(_, one)| one))
    }

    pub(super) fn completed(&mut self, io: MemberIo) {
        if io.kind != IoKind::Other {
            self.heads[io.member.at()] = io.at + io.len;
        }
    }

    pub(super) fn add_to_key(&self, add: &mut dyn FnMut(u64)) {
        add(self.next.0);
        add(self.last_used as u64);
        self.heads.iter().for_each(|head| add(head.0));
    }
}

fn keep_least<K: Ord>(best: &mut Option<(K, CopyCandidate)>, key: K, one: CopyCandidate) {
    if best.as_ref().is_none_or(|(least, _)| key < *least) {
        *best = Some((key, one));
    }
}

/// The distance as an `int` saw it.
fn wrapping_distance(one: Sector, other: Sector) -> u32 {
    (one.0.wrapping_sub(other.0) as i32).unsigned_abs()
}
