//! Reads against closed forms.

use crate::harness::{Harness, NAMES, Read, figures};
use raidlab_core::units::{Nanos, Sectors};
use raidlab_random::SplitMix64;

const GAP: Nanos = Nanos(10_000);

/// The mean of the seek curve over pairs of random sectors, integrated over cylinders weighted by
/// the sectors they hold; written here from the definition of the curve, in floating point.
fn mean_seek(f: &raidlab_models::HardDiskFigures) -> f64 {
    let turn = 60e9 / f64::from(f.rpm);
    let heads = f64::from(f.heads);
    let per_cylinder = heads * turn
        + (heads - 1.0) * f.head_switch.0 as f64
        + f.track_to_track.0.max(f.head_switch.0) as f64;
    let rates: Vec<f64> = (0..f.zones)
        .map(|zone| {
            let (outer, inner) = (f.outer_rate as f64, f.inner_rate as f64);
            outer - (outer - inner) * f64::from(zone) / f64::from(f.zones - 1)
        })
        .collect();
    let average = rates.iter().sum::<f64>() / rates.len() as f64;
    let cylinders = f.capacity.0 as f64 * 512.0 / (average * per_cylinder / 1e9);
    let knee = cylinders / 3.0;
    let (shortest, mean, full) =
        (f.track_to_track.0 as f64, f.average_seek.0 as f64, f.full_stroke.0 as f64);
    let curve = |d: f64| {
        if d < 1.0 {
            0.0
        } else if d < knee {
            let b = (mean - shortest) / (knee.sqrt() - 1.0);
            shortest - b + b * d.sqrt()
        } else {
            mean + (full - mean) * (d - knee) / (cylinders - 1.0 - knee)
        }
    };
    let steps = 1_200;
    let weight = |step: usize| rates[step * rates.len() / steps] / average / steps as f64;
    let mut sum = 0.0;
    for from in 0..steps {
        for to in 0..steps {
            let distance = from.abs_diff(to) as f64 / steps as f64 * cylinders;
            sum += weight(from) * weight(to) * curve(distance);
        }
    }
    sum
}

#[test]
fn random_reads_take_overhead_seek_half_a_turn_and_transfer() {
    for name in NAMES {
        let f = figures(name);
        let mut harness = Harness::new(&f, 11);
        let mut random = SplitMix64::new(5);
        let count = 40_000;
        let mut total = 0;
        for _ in 0..count {
            total += harness.run(Read, random.below(f.capacity.0 / 8) * 8, 8, false).0;
            // Not in step with the platters.
            harness.pass(Nanos(random.below(3_000_000)));
        }
        let mean = total as f64 / f64::from(count);
        let bytes = 4_096.0;
        let rate = (f.outer_rate + f.inner_rate) as f64 / 2.0;
        let transfer = bytes / rate * 1e9 + bytes / f.link_rate as f64 * 1e9;
        let half_turn = 30e9 / f64::from(f.rpm);
        let expected = f.command_overhead.0 as f64 + mean_seek(&f) + half_turn + transfer;
        println!("{name}: {mean:.0} ns against {expected:.0} ns");
        assert!((mean / expected - 1.0).abs() < 0.01, "{name}: {mean} against {expected}");
    }
}

/// Bytes per second of sequential reads at depth 1.
fn sequential(name: &str, at: u64, block: u32, total: u64, gap: Nanos) -> f64 {
    let f = figures(name);
    let mut harness = Harness::new(&f, 3);
    harness.run(Read, at, block, false);
    let start = harness.now;
    let mut next = at + u64::from(block);
    while next < at + total {
        harness.pass(gap);
        harness.run(Read, next, block, false);
        next += u64::from(block);
    }
    let sectors = next - at - u64::from(block);
    sectors as f64 * 512.0 / harness.now.since(start).as_secs()
}

#[test]
fn sequential_reads_run_at_the_rates_of_the_file() {
    for name in NAMES {
        let f = figures(name);
        let total = f.outer_rate * 3 / 512;
        for (at, rate) in [(0, f.outer_rate), (f.capacity.0 - total * 2, f.inner_rate)] {
            for block in [256, 1_024, 2_048, 12_288] {
                let got = sequential(name, at, block, total, GAP);
                println!("{name} at {at}, {block} sectors: {:.1} MB/s", got / 1e6);
                let ratio = got / rate as f64;
                assert!((ratio - 1.0).abs() < 0.02, "{name} {at} {block}: {ratio}");
            }
        }
    }
}

