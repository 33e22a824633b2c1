//! One range: when it is void, what it covers, what becomes of its window.

use super::*;
use crate::array::lists::NIL;
use crate::contract::{RepairSource, Role, Segment};

/// A bench whose members have blocks of so many sectors.
fn blocks(level: Level, members: u16, block: u32) -> Bench {
    let mut bench = bench(level, members, Consistency::None);
    bench.setup.logical_block = block;
    bench
}

#[test]
fn a_range_is_void_when_nobody_wants_it_any_more() {
    let mut members = Members::new(9, 8);
    members.begin_rebuild(ONE, None);
    members.begin_replace(MemberIndex(2), MemberIndex(6), (0, 0));
    let is_void = |members: &Members, task, over| {
        ResyncWindow { task, ..ResyncWindow::idle() }.is_void(members, over)
    };
    let scrub = Task::Scrub(Scrub::Check);
    let (rebuild, replace, heal) =
        (Task::Rebuild(ONE), Task::Replace(MemberIndex(2)), Task::Heal(MemberIndex(3)));
    for task in [rebuild, replace, Task::Resync, scrub] {
        assert!(!is_void(&members, task, false) && is_void(&members, task, true), "{task:?}");
    }
    assert!(!is_void(&members, heal, true), "healing is part of no work");
    assert!(is_void(&members, Task::Rebuild(MemberIndex(2)), false));
    assert!(is_void(&members, Task::Replace(ONE), false));
    members.fail(MemberIndex(3));
    assert!(is_void(&members, heal, false));
    members.fail(MemberIndex(2));
    assert!(is_void(&members, replace, false), "its drive is read no longer");
    members.stopped = true;
    for task in [rebuild, replace, Task::Resync, scrub, heal] {
        assert!(is_void(&members, task, false), "{task:?}");
    }
}

#[test]
fn ranges_of_earlier_work_are_void() {
    let mut bench = bench(Level::Raid5, 4, Consistency::None);
    bench.begin(Work::Scrub(Scrub::Check));
    let slot = bench.range().expect("there is work");
    assert!(!bench.background.is_void(slot, &bench.members));
    bench.background.interrupt();
    assert!(bench.background.is_void(slot, &bench.members));
    bench.begin(Work::Scrub(Scrub::Check));
    assert!(bench.background.is_void(slot, &bench.members), "it is not of this work");
    let window = bench.background.windows[slot];
    assert!(!bench.background.window_ended(&window, Time(2), 0));
    let heal = ResyncWindow {
        task: Task::Heal(ONE),
        serial: bench.background.serial,
        ..ResyncWindow::idle()
    };
    assert!(!bench.background.window_ended(&heal, Time(2), 0));
}

#[test]
fn a_unit_covers_what_lies_together() {
    let at = |level, members, from, len| {
        let bench = bench(level, members, Consistency::None);
        let window = ResyncWindow::at(&bench.setup, MemberIndex(0), from, len)?;
        assert_eq!((window.part, window.window_len()), ((0, window.len), window.len));
        assert_eq!(window.end(), window.at + u64::from(window.len));
        Some((window.at, window.len, window.stripe))
    };
    assert_eq!(at(Level::Raid5, 4, 130, 200), Some((130, 62, 2)), "to the end of the chunk");
    assert_eq!(at(Level::Raid5, 4, 130, 20), Some((130, 20, 2)));
    assert_eq!(at(Level::Raid5, 4, 1 << 14, 8), None, "behind the end");
    assert_eq!(at(Level::Raid1, 2, 130, 200), Some((130, 200, 0)));
    assert_eq!(at(Level::Raid10, 4, 130, 200), Some((258, 62, 0)), "sectors of the array");
}

#[test]
fn healing_overlaps_where_it_is_of_one_member() {
    let window = |member, at| ResyncWindow {
        task: Task::Heal(MemberIndex(member)),
        at,
        len: 8,
        ..ResyncWindow::idle()
    };
    for (other, expected) in [
        ((1, 8), true),
        ((1, 1), true),
        ((1, 15), true),
        ((1, 0), false),
        ((1, 16), false),
        ((2, 8), false),
    ] {
        let (one, other) = (window(1, 8), window(other.0, other.1));
        assert_eq!((one.overlaps(&other), other.overlaps(&one)), (expected, expected), "{other:?}");
    }
}

