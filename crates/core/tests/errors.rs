//! Errors of members: mended in place, counted, listed; and what is lost exactly when it must be.

use crate::support;
use crate::worst;
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;

use crate::worst::{Bench, config, layouts, tight};
use raidlab_core::contract::{Admin, Event, IoOp, IoOutcome, MemberIo, Outcome, Segment, Work};
use raidlab_core::geometry::{Holds, Place};
use raidlab_core::{Config, Consistency, Layout, Level, Limits, MemberIndex, Sector, Sectors};

const M: fn(u16) -> MemberIndex = MemberIndex;

/// Sectors that cannot be read until they are written.
type Latent = Rc<RefCell<BTreeSet<(u16, u64)>>>;

/// Plants sectors that cannot be read; written ones can again, unless they are `stuck`.
fn latent(bench: &mut Bench, places: &[(u16, u64)], stuck: bool) -> Latent {
    let bad: Latent = Rc::new(RefCell::new(places.iter().copied().collect()));
    let known = bad.clone();
    bench.driver.fault = Box::new(move |io| {
        let mut bad = known.borrow_mut();
        let (from, to) = (io.at.0, io.at.0 + u64::from(io.len));
        let range = (io.member.0, from)..(io.member.0, to);
        match io.op {
            IoOp::Read => match bad.range(range).next() {
                Some((_, at)) => IoOutcome::MediaError { first_bad: Sector(*at) },
                None => IoOutcome::Ok,
            },
            IoOp::Write | IoOp::WriteZeroes if !stuck => {
                bad.retain(|place| !range.contains(place));
                IoOutcome::Ok
            }
            _ => IoOutcome::Ok,
        }
    });
    bad
}

fn read_all(bench: &mut Bench) -> Result<(), Outcome> {
    let len = bench.flat.len() as u32;
    let found = bench.driver.read(0, len)?;
    assert_eq!(found, bench.flat, "{}", bench.layout);
    Ok(())
}

#[test]
fn what_cannot_be_read_is_mended_in_place() {
    for layout in layouts() {
        for member in 0..layout.members {
            for seed in 0..4 {
                let limits = if seed % 2 == 0 { tight() } else { Limits::default() };
                let mut bench = Bench::new(&config(&layout, limits), seed);
                let at = 5 + 7 * seed;
                let places = [(member, at), (member, at + 1), (member, at + 9)];
                let bad = latent(&mut bench, &places, false);
                // As far as reads come by: mirrors read one copy only, and parity is not read.
                bench.load_until(|bench| bench.driver.log.len() > 400);
                read_all(&mut bench).expect("enough is left");
                let data = matches!(
                    bench
                        .driver
                        .array
                        .geometry()
                        .holds(Place { member: M(member), at: Sector(at) }),
                    Holds::Data { .. }
                );
                if data && layout.level != Level::Raid1 && layout.level != Level::Raid10 {
                    assert!(bad.borrow().is_empty(), "{layout} {member}: {:?}", bad.borrow());
                }
                assert!(!bench.driver.array.is_failed(M(member)));
                assert_eq!(bench.driver.array.bad_blocks(M(member)).count(), 0);
                bench.assert_whole_but(&bad.borrow().iter().copied().collect::<Vec<_>>());
            }
        }
    }
}

