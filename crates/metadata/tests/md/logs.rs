//! What is seen of the logs on devices, and what follows for who reads the array.

use raidlab_metadata::md::{
    Allowed, Aside, Assembly, Cannot, Features, Inspected, LogSeen, PplEntry, PplHeader, Role,
    Superblock, Why, assemble, inspect, join, tell_failed,
};

use raidlab_core::consistency::MetaArea;
use raidlab_core::contract::{MetaIo, Record, SegmentList, Superblock as Said};
use raidlab_core::{Config, Consistency, Layout, Level, MemberIndex, Sector, Sectors};
use raidlab_metadata::md::Md;
use raidlab_metadata::{MetadataFormat, RecordWriter, Source, Unreadable};

use super::device::{Disk, disk, raid5, seen};

const MD: Md = Md { block: 1 };

/// A header of partial parity.
fn ppl(array: [u8; 16], generation: u64, entries: usize) -> Vec<u8> {
    let mut block = vec![0; 4096];
    let signature = PplHeader::signature_of(&array);
    let entries = vec![PplEntry::default(); entries];
    PplHeader { signature, generation, entries }.emit(&mut block);
    block
}

/// A block of the journal of the arrays of these tests.
fn journal_block(used: u32, sequence: u64, position: u64) -> Vec<u8> {
    let mut block = vec![0; 4096];
    block[..4].copy_from_slice(&0x6433_c509_u32.to_le_bytes());
    block[8] = 1;
    block[12..16].copy_from_slice(&used.to_le_bytes());
    block[16..24].copy_from_slice(&sequence.to_le_bytes());
    block[24..32].copy_from_slice(&position.to_le_bytes());
    let checksum = !crc32c::crc32c_append(crc32c::crc32c(&[9; 16]), &block);
    block[4..8].copy_from_slice(&checksum.to_le_bytes());
    block
}

/// The superblock of a log device whose tail is at this sector of the ring, which has 2048.
fn journal(tail: u64) -> Superblock {
    let mut one = raid5(3, 3);
    one.roles[3] = Role::Journal;
    Superblock { features: Features::JOURNAL, recovery: tail, ..one }
}

#[test]
fn the_newest_header_of_partial_parity_counts() {
    let aside = Aside::PartialParity { offset: 16, size: 32 };
    let one = Superblock { features: Features::PPLS, aside, ..raid5(3, 0) };
    let log = |headers: &[(u64, usize)]| {
        let block = |(slot, (generation, entries)): (u64, &(u64, usize))| {
            (24 + 8 * slot, ppl(one.array, *generation, *entries))
        };
        let blocks: Vec<_> = (0..).zip(headers).map(block).collect();
        inspect(&mut disk(&one, &blocks)).log
    };
    assert_eq!(log(&[]), LogSeen::Lost);
    assert_eq!(log(&[(1, 0)]), LogSeen::Empty);
    assert_eq!(log(&[(1, 0), (2, 1)]), LogSeen::Used);
    assert_eq!(log(&[(1, 1), (2, 0)]), LogSeen::Empty);
    assert_eq!(log(&[(2, 0), (1, 1)]), LogSeen::Empty);
    assert_eq!(log(&[(1, 1), (2, 0), (3, 2)]), LogSeen::Used);
    let foreign = [(24, ppl(one.array, 1, 0)), (32, ppl([8; 16], 2, 1))];
    assert_eq!(inspect(&mut disk(&one, &foreign)).log, LogSeen::Empty);
    let apart = [(24, ppl(one.array, 1, 0)), (40, ppl(one.array, 2, 1))];
    assert_eq!(inspect(&mut disk(&one, &apart)).log, LogSeen::Lost, "a newer one, apart");
    let nowhere = Aside::PartialParity { offset: 16, size: 65535 };
    let one = Superblock { aside: nowhere, ..one };
    assert_eq!(inspect(&mut disk(&one, &[])).log, LogSeen::Lost, "over the data");
}

/// Blocks of a device, by sector.
type Blocks = [(u64, Vec<u8>)];

