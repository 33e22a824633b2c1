//! `gmirror-load`: FreeBSD's gmirror, balance `load` (its default), since about 2009.
//!
//! The score of a member is its load, less 512 if the read starts exactly where the last read sent
//! to it ended, else less 256 if it starts less than 1 MiB from there. The smallest score wins, the
//! *last* of equals. After a read is sent, every member's load becomes
//! (256 x its I/Os in flight + 7 x its load) / 8, rounded down.
//!
//! So the loads age by reads sent, not by time, and one I/O always in flight brings a load of
//! about 250: a sequential reader at depth 1 never loses its bonus.
//!
//! *At queue depth 1* random reads go round the members downwards, from the last; a sequential
//! reader stays on one member, and each of two keeps a member of its own.
//!
//! Source: FreeBSD `sys/geom/mirror`. Writes count as in flight and are not otherwise seen.

use super::{CopyCandidate, IoKind, MemberIo};
use crate::units::{MemberIndex, Sector};

/// One I/O in flight.
const SCALE: u32 = 256;
/// 1 MiB in sectors: a read that starts nearer than this is "near".
const NEAR: u64 = 2048;

#[derive(Clone, Debug)]
pub(super) struct GmirrorLoad {
    members: Box<[Member]>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Member {
    /// Where the last read sent ends.
    last: Sector,
    in_flight: u32,
    load: u32,
}

impl GmirrorLoad {
    pub(super) fn new(members: usize) -> Self {
        Self { members: vec![Member::default(); members].into() }
    }

    pub(super) fn choose(
        &mut self,
        candidates: impl Iterator<Item = CopyCandidate>,
    ) -> Option<u16> {
        let mut best: Option<(i64, u16)> = None;
        for one in candidates {
            let member = &self.members[one.member.at()];
            let bonus = match one.at.0.abs_diff(member.last.0) {
                0 => 2 * SCALE,
                1..NEAR => SCALE,
                _ => 0,
            };
            let score = i64::from(member.load) - i64::from(bonus);
            if best.is_none_or(|(least, _)| score <= least) {
                best = Some((score, one.copy));
            }
        }
        best.map(|(_, copy)| copy)
    }

    pub(super) fn sent(&mut self, io: MemberIo) {
        let member = &mut self.members[io.member.at()];
        member.in_flight += 1;
        if io.kind != IoKind::Read {
            return;
        }
        member.last = io.at + io.len;
        for member in &mut self.members {
            member.load = (SCALE * member.in_flight + 7 * member.load) / 8;
        }
    }

    pub(super) fn completed(&mut self, io: MemberIo) {
        let member = &mut self.members[io.member.at()];
        member.in_flight = member.in_flight.saturating_sub(1);
    }

    pub(super) fn replaced(&mut self, member: MemberIndex, in_flight: u32) {
        self.members[member.at()].in_flight = in_flight;
    }

    pub(super) fn add_to_key(&self, add: &mut dyn FnMut(u64)) {
        for member in &self.members {
            add(member.last.0);
            add(u64::from(member.in_flight));
            add(u64::from(member.load));
        }
    }
}
