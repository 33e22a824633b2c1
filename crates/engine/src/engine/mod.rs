//! The loop: carries out what the array asks for, and hands answers back.
//!
//! All answers that are there are handed in together, then the array is drained; nothing is asked of
//! a member before everything of a round is known, so a batch reaches a member's threads at once.
//! No request allocates; null and memory members cost no lock or system call either.

mod admin;
mod blocking;
mod headers;
mod io;
mod journal;
mod journal_added;
mod journal_lost;
mod journal_replay;
mod md;
mod md_new;
mod md_resume;
mod records;
mod release;
mod room;
mod setup;
#[cfg(test)]
mod tests;
mod zero;

pub use blocking::check_outcome;
pub use journal_added::add_md_journal;
pub use md::{MdFound, MdOptions};
pub use raidlab_metadata::md::journal::Replayed;
pub use setup::{Beginning, EngineConfig, log_device_sectors};

use std::fs::File;
use std::os::fd::{BorrowedFd, RawFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

use raidlab_core::contract::{
    Completion, Event, Input, IoId, IoOp, IoOutcome, JobId, JobResult, Outcome, Output, Request,
    RequestId, Segment, Token, Work,
};
use raidlab_core::{MemberIndex, MemberTotals, Nanos, Sector, Sectors, Time, Volume};

use crate::buffers::{Area, Buffers, Piece};
use crate::compute::Computer;
use crate::device::ReadHold;
use crate::error::{EngineError, EngineErrorKind};
use crate::member::{Finished, Hub, Member, Ring};
use crate::metadata::{BlockId, Metadata};
use headers::{Headers, LogPlaces};
use io::InFlight;

/// The answer to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Reply {
    /// Which request, as [`Engine::submit`] named it.
    pub id: RequestId,
    /// How it went.
    pub outcome: Outcome,
}

/// A member I/O as the array asked for it; kept when [`Engine::record`] is on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Recorded {
    /// Which member.
    pub member: MemberIndex,
    /// What was asked.
    pub op: IoOp,
    /// The first sector, relative to the start of the member's data.
    pub at: Sector,
    /// How many sectors.
    pub len: u32,
    /// Complete when durable.
    pub fua: bool,
}

/// The memory of a request under way. Few requests use more than one segment.
#[derive(Debug, Default)]
struct Pending {
    generation: u32,
    /// A read: its segments are filled.
    fills: bool,
    first: Option<Segment>,
    more: Vec<Segment>,
}

impl Pending {
    fn segments(&self) -> impl Iterator<Item = &Segment> {
        self.first.iter().chain(&self.more)
    }
}

/// An array with its members and buffers, running.
#[derive(Debug)]
pub struct Engine {
    array: Volume,
    /// What members in files and on devices share; dropped before `buffers`, which it uses.
    ring: Option<Ring>,
    /// Dropped before `buffers`: their threads use buffers until they are joined.
    /// Members, their replacements and the journal, as the core numbers them.
    members: Vec<Member>,
    /// Where the data of each start.
    starts: Vec<u64>,
    /// Where md's logs of partial parity lie.
    logs: LogPlaces,
    /// Headers of such logs that are put together.
    headers: Headers,
    /// Of each the records that are written one after another.
    turns: Vec<records::Turn>,
    /// Devices that take the place of a member that fails.
    spares: Vec<Member>,
    /// The number of each, where no other device has it.
    spare_numbers: Vec<Option<u16>>,
    /// How many are members.
    count: usize,
    /// The members' block in sectors.
    block: u32,
    /// What was replaced.
    retired: Vec<Member>,
    metadata: Option<Metadata>,
    beginning: Beginning,
    /// What keeps writers away from what it reads.
    held: Vec<ReadHold>,
    buffers: Buffers,
    computer: Computer,
    hub: Arc<Hub>,
    /// Members may take only so long: threads work on memory of their own.
    deadline: bool,

