//! The command line of `raidlab calibrate`.

use std::path::PathBuf;

use clap::Args;

/// Fits a study's free parameters to its published cells, and writes them into its file
///
/// STUDY is a study file with `[[given]]` cells and `[[parameters]]` of which some have free = true; at
/// most half as many as cells, at least one. Cells with fit = false are only looked at. The cells
/// are run on the modelled host over and over, until the parameters bring them as near to what was
/// published as can be; one cell that the model does not explain bends the rest little. Then each
/// cell is predicted by parameters that were fitted without it.
///
/// In the file nothing changes but the numbers of free parameters, `calibrated = true` of the cells they
/// were fitted to, and the table `[calibration]`. When the fit is no better, the
/// numbers stay, and nothing is written unless the table is missing.
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  \
    raidlab calibrate mine.toml --dry-run          what would change, and by how much it is better\n  \
    raidlab calibrate mine.toml                    writes it into mine.toml\n  \
    raidlab calibrate mine.toml --output new.toml  leaves mine.toml as it is\n  \
    raidlab calibrate mine.toml --seeds 3          each cell three times, for less luck of the draw\n\n\
    Exit status: 0 done, also when nothing got better, 1 failed, 2 bad input, 130 interrupted\n\
    (the file is as it was).")]
pub(crate) struct Calibrate {
    /// A study file (TOML)
    pub(crate) study: PathBuf,
    /// Write no study file
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Write the study to this file instead; `-` prints it instead of the table
    #[arg(long, value_name = "FILE", conflicts_with = "dry_run")]
    pub(crate) output: Option<PathBuf>,
    /// Run each cell so often, each time with another seed; medians count
    #[arg(long, value_name = "N", default_value_t = 1,
          value_parser = clap::value_parser!(u32).range(1..=100))]
    pub(crate) seeds: u32,
    /// Threads; the result does not depend on it [default: one a CPU]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=256))]
    pub(crate) threads: Option<u32>,
    /// Write the figures to this file; `-` prints them instead of the table
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
    /// No progress, and no table when --json writes a file
    #[arg(long, short)]
    pub(crate) quiet: bool,
}
