//! The array as a state machine, split by operation.
//!
//! Fault model: members may answer any I/O with an error, late or never again; the driver may hand
//! in answers to I/Os the array no longer knows. Nothing on a member is trusted after an error.
//! Why it is safe: a write is answered well only when every sector of it lies on a member that is
//! in service, or is computable from those that are (`write`, `stripe`); overlapping writes go
//! one after another (`locks`); a read is answered well only from members that answered well.
//! After a crash the consistency mode decides: a write goes out only when what its mode needs is
//! durable, the dirty flag and its bits of the bitmap (`permit`) or an entry of the partial-parity log
//! or the journal (`log`), from which the next start makes redundancy consistent. In mode `none` nothing
//! is recorded and redundancy may be inconsistent. [`crate::consistency`] has the promise of each mode.
//! Tests: `tests/model.rs`, against a flat copy of what the array should hold, with a member lost at
//! every point; `tests/consistency.rs` and `tests/logs.rs` for power cuts.
//!
//! Levels without parity take a straight path: one look-up, one or n member I/Os, no stripe state.

mod admin;
mod background;
mod bad_blocks;
mod complete;
mod config;
mod deadline;
mod gather;
mod issue;
mod lists;
mod locks;
mod log;
mod member;
mod meta;
mod permit;
mod read;
mod request;
mod room;
mod settings;
mod slab;
mod stripe;
mod timers;
mod write;

use std::collections::VecDeque;

pub use background::{Status, WorkStatus};
pub use config::{Config, ConfigError, Limits, MemberConfig, check_policy};
pub use lists::Segments;
pub(crate) use lists::{EMPTY as EMPTY_LIST, TAG_SHIFT, tag_of};
pub(crate) use permit::Start;
pub use settings::{Consistency, Settings, Tie};

use crate::contract::{
    Input, IoId, Job, JobId, LOG_HEADER, MetaIo, Output, Role, Scratch, Segment, SegmentList, Token,
};
use crate::geometry::Geometry;
use crate::layout::Layout;
use crate::policy::{CopyKind, PolicyState};
use crate::units::{MemberIndex, Sectors, Time};
use background::{Background, Unit};
use gather::Gather;
use issue::{IoState, Run};
use lists::ListPool;
use locks::RangeLocks;
use log::Log;
use member::{Member, MemberSet};
use meta::Round;
use permit::Permits;
use request::{RequestState, Trouble};
use room::Waiting;
use slab::Slab;
use stripe::{Cache, JobState, Plan};
use timers::Timers;

/// The planner of one array. See the [crate] documentation for the contract.
#[derive(Clone, Debug)]
pub struct Array {
    layout: Layout,
    geometry: Geometry,
    policy: PolicyState,
    /// The policy wants to be told of I/Os.
    policy_watches: bool,
    /// The policy may cut a read into a part for each copy.
    cuts_reads: bool,
    copy_kind: CopyKind,
    capacity: u64,
    /// Copies of each sector, as the geometry has them.
    copies: u16,
    logical_block: u32,
    /// Segments a request may have.
    most_segments: u32,

    /// The members, then a replacement for each, then the journal.
    members: Vec<Member>,
    /// Out of service: no I/O goes there.
    failed: MemberSet,
    /// Written, and readable below how far they are rebuilt; not counted as redundancy.
    rebuilding: MemberSet,
    /// Members with places that cannot be read: all that are being rebuilt or have bad blocks.
    partial: MemberSet,
    /// Members with a replacement, which is written too.
    replacing: MemberSet,
    /// Nothing is written any more: too much is lost, or the administrator said so.
    stopped: bool,
    settings: Settings,
    /// Sectors each member has for data.
    sizes: Vec<Sectors>,
    /// Metadata I/O in flight, by the slot of its I/O.
    metas: Vec<MetaIo>,
    rounds: Slab<Round>,
    starved_rounds: VecDeque<u32>,
    timers: Timers,
    log: Log,
    background: Background,
    /// Ranges that background work holds.
    units: Slab<Unit>,
    starved_units: VecDeque<u32>,
    /// Requests that are done, to be answered when a member's failure is recorded.
    held_replies: VecDeque<u32>,
    permits: Permits,
    #[cfg(feature = "seeded-bugs")]
    bug: Option<crate::bugs::Bug>,

    requests: Slab<RequestState>,
    /// What went wrong with each request, by slot.
    troubles: Vec<Trouble>,
    /// The segments of each request, `most_segments` to a slot.
    user_segments: Vec<Segment>,
    ios: Slab<IoState>,
    /// Of these, what found no room on its member and goes out again.
    waiting: Vec<Waiting>,
    lists: ListPool,
    locks: RangeLocks,
    plans: Slab<Plan>,
    /// Parity levels: data chunks and parities of a stripe; else 0.
    data_chunks: u16,
    parities: u16,
    /// raid3: sectors that lie together on a data member; else 0.
    atom: u64,
    /// Somebody moves the bytes that lists of segments name.
    has_payload: bool,
    /// Rows of a chunk that one plan works on at most.
    plan_rows: u64,
    jobs: Slab<JobState>,
    operands: Vec<SegmentList>,
    /// What each operand is.
    roles: Vec<Role>,
    /// What is being gathered for each member while one request is planned.
    runs: Vec<Run>,
    active_runs: usize,

