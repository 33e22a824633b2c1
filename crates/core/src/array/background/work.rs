//! What background work there is: how it begins, how far it is, how it ends.

use super::super::member_set::MemberSet;
use super::super::settings::Consistency;
use super::unit::{Task, Unit};
use super::{Array, Bug, Flush, Resync, Running, Then, Todo};
use crate::array::rounds::Purpose;
use crate::contract::{Event, Output, Scrub, Work};
use crate::units::{MemberIndex, Sector, Sectors, Time};

/// Progress is told this often in the course of a piece of work.
const TOLD: u64 = 64;
/// It is recorded how far a rebuild or resync is this often, as in md.
const KEPT: u64 = 16;

/// A number for a piece of work.
pub(super) fn key_of(work: Work) -> u64 {
    match work {
        Work::Replay => 0,
        Work::Resync => 1,
        Work::Rebuild(member) => 2 | u64::from(member.0) << 8,
        Work::Replace(member) => 3 | u64::from(member.0) << 8,
        Work::Scrub(Scrub::Check) => 4,
        Work::Scrub(Scrub::Repair(_)) => 5,
    }
}

impl Array {
    /// What an array that was just assembled does first. Work begins at the first input or, where
    /// the driver wakes the array when it asks for it, by itself.
    pub(crate) fn begin_at_start(&mut self, todo: Todo) {
        let background = &mut self.background;
        background.replaying = todo.replay;
        if todo.trust_parity {
            let missing = self.members.failed.union(self.members.rebuilding);
            background.trust = if todo.is_unknown { MemberSet::ALL } else { missing };
        }
        background.resync = todo.resync;
        if todo.resync != Resync::None {
            background.synced_to = todo.synced_to;
            background.synced_kept = todo.synced_to;
        }
        for member in self.members.rebuilding.iter() {
            let known = &mut self.members[member];
            known.kept_to = known.good_to;
            known.named_to = if todo.by_bitmap { u64::MAX } else { 0 };
            self.members.note_partial(member);
        }
        let begins = todo.resync != Resync::None || !self.members.rebuilding.is_empty();
        if begins && !todo.replay {
            self.timers.set(super::super::timers::Timer::Pace, self.now);
            self.tell_wake();
        }
    }

    /// The logs were replayed; whether that made redundancy consistent wherever it may not have
    /// been. Other work may begin.
    pub(in crate::array) fn replay_over(&mut self, complete: bool) {
        let background = &mut self.background;
        background.replaying = false;
        if !complete {
            background.resync = Resync::All;
            background.synced_to = 0;
            background.synced_kept = 0;
        }
        self.pump();
    }

    /// Whether work is under way or waits for its turn. A replay counts: a scrub before its end would
    /// mend from parity that is not yet consistent what a drive cannot read.
    pub(in crate::array) fn is_background_busy(&self) -> bool {
        let background = &self.background;
        background.replaying
            || background.work.is_some()
            || self.is_settling()
            || self.pending_work().is_some()
    }

    /// The work whose turn it is, if it may begin.
    fn next_work(&self) -> Option<Work> {
        let background = &self.background;
        if background.halted || background.replaying || self.members.stopped {
            return None;
        }
        self.pending_work()
    }

    fn pending_work(&self) -> Option<Work> {
        let background = &self.background;
        if background.resync != Resync::None && self.can_resync() {
            return Some(Work::Resync);
        }
        if let Some(member) = self.members.rebuilding.iter().next() {
            return Some(Work::Rebuild(member));
        }
        self.members.replacing.iter().next().map(Work::Replace)
    }

    /// Whether a resync can go on: parity that may be wrong says nothing of members that are away.
    fn can_resync(&self) -> bool {
        self.setup.parities == 0
            || !self
                .members
                .failed
                .without(self.background.trust)
                .iter()
                .any(|m| self.setup.holds_data(m))
    }

