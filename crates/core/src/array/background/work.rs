//! What background work there is: how it begins, how far it is, how it ends.

use super::pace::MayBegin;
use super::window::{ResyncWindow, Task};
use super::{Background, Flush, Resync, Running, Then, Todo, WorkStatus};
use crate::array::locks::RangeLocks;
use crate::array::member::Members;
use crate::array::member_set::MemberSet;
use crate::array::setup::Setup;
use crate::array::write_intent::Bitmap;
use crate::bugs::Bug;
use crate::contract::{Event, Pacing, PacingRule, Work};
use crate::units::{MemberIndex, Nanos, SECTOR_BYTES, Sector, Sectors, Time};

/// When work will end is told once this part of it, one in so many, was done since it began or was taken up again, and
/// this time has passed; where it is slow after the longer time.
const ESTIMATED_FROM: u64 = 100;
const ESTIMATED_AFTER: Nanos = Nanos::from_millis(1_000);
const ESTIMATED_ANYWAY: Nanos = Nanos::from_millis(30_000);
/// Progress is told this often in the course of a piece of work.
const TOLD: u64 = 64;
/// It is recorded how far a rebuild or resync is this often, as in md.
const KEPT: u64 = 16;

/// What a flush has made durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::array) enum Kept {
    /// Nothing that is still wanted.
    Nothing,
    /// How far work is.
    Progress,
    /// What these members lost in a rebuild and was written since.
    Filled(MemberSet),
    /// All of the work.
    Work(Work),
}

/// Which work there is.
impl Background {
    /// What an array that was just assembled does first; true when work is to begin.
    pub(in crate::array) fn begin_at_start(&mut self, todo: Todo, members: &mut Members) -> bool {
        self.replaying = todo.replay;
        if todo.trust_parity {
            let missing = members.missing();
            self.trust = if todo.is_unknown { MemberSet::ALL } else { missing };
        }
        self.resync = todo.resync;
        if todo.resync != Resync::None {
            self.synced_to = todo.synced_to;
            self.synced_kept = todo.synced_to;
        }
        for member in members.rebuilding.iter() {
            let known = &mut members[member];
            known.kept_to = known.good_to;
            known.named_to = if todo.by_bitmap { u64::MAX } else { 0 };
            members.note_partial(member);
        }
        let begins = todo.resync != Resync::None || !members.rebuilding.is_empty();
        begins && !todo.replay
    }

    /// Parity is right wherever anybody has written, whoever is missing.
    pub(in crate::array) const fn believe_parity(&mut self) {
        self.trust = MemberSet::ALL;
    }

    /// The logs were replayed; whether that made redundancy consistent wherever it may not have
    /// been. Other work may begin.
    pub(in crate::array) fn replay_over(&mut self, complete: bool) {
        self.replaying = false;
        if !complete {
            self.resync = Resync::All;
            self.synced_to = 0;
            self.synced_kept = 0;
        }
    }

    /// Whether work is under way or waits for its turn. A replay counts: a scrub before its end would
    /// mend from parity that is not yet consistent what a drive cannot read.
    pub(in crate::array) fn is_busy(&self, setup: &Setup, members: &Members) -> bool {
        self.replaying
            || self.work.is_some()
            || self.is_settling()
            || self.pending_work(setup, members).is_some()
    }

    /// The work under way.
    pub(in crate::array) fn work(&self) -> Option<Work> {
        self.work.map(|running| running.work)
    }

    /// The work whose turn it is, if it may begin.
    pub(in crate::array) fn next_work(&self, setup: &Setup, members: &Members) -> Option<Work> {
        if self.halted || self.replaying || members.stopped || self.is_settling() {
            return None;
        }
        self.pending_work(setup, members)
    }

    fn pending_work(&self, setup: &Setup, members: &Members) -> Option<Work> {
        if self.resync != Resync::None && self.can_resync(setup, members) {
            return Some(Work::Resync);
        }
        if let Some(member) = members.rebuilding.iter().next() {
            return Some(Work::Rebuild(member));
        }
        members.replacing.iter().next().map(Work::Replace)
    }

