//! `raidlab sweep` and `raidlab merge`: many studies of one file.

pub(crate) mod args;
mod local;
mod merge;

use std::io::{self, Read, Write};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use raidlab_store::shards::{MOST_SHARDS, Shards};
use raidlab_store::{StoreError, StoreErrorKind};
use raidlab_study::read_text;
use raidlab_sweep::script::{Script, Starter};
use raidlab_sweep::{
    Ended, Estimate, Job, SweepError, Version, count, estimate, process_cpu, run_shard,
};
use serde_json::json;

use crate::failure::Failure;
use crate::interrupt;
use crate::json::{millis, pretty};
use crate::output::{note, print};
use crate::parallel;
use args::SweepOptions;
pub(crate) use merge::run as merge;

/// So many cells one machine runs; more are a mistake, or work for many.
const MOST_ALONE: f64 = 1e7;
/// So many points a part has; more take days.
const MOST_IN_SHARD: u64 = 1_000_000;
/// How often a worker tells how far it is.
const BETWEEN_NOTES: Duration = Duration::from_millis(200);

impl From<SweepError> for Failure {
    fn from(error: SweepError) -> Self {
        match error {
            SweepError::Store(error) => error.into(),
            other => Self::input(other),
        }
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        match error.kind {
            StoreErrorKind::Mixed | StoreErrorKind::NotThere => Self::input(error),
            _ => Self::failed(error),
        }
    }
}

pub(crate) fn run(options: &SweepOptions) -> Result<(), Failure> {
    let cancel = interrupt::flag()?;
    if options.worker {
        stop_when_alone(cancel);
    }
    let job = load(&options.study)?;
    if let Some(number) = options.show {
        return show(&job, number);
    }
    match (options.shard, &options.out) {
        (Some((shard, of)), Some(out)) => one_shard(&job, options, out, (shard, of), cancel),
        (_, out) => whole(&job, options, out.as_deref(), cancel),
    }
}

/// Stops what goes on once nobody holds the other end of standard input any more.
fn stop_when_alone(cancel: &'static AtomicBool) {
    std::thread::spawn(move || {
        let _ = io::stdin().lock().read_to_end(&mut Vec::new());
        cancel.store(true, Ordering::Relaxed);
    });
}

fn load(path: &Path) -> Result<Job, Failure> {
    let text = read_text(path).map_err(Failure::input)?;
    let directory = path.parent().unwrap_or(Path::new(""));
    Ok(Job::parse(&text, &path.display().to_string(), directory, &version())?)
}

/// The version of this program.
pub(crate) fn version() -> Version {
    Version {
        raidlab: env!("CARGO_PKG_VERSION").to_owned(),
        commit: option_env!("RAIDLAB_COMMIT").map(str::to_owned),
    }
}

fn show(job: &Job, number: u64) -> Result<(), Failure> {
    let sweep = job.sweep();
    if number >= sweep.points() {
        let last = sweep.points() - 1;
        return Err(Failure::input(format!("--show {number}: the points are 0 to {last}")));
    }
    let text = sweep.study_file(&sweep.point(number)).map_err(Failure::input)?;
    print(&text)
}

/// Runs one shard on this thread.
fn one_shard(
    job: &Job,
    options: &SweepOptions,
    out: &Path,
    (shard, of): (u64, u64),
    cancel: &'static AtomicBool,
) -> Result<(), Failure> {
    check_shards(job, of)?;
    let shards = Shards::create(out, &job.head(of))?;
    let mut last = Instant::now();
    let mut told = |rows: u64| {
        if options.worker && last.elapsed() >= BETWEEN_NOTES {
            last = Instant::now();
            tell(&format!("rows {rows}"));
        }
    };
    let ran = run_shard(job, &shards, shard, cancel, options.worker, &mut told)?;
    let (cells_cpu, own_cpu) = (ran.cells_cpu.as_secs_f64(), process_cpu().as_secs_f64());
    if options.worker {
        tell(&format!("cpu {cells_cpu} {own_cpu}"));
    }
    match ran.ended {
        Ended::Stopped => Err(Failure::Interrupted),
        Ended::Before(manifest) | Ended::Finished(manifest) => {
            if options.json {
                print(&pretty(&json!({
                    "schema_version": 1, "shard": shard, "shards": of, "rows": manifest.rows,
                    "errors": manifest.errors, "rows_now": ran.rows,
                    "cells_cpu_s": millis(cells_cpu), "process_cpu_s": millis(own_cpu),
                })))?;
            } else if !options.quiet && !options.worker {
                note(&format!(
                    "shard {shard} of {of}: {} rows, {} run now",
                    manifest.rows, ran.rows
                ));
            }
            Ok(())
        }
    }
}

