//! The checks cut into parts that can be run apart, in any order and on any number of threads: what
//! they come to is put together in the order of the parts, and is the same then.

use raidlab_core::{Consistency, Layout, Level, Sectors};

use super::caught::caught;
use super::content::mix;
use super::crash::{self, Counts, CrashConfig};
use super::device::Format;
use super::fault_points::{self, FaultPointConfig, FaultPointViolation, Operation};
use super::reproduction::{self, Case, Reproduction};
use super::swarm::{self, Hits, Mode, Options, Shares};

/// Which levels and consistency modes are checked, empty for all, and how records are kept.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Choice {
    /// Levels.
    pub levels: Vec<Level>,
    /// Modes.
    pub modes: Vec<Mode>,
    /// All records are bytes of this format; `None`: some are, of the own one.
    pub format: Option<Format>,
}

/// Small arrays whose crashes are enumerated: of all levels with redundancy.
fn crash_arrays() -> impl Iterator<Item = Layout> {
    let levels = Level::ALL.into_iter().filter(|level| level.is_redundant());
    levels.flat_map(|level| level.small_arrays().iter().map(move |n| Layout::new(level, *n)))
}

/// Those of them that are gone through first with records as bytes: the quickest of each kind.
const FIRST_IN_BYTES: [(Level, u16); 5] = [
    (Level::Raid1, 2),
    (Level::Raid5, 3),
    (Level::Raid10, 4),
    (Level::Raid1, 3),
    (Level::Raid6, 4),
];

fn arrays_in_bytes() -> impl Iterator<Item = Layout> {
    let is_first = |layout: &Layout| FIRST_IN_BYTES.contains(&(layout.level, layout.members));
    let first = FIRST_IN_BYTES.into_iter().map(|(level, members)| Layout::new(level, members));
    first.chain(crash_arrays().filter(move |layout| !is_first(layout)))
}

/// States of one of these arrays at least.
const LEAST_IN_BYTES: u64 = 16_000;

/// Copies of raid10 whose I/Os fail in turn, besides those on neighbouring members.
const FAR_COPIES: [&str; 3] = ["raid10(4) far2", "raid10(4) offset2", "raid10(4) near2 far2"];

/// Small arrays whose I/Os fail in turn: of all levels, of those with stripes the largest, then other copies.
fn fault_point_arrays() -> impl Iterator<Item = Layout> {
    let of_levels = Level::ALL.into_iter().flat_map(|level| {
        let small = level.small_arrays();
        let from = if level.has_stripes() { small.len().saturating_sub(1) } else { 0 };
        small[from..].iter().map(move |members| Layout::new(level, *members))
    });
    of_levels.chain(FAR_COPIES.into_iter().map(|name| name.parse().expect("names a layout")))
}

impl Choice {
    fn has_level(&self, level: Level) -> bool {
        self.levels.is_empty() || self.levels.contains(&level)
    }

    /// Whether records can be kept so.
    fn has(&self, layout: &Layout, consistency: Consistency) -> bool {
        self.format.is_none_or(|format| format.has(layout, consistency))
    }

    fn has_mode(&self, mode: Mode) -> bool {
        self.modes.is_empty() || self.modes.contains(&mode)
    }

    /// A mode that is chosen and that no chosen level can have, if there is one.
    #[must_use]
    pub fn misfit(&self) -> Option<Mode> {
        let fits = |mode: &Mode| Level::ALL.into_iter().any(|l| self.has_level(l) && mode.fits(l));
        self.modes.iter().copied().find(|mode| !fits(mode))
    }