/// A sector within a block cannot be read: drives of 4,096-byte blocks are asked for whole blocks all the same.
#[test]
fn what_is_mended_on_large_blocks_is_whole_blocks() {
    let mut mended = 0;
    for layout in layouts() {
        if layout.level == Level::Raid3 {
            continue;
        }
        let mut config = config(&layout, Limits::default());
        config.members.iter_mut().for_each(|member| member.logical_block = 8);
        let mut bench = Bench::new(&config, 1);
        let bad = latent(&mut bench, &[(1, 3), (1, 21)], false);
        bench.driver.log.clear();
        for at in (0..bench.flat.len() as u64).step_by(8) {
            for _ in 0..2 {
                bench.driver.read(at, 8).expect("enough is left");
                bench.settle_all();
            }
        }
        // One block is asked for at a time, and no more is looked at to mend it.
        let other = bench.driver.log.iter().find(|io| io.at.0 % 8 != 0 || io.len != 8);
        assert_eq!(other, None, "{layout}");
        // What was read and found bad was mended where it is, not in front of it.
        let read = |at: u64| {
            let covers = |io: &MemberIo| io.at.0 <= at && at < io.at.0 + u64::from(io.len);
            bench.driver.log.iter().any(|io| io.member == M(1) && covers(io))
        };
        let left = bad.borrow().iter().find(|(_, at)| read(*at)).copied();
        assert_eq!(left, None, "{layout}");
        let listed = bench.driver.array.bad_blocks(M(1)).count();
        assert!(listed == 0 && !bench.driver.array.is_failed(M(1)), "{layout}: {bad:?}");
        mended += 2 - bad.borrow().len();
    }
    // Mirrors read one copy only, and nobody reads parity.
    assert!(mended > 10, "{mended}");
}

#[test]
fn what_several_reads_found_at_once_is_mended_once() {
    let layout = Layout::new(Level::Raid5, 3).with_chunk(Sectors(8));
    let reads_of_member = |requests: u64| {
        let mut bench = Bench::new(&config(&layout, Limits::default()), 1);
        latent(&mut bench, &[(0, 3)], false);
        bench.driver.log.clear();
        for _ in 0..requests {
            let token = bench.driver.buffer(vec![0; 8]);
            let segment = Segment { token, offset: 0, len: 8 };
            bench.driver.submit(IoOp::Read, 0, &[segment]);
        }
        bench.settle();
        let corrected = |event: &&Event| matches!(event, Event::Corrected { .. });
        assert_eq!(bench.driver.events.iter().filter(corrected).count(), 1);
        let of_member = |io: &&MemberIo| io.member == M(0) && io.op == IoOp::Read;
        bench.driver.log.iter().filter(of_member).count() as u64
    };
    let mending = reads_of_member(1) - 1;
    assert!(mending > 0);
    assert_eq!(reads_of_member(2), 2 + mending);
}

#[test]
fn a_long_read_is_had_as_long_as_each_block_is() {
    for layout in layouts() {
        if layout.level == Level::Raid3 {
            continue;
        }
        for seed in 0..12 {
            let mut bench = Bench::new(&config(&layout, Limits::default()), seed);
            // Every member is bad somewhere, no two at the same place.
            let places: Vec<_> = (0..layout.members)
                .flat_map(|m| [(m, u64::from(m) * 3 + seed), (m, u64::from(m) + 33 + seed)])
                .collect();
            let lost = |bench: &Bench, at: u64| {
                let geometry = bench.driver.array.geometry();
                (0..geometry.copies()).all(|copy| {
                    let place = geometry.place(Sector(at), copy);
                    places.contains(&(place.member.0, place.at.0))
                }) && (!worst::has_parity(&layout) || {
                    let row = geometry.place(Sector(at), 0).at.0;
                    let bad = places.iter().filter(|place| place.1 == row).count();
                    bad > usize::from(layout.survives())
                })
            };
            let first = (0..bench.flat.len() as u64).find(|at| lost(&bench, *at));
            latent(&mut bench, &places, true);
            // Twice: as it comes, and by what is listed then.
            for _ in 0..2 {
                let len = bench.flat.len() as u32;
                let expected = match first {
                    Some(at) => Err(Outcome::MediaError { first_bad: Sector(at) }),
                    None => Ok(bench.flat.clone()),
                };
                assert_eq!(bench.driver.read(0, len), expected, "{layout} {seed}");
            }
        }
    }
}

