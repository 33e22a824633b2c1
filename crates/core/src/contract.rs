//! What goes into an [`Array`](crate::Array) and what comes out of it: the whole contract, as types.
//!
//! Rules of the contract:
//! * Hand in every input that is ready at `now`, then drain [`poll`](crate::Array::poll) until it
//!   gives `None`. Asserted in debug builds.
//! * Completions and results of jobs are always accepted; requests only while
//!   [`can_accept`](crate::Array::can_accept) says so.
//! * Payload lives with the driver; the core sees [`Segment`]s. A token is the driver's again once
//!   the request it came with was answered. Scratch tokens are declared at set-up
//!   ([`Scratch`]). After a completion, also [`IoOutcome::Timeout`], the driver no longer touches
//!   the token for that I/O, or it quarantines it.
//! * A reply to a write promises visibility. Durable = `fua`, or answered before a flush was
//!   submitted and that flush answered.

use crate::units::{MemberIndex, Sector, Sectors, Time};

/// The driver's name for a request; given back in the [`Reply`](Output::Reply).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestId(pub u64);

/// The core's name for an I/O to a member; given back in the [`Completion`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct IoId {
    pub(crate) slot: u32,
    pub(crate) generation: u32,
}

/// The core's name for a piece of computing; given back in [`Input::Computed`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct JobId {
    pub(crate) slot: u32,
    pub(crate) generation: u32,
}

/// A buffer of the driver, by name. Tokens from [`Scratch::FIRST`] on name scratch buffers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Token(pub u32);

/// A run of bytes in a buffer, in sectors.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Segment {
    /// Which buffer.
    pub token: Token,
    /// Where in the buffer, in sectors.
    pub offset: u32,
    /// How long, in sectors.
    pub len: u32,
}

/// A list of segments: the first in place, the rest in a slab of the core.
///
/// Read it with [`Array::segments`](crate::Array::segments).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SegmentList {
    pub(crate) first: Segment,
    pub(crate) rest: u32,
}

/// The scratch buffers a driver provides: tokens `FIRST .. FIRST + count`, each of `len` sectors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scratch {
    /// How many buffers.
    pub count: u32,
    /// The size of each, in sectors.
    pub len: u32,
}

impl Scratch {
    /// The first scratch token; a driver's own tokens lie below.
    pub const FIRST: u32 = 1 << 31;

    /// The index of a scratch token, or `None` for a token of the driver's own.
    pub const fn index(token: Token) -> Option<usize> {
        if token.0 >= Self::FIRST { Some((token.0 - Self::FIRST) as usize) } else { None }
    }
}

/// What a request asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RequestOp {
    /// Read into the segments.
    Read,
    /// Write from the segments.
    Write,
    /// Make every write answered before this request durable.
    Flush,
    /// The range's contents are no longer needed.
    Discard,
    /// The range is to read as zeroes.
    WriteZeroes,
}

/// A request to the array.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// The driver's name for it.
    pub id: RequestId,
    /// What it asks for.
    pub op: RequestOp,
    /// The first sector of the array.
    pub at: Sector,
    /// How many sectors; zero for [`RequestOp::Flush`].
    pub len: Sectors,
    /// Where the payload lies; as long as `len` for reads and writes, empty for the others.
    pub segments: &'a [Segment],
    /// Write only: answer when the data are durable.
    pub fua: bool,
}

/// What an I/O asks of a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum IoOp {
    /// Read into the segments.
    Read,
    /// Write from the segments.
    Write,
    /// Make every write completed before this I/O durable.
    Flush,
    /// The range's contents are no longer needed.
    Discard,
    /// The range is to read as zeroes.
    WriteZeroes,
}

/// An I/O to one member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemberIo {
    /// The core's name for it.
    pub io: IoId,
    /// Which member.
    pub member: MemberIndex,
    /// What is asked.
    pub op: IoOp,
    /// Write only: complete when durable.
    pub fua: bool,
    /// The first sector, relative to the start of the member's data.
    pub at: Sector,
    /// How many sectors.
    pub len: u32,
    /// Where the payload lies.
    pub segments: SegmentList,
}