#[test]
fn windows_are_blocks_and_end_with_the_range() {
    let bench = blocks(Level::Raid5, 4, 8);
    let mut range = window(&bench.setup, Task::Rebuild(ONE));
    range.len = 20;
    range.part = (0, 20);
    range.avoid.insert(ONE);
    assert!(range.lacks_sources(&bench.setup));
    assert_eq!((range.part, range.steps), ((0, 8), Steps::Read(20)));
    assert!(range.avoid.is_empty() && !range.lacks_sources(&bench.setup));
    let mut windows = Vec::new();
    while range.phase != Phase::Done {
        windows.push(range.part);
        range.avoid.insert(ONE);
        range.next_window(&bench.setup);
        assert_eq!(range.avoid.is_empty(), range.phase == Phase::Plan);
    }
    assert_eq!(windows, [(0, 8), (8, 16), (16, 20)]);
    let mut heal = window(&bench.setup, Task::Heal(ONE));
    assert!(!heal.lacks_sources(&bench.setup), "it has one block anyway");
    let mut short = ResyncWindow { len: 4, part: (0, 4), ..range };
    assert!(!short.lacks_sources(&bench.setup));
    short.steps = Steps::Whole;
    short.next_window(&bench.setup);
    assert_eq!(short.phase, Phase::Done);
}

#[test]
fn what_differs_is_compared_block_by_block() {
    for (level, members, last) in
        [(Level::Raid5, 4, Phase::Compare), (Level::Raid6, 5, Phase::Locate)]
    {
        let bench = blocks(level, members, 8);
        let mut range = window(&bench.setup, Task::Scrub(Scrub::Check));
        range.part = (16, 48);
        assert!(!range.compared(&bench.setup), "all agree");
        assert_eq!(range.phase, Phase::Next);
        range.differs = Some((3, 14));
        assert!(!range.compared(&bench.setup));
        assert_eq!((range.part, range.steps), ((16, 24), Steps::Compare(32)));
        assert_eq!((range.phase, range.differs), (Phase::Compare, None));
        range.part = (16, 48);
        range.differs = Some((11, 11));
        assert!(!range.compared(&bench.setup));
        assert_eq!((range.part, range.steps), ((24, 32), Steps::Compare(32)));
        range.differs = Some((0, 8));
        range.located = Some(1);
        assert_eq!(range.compared(&bench.setup), last == Phase::Compare);
        assert_eq!((range.phase, range.located), (last, None));
        range.part = (16, 64);
        range.len = 44;
        range.differs = Some((0, 48));
        assert!(!range.compared(&bench.setup));
        assert_eq!(range.steps, Steps::Compare(44), "no further than the range");
    }
}

#[test]
fn jobs_tell_where_they_differ_together() {
    let mut range = ResyncWindow { pending: 5, phase: Phase::Compare, ..ResyncWindow::idle() };
    range.computed(JobResult::Equal);
    range.computed(JobResult::Differs { from: 5, to: 7 });
    range.computed(JobResult::Differs { from: 2, to: 6 });
    assert_eq!((range.pending, range.differs, range.failed), (2, Some((2, 7)), false));
    range.computed(JobResult::Equal);
    assert_eq!(range.differs, Some((2, 7)), "what came before counts");
    range.computed(JobResult::Differs { from: 3, to: 9 });
    assert_eq!(range.differs, Some((2, 9)));
    let mut range =
        ResyncWindow { pending: 2, phase: Phase::Locate, differs: Some((0, 1)), ..range };
    range.computed(JobResult::Located(2));
    assert_eq!((range.located, range.differs), (Some(2), None));
    range.computed(JobResult::Failed);
    assert!(range.failed && range.pending == 0);
}

