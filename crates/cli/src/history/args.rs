//! The command line of `raidlab history`, `show` and `rm`.

use clap::Args;
use raidlab_store::Age;

use crate::args::StoreDirectory;
use crate::output::Outputs;

/// Lists the runs that were recorded: when, which study, on what, how many rounds, how they ended
///
/// A run that is `killed` or `failed` or `interrupted` goes on with `raidlab compare --resume`.
#[derive(Args, Debug)]
pub(crate) struct History {
    #[command(flatten)]
    pub(crate) store: StoreDirectory,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Reports a recorded run again, or a results document
///
/// Of a run that is not done, the rounds that are complete.
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  \
    raidlab show last\n  \
    raidlab show 20261122-2150 --html report.html\n  \
    raidlab show out.json --ods out.ods")]
pub(crate) struct Show {
    /// Its name in `raidlab history`, the beginning of it, or `last`; or the path of what --json wrote
    pub(crate) run: String,
    #[command(flatten)]
    pub(crate) store: StoreDirectory,
    #[command(flatten)]
    pub(crate) outputs: Outputs,
}

/// Removes recorded runs, never one that is being written
///
/// With --older-than or --keep it chooses them itself; with both a run goes that is old and not among the newest.
/// Runs of another schema are not chosen.
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  \
    raidlab rm 20261122-215013-k3f9\n  \
    raidlab rm --older-than 90d --yes\n  \
    raidlab rm --keep 100")]
pub(crate) struct Remove {
    /// Names in `raidlab history`, beginnings of them, or `last`
    #[arg(value_name = "RUN", required_unless_present_any = ["older_than", "keep"],
        conflicts_with_all = ["older_than", "keep"])]
    pub(crate) runs: Vec<String>,
    #[command(flatten)]
    pub(crate) store: StoreDirectory,
    /// Runs that began longer ago, such as 12h, 90d or 8w
    #[arg(long, value_name = "AGE")]
    pub(crate) older_than: Option<Age>,
    /// All runs but so many of the newest
    #[arg(long, value_name = "N")]
    pub(crate) keep: Option<usize>,
    /// Do not ask
    #[arg(long)]
    pub(crate) yes: bool,
}
