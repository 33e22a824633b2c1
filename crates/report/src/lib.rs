//! Reports of a results document: for the terminal, as one self-contained HTML file, as JSON.
//!
//! Everything here is a pure function of the document. Nothing looks at the environment, so the
//! caller says how wide the terminal is and whether it takes colour; the same document gives the
//! same bytes everywhere.
#![forbid(unsafe_code)]

mod advice;
mod conclusion;
mod csv;
mod error;
mod findings;
mod html;
mod json;
mod markdown;
pub mod number;
mod sheet;
mod shown;
mod terminal;
mod view;

use raidlab_results::document::Results;

pub use csv::{Csv, CsvRounds};
pub use error::{ReportError, ReportErrorKind};
pub use findings::findings;
pub use html::{Html, diff_html, html_with_residuals, replay_html};
pub use json::{Json, diff_json};
pub use markdown::Markdown;
pub use sheet::Sheet;
pub use terminal::Terminal;

/// Turns a results document into the text of a file or of the terminal.
pub trait Exporter {
    /// The whole report.
    ///
    /// # Errors
    /// A document that contradicts itself: an unlisted layout or workload, a cell twice or without
    /// samples, a number that is not finite, an unknown schema version. See [`ReportErrorKind`].
    fn export(&self, results: &Results) -> Result<String, ReportError>;

    /// Several documents in one text: one after the other, unless the form has room for all in one.
    ///
    /// # Errors
    /// As [`Exporter::export`].
    fn export_all(&self, documents: &[Results]) -> Result<String, ReportError> {
        let texts: Result<Vec<String>, ReportError> =
            documents.iter().map(|results| self.export(results)).collect();
        Ok(texts?.join("\n"))
    }
}
