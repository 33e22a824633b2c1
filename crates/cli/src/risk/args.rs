//! The flags of `raidlab risk`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use raidlab_core::{Layout, Size};
use raidlab_risk::RepairOrder;
use raidlab_risk::prior::Class;

use super::values::{Hours, Percents};

/// How likely layouts are to lose data, by drives that fail and how they are replaced and rebuilt
///
/// Two questions: losing the array, and losing a sector or more (a defect that nobody had noticed is met when
/// nothing else holds its data). Each has a range, as failure rates of a model, latent errors and common causes
/// are not known. Ratios between layouts come first: they are better known.
///
/// Only drives and rebuilds are counted, not fire, theft, deletion, ransomware, software. RAID is not a backup.
///
/// How soon somebody replaces a failed drive is asked first, as it often outweighs everything else: --replace says
/// it. The time of a rebuild is given by --rebuild, or simulated under --load on the modelled drive.
#[derive(Args, Clone, Debug)]
#[command(after_help = "Examples:\n  \
    raidlab risk 'raid5(8)' 'raid6(8)' 'raid10(8)'        which is safer, by how much\n  \
    raidlab risk 'raid6(8)' --replace 1d..10d --spares 1  with a hot spare\n  \
    raidlab risk 'raid5(4)' --failures 50/3555491         50 of this model in so many drive-days\n  \
    raidlab risk 'raid5(4)' --afr-by-age 1,1,1.5,2,4 --age 3\n  \
    raidlab risk 'raid6(6)' --load 'random-write size=64MiB' --processes 4\n  \
    raidlab risk 'raid6+0(2x6)' --rebuild 20h..90h --scrub never --json -\n\n\
    Exit status: 0 done, 1 failed, 2 bad input, 130 interrupted.")]
pub(crate) struct RiskOptions {
    /// Layouts, as reports name them: raid5(8), "raid10(8) far2", raid6+0(2x6)
    #[arg(required = true, value_name = "LAYOUT")]
    pub(crate) layouts: Vec<Layout>,

