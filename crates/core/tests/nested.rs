//! Nested levels as one volume: addresses both ways, rebuilds of drives and of whole arrays, scrubs, stops.

use std::collections::BTreeSet;

use crate::support::Driver;
use raidlab_core::contract::{
    Admin, Event, Input, IoOp, IoOutcome, Outcome, Pacing, Refusal, RepairSource, Scrub, Work,
};
use raidlab_core::geometry::{Geometry, Holds};
use raidlab_core::{Config, ConfigError, Layout, MemberIndex, Sector, Sectors, Volume};

const DRIVE: Sectors = Sectors(64);

fn layout(name: &str) -> Layout {
    name.parse().expect("is a layout")
}

fn config(name: &str) -> Config {
    let mut config = Config::uniform(layout(name), DRIVE);
    config.settings.pacing = Pacing::between(u64::MAX, u64::MAX);
    config
}

fn filled(name: &str) -> (Driver<Volume>, Vec<u8>) {
    filled_over(name, DRIVE, FAST)
}

const FAST: Pacing = Pacing::between(u64::MAX, u64::MAX);

/// Over drives of this size; replacements come after the drives.
fn filled_over(name: &str, drive: Sectors, pacing: Pacing) -> (Driver<Volume>, Vec<u8>) {
    let mut config = config(name);
    config.settings.pacing = pacing;
    config.members.iter_mut().for_each(|member| member.sectors = drive);
    let volume = Volume::new(&config).expect("possible");
    let places = 2 * usize::from(volume.layout().drives());
    let mut driver = Driver::over(volume, std::iter::repeat_n(drive.0, places));
    let capacity = driver.array.capacity().0;
    let bytes: Vec<u8> = (0..capacity).map(|at| (at * 7 + at / 64 + 1) as u8).collect();
    assert_eq!(driver.write(0, &bytes), Outcome::Done);
    driver.events.clear();
    (driver, bytes)
}

fn idle(driver: &mut Driver<Volume>) {
    driver.run();
    for _ in 0..10_000 {
        let Some(at) = driver.wake.take() else { return };
        driver.now = driver.now.max(at);
        driver.input(Input::Wake);
        driver.run();
    }
    panic!("never comes to rest: {:?}", driver.events.last());
}

fn command(driver: &mut Driver<Volume>, command: Admin) {
    driver.input(Input::Admin(command));
    driver.run();
}

fn fail(driver: &mut Driver<Volume>, drive: u16) {
    command(driver, Admin::Fail(MemberIndex(drive)));
    driver.members[usize::from(drive)].fill(0xbb);
}

fn add(driver: &mut Driver<Volume>, drive: u16) {
    command(driver, Admin::Add { member: MemberIndex(drive), sectors: DRIVE });
}

fn begin_add(driver: &mut Driver<Volume>, drive: u16) {
    driver.input(Input::Admin(Admin::Add { member: MemberIndex(drive), sectors: DRIVE }));
}

fn refused(driver: &Driver<Volume>) -> Option<Refusal> {
    driver.events.iter().find_map(|event| match event {
        Event::Refused(reason) => Some(*reason),
        _ => None,
    })
}

