//! One loop, five targets: of every kind of workload each process asks for the same on all of them.
//!
//! The plan is made once for each target from the same setting, and its processes are listened to. What a process asks
//! for may depend on what it is told; [`Compared`] says where it does, and what is compared then.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};

use raidlab_core::{Config, Layout, Level, Limits, MemberConfig, Sectors, Time};
use raidlab_engine::{Engine, EngineConfig, Member, MemoryMember};
use raidlab_models::host::HostSpec;
use raidlab_models::{DriveKind, HardDisk, load};
use raidlab_predict::{host, run_raw_plan};
use raidlab_sim::{HostCosts, World};
use raidlab_targets::{DirectoryOptions, DirectoryTarget, RawTarget};
use raidlab_workload::null::NullTarget;
use raidlab_workload::raw::RawPlan;
use raidlab_workload::{KINDS, Op, OpResult, Parameters, Plan, Planned, Process, Setting, make};

const MEMBERS: u16 = 4;
/// Every member: 128 MiB.
const MEMBER: Sectors = Sectors((128 << 20) / 512);
static GO: AtomicBool = AtomicBool::new(false);

/// What is compared of the operations of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Compared {
    /// What each process asks for, one after the other.
    Sequences,
    /// The same, but of processes that take tickets only how many they take together: who gets which depends on how
    /// long each works, and each draws its own places.
    Tickets,
    /// What all ask for together: they go by the order in which a directory lists its entries.
    Together,
    /// Which operations there are, each once, by when each process asked for it first: how often depends on the time.
    Distinct,
}

/// Every kind with parameters by which it moves little, and what is compared.
const RUNS: &[(&str, &str, Compared)] = &[
    ("dd-write", "size=256KiB block=64KiB", Compared::Sequences),
    ("dd-read", "size=256KiB block=64KiB", Compared::Sequences),
    ("random-read", "size=128KiB span=8MiB", Compared::Sequences),
    ("random-write", "size=128KiB span=8MiB", Compared::Sequences),
    ("bonnie-1.03", "size=2MiB ram=1MiB n=0 fast=true seeks=40 settle=0s", Compared::Tickets),
    ("bonnie-2.00", "size=2MiB ram=1MiB n=0 fast=true seeks=40 settle=0s", Compared::Tickets),
    ("tiobench-0.3", "size=2MiB threads=2 operations=40", Compared::Sequences),
    (
        "tiobench-0.4",
        "size=2MiB threads=2 operations=40 sequential_writers=true",
        Compared::Sequences,
    ),
    ("hdparm-t", "size=4MiB time=50ms settle=0s", Compared::Distinct),
    ("hdparm-T", "size=4MiB time=5ms settle=0s", Compared::Distinct),
    ("cp-parallel", "files=2 size=512KiB", Compared::Sequences),
    ("blocksize-sweep", "size=256KiB blocks=4KiB,64KiB", Compared::Sequences),
    (
        "real-life",
        "processes=2 files=3 operations=12 smallest=64KiB largest=128KiB blocks=4KiB,32KiB",
        Compared::Sequences,
    ),
    ("dd", "bs=4096 size=64KiB conv=fsync", Compared::Sequences),
    ("cp-null", "size=512KiB", Compared::Sequences),
    ("cp-tar", "size=512KiB", Compared::Sequences),
    ("tar-xf", "files=30 size=300KiB", Compared::Sequences),
    ("cp-rf", "files=30 size=300KiB", Compared::Together),
    ("small-files", "files=30 dirs=3 fsync=true", Compared::Sequences),
    // Of one thread: what several ask for depends on how long each works.
    (
        "filebench",
        "personality=fileserver threads=1 files=20 loops=3 size=8KiB",
        Compared::Sequences,
    ),
    ("filebench", "personality=varmail threads=1 files=20 loops=3", Compared::Sequences),
    ("fio", "rw=randrw size=256k ioengine=libaio iodepth=1 numjobs=2", Compared::Sequences),
    ("fio", "rw=randwrite bs=8k size=512k ioengine=libaio iodepth=8 direct=1", Compared::Sequences),
];

/// A process that is listened to.
#[derive(Debug)]
struct Heard {
    process: Box<dyn Process>,
    asked: Arc<Mutex<Vec<Op>>>,
}

impl Process for Heard {
    fn next(&mut self, now: Time, last: OpResult) -> Op {
        let op = self.process.next(now, last);
        self.asked.lock().expect("nobody panicked").push(op.clone());
        op
    }
}

type Asked = Vec<Arc<Mutex<Vec<Op>>>>;

/// The plan of a run with processes that are listened to.
fn plan(kind: &str, parameters: &str) -> (Plan, Asked) {
    let pairs = parameters.split_whitespace().map(|pair| pair.split_once('=').expect("key=value"));
    let workload = make(kind, Parameters::new(pairs).expect("no key twice"));
    let setting = Setting { host_memory: Some(1 << 20), ..Setting::new(2, 7) };
    let plan = workload.and_then(|workload| workload.plan(&setting)).expect(kind);
    let mut plan = plan.in_single_operations();
    let mut all = Vec::new();
    let listen = |planned: Planned| {
        let asked = Arc::default();
        all.push(Arc::clone(&asked));
        Planned { process: Box::new(Heard { process: planned.process, asked }), ..planned }
    };
    plan.run = plan.run.into_iter().map(listen).collect();
    (plan, all)
}

fn layout() -> Layout {
    Layout::new(Level::Raid5, MEMBERS).with_chunk(Sectors(128))
}

