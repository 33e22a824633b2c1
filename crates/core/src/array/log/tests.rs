//! The log without an array: entries, room, and a replay.

use super::*;
use crate::array::setup::tests::setup;
use crate::contract::IoOp;
use crate::layout::Level;
use crate::units::Sectors;

const NONE: MemberSet = MemberSet::NONE;

/// A raid5 of four in a mode, and its log.
fn log(consistency: Consistency) -> (Setup, Log) {
    let layout = Layout::new(Level::Raid5, 4).with_chunk(Sectors(64));
    (setup(&layout, consistency), Log::new(consistency, &layout, 4, None))
}

/// A plan that writes rows of one chunk of a stripe.
fn write(stripe: u64, chunk: u16, rows: (u64, u64)) -> StripePlan {
    let mut plan = StripePlan { stripe, rows, band_count: 1, ..StripePlan::idle() };
    plan.bands[0] = Band { from: rows.0, to: rows.1, first: chunk, last: chunk, ..plan.bands[0] };
    plan.bands[0].live = 1;
    plan
}

fn places(entering: Entering) -> Option<Vec<Place>> {
    entering.ok().map(|places| places.into_iter().flatten().collect())
}

#[test]
fn partial_parity_goes_to_the_member_with_p() {
    let (setup, mut log) = log(Consistency::PartialParity { slots: 6 });
    let plan = write(0, 1, (0, 8));
    let written = places(log.enter(&setup, NONE, 0, &plan)).expect("there is room");
    assert_eq!(written.len(), 1);
    assert_eq!(written[0].device, setup.role_member(0, setup.data_chunks));
    let Record::PartialParity { written: chunks, from, to, .. } = written[0].record else {
        panic!("{:?}", written[0].record);
    };
    assert_eq!((chunks, from, to), ([0b10, 0], 0, 8));
    assert!(log.has_places(0));
    // With P out of service a place is taken all the same, and nothing written.
    let failed = MemberSet::from_words([1 << written[0].device.0, 0]);
    let written = places(log.enter(&setup, failed, 1, &write(0, 1, (8, 16)))).expect("room");
    assert!(written.is_empty() && log.has_places(1));
}

/// As [`log`], of a log that takes a header at a time with so many sectors of partial parity.
fn log_by_header(most: u64) -> (Setup, Log) {
    let (mode, most) = (Consistency::PartialParity { slots: 8 }, Sectors(most));
    let layout = Layout::new(Level::Raid5, 4).with_chunk(Sectors(64));
    let mut setup = setup(&layout, mode);
    setup.settings.log_header = Some(most);
    (setup, Log::new(mode, &layout, 8, Some(most)))
}

#[test]
fn what_a_header_protects_is_durable_before_the_next_is_begun() {
    let (setup, mut log) = log_by_header(32);
    let enter = |log: &mut Log, plan, stripe| {
        places(log.enter(&setup, NONE, plan, &write(stripe, 1, (0, 16))))
    };
    // P of the stripes 0 and 4 is on one member, that of 1 and 5 on another.
    assert!(enter(&mut log, 0, 0).is_some() && enter(&mut log, 1, 4).is_some());
    assert!(enter(&mut log, 2, 8).is_none(), "the header is full");
    assert!(log.is_header_open());
    log.close_headers();
    assert!(!log.is_header_open());
    assert!(enter(&mut log, 3, 1).is_some(), "who waits for another member is no matter");
    log.close_headers();
    assert!(enter(&mut log, 4, 5).is_none() && enter(&mut log, 5, 12).is_none());
    for plan in [0, 1, 3] {
        log.plan_logged(plan);
    }
    log.places_ended(&setup, 0, false);
    log.places_ended(&setup, 3, true);
    assert!(log.begin_flush());
    log.places_ended(&setup, 1, false);
    assert!(log.flushed(false) && log.begin_retry());
    // 1 ended when the flush was under way; what 3 wrote is durable.
    let mut tried = Vec::new();
    while let Some((plan, left)) = log.pop_waiting() {
        tried.push((plan, enter(&mut log, plan, [0, 0, 8, 0, 5, 12][plan as usize]).is_some()));
        if log.waits_again(plan, left) {
            break;
        }
    }
    log.end_retry();
    assert_eq!(tried, [(2, false), (4, true), (5, false)]);
    log.close_headers();
    assert!(log.begin_flush() && log.flushed(false) && log.begin_retry());
    assert_eq!(log.pop_waiting(), Some((2, 1)), "they wait in order");
    assert!(enter(&mut log, 2, 8).is_some() && !log.waits_again(2, 1));
}

