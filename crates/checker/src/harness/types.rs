//! What goes into a harness and what comes out of it.

use raidlab_core::Config;
use raidlab_core::contract::{IoId, IoOp, JobId, MemberIo, MetaIo, Outcome};

use crate::device::{self, Format};

/// When jobs are computed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Jobs {
    /// As soon as they are asked for.
    #[default]
    AtOnce,
    /// When the caller finishes them, like I/O.
    Queued,
}

/// How a harness is set up.
#[derive(Clone, Debug)]
pub struct HarnessConfig {
    /// The array.
    pub array: Config,
    /// When jobs are computed.
    pub jobs: Jobs,
    /// The longest request, in sectors.
    pub longest: u32,
    /// Whether the lines of the log are kept, not only its hash.
    pub lines: bool,
    /// Whether there are drives to replace members while they serve.
    pub replacements: bool,
    /// By which format records go to the drives as bytes, encoded and read back. Needs what the format
    /// [has](Format::has).
    pub bytes: Option<Format>,
    /// Drives write their blocks together, not each sector by itself.
    pub whole_blocks: bool,
    /// Nothing is excepted from the promise: shows what a mode does not protect from.
    pub strict: bool,
    /// A bug to plant, where the core was built to have some.
    #[cfg(debug_assertions)]
    pub bug: Option<raidlab_core::bugs::Bug>,
}

impl HarnessConfig {
    /// Jobs at once, requests up to 64 sectors, replacements, no lines, no bug.
    #[must_use]
    pub fn new(array: Config) -> Self {
        Self {
            array,
            jobs: Jobs::AtOnce,
            longest: 64,
            lines: false,
            replacements: true,
            bytes: None,
            whole_blocks: false,
            strict: false,
            #[cfg(debug_assertions)]
            bug: None,
        }
    }

    /// The same with records as bytes, on members that are larger where the format cannot say their size, and without
    /// replacements where it cannot say that; with logs as the format has them.
    pub fn put_in_bytes(&mut self, format: Format) {
        self.bytes = Some(format);
        self.replacements &= format.has_replacements();
        for member in &mut self.array.members {
            member.sectors.0 = member.sectors.0.next_multiple_of(format.granule());
        }
        if let Format::Md(version) = format {
            device::fit(&mut self.array, &mut self.longest, version);
        }
    }
}

/// What is asked of the array.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Ask {
    /// What.
    pub op: IoOp,
    /// First sector.
    pub at: u64,
    /// Sectors; 0 for a flush.
    pub len: u64,
    /// Write only: durable when answered.
    pub fua: bool,
}

/// An answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The request's number, from [`Harness::submit`](super::Harness::submit).
    pub id: u64,
    /// What was asked.
    pub ask: Ask,
    /// How it went.
    pub outcome: Outcome,
}

/// How an outstanding I/O ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Fault {
    /// Well, unless the drive is gone or the sectors are bad.
    #[default]
    None,
    /// This sector of the I/O cannot be read or written, nor what follows; `stuck`: writing does not
    /// mend it.
    Media {
        /// Which, from the start of the I/O.
        sector: u32,
        /// Not even by writing.
        stuck: bool,
    },
    /// No answer in time.
    Timeout {
        /// It was carried out all the same.
        carried_out: bool,
    },
    /// The drive is gone, from now on.
    Gone,
    /// The drive has no room; once.
    NoSpace,
    /// A write or flush is answered well and was not carried out.
    Lost,
    /// A write is answered well and went this many sectors further on (round the drive's end).
    Misdirected(u32),
    /// A sector of a write is stored with one bit changed.
    Rot(u32),
}

/// Something outstanding.
#[derive(Clone, Copy, Debug)]
pub enum Work {
    /// An I/O to a drive's data or log.
    Io(MemberIo),
    /// A metadata record to a drive.
    Meta(IoId, MetaIo),
    /// Computing.
    Job(JobId),
}
