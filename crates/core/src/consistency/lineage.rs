//! Where a state of an array comes from: which of two superblocks is an earlier state of the other.
//!
//! Fault model: a member may be away for any number of starts, and the array and the member may each go on
//! alone, also after copies of drives were made.
//! Why it is safe: the first update after a start begins an epoch with a random number, and goes to the
//! members in service only. A superblock of an epoch in the list is an earlier state of ours if its events do
//! not reach those at which our side left that epoch; anything beyond, and any epoch that is not in the list,
//! is not taken for one. An epoch is dropped from the list when nobody left service in it, as then nobody but
//! a copy can come back with it, or when all members are in service; what is dropped is not taken for an
//! earlier state either.
//! Tests: `tests/lineage.rs`.

use crate::contract::{Epoch, History, Superblock};

/// What a superblock is to the newest one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lineage {
    /// The same, or an earlier state of it.
    Ancestor,
    /// Older than what the newest remembers, or a state that no other member had and nothing was built on.
    Older,
    /// It has gone on by itself.
    Diverged,
}

/// What `theirs` is to `ours`.
pub(crate) fn lineage(ours: &Superblock, theirs: &Superblock) -> Lineage {
    let known = |id: u64| ours.history.iter().position(|epoch| epoch.id == id && id != 0);
    let Some(place) = known(theirs.history[0].id) else {
        let related = theirs.history.iter().any(|epoch| known(epoch.id).is_some());
        let oldest = ours.history.iter().rev().find(|epoch| epoch.id != 0);
        let before = oldest.is_some_and(|epoch| theirs.events < epoch.from);
        return if before && !related { Lineage::Older } else { Lineage::Diverged };
    };
    let end = match place.checked_sub(1) {
        None => ours.events + 1,
        Some(newer) => ours.history[newer].from,
    };
    // An update that had not reached those who went on, who were in service: nothing was answered since.
    let whole = [theirs.failed, theirs.rebuilding].iter().flatten().all(|word| *word == 0);
    match theirs.events {
        events if events < end => Lineage::Ancestor,
        events if events == end && place > 0 && whole => Lineage::Older,
        _ => Lineage::Diverged,
    }
}

/// Adds an epoch that begins with `from` events; `left`: those in service before are not all there.
pub(crate) fn begin_epoch(superblock: &mut Superblock, id: u64, left: bool) {
    let from = superblock.events;
    let mut id = id.max(2);
    while superblock.history.iter().any(|epoch| epoch.id == id) {
        id = id.wrapping_add(1).max(2);
    }
    let before = superblock.history;
    let marks = superblock.left | u8::from(left);
    let mut history = History::default();
    let mut kept = 1;
    history[0] = Epoch { id, from };
    superblock.left = 0;
    for (place, epoch) in before.iter().enumerate().filter(|(_, epoch)| epoch.id != 0) {
        let is_left = marks >> place & 1 == 1;
        // Whoever is one event behind has the newest, whether or not somebody left in it.
        if place == 0 || is_left {
            if let Some(room) = history.get_mut(kept) {
                *room = *epoch;
                superblock.left |= u8::from(is_left) << kept;
                kept += 1;
            }
        } else {
            // Older ones were left when this one began.
            history[kept - 1].from = history[kept - 1].from.min(epoch.from);
        }
    }
    superblock.history = history;
}

/// All members are in service and hold this history: nobody is away who could come back.
pub(crate) fn all_in_service(superblock: &mut Superblock) {
    superblock.history[2..].fill(Epoch::default());
    superblock.left = 0;
}
