//! Partial parity (raid5), as md's PPL: before a plan writes, the XOR of the chunks it does not write
//! goes to a log on the member with P.
//!
//! Fault model: a crash at any point, with writes that were not flushed lost or torn sector by sector
//! in any combination, and after it any one member lost; a log entry is found whole or not at all.
//! Why it is safe: P of a row is the partial parity XOR what the written chunks hold now, whatever
//! arrived of them, provided that the chunks not written hold what they held when it was taken. So
//! * an entry is durable before any data or parity of its plan goes out, and its rows stay locked;
//! * for each row only the newest entry counts, even if it cannot be applied: an older one knows
//!   less. Places are taken strictly in turn, but entries being written may arrive in any order or
//!   be torn, so a newer entry of some rows may be overwritten before an older one. That is why at
//!   most half a turn of entries is being written at any time, and a place is taken only when the
//!   places of half a turn after it may be taken too: an entry that is half a turn or more behind
//!   the newest found does not count at replay. Whatever it protected is durable, and what was
//!   overwritten by entries being written when the power went is older still;
//! * a chunk that is not written must be durable: when an earlier write to these rows was not yet
//!   flushed, and wrote a chunk that this one does not, the plan waits for a flush of all members;
//! * a place is used again only after its writes have ended and all members were flushed;
//! * an entry describes rows in which the same chunks are written: one a band. A chunk that is not in
//!   flight in a row is never taken for one that is;
//! * an entry says which before it were durable when it was made (`settled`): one of those that is missing, and
//!   whose place cannot have been taken since, is damage, and the log is lost (`Array::is_log_torn`).
//!
//! What it does not save: what was in flight (written and not yet durable) on the member that is
//! lost itself. Nothing is done for rows of which a written chunk is lost: all that is computed from
//! their parity are the very sectors in flight. With P lost there is nothing to make consistent, and
//! no entry is written, but a place is taken all the same: until what was written is durable, it
//! counts as any other write not flushed, should the member come back. Degraded plans log as others do: what is
//! lost counts in the partial parity, through the old P or by being computed. Zeroes are a write like
//! any other.
//! A member that comes in anew has an empty log (its driver sees to that), and while a member is
//! being replaced its entries go to both drives; every range of the replacement is copied under lock
//! before it takes over, so no earlier entry is missing there. A member being rebuilt is written and
//! logged like one in service.
//! Tests: `tests/logs.rs::partial_parity_survives_a_crash_at_any_point`.

use std::hash::{Hash, Hasher};

use super::header::Header;
use super::{Logged, Stage};
use crate::array::roles::Roles;
use crate::array::stripe::Band;

/// What is in a place of a ring.
#[derive(Clone, Copy, Debug, Hash)]
pub(super) struct Entry {
    pub(super) stage: Stage,
    pub(super) stripe: u64,
    pub(super) rows: (u32, u32),
    pub(super) written: Roles,
    /// It is on the medium, or never will be.
    pub(super) logged: bool,
    /// It never was written.
    pub(super) absent: bool,
}

/// Entries of a ring that may be being written at once.
pub(super) const fn most_being_logged(slots: u64) -> u64 {
    slots / 2
}

/// The places of one member's log, taken in turn: generation g goes to place g mod their number.
#[derive(Clone, Debug)]
pub(super) struct Ring {
    places: Vec<Entry>,
    /// The generation of the next entry.
    next: u64,
    /// Generations between these, the second left out, are durable on the medium.
    settled: [u64; 2],
    /// What its entries are gathered in, of a log that takes a header at a time.
    header: Option<Header>,
}

impl Hash for Ring {
    fn hash<H: Hasher>(&self, key: &mut H) {
        let Self { places, next, settled, header } = self;
        (self.slot(*next), settled.map(|number| next.wrapping_sub(number)), header).hash(key);
        // What is durable says nothing any more.
        let wanted = |entry: &Entry| entry.stage != Stage::Durable || !entry.logged;
        places.iter().for_each(|entry| wanted(entry).then_some(*entry).hash(key));
    }
}

impl Ring {
    /// `header`: sectors of partial parity that a header takes, of a log that takes one at a time.
    pub(super) fn new(slots: u32, header: Option<u64>) -> Self {
        let idle = Entry {
            stage: Stage::Durable,
            stripe: 0,
            rows: (0, 0),
            written: Roles::NONE,
            logged: true,
            absent: true,
        };
        let places = vec![idle; slots as usize];
        Self { places, next: 1, settled: [1; 2], header: header.map(Header::new) }
    }

    pub(super) const fn slot(&self, generation: u64) -> usize {
        (generation % self.places.len() as u64) as usize
    }

