//! Write-back: which dirty pages are written when, and how many requests are under way.
//!
//! Above the background limit, and for data past their age, the files that have been dirty longest are
//! written first, so many bytes of each in turn (`Documentation/admin-guide/sysctl/vm.rst`; the order
//! is that of the lists of inodes in Linux since 2.6.23). Who makes a file durable writes its own pages,
//! before that of others.

use std::collections::{BTreeSet, VecDeque};
use std::ops::Range;

use raidlab_core::contract::IoOp;
use raidlab_core::units::Time;

use super::ages::Ages;
use super::files::Waiter;
use super::spec::BLOCK;
use super::{BlockIo, Host, KERNEL, METADATA, Purpose};

/// Pages of a file that somebody wants to be written.
#[derive(Clone, Debug)]
pub(super) struct Work {
    pub(super) file: u64,
    pub(super) pages: Range<u64>,
    /// Who goes on when all are handed to the array.
    pub(super) owner: Option<Waiter>,
    /// On whose behalf.
    pub(super) process: u32,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Writeback {
    /// Files with dirty pages, by when they became so.
    ages: Ages,
    /// What is asked for.
    works: VecDeque<Work>,
    /// Files to be written back, and whether for their age.
    queue: VecDeque<(u64, bool)>,
    /// Those of them for their age.
    aged: BTreeSet<u64>,
    /// Pages of the first of either that are still to come in its turn.
    turn: u64,
    /// Since when the oldest of them is dirty, and when ages are looked at for that.
    oldest: Option<Time>,
    pub(super) tick: Option<Time>,
    /// Writes under way.
    under_way: u32,
    /// The number of the next write.
    number: u64,
    /// Who waits for fewer dirty pages.
    pub(super) throttled: VecDeque<u32>,
}

impl Writeback {
    pub(super) fn ask(&mut self, work: Work) {
        self.works.push_back(work);
    }

    /// Whether anything asked for by this one is not handed over yet.
    pub(super) fn has_work(&self, owner: Waiter) -> bool {
        self.works.iter().any(|work| work.owner == Some(owner))
    }
}

/// The dirty files, the oldest first, that write-back goes through in a turn; there may be as many as were
/// ever made, and a turn ends when little is dirty.
const TURN_FILES: usize = 256;

impl Host {
    /// Hands writes to the array while it takes more.
    pub(super) fn pump(&mut self) {
        while self.back.under_way < self.spec.requests {
            if !self.pump_work() && !self.pump_background() {
                break;
            }
        }
    }

    /// One request of what is asked for; false when nothing is.
    fn pump_work(&mut self) -> bool {
        let Some(work) = self.back.works.pop_front() else { return false };
        match self.write_some(work.file, work.pages.clone(), work.process) {
            Some(next) => {
                let rest = Work { pages: next..work.pages.end, ..work };
                let turn = self.limits.turn;
                self.back.turn += next - work.pages.start;
                if self.back.turn < turn {
                    self.back.works.push_front(rest);
                } else {
                    self.back.turn = 0;
                    self.back.works.push_back(rest);
                }
            }
            None => {
                self.back.turn = 0;
                if let Some(owner) = work.owner {
                    self.wake_waiter(owner);
                }
            }
        }
        true
    }

    pub(super) fn wake_waiter(&mut self, waiter: Waiter) {
        match waiter {
            Waiter::Task(id) => self.ready.push_back(id),
            Waiter::Commit => self.commit_went_on(),
        }
    }

    fn is_over_background(&self) -> bool {
        self.cache.dirty() > self.limits.background
    }

    /// One request of write-back; false when none is due.
    fn pump_background(&mut self) -> bool {
        let is_over = self.is_over_background();
        // Today a turn that was begun is gone through (`writeback_sb_inodes`, fs/fs-writeback.c).
        let is_within_turn = self.back.turn > 0 && self.spec.kernel.is_of_today();
        while let Some((_, false)) = self.back.queue.front()
            && !is_over
            && !is_within_turn
        {
            self.back.queue.pop_front();
        }
        if self.back.queue.is_empty() && is_over {
            let files = self.back.ages.iter(|file| self.files.dirtied(file)).take(TURN_FILES);
            self.back.queue.extend(files.map(|(_, file)| (file, false)));
        }
        let Some((number, aged)) = self.back.queue.front().copied() else { return false };
        let cursor = self.files.get(&number).map_or(0, |file| file.cursor);
        let next = self.write_some(number, cursor..u64::MAX, KERNEL);
        if let Some(file) = self.files.get_mut(&number) {
            file.cursor = next.unwrap_or(0);
        }
        match next {
            Some(next) => {
                self.back.turn += next - cursor.min(next);
                if self.back.turn >= self.limits.turn {
                    self.back.turn = 0;
                    self.back.queue.rotate_left(1);
                }
            }
            None => {
                // To its end; what was made dirty meanwhile counts as new.
                self.back.turn = 0;
                self.back.queue.pop_front();
                self.settle_dirty(number);
                if aged {
                    self.back.aged.remove(&number);
                    self.renew(number);
                }
            }
        }
        true
    }

    /// Dirty pages of a file are as if dirtied now.
    fn renew(&mut self, number: u64) {
        let now = self.now;
        let Some(file) = self.files.get_mut(&number) else { return };
        if file.dirtied.take().is_some() {
            self.back.ages.remove(|file| self.files.dirtied(file));
            self.begin_age(number, now);
        }
    }

