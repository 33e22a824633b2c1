//! What cannot be seen from outside.

use raidlab_core::contract::IoOp;
use raidlab_core::{Config, Sector, Sectors};
use raidlab_models::{DriveKind, HardDisk, Scheduler, load};

use super::{KERNEL, World};
use crate::host::HostCosts;

/// Schedulers that tell processes apart are told of a process only what the array sends out as it is asked: what
/// follows from a completion is the array's own thread's, as with md.
#[test]
fn what_the_array_does_by_itself_is_nobody_s() {
    let DriveKind::HardDisk(spec) = load("nas-8tb-7200").expect("built in").kind else {
        panic!("it is a hard disk");
    };
    let layout = "raid5(3) chunk=64K".parse().expect("is a layout");
    let config = Config::uniform(layout, Sectors(1 << 17));
    let drives: Vec<HardDisk> = (0..3).map(|seed| HardDisk::new(&spec, seed)).collect();
    let world = World::new(&config, drives, HostCosts::default()).expect("a world");
    let mut world = world.with_queues(&Scheduler::Cfq.spec(1));
    world.submit_for(7, IoOp::Write, Sector(8), Sectors(8), false);
    let mut sent = 0;
    while world.next_answer().is_none() {
        assert!(world.step(), "it is answered");
        sent = sent.max(world.member_requests());
        assert_eq!(world.process, KERNEL, "after {sent} I/Os");
    }
    assert!(sent >= 3, "it reads before it writes: {sent}");
}
