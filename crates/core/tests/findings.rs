//! What each finding on a member or on the log device means for a start: one test for each rule.

use crate::support::carried::{MEMBER, carries, found, mirror, raid5, start, superblock, unused};
use crate::support::records::IDENTITY;
use crate::support::{Driver, Word, Work};
use raidlab_core::consistency::{
    Allow, AssembleError, Carried, Examined, Finding, Found, LogEntry, ResyncCost, Unusable, Wanted,
};
use raidlab_core::contract::{
    Admin, Epoch, Event, Input, IoOp, IoOutcome, Outcome, Output, Pacing, Record, Superblock,
};
use raidlab_core::{Array, Config, Consistency, Limits, MemberIndex, Sector, Sectors, Time};
use raidlab_random::SplitMix64;

fn carried(one: &mut Examined) -> &mut Carried {
    match &mut one.superblock {
        Finding::Whole(carried) => carried,
        other => panic!("{other:?}"),
    }
}

fn allowed(config: &Config, found: &Found, allow: Allow) -> Result<u64, AssembleError> {
    let started = Array::assemble(&Wanted::from(config), found, allow)?;
    let failed = |m: &u16| started.array.is_failed(MemberIndex(*m));
    Ok((0..config.layout.members).filter(failed).fold(0, |set, m| set | 1 << m))
}

/// A member fails, everything goes on without it for long, the power goes; then the newest superblock of the other
/// cannot be read, and the first is back.
#[test]
fn an_unreadable_newest_superblock_does_not_make_a_stale_member_the_newest() {
    let config = mirror(2);
    let mut driver = Driver::new(&config);
    driver.input(Input::Admin(Admin::Fail(MemberIndex(0))));
    for value in 0..198 {
        assert_eq!(driver.write(value % 60, &[value as u8]), Outcome::Done);
    }
    let mut seen = driver.records.found(&config, &driver.members, &[]);
    let newest = carried(&mut seen.members[1]).clone();
    let before = driver.records.superblock_before(1).expect("two were written");
    assert!(before.failed == [0; 2] || before.events < newest.superblock.events);
    let before = Carried { superblock: before, ..newest.clone() };
    for finding in [
        Finding::Unreadable(Some(before.clone())),
        Finding::Damaged(Some(before)),
        Finding::Unreadable(None),
        Finding::Damaged(None),
        Finding::Blank,
    ] {
        let why = match &finding {
            Finding::Unreadable(_) => Unusable::Unreadable,
            Finding::Damaged(_) => Unusable::Damaged,
            _ => Unusable::Blank,
        };
        seen.members[1].superblock = finding;
        let error = start(&config, &seen).expect_err("member 1 may have the newest");
        assert_eq!(error, AssembleError::Missing(vec![unused(1, why)]));
        assert!(error.to_string().contains(&format!("member 1: {why}")), "{error}");
        // The administrator may take the stale one, if that is the word.
        let allow = Allow { without: [0b10, 0], ..Allow::default() };
        assert_eq!(allowed(&config, &seen, allow), Ok(0b10));
    }
    // What can be read is the newest, is the word.
    seen.members[1].superblock = Finding::Unreadable(Some(newest));
    let error = start(&config, &seen).expect_err("it may not be the newest");
    assert_eq!(error, AssembleError::Missing(vec![unused(1, Unusable::Unreadable)]));
    let allow = Allow { believe: [0b10, 0], ..Allow::default() };
    assert_eq!(allowed(&config, &seen, allow), Ok(0b01));
}

#[test]
fn what_is_asked_for_must_be_what_the_members_were_made_with() {
    let made = raid5(3, Consistency::Bitmap { chunk: Sectors(8) });
    let mut dirty = superblock(9, 0);
    dirty.clean = false;
    let seen = found(&made, &[Some(dirty); 3]);
    assert!(start(&made, &seen).is_ok());
    for other in [
        Consistency::Bitmap { chunk: Sectors(16) },
        Consistency::Resync,
        Consistency::PartialParity { slots: 6 },
        Consistency::Journal { sectors: Sectors(4096) },
    ] {
        let error = start(&raid5(3, other), &seen).expect_err("not as it was made");
        assert!(matches!(&error, AssembleError::Parameter { key: "consistency", .. }), "{error}");
        assert!(error.to_string().contains("made with bitmap with a bit for 4KiB"), "{error}");
    }
    let mut other = made.clone();
    other.layout = other.layout.with_chunk(Sectors(16));
    let error = start(&other, &seen).expect_err("another layout");
    assert!(matches!(error, AssembleError::Parameter { key: "layout", .. }), "{error}");
    // Members that do not agree with the newest are not used.
    let mut seen = seen;
    carried(&mut seen.members[1]).parameters.consistency = Consistency::Resync;
    let error = start(&made, &seen).err();
    let differs = unused(1, Unusable::OtherParameters);
    assert_eq!(error, Some(AssembleError::Missing(vec![differs])));
}

