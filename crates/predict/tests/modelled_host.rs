//! The modelled host against what follows from its parts.

use std::sync::Arc;

use raidlab_core::contract::{IoOp, Outcome};
use raidlab_core::{Config, Layout, Level, MemberIndex, Nanos, Sector, Sectors, Time};
use raidlab_models::host::{CallCosts, DirtyLimit};
use raidlab_models::{DriveKind, HardDisk, HostSpec, load};
use raidlab_predict::host::run_plan;
use raidlab_random::Random;
use raidlab_sim::{HostCosts, World};
use raidlab_study::{StudyError, StudyErrorKind};
use raidlab_workload::{
    Class, Content, FileDescriptor, FilePath, Io, Mark, Memory, Op, OpResult, OpenFlags, Plan,
    Planned, Process, RunRecord, SeededBytes, SourceFile,
};

const MIB: u64 = 1 << 20;
const S: FileDescriptor = FileDescriptor(0);

/// Says its operations one after the other; panics when a result is not what was expected.
#[derive(Debug)]
struct Script {
    ops: std::vec::IntoIter<Op>,
    results: Vec<(usize, OpResult)>,
    done: usize,
}

impl Process for Script {
    fn next(&mut self, _now: Time, last: OpResult) -> Op {
        if let Some((_, expected)) = self.results.iter().find(|(op, _)| op + 1 == self.done) {
            assert_eq!(&last, expected, "operation {}", self.done - 1);
        }
        self.done += 1;
        self.ops.next().unwrap_or(Op::Done)
    }
}

fn script(ops: Vec<Op>) -> Planned {
    expecting(ops, vec![])
}

fn expecting(ops: Vec<Op>, results: Vec<(usize, OpResult)>) -> Planned {
    Planned { copy: 0, process: Box::new(Script { ops: ops.into_iter(), results, done: 0 }) }
}

fn world_of(layout: Layout) -> World {
    let DriveKind::HardDisk(spec) = load("nas-8tb-7200").expect("built in").kind else { panic!() };
    let drives: Vec<_> =
        (0..u64::from(layout.members)).map(|member| HardDisk::new(&spec, member)).collect();
    let config = Config::uniform(layout, drives[0].capacity());
    World::new(&config, drives, HostCosts::default()).expect("fits")
}

fn world() -> World {
    world_of(Layout::new(Level::Linear, 1))
}

fn open(flags: OpenFlags) -> Op {
    Op::Open { fd: S, path: FilePath::target("file"), flags }
}

fn write(len: u64, times: u64) -> Op {
    Op::Write { fd: S, len, content: Content::Zeroes, times }
}

fn read(len: u64, times: u64) -> Op {
    Op::Read { fd: S, len, times }
}

fn measured(mut ops: Vec<Op>) -> Vec<Op> {
    ops.insert(1, Op::Mark(Mark::Begin(0)));
    ops.push(Op::Mark(Mark::End(0)));
    ops
}

fn plan(prepare: Vec<Op>, run: Vec<Op>) -> Plan {
    Plan {
        prepare: vec![script(prepare)],
        run: vec![script(measured(run))],
        phases: vec!["run"],
        ..Plan::default()
    }
}

fn took(record: &RunRecord) -> f64 {
    record.phase(0).expect("a phase").took().as_secs()
}

fn run(host: &HostSpec, plan: Plan) -> RunRecord {
    run_plan(&mut world(), host, plan).expect("runs")
}

/// Bytes per second of the drive alone, by requests of 6 MiB from its start, a flush behind writes.
fn raw_rate(op: IoOp, bytes: u64) -> f64 {
    let mut world = world();
    let block = 6 * MIB;
    for index in 0..bytes / block {
        one(&mut world, op, index * block, block);
    }
    if op == IoOp::Write {
        one(&mut world, IoOp::Flush, 0, 0);
    }
    bytes as f64 / world.now().since(Time::ZERO).as_secs()
}

