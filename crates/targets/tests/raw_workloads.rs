//! Workloads whose processes depend on each other, or on the time, on the raw target: what they do is what they do
//! where each is asked live.

use std::sync::atomic::AtomicBool;
use std::sync::Arc;

use crate::common::memory_members;
use raidlab_core::{Layout, Level, Sectors};
use raidlab_engine::{Engine, EngineConfig};
use raidlab_targets::RawTarget;
use raidlab_workload::null::NullTarget;
use raidlab_workload::raw::RawPlan;
use raidlab_workload::{Parameters, RunRecord, Setting, Workload, fio, make};

static GO: AtomicBool = AtomicBool::new(false);
/// Of a member.
const SECTORS: Sectors = Sectors((80 << 20) / 512);

fn jobs(text: &str) -> Arc<dyn Workload> {
    fio::parse(text, "jobs.fio", &|_| None).expect("a job file").workload()
}

/// On one member in memory, so that it does what is asked of the array.
fn run(workload: &dyn Workload) -> RunRecord {
    let config = EngineConfig::new(Layout::new(Level::Linear, 1));
    let engine = Engine::new(&config, memory_members(1, SECTORS)).expect("an engine");
    let space = engine.array().capacity().bytes();
    let setting = Setting { space: Some(space), ..Setting::new(1, 1) };
    let plan = workload.plan(&setting).expect("it fits");
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

/// Who waits for a wave of jobs finds the file as long as they have made it.
#[test]
fn jobs_behind_a_stonewall_read_what_was_written() {
    let text = "[a]\nfilename=x\nrw=write\nbs=4k\nsize=16m\n\
                [b]\nstonewall\nfilename=x\nrw=read\nbs=64k\nsize=16m\n\
                [c]\nstonewall\nfilename=x\nrw=randread\nbs=4k\nsize=16m\n";
    let workload = jobs(text);
    let all = 16 << 20;
    let expected = [[(0, 0), (4096, all)], [(256, all), (0, 0)], [(4096, all), (0, 0)]];
    assert_eq!(counts(&run(&*workload)), expected);
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
        let record = run(&*workload);
        let read = record.members.expect("counted").bytes_read;
        // Rewriting, reading, seeking.
        assert_eq!(read, 2 * SIZE + 8192 * SEEKS, "{kind}");
    }
}