    /// A file has dirty pages, and had none.
    pub(super) fn begin_age(&mut self, number: u64, now: Time) {
        let Some(file) = self.files.get_mut(&number) else { return };
        file.dirtied = Some(now);
        self.back.ages.add(now, number);
        self.set_tick();
    }

    /// Writes the first dirty pages within `range` in one request; gives the page behind them, or
    /// `None` when none is dirty.
    fn write_some(&mut self, number: u64, range: Range<u64>, process: u32) -> Option<u64> {
        let longest = self.spec.longest_request / BLOCK;
        let first = self.cache.next_dirty(number, &range, longest)?;
        let file = self.files.get(&number)?;
        let mut place = file.place(first.start);
        if place.is_none() {
            let hole = file.hole(first.start, u64::MAX);
            // The places of all that is dirty here are chosen together.
            let most = self.spec.filesystem.allocation.min(hole);
            let whole = self.cache.next_dirty(number, &(first.start..u64::MAX), most)?;
            self.space.release(whole.end - whole.start);
            if self.place(number, whole.clone()).is_err() {
                // It was promised, so this cannot be; but nobody must wait for it for ever.
                self.cache.start_writing(number, whole.clone());
                self.cache.written(number, whole.clone());
                self.settle_dirty(number);
                return Some(whole.end);
            }
            let file = self.files.get_mut(&number)?;
            file.fresh = whole;
            place = file.place(first.start);
        }
        let (block, len) = place?;
        let pages = first.start..first.end.min(first.start + len);
        let converts = self.converts_extents();
        let file = self.files.get_mut(&number)?;
        let is_fresh = converts && file.fresh.contains(&pages.start);
        if is_fresh {
            file.fresh.start = pages.end;
        }
        self.back.number += 1;
        let flight = self.back.number;
        self.files.get_mut(&number)?.in_flight.push(flight);
        self.cache.start_writing(number, pages.clone());
        self.settle_dirty(number);
        self.back.under_way += 1;
        let io = Self::blocks(process, IoOp::Write, block, pages.end - pages.start);
        let end = pages.end;
        let io = BlockIo { write_back: true, ..io };
        self.send(io, Purpose::Write { file: number, pages, number: flight, is_fresh });
        Some(end)
    }

    /// A file whose last dirty page went is not among the dirty ones any more.
    pub(super) fn settle_dirty(&mut self, number: u64) {
        let is_dirty = self.cache.has_dirty(number);
        let Some(file) = self.files.get_mut(&number) else { return };
        if !is_dirty && file.dirtied.take().is_some() {
            file.cursor = 0;
            self.back.ages.remove(|file| self.files.dirtied(file));
            self.set_tick();
        }
    }

    /// Pages were written, in places that are new or not.
    pub(super) fn written(&mut self, number: u64, pages: Range<u64>, flight: u64, is_fresh: bool) {
        self.back.under_way -= 1;
        self.cache.written(number, pages);
        if is_fresh {
            self.change_metadata(number, &[], true);
        }
        if let Some(file) = self.files.get_mut(&number)
            && let Ok(index) = file.in_flight.binary_search(&flight)
        {
            file.in_flight.remove(index);
            if index == 0 && !file.waiters.is_empty() {
                self.wake_waiters_of(number);
            }
        }
        self.ready.append(&mut self.back.throttled);
    }

    /// Those who waited for writes of a file that have all ended go on.
    fn wake_waiters_of(&mut self, number: u64) {
        let Some(file) = self.files.get_mut(&number) else { return };
        let first = file.in_flight.first().copied().unwrap_or(u64::MAX);
        let woken: Vec<Waiter> =
            file.waiters.extract_if(.., |(last, _)| *last < first).map(|(_, one)| one).collect();
        for waiter in woken {
            self.wake_waiter(waiter);
        }
    }

    /// When ages are looked at next: at the interval after the first file is old enough.
    pub(super) fn set_tick(&mut self) {
        let interval = self.spec.writeback_interval.0;
        let expire = self.spec.dirty_expire.0;
        let after = self.now.0 + 1;
        let first = self.back.ages.first();
        if first == self.back.oldest && self.back.tick.is_none_or(|tick| self.now < tick) {
            return;
        }
        self.back.oldest = first;
        let oldest = first.map(|since| (since.0 + expire).max(after));
        self.back.tick = oldest.map(|at| Time(at.div_ceil(interval) * interval));
    }

    /// Files that are old enough are written back.
    pub(super) fn age(&mut self) {
        if self.back.tick.is_none_or(|tick| self.now < tick) {
            return;
        }
        let (now, expire) = (self.now, self.spec.dirty_expire);
        let dirty = self.back.ages.iter(|file| self.files.dirtied(file));
        let old = dirty.take_while(|(since, _)| now.since(*since) >= expire);
        let old: Vec<u64> = old.map(|(_, file)| file).collect();
        for number in old {
            if self.back.aged.insert(number) {
                self.back.queue.push_back((number, true));
            }
        }
        self.set_tick();
    }

    /// All pages of the metadata that may be written to their places are asked for.
    pub(super) fn ask_for_metadata(&mut self, owner: Option<Waiter>, process: u32) {
        let pages = 0..u64::MAX;
        self.back.ask(Work { file: METADATA, pages, owner, process });
    }
}