    /// Whether a resync can go on: parity that may be wrong says nothing of members that are away.
    fn can_resync(&self, setup: &Setup, members: &Members) -> bool {
        setup.parities == 0
            || !members.failed.without(self.trust).iter().any(|m| setup.holds_data(m))
    }

    /// Whether a member may be taken in again: not while parity that may be wrong would be all
    /// there is to compute it from.
    pub(in crate::array) fn can_rebuild(&self, setup: &Setup, member: MemberIndex) -> bool {
        setup.parities == 0
            || self.resync == Resync::None
            || self.trust.contains(member)
            || !setup.holds_data(member)
    }

    /// Begins a piece of work; none is under way.
    pub(in crate::array) fn begin(
        &mut self,
        setup: &Setup,
        members: &Members,
        now: Time,
        work: Work,
    ) {
        let block = setup.member_block();
        let sweep = setup.covered();
        let (from, end) = match work {
            Work::Rebuild(member) => (members[member].good_to, setup.geometry.used(member).0),
            Work::Replace(member) => {
                let known = &members[setup.replacement(member)];
                (known.kept_to, setup.geometry.used(member).0)
            }
            Work::Resync => (self.synced_to, sweep),
            Work::Scrub(_) | Work::LogReplay => (0, sweep),
        };
        let end = end / block * block;
        let from = from.min(end);
        let short = matches!(work, Work::Rebuild(_)) && setup.has_bug(Bug::RebuildStopsShort);
        let end = if short { end.saturating_sub(setup.window_rows).max(from) } else { end };
        self.serial = self.serial.wrapping_add(1);
        self.halted = false;
        self.pace.begin(now);
        self.activity.begin();
        self.barrier.begin(now);
        self.work = Some(Running {
            work,
            cursor: from,
            end,
            began: (from, now),
            at_once: None,
            windows: 0,
            sectors: 0,
            mismatched: 0,
            lost: 0,
            told: from * TOLD / end.max(1),
            kept: from,
        });
    }

    /// Whether all of the work under way was handed out; `Some(true)`: and is done.
    pub(in crate::array) fn is_swept(&self) -> Option<bool> {
        let running = self.work.filter(|running| running.cursor >= running.end)?;
        Some(running.windows == 0 && !self.is_settling())
    }

    /// Ranges are being handed out from now on; false when they are already.
    pub(in crate::array) fn begin_pumping(&mut self) -> bool {
        !std::mem::replace(&mut self.pumping, true)
    }

    pub(in crate::array) fn end_pumping(&mut self) {
        self.pumping = false;
    }

    /// Begins nothing more until a command asks for it; false when what is done and only to be recorded is
    /// to end by itself.
    pub(in crate::array) fn halt(&mut self) -> bool {
        self.halted = true;
        self.restoring.is_none()
    }

    /// Goes on with what was halted.
    pub(in crate::array) fn wake(&mut self) {
        self.halted = false;
    }

    pub(in crate::array) fn is_halted(&self) -> bool {
        self.halted
    }

    /// Whether the work under way ends when this device, or all of the array, fails.
    pub(in crate::array) fn ends_without(
        &self,
        setup: &Setup,
        members: &Members,
        device: MemberIndex,
    ) -> bool {
        let Some(running) = self.work else { return false };
        let member = setup.is_member(device);
        match running.work {
            _ if members.stopped => true,
            Work::Rebuild(of) => of == device,
            Work::Replace(of) => of == device || setup.replacement(of) == device,
            Work::Scrub(_) => member,
            Work::Resync => member && !self.can_resync(setup, members),
            Work::LogReplay => false,
        }
    }

    /// Stops the work under way before its end; its ranges in flight end by themselves.
    pub(in crate::array) fn interrupt(&mut self) -> Option<Work> {
        self.taking_over = None;
        self.restoring = None;
        self.work.take().map(|running| running.work)
    }

