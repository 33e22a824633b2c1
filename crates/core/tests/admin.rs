//! Commands: each that makes no sense now is refused by name and changes nothing.

use crate::worst;
use crate::worst::{Bench, config, layouts};
use raidlab_core::contract::{
    Admin, Event, Input, Pacing, PacingRule, Refusal, RepairSource, Scrub, Work,
};
use raidlab_core::{Config, Consistency, Layout, Level, Limits, MemberIndex, Sector, Sectors};

const M: fn(u16) -> MemberIndex = MemberIndex;

fn add(member: u16, sectors: u64) -> Admin {
    Admin::Add { member: M(member), sectors: Sectors(sectors) }
}

fn replace(member: u16, sectors: u64, consent: bool) -> Admin {
    Admin::Replace { member: M(member), sectors: Sectors(sectors), consent }
}

fn re_add(member: u16) -> Admin {
    Admin::ReAdd { member: M(member), events: 1, good_to: Sector::MAX }
}

fn ranges(used: u16, unused: u16) -> Admin {
    Admin::Pace(Pacing { rule: PacingRule::Ranges { used, unused }, ..Pacing::default() })
}

fn repair(source: RepairSource) -> Admin {
    Admin::StartScrub(Scrub::Repair(source))
}

const CHECK: Admin = Admin::StartScrub(Scrub::Check);

/// Hands in a command that must be refused, and sees that nothing else comes of it.
fn refused(bench: &mut Bench, command: Admin, reason: Refusal) {
    let (before, events) = (bench.driver.array.state_key(), bench.driver.events.len());
    let (log, work) = (bench.driver.log.len(), bench.driver.work.len());
    bench.driver.input(Input::Admin(command));
    let told = &bench.driver.events[events..];
    assert_eq!(told, [Event::Refused(reason)], "{} {command:?}", bench.layout);
    assert_eq!(bench.driver.array.state_key(), before, "{} {command:?}", bench.layout);
    assert_eq!((bench.driver.log.len(), bench.driver.work.len()), (log, work));
}

fn bench(layout: &Layout) -> Bench {
    Bench::new(&config(layout, Limits::default()), 1)
}

#[test]
fn a_healthy_array_refuses_what_makes_no_sense() {
    for layout in layouts() {
        let mut bench = bench(&layout);
        let n = layout.members;
        let raid6 = layout.level == Level::Raid6;
        for (command, reason) in [
            (Admin::Fail(M(n)), Refusal::NoSuchMember),
            (Admin::FailReplacement(M(n)), Refusal::NoSuchMember),
            (Admin::FailReplacement(M(0)), Refusal::NotInService),
            (add(n, 64), Refusal::NoSuchMember),
            (re_add(n + 3), Refusal::NoSuchMember),
            (replace(2 * n, 64, true), Refusal::NoSuchMember),
            (repair(RepairSource::NotMember(M(n))), Refusal::NoSuchMember),
            (add(0, 64), Refusal::InService),
            (re_add(0), Refusal::InService),
            (replace(0, 64, false), Refusal::InService),
            (replace(0, 7, true), Refusal::TooSmall),
            (Admin::Pace(Pacing::between(2, 1)), Refusal::OutOfRange),
            (Admin::Pace(Pacing::between(0, 0)), Refusal::OutOfRange),
            (
                Admin::Pace(Pacing { rule: PacingRule::Share(0), ..Pacing::default() }),
                Refusal::OutOfRange,
            ),
            (
                Admin::Pace(Pacing { rule: PacingRule::Single(0), ..Pacing::default() }),
                Refusal::OutOfRange,
            ),
            (
                Admin::Pace(Pacing { rule: PacingRule::Share(101), ..Pacing::default() }),
                Refusal::OutOfRange,
            ),
            (ranges(0, 1), Refusal::OutOfRange),
            (ranges(2, 1), Refusal::OutOfRange),
        ] {
            refused(&mut bench, command, reason);
        }
        if !raid6 {
            refused(&mut bench, repair(RepairSource::Nobody), Refusal::NobodyToBelieve);
        }
        bench.idle();
        bench.assert_whole();
    }
}

#[test]
fn a_degraded_array_refuses_what_makes_no_sense() {
    for layout in layouts() {
        let mut bench = bench(&layout);
        bench.fail(1);
        for (command, reason) in [
            (Admin::Fail(M(1)), Refusal::NotInService),
            (replace(1, 64, true), Refusal::NotInService),
            (add(1, 7), Refusal::TooSmall),
            (CHECK, Refusal::Degraded),
            (repair(RepairSource::Data), Refusal::Degraded),
            (re_add(1), Refusal::NothingKnown),
        ] {
            refused(&mut bench, command, reason);
        }
        bench.add(1);
        for (command, reason) in [
            (add(1, 64), Refusal::InService),
            (replace(1, 64, true), Refusal::NotInService),
            (replace(0, 64, true), Refusal::Busy),
            (CHECK, Refusal::Degraded),
        ] {
            refused(&mut bench, command, reason);
        }
        bench.load_until(|bench| bench.has(Event::Restored(M(1))));
        bench.assert_whole();
    }
}

