//! Arguments of `raidlab plot`.

use std::path::PathBuf;

use clap::Args;

use crate::args::StoreDirectory;

/// Draws a figure of recorded results as SVG
///
/// RUN is a results document, as --json of compare and replay writes it, or a recorded run by its name in
/// `raidlab history`. A figure is made from the document alone; where it lacks what a figure shows, the error says
/// which figures it has the data for. The picture asks nothing of any other file, and follows light and dark.
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  \
    raidlab plot --list                          all figures\n  \
    raidlab plot last --list                     those of a recorded run\n  \
    raidlab plot last bars --svg bars.svg        layouts side by side, every round a dot\n  \
    raidlab plot out.json scaling --workload 'dd-read 6MiB' --svg scaling.svg\n  \
    raidlab plot measured.json residuals --against modelled.json --svg off.svg\n\n\
    Exit status: 0 done, 1 failed, 2 bad input.")]
pub(crate) struct Plot {
    /// A results document, or a recorded run
    #[arg(required_unless_present = "list")]
    pub(crate) run: Option<String>,
    /// Which figure: one of --list
    pub(crate) figure: Option<String>,
    /// List the figures, or those that RUN has the data for
    #[arg(long)]
    pub(crate) list: bool,
    /// Write the picture to this file; `-` prints it
    #[arg(long, value_name = "FILE", default_value = "-")]
    pub(crate) svg: PathBuf,
    /// A second run, for the figure `residuals`
    #[arg(long, value_name = "RUN")]
    pub(crate) against: Option<String>,
    /// Of a document of several replays: which, by its title
    #[arg(long, value_name = "TITLE")]
    pub(crate) study: Option<String>,
    /// Only this workload; may be repeated
    #[arg(long, value_name = "NAME")]
    pub(crate) workload: Vec<String>,
    /// Only this layout; may be repeated
    #[arg(long, value_name = "NAME")]
    pub(crate) layout: Vec<String>,
    /// Only this state: healthy, degraded, rebuilding; may be repeated
    #[arg(long, value_name = "STATE")]
    pub(crate) state: Vec<String>,
    /// Only this metric, such as mib_per_s; may be repeated
    #[arg(long, value_name = "NAME")]
    pub(crate) metric: Vec<String>,
    /// Only these process counts, separated by commas
    #[arg(long, value_name = "N,..", value_delimiter = ',')]
    pub(crate) processes: Vec<u32>,
    /// Draw at most this many panels
    #[arg(long, value_name = "N", default_value_t = 24, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) panels: u32,
    #[command(flatten)]
    pub(crate) store: StoreDirectory,
}