#[test]
fn an_entry_of_a_header_may_be_longer_than_what_is_worked_on_at_once() {
    let (mut setup, mut log) = log_by_header(64);
    setup.plan_rows = 16;
    // The partial parity of the first is behind it in the log, and then that of the second.
    let mut entries = found(&setup, &[(1, (8, 48)), (2, (48, 56))]);
    (entries[0].at, entries[1].at) = (Sector(0), Sector(40));
    let member = setup.role_member(0, setup.data_chunks);
    assert!(!is_partial_torn(&setup, member, &entries), "a header says nothing of others");
    assert!(log.begin_with(&setup, &entries));
    let mut members = Members::new(9, 8);
    log.begin_replay(&setup, &mut members);
    let start = setup.sizes[member.at()].0 + u64::from(LOG_HEADER);
    for (row, len) in [(8, 16), (24, 16), (40, 8), (48, 8)] {
        let reads = end_all(&setup, &mut log, &mut members, |_, _| IoOutcome::Ok);
        let expected = [(IoOp::Read, 1, row, len), (IoOp::Read, 4, start + row - 8, len)];
        assert_eq!(reads, expected, "the chunk and its partial parity");
        assert!(matches!(log.next_todo(), Some(Todo::Compute { .. })));
        log.replay_computed(&setup, &mut members, JobResult::Done);
        assert_eq!(end_all_writes(&setup, &mut log, &mut members), [(IoOp::Write, 3, row, len)]);
    }
    assert_eq!(log.next_todo(), Some(Todo::Flush));
}

#[test]
fn a_chunk_that_is_not_durable_is_flushed_before_another_of_its_rows_is_written() {
    let (setup, mut log) = log(Consistency::PartialParity { slots: 12 });
    assert!(places(log.enter(&setup, NONE, 0, &write(0, 1, (0, 8)))).is_some());
    log.plan_logged(0);
    log.places_ended(&setup, 0, false);
    assert!(places(log.enter(&setup, NONE, 1, &write(0, 1, (0, 8)))).is_some(), "the same chunk");
    log.plan_logged(1);
    log.places_ended(&setup, 1, false);
    assert!(places(log.enter(&setup, NONE, 2, &write(0, 2, (4, 6)))).is_none(), "another");
    assert!(log.has_waiting() && log.begin_flush() && !log.begin_flush());
    assert!(!log.is_unsettled() && !log.flushed(true), "a failure is to be recorded first");
    assert!(log.is_unsettled() && log.flushed(false) && !log.is_unsettled());
    assert!(log.begin_retry() && !log.begin_retry());
    let (plan, left) = log.pop_waiting().expect("one waits");
    assert_eq!((plan, left), (2, 0));
    assert!(places(log.enter(&setup, NONE, 2, &write(0, 2, (4, 6)))).is_some());
    assert!(!log.waits_again(2, left));
}

#[test]
fn plans_wait_in_order_when_a_ring_is_full() {
    let (setup, mut log) = log(Consistency::PartialParity { slots: 6 });
    let mut entered = 0;
    while places(log.enter(&setup, NONE, entered, &write(0, 0, (0, 8)))).is_some() {
        entered += 1;
        assert!(entered < 4, "half a turn may be on its way");
    }
    // Another ring has room, but who came first goes first.
    assert!(places(log.enter(&setup, NONE, 3, &write(1, 0, (0, 8)))).is_none());
    assert_eq!(log.pop_waiting().map(|(plan, _)| plan), Some(entered));
    assert_eq!(log.pop_waiting(), Some((3, 0)));
}

