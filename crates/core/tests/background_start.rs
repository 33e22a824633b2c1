//! Background work after a start: resync, all or by the bitmap; rebuilds that go on where they were;
//! members that come back.

use std::collections::BTreeSet;

use crate::support::{ANYTHING, Word};
use crate::worst;
use crate::worst::{Bench, has_parity, layouts, tight};
use raidlab_core::contract::{
    Admin, Event, Input, IoOp, IoOutcome, Outcome, Pacing, Record, Refusal, Scrub, Segment, Work,
};
use raidlab_core::{Config, Consistency, Layout, Level, Limits, MemberIndex, Sector, Sectors};

const M: fn(u16) -> MemberIndex = MemberIndex;

fn with(layout: &Layout, limits: Limits, consistency: Consistency) -> Config {
    let mut config = worst::config(layout, limits);
    config.settings.consistency = consistency;
    config
}

fn by_bitmap(layout: &Layout, limits: Limits) -> Config {
    with(layout, limits, Consistency::Bitmap { chunk: Sectors(8) })
}

fn finished(work: Work) -> Event {
    Event::Finished { work, mismatched: Sectors::ZERO, lost: Sectors::ZERO }
}

#[test]
fn a_resync_makes_redundancy_agree_under_load() {
    for layout in layouts() {
        for seed in 0..8 {
            let limits = if seed % 2 == 0 { tight() } else { Limits::default() };
            let config = match seed % 4 < 2 {
                true => with(&layout, limits, Consistency::Resync),
                false => by_bitmap(&layout, limits),
            };
            let mut bench = Bench::new(&config, seed);
            bench.write_some(12 + 5 * seed as usize);
            bench.crash(&config, &[], Word::default());
            bench.learn();
            bench.load_until(|bench| bench.has(finished(Work::Resync)));
            assert_eq!(bench.driver.array.status().synced_to, Sector::MAX);
            bench.assert_whole();
            // Nothing of it is left for the next start.
            bench.crash(&config, &[], Word::default());
            bench.idle();
            bench.learn();
            bench.assert_whole();
        }
    }
}

#[test]
fn a_resync_by_the_bitmap_touches_what_it_names_only() {
    for layout in
        [Layout::new(Level::Raid1, 2), Layout::new(Level::Raid5, 4).with_chunk(Sectors(8))]
    {
        let config = by_bitmap(&layout, Limits::default());
        let mut bench = Bench::new(&config, 1);
        // Until every bit is cleared.
        bench.idle();
        let token = bench.driver.buffer(vec![0x5a; 2]);
        let segment = Segment { token, offset: 0, len: 2 };
        let id = bench.driver.submit(IoOp::Write, 17, &[segment]);
        while bench.driver.outcome(id).is_none() && bench.step() {}
        let named = match layout.level {
            Level::Raid1 => 16..24,
            _ => 0..8,
        };
        for at in 0..64 {
            bench.driver.members[1][at as usize] ^= 0x11;
        }
        let before = bench.driver.members.clone();
        bench.crash(&config, &[], Word::default());
        bench.driver.log.clear();
        bench.idle();
        assert!(bench.has(finished(Work::Resync)), "{:?}", bench.driver.events);
        let written = bench.driver.log.iter().filter(|io| io.op == IoOp::Write);
        let mut written: Vec<_> =
            written.flat_map(|io| io.at.0..io.at.0 + u64::from(io.len)).collect();
        written.sort_unstable();
        assert_eq!(written, named.clone().collect::<Vec<_>>(), "{layout}");
        for at in (0..64usize).filter(|at| !named.contains(&(*at as u64))) {
            let count = usize::from(layout.members);
            for (now, before) in bench.driver.members.iter().zip(&before).take(count) {
                assert_eq!(now[at], before[at], "{layout}");
            }
        }
    }
}

