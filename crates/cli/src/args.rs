//! The command line.

use std::ffi::OsString;
use std::path::PathBuf;

use crate::output::Outputs;
use clap::{Args, Parser, Subcommand, ValueEnum};
use raidlab_core::{Rotation, Size};
use raidlab_study::State;

/// Compares RAID layouts by evidence: one study, on modelled drives in virtual time or on real
/// files, through the same RAID code.
#[derive(Debug, Parser)]
#[command(name = "raidlab", version, long_version = long_version(), about, max_term_width = 100)]
#[command(after_help = "Examples:\n  \
    raidlab compare                       the default study on modelled drives\n  \
    raidlab compare --on /mnt/scratch     the same on member files, bytes verified\n  \
    raidlab run bonnie-2.00               one workload, printed as the original does\n  \
    raidlab layout raid5 --members 5      where every chunk and parity lies\n  \
    raidlab advise --drives 4 --work nas  which layout to use, and how sure that is\n  \
    raidlab risk 'raid5(8)' 'raid6(8)'    how likely each is to lose data\n  \
    raidlab replay pata-2005              a published study on its modelled machine\n  \
    raidlab check                         whether the RAID code keeps its promises\n  \
    raidlab doctor                        what this machine can run, and how to get the rest\n\n\
    --version names the commit, -V the version alone.")]
pub struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Compare(Compare),
    History(crate::history::args::History),
    Show(crate::history::args::Show),
    Rm(crate::history::args::Remove),
    Diff(crate::diff::args::DiffOptions),
    Plot(crate::plot::args::Plot),
    Run(crate::run::Run),
    Layout(Layout),
    Array(crate::array::args::Array),
    Check(crate::check::args::Check),
    Drive(Drive),
    Tune(crate::tune::args::Tune),
    Calibrate(crate::calibrate::args::Calibrate),
    Replay(crate::replay::args::Replay),
    Study(crate::study::StudyOptions),
    Sweep(crate::sweep::args::SweepOptions),
    Merge(crate::sweep::args::MergeOptions),
    Advise(crate::advise::args::AdviseOptions),
    Risk(crate::risk::args::RiskOptions),
    Throttle(crate::throttle::args::ThrottleOptions),
    Schema(crate::schema::Schema),
    Convert(crate::convert::Convert),
    Doctor(crate::doctor::Doctor),
    Completions(crate::shell::Completions),
    #[command(hide = true)]
    Man(crate::shell::ManPages),
}

/// The version with the commit that it was built from, where git knew.
pub(crate) fn long_version() -> &'static str {
    const VERSION: &str = env!("CARGO_PKG_VERSION");
    static TEXT: std::sync::LazyLock<String> = std::sync::LazyLock::new(|| {
        let commit = option_env!("RAIDLAB_COMMIT").filter(|commit| !commit.is_empty());
        match commit {
            Some(commit) => format!("{VERSION} (commit {commit})"),
            None => format!("{VERSION} (built without git, so the commit is not known)"),
        }
    });
    &TEXT
}

