//! The command line of arrays that run.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use raidlab_core::Size;
use raidlab_targets::NbdAddress;

use super::super::args::Members;
use crate::args::Consent;

/// Runs an array until it is stopped; for reading only, unless told to write
///
/// The process holds every member, and stays in the foreground: `stop`, or Ctrl-C, ends it in order, with everything
/// durable and the array marked clean. Without --write and --overlay no byte of any member changes. With --write what
/// is inconsistent after a crash is made consistent, a spare takes the place of a member that failed, and
/// superblocks and bitmap are kept as md keeps them, so that md takes the array over at any time after, and labels of
/// FreeBSD's GEOM as its classes keep them. Members that
/// are block devices are claimed exclusively, so that nothing else assembles them meanwhile.
#[derive(Args, Clone, Debug)]
#[command(
    visible_alias = "serve",
    after_help = "Examples:\n  \
    raidlab array assemble disk1.img disk3.img disk4.img --fuse data.img     what it holds, as a file, for reading\n  \
    raidlab array assemble --write a.img b.img c.img                   resync, and administration by its name\n  \
    raidlab array serve --overlay changes.img /dev/sd[bcd] --fuse data.img   all writes go to changes.img\n  \
    raidlab array serve --write a.img b.img c.img --nbd unix:/tmp/data.sock    for qemu, nbdcopy, fio: no root\n\n\
    Exit status: 0 stopped in order, 1 failed, 2 bad input, 3 refused for safety, 130 interrupted before it ran."
)]
pub(crate) struct Assemble {
    #[command(flatten)]
    pub(crate) members: Members,
    /// Write to the members
    #[arg(long, conflicts_with = "overlay")]
    pub(crate) write: bool,
    /// Write, but keep all writes in this file, which is made where it is missing; no byte of a member changes
    #[arg(long, value_name = "FILE")]
    pub(crate) overlay: Option<PathBuf>,
    /// With --write or --overlay: start although members are missing that were in service when it was stopped
    #[arg(long)]
    pub(crate) run: bool,
    /// Serve what the array holds as this file, which must not exist (root); also beside --nbd
    #[arg(long, value_name = "FILE")]
    pub(crate) fuse: Option<PathBuf>,
    /// Serve what the array holds to NBD clients, as an export of its name: unix:PATH, tcp:HOST:PORT, or systemd for
    /// the sockets that systemd hands over; may be given several times. Devices of several arrays may be given
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) nbd: Vec<NbdAddress>,
    /// With --nbd: how many clients at most; more are closed as they come
    #[arg(
        long, value_name = "N", default_value_t = 1024, requires = "nbd",
        value_parser = clap::value_parser!(u32).range(1..=65_536)
    )]
    pub(crate) nbd_connections: u32,
    /// With --nbd: memory for data on their way, of all clients together
    #[arg(long, value_name = "SIZE", default_value = "128MiB", requires = "nbd")]
    pub(crate) nbd_memory: Size,
    /// With --nbd: TCP also where other machines can reach it, although clients need no certificate
    #[arg(long, requires = "nbd")]
    pub(crate) nbd_exposed: bool,
    /// With --nbd: clients must use TLS; the server's certificates, a PEM file
    #[arg(long, value_name = "FILE", requires_all = ["nbd", "tls_key"])]
    pub(crate) tls_cert: Option<PathBuf>,
    /// With --tls-cert: its private key, a PEM file
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub(crate) tls_key: Option<PathBuf>,
    /// With --tls-cert: clients must have a certificate signed by one of these, a PEM file
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub(crate) tls_client_ca: Option<PathBuf>,
    /// Not supported: keys shared with clients
    #[arg(long, value_name = "FILE", hide = true)]
    pub(crate) tls_psk: Option<PathBuf>,
    /// With --write: the device takes the place of a member that fails; what is on it is lost
    #[arg(long, value_name = "DEVICE")]
    pub(crate) spare: Vec<PathBuf>,
    /// With --spare: also where something stands on it
    #[arg(long)]
    pub(crate) overwrite: bool,
    /// The program is run with the event, the array and the member as arguments when a member fails, a rebuild ends
    /// or a spare takes over, as `mdadm --monitor --program` does: for one event after the other, beside the array, and
    /// killed when it takes longer than a minute
    #[arg(long, value_name = "PROGRAM")]
    pub(crate) program: Option<PathBuf>,
    /// Where commands come in [default: the array's name in the runtime directory]
    #[arg(long, value_name = "SOCKET")]
    pub(crate) socket: Option<PathBuf>,
}

/// An array that `assemble` runs.
#[derive(Args, Clone, Debug)]
pub(crate) struct Running {
    /// Its name, or the path of its socket
    #[arg(value_name = "ARRAY")]
    pub(crate) array: String,
}

/// Stops a running array: everything durable, marked clean
///
/// While NBD clients are connected that is refused.
#[derive(Args, Debug)]
pub(crate) struct Stop {
    #[command(flatten)]
    pub(crate) running: Running,
    /// Also while NBD clients are connected: what they have asked for is answered, then they are disconnected
    #[arg(long)]
    pub(crate) disconnect: bool,
}

/// Takes a member of a running array out of service, or the device that is to replace one
#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  raidlab array fail data 2\n  raidlab array fail data disk3.img"
)]
pub(crate) struct Fail {
    #[command(flatten)]
    pub(crate) running: Running,
    /// Its number, or its device; or the device that is to replace it
    #[arg(value_name = "MEMBER")]
    pub(crate) member: String,
    /// Also a member without which the array is lost
    #[arg(long)]
    pub(crate) force: bool,
}

