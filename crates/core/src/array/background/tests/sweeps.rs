//! A piece of work: what it covers, how far it is, when it is over.

use super::*;
use crate::geometry::{Holds, Place};

const REBUILD: Work = Work::Rebuild(ONE);
const SCRUB: Work = Work::Scrub(Scrub::Check);

fn rebuilding(level: Level, members: u16, consistency: Consistency) -> Bench {
    let mut bench = bench(level, members, consistency);
    bench.members.fail(ONE);
    bench.members.begin_rebuild(ONE, None);
    bench
}

/// Where all ranges of the work under way lie, each done at once.
fn all(bench: &mut Bench) -> Vec<(u64, u32)> {
    let mut found = Vec::new();
    while bench.background.is_swept().is_none() {
        assert!(found.len() <= 1 << 14, "a sweep does not end");
        if let Some(slot) = bench.range() {
            let window = bench.background.windows[slot];
            found.push((window.at, window.len));
            bench.end(slot);
        }
    }
    found
}

#[test]
fn work_begins_where_it_was_and_ends_with_whole_blocks() {
    let sweep = 1 << 14;
    let mut bench = bench(Level::Raid5, 4, Consistency::None);
    bench.setup.logical_block = 3;
    bench.members[ONE].good_to = 640;
    let replacement = bench.setup.replacement(ONE);
    bench.members.begin_replace(ONE, replacement, (960, 0));
    bench.background.synced_to = 320;
    let end = sweep / 3 * 3;
    let cases = [(REBUILD, 640), (Work::Replace(ONE), 960), (Work::Resync, 320), (SCRUB, 0)];
    for (serial, (work, from)) in cases.into_iter().enumerate() {
        bench.background.halt();
        bench.begin(work);
        let running = bench.background.work.expect("it is under way");
        assert_eq!((running.cursor, running.end, running.kept), (from, end, from), "{work:?}");
        assert_eq!((running.told, running.began), (from * 64 / end, (from, Time(1))));
        assert_eq!(bench.background.serial, serial as u32 + 1);
        assert!(!bench.background.is_halted());
    }
    bench.background.synced_to = u64::MAX;
    bench.begin(Work::Resync);
    assert_eq!(bench.background.work.map(|running| running.cursor), Some(end));
    // What the bitmap names lies anywhere.
    bench.members.begin_replace(ONE, replacement, (0, 960));
    bench.begin(Work::Replace(ONE));
    assert_eq!(bench.background.work.map(|running| running.cursor), Some(0));
}

#[test]
fn a_sweep_hands_out_everything_once() {
    let mut bench = rebuilding(Level::Raid5, 4, Consistency::None);
    bench.begin(REBUILD);
    let expected: Vec<(u64, u32)> = (0..256).map(|range| (range * 64, 64)).collect();
    assert_eq!(all(&mut bench), expected);
    // Mirrors: sectors of the array.
    let mut mirror = super::bench(Level::Raid10, 4, Consistency::None);
    mirror.begin(SCRUB);
    let expected: Vec<(u64, u32)> = (0..512).map(|range| (range * 64, 64)).collect();
    assert_eq!(all(&mut mirror), expected);
    // What the array does not use is passed over.
    let mut odd = super::bench(Level::Raid10, 3, Consistency::None);
    odd.members.begin_rebuild(MemberIndex(2), None);
    odd.begin(Work::Rebuild(MemberIndex(2)));
    let used = odd.setup.geometry.used(MemberIndex(2)).0;
    assert_eq!(all(&mut odd).iter().map(|(_, len)| u64::from(*len)).sum::<u64>(), used);
}

/// 128 rows of 7 chunks are no multiple of three near copies: the last row of a far section does not reach everybody.
#[test]
fn a_sweep_passes_over_what_lies_unused_between_far_copies() {
    let layout = Layout::new(Level::Raid10, 7).with_far(2).with_near(3).with_chunk(Sectors(64));
    let mut bench = bench_of(&layout, Consistency::None);
    let member = MemberIndex(6);
    let chunks = bench.setup.geometry.used(member).0 / 64;
    let holds = |chunk: &u64| {
        let place = Place { member, at: Sector(64 * chunk) };
        bench.setup.geometry.holds(place) != Holds::Nothing
    };
    let expected = (0..chunks).filter(holds).count();
    assert_eq!(expected as u64, chunks - 1);
    bench.members.begin_rebuild(member, None);
    bench.begin(Work::Rebuild(member));
    assert_eq!(all(&mut bench).len(), expected);
}