#[test]
fn every_sector_has_its_copies_and_no_two_share_a_place() {
    for (name, copies) in [
        ("raid5+0(2x3) chunk=4K", 1),
        ("raid6+0(3x4) chunk=2K outer-chunk=8K", 1),
        ("raid1+0(3x2) chunk=4K", 2),
        ("raid0+1(2x3) chunk=4K", 2),
        ("raid10+1(2x4) chunk=4K", 4),
        ("raid5+1(2x3) chunk=4K", 2),
        ("raid1+5(3x2) chunk=4K", 2),
        ("raid0+6(4x2) chunk=4K", 1),
        ("raid4+linear(2x3) chunk=4K", 1),
        ("raid1+10(4x2) outer-offset2", 4),
    ] {
        let layout = layout(name);
        let sizes = vec![Sectors(2048); usize::from(layout.drives())];
        let geometry = Geometry::new(&layout, &sizes).expect("possible");
        assert_eq!(geometry.copies(), copies, "{name}");
        let mut taken = BTreeSet::new();
        for at in (0..geometry.capacity().0).map(Sector) {
            for copy in 0..copies {
                let place = geometry.place(at, copy);
                assert!(place.member.0 < layout.drives() && place.at.0 < 2048, "{name}: {place:?}");
                assert!(taken.insert(place), "{name}: {place:?} twice");
                assert_eq!(geometry.holds(place), Holds::Data { at, copy }, "{name}: {place:?}");
            }
            // A run lies together, on every copy's drive.
            let run = geometry.run(at).0;
            assert!(run > 0);
            let (first, last) = (geometry.place(at, 0), Sector(at.0 + run - 1));
            if last.0 < geometry.capacity().0 {
                let end = geometry.place(last, 0);
                assert_eq!((end.member, end.at.0), (first.member, first.at.0 + run - 1), "{name}");
            }
        }
    }
}

#[test]
fn what_is_sent_goes_where_the_addresses_say() {
    for name in ["raid5+0(2x3) chunk=4K", "raid0+1(2x2) chunk=2K", "raid1+5(3x2) chunk=4K"] {
        let (driver, bytes) = filled(name);
        let geometry = driver.array.geometry();
        for (at, byte) in bytes.iter().enumerate() {
            for copy in 0..geometry.copies() {
                let place = geometry.place(Sector(at as u64), copy);
                let found = driver.members[place.member.at()][place.at.0 as usize];
                assert_eq!(found, *byte, "{name}: sector {at}, copy {copy}");
            }
        }
    }
}

#[test]
fn a_drive_is_rebuilt_within_its_array() {
    for name in [
        "raid5+0(2x3) chunk=4K",
        "raid6+0(2x4) chunk=4K",
        "raid1+0(3x2) chunk=4K",
        "raid5+1(2x3) chunk=4K",
    ] {
        for drive in [0, 4] {
            let (mut driver, bytes) = filled(name);
            let before = driver.members[usize::from(drive)].clone();
            fail(&mut driver, drive);
            assert!(driver.array.is_failed(MemberIndex(drive)));
            assert_eq!(driver.read(0, bytes.len() as u32).as_ref(), Ok(&bytes), "{name}");
            begin_add(&mut driver, drive);
            let work = driver.array.status().work.map(|status| status.work);
            assert_eq!(work, Some(Work::Rebuild(MemberIndex(drive))), "{name}");
            idle(&mut driver);
            assert!(driver.events.contains(&Event::Restored(MemberIndex(drive))), "{name}");
            assert_eq!(driver.members[usize::from(drive)], before, "{name}: drive {drive}");
            assert_eq!(driver.array.status().failed, [0; 2]);
            assert_eq!(driver.read(0, bytes.len() as u32).as_ref(), Ok(&bytes), "{name}");
        }
    }
}

