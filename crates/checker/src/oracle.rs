//! The oracle: which values each sector of an array may hold.
//!
//! One definition for all that check. A sector holds its last durable value, any later acknowledged
//! one, or one in flight; a write is durable when it was `fua` and answered well, or was answered
//! well before a flush was submitted that was answered well. A read sees nothing that a write
//! acknowledged before it began has covered. After a crash, what the table in
//! [`raidlab_core::consistency`] excepts may be anything:
//!
//! * mode `none`, levels with parity: in rows with writes or discards that were not durable, what a lost member
//!   held, however much later it is lost;
//! * `resync` and `bitmap`: the same, when the administrator forced a start with members missing;
//! * `ppl`: sectors written and not durable, of a member lost at the start or before the log was
//!   written out;
//! * `journal`: nothing, unless a start without the log device was forced: then as `none`.
//!
//! "In flight" in that table means "not yet durable" here: what a volatile cache still holds is as
//! little written as what is on its way to it. A write that was answered with an error leaves its
//! sectors old or new, until a later write covers them. Once a sector was read after a recovery, it
//! keeps what was read ([`Oracle::saw`]).
//! Tests: `what_is_durable_covers_what_came_before`, `overlapping_writes_may_end_either_way`,
//! `a_lost_member_opens_the_write_hole_only_where_the_table_says`.

use std::sync::Arc;

use raidlab_core::Consistency;

use super::content::{Content, EMPTY, hash_all, mix};
use super::shape::{Set, Shape};

/// A value that a sector may hold.
#[derive(Clone, Copy, Debug)]
struct Candidate {
    sector: u32,
    value: Content,
    write: u64,
    sent: u32,
    /// When it was answered; [`IN_FLIGHT`] until then.
    ended: u32,
    /// It was answered well.
    well: bool,
    durable: bool,
}

const IN_FLIGHT: u32 = u32::MAX;

/// A read that gave what it must not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wrong {
    /// Which sector of the array.
    pub sector: u64,
    /// What was read.
    pub got: Content,
    /// What it might have been.
    pub legal: Vec<Content>,
}

/// The legal values of all sectors.
#[derive(Debug)]
pub struct Oracle {
    shape: Arc<Shape>,
    /// The one value a sector holds, unless it has candidates.
    only: Vec<Content>,
    has_candidates: Vec<bool>,
    candidates: Vec<Candidate>,
    /// Since when a sector may hold anything; 0 when it may not.
    anything: Vec<u32>,
    /// When a discard of a sector that is not durable was answered, [`IN_FLIGHT`] until then; 0 when there is none.
    discarded: Vec<u32>,
    /// Rows whose parity may be wrong, since not all written to them was durable at a crash.
    holes: Vec<bool>,
    /// Sectors with writes that were not durable at the last crash.
    loose: Vec<bool>,
    /// A log has parity of a row only if all of it is in service: md's journal of raid6.
    logs_all_parity: bool,
    /// Of `holes` those that such a log has no parity of.
    thin: Vec<bool>,
    /// Members that were lost since redundancy was consistent.
    lost: Set,
    /// When the reads that are under way began.
    reads: Vec<u32>,
    clock: u32,
}

impl Clone for Oracle {
    fn clone(&self) -> Self {
        let mut new = Self {
            shape: Arc::clone(&self.shape),
            only: Vec::new(),
            has_candidates: Vec::new(),
            candidates: Vec::new(),
            anything: Vec::new(),
            discarded: Vec::new(),
            holes: Vec::new(),
            loose: Vec::new(),
            logs_all_parity: false,
            thin: Vec::new(),
            lost: 0,
            reads: Vec::new(),
            clock: 0,
        };
        new.clone_from(self);
        new
    }

    fn clone_from(&mut self, other: &Self) {
        if !Arc::ptr_eq(&self.shape, &other.shape) {
            self.shape = Arc::clone(&other.shape);
        }
        self.only.clone_from(&other.only);
        self.has_candidates.clone_from(&other.has_candidates);
        self.candidates.clone_from(&other.candidates);
        self.anything.clone_from(&other.anything);
        self.discarded.clone_from(&other.discarded);
        self.holes.clone_from(&other.holes);
        self.loose.clone_from(&other.loose);
        self.logs_all_parity = other.logs_all_parity;
        self.thin.clone_from(&other.thin);
        self.lost = other.lost;
        self.reads.clone_from(&other.reads);
        self.clock = other.clock;
    }
}