#[test]
fn a_resync_that_is_interrupted_goes_on() {
    for layout in layouts() {
        for seed in 0..4 {
            let mut config = with(&layout, Limits::default(), Consistency::Resync);
            // A sector takes 10 ms, so that the array is quiet, and marked clean, in between.
            config.settings.pacing = Pacing::between(0, 51_200);
            let mut bench = Bench::new(&config, seed);
            bench.write_some(14 + 3 * seed as usize);
            bench.crash(&config, &[], Word::default());
            bench.learn();
            for _ in 0..3 {
                // Further than it was, and marked clean.
                let from = bench.driver.array.status().synced_to;
                while bench.driver.array.status().synced_to.0 < from.0 + 28 && bench.step() {}
                bench.crash(&config, &[], Word::default());
                let kept = bench.driver.array.status().synced_to;
                assert!(kept <= Sector::MAX, "{layout}");
            }
            bench.idle();
            bench.assert_whole();
        }
    }
}

#[test]
fn parity_is_not_believed_before_it_is_made_consistent() {
    let layout = Layout::new(Level::Raid5, 3).with_chunk(Sectors(8));
    let mut config = with(&layout, Limits::default(), Consistency::Resync);
    // A sector takes half a second.
    config.settings.pacing = Pacing::between(0, 1024);
    let mut bench = Bench::new(&config, 1);
    bench.write_some(20);
    bench.settle();
    bench.write_some(8);
    bench.crash(&config, &[], Word::default());
    bench.learn();
    while bench.driver.array.status().synced_to < Sector(20) {
        bench.step();
    }
    let synced = bench.driver.array.status().synced_to.0;
    bench.fail(0);
    assert!(bench.has(Event::Interrupted(Work::Resync)));
    let outcomes = (0..bench.flat.len() as u64).map(|at| {
        let place = bench.driver.array.geometry().place(Sector(at), 0);
        let outcome = bench.driver.read(at, 1);
        let expected = match place {
            place if place.member == M(0) && place.at.0 >= synced => Err(Outcome::Inconsistent),
            _ => Ok(vec![bench.flat[at as usize]]),
        };
        assert_eq!(outcome, expected, "{at}");
        outcome.is_err()
    });
    assert!(outcomes.filter(|bad| *bad).count() > 10);
    // Taken in again, it would be computed from that parity.
    let command = Admin::Add { member: M(0), sectors: Sectors(64) };
    bench.admin(command);
    assert!(bench.has(Event::Refused(Refusal::Degraded)));
}

#[test]
fn a_member_with_parity_only_may_fail_in_a_resync() {
    for layout in
        [Layout::new(Level::Raid3, 3), Layout::new(Level::Raid4, 4).with_chunk(Sectors(8))]
    {
        for seed in 0..4 {
            let config = with(&layout, tight(), Consistency::Resync);
            let mut bench = Bench::new(&config, seed);
            bench.write_some(20);
            bench.crash(&config, &[], Word::default());
            bench.learn();
            bench.load_until(|bench| bench.driver.array.status().synced_to >= Sector(12));
            let parity = layout.members - 1;
            bench.fail(parity);
            bench.load_until(|bench| bench.has(finished(Work::Resync)));
            bench.add(parity);
            bench.load_until(|bench| bench.has(Event::Restored(M(parity))));
            bench.assert_whole();
        }
    }
}

