//! What records, timers and spare drives cost in worlds.

use raidlab_core::contract::{Event, IoOp, Outcome, Pacing, Work};
use raidlab_core::{Config, Consistency, Layout, Level, MemberIndex, Nanos, Sector, Sectors, Time};
use raidlab_models::{DriveKind, HardDisk, load};
use raidlab_sim::{Answer, HostCosts, SimErrorKind, World};

/// 64 MiB of each member.
const MEMBER: Sectors = Sectors(1 << 17);

fn drive(seed: u64) -> HardDisk {
    let DriveKind::HardDisk(spec) = load("nas-8tb-7200").expect("built in").kind else {
        panic!("it is a hard disk");
    };
    HardDisk::new(&spec, seed)
}

fn config(level: Level, members: u16, consistency: Consistency) -> Config {
    let layout = Layout::new(level, members);
    let layout = if level.has_chunks() { layout.with_chunk(Sectors(128)) } else { layout };
    let mut config = Config::uniform(layout, MEMBER);
    config.settings.consistency = consistency;
    config
}

fn world(config: &Config) -> World {
    let journal = matches!(config.settings.consistency, Consistency::Journal { .. });
    let count = config.members.len() as u64 + u64::from(journal);
    let drives = (0..count).map(drive).collect();
    World::new(config, drives, HostCosts::default()).expect("a world")
}

fn one(world: &mut World, op: IoOp, at: u64, len: u64) -> (Answer, Nanos) {
    let began = world.now();
    world.submit(op, Sector(at), Sectors(len), false);
    loop {
        if let Some(answer) = world.next_answer() {
            assert_eq!(answer.outcome, Outcome::Done);
            return (answer, answer.at.since(began));
        }
        assert!(world.step(), "a request is always answered");
    }
}

/// Lets a world go on until it tells this.
fn until(world: &mut World, wanted: impl Fn(&Event) -> bool) -> Time {
    loop {
        if let Some(at) = world.events().iter().position(&wanted) {
            return world.event_times()[at];
        }
        assert!(world.step(), "it happens: {:?}", world.events());
    }
}

#[test]
fn a_bit_of_the_bitmap_is_recorded_before_the_write_and_costs_what_it_costs() {
    let bitmap = Consistency::Bitmap { chunk: Sectors(2048) };
    let mut plain = world(&config(Level::Raid1, 2, Consistency::None));
    let mut world = world(&config(Level::Raid1, 2, bitmap));
    let write = IoOp::Write;
    let (_, bare) = one(&mut plain, write, 0, 8);
    let (_, first) = one(&mut world, write, 0, 8);
    let (_, second) = one(&mut world, write, 64, 8);
    // A record is durable before its write goes out: the platter has to turn.
    assert!(first > bare + Nanos::from_millis(2), "{first:?} {bare:?}");
    assert!(second < first, "the bit is set already: {second:?} {first:?}");
    let (_, other) = one(&mut world, write, 4096, 8);
    assert!(other > second, "another bit: {other:?} {second:?}");
}

#[test]
fn logs_and_journals_cost_writes() {
    for (level, consistency) in [
        (Level::Raid5, Consistency::PartialParity { slots: 32 }),
        (Level::Raid5, Consistency::Journal { sectors: Sectors(1 << 15) }),
        (Level::Raid6, Consistency::Journal { sectors: Sectors(1 << 15) }),
    ] {
        let mut plain = world(&config(level, 4, Consistency::Resync));
        let mut logged = world(&config(level, 4, consistency));
        let write = |world: &mut World| -> u64 {
            (0..40).map(|n| one(world, IoOp::Write, 1024 * n, 8).1.0).sum()
        };
        let (bare, with) = (write(&mut plain), write(&mut logged));
        assert!(with > bare, "{level} {consistency:?}: {with} ns, {bare} ns without");
        assert!(logged.member_requests() > plain.member_requests());
    }
}