    started: Instant,
    now: Time,
    /// Inputs were handed in since the array was drained.
    undrained: bool,
    wake: Option<Time>,

    pending: Vec<Pending>,
    free: Vec<u32>,
    outstanding: u32,
    replies: Vec<Reply>,
    events: Vec<(Time, Event)>,
    /// What goes on in the background.
    background: Vec<Work>,
    fault: Option<EngineError>,

    /// Answers to hand in at the next round.
    completions: Vec<Completion>,
    computed: Vec<(JobId, JobResult)>,

    /// I/Os at members that are under way at most.
    ios: usize,
    /// Files or devices are or were among the members.
    has_files: bool,
    /// I/Os at threads, by ticket.
    in_flight: Vec<InFlight>,
    free_tickets: Vec<u32>,
    /// Lists of memory for I/Os at file members, each as long as any needs.
    spare_pieces: Vec<Vec<Piece>>,
    /// Memory for I/Os that may hang.
    spare_bounces: Vec<Area>,
    /// I/Os at memory members that answer nothing.
    stalled: Vec<(IoId, Option<BlockId>)>,
    /// I/Os queued at file members and not handed over yet, and the member of the last one.
    queued: u32,
    last_queued: usize,
    /// I/Os handed over to threads or the ring and not answered.
    at_threads: u32,
    /// Changes that were given up and not answered yet, and devices that are `dead`.
    doubts: u32,
    /// Whether the device of each place failed a change late: it answers nothing any more.
    dead: Vec<bool>,
    finished: Vec<Finished>,

    recorded: Option<Vec<Recorded>>,
    totals: MemberTotals,
    /// The buffer of the blocking calls.
    bounce: Option<(Token, u64)>,
}

/// Whether the calling thread may block until a member answers.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Wait {
    No,
    Yes,
}

impl Engine {
    /// The planner, to look at.
    pub fn array(&self) -> &Volume {
        &self.array
    }

    /// The members, to look at.
    pub fn members(&self) -> &[Member] {
        &self.members[..self.count]
    }

    /// The members, to be read past the array; absent ones hold nothing.
    pub fn members_mut(&mut self) -> &mut [Member] {
        &mut self.members[..self.count]
    }

    /// Where the data of a member start on it: its addresses within the array count from there.
    pub fn data_start(&self, member: MemberIndex) -> Sectors {
        Sectors(self.starts.get(member.at()).copied().unwrap_or(0))
    }

    /// A member, its replacement or the log device, by the core's number, to be changed behind the
    /// array's back; `None` when there is no such device.
    pub fn member_mut(&mut self, member: MemberIndex) -> Option<&mut Member> {
        self.members.get_mut(member.at()).filter(|member| !matches!(member, Member::Absent))
    }

    /// A new buffer for requests: `bytes` bytes, all zero, aligned to the members' direct-I/O unit.
    ///
    /// # Errors
    /// When there is no such memory, or `bytes` is not a positive multiple of 512 below 2 TiB.
    pub fn allocate(&mut self, bytes: u64) -> Result<Token, EngineError> {
        self.buffers.allocate(bytes)
    }

    /// Gives a buffer back.
    ///
    /// # Errors
    /// When there is no such buffer, or a request is using it.
    pub fn release(&mut self, token: Token) -> Result<(), EngineError> {
        self.buffers.release(token)
    }

    /// The contents of a buffer.
    ///
    /// # Errors
    /// When there is no such buffer, or a request is using it.
    pub fn bytes(&self, token: Token) -> Result<&[u8], EngineError> {
        self.buffers.bytes(token)
    }

    /// The contents of a buffer, to be changed.
    ///
    /// # Errors
    /// When there is no such buffer, or a request is using it.
    pub fn bytes_mut(&mut self, token: Token) -> Result<&mut [u8], EngineError> {
        self.buffers.bytes_mut(token)
    }

    /// Starts or stops keeping a list of every member I/O; starting begins a new list.
    pub fn record(&mut self, on: bool) {
        self.recorded = on.then(Vec::new);
    }

