//! The results document itself.

use raidlab_results::document::Results;
use raidlab_results::{Diff, Replays, json};

use crate::{Exporter, ReportError};

/// The document as indented JSON with a newline at its end: what `--json` writes. Several are one document of replays.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Json;

impl Exporter for Json {
    /// # Errors
    /// `NotFinite` for a number that JSON cannot hold (it would silently become `null`).
    fn write(&self, documents: &[Results]) -> Result<Vec<u8>, ReportError> {
        let text = match documents {
            [one] => one.to_json(),
            several => Replays::new(several.to_vec()).to_json(),
        };
        Ok(text?.into_bytes())
    }
}

/// What two documents tell of each other, as indented JSON with a newline at its end: what `diff --json` writes.
///
/// # Errors
/// `Json` when it does not become JSON.
pub fn diff_json(diff: &Diff) -> Result<String, ReportError> {
    json::to_text(diff).map_err(ReportError::json)
}
