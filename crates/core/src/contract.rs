//! What goes into an [`Array`](crate::Array) and what comes out of it: the whole contract between the
//! array and its *driver* (the program that has clock, members and memory), as types.
//!
//! One round of the driver: it hands in [`Input`]s (requests, ends of I/Os and jobs, commands, the time) and
//! drains [`Output`]s (I/Os to members, jobs to compute, answers, events). It carries the outputs out, in
//! whatever order they end, and hands in what ended.
//!
//! Rules of the contract:
//! * Hand in every input that is ready at `now`, then drain [`poll`](crate::Array::poll) until it
//!   gives `None`. Asserted in debug builds.
//! * Completions and results of jobs are always accepted; requests only while
//!   [`can_accept`](crate::Array::can_accept) is true.
//! * Payload stays with the driver; the core sees [`Segment`]s, which name a buffer by a [`Token`]. A token belongs
//!   to the driver again once the request it came with is answered. Scratch tokens, for buffers that the
//!   core itself needs, are declared at set-up ([`Scratch`]). After it has handed in a completion, including
//!   [`IoOutcome::Timeout`], the driver no longer touches the token for that I/O; if it cannot be sure, it
//!   quarantines the token.
//! * A reply to a write promises that later reads see it. It is durable if it had `fua` (forced to the medium), or
//!   was answered before the submission of a flush that has been answered.

use std::fmt;

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

/// The core's name for a job (parity to compute); given back in [`Input::Computed`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct JobId {
    pub(crate) slot: u32,
    pub(crate) generation: u32,
}

/// The name of a buffer of the driver. Tokens from [`Scratch::FIRST`] on name scratch buffers.
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

/// A list of segments: the first is stored here, the rest in a slab of the core.
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

impl SegmentList {
    /// No segment.
    pub const EMPTY: Self = crate::array::EMPTY_LIST;
}

impl Scratch {
    /// The first scratch token; a driver's own tokens lie below.
    pub const FIRST: u32 = 1 << 31;

    /// The index of a scratch token, or `None` for a token of the driver's own.
    pub const fn index(token: Token) -> Option<usize> {
        if token.0 >= Self::FIRST { Some((token.0 - Self::FIRST) as usize) } else { None }
    }
}

/// What a request asks of the array, and an I/O of a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum IoOp {
    /// Read into the segments.
    Read,
    /// Write from the segments.
    Write,
    /// Make every write that was answered before this durable.
    Flush,
    /// The range's contents are no longer needed.
    Discard,
    /// The range must read as zeroes afterwards.
    WriteZeroes,
}

/// A request to the array.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// The driver's name for it.
    pub id: RequestId,
    /// The operation.
    pub op: IoOp,
    /// The first sector of the array.
    pub at: Sector,
    /// How many sectors; zero for [`IoOp::Flush`].
    pub len: Sectors,
    /// The memory of the payload: as long as `len` for reads and writes, empty for the others.
    pub segments: &'a [Segment],
    /// Writes only: answer when the data are durable.
    pub fua: bool,
}

/// An I/O to one member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemberIo {
    /// The core's name for it.
    pub io: IoId,
    /// Which member.
    pub member: MemberIndex,
    /// The operation.
    pub op: IoOp,
    /// Writes only: complete when durable.
    pub fua: bool,
    /// The first sector, relative to the start of the member's data.
    pub at: Sector,
    /// How many sectors.
    pub len: u32,
    /// The memory of the payload.
    pub segments: SegmentList,
}

/// The result of an I/O to a member. A member's error is data for the core, not a Rust error.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum IoOutcome {
    /// Done.
    Ok,
    /// The medium could not be read or written from this sector on.
    MediaError {
        /// The first bad sector, relative to the start of the member's data.
        first_bad: Sector,
    },
    /// It was not answered within the deadline.
    Timeout,
    /// The member no longer answers at all.
    Gone,
    /// The member has no room for what is to be written (thin or sparse members): it holds its old contents, or
    /// part of the new ones. Never the result of a flush, even as part of a write: nobody knows what such a flush
    /// lost, so the member counts as [`Gone`](Self::Gone).
    NoSpace,
}

/// The end of a [`MemberIo`] or of a metadata I/O ([`Output::Meta`]).
#[derive(Clone, Copy, Debug)]
pub struct Completion {
    /// Which I/O.
    pub io: IoId,
    /// Its result.
    pub outcome: IoOutcome,
}