#[test]
fn what_could_not_be_read_is_kept_for_healing() {
    let bench = bench(Level::Raid5, 4, Consistency::None);
    let bad = |first_bad| IoOutcome::MediaError { first_bad: Sector(first_bad) };
    let replacement = bench.setup.replacement(ONE);
    let cases = [
        (Phase::Read, ONE, bad(105), true, Some((ONE, 105, 3))),
        (Phase::Read, ONE, bad(3), true, Some((ONE, 100, 8))),
        (Phase::Read, ONE, bad(500), true, Some((ONE, 107, 1))),
        (Phase::Read, ONE, IoOutcome::Gone, true, None),
        (Phase::Probe, ONE, bad(105), false, None),
    ];
    for (phase, member, outcome, again, sick) in cases {
        let mut range = ResyncWindow { phase, ..ResyncWindow::idle() };
        range.read_failed(&bench.setup, member, (Sector(100), 8), outcome);
        assert_eq!((range.again, range.sick), (again, sick), "{outcome:?}");
        assert_eq!(range.avoid.contains(ONE), again);
    }
    let mut range = ResyncWindow { phase: Phase::Read, ..ResyncWindow::idle() };
    range.read_failed(&bench.setup, replacement, (Sector(100), 8), bad(105));
    assert!(range.again && range.avoid.is_empty() && range.sick.is_none(), "it is read again");
    range.read_failed(&bench.setup, ONE, (Sector(100), 8), bad(105));
    range.read_failed(&bench.setup, MemberIndex(0), (Sector(100), 8), bad(101));
    assert_eq!(range.sick, Some((ONE, 105, 3)), "one at a time");
}

#[test]
fn a_probe_ends_with_what_is_bad_now() {
    let bench = blocks(Level::Raid5, 4, 8);
    let bad = |first_bad| Some(IoOutcome::MediaError { first_bad: Sector(first_bad) });
    let mut heal = window(&bench.setup, Task::Heal(ONE));
    (heal.at, heal.len, heal.part) = (128, 20, (0, 20));
    // What was written last, what the probe found, and whether that is healed and what is bad.
    let cases = [
        (None, bad(137), false, Some(8)),
        (None, bad(3), false, Some(0)),
        (None, bad(900), false, Some(16)),
        (None, Some(IoOutcome::Ok), false, None),
        (Some(0), bad(137), true, Some(8)),
        (Some(8), bad(137), false, Some(8)),
        (Some(8), bad(129), false, Some(8)),
        (Some(8), Some(IoOutcome::Ok), true, None),
    ];
    for (block, probed, healed, expected) in cases {
        let mut heal = ResyncWindow { block, probed, phase: Phase::Probe, ..heal };
        heal.part = (block.unwrap_or(0), 20);
        assert_eq!(heal.probe_ended(&bench.setup, 128), healed, "{block:?} {probed:?}");
        assert_eq!((heal.probed_bad, heal.phase), (expected, Phase::Probe));
        let end = if healed { block.unwrap_or(0) + 8 } else { 20 };
        assert_eq!(heal.part.1, end);
        assert!(!heal.mend_probed(&bench.setup));
        let next = expected.map_or(Phase::Done, |_| Phase::Plan);
        assert_eq!(heal.phase, next, "{block:?} {probed:?}");
        if let Some(bad) = expected {
            assert_eq!(
                (heal.part, heal.block, heal.tries),
                ((bad, (bad + 8).min(20)), Some(bad), 1)
            );
        }
    }
    for probed in [Some(IoOutcome::Gone), Some(IoOutcome::Timeout), None] {
        let mut heal = ResyncWindow { probed, block: Some(8), probed_bad: Some(8), ..heal };
        assert!(!heal.probe_ended(&bench.setup, 128) && heal.phase == Phase::Done);
        assert_eq!(heal.probed_bad, None);
    }
    // What could not be written counts as read by nobody.
    let mut unwritten =
        ResyncWindow { block: Some(0), probed: Some(IoOutcome::Ok), tries: 1, ..heal };
    unwritten.write_failed();
    assert!(!unwritten.probe_ended(&bench.setup, 128));
    let mut rebuild = window(&bench.setup, Task::Rebuild(ONE));
    rebuild.write_failed();
    assert_eq!(rebuild.tries, 0);
}