    outputs: VecDeque<Output>,
    /// Requests and plans that wait for room, in order.
    starved_requests: VecDeque<u32>,
    starved_plans: VecDeque<u32>,
    plugged: bool,
    /// Requests wait: plugged, or a log is being replayed.
    holding: bool,
    /// One of a stack's arrays.
    nested: bool,
    /// The first of its scratch buffers.
    scratch_base: u32,
    /// Requests held back by a plug, in order.
    held: VecDeque<u32>,
    gather: Gather,
    /// Stripes kept in memory.
    cache: Cache,
    now: Time,
}

impl Array {
    /// An array over members whose redundancy is consistent; all memory is taken here.
    ///
    /// # Errors
    /// When the layout, the members or the limits cannot be; the error names the key.
    pub fn new(config: &Config) -> Result<Self, ConfigError> {
        config::build(config)
    }

    /// The same for a driver that moves no bytes, as in virtual time: lists then have the right lengths
    /// only. On raid3, whose payload goes to the members sector by sector, they are two segments each
    /// instead of hundreds, which count as hundreds where room is looked for, so that with requests of
    /// one segment nothing else changes. Before the first request.
    #[must_use]
    pub fn without_payload(mut self) -> Self {
        self.has_payload = false;
        self
    }

    /// Usable sectors.
    pub fn capacity(&self) -> Sectors {
        Sectors(self.capacity)
    }

    /// Requests start and end on multiples of this many sectors: the largest of the members'.
    pub fn logical_block(&self) -> u32 {
        self.logical_block
    }

    /// Level and parameters.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Where everything lies.
    pub fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    /// How many segments a request may have.
    pub fn most_segments(&self) -> u32 {
        self.most_segments
    }

    /// Whether a member is out of service.
    pub fn is_failed(&self, member: MemberIndex) -> bool {
        self.failed.contains(member)
    }

    /// The scratch buffers the driver provides, under the tokens from [`Scratch::FIRST`] on.
    pub fn scratch(&self) -> Scratch {
        let roles = u64::from(self.data_chunks + self.parities);
        // Partial parity has a place of its own.
        let partial = u64::from(self.logs_partial_parity());
        let plan = (roles + partial) * self.plan_rows;
        let units = if self.is_redundant() { self.units.capacity() } else { 0 };
        let len = plan.max(self.unit_scratch()) as u32;
        Scratch { count: self.plans.capacity() + units + self.cache.capacity(), len }
    }

    /// Whether a request may be handed in now. Completions and results always may.
    #[inline]
    pub fn can_accept(&self) -> bool {
        self.requests.available() > 0
    }

    /// Takes one input. Time never goes back; every output is drained before time goes on.
    #[inline]
    pub fn handle(&mut self, now: Time, input: Input<'_>) {
        debug_assert!(now >= self.now, "time goes back from {:?} to {now:?}", self.now);
        debug_assert!(
            now == self.now || self.outputs.is_empty(),
            "outputs are drained before time goes on"
        );
        self.now = now.max(self.now);
        match input {
            Input::Request(request) => self.accept(&request),
            Input::Completion(completion) => self.complete(&completion),
            Input::Computed { job, result } => self.computed(job, result),
            Input::Plug => (self.plugged, self.holding) = (true, true),
            Input::Unplug => self.unplug(),
            // Either may end what held room that others wait for.
            Input::Admin(command) => {
                self.command(command);
                self.resume();
            }
            Input::Wake => {
                self.woken();
                self.resume();
            }
        }
        if self.timers.changed {
            self.end_input();
        }
    }

    /// The next output, or `None` when there is nothing to do until the next input.
    #[inline]
    pub fn poll(&mut self) -> Option<Output> {
        let output = self.outputs.pop_front();
        if output.is_none() {
            // From its first place on again: what goes around a queue this long finds no place of it in the cache.
            self.outputs.clear();
        }
        output
    }