    /// The member I/Os kept since [`record`](Self::record) was switched on.
    pub fn recorded(&self) -> &[Recorded] {
        self.recorded.as_deref().unwrap_or_default()
    }

    /// What was asked of all members since the engine was made: reads and writes of data and of
    /// metadata, background work included; flushes, discards and writes of zeroes are not counted.
    pub fn totals(&self) -> MemberTotals {
        self.totals
    }

    /// Requests submitted and not answered yet, or answered and not collected.
    pub fn outstanding(&self) -> u32 {
        self.outstanding
    }

    /// Whether a request may be submitted now.
    #[inline]
    pub fn can_accept(&self) -> bool {
        self.array.can_accept()
    }

    /// Hands a read, write or flush to the array; nothing is done before the next
    /// [`poll_replies`](Self::poll_replies) or [`wait_replies`](Self::wait_replies), so that requests
    /// submitted together are planned together.
    ///
    /// The length is that of the segments. A request that the array refuses is answered, not an error. Writes may
    /// share memory; what a read fills is its own until it is answered.
    ///
    /// # Errors
    /// [`EngineErrorKind::Busy`] when [`can_accept`](Self::can_accept) is false, when a read fills memory of a request
    /// under way, or a write is from memory that such a one fills;
    /// [`EngineErrorKind::InvalidRequest`] when a segment does not lie within a buffer, or segments of a read overlap;
    /// [`EngineErrorKind::NoRoom`] when the filesystem of a sparse member file has no room for a write: nothing
    /// was changed then, and every member stays in service.
    #[inline]
    pub fn submit(
        &mut self,
        op: IoOp,
        at: Sector,
        segments: &[Segment],
        fua: bool,
    ) -> Result<RequestId, EngineError> {
        let len = Sectors(segments.iter().map(|segment| u64::from(segment.len)).sum());
        self.accept(op, at, len, segments, fua)
    }

    /// Hands over a request that has a length but no payload: discard or write zeroes.
    ///
    /// # Errors
    /// As [`submit`](Self::submit).
    pub fn submit_range(
        &mut self,
        op: IoOp,
        at: Sector,
        len: Sectors,
    ) -> Result<RequestId, EngineError> {
        self.accept(op, at, len, &[], false)
    }

    #[inline]
    fn accept(
        &mut self,
        op: IoOp,
        at: Sector,
        len: Sectors,
        segments: &[Segment],
        fua: bool,
    ) -> Result<RequestId, EngineError> {
        if !self.array.can_accept() {
            return Err(busy());
        }
        if let Some(wrong) = segments.iter().find(|segment| !self.buffers.fits(**segment)) {
            return Err(does_not_fit(wrong));
        }
        let fills = op == IoOp::Read;
        self.make_room(op, at, len)?;
        self.lend(segments, fills)?;
        let slot = self.free.pop().unwrap_or_else(|| {
            self.pending.push(Pending::default());
            self.pending.len() as u32 - 1
        });
        let pending = &mut self.pending[slot as usize];
        pending.generation = pending.generation.wrapping_add(1);
        let id = RequestId(u64::from(pending.generation) << 32 | u64::from(slot));
        pending.fills = fills;
        // Most have one segment: for them no list is gone through, here and where they are answered.
        pending.first = segments.first().copied();
        if let [_, more @ ..] = segments
            && !more.is_empty()
        {
            pending.more.extend_from_slice(more);
        }
        self.outstanding += 1;
        self.hand_in(Input::Request(Request { id, op, at, len, segments, fua }));
        Ok(id)
    }

    /// Lends memory to a request; what a read fills is lent to nobody else, see [`Buffers`].
    #[inline]
    fn lend(&mut self, segments: &[Segment], fills: bool) -> Result<(), EngineError> {
        if let (true, [_, _, ..]) = (fills, segments) {
            let twice = (1..segments.len())
                .find(|index| segments[..*index].iter().any(|one| overlap(one, &segments[*index])));
            if let Some(index) = twice {
                return Err(filled_twice(&segments[index]));
            }
        }
        let mut meets = false;
        for segment in segments {
            meets |= self.buffers.hold(*segment, fills);
        }
        if meets { self.check_lent(segments, fills) } else { Ok(()) }
    }

