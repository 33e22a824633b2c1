//! What is recorded before writes go out and before they are answered, in any order of completion.

use std::cell::Cell;
use std::rc::Rc;

use crate::support::records::superblocks;
use crate::support::{Driver, Word, Work, field};
use raidlab_core::consistency::Examined;
use raidlab_core::contract::{Admin, Event, Input, IoOp, IoOutcome, Outcome, Record};
use raidlab_core::geometry::{Holds, Place};
use raidlab_core::{
    Array, Config, Consistency, Layout, Level, Limits, MemberIndex, Nanos, Sector, Sectors,
};
use raidlab_random::SplitMix64;

const SECTORS: u64 = 64;
const CHUNK: Sectors = Sectors(4);

#[cfg(debug_assertions)]
thread_local! {
    /// What the next array is planted with.
    static PLANTED: Cell<Option<raidlab_core::bugs::Bug>> = const { Cell::new(None) };
}

fn layouts() -> Vec<Layout> {
    let chunk = Sectors(8);
    vec![
        Layout::new(Level::Raid1, 2),
        Layout::new(Level::Raid1, 3),
        Layout::new(Level::Raid3, 3),
        Layout::new(Level::Raid4, 4).with_chunk(chunk),
        Layout::new(Level::Raid5, 3).with_chunk(chunk),
        Layout::new(Level::Raid6, 4).with_chunk(chunk),
        Layout::new(Level::Raid10, 4).with_chunk(chunk),
    ]
}

fn modes() -> [Consistency; 2] {
    [Consistency::Resync, Consistency::Bitmap { chunk: CHUNK }]
}

fn config(layout: &Layout, mode: Consistency) -> Config {
    let mut config = Config::uniform(layout.clone(), Sectors(SECTORS));
    config.limits = Limits { requests: 6, segments: 5, ios: 1, plans: 4, windows: 1 };
    config.settings.consistency = mode;
    config.settings.clean_after = Nanos(30);
    config.settings.bitmap_delay = Nanos(70);
    config
}

fn every_kind() -> Vec<Config> {
    let kinds = layouts().into_iter().flat_map(|l| modes().map(|mode| config(&l, mode)));
    kinds.collect()
}

/// The bits that a member I/O of the array needs.
fn bits_of(driver: &Driver, member: u16, at: u64, len: u64) -> Vec<u64> {
    let geometry = driver.array.geometry();
    let bit =
        |row: u64| match geometry.holds(Place { member: MemberIndex(member), at: Sector(row) }) {
            Holds::Data { at, .. } if geometry.copies() > 1 => at.0 / CHUNK.0,
            _ => row / CHUNK.0,
        };
    (at..at + len).map(bit).collect()
}

/// Sees that no rule is broken between two inputs. `seen` is how much of the log was looked at.
fn rules_hold(driver: &Driver, bitmap: bool, seen: &mut usize, replied: &mut usize, context: &str) {
    let serving = driver.in_service();
    let superblocks: Vec<_> =
        serving.iter().map(|m| driver.records.superblock(*m).expect("formatted")).collect();
    let newest = superblocks.iter().map(|one| one.events).max().unwrap_or(0);
    for (member, superblock) in serving.iter().zip(&superblocks) {
        assert!(superblock.events + 1 >= newest, "{context}: {member} at {}", superblock.events);
        if superblock.clean && superblock.events == newest {
            for device in &serving {
                let cached = driver.caches.is_dirty(usize::from(*device));
                assert!(!cached, "{context}: clean while {device} was not flushed");
            }
            let writing = |work: &Work| matches!(work, Work::Io(io) if io.op == IoOp::Write);
            assert!(!driver.work.iter().any(writing), "{context}: clean while writing");
        }
    }
    let in_flight = driver.work.iter().filter_map(|work| match work {
        Work::Io(io) => Some(io),
        _ => None,
    });
    for io in driver.log[*seen..].iter().chain(in_flight) {
        if matches!(io.op, IoOp::Read | IoOp::Flush) {
            continue;
        }
        assert!(superblocks.iter().all(|one| !one.clean), "{context}: {io:?} while clean");
        for bit in bits_of(driver, io.member.0, io.at.0, u64::from(io.len)) {
            let set = serving.iter().all(|m| driver.records.bit(*m, bit));
            assert!(!bitmap || set, "{context}: {io:?} before bit {bit}");
        }
    }
    *seen = driver.log.len();
    let failed: Vec<u16> =
        (0..driver.array.layout().members).filter(|m| !serving.contains(m)).collect();
    for (id, outcome) in &driver.replies[*replied..] {
        if *outcome == Outcome::Done && driver.is_change(*id) {
            let told = |m: &u16| superblocks.iter().all(|one| one.failed[0] >> m & 1 == 1);
            assert!(failed.iter().all(told), "{context}: {id:?} before {failed:?} was recorded");
        }
    }
    *replied = driver.replies.len();
}