/// Runs a study and prints which layout is fastest for which work, by how much, and how sure
///
/// Without STUDY: single, linear and raid0 to raid10 of modelled 8 TB NAS drives, with
/// 1, 2 and 4 processes. Each round runs every cell once, in random order; the seed is printed.
///
/// With --on DIR the drives are files in a new directory below DIR, sized so that the workloads just
/// fit. They are removed at the end, also after Ctrl-C; nothing else in DIR is touched. The default
/// study takes some minutes there. What the first round measured is shown on standard error as soon as it is
/// complete, while the others go on.
///
/// With --on DEVICE,.. the drives are whole block devices or partitions, in this order: members, then
/// a spare if states besides healthy run, then a log device if a layout has a journal. Without
/// --destructive it only prints what would be overwritten. Devices that are mounted, swap, part of an
/// array, below the root filesystem or read-only are refused always; those that carry any known
/// signature unless --overwrite-signatures is given. Each must be confirmed by its serial number or
/// by-id name; the first and last MiB of each are saved before anything is written.
///
/// With --on virtual,DIR (or DEVICE,.. behind the comma) the study runs really and then in virtual time, with the
/// same seeds and sizes: two runs, each recorded. The report is that of the measured one, and then what the model
/// is off for each cell. Each FILE of --json, --html and so on holds the measured run; the modelled one stands
/// beside it with `.virtual` before the ending, and beside --json the residuals, with `.residuals`.
///
/// With --on kernel:6.12 (or 6.1) each cell runs in a guest of that Linux kernel, with its own md, page cache
/// and filesystems, in virtual time on the study's modelled drives. Nothing needs rights; `cargo xtask kernel`
/// builds what it needs, see docs/kernel-lab.md. With virtual,kernel:6.12 the model is compared with it.
///
/// Every run is recorded as it goes on: `raidlab history` lists runs, `raidlab show` reports one again. What was
/// stopped, whatever stopped it, goes on with --resume.
#[derive(Args, Clone, Debug)]
#[command(after_help = "Examples:\n  \
    raidlab compare                              the default study, virtual time\n  \
    raidlab compare mine.toml --json out.json    your study, results as JSON\n  \
    raidlab compare --on /mnt/scratch            member files in /mnt/scratch, real time\n  \
    raidlab compare --on virtual,/mnt/scratch    both, and what the model is off for each cell\n  \
    raidlab compare --on virtual,kernel:6.12     the model and Linux on the same modelled drives\n  \
    raidlab compare --on /dev/sdb,/dev/sdc raid1.toml   shows what it would overwrite\n  \
    raidlab compare --on /dev/sdb,/dev/sdc raid1.toml --destructive   does it, asking for serials\n  \
    raidlab compare --on /dev/sdb,/dev/sdc raid1.toml --destructive --yes --confirm-id WD-1,WD-2\n  \
    raidlab compare --on /dev/sdb,/dev/sdc raid1.toml --keep 'raid1(2)'   and which array it would leave\n  \
    raidlab compare --html report.html           one file, readable offline\n  \
    raidlab compare --size 1GiB --rounds 10      each process moves 1 GiB; 10 rounds\n  \
    raidlab compare --states healthy,degraded,rebuilding   with a member lost, and being rebuilt\n  \
    raidlab compare --json - | jq .cells         results for other programs\n  \
    raidlab compare --resume                     goes on with what was stopped last\n  \
    raidlab compare --csv cells.csv --csv-rounds rounds.csv   for spreadsheets and statistics\n  \
    raidlab compare --markdown -                 to be pasted into an issue\n\n\
    Exit status: 0 done, 1 failed or wrong bytes found, 2 bad input, 3 refused because\n\
    something might be destroyed (see --on DEVICE,..), 130 interrupted.")]