/// The result of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum JobResult {
    /// The targets hold the result.
    Done,
    /// Compare: the operands are equal.
    Equal,
    /// Compare: the operands differ in this range of their sectors.
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
    /// The job failed; the contents of the targets are undefined.
    Failed,
}

/// Which contents a repair may trust where redundancy disagrees.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum RepairSource {
    /// None: mend only what P and Q together can identify (raid6).
    #[default]
    Nobody,
    /// The data: parity is rewritten. On mirrors the first copy.
    Data,
    /// All but this member: its contents are wrong and are rewritten from the others.
    NotMember(MemberIndex),
}

/// What a scrub does where redundancy disagrees.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Scrub {
    /// Count and list; write nothing.
    Check,
    /// Count, list and mend, as far as it is known which contents are right.
    Repair(RepairSource),
}

/// How fast background work goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Pacing {
    /// Bytes a second and member that it may take even beside other work; md's
    /// `speed_limit_min`, by default 1,000 KiB/s.
    pub least: u64,
    /// Bytes a second and member that it never exceeds; md's `speed_limit_max`, by default
    /// 200,000 KiB/s.
    pub most: u64,
    /// What it does beside other work.
    pub rule: PacingRule,
}

impl Pacing {
    /// Between a least and a most, by the first rule.
    pub const fn between(least: u64, most: u64) -> Self {
        Self { least, most, rule: PacingRule::Activity }
    }
}

impl Default for Pacing {
    fn default() -> Self {
        Self::between(1_000 << 10, 200_000 << 10)
    }
}

/// How background work makes room for requests, where it is faster than the least.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum PacingRule {
    /// md before 6.16: each range looks at what members did for others. When that was more than 32 KiB on one of them,
    /// all of it that is in flight ends first.
    #[default]
    Activity,
    /// md since 6.16: while the array is in use, so many pieces are in flight at most, of 4 KiB with parity and of
    /// 64 KiB on mirrors; md's `sync_io_depth`, by default 32. At least 1.
    Depth(u16),
    /// In place of the least: the share of time, 1 to 100 percent, in which it may work, with as many ranges at once as
    /// there is room for.
    Share(u8),
    /// The same, with one range at a time, so that a request never meets more.
    Single(u8),
    /// Without rests, so many ranges at a time; more where the array is not in use, as it was asked for nothing since
    /// that was looked at last. At least 1, and no fewer while it is not in use.
    Ranges {
        /// While it is in use.
        used: u16,
        /// While it is not.
        unused: u16,
    },
}

/// Commands of the administrator. A command that cannot be carried out now is answered with
/// [`Event::Refused`] and changes nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Admin {
    /// Take a member out of service. A fresh drive that was to replace it does so no longer: there is nothing left to
    /// copy.
    Fail(MemberIndex),
    /// Take the drive out that is to replace a member, which stays in service:
    /// [`Event::ReplacementFailed`].
    FailReplacement(MemberIndex),
    /// A fresh drive has taken the place of a failed member: rebuild it. Its log area, where the mode has
    /// one, holds no whole entry: the driver ensures that, also for a drive that was here before.
    Add {
        /// Whose place it takes.
        member: MemberIndex,
        /// Sectors it has for data.
        sectors: Sectors,
    },
    /// The same drive is back: rebuild what changed while it was away, by the bitmap. Only
    /// [`Array::judge_return`](crate::Array::judge_return) decides whether it may come back, and makes this command.
    ReAdd {
        /// Which member.
        member: MemberIndex,
        /// The events of the newest superblock found on it.
        events: u64,
        /// The drive holds nothing from here on, as a rebuild of it had come no further; [`Sector::MAX`] when it was
        /// fully in service.
        good_to: Sector,
    },
    /// Copy a member to a fresh drive while it goes on serving, then swap them. Its log area holds no
    /// whole entry, as for [`Admin::Add`]. The fresh drive is
    /// [`Array::replacement`](crate::Array::replacement) of the member.
    Replace {
        /// Which member.
        member: MemberIndex,
        /// Sectors the fresh drive has for data.
        sectors: Sectors,
        /// Replace it even if it is healthy (no corrected error, no bad block).
        consent: bool,
    },
    /// The drive in [`Array::replacement`](crate::Array::replacement) of a member was being filled when the array was
    /// stopped, or the power went: goes on with it. Given before anything else is asked for after a start; only
    /// [`Array::judge_resume`](crate::Array::judge_resume) decides whether, and makes this command.
    ResumeReplace {
        /// Which member.
        member: MemberIndex,
        /// Sectors the drive has for data.
        sectors: Sectors,
        /// Below this sector the drive holds what the member holds, but, with a bitmap, for what that names.
        good_to: Sector,
    },
    /// Compare redundancy everywhere.
    StartScrub(Scrub),
    /// Change the pace of background work, from now on.
    Pace(Pacing),
    /// Stop scrubbing; a rebuild or resync goes on when the array is assembled again.
    StopBackground,
    /// Accept no more writes, make everything durable and mark the array clean.
    Stop,
}

