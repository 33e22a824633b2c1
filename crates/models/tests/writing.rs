//! Writes, the write buffer, flushes, against closed forms.

use crate::harness::{Flush, Harness, NAMES, Read, Write, figures, queueing_figures};
use raidlab_core::units::{Nanos, Sectors};
use raidlab_models::HardDiskFigures;
use raidlab_random::SplitMix64;

fn turn(f: &HardDiskFigures) -> u64 {
    60_000_000_000 / u64::from(f.rpm)
}

fn acknowledged(f: &HardDiskFigures, sectors: u32) -> f64 {
    f.command_overhead.0 as f64 + f64::from(sectors) * 512e9 / f.link_rate as f64
}

#[test]
fn writing_a_just_read_sector_costs_a_turn() {
    for name in NAMES {
        let mut f = figures(name);
        f.write_cache = false;
        let mut random = SplitMix64::new(9);
        for seed in 0..50 {
            let mut harness = Harness::new(&f, seed);
            let at = random.below(f.capacity.0 / 8) * 8;
            harness.run(Read, at, 8, false);
            // The data of the read crossed the link after they had passed under the head.
            let passed = harness.now.0 as f64 - 8.0 * 512e9 / f.link_rate as f64;
            harness.run(Write, at, 8, false);
            let between = harness.now.0 as f64 - passed;
            assert!((between - turn(&f) as f64).abs() < 20.0, "{name} {at}: {between}");
        }
    }
}

#[test]
fn write_through_in_order_loses_a_turn_each() {
    let mut f = figures("pata-80gb-7200");
    f.write_cache = false;
    let mut harness = Harness::new(&f, 3);
    harness.run(Write, 0, 8, false);
    for block in 1..40 {
        let took = harness.run(Write, block * 8, 8, false).0 as f64;
        let transfer = 4_096.0 / f.outer_rate as f64 * 1e9;
        assert!((took - turn(&f) as f64).abs() < transfer, "{took}");
    }
}

#[test]
fn buffered_writes_complete_when_across_the_link() {
    for name in NAMES {
        let f = figures(name);
        let mut harness = Harness::new(&f, 3);
        let mut random = SplitMix64::new(1);
        for len in [1, 8, 256, 1_024] {
            let at = random.below(f.capacity.0 - 2_000);
            let took = harness.run(Write, at, len, false).0 as f64;
            let expected = acknowledged(&f, len);
            assert!((took - expected).abs() < 10.0, "{name} {len}: {took} against {expected}");
            // Dirty data answer reads.
            let took = harness.run(Read, at, len, false).0 as f64;
            assert!((took - expected).abs() < 10.0, "{name} {len}: {took} against {expected}");
        }
    }
}

#[test]
fn forced_unit_access_and_write_through_wait_for_the_medium() {
    let f = figures("nas-8tb-7200");
    let mut through = f.clone();
    through.write_cache = false;
    let mut random = SplitMix64::new(4);
    let (mut one, mut other) = (Harness::new(&f, 3), Harness::new(&through, 3));
    let mut total = 0;
    for _ in 0..2_000 {
        let at = random.below(f.capacity.0 / 8) * 8;
        let took = one.run(Write, at, 8, true);
        assert_eq!(took, other.run(Write, at, 8, false));
        total += took.0;
    }
    let mean = total / 2_000;
    let least = f.average_seek.0 + f.write_settle.0 + turn(&f) / 2 - 1_000_000;
    assert!((least..least + 2_000_000).contains(&mean), "{mean}");
}

#[test]
fn sequential_writes_run_at_the_media_rate() {
    for name in NAMES {
        let f = figures(name);
        let total = f.outer_rate * 4 / 512;
        for (at, rate) in [(0, f.outer_rate), (f.capacity.0 - total * 2, f.inner_rate)] {
            for block in [8, 256, 1_024, 12_288] {
                if block == 8 && acknowledged(&f, 8) > 4_096e9 / rate as f64 {
                    continue; // The electronics are slower than the medium.
                }
                let mut harness = Harness::new(&f, 3);
                let mut next = at;
                while next < at + total {
                    harness.run(Write, next, block, false);
                    harness.pass(Nanos(10_000));
                    next += u64::from(block);
                }
                harness.run(Flush, 0, 0, false);
                let got =
                    (next - at) as f64 * 512.0 / harness.now.since(Default::default()).as_secs();
                let ratio = got / rate as f64;
                println!("{name} at {at}, {block} sectors: {:.1} MB/s", got / 1e6);
                assert!((0.97..1.01).contains(&ratio), "{name} {at} {block}: {ratio}");
            }
        }
    }
}

