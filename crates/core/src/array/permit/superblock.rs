//! The superblocks: one update of all of them at a time.
//!
//! Fault model: as [`super`]; a crash may leave an update on any of the members.
//! Why it is safe: an update carries one event more than the one before, and begins only when every
//! member in service has answered that one: so all in service are at the newest events or one
//! behind, and one that is further behind missed something. A member that fails is named in an
//! update of its own before another drive can be named in service at its place: so what it carries
//! is two behind, or the newest says it failed. What loses the array is not recorded: nothing is
//! written any more, and what ends from then on is not answered well, so that whoever brings the
//! lost members back finds everything that was answered.
//! Tests: `tests/consistency.rs::members_in_service_are_never_two_events_apart` and
//! `tests/assembly.rs::every_set_of_damaged_and_stale_copies_is_voted_on`.

use super::{Array, Flag, Stop};
use crate::array::member_set::MemberSet;
use crate::array::rounds::Purpose;
use crate::bugs::Bug;
use crate::consistency::lineage::{all_in_service, begin_epoch, note_leaving};
use crate::contract::Superblock;
use crate::units::{MemberIndex, Sector};

/// How far an update has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Idle,
    /// Everything is being flushed first.
    Flushing,
    /// The records wait to go out, or are on their way.
    Writing,
}

/// What all superblocks say, and what they are about to.
#[derive(Clone, Debug)]
pub(super) struct Update {
    stage: Stage,
    /// The one under way flushed everything first, and nothing was written since.
    pub(super) flushed: bool,
    /// What has changed is in no update yet.
    pub(super) wanted: bool,
    /// The first update after assembly repeats the newest superblock, for members that are one
    /// behind.
    pub(super) level: bool,
    /// Every member in service has this, or what was sent after it.
    pub(super) recorded: Superblock,
    /// What was sent last.
    pub(super) sent: Superblock,
    /// Members that failed and are in no update yet as failed, whatever became of them since.
    pub(super) gone: MemberSet,
    /// The events of the update that named each member as failed, or later; none for those in
    /// service.
    pub(super) left: Vec<Option<u64>>,
    /// Updates to make before a drive that was exchanged is far enough behind.
    pub(super) swaps: u8,
    /// A member whose replacement gets its first superblock in the round under way.
    pub(super) taking_over: Option<MemberIndex>,
    /// Members that were being rebuilt, and replaced, at the last look.
    joined: [MemberSet; 2],
    /// Tells the epoch that begins with the next update; 0 when none begins.
    nonce: u64,
}

impl Update {
    pub(super) fn new(members: u16) -> Self {
        let first = super::first_superblock();
        Self {
            stage: Stage::Idle,
            flushed: false,
            wanted: false,
            level: false,
            recorded: first,
            sent: first,
            gone: MemberSet::NONE,
            left: vec![None; usize::from(members)],
            swaps: 0,
            taking_over: None,
            joined: [MemberSet::NONE; 2],
            nonce: 0,
        }
    }

    /// What was found on the members, at the start.
    pub(super) fn begin_with(&mut self, newest: Superblock, level: bool, nonce: u64) {
        // None is 0.
        self.nonce = nonce.max(1);
        self.recorded = newest;
        self.sent = newest;
        self.level = level;
        self.joined[0] = MemberSet::from_words(newest.rebuilding);
        self.note_left();
    }

    /// Notes which members were named as failed first by what was sent last.
    fn note_left(&mut self) {
        let failed = MemberSet::from_words(self.sent.failed);
        for (member, left) in (0..).map(MemberIndex).zip(&mut self.left) {
            *left = failed.contains(member).then(|| left.unwrap_or(self.sent.events));
        }
    }

    /// Settles the history of what is about to be sent.
    fn go_on(&mut self, sent: &mut Superblock) {
        if self.level {
            return;
        }
        let [failed, known] = [sent.failed, self.recorded.failed].map(MemberSet::from_words);
        if !failed.is_within(known) {
            note_leaving(sent);
        }
        match std::mem::take(&mut self.nonce) {
            0 => {}
            nonce => begin_epoch(sent, nonce),
        }
        let recorded = &self.recorded;
        let states = [sent.failed, sent.rebuilding, recorded.failed, recorded.rebuilding];
        if states.iter().flatten().all(|word| *word == 0) {
            all_in_service(sent);
        }
    }

