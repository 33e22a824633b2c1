//! What does one run again: a seed of the swarm, an operation with I/Os that fail, a crash. Each is written as the
//! arguments of a command, and gives the same log and the same end when it is done again.
//!
//! * `4711`: a seed of the swarm.
//! * `failure:raid5:4:ppl:WriteSmall:12-Media-once,14-Gone-always`: an operation, of which I/O 12 fails, and I/O 14
//!   with all of its kind after it.
//! * `crash:raid5:3:ppl:1:0.4:0.2.2:1.0:2`: level, members, mode and seed; then operations by their number, steps, what
//!   is there after the crash, and members lost in hexadecimal, `end` without a crash.
//! * `hole`: the search for the write hole.
//!
//! An empty list is `none`. A level with `+far2`, say, behind it: another layout than its default. A mode with `+bytes`
//! behind it: records are bytes; with `+1.2`, say: in that version of Linux md's format.

use std::fmt::{self, Display};
use std::str::FromStr;

use raidlab_core::{Layout, LayoutError};

use super::caught::caught;
use super::crash::{self, CrashConfig, Op};
use super::device::Format;
use super::fault_points::{self, Failure, FaultPointConfig, Operation, Strike};
use super::part::{consistency, write_hole};
use super::shape::Set;
use super::swarm::{self, Mode, Options, Outcome};

/// A small array, of which crashes are enumerated or I/Os fail.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Small {
    /// Its layout, with its level's default chunk: the chunk that it has goes without saying.
    pub layout: Layout,
    /// Its mode.
    pub mode: Mode,
    /// By which format records are bytes.
    pub bytes: Option<Format>,
}

/// One run, as the argument of `--replay` names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Case {
    /// A seed of the swarm.
    Seed(u64),
    /// An operation whose I/Os fail.
    Failure {
        /// On which array.
        array: Small,
        /// Which.
        operation: Operation,
        /// What fails.
        strikes: Vec<Strike>,
    },
    /// A program with a crash, or to its end.
    Crash {
        /// Of which array.
        array: Small,
        /// [`CrashConfig::seed`].
        seed: u64,
        /// Its operations, by their number in [`crash::operations`].
        program: Vec<u32>,
        /// As [`crash::Violation::steps`].
        steps: Vec<u32>,
        /// As [`crash::Violation::picks`].
        picks: Vec<u32>,
        /// Members lost, a bit each; all ones without a crash.
        lost: Set,
    },
    /// The search for the write hole, which has to find one.
    Hole,
}

/// A case with what it is drawn from, and what is planted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reproduction {
    /// What is done.
    pub case: Case,
    /// What a seed draws from; lines are kept whatever it says. Its bug is planted in every case.
    pub options: Options,
}

/// How a replay went.
#[derive(Clone, Debug)]
pub struct Ended {
    /// The event log, one line per event.
    pub lines: Vec<String>,
    /// The array.
    pub array: String,
    /// What is wrong.
    pub broken: Option<String>,
    /// What a seed that kept every promise came to.
    pub outcome: Option<Outcome>,
}

impl Display for Reproduction {
    /// The arguments behind `raidlab check`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Case::Seed(_) = self.case {
            if let Some(level) = self.options.level {
                write!(f, "--level {level} ")?;
            }
            if let Some(mode) = self.options.mode {
                write!(f, "--mode {} ", mode.name())?;
            }
            if let Some(format) = self.options.format {
                write!(f, "--metadata {} ", format.name())?;
            }
        }
        #[cfg(debug_assertions)]
        if let Some(bug) = self.options.bug {
            write!(f, "--bug {} ", bug.name())?;
        }
        write!(f, "--replay {}", self.case)
    }
}

/// Numbers with dots between them.
fn dotted(numbers: &[u32]) -> String {
    let all: Vec<String> = numbers.iter().map(u32::to_string).collect();
    if all.is_empty() { NONE.into() } else { all.join(".") }
}

fn undotted(text: &str) -> Option<Vec<u32>> {
    if text == NONE {
        return Some(Vec::new());
    }
    text.split('.').map(|number| number.parse().ok()).collect()
}

/// An empty list.
const NONE: &str = "none";
/// What stands behind a mode where records are bytes of a format.
fn suffix(format: Format) -> String {
    match format {
        Format::Own => "+bytes".into(),
        Format::Md(version) => format!("+{version}"),
    }
}

