//! The journal (raid4, raid5, raid6): data and parity go to a log device before they go to the
//! members.
//!
//! Fault model: a crash at any point, with writes that were not flushed lost or torn sector by sector
//! in any combination, and after it as many members lost as the level survives; an entry is found
//! whole or not at all; the log device may fail at any time.
//! Why it is safe: an entry is durable before any data or parity of its plan goes out, and holds all
//! of them, so what arrived on the members is written over at replay. The ring is used strictly in
//! turn and each entry has the next sequence number; space is used again only when the writes of its
//! entry have ended, all members were flushed after that, and the superblocks tell of a tail beyond
//! it. What is left of older entries lies below the tail and is never replayed.
//! Entries from the tail on that are whole are replayed, newest first come for each row: parity of
//! an entry does not count where a newer entry has the row, since each entry has all parity in
//! service at its time; data of a chunk do not count where a newer entry has the chunk's row, since
//! each entry has all data of its plan, also those of members out of service. So a member that was
//! rebuilt in between is never thrown back. A number that is missing between others is an entry that
//! was not durable: nothing of its plan went out, and nothing built on it, since its rows were
//! locked. Each entry says which before it were durable when it was made (`settled`): one of those that is
//! missing is damage, and the journal is not used (`Array::is_journal_torn`).
//!
//! A log device that fails is given up: plans that wait for it, and all that follow, go on without
//! once the superblocks tell that the journal is no longer in use (mode `resync`).
//! Tests: `tests/logs.rs::the_journal_survives_a_crash_at_any_point` and
//! `tests/logs.rs::a_journal_that_fails_is_given_up`.

use std::collections::VecDeque;
use std::hash::{Hash, Hasher};

use super::entries::MOST_NUMBER;
use super::{Logged, Stage};
use crate::array::stripe::MOST_BANDS;
use crate::contract::{LOG_HEADER, Superblock};

/// The smallest journal: the entries of one plan fit.
pub(in crate::array) const fn least_sectors(roles: u16, plan_rows: u64) -> u64 {
    MOST_BANDS as u64 * LOG_HEADER as u64 + roles as u64 * plan_rows
}

/// Whether the journal is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Use {
    Active,
    /// It failed, and the superblocks do not tell yet: nothing is written.
    Failing,
    Off,
}

/// An entry whose space is not free.
#[derive(Clone, Copy, Debug, Hash)]
struct Entry {
    at: u64,
    len: u64,
    stage: Stage,
    /// It is on the medium.
    logged: bool,
}

/// The ring of a journal.
#[derive(Clone, Debug)]
pub(super) struct Journal {
    pub(super) state: Use,
    sectors: u64,
    /// In order of their numbers, which follow one another.
    entries: VecDeque<Entry>,
    most_entries: usize,
    /// Sectors they take.
    taken: u64,
    /// The number of the first of `entries`.
    first: u64,
    /// Entries with lower numbers are on the medium.
    settled: u64,
    /// Where the next entry goes if it fits.
    head: u64,
    /// The first number that is not retired.
    tail: u64,
    /// The tail, and whether the journal is in use, as the superblocks are about to tell.
    told: (u64, bool),
}

impl Hash for Journal {
    fn hash<H: Hasher>(&self, key: &mut H) {
        let Self { state, entries, first, settled, head, tail, told, .. } = self;
        let behind = |number: u64| self.next().wrapping_sub(number);
        let numbers = [*first, *settled, *tail, told.0].map(behind);
        (state, entries, head, numbers, told.1).hash(key);
    }
}

impl Journal {
    pub(super) fn new(sectors: u64, plans: u32) -> Self {
        let most = match sectors {
            0 => 0,
            _ => (sectors / u64::from(LOG_HEADER) + 1).min(64 * u64::from(plans).max(16)) as usize,
        };
        Self {
            state: if sectors > 0 { Use::Active } else { Use::Off },
            sectors,
            entries: VecDeque::with_capacity(most),
            most_entries: most,
            taken: 0,
            first: 1,
            settled: 1,
            head: 0,
            tail: 1,
            told: (1, sectors > 0),
        }
    }

