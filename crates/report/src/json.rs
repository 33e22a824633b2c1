//! The results document itself.

use raidlab_results::document::Results;
use raidlab_results::{Diff, json};

use crate::{Exporter, ReportError};

/// The document as indented JSON with a newline at its end: what `--json` writes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Json;

impl Exporter for Json {
    /// # Errors
    /// `NotFinite` for a number that JSON cannot hold (it would silently become `null`).
    fn export(&self, results: &Results) -> Result<String, ReportError> {
        results.to_json().map_err(ReportError::from)
    }
}

/// What two documents tell of each other, as indented JSON with a newline at its end: what `diff --json` writes.
///
/// # Errors
/// `Json` when it does not become JSON.
pub fn diff_json(diff: &Diff) -> Result<String, ReportError> {
    json::to_text(diff).map_err(ReportError::json)
}