fn one(world: &mut World, op: IoOp, at: u64, len: u64) {
    world.submit(op, Sector(at / 512), Sectors(len / 512), false);
    loop {
        if let Some(answer) = world.next_answer() {
            assert_eq!(answer.outcome, Outcome::Done);
            return;
        }
        assert!(world.step());
    }
}

#[test]
fn a_cached_read_costs_copying_and_its_calls() {
    let host = HostSpec::default();
    let prepare = vec![open(OpenFlags::WRITE), write(MIB, 64)];
    let mut plan = plan(prepare, vec![open(OpenFlags::READ), read(65_536, 1_024)]);
    plan.memory = Memory::AsIs;
    let record = run(&host, plan);
    let CallCosts { call, .. } = host.costs;
    // 16 pieces of 4 calls for each MiB: a whole number of nanoseconds each.
    let expected = call.0 * 1_024 + 256 * host.costs.copy(262_144).0;
    let phase = record.phase(0).expect("a phase");
    assert_eq!(phase.took(), Nanos(expected));
    assert_eq!(phase.cpu.map(|cpu| (cpu.user, cpu.system)), Some((Nanos::ZERO, Nanos(expected))));
    assert_eq!((phase.reads.count, phase.reads.bytes), (1_024, 64 * MIB));
    assert_eq!(record.members.expect("counted").reads, 0);
}

/// What drives and links did before the run is none of its.
#[test]
fn what_preparing_kept_busy_does_not_count() {
    let prepare = vec![open(OpenFlags::WRITE), write(MIB, 256), Op::Fsync { fd: S }];
    let mut plan = plan(prepare, vec![open(OpenFlags::READ), read(MIB, 256)]);
    plan.memory = Memory::AsIs;
    let record = run(&HostSpec::default(), plan);
    assert_eq!(record.members.expect("counted").reads, 0);
    for (name, share) in &record.busy {
        assert!((0.0..=1.0).contains(share), "{name} {share}");
        assert!(!name.starts_with("member") || *share == 0.0, "{name} {share}");
    }
    assert!(record.busy.iter().any(|(name, _)| name == "member 0"), "{:?}", record.busy);
}

#[test]
fn a_cold_sequential_read_is_as_fast_as_the_drive() {
    let bytes = 1_200 * MIB;
    let prepare = vec![open(OpenFlags::WRITE), write(MIB, 1_200)];
    for len in [4_096, 131_072, MIB] {
        let record = run(
            &HostSpec::default(),
            plan(prepare.clone(), vec![open(OpenFlags::READ), read(len, bytes / len)]),
        );
        let (rate, raw) = (bytes as f64 / took(&record), raw_rate(IoOp::Read, bytes));
        assert!((rate / raw - 1.0).abs() < 0.05, "{len}: {rate} {raw}");
        assert_eq!(record.members.expect("counted").bytes_read / MIB, 1_200);
        let (name, share) = record.bottleneck.expect("told");
        assert!(name == "member 0" && share > 0.9, "{name} {share}");
    }
}

#[test]
fn a_sequential_write_with_fsync_is_as_fast_as_the_drive() {
    let bytes = 3_000 * MIB;
    let run_ops = vec![open(OpenFlags::WRITE), write(MIB, 3_000), Op::Fsync { fd: S }];
    let record = run(&HostSpec::default(), plan(vec![], run_ops));
    let (rate, raw) = (bytes as f64 / took(&record), raw_rate(IoOp::Write, bytes));
    assert!((rate / raw - 1.0).abs() < 0.05, "{rate} {raw}");
    let written = record.members.expect("counted").bytes_written;
    assert!(written >= bytes && written < bytes + 4 * MIB, "{written}");
}

