//! Whether a drive that was being filled to replace a member goes on with it after a start.
//!
//! Fault model: the drive may be any: one that failed and is back, a copy, one that replaced a member long ago, of
//! another array or place, unreadable; a crash may have come at any moment, also while it was being filled.
//! Why it is safe: it must be named by the newest superblock, have its events, or one more or less, and be of its
//! history. A drive that stops being filled is named no more before anything that it missed is answered. What it holds
//! below how far it was is durable; what was being written when a crash came may differ from what the member holds, so
//! that it goes on there only where nothing was, or where the bitmap names it all, and begins again else. It never
//! serves in its member's place: a member that is missing may hold what is newer.
//! Tests: `tests/resuming.rs`.

use super::assembly::{Sight, misfit};
use super::lineage::{Lineage, lineage};
use super::{ArrayId, Examined, Unusable, contains};
use crate::array::{Array, Consistency};
use crate::contract::{Admin, Superblock};
use crate::units::{MemberIndex, Sector};

impl Array {
    /// Whether a drive that carries this goes on being filled to replace `member` of this array, which was just
    /// assembled; gives the command that does it, and from which sector on.
    ///
    /// # Errors
    /// Why it does not; it can replace the member as a fresh one.
    pub fn judge_resume(
        &self,
        identity: &ArrayId,
        member: MemberIndex,
        found: &Examined,
    ) -> Result<(Admin, Sector), Unusable> {
        let members = self.layout().members;
        let device = self.replacement(member).0;
        let sight = Sight::of(&found.superblock, false).in_place(*identity, device, members);
        let carried = match (sight.carried, sight.why) {
            (Some(carried), None) => carried,
            (_, why) => return Err(why.unwrap_or(Unusable::Absent)),
        };
        if let Some(why) = misfit(found, carried, &self.parameters()) {
            return Err(why);
        }
        let (ours, theirs) = (self.newest_superblock(), &carried.superblock);
        let is_named = |one: &Superblock| contains(one.replacing, member.at());
        if !is_named(ours) || !is_named(theirs) || self.is_failed(member) {
            return Err(Unusable::Failed);
        }
        if theirs.events + 1 < ours.events {
            let (events, newest) = (theirs.events, ours.events);
            return Err(Unusable::Stale { events, newest });
        }
        // A crash may have come while it was told of one more.
        let is_newer = theirs.events > ours.events;
        let related = if is_newer { lineage(theirs, ours) } else { lineage(ours, theirs) };
        if theirs.events > ours.events + 1 || related != Lineage::Ancestor {
            return Err(Unusable::OtherHistory);
        }
        // What its list calls bad holds anything.
        if !found.bad.is_empty() {
            return Err(Unusable::BadBlocks);
        }
        let sectors = carried.parameters.data;
        let good_to = match self.mode() {
            // What was replayed went to the members alone.
            Consistency::Journal { .. } => return Err(Unusable::LogUnknown),
            _ if self.was_stopped_cleanly() || self.resumes_dirty() => theirs.replaced_to,
            Consistency::Bitmap { .. } => theirs.replaced_to,
            // What its log holds may not be what the member's does.
            Consistency::PartialParity { .. } => return Err(Unusable::LogUnknown),
            _ => Sector(0),
        };
        Ok((Admin::ResumeReplace { member, sectors, good_to }, good_to))
    }

    /// Whether nothing was being written when the array ended that was just assembled, and redundancy is consistent.
    pub(crate) fn was_stopped_cleanly(&self) -> bool {
        let newest = self.newest_superblock();
        newest.clean && newest.synced_to == Sector::MAX && !self.is_replaying()
    }
}
