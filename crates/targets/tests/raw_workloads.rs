//! Workloads whose processes depend on each other, or on the time, on the raw target: what they do is what they do
//! where each is asked live.

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};

use crate::common::memory_members;
use raidlab_core::{Layout, Level, Nanos, Sectors, Time};
use raidlab_engine::{Engine, EngineConfig};
use raidlab_targets::RawTarget;
use raidlab_workload::null::NullTarget;
use raidlab_workload::raw::RawPlan;
use raidlab_workload::{
    Mark, Op, OpResult, Parameters, Plan, Planned, Process, RunRecord, Setting, Workload, fio, make,
};

static GO: AtomicBool = AtomicBool::new(false);
/// Of a member.
const SECTORS: Sectors = Sectors((80 << 20) / 512);

fn jobs(text: &str) -> Arc<dyn Workload> {
    fio::parse(text, "jobs.fio", &|_| None).expect("a job file").workload()
}

/// On one member in memory, so that it does what is asked of the array.
fn run(workload: &dyn Workload, wrap: impl FnOnce(&mut Plan)) -> RunRecord {
    let config = EngineConfig::new(Layout::new(Level::Linear, 1));
    let engine = Engine::new(&config, memory_members(1, SECTORS)).expect("an engine");
    let space = engine.array().capacity().bytes();
    let setting = Setting { space: Some(space), ..Setting::new(1, 1) };
    let mut plan = workload.plan(&setting).expect("it fits");
    wrap(&mut plan);
    let plan = RawPlan::new(plan, space).expect("it needs no filesystem");
    let mut target = RawTarget::new(engine, false).expect("at rest");
    target.run(plan, &GO).expect("it runs").record
}

/// Reads and writes of each process: how many, and bytes.
fn counts(record: &RunRecord) -> Vec<[(u64, u64); 2]> {
    let of = |process: &raidlab_workload::ProcessRecord| {
        let phase = &process.phases[0];
        [&phase.reads, &phase.writes].map(|class| (class.count, class.bytes))
    };
    record.processes.iter().map(of).collect()
}

/// What a process was told as the time, and asked for then.
type Asked = Vec<(Time, Op)>;

/// Notes what a process asks for.
#[derive(Debug)]
struct Noted {
    process: Box<dyn Process>,
    asked: Arc<Mutex<Asked>>,
}

impl Process for Noted {
    fn next(&mut self, now: Time, last: OpResult) -> Op {
        let op = self.process.next(now, last);
        let mut asked = self.asked.lock().expect("no panic");
        // Who never ends would keep its test from failing.
        assert!(asked.len() < 1 << 20, "it goes on for ever");
        asked.push((now, op.clone()));
        op
    }
}

/// With what each process asked for.
fn noted(workload: &dyn Workload) -> (Vec<Asked>, RunRecord) {
    let mut all = Vec::new();
    let record = run(workload, |plan| {
        let processes = std::mem::take(&mut plan.run);
        let noted = processes.into_iter().map(|Planned { copy, process }| {
            let asked = Arc::new(Mutex::new(Vec::new()));
            all.push(Arc::clone(&asked));
            Planned { copy, process: Box::new(Noted { process, asked }) }
        });
        plan.run = noted.collect();
    });
    let all = all.iter().map(|asked| std::mem::take(&mut *asked.lock().expect("no panic")));
    (all.collect(), record)
}

/// How often each process sleeps.
fn sleeps(text: &str) -> (Vec<usize>, RunRecord) {
    let (asked, record) = noted(&*jobs(text));
    let sleeps = |asked: &Asked| asked.iter().filter(|(_, op)| matches!(op, Op::Sleep(_))).count();
    (asked.iter().map(sleeps).collect(), record)
}

