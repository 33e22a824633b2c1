//! The command line of `raidlab array`.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use raidlab_core::LayoutError;
use raidlab_core::layout::ZoneOrder;

/// Arrays of Linux md without md: looks at members, reads what an array holds, makes new ones
///
/// Members are files, such as images of drives, or block devices. An ordinary user can do all of it with files.
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  \
    raidlab array examine disk1.img disk2.img disk3.img    what stands on them, in mdadm's words\n  \
    raidlab array examine --scan *.img                     a line for mdadm.conf for each array\n  \
    raidlab array status disk1.img disk2.img disk3.img     whether the array can be read, and by whom\n  \
    raidlab array export-file disk1.img disk2.img disk3.img array.img   copies what it holds to a file")]
pub(crate) struct Array {
    #[command(subcommand)]
    pub(crate) command: ArrayCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ArrayCommand {
    Examine(Examine),
    Status(Status),
    ExportFile(Export),
    DumpMetadata(Dump),
    RestoreMetadata(Restore),
}

/// Prints what stands on members of md arrays, in the words of `mdadm --examine`; writes nothing
///
/// Versions 1.0, 1.1 and 1.2. Times are UTC, where mdadm has local time.
#[derive(Args, Debug)]
#[command(
    after_help = "Exit status: 0 all are members, 1 some are not or cannot be read, 2 bad input."
)]
pub(crate) struct Examine {
    /// Files or block devices
    #[arg(required = true, value_name = "MEMBER")]
    pub(crate) members: Vec<PathBuf>,
    /// Print a line for mdadm.conf for each array instead
    #[arg(long, conflicts_with = "json")]
    pub(crate) scan: bool,
    /// With --scan: level, number of members and their devices, too
    #[arg(long, short, requires = "scan")]
    pub(crate) verbose: bool,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Which devices make an array, and what is to be allowed.
#[derive(Args, Clone, Debug)]
pub(crate) struct Members {
    /// Files or block devices, in any order; members may be missing as far as the level survives it
    #[arg(required = true, value_name = "MEMBER")]
    pub(crate) members: Vec<PathBuf>,
    /// Leave this one out of those given, whatever it carries
    #[arg(long, value_name = "MEMBER")]
    pub(crate) without: Vec<PathBuf>,
    /// Use parity of an array that was not stopped cleanly for members that are missing: where writes were under
    /// way, what those held may come out wrong
    #[arg(long)]
    pub(crate) allow_dirty_degraded: bool,
    /// Read what is on the members although the journal holds writes that may not be there
    #[arg(long)]
    pub(crate) ignore_journal: bool,
    /// raid0 of unequal members that does not say how its zones are ordered: original (made before Linux
    /// 3.14) or alternate (3.14 to 5.3)
    #[arg(long, value_name = "ORDER", value_parser = parse_zones)]
    pub(crate) zones: Option<ZoneOrder>,
}

fn parse_zones(text: &str) -> Result<ZoneOrder, String> {
    text.parse().map_err(|error: LayoutError| error.reason)
}

/// Tells whether an array can be read from these members, and why each is in service or not; writes nothing
#[derive(Args, Debug)]
#[command(after_help = "Exit status: 0 it can be read, 1 it cannot, 2 bad input.")]
pub(crate) struct Status {
    #[command(flatten)]
    pub(crate) members: Members,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Copies what an array holds to a file, with members missing too; no byte of a member changes
///
/// The file is sparse where the array is zero, and has its name only when it is whole. It can be looked at as any image
/// of a drive: `mount -o loop,ro`, `debugfs`, `7z`, `testdisk`.
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  \
    raidlab array export-file disk1.img disk3.img disk4.img array.img\n  \
    raidlab array export-file /dev/sdb3 /dev/sdc3 array.img --skip-unreadable\n\n\
    Exit status: 0 done, 1 failed or not all could be read, 2 bad input, 130 interrupted.")]
pub(crate) struct Export {
    #[command(flatten)]
    pub(crate) members: Members,
    /// The file, which must not exist
    #[arg(required = true, value_name = "OUT")]
    pub(crate) out: PathBuf,
    /// Where nothing can be had, write zeroes and go on; what they are is told at the end
    #[arg(long)]
    pub(crate) skip_unreadable: bool,
    /// No progress
    #[arg(long, short)]
    pub(crate) quiet: bool,
}

/// Saves what stands on members besides data: superblock, bitmap, list of bad blocks, log of partial parity
///
/// Each member's is a sparse file of the member's size in DIR, named as the member, as `mdadm --dump` makes them: mdadm
/// reads these too.
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  \
    raidlab array dump-metadata --to saved /dev/sdb /dev/sdc\n  \
    mdadm --examine saved/sdb")]
pub(crate) struct Dump {
    /// Files or block devices
    #[arg(required = true, value_name = "MEMBER")]
    pub(crate) members: Vec<PathBuf>,
    /// Where to: a directory, which is made where it is missing
    #[arg(long, value_name = "DIR")]
    pub(crate) to: PathBuf,
}

/// Writes back to member files what `dump-metadata` saved of them
///
/// Without --destructive it only says what it would write. Block devices are not written to in this version: `mdadm
/// --restore` reads the same files.
#[derive(Args, Debug)]
pub(crate) struct Restore {
    /// Files, as long as they were when they were saved
    #[arg(required = true, value_name = "MEMBER")]
    pub(crate) members: Vec<PathBuf>,
    /// Where from: the directory of `dump-metadata`
    #[arg(long, value_name = "DIR")]
    pub(crate) from: PathBuf,
    /// Do it
    #[arg(long)]
    pub(crate) destructive: bool,
}
