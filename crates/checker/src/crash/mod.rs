//! Crash enumeration: small programs, every order of completion, a crash after every step, every
//! durable subset, every set of members that the level survives losing.
//!
//! What is enumerated. A program is one to three operations, submitted at any moment. After every
//! step (an operation submitted, an I/O ended, the array woken) the power may go; then each sector
//! whose last value is not certain is there or not, each by itself, log entries also torn. With that
//! on the drives, and with no member lost, or any set of them that the level survives together with
//! those out of service, the array is assembled, recovery runs to its end, everything is read and
//! judged by the [oracle](super::oracle), redundancy is compared from outside, a further member is
//! lost where the level allows it, and everything is read again. Some recoveries are themselves
//! interrupted by a crash, up to three deep.
//!
//! What bounds it. Steps that lead to a state met before ([`Harness::key`](super::harness::Harness::key)) are
//! not gone into again. Where more than [`CrashConfig::subsets`] subsets are possible, so many of
//! them are drawn by the seed, first none and all. A state whose drives, legal values and lost
//! members equal those of one judged before counts as a state, and not as a distinct one; it is not
//! judged again.

mod judge;
mod program;
mod walk;

use std::fmt;

use raidlab_core::contract::Pacing;
use raidlab_core::{
    Config, ConfigError, Consistency, Layout, Level, Limits, MemberIndex, Nanos, Sectors, Settings,
};

use super::breach::Breach;
use super::device::Format;
use super::harness::{Harness, HarnessConfig};
use super::shape::Set;
use raidlab_random::SplitMix64;

pub(crate) use judge::is_hole;
pub use program::Op;

/// What is enumerated, and how far.
#[derive(Clone, Debug)]
pub struct CrashConfig {
    /// The array: small, since every sector multiplies the states.
    pub harness: HarnessConfig,
    /// Operations of a program at most, 1 to 3.
    pub operations: u32,
    /// Ends after about this many states.
    pub states: u64,
    /// Subsets of one crash at most; beyond that they are drawn.
    pub subsets: u32,
    /// Members lost in a crash at most, besides those out of service before.
    pub lost: u32,
    /// One in so many recoveries is interrupted by a crash of its own; 0 for none.
    pub nested: u32,
    /// How often the array is woken in a program.
    pub wakes: u32,
    /// Reads of members end in order and at once, which leaves out orders that differ in nothing
    /// but when parity is read.
    pub reads_at_once: bool,
    /// Programs begin with a member out of service too.
    pub failures: bool,
    /// For what is drawn.
    pub seed: u64,
}

/// Of these, members are replaced, too: programs with it have many more states.
const REPLACED: [(Level, u16); 2] = [(Level::Raid1, 2), (Level::Raid5, 3)];

impl CrashConfig {
    /// A small array of `level` with this many members: chunks of 2 sectors, two stripes; with a
    /// stripe cache in modes `resync` and `journal`.
    #[must_use]
    pub fn new(level: Level, members: u16, consistency: Consistency) -> Self {
        Self::of(Layout::new(level, members), consistency)
    }

    /// The same of any layout but for its chunk, which is of 2 sectors; far copies have two stripes in each section.
    #[must_use]
    pub fn of(mut layout: Layout, consistency: Consistency) -> Self {
        let level = layout.level;
        if level.has_chunks() {
            layout = layout.with_chunk(Sectors(2));
        }
        // Mirrors without chunks: enough for background work to go in more than eight steps.
        let sectors = if level == Level::Raid1 { 9 } else { 4 * u64::from(layout.far) };
        let replacements =
            REPLACED.contains(&(level, layout.members)) && consistency.has_superblocks();
        let mut config = Config::uniform(layout, Sectors(sectors));
        let caches = level.has_stripes()
            && matches!(consistency, Consistency::Resync | Consistency::Journal { .. });
        config.limits = Limits { requests: 4, segments: 2, ios: 16, plans: 3, windows: 1 };
        config.settings = Settings {
            consistency,
            most_bad_blocks: 4,
            pacing: Pacing::between(1 << 40, 1 << 40),
            clean_after: Nanos::from_millis(200),
            bitmap_delay: Nanos::from_millis(5000),
            cached_stripes: u32::from(caches),
            ..Settings::default()
        };
        Self {
            harness: HarnessConfig { longest: 16, replacements, ..HarnessConfig::new(config) },
            operations: 3,
            states: 100_000,
            subsets: 256,
            lost: 2,
            nested: 16,
            wakes: 4,
            reads_at_once: true,
            failures: true,
            seed: 1,
        }
    }

