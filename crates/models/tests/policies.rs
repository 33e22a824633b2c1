//! What firmwares do differently, each rule by itself.

use crate::harness::{Harness, Read, Write, figures};
use raidlab_core::units::{Nanos, Sectors, Time};
use raidlab_models::{CommandOverheads, Delivered, HardDiskFigures, ReadAhead, Trigger, ZoneRow};
use raidlab_random::SplitMix64;

const PAUSE: Nanos = Nanos(60_000_000);

/// A drive with tracks of exactly 400 sectors, 4 to a cylinder, and a segment of 256.
fn drive() -> HardDiskFigures {
    let mut f = figures("pata-80gb-7200");
    let zone =
        |first, last, sectors| ZoneRow { first, last, sectors, track_skew: 80, cylinder_skew: 110 };
    f.zone_table = vec![zone(0, 4_999, 400), zone(5_000, 9_999, 300)];
    f.capacity = Sectors(5_000 * 700 * 4);
    f.segment = Sectors(256);
    f.cache.resumes_on_hit = false;
    f
}

/// What 8 sectors from the buffer take.
fn hit(f: &HardDiskFigures) -> Nanos {
    Nanos(f.command_overhead.0 + 8 * 512_000_000_000 / f.link_rate + 10)
}

/// After a read of 8 sectors at `at` and a pause: is a read at `then` answered by the buffer?
fn answers(f: &HardDiskFigures, at: u64, then: u64) -> bool {
    let mut harness = Harness::new(f, 3);
    harness.run(Read, at, 8, false);
    harness.pass(PAUSE);
    harness.run(Read, then, 8, false) <= hit(f)
}

#[test]
fn reading_ahead_goes_as_far_as_the_policy_says() {
    let mut f = drive();
    // From sector 100 of a track: its end is at 400, that of the cylinder at 1,600.
    for (read_ahead, reaches, ends) in [
        (ReadAhead::None, 100, 108),
        (ReadAhead::Segment, 356, 364),
        (ReadAhead::Track, 392, 400),
        (ReadAhead::Stream, 356, 364),
    ] {
        f.cache.read_ahead = read_ahead;
        // The segment must not be what ends it.
        f.segment = Sectors(if read_ahead == ReadAhead::Track { 512 } else { 256 });
        assert!(answers(&f, 100, reaches), "{read_ahead:?}: {reaches}");
        assert!(!answers(&f, 100, ends), "{read_ahead:?}: {ends}");
    }
    (f.cache.read_ahead, f.segment) = (ReadAhead::Cylinder, Sectors(2_000));
    assert!(answers(&f, 100, 1_592) && !answers(&f, 100, 1_600));
    (f.cache.read_ahead, f.cache.most_ahead) = (ReadAhead::Segment, Sectors(32));
    assert!(answers(&f, 100, 132) && !answers(&f, 100, 140));
}

#[test]
fn a_drive_that_waits_for_order_reads_ahead_from_the_second_read_on() {
    let mut f = drive();
    f.cache.trigger = Trigger::Continued;
    assert!(!answers(&f, 100, 108), "the first read started it");
    let mut harness = Harness::new(&f, 3);
    harness.run(Read, 100, 8, false);
    harness.run(Read, 108, 8, false);
    harness.pass(PAUSE);
    assert!(harness.run(Read, 116, 8, false) <= hit(&f));
}

#[test]
fn a_stream_stays_a_track_ahead_of_a_reader_in_order() {
    let mut f = drive();
    for (read_ahead, far) in [(ReadAhead::Segment, false), (ReadAhead::Stream, true)] {
        f.cache.read_ahead = read_ahead;
        f.segment = Sectors(64);
        // All up to 116 + 400, though that is more than a segment.
        for (place, answered) in [(130, true), (300, far), (500, far), (516, false)] {
            let mut harness = Harness::new(&f, 3);
            harness.run(Read, 100, 8, false);
            harness.run(Read, 108, 8, false);
            harness.pass(PAUSE);
            let took = harness.run(Read, place, 8, false);
            assert_eq!(took <= hit(&f), answered, "{read_ahead:?} {place}");
        }
    }
}