#[test]
fn parity_is_believed_where_the_bitmap_names_nothing() {
    let layout = Layout::new(Level::Raid5, 3).with_chunk(Sectors(8));
    let mut config = by_bitmap(&layout, Limits::default());
    let mut bench = Bench::new(&config, 1);
    bench.idle();
    // A write in flight in stripe 5, rows 40 to 48.
    let token = bench.driver.buffer(vec![0x5a; 2]);
    let segment = Segment { token, offset: 0, len: 2 };
    bench.driver.submit(IoOp::Write, 5 * 16 + 3, &[segment]);
    for _ in 0..9 {
        bench.step();
    }
    config.settings.pacing = Pacing::between(0, 1);
    bench.crash(&config, &[], Word::default());
    bench.learn();
    // The first range takes half an hour; by then the member is away.
    bench.driver.input(Input::Wake);
    bench.settle();
    bench.fail(1);
    let mut inconsistent = 0;
    for at in 0..bench.flat.len() as u64 {
        let place = bench.driver.array.geometry().place(Sector(at), 0);
        match bench.driver.read(at, 1) {
            Ok(found) => assert_eq!(found, [bench.flat[at as usize]], "{at}"),
            Err(outcome) => {
                assert_eq!(outcome, Outcome::Inconsistent);
                assert!(place.member == M(1) && (44..48).contains(&place.at.0), "{at}");
                inconsistent += 1;
            }
        }
    }
    // Of a new write beside it parity is right.
    let found = bench.driver.write(2, &[0x77]);
    assert_eq!((found, bench.driver.read(2, 1)), (Outcome::Done, Ok(vec![0x77])));
    // The first range of the stripe was made consistent at once.
    assert_eq!(bench.driver.array.status().synced_to, Sector(44));
    assert_eq!(inconsistent, 4);
}

#[test]
fn a_rebuild_goes_on_where_it_was_recorded() {
    for layout in layouts().into_iter().filter(|l| l.level != Level::Raid10) {
        for seed in 0..4 {
            let config = with(&layout, tight(), Consistency::Resync);
            let mut bench = Bench::new(&config, seed);
            bench.fail(1);
            bench.idle();
            bench.add(1);
            let until = 24 + 8 * seed;
            bench.load_until(|bench| bench.driver.array.good_to(M(1)).0 >= until);
            let flat = bench.flat.clone();
            // The last clean word of it, so that parity levels start at all.
            let kept = loop {
                let superblock = bench.driver.array.superblock();
                if bench.driver.array.status().rebuilding == [0; 2] {
                    break None;
                }
                if superblock.rebuilt_to.0 > 0 && superblock.rebuilt_to.0 < 64 {
                    break Some(superblock.rebuilt_to.0);
                }
                bench.step();
            };
            let Some(kept) = kept else { continue };
            bench.crash(&config, &[], Word { missing: true, dirty_degraded: true });
            let begun = bench.driver.array.good_to(M(1)).0;
            assert!(begun <= kept, "{layout}: {begun} of {kept}");
            bench.driver.log.clear();
            bench.load_until(|bench| bench.has(Event::Restored(M(1))));
            let _ = flat;
            let first =
                bench.driver.log.iter().find(|io| io.op == IoOp::Write && io.member == M(1));
            assert!(first.is_some(), "{layout}");
        }
    }
}

#[test]
fn what_a_rebuild_lost_is_lost_after_a_restart_too() {
    for layout in
        [Layout::new(Level::Raid1, 2), Layout::new(Level::Raid5, 4).with_chunk(Sectors(8))]
    {
        for replace in [false, true] {
            let config = with(&layout, Limits::default(), Consistency::Resync);
            let mut bench = Bench::new(&config, 1);
            let bad = [(0, 11), (0, 40)];
            bench.driver.members[usize::from(layout.members) + 1].fill(0x66);
            if replace {
                // The member itself cannot be read there either.
                bench.latent(&[(0, 11), (0, 40), (1, 11), (1, 40)]);
                bench.admin(Admin::Replace { member: M(1), sectors: Sectors(64), consent: true });
                bench.load_nothing_until(|bench| bench.has(Event::Replaced(M(1))));
            } else {
                bench.fail(1);
                bench.latent(&bad);
                bench.add(1);
                bench.load_nothing_until(|bench| bench.has(Event::Restored(M(1))));
            }
            bench.idle_all();
            let lost = |bench: &mut Bench| -> Vec<u64> {
                let all = 0..bench.flat.len() as u64;
                let lost = all.filter(|at| match bench.driver.read(*at, 1) {
                    Ok(found) => {
                        assert_eq!(found, [bench.flat[*at as usize]], "{layout} {at}");
                        false
                    }
                    Err(outcome) => {
                        assert!(matches!(outcome, Outcome::MediaError { .. }), "{outcome:?}");
                        true
                    }
                });
                lost.collect()
            };
            let before = lost(&mut bench);
            assert!(!before.is_empty());
            for _ in 0..2 {
                let fault = std::mem::replace(&mut bench.driver.fault, Box::new(|_| IoOutcome::Ok));
                bench.crash(&config, &[], Word { missing: true, dirty_degraded: true });
                bench.driver.fault = fault;
                bench.idle_all();
                assert_eq!(lost(&mut bench), before, "{layout}");
            }
            // Written anew, all is well for good.
            bench.driver.fault = Box::new(|_| IoOutcome::Ok);
            let flat = bench.flat.clone();
            assert_eq!(bench.driver.write(0, &flat), Outcome::Done);
            bench.idle_all();
            assert_eq!(bench.driver.array.superblock().rebuilding, [0; 2], "{layout}");
            bench.crash(&config, &[], Word::default());
            bench.idle_all();
            assert!(lost(&mut bench).is_empty());
        }
    }
}

