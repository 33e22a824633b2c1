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

use super::Array;
use super::member_set::MemberSet;
use super::timers::Timer;
use crate::array::ios::Owner;
use crate::array::requests::changes_data;
use crate::bugs::Bug;
use crate::contract::{Epoch, Event, History, Outcome, Output, Superblock};
use crate::units::{Nanos, Time};
use superblock::Update;

/// What the superblocks say of writes under way, and what is being made of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stand {
    /// It has not asked, or has ended.
    None,
    /// It waits, and counts already.
    Waiting,
    /// It may go out.
    Permitted,
}

/// How an orderly stop is coming along.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
pub(super) struct Permits {
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

impl Permits {
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

    pub(super) fn add_to_key(&self, add: &mut dyn FnMut(u64)) {
        add(self.flag as u64 | (self.stop as u64) << 8 | u64::from(self.holds) << 16);
        self.waiting.iter().for_each(|owner| add(u64::from(*owner)));
        for (owner, stand) in self.stands.iter().enumerate() {
            if *stand != Stand::None {
                add(owner as u64 | (*stand as u64) << 32);
            }
        }
        self.held_replies.iter().for_each(|slot| add(u64::from(*slot)));
        self.update.add_to_key(add);
        self.bitmap.add_to_key(add);
    }
}

impl Array {
    /// Whether a write of a mirrored level may go out now; if not, it waits and goes on by itself.
    #[inline(always)]
    pub(super) fn permit_request(&mut self, slot: u32) -> bool {
        !self.permits.asks || self.ask(slot)
    }

    /// Whether the writes of a plan may go out now; if not, it waits and goes on by itself.
    #[inline]
    pub(super) fn permit_plan(&mut self, plan: u32) -> bool {
        !self.permits.asks || self.ask(plan)
    }

    /// Whether a request that is done may be answered now; if not, it is held back.
    #[inline(always)]
    pub(super) fn may_reply(&mut self, slot: u32) -> bool {
        !self.permits.holds || self.ask_reply(slot)
    }

    /// The writes of a mirrored request or of a plan have ended.
    #[inline(always)]
    pub(super) fn written(&mut self, owner: Owner) {
        if self.permits.asks {
            self.write_ended(owner);
        }
    }

    /// What a write that asks is going to change.
    fn written_range(&self, owner: u32) -> (u64, u64) {
        if self.setup.parities > 0 {
            return self.plan_range(owner);
        }
        let request = &self.requests[owner];
        (request.at, request.end)
    }

    fn ask(&mut self, owner: u32) -> bool {
        match self.permits.stands[owner as usize] {
            Stand::Permitted => return true,
            Stand::Waiting => return false,
            Stand::None => {}
        }
        if self.members.stopped {
            self.refuse_write(owner);
            return false;
        }
        self.permits.stands[owner as usize] = Stand::Waiting;
        self.permits.in_flight += 1;
        let range = self.written_range(owner);
        self.permits.ranges[owner as usize] = range;
        self.mark_bits(range);
        self.want_dirty();
        if self.is_ready(owner) {
            self.permits.stands[owner as usize] = Stand::Permitted;
            return true;
        }
        self.permits.waiting.push_back(owner);
        false
    }

    fn is_ready(&self, owner: u32) -> bool {
        let flagged = self.permits.flag == Flag::Dirty || self.setup.has_bug(Bug::DirtyFlagLate);
        flagged
            && (self.permits.bitmap.is_durable(self.permits.ranges[owner as usize])
                || self.setup.has_bug(Bug::BitmapBitLate))
    }

    /// A write is about to go out: the superblocks must say so.
    fn want_dirty(&mut self) {
        match self.permits.flag {
            Flag::Dirty | Flag::Marking => return,
            // Nothing else was said yet, and a flush under way is not enough any more.
            Flag::Cleaning if !self.permits.update.sent.clean => {
                self.permits.flag = Flag::Dirty;
                self.permits.update.flushed = false;
                return;
            }
            Flag::Clean | Flag::Cleaning => {}
        }
        self.permits.flag = Flag::Marking;
        self.permits.update.wanted = true;
        self.next_update();
    }

    /// Goes on with the writes for which all is recorded now.
    fn release_writes(&mut self) {
        let mut left = self.permits.waiting.len();
        while left > 0
            && let Some(owner) = self.permits.waiting.pop_front()
        {
            left -= 1;
            if self.members.stopped {
                self.write_ended_of(owner);
                self.refuse_write(owner);
            } else if self.is_ready(owner) {
                self.permits.stands[owner as usize] = Stand::Permitted;
                if self.setup.parities > 0 {
                    self.plan_permitted(owner);
                } else {
                    self.request_permitted(owner);
                }
            } else {
                self.permits.waiting.push_back(owner);
            }
        }
    }

    /// Ends a write that has not gone out to an array that takes none any more.
    fn refuse_write(&mut self, owner: u32) {
        let outcome = self.refused_outcome();
        if self.setup.parities > 0 {
            self.refuse_plan(owner, outcome);
        } else {
            self.refuse_request(owner, outcome);
        }
    }

    /// How a change to an array that takes none any more ends.
    pub(super) fn refused_outcome(&self) -> Outcome {
        if self.members.is_lost(&self.setup) { Outcome::ArrayFailed } else { Outcome::Stopped }
    }