/// Tells who began this process; that nobody listens any more shows elsewhere.
fn tell(line: &str) {
    let mut out = io::stdout().lock();
    let _ = writeln!(out, "{line}").and_then(|()| out.flush());
}

/// A number of shards that this sweep can have.
fn check_shards(job: &Job, shards: u64) -> Result<(), Failure> {
    let points = job.sweep().points();
    let most = points.min(MOST_SHARDS);
    if shards > most {
        return Err(Failure::input(format!(
            "{shards} shards of {points} points: {most} are the most"
        )));
    }
    if points / shards > MOST_IN_SHARD {
        let least = points.div_ceil(MOST_IN_SHARD);
        return Err(Failure::input(format!(
            "{shards} shards of {points} points have more than {MOST_IN_SHARD} points each, which takes days: use at \
             least {least}"
        )));
    }
    Ok(())
}

/// Tells how much there is to do, and does it by processes of this machine.
fn whole(
    job: &Job,
    options: &SweepOptions,
    out: Option<&Path>,
    cancel: &'static AtomicBool,
) -> Result<(), Failure> {
    let there = out.map(Shards::open).and_then(Result::ok).map(|shards| shards.head().shards);
    let is_told = options.shards.or(there);
    // Nobody asks how long it takes.
    let is_known =
        options.quiet && is_told.is_some() && !options.dry_run && options.script.is_none();
    let expected = if is_known { count(job) } else { estimate(job, cancel) };
    if cancel.load(Ordering::Relaxed) {
        return Err(Failure::Interrupted);
    }
    let threads = parallel::threads(options.threads);
    // Enough for all threads to have work until the end.
    let fitting = expected.shards().max(expected.points.min(8 * threads as u64));
    let shards = is_told.unwrap_or(fitting);
    check_shards(job, shards)?;
    if let Some(starter) = options.script {
        return script(options, out, shards, &expected, starter);
    }
    if options.dry_run {
        return match options.json {
            true => print(&pretty(&expected_json(job, &expected, shards))),
            false => print(&(told(job, &expected, threads)? + &advice(options, shards))),
        };
    }
    let Some(out) = out else { return Err(Failure::input("--out DIR: where rows are written")) };
    if expected.cells > MOST_ALONE {
        return Err(Failure::input(format!(
            "{:.0} cells are more than the {MOST_ALONE:.0} that one machine runs{}: use fewer values, samples, or \
             many machines by --shard or --script",
            expected.cells,
            expected
                .seconds()
                .map_or_else(String::new, |seconds| format!(" (about {} of CPU)", time(seconds))),
        )));
    }
    if !options.quiet {
        note(told(job, &expected, threads)?.trim_end());
    }
    let head = job.head(shards);
    let shards = Shards::create(out, &head)?;
    if options.retry {
        let count = shards.reopen_errors()?;
        note(&format!("{count} shards with errors are run anew from the first one on"));
    }
    let total = local::run(options, out, &shards, &expected, threads, cancel)?;
    tell_total(options, out, &total, &expected, head.shards)
}

