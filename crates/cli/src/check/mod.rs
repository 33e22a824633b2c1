//! `raidlab check`: whether the array code keeps its promises, whatever fails.

pub(crate) mod args;
#[cfg(feature = "seeded-bugs")]
mod bugs;
mod json;
mod summary;
pub(crate) mod threads;

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use raidlab_checker::crash::CrashConfig;
use raidlab_checker::nth::NthConfig;
use raidlab_checker::part::{self, Broken, Choice, Part, Report, Tally};
use raidlab_checker::swarm::{self, Mode, Options};
use raidlab_core::Level;

use args::Check;

use crate::failure::Failure;
use crate::progress::Bar;
use crate::{interrupt, output};

/// Without any figure given.
const SEEDS: u64 = 2_000;
const CRASH_STATES: u64 = 1_000_000;

/// Seeds of one part at least and at most, and about how many parts there are.
const CHUNK: (u64, u64) = (100, 10_000);
const CHUNKS: u64 = 10_000;

/// What is due to whoever asks for bugs in a build without any.
const NO_BUGS: &str =
    "this build has no seeded bugs; `cargo xtask bugs` makes one that has, and runs it";

pub(crate) fn run(options: &Check) -> Result<(), Failure> {
    output::check(&[("--json", options.json.as_deref())])?;
    if options.bug.is_some() && !options.bugs && options.replay.is_none() {
        return Err(Failure::input("--bug needs --bugs (look for it) or --replay SEED"));
    }
    if cfg!(not(feature = "seeded-bugs")) && (options.bugs || options.bug.is_some()) {
        return Err(Failure::input(NO_BUGS));
    }
    if options.bugs {
        return bugs(options);
    }
    let choice = choice(options)?;
    match options.replay {
        Some(seed) => replay(options, &choice, seed),
        None => check(options, &choice),
    }
}

#[cfg(feature = "seeded-bugs")]
fn bugs(options: &Check) -> Result<(), Failure> {
    bugs::run(options)
}

#[cfg(not(feature = "seeded-bugs"))]
fn bugs(_: &Check) -> Result<(), Failure> {
    Err(Failure::input(NO_BUGS))
}

