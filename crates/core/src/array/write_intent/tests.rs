//! WriteIntentGate, replies and superblocks without an array.

use super::*;
use crate::array::settings::Consistency;
use crate::array::setup::tests::setup;
use crate::layout::{Layout, Level};
use crate::units::{Sector, Sectors};

const SECOND: Time = Time(1_000_000_000);

struct Gate {
    setup: Setup,
    members: Members,
    gate: WriteIntentGate,
}

/// A mirror of three in a mode.
fn gate(consistency: Consistency) -> Gate {
    let setup = setup(&Layout::new(Level::Raid1, 3), consistency);
    let bitmap = Bitmap::new(consistency, 4096, false);
    let gate = WriteIntentGate::new(consistency.has_superblocks(), 3, 4, 4, bitmap);
    Gate { members: Members::new(7, 8), setup, gate }
}

impl Gate {
    fn state(&self) -> State {
        State {
            failed: self.members.failed,
            rebuilding: self.members.rebuilding,
            by_bitmap: false,
            rebuilt_to: Sector(0),
            replacing: self.members.replacing,
            replaced_to: Sector(self.members.replaced_to(&self.setup)),
            synced_to: Sector::MAX,
            journal: false,
            journal_tail: 0,
        }
    }

    /// Carries out the update that is wanted; what it says.
    fn update(&mut self) -> Option<Superblock> {
        let state = self.state();
        let Self { setup, members, gate } = self;
        if !gate.wants_update() {
            return None;
        }
        gate.begin_update(setup);
        assert_ne!(gate.seal(setup, members, &state, None), Written::Nothing);
        let said = *gate.newest();
        let recorded = gate.superblock_recorded(members);
        gate.flag_recorded(setup, members, recorded.written);
        gate.note_holds(setup, members);
        Some(said)
    }

    fn ask(&mut self, owner: u32, range: (u64, u64)) -> bool {
        self.gate.enter(&self.setup, owner, range);
        self.gate.want_dirty();
        self.gate.admit_or_wait(&self.setup, owner)
    }
}

#[test]
fn a_write_waits_until_the_superblocks_say_dirty() {
    let mut gate = gate(Consistency::Resync);
    assert!(gate.gate.asks());
    assert!(!gate.ask(0, (0, 8)));
    assert_eq!(gate.gate.stand(0), Stand::Waiting);
    let said = gate.update().expect("an update is wanted");
    assert!(!said.clean);
    assert_eq!(gate.gate.pop_waiting(), Some(0));
    assert!(gate.gate.admit_or_wait(&gate.setup, 0));
    assert_eq!(gate.gate.stand(0), Stand::Admitted);
    assert!(gate.ask(1, (8, 16)), "they say so already");
    assert_eq!(gate.update(), None);
}

#[test]
fn a_quiet_array_is_marked_clean_after_a_flush() {
    let mut gate = gate(Consistency::Resync);
    gate.ask(0, (0, 8));
    gate.update();
    assert_eq!(gate.gate.clean_due(&gate.setup, SECOND), Err(None), "a write is under way");
    assert!(gate.gate.ended(0, SECOND), "the last");
    assert!(!gate.gate.ended(0, SECOND), "once");
    let at = gate.gate.clean_at(&gate.setup, SECOND).expect("it is to be marked clean");
    assert_eq!(gate.gate.clean_due(&gate.setup, SECOND), Err(Some(at)), "too early");
    assert_eq!(gate.gate.clean_due(&gate.setup, at), Ok(()));
    assert!(gate.gate.wants_update());
    assert_eq!(gate.gate.begin_update(&gate.setup), (true, true), "flushed first");
    // A write that asks now goes on with what is said: dirty.
    assert!(!gate.gate.want_dirty());
    assert!(gate.gate.admit_or_wait(&gate.setup, 1));
}