/// No crash: to the end of the program.
const END: &str = "end";

impl Display for Small {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Layout { level, members, .. } = self.layout;
        let name = self.layout.to_string();
        let parameters: String = name.split(' ').skip(1).map(|word| format!("+{word}")).collect();
        let bytes = self.bytes.map(suffix).unwrap_or_default();
        write!(f, "{level}{parameters}:{members}:{}{bytes}", self.mode.name())
    }
}

impl Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Seed(seed) => write!(f, "{seed}"),
            Self::Hole => f.write_str("hole"),
            Self::Failure { array, operation, strikes } => {
                let one = |strike: &Strike| {
                    let often = if strike.sticky { "always" } else { "once" };
                    format!("{}-{:?}-{often}", strike.at, strike.failure)
                };
                let all: Vec<String> = strikes.iter().map(one).collect();
                let all = if all.is_empty() { NONE.into() } else { all.join(",") };
                write!(f, "failure:{array}:{operation:?}:{all}")
            }
            Self::Crash { array, seed, program, steps, picks, lost } => {
                let lost = if *lost == Set::MAX { END.into() } else { format!("{lost:x}") };
                let [program, steps, picks] = [program, steps, picks].map(|list| dotted(list));
                write!(f, "crash:{array}:{seed}:{program}:{steps}:{picks}:{lost}")
            }
        }
    }
}

impl FromStr for Case {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let known = "a seed, or what a broken promise printed: failure:..., crash:... or hole";
        let words: Vec<&str> = text.split(':').collect();
        let case = match *words.as_slice() {
            ["hole"] => Some(Self::Hole),
            ["failure", level, members, mode, operation, strikes] => {
                failure(small(level, members, mode)?, operation, strikes)
            }
            ["crash", level, members, mode, seed, program, steps, picks, lost] => {
                let array = small(level, members, mode)?;
                crash_of(array, [seed, lost], [program, steps, picks])
            }
            [seed] => seed.parse().ok().map(Self::Seed),
            _ => None,
        };
        case.ok_or_else(|| format!("`{text}` is not {known}"))
    }
}

fn small(level: &str, members: &str, mode: &str) -> Result<Small, String> {
    let (level, words) = level.split_once('+').unwrap_or((level, ""));
    let name = format!("{level}({members}) {}", words.replace('+', " "));
    let layout: Layout = name.parse().map_err(|error: LayoutError| error.to_string())?;
    let level = layout.level;
    if layout != crash::without_chunk(&layout) {
        return Err("small arrays have a chunk of their own".into());
    }
    let stripped = |format: Format| Some((mode.strip_suffix(&suffix(format))?, Some(format)));
    let (name, bytes) = Format::ALL.into_iter().find_map(stripped).unwrap_or((mode, None));
    let mode = Mode::ALL.into_iter().find(|known| known.name() == name);
    let has = |mode: Mode| bytes.is_none_or(|format| format.has(&layout, consistency(mode)));
    let can_be = |mode: &Mode| mode.fits(level) && has(*mode);
    let mode = mode.filter(can_be).ok_or("not a mode of this level")?;
    let small = Small { layout, mode, bytes };
    // What cannot be set up is told here.
    crash::operations(&small.crash()).map_err(|error| error.to_string())?;
    Ok(small)
}

fn failure(array: Small, operation: &str, strikes: &str) -> Option<Case> {
    let operation = Operation::ALL.into_iter().find(|one| format!("{one:?}") == operation)?;
    let one = |text: &str| {
        let (at, rest) = text.split_once('-')?;
        let (failure, often) = rest.split_once('-')?;
        let failure = Failure::ALL.into_iter().find(|one| format!("{one:?}") == failure)?;
        let sticky = match often {
            "always" => true,
            "once" => false,
            _ => return None,
        };
        Some(Strike { at: at.parse().ok()?, failure, sticky })
    };
    let strikes: Option<Vec<Strike>> =
        if strikes == NONE { Some(Vec::new()) } else { strikes.split(',').map(one).collect() };
    Some(Case::Failure { array, operation, strikes: strikes? })
}