    /// The chosen ones of some arrays, each with every chosen mode that its level can have.
    fn of<'a>(
        &'a self,
        arrays: impl Iterator<Item = Layout> + 'a,
    ) -> impl Iterator<Item = (Layout, Consistency)> + 'a {
        let chosen = arrays.filter(|layout| self.has_level(layout.level));
        chosen.flat_map(move |layout| {
            let modes = Mode::ALL.into_iter();
            let fits = move |mode: &Mode| self.has_mode(*mode) && mode.fits(layout.level);
            let all = modes.filter(fits).map(move |mode| (layout.clone(), consistency(mode)));
            all.filter(|(layout, consistency)| self.has(layout, *consistency))
        })
    }

    /// A level or mode that is chosen and that the format does not have, by its name, if there is one.
    #[must_use]
    pub fn not_kept(&self) -> Option<String> {
        let format = self.format?;
        let has = |level: Level, mode: Mode| {
            level
                .small_arrays()
                .iter()
                .any(|members| format.has(&Layout::new(level, *members), consistency(mode)))
        };
        let modes = |level: Level| Mode::ALL.into_iter().any(|mode| has(level, mode));
        let levels = |mode: Mode| Level::ALL.into_iter().any(|level| has(level, mode));
        let level = self.levels.iter().find(|level| !modes(**level)).map(ToString::to_string);
        level.or_else(|| {
            self.modes.iter().find(|mode| !levels(**mode)).map(|mode| mode.name().to_owned())
        })
    }

    /// What each seed of the swarm draws from: one of these after the other; empty when nothing
    /// that is chosen has redundancy.
    #[must_use]
    pub fn swarm(&self) -> Vec<Options> {
        let format = self.format;
        let of = |level, mode| Options { level, mode, format, ..Options::default() };
        let levels = swarm::levels().filter(|level| self.levels.contains(level));
        match (self.levels.is_empty(), self.modes.is_empty()) {
            (true, true) => vec![of(None, None)],
            (true, false) => self.modes.iter().map(|mode| of(None, Some(*mode))).collect(),
            (false, true) => levels.map(|level| of(Some(level), None)).collect(),
            (false, false) => levels
                .flat_map(|level| self.modes.iter().map(move |mode| (level, *mode)))
                .filter(|(level, mode)| mode.fits(*level))
                .map(|(level, mode)| of(Some(level), Some(mode)))
                .collect(),
        }
    }

    /// Every array whose crashes are enumerated.
    pub fn crashes(&self) -> impl Iterator<Item = CrashConfig> + '_ {
        self.of(crash_arrays()).map(|(layout, mode)| {
            let config = CrashConfig::of(layout, mode);
            match self.format {
                Some(format) => config.in_bytes(format),
                None => config,
            }
        })
    }

    /// The same with records as bytes, where there are any and the others' are none: as many arrays as so many states
    /// are enough for.
    pub fn crashes_in_bytes(&self, states: u64) -> impl Iterator<Item = CrashConfig> + '_ {
        let config = |(layout, mode)| CrashConfig::of(layout, mode).in_bytes(Format::Own);
        let kept =
            |config: &CrashConfig| config.harness.array.settings.consistency.has_superblocks();
        let enough = if self.format.is_none() { states / LEAST_IN_BYTES } else { 0 };
        self.of(arrays_in_bytes()).map(config).filter(kept).take(enough as usize)
    }

    /// Every array whose I/Os fail, once for each operation; those with superblocks also with records as bytes, or only
    /// so.
    pub fn failures(&self) -> impl Iterator<Item = FaultPointConfig> + '_ {
        self.of(fault_point_arrays()).flat_map(|(layout, mode)| {
            let config = FaultPointConfig::of(layout, mode);
            let format = self.format.unwrap_or(Format::Own);
            let in_bytes = mode.has_superblocks().then(|| config.clone().in_bytes(format));
            let by_numbers = self.format.is_none().then_some(config);
            by_numbers.into_iter().chain(in_bytes).flat_map(|config| {
                Operation::ALL
                    .into_iter()
                    .map(move |one| FaultPointConfig { only: Some(one), ..config.clone() })
            })
        })
    }
}

