//! Logs that are written before the members: partial parity, and the journal.
//!
//! A plan that is about to write takes its places in the log all at once, writes its entries
//! durably, and goes on to its writes when they have ended. Plans that find too little room wait in
//! order. A place is used again only when the writes it protects have ended and were made durable on
//! the members. How each log works, and why it is safe, stands in [`partial`] and [`journal`]; how
//! they are put to use after a crash in [`replay`].

mod entries;
mod header;
mod journal;
mod partial;
mod replay;

use std::collections::VecDeque;
use std::hash::{Hash, Hasher};

use super::ios::IoState;
use super::member::Members;
use super::member_set::MemberSet;
use super::roles::Roles;
use super::settings::Consistency;
use super::setup::Setup;
use super::stripe::{Band, MOST_BANDS, StripePlan};
use crate::bugs::Bug;
use crate::consistency::LogEntry;
use crate::contract::{IoOutcome, JobResult, LOG_HEADER, MemberBits, Record, Superblock};
use crate::layout::Layout;
use crate::units::{MemberIndex, Sector, Sectors};
use entries::{MOST_NUMBER, NUMBER_GAP, journal_entries, partial_entries};
pub(super) use entries::{is_journal_torn, is_partial_torn};
pub(super) use journal::least_sectors;
use journal::{Journal, Use};
use partial::{Entry, Ring, band_rows};
use replay::LogReplay;
pub(super) use replay::Todo;

/// How far the protection of an entry is needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Stage {
    /// Its writes may be under way.
    Busy,
    /// Its writes have ended.
    Ended,
    /// The members are being flushed since.
    Flushing,
    /// Its writes are durable.
    Durable,
}

/// The entries of a plan, which follow one another.
#[derive(Clone, Copy, Debug, Default)]
struct Logged {
    /// The member whose log they are in (partial parity).
    member: u16,
    /// The generation or sequence number of the first.
    first: u64,
    count: u8,
}

/// An entry that a plan has a place for, to be written there.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    /// The member whose log it is, or the log device.
    pub(super) device: MemberIndex,
    pub(super) at: Sector,
    pub(super) record: Record,
    /// Which of the plan's bands it is of.
    pub(super) band: usize,
    /// The roles of which the journal has the rows.
    pub(super) roles: Roles,
}

/// What a plan that is about to write waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wait {
    /// Until something changes.
    ForChange,
    /// Room, or what is not durable: everything is to be flushed.
    ForFlush,
}

/// The entries that are to be written before a plan goes on, at once if there are none; or that it waits.
type Entering = Result<[Option<Place>; MOST_BANDS], Wait>;

/// The logs of an array.
#[derive(Clone, Debug)]
pub(super) struct Log {
    /// The log of partial parity of each member; none in other modes.
    rings: Vec<Ring>,
    journal: Journal,
    /// The entries of each plan, by its slot.
    logged: Vec<Logged>,
    /// Plans that wait for room, in order.
    waiting: VecDeque<u32>,
    /// Those that wait are being looked at.
    retrying: bool,
    /// Logs take a header at a time: plans of one member do not wait for those of another.
    by_header: bool,
    /// A header is open.
    open: bool,
    /// How many plans are still to be looked at, where none waits for another.
    to_try: usize,
    /// A flush of all members is under way.
    flushing: bool,
    /// It has ended, and the failure of a member is still to be recorded.
    unsettled: bool,
    replay: LogReplay,
}

/// Numbers of entries are counters: they count from the newest.
impl Hash for Log {
    fn hash<H: Hasher>(&self, key: &mut H) {
        let Self { rings, journal, logged, waiting, retrying, flushing, unsettled, replay, .. } =
            self;
        (rings, journal, waiting, retrying, flushing, unsettled, replay).hash(key);
        (self.by_header, self.open, self.to_try).hash(key);
        for (plan, one) in logged.iter().enumerate().filter(|(_, one)| one.count != 0) {
            let next = rings.get(usize::from(one.member)).map_or(journal.next(), Ring::next);
            (plan, one.member, one.count, next.wrapping_sub(one.first)).hash(key);
        }
    }
}