    /// From a failure until a person has put another drive in: 36h, 3d, 2w, or a range such as 1d..10d
    /// [default: asked for on a terminal, else 3d]
    #[arg(long, value_name = "TIME", help_heading = "People")]
    pub(crate) replace: Option<Hours>,
    /// Hot spares of each array
    #[arg(long, value_name = "N", default_value_t = 0, help_heading = "People",
          value_parser = clap::value_parser!(u16).range(0..=16))]
    pub(crate) spares: u16,
    /// How often the wrong drive is pulled, of 100 replacements; the pulled one is then rebuilt
    #[arg(long, value_name = "PERCENT", default_value = "0", help_heading = "People")]
    pub(crate) wrong_pull: Percents,

    /// A drive of `raidlab drive list`, or a drive file (ends in .toml): its size, class and speed
    /// [default: nas-8tb-7200]
    #[arg(long, value_name = "NAME", help_heading = "Drives")]
    pub(crate) drive: Option<String>,
    /// What each drive holds, in place of --drive; needs --class and --rebuild
    #[arg(
        long,
        value_name = "SIZE",
        conflicts_with = "drive",
        requires = "class",
        help_heading = "Drives"
    )]
    pub(crate) size: Option<Size>,
    /// What failures and latent errors are taken from [default: that of the drive]
    #[arg(long, value_enum, help_heading = "Drives")]
    pub(crate) class: Option<ClassName>,
    /// Failures a year of 100 drives: one figure, or LOW,CENTRAL,HIGH [default: that of the class]
    #[arg(long, value_name = "PERCENT", help_heading = "Drives",
          conflicts_with_all = ["failures", "afr_by_age"])]
    pub(crate) afr: Option<Percents>,
    /// What was seen of this model: failures and drive-days, such as 50/3555491
    #[arg(long, value_name = "N/DAYS", conflicts_with = "afr_by_age", help_heading = "Drives")]
    pub(crate) failures: Option<String>,
    /// Failures a year of 100 drives in their first, second, .. year; the last goes on
    #[arg(
        long,
        value_name = "PERCENT,..",
        value_delimiter = ',',
        help_heading = "Drives",
        conflicts_with = "weibull"
    )]
    pub(crate) afr_by_age: Option<Vec<f64>>,
    /// Weibull shape of the age at failure: below 1 new drives fail most, above 1 old ones; the yearly rate
    /// is then the mean over the first five years [default: 1]
    #[arg(long, value_name = "SHAPE", help_heading = "Drives")]
    pub(crate) weibull: Option<f64>,
    /// Age of the drives at the start, in years; with --weibull or --afr-by-age
    #[arg(long, value_name = "YEARS", default_value_t = 0.0, help_heading = "Drives")]
    pub(crate) age: f64,
    /// Latent defects a year of 100 drives, by time and not by what is read: one figure, or LOW,CENTRAL,HIGH
    /// [default: that of the class]
    #[arg(long, value_name = "PERCENT", help_heading = "Drives")]
    pub(crate) latent: Option<Percents>,
    /// Bytes that a latent defect makes unreadable
    #[arg(long, value_name = "SIZE", default_value = "4KiB", help_heading = "Drives")]
    pub(crate) defect: Size,
    /// How unequal batches are: the standard deviation of the logarithm of what the first drives' failure
    /// rate is multiplied by; 0 for drives of mixed batches
    #[arg(long, value_name = "SIGMA", default_value_t = 0.7, help_heading = "Drives")]
    pub(crate) batch: f64,
    /// How often a failure takes another drive with it, of 100: one figure, or LOW,CENTRAL,HIGH
    #[arg(long, value_name = "PERCENT", default_value = "0.01,0.1,1", help_heading = "Drives")]
    pub(crate) common_cause: Percents,

    /// From one scrub to the next: 30d, 1w, or never
    #[arg(long, value_name = "TIME", default_value = "30d", help_heading = "Rebuilds and crashes")]
    pub(crate) scrub: Hours,
    /// How long a rebuild takes: 20h, a range 20h..90h, or samples 20h,25h,90h
    /// [default: from one full pass of the drive to three times that]
    #[arg(
        long,
        value_name = "TIME",
        conflicts_with = "load",
        help_heading = "Rebuilds and crashes"
    )]
    pub(crate) rebuild: Option<Hours>,
    /// Simulate rebuilds under this workload of `raidlab run --list`, with its parameters, or `idle`; with several,
    /// each is as likely
    #[arg(long, value_name = "WORKLOAD", help_heading = "Rebuilds and crashes")]
    pub(crate) load: Vec<String>,
    /// With --load: how many processes at once
    #[arg(long, value_name = "N", default_value_t = 1, requires = "load",
          help_heading = "Rebuilds and crashes", value_parser = clap::value_parser!(u32).range(1..=4096))]
    pub(crate) processes: u32,
    /// With --load: how many rebuilds are simulated for each layout and load
    #[arg(long, value_name = "N", default_value_t = 20, requires = "load",
          help_heading = "Rebuilds and crashes", value_parser = clap::value_parser!(u32).range(20..=1000))]
    pub(crate) seeds: u32,
    /// Whether drives that are missing together are rebuilt one after another, as md does unless both were
    /// there when it began, or at once
    #[arg(long, value_enum, default_value = "serial", help_heading = "Rebuilds and crashes")]
    pub(crate) repairs: Repairs,
    /// Crashes a year (power, kernel); without it the write hole is left out
    #[arg(long, value_name = "N", help_heading = "Rebuilds and crashes")]
    pub(crate) crashes: Option<f64>,
    /// What keeps parity consistent over a crash [default: bitmap]
    #[arg(long, value_enum, requires = "crashes", help_heading = "Rebuilds and crashes")]
    pub(crate) consistency: Option<Mode>,
    /// Of 100 crashes, how many meet writes under way
    #[arg(
        long,
        value_name = "PERCENT",
        default_value = "10",
        requires = "crashes",
        help_heading = "Rebuilds and crashes"
    )]
    pub(crate) writing: Percents,
    /// Of 100 crashes, how many a member does not come back from
    #[arg(
        long,
        value_name = "PERCENT",
        default_value = "1",
        requires = "crashes",
        help_heading = "Rebuilds and crashes"
    )]
    pub(crate) not_back: Percents,

    /// Missions; what-if rows and ratios are about the middle one
    #[arg(long, value_name = "YEARS,..", value_delimiter = ',', default_value = "1,5,10")]
    pub(crate) years: Vec<f64>,
    /// Draw everything from this seed
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,
    /// Write the answer to this file as JSON; `-`, or no FILE at all, prints it instead.
    /// A study behind it is not read: a FILE of .toml or .fio, or one that is there and is neither JSON nor
    /// named so, is refused
    #[arg(long, value_name = "FILE", num_args = 0..=1, default_missing_value = "-")]
    pub(crate) json: Option<PathBuf>,
    /// No progress, no question
    #[arg(long, short)]
    pub(crate) quiet: bool,
}

/// Classes of drives by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ClassName {
    /// Hard disks
    Hdd,
    /// SSDs
    Ssd,
}

impl ClassName {
    pub(super) const fn class(self) -> Class {
        match self {
            Self::Hdd => Class::HardDisk,
            Self::Ssd => Class::Ssd,
        }
    }
}

/// How many drives are rebuilt at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Repairs {
    /// All that are there
    Parallel,
    /// One after another
    Serial,
}

impl Repairs {
    pub(super) const fn order(self) -> RepairOrder {
        match self {
            Self::Parallel => RepairOrder::Parallel,
            Self::Serial => RepairOrder::Serial,
        }
    }
}

/// What keeps parity consistent over a crash.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Mode {
    /// Nothing: parity stays wrong until a scrub repairs it
    None,
    /// All of it is made consistent afterwards
    Resync,
    /// What a bitmap marks is made consistent afterwards
    Bitmap,
    /// A log of partial parity (raid5)
    Ppl,
    /// A journal device
    Journal,
}

impl RiskOptions {
    /// The drive that is modelled, as it was named.
    pub(super) fn drive_name(&self) -> &str {
        self.drive.as_deref().unwrap_or("nas-8tb-7200")
    }
}