    /// Takes the memory back where another request has a part of it.
    #[cold]
    fn check_lent(&mut self, segments: &[Segment], fills: bool) -> Result<(), EngineError> {
        let others = self.pending.iter().filter(|other| fills || other.fills);
        let is_lent = |segment: &&Segment| {
            others.clone().flat_map(Pending::segments).any(|other| overlap(segment, other))
        };
        let Some(found) = segments.iter().find(is_lent) else { return Ok(()) };
        for segment in segments {
            self.buffers.let_go(*segment, fills);
        }
        Err(lent(found))
    }

    /// Inputs of one batch carry one time: that of the first.
    #[inline]
    fn hand_in(&mut self, input: Input<'_>) {
        if !self.undrained {
            self.now = self.clock();
            self.undrained = true;
        }
        self.array.handle(self.now, input);
    }

    /// The engine's clock: time since it was made.
    pub fn clock(&self) -> Time {
        Time(self.started.elapsed().as_nanos() as u64)
    }

    /// Works until nothing more can be done without waiting, or for some milliseconds, so that whoever calls can look
    /// at what else there is to do ([`goes_on`](Self::goes_on) then); adds the answers that came to `replies`.
    ///
    /// # Errors
    /// A fault of raidlab itself, such as an output that this version does not carry out.
    #[inline]
    pub fn poll_replies(&mut self, replies: &mut Vec<Reply>) -> Result<(), EngineError> {
        self.turn_awhile();
        self.collect(replies)
    }

    /// Whether there is more to do at once, without waiting for anything.
    pub fn goes_on(&self) -> bool {
        self.undrained || self.queued > 0 || self.has_answers()
    }

    /// Whether members or computations have answered, and the array does not know yet.
    #[inline]
    fn has_answers(&self) -> bool {
        !self.completions.is_empty() || !self.computed.is_empty()
    }

    /// Works, and waits for members, until at least one request is answered or none is outstanding;
    /// adds the answers to `replies`.
    ///
    /// While a single request is outstanding the calling thread carries out one of its file I/Os
    /// itself: a hop to another thread and back would only add to its latency.
    ///
    /// # Errors
    /// As [`poll_replies`](Self::poll_replies).
    pub fn wait_replies(&mut self, replies: &mut Vec<Reply>) -> Result<(), EngineError> {
        self.wait_replies_for(replies, None)
    }

    /// The same, but no longer than `most`: then there may be no answer. The calling thread carries out nothing itself,
    /// as it could not be back in time.
    ///
    /// # Errors
    /// As [`poll_replies`](Self::poll_replies).
    pub fn wait_replies_for(
        &mut self,
        replies: &mut Vec<Reply>,
        most: Option<Duration>,
    ) -> Result<(), EngineError> {
        let until = most.map(|most| Instant::now() + most);
        let wait = if until.is_some() { Wait::No } else { Wait::Yes };
        self.turn(wait);
        while self.replies.is_empty() && self.outstanding > 0 && self.fault.is_none() {
            if self.at_threads == 0 && self.wake.is_none() {
                let reason = format!("{} requests wait for nothing", self.outstanding);
                self.fault = Some(EngineError::new(EngineErrorKind::Internal, RUN, reason));
                break;
            }
            let woken = self.wake_in();
            let left = until.map(|until| until.saturating_duration_since(Instant::now()));
            if left.is_some_and(|left| left.is_zero()) {
                break;
            }
            self.wait_members([woken, left].into_iter().flatten().min());
            self.turn(wait);
        }
        // What was listed meanwhile shall not wait for the next call.
        self.submit_listed();
        self.collect(replies)
    }

