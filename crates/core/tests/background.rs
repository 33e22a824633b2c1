//! Background work under load, in random order: rebuild, replacement, resync, scrub, pacing.

use crate::support;
use crate::support::Driver;
use crate::worst::{Bench, config, has_parity, layouts, tight};
use raidlab_core::contract::{
    Admin, Event, Input, IoOp, Outcome, Pacing, PacingRule, RepairSource, RequestId, Scrub,
    Segment, Work,
};
use raidlab_core::geometry::{Holds, Place};
use raidlab_core::policy::{MemberTraits, ReadPolicy};
use raidlab_core::{
    Config, Consistency, Layout, Level, Limits, MemberIndex, Nanos, Sector, Sectors,
};

const M: fn(u16) -> MemberIndex = MemberIndex;

fn finished(work: Work) -> Event {
    Event::Finished { work, mismatched: Sectors::ZERO, lost: Sectors::ZERO }
}

#[test]
fn every_level_is_rebuilt_under_load() {
    for layout in layouts() {
        for member in 0..layout.members {
            for seed in 0..4 {
                let limits = if seed % 2 == 0 { tight() } else { Limits::default() };
                let mut bench = Bench::new(&config(&layout, limits), seed);
                bench.fail(member);
                let count = bench.driver.log.len();
                bench.load_until(|bench| bench.driver.log.len() > count + 40);
                bench.add(member);
                assert!(bench.has(Event::Started(Work::Rebuild(M(member)))));
                bench.load_until(|bench| bench.has(Event::Restored(M(member))));
                assert!(bench.has(finished(Work::Rebuild(M(member)))), "{layout}");
                assert_eq!(bench.driver.array.status().rebuilding, [0; 2]);
                bench.assert_whole();
            }
        }
    }
}

/// Asks for eight sectors.
fn read(bench: &mut Bench, at: u64) -> RequestId {
    let token = bench.driver.buffer(vec![0; 8 * 512]);
    bench.driver.submit(IoOp::Read, at, &[Segment { token, offset: 0, len: 8 }])
}

#[test]
fn a_request_that_waits_for_work_as_in_md_goes_on_when_that_is_over() {
    let layout = Layout::new(Level::Raid10, 4).with_chunk(Sectors(8));
    for fails in [false, true] {
        let mut config = config(&layout, Limits::default());
        config.settings.resync_tick = Some(Nanos(40));
        let mut bench = Bench::new(&config, 1);
        bench.fail(0);
        bench.add(0);
        while bench.driver.work.is_empty() {
            assert!(bench.step(), "it sleeps for a tick");
        }
        let under_way = bench.driver.work.len();
        let read = read(&mut bench, 0);
        assert_eq!(bench.driver.work.len(), under_way, "it waits");
        assert_eq!(bench.driver.outcome(read), None, "and is not refused");
        if fails {
            bench.fail(0);
        }
        for _ in 0..1_000 {
            if bench.driver.outcome(read).is_some() {
                break;
            }
            assert!(bench.step(), "it waits for ever");
        }
        assert_eq!(bench.driver.outcome(read), Some(Outcome::Done));
        assert!(!bench.has(Event::Restored(M(0))), "it need not wait for the end of all");
    }
}

#[test]
fn a_request_goes_on_when_work_ends_that_waits_for_another() {
    let layout = Layout::new(Level::Raid10, 4).with_chunk(Sectors(8));
    let mut config = config(&layout, Limits::default());
    config.settings.resync_tick = Some(Nanos(40));
    let mut bench = Bench::new(&config, 1);
    bench.fail(0);
    bench.add(0);
    // Before the tick is over, and not answered.
    read(&mut bench, 0);
    let unanswered = bench.driver.work.pop_front();
    assert!(unanswered.is_some());
    assert!(bench.step() && bench.driver.work.is_empty(), "work waits for it");
    read(&mut bench, 8);
    assert!(bench.driver.work.is_empty(), "which waits for work");
    bench.fail(0);
    assert_eq!(bench.driver.work.len(), 1, "which is over");
    bench.driver.work.extend(unanswered);
    bench.idle();
}