/// Rows of one stripe lack different chunks. What is written of each has what its parity needs, and the whole has it
/// block by block.
#[test]
fn a_long_write_is_made_as_long_as_each_block_can_be() {
    for layout in layouts().iter().filter(|layout| worst::has_parity(layout)) {
        for seed in 0..24 {
            let mut config = config(layout, Limits::default());
            if seed % 3 == 0 {
                config.settings.consistency = Consistency::Resync;
            }
            let mut bench = Bench::new(&config, seed);
            let survives = u64::from(layout.survives());
            // As many members are bad in each row as may be, in turn.
            let rows = (0..12).map(|row| row + seed % 8);
            let places: Vec<_> = rows
                .flat_map(|row| (0..survives).map(move |k| (row * survives + k, row)))
                .map(|(k, row)| ((k % u64::from(layout.members)) as u16, row))
                .collect();
            latent(&mut bench, &places, false);
            let blocks = bench.flat.len() as u64 / worst::block(layout);
            let from = bench.random.below(blocks.min(24));
            let count = 1 + bench.random.below((blocks - from).min(24));
            let (at, len) = (from * worst::block(layout), count * worst::block(layout));
            let range = at as usize..(at + len) as usize;
            if seed % 2 == 0 {
                let bytes: Vec<u8> = range.clone().map(|at| at as u8 ^ 0x5a).collect();
                bench.flat[range].copy_from_slice(&bytes);
                assert_eq!(bench.driver.write(at, &bytes), Outcome::Done, "{layout} {seed}");
            } else {
                bench.flat[range].fill(0);
                let id = bench.driver.submit_range(IoOp::WriteZeroes, at, len);
                bench.driver.run();
                assert_eq!(bench.driver.outcome(id), Some(Outcome::Done), "{layout} {seed}");
            }
            read_all(&mut bench).expect("every row has enough");
        }
    }
}

#[test]
fn a_mended_run_is_told_once_and_counted() {
    let layout = Layout::new(Level::Raid5, 3).with_chunk(Sectors(8));
    let mut bench = Bench::new(&config(&layout, Limits::default()), 1);
    // Data of stripe 0 on member 0 are rows 0..8, of which a resync window takes 4.
    latent(&mut bench, &[(0, 1), (0, 2)], false);
    read_all(&mut bench).expect("recovered");
    assert!(bench.has(Event::Corrected { member: M(0), at: Sector(1), len: 2 }));
    assert!(bench.has(Event::ReadRecovered(M(0))));
    assert_eq!(bench.driver.array.corrected(M(0)), 1);
    bench.driver.events.clear();
    read_all(&mut bench).expect("mended");
    assert!(bench.driver.events.is_empty());
}

#[test]
fn what_stays_bad_is_listed_and_not_read_again_until_it_is_written() {
    for layout in layouts() {
        let mut bench = Bench::new(&config(&layout, Limits::default()), 1);
        let at = (0..64).find(|at| {
            let place = Place { member: M(0), at: Sector(*at) };
            matches!(bench.driver.array.geometry().holds(place), Holds::Data { copy: 0, .. })
        });
        // A member with parity only is not read.
        let Some(at) = at else { continue };
        let bad = latent(&mut bench, &[(0, at)], true);
        // Whatever copy a policy takes: both times, once each.
        for _ in 0..4 {
            read_all(&mut bench).expect("recovered");
        }
        let covers = |io: &&MemberIo| {
            let range = io.at.0..io.at.0 + u64::from(io.len);
            io.member == M(0) && io.op == IoOp::Read && range.contains(&at)
        };
        if layout.level == Level::Raid10 && !bench.driver.log.iter().any(|io| covers(&io)) {
            // The other copy lies nearer.
            continue;
        }
        let listed: Vec<_> = bench.driver.array.bad_blocks(M(0)).collect();
        assert_eq!(listed, [(Sector(at), Sectors(1))], "{layout}");
        assert!(bench.has(Event::BadBlocks { member: M(0), at: Sector(at), len: 1 }), "{layout}");
        let heals = bench.driver.log.iter().filter(|io| {
            io.op == IoOp::Write && io.member == M(0) && (io.at, io.len) == (Sector(at), 1)
        });
        assert_eq!(heals.count(), 2, "{layout}: as often as the settings say");
        bench.driver.log.clear();
        read_all(&mut bench).expect("recovered");
        assert_eq!(bench.driver.log.iter().filter(covers).count(), 0, "{layout}");
        // The drive has found a better place for it.
        bad.borrow_mut().clear();
        let flat = bench.flat.clone();
        assert_eq!(bench.driver.write(0, &flat), Outcome::Done, "{layout}");
        assert_eq!(bench.driver.array.bad_blocks(M(0)).count(), 0, "{layout}");
        bench.assert_whole();
    }
}

