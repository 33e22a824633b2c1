//! Mending what a member could not read, and listing what cannot be mended.
//!
//! Like md, a block that a member cannot read is written anew from the others and read again. It is
//! done under the lock of its range, and begins with another look at the block: a write may have
//! mended it meanwhile.

use super::super::Array;
use crate::array::background::{Finding, FindingRun, Phase, ResyncWindow, Task};
use crate::array::ios::IoState;
use crate::array::roles::Roles;
use crate::array::timers::Timer;
use crate::bugs::Bug;
use crate::contract::{Event, IoOp, IoOutcome, Output};
use crate::geometry::Place;
use crate::units::{MemberIndex, Sector};

impl Array {
    /// A member could not read: note it, and heal it.
    pub(in crate::array::planner) fn read_failed(&mut self, io: &IoState, outcome: IoOutcome) {
        if !self.setup.is_member(io.member) {
            return;
        }
        match outcome {
            IoOutcome::MediaError { first_bad } => {
                let end = io.at.0 + u64::from(io.len);
                let from = first_bad.0.clamp(io.at.0, end - 1);
                self.begin_heal(io.member, from, (end - from) as u32);
            }
            IoOutcome::Timeout => self.count_error(io.member),
            _ => {}
        }
    }

    /// Begins to heal sectors of a member, where there is something to heal them from and a window
    /// to do it.
    pub(in crate::array::planner) fn begin_heal(
        &mut self,
        member: MemberIndex,
        from: u64,
        len: u32,
    ) {
        if !self.setup.is_redundant()
            || self.members.stopped
            || self.members.failed.contains(member)
        {
            return;
        }
        let block = self.setup.member_block();
        let start = from / block * block;
        let len = (from + u64::from(len)).next_multiple_of(block) - start;
        let Some(mut window) =
            ResyncWindow::at(&self.setup, member, start, len.min(self.setup.window_rows))
        else {
            return;
        };
        // What parity says before it was made consistent is nothing to write.
        if self.setup.parities > 0 && !self.is_parity_consistent(window.at, window.end()) {
            return;
        }
        window.task = Task::Heal(member);
        window.phase = Phase::Probe;
        if self.background.windows.used().any(|(_, other)| window.overlaps(other)) {
            return;
        }
        self.enter_window_range(window);
    }

    /// Reads what is to be healed.
    pub(in crate::array::planner) fn issue_probe(&mut self, slot: u32) {
        let window = &mut self.background.windows[slot];
        let Task::Heal(member) = window.task else { return };
        let Some(role) = window.role_of(&self.setup, member) else { return };
        window.begin_probe();
        // Beside what was written, which may be written once more.
        let place = if self.setup.parities > 0 { self.setup.width() } else { role };
        self.send_window(slot, IoOp::Read, member, role, place);
    }

    /// The member has read what it can.
    pub(in crate::array::planner) fn probe_ended(&mut self, slot: u32) {
        let window = &mut self.background.windows[slot];
        let Task::Heal(member) = window.task else { return };
        let role = window.role_of(&self.setup, member);
        let at = role.map_or(0, |role| window.place(&self.setup, role).at.0);
        if window.probe_ended(&self.setup, at) {
            self.notify_run(slot, 0, Finding::Healed);
        }
        if self.background.windows[slot].mend_probed(&self.setup) {
            self.lose_window(slot);
        }
    }

    /// The part, one block, cannot be had or mended: it is listed as bad where it should be.
    pub(in crate::array::planner) fn lose_window(&mut self, slot: u32) {
        let window = self.background.windows[slot];
        let lost = window.part.1 - window.part.0;
        self.background.windows[slot].phase = Phase::Next;
        match window.task {
            Task::Scrub(_) => {
                self.background.windows[slot].lost += window.lost_to_all(&self.setup, &self.members)
            }
            Task::Rebuild(member) | Task::Replace(member) => {
                self.background.windows[slot].lost += lost;
                let role = window.role_of(&self.setup, member).unwrap_or(0);
                let device = match window.task {
                    Task::Replace(_) => self.setup.replacement(member),
                    _ => member,
                };
                self.list_bad(&window, role, device);
                if device != member {
                    self.list_bad(&window, role, member);
                }
                // Its drive will read it without an error.
                let at = window.place(&self.setup, role).at.0 + u64::from(window.part.0);
                let known = &mut self.members[device];
                match self.setup.settings.keeps_bad_blocks {
                    true => known.is_listed = true,
                    false => known.hole_from = known.hole_from.min(at),
                }
                self.notify_run(slot, 0, Finding::Bad(Roles::one(role)));
            }
            Task::Resync => {
                self.background.windows[slot].lost += lost;
                self.background.lose_redundancy(window.at + u64::from(window.part.0));
                self.lose_unsynced(slot, &window);
            }
            Task::Heal(member) => {
                let role = window.role_of(&self.setup, member).unwrap_or(0);
                if !self.list_bad(&window, role, member) {
                    // Mending another member that is bad here too would read this one, and begin its mending again.
                    self.background.windows[slot].sick = None;
                }
                self.notify_run(slot, 0, Finding::Bad(Roles::one(role)));
                self.background.windows[slot].give_up_window();
            }
        }
    }

