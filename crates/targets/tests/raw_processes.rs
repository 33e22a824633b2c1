//! Processes on the raw target: queue depth, barriers, tickets, sleep, and waiting for ever.

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use crate::common::memory_members;
use raidlab_core::contract::{IoOp, IoOutcome};
use raidlab_core::{Layout, Level, Nanos, Sectors, Time};
use raidlab_engine::{
    Engine, EngineConfig, EngineError, EngineErrorKind, Member, MemberRequest, MemberStore,
    OwnMember,
};
use raidlab_targets::{RawResult, RawTarget, UncheckedTarget};
use raidlab_workload::raw::RawPlan;
use raidlab_workload::{
    Content, FileDescriptor, FileNeed, FilePath, Io, Mark, Op, OpResult, OpenFlags, Plan, Planned,
    Process, RunRecord,
};

static GO: AtomicBool = AtomicBool::new(false);
const BLOCK: u64 = 4096;
const FILE: u64 = 1 << 20;
const SLOT: FileDescriptor = FileDescriptor(0);

fn target(requests: Option<u32>) -> RawTarget {
    RawTarget::new(engine(requests), true).unwrap()
}

fn engine(requests: Option<u32>) -> Engine {
    let layout = Layout::new(Level::Raid5, 4).with_chunk(Sectors(16));
    let mut config = EngineConfig::new(layout);
    if let Some(requests) = requests {
        config.limits.requests = requests;
    }
    Engine::new(&config, memory_members(4, Sectors(4096))).unwrap()
}

fn run_unchecked(requests: Option<u32>, plan: Plan) -> Result<RunRecord, EngineError> {
    let engine = engine(requests);
    let space = engine.array().capacity().bytes();
    UncheckedTarget::new(engine).unwrap().run(RawPlan::new(plan, space).unwrap(), &GO)
}

/// A process that is a function.
struct Asks<F>(F);

impl<F> std::fmt::Debug for Asks<F> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a function")
    }
}

impl<F: FnMut(Time, OpResult) -> Op + Send> Process for Asks<F> {
    fn next(&mut self, now: Time, last: OpResult) -> Op {
        self.0(now, last)
    }
}

fn asks(function: impl FnMut(Time, OpResult) -> Op + Send + 'static) -> Planned {
    Planned { copy: 0, process: Box::new(Asks(function)) }
}

fn script(ops: Vec<Op>) -> Planned {
    let mut ops = ops.into_iter();
    asks(move |_, _| ops.next().unwrap_or(Op::Done))
}

fn open() -> Op {
    Op::Open { fd: SLOT, path: FilePath::target("file"), flags: OpenFlags::BOTH }
}

fn read(block: u64) -> Io {
    Io::Read { fd: SLOT, at: block * BLOCK, len: BLOCK }
}

fn write(block: u64) -> Io {
    Io::Write { fd: SLOT, at: block * BLOCK, len: BLOCK, content: Content::Zeroes }
}

fn plan(run: Vec<Planned>) -> Plan {
    let file = FileNeed { path: FilePath::target("file"), bytes: FILE, unit: BLOCK };
    Plan {
        run,
        phases: vec!["run"],
        files: vec![file],
        barriers: vec![2],
        queues: 1,
        ..Plan::default()
    }
}

fn run_on(target: &mut RawTarget, plan: Plan) -> Result<RawResult, EngineError> {
    let space = target.engine().array().capacity().bytes();
    target.run(RawPlan::new(plan, space).unwrap(), &GO)
}

fn run(plan: Plan) -> Result<RawResult, EngineError> {
    run_on(&mut target(None), plan)
}

/// Starts all of it in a phase; waits for each, or leaves that to the end.
fn at_once(io: impl Iterator<Item = Io>, waits: bool) -> Planned {
    let starts = (0..).zip(io).map(|(tag, io)| Op::Start { tag, io });
    let mut ops: Vec<Op> = [open(), Op::Mark(Mark::Begin(0))].into_iter().chain(starts).collect();
    if waits {
        let started = ops.len() - 2;
        ops.extend((0..started).map(|_| Op::Finish));
        ops.push(Op::Mark(Mark::End(0)));
    }
    script(ops)
}