#[test]
fn sizes_and_blocks_are_those_it_was_made_with() {
    let config = mirror(2);
    let seen = found(&config, &[Some(superblock(9, 0b10)), None]);
    let mut small = seen.clone();
    carried(&mut small.members[0]).parameters.data = Sectors(96);
    // The smaller member is not there: the array is as large as it was all the same.
    let started = start(&config, &small).expect("member 1 is out of service");
    assert_eq!(started.array.capacity(), Sectors(MEMBER));
    assert_eq!(started.config.members[1].sectors, Sectors(MEMBER));
    let full = [Some(superblock(9, 0)), Some(superblock(9, 0))];
    let mut seen = found(&config, &full);
    seen.members[1].logical_block = 8;
    let error = start(&config, &seen).err();
    let large = unused(1, Unusable::LargeBlock { block: 8, most: 1 });
    assert_eq!(error, Some(AssembleError::Missing(vec![large])));
    let mut seen = found(&config, &full);
    seen.members[1].sectors = Sectors(MEMBER + 23);
    let error = start(&config, &seen).err();
    assert_eq!(error, Some(AssembleError::Missing(vec![unused(1, Unusable::TooSmall)])));
    // Made of members of 4 KiB blocks, one of 512 bytes among them now: whole blocks go on.
    let mut seen = found(&config, &full);
    seen.members.iter_mut().for_each(|one| carried(one).parameters.block = 8);
    assert_eq!(start(&config, &seen).expect("it may").array.logical_block(), 8);
}

#[test]
fn members_of_other_arrays_and_places_are_not_used() {
    let config = mirror(3);
    let full = Some(superblock(9, 0));
    let mut seen = found(&config, &[full; 3]);
    carried(&mut seen.members[2]).array = [8; 16];
    let error = start(&config, &seen).err();
    assert_eq!(error, Some(AssembleError::Missing(vec![unused(2, Unusable::AnotherArray)])));
    carried(&mut seen.members[1]).array = [9; 16];
    let error = start(&config, &seen).expect_err("three arrays");
    assert!(matches!(error, AssembleError::SeveralArrays { .. }), "{error}");
    assert!(matches!(
        allowed(&config, &seen, Allow { without: [0b110, 0], ..Allow::default() }),
        Ok(0b110)
    ));
    // One member each of two other arrays, wherever they are, against three of one.
    let five = mirror(5);
    for (one, other) in [(0, 1), (0, 4), (2, 1), (3, 4)] {
        let mut seen = found(&five, &[full; 5]);
        carried(&mut seen.members[one]).array = [8; 16];
        carried(&mut seen.members[other]).array = [9; 16];
        let mut places = [one as u16, other as u16];
        places.sort_unstable();
        let of_others = places.map(|at| unused(at, Unusable::AnotherArray)).to_vec();
        assert_eq!(start(&five, &seen).err(), Some(AssembleError::Missing(of_others)));
    }
    // Two members that were swapped, a replacement, the log device, a spare with many events.
    for (device, text) in [
        (0, "what is given for it is member 0"),
        (4, "is a replacement of member 1 that was not finished"),
        (6, "is the log device"),
    ] {
        let mut seen = found(&config, &[full; 3]);
        seen.members[1] = carries(&config, device, superblock(99, 0b101));
        let error = start(&config, &seen).expect_err("out of place");
        let why = Unusable::OutOfPlace { device, members: 3 };
        assert_eq!(error, AssembleError::Missing(vec![unused(1, why)]));
        assert!(error.to_string().contains(text), "{error}");
        let known = superblock(9, 0b010);
        let mut seen = found(&config, &[Some(known), None, Some(known)]);
        seen.members[1] = carries(&config, device, superblock(99, 0b101));
        assert_eq!(allowed(&config, &seen, Allow::default()), Ok(0b010), "not believed");
    }
    let mut seen = found(&config, &[full; 3]);
    seen.members[0].superblock = Finding::Unsupported("raidlab's format 1");
    seen.members[2].superblock = Finding::Foreign;
    let error = start(&config, &seen).expect_err("two are missing");
    let text = error.to_string();
    assert!(text.contains("member 0: carries raidlab's format 1; member 2: carries something"));
    seen.members[1].superblock = Finding::Blank;
    let error = start(&config, &seen).expect_err("none");
    assert!(matches!(&error, AssembleError::NoSuperblock(all) if all.len() == 3), "{error}");
}

