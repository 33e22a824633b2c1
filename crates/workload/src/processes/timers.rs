//! What ends at known times: sleeps, and turns of a modelled CPU.

use std::time::Duration;

use raidlab_core::Time;

/// What ends when, by time, then in the order in which it was set. As little is set at once, about one entry for each
/// process, it is a sorted list.
#[derive(Clone, Debug)]
pub struct Timers<T> {
    /// Backwards: the next is the last.
    set: Vec<(Time, T)>,
}

impl<T> Default for Timers<T> {
    fn default() -> Self {
        Self { set: Vec::new() }
    }
}

impl<T> Timers<T> {
    /// Adds something that ends at this time.
    #[inline]
    pub fn set(&mut self, at: Time, what: T) {
        // Of those at one time the later ones come after the earlier ones.
        let mut place = self.set.len();
        while place > 0 && self.set[place - 1].0 <= at {
            place -= 1;
        }
        self.set.insert(place, (at, what));
    }

    /// The same, in place of an equal entry that was set before.
    pub fn move_to(&mut self, at: Time, what: T)
    where
        T: PartialEq,
    {
        if let Some(place) = self.set.iter().position(|(_, other)| *other == what) {
            self.set.remove(place);
        }
        self.set(at, what);
    }

    /// When the next entry ends.
    #[inline]
    pub fn next_at(&self) -> Option<Time> {
        self.set.last().map(|(at, _)| *at)
    }

    /// How long it is from `now` until the next entry ends.
    pub fn next_in(&self, now: Time) -> Option<Duration> {
        self.next_at().map(|at| Duration::from_nanos(at.since(now).0))
    }

    /// The next entry that ends at or before `now`.
    #[inline]
    pub fn due(&mut self, now: Time) -> Option<T> {
        self.set.pop_if(|(at, _)| *at <= now).map(|(_, what)| what)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn they_end_by_time_and_then_in_order() {
        let mut timers = Timers::default();
        for (at, what) in [(20, 'a'), (10, 'z'), (10, 'b'), (5, 'x'), (10, 'c')] {
            timers.set(Time(at), what);
        }
        timers.move_to(Time(10), 'x');
        timers.move_to(Time(10), 'z');
        assert_eq!((timers.next_at(), timers.due(Time(9))), (Some(Time(10)), None));
        let left = [4, 10, 11].map(|now| timers.next_in(Time(now)));
        assert_eq!(left, [6, 0, 0].map(|nanos| Some(Duration::from_nanos(nanos))));
        let due: String = std::iter::from_fn(|| timers.due(Time(10))).collect();
        assert_eq!(due, "bcxz");
        assert_eq!((timers.next_at(), timers.due(Time(30))), (Some(Time(20)), Some('a')));
        assert_eq!((timers.next_at(), timers.due(Time(30))), (None, None));
    }
}
