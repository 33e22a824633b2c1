//! One core, two drivers: for the same workload at depth 1 the engine over real members and the
//! simulator over modelled drives ask their members for the same.
//!
//! What a request asks for depends on nothing but the request; in which order, depends on the order
//! in which its member I/Os end where it has several phases on several stripes at once. The first
//! test runs the raw targets themselves, on workloads whose requests have no such choice: the lists
//! are the same, one by one. The second looks at requests across stripes one at a time.

use std::sync::atomic::AtomicBool;

use raidlab_core::contract::{IoOp, Segment};
use raidlab_core::{Config, Limits, MemberConfig, MemberIndex, Sector, Sectors, Time};
use raidlab_engine::{Engine, EngineConfig, Member, MemoryMember};
use raidlab_models::{DriveKind, HardDisk, load};
use raidlab_predict::Modelled;
use raidlab_sim::{HostCosts, World};
use raidlab_study::{CellKey, NamedLayout, State, Study};
use raidlab_targets::RawTarget;
use raidlab_workload::processes::Asked;
use raidlab_workload::raw::{OpResult, RawPlan, Request};
use raidlab_workload::{Kind, Setting, Simple, Workload};

/// Every member, in both: 64 MiB.
const MEMBER: Sectors = Sectors((64 << 20) / 512);
const SEED: u64 = 7;

type Io = (MemberIndex, IoOp, Sector, u32);

/// Nested levels, beside the layouts of the default study.
const NESTED: &str = r#"
[[layouts]]
level = "raid5+0"
members = 6

[[layouts]]
level = "raid1+0"
members = 4
chunk = "64K"

[[layouts]]
level = "raid0+1"
members = 4
"#;

/// The default study, and nested levels, with less to move.
fn study() -> Study {
    let text = raidlab_study::default_study().replace("count = 4", "count = 6");
    let text = text.replacen("\n[[workloads]]", &format!("{NESTED}\n[[workloads]]"), 1);
    let mut study = raidlab_study::parse(&text, "default.toml").expect("the default study");
    for spec in &mut study.workloads {
        let is_random = spec.workload.kind().starts_with("random");
        let size = if is_random { 512 << 10 } else { 50 << 20 };
        spec.resize(size).expect("another size");
    }
    study
}

fn engine(named: &NamedLayout) -> Engine {
    let members = (0..named.layout.drives())
        .map(|_| Member::Memory(MemoryMember::new(MEMBER).expect("memory")))
        .collect();
    let mut config = EngineConfig::new(named.layout.clone());
    config.read_policy = named.read_policy;
    let mut engine = Engine::new(&config, members).expect("an engine");
    engine.record(true);
    engine
}

fn world(named: &NamedLayout) -> World {
    let member = MemberConfig { sectors: MEMBER, logical_block: 1 };
    let config = Config {
        layout: named.layout.clone(),
        members: vec![member; usize::from(named.layout.drives())],
        read_policy: named.read_policy,
        traits: Vec::new(),
        limits: Limits::default(),
        settings: named.settings,
    };
    let DriveKind::HardDisk(spec) = load("nas-8tb-7200").expect("a drive").kind else {
        panic!("a hard disk");
    };
    let drives = (0..u64::from(named.layout.drives())).map(|seed| HardDisk::new(&spec, seed));
    let mut world = World::new(&config, drives.collect(), HostCosts::default()).expect("a world");
    world.start_record();
    world
}

fn plan(workload: &dyn Workload, capacity: Sectors) -> RawPlan {
    let space = capacity.bytes();
    let setting = Setting { space: Some(space), ..Setting::new(1, SEED) };
    RawPlan::new(workload.plan(&setting).expect("a plan"), space).expect("it fits")
}

fn recorded_by_engine(engine: &Engine) -> Vec<Io> {
    engine.recorded().iter().map(|io| (io.member, io.op, io.at, io.len)).collect()
}

fn recorded_by_world(world: &World) -> Vec<Io> {
    world.record().iter().map(|io| (io.member, io.op, io.at, io.len)).collect()
}

