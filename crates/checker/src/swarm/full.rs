//! Drives that have no room for what is to be written: for a while, after which everything must be as if nothing
//! had been, or for good, which takes a member out of service.

use raidlab_core::contract::MetaIo;
use raidlab_core::{MemberIndex, Nanos, Time};

use super::run::Run;
use super::{Class, Special};
use crate::harness::{Work, changes};

/// What is tried again is tried each second: room that comes later than so long before the end comes too late.
const IN_TIME: Nanos = Nanos::from_millis(2000);

/// Drives without room.
#[derive(Clone, Copy, Debug)]
pub(super) struct Full {
    /// Which; `None` for all of them, as on one filesystem.
    device: Option<MemberIndex>,
    /// When it has room again; `None` for never.
    ends: Option<Time>,
    /// Something was refused.
    met: bool,
}

impl Run {
    /// Drives run full, and have room again.
    pub(super) fn fill(&mut self) {
        let Some(wait) = self.config.settings.room_wait.filter(|_| self.plan.full) else { return };
        match self.full {
            Some(Full { device: Some(device), ends: None, .. }) => {
                let failed = self.harness.array().is_failed(device);
                self.full = self.full.filter(|_| !failed);
            }
            Some(_) if self.random.chance(5) => self.full = None,
            Some(_) => self.make_room_in_time(self.harness.now()),
            // What waits since another time is not to wait longer.
            None if self.harness.array().status().waiting == 0 && self.random.chance(4) => {
                let ends = Some(Time((self.harness.now() + wait).0 - IN_TIME.0));
                let member = self.random.below(u64::from(self.members())) as u16;
                let device = Some(MemberIndex(member));
                self.full = Some(match self.random.below(4) {
                    0 if self.may_harm(member) => Full { device, ends: None, met: false },
                    1 => Full { device: None, ends, met: false },
                    _ => Full { device, ends, met: false },
                });
            }
            None => {}
        }
    }

    /// Drives that have no room for a while have it before anybody gives up.
    pub(super) fn make_room_in_time(&mut self, at: Time) {
        if self.full.is_some_and(|full| full.ends.is_some_and(|ends| ends <= at)) {
            self.full = None;
        }
    }

    /// Whether a member has no room any more.
    pub(super) fn is_full_for_good(&self, member: MemberIndex) -> bool {
        self.full.is_some_and(|full| full.ends.is_none() && full.device == Some(member))
    }

    /// Whether what is outstanding at `index` finds no room.
    pub(super) fn finds_no_room(&mut self, index: usize) -> bool {
        let Some(full) = &mut self.full else { return false };
        let (device, changes) = match *self.harness.work(index) {
            Work::Io(io) => (io.member, changes(io.op)),
            Work::Meta(_, MetaIo { member, .. }) => (member, true),
            Work::Job(_) => return false,
        };
        if !changes || self.harness.is_abandoned(index) {
            return false;
        }
        if full.device.is_some_and(|only| only != device) {
            return false;
        }
        full.met = true;
        self.log_was_full |= device.0 == 2 * self.config.layout.members;
        match full.ends {
            Some(_) => self.shares.has(Special::NoRoom),
            None => {
                self.shares.has(Special::NoRoomForGood);
                self.hit(Class::MemberLost);
            }
        }
        true
    }

    /// The power goes; with it, whoever took the room.
    pub(super) fn room_after_crash(&mut self) {
        if self.full.take().is_some_and(|full| full.met) {
            self.shares.has(Special::CrashWithoutRoom);
        }
    }
}
