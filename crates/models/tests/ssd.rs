//! SSDs against closed forms.

use crate::harness::{Flush, Harness, Read, Write};
use raidlab_core::units::{Nanos, Sectors, Time};
use raidlab_models::ssd::MOST_SUSPENDS;
use raidlab_models::{Drive, Ssd, SsdFigures, SsdSpec};
use raidlab_random::SplitMix64;

const GIB: u64 = 2 << 20;

/// A drive of round figures.
fn figures() -> SsdFigures {
    SsdFigures {
        capacity: Sectors(100 * GIB),
        flash: Sectors(115 * GIB),
        channels: 8,
        dies: 32,
        planes: 2,
        page: Sectors(32),
        bits_per_cell: 3,
        block_pages: 768,
        page_read: Nanos::from_micros(50),
        page_program: Nanos::from_micros(1_000),
        block_erase: Nanos::from_millis(5),
        program_suspend: Nanos::from_micros(30),
        channel_rate: 1_000_000_000,
        command_overhead: Nanos::from_micros(20),
        controller_time: Nanos::from_micros(1),
        link_rate: 4_000_000_000,
        link_duplex: true,
        queue_depth: 1_024,
        write_buffer: Sectors(16_384),
        power_loss_protection: true,
        flush_time: Nanos::from_millis(2),
        live_data: 100,
        slc_cache: Sectors(0),
        slc_program: Nanos(0),
    }
}

fn harness(f: &SsdFigures) -> Harness {
    Harness::of(Ssd::new(&SsdSpec::new(f.clone()).unwrap(), 1))
}

fn cross(sectors: u64, rate: u64) -> u64 {
    sectors * 512 * 1_000_000_000 / rate
}

/// What programming costs a die per word line, erasing included.
fn word_line(f: &SsdFigures) -> f64 {
    let pages = f64::from(f.bits_per_cell) / f64::from(f.block_pages);
    let moved = cross(f.program_unit().0, f.channel_rate);
    (f.page_program.0 + moved) as f64 + f.block_erase.0 as f64 * pages
}

fn close(got: f64, expected: f64, percent: f64, what: &str) {
    println!("{what}: {got:.1}, by formula {expected:.1}");
    assert!((got / expected - 1.0).abs() < percent / 100.0, "{what}: {got} against {expected}");
}

#[test]
fn one_read_at_a_time_takes_the_sum_of_its_parts() {
    let f = figures();
    let mut harness = harness(&f);
    let mut random = SplitMix64::new(1);
    let parts = f.controller_time.0 + f.command_overhead.0 + f.page_read.0;
    for len in [1, 8] {
        for _ in 0..100 {
            let took = harness.run(Read, random.below(f.capacity.0 / 8 - 8) * 8, len, false);
            let crossing = cross(len.into(), f.channel_rate) + cross(len.into(), f.link_rate);
            assert_eq!(took.0, parts + crossing);
        }
    }
}

#[test]
fn one_write_at_a_time_ends_when_it_has_crossed() {
    let f = figures();
    let mut harness = harness(&f);
    for block in 0..100 {
        let took = harness.run(Write, block * 8_000, 8, false);
        let expected = f.controller_time.0 + f.command_overhead.0 + cross(8, f.link_rate);
        assert_eq!(took.0, expected);
    }
}

#[test]
fn deep_queues_are_bounded_by_dies_then_by_the_controller() {
    let mut f = figures();
    f.controller_time = Nanos(100);
    let read = |f: &SsdFigures| {
        let mut random = SplitMix64::new(2);
        let count = 200_000;
        let mut harness = harness(f);
        let time =
            harness.load(1_024, count, |_| (Read, random.below(f.capacity.0 / 8) * 8, 8)).as_secs();
        count as f64 / time
    };
    // Commands meet on dies by chance: of n in a closed system of d servers, n / (n + d - 1) of each
    // server's time is used.
    let used = 1_024.0 / (1_024.0 + 31.0);
    close(read(&f), used * 32.0 / 50e-6, 1.0, "dies / page read");
    f.controller_time = Nanos::from_micros(4);
    close(read(&f), 250_000.0, 0.5, "1 / controller time");
    // One command at a time, although 1,024 wait.
    f.queue_depth = 1;
    let one = 4_000 + 20_000 + 50_000 + cross(8, f.channel_rate) + cross(8, f.link_rate);
    close(read(&f), 1e9 / one as f64, 0.1, "depth 1");
}

