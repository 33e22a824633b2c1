//! Nested levels: an array whose members are arrays, such as a stripe over mirrors.
//!
//! Fault model: as [`array`](crate::array) for each array. An inner array that has lost more than its
//! level survives is a lost member of the outer one.
//! Why it is safe: the outer array sees an inner one as a member like any other, and learns of it only
//! what a member can tell: done, a bad sector at this place, or gone. What is acknowledged by an inner
//! array is acknowledged under its own promise.
//! Tests: `tests/stack.rs`, against a flat copy, with every set of drives lost that the nesting survives.
//!
//! The contract is that of [`Array`], with these differences: members are counted through the inner arrays in order,
//! and so are their replacements; lists and jobs are read through the stack; events about members name drives, and the
//! failure of an inner array alone is no event of its own, since those of its drives have told. An inner array that is
//! lost comes back as a new one, which the outer array rebuilds as a whole, when fresh drives are in all places of it
//! that failed.

mod admin;
mod events;
mod status;

use std::collections::VecDeque;

use crate::array::{
    Array, Config, ConfigError, Limits, MemberConfig, Segments, Settings, TAG_SHIFT, check_policy,
    tag_of,
};
use crate::contract::{
    Completion, Input, IoId, IoOutcome, Job, JobId, MemberIo, Outcome, Output, Request, RequestId,
    Scratch, Segment, SegmentList,
};
use crate::geometry::{Geometry, Nested};
use crate::layout::{Layout, MOST_ARRAYS};
use crate::policy::ReadPolicy;
use crate::units::{MemberIndex, Sectors, Time};
use events::Scrubbing;

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
    layout: Layout,
    /// The geometry of both levels, [`Geometry::Nested`].
    geometry: Geometry,
    scratch: Scratch,
    has_payload: bool,
    /// The segments of a request to an inner array, while it is handed in.
    segments: Vec<Segment>,
    /// Outputs of its own.
    outputs: VecDeque<Output>,
    /// When the outer array and each inner one want to be woken, and what the driver was told.
    wakes: Vec<Option<Time>>,
    told_wake: Option<Time>,
    scrubbing: Option<Scrubbing>,
    /// A stop under way: the inner arrays that have stopped or are lost, a bit for each, once the outer one has.
    stopping: Option<u128>,
    now: Time,
}

/// An inner array.
#[derive(Clone, Debug)]
struct Inner {
    array: Array,
    /// What it is made of, should it be lost and made anew.
    config: Config,
    /// The first of its scratch buffers.
    scratch_base: u32,
    /// Drives that are back in the places of failed ones, while it is lost: a bit for each.
    returned: u128,
    /// Its first drive, counted through all.
    first: u16,
    members: u16,
    /// I/Os of the outer array that wait until this one accepts requests.
    waiting: VecDeque<MemberIo>,
}

/// The numbers of slots; the bits above hold the array they belong to.
const SLOT: u32 = (1 << TAG_SHIFT) - 1;

impl StackConfig {
    /// Nested levels as one configuration says, whose members are all drives in order. Its policy and settings are
    /// those of each level that takes them.
    ///
    /// # Errors
    /// When the levels are not nested, or the members not as many as the drives.
    pub fn of(config: &Config) -> Result<Self, ConfigError> {
        let Some(layout) = &config.layout.inner else {
            let reason = format!("{} is one level", config.layout);
            return Err(ConfigError { key: "level", reason });
        };
        config.layout.check()?;
        let (drives, given) = (config.layout.drives(), config.members.len());
        if given != usize::from(drives) {
            let reason = format!("{given} given for {drives} drives");
            return Err(ConfigError { key: "members", reason });
        }
        let each = usize::from(layout.members);
        let traits = |first: usize| config.traits.get(first..first + each).unwrap_or(&[]).to_vec();
        let inner = config.members.chunks_exact(each).enumerate().map(|(index, members)| Config {
            layout: (**layout).clone(),
            members: members.to_vec(),
            read_policy: policy_of(config.read_policy, layout),
            traits: traits(index * each),
            limits: config.limits,
            settings: config.settings,
        });
        let outer = config.layout.upper();
        Ok(Self {
            read_policy: policy_of(config.read_policy, &outer),
            layout: outer,
            limits: config.limits,
            inner: inner.collect(),
        })
    }
}

/// A policy, for a level that takes it; else the level's own.
fn policy_of(policy: ReadPolicy, layout: &Layout) -> ReadPolicy {
    if check_policy(policy, layout).is_ok() { policy } else { ReadPolicy::of_level(layout.level) }
}

