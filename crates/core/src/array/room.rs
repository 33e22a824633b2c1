//! Writes that found no room on a member: they wait there and go out again, until there is room or
//! [`Settings::room_wait`](super::Settings::room_wait) has passed.
//!
//! Fault model: a thin or sparse member may refuse any write for want of room, having written none, some or all
//! of it, and take it later. Why it is safe: what waits is still in flight for everybody else: its range stays
//! locked, its buffers lent, nothing that depends on it goes out, and no drive takes the member's place. A
//! flush that failed is never tried again: it is told as gone, also where it is part of a write. Tests:
//! `tests/room.rs`; the checker fills its drives.

use std::hash::{Hash, Hasher};

use super::ios::{IoState, Ios};
use crate::contract::{IoId, IoOp};
use crate::units::{MemberIndex, Nanos, Time};

/// How often what waits is tried again.
pub(super) const RETRY: Nanos = Nanos::from_millis(1000);

/// A write that found no room.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    io: IoId,
    /// When its member counts as failed.
    until: Time,
    /// It went out again, and is not back yet.
    sent: bool,
}

/// What becomes of an I/O that waited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Due {
    /// It goes out again.
    Again(IoId),
    /// There was no room for too long, or its member takes no writes any more.
    End(IoId),
}

/// Of the I/Os in flight, those that wait for room on their members.
#[derive(Clone, Debug)]
pub(super) struct Room {
    waiting: Vec<Waiting>,
    /// Those before this were looked at in this turn.
    looked_at: usize,
}

impl Room {
    /// For as many I/Os in flight.
    pub(super) fn new(ios: u32) -> Self {
        Self { waiting: Vec::with_capacity(ios as usize), looked_at: 0 }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Whether an I/O may wait for room: it writes, and was not given up.
    pub(super) const fn may_wait(io: &IoState) -> bool {
        !matches!(io.op, IoOp::Read | IoOp::Flush) && !io.abandoned
    }

    /// An I/O in flight found no room; it waits, at most until `until`. True when nothing else waits on its member.
    pub(super) fn wait(&mut self, io: IoId, until: Time, ios: &Ios) -> bool {
        if let Some(known) = self.waiting.iter_mut().find(|one| one.io == io) {
            known.sent = false;
            return false;
        }
        self.waiting.retain(|one| ios.is_current(one.io));
        let member = ios[io.slot].member;
        let first = self.waiting.iter().all(|one| ios[one.io.slot].member != member);
        self.waiting.push(Waiting { io, until, sent: false });
        first
    }

    /// Whether an I/O waits for room and is not with the driver.
    pub(super) fn holds(&self, io: IoId) -> bool {
        self.waiting.iter().any(|one| one.io == io && !one.sent)
    }

    /// How many wait, with the driver or not.
    pub(super) fn count(&self, ios: &Ios) -> u32 {
        self.waiting.iter().filter(|one| ios.is_current(one.io)).count() as u32
    }

    /// Hashes what waits; until when is a matter of time.
    pub(super) fn hash_with(&self, ios: &Ios, key: &mut impl Hasher) {
        let current = self.waiting.iter().filter(|one| ios.is_current(one.io));
        current.for_each(|one| (one.io.slot, one.sent).hash(key));
    }

    /// Begins a look at all that wait.
    pub(super) fn look(&mut self) {
        self.looked_at = 0;
    }

    /// The next that goes out again or ends, in a look at all; `takes`: members that may still be written.
    pub(super) fn next_due(
        &mut self,
        now: Time,
        ios: &Ios,
        takes: impl Fn(MemberIndex) -> bool,
    ) -> Option<Due> {
        while let Some(&Waiting { io, until, sent }) = self.waiting.get(self.looked_at) {
            if !ios.is_current(io) {
                self.waiting.swap_remove(self.looked_at);
            } else if sent {
                self.looked_at += 1;
            } else if until <= now || !takes(ios[io.slot].member) {
                self.waiting.swap_remove(self.looked_at);
                // That may end or fail anything.
                self.looked_at = 0;
                return Some(Due::End(io));
            } else {
                self.waiting[self.looked_at].sent = true;
                self.looked_at += 1;
                return Some(Due::Again(io));
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(member: u16) -> IoState {
        IoState { op: IoOp::Write, member: MemberIndex(member), ..IoState::idle() }
    }

    #[test]
    fn what_waits_goes_out_again_until_its_time_is_over() {
        let mut ios = Ios::new(4);
        let mut send = |member| {
            let (slot, generation) = ios.slots.insert_named(write(member)).expect("room");
            IoId { slot, generation }
        };
        let (one, two, other) = (send(0), send(0), send(1));
        let mut room = Room::new(4);
        assert!(room.wait(one, Time(100), &ios), "the first on its member");
        assert!(!room.wait(two, Time(200), &ios));
        assert!(room.wait(other, Time(300), &ios));
        assert_eq!(room.count(&ios), 3);
        let takes = |_: MemberIndex| true;
        room.look();
        assert_eq!(room.next_due(Time(50), &ios, takes), Some(Due::Again(one)));
        assert!(!room.holds(one) && room.holds(two), "it is with the driver");
        assert_eq!(room.next_due(Time(50), &ios, takes), Some(Due::Again(two)));
        ios.slots.remove(two.slot);
        assert!(!room.wait(one, Time(999), &ios), "it comes back");
        room.look();
        let takes = |member: MemberIndex| member != MemberIndex(1);
        assert_eq!(
            room.next_due(Time(100), &ios, takes),
            Some(Due::End(one)),
            "as long as at first"
        );
        ios.slots.remove(one.slot);
        assert_eq!(room.next_due(Time(100), &ios, takes), Some(Due::End(other)), "it failed");
        assert_eq!(room.next_due(Time(100), &ios, takes), None);
        assert!(room.is_empty());
    }

    #[test]
    fn only_writes_wait() {
        assert!(Room::may_wait(&write(0)));
        assert!(!Room::may_wait(&IoState { op: IoOp::Read, ..write(0) }));
        assert!(!Room::may_wait(&IoState { op: IoOp::Flush, ..write(0) }));
        assert!(!Room::may_wait(&IoState { abandoned: true, ..write(0) }));
    }

    #[test]
    fn a_key_has_what_waits_and_whether_it_is_with_the_driver() {
        let mut ios = Ios::new(4);
        let mut send = |member| {
            let (slot, generation) = ios.slots.insert_named(write(member)).expect("room");
            IoId { slot, generation }
        };
        let (one, two) = (send(0), send(1));
        let key = |room: &Room, ios: &Ios| {
            let mut key = std::hash::DefaultHasher::new();
            room.hash_with(ios, &mut key);
            key.finish()
        };
        let mut room = Room::new(4);
        let mut keys = vec![key(&room, &ios)];
        room.wait(one, Time(100), &ios);
        keys.push(key(&room, &ios));
        let mut later = Room::new(4);
        later.wait(one, Time(900), &ios);
        assert_eq!(key(&later, &ios), keys[1], "until when is a matter of time");
        room.wait(two, Time(100), &ios);
        keys.push(key(&room, &ios));
        room.look();
        room.next_due(Time(50), &ios, |_| true);
        keys.push(key(&room, &ios));
        for (index, one) in keys.iter().enumerate() {
            assert!(!keys[..index].contains(one), "{index}");
        }
        ios.slots.remove(one.slot);
        ios.slots.remove(two.slot);
        assert_eq!(key(&room, &ios), keys[0], "who has ended does not wait");
    }
}
