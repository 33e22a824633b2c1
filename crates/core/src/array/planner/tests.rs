//! What the planner asks itself, and keys of states.

use super::*;
use crate::array::background::{self, Phase, ResyncWindow};
use crate::array::bad_blocks::BadBlocks;
use crate::array::config::Limits;
use crate::array::ios::IoState;
use crate::array::jobs::JobOwner;
use crate::array::lists::ListBuilder;
use crate::array::member_set::MemberSet;
use crate::array::metadata_updates::Purpose;
use crate::array::requests::RequestState;
use crate::array::settings::Consistency;
use crate::array::stripe::{Band, Memory, Piece, Task};
use crate::array::timers::Timer;
use crate::consistency::LogEntry;
use crate::contract::{
    Admin, Completion, Event, IoId, IoOp, IoOutcome, Outcome, ParityOp, Record, Refusal, Request,
    RequestId, Scrub, Segment, Token, Work,
};
use crate::layout::Level;
use crate::units::{Nanos, Sector};

fn array_of(layout: Layout, sectors: u64) -> Array {
    let limits = Limits { requests: 8, segments: 4, ios: 2, plans: 4, windows: 2 };
    Array::new(&Config { limits, ..Config::uniform(layout, Sectors(sectors)) }).expect("possible")
}

#[test]
fn a_request_lacks_a_copy_where_all_are_on_members_that_failed() {
    let mut array = array_of(Layout::new(Level::Raid10, 4).with_chunk(Sectors(8)), 64);
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
    let mut parity = array_of(Layout::new(Level::Raid5, 4).with_chunk(Sectors(8)), 64);
    assert_eq!(parity.resync_len(Sector(24), &[]), Sectors(40), "of each member");
    assert_eq!(parity.resync_len(Sector(80), &[]), Sectors(0));
    parity.setup.settings.consistency = Consistency::Bitmap { chunk: Sectors(8) };
    assert_eq!(parity.resync_len(Sector(0), &[0b101, 0b1]), Sectors(24));
    assert_eq!(parity.resync_len(Sector(48), &[0b111]), Sectors(16), "no more than is left");
    assert_eq!(parity.resync_len(Sector(64), &[0b111]), Sectors(0));
    let mirror = array_of(Layout::new(Level::Raid10, 4).with_chunk(Sectors(8)), 64);
    assert_eq!(mirror.resync_len(Sector(24), &[]), Sectors(104), "of the array");
    let plain = array_of(Layout::new(Level::Raid0, 4).with_chunk(Sectors(8)), 64);
    assert_eq!(plain.resync_len(Sector(24), &[]), Sectors(0));
}

