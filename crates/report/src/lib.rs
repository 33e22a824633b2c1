//! Reports of a results document: for the terminal, as one self-contained HTML file, as JSON.
//!
//! Everything here is a pure function of the document, so the same document gives the same bytes everywhere.
//! Nothing reads the environment; the caller says how wide the terminal is and whether it shows colour. No report
//! knows a study, an array, or how a number was obtained: each value has the unit that its cell states.
//!
//! * [`conclusions`] says what a document shows, each sentence with the cells that its numbers are from.
//! * [`Exporter`] is what [`Terminal`], [`Html`], [`Json`], [`Csv`], [`CsvRounds`], [`Markdown`] and [`Ods`] have in
//!   common; [`FORMS`] lists those that are files.
//! * [`figure`] makes figures: data and scales, then SVG.
//! * [`glances`] are the texts of each cell; [`charts_html`], [`page_style`] and [`MARKS_SCRIPT`] are what other pages
//!   are made from.
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
pub mod figure;
mod findings;
mod glance;
mod html;
mod json;
mod markdown;
pub mod number;
#[cfg(not(target_arch = "wasm32"))]
mod ods;
mod risk;
mod sheet;
mod shown;
mod terminal;
mod trusted;
mod view;

use raidlab_results::document::Results;

pub use conclusion::{About, Conclusion, conclusions};
pub use csv::{Csv, CsvRounds};
pub use error::{ReportError, ReportErrorKind};
pub use figure::model::Figure;
pub use findings::findings;
pub use glance::{Glance, glances, trust_lines};
pub use html::{
    Html, MARKS_SCRIPT, charts_html, diff_html, html_with_residuals, html_with_words, page_style,
    policy_hash, replay_html,
};
pub use json::{Json, diff_json};
pub use markdown::Markdown;
#[cfg(not(target_arch = "wasm32"))]
pub use ods::Ods;
pub use sheet::Sheet;
pub use terminal::Terminal;

/// Turns results documents into a file, or into what is printed; from the documents alone.
pub trait Exporter {
    /// The bytes of the whole: one document after the other, unless the form has room for all in one.
    ///
    /// # Errors
    /// A document that contradicts itself: an unlisted layout or workload, a cell twice or without
    /// samples, a number that is not finite, an unknown schema version. See [`ReportErrorKind`].
    fn write(&self, documents: &[Results]) -> Result<Vec<u8>, ReportError>;

    /// A document as text.
    ///
    /// # Errors
    /// As [`Exporter::write`]; and [`ReportErrorKind::NotText`] of a form that is none.
    fn export(&self, results: &Results) -> Result<String, ReportError> {
        text(self.write(std::slice::from_ref(results))?)
    }

    /// Several documents as text.
    ///
    /// # Errors
    /// As [`Exporter::export`].
    fn export_all(&self, documents: &[Results]) -> Result<String, ReportError> {
        text(self.write(documents)?)
    }
}

fn text(bytes: Vec<u8>) -> Result<String, ReportError> {
    String::from_utf8(bytes)
        .map_err(|_| ReportError::new(ReportErrorKind::NotText, "this form is no text"))
}

/// One document after the other.
fn joined(
    documents: &[Results],
    export: impl Fn(&Results) -> Result<String, ReportError>,
) -> Result<Vec<u8>, ReportError> {
    let texts: Result<Vec<String>, ReportError> = documents.iter().map(export).collect();
    Ok(texts?.join("\n").into_bytes())
}

/// A form that results are written in.
pub struct Form {
    /// Its flag on the command line.
    pub flag: &'static str,
    /// What is written, in a sentence without its end.
    pub help: &'static str,
    /// What writes it.
    pub exporter: &'static (dyn Exporter + Sync),
}

/// All forms of files, in the order of the command line's help; its flags are made from this table.
#[cfg(not(target_arch = "wasm32"))]
pub const FORMS: [Form; 6] = [
    Form {
        flag: "json",
        help: "Write the results document to this file; `-` prints it instead of the table",
        exporter: &Json,
    },
    Form {
        flag: "html",
        help: "Write a report that needs nothing but a browser to this file",
        exporter: &Html,
    },
    Form {
        flag: "ods",
        help: "Write a spreadsheet to this file (ODS), its medians and percentages formulas over a sheet of raw rounds",
        exporter: &Ods,
    },
    Form {
        flag: "csv",
        help: "Write a row for each cell with all its figures to this file, as comma-separated values; `-` prints it",
        exporter: &Csv,
    },
    Form {
        flag: "csv-rounds",
        help: "Write a row for each round of each cell to this file, as comma-separated values; `-` prints it",
        exporter: &CsvRounds,
    },
    Form {
        flag: "markdown",
        help: "Write tables to be pasted into an issue to this file, as Markdown; `-` prints it",
        exporter: &Markdown,
    },
];
