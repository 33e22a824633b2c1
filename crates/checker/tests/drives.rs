//! What drives with a volatile cache may leave behind, and what the oracle makes of it.

use std::collections::BTreeSet;
use std::sync::Arc;

use raidlab_checker::device::Drives;
use raidlab_checker::oracle::Oracle;
use raidlab_checker::shape::Shape;
use raidlab_core::consistency::{Found, LogEntry};
use raidlab_core::contract::{Record, Superblock};
use raidlab_core::{Array, Config, Consistency, Layout, Level, MemberIndex, Sectors};

const ONE: MemberIndex = MemberIndex(0);
const TWO: MemberIndex = MemberIndex(1);

fn config(level: Level, members: u16, consistency: Consistency) -> Config {
    let mut layout = Layout::new(level, members);
    if level.has_chunks() {
        layout = layout.with_chunk(Sectors(2));
    }
    let mut config = Config::uniform(layout, Sectors(8));
    config.settings.consistency = consistency;
    config
}

fn drives(config: &Config) -> Drives {
    Drives::new(&Array::new(config).expect("a possible array"), config, true)
}

/// All that sectors 0..n of drive 0 may hold after a crash.
fn leftovers(drives: &Drives, n: u64) -> BTreeSet<Vec<u64>> {
    let fates = drives.fates();
    let mut picks = vec![0; fates.len()];
    let mut all = BTreeSet::new();
    loop {
        let mut image = Vec::new();
        drives.image(&fates, &picks, &mut image);
        let mut after = drives.clone();
        after.restart(&image);
        all.insert((0..n).map(|at| after.live(ONE, at)).collect());
        let Some(index) = (0..picks.len()).find(|k| picks[*k] + 1 < fates[*k].ways) else {
            return all;
        };
        picks[index] += 1;
        picks[..index].fill(0);
    }
}

fn entries(found: &Found) -> Vec<LogEntry> {
    found.members.iter().flat_map(|member| member.log.entries.clone()).collect()
}

#[test]
fn a_flush_covers_what_was_completed_before_it() {
    let mut drives = drives(&config(Level::Raid1, 2, Consistency::None));
    let first = drives.send_write(ONE, 0, [1].into_iter());
    drives.complete(first, false);
    let late = drives.send_write(ONE, 1, [2].into_iter());
    let other = drives.send_write(TWO, 0, [9].into_iter());
    drives.complete(other, false);
    let flush = drives.send_flush();
    drives.complete(late, false);
    assert_eq!(leftovers(&drives, 2).len(), 4, "nothing is certain yet");
    drives.complete_flush(ONE, flush);
    let expected = [vec![1, 0], vec![1, 2]];
    assert_eq!(leftovers(&drives, 2), BTreeSet::from(expected), "what came later is not");
    let flush = drives.send_flush();
    drives.complete_flush(ONE, flush);
    assert_eq!(leftovers(&drives, 2), BTreeSet::from([vec![1, 2]]));
    assert!(!drives.is_durable(), "the other drive was not flushed");
}

#[test]
fn a_sector_keeps_any_value_since_the_last_durable_one() {
    let mut drives = drives(&config(Level::Raid1, 2, Consistency::None));
    for value in [1, 2] {
        let ticket = drives.send_write(ONE, 0, [value].into_iter());
        drives.complete(ticket, false);
    }
    drives.send_write(ONE, 0, [3].into_iter());
    assert_eq!(drives.live(ONE, 0), 2, "what is in flight is not seen");
    let all: BTreeSet<_> = (0..4).map(|value| vec![value]).collect();
    assert_eq!(leftovers(&drives, 1), all);
    let durable = drives.send_write(ONE, 0, [4].into_iter());
    drives.complete(durable, true);
    assert_eq!(leftovers(&drives, 1), BTreeSet::from([vec![3], vec![4]]));
}

#[test]
fn sectors_of_a_write_are_torn_apart() {
    let mut drives = drives(&config(Level::Raid1, 2, Consistency::None));
    drives.send_write(ONE, 0, [1, 1, 1].into_iter());
    assert_eq!(leftovers(&drives, 3).len(), 8);
}

