//! The same inputs give the same times on every machine, in debug and in release.

use crate::harness::{Flush, Harness, Read, Write, figures, queueing_figures};
use raidlab_core::units::{Nanos, Sectors};
use raidlab_models::{Delivered, HardDiskFigures, ReadAhead, Trigger, ZoneRow};
use raidlab_random::SplitMix64;

/// FNV-1a (Fowler, Noll, Vo) over what completes when.
fn hash_of(f: &HardDiskFigures) -> u64 {
    let mut harness = Harness::new(f, 42);
    let mut random = SplitMix64::new(7);
    let mut below = |end| random.next_u64() % end;
    let mut next = 0;
    for _ in 0..6_000 {
        if below(3) == 0 {
            next = below(f.capacity.0 - 600);
        }
        let len = 1 + below(300);
        let fua = below(9) == 0;
        match below(12) {
            0 => harness.submit(Flush, 0, 0, false),
            1..=7 => harness.submit(Read, next, len as u32, fua),
            _ => harness.submit(Write, next, len as u32, fua),
        };
        next = (next + len) % (f.capacity.0 - 600);
        if below(2) == 0 {
            harness.pass(Nanos(below(30_000_000)));
        }
    }
    harness.settle();
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for done in &harness.done {
        for word in [u64::from(done.id), done.at.0] {
            for byte in word.to_le_bytes() {
                hash = (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
            }
        }
    }
    hash
}

/// A drive with measured zones and seeks, and a firmware that reads whole tracks and reports at once.
fn measured() -> HardDiskFigures {
    let mut f = figures("pata-80gb-7200");
    let zone = |first, last, sectors| ZoneRow {
        first,
        last,
        sectors,
        track_skew: sectors / 6,
        cylinder_skew: sectors / 4,
    };
    f.zone_table = vec![zone(0, 999, 400), zone(1_001, 2_999, 300)];
    f.capacity = Sectors((1_000 * 400 + 1_999 * 300) * 4 / 101 * 100);
    f.seek_points = [(1, 900), (10, 1_400), (100, 2_300), (999, 5_000), (2_900, 9_100)]
        .map(|(cylinders, us)| (cylinders, Nanos::from_micros(us)))
        .to_vec();
    f.cache.read_ahead = ReadAhead::Stream;
    f.cache.trigger = Trigger::Continued;
    f.cache.delivered = Delivered::GivenUp;
    f.cache.whole_track = true;
    f.cache.immediate_report = true;
    f.cache.written_ranges = 2;
    f
}

#[test]
fn completion_times_are_those_of_every_machine() {
    let hashes = [
        hash_of(&figures("nas-8tb-7200")),
        hash_of(&queueing_figures("nas-8tb-7200")),
        hash_of(&queueing_figures("pata-80gb-7200")),
        hash_of(&measured()),
    ];
    let expected: [u64; 4] = [
        0x33a8_5fa3_818c_2ec8,
        0xac21_d76d_9721_06d1,
        0xb2b0_6300_fc1d_214a,
        0xa21f_1ca0_902e_8495,
    ];
    let shown = |all: [u64; 4]| all.map(|one| format!("{one:#018x}"));
    assert_eq!(shown(hashes), shown(expected));
}
