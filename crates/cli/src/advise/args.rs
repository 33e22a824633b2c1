//! The flags of `raidlab advise`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use raidlab_advise::{Prefer, Software};
use raidlab_core::Size;

use crate::risk::values::{Hours, Percents};

/// Which RAID level, layout, chunk and number of drives to use, by how much it is better, and how sure that is
///
/// Every level, layout, chunk, width, spare, nesting and consistency mode that is possible with your drives is looked
/// at on modelled drives: all of them shortly, the better ones for longer, the last ones again on seeds that nobody
/// chose by. What is recommended is better by more than the model is off, or the answer is "either".
///
/// Nothing is written to any drive. Prices and watts are never guessed: give them, or they do not count.
#[derive(Args, Clone, Debug)]
#[command(after_help = "Examples:\n  \
    raidlab advise --drives 4 --work nas                         four 8 TB drives in a NAS\n  \
    raidlab advise --drives 4..8 --work vm --capacity 20TB --price 180\n  \
    raidlab advise --drives 6 --work surveillance --streams 32 --survive 2\n  \
    raidlab advise --drives 4 --drives-later 6 --work media      four now, two later\n  \
    raidlab advise --drives 4 --work vm --among 'raid10(4),raid6(4)'   only these, compared first\n  \
    raidlab advise --drives 4 --work vm,nas --software zfs       for both, with what RAIDZ does otherwise\n  \
    raidlab advise --drives 6 --work varmail                     a mail server, as filebench has it, on ext4\n  \
    raidlab advise --drives 4..6 --study mine.toml               the workloads of your own study\n  \
    raidlab advise --this-machine --work nas                     what /proc/mdstat and lsblk show\n  \
    raidlab advise mine.toml --html advice.html --json -\n  \
    raidlab advise --ask                                         questions, each with why it is asked\n  \
    raidlab advise --list                                        kinds of work, with sources\n\n\
    Exit status: 0 done, 1 failed, 2 bad input, or no layout meets the limits, 130 interrupted.")]
pub(crate) struct AdviseOptions {
    /// A file (TOML) of these options by their names, such as drives = "4..8"; flags go before it
    #[arg(value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,

    /// How many drives: 4, all of them at hand, or 4..8, as many as you would buy
    #[arg(long, value_name = "N|N..N", help_heading = "Drives")]
    pub(crate) drives: Option<String>,
    /// How many drives there may be later: what growing each layout costs
    #[arg(long, value_name = "N", help_heading = "Drives")]
    pub(crate) drives_later: Option<u16>,
    /// A drive of `raidlab drive list`, or a drive file (ends in .toml) [default: nas-8tb-7200]
    #[arg(long, value_name = "NAME", help_heading = "Drives")]
    pub(crate) drive: Option<String>,
    /// What each drive holds, where that is not what --drive holds
    #[arg(long, value_name = "SIZE", help_heading = "Drives", conflicts_with = "sizes")]
    pub(crate) size: Option<Size>,
    /// What each of the drives holds, where they differ: 4TB,4TB,8TB
    #[arg(long, value_name = "SIZE,..", value_delimiter = ',', help_heading = "Drives")]
    pub(crate) sizes: Option<Vec<Size>>,
    /// Take the drives from /proc/mdstat and lsblk of this machine
    #[arg(long, help_heading = "Drives", conflicts_with_all = ["lsblk", "mdstat"])]
    pub(crate) this_machine: bool,
    /// The same from what `lsblk -bJ -o NAME,TYPE,SIZE,ROTA,MODEL,MOUNTPOINT` printed on another machine
    #[arg(long, value_name = "FILE", help_heading = "Drives")]
    pub(crate) lsblk: Option<PathBuf>,
    /// Which arrays there are: a copy of /proc/mdstat
    #[arg(long, value_name = "FILE", requires = "lsblk", help_heading = "Drives")]
    pub(crate) mdstat: Option<PathBuf>,