    /// Where an entry of `len` sectors goes behind `head`, with entries from `oldest` on not free.
    fn place(&self, oldest: Option<u64>, head: u64, len: u64) -> Option<u64> {
        match oldest {
            None if head + len <= self.sectors => Some(head),
            None => (len <= self.sectors).then_some(0),
            Some(oldest) if head > oldest => {
                if head + len <= self.sectors {
                    return Some(head);
                }
                // It does not go over the end. One sector stays free, so that full is not empty.
                (len < oldest).then_some(0)
            }
            Some(oldest) => (head + len < oldest).then_some(head),
        }
    }

    /// Whether entries of these lengths fit, one after another.
    pub(super) fn has_room_for(&self, lens: &[u64]) -> bool {
        if self.entries.len() + lens.len() > self.most_entries {
            return false;
        }
        let mut oldest = self.entries.front().map(|entry| entry.at);
        // An empty ring begins anew, so that whatever fits at all fits.
        let mut head = if oldest.is_none() { 0 } else { self.head };
        lens.iter().all(|len| {
            let Some(at) = self.place(oldest, head, *len) else { return false };
            oldest = oldest.or(Some(at));
            head = at + len;
            true
        })
    }

    /// The number of the next entry.
    pub(super) fn next(&self) -> u64 {
        self.first + self.entries.len() as u64
    }

    /// Takes the next place; there is room.
    pub(super) fn take(&mut self, len: u64) -> (u64, u64) {
        let oldest = self.entries.front().map(|entry| entry.at);
        let head = if oldest.is_none() { 0 } else { self.head };
        let at = self.place(oldest, head, len).expect("room is looked for first");
        let sequence = self.next();
        self.entries.push_back(Entry { at, len, stage: Stage::Busy, logged: false });
        self.taken += len;
        self.head = at + len;
        (at, sequence)
    }

    /// The entries of a plan are on the medium.
    pub(super) fn logged(&mut self, logged: Logged) {
        for number in logged.first..logged.first + u64::from(logged.count) {
            let index = number.checked_sub(self.first);
            if let Some(entry) = index.and_then(|index| self.entries.get_mut(index as usize)) {
                entry.logged = true;
            }
        }
        // What is retired was on the medium.
        self.settled = self.settled.max(self.first);
        let settled = self.entries.iter().skip((self.settled - self.first) as usize);
        self.settled += settled.take_while(|entry| entry.logged).count() as u64;
    }

    /// Everything that has ended is to be made durable; false when there is nothing.
    pub(super) fn begin_flush(&mut self) -> bool {
        let mut any = false;
        for entry in self.entries.iter_mut().filter(|entry| entry.stage == Stage::Ended) {
            entry.stage = Stage::Flushing;
            any = true;
        }
        any && self.state == Use::Active
    }

    /// Moves the tail beyond what is durable; whether it moved.
    pub(super) fn retire(&mut self) -> bool {
        let durable = self.entries.iter().take_while(|entry| entry.stage == Stage::Durable);
        let tail = self.first + durable.count() as u64;
        let moved = tail > self.tail;
        self.tail = self.tail.max(tail);
        moved
    }

    /// Whether half of the ring is taken.
    pub(super) fn is_filling(&self) -> bool {
        self.taken * 2 > self.sectors || self.entries.len() * 2 > self.most_entries
    }

    pub(super) fn is_used(&self) -> bool {
        self.state == Use::Active
    }

    pub(super) fn told(&mut self) {
        self.told = (self.tail, self.state == Use::Active);
    }

    /// The superblocks tell what was `told`.
    pub(super) fn recorded(&mut self) {
        let (tail, in_use) = self.told;
        while self.first < tail
            && let Some(entry) = self.entries.pop_front()
        {
            self.taken -= entry.len;
            self.first += 1;
        }
        if self.state == Use::Failing && !in_use {
            self.state = Use::Off;
            self.entries.clear();
        }
    }

    /// Whether the superblocks tell the present state.
    pub(super) fn is_recorded(&self) -> bool {
        self.told == (self.tail, self.state == Use::Active)
    }

