//! Lists of bad blocks: what they name over writes, replacements and restarts.

use crate::support::{self, Word};
use crate::worst::{Bench, config, tight};
use raidlab_core::contract::{Admin, Event, IoOp, IoOutcome, Outcome, Pacing, Scrub};
use raidlab_core::{Config, Consistency, Layout, Level, MemberIndex, Sector, Sectors};

const M: fn(u16) -> MemberIndex = MemberIndex;

/// With superblocks, and lists of so many bad blocks that are kept, or none.
fn listing(layout: &Layout, kept: Option<u16>) -> Config {
    let mut config = config(layout, tight());
    config.settings.consistency = Consistency::Resync;
    config.settings.keeps_bad_blocks = kept.is_some();
    config.settings.most_bad_blocks = kept.unwrap_or(8);
    config
}

/// An array whose member 1 lost these sectors in a rebuild, as member 0 could not read them.
fn rebuilt_with_losses(config: &Config, lost: &[u64]) -> Bench {
    let mut bench = Bench::new(config, 3);
    bench.fail(1);
    let places: Vec<_> = lost.iter().map(|at| (0, *at)).collect();
    bench.latent(&places);
    bench.add(1);
    bench.idle_all();
    assert!(bench.has(Event::Restored(M(1))), "{}: {:?}", bench.layout, bench.driver.events);
    let listed = bad(&bench, 1);
    assert_eq!(listed.iter().flat_map(|(at, len)| *at..at + len).collect::<Vec<_>>(), lost);
    bench
}

fn bad(bench: &Bench, member: u16) -> Vec<(u64, u64)> {
    bench.driver.array.bad_blocks(M(member)).map(|(at, len)| (at.0, len.0)).collect()
}

/// What a medium with room for so many entries lists: those at the lowest addresses.
fn on_medium(bench: &Bench, member: u16, room: u16) -> Vec<(Sector, Sectors)> {
    let mut listed: Vec<_> = bench.driver.array.listed_blocks(M(member)).collect();
    listed.sort_unstable();
    listed.truncate(usize::from(room));
    listed
}

/// An orderly stop, and a start of what is found then, with what the medium of member 1 lists.
fn restart(bench: &mut Bench, config: &Config) {
    bench.admin(Admin::Stop);
    bench.idle_all();
    assert!(bench.has(Event::Stopped), "{:?}", bench.driver.events);
    let mut found = bench.driver.records.found(config, &bench.driver.members, &[]);
    found.members[1].bad = on_medium(bench, 1, config.settings.most_bad_blocks);
    bench.driver.reassemble_from(config, &found, Word::default()).expect("it was stopped cleanly");
    bench.idle_all();
}

/// Writes into what is listed cut it into pieces. All of these are named by the list, however many of them there are,
/// and it has room for them: what is still lost is so after a restart.
#[test]
fn writes_into_what_is_listed_leave_room_for_the_rest_of_the_list() {
    for kept in [3, 8] {
        let config = listing(&Layout::new(Level::Raid1, 2), Some(kept));
        let lost: &[u64] = match kept {
            3 => &[5, 6, 7, 40],
            _ => &[5, 6, 7, 30, 31, 32, 40],
        };
        let mut bench = rebuilt_with_losses(&config, lost);
        bench.fail(0);
        assert_eq!(bench.driver.write(6, &[0x5a]), Outcome::Done);
        assert_eq!(bench.driver.read(6, 1), Ok(vec![0x5a]));
        if kept > 3 {
            assert_eq!(bench.driver.write(31, &[0x5b]), Outcome::Done);
        }
        assert!(on_medium(&bench, 1, u16::MAX).len() <= 3, "{:?}", on_medium(&bench, 1, u16::MAX));
        restart(&mut bench, &config);
        for at in lost.iter().filter(|at| ![6, 31].contains(*at)) {
            let read = bench.driver.read(*at, 1);
            assert!(matches!(read, Err(Outcome::MediaError { .. })), "{kept} {at}: {read:?}");
        }
    }
}

