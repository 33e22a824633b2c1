//! Commands of the administrator, and why some are refused.
//!
//! Whether a command can be carried out is asked before anything is changed.

use super::Array;
use crate::contract::{
    Admin, Event, Output, Pacing, PacingRule, Refusal, RepairSource, Scrub, Work,
};
use crate::units::{MemberIndex, Sectors};

impl Array {
    /// Carries out a command, or refuses it and changes nothing.
    pub(super) fn command(&mut self, command: Admin) {
        if let Some(reason) = self.reason_against(command) {
            self.refuse(reason);
            return;
        }
        match command {
            Admin::Fail(member) => self.fail_member(member),
            Admin::FailReplacement(member) => self.fail_device(self.setup.replacement(member)),
            Admin::Add { member, .. } => self.begin_rebuild(member, None),
            Admin::ReAdd { member, good_to, .. } => self.begin_rebuild(member, Some(good_to)),
            Admin::Replace { member, .. } => self.begin_replace(member),
            Admin::ResumeReplace { member, good_to, .. } => self.resume_replace(member, good_to),
            Admin::StartScrub(scrub) => {
                self.begin_work(Work::Scrub(scrub));
                self.pump();
            }
            Admin::Pace(pacing) => self.set_pace(pacing),
            Admin::StopBackground => self.stop_background(),
            Admin::Stop => self.stop(),
        }
    }

    /// Tells why a command is not carried out.
    fn refuse(&mut self, reason: Refusal) {
        self.outputs.push_back(Output::Event(Event::Refused(reason)));
    }

    /// Why a command makes no sense now.
    pub(crate) fn reason_against(&self, command: Admin) -> Option<Refusal> {
        match command {
            Admin::Fail(member) => self
                .no_member(member)
                .or_else(|| self.members.failed.contains(member).then_some(Refusal::NotInService)),
            Admin::FailReplacement(member) => self.no_member(member).or_else(|| {
                (!self.members.replacing.contains(member)).then_some(Refusal::NotInService)
            }),
            Admin::Add { member, sectors } => {
                self.cannot_return(member).or_else(|| self.does_not_fit(member, sectors))
            }
            Admin::ReAdd { member, events, .. } => self.cannot_return(member).or_else(|| {
                let known = self.has_bitmap() && self.bitmap_reaches(member, events);
                (!known).then_some(Refusal::NothingKnown)
            }),
            Admin::Replace { member, sectors, consent } => self
                .cannot_be_replaced(member, consent)
                .or_else(|| self.does_not_fit(member, sectors)),
            Admin::ResumeReplace { member, sectors, .. } => {
                self.cannot_go_on_replacing(member).or_else(|| self.does_not_fit(member, sectors))
            }
            Admin::StartScrub(scrub) => self.cannot_be_scrubbed(scrub),
            Admin::Pace(Pacing { least, most, rule }) => {
                let is_rule = match rule {
                    PacingRule::Activity => true,
                    PacingRule::Depth(depth) => depth > 0,
                    PacingRule::Ranges { used, unused } => (1..=unused).contains(&used),
                    PacingRule::Share(share) | PacingRule::Single(share) => {
                        (1..=100).contains(&share)
                    }
                };
                (most == 0 || least > most || !is_rule).then_some(Refusal::OutOfRange)
            }
            Admin::StopBackground => None,
            Admin::Stop if self.log.is_replaying() => Some(Refusal::Busy),
            Admin::Stop => self.members.is_lost(&self.setup).then_some(Refusal::ArrayFailed),
        }
    }

    fn no_member(&self, member: MemberIndex) -> Option<Refusal> {
        (!self.setup.is_member(member)).then_some(Refusal::NoSuchMember)
    }

    /// What stands against any work on a member's redundancy.
    fn no_work(&self, member: MemberIndex) -> Option<Refusal> {
        if let Some(reason) = self.no_member(member) {
            return Some(reason);
        }
        if !self.setup.is_redundant() {
            return Some(Refusal::NoRedundancy);
        }
        self.takes_no_work()
    }

    fn takes_no_work(&self) -> Option<Refusal> {
        if self.members.is_lost(&self.setup) {
            return Some(Refusal::ArrayFailed);
        }
        // Stopped by command: the array is on its way out of service.
        self.members.stopped.then_some(Refusal::Busy)
    }

    fn cannot_return(&self, member: MemberIndex) -> Option<Refusal> {
        if let Some(reason) = self.no_work(member) {
            return Some(reason);
        }
        if !self.members.failed.contains(member) {
            return Some(Refusal::InService);
        }
        if !self.background.can_rebuild(&self.setup, member) {
            return Some(Refusal::Degraded);
        }
        (self.members[member].pending > 0).then_some(Refusal::InFlight)
    }

    fn cannot_be_replaced(&self, member: MemberIndex, consent: bool) -> Option<Refusal> {
        if let Some(reason) = self.no_work(member) {
            return Some(reason);
        }
        if self.members.missing().contains(member) {
            return Some(Refusal::NotInService);
        }
        let known = &self.members[member];
        let is_healthy = known.corrected == 0 && known.bad.is_empty();
        if is_healthy && !consent {
            return Some(Refusal::InService);
        }
        if self.background.is_busy(&self.setup, &self.members)
            || self.members.replacing.contains(member)
        {
            return Some(Refusal::Busy);
        }
        let other = self.setup.replacement(member);
        (self.members[other].pending > 0).then_some(Refusal::InFlight)
    }

    /// What was asked for since the start did not go to the drive.
    fn cannot_go_on_replacing(&self, member: MemberIndex) -> Option<Refusal> {
        if let Some(reason) = self.no_work(member) {
            return Some(reason);
        }
        if self.members.missing().contains(member) {
            return Some(Refusal::NotInService);
        }
        let is_asked = self.requests.slots.used().next().is_some();
        let is_begun = self.background.work().is_some_and(|work| work != Work::LogReplay);
        let busy = is_asked || is_begun || !self.members.replacing.is_empty();
        busy.then_some(Refusal::Busy)
    }

    /// Whether a fresh drive is too small for a member's place.
    pub(crate) fn does_not_fit(&self, member: MemberIndex, sectors: Sectors) -> Option<Refusal> {
        let used = self.setup.geometry.used(member);
        let needed = match self.setup.log_sectors(member) {
            // Superblocks say how much the smallest member has, of which the array may use less.
            Sectors::ZERO if self.setup.settings.consistency.has_superblocks() => {
                self.setup.sizes.iter().copied().min().map_or(used, |least| least.max(used))
            }
            Sectors::ZERO => used,
            // A log lies behind all the data a member may have, used or not.
            _ => self.setup.sizes[member.at()],
        };
        (sectors < needed).then_some(Refusal::TooSmall)
    }

    fn cannot_be_scrubbed(&self, scrub: Scrub) -> Option<Refusal> {
        if !self.setup.is_redundant() {
            return Some(Refusal::NoRedundancy);
        }
        if let Scrub::Repair(source) = scrub {
            match source {
                // Only P and Q together can name who is wrong.
                RepairSource::Nobody if self.setup.parities < 2 => {
                    return Some(Refusal::NobodyToBelieve);
                }
                RepairSource::NotMember(member) if !self.setup.is_member(member) => {
                    return Some(Refusal::NoSuchMember);
                }
                _ => {}
            }
        }
        if let Some(reason) = self.takes_no_work() {
            return Some(reason);
        }
        if !self.members.missing().is_empty() {
            return Some(Refusal::Degraded);
        }
        self.background.is_busy(&self.setup, &self.members).then_some(Refusal::Busy)
    }
}
