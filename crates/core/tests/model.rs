//! The array against a flat copy of what it should hold.

use crate::extent::Extent;
use crate::support;
use std::cell::Cell;
use std::rc::Rc;

use crate::support::{Driver, Work, field};
use raidlab_core::contract::{Admin, Event, Input, IoOp, IoOutcome, Outcome, Segment};
use raidlab_core::geometry::{Geometry, Holds, Place};
use raidlab_core::layout::Redundancy;
use raidlab_core::{Config, Layout, Level, Limits, MemberIndex, Sector, Sectors};
use raidlab_random::SplitMix64;

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
    for rotation in Level::Raid5.rotations() {
        all.push(Layout::new(Level::Raid5, 4).with_chunk(chunk).with_rotation(*rotation));
    }
    all.extend([3, 5].map(|n| Layout::new(Level::Raid3, n)));
    all.extend([3, 5].map(|n| Layout::new(Level::Raid4, n).with_chunk(chunk)));
    all.extend([4, 5, 7].map(|n| Layout::new(Level::Raid6, n).with_chunk(chunk)));
    for rotation in Level::Raid6.rotations() {
        all.push(Layout::new(Level::Raid6, 5).with_chunk(chunk).with_rotation(*rotation));
    }
    let raid10 = |n| Layout::new(Level::Raid10, n).with_chunk(chunk);
    all.extend([(4, 2), (5, 2), (3, 3), (2, 2)].map(|(n, near)| raid10(n).with_near(near)));
    all.extend([(4, 2), (5, 2), (3, 3)].map(|(n, far)| raid10(n).with_far(far)));
    all.push(raid10(4).with_far(2).with_offset(true));
    all.push(raid10(5).with_far(2).with_offset(true));
    all.push(raid10(4).with_far(2).with_near(2));
    all.push(raid10(4).with_far(2).with_far_sets(2));
    // And what the table of levels has besides: a new level is here by its row.
    for small in support::small_arrays(CHUNK) {
        if !all.contains(&small) {
            all.push(small);
        }
    }
    all
}

/// The smallest request of a layout, in sectors.
fn block(layout: &Layout) -> u64 {
    if layout.level.is_cut_by_sectors() { u64::from(layout.members) - 1 } else { 1 }
}

fn config(layout: &Layout, limits: Limits) -> Config {
    Config { limits, ..Config::uniform(layout.clone(), Sectors(64)) }
}

fn tight() -> Limits {
    Limits { requests: 6, segments: 5, ios: 1, plans: 2, windows: 1 }
}

/// Cuts `len` sectors into segments of two buffers, out of order.
fn scattered(driver: &mut Driver, bytes: &[u8], random: &mut SplitMix64) -> Vec<Segment> {
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
    against_flat_copy_with(&config(layout, limits), lost, seed);
}