#[test]
fn a_full_buffer_throttles_to_the_medium() {
    let f = figures("nas-8tb-7200");
    let mut harness = Harness::new(&f, 3);
    let mut late = 0;
    for block in 0..2_000 {
        let took = harness.run(Write, block * 1_024, 1_024, false).0;
        if block >= 1_000 {
            late += took;
        }
    }
    // One by one they vary: room comes a track at a time.
    let each = late as f64 / 1_000.0;
    let medium = 524_288e9 / f.outer_rate as f64;
    assert!(acknowledged(&f, 1_024) < 0.6 * medium);
    assert!((each / medium - 1.0).abs() < 0.01, "{each} against {medium}");
    let rate = 2_000.0 * 524_288.0 / harness.now.since(Default::default()).as_secs();
    let ahead = f.write_buffer.bytes() as f64 / (2_000.0 * 524_288.0);
    assert!(rate < f.outer_rate as f64 * (1.02 + ahead), "{rate}");
}

#[test]
fn a_flush_waits_for_destaging_and_no_longer() {
    for name in NAMES {
        let f = figures(name);
        let mut harness = Harness::new(&f, 3);
        let clean = harness.run(Flush, 0, 0, false);
        assert_eq!(clean, f.command_overhead);
        let mut random = SplitMix64::new(6);
        let count = 40;
        for _ in 0..count {
            harness.run(Write, random.below(f.capacity.0 / 8) * 8, 8, false);
        }
        let before = harness.drive.busy();
        let took = harness.run(Flush, 0, 0, false);
        let each = took.0 / count;
        // Sorted: less than a random write each, more than settle and half a turn.
        let most = f.average_seek.0 + f.write_settle.0 + turn(&f) / 2;
        assert!((turn(&f) / 2 + f.write_settle.0..most).contains(&each), "{name}: {each}");
        assert!(harness.drive.busy() > before);
        assert_eq!(harness.run(Flush, 0, 0, false), f.command_overhead, "{name}: still dirty");
        harness.settle();
        assert_eq!(harness.run(Flush, 0, 0, false), f.command_overhead);
    }
}

#[test]
fn idle_time_cleans_the_buffer() {
    let f = figures("nas-8tb-7200");
    let mut harness = Harness::new(&f, 3);
    harness.run(Read, 77_000, 8, false);
    harness.run(Write, 4_000_000, 8, false);
    harness.pass(Nanos::from_millis(100));
    assert_eq!(harness.run(Flush, 0, 0, false), f.command_overhead);
}

#[test]
fn random_writes_are_bounded_by_destaging() {
    for name in NAMES {
        let f = figures(name);
        let mut harness = Harness::new(&f, 3);
        let mut random = SplitMix64::new(8);
        let mut write = |harness: &mut Harness| {
            harness.run(Write, random.below(f.capacity.0 / 8) * 8, 8, false);
        };
        for _ in 0..2 * f.write_extents {
            write(&mut harness);
        }
        let (start, busy) = (harness.now, harness.drive.busy());
        for _ in 0..4_000 {
            write(&mut harness);
        }
        let time = harness.now.since(start);
        let each = time.0 / 4_000;
        // The elevator's seek spans 1/n of the stroke: by the curve, a root, plus settle.
        let share = (3.0 / f64::from(f.write_extents)).sqrt();
        let short =
            f.track_to_track.0 as f64 + (f.average_seek.0 - f.track_to_track.0) as f64 * share;
        let expected = short + f.write_settle.0 as f64 + turn(&f) as f64 / 2.0;
        println!("{name}: {} a second, {each} ns, {expected:.0} by formula", 1_000_000_000 / each);
        assert!((each as f64 / expected - 1.0).abs() < 0.06, "{name}: {each} against {expected}");
        let worked = harness.drive.busy().0 - busy.0;
        assert!((worked as f64 / time.0 as f64 - 1.0).abs() < 0.01, "{name}: always busy");
    }
}