    /// Ends the work under way; how it ended.
    pub(in crate::array) fn finish(&mut self) -> Option<Event> {
        let Running { work, mismatched, lost, .. } = self.work.take()?;
        Some(Event::Finished { work, mismatched: Sectors(mismatched), lost: Sectors(lost) })
    }
}

/// Range by range.
impl Background {
    /// A member has moved so many sectors for others.
    #[inline]
    pub(in crate::array) fn count(&mut self, device: MemberIndex, sectors: u32) {
        if self.work.is_some() {
            self.activity.count(device.at(), sectors);
        }
    }

    /// Whether another range may be begun now; `has_requests`: whether the array is asked for something else.
    pub(in crate::array) fn may_begin(
        &mut self,
        setup: &Setup,
        now: Time,
        taken: u64,
        has_requests: impl FnOnce() -> bool,
    ) -> MayBegin {
        // One range is left for healing, where there is more than one.
        let most = self.windows.capacity().saturating_sub(1).max(1);
        let in_flight = self.work.map_or(0, |running| running.windows);
        if let Some(at) = self.barrier.sleeps(now) {
            return MayBegin::At(at);
        }
        let sectors = self.work.map_or(0, |running| running.sectors);
        let has_stripes = self.barrier.has_stripes(sectors, taken, setup.window_rows);
        let rule = self.pace.pacing.rule;
        let is_full = in_flight >= most || self.windows.available() == 0 || !has_stripes;
        if is_full && !matches!(rule, PacingRule::Depth(_)) {
            return MayBegin::No;
        }
        let rows = u64::from(in_flight) * setup.window_rows;
        let Self { pace, activity, .. } = self;
        activity.unbound();
        let may = pace.may_begin(now, in_flight, || match rule {
            PacingRule::Depth(depth) => {
                // A stripe of 4 KiB, or RESYNC_PAGES of a mirror.
                let piece = if setup.parities > 0 { 8 } else { 128 };
                activity.is_within(sectors, u64::from(depth) * piece, has_requests())
            }
            PacingRule::Ranges { .. } => activity.is_unused(has_requests()),
            _ => activity.is_idle(rows),
        });
        // md looks once a range is begun, whether or not there is room for another: by default raid1 has room for just
        // as much as its depth.
        if is_full && may == MayBegin::Yes { MayBegin::No } else { may }
    }

    /// How fast it goes from now on.
    pub(in crate::array) fn set_pacing(&mut self, now: Time, pacing: Pacing) {
        self.pace.change(now, pacing);
    }

    /// Begins the range at the cursor; `None` when the cursor has moved on over what needs no work.
    pub(in crate::array) fn next_range(
        &mut self,
        setup: &Setup,
        members: &Members,
        bitmap: &Bitmap,
        locks: &RangeLocks,
        now: Time,
    ) -> Option<ResyncWindow> {
        let running = self.work?;
        let cursor = running.cursor;
        let most = setup.window_rows.min(running.end - cursor).min(self.activity.room());
        let of = match running.work {
            Work::Rebuild(member) | Work::Replace(member) => Some(member),
            _ => None,
        };
        let window = match of {
            Some(member) => ResyncWindow::at(setup, member, cursor, most),
            None if setup.parities > 0 => ResyncWindow::at(setup, MemberIndex(0), cursor, most),
            None => {
                let len = most.min(setup.geometry.run(Sector(cursor)).0) as u32;
                Some(ResyncWindow { at: cursor, len, part: (0, len), ..ResyncWindow::idle() })
            }
        };
        let Some(mut window) = window else {
            // On to where something comes again that the array uses.
            let chunk = setup.layout.chunk.0.max(1);
            self.move_cursor((cursor / chunk + 1) * chunk);
            return None;
        };
        let to = cursor + u64::from(window.len);
        if self.is_skipped(setup, members, bitmap, locks, &window) {
            self.move_cursor(to);
            return None;
        }
        window.serial = self.serial;
        window.position = cursor;
        window.task = match running.work {
            Work::Rebuild(member) => Task::Rebuild(member),
            Work::Replace(member) => Task::Replace(member),
            Work::Scrub(scrub) => Task::Scrub(scrub),
            Work::Resync | Work::LogReplay => Task::Resync,
        };
        let sweeps = of.is_none() && setup.parities == 0;
        let rows = match sweeps {
            // So much of each member.
            true => {
                u64::from(window.len) * u64::from(setup.copies) / u64::from(setup.layout.members)
            }
            false => u64::from(window.len),
        };
        self.pace.started(now, rows * SECTOR_BYTES, running.windows == 0);
        if let Some(running) = &mut self.work {
            running.cursor = to;
            running.windows += 1;
            running.sectors += u64::from(window.len);
        }
        Some(window)
    }