#[test]
fn the_journal_is_a_ring_whose_tail_follows_what_is_durable() {
    let entry = u64::from(LOG_HEADER) + 2 * 8;
    let (setup, mut log) = log(Consistency::Journal { sectors: Sectors(3 * entry + 1) });
    let write = write(0, 1, (0, 8));
    for plan in 0..3 {
        let written = places(log.enter(&setup, NONE, plan, &write)).expect("there is room");
        assert_eq!(written[0].device, setup.journal());
        assert_eq!(written[0].at, Sector(u64::from(plan) * entry));
        assert_eq!(written[0].roles.words(), [0b1010, 0], "the chunk and P");
        log.plan_logged(plan);
    }
    assert!(places(log.enter(&setup, NONE, 3, &write)).is_none(), "full");
    for plan in 0..2 {
        log.places_ended(&setup, plan, false);
    }
    assert!(!log.retire(), "nothing is durable");
    assert!(log.begin_flush());
    assert!(log.flushed(false) && log.retire());
    assert_eq!(log.journal_tail(), 3, "the third is busy");
    assert!(places(log.enter(&setup, NONE, 3, &write)).is_none(), "superblocks do not tell yet");
    log.state_written();
    log.state_recorded();
    log.pop_waiting();
    log.pop_waiting();
    let written = places(log.enter(&setup, NONE, 3, &write)).expect("two places are free");
    assert_eq!(written[0].at, Sector(0));
}

#[test]
fn a_journal_that_failed_is_off_when_that_is_told() {
    let (setup, mut log) = log(Consistency::Journal { sectors: Sectors(4096) });
    assert!(log.journal_failed() && !log.journal_failed());
    assert!(!log.is_journal_used() && log.must_log_again(false));
    let entering = log.enter(&setup, NONE, 0, &write(0, 1, (0, 8)));
    assert_eq!(entering.err(), Some(Wait::ForChange));
    log.state_written();
    log.state_recorded();
    let written = places(log.enter(&setup, NONE, 0, &write(0, 1, (0, 8))));
    assert_eq!(written.map(|all| all.len()), Some(0), "it goes on without");
}

/// Entries of partial parity for rows of stripe 0, as found; chunk 1 was written.
fn found(setup: &Setup, entries: &[(u64, (u32, u32))]) -> Vec<LogEntry> {
    let entry = |&(generation, (from, to)): &(u64, (u32, u32))| {
        let slot = (generation % 6) as u32;
        let at = Sector(u64::from(slot) * setup.log_place());
        let (written, settled) = ([0b10, 0], [1, 1]);
        let record =
            Record::PartialParity { slot, generation, stripe: 0, from, to, written, settled };
        LogEntry { member: setup.role_member(0, setup.data_chunks), at, record }
    };
    entries.iter().map(entry).collect()
}

/// Ends all I/Os that a replay asked for; which they were.
fn end_all(
    setup: &Setup,
    log: &mut Log,
    members: &mut Members,
    outcome: impl Fn(IoOp, u16) -> IoOutcome,
) -> Vec<(IoOp, u16, u64, u32)> {
    let mut all = Vec::new();
    while let Some(todo) = log.next_todo() {
        let Todo::Io { op, target, role } = todo else { panic!("{todo:?}") };
        all.push((op, role, target.at.0, target.len));
    }
    for &(op, role, at, len) in &all {
        let member = setup.role_member(0, role.min(setup.data_chunks));
        let io = IoState { op, member, at: Sector(at), len, ..IoState::idle() };
        if log.replay_io_ended(setup, &io, outcome(op, role)) {
            members.fail(member);
        }
        log.replay_goes_on(setup, members);
    }
    all
}