#[test]
fn long_reads_run_at_the_rate_of_the_bottleneck() {
    let sequential = |f: &SsdFigures| {
        let count = 20_000;
        let time = harness(f).load(64, count, |n| (Read, n * 256 % f.capacity.0, 256)).as_secs();
        count as f64 * 131_072.0 / time / 1e6
    };
    let f = figures();
    close(sequential(&f), 4_000.0, 1.0, "interface");
    let dies = SsdFigures { dies: 8, page_read: Nanos::from_micros(80), ..f.clone() };
    close(sequential(&dies), 8.0 * 16_384.0 / 80.0, 2.0, "dies");
    let channels = SsdFigures { channels: 2, ..f };
    close(sequential(&channels), 2_000.0, 2.0, "channels");
}

#[test]
fn long_writes_run_at_the_rate_of_programming() {
    let f = figures();
    let mut harness = harness(&f);
    let write = |harness: &mut Harness, from: u64, count: usize| {
        let time = harness.load(4, count, |n| (Write, from + n * 256, 256)).as_secs();
        count as f64 * 131_072.0 / time / 1e6
    };
    write(&mut harness, 0, 2_000);
    let rate = write(&mut harness, 2_000 * 256, 40_000);
    let expected = 32.0 * f.program_unit().bytes() as f64 / word_line(&f) * 1e3;
    close(rate, expected, 1.0, "MB/s of long writes");
    // With dies to spare the interface is the bottleneck.
    let f = SsdFigures { dies: 256, channels: 32, ..f };
    let mut harness = self::harness(&f);
    write(&mut harness, 0, 2_000);
    close(write(&mut harness, 512_000, 40_000), 4_000.0, 1.0, "MB/s by the interface");
}

#[test]
fn random_writes_pay_for_copying() {
    for (flash, live) in [(115, 100), (130, 100), (110, 50)] {
        let f = SsdFigures { flash: Sectors(flash * GIB), live_data: live, ..figures() };
        let mut harness = harness(&f);
        let Drive::Ssd(ssd) = &harness.drive else { panic!() };
        let copies = ssd.amplification() - 1.0;
        let mut random = SplitMix64::new(3);
        let mut write = |harness: &mut Harness, count: usize| {
            harness.load(64, count, |_| (Write, random.below(f.capacity.0 / 8) * 8, 8)).as_secs()
        };
        write(&mut harness, 20_000);
        let count = 200_000;
        let rate = count as f64 / write(&mut harness, count);
        let copy = word_line(&f)
            + cross(f.program_unit().0, f.channel_rate) as f64
            + 3.0 * f.page_read.0 as f64;
        let each = (word_line(&f) + copies * copy) / (f.program_unit().0 / 8) as f64;
        close(rate, 32.0 * 1e9 / each, 3.0, &format!("IOPS, {flash} GiB, {live} %"));
    }
}

