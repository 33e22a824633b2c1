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

#[cfg(test)]
mod tests {
    use super::*;

    fn all(agenda: &mut Agenda) -> Vec<(u64, Happening)> {
        let next = || {
            let at = agenda.next_at()?;
            agenda.due(at).map(|what| (at.0, what))
        };
        std::iter::from_fn(next).collect()
    }

    #[test]
    fn by_time_then_in_the_order_in_which_they_were_asked_for() {
        let mut agenda = Agenda::new(4);
        let (path, arrival) = (Happening::Path, Happening::Arrival);
        agenda.ask(Time(1), Time(20), path(0));
        agenda.ask_in_order(Time(1), Time(10), arrival(0));
        agenda.ask_in_order(Time(2), Time(20), arrival(1));
        agenda.ask_in_order(Time(2), Time(15), arrival(2));
        agenda.ask(Time(2), Time(20), path(1));
        agenda.ask(Time(2), Time(5), path(2));
        let expected =
            [(5, path(2)), (10, arrival(0)), (15, arrival(2)), (20, path(0)), (20, arrival(1))];
        assert_eq!(all(&mut agenda), [&expected[..], &[(20, path(1))]].concat());
    }

    /// Asked for first, drive 0 would have been asked for last: by its last step, or by the one before.
    #[test]
    fn what_was_foreseen_takes_the_place_that_it_would_have_without() {
        let drive = Happening::Drive;
        for steps in [[Time(9), Time(1)], [Time(8), Time(4)]] {
            let mut agenda = Agenda::new(4);
            agenda.ask_foreseen(Time(20), &steps, drive(0));
            agenda.ask_foreseen(Time(20), &[Time(8), Time(3), Time(1)], drive(1));
            assert_eq!(all(&mut agenda), [(20, drive(1)), (20, drive(0))], "{steps:?}");
        }
    }

    /// What happens at one time asks in its order, whatever that was asked for; what follows when all has
    /// happened comes last.
    #[test]
    fn on_whose_behalf_something_is_asked_for_decides() {
        let (drive, path) = (Happening::Drive, Happening::Path);
        let mut agenda = Agenda::new(4);
        agenda.ask(Time(2), Time(8), path(0));
        assert_eq!(agenda.due(Time(8)), Some(path(0)));
        agenda.ask(Time(8), Time(20), path(1));
        agenda.passed(Time(8));
        agenda.ask(Time(8), Time(20), path(2));
        agenda.ask_foreseen(Time(20), &[Time(8), Time(1)], drive(0));
        agenda.ask_foreseen(Time(20), &[Time(8), Time(3)], drive(1));
        let expected = [drive(0), path(1), drive(1), path(2)].map(|what| (20, what));
        assert_eq!(all(&mut agenda), expected);
    }
}
