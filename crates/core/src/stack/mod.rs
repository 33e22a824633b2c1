//! Nested levels: an array whose members are arrays, such as a stripe over mirrors.
//!
//! Fault model: as [`array`](crate::array) for each array. An inner array that has lost more than its
//! level survives is a lost member of the outer one.
//! Why it is safe: the outer array sees an inner one as a member like any other, and learns of it only
//! what a member can tell: done, a bad sector at this place, or gone. What is acknowledged by an inner
//! array is acknowledged under its own promise.
//! Tests: `tests/stack.rs`, against a flat copy, with every set of drives lost that the nesting survives.
//!
//! The contract is that of [`Array`], with these differences: members are counted through the inner
//! arrays in order; lists and jobs are read through the stack; events about members name drives, and
//! the failure of an inner array alone is no event of its own, since those of its drives have told.

use std::collections::VecDeque;

use crate::array::{
    Array, Config, ConfigError, Limits, MemberConfig, Segments, Settings, TAG_SHIFT, tag_of,
};
use crate::contract::{
    Admin, Completion, Event, Input, IoId, IoOutcome, Job, JobId, MemberIo, Outcome, Output,
    Refusal, Request, RequestId, Scratch, Segment, SegmentList,
};
use crate::layout::Layout;
use crate::policy::ReadPolicy;
use crate::units::{MemberIndex, Sectors, Time};

/// The most inner arrays.
pub const MOST_ARRAYS: usize = 127;

/// What a stack is made of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StackConfig {
    /// The outer level, with as many members as there are inner arrays.
    pub layout: Layout,
    /// Which inner array a read of the outer level takes, where it has copies.
    pub read_policy: ReadPolicy,
    /// How much the outer array may hold at once. Those of the inner arrays are raised to what it can
    /// send them.
    pub limits: Limits,
    /// The inner arrays in the order of the outer members.
    pub inner: Vec<Config>,
}

/// An array of arrays.
#[derive(Clone, Debug)]
pub struct Stack {
    outer: Array,
    inner: Vec<Inner>,
    scratch: Scratch,
    /// The segments of a request to an inner array, while it is handed in.
    segments: Vec<Segment>,
    now: Time,
}

/// An inner array.
#[derive(Clone, Debug)]
struct Inner {
    array: Array,
    /// Its first drive, counted through all.
    first: u16,
    members: u16,
    /// I/Os of the outer array that wait until this one accepts requests.
    waiting: VecDeque<MemberIo>,
}

/// The numbers of slots; the bits above hold the array they belong to.
const SLOT: u32 = (1 << TAG_SHIFT) - 1;

impl Stack {
    /// A stack over drives whose redundancy is consistent.
    ///
    /// # Errors
    /// When an array cannot be, or there are too many; the error names the key.
    pub fn new(config: &StackConfig) -> Result<Self, ConfigError> {
        if config.inner.len() > MOST_ARRAYS {
            let reason = format!("at most {MOST_ARRAYS} inner arrays, not {}", config.inner.len());
            return Err(ConfigError { key: "members", reason });
        }
        let mut inner = Vec::new();
        let (mut first, mut buffers, mut len) = (0, 0, 0);
        for (index, one) in config.inner.iter().enumerate() {
            if one.settings.consistency.has_superblocks() {
                let reason =
                    "arrays of a stack keep no superblocks in this version; use none".into();
                return Err(ConfigError { key: "consistency", reason });
            }
            let mut one = one.clone();
            // What the outer array may send at once: its gathered pieces and one request's segments, or
            // the atoms of a raid3.
            one.limits.segments = one.limits.segments.max(2 * config.limits.segments + 528);
            let mut array = Array::new(&one)?;
            array.nest(index as u32 + 1, buffers);
            let scratch = array.scratch();
            (buffers, len) = (buffers + scratch.count, scratch.len.max(len));
            let members = one.layout.members;
            let waiting = VecDeque::with_capacity(config.limits.ios as usize);
            inner.push(Inner { array, first, members, waiting });
            first = first.checked_add(members).ok_or_else(|| ConfigError {
                key: "members",
                reason: "more than 65,535 drives".into(),
            })?;
        }
        let member = |one: &Inner| MemberConfig {
            sectors: one.array.capacity(),
            logical_block: one.array.logical_block(),
        };
        let outer = Config {
            layout: config.layout.clone(),
            members: inner.iter().map(member).collect(),
            read_policy: config.read_policy,
            traits: Vec::new(),
            limits: config.limits,
            settings: Settings::default(),
        };
        let mut outer = Array::new(&outer)?;
        outer.nest(0, buffers);
        let scratch = outer.scratch();
        let scratch = Scratch { count: buffers + scratch.count, len: scratch.len.max(len) };
        let most = inner.iter().map(|one| one.array.most_segments()).max().unwrap_or(0);
        let segments = Vec::with_capacity(most as usize);
        Ok(Self { outer, inner, scratch, segments, now: Time::ZERO })
    }