#[test]
fn a_replay_reads_computes_and_writes_the_newest_of_each_row() {
    let (setup, mut log) = log(Consistency::PartialParity { slots: 6 });
    let mut members = Members::new(9, 8);
    assert!(!log.begin_with(&setup, &[]), "nothing was found");
    assert!(log.begin_with(&setup, &found(&setup, &[(1, (0, 16)), (2, (8, 16))])));
    assert!(log.is_replay_due());
    log.begin_replay(&setup, &mut members);
    assert!(log.is_replaying() && !log.is_replay_due());
    // Of the older entry only what the newer one does not have.
    for (from, len) in [(0, 8), (8, 8)] {
        let reads = end_all(&setup, &mut log, &mut members, |_, _| IoOutcome::Ok);
        assert_eq!(reads.len(), 2, "the chunk and its partial parity: {reads:?}");
        assert_eq!(reads[0], (IoOp::Read, 1, from, len));
        let todo = log.next_todo();
        assert_eq!(todo, Some(Todo::Compute { len, written: Roles::one(1), partial: true }));
        log.replay_computed(&setup, &mut members, JobResult::Done);
        let writes = end_all_writes(&setup, &mut log, &mut members);
        assert_eq!(writes, [(IoOp::Write, 3, from, len)], "P");
    }
    assert_eq!(log.next_todo(), Some(Todo::Flush));
    assert_eq!(log.end_replay(false), None, "it is not flushed");
    log.replay_flushed();
    assert_eq!(log.end_replay(false), Some(true));
    assert!(!log.is_replaying());
}

/// The writes of one step, ended; what the next step asks for is left.
fn end_all_writes(
    setup: &Setup,
    log: &mut Log,
    members: &mut Members,
) -> Vec<(IoOp, u16, u64, u32)> {
    end_all(setup, log, members, |_, _| IoOutcome::Ok)
}

#[test]
fn a_replay_goes_on_without_a_member_that_fails() {
    let (setup, mut log) = log(Consistency::PartialParity { slots: 6 });
    let mut members = Members::new(9, 8);
    log.begin_with(&setup, &found(&setup, &[(1, (0, 16))]));
    log.begin_replay(&setup, &mut members);
    let gone = |_, role| if role == 1 { IoOutcome::Gone } else { IoOutcome::Ok };
    end_all(&setup, &mut log, &mut members, gone);
    assert!(members.failed.contains(setup.role_member(0, 1)));
    assert_eq!(log.next_todo(), Some(Todo::Flush), "rows of a written chunk that is lost are left");
}

#[test]
fn plans_go_on_when_others_may_be_written() {
    let (setup, mut log) = log(Consistency::PartialParity { slots: 6 });
    assert!(!log.plan_logged(0) && !log.places_ended(&setup, 0, false), "it has no places");
    assert!(places(log.enter(&setup, NONE, 0, &write(0, 0, (0, 8)))).is_some());
    assert!(!log.plan_logged(0), "nobody waits");
    log.wait_for_record(3);
    log.wait_for_record(0);
    assert!(log.plan_logged(0));
    assert_eq!(log.pop_waiting().map(|(plan, _)| plan), Some(0), "who has places goes first");
    assert!(places(log.enter(&setup, NONE, 1, &write(0, 0, (0, 8)))).is_none(), "others wait");
    assert_eq!(
        places(log.enter(&setup, NONE, 0, &write(0, 0, (0, 8)))).map(|all| all.len()),
        Some(0)
    );
    let entry = u64::from(LOG_HEADER) + 2 * 8;
    let (setup, mut journal) = self::log(Consistency::Journal { sectors: Sectors(4 * entry) });
    for (plan, filling) in [(0, false), (1, false), (2, true)] {
        assert!(places(journal.enter(&setup, NONE, plan, &write(0, 1, (0, 8)))).is_some());
        journal.plan_logged(plan);
        assert_eq!(journal.places_ended(&setup, plan, false), filling);
    }
    assert!(!journal.is_partial() && log.is_partial());
    assert!(
        log.must_log_again(true) && !log.must_log_again(false) && !journal.must_log_again(true)
    );
}

