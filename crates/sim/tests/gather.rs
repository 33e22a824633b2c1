//! Write-back over parity as md takes it: whole stripes where they become whole, everything at last.

use std::collections::BTreeSet;

use raidlab_core::contract::{IoOp, Outcome};
use raidlab_core::{Config, Layout, Sector, Sectors};
use raidlab_models::{DriveKind, HardDisk, load};
use raidlab_sim::{HostCosts, World};

/// Sectors of data of a stripe of the raid5 of these tests: three chunks of 64 KiB.
const STRIPE: u64 = 3 * 128;

fn world(layout: &str) -> World {
    let DriveKind::HardDisk(spec) = load("nas-8tb-7200").expect("built in").kind else {
        panic!("it is a hard disk");
    };
    let layout: Layout = layout.parse().expect("is a layout");
    let drives: Vec<_> =
        (0..u64::from(layout.drives())).map(|seed| HardDisk::new(&spec, seed)).collect();
    let config = Config::uniform(layout, Sectors(1 << 20));
    World::new(&config, drives, HostCosts::default()).expect("fits")
}

/// Runs to the end; every request is answered once.
fn end(world: &mut World, asked: u64) {
    let mut answered = BTreeSet::new();
    while world.step() {
        while let Some(answer) = world.next_answer() {
            assert_eq!(answer.outcome, Outcome::Done);
            assert!(answered.insert(answer.id), "{answer:?} again");
        }
    }
    assert_eq!(answered.len() as u64, asked, "all are answered");
}

#[test]
fn a_stripe_that_comes_in_parts_is_written_whole() {
    for gathers in [false, true] {
        let mut world = world("raid5(4) chunk=64K");
        if gathers {
            world.gather_stripes(256);
        }
        // Ten stripes, in requests that end in the middle of them.
        for at in (0..10 * STRIPE).step_by(320) {
            world.write_back(0, Sector(at), Sectors(320));
        }
        end(&mut world, 12);
        let totals = world.member_totals();
        assert_eq!(totals.reads == 0, gathers, "{totals:?}");
        let parity = totals.bytes_written / 512 - 10 * STRIPE;
        assert_eq!(parity == 10 * 128, gathers, "{parity}");
    }
}

/// Stripes of all arrays below are filled by a stream of requests, whatever the levels; each is written once.
#[test]
fn stripes_of_arrays_below_are_filled() {
    // Sectors of data and of members a stripe of all levels has.
    for (layout, data, all) in [
        ("raid5+0(2x4) chunk=64K", 6 * 128, 8 * 128),
        ("raid6+0(2x5) chunk=64K", 6 * 128, 10 * 128),
        ("raid1+5(4x2) chunk=64K", 3 * 128, 8 * 128),
    ] {
        let mut world = world(layout);
        world.gather_stripes(256);
        let len = 20 * data;
        let requests = (0..len).step_by(320);
        for at in requests.clone() {
            world.write_back(0, Sector(at), Sectors(320.min(len - at)));
        }
        end(&mut world, requests.count() as u64);
        let totals = world.member_totals();
        assert_eq!((totals.reads, totals.bytes_written / 512), (0, 20 * all), "{layout}");
    }
}

/// What is held of a stripe stays so until the whole ones have been written, not only until they were handed over.
#[test]
fn parts_wait_while_whole_stripes_are_being_written() {
    let mut world = world("raid5(4) chunk=64K");
    world.gather_stripes(256);
    world.write_back(0, Sector(0), Sectors(64));
    for stripe in 1..9 {
        world.write_back(0, Sector(stripe * STRIPE), Sectors(STRIPE));
    }
    // All whole ones are with the members, and none has been answered.
    while world.member_totals().writes < 8 * 4 {
        assert!(world.step());
    }
    assert!(world.next_answer().is_none());
    for _ in 0..3 {
        assert!(world.step());
    }
    world.write_back(0, Sector(64), Sectors(STRIPE - 64));
    end(&mut world, 10);
    assert_eq!(world.member_totals().reads, 0);
}

#[test]
fn what_does_not_become_whole_is_written_at_last() {
    let mut world = world("raid5(4) chunk=64K");
    world.gather_stripes(256);
    // The end of a stripe, a whole one, the beginning of the next; then the same place again, as it is held.
    world.write_back(0, Sector(STRIPE - 64), Sectors(64 + STRIPE + 64));
    world.write_back(0, Sector(2 * STRIPE), Sectors(64));
    end(&mut world, 2);
    let totals = world.member_totals();
    assert!(totals.reads > 0, "what was missing of two stripes: {totals:?}");
    // A read passes what is held, and is answered.
    world.submit(IoOp::Read, Sector(0), Sectors(8), false);
    end(&mut world, 1);
}

#[test]
fn no_more_is_under_way_than_there_are_stripes() {
    let most = |stripes: u64| {
        let mut world = world("raid5(4) chunk=64K");
        world.gather_stripes(stripes);
        world.start_trace();
        for stripe in 0..64 {
            world.write_back(0, Sector(stripe * STRIPE), Sectors(STRIPE));
        }
        end(&mut world, 64);
        let traced = std::iter::from_fn(|| world.next_traced());
        traced.map(|request| request.depth).max().expect("requests")
    };
    // Each stripe takes 16 of a page; some come with passes of md's thread.
    assert!(most(16) < most(1_024), "{} and {}", most(16), most(1_024));
}

/// A call that needs more stripes than there are is cut where a request ends, and what is missing there is read; not so
/// where requests end with stripes, nor once the cache has grown.
#[test]
fn a_long_write_is_read_for_where_stripes_run_out() {
    let reads = |stripes: u64, longest: u64, calls: u64| {
        let mut world = world("raid5(4) chunk=64K");
        world.gather_stripes(stripes);
        let mut of_last = 0;
        for call in 0..calls {
            let before = world.member_totals();
            let at = Sector(call * 8 * STRIPE);
            world.write_plugged(0, at, Sectors(8 * STRIPE), Sectors(longest));
            end(&mut world, 1);
            let totals = world.member_totals();
            of_last = totals.reads - before.reads;
            let written = (totals.bytes_written - before.bytes_written) / 512;
            assert!(written >= 8 * (STRIPE + 128), "{written}");
            assert!(of_last > 0 || written == 8 * (STRIPE + 128), "{written}");
        }
        of_last
    };
    assert_eq!(reads(8 * 16, 256, 1), 0);
    assert!(reads(3 * 16, 256, 1) > 0);
    assert_eq!(reads(3 * 16, STRIPE, 1), 0);
    // A stripe more with each sleep.
    assert_eq!(reads(3 * 16, 256, 200), 0);
    // A request of its own is cut nowhere.
    assert_eq!(reads(16, 8 * STRIPE, 1), 0);
}

#[test]
fn arrays_without_parity_take_write_back_as_any_write() {
    let mut world = world("raid0(4) chunk=64K");
    world.gather_stripes(256);
    world.write_back(0, Sector(3), Sectors(5));
    end(&mut world, 1);
    assert_eq!(world.member_totals().writes, 1);
}