#[test]
fn ranges_carry_what_they_are_for() {
    let tasks = [
        (REBUILD, Task::Rebuild(ONE)),
        (Work::Replace(ONE), Task::Replace(ONE)),
        (SCRUB, Task::Scrub(Scrub::Check)),
        (Work::Resync, Task::Resync),
    ];
    for (work, task) in tasks {
        let mut bench = rebuilding(Level::Raid5, 4, Consistency::None);
        bench.members.begin_replace(ONE, bench.setup.replacement(ONE), (0, 0));
        bench.background.synced_to = 0;
        bench.begin(work);
        for range in 0..2 {
            let slot = bench.range().expect("there is work");
            let window = bench.background.windows[slot];
            assert_eq!((window.task, window.serial, window.position), (task, 1, range * 64));
        }
        let running = bench.background.work.expect("it is under way");
        assert_eq!((running.windows, running.cursor), (2, 128));
    }
}

#[test]
fn a_rebuild_by_the_bitmap_leaves_out_what_is_not_named_and_not_being_written() {
    let mut bench = bench(Level::Raid5, 4, Consistency::Bitmap { chunk: Sectors(64) });
    bench.bitmap.begin_with(&[0b1], 0);
    bench.members.begin_rebuild(ONE, Some(Sector(64 * 3)));
    bench.begin(REBUILD);
    assert!(bench.locks.acquire(0, 130, 140), "a write is under way");
    let found: Vec<bool> = (0..4).map(|_| bench.range().is_some()).collect();
    // Named; not; not named yet; and beyond what the bitmap knows.
    assert_eq!(found, [true, false, true, true]);
    let mut replace = super::bench(Level::Raid5, 4, Consistency::Bitmap { chunk: Sectors(64) });
    replace.bitmap.begin_with(&[0b10], 0);
    replace.members.begin_replace(ONE, replace.setup.replacement(ONE), (0, 128));
    replace.begin(Work::Replace(ONE));
    let found: Vec<bool> = (0..3).map(|_| replace.range().is_some()).collect();
    assert_eq!(found, [false, true, true], "what is named, and all that was not filled yet");
    let mut resync = super::bench(Level::Raid5, 4, Consistency::Bitmap { chunk: Sectors(64) });
    let todo = Todo { resync: Resync::ByBitmap, ..Todo::default() };
    resync.background.begin_at_start(todo, &mut resync.members);
    assert!(resync.locks.acquire(0, 0, 8));
    resync.begin(Work::Resync);
    assert_eq!(resync.range(), None, "a write sees to its own");
    let mut every = super::bench(Level::Raid5, 4, Consistency::Bitmap { chunk: Sectors(64) });
    every.background.replay_over(false);
    every.begin(Work::Resync);
    assert!(every.range().is_some(), "all of it");
    every.background.interrupt();
    every.begin(SCRUB);
    assert!(every.range().is_some());
}

#[test]
fn results_of_ranges_add_up() {
    let mut bench = bench(Level::Raid5, 4, Consistency::None);
    bench.begin(SCRUB);
    for (mismatched, lost) in [(3, 0), (4, 2), (0, 5)] {
        let slot = bench.range().expect("there is work");
        let window = &mut bench.background.windows[slot];
        (window.mismatched, window.lost) = (mismatched, lost);
        bench.end(slot);
    }
    let (mismatched, lost) = (Sectors(7), Sectors(7));
    let finished = Event::Finished { work: SCRUB, mismatched, lost };
    assert_eq!(bench.background.finish(), Some(finished));
    assert_eq!(bench.background.finish(), None);
}

#[test]
fn work_is_swept_when_its_ranges_have_ended() {
    let mut bench = bench(Level::Raid1, 2, Consistency::None);
    bench.begin(SCRUB);
    bench.background.move_cursor((1 << 14) - 64);
    assert_eq!(bench.background.is_swept(), None);
    let slot = bench.range().expect("the last range");
    assert_eq!(bench.background.is_swept(), Some(false));
    bench.end(slot);
    assert_eq!(bench.background.is_swept(), Some(true));
    bench.background.begin_taking_over(ONE);
    assert_eq!(bench.background.is_swept(), Some(false), "something is waited for");
    bench.background.move_cursor(u64::MAX);
    assert_eq!(bench.background.work.map(|running| running.cursor), Some(1 << 14));
}