    /// Begins a piece of work; none is under way.
    pub(in crate::array) fn begin_work(&mut self, work: Work) {
        let block = self.setup.member_block();
        let sweep = self.setup.covered();
        let (from, end) = match work {
            Work::Rebuild(member) => {
                (self.members[member].good_to, self.setup.geometry.used(member).0)
            }
            Work::Replace(member) => (0, self.setup.geometry.used(member).0),
            Work::Resync => (self.background.synced_to, sweep),
            Work::Scrub(_) | Work::Replay => (0, sweep),
        };
        let end = end / block * block;
        let from = from.min(end);
        let short = matches!(work, Work::Rebuild(_)) && self.setup.has_bug(Bug::RebuildStopsShort);
        let end = if short { end.saturating_sub(self.setup.unit_rows).max(from) } else { end };
        let background = &mut self.background;
        background.serial = background.serial.wrapping_add(1);
        background.halted = false;
        background.pace.begin(self.now);
        background.work = Some(Running {
            work,
            cursor: from,
            end,
            began: (from, self.now),
            units: 0,
            mismatched: 0,
            lost: 0,
            told: from * TOLD / end.max(1),
            kept: from,
        });
        self.outputs.push_back(Output::Event(Event::Started(work)));
    }

    /// Hands out ranges, as fast as the pace allows; begins and ends work.
    pub(in crate::array) fn pump(&mut self) {
        if std::mem::replace(&mut self.background.pumping, true) {
            return;
        }
        loop {
            self.fill_holes();
            let Some(running) = self.background.work else {
                let Some(work) = self.next_work() else { break };
                if self.is_settling() {
                    break;
                }
                self.begin_work(work);
                continue;
            };
            if running.cursor >= running.end {
                if running.units > 0 || self.is_settling() {
                    break;
                }
                self.work_swept(running);
                if self.background.work.is_some() {
                    break;
                }
                continue;
            }
            if !self.may_begin_unit() {
                break;
            }
            self.begin_next_range(running);
        }
        self.background.pumping = false;
    }

    /// Members of which everything lost was written since are whole, as soon as that is durable.
    fn fill_holes(&mut self) {
        if self.background.filled.is_empty() || self.is_settling() || self.members.stopped {
            return;
        }
        let members = std::mem::replace(&mut self.background.filled, MemberSet::NONE);
        self.flush_then(Then::Fill(members));
    }

    fn filled(&mut self, members: MemberSet) {
        for member in members.iter() {
            let rebuilt = self.members.rebuilding.contains(member);
            let known = &mut self.members[member];
            if known.bad.is_empty() && !rebuilt {
                known.hole_from = u64::MAX;
                known.kept_to = u64::MAX;
            }
        }
        self.state_changed();
    }

    /// Begins the range at the cursor, or moves on over what needs no work.
    fn begin_next_range(&mut self, running: Running) {
        let cursor = running.cursor;
        let left = running.end - cursor;
        let most = self.setup.unit_rows.min(left);
        let of = match running.work {
            Work::Rebuild(member) | Work::Replace(member) => Some(member),
            _ => None,
        };
        let unit = match of {
            Some(member) => self.unit_at(member, cursor, most),
            None if self.setup.parities > 0 => self.unit_at(MemberIndex(0), cursor, most),
            None => {
                let len = most.min(self.setup.geometry.run(Sector(cursor)).0) as u32;
                Some(Unit { at: cursor, len, window: (0, len), ..Unit::idle() })
            }
        };
        let Some(mut unit) = unit else {
            self.move_cursor(self.nothing_until(cursor));
            return;
        };
        let to = cursor + u64::from(unit.len);
        if self.is_skipped(running.work, &unit) {
            self.move_cursor(to);
            return;
        }
        unit.serial = self.background.serial;
        unit.position = cursor;
        unit.task = match running.work {
            Work::Rebuild(member) => Task::Rebuild(member),
            Work::Replace(member) => Task::Replace(member),
            Work::Scrub(scrub) => Task::Scrub(scrub),
            Work::Resync | Work::Replay => Task::Resync,
        };
        let sweeps = of.is_none() && self.setup.parities == 0;
        let rows = match sweeps {
            // So much of each member.
            true => {
                u64::from(unit.len) * u64::from(self.setup.copies)
                    / u64::from(self.setup.layout.members)
            }
            false => u64::from(unit.len),
        };
        self.unit_begun(rows);
        if let Some(running) = &mut self.background.work {
            running.cursor = to;
            running.units += 1;
        }
        self.enter_unit_range(unit);
    }

    /// Where on a member something comes again that the array uses.
    fn nothing_until(&self, at: u64) -> u64 {
        let chunk = self.setup.layout.chunk.0.max(1);
        (at / chunk + 1) * chunk
    }