    /// Asks for a sign when members answer: false when there is something to do already, otherwise
    /// `signal`, an event descriptor, becomes readable with the next answer of a member.
    pub fn arm(&self, signal: &Arc<File>) -> bool {
        !self.goes_on() && (self.at_threads == 0 || self.hub.arm(signal))
    }

    /// Takes back what [`arm`](Self::arm) asked for.
    pub fn disarm(&self) {
        self.hub.disarm();
    }

    /// How long until the array wants to be woken, if it does.
    pub fn wake_in(&self) -> Option<Duration> {
        self.wake.map(|at| Duration::from_nanos(at.since(self.clock()).0))
    }

    /// The descriptors that members use.
    pub fn descriptors(&self) -> Vec<RawFd> {
        let all = self.members.iter().chain(&self.retired).chain(&self.spares);
        let descriptor = |member: &Member| match member {
            Member::File(file) => Some(file.descriptor()),
            _ => None,
        };
        let ring = self.ring.iter().flat_map(|ring| ring.descriptors());
        all.filter_map(descriptor).chain(ring).collect()
    }

    /// The descriptor that can be read when members have answered through the ring; `None` without one.
    pub fn ring_descriptor(&self) -> Option<BorrowedFd<'_>> {
        self.ring.as_ref().map(Ring::descriptor)
    }

    /// The members' block: what starts and lengths of requests must be multiples of.
    pub fn block(&self) -> Sectors {
        Sectors(u64::from(self.block))
    }

    /// Works until every request is answered; adds the answers to `replies`.
    ///
    /// # Errors
    /// As [`poll_replies`](Self::poll_replies).
    pub fn run_until_idle(&mut self, replies: &mut Vec<Reply>) -> Result<(), EngineError> {
        loop {
            self.wait_replies(replies)?;
            if self.outstanding == 0 {
                return Ok(());
            }
        }
    }

    #[inline]
    fn collect(&mut self, replies: &mut Vec<Reply>) -> Result<(), EngineError> {
        self.outstanding -= self.replies.len() as u32;
        // Only now: a command to the engine may have had it work, and whoever knows requests by their places shall not
        // find two of one place.
        self.free.extend(self.replies.iter().map(|reply| reply.id.0 as u32));
        replies.append(&mut self.replies);
        match self.fault.take() {
            None => Ok(()),
            Some(fault) => Err(fault),
        }
    }

    /// Rounds until there is nothing to do without waiting.
    #[inline]
    fn turn(&mut self, wait: Wait) {
        if wait == Wait::No && self.ring.is_some() {
            self.post_ring();
        }
        while self.round(wait) {}
        if wait == Wait::No {
            self.submit_listed();
        }
    }

    /// The same without waiting, for no longer than [`AWHILE`]: members that answer at once, such as those in memory,
    /// and threads that answer while others are looked at, may have answers for as long as there is work.
    #[inline]
    fn turn_awhile(&mut self) {
        if self.ring.is_some() {
            self.post_ring();
        }
        let mut begun = None;
        for number in 0_u32.. {
            if !self.round(Wait::No) {
                break;
            }
            // Nearly always there are fewer rounds, which need no look at the clock.
            if number >= FEW_ROUNDS {
                let now = self.clock();
                if now.since(*begun.get_or_insert(now)) >= AWHILE {
                    break;
                }
            }
        }
        self.submit_listed();
    }

    /// Works on, and waits for members before, but no longer than `limit`, if there is nothing to do.
    fn work_on(&mut self, limit: Duration) {
        if !self.goes_on() {
            self.wait_members(Some(limit));
        }
        self.turn_awhile();
    }

    /// Drains the array and hands in answers; whether there is another round to be made.
    #[inline]
    fn round(&mut self, wait: Wait) -> bool {
        while let Some(output) = self.array.poll() {
            self.carry_out(output);
        }
        self.undrained = false;
        if self.headers.gathered {
            self.send_headers();
        }
        if self.queued > 0 {
            self.hand_over(wait);
        }
        if self.at_threads > 0 {
            self.take_finished();
        }
        if self.wake.is_some_and(|at| at <= self.clock()) {
            self.wake = None;
            self.hand_in(Input::Wake);
        }
        if !self.goes_on() {
            return false;
        }
        self.hand_in_answers();
        // Background work on members in memory would go on to its end.
        self.background.is_empty() || self.replies.is_empty()
    }

    #[inline]
    fn hand_in_answers(&mut self) {
        let mut completions = std::mem::take(&mut self.completions);
        for completion in completions.drain(..) {
            self.hand_in(Input::Completion(completion));
        }
        self.completions = completions;
        let mut computed = std::mem::take(&mut self.computed);
        for (job, result) in computed.drain(..) {
            self.hand_in(Input::Computed { job, result });
        }
        self.computed = computed;
    }

    #[inline]
    fn carry_out(&mut self, output: Output) {
        match output {
            Output::MemberIo(io) => self.member_io(&io),
            Output::Compute { job } => {
                let result = self.computer.run(&self.array, &self.buffers, job);
                self.computed.push((job, result));
            }
            Output::Reply { id, outcome } => self.reply(id, outcome),
            Output::Meta { io } => self.meta_io(io),
            Output::Abandon { io } => self.abandon(io),
            Output::WakeAt(at) => self.wake = Some(at),
            Output::Event(event) => self.event(event),
        }
    }

    #[inline]
    fn reply(&mut self, id: RequestId, outcome: Outcome) {
        let slot = id.0 as u32;
        let pending = &mut self.pending[slot as usize];
        debug_assert_eq!(u64::from(pending.generation), id.0 >> 32, "answered twice");
        if let Some(first) = pending.first.take() {
            self.buffers.let_go(first, pending.fills);
        }
        if !pending.more.is_empty() {
            for segment in pending.more.drain(..) {
                self.buffers.let_go(segment, pending.fills);
            }
        }
        self.replies.push(Reply { id, outcome });
    }

    #[inline]
    fn complete(&mut self, io: IoId, outcome: IoOutcome) {
        self.completions.push(Completion { io, outcome });
    }
}

