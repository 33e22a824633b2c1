//! What can be wrong with a workload.

use std::fmt;

/// Which rule a workload breaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum WorkloadErrorKind {
    /// No kind of workload has this name.
    UnknownKind,
    /// The block is empty, larger than [`LARGEST_BLOCK`](crate::LARGEST_BLOCK), or not a multiple
    /// of the block the array reads and writes.
    Block,
    /// The size is nothing, or not a multiple of what it must be a multiple of.
    Size,
    /// The span is malformed, nothing, or larger than the array.
    Span,
    /// No process, or more than [`MOST_PROCESSES`](crate::MOST_PROCESSES).
    Processes,
    /// The files of all processes do not fit into the span.
    DoesNotFit,
    /// A parameter that the workload does not have.
    UnknownParameter,
    /// A parameter whose value cannot be.
    Parameter,
    /// The workload cannot run on such a target; the reason says what it needs.
    NotSupported,
    /// A job file that cannot be read, with its line.
    JobFile,
}

/// A workload that cannot be, or cannot be on this array.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkloadError {
    /// Which rule is broken.
    pub kind: WorkloadErrorKind,
    /// The parameter, as study files and the command line call it, such as `block`.
    pub key: String,
    /// What is wrong and what would be right.
    pub reason: String,
    /// Of an unknown parameter or kind: those that are known.
    pub known: Vec<String>,
}

impl WorkloadError {
    pub(crate) fn new(
        kind: WorkloadErrorKind,
        key: impl Into<String>,
        reason: impl Into<String>,
    ) -> Self {
        Self { kind, key: key.into(), reason: reason.into(), known: Vec::new() }
    }
}

impl fmt::Display for WorkloadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.key, self.reason)
    }
}

impl std::error::Error for WorkloadError {}