#[test]
fn the_pseudo_slc_cache_is_used_up_and_comes_back_at_rest() {
    let f = SsdFigures {
        slc_cache: Sectors(GIB),
        slc_program: Nanos::from_micros(200),
        flash: Sectors(200 * GIB),
        ..figures()
    };
    let mut harness = harness(&f);
    let mut next = 0;
    let mut write = |harness: &mut Harness, mib: u64| {
        let from = next;
        next += mib * 2_048;
        let time = harness.load(4, mib as usize * 8, |n| (Write, from + n * 256, 256)).as_secs();
        mib as f64 * 1.048_576 / time
    };
    let unit = f.slc_unit();
    let moved = cross(unit.0, f.channel_rate);
    let erase = f.block_erase.0 as f64 * 3.0 / 768.0;
    let slc = 32.0 * unit.bytes() as f64 / ((200_000 + moved) as f64 + erase) * 1e3;
    let native = 32.0 * f.program_unit().bytes() as f64 / word_line(&f) * 1e3;
    let slc = slc.min(4_000.0);
    write(&mut harness, 64);
    close(write(&mut harness, 900), slc, 2.0, "MB/s into the cache");
    write(&mut harness, 200);
    close(write(&mut harness, 1_000), native, 2.0, "MB/s behind it");
    // A short pause brings nothing, a long one all.
    harness.pass(Nanos::from_millis(300));
    close(write(&mut harness, 200), native, 5.0, "MB/s after 0.3 s");
    harness.pass(Nanos::from_millis(5_000));
    close(write(&mut harness, 900), slc, 3.0, "MB/s after 5 s");
    harness.settle();
}

#[test]
fn flushes_cost_nothing_with_protection_and_programming_without() {
    let f = figures();
    let mut protected = harness(&f);
    let mut bare = harness(&SsdFigures { power_loss_protection: false, ..f.clone() });
    let looked = f.controller_time.0 + f.command_overhead.0;
    for harness in [&mut protected, &mut bare] {
        assert_eq!(harness.run(Flush, 0, 0, false).0, looked, "nothing to flush");
        harness.run(Write, 0, 8, false);
    }
    assert_eq!(protected.run(Flush, 0, 0, false).0, looked);
    let programmed = f.page_program.0 + cross(8, f.channel_rate);
    let took = bare.run(Flush, 0, 0, false);
    assert_eq!(took.0, looked + programmed + f.flush_time.0);
    assert_eq!(bare.run(Flush, 0, 0, false).0, looked, "nothing left");
    // A forced write is the same in one.
    let took = bare.run(Write, 80, 8, true);
    let expected = looked + cross(8, f.link_rate) + programmed + f.flush_time.0;
    assert_eq!(took.0, expected);
    let took = protected.run(Write, 80, 8, true);
    assert_eq!(took.0, looked + cross(8, f.link_rate));
    // What has waited 10 ms is programmed already; the map is not.
    bare.run(Write, 800, 8, false);
    bare.pass(Nanos::from_millis(50));
    assert_eq!(bare.run(Flush, 0, 0, false).0, looked + f.flush_time.0);
}

/// Writes that are each flushed have the drive busy nearly all of the time, however little its dies do.
#[test]
fn a_drive_that_writes_its_map_is_busy() {
    let f = SsdFigures { power_loss_protection: false, ..figures() };
    let mut bare = harness(&f);
    for block in 0..100 {
        bare.run(Write, block * 8, 8, false);
        bare.run(Flush, 0, 0, false);
    }
    let all = bare.now.since(Time::ZERO);
    let least = 100 * f.flush_time.0;
    assert!(bare.drive.busy() >= Nanos(least) && bare.drive.busy() <= all);
    assert!(bare.drive.busy().as_secs() > 0.6 * all.as_secs(), "{:?}", bare.drive.busy());
}