#[test]
fn what_is_started_at_once_is_done_and_verified() {
    // Also more at once than the array takes, and twice the same places: the later waits.
    for requests in [None, Some(3)] {
        let mut target = target(requests);
        for waits in [true, false] {
            let writes = (0..400).map(|n| write(n * 37 % 200));
            let reads = (0..400).map(|n| read(n * 11 % 200));
            let mixed = (0..400).map(|n| if n % 3 == 0 { write(n % 50) } else { read(n % 70) });
            let run = vec![at_once(writes, waits), at_once(reads, waits), at_once(mixed, waits)];
            let result = run_on(&mut target, plan(run)).unwrap();
            let counts = result.record.processes.iter().map(|process| {
                let phase = &process.phases[0];
                assert!(process.ended >= phase.began.unwrap());
                let slowest = phase.reads.max.max(phase.writes.max);
                assert!(process.ended.since(Time::ZERO) >= slowest, "not before the last answer");
                (phase.reads.count, phase.writes.count)
            });
            assert_eq!(counts.collect::<Vec<_>>(), [(0, 400), (400, 0), (266, 134)]);
        }
        assert_eq!(target.verify_members(&GO).unwrap(), []);
    }
}

#[test]
fn queue_depth_goes_across_batches() {
    let mut target = target(None);
    // Eight blocks of each process at a time.
    target.set_memory(2 * 8 * BLOCK);
    let run = (0..2).map(|_| at_once((0..100).map(write), true)).collect();
    let result = run_on(&mut target, plan(run)).unwrap();
    assert_eq!(result.operations(), 200);
    assert!(result.batches >= 12, "{}", result.batches);
    assert_eq!(target.verify_members(&GO).unwrap(), []);
}

#[test]
fn a_barrier_holds_until_the_last_has_come() {
    let late = Nanos::from_millis(3);
    let waits = vec![
        open(),
        Op::Mark(Mark::Begin(0)),
        Op::Barrier(0),
        Op::Mark(Mark::End(0)),
        Op::At(write(0)),
        Op::Barrier(0),
        Op::At(read(0)),
    ];
    let comes = vec![open(), Op::Sleep(late), Op::Barrier(0), Op::Barrier(0), Op::At(read(0))];
    let result = run(plan(vec![script(waits), script(comes)])).unwrap();
    let phase = &result.record.processes[0].phases[0];
    assert!(phase.took() >= late, "{:?}", phase.took());
    assert_eq!(result.operations(), 0, "the others were in no phase");
}

/// What lies behind a barrier is asked of nobody before it has opened: files have the length then that others have
/// made.
#[test]
fn who_reads_behind_a_barrier_finds_what_was_written() {
    const BLOCKS: u64 = 64;
    let open = |flags| Op::Open { fd: SLOT, path: FilePath::target("file"), flags };
    let mut writes = vec![open(OpenFlags::WRITE)];
    writes.extend((0..BLOCKS).map(|block| Op::At(write(block))));
    writes.push(Op::Barrier(0));
    let reads = vec![
        Op::Barrier(0),
        open(OpenFlags::READ),
        Op::Mark(Mark::Begin(0)),
        Op::At(read(BLOCKS - 1)),
        Op::Mark(Mark::End(0)),
    ];
    for order in [[0, 1], [1, 0]] {
        let mut scripts = [Some(script(writes.clone())), Some(script(reads.clone()))];
        let run_all = order.map(|index| scripts[index].take().unwrap());
        let result = run(plan(run_all.into())).unwrap();
        let reads = &result.record.totals().reads;
        assert_eq!((reads.count, reads.bytes), (1, BLOCK));
    }
}

/// A ticket is given when it is put, not when that is prepared.
#[test]
fn who_takes_a_ticket_begins_when_it_is_put() {
    let phase = |io: Io| [Op::Mark(Mark::Begin(0)), Op::At(io), Op::Mark(Mark::End(0))];
    let mut puts = vec![open()];
    puts.extend(phase(write(0)));
    puts.push(Op::Put { queue: 0, ticket: 1, times: 1 });
    let mut takes = vec![open(), Op::Take { queue: 0 }];
    takes.extend(phase(write(1)));
    for turned in [false, true] {
        let mut run_all = vec![script(puts.clone()), script(takes.clone())];
        if turned {
            run_all.reverse();
        }
        let result = run(plan(run_all)).unwrap();
        let mut phases = result.record.processes.iter().map(|process| &process.phases[0]);
        let (first, second) = (phases.next().unwrap(), phases.next().unwrap());
        let (puts, takes) = if turned { (second, first) } else { (first, second) };
        assert!(takes.began >= puts.ended, "{:?} before {:?}", takes.began, puts.ended);
        assert_eq!(result.operations(), 2);
    }
}