#[test]
fn a_second_try_writes_the_same_once_more() {
    let bench = blocks(Level::Raid5, 4, 8);
    let mut heal = window(&bench.setup, Task::Heal(ONE));
    (heal.block, heal.tries, heal.probed_bad) = (Some(8), 1, Some(8));
    assert!(!heal.mend_probed(&bench.setup));
    assert_eq!((heal.phase, heal.tries), (Phase::Write, 2));
    heal.probed_bad = Some(16);
    assert!(!heal.mend_probed(&bench.setup), "another block begins anew");
    assert_eq!((heal.phase, heal.tries, heal.block), (Phase::Plan, 1, Some(16)));
    heal.begin_probe();
    assert_eq!((heal.part, heal.probed), ((16, 64), None));
    heal.part = (56, 64);
    heal.give_up_window();
    assert_eq!((heal.phase, heal.part, heal.block), (Phase::Done, (64, 64), None));
    heal.begin_probe();
    assert_eq!(heal.part, (64, 64), "from the window on where nothing was written");
}

#[test]
fn what_a_scrub_cannot_compare_is_lost_beyond_what_the_level_survives() {
    for (level, members, survives) in
        [(Level::Raid5, 4, 1), (Level::Raid6, 5, 2), (Level::Raid1, 3, 2)]
    {
        let mut bench = bench(level, members, Consistency::None);
        let mut range = window(&bench.setup, Task::Scrub(Scrub::Check));
        range.part = (5, 8);
        for role in 0..bench.setup.width() {
            let member = range.place(&bench.setup, role).member;
            assert_eq!(range.lost_to_all(&bench.setup, &bench.members) > 0, role > survives);
            assert!(!range.is_unreadable(&bench.setup, &bench.members, role));
            if role % 2 == 0 {
                range.avoid.insert(member);
            } else {
                // Beside the window nothing is lacking.
                bench.members[member].bad.insert(8, 9);
                bench.members[member].bad.insert(4, 5);
                bench.members.note_partial(member);
                assert!(!range.is_unreadable(&bench.setup, &bench.members, role));
                bench.members[member].bad.insert(7, 8);
            }
            assert!(range.is_unreadable(&bench.setup, &bench.members, role));
        }
        assert_eq!(range.lost_to_all(&bench.setup, &bench.members), 3, "as much as the window");
    }
}

#[test]
fn places_of_the_scratch_are_named_by_their_roles() {
    let names = |level, members, places: std::ops::Range<u16>| {
        let bench = bench(level, members, Consistency::None);
        let range = window(&bench.setup, Task::Scrub(Scrub::Check));
        places.map(|place| range.place_name(&bench.setup, place)).collect::<Vec<_>>()
    };
    assert_eq!(names(Level::Raid5, 4, 2..5), [Role::Data(0), Role::P, Role::P]);
    assert_eq!(names(Level::Raid6, 5, 2..7), [Role::Data(2), Role::P, Role::Q, Role::P, Role::Q]);
    assert_eq!(names(Level::Raid1, 2, 0..2), [Role::default(); 2]);
    let bench = bench(Level::Raid6, 5, Consistency::None);
    let mut range = window(&bench.setup, Task::Rebuild(ONE));
    range.part = (3, 8);
    let list = range.list(&bench.setup, 1, 2);
    let segment = Segment { token: bench.setup.window_token(1), offset: 2 * 64 + 3, len: 5 };
    assert_eq!((list.first, list.rest), (segment, NIL));
    assert_eq!([1, 3, 4].map(|role| range.written_from(&bench.setup, role)), [1, 3, 4]);
    range.task = Task::Scrub(Scrub::Check);
    assert_eq!([1, 3, 4].map(|role| range.written_from(&bench.setup, role)), [1, 5, 6]);
}