    /// Whether work leaves a range out, as the bitmap says nothing has changed there. A write that
    /// has its range chose whom to write while the member was out of service, and may be named in
    /// the bitmap later.
    fn is_skipped(&self, work: Work, unit: &Unit) -> bool {
        let by_bitmap = match work {
            Work::Resync => {
                let range = unit.at / self.setup.unit_rows;
                if self.setup.has_bug(Bug::ResyncSkipsRange) && range % 8 == 7 {
                    return true;
                }
                self.background.resync == Resync::ByBitmap
            }
            Work::Rebuild(member) => {
                let end = self.background.work.map_or(0, |running| running.cursor);
                end + u64::from(unit.len) <= self.members[member].named_to
            }
            _ => false,
        };
        let (from, to) = (unit.at, unit.at + u64::from(unit.len));
        let quiet = work == Work::Resync || self.locks.is_free(from, to);
        by_bitmap && quiet && !self.permits.bitmap.names((from, to))
    }

    fn move_cursor(&mut self, to: u64) {
        if let Some(running) = &mut self.background.work {
            running.cursor = to.min(running.end);
        }
        self.moved_on();
    }

    /// A unit has come to its end: frees its range.
    pub(super) fn end_unit(&mut self, slot: u32) {
        self.tell_all(slot);
        let unit = self.background.units[slot];
        self.background.units.remove(slot);
        let owner = self.setup.unit_owner(slot);
        if self.locks.release(owner) {
            self.start_granted();
        }
        let heals = matches!(unit.task, Task::Heal(_));
        if !heals
            && unit.serial == self.background.serial
            && let Some(running) = &mut self.background.work
        {
            running.units -= 1;
            running.mismatched += u64::from(unit.mismatched);
            running.lost += u64::from(unit.lost);
            let left = running.units;
            self.background.pace.ended(self.now, left);
            self.moved_on();
        }
        if let Some((member, at, len)) = unit.sick {
            self.begin_heal(member, at, len);
        }
        if self.background.halted {
            self.stop_when_quiet(None);
        }
        self.pump();
    }

    /// Everything below this is done.
    pub(super) fn frontier(&self, running: &Running) -> u64 {
        if self.setup.has_bug(Bug::RebuildFrontierEarly) {
            return running.cursor;
        }
        let serial = self.background.serial;
        let is_ours = |unit: &Unit| unit.serial == serial && !matches!(unit.task, Task::Heal(_));
        let units = self.background.units.used().filter(|(_, unit)| is_ours(unit));
        units.map(|(_, unit)| unit.position).min().unwrap_or(running.cursor).min(running.cursor)
    }

    /// Work is further: what is done counts, is told, and is recorded from time to time.
    fn moved_on(&mut self) {
        let Some(running) = self.background.work else { return };
        let done = self.frontier(&running);
        match running.work {
            Work::Rebuild(member) => self.members[member].good_to = done,
            Work::Resync => self.background.synced_to = done,
            _ => {}
        }
        let told = done * TOLD / running.end.max(1);
        if told > running.told && done < running.end {
            if let Some(running) = &mut self.background.work {
                running.told = told;
            }
            let ends = self.ends(&running, done);
            let (done, of) = (Sectors(done), Sectors(running.end));
            let event = Event::Progress { work: running.work, done, of, ends };
            self.outputs.push_back(Output::Event(event));
        }
        let is_kept = matches!(running.work, Work::Rebuild(_) | Work::Resync)
            && self.setup.settings.consistency.has_superblocks();
        let step = (running.end / KEPT).max(1);
        if is_kept && done < running.end && done >= running.kept + step {
            self.keep(done);
        }
    }

    /// When work will end if it goes on as it went.
    pub(super) fn ends(&self, running: &Running, done: u64) -> Time {
        let (from, since) = running.began;
        let took = u128::from(self.now.since(since).0);
        let left = u128::from(running.end.saturating_sub(done));
        let nanos = took * left / u128::from(done.saturating_sub(from).max(1));
        Time(self.now.0.saturating_add(u64::try_from(nanos).unwrap_or(u64::MAX)))
    }

    /// Records that work is this far, after a flush.
    fn keep(&mut self, to: u64) {
        if self.is_settling() {
            return;
        }
        if let Some(running) = &mut self.background.work {
            running.kept = to;
        }
        if self.setup.has_bug(Bug::RebuildCheckpointEarly) {
            self.kept_to_here(to);
            return;
        }
        self.flush_then(Then::Keep(to));
    }