#[test]
fn delivered_data_are_kept_overwritten_or_given_up() {
    let mut f = drive();
    for (delivered, at_once, later, ends) in [
        (Delivered::Kept, true, true, 356),
        (Delivered::Overwritten, true, false, 364),
        (Delivered::GivenUp, false, false, 364),
    ] {
        f.cache.delivered = delivered;
        let mut harness = Harness::new(&f, 3);
        harness.run(Read, 100, 8, false);
        assert_eq!(harness.run(Read, 100, 8, false) <= hit(&f), at_once, "{delivered:?} at once");
        assert_eq!(answers(&f, 100, 100), later, "{delivered:?} later");
        assert!(answers(&f, 100, ends - 8) && !answers(&f, 100, ends), "{delivered:?}");
    }
}

#[test]
fn a_whole_track_is_read_from_wherever_the_head_comes_down() {
    let mut f = drive();
    f.segment = Sectors(512);
    assert!(!answers(&f, 200, 100) && !answers(&f, 200, 0));
    f.cache.whole_track = true;
    assert!(answers(&f, 200, 100) && answers(&f, 200, 0) && answers(&f, 200, 392));
    assert!(!answers(&f, 200, 400), "the next track");
    // Before a turn is over, only what has passed.
    let some = (0..40).filter(|seed| {
        let mut harness = Harness::new(&f, *seed);
        harness.run(Read, 200, 8, false);
        harness.run(Read, 100, 8, false) <= hit(&f)
    });
    let some = some.count();
    assert!((1..40).contains(&some), "{some} of 40");
    // A write to the track makes what it covers stale.
    let mut harness = Harness::new(&f, 3);
    harness.run(Read, 200, 8, false);
    harness.pass(PAUSE);
    harness.run(Write, 100, 8, true);
    assert!(harness.run(Read, 100, 8, false) > hit(&f));
    // Also a buffered one, while the drive is still on the track.
    let mut harness = Harness::new(&f, 3);
    harness.run(Read, 200, 8, false);
    harness.pass(PAUSE);
    harness.run(Write, 100, 8, false);
    harness.pass(PAUSE);
    assert!(harness.run(Read, 100, 8, false) > hit(&f));
}

#[test]
fn hits_let_reading_ahead_go_on_where_firmware_does_so() {
    let mut f = drive();
    for resumes in [false, true] {
        f.cache.resumes_on_hit = resumes;
        let mut harness = Harness::new(&f, 3);
        harness.run(Read, 100, 8, false);
        harness.pass(PAUSE);
        assert!(harness.run(Read, 300, 8, false) <= hit(&f));
        harness.pass(PAUSE);
        assert_eq!(harness.run(Read, 500, 8, false) <= hit(&f), resumes);
    }
}

#[test]
fn written_data_answer_reads_as_long_as_they_are_kept() {
    let mut f = drive();
    for (ranges, first, last) in [(0, false, false), (1, false, true), (2, true, true)] {
        f.cache.written_ranges = ranges;
        let mut harness = Harness::new(&f, 3);
        for at in [1_000_000, 3_000_000] {
            harness.run(Write, at, 8, false);
            harness.pass(PAUSE);
        }
        let mut again = |at| harness.run(Read, at, 8, false) <= hit(&f);
        assert_eq!((again(3_000_000), again(1_000_000)), (last, first), "{ranges} ranges");
    }
}