#[test]
fn computing_takes_its_time() {
    let ops =
        vec![Op::Mark(Mark::Begin(0)), Op::Compute(Nanos::from_millis(2)), Op::Mark(Mark::End(0))];
    let result = run(plan(vec![script(ops)])).unwrap();
    assert!(result.record.processes[0].phases[0].took() >= Nanos::from_millis(2));
}

/// Of all batches: who looks at the time is asked anew after each of the first ones.
#[test]
fn cpu_time_is_that_of_all_batches() {
    let work = Nanos::from_millis(2);
    let mut ops = vec![Op::Mark(Mark::Begin(0))];
    ops.extend([Op::Compute(work), Op::Compute(work), Op::Compute(work)]);
    ops.push(Op::Mark(Mark::End(0)));
    let result = run(Plan { asks_time: true, ..plan(vec![script(ops)]) }).unwrap();
    assert!(result.batches >= 2, "{}", result.batches);
    let cpu = result.record.process_cpu.expect("this machine tells").sum();
    assert!(cpu >= Nanos(3 * work.0), "{cpu:?} of {} batches", result.batches);
    assert!(result.record.processes[0].phases[0].took() >= Nanos(3 * work.0));
}

/// Bytes through a buffer are work of the CPU: nothing is read, written or synced, and Ctrl-C is heard.
#[test]
fn characters_are_work_of_the_cpu() {
    let ops = vec![Op::Mark(Mark::Begin(0)), Op::StdioBytes(1 << 20), Op::Mark(Mark::End(0))];
    let result = run(plan(vec![script(ops)])).unwrap();
    let phase = &result.record.processes[0].phases[0];
    assert!(phase.took() > Nanos::ZERO);
    assert_eq!(result.operations(), 0);
}

/// Takes tickets until a negative one; tells them all.
fn taker(told: &Arc<Mutex<Vec<i64>>>) -> Planned {
    let told = told.clone();
    let mut is_open = false;
    asks(move |_, last| {
        if !is_open {
            is_open = true;
            return open();
        }
        match last {
            OpResult::Ticket(ticket) if ticket < 0 => Op::Done,
            OpResult::Ticket(ticket) => {
                told.lock().unwrap().push(ticket);
                Op::At(write(ticket as u64))
            }
            _ => Op::Take { queue: 0 },
        }
    })
}

#[test]
fn every_ticket_is_taken_once() {
    let told = Arc::new(Mutex::new(Vec::new()));
    let put = |ticket, times| Op::Put { queue: 0, ticket, times };
    let mut ops: Vec<Op> = (0..50).map(|ticket| put(ticket, 1)).collect();
    ops.extend([put(7, 3), put(-1, 3)]);
    let takers = (0..3).map(|_| taker(&told));
    let run_all = plan(takers.chain([script(ops)]).collect());
    run(run_all).unwrap();
    let mut told = told.lock().unwrap().clone();
    told.sort_unstable();
    let mut expected: Vec<i64> = (0..50).chain([7, 7, 7]).collect();
    expected.sort_unstable();
    assert_eq!(told, expected);
}

/// The one who puts is asked late, as only little is prepared ahead where time is looked at.
#[test]
fn who_waits_for_a_ticket_waits_for_a_sleeper() {
    let told = Arc::new(Mutex::new(Vec::new()));
    let mut naps = 0;
    let late = asks(move |_, _| {
        naps += 1;
        match naps {
            1..=60 => Op::Sleep(Nanos(20_000)),
            61 => Op::Put { queue: 0, ticket: 5, times: 1 },
            62 => Op::Put { queue: 0, ticket: -1, times: 1 },
            _ => Op::Done,
        }
    });
    let plan = Plan { asks_time: true, ..plan(vec![taker(&told), late]) };
    let result = run(plan).unwrap();
    assert_eq!(*told.lock().unwrap(), [5]);
    assert!(result.record.last_done() >= Nanos(60 * 20_000));
    // Batches end where somebody has nothing prepared, not over and over while others sleep.
    assert!(result.batches < 70, "{}", result.batches);
}

