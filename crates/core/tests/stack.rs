//! Nested levels against a flat copy of what they should hold.

use crate::support::{Driver, Work as Asked};
use raidlab_core::contract::{
    Admin, Event, Input, IoOp, IoOutcome, Outcome, Refusal, Segment, Work,
};
use raidlab_core::geometry::Geometry;
use raidlab_core::policy::{MemberTraits, ReadPolicy};
use raidlab_core::stack::{Stack, StackConfig};
use raidlab_core::{Config, Layout, Level, Limits, MemberIndex, Nanos, Sector, Sectors, Time};
use raidlab_random::SplitMix64;

const DRIVE: Sectors = Sectors(64);

fn layout(level: Level, members: u16) -> Layout {
    let layout = Layout::new(level, members);
    if level.has_chunks() { layout.with_chunk(Sectors(8)) } else { layout }
}

fn config(outer: Level, arrays: u16, inner: Level, drives: u16, limits: Limits) -> StackConfig {
    let one = Config { limits, ..Config::uniform(layout(inner, drives), DRIVE) };
    StackConfig {
        layout: layout(outer, arrays),
        read_policy: ReadPolicy::default(),
        limits,
        inner: vec![one; usize::from(arrays)],
    }
}

/// Drives are counted through the arrays in order, and so is what is known of them.
#[test]
fn each_lower_array_knows_its_own_drives() {
    let nested: Layout = "raid1+0(3x2)".parse().expect("nested levels");
    let mut config = Config::uniform(nested, DRIVE);
    config.members = (0..6)
        .map(|drive| Config::uniform(layout(Level::Raid0, 1), Sectors(64 + drive)).members[0])
        .collect();
    let traits =
        |drive: u32| MemberTraits { optimal_io: Sectors(drive.into()), ..MemberTraits::default() };
    config.traits = (1..7).map(traits).collect();
    let stack = StackConfig::of(&config).expect("possible");
    for (at, inner) in stack.inner.iter().enumerate() {
        assert_eq!(inner.members, config.members[2 * at..2 * at + 2], "array {at}");
        assert_eq!(inner.traits, config.traits[2 * at..2 * at + 2], "array {at}");
    }
    assert_eq!(stack.inner.len(), 3);
}

fn tight() -> Limits {
    Limits { requests: 5, segments: 4, ios: 1, plans: 1, windows: 1 }
}

fn driver(config: &StackConfig) -> Driver<Stack> {
    let stack = Stack::new(config).expect("possible");
    let drives = usize::from(stack.drives());
    Driver::over(stack, std::iter::repeat_n(DRIVE.0, drives))
}

fn fail(driver: &mut Driver<Stack>, drive: u16) {
    driver.input(Input::Admin(Admin::Fail(MemberIndex(drive))));
    driver.run();
    driver.members[usize::from(drive)].fill(0xbb);
}

/// Random batches in random order of completion; `lost` drives fail between them.
fn against_flat_copy(config: &StackConfig, lost: &[u16], seed: u64) {
    let context = format!("{} of {}, {lost:?}, seed {seed}", config.layout, config.inner[0].layout);
    let mut random = SplitMix64::new(seed);
    let mut driver = driver(config);
    let unit = u64::from(driver.array.logical_block());
    let capacity = driver.array.capacity().0;
    let mut flat = vec![0u8; capacity as usize];
    for round in 0..30 {
        if round > 0
            && round % 10 == 0
            && let Some(drive) = lost.get(round / 10 - 1)
        {
            fail(&mut driver, *drive);
        }
        let mut at = random.below(capacity / 2) / unit * unit;
        let mut reads = Vec::new();
        while at < capacity && driver.array.can_accept() {
            let len = (1 + random.below(capacity / 3)).next_multiple_of(unit).min(capacity - at);
            let range = at as usize..(at + len) as usize;
            let cut = random.below(len + 1) as u32;
            let bytes: Vec<u8> = range.clone().map(|_| random.next_u64() as u8).collect();
            let token = driver.buffer(bytes.clone());
            let segment = |offset, len| Segment { token, offset, len };
            let segments = [segment(0, cut), segment(cut, len as u32 - cut)];
            let segments: Vec<_> = segments.into_iter().filter(|s| s.len > 0).collect();
            match random.below(4) {
                0 => {
                    driver.submit(IoOp::Read, at, &segments);
                    reads.push((range, token));
                }
                1 => {
                    driver.submit_range(IoOp::WriteZeroes, at, len);
                    flat[range].fill(0);
                }
                _ => {
                    driver.submit(IoOp::Write, at, &segments);
                    flat[range].copy_from_slice(&bytes);
                }
            }
            at += len + random.below(4) * unit;
        }
        let flush = driver.submit(IoOp::Flush, 0, &[]);
        driver.run_shuffled(&mut random);
        let busy = Some(Outcome::Busy);
        let flushed = driver.outcome(flush);
        assert!(flushed == Some(Outcome::Done) || flushed == busy, "{context}: {flushed:?}");
        let others = driver.replies.iter().filter(|(id, _)| *id != flush);
        for (id, outcome) in others {
            assert_eq!(*outcome, Outcome::Done, "{context}: {id:?}");
        }
        driver.replies.clear();
        for (range, token) in reads {
            let found = &driver.buffers[token.0 as usize];
            assert_eq!(*found, flat[range.clone()], "{context}: read of {range:?}");
        }
        driver.buffers.clear();
    }
    assert_eq!(driver.read(0, capacity as u32), Ok(flat), "{context}");
}

