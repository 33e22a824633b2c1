//! A journal of md's that is there and cannot be replayed: what is said of it, and how it is given up.
//!
//! What cannot be read may be anything, writes that were answered among it, and so may all that would follow. To take
//! it for the end of the journal, as md does, would serve what stood there before as right. So the start ends before
//! anything is written, and goes on without the journal only when it is told to.
//! Tests: `tests/md_journal_unreadable.rs`, `tests/md_journal_guest.rs`.

use raidlab_metadata::md::journal::recover;
use raidlab_metadata::md::{
    Allowed, Cannot, Inspected, Joined, JournalDamage, Superblock, Why, join,
};

use super::journal_replay::REPLAY;
use super::md::on;
use crate::error::{EngineError, EngineErrorKind};
use crate::member::Member;

/// Decides who is a member, as [`join`]. A journal that is there is given up where that is allowed and it cannot be
/// replayed; one that can be is not.
pub(super) fn join_or_give_up(
    inspected: &[Inspected],
    devices: &mut [Member],
    allowed: &Allowed,
) -> Result<Joined, Cannot> {
    let joined = join(inspected, allowed);
    if joined != Err(Cannot::JournalThere) {
        return joined;
    }
    let with = join(inspected, &Allowed { ignore_journal: false, ..allowed.clone() })?;
    let log = with.journal.and_then(|given| Some((given, inspected[given].superblock()?)));
    let damaged =
        log.and_then(|(given, one)| Some((given, recover(&mut devices[given], one).err()?)));
    let Some((given, damage)) = damaged else { return Err(Cannot::JournalThere) };
    let mut without = allowed.clone();
    without.without.push(given);
    let mut joined = join(inspected, &without)?;
    if let Some(out) = joined.out.iter_mut().find(|out| out.given == given) {
        out.why = Why::JournalDamaged(damage.to_string());
    }
    Ok(joined)
}

/// Why a journal is not replayed, and what can be done.
pub(super) fn lost(log: &Member, one: &Superblock, damage: &JournalDamage) -> EngineError {
    let reason = format!(
        "{damage}: writes that were answered may stand there and nowhere else. Try again when it can be read; a copy \
         of the device with zeroes in its place would lose them without a word. If it stays so, --ignore-journal gives \
         the journal up for good: writes that stand in it alone are lost, and all redundancy is made consistent"
    );
    let error = on(EngineError::new(EngineErrorKind::Assemble, REPLAY, reason), log);
    match damage.at(one) {
        Some(at) => error.at_offset(at.bytes()),
        None => error,
    }
}