/// Within one event of the newest, a member is what the newest says that it is.
#[test]
fn a_member_one_behind_counts_in_the_role_that_the_newest_gives_it() {
    let config = mirror(3);
    let newest = Superblock { clean: false, ..superblock(9, 0b100) };
    let behind = superblock(8, 0);
    let seen = found(&config, &[Some(newest), Some(behind), Some(behind)]);
    assert_eq!(allowed(&config, &seen, Allow::default()), Ok(0b100));
    let rebuilt = Sector(24);
    let newest = Superblock { rebuilding: [0b100, 0], rebuilt_to: rebuilt, ..superblock(9, 0) };
    let seen = found(&config, &[Some(newest), Some(behind), Some(behind)]);
    let view = start(&config, &seen).expect("all are there").array.superblock();
    assert_eq!((view.rebuilding, view.rebuilt_to), ([0b100, 0], rebuilt));
}

/// A format may count one event back when nothing but the mark for writes under way changes.
#[test]
fn events_may_go_back_by_one_on_the_change_to_clean() {
    let config = mirror(2);
    let dirty = Superblock { clean: false, ..superblock(10, 0) };
    let seen = found(&config, &[Some(dirty), Some(superblock(9, 0))]);
    let started = start(&config, &seen).expect("both are there");
    assert!(started.unused.is_empty());
    assert_eq!((started.array.superblock().clean, started.resync), (false, Sectors(MEMBER)));
}

/// A member of another start that says that the newest failed, with fewer events: nobody takes its word, nor its
/// data.
#[test]
fn a_member_that_says_the_newest_failed_is_not_believed() {
    let config = mirror(2);
    let went_on = |mut superblock: Superblock, id| {
        superblock.history[1] = superblock.history[0];
        superblock.history[0] = Epoch { id, from: 7 };
        Some(superblock)
    };
    let one = went_on(superblock(20, 0b10), 50);
    for events in [8, 19, 20] {
        let other = went_on(superblock(events, 0b01), 60);
        let error = start(&config, &found(&config, &[one, other])).expect_err("two histories");
        assert_eq!(error, AssembleError::Diverged { one: [0b01, 0], other: [0b10, 0] });
        let allow = Allow { without: [0b10, 0], ..Allow::default() };
        assert_eq!(allowed(&config, &found(&config, &[one, other]), allow), Ok(0b10));
    }
}

/// Member 0 failed once, came back, and then stayed alone: who missed that, and says that it failed, is only stale.
#[test]
fn a_stale_third_does_not_stand_against_the_only_whole_member() {
    let config = mirror(3);
    let mut driver = Driver::new(&config);
    let fail = |driver: &mut Driver, member| {
        driver.input(Input::Admin(Admin::Fail(MemberIndex(member))));
        driver.run_until_idle(60);
    };
    fail(&mut driver, 0);
    assert_eq!(driver.write(0, &[1]), Outcome::Done);
    driver.run_until_idle(60);
    let there = driver.records.found(&config, &driver.members, &[]).members.swap_remove(2);
    driver.records.wipe(0);
    let add = Admin::Add { member: MemberIndex(0), sectors: Sectors(MEMBER) };
    driver.input(Input::Admin(add));
    driver.run_until_idle(200);
    for again in 0..8 {
        fail(&mut driver, 2);
        fail(&mut driver, 1);
        assert_eq!(driver.write(0, &[2 + again]), Outcome::Done);
        driver.run_until_idle(60);
        let mut seen = driver.records.found(&config, &driver.members, &[]);
        seen.members[2] = there.clone();
        assert_eq!(allowed(&config, &seen, Allow::default()), Ok(0b110), "after {again} starts");
        driver.reassemble(&config, &[1, 2], Word::default()).expect("known to be alone");
        driver.run_until_idle(60);
    }
}