    /// Usable sectors.
    pub fn capacity(&self) -> Sectors {
        self.outer.capacity()
    }

    /// Requests start and end on multiples of this many sectors.
    pub fn logical_block(&self) -> u32 {
        self.outer.logical_block()
    }

    /// The outer array.
    pub fn outer(&self) -> &Array {
        &self.outer
    }

    /// The inner arrays in order.
    pub fn inner(&self) -> impl Iterator<Item = &Array> {
        self.inner.iter().map(|one| &one.array)
    }

    /// How many drives.
    pub fn drives(&self) -> u16 {
        self.inner.last().map_or(0, |one| one.first + one.members)
    }

    /// The scratch buffers the driver provides, for all arrays together.
    pub fn scratch(&self) -> Scratch {
        self.scratch
    }

    /// Whether a request may be handed in now.
    pub fn can_accept(&self) -> bool {
        self.outer.can_accept()
    }

    /// Takes one input; as [`Array::handle`].
    pub fn handle(&mut self, now: Time, input: Input<'_>) {
        self.now = now;
        match input {
            Input::Completion(Completion { io, outcome }) => {
                let (array, io) = untag_io(io);
                if let Some(one) = array.checked_sub(1).and_then(|index| self.inner.get_mut(index))
                {
                    let completion = Completion { io, outcome };
                    one.array.handle(now, Input::Completion(completion));
                }
            }
            Input::Computed { job, result } => {
                let (array, job) = untag_job(job);
                if let Some(array) = self.array_mut(array) {
                    array.handle(now, Input::Computed { job, result });
                }
            }
            Input::Admin(Admin::Fail(drive)) if drive.0 < self.drives() => {
                let (index, member) = self.locate(drive);
                self.inner[index].array.handle(now, Input::Admin(Admin::Fail(member)));
            }
            // Nothing but failing a drive is carried out on a stack in this version.
            Input::Admin(command) => {
                let reason = match command {
                    Admin::Fail(_) => Refusal::NoSuchMember,
                    _ => Refusal::NotSupported,
                };
                self.outer.refuse(reason);
            }
            // Requests and plugs.
            other => self.outer.handle(now, other),
        }
    }

    /// The next output; as [`Array::poll`].
    pub fn poll(&mut self) -> Option<Output> {
        loop {
            if let Some(output) = self.outer.poll() {
                match self.told_by_outer(output) {
                    None => continue,
                    told => return told,
                }
            }
            let index = self.inner.iter_mut().enumerate().find_map(|(index, one)| {
                let output = one.array.poll()?;
                Some((index, output))
            });
            let (index, output) = index?;
            if let Some(told) = self.told_by_inner(index, output) {
                return Some(told);
            }
        }
    }

