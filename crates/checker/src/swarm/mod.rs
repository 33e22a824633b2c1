//! The swarm: random arrays, random work, random faults, one seed a run.
//!
//! A seed draws an array (level, members, layout, consistency mode, limits, settings), switches a
//! random half of the fault classes off, and then does random things to it: requests, ends of I/O in
//! any order with or without a fault, wake-ups, commands, power cuts. What the array survives is
//! counted (`budget`): a run stays within it, so that every request must be answered well, or, one
//! seed in five, goes beyond, where errors are due but wrong data never. In the end the faults stop,
//! failed drives are replaced, and the array must come back: every request answered, every member in
//! service, redundancy consistent on every row, every sector with a legal value.
//!
//! The classes are those of the fault model in `docs/reliability.md`; each counts how often it was
//! hit, that is, was injected where it could do harm.

mod arrays;
mod budget;
mod duties;
mod full;
mod last;
mod rest;
mod run;
mod silent;
mod special;
mod start;

use std::fmt;

use raidlab_core::Level;

use crate::device::Format;

pub(crate) use arrays::levels;
pub use arrays::{Mode, describe};
pub use special::{Shares, Special};

/// A class of faults, by its number in `docs/reliability.md`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Class {
    /// 1: a power cut between member writes, all members back.
    Crash,
    /// 2: the same, then a member is missing.
    CrashAndLoss,
    /// 3: a write torn by a power cut.
    Torn,
    /// 4: what a volatile cache had acknowledged is gone.
    CacheLost,
    /// 5: a write lost, misdirected, or changed on the medium.
    Silent,
    /// 6: a sector that cannot be read.
    Media,
    /// 7: the same while another member is rebuilt.
    MediaInRebuild,
    /// 8: no answer in time.
    Timeout,
    /// 9: a member that missed writes comes back.
    Stale,
    /// 10: two halves each went on alone.
    Split,
    /// 11: a superblock that is damaged.
    Superblock,
    /// 12: more members lost than the level survives.
    TooMany,
    /// 14: a power cut in the recovery from one.
    CrashInRecovery,
    /// 15: the log device fails.
    LogDevice,
    /// 16: everything the array may hold is in use.
    Full,
    /// A member fails or is gone, within what the level survives.
    MemberLost,
}

impl Class {
    /// All of them, in order.
    pub const ALL: [Self; 16] = [
        Self::Crash,
        Self::CrashAndLoss,
        Self::Torn,
        Self::CacheLost,
        Self::Silent,
        Self::Media,
        Self::MediaInRebuild,
        Self::Timeout,
        Self::Stale,
        Self::Split,
        Self::Superblock,
        Self::TooMany,
        Self::CrashInRecovery,
        Self::LogDevice,
        Self::Full,
        Self::MemberLost,
    ];

    /// The number and name that documents give it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Crash => "1 power cut",
            Self::CrashAndLoss => "2 power cut and lost member",
            Self::Torn => "3 torn write",
            Self::CacheLost => "4 volatile cache lost",
            Self::Silent => "5 lost, misdirected or rotten write",
            Self::Media => "6 media error",
            Self::MediaInRebuild => "7 media error in a rebuild",
            Self::Timeout => "8 timeout",
            Self::Stale => "9 stale member returns",
            Self::Split => "10 two halves alone",
            Self::Superblock => "11 damaged superblock",
            Self::TooMany => "12 too many members lost",
            Self::CrashInRecovery => "14 power cut in recovery",
            Self::LogDevice => "15 log device fails",
            Self::Full => "16 no room",
            Self::MemberLost => "member lost",
        }
    }
}

/// How often each class was hit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Hits([u64; Class::ALL.len()]);

impl Hits {
    /// One more.
    pub const fn hit(&mut self, class: Class) {
        self.0[class as usize] += 1;
    }

    /// How often.
    #[must_use]
    pub const fn of(&self, class: Class) -> u64 {
        self.0[class as usize]
    }

    /// Adds those of another run.
    pub fn add(&mut self, other: &Self) {
        for (sum, one) in self.0.iter_mut().zip(&other.0) {
            *sum += one;
        }
    }
}

/// What is drawn from and how long a run is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// This level only.
    pub level: Option<Level>,
    /// This consistency mode only.
    pub mode: Option<Mode>,
    /// Records are bytes of this format; `None`: in some seeds, of the own one.
    pub format: Option<Format>,
    /// Keep the lines of the log.
    pub lines: bool,
    /// A bug to plant, where the core was built to have some.
    #[cfg(debug_assertions)]
    pub bug: Option<raidlab_core::bugs::Bug>,
}

/// A run that kept every promise.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// The hash of the event log.
    pub hash: u64,
    /// Requests answered.
    pub requests: u64,
    /// Member I/Os and records ended.
    pub ios: u64,
    /// Power cuts.
    pub crashes: u64,
    /// How often each class was hit.
    pub hits: Hits,
    /// What it had besides.
    pub shares: Shares,
}

/// A broken promise.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The seed that shows it.
    pub seed: u64,
    /// The array it was shown on.
    pub array: String,
    /// What is wrong.
    pub what: String,
    /// The event log up to there, if it was kept.
    pub lines: Vec<String>,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "seed {}: {}", self.seed, self.what)?;
        writeln!(f, "array: {}", self.array)?;
        self.lines.iter().try_for_each(|line| writeln!(f, "{line}"))
    }
}

/// Runs one seed.
///
/// # Errors
/// The first broken promise.
pub fn run(seed: u64, options: &Options) -> Result<Outcome, Box<Violation>> {
    run::Run::new(seed, options)?.go()
}

/// Runs one seed and gives its event log, one line per event, with how it ended.
pub fn replay(seed: u64, options: &Options) -> (Vec<String>, Result<Outcome, Box<Violation>>) {
    match run::Run::new(seed, &Options { lines: true, ..*options }) {
        Err(violation) => (Vec::new(), Err(violation)),
        Ok(mut run) => {
            let ended = run.go();
            (run.lines(), ended)
        }
    }
}