impl Log {
    /// `header`: sectors of partial parity that a header takes, of a log that takes one at a time.
    pub(super) fn new(
        mode: Consistency,
        layout: &Layout,
        plans: u32,
        header: Option<Sectors>,
    ) -> Self {
        let (slots, sectors) = match mode {
            Consistency::PartialParity { slots } => (slots, 0),
            Consistency::Journal { sectors } => (0, sectors.0),
            _ => (0, 0),
        };
        let rings = if slots > 0 { layout.members } else { 0 };
        Self {
            rings: vec![Ring::new(slots, header.map(|most| most.0)); usize::from(rings)],
            journal: Journal::new(sectors, plans),
            logged: vec![Logged::default(); plans as usize],
            waiting: VecDeque::with_capacity(plans as usize),
            retrying: false,
            by_header: header.is_some(),
            open: false,
            to_try: 0,
            flushing: false,
            unsettled: false,
            replay: LogReplay::new(),
        }
    }
}

/// Sectors of partial parity that a plan logs: none of bands in which all chunks are written.
fn partial_sectors(setup: &Setup, state: &StripePlan) -> u64 {
    let logs = |band: &&Band| band.covered() < setup.data_chunks;
    state.bands().iter().filter(logs).map(|band| band.to - band.from).sum()
}

/// The chunks that a band covers.
const fn covered_chunks(band: &Band) -> Roles {
    Roles::range(band.first, band.last + 1)
}

/// Plans, from before their writes to after them.
impl Log {
    /// Whether partial parity is logged.
    #[inline]
    pub(super) fn is_partial(&self) -> bool {
        !self.rings.is_empty()
    }

    /// Whether the journal is in use, for the superblocks; false in other modes. Without it the array
    /// works in mode `resync`.
    pub(super) fn is_journal_used(&self) -> bool {
        self.journal.is_used()
    }

    /// The first number of the journal that is not retired, for the superblocks.
    pub(super) const fn journal_tail(&self) -> u64 {
        self.journal.tail()
    }

    /// Whether a plan that has logged must not write: the superblocks still say that there is a journal, or
    /// (`lacks_parity`) the member with its log is gone.
    pub(super) fn must_log_again(&self, lacks_parity: bool) -> bool {
        self.journal.state == Use::Failing || self.is_partial() && lacks_parity
    }

    /// A plan that makes less parity than there is in full service waits until it is recorded why: should the
    /// member come back after a crash as if nothing had happened, nobody would know that it is stale.
    pub(super) fn wait_for_record(&mut self, plan: u32) {
        // One that has its places already must not wait for another that wants them.
        if self.has_places(plan) {
            self.waiting.push_front(plan);
        } else {
            self.waiting.push_back(plan);
        }
    }

    /// A plan is about to write: takes its places, or lets it wait.
    pub(super) fn enter(
        &mut self,
        setup: &Setup,
        failed: MemberSet,
        plan: u32,
        state: &StripePlan,
    ) -> Entering {
        match setup.settings.consistency {
            Consistency::PartialParity { .. } => self.enter_partial(setup, failed, plan, state),
            Consistency::Journal { .. } => self.enter_journal(setup, failed, plan, state),
            _ => Ok([None; MOST_BANDS]),
        }
    }