#[test]
fn an_array_that_was_lost_is_rebuilt_as_a_whole() {
    for (name, lost) in [
        ("raid0+1(2x2) chunk=4K", &[1][..]),
        ("raid0+1(2x2) chunk=4K", &[2, 3]),
        ("raid0+5(3x2) chunk=4K", &[2]),
        ("raid5+1(2x3) chunk=4K", &[0, 2]),
    ] {
        let (mut driver, bytes) = filled(name);
        let before = driver.members.clone();
        lost.iter().for_each(|drive| fail(&mut driver, *drive));
        // Written meanwhile.
        assert_eq!(driver.write(8, &[0x77; 8]), Outcome::Done, "{name}");
        assert_eq!(driver.write(8, &bytes[8..16]), Outcome::Done, "{name}");
        driver.events.clear();
        for (n, drive) in lost.iter().enumerate() {
            assert!(driver.array.status().work.is_none(), "{name}: not before all are there");
            begin_add(&mut driver, *drive);
            assert_eq!(refused(&driver), None, "{name}: drive {drive} ({n})");
        }
        let first = MemberIndex(
            lost[0] / layout(name).inner.unwrap().members * layout(name).inner.unwrap().members,
        );
        let work = driver.array.status().work.map(|status| status.work);
        assert_eq!(work, Some(Work::Rebuild(first)), "{name}");
        assert_eq!(driver.array.good_to(MemberIndex(lost[0])), Sector(0), "{name}: not yet");
        idle(&mut driver);
        for drive in lost {
            assert!(driver.events.contains(&Event::Restored(MemberIndex(*drive))), "{name}");
            assert!(!driver.array.is_failed(MemberIndex(*drive)), "{name}");
        }
        let drives = usize::from(layout(name).drives());
        assert_eq!(driver.members[..drives], before[..drives], "{name}");
        // It is as good as before: another array may be lost.
        let other = if lost[0] < 2 { drives as u16 - 1 } else { 0 };
        fail(&mut driver, other);
        assert_eq!(driver.read(0, bytes.len() as u32).as_ref(), Ok(&bytes), "{name}");
    }
}

/// Four stripes, and ranges of a rebuild that are a chunk each: too little of a stripe for its parity to be made of
/// the whole.
const WIDE: Sectors = Sectors(512);

/// How fast the lower arrays work on themselves: before the upper one was anywhere, or after it was everywhere.
const PACES: [Pacing; 2] = [FAST, Pacing::between(1 << 10, 1 << 10)];

/// Loses two drives of the second array of five or more each (three, where two are survived), of which others are in
/// their places then.
fn lose_second(name: &str, pacing: Pacing) -> (Driver<Volume>, Vec<u8>, Vec<u16>) {
    let (mut driver, bytes) = filled_over(name, WIDE, pacing);
    let inner = layout(name).inner.expect("nested");
    let lost: Vec<u16> = (1..).take(1 + usize::from(inner.survives())).collect();
    let lost: Vec<u16> = lost.into_iter().map(|drive| inner.drives() + drive).collect();
    for drive in &lost {
        fail(&mut driver, *drive);
        let stale = (0..WIDE.0).map(|at| (at * 31 + u64::from(*drive) * 17) as u8);
        driver.members[usize::from(*drive)] = stale.collect();
    }
    driver.events.clear();
    (driver, bytes, lost)
}

#[test]
fn an_array_made_anew_has_parity_of_what_is_written_to_it() {
    let names = ["raid5+1(2x5) chunk=64K", "raid6+1(2x7) chunk=64K", "raid4+1(2x5) chunk=64K"];
    for (name, pacing) in names.iter().flat_map(|name| PACES.map(|pacing| (name, pacing))) {
        let each = usize::from(layout(name).inner.expect("nested").drives());
        let (mut driver, bytes, lost) = lose_second(name, pacing);
        for drive in &lost {
            command(&mut driver, Admin::Add { member: MemberIndex(*drive), sectors: WIDE });
        }
        idle(&mut driver);
        assert!(driver.events.contains(&Event::Restored(MemberIndex(lost[0]))), "{name}");
        assert!(!driver.events.contains(&Event::ArrayFailed), "{name}");
        assert!(driver.members[..each] == driver.members[each..2 * each], "{name}");
        let work = driver.array.status().work;
        assert!(work.is_none(), "{name}: all is done: {work:?}");
        // The other array is lost, and a drive of this one: what was on it is computed.
        for drive in (1..).take(lost.len()).chain([each as u16]) {
            fail(&mut driver, drive);
        }
        assert_eq!(driver.read(0, bytes.len() as u32).as_ref(), Ok(&bytes), "{name}");
    }
}