fn crash_of(array: Small, [seed, lost]: [&str; 2], lists: [&str; 3]) -> Option<Case> {
    let [program, steps, picks] = lists.map(undotted);
    let (program, steps, picks) = (program?, steps?, picks?);
    let all = crash::operations(&array.crash()).ok()?.len();
    if program.iter().any(|number| *number as usize >= all) {
        return None;
    }
    let lost = if lost == END { Set::MAX } else { Set::from_str_radix(lost, 16).ok()? };
    Some(Case::Crash { array, seed: seed.parse().ok()?, program, steps, picks, lost })
}

impl Small {
    fn crash(&self) -> CrashConfig {
        let config = CrashConfig::of(self.layout.clone(), consistency(self.mode));
        match self.bytes {
            Some(format) => config.in_bytes(format),
            None => config,
        }
    }

    fn fault_points(&self) -> FaultPointConfig {
        let config = FaultPointConfig::of(self.layout.clone(), consistency(self.mode));
        match self.bytes {
            Some(format) => config.in_bytes(format),
            None => config,
        }
    }
}

impl Reproduction {
    /// Does it again.
    #[must_use]
    pub fn again(&self) -> Ended {
        match &self.case {
            Case::Seed(seed) => self.seed(*seed),
            Case::Failure { array, operation, strikes } => {
                let mut config = array.fault_points();
                self.plant(&mut config.harness);
                let run = || fault_points::once(&config, *operation, strikes);
                let ended = caught(run).unwrap_or_else(|what| (Some(what), Vec::new()));
                Ended { lines: ended.1, array: config.name(), broken: ended.0, outcome: None }
            }
            Case::Crash { array, seed, program, steps, picks, lost } => {
                let mut config = CrashConfig { seed: *seed, ..array.crash() };
                self.plant(&mut config.harness);
                let run = || crash::once(&config, program, steps, picks, *lost);
                let ended = caught(run).unwrap_or_else(|what| (Some(what.into()), Vec::new()));
                let broken = ended.0.map(|what| what.to_string());
                Ended { lines: ended.1, array: config.name(), broken, outcome: None }
            }
            Case::Hole => {
                let mut config = write_hole();
                self.plant(&mut config.harness);
                let report = super::part::Part::Hole(Box::new(config.clone())).run(&mut |_| ());
                let broken = report.broken.into_iter().next().map(|broken| broken.what);
                Ended { lines: Vec::new(), array: config.name(), broken, outcome: None }
            }
        }
    }

    fn seed(&self, seed: u64) -> Ended {
        match caught(|| swarm::replay(seed, &self.options)) {
            Ok((lines, Ok(outcome))) => {
                Ended { lines, array: String::new(), broken: None, outcome: Some(outcome) }
            }
            Ok((lines, Err(violation))) => {
                Ended { lines, array: violation.array, broken: Some(violation.what), outcome: None }
            }
            Err(what) => Ended {
                lines: Vec::new(),
                array: "not known".into(),
                broken: Some(what),
                outcome: None,
            },
        }
    }

    #[cfg(debug_assertions)]
    fn plant(&self, harness: &mut super::harness::HarnessConfig) {
        harness.bug = self.options.bug;
    }

    #[cfg(not(debug_assertions))]
    fn plant(&self, _: &mut super::harness::HarnessConfig) {
        let Self { .. } = self;
    }
}

/// The replay of a run of an array that [`FaultPointConfig::of`] makes.
#[must_use]
pub(super) fn of_failure(
    config: &FaultPointConfig,
    operation: Operation,
    strikes: &[Strike],
) -> Reproduction {
    let case =
        Case::Failure { array: array_of(&config.harness), operation, strikes: strikes.to_vec() };
    Reproduction { case, options: planted(&config.harness) }
}

/// The replay of a crash of an array that [`CrashConfig::of`] makes.
#[must_use]
pub(super) fn of_crash(config: &CrashConfig, violation: &crash::Violation) -> Reproduction {
    let crash::Violation { seed, program, steps, picks, lost, .. } = violation.clone();
    let all = crash::operations(config).unwrap_or_default();
    let number = |op: &Op| all.iter().position(|known| known == op).unwrap_or(all.len()) as u32;
    let program = program.iter().map(number).collect();
    let case = Case::Crash { array: array_of(&config.harness), seed, program, steps, picks, lost };
    Reproduction { case, options: planted(&config.harness) }
}

/// The replay of a search for the write hole.
#[must_use]
pub(super) fn of_hole(config: &CrashConfig) -> Reproduction {
    Reproduction { case: Case::Hole, options: planted(&config.harness) }
}