#[test]
fn how_far_a_rebuild_is_gets_recorded_after_a_flush_of_its_drive() {
    let layout = Layout::new(Level::Raid1, 2);
    let config = with(&layout, Limits::default(), Consistency::Resync);
    let mut bench = Bench::new(&config, 1);
    bench.fail(1);
    bench.idle();
    bench.add(1);
    let mut checkpoints = 0;
    let mut told = 0;
    while !bench.has(Event::Restored(M(1))) {
        let was = bench.driver.array.superblock().rebuilt_to.0;
        assert!(bench.step());
        let is = bench.driver.array.superblock().rebuilt_to.0;
        if is == was || is == 0 || bench.has(Event::Restored(M(1))) {
            continue;
        }
        checkpoints += 1;
        assert!(is > told, "{is} after {told}");
        told = is;
        // Everything of it below was flushed.
        let log = &bench.driver.log;
        let last =
            log.iter().rposition(|io| io.member == M(1) && io.op == IoOp::Write && io.at.0 < is);
        let flush = log.iter().rposition(|io| io.member == M(1) && io.op == IoOp::Flush);
        assert!(flush > last, "recorded {is}");
    }
    assert!(checkpoints > 1, "{checkpoints}");
    let flush = bench.driver.log.iter().rposition(|io| io.member == M(1) && io.op == IoOp::Flush);
    let write = bench.driver.log.iter().rposition(|io| io.member == M(1) && io.op == IoOp::Write);
    assert!(flush > write, "flushed before it serves in full");
    let _: Option<Record> = None;
}

#[test]
fn a_member_that_comes_back_gets_what_it_missed() {
    for layout in layouts() {
        for seed in 0..4 {
            let config = by_bitmap(&layout, Limits::default());
            let mut bench = Bench::new(&config, seed);
            bench.idle();
            let events = bench.driver.array.superblock().events;
            // Away, but not changed.
            bench.admin(Admin::Fail(M(1)));
            bench.write_some(0);
            bench.settle();
            bench.idle();
            bench.driver.log.clear();
            bench.driver.events.clear();
            bench.admin(Admin::ReAdd { member: M(1), events, good_to: Sector::MAX });
            bench.load_until(|bench| bench.has(Event::Restored(M(1))));
            bench.settle();
            bench.assert_whole();
            assert!(bench.has(Event::Started(Work::Rebuild(M(1)))), "{layout}");
        }
    }
}

/// One member came back and one is a fresh drive: a start after a crash must not trust the bitmap for both.
#[test]
fn a_fresh_drive_beside_one_that_came_back_is_not_rebuilt_by_the_bitmap() {
    let layout = Layout::new(Level::Raid6, 5).with_chunk(Sectors(8));
    let config = by_bitmap(&layout, Limits::default());
    let mut bench = Bench::new(&config, 3);
    bench.idle();
    let events = bench.driver.array.superblock().events;
    bench.admin(Admin::Fail(M(1)));
    bench.admin(Admin::Fail(M(2)));
    bench.write_some(0);
    bench.settle();
    bench.admin(Admin::ReAdd { member: M(1), events, good_to: Sector::MAX });
    assert!(bench.driver.array.superblock().by_bitmap, "it alone goes by the bitmap");
    let sectors = Sectors(bench.driver.members[2].len() as u64);
    bench.driver.input(Input::Admin(Admin::Add { member: M(2), sectors }));
    let said = bench.driver.array.superblock();
    assert_eq!(said.rebuilding[0], 0b110, "both are being rebuilt");
    assert!(!said.by_bitmap, "the fresh drive has nothing of what the bitmap does not name");
}