#[test]
fn a_member_with_too_many_errors_goes_out_of_service() {
    let layout = Layout::new(Level::Raid1, 2);
    let mut config = config(&layout, Limits::default());
    config.settings.most_corrected = 3;
    for timeout in [false, true] {
        let mut bench = Bench::new(&config, 1);
        if timeout {
            bench.driver.fault = Box::new(|io| match io.op {
                IoOp::Read if io.member == M(0) => IoOutcome::Timeout,
                _ => IoOutcome::Ok,
            });
        }
        for at in 0..8 {
            if !timeout {
                latent(&mut bench, &[(0, at * 8)], false);
            }
            assert_eq!(
                bench.driver.read(at * 8, 1).expect("a copy"),
                [bench.flat[at as usize * 8]]
            );
            assert_eq!(bench.driver.array.is_failed(M(0)), at > 2, "{timeout} after {at}");
        }
        // The last copy stays, whatever it does.
        if !timeout {
            for at in 0..8 {
                latent(&mut bench, &[(1, at * 8)], false);
                assert!(bench.driver.read(at * 8, 1).is_err());
            }
            assert!(!bench.driver.array.is_failed(M(1)));
        }
    }
}

#[test]
fn a_full_list_takes_the_member_out_of_service() {
    let layout = Layout::new(Level::Raid5, 3).with_chunk(Sectors(8));
    let mut config = config(&layout, Limits::default());
    config.settings.most_bad_blocks = 2;
    let mut bench = Bench::new(&config, 1);
    latent(&mut bench, &[(0, 0), (0, 2), (0, 12)], true);
    for _ in 0..4 {
        read_all(&mut bench).expect("recovered");
    }
    assert!(bench.has(Event::MemberFailed(M(0))));
    read_all(&mut bench).expect("recovered");
}

/// Two members are bad in one place, their lists are full, and neither can go out of service: mending each reads the
/// other, which must not begin its mending again for ever.
#[test]
fn two_members_that_are_bad_in_one_place_are_not_mended_in_turns_for_ever() {
    let layout = Layout::new(Level::Raid4, 4).with_chunk(Sectors(8));
    let mut config = config(&layout, Limits::default());
    config.settings.most_bad_blocks = 1;
    let mut bench = Bench::new(&config, 1);
    bench.fail(2);
    bench.add(2);
    // What a member has that is being rebuilt is good, and no other can be done without.
    let is_beyond = |bench: &Bench| {
        let told = |event: &Event| matches!(event, Event::Progress { done, .. } if done.0 >= 32);
        bench.driver.events.iter().any(told)
    };
    bench.load_nothing_until(is_beyond);
    bench.admin(Admin::StopBackground);
    let bad = latent(&mut bench, &[(0, 1), (1, 1)], true);
    let read = |bench: &mut Bench, at: u64| {
        for chunk in [0, 8] {
            let read = bench.driver.read(chunk + at, 1);
            assert!(matches!(read, Err(Outcome::MediaError { .. })), "{at}: {read:?}");
            bench.settle_all();
        }
        [0, 1].map(|member| bench.driver.array.bad_blocks(M(member)).collect::<Vec<_>>())
    };
    let lists = read(&mut bench, 1);
    assert_eq!(lists, [vec![(Sector(1), Sectors(1))], vec![(Sector(1), Sectors(1))]]);
    bad.borrow_mut().extend([(0, 4), (1, 4)]);
    assert_eq!(read(&mut bench, 4), lists, "they are full");
    assert!([0, 1].iter().all(|member| !bench.driver.array.is_failed(M(*member))));
}