#[test]
fn a_page_of_the_bitmap_that_nobody_can_read_counts_as_all_bits() {
    let mut config = mirror(3);
    config.settings.consistency = Consistency::Bitmap { chunk: Sectors(1) };
    let dirty = Superblock { clean: false, ..superblock(9, 0) };
    let resync = |pages: [Finding<u64>; 3], failed: u64| {
        let dirty = Superblock { failed: [failed, 0], ..dirty };
        let mut seen = found(&config, &[Some(dirty); 3]);
        for (one, page) in seen.members.iter_mut().zip(pages) {
            one.bitmap = vec![page];
        }
        start(&config, &seen).expect("all are there").resync
    };
    use Finding::{Blank, Damaged, Unreadable, Whole};
    assert_eq!(resync([Blank, Blank, Blank], 0), Sectors(0));
    assert_eq!(resync([Whole(0b11), Blank, Whole(0b110)], 0), Sectors(3), "the union");
    assert_eq!(resync([Unreadable(None), Whole(0b1), Damaged(None)], 0), Sectors(1));
    assert_eq!(resync([Unreadable(Some(0)), Damaged(Some(0)), Unreadable(None)], 0), Sectors(64));
    assert_eq!(resync([Whole(0), Unreadable(None), Unreadable(None)], 0b001), Sectors(64));
    // No page at all was looked at.
    let mut seen = found(&config, &[Some(dirty); 3]);
    seen.members.iter_mut().for_each(|one| one.bitmap.clear());
    assert_eq!(start(&config, &seen).expect("all are there").resync, Sectors(64));
}

const JOURNAL: Consistency = Consistency::Journal { sectors: Sectors(4096) };

#[test]
fn a_log_device_must_be_the_arrays_own_and_of_now() {
    let config = raid5(3, JOURNAL);
    let now = Superblock { clean: false, journal: true, journal_tail: 5, ..superblock(9, 0) };
    let seen = found(&config, &[Some(now); 3]);
    assert!(start(&config, &seen).is_ok());
    let device = |superblock: Superblock| carries(&config, 6, superblock);
    let behind = Found { journal: device(Superblock { events: 8, ..now }), ..seen.clone() };
    assert!(start(&config, &behind).is_ok(), "an update did not reach it");
    let mut foreign = device(now);
    carried(&mut foreign).array = [3; 16];
    let mut forked = now;
    forked.history[0] = Epoch { id: 77, from: 5 };
    let mut blank = device(now);
    blank.superblock = Finding::Blank;
    let mut small = device(now);
    small.sectors = Sectors(4096 + 23);
    let mut unreadable = device(now);
    unreadable.superblock = Finding::Unreadable(Some(carried(&mut device(now)).clone()));
    let mut unread = device(now);
    unread.log.unreadable = true;
    let cases = [
        (Examined::absent(), Unusable::Absent),
        (blank, Unusable::Blank),
        (foreign, Unusable::AnotherArray),
        (carries(&config, 1, now), Unusable::OutOfPlace { device: 1, members: 3 }),
        (device(forked), Unusable::OtherHistory),
        (device(Superblock { events: 7, ..now }), Unusable::Stale { events: 7, newest: 9 }),
        (device(Superblock { journal_tail: 4, ..now }), Unusable::OtherHistory),
        (small, Unusable::TooSmall),
        (unreadable, Unusable::Unreadable),
        (unread, Unusable::LogUnreadable),
    ];
    for (journal, why) in cases {
        let seen = Found { journal, ..seen.clone() };
        let error = start(&config, &seen).expect_err("its log may hold what the members have not");
        let most = Pacing::default().most;
        let resync = ResyncCost { len: Sectors(MEMBER), most };
        let lost = AssembleError::JournalLost { why, resync };
        assert_eq!(error, lost);
        assert!(error.to_string().contains(&format!("({why})")), "{error}");
        let allow = Allow { dirty_degraded: true, ..Allow::default() };
        let started = Array::assemble(&Wanted::from(&config), &seen, allow).expect("allowed");
        assert_eq!((started.journal_lost, started.resync), (Some(why), Sectors(MEMBER)));
        assert!(!started.array.superblock().journal, "it is given up");
    }
}

/// The log device has a superblock that no member has: they missed what it has seen.
#[test]
fn a_log_device_that_is_ahead_shows_that_members_are_stale() {
    let config = raid5(3, JOURNAL);
    let old = Superblock { journal: true, ..superblock(9, 0b100) };
    let mut seen = found(&config, &[Some(old), Some(old), None]);
    assert!(start(&config, &seen).is_ok());
    seen.journal = carries(&config, 6, Superblock { journal: true, ..superblock(12, 0b001) });
    let error = start(&config, &seen).expect_err("members 1 and 2 went on");
    assert!(matches!(error, AssembleError::TooFew(all) if all.len() == 3));
}