/// Direct reads of 4 KiB at random, one or several at once.
fn random_reads(places: &[u64], depth: usize) -> Vec<Op> {
    let flags = OpenFlags { direct: true, ..OpenFlags::READ };
    let mut ops = vec![open(flags)];
    let io = |place: &u64| Io::Read { fd: S, at: place * 4_096, len: 4_096 };
    if depth == 1 {
        ops.extend(places.iter().map(|place| Op::At(io(place))));
        return ops;
    }
    for (index, place) in places.iter().enumerate() {
        if index >= depth {
            ops.push(Op::Finish);
        }
        ops.push(Op::Start { tag: index as u32, io: io(place) });
    }
    ops.extend((0..depth).map(|_| Op::Finish));
    ops
}

#[test]
fn direct_random_reads_are_those_of_the_raw_target() {
    let mut random = Random::new(3);
    let places: Vec<u64> = (0..2_000).map(|_| random.below(512 * 256)).collect();
    let prepare = vec![open(OpenFlags::WRITE), write(MIB, 512)];
    let record = run(&HostSpec::default(), plan(prepare.clone(), random_reads(&places, 1)));
    let phase = record.phase(0).expect("a phase");
    assert_eq!((phase.reads.count, phase.reads.bytes), (2_000, 2_000 * 4_096));

    let mut world = world();
    for place in &places {
        // Where the file lies matters little to a drive of 8 TB.
        one(&mut world, IoOp::Read, (1 << 30) + place * 4_096, 4_096);
    }
    let raw = world.now().since(Time::ZERO).as_secs();
    let share = took(&record) / raw;
    assert!((share - 1.0).abs() < 0.01, "{share}");

    // More at once let the drive choose its order.
    let deep = took(&run(&HostSpec::default(), plan(prepare, random_reads(&places, 16))));
    assert!(deep < took(&record) * 0.8, "{deep}");
}

#[test]
fn writes_below_the_limit_take_memory_only_and_above_it_are_paced_by_the_drive() {
    let host = HostSpec {
        dirty_background: DirtyLimit::Bytes(64 * MIB),
        dirty: DirtyLimit::Bytes(128 * MIB),
        ..HostSpec::default()
    };
    let costs = host.costs;
    let record = run(&host, plan(vec![], vec![open(OpenFlags::WRITE), write(MIB, 60)]));
    let copy = Nanos(60 * costs.call.0 + 240 * costs.copy(262_144).0);
    assert_eq!(record.phase(0).expect("a phase").took(), copy);
    assert!(!record.warnings.is_empty(), "60 MiB are in memory only");

    let record = run(&host, plan(vec![], vec![open(OpenFlags::WRITE), write(MIB, 1_000)]));
    let raw = raw_rate(IoOp::Write, 996 * MIB);
    // All but the limit has been written when the last call returns.
    let expected = (1_000 - 128) as f64 * MIB as f64 / raw;
    assert!((took(&record) / expected - 1.0).abs() < 0.1, "{} {expected}", took(&record));
    let longest = record.phase(0).expect("a phase").writes.max;
    assert!(longest > Nanos::from_millis(1), "a writer waits: {longest:?}");
}

#[test]
fn fsync_writes_data_then_the_journal_then_flushes() {
    let mut world = world();
    world.start_record();
    let ops = vec![open(OpenFlags::WRITE), write(MIB, 2), Op::Fsync { fd: S }];
    let empty = Plan { run: vec![script(ops)], phases: vec!["run"], ..Plan::default() };
    run_plan(&mut world, &HostSpec::default(), empty).expect("runs");
    let all: Vec<_> = world.record().iter().map(|io| (io.op, u64::from(io.len))).collect();
    let data = [(IoOp::Write, 2_048); 2];
    let at = all.windows(2).position(|two| two == data).expect("two writes of 1 MiB");
    let after: Vec<_> = all[at + 2..].iter().map(|(op, _)| *op).collect();
    assert_eq!(after, [IoOp::Write, IoOp::Flush, IoOp::Write], "journal, flush, commit block");
}