fn against_flat_copy_with(config: &Config, lost: &[u16], seed: u64) {
    let layout = &config.layout;
    let mut random = SplitMix64::new(seed);
    let mut driver = Driver::new(config);
    let capacity = driver.array.capacity().0;
    let mut flat = vec![0u8; capacity as usize];
    for round in 0..60 {
        if round > 0
            && round % 20 == 0
            && let Some(member) = lost.get(round / 20 - 1)
        {
            driver.fail(*member);
        }
        let unit = block(layout);
        let mut at = random.below(capacity / 2) / unit * unit;
        let mut reads = Vec::new();
        while at < capacity && driver.array.can_accept() {
            let len = (1 + random.below(capacity / 3)).next_multiple_of(unit).min(capacity - at);
            let range = at as usize..(at + len) as usize;
            let choice = random.below(7);
            if choice == 6 {
                driver.submit_range(IoOp::WriteZeroes, at, len);
                flat[range].fill(0);
            } else if choice < 2 {
                let segments = scattered(&mut driver, &vec![0xdd; len as usize], &mut random);
                driver.submit(IoOp::Read, at, &segments);
                reads.push((range, segments));
            } else {
                let bytes: Vec<u8> = range.clone().map(|_| random.next_u64() as u8).collect();
                let segments = scattered(&mut driver, &bytes, &mut random);
                driver.submit(IoOp::Write, at, &segments);
                flat[range].copy_from_slice(&bytes);
            }
            at += len + random.below(4) * unit;
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

/// What a sector of data is multiplied by in Q.
fn coefficient(driver: &Driver, at: Sector) -> u8 {
    let Geometry::Parity(parity) = driver.array.geometry() else { panic!("Q without stripes") };
    let place = parity.stripe_place(at);
    field::power(parity.q_exponent(place.stripe, place.chunk))
}

/// With all members in service, every P and Q is what its row makes it.
fn parity_is_right(driver: &Driver) {
    for member in 0..driver.members.len() as u16 {
        for at in 0..driver.members[0].len() as u64 {
            let place = Place { member: MemberIndex(member), at: Sector(at) };
            let q = match driver.array.geometry().holds(place) {
                Holds::P { .. } => false,
                Holds::Q { .. } => true,
                _ => continue,
            };
            let all = 0..driver.members.len() as u16;
            if all.clone().any(|m| driver.array.is_failed(MemberIndex(m))) {
                continue;
            }
            let data = all.filter_map(|m| {
                let here = Place { member: MemberIndex(m), at: Sector(at) };
                let Holds::Data { at: sector, .. } = driver.array.geometry().holds(here) else {
                    return None;
                };
                let byte = driver.members[usize::from(m)][at as usize];
                Some(if q { field::multiply(coefficient(driver, sector), byte) } else { byte })
            });
            let found = driver.members[usize::from(member)][at as usize];
            assert_eq!(data.fold(0, |sum, byte| sum ^ byte), found, "row {at}, member {member}");
        }
    }
}

#[test]
fn every_level_reads_back_what_was_written() {
    let seeds = Extent::from_environment().choose((0..20).collect(), 8);
    for layout in layouts() {
        for &seed in &seeds {
            against_flat_copy(&layout, Limits::default(), &[], seed);
            against_flat_copy(&layout, tight(), &[], seed);
        }
    }
}

#[test]
fn parity_levels_survive_every_set_of_members_they_promise() {
    let parity = |l: &Layout| matches!(l.level.redundancy(), Redundancy::Parity(_));
    let seeds = Extent::from_environment().choose((0..3).collect(), 1);
    for layout in layouts().into_iter().filter(parity) {
        for first in 0..layout.members {
            for &seed in &seeds {
                against_flat_copy(&layout, Limits::default(), &[first], seed);
                against_flat_copy(&layout, tight(), &[first], seed);
            }
            for second in (0..layout.members).filter(|m| *m != first && layout.survives() > 1) {
                against_flat_copy(&layout, Limits::default(), &[first, second], 7);
                against_flat_copy(&layout, tight(), &[first, second], 8);
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
        for layout in layouts().into_iter().filter(|l| l.level == Level::Raid10) {
            for lost in 0..layout.members {
                against_flat_copy(&layout, tight(), &[lost], seed);
            }
        }
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
fn slices_of_any_size_are_a_whole_chunk() {
    let of = |level, members| Layout::new(level, members).with_chunk(Sectors(8));
    for layout in [of(Level::Raid4, 3), of(Level::Raid5, 4), of(Level::Raid6, 5)] {
        for rows in [1, 2, 4] {
            let mut config =
                Config { limits: tight(), ..Config::uniform(layout.clone(), Sectors(32)) };
            config.settings.plan_rows = Sectors(rows);
            for seed in 0..20 {
                against_flat_copy_with(&config, &[], seed);
                against_flat_copy_with(&config, &[1], seed);
            }
        }
    }
}

#[test]
fn overlapping_writes_leave_equal_copies() {
    let mut layouts = layouts();
    layouts.retain(|l| l.survives() > 0);
    for layout in layouts {
        for seed in 0..50 {
            let mut random = SplitMix64::new(seed);
            let mut driver = Driver::new(&config(&layout, tight()));
            let ids: Vec<_> = (0..5u8)
                .map(|version| {
                    let unit = block(&layout);
                    let at = random.below(20) * unit;
                    let len = ((1 + random.below(28 / unit)) * unit) as u32;
                    let token = driver.buffer(vec![version + 1; len as usize]);
                    let segment = Segment { token, offset: 0, len };
                    driver.submit(IoOp::Write, at, &[segment])
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
        let Place { member, at } = driver.array.geometry().place(Sector(11), 0);
        let was_asked = Rc::new(Cell::new(false));
        let asked = was_asked.clone();
        driver.fault = Box::new(move |io| {
            let bad = io.op == IoOp::Read && io.member == member;
            let hit = io.at <= at && at.0 < io.at.0 + u64::from(io.len);
            asked.set(asked.get() || bad && hit);
            if bad && hit { IoOutcome::MediaError { first_bad: at } } else { IoOutcome::Ok }
        });
        assert_eq!(driver.read(0, capacity as u32), Ok(bytes.clone()), "{layout}");
        // Mirrors may have read another copy.
        let recovered = driver.events.contains(&Event::ReadRecovered(member));
        assert_eq!(recovered, was_asked.get(), "{layout}");
        assert!(recovered || layout.level == Level::Raid10, "{layout}");
        assert!(!driver.array.is_failed(member), "one bad sector is not a failed member");
        // A small write beside it must not lose what the bad sector holds.
        let small = vec![0x42; block(&layout) as usize];
        assert_eq!(driver.write(0, &small), Outcome::Done, "{layout}");
        let mut expected = bytes;
        expected[..small.len()].copy_from_slice(&small);
        assert_eq!(driver.read(0, capacity as u32), Ok(expected), "{layout}");
    }
}

#[test]
fn parity_stays_right_where_it_cannot_be_read() {
    let parity = |l: &Layout| l.level.has_stripes();
    for layout in layouts().into_iter().filter(parity) {
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
    let unit = block(layout);
    for (at, len) in [(0, 5), (6, 20), (capacity / 2 - 7, 23), (capacity - 9, 9)] {
        let at = at / unit * unit;
        let len = (len as u64).next_multiple_of(unit).min(capacity - at);
        let bytes: Vec<u8> = (0..len).map(|i| (at + i * 11) as u8).collect();
        flat[at as usize..(at + len) as usize].copy_from_slice(&bytes);
        assert_eq!(driver.write(at, &bytes), Outcome::Done, "{layout} {error:?} {lost} {nth}");
        let found = driver.read(0, capacity as u32);
        assert_eq!(found.as_ref(), Ok(&flat), "{layout} {error:?} {lost} {nth}");
    }
}

/// Whichever chunk of a write it is whose copies are lost before the write has ended: one by an error of its own I/O,
/// the other with its member after it was written.
#[test]
fn a_write_is_not_done_when_any_of_its_chunks_has_lost_all_copies() {
    let layout = Layout::new(Level::Raid10, 6).with_chunk(Sectors(8));
    for (gone, pulled) in [(0, 1), (2, 3), (5, 4), (0, 3), (3, 5)] {
        let mut driver = Driver::new(&config(&layout, Limits::default()));
        driver.fault = Box::new(move |io| match io.member.0 == gone {
            true => IoOutcome::Gone,
            false => IoOutcome::Ok,
        });
        let id = driver.begin_write(0, &[7; 24], false);
        for member in [gone, pulled] {
            let its = |work: &Work| matches!(work, Work::Io(io) if io.member.0 == member);
            let at = driver.work.iter().position(its).expect("a copy is written there");
            driver.step(at);
        }
        assert_eq!(driver.outcome(id), None, "other chunks are under way");
        driver.input(Input::Admin(Admin::Fail(MemberIndex(pulled))));
        driver.run();
        let expected = if gone / 2 == pulled / 2 { Outcome::ArrayFailed } else { Outcome::Done };
        assert_eq!(driver.outcome(id), Some(expected), "{gone} and {pulled}");
    }
}

#[test]
fn more_failures_than_survivable_are_errors_not_data() {
    for layout in layouts() {
        let mut driver = Driver::new(&config(&layout, Limits::default()));
        let capacity = driver.array.capacity().0 as u32;
        // Of raid10 every member but one: whichever copies there are, some are gone.
        let raid10 = layout.level == Level::Raid10;
        let lost = if raid10 { layout.members - 2 } else { layout.survives() };
        for member in 0..=lost.max(layout.survives()) {
            driver.fail(member);
        }
        assert!(driver.events.contains(&Event::ArrayFailed), "{layout}");
        assert_eq!(driver.read(0, capacity), Err(Outcome::ArrayFailed), "{layout}");
        assert_eq!(driver.write(0, &vec![1; capacity as usize]), Outcome::ArrayFailed, "{layout}");
        let id = driver.submit(IoOp::Flush, 0, &[]);
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