#[test]
fn a_member_that_comes_back_late_is_a_fresh_drive() {
    let layout = Layout::new(Level::Raid1, 2);
    let config = by_bitmap(&layout, Limits::default());
    let mut bench = Bench::new(&config, 1);
    // Bits are cleared, which a member that left before could have needed.
    bench.idle();
    bench.admin(Admin::Fail(M(1)));
    bench.idle();
    let command = Admin::ReAdd { member: M(1), events: 0, good_to: Sector::MAX };
    bench.admin(command);
    assert!(bench.has(Event::Refused(Refusal::NothingKnown)));
    bench.add(1);
    bench.load_until(|bench| bench.has(Event::Restored(M(1))));
    bench.assert_whole();
    let resync = with(&layout, Limits::default(), Consistency::Resync);
    let mut bench = Bench::new(&resync, 1);
    bench.admin(Admin::Fail(M(1)));
    bench.idle();
    let command = Admin::ReAdd { member: M(1), events: 1, good_to: Sector::MAX };
    bench.admin(command);
    assert!(bench.has(Event::Refused(Refusal::NothingKnown)));
}

#[test]
fn a_stop_waits_for_nothing_in_the_background() {
    for layout in layouts() {
        let config = with(&layout, Limits::default(), Consistency::Resync);
        let mut bench = Bench::new(&config, 1);
        bench.admin(Admin::StartScrub(Scrub::Check));
        for _ in 0..5 {
            bench.step();
        }
        bench.admin(Admin::Stop);
        bench.idle();
        assert!(bench.has(Event::Interrupted(Work::Scrub(Scrub::Check))));
        assert!(bench.has(Event::Stopped), "{layout}: {:?}", bench.driver.events);
        let _ = has_parity(&layout);
    }
}

/// What a rebuild lost is listed nowhere after a restart: no superblock says that it got beyond the first of it.
#[test]
fn a_rebuild_is_recorded_no_further_than_to_what_it_lost() {
    let layout = Layout::new(Level::Raid5, 4).with_chunk(Sectors(8));
    let config = with(&layout, tight(), Consistency::Resync);
    let mut bench = Bench::new(&config, 3);
    bench.fail(1);
    bench.settle();
    bench.latent(&[(0, 9)]);
    bench.add(1);
    let mut recorded = 0;
    while !bench.driver.array.bad_blocks(MemberIndex(1)).any(|(at, _)| at > Sector(9)) {
        if let Some(superblock) = bench.driver.records.superblock(0)
            && superblock.rebuilding[0] == 0b10
        {
            recorded = recorded.max(superblock.rebuilt_to.0);
            assert!(superblock.rebuilt_to <= Sector(9), "{superblock:?}");
        }
        if !bench.step() {
            break;
        }
    }
    assert_eq!(recorded, 9);
}

