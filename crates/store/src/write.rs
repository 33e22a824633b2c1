//! Writing a run's file, which is locked meanwhile.
//!
//! Fault model: the process or the machine may go at any moment, and a write may be refused or end half-way.
//! Why it is safe: a line counts only with its newline, each is handed to the kernel by one write, and none that is
//! there is ever written again; so a file holds complete lines and at most one torn one behind them, which the process
//! that goes on cuts off under the lock. In real time a line is on the drive before the run goes on; in virtual
//! time, where a lost cell costs moments, once in a while. Tests: `tests/store.rs`, and with kills
//! `crates/cli/tests/store.rs::a_run_on_files_killed_twice_goes_on_to_its_end`.

use std::fs::{File, TryLockError};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use raidlab_results::{Clock, Results};
use raidlab_study::CellRun;
use serde::Serialize;

use crate::date::Date;
use crate::error::{StoreError, StoreErrorKind};
use crate::line::{CellRef, End, LineRef, Outcome, Resumed, RunRecord};
use crate::read::Stored;

/// In virtual time lines are on the drive after this time at most.
const BETWEEN_SYNCS: Duration = Duration::from_secs(1);
/// Who lists runs holds a lock for a moment: it is tried so often, with so long between.
const TRIES: u32 = 40;
const BETWEEN_TRIES: Duration = Duration::from_millis(5);

/// A run's file that is being written, locked.
#[derive(Debug)]
pub struct Writer {
    file: File,
    path: PathBuf,
    id: String,
    clock: Clock,
    /// Bytes of complete lines.
    length: u64,
    synced: Instant,
    /// How many cells a round has.
    cells: usize,
    /// How many are there of each round.
    done: Vec<usize>,
}

/// A run that was stopped, locked to go on.
#[derive(Debug)]
#[non_exhaustive]
pub struct Taken {
    /// What was recorded.
    pub stored: Stored,
    file: File,
    path: PathBuf,
}

/// Locks a file exclusively; `false` when another process has it.
pub(crate) fn lock(file: &File) -> io::Result<bool> {
    for attempt in 0..TRIES {
        match file.try_lock() {
            Ok(()) => return Ok(true),
            Err(TryLockError::Error(error)) => return Err(error),
            Err(TryLockError::WouldBlock) if attempt + 1 < TRIES => {
                std::thread::sleep(BETWEEN_TRIES);
            }
            Err(TryLockError::WouldBlock) => {}
        }
    }
    Ok(false)
}

/// The error of a run that another process writes.
pub(crate) fn locked(path: &Path) -> StoreError {
    let stored = std::fs::read(path).ok().and_then(|bytes| Stored::parse(path, &bytes).ok());
    let who =
        stored.map_or_else(String::new, |stored| format!(" (process {})", stored.last_writer()));
    let what = format!("{}: another raidlab{who} is writing this run", path.display());
    StoreError::new(StoreErrorKind::Locked, what)
}

fn line_of(line: &LineRef<'_>, path: &Path) -> Result<Vec<u8>, StoreError> {
    let mut bytes = Vec::new();
    let written = line.serialize(&mut serde_json::Serializer::new(&mut bytes));
    written.map_err(|error| {
        let what = format!("{}: cannot be recorded: {error}", path.display());
        StoreError::new(StoreErrorKind::Damaged, what)
    })?;
    bytes.push(b'\n');
    Ok(bytes)
}

impl Writer {
    /// A new run in a file that was just made and is empty.
    pub(crate) fn begin(path: PathBuf, file: File, record: &RunRecord) -> Result<Self, StoreError> {
        if !lock(&file).map_err(|error| StoreError::io(&path, error))? {
            return Err(locked(&path));
        }
        let mut writer = Self {
            file,
            path,
            id: record.id.clone(),
            clock: record.clock,
            length: 0,
            synced: Instant::now(),
            cells: record.cells.len(),
            done: Vec::new(),
        };
        writer.append(&line_of(&LineRef::Run(record), &writer.path)?, true)?;
        Ok(writer)
    }