    /// Takes over what the superblocks tell of it.
    pub(super) fn restore(&mut self, superblock: &Superblock, is_there: bool) {
        if self.state == Use::Active && !(superblock.journal && is_there) {
            self.state = Use::Off;
        }
        self.tail = superblock.journal_tail.clamp(1, MOST_NUMBER);
        self.first = self.tail;
        self.told = (self.tail, superblock.journal);
    }

    /// The first number that is not retired.
    pub(super) const fn tail(&self) -> u64 {
        self.tail
    }

    /// Numbers go on from here.
    pub(super) fn go_on_from(&mut self, sequence: u64) {
        self.first = sequence.max(self.first);
    }

    /// Entries with lower numbers are on the medium.
    pub(super) fn settled(&self) -> u64 {
        self.settled.max(self.first)
    }

    /// The writes of entries have ended.
    pub(super) fn ended(&mut self, logged: Logged, stage: Stage) {
        for sequence in logged.first..logged.first + u64::from(logged.count) {
            let index = sequence.checked_sub(self.first);
            if let Some(entry) = index.and_then(|index| self.entries.get_mut(index as usize)) {
                entry.stage = stage;
            }
        }
    }

    /// All members were flushed.
    pub(super) fn flushed(&mut self) {
        for entry in self.entries.iter_mut().filter(|entry| entry.stage == Stage::Flushing) {
            entry.stage = Stage::Durable;
        }
    }

