//! The flags of `raidlab tune`.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use raidlab_core::Size;

/// Finds the setting with which a layout reads as fast as it can
#[derive(Args, Debug)]
pub(crate) struct Tune {
    #[command(subcommand)]
    pub(crate) command: TuneCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum TuneCommand {
    Readahead(Readahead),
}

/// Doubles the window of read-ahead until that gains nothing more, and names the smallest that is as good
///
/// On modelled drives, in virtual time: each process copies a file of its own to /dev/null. The search begins
/// at what the kernel reads ahead on the layout by itself; it ends when two windows in a row gain less
/// than --gain over the best before, or at --most; then three quarters of the best are tried. The knee is
/// the smallest window within --margin of the best.
///
/// Without STUDY: the layouts of the default study, or one named by --layout, on Linux of today.
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  \
    raidlab tune readahead                                    today's Linux, the default layouts\n  \
    raidlab tune readahead --layout 'raid10(4) far2' --drives ssd-sata-1tb\n  \
    raidlab tune readahead studies/replay/freebsd-2007.toml --layout gmirror2-rr\n  \
    raidlab tune readahead mine.toml --processes 4 --json - | jq '.layouts[].knee'\n\n\
    Exit status: 0 done, 1 failed, 2 bad input.")]
pub(crate) struct Readahead {
    /// A study file (TOML), for its layouts, drives and host; its workloads do not count
    pub(crate) study: Option<PathBuf>,
    /// With STUDY, the name of one of its layouts, may be repeated [default: all]; without, a layout as
    /// reports name it: single, raid5(4), "raid10(4) far2 chunk=64K"
    #[arg(long, short, value_name = "LAYOUT")]
    pub(crate) layout: Vec<String>,
    /// Without STUDY: what the drives are, one of `raidlab drive list` or a drive file (ends in .toml)
    /// [default: nas-8tb-7200]
    #[arg(long, alias = "drive", value_name = "MODEL", conflicts_with = "study")]
    pub(crate) drives: Option<String>,
    /// Without STUDY: the kernel of the host, such as linux-2.6.20 or freebsd-6.2 [default: linux-6.1]
    #[arg(long, value_name = "KERNEL", conflicts_with = "study")]
    pub(crate) kernel: Option<String>,
    /// How many read at once, each a file of its own
    #[arg(long, short = 'n', value_name = "N", default_value_t = 1,
          value_parser = clap::value_parser!(u32).range(1..=64))]
    pub(crate) processes: u32,
    /// Bytes of each file
    #[arg(long, value_name = "SIZE", default_value = "512MiB")]
    pub(crate) size: Size,
    /// Less than this, in percent of the best before, is no gain
    #[arg(long, value_name = "PERCENT", default_value_t = 2.0)]
    pub(crate) gain: f64,
    /// What is within this of the best, in percent, is as good
    #[arg(long, value_name = "PERCENT", default_value_t = 2.0)]
    pub(crate) margin: f64,
    /// No window is larger than this
    #[arg(long, value_name = "SIZE", default_value = "32MiB")]
    pub(crate) most: Size,
    /// How many seeds each window is measured with: the angles of the drives at the start
    #[arg(long, value_name = "N", default_value_t = 3,
          value_parser = clap::value_parser!(u32).range(1..=100))]
    pub(crate) seeds: u32,
    /// Draw the seeds from this instead of the study's
    #[arg(long, value_name = "N")]
    pub(crate) seed: Option<u64>,
    /// Where to run; only `virtual` (modelled drives) is supported
    #[arg(long, value_name = "virtual", default_value = "virtual")]
    pub(crate) on: String,
    /// Write what was found to this file as JSON; `-`, or no FILE at all, prints it instead.
    /// A study behind it is not read: a FILE of .toml or .fio, or one that is there and is neither JSON nor
    /// named so, is refused
    #[arg(long, value_name = "FILE", num_args = 0..=1, default_missing_value = "-")]
    pub(crate) json: Option<PathBuf>,
    /// Threads; the results do not depend on it [default: one a CPU]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=256))]
    pub(crate) threads: Option<u32>,
    /// No progress, and no table when --json writes a file
    #[arg(long, short)]
    pub(crate) quiet: bool,
}
