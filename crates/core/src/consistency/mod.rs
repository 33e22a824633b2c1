//! What an array promises after a crash, and how it starts from what is found on its members.
//!
//! | mode | crash, all members back | crash, and as many members lost as the level survives |
//! |---|---|---|
//! | `none` | as below; all redundancy made consistent | mirrors: as below; parity: *unless torn* |
//! | `resync` | as below; the same, unless it was clean | mirrors, or clean: as below; parity: *refused* |
//! | `bitmap` | as below; what bits name made consistent | as `resync`; bits name all rows concerned |
//! | `ppl` (raid5) | as below; the log makes parity consistent | as below, *but for the lost* |
//! | `journal` | as below; the journal is written out | as below, for raid6 too |
//!
//! *Unless torn*: as below, but what the lost members held in rows with writes that were not durable
//! may be anything. *Refused*: unless allowed, then as `none`. *But for the lost*: what the lost member
//! held in sectors with writes that were not durable may be anything.
//!
//! "As below": every sector holds its last durable value, any later acknowledged one, or one in
//! flight; a sector never written keeps its own. A write is durable when it was `fua`, or answered
//! before a flush was submitted that was answered well.
//!
//! In modes with superblocks (all but `none`), further:
//! * An array starts without being told to only if every member that cannot be used is recorded as out of
//!   service by the newest superblock that can be read. A place that cannot be read, or is damaged, may have held
//!   a newer one: such a member counts as missing. A stale member alone cannot know that it is stale: whoever
//!   leaves members out says that nothing newer is on them.
//! * What was answered after a member failed is never lost by that member coming back: it is out of
//!   service in every later start until it is added again. A start with members missing must be
//!   allowed, and takes them out of service in the same way.
//! * Members that each went on without the other are not started together, nor taken back by one another. Copies of
//!   drives made while the array runs are told from the drives by their events only: one that is within one event
//!   of the newest superblock is taken for the drive.
//! * What was asked for at the making, level, parameters, sizes, block, mode and chunk of the bitmap, comes from
//!   the members; whatever else is asked for is refused.
//! * When more members are lost than the level survives, nothing is written any more, and writes and
//!   flushes that were not answered well before may be lost; once enough of the members are back, the
//!   array starts with everything that was answered before.
//! * The journal lost at run time: the array goes on as `resync`. Lost at a start, be it absent, not the array's
//!   own, older, unreadable or damaged: refused unless the array was clean or a dirty start is allowed, then as
//!   `resync`. A log of partial parity that is unreadable or damaged: as `resync`, for that start.
//! * Bits of the bitmap are those of all members in service together; a page that none of them can read has all.
//! * A start decides by what it finds alone; interrupted at any point and begun again, it ends the same.

mod area;
mod assembly;
mod examined;
mod found;
pub(crate) mod lineage;
mod refusal;
mod resuming;
mod returning;
mod vote;

use crate::contract::MemberBits;

pub use area::{MetaArea, RECORD};
pub use examined::{ArrayId, Carried, Examined, Finding, LogFound, Parameters};
pub use found::{Allow, Assembled, Found, LogEntry, Wanted};
pub use refusal::{AssembleError, ResyncCost, ReturnRefusal, Unusable, Unused};

const NOBODY: MemberBits = [0; 2];

fn set(members: impl Iterator<Item = usize>) -> MemberBits {
    let mut bits = NOBODY;
    members.for_each(|m| bits[m / 64] |= 1 << (m % 64));
    bits
}

const fn contains(bits: MemberBits, member: usize) -> bool {
    bits[member / 64] >> (member % 64) & 1 == 1
}

/// Names a set of members.
fn named(bits: MemberBits) -> String {
    let names: Vec<_> = (0..128).filter(|m| contains(bits, *m)).map(|m| m.to_string()).collect();
    let noun = if names.len() == 1 { "member" } else { "members" };
    format!("{noun} {}", names.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_name_their_members() {
        let bits = set([0, 63, 64, 127].into_iter());
        assert_eq!(bits, [1 | 1 << 63, 1 | 1 << 63]);
        assert_eq!(named(bits), "members 0, 63, 64, 127");
        assert_eq!(
            (named(set([7].into_iter())), named(NOBODY)),
            ("member 7".into(), "members ".into())
        );
        assert!(contains(bits, 64) && !contains(bits, 65) && !contains(bits, 1));
        assert_eq!(set([3, 3].into_iter()), [8, 0]);
    }
}