    pub(super) fn has_room_for(&self, count: u64) -> bool {
        let most = most_being_logged(self.places.len() as u64);
        let mut next = self.next..self.next + count + most;
        let behind = self.next.saturating_sub(most)..(self.next + count).saturating_sub(most);
        next.all(|generation| self.places[self.slot(generation)].stage == Stage::Durable)
            && behind.clone().all(|generation| self.places[self.slot(generation)].logged)
    }

    /// Whether so many entries with so much partial parity may be taken now; `is_live`: they are written.
    pub(super) fn takes(&self, count: u64, sectors: u64, is_live: bool) -> bool {
        let Some(header) = &self.header else { return self.has_room_for(count) };
        let is_over = |entry: &Entry| entry.stage == Stage::Durable && entry.logged;
        let mut next = self.next..self.next + count;
        next.all(|generation| is_over(&self.places[self.slot(generation)]))
            && (!is_live || header.has_room_for(sectors, || self.places.iter().all(is_over)))
    }

    /// Entries with so much partial parity are to be written; whether a header gets them.
    pub(super) const fn put_in_header(&mut self, sectors: u64) -> bool {
        let Some(header) = &mut self.header else { return false };
        header.take(sectors);
        true
    }

    /// The header that is open gets no more entries.
    pub(super) const fn close_header(&mut self) {
        if let Some(header) = &mut self.header {
            header.close();
        }
    }

    /// Whether these rows have a write that is not durable, of a chunk that is not in `written`.
    pub(super) fn is_unsettled(&self, stripe: u64, rows: (u32, u32), written: Roles) -> bool {
        self.places.iter().any(|entry| {
            entry.stage != Stage::Durable
                && entry.stripe == stripe
                && entry.rows.0 < rows.1
                && rows.0 < entry.rows.1
                && !entry.written.is_within(written)
        })
    }

    pub(super) fn take(&mut self, entry: Entry) -> u64 {
        let generation = self.next;
        let slot = self.slot(generation);
        self.places[slot] = entry;
        self.next += 1;
        generation
    }

    pub(super) fn ended(&mut self, logged: Logged, stage: Stage) {
        for generation in logged.first..logged.first + u64::from(logged.count) {
            let slot = self.slot(generation);
            self.places[slot].stage = stage;
            self.places[slot].logged = true;
        }
    }

    pub(super) fn logged(&mut self, logged: Logged) {
        for generation in logged.first..logged.first + u64::from(logged.count) {
            let slot = self.slot(generation);
            self.places[slot].logged = true;
        }
        while self.settled[1] < self.next {
            let number = self.settled[1];
            let entry = &self.places[self.slot(number)];
            if !entry.logged {
                break;
            }
            if entry.absent {
                self.settled[0] = number + 1;
            }
            self.settled[1] += 1;
        }
    }

    /// Entries with numbers between these, the second left out, are on the medium.
    pub(super) const fn settled(&self) -> [u64; 2] {
        self.settled
    }

    /// The generation of the next entry.
    pub(super) const fn next(&self) -> u64 {
        self.next
    }

    /// Goes on behind this entry, which was found.
    pub(super) fn continue_behind(&mut self, generation: u64) {
        self.next = self.next.max(generation + 1);
        self.unsettle();
    }

    /// From here on, nothing is said of the entries there were.
    pub(super) const fn unsettle(&mut self) {
        self.settled = [self.next; 2];
    }

    /// Everything that has ended is to be made durable; false when there is nothing.
    pub(super) fn begin_flush(&mut self) -> bool {
        let mut any = false;
        for entry in self.places.iter_mut().filter(|entry| entry.stage == Stage::Ended) {
            entry.stage = Stage::Flushing;
            any = true;
        }
        any
    }

    pub(super) fn flushed(&mut self) {
        for entry in self.places.iter_mut().filter(|entry| entry.stage == Stage::Flushing) {
            entry.stage = Stage::Durable;
        }
    }
}

