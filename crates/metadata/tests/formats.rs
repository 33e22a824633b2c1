//! What was written is found again, and where what was written last was torn, what was there before.

mod disk;

use disk::{ARRAY, Disk, FORMAT, JOURNAL, SECTOR, TOTAL, Writer, partial};
use raidlab_core::consistency::{Finding, LogEntry, MetaArea};
use raidlab_core::contract::{Epoch, MetaIo, Record, SegmentList, Superblock};
use raidlab_core::{Config, Consistency, Layout, Level, MemberIndex, Sector, Sectors};
use raidlab_metadata::{MetadataFormat, RecordWriter};

#[test]
fn what_was_written_is_found() {
    let (mut disk, mut writer) = (Disk::blank(), Writer::new());
    assert_eq!(disk.superblock(), Finding::Blank);
    writer.prepare(&mut disk);
    assert_eq!(disk.superblock(), Finding::Blank, "ready, and nothing is there yet");
    for events in 1..=5 {
        writer.superblock(&mut disk, events);
        for page in 0..3 {
            writer.page(&mut disk, page, events << page);
        }
        let looked = FORMAT.examine(&mut disk);
        let found = looked.examined;
        assert_eq!((found.sectors, found.logical_block), (TOTAL, 1));
        let carried = found.superblock.whole().expect("a superblock");
        assert_eq!((carried.array, carried.device), (ARRAY, 1));
        assert_eq!(carried.superblock, Superblock { events, ..Superblock::default() });
        assert_eq!(carried.parameters, writer.parameters);
        let bits = [events, events << 1, events << 2];
        assert_eq!(found.bitmap, bits.map(Finding::Whole));
        assert_eq!(found.log, Default::default());
        assert_eq!(looked.sequence, writer.sequence);
        // Who goes on from what was found overwrites the older place, too.
        assert_eq!(looked.places, writer.places);
        writer.places = looked.places;
    }
}

/// A superblock says all that the array's state has.
#[test]
fn every_field_of_a_superblock_comes_back() {
    let said = Superblock {
        events: 1 << 60,
        failed: [5, 0],
        rebuilding: [2, 0],
        clean: true,
        journal: false,
        by_bitmap: true,
        rebuilt_to: Sector(77),
        synced_to: Sector(u64::MAX),
        journal_tail: 3,
        bitmap_since: 4,
        left: 9,
        history: std::array::from_fn(|n| Epoch { id: u64::MAX - n as u64, from: 1 << (50 - n) }),
        // Not kept.
        replacing: [0; 2],
        replaced_to: Sector(0),
    };
    let others = [
        Superblock::default(),
        Superblock { clean: true, ..Superblock::default() },
        Superblock { journal: true, ..Superblock::default() },
        Superblock { by_bitmap: true, ..Superblock::default() },
    ];
    for said in others.into_iter().chain([said]) {
        let (mut disk, mut writer) = (Disk::blank(), Writer::new());
        writer.prepare(&mut disk);
        writer.write(&mut disk, Record::Superblock(said), Sector(0), &[]);
        assert_eq!(disk.superblock().whole().expect("a superblock").superblock, said);
    }
}

#[test]
fn a_log_device_carries_superblocks_and_the_journal() {
    let (mut disk, mut writer) = (Disk::blank(), Writer::of_journal());
    writer.prepare(&mut disk);
    writer.superblock(&mut disk, 1);
    writer.superblock(&mut disk, 2);
    let entry = |at, sequence| {
        let (stripe, from, to, roles, settled) = (3, 0, 2, [0b11, 0], sequence - 1);
        Record::JournalEntry { at: Sector(at), sequence, stripe, from, to, roles, settled }
    };
    let payload = [0x5a; 4 * SECTOR];
    for (at, sequence) in [(0, 1), (12, 2), (1_012, 9)] {
        writer.write(&mut disk, entry(at, sequence), Sector(at), &payload);
    }
    let looked = FORMAT.examine(&mut disk);
    let carried = looked.examined.superblock.whole().expect("a superblock").clone();
    assert_eq!((carried.device, carried.superblock.events), (6, 2));
    assert_eq!(carried.parameters.consistency, JOURNAL);
    assert_eq!((carried.parameters.data, carried.parameters.log), (Sectors(0), Sectors(1_024)));
    let found = [(0, 1), (12, 2), (1_012, 9)].map(|(at, sequence)| LogEntry {
        member: MemberIndex(6),
        at: Sector(at),
        record: entry(at, sequence),
    });
    assert_eq!(looked.examined.log.entries, found);
    assert_eq!(looked.sequence, writer.sequence);
    // One that does not speak of its own place is none.
    writer.write(&mut disk, entry(500, 3), Sector(24), &payload);
    assert_eq!(FORMAT.examine(&mut disk).examined.log.entries, found);
}

