//! Every format through its trait: what was written is found, what is torn, foreign or hostile is not.

use std::collections::BTreeSet;

use raidlab_core::consistency::MetaArea;
use raidlab_core::contract::{MetaIo, Record, SegmentList, Superblock};
use raidlab_core::{MemberIndex, SECTOR_BYTES, Sector, Sectors};
use raidlab_metadata::{ArrayId, Facts, Label, MetadataFormat, Own, Places, Source, Unreadable};

const FORMATS: [&dyn MetadataFormat; 1] = [&Own];
const SECTOR: usize = SECTOR_BYTES as usize;
const TOTAL: Sectors = Sectors(2_003);
const AREA: MetaArea = MetaArea { log: Sectors(256), pages: 3, used: true };
const ARRAY: ArrayId = [7; 16];

/// A device in memory.
struct Disk {
    bytes: Vec<u8>,
    unreadable: BTreeSet<u64>,
}

impl Disk {
    fn new() -> Self {
        Self { bytes: vec![0xee; TOTAL.0 as usize * SECTOR], unreadable: BTreeSet::new() }
    }

    fn write(&mut self, at: Sector, bytes: &[u8]) {
        self.bytes[at.0 as usize * SECTOR..][..bytes.len()].copy_from_slice(bytes);
    }
}

impl Source for Disk {
    fn sectors(&self) -> Sectors {
        TOTAL
    }

    fn logical_block(&self) -> u32 {
        1
    }

    fn read(&mut self, at: Sector, into: &mut [u8]) -> Result<(), Unreadable> {
        let sectors = at.0..at.0 + (into.len() / SECTOR) as u64;
        if sectors.end > TOTAL.0 || self.unreadable.range(sectors).next().is_some() {
            return Err(Unreadable);
        }
        into.copy_from_slice(&self.bytes[at.0 as usize * SECTOR..][..into.len()]);
        Ok(())
    }
}

/// Writes records of member 1 of an array.
struct Writer {
    format: &'static dyn MetadataFormat,
    array: ArrayId,
    places: Places,
    sequence: u64,
}

impl Writer {
    fn new(format: &'static dyn MetadataFormat) -> Self {
        let data = AREA.data(TOTAL, 1).expect("room");
        Self { format, array: ARRAY, places: Places::blank(TOTAL, data, &AREA), sequence: 0 }
    }

    /// Gives where it was written.
    fn write(&mut self, disk: &mut Disk, record: Record, at: Sector, payload: &[u8]) -> Sector {
        let meta = MetaIo {
            member: MemberIndex(1),
            record,
            at,
            payload: SegmentList::EMPTY,
            flush: false,
            fua: true,
        };
        self.sequence += 1;
        let label = Label {
            array: self.array,
            device: 1,
            sequence: self.sequence,
            payload: (payload.len() / SECTOR) as u32,
        };
        let (data, log) = (self.places.data.0, AREA.log.0);
        let facts = Facts { data, log, pages: u64::from(AREA.pages), layout: "raid5(3)" };
        let mut bytes = vec![0; self.format.head()];
        let parts = &mut payload.chunks(SECTOR);
        self.format.encode(&mut bytes, &label, &record, Some(&facts), parts);
        assert_eq!(self.format.decode(&bytes, payload), Some((label, record)));
        bytes.extend_from_slice(payload);
        let place = self.format.place(&mut self.places, &meta, false);
        disk.write(place, &bytes);
        place
    }

    fn superblock(&mut self, disk: &mut Disk, events: u64) -> Sector {
        let superblock = Superblock { events, ..Superblock::default() };
        self.write(disk, Record::Superblock(superblock), Sector(0), &[])
    }
}

