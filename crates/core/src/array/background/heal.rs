//! Mending what a member could not read, and listing what cannot be mended.
//!
//! Like md, a block that a member cannot read is written anew from the others and read again. It is
//! done under the lock of its range, and begins with another look at the block: a write may have
//! mended it meanwhile.

use super::super::member_set::MemberSet;
use super::super::timers::Timer;
use super::sources::has;
use super::unit::{Phase, Task, Told, Unit};
use super::{Array, Bug};
use crate::array::ios::IoState;
use crate::contract::{Event, IoOp, IoOutcome, Output};
use crate::geometry::{Geometry, Holds, Place};
use crate::units::{MemberIndex, Sector};

impl Array {
    /// A member could not read: note it, and heal it.
    pub(in crate::array) fn read_failed(&mut self, io: &IoState, outcome: IoOutcome) {
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

    /// Begins to heal sectors of a member, where there is something to heal them from and a unit
    /// to do it.
    pub(super) fn begin_heal(&mut self, member: MemberIndex, from: u64, len: u32) {
        if !self.setup.is_redundant()
            || self.members.stopped
            || self.members.failed.contains(member)
        {
            return;
        }
        let block = self.setup.member_block();
        let start = from / block * block;
        let len = (from + u64::from(len)).next_multiple_of(block) - start;
        let Some(mut unit) = self.unit_at(member, start, len.min(self.setup.unit_rows)) else {
            return;
        };
        // What parity says before it was made consistent is nothing to write.
        if self.setup.parities > 0
            && !self.is_parity_consistent(unit.at, unit.at + u64::from(unit.len))
        {
            return;
        }
        unit.task = Task::Heal(member);
        unit.phase = Phase::Probe;
        let same = |other: &Unit| {
            other.task == unit.task
                && other.at < unit.at + u64::from(unit.len)
                && unit.at < other.at + u64::from(other.len)
        };
        if self.background.units.used().any(|(_, other)| same(other)) {
            return;
        }
        self.enter_unit_range(unit);
    }

    /// A unit over `len` sectors of a member, or as many as lie together.
    pub(super) fn unit_at(&self, member: MemberIndex, from: u64, len: u64) -> Option<Unit> {
        let (at, stripe, run) =
            match (&self.setup.geometry, self.setup.geometry.holds(place(member, from))) {
                (_, Holds::Nothing) => return None,
                (Geometry::Parity(parity), _) => {
                    let chunk = parity.chunk().0;
                    (from, from / chunk, chunk - from % chunk)
                }
                (Geometry::Raid3(_), _) => (from, 0, self.setup.geometry.used(member).0 - from),
                (geometry, Holds::Data { at, .. }) => (at.0, 0, geometry.run(at).0),
                _ => return None,
            };
        let len = len.min(run) as u32;
        Some(Unit { at, len, stripe, window: (0, len), ..Unit::idle() })
    }

    /// Reads what is to be healed.
    pub(super) fn issue_probe(&mut self, slot: u32) {
        let unit = self.background.units[slot];
        let Task::Heal(member) = unit.task else { return };
        let Some(role) = self.role_of(&unit, member) else { return };
        let from = unit.block.unwrap_or(unit.window.0);
        self.background.units[slot].window = (from, unit.len);
        self.background.units[slot].probed = None;
        // Beside what was written, which may be written once more.
        let place = if self.setup.parities > 0 { self.setup.width() } else { role };
        self.send_window(slot, IoOp::Read, member, role, place);
    }

    /// The member has read what it can.
    pub(super) fn probe_ended(&mut self, slot: u32) {
        let unit = self.background.units[slot];
        let block = self.setup.member_block() as u32;
        let Task::Heal(member) = unit.task else { return };
        let at = self.role_of(&unit, member).map_or(0, |role| self.unit_place(&unit, role).at.0);
        let bad = match unit.probed {
            Some(IoOutcome::MediaError { first_bad }) => {
                let bad = first_bad.0.saturating_sub(at).min(u64::from(unit.len - 1)) as u32;
                Some((bad / block * block).max(unit.window.0))
            }
            Some(IoOutcome::Ok) => None,
            // Gone or too slow: nothing more is learnt here.
            _ => {
                self.background.units[slot].phase = Phase::Done;
                return;
            }
        };
        let wrote = unit.block.filter(|_| unit.tries < u8::MAX);
        if wrote.is_some() && wrote != bad {
            self.background.units[slot].window = (unit.window.0, unit.window.0 + block);
            self.tell_run(slot, 0, Told::Healed);
        }
        let state = &mut self.background.units[slot];
        let Some(bad) = bad else {
            state.phase = Phase::Done;
            return;
        };
        if unit.block != Some(bad) {
            state.tries = 0;
        }
        state.block = Some(bad);
        state.window = (bad, (bad + block).min(unit.len));
        state.avoid = MemberSet::NONE;
        if state.tries >= self.setup.settings.heal_tries {
            self.lose_window(slot);
            return;
        }
        state.phase = if state.tries == 0 { Phase::Plan } else { Phase::Write };
        state.tries += 1;
    }

    /// The window, one block, cannot be had or mended: it is listed as bad where it should be.
    pub(super) fn lose_window(&mut self, slot: u32) {
        let unit = self.background.units[slot];
        let lost = unit.window.1 - unit.window.0;
        self.background.units[slot].phase = Phase::Next;
        match unit.task {
            Task::Scrub(_) => self.background.units[slot].lost += self.lost_to_all(&unit),
            Task::Rebuild(member) | Task::Replace(member) => {
                self.background.units[slot].lost += lost;
                let role = self.role_of(&unit, member).unwrap_or(0);
                let device = match unit.task {
                    Task::Replace(_) => self.setup.replacement(member),
                    _ => member,
                };
                self.list_bad(&unit, role, device);
                if device != member {
                    self.list_bad(&unit, role, member);
                }
                // Its drive will read it without an error.
                let at = self.unit_place(&unit, role).at.0 + u64::from(unit.window.0);
                let known = &mut self.members[device];
                known.hole_from = known.hole_from.min(at);
                self.tell_run(slot, 0, Told::Bad(1 << role));
            }
            Task::Resync => {
                self.background.units[slot].lost += lost;
                let from = &mut self.background.unsynced_from;
                *from = (*from).min(unit.at + u64::from(unit.window.0));
                self.lose_unsynced(slot, &unit);
            }
            Task::Heal(member) => {
                let role = self.role_of(&unit, member).unwrap_or(0);
                self.list_bad(&unit, role, member);
                self.tell_run(slot, 0, Told::Bad(1 << role));
                let state = &mut self.background.units[slot];
                let next = unit.window.1;
                state.phase = if next < unit.len { Phase::Probe } else { Phase::Done };
                state.block = None;
                state.tries = 0;
                state.window = (next.min(unit.len), unit.len);
            }
        }
    }

    /// A block of a row that was not made consistent cannot be read: neither it nor what parity
    /// says of it can be had. On mirrors no copy can be read.
    fn lose_unsynced(&mut self, slot: u32, unit: &Unit) {
        let from = u64::from(unit.window.0);
        let len = u64::from(unit.window.1 - unit.window.0);
        let mut bad = 0;
        for role in 0..self.setup.width() {
            let Place { member, at } = self.unit_place(unit, role);
            if self.members.failed.contains(member) {
                continue;
            }
            let parity = self.setup.parities > 0 && role >= self.setup.data_chunks;
            let unreadable = unit.avoid.contains(member)
                || self.members.lacks(&self.setup, member, Sector(at.0 + from), len);
            if parity || unreadable {
                bad |= 1 << role;
                self.list_bad(unit, role, member);
            }
        }
        self.tell_run(slot, 0, Told::Bad(bad));
    }

    /// Of a block that a scrub could not compare: how much of it nothing can compute.
    fn lost_to_all(&self, unit: &Unit) -> u32 {
        let from = u64::from(unit.window.0);
        let len = unit.window.1 - unit.window.0;
        let unreadable = |role: &u16| {
            let Place { member, at } = self.unit_place(unit, *role);
            unit.avoid.contains(member)
                || self.members.lacks(&self.setup, member, Sector(at.0 + from), u64::from(len))
        };
        let count = (0..self.setup.width()).filter(unreadable).count();
        let survives =
            if self.setup.parities > 0 { self.setup.parities } else { self.setup.copies - 1 };
        if count > usize::from(survives) { len } else { 0 }
    }

    /// Lists the window as bad on the device of a role. A device whose list is full goes out of
    /// service.
    fn list_bad(&mut self, unit: &Unit, role: u16, device: MemberIndex) {
        if self.setup.has_bug(Bug::BadBlockForgotten) {
            return;
        }
        let at = self.unit_place(unit, role).at.0;
        let (from, to) = (at + u64::from(unit.window.0), at + u64::from(unit.window.1));
        if self.members[device].bad.insert(from, to) {
            if self.setup.is_member(device) {
                self.members.note_partial(device);
            }
        } else if !self.setup.is_member(device) || !self.members.is_last_copy(&self.setup, device) {
            self.fail_device(device);
        }
    }

    /// A write went well: what it covers is no longer bad.
    pub(in crate::array) fn mended_by_write(&mut self, io: &IoState) {
        let known = &mut self.members[io.member];
        if known.bad.is_empty() || !matches!(io.op, IoOp::Write | IoOp::WriteZeroes) {
            return;
        }
        known.bad.remove(io.at.0, io.at.0 + u64::from(io.len));
        if !self.setup.is_member(io.member) {
            return;
        }
        if known.bad.is_empty() && known.hole_from < u64::MAX {
            self.background.filled.insert(io.member);
            self.timers.set(Timer::Pace, self.now);
        }
        self.members.note_partial(io.member);
    }

    /// One more error of a member; too many and it goes out of service, unless it is the last to
    /// have something.
    pub(super) fn count_error(&mut self, member: MemberIndex) {
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

    /// Adds the window to a run of blocks of which the same is to be told; another run that ends
    /// with it is told now.
    pub(super) fn tell_run(&mut self, slot: u32, line: usize, told: Told) {
        let unit = &mut self.background.units[slot];
        let (from, to) = unit.window;
        match &mut unit.news.runs[line] {
            Some((known, _, end)) if *known == told && *end == from => *end = to,
            run => {
                let before = run.replace((told, from, to));
                self.tell(slot, before);
            }
        }
    }

    /// Tells of everything that a unit still has to tell.
    pub(super) fn tell_all(&mut self, slot: u32) {
        for line in 0..2 {
            let run = self.background.units[slot].news.runs[line].take();
            self.tell(slot, run);
        }
    }

    fn tell(&mut self, slot: u32, run: Option<(Told, u32, u32)>) {
        let Some((told, from, to)) = run else { return };
        let unit = self.background.units[slot];
        let len = to - from;
        let start = |array: &Self, role: u16| {
            let Place { member, at } = array.unit_place(&unit, role);
            (member, Sector(at.0 + u64::from(from)))
        };
        match told {
            Told::Mismatch(guilty) => {
                let at = Sector(unit.at + u64::from(from));
                self.outputs.push_back(Output::Event(Event::Mismatch { at, len, guilty }));
            }
            Told::Mended(roles) => {
                for role in (0..self.setup.width()).filter(|role| has(roles, *role)) {
                    let (member, at) = start(self, role);
                    self.outputs.push_back(Output::Event(Event::Mended { member, at, len }));
                }
            }
            Told::Bad(roles) => {
                for role in (0..self.setup.width()).filter(|role| has(roles, *role)) {
                    let (member, at) = start(self, role);
                    self.outputs.push_back(Output::Event(Event::BadBlocks { member, at, len }));
                }
            }
            Told::Healed => {
                let Task::Heal(member) = unit.task else { return };
                let (_, at) = start(self, self.role_of(&unit, member).unwrap_or(0));
                self.outputs.push_back(Output::Event(Event::Corrected { member, at, len }));
                self.count_error(member);
            }
        }
    }
}

const fn place(member: MemberIndex, at: u64) -> Place {
    Place { member, at: Sector(at) }
}
