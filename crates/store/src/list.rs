//! Listing runs by the first and the last line of their files.

use std::fs::{File, TryLockError};
use std::os::unix::fs::FileExt;
use std::path::Path;

use raidlab_results::Clock;
use serde::Deserialize;
use serde::de::IgnoredAny;

use crate::error::{StoreError, StoreErrorKind};
use crate::line::{End, Outcome, SCHEMA_VERSION};
use crate::read::{Stored, check_version};

/// What is read at a time, in bytes: most first lines fit.
const PIECE: u64 = 32 << 10;

/// A run in a list.
#[derive(Debug)]
pub struct Entry {
    /// Its name.
    pub id: String,
    /// What it is, or why that cannot be told.
    pub head: Result<Head, StoreError>,
}

/// What a list tells of a run.
#[derive(Clone, Debug)]
pub struct Head {
    /// When it began, in UTC.
    pub date: String,
    /// The title of the study.
    pub title: String,
    /// Which clock the times are by.
    pub clock: Clock,
    /// What it runs on.
    pub on: String,
    /// How many rounds are complete.
    pub rounds: u32,
    /// How many rounds there are at most.
    pub most_rounds: u32,
    /// How it is.
    pub state: State,
}

/// How a run is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum State {
    /// All its rounds are there.
    Done,
    /// Ctrl-C, or a request to terminate.
    Interrupted,
    /// An error, and which.
    Failed(String),
    /// A process writes it.
    Running,
    /// It was killed, or the machine went down.
    Killed,
}

impl State {
    /// In a word.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Interrupted => "interrupted",
            Self::Failed(_) => "failed",
            Self::Running => "running",
            Self::Killed => "killed",
        }
    }
}

#[derive(Deserialize)]
struct First {
    run: FirstRun,
}

#[derive(Deserialize)]
struct FirstRun {
    schema_version: u32,
    date: String,
    title: String,
    clock: Clock,
    on: String,
    rounds: [u32; 2],
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum Last {
    Run(IgnoredAny),
    Cell(Complete),
    Resumed(Complete),
    Results(IgnoredAny),
    End(End),
}

#[derive(Deserialize)]
struct Complete {
    complete: u32,
}

/// What a list tells of the run in a file.
pub(crate) fn head(path: &Path) -> Result<Head, StoreError> {
    let io = |error| StoreError::io(path, error);
    let file = File::open(path).map_err(io)?;
    let length = file.metadata().map_err(io)?.len();
    let Some(first) = first_line(&file, length).map_err(io)? else {
        if is_locked(&file) {
            let what = format!("{}: the run begins just now", path.display());
            return Err(StoreError::new(StoreErrorKind::Locked, what));
        }
        return Stored::parse(path, &[]).and_then(|_| Err(StoreError::damaged(path, 1, "nothing")));
    };
    let run = first_run(path, &first)?;
    let last = last_line(&file, length).map_err(io)?;
    let last = serde_json::from_slice(&last).map_err(|error| {
        let what = format!("{}: the last line is not what a run holds: {error}", path.display());
        StoreError::new(StoreErrorKind::Damaged, what)
    })?;
    let unfinished = || if is_locked(&file) { State::Running } else { State::Killed };
    let (rounds, state) = match last {
        Last::Run(_) => (0, unfinished()),
        Last::Cell(line) | Last::Resumed(line) => (line.complete, unfinished()),
        Last::Results(_) => {
            let bytes = std::fs::read(path).map_err(io)?;
            (Stored::parse(path, &bytes)?.complete_rounds(), unfinished())
        }
        Last::End(end) => {
            let state = match end.outcome {
                Outcome::Done => State::Done,
                // Somebody may be about to go on.
                _ if is_locked(&file) => State::Running,
                Outcome::Interrupted => State::Interrupted,
                Outcome::Failed => State::Failed(end.why.unwrap_or_default()),
            };
            (end.rounds, state)
        }
    };
    let FirstRun { date, title, clock, on, rounds: [_, most_rounds], .. } = run;
    Ok(Head { date, title, clock, on, rounds, most_rounds, state })
}

/// What the first line says. It is long, and read once as a rule.
fn first_run(path: &Path, line: &[u8]) -> Result<FirstRun, StoreError> {
    let first: Result<First, _> = serde_json::from_slice(line);
    match first {
        Ok(First { run }) if run.schema_version == SCHEMA_VERSION => Ok(run),
        Ok(First { run }) => Err(StoreError::schema(path, run.schema_version, SCHEMA_VERSION)),
        Err(error) => {
            // What another schema has may be of other kinds.
            check_version(path, line)?;
            Err(StoreError::damaged(path, 1, error))
        }
    }
}

/// Whether a process writes the file.
fn is_locked(file: &File) -> bool {
    match file.try_lock_shared() {
        Err(TryLockError::WouldBlock) => true,
        // Closing the file gives the lock back.
        Ok(()) | Err(TryLockError::Error(_)) => false,
    }
}

/// Up to the first newline; `None` when there is none.
fn first_line(file: &File, length: u64) -> std::io::Result<Option<Vec<u8>>> {
    let mut bytes = Vec::new();
    while (bytes.len() as u64) < length {
        let from = bytes.len();
        let more = PIECE.min(length - from as u64);
        bytes.resize(from + more as usize, 0);
        file.read_exact_at(&mut bytes[from..], from as u64)?;
        if let Some(at) = bytes[from..].iter().position(|byte| *byte == b'\n') {
            bytes.truncate(from + at);
            return Ok(Some(bytes));
        }
    }
    Ok(None)
}

/// The last line with a newline behind it.
fn last_line(file: &File, length: u64) -> std::io::Result<Vec<u8>> {
    let mut count = PIECE;
    loop {
        let from = length.saturating_sub(count);
        let mut bytes = vec![0; (length - from) as usize];
        file.read_exact_at(&mut bytes, from)?;
        if let Some(end) = bytes.iter().rposition(|byte| *byte == b'\n') {
            let begin = bytes[..end].iter().rposition(|byte| *byte == b'\n').map(|at| at + 1);
            if let Some(begin) = begin.or((from == 0).then_some(0)) {
                return Ok(bytes[begin..end].to_vec());
            }
        }
        if from == 0 {
            return Ok(Vec::new());
        }
        count *= 4;
    }
}