/// Writes of a batch that are one to plan wait for work as one, and are answered each, also when the array fails.
#[test]
fn all_writes_of_a_batch_that_waits_for_work_are_answered() {
    let layout = Layout::new(Level::Raid5, 4).with_chunk(Sectors(8));
    let mut waited = 0;
    for steps in 0..40 {
        let mut config = config(&layout, Limits::default());
        config.settings.resync_tick = Some(Nanos(40));
        config.settings.cached_stripes = 2;
        let mut bench = Bench::new(&config, 1);
        bench.fail(0);
        bench.add(0);
        for _ in 0..steps {
            bench.step();
        }
        let under_way = bench.driver.work.len();
        bench.driver.input(Input::Plug);
        let ids: Vec<_> =
            (0..3).map(|n| bench.driver.begin_write(24 + 8 * n, &[n as u8; 8], false)).collect();
        bench.driver.input(Input::Unplug);
        let waits = bench.driver.work.len() == under_way;
        waited += usize::from(waits && !bench.has(Event::Restored(M(0))));
        bench.fail(1);
        bench.fail(2);
        while bench.step() {}
        for id in ids {
            assert!(bench.driver.outcome(id).is_some(), "{id:?} after {steps} steps");
        }
        assert_ne!(bench.driver.write(0, &[1; 8]), Outcome::Done, "and the next, {steps} steps");
    }
    assert!(waited > 0, "some waited");
}

/// raid1 of md counts a range that it copies on every member alike, so reads go to the first, from which it copies, and
/// not to those that have nothing to do.
#[test]
fn a_read_beside_a_rebuild_goes_to_the_member_that_md_takes() {
    let mut config = config(&Layout::new(Level::Raid1, 3), Limits::default());
    config.settings.resync_tick = Some(Nanos(40));
    config.read_policy = ReadPolicy::Md;
    let flash = MemberTraits { rotational: false, ..MemberTraits::default() };
    config.traits = vec![flash; 3];
    let mut bench = Bench::new(&config, 1);
    bench.fail(0);
    bench.add(0);
    while bench.driver.work.is_empty() {
        assert!(bench.step(), "it sleeps for a tick");
    }
    let from = |work: &support::Work| match work {
        support::Work::Io(io) if io.op == IoOp::Read => Some(io.member),
        _ => None,
    };
    let copied: Vec<_> = bench.driver.work.iter().filter_map(from).collect();
    assert!(copied.len() > 1 && copied.iter().all(|member| *member == M(1)), "{copied:?}");
    // Not where a member's stream goes on: that would be the first in any case.
    read(&mut bench, 24);
    assert_eq!(bench.driver.work.back().and_then(from), Some(M(1)));
    bench.idle();
    assert!(bench.has(Event::Restored(M(0))));
}

/// Where the array stands for one of md, requests and work wait for each other; all end, also when the member that is
/// rebuilt fails meanwhile.
#[test]
fn every_level_is_rebuilt_under_load_as_md_does_it() {
    for (layout, seed) in
        layouts().into_iter().flat_map(|layout| (0..8).map(move |seed| (layout.clone(), seed)))
    {
        let mut config = config(&layout, if seed % 2 == 0 { tight() } else { Limits::default() });
        config.settings.resync_tick = Some(Nanos(40));
        let mut bench = Bench::new(&config, seed);
        bench.fail(0);
        bench.add(0);
        let count = bench.driver.log.len();
        bench.load_until(|bench| bench.driver.log.len() > count + 15 * seed as usize);
        bench.fail(0);
        bench.idle();
        bench.add(0);
        let count = bench.driver.log.len();
        bench.load_until(|bench| bench.driver.log.len() > count + 200);
        bench.idle();
        assert!(bench.has(Event::Restored(M(0))), "{layout}");
        bench.assert_whole();
    }
}

#[test]
fn two_members_are_rebuilt_one_after_the_other() {
    for layout in layouts().into_iter().filter(|l| l.level == Level::Raid6) {
        for seed in 0..6 {
            let mut bench = Bench::new(&config(&layout, tight()), seed);
            let (one, other) = (seed as u16 % 4, (seed as u16 + 1) % 4);
            bench.fail(one);
            bench.fail(other);
            bench.add(one);
            bench.add(other);
            let restored = [Event::Restored(M(one)), Event::Restored(M(other))];
            bench.load_until(|bench| restored.iter().all(|event| bench.has(*event)));
            bench.assert_whole();
        }
    }
}