/// Why a command was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Refusal {
    /// There is no such member.
    NoSuchMember,
    /// The level lacks the redundancy for it.
    NoRedundancy,
    /// The member is in service; fail it first, or give consent.
    InService,
    /// The member is not in service.
    NotInService,
    /// The fresh drive is smaller than its place.
    TooSmall,
    /// Redundancy cannot be compared while members are missing.
    Degraded,
    /// More members are lost than the level survives.
    ArrayFailed,
    /// Other background work is under way.
    Busy,
    /// I/O is still in flight to the drive that was there before.
    InFlight,
    /// Nothing records what changed while the member was away: add it as a fresh drive.
    NothingKnown,
    /// This level cannot tell apart what the command trusts and what it does not.
    NobodyToBelieve,
    /// A figure is out of its range.
    OutOfRange,
    /// This version does not support it.
    NotSupported,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoSuchMember => "there is no such member",
            Self::NoRedundancy => "the level has no redundancy",
            Self::InService => "it is in service",
            Self::NotInService => "it is not in service",
            Self::TooSmall => "the fresh drive is too small",
            Self::Degraded => {
                "a member is missing or not rebuilt, so that there is nothing to compare with"
            }
            Self::ArrayFailed => "more members are lost than the level survives",
            Self::Busy => "other background work is under way",
            Self::InFlight => "what was asked of the drive that was there before has not ended",
            Self::NothingKnown => "nothing tells any more what it missed",
            Self::NobodyToBelieve => "the level cannot tell what is right",
            Self::OutOfRange => "a figure is out of its range",
            Self::NotSupported => "this version does not support it",
        })
    }
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
    /// Plan the requests held back since [`Input::Plug`].
    Unplug,
    /// A command.
    Admin(Admin),
    /// The time named by [`Output::WakeAt`] has come.
    Wake,
}

/// The result of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// Done.
    Done,
    /// Start or length is not a multiple of the array's logical block size.
    Misaligned,
    /// The range does not lie within the array.
    OutOfRange,
    /// The segments are not as long as the request, or are too many, or empty, or name scratch; or the request is
    /// longer than 512 GiB.
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
    /// Parity that the request needs was not made consistent after an unclean stop.
    Inconsistent,
    /// The array was stopped.
    Stopped,
    /// This version does not support the operation.
    NotSupported,
    /// The request came while `can_accept()` was false.
    Busy,
}

/// Which function of the parity code a job runs. Sources and targets are segment lists of equal length.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ParityOp {
    /// Target 0 = XOR of all sources. The target may be exactly one of the sources.
    Xor,
    /// Each target becomes the P or the Q of the sources, which are all data of the row.
    Pq,
    /// Sources are pairs of old and new data; each target, a P or a Q, is changed in place by their difference.
    Delta,
    /// Targets are the lost data of the row, one or two; sources are all other data, and as many of P and Q as there
    /// are lost data.
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

/// The role of a job's operand in its row of the stripe.
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

/// A job: parity to compute, as [`Array::job`](crate::Array::job) shows it.
#[derive(Clone, Copy, Debug)]
pub struct Job<'a> {
    /// The function to run.
    pub op: ParityOp,
    /// Length of every operand, in sectors.
    pub len: u32,
    /// The segments that are read.
    pub sources: &'a [SegmentList],
    /// The segments that are written.
    pub targets: &'a [SegmentList],
    /// The roles of the sources, in their order, then of the targets. [`ParityOp::Xor`] does not need them.
    pub roles: &'a [Role],
}

/// A set of members, as records store it: member m is bit m mod 64 of word m div 64.
pub type MemberBits = [u64; 2];