    /// The segments of a list, in order; valid until its I/O or job is completed.
    pub fn segments<'a>(&'a self, list: &SegmentList) -> Segments<'a> {
        let array = tag_of(list).and_then(|tag| self.array(tag)).unwrap_or(&self.outer);
        array.segments(list)
    }

    /// The operands of a job; `None` when it is no longer wanted.
    pub fn job(&self, job: JobId) -> Option<Job<'_>> {
        let (array, job) = untag_job(job);
        self.array(array)?.job(job)
    }

    /// A key of everything that decides what the stack does next.
    pub fn state_key(&self) -> u64 {
        let waiting = |one: &Inner| one.waiting.len() as u64;
        self.inner.iter().fold(self.outer.state_key(), |key, one| {
            let mixed = key.rotate_left(7) ^ one.array.state_key();
            mixed.wrapping_mul(0x100_0000_01b3) ^ waiting(one)
        })
    }

    /// The array with a tag: 0 is the outer one.
    fn array(&self, tag: usize) -> Option<&Array> {
        match tag {
            0 => Some(&self.outer),
            _ => self.inner.get(tag - 1).map(|one| &one.array),
        }
    }

    fn array_mut(&mut self, tag: usize) -> Option<&mut Array> {
        match tag {
            0 => Some(&mut self.outer),
            _ => self.inner.get_mut(tag - 1).map(|one| &mut one.array),
        }
    }

    /// The inner array of a drive, and its place there.
    fn locate(&self, drive: MemberIndex) -> (usize, MemberIndex) {
        let index = self.inner.partition_point(|one| one.first + one.members <= drive.0);
        (index, MemberIndex(drive.0 - self.inner[index].first))
    }

    /// What the driver is told of an output of the outer array, if anything.
    fn told_by_outer(&mut self, output: Output) -> Option<Output> {
        match output {
            Output::MemberIo(io) => {
                let index = io.member.at();
                if self.inner[index].array.can_accept() {
                    self.hand_down(index, &io);
                } else {
                    self.inner[index].waiting.push_back(io);
                }
                None
            }
            // Its members are arrays: their drives have told.
            Output::Event(
                Event::MemberFailed(_)
                | Event::Degraded { .. }
                | Event::Corrected { .. }
                | Event::BadBlocks { .. },
            ) => None,
            Output::Compute { job } => Some(Output::Compute { job: tag_job(0, job) }),
            other => Some(other),
        }
    }

    /// Gives an I/O of the outer array to an inner one, which accepts it.
    fn hand_down(&mut self, index: usize, io: &MemberIo) {
        self.segments.clear();
        self.segments.extend(self.outer.segments(&io.segments));
        let request = Request {
            id: RequestId(u64::from(io.io.slot) << 32 | u64::from(io.io.generation)),
            op: io.op,
            at: io.at,
            len: Sectors(u64::from(io.len)),
            segments: &self.segments,
            fua: io.fua,
        };
        self.inner[index].array.handle(self.now, Input::Request(request));
    }

    /// What the driver is told of an output of an inner array, if anything.
    fn told_by_inner(&mut self, index: usize, output: Output) -> Option<Output> {
        let drive = |one: &Inner, member: MemberIndex| MemberIndex(one.first + member.0);
        let one = &self.inner[index];
        match output {
            Output::Reply { id, outcome } => {
                self.answered(index, id, outcome);
                None
            }
            Output::MemberIo(io) => {
                let member = drive(one, io.member);
                Some(Output::MemberIo(MemberIo { io: tag_io(index + 1, io.io), member, ..io }))
            }
            Output::Compute { job } => Some(Output::Compute { job: tag_job(index + 1, job) }),
            Output::Event(Event::MemberFailed(member)) => {
                Some(Output::Event(Event::MemberFailed(drive(one, member))))
            }
            Output::Event(Event::ReadRecovered(member)) => {
                Some(Output::Event(Event::ReadRecovered(drive(one, member))))
            }
            Output::Event(Event::Corrected { member, at, len }) => {
                let member = drive(one, member);
                Some(Output::Event(Event::Corrected { member, at, len }))
            }
            Output::Event(Event::BadBlocks { member, at, len }) => {
                let member = drive(one, member);
                Some(Output::Event(Event::BadBlocks { member, at, len }))
            }
            Output::Event(Event::Degraded { .. }) => {
                let missing = self.missing();
                Some(Output::Event(Event::Degraded { missing }))
            }
            Output::Event(Event::ArrayFailed) => {
                let member = MemberIndex(index as u16);
                self.outer.handle(self.now, Input::Admin(Admin::Fail(member)));
                None
            }
            other => Some(other),
        }
    }

    /// Drives out of service.
    fn missing(&self) -> u16 {
        let failed = |one: &Inner| {
            (0..one.members).filter(|member| one.array.is_failed(MemberIndex(*member))).count()
        };
        self.inner.iter().map(failed).sum::<usize>() as u16
    }

    /// Tells the outer array how an inner one's request went, and gives the inner one the next.
    fn answered(&mut self, index: usize, id: RequestId, outcome: Outcome) {
        let io = IoId { slot: (id.0 >> 32) as u32, generation: id.0 as u32 };
        let outcome = match outcome {
            Outcome::Done => IoOutcome::Ok,
            Outcome::MediaError { first_bad } => IoOutcome::MediaError { first_bad },
            // An array that failed, or could not compute, is a member that is gone.
            _ => IoOutcome::Gone,
        };
        let completion = Completion { io, outcome };
        self.outer.handle(self.now, Input::Completion(completion));
        if self.inner[index].array.can_accept()
            && let Some(next) = self.inner[index].waiting.pop_front()
        {
            self.hand_down(index, &next);
        }
    }
}

const fn tag_io(array: usize, io: IoId) -> IoId {
    IoId { slot: io.slot | (array as u32) << TAG_SHIFT, generation: io.generation }
}

const fn untag_io(io: IoId) -> (usize, IoId) {
    let tag = (io.slot >> TAG_SHIFT) as usize;
    (tag, IoId { slot: io.slot & SLOT, generation: io.generation })
}

const fn tag_job(array: usize, job: JobId) -> JobId {
    JobId { slot: job.slot | (array as u32) << TAG_SHIFT, generation: job.generation }
}

const fn untag_job(job: JobId) -> (usize, JobId) {
    let tag = (job.slot >> TAG_SHIFT) as usize;
    (tag, JobId { slot: job.slot & SLOT, generation: job.generation })
}