#[test]
fn bits_are_asked_for_besides_the_flag() {
    let mut gate = gate(Consistency::Bitmap { chunk: Sectors(8) });
    assert!(!gate.ask(0, (0, 8)));
    gate.update();
    gate.gate.pop_waiting();
    assert!(!gate.gate.admit_or_wait(&gate.setup, 0), "its bit is not durable");
    let page = gate.gate.bitmap.next_block().expect("it is to be written");
    gate.gate.bitmap.seal(page);
    gate.gate.bitmap.recorded(page);
    assert!(gate.gate.admit_or_wait(&gate.setup, 0));
}

#[test]
fn replies_wait_until_a_failure_is_recorded() {
    let mut gate = gate(Consistency::Resync);
    gate.members.fail(MemberIndex(1));
    gate.gate.state_changed(&gate.setup, &gate.members);
    gate.gate.note_holds(&gate.setup, &gate.members);
    assert!(gate.gate.holds());
    let reply = gate.gate.ask_reply(&gate.setup, &gate.members, 3);
    assert_eq!(reply, Reply::Held);
    let said = gate.update().expect("the failure is told");
    assert_eq!(MemberSet::from_words(said.failed), gate.members.failed);
    assert!(!gate.gate.holds());
    assert_eq!(gate.gate.pop_reply(), Some(3));
    assert_eq!(gate.gate.ask_reply(&gate.setup, &gate.members, 3), Reply::Goes);
    // All are lost: nothing is recorded any more, and nothing that ends is promised.
    for member in [0, 2] {
        gate.members.fail(MemberIndex(member));
    }
    gate.members.stopped = true;
    assert_eq!(gate.gate.ask_reply(&gate.setup, &gate.members, 3), Reply::Failed);
}

#[test]
fn an_orderly_stop_ends_clean() {
    let mut gate = gate(Consistency::Resync);
    gate.ask(0, (0, 8));
    gate.update();
    gate.gate.ended(0, SECOND);
    assert!(gate.gate.begin_stop() && !gate.gate.begin_stop());
    assert!(gate.gate.is_stopping());
    gate.gate.stop_quiet(&gate.setup, &gate.members);
    let said = gate.update().expect("it is marked clean");
    assert!(said.clean);
    assert!(gate.gate.is_stopped());
}

#[test]
fn a_drive_that_was_exchanged_is_two_events_behind() {
    let mut gate = gate(Consistency::Resync);
    let events = gate.gate.newest().events;
    gate.gate.member_swapped();
    gate.gate.state_changed(&gate.setup, &gate.members);
    let mut updates = 0;
    while gate.update().is_some() {
        updates += 1;
        assert!(updates < 5);
    }
    assert_eq!((updates, gate.gate.newest().events), (2, events + 2));
}

#[test]
fn a_flag_is_told_once_and_a_flush_that_is_late_counts_for_nothing() {
    let mut gate = gate(Consistency::Resync);
    assert!(gate.gate.want_dirty() && !gate.gate.want_dirty(), "it is asked for");
    gate.update();
    assert!(!gate.gate.want_dirty(), "they say so");
    // Finding clean while a write asks: they must be told again.
    gate.gate.enter(&gate.setup, 0, (0, 8));
    assert!(!gate.gate.is_quiet());
    gate.gate.ended(0, SECOND);
    assert!(gate.gate.is_quiet());
    assert_eq!(gate.gate.clean_due(&gate.setup, Time(1 << 60)), Ok(()));
    assert_eq!(gate.gate.clean_due(&gate.setup, Time(1 << 60)), Err(None), "it is being told");
    assert_eq!(gate.gate.clean_at(&gate.setup, SECOND), None);
    assert!(gate.gate.wants_update());
    gate.gate.begin_update(&gate.setup);
    assert!(!gate.gate.wants_update(), "one at a time");
    let state = gate.state();
    let written = gate.gate.seal(&gate.setup, &gate.members, &state, None);
    assert_eq!(written, Written::New(MemberSet::NONE));
    assert!(gate.gate.newest().clean);
    assert!(gate.gate.want_dirty(), "clean is on its way");
    let recorded = gate.gate.superblock_recorded(&gate.members);
    assert!(recorded.written && recorded.is_new);
    gate.gate.flag_recorded(&gate.setup, &gate.members, true);
    assert!(!gate.gate.admit_or_wait(&gate.setup, 0));
    assert!(!gate.update().expect("once more").clean);
    assert!(gate.gate.admit_or_wait(&gate.setup, 0));
}

