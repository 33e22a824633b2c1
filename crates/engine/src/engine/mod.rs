//! The loop: carries out what the array asks for, and hands answers back.
//!
//! All answers that are there are handed in together, then the array is drained; nothing is asked of
//! a member before everything of a round is known, so a batch reaches a member's threads at once.
//! Null and memory members cost no allocation, lock or system call per request.

mod blocking;

pub(crate) use blocking::check_outcome;

use std::sync::Arc;
use std::time::{Duration, Instant};

use raidlab_core::contract::{
    Completion, Event, Input, IoId, IoOp, IoOutcome, JobId, JobResult, MemberIo, MetaIo, Outcome,
    Output, Request, RequestId, RequestOp, Segment, Token,
};
use raidlab_core::policy::ReadPolicy;
use raidlab_core::{
    Array, Config, Layout, Limits, MemberConfig, MemberIndex, Sector, Sectors, Time,
};

use crate::buffers::{Buffers, Piece};
use crate::compute::Computer;
use crate::error::{EngineError, EngineErrorKind};
use crate::member::{Finished, Hub, Member, Submission, Ticket};

/// What an engine's array is, besides its members.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EngineConfig {
    /// Level and parameters.
    pub layout: Layout,
    /// Which copy a read takes.
    pub read_policy: ReadPolicy,
    /// How much at once.
    pub limits: Limits,
}

impl EngineConfig {
    /// A layout with the default read policy and limits.
    pub fn new(layout: Layout) -> Self {
        Self { layout, read_policy: ReadPolicy::default(), limits: Limits::default() }
    }
}

/// The answer to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reply {
    /// Which request, as [`Engine::submit`] named it.
    pub id: RequestId,
    /// How it went.
    pub outcome: Outcome,
}

/// A member I/O as the array asked for it; kept when [`Engine::record`] is on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
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

/// The buffers of a request under way. Few requests use more than one.
#[derive(Debug, Default)]
struct Pending {
    generation: u32,
    first: Option<Token>,
    more: Vec<Token>,
}

/// An array with its members and buffers, running.
#[derive(Debug)]
pub struct Engine {
    array: Array,
    /// Dropped before `buffers`: their threads use buffers until they are joined.
    members: Vec<Member>,
    buffers: Buffers,
    computer: Computer,
    hub: Arc<Hub>,

    started: Instant,
    now: Time,
    /// Inputs were handed in since the array was drained.
    undrained: bool,
    wake: Option<Time>,

    pending: Vec<Pending>,
    free: Vec<u32>,
    outstanding: u32,
    replies: Vec<Reply>,
    events: Vec<Event>,
    fault: Option<EngineError>,

    /// Answers to hand in at the next round.
    completions: Vec<Completion>,
    computed: Vec<(JobId, JobResult)>,

    /// I/Os at threads: what the core calls them, by ticket.
    tickets: Vec<IoId>,
    free_tickets: Vec<u32>,
    /// I/Os queued at file members and not handed over yet, and the member of the last one.
    queued: u32,
    last_queued: usize,
    /// I/Os handed over and not answered.
    at_threads: u32,
    finished: Vec<Finished>,

    recorded: Option<Vec<Recorded>>,
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
    /// An array over these members, in order. Its redundancy is taken to be consistent.
    ///
    /// # Errors
    /// [`EngineErrorKind::Config`] when layout, members or limits cannot be, with the parameter that is
    /// wrong; [`EngineErrorKind::NoMemory`].
    pub fn new(config: &EngineConfig, mut members: Vec<Member>) -> Result<Self, EngineError> {
        let core_config = Config {
            layout: config.layout.clone(),
            members: members.iter().map(Member::config).collect::<Vec<MemberConfig>>(),
            read_policy: config.read_policy,
            traits: Vec::new(),
            limits: config.limits,
        };
        let array = Array::new(&core_config).map_err(|error| {
            let reason = format!("{}: {}", error.key, error.reason);
            EngineError::new(EngineErrorKind::Config, "make the array", reason)
        })?;
        let hub = Arc::<Hub>::default();
        for member in &mut members {
            if let Member::File(file) = member {
                file.connect(&hub);
            }
        }
        let requests = config.limits.requests as usize;
        Ok(Self {
            buffers: Buffers::for_members(array.scratch(), &members)?,
            array,
            members,
            computer: Computer::default(),
            hub,
            started: Instant::now(),
            now: Time::ZERO,
            undrained: false,
            wake: None,
            pending: Vec::with_capacity(requests),
            free: Vec::with_capacity(requests),
            outstanding: 0,
            replies: Vec::with_capacity(requests),
            events: Vec::new(),
            fault: None,
            completions: Vec::with_capacity(config.limits.ios as usize),
            computed: Vec::with_capacity(config.limits.plans as usize),
            tickets: Vec::new(),
            free_tickets: Vec::new(),
            queued: 0,
            last_queued: 0,
            at_threads: 0,
            finished: Vec::new(),
            recorded: None,
            bounce: None,
        })
    }