/// A mode as small arrays have it.
#[must_use]
pub fn consistency(mode: Mode) -> Consistency {
    match mode {
        Mode::None => Consistency::None,
        Mode::Resync => Consistency::Resync,
        Mode::Bitmap => Consistency::Bitmap { chunk: Sectors(2) },
        Mode::PartialParity => Consistency::PartialParity { slots: 6 },
        Mode::Journal => Consistency::Journal { sectors: Sectors(64) },
    }
}

/// raid5 with nothing that keeps parity consistent, and nothing excepted from the promise: a power
/// cut and a lost member must be found to change data that were not being written.
#[must_use]
pub fn write_hole() -> CrashConfig {
    let mut config = CrashConfig::new(Level::Raid5, 3, Consistency::None);
    config.harness.strict = true;
    config.failures = false;
    config
}

/// A part of the checks.
#[derive(Clone, Debug)]
pub enum Part {
    /// Every I/O of an array's operations fails in turn.
    Failures(Box<FaultPointConfig>),
    /// Crashes of an array.
    Crashes(Box<CrashConfig>),
    /// Crashes of an array that must be found to break its promise.
    Hole(Box<CrashConfig>),
    /// Seeds of the swarm.
    Seeds {
        /// The first.
        from: u64,
        /// How many.
        count: u64,
        /// What they draw from, one after the other by their number.
        options: Vec<Options>,
    },
}

/// Broken promises that the report of a part holds at most; [`Tally::broken`] counts all.
pub const MOST_BROKEN: usize = 100;

/// What a part came to.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// What was done.
    pub tally: Tally,
    /// Promises broken, in order, no more than [`MOST_BROKEN`]. Other parts than seeds end with the first.
    pub broken: Vec<Broken>,
}

/// A broken promise, and how to get there again.
#[derive(Clone, Debug)]
pub struct Broken {
    /// The array.
    pub array: String,
    /// What is wrong.
    pub what: String,
    /// Runs, states or seeds of the part up to here, this one included.
    pub after: u64,
    /// What shows it.
    pub shown_by: Shown,
    /// What does it again.
    pub replay: Reproduction,
}

/// What shows a broken promise.
#[derive(Clone, Debug)]
pub enum Shown {
    /// An I/O that failed.
    Failure(Box<FaultPointViolation>),
    /// A crash.
    Crash(Box<crash::Violation>),
    /// A seed, with what it draws from.
    Seed(u64, Options),
    /// The part as a whole: the code panicked before anything failed.
    Panic,
    /// Nothing: the write hole was not found where it must be.
    NoHole,
}

impl Broken {
    /// The event log, one line per event; a seed is run again for it.
    #[must_use]
    pub fn lines(&self) -> Vec<String> {
        match &self.shown_by {
            Shown::Failure(violation) => violation.lines.clone(),
            Shown::Crash(violation) => violation.lines.clone(),
            Shown::Seed(seed, options) => {
                Reproduction { case: Case::Seed(*seed), options: *options }.again().lines
            }
            Shown::NoHole | Shown::Panic => Vec::new(),
        }
    }

    /// How to get there again, in a few lines.
    #[must_use]
    pub fn how(&self) -> String {
        match &self.shown_by {
            Shown::Failure(violation) => {
                format!("{:?}, failing {:?}", violation.operation, violation.strikes)
            }
            Shown::Crash(violation) => {
                let crash::Violation { seed, program, steps, picks, lost, .. } = &**violation;
                format!(
                    "seed {seed}, program {program:?}\n\
                     steps {steps:?}, crash {picks:?}, members lost {lost:#b}"
                )
            }
            Shown::Seed(seed, _) => format!("seed {seed}"),
            Shown::NoHole | Shown::Panic => String::new(),
        }
    }
}