#[test]
fn a_repair_writes_what_it_is_told_to() {
    let member = |bench: &Bench, role| bench.setup.role_member(0, role);
    let mends = |bench: &Bench, believe, located| {
        let mut range = window(&bench.setup, Task::Scrub(Scrub::Check));
        (range.located, range.part) = (located, (2, 5));
        let guilty = range.block_differs(&bench.setup, Scrub::Repair(believe));
        assert_eq!(guilty, located.map(|role| range.place(&bench.setup, role).member));
        assert_eq!(range.mismatched, 3);
        let found = range.sources;
        (range.phase == Phase::Recover)
            .then(|| (found.lost().to_vec(), found.with, found.write, found.copy))
    };
    for (level, members, data) in [(Level::Raid5, 4, 3), (Level::Raid6, 5, 3)] {
        let bench = bench(level, members, Consistency::None);
        let parities = Roles::range(data, members);
        let by_p = |role| Some((vec![role], Roles::one(data), Roles::one(role), 0));
        let anew = |write| Some((vec![], NO, write, 0));
        assert_eq!(mends(&bench, RepairSource::Nobody, None), None);
        assert_eq!(mends(&bench, RepairSource::Nobody, Some(1)), by_p(1));
        assert_eq!(mends(&bench, RepairSource::Nobody, Some(data)), anew(Roles::one(data)));
        assert_eq!(mends(&bench, RepairSource::Data, Some(1)), anew(parities));
        assert_eq!(mends(&bench, RepairSource::NotMember(member(&bench, 2)), None), by_p(2));
        let not_p = RepairSource::NotMember(member(&bench, data));
        assert_eq!(mends(&bench, not_p, None), anew(Roles::one(data)));
    }
    let bench = bench(Level::Raid1, 3, Consistency::None);
    let copies = |write: &[u16], copy| Some((vec![], NO, set(write), copy));
    assert_eq!(mends(&bench, RepairSource::Nobody, None), None);
    assert_eq!(mends(&bench, RepairSource::Data, None), copies(&[1, 2], 0));
    assert_eq!(mends(&bench, RepairSource::NotMember(MemberIndex(0)), None), copies(&[0], 1));
    assert_eq!(mends(&bench, RepairSource::NotMember(MemberIndex(2)), None), copies(&[2], 0));
}

#[test]
fn jobs_work_on_the_places_of_roles_and_of_parities_beside_them() {
    let both = |level, members, task| {
        let bench = bench(level, members, Consistency::None);
        let range = window(&bench.setup, task);
        let list = |set| places(&bench.setup, set).collect::<Vec<_>>();
        let parity = range.parity(&bench.setup);
        let parity = parity.map(|job| (job.op, list(job.sources), list(job.targets)));
        let compared = ResyncWindow::comparisons(&bench.setup).map(|job| {
            assert_eq!((job.op, list(job.targets)), (ParityOp::Compare, vec![]));
            list(job.sources)
        });
        (parity, compared.collect::<Vec<_>>())
    };
    let scrub = Task::Scrub(Scrub::Check);
    let (parity, compared) = both(Level::Raid6, 5, scrub);
    assert_eq!(parity, Some((ParityOp::Pq, vec![0, 1, 2], vec![5, 6])));
    assert_eq!(compared, [[3, 5], [4, 6]]);
    let (parity, compared) = both(Level::Raid5, 4, scrub);
    assert_eq!(parity, Some((ParityOp::Xor, vec![0, 1, 2], vec![4])));
    assert_eq!(compared, [[3, 4]]);
    let (parity, compared) = both(Level::Raid1, 3, scrub);
    assert_eq!((parity, compared), (None, vec![vec![0, 1, 2]]));
    assert_eq!(both(Level::Raid6, 5, Task::Resync).0, None, "none was planned");
    let bench = bench(Level::Raid6, 5, Consistency::None);
    let job = ResyncWindow::location(&bench.setup);
    assert_eq!(
        (job.op, job.sources.0, job.targets),
        (ParityOp::Locate, Roles::range(0, 5), (NO, NO))
    );
    let mut range = window(&bench.setup, Task::Resync);
    for (compute, kernel) in
        [(set(&[3]), ParityOp::Xor), (set(&[4]), ParityOp::Pq), (set(&[3, 4]), ParityOp::Pq)]
    {
        range.sources.compute = compute;
        let job = range.parity(&bench.setup).expect("it is computed");
        assert_eq!((job.op, job.targets), (kernel, (compute, NO)));
    }
}

#[test]
fn runs_of_news_are_joined_where_they_touch() {
    let mut range = ResyncWindow { part: (0, 2), ..ResyncWindow::idle() };
    let (here, there) = (Finding::Mismatch(None), Finding::Mismatch(Some(ONE)));
    assert_eq!(range.add_finding(1, here), None);
    range.part = (2, 4);
    assert_eq!(range.add_finding(1, here), None);
    assert_eq!(range.add_finding(0, here), None, "beside it");
    range.part = (5, 6);
    assert_eq!(range.add_finding(1, here), Some((here, 0, 4)), "there is a gap");
    range.part = (6, 7);
    assert_eq!(range.add_finding(1, there), Some((here, 5, 6)), "another is wrong");
}

