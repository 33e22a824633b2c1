//! raidlab within another program: no terminal, no handler of signals, no process that ends.
//!
//! Every function gives what the command prints, or an error with its exit status. Nothing here installs
//! anything: Ctrl-C is the caller's, who sets a flag.

use std::cell::RefCell;
use std::fmt;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

use clap::Parser;
use raidlab_core::{SECTOR_BYTES, Sector};
use raidlab_engine::Engine;
use raidlab_results::Results;
use raidlab_sweep::{Job, Version};

use crate::args::{Arguments, Command};
use crate::failure::Failure;
use crate::{array, compare, interrupt, sweep};

/// Why something was not done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// The exit status that the command has: 2 for input that cannot be, 130 when it was stopped.
    pub status: u8,
    /// In words.
    pub what: String,
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)
    }
}

impl std::error::Error for Refused {}

impl From<Failure> for Refused {
    fn from(failure: Failure) -> Self {
        Self { status: failure.status(), what: failure.what().to_owned() }
    }
}

/// A study file's text, what errors call it, and where its drive files are.
#[derive(Clone, Debug)]
pub struct StudyText {
    /// All of it.
    pub text: String,
    /// Such as `mine.toml`.
    pub path: String,
    /// The directory of its drive files.
    pub directory: PathBuf,
}

/// The version of this program, as rows of sweeps name it.
pub fn version() -> Version {
    sweep::version()
}

/// Runs a study in virtual time, as `raidlab compare` does; `told` is told how many runs of how many are
/// finished.
///
/// # Errors
/// As of the command.
pub fn run_study(
    study: &StudyText,
    seed: Option<u64>,
    rounds: Option<u32>,
    threads: Option<u32>,
    stop: &'static AtomicBool,
    told: &mut dyn FnMut(usize, usize),
) -> Result<Results, Refused> {
    let mut parsed = raidlab_study::parse(&study.text, &study.path).map_err(Failure::input)?;
    parsed.origin.directory.clone_from(&study.directory);
    parsed.seed = seed.unwrap_or(parsed.seed);
    Ok(compare::in_process(parsed, rounds, threads, stop, told)?)
}

/// A study file with a `[sweep]`, for [`raidlab_sweep::run_shard`].
///
/// # Errors
/// As of `raidlab sweep`.
pub fn sweep_job(study: &StudyText) -> Result<Job, Refused> {
    let job = Job::parse(&study.text, &study.path, &study.directory, &version());
    Ok(job.map_err(Failure::from)?)
}

thread_local! {
    /// What a command prints, where it is kept.
    static KEPT: RefCell<Option<Vec<u8>>> = const { RefCell::new(None) };
}

/// Keeps what a command prints, where that is wanted.
pub(crate) fn keep(contents: &[u8]) -> bool {
    KEPT.with_borrow_mut(|kept| {
        kept.as_mut().map(|kept| kept.extend_from_slice(contents)).is_some()
    })
}

/// What `raidlab` prints for some arguments (those behind its name): of `advise`, `drive`, `layout`,
/// `risk`, `schema` and `study`, which touch nothing unless told to write a file; until `stop` is set.
///
/// # Errors
/// As of the command; other commands are refused.
pub fn command(arguments: &[String], stop: &'static AtomicBool) -> Result<String, Refused> {
    let words = std::iter::once("raidlab").chain(arguments.iter().map(String::as_str));
    let parsed = Arguments::try_parse_from(words).map_err(|error| Refused {
        status: 2,
        what: error.render().to_string().trim().to_owned(),
    })?;
    let is_quiet = matches!(
        parsed.command,
        Command::Advise(_)
            | Command::Drive(_)
            | Command::Layout(_)
            | Command::Risk(_)
            | Command::Schema(_)
            | Command::Study(_)
    );
    if !is_quiet {
        let what = "only advise, drive, layout, risk, schema and study can be run within a program"
            .to_owned();
        return Err(Refused { status: 2, what });
    }
    KEPT.set(Some(Vec::new()));
    let done = interrupt::stopped_by(stop, || crate::carry_out(&parsed));
    let kept = KEPT.take().unwrap_or_default();
    done?;
    Ok(String::from_utf8_lossy(&kept).into_owned())
}

