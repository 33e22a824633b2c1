//! What can be asked about an array's state.

use super::Array;
use crate::array::background::Status;
use crate::array::settings::Consistency;
use crate::bugs::Bug;
use crate::units::{MemberIndex, Sector, Sectors};

impl Array {
    /// How the array is.
    pub fn status(&self) -> Status {
        let work =
            self.background.progress(self.now, self.setup.has_bug(Bug::RebuildFrontierEarly));
        Status {
            failed: self.members.failed.words(),
            rebuilding: self.members.rebuilding.words(),
            replacing: self.members.replacing.words(),
            stopped: self.members.stopped,
            synced_to: Sector(self.background.synced_to()),
            waiting: self.room.count(&self.ios),
            settling: self.background.is_settling(),
            work,
        }
    }

    /// What keeps redundancy consistent over a crash.
    pub fn consistency(&self) -> Consistency {
        self.setup.settings.consistency
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

    /// Whether the metadata of members list their bad blocks.
    pub const fn keeps_bad_blocks(&self) -> bool {
        self.setup.settings.keeps_bad_blocks
    }

    /// What the list of bad blocks of a member, or of a replacement, is to name with the next superblock
    /// ([`Settings::keeps_bad_blocks`](crate::Settings::keeps_bad_blocks)): first sector and length, in order.
    /// Nothing while all that is bad is what the drive itself will say.
    pub fn listed_blocks(&self, device: MemberIndex) -> impl Iterator<Item = (Sector, Sectors)> {
        let known = self.members.get(device).filter(|known| known.is_listed).into_iter();
        known.flat_map(|known| known.listed()).map(|(from, to)| (Sector(from), Sectors(to - from)))
    }

    /// Whether what the logs held at the start is being replayed.
    pub(crate) fn is_replaying(&self) -> bool {
        self.log.is_replaying()
    }

    /// Below this sector a member is good; [`Sector::MAX`] unless it is being rebuilt.
    pub fn good_to(&self, member: MemberIndex) -> Sector {
        Sector(self.members.get(member).map_or(u64::MAX, |known| known.good_to))
    }
}