#[test]
fn overwriting_the_same_block_is_absorbed() {
    let f = figures("nas-8tb-7200");
    let mut harness = Harness::new(&f, 3);
    for _ in 0..20_000 {
        let took = harness.run(Write, 4_096, 8, false).0 as f64;
        assert!((took - acknowledged(&f, 8)).abs() < 10.0, "{took}");
    }
}

#[test]
fn reads_go_before_destaging_which_still_gets_on() {
    let f = figures("nas-8tb-7200");
    let mut harness = Harness::new(&f, 3);
    let mut random = SplitMix64::new(2);
    let place = |random: &mut SplitMix64| random.below(f.capacity.0 / 8) * 8;
    for _ in 0..200 {
        harness.run(Write, place(&mut random), 8, false);
    }
    let mut read = |count| {
        let time =
            (0..count).map(|_| harness.run(Read, place(&mut random), 8, false).0).sum::<u64>();
        time / count
    };
    let mean = read(160);
    assert!(mean < 13_500_000, "reads wait for destaging too much: {mean}");
    // A destage for 16 reads: 200 pieces are gone after 3,200 reads.
    read(3_100);
    assert_eq!(harness.run(Flush, 0, 0, false), f.command_overhead);
}

#[test]
fn a_flush_does_not_wait_for_reading_ahead() {
    let mut f = figures("nas-8tb-7200");
    f.segment = Sectors(1 << 20);
    let mut harness = Harness::new(&f, 3);
    harness.run(Read, 0, 8, false);
    harness.run(Write, 100_000_000, 8, false);
    let took = harness.run(Flush, 0, 0, false);
    assert!(took < Nanos::from_millis(30), "512 MiB ahead are 2 s: {took:?}");
}

#[test]
fn small_buffers_stream_too() {
    let mut f = figures("nas-8tb-7200");
    f.write_buffer = Sectors(2_048); // Half a track.
    let mut harness = Harness::new(&f, 3);
    for block in 0..4_000 {
        harness.run(Write, block * 128, 128, false);
    }
    let rate = 4_000.0 * 65_536.0 / harness.now.since(Default::default()).as_secs();
    assert!(rate > 0.97 * f.outer_rate as f64, "{rate}");
}

#[test]
fn a_bypassing_write_replaces_what_waits_in_the_buffer() {
    let f = figures("nas-8tb-7200");
    let mut harness = Harness::new(&f, 3);
    harness.run(Write, 1_000_000, 8, false); // Goes to the medium at once.
    harness.run(Write, 500_000_000, 64, false);
    harness.run(Write, 500_000_000, 64, true);
    assert_eq!(harness.run(Flush, 0, 0, false), f.command_overhead);
}

#[test]
fn a_bypassing_write_needs_its_first_block() {
    let f = figures("pata-80gb-7200");
    let mut harness = Harness::new(&f, 3);
    let mut random = SplitMix64::new(3);
    let transfer = 4_096e9 / f.outer_rate as f64 * 0.8;
    let least = acknowledged(&f, 8) + transfer;
    for _ in 0..4_000 {
        let took = harness.run(Write, random.below(80) * 8, 8, true).0 as f64;
        assert!(took > least, "{took} is less than {least}");
        harness.pass(Nanos(random.below(9_000_000)));
    }
}

#[test]
fn writes_drop_what_is_being_read_ahead() {
    let mut f = figures("nas-8tb-7200");
    f.segment = Sectors(1 << 16);
    let hit = acknowledged(&f, 8) + 10.0;
    // First sector and length of the write; a place in front of it, in it and behind it, and
    // whether each is still cached. The stream is around sector 10,000 when the write comes.
    for (at, len, probes) in [
        (2_000, 8, [(1_000, false), (2_000, false), (4_000, true)]),
        (40_000, 8, [(30_000, true), (40_000, false), (50_000, false)]),
        (2_000, 30_000, [(1_000, false), (2_000, false), (40_000, false)]),
    ] {
        for (probe, cached) in probes {
            let mut harness = Harness::new(&f, 3);
            harness.run(Read, 0, 8, false);
            harness.pass(Nanos::from_millis(20));
            harness.run(Write, at, len, false);
            harness.pass(Nanos::from_millis(600));
            assert_eq!(harness.run(Flush, 0, 0, false), f.command_overhead);
            let took = harness.run(Read, probe, 8, false).0 as f64;
            assert_eq!(took <= hit, cached, "write {at}+{len}, read {probe}: {took}");
        }
    }
}

