//! The fault-point sweep: an operation is done again and again, and the first, second, third ... of its
//! member I/Os fails, until none is left to fail.
//!
//! Each is failed as an unreadable or unwritable sector, as a timeout (carried out or not), as a
//! drive that is gone, as one without room, and by never being answered until its deadline; once,
//! and so that everything of its kind on that drive fails from then on. Metadata I/O counts too.
//! With pairs, two of them fail.
//!
//! Afterwards every request is answered, nothing is outstanding, what was answered well is right,
//! and errors are in order only where more is lost than the level survives. Then the power goes, and
//! the array starts again with all drives that still answer, stale ones among them, and everything
//! is read.

mod judge;
mod operation;

use std::fmt;

use raidlab_core::contract::IoOp;
use raidlab_core::{ConfigError, Consistency, Layout, Level, Nanos};

use super::caught::caught;
use super::crash::CrashConfig;
use super::device::Format;
use super::harness::{Fault, Harness, HarnessConfig, Work};
use super::shape::Set;

pub use operation::Operation;

/// How an I/O fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Failure {
    /// Its first sector cannot be read or written; a flush or record: the same outcome.
    Media,
    /// No answer in time; not carried out.
    Timeout,
    /// No answer in time; carried out all the same.
    LateWrite,
    /// The drive is gone.
    Gone,
    /// A write: no room; once, it waits, and nothing fails.
    NoSpace,
    /// Never answered, until the deadline has passed.
    Hangs,
}

impl Failure {
    /// All of them.
    pub const ALL: [Self; 6] =
        [Self::Media, Self::Timeout, Self::LateWrite, Self::Gone, Self::NoSpace, Self::Hangs];

    const fn fault(self, sticky: bool) -> Fault {
        match self {
            Self::Media => Fault::Media { sector: 0, stuck: sticky },
            Self::Timeout | Self::Hangs => Fault::Timeout { carried_out: false },
            Self::LateWrite => Fault::Timeout { carried_out: true },
            Self::Gone => Fault::Gone,
            Self::NoSpace => Fault::NoSpace,
        }
    }
}

/// Which I/O fails, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Strike {
    /// The I/O's number, counted from 0 in the order in which they end.
    pub at: u32,
    /// How.
    pub failure: Failure,
    /// Everything of its kind on that drive fails from then on.
    pub sticky: bool,
}

/// What is done.
#[derive(Clone, Debug)]
pub struct FaultPointConfig {
    /// The array.
    pub harness: HarnessConfig,
    /// Two I/Os fail instead of one.
    pub pairs: bool,
    /// I/Os of an operation that are failed at most.
    pub most: u32,
    /// This operation only.
    pub only: Option<Operation>,
}

impl FaultPointConfig {
    /// A small array, as [`CrashConfig::new`] makes it, with a deadline of 30 s.
    #[must_use]
    pub fn new(level: Level, members: u16, consistency: Consistency) -> Self {
        Self::of(Layout::new(level, members), consistency)
    }

    /// The same of a layout, as [`CrashConfig::of`] makes it.
    #[must_use]
    pub fn of(layout: Layout, consistency: Consistency) -> Self {
        let mut harness = CrashConfig::of(layout, consistency).harness;
        harness.replacements = true;
        harness.array.settings.deadline = Some(Nanos(30_000_000_000));
        harness.array.settings.room_wait = Some(Nanos::from_millis(3000));
        Self { harness, pairs: false, most: 400, only: None }
    }

    /// The same with records as bytes.
    #[must_use]
    pub fn in_bytes(mut self, format: Format) -> Self {
        self.harness.put_in_bytes(format);
        self
    }

    /// As [`CrashConfig::name`].
    #[must_use]
    pub fn name(&self) -> String {
        super::crash::name_of(&self.harness)
    }
}

/// How much was done.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FaultPointCounts {
    /// Runs, each with its failure or two.
    pub runs: u64,
    /// For each operation how many I/Os it took, and runs.
    pub operations: Vec<(Operation, u32, u64)>,
    /// Operations that the array does not have, and refused.
    pub skipped: Vec<Operation>,
}

