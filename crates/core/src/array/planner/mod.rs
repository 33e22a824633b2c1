//! The array itself: takes inputs, lets its parts decide, and carries out what they say.
//!
//! Only this module knows [`Array`]. The parts (requests, locks, stripes, logs, background work, ...) own their
//! state and do not know the array; ARCHITECTURE.md lists them. Levels without parity take a straight path: one
//! look-up, one or n member I/Os, no stripe state. With parity a request becomes one plan for each stripe, which
//! locks its rows, reads, computes and writes.

mod admin;
mod background;
mod build;
mod complete;
mod failure;
mod issue;
mod log;
mod metadata_updates;
mod read;
mod redundancy;
mod request;
mod start;
mod status;
mod stripe;
mod wake;
mod write;
mod write_intent;

pub use redundancy::Lacking;

use std::collections::VecDeque;
use std::hash::{Hash, Hasher};

use super::background::Background;
use super::config::Config;
use super::ios::{Ios, Owner};
use super::jobs::Jobs;
use super::lists::{ListPool, Segments};
use super::locks::RangeLocks;
use super::log::Log;
use super::member::Members;
use super::metadata_updates::MetadataUpdates;
use super::requests::Requests;
use super::room::Room;
use super::runs::Runs;
use super::settings::ConfigError;
use super::setup::Setup;
use super::slab::Slab;
use super::starved::Starved;
use super::stripe::{Cache, StripePlan};
use super::timers::Timers;
use super::write_intent::WriteIntentGate;
use crate::contract::{Input, IoId, Job, JobId, Output, Scratch, SegmentList};
use crate::geometry::Geometry;
use crate::layout::Layout;
use crate::policy::PolicyState;
use crate::units::{MemberIndex, Sectors, Time};

/// The planner of one array. See the [crate] documentation for the contract.
#[derive(Clone, Debug)]
pub struct Array {
    setup: Setup,
    policy: PolicyState,
    members: Members,
    requests: Requests,
    ios: Ios,
    /// Those of them that found no room on their member and are sent again.
    room: Room,
    /// The I/O that is being gathered for each member while one request is planned.
    runs: Runs,
    plans: Slab<StripePlan>,
    /// Stripes kept in memory.
    cache: Cache,
    jobs: Jobs,
    lists: ListPool,
    locks: RangeLocks,
    starved: Starved,
    gate: WriteIntentGate,
    log: Log,
    background: Background,
    updates: MetadataUpdates,
    timers: Timers,
    outputs: VecDeque<Output>,
    now: Time,
}

impl Array {
    /// An array over members whose redundancy is consistent; all memory is taken here.
    ///
    /// # Errors
    /// When the layout, the members or the limits are not valid; the error names the key.
    pub fn new(config: &Config) -> Result<Self, ConfigError> {
        build::build(config)
    }

    /// What an array of a configuration would have as [`capacity`](Self::capacity) and
    /// [`logical_block`](Self::logical_block), without its memory.
    ///
    /// # Errors
    /// As of [`new`](Self::new).
    pub fn extent(config: &Config) -> Result<(Sectors, u32), ConfigError> {
        build::extent(config)
    }

    /// Call before the first request if the driver moves no bytes, as in virtual time: segment lists then only have
    /// the right lengths. On raid3, whose payload goes to the members sector by sector, they have two segments each
    /// instead of hundreds. They still count as hundreds where room is checked, so that with requests of one segment
    /// nothing else changes.
    #[must_use]
    pub fn without_payload(mut self) -> Self {
        self.setup.has_payload = false;
        self
    }

    /// Usable sectors.
    pub fn capacity(&self) -> Sectors {
        Sectors(self.setup.capacity)
    }

    /// Requests start and end on multiples of this many sectors: the largest of the members'.
    pub fn logical_block(&self) -> u32 {
        self.setup.logical_block
    }

