//! What holds for any sequence of commands.

use std::collections::BTreeMap;

use crate::harness::{Done, Flush, Harness, NAMES, Read, Write, figures};
use raidlab_core::contract::IoOutcome;
use raidlab_core::units::{Nanos, Sector, Sectors};
use raidlab_models::{Delivered, HardDiskFigures, ReadAhead, Trigger, ZoneRow};
use raidlab_random::SplitMix64;

/// A drive so small that random commands meet each other, the cache and the end of the drive.
fn tiny() -> HardDiskFigures {
    let mut f = figures("pata-80gb-7200");
    f.capacity = Sectors(200_000);
    f.segment = Sectors(128);
    f.read_segments = 3;
    f.zones = 8;
    f.write_buffer = Sectors(512);
    f.write_extents = 6;
    f
}

/// Random commands at random times and depths; gives the completions in order.
fn trace(f: &HardDiskFigures, seed: u64, commands: u32) -> (Vec<Done>, Harness) {
    let mut harness = Harness::new(f, seed);
    let mut random = SplitMix64::new(seed);
    let mut at = 0;
    for _ in 0..commands {
        let longest = if random.below(8) == 0 { 3_000 } else { 64 };
        let len = 1 + random.below(longest) as u32;
        if random.below(3) > 0 {
            at = random.below(f.capacity.0 + 40);
        }
        let fua = random.below(6) == 0;
        match random.below(20) {
            0 => harness.submit(Flush, 0, 0, false),
            1..=9 => harness.submit(Read, at, len, fua),
            10..=18 => harness.submit(Write, at, len, fua),
            _ => harness.submit(Read, at, 0, false),
        };
        at += u64::from(len);
        match random.below(4) {
            0 => harness.pass(Nanos(random.below(60_000_000))),
            1 => harness.pass(Nanos(random.below(300_000))),
            2 => drop(harness.wake()),
            _ => {}
        }
    }
    harness.settle();
    (harness.done.clone(), harness)
}

#[test]
fn every_command_completes_exactly_once_and_in_order() {
    let mut through = tiny();
    through.write_cache = false;
    let mut one = tiny();
    (one.write_extents, one.write_buffer, one.read_segments) = (1, Sectors(64), 1);
    (one.heads, one.zones, one.segment) = (1, 1, Sectors(8));
    for f in [tiny(), through, one, figures("nas-8tb-7200")] {
        for seed in 0..150 {
            let (done, mut harness) = trace(&f, seed, 400);
            let ids: Vec<_> = done.iter().map(|one| one.id).collect();
            assert_eq!(ids, (0..400).collect::<Vec<_>>(), "seed {seed}");
            assert!(done.is_sorted_by_key(|one| one.at));
            assert_eq!(
                harness.run(Flush, 0, 0, false),
                f.command_overhead,
                "seed {seed}: clean at rest"
            );
            let all = harness.now.since(Default::default());
            assert!(
                harness.drive.busy() <= all,
                "seed {seed}: {:?} of {all:?}",
                harness.drive.busy()
            );
        }
    }
}

/// A drive with a firmware, zones and a queue drawn at random.
fn drawn(seed: u64) -> HardDiskFigures {
    let mut random = SplitMix64::new(seed ^ 0x5eed);
    let mut f = tiny();
    let mut below = |end| random.below(end);
    f.cache.read_ahead = [
        ReadAhead::None,
        ReadAhead::Track,
        ReadAhead::Cylinder,
        ReadAhead::Segment,
        ReadAhead::Stream,
    ][below(5) as usize];
    f.cache.trigger = [Trigger::EveryRead, Trigger::Continued][below(2) as usize];
    f.cache.delivered =
        [Delivered::Kept, Delivered::Overwritten, Delivered::GivenUp][below(3) as usize];
    f.cache.most_ahead = Sectors(below(400));
    f.cache.hold = Sectors(below(2) * below(900));
    f.cache.resumes_on_hit = below(2) == 0;
    f.cache.whole_track = below(2) == 0;
    f.cache.written_ranges = below(3) as u32;
    (f.cache.read_overlap, f.cache.write_overlap) = (below(2) == 0, below(2) == 0);
    f.write_cache = below(4) != 0;
    f.cache.immediate_report = f.write_cache && below(2) == 0;
    f.segment = Sectors(8 + below(900));
    f.read_segments = 1 + below(4) as u32;
    f.link_rate = 2_000_000 + below(100) * 1_000_000;
    f.queue_depth = 1 + below(40) as u32;
    f.queue_choice = 1 + below(40) as u32;
    f.queue_age_limit = Nanos(below(3) * 50_000_000);
    if below(2) == 0 {
        let zone = |first, last, sectors| ZoneRow {
            first,
            last,
            sectors,
            track_skew: sectors / 6,
            cylinder_skew: sectors / 3,
        };
        f.zone_table = vec![zone(0, 99, 300), zone(101, 199, 220)];
        f.capacity = Sectors(100 * 300 * 4 + 99 * 220 * 4 - below(20_000));
        f.seek_points = vec![(1, Nanos(900_000)), (20, Nanos(700_000)), (190, Nanos(9_000_000))];
    }
    f
}