impl Oracle {
    /// Of a new array, which is empty everywhere.
    #[must_use]
    pub fn new(shape: Arc<Shape>) -> Self {
        let sectors = shape.capacity as usize;
        Self {
            only: vec![EMPTY; sectors],
            has_candidates: vec![false; sectors],
            candidates: Vec::new(),
            anything: vec![0; sectors],
            discarded: vec![0; sectors],
            holes: vec![false; shape.rows()],
            loose: vec![false; sectors],
            logs_all_parity: false,
            thin: vec![false; shape.rows()],
            lost: 0,
            reads: Vec::new(),
            clock: 1,
            shape,
        }
    }

    /// The array has md's journal. As `docs/md-format.md` says, that has parity of a row of raid6 only while both are
    /// in service: a member that is lost besides one that was out of service at a crash may hold anything in rows that
    /// were being written.
    pub fn logs_all_parity_or_none(&mut self) {
        self.logs_all_parity = self.shape.parities() == 2;
    }

    /// Members were out of service when the power went: after [`Self::crash`].
    pub fn crashed_without_all(&mut self) {
        if self.logs_all_parity {
            self.thin.clone_from(&self.holes);
        }
    }

    fn tick(&mut self) -> u32 {
        self.clock += 1;
        self.clock
    }

    /// A write is submitted.
    pub fn write(&mut self, write: u64, at: u64, values: impl Iterator<Item = Content>) {
        let sent = self.tick();
        for (sector, value) in (at as u32..).zip(values) {
            self.open(sector);
            let (ended, well, durable) = (IN_FLIGHT, false, false);
            self.candidates.push(Candidate { sector, value, write, sent, ended, well, durable });
        }
    }

    /// A sector has candidates from now on.
    fn open(&mut self, sector: u32) {
        if !std::mem::replace(&mut self.has_candidates[sector as usize], true) {
            self.settled(sector, self.only[sector as usize]);
        }
    }

    /// A sector may hold a value that is on the media whatever comes.
    fn settled(&mut self, sector: u32, value: Content) {
        let (write, sent, ended) = (u64::MAX, 0, 0);
        let (well, durable) = (true, true);
        self.candidates.push(Candidate { sector, value, write, sent, ended, well, durable });
    }

    /// A copy of a sector has come to hold another value, with which a read may be answered as well.
    pub fn differs(&mut self, at: u64, value: Content) {
        let sector = at as u32;
        self.open(sector);
        self.settled(sector, value);
    }

    /// A write is answered: well or not, durable or not.
    pub fn written(&mut self, write: u64, well: bool, durable: bool) {
        let ended = self.tick();
        for candidate in self.candidates.iter_mut().filter(|c| c.write == write && c.sent > 0) {
            candidate.ended = ended;
            candidate.well = well;
            candidate.durable = well && durable;
        }
        if well && durable {
            self.prune();
        }
    }

    /// A flush is submitted; give the moment back to [`Self::flushed`].
    pub fn flush(&mut self) -> u32 {
        self.tick()
    }

    /// A flush is answered well.
    pub fn flushed(&mut self, moment: u32) {
        for candidate in &mut self.candidates {
            candidate.durable |= candidate.well && candidate.ended < moment;
        }
        self.discarded.iter_mut().filter(|ended| **ended < moment).for_each(|ended| *ended = 0);
        self.prune();
    }

    /// What these sectors hold matters to nobody any more: a discard is submitted.
    pub fn discard(&mut self, at: u64, len: u64) {
        self.anything[at as usize..(at + len) as usize].fill(IN_FLIGHT);
        self.discarded[at as usize..(at + len) as usize].fill(IN_FLIGHT);
    }

    /// A discard is answered, in whatever way.
    pub fn discarded(&mut self, at: u64, len: u64) {
        let now = self.tick();
        self.anything[at as usize..(at + len) as usize].fill(now);
        self.discarded[at as usize..(at + len) as usize].fill(now);
    }