    fn flush_then(&mut self, then: Then) {
        self.background.flush = Some(Flush { serial: self.background.serial, then });
        self.start_round(Purpose::Background, true, false);
    }

    fn kept_to_here(&mut self, to: u64) {
        match self.background.work.map(|running| running.work) {
            Some(Work::Rebuild(member)) => {
                let known = &mut self.members[member];
                known.kept_to = to.min(known.hole_from);
            }
            Some(Work::Resync) => {
                self.background.synced_kept = to.min(self.background.unsynced_from);
            }
            _ => return,
        }
        self.state_changed();
    }

    /// All ranges are done.
    fn work_swept(&mut self, running: Running) {
        match running.work {
            Work::Replace(_) if self.setup.has_bug(Bug::ReplaceUnflushed) => {
                self.take_over(running);
            }
            Work::Rebuild(_) | Work::Resync | Work::Replace(_) => self.flush_then(Then::Finish),
            Work::Scrub(_) | Work::Replay => self.finish(running),
        }
    }

    /// Everything written before the flush is durable.
    pub(in crate::array) fn background_flushed(&mut self) {
        let Some(flush) = self.background.flush.take() else { return };
        if self.background.halted {
            self.stop_when_quiet(None);
        }
        if let Then::Fill(members) = flush.then {
            self.filled(members);
            self.pump();
            return;
        }
        let Some(running) = self.background.work.filter(|_| flush.serial == self.background.serial)
        else {
            self.pump();
            return;
        };
        match (flush.then, running.work) {
            (Then::Keep(to), _) => self.kept_to_here(to),
            (_, Work::Replace(member)) => self.ask_to_take_over(running, member),
            (_, Work::Rebuild(member)) => self.restore(running, member),
            _ => {
                self.background.resync = Resync::None;
                self.background.synced_to = u64::MAX;
                self.background.synced_kept = self.background.unsynced_from;
                self.background.trust = MemberSet::NONE;
                self.finish(running);
                self.state_changed();
            }
        }
        self.pump();
    }

    /// A member holds everything, durably, and is in service. That is told when the superblocks say
    /// so: after a crash it would be one to rebuild still.
    fn restore(&mut self, running: Running, member: MemberIndex) {
        self.members.rebuilding.remove(member);
        let known = &mut self.members[member];
        (known.good_to, known.named_to) = (u64::MAX, 0);
        known.kept_to = known.hole_from;
        self.members.note_partial(member);
        if self.setup.settings.consistency.has_superblocks() {
            self.background.restoring = Some((member, false));
        } else {
            self.restored(running, member);
        }
        self.state_changed();
    }

    /// Superblocks are about to go out that name these members as failed.
    pub(in crate::array) fn restoring_said(&mut self, failed: MemberSet) {
        if let Some((member, said)) = &mut self.background.restoring {
            *said |= !failed.contains(*member);
        }
    }

    /// What was about to go out is on all members.
    pub(in crate::array) fn restoring_recorded(&mut self) {
        if let Some((member, true)) = self.background.restoring
            && let Some(running) = self.background.work
        {
            self.background.restoring = None;
            self.restored(running, member);
            if self.background.halted {
                self.stop_when_quiet(None);
            }
            self.pump();
        }
    }

    fn restored(&mut self, running: Running, member: MemberIndex) {
        self.outputs.push_back(Output::Event(Event::Restored(member)));
        self.finish(running);
    }

    /// Whether a flush or a superblock is waited for before work goes on.
    fn is_settling(&self) -> bool {
        let background = &self.background;
        background.flush.is_some()
            || background.taking_over.is_some()
            || background.restoring.is_some()
    }

    /// The replacement holds everything, durably. It must have a superblock of its own before it is
    /// the member: after a crash it would be a drive that nobody knows.
    fn ask_to_take_over(&mut self, running: Running, member: MemberIndex) {
        if self.setup.settings.consistency.has_superblocks() {
            self.background.taking_over = Some(member);
            self.state_changed();
        } else {
            self.take_over(running);
        }
    }

    /// The replacement that is to take over, if any.
    pub(in crate::array) fn taking_over(&self) -> Option<MemberIndex> {
        self.background.taking_over
    }

    /// The replacement of `member` has its superblock.
    pub(in crate::array) fn may_take_over(&mut self, member: MemberIndex) {
        if self.background.taking_over == Some(member)
            && let Some(running) = self.background.work
        {
            self.background.taking_over = None;
            self.take_over(running);
            self.pump();
        }
    }