/// An array of Linux md that is found on its members, for reading.
#[derive(Debug)]
pub struct OpenArray {
    engine: Engine,
    /// Its name, and its layout.
    pub title: String,
    /// The members that are missing or left out, in words.
    pub without: Vec<String>,
    /// Sectors around what is asked for.
    room: Vec<u8>,
}

impl OpenArray {
    /// Finds the array on some files or devices, which are opened for reading only.
    ///
    /// # Errors
    /// When there is no array on them, or they do not belong together.
    pub fn open(members: &[PathBuf]) -> Result<Self, Refused> {
        let (engine, title, without) = array::open_members(members)?;
        Ok(Self { engine, title, without, room: Vec::new() })
    }

    /// How many bytes it holds.
    pub fn bytes(&self) -> u64 {
        self.engine.array().capacity().bytes()
    }

    /// Reads from a place on; gives how many bytes there were.
    ///
    /// # Errors
    /// When a member cannot be read and nothing makes up for it.
    pub fn read_at(&mut self, at: u64, into: &mut [u8]) -> Result<usize, Refused> {
        let wanted = self.bytes().saturating_sub(at).min(into.len() as u64);
        let mut done = 0;
        while done < wanted {
            let (from, step) = (at + done, (wanted - done).min(MOST_AT_ONCE));
            let first = from - from % SECTOR_BYTES;
            let end = (from + step).next_multiple_of(SECTOR_BYTES).min(self.bytes());
            self.room.resize((end - first) as usize, 0);
            let read = self.engine.read_at(Sector(first / SECTOR_BYTES), &mut self.room);
            read.map_err(Failure::failed)?;
            let skipped = (from - first) as usize;
            let here = &self.room[skipped..skipped + step as usize];
            into[done as usize..(done + step) as usize].copy_from_slice(here);
            done += step;
        }
        Ok(wanted as usize)
    }
}

/// Bytes that are read from members at once.
const MOST_AT_ONCE: u64 = 1 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        text.split(' ').map(str::to_owned).collect()
    }

    static STOP: AtomicBool = AtomicBool::new(false);
    static STOPPED: AtomicBool = AtomicBool::new(true);

    #[test]
    fn what_commands_print_is_given() {
        let text = command(&words("layout raid5 --members 3 --rows 2"), &STOP).expect("a layout");
        assert!(text.contains("raid5(3)"), "{text}");
        let refused = |text: &str| command(&words(text), &STOP).expect_err("cannot be");
        assert_eq!(refused("layout raid5 --members 1").status, 2);
        assert!(refused("layout raid5 --memberz 1").what.contains("--members"));
        assert!(refused("doctor").what.contains("only advise"));
        let stopped = command(&words("risk raid5(4) --json -"), &STOPPED).expect_err("stopped");
        assert_eq!(stopped.status, 130);
    }

    #[test]
    fn a_study_gives_its_document() {
        let text = "title = \"One\"\nrounds = 1\ndrives = [{ name = \"nas\", model = \"nas-8tb-7200\", count = 2 }]\n\
                    layouts = [{ level = \"raid1\", members = 2 }]\n\
                    workloads = [{ kind = \"random-read\", size = \"16KiB\" }]\n";
        let study =
            StudyText { text: text.into(), path: "one.toml".into(), directory: PathBuf::new() };
        let mut seen = Vec::new();
        let results = run_study(&study, None, Some(2), Some(1), &STOP, &mut |done, total| {
            seen.push((done, total))
        });
        assert_eq!(results.expect("results").cells[0].samples.len(), 2);
        assert_eq!(seen.last(), Some(&(2, 2)));
        let error =
            run_study(&study, None, None, Some(1), &STOPPED, &mut |_, _| {}).expect_err("stopped");
        assert_eq!(error.status, 130);
    }
}
