//! Nothing is allocated per request once a world is warm.

#[path = "../../../tests/support/counting.rs"]
mod counting;

use counting::of_all_threads;
use raidlab_core::contract::IoOp;
use raidlab_core::{Config, Layout, Level, Sector, Sectors};
use raidlab_models::{ControllerSpec, Drive, LinkSpec, PathSpec, Scheduler, load};
use raidlab_sim::{HostCosts, World};

fn load_world(world: &mut World, op: IoOp, depth: u64, count: u64, state: &mut u64) {
    let places = world.array().capacity().0 / 8;
    let (mut asked, mut answered) = (0, 0);
    while answered < count {
        while asked < count && asked - answered < depth {
            *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            world.submit(op, Sector((*state >> 11) % places * 8), Sectors(8), false);
            asked += 1;
        }
        world.step();
        while world.next_answer().is_some() {
            answered += 1;
        }
    }
}

/// Two drives on each PATA channel, a bus and the memory path for all.
fn paths(drives: u64) -> PathSpec {
    let of: Vec<usize> = (0..drives as usize).map(|drive| drive / 2).collect();
    let channels = (0..drives.div_ceil(2)).map(|one| LinkSpec::pata_udma100(&format!("ide{one}")));
    PathSpec::shared(channels.collect(), &of)
        .behind(LinkSpec::pci_32_33("pci"))
        .behind(LinkSpec::memory("memory", 300_000_000))
}

/// A world within paths, perhaps behind a controller; `depth` requests at once.
fn warm_within_paths(controller: Option<&ControllerSpec>, op: IoOp, depth: u64) -> u64 {
    let spec = load("pata-80gb-7200").expect("built in");
    let drives: Vec<_> = (0..4).map(|seed| Drive::new(&spec.kind, seed)).collect();
    let config = Config::uniform(Layout::new(Level::Raid5, 4), spec.capacity);
    let world = World::new(&config, drives, HostCosts::default()).expect("fits");
    let world = world.with_queues(&Scheduler::Deadline.spec(1));
    let mut world = world.with_paths(&paths(4)).expect("can be");
    if let Some(controller) = controller {
        world = world.with_controller(controller).expect("can be");
    }
    let mut state = 1;
    load_world(&mut world, op, depth, 30_000, &mut state);
    let before = of_all_threads();
    load_world(&mut world, op, depth, 10_000, &mut state);
    of_all_threads() - before
}

/// One test, so that no other allocates beside it.
#[test]
fn a_warm_world_allocates_nothing() {
    let cases = [
        ("nas-8tb-7200", Level::Raid5, 9, 9, None),
        ("nas-8tb-7200", Level::Raid5, 9, 288, None),
        ("nas-8tb-7200", Level::Raid0, 4, 32, Some(Scheduler::MqDeadline)),
        ("pata-80gb-7200", Level::Raid5, 4, 16, Some(Scheduler::Deadline)),
        ("ssd-nvme4-2tb-dc", Level::Raid5, 5, 64, None),
        ("ssd-sata-1tb", Level::Raid1, 2, 32, Some(Scheduler::None)),
    ];
    for (name, level, members, depth, scheduler) in cases {
        let spec = load(name).expect("built in");
        for op in [IoOp::Read, IoOp::Write] {
            let drives: Vec<_> = (0..members).map(|seed| Drive::new(&spec.kind, seed)).collect();
            let config = Config::uniform(Layout::new(level, members as u16), spec.capacity);
            let mut world = World::new(&config, drives, HostCosts::default()).expect("fits");
            if let Some(scheduler) = scheduler {
                world = world.with_queues(&scheduler.spec(spec.kind.queue_depth()));
            }
            let mut state = 1;
            load_world(&mut world, op, depth, 60_000, &mut state);
            let before = of_all_threads();
            load_world(&mut world, op, depth, 20_000, &mut state);
            let more = of_all_threads() - before;
            println!("{name} {level}({members}) {op:?} x {depth}: {more}");
            assert_eq!(more, 0, "{name} {level}({members}) {op:?} at depth {depth}");
        }
    }
    let controllers = [
        None,
        Some(ControllerSpec::ite8212_bios("card")),
        Some(ControllerSpec::smart_array_e200i("e200i", true)),
        Some(ControllerSpec::smart_array_e200i("e200i", false)),
    ];
    for controller in &controllers {
        for op in [IoOp::Read, IoOp::Write] {
            let more = warm_within_paths(controller.as_ref(), op, 16);
            assert_eq!(more, 0, "{op:?} within paths, {controller:?}");
        }
    }
}
