//! The flags of `raidlab sweep` and `raidlab merge`.

use std::path::PathBuf;

use clap::Args;
use raidlab_sweep::script::Starter;

/// Runs many studies of one file with a [sweep], in virtual time, on all cores or in shards on many machines
///
/// [sweep] names keys of the study and the values they take: lists, ranges, products of these, and
/// samples. Each combination is a point, a study of its own, and each cell of it gives a row in DIR.
/// What a row says depends on its own keys, the drive files and the version only.
///
/// Rows are written once. Whatever stops a run, the same command does what is missing and nothing else,
/// and the rows are byte for byte those of a run that was never stopped. A cell that cannot be, or
/// during which the process ended twice, has a row that says so. `raidlab merge DIR` reports, and writes
/// JSON lines and CSV.
#[derive(Args, Clone, Debug)]
#[command(after_help = "Examples:\n  \
    raidlab sweep mine.toml --dry-run               how many cells, and how long\n  \
    raidlab sweep mine.toml --out rows              on all cores of this machine\n  \
    raidlab sweep mine.toml --show 17               point 17 as a study file, for raidlab compare\n  \
    raidlab sweep mine.toml --shard 3/100 --out rows   the third of a hundred parts, on one thread\n  \
    raidlab sweep mine.toml --script slurm --out rows > sweep.sbatch   a job array for Slurm\n  \
    raidlab sweep mine.toml --script parallel --out rows | sh          GNU parallel\n  \
    raidlab merge rows --csv rows.csv               a report, and all rows as CSV\n\n\
    Exit status: 0 done, 1 failed, 2 bad input, 130 interrupted; the same command goes on.")]
pub(crate) struct SweepOptions {
    /// A study file (TOML) with a [sweep]
    pub(crate) study: PathBuf,
    /// Where rows are written: a directory, which is made unless it is there
    #[arg(long, value_name = "DIR", required_unless_present_any = ["dry_run", "show"])]
    pub(crate) out: Option<PathBuf>,
    /// Run the I-th of N parts, on one thread; all parts must be told the same N
    #[arg(long, value_name = "I/N", value_parser = parse_shard)]
    pub(crate) shard: Option<(u64, u64)>,
    /// Divide the sweep into so many parts [default: as many as DIR has, or as take half a minute each]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..), conflicts_with = "shard")]
    pub(crate) shards: Option<u64>,
    /// Say how many cells there are and about how long they take, and run nothing else than a few of them
    #[arg(long, conflicts_with = "shard")]
    pub(crate) dry_run: bool,
    /// Print a point, numbered from 0, as a study file
    #[arg(long, value_name = "POINT", conflicts_with_all = ["shard", "dry_run"])]
    pub(crate) show: Option<u64>,
    /// Print a script that runs all parts by `slurm` or `parallel`
    #[arg(long, value_name = "slurm|parallel", conflicts_with_all = ["shard", "dry_run", "show"])]
    pub(crate) script: Option<Starter>,
    /// Run anew the cells from the first one on whose row tells of an error, in each part
    #[arg(long, conflicts_with_all = ["shard", "dry_run", "show", "script"])]
    pub(crate) retry: bool,
    /// Processes at once; rows do not depend on it [default: one a CPU]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024), conflicts_with = "shard")]
    pub(crate) threads: Option<u32>,
    /// Print what was run, or is to be, as JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// No progress
    #[arg(long, short)]
    pub(crate) quiet: bool,
    /// Tell the process that began this one how far it is; stop when it is gone
    #[arg(long, hide = true, requires = "shard")]
    pub(crate) worker: bool,
}

pub(crate) fn parse_shard(text: &str) -> Result<(u64, u64), String> {
    let parts =
        text.split_once('/').and_then(|(shard, of)| Some((shard.parse().ok()?, of.parse().ok()?)));
    match parts {
        Some((shard, of)) if (1..=of).contains(&shard) => Ok((shard, of)),
        _ => Err("must be a part and how many there are, such as 3/100".to_owned()),
    }
}

/// Joins the rows of a sweep, checks them and reports
///
/// The parts of one sweep may lie in several directories. Parts of different studies or versions, cut
/// off, changed or twice there are refused. Without --partial nothing is joined unless all parts are
/// there.
#[derive(Args, Clone, Debug)]
#[command(after_help = "Examples:\n  \
    raidlab merge rows                              a report, in Markdown\n  \
    raidlab merge rows --rows all.jsonl --csv all.csv --parquet all.parquet\n  \
    raidlab merge node1 node2 --partial             of what is there so far\n  \
    raidlab merge rows --json                       how many rows, errors and missing parts\n\n\
    Parquet: raidlab.read_rows(DIR) of the Python package gives a table that writes it.\n\n\
    Exit status: 0 done, 1 failed, or parts are missing, 2 bad input.")]
pub(crate) struct MergeOptions {
    /// Directories of `raidlab sweep --out`
    #[arg(required = true, value_name = "DIR")]
    pub(crate) directories: Vec<PathBuf>,
    /// Write all rows to this file, as JSON lines; `-` prints them
    #[arg(long, value_name = "FILE")]
    pub(crate) rows: Option<PathBuf>,
    /// Write a line for each figure of each cell to this file, as CSV; `-` prints them
    #[arg(long, value_name = "FILE")]
    pub(crate) csv: Option<PathBuf>,
    /// Write the same to this file, as Apache Parquet with typed columns (in builds with the feature parquet)
    #[arg(long, value_name = "FILE")]
    pub(crate) parquet: Option<PathBuf>,
    /// Join what is there although parts are missing
    #[arg(long)]
    pub(crate) partial: bool,
    /// Print counts as JSON in place of the report
    #[arg(long)]
    pub(crate) json: bool,
}
