//! The event queue: what will happen, ordered by time, and at equal times in the order in which it was asked for.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use raidlab_core::Time;

use super::TimedEvent;

/// An entry of the queue: an event and its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Entry {
    at: Time,
    number: u64,
    what: TimedEvent,
}

/// The event queue.
#[derive(Debug)]
pub(super) struct EventQueue {
    /// Entries that are asked for in order of time: the requests of the host, whose CPU handles them one by one.
    lane: VecDeque<Entry>,
    others: BinaryHeap<Reverse<Entry>>,
    numbers: u64,
}

impl EventQueue {
    pub(super) fn new(room: usize) -> Self {
        let (lane, others) = (VecDeque::with_capacity(room), BinaryHeap::with_capacity(room));
        Self { lane, others, numbers: 0 }
    }

    /// The time of the next entry.
    #[inline]
    pub(super) fn next_at(&self) -> Option<Time> {
        let (lane, other) = (self.lane.front(), self.others.peek());
        match (lane.map(|entry| entry.at), other.map(|other| other.0.at)) {
            (Some(lane), Some(other)) => Some(lane.min(other)),
            (lane, other) => lane.or(other),
        }
    }

    /// Takes the next of the entries that happen at `now`.
    #[inline]
    pub(super) fn due(&mut self, now: Time) -> Option<TimedEvent> {
        let lane = self.lane.front().filter(|entry| entry.at == now).map(|entry| entry.number);
        let other = self.others.peek().filter(|other| other.0.at == now);
        let next = match (lane, other.map(|other| other.0.number)) {
            (Some(lane), Some(other)) if other < lane => self.others.pop().map(|other| other.0),
            (Some(_), _) => self.lane.pop_front(),
            (None, Some(_)) => self.others.pop().map(|other| other.0),
            (None, None) => None,
        };
        next.map(|entry| entry.what)
    }

    /// Adds an entry.
    #[inline]
    pub(super) fn ask(&mut self, at: Time, what: TimedEvent) {
        let entry = self.entry(at, what);
        self.others.push(Reverse(entry));
    }

    /// The same for an entry that is usually later than those added in this way before.
    #[inline]
    pub(super) fn ask_in_order(&mut self, at: Time, what: TimedEvent) {
        let entry = self.entry(at, what);
        if self.lane.back().is_none_or(|last| last.at <= at) {
            self.lane.push_back(entry);
        } else {
            self.others.push(Reverse(entry));
        }
    }

    #[inline]
    fn entry(&mut self, at: Time, what: TimedEvent) -> Entry {
        self.numbers += 1;
        Entry { at, number: self.numbers, what }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn by_time_then_in_the_order_in_which_they_were_asked_for() {
        let mut event_queue = EventQueue::new(4);
        let (path, arrival) = (TimedEvent::Path, TimedEvent::Arrival);
        event_queue.ask(Time(20), path(0));
        event_queue.ask_in_order(Time(10), arrival(0));
        event_queue.ask_in_order(Time(20), arrival(1));
        event_queue.ask_in_order(Time(15), arrival(2));
        event_queue.ask(Time(20), path(1));
        event_queue.ask(Time(5), path(2));
        let next = || {
            let at = event_queue.next_at()?;
            event_queue.due(at).map(|what| (at.0, what))
        };
        let all: Vec<_> = std::iter::from_fn(next).collect();
        let last = [(20, path(0)), (20, arrival(1)), (20, path(1))];
        let expected = [&[(5, path(2)), (10, arrival(0)), (15, arrival(2))][..], &last].concat();
        assert_eq!(all, expected);
        event_queue.ask(Time(30), path(3));
        assert_eq!((event_queue.due(Time(29)), event_queue.due(Time(30))), (None, Some(path(3))));
    }
}
