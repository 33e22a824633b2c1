//! Whether the checker finds bugs: one is planted, and everything looks for it, the fault-point sweep
//! first, then crashes, then the swarm.
//!
//! A find counts only where the same search finds nothing without the bug ([`MutationTest::control`]): what
//! breaks its promise by itself shows nothing.

use raidlab_core::bugs::Bug;
use raidlab_core::{Consistency, Layout, Level};
use raidlab_metadata::md::Version;

use super::crash::CrashConfig;
use super::device::Format;
use super::fault_points::{FaultPointConfig, Operation};
use super::harness::HarnessConfig;
use super::part::{Choice, Part, Report, Shown, consistency};
use super::swarm::Mode;

/// What finds a bug.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Method {
    /// I/Os that fail in turn.
    Failures,
    /// Crashes enumerated.
    Crashes,
    /// Seeds of the swarm.
    Swarm,
}

impl Method {
    /// In words.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Failures => "fault-point sweep",
            Self::Crashes => "crash enumeration",
            Self::Swarm => "swarm",
        }
    }

    /// What it counts.
    #[must_use]
    pub const fn unit(self) -> &'static str {
        match self {
            Self::Failures => "runs",
            Self::Crashes => "states",
            Self::Swarm => "seeds",
        }
    }
}

/// How long is looked for a bug at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    /// Crash states of each array.
    pub states: u64,
    /// Seeds.
    pub seeds: u64,
}

impl Default for Budget {
    fn default() -> Self {
        Self { states: 60_000, seeds: 4_000 }
    }
}

/// How a bug was found.
#[derive(Clone, Debug)]
pub struct Found {
    /// By what.
    pub method: Method,
    /// On which array, and doing what.
    pub place: String,
    /// Runs, states or seeds of this method up to the find.
    pub after: u64,
    /// The broken promise.
    pub what: String,
}

/// How much was looked in vain: runs, states, seeds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tried {
    /// Runs with an I/O failing.
    pub runs: u64,
    /// Crash states.
    pub states: u64,
    /// Seeds.
    pub seeds: u64,
}

/// Arrays whose I/Os fail: each level and mode once.
const FAILURES: [(Level, u16, Mode); 7] = [
    (Level::Raid1, 2, Mode::Bitmap),
    (Level::Raid5, 4, Mode::Bitmap),
    (Level::Raid5, 4, Mode::PartialParity),
    (Level::Raid5, 4, Mode::Journal),
    (Level::Raid6, 5, Mode::Resync),
    (Level::Raid6, 5, Mode::Journal),
    (Level::Raid10, 4, Mode::Resync),
];

/// Arrays whose crashes are enumerated.
const CRASHES: [(Level, u16, Mode); 7] = [
    (Level::Raid1, 2, Mode::Resync),
    (Level::Raid1, 2, Mode::Bitmap),
    (Level::Raid5, 3, Mode::Resync),
    (Level::Raid5, 3, Mode::Bitmap),
    (Level::Raid5, 3, Mode::PartialParity),
    (Level::Raid5, 3, Mode::Journal),
    (Level::Raid6, 4, Mode::Journal),
];

/// Seeds of one ground.
const SEEDS: u64 = 50;

/// Where bugs are looked for.
#[derive(Clone, Debug)]
pub struct MutationTest {
    grounds: Vec<Ground>,
    format: Option<Format>,
}

#[derive(Clone, Debug)]
struct Ground {
    method: Method,
    part: Part,
    /// It breaks a promise without any bug.
    unsound: bool,
    /// Seeds that do.
    unsound_seeds: Vec<u64>,
}

impl MutationTest {
    /// Everything that fits the budget, with records as bytes of a format where there is one: on the arrays that it
    /// has.
    #[must_use]
    pub fn new(budget: Budget, format: Option<Format>) -> Self {
        let has = |&&(level, members, mode): &&(Level, u16, Mode)| {
            let layout = Layout::new(level, members);
            format.is_none_or(|format| format.has(&layout, consistency(mode)))
        };
        let failures = FAILURES.iter().filter(has).flat_map(|&(level, members, mode)| {
            let config = FaultPointConfig::new(level, members, consistency(mode));
            let config = match format {
                Some(format) => config.in_bytes(format),
                None => config,
            };
            let one = move |only| FaultPointConfig { only: Some(only), ..config.clone() };
            Operation::ALL.map(one).map(|config| Part::Failures(Box::new(config)))
        });
        let crashes = CRASHES.iter().filter(has).map(|&(level, members, mode)| {
            let config = CrashConfig::new(level, members, consistency(mode));
            let config = match format {
                Some(format) => config.in_bytes(format),
                None => config,
            };
            let (operations, states) = (2, budget.states);
            Part::Crashes(Box::new(CrashConfig { operations, states, ..config }))
        });
        let choice = Choice { format, ..Choice::default() };
        let seeds = (0..budget.seeds).step_by(SEEDS as usize).map(|from| Part::Seeds {
            from,
            count: SEEDS.min(budget.seeds - from),
            options: choice.swarm(),
        });
        let of =
            |method| move |part| Ground { method, part, unsound: false, unsound_seeds: Vec::new() };
        let mut grounds: Vec<Ground> = failures.map(of(Method::Failures)).collect();
        grounds.extend(crashes.map(of(Method::Crashes)));
        grounds.extend(seeds.map(of(Method::Swarm)));
        Self { grounds, format }
    }