#[test]
fn immediate_report_takes_one_write_and_what_appends_to_it() {
    let mut f = drive();
    f.cache.immediate_report = true;
    let acknowledged = hit(&f);
    let mut harness = Harness::new(&f, 3);
    for at in (1_000_000..1_000_064).step_by(8) {
        assert!(harness.run(Write, at, 8, false) <= acknowledged, "appends");
    }
    let elsewhere = harness.run(Write, 5_000_000, 8, false);
    assert!(elsewhere > acknowledged + Nanos(1_000_000), "waits until the buffer is clean");
    // A read waits, too, even if the buffer could answer it.
    let mut harness = Harness::new(&f, 3);
    harness.run(Read, 100, 8, false);
    harness.run(Write, 9_000_000, 8, false);
    assert!(harness.run(Read, 108, 8, false) > hit(&f) + Nanos(1_000_000));
    // Left alone, the drive is clean soon.
    harness.run(Write, 1_000_000, 8, false);
    harness.pass(PAUSE);
    assert!(harness.run(Write, 9_000_000, 8, false) <= acknowledged);
}

#[test]
fn without_overlap_medium_and_interface_take_turns() {
    let mean = |f: &HardDiskFigures, op, fua| {
        let mut harness = Harness::new(f, 3);
        let mut random = SplitMix64::new(4);
        let mut total = 0;
        for _ in 0..1_000 {
            total += harness.run(op, random.below(60_000) * 200, 200, fua).0;
            harness.pass(Nanos(random.below(20_000_000)));
        }
        total as f64 / 1e9
    };
    // Half a turn of data; the interface of 5 MB/s takes 20 ms for them, longer than any seek here.
    for (op, fua, rate, least, most) in
        [(Read, false, 40_000_000, 2.0, 4.2), (Write, true, 5_000_000, 3.0, 5.5)]
    {
        let mut f = drive();
        f.link_rate = rate;
        let with = mean(&f, op, fua);
        (f.cache.read_overlap, f.cache.write_overlap) = (false, false);
        let more = mean(&f, op, fua) - with;
        assert!((least..most).contains(&more), "{op:?}: {more} ms more than {with}");
    }
}

#[test]
fn overheads_go_by_what_a_command_finds_and_by_the_one_before() {
    let mut f = drive();
    let ms = |ms: u64| Nanos::from_millis(ms);
    f.overheads = Some(CommandOverheads {
        read_hit: [ms(1), ms(2)],
        read_miss: [ms(30), ms(40)],
        write_hit: [ms(5), ms(6)],
        write_miss: [ms(70), ms(80)],
        read_completion: ms(100),
        write_completion: ms(200),
    });
    f.cache.immediate_report = true;
    let link = Nanos(8 * 512_000_000_000 / f.link_rate);
    let mut harness = Harness::new(&f, 3);
    let mut run = |op, at, fua| {
        let took = harness.run(op, at, 8, fua);
        harness.pass(PAUSE);
        took.since_millis(link)
    };
    assert!((130..170).contains(&run(Read, 1_000, false)), "a miss after a read");
    assert_eq!(run(Read, 1_008, false), 101, "a hit after a read");
    assert_eq!(run(Write, 9_000_000, false), 205, "taken at once, after a read");
    assert_eq!(run(Write, 9_000_008, false), 206, "taken at once, after a write");
    assert!((280..320).contains(&run(Write, 1_000_000, true)), "past the buffer, after a write");
    assert!((140..180).contains(&run(Read, 5_000_000, false)), "a miss after a write");
    run(Write, 9_000_000, false);
    assert_eq!(run(Read, 5_000_008, false), 102, "a hit after a write");
}

trait SinceMillis {
    fn since_millis(self, less: Nanos) -> u64;
}

impl SinceMillis for Nanos {
    /// Whole milliseconds of what is left without `less`, rounded.
    fn since_millis(self, less: Nanos) -> u64 {
        (self.0 - less.0 + 500_000) / 1_000_000
    }
}

