//! What must be recorded before a write goes out, and before it is answered.
//!
//! Fault model: a crash may come at any moment, and a member may fail at any I/O; what was written
//! and not flushed may be lost or not, sector by sector.
//! Why it is safe: a write goes to the members only when the superblocks of all of them say that
//! writes are under way, and, with a bitmap, when every bit of its range is durable on all of them;
//! it counts from the moment it asks until its last I/O has ended, and as long as it counts neither
//! flag nor bit is taken back. What ends while the failure of a member is not recorded on all others
//! is answered only when it is.
//! Tests: `tests/consistency.rs::no_write_goes_out_before_the_array_is_marked_dirty`,
//! `tests/consistency.rs::bits_are_durable_before_data_in_any_order` and
//! `tests/consistency.rs::a_failure_is_recorded_before_anything_that_ends_after_it_is_answered`.

mod bitmap;
mod start;
mod superblock;

pub(super) use bitmap::{Bitmap, check_bitmap};
pub(crate) use start::Start;

use std::collections::VecDeque;
use std::hash::{Hash, Hasher};

use super::member::Members;
use super::member_set::MemberSet;
use super::setup::Setup;
use crate::bugs::Bug;
use crate::contract::{Epoch, History, Superblock};
use crate::units::{MemberIndex, Nanos, Time};
use superblock::Update;
pub(super) use superblock::{State, Written};

/// What the superblocks say of writes under way, and what is being made of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Flag {
    /// They say there are none.
    Clean,
    /// They are being told that there are; writes wait.
    Marking,
    /// They say there are.
    Dirty,
    /// Everything is being flushed so that they can be told there are none.
    Cleaning,
}

/// How far a write has come with its permission.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Stand {
    /// It has not asked, or has ended.
    None,
    /// It waits, and counts already.
    Waiting,
    /// It may go out.
    Admitted,
}

/// What becomes of a reply that asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reply {
    /// It goes out.
    Goes,
    /// It is held back until what it depends on is recorded.
    Held,
    /// It goes out as failed: what it depends on is not recorded any more.
    Failed,
}

/// What the end of an update of the superblocks means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Recorded {
    /// Superblocks were written, and not only everything flushed.
    pub(super) written: bool,
    /// They say something new.
    pub(super) is_new: bool,
    /// The member whose replacement they say has everything.
    pub(super) taking_over: Option<MemberIndex>,
}

/// How an orderly stop is coming along.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Stop {
    No,
    /// Changes under way go on to their end.
    Waiting,
    /// Everything is being flushed, and marked clean.
    Flushing,
    Done,
}

/// What is recorded, what is to be, and who waits for it.
#[derive(Clone, Debug)]
pub(super) struct WriteIntentGate {
    /// Writes ask before they go out: superblocks are kept, or nothing is written any more.
    asks: bool,
    /// Replies to changes ask before they go out.
    holds: bool,
    flag: Flag,
    stop: Stop,
    /// By request (mirrors) or plan (levels with parity).
    stands: Vec<Stand>,
    /// What each writes: sectors of the members for levels with parity, of the array for mirrors.
    ranges: Vec<(u64, u64)>,
    waiting: VecDeque<u32>,
    /// Requests that are done, to be answered when a member's failure is recorded.
    held_replies: VecDeque<u32>,
    /// Writes that have asked and not ended.
    in_flight: u32,
    /// When the last write ended.
    quiet_since: Time,
    update: Update,
    pub(super) bitmap: Bitmap,
}

/// Since when nothing was written is a matter of time.
impl Hash for WriteIntentGate {
    fn hash<H: Hasher>(&self, key: &mut H) {
        let Self { holds, flag, stop, stands, ranges, waiting, held_replies, in_flight, .. } = self;
        (holds, flag, stop, stands, waiting, held_replies, in_flight).hash(key);
        let asking = stands.iter().zip(ranges).filter(|(stand, _)| **stand != Stand::None);
        asking.for_each(|(_, range)| range.hash(key));
        (&self.update, &self.bitmap).hash(key);
    }
}

impl WriteIntentGate {
    pub(super) fn new(
        asks: bool,
        members: u16,
        owners: u32,
        requests: u32,
        bitmap: Bitmap,
    ) -> Self {
        Self {
            asks,
            holds: false,
            flag: Flag::Clean,
            stop: Stop::No,
            stands: vec![Stand::None; owners as usize],
            ranges: vec![(0, 0); owners as usize],
            waiting: VecDeque::with_capacity(owners as usize),
            held_replies: VecDeque::with_capacity(requests as usize),
            in_flight: 0,
            quiet_since: Time::ZERO,
            update: Update::new(members),
            bitmap,
        }
    }
}