#[test]
fn a_write_across_the_front_of_the_stream_ends_it() {
    let mut f = figures("nas-8tb-7200");
    f.segment = Sectors(1 << 16);
    for at in (4_096..16_384).step_by(512) {
        let mut harness = Harness::new(&f, 3);
        harness.run(Read, 0, 8, false);
        harness.pass(Nanos::from_millis(20));
        harness.run(Write, at, 1_500, false);
        harness.pass(Nanos::from_millis(600));
        let took = harness.run(Read, at + 700, 8, false).0 as f64;
        assert!(took > acknowledged(&f, 8) + 10.0, "write at {at}: {took}");
    }
}

#[test]
fn a_read_that_waits_for_a_piece_keeps_what_was_cached() {
    let mut f = figures("nas-8tb-7200");
    f.segment = Sectors(16_384); // 33 ms of the medium, 15 of the link.
    for seed in 0..40 {
        let mut harness = Harness::new(&f, seed);
        harness.run(Read, 0, 8, false);
        harness.pass(Nanos::from_millis(100));
        harness.run(Write, 100_000, 8, false);
        let took = harness.run(Read, 8, 16_400, false);
        assert!(took < Nanos::from_millis(25), "the cached part was read again: {took:?}");
    }
}

#[test]
fn writes_drop_what_was_cached() {
    let f = figures("nas-8tb-7200");
    let hit = acknowledged(&f, 8) + 10.0;
    let mut harness = Harness::new(&f, 3);
    harness.run(Read, 10_000, 64, false);
    harness.run(Write, 10_016, 8, true);
    assert!(harness.run(Read, 10_024, 8, false).0 as f64 <= hit, "behind the write");
    assert!(harness.run(Read, 10_016, 8, false).0 as f64 > hit, "what was written");
}

/// Writes that go past the buffer keep coming, one always waits; those that wait for room in it take turns with them.
#[test]
fn buffered_writes_do_not_wait_for_ever_behind_forced_ones() {
    let f = queueing_figures("dc-24tb-7200");
    let mut harness = Harness::new(&f, 1);
    let mut random = SplitMix64::new(7);
    let mut place = || random.below(f.capacity.0 / 8) * 8;
    // The buffer has as many pieces as it takes.
    for _ in 0..256 {
        harness.run(Write, place(), 8, false);
    }
    let mut forced: Vec<u32> = (0..4).map(|_| harness.submit(Write, place(), 8, true)).collect();
    let mut buffered: Vec<u32> = (0..8).map(|_| harness.submit(Write, place(), 8, false)).collect();
    let mut count = 0;
    while !buffered.is_empty() {
        assert!(harness.wake(), "{} do not end", buffered.len());
        for done in std::mem::take(&mut harness.done) {
            buffered.retain(|id| *id != done.id);
            if let Some(place_of) = forced.iter().position(|id| *id == done.id) {
                count += 1;
                forced[place_of] = harness.submit(Write, place(), 8, true);
            }
        }
        assert!(count < 500, "{} wait behind {count} forced ones", buffered.len());
    }
}

/// What has come into the buffer is there once: a write as large as the buffer finds room for its last piece.
#[test]
fn a_write_as_large_as_the_buffer_comes_at_the_rate_of_the_link() {
    let f = figures("pata-80gb-7200");
    let sectors = f.write_buffer.0 as u32;
    let took = Harness::new(&f, 1).run(Write, 1 << 20, sectors, false).0 as f64;
    let expected = acknowledged(&f, sectors);
    assert!((took / expected - 1.0).abs() < 0.05, "{took} against {expected}");
}
