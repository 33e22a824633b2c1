//! What can be asked about the drives of nested levels.

use super::Stack;
use crate::array::{Status, WorkStatus};
use crate::contract::MemberBits;
use crate::units::{MemberIndex, Sector};

impl Stack {
    /// Whether a drive is out of service, or the array that it is of.
    pub fn is_failed(&self, drive: MemberIndex) -> bool {
        if drive.0 >= self.drives() {
            return false;
        }
        let (index, member) = self.locate(drive);
        self.is_lost(index) || self.inner[index].array.is_failed(member)
    }

    /// The place of what is to replace a drive: replacements come after all drives, in the same order.
    pub fn replacement(&self, drive: MemberIndex) -> MemberIndex {
        MemberIndex(self.drives() + drive.0)
    }

    /// The place that a log device would have.
    pub fn journal(&self) -> MemberIndex {
        MemberIndex(2 * self.drives())
    }

    /// Below this sector a drive is good: 0 while the array that it is of is being rebuilt as a whole,
    /// [`Sector::MAX`] unless it is being rebuilt itself.
    pub fn good_to(&self, drive: MemberIndex) -> Sector {
        if drive.0 >= self.drives() {
            return Sector::MAX;
        }
        let (index, member) = self.locate(drive);
        if self.is_rebuilt_whole(index) {
            return Sector(0);
        }
        self.inner[index].array.good_to(member)
    }

    fn is_rebuilt_whole(&self, index: usize) -> bool {
        self.outer.good_to(MemberIndex(index as u16)) < Sector::MAX
    }

    /// How the drives are, of the first 128, and what goes on: in the outer array, else in the first inner one where
    /// something does.
    pub fn status(&self) -> Status {
        let outer = self.outer.status();
        let inner: Vec<Status> = self.inner.iter().map(|one| one.array.status()).collect();
        let has = |bits: MemberBits, member: MemberIndex| {
            bits[member.at() / 64] >> (member.0 % 64) & 1 == 1
        };
        let (mut failed, mut rebuilding, mut replacing) = ([0; 2], [0; 2], [0; 2]);
        for drive in (0..self.drives().min(128)).map(MemberIndex) {
            let (index, member) = self.locate(drive);
            let (word, bit) = (drive.at() / 64, drive.0 % 64);
            let is_rebuilt = has(inner[index].rebuilding, member) || self.is_rebuilt_whole(index);
            failed[word] |= u64::from(self.is_failed(drive)) << bit;
            rebuilding[word] |= u64::from(is_rebuilt) << bit;
            replacing[word] |= u64::from(has(inner[index].replacing, member)) << bit;
        }
        let below = inner.iter().enumerate().find_map(|(index, status)| {
            let status = status.work?;
            Some(WorkStatus { work: self.inner_work(index, status.work), ..status })
        });
        let above = outer.work;
        let above = above.map(|status| WorkStatus { work: self.outer_work(status.work), ..status });
        Status {
            failed,
            rebuilding,
            replacing,
            stopped: outer.stopped,
            synced_to: inner.iter().map(|one| one.synced_to).fold(outer.synced_to, Sector::min),
            waiting: inner.iter().map(|one| one.waiting).sum::<u32>() + outer.waiting,
            settling: outer.settling || inner.iter().any(|one| one.settling),
            work: above.or(below),
        }
    }
}