/// Random requests in random order of completion and with time going on, a member lost on the way;
/// the rules are looked at after each step.
fn steps_keep_the_rules(config: &Config, seed: u64, steps: u32, lost: Option<u16>) -> Driver {
    let context = format!("{} {:?} seed {seed}", config.layout, config.settings.consistency);
    let mut random = SplitMix64::new(seed);
    let mut driver = Driver::new(config);
    #[cfg(debug_assertions)]
    if let Some(bug) = PLANTED.get() {
        driver.array.plant(bug);
    }
    driver.caches.begin();
    let bitmap = matches!(config.settings.consistency, Consistency::Bitmap { .. });
    let fails_at = random.below(40);
    let seen_ios = Rc::new(Cell::new(0));
    if let Some(lost) = lost {
        driver.fault = Box::new(move |io| {
            seen_ios.set(seen_ios.get() + 1);
            let gone = io.member == MemberIndex(lost) && seen_ios.get() > fails_at;
            if gone { IoOutcome::Gone } else { IoOutcome::Ok }
        });
    }
    let (mut seen, mut replied) = (0, 0);
    for _ in 0..steps {
        step(&mut driver, &mut random);
        rules_hold(&driver, bitmap, &mut seen, &mut replied, &context);
    }
    driver
}

/// One request, completion or wait.
fn step(driver: &mut Driver, random: &mut SplitMix64) {
    let unit = u64::from(driver.array.logical_block());
    let capacity = driver.array.capacity().0;
    // Time goes on with each step: now there is much to do, now little.
    let busy = driver.now.0 / 64 % 2 == 0;
    match random.below(8) {
        0 | 1 if driver.array.can_accept() && (busy || driver.now.0 % 32 == 0) => {
            let at = random.below(capacity / unit) * unit;
            let len = ((1 + random.below(6)) * unit).min(capacity - at);
            let bytes: Vec<u8> = (0..len).map(|_| random.next_u64() as u8).collect();
            driver.begin_write(at, &bytes, random.below(4) == 0);
        }
        2 if driver.array.can_accept() && random.below(4) == 0 => {
            driver.submit(IoOp::Flush, 0, &[]);
        }
        3 | 4 if random.below(2) == 0 => {
            if let Some(at) = driver.wake.filter(|_| driver.work.len() < 2) {
                driver.wake = None;
                driver.now = driver.now.max(at);
                driver.input(Input::Wake);
            }
        }
        _ if !driver.work.is_empty() => {
            let index = random.below(driver.work.len() as u64) as usize;
            driver.step(index);
        }
        _ => {}
    }
}

#[test]
fn no_write_goes_out_before_the_array_is_marked_dirty() {
    for config in every_kind() {
        let mut turns = 0;
        for seed in 0..30 {
            let driver = steps_keep_the_rules(&config, seed, 600, None);
            turns += driver.records.superblock(0).map_or(0, |one| one.events);
            assert!(driver.replies.len() > 5, "{}", config.layout);
        }
        assert!(turns > 30 * 4, "{}: {turns}: now clean, now dirty", config.layout);
    }
}

#[test]
fn bits_are_durable_before_data_in_any_order() {
    let bitmaps = every_kind().into_iter();
    let bitmap = |c: &Config| matches!(c.settings.consistency, Consistency::Bitmap { .. });
    // Of several pages, by themselves and of one block.
    let larger = |packed_bitmap| {
        move |mut config: Config| {
            config.members.iter_mut().for_each(|one| one.sectors = Sectors(1024));
            config.settings.packed_bitmap = packed_bitmap;
            config
        }
    };
    let one_page: Vec<Config> = bitmaps.filter(bitmap).collect();
    let of_pages = one_page.iter().cloned().map(larger(false));
    let of_a_block = one_page.iter().cloned().map(larger(true));
    for config in of_pages.chain(of_a_block).chain(one_page.clone()) {
        let mut cleared = 0;
        for seed in 100..130 {
            let mut driver = steps_keep_the_rules(&config, seed, 400, None);
            let before = bits_set(&driver);
            driver.run_until_idle(20);
            let after = bits_set(&driver);
            cleared += usize::from(before > 0 && after == 0);
            assert_eq!(after, 0, "{}: quiet for long enough", config.layout);
        }
        assert!(cleared > 10, "{}: {cleared}", config.layout);
    }
}