#[test]
fn reads_interrupt_programming() {
    // One die, so that every read meets it, and nothing to copy.
    let f = SsdFigures { channels: 1, dies: 1, live_data: 0, ..figures() };
    let parts = f.controller_time.0 + f.command_overhead.0 + f.page_read.0;
    let plain = parts + cross(8, f.channel_rate) + cross(8, f.link_rate);
    let programming = |f: &SsdFigures| {
        let mut harness = harness(f);
        harness.run(Write, 0, f.program_unit().0 as u32, false);
        harness.pass(Nanos::from_micros(300));
        harness
    };
    let took = programming(&f).run(Read, 0, 8, false);
    assert_eq!(took.0, plain + f.program_suspend.0);
    // However often that has happened: the limit is of each word line.
    let mut worn = harness(&f);
    for line in 0..3 * u64::from(MOST_SUSPENDS) {
        worn.run(Write, line * f.program_unit().0, f.program_unit().0 as u32, false);
        worn.pass(Nanos::from_micros(300));
        let took = worn.run(Read, 0, 8, false);
        assert_eq!(took.0, plain + f.program_suspend.0, "word line {line}");
        worn.pass(Nanos::from_millis(5));
    }
    // Without suspension it waits for the end: 1 ms from the arrival of the data.
    let waits = SsdFigures { program_suspend: Nanos::from_millis(100), ..f.clone() };
    let took = programming(&waits).run(Read, 0, 8, false).0;
    let ends = cross(f.program_unit().0, f.channel_rate) + f.page_program.0;
    let arrives = 300_000 + f.controller_time.0 + f.command_overhead.0;
    assert_eq!(took, plain + ends - arrives);
    // Programming ends later by what the reads took.
    let mut harness = programming(&SsdFigures { power_loss_protection: false, ..f.clone() });
    let begun = harness.now.0 - 300_000 + cross(f.program_unit().0, f.channel_rate);
    harness.run(Read, 0, 8, false);
    harness.run(Flush, 0, 0, false);
    let interrupted = f.program_suspend.0 + f.page_read.0;
    let expected = begun + f.page_program.0 + interrupted + f.flush_time.0;
    assert_eq!(harness.now, Time(expected));
}

#[test]
fn every_command_ends_once_and_the_seed_decides_all() {
    let tiny = SsdFigures {
        capacity: Sectors(GIB),
        flash: Sectors(GIB * 11 / 10),
        dies: 3,
        channels: 2,
        queue_depth: 7,
        write_buffer: Sectors(256),
        power_loss_protection: false,
        slc_cache: Sectors(2_000),
        slc_program: Nanos::from_micros(100),
        link_duplex: false,
        ..figures()
    };
    let spec = SsdSpec::new(tiny.clone()).unwrap();
    let trace = |seed| {
        let mut random = SplitMix64::new(seed);
        let mut harness = Harness::of(Ssd::new(&spec, seed));
        for _ in 0..2_000 {
            let at = random.below(tiny.capacity.0 + 20);
            let len = 1 + random.below(600) as u32;
            let fua = random.below(5) == 0;
            match random.below(10) {
                0 => harness.submit(Flush, 0, 0, false),
                1..=4 => harness.submit(Read, at, len, false),
                5 => harness.submit(Read, at, 0, false),
                _ => harness.submit(Write, at, len, fua),
            };
            match random.below(4) {
                0 => harness.pass(Nanos(random.below(3_000_000))),
                1 => drop(harness.wake()),
                _ => {}
            }
        }
        harness.settle();
        harness
    };
    for seed in 0..30 {
        let harness = trace(seed);
        let mut ids: Vec<_> = harness.done.iter().map(|done| done.id).collect();
        ids.sort_unstable();
        assert!(ids.into_iter().eq(0..2_000), "seed {seed}");
        assert!(harness.drive.busy() <= harness.now.since(Time::ZERO), "seed {seed}");
        assert_eq!(harness.done, trace(seed).done);
    }
}

/// A flush that finds the map being written, which names all there is, ends with it: not before the one that asked for
/// it.
#[test]
fn flushes_end_in_order() {
    let f = SsdFigures { power_loss_protection: false, ..figures() };
    for fua in [false, true] {
        let mut harness = harness(&f);
        let first = match fua {
            true => harness.submit(Write, 0, 8, true),
            false => {
                harness.run(Write, 0, 8, false);
                harness.submit(Flush, 0, 0, false)
            }
        };
        let mut others = Vec::new();
        for _ in 0..40 {
            harness.pass(Nanos::from_micros(100));
            others.push(harness.submit(Flush, 0, 0, false));
        }
        harness.settle();
        let end = |id: u32| harness.done.iter().find(|done| done.id == id).expect("ended").at;
        let mut before = end(first);
        for id in others {
            assert!(end(id) >= before, "flush {id} ended {:?} early", before.since(end(id)));
            before = end(id);
        }
    }
}