    /// Level and parameters.
    pub fn layout(&self) -> &Layout {
        &self.setup.layout
    }

    /// The address maths: where each sector lies.
    pub fn geometry(&self) -> &Geometry {
        &self.setup.geometry
    }

    /// How many segments a request may have.
    pub fn most_segments(&self) -> u32 {
        self.setup.most_segments
    }

    /// Whether a member is out of service.
    pub fn is_failed(&self, member: MemberIndex) -> bool {
        self.members.failed.contains(member)
    }

    /// The scratch buffers the driver provides, under the tokens from [`Scratch::FIRST`] on.
    pub fn scratch(&self) -> Scratch {
        let roles = u64::from(self.setup.roles());
        // Partial parity has a place of its own.
        let partial = u64::from(self.log.is_partial());
        let plan = (roles + partial) * self.setup.plan_rows;
        let windows = if self.setup.is_redundant() { self.setup.windows } else { 0 };
        let len = plan.max(self.setup.window_scratch()) as u32;
        Scratch { count: self.plans.capacity() + windows + self.cache.capacity(), len }
    }

    /// Whether a request may be handed in now. Completions and results always may.
    #[inline]
    pub fn can_accept(&self) -> bool {
        self.requests.slots.available() > 0
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
            Input::Plug => (self.requests.plugged, self.requests.holding) = (true, true),
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
        self.jobs.get(job)
    }

    /// Whether an I/O in flight is one of background work.
    #[inline]
    pub fn is_background(&self, io: IoId) -> bool {
        matches!(self.ios[io.slot].owner, Owner::Window(_))
    }

    /// A key of everything that decides what the array does next; counters, times and generations
    /// are left out. Equal states have equal keys.
    pub fn state_key(&self) -> u64 {
        let mut key = Key(0xcbf2_9ce4_8422_2325);
        let Self { members, requests, ios, room, plans, cache, jobs, locks, starved, .. } = self;
        (members, requests, ios, plans, cache, jobs, locks, starved).hash(&mut key);
        room.hash_with(ios, &mut key);
        let Self { gate, log, background, updates, policy, now, .. } = self;
        (gate, log, background, updates).hash(&mut key);
        policy.add_to_key(*now, &mut |value| key.write_u64(value));
        key.finish()
    }
}

/// FNV-1a.
struct Key(u64);

impl Hasher for Key {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3);
        }
    }
}

#[cfg(debug_assertions)]
impl Array {
    /// Plants a bug, for the checker to find.
    pub fn plant(&mut self, bug: crate::bugs::Bug) {
        self.setup.bug = Some(bug);
    }
}

impl Array {
    /// Whether nothing is in flight anywhere, and nothing waits.
    pub(crate) fn is_at_rest(&self) -> bool {
        self.ios.slots.used().next().is_none()
            && self.jobs.is_idle()
            && self.requests.slots.used().next().is_none()
    }

    /// Makes this array part of a stack: its lists carry `tag`, its scratch buffers are those from `scratch_base`
    /// on, and requests to inner arrays (tags above 0) may name the outer one's scratch.
    pub(crate) fn nest(&mut self, tag: u32, scratch_base: u32) {
        self.lists.set_tag(tag);
        self.setup.scratch_base = scratch_base;
        self.setup.nested = tag > 0;
    }

    /// The least number of sectors that members read and write.
    pub(crate) fn member_block(&self) -> u64 {
        self.setup.member_block()
    }

    /// The number of a member's replacement.
    pub const fn replacement(&self, member: MemberIndex) -> MemberIndex {
        self.setup.replacement(member)
    }

    /// The number of the log device.
    pub const fn journal(&self) -> MemberIndex {
        self.setup.journal()
    }

    /// Sectors of log that a member or replacement has after its data, or the log device in all.
    pub fn log_sectors(&self, device: MemberIndex) -> Sectors {
        self.setup.log_sectors(device)
    }
}

#[cfg(test)]
mod tests;