    fn enter_partial(
        &mut self,
        setup: &Setup,
        failed: MemberSet,
        plan: u32,
        state: &StripePlan,
    ) -> Entering {
        let mut places = [None; MOST_BANDS];
        if self.has_places(plan) {
            // What it logs no more, since P went out of service, needs none.
            return Ok(places);
        }
        let member = setup.role_member(state.stripe, setup.data_chunks);
        // Parity that is not written needs no entry. But should its member come back, what was written
        // meanwhile must be durable before an entry for the same rows: it takes a place.
        let is_live = !failed.contains(member) && state.bands().iter().all(|band| band.live != 0);
        let is_queue_ahead = self.is_queue_ahead() && !self.by_header;
        let count = state.bands().len() as u64;
        let partial = partial_sectors(setup, state);
        let ring = &mut self.rings[member.at()];
        let is_unsettled =
            |band: &Band| ring.is_unsettled(state.stripe, band_rows(band), covered_chunks(band));
        if is_queue_ahead
            || !ring.takes(count, partial, is_live)
            || is_live && state.bands().iter().any(is_unsettled)
        {
            self.waiting.push_back(plan);
            return Err(Wait::ForFlush);
        }
        if is_live {
            self.open |= ring.put_in_header(partial);
        }
        let first = ring.next();
        for (index, band) in state.bands().iter().enumerate() {
            let written = covered_chunks(band);
            let (rows, stripe) = (band_rows(band), state.stripe);
            let (logged, absent) = (!is_live, !is_live);
            let settled = ring.settled();
            let stage = Stage::Busy;
            let generation = ring.take(Entry { stage, stripe, rows, written, logged, absent });
            if !is_live {
                continue;
            }
            let slot = ring.slot(generation) as u32;
            let record = Record::PartialParity {
                slot,
                generation,
                stripe,
                from: rows.0,
                to: rows.1,
                written: written.words(),
                settled,
            };
            let at = Sector(u64::from(slot) * setup.log_place());
            places[index] =
                Some(Place { device: member, at, record, band: index, roles: Roles::NONE });
        }
        self.logged[plan as usize] = Logged { member: member.0, first, count: count as u8 };
        Ok(places)
    }

    fn enter_journal(
        &mut self,
        setup: &Setup,
        failed: MemberSet,
        plan: u32,
        state: &StripePlan,
    ) -> Entering {
        match self.journal.state {
            Use::Active => {}
            Use::Off => return Ok([None; MOST_BANDS]),
            Use::Failing => {
                self.waiting.push_back(plan);
                return Err(Wait::ForChange);
            }
        }
        let mut lens = [0; MOST_BANDS];
        let roles = |band| journal_roles(setup, failed, state.stripe, band);
        for (len, band) in lens.iter_mut().zip(state.bands()) {
            *len = u64::from(LOG_HEADER) + u64::from(roles(band).count()) * (band.to - band.from);
        }
        let lens = &lens[..state.bands().len()];
        if self.is_queue_ahead() || !self.journal.has_room_for(lens) {
            self.waiting.push_back(plan);
            return Err(Wait::ForFlush);
        }
        let mut places = [None; MOST_BANDS];
        let mut first = None;
        for (index, (band, len)) in state.bands().iter().zip(lens).enumerate() {
            let roles = roles(band);
            let (at, sequence) = self.journal.take(*len);
            first = first.or(Some(sequence));
            let at = Sector(at);
            let record = Record::JournalEntry {
                at,
                sequence,
                stripe: state.stripe,
                from: band.from as u32,
                to: band.to as u32,
                roles: roles.words(),
                settled: self.journal.settled(),
            };
            places[index] = Some(Place { device: setup.journal(), at, record, band: index, roles });
        }
        let (first, count) = (first.unwrap_or_default(), lens.len() as u8);
        self.logged[plan as usize] = Logged { member: 0, first, count };
        Ok(places)
    }

    /// Whether plans wait that came before.
    fn is_queue_ahead(&self) -> bool {
        !self.waiting.is_empty() && !self.retrying
    }

    /// Whether a plan has places.
    #[inline]
    pub(super) fn has_places(&self, plan: u32) -> bool {
        self.logged[plan as usize].count > 0
    }

    /// The entries of a plan are on the medium; true when others may be written.
    pub(super) fn plan_logged(&mut self, plan: u32) -> bool {
        let logged = self.logged[plan as usize];
        if logged.count == 0 {
            return false;
        }
        if !self.is_partial() {
            self.journal.logged(logged);
            return false;
        }
        self.rings[usize::from(logged.member)].logged(logged);
        !self.waiting.is_empty()
    }

    /// The writes of a plan have ended, well or not, or it logs anew; true when the journal is filling.
    pub(super) fn places_ended(&mut self, setup: &Setup, plan: u32, durable: bool) -> bool {
        let logged = std::mem::take(&mut self.logged[plan as usize]);
        if logged.count == 0 {
            return false;
        }
        let bug = if self.is_partial() { Bug::PplReusedEarly } else { Bug::JournalRetiredEarly };
        let stage = if durable || setup.has_bug(bug) { Stage::Durable } else { Stage::Ended };
        if self.is_partial() {
            self.rings[usize::from(logged.member)].ended(logged, stage);
            return false;
        }
        self.journal.ended(logged, stage);
        self.journal.is_filling()
    }
}