fn entry(generation: u64) -> Record {
    Record::PartialParity {
        slot: 0,
        generation,
        stripe: 0,
        from: 0,
        to: 2,
        written: [1, 0],
        settled: [1; 2],
    }
}

#[test]
fn a_torn_log_entry_is_no_entry() {
    let config = config(Level::Raid5, 3, Consistency::PartialParity { slots: 6 });
    let mut drives = drives(&config);
    let (old, _) = drives.send_record((ONE, entry(1), 0), 0, &[5, 6], false);
    drives.complete(old, true);
    drives.send_record((ONE, entry(2), 0), 0, &[7, 8], false);
    let fates = drives.fates();
    assert_eq!((fates.len(), fates[0].ways), (1, 3));
    let mut seen = Vec::new();
    for pick in 0..3 {
        let mut after = drives.clone();
        after.crash(|_| pick);
        let log = entries(&after.found(&config, |_| false).0);
        seen.push(log.iter().map(|entry| entry.record).collect::<Vec<_>>());
    }
    assert_eq!(seen, [vec![entry(1)], vec![], vec![entry(2)]]);
    assert!(
        entries(&drives.found(&config, |device| device == ONE).0).is_empty(),
        "lost with its drive"
    );
}

#[test]
fn a_record_with_a_flush_before_it_never_overtakes() {
    let config = config(Level::Raid1, 2, Consistency::Resync);
    let mut drives = drives(&config);
    let data = drives.send_write(ONE, 0, [1].into_iter());
    drives.complete(data, false);
    let superblock = Superblock { events: 7, ..Superblock::default() };
    drives.send_record((ONE, Record::Superblock(superblock), 0), 0, &[], true);
    let fates = drives.fates();
    assert_eq!(fates.len(), 2);
    for picks in [[0, 0], [1, 0], [0, 1], [1, 1]] {
        let mut image = Vec::new();
        drives.image(&fates, &picks, &mut image);
        let mut after = drives.clone();
        after.restart(&image);
        let found = after.found(&config, |_| false).0.members.swap_remove(0);
        let found = found.superblock.whole().map(|one| one.superblock);
        assert_eq!(found.is_some(), picks[1] == 1);
        assert!(found.is_none() || after.live(ONE, 0) == 1, "{picks:?}");
    }
}

#[test]
fn bad_sectors_heal_by_writing_unless_stuck() {
    let mut drives = drives(&config(Level::Raid1, 2, Consistency::None));
    drives.damage(ONE, 3, false);
    drives.damage(ONE, 5, true);
    assert_eq!(drives.first_bad(ONE, 0, 8, false), Some(3));
    assert_eq!(drives.first_bad(ONE, 0, 8, true), Some(5));
    let ticket = drives.send_write(ONE, 3, [1, 1, 1].into_iter());
    drives.complete(ticket, false);
    assert_eq!(drives.first_bad(ONE, 0, 8, false), Some(5));
    assert_eq!(drives.first_bad(TWO, 0, 8, false), None);
}

fn oracle(level: Level, members: u16, mode: Consistency) -> Oracle {
    Oracle::new(Arc::new(Shape::new(&config(level, members, mode)).expect("a possible array")))
}

fn accepts(oracle: &mut Oracle, at: u64, value: u64) -> bool {
    let since = oracle.read();
    let answer = oracle.check(since, at, &[value]).is_ok();
    oracle.read_ended(since);
    answer
}

#[test]
fn what_is_durable_covers_what_came_before() {
    let mut oracle = oracle(Level::Raid1, 2, Consistency::Resync);
    oracle.write(1, 0, [11].into_iter());
    assert!(accepts(&mut oracle, 0, 0) && accepts(&mut oracle, 0, 11), "in flight: either");
    oracle.written(1, true, false);
    assert!(!accepts(&mut oracle, 0, 0) && accepts(&mut oracle, 0, 11), "visible now");
    let mut crashed = oracle.clone();
    crashed.crash();
    assert!(accepts(&mut crashed, 0, 0) && accepts(&mut crashed, 0, 11), "but not durable");
    crashed.saw(0, &[0]);
    assert!(!accepts(&mut crashed, 0, 11), "what was seen stays");
    let flush = oracle.flush();
    oracle.write(2, 0, [12].into_iter());
    oracle.written(2, true, false);
    oracle.flushed(flush);
    oracle.crash();
    assert!(!accepts(&mut oracle, 0, 0), "covered by a durable write");
    assert!(accepts(&mut oracle, 0, 11) && accepts(&mut oracle, 0, 12));
    assert!(!accepts(&mut oracle, 1, 11), "a neighbour keeps its own");
}