fn bits_set(driver: &Driver) -> usize {
    (0..1000).filter(|bit| driver.in_service().iter().any(|m| driver.records.bit(*m, *bit))).count()
}

#[test]
fn a_failure_is_recorded_before_anything_that_ends_after_it_is_answered() {
    for config in every_kind() {
        for lost in 0..config.layout.members {
            let mut answered = 0;
            for seed in 0..20 {
                let driver = steps_keep_the_rules(&config, seed, 300, Some(lost));
                if driver.array.is_failed(MemberIndex(lost)) {
                    let told = driver.events.iter();
                    assert!(told.clone().any(|e| *e == Event::MemberFailed(MemberIndex(lost))));
                    answered += driver.replies.len();
                }
            }
            assert!(answered > 20, "{} {lost}: {answered}", config.layout);
        }
    }
}

#[test]
fn members_in_service_are_never_two_events_apart() {
    // The same rules, with superblock writes that fail.
    for config in every_kind() {
        for seed in 0..30 {
            let mut random = SplitMix64::new(seed);
            let mut driver = Driver::new(&config);
            driver.caches.begin();
            let lost = random.below(u64::from(config.layout.members)) as u16;
            let (mut nth, at) = (0, random.below(12));
            driver.meta_fault = Box::new(move |meta| {
                nth += u64::from(meta.member.0 == lost);
                let fails = meta.member.0 == lost && nth > at;
                if fails { IoOutcome::Timeout } else { IoOutcome::Ok }
            });
            let (mut seen, mut replied) = (0, 0);
            let bitmap = matches!(config.settings.consistency, Consistency::Bitmap { .. });
            for _ in 0..300 {
                step(&mut driver, &mut random);
                rules_hold(
                    &driver,
                    bitmap,
                    &mut seen,
                    &mut replied,
                    &format!("{} {seed}", config.layout),
                );
            }
        }
    }
}

#[test]
fn a_bit_is_cleared_after_two_quiet_looks_and_a_flush() {
    let layout = Layout::new(Level::Raid1, 2);
    let config = config(&layout, Consistency::Bitmap { chunk: CHUNK });
    let mut driver = Driver::new(&config);
    driver.caches.begin();
    assert_eq!(driver.write(5, &[1, 2]), Outcome::Done);
    assert!(driver.records.bit(0, 1) && driver.records.bit(1, 1));
    assert!(!driver.records.bit(0, 0) && !driver.records.bit(0, 2));
    let mut looks = 0;
    while bits_set(&driver) > 0 {
        looks += 1;
        assert!(looks < 10);
        let at = driver.wake.take().expect("something to wait for");
        driver.now = driver.now.max(at);
        driver.input(Input::Wake);
        while !driver.work.is_empty() {
            // A page goes out only when nothing is in a cache.
            let page = driver.work.iter().any(|work| match work {
                Work::Meta(io) => {
                    let meta = driver.array.meta(*io).expect("wanted");
                    matches!(meta.record, Record::BitmapPage { .. })
                }
                _ => false,
            });
            assert!(!page || !driver.caches.is_dirty(0) && !driver.caches.is_dirty(1));
            driver.step(0);
        }
    }
    assert!(looks >= 3, "clean, and two looks: {looks}");
    assert_eq!(driver.wake, None, "an idle array wants nothing");
}

#[test]
fn a_write_between_two_looks_keeps_its_bit() {
    let layout = Layout::new(Level::Raid5, 3).with_chunk(Sectors(8));
    let config = config(&layout, Consistency::Bitmap { chunk: CHUNK });
    for seed in 0..200 {
        let mut random = SplitMix64::new(seed);
        let mut driver = Driver::new(&config);
        assert_eq!(driver.write(0, &[1]), Outcome::Done);
        let mut held = 0;
        for _ in 0..400 {
            // One write is always under way to the same row, begun before the one before ends.
            if driver.work.len() < 2 && driver.array.can_accept() {
                driver.begin_write(0, &[seed as u8], false);
            }
            if random.below(3) == 0
                && let Some(at) = driver.wake.take()
            {
                driver.now = driver.now.max(at);
                driver.input(Input::Wake);
            }
            let writes = |work: &Work| matches!(work, Work::Io(io) if io.op == IoOp::Write);
            if driver.work.iter().any(writes) {
                held += 1;
                assert!((0..3).all(|m| driver.records.bit(m, 0)), "seed {seed}");
            }
            let index = random.below(driver.work.len() as u64) as usize;
            driver.step(index);
        }
        assert!(held > 20);
    }
}