/// Who waits for a wave of jobs finds the file as long as they have made it.
#[test]
fn jobs_behind_a_stonewall_read_what_was_written() {
    let text = "[a]\nfilename=x\nrw=write\nbs=4k\nsize=16m\n\
                [b]\nstonewall\nfilename=x\nrw=read\nbs=64k\nsize=16m\n\
                [c]\nstonewall\nfilename=x\nrw=randread\nbs=4k\nsize=16m\n";
    let workload = jobs(text);
    let all = 16 << 20;
    let expected = [[(0, 0), (4096, all)], [(256, all), (0, 0)], [(4096, all), (0, 0)]];
    assert_eq!(counts(&run(&*workload, |_| ())), expected);
    let plan = workload.plan(&Setting::new(1, 1)).expect("a plan");
    assert_eq!(counts(&NullTarget::default().run(plan).expect("it runs")), expected);
}

/// All seeks reach the members: the main process removes its files when the seekers are done.
#[test]
fn bonnie_seeks_on_a_raw_target() {
    const SIZE: u64 = 64 << 20;
    const SEEKS: u64 = 500;
    for kind in ["bonnie-1.03", "bonnie-2.00"] {
        let parameters = [
            ("size", "64MiB"),
            ("ram", "0"),
            ("n", "0"),
            ("fast", "true"),
            ("settle", "1ms"),
            ("seeks", "500"),
        ];
        let parameters = Parameters::new(parameters).expect("no key twice");
        let workload = make(kind, parameters).expect("right");
        let record = run(&*workload, |_| ());
        let read = record.members.expect("counted").bytes_read;
        // Rewriting, reading, seeking.
        assert_eq!(read, 2 * SIZE + 8192 * SEEKS, "{kind}");
    }
}

/// A delay is over after it, however far ahead operations are prepared, and each process has it once.
#[test]
fn a_delay_is_slept_once() {
    let job = "[a]\nrw=write\nbs=4k\nsize=1m\nstartdelay=1ms\n";
    let (slept, record) = sleeps(job);
    assert_eq!((slept, counts(&record)), (vec![1], vec![[(0, 0), (256, 1 << 20)]]));
    let (slept, record) = sleeps(&format!("{job}numjobs=2\nruntime=1h\n"));
    assert_eq!(slept, [1, 1]);
    assert_eq!(record.totals().writes.count, 2 * 256);
}

/// Who pauses for half of its time pauses twice, not as often as is prepared ahead.
#[test]
fn pauses_count_as_time() {
    let text = "[a]\nrw=randwrite\nbs=4k\nsize=1m\nnumjobs=2\nthinktime=2ms\nruntime=4ms\n";
    let (slept, record) = sleeps(text);
    assert!(slept.iter().all(|times| *times <= 2), "{slept:?}");
    assert!(record.totals().writes.count <= 4);
}

/// A ramp ends when its time has passed, which its pauses alone take here.
#[test]
fn a_ramp_ends_and_the_rest_is_counted() {
    let text = "[a]\nrw=write\nbs=4k\nsize=1m\nthinktime=1ms\nthinktime_blocks=16\nramp_time=2ms\n";
    let record = run(&*jobs(text), |_| ());
    let count = record.totals().writes.count;
    assert!((1..256).contains(&count), "{count}");
}

/// The clock of hdparm starts when what it sleeps first is over, and it looks at it after reads.
#[test]
fn hdparm_reads_for_its_time() {
    for (kind, slept) in [("hdparm-t", 2), ("hdparm-T", 1_002)] {
        let parameters = [("time", "3ms"), ("settle", "2ms")];
        let workload = make(kind, Parameters::new(parameters).expect("no key twice"));
        let (asked, record) = noted(&*workload.expect("right"));
        let [began, ended] = [Mark::Begin(0), Mark::End(0)].map(|mark| {
            let told = asked[0].iter().find(|(_, op)| *op == Op::Mark(mark));
            told.expect("it is set").0
        });
        assert!(began >= Time::ZERO + Nanos::from_millis(slept), "{kind}: {began:?}");
        let reads = record.processes[0].phases[0].reads.count;
        let is_whole = kind == "hdparm-t" && reads == SECTORS.bytes() >> 21;
        assert!(ended.since(began) >= Nanos::from_millis(3) || is_whole, "{kind}: {ended:?}");
        assert!(reads > 0 && asked[0].is_sorted_by_key(|(now, _)| *now), "{kind}");
    }
}