/// Levels and modes, when they go together.
fn choice(options: &Check) -> Result<Choice, Failure> {
    let choice = Choice { levels: options.level.clone(), modes: options.mode.clone() };
    if let Some(mode) = choice.misfit() {
        let fitting = Level::ALL.iter().filter(|level| mode.fits(**level)).map(ToString::to_string);
        let fitting: Vec<String> = fitting.collect();
        let (mode, fitting) = (mode.name(), fitting.join(", "));
        return Err(Failure::input(format!("--mode {mode}: only {fitting} can have it")));
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

/// Threads to use.
fn threads(options: &Check) -> usize {
    let own = || std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    options.threads.map_or_else(own, |threads| threads as usize)
}

/// Everything to be run, the longest first.
fn parts(options: &Check, choice: &Choice) -> Result<Vec<Part>, Failure> {
    let all = !options.failures && options.seeds.is_none() && options.crash_states.is_none();
    let seeds = options.seeds.unwrap_or(if all { SEEDS } else { 0 });
    let states = options.crash_states.unwrap_or(if all { CRASH_STATES } else { 0 });
    if options.from.checked_add(seeds).is_none() {
        return Err(Failure::input(format!(
            "--from {}: too large for {seeds} seeds",
            options.from
        )));
    }
    let mut parts = Vec::new();
    if states > 0 {
        let arrays: Vec<CrashConfig> = choice.crashes().collect();
        let share = states.div_ceil(arrays.len().max(1) as u64);
        let with_share = |array| Part::Crashes(Box::new(CrashConfig { states: share, ..array }));
        parts.extend(arrays.into_iter().map(with_share));
        let fits = choice.levels.is_empty() || choice.levels.contains(&Level::Raid5);
        if fits && (choice.modes.is_empty() || choice.modes.contains(&Mode::None)) {
            parts.push(Part::Hole(Box::new(part::write_hole())));
        }
    }
    if all || options.failures {
        let pairs = options.pairs;
        let one = |config| Part::Failures(Box::new(NthConfig { pairs, ..config }));
        parts.extend(choice.failures().map(one));
    }
    let draws = choice.swarm();
    if seeds > 0 && !draws.is_empty() {
        let end = options.from + seeds;
        let chunk = (seeds / CHUNKS).clamp(CHUNK.0, CHUNK.1);
        let mut from = options.from;
        while from < end {
            let count = chunk.min(end - from);
            parts.push(Part::Seeds { from, count, options: draws.clone() });
            from += count;
        }
    }
    if parts.is_empty() {
        return Err(Failure::input(
            "nothing to do: give more than 0 of --seeds or --crash-states, and a level that has \
             redundancy, or --failures",
        ));
    }
    Ok(parts)
}

/// What a run came to.
struct Done {
    tally: Tally,
    broken: Vec<Broken>,
    /// Parts run, and all.
    parts: (usize, usize),
    seconds: f64,
    threads: usize,
}

fn check(options: &Check, choice: &Choice) -> Result<(), Failure> {
    let parts = parts(options, choice)?;
    let cancel = interrupt::flag()?;
    let (all, threads) = (parts.len(), threads(options));
    let start = Instant::now();
    let reports = spread(options.quiet, parts, threads, cancel)?;
    let mut done = Done {
        tally: Tally::default(),
        broken: Vec::new(),
        parts: (0, all),
        seconds: start.elapsed().as_secs_f64(),
        threads,
    };
    for report in reports.into_iter().flatten() {
        done.parts.0 += 1;
        done.tally.add(&report.tally);
        done.broken.extend(report.broken);
    }
    let result = report(options, choice, &done);
    if cancel.load(Ordering::Relaxed) && done.broken.is_empty() {
        return Err(Failure::Interrupted);
    }
    result?;
    match done.broken.len() {
        0 => Ok(()),
        1 => Err(Failure::failed("a promise was broken")),
        count => Err(Failure::failed(format!("{count} promises were broken"))),
    }
}

/// Runs parts on threads, with progress.
fn spread<P: threads::Part>(
    quiet: bool,
    parts: Vec<P>,
    threads: usize,
    cancel: &AtomicBool,
) -> Result<Vec<Option<P::Report>>, Failure> {
    let bar = Bar::share(quiet);
    let reports = threads::run(parts, threads, cancel, |watch| {
        bar.show(watch.done as usize, watch.total as usize, watch.what.clone());
    });
    bar.clear();
    reports
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

/// What a seed draws from, with the bug that is to be planted.
fn drawn_from(options: &Check, choice: &Choice, seed: u64) -> Result<Options, Failure> {
    let draws = choice.swarm();
    if draws.is_empty() {
        return Err(Failure::input("--replay: the swarm has only levels with redundancy"));
    }
    #[cfg_attr(not(feature = "seeded-bugs"), expect(unused_mut, reason = "nothing is planted"))]
    let mut draw = draws[(seed % draws.len() as u64) as usize];
    #[cfg(feature = "seeded-bugs")]
    {
        draw.bug = options.bug.as_deref().map(bugs::named).transpose()?;
    }
    #[cfg(not(feature = "seeded-bugs"))]
    let _ = options;
    Ok(draw)
}

fn replay(options: &Check, choice: &Choice, seed: u64) -> Result<(), Failure> {
    let draw = drawn_from(options, choice, seed)?;
    let (lines, ended) = swarm::replay(seed, &draw);
    let mut text = lines.join("\n");
    text.push('\n');
    match ended {
        Ok(outcome) => {
            text += &summary::of_seed(seed, &outcome);
            output::print(&text)
        }
        Err(violation) => {
            text += &format!("array: {}\n", violation.array);
            output::print(&text)?;
            Err(Failure::failed(format!("seed {seed}: {}", violation.what)))
        }
    }
}
