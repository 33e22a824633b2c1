//! What is done to an array at rest when all else is over: two things that random work hardly ever
//! comes to.

use raidlab_core::contract::{Admin, Event, IoOp, Refusal, RepairSource, Scrub};
use raidlab_core::{MemberIndex, Sector};

use super::Class;
use super::arrays::Mode;
use super::run::{Checked, Run, WAKES};
use crate::harness::Ask;
use crate::shape::{all_of, has, set_of};

impl Run {
    /// Two sectors of a row are changed, in different bits: P and Q name nobody then, and a repair
    /// that is told nothing must write nothing.
    pub(super) fn two_silent(&mut self) -> Checked {
        let row = self.random.below(self.harness.shape().rows().max(1) as u64);
        let first = self.random.below(u64::from(self.members())) as u16;
        let second = (first + 1) % self.members();
        let shape = self.harness.shape();
        let used = !shape.is_unused(first, row) && !shape.is_unused(second, row);
        if shape.parities() < 2 || !used || self.may_disagree() || self.budget.harmed != 0 {
            return Ok(());
        }
        self.hit(Class::Silent);
        self.budget.disagrees = true;
        self.harness.drives_mut().rot(MemberIndex(first), row, 1 << 3);
        self.harness.drives_mut().rot(MemberIndex(second), row, 1 << 43);
        let as_found = self.everything();
        self.harness.command(Admin::StartScrub(Scrub::Repair(RepairSource::Nobody)));
        self.harness.run_on(WAKES);
        if !self.harness.events().iter().any(|event| matches!(event, Event::Mismatch { .. })) {
            return self.broken(format!("a repair misses row {row}, where two members are wrong"));
        }
        self.look()?;
        if self.everything() != as_found {
            return self.broken(format!("a repair wrote row {row}, where nobody can be named"));
        }
        Ok(())
    }

    /// Everything that members hold of data and parity.
    pub(super) fn everything(&self) -> Vec<u64> {
        let drives = self.harness.drives();
        let members = (0..self.members()).map(MemberIndex);
        let sectors = members.flat_map(|m| (0..drives.log_start(m)).map(move |s| (m, s)));
        sectors.map(|(m, s)| drives.live(m, s)).collect()
    }

    /// A member is replaced by a fresh drive; when that fails too, the first drive comes back. The
    /// bitmap does not say what changed since it was there.
    pub(super) fn old_drive(&mut self) -> Checked {
        let member = self.random.below(u64::from(self.members())) as u16;
        let device = MemberIndex(member);
        let known = self.harness.drives().superblock(device);
        let Some(superblock) = known.filter(|_| self.mode == Mode::Bitmap) else { return Ok(()) };
        let in_service = !has(set_of(superblock.failed) | set_of(superblock.rebuilding), member);
        let quiet = self.budget.harmed == 0 && !self.may_disagree();
        if !in_service || !quiet || !self.harness.shape().survives(1 << member) {
            return Ok(());
        }
        self.hit(Class::Stale);
        self.budget.harmed = 1 << member;
        let old = self.harness.clone();
        self.fail(device)?;
        self.write_all()?;
        self.renew(member);
        self.harness.run_on(WAKES);
        self.look()?;
        self.write_all()?;
        self.budget.harmed = 1 << member;
        self.fail(device)?;
        self.harness.drives_mut().take_drive(device, old.drives());
        let events = superblock.events;
        let command = Admin::ReAdd { member: device, events, good_to: Sector::MAX };
        let told = self.harness.events().len();
        self.harness.command(command);
        self.harness.run_on(WAKES);
        let refused = Event::Refused(Refusal::NothingKnown);
        let is_refused = self.harness.events()[told..].contains(&refused);
        self.look()?;
        if is_refused {
            self.renew(member);
            self.harness.run_on(WAKES);
            self.look()?;
        }
        let all = all_of(self.members());
        if let Some(place) = self.harness.disagreement(all) {
            return self.broken(format!("redundancy disagrees after an old drive: {place:?}"));
        }
        self.read_all(true)
    }

    fn fail(&mut self, device: MemberIndex) -> Checked {
        self.harness.command(Admin::Fail(device));
        self.harness.run_on(WAKES);
        self.look()
    }

    /// Writes every sector, and waits until all is quiet.
    fn write_all(&mut self) -> Checked {
        let capacity = self.harness.shape().capacity;
        let piece = self.longest();
        let mut at = 0;
        while at < capacity {
            let len = piece.min(capacity - at);
            self.harness.ask(Ask { op: IoOp::Write, at, len, fua: false });
            self.look()?;
            at += len;
        }
        self.harness.run_on(WAKES);
        self.look()
    }
}