#[test]
fn a_replacement_takes_over_under_load() {
    for layout in layouts() {
        for member in 0..layout.members {
            for seed in 0..4 {
                let limits = if seed % 2 == 0 { tight() } else { Limits::default() };
                let mut bench = Bench::new(&config(&layout, limits), seed);
                let other = usize::from(layout.members + member);
                bench.driver.members[other].fill(0x66);
                let (member, sectors) = (M(member), Sectors(64));
                bench.admin(Admin::Replace { member, sectors, consent: true });
                bench.load_until(|bench| bench.has(Event::Replaced(member)));
                assert!(bench.has(finished(Work::Replace(member))), "{layout}");
                // What went is never seen again.
                bench.driver.members[other].fill(0x66);
                bench.assert_whole();
                let count = bench.driver.log.len();
                bench.load_until(|bench| bench.driver.log.len() > count + 40);
                bench.assert_whole();
                let late = &bench.driver.log[count..];
                assert!(late.iter().all(|io| io.member.at() < usize::from(layout.members)));
            }
        }
    }
}

/// A large write of raid3 takes nearly all the room there is for its lists, and more where a member has two drives.
#[test]
fn a_large_write_has_room_beside_a_replacement() {
    let sectors = Sectors(8 << 11);
    for members in [3, 5, 9] {
        for member in [M(0), M(members - 1)] {
            let layout = Layout::new(Level::Raid3, members);
            let config = Config::uniform(layout.clone(), sectors);
            let mut driver = Driver::new(&config);
            let capacity = driver.array.capacity().0;
            let mut bytes: Vec<u8> = (0..capacity).map(|at| (at * 7 + at / 256) as u8).collect();
            assert_eq!(driver.write(0, &bytes), Outcome::Done);
            let other = usize::from(members) + member.at();
            driver.members[other].fill(0x66);
            driver.input(Input::Admin(Admin::Replace { member, sectors, consent: true }));
            // Two at once, in parts that no list can join.
            let half = (4u64 << 11) / u64::from(members - 1) * u64::from(members - 1);
            let ids = [0, half].map(|at| {
                let new: Vec<u8> = (at..at + half).map(|at| (at * 3 + at / 64) as u8).collect();
                bytes[at as usize..(at + half) as usize].copy_from_slice(&new);
                driver.begin_write(at, &new, false)
            });
            driver.run_until_idle(100_000);
            for id in ids {
                assert_eq!(driver.outcome(id), Some(Outcome::Done), "{layout}");
            }
            assert!(driver.events.contains(&Event::Replaced(member)), "{layout}");
            assert_eq!(driver.read(0, capacity as u32).as_ref(), Ok(&bytes), "{layout}");
        }
    }
}

#[test]
fn a_degraded_array_replaces_and_rebuilds() {
    for layout in layouts().into_iter().filter(|l| l.survives() > 0) {
        for seed in 0..12 {
            let limits = if seed % 2 == 0 { tight() } else { Limits::default() };
            let mut bench = Bench::new(&config(&layout, limits), seed);
            let n = u64::from(layout.members);
            let (one, other) = (M((seed % n) as u16), M(((seed / 3 + 1 + seed) % n) as u16));
            if one == other || layout.members == 2 {
                continue;
            }
            bench.driver.members[layout.members as usize + one.at()].fill(0x66);
            bench.fail(other.0);
            if bench.has(Event::ArrayFailed) {
                continue;
            }
            bench.admin(Admin::Replace { member: one, sectors: Sectors(64), consent: true });
            bench.load_until(|bench| bench.has(Event::Replaced(one)));
            bench.driver.members[layout.members as usize + one.at()].fill(0x66);
            bench.add(other.0);
            bench.load_until(|bench| bench.has(Event::Restored(other)));
            bench.assert_whole();
        }
    }
}