    pub(super) fn move_cursor(&mut self, to: u64) {
        if let Some(running) = &mut self.work {
            running.cursor = to.min(running.end);
        }
    }

    /// Whether work leaves a range out, as the bitmap says nothing has changed there. A write that
    /// has its range chose whom to write while the member was out of service, and may be named in
    /// the bitmap later.
    fn is_skipped(
        &self,
        setup: &Setup,
        members: &Members,
        bitmap: &Bitmap,
        locks: &RangeLocks,
        window: &ResyncWindow,
    ) -> bool {
        let Some(running) = self.work else { return false };
        let by_bitmap = match running.work {
            Work::Resync => {
                let range = window.at / setup.window_rows;
                if setup.has_bug(Bug::ResyncSkipsRange) && range % 8 == 7 {
                    return true;
                }
                self.resync == Resync::ByBitmap
            }
            Work::Rebuild(member) => {
                running.cursor + u64::from(window.len) <= members[member].named_to
            }
            Work::Replace(member) => {
                let named_to = members[setup.replacement(member)].named_to;
                running.cursor + u64::from(window.len) <= named_to
            }
            _ => false,
        };
        let (from, to) = (window.at, window.end());
        let quiet = running.work == Work::Resync || locks.is_free(from, to);
        by_bitmap && quiet && !bitmap.names((from, to))
    }

    /// A range of work has come to its end; false when it belongs to none that is under way.
    pub(in crate::array) fn window_ended(
        &mut self,
        window: &ResyncWindow,
        now: Time,
        taken: u64,
    ) -> bool {
        if window.is_heal() || window.serial != self.serial {
            return false;
        }
        let Some(running) = &mut self.work else { return false };
        let begun = running.cursor.saturating_sub(running.began.0);
        running.at_once.get_or_insert(begun);
        running.windows -= 1;
        running.sectors -= u64::from(window.len);
        running.mismatched += u64::from(window.mismatched);
        running.lost += u64::from(window.lost);
        let (left, sectors) = (running.windows, running.sectors);
        self.pace.ended(now, left);
        self.barrier.ended(now, sectors, taken, self.activity.total());
        true
    }
}

/// Requests and work wait for each other.
impl Background {
    /// Where work is: from the lowest range under way to where the next one begins.
    fn at_work(&self) -> Option<(u64, u64)> {
        let running = self.work?;
        Some((self.frontier(&running, false), running.cursor))
    }

    /// Whether a request is to wait for work.
    pub(in crate::array) fn holds_back(&self, is_read: bool, request: (u64, u64)) -> bool {
        let is_raised = self.barrier.raising || self.work.is_some_and(|work| work.windows > 0);
        let Some(range) = self.at_work().filter(|_| is_raised) else { return false };
        self.barrier.holds_back(is_read, request, range)
    }

    /// Whether work waits for a request that is under way to end.
    pub(in crate::array) fn waits_for(&self, request: (u64, u64)) -> bool {
        let Some((_, next)) = self.at_work() else { return false };
        self.barrier.waits_for(request, (next, next))
    }

