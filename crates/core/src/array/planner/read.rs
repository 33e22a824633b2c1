//! Reads: each piece from one copy that is in service; lost pieces of parity levels from the rest.

use super::Array;
use crate::array::ios::{Owner, Target};
use crate::array::lists::ListBuilder;
use crate::array::member::Members;
use crate::array::member_set::MemberSet;
use crate::array::runs::Runs;
use crate::bugs::Bug;
use crate::contract::IoOp;
use crate::geometry::Geometry;
use crate::policy::{CopyCandidate, CopyKind, ReadContext};
use crate::units::{Sector, Sectors};

impl Array {
    /// Plans a read from its cursor on; false when it must wait for room.
    pub(super) fn plan_read(&mut self, slot: u32) -> bool {
        if self.setup.atom > 0 {
            // raid3: every read takes all data members.
            return self.plan_stripes(slot);
        }
        let mut unreadable = self.members.failed.union(self.requests.avoided(slot));
        if self.setup.has_bug(Bug::ReadFailedMember) {
            unreadable = self.requests.avoided(slot);
        }
        if self.setup.copies > 1 {
            let done = self.read_copies(slot, unreadable);
            self.send_runs(slot);
            return done;
        }
        let request = &self.requests[slot];
        let (at, end) = (Sector(request.cursor), request.end);
        // The usual case: one piece on one member, sent out without gathering.
        let len = end - at.0;
        if at.0 == request.at
            && self.setup.geometry.run(at).0 >= len
            && !self.reads_by_stripes(unreadable)
        {
            let place = self.setup.geometry.place(at, 0);
            if !unreadable.contains(place.member)
                && !self.members.lacks(&self.setup, place.member, place.at, len)
            {
                if !self.has_room(slot, 1) {
                    return false;
                }
                let target = Target { member: place.member, at: place.at, len: len as u32 };
                self.read_whole(slot, target);
                return true;
            }
        }
        let done = self.gather_read(slot, unreadable);
        self.send_runs(slot);
        done
    }

    /// Whether what can be read directly is read by plans, too, so that the stripe cache has it when something lost is
    /// computed from it: without all members md reads everything by stripes (`chunk_aligned_read` needs `degraded` to
    /// be 0; drivers/md/raid5.c of 6.12).
    #[inline]
    fn reads_by_stripes(&self, unreadable: MemberSet) -> bool {
        !unreadable.is_empty() && self.cache.is_used()
    }

    /// Sends out a read of which all lies together on one member.
    #[inline]
    fn read_whole(&mut self, slot: u32, target: Target) {
        let list = self.requests.whole_payload(&mut self.lists, slot);
        let request = &mut self.requests[slot];
        request.cursor = request.end;
        self.emit(Owner::Request(slot), IoOp::Read, false, target, list.finish());
    }

    /// Everything from the cursor on, stripe by stripe.
    pub(super) fn plan_stripes(&mut self, slot: u32) -> bool {
        while self.requests[slot].cursor < self.requests[slot].end {
            if !self.plan_stripe_piece(slot) {
                return false;
            }
        }
        true
    }

    /// Levels with one copy of each sector.
    fn gather_read(&mut self, slot: u32, unreadable: MemberSet) -> bool {
        loop {
            let request = &self.requests[slot];
            let (at, start, end) = (Sector(request.cursor), request.at, request.end);
            if at.0 >= end {
                return true;
            }
            // Other chunks of the stripe are wanted too and serve to compute the lost one. What was begun in
            // slices goes on so, even when nothing is lost any more: the first of them are not for the next stripe.
            let begun = request.slice > 0;
            if self.setup.parities > 0
                && (begun
                    || self.reads_by_stripes(unreadable)
                    || self.stripe_lacks_chunk(at, end, unreadable))
            {
                if !self.plan_stripe_piece(slot) {
                    return false;
                }
                continue;
            }
            let place = self.setup.geometry.place(at, 0);
            let len = self.setup.geometry.run(at).0.min(end - at.0) as u32;
            if unreadable.contains(place.member)
                || self.members.lacks(&self.setup, place.member, place.at, u64::from(len))
            {
                if self.setup.has_bug(Bug::SalvageGuesses) {
                    self.requests[slot].cursor += u64::from(len);
                    continue;
                }
                self.give_up(slot, at);
                return true;
            }
            if !self.has_room(slot, 1) {
                return false;
            }
            self.gather(slot, Target { member: place.member, at: place.at, len }, at.0 - start);
            self.requests[slot].cursor += u64::from(len);
        }
    }

    /// Mirrored levels: each piece from the copy that the policy chooses.
    fn read_copies(&mut self, slot: u32, unreadable: MemberSet) -> bool {
        loop {
            let request = &self.requests[slot];
            let (at, start, end) = (Sector(request.cursor), request.at, request.end);
            if at.0 >= end {
                return true;
            }
            // A policy may cut a read into a part for each copy. It decides once for each piece,
            // so room is looked for first.
            if !self.has_room(slot, usize::from(self.setup.copies)) {
                return false;
            }
            let len = self.setup.geometry.run(at).0.min(end - at.0) as u32;
            let whole = at.0 == start && u64::from(len) == end - start;
            if whole && self.setup.cuts_reads && self.read_parts(slot, unreadable) {
                return true;
            }
            let Some(copy) = self.choose_copy(at, len, unreadable) else {
                if self.setup.has_bug(Bug::SalvageGuesses) {
                    self.requests[slot].cursor += u64::from(len);
                    continue;
                }
                self.give_up(slot, at);
                return true;
            };
            let place = self.setup.geometry.place(at, copy);
            let target = Target { member: place.member, at: place.at, len };
            if whole {
                self.read_whole(slot, target);
                return true;
            }
            self.gather(slot, target, at.0 - start);
            self.requests[slot].cursor += u64::from(len);
        }
    }