fn array_of(harness: &super::harness::HarnessConfig) -> Small {
    let layout = crash::without_chunk(&harness.array.layout);
    let mode = Mode::of(harness.array.settings.consistency);
    Small { layout, mode, bytes: harness.bytes }
}

#[cfg(debug_assertions)]
fn planted(harness: &super::harness::HarnessConfig) -> Options {
    Options { bug: harness.bug, ..Options::default() }
}

#[cfg(not(debug_assertions))]
fn planted(_: &super::harness::HarnessConfig) -> Options {
    Options::default()
}

#[cfg(test)]
mod tests {
    use raidlab_core::Level;

    use super::*;
    use raidlab_metadata::md::Version;

    #[test]
    fn what_is_printed_is_read() {
        let mode = Mode::PartialParity;
        let array = Small { layout: Layout::new(Level::Raid5, 3), mode, bytes: None };
        let far = Layout::new(Level::Raid10, 4).with_far(2).with_near(2);
        let strike = |at, failure, sticky| Strike { at, failure, sticky };
        let strikes = vec![strike(12, Failure::Media, false), strike(14, Failure::LateWrite, true)];
        let operation = Operation::RepairUnknown;
        let crash = |lost, picks| Case::Crash {
            array: array.clone(),
            seed: 9,
            program: vec![0, 11],
            steps: vec![0, 2, 13],
            picks,
            lost,
        };
        let cases = [
            (Case::Seed(4711), "4711"),
            (Case::Hole, "hole"),
            (
                Case::Failure { array: array.clone(), operation, strikes },
                "failure:raid5:3:ppl:RepairUnknown:12-Media-once,14-LateWrite-always",
            ),
            (
                Case::Failure {
                    array: array.clone(),
                    operation: Operation::Read,
                    strikes: Vec::new(),
                },
                "failure:raid5:3:ppl:Read:none",
            ),
            (
                Case::Failure {
                    array: Small { bytes: Some(Format::Own), ..array.clone() },
                    operation,
                    strikes: Vec::new(),
                },
                "failure:raid5:3:ppl+bytes:RepairUnknown:none",
            ),
            (
                Case::Failure {
                    array: Small {
                        mode: Mode::Bitmap,
                        bytes: Some(Format::Md(Version::V0_90)),
                        ..array.clone()
                    },
                    operation,
                    strikes: Vec::new(),
                },
                "failure:raid5:3:bitmap+0.90:RepairUnknown:none",
            ),
            (
                Case::Failure {
                    array: Small { layout: far, mode: Mode::Bitmap, bytes: None },
                    operation,
                    strikes: Vec::new(),
                },
                "failure:raid10+near2+far2:4:bitmap:RepairUnknown:none",
            ),
            (crash(6, vec![1, 0]), "crash:raid5:3:ppl:9:0.11:0.2.13:1.0:6"),
            (crash(Set::MAX, Vec::new()), "crash:raid5:3:ppl:9:0.11:0.2.13:none:end"),
        ];
        for (case, text) in cases {
            assert_eq!(case.to_string(), text);
            assert_eq!(text.parse::<Case>(), Ok(case), "{text}");
        }
    }

    #[test]
    fn what_names_nothing_is_refused() {
        let wrong = [
            "",
            "-1",
            "holes",
            "failure:raid7:3:ppl:Read:none",
            "failure:raid6:5:ppl:Read:none",
            "failure:raid5:3:ppl+0.90:Read:none",
            "failure:raid3:3:resync+1.2:Read:none",
            "failure:raid10+far5:4:bitmap:Read:none",
            "failure:raid10+chunk=4K:4:bitmap:Read:none",
            "failure:raid5+far2:4:bitmap:Read:none",
            "failure:raid5:2:ppl:Read:none",
            "failure:raid5:99999999:ppl:Read:none",
            "failure:raid5:3:none+bytes:Read:none",
            "failure:raid5:3:ppl:Reed:none",
            "failure:raid5:3:ppl:Read:1-Media-sometimes",
            "crash:raid5:3:ppl:9:99:0:0:0",
            "crash:raid5:3:ppl:9:0:0:0:x",
            "crash:raid5:3:ppl:9:0:0:0",
        ];
        for text in wrong {
            assert!(text.parse::<Case>().is_err(), "{text}");
        }
    }
}
