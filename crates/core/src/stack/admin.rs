//! Commands on nested levels: which array carries them out.

use super::events::Scrubbing;
use super::{Stack, new_inner};
use crate::contract::{Admin, Event, Input, Output, Refusal};
use crate::units::{MemberIndex, Sectors};

impl Stack {
    pub(super) fn command(&mut self, command: Admin) {
        let refused = match command {
            Admin::Fail(drive) => self.fail(drive),
            Admin::FailReplacement(drive) => self.hand_to_inner(drive, Admin::FailReplacement),
            Admin::Add { member, sectors } => self.add(member, sectors),
            Admin::ReAdd { member, events, good_to } => {
                self.hand_to_inner(member, |member| Admin::ReAdd { member, events, good_to })
            }
            Admin::Replace { member, sectors, consent } => {
                self.hand_to_inner(member, |member| Admin::Replace { member, sectors, consent })
            }
            Admin::ResumeReplace { member, sectors, good_to } => {
                let resume = |member| Admin::ResumeReplace { member, sectors, good_to };
                self.hand_to_inner(member, resume)
            }
            Admin::StartScrub(_) => self.start_scrub(command),
            Admin::Pace(_) => self.hand_to_all(command),
            Admin::StopBackground => self.hand_to_all(command),
            Admin::Stop => self.stop(),
        };
        if let Some(reason) = refused {
            self.outputs.push_back(Output::Event(Event::Refused(reason)));
        }
    }

    fn hand_to_inner(
        &mut self,
        drive: MemberIndex,
        command: impl FnOnce(MemberIndex) -> Admin,
    ) -> Option<Refusal> {
        if drive.0 >= self.drives() {
            return Some(Refusal::NoSuchMember);
        }
        let (index, member) = self.locate(drive);
        self.inner[index].array.handle(self.now, Input::Admin(command(member)));
        None
    }

    /// A drive that came back to a lost array and fails again is not there any more.
    fn fail(&mut self, drive: MemberIndex) -> Option<Refusal> {
        if drive.0 < self.drives() {
            let (index, member) = self.locate(drive);
            self.inner[index].returned &= !(1 << member.0);
        }
        self.hand_to_inner(drive, Admin::Fail)
    }

    /// To every array, unless one has something against it.
    fn hand_to_all(&mut self, command: Admin) -> Option<Refusal> {
        let refused =
            (0..=self.inner.len()).find_map(|tag| self.array(tag)?.reason_against(command));
        if refused.is_some() {
            return refused;
        }
        self.hand_to(0..=self.inner.len(), command);
        None
    }

    /// To arrays by their tags.
    fn hand_to(&mut self, tags: impl IntoIterator<Item = usize>, command: Admin) {
        let now = self.now;
        for tag in tags {
            if let Some(array) = self.array_mut(tag) {
                array.handle(now, Input::Admin(command));
            }
        }
    }

    /// A fresh drive is in the place of a failed one.
    fn add(&mut self, drive: MemberIndex, sectors: Sectors) -> Option<Refusal> {
        if drive.0 >= self.drives() {
            return Some(Refusal::NoSuchMember);
        }
        let (index, member) = self.locate(drive);
        if !self.is_lost(index) {
            return self.hand_to_inner(drive, |member| Admin::Add { member, sectors });
        }
        let one = &self.inner[index];
        if !one.array.is_failed(member) {
            return Some(Refusal::InService);
        }
        if sectors < one.config.members[member.at()].sectors {
            return Some(Refusal::TooSmall);
        }
        // Late answers must not be taken for those of the new array.
        if !one.array.is_at_rest() {
            return Some(Refusal::InFlight);
        }
        let array = MemberIndex(index as u16);
        let capacity = one.array.capacity();
        let command = Admin::Add { member: array, sectors: capacity };
        if let Some(reason) = self.outer.reason_against(command) {
            return Some(reason);
        }
        let one = &mut self.inner[index];
        one.returned |= 1 << member.0;
        let is_there = |member: &u16| {
            one.returned >> member & 1 == 1 || !one.array.is_failed(MemberIndex(*member))
        };
        if (0..one.members).all(|member| is_there(&member)) {
            self.renew(index);
            self.outer.handle(self.now, Input::Admin(command));
        }
        None
    }

    /// Makes a lost array anew, over the drives in its places. They hold anything, so its redundancy is made consistent
    /// beside what the outer array writes to it.
    fn renew(&mut self, index: usize) {
        let one = &mut self.inner[index];
        let array = new_inner(&one.config, index, one.scratch_base);
        let mut array = array.expect("it was made of the same before");
        if !self.has_payload {
            array = array.without_payload();
        }
        // It begins now, and not at the start of all time.
        array.handle(self.now, Input::Wake);
        array.start_unsynced();
        one.array = array;
        one.waiting.clear();
        self.wakes[index + 1] = None;
    }

    /// Whether an inner array has lost more than its level survives.
    pub(super) fn is_lost(&self, index: usize) -> bool {
        self.outer.is_failed(MemberIndex(index as u16))
    }

    /// Compares the redundancy of every array that has some.
    fn start_scrub(&mut self, command: Admin) -> Option<Refusal> {
        if self.scrubbing.is_some() {
            return Some(Refusal::Busy);
        }
        let tags = || 0..=self.inner.len();
        let against = |tag: &usize| self.array(*tag).and_then(|one| one.reason_against(command));
        let taking: Vec<usize> =
            tags().filter(|tag| against(tag) != Some(Refusal::NoRedundancy)).collect();
        if taking.is_empty() {
            return Some(Refusal::NoRedundancy);
        }
        if let Some(reason) = taking.iter().find_map(against) {
            return Some(reason);
        }
        self.scrubbing = Some(Scrubbing::of(taking.len()));
        self.hand_to(taking, command);
        None
    }

    /// The outer array first: what it still writes goes to the inner ones.
    fn stop(&mut self) -> Option<Refusal> {
        let reason = self.outer.reason_against(Admin::Stop);
        if reason.is_none() {
            self.outer.handle(self.now, Input::Admin(Admin::Stop));
        }
        reason
    }
}