/// An entry of an earlier turn of which only zeroes were overwritten, by the rest of the next one's head, is as whole
/// as that one.
#[test]
fn an_older_entry_hides_none_that_was_written_over_its_payload() {
    let (mut disk, mut writer) = (Disk::blank(), Writer::of_journal());
    writer.prepare(&mut disk);
    writer.superblock(&mut disk, 1);
    let entry = |at, sequence| {
        let (stripe, from, to, roles, settled) = (3, 0, 2, [0b1, 0], sequence - 1);
        Record::JournalEntry { at: Sector(at), sequence, stripe, from, to, roles, settled }
    };
    writer.write(&mut disk, entry(18, 22), Sector(18), &[0; 2 * SECTOR]);
    writer.write(&mut disk, entry(24, 27), Sector(24), &[0x5a; 2 * SECTOR]);
    let places: Vec<u64> =
        FORMAT.examine(&mut disk).examined.log.entries.iter().map(|entry| entry.at.0).collect();
    assert_eq!(places, [18, 24]);
}

/// A crash leaves any of the eight sectors of a record's place as it was.
#[test]
fn a_power_cut_leaves_a_superblock_or_the_one_before() {
    let (mut disk, mut writer) = (Disk::blank(), Writer::new());
    writer.prepare(&mut disk);
    writer.superblock(&mut disk, 1);
    let before = disk.clone();
    let at = writer.superblock(&mut disk, 2);
    for arrived in 0_u32..256 {
        let mut torn = before.clone();
        for sector in (0..8).filter(|sector| arrived >> sector & 1 == 1) {
            let sector = Sector(at.0 + sector);
            let bytes = disk.sector(sector).to_vec();
            torn.write(sector, &bytes);
        }
        let found = torn.superblock();
        let events = found.whole().expect("never damage").superblock.events;
        assert_eq!(events, 1 + u64::from(arrived & 1), "{arrived:#b}");
    }
}

#[test]
fn entries_of_a_log_are_found_where_they_are_whole_and_ours() {
    let (mut disk, mut writer) = (Disk::blank(), Writer::with_log());
    writer.prepare(&mut disk);
    writer.superblock(&mut disk, 1);
    let payload = [0x5a; 2 * SECTOR];
    let log = |disk: &mut Disk| {
        let looked = FORMAT.examine(disk);
        let found = looked.examined.log;
        let records: Vec<Record> = found.entries.iter().map(|entry| entry.record).collect();
        (records, found.unreadable, looked.sequence)
    };
    assert_eq!(log(&mut disk), (vec![], false, 3));
    writer.entry(&mut disk, 0, 8, &payload);
    writer.entry(&mut disk, 1, 9, &payload);
    assert_eq!(log(&mut disk), (vec![partial(0, 8), partial(1, 9)], false, 5));
    writer.array = [8; 16];
    writer.entry(&mut disk, 2, 10, &payload);
    writer.array = ARRAY;
    let both = vec![partial(0, 8), partial(1, 9)];
    assert_eq!(log(&mut disk), (both.clone(), false, 5), "of another array");
    // What was written to a replacement serves when it is the member.
    writer.device = 4;
    writer.entry(&mut disk, 2, 10, &payload);
    let all = vec![partial(0, 8), partial(1, 9), partial(2, 10)];
    assert_eq!(log(&mut disk), (all, false, 7));
    let second = Sector(writer.places.data.0 + 32);
    disk.sector(Sector(second.0 + 9))[5] ^= 1;
    let left = vec![partial(0, 8), partial(2, 10)];
    assert_eq!(log(&mut disk), (left.clone(), false, 7), "its payload is torn");
    disk.sector(Sector(second.0 + 9))[5] ^= 1;
    disk.sector(second)[60] ^= 1;
    assert_eq!(log(&mut disk), (left, false, 7), "its head is damaged");
    disk.sector(second)[60] ^= 1;
    // Copied to another slot it was never written there.
    let copy = disk.bytes[second.bytes() as usize..][..10 * SECTOR].to_vec();
    disk.write(Sector(second.0 + 64), &copy);
    assert_eq!(log(&mut disk).0, [partial(0, 8), partial(1, 9), partial(2, 10)]);
}