pub(crate) struct Compare {
    /// A study file (TOML), or `files`: files on a filesystem; without it the default study
    pub(crate) study: Option<PathBuf>,
    /// Where to run: `virtual` (modelled drives), a directory for member files, such as /mnt or
    /// ./virtual, block devices, such as /dev/sdb,/dev/sdc, or `kernel:6.12` (Linux in virtual time on
    /// modelled drives); `virtual` beside one of the others for both
    #[arg(long, value_name = "virtual|DIR|DEVICE,..|kernel:VERSION", default_value = "virtual")]
    pub(crate) on: OsString,
    /// Where the same study runs by the other clock, of a run that is one of two.
    #[arg(skip)]
    pub(crate) beside: Option<OsString>,
    #[command(flatten)]
    pub(crate) devices: Devices,
    /// Go on with a run that was stopped: its name, the beginning of it, or `last`; without RUN the newest
    /// that is not done. Study and options are those it was begun with, and study file, drives, kernel and
    /// program must be the same
    #[arg(long, value_name = "RUN", num_args = 0..=1, conflicts_with_all = BEGUN_WITH)]
    pub(crate) resume: Option<Option<String>>,
    #[command(flatten)]
    pub(crate) store: StoreDirectory,
    /// Do not record the run
    #[arg(long, conflicts_with = "store")]
    pub(crate) no_store: bool,
    /// Draw every random choice from this seed instead of the study's
    #[arg(long, value_name = "N")]
    pub(crate) seed: Option<u64>,
    /// Run each cell this often, exactly; 6 is the fewest that give an interval
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) rounds: Option<u32>,
    /// Bytes each process moves in every workload, such as 64MiB
    #[arg(long, value_name = "SIZE")]
    pub(crate) size: Option<Size>,
    /// States of the arrays, separated by commas: healthy, degraded, rebuilding [default: the
    /// study's]
    #[arg(long, value_name = "STATE,..", value_delimiter = ',', value_parser = parse_state)]
    pub(crate) states: Option<Vec<State>>,
    /// Run the workloads on this filesystem on the arrays: ext4, ext3, ext2, xfs, btrfs [default: the
    /// study's, or none]
    #[arg(long, value_name = "KIND")]
    pub(crate) filesystem: Option<String>,
    /// Threads for virtual time; the results do not depend on it [default: one a CPU]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=256))]
    pub(crate) threads: Option<u32>,
    /// In virtual time and with --on kernel:VERSION: write every request that drives get to this file; with both, those
    /// of modelled drives to FILE with `virtual` before its ending
    #[arg(long, value_name = "FILE")]
    pub(crate) trace: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) outputs: Outputs,
}

/// What a run that goes on has from when it was begun.
const BEGUN_WITH: [&str; 9] =
    ["trace", "study", "on", "seed", "rounds", "size", "states", "filesystem", "no_store"];

/// Where runs are recorded.
#[derive(Args, Clone, Debug)]
pub(crate) struct StoreDirectory {
    /// Where runs are recorded [default: RAIDLAB_STORE, or raidlab/runs in XDG_DATA_HOME, which is
    /// ~/.local/share unless set]
    #[arg(long, value_name = "DIR")]
    pub(crate) store: Option<PathBuf>,
}

/// What may be done to block devices.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Block devices")]
pub(crate) struct Devices {
    #[command(flatten)]
    pub(crate) consent: Consent,
    /// Also where filesystems, partition tables or members of arrays are on them
    #[arg(long)]
    pub(crate) overwrite_signatures: bool,
    /// When the study is done, leave this layout of it on the devices, whole, as an array of Linux md; its
    /// name as the report has it
    #[arg(long, value_name = "LAYOUT")]
    pub(crate) keep: Option<String>,
}

/// The word that block devices may be overwritten.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Block devices")]
pub(crate) struct Consent {
    /// Do it; without it nothing is written
    #[arg(long)]
    pub(crate) destructive: bool,
    /// Do not ask; needs --confirm-id
    #[arg(long, requires = "confirm_id", requires = "destructive")]
    pub(crate) yes: bool,
    /// Serial number or by-id name of each device, in their order; for a loop device its file
    #[arg(long, value_name = "ID,..", value_delimiter = ',', requires = "yes")]
    pub(crate) confirm_id: Option<Vec<String>>,
    /// Where the devices' first and last MiB are saved [default: raidlab in XDG_STATE_HOME, which is
    /// ~/.local/state unless set]
    #[arg(long, value_name = "DIR", requires = "destructive")]
    pub(crate) save_dir: Option<PathBuf>,
}

/// When to use colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Color {
    /// On a terminal, unless NO_COLOR is set
    Auto,
    /// Always
    Always,
    /// Never
    Never,
}