#[test]
fn every_zone_has_its_rate() {
    let f = figures("pata-80gb-7200");
    let zones = u64::from(f.zones);
    for zone in 0..zones {
        let rate = f.outer_rate as f64
            - (f.outer_rate - f.inner_rate) as f64 * zone as f64 / (zones - 1) as f64;
        // Equal cylinders: the share of the capacity in front of a zone follows the rates.
        let sum = |upto: f64| {
            upto * (f.outer_rate as f64
                - (f.outer_rate - f.inner_rate) as f64 * (upto - 1.0) / 2.0 / (zones - 1) as f64)
        };
        let share = sum(zone as f64 + 0.5) / sum(zones as f64);
        let at = (f.capacity.0 as f64 * share) as u64;
        let got = sequential("pata-80gb-7200", at, 256, f.outer_rate * 2 / 512, GAP);
        assert!((got / rate - 1.0).abs() < 0.02, "zone {zone}: {got} against {rate}");
    }
}

#[test]
fn a_slow_reader_gets_its_own_pace_from_the_cache() {
    // 16 KiB every 2 ms asks for less than the medium gives: after the start all are hits.
    let f = figures("pata-80gb-7200");
    let mut harness = Harness::new(&f, 3);
    let hit = f.command_overhead.0 + (16_384.0 / f.link_rate as f64 * 1e9) as u64;
    let mut slow = 0;
    for block in 0..2_000 {
        let took = harness.run(Read, block * 32, 32, false).0;
        slow += u32::from(took > hit + 10);
        harness.pass(Nanos(2_000_000));
    }
    assert!(slow <= 3, "{slow} reads waited for the medium");
}

#[test]
fn small_reads_in_order_run_at_the_pace_of_the_electronics() {
    // 16 KiB without a pause ask for two thirds of what the medium gives.
    let f = figures("pata-80gb-7200");
    let mut harness = Harness::new(&f, 3);
    let hit = f.command_overhead.0 as f64 + 16_384.0 / f.link_rate as f64 * 1e9;
    for block in 0..4_000 {
        harness.run(Read, block * 32, 32, false);
    }
    let each = harness.now.0 as f64 / 4_000.0;
    println!("{each} for hits of {hit}");
    assert!(each < hit * 1.1, "{each} for hits of {hit}");
}

#[test]
fn a_far_read_does_not_wait_for_the_stream() {
    let mut f = figures("nas-8tb-7200");
    f.segment = Sectors(1 << 20);
    for seed in 0..20 {
        let mut harness = Harness::new(&f, seed);
        harness.run(Read, 0, 8, false);
        let took = harness.run(Read, 400_000, 8, false);
        assert!(took < Nanos::from_millis(12), "200 MB of streaming are 800 ms: {took:?}");
    }
}

#[test]
fn reading_ahead_moves_the_head() {
    let mut f = figures("nas-8tb-7200");
    (f.segment, f.track_to_track) = (Sectors(1 << 20), Nanos::from_millis(5));
    for seed in 0..20 {
        let mut harness = Harness::new(&f, seed);
        harness.run(Read, 8_000, 8, false);
        harness.pass(Nanos::from_millis(1_500));
        let back = harness.run(Read, 0, 8, false);
        assert!(back > Nanos::from_millis(5), "the head is cylinders away: {back:?}");
    }
}

#[test]
fn a_partial_hit_crosses_the_link_as_a_whole() {
    let f = figures("nas-8tb-7200");
    let len = 8 + f.segment.0 as u32;
    let link = f64::from(len) * 512e9 / f.link_rate as f64;
    let least = f.command_overhead.0 as f64 + link - 10.0;
    for seed in 0..40 {
        let mut harness = Harness::new(&f, seed);
        harness.run(Read, 0, 8, false);
        harness.pass(Nanos(50_000_000 + seed * 317_123));
        let took = harness.run(Read, 8, len, false).0 as f64;
        assert!(took >= least, "{took} is less than {least}");
    }
}