    /// The log device failed; false when it was not in use.
    pub(super) fn fail(&mut self) -> bool {
        let was_used = self.is_used();
        if was_used {
            self.state = Use::Failing;
        }
        was_used
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Entries of these lengths, the first `durable` of which are retired and told.
    fn ring(sectors: u64, lens: &[u64], durable: usize) -> Journal {
        let mut journal = Journal::new(sectors, 64);
        for len in lens {
            assert!(journal.has_room_for(&[*len]), "{lens:?}: {len}");
            journal.take(*len);
        }
        for entry in journal.entries.iter_mut().take(durable) {
            entry.stage = Stage::Durable;
        }
        journal.retire();
        journal.told();
        journal.recorded();
        journal
    }

    #[test]
    fn an_entry_goes_where_it_fits_whole_and_the_ring_is_never_quite_full() {
        // At the end of the ring, to the last sector, before anything is free at its start.
        assert!(ring(100, &[40], 0).has_room_for(&[60]));
        assert!(!ring(100, &[40], 0).has_room_for(&[61]));
        // Free at the start up to sector 40: an entry that does not fit behind goes there, one sector stays free.
        for (len, fits) in [(20, true), (21, true), (39, true), (40, false)] {
            assert_eq!(ring(100, &[40, 40], 1).has_room_for(&[len]), fits, "{len}");
        }
        // Gone around: up to one sector before the oldest.
        let mut around = ring(100, &[40, 40], 1);
        assert_eq!(around.take(30), (0, 3));
        assert!(around.has_room_for(&[9]));
        assert!(!around.has_room_for(&[10]));
        // Several, one after the other.
        assert!(ring(100, &[40, 40], 1).has_room_for(&[20, 39]));
        assert!(!ring(100, &[40, 40], 1).has_room_for(&[20, 40]));
        // An empty ring begins anew.
        let mut empty = ring(100, &[90], 1);
        assert!(empty.has_room_for(&[100]));
        assert!(!empty.has_room_for(&[101]));
        assert_eq!(empty.take(100), (0, 2));
    }

    #[test]
    fn entries_are_counted_besides_sectors() {
        // 24 sectors hold three headers: no more than four entries, whatever they take.
        let most = Journal::new(24, 64).most_entries;
        assert_eq!(most, 4);
        let journal = ring(24, &[1; 3], 0);
        assert!(journal.has_room_for(&[1]));
        assert!(!journal.has_room_for(&[1, 1]));
        assert!(ring(24, &[1; 4], 1).has_room_for(&[1]));
    }

    #[test]
    fn it_is_filling_when_more_than_half_is_taken() {
        assert!(!ring(100, &[50], 0).is_filling());
        assert!(ring(100, &[51], 0).is_filling());
        assert!(!ring(100, &[50, 40], 1).is_filling(), "40 are left");
        assert!(!ring(24, &[1, 1], 0).is_filling());
        assert!(ring(24, &[1, 1, 1], 0).is_filling());
    }

    #[test]
    fn what_is_on_the_medium_is_settled_up_to_the_first_that_is_not() {
        let mut journal = ring(100, &[10; 4], 0);
        let logged = |first, count| Logged { member: 0, first, count };
        assert_eq!((journal.settled(), journal.next()), (1, 5));
        journal.logged(logged(2, 2));
        assert_eq!(journal.settled(), 1, "the first is not there");
        journal.logged(logged(1, 1));
        assert_eq!(journal.settled(), 4);
        journal.ended(logged(1, 3), Stage::Ended);
        assert!(!journal.retire() && journal.begin_flush());
        journal.ended(logged(4, 1), Stage::Ended);
        journal.flushed();
        assert!(journal.retire() && !journal.retire());
        assert_eq!((journal.tail(), journal.first), (4, 1));
        assert!(!journal.is_recorded());
        journal.told();
        assert!(journal.is_recorded());
        journal.recorded();
        assert_eq!((journal.first, journal.entries.len(), journal.taken), (4, 1, 10));
        journal.logged(logged(3, 2));
        assert_eq!(journal.settled(), 5, "who is gone is none of them");
        journal.ended(logged(3, 1), Stage::Busy);
        assert_eq!(journal.entries[0].stage, Stage::Ended);
        assert!(journal.begin_flush() && !journal.begin_flush());
        journal.flushed();
        journal.retire();
        journal.told();
        journal.recorded();
        assert_eq!((journal.first, journal.settled(), journal.taken), (5, 5, 0));
        journal.go_on_from(3);
        assert_eq!(journal.next(), 5);
        journal.go_on_from(9);
        assert_eq!((journal.next(), journal.settled()), (9, 9));
    }

    #[test]
    fn a_journal_is_taken_over_as_superblocks_tell_of_it() {
        let superblock =
            |journal, journal_tail| Superblock { journal, journal_tail, ..Superblock::default() };
        for (tells, is_there, state) in
            [(true, true, Use::Active), (true, false, Use::Off), (false, true, Use::Off)]
        {
            let mut journal = Journal::new(100, 64);
            journal.restore(&superblock(tells, 7), is_there);
            assert_eq!((journal.state, journal.tail(), journal.next()), (state, 7, 7));
            assert_eq!(journal.is_recorded(), tells == journal.is_used());
            assert_eq!(journal.fail(), journal.state == Use::Failing);
        }
        let mut journal = Journal::new(100, 64);
        for (tail, expected) in [(0, 1), (u64::MAX, MOST_NUMBER)] {
            journal.restore(&superblock(true, tail), true);
            assert_eq!(journal.tail(), expected);
        }
        assert_eq!(Journal::new(0, 64).state, Use::Off);
    }

    #[test]
    fn a_journal_that_failed_keeps_its_entries_until_that_is_told() {
        let mut journal = ring(100, &[10; 4], 0);
        journal.told();
        assert!(journal.fail() && !journal.fail());
        journal.recorded();
        assert_eq!((journal.state, journal.entries.len()), (Use::Failing, 4), "told before it");
        journal.entries[0].stage = Stage::Ended;
        assert!(!journal.begin_flush(), "nothing of it is used again");
        journal.told();
        journal.recorded();
        assert_eq!((journal.state, journal.entries.len()), (Use::Off, 0));
    }

    #[test]
    fn room_for_entries_is_bounded() {
        let most = |sectors, plans| Journal::new(sectors, plans).most_entries as u64;
        assert_eq!((most(0, 4), most(8, 4), most(80, 4)), (0, 2, 11));
        assert_eq!((most(1 << 30, 4), most(1 << 30, 20)), (64 * 16, 64 * 20));
        assert_eq!(least_sectors(4, 64), 3 * 8 + 4 * 64);
        // An odd number of entries: more than half of them.
        assert!(!ring(16, &[1], 0).is_filling() && ring(16, &[1, 1], 0).is_filling());
    }
}
