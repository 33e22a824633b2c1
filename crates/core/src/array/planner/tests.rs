//! What the planner asks itself, and keys of states.

use super::*;
use crate::array::background::ResyncWindow;
use crate::array::ios::IoState;
use crate::array::jobs::JobOwner;
use crate::array::member_set::MemberSet;
use crate::array::requests::RequestState;
use crate::array::settings::Consistency;
use crate::array::stripe::{Band, Task};
use crate::array::timers::Timer;
use crate::array::updates::Purpose;
use crate::contract::{IoOp, ParityOp, Request, RequestId, Scrub, Segment, Token, Work};
use crate::layout::Level;
use crate::units::Sector;

fn array(layout: Layout, sectors: u64) -> Array {
    Array::new(&Config::uniform(layout, Sectors(sectors))).expect("possible")
}

#[test]
fn a_request_lacks_a_copy_where_all_are_on_members_that_failed() {
    let mut array = array(Layout::new(Level::Raid10, 4).with_chunk(Sectors(8)), 64);
    let lacks = |array: &Array, at, end| {
        let mut request = RequestState::idle();
        (request.at, request.end) = (at, end);
        array.lacks_copy(&request)
    };
    array.members.fail(MemberIndex(0));
    assert!(!lacks(&array, 0, 64));
    array.members.fail(MemberIndex(1));
    // Chunks 0, 2, 4 and so on are on members 0 and 1.
    for (at, end, expected) in [
        (0, 8, true),
        (8, 16, false),
        (8, 17, true),
        (0, 1, true),
        (15, 16, false),
        (4, 4, false),
        (12, 40, true),
    ] {
        assert_eq!(lacks(&array, at, end), expected, "{at}..{end}");
    }
}

#[test]
fn a_resync_is_as_long_as_what_is_left_or_named() {
    let mut parity = array(Layout::new(Level::Raid5, 4).with_chunk(Sectors(8)), 64);
    assert_eq!(parity.resync_len(Sector(24), &[]), Sectors(40), "of each member");
    assert_eq!(parity.resync_len(Sector(80), &[]), Sectors(0));
    parity.setup.settings.consistency = Consistency::Bitmap { chunk: Sectors(8) };
    assert_eq!(parity.resync_len(Sector(0), &[0b101, 0b1]), Sectors(24));
    assert_eq!(parity.resync_len(Sector(48), &[0b111]), Sectors(16), "no more than is left");
    assert_eq!(parity.resync_len(Sector(64), &[0b111]), Sectors(0));
    let mirror = array(Layout::new(Level::Raid10, 4).with_chunk(Sectors(8)), 64);
    assert_eq!(mirror.resync_len(Sector(24), &[]), Sectors(104), "of the array");
    let plain = array(Layout::new(Level::Raid0, 4).with_chunk(Sectors(8)), 64);
    assert_eq!(plain.resync_len(Sector(24), &[]), Sectors(0));
}

#[test]
fn an_array_rests_when_nothing_is_in_flight() {
    let mut array = array(Layout::new(Level::Raid1, 2), 64);
    assert!(array.is_at_rest());
    let segments = [Segment { token: Token(0), offset: 0, len: 8 }];
    let request = Request {
        id: RequestId(0),
        op: IoOp::Read,
        at: Sector(0),
        len: Sectors(8),
        segments: &segments,
        fua: false,
    };
    array.handle(Time(1), Input::Plug);
    array.handle(Time(1), Input::Request(request));
    assert!(!array.is_at_rest(), "it is held back");
    array.handle(Time(1), Input::Unplug);
    assert!(!array.is_at_rest());
    array.requests.slots.remove(0);
    assert!(!array.is_at_rest(), "its I/O is in flight");
}

fn raid5(consistency: Consistency) -> Array {
    let layout = Layout::new(Level::Raid5, 4).with_chunk(Sectors(8));
    let mut config = Config::uniform(layout, Sectors(64));
    config.settings.consistency = consistency;
    config.settings.cached_stripes = 8;
    Array::new(&config).expect("possible")
}

/// A plan that writes some rows of the first chunk of a stripe.
fn plan(stripe: u64, rows: (u64, u64)) -> StripePlan {
    let mut plan =
        StripePlan { stripe, rows, band_count: 1, task: Task::Write, ..StripePlan::idle() };
    plan.bands[0] = Band { from: rows.0, to: rows.1, live: 1, ..plan.bands[0] };
    plan
}

fn fail(array: &mut Array) -> MemberSet {
    array.members.fail(MemberIndex(1));
    array.members.failed
}

