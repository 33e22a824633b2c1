//! Starting an array from what is found on its members: who is fresh, what must be made consistent.
//!
//! Fault model: any member may be missing, have no superblock that is whole, or have missed anything;
//! halves may each have gone on alone; a crash may have come at any moment, also while an array was
//! being started.
//! Why it is safe: members in service are at the newest events or one behind, and everybody else is
//! named as failed by the newest superblock or further behind (`array::permit::superblock`), so who
//! missed something is never taken in service. Who went on alone says that all others failed, which
//! is told from merely having missed something. What is decided is a function of what was found and
//! allowed, and is recorded on all members before anything that depends on it is answered: a start
//! that is itself interrupted is begun again from what is found then.
//! Tests: `tests/assembly.rs::every_set_of_damaged_and_stale_copies_is_voted_on`,
//! `tests/assembly.rs::halves_that_went_on_alone_are_told_apart`.

use std::fmt;

use crate::array::{Array, Config, ConfigError, Consistency, Start};
use crate::contract::{MemberBits, Record, Superblock};
use crate::units::{MemberIndex, Sector};

/// What the driver read from the members.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// The superblock of each member in order; `None` for one that is missing or has none that is
    /// whole.
    pub superblocks: Vec<Option<Superblock>>,
    /// The bitmap of each member: 64 bits a page, in order; empty where there is none. A page that
    /// was never written is 0.
    pub bitmaps: Vec<Vec<u64>>,
    /// Every whole entry of the members' logs and of the journal, in any order.
    pub log: Vec<LogEntry>,
    /// Whether the log device is there.
    pub journal: bool,
}

/// A whole entry of a log: header and payload agree with its checksum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogEntry {
    /// Where it was found.
    pub member: MemberIndex,
    /// Where in the log area it starts.
    pub at: Sector,
    /// [`Record::PartialParity`] or [`Record::JournalEntry`].
    pub record: Record,
}

/// What the administrator allows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Allow {
    /// Start although members are missing that were in service when the array was last used.
    pub missing: bool,
    /// Start a parity level that was not stopped cleanly with members missing: in rows with writes
    /// in flight, what they held may be wrong.
    pub dirty_degraded: bool,
}

/// Why an array does not start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AssembleError {
    /// The configuration cannot be.
    Config(ConfigError),
    /// No member has a superblock that is whole.
    NoSuperblock,
    /// These members went on without the others, and the others without them.
    Diverged {
        /// One half.
        one: MemberBits,
        /// The other.
        other: MemberBits,
    },
    /// Members are missing that were in service; see [`Allow::missing`].
    Missing(MemberBits),
    /// Too many members are missing or stale for the level.
    TooFew(MemberBits),
    /// Not stopped cleanly, and members are missing; see [`Allow::dirty_degraded`].
    DirtyDegraded(MemberBits),
    /// The journal is missing and not everything in it is known to be written; allowed by
    /// [`Allow::dirty_degraded`].
    JournalMissing,
}

impl Array {
    /// An array as it is found on its members. What must be made consistent is begun at the first
    /// input; requests are taken at once and wait where they must.
    ///
    /// Members that the newest superblock says failed, or that are further behind than a crash
    /// explains, are out of service until they are added again. Without superblocks
    /// ([`Consistency::None`]) only presence is judged: a member without one in `found` is out of
    /// service, what the others say is not looked at, and all redundancy is made consistent.
    ///
    /// # Errors
    /// When too little is there, halves have diverged, or the administrator must allow it.
    pub fn assemble(config: &Config, found: &Found, allow: Allow) -> Result<Self, AssembleError> {
        let array = Self::new(config).map_err(AssembleError::Config)?;
        assemble(array, found, allow)
    }

    /// The same with a bug planted from the start.
    ///
    /// # Errors
    /// As [`Self::assemble`].
    #[cfg(feature = "seeded-bugs")]
    pub fn assemble_planted(
        config: &Config,
        found: &Found,
        allow: Allow,
        bug: crate::bugs::Bug,
    ) -> Result<Self, AssembleError> {
        let mut array = Self::new(config).map_err(AssembleError::Config)?;
        array.plant(bug);
        assemble(array, found, allow)
    }
}

fn assemble(mut array: Array, found: &Found, allow: Allow) -> Result<Array, AssembleError> {
    let members = usize::from(array.layout().members);
    let copies: Vec<_> =
        (0..members).map(|m| found.superblocks.get(m).copied().flatten()).collect();
    if !array.mode().has_superblocks() {
        let failed = set((0..members).filter(|m| copies[*m].is_none()));
        if array.is_lost_without(failed) {
            return Err(AssembleError::TooFew(failed));
        }
        array.start_unknown(failed);
        return Ok(array);
    }
    let vote = vote(&array, &copies)?;
    let Vote { newest, failed, absent, rebuilding, level } = vote;
    let missing = union(failed, rebuilding);
    if array.is_lost_without(missing) {
        return Err(AssembleError::TooFew(missing));
    }
    if absent != NOBODY && !allow.missing {
        return Err(AssembleError::Missing(absent));
    }
    let uses_journal = matches!(array.mode(), Consistency::Journal { .. }) && newest.journal;
    if uses_journal && !found.journal && !newest.clean && !allow.dirty_degraded {
        return Err(AssembleError::JournalMissing);
    }
    let logged = match array.mode() {
        Consistency::PartialParity { .. } => true,
        _ => uses_journal && found.journal,
    };
    let in_flight = !newest.clean && !logged;
    let inconsistent = in_flight || newest.synced_to != Sector::MAX;
    let is_parity = array.parity_count() > 0;
    if is_parity && inconsistent && missing != NOBODY && !allow.dirty_degraded {
        return Err(AssembleError::DirtyDegraded(missing));
    }
    let mut bits = vec![0; array.bitmap_pages()];
    for member in (0..members).filter(|m| !contains(missing, *m)) {
        let pages = found.bitmaps.get(member).map_or(&[][..], Vec::as_slice);
        bits.iter_mut().zip(pages).for_each(|(all, page)| *all |= page);
    }
    array.start_from(&Start {
        newest,
        failed,
        rebuilding,
        level,
        bits,
        trust_parity: is_parity && missing != NOBODY && allow.dirty_degraded,
        log: &found.log,
        journal: found.journal,
    });
    Ok(array)
}