    /// How many grounds there are.
    #[must_use]
    pub fn grounds(&self) -> usize {
        self.grounds.len()
    }

    /// Whether this bug can show: a format may lack the mode that it belongs to, md's own rules leave out who is out of
    /// date or went on alone before the core sees them, 0.90 does not record how far a rebuild is and has no
    /// replacements, and the own format goes on with none. A header of md's partial parity has no row twice, and md's
    /// journal is replayed before the core begins.
    #[must_use]
    pub fn can_have(&self, bug: Bug) -> bool {
        let is_hidden = match (self.format, bug) {
            (Some(Format::Md(_)), Bug::StaleMemberAccepted | Bug::DivergedAccepted) => true,
            (
                Some(Format::Md(_)),
                Bug::PplOldestWins | Bug::JournalOldestWins | Bug::JournalSkipsParity,
            ) => true,
            (Some(Format::Md(version)), Bug::RebuildCheckpointEarly) => version == Version::V0_90,
            (Some(format), Bug::ReplaceMissesWrites | Bug::ReplaceUnflushed) => {
                !format.has_replacements()
            }
            (Some(format), Bug::ReplaceResumedDirty) => !format.resumes_replacements(),
            _ => false,
        };
        if is_hidden {
            return false;
        }
        let arrays = self.grounds.iter().filter(|ground| ground.method != Method::Swarm);
        arrays.into_iter().any(|ground| may_show(bug, &ground.part))
    }

    /// Looks at a ground without any bug.
    #[must_use]
    pub fn control(&self, ground: usize) -> Report {
        self.grounds.get(ground).map(|g| g.part.run(&mut |_| ())).unwrap_or_default()
    }

    /// Leaves out what breaks its promise without any bug, as [`MutationTest::control`] has found.
    pub fn leave_out(&mut self, ground: usize, control: &Report) {
        let Some(ground) = self.grounds.get_mut(ground) else { return };
        for broken in &control.broken {
            match broken.shown_by {
                Shown::Seed(seed, _) => ground.unsound_seeds.push(seed),
                _ => ground.unsound = true,
            }
        }
    }

    /// Looks for a bug until something finds it.
    ///
    /// # Errors
    /// How much was looked in vain.
    pub fn bug(&self, bug: Bug) -> Result<Found, Tried> {
        let mut tried = Tried::default();
        for ground in self.grounds.iter().filter(|ground| !ground.unsound) {
            if !may_show(bug, &ground.part) {
                continue;
            }
            let report = ground.part.with_bug(bug).run(&mut |_| ());
            let sound = |seed: &u64| !ground.unsound_seeds.contains(seed);
            let find = report.broken.into_iter().find(|broken| match &broken.shown_by {
                Shown::Seed(seed, _) => sound(seed),
                _ => true,
            });
            let done = match (&find, ground.method) {
                (Some(find), _) => find.after,
                (None, Method::Failures) => report.tally.failures,
                (None, Method::Crashes) => report.tally.crashes.states,
                (None, Method::Swarm) => report.tally.seeds,
            };
            let sum = match ground.method {
                Method::Failures => &mut tried.runs,
                Method::Crashes => &mut tried.states,
                Method::Swarm => &mut tried.seeds,
            };
            *sum += done;
            if let Some(find) = find {
                let place = match &find.shown_by {
                    Shown::Failure(violation) => {
                        format!("{} {:?}", find.array, violation.operation)
                    }
                    Shown::Seed(seed, _) => format!("seed {seed}: {}", find.array),
                    _ => find.array,
                };
                return Ok(Found { method: ground.method, place, after: *sum, what: find.what });
            }
        }
        Err(tried)
    }
}