/// An entry of the journal: its number, place, rows and roles, and up to where all are durable.
type Journalled = (u64, u64, (u32, u32), u64, u64);

/// Entries of the journal, as found.
fn journalled(setup: &Setup, entries: &[Journalled]) -> Vec<LogEntry> {
    let entry = |&(sequence, at, (from, to), roles, settled): &Journalled| {
        let (at, roles) = (Sector(at), [roles, 0]);
        let record = Record::JournalEntry { at, sequence, stripe: 0, from, to, roles, settled };
        LogEntry { member: setup.journal(), at, record }
    };
    entries.iter().map(entry).collect()
}

#[test]
fn entries_of_the_journal_are_those_that_can_be() {
    let header = u64::from(LOG_HEADER);
    let entry = header + 2 * 8;
    let (setup, _) = log(Consistency::Journal { sectors: Sectors(2 * entry) });
    let numbers = |entries: &[LogEntry], tail| {
        let known = journal_entries(&setup, entries, tail);
        known.iter().map(|entry| entry.number).collect::<Vec<_>>()
    };
    let (one, two) = ((5, 0, (0, 8), 0b1010, 5), (6, entry, (0, 8), 0b1010, 5));
    assert_eq!(numbers(&journalled(&setup, &[two, one]), 5), [5, 6]);
    assert_eq!(numbers(&journalled(&setup, &[two, one]), 6), [6], "the other is retired");
    let fits = |entry| numbers(&journalled(&setup, &[entry]), 1).len() == 1;
    assert!(fits((5, 0, (0, 8), 0b1010, 5)) && fits((5, entry, (0, 8), 0b1010, 5)));
    for wrong in [
        (5, entry + 1, (0, 8), 0b1010, 5),
        (5, entry, (0, 9), 0b1010, 5),
        (5, entry, (0, 8), 0b1110, 5),
        (5, 0, (8, 8), 0b1010, 5),
        (5, 0, (60, 65), 0b10, 5),
        (5, 0, (0, 8), 0, 5),
        (5, 0, (0, 8), 0b10000, 5),
        (MOST_NUMBER, 0, (0, 8), 0b1010, 5),
    ] {
        assert!(!fits(wrong), "{wrong:?}");
    }
    assert!(fits((MOST_NUMBER - 1, 0, (56, 64), 0b1000, 5)), "to the end of the chunk");
    // What lies inside of one is its payload; what begins behind it is not.
    let inside = (7, 8, (0, 4), 0b10, 5);
    assert_eq!(numbers(&journalled(&setup, &[one, inside]), 1), [5]);
    let inside = (7, entry - 1, (0, 4), 0b10, 5);
    assert_eq!(numbers(&journalled(&setup, &[one, inside]), 1), [5]);
    let behind = (7, entry, (0, 4), 0b10, 5);
    assert_eq!(numbers(&journalled(&setup, &[one, behind]), 1), [5, 7]);
    let mut moved = journalled(&setup, &[one]);
    moved[0].at = Sector(1);
    assert_eq!(numbers(&moved, 1), [0; 0], "it was written elsewhere");
    moved[0].member = MemberIndex(0);
    assert_eq!(numbers(&moved, 1), [0; 0]);
    let payload = journal_entries(&setup, &journalled(&setup, &[two]), 1)[0].payload;
    assert_eq!(payload, entry + header);
}

#[test]
fn a_journal_is_torn_where_what_was_durable_is_missing() {
    let (setup, _) = log(Consistency::Journal { sectors: Sectors(4096) });
    // Numbers, and how far each says that all were durable.
    let torn = |entries: &[(u64, u64)], tail| {
        let entry = |(index, (number, settled)): (usize, &(u64, u64))| {
            (*number, index as u64 * 100, (0, 8), 0b1010, *settled)
        };
        let all: Vec<_> = entries.iter().enumerate().map(entry).collect();
        is_journal_torn(&setup, &journalled(&setup, &all), tail)
    };
    assert!(!torn(&[], 5) && !torn(&[(5, 5)], 5));
    assert!(!torn(&[(5, 5), (7, 6)], 5), "the sixth was not durable");
    assert!(torn(&[(5, 5), (7, 7)], 5) && torn(&[(6, 6)], 5));
    assert!(!torn(&[(6, 5)], 5) && !torn(&[(6, 6)], 6), "below the tail nothing is missed");
    assert!(!torn(&[(5, 99)], 5), "it says nothing of those after it");
}