const RUN: &str = "run the array";

/// How long the engine works at most before others have their turn who share its thread: clients of a server, signals.
const AWHILE: Nanos = Nanos(2_000_000);
/// Rounds that are made before the clock is looked at.
const FEW_ROUNDS: u32 = 4;

#[cold]
fn busy() -> EngineError {
    let reason = "the array takes no more requests now; collect replies first";
    EngineError::new(EngineErrorKind::Busy, "submit a request", reason)
}

/// Whether two segments have memory in common.
fn overlap(one: &Segment, other: &Segment) -> bool {
    let end = |segment: &Segment| u64::from(segment.offset) + u64::from(segment.len);
    one.token == other.token
        && u64::from(one.offset) < end(other)
        && u64::from(other.offset) < end(one)
}

#[cold]
fn lent(segment: &Segment) -> EngineError {
    let why = "belong to a request under way, and one of both fills them";
    refused(EngineErrorKind::Busy, segment, format!("of buffer {} {why}", segment.token.0))
}

#[cold]
fn filled_twice(segment: &Segment) -> EngineError {
    let reason = format!("of buffer {} would be filled twice by one read", segment.token.0);
    refused(EngineErrorKind::InvalidRequest, segment, reason)
}

#[cold]
fn does_not_fit(segment: &Segment) -> EngineError {
    let reason = format!("do not lie within a buffer with token {}", segment.token.0);
    refused(EngineErrorKind::InvalidRequest, segment, reason)
}

fn refused(kind: EngineErrorKind, segment: &Segment, reason: String) -> EngineError {
    let Segment { offset, len, .. } = segment;
    let reason = format!("{len} sectors from sector {offset} on {reason}");
    EngineError::new(kind, "submit a request", reason)
}