#[test]
fn one_thing_at_a_time() {
    for layout in layouts() {
        let mut bench = bench(&layout);
        bench.admin(CHECK);
        refused(&mut bench, CHECK, Refusal::Busy);
        refused(&mut bench, replace(0, 64, true), Refusal::Busy);
        bench.admin(Admin::StopBackground);
        assert!(bench.has(Event::Interrupted(Work::Scrub(Scrub::Check))));
        bench.settle();
        bench.admin(replace(0, 64, true));
        assert!(bench.has(Event::Started(Work::Replace(M(0)))));
        refused(&mut bench, CHECK, Refusal::Busy);
        refused(&mut bench, replace(0, 64, true), Refusal::Busy);
        refused(&mut bench, replace(1, 64, true), Refusal::Busy);
        // Given up, it is as if it had not begun.
        bench.admin(Admin::StopBackground);
        assert!(bench.has(Event::Interrupted(Work::Replace(M(0)))));
        bench.settle();
        assert_eq!(bench.driver.array.status().replacing, [0; 2]);
        // So it is when the drive is taken out, and when there is nothing to copy any more.
        bench.admin(replace(0, 64, true));
        bench.admin(Admin::FailReplacement(M(0)));
        assert!(bench.has(Event::ReplacementFailed(M(0))));
        refused(&mut bench, Admin::FailReplacement(M(0)), Refusal::NotInService);
        bench.settle();
        assert_eq!(bench.driver.array.status().replacing, [0; 2]);
        bench.admin(CHECK);
        bench.idle();
        let (work, none) = (Work::Scrub(Scrub::Check), Sectors::ZERO);
        assert!(bench.has(Event::Finished { work, mismatched: none, lost: none }), "{layout}");
    }
}

#[test]
fn an_array_without_redundancy_or_hope_refuses_it() {
    let mut none = bench(&Layout::new(Level::Raid0, 3).with_chunk(Sectors(8)));
    for command in [add(0, 64), re_add(0), replace(0, 64, true), CHECK, repair(RepairSource::Data)]
    {
        refused(&mut none, command, Refusal::NoRedundancy);
    }
    for layout in layouts().into_iter().filter(worst::has_parity) {
        let mut bench = bench(&layout);
        for member in 0..=layout.survives() {
            bench.fail(member);
        }
        assert!(bench.has(Event::ArrayFailed));
        for command in [add(0, 64), replace(layout.members - 1, 64, true), CHECK, Admin::Stop] {
            refused(&mut bench, command, Refusal::ArrayFailed);
        }
    }
}

#[test]
fn a_drive_with_io_in_flight_is_not_taken_for_a_fresh_one() {
    for layout in layouts() {
        let mut bench = bench(&layout);
        bench.write_some(0);
        bench.settle_until_each_has_io();
        bench.admin(Admin::Fail(M(1)));
        if bench.in_flight_to(M(1)) {
            refused(&mut bench, add(1, 64), Refusal::InFlight);
        }
        bench.settle();
        bench.add(1);
        bench.load_until(|bench| bench.has(Event::Restored(M(1))));
        bench.assert_whole();
    }
}

#[test]
fn a_member_that_has_erred_is_replaced_without_consent() {
    let layout = Layout::new(Level::Raid1, 2);
    let mut bench = bench(&layout);
    let mut once = false;
    bench.driver.fault = Box::new(move |io| {
        use raidlab_core::contract::{IoOp, IoOutcome};
        if io.op == IoOp::Read && io.member == M(0) && !std::mem::replace(&mut once, true) {
            return IoOutcome::Timeout;
        }
        IoOutcome::Ok
    });
    refused(&mut bench, replace(0, 64, false), Refusal::InService);
    bench.driver.read(0, 4).expect("the other copy");
    assert_eq!(bench.driver.array.corrected(M(0)), 1);
    bench.admin(replace(0, 64, false));
    bench.load_until(|bench| bench.has(Event::Replaced(M(0))));
    assert_eq!(bench.driver.array.corrected(M(0)), 0);
    bench.assert_whole();
}

#[test]
fn a_place_with_a_log_behind_it_is_larger() {
    let layout = Layout::new(Level::Raid5, 3).with_chunk(Sectors(8));
    let mut config = Config::uniform(layout, Sectors(68));
    config.settings.consistency = Consistency::PartialParity { slots: 6 };
    let mut bench = Bench::new(&config, 1);
    bench.admin(Admin::Fail(M(1)));
    bench.idle();
    refused(&mut bench, add(1, 64), Refusal::TooSmall);
    bench.admin(add(1, 68));
    assert!(bench.has(Event::Started(Work::Rebuild(M(1)))));
}

/// Two updates of the superblocks follow, so that no place of a member's still speaks of the drive that was there.
#[test]
fn superblocks_are_written_twice_when_a_replacement_takes_over() {
    let layout = Layout::new(Level::Raid5, 3).with_chunk(Sectors(8));
    let mut config = config(&layout, Limits::default());
    config.settings.consistency = Consistency::Resync;
    let mut bench = Bench::new(&config, 1);
    bench.idle();
    bench.admin(replace(0, 64, true));
    let mut events = 0;
    while !bench.has(Event::Replaced(M(0))) {
        events = bench.driver.array.superblock().events;
        assert!(bench.step());
    }
    while !bench.driver.work.is_empty() {
        bench.step();
    }
    let after = bench.driver.array.superblock();
    // One before it takes over, which names it, and two behind.
    assert!(after.events >= events + 3, "{events} to {}", after.events);
}