#[test]
fn progress_is_told_in_sixty_fourths_and_recorded_in_sixteenths() {
    for (consistency, keeps) in [(Consistency::Resync, true), (Consistency::None, false)] {
        let mut bench = rebuilding(Level::Raid5, 4, consistency);
        bench.begin(REBUILD);
        let (mut told, mut kept) = (Vec::new(), Vec::new());
        for range in 1..=256u64 {
            let slot = bench.range().expect("there is work");
            let (event, keep) = bench.end(slot);
            if let Some(Event::Progress { work, done, of, .. }) = event {
                assert_eq!((work, done, of), (REBUILD, Sectors(range * 64), Sectors(1 << 14)));
                told.push(range);
            }
            kept.extend(keep.map(|to| (range, to)));
        }
        assert_eq!(told, (1..64).map(|part| part * 4).collect::<Vec<_>>());
        let expected = (1..16).map(|part| (part * 16, part << 10));
        assert_eq!(kept, expected.filter(|_| keeps).collect::<Vec<_>>());
    }
    let mut scrub = bench(Level::Raid5, 4, Consistency::Resync);
    scrub.begin(SCRUB);
    for _ in 0..40 {
        let slot = scrub.range().expect("there is work");
        assert_eq!(scrub.end(slot).1, None, "a scrub begins anew");
    }
    let mut waits = rebuilding(Level::Raid5, 4, Consistency::Resync);
    waits.begin(REBUILD);
    waits.background.flush_to_keep(0);
    for range in 1..=20 {
        let slot = waits.range().expect("there is work");
        assert_eq!(waits.end(slot).1, None, "a flush is under way");
        assert_eq!(waits.members[ONE].good_to, range * 64);
    }
    assert_eq!(waits.background.flushed(&waits.setup, &mut waits.members), Kept::Progress);
    let slot = waits.range().expect("there is work");
    assert_eq!(waits.end(slot).1, Some(21 * 64));
    let mut resync = bench(Level::Raid5, 4, Consistency::Resync);
    resync.background.replay_over(false);
    resync.begin(Work::Resync);
    let slot = resync.range().expect("there is work");
    resync.end(slot);
    assert_eq!(resync.background.synced_to(), 64);
}

#[test]
fn what_was_begun_at_once_is_no_measure_of_the_pace() {
    let mut bench = rebuilding(Level::Raid5, 4, Consistency::None);
    bench.begin(REBUILD);
    let slots: Vec<u32> = (0..3).map(|_| bench.range().expect("there is work")).collect();
    let since = |bench: &Bench| {
        let work = bench.background.progress(Time(9), false).expect("it is under way");
        (work.at_once.0 / 64, work.done_since().0.0 / 64, work.done_since().1.0 / 64)
    };
    assert_eq!(since(&bench), (3, 0, 253), "of 256 ranges");
    bench.end(slots[0]);
    let more = bench.range().expect("there is work");
    assert_eq!(since(&bench), (3, 0, 253));
    for slot in [slots[1], slots[2], more] {
        bench.end(slot);
    }
    assert_eq!(since(&bench), (3, 1, 253));
}

#[test]
fn work_ends_when_as_much_time_has_passed_for_what_is_left() {
    let running = |began| Running {
        work: SCRUB,
        cursor: 0,
        end: 1000,
        began: (began, Time(100)),
        at_once: None,
        windows: 0,
        sectors: 0,
        mismatched: 0,
        lost: 0,
        told: 0,
        kept: 0,
    };
    const SECOND: u64 = 1_000_000_000;
    let ends = |began, passed, done| {
        let ends = work::ends(&running(began), Time(100 + passed), done);
        ends.map(|ends| ends.0.saturating_sub(100))
    };
    assert_eq!(ends(0, SECOND, 250), Some(4 * SECOND));
    assert_eq!(ends(200, SECOND, 400), Some(4 * SECOND), "of what was done this time");
    assert_eq!(ends(0, SECOND, 1000), Some(SECOND));
    assert_eq!(ends(0, SECOND, 2000), Some(SECOND));
    assert_eq!(ends(0, u64::MAX - 105, 1), Some(u64::MAX - 100));
    // No basis: nothing or next to nothing was done this time, or hardly any time has passed.
    assert_eq!(ends(200, 3600 * SECOND, 200), None);
    assert_eq!(ends(200, 29 * SECOND, 209), None);
    assert_eq!(ends(200, SECOND, 210), Some(80 * SECOND));
    assert_eq!(ends(200, SECOND - 1, 600), None);
    assert_eq!(ends(200, 30 * SECOND, 201), Some(24_000 * SECOND), "a slow one");
}