/// How much was done.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Runs with an I/O failing.
    pub failures: u64,
    /// Of these, with records as bytes.
    pub failures_in_bytes: u64,
    /// Operations that an array does not have, and refused.
    pub refused: u64,
    /// What crashes came to; `complete` is not used.
    pub crashes: Counts,
    /// Crash states with records as bytes, which are among those.
    pub states_in_bytes: u64,
    /// States until the write hole was found.
    pub hole: Option<u64>,
    /// Seeds.
    pub seeds: u64,
    /// Requests of all seeds.
    pub requests: u64,
    /// Member I/Os of all seeds.
    pub ios: u64,
    /// Power cuts of all seeds.
    pub cuts: u64,
    /// How often seeds hit each class of faults.
    pub hits: Hits,
    /// How many seeds had what has a generator of its own.
    pub shares: Shares,
    /// Promises broken.
    pub broken: u64,
    /// A hash of everything: the event logs of seeds, the counts of the others.
    pub hash: u64,
}

impl Tally {
    /// Adds what another part came to. The hash depends on the order.
    pub fn add(&mut self, other: &Self) {
        self.failures += other.failures;
        self.failures_in_bytes += other.failures_in_bytes;
        self.refused += other.refused;
        let (sum, one) = (&mut self.crashes, &other.crashes);
        sum.programs += one.programs;
        sum.moments += one.moments;
        sum.states += one.states;
        sum.distinct += one.distinct;
        sum.partly += one.partly;
        sum.drawn += one.drawn;
        sum.forced += one.forced;
        sum.nested += one.nested;
        sum.with_loss += one.with_loss;
        self.states_in_bytes += other.states_in_bytes;
        self.hole = self.hole.or(other.hole);
        self.seeds += other.seeds;
        self.requests += other.requests;
        self.ios += other.ios;
        self.cuts += other.cuts;
        self.hits.add(&other.hits);
        self.shares.add(&other.shares);
        self.broken += other.broken;
        self.hash = mix(self.hash, other.hash);
    }
}

/// A guess of what a state, a seed and an operation take, in microseconds, for progress.
const COST: (u64, u64, u64) = (15, 1000, 50_000);

impl Part {
    /// About how long it takes, in microseconds: to share out progress.
    #[must_use]
    pub fn cost(&self) -> u64 {
        match self {
            Self::Failures(_) => COST.2,
            Self::Crashes(config) => config.states * COST.0,
            Self::Hole(_) => COST.2,
            Self::Seeds { count, .. } => count.saturating_mul(COST.1),
        }
    }

    /// Its name, in a few words.
    #[must_use]
    pub fn name(&self) -> String {
        match self {
            Self::Failures(config) => match config.only {
                Some(only) => format!("fault-point sweep: {} {only:?}", config.name()),
                None => format!("fault-point sweep: {}", config.name()),
            },
            Self::Crashes(config) => format!("crashes: {}", config.name()),
            Self::Hole(config) => format!("write hole: {}", config.name()),
            Self::Seeds { from, count, .. } => {
                format!("swarm: seeds {from} to {}", from + count - 1)
            }
        }
    }

    /// The same with a bug planted.
    #[cfg(debug_assertions)]
    #[must_use]
    pub fn with_bug(&self, bug: raidlab_core::bugs::Bug) -> Self {
        let mut part = self.clone();
        match &mut part {
            Self::Failures(config) => config.harness.bug = Some(bug),
            Self::Crashes(config) | Self::Hole(config) => config.harness.bug = Some(bug),
            Self::Seeds { options, .. } => {
                options.iter_mut().for_each(|options| options.bug = Some(bug));
            }
        }
        part
    }

    /// Runs it; `progress` is told now and then how much of [`Part::cost`] is done.
    pub fn run(&self, progress: &mut dyn FnMut(u64)) -> Report {
        match self {
            Self::Failures(config) => failures(config),
            Self::Crashes(config) => crashes(config, progress),
            Self::Hole(config) => hole(config),
            Self::Seeds { from, count, options } => {
                let mut report = Report::default();
                for seed in *from..from + count {
                    one_seed(seed, options, seed - from + 1, &mut report);
                    progress((seed - from + 1) * COST.1);
                }
                report
            }
        }
    }
}