    /// The kind of work; --list shows them; of several (vm,nas) each is answered for [default: nas]
    #[arg(long, value_name = "NAME,..", help_heading = "Work")]
    pub(crate) work: Option<String>,
    /// A study whose workloads are the work, each as long as it is and by the most processes that the study names,
    /// with its filesystem and host; its drives and layouts are not looked at
    #[arg(long, value_name = "FILE", help_heading = "Work")]
    pub(crate) study: Option<PathBuf>,
    /// Of the study only this workload
    #[arg(long, value_name = "NAME", help_heading = "Work")]
    pub(crate) workload: Option<String>,
    /// How many streams, people, machines or cameras [default: that of the work]
    #[arg(long, value_name = "N", help_heading = "Work",
          value_parser = clap::value_parser!(u32).range(1..=256))]
    pub(crate) streams: Option<u32>,
    /// Of 100 hours, in how many the work goes on; in the others a rebuild has the drives to itself
    /// [default: that of the work]
    #[arg(long, value_name = "PERCENT", help_heading = "Work")]
    pub(crate) busy: Option<Percents>,

    /// Usable space at least, such as 20TB
    #[arg(long, value_name = "SIZE", help_heading = "Limits")]
    pub(crate) capacity: Option<Size>,
    /// Any so many drives may fail [default: 1]
    #[arg(long, value_name = "N", help_heading = "Limits")]
    pub(crate) survive: Option<u16>,
    /// What 99 of 100 requests may take, also with a drive missing, such as 50ms
    #[arg(long, value_name = "TIME", help_heading = "Limits")]
    pub(crate) p99: Option<String>,
    /// What must be done at least: 400MB/s, or 2000 (reads and writes a second), as the work is counted
    #[arg(long, value_name = "RATE", help_heading = "Limits")]
    pub(crate) speed: Option<String>,
    /// What a drive costs, in any currency
    #[arg(long, value_name = "MONEY", help_heading = "Limits")]
    pub(crate) price: Option<f64>,
    /// What all drives may cost
    #[arg(long, value_name = "MONEY", requires = "price", help_heading = "Limits")]
    pub(crate) budget: Option<f64>,
    /// Watts of a drive
    #[arg(long, value_name = "W", requires = "watts", help_heading = "Limits")]
    pub(crate) drive_watts: Option<f64>,
    /// Watts that all drives may take; needs --drive-watts, as drive files have none
    #[arg(long, value_name = "W", requires = "drive_watts", help_heading = "Limits")]
    pub(crate) watts: Option<f64>,

    /// What will run the array: the figures are always those of md's levels, and what differs is said first
    #[arg(long, value_enum, help_heading = "Choice")]
    pub(crate) software: Option<SoftwareName>,
    /// What counts most where each is better at something [default: balance]
    #[arg(long, value_enum, help_heading = "Choice")]
    pub(crate) prefer: Option<PreferName>,
    /// Hot spares at most [default: 1]
    #[arg(long, value_name = "N", help_heading = "Choice",
          value_parser = clap::value_parser!(u16).range(0..=4))]
    pub(crate) spares: Option<u16>,
    /// Only these: layouts such as raid6(8), or whole levels such as raid10, raid5+0
    #[arg(long, value_name = "LAYOUT,..", value_delimiter = ',', help_heading = "Choice")]
    pub(crate) among: Option<Vec<String>>,
    /// Only these chunks [default: 64KiB, 256KiB, 512KiB, 2MiB]
    #[arg(long, value_name = "SIZE,..", value_delimiter = ',', help_heading = "Choice")]
    pub(crate) chunks: Option<Vec<Size>>,

    /// From a failure until a person has put another drive in [default: 3d]
    #[arg(long, value_name = "TIME", help_heading = "Risk")]
    pub(crate) replace: Option<Hours>,
    /// Failures a year of 100 drives: one figure, or LOW,CENTRAL,HIGH [default: that of the class]
    #[arg(long, value_name = "PERCENT", help_heading = "Risk")]
    pub(crate) afr: Option<Percents>,
    /// The mission in years [default: 5]
    #[arg(long, value_name = "YEARS", help_heading = "Risk")]
    pub(crate) years: Option<f64>,

    /// Ask on the terminal for what no flag says, each with a default and why it is asked
    #[arg(long)]
    pub(crate) ask: bool,
    /// List the kinds of work
    #[arg(long)]
    pub(crate) list: bool,
    /// Requests of a run at full length: more are surer and take longer
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(300..=1_000_000))]
    pub(crate) requests: Option<u64>,
    /// Draw everything from this seed [default: 1]
    #[arg(long, value_name = "N")]
    pub(crate) seed: Option<u64>,
    /// Threads; the answer does not depend on it [default: one a CPU]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=256))]
    pub(crate) threads: Option<u32>,
    /// Write the advice to this file as JSON; `-`, or no FILE at all, prints it instead.
    /// A study behind it is not read: a FILE of .toml or .fio, or one that is there and is neither JSON nor
    /// named so, is refused
    #[arg(long, value_name = "FILE", num_args = 0..=1, default_missing_value = "-")]
    pub(crate) json: Option<PathBuf>,
    /// Write a report that needs nothing but a browser to this file
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,
    /// No progress, no question
    #[arg(long, short)]
    pub(crate) quiet: bool,
}

/// Preferences by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum PreferName {
    /// All alike
    Balance,
    /// Speed and response times
    Speed,
    /// Usable space
    Capacity,
    /// Seldom losing data
    Safety,
}

impl PreferName {
    pub(super) const fn prefer(self) -> Prefer {
        match self {
            Self::Balance => Prefer::Balance,
            Self::Speed => Prefer::Speed,
            Self::Capacity => Prefer::Capacity,
            Self::Safety => Prefer::Safety,
        }
    }
}

/// What runs arrays, by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum SoftwareName {
    /// Linux md, with mdadm [default]
    Md,
    /// ZFS: mirrors and RAIDZ
    Zfs,
    /// A pool of files with a parity drive, such as SnapRAID and Unraid
    FilePool,
    /// A RAID controller
    Controller,
}

impl SoftwareName {
    pub(super) const fn software(self) -> Software {
        match self {
            Self::Md => Software::Md,
            Self::Zfs => Software::Zfs,
            Self::FilePool => Software::FilePool,
            Self::Controller => Software::Controller,
        }
    }
}