/// A period of an array's life, which begins with the first change of state after a start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Epoch {
    /// Distinguishes it from all other epochs of the array; 0 for none.
    pub id: u64,
    /// A superblock that names the preceding epoch in the list, and has this many events or more, belongs to members
    /// that went on from there by themselves.
    pub from: u64,
}

impl Epoch {
    /// The first epoch of every array.
    pub const FIRST: Self = Self { id: 1, from: 1 };
}

/// The epochs that led to a state of an array, newest first; unused entries follow the last.
pub type History = [Epoch; 6];

/// The state of the array as a member's superblock records it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Superblock {
    /// Grows by one with every change of state.
    pub events: u64,
    /// Members out of service.
    pub failed: MemberBits,
    /// Members being rebuilt, whose data are valid only below `rebuilt_to`.
    pub rebuilding: MemberBits,
    /// No write was in flight: redundancy is consistent.
    pub clean: bool,
    /// The journal is in use.
    pub journal: bool,
    /// The rebuild goes by the bitmap: what it does not name is valid beyond `rebuilt_to` too.
    pub by_bitmap: bool,
    /// The data of members being rebuilt are valid below this sector.
    pub rebuilt_to: Sector,
    /// Members whose replacement is being filled, or is about to take over.
    pub replacing: MemberBits,
    /// Below this sector such a replacement holds what its member does; [`Sector::MAX`] when it has everything.
    pub replaced_to: Sector,
    /// Redundancy is consistent below this sector (of a member for levels with parity, of the array for mirrors);
    /// [`Sector::MAX`] when it is consistent everywhere.
    pub synced_to: Sector,
    /// The first sequence number of the journal that is not yet retired.
    pub journal_tail: u64,
    /// The bits of the bitmap set since this event count name everything that a member missed which left then or
    /// later.
    pub bitmap_since: u64,
    /// How the array came to this state.
    pub history: History,
    /// Bit k: a member left service in epoch k of `history`, and may come back with a superblock of that epoch.
    pub left: u8,
}

/// A metadata record: plain values, which the driver encodes as bytes with a checksum. A record whose checksum is
/// wrong when it is read counts as never written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Record {
    /// The state of the array; one record for each member.
    Superblock(Superblock),
    /// A page of the write-intent bitmap; every member has all pages.
    BitmapPage {
        /// Which page.
        page: u32,
        /// 64 bits of it, the first of the page in the lowest bit.
        bits: u64,
    },
    /// An entry of the log on the member that holds P (raid5): its payload is the XOR of the data
    /// chunks of these rows that are not being written; nothing when all are.
    PartialParity {
        /// The index of its place in the member's log, from 0.
        slot: u32,
        /// Grows with each entry of this member.
        generation: u64,
        /// The stripe it protects.
        stripe: u64,
        /// The rows, in sectors from the start of the chunk.
        from: u32,
        /// One past the last row.
        to: u32,
        /// The data chunks that are being written, one bit each.
        written: MemberBits,
        /// The entries of this member with generations from the first of these up to, but without, the second were
        /// durable when this one was made.
        settled: [u64; 2],
    },
    /// An entry of the journal: its payload is what will be written to each of `roles`, in their order, `to - from`
    /// sectors each.
    JournalEntry {
        /// Where in the journal's log area it starts, in sectors.
        at: Sector,
        /// Its number, growing by one.
        sequence: u64,
        /// The stripe it protects.
        stripe: u64,
        /// The rows, in sectors from the start of the chunk.
        from: u32,
        /// One past the last row.
        to: u32,
        /// Which roles of the stripe: data chunks from bit 0 on, then P, then Q.
        roles: MemberBits,
        /// All entries with lower numbers were durable when this one was made.
        settled: u64,
    },
}

/// The length in sectors of the record at the head of a log entry; its payload follows.
pub const LOG_HEADER: u32 = 8;

/// A metadata I/O, as [`Array::meta`](crate::Array::meta) shows it. The record and its payload are
/// written as one: a reader finds both whole, or neither.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MetaIo {
    /// Which member.
    pub member: MemberIndex,
    /// What is written.
    pub record: Record,
    /// Where an entry of a log starts in the member's log area, header first; 0 for other records. The log area of
    /// a member lies after its data, that of the journal at the start of the log device.
    pub at: Sector,
    /// The payload of a log entry.
    pub payload: SegmentList,
    /// Make every write completed before this I/O durable on this member first.
    pub flush: bool,
    /// Complete when durable.
    pub fua: bool,
}