#[test]
fn the_raw_targets_ask_members_for_the_same() {
    let study = study();
    let modelled = Modelled::new(&study, HostCosts::default()).expect("modelled drives");
    let keys = raidlab_study::cells(&study);
    let alone = |key: &&CellKey| key.processes == 1 && key.state == State::Healthy;
    let mut compared = 0;
    for key in keys.iter().filter(alone) {
        let title = raidlab_study::cell_title(&study, key);
        let named = &study.layouts[key.layout];

        let mut target = RawTarget::new(engine(named), true).expect("a target");
        let capacity = target.engine().array().capacity();
        let plan = plan(&*study.workloads[key.workload].workload, capacity);
        target.run(plan, &AtomicBool::new(false)).expect("a run");
        let one = recorded_by_engine(target.engine());

        let mut world = world(named);
        modelled.run_on(&mut world, key, SEED).expect("a run");
        let other = recorded_by_world(&world);

        assert!(!one.is_empty(), "{title}");
        if let Some((at, (one, other))) =
            one.iter().zip(&other).enumerate().find(|(_, (one, other))| one != other)
        {
            panic!("{title}: request {at}: engine {one:?}, simulator {other:?}");
        }
        assert_eq!(one.len(), other.len(), "{title}");
        compared += 1;
    }
    assert_eq!(compared, (9 + 3) * 4, "every layout with every workload");
}

/// Carries out one request in both; gives what each asked its members for, sorted.
fn one_request(
    engine: &mut Engine,
    world: &mut World,
    op: Asked<Request>,
) -> Option<(Vec<Io>, Vec<Io>)> {
    let (op, at, len) = match op {
        Asked::Operation(Request::Read(at, len)) => (IoOp::Read, at, len),
        Asked::Operation(Request::Write(at, len)) => (IoOp::Write, at, len),
        Asked::Operation(Request::Sync) => (IoOp::Flush, 0, 0),
        _ => return None,
    };
    let (at, len) = (Sector(at / 512), Sectors(len / 512));
    let before = (engine.recorded().len(), world.record().len());

    let mut segments = Vec::new();
    if len != Sectors::ZERO {
        let token = engine.allocate(len.bytes()).expect("a buffer");
        segments.push(Segment { token, offset: 0, len: len.0 as u32 });
    }
    engine.submit(op, at, &segments, false).expect("submitted");
    engine.run_until_idle(&mut Vec::new()).expect("answered");
    for segment in segments {
        engine.release(segment.token).expect("no longer in use");
    }
    world.submit(op, at, len, false);
    while world.next_answer().is_none() {
        assert!(world.step(), "the simulator gives no answer");
    }

    let mut one = recorded_by_engine(engine).split_off(before.0);
    let mut other = recorded_by_world(world).split_off(before.1);
    let place = |io: &Io| (io.2, io.0, io.1 == IoOp::Write, io.3);
    one.sort_by_key(place);
    other.sort_by_key(place);
    Some((one, other))
}

#[test]
fn requests_across_stripes_ask_members_for_the_same() {
    let study = study();
    for named in &study.layouts {
        for kind in Kind::ALL {
            // Blocks of a stripe and a bit, at ever other places in their stripes.
            let size = if kind.is_random() { 4 * (2596 << 10) } else { 10 << 20 };
            let workload = Simple { block: 2596 << 10, ..Simple::new(kind, size) };
            let (mut engine, mut world) = (engine(named), world(named));
            let capacity = engine.array().capacity();
            let mut process = plan(&workload, capacity).processes.remove(0);
            let mut last = OpResult::Start;
            let mut compared = 0;
            loop {
                let op = process.next(Time::ZERO, last);
                last = OpResult::Done;
                if matches!(op, Asked::Mark(_)) {
                    continue;
                }
                let Some((one, other)) = one_request(&mut engine, &mut world, op) else { break };
                assert!(!one.is_empty(), "{} {op:?}", named.name);
                assert_eq!(one, other, "{} {op:?}", named.name);
                compared += 1;
            }
            assert!(compared >= 4, "{compared}");
        }
    }
}