/// What a band says of itself in a log.
pub(super) const fn band_rows(band: &Band) -> (u32, u32) {
    (band.from as u32, band.to as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(stripe: u64, rows: (u32, u32)) -> Entry {
        let written = Roles::one(1);
        Entry { stage: Stage::Busy, stripe, rows, written, logged: false, absent: false }
    }

    /// A ring in which so many entries were taken.
    fn ring(slots: u32, taken: u64) -> Ring {
        let mut ring = Ring::new(slots, None);
        for number in 0..taken {
            assert_eq!(ring.take(entry(0, (0, 8))), number + 1);
        }
        ring
    }

    fn logged(first: u64, count: u8) -> Logged {
        Logged { member: 0, first, count }
    }

    #[test]
    fn half_a_turn_may_be_on_its_way_and_half_a_turn_stays_free() {
        for (slots, taken, most) in
            [(8, 0, 3), (8, 1, 3), (8, 2, 2), (8, 3, 1), (8, 4, 0), (6, 2, 1), (7, 1, 2)]
        {
            let ring = ring(slots, taken);
            let fits: Vec<u64> = (1..=3).take_while(|count| ring.has_room_for(*count)).collect();
            assert_eq!(fits.len(), most, "{slots} places, {taken} taken");
        }
        // Those taken are durable, but one of them is not on the medium.
        for (late, most) in [(1, 0), (2, 1), (3, 2), (4, 3)] {
            let mut ring = ring(8, 4);
            ring.places.iter_mut().for_each(|entry| entry.stage = Stage::Durable);
            (1..=4).filter(|number| *number != late).for_each(|one| ring.logged(logged(one, 1)));
            let fits: Vec<u64> = (1..=3).take_while(|count| ring.has_room_for(*count)).collect();
            assert_eq!(fits.len(), most, "{late} is late");
        }
    }

    #[test]
    fn rows_are_unsettled_where_another_chunk_is_not_durable() {
        let mut ring = Ring::new(8, None);
        ring.take(entry(3, (8, 16)));
        let both: Roles = [1, 2].into_iter().collect();
        let cases = [
            (3, (8, 16), Roles::one(2), true),
            (3, (15, 20), Roles::one(2), true),
            (3, (0, 9), Roles::one(2), true),
            (3, (16, 20), Roles::one(2), false),
            (3, (0, 8), Roles::one(2), false),
            (2, (8, 16), Roles::one(2), false),
            (3, (8, 16), Roles::one(1), false),
            (3, (8, 16), both, false),
        ];
        for (stripe, rows, written, expected) in cases {
            assert_eq!(ring.is_unsettled(stripe, rows, written), expected, "{stripe} {rows:?}");
        }
        ring.ended(logged(1, 1), Stage::Ended);
        assert!(ring.is_unsettled(3, (8, 16), Roles::one(2)));
        assert!(ring.begin_flush() && !ring.begin_flush());
        assert!(ring.is_unsettled(3, (8, 16), Roles::one(2)));
        ring.take(entry(3, (16, 24)));
        ring.ended(logged(2, 1), Stage::Ended);
        ring.flushed();
        assert!(!ring.is_unsettled(3, (8, 16), Roles::one(2)));
        assert!(ring.is_unsettled(3, (16, 24), Roles::one(2)), "it ended after the flush began");
    }

    #[test]
    fn a_header_waits_until_all_before_it_is_durable() {
        let mut ring = Ring::new(4, Some(16));
        let take = |ring: &mut Ring, sectors| {
            let taken = ring.takes(1, sectors, true) && ring.put_in_header(sectors);
            taken.then(|| ring.take(entry(0, (0, 8))))
        };
        assert_eq!([8, 8, 8].map(|sectors| take(&mut ring, sectors)), [Some(1), Some(2), None]);
        assert_eq!([0, 0, 0].map(|none| take(&mut ring, none)), [Some(3), Some(4), None]);
        ring.close_header();
        ring.logged(logged(1, 4));
        ring.ended(logged(1, 3), Stage::Durable);
        assert_eq!(take(&mut ring, 0), None, "one of them is not durable");
        assert!(ring.takes(1, 0, false), "what is not written needs a place only");
        ring.ended(logged(4, 1), Stage::Ended);
        assert!(ring.begin_flush());
        ring.flushed();
        assert_eq!(take(&mut ring, 8), Some(5));
    }

    #[test]
    fn what_is_settled_begins_behind_what_was_never_written() {
        let mut ring = ring(8, 2);
        ring.take(Entry { absent: true, logged: true, ..entry(0, (0, 8)) });
        ring.take(entry(0, (0, 8)));
        ring.take(entry(0, (0, 8)));
        assert_eq!((ring.settled(), ring.next()), ([1, 1], 6));
        ring.logged(logged(2, 1));
        assert_eq!(ring.settled(), [1, 1], "the first is not there");
        ring.logged(logged(1, 1));
        assert_eq!(ring.settled(), [4, 4], "the third never was written");
        ring.logged(logged(4, 2));
        assert_eq!(ring.settled(), [4, 6]);
        ring.continue_behind(20);
        assert_eq!((ring.settled(), ring.next()), ([21, 21], 21));
        ring.continue_behind(3);
        assert_eq!(ring.next(), 21);
        assert_eq!(ring.slot(21), 5);
    }
}
