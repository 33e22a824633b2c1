//! Starts after a crash: what is lost with the power, and how little must be allowed.

use raidlab_core::consistency::{Allow, AssembleError};
use raidlab_core::{MemberIndex, Sector};

use super::Class;
use super::arrays::Mode;
use super::run::{Checked, Run};
use super::special::Special;
use crate::harness::{Started, named};
use crate::shape::{Set, all_of, set_of, words_of};

impl Run {
    /// Assembles after a crash: at first without allowing anything, then as little as it takes.
    pub(super) fn start_again(&mut self) -> Checked {
        if self.harness.drives().has_bytes() && self.start_harmed()? {
            return Ok(());
        }
        let lost = self.lose_at_start();
        self.start_without(lost)
    }

    pub(super) fn start_without(&mut self, lost: Set) -> Checked {
        self.start_allowed(lost, Allow::default())
    }

    /// The same with something allowed from the beginning.
    pub(super) fn start_allowed(&mut self, mut lost: Set, mut allow: Allow) -> Checked {
        if self.log_lost && self.mode == Mode::Journal {
            let device = MemberIndex(2 * self.members());
            self.harness.drives_mut().set_gone(device, true);
        }
        let mut may = self.may_be_out(lost | set_of(allow.without));
        for _ in 0..5 {
            let refused = match self.harness.assemble(lost, allow) {
                Started::Well => return self.started(may),
                Started::Refused(refused) => refused,
            };
            let untold = self.harness.untold(lost | set_of(allow.without), &refused);
            match refused {
                // Who served last is gone, and with it what was written since the others left: a
                // start without would go back in time, which only an administrator may want.
                AssembleError::Missing(_) if self.budget.beyond && self.is_last_gone(lost) => {
                    self.over = true;
                    return Ok(());
                }
                AssembleError::Missing(unused)
                    if set_of(named(&unused)) & !set_of(allow.without) != 0 =>
                {
                    let all = set_of(named(&unused)) | set_of(allow.without);
                    if all & !may != 0 && !self.budget.beyond {
                        return self.left_out(all & !may);
                    }
                    allow.without = words_of(all);
                }
                AssembleError::DirtyDegraded { .. } | AssembleError::JournalLost { .. }
                    if !allow.dirty_degraded =>
                {
                    allow.dirty_degraded = true;
                }
                // Who was away while all others were rebuilt looks like a half that went on alone:
                // it is left out.
                AssembleError::Diverged { .. } if self.failed_before & !lost != 0 => {
                    lost |= self.failed_before;
                }
                // Refused, since too little is left: that is due then.
                _ if self.budget.beyond => {
                    self.over = true;
                    return Ok(());
                }
                // Of version 0.90 superblocks do not tell what became of them.
                _ if untold != 0 => {
                    lost |= untold;
                    may |= untold;
                }
                other => {
                    let what =
                        format!("does not start: {other} (harmed {:#b})", self.budget.harmed);
                    return self.broken(what);
                }
            }
        }
        self.broken("does not start, whatever is allowed")
    }

    /// Members that may be out of service at the next start without `lost`: besides these all that were harmed, that
    /// were out of service when the power went, or that some superblock calls out or has none that counts.
    pub(super) fn may_be_out(&self, lost: Set) -> Set {
        let drives = self.harness.drives();
        let out = drives.said_to_be_out(self.members()) | drives.told_by_spares();
        lost | self.budget.harmed | self.failed_before | out
    }

    fn left_out<T>(&self, members: Set) -> Checked<T> {
        let harmed = self.budget.harmed;
        self.broken(format!(
            "a start leaves out {members:#b}, with which nothing was wrong (harmed {harmed:#b})"
        ))
    }

    /// An array has started: who is in service is known, and must be all but those who `may` be out.
    pub(super) fn started(&mut self, may: Set) -> Checked {
        let failed = all_of(self.members()) & !self.harness.in_service() & !may;
        if failed != 0 && !self.budget.beyond {
            return self.left_out(failed);
        }
        if self.members() > 64 {
            self.shares.has(Special::ManyAtStart);
        }
        if self.harness.array().status().replacing != [0; 2] {
            self.shares.has(Special::Resumed);
        }
        // The failure of the log device was not recorded before the power went: it is there, and used again.
        self.log_lost &= !self.harness.array().superblock().journal;
        for member in 0..self.members() {
            match self.harness.array().is_failed(MemberIndex(member)) {
                true => self.budget.harmed |= 1 << member,
                // Its failure was not recorded before the power went.
                false => self.clear_if_well(member),
            }
        }
        // A log of which something cannot be read protects no more than none. As with md, whole logs of which none has
        // entries, or one that is torn, have everything made consistent where all members are there, though nothing was
        // begun then: until that is done the array takes its parity for no good.
        let by_md = self.mode == Mode::PartialParity && self.harness.drives().is_md();
        if (by_md || self.has_bad_log())
            && self.harness.array().superblock().synced_to != Sector::MAX
        {
            self.owes_resync = true;
            self.budget.unsynced = true;
        }
        // A sector that cannot be read and parity that may be wrong are two failures.
        if self.budget.unsynced && self.harmed_in_service() != 0 {
            self.budget.beyond = true;
        }
        self.look()
    }

    /// Whether something of a log of partial parity cannot be read.
    fn has_bad_log(&self) -> bool {
        let drives = self.harness.drives();
        let is_bad = |member: u16| drives.is_log_bad(MemberIndex(member));
        self.mode == Mode::PartialParity && (0..self.members()).any(is_bad)
    }

    /// Whether too many are gone of those that were in service last, as any drive says, gone or
    /// not, for what they alone have to be there.
    fn is_last_gone(&self, lost: Set) -> bool {
        let drives = self.harness.drives();
        let gone = (0..self.members()).filter(|m| drives.is_gone(MemberIndex(*m)));
        let away = gone.fold(lost, |set, member| set | 1 << member);
        let all = all_of(self.members());
        let out = drives.said_to_be_out(self.members()) | drives.told_by_spares();
        !self.harness.shape().survives((away | out) & all)
    }

    /// Which members are lost with the power, and whose superblock is damaged.
    fn lose_at_start(&mut self) -> Set {
        let member = self.random.below(u64::from(self.members())) as u16;
        let fresh = self.budget.harmed >> member & 1 == 0;
        // What a forced start may do is the oracle's business: being unsynced is no hindrance here.
        // Who is whole again may not be so in the superblocks yet.
        let known =
            (0..self.members()).filter_map(|m| self.harness.drives().superblock(MemberIndex(m)));
        let away = known.fold(0, |set, one| set | set_of(one.failed) | set_of(one.rebuilding));
        let survives = self.harness.shape().survives(self.budget.harmed | away | 1 << member);
        if !fresh || !survives || self.budget.beyond {
            return 0;
        }
        if self.is_on(Class::CrashAndLoss) && self.random.chance(35) {
            self.hit(Class::CrashAndLoss);
            self.budget.harmed |= 1 << member;
            return 1 << member;
        }
        if self.is_on(Class::Superblock) && self.mode != Mode::None && self.random.chance(25) {
            self.hit(Class::Superblock);
            self.budget.harmed |= 1 << member;
            self.spoil_superblock(member);
        }
        0
    }
}