#[test]
fn a_rebuild_takes_the_time_that_its_pace_allows() {
    for (level, members) in [
        (Level::Raid1, 2),
        (Level::Raid4, 3),
        (Level::Raid5, 4),
        (Level::Raid6, 4),
        (Level::Raid10, 4),
    ] {
        let lost = MemberIndex(1);
        for (most, least_s, most_s) in [(u64::MAX, 0.2, 1.5), (32 << 20, 1.9, 2.4)] {
            let mut config = config(level, members, Consistency::Resync);
            config.settings.pacing = Pacing::between(1, most);
            let mut world = world(&config);
            one(&mut world, IoOp::Write, 0, 1024);
            world.fail(lost);
            let began = world.now();
            world.add(lost, drive(99)).expect("a fresh drive");
            let ended = until(&mut world, |event| {
                matches!(event, Event::Finished { work: Work::Rebuild(_), .. })
            });
            let took = ended.since(began).as_secs();
            assert!((least_s..most_s).contains(&took), "{level}, at most {most} B/s: {took} s");
            until(&mut world, |event| *event == Event::Restored(lost));
            assert!(!world.array().is_failed(lost));
            world.fail(MemberIndex(0));
            one(&mut world, IoOp::Read, 0, 2048);
        }
    }
}

#[test]
fn a_drive_that_does_not_suit_changes_nothing() {
    let mut world = world(&config(Level::Raid5, 4, Consistency::Resync));
    let kind = |error: raidlab_sim::SimError| error.kind();
    for member in [0, 9] {
        let refused = world.add(MemberIndex(member), drive(7)).map_err(kind);
        assert_eq!(refused, Err(SimErrorKind::Drives), "member {member}");
    }
    one(&mut world, IoOp::Write, 0, 8);
    let journal = config(Level::Raid5, 4, Consistency::Journal { sectors: Sectors(1 << 15) });
    let drives = (0..4).map(drive).collect();
    let error = World::new(&journal, drives, HostCosts::default()).map_err(kind);
    assert_eq!(error.err(), Some(SimErrorKind::Drives), "no log device");
    // A spare stands by for every member, the largest too.
    let mut unequal = config(Level::Linear, 2, Consistency::None);
    unequal.members[1].sectors = Sectors(4 << 31);
    let mut world =
        World::new(&unequal, (0..2).map(drive).collect(), HostCosts::default()).expect("a world");
    let small = load("ssd-sata-1tb").expect("built in").kind;
    let refused = world.add_spare(raidlab_models::Drive::new(&small, 1)).map_err(kind);
    assert_eq!(refused, Err(SimErrorKind::Drives), "1 TB for a member of 4 TiB");
    world.add_spare(drive(8)).expect("8 TB");
}

/// Equal seeds, equal times, with timers, records and a rebuild under load.
#[test]
fn states_are_repeatable() {
    let run = || {
        let bitmap = Consistency::Bitmap { chunk: Sectors(2048) };
        let mut world = world(&config(Level::Raid5, 4, bitmap));
        world.fail(MemberIndex(2));
        world.add(MemberIndex(2), drive(5)).expect("a fresh drive");
        let times = (0..40).map(|n| one(&mut world, IoOp::Write, n * 4056 % 90_000, 8).0.at);
        let times: Vec<Time> = times.collect();
        (times, world.member_requests(), world.events().len())
    };
    assert_eq!(run(), run());
}

#[test]
fn drives_and_arrays_of_nested_levels_are_rebuilt() {
    for (name, lost, of) in [
        // A drive from its array, and a whole array, whose drives are two, from the other one.
        ("raid5+0(2x3) chunk=64K", 4, MEMBER.0),
        ("raid0+1(2x2) chunk=64K", 3, 2 * MEMBER.0),
    ] {
        let mut config = Config::uniform(name.parse().expect("is a layout"), MEMBER);
        config.settings.pacing = Pacing::between(u64::MAX, u64::MAX);
        let mut world = world(&config);
        let drive_of = MemberIndex(lost);
        assert_eq!(world.submit(IoOp::Write, Sector(0), Sectors(2048), false).0, 0);
        while world.next_answer().is_none() {
            assert!(world.step(), "it is answered");
        }
        world.fail(drive_of);
        assert_eq!(
            world.array().status().failed[0].count_ones(),
            if of > MEMBER.0 { 2 } else { 1 }
        );
        world.add(drive_of, drive(9)).expect("a fresh drive");
        let status = world.array().status().work.expect("it is rebuilt");
        assert_eq!(status.of.0, of, "{name}");
        until(&mut world, |event| *event == Event::Restored(drive_of));
        assert_eq!(world.array().status().failed, [0; 2], "{name}");
        // At least the time that a drive takes to be written.
        assert!(
            world.now().since(Time::ZERO) > Nanos::from_millis(200),
            "{name}: {:?}",
            world.now()
        );
    }
}