#[test]
fn a_replacement_is_flushed_before_it_takes_over() {
    for layout in layouts() {
        let mut bench = Bench::new(&config(&layout, Limits::default()), 1);
        let (member, sectors) = (M(1), Sectors(64));
        bench.admin(Admin::Replace { member, sectors, consent: true });
        while !bench.has(Event::Replaced(member)) {
            assert!(bench.step());
        }
        let other = M(layout.members + 1);
        let last = |op| bench.driver.log.iter().rposition(|io| io.member == other && io.op == op);
        assert!(last(IoOp::Write).is_some(), "{layout}");
        assert!(last(IoOp::Flush) > last(IoOp::Write), "{layout}");
    }
}

#[test]
fn a_check_finds_what_was_planted_and_writes_nothing() {
    for layout in layouts() {
        for seed in 0..4 {
            let mut bench = Bench::new(&config(&layout, Limits::default()), seed);
            bench.admin(Admin::StartScrub(Scrub::Check));
            bench.load_until(|bench| bench.has(finished(Work::Scrub(Scrub::Check))));
            let at = 9 + seed;
            let member = (seed % u64::from(layout.members)) as u16;
            bench.driver.members[usize::from(member)][at as usize] ^= 0x21;
            let before = bench.driver.members.clone();
            let used = bench.expected(member, at).is_some();
            bench.driver.events.clear();
            bench.admin(Admin::StartScrub(Scrub::Check));
            bench.idle();
            let work = Work::Scrub(Scrub::Check);
            let mismatched = Sectors(u64::from(used));
            let lost = Sectors::ZERO;
            assert!(bench.has(Event::Finished { work, mismatched, lost }), "{layout} {member}");
            let told = bench.driver.events.iter().filter_map(|event| match event {
                Event::Mismatch { at, len, guilty } => Some((at.0, *len, *guilty)),
                _ => None,
            });
            let told: Vec<_> = told.collect();
            if has_parity(&layout) {
                let guilty = (layout.level == Level::Raid6).then_some(M(member));
                assert_eq!(told, [(at, 1, guilty)], "{layout}");
            } else {
                assert_eq!(told.len(), usize::from(used), "{layout}");
            }
            assert_eq!(bench.driver.members, before, "{layout}");
        }
    }
}

/// P and Q are compared each on its own, in either order: what one of them says does not hide what the other does.
#[test]
fn a_scrub_finds_p_and_q_wrong_in_blocks_of_one_range() {
    let layout = Layout::new(Level::Raid6, 5).with_chunk(Sectors(8));
    for seed in 0..16 {
        let mut bench = Bench::new(&config(&layout, Limits::default()), seed);
        let geometry = bench.driver.array.geometry();
        let holds = |m| geometry.holds(Place { member: M(m), at: Sector(16) });
        let p = (0..5).find(|m| matches!(holds(*m), Holds::P { .. })).expect("P");
        let q = (0..5).find(|m| matches!(holds(*m), Holds::Q { .. })).expect("Q");
        // A range is four sectors of so small a member.
        let (p_row, q_row) = if seed % 2 == 0 { (17, 19) } else { (19, 17) };
        bench.driver.members[usize::from(p)][p_row] ^= 0x21;
        bench.driver.members[usize::from(q)][q_row] ^= 0x12;
        bench.admin(Admin::StartScrub(Scrub::Check));
        bench.idle();
        let (work, lost) = (Work::Scrub(Scrub::Check), Sectors::ZERO);
        assert!(bench.has(Event::Finished { work, mismatched: Sectors(2), lost }), "seed {seed}");
        bench.admin(Admin::StartScrub(Scrub::Repair(RepairSource::Nobody)));
        bench.idle();
        bench.assert_whole();
    }
}

#[test]
fn a_repair_mends_what_it_can_name_or_is_told() {
    for layout in layouts() {
        for member in 0..layout.members {
            for at in [0, 7, 19] {
                let raid6 = layout.level == Level::Raid6;
                let sources = [RepairSource::Nobody, RepairSource::NotMember(M(member))];
                for source in sources.into_iter().skip(usize::from(!raid6)) {
                    let mut bench = Bench::new(&config(&layout, Limits::default()), at);
                    if bench.expected(member, at).is_none() {
                        continue;
                    }
                    bench.driver.members[usize::from(member)][at as usize] ^= 0x40;
                    bench.admin(Admin::StartScrub(Scrub::Repair(source)));
                    bench.idle();
                    bench.assert_whole();
                    let mended = bench.driver.events.iter().filter(
                        |event| matches!(event, Event::Mended { member: m, .. } if *m == M(member)),
                    );
                    assert_eq!(mended.count(), 1, "{layout} {member} {at}");
                }
            }
        }
    }
}