#[test]
fn a_member_that_cannot_flush_goes_out_of_service() {
    for outcome in [IoOutcome::Gone, IoOutcome::Timeout, IoOutcome::NoSpace] {
        for layout in layouts() {
            let mut bench = Bench::new(&config(&layout, Limits::default()), 1);
            bench.driver.fault = Box::new(move |io| match io.op {
                IoOp::Flush if io.member == M(1) => outcome,
                _ => IoOutcome::Ok,
            });
            let id = bench.driver.submit(IoOp::Flush, 0, &[]);
            bench.settle_all();
            assert_eq!(bench.driver.outcome(id), Some(Outcome::Done), "{layout}");
            assert!(bench.has(Event::MemberFailed(M(1))), "{layout}");
        }
    }
}

#[test]
fn a_heal_that_cannot_write_fails_the_member() {
    let layout = Layout::new(Level::Raid6, 4).with_chunk(Sectors(8));
    let mut bench = Bench::new(&config(&layout, Limits::default()), 1);
    bench.driver.fault = Box::new(|io| match io.op {
        _ if io.member != M(2) => IoOutcome::Ok,
        IoOp::Read | IoOp::Write => IoOutcome::MediaError { first_bad: io.at },
        _ => IoOutcome::Ok,
    });
    read_all(&mut bench).expect("recovered");
    bench.settle();
    assert!(bench.has(Event::MemberFailed(M(2))));
    assert!(!bench.driver.events.iter().any(|e| matches!(e, Event::Corrected { .. })));
    read_all(&mut bench).expect("recovered");
}

/// What of a rebuilt array is lost: the places listed as bad on each member, and the sectors of the
/// array that cannot be read.
fn rebuild_with(config: &Config, member: u16, bad: &[(u16, u64)]) -> (Bench, Vec<u64>) {
    let mut bench = Bench::new(config, 3);
    bench.fail(member);
    latent(&mut bench, bad, true);
    bench.add(member);
    bench.idle();
    assert!(bench.has(Event::Restored(M(member))), "{}: {:?}", bench.layout, bench.driver.events);
    let capacity = bench.flat.len() as u64;
    let unit = worst::block(&bench.layout);
    let lost = (0..capacity / unit).filter(|index| {
        let at = index * unit;
        match bench.driver.read(at, unit as u32) {
            Ok(bytes) => {
                assert_eq!(bytes[..], bench.flat[at as usize..(at + unit) as usize], "{at}");
                false
            }
            Err(outcome) => {
                assert!(matches!(outcome, Outcome::MediaError { .. }), "{outcome:?}");
                true
            }
        }
    });
    let lost = lost.collect();
    (bench, lost)
}

#[test]
fn a_bad_source_loses_exactly_its_sectors_and_lists_them() {
    let layout = Layout::new(Level::Raid5, 4).with_chunk(Sectors(8));
    let config = config(&layout, tight());
    let bad = [(0, 1), (0, 2), (2, 21), (3, 63)];
    let (bench, lost) = rebuild_with(&config, 1, &bad);
    let listed: Vec<_> =
        bench.driver.array.bad_blocks(M(1)).map(|(at, len)| (at.0, len.0)).collect();
    assert_eq!(listed, [(1, 2), (21, 1), (63, 1)]);
    for (at, len) in [(1, 2), (21, 1), (63, 1)] {
        assert!(bench.has(Event::BadBlocks { member: M(1), at: Sector(at), len }));
    }
    let (work, mismatched) = (Work::Rebuild(M(1)), Sectors::ZERO);
    assert!(bench.has(Event::Finished { work, mismatched, lost: Sectors(4) }));
    // Of every row that is lost: what was on the rebuilt member and on the source, where it is data.
    let holds = |member: u16, at: u64| match bench
        .driver
        .array
        .geometry()
        .holds(Place { member: M(member), at: Sector(at) })
    {
        Holds::Data { at, .. } => Some(at.0),
        _ => None,
    };
    let places = bad.iter().flat_map(|(member, at)| [(*member, *at), (1, *at)]);
    let mut expected: Vec<_> = places.filter_map(|(member, at)| holds(member, at)).collect();
    expected.sort_unstable();
    assert_eq!(lost, expected);
    let but: Vec<_> = bad.iter().map(|(_, at)| (1, *at)).collect();
    bench.assert_whole_but(&but);
}