    /// A block of a row that was not made consistent cannot be read: neither it nor what parity
    /// says of it can be had. On mirrors no copy can be read.
    fn lose_unsynced(&mut self, slot: u32, window: &ResyncWindow) {
        let mut bad = Roles::NONE;
        for role in 0..self.setup.width() {
            let member = window.place(&self.setup, role).member;
            if self.members.failed.contains(member) {
                continue;
            }
            let parity = self.setup.parities > 0 && role >= self.setup.data_chunks;
            if parity || window.is_unreadable(&self.setup, &self.members, role) {
                bad = bad.union(Roles::one(role));
                self.list_bad(window, role, member);
            }
        }
        self.notify_run(slot, 0, Finding::Bad(bad));
    }

    /// Lists the part as bad on the device of a role; whether it is. A device whose list is full goes out of
    /// service, unless it is the last to have something.
    fn list_bad(&mut self, window: &ResyncWindow, role: u16, device: MemberIndex) -> bool {
        if self.setup.has_bug(Bug::BadBlockForgotten) {
            return false;
        }
        let at = window.place(&self.setup, role).at.0;
        let (from, to) = (at + u64::from(window.part.0), at + u64::from(window.part.1));
        // On the medium it takes more room where it is long.
        let known = &mut self.members[device];
        let keeps = self.setup.settings.keeps_bad_blocks;
        let is_full = keeps && known.entries() >= u64::from(self.setup.settings.most_bad_blocks);
        if !is_full && known.bad.insert(from, to) {
            if self.setup.is_member(device) {
                self.members.note_partial(device);
            }
            return true;
        }
        if !self.setup.is_member(device) || !self.members.is_last_copy(&self.setup, device) {
            self.fail_device(device);
        }
        false
    }

    /// A write went well: what it covers is no longer bad. False when there is no room to know that, so that some of
    /// it stays bad, and is not there to be read.
    #[must_use]
    pub(in crate::array::planner) fn mended_by_write(&mut self, io: &IoState) -> bool {
        let known = &mut self.members[io.member];
        if known.bad.is_empty() || !matches!(io.op, IoOp::Write | IoOp::WriteZeroes) {
            return true;
        }
        let (from, to) = (io.at.0, io.at.0 + u64::from(io.len));
        if known.is_listed {
            let (bad, mended) = (&known.bad, &mut known.mended);
            if !bad.within(from, to).all(|(from, to)| mended.insert(from, to)) {
                return false;
            }
        }
        if !known.bad.remove(from, to) {
            return false;
        }
        if !self.setup.is_member(io.member) {
            return true;
        }
        self.look_if_filled(io.member);
        self.members.note_partial(io.member);
        true
    }

    /// Where all that a member lost was written since, superblocks may say so as soon as that is durable.
    pub(in crate::array::planner) fn look_if_filled(&mut self, member: MemberIndex) {
        let known = &self.members[member];
        if known.bad.is_empty() && (known.hole_from < u64::MAX || known.is_listed) {
            self.background.note_filled(member);
            self.timers.set(Timer::Pace, self.now);
        }
    }

    /// One more error of a member; too many and it goes out of service, unless it is the last to
    /// have something.
    pub(in crate::array::planner) fn count_error(&mut self, member: MemberIndex) {
        if !self.setup.is_member(member) || !self.setup.is_redundant() {
            return;
        }
        let known = &mut self.members[member];
        known.corrected = known.corrected.saturating_add(1);
        if known.corrected > self.setup.settings.most_corrected
            && !self.members.failed.contains(member)
            && !self.members.is_last_copy(&self.setup, member)
        {
            self.fail_member(member);
        }
    }

    /// Adds the part to a run of blocks of which the same is to be told; another run that ends
    /// with it is told now.
    pub(in crate::array::planner) fn notify_run(&mut self, slot: u32, line: usize, told: Finding) {
        let before = self.background.windows[slot].add_finding(line, told);
        self.tell(slot, before);
    }

    /// Tells of everything that a window still has to tell.
    pub(in crate::array::planner) fn tell_all(&mut self, slot: u32) {
        for line in 0..2 {
            let run = self.background.windows[slot].notifications.runs[line].take();
            self.tell(slot, run);
        }
    }

    fn tell(&mut self, slot: u32, run: FindingRun) {
        let Some((told, from, to)) = run else { return };
        let window = self.background.windows[slot];
        let len = to - from;
        let start = |array: &Self, role: u16| {
            let Place { member, at } = window.place(&array.setup, role);
            (member, Sector(at.0 + u64::from(from)))
        };
        match told {
            Finding::Mismatch(guilty) => {
                let at = Sector(window.at + u64::from(from));
                self.outputs.push_back(Output::Event(Event::Mismatch { at, len, guilty }));
            }
            Finding::Mended(roles) => {
                for role in roles.iter() {
                    let (member, at) = start(self, role);
                    self.outputs.push_back(Output::Event(Event::Mended { member, at, len }));
                }
            }
            Finding::Bad(roles) => {
                for role in roles.iter() {
                    let (member, at) = start(self, role);
                    self.outputs.push_back(Output::Event(Event::BadBlocks { member, at, len }));
                }
            }
            Finding::Healed => {
                let Task::Heal(member) = window.task else { return };
                let (_, at) = start(self, window.role_of(&self.setup, member).unwrap_or(0));
                self.outputs.push_back(Output::Event(Event::Corrected { member, at, len }));
                self.count_error(member);
            }
        }
    }
}
