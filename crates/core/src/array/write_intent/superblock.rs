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

use std::hash::{Hash, Hasher};

use super::Recorded;
use crate::array::member::Members;
use crate::array::member_set::MemberSet;
use crate::array::setup::Setup;
use crate::consistency::lineage::{all_in_service, begin_epoch, note_leaving};
use crate::contract::Superblock;
use crate::units::{MemberIndex, Sector};

/// How far an update has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Stage {
    Idle,
    /// Everything is being flushed first.
    Flushing,
    /// The records wait to go out, or are on their way.
    Writing,
}

/// The state of an array, as its parts have it, for the superblocks.
#[derive(Clone, Copy, Debug)]
pub(in crate::array) struct State {
    pub(in crate::array) failed: MemberSet,
    /// Members that are to be rebuilt at the next start; by the bitmap, if all are, and good below this.
    pub(in crate::array) rebuilding: MemberSet,
    pub(in crate::array) by_bitmap: bool,
    pub(in crate::array) rebuilt_to: Sector,
    /// Members whose replacement is being filled; below this these hold what their members do.
    pub(in crate::array) replacing: MemberSet,
    pub(in crate::array) replaced_to: Sector,
    pub(in crate::array) synced_to: Sector,
    pub(in crate::array) journal: bool,
    pub(in crate::array) journal_tail: u64,
}

/// What goes out as an update.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::array) enum Written {
    /// There is nothing to say any more.
    Nothing,
    /// The newest superblock once more.
    Again,
    /// Something new, which names these members as failed.
    New(MemberSet),
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
    /// A member whose replacement takes over when the round under way is recorded.
    pub(super) taking_over: Option<MemberIndex>,
    /// Members that were being rebuilt, and replaced, at the last look.
    joined: [MemberSet; 2],
    /// Tells the epoch that begins with the next update; 0 when none begins.
    nonce: u64,
}

/// The newest events are a counter: all others count from them.
impl Hash for Update {
    fn hash<H: Hasher>(&self, key: &mut H) {
        let Self { stage, flushed, wanted, level, recorded, sent, gone, left, .. } = self;
        let Self { swaps, taking_over, joined, nonce, .. } = self;
        (stage, flushed, wanted, level, gone, swaps, taking_over, joined, nonce).hash(key);
        let behind = |events: u64| sent.events.wrapping_sub(events);
        left.iter().for_each(|left| left.map(behind).hash(key));
        for one in [recorded, sent] {
            let mut from_newest = Superblock { events: behind(one.events), ..*one };
            from_newest.bitmap_since = behind(one.bitmap_since);
            for epoch in from_newest.history.iter_mut().filter(|epoch| epoch.id != 0) {
                epoch.from = behind(epoch.from);
            }
            from_newest.hash(key);
        }
    }
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

    pub(super) fn is_idle(&self) -> bool {
        self.stage == Stage::Idle
    }

    /// Begins an update, which flushes everything first or not.
    pub(super) fn begin(&mut self, flush: bool) {
        self.flushed = flush;
        self.stage = if flush { Stage::Flushing } else { Stage::Writing };
    }

    /// Members failed or joined; true when some joined.
    pub(super) fn state_changed(&mut self, members: &Members) -> bool {
        let known = MemberSet::from_words(self.sent.failed);
        self.gone = self.gone.union(members.failed.without(known));
        self.wanted = true;
        let now = [members.rebuilding, members.replacing];
        let before = std::mem::replace(&mut self.joined, now);
        now.iter().zip(before).any(|(now, before)| !now.is_within(before))
    }

    /// Nothing goes out.
    pub(super) fn seal_nothing(&mut self) -> Written {
        self.stage = Stage::Flushing;
        Written::Nothing
    }

    /// Settles what goes out.
    pub(super) fn seal(
        &mut self,
        mut sent: Superblock,
        taking_over: Option<MemberIndex>,
    ) -> Written {
        sent.events += 1;
        self.go_on(&mut sent);
        self.stage = Stage::Writing;
        if self.level {
            self.sent = self.recorded;
            return Written::Again;
        }
        self.wanted = false;
        self.sent = sent;
        self.taking_over = taking_over;
        self.note_left();
        Written::New(MemberSet::from_words(sent.failed))
    }

    /// The first events that a member out of service had no part in.
    pub(super) fn left_at(&self, member: MemberIndex) -> u64 {
        self.left.get(member.at()).copied().flatten().unwrap_or(self.sent.events + 1)
    }

    /// What goes to a device. A replacement gets what names it.
    /// What says that a member is in service goes to no drive that came into its place since it failed:
    /// a start repeats the newest superblock, and by then a fresh drive may be there.
    pub(super) fn superblock_of(&self, setup: &Setup, device: MemberIndex) -> Option<Superblock> {
        let replacing = MemberSet::from_words(self.sent.replacing);
        let is_filled = replacing.iter().any(|member| setup.replacement(member) == device);
        let failed = MemberSet::from_words(self.sent.failed);
        let exchanged = self.gone.contains(device) && !failed.contains(device);
        let named = setup.is_member(device) && !exchanged || device == setup.journal();
        (named || is_filled).then_some(self.sent)
    }

    /// Every member in service has answered.
    pub(super) fn ended(&mut self, members: &Members) -> Recorded {
        let written = self.stage == Stage::Writing;
        self.stage = Stage::Idle;
        let (levelled, was) = (self.level, self.recorded);
        let is_new = written && !levelled;
        if written {
            self.recorded = self.sent;
            self.level = false;
            debug_assert!(levelled || was.events < self.recorded.events, "one event more");
        }
        if !is_new {
            return Recorded { written, is_new, taking_over: None };
        }
        let recorded = MemberSet::from_words(self.recorded.failed);
        self.gone = self.gone.without(recorded);
        self.swaps = self.swaps.saturating_sub(1);
        self.wanted |= self.swaps > 0;
        // Who came back meanwhile is named as failed; that is not so any more.
        self.wanted |= !recorded.is_within(members.failed);
        self.wanted |= !MemberSet::from_words(self.recorded.replacing).is_within(members.replacing);
        Recorded { written, is_new, taking_over: self.taking_over.take() }
    }
}