/// What a range reads, computes and writes, over levels, what is out of service and what it is for.
#[test]
fn sources_are_what_can_be_read_and_no_more() {
    let member =
        |bench: &Bench, role| window(&bench.setup, Task::Resync).place(&bench.setup, role).member;
    let found =
        |level, members, missing: &[u16], avoided: &[u16], task: &dyn Fn(&Bench) -> Task| {
            let mut bench = bench(level, members, Consistency::None);
            missing.iter().for_each(|role| {
                let member = member(&bench, *role);
                bench.members.fail(member);
            });
            let mut range = window(&bench.setup, task(&bench));
            avoided.iter().for_each(|role| range.avoid.insert(member(&bench, *role)));
            let found = sources(&bench, &range)?;
            Some((
                found.read,
                found.lost().to_vec(),
                found.with,
                found.compute,
                found.copy,
                found.write,
            ))
        };
    let resync = |_: &Bench| Task::Resync;
    let scrub = |_: &Bench| Task::Scrub(Scrub::Check);
    let rebuild = |role| move |bench: &Bench| Task::Rebuild(member(bench, role));
    let replace = |role| move |bench: &Bench| Task::Replace(member(bench, role));
    let (raid5, raid6, raid1) = (Level::Raid5, Level::Raid6, Level::Raid1);
    let parity = |read: &[u16], lost: &[u16], with: &[u16], compute: &[u16], write: &[u16]| {
        Some((set(read), lost.to_vec(), set(with), set(compute), 0, set(write)))
    };
    let copies =
        |read: &[u16], copy, write: &[u16]| Some((set(read), vec![], NO, NO, copy, set(write)));
    // A scrub reads all, or nothing.
    assert_eq!(found(raid5, 4, &[], &[], &scrub), parity(&[0, 1, 2, 3], &[], &[], &[], &[]));
    assert_eq!(found(raid5, 4, &[], &[2], &scrub), None);
    assert_eq!(found(raid1, 3, &[], &[], &scrub), parity(&[0, 1, 2], &[], &[], &[], &[]));
    // A resync makes the parity that is in service anew.
    assert_eq!(found(raid6, 5, &[], &[], &resync), parity(&[0, 1, 2], &[], &[], &[3, 4], &[3, 4]));
    assert_eq!(found(raid6, 5, &[3], &[], &resync), parity(&[0, 1, 2], &[], &[], &[4], &[4]));
    assert_eq!(found(raid5, 4, &[3], &[], &resync), parity(&[], &[], &[], &[], &[]));
    assert_eq!(found(raid6, 5, &[], &[1], &resync), parity(&[0, 2, 3], &[1], &[3], &[4], &[4]));
    assert_eq!(found(raid6, 5, &[], &[0, 1], &resync), parity(&[], &[], &[], &[], &[]));
    // A rebuild computes data by P, else by Q, and parity from data.
    assert_eq!(found(raid6, 5, &[], &[], &rebuild(1)), parity(&[0, 2, 3], &[1], &[3], &[], &[1]));
    assert_eq!(found(raid6, 5, &[3], &[], &rebuild(1)), parity(&[0, 2, 4], &[1], &[4], &[], &[1]));
    assert_eq!(
        found(raid6, 5, &[], &[0], &rebuild(1)),
        parity(&[2, 3, 4], &[0, 1], &[3, 4], &[], &[1])
    );
    assert_eq!(found(raid6, 5, &[], &[0, 2], &rebuild(1)), None);
    assert_eq!(found(raid6, 5, &[4], &[0], &rebuild(1)), None);
    assert_eq!(found(raid6, 5, &[], &[], &rebuild(3)), parity(&[0, 1, 2], &[], &[], &[3], &[3]));
    assert_eq!(found(raid6, 5, &[], &[0], &rebuild(3)), parity(&[1, 2, 4], &[0], &[4], &[3], &[3]));
    assert_eq!(found(raid5, 4, &[], &[0], &rebuild(3)), None);
    // A replacement gets what its member has, as long as that can be read.
    assert_eq!(found(raid5, 4, &[], &[], &replace(1)), copies(&[1], 1, &[1]));
    assert_eq!(found(raid5, 4, &[], &[1], &replace(1)), parity(&[0, 2, 3], &[1], &[3], &[], &[1]));
    // Copies: a resync writes the first over all others in service.
    assert_eq!(found(raid1, 3, &[], &[], &resync), copies(&[0], 0, &[1, 2]));
    assert_eq!(found(raid1, 3, &[1], &[], &resync), copies(&[0], 0, &[2]));
    assert_eq!(found(raid1, 3, &[], &[0], &resync), copies(&[1], 1, &[0, 2]));
    assert_eq!(found(raid1, 3, &[1, 2], &[], &resync), copies(&[], 0, &[]));
    assert_eq!(found(raid1, 3, &[0, 2], &[1], &resync), None);
    assert_eq!(found(raid1, 3, &[], &[], &rebuild(0)), copies(&[1], 1, &[0]));
    assert_eq!(found(raid1, 3, &[], &[1], &rebuild(0)), copies(&[2], 2, &[0]));
    assert_eq!(found(raid1, 3, &[1], &[2], &rebuild(0)), None);
}

