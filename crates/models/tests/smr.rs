//! Shingled disks: bursts into the media cache, cleaning, streams, against closed forms.

use crate::harness::{Flush, Harness, Read, Write, figures as disk};
use raidlab_core::units::{Nanos, Sectors, Time};
use raidlab_models::{Drive, HardDiskFigures, Smr, SmrFigures, SmrSpec};
use raidlab_random::SplitMix64;

const MIB: u64 = 2_048;

fn figures() -> SmrFigures {
    SmrFigures {
        disk: disk("nas-8tb-7200"),
        media_cache: Sectors(2_048 * MIB),
        media_cache_extents: 4_000,
        zone: Sectors(32 * MIB),
        clean_after: Nanos::from_millis(1_000),
    }
}

fn harness(f: &SmrFigures) -> Harness {
    Harness::of(Smr::new(&SmrSpec::new(f.clone()).unwrap(), 1))
}

fn cleaned(harness: &Harness) -> u64 {
    let Drive::Smr(drive) = &harness.drive else { panic!() };
    drive.cleaned()
}

#[test]
fn random_writes_run_at_sequential_speed_until_the_cache_is_full() {
    let f = figures();
    let mut harness = harness(&f);
    let capacity = f.capacity().0;
    let mut random = SplitMix64::new(1);
    let mut write = |harness: &mut Harness, count: usize| {
        harness.load(4, count, |_| (Write, random.below(capacity / 8) * 8, 8)).as_secs()
            / count as f64
    };
    let burst = write(&mut harness, 3_900);
    println!("burst: {:.0} a second", 1.0 / burst);
    assert!(burst < 0.3e-3, "{burst} s each");
    assert_eq!(cleaned(&harness), 0);
    write(&mut harness, 300);
    // Zones are many and writes few: each write costs a zone, read and written, and what it waits for.
    let (before, count) = (cleaned(&harness), 60);
    let each = write(&mut harness, count);
    let zones = (cleaned(&harness) - before) as f64 / count as f64;
    println!("full: {each:.3} s each, {zones:.2} zones each");
    assert!((0.9..1.1).contains(&zones), "{zones}");
    // Rates lie between the inner and the outer one; three seeks and the flush come on top.
    let bytes = 2.0 * f.zone.bytes() as f64;
    let (fast, slow) = (bytes / f.disk.outer_rate as f64, bytes / f.disk.inner_rate as f64);
    assert!((fast..slow + 0.12).contains(&each), "{each}");
}

#[test]
fn rest_cleans_until_the_cache_is_empty() {
    let f = figures();
    let mut harness = harness(&f);
    let zones = 20;
    for zone in 0..zones {
        harness.run(Write, zone * 7 * f.zone.0 + 4_000, 64, false);
    }
    harness.pass(Nanos::from_millis(900));
    assert_eq!(cleaned(&harness), 0, "not yet");
    let start = harness.now;
    harness.settle();
    assert_eq!(cleaned(&harness), zones);
    let each = harness.now.since(start).as_secs() / zones as f64;
    let least = 2.0 * f.zone.bytes() as f64 / f.disk.outer_rate as f64;
    assert!((least..least + 0.1).contains(&each), "{each} s a zone, by the medium {least}");
    // Clean: reads find everything at home, in one piece.
    assert!(harness.run(Read, 4_000, 64, false) < Nanos::from_millis(45));
}

#[test]
fn streams_go_to_their_zones_at_the_rate_of_the_medium() {
    let f = figures();
    let mut harness = harness(&f);
    let total = 1_024 * MIB;
    for at in (0..total).step_by(1_024) {
        harness.run(Write, at, 1_024, false);
    }
    harness.run(Flush, 0, 0, false);
    let rate = total as f64 * 512.0 / harness.now.since(Time::ZERO).as_secs();
    let ratio = rate / f.disk.outer_rate as f64;
    println!("stream: {:.1} MB/s", rate / 1e6);
    assert!((0.95..1.01).contains(&ratio), "{ratio}");
    // Only the first zone went through the cache.
    harness.settle();
    assert_eq!(cleaned(&harness), 1);
}

#[test]
fn a_stream_that_ends_inside_a_zone_costs_the_rest_of_it() {
    let f = figures();
    let mut harness = harness(&f);
    for at in (0..48 * MIB).step_by(1_024) {
        harness.run(Write, at, 1_024, false);
    }
    harness.settle();
    // The first zone from the cache, half of the second torn.
    assert_eq!(cleaned(&harness), 2);
    let mut whole = self::harness(&f);
    for at in (0..64 * MIB).step_by(1_024) {
        whole.run(Write, at, 1_024, false);
    }
    whole.settle();
    assert_eq!(cleaned(&whole), 1);
}

#[test]
fn what_was_written_is_read_from_where_it_lies() {
    let f = figures();
    // A read across cached and other sectors goes to both: two seeks over the whole drive.
    let far = f.capacity().0 - 10_000;
    let mut harness = harness(&f);
    let plain: u64 = (0..20).map(|n| harness.run(Read, far + n * 8, 8, false).0).sum();
    let mut split = self::harness(&f);
    split.run(Write, far + 4, 4, false);
    split.run(Flush, 0, 0, false);
    let took = split.run(Read, far, 64, false);
    assert!(took.0 > plain, "{took:?} against {plain}");
    assert!(took > Nanos::from_millis(20), "two long seeks: {took:?}");
}

#[test]
fn every_command_ends_once() {
    let mut f = figures();
    f.disk = HardDiskFigures { zones: 8, ..disk("pata-80gb-7200") };
    f.disk.capacity = Sectors(400_000);
    f.disk.segment = Sectors(128);
    f.zone = Sectors(2_048);
    f.media_cache = Sectors(9_000);
    f.media_cache_extents = 12;
    f.clean_after = Nanos::from_millis(20);
    let spec = SmrSpec::new(f.clone()).unwrap();
    let trace = |seed| {
        let mut random = SplitMix64::new(seed);
        let mut harness = Harness::of(Smr::new(&spec, seed));
        let mut at = 0;
        for _ in 0..400 {
            if random.below(3) > 0 {
                at = random.below(f.capacity().0 + 20);
            }
            let longest = if random.below(30) == 0 { 12_000 } else { 900 };
            let len = 1 + random.below(longest) as u32;
            match random.below(10) {
                0 => harness.submit(Flush, 0, 0, false),
                1..=3 => harness.submit(Read, at, len, false),
                _ => harness.submit(Write, at, len, random.below(5) == 0),
            };
            at += u64::from(len);
            match random.below(4) {
                0 => harness.pass(Nanos(random.below(60_000_000))),
                1 => drop(harness.wake()),
                _ => {}
            }
        }
        harness.settle();
        harness
    };
    for seed in 0..60 {
        let harness = trace(seed);
        let mut ids: Vec<_> = harness.done.iter().map(|done| done.id).collect();
        ids.sort_unstable();
        assert!(ids.into_iter().eq(0..400), "seed {seed}: {}", harness.done.len());
        assert!(harness.drive.busy() <= harness.now.since(Time::ZERO), "seed {seed}");
        assert_eq!(harness.done, trace(seed).done);
    }
}