    fn write_ended(&mut self, owner: Owner) {
        let (Owner::Request(owner) | Owner::Plan(owner)) = owner else { return };
        self.write_ended_of(owner);
    }

    fn write_ended_of(&mut self, owner: u32) {
        let stand = &mut self.permits.stands[owner as usize];
        if std::mem::replace(stand, Stand::None) == Stand::None {
            return;
        }
        let range = self.permits.ranges[owner as usize];
        self.permits.bitmap.release(range);
        self.permits.in_flight -= 1;
        if self.permits.in_flight == 0 {
            self.permits.quiet_since = self.now;
            self.watch_quiet();
        }
    }

    /// Sees that the array is marked clean, and bits cleared, when it has been quiet for long enough.
    fn watch_quiet(&mut self) {
        if self.permits.in_flight > 0 || self.members.stopped {
            return;
        }
        if self.permits.flag == Flag::Dirty {
            let at = after(self.permits.quiet_since.max(self.now), self.setup.settings.clean_after);
            self.timers.set_if_idle(Timer::Clean, at);
        }
        self.watch_bits();
    }

    /// The array may have been quiet for long enough to be marked clean.
    pub(super) fn clean_due(&mut self) {
        // The first input after assembly.
        self.next_update();
        self.write_pages();
        self.watch_bits();
        if self.permits.flag != Flag::Dirty || self.permits.in_flight > 0 || self.is_replaying() {
            return;
        }
        let at = after(self.permits.quiet_since, self.setup.settings.clean_after);
        if at > self.now {
            self.timers.set(Timer::Clean, at);
            return;
        }
        self.permits.flag = Flag::Cleaning;
        self.next_update();
    }

    /// Whether a request that is done may be answered, while something keeps it.
    #[cold]
    fn ask_reply(&mut self, slot: u32) -> bool {
        if self.is_unrecorded() && !self.setup.has_bug(Bug::AckBeforeRecorded) {
            if !self.members.has_lost(&self.setup) {
                self.permits.held_replies.push_back(slot);
                return false;
            }
            // The failures that lost the array are not recorded any more: what ends now is not
            // promised to be on the members that are in service after the next start.
            let trouble = self.requests.trouble(slot);
            if trouble.outcome == Outcome::Done {
                trouble.outcome = Outcome::ArrayFailed;
            }
        }
        self.stop_when_quiet(Some(slot));
        true
    }

    /// Answers what was held back, when nothing is left to record.
    fn release_replies(&mut self) {
        while let Some(slot) = self.permits.held_replies.pop_front() {
            if !self.may_reply(slot) {
                // It was put back; so would be all others.
                return;
            }
            self.answer(slot);
        }
    }

    /// Whether the failure of a member, or its being exchanged, is not recorded on all others.
    pub(super) fn is_unrecorded(&self) -> bool {
        if !self.setup.settings.consistency.has_superblocks()
            || self.setup.has_bug(Bug::FailureNotRecorded)
        {
            return false;
        }
        let Update { recorded, gone, swaps, .. } = &self.permits.update;
        let known = MemberSet::from_words(recorded.failed);
        !gone.is_empty() || *swaps > 0 || !self.members.failed.is_within(known)
    }

    /// Whether replies must ask.
    fn note_holds(&mut self) {
        let stopping = self.permits.stop == Stop::Waiting;
        self.permits.holds = stopping || self.is_unrecorded();
    }
}

impl Array {
    /// Takes no more changes, waits for those under way, makes everything durable and marks the array
    /// clean; [`Event::Stopped`] tells when.
    pub(super) fn stop(&mut self) {
        if self.permits.stop == Stop::Done {
            self.outputs.push_back(Output::Event(Event::Stopped));
        }
        if self.permits.stop != Stop::No {
            return;
        }
        self.members.stopped = true;
        self.permits.asks = true;
        self.permits.stop = Stop::Waiting;
        self.note_holds();
        self.halt_background();
        self.release_writes();
        self.stop_when_quiet(None);
    }

    /// Goes on with a stop when no change but `last`, which is being answered, is left.
    pub(super) fn stop_when_quiet(&mut self, last: Option<u32>) {
        if self.permits.stop != Stop::Waiting || !self.is_background_halted() {
            return;
        }
        let others = self.requests.slots.used().filter(|(slot, _)| Some(*slot) != last);
        let changes = others.filter(|(_, request)| changes_data(request.op)).count();
        if changes > 0 || self.members.has_lost(&self.setup) {
            return;
        }
        self.permits.stop = Stop::Flushing;
        self.permits.update.flushed = false;
        self.note_holds();
        if self.permits.flag != Flag::Clean {
            self.permits.flag = Flag::Cleaning;
        }
        self.permits.update.wanted |= self.setup.settings.consistency.has_superblocks();
        self.next_update();
    }

    /// Everything is durable and, where superblocks are kept, marked clean.
    fn stop_done(&mut self) {
        self.permits.stop = Stop::Done;
        self.outputs.push_back(Output::Event(Event::Stopped));
    }
}

/// The moment `delay` after `at`.
const fn after(at: Time, delay: Nanos) -> Time {
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