/// What all processes came to.
fn tell_total(
    options: &SweepOptions,
    out: &Path,
    total: &local::Total,
    expected: &Estimate,
    shards: u64,
) -> Result<(), Failure> {
    let own_cpu = total.process_cpu + process_cpu().as_secs_f64();
    let share = if own_cpu > 0.0 { total.cells_cpu / own_cpu } else { 0.0 };
    if options.json {
        return print(&pretty(&json!({
            "schema_version": 1, "points": expected.points, "rows": total.rows, "errors": total.errors,
            "shards": shards, "rows_now": total.rows_now, "crashes": total.crashes,
            "cells_cpu_s": millis(total.cells_cpu), "process_cpu_s": millis(own_cpu),
        })));
    }
    if !options.quiet {
        note(&format!(
            "{} rows in {}, {} of them with an error; {} run now in {} of CPU, {:.1} % of it in cells",
            total.rows,
            out.display(),
            total.errors,
            total.rows_now,
            time(own_cpu),
            share * 100.0
        ));
        note(&format!("`raidlab merge {}` prints the report", out.display()));
    }
    Ok(())
}

/// A time in words.
fn time(seconds: f64) -> String {
    match seconds {
        s if s < 0.1 => format!("{:.1} ms", s * 1e3),
        s if s < 120.0 => format!("{s:.1} s"),
        s if s < 7200.0 => format!("{:.0} minutes", s / 60.0),
        s if s < 2.0 * 86_400.0 => format!("{:.1} hours", s / 3600.0),
        s if s < 730.0 * 86_400.0 => format!("{:.0} days", s / 86_400.0),
        s => format!("{:.0} years", s / (365.25 * 86_400.0)),
    }
}

/// How much there is to do, in words.
fn told(job: &Job, expected: &Estimate, threads: usize) -> Result<String, Failure> {
    let axes: Vec<String> =
        job.sweep().axes().into_iter().map(|(keys, count)| format!("{count} of {keys}")).collect();
    let about = if expected.is_exact { "" } else { "about " };
    let mut text = format!(
        "{}: {} points ({}), {about}{:.0} cells\n",
        job.sweep().path(),
        expected.points,
        axes.join(" x "),
        expected.cells
    );
    if let Some(why) = &expected.why {
        let (impossible, of) = (expected.impossible, expected.looked_at);
        text += &format!(
            "{impossible} of {of} points looked at cannot be, and get a row that says so; the first: {why}\n"
        );
    }
    match (expected.cell_seconds, expected.seconds()) {
        (Some(cell), Some(all)) => {
            let processes = if threads == 1 { "process" } else { "processes" };
            text += &format!(
                "about {} of CPU a cell ({} tried), {} in all; with {threads} {processes} {}\n",
                time(cell),
                expected.tried,
                time(all),
                time(all / threads as f64)
            );
        }
        _ => {
            return Err(Failure::failed(
                "none of the cells that were tried could be run; --show N prints a point as a study, for raidlab \
                 compare",
            ));
        }
    }
    Ok(text)
}

/// How the work can be divided, in words.
fn advice(options: &SweepOptions, shards: u64) -> String {
    let (study, out) =
        (options.study.display(), options.out.as_deref().unwrap_or(Path::new("rows")));
    format!("{shards} shards: raidlab sweep {study} --shard 1/{shards} --out {}\n", out.display())
}

fn expected_json(job: &Job, expected: &Estimate, shards: u64) -> serde_json::Value {
    let axes = job.sweep().axes();
    let axes = axes.iter().map(|(keys, count)| json!({ "keys": keys, "values": count }));
    json!({
        "schema_version": 1,
        "points": expected.points,
        "axes": axes.collect::<Vec<_>>(),
        "cells": expected.cells,
        "cells_exact": expected.is_exact,
        "impossible": expected.impossible,
        "looked_at": expected.looked_at,
        "why": expected.why,
        "cell_cpu_s": expected.cell_seconds,
        "cpu_s": expected.seconds().map(millis),
        "shards": shards,
    })
}

fn script(
    options: &SweepOptions,
    out: Option<&Path>,
    shards: u64,
    expected: &Estimate,
    starter: Starter,
) -> Result<(), Failure> {
    let word = |path: &Path| {
        path.to_str().map(str::to_owned).ok_or_else(|| {
            Failure::input(format!("{}: no script can name this: it is not UTF-8", path.display()))
        })
    };
    let out = out.ok_or_else(|| Failure::input("--out DIR: where rows are written"))?;
    let (file, out) = (word(&options.study)?, word(out)?);
    let script =
        Script { program: "raidlab", file: &file, out: &out, shards, seconds: expected.seconds() };
    print(&script.text(starter))
}
