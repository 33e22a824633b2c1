//! `gmirror-load-2004`: FreeBSD's gmirror, balance `load`, from 2004 to about 2009.
//!
//! Members in order: the first that was not used for 2 seconds or more wins at once; else the one
//! whose last completed request took the least time, the first of equals. A member that has
//! completed nothing yet has a delay of zero; all count as used when the run starts.
//!
//! *At queue depth 1* every member is tried once, in order; then the one that happened to be
//! quickest is read for 2 seconds, until one of the others has lain idle for so long, or until a
//! slower request makes another look better. At greater depth all go to one member until the
//! first completes.
//!
//! Source: FreeBSD `sys/geom/mirror`.

use super::{CopyCandidate, MemberIo};
use crate::units::{Nanos, Time};

/// After so long without use a member is tried again.
const DISUSE: Nanos = Nanos(2_000_000_000);

#[derive(Clone, Debug)]
pub(super) struct GmirrorLoad2004 {
    members: Box<[Member]>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Member {
    last_used: Time,
    /// How long the last completed request took.
    delay: Nanos,
}

impl GmirrorLoad2004 {
    pub(super) fn new(members: usize) -> Self {
        Self { members: vec![Member::default(); members].into() }
    }

    pub(super) fn choose(
        &mut self,
        now: Time,
        candidates: impl Iterator<Item = CopyCandidate>,
    ) -> Option<u16> {
        let mut quickest: Option<(Nanos, u16)> = None;
        for one in candidates {
            let member = &self.members[one.member.at()];
            if now.since(member.last_used) >= DISUSE {
                return Some(one.copy);
            }
            if quickest.is_none_or(|(least, _)| member.delay < least) {
                quickest = Some((member.delay, one.copy));
            }
        }
        quickest.map(|(_, copy)| copy)
    }

    pub(super) fn sent(&mut self, now: Time, io: MemberIo) {
        self.members[io.member.at()].last_used = now;
    }

    pub(super) fn completed(&mut self, now: Time, io: MemberIo, sent_at: Time) {
        self.members[io.member.at()].delay = now.since(sent_at);
    }

    pub(super) fn add_to_key(&self, now: Time, add: &mut dyn FnMut(u64)) {
        for member in &self.members {
            add(now.since(member.last_used).min(DISUSE).0);
            add(member.delay.0);
        }
    }
}