/// A run in which something was wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FaultPointViolation {
    /// The configuration, as [`FaultPointConfig::name`] gives it.
    pub config: String,
    /// The operation.
    pub operation: Operation,
    /// What failed.
    pub strikes: Vec<Strike>,
    /// The number of this run, counted from 1.
    pub run: u64,
    /// What is wrong.
    pub what: String,
    /// The log, one line per event.
    pub lines: Vec<String>,
}

impl fmt::Display for FaultPointViolation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}, {:?}: {}", self.config, self.operation, self.what)?;
        writeln!(f, "failed: {:?}", self.strikes)?;
        self.lines.iter().try_for_each(|line| writeln!(f, "{line}"))
    }
}

impl std::error::Error for FaultPointViolation {}

/// Does every operation that the level has, with every I/O of it failing in turn; `progress` is told
/// after each operation.
///
/// # Errors
/// The first run in which something was wrong.
///
/// # Panics
/// When the array of `config` cannot be: ask [`Harness::new`] first.
pub fn run(
    config: &FaultPointConfig,
    progress: &mut dyn FnMut(&FaultPointCounts),
) -> Result<FaultPointCounts, Box<FaultPointViolation>> {
    let base = super::crash::base(&config.harness).expect("the array was tried before");
    let mut counts = FaultPointCounts::default();
    let wanted = |operation: &Operation| config.only.is_none_or(|only| only == *operation);
    for operation in Operation::ALL.into_iter().filter(wanted) {
        // What panics on its way shows it again in the run in which nothing fails.
        let Some(ios) = caught(|| count(&base, operation)).unwrap_or(Some(0)) else {
            counts.skipped.push(operation);
            continue;
        };
        let before = counts.runs;
        let all = strikes(ios.min(config.most), config.pairs);
        // First with nothing failing.
        for strikes in std::iter::once(Vec::new()).chain(all) {
            counts.runs += 1;
            let ended = judge::case(&base, operation, &strikes, false);
            if ended.is_err() {
                let again = again(config, operation, &strikes, &base);
                return Err(Box::new(FaultPointViolation { run: counts.runs, ..again }));
            }
        }
        counts.operations.push((operation, ios, counts.runs - before));
        progress(&counts);
    }
    Ok(counts)
}

/// Does one run again, with its log.
fn again(
    config: &FaultPointConfig,
    operation: Operation,
    strikes: &[Strike],
    base: &Harness,
) -> FaultPointViolation {
    let (what, lines) = match judge::case(base, operation, strikes, true) {
        Err(wrong) => *wrong,
        Ok(()) => ("a replay does not show it again".into(), Vec::new()),
    };
    let strikes = strikes.to_vec();
    FaultPointViolation { config: config.name(), operation, strikes, run: 1, what, lines }
}

/// Does one run with its log: what is wrong, if anything, and the log.
///
/// # Panics
/// When the array of `config` cannot be.
#[must_use]
pub fn once(
    config: &FaultPointConfig,
    operation: Operation,
    strikes: &[Strike],
) -> (Option<String>, Vec<String>) {
    let base = super::crash::base(&config.harness).expect("the array was tried before");
    let (what, lines) = judge::run(&base, operation, strikes, true);
    (what.err(), lines)
}

/// Replays a violation with its log; `None` when nothing is wrong any more.
///
/// # Errors
/// When the array of `config` cannot be.
pub fn replay(
    config: &FaultPointConfig,
    violation: &FaultPointViolation,
) -> Result<Option<FaultPointViolation>, ConfigError> {
    let base = super::crash::base(&config.harness)?;
    let FaultPointViolation { operation, strikes, .. } = violation;
    let ended = judge::case(&base, *operation, strikes, true);
    Ok(ended.is_err().then(|| again(config, *operation, strikes, &base)))
}

/// How many I/Os an operation takes when nothing fails; `None` when there is no such operation here, and none is
/// begun. Where that is otherwise, the run in which nothing fails tells.
fn count(base: &Harness, operation: Operation) -> Option<u32> {
    let mut harness = base.clone();
    let is_had = operation.is_had_by(&harness);
    if operation.begin(&mut harness) != is_had {
        return Some(0);
    }
    if !is_had {
        return None;
    }
    let mut strikes = Strikes::new(&[]);
    strikes.run(&mut harness);
    Some(strikes.count)
}

