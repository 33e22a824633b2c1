//! Giving up the device of a member that is out of service.

use std::time::Duration;

use raidlab_core::MemberIndex;

use super::{Engine, Wait};
use crate::error::{EngineError, EngineErrorKind};
use crate::member::Member;

impl Engine {
    /// The device of a member that is out of service, which the engine has in use, and thus claimed, no
    /// longer: to be looked at, or made blank and [added](Self::add) again. [`Member::Absent`] when there was none.
    ///
    /// # Errors
    /// [`EngineErrorKind::InvalidRequest`] when there is no such member; [`EngineErrorKind::Refused`] when it
    /// is in service; [`EngineErrorKind::Busy`] when a system call on the device has not come back yet.
    pub fn take_out(&mut self, member: MemberIndex) -> Result<Member, EngineError> {
        const OPERATION: &str = "take a device out";
        const PATIENCE: Duration = Duration::from_millis(100);
        if member.at() >= self.count {
            let reason = format!("the array has members 0 to {}, not {member}", self.count - 1);
            return Err(EngineError::new(EngineErrorKind::InvalidRequest, OPERATION, reason));
        }
        self.turn_awhile();
        while self.array.is_failed(member) && self.in_flight(member) {
            self.work_on(PATIENCE);
            self.check_fault()?;
        }
        if !self.array.is_failed(member) {
            let reason = format!("member {member} is in service");
            return Err(EngineError::new(EngineErrorKind::Refused, OPERATION, reason));
        }
        if self.hangs(member) {
            let reason = "a system call on the device has not come back yet";
            return Err(EngineError::new(EngineErrorKind::Busy, OPERATION, reason));
        }
        Ok(self.vacate(member))
    }

    /// The device that was to replace a member, and does so no longer: the member or itself failed, or the copy was
    /// given up. [`Member::Absent`] when there was none.
    ///
    /// # Errors
    /// [`EngineErrorKind::InvalidRequest`] when there is no such member; [`EngineErrorKind::Refused`] as long as it
    /// replaces the member; [`EngineErrorKind::Busy`] as long as something is in flight to it.
    pub fn take_replacement(&mut self, member: MemberIndex) -> Result<Member, EngineError> {
        const OPERATION: &str = "take a replacement out";
        self.existing(member, OPERATION)?;
        self.turn(Wait::No);
        let is_replacing = self.array.status().replacing;
        if is_replacing[member.at() / 64] >> (member.at() % 64) & 1 == 1 {
            let reason = format!("member {member} is being replaced");
            return Err(EngineError::new(EngineErrorKind::Refused, OPERATION, reason));
        }
        let place = self.array.replacement(member);
        if self.hangs(place) || self.in_flight(place) {
            let reason = "what was given to the device has not come back yet";
            return Err(EngineError::new(EngineErrorKind::Busy, OPERATION, reason));
        }
        Ok(self.vacate(place))
    }

    fn vacate(&mut self, place: MemberIndex) -> Member {
        let mut device = std::mem::replace(&mut self.members[place.at()], Member::Absent);
        if let Member::File(file) = &mut device {
            file.disconnect(&mut self.ring);
        }
        device
    }
}