/// The power goes before any superblock says that the log device failed. Nothing was written without it until then: it
/// is used again where it is there, and after an orderly stop there is nothing to make consistent.
#[test]
fn a_log_device_whose_failure_is_not_recorded_is_used_again() {
    let limits = Limits { requests: 4, segments: 4, ios: 4, plans: 4, windows: 1 };
    let config = Config { limits, ..raid5(3, JOURNAL) };
    let nothing = Word { missing: false, dirty_degraded: false };
    let mut driver = Driver::new(&config);
    assert_eq!(driver.write(0, &[1; 8]), Outcome::Done);
    let journal = driver.array.journal();
    driver.meta_fault = Box::new(move |meta| match meta.member == journal {
        true => IoOutcome::MediaError { first_bad: meta.at },
        false => IoOutcome::Ok,
    });
    driver.begin_write(4, &[2; 8], false);
    while !driver.events.contains(&Event::JournalFailed) {
        driver.step(0);
    }
    driver.begin_write(32, &[4; 8], false);
    // Whatever goes out besides them ends before the superblocks that would tell of it.
    let is_other = |work: &Work| !matches!(work, Work::Meta(_));
    while let Some(at) = driver.work.iter().position(is_other) {
        driver.step(at);
    }
    driver.reassemble(&config, &[], nothing).expect("nobody is missing");
    assert!(driver.array.superblock().journal, "no superblock says that it is given up");
    driver.run_until_idle(20);
    let as_it_was: Vec<u8> = [&[1; 8][..], &[0; 32]].concat();
    assert_eq!(driver.read(0, 40), Ok(as_it_was), "nothing went out without the log device");
    assert_eq!(driver.write(4, &[3; 8]), Outcome::Done);
    driver.input(Input::Admin(Admin::Stop));
    driver.run_until_idle(20);
    assert!(driver.events.contains(&Event::Stopped));
    driver.reassemble(&config, &[], nothing).expect("nobody is missing");
    let said = driver.array.superblock();
    assert!(said.journal && said.clean && said.synced_to == Sector::MAX, "{said:?}");
}

fn journal_entry(sequence: u64, settled: u64) -> LogEntry {
    let at = Sector(64 * sequence);
    let (stripe, from, to, roles) = (0, 0, 1, [0b111, 0]);
    let record = Record::JournalEntry { at, sequence, stripe, from, to, roles, settled };
    LogEntry { member: MemberIndex(6), at, record }
}

/// A newer entry tells which were durable when it was made: what of them is missing was there.
#[test]
fn an_entry_of_the_journal_that_was_durable_and_is_gone_is_damage() {
    let config = raid5(3, JOURNAL);
    let now = Superblock { clean: false, journal: true, journal_tail: 5, ..superblock(9, 0) };
    let outcome = |entries: &[(u64, u64)]| {
        let mut seen = found(&config, &[Some(now); 3]);
        seen.journal.log.entries = entries.iter().map(|(n, to)| journal_entry(*n, *to)).collect();
        match start(&config, &seen) {
            Ok(started) => started.journal_lost,
            Err(AssembleError::JournalLost { why, .. }) => Some(why),
            Err(error) => panic!("{error}"),
        }
    };
    assert_eq!(outcome(&[]), None);
    assert_eq!(outcome(&[(5, 5), (6, 6), (7, 7)]), None);
    assert_eq!(outcome(&[(3, 3), (4, 4), (7, 5)]), None, "5 and 6 were on their way");
    assert_eq!(outcome(&[(5, 5), (7, 6)]), None, "6 was on its way");
    assert_eq!(outcome(&[(5, 5), (7, 7)]), Some(Unusable::LogDamaged));
    assert_eq!(outcome(&[(7, 7)]), Some(Unusable::LogDamaged));
    assert_eq!(outcome(&[(6, 5), (8, 6)]), Some(Unusable::LogDamaged));
}

/// What a retired entry holds may have been written over; what one holds that is not retired is payload.
#[test]
fn an_entry_inside_another_counts_if_that_is_retired() {
    let config = raid5(3, JOURNAL);
    let inner = LogEntry { at: Sector(64 * 7 + 8), ..journal_entry(8, 8) };
    let Record::JournalEntry { sequence, stripe, from, to, roles, settled, .. } = inner.record
    else {
        unreachable!("an entry of the journal")
    };
    let record = Record::JournalEntry { at: inner.at, sequence, stripe, from, to, roles, settled };
    let inner = LogEntry { record, ..inner };
    let replays = |tail: u64| {
        let now =
            Superblock { clean: false, journal: true, journal_tail: tail, ..superblock(9, 0) };
        let mut seen = found(&config, &[Some(now); 3]);
        seen.journal.log.entries = vec![journal_entry(7, 7), inner];
        let mut array = start(&config, &seen).expect("it starts").array;
        while array.poll().is_some() {}
        array.handle(Time(1), Input::Wake);
        let outputs = std::iter::from_fn(|| array.poll());
        let reads = outputs.filter_map(|output| match output {
            Output::MemberIo(io) if io.op == IoOp::Read => Some(io.at.0),
            _ => None,
        });
        reads.collect::<Vec<u64>>()
    };
    // The first that is replayed.
    assert_eq!(replays(7), [64 * 7 + 8]);
    assert_eq!(replays(8), [64 * 7 + 16]);
}