#[test]
fn what_work_ends_without() {
    let (member, other) = (MemberIndex(0), MemberIndex(2));
    let cases = [
        (REBUILD, ONE, true),
        (REBUILD, other, false),
        (Work::Replace(ONE), ONE, true),
        (Work::Replace(ONE), MemberIndex(5), true),
        (Work::Replace(ONE), MemberIndex(6), false),
        (SCRUB, other, true),
        (SCRUB, MemberIndex(6), false),
        (SCRUB, MemberIndex(8), false),
        (Work::LogReplay, member, false),
    ];
    for (work, device, expected) in cases {
        let mut bench = bench(Level::Raid5, 4, Consistency::None);
        let ends =
            |bench: &Bench| bench.background.ends_without(&bench.setup, &bench.members, device);
        assert!(!ends(&bench), "nothing is under way");
        bench.begin(work);
        assert_eq!(ends(&bench), expected, "{work:?} {device}");
        bench.members.stopped = true;
        assert!(ends(&bench));
    }
    let mut bench = bench(Level::Raid5, 4, Consistency::None);
    bench.begin(Work::Resync);
    let ends =
        |bench: &Bench, device| bench.background.ends_without(&bench.setup, &bench.members, device);
    assert!(!ends(&bench, ONE), "all data are there");
    bench.members.fail(ONE);
    assert!(ends(&bench, ONE) && !ends(&bench, MemberIndex(5)));
    bench.background.trust.insert(ONE);
    assert!(!ends(&bench, ONE), "parity is believed");
}

#[test]
fn parity_that_may_be_wrong_keeps_out_who_has_data() {
    let p = MemberIndex(3);
    let layout = Level::Raid4;
    let mut bench = bench(layout, 4, Consistency::None);
    assert!(bench.background.can_rebuild(&bench.setup, ONE));
    bench.background.replay_over(false);
    assert!(!bench.background.can_rebuild(&bench.setup, ONE));
    assert!(bench.background.can_rebuild(&bench.setup, p), "it has parity alone");
    bench.members.fail(p);
    assert_eq!(bench.next(), Some(Work::Resync), "what there is agrees then");
    bench.members.fail(ONE);
    assert_eq!(bench.next(), None);
    bench.background.trust.insert(ONE);
    assert!(bench.background.can_rebuild(&bench.setup, ONE));
    assert_eq!(bench.next(), Some(Work::Resync));
    let mut mirror = super::bench(Level::Raid1, 3, Consistency::None);
    mirror.background.replay_over(false);
    mirror.members.fail(ONE);
    assert!(mirror.background.can_rebuild(&mirror.setup, ONE));
    assert_eq!(mirror.next(), Some(Work::Resync));
}

#[test]
fn nothing_begins_while_something_is_in_its_way() {
    let ready = || rebuilding(Level::Raid1, 2, Consistency::None);
    assert_eq!(ready().next(), Some(REBUILD));
    let mut halted = ready();
    assert!(halted.background.halt());
    assert_eq!(halted.next(), None);
    let mut stopped = ready();
    stopped.members.stopped = true;
    assert_eq!(stopped.next(), None);
    let mut replaying = ready();
    replaying.background.replaying = true;
    assert_eq!(replaying.next(), None);
    replaying.background.replay_over(true);
    assert_eq!(replaying.next(), Some(REBUILD));
    let mut flushing = ready();
    flushing.background.flush_to_finish();
    assert_eq!((flushing.next(), flushing.background.is_settling()), (None, true));
    let mut restoring = ready();
    restoring.background.begin_restoring(ONE);
    assert_eq!((restoring.next(), restoring.background.is_settling()), (None, true));
    assert!(!restoring.background.halt(), "it is only to be recorded");
}

