//! What happens next: on a modelled array, and to those who use it.

use raidlab_core::Time;
use raidlab_sim::World;
use raidlab_workload::processes::Timers;

/// An array in virtual time with the timers of who uses it. Whether anything happens, and what is next, is asked here
/// of both. Of one moment, what happens on the array comes first, then its answers, then timers.
pub(super) struct Timeline<'w, T> {
    pub(super) world: &'w mut World,
    timers: Timers<T>,
}

impl<'w, T> Timeline<'w, T> {
    pub(super) fn new(world: &'w mut World) -> Self {
        Self { world, timers: Timers::default() }
    }

    #[inline]
    pub(super) fn now(&self) -> Time {
        self.world.now()
    }

    /// A timer ends then.
    #[inline]
    pub(super) fn set(&mut self, at: Time, timer: T) {
        self.timers.set(at, timer);
    }

    /// The same in place of the equal one that was set before.
    pub(super) fn move_to(&mut self, at: Time, timer: T)
    where
        T: PartialEq,
    {
        self.timers.move_to(at, timer);
    }

    /// The next timer that has ended.
    #[inline]
    pub(super) fn due(&mut self) -> Option<T> {
        self.timers.due(self.world.now())
    }

    /// Lets time pass up to `end` when nothing happens by then and no answer is left; otherwise does nothing and gives
    /// false.
    #[inline]
    pub(super) fn idle_until(&mut self, end: Time) -> bool {
        self.timers.next_at().is_none_or(|next| end < next)
            && !self.world.has_answer()
            && self.world.idle_until(end)
    }

    /// Moves on to the next moment at which there is an answer, or a timer ends; false when there will be neither.
    pub(super) fn step(&mut self) -> bool {
        loop {
            let (timer, next) = (self.timers.next_at(), self.world.next_at());
            if let Some(at) = timer
                && next.is_none_or(|next| at < next)
            {
                return self.world.idle_until(at);
            }
            if !self.world.step() {
                return false;
            }
            if self.world.has_answer() || timer == next {
                return true;
            }
        }
    }
}