#[test]
fn bits_stay_while_a_member_is_missing() {
    for layout in
        [Layout::new(Level::Raid1, 2), Layout::new(Level::Raid5, 3).with_chunk(Sectors(8))]
    {
        let config = config(&layout, Consistency::Bitmap { chunk: CHUNK });
        let mut driver = Driver::new(&config);
        assert_eq!(driver.write(0, &[1]), Outcome::Done);
        driver.fail(1);
        driver.run();
        assert_eq!(driver.write(30, &[1]), Outcome::Done);
        let before = bits_set(&driver);
        assert!(before >= 2);
        driver.run_until_idle(50);
        assert_eq!(bits_set(&driver), before);
        let superblock = driver.records.superblock(0).expect("formatted");
        assert!(superblock.clean, "that it may be while a member is missing");
        assert!(superblock.bitmap_since <= 1, "nothing was ever cleared");
    }
}

#[test]
fn a_huge_bitmap_is_refused_and_a_chunk_that_fits_named() {
    let layout = Layout::new(Level::Raid1, 2);
    let mut config = Config::uniform(layout, Sectors(1 << 40));
    config.settings.consistency = Consistency::Bitmap { chunk: Sectors(1 << 10) };
    let error = Array::new(&config).expect_err("2^30 bits");
    assert_eq!(error.key, "consistency");
    assert!(error.reason.contains(&Sectors(1 << 16).to_string()), "{error}");
    config.settings.consistency = Consistency::Bitmap { chunk: Sectors(1 << 16) };
    assert!(Array::new(&config).is_ok());
}

#[test]
fn a_request_over_many_pages_waits_for_all_of_them() {
    let layout = Layout::new(Level::Raid1, 2);
    let mut config = Config::uniform(layout, Sectors(4096));
    config.settings.consistency = Consistency::Bitmap { chunk: Sectors(1) };
    for seed in 0..20 {
        let mut driver = Driver::new(&config);
        driver.begin_write(100, &vec![7; 3000], false);
        driver.begin_write(3500, &[7; 100], false);
        let mut random = SplitMix64::new(seed);
        while !driver.work.is_empty() {
            let index = random.below(driver.work.len() as u64) as usize;
            driver.step(index);
            for io in driver.log.iter().filter(|io| io.op == IoOp::Write) {
                let range = io.at.0..io.at.0 + u64::from(io.len);
                assert!(range.clone().all(|bit| driver.records.bit(0, bit)), "{io:?}");
                assert!(range.clone().all(|bit| driver.records.bit(1, bit)), "{io:?}");
            }
        }
        assert_eq!(driver.replies.len(), 2);
    }
}

#[test]
fn a_stop_waits_flushes_and_marks_clean() {
    for config in every_kind() {
        for seed in 0..20 {
            let mut random = SplitMix64::new(seed);
            let mut driver = Driver::new(&config);
            driver.caches.begin();
            for _ in 0..random.below(30) {
                step(&mut driver, &mut random);
            }
            driver.input(Input::Admin(Admin::Stop));
            let late =
                driver.begin_write(0, &vec![1; driver.array.logical_block() as usize], false);
            driver.run_shuffled(&mut random);
            assert!(matches!(driver.outcome(late), Some(Outcome::Stopped | Outcome::Busy)));
            assert_eq!(driver.events.last(), Some(&Event::Stopped), "{} {seed}", config.layout);
            for member in 0..config.layout.members {
                assert!(driver.records.superblock(member).is_some_and(|one| one.clean));
                assert!(!driver.caches.is_dirty(usize::from(member)));
            }
            let held = driver.array.capacity().0 as u32;
            let before = driver.read(0, held).expect("reads go on");
            driver.crash(&config, &mut random, &[], Word::default()).expect("clean and complete");
            assert_eq!(driver.read(0, held), Ok(before));
            assert!(driver.work.is_empty() && driver.events.is_empty(), "nothing to do");
        }
    }
}