    /// The planner, to look at.
    pub fn array(&self) -> &Array {
        &self.array
    }

    /// The members, to look at.
    pub fn members(&self) -> &[Member] {
        &self.members
    }

    /// A member, to be changed behind the array's back; `None` when there is no such member.
    pub fn member_mut(&mut self, member: MemberIndex) -> Option<&mut Member> {
        self.members.get_mut(member.at())
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

    /// The news of the array since the last call.
    pub fn take_events(&mut self) -> Vec<Event> {
        std::mem::take(&mut self.events)
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
    /// The length is that of the segments. A request that the array refuses is answered, not an error.
    ///
    /// # Errors
    /// [`EngineErrorKind::Busy`] when [`can_accept`](Self::can_accept) is false;
    /// [`EngineErrorKind::InvalidRequest`] when a segment does not lie within a buffer.
    #[inline]
    pub fn submit(
        &mut self,
        op: RequestOp,
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
        op: RequestOp,
        at: Sector,
        len: Sectors,
    ) -> Result<RequestId, EngineError> {
        self.accept(op, at, len, &[], false)
    }

    #[inline]
    fn accept(
        &mut self,
        op: RequestOp,
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
        let slot = self.free.pop().unwrap_or_else(|| {
            self.pending.push(Pending::default());
            self.pending.len() as u32 - 1
        });
        let pending = &mut self.pending[slot as usize];
        pending.generation = pending.generation.wrapping_add(1);
        let id = RequestId(u64::from(pending.generation) << 32 | u64::from(slot));
        let mut tokens = segments.iter().map(|segment| segment.token);
        pending.first = tokens.next();
        pending.more.extend(tokens);
        for segment in segments {
            self.buffers.hold(segment.token);
        }
        self.outstanding += 1;
        self.hand_in(Input::Request(Request { id, op, at, len, segments, fua }));
        Ok(id)
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

    fn clock(&self) -> Time {
        Time(self.started.elapsed().as_nanos() as u64)
    }

    /// Works until nothing more can be done without waiting; adds the answers that came to `replies`.
    ///
    /// # Errors
    /// A fault of raidlab itself, such as an output that this version does not carry out.
    #[inline]
    pub fn poll_replies(&mut self, replies: &mut Vec<Reply>) -> Result<(), EngineError> {
        self.turn(Wait::No);
        self.collect(replies)
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
        self.turn(Wait::Yes);
        while self.replies.is_empty() && self.outstanding > 0 && self.fault.is_none() {
            if self.at_threads == 0 && self.wake.is_none() {
                let reason = format!("{} requests wait for nothing", self.outstanding);
                self.fault = Some(EngineError::new(EngineErrorKind::Internal, RUN, reason));
                break;
            }
            let limit = self.wake.map(|at| Duration::from_nanos(at.since(self.clock()).0));
            self.hub.wait(&mut self.finished, limit);
            self.turn(Wait::Yes);
        }
        self.collect(replies)
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
        replies.append(&mut self.replies);
        match self.fault.take() {
            None => Ok(()),
            Some(fault) => Err(fault),
        }
    }

    /// Rounds of draining the array and handing in answers, until neither gives anything.
    #[inline]
    fn turn(&mut self, wait: Wait) {
        loop {
            while let Some(output) = self.array.poll() {
                self.carry_out(output);
            }
            self.undrained = false;
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
            if self.completions.is_empty() && self.computed.is_empty() && !self.undrained {
                return;
            }
            self.hand_in_answers();
        }
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
            Output::Meta(meta) => self.refuse(&meta),
            Output::WakeAt(at) => self.wake = Some(at),
            Output::Event(event) => self.events.push(event),
        }
    }

    #[inline]
    fn reply(&mut self, id: RequestId, outcome: Outcome) {
        let slot = id.0 as u32;
        let pending = &mut self.pending[slot as usize];
        debug_assert_eq!(u64::from(pending.generation), id.0 >> 32, "answered twice");
        for token in pending.first.take().into_iter().chain(pending.more.drain(..)) {
            self.buffers.let_go(token);
        }
        self.free.push(slot);
        self.replies.push(Reply { id, outcome });
    }

    /// This version's core asks for no metadata; one that does needs an engine that writes them.
    #[cold]
    fn refuse(&mut self, meta: &MetaIo) {
        let reason = format!("metadata ({:?}) are not supported by this version", meta.record);
        self.fault = Some(EngineError::new(EngineErrorKind::NotSupported, RUN, reason));
        self.complete(meta.io, IoOutcome::Gone);
    }

    #[inline]
    fn complete(&mut self, io: IoId, outcome: IoOutcome) {
        self.completions.push(Completion { io, outcome, record: None });
    }

    #[inline]
    fn member_io(&mut self, io: &MemberIo) {
        if let Some(recorded) = &mut self.recorded {
            let MemberIo { member, op, at, len, fua, .. } = *io;
            recorded.push(Recorded { member, op, at, len, fua });
        }
        let len = Sectors(u64::from(io.len));
        let submission = Submission { op: io.op, at: io.at, len, fua: io.fua };
        let outcome = match &mut self.members[io.member.at()] {
            Member::Null(_) => IoOutcome::Ok,
            Member::Memory(member) => {
                let segments = self.array.segments(&io.segments);
                let buffers = &self.buffers;
                let pieces = segments.filter_map(|segment| buffers.piece(segment));
                // SAFETY: the core lends the segments' memory to this I/O until it is completed;
                // buffers are apart from members.
                unsafe { member.carry_out(&submission, pieces) }
            }
            Member::File(_) => {
                self.queue(io, submission);
                return;
            }
        };
        self.complete(io.io, outcome);
    }

    fn queue(&mut self, io: &MemberIo, submission: Submission) {
        let segments = self.array.segments(&io.segments);
        let pieces: Option<Vec<Piece>> = segments.map(|one| self.buffers.piece(one)).collect();
        let Some(pieces) = pieces else {
            let reason = "the core named memory that is no buffer";
            self.fault = Some(EngineError::new(EngineErrorKind::Internal, RUN, reason));
            self.complete(io.io, IoOutcome::Gone);
            return;
        };
        let ticket = self.free_tickets.pop().unwrap_or_else(|| {
            self.tickets.push(io.io);
            self.tickets.len() as u32 - 1
        });
        self.tickets[ticket as usize] = io.io;
        if let Member::File(member) = &mut self.members[io.member.at()] {
            member.queue(Ticket(ticket), submission, pieces);
            self.queued += 1;
            self.last_queued = io.member.at();
        }
    }

    /// Gives what is queued to the members' threads; with a single request outstanding the last I/O is
    /// done here meanwhile.
    fn hand_over(&mut self, wait: Wait) {
        let alone = wait == Wait::Yes && self.outstanding == 1 && self.at_threads == 0;
        let own = match &mut self.members[self.last_queued] {
            Member::File(member) if alone => member.take_last(),
            _ => None,
        };
        self.at_threads += self.queued;
        self.queued = 0;
        for member in &mut self.members {
            if let Member::File(member) = member {
                member.hand_over();
            }
        }
        if let (Some(work), Member::File(member)) = (own, &self.members[self.last_queued]) {
            let finished = member.do_here(&work);
            self.finish(finished);
        }
    }

    fn take_finished(&mut self) {
        let mut finished = std::mem::take(&mut self.finished);
        if finished.is_empty() {
            self.hub.take(&mut finished);
        }
        for one in finished.drain(..) {
            self.finish(one);
        }
        self.finished = finished;
    }

    fn finish(&mut self, Finished { ticket, outcome }: Finished) {
        self.at_threads -= 1;
        self.free_tickets.push(ticket.0);
        self.complete(self.tickets[ticket.0 as usize], outcome);
    }
}

const RUN: &str = "run the array";

#[cold]
fn busy() -> EngineError {
    let reason = "the array takes no more requests now; collect replies first";
    EngineError::new(EngineErrorKind::Busy, "submit a request", reason)
}

#[cold]
fn does_not_fit(segment: &Segment) -> EngineError {
    let Segment { token, offset, len } = segment;
    let reason = format!(
        "{len} sectors from sector {offset} on do not lie within a buffer with token {}",
        token.0
    );
    EngineError::new(EngineErrorKind::InvalidRequest, "submit a request", reason)
}