#[test]
fn what_is_unlinked_before_write_back_is_never_written() {
    let ops = vec![
        open(OpenFlags::WRITE),
        write(MIB, 100),
        Op::Close { fd: S },
        Op::Unlink { path: FilePath::target("file") },
        Op::Sleep(Nanos::from_millis(60_000)),
    ];
    let record = run(&HostSpec::default(), plan(vec![], ops.clone()));
    let written = record.members.expect("counted").bytes_written;
    assert!(written < MIB / 2, "metadata only: {written}");
    let mut kept = ops;
    kept.remove(3);
    let record = run(&HostSpec::default(), plan(vec![], kept));
    assert!(record.members.expect("counted").bytes_written >= 100 * MIB, "after 30 s");
}

#[test]
fn dirty_data_wait_for_their_age_and_the_journal_for_5_s() {
    let written = |seconds: u64| {
        let sleep = Op::Sleep(Nanos::from_millis(seconds * 1_000));
        let ops = vec![open(OpenFlags::WRITE), write(MIB, 10), sleep];
        run(&HostSpec::default(), plan(vec![], ops)).members.expect("counted").bytes_written
    };
    assert_eq!(written(4), 0);
    assert!((1..MIB).contains(&written(10)), "a commit: {}", written(10));
    assert!(written(28) < MIB);
    assert!(written(36) >= 10 * MIB);
}

#[test]
fn memory_keeps_what_was_used_last() {
    let host = HostSpec { memory: 64 * MIB, ..HostSpec::default() };
    let reads = |bytes: u64| {
        let prepare = vec![open(OpenFlags::WRITE), write(MIB, bytes / MIB)];
        let back = Op::Seek { fd: S, to: raidlab_workload::Seek::Start(0) };
        let all = read(MIB, bytes / MIB);
        let ops = vec![open(OpenFlags::READ), all.clone(), back, all];
        run(&host, plan(prepare, ops)).members.expect("counted").bytes_read / MIB
    };
    assert_eq!(reads(48 * MIB), 48, "the second time from memory");
    assert_eq!(reads(96 * MIB), 192, "least recently used: nothing is left");
}

#[test]
fn the_same_plan_takes_the_same_time() {
    let once = || {
        let mut random = Random::new(9);
        let process = |copy| {
            let path = FilePath::target(format!("file{copy}"));
            let mut ops =
                vec![Op::Open { fd: S, path, flags: OpenFlags { read: true, ..OpenFlags::WRITE } }];
            for _ in 0..300 {
                let (at, len) = (random.below(200 * MIB), 1 + random.below(100_000));
                let io = Io::Write { fd: S, at, len, content: Content::Zeroes };
                ops.push(Op::At(if random.below(3) > 0 {
                    io
                } else {
                    Io::Read { fd: S, at, len }
                }));
                if random.below(20) == 0 {
                    ops.push(Op::Fdatasync { fd: S });
                }
            }
            script(measured(ops))
        };
        let run = (0..3).map(process).collect();
        let plan = Plan { run, phases: vec!["run"], ..Plan::default() };
        let mut world = world_of(Layout::new(Level::Raid5, 4));
        let record = run_plan(&mut world, &HostSpec::default(), plan).expect("runs");
        let ends: Vec<_> = record.processes.iter().map(|process| process.ended).collect();
        (ends, record.members, world.happened())
    };
    assert_eq!(once(), once());
}

#[test]
fn barriers_tickets_and_compute() {
    let take = Op::Take { queue: 0 };
    let compute = |millis| Op::Compute(Nanos::from_millis(millis));
    let first = vec![compute(10), Op::Barrier(0), Op::Put { queue: 0, ticket: 7, times: 1 }];
    let second = vec![Op::Barrier(0), take];
    let both = |cores| {
        let run = vec![
            script(first.clone()),
            expecting(second.clone(), vec![(1, OpResult::Ticket(7))]),
            script(vec![compute(10)]),
        ];
        let plan =
            Plan { run, barriers: vec![2], queues: 1, phases: vec!["run"], ..Plan::default() };
        let host = HostSpec { cores, ..HostSpec::default() };
        let record = run_plan(&mut world(), &host, plan).expect("runs");
        let cpu = record.process_cpu.expect("counted");
        assert_eq!((cpu.user, cpu.system), (Nanos::from_millis(20), Nanos::ZERO));
        record.last_done()
    };
    assert_eq!(both(2), Nanos::from_millis(10));
    assert_eq!(both(1), Nanos::from_millis(20));
}

