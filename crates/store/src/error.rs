//! What can be wrong with a store.

use std::error::Error;
use std::fmt;
use std::io;
use std::path::Path;

/// What is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum StoreErrorKind {
    /// There is no such run.
    NotThere,
    /// A name that begins those of several runs.
    Ambiguous,
    /// Another process writes the run.
    Locked,
    /// The run was written with a schema version that this code does not read.
    SchemaVersion,
    /// A file does not hold what a run's does.
    Damaged,
    /// Shards of different works, versions or divisions.
    Mixed,
    /// The system refused.
    Io,
}

/// A store or a run that cannot be read or written.
#[derive(Debug)]
pub struct StoreError {
    /// What is wrong.
    pub kind: StoreErrorKind,
    /// Where, and what would be right.
    pub context: String,
    /// The error underneath.
    pub source: Option<io::Error>,
}

impl StoreError {
    pub(crate) fn new(kind: StoreErrorKind, context: impl Into<String>) -> Self {
        Self { kind, context: context.into(), source: None }
    }

    pub(crate) fn io(path: &Path, source: io::Error) -> Self {
        let context = path.display().to_string();
        Self { kind: StoreErrorKind::Io, context, source: Some(source) }
    }

    pub(crate) fn damaged(path: &Path, line: usize, why: impl fmt::Display) -> Self {
        let context = format!("{}:{line}: not what a run holds: {why}", path.display());
        Self::new(StoreErrorKind::Damaged, context)
    }

    pub(crate) fn schema(path: &Path, found: u32, known: u32) -> Self {
        let context = format!(
            "{}: the run has schema_version {found}; this version of raidlab reads {known}",
            path.display()
        );
        Self::new(StoreErrorKind::SchemaVersion, context)
    }
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.context)?;
        match &self.source {
            Some(source) => write!(f, ": {source}"),
            None => Ok(()),
        }
    }
}

impl Error for StoreError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.source.as_ref().map(|source| source as _)
    }
}
