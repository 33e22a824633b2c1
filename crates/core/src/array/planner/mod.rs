//! The array itself: takes inputs, lets its parts decide, and carries out what they say.
//!
//! Levels without parity take a straight path: one look-up, one or n member I/Os, no stripe state.

mod admin;
mod background;
mod build;
mod complete;
mod failure;
mod issue;
mod log;
mod metadata_updates;
mod read;
mod request;
mod start;
mod status;
mod stripe;
mod wake;
mod write;
mod write_intent;

use std::collections::VecDeque;
use std::hash::{Hash, Hasher};

use super::background::Background;
use super::config::Config;
use super::ios::Ios;
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
use crate::contract::{Input, Job, JobId, Output, Scratch, SegmentList};
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
    /// Of these, what found no room on its member and goes out again.
    room: Room,
    /// What is being gathered for each member while one request is planned.
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
    /// When the layout, the members or the limits cannot be; the error names the key.
    pub fn new(config: &Config) -> Result<Self, ConfigError> {
        build::build(config)
    }

    /// The same for a driver that moves no bytes, as in virtual time: lists then have the right lengths
    /// only. On raid3, whose payload goes to the members sector by sector, they are two segments each
    /// instead of hundreds, which count as hundreds where room is looked for, so that with requests of
    /// one segment nothing else changes. Before the first request.
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

    /// Where everything lies.
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

#[cfg(feature = "seeded-bugs")]
impl Array {
    /// Plants a bug, for the checker to find.
    pub fn plant(&mut self, bug: crate::bugs::Bug) {
        self.setup.bug = Some(bug);
    }
}

impl Array {
    /// Whether nothing is in flight anywhere, and nobody waits for it.
    pub(crate) fn is_at_rest(&self) -> bool {
        self.ios.slots.used().next().is_none()
            && self.jobs.is_idle()
            && self.requests.slots.used().next().is_none()
    }

    /// Makes this array one of a stack's: its lists carry `tag`, its scratch buffers are those from
    /// `scratch_base` on, and requests to inner ones (tags above 0) may name the outer one's scratch.
    pub(crate) fn nest(&mut self, tag: u32, scratch_base: u32) {
        self.lists.set_tag(tag);
        self.setup.scratch_base = scratch_base;
        self.setup.nested = tag > 0;
    }

    /// Sectors that members read and write at least.
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

    /// Sectors of log that a member or replacement has behind its data, or the log device in all.
    pub fn log_sectors(&self, device: MemberIndex) -> Sectors {
        self.setup.log_sectors(device)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::array::requests::RequestState;
    use crate::array::settings::Consistency;
    use crate::contract::IoOp;
    use crate::contract::{Request, RequestId, Segment, Token};
    use crate::layout::Level;
    use crate::units::Sector;

    fn array(layout: Layout, sectors: u64) -> Array {
        Array::new(&Config::uniform(layout, Sectors(sectors))).expect("possible")
    }

    #[test]
    fn a_request_lacks_a_copy_where_all_are_on_members_that_failed() {
        let mut array = array(Layout::new(Level::Raid10, 4).with_chunk(Sectors(8)), 64);
        let lacks = |array: &Array, at, end| {
            let mut request = RequestState::idle();
            (request.at, request.end) = (at, end);
            array.lacks_copy(&request)
        };
        array.members.fail(MemberIndex(0));
        assert!(!lacks(&array, 0, 64));
        array.members.fail(MemberIndex(1));
        // Chunks 0, 2, 4 and so on are on members 0 and 1.
        for (at, end, expected) in [
            (0, 8, true),
            (8, 16, false),
            (8, 17, true),
            (0, 1, true),
            (15, 16, false),
            (4, 4, false),
            (12, 40, true),
        ] {
            assert_eq!(lacks(&array, at, end), expected, "{at}..{end}");
        }
    }

    #[test]
    fn a_resync_is_as_long_as_what_is_left_or_named() {
        let mut parity = array(Layout::new(Level::Raid5, 4).with_chunk(Sectors(8)), 64);
        assert_eq!(parity.resync_len(Sector(24), &[]), Sectors(40), "of each member");
        assert_eq!(parity.resync_len(Sector(80), &[]), Sectors(0));
        parity.setup.settings.consistency = Consistency::Bitmap { chunk: Sectors(8) };
        assert_eq!(parity.resync_len(Sector(0), &[0b101, 0b1]), Sectors(24));
        assert_eq!(parity.resync_len(Sector(48), &[0b111]), Sectors(16), "no more than is left");
        assert_eq!(parity.resync_len(Sector(64), &[0b111]), Sectors(0));
        let mirror = array(Layout::new(Level::Raid10, 4).with_chunk(Sectors(8)), 64);
        assert_eq!(mirror.resync_len(Sector(24), &[]), Sectors(104), "of the array");
        let plain = array(Layout::new(Level::Raid0, 4).with_chunk(Sectors(8)), 64);
        assert_eq!(plain.resync_len(Sector(24), &[]), Sectors(0));
    }

    #[test]
    fn an_array_rests_when_nothing_is_in_flight() {
        let mut array = array(Layout::new(Level::Raid1, 2), 64);
        assert!(array.is_at_rest());
        let segments = [Segment { token: Token(0), offset: 0, len: 8 }];
        let request = Request {
            id: RequestId(0),
            op: IoOp::Read,
            at: Sector(0),
            len: Sectors(8),
            segments: &segments,
            fua: false,
        };
        array.handle(Time(1), Input::Plug);
        array.handle(Time(1), Input::Request(request));
        assert!(!array.is_at_rest(), "it is held back");
        array.handle(Time(1), Input::Unplug);
        assert!(!array.is_at_rest());
        array.requests.slots.remove(0);
        assert!(!array.is_at_rest(), "its I/O is in flight");
    }

    #[test]
    fn keys_tell_what_is_in_flight_apart() {
        let mut key = Key(7);
        key.write(&[]);
        assert_eq!(key.finish(), 7);
        key.write(&[3]);
        assert_eq!(key.finish(), (7 ^ 3) * 0x100_0000_01b3);
        let mut other = Key(7);
        other.write(&[3, 0]);
        assert_ne!(other.finish(), key.finish());
        key.write(&[0]);
        assert_eq!(other.finish(), key.finish());
    }
}