/// Sequential reads lose the skews of the table and no more, also across spare sectors.
#[test]
fn measured_zones_give_their_rates() {
    for spare in [0, 1] {
        let mut f = drive();
        f.capacity = Sectors(f.capacity.0 - spare * f.capacity.0 / 25);
        f.cache.resumes_on_hit = true;
        for (at, sectors) in [(0, 400.0), (f.capacity.0 - 400_000, 300.0)] {
            let mut harness = Harness::new(&f, 3);
            harness.run(Read, at, 256, false);
            let start = harness.now;
            for block in 1..1_200 {
                harness.run(Read, at + block * 256, 256, false);
            }
            let rate = 1_199.0 * 131_072.0 / harness.now.since(start).as_secs();
            let turn = 60.0 / 7_200.0;
            let skews = (3.0 * 80.0 + 110.0) / sectors * turn;
            let data = 4.0 * sectors * 512.0 * (1.0 - spare as f64 / 25.0);
            let expected = data / (4.0 * turn + skews);
            assert!((rate / expected - 1.0).abs() < 0.01, "at {at}: {rate} against {expected}");
        }
    }
}

#[test]
fn a_skew_too_short_for_its_switch_costs_a_turn() {
    let mut f = drive();
    f.cache.resumes_on_hit = true;
    let rate = |f: &HardDiskFigures| {
        let mut harness = Harness::new(f, 3);
        for block in 0..600 {
            harness.run(Read, block * 256, 256, false);
        }
        600.0 * 131_072.0 / harness.now.since(Time::ZERO).as_secs()
    };
    let good = rate(&f);
    f.head_switch = Nanos::from_millis(2); // The skew is 1.67 ms.
    let bad = rate(&f);
    assert!((0.4..0.65).contains(&(bad / good)), "{bad} and {good}");
}

/// Random reads by the measured curve instead of the three points.
#[test]
fn measured_seeks_count_instead_of_three_points() {
    let mut f = drive();
    let flat = |ms: u64| vec![(1, Nanos::from_millis(ms)), (9_999, Nanos::from_millis(ms))];
    let mean = |f: &HardDiskFigures| {
        let mut harness = Harness::new(f, 3);
        let mut random = SplitMix64::new(4);
        let places = (0..4_000).map(|_| random.below(f.capacity.0 / 8) * 8);
        places.map(|at| harness.run(Read, at, 8, false).0).sum::<u64>() as f64 / 4_000e6
    };
    f.seek_points = flat(3);
    let short = mean(&f);
    f.seek_points = flat(13);
    let long = mean(&f);
    assert!((long - short - 10.0).abs() < 0.2, "{long} and {short}");
    let expected = 0.3 + 3.0 + 30.0 / 7.2 + 0.2;
    assert!((short - expected).abs() < 0.15, "{short} against {expected}");
}

/// Three quarters of a seek to the next cylinder, between writing and reading on one track.
#[test]
fn reading_after_writing_settles_anew() {
    let mut f = drive();
    f.cache.read_ahead = ReadAhead::None;
    let sector = 60_000_000_000 / 7_200 / 400;
    let settle = f.track_to_track.0 * 3 / 4;
    // What passes until the head can read: overhead and settling. The interface is quicker.
    let passes = (f.command_overhead.0 + settle) / sector;
    for (gap, turns) in [(passes - 12, 1), (passes + 4, 0)] {
        let mut harness = Harness::new(&f, 3);
        harness.run(Write, 40, 8, true);
        let took = harness.run(Read, 48 + gap, 8, false);
        let expected = (turns * 400 + gap + 8) * sector;
        let off = took.0 as f64 - expected as f64;
        assert!(off.abs() < 60_000.0, "{gap} sectors on: {took:?}, expected {expected}");
    }
    // The same between two reads: the gap is long enough for the electronics only.
    let mut harness = Harness::new(&f, 3);
    harness.run(Read, 40, 8, false);
    let gap = f.command_overhead.0 / sector + 2;
    let took = harness.run(Read, 48 + gap, 8, false);
    assert!(took.0 > 400 * sector, "{took:?}: a gap of {gap} sectors is a new positioning");
}