    /// The replacement takes over.
    fn take_over(&mut self, running: Running) {
        let Work::Replace(member) = running.work else { return };
        self.swap_drives(member);
        self.outputs.push_back(Output::Event(Event::Replaced(member)));
        self.finish(running);
        // The drive that went is left behind.
        self.member_swapped();
    }

    /// From now on the replacement is the member. What is still in flight to either drive goes on
    /// under the number its drive has from now on.
    fn swap_drives(&mut self, member: MemberIndex) {
        let other = self.setup.replacement(member);
        self.members.replacing.remove(member);
        self.members.swap(member, other);
        self.members[other].bad.clear();
        self.members[other].hole_from = u64::MAX;
        let known = &mut self.members[member];
        (known.corrected, known.good_to, known.kept_to) = (0, u64::MAX, known.hole_from);
        self.ios.swap_members(member, other);
        self.members.note_partial(member);
    }

    fn finish(&mut self, running: Running) {
        self.background.work = None;
        let event = Event::Finished {
            work: running.work,
            mismatched: Sectors(running.mismatched),
            lost: Sectors(running.lost),
        };
        self.outputs.push_back(Output::Event(event));
    }

    /// Stops the work under way before its end; its ranges in flight end by themselves.
    pub(in crate::array) fn interrupt(&mut self) {
        self.background.taking_over = None;
        self.background.restoring = None;
        if let Some(running) = self.background.work.take() {
            self.outputs.push_back(Output::Event(Event::Interrupted(running.work)));
        }
    }

    /// Begins nothing more until a command asks for it. A replacement is given up, as nothing
    /// tells of it later.
    pub(in crate::array) fn halt_background(&mut self) {
        // What is done and only to be recorded ends by itself.
        if self.background.restoring.is_none() {
            self.interrupt();
        }
        self.background.halted = true;
        self.members.replacing = MemberSet::NONE;
    }

    /// A command asks for work: it begins if nothing else is under way.
    pub(in crate::array) fn wake_background(&mut self) {
        self.background.halted = false;
        self.pump();
    }

    /// A member, replacement or all of the array failed: work on it ends.
    pub(in crate::array) fn background_lost(&mut self, device: MemberIndex) {
        self.members.replacing.remove_if(device);
        let Some(running) = self.background.work else {
            return;
        };
        let member = self.setup.is_member(device);
        let ends = match running.work {
            _ if self.members.stopped => true,
            Work::Rebuild(of) => of == device,
            Work::Replace(of) => of == device || self.setup.replacement(of) == device,
            Work::Scrub(_) => member,
            Work::Resync => member && !self.can_resync(),
            Work::Replay => false,
        };
        if ends {
            self.interrupt();
            self.pump();
        }
    }

    /// Whether a member may be taken in again: not while parity that may be wrong would be all
    /// there is to compute it from.
    pub(in crate::array) fn can_rebuild(&self, member: MemberIndex) -> bool {
        self.setup.parities == 0
            || self.background.resync == Resync::None
            || self.background.trust.contains(member)
            || !self.setup.holds_data(member)
    }

    /// A member is to be rebuilt from the start: all, or what the bitmap names and all from a sector on.
    pub(in crate::array) fn begin_rebuild(
        &mut self,
        member: MemberIndex,
        named_to: Option<Sector>,
    ) {
        self.members.failed.remove(member);
        self.members.rebuilding.insert(member);
        let by_bitmap = named_to.is_some();
        let known = &mut self.members[member];
        (known.good_to, known.kept_to, known.hole_from) = (0, 0, u64::MAX);
        known.named_to = named_to.map_or(0, |sector| sector.0);
        if !by_bitmap {
            known.bad.clear();
            known.corrected = 0;
        }
        self.members.note_partial(member);
        self.log.moves(member);
        self.state_changed();
        self.wake_background();
    }

    /// A fresh drive is to take a member's place.
    pub(in crate::array) fn begin_replace(&mut self, member: MemberIndex) {
        self.members.replacing.insert(member);
        let other = self.setup.replacement(member);
        self.members[other].bad.clear();
        self.members[other].hole_from = u64::MAX;
        self.log.moves(member);
        self.wake_background();
    }

    /// Whether a member may go by the bitmap at all.
    pub(crate) fn has_bitmap(&self) -> bool {
        matches!(self.setup.settings.consistency, Consistency::Bitmap { .. })
    }
}
