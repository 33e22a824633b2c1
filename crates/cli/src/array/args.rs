//! The command line of `raidlab array`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use raidlab_core::layout::ZoneOrder;
use raidlab_core::{LayoutError, Size};
use raidlab_metadata::md::Version;

use crate::args::Consent;

/// Arrays of Linux md without md: looks at members, reads what an array holds, makes new ones
///
/// Members are files, such as images of drives, or block devices. An ordinary user can do all of it with files.
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  \
    raidlab array examine disk1.img disk2.img disk3.img    what stands on them, in mdadm's words\n  \
    raidlab array examine --scan *.img                     a line for mdadm.conf for each array\n  \
    raidlab array status disk1.img disk2.img disk3.img     whether the array can be read, and by whom\n  \
    raidlab array export-file disk1.img disk2.img disk3.img array.img   copies what it holds to a file\n  \
    raidlab array create 'raid5 chunk=64K' a.img b.img c.img    a new array on files\n  \
    raidlab array assemble --write a.img b.img c.img &   runs it, for `check`, `fail`, `add`, `stop`")]
pub(crate) struct Array {
    #[command(subcommand)]
    pub(crate) command: ArrayCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ArrayCommand {
    Examine(Examine),
    Status(Status),
    Assemble(super::running::args::Assemble),
    Stop(super::running::args::Stop),
    Fail(super::running::args::Fail),
    Remove(super::running::args::Remove),
    Add(super::running::args::Add),
    Replace(super::running::args::Replace),
    Check(super::running::args::Check),
    Repair(super::running::args::Repair),
    ExportFile(Export),
    Create(Create),
    DumpMetadata(Dump),
    RestoreMetadata(Restore),
}

/// Prints what stands on members of md arrays, in the words of `mdadm --examine`; writes nothing
///
/// Versions 0.90, 1.0, 1.1 and 1.2; of DDF, as hardware controllers have it, which arrays there are; labels of
/// FreeBSD's gmirror, graid3, gstripe and gconcat; of LVM the volume group and its RAID volumes. Times are UTC,
/// where mdadm has local time; of version 0.90 mdadm adds which devices of this machine have the numbers that members
/// had, and whether the identity was made on a machine of this name.
/// Arrays that can be read from the members given, and are members of an array themselves, follow behind them.
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
    /// Read what is on the members although the journal holds writes that may not be there. With --write or --overlay:
    /// go on without a journal whose device is missing, out of date or cannot be replayed, for good: writes that
    /// stand in it alone are lost, and all redundancy is made consistent
    #[arg(long)]
    pub(crate) ignore_journal: bool,
    /// raid0 of unequal members that does not say how its zones are ordered: original (made before Linux
    /// 3.14) or alternate (3.14 to 5.3)
    #[arg(long, value_name = "ORDER", value_parser = parse_zones)]
    pub(crate) zones: Option<ZoneOrder>,
    /// Only the array that the devices themselves are members of, not one that this array is a member of
    #[arg(long)]
    pub(crate) flat: bool,
    /// Of the disks of a DDF container, as hardware controllers make them, which array; of the physical volumes of LVM
    /// which RAID volume, as GROUP/VOLUME or VOLUME
    #[arg(long, value_name = "NAME")]
    pub(crate) volume: Option<String>,
}

impl Members {
    /// These, with nothing left out or allowed.
    pub(crate) fn plain(members: Vec<PathBuf>) -> Self {
        let (allow_dirty_degraded, ignore_journal, flat) = (false, false, false);
        let (without, zones) = (Vec::new(), None);
        let volume = None;
        Self { members, without, allow_dirty_degraded, ignore_journal, zones, flat, volume }
    }
}

fn parse_zones(text: &str) -> Result<ZoneOrder, String> {
    text.parse().map_err(|error: LayoutError| error.reason)
}

/// Tells whether an array can be read from these members, and why each is in service or not; writes nothing
///
/// With one name or socket of an array that `assemble` runs: how that is.
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  \
    raidlab array status disk1.img disk2.img disk3.img\n  \
    raidlab array status data --watch       of a running array, until it is stopped\n  \
    raidlab array status data --test        for scripts\n  \
    raidlab array status data --metrics > data.prom    for the textfile collector of Prometheus\n\n\
    Exit status: 0 it can be read, 1 it cannot, 2 bad input. With --test, as `mdadm --detail --test`: 0 all members \
    are in service, 1 some are not, 2 more are missing than the level survives, 4 it cannot be told.")]
