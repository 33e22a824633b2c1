//! The array against a flat copy of what it should hold.

mod support;

use raidlab_core::contract::{Event, IoOp, IoOutcome, Outcome, RequestOp, Segment};
use raidlab_core::geometry::{Holds, Place};
use raidlab_core::{Config, Layout, Level, Limits, MemberIndex, Sector, Sectors};
use support::{Driver, Random};

const CHUNK: u64 = 8;

fn layouts() -> Vec<Layout> {
    let chunk = Sectors(CHUNK);
    let mut all = vec![
        Layout::new(Level::Linear, 1),
        Layout::new(Level::Linear, 3),
        Layout::new(Level::Raid0, 4).with_chunk(chunk),
        Layout::new(Level::Raid0, 3).with_chunk(Sectors(6)),
        Layout::new(Level::Raid1, 2),
        Layout::new(Level::Raid1, 3),
    ];
    all.extend([3, 4, 6].map(|n| Layout::new(Level::Raid5, n).with_chunk(chunk)));
    all.extend(
        [(4, 2), (5, 2), (3, 3), (2, 2)]
            .map(|(n, near)| Layout::new(Level::Raid10, n).with_chunk(chunk).with_near(near)),
    );
    all
}

fn config(layout: &Layout, limits: Limits) -> Config {
    Config { limits, ..Config::uniform(layout.clone(), Sectors(64)) }
}

fn tight() -> Limits {
    Limits { requests: 6, segments: 5, ios: 1, plans: 2 }
}

/// Cuts `len` sectors into segments of two buffers, out of order.
fn scattered(driver: &mut Driver, bytes: &[u8], random: &mut Random) -> Vec<Segment> {
    let len = bytes.len() as u32;
    let cut = random.below(u64::from(len) + 1) as u32;
    let (head, tail) = bytes.split_at(cut as usize);
    // The tail first, then a gap, then the head.
    let mut buffer = tail.to_vec();
    buffer.push(0x77);
    buffer.extend(head);
    let token = driver.buffer(buffer);
    let head = Segment { token, offset: len - cut + 1, len: cut };
    let tail = Segment { token, offset: 0, len: len - cut };
    [head, tail].into_iter().filter(|s| s.len > 0).collect()
}

fn collected(driver: &Driver, segments: &[Segment]) -> Vec<u8> {
    let mut all = Vec::new();
    for segment in segments {
        let buffer = &driver.buffers[segment.token.0 as usize];
        let range = segment.offset as usize..(segment.offset + segment.len) as usize;
        all.extend_from_slice(&buffer[range]);
    }
    all
}

/// Random batches of requests that do not overlap, in random order of completion; `lost` members
/// fail between batches.
fn against_flat_copy(layout: &Layout, limits: Limits, lost: &[u16], seed: u64) {
    let mut random = Random(seed);
    let mut driver = Driver::new(&config(layout, limits));
    let capacity = driver.array.capacity().0;
    let mut flat = vec![0u8; capacity as usize];
    for round in 0..60 {
        if round > 0
            && round % 20 == 0
            && let Some(member) = lost.get(round / 20 - 1)
        {
            driver.fail(*member);
        }
        let mut at = random.below(capacity / 2);
        let mut reads = Vec::new();
        while at < capacity && driver.array.can_accept() {
            let len = (1 + random.below(capacity / 3)).min(capacity - at);
            let range = at as usize..(at + len) as usize;
            if random.below(3) == 0 {
                let segments = scattered(&mut driver, &vec![0xdd; len as usize], &mut random);
                driver.submit(RequestOp::Read, at, &segments);
                reads.push((range, segments));
            } else {
                let bytes: Vec<u8> = range.clone().map(|_| random.next() as u8).collect();
                let segments = scattered(&mut driver, &bytes, &mut random);
                driver.submit(RequestOp::Write, at, &segments);
                flat[range].copy_from_slice(&bytes);
            }
            at += len + random.below(4);
        }
        driver.run_shuffled(&mut random);
        assert!(driver.replies.iter().all(|(_, o)| *o == Outcome::Done), "{layout} {seed}");
        driver.replies.clear();
        for (range, segments) in reads {
            let found = collected(&driver, &segments);
            assert_eq!(found, flat[range.clone()], "{layout} seed {seed} read of {range:?}");
        }
        driver.buffers.clear();
    }
    let whole = driver.read(0, capacity as u32).expect("readable");
    assert_eq!(whole, flat, "{layout} seed {seed}");
    parity_is_right(&driver);
}

