//! `raidlab check`: whether the array code keeps its promises, whatever fails.

pub(crate) mod args;
#[cfg(debug_assertions)]
mod bugs;
mod json;
mod summary;
pub(crate) mod threads;

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use raidlab_checker::crash::CrashConfig;
use raidlab_checker::device::Format;
use raidlab_checker::fault_points::FaultPointConfig;
use raidlab_checker::part::{self, Broken, Choice, Part, Report, Tally};
use raidlab_checker::reproduction::{Case, Reproduction};
use raidlab_checker::swarm::{Mode, Options};
use raidlab_core::Level;

use args::Check;

use crate::failure::Failure;
use crate::progress::Bar;
use crate::{interrupt, output, parallel};

/// Without any figure given.
const SEEDS: u64 = 2_000;
const CRASH_STATES: u64 = 1_000_000;

/// Seeds of one part at least and at most, and about how many parts there are.
const CHUNK: (u64, u64) = (100, 10_000);
const CHUNKS: u64 = 10_000;

/// Of so many crash states one more is with records as bytes.
const IN_BYTES: u64 = 10;

/// Broken promises kept at most; all are counted.
const MOST_BROKEN: usize = 1000;

/// What is due to whoever asks for bugs in a build without any.
const NO_BUGS: &str =
    "this build has no seeded bugs; `cargo xtask bugs` makes one that has, and runs it";

pub(crate) fn run(options: &Check) -> Result<(), Failure> {
    output::check(&[("--json", options.json.as_deref())], &[])?;
    if cfg!(not(debug_assertions)) && (options.bugs || options.bug.is_some()) {
        return Err(Failure::input(NO_BUGS));
    }
    if options.bugs {
        return bugs(options);
    }
    let choice = choice(options)?;
    match &options.replay {
        Some(case) => replay(options, &choice, case),
        None => check(options, &choice),
    }
}

#[cfg(debug_assertions)]
fn bugs(options: &Check) -> Result<(), Failure> {
    bugs::run(options)
}

#[cfg(not(debug_assertions))]
fn bugs(_: &Check) -> Result<(), Failure> {
    Err(Failure::input(NO_BUGS))
}

/// Levels and modes, when they go together.
fn choice(options: &Check) -> Result<Choice, Failure> {
    let (levels, modes) = (options.level.clone(), options.mode.clone());
    let choice = Choice { levels, modes, format: options.metadata };
    if let Some(mode) = choice.misfit() {
        let fitting = Level::ALL.iter().filter(|level| mode.fits(**level)).map(ToString::to_string);
        let fitting: Vec<String> = fitting.collect();
        let (mode, fitting) = (mode.name(), fitting.join(", "));
        return Err(Failure::input(format!("--mode {mode}: only {fitting} can have it")));
    }
    if let (Some(format), Some(what)) = (choice.format, choice.not_kept()) {
        let kept = match format {
            Format::Own => "every level and mode with superblocks: resync, bitmap, ppl, journal",
            Format::Md(_) => "raid1, raid4, raid5, raid6 and raid10 in the modes resync and bitmap",
        };
        let logs = match format.name() {
            "1.0" => ", and raid5 with ppl",
            "1.1" | "1.2" => ", raid5 with ppl, and raid4, raid5 and raid6 with a journal",
            _ => "",
        };
        let name = format.name();
        return Err(Failure::input(format!(
            "--metadata {name}: it has no {what}, but {kept}{logs}"
        )));
    }
    Ok(choice)
}

impl threads::Part for Part {
    type Report = Report;

    fn cost(&self) -> u64 {
        Part::cost(self)
    }

    fn name(&self) -> String {
        Part::name(self)
    }

    fn run(&self, progress: &mut dyn FnMut(u64)) -> Report {
        Part::run(self, progress)
    }
}

/// Everything to be run, the longest first: arrays in a list, seeds cut into parts as they are taken.
struct All {
    arrays: Vec<Part>,
    /// What seeds draw from, one after the other.
    draws: Vec<Options>,
    from: u64,
    seeds: u64,
    /// Seeds of a part.
    chunk: u64,
}