/// Whether the code with a bug can be reached at all there: only to spare time.
fn may_show(bug: Bug, part: &Part) -> bool {
    let harness: &HarnessConfig = match part {
        Part::Failures(config) => &config.harness,
        Part::Crashes(config) | Part::Hole(config) => &config.harness,
        Part::Seeds { .. } => return true,
    };
    let mode = Mode::of(harness.array.settings.consistency);
    let level = harness.array.layout.level;
    let begins = |prefix: &str| bug.name().starts_with(prefix);
    if begins("Ppl") {
        return mode == Mode::PartialParity;
    }
    if begins("Journal") {
        return mode == Mode::Journal;
    }
    if begins("Bitmap") || bug == Bug::ReAddTooOld {
        return mode == Mode::Bitmap;
    }
    match bug {
        Bug::ReplayMissing => matches!(
            harness.array.settings.consistency,
            Consistency::PartialParity { .. } | Consistency::Journal { .. }
        ),
        Bug::WrongQOrder => level == Level::Raid6,
        Bug::SkipMirrorLock | Bug::AckWriteEarly | Bug::WriteSkipsCopy => {
            matches!(level, Level::Raid1 | Level::Raid10)
        }
        _ => true,
    }
}

/// A rotating sample: `count` of all bugs, another one for each `number`.
#[must_use]
pub fn sample(count: usize, number: u64) -> Vec<Bug> {
    let all = Bug::ALL.len();
    let count = count.min(all);
    let first = (number % all as u64) as usize * count;
    (0..count).map(|k| Bug::ALL[(first + k) % all]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn samples_come_round_to_every_bug() {
        for count in [1, 6, 8, Bug::ALL.len()] {
            let numbers = 0..Bug::ALL.len().div_ceil(count) as u64;
            let seen: BTreeSet<Bug> = numbers.flat_map(|number| sample(count, number)).collect();
            assert_eq!(seen.len(), Bug::ALL.len(), "{count} at a time");
        }
        assert_eq!(sample(6, u64::MAX).len(), 6);
        assert_eq!(sample(1000, 3).len(), Bug::ALL.len());
    }

    #[test]
    fn each_method_has_its_grounds() {
        let test = MutationTest::new(Budget { states: 10, seeds: 120 }, None);
        let of = |method| test.grounds.iter().filter(|ground| ground.method == method).count();
        assert_eq!(of(Method::Failures), FAILURES.len() * Operation::ALL.len());
        assert_eq!(of(Method::Crashes), CRASHES.len());
        assert_eq!(of(Method::Swarm), 3);
        assert!(Bug::ALL.iter().all(|bug| test.can_have(*bug)));
    }

    /// md's superblocks are tried in the modes that they have: 0.90 has no log, 1.0 no journal.
    #[test]
    fn a_format_has_its_grounds_and_lacks_bugs_of_other_modes() {
        for format in Format::ALL {
            let test = MutationTest::new(Budget { states: 10, seeds: 50 }, Some(format));
            let lacking: Vec<&str> =
                Bug::ALL.iter().filter(|bug| !test.can_have(**bug)).map(|bug| bug.name()).collect();
            if format == Format::Own {
                assert_eq!(
                    (test.grounds(), lacking),
                    (FAILURES.len() * Operation::ALL.len() + 8, vec!["ReplaceResumedDirty"])
                );
                continue;
            }
            let is_old = format == Format::Md(Version::V0_90);
            let has_journal = matches!(format, Format::Md(Version::V1_1 | Version::V1_2));
            let (arrays, without_logs) = match (is_old, has_journal) {
                (true, _) => (4, 10),
                (_, true) => (7, 3),
                _ => (5, 6),
            };
            assert_eq!(test.grounds(), arrays * Operation::ALL.len() + arrays + 1, "{format:?}");
            let (of_logs, decided): (Vec<&str>, Vec<&str>) =
                lacking.into_iter().partition(|name| {
                    ["Ppl", "Journal", "Replay"].iter().any(|of| name.starts_with(of))
                });
            assert_eq!(of_logs.len(), without_logs, "{of_logs:?}");
            let mut hidden = vec!["StaleMemberAccepted", "DivergedAccepted"];
            if is_old {
                hidden.push("RebuildCheckpointEarly");
                hidden.extend(["ReplaceMissesWrites", "ReplaceUnflushed", "ReplaceResumedDirty"]);
            }
            let sorted = |mut names: Vec<&'static str>| {
                names.sort_unstable();
                names
            };
            assert_eq!(sorted(decided), sorted(hidden), "{format:?}");
        }
    }
}