#[test]
fn a_bad_source_costs_nothing_where_more_is_left() {
    let raid6 = Layout::new(Level::Raid6, 5).with_chunk(Sectors(8));
    for layout in [raid6, Layout::new(Level::Raid1, 3)] {
        let config = config(&layout, tight());
        for member in 0..3 {
            let bad = [((member + 1) % 3, 3), ((member + 2) % 3, 21), ((member + 1) % 3, 22)];
            let (bench, lost) = rebuild_with(&config, member, &bad);
            assert!(lost.is_empty(), "{layout}");
            assert_eq!(bench.driver.array.bad_blocks(M(member)).count(), 0, "{layout}");
            bench.assert_whole();
        }
    }
}

#[test]
fn a_bad_source_of_a_mirror_loses_that_sector_only() {
    for layout in
        [Layout::new(Level::Raid1, 2), Layout::new(Level::Raid10, 4).with_chunk(Sectors(8))]
    {
        let (bench, lost) = rebuild_with(&config(&layout, tight()), 1, &[(0, 11)]);
        let place = Place { member: M(0), at: Sector(11) };
        let Holds::Data { at, .. } = bench.driver.array.geometry().holds(place) else { panic!() };
        assert_eq!(lost, [at.0], "{layout}");
        // Written anew, it is there again.
        let mut bench = bench;
        bench.driver.fault = Box::new(|_| IoOutcome::Ok);
        assert_eq!(bench.driver.write(at.0, &[0x5a]), Outcome::Done);
        assert_eq!(bench.driver.read(at.0, 1), Ok(vec![0x5a]));
        assert_eq!(bench.driver.array.bad_blocks(M(1)).count(), 0);
    }
}

#[test]
fn too_much_lost_in_a_rebuild_stops_all_writes_at_once() {
    for layout in layouts().into_iter().filter(worst::has_parity) {
        let mut bench = Bench::new(&config(&layout, Limits::default()), 3);
        let lost = layout.survives();
        for member in 0..lost {
            bench.fail(member);
        }
        bench.add(0);
        for _ in 0..12 {
            bench.step();
        }
        bench.fail(layout.members - 1);
        assert!(bench.has(Event::ArrayFailed), "{layout}");
        assert!(bench.has(Event::Interrupted(Work::Rebuild(M(0)))), "{layout}");
        bench.settle();
        bench.driver.log.clear();
        bench.idle();
        let unit = worst::block(&layout) as usize;
        assert_eq!(bench.driver.write(0, &vec![1; unit]), Outcome::ArrayFailed, "{layout}");
        let id = bench.driver.submit_range(IoOp::WriteZeroes, 0, unit as u64);
        bench.settle_all();
        assert_eq!(bench.driver.outcome(id), Some(Outcome::ArrayFailed));
        assert!(bench.driver.log.iter().all(|io| io.op == IoOp::Read), "{layout}");
        // What is still there, or computable, is served; never anything else.
        let mut served = 0;
        for at in (0..bench.flat.len()).step_by(unit) {
            if let Ok(bytes) = bench.driver.read(at as u64, unit as u32) {
                assert_eq!(bytes[..], bench.flat[at..at + unit], "{layout}");
                served += 1;
            }
        }
        assert!(served > 0 || layout.level == Level::Raid3, "{layout}");
    }
}

