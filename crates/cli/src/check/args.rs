//! The flags of `raidlab check`.

use std::path::PathBuf;

use clap::Args;
use raidlab_checker::device::Format;
use raidlab_checker::reproduction::Case;
use raidlab_checker::swarm::Mode;
use raidlab_core::Level;

/// Checks that the RAID code keeps its promises whatever fails, on simulated drives
///
/// Three ways: every member I/O of every operation fails in turn; power cuts at every moment of small
/// programs, with every part of what was not durable there or not, and members lost besides; seeds of
/// a swarm of random arrays, work and faults. What is promised stands in docs/reliability.md.
///
/// All three without --failures, --crash-states or --seeds; else those that are named. What is found
/// does not depend on the threads: the hash printed last is the same for any number.
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  \
    raidlab check                             all levels and modes, for a minute or so\n  \
    raidlab check --level raid5 --mode ppl    one level in one consistency mode\n  \
    raidlab check --metadata 1.2              all that Linux md's format can have, through its bytes\n  \
    raidlab check --seeds 1000000             a long swarm and nothing else\n  \
    raidlab check --replay 4711               one seed, with a line for every event\n  \
    raidlab check --bugs --sample 6           whether planted bugs are found\n  \
    raidlab check --bugs --metadata 1.2       the same through the bytes of md's superblocks\n\n\
    Exit status: 0 every promise kept, 1 one broken or a planted bug not found, 2 bad input,\n\
    130 interrupted.")]
pub(crate) struct Check {
    /// This level only; may be given more than once
    #[arg(long, value_name = "LEVEL", value_parser = parse_level)]
    pub(crate) level: Vec<Level>,
    /// This consistency mode only: none, resync, bitmap, ppl or journal; may be given more than once
    #[arg(long, value_name = "MODE", value_parser = parse_mode)]
    pub(crate) mode: Vec<Mode>,
    /// All records as bytes of this metadata format: own, or that of Linux md in version 0.90, 1.0, 1.1 or 1.2, in the
    /// modes and levels that it has [default: numbers, and in part bytes of the own format]
    #[arg(long, value_name = "FORMAT", value_parser = parse_format)]
    pub(crate) metadata: Option<Format>,
    /// Seeds of the swarm [default: 2000]
    #[arg(long, value_name = "N")]
    pub(crate) seeds: Option<u64>,
    /// The first seed
    #[arg(long, value_name = "SEED", default_value_t = 0)]
    pub(crate) from: u64,
    /// Crash states, over all arrays [default: 1000000]
    #[arg(long, value_name = "N")]
    pub(crate) crash_states: Option<u64>,
    /// Let member I/Os fail in turn
    #[arg(long)]
    pub(crate) failures: bool,
    /// Let two I/Os fail in each run instead of one
    #[arg(long, requires = "failures")]
    pub(crate) pairs: bool,
    /// Do one run again and print its log, one line for every event: a seed of the swarm, or what a broken promise
    /// printed
    #[arg(long, value_name = "SEED|CASE", conflicts_with_all = ["seeds", "crash_states", "failures", "bugs"])]
    pub(crate) replay: Option<Case>,
    /// Plant every seeded bug in turn and show what finds it; only in builds for that
    #[arg(long, conflicts_with_all = ["level", "mode", "failures", "from"])]
    pub(crate) bugs: bool,
    /// Plant so many of the bugs only
    #[arg(long, value_name = "K", requires = "bugs", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) sample: Option<u32>,
    /// Which sample: another number, another sample; all come round
    #[arg(long, value_name = "NUMBER", requires = "sample", default_value_t = 0)]
    pub(crate) by: u64,
    /// Plant this bug; with --bugs look for it
    #[arg(long, value_name = "NAME", conflicts_with = "sample")]
    pub(crate) bug: Option<String>,
    /// Print the table of bugs in Markdown
    #[arg(long, requires = "bugs")]
    pub(crate) markdown: bool,
    /// Threads; the results do not depend on it [default: one a CPU]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=256))]
    pub(crate) threads: Option<u32>,
    /// Write the figures to this file; `-` prints them instead of the summary
    #[arg(long, value_name = "FILE", conflicts_with = "replay")]
    pub(crate) json: Option<PathBuf>,
    /// No progress, and no summary when --json writes one
    #[arg(long, short)]
    pub(crate) quiet: bool,
}

fn parse_level(text: &str) -> Result<Level, String> {
    text.parse().map_err(|error: raidlab_core::LayoutError| error.reason)
}

fn parse_format(text: &str) -> Result<Format, String> {
    Format::ALL.into_iter().find(|format| format.name() == text).ok_or_else(|| {
        let known: Vec<&str> = Format::ALL.iter().map(|format| format.name()).collect();
        format!("not a format; known: {}", known.join(", "))
    })
}

fn parse_mode(text: &str) -> Result<Mode, String> {
    Mode::ALL.into_iter().find(|mode| mode.name() == text).ok_or_else(|| {
        let known: Vec<&str> = Mode::ALL.iter().map(|mode| mode.name()).collect();
        format!("not a mode; known: {}", known.join(", "))
    })
}