/// What keeps an array with these logs consistent, and up to where it is so; without a member that is `None`.
fn joined(logs: [Option<&Blocks>; 3], clean: bool) -> Result<(String, bool), Cannot> {
    let aside = Aside::PartialParity { offset: 16, size: 64 };
    let disks = (0..).zip(logs).filter_map(|(place, log)| {
        let one = Superblock { features: Features::PPLS, aside, ..raid5(3, place) };
        Some(disk(&Superblock { resync: if clean { one.resync } else { 0 }, ..one }, log?))
    });
    let mut disks: Vec<_> = disks.collect();
    let all: Vec<_> = disks.iter_mut().map(|disk| inspect(disk)).collect();
    let joined = join(&all, &Allowed::default())?;
    let mut looked: Vec<_> = (0..3).map(|_| None).collect();
    for (place, given) in joined.order.iter().enumerate() {
        looked[place] = given.map(|given| MD.examine(&mut disks[given]));
    }
    let found = joined.found(&mut looked, 1, 0);
    let members = || found.members.iter().filter_map(|one| one.superblock.whole());
    let is_kept = members().all(|one| one.superblock.synced_to == Sector::MAX);
    let entries: usize = found.members.iter().map(|one| one.log.entries.len()).sum();
    Ok((format!("{}, {entries} entries", joined.consistency), is_kept))
}

#[test]
fn what_is_logged_is_believed_as_md_does() {
    let array = raid5(3, 0).array;
    let empty = [(24, ppl(array, 1, 0))];
    // All chunks of the first row of the first stripe, whose P is on member 2.
    let entry = PplEntry { data: 1024, member: 2, ..PplEntry::default() };
    let signature = PplHeader::signature_of(&array);
    let used = |entry| {
        let mut block = vec![0; 4096];
        PplHeader { signature, generation: 2, entries: vec![entry] }.emit(&mut block);
        [(24, block)]
    };
    let torn = used(PplEntry { partial: 512, data: 512, checksum: 1, member: 2, first: 0 });
    let used = used(entry);
    let told = |logs, clean| joined(logs, clean).unwrap();
    let mode = |entries| format!("ppl with 148 slots, {entries} entries");
    let (e, u, t) = (Some(&empty[..]), Some(&used[..]), Some(&torn[..]));
    assert_eq!(told([e, e, u], false), (mode(1), true));
    assert_eq!(told([e, e, u], true), (mode(0), true), "stopped cleanly");
    assert_eq!(told([e, e, e], false), (mode(0), false), "nothing says that it was begun");
    assert_eq!(told([e, Some(&[]), u], false), (mode(1), false), "a log is torn");
    assert_eq!(told([e, e, t], false), (mode(0), false), "partial parity is torn");
    // Without a member nothing else could make parity consistent.
    for (logs, entries) in [([None, e, u], 1), ([e, e, None], 0), ([e, None, t], 0)] {
        assert_eq!(told(logs, false), (mode(entries), true));
    }
}

/// An array that was stopped cleanly while nothing was consistent yet has all of it made so, though a log has entries
/// of what was written before: with 0 in its superblock it would count as cut off, and as consistent by its logs.
#[test]
fn a_stop_before_anything_is_consistent_is_no_power_cut() {
    let aside = Aside::PartialParity { offset: 16, size: 64 };
    let entry = PplEntry { data: 1024, member: 2, ..PplEntry::default() };
    let mut block = vec![0; 4096];
    let signature = PplHeader::signature_of(&raid5(3, 0).array);
    PplHeader { signature, generation: 2, entries: vec![entry] }.emit(&mut block);
    let stopped = |synced_to: Sector, clean: bool| {
        let layout = Layout::new(Level::Raid5, 3);
        let config = Config::uniform(layout, Sectors(1024));
        let mut writer = RecordWriter::new([9; 16], &config, &MetaArea::default());
        let mut disks = [0, 1, 2].map(|place| {
            disk(
                &Superblock { features: Features::PPL, aside, resync: 0, ..raid5(3, place) },
                &[(24, block.clone())],
            )
        });
        for (place, disk) in (0..).map(MemberIndex).zip(&mut disks) {
            writer.know(place, &MD.examine(disk));
        }
        for (place, disk) in (0..).map(MemberIndex).zip(&mut disks) {
            let said = Said { events: 101, clean, synced_to, ..Said::default() };
            let (record, payload) = (Record::Superblock(said), SegmentList::EMPTY);
            let (at, flush, fua) = (Sector(0), false, true);
            let meta = MetaIo { member: place, record, at, payload, flush, fua };
            let mut head = vec![0; MD.head()];
            loop {
                let put = writer.encode(&MD, &mut head, &meta, (0, 0, &mut std::iter::empty()));
                let put = put.unwrap();
                disk.0[(put.at.0 * 512) as usize..][..put.bytes]
                    .copy_from_slice(&head[..put.bytes]);
                if !put.more {
                    break;
                }
            }
        }
        let all: Vec<_> = disks.iter_mut().map(|disk| inspect(disk)).collect();
        let joined = join(&all, &Allowed::default()).unwrap();
        let mut looked: Vec<_> = disks.iter_mut().map(|disk| Some(MD.examine(disk))).collect();
        let found = joined.found(&mut looked, 1, 0);
        let said = found.members[0].superblock.whole().unwrap().superblock;
        let entries: usize = found.members.iter().map(|one| one.log.entries.len()).sum();
        (said.synced_to, entries)
    };
    assert_eq!(stopped(Sector(0), true), (Sector(0), 0));
    assert_eq!(stopped(Sector(128), true), (Sector(128), 0));
    assert_eq!(stopped(Sector::MAX, true), (Sector::MAX, 0));
    assert_eq!(stopped(Sector(0), false), (Sector::MAX, 1), "as with md");
}

