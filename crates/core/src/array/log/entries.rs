//! What the entries found in logs say after a crash: which can be this array's, whether some are missing, and what
//! is to be made consistent by them, for each row from the newest entry that has it.

use std::collections::{BTreeMap, VecDeque};

use super::partial::most_being_logged;
use crate::array::roles::Roles;
use crate::array::setup::Setup;
use crate::bugs::Bug;
use crate::consistency::LogEntry;
use crate::contract::{LOG_HEADER, Record};
use crate::geometry::Geometry;
use crate::units::MemberIndex;

/// A range of rows to be made consistent.
#[derive(Clone, Copy, Debug, Hash)]
pub(super) enum ReplayStep {
    /// P of these rows = partial parity, read from there on its member, XOR the written chunks.
    /// `lost`: the partial parity cannot be read, and all chunks are taken.
    Partial { stripe: u64, rows: (u64, u64), written: Roles, payload: Option<u64>, lost: bool },
    /// These rows of a role are copied from there on the journal.
    Copy { stripe: u64, rows: (u64, u64), role: u16, from: u64 },
}

impl ReplayStep {
    /// Itself for these of its rows.
    pub(super) fn cut(self, to: (u64, u64)) -> Self {
        match self {
            Self::Partial { stripe, rows, written, payload, lost } => {
                let payload = payload.map(|at| at + to.0 - rows.0);
                Self::Partial { stripe, rows: to, written, payload, lost }
            }
            Self::Copy { stripe, rows, role, from } => {
                Self::Copy { stripe, rows: to, role, from: from + to.0 - rows.0 }
            }
        }
    }

    pub(super) const fn rows(&self) -> (u64, u64) {
        match self {
            Self::Partial { rows, .. } | Self::Copy { rows, .. } => *rows,
        }
    }

    pub(super) const fn stripe(&self) -> u64 {
        match self {
            Self::Partial { stripe, .. } | Self::Copy { stripe, .. } => *stripe,
        }
    }
}

/// A whole entry, checked against the array.
#[derive(Clone, Copy, Debug, Hash)]
pub(super) struct Entry {
    /// Generation or sequence number.
    pub(super) number: u64,
    pub(super) stripe: u64,
    pub(super) rows: (u64, u64),
    /// Chunks written, or roles.
    pub(super) set: Roles,
    /// Where its payload starts on its device.
    pub(super) payload: u64,
    /// Entries with numbers between these were durable when it was made.
    pub(super) settled: [u64; 2],
}

/// Of `rows`, those that none of `newer` has.
fn rows_left(rows: (u64, u64), newer: impl Iterator<Item = (u64, u64)>) -> Vec<(u64, u64)> {
    let mut left = vec![rows];
    for (from, to) in newer {
        let cut = left.iter().flat_map(|rows| {
            [(rows.0, rows.1.min(from)), (rows.0.max(to), rows.1)].into_iter().filter(|r| r.0 < r.1)
        });
        left = cut.collect();
    }
    left
}

/// No array gets this far: a number beyond is none of its own.
pub(super) const MOST_NUMBER: u64 = 1 << 62;

/// So much further on are the numbers of a log that could not be read in full: a log has fewer entries in its
/// ring, and a run of the array makes fewer.
pub(super) const NUMBER_GAP: u64 = 1 << 32;

fn by_stripe(entries: &[Entry]) -> BTreeMap<u64, Vec<Entry>> {
    let mut stripes: BTreeMap<u64, Vec<Entry>> = BTreeMap::new();
    for entry in entries {
        stripes.entry(entry.stripe).or_default().push(*entry);
    }
    stripes
}

/// Whether entries are missing from a member's log of partial parity although a newer one says that they were
/// durable.
pub(in crate::array) fn is_partial_torn(
    setup: &Setup,
    member: MemberIndex,
    entries: &[LogEntry],
) -> bool {
    // One header says nothing of others.
    if setup.has_log_headers() {
        return false;
    }
    let known = partial_entries(setup, member, entries);
    let Some(newest) = known.last().map(|entry| entry.number) else { return false };
    let turn = setup.log_sectors(member).0 / setup.log_place();
    // Older ones may have been overwritten.
    let oldest = (newest + most_being_logged(turn) + 1).saturating_sub(turn);
    let is_gone = |number: &u64| known.binary_search_by_key(number, |entry| entry.number).is_err();
    let was_durable = |number| {
        known
            .iter()
            .any(|entry| (entry.settled[0]..entry.settled[1].min(entry.number)).contains(&number))
    };
    (oldest..newest).filter(is_gone).any(was_durable)
}

/// The same of the journal, from `tail` on.
pub(in crate::array) fn is_journal_torn(setup: &Setup, entries: &[LogEntry], tail: u64) -> bool {
    let known = journal_entries(setup, entries, tail);
    let durable = known.iter().map(|entry| entry.settled[1].min(entry.number)).max().unwrap_or(0);
    let whole = known.iter().filter(|entry| entry.number < durable).count() as u64;
    whole < durable.saturating_sub(tail)
}

