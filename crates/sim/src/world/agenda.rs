//! What will happen, in order.
//!
//! Of what happens at one time, what was asked for first comes first. A wake-up that a drive
//! [foresaw](raidlab_models::HardDisk::foresee_ends) is asked for earlier than it would be without, and must
//! keep its place all the same: drives that are alike often end commands in one nanosecond, and whoever
//! is first is first on what they share. So each entry carries when it was asked for, when what asked for
//! it was asked for, and so on for a few steps back.

use std::collections::{BinaryHeap, VecDeque};

use raidlab_core::Time;

use super::Happening;

/// How many steps back are compared: the second is needed now and then, the third has not been yet.
const BACK: usize = 3;

/// When something was asked for, the latest step first.
pub(super) type Asked = [Time; BACK];

/// Later than all.
const LAST: Time = Time(u64::MAX);

/// Something that will happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Entry {
    pub(super) at: Time,
    asked: Asked,
    number: u64,
    pub(super) what: Happening,
}

/// What will happen, in order.
#[derive(Debug)]
pub(super) struct Agenda {
    /// What comes in order as it is: the requests of the host, whose CPU does one after the other.
    lane: VecDeque<Entry>,
    others: BinaryHeap<std::cmp::Reverse<Entry>>,
    numbers: u64,
    /// The time that was come to last, and on whose behalf things are asked for.
    now: Time,
    on_behalf: Asked,
}

impl Agenda {
    pub(super) fn new(room: usize) -> Self {
        Self {
            lane: VecDeque::with_capacity(room),
            others: BinaryHeap::with_capacity(room),
            numbers: 0,
            now: Time::ZERO,
            on_behalf: [LAST; BACK],
        }
    }

    /// The next entry.
    #[inline]
    fn peek(&self) -> Option<&Entry> {
        match (self.lane.front(), self.others.peek()) {
            (Some(lane), Some(other)) => Some(if *lane < other.0 { lane } else { &other.0 }),
            (lane, other) => lane.or(other.map(|other| &other.0)),
        }
    }

    /// When the next of all happens.
    #[inline]
    pub(super) fn next_at(&self) -> Option<Time> {
        self.peek().map(|entry| entry.at)
    }

    /// The next of all that happen at `now`; what is asked for from here on is asked for by it.
    #[inline]
    pub(super) fn due(&mut self, now: Time) -> Option<Happening> {
        let (at, is_in_lane) = match (self.lane.front(), self.others.peek()) {
            (Some(lane), Some(other)) if *lane < other.0 => (lane.at, true),
            (Some(lane), None) => (lane.at, true),
            (_, Some(other)) => (other.0.at, false),
            (None, None) => return None,
        };
        if at != now {
            return None;
        }
        let next =
            if is_in_lane { self.lane.pop_front() } else { self.others.pop().map(|one| one.0) };
        let entry = next?;
        if self.now < now {
            self.on_behalf = entry.asked;
        }
        Some(entry.what)
    }

    /// All that was to happen at `now` has: what is asked for from here on comes behind what that
    /// asked for.
    #[inline]
    pub(super) fn passed(&mut self, now: Time) {
        self.now = now;
        self.on_behalf = [LAST; BACK];
    }

    /// Asks for something at `now`.
    #[inline]
    pub(super) fn ask(&mut self, now: Time, at: Time, what: Happening) {
        let entry = self.entry(at, &[now], what);
        self.others.push(std::cmp::Reverse(entry));
    }

    /// The same for something that mostly is later than what was asked for in this way before.
    #[inline]
    pub(super) fn ask_in_order(&mut self, now: Time, at: Time, what: Happening) {
        let entry = self.entry(at, &[now], what);
        if self.lane.back().is_none_or(|last| *last < entry) {
            self.lane.push_back(entry);
        } else {
            self.others.push(std::cmp::Reverse(entry));
        }
    }

    /// Asks for what was foreseen: without that it would have been asked for at the first of `steps`, by
    /// what was asked for at the second, and so on, the first of which is asked for now.
    #[inline]
    pub(super) fn ask_foreseen(&mut self, at: Time, steps: &[Time], what: Happening) {
        let entry = self.entry(at, steps, what);
        self.others.push(std::cmp::Reverse(entry));
    }

    #[inline]
    fn entry(&mut self, at: Time, steps: &[Time], what: Happening) -> Entry {
        let mut asked = [LAST; BACK];
        let all = steps.iter().chain(&self.on_behalf);
        asked.iter_mut().zip(all).for_each(|(place, step)| *place = *step);
        self.numbers += 1;
        Entry { at, asked, number: self.numbers, what }
    }
}
