//! The end of a run: the faults stop, and the array must come back.

use raidlab_core::contract::{Admin, Event, IoOp, Outcome as Answered, Scrub};
use raidlab_core::{MemberIndex, Sector};

use super::arrays::Mode;
use super::run::{Checked, Run, WAKES};
use crate::harness::Ask;
use crate::shape::set_of;

impl Run {
    /// The faults stop: the array must come back.
    pub(super) fn come_to_rest(&mut self) -> Checked {
        self.harness.run_on(WAKES);
        self.look()?;
        if self.harness.unanswered() > 0 {
            return self
                .broken(format!("{} requests are never answered", self.harness.unanswered()));
        }
        if self.budget.beyond {
            return self.read_all(false);
        }
        self.renew_failed()?;
        let status = self.harness.array().status();
        let unfinished = status.rebuilding != [0, 0] || status.synced_to != Sector::MAX;
        if unfinished && self.mode != Mode::None {
            self.stop_and_start()?;
        }
        // A drive that came back may have failed once more.
        self.renew_failed()?;
        let status = self.harness.array().status();
        if let Some(work) = status.work {
            return self.broken(format!("{work:?} never ends"));
        }
        if status.failed != [0, 0] || status.rebuilding != [0, 0] {
            return self.broken(format!("not all members are in service in the end: {status:?}"));
        }
        self.at_rest = true;
        self.read_all(true)?;
        self.agree()?;
        self.at_rest = false;
        Ok(())
    }

    /// Fresh drives in the places of all failed members.
    fn renew_failed(&mut self) -> Checked {
        for _ in 0..2 * self.members() {
            let failed =
                (0..self.members()).find(|m| self.harness.array().is_failed(MemberIndex(*m)));
            let Some(member) = failed else { break };
            self.renew(member);
            self.harness.run_on(WAKES);
            self.look()?;
            if self.harness.array().is_failed(MemberIndex(member)) {
                return self.broken(format!("member {member} is not taken back"));
            }
        }
        Ok(())
    }

    /// Redundancy agrees everywhere, says the outside as well as a check of the array itself.
    fn agree(&mut self) -> Checked {
        if self.open_for_good {
            return Ok(());
        }
        // Reading everything may have found a sector that cannot be written either.
        let there = self.harness.in_service();
        if let Some(place) = self.harness.disagreement(there) {
            return self.broken(format!("redundancy disagrees in the end: {place:?}"));
        }
        self.budget.unsynced = false;
        self.budget.disagrees = false;
        self.harness.oracle_mut().recovered();
        self.harness.command(Admin::StartScrub(Scrub::Check));
        self.harness.run_on(WAKES);
        self.look()
    }

    /// An orderly stop right after a write, and a start with everything there: nothing is left to be done, nobody is
    /// missing, and what was written is there.
    pub(super) fn start_clean(&mut self) -> Checked {
        self.harness.run_on(WAKES);
        self.look()?;
        let before = self.harness.array().status();
        if before.synced_to != Sector::MAX {
            return self.broken(format!("something is never made consistent: {before:?}"));
        }
        let len = self.harness.shape().logical_block;
        self.harness.ask(Ask { op: IoOp::Write, at: 0, len, fua: false });
        self.stop()?;
        self.harness.note_durable();
        // Nothing of what is not durable is there.
        self.harness.crash(|_| 0);
        let resyncs = self.resyncs;
        self.start_without(0)?;
        let synced_to = self.harness.array().status().synced_to;
        self.harness.run_on(WAKES);
        self.look()?;
        if synced_to != Sector::MAX || self.resyncs != resyncs {
            return self.broken(format!(
                "a start after an orderly stop is not clean: consistent up to {synced_to}"
            ));
        }
        let status = self.harness.array().status();
        if status.failed != before.failed || status.rebuilding != before.rebuilding {
            return self
                .broken(format!("not all members are back after an orderly stop: {status:?}"));
        }
        let outcome = self.harness.read(0, len);
        if outcome != Answered::Done {
            return self.broken(format!("after a clean start a read gives {outcome:?}"));
        }
        self.look()
    }

    /// An orderly stop, and a start with everything there: what was interrupted goes on.
    fn stop_and_start(&mut self) -> Checked {
        self.stop()?;
        // Nothing of what is not durable is there.
        self.harness.crash(|_| 0);
        self.start_without(0)?;
        self.harness.run_on(WAKES);
        self.look()
    }

    /// An orderly stop.
    fn stop(&mut self) -> Checked {
        self.harness.command(Admin::Stop);
        self.harness.run_on(WAKES);
        if !self.harness.events().contains(&Event::Stopped) {
            return self.broken("the array does not stop");
        }
        self.look()?;
        self.failed_before = set_of(self.harness.array().status().failed);
        Ok(())
    }

    /// Reads every sector; the oracle judges what comes.
    pub(super) fn read_all(&mut self, must_work: bool) -> Checked {
        let capacity = self.harness.shape().capacity;
        let mut at = 0;
        while at < capacity {
            let len = self.longest().min(capacity - at);
            let outcome = self.harness.read(at, len);
            if must_work && outcome != Answered::Done {
                return self.broken(format!("in the end a read of {at}+{len} gives {outcome:?}"));
            }
            self.look()?;
            at += len;
        }
        Ok(())
    }
}