/// Drives of the second array go at one of their I/Os while it is made anew. Whatever has been written to it by then,
/// it gives back what was, or is lost again. True if it is.
fn drives_go(name: &str, pacing: Pacing, going: &[(u16, u16)]) -> bool {
    let context = format!("{name}, {pacing:?}: {going:?}");
    let (mut driver, bytes, lost) = lose_second(name, pacing);
    for drive in &lost {
        driver.input(Input::Admin(Admin::Add { member: MemberIndex(*drive), sectors: WIDE }));
    }
    let (going, mut seen) = (going.to_vec(), [0; 64]);
    driver.fault = Box::new(move |io| {
        let seen = &mut seen[io.member.at()];
        *seen += 1;
        let is_gone = |(drive, nth): &(u16, u16)| io.member.0 == *drive && *seen > *nth;
        if going.iter().any(is_gone) { IoOutcome::Gone } else { IoOutcome::Ok }
    });
    idle(&mut driver);
    assert_eq!(driver.read(0, bytes.len() as u32).as_ref(), Ok(&bytes), "{context}");
    let each = layout(name).inner.expect("nested").drives();
    if (each..2 * each).all(|one| driver.array.is_failed(MemberIndex(one))) {
        return true;
    }
    for drive in (0..).take(lost.len()) {
        fail(&mut driver, drive);
    }
    assert_eq!(driver.read(0, bytes.len() as u32).as_ref(), Ok(&bytes), "{context}");
    false
}

#[test]
fn drives_that_go_while_their_array_is_made_anew_leave_nothing_wrong() {
    let mut lost = [0; 2];
    for (index, name) in ["raid5+1(2x5) chunk=64K", "raid6+1(2x7) chunk=64K"].iter().enumerate() {
        let inner = layout(name).inner.expect("nested");
        let each = inner.drives();
        for (drive, nth) in (0..each).flat_map(|drive| [0, 3, 11].map(|nth| (drive, nth))) {
            // As many as are survived, one after the other.
            let nth_of = |n| (each + (drive + n) % each, nth * (1 + n));
            let going: Vec<(u16, u16)> = (0..inner.survives()).map(nth_of).collect();
            for pacing in PACES {
                lost[index] += u32::from(drives_go(name, pacing, &going));
            }
        }
    }
    // P and Q of a stripe that nobody had made consistent say two things of the drive that went first: what is written
    // beside it and lost then must not be computed from both.
    for (first, (then, nth)) in
        (9..14).flat_map(|first| [(8, 1), (8, 4), (9, 2)].map(|then| (first, then)))
    {
        if first != then {
            drives_go("raid6+1(2x7) chunk=64K", PACES[1], &[(first, 0), (then, nth)]);
        }
    }
    assert_eq!(lost[0], 0, "one parity is always enough for one drive");
    assert!(lost[1] < 2 * 7 * 3, "and two sometimes");
}

#[test]
fn a_drive_that_came_back_to_a_lost_array_and_fails_again_is_not_there() {
    let (mut driver, _) = filled("raid0+1(2x2) chunk=4K");
    fail(&mut driver, 2);
    fail(&mut driver, 3);
    add(&mut driver, 2);
    fail(&mut driver, 2);
    begin_add(&mut driver, 3);
    assert!(driver.array.status().work.is_none(), "drive 2 is not there");
    add(&mut driver, 2);
    idle(&mut driver);
    assert_eq!(driver.members[..2], driver.members[2..4]);
    assert!(!driver.array.is_failed(MemberIndex(2)));
}