#[test]
fn nested_levels_read_back_what_was_written() {
    use Level::{Linear, Raid0, Raid1, Raid3, Raid5, Raid6, Raid10};
    for (outer, arrays, inner, drives, lost) in [
        (Raid0, 2, Raid1, 2, &[0, 3][..]),
        (Raid1, 2, Raid0, 2, &[1]),
        (Raid0, 3, Raid5, 3, &[1, 5, 6]),
        (Raid0, 2, Raid6, 4, &[0, 2]),
        (Raid5, 3, Raid1, 2, &[0, 1, 3]),
        (Raid6, 4, Raid0, 2, &[2, 5]),
        (Raid5, 3, Raid5, 3, &[0, 1, 4]),
        (Raid10, 4, Linear, 2, &[1]),
        (Linear, 2, Raid3, 3, &[0, 4]),
        (Raid1, 2, Raid3, 3, &[0, 1]),
        (Raid3, 3, Raid1, 2, &[0, 1, 3]),
    ] {
        for seed in 0..6 {
            for limits in [Limits::default(), tight()] {
                let config = config(outer, arrays, inner, drives, limits);
                against_flat_copy(&config, &[], seed);
                against_flat_copy(&config, lost, seed);
            }
        }
    }
}

#[test]
fn drives_are_counted_through_the_inner_arrays() {
    let mut driver = driver(&config(Level::Raid0, 2, Level::Raid1, 2, Limits::default()));
    assert_eq!(driver.array.drives(), 4);
    assert_eq!(driver.write(0, &[7; 16]), Outcome::Done);
    let sent: Vec<_> = driver.log.iter().map(|io| (io.member.0, io.at.0, io.len)).collect();
    assert_eq!(sent, [(0, 0, 8), (1, 0, 8), (2, 0, 8), (3, 0, 8)]);
    fail(&mut driver, 2);
    let events = [Event::MemberFailed(MemberIndex(2)), Event::Degraded { missing: 1 }];
    assert_eq!(driver.events, events);
    driver.events.clear();
    // The second mirror is gone altogether: so is the stripe over it.
    fail(&mut driver, 3);
    assert_eq!(driver.events, [Event::MemberFailed(MemberIndex(3)), Event::ArrayFailed]);
    assert_eq!(driver.read(0, 16), Err(Outcome::ArrayFailed));
    assert_eq!(driver.read(0, 8), Ok(vec![7; 8]), "the first mirror still serves");
    let command = Admin::Fail(MemberIndex(4));
    driver.input(Input::Admin(command));
    assert_eq!(driver.events.last(), Some(&Event::Refused(Refusal::NoSuchMember)));
}

#[test]
fn a_bad_sector_of_an_inner_array_is_read_from_another() {
    let mut driver = driver(&config(Level::Raid1, 2, Level::Raid0, 2, Limits::default()));
    let bytes: Vec<u8> = (0..128u8).map(|i| i ^ 0x5a).collect();
    assert_eq!(driver.write(0, &bytes), Outcome::Done);
    driver.fault = Box::new(|io| {
        let hit = io.at.0 <= 3 && 3 < io.at.0 + u64::from(io.len);
        let bad = io.op == IoOp::Read && io.member.0 == 0 && hit;
        if bad { IoOutcome::MediaError { first_bad: Sector(3) } } else { IoOutcome::Ok }
    });
    for _ in 0..4 {
        assert_eq!(driver.read(0, 128).as_ref(), Ok(&bytes));
    }
    let failed = driver.events.iter().any(|event| matches!(event, Event::MemberFailed(_)));
    assert!(!failed, "one bad sector is not a failed member");
}

#[test]
fn a_drive_that_goes_at_any_io_loses_nothing() {
    use Level::{Raid0, Raid1, Raid5};
    for (outer, arrays, inner, drives) in [(Raid1, 2, Raid0, 2), (Raid5, 3, Raid0, 2)] {
        for nth in 0..12 {
            let mut driver = driver(&config(outer, arrays, inner, drives, Limits::default()));
            let mut seen = 0;
            driver.fault = Box::new(move |io| {
                seen += usize::from(io.member.0 == 1);
                let gone = io.member.0 == 1 && seen > nth;
                if gone { IoOutcome::Gone } else { IoOutcome::Ok }
            });
            let mut flat = vec![0; driver.array.capacity().0 as usize];
            for (round, at) in [0usize, 5, 30, 60, 11].into_iter().enumerate() {
                let bytes: Vec<u8> = (0..29).map(|i| (i * 7 + round * 31) as u8).collect();
                flat[at..at + 29].copy_from_slice(&bytes);
                let context = format!("{outer} of {inner}, I/O {nth}");
                assert_eq!(driver.write(at as u64, &bytes), Outcome::Done, "{context}");
                let found = driver.read(0, flat.len() as u32);
                assert_eq!(found.as_ref(), Ok(&flat), "{context}");
            }
        }
    }
}