/// Bytes through `putc` are work of the process: so many times what one costs, by slices of the CPU.
#[test]
fn characters_cost_the_cpu_of_their_process() {
    let mut host = HostSpec { cores: 1, ..HostSpec::default() };
    host.costs.character = 65_400;
    let ends = |bytes: &[u64]| {
        let run = bytes.iter().map(|bytes| script(vec![Op::StdioBytes(*bytes)])).collect();
        let plan = Plan { run, phases: vec!["run"], ..Plan::default() };
        let record = run_plan(&mut world(), &host, plan).expect("runs");
        let cpu = record.process_cpu.expect("counted");
        assert_eq!(cpu.system, Nanos::ZERO);
        (record.last_done(), cpu.user)
    };
    assert_eq!(ends(&[1_000_000]), (Nanos(65_400_000), Nanos(65_400_000)));
    let both = Nanos(65_400_000 + 32_700_000);
    assert_eq!(ends(&[1_000_000, 500_000]), (both, both));
    assert_eq!(ends(&[0]), (Nanos::ZERO, Nanos::ZERO));
}

/// A run right behind what made its files finds them in memory, dirty: nothing was settled.
#[test]
fn a_run_on_what_was_just_written_begins_with_dirty_data() {
    let host = HostSpec {
        dirty_background: DirtyLimit::Bytes(64 * MIB),
        dirty: DirtyLimit::Bytes(128 * MIB),
        ..HostSpec::default()
    };
    let of = |memory, made: u64, run_ops: &[Op]| {
        let prepare = vec![open(OpenFlags::WRITE), write(MIB, made)];
        let plan = Plan { memory, ..plan(prepare, run_ops.to_vec()) };
        run(&host, plan)
    };
    let second = Op::Open { fd: S, path: FilePath::target("second"), flags: OpenFlags::WRITE };
    let more = [second, write(MIB, 100)];
    let (just, settled) = (Memory::JustWritten, Memory::Cold);
    // 100 and 100 MiB are more than may be dirty, 100 MiB are not.
    let (late, soon) = (took(&of(just, 100, &more)), took(&of(settled, 100, &more)));
    assert!(late > 2.0 * soon, "{late} {soon}");
    assert!(took(&of(just, 10, &more)) < 1.1 * soon);
    let written = |memory| {
        let record = of(memory, 60, &[open(OpenFlags::READ), Op::SyncAll]);
        record.members.expect("counted").bytes_written / MIB
    };
    assert_eq!((written(just), written(Memory::AsIs), written(settled)), (60, 0, 0));
    let read_back = [open(OpenFlags::READ), read(MIB, 60)];
    let record = of(just, 60, &read_back);
    assert_eq!(record.members.expect("counted").reads, 0, "nothing was dropped");
    assert!(record.memory.contains("60 MiB of it in use"), "{}", record.memory);
    let reads = |memory| {
        let prepare = vec![open(OpenFlags::WRITE), write(MIB, 20), Op::SyncAll];
        let record = run(&host, Plan { memory, ..plan(prepare, read_back.to_vec()) });
        record.members.expect("counted").reads
    };
    assert_eq!(reads(just), 0, "nor what is clean");
    assert!(reads(settled) > 0);
}