    /// The same with records as bytes.
    #[must_use]
    pub fn in_bytes(mut self, format: Format) -> Self {
        self.harness.put_in_bytes(format);
        // md's journal is of pages, of which so many sectors by themselves would have too many subsets.
        let mode = self.harness.array.settings.consistency;
        self.harness.whole_blocks =
            format != Format::Own && matches!(mode, Consistency::Journal { .. });
        self
    }

    /// `LEVEL(MEMBERS) MODE`, with what differs from the level's default layout before the mode.
    #[must_use]
    pub fn name(&self) -> String {
        name_of(&self.harness)
    }
}

/// `LEVEL(MEMBERS) MODE`, with what differs from the level's default layout before the mode.
pub(super) fn name_of(harness: &HarnessConfig) -> String {
    let mode = match harness.array.settings.consistency {
        Consistency::None => "none",
        Consistency::Resync => "resync",
        Consistency::Bitmap { .. } => "bitmap",
        Consistency::PartialParity { .. } => "ppl",
        Consistency::Journal { .. } => "journal",
    };
    let layout = without_chunk(&harness.array.layout);
    let bytes = match harness.bytes {
        None => String::new(),
        Some(Format::Own) => " bytes".into(),
        Some(Format::Md(version)) => format!(" md {version}"),
    };
    format!("{layout} {mode}{bytes}")
}

/// A layout with its level's default chunk: all small arrays have one of 2 sectors, which goes without saying.
pub(super) fn without_chunk(layout: &Layout) -> Layout {
    layout.clone().with_chunk(Layout::new(layout.level, layout.members).chunk)
}

/// How much was enumerated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Programs.
    pub programs: u64,
    /// Moments at which the power could go, none of them twice.
    pub moments: u64,
    /// Crash states: a moment, a subset of what was not durable, a set of lost members.
    pub states: u64,
    /// Those of them that were judged, since no equal one was judged before.
    pub distinct: u64,
    /// Programs whose orders were too many for their share of states: after that share, paths were
    /// drawn.
    pub partly: u64,
    /// Moments with more subsets than the bound, where some were drawn.
    pub drawn: u64,
    /// Starts refused as the mode says, and then forced.
    pub forced: u64,
    /// Crashes in recoveries.
    pub nested: u64,
    /// States judged in which a member was lost.
    pub with_loss: u64,
    /// Everything within the bounds was enumerated, before [`CrashConfig::states`] was reached.
    pub complete: bool,
}

/// A promise broken, and how to get there again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The configuration, as [`CrashConfig::name`] gives it.
    pub config: String,
    /// The seed of the configuration.
    pub seed: u64,
    /// States up to here, this one included.
    pub states: u64,
    /// The program.
    pub program: Vec<Op>,
    /// Which step was taken at each point: 0 submits the next operation, 1 wakes the array, 2 + k
    /// ends the k-th of what is outstanding.
    pub steps: Vec<u32>,
    /// Which way each thing went that the crash decided.
    pub picks: Vec<u32>,
    /// The members lost, a bit each.
    pub lost: Set,
    /// What is wrong.
    pub what: Breach,
    /// The log of the run, one line per event.
    pub lines: Vec<String>,
}

impl Violation {
    /// A run that takes no step.
    #[must_use]
    pub(super) fn before_any_step(config: &CrashConfig) -> Self {
        Self {
            config: config.name(),
            seed: config.seed,
            states: 0,
            program: Vec::new(),
            steps: Vec::new(),
            picks: Vec::new(),
            lost: Set::MAX,
            what: Breach::default(),
            lines: Vec::new(),
        }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}: {}", self.config, self.what)?;
        writeln!(f, "seed {}, program {:?}", self.seed, self.program)?;
        let Self { steps, picks, lost, .. } = self;
        writeln!(f, "steps {steps:?}, crash {picks:?}, members lost {lost:#b}")?;
        self.lines.iter().try_for_each(|line| writeln!(f, "{line}"))
    }
}

impl std::error::Error for Violation {}

/// Enumerates as `config` says; `progress` is told now and then how far it is.
///
/// # Errors
/// The first broken promise.
///
/// # Panics
/// When the array of `config` cannot be: ask [`Harness::new`](super::harness::Harness::new) first.
pub fn run(
    config: &CrashConfig,
    progress: &mut dyn FnMut(&Counts),
) -> Result<Counts, Box<Violation>> {
    let base = base(&config.harness).expect("the array was tried before");
    let mut walk = walk::Walk::new(config, &base, progress);
    let mut counts = Counts::default();
    for operations in 1..=config.operations {
        let mut programs: Vec<Vec<Op>> =
            program::Programs::new(config, &base, operations).collect();
        SplitMix64::new(config.seed).shuffle(&mut programs);
        // A third of what is left for programs of this length, but all for the longest.
        let left = config.states.saturating_sub(counts.states);
        let parts = if operations == config.operations { 1 } else { 3 };
        let share = (left / parts / programs.len().max(1) as u64).max(LEAST_SHARE);
        let until = counts.states + left / parts;
        for program in programs {
            let ended = walk.program(&base, &program, share);
            counts = walk.counts();
            ended.map_err(|trace| {
                let states = counts.states;
                Box::new(Violation { states, ..replay(config, &base, &trace) })
            })?;
            if counts.states >= until {
                break;
            }
        }
    }
    counts.complete = counts.drawn == 0 && counts.partly == 0 && counts.states < config.states;
    Ok(counts)
}

