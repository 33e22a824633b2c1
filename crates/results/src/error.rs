//! What can be wrong with a results document.

use std::error::Error;
use std::fmt;

/// What is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ResultsErrorKind {
    /// A value is infinite or not a number, which no document may hold.
    NotFinite,
    /// The text is not JSON, or not a results document.
    Malformed,
    /// The document is of a schema version that this code does not read.
    SchemaVersion,
}

/// A results document that cannot be written or read.
#[derive(Debug)]
pub struct ResultsError {
    /// What is wrong.
    pub kind: ResultsErrorKind,
    /// Where, and what would be right.
    pub context: String,
    /// The error underneath.
    pub source: Option<serde_json::Error>,
}

impl ResultsError {
    pub(crate) fn new(kind: ResultsErrorKind, context: impl Into<String>) -> Self {
        Self { kind, context: context.into(), source: None }
    }

    pub(crate) fn malformed(source: serde_json::Error) -> Self {
        let context = "this is not a results document of raidlab".into();
        Self { kind: ResultsErrorKind::Malformed, context, source: Some(source) }
    }
}

impl fmt::Display for ResultsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.context)?;
        match &self.source {
            Some(source) => write!(f, ": {source}"),
            None => Ok(()),
        }
    }
}

impl Error for ResultsError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.source.as_ref().map(|source| source as _)
    }
}