#[test]
fn a_hit_costs_overhead_and_link_and_a_repeated_miss_the_mechanism() {
    for name in NAMES {
        let f = figures(name);
        let mut harness = Harness::new(&f, 3);
        let hit = f.command_overhead.0 as f64 + 4_096.0 / f.link_rate as f64 * 1e9;
        let miss = harness.run(Read, 1_000_000, 8, false).0;
        assert!(miss as f64 > 2.0 * hit);
        let busy = harness.drive.busy();
        for _ in 0..2 {
            let again = harness.run(Read, 1_000_000, 8, false).0;
            assert!((again as f64 - hit).abs() < 10.0, "{name}: {again} against {hit}");
        }
        assert_eq!(harness.drive.busy(), busy, "a hit does not use the mechanism");
        // As many other places as there are segments: the first is replaced.
        for other in 1..=u64::from(f.read_segments) {
            harness.run(Read, 1_000_000 + other * 1_000_000, 8, false);
        }
        assert!(harness.run(Read, 1_000_000, 8, false).0 as f64 > 2.0 * hit);
        // Used again and again it stays.
        for other in 1..=3 * u64::from(f.read_segments) {
            harness.run(Read, 1_500_000 + other * 1_000_000, 8, false);
            assert!(harness.run(Read, 1_000_000, 8, false).0 as f64 <= hit + 10.0);
        }
    }
}

#[test]
fn skipping_reads_stay_in_step_with_the_stream() {
    // Read 512 KiB, skip 512 KiB: what a member of raid5 sees. Going past the gap costs no more than
    // streaming through it, so the rate is half of the medium's or better.
    let f = figures("nas-8tb-7200");
    let mut harness = Harness::new(&f, 3);
    harness.run(Read, 0, 1_024, false);
    let start = harness.now;
    for block in 1..600 {
        harness.pass(GAP);
        harness.run(Read, block * 2_048, 1_024, false);
    }
    let rate = 599.0 * 524_288.0 / harness.now.since(start).as_secs();
    assert!(rate > 0.49 * f.outer_rate as f64, "{rate}");
}

#[test]
fn busy_is_the_time_for_commands() {
    for name in NAMES {
        let f = figures(name);
        // Sequential: the medium is the bottleneck all the time.
        let mut harness = Harness::new(&f, 3);
        for block in 0..1_000 {
            harness.run(Read, block * 256, 256, false);
        }
        let share =
            harness.drive.busy().as_secs() / harness.now.since(raidlab_core::Time::ZERO).as_secs();
        assert!((0.97..=1.0).contains(&share), "{name}: {share}");
        // A rare read: reading ahead is no work anybody asked for.
        let mut harness = Harness::new(&f, 3);
        harness.run(Read, 5_000_000, 8, false);
        harness.pass(Nanos::from_millis(1_000));
        assert!(harness.drive.busy() < Nanos::from_millis(45), "{name}");
    }
}

/// Data that were read ahead count as work once they are asked for, though another command ended the stream before.
#[test]
fn hits_in_what_was_read_ahead_count_as_work_once() {
    for (name, resumes) in
        [(NAMES[0], false), (NAMES[0], true), (NAMES[1], false), (NAMES[1], true)]
    {
        let mut f = figures(name);
        f.cache.resumes_on_hit = resumes;
        let sectors = f.segment.0 as u32 / 8 * 8;
        let worked = |breaks_off: bool| {
            let mut harness = Harness::new(&f, 3);
            harness.run(Read, 0, 8, false);
            harness.pass(Nanos::from_millis(100));
            if breaks_off {
                harness.run(Read, f.capacity.0 / 2, 8, false);
            }
            let mut each = Vec::new();
            for _ in 0..2 {
                let busy = harness.drive.busy();
                for at in (8..sectors - 64).step_by(8) {
                    harness.run(Read, at.into(), 8, false);
                }
                each.push(harness.drive.busy().0 - busy.0);
            }
            each
        };
        let (kept, broken) = (worked(false), worked(true));
        let medium = (f64::from(sectors - 72) * 512.0 / f.outer_rate as f64 * 1e9) as u64;
        assert!(broken[0] > medium * 8 / 10 && broken[0] < medium * 12 / 10, "{name}: {broken:?}");
        assert!(broken[0].abs_diff(kept[0]) < medium / 10, "{name}: {broken:?}, {kept:?}");
        // Where reading ahead goes on, what was read first has made room.
        assert!(resumes || broken[1] == 0, "{name}: no second time, {broken:?}");
    }
}
