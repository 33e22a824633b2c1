//! Whether a drive may come back into its place of a running array as the one that was there.
//!
//! Fault model: the drive may be any: one that went on alone, a copy, one whose rebuild was not finished, of
//! another array or place, unreadable.
//! Why it is safe: its superblock must be a known earlier state of the array that runs, from before the array
//! went on without it, and the bitmap must reach back to it; as far as it was never rebuilt, by its own word, it
//! is rebuilt as a fresh one.
//! Tests: `tests/returning.rs`.

use super::assembly::{Sight, misfit};
use super::lineage::{Lineage, lineage};
use super::{ArrayId, Examined, Parameters, ReturnRefusal, Unusable, contains};
use crate::array::Array;
use crate::contract::{Admin, Superblock};
use crate::units::{MemberIndex, Sector, Sectors};

impl Array {
    /// Whether a drive that carries this may come back as `member` of this array; gives the command that takes
    /// it in again.
    ///
    /// # Errors
    /// Why it may not; it can be added as a fresh one.
    pub fn judge_return(
        &self,
        identity: &ArrayId,
        member: MemberIndex,
        found: &Examined,
    ) -> Result<Admin, ReturnRefusal> {
        let members = self.layout().members;
        let sight = Sight::of(&found.superblock, false).in_place(*identity, member.0, members);
        let unusable = |why| Err(ReturnRefusal::Unusable(why));
        let carried = match (sight.carried, sight.why) {
            (Some(carried), None) => carried,
            (_, why) => return unusable(why.unwrap_or(Unusable::Absent)),
        };
        if let Some(why) = misfit(found, carried, &self.parameters()) {
            return unusable(why);
        }
        if self.does_not_fit(member, carried.parameters.data).is_some() {
            return unusable(Unusable::TooSmall);
        }
        let (ours, theirs) = (self.newest_superblock(), &carried.superblock);
        if theirs.events > ours.events {
            let (events, ours) = (theirs.events, ours.events);
            return Err(ReturnRefusal::Newer { events, ours });
        }
        // Which replacement was being filled is nothing to a member.
        let of_members =
            |one: &Superblock| Superblock { replacing: [0; 2], replaced_to: Sector(0), ..*one };
        let same = theirs.events < ours.events || of_members(theirs) == of_members(ours);
        match lineage(ours, theirs) {
            Lineage::Ancestor if same => {}
            Lineage::Older => return Err(ReturnRefusal::TooOld),
            _ => return Err(ReturnRefusal::OtherHistory),
        }
        let (events, good_to) = (theirs.events, good_to(theirs, member));
        // What its list calls bad holds anything: from there on it is rebuilt as a fresh one.
        let first_bad = found.bad.iter().map(|(at, _)| *at).min();
        let good_to = first_bad.map_or(good_to, |at| at.min(good_to));
        // Nobody is told of its own failure, but a fresh drive that was added while that was being recorded.
        let is_fresh = contains(theirs.failed, member.at());
        if is_fresh || !self.has_bitmap() || !self.bitmap_reaches(member, events) {
            return Err(ReturnRefusal::TooOld);
        }
        Ok(Admin::ReAdd { member, events, good_to })
    }
}

impl Array {
    /// What its members must have been made with; sizes are judged by themselves.
    pub(super) fn parameters(&self) -> Parameters {
        Parameters {
            layout: self.layout().to_string(),
            consistency: self.mode(),
            data: Sectors::ZERO,
            least: Sectors::ZERO,
            log: Sectors::ZERO,
            pages: 0,
            block: self.member_block() as u32,
        }
    }
}

/// How far a member is good but for what it missed.
fn good_to(superblock: &Superblock, member: MemberIndex) -> Sector {
    if contains(superblock.rebuilding, member.at()) && !superblock.by_bitmap {
        superblock.rebuilt_to
    } else {
        Sector::MAX
    }
}