/// The report of a part that ends with a broken promise.
fn ended_by(broken: Broken) -> Report {
    let tally = Tally { broken: 1, ..Tally::default() };
    Report { tally, broken: vec![broken] }
}

fn panicked(array: String, what: String, replay: Reproduction) -> Report {
    ended_by(Broken { array, what, after: 0, shown_by: Shown::Panic, replay })
}

fn failures(config: &FaultPointConfig) -> Report {
    let mut report = Report::default();
    let ended = match caught(|| fault_points::run(config, &mut |_| ())) {
        Ok(ended) => ended,
        Err(what) => {
            let operation = config.only.unwrap_or(Operation::Read);
            return panicked(config.name(), what, reproduction::of_failure(config, operation, &[]));
        }
    };
    report.tally.failures = match &ended {
        Ok(counts) => counts.runs,
        Err(violation) => violation.run,
    };
    let in_bytes = config.harness.bytes.is_some();
    report.tally.failures_in_bytes = if in_bytes { report.tally.failures } else { 0 };
    report.tally.hash = report.tally.failures;
    if let Ok(counts) = &ended {
        let ios = counts.operations.iter().map(|(_, ios, _)| u64::from(*ios));
        report.tally.hash = ios.fold(report.tally.hash, mix);
        report.tally.refused = counts.skipped.len() as u64;
    }
    report.tally.broken = u64::from(ended.is_err());
    report.broken.extend(ended.err().map(|violation| Broken {
        array: violation.config.clone(),
        what: violation.what.clone(),
        after: violation.run,
        replay: reproduction::of_failure(config, violation.operation, &violation.strikes),
        shown_by: Shown::Failure(violation),
    }));
    report
}

fn crashes(config: &CrashConfig, progress: &mut dyn FnMut(u64)) -> Report {
    let mut report = Report::default();
    let mut last = Counts::default();
    let mut tell = |counts: &Counts| {
        last = *counts;
        progress(counts.states.min(config.states) * COST.0);
    };
    let ended = match caught(|| crash::run(config, &mut tell)) {
        Ok(ended) => ended,
        Err(what) => {
            let at_once = crash::Violation::before_any_step(config);
            return panicked(config.name(), what, reproduction::of_crash(config, &at_once));
        }
    };
    report.tally.crashes = match &ended {
        Ok(counts) => *counts,
        Err(violation) => Counts { states: violation.states, ..last },
    };
    let Counts { programs, moments, states, distinct, nested, forced, .. } = report.tally.crashes;
    report.tally.states_in_bytes = if config.harness.bytes.is_some() { states } else { 0 };
    report.tally.hash =
        [programs, moments, states, distinct, nested, forced].into_iter().fold(0, mix);
    report.tally.broken = u64::from(ended.is_err());
    report.broken.extend(ended.err().map(|violation| Broken {
        array: violation.config.clone(),
        what: violation.what.to_string(),
        replay: reproduction::of_crash(config, &violation),
        after: violation.states.max(1),
        shown_by: Shown::Crash(violation),
    }));
    report
}

fn hole(config: &CrashConfig) -> Report {
    let ended = match caught(|| crash::run(config, &mut |_| ())) {
        Ok(ended) => ended,
        Err(what) => return panicked(config.name(), what, reproduction::of_hole(config)),
    };
    let broken = |what, after, shown_by| {
        let replay = reproduction::of_hole(config);
        ended_by(Broken { array: config.name(), what, after, shown_by, replay })
    };
    match ended {
        Err(violation) if crash::is_hole(&violation) => {
            let hole = Some(violation.states);
            let tally = Tally { hole, hash: violation.states, ..Tally::default() };
            Report { tally, broken: Vec::new() }
        }
        // Anything else that goes wrong is no proof that the hole would be seen.
        Err(violation) => {
            let what = format!("before the write hole is shown: {}", violation.what);
            broken(what, violation.states.max(1), Shown::Crash(violation))
        }
        Ok(counts) => {
            let what = format!("{} states do not show the write hole", counts.states);
            broken(what, counts.states, Shown::NoHole)
        }
    }
}