const PARTIAL: Consistency = Consistency::PartialParity { slots: 6 };

/// Partial parity of stripe 0 or 3, whose P is on member 2.
fn partial_entry(generation: u64, settled: [u64; 2]) -> LogEntry {
    let slot = (generation % 6) as u32;
    let at = Sector(u64::from(slot) * 16);
    let (stripe, from, to, written) = (0, 0, 1, [0b1, 0]);
    let record = Record::PartialParity { slot, generation, stripe, from, to, written, settled };
    LogEntry { member: MemberIndex(2), at, record }
}

#[test]
fn a_log_of_partial_parity_that_is_not_whole_is_lost() {
    let config = raid5(3, PARTIAL);
    let now = Superblock { clean: false, ..superblock(9, 0) };
    let outcome = |copies: &[Option<Superblock>], log: &dyn Fn(&mut Found)| {
        let mut seen = found(&config, copies);
        log(&mut seen);
        start(&config, &seen).map(|started| started.resync)
    };
    let entries = |list: &[(u64, [u64; 2])]| {
        let list: Vec<_> = list.iter().map(|(n, settled)| partial_entry(*n, *settled)).collect();
        move |seen: &mut Found| seen.members[2].log.entries.clone_from(&list)
    };
    let all = [Some(now); 3];
    let without = Superblock { failed: [0b1, 0], ..now };
    let degraded = [None, Some(without), Some(without)];
    let unreadable = |seen: &mut Found| seen.members[2].log.unreadable = true;
    assert_eq!(outcome(&all, &unreadable), Ok(Sectors(MEMBER)));
    let error = outcome(&degraded, &unreadable).expect_err("dirty, degraded, and no log");
    assert!(matches!(error, AssembleError::DirtyDegraded { .. }), "{error}");
    let clean = [Some(superblock(9, 0)); 3];
    assert_eq!(outcome(&clean, &unreadable), Ok(Sectors(0)), "nothing was in flight");
    let away = |seen: &mut Found| seen.members[0].log.unreadable = true;
    assert_eq!(outcome(&degraded, &away), Ok(Sectors(0)), "its log protects nothing");
    for (list, resync) in [
        (vec![(7, [1, 1]), (8, [7, 8])], 0),
        (vec![(7, [1, 1]), (9, [1, 8])], 0),
        (vec![(7, [7, 7]), (9, [7, 9])], MEMBER),
        // So old that its place may have been taken.
        (vec![(9, [1, 7])], 0),
        (vec![(9, [1, 8])], MEMBER),
    ] {
        assert_eq!(outcome(&all, &entries(&list)), Ok(Sectors(resync)), "{list:?}");
    }
    let gone = entries(&[(7, [7, 7]), (9, [7, 9])]);
    assert!(matches!(outcome(&degraded, &gone), Err(AssembleError::DirtyDegraded { .. })));
}

#[test]
fn an_array_starts_with_the_identity_of_its_members() {
    let config = mirror(2);
    let seen = found(&config, &[Some(superblock(9, 0)); 2]);
    let started = start(&config, &seen).expect("both are there");
    assert_eq!((started.identity, started.config), (IDENTITY, config));
    assert!(started.area.used && started.unused.is_empty());
}

/// What could not be read may be readable later: it must not look newer than what is written from now on.
#[test]
fn numbers_of_a_log_that_could_not_be_read_go_on_far_beyond() {
    let config = raid5(3, PARTIAL);
    let mut driver = Driver::new(&config);
    assert_eq!(driver.write(0, &[1]), Outcome::Done);
    let newest = |driver: &Driver| {
        let found = driver.records.found(&config, &driver.members, &[]);
        let entries = found.members.iter().flat_map(|one| one.log.entries.clone());
        let numbers = entries.filter_map(|entry| match entry.record {
            Record::PartialParity { generation, .. } => Some(generation),
            _ => None,
        });
        numbers.max()
    };
    let before = newest(&driver).expect("it was logged");
    for unreadable in [false, true] {
        let mut seen = driver.records.found(&config, &driver.members, &[]);
        seen.members.iter_mut().for_each(|one| one.log.unreadable = unreadable);
        driver.reassemble_from(&config, &seen, Word::default()).expect("all are there");
        driver.run_until_idle(60);
        assert_eq!(driver.write(0, &[2]), Outcome::Done);
        let after = newest(&driver).expect("it was logged");
        assert_eq!(after > before + (1 << 31), unreadable, "{after} after {before}");
        driver.run_until_idle(60);
    }
}