/// A world of nested levels with data, spares and drives that fail, until all is as before.
fn with_spares(name: &str, spares: u64, lost: &[u16]) -> World {
    let mut config = Config::uniform(name.parse().expect("is a layout"), MEMBER);
    config.settings.pacing = Pacing::between(u64::MAX, u64::MAX);
    let mut world = world(&config);
    for spare in 0..spares {
        world.add_spare(drive(100 + spare)).expect("it is large enough");
    }
    one(&mut world, IoOp::Write, 0, 2048);
    lost.iter().for_each(|member| world.fail(MemberIndex(*member)));
    world
}

#[test]
fn a_hot_spare_takes_the_place_of_the_first_that_fails() {
    for name in ["raid5(4) chunk=64K", "raid1(2)", "raid10(4) chunk=64K"] {
        let mut world = with_spares(name, 2, &[1]);
        assert_eq!(world.spares(), 1, "{name}: at once");
        until(&mut world, |event| *event == Event::Restored(MemberIndex(1)));
        assert_eq!(world.array().status().failed, [0; 2], "{name}");
        world.fail(MemberIndex(0));
        until(&mut world, |event| *event == Event::Restored(MemberIndex(0)));
        assert_eq!(world.spares(), 0, "{name}");
        one(&mut world, IoOp::Read, 0, 2048);
    }
    // Without redundancy there is nothing to rebuild from, and none is used up.
    assert_eq!(with_spares("raid0(2) chunk=64K", 1, &[1]).spares(), 1);
    let mut small = with_spares("raid5(4) chunk=64K", 0, &[2]);
    assert_eq!(small.add_spare(drive(3)).map_err(|error| error.kind()), Ok(()));
    assert_eq!(small.spares(), 0, "one that comes later is for who failed before");
    until(&mut small, |event| *event == Event::Restored(MemberIndex(2)));
}

/// A spare is refused while I/O of its place is under way, which nobody asked for and nobody is told.
#[test]
fn a_spare_that_waits_for_io_leaves_every_event_its_time() {
    let mut world = with_spares("raid5(4) chunk=64K", 1, &[]);
    world.submit(IoOp::Write, Sector(0), Sectors(2048), false);
    assert!(world.step());
    world.fail(MemberIndex(1));
    assert_eq!(world.spares(), 1, "it is refused as yet");
    assert_eq!(world.events().len(), world.event_times().len());
    let restored = until(&mut world, |event| *event == Event::Restored(MemberIndex(1)));
    assert_eq!(restored, world.now());
    assert_eq!(world.events().len(), world.event_times().len());
    let refused = |event: &Event| matches!(event, Event::Refused(_));
    assert!(!world.events().iter().any(refused), "{:?}", world.events());
}

#[test]
fn arrays_of_nested_levels_share_their_hot_spares() {
    for (name, lost) in [
        ("raid5+0(2x3) chunk=64K", &[1, 4][..]),
        ("raid1+0(2x2) chunk=64K", &[3, 0]),
        // Both drives of a mirror: its array is made anew, and rebuilt from the other one.
        ("raid1+5(3x2) chunk=64K", &[2, 3]),
        ("raid0+1(2x2) chunk=64K", &[3]),
    ] {
        let mut world = with_spares(name, lost.len() as u64, lost);
        let is_done = |world: &World| {
            let status = world.array().status();
            status.failed == [0; 2] && status.work.is_none() && world.spares() == 0
        };
        while !is_done(&world) {
            assert!(world.step(), "{name}: {:?}", world.events());
        }
        let last = MemberIndex(lost[lost.len() - 1]);
        assert!(world.events().contains(&Event::Restored(last)), "{name}: {:?}", world.events());
        let refused = |event: &Event| matches!(event, Event::Refused(_));
        assert!(!world.events().iter().any(refused), "{name}: nobody asked for what is tried");
        assert_eq!((world.spares(), world.array().status().failed), (0, [0; 2]), "{name}");
        one(&mut world, IoOp::Read, 0, 2048);
    }
    let one_of_two = with_spares("raid5+0(2x3) chunk=64K", 1, &[1, 4]);
    assert!(one_of_two.array().is_failed(MemberIndex(4)), "nobody stands by for it");
}