    /// Whether requests that waited may begin.
    pub(in crate::array) fn is_lowered(&self) -> bool {
        let is_under_way = self.work.is_some_and(|work| work.windows > 0 || self.barrier.raising);
        self.barrier.is_lowered(is_under_way)
    }
}

/// How far it is.
impl Background {
    /// Everything below this is done; `early`: the seeded bug that takes what was begun for done.
    fn frontier(&self, running: &Running, early: bool) -> u64 {
        if early {
            return running.cursor;
        }
        let is_ours = |window: &ResyncWindow| window.serial == self.serial && !window.is_heal();
        let windows = self.windows.used().filter(|(_, window)| is_ours(window));
        windows
            .map(|(_, window)| window.position)
            .min()
            .unwrap_or(running.cursor)
            .min(running.cursor)
    }

    /// The work under way as it is told to who asks.
    pub(in crate::array) fn progress(&self, now: Time, early: bool) -> Option<WorkStatus> {
        let running = self.work?;
        let done = self.frontier(&running, early);
        let (of, ends) = (Sectors(running.end), ends(&running, now, done));
        let begun = running.cursor.saturating_sub(running.began.0);
        // Where it rests for what it began at once, both count.
        let at_once = if self.pace.has_rested() { 0 } else { running.at_once.unwrap_or(begun) };
        let (done, at_once, rests) = (Sectors(done), Sectors(at_once), self.pace.rests(now));
        Some(WorkStatus { work: running.work, done, of, at_once, rests, ends })
    }

    /// Work may be further: what is done counts. Gives what is to be told, and how far it is when that is to be
    /// recorded.
    pub(in crate::array) fn moved_on(
        &mut self,
        setup: &Setup,
        members: &mut Members,
        now: Time,
    ) -> (Option<Event>, Option<u64>) {
        let Some(running) = self.work else { return (None, None) };
        let done = self.frontier(&running, setup.has_bug(Bug::RebuildFrontierEarly));
        match running.work {
            Work::Rebuild(member) => members[member].good_to = done,
            Work::Resync => self.synced_to = done,
            _ => {}
        }
        let mut event = None;
        let told = done * TOLD / running.end.max(1);
        if told > running.told && done < running.end {
            if let Some(running) = &mut self.work {
                running.told = told;
            }
            let ends = ends(&running, now, done).unwrap_or(Time(u64::MAX));
            let (done, of) = (Sectors(done), Sectors(running.end));
            event = Some(Event::Progress { work: running.work, done, of, ends });
        }
        let is_kept = matches!(running.work, Work::Rebuild(_) | Work::Replace(_) | Work::Resync)
            && setup.settings.consistency.has_superblocks();
        let step = (running.end / KEPT).max(1);
        let keeps =
            is_kept && done < running.end && done >= running.kept + step && !self.is_settling();
        if keeps && let Some(running) = &mut self.work {
            running.kept = done;
        }
        (event, keeps.then_some(done))
    }

    /// It is to be recorded that work is this far, after a flush.
    pub(in crate::array) fn flush_to_keep(&mut self, to: u64) {
        self.flush_then(Then::Keep(to));
    }

    /// All of the work is to be made durable.
    pub(in crate::array) fn flush_to_finish(&mut self) {
        self.flush_then(Then::Finish);
    }

    /// Takes the members of which everything lost was written since, which are whole as soon as that is durable.
    pub(in crate::array) fn flush_filled(&mut self) -> bool {
        let any = !self.filled.is_empty() && !self.is_settling();
        if any {
            let members = self.take_filled();
            self.flush_then(Then::Fill(members));
        }
        any
    }

    /// Takes the same members, as everything was made durable.
    pub(in crate::array) fn take_filled(&mut self) -> MemberSet {
        std::mem::replace(&mut self.filled, MemberSet::NONE)
    }

