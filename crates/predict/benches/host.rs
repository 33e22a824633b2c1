//! How fast virtual time goes with a modelled host: 7,000 MB written and read back by requests of 128 KiB,
//! and the 120 cells of the study `pata-2005`.
//!
//! Run with `cargo bench -p raidlab-predict`, or `-- tar-xf` for one workload of the study. Best and median
//! of the rounds are printed, with what the members were asked for and how many events that took; of the
//! study, the sum of each workload. Times are those on the CPU. `-- --lines` prints lines for
//! `cargo xtask bench --against`, of 1,000 MB.

#[path = "../../../tests/support/bench.rs"]
mod bench;

use raidlab_core::{Config, Layout, Level, Sectors};
use raidlab_models::host::{Kernel, Processor};
use raidlab_models::{Drive, HostSpec, Scheduler, load};
use raidlab_predict::host::run_plan;
use raidlab_sim::{HostCosts, World};
use raidlab_workload::{
    Content, FileDescriptor, FilePath, Op, OpResult, OpenFlags, Parameters, Plan, Planned, Process,
    Setting,
};

const ROUNDS: usize = 5;
const S: FileDescriptor = FileDescriptor(0);

#[derive(Debug)]
struct Script(std::vec::IntoIter<Op>);

impl Process for Script {
    fn next(&mut self, _now: raidlab_core::Time, _last: OpResult) -> Op {
        self.0.next().unwrap_or(Op::Done)
    }
}

fn script(ops: Vec<Op>) -> Planned {
    Planned { copy: 0, process: Box::new(Script(ops.into_iter())) }
}

fn open(index: u64, flags: OpenFlags) -> Op {
    Op::Open { fd: S, path: FilePath::target(format!("file{index}")), flags }
}

/// `dd if=/dev/zero bs=64k` of so many MB, or `cp` of it to `/dev/null`, by some processes at once.
fn plan(mb: u64, reads: bool, processes: u64) -> Plan {
    let (len, times) = (65_536, mb * 1_000_000 / 65_536);
    let write = |index| {
        let content = Content::Zeroes;
        vec![open(index, OpenFlags::WRITE), Op::Write { fd: S, len, content, times }]
    };
    let read = |index| vec![open(index, OpenFlags::READ), Op::Read { fd: S, len, times }];
    let all =
        |ops: &dyn Fn(u64) -> Vec<Op>| (0..processes).map(|index| script(ops(index))).collect();
    if reads {
        Plan { prepare: all(&write), run: all(&read), ..Plan::default() }
    } else {
        Plan { run: all(&write), ..Plan::default() }
    }
}

fn world(layout: Layout) -> World {
    let drive = load("pata-80gb-7200").expect("built in");
    let drives: Vec<_> =
        (0..u64::from(layout.members)).map(|member| Drive::new(&drive.kind, member)).collect();
    let config = Config::uniform(layout, drives[0].capacity());
    let world = World::new(&config, drives, HostCosts::default()).expect("fits");
    world.with_queues(&Scheduler::Anticipatory.spec(1))
}

/// The study's workloads with their parameters.
const STUDY: [(&str, &[(&str, &str)]); 6] = [
    ("bonnie-1.03", &[("ram", "756MiB")]),
    ("dd", &[("bs", "64KiB"), ("count", "106811")]),
    ("cp-null", &[("size", "7000MB"), ("profile", "2005")]),
    ("cp-tar", &[("profile", "2005")]),
    ("tar-xf", &[]),
    ("cp-rf", &[("profile", "2005")]),
];

/// The 120 cells of `pata-2005` once, on one core.
fn study(only: Option<&str>) {
    let processor = Processor::named("pentium3-860").expect("known");
    let spec = Kernel::Linux2_6_12.spec().with_processor(&processor);
    let spec = HostSpec { memory: 700 << 20, ..spec };
    let mut all = 0.0;
    for (kind, parameters) in STUDY {
        if only.is_some_and(|only| only != kind) {
            continue;
        }
        let parameters = Parameters::new(parameters.iter().copied()).expect("once each");
        let workload = raidlab_workload::make(kind, parameters).expect("can be");
        let mut took = 0.0;
        for level in [Level::Linear, Level::Linear, Level::Linear, Level::Raid0, Level::Raid1] {
            let members = if level == Level::Linear { 1 } else { 2 };
            for copies in 1..=4 {
                let chunk = Sectors(if level == Level::Raid0 { 128 } else { 0 });
                let mut world = world(Layout { chunk, ..Layout::new(level, members) });
                let setting = Setting { host_memory: Some(spec.memory), ..Setting::new(copies, 1) };
                let plan = workload.plan(&setting).expect("can be");
                let began = bench::cpu_time();
                run_plan(&mut world, &spec, plan).expect("runs");
                took += (bench::cpu_time() - began) / 1e9;
            }
        }
        println!("pata-2005, 20 cells of {kind}: {took:.3} s");
        all += took;
    }
    println!("pata-2005, all of these: {all:.3} s");
}

struct Case {
    name: &'static str,
    layout: Layout,
    reads: bool,
    processes: u64,
}

fn cases() -> Vec<Case> {
    let layouts = [
        ("single", Layout::new(Level::Linear, 1)),
        ("raid0(2)", Layout::new(Level::Raid0, 2)),
        ("raid1(2)", Layout::new(Level::Raid1, 2)),
    ];
    let mut cases = Vec::new();
    for (name, layout) in layouts {
        for (reads, processes) in [(false, 1), (true, 1), (false, 4), (true, 4)] {
            cases.push(Case { name, layout: layout.clone(), reads, processes });
        }
    }
    cases
}

impl Case {
    fn name(&self, mb: &str) -> String {
        let what = if self.reads { "written, then read" } else { "written" };
        format!("{}, {} x {mb} MB {what}", self.name, self.processes)
    }

    /// Nanoseconds it takes, and what it counted.
    fn run(&self, mb: u64) -> (f64, String) {
        let memory = 700 << 20;
        let spec = HostSpec { longest_request: 128 << 10, memory, ..HostSpec::default() };
        let mut world = world(self.layout.clone());
        let began = bench::cpu_time();
        let record = run_plan(&mut world, &spec, plan(mb, self.reads, self.processes));
        let took = bench::cpu_time() - began;
        let (asked, happened) = (world.member_requests(), world.happened());
        let virtually = record.expect("runs").last_done().as_secs();
        (took, format!("{asked} member requests, {happened} events, {virtually:.3} s"))
    }
}

fn main() {
    if bench::lines_asked() {
        let sample = |case: &mut Case| case.run(1_000).0;
        return bench::print_lines(&mut cases(), |case| case.name("1,000"), sample);
    }
    // Cargo says `--bench` too.
    let only = std::env::args().skip(1).find(|argument| !argument.starts_with('-'));
    study(only.as_deref());
    if only.is_some() {
        return;
    }
    for case in cases() {
        let mut runs: Vec<_> = (0..ROUNDS).map(|_| case.run(7_000)).collect();
        runs.sort_by(|one, other| one.0.total_cmp(&other.0));
        let (best, (median, counted)) = (runs[0].0 / 1e9, &runs[ROUNDS / 2]);
        let name = case.name("7,000");
        println!("{name}: {best:.3} s, median {:.3} s; {counted}", median / 1e9);
    }
}