    /// The copy to read `len` sectors at `at` from, or `None` when no copy is readable.
    #[inline]
    fn choose_copy(&mut self, at: Sector, len: u32, unreadable: MemberSet) -> Option<u16> {
        let len = Sectors(u64::from(len));
        let unsynced = self.is_unsynced(at.0 + len.0);
        let context = ReadContext { at, len, kind: self.setup.copy_kind, unsynced };
        if unsynced || !self.members.partial.is_empty() {
            return self.choose_among_partial(context, unreadable);
        }
        let Self { setup, members, runs, policy, now, .. } = self;
        let geometry = &setup.geometry;
        let candidates = (0..setup.copies)
            .filter_map(|copy| candidate(geometry, members, runs, (at, copy), unreadable));
        policy.choose(*now, context, candidates)
    }

    /// The same while some members are readable in part only, or copies may differ: then the first
    /// is taken whatever the policy, as a resync does, so that what was read once is read again.
    #[cold]
    fn choose_among_partial(&mut self, context: ReadContext, unreadable: MemberSet) -> Option<u16> {
        let ReadContext { at, len, .. } = context;
        let mut lacking = [false; 128];
        for copy in 0..self.setup.copies {
            let place = self.setup.geometry.place(at, copy);
            lacking[usize::from(copy)] =
                self.members.lacks(&self.setup, place.member, place.at, len.0);
        }
        let Self { setup, members, runs, policy, now, .. } = self;
        let geometry = &setup.geometry;
        let most = if context.unsynced { 1 } else { usize::MAX };
        // A range that raid1 of md copies counts on every member that could be read, not on that which is
        // (`raid1_sync_request`, drivers/md/raid1.c, takes `nr_pending` of all).
        let copying = (setup.is_of_md() && setup.copy_kind == CopyKind::Raid1)
            .then(|| setup.members().any(|member| members[member].background > 0));
        let candidates = (0..setup.copies)
            .filter(|copy| !lacking[usize::from(*copy)])
            .filter_map(|copy| candidate(geometry, members, runs, (at, copy), unreadable))
            .map(|mut one| {
                if let Some(copying) = copying {
                    one.pending -= members[one.member].background;
                    one.pending += u32::from(copying);
                }
                one
            })
            .take(most);
        policy.choose(*now, context, candidates)
    }

    /// Cuts a read that lies together on all its members into a part for each; false when the policy
    /// would not.
    fn read_parts(&mut self, slot: u32, unreadable: MemberSet) -> bool {
        let request = &self.requests[slot];
        let (at, len) = (Sector(request.at), request.end - request.at);
        let (geometry, members, runs) = (&self.setup.geometry, &self.members, &self.runs);
        let candidates = (0..self.setup.copies)
            .filter_map(|copy| candidate(geometry, members, runs, (at, copy), unreadable));
        let block = Sectors(u64::from(self.setup.logical_block));
        // What cannot be read everywhere, or is not the same everywhere, is not cut.
        if !self.members.partial.is_empty() || self.is_unsynced(at.0 + len) {
            return false;
        }
        let Some(split) = self.policy.split(Sectors(len), block, candidates.clone()) else {
            return false;
        };
        let mut places = [(0, at); 128];
        for part in 0..split.parts {
            let copy = self.policy.part_copy(part, candidates.clone()).unwrap_or(0);
            let from = u64::from(part) * split.part.0;
            places[usize::from(part)] = (copy, Sector(at.0 + from));
        }
        for &(copy, from) in &places[..usize::from(split.parts)] {
            let len = split.part.0.min(at.0 + len - from.0);
            let place = self.setup.geometry.place(from, copy);
            let mut list = ListBuilder::new();
            self.requests.carve(&mut self.lists, slot, (from.0 - at.0, len), &mut list);
            let target = Target { member: place.member, at: place.at, len: len as u32 };
            self.emit(Owner::Request(slot), IoOp::Read, false, target, list.finish());
        }
        let request = &mut self.requests[slot];
        request.cursor = request.end;
        true
    }
}

/// A copy of the block at `at` as policies see it; `None` when it is not readable.
#[inline(always)]
fn candidate(
    geometry: &Geometry,
    members: &Members,
    runs: &Runs,
    (at, copy): (Sector, u16),
    unreadable: MemberSet,
) -> Option<CopyCandidate> {
    let place = geometry.place(at, copy);
    let member = place.member;
    let (head, pending) = runs.load(member, members.load(member));
    let candidate = CopyCandidate { copy, member, at: place.at, pending, head };
    (!unreadable.contains(member)).then_some(candidate)
}