/// Every way to fail one I/O of `ios`, or two.
fn strikes(ios: u32, pairs: bool) -> Vec<Vec<Strike>> {
    let one = |at: u32| {
        let ways = Failure::ALL.into_iter();
        ways.flat_map(move |failure| [false, true].map(|sticky| Strike { at, failure, sticky }))
    };
    if !pairs {
        return (0..ios).flat_map(one).map(|strike| vec![strike]).collect();
    }
    // Two failures of kinds that take members out of service, or do not.
    let kinds = [(Failure::Media, false), (Failure::Media, true), (Failure::Gone, true)];
    let mut all = Vec::new();
    // The first failure makes more I/O: the second may come after what was counted.
    for first in 0..ios {
        for second in first + 1..ios + 4 {
            for one in kinds {
                for other in kinds {
                    let strike = |at, (failure, sticky)| Strike { at, failure, sticky };
                    all.push(vec![strike(first, one), strike(second, other)]);
                }
            }
        }
    }
    all
}

/// The failures of a run, as it goes on.
struct Strikes<'a> {
    strikes: &'a [Strike],
    /// I/Os ended or held back so far.
    count: u32,
    /// What fails from now on: drive, kind.
    broken: Vec<(u16, u8, Failure)>,
    /// Drives on which something failed, a bit each.
    struck: Set,
}

/// The kind of writes and records.
const CHANGES: u8 = 1;

/// Kinds of I/O that fail together: reads, writes, flushes.
fn kind_of(work: &Work) -> u8 {
    match work {
        Work::Io(io) if io.op == IoOp::Read => 0,
        Work::Io(io) if io.op == IoOp::Flush => 2,
        _ => CHANGES,
    }
}

impl<'a> Strikes<'a> {
    fn new(strikes: &'a [Strike]) -> Self {
        Self { strikes, count: 0, broken: Vec::new(), struck: 0 }
    }

    /// Ends everything in order, failing what is to fail, and wakes the array until it is quiet.
    fn run(&mut self, harness: &mut Harness) {
        let mut wakes = 400;
        let mut held: Vec<usize> = Vec::new();
        for _ in 0..200_000 {
            if harness.violation().is_some() {
                return;
            }
            // What hangs comes last, when its deadline has passed.
            if let Some(index) = (0..harness.outstanding()).find(|k| harness.is_abandoned(*k)) {
                held.retain(|known| *known != index);
                held.iter_mut().filter(|known| **known > index).for_each(|known| *known -= 1);
                harness.finish(index, Fault::Timeout { carried_out: false });
                continue;
            }
            let Some(index) = (0..harness.outstanding()).find(|k| !held.contains(k)) else {
                if wakes == 0 || !harness.wake() {
                    return;
                }
                wakes -= 1;
                continue;
            };
            if self.end(harness, index) {
                held.iter_mut().filter(|known| **known > index).for_each(|known| *known -= 1);
            } else {
                held.push(index);
            }
        }
        harness.violate("I/O goes on for ever".into());
    }

    /// Ends one; false when it hangs.
    fn end(&mut self, harness: &mut Harness, index: usize) -> bool {
        let Some(device) = harness.device(index) else {
            harness.finish(index, Fault::None);
            return true;
        };
        let kind = kind_of(harness.work(index));
        let strike = self.strikes.iter().find(|strike| strike.at == self.count);
        self.count += 1;
        let known = self.broken.iter().find(|b| b.0 == device.0 && b.1 == kind);
        let failure = match (strike, known) {
            (Some(strike), _) => {
                if strike.sticky {
                    self.broken.push((device.0, kind, strike.failure));
                }
                Some((strike.failure, strike.sticky))
            }
            (None, Some(broken)) => Some((broken.2, true)),
            (None, None) => None,
        };
        let Some((failure, sticky)) = failure else {
            harness.finish(index, Fault::None);
            return true;
        };
        // What finds no room once waits, and nothing is wrong with its drive.
        let waits = harness.config().array.settings.room_wait.is_some() && kind == CHANGES;
        if failure != Failure::NoSpace || sticky || !waits {
            self.struck |= 1 << device.0;
        }
        let has_deadline = harness.config().array.settings.deadline.is_some();
        if failure == Failure::Hangs && has_deadline {
            return false;
        }
        harness.finish(index, failure.fault(sticky));
        true
    }
}