#[test]
fn who_is_busy_and_who_is_quiet() {
    let busy = |bench: &Bench| bench.background.is_busy(&bench.setup, &bench.members);
    let idle = || bench(Level::Raid1, 2, Consistency::None);
    assert!(!busy(&idle()) && idle().background.is_quiet());
    assert!(busy(&rebuilding(Level::Raid1, 2, Consistency::None)), "its turn is to come");
    let mut replaying = idle();
    replaying.background.replaying = true;
    assert!(busy(&replaying));
    let mut settling = idle();
    settling.background.begin_taking_over(ONE);
    assert!(busy(&settling) && !settling.background.is_quiet());
    let mut working = idle();
    working.begin(SCRUB);
    assert!(busy(&working) && !working.background.is_quiet());
    let slot = working.range().expect("there is work");
    working.background.interrupt();
    assert!(!busy(&working) && !working.background.is_quiet(), "a range is in flight");
    working.background.windows.remove(slot);
    assert!(working.background.is_quiet());
    assert!(working.background.begin_pumping() && !working.background.begin_pumping());
    working.background.end_pumping();
    assert!(working.background.begin_pumping());
}

#[test]
fn as_many_ranges_as_there_are_units_but_one() {
    for (windows, most) in [(4, 3), (2, 1), (1, 1)] {
        let mut bench = bench(Level::Raid5, 4, Consistency::None);
        bench.background = Background::new(9, windows, PACING, no_barrier());
        bench.begin(SCRUB);
        let mut begun = 0;
        while bench.background.may_begin(&bench.setup, Time(1 << 60), 0, || false) == MayBegin::Yes
        {
            bench.range().expect("there is work");
            begun += 1;
        }
        assert_eq!(begun, most);
    }
    let mut full = bench(Level::Raid5, 4, Consistency::None);
    full.begin(SCRUB);
    while full.background.windows.insert(ResyncWindow::idle()).is_some() {}
    assert_eq!(
        full.background.may_begin(&full.setup, Time(1), 0, || false),
        MayBegin::No,
        "all are for healing"
    );
}

#[test]
fn an_assembled_array_begins_with_what_it_has_to_do() {
    let begin = |todo: Todo, rebuilds: bool| {
        let mut bench = bench(Level::Raid5, 4, Consistency::Resync);
        bench.members.fail(MemberIndex(2));
        if rebuilds {
            bench.members.begin_rebuild(ONE, None);
            bench.members[ONE].good_to = 70;
        }
        let begins = bench.background.begin_at_start(todo, &mut bench.members);
        (begins, bench)
    };
    let all = Todo { resync: Resync::All, synced_to: 9, ..Todo::default() };
    assert!(!begin(Todo::default(), false).0);
    let (begins, bench) = begin(Todo { by_bitmap: true, ..Todo::default() }, true);
    assert!(
        begins && bench.members.is_rebuilt_by_bitmap(ONE) && bench.members.partial.contains(ONE)
    );
    assert_eq!((bench.members[ONE].kept_to, bench.background.synced_to()), (70, u64::MAX));
    let (begins, bench) = begin(Todo { replay: true, ..all }, true);
    assert!(!begins && bench.background.replaying, "the log comes first");
    assert!(!bench.members.is_rebuilt_by_bitmap(ONE));
    let (begins, bench) = begin(all, false);
    assert!(begins && !bench.background.replaying && bench.background.trust.is_empty());
    assert_eq!((bench.background.synced_to(), bench.background.synced_kept(&bench.setup)), (9, 9));
    let (_, bench) = begin(Todo { trust_parity: true, ..all }, false);
    assert_eq!(bench.background.trust, bench.members.missing());
    let (_, bench) = begin(Todo { trust_parity: true, is_unknown: true, ..all }, false);
    assert_eq!(bench.background.trust, MemberSet::ALL);
}