#[test]
fn who_looks_at_the_time_hears_it() {
    let (nap, enough) = (Nanos::from_millis(1), Time(3_000_000));
    for processes in [1, 3] {
        let heard = Arc::new(Mutex::new(Vec::new()));
        let run_all = (0..processes).map(|_| {
            let heard = heard.clone();
            asks(move |now, _| {
                heard.lock().unwrap().push(now);
                if now >= enough { Op::Done } else { Op::Sleep(nap) }
            })
        });
        let plan = Plan { asks_time: true, ..plan(run_all.collect()) };
        let result = run(plan).unwrap();
        assert!(result.record.first_done() >= Nanos(enough.0));
        let heard = heard.lock().unwrap();
        if processes == 1 {
            // Each nap is told before the next is asked for: at most three, and the end.
            assert!(heard.len() <= 4 && heard.is_sorted(), "{heard:?}");
        } else {
            // Sixteen of each are prepared ahead.
            assert!(heard.len() <= 3 * 34, "{}", heard.len());
        }
    }
}

#[test]
fn processes_that_wait_for_ever_are_told() {
    let stuck = |scripts: Vec<Vec<Op>>, asks_time| {
        let run_all = scripts.into_iter().map(script).collect();
        let error = run(Plan { asks_time, ..plan(run_all) }).unwrap_err();
        assert_eq!(error.kind(), EngineErrorKind::Internal, "{error}");
        assert!(error.to_string().contains("wait for each other for ever"), "{error}");
    };
    let take = || Op::Take { queue: 0 };
    for asks_time in [false, true] {
        stuck(vec![vec![Op::Barrier(0)]], asks_time);
        // With more to do behind it.
        stuck(vec![vec![open(), Op::Barrier(0), Op::At(read(0))], vec![]], asks_time);
        stuck(vec![vec![take()], vec![Op::Sleep(Nanos(1000)), take()]], asks_time);
        let busy = (0..100).map(|n| Op::At(write(n % 10)));
        stuck(vec![vec![take()], [open()].into_iter().chain(busy).collect()], asks_time);
    }
    // The target is whole again afterwards.
    let mut target = target(None);
    assert!(run_on(&mut target, plan(vec![script(vec![Op::Barrier(0)])])).is_err());
    let again = plan(vec![at_once((0..9).map(write), true)]);
    assert_eq!(run_on(&mut target, again).unwrap().operations(), 9);
    // What cannot be on it is named.
    let error = run(plan(vec![script(vec![Op::Finish])])).unwrap_err();
    assert_eq!(error.kind(), EngineErrorKind::NotSupported, "{error}");
}

/// Without looking at the bytes the same is asked of the array.
#[test]
fn an_unchecked_run_makes_the_same_requests() {
    for requests in [None, Some(3)] {
        let run_all = || {
            let long = |n: u64| Io::Write {
                fd: SLOT,
                at: n * 3 * BLOCK,
                len: 3 * BLOCK,
                content: Content::Zeroes,
            };
            let writes = (0..100).map(|n| write(n * 37 % 200));
            let mixed = (0..400).map(|n| if n % 3 == 0 { write(n % 50) } else { read(n % 70) });
            let one_by_one = (0..50).flat_map(|n| [Op::At(long(n % 9)), Op::At(read(n))]);
            let begin = [open(), Op::Mark(Mark::Begin(0))];
            let one_by_one = begin.into_iter().chain(one_by_one).chain([Op::Mark(Mark::End(0))]);
            plan(vec![at_once(writes, true), at_once(mixed, false), script(one_by_one.collect())])
        };
        let counts = |record: &RunRecord| -> Vec<_> {
            let of = |process: &raidlab_workload::ProcessRecord| {
                let phase = &process.phases[0];
                [&phase.reads, &phase.writes].map(|class| (class.count, class.bytes))
            };
            record.processes.iter().map(of).collect()
        };
        let checked = run_on(&mut target(requests), run_all()).unwrap().record;
        let unchecked = run_unchecked(requests, run_all()).unwrap();
        assert_eq!(counts(&unchecked), counts(&checked));
        assert!(unchecked.members.is_some_and(|members| members.bytes_written > 0));
        let (last, slowest) = (unchecked.last_done(), unchecked.totals().writes.max);
        assert!(last >= slowest && slowest > Nanos::ZERO);
    }
}