#[test]
fn the_log_device_is_told_what_all_members_have() {
    let config = raid5(3, JOURNAL);
    let mut told = 0;
    for seed in 0..40 {
        let mut random = SplitMix64::new(seed);
        let mut driver = Driver::new(&config);
        let events = |driver: &Driver, device| {
            driver.records.superblock(device).expect("all were made with one").events
        };
        for step in 0..400 {
            if step == 150 {
                driver.input(Input::Admin(Admin::Fail(MemberIndex(1))));
            }
            if random.below(20) == 0 {
                driver.begin_write(random.below(64), &[7], false);
            }
            if driver.work.is_empty() {
                let Some(at) = driver.wake.take() else { continue };
                driver.now = driver.now.max(at);
                driver.input(Input::Wake);
            } else {
                driver.step(random.below(driver.work.len() as u64) as usize);
            }
            let members = driver.in_service().into_iter().map(|m| events(&driver, m));
            let (least, log) = (members.min().expect("two"), events(&driver, 6));
            assert!(log <= least && least <= log + 1, "seed {seed}: {log} beside {least}");
            told = told.max(log);
        }
    }
    assert!(told > 5, "{told}");
}

/// What whoever must decide about a dirty start wants to know: how long the array is slow.
#[test]
fn what_a_resync_costs_is_said_in_hours() {
    let said = |gib: u64, most: u64| ResyncCost { len: Sectors(gib << 21), most }.to_string();
    assert_eq!(said(8_000, 200_000 << 10), "8192000 MiB of each (11.6 hours or more)");
    assert_eq!(said(100, 200_000 << 10), "102400 MiB of each (8 minutes or more)");
    assert_eq!(said(1, 200_000 << 10), "1024 MiB of each (a minute or more)");
    assert_eq!(said(8_000, u64::MAX), "8192000 MiB of each (a minute or more)");
    assert_eq!(said(1, 0), "1024 MiB of each (298261.6 hours or more)");
}

/// Who is two events behind missed an update, and what was written after it.
#[test]
fn a_member_two_behind_is_stale() {
    for consistency in [Consistency::Resync, Consistency::Bitmap { chunk: Sectors(1) }] {
        let config = Config {
            settings: raidlab_core::Settings { consistency, ..mirror(2).settings },
            ..mirror(2)
        };
        let behind =
            |events| found(&config, &[Some(superblock(9, 0)), Some(superblock(events, 0))]);
        assert_eq!(allowed(&config, &behind(8), Allow::default()), Ok(0));
        let why = Unusable::Stale { events: 7, newest: 9 };
        let error = start(&config, &behind(7)).expect_err("it may hold what nobody else has");
        assert_eq!(error, AssembleError::Missing(vec![unused(1, why)]));
        let allow = Allow { without: [0b10, 0], ..Allow::default() };
        assert_eq!(allowed(&config, &behind(7), allow), Ok(0b10));
    }
}

/// The log device is told last: no member in service is behind it, not even by one.
#[test]
fn nobody_in_service_is_behind_the_log_device() {
    let config = raid5(3, JOURNAL);
    let at = |events| Some(Superblock { journal: true, ..superblock(events, 0) });
    let told = |events: [u64; 3], journal: u64| {
        let mut seen = found(&config, &events.map(at));
        seen.journal = carries(&config, 6, at(journal).expect("some"));
        start(&config, &seen).map(|started| started.unused)
    };
    assert_eq!(told([9, 9, 8], 8), Ok(Vec::new()), "an update was under way");
    assert_eq!(told([9, 9, 8], 9), Ok(Vec::new()), "the third fails, and no update says so yet");
    let stale = |member| unused(member, Unusable::Stale { events: 9, newest: 10 });
    let all = vec![stale(0), stale(1), stale(2)];
    assert_eq!(told([9, 9, 9], 10), Err(AssembleError::TooFew(all)));
}

/// The administrator's word about one member says nothing about another.
#[test]
fn only_who_is_named_is_believed() {
    let config = mirror(3);
    let mut seen = found(&config, &[Some(superblock(9, 0)); 3]);
    for member in [1, 2] {
        let older = carried(&mut seen.members[member]).clone();
        seen.members[member].superblock = match member {
            1 => Finding::Unreadable(Some(older)),
            _ => Finding::Damaged(Some(older)),
        };
    }
    let outcome =
        |believe: u64| allowed(&config, &seen, Allow { believe: [believe, 0], ..Allow::default() });
    let (one, two) = (unused(1, Unusable::Unreadable), unused(2, Unusable::Damaged));
    assert_eq!(outcome(0b001), Err(AssembleError::Missing(vec![one, two])));
    assert_eq!(outcome(0b010), Err(AssembleError::Missing(vec![two])));
    assert_eq!(outcome(0b100), Err(AssembleError::Missing(vec![one])));
    assert_eq!(outcome(0b110), Ok(0));
}