/// Lets go of the device of a member that failed, or of a spare
///
/// A device that failed and in whose place another one is was let go of when that took its place; it is named by the
/// status until it is removed.
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  \
    raidlab array remove data disk3.img\n  \
    raidlab array remove data failed         all devices that failed, as mdadm's --remove failed")]
pub(crate) struct Remove {
    #[command(flatten)]
    pub(crate) running: Running,
    /// The member's number or device, a spare, a device that failed, or the word failed for all that did
    #[arg(value_name = "MEMBER")]
    pub(crate) member: String,
}

/// Gives a running array a device: one that was away comes back, any other one is rebuilt in the place of a member that
/// is missing, or waits as a spare. Or an array that does not run, a journal
///
/// With --journal ARRAY and DEVICE are all members of a raid4, raid5 or raid6 that was stopped, with all of them in
/// service. Data and parity go to the log device first from then on, which closes the write hole.
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  \
    raidlab array add data new.img         everything on new.img is lost\n  \
    raidlab array add data disk2.img       a member that was away: only what changed is rebuilt, by the bitmap\n  \
    raidlab array add data --array x.img y.img    the array on them, as a member of an array of arrays\n  \
    raidlab array add --journal log.img a.img b.img c.img --destructive   a log device, of an array that is stopped\n  \
    raidlab array add --journal /dev/sde /dev/sdb /dev/sdc /dev/sdd    what is on /dev/sde, which would be lost")]
pub(crate) struct Add {
    #[command(flatten)]
    pub(crate) running: Running,
    /// The device; with --array all devices of one md array; with --journal the members but the first
    #[arg(required_unless_present = "journal", value_name = "DEVICE")]
    pub(crate) devices: Vec<PathBuf>,
    /// The devices are members of an md array: it is started, and is a member itself
    #[arg(long = "array", id = "is-array")]
    pub(crate) is_array: bool,
    /// The array does not run, and this becomes the log device of its journal; without --destructive it is only said
    /// what would be written. A block device is confirmed first
    #[arg(long, value_name = "DEVICE", conflicts_with = "is-array")]
    pub(crate) journal: Option<PathBuf>,
    /// Also where something stands on it
    #[arg(long)]
    pub(crate) overwrite: bool,
    #[command(flatten)]
    pub(crate) consent: Consent,
}

/// Copies a member of a running array to a fresh device while it goes on serving, then swaps them
#[derive(Args, Debug)]
pub(crate) struct Replace {
    #[command(flatten)]
    pub(crate) running: Running,
    /// The member's number or device
    #[arg(value_name = "MEMBER")]
    pub(crate) member: String,
    /// The fresh device
    #[arg(value_name = "DEVICE")]
    pub(crate) device: PathBuf,
    /// Also where something stands on it
    #[arg(long)]
    pub(crate) overwrite: bool,
}

/// What checks and repairs have in common.
#[derive(Args, Debug)]
pub(crate) struct Scrubbing {
    #[command(flatten)]
    pub(crate) running: Running,
    /// Only begin it
    #[arg(long)]
    pub(crate) no_wait: bool,
    /// What was found, as JSON; no progress
    #[arg(long, conflicts_with = "no_wait")]
    pub(crate) json: bool,
    /// No progress
    #[arg(long, short)]
    pub(crate) quiet: bool,
}

/// Compares the redundancy of a running array everywhere, and waits for the end
#[derive(Args, Debug)]
#[command(after_help = "Exit status: 0 consistent, 1 differences were found, or it failed.")]
pub(crate) struct Check {
    #[command(flatten)]
    pub(crate) scrubbing: Scrubbing,
}

/// What a repair believes where redundancy disagrees.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Trust {
    /// The data: parity is written anew, and copies as the first, as md's repair does
    Data,
    /// What all but one block say, where P and Q agree on that one: it is rewritten (raid6)
    ParityAndData,
}

impl Trust {
    /// As the control socket has it.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Data => "data",
            Self::ParityAndData => "parity-and-data",
        }
    }
}

/// The same, and makes redundancy consistent: by default parity of the data, or all copies as the first, as md does
///
/// A member that returned wrong data makes that wrong for good: parity follows it. On raid6, P and Q together tell
/// which one block of a row is wrong, data or parity (what raid6check of mdadm does): --trust parity-and-data rewrites
/// that, and leaves what they cannot tell as it is. On other levels it has to be known whose contents are wrong:
/// --distrust rewrites them from those of the others.
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  \
    raidlab array repair data                            parity follows the data\n  \
    raidlab array repair data --trust parity-and-data    raid6: mends the block that P and Q name, also of data\n  \
    raidlab array repair data --distrust 1               what differs on member 1 is rewritten from the others\n\n\
    Exit status: 0 consistent now, 1 differences are left, or it failed.")]
pub(crate) struct Repair {
    #[command(flatten)]
    pub(crate) scrubbing: Scrubbing,
    /// What is believed where redundancy disagrees
    #[arg(long, value_name = "WHAT", default_value = "data")]
    pub(crate) trust: Trust,
    /// All is believed but this member, by its number or device
    #[arg(long, value_name = "MEMBER", conflicts_with = "trust")]
    pub(crate) distrust: Option<String>,
}