#[test]
fn a_repair_that_can_name_nobody_writes_nothing() {
    let layout = Layout::new(Level::Raid6, 6).with_chunk(Sectors(8));
    let mut bench = Bench::new(&config(&layout, Limits::default()), 3);
    // Two wrong blocks in a row.
    bench.driver.members[1][12] ^= 1;
    bench.driver.members[3][12] ^= 0x7e;
    let before = bench.driver.members.clone();
    bench.admin(Admin::StartScrub(Scrub::Repair(RepairSource::Nobody)));
    bench.idle();
    assert_eq!(bench.driver.members, before);
    assert!(bench.driver.events.iter().any(|e| matches!(e, Event::Mismatch { guilty: None, .. })));
    // Told to believe the data, it makes both parities anew.
    bench.admin(Admin::StartScrub(Scrub::Repair(RepairSource::Data)));
    bench.idle();
    bench.driver.events.clear();
    bench.admin(Admin::StartScrub(Scrub::Check));
    bench.idle();
    assert!(bench.has(finished(Work::Scrub(Scrub::Check))));
}

#[test]
fn background_work_is_never_faster_than_the_most() {
    for layout in
        [Layout::new(Level::Raid1, 2), Layout::new(Level::Raid6, 5).with_chunk(Sectors(8))]
    {
        for most in [1u64 << 10, 64 << 10, 1 << 20] {
            let mut config = config(&layout, Limits::default());
            config.settings.pacing = Pacing::between(0, most);
            let mut bench = Bench::new(&config, 1);
            bench.fail(1);
            let began = bench.driver.now.0;
            bench.add(1);
            bench.idle();
            assert!(bench.has(Event::Restored(M(1))));
            // 64 sectors, of which the last 4 need not be waited for.
            let took = bench.driver.now.0 - began;
            let least = (60 * 512) * 1_000_000_000 / most;
            assert!(took >= least, "{took} ns, not {least}");
            assert!(took < least + least / 50 + 10_000, "{took} ns, not about {least}");
            bench.assert_whole();
        }
    }
}

/// In use is a member that moved more than 64 sectors for somebody else since it was last found to be.
#[test]
fn beside_other_work_it_goes_one_by_one_unless_it_is_behind() {
    for (least, sectors, most_at_once) in [(0, 40, 1), (0, 1, 7), (1 << 50, 40, 7)] {
        let mut config = config(&Layout::new(Level::Raid1, 2), Limits::default());
        config.settings.pacing = Pacing::between(least, 1 << 60);
        let mut bench = Bench::new(&config, 1);
        bench.fail(1);
        let token = bench.driver.buffer(vec![0; 40 * 512]);
        let segment = Segment { token, offset: 0, len: sectors };
        bench.add(1);
        let is_move =
            |work: &support::Work| matches!(work, support::Work::Io(io) if io.op != IoOp::Flush);
        let (mut most, mut after, mut waned) = (0, 0, false);
        while !bench.has(Event::Restored(M(1))) {
            // Two reads are answered first, then something of the work.
            for _ in 0..2 {
                bench.driver.submit(IoOp::Read, 0, &[segment]);
                let last = bench.driver.work.len() - 1;
                bench.driver.step(last);
            }
            let at_once = bench.driver.work.iter().filter(|work| is_move(work)).count();
            most = most.max(at_once);
            // What was begun before the first read ends first.
            waned |= at_once == 1;
            after = after.max(if waned { at_once } else { 0 });
            if !bench.driver.work.is_empty() {
                bench.driver.step(0);
            }
        }
        let at_once = if most_at_once == 1 { after } else { most };
        assert_eq!(at_once, most_at_once, "with a least of {least}, beside two reads of {sectors}");
        bench.idle();
        bench.assert_whole();
    }
}