/// A drive that was to be rebuilt holds nothing if nothing was ever recorded on it; of anything else nobody knows.
#[test]
fn a_member_to_be_rebuilt_may_be_blank_and_nothing_else() {
    let config = mirror(2);
    let newest = Superblock { rebuilding: [0b10, 0], ..superblock(9, 0) };
    let whole = found(&config, &[Some(newest); 2]);
    for (finding, why) in [
        (Finding::Blank, None),
        (Finding::Absent, Some(Unusable::Absent)),
        (Finding::Foreign, Some(Unusable::Foreign)),
        (Finding::Unreadable(None), Some(Unusable::Unreadable)),
        (Finding::Damaged(None), Some(Unusable::Damaged)),
        (Finding::Unsupported("an old one"), Some(Unusable::Unsupported("an old one"))),
    ] {
        let mut seen = whole.clone();
        seen.members[1].superblock = finding;
        let expected = match why {
            Some(why) => Err(AssembleError::Missing(vec![unused(1, why)])),
            None => Ok(0b10),
        };
        assert_eq!(allowed(&config, &seen, Allow::default()), expected);
    }
}

/// Bits are cleared only after all superblocks say from when on they name everything.
#[test]
fn the_bitmap_reaches_back_as_far_as_the_newest_superblock_says() {
    let mut config = mirror(3);
    config.settings.consistency = Consistency::Bitmap { chunk: Sectors(1) };
    for (newest, since) in [(superblock(9, 0), 0), (superblock(9, 0), 9), (superblock(9, 0b100), 3)]
    {
        let seen = found(&config, &[Some(Superblock { bitmap_since: since, ..newest }); 3]);
        let array = start(&config, &seen).expect("all are there").array;
        assert_eq!(array.superblock().bitmap_since, since);
    }
}

/// A driver may hand in what a format did not check.
#[test]
fn bits_of_no_member_are_no_members() {
    let config = raid5(3, Consistency::Resync);
    let beyond = [0b1000, 1 << 40];
    let now = Superblock { failed: beyond, rebuilding: beyond, ..superblock(9, 0) };
    let array = start(&config, &found(&config, &[Some(now); 3])).expect("all are there").array;
    assert_eq!(array.status().failed, [0, 0]);
    assert_eq!(array.status().rebuilding, [0, 0]);
}

/// Members with numbers beyond 63 stand in the second word of every set.
#[test]
fn members_beyond_the_first_word_are_in_the_role_that_superblocks_say() {
    let config = mirror(100);
    let (failed, rebuilding) = ([1, 1 << (90 - 64)], [1 << 5, 1 << (80 - 64)]);
    let now = Superblock { failed, rebuilding, ..superblock(9, 0) };
    let mut superblocks = [Some(now); 100];
    superblocks[0] = None;
    superblocks[90] = None;
    let array = start(&config, &found(&config, &superblocks)).expect("it starts").array;
    assert_eq!((array.status().failed, array.status().rebuilding), (failed, rebuilding));
    // One that nobody says is out of service must be asked for.
    superblocks[70] = None;
    match start(&config, &found(&config, &superblocks)) {
        Err(AssembleError::Missing(asked)) => assert_eq!(asked, [unused(70, Unusable::Absent)]),
        other => panic!("{:?}", other.map(|started| started.array.status())),
    }
}

/// A page that only one member has is on all of them before anything else depends on it.
#[test]
fn what_one_members_bitmap_names_is_written_to_all() {
    let config = raid5(3, Consistency::Bitmap { chunk: Sectors(8) });
    let now = Superblock { clean: false, ..superblock(9, 0) };
    let mut seen = found(&config, &[Some(now); 3]);
    seen.members[1].bitmap[0] = Finding::Whole(0b101);
    let mut array = start(&config, &seen).expect("it starts").array;
    while array.poll().is_some() {}
    array.handle(Time(1), Input::Wake);
    let mut named = Vec::new();
    while let Some(output) = array.poll() {
        if let Output::Meta { io } = output
            && let Some(meta) = array.meta(io)
            && let Record::BitmapPage { page: 0, bits } = meta.record
        {
            named.push((meta.member.0, bits));
        }
    }
    assert_eq!(named, [(0, 0b101), (1, 0b101), (2, 0b101)]);
}