/// States of one program at least, so that a few are gone into rather than none of many.
const LEAST_SHARE: u64 = 1000;

/// The operations that programs are made of, in the order of their numbers.
///
/// # Errors
/// When the array of `config` cannot be.
pub fn operations(config: &CrashConfig) -> Result<Vec<Op>, ConfigError> {
    Ok(program::alphabet(config, &base(&config.harness)?))
}

/// Does one run with its log: the operations by their numbers, and as in a [`Violation`] the steps, what is
/// there after the crash, and the members lost. What is wrong, if anything, and the log.
///
/// # Panics
/// When the array of `config` cannot be, or has no such operation.
#[must_use]
pub fn once(
    config: &CrashConfig,
    program: &[u32],
    steps: &[u32],
    picks: &[u32],
    lost: Set,
) -> (Option<Breach>, Vec<String>) {
    let mut harness = base(&config.harness).expect("the array was tried before");
    let all = program::alphabet(config, &harness);
    let program = program.iter().map(|number| all[*number as usize]).collect();
    let trace = walk::Trace { program, steps: steps.to_vec(), picks: picks.to_vec(), lost };
    harness.log_mut().keep_lines();
    let what = walk::follow(config, &mut harness, &trace);
    (what, harness.log().lines().to_vec())
}

/// Replays a violation with the lines of its log.
///
/// # Errors
/// When the array of `config` cannot be.
pub fn again(config: &CrashConfig, violation: &Violation) -> Result<Violation, ConfigError> {
    let Violation { program, steps, picks, lost, states, .. } = violation.clone();
    let trace = walk::Trace { program, steps, picks, lost };
    Ok(Violation { states, ..replay(config, &base(&config.harness)?, &trace) })
}

fn replay(config: &CrashConfig, base: &Harness, trace: &walk::Trace) -> Violation {
    let mut harness = base.clone();
    harness.log_mut().keep_lines();
    let what = walk::follow(config, &mut harness, trace);
    Violation {
        config: config.name(),
        seed: config.seed,
        states: 1,
        program: trace.program.clone(),
        steps: trace.steps.clone(),
        picks: trace.picks.clone(),
        lost: trace.lost,
        what: what.unwrap_or_else(|| "a replay does not show it again".into()),
        lines: harness.log().lines().to_vec(),
    }
}

/// The array in use: everything written once, quiet and clean.
pub(super) fn base(config: &HarnessConfig) -> Result<Harness, ConfigError> {
    use super::harness::Ask;
    use raidlab_core::contract::IoOp;
    let mut harness = Harness::new(config.clone())?;
    let (capacity, longest) = (harness.shape().capacity, u64::from(config.longest));
    let block = harness.shape().logical_block;
    let piece = longest / block * block;
    let mut at = 0;
    while at < capacity {
        let len = piece.min(capacity - at);
        harness.ask(Ask { op: IoOp::Write, at, len, fua: false });
        at += len;
    }
    harness.ask(Ask { op: IoOp::Flush, at: 0, len: 0, fua: false });
    harness.run_on(8);
    come_around(&mut harness);
    harness.forget();
    if harness.drives().is_md() {
        harness.drives_mut().forget_unused();
    }
    Ok(harness)
}

/// Writes until headers of md's logs of partial parity are about to come around to the start of the log: of the first
/// stripe with the second that follows, of the second at once.
fn come_around(harness: &mut Harness) {
    use super::harness::Ask;
    use raidlab_core::contract::IoOp;
    let block = harness.shape().logical_block;
    let members = (0..harness.shape().members).map(MemberIndex);
    let stripe: u64 =
        harness.config().array.layout.chunk.0 * u64::from(harness.shape().members.max(2) - 1);
    // A header of one row.
    let least = 8 + block;
    for device in members {
        for (at, left) in [(0, 2 * least), (stripe, least)] {
            // Until it is this device's log that is written, or another one's.
            let mut before = harness.drives().log_left(device);
            while before.is_some_and(|sectors| sectors >= left) {
                harness.ask(Ask { op: IoOp::Write, at, len: block, fua: true });
                harness.run_on(8);
                let after = harness.drives().log_left(device);
                if after == before {
                    break;
                }
                before = after;
            }
        }
    }
}