/// Whatever the pace before made it wait for, by rate or by share: a new one counts from now on.
#[test]
fn a_new_pace_counts_at_once() {
    let fast = Pacing::between(0, u64::MAX);
    let a_second_of_work = Pacing::between(0, 64 * 512);
    let slow = [Pacing { most: 1, ..fast }, Pacing { rule: PacingRule::Share(1), ..fast }];
    for layout in
        [Layout::new(Level::Raid1, 2), Layout::new(Level::Raid6, 5).with_chunk(Sectors(8))]
    {
        for (before, after) in
            slow.iter().flat_map(|slow| [(*slow, fast), (*slow, a_second_of_work)])
        {
            let mut config = config(&layout, Limits::default());
            config.settings.pacing = before;
            let mut bench = Bench::new(&config, 1);
            bench.fail(1);
            bench.settle();
            bench.add(1);
            // Until nothing is to do but to wait.
            bench.settle_all();
            let began = bench.driver.now.0;
            bench.admin(Admin::Pace(after));
            bench.load_nothing_until(|bench| bench.has(Event::Restored(M(1))));
            let took = bench.driver.now.0 - began;
            let most = if after.most == u64::MAX { 100_000 } else { 1_000_000_000 };
            assert!(took <= most, "{layout}: {took} ns after {before:?}");
            bench.assert_whole();
        }
    }
}

#[test]
fn by_share_of_time_it_rests_as_it_should() {
    let layout = Layout::new(Level::Raid5, 3).with_chunk(Sectors(8));
    let rules = |share| [PacingRule::Share(share), PacingRule::Single(share)];
    for (share, rule) in
        [10u64, 25, 50, 100].iter().flat_map(|share| rules(*share as u8).map(|rule| (*share, rule)))
    {
        let mut config = config(&layout, Limits::default());
        config.settings.pacing = Pacing { least: 0, most: u64::MAX, rule };
        let mut bench = Bench::new(&config, 1);
        bench.fail(2);
        bench.add(2);
        // Every piece of work takes a nanosecond; all other time is rest.
        let (mut busy, began) = (0, bench.driver.now.0);
        while !bench.has(Event::Restored(M(2))) {
            busy += u64::from(!bench.driver.work.is_empty());
            assert!(bench.step());
        }
        let took = bench.driver.now.0 - began;
        let expected = busy * 100 / share;
        assert!(took.abs_diff(expected) <= expected / 4 + 10, "{took} of {expected} at {share} %");
    }
}

/// By the rule of md since 6.16, `depth` stripes of 4 KiB are in flight at most while the array is in use, and all that
/// there is room for while it is not.
#[test]
fn by_depth_so_many_stripes_are_in_flight_beside_requests() {
    for (depth, is_used, least, sectors) in
        [(1, true, 0, 8), (2, true, 0, 16), (1, false, 0, 28), (1, true, 1 << 50, 28)]
    {
        let mut config =
            config(&Layout::new(Level::Raid5, 3).with_chunk(Sectors(8)), Limits::default());
        config.settings.pacing =
            Pacing { rule: PacingRule::Depth(depth), ..Pacing::between(least, 1 << 60) };
        let mut bench = Bench::new(&config, 1);
        bench.fail(2);
        let token = bench.driver.buffer(vec![0; 512]);
        bench.driver.work.clear();
        if is_used {
            bench.driver.submit(IoOp::Read, 0, &[Segment { token, offset: 0, len: 1 }]);
        }
        bench.add(2);
        let (mut most, held) = (0, usize::from(is_used));
        while !bench.has(Event::Restored(M(2))) {
            let ranges: std::collections::BTreeSet<_> = bench
                .driver
                .work
                .iter()
                .skip(held)
                .filter_map(|work| match work {
                    support::Work::Io(io) if io.op != IoOp::Flush => Some(io.at),
                    _ => None,
                })
                .collect();
            most = most.max(ranges.len() * 4);
            // The read stays under way: the array is in use all the time.
            let at = held.min(bench.driver.work.len() - 1);
            bench.driver.step(at);
        }
        assert_eq!(
            most, sectors,
            "sectors of work at depth {depth}, used {is_used}, least {least}"
        );
        bench.idle();
        bench.assert_whole();
    }
}