#[test]
fn parity_is_consistent_below_the_resync_and_where_the_bitmap_names_nothing() {
    let mut bench = bench(Level::Raid5, 4, Consistency::Bitmap { chunk: Sectors(64) });
    bench.bitmap.begin_with(&[0b100], 0);
    let one = |member| {
        let mut set = MemberSet::NONE;
        set.insert(MemberIndex(member));
        set
    };
    let consistent =
        |bench: &Bench, from, to| bench.background.is_parity_consistent(&bench.bitmap, from, to);
    bench.background.resync = Resync::All;
    bench.background.synced_to = 64;
    assert!(
        consistent(&bench, 0, 64) && !consistent(&bench, 0, 65) && !consistent(&bench, 64, 128)
    );
    bench.background.resync = Resync::ByBitmap;
    assert!(consistent(&bench, 64, 128) && !consistent(&bench, 64, 129));
    bench.background.trust = one(1);
    let trusted = |from, to, lacking| {
        bench.background.trust(&bench.bitmap).is_parity_trusted(from, to, lacking)
    };
    assert!(trusted(64, 128, one(2)) && trusted(128, 192, one(1)));
    assert!(!trusted(128, 192, one(2)) && !trusted(128, 192, MemberSet::NONE));
    assert!(!trusted(128, 192, one(1).union(one(2))));
}

#[test]
fn what_is_lost_on_the_way_is_recorded_as_not_done() {
    let mut bench = bench(Level::Raid5, 4, Consistency::Resync);
    bench.background.replay_over(false);
    bench.begin(Work::Resync);
    bench.background.lose_redundancy(500);
    bench.background.lose_redundancy(900);
    assert!(bench.background.keep(&bench.setup, &mut bench.members, 400));
    assert_eq!(bench.background.synced_kept(&bench.setup), 400);
    assert!(bench.background.keep(&bench.setup, &mut bench.members, 800));
    assert_eq!(bench.background.synced_kept(&bench.setup), 500);
    bench.background.resynced();
    assert_eq!(bench.background.synced_kept(&bench.setup), 500);
    bench.begin(SCRUB);
    assert!(!bench.background.keep(&bench.setup, &mut bench.members, 900));
    let mut rebuild = rebuilding(Level::Raid5, 4, Consistency::Resync);
    rebuild.begin(REBUILD);
    rebuild.members[ONE].hole_from = 100;
    assert!(rebuild.background.keep(&rebuild.setup, &mut rebuild.members, 200));
    assert_eq!(rebuild.members[ONE].kept_to, 100);
    let mut replace = super::bench(Level::Raid5, 4, Consistency::Resync);
    let other = replace.setup.replacement(ONE);
    replace.members.begin_replace(ONE, other, (0, 150));
    replace.begin(Work::Replace(ONE));
    for (to, hole, kept) in [(100, u64::MAX, 100), (200, u64::MAX, 200), (300, 250, 250)] {
        replace.members[other].hole_from = hole;
        assert!(replace.background.keep(&replace.setup, &mut replace.members, to));
        assert_eq!(replace.members.replaced_to(&replace.setup), kept, "{to}");
    }
}

#[test]
fn a_flush_tells_what_it_was_for() {
    let mut bench = rebuilding(Level::Raid5, 4, Consistency::Resync);
    assert_eq!(bench.background.flushed(&bench.setup, &mut bench.members), Kept::Nothing);
    assert!(!bench.background.flush_filled(), "nobody was filled");
    bench.background.note_filled(ONE);
    bench.background.begin_taking_over(ONE);
    assert!(!bench.background.flush_filled(), "another is under way");
    bench.background.interrupt();
    assert!(bench.background.flush_filled() && bench.background.is_settling());
    let mut filled = MemberSet::NONE;
    filled.insert(ONE);
    assert_eq!(bench.background.flushed(&bench.setup, &mut bench.members), Kept::Filled(filled));
    assert!(!bench.background.flush_filled(), "once");
    bench.background.note_filled(ONE);
    assert!(bench.background.flush_filled());
    bench.background.note_filled(ONE);
    let again = Kept::Filled(MemberSet::NONE);
    assert_eq!(bench.background.flushed(&bench.setup, &mut bench.members), again, "too late");
    assert_eq!(bench.background.take_filled(), filled);
    bench.begin(REBUILD);
    bench.background.flush_to_finish();
    assert_eq!(bench.background.flushed(&bench.setup, &mut bench.members), Kept::Work(REBUILD));
    bench.background.flush_to_finish();
    bench.background.interrupt();
    assert_eq!(bench.background.flushed(&bench.setup, &mut bench.members), Kept::Nothing);
    bench.begin(SCRUB);
    bench.background.flush_to_keep(64);
    assert_eq!(bench.background.flushed(&bench.setup, &mut bench.members), Kept::Nothing);
}