/// Where the list has no room for the pieces, what was written goes on being named as bad, and cannot be read from the
/// last copy: nobody is told that it is there.
#[test]
fn a_write_that_a_full_list_goes_on_naming_is_not_answered_as_done() {
    for (layout, other, at) in [
        (Layout::new(Level::Raid1, 2), 0, 2),
        (Layout::new(Level::Raid5, 3).with_chunk(Sectors(8)), 2, 10),
    ] {
        for keeps in [true, false] {
            let mut config = listing(&layout, keeps.then_some(2));
            config.settings.most_bad_blocks = 2;
            let mut bench = rebuilt_with_losses(&config, &[1, 2, 3, 20]);
            bench.driver.fault = Box::new(|_| IoOutcome::Ok);
            bench.fail(other);
            bench.settle_all();
            let name = format!("{layout} {keeps}");
            let error = Outcome::MediaError { first_bad: Sector(at) };
            assert_eq!(bench.driver.write(at, &[0x5a]), error, "{name}");
            assert_eq!(bench.driver.read(at, 1), Err(error), "{name}");
            assert!(!bench.driver.array.is_failed(M(1)), "{name}");
            assert_eq!(bad(&bench, 1), [(1, 3), (20, 1)], "{name}");
            let whole = bench.driver.write(at - 1, &[0x61, 0x62, 0x63]);
            assert_eq!(whole, Outcome::Done, "{name}");
            assert_eq!(bench.driver.read(at - 1, 3), Ok(vec![0x61, 0x62, 0x63]), "{name}");
        }
    }
}

/// It is all that is left of the redundancy there, if others have what was written.
#[test]
fn a_write_that_a_full_list_goes_on_naming_is_read_from_the_others() {
    for (layout, at) in [
        (Layout::new(Level::Raid1, 2), 2),
        (Layout::new(Level::Raid5, 3).with_chunk(Sectors(8)), 10),
    ] {
        let mut config = listing(&layout, None);
        config.settings.most_bad_blocks = 2;
        let mut bench = Bench::new(&config, 3);
        bench.latent(&[(1, 1), (1, 2), (1, 3), (1, 20)]);
        bench.admin(Admin::StartScrub(Scrub::Check));
        bench.idle_all();
        assert_eq!(bad(&bench, 1), [(1, 3), (20, 1)], "{layout}");
        assert_eq!(bench.driver.write(at, &[0x5a]), Outcome::Done, "{layout}");
        assert_eq!(bad(&bench, 1), [(1, 3), (20, 1)], "{layout}");
        assert!(!bench.driver.array.is_failed(M(1)), "{layout}");
        assert_eq!(bench.driver.read(at, 1), Ok(vec![0x5a]), "{layout}");
    }
    // Both copies are listed as bad there.
    let mut config = listing(&Layout::new(Level::Raid1, 2), None);
    config.settings.most_bad_blocks = 2;
    let mut bench = rebuilt_with_losses(&config, &[1, 2, 3, 20]);
    assert_eq!(bad(&bench, 0), bad(&bench, 1));
    let error = Outcome::MediaError { first_bad: Sector(2) };
    assert_eq!(bench.driver.write(2, &[0x5a]), error);
    assert!([0, 1].iter().all(|member| !bench.driver.array.is_failed(M(*member))));
    assert_eq!(bench.driver.read(2, 1), Err(error));
}

/// A raid1 of which member 1 is out of service and member 0 has a sector that nobody reads, once its replacement has
/// come by that: both list it.
fn replacing_with_loss(config: &Config, lost: u64) -> Bench {
    let mut bench = Bench::new(config, 3);
    bench.fail(1);
    bench.settle_all();
    bench.latent(&[(0, lost)]);
    bench.admin(Admin::Replace { member: M(0), sectors: Sectors(64), consent: true });
    bench.load_nothing_until(|bench| !bad(bench, 0).is_empty());
    bench
}

/// What was lost is written while the replacement is being filled, and is there when that has taken over, whichever of
/// the two drives answers first.
#[test]
fn what_a_replacement_lost_and_is_written_before_it_takes_over_is_read() {
    for kept in [Some(8), None] {
        for member_first in [true, false] {
            let mut config = listing(&Layout::new(Level::Raid1, 2), kept);
            // A sector takes 10 ms: there is time to write.
            config.settings.pacing = Pacing::between(0, 51_200);
            let mut bench = replacing_with_loss(&config, 5);
            let id = bench.driver.begin_write(5, &[0x5a], false);
            let name = format!("{kept:?} {member_first}");
            let is_write = |work: &support::Work, device: u16| {
                matches!(work, support::Work::Io(io)
                    if io.op == IoOp::Write && io.member == M(device) && io.at == Sector(5))
            };
            let place = |bench: &Bench, device: u16| {
                bench.driver.work.iter().position(|work| is_write(work, device))
            };
            while place(&bench, 0).is_none() || place(&bench, 2).is_none() {
                assert!(bench.step(), "{name}: it is written to both");
            }
            for device in if member_first { [0, 2] } else { [2, 0] } {
                let index = place(&bench, device).expect("in flight");
                bench.driver.step(index);
            }
            bench.load_nothing_until(|bench| bench.driver.outcome(id).is_some());
            assert_eq!(bench.driver.outcome(id), Some(Outcome::Done), "{name}");
            assert!(!bench.has(Event::Replaced(M(0))), "{name}");
            bench.driver.fault = Box::new(|_| IoOutcome::Ok);
            bench.idle_all();
            assert!(bench.has(Event::Replaced(M(0))), "{name}: {:?}", bench.driver.events);
            assert_eq!(bench.driver.read(5, 1), Ok(vec![0x5a]), "{name}");
            assert_eq!((bad(&bench, 0), on_medium(&bench, 0, 8)), (vec![], vec![]), "{name}");
            let superblock = bench.driver.records.superblock(0).expect("it has one");
            assert_eq!((superblock.rebuilding, superblock.replacing), ([0; 2], [0; 2]), "{name}");
        }
    }
}