#[test]
fn an_unchecked_run_deals_with_tickets_sleepers_and_deadlocks() {
    let told = Arc::new(Mutex::new(Vec::new()));
    let put = |ticket| Op::Put { queue: 0, ticket, times: 1 };
    let late = vec![put(5), Op::Sleep(Nanos::from_millis(2)), put(6), put(-1)];
    let record = run_unchecked(None, plan(vec![taker(&told), script(late)])).unwrap();
    assert_eq!(*told.lock().unwrap(), [5, 6]);
    assert!(record.last_done() >= Nanos::from_millis(2));
    let error = run_unchecked(None, plan(vec![script(vec![Op::Barrier(0)])])).unwrap_err();
    assert_eq!(error.kind(), EngineErrorKind::Internal, "{error}");
    let error = run_unchecked(None, plan(vec![script(vec![Op::Finish])])).unwrap_err();
    assert_eq!(error.kind(), EngineErrorKind::NotSupported, "{error}");
    let stop = AtomicBool::new(true);
    let space = engine(None).array().capacity().bytes();
    let all = RawPlan::new(plan(vec![at_once((0..9).map(write), true)]), space).unwrap();
    let error = UncheckedTarget::new(engine(None)).unwrap().run(all, &stop).unwrap_err();
    assert_eq!(error.kind(), EngineErrorKind::Cancelled, "{error}");
}

/// A store that answers its first write only when there is a second; or, so that a test ends, with an error after a
/// time that no test takes.
#[derive(Default)]
struct Meeting {
    bytes: Vec<u8>,
    first: Arc<(Mutex<Option<MemberRequest>>, Condvar)>,
    came: bool,
}

impl Meeting {
    fn wait_for_another(&mut self, request: MemberRequest) {
        let first = Arc::clone(&self.first);
        *first.0.lock().unwrap() = Some(request);
        std::thread::spawn(move || {
            let waits = |held: &mut Option<MemberRequest>| held.is_some();
            let held = first.0.lock().unwrap();
            let long = Duration::from_secs(20);
            let mut held = first.1.wait_timeout_while(held, long, waits).unwrap().0;
            if let Some(request) = held.take() {
                request.complete(IoOutcome::Gone);
            }
        });
    }
}

impl MemberStore for Meeting {
    fn sectors(&self) -> Sectors {
        Sectors(self.bytes.len() as u64 / 512)
    }

    fn submit(&mut self, request: MemberRequest) {
        let from = request.at().0 as usize * 512;
        let to = from + request.len().bytes() as usize;
        match request.op() {
            IoOp::Read => request.complete_read(&self.bytes[from..to]),
            IoOp::Write => {
                self.bytes[from..to].copy_from_slice(request.payload());
                if !std::mem::replace(&mut self.came, true) {
                    return self.wait_for_another(request);
                }
                if let Some(first) = self.first.0.lock().unwrap().take() {
                    first.complete(IoOutcome::Ok);
                }
                request.complete(IoOutcome::Ok);
            }
            _ => request.complete(IoOutcome::Ok),
        }
    }
}

/// Whose pause ends while another waits for its drive goes on at once.
#[test]
fn a_pause_ends_while_others_wait_for_a_drive() {
    let meeting = || {
        let store = Meeting { bytes: vec![0; 8 << 20], ..Meeting::default() };
        let members = vec![Member::Own(OwnMember::new(store))];
        Engine::new(&EngineConfig::new(Layout::new(Level::Linear, 1)), members).unwrap()
    };
    let both = || {
        let first = vec![open(), Op::At(write(0))];
        let second = vec![open(), Op::Sleep(Nanos::from_millis(2)), Op::At(write(1))];
        plan(vec![script(first), script(second)])
    };
    let space = meeting().array().capacity().bytes();
    let all = RawPlan::new(both(), space).unwrap();
    UncheckedTarget::new(meeting()).unwrap().run(all, &GO).expect("the two writes meet");
    run_on(&mut RawTarget::new(meeting(), true).unwrap(), both()).expect("the two writes meet");
}
