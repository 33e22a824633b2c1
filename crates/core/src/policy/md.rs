//! `md`: raid1 and raid10 of Linux 6.1 (2022) and 6.12 (2024), which follow one rule.
//!
//! Each member remembers where its last *completed* request ended (its head), where the last read
//! chosen for it ends, and where the sequence of such reads began. (By member since 3.6, 2012.)
//!
//! raid1, members in order:
//! 1. Where a resync has not come by: the first readable member.
//! 2. The first member on which the read is sequential: it starts at the end of the last read
//!    chosen for it or at its head. Except a non-rotational member with an optimal I/O size that
//!    has had more than so much in sequence: it then counts as one busier, and keeps the stream
//!    only if no member is idle.
//! 3. The first of the members with the fewest I/Os in flight, if that is none at all or any
//!    member of the array is not rotational.
//! 4. The member with the nearest head; of equals the first.
//!
//! raid10, copies in order: where a resync has not come by, the first. If any copy is on a
//! non-rotational member, the fewest I/Os in flight. Else, with several near copies, the first
//! idle one counts as nearest of all; with several far or offset copies the lowest *member address*
//! wins, which keeps reads of far layouts in the outer half and streams like raid0; else the nearest
//! head. Of equals always the first copy.
//!
//! md also skips members with known bad blocks in the range; the array has no list of such yet.
//!
//! *At queue depth 1* random reads all go to the first member, rotational or not, and so do any
//! number of interleaved sequential readers. Only reads in flight bring in another member.
//!
//! Source: `raid1.c`, `raid1-10.c`, `raid10.c` of Linux 6.12, `raid1.c` of 6.1.

use super::{CopyCandidate, CopyKind, IoKind, MemberIo, MemberTraits, ReadContext};
use crate::units::Sector;

#[derive(Clone, Debug)]
pub(super) struct Md {
    members: Box<[Member]>,
    /// Any member is.
    non_rotational: bool,
}

#[derive(Clone, Copy, Debug)]
struct Member {
    head: Sector,
    next: Sector,
    start: Sector,
    rotational: bool,
    /// In sectors; zero unless the member is non-rotational and names one.
    optimal: u64,
}

impl Md {
    pub(super) fn new(traits: &[MemberTraits]) -> Self {
        let member = |one: &MemberTraits| Member {
            head: Sector(0),
            next: Sector(0),
            start: Sector(0),
            rotational: one.rotational,
            optimal: if one.rotational { 0 } else { one.optimal_io.0 },
        };
        let non_rotational = traits.iter().any(|one| !one.rotational);
        Self { members: traits.iter().map(member).collect(), non_rotational }
    }

    #[inline]
    pub(super) fn choose(
        &mut self,
        context: ReadContext,
        mut candidates: impl Iterator<Item = CopyCandidate>,
    ) -> Option<u16> {
        match context.kind {
            _ if context.unsynced => {
                let first = candidates.next()?;
                self.note(first, context);
                Some(first.copy)
            }
            CopyKind::Raid1 => {
                let chosen = self.raid1(candidates)?;
                self.note(chosen, context);
                Some(chosen.copy)
            }
            CopyKind::Raid10 { near, far } => self.raid10(near, far, candidates),
        }
    }

    #[inline]
    fn raid1(&self, candidates: impl Iterator<Item = CopyCandidate>) -> Option<CopyCandidate> {
        let mut fewest: Option<(u32, CopyCandidate)> = None;
        let mut nearest: Option<(u64, CopyCandidate)> = None;
        let mut stream = None;
        for one in candidates {
            let member = &self.members[one.member.at()];
            let mut pending = one.pending;
            if one.at == member.next || one.at == member.head {
                if !member.had_enough() {
                    return Some(one);
                }
                pending += 1;
                stream = Some(one);
            }
            if fewest.is_none_or(|(least, _)| pending < least) {
                fewest = Some((pending, one));
            }
            let distance = one.at.0.abs_diff(member.head.0);
            if nearest.is_none_or(|(least, _)| distance < least) {
                nearest = Some((distance, one));
            }
        }
        let (pending, idlest) = fewest?;
        if pending > 0 && stream.is_some() {
            return stream;
        }
        if pending == 0 || self.non_rotational {
            return Some(idlest);
        }
        nearest.map(|(_, one)| one)
    }

    #[inline]
    fn raid10(
        &self,
        near: bool,
        far: bool,
        candidates: impl Iterator<Item = CopyCandidate>,
    ) -> Option<u16> {
        let mut fewest: Option<(u32, u16)> = None;
        let mut nearest: Option<(u64, u16)> = None;
        let mut non_rotational = false;
        for one in candidates {
            let member = &self.members[one.member.at()];
            non_rotational |= !member.rotational;
            if fewest.is_none_or(|(least, _)| one.pending < least) {
                fewest = Some((one.pending, one.copy));
            }
            let distance = if near && one.pending == 0 {
                0
            } else if far {
                one.at.0
            } else {
                one.at.0.abs_diff(member.head.0)
            };
            if nearest.is_none_or(|(least, _)| distance < least) {
                nearest = Some((distance, one.copy));
            }
        }
        if non_rotational { fewest.map(|(_, copy)| copy) } else { nearest.map(|(_, copy)| copy) }
    }

    /// Carries on the sequence of the member chosen, or begins a new one.
    #[inline]
    fn note(&mut self, chosen: CopyCandidate, context: ReadContext) {
        let member = &mut self.members[chosen.member.at()];
        if member.next != chosen.at {
            member.start = chosen.at;
        }
        member.next = chosen.at + context.len;
    }

    #[inline]
    pub(super) fn completed(&mut self, io: MemberIo) {
        if io.kind != IoKind::Other {
            self.members[io.member.at()].head = io.at + io.len;
        }
    }

    pub(super) fn add_to_key(&self, add: &mut dyn FnMut(u64)) {
        for member in &self.members {
            add(member.head.0);
            add(member.next.0);
            // Without an optimal size, where a sequence began decides nothing.
            add(if member.optimal > 0 { member.start.0 } else { 0 });
        }
    }
}

impl Member {
    #[inline]
    fn had_enough(&self) -> bool {
        self.optimal > 0 && self.next.0 - self.start.0 > self.optimal
    }
}