/// A device of which one sector cannot be read.
struct Unread(Disk, u64);

impl Source for Unread {
    fn sectors(&self) -> Sectors {
        self.0.sectors()
    }

    fn logical_block(&self) -> u32 {
        1
    }

    fn read(&mut self, at: Sector, into: &mut [u8]) -> Result<(), Unreadable> {
        let range = at.0..at.0 + into.len() as u64 / 512;
        if range.contains(&self.1) { Err(Unreadable) } else { self.0.read(at, into) }
    }
}

/// Headers that could not be read at a start, and can be at the next, must not count as newer than what was written in
/// between: they would be replayed over it.
#[test]
fn headers_that_could_not_be_read_are_older_than_what_is_written_then() {
    let aside = Aside::PartialParity { offset: 16, size: 1024 };
    let member = Superblock { features: Features::PPLS, aside, resync: 0, ..raid5(3, 2) };
    let array = member.array;
    let blocks = [(24, ppl(array, 1, 0)), (32, ppl(array, 2, 0)), (40, ppl(array, 3, 0))];
    let generation = |unread: u64| {
        let mut device = Unread(disk(&member, &blocks), unread);
        let seen = inspect(&mut device).partial_parity.unwrap();
        let layout = Layout::new(Level::Raid5, 3);
        let config = Config::uniform(layout, Sectors(1024));
        let mut writer = RecordWriter::new(array, &config, &MetaArea::default());
        writer.know(MemberIndex(2), &MD.examine(&mut device));
        let mut head = vec![0; 4096];
        writer.put_header(&mut head, MemberIndex(2), &[]).unwrap();
        (seen.unreadable, PplHeader::parse(&head).unwrap().generation)
    };
    assert_eq!(generation(u64::MAX), (false, 4));
    // The first header, a later one, and what lies behind all of them, where a newer one may be.
    for unread in [24, 33, 24 + 1000] {
        let (unreadable, next) = generation(unread);
        assert!(unreadable && next > member.events << 32, "sector {unread}: {next}");
    }
}

/// Whoever is told that a device failed is told what the newest superblock says besides: one that was behind, and has
/// taken over since, would go on calling the device member that it replaced.
#[test]
fn a_failure_is_told_with_what_the_newest_superblock_says() {
    let (member, faulty) = (Role::Member, Role::Faulty);
    let of = |number: u32, events, roles: [Role; 4]| {
        let mut one = raid5(3, 0);
        one.roles[..4].copy_from_slice(&roles);
        let replaces = number == 3 && events == 7;
        let features = if replaces { Features::REPLACEMENT } else { Features(0) };
        Superblock { number, events, features, device: [number as u8; 16], ..one }
    };
    let before = [member(0), member(1), member(2), member(0)];
    let after = [faulty, member(1), member(2), member(0)];
    let mut disks = [of(3, 7, before), of(2, 8, after)].map(|one| disk(&one, &[]));
    let mut places: Vec<_> = disks.iter_mut().map(|disk| MD.examine(disk).places).collect();
    for (device, at, bytes) in tell_failed(&mut places, 1).unwrap() {
        disks[device].0[(at.0 * 512) as usize..][..bytes.len()].copy_from_slice(&bytes);
    }
    for disk in &mut disks {
        let seen = inspect(disk);
        let one = seen.superblock().unwrap();
        assert_eq!(one.roles[..4], [faulty, faulty, member(2), member(0)]);
        assert_eq!((one.events, one.features), (10, Features(0)));
    }
}

