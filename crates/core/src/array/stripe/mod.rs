//! Work on a stripe of a level with parity: writes, and reads of lost chunks.
//!
//! Fault model: as [`super`]; a crash between the writes of a stripe leaves parity inconsistent with
//! the data (the write hole), which a log closes (`array::log`).
//! Why it is safe otherwise: the rows of a plan are locked from before its first read to after its
//! last write, so nothing changes between reading and the parity computed from it; data and parity are
//! written only when every read and job before went well; an error while reading leads to a new plan
//! without the member that erred, never to a guess.
//! Tests: `tests/model.rs::parity_levels_survive_every_set_of_members_they_promise`.
//!
//! A plan goes through up to six phases: read, recover what is lost, prepare what the log needs,
//! compute parity, log, write. How each band is done is chosen when the reads go out. All I/O of a
//! phase is sent out at once, one range a member where rows touch.
//!
//! raid3 is one stripe as tall as its members, in which every request covers all data members: its
//! payload goes to them in turn, an atom each.

mod bands;
mod cache;

use super::lists::NIL;
use super::member_set::MemberSet;
use crate::contract::Outcome;
use crate::geometry::Parity;
use crate::policy::ParityRead;
use crate::units::Sector;
pub(super) use bands::{Band, Health, MOST_BANDS, Method, P, Piece, Q, split};
pub(super) use cache::Cache;

/// Jobs a plan has in flight at most: one a band.
pub(in crate::array) const JOBS_PER_PLAN: u32 = MOST_BANDS as u32;

/// What a plan does with its piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(in crate::array) enum Task {
    Read,
    Write,
    /// Write zeroes, without payload.
    Zero,
}

/// A piece of a stripe being read or written.
#[derive(Clone, Copy, Debug, Hash)]
pub(in crate::array) struct StripePlan {
    pub(in crate::array) request: u32,
    pub(in crate::array) task: Task,
    pub(in crate::array) stripe: u64,
    pub(in crate::array) piece: Piece,
    /// The rows this plan works on.
    pub(in crate::array) rows: (u64, u64),
    /// Where in the request's payload the piece starts.
    pub(in crate::array) payload: u64,
    pub(in crate::array) phase: Phase,
    pub(in crate::array) bands: [Band; MOST_BANDS],
    pub(in crate::array) band_count: u8,
    /// Member I/Os or jobs of this phase not yet ended.
    pub(in crate::array) pending: u32,
    /// Members whose reads failed.
    pub(in crate::array) avoid: MemberSet,
    /// raid3: how the policy wants it read.
    pub(in crate::array) parity_read: ParityRead,
    pub(in crate::array) first_bad: Option<Sector>,
    /// Its place in the stripe cache, or NIL.
    pub(in crate::array) cache: u32,
    /// A read failed: plan again when the phase has ended.
    pub(in crate::array) again: bool,
    pub(in crate::array) outcome: Outcome,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(in crate::array) enum Phase {
    Read,
    Recover,
    /// What the log needs is computed.
    Prepare,
    Compute,
    /// What is about to be written is recorded, where the consistency mode asks for it.
    Log,
    Write,
}

impl StripePlan {
    pub(in crate::array) fn idle() -> Self {
        Self {
            request: 0,
            task: Task::Read,
            stripe: 0,
            piece: Piece { start: 0, end: 0 },
            rows: (0, 0),
            payload: 0,
            phase: Phase::Read,
            bands: [Band::default(); MOST_BANDS],
            band_count: 0,
            pending: 0,
            avoid: MemberSet::NONE,
            parity_read: ParityRead::Plain,
            first_bad: None,
            cache: NIL,
            again: false,
            outcome: Outcome::Done,
        }
    }

    pub(in crate::array) fn bands(&self) -> &[Band] {
        &self.bands[..usize::from(self.band_count)]
    }
}

/// Where a role's rows of a band lie in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::array) enum Memory {
    /// In the request's payload.
    Payload,
    /// In the plan's scratch buffer.
    Scratch,
    /// Nowhere: zeroes.
    Zeroes,
}

/// The stripe at `at` and the part of it that `at..end` covers.
pub(super) fn piece_at(parity: &Parity, at: Sector, end: u64) -> (u64, Piece) {
    let place = parity.stripe_place(at);
    let start = u64::from(place.chunk) * parity.chunk().0 + place.offset;
    let piece_end = parity.stripe_sectors().min(start + (end - at.0));
    (place.stripe, Piece { start, end: piece_end })
}

/// Where a role's rows of a band are read to, if they are read at all. Roles from `data` on are
/// parities.
pub(super) fn read_memory(band: &Band, role: u16, data: u16, task: Task) -> Option<Memory> {
    let covered = role < data && band.covers(role);
    let parity = role.checked_sub(data).map(|parity| 1u8 << parity);
    let lost = band.recovery.lost().contains(&role);
    match band.method {
        Method::Direct => covered.then_some(Memory::Payload),
        Method::Verify if role >= data => Some(Memory::Scratch),
        Method::Verify => Some(Memory::Payload),
        Method::Recover | Method::RecoverWrite => match parity {
            Some(parity) => (band.recovery.parities & parity != 0).then_some(Memory::Scratch),
            None if lost => None,
            None if covered && task == Task::Read => Some(Memory::Payload),
            None => Some(Memory::Scratch),
        },
        Method::FullStripe | Method::DataOnly => None,
        Method::ReconstructWrite => (parity.is_none() && !covered).then_some(Memory::Scratch),
        Method::ReadModifyWrite => {
            let wanted = parity.map_or(covered, |parity| band.live & parity != 0);
            wanted.then_some(Memory::Scratch)
        }
    }
}