#[test]
fn a_member_that_fails_in_its_own_rebuild_interrupts_it() {
    for outcome in [IoOutcome::Gone, IoOutcome::NoSpace, IoOutcome::Timeout] {
        for layout in layouts() {
            let mut bench = Bench::new(&config(&layout, tight()), 3);
            bench.fail(1);
            bench.driver.fault = Box::new(move |io| match io.op {
                IoOp::Write if io.member == M(1) && io.at.0 > 20 => outcome,
                _ => IoOutcome::Ok,
            });
            bench.add(1);
            bench.idle();
            assert!(bench.has(Event::Interrupted(Work::Rebuild(M(1)))), "{layout}");
            assert!(bench.driver.array.is_failed(M(1)), "{layout}");
            read_all(&mut bench).expect("the others");
            bench.driver.fault = Box::new(|_| IoOutcome::Ok);
            bench.add(1);
            bench.load_until(|bench| bench.has(Event::Restored(M(1))));
            bench.assert_whole();
        }
    }
}

/// A discard promises nothing of what is there afterwards: what is listed as lost stays listed. (With parity zeroes are
/// written.)
#[test]
fn a_discard_mends_nothing() {
    for layout in [
        Layout::new(Level::Raid1, 2),
        Layout::new(Level::Raid10, 4).with_chunk(Sectors(8)).with_near(2),
    ] {
        let config = config(&layout, tight());
        let (mut bench, _) = rebuild_with(&config, 1, &[(0, 5)]);
        let listed: Vec<_> = bench.driver.array.bad_blocks(M(1)).collect();
        assert_eq!(listed, [(Sector(5), Sectors(1))], "{layout}");
        let id = bench.driver.submit_range(IoOp::Discard, 0, 16);
        bench.settle_all();
        assert_eq!(bench.driver.outcome(id), Some(Outcome::Done), "{layout}");
        let discarded =
            bench.driver.log.iter().any(|io| io.op == IoOp::Discard && io.member == M(1));
        assert!(discarded, "{layout}");
        let still: Vec<_> = bench.driver.array.bad_blocks(M(1)).collect();
        assert_eq!(still, listed, "{layout}");
    }
}

/// Two parts of a read wait for one range, and end as soon as they have it, as too much is lost by then: the second
/// begins and ends within the end of the first.
#[test]
fn a_read_whose_parts_end_at_once_is_answered_once() {
    for level in [Level::Raid4, Level::Raid5] {
        let mut config = config(&Layout::new(level, 3).with_chunk(Sectors(8)), Limits::default());
        config.settings.plan_rows = Sectors(4);
        let mut bench = Bench::new(&config, 1);
        bench.fail(1);
        bench.driver.begin_write(2, &[1], false);
        let is_write =
            |work: &support::Work| matches!(work, support::Work::Io(io) if io.op == IoOp::Write);
        while !bench.driver.work.iter().all(is_write) {
            bench.driver.step(0);
        }
        // Rows 2 to 6 are to be mended, after the write; what is read, in slices of rows 2 to 4 and 4 to 8, is to be
        // computed after that.
        let token = bench.driver.buffer(vec![0; 6]);
        let id = bench.driver.submit(IoOp::Read, 2, &[Segment { token, offset: 0, len: 6 }]);
        bench.driver.fault = Box::new(|io| match io.op {
            IoOp::Read => IoOutcome::MediaError { first_bad: io.at },
            _ => IoOutcome::Gone,
        });
        let read = bench.driver.work.len() - 1;
        bench.driver.step(read);
        assert!(bench.driver.work.iter().all(is_write), "everything waits");
        bench.settle_all();
        assert!(bench.has(Event::ArrayFailed), "{level}");
        assert_eq!(bench.driver.outcome(id), Some(Outcome::ArrayFailed), "{level}");
    }
}