/// How an I/O to a member went. A member's error is data, not a Rust error.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum IoOutcome {
    /// Done.
    Ok,
    /// The medium could not be read or written from this sector on.
    MediaError {
        /// The first bad sector, relative to the start of the member's data.
        first_bad: Sector,
    },
    /// No answer within the deadline.
    Timeout,
    /// The member no longer answers at all.
    Gone,
    /// The member has no room (thin or sparse members).
    NoSpace,
}

/// The end of a [`MemberIo`] or [`MetaIo`].
#[derive(Clone, Copy, Debug)]
pub struct Completion {
    /// Which I/O.
    pub io: IoId,
    /// How it went.
    pub outcome: IoOutcome,
    /// Metadata that was read, for a [`MetaIo`] that reads.
    pub record: Option<Record>,
}

/// The result of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum JobResult {
    /// The targets hold the result.
    Done,
    /// Compare: the operands are equal.
    Equal,
    /// Compare: they differ in this range of sectors of the operands.
    Differs {
        /// First differing sector.
        from: u32,
        /// One past the last differing sector.
        to: u32,
    },
    /// Locate: the block with this position among the sources is the wrong one.
    Located(u16),
    /// Checksum: its value.
    Checksum(u32),
    /// The computing failed; the targets are undefined.
    Failed,
}

/// Commands of the administrator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Admin {
    /// Take a member out of service.
    Fail(MemberIndex),
    /// Put a fresh drive in the place of a failed member.
    Add(MemberIndex),
    /// Copy a serving member to a fresh drive, then swap them.
    Replace(MemberIndex),
    /// Compare redundancy everywhere; repair it when `repair` is set.
    StartScrub {
        /// Mend what can be mended without guessing.
        repair: bool,
    },
    /// Stop background work.
    StopBackground,
}

/// An input to the core.
#[derive(Clone, Copy, Debug)]
pub enum Input<'a> {
    /// A request; only while `can_accept()`.
    Request(Request<'a>),
    /// A member I/O ended.
    Completion(Completion),
    /// A job ended.
    Computed {
        /// Which job.
        job: JobId,
        /// How it went.
        result: JobResult,
    },
    /// Requests that follow belong together: plan them at [`Input::Unplug`].
    Plug,
    /// Plan what was held back since [`Input::Plug`].
    Unplug,
    /// A command.
    Admin(Admin),
    /// The time asked for by [`Output::WakeAt`] has come.
    Wake,
}

/// How a request went.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// Done.
    Done,
    /// Start or length is not a multiple of the array's logical block.
    Misaligned,
    /// The range does not lie within the array.
    OutOfRange,
    /// The segments are not as long as the request, too many, empty or name scratch; or the request
    /// is longer than 512 GiB.
    BadSegments,
    /// No remaining copy of this sector of the array can be read.
    MediaError {
        /// First sector of the array that is lost.
        first_bad: Sector,
    },
    /// More members are lost than the level survives.
    ArrayFailed,
    /// A job that the request needed failed.
    ComputeFailed,
    /// This version does not carry out the operation.
    NotSupported,
    /// The request came while `can_accept()` was false.
    Busy,
}

/// Which kernel a job runs. Sources and targets are segment lists of equal length.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kernel {
    /// Target 0 = XOR of all sources. The target may be one of the sources, exactly.
    Xor,
    /// Each target is the P or the Q of the sources, which are all data of the row.
    Pq,
    /// Sources are pairs of old and new data; each target, a P or a Q, is changed in place by the
    /// difference.
    Delta,
    /// Targets are the lost data of the row, one or two; sources are all other data and as many of P
    /// and Q as data are lost.
    Recover,
    /// Are the operands equal?
    Compare,
    /// Which block is wrong, by P and Q?
    Locate,
    /// A checksum of the sources.
    Checksum,
    /// Target = source.
    Copy,
    /// Targets are filled with zeroes.
    Zero,
}