    /// Forgets what a durable write has covered, for all reads under way too.
    fn prune(&mut self) {
        let oldest = self.reads.iter().copied().min().unwrap_or(IN_FLIGHT);
        let Self { candidates, only, has_candidates, anything, .. } = self;
        let mut index = 0;
        while index < candidates.len() {
            let old = candidates[index];
            let covers = |new: &Candidate| {
                new.sector == old.sector
                    && new.durable
                    && old.ended < new.sent
                    && new.ended < oldest
            };
            if candidates.iter().any(covers) {
                candidates.swap_remove(index);
            } else {
                index += 1;
            }
        }
        for candidate in candidates.iter().filter(|c| c.durable) {
            let since = &mut anything[candidate.sector as usize];
            // A read that began before the write was answered may still see what was there.
            if *since > 0 && candidate.sent > *since && candidate.ended < oldest {
                *since = 0;
            }
        }
        let mut index = 0;
        while index < candidates.len() {
            let one = candidates[index];
            let alone = candidates.iter().filter(|c| c.sector == one.sector).count() == 1;
            if one.durable && alone {
                only[one.sector as usize] = one.value;
                has_candidates[one.sector as usize] = false;
                candidates.swap_remove(index);
            } else {
                index += 1;
            }
        }
    }

    /// The moment a read begins; give it to [`Self::check`] and [`Self::read_ended`].
    #[must_use]
    pub fn read(&mut self) -> u32 {
        let now = self.tick();
        self.reads.push(now);
        now
    }

    /// A read is answered.
    pub fn read_ended(&mut self, since: u32) {
        self.reads.retain(|known| *known != since);
    }

    /// Whether a read that began at `since` may give `values`.
    ///
    /// # Errors
    /// The first sector that is wrong.
    pub fn check(&self, since: u32, at: u64, values: &[Content]) -> Result<(), Wrong> {
        for (sector, got) in (at..).zip(values.iter().copied()) {
            let index = sector as usize;
            if !self.has_candidates[index] {
                if self.only[index] == got || self.anything[index] > 0 {
                    continue;
                }
                return Err(Wrong { sector, got, legal: vec![self.only[index]] });
            }
            if !self.may_read(since, sector, got) {
                let legal = self.legal(since, sector).collect();
                return Err(Wrong { sector, got, legal });
            }
        }
        Ok(())
    }

    fn may_read(&self, since: u32, sector: u64, got: Content) -> bool {
        if self.legal(since, sector).any(|value| value == got) {
            return true;
        }
        let open = self.anything[sector as usize];
        let covered = |c: &Candidate| c.well && c.ended < since && c.sent > open;
        open > 0 && !self.of(sector).any(covered)
    }

    fn of(&self, sector: u64) -> impl Iterator<Item = &Candidate> {
        self.candidates.iter().filter(move |c| u64::from(c.sector) == sector)
    }

    /// What a read that began at `since` may see of a sector with candidates.
    fn legal(&self, since: u32, sector: u64) -> impl Iterator<Item = Content> {
        let covered = move |old: &Candidate| {
            self.of(sector).any(|new| new.well && new.ended < since && old.ended < new.sent)
        };
        self.of(sector).filter(move |c| !covered(c)).map(|c| c.value)
    }

    /// What was read after a recovery stays: it was all on the media.
    pub fn saw(&mut self, at: u64, values: &[Content]) {
        if self.shape.mode == Consistency::None {
            return;
        }
        for (sector, got) in (at as u32..).zip(values.iter().copied()) {
            let index = sector as usize;
            let fixed = |c: &Candidate| c.sector != sector || c.sent == 0;
            if self.has_candidates[index] && self.candidates.iter().all(fixed) {
                self.candidates.retain(|c| c.sector != sector);
                self.has_candidates[index] = false;
                self.only[index] = got;
            }
        }
    }

    /// A crash: nothing is in flight any more, and what was not durable may be there or not.
    pub fn crash(&mut self) {
        self.reads.clear();
        self.prune();
        let Self { candidates, discarded, holes, loose, shape, .. } = self;
        // Members may have lost the zeroes that parity counts on.
        for (sector, ended) in (0..).zip(discarded.iter_mut()) {
            if std::mem::take(ended) > 0 && shape.rows() > 0 {
                holes[shape.row_of(sector)] = true;
            }
        }
        for candidate in candidates.iter_mut() {
            let sector = u64::from(candidate.sector);
            if candidate.sent > 0 {
                loose[sector as usize] = true;
                if shape.rows() > 0 {
                    holes[shape.row_of(sector)] = true;
                }
            }
            *candidate = Candidate {
                sent: 0,
                ended: 0,
                well: true,
                durable: true,
                write: u64::MAX,
                ..*candidate
            };
        }
        candidates.sort_by_key(|c| (c.sector, c.value));
        candidates.dedup_by_key(|c| (c.sector, c.value));
        let now = self.tick();
        for since in self.anything.iter_mut().filter(|since| **since > 0) {
            *since = now;
        }
        self.prune();
    }