/// Arrays of any number of members, with the last of them out of service.
#[test]
fn arrays_of_up_to_128_members() {
    for members in 2..=128_u16 {
        let (mut disk, mut writer) = (Disk::blank(), Writer::new());
        writer.parameters.layout = format!("raid1({members})");
        let last = 1_u128 << (members - 1);
        let failed = [last as u64, (last >> 64) as u64];
        for (set, is_one) in [(failed, true), ([u64::MAX; 2], members == 128)] {
            writer.prepare(&mut disk);
            for superblock in [
                Superblock { failed: set, ..Superblock::default() },
                Superblock { rebuilding: set, ..Superblock::default() },
            ] {
                writer.write(&mut disk, Record::Superblock(superblock), Sector(0), &[]);
                let found = disk.superblock();
                let said = found.whole().map(|carried| carried.superblock);
                assert_eq!(said, is_one.then_some(superblock), "{members} members, {set:?}");
            }
        }
    }
}

/// A replacement gets its first superblock when it holds everything, and may be all there is of its member from the
/// next moment on.
#[test]
fn a_replacement_that_takes_over_is_known_as_the_member() {
    let (member, replacement) = (MemberIndex(1), MemberIndex(4));
    let area = MetaArea { log: Sectors(0), pages: 0, used: true };
    let layout = Layout::new(Level::Raid5, 3).with_chunk(Sectors(16));
    let mut config = Config::uniform(layout, area.data(TOTAL, 1).expect("room"));
    config.settings.consistency = Consistency::Resync;
    let mut writer = RecordWriter::new(ARRAY, &config, &area);
    writer.set_places(replacement, writer.fresh(replacement, TOTAL));
    let mut disk = Disk::blank();
    let mut head = vec![0; FORMAT.head()];
    for at in FORMAT.superblocks(TOTAL) {
        writer.encode_vacant(&mut head, replacement, at);
        disk.write(at, &head);
    }
    let mut write = |writer: &mut RecordWriter, member, disk: &mut Disk, events| {
        let superblock = Superblock { events, ..Superblock::default() };
        let record = Record::Superblock(superblock);
        let (at, payload, flush, fua) = (Sector(0), SegmentList::EMPTY, false, true);
        let meta = MetaIo { member, record, at, payload, flush, fua };
        let put = writer.encode(&FORMAT, &mut head, &meta, (0, 0, &mut std::iter::empty()));
        let at = put.expect("a record of the format").at;
        disk.write(at, &head);
        let found = disk.superblock();
        let found = found.whole().map(|one| (one.device, one.superblock.events));
        assert_eq!(found, Some((member.0 % 3, events)));
        at
    };
    let first = write(&mut writer, replacement, &mut disk, 1);
    writer.take_over(member, replacement);
    let second = write(&mut writer, member, &mut disk, 2);
    assert_ne!(first, second, "the place of the older one");
    assert_eq!(writer.sequence(), 4);
    // Who finds it goes on from there.
    let mut writer = RecordWriter::new(ARRAY, &config, &area);
    writer.know(member, &FORMAT.examine(&mut disk));
    assert_eq!(writer.sequence(), 4);
    assert_eq!(write(&mut writer, member, &mut disk, 3), first);
    let mut other = RecordWriter::new([8; 16], &config, &area);
    other.know(member, &FORMAT.examine(&mut disk));
    assert_eq!(other.sequence(), 0, "of another array");
}