#[test]
fn small_files_are_made_and_removed_in_little_real_time() {
    let file = |index: u64| FilePath::target(format!("d{}/{index}", index % 100));
    let mut ops: Vec<Op> =
        (0..100).map(|index| Op::Mkdir { path: FilePath::target(format!("d{index}")) }).collect();
    for index in 0..10_000 {
        ops.push(Op::Open { fd: S, path: file(index), flags: OpenFlags::WRITE });
        ops.extend([write(1_000, 2), Op::Close { fd: S }]);
    }
    ops.push(Op::SyncAll);
    ops.extend((0..10_000).map(|index| Op::Unlink { path: file(index) }));
    let list = ops.len();
    ops.push(Op::List { path: FilePath::target("d7") });
    ops.insert(0, Op::Mark(Mark::Begin(0)));
    let run = vec![expecting(ops, vec![(list + 1, OpResult::Entries(vec![]))])];
    let plan = Plan { run, phases: vec!["run"], ..Plan::default() };
    let record = run_plan(&mut world(), &HostSpec::default(), plan).expect("runs");
    let phase = record.phase(0).expect("a phase");
    assert_eq!((phase.writes.count, phase.others.count), (20_000, 100 + 10_000 + 2));
    let members = record.members.expect("counted");
    // A block of each file, and metadata: the tables of the groups, directories, the journal.
    assert!((40 * MIB..60 * MIB).contains(&members.bytes_written), "{members:?}");
}

#[test]
fn sources_null_and_copies() {
    let name: Arc<str> = "tree/archive".into();
    let bytes = Arc::new(SeededBytes { seed: 1, len: 10 * MIB });
    let sources = vec![SourceFile { name: name.clone(), bytes }];
    let (from, to, null) = (FileDescriptor(1), FileDescriptor(0), FileDescriptor(2));
    let open = |fd, path, flags| Op::Open { fd, path, flags };
    let copy = Op::CopyRange { from, to, len: 1 << 30 };
    let ops = vec![
        open(from, FilePath::source(name), OpenFlags::READ),
        open(to, FilePath::target("copy"), OpenFlags::WRITE),
        Op::Mark(Mark::Begin(0)),
        copy.clone(),
        copy,
        open(null, FilePath::null(), OpenFlags::WRITE),
        Op::Write { fd: null, len: 512, content: Content::Zeroes, times: 1_000 },
        Op::Stat { path: FilePath::target("copy") },
    ];
    let status = raidlab_workload::Status { size: 10 * MIB, is_directory: false };
    let results = vec![
        (3, OpResult::Moved(10 * MIB)),
        (4, OpResult::Moved(0)),
        (6, OpResult::Moved(512_000)),
        (7, OpResult::Status(status)),
    ];
    let run = vec![expecting(ops, results)];
    let plan = Plan { run, sources, phases: vec!["run"], ..Plan::default() };
    let record = run_plan(&mut world(), &HostSpec::default(), plan).expect("runs");
    let writes = &record.phase(0).expect("a phase").writes;
    assert_eq!((writes.count, writes.bytes), (1_001, 10 * MIB + 512_000));
}

/// Whatever the block: every byte of what is read from elsewhere is moved, and the last read counts though it is short.
#[test]
fn sources_are_read_to_their_last_byte() {
    let name: Arc<str> = "tree/odd".into();
    for (len, block, times, reads) in [(100, 4096, 1, 1), (10_000, 4096, 8, 3), (8192, 4096, 2, 2)]
    {
        let bytes = Arc::new(SeededBytes { seed: 1, len });
        let sources = vec![SourceFile { name: name.clone(), bytes }];
        let path = FilePath::source(name.clone());
        let ops = vec![
            Op::Open { fd: S, path, flags: OpenFlags::READ },
            read(block, times),
            read(block, times),
            Op::At(Io::Read { fd: S, at: len - 1, len: block }),
        ];
        let results =
            vec![(2, OpResult::Moved(len)), (3, OpResult::Moved(0)), (4, OpResult::Moved(1))];
        let run = vec![expecting(measured(ops), results)];
        let plan = Plan { run, sources, phases: vec!["run"], ..Plan::default() };
        let record = run_plan(&mut world(), &HostSpec::default(), plan).expect("runs");
        let counted = &record.phase(0).expect("a phase").reads;
        assert_eq!((counted.count, counted.bytes), (reads + 1, len + 1), "{len} in {block}");
    }
}

