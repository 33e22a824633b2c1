//! Reading a run's file.
//!
//! A line counts when its newline is there: what stands behind the last newline was being written when the
//! process or the machine went, and is left out.

use std::collections::BTreeSet;
use std::path::Path;

use raidlab_results::Results;
use raidlab_study::CellRun;
use serde::Deserialize;
use serde_json::Value;

use crate::error::{StoreError, StoreErrorKind};
use crate::line::{End, Line, Outcome, Resumed, RunRecord, SCHEMA_VERSION};

/// A run as its file has it.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Stored {
    /// What it is.
    pub record: RunRecord,
    /// Its finished runs of cells, in the order they were written.
    pub runs: Vec<CellRun>,
    /// How often it went on after a stop.
    pub resumed: Vec<Resumed>,
    /// How it ended; `None` when it was killed, or is being written.
    pub end: Option<End>,
    /// Bytes of complete lines.
    pub complete_bytes: u64,
    /// Bytes behind them, of a line that was not written to its end.
    pub torn_bytes: u64,
    results: Option<Value>,
}

/// What the first line of every version has.
#[derive(Deserialize)]
struct Versioned {
    run: Version,
}

#[derive(Deserialize)]
struct Version {
    schema_version: u32,
}

/// Refuses what is not the first line of a run that this code reads.
pub(crate) fn check_version(path: &Path, line: &[u8]) -> Result<(), StoreError> {
    let first: Versioned =
        serde_json::from_slice(line).map_err(|error| StoreError::damaged(path, 1, error))?;
    match first.run.schema_version {
        SCHEMA_VERSION => Ok(()),
        found => Err(StoreError::schema(path, found, SCHEMA_VERSION)),
    }
}

impl Stored {
    /// The run in the bytes of a file.
    pub fn parse(path: &Path, bytes: &[u8]) -> Result<Self, StoreError> {
        let complete = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        let mut lines = bytes[..complete].split_inclusive(|byte| *byte == b'\n').enumerate();
        let Some((_, first)) = lines.next() else {
            let what = format!("{}: nothing was recorded before the run ended", path.display());
            return Err(StoreError::new(StoreErrorKind::Damaged, what));
        };
        check_version(path, first)?;
        let parse = |index: usize, line: &[u8]| -> Result<Line, StoreError> {
            serde_json::from_slice(line).map_err(|why| StoreError::damaged(path, index + 1, why))
        };
        let Line::Run(record) = parse(0, first)? else {
            return Err(StoreError::damaged(path, 1, "the record of the run is missing"));
        };
        let mut stored = Self {
            record: *record,
            runs: Vec::new(),
            resumed: Vec::new(),
            end: None,
            complete_bytes: complete as u64,
            torn_bytes: (bytes.len() - complete) as u64,
            results: None,
        };
        for (index, line) in lines {
            match parse(index, line)? {
                Line::Run(_) => return Err(StoreError::damaged(path, index + 1, "a second run")),
                Line::Cell(line) if line.cell >= stored.record.cells.len() => {
                    return Err(StoreError::damaged(path, index + 1, "a cell the run has not"));
                }
                Line::Cell(line) => {
                    let (round, cell, sample) = (line.round, line.cell, line.sample);
                    stored.runs.push(CellRun { round, cell, sample });
                }
                Line::Resumed(resumed) => {
                    // What was summed up before is no longer all.
                    (stored.end, stored.results) = (None, None);
                    stored.resumed.push(resumed);
                }
                Line::Results(results) => stored.results = Some(results),
                Line::End(end) => stored.end = Some(end),
            }
        }
        Ok(stored)
    }

    /// Whether it came to its end with all rounds.
    pub fn is_done(&self) -> bool {
        self.end.as_ref().is_some_and(|end| end.outcome == Outcome::Done)
    }

    /// How many rounds have all their cells, from the first on.
    pub fn complete_rounds(&self) -> u32 {
        let runs: BTreeSet<(u32, usize)> =
            self.runs.iter().map(|run| (run.round, run.cell)).collect();
        let cells = self.record.cells.len();
        let is_complete = |round: &u32| (0..cells).all(|cell| runs.contains(&(*round, cell)));
        if cells == 0 { 0 } else { (0..).take_while(is_complete).count() as u32 }
    }

    /// The process that wrote it last.
    pub fn last_writer(&self) -> u32 {
        self.resumed.last().map_or(self.record.pid, |resumed| resumed.pid)
    }

    /// The results document that was written at its end; `None` when there is none.
    ///
    /// # Errors
    /// [`StoreErrorKind::Damaged`] when it is none, or of a schema that this code does not read.
    pub fn results(&self) -> Result<Option<Results>, StoreError> {
        let Some(document) = &self.results else { return Ok(None) };
        let results = Results::from_json(&document.to_string()).map_err(|error| {
            let what = format!("run {}: {error}", self.record.id);
            StoreError::new(StoreErrorKind::Damaged, what)
        })?;
        Ok(Some(results))
    }
}