/// A member's entries of partial parity in order of generation.
pub(super) fn partial_entries(
    setup: &Setup,
    member: MemberIndex,
    entries: &[LogEntry],
) -> Vec<Entry> {
    let place = setup.log_place();
    let area = setup.log_sectors(member).0;
    let by_header = setup.has_log_headers();
    let all = entries.iter().filter(|entry| entry.member == member);
    let mut known: Vec<_> = all
        .filter_map(|entry| {
            let Record::PartialParity { slot, generation, stripe, from, to, written, settled } =
                entry.record
            else {
                return None;
            };
            let rows = (u64::from(from), u64::from(to));
            let set = Roles::from_words(written);
            let in_place =
                by_header || u64::from(slot) * place == entry.at.0 && entry.at.0 + place <= area;
            let fits = is_entry_possible(setup, stripe, rows, set, setup.data_chunks)
                && generation < MOST_NUMBER
                && in_place
                && setup.role_member(stripe, setup.data_chunks) == member;
            let payload = setup.sizes[member.at()].0 + entry.at.0 + u64::from(LOG_HEADER);
            fits.then_some(Entry { number: generation, stripe, rows, set, payload, settled })
        })
        .collect();
    known.sort_unstable_by_key(|entry| entry.number);
    if by_header {
        // They are those of one header, which all count.
        return known;
    }
    // What is so far behind the newest that its place may have been about to be taken is durable,
    // and what came after it may be gone.
    let turn = area / place;
    let newest = known.last().map_or(0, |entry| entry.number);
    known.retain(|entry| entry.number + turn > newest + most_being_logged(turn));
    known
}

/// The journal's entries that are not retired, in order.
pub(super) fn journal_entries(setup: &Setup, entries: &[LogEntry], tail: u64) -> Vec<Entry> {
    let device = setup.journal();
    let area = setup.log_sectors(device).0;
    let all = entries.iter().filter(|entry| entry.member == device);
    let mut known: Vec<_> = all
        .filter_map(|entry| {
            let Record::JournalEntry { at, sequence, stripe, from, to, roles, settled } =
                entry.record
            else {
                return None;
            };
            let rows = (u64::from(from), u64::from(to));
            let set = Roles::from_words(roles);
            let roles = setup.roles();
            let payload = at.0.saturating_add(u64::from(LOG_HEADER));
            let fits = is_entry_possible(setup, stripe, rows, set, roles)
                && sequence < MOST_NUMBER
                && at == entry.at
                && payload + u64::from(set.count()) * (rows.1 - rows.0) <= area;
            let settled = [tail, settled];
            let entry = Entry { number: sequence, stripe, rows, set, payload, settled };
            (fits && sequence >= tail).then_some(entry)
        })
        .collect();
    // Entries that are not retired lie apart: what lies inside of one is payload that looks like an entry.
    known.sort_unstable_by_key(|entry| entry.payload);
    let mut end = 0;
    known.retain(|entry| {
        let apart = entry.payload >= end + u64::from(LOG_HEADER);
        let len = u64::from(entry.set.count()) * (entry.rows.1 - entry.rows.0);
        end = if apart { entry.payload + len } else { end };
        apart
    });
    known.sort_unstable_by_key(|entry| entry.number);
    known
}

/// Whether an entry can be one of this array's.
fn is_entry_possible(setup: &Setup, stripe: u64, rows: (u64, u64), set: Roles, roles: u16) -> bool {
    let Geometry::Parity(parity) = &setup.geometry else { return false };
    let chunk = parity.chunk().0;
    let stripes = setup.geometry.capacity().0 / parity.stripe_sectors();
    stripe < stripes
        && rows.0 < rows.1
        && rows.1 <= chunk
        && (setup.has_log_headers() || rows.1 - rows.0 <= setup.plan_rows)
        && !set.is_empty()
        && set.is_within(Roles::range(0, roles))
}

/// For each row the newest entry counts, whatever it says.
pub(super) fn add_partial_steps(
    setup: &Setup,
    entries: &[Entry],
    steps: &mut VecDeque<ReplayStep>,
) {
    let oldest_wins = setup.has_bug(Bug::PplOldestWins);
    let stripes = by_stripe(entries);
    for entry in entries {
        let newer = stripes[&entry.stripe].iter().filter(|other| {
            let wins = other.number > entry.number;
            if oldest_wins { other.number < entry.number } else { wins }
        });
        let is_all = entry.set.count() == setup.data_chunks;
        let payload = (!is_all).then_some(entry.payload);
        let Entry { stripe, rows, set: written, .. } = *entry;
        let step = ReplayStep::Partial { stripe, rows, written, payload, lost: false };
        let left = rows_left(rows, newer.map(|other| other.rows));
        // An entry of md's may be longer than what is worked on at once.
        let cut = |rows: (u64, u64)| {
            let starts = (rows.0..rows.1).step_by(setup.plan_rows as usize);
            starts.map(move |from| step.cut((from, rows.1.min(from + setup.plan_rows))))
        };
        steps.extend(left.into_iter().flat_map(cut));
    }
}

/// For each row of a chunk the newest entry that has the chunk counts; of parity the newest of all.
pub(super) fn add_journal_steps(
    setup: &Setup,
    entries: &[Entry],
    steps: &mut VecDeque<ReplayStep>,
) {
    let oldest_wins = setup.has_bug(Bug::JournalOldestWins);
    let skips_parity = setup.has_bug(Bug::JournalSkipsParity);
    let stripes = by_stripe(entries);
    for entry in entries {
        for (index, role) in entry.set.iter().enumerate() {
            let is_parity = role >= setup.data_chunks;
            if is_parity && skips_parity {
                continue;
            }
            let newer = stripes[&entry.stripe].iter().filter(|other| {
                let wins = other.number > entry.number;
                (is_parity || other.set.contains(role))
                    && if oldest_wins { other.number < entry.number } else { wins }
            });
            let Entry { stripe, rows, .. } = *entry;
            let from = entry.payload + index as u64 * (rows.1 - rows.0);
            let step = ReplayStep::Copy { stripe, rows, role, from };
            let left = rows_left(rows, newer.map(|other| other.rows));
            steps.extend(left.into_iter().map(|rows| step.cut(rows)));
        }
    }
}