pub(crate) struct Status {
    #[command(flatten)]
    pub(crate) members: Members,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// Of a running array: print a line whenever something changes, until it is stopped
    #[arg(long, conflicts_with = "test")]
    pub(crate) watch: bool,
    /// The exit status tells how the array is
    #[arg(long)]
    pub(crate) test: bool,
    /// Of a running array: print it as Prometheus reads it
    #[arg(long, conflicts_with_all = ["json", "watch", "test"])]
    pub(crate) metrics: bool,
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

/// Makes a new md array on files or block devices: superblocks, and bitmap, bad-block list, log of partial parity and
/// journal where there are any
///
/// Everything is placed where mdadm 4.2 places it, and md takes over from there: `mdadm --assemble` takes it over
/// loop devices, or on the drives that the files are written to. With `--metadata geom` labels of FreeBSD's GEOM
/// instead.
///
/// What block devices hold is lost, so without --destructive they are only shown. Devices that are mounted, swap, part
/// of an array or otherwise in use are refused. Each is confirmed by serial number or by-id name, and its first and
/// last MiB are saved.
#[derive(Args, Clone, Debug)]
#[command(after_help = "Examples:\n  \
    truncate -s 1G a.img b.img c.img\n  \
    raidlab array create raid5 a.img b.img c.img --dry-run\n  \
    raidlab array create 'raid5 chunk=64K left-asymmetric' a.img b.img c.img --name data --assume-clean\n  \
    raidlab array create 'raid10 far2' a.img b.img c.img missing --bitmap internal\n  \
    raidlab array create raid6 a.img b.img c.img d.img --spare e.img\n  \
    raidlab array create 'raid5 chunk=64K' a.img b.img c.img --write-journal log.img\n  \
    raidlab array create 'raid5+0(2x3) chunk=64K' a.img b.img c.img d.img e.img f.img    two raid5, striped\n  \
    raidlab array create raid1 a.img b.img --metadata geom --name gm0    as FreeBSD's `gmirror label`\n  \
    raidlab array create raid1 /dev/sdb /dev/sdc                         shows the devices, writes nothing\n  \
    raidlab array create raid1 /dev/sdb /dev/sdc --destructive           does it, asking for serials\n\n\
    Exit status: 0 done or shown, 1 failed, 2 bad input, 3 refused because something might be destroyed.")]
pub(crate) struct Create {
    /// The layout as reports name it, with or without the number of members: raid5, 'raid10(4) far2 chunk=64K'
    #[arg(value_name = "LAYOUT")]
    pub(crate) layout: String,
    /// Files or block devices, in the order of the members; `missing` for a member that is not there yet
    #[arg(required = true, value_name = "MEMBER")]
    pub(crate) members: Vec<PathBuf>,
    /// A file or block device that waits until a member fails; may be given several times
    #[arg(long, value_name = "FILE")]
    pub(crate) spare: Vec<PathBuf>,
    /// Version of the superblock: 0.90 (at the end, for at most 27 devices), 1.0 (at the end), 1.1 (at the start), 1.2
    /// (4 KiB behind the start); or geom: labels as FreeBSD has them, by the level those of gmirror (raid1), graid3
    /// (raid3), gstripe (raid0) or gconcat (linear)
    #[arg(long, value_name = "VERSION", default_value = "1.2")]
    pub(crate) metadata: Metadata,
    /// What keeps redundancy consistent, as mdadm's --consistency-policy: the same as --bitmap none (resync), --bitmap
    /// internal (bitmap), --ppl (ppl) and --write-journal FILE (journal, which needs that flag besides)
    #[arg(long, visible_alias = "consistency-policy", value_enum, value_name = "POLICY")]
    pub(crate) consistency: Option<Policy>,
    /// Write-intent bitmap: internal, none, or auto, which is internal where members are larger than 100 GiB
    #[arg(long, value_enum, default_value = "auto")]
    pub(crate) bitmap: BitmapChoice,
    /// raid5: log partial parity, which closes the write hole
    #[arg(long)]
    pub(crate) ppl: bool,
    /// raid4, raid5, raid6 of version 1.1 or 1.2: the log device, which gets data and parity before the members
    /// do; this closes the write hole. What is written last may be on it alone, so it should be as safe as
    /// the array
    #[arg(long, value_name = "FILE", conflicts_with = "ppl")]
    pub(crate) write_journal: Option<PathBuf>,
    /// Redundancy is consistent already, so that md begins neither rebuild nor resync: true of files that are all zero
    #[arg(long)]
    pub(crate) assume_clean: bool,
    /// The array's name; of version 0.90, which has none, the number of its device, such as md0 [default: array,
    /// md127]
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Option<String>,
    /// The machine that the array belongs to, which stands before the name; empty for none [default: this
    /// one's name]
    #[arg(long, value_name = "HOST")]
    pub(crate) homehost: Option<String>,
    /// The array's identity, 32 hexadecimal digits [default: random]
    #[arg(long, value_name = "UUID", value_parser = parse_uuid)]
    pub(crate) uuid: Option<[u8; 16]>,
    /// Where data start on each member [default: as mdadm chooses]
    #[arg(long, value_name = "SIZE")]
    pub(crate) data_offset: Option<Size>,
    /// How much of each member is used [default: all of the smallest]
    #[arg(long, value_name = "SIZE")]
    pub(crate) size: Option<Size>,
    /// Only print what would be made
    #[arg(long, conflicts_with = "destructive")]
    pub(crate) dry_run: bool,
    /// Also where md superblocks, or anything else, stand on them
    #[arg(long)]
    pub(crate) overwrite: bool,
    #[command(flatten)]
    pub(crate) consent: Consent,
}

/// What is kept on members of a new array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Metadata {
    /// Superblocks of md.
    Md(Version),
    /// Labels of GEOM.
    Geom,
}