#[test]
fn overlapping_writes_may_end_either_way() {
    let mut oracle = oracle(Level::Raid0, 2, Consistency::None);
    oracle.write(1, 0, [11].into_iter());
    oracle.write(2, 0, [12].into_iter());
    oracle.written(1, true, true);
    oracle.written(2, true, true);
    assert!(accepts(&mut oracle, 0, 11) && accepts(&mut oracle, 0, 12));
    assert!(!accepts(&mut oracle, 0, 0));
    oracle.write(3, 0, [13].into_iter());
    oracle.written(3, false, true);
    assert!(accepts(&mut oracle, 0, 13) && accepts(&mut oracle, 0, 12), "it failed: old or new");
    oracle.write(4, 0, [14].into_iter());
    let early = oracle.read();
    oracle.written(4, true, true);
    assert!(oracle.check(early, 0, &[12]).is_ok(), "a read that began before sees the old");
    oracle.read_ended(early);
    assert!(!accepts(&mut oracle, 0, 12) && accepts(&mut oracle, 0, 14));
}

#[test]
fn where_copies_differ_either_is_read_until_both_are_written() {
    let mut oracle = oracle(Level::Raid1, 2, Consistency::Resync);
    oracle.differs(0, 11);
    assert!(accepts(&mut oracle, 0, 0) && accepts(&mut oracle, 0, 11));
    assert!(!accepts(&mut oracle, 0, 12) && !accepts(&mut oracle, 1, 11));
    oracle.write(1, 0, [13].into_iter());
    assert!(accepts(&mut oracle, 0, 11) && accepts(&mut oracle, 0, 13));
    oracle.written(1, true, true);
    assert!(!accepts(&mut oracle, 0, 0) && !accepts(&mut oracle, 0, 11));
}

/// Three members, chunks of 2: sectors 0 and 2 share row 0 with P, on members 0, 1 and 2.
#[test]
fn a_lost_member_opens_the_write_hole_only_where_the_table_says() {
    let chunk = Sectors(8);
    let modes = [
        // Mode; a start was forced; is a neighbour in the row anything; is the written sector.
        (Consistency::None, false, true, true),
        (Consistency::Resync, false, false, false),
        (Consistency::Resync, true, true, true),
        (Consistency::Bitmap { chunk }, false, false, false),
        (Consistency::PartialParity { slots: 6 }, false, false, true),
        (Consistency::Journal { sectors: Sectors(64) }, false, false, false),
    ];
    for (mode, forced, neighbour, written) in modes {
        let mut oracle = oracle(Level::Raid5, 3, mode);
        for (id, at) in [(1, 0), (2, 5)] {
            oracle.write(id, at, [id + 10].into_iter());
        }
        oracle.written(2, true, true);
        oracle.crash();
        let mut with_written_lost = oracle.clone();
        with_written_lost.lose(1, forced);
        assert_eq!(with_written_lost.is_open(0), written, "{mode:?}");
        oracle.lose(2, forced);
        assert_eq!(oracle.is_open(2), neighbour, "{mode:?}");
        assert!(!oracle.is_open(3), "another row: {mode:?}");
        assert!(!oracle.is_open(0), "not lost: {mode:?}");
    }
}

/// Parity counts on the zeroes of a discard that members may lose.
#[test]
fn a_discard_that_was_not_flushed_opens_the_write_hole_of_its_row() {
    for (is_flushed, is_open) in [(false, true), (true, false)] {
        let mut oracle = oracle(Level::Raid5, 3, Consistency::Resync);
        oracle.discard(0, 1);
        oracle.discarded(0, 1);
        let moment = oracle.flush();
        if is_flushed {
            oracle.flushed(moment);
        }
        oracle.write(1, 2, [12].into_iter());
        oracle.written(1, true, true);
        oracle.crash();
        oracle.lose(2, true);
        assert_eq!(oracle.is_open(2), is_open, "flushed: {is_flushed}");
    }
}