fn world() -> World {
    let config = Config {
        layout: layout(),
        members: vec![MemberConfig { sectors: MEMBER, logical_block: 1 }; usize::from(MEMBERS)],
        read_policy: Default::default(),
        traits: Vec::new(),
        limits: Limits::default(),
        settings: Default::default(),
    };
    let DriveKind::HardDisk(spec) = load("nas-8tb-7200").expect("a drive").kind else {
        panic!("a hard disk");
    };
    let drives = (0..u64::from(MEMBERS)).map(|seed| HardDisk::new(&spec, seed)).collect();
    World::new(&config, drives, HostCosts::default()).expect("a world")
}

fn raw_target() -> RawTarget {
    let member = |_| Member::Memory(MemoryMember::new(MEMBER).expect("memory"));
    let engine = Engine::new(&EngineConfig::new(layout()), (0..MEMBERS).map(member).collect());
    RawTarget::new(engine.expect("an engine"), true).expect("a target")
}

/// Runs a plan on each target that can carry it out; what each was asked for.
fn on_all_targets(kind: &str, parameters: &str) -> Vec<(&'static str, Asked)> {
    let mut runs = Vec::new();
    let (on_null, asked) = plan(kind, parameters);
    let needs_filesystem = on_null.needs_filesystem.is_some();
    NullTarget::default().run(on_null).unwrap_or_else(|error| panic!("{kind}: {error:?}"));
    runs.push(("null", asked));

    let (on_host, asked) = plan(kind, parameters);
    host::run_plan(&mut world(), &HostSpec::default(), on_host).expect(kind);
    runs.push(("modelled host", asked));

    let (in_directory, asked) = plan(kind, parameters);
    let place = std::path::Path::new(env!("CARGO_TARGET_TMPDIR"));
    let options = DirectoryOptions { system_caches: false, ..DirectoryOptions::default() };
    let mut directory = DirectoryTarget::new(place, options).expect("a directory");
    directory.run(in_directory, &GO).expect(kind);
    runs.push(("directory", asked));

    if !needs_filesystem {
        let mut target = raw_target();
        let space = target.engine().array().capacity().bytes();
        let (on_raw, asked) = plan(kind, parameters);
        let extents = RawPlan::new(on_raw, space).expect(kind);
        for (at, end) in &extents.extents {
            target.fill(*at, (end - at) / 4096 * 4096, &GO).expect(kind);
        }
        target.run(extents, &GO).expect(kind);
        runs.push(("raw", asked));

        let (on_modelled, asked) = plan(kind, parameters);
        let on_modelled = RawPlan::new(on_modelled, space).expect(kind);
        run_raw_plan(&mut world(), HostSpec::default().costs, on_modelled).expect(kind);
        runs.push(("modelled raw", asked));
    }
    runs
}

/// What is compared of a run, in words.
fn compared(asked: &Asked, how: Compared) -> Vec<Vec<String>> {
    // Numbers of what is started are used again as it ends, in whichever order.
    let word = |op: &Op| match op {
        Op::Start { io, .. } => format!("Start {io:?}"),
        op => format!("{op:?}"),
    };
    let words = |process: &Arc<Mutex<Vec<Op>>>| -> Vec<String> {
        process.lock().expect("nobody panicked").iter().map(word).collect()
    };
    let all = asked.iter().map(words);
    match how {
        Compared::Sequences => all.collect(),
        Compared::Tickets => {
            let is_take = |op: &String| op.starts_with("Take");
            let (takers, mut others): (Vec<_>, Vec<_>) =
                all.partition(|process| process.iter().any(is_take));
            let taken = takers.iter().flatten().filter(|op| is_take(op)).count();
            others.push(vec![format!("{taken} tickets taken by {} processes", takers.len())]);
            others
        }
        Compared::Together => {
            let mut together: Vec<String> = all.flatten().collect();
            together.sort();
            vec![together]
        }
        Compared::Distinct => {
            let distinct = |process: Vec<String>| {
                let mut first = BTreeMap::new();
                for (at, op) in process.into_iter().enumerate() {
                    first.entry(op).or_insert(at);
                }
                let mut ops: Vec<(usize, String)> =
                    first.into_iter().map(|(op, at)| (at, op)).collect();
                ops.sort();
                ops.into_iter().map(|(_, op)| op).collect()
            };
            all.map(distinct).collect()
        }
    }
}

#[test]
fn every_kind_asks_every_target_for_the_same() {
    for kind in KINDS {
        assert!(RUNS.iter().any(|(name, ..)| *name == kind.name), "{} is not run", kind.name);
    }
    let mut on_arrays = 0;
    for (kind, parameters, how) in RUNS {
        let runs = on_all_targets(kind, parameters);
        on_arrays += usize::from(runs.len() == 5);
        let (first, asked) = &runs[0];
        let one = compared(asked, *how);
        assert!(one.iter().flatten().count() > 3, "{kind}: {one:?}");
        for (other, asked) in &runs[1..] {
            let two = compared(asked, *how);
            assert_eq!(one.len(), two.len(), "{kind} {parameters}: processes");
            for (process, (one, two)) in one.iter().zip(&two).enumerate() {
                let differs = one.iter().zip(two).position(|(one, two)| one != two);
                if let Some(at) = differs {
                    panic!(
                        "{kind} {parameters}, process {process}, operation {at}: {first} is asked for {}, \
                         {other} for {}",
                        one[at], two[at]
                    );
                }
                assert_eq!(one.len(), two.len(), "{kind} {parameters}, process {process}, {other}");
            }
        }
    }
    assert_eq!(on_arrays, 17, "runs that need no filesystem");
}