impl threads::Parts for All {
    type Part = Part;

    fn count(&self) -> u64 {
        self.arrays.len() as u64 + self.seeds.div_ceil(self.chunk)
    }

    fn cost(&self) -> u64 {
        let arrays = self.arrays.iter().map(Part::cost).sum();
        self.seeds_from(0, self.seeds).cost().saturating_add(arrays)
    }

    fn part(&self, index: u64) -> Option<Part> {
        let arrays = self.arrays.len() as u64;
        if index < arrays {
            return self.arrays.get(index as usize).cloned();
        }
        let first = (index - arrays) * self.chunk;
        Some(self.seeds_from(first, self.chunk.min(self.seeds - first)))
    }
}

impl All {
    fn seeds_from(&self, first: u64, count: u64) -> Part {
        Part::Seeds { from: self.from + first, count, options: self.draws.clone() }
    }
}

/// Everything to be run.
fn parts(options: &Check, choice: &Choice) -> Result<All, Failure> {
    let all = !options.failures && options.seeds.is_none() && options.crash_states.is_none();
    let seeds = options.seeds.unwrap_or(if all { SEEDS } else { 0 });
    let states = options.crash_states.unwrap_or(if all { CRASH_STATES } else { 0 });
    if options.from.checked_add(seeds).is_none() {
        return Err(Failure::input(format!(
            "--from {}: too large for {seeds} seeds",
            options.from
        )));
    }
    let mut arrays = Vec::new();
    if states > 0 {
        let configs: Vec<CrashConfig> = choice.crashes().collect();
        let share = states.div_ceil(configs.len().max(1) as u64);
        let with_share = |config| Part::Crashes(Box::new(CrashConfig { states: share, ..config }));
        arrays.extend(configs.into_iter().map(with_share));
        // Encoded and read back as an engine does; that takes longer.
        let configs: Vec<CrashConfig> = choice.crashes_in_bytes(states / IN_BYTES).collect();
        let share = (states / IN_BYTES).div_ceil(configs.len().max(1) as u64);
        let with_share = |config| Part::Crashes(Box::new(CrashConfig { states: share, ..config }));
        arrays.extend(configs.into_iter().map(with_share));
        let fits = choice.levels.is_empty() || choice.levels.contains(&Level::Raid5);
        let fits = fits && choice.format.is_none();
        if fits && (choice.modes.is_empty() || choice.modes.contains(&Mode::None)) {
            arrays.push(Part::Hole(Box::new(part::write_hole())));
        }
    }
    if all || options.failures {
        let pairs = options.pairs;
        let one = |config| Part::Failures(Box::new(FaultPointConfig { pairs, ..config }));
        arrays.extend(choice.failures().map(one));
    }
    let draws = choice.swarm();
    let seeds = if draws.is_empty() { 0 } else { seeds };
    if arrays.is_empty() && seeds == 0 {
        return Err(Failure::input(
            "nothing to do: give more than 0 of --seeds or --crash-states, and a level that has \
             redundancy, or --failures",
        ));
    }
    let chunk = (seeds / CHUNKS).clamp(CHUNK.0, CHUNK.1);
    planted(options, All { arrays, draws, from: options.from, seeds, chunk })
}

/// The same with a bug planted, if one is to be.
#[cfg(debug_assertions)]
fn planted(options: &Check, mut all: All) -> Result<All, Failure> {
    if let Some(bug) = options.bug.as_deref().map(bugs::named).transpose()? {
        all.arrays = all.arrays.iter().map(|part| part.with_bug(bug)).collect();
        all.draws.iter_mut().for_each(|draw| draw.bug = Some(bug));
    }
    Ok(all)
}

#[cfg(not(debug_assertions))]
#[expect(clippy::unnecessary_wraps, reason = "with bugs to plant a name may be wrong")]
fn planted(_: &Check, all: All) -> Result<All, Failure> {
    Ok(all)
}