#[test]
fn what_needs_no_copy_is_read_from_where_least_is_to_do() {
    let mut bench = Bench::new(&config(&Layout::new(Level::Raid1, 3), Limits::default()), 1);
    bench.fail(0);
    bench.driver.log.clear();
    bench.add(0);
    bench.idle();
    for member in [1, 2] {
        let reads =
            bench.driver.log.iter().filter(|io| io.op == IoOp::Read && io.member == M(member));
        assert!(reads.count() > 4, "member {member}");
    }
}

/// A read of a stripe in slices waits for a plan; until there is one, a rebuild makes the member whole that it was
/// worked on in slices for, and the rest is read as if nothing had been missing.
#[test]
fn a_read_in_slices_that_waits_forgets_none_when_its_member_is_rebuilt() {
    let layout = Layout::new(Level::Raid4, 3).with_chunk(Sectors(8));
    let mut config = Config::uniform(layout, Sectors(16));
    config.limits = Limits { plans: 1, windows: 1, ..tight() };
    config.settings.plan_rows = Sectors(2);
    config.settings.pacing = Pacing::between(1 << 40, 1 << 40);
    let mut driver = Driver::new(&config);
    let bytes: Vec<u8> = (1..=32).collect();
    assert_eq!(driver.write(0, &bytes), Outcome::Done);
    driver.fail(1);
    driver.input(Input::Admin(Admin::Add { member: M(1), sectors: Sectors(16) }));
    while driver.array.good_to(M(1)).0 < 2 {
        driver.step(0);
    }
    assert!(driver.array.good_to(M(1)).0 < 8, "the first stripe lacks a chunk");
    let rebuilding = driver.work.len();
    let token = driver.buffer(vec![0xdd; 32]);
    let id = driver.submit(IoOp::Read, 0, &[Segment { token, offset: 0, len: 32 }]);
    let held: Vec<_> = driver.work.drain(rebuilding..).collect();
    assert!(!held.is_empty(), "the first slice is read");
    while driver.array.good_to(M(1)).0 < 8 {
        driver.step(0);
    }
    driver.work.extend(held);
    driver.run();
    assert_eq!(driver.outcome(id), Some(Outcome::Done));
    assert_eq!(driver.buffers[token.0 as usize], bytes);
}

/// With more than 64 members the numbers of replacements and of the log device do not fit into a set of members.
#[test]
fn replacements_of_many_members_are_no_members() {
    let layout = Layout::new(Level::Raid6, 70).with_chunk(Sectors(1));
    let mut config = Config::uniform(layout, Sectors(4));
    config.settings.consistency = Consistency::Resync;
    let mut driver = Driver::new(&config);
    let bytes: Vec<u8> = (0..68 * 4).map(|k| k as u8).collect();
    assert_eq!(driver.write(0, &bytes), Outcome::Done);
    driver.fail(3);
    assert_eq!(driver.write(5, &bytes[5..9]), Outcome::Done);
    let replacement = driver.array.replacement(M(61));
    assert_eq!(replacement, M(131), "3 beyond what a set holds");
    assert!(!driver.array.is_failed(M(61)));
    assert!(!driver.array.is_failed(replacement));
    let replace = Admin::Replace { member: M(61), sectors: Sectors(4), consent: true };
    driver.input(Input::Admin(replace));
    driver.run_until_idle(100);
    assert!(driver.events.contains(&Event::Replaced(M(61))), "{:?}", driver.events);
    assert_eq!(driver.read(0, 68 * 4), Ok(bytes));
}

/// Work that begins while every I/O the array has room for is under way waits until some have ended.
#[test]
fn background_work_waits_while_all_room_for_io_is_taken() {
    let mut config = Config::uniform(Layout::new(Level::Raid1, 3), Sectors(1024));
    config.limits = Limits { requests: 64, ios: 1, ..Limits::default() };
    let mut driver = Driver::new(&config);
    for at in 0..64 {
        let token = driver.buffer(vec![0; 8]);
        driver.submit(IoOp::Read, at * 16, &[Segment { token, offset: 0, len: 8 }]);
    }
    let taken = driver.work.len();
    assert!(taken < 64, "there is less room than requests");
    driver.input(Input::Admin(Admin::StartScrub(Scrub::Check)));
    assert_eq!(driver.work.len(), taken);
    driver.run_until_idle(1000);
    assert!(driver.events.contains(&finished(Work::Scrub(Scrub::Check))));
}