    /// The name of the run.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// How many rounds are complete.
    pub fn complete_rounds(&self) -> u32 {
        self.done.iter().take_while(|done| **done >= self.cells).count() as u32
    }

    /// Records a finished run of a cell.
    ///
    /// # Errors
    /// When the system refuses, or the sample has a number that is none; what was recorded stays.
    pub fn cell(&mut self, run: &CellRun, seed: u64) -> Result<(), StoreError> {
        self.count(run.round);
        let line = LineRef::Cell(CellRef::new(run, seed, self.complete_rounds()));
        let recorded = line_of(&line, &self.path)
            .and_then(|line| self.append(&line, self.clock == Clock::Real));
        if recorded.is_err() {
            self.done[run.round as usize] -= 1;
        }
        recorded
    }

    fn count(&mut self, round: u32) {
        let round = round as usize;
        self.done.resize(self.done.len().max(round + 1), 0);
        self.done[round] += 1;
    }

    /// Records how the run ended, and its results where there are any.
    ///
    /// # Errors
    /// As [`cell`](Self::cell).
    pub fn end(
        mut self,
        outcome: Outcome,
        why: Option<String>,
        results: Option<&Results>,
    ) -> Result<(), StoreError> {
        let mut lines = Vec::new();
        if let Some(results) = results {
            lines = line_of(&LineRef::Results(results), &self.path)?;
        }
        let end = End { date: Date::now().text(), outcome, why, rounds: self.complete_rounds() };
        lines.extend(line_of(&LineRef::End(&end), &self.path)?);
        self.append(&lines, true)
    }

    /// Appends whole lines; on an error the file is as long as before, as far as the system lets it.
    fn append(&mut self, lines: &[u8], sync: bool) -> Result<(), StoreError> {
        let sync = sync || self.synced.elapsed() >= BETWEEN_SYNCS;
        let written = self
            .file
            .write_all(lines)
            .and_then(|()| if sync { self.file.sync_data() } else { Ok(()) });
        if let Err(error) = written {
            // The first error is the one to tell; a torn line is left out by those who read.
            let _ = self.file.set_len(self.length);
            return Err(StoreError::io(&self.path, error));
        }
        self.length += lines.len() as u64;
        if sync {
            self.synced = Instant::now();
        }
        Ok(())
    }
}

impl Taken {
    /// Locks a file that is open for reading and appending, and reads it.
    pub(crate) fn new(path: PathBuf, file: File) -> Result<Self, StoreError> {
        let io = |error| StoreError::io(&path, error);
        if !lock(&file).map_err(io)? {
            return Err(locked(&path));
        }
        let bytes = std::fs::read(&path).map_err(io)?;
        let stored = Stored::parse(&path, &bytes)?;
        Ok(Self { stored, file, path })
    }

    /// Goes on: cuts off a line that was not written to its end, and records who goes on.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn go_on(self, command: Vec<String>) -> Result<Writer, StoreError> {
        let Self { stored, file, path } = self;
        if stored.torn_bytes > 0 {
            let cut = file.set_len(stored.complete_bytes).and_then(|()| file.sync_all());
            cut.map_err(|error| StoreError::io(&path, error))?;
        }
        let complete = stored.complete_rounds();
        let mut writer = Writer {
            file,
            path,
            id: stored.record.id.clone(),
            clock: stored.record.clock,
            length: stored.complete_bytes,
            synced: Instant::now(),
            cells: stored.record.cells.len(),
            done: Vec::new(),
        };
        stored.runs.iter().for_each(|run| writer.count(run.round));
        let (date, pid) = (Date::now().text(), std::process::id());
        let resumed = Resumed { date, pid, command, complete };
        writer.append(&line_of(&LineRef::Resumed(&resumed), &writer.path)?, true)?;
        Ok(writer)
    }
}
