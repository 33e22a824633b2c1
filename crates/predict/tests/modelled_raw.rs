//! Processes on the modelled raw target: queue depth, barriers, tickets, sleep, and waiting for ever.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use raidlab_core::{Nanos, Time};
use raidlab_predict::Modelled;
use raidlab_sim::HostCosts;
use raidlab_study::{Sample, Study, parse};
use raidlab_workload::{
    Content, FileDescriptor, FileNeed, FilePath, Io, Mark, Metric, Op, OpResult, OpenFlags,
    Parameters, Plan, Planned, Process, RunRecord, Setting, Workload, WorkloadError, make,
};

const SLOT: FileDescriptor = FileDescriptor(0);
const FILE: u64 = 64 << 20;

const TEXT: &str = r#"
title = "Raw"
drives = [{ name = "nas", model = "nas-8tb-7200", count = 4 }]
layouts = [{ level = "raid0", members = 4, chunk = "64KiB" }]
workloads = [{ kind = "dd-read", size = "6MiB" }]
"#;

/// A workload that is one plan.
#[derive(Debug)]
struct Given(Mutex<Option<Plan>>);

impl Workload for Given {
    fn kind(&self) -> &'static str {
        "given"
    }

    fn default_name(&self) -> String {
        "given".into()
    }

    fn description(&self) -> String {
        "given".into()
    }

    fn metrics(&self) -> Vec<Metric> {
        vec![Metric::MIB_PER_SECOND]
    }

    fn values(&self, _record: &RunRecord) -> Vec<Option<f64>> {
        vec![None]
    }

    fn plan(&self, _setting: &Setting) -> Result<Plan, WorkloadError> {
        Ok(self.0.lock().unwrap().take().expect("planned once"))
    }

    fn resized(&self, _bytes: u64) -> Result<Arc<dyn Workload>, WorkloadError> {
        unreachable!("nobody asks")
    }
}

/// Each ticket that was heard, with who heard it.
type Heard = Arc<Mutex<Vec<(usize, i64)>>>;

#[derive(Debug)]
struct Script {
    ops: VecDeque<Op>,
    number: usize,
    told: Heard,
}

impl Process for Script {
    fn next(&mut self, _now: Time, last: OpResult) -> Op {
        if let OpResult::Ticket(ticket) = last {
            self.told.lock().unwrap().push((self.number, ticket));
        }
        self.ops.pop_front().unwrap_or(Op::Done)
    }
}

/// Naps until the time it is told is late enough.
#[derive(Debug)]
struct Napper;

impl Process for Napper {
    fn next(&mut self, now: Time, _last: OpResult) -> Op {
        if now >= Time(10_000_000) { Op::Done } else { Op::Sleep(Nanos::from_millis(3)) }
    }
}

fn run_planned(run: Vec<Planned>) -> Result<RunRecord, String> {
    let study: Study = parse(TEXT, "raw.toml").unwrap_or_else(|error| panic!("{error}"));
    let modelled = Modelled::new(&study, HostCosts::default()).expect("modelled drives");
    let mut world = modelled.world(0, 1).expect("a world");
    let file = FileNeed { path: FilePath::target("file"), bytes: FILE, unit: 4096 };
    let plan = Plan {
        run,
        phases: vec!["run"],
        files: vec![file],
        barriers: vec![2],
        queues: 1,
        asks_time: true,
        ..Plan::default()
    };
    let given = Given(Mutex::new(Some(plan)));
    modelled.record_on(&mut world, &given, Setting::new(1, 1))
}

fn run_telling(scripts: Vec<Vec<Op>>, told: &Heard) -> Result<RunRecord, String> {
    let process = |(number, ops): (usize, Vec<Op>)| {
        let process = Box::new(Script { ops: ops.into(), number, told: told.clone() });
        Planned { copy: number as u32, process }
    };
    run_planned(scripts.into_iter().enumerate().map(process).collect())
}

fn run(scripts: Vec<Vec<Op>>) -> Result<RunRecord, String> {
    run_telling(scripts, &Heard::default())
}