/// Draws where every chunk of a layout lies, with its parity
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  \
    raidlab layout 'raid5(5)'\n  \
    raidlab layout raid6 --members 6 --rotation left-asymmetric\n  \
    raidlab layout raid10 --members 5 --far 2 --rows 8\n  \
    raidlab layout raid0 --members 4 --chunk 64KiB --svg raid0.svg")]
pub(crate) struct Layout {
    /// linear, raid0, raid1, raid3, raid4, raid5, raid6 or raid10; or a whole layout, as reports name it:
    /// raid5(5), "raid10(4) far2 chunk=64K"
    #[arg(value_name = "LAYOUT")]
    pub(crate) level: String,
    /// How many members
    #[arg(long, short = 'n', value_name = "N")]
    pub(crate) members: Option<u16>,
    /// Contiguous bytes on one member [default: 512KiB where the level has chunks]
    #[arg(long, short, value_name = "SIZE")]
    pub(crate) chunk: Option<Size>,
    /// raid5, raid6: how parity rotates, named as mdadm has it [default: left-symmetric]
    #[arg(long, value_parser = parse_rotation)]
    pub(crate) rotation: Option<Rotation>,
    /// raid10: copies on neighbouring members [default: 2, or 1 with --far or --offset]
    #[arg(long, value_name = "N")]
    pub(crate) near: Option<u16>,
    /// raid10: copies in further parts of the members [default: 1]
    #[arg(long, value_name = "N")]
    pub(crate) far: Option<u16>,
    /// raid10: copies in the chunk row below, as mdadm's o2 has them
    #[arg(long, value_name = "N", conflicts_with = "far")]
    pub(crate) offset: Option<u16>,
    /// raid10: members are divided into sets for their far copies; 2 is md's newer way [default: 0]
    #[arg(long, value_name = "N")]
    pub(crate) far_sets: Option<u16>,
    /// Rows of chunks to draw [default: until the pattern has repeated]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=10_000))]
    pub(crate) rows: Option<u64>,
    /// Write the drawing as a picture to this file; `-` for standard output
    #[arg(long, value_name = "FILE")]
    pub(crate) svg: Option<PathBuf>,
}

fn parse_state(text: &str) -> Result<State, String> {
    text.parse()
}

fn parse_rotation(text: &str) -> Result<Rotation, String> {
    text.parse().map_err(|error: raidlab_core::LayoutError| error.reason)
}

/// Lists the drives that can be modelled, shows what a model amounts to, judges it by a measured trace
#[derive(Args, Debug)]
pub(crate) struct Drive {
    #[command(subcommand)]
    pub(crate) command: DriveCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum DriveCommand {
    List(DriveList),
    Show(DriveShow),
    Validate(DriveValidate),
}

/// Lists the drives compiled in, and the measured ones found in RAIDLAB_TRACES
#[derive(Args, Debug)]
pub(crate) struct DriveList {
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Shows a drive's figures with their sources, its seek curve, rate over capacity and random requests a
/// second over queue depth
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  \
    raidlab drive show nas-8tb-7200\n  \
    raidlab drive show ./my-drive.toml --json")]
pub(crate) struct DriveShow {
    /// A drive of `raidlab drive list`, or the path of a drive file (ends in .toml)
    pub(crate) name: String,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Replays a measured trace on a drive's model and prints how near it comes
///
/// Traces and the parameters of measured drives are looked for in the directory RAIDLAB_TRACES,
/// ../shared/traces unless set.
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  \
    raidlab drive validate cheetah9LP\n  \
    raidlab drive validate ./my-drive.toml --trace my-drive.trace")]
pub(crate) struct DriveValidate {
    /// A measured drive of RAIDLAB_TRACES, a drive of `raidlab drive list`, or the path of a drive file
    pub(crate) name: String,
    /// The trace [default: NAME.trace in RAIDLAB_TRACES, or beside a drive file]
    #[arg(long, value_name = "FILE")]
    pub(crate) trace: Option<PathBuf>,
    /// The angle of the platters at the start is drawn from this
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}