#[test]
fn an_array_rests_when_nothing_is_in_flight() {
    let mut array = array_of(Layout::new(Level::Raid1, 2), 64);
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
    config.limits = Limits { requests: 8, segments: 4, ios: 2, plans: 4, windows: 4 };
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

/// How many I/Os, and list nodes, must be free for something to begin.
fn room_wanted(array: &Array, begins: impl Fn(&mut Array) -> bool) -> (usize, usize) {
    let mut ios = array.clone();
    while begins(&mut ios.clone()) && ios.ios.slots.insert(IoState::idle()).is_some() {}
    let mut nodes = array.clone();
    let mut list = ListBuilder::new();
    while begins(&mut nodes.clone()) && nodes.lists.available() > 0 {
        let offset = 2 * list.len();
        list.push(&mut nodes.lists, Segment { token: Token(1), offset, len: 1 });
    }
    let wanted = |array: &Array| (array.ios.slots.available() + 1, array.lists.available() + 1);
    (wanted(&ios).0, wanted(&nodes).1)
}

fn submit(array: &mut Array, op: IoOp, segments: &[Segment]) -> u32 {
    let len = Sectors(segments.iter().map(|one| u64::from(one.len)).sum());
    let request = Request { id: RequestId(0), op, at: Sector(0), len, segments, fua: false };
    array.requests.insert(&array.setup, &request).expect("room")
}

const SEGMENT: Segment = Segment { token: Token(1), offset: 0, len: 4 };

#[test]
fn a_plan_wants_room_for_its_largest_phase() {
    let mut array = raid5(Consistency::None);
    let mut one = plan(0, (0, 8));
    one.request = submit(&mut array, IoOp::Write, &[SEGMENT, SEGMENT]);
    let slot = array.plans.insert(one).expect("room");
    let wanted = |array: &Array| room_wanted(array, |array| array.has_room_for(slot));
    // Three ranges on each of four members; two segments; from and to the cache two ranges of each role more.
    assert_eq!(wanted(&array), (12, 2 + 12));
    array.plans[slot].cache = 0;
    assert_eq!(wanted(&array), (12, 2 + 12 + (2 + 2 * 3 * 4)));
    array.members.begin_replace(MemberIndex(1), MemberIndex(5), (0, 0));
    assert_eq!(wanted(&array), (24, 4 + 24 + (4 + 2 * 3 * 4)), "to both drives");
    let mut raid3 = array_of(Layout::new(Level::Raid3, 5), 64);
    one.request = submit(&mut raid3, IoOp::Write, &[SEGMENT]);
    one.rows = (2, 8);
    let slot = raid3.plans.insert(one).expect("room");
    let wanted = room_wanted(&raid3, |array| array.has_room_for(slot));
    assert_eq!(wanted, (15, 1 + 15 + 6 * 4), "a node for each sector of a member");
}

#[test]
fn what_goes_to_several_members_wants_room_for_all() {
    let mut array = array_of(Layout::new(Level::Raid1, 3), 64);
    let slot = submit(&mut array, IoOp::Write, &[SEGMENT, SEGMENT]);
    for copies in [1, 3] {
        let wanted = room_wanted(&array, |array| array.has_room(slot, copies));
        assert_eq!(wanted, (copies, (2 + 2) * copies));
    }
    let flush = submit(&mut array, IoOp::Flush, &[]);
    assert_eq!(room_wanted(&array, |array| array.plan_flush(flush)).0, 2 * 3);
    assert_eq!(room_wanted(&array, |array| array.plan_write(slot)).0, 3);
    array.members.begin_replace(MemberIndex(1), MemberIndex(4), (0, 0));
    assert_eq!(room_wanted(&array, |array| array.plan_write(slot)).0, 6);
    let window = ResyncWindow { len: 8, part: (0, 8), phase: Phase::Plan, ..ResyncWindow::idle() };
    let scrub = Work::Scrub(Scrub::Check);
    array.background.begin(&array.setup, &array.members, Time(1), scrub);
    let window = ResyncWindow { task: background::Task::Scrub(Scrub::Check), serial: 1, ..window };
    let slot = array.background.windows.insert(window).expect("room");
    assert_eq!(room_wanted(&array, |array| array.issue_window(slot)).0, 2 * 3);
}

#[test]
fn a_stripe_lacks_a_chunk_that_is_read_from_a_member_that_failed() {
    let mut array = raid5(Consistency::None);
    assert!(!array.stripe_lacks_chunk(Sector(0), 24, MemberSet::NONE));
    // Member 1 has the second chunk of the first stripe.
    let failed = fail(&mut array);
    for (at, end, expected) in [
        (0, 8, false),
        (0, 9, true),
        (8, 16, true),
        (15, 24, true),
        (16, 24, false),
        (16, 48, false),
    ] {
        assert_eq!(array.stripe_lacks_chunk(Sector(at), end, failed), expected, "{at}..{end}");
    }
}

#[test]
fn a_plan_lacks_parity_that_is_not_made_or_not_in_service() {
    let layout = Layout::new(Level::Raid6, 5).with_chunk(Sectors(8));
    let mut array = array_of(layout, 64);
    let mut two = plan(0, (0, 8));
    two.band_count = 2;
    (two.bands[0].live, two.bands[1].live) = (3, 3);
    let slot = array.plans.insert(two).expect("room");
    assert!(!array.lacks_parity(slot));
    for live in [0, 1, 2] {
        array.plans[slot].bands[1].live = live;
        assert!(array.lacks_parity(slot), "{live}");
    }
    array.plans[slot].bands[1].live = 3;
    let q = array.setup.role_member(0, 4);
    array.members.fail(array.setup.role_member(0, 1));
    assert!(!array.lacks_parity(slot), "a chunk is no parity");
    array.members.fail(q);
    assert!(array.lacks_parity(slot));
}

/// An array with a window of some work in flight, of rows 8 to 16 of the members and the window 2 to 5 in them.
fn with_unit(task: background::Task) -> (Array, u32) {
    let mut array = raid5(Consistency::None);
    let window = ResyncWindow {
        task,
        at: 8,
        len: 8,
        stripe: 1,
        part: (2, 5),
        pending: 1,
        ..ResyncWindow::idle()
    };
    let slot = array.background.windows.insert(window).expect("room");
    (array, slot)
}

fn bad(array: &Array, device: MemberIndex) -> Vec<(u64, u64)> {
    array.members[device].bad.iter().collect()
}

/// Where metadata list what is bad a member is rebuilt all the same; the list names what was written since until that
/// is durable.
#[test]
fn what_a_list_names_is_named_until_it_was_written_durably() {
    let one = MemberIndex(1);
    let (mut array, slot) = with_unit(background::Task::Rebuild(one));
    array.setup.settings.keeps_bad_blocks = true;
    let listed = |array: &Array| {
        let mut all: Vec<_> = array.listed_blocks(one).map(|(at, len)| (at.0, len.0)).collect();
        all.sort_unstable();
        all
    };
    // What its drive will say itself is not listed.
    assert!(array.members[one].bad.insert(40, 41));
    assert_eq!(listed(&array), []);
    array.lose_window(slot);
    assert_eq!((listed(&array), array.members[one].hole_from), (vec![(10, 3), (40, 1)], u64::MAX));
    let write =
        |at, len| IoState { op: IoOp::Write, member: one, at: Sector(at), len, ..IoState::idle() };
    assert!(array.mended_by_write(&write(11, 40)));
    assert_eq!((bad(&array, one), listed(&array)), (vec![(10, 11)], vec![(10, 3), (40, 1)]));
    let mut all = MemberSet::NONE;
    all.insert(one);
    array.members.fill(all);
    assert_eq!(listed(&array), [(10, 3), (40, 1)], "some of it is bad");
    assert!(array.mended_by_write(&write(10, 1)));
    assert_eq!((bad(&array, one), listed(&array)), (vec![], vec![(10, 3), (40, 1)]));
    array.members.fill(all);
    assert_eq!(listed(&array), []);

    // A list has no more entries than there is room for, of 512 sectors each.
    array.members[one].bad = BadBlocks::new(512);
    assert!(array.members[one].bad.insert(100, 100 + 512 * 512));
    array.lose_window(slot);
    assert!(array.members.failed.contains(one) && bad(&array, one).len() == 1);
}

#[test]
fn a_window_that_is_lost_is_listed_where_it_should_be() {
    let one = MemberIndex(1);
    let (mut array, slot) = with_unit(background::Task::Rebuild(one));
    array.lose_window(slot);
    array.lose_window(slot);
    let window = array.background.windows[slot];
    assert_eq!((window.lost, window.phase), (6, Phase::Next));
    assert_eq!((bad(&array, one), array.members[one].hole_from), (vec![(10, 13)], 10));
    assert!(array.members.partial.contains(one));

    let (mut array, slot) = with_unit(background::Task::Replace(one));
    let other = array.setup.replacement(one);
    array.members[other].hole_from = 3;
    array.lose_window(slot);
    assert_eq!(array.background.windows[slot].lost, 3);
    assert_eq!((bad(&array, one), bad(&array, other)), (vec![(10, 13)], vec![(10, 13)]));
    assert_eq!((array.members[one].hole_from, array.members[other].hole_from), (u64::MAX, 3));

    let (mut array, slot) = with_unit(background::Task::Heal(one));
    array.lose_window(slot);
    let window = array.background.windows[slot];
    assert_eq!((window.lost, window.phase, window.part), (0, Phase::Probe, (5, 8)));
    assert_eq!((bad(&array, one), array.members[one].hole_from), (vec![(10, 13)], u64::MAX));

    // Of rows that were not made consistent what cannot be read is lost, and parity with it.
    let (mut array, slot) = with_unit(background::Task::Resync);
    let roles = [0, 1, 2, 3].map(|role| array.setup.role_member(1, role));
    array.background.windows[slot].avoid.insert(roles[1]);
    array.lose_window(slot);
    assert_eq!(array.background.windows[slot].lost, 3);
    let listed = roles.map(|member| !bad(&array, member).is_empty());
    assert_eq!(listed, [false, true, false, true]);
    array.members.fail(roles[3]);
    array.members[roles[3]].bad.clear();
    array.lose_window(slot);
    assert!(bad(&array, roles[3]).is_empty(), "nobody reads it");

    let (mut array, slot) = with_unit(background::Task::Scrub(Scrub::Check));
    roles[..2].iter().for_each(|member| array.background.windows[slot].avoid.insert(*member));
    array.lose_window(slot);
    assert_eq!((array.background.windows[slot].lost, bad(&array, roles[0])), (3, vec![]));
}

#[test]
fn a_unit_whose_write_fails_goes_on_without_the_member_unless_that_is_the_last() {
    let one = MemberIndex(1);
    let media = IoOutcome::MediaError { first_bad: Sector(8) };
    for (outcome, others_failed, fails) in [
        (media, false, true),
        (IoOutcome::Gone, false, true),
        (media, true, false),
        (IoOutcome::Gone, true, true),
    ] {
        let (mut array, slot) = with_unit(background::Task::Heal(one));
        if others_failed {
            array.members.fail(MemberIndex(0));
        }
        let io = IoState { op: IoOp::Write, member: one, at: Sector(8), len: 3, ..IoState::idle() };
        array.background.windows[slot].pending = 2;
        array.members[one].background = 1;
        array.window_io_ended(slot, &io, outcome);
        assert_eq!(array.members.failed.contains(one), fails, "{outcome:?} {others_failed}");
        assert_eq!(array.background.windows[slot].tries, u8::MAX);
        assert_eq!(array.background.windows[slot].pending, 1);
    }
}

#[test]
fn a_unit_forgets_cached_rows_of_its_range() {
    let (mut array, slot) = with_unit(background::Task::Resync);
    array.background.windows[slot].phase = Phase::Done;
    let known: Vec<bool> = (0..4)
        .map(|stripe| {
            let mut array = array.clone();
            let mut one = plan(stripe, (0, 8));
            one.cache = array.cache.pin(&array.setup, &one);
            array.cache.unpin(&array.setup, MemberSet::NONE, &one, true);
            array.begin_window(slot);
            one.cache = array.cache.pin(&array.setup, &one);
            !array.cache.cached_roles(&array.setup, &one, &one.bands[0]).is_empty()
        })
        .collect();
    assert_eq!(known, [true, false, true, true]);
    let free = array.background.windows.available();
    array.begin_window(slot);
    assert_eq!(array.background.windows.available(), free + 1, "there is room: it goes on at once");
}

#[test]
fn a_probe_reads_beside_what_was_written() {
    for (layout, place) in [
        (Layout::new(Level::Raid5, 4).with_chunk(Sectors(8)), 4),
        (Layout::new(Level::Raid1, 3), 1),
    ] {
        let mut array = array_of(layout, 64);
        let one = MemberIndex(1);
        let mut window = ResyncWindow::at(&array.setup, one, 8, 4).expect("it is used");
        (window.task, window.phase) = (background::Task::Heal(one), Phase::Probe);
        let slot = array.background.windows.insert(window).expect("room");
        array.issue_probe(slot);
        let Some(Output::MemberIo(io)) = array.poll() else { panic!("nothing was sent out") };
        assert_eq!((io.op, io.member, io.at, io.len), (IoOp::Read, one, Sector(8), 4));
        assert_eq!(u64::from(io.segments.first.offset), place * array.setup.window_rows);
    }
}

#[test]
fn what_finds_no_room_waits_if_it_writes_to_a_member_that_is_served() {
    let mut array = array_of(Layout::new(Level::Raid1, 3), 64);
    let cases = [
        (IoOp::Write, 0, IoOutcome::NoSpace, true),
        (IoOp::WriteZeroes, 0, IoOutcome::NoSpace, true),
        (IoOp::Write, 0, IoOutcome::Gone, false),
        (IoOp::Read, 0, IoOutcome::NoSpace, false),
        (IoOp::Flush, 0, IoOutcome::NoSpace, false),
        (IoOp::Write, 1, IoOutcome::NoSpace, false),
        (IoOp::Write, 4, IoOutcome::NoSpace, false),
    ];
    array.members.fail(MemberIndex(1));
    array.setup.settings.room_wait = Some(Nanos::from_millis(1));
    for (op, member, outcome, expected) in cases {
        let mut array = array.clone();
        let state = IoState { op, member: MemberIndex(member), ..IoState::idle() };
        let (slot, generation) = array.ios.slots.insert_named(state).expect("room");
        let io = IoId { slot, generation };
        assert_eq!(array.waits_for_room(&Completion { io, outcome }), expected, "{op:?} {member}");
        assert_eq!(array.room.holds(io), expected);
        let mut hurried = array.clone();
        hurried.setup.settings.room_wait = None;
        assert!(!hurried.waits_for_room(&Completion { io, outcome }), "it is not asked to wait");
        array.ios.slots.remove(slot);
        assert!(!array.waits_for_room(&Completion { io, outcome }), "it is known no longer");
    }
}

#[test]
fn a_drive_is_as_large_as_what_may_lie_on_it() {
    let least = |mode, chunk: u64, sectors: u64| {
        let layout = Layout::new(Level::Raid5, 4).with_chunk(Sectors(chunk));
        let mut config = Config::uniform(layout, Sectors(sectors));
        config.settings.consistency = mode;
        config.members[2].sectors = Sectors(sectors + 7);
        let array = Array::new(&config).expect("possible");
        let fits = |sectors: &u64| array.does_not_fit(MemberIndex(2), Sectors(*sectors)).is_none();
        (1..).find(fits).expect("some size does")
    };
    assert_eq!(least(Consistency::None, 8, 70), 64, "what the array uses");
    assert_eq!(least(Consistency::Resync, 8, 70), 70, "what superblocks say");
    assert_eq!(least(Consistency::Bitmap { chunk: Sectors(8) }, 8, 70), 70);
    assert_eq!(least(Consistency::PartialParity { slots: 8 }, 8, 70), 77, "the log lies behind");
    assert_eq!(least(Consistency::Journal { sectors: Sectors(4096) }, 8, 70), 70);
}

#[test]
fn a_journal_has_room_for_the_entries_of_a_plan() {
    let refused = |sectors| {
        let layout = Layout::new(Level::Raid5, 4).with_chunk(Sectors(8));
        let mut config = Config::uniform(layout, Sectors(64));
        config.settings.consistency = Consistency::Journal { sectors: Sectors(sectors) };
        Array::new(&config).err().map(|error| error.key)
    };
    let least = crate::array::log::least_sectors(4, 8);
    assert_eq!([least, least - 1].map(refused), [None, Some("consistency")]);
}

#[test]
fn an_array_does_not_stop_before_its_log_is_replayed() {
    let mut array = raid5(Consistency::Journal { sectors: Sectors(4096) });
    let (at, sequence, stripe, settled) = (Sector(0), 1, 0, 1);
    let roles = [0b1001, 0];
    let record = Record::JournalEntry { at, sequence, stripe, from: 0, to: 8, roles, settled };
    let entry = LogEntry { member: array.setup.journal(), at, record };
    let stop = |mut array: Array| {
        array.handle(Time(1), Input::Admin(Admin::Stop));
        std::iter::from_fn(move || array.poll()).collect::<Vec<_>>()
    };
    let busy = Output::Event(Event::Refused(Refusal::Busy));
    assert!(!stop(array.clone()).contains(&busy));
    assert!(array.log.begin_with(&array.setup, &[entry]));
    assert!(stop(array).contains(&busy));
}

#[test]
fn copies_are_looked_for_after_a_write_that_a_member_could_not_do() {
    for (op, checks) in [(IoOp::Write, true), (IoOp::Flush, false)] {
        let mut array = array_of(Layout::new(Level::Raid1, 3), 64);
        let slot = match op {
            IoOp::Flush => submit(&mut array, op, &[]),
            _ => submit(&mut array, op, &[SEGMENT]),
        };
        let planned = if checks { array.plan_write(slot) } else { array.plan_flush(slot) };
        assert!(planned);
        let Some(Output::MemberIo(io)) = array.poll() else { panic!("nothing was sent out") };
        while array.poll().is_some() {}
        let completion = Completion { io: io.io, outcome: IoOutcome::Gone };
        array.handle(Time(1), Input::Completion(completion));
        assert!(array.members.failed.contains(io.member));
        let errors =
            array.requests[slot].has_errors.then_some(array.requests.errors[slot as usize]);
        assert_eq!(errors.is_some_and(|errors| errors.check_copies), checks);
    }
}

#[test]
fn a_drive_that_was_replaced_while_it_was_read_fails_nobody() {
    for outcome in [IoOutcome::Gone, IoOutcome::MediaError { first_bad: Sector(2) }] {
        let mut array = array_of(Layout::new(Level::Raid1, 3), 64);
        let slot = submit(&mut array, IoOp::Read, &[SEGMENT]);
        array.advance(slot);
        let Some(Output::MemberIo(io)) = array.poll() else { panic!("nothing was sent out") };
        let other = array.setup.replacement(io.member);
        array.members.take_over(io.member, other);
        array.ios.swap_members(io.member, other);
        array.handle(Time(1), Input::Completion(Completion { io: io.io, outcome }));
        let Some(Output::MemberIo(again)) = array.poll() else { panic!("it is not read again") };
        assert_eq!((again.op, again.member, again.at), (IoOp::Read, io.member, io.at));
        assert_eq!(array.poll(), None, "no event");
        assert!(array.members.failed.is_empty() && array.requests.avoided(slot).is_empty());
    }
}

#[test]
fn what_the_last_copy_cannot_do_fails_the_request_and_only_a_drive_that_is_gone() {
    let media = IoOutcome::MediaError { first_bad: Sector(2) };
    let cases = [
        (media, false, Outcome::MediaError { first_bad: Sector(2) }),
        (IoOutcome::Timeout, false, Outcome::ArrayFailed),
        (IoOutcome::Gone, true, Outcome::ArrayFailed),
    ];
    for (outcome, fails, expected) in cases {
        let mut array = array_of(Layout::new(Level::Raid1, 2), 64);
        array.members.fail(MemberIndex(0));
        let slot = submit(&mut array, IoOp::Write, &[SEGMENT]);
        assert!(array.plan_write(slot));
        let Some(Output::MemberIo(io)) = array.poll() else { panic!("nothing was sent out") };
        while array.poll().is_some() {}
        array.handle(Time(1), Input::Completion(Completion { io: io.io, outcome }));
        assert_eq!(array.members.failed.contains(MemberIndex(1)), fails, "{outcome:?}");
        assert_eq!(array.requests.errors[slot as usize].outcome, expected);
    }
}

#[test]
fn nothing_is_copied_from_a_cache_that_knows_nothing() {
    let mut array = raid5(Consistency::None);
    let segments = [SEGMENT];
    let write = |id, at| Request {
        id: RequestId(id),
        op: IoOp::Write,
        at: Sector(at),
        len: Sectors(4),
        segments: &segments,
        fua: false,
    };
    array.handle(Time(1), Input::Request(write(0, 0)));
    let sent: Vec<Output> = std::iter::from_fn(|| array.poll()).collect();
    assert!(sent.iter().all(|output| matches!(output, Output::MemberIo(_))), "{sent:?}");
    assert_eq!(sent.len(), 2, "the other chunks, or the chunk and parity");
}

#[test]
fn rows_of_a_role_lie_in_the_payload_and_in_the_scratch() {
    let mut array = raid5(Consistency::None);
    let rows = array.setup.plan_rows as u32;
    let mut one = plan(0, (2, 8));
    one.request = submit(&mut array, IoOp::Write, &[Segment { len: 24, ..SEGMENT }]);
    // From the second sector of chunk 0 on, behind three sectors of the request.
    (one.piece, one.payload) = (Piece { start: 2, end: 20 }, 3);
    let band = Band { from: 4, to: 7, ..one.bands[0] };
    let slot = array.plans.insert(one).expect("room");
    let list = |array: &mut Array, role, memory| {
        let mut list = ListBuilder::new();
        array.add_rows(slot, &one, role, &band, memory, &mut list);
        let list = list.finish();
        array.lists.iter(&list).map(|one| (one.token, one.offset, one.len)).collect::<Vec<_>>()
    };
    let (scratch, payload) = (array.setup.scratch_token(slot), SEGMENT.token);
    for role in [0, 2, 3] {
        let offset = u32::from(role) * rows + 4 - 2;
        assert_eq!(list(&mut array, role, Memory::Scratch), [(scratch, offset, 3)]);
    }
    for role in [0, 1] {
        let offset = 3 + u32::from(role) * 8 + 4 - 2;
        assert_eq!(list(&mut array, role, Memory::Payload), [(payload, offset, 3)]);
    }
    assert_eq!(list(&mut array, 0, Memory::Zeroes), []);
    // raid3: the members' sectors in turn.
    let mut raid3 = array_of(Layout::new(Level::Raid3, 3), 64);
    let atom = raid3.setup.atom as u32;
    one.request = submit(&mut raid3, IoOp::Write, &[Segment { len: 16 * atom, ..SEGMENT }]);
    one.payload = u64::from(2 * atom);
    let mut pieces = ListBuilder::new();
    let band = Band { from: 4, to: 4 + 3 * u64::from(atom), ..band };
    raid3.add_rows(slot, &one, 1, &band, Memory::Payload, &mut pieces);
    let pieces = pieces.finish();
    let found: Vec<_> = raid3.lists.iter(&pieces).map(|one| (one.offset, one.len)).collect();
    assert_eq!(found, [(3 * atom, atom), (5 * atom, atom), (7 * atom, atom)]);
}
