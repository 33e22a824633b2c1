//! Nothing is allocated per request after set-up: a counting allocator around warmed-up arrays, on every
//! level and consistency, healthy and degraded; the core alone, and the engine on null and memory members
//! and on files through `io_uring`. Members' threads: `thread_allocations`.

mod common;
#[path = "../../../tests/support/counting.rs"]
mod counting;
#[path = "../../../tests/support/root.rs"]
mod root;

use common::{Random, TestDirectory, file_members, memory_members};
use counting::allocations;
use raidlab_core::contract::{
    Admin, Completion, Input, IoOp, IoOutcome, JobResult, Outcome, Output, Request, RequestId,
    Segment, Token,
};
use raidlab_core::{
    Array, Config, Consistency, Layout, Level, MemberIndex, Sector, Sectors, Settings, Time,
};
use raidlab_engine::{
    Engine, EngineConfig, EngineErrorKind, FileIo, Member, MemoryMember, NullMember, Reply,
    log_device_sectors,
};

const MEMBER: Sectors = Sectors(1 << 16);
const DEPTH: u64 = 16;
/// Rounds of requests before counting, and while counting.
const WARM: u64 = 300;
const ROUNDS: u64 = 300;

fn settings(consistency: Consistency) -> Settings {
    Settings { consistency, ..Settings::default() }
}

fn cases() -> Vec<(Layout, Settings)> {
    use Level::{Linear, Raid0, Raid1, Raid3, Raid4, Raid5, Raid6, Raid10};
    let layout = |level: Level, members| {
        let layout = Layout::new(level, members);
        if level.has_chunks() { layout.with_chunk(Sectors(64)) } else { layout }
    };
    let bitmap = Consistency::Bitmap { chunk: Sectors(1024) };
    let ppl = Consistency::PartialParity { slots: 32 };
    let journal = Consistency::Journal { sectors: Sectors(1 << 15) };
    let mut cases = Vec::new();
    for (level, members) in [
        (Linear, 3),
        (Raid0, 4),
        (Raid1, 2),
        (Raid3, 3),
        (Raid4, 4),
        (Raid5, 4),
        (Raid6, 5),
        (Raid10, 4),
    ] {
        cases.push((layout(level, members), Settings::default()));
    }
    for (level, members, consistency) in [
        (Raid1, 2, Consistency::Resync),
        (Raid1, 2, bitmap),
        (Raid10, 4, bitmap),
        (Raid5, 4, Consistency::Resync),
        (Raid5, 4, bitmap),
        (Raid5, 4, ppl),
        (Raid5, 4, journal),
        (Raid6, 5, journal),
    ] {
        cases.push((layout(level, members), settings(consistency)));
    }
    let cached = Settings { cached_stripes: 8, ..Settings::default() };
    cases.push((layout(Raid5, 4), cached));
    cases
}

/// The requests of a round: where, how many sectors, what.
fn requests(random: &mut Random, sectors: u64) -> impl Iterator<Item = (IoOp, u64, u32)> + '_ {
    (0..DEPTH).map(move |n| {
        let len = [8, 8, 24, 200][random.below(4) as usize];
        let at = random.below((sectors - len) / 8) * 8;
        let op = match n {
            0 => IoOp::Flush,
            n if n % 3 == 0 => IoOp::Read,
            _ => IoOp::Write,
        };
        if op == IoOp::Flush { (op, 0, 0) } else { (op, at, len as u32) }
    })
}

/// Drives the core alone: everything is done at once.
struct Driver {
    array: Array,
    random: Random,
    now: u64,
    inputs: Vec<Output>,
    answered: u64,
}

impl Driver {
    fn new(layout: &Layout, settings: Settings) -> Self {
        let mut config = Config::uniform(layout.clone(), MEMBER);
        config.settings = settings;
        let array = Array::new(&config).unwrap();
        let inputs = Vec::with_capacity(1 << 16);
        Self { array, random: Random(17), now: 0, inputs, answered: 0 }
    }

    fn drain(&mut self) {
        loop {
            while let Some(output) = self.array.poll() {
                self.inputs.push(output);
            }
            if self.inputs.is_empty() {
                return;
            }
            self.now += 1000;
            for position in 0..self.inputs.len() {
                let done = |io| Input::Completion(Completion { io, outcome: IoOutcome::Ok });
                let input = match self.inputs[position] {
                    Output::MemberIo(io) => done(io.io),
                    Output::Meta { io } => done(io),
                    Output::Compute { job } => Input::Computed { job, result: JobResult::Done },
                    Output::Reply { .. } => {
                        self.answered += 1;
                        continue;
                    }
                    _ => continue,
                };
                self.array.handle(Time(self.now), input);
            }
            self.inputs.clear();
        }
    }

    fn round(&mut self) {
        let sectors = self.array.capacity().0;
        for (op, at, len) in requests(&mut self.random, sectors) {
            let segments = [Segment { token: Token(0), offset: 0, len }];
            let segments = if op == IoOp::Flush { &[][..] } else { &segments[..] };
            let (at, len) = (Sector(at), Sectors(u64::from(len)));
            let request = Request { id: RequestId(1), op, at, len, segments, fua: false };
            assert!(self.array.can_accept());
            self.array.handle(Time(self.now), Input::Request(request));
        }
        self.drain();
        // Timers come too.
        self.now += 1_000_000;
        self.array.handle(Time(self.now), Input::Wake);
        self.drain();
    }
}