/// What a run came to.
struct Done {
    tally: Tally,
    /// The first of the broken promises, [`MOST_BROKEN`] at most.
    broken: Vec<Broken>,
    /// Parts run, and all.
    parts: (u64, u64),
    seconds: f64,
    threads: usize,
}

fn check(options: &Check, choice: &Choice) -> Result<(), Failure> {
    let parts = parts(options, choice)?;
    let cancel = interrupt::flag()?;
    let (all, threads) = (threads::Parts::count(&parts), parallel::threads(options.threads));
    let start = Instant::now();
    let mut done = Done {
        tally: Tally::default(),
        broken: Vec::new(),
        parts: (0, all),
        seconds: 0.0,
        threads,
    };
    done.parts.0 = spread(options.quiet, parts, threads, cancel, |_, report| {
        done.tally.add(&report.tally);
        let room = MOST_BROKEN - done.broken.len();
        done.broken.extend(report.broken.into_iter().take(room));
    })?;
    done.seconds = start.elapsed().as_secs_f64();
    let result = report(options, choice, &done);
    if cancel.load(Ordering::Relaxed) && done.broken.is_empty() {
        return Err(Failure::Interrupted);
    }
    result?;
    match done.tally.broken {
        0 => Ok(()),
        1 => Err(Failure::failed("a promise was broken")),
        count => Err(Failure::failed(format!("{count} promises were broken"))),
    }
}

/// Runs parts on threads, with progress, and hands their reports on in order; gives how many were run.
fn spread<P: threads::Parts>(
    quiet: bool,
    parts: P,
    threads: usize,
    cancel: &AtomicBool,
    take: impl FnMut(u64, <P::Part as threads::Part>::Report),
) -> Result<u64, Failure> {
    let bar = Bar::share(quiet);
    let show = |watch: &threads::Watch| {
        bar.show(watch.done as usize, watch.total as usize, watch.what.clone());
    };
    let given = threads::run(parts, threads, cancel, show, take);
    bar.clear();
    given
}

fn report(options: &Check, choice: &Choice, done: &Done) -> Result<(), Failure> {
    let written = match &options.json {
        Some(path) => output::write(path, &json::of_check(options, done)),
        None => Ok(()),
    };
    let printed = options.json.as_deref() == Some(Path::new("-"));
    if written.is_err() || !(printed || options.quiet && options.json.is_some()) {
        output::print(&summary::of_check(choice, done))?;
    }
    written
}

/// What a seed draws from; nothing for other cases, which name their array.
fn drawn_from(options: &Check, choice: &Choice, case: &Case) -> Result<Options, Failure> {
    let draws = choice.swarm();
    let Case::Seed(seed) = case else {
        let named =
            !options.level.is_empty() || !options.mode.is_empty() || options.metadata.is_some();
        return match named {
            false => Ok(Options::default()),
            true => Err(Failure::input(
                "--replay: its array has a level, a mode and metadata of its own",
            )),
        };
    };
    if draws.is_empty() {
        return Err(Failure::input("--replay: the swarm has only levels with redundancy"));
    }
    Ok(draws[(seed % draws.len() as u64) as usize])
}

fn replay(options: &Check, choice: &Choice, case: &Case) -> Result<(), Failure> {
    let drawn = drawn_from(options, choice, case)?;
    #[cfg(debug_assertions)]
    let drawn = Options { bug: options.bug.as_deref().map(bugs::named).transpose()?, ..drawn };
    let ended = Reproduction { case: case.clone(), options: drawn }.again();
    let mut text = ended.lines.join("\n");
    text.push('\n');
    let what = match case {
        Case::Seed(seed) => format!("seed {seed}"),
        _ => ended.array.clone(),
    };
    match (ended.broken, ended.outcome) {
        (Some(broken), _) => {
            text += &format!("array: {}\n", ended.array);
            output::print(&text)?;
            Err(Failure::failed(format!("{what}: {broken}")))
        }
        (None, Some(outcome)) => output::print(&(text + &summary::of_seed(&what, &outcome))),
        (None, None) => output::print(&(text + &format!("{what}: every promise was kept\n"))),
    }
}