/// Room.
impl Log {
    /// Begins to make everything that has ended durable, so that its places can be used again; false when there is
    /// nothing, or it is being made so.
    pub(super) fn begin_flush(&mut self) -> bool {
        if self.flushing || self.is_replaying() {
            return false;
        }
        self.flushing = match self.is_partial() {
            false => self.journal.begin_flush(),
            true => self.rings.iter_mut().fold(false, |any, ring| ring.begin_flush() | any),
        };
        self.flushing
    }

    /// Whether everything is being made durable, or nothing may be.
    pub(super) fn is_flushing(&self) -> bool {
        self.flushing || self.is_replaying()
    }

    /// Everything written before was made durable: places of the log can be used again. False while the failure of
    /// a member is `unrecorded`: as long as that is so, it may come back as it was.
    pub(super) fn flushed(&mut self, unrecorded: bool) -> bool {
        self.unsettled = unrecorded;
        if unrecorded {
            return false;
        }
        self.flushing = false;
        self.journal.flushed();
        self.rings.iter_mut().for_each(Ring::flushed);
        true
    }

    /// Moves the journal's tail beyond what is durable; true when superblocks are to tell of it.
    pub(super) fn retire(&mut self) -> bool {
        self.journal.is_used() && self.journal.retire()
    }

    /// Whether plans wait.
    #[inline]
    pub(super) fn has_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Begins to look at plans that wait; false when that is being done.
    pub(super) fn begin_retry(&mut self) -> bool {
        if self.retrying {
            return false;
        }
        (self.retrying, self.to_try) = (true, self.waiting.len());
        true
    }

    /// The plan that waits longest, which waits no longer, and how many are left.
    pub(super) fn pop_waiting(&mut self) -> Option<(u32, usize)> {
        let plan = self.waiting.pop_front()?;
        Some((plan, self.waiting.len()))
    }

    /// Whether a plan, or another, waits again beside `left`: there is no room for more.
    pub(super) fn waits_again(&mut self, plan: u32, left: usize) -> bool {
        if self.by_header {
            // Each has its turn once, and keeps its place.
            self.to_try = self.to_try.saturating_sub(1);
            return self.to_try == 0;
        }
        let again = self.waiting.len() > left;
        if again && self.waiting.back() == Some(&plan) {
            // Still no room: it stays the first.
            self.waiting.rotate_right(1);
        }
        again
    }

    pub(super) fn end_retry(&mut self) {
        self.retrying = false;
    }

    /// Whether a header is open, which gets entries until [`Self::close_headers`].
    #[inline]
    pub(super) fn is_header_open(&self) -> bool {
        self.open
    }

    /// An input is over: what comes later waits for the next header.
    pub(super) fn close_headers(&mut self) {
        if std::mem::take(&mut self.open) {
            self.rings.iter_mut().for_each(Ring::close_header);
        }
    }

    /// What the superblocks are about to tell of the log.
    pub(super) fn state_written(&mut self) {
        self.journal.told();
    }

    /// The superblocks tell it now.
    pub(super) fn state_recorded(&mut self) {
        self.journal.recorded();
    }

    /// Whether a flush has ended that did not count, since a failure was to be recorded.
    pub(super) fn is_unsettled(&self) -> bool {
        self.unsettled
    }

    /// The log device failed; false when it was not in use.
    pub(super) fn journal_failed(&mut self) -> bool {
        self.journal.fail()
    }

    /// Another drive is to hold a member's log from now on, which has none of its entries.
    pub(super) fn moves(&mut self, member: MemberIndex) {
        if let Some(ring) = self.rings.get_mut(member.at()) {
            ring.unsettle();
        }
    }
}

/// What was found after a crash, and its replay.
impl Log {
    /// Takes over what the superblocks tell of the journal; before [`Self::begin_with`].
    pub(super) fn restore(&mut self, superblock: &Superblock, journal_is_there: bool) {
        self.journal.restore(superblock, journal_is_there);
    }