#[test]
fn the_core_allocates_nothing_per_request() {
    for (layout, settings) in cases() {
        for degraded in [false, true] {
            if degraded && layout.survives() == 0 {
                continue;
            }
            let mut driver = Driver::new(&layout, settings);
            if degraded {
                driver.array.handle(Time(0), Input::Admin(Admin::Fail(MemberIndex(1))));
                driver.drain();
            }
            (0..WARM).for_each(|_| driver.round());
            let before = driver.answered;
            let taken = allocations(|| (0..ROUNDS).for_each(|_| driver.round()));
            assert_eq!(driver.answered - before, ROUNDS * DEPTH, "{layout}: all are answered");
            assert_eq!(taken, 0, "{layout}, {settings:?}, degraded: {degraded}");
        }
    }
}

/// Rounds on an engine, with buffers of its own.
struct Bench {
    engine: Engine,
    random: Random,
    buffer: Token,
    replies: Vec<Reply>,
}

impl Bench {
    fn new(layout: &Layout, settings: Settings, members: Vec<Member>) -> Self {
        let journal = log_device_sectors(settings.consistency)
            .map(|sectors| Member::Memory(MemoryMember::new(sectors).unwrap()));
        Self::with_journal(layout, settings, members, journal)
    }

    fn with_journal(
        layout: &Layout,
        settings: Settings,
        members: Vec<Member>,
        journal: Option<Member>,
    ) -> Self {
        let mut config = EngineConfig::new(layout.clone());
        config.settings = settings;
        let mut engine = Engine::with_journal(&config, members, journal).unwrap();
        let buffer = engine.allocate(DEPTH * (128 << 10)).unwrap();
        Self { engine, random: Random(23), buffer, replies: Vec::with_capacity(64) }
    }

    fn round(&mut self) {
        let sectors = self.engine.array().capacity().0;
        for (n, (op, at, len)) in (0..).zip(requests(&mut self.random, sectors)) {
            let segments = [Segment { token: self.buffer, offset: n * 256, len }];
            let segments = if op == IoOp::Flush { &[][..] } else { &segments[..] };
            self.engine.submit(op, Sector(at), segments, false).unwrap();
        }
        self.replies.clear();
        self.engine.run_until_idle(&mut self.replies).unwrap();
        assert_eq!(self.replies.len() as u64, DEPTH);
    }

    /// The same one by one: a lone request is carried out by the loop itself, in part.
    fn round_alone(&mut self) {
        let sectors = self.engine.array().capacity().0;
        for (op, at, len) in requests(&mut self.random, sectors).take(4) {
            let segments = [Segment { token: self.buffer, offset: 0, len }];
            let segments = if op == IoOp::Flush { &[][..] } else { &segments[..] };
            self.engine.submit(op, Sector(at), segments, false).unwrap();
            self.replies.clear();
            self.engine.run_until_idle(&mut self.replies).unwrap();
            assert!(self.replies.iter().all(|reply| reply.outcome == Outcome::Done));
        }
    }
}

fn null_members(count: u16) -> Vec<Member> {
    (0..count).map(|_| Member::Null(NullMember::new(MEMBER))).collect()
}

#[test]
fn the_engine_allocates_nothing_per_request() {
    for (layout, settings) in cases() {
        for (is_null, degraded) in [(true, false), (false, false), (false, true)] {
            if degraded && layout.survives() == 0 {
                continue;
            }
            let count = layout.members;
            let members = if is_null { null_members(count) } else { memory_members(count, MEMBER) };
            let mut bench = Bench::new(&layout, settings, members);
            if degraded {
                bench.engine.fail(MemberIndex(1)).unwrap();
            }
            (0..WARM).for_each(|_| bench.round());
            let taken = allocations(|| (0..ROUNDS).for_each(|_| bench.round()));
            let what = format!("{layout}, {settings:?}, null: {is_null}, degraded: {degraded}");
            assert_eq!(taken, 0, "{what}");
        }
    }
}

/// Room for all is taken when the engine is made, so little is done before counting. One layout for each
/// way of writing: every flush waits for the disk.
#[test]
fn files_allocate_nothing_per_request() {
    let test = "files_allocate_nothing_per_request";
    let alike = |layout: &Layout, settings: &Settings| {
        matches!(layout.level, Level::Linear | Level::Raid4 | Level::Raid10)
            || settings.consistency == Consistency::Resync
    };
    for (layout, settings) in cases() {
        for degraded in [false, true] {
            if degraded && layout.survives() == 0 || alike(&layout, &settings) {
                continue;
            }
            let directory = TestDirectory::new();
            // With a log device behind them.
            let count = layout.members + 1;
            let mut members = match file_members(&directory, count, MEMBER, FileIo::Uring) {
                Ok(members) => members,
                Err(error) if error.kind() == EngineErrorKind::NotSupported => {
                    return root::skip(test, &error.to_string());
                }
                Err(error) => panic!("{error}"),
            };
            let journal = members.pop();
            let is_logged = matches!(settings.consistency, Consistency::Journal { .. });
            let journal = journal.filter(|_| is_logged);
            let mut bench = Bench::with_journal(&layout, settings, members, journal);
            if degraded {
                bench.engine.fail(MemberIndex(1)).unwrap();
            }
            bench.round();
            let taken = allocations(|| (0..4).for_each(|_| bench.round()));
            let what = format!("{layout}, {settings:?}, degraded: {degraded}");
            assert_eq!(taken, 0, "{what}");
            bench.round_alone();
            assert_eq!(allocations(|| bench.round_alone()), 0, "{what}, one by one");
        }
    }
}

/// The allocator counts what is taken while it is asked to.
#[test]
fn allocations_are_counted() {
    assert_eq!(allocations(|| drop(std::hint::black_box(Box::new(7)))), 1);
    assert_eq!(allocations(|| ()), 0);
}