/// What an operand of a job is in its row of the stripe.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Role {
    /// Data whose coefficient in Q is 2 to this power, in GF(2^8) with polynomial 0x11d.
    Data(u8),
    /// P: the XOR of the data.
    #[default]
    P,
    /// Q: the sum of the data, each times its coefficient.
    Q,
}

/// A piece of computing, as [`Array::job`](crate::Array::job) shows it.
#[derive(Clone, Copy, Debug)]
pub struct Job<'a> {
    /// What to run.
    pub kernel: Kernel,
    /// Length of every operand, in sectors.
    pub len: u32,
    /// What is read.
    pub sources: &'a [SegmentList],
    /// What is written.
    pub targets: &'a [SegmentList],
    /// What the sources are, in their order, then the targets. [`Kernel::Xor`] does not need it.
    pub roles: &'a [Role],
}

/// What a metadata record says: plain values, which the driver turns into bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Record {
    /// The state of the array as this member knows it.
    Superblock {
        /// Grows with every change of state.
        events: u64,
        /// The member's place in the array.
        role: MemberRole,
        /// Redundancy is known to be consistent.
        clean: bool,
        /// A member being rebuilt holds good data below this sector.
        rebuilt_to: Sector,
    },
    /// Part of the write-intent bitmap.
    BitmapPage {
        /// Which page.
        page: u32,
        /// 64 bits of it, the first of the page in the lowest bit.
        bits: u64,
    },
    /// A partial-parity log entry.
    PartialParity {
        /// The stripe it protects.
        stripe: u64,
        /// Which data chunks are being written, a bit each.
        written: u64,
    },
    /// A journal entry.
    JournalEntry {
        /// Its number in the ring.
        sequence: u64,
        /// The stripe it protects.
        stripe: u64,
    },
}

/// What a drive is to an array, as its metadata say.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MemberRole {
    /// Serves this place.
    Active(MemberIndex),
    /// Waits to replace a member.
    Spare,
    /// Failed.
    Faulty,
    /// Holds the journal.
    Journal,
}

/// Reading or writing metadata.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MetaOp {
    /// The record comes back in the [`Completion`].
    Read,
    /// The record is to be written.
    Write,
}

/// An I/O of metadata to one member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MetaIo {
    /// The core's name for it.
    pub io: IoId,
    /// Which member.
    pub member: MemberIndex,
    /// Read or write.
    pub op: MetaOp,
    /// Flush the member before.
    pub flush: bool,
    /// Complete when durable.
    pub fua: bool,
    /// The record, or which kind is wanted.
    pub record: Record,
}

/// News of the array.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Event {
    /// A member is out of service.
    MemberFailed(MemberIndex),
    /// The array works without some of its redundancy.
    Degraded {
        /// How many members are out of service.
        missing: u16,
    },
    /// More members are lost than the level survives.
    ArrayFailed,
    /// A read that failed on this member was answered from the others.
    ReadRecovered(MemberIndex),
    /// A command that this version does not carry out, or that makes no sense now.
    AdminRefused(Admin),
}

/// An output of the core.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Output {
    /// Do this I/O; answer with [`Input::Completion`].
    MemberIo(MemberIo),
    /// Do this metadata I/O; answer with [`Input::Completion`].
    Meta(MetaIo),
    /// Do this computing; answer with [`Input::Computed`].
    Compute {
        /// Look it up with [`Array::job`](crate::Array::job).
        job: JobId,
    },
    /// A request is answered.
    Reply {
        /// The driver's name for it.
        id: RequestId,
        /// How it went.
        outcome: Outcome,
    },
    /// Hand in [`Input::Wake`] at this time. Replaces the time asked for before.
    WakeAt(Time),
    /// News.
    Event(Event),
}

const _: () = assert!(size_of::<Output>() <= 64, "an output is at most 64 bytes");