/// Writes, from when they ask until they have ended.
impl WriteIntentGate {
    /// Whether writes ask before they go out.
    #[inline(always)]
    pub(super) const fn asks(&self) -> bool {
        self.asks
    }

    /// How far a write has come with its permission.
    #[inline]
    pub(super) fn stand(&self, owner: u32) -> Stand {
        self.stands[owner as usize]
    }

    /// A write of a range asks for the first time: it counts from now on.
    pub(super) fn enter(&mut self, setup: &Setup, owner: u32, range: (u64, u64)) {
        self.stands[owner as usize] = Stand::Waiting;
        self.in_flight += 1;
        self.ranges[owner as usize] = range;
        self.bitmap.mark(range, setup.has_bug(Bug::BitmapClearBusy));
    }

    /// A write is about to go out: the superblocks must say so. True when an update is asked for.
    pub(super) fn want_dirty(&mut self) -> bool {
        match self.flag {
            Flag::Dirty | Flag::Marking => return false,
            // Nothing else was said yet, and a flush under way is not enough any more.
            Flag::Cleaning if !self.update.sent.clean => {
                self.flag = Flag::Dirty;
                self.update.flushed = false;
                return false;
            }
            Flag::Clean | Flag::Cleaning => {}
        }
        self.flag = Flag::Marking;
        self.update.wanted = true;
        true
    }

    /// Admits a write that has asked, or lets it wait.
    pub(super) fn admit_or_wait(&mut self, setup: &Setup, owner: u32) -> bool {
        if self.is_ready(setup, owner) {
            self.stands[owner as usize] = Stand::Admitted;
            return true;
        }
        self.waiting.push_back(owner);
        false
    }

    fn is_ready(&self, setup: &Setup, owner: u32) -> bool {
        let flagged = self.flag == Flag::Dirty || setup.has_bug(Bug::DirtyFlagLate);
        flagged
            && (self.bitmap.is_durable(self.ranges[owner as usize])
                || setup.has_bug(Bug::BitmapBitLate))
    }

    /// How many writes wait.
    pub(super) fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// The write that waits longest, which waits no longer.
    pub(super) fn pop_waiting(&mut self) -> Option<u32> {
        self.waiting.pop_front()
    }

    /// A write has ended; true when it had asked and was the last.
    pub(super) fn ended(&mut self, owner: u32, now: Time) -> bool {
        let stand = std::mem::replace(&mut self.stands[owner as usize], Stand::None);
        if stand == Stand::None {
            return false;
        }
        self.bitmap.release(self.ranges[owner as usize]);
        self.in_flight -= 1;
        if self.in_flight == 0 {
            self.quiet_since = now;
        }
        self.in_flight == 0
    }

    /// Whether no write has asked that has not ended.
    pub(super) const fn is_quiet(&self) -> bool {
        self.in_flight == 0
    }

    /// When the array may be marked clean, if it is to be.
    pub(super) fn clean_at(&self, setup: &Setup, now: Time) -> Option<Time> {
        let at = after(self.quiet_since.max(now), setup.settings.clean_after);
        (self.flag == Flag::Dirty).then_some(at)
    }

    /// It may be time to mark the array clean: `Ok` when an update is asked for, else when to look again.
    pub(super) fn clean_due(&mut self, setup: &Setup, now: Time) -> Result<(), Option<Time>> {
        if self.flag != Flag::Dirty || self.in_flight > 0 {
            return Err(None);
        }
        let at = after(self.quiet_since, setup.settings.clean_after);
        if at > now {
            return Err(Some(at));
        }
        self.flag = Flag::Cleaning;
        Ok(())
    }
}

/// Replies, and an orderly stop.
impl WriteIntentGate {
    /// Whether replies to changes ask before they go out.
    #[inline(always)]
    pub(super) const fn holds(&self) -> bool {
        self.holds
    }

    /// A request that is done is to be answered.
    pub(super) fn ask_reply(&mut self, setup: &Setup, members: &Members, slot: u32) -> Reply {
        if !self.is_unrecorded(setup, members) || setup.has_bug(Bug::AckBeforeRecorded) {
            return Reply::Goes;
        }
        if members.has_lost(setup) {
            // The failures that lost the array are not recorded any more: what ends now is not
            // promised to be on the members that are in service after the next start.
            return Reply::Failed;
        }
        self.held_replies.push_back(slot);
        Reply::Held
    }