#[test]
fn of_several_copies_the_one_with_least_to_do_is_read() {
    let mut busy = bench(Level::Raid1, 3, Consistency::None);
    busy.members[MemberIndex(1)].pending = 1;
    let range = window(&busy.setup, Task::Rebuild(MemberIndex(0)));
    assert_eq!(sources(&busy, &range).expect("two are left").copy, 2);
    busy.setup.settings.resync_tick = Some(crate::units::Nanos(1));
    assert_eq!(sources(&busy, &range).expect("two are left").copy, 1, "md reads the first");
}

#[test]
fn what_md_rebuilt_can_be_read_by_sixteenths() {
    let mut bench = bench(Level::Raid1, 3, Consistency::None);
    let member = MemberIndex(0);
    bench.members.begin_rebuild(member, None);
    bench.members[member].good_to = 40;
    let lacks = |bench: &Bench, at: u64, len: u64| {
        bench.members.lacks(&bench.setup, member, Sector(at), len)
    };
    assert_eq!([(0, 40), (39, 2)].map(|(at, len)| lacks(&bench, at, len)), [false, true]);
    bench.setup.rebuild_step = 16;
    assert_eq!(
        [(0, 32), (31, 2), (32, 8)].map(|(at, len)| lacks(&bench, at, len)),
        [false, true, true]
    );
    bench.members.restore(member);
    assert!(!lacks(&bench, 32, 8), "the last part, too, when all is done");
}

#[test]
fn parity_that_is_not_trusted_computes_nothing() {
    let mut bench = bench(Level::Raid6, 5, Consistency::None);
    bench.background.replay_over(false);
    bench.background.synced_to = 40;
    let member = bench.setup.role_member(0, 1);
    let mut range = window(&bench.setup, Task::Rebuild(member));
    for (window, is_had) in [((0, 40), true), ((0, 41), false), ((39, 40), true), ((40, 41), false)]
    {
        range.part = window;
        assert_eq!(sources(&bench, &range).is_some(), is_had, "{window:?}");
    }
    range.at = 1;
    range.part = (39, 40);
    assert!(sources(&bench, &range).is_none(), "rows of the member");
    bench.background.trust.insert(member);
    assert!(sources(&bench, &range).is_some(), "the administrator said so");
    let other = bench.setup.role_member(0, 2);
    range.avoid.insert(other);
    assert!(sources(&bench, &range).is_none(), "and of this one nothing");
    let p = bench.setup.role_member(0, 3);
    let range = ResyncWindow { part: (40, 41), ..window(&bench.setup, Task::Rebuild(p)) };
    assert!(sources(&bench, &range).is_some(), "data are data");
    // What a member lacks in the window counts, and nothing beside it.
    bench.background.resynced();
    let range = ResyncWindow { part: (10, 12), ..window(&bench.setup, Task::Scrub(Scrub::Check)) };
    for (sector, is_had) in [(9, true), (12, true), (11, false), (10, false)] {
        bench.members[other].bad.clear();
        bench.members[other].bad.insert(sector, sector + 1);
        bench.members.note_partial(other);
        assert_eq!(sources(&bench, &range).is_some(), is_had, "{sector}");
    }
}
