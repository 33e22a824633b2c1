//! What can be asked about an array's state.

use crate::contract::{MemberBits, Work};
use crate::units::{Nanos, Sector, Sectors, Time};

/// The state of an array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Status {
    /// Members out of service.
    pub failed: MemberBits,
    /// Members being rebuilt, or waiting for it.
    pub rebuilding: MemberBits,
    /// Members with a replacement that has not taken over yet.
    pub replacing: MemberBits,
    /// Nothing is written any more.
    pub stopped: bool,
    /// Redundancy may disagree beyond this sector: of a member for levels with parity, of the array
    /// for mirrors; [`Sector::MAX`] when it agrees everywhere.
    pub synced_to: Sector,
    /// Writes and records that found no room on a member and are tried again.
    pub waiting: u32,
    /// What work has done is being made durable: it ends, or other work begins, after that.
    pub settling: bool,
    /// The background work under way.
    pub work: Option<WorkStatus>,
}

/// How far background work is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WorkStatus {
    /// What it is.
    pub work: Work,
    /// Sectors of each member (of the array, on mirrors swept as a whole) that are done.
    pub done: Sectors,
    /// Sectors in all.
    pub of: Sectors,
    /// Sectors of these that it began at once, before any was done: no measure of its pace. None where its pacing has
    /// made it rest for them since.
    pub at_once: Sectors,
    /// How long its pacing makes it rest from now on for what it has begun.
    pub rests: Nanos,
    /// When it will end at the present pace; `None` before there is one.
    pub ends: Option<Time>,
}

impl WorkStatus {
    /// How much was done, of how much, beyond what was begun at once: by this its pace is reckoned.
    pub fn done_since(&self) -> (Sectors, Sectors) {
        let since = |sectors: Sectors| Sectors(sectors.0.saturating_sub(self.at_once.0));
        (since(self.done), since(self.of))
    }
}