    /// The reply held back longest, which is held no longer.
    pub(super) fn pop_reply(&mut self) -> Option<u32> {
        self.held_replies.pop_front()
    }

    /// Whether the failure of a member or replacement, or that one was exchanged, is not recorded on all others.
    pub(super) fn is_unrecorded(&self, setup: &Setup, members: &Members) -> bool {
        if !setup.settings.consistency.has_superblocks() || setup.has_bug(Bug::FailureNotRecorded) {
            return false;
        }
        let Update { recorded, sent, gone, swaps, .. } = &self.update;
        let known = MemberSet::from_words(recorded.failed);
        let named = [recorded, sent].map(|one| MemberSet::from_words(one.replacing));
        !gone.is_empty()
            || *swaps > 0
            || !members.failed.is_within(known)
            || named.iter().any(|named| !named.is_within(members.replacing))
    }

    /// Looks again whether replies must ask.
    pub(super) fn note_holds(&mut self, setup: &Setup, members: &Members) {
        self.holds = self.stop == Stop::Waiting || self.is_unrecorded(setup, members);
    }

    /// Whether an orderly stop waits for changes under way.
    pub(super) fn is_stopping(&self) -> bool {
        self.stop == Stop::Waiting
    }

    /// An orderly stop is over.
    pub(super) fn is_stopped(&self) -> bool {
        self.stop == Stop::Done
    }

    /// Whether an orderly stop has made everything durable.
    pub(super) fn is_stop_flushed(&self) -> bool {
        self.stop == Stop::Flushing && self.update.flushed
    }

    /// Begins an orderly stop; false when one has begun.
    pub(super) fn begin_stop(&mut self) -> bool {
        let begins = self.stop == Stop::No;
        if begins {
            self.asks = true;
            self.stop = Stop::Waiting;
        }
        begins
    }

    /// No change is left: everything is flushed, and marked clean, next.
    pub(super) fn stop_quiet(&mut self, setup: &Setup, members: &Members) {
        self.stop = Stop::Flushing;
        self.update.flushed = false;
        self.note_holds(setup, members);
        if self.flag != Flag::Clean {
            self.flag = Flag::Cleaning;
        }
        self.update.wanted |= setup.settings.consistency.has_superblocks();
    }
}

/// The superblocks.
impl WriteIntentGate {
    /// What was found on the members, at the start: the newest superblock, whether some member does not have it,
    /// what tells the epoch that begins, and members that are not in service.
    pub(super) fn begin_with(
        &mut self,
        newest: Superblock,
        level: bool,
        nonce: u64,
        failed: MemberSet,
    ) {
        self.update.begin_with(newest, level, nonce);
        self.update.gone = failed.without(MemberSet::from_words(newest.failed));
        self.flag = if newest.clean { Flag::Clean } else { Flag::Marking };
    }

    /// Whether superblocks are to be written at the start.
    pub(super) fn set_wanted(&mut self, wanted: bool) {
        self.update.wanted = wanted;
    }

    /// What superblocks say from now on.
    pub(super) fn view(&self, setup: &Setup, state: &State) -> Superblock {
        let Update { recorded, gone, .. } = &self.update;
        let flushed = self.update.flushed || setup.has_bug(Bug::CleanUnflushed);
        let failed = match setup.has_bug(Bug::FailureNotRecorded) {
            true => recorded.failed,
            false => state.failed.union(*gone).words(),
        };
        Superblock {
            events: recorded.events,
            failed,
            rebuilding: state.rebuilding.without(*gone).words(),
            clean: match self.flag {
                Flag::Clean => true,
                Flag::Cleaning => flushed,
                Flag::Marking | Flag::Dirty => false,
            },
            journal: state.journal,
            by_bitmap: state.by_bitmap,
            rebuilt_to: state.rebuilt_to,
            replacing: state.replacing.words(),
            replaced_to: state.replaced_to,
            synced_to: state.synced_to,
            journal_tail: state.journal_tail,
            bitmap_since: self.bitmap.recorded_since(),
            history: recorded.history,
            left: recorded.left,
        }
    }

    /// What was sent last.
    pub(super) const fn newest(&self) -> &Superblock {
        &self.update.sent
    }

    /// Members failed, came back, or were rebuilt further: the superblocks must tell. True when a member joined
    /// that has none of the bitmap, or an old one.
    pub(super) fn state_changed(&mut self, setup: &Setup, members: &Members) -> bool {
        self.asks |= members.stopped;
        setup.settings.consistency.has_superblocks() && self.update.state_changed(members)
    }

    /// A member's replacement has taken its place: the drive that was there before must never be
    /// taken for it again.
    pub(super) fn member_swapped(&mut self) {
        self.update.swaps = 2;
    }