fn one_seed(seed: u64, options: &[Options], after: u64, report: &mut Report) {
    let Some(own) = options.get((seed % options.len().max(1) as u64) as usize) else { return };
    let tally = &mut report.tally;
    tally.seeds += 1;
    let ended = caught(|| swarm::run(seed, own)).unwrap_or_else(|what| {
        let (array, lines) = ("not known".to_owned(), Vec::new());
        Err(Box::new(swarm::Violation { seed, array, what, lines }))
    });
    match ended {
        Ok(outcome) => {
            tally.requests += outcome.requests;
            tally.ios += outcome.ios;
            tally.cuts += outcome.crashes;
            tally.hits.add(&outcome.hits);
            tally.shares.add(&outcome.shares);
            tally.hash = mix(tally.hash, outcome.hash);
        }
        Err(violation) => {
            tally.hash = mix(tally.hash, seed);
            tally.broken += 1;
            if report.broken.len() < MOST_BROKEN {
                report.broken.push(Broken {
                    array: violation.array,
                    what: violation.what,
                    after,
                    shown_by: Shown::Seed(seed, *own),
                    replay: Reproduction { case: Case::Seed(seed), options: *own },
                });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::breach::Breach;

    /// A search that breaks off for another reason does not show that the hole would be seen.
    #[test]
    fn only_a_wrong_read_after_a_loss_is_the_hole() {
        let hole = |lost, what: &Breach| {
            let nothing = crash::Violation::before_any_step(&write_hole());
            crash::is_hole(&crash::Violation { lost, what: what.clone(), ..nothing })
        };
        let text = "read 4 gave 0x7 for sector 2; legal: [5]";
        let wrong = Breach::read(text.into());
        assert!(hole(1, &wrong));
        assert!(!hole(0, &wrong) && !hole(crate::shape::Set::MAX, &wrong));
        let later = wrong.without(2);
        assert!(hole(0, &later) && !hole(crate::shape::Set::MAX, &later));
        assert_eq!(later.to_string(), format!("after the recovery, without member 2: {text}"));
        assert!(!hole(0, &Breach::from("a mismatch").without(2)));
        assert!(!hole(1, &"recovery does not end".into()));
        // The kind decides, whatever the words are.
        assert!(!hole(1, &text.into()) && hole(1, &Breach::read("other words".into())));
    }

    /// Reproductions and what was recorded name arrays by these.
    #[test]
    fn the_arrays_are_those_of_the_table_of_levels() {
        let names = |arrays: &mut dyn Iterator<Item = Layout>| -> Vec<String> {
            arrays.map(|layout| layout.to_string()).collect()
        };
        let crashes =
            "raid1(2) raid1(3) raid3(3) raid4(4) raid5(3) raid5(4) raid6(4) raid6(5) raid10(4)";
        let bytes =
            "raid1(2) raid5(3) raid10(4) raid1(3) raid6(4) raid3(3) raid4(4) raid5(4) raid6(5)";
        let faults = "linear(2) raid0(3) raid1(2) raid1(3) raid3(3) raid4(4) raid5(4) raid6(5) raid10(4) \
             raid10(4) far2 raid10(4) offset2 raid10(4) near2 far2";
        assert_eq!(names(&mut crash_arrays()).join(" "), crashes);
        assert_eq!(names(&mut arrays_in_bytes()).join(" "), bytes);
        assert_eq!(names(&mut fault_point_arrays()).join(" "), faults);
        // Seeds draw from them in this order.
        let drawn: Vec<String> = swarm::levels().map(|level| level.to_string()).collect();
        assert_eq!(drawn.join(" "), "raid1 raid10 raid3 raid4 raid5 raid6");
    }
}
