//! What comes with time: wake-ups, deadlines of member I/O, writes that wait for room.

use super::Array;
use crate::array::room::{Due, RETRY, Room};
use crate::array::timers::Timer;
use crate::contract::{Completion, Event, IoId, IoOp, IoOutcome, MemberIo, Output};
use crate::units::{MemberIndex, Time};

impl Array {
    /// Tells the driver of the first moment, if that has changed.
    pub(super) fn tell_wake(&mut self) {
        // A replay begins at the next input.
        self.timers.changed = self.log.is_replay_due();
        if let Some(at) = self.timers.tell(self.now) {
            self.outputs.push_back(Output::WakeAt(at));
        }
    }

    /// The end of an input in which something has changed that is seldom looked at.
    #[cold]
    pub(super) fn end_input(&mut self) {
        self.begin_replay();
        if self.members.stopped {
            self.retry_logging();
            // What was refused leaves room, and nothing else may end any more.
            if self.starved.is_any() {
                self.resume();
            }
        }
        self.log.close_headers();
        self.tell_wake();
    }

    /// Does what is due.
    pub(super) fn woken(&mut self) {
        while let Some(timer) = self.timers.take_due(self.now) {
            match timer {
                Timer::Clean => self.clean_due(),
                Timer::Bitmap => self.bitmap_due(),
                Timer::Pace => self.pump(),
                Timer::Deadline => self.deadlines_due(),
                Timer::Room => self.room_due(),
            }
        }
        self.timers.changed = true;
    }
}

/// Deadlines of member I/O: one that takes too long is given up by the driver, which then answers it with a timeout
/// like any other outcome.
impl Array {
    /// An I/O went out: sees that deadlines are looked at in time.
    pub(super) fn watch_deadline(&mut self) {
        if let Some(deadline) = self.setup.settings.deadline {
            self.timers.set_if_idle(Timer::Deadline, Time(self.now.0 + deadline.0));
        }
    }

    /// Gives up what has taken too long, and looks again when the next may have.
    fn deadlines_due(&mut self) {
        let Some(deadline) = self.setup.settings.deadline else { return };
        let mut next: Option<Time> = None;
        for slot in 0..self.ios.slots.capacity() {
            let Some(generation) = self.ios.slots.used_generation(slot) else { continue };
            let id = IoId { slot, generation };
            let ends = Time(self.ios[slot].sent_at.0 + deadline.0);
            if self.ios[slot].abandoned || self.room.holds(id) {
                continue;
            }
            if ends <= self.now {
                self.ios[slot].abandoned = true;
                self.outputs.push_back(Output::Abandon { io: id });
            } else {
                next = Some(next.map_or(ends, |known| known.min(ends)));
            }
        }
        if let Some(at) = next {
            self.timers.set(Timer::Deadline, at);
        }
    }
}

/// Writes that found no room on a member.
impl Array {
    /// Whether an I/O that ended so waits for room instead.
    #[cold]
    #[inline(never)]
    pub(super) fn waits_for_room(&mut self, completion: &Completion) -> bool {
        let Completion { io: id, outcome } = *completion;
        let Some(wait) = self.setup.settings.room_wait else { return false };
        if outcome != IoOutcome::NoSpace || !self.ios.is_current(id) {
            return false;
        }
        let io = &self.ios[id.slot];
        let member = io.member;
        if !Room::may_wait(io) || !self.takes_writes(member) {
            return false;
        }
        if self.room.wait(id, self.now + wait, &self.ios) {
            self.outputs.push_back(Output::Event(Event::WaitsForRoom(member)));
        }
        self.timers.set_if_idle(Timer::Room, self.now + RETRY);
        true
    }

    /// Whether what waits for room on a device may still be written there.
    fn takes_writes(&self, device: MemberIndex) -> bool {
        self.is_served(device) && !self.members.is_lost(&self.setup)
    }

    /// Members or the array failed: what waits there ends now.
    pub(super) fn end_waiting(&mut self) {
        if !self.room.is_empty() {
            self.timers.set(Timer::Room, self.now);
        }
    }

    /// Sends out again what waits, and ends what has waited long enough.
    fn room_due(&mut self) {
        self.room.look();
        while let Some(due) = self.next_room_due() {
            match due {
                Due::Again(io) => self.send_again(io),
                Due::End(io) => self.ended_badly(io, IoOutcome::NoSpace),
            }
        }
        if !self.room.is_empty() {
            self.timers.set(Timer::Room, self.now + RETRY);
        }
    }

    fn next_room_due(&mut self) -> Option<Due> {
        let Self { setup, members, log, room, ios, now, .. } = self;
        let lost = members.is_lost(setup);
        let takes = |member| !lost && members.is_served(setup, member, log.is_journal_used());
        room.next_due(*now, ios, takes)
    }

    fn send_again(&mut self, id: IoId) {
        self.ios[id.slot].sent_at = self.now;
        let io = self.ios[id.slot];
        let output = if io.meta {
            // Its drive may have taken another's place meanwhile.
            self.ios.metas[id.slot as usize].member = io.member;
            Output::Meta { io: id }
        } else {
            // Whether it was to be durable is not kept, for so few.
            let (member, op, fua, at, len) =
                (io.member, io.op, io.op == IoOp::Write, io.at, io.len);
            Output::MemberIo(MemberIo { io: id, member, op, fua, at, len, segments: io.segments })
        };
        self.outputs.push_back(output);
        self.watch_deadline();
    }
}