/// A header that found no room is written again where it was to stand: behind a gap it would be found by nobody.
#[test]
fn a_header_that_was_not_written_leaves_no_gap() {
    let aside = Aside::PartialParity { offset: 16, size: 1024 };
    let member = Superblock { features: Features::PPLS, aside, ..raid5(3, 2) };
    let mut device = disk(&member, &[]);
    let config = Config::uniform(Layout::new(Level::Raid5, 3), Sectors(1024));
    let mut writer = RecordWriter::new(member.array, &config, &MetaArea::default());
    writer.know(MemberIndex(2), &MD.examine(&mut device));
    // Whether each is written.
    let mut put = |written: bool| {
        let entry = PplEntry { data: 1024, member: 2, ..PplEntry::default() };
        let mut head = vec![0; 4096];
        let put = writer.put_header(&mut head, MemberIndex(2), &[entry]).unwrap();
        match written {
            true => device.0[(put.at.0 * 512) as usize..][..4096].copy_from_slice(&head),
            false => writer.log_failed(MemberIndex(2)),
        }
        (put.at.0, put.more)
    };
    assert_eq!([false, true].map(&mut put), [(24, true); 2], "that it begins");
    assert_eq!([false, true].map(&mut put), [(24, false); 2]);
    assert_eq!([false, false, true].map(&mut put), [(32, false); 3]);
    assert_eq!(put(true), (40, false));
    let seen = inspect(&mut device).partial_parity.unwrap();
    assert!(seen.is_whole() && seen.largest == 8, "{seen:?}");
}

#[test]
fn logs_that_cannot_be_written_are_refused() {
    let write = |members: u16, size: u16| {
        let aside = Aside::PartialParity { offset: 16, size };
        let one = |place| Superblock { features: Features::PPL, aside, ..raid5(members, place) };
        let all: Vec<_> = (0..members).map(|place| seen(&one(place))).collect();
        join(&all, &Allowed::default()).map(|joined| joined.log_header)
    };
    assert_eq!(write(3, 2024 - 16), Ok(Some(Sectors(256))));
    assert_eq!(write(3, 48), Ok(Some(Sectors(40))));
    for (members, size, why) in [(2, 64, "raid5 only"), (3, 8, "no room"), (3, 4000, "no room")] {
        let refused = write(members, size).unwrap_err();
        let Cannot::NotWritten(what) = &refused else { panic!("{refused}") };
        assert!(what.contains(why), "{what}");
    }
}

#[test]
fn a_journal_is_used_when_something_in_it_would_be_replayed() {
    let log = |tail: u64, blocks: &[(u64, Vec<u8>)]| {
        let blocks: Vec<_> = blocks.iter().map(|(at, block)| (2048 + at, block.clone())).collect();
        inspect(&mut disk(&journal(tail), &blocks)).log
    };
    assert_eq!(log(64, &[]), LogSeen::Empty);
    assert_eq!(log(4096, &[]), LogSeen::Lost, "its tail is behind the device");
    assert_eq!(log(64, &[(64, journal_block(48, 7, 64))]), LogSeen::Used);
    let empty = (64, journal_block(32, 7, 64));
    assert_eq!(log(64, std::slice::from_ref(&empty)), LogSeen::Empty);
    for (sequence, expected) in
        [(6, LogSeen::Empty), (7, LogSeen::Empty), (8, LogSeen::Used), (9, LogSeen::Empty)]
    {
        let next = (72, journal_block(48, sequence, 72));
        assert_eq!(log(64, &[empty.clone(), next]), expected, "{sequence} follows 7");
    }
    // The last block of the ring is followed by the first.
    let around = [(2040, journal_block(32, 7, 2040)), (0, journal_block(48, 8, 0))];
    assert_eq!(log(2040, &around), LogSeen::Used);
}