/// All that a rebuild lost is written anew while it still goes on: that makes the member no more rebuilt than it is, in
/// no superblock and after no loss of power.
#[test]
fn a_rebuild_whose_losses_are_written_anew_is_recorded_no_further_than_it_is() {
    let layout = Layout::new(Level::Raid5, 4).with_chunk(Sectors(8));
    let mut config = with(&layout, tight(), Consistency::Resync);
    // A sector takes 10 ms.
    config.settings.pacing = Pacing::between(0, 51_200);
    for steps in (0..400).step_by(7) {
        let mut bench = Bench::new(&config, 3);
        bench.fail(1);
        bench.settle();
        bench.latent(&[(0, 9)]);
        bench.add(1);
        bench.load_nothing_until(|bench| {
            bench.driver.array.bad_blocks(M(1)).any(|(at, _)| at == Sector(9))
        });
        bench.driver.fault = Box::new(|_| IoOutcome::Ok);
        let anew: Vec<u8> = (0..48).map(|at| 0xc0 ^ at).collect();
        bench.flat[..48].copy_from_slice(&anew);
        bench.driver.begin_write(0, &anew, false);
        bench.settle();
        assert_eq!(
            bench.driver.array.bad_blocks(M(1)).count(),
            0,
            "the stripes were written whole"
        );
        for _ in 0..steps {
            bench.step();
            let Some(superblock) = bench.driver.records.superblock(0) else { continue };
            // That it is restored is told when all superblocks say so.
            let good_to = bench.driver.array.good_to(M(1));
            let told = match superblock.rebuilding[0] {
                0b10 => superblock.rebuilt_to,
                _ => Sector::MAX,
            };
            assert!(told <= good_to, "{superblock:?}, in truth {good_to}");
        }
        // Nothing was being written: parity agrees, though nobody has marked the array clean.
        bench.crash(&config, &[], ANYTHING);
        bench.idle();
        bench.assert_whole();
    }
}

/// A flush before bits are cleared is not answered in time: nobody knows what that member has.
#[test]
fn a_flush_that_timed_out_clears_no_bit() {
    let mut bench = Bench::new(&by_bitmap(&Layout::new(Level::Raid1, 2), Limits::default()), 1);
    bench.idle();
    assert_eq!(bench.driver.write(0, &[7]), Outcome::Done);
    // Marked clean by now; only the bitmap is still to be looked at.
    while bench.driver.records.superblock(0).is_none_or(|superblock| !superblock.clean) {
        assert!(bench.step());
    }
    bench.driver.fault = Box::new(|io| match io.op {
        IoOp::Flush if io.member == M(1) => IoOutcome::Timeout,
        _ => IoOutcome::Ok,
    });
    bench.idle_all();
    assert!(bench.has(Event::MemberFailed(M(1))));
    assert!(bench.driver.records.bit(0, 0), "what the member may lack is remembered");
}

/// What parity says before it was made consistent is no data: a sector that cannot be read stays so.
#[test]
fn nothing_is_mended_from_parity_that_is_not_consistent_yet() {
    for (level, members) in [(Level::Raid4, 3), (Level::Raid5, 4), (Level::Raid6, 5)] {
        let layout = Layout::new(level, members).with_chunk(Sectors(8));
        let config = with(&layout, Limits::default(), Consistency::Resync);
        let mut bench = Bench::new(&config, 1);
        bench.driver.begin_write(0, &[9], false);
        bench.settle_until_each_has_io();
        bench.crash(&config, &[], Word::default());
        bench.admin(Admin::StopBackground);
        while bench.driver.array.status().work.is_some() {
            assert!(bench.step(), "{level}");
        }
        assert!(bench.driver.array.status().synced_to < Sector(40), "{level}");
        let geometry = bench.driver.array.geometry();
        let at = (0..bench.flat.len() as u64)
            .find(|at| geometry.place(Sector(*at), 0).at == Sector(45))
            .expect("a row of data");
        let member = geometry.place(Sector(at), 0).member;
        bench.latent(&[(member.0, 45)]);
        bench.driver.log.clear();
        assert!(bench.driver.read(at, 1).is_err(), "{level}");
        bench.settle_all();
        let wrote = bench.driver.log.iter().find(|io| io.op != IoOp::Read && io.op != IoOp::Flush);
        assert_eq!(wrote, None, "{level}");
        assert_eq!(bench.driver.array.bad_blocks(member).count(), 0, "{level}: it may yet be had");
    }
}

