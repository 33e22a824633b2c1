//! The forms for other programs that `compare`, `replay` and `show` write besides JSON and HTML.

use std::path::{Path, PathBuf};

use clap::Args;
use raidlab_report::{Csv, CsvRounds, Exporter, Markdown};
use raidlab_results::Results;

use crate::failure::Failure;
use crate::output;

/// Files that are asked for.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct Exports {
    /// Write a row for each cell with all its figures to this file, as comma-separated values; `-` prints it
    #[arg(long, value_name = "FILE")]
    pub(crate) csv: Option<PathBuf>,
    /// Write a row for each round of each cell to this file, as comma-separated values; `-` prints it
    #[arg(long, value_name = "FILE")]
    pub(crate) csv_rounds: Option<PathBuf>,
    /// Write tables to be pasted into an issue to this file, as Markdown; `-` prints it
    #[arg(long, value_name = "FILE")]
    pub(crate) markdown: Option<PathBuf>,
}

impl Exports {
    /// Each flag with its file and what writes it.
    fn all(&self) -> [(&'static str, Option<&Path>, &'static dyn Exporter); 3] {
        [
            ("--csv", self.csv.as_deref(), &Csv),
            ("--csv-rounds", self.csv_rounds.as_deref(), &CsvRounds),
            ("--markdown", self.markdown.as_deref(), &Markdown),
        ]
    }

    /// Each flag with its file.
    pub(crate) fn paths(&self) -> [(&'static str, Option<&Path>); 3] {
        self.all().map(|(flag, path, _)| (flag, path))
    }

    /// Writes what is asked for; all of it even when one file cannot be written.
    pub(crate) fn write(&self, documents: &[Results]) -> Result<(), Failure> {
        let mut written = Ok(());
        for (_, path, exporter) in self.all() {
            let Some(path) = path else { continue };
            let text = exporter.export_all(documents).map_err(Failure::failed);
            let done = text.and_then(|text| output::write(path, &text));
            written = written.and(done);
        }
        written
    }
}