    /// The segments of a list, in order; valid until its I/O or job is completed.
    #[inline]
    pub fn segments<'a>(&'a self, list: &SegmentList) -> Segments<'a> {
        self.lists.iter(list)
    }

    /// The operands of a job; `None` when it is no longer wanted.
    pub fn job(&self, job: JobId) -> Option<Job<'_>> {
        if !self.jobs.is_current(job.slot, job.generation) {
            return None;
        }
        let state = &self.jobs[job.slot];
        let first = self.operand_range(job.slot).start;
        let middle = first + usize::from(state.sources);
        let end = middle + usize::from(state.targets);
        Some(Job {
            kernel: state.kernel,
            len: state.len,
            sources: &self.operands[first..middle],
            targets: &self.operands[middle..end],
            roles: &self.roles[first..end],
        })
    }

    /// A key of everything that decides what the array does next; counters, times and generations
    /// are left out. Equal states have equal keys.
    pub fn state_key(&self) -> u64 {
        let mut key = Key(0xcbf2_9ce4_8422_2325);
        key.add(self.failed.bits() as u64);
        key.add((self.failed.bits() >> 64) as u64);
        key.add(u64::from(self.plugged));
        for (slot, request) in self.requests.used() {
            key.add(u64::from(slot));
            request.add_to_key(&mut |value| key.add(value));
            if request.trouble {
                self.troubles[slot as usize].add_to_key(&mut |value| key.add(value));
            }
        }
        for (slot, io) in self.ios.used() {
            key.add(u64::from(slot));
            io.add_to_key(&mut |value| key.add(value));
            let generation = self.ios.generation(slot);
            key.add(u64::from(self.is_waiting(IoId { slot, generation })));
        }
        for (slot, plan) in self.plans.used() {
            key.add(u64::from(slot));
            plan.add_to_key(&mut |value| key.add(value));
        }
        for (slot, round) in self.rounds.used() {
            key.add(u64::from(slot));
            round.add_to_key(&mut |value| key.add(value));
        }
        self.log_to_key(&mut |value| key.add(value));
        self.cache.add_to_key(&mut |value| key.add(value));
        self.gather_to_key(&mut |value| key.add(value));
        self.background_to_key(&mut |value| key.add(value));
        self.permits.add_to_key(&mut |value| key.add(value));
        for (slot, job) in self.jobs.used() {
            key.add(u64::from(slot));
            key.add(job.owner.number());
        }
        for member in &self.members {
            key.add(member.head.0);
            key.add(member.good_to);
            key.add(member.kept_to);
            key.add(member.named_to);
            key.add(member.hole_from);
            for (from, to) in member.bad.iter() {
                key.add(from);
                key.add(to);
            }
        }
        for set in [self.rebuilding, self.replacing] {
            key.add(set.bits() as u64);
            key.add((set.bits() >> 64) as u64);
        }
        self.policy.add_to_key(self.now, &mut |value| key.add(value));
        let starved = self.starved_requests.iter().chain(&self.starved_plans);
        let waiting = starved.chain(&self.starved_units).chain(&self.starved_rounds);
        for slot in self.held.iter().chain(waiting).chain(&self.held_replies) {
            key.add(u64::from(*slot));
        }
        key.0
    }
}

/// FNV-1a over 64-bit words.
struct Key(u64);

impl Key {
    fn add(&mut self, value: u64) {
        for byte in value.to_le_bytes() {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
        }
    }
}

#[cfg(feature = "seeded-bugs")]
impl Array {
    /// Plants a bug, for the checker to find.
    pub fn plant(&mut self, bug: crate::bugs::Bug) {
        self.bug = Some(bug);
    }
}

impl Array {
    /// Whether a bug is planted; never without the feature `seeded-bugs`.
    #[inline(always)]
    fn has_bug(&self, bug: crate::bugs::Bug) -> bool {
        #[cfg(feature = "seeded-bugs")]
        return self.bug == Some(bug);
        #[cfg(not(feature = "seeded-bugs"))]
        {
            let _ = bug;
            false
        }
    }

    /// Whether nothing is in flight anywhere, and nobody waits for it.
    pub(crate) fn is_at_rest(&self) -> bool {
        self.ios.used().next().is_none()
            && self.jobs.used().next().is_none()
            && self.requests.used().next().is_none()
    }

    /// Makes this array one of a stack's: its lists carry `tag`, its scratch buffers are those from
    /// `scratch_base` on, and requests to inner ones (tags above 0) may name the outer one's scratch.
    pub(crate) fn nest(&mut self, tag: u32, scratch_base: u32) {
        self.lists.set_tag(tag);
        self.scratch_base = scratch_base;
        self.nested = tag > 0;
    }

    /// The scratch token of a plan.
    const fn scratch_token(&self, plan: u32) -> Token {
        Token(Scratch::FIRST + self.scratch_base + plan)
    }

    /// Whether something is left when a member is lost.
    const fn is_redundant(&self) -> bool {
        self.copies > 1 || self.parities > 0
    }
}

impl Array {
    /// Sectors of log that a member or replacement has behind its data, or the log device in all.
    pub fn log_sectors(&self, device: MemberIndex) -> Sectors {
        match self.settings.consistency {
            Consistency::PartialParity { slots } if device.0 < 2 * self.layout.members => {
                Sectors(u64::from(slots) * (u64::from(LOG_HEADER) + self.plan_rows))
            }
            Consistency::Journal { sectors } if device == self.journal() => sectors,
            _ => Sectors::ZERO,
        }
    }
}