#[test]
fn stacks_that_cannot_be_are_refused() {
    let mut wrong = config(Level::Raid0, 2, Level::Raid1, 2, Limits::default());
    wrong.layout.members = 3;
    assert_eq!(Stack::new(&wrong).expect_err("two arrays for three").key, "members");
    let mut wrong = config(Level::Raid0, 2, Level::Raid5, 3, Limits::default());
    wrong.inner[1].layout.members = 4;
    assert_eq!(Stack::new(&wrong).expect_err("two layouts").key, "arrays");
    wrong.inner.iter_mut().for_each(|one| one.layout.members = 2);
    assert_eq!(Stack::new(&wrong).expect_err("raid5 of two").key, "members");
    let many = config(Level::Raid0, 2, Level::Raid1, 2, Limits::default());
    let inner = vec![many.inner[0].clone(); 128];
    let many = StackConfig { layout: layout(Level::Raid0, 128), inner, ..many };
    assert_eq!(Stack::new(&many).expect_err("128 arrays").key, "arrays");
}

#[test]
fn what_is_asked_of_drives_is_told_of_the_right_one() {
    let mut driver = driver(&config(Level::Raid0, 40, Level::Raid1, 2, Limits::default()));
    let stack = &driver.array;
    assert_eq!((stack.drives(), stack.journal()), (80, MemberIndex(160)));
    assert_eq!([0, 79].map(|drive| stack.replacement(MemberIndex(drive)).0), [80, 159]);
    assert!(!stack.is_failed(MemberIndex(80)));
    assert_eq!(stack.good_to(MemberIndex(80)), Sector::MAX);
    for drive in [3, 70] {
        fail(&mut driver, drive);
    }
    let status = driver.array.status();
    assert_eq!((status.failed, status.rebuilding), ([1 << 3, 1 << 6], [0; 2]));
    for drive in 0..80 {
        let is_failed = driver.array.is_failed(MemberIndex(drive));
        assert_eq!(is_failed, drive == 3 || drive == 70, "{drive}");
    }
    let command = Admin::Add { member: MemberIndex(70), sectors: DRIVE };
    driver.input(Input::Admin(command));
    let status = driver.array.status();
    assert_eq!((status.failed, status.rebuilding), ([1 << 3, 0], [0, 1 << 6]));
    assert_eq!(status.work.expect("it is rebuilt").work, Work::Rebuild(MemberIndex(70)));
    assert!(driver.array.good_to(MemberIndex(70)) < Sector::MAX);
    assert_eq!(driver.array.good_to(MemberIndex(71)), Sector::MAX);
    let member = MemberIndex(41);
    driver.input(Input::Admin(Admin::Replace { member, sectors: DRIVE, consent: true }));
    assert_eq!(driver.array.status().replacing, [1 << 41, 0]);
    let (geometry, none) = (driver.array.geometry(), None::<u16>);
    let Geometry::Nested(nested) = geometry else { panic!("{geometry:?}") };
    let array_of = |drive| nested.array_of(MemberIndex(drive)).map(|(array, ..)| array);
    assert_eq!([array_of(0), array_of(79), array_of(80)], [Some(0), Some(39), none]);
}

#[test]
fn an_io_of_any_array_is_given_up_by_its_own_name() {
    let deadline = 1000;
    for array in 0..3 {
        let mut config = config(Level::Raid0, 3, Level::Raid1, 2, Limits::default());
        for inner in &mut config.inner {
            inner.settings.deadline = Some(Nanos(deadline));
        }
        let mut driver = driver(&config);
        let token = driver.buffer(vec![0; 8]);
        driver.submit(IoOp::Read, 8 * array, &[Segment { token, offset: 0, len: 8 }]);
        let Asked::Io(sent) = driver.work[0] else { panic!("a read goes to a drive") };
        assert_eq!(u64::from(sent.member.0 / 2), array);
        driver.now = Time(deadline);
        driver.input(Input::Wake);
        let given_up = |work: &Asked| matches!(work, Asked::Abandoned(io) if *io == sent.io);
        assert!(driver.work.iter().any(given_up), "{array}: {:?}", driver.work);
        driver.run();
        assert!(driver.replies.iter().all(|(_, outcome)| *outcome == Outcome::Done), "{array}");
    }
}