#[test]
fn writes_in_a_journal_are_not_passed_over_in_silence() {
    let members = [0, 1, 2].map(|place| {
        let mut one = Superblock { features: Features::JOURNAL, ..raid5(3, place) };
        one.roles[3] = Role::Journal;
        seen(&one)
    });
    let decide = |others: &[Inspected], ignore_journal: bool| -> Result<Assembly, Cannot> {
        let allowed = Allowed { ignore_journal, ..Allowed::default() };
        assemble(&[others, &members[..]].concat(), &allowed)
    };
    let used = inspect(&mut disk(&journal(0), &[(2048, journal_block(48, 7, 0))]));
    let empty = seen(&journal(0));
    let spare = seen(&Superblock { number: 4, device: [77; 16], ..raid5(3, 0) });
    // A spare beside it, before or behind it, is not taken for it.
    for others in
        [vec![used.clone()], vec![spare.clone(), used.clone()], vec![used.clone(), spare.clone()]]
    {
        assert_eq!(decide(&others, false), Err(Cannot::Log("journal")));
        let notes = decide(&others, true).unwrap().notes;
        assert!(notes.iter().any(|note| note.contains("was not replayed")), "{notes:?}");
    }
    assert_eq!(decide(&[spare.clone(), empty], false).unwrap().notes, [""; 0]);
    for others in [vec![], vec![spare]] {
        let notes = decide(&others, false).unwrap().notes;
        assert!(notes.iter().any(|note| note.contains("not among the devices")), "{notes:?}");
    }
    // With a member missing parity is needed that the journal may know better.
    let degraded = |others: &[Inspected], allowed: &Allowed| {
        assemble(&[others, &members[..2]].concat(), allowed).map(|assembly| assembly.missing())
    };
    let allowed = Allowed::default();
    assert_eq!(degraded(&[], &allowed), Err(Cannot::JournalNeeded(vec![2])));
    assert_eq!(degraded(&[seen(&journal(0))], &allowed), Ok(vec![2]));
    let dirty_degraded = Allowed { dirty_degraded: true, ..Allowed::default() };
    assert_eq!(degraded(&[], &dirty_degraded), Ok(vec![2]));
}

/// For writing the log device is used, or given up when it is missing or out of date and that is allowed.
#[test]
fn a_journal_is_given_up_only_when_told() {
    let all = |features: Features| {
        [0, 1, 2].map(|place| {
            let mut one = Superblock { features, events: 9, ..raid5(3, place) };
            one.roles[3] = Role::Journal;
            seen(&one)
        })
    };
    let log = |events: u64| seen(&Superblock { events, ..journal(0) });
    let join = |features: Features, log: Option<Inspected>, ignore_journal: bool| {
        let allowed = Allowed { ignore_journal, ..Allowed::default() };
        join(&[&all(features)[..], log.as_slice()].concat(), &allowed)
    };
    let mut other = Superblock { number: 4, events: 9, ..journal(0) };
    other.roles[4] = Role::Journal;
    let journal = Features::JOURNAL;
    let used = join(journal, Some(log(9)), false).unwrap();
    assert_eq!((used.journal, used.former_journal), (Some(3), None));
    assert_eq!(join(journal, Some(log(9)), true), Err(Cannot::JournalThere));
    for log in [None, Some(log(7))] {
        assert_eq!(join(journal, log.clone(), false), Err(Cannot::JournalLost));
        let given_up = join(journal, log, true).unwrap();
        assert_eq!((given_up.journal, given_up.former_journal), (None, Some(3)));
        assert_eq!(given_up.consistency, Consistency::Resync);
        assert!(given_up.notes[0].contains("is given up"), "{:?}", given_up.notes);
    }
    // One in whose place another device is, or that was given up, is none, whatever it says itself.
    assert_eq!(join(journal, Some(seen(&other)), false), Err(Cannot::JournalLost));
    // Of an array that has none any more.
    let without = join(Features(0), Some(log(9)), false).unwrap();
    assert_eq!((without.journal, without.former_journal), (None, None));
    assert!(without.out.iter().any(|out| out.given == 3 && out.why == Why::Failed));
}