/// Every P whose member is in service is the XOR of its row.
fn parity_is_right(driver: &Driver) {
    for member in 0..driver.members.len() as u16 {
        for at in 0..driver.members[0].len() as u64 {
            let place = Place { member: MemberIndex(member), at: Sector(at) };
            if !matches!(driver.array.geometry().holds(place), Holds::P { .. }) {
                continue;
            }
            let lost =
                (0..driver.members.len() as u16).any(|m| driver.array.is_failed(MemberIndex(m)));
            let sum = driver.members.iter().fold(0, |sum, m| sum ^ m[at as usize]);
            assert!(lost || sum == 0, "P of row {at} on member {member}");
        }
    }
}

#[test]
fn every_level_reads_back_what_was_written() {
    for layout in layouts() {
        for seed in 0..20 {
            against_flat_copy(&layout, Limits::default(), &[], seed);
            against_flat_copy(&layout, tight(), &[], seed);
        }
    }
}

#[test]
fn raid5_survives_any_one_member_lost() {
    for layout in layouts().into_iter().filter(|l| l.level == Level::Raid5) {
        for lost in 0..layout.members {
            for seed in 0..10 {
                against_flat_copy(&layout, Limits::default(), &[lost], seed);
                against_flat_copy(&layout, tight(), &[lost], seed);
            }
        }
    }
}

#[test]
fn mirrors_survive_all_members_but_one_lost() {
    for seed in 0..10 {
        against_flat_copy(&Layout::new(Level::Raid1, 3), tight(), &[0, 2], seed);
        let pairs = Layout::new(Level::Raid10, 4).with_chunk(Sectors(CHUNK));
        against_flat_copy(&pairs, tight(), &[1, 2], seed);
        let odd = Layout::new(Level::Raid10, 5).with_chunk(Sectors(CHUNK));
        against_flat_copy(&odd, tight(), &[3], seed);
    }
}

#[test]
fn a_slice_of_rows_is_enough_for_a_huge_chunk() {
    // A chunk of 2 MiB is worked on in slices of 1 MiB.
    let layout = Layout::new(Level::Raid5, 3).with_chunk(Sectors(4096));
    let mut driver = Driver::new(&Config::uniform(layout, Sectors(8192)));
    let bytes: Vec<u8> = (0..16_384u32).map(|i| (i * 7 + (i >> 8)) as u8).collect();
    assert_eq!(driver.write(0, &bytes), Outcome::Done);
    assert_eq!(driver.write(1000, &bytes[..9000]), Outcome::Done);
    driver.fail(1);
    let mut expected = bytes.clone();
    expected[1000..10_000].copy_from_slice(&bytes[..9000]);
    assert_eq!(driver.read(0, 16_384), Ok(expected));
}

#[test]
fn overlapping_writes_leave_equal_copies() {
    let mut layouts = layouts();
    layouts.retain(|l| matches!(l.level, Level::Raid1 | Level::Raid10 | Level::Raid5));
    for layout in layouts {
        for seed in 0..50 {
            let mut random = Random(seed);
            let mut driver = Driver::new(&config(&layout, tight()));
            let ids: Vec<_> = (0..5u8)
                .map(|version| {
                    let at = random.below(20);
                    let len = 1 + random.below(40) as u32;
                    let token = driver.buffer(vec![version + 1; len as usize]);
                    let segment = Segment { token, offset: 0, len };
                    driver.submit(RequestOp::Write, at, &[segment])
                })
                .collect();
            driver.run_shuffled(&mut random);
            assert!(ids.iter().all(|id| driver.outcome(*id) == Some(Outcome::Done)));
            copies_are_equal(&driver, &format!("{layout} seed {seed}"));
            parity_is_right(&driver);
        }
    }
}

fn copies_are_equal(driver: &Driver, context: &str) {
    let geometry = driver.array.geometry();
    for at in (0..driver.array.capacity().0).map(Sector) {
        let byte = |copy| {
            let place = geometry.place(at, copy);
            driver.members[place.member.at()][place.at.0 as usize]
        };
        for copy in 1..geometry.copies() {
            assert_eq!(byte(copy), byte(0), "{context}: copy {copy} of {at}");
        }
    }
}