#[test]
fn whatever_the_firmware_every_command_completes_once_and_the_drive_comes_to_rest() {
    for seed in 0..1_500 {
        let f = drawn(seed);
        let (done, mut harness) = trace(&f, seed, 200);
        let mut ids: Vec<_> = done.iter().map(|one| one.id).collect();
        ids.sort_unstable();
        assert_eq!(ids, (0..200).collect::<Vec<_>>(), "seed {seed}: {f:?}");
        assert!(done.is_sorted_by_key(|one| one.at));
        assert_eq!(
            harness.run(Flush, 0, 0, false),
            f.command_overhead,
            "seed {seed}: clean at rest"
        );
        let all = harness.now.since(Default::default());
        assert!(harness.drive.busy() <= all, "seed {seed}: {:?} of {all:?}", harness.drive.busy());
    }
}

#[test]
fn same_seed_same_trace() {
    for name in NAMES {
        let f = figures(name);
        let (one, other) = (trace(&f, 5, 3_000).0, trace(&f, 5, 3_000).0);
        assert_eq!(one, other);
        let mut harness = Harness::new(&f, 6);
        let mut same = Harness::new(&f, 7);
        let differs = (0..20).any(|block| {
            harness.run(Read, block * 999_999, 8, false)
                != same.run(Read, block * 999_999, 8, false)
        });
        assert!(differs, "the seed gives the angle of the platters");
    }
}

/// Times must not depend on needless wakes, nor on when outputs are drained.
#[test]
fn extra_wakes_change_nothing() {
    let f = tiny();
    let mut plain = Harness::new(&f, 1);
    let mut woken = Harness::new(&f, 1);
    let mut random = SplitMix64::new(3);
    for _ in 0..2_000 {
        let (at, len) = (random.below(199_000), 1 + random.below(300) as u32);
        let op = if random.below(2) == 0 { Read } else { Write };
        let gap = Nanos(random.below(20_000_000));
        plain.submit(op, at, len, false);
        woken.submit(op, at, len, false);
        plain.pass(gap);
        for _ in 0..8 {
            woken.pass(Nanos(gap.0 / 8));
            woken.drive.handle(woken.now, raidlab_models::DriveInput::Wake);
        }
        woken.pass(Nanos(gap.0 % 8));
    }
    plain.settle();
    woken.settle();
    assert_eq!(plain.done, woken.done);
}

#[test]
fn ranges_beyond_the_end_are_media_errors() {
    let f = figures("pata-80gb-7200");
    let end = f.capacity.0;
    for (at, len, first_bad) in [
        (end, 1, end),
        (end - 4, 8, end),
        (end + 100, 8, end + 100),
        (u64::MAX, u32::MAX, u64::MAX),
    ] {
        for op in [Read, Write] {
            let mut harness = Harness::new(&f, 1);
            harness.submit(op, at, len, false);
            harness.settle();
            let outcome = IoOutcome::MediaError { first_bad: Sector(first_bad) };
            assert_eq!(harness.done.len(), 1);
            assert_eq!(harness.done[0].outcome, outcome);
            assert_eq!(harness.done[0].at.0, f.command_overhead.0);
        }
    }
    let mut harness = Harness::new(&f, 1);
    harness.run(Read, end - 8, 8, false);
    harness.run(Write, end - 8, 8, true);
    harness.run(Read, 0, u32::try_from(end).unwrap(), false);
}

/// The latency of every command of a batch at depth n, drained in FIFO order, sums up the same
/// whether the queue was in the drive or with the caller.
#[test]
fn the_queue_changes_no_service_time() {
    let f = figures("nas-8tb-7200");
    let places: Vec<u64> = {
        let mut random = SplitMix64::new(12);
        (0..300).map(|_| random.below(f.capacity.0 / 8) * 8).collect()
    };
    let mut queued = Harness::new(&f, 1);
    for at in &places {
        queued.submit(Read, *at, 8, false);
    }
    queued.settle();
    let mut single = Harness::new(&f, 1);
    for at in &places {
        single.run(Read, *at, 8, false);
    }
    let ends: BTreeMap<u32, _> = single.done.iter().map(|done| (done.id, done.at)).collect();
    assert!(queued.done.iter().all(|done| ends[&done.id] == done.at));
}