impl std::str::FromStr for Metadata {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "geom" => Ok(Self::Geom),
            _ => text.parse().map(Self::Md).map_err(|error: String| format!("{error}, geom")),
        }
    }
}

impl Create {
    /// The version of md's superblocks; the usual one where there are none.
    pub(crate) const fn version(&self) -> Version {
        match self.metadata {
            Metadata::Md(version) => version,
            Metadata::Geom => Version::V1_2,
        }
    }
}

/// What keeps redundancy consistent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Policy {
    /// A resync of everything after a crash
    Resync,
    /// A write-intent bitmap
    Bitmap,
    /// A log of partial parity
    Ppl,
    /// A log device
    Journal,
}

impl Policy {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Resync => "resync",
            Self::Bitmap => "bitmap",
            Self::Ppl => "ppl",
            Self::Journal => "journal",
        }
    }
}

/// Whether there is a bitmap.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum BitmapChoice {
    /// As mdadm 4.2 decides
    Auto,
    /// No
    None,
    /// Yes
    Internal,
}

fn parse_uuid(text: &str) -> Result<[u8; 16], String> {
    let digits: Vec<u8> = text.bytes().filter(|byte| !b":-".contains(byte)).collect();
    let digit = |byte: u8| char::from(byte).to_digit(16).map(|digit| digit as u8);
    let bytes: Option<Vec<u8>> =
        digits.chunks(2).map(|two| Some(digit(two[0])? << 4 | digit(*two.get(1)?)?)).collect();
    let bytes = bytes.and_then(|bytes| <[u8; 16]>::try_from(bytes).ok());
    bytes.ok_or_else(|| {
        "not 32 hexadecimal digits, such as 00112233:44556677:8899aabb:ccddeeff".into()
    })
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

/// Writes back to members what `dump-metadata` saved of them
///
/// Without --destructive it only says what it would write. Block devices are then confirmed each, and their first and
/// last MiB are saved, as when an array is made on them.
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  \
    raidlab array restore-metadata --from saved /dev/sdb\n  \
    raidlab array restore-metadata --from saved /dev/sdb --destructive --yes --confirm-id WD-1")]
pub(crate) struct Restore {
    /// Files or block devices, as long as they were when they were saved
    #[arg(required = true, value_name = "MEMBER")]
    pub(crate) members: Vec<PathBuf>,
    /// Where from: the directory of `dump-metadata`
    #[arg(long, value_name = "DIR")]
    pub(crate) from: PathBuf,
    /// Also onto what holds another array's superblock, or anything else, where the metadata were, and onto what lost
    /// its superblock and begins with a filesystem, a partition table or the like
    #[arg(long)]
    pub(crate) overwrite: bool,
    #[command(flatten)]
    pub(crate) consent: Consent,
}