#[test]
fn what_makes_no_sense_is_refused() {
    let (mut driver, _) = filled("raid0+1(2x2) chunk=4K");
    let add_of = |member, sectors| Admin::Add { member: MemberIndex(member), sectors };
    let expect = |driver: &mut Driver<Volume>, one: Admin, reason: Refusal| {
        driver.events.clear();
        command(driver, one);
        assert_eq!(driver.events, [Event::Refused(reason)], "{one:?}");
    };
    expect(&mut driver, add_of(9, DRIVE), Refusal::NoSuchMember);
    expect(&mut driver, Admin::Fail(MemberIndex(4)), Refusal::NoSuchMember);
    // A stripe has nothing to rebuild a drive from, and this one is in service.
    expect(&mut driver, add_of(0, DRIVE), Refusal::NoRedundancy);
    fail(&mut driver, 0);
    expect(&mut driver, add_of(1, DRIVE), Refusal::InService);
    expect(&mut driver, add_of(0, Sectors(63)), Refusal::TooSmall);
    let scrub = Admin::StartScrub(Scrub::Check);
    expect(&mut driver, scrub, Refusal::Degraded);
    fail(&mut driver, 2);
    expect(&mut driver, add_of(0, DRIVE), Refusal::ArrayFailed);
    let (mut stripes, _) = filled("raid0+0(2x2) chunk=4K");
    expect(&mut stripes, scrub, Refusal::NoRedundancy);
}

#[test]
fn a_drive_is_not_added_while_the_lost_array_has_ios_in_flight() {
    let (mut driver, _) = filled("raid0+1(2x2) chunk=4K");
    let id = driver.begin_write(0, &[1; 32], false);
    driver.input(Input::Admin(Admin::Fail(MemberIndex(0))));
    driver.input(Input::Admin(Admin::Add { member: MemberIndex(0), sectors: DRIVE }));
    assert_eq!(refused(&driver), Some(Refusal::InFlight));
    driver.run();
    assert_eq!(driver.outcome(id), Some(Outcome::Done), "the other stripe has it");
    driver.events.clear();
    add(&mut driver, 0);
    idle(&mut driver);
    assert_eq!(driver.members[0], driver.members[2]);
    assert_eq!(driver.members[1], driver.members[3]);
}

#[test]
fn a_scrub_of_all_arrays_is_told_as_one() {
    for (name, drive, repair) in [
        ("raid5+0(2x3) chunk=4K", 1u16, Scrub::Check),
        ("raid1+0(3x2) chunk=4K", 5, Scrub::Repair(RepairSource::Data)),
        ("raid5+1(2x3) chunk=4K", 2, Scrub::Check),
    ] {
        let (mut driver, _) = filled(name);
        let before = driver.members.clone();
        driver.members[usize::from(drive)][3] ^= 0xff;
        command(&mut driver, Admin::StartScrub(repair));
        idle(&mut driver);
        let told =
            |one: fn(&Event) -> bool| driver.events.iter().filter(|event| one(event)).count();
        assert_eq!(told(|event| matches!(event, Event::Started(Work::Scrub(_)))), 1, "{name}");
        let ends: Vec<_> = driver
            .events
            .iter()
            .filter_map(|event| match event {
                Event::Finished { work: Work::Scrub(_), mismatched, .. } => Some(mismatched.0),
                _ => None,
            })
            .collect();
        assert!(matches!(ends[..], [mismatched] if mismatched > 0), "{name}: {ends:?}");
        if repair != Scrub::Check {
            assert_eq!(driver.members, before, "{name}");
        }
        // The next may begin.
        driver.events.clear();
        command(&mut driver, Admin::StartScrub(Scrub::Check));
        assert_eq!(refused(&driver), None, "{name}");
    }
}

#[test]
fn a_scrub_of_which_one_array_was_broken_off_is_told_as_broken_off() {
    for drive in 0..4 {
        let (mut driver, _) = filled("raid1+0(2x2) chunk=4K");
        let scrub = Work::Scrub(Scrub::Check);
        driver.input(Input::Admin(Admin::StartScrub(Scrub::Check)));
        driver.input(Input::Admin(Admin::Fail(MemberIndex(drive))));
        idle(&mut driver);
        let ends = |event: &&Event| {
            matches!(event, Event::Finished { .. } | Event::Interrupted(Work::Scrub(_)))
        };
        let ends: Vec<_> = driver.events.iter().filter(ends).collect();
        assert_eq!(ends, [&Event::Interrupted(scrub)], "drive {drive}");
    }
}