    /// Members (a bit each) are lost: at a start after a crash, or later. `forced`: the
    /// administrator allowed a start that the mode does not promise anything of.
    pub fn lose(&mut self, lost: Set, forced: bool) {
        if self.shape.rows() == 0 {
            return;
        }
        let (rows, only_loose) = match self.shape.mode {
            Consistency::None => (true, false),
            Consistency::PartialParity { .. } => (forced, true),
            _ => (forced, false),
        };
        let mut thin = false;
        if self.logs_all_parity {
            self.lost |= lost;
            thin = self.lost.count_ones() > 1;
        }
        if !rows && !only_loose && !thin {
            return;
        }
        let lost = lost | if thin { self.lost } else { 0 };
        let now = self.tick();
        for sector in 0..self.shape.capacity {
            let (member, row) = self.shape.copies(sector)[0];
            let open = rows && self.holes[row as usize]
                || only_loose && self.loose[sector as usize]
                || thin && self.thin[row as usize];
            if lost >> member & 1 == 1 && open {
                self.anything[sector as usize] = now;
            }
        }
    }

    /// In these rows something of one of these members (a bit each) could not be read or written:
    /// there it is as if they were lost, where the mode promises nothing of who is.
    pub fn lose_rows(&mut self, lost: Set, rows: std::ops::Range<u64>) {
        let mode = self.shape.mode;
        let now = self.tick();
        for row in rows.start as usize..(rows.end as usize).min(self.shape.rows()) {
            for member in (0..self.shape.members).filter(|m| lost >> m & 1 == 1) {
                let Some(sector) = self.shape.holds(row, member) else { continue };
                let open = match mode {
                    Consistency::None => self.holes[row],
                    Consistency::PartialParity { .. } => self.loose[sector as usize],
                    Consistency::Journal { .. } => self.thin[row],
                    _ => false,
                };
                if open {
                    self.anything[sector as usize] = now;
                }
            }
        }
    }

    /// Redundancy was made consistent, and that is durable.
    pub fn recovered(&mut self) {
        if self.shape.mode != Consistency::None {
            self.holes.fill(false);
            self.loose.fill(false);
            self.thin.fill(false);
            self.lost = 0;
        }
    }

    /// Whether what a sector holds matters to nobody.
    #[must_use]
    pub fn is_open(&self, sector: u64) -> bool {
        self.anything[sector as usize] > 0
    }

    /// Whether parity of a row may disagree with its data.
    #[must_use]
    pub fn has_hole(&self, row: usize) -> bool {
        self.holes[row]
    }

    /// Whether every sector has one legal value.
    #[must_use]
    pub fn is_settled(&self) -> bool {
        self.candidates.is_empty()
    }

    /// The value a sector has if it can have only one.
    #[must_use]
    pub fn only(&self, sector: u64) -> Option<Content> {
        let index = sector as usize;
        (!self.has_candidates[index] && self.anything[index] == 0).then(|| self.only[index])
    }

    /// Hashes everything that decides what is legal from now on.
    #[must_use]
    pub fn key(&self) -> u64 {
        let mut key = hash_all(3, &self.only);
        for c in &self.candidates {
            let state = u64::from(c.sent) << 32 | u64::from(c.ended);
            let flags = u64::from(c.well) | u64::from(c.durable) << 1;
            key = mix(mix(mix(key, c.value), state), u64::from(c.sector) << 2 | flags);
        }
        let mut word = 0u64;
        let is_set = |since: &u32| *since > 0;
        let since = self.anything.iter().chain(&self.discarded).map(is_set);
        let flags = since.chain(self.holes.iter().chain(&self.loose).copied());
        for (index, flag) in (1..).zip(flags) {
            word = word << 1 | u64::from(flag);
            if index % 64 == 0 {
                key = mix(key, word);
            }
        }
        if self.logs_all_parity {
            key = self
                .thin
                .iter()
                .fold(mix(key, self.lost as u64), |key, thin| mix(key, u64::from(*thin)));
        }
        mix(key, word)
    }
}