impl Stack {
    /// A stack over drives whose redundancy is consistent.
    ///
    /// # Errors
    /// When an array cannot be, or there are too many; the error names the key.
    pub fn new(config: &StackConfig) -> Result<Self, ConfigError> {
        let Some(first) = config.inner.first() else {
            return Err(ConfigError { key: "arrays", reason: "there is none".into() });
        };
        if config.inner.len() > usize::from(MOST_ARRAYS) {
            let reason = format!("at most {MOST_ARRAYS} inner arrays, not {}", config.inner.len());
            return Err(ConfigError { key: "arrays", reason });
        }
        if config.inner.iter().any(|one| one.layout != first.layout) {
            let reason = "the inner arrays must have one layout".into();
            return Err(ConfigError { key: "arrays", reason });
        }
        let mut inner = Vec::new();
        let (mut drives, mut buffers, mut len) = (0, 0, 0);
        for one in &config.inner {
            let one = inner_config(one, config.limits)?;
            let array = new_inner(&one, inner.len(), buffers)?;
            let scratch = array.scratch();
            let waiting = VecDeque::with_capacity(config.limits.ios as usize);
            let members = one.layout.members;
            inner.push(Inner {
                array,
                config: one,
                scratch_base: buffers,
                returned: 0,
                first: drives,
                members,
                waiting,
            });
            (buffers, len) = (buffers + scratch.count, scratch.len.max(len));
            drives += members;
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
            // Inner arrays answer by themselves, however long their drives take.
            settings: Settings { deadline: None, room_wait: None, ..first.settings },
        };
        let mut outer = Array::new(&outer)?;
        outer.nest(0, buffers);
        let scratch = outer.scratch();
        let scratch = Scratch { count: buffers + scratch.count, len: scratch.len.max(len) };
        let most = inner.iter().map(|one| one.array.most_segments()).max().unwrap_or(0);
        let below = inner.iter().map(|one| one.array.geometry().clone()).collect();
        let nested = Nested::new(outer.geometry().clone(), below, first.layout.members);
        Ok(Self {
            wakes: vec![None; inner.len() + 1],
            layout: Layout { inner: Some(Box::new(first.layout.clone())), ..config.layout.clone() },
            geometry: Geometry::Nested(nested),
            outer,
            inner,
            scratch,
            has_payload: true,
            segments: Vec::with_capacity(most as usize),
            outputs: VecDeque::new(),
            told_wake: None,
            scrubbing: None,
            stopping: None,
            now: Time::ZERO,
        })
    }

    /// The same for a driver that moves no bytes; as [`Array::without_payload`].
    #[must_use]
    pub fn without_payload(mut self) -> Self {
        self.has_payload = false;
        self.outer = self.outer.without_payload();
        let without = |one: Inner| Inner { array: one.array.without_payload(), ..one };
        self.inner = self.inner.into_iter().map(without).collect();
        self
    }

    /// The levels with their parameters.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Where everything lies on the drives.
    pub fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    /// How many segments a request may have.
    pub fn most_segments(&self) -> u32 {
        self.outer.most_segments()
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
            Input::Admin(command) => self.command(command),
            Input::Wake => self.woken(),
            // Requests and plugs.
            other => self.outer.handle(now, other),
        }
    }

    /// The next output; as [`Array::poll`].
    pub fn poll(&mut self) -> Option<Output> {
        loop {
            if let Some(output) = self.outputs.pop_front() {
                return Some(output);
            }
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
            let Some((index, output)) = index else { return self.tell_wake() };
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
            Output::Event(event) => self.outer_event(event).map(Output::Event),
            Output::WakeAt(at) => {
                self.wakes[0] = Some(at);
                None
            }
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
        match output {
            Output::Reply { id, outcome } => {
                self.answered(index, id, outcome);
                None
            }
            Output::MemberIo(io) => {
                let member = self.drive(index, io.member);
                Some(Output::MemberIo(MemberIo { io: tag_io(index + 1, io.io), member, ..io }))
            }
            Output::Abandon { io } => Some(Output::Abandon { io: tag_io(index + 1, io) }),
            Output::Compute { job } => Some(Output::Compute { job: tag_job(index + 1, job) }),
            Output::Event(event) => self.inner_event(index, event).map(Output::Event),
            Output::WakeAt(at) => {
                self.wakes[index + 1] = Some(at);
                None
            }
            // Without superblocks there is none.
            Output::Meta { .. } => None,
        }
    }

    /// A drive, or the replacement of one, counted through all.
    fn drive(&self, index: usize, member: MemberIndex) -> MemberIndex {
        let one = &self.inner[index];
        MemberIndex(match member.0.checked_sub(one.members) {
            None => one.first + member.0,
            Some(of) => self.drives() + one.first + of,
        })
    }

    /// Wakes the arrays whose time has come.
    fn woken(&mut self) {
        self.told_wake = None;
        for tag in 0..self.wakes.len() {
            if self.wakes[tag].is_some_and(|at| at <= self.now) {
                self.wakes[tag] = None;
                let now = self.now;
                if let Some(array) = self.array_mut(tag) {
                    array.handle(now, Input::Wake);
                }
            }
        }
    }

    /// Tells the driver of the first moment that some array waits for, if that has changed.
    fn tell_wake(&mut self) -> Option<Output> {
        let first = self.wakes.iter().flatten().min().copied()?;
        if self.told_wake == Some(first) {
            return None;
        }
        self.told_wake = Some(first);
        Some(Output::WakeAt(first))
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

/// An inner array as a stack needs it.
fn inner_config(one: &Config, limits: Limits) -> Result<Config, ConfigError> {
    if one.settings.consistency.has_superblocks() {
        let reason = "nested levels keep no superblocks in this version; use none".into();
        return Err(ConfigError { key: "consistency", reason });
    }
    let mut one = one.clone();
    // What the outer array may send at once: its gathered pieces and one request's segments, or the atoms of a raid3.
    one.limits.segments = one.limits.segments.max(2 * limits.segments + 528);
    Ok(one)
}

fn new_inner(config: &Config, index: usize, scratch_base: u32) -> Result<Array, ConfigError> {
    let mut array = Array::new(config)?;
    array.nest(index as u32 + 1, scratch_base);
    Ok(array)
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