/// Superblocks can say of a drive that lost a block only that it is being rebuilt, which the last copy must not be: its
/// replacement is given up, unless what was lost is written in time.
#[test]
fn the_last_copy_is_not_replaced_by_a_drive_that_a_start_would_refuse() {
    for kept in [None, Some(8)] {
        for writes in [false, true] {
            let mut config = listing(&Layout::new(Level::Raid1, 2), kept);
            config.settings.pacing = Pacing::between(0, 51_200);
            let mut bench = replacing_with_loss(&config, 5);
            if writes {
                assert_eq!(bench.driver.write(5, &[0x5a]), Outcome::Done);
                bench.driver.fault = Box::new(|_| IoOutcome::Ok);
            }
            bench.idle_all();
            let name = format!("{kept:?} {writes}");
            let goes = !writes && kept.is_none();
            assert_eq!(bench.has(Event::ReplacementFailed(M(0))), goes, "{name}");
            assert_eq!(bench.has(Event::Replaced(M(0))), !goes, "{name}");
            assert!(!bench.driver.array.is_failed(M(0)), "{name}");
            bench.admin(Admin::Stop);
            bench.idle_all();
            assert!(bench.has(Event::Stopped), "{name}");
            bench.driver.reassemble(&config, &[], Word::default()).expect(&name);
            bench.idle_all();
            assert_eq!(bench.driver.read(6, 58), Ok(bench.flat[6..].to_vec()), "{name}");
        }
    }
}

/// Member 1 lost a block in a rebuild that is under way, which is written before that ends.
#[test]
fn what_a_rebuild_lost_and_is_written_before_its_end_is_no_hole_afterwards() {
    for layout in
        [Layout::new(Level::Raid1, 2), Layout::new(Level::Raid5, 3).with_chunk(Sectors(8))]
    {
        let mut config = listing(&layout, None);
        config.settings.pacing = Pacing::between(0, 51_200);
        let mut bench = Bench::new(&config, 3);
        bench.fail(1);
        bench.latent(&[(0, 5)]);
        bench.add(1);
        bench.load_nothing_until(|bench| !bad(bench, 1).is_empty());
        bench.driver.fault = Box::new(|_| IoOutcome::Ok);
        assert_eq!(bench.driver.write(0, &[0x5a; 16]), Outcome::Done, "{layout}");
        assert!(!bench.has(Event::Restored(M(1))), "{layout}");
        bench.idle_all();
        assert!(bench.has(Event::Restored(M(1))), "{layout}");
        let superblock = bench.driver.records.superblock(0).expect("it has one");
        assert_eq!(superblock.rebuilding, [0; 2], "{layout}");
    }
}

/// An orderly stop makes durable what was written last, too.
#[test]
fn what_was_lost_and_is_written_right_before_a_stop_is_no_hole_afterwards() {
    for kept in [None, Some(8)] {
        let config = listing(&Layout::new(Level::Raid1, 2), kept);
        let mut bench = rebuilt_with_losses(&config, &[5]);
        bench.driver.fault = Box::new(|_| IoOutcome::Ok);
        bench.driver.begin_write(5, &[0x5a], false);
        bench.load_nothing_until(|bench| bench.in_flight_to(M(1)));
        bench.admin(Admin::Stop);
        bench.idle_all();
        assert!(bench.has(Event::Stopped), "{kept:?}");
        let superblock = bench.driver.records.superblock(0).expect("it has one");
        assert!(superblock.clean && superblock.rebuilding == [0; 2], "{kept:?} {superblock:?}");
        assert_eq!(on_medium(&bench, 1, 8), [], "{kept:?}");
    }
}