fn open() -> Op {
    Op::Open { fd: SLOT, path: FilePath::target("file"), flags: OpenFlags::BOTH }
}

/// Reads of one chunk of each of the four members.
fn reads() -> impl Iterator<Item = Io> {
    (0..4).map(|chunk| Io::Read { fd: SLOT, at: chunk * (8 << 20) + chunk * 65536, len: 4096 })
}

fn started() -> impl Iterator<Item = Op> {
    (0..).zip(reads()).map(|(tag, io)| Op::Start { tag, io })
}

fn measured(ops: impl Iterator<Item = Op>) -> Vec<Op> {
    let before = [open(), Op::Mark(Mark::Begin(0))];
    before.into_iter().chain(ops).chain([Op::Mark(Mark::End(0))]).collect()
}

fn millis(millis: u64) -> Nanos {
    Nanos::from_millis(millis)
}

#[test]
fn members_work_at_once_for_what_is_started_at_once() {
    let one_by_one = run(vec![measured(reads().map(Op::At))]).expect("a run");
    let finishes = (0..4).map(|_| Op::Finish);
    let at_once = run(vec![measured(started().chain(finishes))]).expect("a run");
    let of = |record: &RunRecord| {
        let phase = record.phase(0).expect("it was begun");
        assert_eq!((phase.reads.count, phase.reads.bytes), (4, 4 * 4096));
        (phase.took(), phase.reads.max, phase.reads.total)
    };
    let ((serial, _, sum), (together, slowest, _)) = (of(&one_by_one), of(&at_once));
    assert!(serial >= sum, "{serial:?}: one after the other is the sum");
    assert!(together < serial, "{together:?} of {serial:?}");
    // The drives do not wait for each other: it takes as long as the slowest, and the host's part.
    assert!(together.0 < slowest.0 + 1_000_000, "{together:?}, the slowest {slowest:?}");
}

#[test]
fn a_process_ends_when_all_it_started_is_done() {
    let ops = [open()].into_iter().chain([Op::Mark(Mark::Begin(0))]).chain(started());
    let record = run(vec![ops.collect(), vec![]]).expect("a run");
    let totals = record.totals();
    assert_eq!(totals.reads.count, 4, "all were waited for");
    assert!(record.last_done() >= totals.reads.max && totals.reads.max > Nanos::ZERO);
    assert_eq!(record.first_done(), Nanos::ZERO);
}

#[test]
fn barriers_and_sleep_by_hand() {
    let phase = [Op::Mark(Mark::Begin(0)), Op::Barrier(0), Op::Mark(Mark::End(0))];
    let record = run(vec![
        phase.into_iter().chain([Op::Sleep(millis(1)), Op::Barrier(0)]).collect(),
        vec![Op::Sleep(millis(5)), Op::Barrier(0), Op::Barrier(0), Op::Sleep(millis(7))],
    ]);
    let record = record.expect("a run");
    assert_eq!(record.phase(0).expect("a phase").took(), millis(5));
    assert_eq!(record.ends(), [millis(6), millis(13)]);
}

#[test]
fn tickets_go_to_who_waited_longest_and_on_in_that_order() {
    let told = Heard::default();
    let take = || vec![Op::Take { queue: 0 }, Op::Take { queue: 0 }];
    let put = |ticket, times| Op::Put { queue: 0, ticket, times };
    let puts = vec![Op::Sleep(millis(2)), put(7, 3), Op::Sleep(millis(2)), put(8, 1), put(9, 2)];
    run_telling(vec![take(), take(), take(), puts], &told).expect("a run");
    let told = told.lock().unwrap().clone();
    assert_eq!(told, [(0, 7), (1, 7), (2, 7), (0, 8), (1, 9), (2, 9)]);
}

#[test]
fn time_is_told_as_it_is() {
    let record = run_planned(vec![Planned { copy: 0, process: Box::new(Napper) }]);
    assert_eq!(record.expect("a run").last_done(), millis(12));
}

