//! Writes that found no room on a member: they wait there and go out again, until there is room or
//! [`Settings::room_wait`](super::Settings::room_wait) has passed.
//!
//! Fault model: a thin or sparse member may refuse any write for want of room, having written none, some or all
//! of it, and take it later. Why it is safe: what waits is still in flight for everybody else: its range stays
//! locked, its buffers lent, nothing that depends on it goes out, and no drive takes the member's place. A
//! flush that failed is never tried again: it is told as gone, also where it is part of a write. Tests:
//! `tests/room.rs`; the checker fills its drives.

use super::Array;
use super::timers::Timer;
use crate::contract::{Completion, Event, IoId, IoOp, IoOutcome, MemberIo, Output};
use crate::units::{MemberIndex, Nanos, Time};

/// How often what waits is tried again.
const RETRY: Nanos = Nanos::from_millis(1000);

/// A write that found no room.
#[derive(Clone, Copy, Debug)]
pub(super) struct Waiting {
    io: IoId,
    /// When its member counts as failed.
    until: Time,
    /// It went out again, and is not back yet.
    sent: bool,
}

impl Array {
    /// Whether an I/O that ended so waits for room instead.
    #[cold]
    #[inline(never)]
    pub(super) fn waits_for_room(&mut self, completion: &Completion) -> bool {
        let Completion { io: id, outcome } = *completion;
        let Some(wait) = self.settings.room_wait else { return false };
        if outcome != IoOutcome::NoSpace || !self.ios.is_current(id.slot, id.generation) {
            return false;
        }
        let io = &self.ios[id.slot];
        let member = io.member;
        let changes = !matches!(io.op, IoOp::Read | IoOp::Flush);
        if !changes || io.abandoned || !self.takes_writes(member) {
            return false;
        }
        let until = self.now + wait;
        let known = self.waiting.iter_mut().find(|one| one.io == id);
        match known {
            Some(known) => known.sent = false,
            None => {
                let ios = &self.ios;
                self.waiting.retain(|one| ios.is_current(one.io.slot, one.io.generation));
                if self.waiting.iter().all(|one| ios[one.io.slot].member != member) {
                    self.outputs.push_back(Output::Event(Event::WaitsForRoom(member)));
                }
                self.waiting.push(Waiting { io: id, until, sent: false });
            }
        }
        if !self.timers.is_set(Timer::Room) {
            self.timers.set(Timer::Room, self.now + RETRY);
        }
        true
    }

    /// Whether what waits for room on a device may still be written there.
    fn takes_writes(&self, device: MemberIndex) -> bool {
        self.is_served(device) && !self.is_lost(self.missing())
    }

    /// Whether an I/O waits for room and is not with the driver.
    pub(super) fn is_waiting(&self, io: IoId) -> bool {
        self.waiting.iter().any(|one| one.io == io && !one.sent)
    }

    /// How many wait, with the driver or not.
    pub(super) fn waiting_for_room(&self) -> u32 {
        let open = |one: &&Waiting| self.ios.is_current(one.io.slot, one.io.generation);
        self.waiting.iter().filter(open).count() as u32
    }

    /// Members or the array failed: what waits there ends now.
    pub(super) fn end_waiting(&mut self) {
        if !self.waiting.is_empty() {
            self.timers.set(Timer::Room, self.now);
        }
    }

    /// Sends out again what waits, and ends what has waited long enough.
    pub(super) fn room_due(&mut self) {
        let mut index = 0;
        while let Some(&Waiting { io, until, sent }) = self.waiting.get(index) {
            if !self.ios.is_current(io.slot, io.generation) {
                self.waiting.swap_remove(index);
            } else if sent {
                index += 1;
            } else if until <= self.now || !self.takes_writes(self.ios[io.slot].member) {
                self.waiting.swap_remove(index);
                self.ended_badly(io, IoOutcome::NoSpace);
                // That may have ended or failed anything.
                index = 0;
            } else {
                self.waiting[index].sent = true;
                self.send_again(io);
                index += 1;
            }
        }
        if !self.waiting.is_empty() {
            self.timers.set(Timer::Room, self.now + RETRY);
        }
    }

    fn send_again(&mut self, id: IoId) {
        let io = &mut self.ios[id.slot];
        io.sent_at = self.now;
        let output = if io.meta {
            // Its drive may have taken another's place meanwhile.
            self.metas[id.slot as usize].member = io.member;
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
