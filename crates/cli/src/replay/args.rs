//! Arguments of `raidlab replay`.

use std::path::PathBuf;

use clap::Args;
use raidlab_explore::Ablation;

use crate::args::Color;

/// Replays published studies on modelled hosts: every cell beside what is known of its published figure
///
/// pata-2005, ite8212-2006, freebsd-2007, sas-2008 and sata-2018 ran years ago on machines that are modelled
/// here: drives, channels, buses, controllers, kernel, filesystem. Times are virtual. Every cell is run
/// with three seeds; printed are mean and spread, what was busiest, the published value and the signed
/// error of the cells whose figure is known, and what the numbers show.
///
/// --without leaves a mechanism out and says how every cell moves; --ablate does so for each mechanism that
/// the study has. Mechanisms: see docs/replay.md, or name one that does not exist.
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  \
    raidlab replay pata-2005                     every cell of a study\n  \
    raidlab replay --all --json all.json         all five, as one document\n  \
    raidlab replay sata-2018 --workload real_life --layout 'raid5(4)' --layout 'raid10(4)'\n  \
    raidlab replay ite8212-2006 --without channel-switch   how cells move without it\n  \
    raidlab replay sata-2018 --without parity-cost=x10     parity costs ten times the CPU time\n  \
    raidlab replay --all --out runs --shard 3/8  the third of eight parts, on any machine; then --all --out runs\n  \
    raidlab replay sata-2018 --ablate            each mechanism in turn, and parity cost x0 to x10\n\n\
    Exit status: 0 done, 1 failed, 2 bad input, 130 interrupted.")]
pub(crate) struct Replay {
    /// A published study: pata-2005, ite8212-2006, freebsd-2007, sas-2008, sata-2018
    #[arg(conflicts_with = "all")]
    pub(crate) name: Option<String>,
    /// Replay all of them
    #[arg(long)]
    pub(crate) all: bool,
    #[command(flatten)]
    pub(crate) exports: crate::exports::Exports,
    /// Run each cell with this many seeds [default: the study's, 3; with --ablate 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) seeds: Option<u32>,
    /// Only this workload; may be repeated
    #[arg(long, value_name = "NAME")]
    pub(crate) workload: Vec<String>,
    /// Only this layout; may be repeated
    #[arg(long, value_name = "NAME")]
    pub(crate) layout: Vec<String>,
    /// Only these process counts, separated by commas [default: all; with --ablate 1 and 2]
    #[arg(long, value_name = "N,..", value_delimiter = ',')]
    pub(crate) processes: Vec<u32>,
    /// Leave a mechanism out, such as read-ahead, journal, bus, channel-switch; may be repeated
    #[arg(long, value_name = "MECHANISM", value_parser = parse_ablation)]
    pub(crate) without: Vec<Ablation>,
    /// Leave out each mechanism that the study has, in turn, and show what moves; with parity, its cost
    /// from x0 to x10 too
    #[arg(long, conflicts_with = "without")]
    pub(crate) ablate: bool,
    /// Keep what each run measured in this directory, in shards that any number of processes share; run
    /// again, it does what is missing and reports
    #[arg(long, value_name = "DIR", conflicts_with_all = ["without", "ablate"])]
    pub(crate) out: Option<PathBuf>,
    /// Run the I-th of N parts and report nothing; all parts must be told the same N
    #[arg(long, value_name = "I/N", value_parser = crate::sweep::args::parse_shard, requires = "out")]
    pub(crate) shard: Option<(u64, u64)>,
    /// Threads; the results do not depend on it [default: one a CPU]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=256))]
    pub(crate) threads: Option<u32>,
    /// No progress, and no report on the terminal when --json or --html writes one
    #[arg(long, short)]
    pub(crate) quiet: bool,
    /// When to colour the report
    #[arg(long, value_enum, default_value = "auto")]
    pub(crate) color: Color,
}

fn parse_ablation(text: &str) -> Result<Ablation, String> {
    text.parse()
}