    const fn is_cleaning(&self) -> bool {
        matches!(self.flag, Flag::Cleaning) || matches!(self.stop, Stop::Flushing)
    }

    /// Whether an update is wanted and none is under way.
    pub(super) fn wants_update(&self) -> bool {
        let flush = self.is_cleaning() && !self.update.level;
        self.update.is_idle() && (self.update.wanted || flush)
    }

    /// Begins the update that is wanted: whether everything is flushed, and whether superblocks are written.
    pub(super) fn begin_update(&mut self, setup: &Setup) -> (bool, bool) {
        let flush = self.is_cleaning() && !self.update.level;
        let write = setup.settings.consistency.has_superblocks();
        let flush = flush && (!setup.has_bug(Bug::CleanUnflushed) || !write);
        self.update.begin(flush);
        (flush, write)
    }

    /// The records of an update are about to go out: settles what they say. `taking_over`: a member whose
    /// replacement is to be the member when it has its superblock.
    pub(super) fn seal(
        &mut self,
        setup: &Setup,
        members: &Members,
        state: &State,
        taking_over: Option<MemberIndex>,
    ) -> Written {
        let said =
            self.is_cleaning() && (self.update.flushed || setup.has_bug(Bug::CleanUnflushed));
        if !self.update.wanted && !said || members.has_lost(setup) {
            return self.update.seal_nothing();
        }
        let sent = self.view(setup, state);
        self.update.seal(sent, taking_over)
    }

    /// The first events that a member out of service had no part in.
    pub(super) fn left_at(&self, member: MemberIndex) -> u64 {
        self.update.left_at(member)
    }

    /// What goes to a member, if anything.
    pub(super) fn superblock_of(&self, setup: &Setup, device: MemberIndex) -> Option<Superblock> {
        self.update.superblock_of(setup, device)
    }

    /// Every member in service has answered.
    pub(super) fn superblock_recorded(&mut self, members: &Members) -> Recorded {
        self.update.ended(members)
    }

    /// What the end of an update means for the flag that says whether writes are under way; true when it was the
    /// last of an orderly stop.
    pub(super) fn flag_recorded(
        &mut self,
        setup: &Setup,
        members: &Members,
        written: bool,
    ) -> bool {
        let clean = self.update.recorded.clean;
        match self.flag {
            Flag::Cleaning if clean => self.flag = Flag::Clean,
            Flag::Marking if written && !clean => self.flag = Flag::Dirty,
            _ => {}
        }
        let keeps = setup.settings.consistency.has_superblocks();
        let flushed = self.update.flushed || setup.has_bug(Bug::CleanUnflushed);
        let ends = self.stop == Stop::Flushing
            && flushed
            && !members.has_lost(setup)
            && (!keeps || written && clean);
        if ends {
            self.stop = Stop::Done;
        }
        ends
    }

    /// Nothing is recorded any more.
    pub(super) fn give_up(&mut self, setup: &Setup, members: &Members) {
        self.update.wanted = false;
        self.note_holds(setup, members);
    }

    /// Everything was flushed: an update is to say that the bitmap does not reach back beyond now.
    pub(super) fn ask_since(&mut self) {
        self.bitmap.set_next_since(self.update.sent.events + 1);
        self.update.wanted = true;
    }

    /// Whether superblocks say now how far back the bitmap reaches; bits may be cleared then. `may_clear`: no
    /// member failed meanwhile.
    pub(super) fn is_since_recorded(&mut self, may_clear: bool) -> bool {
        self.bitmap.since_recorded(self.update.recorded.bitmap_since, may_clear)
    }

    /// Whether the bitmap names everything that a member missed whose newest superblock, in which
    /// it is in service itself, has these events. Events that the others reached without it only can
    /// be its own if it went on alone.
    pub(super) fn bitmap_reaches(&self, setup: &Setup, member: MemberIndex, events: u64) -> bool {
        self.bitmap.reaches(events, self.left_at(member), setup.has_bug(Bug::ReAddTooOld))
    }
}

/// The moment `delay` after `at`.
pub(super) const fn after(at: Time, delay: Nanos) -> Time {
    Time(at.0.saturating_add(delay.0))
}

/// What a new array's superblocks say.
pub(super) fn first_superblock() -> Superblock {
    let mut history = History::default();
    history[0] = Epoch::FIRST;
    Superblock {
        events: 1,
        clean: true,
        synced_to: crate::units::Sector::MAX,
        history,
        ..Default::default()
    }
}

#[cfg(test)]
mod tests;