/// After a loss of power copies differ, and each of them may be what is read. What was read once is read ever after,
/// whichever copies have sectors that cannot be read, and whoever mends them.
#[test]
fn what_was_read_of_copies_that_differ_is_read_again() {
    let raid10 =
        |members, near| Layout::new(Level::Raid10, members).with_chunk(Sectors(8)).with_near(near);
    let mut layouts: Vec<_> = (2..5).map(|members| Layout::new(Level::Raid1, members)).collect();
    layouts.extend([raid10(4, 2), raid10(6, 3), raid10(5, 3)]);
    for layout in layouts {
        for seed in 0..24 {
            let limits = if seed % 2 == 0 { tight() } else { Limits::default() };
            let config = with(&layout, limits, Consistency::Resync);
            let mut bench = Bench::new(&config, seed);
            bench.driver.begin_write(0, &[9], false);
            bench.settle_until_each_has_io();
            bench.crash(&config, &[], Word::default());
            scatter(&mut bench);
            let seen = read_until_synced(&mut bench);
            for (at, seen) in seen.iter().enumerate().filter(|(_, seen)| seen.is_some()) {
                let read = bench.driver.read(at as u64, 1).expect("one copy can be read");
                assert_eq!(Some(read[0]), *seen, "{layout} {seed}: sector {at}");
            }
        }
    }
}

/// Every copy of a sector becomes something else, and of some sectors the first copy, or all but one, cannot be read
/// until they are written.
fn scatter(bench: &mut Bench) {
    for (member, bytes) in bench.driver.members.iter_mut().enumerate() {
        bytes.iter_mut().for_each(|byte| *byte = bench.random.next_u64() as u8);
        bench.driver.caches.reset(member, bytes);
    }
    let geometry = bench.driver.array.geometry();
    let mut bad = BTreeSet::new();
    let places: BTreeSet<_> =
        (0..6).map(|_| Sector(bench.random.below(bench.flat.len() as u64))).collect();
    for at in places {
        let good = bench.random.below(u64::from(geometry.copies())) as u16;
        let is_bad = |copy: &u16| *copy != good && (*copy == 0 || at.0 % 2 == 0);
        for copy in (0..geometry.copies()).filter(is_bad) {
            let place = geometry.place(at, copy);
            bad.insert((place.member.0, place.at.0));
        }
    }
    bench.driver.fault = Box::new(move |io| {
        let range = (io.member.0, io.at.0)..(io.member.0, io.at.0 + u64::from(io.len));
        match bad.range(range.clone()).next() {
            Some((_, at)) if io.op == IoOp::Read => {
                IoOutcome::MediaError { first_bad: Sector(*at) }
            }
            _ => {
                bad.retain(|place| io.op == IoOp::Read || !range.contains(place));
                IoOutcome::Ok
            }
        }
    });
}

/// Reads anything until all copies agree; what was read of each sector first, which is what is read of it later.
fn read_until_synced(bench: &mut Bench) -> Vec<Option<u8>> {
    let sectors = bench.flat.len() as u64;
    let mut seen = vec![None; bench.flat.len()];
    let mut reads = Vec::new();
    while !bench.has(finished(Work::Resync)) || !reads.is_empty() {
        let goes_on = !bench.has(finished(Work::Resync));
        if goes_on && reads.len() < 3 && bench.random.below(8) == 0 {
            let at = bench.random.below(sectors);
            let len = 1 + bench.random.below((sectors - at).min(16)) as u32;
            let token = bench.driver.buffer(vec![0xdd; len as usize]);
            let segment = Segment { token, offset: 0, len };
            reads.push((bench.driver.submit(IoOp::Read, at, &[segment]), at, token));
        }
        assert!(bench.step(), "{}: {:?}", bench.layout, bench.driver.events);
        reads.retain(|(id, at, token)| {
            let Some(outcome) = bench.driver.outcome(*id) else { return true };
            assert_eq!(outcome, Outcome::Done, "{}", bench.layout);
            for (at, found) in (*at..).zip(&bench.driver.buffers[token.0 as usize]) {
                let seen = seen[at as usize].get_or_insert(*found);
                assert_eq!(seen, found, "{}: sector {at}", bench.layout);
            }
            false
        });
    }
    seen
}