    /// Takes over what was found in the logs; entries on members out of service are left alone. True when something
    /// is to be replayed before anything else.
    pub(super) fn begin_with(&mut self, setup: &Setup, entries: &[LogEntry]) -> bool {
        let mut found = Vec::new();
        if self.is_partial() {
            for member in setup.members() {
                let entries = partial_entries(setup, member, entries);
                if let Some(newest) = entries.last() {
                    self.rings[member.at()].continue_behind(newest.number);
                }
                found.push(entries);
            }
        } else if self.is_journal_used() {
            let entries = journal_entries(setup, entries, self.journal.tail());
            if let Some(newest) = entries.last() {
                self.journal.go_on_from(newest.number + 1);
            }
            found.push(entries);
        }
        let any = !found.iter().all(Vec::is_empty);
        if any {
            self.replay = LogReplay::due(found);
        }
        any
    }

    /// The numbers of logs that are not whole, `known` and any other of these members, go on beyond all that may
    /// be in them: what cannot be read now may be read later, and must not be taken for newer than what is
    /// written from now on. `events`: of the newest superblock.
    pub(super) fn skip_numbers(
        &mut self,
        setup: &Setup,
        members: MemberBits,
        known: &[LogEntry],
        events: u64,
    ) {
        for member in MemberSet::from_words(members).iter() {
            let known = partial_entries(setup, member, known);
            let newest = known.last().map_or(0, |entry| entry.number);
            let gap = (newest + NUMBER_GAP).max(events.saturating_mul(NUMBER_GAP));
            self.rings[member.at()].continue_behind(gap.min(MOST_NUMBER - NUMBER_GAP));
        }
    }

    /// Whether a replay is under way; requests and background work wait for its end.
    #[inline]
    pub(super) fn is_replaying(&self) -> bool {
        self.replay.is_under_way()
    }

    /// Whether a replay is to begin at the next input.
    #[inline]
    pub(super) fn is_replay_due(&self) -> bool {
        self.replay.is_due()
    }

    /// Begins a replay that is due.
    pub(super) fn begin_replay(&mut self, setup: &Setup, members: &mut Members) {
        let partial = self.is_partial();
        self.replay.begin(setup, members, partial);
    }

    /// What a replay asks for next.
    pub(super) fn next_todo(&mut self) -> Option<Todo> {
        self.replay.next()
    }

    /// An I/O of a replay has ended; true when its device is to be taken out of service, before
    /// [`Self::replay_goes_on`].
    pub(super) fn replay_io_ended(
        &mut self,
        setup: &Setup,
        io: &IoState,
        outcome: IoOutcome,
    ) -> bool {
        self.replay.io_ended(setup, io, outcome)
    }

    /// Goes on with a replay when nothing of it is in flight.
    pub(super) fn replay_goes_on(&mut self, setup: &Setup, members: &mut Members) {
        self.replay.go_on(setup, members);
    }

    /// A replay's job has ended.
    pub(super) fn replay_computed(
        &mut self,
        setup: &Setup,
        members: &mut Members,
        result: JobResult,
    ) {
        self.replay.computed(setup, members, result);
    }

    /// Everything replayed is durable.
    pub(super) fn replay_flushed(&mut self) {
        self.replay.flushed();
        self.journal.retire();
    }

    /// Ends a replay if all of it is recorded, or never will be; whether everything could be replayed.
    pub(super) fn end_replay(&mut self, has_lost: bool) -> Option<bool> {
        let recorded = self.journal.is_recorded() || has_lost;
        (self.replay.is_recording() && recorded).then(|| self.replay.end())
    }
}

/// What of a band goes to the journal: all data being written, and the parities in service.
fn journal_roles(setup: &Setup, failed: MemberSet, stripe: u64, band: &Band) -> Roles {
    let parities = (0..setup.parities).filter(|parity| band.live >> parity & 1 == 1);
    let in_service = |role: &u16| !failed.contains(setup.role_member(stripe, *role));
    let parities = parities.map(|parity| setup.data_chunks + parity).filter(in_service);
    covered_chunks(band).union(parities.collect())
}

#[cfg(test)]
mod tests;