#[test]
fn who_computes_shares_the_cpu() {
    let compute = || vec![Op::Compute(millis(5))];
    let record = run(vec![compute(), compute(), vec![Op::Sleep(millis(1))]]).expect("a run");
    assert_eq!(record.ends(), [millis(5), millis(10), millis(1)]);
    assert_eq!(record.system_cpu, Some(millis(10)));
}

/// Bytes through `putc` cost what they do on today's host: 2 ns each.
#[test]
fn characters_use_the_cpu() {
    let record = run(vec![vec![Op::StdioBytes(1_000_000)], vec![Op::StdioBytes(500_000)]]);
    let record = record.expect("a run");
    assert_eq!(record.ends(), [millis(2), millis(3)]);
    assert_eq!(record.system_cpu, Some(millis(3)));
}

#[test]
fn what_cannot_go_on_is_told() {
    let stuck = |scripts| {
        let error = run(scripts).unwrap_err();
        assert!(error.contains("wait for each other for ever"), "{error}");
    };
    let take = || Op::Take { queue: 0 };
    stuck(vec![vec![take()]]);
    stuck(vec![vec![open(), Op::Barrier(0), Op::SyncAll], vec![Op::Sleep(millis(1)), open()]]);
    stuck(vec![vec![take()], vec![open(), Op::At(reads().next().expect("one")), take()]]);
    let odd = Io::Write { fd: SLOT, at: 100, len: 512, content: Content::Zeroes };
    let error = run(vec![vec![open(), Op::At(odd)]]).unwrap_err();
    assert!(error.contains("works in whole blocks of 512B"), "{error}");
    let error = run(vec![vec![Op::Finish]]).unwrap_err();
    assert!(error.contains("has started nothing"), "{error}");
}

/// Drives that are read are busy, and no other; what is busiest is told by name.
#[test]
fn what_is_busy_is_told_by_name() {
    let first = Op::At(reads().next().expect("four"));
    let record = run(vec![[open()].into_iter().chain(std::iter::repeat_n(first, 8)).collect()])
        .expect("runs");
    let share =
        |name: &str| record.busy.iter().find(|(one, _)| one == name).map(|(_, share)| *share);
    assert!(
        share("member 0").is_some_and(|share| share > 0.8 && share <= 1.0),
        "{:?}",
        record.busy
    );
    assert_eq!(share("member 3").unwrap_or(0.0), 0.0, "{:?}", record.busy);
    let (name, busiest) = record.bottleneck.clone().expect("told");
    assert_eq!((&*name, Some(busiest)), ("member 0", share("member 0")));
}

/// What an operation reads before it writes is not written: on a single drive every byte goes out once.
#[test]
fn bonnie_writes_to_a_single_drive_what_it_writes() {
    let text =
        TEXT.replace(r#"level = "raid0", members = 4, chunk = "64KiB""#, r#"level = "single""#);
    let study: Study = parse(&text, "raw.toml").unwrap_or_else(|error| panic!("{error}"));
    let modelled = Modelled::new(&study, HostCosts::default()).expect("modelled drives");
    let mut world = modelled.world(0, 1).expect("a world");
    let given = [("size", "32MiB"), ("ram", "0"), ("n", "0"), ("fast", "true"), ("settle", "0s")];
    let bonnie = make("bonnie-1.03", Parameters::new(given).expect("no key twice")).expect("right");
    let record = modelled.record_on(&mut world, &*bonnie, Setting::new(1, 1)).expect("runs");
    let rewrite = record.phases.iter().position(|name| *name == "rewrite").expect("a phase");
    let rewrite = record.phase(rewrite as u16).expect("was run");
    assert_eq!((rewrite.writes.count, rewrite.writes.bytes), (4096, 32 << 20));
    assert_eq!((rewrite.reads.count, rewrite.reads.bytes), (0, 32 << 20));
    assert_eq!(record.write_amplification(), Some(1.0));
    let sample = Sample::of(&*bonnie, &record).expect("took a time");
    assert_eq!(sample.members.expect("counted").bytes_written, sample.bytes_written);
}