#[test]
fn what_cannot_be_is_named() {
    let fails = |plan: Plan| -> StudyError {
        run_plan(&mut world(), &HostSpec::default(), plan).expect_err("cannot be")
    };
    let error = fails(plan(vec![], vec![open(OpenFlags::READ)]));
    assert!(error.to_string().contains("file: No such file or directory"), "{error}");
    let error = fails(plan(vec![], vec![Op::Take { queue: 0 }]));
    assert!(error.to_string().contains("wait for each other"), "{error}");
    let DriveKind::HardDisk(spec) = load("nas-8tb-7200").expect("built in").kind else { panic!() };
    let config = Config::uniform(Layout::new(Level::Linear, 1), Sectors(1 << 18));
    let mut small =
        World::new(&config, vec![HardDisk::new(&spec, 0)], HostCosts::default()).expect("fits");
    let too_long = plan(vec![], vec![open(OpenFlags::WRITE), write(MIB, 200)]);
    let error = run_plan(&mut small, &HostSpec::default(), too_long).expect_err("128 MiB");
    assert!(error.to_string().contains("no space left"), "{error}");
    let error = fails(Plan { room: 1 << 50, ..Plan::default() });
    assert_eq!(error.kind, StudyErrorKind::DoesNotFit);
    let direct = OpenFlags { direct: true, ..OpenFlags::WRITE };
    let error = fails(plan(vec![], vec![open(direct), write(1_000, 1)]));
    assert!(error.to_string().contains("multiples of 512"), "{error}");
    let none = HostSpec { cores: 0, ..HostSpec::default() };
    let error = run_plan(&mut world(), &none, Plan::default()).expect_err("no core");
    assert!(error.to_string().contains("cores: at least 1"), "{error}");
}

#[test]
fn a_group_is_one_operation() {
    let mut ops = vec![open(OpenFlags::WRITE), write(4_096, 1)];
    ops.insert(1, Op::Mark(Mark::GroupBegin));
    ops.push(Op::Mark(Mark::GroupEnd(Class::Write)));
    let phase_ops = [vec![Op::Mark(Mark::Begin(0))], ops].concat();
    let plan = Plan { run: vec![script(phase_ops)], phases: vec!["run"], ..Plan::default() };
    let record = run(&HostSpec::default(), plan);
    let writes = &record.phase(0).expect("a phase").writes;
    assert_eq!((writes.count, writes.bytes), (1, 4_096));
}

#[test]
fn o_sync_waits_for_every_write() {
    let flags = OpenFlags { sync: true, ..OpenFlags::WRITE };
    let record = run(&HostSpec::default(), plan(vec![], vec![open(flags), write(4_096, 20)]));
    let writes = &record.phase(0).expect("a phase").writes;
    // A flush of a drive with 7,200 turns a minute takes milliseconds, and there are two writes each.
    assert_eq!(writes.count, 20);
    assert!(writes.min > Nanos::from_millis(4), "{:?}", writes.min);
}

#[test]
fn seven_thousand_megabytes_are_few_events() {
    let mut world = world();
    let record = run_plan(&mut world, &HostSpec::default(), {
        plan(vec![], vec![open(OpenFlags::WRITE), write(MIB, 7_000), Op::Fsync { fd: S }])
    });
    let members = record.expect("runs").members.expect("counted");
    assert!(members.writes < 14_100, "{members:?}");
    assert!(world.happened() < 300_000, "{}", world.happened());
    assert!(world.drive_busy(MemberIndex(0)) > Nanos::ZERO);
}

