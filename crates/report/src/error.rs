//! The crate's one error type.

use std::error::Error;
use std::fmt;

use raidlab_results::{ResultsError, ResultsErrorKind};

/// What is wrong with a results document, for code that has to tell the cases apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ReportErrorKind {
    /// The document was written for a schema version that this code does not know.
    SchemaVersion,
    /// A cell or the baseline names a layout that the document does not list.
    UnknownLayout,
    /// A cell names a workload that the document does not list.
    UnknownWorkload,
    /// Two cells have the same layout, workload, metric, process count, state and settings.
    DuplicateCell,
    /// A cell has no samples.
    NoSamples,
    /// A number is infinite or not a number, which neither a table nor JSON can hold.
    NotFinite,
    /// There is no figure of that name, or the document lacks what it shows.
    NoSuchFigure,
    /// The form is no text.
    NotText,
    /// A spreadsheet could not be put together.
    Archive,
    /// The document could not be turned into JSON.
    Json,
}

/// A document that cannot be reported: what is wrong, where, and what would be right.
#[derive(Debug)]
pub struct ReportError {
    kind: ReportErrorKind,
    context: String,
    source: Option<Box<dyn Error + Send + Sync>>,
}

impl ReportError {
    pub(crate) fn new(kind: ReportErrorKind, context: impl Into<String>) -> Self {
        Self { kind, context: context.into(), source: None }
    }

    pub(crate) fn json(source: serde_json::Error) -> Self {
        Self {
            kind: ReportErrorKind::Json,
            context: "the results do not become JSON".to_owned(),
            source: Some(Box::new(source)),
        }
    }

    /// Which case it is.
    pub fn kind(&self) -> ReportErrorKind {
        self.kind
    }

    /// The place in the document and what would be right there.
    pub fn context(&self) -> &str {
        &self.context
    }
}

impl From<ResultsError> for ReportError {
    fn from(error: ResultsError) -> Self {
        let kind = match error.kind {
            ResultsErrorKind::NotFinite => ReportErrorKind::NotFinite,
            ResultsErrorKind::SchemaVersion => ReportErrorKind::SchemaVersion,
            _ => ReportErrorKind::Json,
        };
        Self { kind, context: error.context.clone(), source: Some(Box::new(error)) }
    }
}

impl fmt::Display for ReportError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot report these results: {}", self.context)
    }
}

impl Error for ReportError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.source.as_deref().map(|source| source as &(dyn Error + 'static))
    }
}