/// Work in the background.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Work {
    /// The journal or the partial-parity log is replayed after an unclean stop.
    LogReplay,
    /// Redundancy is made consistent.
    Resync,
    /// The contents of this member are computed from the others.
    Rebuild(MemberIndex),
    /// This member is copied to its replacement.
    Replace(MemberIndex),
    /// A scrub: redundancy is compared.
    Scrub(Scrub),
}

/// Events of the array.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Event {
    /// A member is out of service.
    MemberFailed(MemberIndex),
    /// The array works without some of its redundancy.
    Degraded {
        /// How many members are out of service.
        missing: u16,
    },
    /// More members are lost than the level survives: nothing is written any more, and reads are answered as far as
    /// their data can still be computed.
    ArrayFailed,
    /// A read that failed on this member was answered from the others.
    ReadRecovered(MemberIndex),
    /// Sectors that a member could not read were rewritten, and can be read again.
    Corrected {
        /// Which member.
        member: MemberIndex,
        /// First sector.
        at: Sector,
        /// How many.
        len: u32,
    },
    /// These sectors of a member cannot be read, and their contents could not be restored.
    BadBlocks {
        /// Which member.
        member: MemberIndex,
        /// First sector.
        at: Sector,
        /// How many.
        len: u32,
    },
    /// Background work begins, at the start or where it was interrupted.
    Started(Work),
    /// Progress of background work.
    Progress {
        /// What.
        work: Work,
        /// Sectors of each member (of the array, on mirrors) that are done.
        done: Sectors,
        /// Sectors in all.
        of: Sectors,
        /// When it will end at its present pace; the end of all time before there is one.
        ends: Time,
    },
    /// This member, replacement or log device has no room for what is to be written: writes wait until there is
    /// room, or until it counts as failed.
    WaitsForRoom(MemberIndex),
    /// Redundancy disagrees here.
    Mismatch {
        /// First sector: of every member for levels with parity, of the array for mirrors.
        at: Sector,
        /// How many sectors.
        len: u32,
        /// The member that P and Q say is wrong, where they can.
        guilty: Option<MemberIndex>,
    },
    /// A mismatch was mended by rewriting this member.
    Mended {
        /// Which member.
        member: MemberIndex,
        /// Its first sector.
        at: Sector,
        /// How many.
        len: u32,
    },
    /// Background work is over.
    Finished {
        /// What.
        work: Work,
        /// Sectors in which redundancy disagreed (scrub).
        mismatched: Sectors,
        /// Sectors whose contents could not be obtained from anywhere (rebuild, resync, scrub).
        lost: Sectors,
    },
    /// Background work was stopped before its end.
    Interrupted(Work),
    /// A member that was rebuilt, or came back, is fully in service, and superblocks say so.
    Restored(MemberIndex),
    /// A member's replacement has taken its place: from this output on, the member's own number means the drive that
    /// was its [`Array::replacement`](crate::Array::replacement).
    Replaced(MemberIndex),
    /// The replacement of this member failed; the member stays in service.
    ReplacementFailed(MemberIndex),
    /// The journal failed: from now on the array works in mode `resync`, with the write hole open.
    JournalFailed,
    /// After [`Admin::Stop`]: everything is durable and the array is marked clean.
    Stopped,
    /// The answer to a command that cannot be carried out now, given when it is handed in; nothing has changed.
    Refused(Refusal),
}

/// An output of the core.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Output {
    /// Carry out this I/O; answer with [`Input::Completion`].
    MemberIo(MemberIo),
    /// Carry out this metadata I/O; answer with [`Input::Completion`].
    Meta {
        /// Look it up with [`Array::meta`](crate::Array::meta).
        io: IoId,
    },
    /// The deadline of this I/O has passed: answer it with [`IoOutcome::Timeout`] as soon as it can no longer touch its
    /// buffers.
    Abandon {
        /// Which I/O.
        io: IoId,
    },
    /// Compute this job; answer with [`Input::Computed`].
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
    /// An event.
    Event(Event),
}

// Every I/O and reply is moved through the queue of outputs: with 8 bytes more, requests took a tenth longer.
const _: () = assert!(size_of::<Output>() <= 40, "a request's outputs must not grow for events");