#[test]
fn a_bad_sector_is_read_from_elsewhere() {
    for layout in layouts().into_iter().filter(|l| l.survives() > 0) {
        let mut driver = Driver::new(&config(&layout, Limits::default()));
        let capacity = driver.array.capacity().0;
        let bytes: Vec<u8> = (0..capacity).map(|i| (i * 5 + 1) as u8).collect();
        assert_eq!(driver.write(0, &bytes), Outcome::Done);
        let at = Sector(11);
        driver.fault = Box::new(move |io| {
            let bad = io.op == IoOp::Read && io.member == MemberIndex(0);
            let hit = io.at <= at && at.0 < io.at.0 + u64::from(io.len);
            if bad && hit { IoOutcome::MediaError { first_bad: at } } else { IoOutcome::Ok }
        });
        assert_eq!(driver.read(0, capacity as u32), Ok(bytes.clone()), "{layout}");
        assert!(driver.events.contains(&Event::ReadRecovered(MemberIndex(0))), "{layout}");
        assert!(!driver.array.is_failed(MemberIndex(0)), "one bad sector is not a failed member");
        // A small write beside it must not lose what the bad sector holds.
        assert_eq!(driver.write(2, &[0x42]), Outcome::Done, "{layout}");
        let mut expected = bytes;
        expected[2] = 0x42;
        assert_eq!(driver.read(0, capacity as u32), Ok(expected), "{layout}");
    }
}

#[test]
fn parity_stays_right_where_it_cannot_be_read() {
    for layout in layouts().into_iter().filter(|l| l.level == Level::Raid5) {
        for member in 0..layout.members {
            let mut driver = Driver::new(&config(&layout, Limits::default()));
            let capacity = driver.array.capacity().0;
            assert_eq!(driver.write(0, &vec![0x5a; capacity as usize]), Outcome::Done);
            driver.fault = Box::new(move |io| match io.op {
                IoOp::Read if io.member == MemberIndex(member) => {
                    IoOutcome::MediaError { first_bad: io.at }
                }
                _ => IoOutcome::Ok,
            });
            for at in 0..capacity {
                assert_eq!(driver.write(at, &[at as u8]), Outcome::Done);
            }
            parity_is_right(&driver);
        }
    }
}

#[test]
fn a_member_that_fails_at_any_io_loses_nothing() {
    for layout in layouts().into_iter().filter(|l| l.survives() > 0) {
        for error in [IoOutcome::Gone, IoOutcome::Timeout, IoOutcome::NoSpace] {
            for lost in 0..layout.members.min(4) {
                for nth in 0..12 {
                    fails_at(&layout, error, MemberIndex(lost), nth);
                }
            }
        }
    }
}

fn fails_at(layout: &Layout, error: IoOutcome, lost: MemberIndex, nth: usize) {
    let mut driver = Driver::new(&config(layout, Limits::default()));
    let capacity = driver.array.capacity().0;
    let mut flat: Vec<u8> = (0..capacity).map(|i| (i * 3 + 1) as u8).collect();
    assert_eq!(driver.write(0, &flat), Outcome::Done);
    let mut seen = 0;
    driver.fault = Box::new(move |io| {
        seen += usize::from(io.member == lost);
        if io.member == lost && seen > nth { error } else { IoOutcome::Ok }
    });
    for (at, len) in [(0, 5), (6, 20), (capacity / 2 - 7, 23), (capacity - 9, 9)] {
        let bytes: Vec<u8> = (0..len).map(|i| (at + i * 11) as u8).collect();
        flat[at as usize..(at + len) as usize].copy_from_slice(&bytes);
        assert_eq!(driver.write(at, &bytes), Outcome::Done, "{layout} {error:?} {lost} {nth}");
        let found = driver.read(0, capacity as u32);
        assert_eq!(found.as_ref(), Ok(&flat), "{layout} {error:?} {lost} {nth}");
    }
}

#[test]
fn more_failures_than_survivable_are_errors_not_data() {
    for layout in layouts() {
        let mut driver = Driver::new(&config(&layout, Limits::default()));
        let capacity = driver.array.capacity().0 as u32;
        for member in 0..=layout.survives() {
            driver.fail(member);
        }
        assert!(driver.events.contains(&Event::ArrayFailed), "{layout}");
        assert_eq!(driver.read(0, capacity), Err(Outcome::ArrayFailed), "{layout}");
        assert_eq!(driver.write(0, &vec![1; capacity as usize]), Outcome::ArrayFailed, "{layout}");
        let id = driver.submit(RequestOp::Flush, 0, &[]);
        driver.run();
        assert_eq!(driver.outcome(id), Some(Outcome::ArrayFailed), "{layout}");
    }
}

#[test]
fn unreadable_everywhere_names_the_sector() {
    let mut driver = Driver::new(&config(&Layout::new(Level::Raid1, 2), Limits::default()));
    driver.fault = Box::new(|io| match io.op {
        IoOp::Read => IoOutcome::MediaError { first_bad: Sector(io.at.0 + 3) },
        _ => IoOutcome::Ok,
    });
    assert_eq!(driver.read(4, 8), Err(Outcome::MediaError { first_bad: Sector(7) }));
    assert!(!driver.array.is_failed(MemberIndex(0)));
}