#[test]
fn a_drive_of_an_array_that_is_lost_fails_and_nothing_is_refused() {
    for name in ["raid0+1(2x2) chunk=4K", "raid5+1(2x3) chunk=4K"] {
        let (mut driver, bytes) = filled(name);
        let each = layout(name).inner.expect("nested").drives();
        for drive in 0..each {
            fail(&mut driver, drive);
            assert!(driver.array.is_failed(MemberIndex(drive)), "{name}");
            assert_eq!(refused(&driver), None, "{name}: drive {drive}");
        }
        assert_eq!(driver.read(0, bytes.len() as u32).as_ref(), Ok(&bytes), "{name}");
    }
}

/// What cannot be recovered is told once for all arrays, whichever of them ends last.
#[test]
fn a_scrub_of_all_arrays_adds_up_what_they_lost() {
    for lost in [[1, 0], [0, 2], [3, 1], [0, 0]] {
        let (mut driver, _) = filled("raid5+0(2x3) chunk=4K");
        // Two drives of an array cannot read the same sectors: no third is enough.
        driver.fault = Box::new(move |io| {
            let (array, drive) = (usize::from(io.member.0 / 3), io.member.0 % 3);
            match io.op == IoOp::Read && drive < 2 && io.at.0 < lost[array] {
                true => IoOutcome::MediaError { first_bad: io.at },
                false => IoOutcome::Ok,
            }
        });
        command(&mut driver, Admin::StartScrub(Scrub::Check));
        idle(&mut driver);
        let told = driver.events.iter().find_map(|event| match event {
            Event::Finished { work: Work::Scrub(_), lost, .. } => Some(lost.0),
            _ => None,
        });
        assert_eq!(told, Some(lost[0] + lost[1]), "{lost:?}: {:?}", driver.events);
    }
}

#[test]
fn a_stop_is_told_once_when_all_arrays_have_stopped() {
    let (mut driver, bytes) = filled("raid5+0(3x3) chunk=4K");
    fail(&mut driver, 4);
    driver.events.clear();
    command(&mut driver, Admin::Stop);
    idle(&mut driver);
    assert_eq!(driver.events, [Event::Stopped]);
    assert_ne!(driver.write(0, &[1; 8]), Outcome::Done);
    assert_eq!(driver.read(0, 8).as_deref(), Ok(&bytes[..8]));
}

/// Of what the stop flushes on each drive one is gone, and an array with it.
#[test]
fn a_stop_ends_though_an_array_is_lost_in_it() {
    for (name, nth) in
        [("raid0+1(2x2) chunk=4K", 0), ("raid0+1(2x2) chunk=4K", 1), ("raid0+0(2x2) chunk=4K", 1)]
    {
        for drive in 0..4 {
            let (mut driver, _) = filled(name);
            let mut flushes = 0;
            driver.fault = Box::new(move |io| {
                let is_it = io.op == IoOp::Flush && io.member.0 == drive;
                flushes += usize::from(is_it);
                if is_it && flushes > nth { IoOutcome::Gone } else { IoOutcome::Ok }
            });
            command(&mut driver, Admin::Stop);
            idle(&mut driver);
            let told = |event| driver.events.iter().filter(|one| **one == event).count();
            let context = format!("{name}, drive {drive}: {:?}", driver.events);
            assert_eq!(told(Event::MemberFailed(MemberIndex(drive))), 1, "{context}");
            let is_lost = name.starts_with("raid0+0");
            assert_eq!(told(Event::ArrayFailed), usize::from(is_lost), "{context}");
            assert_eq!(told(Event::Stopped), usize::from(!is_lost), "{context}");
        }
    }
    // A drive that fails when its array has stopped counts it no second time.
    let (mut driver, _) = filled("raid0+1(3x2) chunk=4K");
    fail(&mut driver, 0);
    driver.events.clear();
    driver.input(Input::Admin(Admin::Stop));
    driver.input(Input::Admin(Admin::Fail(MemberIndex(1))));
    let told = |driver: &Driver<Volume>| driver.events.contains(&Event::Stopped);
    while !driver.work.is_empty() {
        assert!(!told(&driver), "not before all drives are flushed");
        driver.step(0);
    }
    assert!(told(&driver));
}