#[test]
fn a_stop_without_superblocks_flushes() {
    for layout in layouts() {
        let mut driver = Driver::new(&config(&layout, Consistency::None));
        driver.caches.begin();
        let unit = driver.array.logical_block() as usize;
        driver.begin_write(0, &vec![1; unit], false);
        driver.input(Input::Admin(Admin::Stop));
        assert!(!driver.events.contains(&Event::Stopped));
        driver.run();
        assert_eq!(driver.events.last(), Some(&Event::Stopped));
        assert!((0..usize::from(layout.members)).all(|m| !driver.caches.is_dirty(m)));
        assert_eq!(driver.write(0, &vec![1; unit]), Outcome::Stopped);
    }
}

/// Rows of the members (sectors of the array, on mirrors) where redundancy disagrees.
fn disagreeing(driver: &Driver) -> Vec<u64> {
    let geometry = driver.array.geometry();
    if geometry.copies() > 1 {
        let differs = |at: &u64| {
            let byte = |copy| {
                let place = geometry.place(Sector(*at), copy);
                driver.members[place.member.at()][place.at.0 as usize]
            };
            (1..geometry.copies()).any(|copy| byte(copy) != byte(0))
        };
        return (0..driver.array.capacity().0).filter(differs).collect();
    }
    (0..SECTORS).filter(|row| !row_agrees(driver, *row)).collect()
}

fn row_agrees(driver: &Driver, row: u64) -> bool {
    let geometry = driver.array.geometry();
    let (mut p, mut q) = (0, 0);
    for member in 0..driver.array.layout().members {
        let place = Place { member: MemberIndex(member), at: Sector(row) };
        let byte = driver.members[usize::from(member)][row as usize];
        match geometry.holds(place) {
            Holds::P { .. } => p ^= byte,
            Holds::Q { .. } => q ^= byte,
            Holds::Data { at, .. } => {
                p ^= byte;
                if let raidlab_core::geometry::Geometry::Parity(parity) = geometry
                    && parity.parities() > 1
                {
                    let place = parity.stripe_place(at);
                    let exponent = parity.q_exponent(place.stripe, place.chunk);
                    q ^= field::multiply(field::power(exponent), byte);
                }
            }
            _ => {}
        }
    }
    p == 0 && q == 0
}

#[test]
fn a_member_that_comes_back_gets_a_write_that_began_without_it() {
    let bitmap = Consistency::Bitmap { chunk: CHUNK };
    for layout in layouts() {
        let config = config(&layout, bitmap);
        for member in 0..layout.members {
            for steps in 0..24 {
                let context = format!("{layout} member {member} after {steps} steps");
                let mut driver = Driver::new(&config);
                driver.run();
                driver.input(Input::Admin(Admin::Fail(MemberIndex(member))));
                driver.run();
                let unit = driver.array.logical_block() as usize;
                driver.begin_write(0, &vec![0x5a; unit], false);
                (0..steps).for_each(|_| match driver.work.is_empty() {
                    true => {}
                    false => driver.step(0),
                });
                let events = driver.records.superblock(member).expect("it was there").events;
                let command =
                    Admin::ReAdd { member: MemberIndex(member), events, good_to: Sector::MAX };
                driver.input(Input::Admin(command));
                // What the write still has to do takes longest.
                while !driver.work.is_empty() {
                    driver.step(driver.work.len() - 1);
                }
                driver.run_until_idle(30);
                assert!(driver.events.contains(&Event::Restored(MemberIndex(member))), "{context}");
                assert_eq!(disagreeing(&driver), [], "{context}");
            }
        }
    }
}

#[test]
fn a_member_is_said_to_be_back_when_superblocks_say_so() {
    for config in every_kind() {
        for seed in 0..20 {
            let context = format!("{} seed {seed}", config.layout);
            let mut random = SplitMix64::new(seed);
            let mut driver = Driver::new(&config);
            driver.input(Input::Admin(Admin::Fail(MemberIndex(1))));
            driver.run();
            let command = Admin::Add { member: MemberIndex(1), sectors: Sectors(SECTORS) };
            driver.records.wipe(1);
            driver.input(Input::Admin(command));
            while !driver.events.contains(&Event::Restored(MemberIndex(1))) {
                match driver.work.len() as u64 {
                    0 => {
                        driver.now = driver.wake.take().expect("it goes on some time");
                        driver.input(Input::Wake);
                    }
                    work => driver.step(random.below(work) as usize),
                }
            }
            for member in 0..config.layout.members {
                let said = driver.records.superblock(member).expect("written");
                assert_eq!((said.failed[0], said.rebuilding[0]), (0, 0), "{context} {member}");
            }
        }
    }
}

