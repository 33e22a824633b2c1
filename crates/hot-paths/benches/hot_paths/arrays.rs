//! An array alone, on members that do nothing, and on modelled drives.

use std::collections::VecDeque;
use std::hint::black_box;

use raidlab_core::contract::{
    Completion, Input, IoOp, IoOutcome, JobResult, Output, Request, RequestId, Segment, Token,
};
use raidlab_core::{Array, Config, Layout, Level, Sector, Sectors, Time};
use raidlab_engine::{Engine, EngineConfig, Member, NullMember, Reply};
use raidlab_models::{Drive, load};
use raidlab_sim::{HostCosts, World};

/// Requests in flight.
const DEPTH: usize = 32;
/// Members of 1 GiB.
const MEMBER: Sectors = Sectors(2 << 20);
/// 64 KiB.
const CHUNK: Sectors = Sectors(128);

fn layout((level, members): (Level, u16)) -> Layout {
    let layout = Layout::new(level, members);
    if level.has_chunks() { layout.with_chunk(CHUNK) } else { layout }
}

/// Places of requests: one behind the other, or scattered, the same in every run.
struct Places {
    state: u64,
    count: u64,
    sectors: u32,
    in_order: bool,
}

impl Places {
    fn new(capacity: Sectors, sectors: u32, in_order: bool) -> Self {
        Self { state: 0, count: capacity.0 / u64::from(sectors), sectors, in_order }
    }

    fn next(&mut self) -> Sector {
        let number = if self.in_order {
            self.state += 1;
            self.state % self.count
        } else {
            self.state = self.state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            ((self.state >> 33) * self.count) >> 31
        };
        Sector(number * u64::from(self.sectors))
    }
}

/// The core with members that carry out one I/O after the other.
pub(crate) struct Closed {
    array: Array,
    places: Places,
    op: IoOp,
    /// What members and the processor have done and the core does not know yet, the oldest first.
    done: VecDeque<Input<'static>>,
    flight: usize,
    now: u64,
}

impl Closed {
    pub(crate) fn new(level: (Level, u16), op: IoOp, sectors: u32, in_order: bool) -> Self {
        let array = Array::new(&Config::uniform(layout(level), MEMBER)).expect("possible");
        let places = Places::new(array.capacity(), sectors, in_order);
        Self { array, places, op, done: VecDeque::with_capacity(4096), flight: 0, now: 0 }
    }

    /// Submits a request, and ends others until there is room for the next.
    pub(crate) fn request(&mut self) {
        self.now += 1;
        let len = self.places.sectors;
        let request = Request {
            id: RequestId(self.now),
            op: self.op,
            at: self.places.next(),
            len: Sectors(u64::from(len)),
            segments: &[Segment { token: Token(0), offset: 0, len }],
            fua: false,
        };
        self.flight += 1;
        self.handle(Input::Request(request));
        while self.flight >= DEPTH {
            let input = self.done.pop_front().expect("what is in flight is somewhere");
            self.handle(input);
        }
    }

    fn handle(&mut self, input: Input<'_>) {
        self.array.handle(Time(self.now), input);
        while let Some(output) = self.array.poll() {
            match black_box(output) {
                Output::MemberIo(io) => self
                    .done
                    .push_back(Input::Completion(Completion { io: io.io, outcome: IoOutcome::Ok })),
                Output::Compute { job } => {
                    self.done.push_back(Input::Computed { job, result: JobResult::Done });
                }
                Output::Reply { .. } => self.flight -= 1,
                _ => {}
            }
        }
    }
}

/// The engine's raid5 write of 4 KiB.
pub(crate) struct OnNull {
    engine: Engine,
    token: Token,
    places: Places,
    flight: usize,
    replies: Vec<Reply>,
}

impl OnNull {
    pub(crate) fn new() -> Self {
        let members = (0..5).map(|_| Member::Null(NullMember::new(MEMBER))).collect();
        let config = EngineConfig::new(layout((Level::Raid5, 5)));
        let mut engine = Engine::new(&config, members).expect("the layout is possible");
        let token = engine.allocate(DEPTH as u64 * 4096).expect("there is memory");
        engine.bytes_mut(token).expect("no request is under way").fill(0x5a);
        let places = Places::new(engine.array().capacity(), 8, false);
        Self { engine, token, places, flight: 0, replies: Vec::with_capacity(DEPTH) }
    }

    /// Submits a request; the last of a row waits for all of it.
    pub(crate) fn request(&mut self) {
        let segment = Segment { token: self.token, offset: self.flight as u32 * 8, len: 8 };
        let at = self.places.next();
        self.engine.submit(IoOp::Write, at, &[segment], false).expect("there is room");
        self.flight += 1;
        if self.flight == DEPTH {
            self.replies.clear();
            self.engine.poll_replies(&mut self.replies).expect("null members do not fail");
            assert_eq!(self.replies.len(), DEPTH);
            self.flight = 0;
        }
    }
}

/// The simulator's raid5 write of 4 KiB over nine hard disks.
pub(crate) struct Simulated {
    world: World,
    places: Places,
    flight: usize,
}

impl Simulated {
    pub(crate) fn new() -> Self {
        let drive = load("nas-8tb-7200").expect("built in");
        let drives = (0..9).map(|member| Drive::new(&drive.kind, member)).collect();
        let config = Config::uniform(Layout::new(Level::Raid5, 9), drive.capacity);
        let world = World::new(&config, drives, HostCosts::default()).expect("fits");
        let places = Places::new(world.array().capacity(), 8, false);
        Self { world, places, flight: 0 }
    }

    /// Submits a request, and lets time pass until there is room for the next.
    pub(crate) fn request(&mut self) {
        self.world.submit(IoOp::Write, self.places.next(), Sectors(8), false);
        self.flight += 1;
        while self.flight >= 9 {
            self.world.step();
            while self.world.next_answer().is_some() {
                self.flight -= 1;
            }
        }
    }
}