#[test]
fn the_time_of_rest_counts_from_the_last_write() {
    let mut gate = gate(Consistency::Resync);
    gate.ask(0, (0, 8));
    gate.ask(1, (8, 16));
    gate.update();
    let rest = gate.setup.settings.clean_after;
    assert!(!gate.gate.ended(0, Time(7)) && gate.gate.ended(1, Time(9)));
    assert_eq!(gate.gate.clean_at(&gate.setup, Time(3)), Some(Time(9) + rest));
    assert_eq!(gate.gate.clean_at(&gate.setup, Time(30)), Some(Time(30) + rest));
    let at = Time(9) + rest;
    assert_eq!(gate.gate.clean_due(&gate.setup, Time(at.0 - 1)), Err(Some(at)));
    assert_eq!(gate.gate.clean_due(&gate.setup, at), Ok(()));
    assert_eq!(after(Time(u64::MAX - 1), Nanos(5)), Time(u64::MAX));
}

#[test]
fn replies_are_held_for_failures_exchanges_and_stops() {
    let mut failed = gate(Consistency::Resync);
    assert!(!failed.gate.is_unrecorded(&failed.setup, &failed.members));
    failed.members.fail(MemberIndex(1));
    assert!(failed.gate.is_unrecorded(&failed.setup, &failed.members), "not known yet");
    failed.gate.state_changed(&failed.setup, &failed.members);
    failed.members.begin_rebuild(MemberIndex(1), None);
    assert!(failed.gate.is_unrecorded(&failed.setup, &failed.members), "it was away");
    let mut swapped = gate(Consistency::Resync);
    swapped.gate.member_swapped();
    assert!(swapped.gate.is_unrecorded(&swapped.setup, &swapped.members));
    let mut none = gate(Consistency::None);
    none.members.fail(MemberIndex(1));
    assert!(!none.gate.is_unrecorded(&none.setup, &none.members) && !none.gate.asks());
    none.gate.begin_stop();
    none.gate.note_holds(&none.setup, &none.members);
    assert!(none.gate.holds() && none.gate.asks(), "until what is under way has ended");
    none.gate.stop_quiet(&none.setup, &none.members);
    assert!(!none.gate.holds() && !none.gate.is_stopping());
    assert!(none.gate.wants_update(), "a flush alone");
    assert_eq!(none.gate.begin_update(&none.setup), (true, false));
    none.gate.superblock_recorded(&none.members);
    assert!(none.gate.flag_recorded(&none.setup, &none.members, false));
    assert!(none.gate.is_stopped());
}

#[test]
fn what_is_given_up_is_wanted_no_more() {
    let mut gate = gate(Consistency::Resync);
    gate.members.fail(MemberIndex(1));
    gate.gate.state_changed(&gate.setup, &gate.members);
    assert!(gate.gate.wants_update());
    gate.gate.give_up(&gate.setup, &gate.members);
    assert!(!gate.gate.wants_update() && gate.gate.holds());
    gate.gate.set_wanted(true);
    gate.members.fail(MemberIndex(0));
    gate.members.fail(MemberIndex(2));
    gate.members.stopped = true;
    assert!(gate.gate.wants_update());
    gate.gate.begin_update(&gate.setup);
    let state = gate.state();
    let written = gate.gate.seal(&gate.setup, &gate.members, &state, None);
    assert_eq!(written, Written::Nothing, "the array is lost");
    let recorded = gate.gate.superblock_recorded(&gate.members);
    assert_eq!(recorded, Recorded { written: false, is_new: false, taking_over: None });
}