#[test]
fn a_warm_file_is_in_memory() {
    let prepare = vec![open(OpenFlags::WRITE), write(MIB, 8)];
    let all = vec![open(OpenFlags::READ), read(MIB, 8)];
    let warm = vec![script(all.clone())];
    let plan = Plan { warm, memory: Memory::Warm, ..plan(prepare, all) };
    let record = run(&HostSpec::default(), plan);
    assert_eq!(record.members.expect("counted").reads, 0);
    assert!(record.memory.contains("8 MiB of it in use"), "{}", record.memory);
}

#[test]
fn operations_that_stand_for_many_come_to_the_same_as_single_ones() {
    let host = HostSpec { memory: 64 * MIB, ..HostSpec::default() };
    let bytes = 256 * MIB;
    let other = Op::Open {
        fd: FileDescriptor(1),
        path: FilePath::target("other"),
        flags: OpenFlags::WRITE,
    };
    let rewrite = Op::Rewrite { fd: S, len: 8192, number: 0, times: bytes / 8192 };
    let copy = Op::Copy { from: S, to: FileDescriptor(1), len: 12_288 };
    let get = Op::ReadStdioBytes { fd: S, len: 4096, times: bytes / 4096 };
    let put = Op::WriteStdioBytes { fd: FileDescriptor(1), len: 4096, times: bytes / 4096 };
    for ops in [
        vec![open(OpenFlags::BOTH), rewrite],
        vec![open(OpenFlags::READ), other.clone(), copy],
        vec![open(OpenFlags::READ), get],
        vec![other, put],
    ] {
        let plan = || plan(vec![open(OpenFlags::WRITE), write(MIB, bytes / MIB)], ops.clone());
        let (many, single) = (run(&host, plan()), run(&host, plan().in_single_operations()));
        let (many_total, single_total) = (many.totals(), single.totals());
        for (many, single) in
            [(&many_total.reads, &single_total.reads), (&many_total.writes, &single_total.writes)]
        {
            assert_eq!((many.count, many.bytes), (single.count, single.bytes));
        }
        let ratio = took(&many) / took(&single);
        assert!((0.97..1.03).contains(&ratio), "{ops:?}: {ratio}");
        let cpu = |record: &RunRecord| record.process_cpu.expect("counted");
        assert_eq!(cpu(&many).user, cpu(&single).user);
        let system = |record| cpu(record).system.as_secs();
        assert!((0.97..1.03).contains(&(system(&many) / system(&single))), "{ops:?}");
        let members = |record: &RunRecord| record.members.expect("counted");
        let written = |record| members(record).bytes_written as f64;
        let (many, single) = (written(&many), written(&single));
        let near = 0.95 * single..=1.05 * single;
        assert!(near.contains(&many), "{ops:?}: {many} {single}");
    }
}

/// What is removed can be made again, a link keeps what it names, and opening with `truncate` leaves nothing.
#[test]
fn names_come_and_go() {
    let path = |text: &str| FilePath::target(text);
    let open = |text: &str, flags| Op::Open { fd: S, path: path(text), flags };
    let close = || Op::Close { fd: S };
    let mkdir = || Op::Mkdir { path: path("d") };
    let ops = vec![
        mkdir(),
        Op::Rmdir { path: path("d") },
        mkdir(),
        open("d/f", OpenFlags::WRITE),
        write(MIB, 1),
        close(),
        Op::Link { from: path("d/f"), to: path("d/g") },
        Op::Unlink { path: path("d/f") },
        open("d/g", OpenFlags::READ),
        read(MIB, 2),
        close(),
        open("d/g", OpenFlags { truncate: true, ..OpenFlags::WRITE }),
        close(),
        open("d/g", OpenFlags::READ),
        read(MIB, 1),
        close(),
        Op::Unlink { path: path("d/g") },
        Op::Rmdir { path: path("d") },
    ];
    // The second of both reads meets the end.
    let results = vec![(9, OpResult::Moved(MIB)), (14, OpResult::Moved(0))];
    let plan = Plan { run: vec![expecting(ops, results)], phases: vec!["run"], ..Plan::default() };
    run(&HostSpec::default(), plan);
}
