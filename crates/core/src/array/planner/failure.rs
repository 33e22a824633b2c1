//! A member, replacement or log device fails, and all parts of the array are told.

use super::Array;
use crate::bugs::Bug;
use crate::contract::{Event, Output};
use crate::units::MemberIndex;

impl Array {
    /// Takes a member out of service; what is in flight on it goes on to its end.
    pub(super) fn fail_member(&mut self, member: MemberIndex) {
        if self.members.failed.contains(member) {
            return;
        }
        self.members.fail(member);
        self.outputs.push_back(Output::Event(Event::MemberFailed(member)));
        let event = if self.members.is_lost(&self.setup) {
            self.members.stopped = !self.setup.has_bug(Bug::WriteAfterFailure);
            // Plans that wait for the log end at the end of this input.
            self.timers.changed = true;
            Event::ArrayFailed
        } else {
            Event::Degraded { missing: self.members.missing().count() }
        };
        self.outputs.push_back(Output::Event(event));
        self.cache.clear();
        self.background_lost(member);
        self.end_waiting();
        self.state_changed();
    }

    /// Takes a member, a replacement or the journal out of service.
    pub(super) fn fail_device(&mut self, device: MemberIndex) {
        self.end_waiting();
        let members = self.setup.layout.members;
        if device.0 < members {
            self.fail_member(device);
        } else if device.0 < 2 * members {
            let of = MemberIndex(device.0 - members);
            if self.members.replacing.contains(of) {
                self.members.replacing.remove(of);
                self.outputs.push_back(Output::Event(Event::ReplacementFailed(of)));
                self.background_lost(device);
                self.state_changed();
            }
        } else {
            self.journal_failed();
        }
    }
}