#[test]
fn a_drive_is_replaced_while_it_serves() {
    for drive in 0..8 {
        let (mut driver, bytes) = filled("raid6+0(2x4) chunk=4K");
        let before = driver.members.clone();
        let member = MemberIndex(drive);
        command(&mut driver, Admin::Replace { member, sectors: DRIVE, consent: true });
        assert_eq!(refused(&driver), None);
        idle(&mut driver);
        assert!(driver.events.contains(&Event::Replaced(member)), "{:?}", driver.events);
        let copy = driver.array.replacement(member).at();
        assert_eq!(copy, 8 + usize::from(drive));
        // The copy is where the volume says, and nothing else has changed.
        let mut after = before.clone();
        after[copy].clone_from(&before[usize::from(drive)]);
        assert!(driver.members == after, "drive {drive}");
        assert_eq!(driver.read(0, 8).as_deref(), Ok(&bytes[..8]));
    }
}

#[test]
fn what_nested_levels_do_not_have_is_refused_by_name() {
    let refusal = |config: &Config| Volume::new(config).expect_err("cannot be");
    let mut with_bitmap = config("raid5+0(2x3) chunk=4K");
    with_bitmap.settings.consistency = raidlab_core::Consistency::Resync;
    let ConfigError { key, reason } = refusal(&with_bitmap);
    assert_eq!(key, "consistency");
    assert!(reason.contains("nested levels keep no superblocks"), "{reason}");
    let mut few = config("raid5+0(2x3) chunk=4K");
    few.members.pop();
    assert_eq!(refusal(&few).to_string(), "members: 5 given for 6 drives");
    let array = raidlab_core::Array::new(&config("raid5+0(2x3) chunk=4K"));
    assert_eq!(array.map(|_| ()).expect_err("is not one array").key, "level");
    assert!(matches!(Volume::new(&config("raid5(3) chunk=4K")), Ok(Volume::Flat(_))));
}

/// An array's capacity and block are known without its memory, and what cannot be is refused alike.
#[test]
fn an_extent_is_that_of_the_array() {
    let names =
        ["raid10(4)", "raid3(5)", "raid5+0(2x3) chunk=4K", "raid6(5)", "linear(3)", "raid1(2)"];
    let all = crate::support::small_arrays(16).chain(names.iter().map(|name| layout(name)));
    let mut refused = 0;
    for layout in all {
        for (sectors, block) in [(1 << 20, 1), (1001, 1), (4096, 8), (1001, 8), (1, 1)] {
            let mut config = Config::uniform(layout.clone(), Sectors(sectors));
            config.members.iter_mut().for_each(|member| member.logical_block = block);
            config.members[0].sectors.0 += 16;
            let array = Volume::new(&config);
            match (Volume::extent(&config), array) {
                (Ok((capacity, block)), Ok(array)) => {
                    assert_eq!(
                        (capacity, block),
                        (array.capacity(), array.logical_block()),
                        "{layout}"
                    );
                }
                (Err(one), Err(other)) => {
                    refused += 1;
                    assert_eq!(one, other, "{layout}");
                }
                (one, _) => panic!("{layout}, {sectors} sectors in blocks of {block}: {one:?}"),
            }
        }
    }
    assert!(refused > 0, "some have no room");
}