    pub(super) fn add_to_key(&self, add: &mut dyn FnMut(u64)) {
        let flags = [self.flushed, self.wanted, self.level];
        let flags = flags.iter().fold(0, |sum, flag| sum << 1 | u64::from(*flag));
        add(flags | (self.stage as u64) << 8 | u64::from(self.swaps) << 16);
        for one in [&self.recorded, &self.sent] {
            add(u64::from(one.clean) | u64::from(one.journal) << 1);
            [one.failed, one.rebuilding].iter().flatten().for_each(|word| add(*word));
            [one.rebuilt_to, one.synced_to].iter().for_each(|sector| add(sector.0));
            // The newest events are a counter; how far back the bitmap and epochs reach from them is not.
            add(one.events - one.bitmap_since.min(one.events));
            for epoch in one.history.iter().take_while(|epoch| epoch.id != 0) {
                add(epoch.id);
                add(one.events - epoch.from.min(one.events));
            }
            add(u64::from(one.left));
        }
        self.gone.words().iter().for_each(|word| add(*word));
        add(self.nonce);
    }
}

impl Array {
    /// The state of the array as superblocks tell it from now on.
    fn view(&self) -> Superblock {
        let Update { recorded, gone, .. } = &self.permits.update;
        let flushed = self.permits.update.flushed || self.setup.has_bug(Bug::CleanUnflushed);
        let failed = match self.setup.has_bug(Bug::FailureNotRecorded) {
            true => recorded.failed,
            false => self.members.failed.union(*gone).words(),
        };
        Superblock {
            events: recorded.events,
            failed,
            rebuilding: self.members.rebuilt_again(&self.setup).without(*gone).words(),
            clean: match self.permits.flag {
                Flag::Clean => true,
                Flag::Cleaning => flushed,
                Flag::Marking | Flag::Dirty => false,
            },
            journal: self.is_journal_used(),
            by_bitmap: self
                .members
                .rebuilt_again(&self.setup)
                .iter()
                .all(|member| self.members.is_rebuilt_by_bitmap(member)),
            rebuilt_to: Sector(self.members.rebuilt_to(&self.setup)),
            synced_to: Sector(self.synced_to()),
            journal_tail: self.journal_tail(),
            bitmap_since: self.permits.bitmap.recorded_since(),
            history: recorded.history,
            left: recorded.left,
        }
    }

    /// The state of the array as a member's superblock is to tell it: what the driver writes to
    /// every member of a new array.
    pub fn superblock(&self) -> Superblock {
        self.view()
    }

    /// The newest superblock that the members have, or get.
    pub(crate) fn newest_superblock(&self) -> &Superblock {
        &self.permits.update.sent
    }

    /// A member failed, came back, or is rebuilt further: the superblocks must tell.
    pub(in crate::array) fn state_changed(&mut self) {
        self.permits.asks |= self.members.stopped;
        if !self.setup.settings.consistency.has_superblocks() {
            return;
        }
        let update = &mut self.permits.update;
        let known = MemberSet::from_words(update.sent.failed);
        update.gone = update.gone.union(self.members.failed.without(known));
        update.wanted = true;
        let now = [self.members.rebuilding, self.members.replacing];
        let before = std::mem::replace(&mut update.joined, now);
        if now.iter().zip(before).any(|(now, before)| !now.is_within(before)) {
            self.repeat_bitmap();
        }
        self.note_holds();
        if self.permits.holds {
            self.release_when_lost();
        }
        self.next_update();
    }

    /// A member's replacement has taken its place: the drive that was there before must never be
    /// taken for it again.
    pub(in crate::array) fn member_swapped(&mut self) {
        if self.setup.settings.consistency.has_superblocks() {
            self.permits.update.swaps = 2;
            self.state_changed();
        }
    }

    /// Begins the next update, if one is wanted and none is under way.
    pub(super) fn next_update(&mut self) {
        let permits = &mut self.permits;
        let update = &mut permits.update;
        if update.stage != Stage::Idle {
            return;
        }
        let cleaning = permits.flag == Flag::Cleaning || permits.stop == Stop::Flushing;
        let flush = cleaning && !update.level;
        if !update.wanted && !flush {
            return;
        }
        if self.members.has_lost(&self.setup) {
            self.release_when_lost();
            return;
        }
        let write = self.setup.settings.consistency.has_superblocks();
        let flush = flush && (!self.setup.has_bug(Bug::CleanUnflushed) || !write);
        self.permits.update.flushed = flush;
        self.permits.update.stage = if flush { Stage::Flushing } else { Stage::Writing };
        self.start_round(Purpose::Superblock, flush, write);
    }

