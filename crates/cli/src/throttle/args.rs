//! The flags of `raidlab throttle`.

use std::path::PathBuf;

use clap::Args;

/// What a rebuild costs the work beside it, by how it is paced, and which setting to use
///
/// A cell of the study (a layout, a workload, a number of processes) is run while a member is rebuilt, with each
/// setting of each policy: md's rates as kernels before 6.16 have them, md's depth since 6.16, shares of the time as
/// mClock and ZFS deal them out (only the share, not their queues), and raidlab's own, which holds a p99 by feedback.
///
/// The time of a rebuild is what it would be if the work never stopped. Modelled drives, virtual time, no filesystem.
#[derive(Args, Clone, Debug)]
#[command(after_help = "Examples:\n  \
    raidlab throttle mine.toml                                  the first layout that can be rebuilt\n  \
    raidlab throttle mine.toml --layout 'raid6(8)' --workload random-read --processes 4\n  \
    raidlab throttle mine.toml --policy md,feedback --p99 100ms which setting holds 100 ms\n  \
    raidlab throttle mine.toml --json -\n\n\
    Exit status: 0 done, 1 failed, 2 bad input, 130 interrupted.")]
pub(crate) struct ThrottleOptions {
    /// A study file (TOML); without it the default study
    pub(crate) study: Option<PathBuf>,
    /// The name of one of its layouts [default: the first that survives the loss of a member]
    #[arg(long, value_name = "LAYOUT")]
    pub(crate) layout: Option<String>,
    /// The name of one of its workloads [default: the last]
    #[arg(long, value_name = "WORKLOAD")]
    pub(crate) workload: Option<String>,
    /// How many processes [default: the most of the study]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=256))]
    pub(crate) processes: Option<u32>,
    /// Which policies: md, md-max, md-6.16, mclock-like, zfs-like, feedback [default: all]
    #[arg(long, value_name = "POLICY,..", value_delimiter = ',')]
    pub(crate) policy: Option<Vec<String>>,
    /// What 99 of 100 requests may take while it is rebuilt, such as 100ms: the fastest setting that holds it
    #[arg(long, value_name = "TIME")]
    pub(crate) p99: Option<String>,
    /// Runs of each setting
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=100))]
    pub(crate) seeds: u32,
    /// Draw everything from this seed instead of the study's
    #[arg(long, value_name = "N")]
    pub(crate) seed: Option<u64>,
    /// Threads; the results do not depend on it [default: one a CPU]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=256))]
    pub(crate) threads: Option<u32>,
    /// Write the curves to this file as JSON; `-`, or no FILE at all, prints them instead.
    /// A study behind it is not read: a FILE of .toml or .fio, or one that is there and is neither JSON nor
    /// named so, is refused
    #[arg(long, value_name = "FILE", num_args = 0..=1, default_missing_value = "-")]
    pub(crate) json: Option<PathBuf>,
    /// No progress
    #[arg(long, short)]
    pub(crate) quiet: bool,
}