#[test]
fn what_was_written_is_found() {
    for format in FORMATS {
        let (mut disk, mut writer) = (Disk::new(), Writer::new(format));
        assert_eq!(format.examine(&mut disk), None, "nothing is there yet");
        for events in 1..=5 {
            writer.superblock(&mut disk, events);
            for page in 0..AREA.pages {
                let bits = events << page;
                writer.write(&mut disk, Record::BitmapPage { page, bits }, Sector(0), &[]);
            }
            let found = format.examine(&mut disk).expect("a superblock");
            assert_eq!((found.array, found.device, found.superblock.events), (ARRAY, 1, events));
            assert_eq!((found.data, found.log, found.pages), (writer.places.data, AREA.log, 3));
            assert_eq!((found.layout.as_str(), found.sequence), ("raid5(3)", writer.sequence));
            assert_eq!(found.bitmap, [events, events << 1, events << 2]);
            // Who goes on from what was found overwrites the older place, too.
            writer.places = Places::found(TOTAL, found.data, &AREA, &found);
        }
        assert_eq!(format.examine(&mut Disk::new()), None);
    }
}

#[test]
fn a_torn_superblock_leaves_the_one_before() {
    for format in FORMATS {
        let (mut disk, mut writer) = (Disk::new(), Writer::new(format));
        writer.superblock(&mut disk, 1);
        let at = writer.superblock(&mut disk, 2).0 as usize * SECTOR;
        let after = disk.bytes.clone();
        for torn in 1..format.head() / SECTOR {
            disk.bytes.clone_from(&after);
            // What was there before the first ones has not been overwritten.
            disk.bytes[at..at + torn * SECTOR].fill(0xee);
            let found = format.examine(&mut disk).expect("the one before");
            assert_eq!(found.superblock.events, 1, "{torn} sectors did not arrive");
        }
    }
}

#[test]
fn entries_of_a_log_are_found_where_they_are_whole_and_ours() {
    for format in FORMATS {
        let (mut disk, mut writer) = (Disk::new(), Writer::new(format));
        let entry = |slot, stripe| Record::PartialParity {
            slot,
            generation: 1,
            stripe,
            from: 0,
            to: 2,
            written: [1, 0],
        };
        let payload = [0x5a; 2 * SECTOR];
        let data = writer.places.data;
        let log = |disk: &mut Disk| {
            let area = (Sector(data.0), AREA.log);
            let (entries, sequence) = format.examine_log(disk, (MemberIndex(1), ARRAY), area);
            let records: Vec<Record> = entries.iter().map(|entry| entry.record).collect();
            (records, sequence)
        };
        assert_eq!(log(&mut disk), (vec![], 0));
        writer.write(&mut disk, entry(0, 10), Sector(0), &payload);
        let second = writer.write(&mut disk, entry(1, 11), Sector(16), &payload);
        assert_eq!(log(&mut disk), (vec![entry(0, 10), entry(1, 11)], 2));
        writer.array = [8; 16];
        writer.write(&mut disk, entry(2, 12), Sector(32), &payload);
        assert_eq!(log(&mut disk), (vec![entry(0, 10), entry(1, 11)], 2), "of another array");
        let byte = second.0 as usize * SECTOR + format.head() + 5;
        disk.bytes[byte] ^= 1;
        assert_eq!(log(&mut disk), (vec![entry(0, 10)], 1), "its payload is torn");
    }
}

/// Whatever stands on a device, looking at it ends, and never with a record that was not sealed.
#[test]
fn hostile_bytes_are_no_metadata() {
    for format in FORMATS {
        let mut state = 1_u64;
        let mut draw = move || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            state >> 33
        };
        for round in 0..200 {
            let (mut disk, mut writer) = (Disk::new(), Writer::new(format));
            let mut places = vec![];
            for events in 1..=2 {
                places.push(writer.superblock(&mut disk, events));
                for page in 0..AREA.pages {
                    let record = Record::BitmapPage { page, bits: events };
                    places.push(writer.write(&mut disk, record, Sector(0), &[]));
                }
            }
            for place in places {
                let at = place.0 as usize * SECTOR + draw() as usize % format.head();
                disk.bytes[at] ^= 1 << (draw() % 8);
                if draw() % 8 == 0 {
                    disk.unreadable.insert(place.0);
                }
            }
            assert_eq!(format.examine(&mut disk), None, "round {round}");
            let area = (Sector(draw() % TOTAL.0), Sectors(draw() % TOTAL.0));
            let (entries, _) = format.examine_log(&mut disk, (MemberIndex(1), ARRAY), area);
            assert_eq!(entries, [], "round {round}");
        }
    }
}
