//! Reports of a results document: for the terminal, as one self-contained HTML file, as JSON.
//!
//! Everything here is a pure function of the document, so the same document gives the same bytes everywhere.
//! Nothing reads the environment; the caller says how wide the terminal is and whether it shows colour. No report
//! knows a study, an array, or how a number was obtained: each value has the unit that its cell states.
//!
//! * [`Exporter`] is what [`Terminal`], [`Html`], [`Json`], [`Csv`], [`CsvRounds`] and [`Markdown`] have in common.
//! * [`conclusions`] says what a document shows, each sentence with the cells that its numbers are from.
//! * [`Sheet`] is a table of texts for other programs; [`findings`] puts into words what the numbers of a replay show.
//!
//! A document as `raidlab compare --json` writes it, shown as text:
//!
//! ```
//! use raidlab_report::{Exporter, Markdown, ReportErrorKind, Terminal};
//! use raidlab_results::Results;
//!
//! let json = r#"{
//!     "schema_version": 2, "raidlab": "0.1.0", "study": "One mirror", "seed": 1, "clock": "virtual",
//!     "host": {}, "settings": {}, "warnings": [], "baseline": ["raid1(2)"],
//!     "layouts": [{"name": "raid1(2)", "capacity": 8000000000000, "survives": 1}],
//!     "workloads": [{"name": "dd-read", "description": "reads from start to end"}],
//!     "cells": [{
//!         "layout": "raid1(2)", "workload": "dd-read", "processes": 1, "state": "healthy",
//!         "metric": "mib_per_s", "better": "higher", "unit": "MiB/s",
//!         "samples": [201.5], "median": 201.5, "mean": 201.5, "settings": {},
//!         "first_done_s": 20.3, "last_done_s": 20.3
//!     }]
//! }"#;
//! let mut results = Results::from_json(json)?;
//! let terminal = Terminal { width: Some(80), ..Terminal::default() }.export(&results)?;
//! assert!(terminal.contains("One mirror") && terminal.contains("MiB/s"));
//! assert!(Markdown.export(&results)?.contains("raid1(2)"));
//!
//! results.cells[0].layout = "raid5(3)".into();
//! let error = Markdown.export(&results).expect_err("no such layout");
//! assert_eq!(error.kind(), ReportErrorKind::UnknownLayout);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
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

pub use conclusion::{About, Conclusion, conclusions};
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
