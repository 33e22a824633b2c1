//! What no drive tells: writes lost, misdirected or changed. Nothing here detects them when they are
//! read; a scrub must find exactly where redundancy disagrees, name the guilty where P and Q can, and
//! write nothing where nobody can be named.

use raidlab_core::contract::{Admin, Event, RepairSource, Scrub};
use raidlab_core::{MemberIndex, Sector};

use super::Class;
use super::run::{Checked, Run};
use crate::shape::all_of;

impl Run {
    /// Changes one sector of a member of an array at rest; a scrub has to find it and, told which
    /// member is wrong, to mend it.
    pub(super) fn silent(&mut self) -> Checked {
        if self.may_disagree() || self.budget.harmed != 0 {
            return Ok(());
        }
        let member = self.random.below(u64::from(self.members())) as u16;
        let device = MemberIndex(member);
        let used = self.harness.array().geometry().used(device).0;
        let at = self.random.below(used);
        if used == 0 || self.harness.shape().is_unused(member, at) {
            return Ok(());
        }
        // Copies of what was discarded may differ anyway.
        let sector = self.harness.shape().array_sector(member, at);
        if self.harness.shape().parities() == 0
            && sector.is_some_and(|sector| self.harness.oracle().is_open(sector))
        {
            return Ok(());
        }
        self.hit(Class::Silent);
        self.budget.disagrees = true;
        let before = self.harness.drives().live(device, at);
        self.harness.drives_mut().rot(device, at, 1 << self.random.below(64));
        let found = self.scrub(Scrub::Check)?;
        if !found.iter().any(|event| self.names(event, device, at)) {
            return self
                .broken(format!("a check misses sector {at} of member {member}: {found:?}"));
        }
        let repair = if self.random.chance(50) {
            RepairSource::Nobody
        } else {
            RepairSource::NotMember(device)
        };
        let as_found = self.everything();
        let can_name = self.harness.shape().parities() == 2 || repair != RepairSource::Nobody;
        if can_name {
            self.scrub(Scrub::Repair(repair))?;
        } else {
            self.harness.command(Admin::StartScrub(Scrub::Repair(repair)));
            self.harness.run_on(3000);
            let refused = |event: &Event| matches!(event, Event::Refused(..));
            if !self.harness.events().iter().any(refused) {
                return self.broken("a repair that cannot name anybody is not refused");
            }
            self.look()?;
        }
        let mended = self.harness.drives().live(device, at) == before;
        if can_name && !mended {
            return self.broken(format!("{repair:?} does not mend sector {at} of member {member}"));
        }
        if !can_name && self.everything() != as_found {
            return self.broken("a repair wrote though nobody could be named");
        }
        if can_name {
            self.budget.disagrees = false;
            let members = all_of(self.members());
            if let Some(place) = self.harness.disagreement(members) {
                return self.broken(format!("redundancy disagrees after a repair: {place:?}"));
            }
        }
        Ok(())
    }

    /// Runs a scrub to its end; gives what it found.
    fn scrub(&mut self, scrub: Scrub) -> Checked<Vec<Event>> {
        self.look()?;
        self.harness.command(Admin::StartScrub(scrub));
        self.harness.run_on(3000);
        let events = self.harness.events().to_vec();
        if !events.iter().any(|event| matches!(event, Event::Finished { .. })) {
            return self.broken(format!("{scrub:?} never ends: {events:?}"));
        }
        self.look()?;
        Ok(events.into_iter().filter(|event| matches!(event, Event::Mismatch { .. })).collect())
    }

    /// Whether an event says that this sector of a member disagrees with the others.
    fn names(&self, event: &Event, device: MemberIndex, at: u64) -> bool {
        let Event::Mismatch { at: from, len, .. } = *event else { return false };
        let wanted = if self.harness.shape().parities() > 0 {
            Some(at)
        } else {
            self.harness.shape().array_sector(device.0, at)
        };
        let Sector(from) = from;
        wanted.is_some_and(|at| from <= at && at < from + u64::from(len))
    }
}