#[test]
fn after_a_crash_what_disagrees_is_known() {
    for config in every_kind() {
        let mut disagreed = 0;
        for seed in 0..150 {
            let mut random = SplitMix64::new(seed);
            let mut driver = Driver::new(&config);
            driver.caches.begin();
            for _ in 0..20 + random.below(150) {
                step(&mut driver, &mut random);
            }
            driver.lose_power(&mut random);
            let rows = disagreeing(&driver);
            disagreed += rows.len();
            let found = driver.records.found(&config, &driver.members, &[]);
            let newest = superblocks(&found).max_by_key(|one| one.events);
            let clean = newest.expect("formatted").clean;
            assert!(
                !clean || rows.is_empty(),
                "{} seed {seed}: clean, but {rows:?}",
                config.layout
            );
            if matches!(config.settings.consistency, Consistency::Bitmap { .. }) {
                for row in rows {
                    let bit = (row / CHUNK.0) as usize;
                    let page = |one: &Examined| one.bitmap.get(bit / 64)?.whole().copied();
                    let pages = found.members.iter().filter_map(page);
                    let named = pages.fold(0, |all, page| all | page) >> (bit % 64) & 1 == 1;
                    assert!(named, "{} seed {seed}: row {row} is not named", config.layout);
                }
            }
        }
        assert!(disagreed > 20, "{}: {disagreed}: crashes do harm", config.layout);
    }
}

#[cfg(debug_assertions)]
mod planted {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use raidlab_core::bugs::Bug;

    use super::*;

    /// Runs what the tests above run, on an array with a bug; whether they see it.
    fn is_seen(bug: Bug, config: &Config, lost: Option<u16>) -> bool {
        (0..60).any(|seed| {
            let run = || {
                PLANTED.set(Some(bug));
                steps_keep_the_rules(config, seed, 400, lost);
            };
            let seen = catch_unwind(AssertUnwindSafe(run)).is_err();
            PLANTED.set(None);
            seen
        })
    }

    #[test]
    fn the_rules_see_every_bug_that_breaks_them() {
        let layout = Layout::new(Level::Raid5, 3).with_chunk(Sectors(8));
        let config = config(&layout, Consistency::Bitmap { chunk: CHUNK });
        for (bug, lost) in [
            (Bug::DirtyFlagLate, None),
            (Bug::CleanUnflushed, None),
            (Bug::BitmapBitLate, None),
            (Bug::BitmapClearBusy, None),
            (Bug::FailureNotRecorded, Some(1)),
            (Bug::AckBeforeRecorded, Some(1)),
        ] {
            assert!(is_seen(bug, &config, lost), "{bug:?}");
        }
        assert!(!is_seen(Bug::SkipMirrorLock, &config, Some(1)), "none that is not there");
    }
}

/// A drive that has just taken a member's place is told so on all before anything is answered: the drive it
/// replaced would else be taken for it, without what was written since.
#[test]
fn nothing_is_answered_before_it_is_recorded_who_took_over() {
    for mode in modes() {
        let mut config = config(&Layout::new(Level::Raid1, 2), mode);
        // It is dirty, so that a write asks for no record of its own.
        config.settings.clean_after = Nanos::from_millis(1000);
        config.settings.bitmap_delay = Nanos::from_millis(1000);
        let mut driver = Driver::new(&config);
        assert_eq!(driver.write(0, &[1; 8]), Outcome::Done);
        let (member, sectors) = (MemberIndex(1), Sectors(SECTORS));
        driver.input(Input::Admin(Admin::Replace { member, sectors, consent: true }));
        while !driver.events.contains(&Event::Replaced(member)) {
            if driver.work.is_empty() {
                driver.now = driver.wake.take().expect("something goes on").max(driver.now);
                driver.input(Input::Wake);
            } else {
                driver.step(0);
            }
        }
        let id = driver.begin_write(0, &[2; 8], false);
        while let Some(index) = driver.work.iter().position(|work| !matches!(work, Work::Meta(_))) {
            driver.step(index);
        }
        assert_eq!(driver.outcome(id), None, "{mode:?}");
        driver.run_until_idle(20);
        assert_eq!(driver.outcome(id), Some(Outcome::Done), "{mode:?}");
    }
}