#[test]
fn a_log_of_partial_parity_is_torn_where_what_was_durable_is_missing() {
    let (setup, _) = log(Consistency::PartialParity { slots: 6 });
    let member = setup.role_member(0, setup.data_chunks);
    let torn = |entries: &[(u64, [u64; 2])]| {
        let all: Vec<_> = entries.iter().map(|(number, _)| (*number, (0, 8))).collect();
        let mut found = found(&setup, &all);
        for (entry, (_, known)) in found.iter_mut().zip(entries) {
            if let Record::PartialParity { settled, .. } = &mut entry.record {
                *settled = *known;
            }
        }
        is_partial_torn(&setup, member, &found)
    };
    assert!(!torn(&[]) && !torn(&[(7, [1, 1])]));
    assert!(torn(&[(7, [1, 7])]), "the sixth was durable");
    assert!(torn(&[(6, [1, 6]), (7, [1, 1])]), "the fifth was durable");
    assert!(!torn(&[(5, [1, 5]), (6, [1, 6]), (7, [1, 7])]), "older ones may be written over");
    assert!(torn(&[(5, [1, 1]), (7, [6, 7])]) && !torn(&[(5, [1, 1]), (7, [5, 6])]));
    assert!(!torn(&[(5, [1, 9]), (7, [1, 1])]), "it says nothing of those after it");
    assert!(torn(&[(6, [1, 6]), (8, [6, 8])]));
    // Half a turn behind the newest an entry does not count any more.
    let numbers = |entries: &[u64]| {
        let all: Vec<_> = entries.iter().map(|number| (*number, (0, 8))).collect();
        partial_entries(&setup, member, &found(&setup, &all))
            .iter()
            .map(|entry| entry.number)
            .collect::<Vec<_>>()
    };
    assert_eq!(numbers(&[9, 7, 6, 8]), [7, 8, 9]);
    assert_eq!(numbers(&[MOST_NUMBER - 1]), [MOST_NUMBER - 1]);
    assert_eq!(numbers(&[MOST_NUMBER]), [0; 0]);
}

#[test]
fn the_newest_entry_of_each_row_is_replayed_and_parity_with_the_newest_of_all() {
    let (setup, _) = log(Consistency::Journal { sectors: Sectors(4096) });
    let header = u64::from(LOG_HEADER);
    // Chunk 1 and P of rows 0 to 16; then chunk 2 and P of rows 4 to 8; then chunk 1 of rows 8 to 10.
    let entries =
        [(1, 0, (0, 16), 0b1010, 1), (2, 100, (4, 8), 0b1100, 1), (3, 200, (8, 10), 0b0010, 1)];
    let known = journal_entries(&setup, &journalled(&setup, &entries), 1);
    let mut steps = VecDeque::new();
    entries::add_journal_steps(&setup, &known, &mut steps);
    let found: Vec<_> = steps
        .iter()
        .map(|step| match step {
            entries::ReplayStep::Copy { rows, role, from, .. } => (*role, *rows, *from),
            entries::ReplayStep::Partial { .. } => panic!("{step:?}"),
        })
        .collect();
    let expected = [
        (1, (0, 8), header),
        (1, (10, 16), header + 10),
        (3, (0, 4), header + 16),
        (3, (10, 16), header + 16 + 10),
        (2, (4, 8), 100 + header),
        (3, (4, 8), 100 + header + 4),
        (1, (8, 10), 200 + header),
    ];
    assert_eq!(found, expected);
}
