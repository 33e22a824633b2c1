//! Arguments of `raidlab diff`.

use std::path::PathBuf;

use clap::Args;

use crate::args::{Color, StoreDirectory};

/// Says which cells changed from one run to another, by how much, and how sure
///
/// BEFORE and AFTER are results documents, as --json of compare and replay writes them, or recorded runs by their
/// names in `raidlab history`. Of the cells that are
/// called regressed or improved 5 % are false on average, at most (Benjamini and Hochberg over the document);
/// changes within the floor, and what is not shown, are not called. Modelled runs from one seed are compared
/// round by round, all others as two runs apart.
///
/// A run in virtual time beside one on real files or devices shows what the model is off for each cell
/// instead.
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  \
    raidlab diff yesterday.json today.json             what changed; exit status 4 if a cell regressed\n  \
    raidlab diff yesterday.json today.json --floor 5   changes below 5 % mean nothing\n  \
    raidlab diff 20261121 last                         two recorded runs\n  \
    raidlab diff modelled.json measured.json           what the model is off\n  \
    raidlab diff a.json b.json --json - | jq .counts   for other programs\n\n\
    Exit status: 0 no cell regressed, 1 failed, 2 bad input, 4 a cell regressed.")]
pub(crate) struct DiffOptions {
    /// What is compared with
    pub(crate) before: String,
    /// What is compared
    pub(crate) after: String,
    #[command(flatten)]
    pub(crate) store: StoreDirectory,
    /// Changes below this many percent mean nothing [default: the floor of each cell]
    #[arg(long, value_name = "PERCENT", value_parser = percent)]
    pub(crate) floor: Option<f64>,
    /// Write the comparison to this file; `-` prints it instead of the table
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
    /// Write a page with every cell, which needs nothing but a browser, to this file
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,
    /// No table: only the exit status tells
    #[arg(long, short)]
    pub(crate) quiet: bool,
    /// When to colour the table
    #[arg(long, value_enum, default_value = "auto")]
    pub(crate) color: Color,
}

fn percent(text: &str) -> Result<f64, String> {
    let known = text.trim().trim_end_matches('%').trim_end().parse::<f64>().ok();
    known
        .filter(|percent| (0.0..=1_000.0).contains(percent))
        .ok_or_else(|| format!("`{text}` is no number of percent from 0 to 1000, such as 5"))
}