#[test]
fn a_replacement_takes_over_once_and_only_in_its_work() {
    let mut bench = bench(Level::Raid1, 2, Consistency::None);
    bench.background.begin_taking_over(ONE);
    assert_eq!(bench.background.taking_over(), Some(ONE));
    assert!(!bench.background.may_take_over(ONE), "the work is over");
    bench.begin(Work::Replace(ONE));
    assert!(!bench.background.may_take_over(MemberIndex(0)));
    assert!(bench.background.may_take_over(ONE) && !bench.background.may_take_over(ONE));
    bench.background.begin_restoring(ONE);
    bench.background.restoring_said(MemberSet::NONE);
    bench.background.interrupt();
    assert_eq!(bench.background.restoring_recorded(), None);
}

#[test]
fn a_new_pace_counts_from_now_on() {
    let mut bench = bench(Level::Raid5, 4, Consistency::None);
    bench.begin(SCRUB);
    let slow = Pacing::between(1, 1);
    bench.background.set_pacing(Time(5), slow);
    bench.range().expect("there is work");
    let second = 1_000_000_000;
    let at = Time(5 + 64 * 512 * second);
    assert_eq!(bench.background.may_begin(&bench.setup, Time(6), 0, || false), MayBegin::At(at));
    // Of mirrors a range is so much of each member.
    let mut mirror = super::bench(Level::Raid10, 4, Consistency::None);
    mirror.begin(SCRUB);
    mirror.background.set_pacing(Time(5), slow);
    mirror.range().expect("there is work");
    let at = Time(5 + 32 * 512 * second);
    assert_eq!(mirror.background.may_begin(&mirror.setup, Time(6), 0, || false), MayBegin::At(at));
}

/// md's raid1 has room for 32 pieces, its default depth: it looks when the last is begun, not when there is room again.
#[test]
fn a_depth_as_large_as_there_is_room_for_gives_way() {
    for (depth, gives_way) in [(1, true), (2, false)] {
        let mut bench = bench(Level::Raid1, 2, Consistency::None);
        let ranges = 128 / bench.setup.window_rows;
        let pacing = Pacing { rule: PacingRule::Depth(depth), ..PACING };
        bench.background = Background::new(5, ranges as u32 + 1, pacing, no_barrier());
        bench.begin(SCRUB);
        let may_begin = |bench: &mut Bench| {
            let Bench { background, setup, .. } = bench;
            background.may_begin(setup, Time(2), 0, || true)
        };
        for _ in 0..ranges {
            assert_eq!(may_begin(&mut bench), MayBegin::Yes);
            bench.range().expect("there is work");
        }
        assert_eq!(may_begin(&mut bench), MayBegin::No, "there is no room");
        for left in (0..ranges as u32).rev() {
            bench.end(left);
            let expected = if gives_way && left > 0 { MayBegin::No } else { MayBegin::Yes };
            assert_eq!(may_begin(&mut bench), expected, "{depth}: {left} are in flight");
        }
    }
}

#[test]
fn ranges_of_small_members_are_smaller() {
    let rows = |level, sectors, block| {
        let layout = match level {
            Level::Raid1 => Layout::new(level, 2),
            Level::Raid10 => Layout::new(level, 4).with_chunk(Sectors(512)),
            _ => Layout::new(level, 4).with_chunk(Sectors(64)),
        };
        let sizes = vec![Sectors(sectors); usize::from(layout.members)];
        let geometry = Geometry::with_block(&layout, &sizes, 1).expect("possible");
        window_rows(&geometry, &layout, block, true)
    };
    assert_eq!(rows(Level::Raid1, 1 << 14, 1), 256);
    assert_eq!(rows(Level::Raid1, 160, 1), 10);
    assert_eq!(rows(Level::Raid1, 160, 8), 16);
    assert_eq!(rows(Level::Raid1, 8, 1), 1);
    assert_eq!(rows(Level::Raid1, 1 << 14, 512), 512);
    assert_eq!(rows(Level::Raid5, 1 << 14, 1), 64, "within a chunk");
    assert_eq!(rows(Level::Raid10, 1 << 14, 1), 128, "RESYNC_PAGES of md");
}