type Change = (&'static str, fn(&mut Array));

/// Each change of a state has a key of its own.
fn assert_apart(array: &Array, changes: &[Change]) {
    let mut keys = vec![("nothing", array.state_key())];
    for (what, change) in changes {
        let mut changed = array.clone();
        change(&mut changed);
        let key = changed.state_key();
        for (other, known) in &keys {
            assert_ne!(*known, key, "{what} and {other}");
        }
        keys.push((*what, key));
    }
}

#[test]
fn keys_tell_states_of_all_parts_apart() {
    let changes: &[Change] = &[
        ("held back", |array| array.requests.held.push_back(0)),
        ("plugged", |array| array.requests.plugged = true),
        ("a request", |array| _ = array.requests.slots.insert(RequestState::idle())),
        ("with errors", |array| {
            let slot = array.requests.slots.insert(RequestState::idle()).expect("room");
            array.requests.error_state(slot).check_copies = true;
        }),
        ("other errors", |array| {
            let slot = array.requests.slots.insert(RequestState::idle()).expect("room");
            array.requests.error_state(slot).first_bad = Some(Sector(3));
        }),
        ("an I/O", |array| _ = array.ios.slots.insert(IoState::idle())),
        ("given up", |array| {
            _ = array.ios.slots.insert(IoState { abandoned: true, ..IoState::idle() })
        }),
        ("to another member", |array| {
            _ = array.ios.slots.insert(IoState { member: MemberIndex(2), ..IoState::idle() })
        }),
        ("a plan", |array| _ = array.plans.insert(plan(1, (0, 8)))),
        ("another plan", |array| _ = array.plans.insert(plan(2, (0, 8)))),
        ("a job", |array| _ = array.jobs.start(JobOwner::Plan(1), ParityOp::Xor, 8)),
        ("another's job", |array| _ = array.jobs.start(JobOwner::Log, ParityOp::Xor, 8)),
        ("a range held", |array| assert!(array.locks.acquire(1, 0, 8))),
        ("another range", |array| assert!(array.locks.acquire(1, 0, 9))),
        ("a range waited for", |array| {
            assert!(array.locks.acquire(1, 0, 8) && !array.locks.acquire(2, 0, 8));
        }),
        ("by another", |array| {
            assert!(array.locks.acquire(1, 0, 8) && !array.locks.acquire(3, 0, 8));
        }),
        ("a plan without room", |array| array.starved.plans.push_back(1)),
        ("a window without room", |array| array.starved.windows.push_back(1)),
        ("a slice pinned", |array| {
            _ = array.cache.pin(&array.setup, &plan(1, (0, 8)));
        }),
        ("a slice known", |array| {
            let mut one = plan(1, (0, 8));
            one.cache = array.cache.pin(&array.setup, &one);
            array.cache.unpin(&array.setup, MemberSet::NONE, &one, true);
        }),
        ("a member failed", |array| _ = fail(array)),
        ("an error corrected", |array| array.members[MemberIndex(1)].corrected += 1),
        ("a scrub", |array| {
            let work = Work::Scrub(Scrub::Check);
            array.background.begin(&array.setup, &array.members, Time(1), work);
        }),
        ("a resync", |array| {
            array.background.begin(&array.setup, &array.members, Time(1), Work::Resync);
        }),
        ("halted", |array| _ = array.background.halt()),
        ("a window", |array| _ = array.background.windows.insert(ResyncWindow::idle())),
        ("a update", |array| _ = array.updates.start(Purpose::LogSpace, true, false)),
        ("another update", |array| _ = array.updates.start(Purpose::LogSpace, true, true)),
        ("a write that asks", |array| array.gate.enter(&array.setup, 0, (0, 8))),
        ("of another range", |array| array.gate.enter(&array.setup, 0, (0, 16))),
        ("an update wanted", |array| array.gate.set_wanted(true)),
    ];
    assert_apart(&raid5(Consistency::Bitmap { chunk: Sectors(8) }), changes);
    let array = raid5(Consistency::None);
    let mut later = array.clone();
    later.now = Time(77);
    later.timers.set(Timer::Pace, Time(99));
    assert_eq!(later.state_key(), array.state_key(), "time is in no key");
}

#[test]
fn keys_tell_states_of_logs_apart() {
    let enter = |array: &mut Array, plan_slot: u32, plan: &StripePlan| {
        let failed = array.members.failed;
        assert!(array.log.enter(&array.setup, failed, plan_slot, plan).is_ok());
    };
    for consistency in
        [Consistency::PartialParity { slots: 8 }, Consistency::Journal { sectors: Sectors(4096) }]
    {
        let array = raid5(consistency);
        let mut keys = vec![array.state_key()];
        let mut add = |what: &str, array: &Array| {
            let key = array.state_key();
            assert!(!keys.contains(&key), "{consistency:?}: {what}");
            keys.push(key);
        };
        for (slot, rows) in [(0, (0, 8)), (1, (0, 8)), (0, (0, 4))] {
            let mut array = array.clone();
            enter(&mut array, slot, &plan(1, rows));
            add("entered", &array);
            array.log.plan_logged(slot);
            add("logged", &array);
            array.log.places_ended(&array.setup, slot, false);
            if rows == (0, 8) && slot == 1 {
                // Whose it was says nothing any more.
                continue;
            }
            add("ended", &array);
            array.log.begin_flush();
            add("flushed", &array);
        }
        let mut array = array.clone();
        array.log.wait_for_record(2);
        add("waits", &array);
    }
}

#[test]
fn a_key_is_of_all_bytes_in_order() {
    let mut key = Key(7);
    key.write(&[]);
    assert_eq!(key.finish(), 7);
    key.write(&[3]);
    assert_eq!(key.finish(), (7 ^ 3) * 0x100_0000_01b3);
    let mut other = Key(7);
    other.write(&[3, 0]);
    assert_ne!(other.finish(), key.finish());
    key.write(&[0]);
    assert_eq!(other.finish(), key.finish());
}
