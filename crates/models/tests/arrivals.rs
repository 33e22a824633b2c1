//! A drive under open arrivals, against queueing theory; and a slow interface.

use crate::harness::{Harness, Read, Write, figures};
use raidlab_core::units::{Nanos, Time};
use raidlab_models::{DriveInput, DriveIo, DriveIoId, DriveOutput, HardDisk, HardDiskSpec};
use raidlab_random::SplitMix64;

/// An exponential variate of this mean in nanoseconds. Von Neumann's method (*Various techniques used
/// in connection with random digits*, 1951) needs comparisons only, so it is the same everywhere.
fn exponential(random: &mut SplitMix64, mean: f64) -> u64 {
    let uniform = |random: &mut SplitMix64| random.below(1 << 53) as f64 / (1u64 << 53) as f64;
    let mut whole = 0.0;
    loop {
        // A run of falling uniforms: of odd length with the probability that makes the first one
        // exponential below 1.
        let first = uniform(random);
        let (mut last, mut length) = (first, 1);
        loop {
            let next = uniform(random);
            if next >= last {
                break;
            }
            (last, length) = (next, length + 1);
        }
        if length % 2 == 1 {
            return ((whole + first) * mean) as u64;
        }
        whole += 1.0;
    }
}

/// Random 4 KiB reads that arrive by themselves, in the order they come: mean and mean square of the
/// service time, mean of the wait, share of time at work.
fn open(name: &str, load: f64, count: u32) -> (f64, f64, f64, f64) {
    let spec = HardDiskSpec::new(figures(name)).unwrap();
    let mut disk = HardDisk::new(&spec, 1);
    let mut random = SplitMix64::new(3);
    // A first guess of the service time sets the rate; what comes of it is measured.
    let between = 12e6 / load;
    let mut arrivals = vec![Time::ZERO];
    for _ in 1..count {
        let last = arrivals[arrivals.len() - 1];
        arrivals.push(last + Nanos(exponential(&mut random, between)));
    }
    let mut ends = Vec::with_capacity(count as usize);
    let mut wake = None;
    let mut next = 0;
    while ends.len() < count as usize {
        let arrival = arrivals.get(next).copied();
        let now = match (arrival, wake) {
            (Some(arrival), Some(at)) if at < arrival => at,
            (Some(arrival), _) => arrival,
            (None, at) => at.expect("commands are under way"),
        };
        if arrival == Some(now) && wake.is_none_or(|at| at >= now) {
            let at = raidlab_core::units::Sector(random.below(disk.capacity().0 / 8) * 8);
            let id = DriveIoId(next as u32);
            let io = DriveIo { id, op: Read, at, len: 8, fua: false };
            disk.handle(now, DriveInput::Submit(io));
            next += 1;
        } else {
            wake = None;
            disk.handle(now, DriveInput::Wake);
        }
        while let Some(output) = disk.poll() {
            match output {
                DriveOutput::Complete { .. } => ends.push(now),
                DriveOutput::WakeAt(at) => wake = Some(at),
            }
        }
    }
    let (mut service, mut square, mut wait) = (0.0, 0.0, 0.0);
    let mut free = Time::ZERO;
    for (arrival, end) in arrivals.iter().zip(&ends) {
        let start = free.max(*arrival);
        let took = end.since(start).0 as f64;
        service += took;
        square += took * took;
        wait += start.since(*arrival).0 as f64;
        free = *end;
    }
    let n = f64::from(count);
    let work = service / ends[ends.len() - 1].0 as f64;
    (service / n, square / n, wait / n, work)
}

/// Pollaczek and Khinchine: the mean wait is rate x E[S^2] / (2 (1 - rate x E[S])).
#[test]
fn the_wait_under_open_arrivals_is_that_of_an_m_g_1_queue() {
    for (name, load) in [("nas-8tb-7200", 0.3), ("nas-8tb-7200", 0.6), ("pata-80gb-7200", 0.5)] {
        let (service, square, wait, work) = open(name, load, 400_000);
        let rate = 1.0 / (12e6 / load);
        let expected = rate * square / 2.0 / (1.0 - rate * service);
        let ratio = wait / expected;
        println!("{name}: load {work:.3}, wait {wait:.0} ns against {expected:.0}, {ratio:.4}");
        assert!((work / (rate * service) - 1.0).abs() < 0.01, "{name} {load}: {work}");
        assert!((ratio - 1.0).abs() < 0.02, "{name} {load}: {ratio}");
    }
}

#[test]
fn a_slow_interface_bounds_streams() {
    for op in [Read, Write] {
        let mut f = figures("nas-8tb-7200");
        f.link_rate = 40_000_000;
        let mut harness = Harness::new(&f, 1);
        for block in 0..2_000 {
            harness.run(op, block * 256, 256, false);
        }
        let rate = 2_000.0 * 131_072.0 / harness.now.since(Time::ZERO).as_secs();
        let each = f.command_overhead.as_secs() + 131_072.0 / 40e6;
        let expected = 131_072.0 / each;
        assert!((rate / expected - 1.0).abs() < 0.02, "{op:?}: {rate} against {expected}");
    }
}

#[test]
fn a_write_past_the_buffer_waits_for_a_slow_interface() {
    let mut f = figures("nas-8tb-7200");
    f.link_rate = 20_000_000; // 6.5 ms for 128 KiB, which the medium takes in half a millisecond.
    let mut harness = Harness::new(&f, 1);
    let mut random = SplitMix64::new(2);
    let least = f.command_overhead + Nanos(131_072 * 50);
    for _ in 0..400 {
        let took = harness.run(Write, random.below(2_000) * 256, 256, true);
        assert!(took >= least, "{took:?} is less than {least:?}");
    }
}