#[test]
fn superblocks_go_to_members_and_to_what_replaces_them() {
    let mut gate = gate(Consistency::Resync);
    let goes = |gate: &Gate| {
        (0..7)
            .filter(|device| gate.gate.superblock_of(&gate.setup, MemberIndex(*device)).is_some())
            .collect::<Vec<_>>()
    };
    assert_eq!(goes(&gate), [0, 1, 2, 6]);
    let one = MemberIndex(1);
    gate.members.begin_replace(one, gate.setup.replacement(one), (0, 0));
    assert!(gate.gate.state_changed(&gate.setup, &gate.members));
    assert!(!gate.gate.is_unrecorded(&gate.setup, &gate.members));
    gate.gate.begin_update(&gate.setup);
    let state = gate.state();
    gate.gate.seal(&gate.setup, &gate.members, &state, Some(one));
    assert_eq!(goes(&gate), [0, 1, 2, 4, 6]);
    let said = gate.gate.newest();
    assert_eq!((said.replacing, said.replaced_to), ([0b10, 0], Sector(0)));
    gate.members.replacing.remove(one);
    assert!(gate.gate.is_unrecorded(&gate.setup, &gate.members), "one that failed is named");
    let recorded = gate.gate.superblock_recorded(&gate.members);
    assert_eq!(recorded.taking_over, Some(one));
    assert!(gate.gate.is_unrecorded(&gate.setup, &gate.members), "one that failed is named");
    let said = gate.update().expect("it is named no more");
    assert_eq!(said.replacing, [0; 2]);
    assert_eq!(goes(&gate), [0, 1, 2, 6]);
    assert!(!gate.gate.is_unrecorded(&gate.setup, &gate.members));
    // It failed, and a fresh drive came before that was told.
    gate.members.fail(MemberIndex(1));
    gate.gate.state_changed(&gate.setup, &gate.members);
    gate.members.begin_rebuild(MemberIndex(1), None);
    assert!(
        gate.gate.state_changed(&gate.setup, &gate.members),
        "who joined has none of the bitmap"
    );
    assert!(!gate.gate.state_changed(&gate.setup, &gate.members));
    assert_eq!(goes(&gate), [0, 2, 6]);
    let events = gate.gate.newest().events;
    let said = gate.update().expect("it is told as failed");
    assert_eq!(said.failed, [0b10, 0]);
    assert_eq!(goes(&gate), [0, 1, 2, 6]);
    assert_eq!(gate.gate.left_at(MemberIndex(1)), events + 1);
    let said = gate.update().expect("that is not so any more");
    assert_eq!((said.failed, said.rebuilding), ([0, 0], [0b10, 0]));
    assert_eq!(gate.gate.left_at(MemberIndex(1)), said.events + 1, "it has part in all");
    assert_eq!(gate.update(), None);
}

#[test]
fn a_start_repeats_the_newest_superblock_first() {
    let mut gate = gate(Consistency::Resync);
    let newest = Superblock { events: 9, clean: true, failed: [0b10, 0], ..first_superblock() };
    let mut failed = MemberSet::NONE;
    [1, 2].iter().for_each(|member| failed.insert(MemberIndex(*member)));
    gate.gate.begin_with(newest, true, 5, failed);
    failed.iter().for_each(|member| gate.members.fail(member));
    assert_eq!(gate.gate.left_at(MemberIndex(1)), 9);
    assert!(gate.gate.is_unrecorded(&gate.setup, &gate.members));
    gate.gate.set_wanted(true);
    assert_eq!(gate.gate.begin_update(&gate.setup), (false, true));
    let state = gate.state();
    assert_eq!(gate.gate.seal(&gate.setup, &gate.members, &state, None), Written::Again);
    assert_eq!(gate.gate.newest().events, 9);
    let recorded = gate.gate.superblock_recorded(&gate.members);
    assert!(recorded.written && !recorded.is_new);
    let said = gate.update().expect("then what is new");
    assert_eq!((said.events, said.failed, said.history[0].id), (10, [0b110, 0], 5));
    assert_eq!(gate.gate.left_at(MemberIndex(2)), 10);
    let mut dirty = self::gate(Consistency::Resync);
    dirty.gate.begin_with(Superblock { clean: false, ..newest }, false, 5, MemberSet::NONE);
    assert!(!dirty.gate.want_dirty(), "they say so, once they are written anew");
}
