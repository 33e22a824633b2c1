//! Logs that are written before the members: partial parity, and the journal.
//!
//! A plan that is about to write takes its places in the log all at once, writes its entries
//! durably, and goes on to its writes when they have ended. Plans that find too little room wait in
//! order. A place is used again only when the writes it protects have ended and were made durable on
//! the members. How each log works, and why it is safe, stands in [`partial`] and [`journal`]; how
//! they are put to use after a crash in [`replay`].

mod journal;
mod partial;
mod replay;

use std::collections::VecDeque;

use super::Array;
use super::settings::Consistency;
use crate::array::rounds::Purpose;
use crate::contract::MemberBits;
use crate::layout::Layout;
use journal::Journal;
pub(super) use journal::least_sectors;
use partial::Ring;
use replay::Replay;

/// How far the protection of an entry is needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
    /// A flush of all members is under way.
    flushing: bool,
    /// It has ended, and the failure of a member is still to be recorded.
    unsettled: bool,
    replay: Replay,
}

impl Log {
    pub(super) fn new(mode: Consistency, layout: &Layout, plans: u32) -> Self {
        let (slots, sectors) = match mode {
            Consistency::PartialParity { slots } => (slots, 0),
            Consistency::Journal { sectors } => (0, sectors.0),
            _ => (0, 0),
        };
        let rings = if slots > 0 { layout.members } else { 0 };
        Self {
            rings: vec![Ring::new(slots); usize::from(rings)],
            journal: Journal::new(sectors, plans),
            logged: vec![Logged::default(); plans as usize],
            waiting: VecDeque::with_capacity(plans as usize),
            retrying: false,
            flushing: false,
            unsettled: false,
            replay: Replay::new(),
        }
    }
}

impl Log {
    /// Whether the journal is in use; false in other modes. Without it the array works in mode `resync`.
    pub(super) fn is_journal_used(&self) -> bool {
        self.journal.is_used()
    }
}

/// Chunks `first..=last` as a set, as records have it.
const fn chunk_set(first: u16, last: u16) -> u128 {
    u128::MAX >> (127 - last) & u128::MAX << first
}

const fn words(set: u128) -> MemberBits {
    [set as u64, (set >> 64) as u64]
}

const fn from_words(words: MemberBits) -> u128 {
    words[0] as u128 | (words[1] as u128) << 64
}

impl Array {
    /// Writes what a plan must have in the log before its writes go out; false when it waits for
    /// room, and goes on by itself.
    pub(super) fn issue_log(&mut self, plan: u32) -> bool {
        let mode = self.setup.settings.consistency;
        if !matches!(mode, Consistency::PartialParity { .. } | Consistency::Journal { .. }) {
            return true;
        }
        // Parity that is not in service is not logged. Should its member come back after a crash as if
        // nothing had happened, nobody would know that it is stale.
        if self.is_unrecorded() && self.lacks_parity(plan) {
            // One that has its places already must not wait for another that wants them.
            if self.log.logged[plan as usize].count > 0 {
                self.log.waiting.push_front(plan);
            } else {
                self.log.waiting.push_back(plan);
            }
            return false;
        }
        match self.setup.settings.consistency {
            Consistency::PartialParity { .. } => self.log_partial_parity(plan),
            Consistency::Journal { .. } => {
                // A plan that logs once more, since a member failed meanwhile, needs its first
                // entries no longer.
                self.log_places_ended(plan, false);
                self.log_in_journal(plan)
            }
            _ => true,
        }
    }

    /// Lets a plan wait for room in the log.
    fn wait_for_log(&mut self, plan: u32) {
        self.log.waiting.push_back(plan);
        self.flush_for_log();
    }

    /// Whether plans wait that came before.
    fn is_log_queue_ahead(&self) -> bool {
        !self.log.waiting.is_empty() && !self.log.retrying
    }

    /// The writes of a plan have ended, well or not.
    pub(super) fn log_ended(&mut self, plan: u32) {
        if self.log.logged[plan as usize].count == 0 {
            return;
        }
        // A member that failed may come back as it was: its failure is recorded first.
        let durable = self.is_plan_durable(plan) && !self.is_unrecorded();
        self.log_places_ended(plan, durable);
        if !self.log.waiting.is_empty() {
            self.flush_for_log();
            self.retry_logging();
        }
    }

    fn log_places_ended(&mut self, plan: u32, durable: bool) {
        let logged = std::mem::take(&mut self.log.logged[plan as usize]);
        if logged.count == 0 {
            return;
        }
        if self.log.rings.is_empty() {
            self.journal_ended(logged, durable);
        } else {
            self.partial_ended(logged, durable);
        }
    }

    /// Makes everything that has ended durable, so that its places can be used again.
    fn flush_for_log(&mut self) {
        if self.log.flushing || self.is_replaying() {
            return;
        }
        if self.log.rings.is_empty() {
            self.retire_journal();
        }
        let ended = match self.log.rings.is_empty() {
            true => self.log.journal.begin_flush(),
            false => self.log.rings.iter_mut().fold(false, |any, ring| ring.begin_flush() | any),
        };
        if ended {
            self.log.flushing = true;
            self.start_round(Purpose::LogSpace, true, false);
        }
    }

    /// Everything written before was made durable: places of the log can be used again.
    pub(super) fn log_flushed(&mut self) {
        if self.is_replaying() {
            self.replay_flushed();
            return;
        }
        // As long as a failure is not recorded, its member may come back as it was.
        self.log.unsettled = self.is_unrecorded();
        if self.log.unsettled {
            return;
        }
        self.log.flushing = false;
        if self.log.rings.is_empty() {
            self.journal_flushed();
        } else {
            self.log.rings.iter_mut().for_each(Ring::flushed);
        }
        self.retry_logging();
        if !self.log.waiting.is_empty() {
            self.flush_for_log();
        }
    }

    /// Goes on with plans that waited, as far as there is room, in order.
    pub(super) fn retry_logging(&mut self) {
        if self.log.retrying {
            return;
        }
        self.log.retrying = true;
        while let Some(plan) = self.log.waiting.pop_front() {
            let left = self.log.waiting.len();
            self.plan_permitted(plan);
            if self.log.waiting.len() > left {
                // Still no room: it stays the first.
                if self.log.waiting.back() == Some(&plan) {
                    self.log.waiting.rotate_right(1);
                }
                break;
            }
        }
        self.log.retrying = false;
    }

    /// What the superblocks are about to tell of the log.
    pub(super) fn log_state_written(&mut self) {
        self.log.journal.told();
    }

    /// The superblocks tell it now.
    pub(super) fn log_state_recorded(&mut self) {
        self.log.journal.recorded();
        if self.is_replaying() {
            self.replay_recorded();
            return;
        }
        if self.log.unsettled {
            self.log_flushed();
        }
        self.retry_logging();
    }

    pub(super) fn log_to_key(&self, add: &mut dyn FnMut(u64)) {
        for ring in &self.log.rings {
            ring.add_to_key(add);
        }
        self.log.journal.add_to_key(add);
        for plan in &self.log.waiting {
            add(u64::from(*plan));
        }
        add(u64::from(self.log.flushing));
        self.log.replay.add_to_key(add);
    }
}