    /// The records of an update are about to go out: settles what they say; false when there is
    /// nothing to say any more.
    pub(in crate::array) fn seal_update(&mut self) -> bool {
        let permits = &self.permits;
        let clean = permits.flag == Flag::Cleaning || permits.stop == Stop::Flushing;
        let said = clean && (permits.update.flushed || self.setup.has_bug(Bug::CleanUnflushed));
        if !permits.update.wanted && !said || self.members.has_lost(&self.setup) {
            self.permits.update.stage = Stage::Flushing;
            return false;
        }
        let mut sent = self.view();
        sent.events += 1;
        self.permits.update.go_on(&mut sent);
        let taking_over = self.taking_over();
        let update = &mut self.permits.update;
        update.stage = Stage::Writing;
        if update.level {
            update.sent = update.recorded;
        } else {
            update.wanted = false;
            update.sent = sent;
            update.taking_over = taking_over;
            update.note_left();
            self.log_state_written();
            self.restoring_said(MemberSet::from_words(sent.failed));
        }
        true
    }

    /// The first events that a member out of service had no part in.
    pub(super) fn left_at(&self, member: MemberIndex) -> u64 {
        let update = &self.permits.update;
        update.left.get(member.at()).copied().flatten().unwrap_or(update.sent.events + 1)
    }

    /// What goes to a member. A replacement is named by no superblock until it is about to take over.
    /// What says that a member is in service goes to no drive that came into its place since it failed:
    /// a start repeats the newest superblock, and by then a fresh drive may be there.
    pub(in crate::array) fn superblock_of(&self, device: MemberIndex) -> Option<Superblock> {
        let update = &self.permits.update;
        let takes_over = update.taking_over.map(|member| self.setup.replacement(member));
        let failed = MemberSet::from_words(update.sent.failed);
        let exchanged = update.gone.contains(device) && !failed.contains(device);
        let named = self.setup.is_member(device) && !exchanged || device == self.setup.journal();
        (named || takes_over == Some(device)).then_some(update.sent)
    }

    /// Every member in service has answered.
    pub(in crate::array) fn superblock_recorded(&mut self) {
        let update = &mut self.permits.update;
        let written = update.stage == Stage::Writing;
        update.stage = Stage::Idle;
        if written {
            let (levelled, was) = (update.level, update.recorded);
            update.recorded = update.sent;
            update.level = false;
            debug_assert!(levelled || was.events < update.recorded.events, "one event more");
            if !levelled {
                let recorded = MemberSet::from_words(update.recorded.failed);
                update.gone = update.gone.without(recorded);
                update.swaps = update.swaps.saturating_sub(1);
                update.wanted |= update.swaps > 0;
                // Who came back meanwhile is named as failed; that is not so any more.
                update.wanted |= !recorded.is_within(self.members.failed);
                let taking_over = update.taking_over.take();
                self.log_state_recorded();
                if let Some(member) = taking_over {
                    self.may_take_over(member);
                }
                self.restoring_recorded();
                self.bitmap_since_recorded();
            }
        }
        self.flag_recorded(written);
        self.note_holds();
        self.release_replies();
        self.release_writes();
        self.watch_quiet();
        self.next_update();
    }

    /// What the end of a round means for the flag that says whether writes are under way.
    fn flag_recorded(&mut self, written: bool) {
        let clean = self.permits.update.recorded.clean;
        let lost = self.members.has_lost(&self.setup);
        match self.permits.flag {
            Flag::Cleaning if clean => self.permits.flag = Flag::Clean,
            Flag::Marking if written && !clean => self.permits.flag = Flag::Dirty,
            _ => {}
        }
        let keeps = self.setup.settings.consistency.has_superblocks();
        let flushed = self.permits.update.flushed || self.setup.has_bug(Bug::CleanUnflushed);
        if self.permits.stop == Stop::Flushing && flushed && !lost && (!keeps || written && clean) {
            self.stop_done();
        }
    }

    /// Nothing is recorded any more: what was held back for it is answered.
    fn release_when_lost(&mut self) {
        if self.members.has_lost(&self.setup) {
            self.permits.update.wanted = false;
            self.note_holds();
            self.replay_recorded();
            self.release_replies();
            self.release_writes();
        }
    }
}