/// What the superblocks say together.
struct Vote {
    newest: Superblock,
    /// Out of service from now on.
    failed: MemberBits,
    /// Those of them that the newest superblock says are in service.
    absent: MemberBits,
    rebuilding: MemberBits,
    /// Some member in service is one event behind.
    level: bool,
}

fn vote(array: &Array, copies: &[Option<Superblock>]) -> Result<Vote, AssembleError> {
    let all = || copies.iter().enumerate().filter_map(|(m, copy)| Some((m, (*copy)?)));
    let newest = all().map(|(_, copy)| copy).max_by_key(|copy| copy.events);
    let newest = newest.ok_or(AssembleError::NoSuperblock)?;
    // Of one events value there is one state, unless each half has made its own.
    let other = all().find(|(_, copy)| copy.events == newest.events && *copy != newest);
    if let (Some((_, other)), false) = (other, array.takes_diverged()) {
        let holders = |state| set(all().filter(|(_, copy)| *copy == state).map(|(m, _)| m));
        return Err(AssembleError::Diverged { one: holders(newest), other: holders(other) });
    }
    let in_service = |m: &usize| !contains(newest.failed, *m);
    let stays = |m: &usize| in_service(m) && !contains(newest.rebuilding, *m);
    let line = set((0..copies.len()).filter(stays));
    // Whoever says that all of these failed went on without them.
    let alone = |copy: &Superblock| line != NOBODY && union(line, copy.failed) == copy.failed;
    let other = set(all().filter(|(_, copy)| alone(copy)).map(|(m, _)| m));
    if other != NOBODY && !array.takes_diverged() {
        return Err(AssembleError::Diverged { one: line, other });
    }
    let is_fresh = |m: &usize| match copies[*m] {
        Some(_) if array.takes_stale() => true,
        Some(copy) if array.takes_diverged() && contains(other, *m) => copy.events > 0,
        Some(copy) => in_service(m) && copy.events + 1 >= newest.events,
        None => false,
    };
    let failed = set((0..copies.len()).filter(|m| !is_fresh(m)));
    let absent = set((0..copies.len()).filter(|m| stays(m) && !is_fresh(m)));
    let rebuilding = [0, 1].map(|word| newest.rebuilding[word] & !failed[word]);
    let level = all().any(|(m, copy)| !contains(failed, m) && copy.events < newest.events);
    Ok(Vote { newest, failed, absent, rebuilding, level })
}

const NOBODY: MemberBits = [0; 2];

fn set(members: impl Iterator<Item = usize>) -> MemberBits {
    let mut bits = NOBODY;
    members.for_each(|m| bits[m / 64] |= 1 << (m % 64));
    bits
}

fn union(one: MemberBits, other: MemberBits) -> MemberBits {
    [one[0] | other[0], one[1] | other[1]]
}

const fn contains(bits: MemberBits, member: usize) -> bool {
    bits[member / 64] >> (member % 64) & 1 == 1
}

/// Names a set of members.
fn named(bits: MemberBits) -> String {
    let names: Vec<_> = (0..128).filter(|m| contains(bits, *m)).map(|m| m.to_string()).collect();
    let noun = if names.len() == 1 { "member" } else { "members" };
    format!("{noun} {}", names.join(", "))
}

impl fmt::Display for AssembleError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Config(error) => write!(f, "{error}"),
            Self::NoSuperblock => f.write_str(
                "no member has a superblock that is whole: these are no members of this array, or it \
                 was never made",
            ),
            Self::Diverged { one, other } => write!(
                f,
                "{} and {} each went on without the other, and what they hold differs: start with one \
                 side only, and add the other side's members as fresh drives",
                named(*one),
                named(*other)
            ),
            Self::Missing(missing) => write!(
                f,
                "{} had part in the array when it was last used, and cannot be used now: bring what is \
                 missing back, or allow a start with members missing",
                named(*missing)
            ),
            Self::TooFew(missing) => write!(
                f,
                "too little is left without {}: this level does not survive that",
                named(*missing)
            ),
            Self::DirtyDegraded(missing) => write!(
                f,
                "the array was not stopped cleanly and {} cannot be used: what was written at that \
                 moment may make what is computed for the missing data wrong; bring the members back, \
                 or allow a dirty start with members missing",
                named(*missing)
            ),
            Self::JournalMissing => f.write_str(
                "the journal is missing and may hold writes that are not on the members: bring it \
                 back, or allow a dirty start, which makes redundancy consistent without it",
            ),
        }
    }
}

impl std::error::Error for AssembleError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Config(error) => Some(error),
            _ => None,
        }
    }
}
