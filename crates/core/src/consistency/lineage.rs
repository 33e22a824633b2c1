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
//! Tests: `an_earlier_state_is_told_from_one_that_went_on`, `epochs_in_which_nobody_left_are_dropped` and
//! `tests/returning.rs::halves_that_both_went_on_are_never_joined`.

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
    // The events at which our side had left an epoch.
    let end = |place: usize| match place.checked_sub(1) {
        None => ours.events + 1,
        Some(newer) => ours.history[newer].from,
    };
    let [newest, before, ..] = theirs.history;
    let (events, is_first) = (theirs.events, newest.from == theirs.events);
    match (known(newest.id), known(before.id)) {
        (Some(place), _) if events < end(place) => Lineage::Ancestor,
        (Some(place), _) if place > 0 && events == end(place) => unfinished(theirs),
        (None, Some(place)) if place > 0 && events == end(place) && is_first => unfinished(theirs),
        (Some(_), _) => Lineage::Diverged,
        (None, _) => {
            let related = theirs.history.iter().any(|epoch| known(epoch.id).is_some());
            let oldest = ours.history.iter().rev().find(|epoch| epoch.id != 0);
            let before = oldest.is_some_and(|epoch| theirs.events < epoch.from);
            if before && !related { Lineage::Older } else { Lineage::Diverged }
        }
    }
}

/// What the state of an update is that those who went on without it never got: they were in service, if everybody
/// was, so that nothing was answered since.
fn unfinished(theirs: &Superblock) -> Lineage {
    let whole = [theirs.failed, theirs.rebuilding].iter().flatten().all(|word| *word == 0);
    if whole { Lineage::Older } else { Lineage::Diverged }
}

/// Notes that this update is the first to name somebody as failed who was in service. They may be one event behind
/// the update before; when that was the first of its epoch, they left in the one before.
pub(crate) fn note_leaving(superblock: &mut Superblock) {
    let is_first = superblock.history[0].from + 1 >= superblock.events;
    superblock.left |= if is_first { 0b11 } else { 1 };
}

/// Adds an epoch that begins with this update.
pub(crate) fn begin_epoch(superblock: &mut Superblock, id: u64) {
    let from = superblock.events;
    let mut id = id.max(2);
    while superblock.history.iter().any(|epoch| epoch.id == id) {
        id = id.wrapping_add(1).max(2);
    }
    let before = superblock.history;
    let marks = superblock.left;
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

#[cfg(test)]
mod tests {
    use super::*;

    fn begin(superblock: &mut Superblock, id: u64, left: bool) {
        if left {
            note_leaving(superblock);
        }
        begin_epoch(superblock, id);
    }

    /// A state of these events, after `begin_epoch` at each of `starts`.
    fn state(events: u64, starts: &[(u64, u64, bool)]) -> Superblock {
        let mut one = Superblock::default();
        one.history[0] = Epoch::FIRST;
        for (id, from, left) in starts {
            one.events = *from;
            begin(&mut one, *id, *left);
        }
        one.events = events;
        one
    }

    fn ids(superblock: &Superblock) -> Vec<u64> {
        superblock.history.iter().map(|epoch| epoch.id).take_while(|id| *id != 0).collect()
    }

    #[test]
    fn an_earlier_state_is_told_from_one_that_went_on() {
        let ours = state(30, &[(5, 10, true), (6, 20, false)]);
        for (events, starts, is) in [
            (30, &[(5, 10, true), (6, 20, false)][..], Lineage::Ancestor),
            (20, &[(5, 10, true), (6, 20, false)], Lineage::Ancestor),
            (31, &[(5, 10, true), (6, 20, false)], Lineage::Diverged),
            (19, &[(5, 10, true)], Lineage::Ancestor),
            (20, &[(5, 10, true)], Lineage::Older),
            (21, &[(5, 10, true)], Lineage::Diverged),
            // The first update of an epoch that began where our side had not left the one before.
            (15, &[(5, 10, true), (7, 15, true)], Lineage::Diverged),
            (9, &[], Lineage::Ancestor),
            (10, &[], Lineage::Older),
            (11, &[], Lineage::Diverged),
            (12, &[(7, 10, true)], Lineage::Diverged),
            (10, &[(7, 10, true)], Lineage::Older),
            (25, &[(5, 10, true), (8, 20, false)], Lineage::Diverged),
        ] {
            assert_eq!(lineage(&ours, &state(events, starts)), is, "{events} {starts:?}");
        }
        // An update that named somebody as failed may have been the last of two halves.
        let alone = Superblock { failed: [1, 0], ..state(10, &[]) };
        assert_eq!(lineage(&ours, &alone), Lineage::Diverged);
        assert_eq!(lineage(&ours, &Superblock::default()), Lineage::Older, "no history at all");
    }

    #[test]
    fn epochs_in_which_nobody_left_are_dropped() {
        let mut ours = state(10, &[(5, 10, true)]);
        for start in 0..20 {
            ours.events += 10;
            begin(&mut ours, 100 + start, false);
        }
        assert_eq!(ids(&ours), [119, 118, 1]);
        // Whoever went on from the first epoch when the second began did so beside all that came later.
        assert_eq!(lineage(&ours, &state(9, &[])), Lineage::Ancestor);
        assert_eq!(lineage(&ours, &state(11, &[])), Lineage::Diverged);
        let dropped = state(30, &[(5, 10, true), (100, 20, false)]);
        assert_eq!(lineage(&ours, &dropped), Lineage::Diverged, "a copy only");
    }

    #[test]
    fn of_too_many_epochs_the_oldest_is_forgotten() {
        let mut ours = state(10, &[]);
        for start in 0..8 {
            ours.events += 10;
            begin(&mut ours, 100 + start, true);
        }
        assert_eq!(ids(&ours), [107, 106, 105, 104, 103, 102]);
        assert_eq!(lineage(&ours, &state(15, &[])), Lineage::Older);
        assert_eq!(lineage(&ours, &state(25, &[(100, 20, true)])), Lineage::Older);
        let known = state(45, &[(100, 20, true), (101, 30, true), (102, 40, true)]);
        assert_eq!(lineage(&ours, &known), Lineage::Ancestor);
    }

    #[test]
    fn who_leaves_one_event_behind_the_first_of_an_epoch_is_known() {
        // Epoch 5 has one update only, which a member did not get that is left out by the next.
        let ours = state(12, &[(5, 10, true), (6, 20, false), (7, 21, true)]);
        let ours = Superblock { events: 22, ..ours };
        let theirs = state(19, &[(5, 10, true)]);
        assert_eq!(lineage(&ours, &theirs), Lineage::Ancestor);
        // The same in a running array.
        let mut ours = state(21, &[(5, 10, true), (6, 20, false)]);
        note_leaving(&mut ours);
        ours.events = 30;
        begin(&mut ours, 7, false);
        assert_eq!(lineage(&ours, &theirs), Lineage::Ancestor);
    }

    #[test]
    fn numbers_are_taken_once() {
        let mut ours = state(10, &[(5, 10, true)]);
        begin(&mut ours, 5, true);
        begin(&mut ours, 0, true);
        assert_eq!(ids(&ours), [2, 6, 5, 1]);
        all_in_service(&mut ours);
        assert_eq!((ids(&ours), ours.left), (vec![2, 6], 0));
    }
}