    fn flush_then(&mut self, then: Then) {
        self.flush = Some(Flush { serial: self.serial, then });
    }

    /// Everything written before a flush is durable; what that means.
    pub(in crate::array) fn flushed(&mut self, setup: &Setup, members: &mut Members) -> Kept {
        let Some(flush) = self.flush.take() else { return Kept::Nothing };
        if let Then::Fill(filled) = flush.then {
            // Who was filled again during the flush needs another.
            return Kept::Filled(filled.without(self.filled));
        }
        let Some(running) = self.work.filter(|_| flush.serial == self.serial) else {
            return Kept::Nothing;
        };
        match flush.then {
            Then::Keep(to) if self.keep(setup, members, to) => Kept::Progress,
            Then::Keep(_) => Kept::Nothing,
            _ => Kept::Work(running.work),
        }
    }

    /// Work is durable up to here; false when that is nothing to record.
    pub(in crate::array) fn keep(&mut self, setup: &Setup, members: &mut Members, to: u64) -> bool {
        match self.work() {
            Some(Work::Replace(member)) => {
                let known = &mut members[setup.replacement(member)];
                known.kept_to = to.min(known.hole_from);
            }
            Some(Work::Rebuild(member)) => {
                let known = &mut members[member];
                known.kept_to = to.min(known.hole_from);
            }
            Some(Work::Resync) => self.synced_kept = to.min(self.unsynced_from),
            _ => return false,
        }
        true
    }

    /// Redundancy agrees everywhere, durably, but where it was found lost.
    pub(in crate::array) fn resynced(&mut self) {
        self.resync = Resync::None;
        self.synced_to = u64::MAX;
        self.synced_kept = self.unsynced_from;
        self.trust = MemberSet::NONE;
    }

    /// A rebuilt member waits until superblocks say that it is in service.
    pub(in crate::array) fn begin_restoring(&mut self, member: MemberIndex) {
        self.restoring = Some((member, false));
    }

    /// Superblocks are about to go out that name these members as failed.
    pub(in crate::array) fn restoring_said(&mut self, failed: MemberSet) {
        if let Some((member, said)) = &mut self.restoring {
            *said |= !failed.contains(*member);
        }
    }

    /// What was about to go out is on all members; who is restored by it.
    pub(in crate::array) fn restoring_recorded(&mut self) -> Option<MemberIndex> {
        let (member, _) = self.restoring.filter(|(_, said)| *said && self.work.is_some())?;
        self.restoring = None;
        Some(member)
    }

    /// A replacement that holds everything waits for its superblock.
    pub(in crate::array) fn begin_taking_over(&mut self, member: MemberIndex) {
        self.taking_over = Some(member);
    }

    /// The member whose replacement is to take over, if any.
    pub(in crate::array) fn taking_over(&self) -> Option<MemberIndex> {
        self.taking_over
    }

    /// The replacement of `member` has its superblock; false when it is not to take over any more.
    pub(in crate::array) fn may_take_over(&mut self, member: MemberIndex) -> bool {
        let takes_over = self.taking_over == Some(member) && self.work.is_some();
        if takes_over {
            self.taking_over = None;
        }
        takes_over
    }
}

/// When work will end if it goes on as it went.
pub(super) fn ends(running: &Running, now: Time, done: u64) -> Option<Time> {
    let (from, since) = running.began;
    let (took, own) = (now.since(since), done.saturating_sub(from));
    // Moments, or what was in flight at once, are no measure of a pace.
    let is_much = own >= running.end.div_ceil(ESTIMATED_FROM) && took >= ESTIMATED_AFTER;
    if own == 0 || !is_much && took < ESTIMATED_ANYWAY {
        return None;
    }
    let left = u128::from(running.end.saturating_sub(done));
    let nanos = u128::from(took.0) * left / u128::from(own);
    Some(Time(now.0.saturating_add(u64::try_from(nanos).unwrap_or(u64::MAX))))
}
