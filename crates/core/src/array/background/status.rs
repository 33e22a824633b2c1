//! What can be asked about an array's state.

use super::Array;
use crate::contract::{MemberBits, Work};
use crate::units::{MemberIndex, Sector, Sectors, Time};

/// The state of an array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
    /// When it will end at the present pace.
    pub ends: Time,
}

impl Array {
    /// How the array is.
    pub fn status(&self) -> Status {
        let work = self.background.work.map(|running| {
            let done = self.frontier(&running);
            let (of, ends) = (Sectors(running.end), self.ends(&running, done));
            WorkStatus { work: running.work, done: Sectors(done), of, ends }
        });
        Status {
            failed: self.members.failed.words(),
            rebuilding: self.members.rebuilding.words(),
            replacing: self.members.replacing.words(),
            stopped: self.members.stopped,
            synced_to: Sector(self.background.synced_to),
            waiting: self.room.count(&self.ios),
            work,
        }
    }

    /// Read errors of a member that were corrected, and reads it did not answer in time, since it
    /// was taken in service.
    pub fn corrected(&self, member: MemberIndex) -> u32 {
        self.members.get(member).map_or(0, |known| known.corrected)
    }

    /// What of a member cannot be read and could not be mended: first sector and length, in order.
    pub fn bad_blocks(&self, member: MemberIndex) -> impl Iterator<Item = (Sector, Sectors)> {
        let known = self.members.get(member).into_iter();
        known
            .flat_map(|known| known.bad.iter())
            .map(|(from, to)| (Sector(from), Sectors(to - from)))
    }

    /// Below this sector a member is good; [`Sector::MAX`] unless it is being rebuilt.
    pub fn good_to(&self, member: MemberIndex) -> Sector {
        Sector(self.members.get(member).map_or(u64::MAX, |known| known.good_to))
    }
}
