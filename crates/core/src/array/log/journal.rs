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

use super::super::lists::ListBuilder;
use super::super::stripe::{Band, MOST_BANDS, Memory, Plan, Task};
use super::replay::MOST_NUMBER;
use super::{Logged, Stage, chunk_set, words};
use crate::array::Array;
use crate::array::ios::NO_META;
use crate::array::ios::Owner;
use crate::array::settings::Consistency;
use crate::bugs::Bug;
use crate::contract::LOG_HEADER;
use crate::contract::{Event, MetaIo, Output, Record, Superblock};
use crate::units::Sector;

/// The smallest journal: the entries of one plan fit.
pub(in crate::array) const fn least_sectors(roles: u16, plan_rows: u64) -> u64 {
    MOST_BANDS as u64 * LOG_HEADER as u64 + roles as u64 * plan_rows
}

/// Whether the journal is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Use {
    Active,
    /// It failed, and the superblocks do not tell yet: nothing is written.
    Failing,
    Off,
}

/// An entry whose space is not free.
#[derive(Clone, Copy, Debug)]
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
    state: Use,
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
    fn has_room_for(&self, lens: &[u64]) -> bool {
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

    /// Takes the next place; there is room.
    fn take(&mut self, len: u64) -> (u64, u64) {
        let oldest = self.entries.front().map(|entry| entry.at);
        let head = if oldest.is_none() { 0 } else { self.head };
        let at = self.place(oldest, head, len).expect("room is looked for first");
        let sequence = self.first + self.entries.len() as u64;
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
    fn is_filling(&self) -> bool {
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

    pub(super) fn add_to_key(&self, add: &mut dyn FnMut(u64)) {
        add(self.state as u64 | self.head << 2);
        for entry in &self.entries {
            add(entry.stage as u64 | entry.at << 4);
            add(entry.len);
        }
        add(self.tail - self.first.min(self.tail));
        add(self.settled.max(self.first) - self.first);
    }
}

impl Array {
    /// The first number of the journal that is not retired, for the superblocks.
    pub(in crate::array) fn journal_tail(&self) -> u64 {
        self.log.journal.tail
    }

    /// Whether the journal is in use, for the superblocks; false in other modes. Without it the array
    /// works in mode `resync`.
    pub(in crate::array) fn is_journal_used(&self) -> bool {
        self.log.journal.state == Use::Active
    }

    /// Takes over what the superblocks tell of the journal; before [`Self::replay_logs`].
    pub(crate) fn restore_log(&mut self, superblock: &Superblock, journal_is_there: bool) {
        let journal = &mut self.log.journal;
        if journal.state == Use::Active && !(superblock.journal && journal_is_there) {
            journal.state = Use::Off;
        }
        journal.tail = superblock.journal_tail.clamp(1, MOST_NUMBER);
        journal.first = journal.tail;
        journal.told = (journal.tail, superblock.journal);
    }

    /// Numbers go on from here.
    pub(super) fn journal_goes_on(&mut self, sequence: u64) {
        self.log.journal.first = sequence.max(self.log.journal.first);
    }

    /// Logs what a plan is about to write; false when it must wait.
    pub(super) fn log_in_journal(&mut self, plan: u32) -> bool {
        match self.log.journal.state {
            Use::Active => {}
            Use::Off => return true,
            Use::Failing => {
                self.log.waiting.push_back(plan);
                return false;
            }
        }
        let state = self.plans[plan];
        let mut lens = [0; MOST_BANDS];
        for (len, band) in lens.iter_mut().zip(state.bands()) {
            let roles = u64::from(self.journal_roles(&state, band).count_ones());
            *len = u64::from(LOG_HEADER) + roles * (band.to - band.from);
        }
        let lens = &lens[..state.bands().len()];
        if self.is_log_queue_ahead() || !self.log.journal.has_room_for(lens) {
            self.wait_for_log(plan);
            return false;
        }
        let mut first = None;
        for (band, len) in state.bands().iter().zip(lens) {
            let roles = self.journal_roles(&state, band);
            let (at, sequence) = self.log.journal.take(*len);
            first = first.or(Some(sequence));
            let record = Record::JournalEntry {
                at: Sector(at),
                sequence,
                stripe: state.stripe,
                from: band.from as u32,
                to: band.to as u32,
                roles: words(roles),
                settled: self.log.journal.settled.max(self.log.journal.first),
            };
            let mut list = ListBuilder::new();
            for role in (0..self.setup.roles()).filter(|r| roles >> r & 1 == 1) {
                self.add_journal_rows(plan, &state, role, band, &mut list);
            }
            let (member, payload) = (self.setup.journal(), list.finish());
            let fua = !self.setup.has_bug(Bug::JournalNotDurable);
            let meta = MetaIo { member, record, at: Sector(at), payload, fua, ..NO_META };
            self.emit_meta(Owner::Plan(plan), meta);
        }
        let count = lens.len() as u8;
        let first = first.unwrap_or_default();
        self.log.logged[plan as usize] = Logged { member: 0, first, count };
        true
    }

    /// What of a band goes to the journal: all data being written, and the parities in service.
    fn journal_roles(&self, state: &Plan, band: &Band) -> u128 {
        let mut roles = chunk_set(band.first, band.last);
        for parity in (0..self.setup.parities).filter(|parity| band.live >> parity & 1 == 1) {
            let role = self.setup.data_chunks + parity;
            if !self.members.failed.contains(self.setup.role_member(state.stripe, role)) {
                roles |= 1 << role;
            }
        }
        roles
    }

    /// Adds a role's new rows of a band. What is to be zeroes lies in the scratch of the band's first
    /// chunk, which a plan that writes zeroes does not use otherwise.
    fn add_journal_rows(
        &mut self,
        plan: u32,
        state: &Plan,
        role: u16,
        band: &Band,
        list: &mut ListBuilder,
    ) {
        let is_data = role < self.setup.data_chunks;
        if state.task == Task::Zero && (is_data || band.covered() == self.setup.data_chunks) {
            self.add_rows(plan, state, band.first, band, Memory::Scratch, list);
        } else {
            let memory = if is_data { Memory::Payload } else { Memory::Scratch };
            self.add_rows(plan, state, role, band, memory, list);
        }
    }

    /// Whether what plans write goes to the journal.
    pub(in crate::array) fn is_journalled(&self) -> bool {
        matches!(self.setup.settings.consistency, Consistency::Journal { .. })
            && self.is_journal_used()
    }

    pub(super) fn journal_ended(&mut self, logged: Logged, durable: bool) {
        let early = self.setup.has_bug(Bug::JournalRetiredEarly);
        let stage = if durable || early { Stage::Durable } else { Stage::Ended };
        let journal = &mut self.log.journal;
        for sequence in logged.first..logged.first + u64::from(logged.count) {
            let index = sequence.checked_sub(journal.first);
            if let Some(entry) = index.and_then(|index| journal.entries.get_mut(index as usize)) {
                entry.stage = stage;
            }
        }
        if self.log.journal.is_filling() {
            self.flush_for_log();
        }
    }

    pub(super) fn journal_flushed(&mut self) {
        let flushing = |entry: &&mut Entry| entry.stage == Stage::Flushing;
        for entry in self.log.journal.entries.iter_mut().filter(flushing) {
            entry.stage = Stage::Durable;
        }
        self.retire_journal();
    }

    /// Has the superblocks tell how much is no longer needed.
    pub(super) fn retire_journal(&mut self) {
        if self.log.journal.state == Use::Active && self.log.journal.retire() {
            self.state_changed();
        }
    }

    /// The log device is out of service.
    pub(in crate::array) fn journal_failed(&mut self) {
        if self.log.journal.state != Use::Active {
            return;
        }
        self.log.journal.state = Use::Failing;
        self.outputs.push_back(Output::Event(Event::JournalFailed));
        self.state_changed();
    }

    /// Whether a plan must not write although it has logged: the superblocks still say that there is a
    /// journal, or the member with its log is gone.
    pub(in crate::array) fn must_log_again(&self, plan: u32) -> bool {
        self.log.journal.state == Use::Failing
            || self.logs_partial_parity() && self.lacks_parity(plan)
    }
}
